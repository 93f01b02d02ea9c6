//! Input, the time, and messages of errors: any values, within the bounds that the library guarantees.

use fencewright_lang::load;

use crate::verdicts::{HEADERS, assertions, memory};

const INCLUDES: &str = "#include <stdio.h>\n#include <string.h>\n#include <time.h>\n#include <sys/time.h>\n";

fn main(body: &str) -> String {
    format!("{INCLUDES}int main(void) {{ {body} return 0; }}")
}

#[track_caller]
fn right(body: &str) {
    assertions(&main(body), "sss");
    memory(&main(body), "sss");
}

/// A program as its translation is printed.
fn printed(body: &str) -> String {
    let text = format!("{HEADERS}{}", main(body));
    fencewright_lang::fw::print(&load("test.c", text.as_bytes(), None, &[]).expect("it is C").file)
}

#[test]
fn scanf_stores_any_values_or_none() {
    right(
        "signed char a = 7; int r = scanf(\"%hhd\", &a); assert(r == -1 || r == 0 || r == 1); assert(r == 1 || a == 7);",
    );
    let two = "unsigned char a = 7, b = 8; int r = sscanf(\"3 4\", \"%hhu%hhu\", &a, &b); __VERIFIER_assume(a < 9 && b < 9);";
    right(&format!("{two} assert(r >= -1 && r <= 2); assert(r == 2 || b == 8); assert(r > 0 || a == 7);"));
    right("char c = 1; int r = fscanf(stdin, \" %c%*d%%\", &c); assert(r <= 1);");
    for wrong in ["r != 1", "r != 0", "r != -1", "a != 7", "a == 7", "a != -3"] {
        assertions(
            &main(&format!("signed char a = 7; int r = scanf(\"%hhd\", &a); assert({wrong});")),
            "uuu",
        );
    }
    for wrong in ["a == 7 || b != 8", "a != 1 || b != 2"] {
        assertions(&main(&format!("{two} assert({wrong});")), "uuu");
    }
    assert!(
        printed("int a = 7; long b; scanf(\"%d %ld\", &a, &b); assert(a == 7 || b == 3);")
            .contains("in -2147483648..=2147483647")
    );
    // A value that was not stored is undefined.
    assertions(&main("char a; scanf(\"%c\", &a); assert(a == a);"), "uuu");
    for (statement, expected) in [
        ("char s[9]; scanf(\"%s\", s);", "something other than integers"),
        ("long l; scanf(\"%d\", &l);", "stores 4 bytes"),
        ("char *f = 0; int n; scanf(f, &n);", "something other than integers"),
    ] {
        let text = format!("{HEADERS}{}", main(statement));
        let error = load("test.c", text.as_bytes(), None, &[]).expect_err(statement);
        let message = &error.diagnostics[0].message;
        assert!(message.contains(expected), "{statement}: {message}");
    }
}

#[test]
fn the_time_has_bounds() {
    let bounds = |body: &str, ranges: &[&str]| {
        let text = printed(body);
        ranges.iter().for_each(|range| assert!(text.contains(range), "{range}\n{text}"));
    };
    bounds(
        "struct timeval t; assert(!gettimeofday(&t, 0)); assert(t.tv_sec > t.tv_usec);",
        &["in 0..=8589934591;", "in 0..=999999;"],
    );
    bounds(
        "struct timespec t; clock_gettime(CLOCK_REALTIME, &t); assert(t.tv_sec > t.tv_nsec); assert(time(0));",
        &["in 0..=8589934591;", "in 0..=999999999;"],
    );
    let text = format!("{HEADERS}{}", main("struct timeval t; struct timezone z; gettimeofday(&t, &z);"));
    let error = load("test.c", text.as_bytes(), None, &[]).expect_err("zones are not modelled");
    assert!(error.diagnostics[0].message.contains("time zone"), "{:?}", error.diagnostics);
}

#[test]
fn strerror_returns_any_text() {
    right("char *s = strerror(3); printf(\"%s\", s); assert(s);");
    let text = printed("assert(strerror(3)[5] != 'a');");
    assert!(text.contains("in -128..=127") && text.contains("strerror_text[5]"), "{text}");
}
