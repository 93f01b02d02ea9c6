//! String literals in C programs: whether two of them are one object is unspecified, and none may be written.

use fencewright_executions::oracle::{Incomplete, explore};
use fencewright_lang::load;
use fencewright_program::MemoryModel;

use crate::verdicts::{HEADERS, assertions, memory};

fn main_does(body: &str) -> String {
    format!(
        "int nondet(void); _Bool __VERIFIER_nondet_bool(void); char buffer[4];\nint main(void) {{ {body} return 0; }}\n"
    )
}

/// Checks that the result of a comparison is left open.
#[track_caller]
fn open(body: &str) {
    let text = format!("{HEADERS}{}", main_does(body));
    let loaded = load("test.c", text.as_bytes(), None, &[]);
    let loaded = loaded.unwrap_or_else(|error| panic!("{}", error.sources.render(&error.diagnostics, false)));
    let explored = explore(&loaded.program, MemoryModel::Sc, 10_000, &mut || false);
    assert_eq!(explored.err(), Some(Incomplete::Limit), "{text}");
    let mut reasons = loaded.words.ends.values();
    assert!(
        reasons.any(|reason| reason.starts_with("whether equal string literals are one object")),
        "{text}"
    );
}

#[track_caller]
fn holds(body: &str) {
    assertions(&main_does(body), "sss");
    memory(&main_does(body), "sss");
}

#[test]
fn equal_literals_may_be_one_object() {
    for body in [
        "const char *a = \"abc\", *b = \"abc\"; assert(a != b);",
        "const char *a = \"abc\", *b = \"abc\"; assert(a == b);",
        "const char *a = \"abc\", *b = \"c\"; assert(a + 2 != b);",
        "const char *a = \"abc\", *b = \"\"; assert(b != a + 3);",
        "const char *a = \"abc\", *b = \"abc\"; if (a < b) assert(0);",
        "const char *a = \"abc\", *b = \"c\"; assert((uintptr_t)a + 2 != (uintptr_t)b);",
        "const char *names[] = { \"a\", \"b\", \"a\" }; assert(names[0] != names[2]);",
        "const char *a = \"abc\", *b = \"xbc\", *p = __VERIFIER_nondet_bool() ? a : b; assert(p != \"abc\");",
    ] {
        open(body);
    }
}

#[test]
fn other_comparisons_of_literals_are_decided() {
    for body in [
        "const char *a = \"abc\", *b = a; assert(a == b && a + 1 != b);",
        "const char *a = \"abc\", *b = \"abd\"; assert(a != b && a + 2 != b + 2);",
        "const char *a = \"abc\", *b = \"abc\"; assert(a + 1 != b && a != b + 3);",
        "const char *a = \"abc\"; assert(a != buffer && a != 0);",
        "assert(__func__ == __func__);",
        "for (int k = 0; k < 2; k++) { const char *a = \"abc\"; static const char *b; if (k) assert(a == b); b = a; }",
        "const char *p = \"hello\"; int n = 0; while (*p++) n++; assert(n == 5);",
    ] {
        holds(body);
    }
}

#[test]
fn literals_are_not_written() {
    for body in [
        "char *p = \"abc\"; p[0] = 'x';",
        "char *p = __VERIFIER_nondet_bool() ? buffer : \"abc\"; p[1] = 'x';",
        "char *p = __VERIFIER_nondet_bool() ? buffer : \"abc\"; __sync_fetch_and_add(p, 1);",
    ] {
        memory(&main_does(body), "uuu");
    }
    holds("char *p = __VERIFIER_nondet_bool() ? buffer : \"abc\"; if (p == buffer) p[0] = 'x';");
    holds("char own[] = \"abc\"; own[0] = 'x'; assert(own[0] == 'x' && own[1] == 'b');");
}
