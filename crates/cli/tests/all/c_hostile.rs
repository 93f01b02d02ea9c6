//! Hostile C: an error with its position, within limits.

use std::time::{Duration, Instant};

use crate::common::*;

/// Checks that `check`, `fences` and `convert` report the same error at this position of this program, each within 20 seconds.
fn refused(name: &str, contents: &[u8], place: &str, message: &str) {
    let files = Files::new(&[]);
    files.write(name, contents);
    let path = files.text(name);
    for command in [&["check", "--memory", "1G"][..], &["fences"], &["convert", "--to", "fw"]] {
        let start = Instant::now();
        let outcome = run(command.iter().copied().chain([path.as_str()]));
        assert!(start.elapsed() < Duration::from_secs(20), "{name}: {command:?} took {:?}", start.elapsed());
        assert_eq!(outcome.status, 2, "{name}: {command:?}: {outcome:?}");
        let said = outcome.stderr.contains(message) && outcome.stderr.contains(place);
        assert!(said, "{name}: {command:?}: expected {place} {message}: {outcome:?}");
    }
    let outcome = run(["check", "--json", &path]);
    let failure = &outcome.json_lines()[0];
    assert!(failure["line"].is_u64() && failure["error"].is_string(), "{failure}");
}

#[test]
fn macros_that_grow_without_end() {
    let mut bomb: String = (0..30).map(|n| format!("#define A{n} A{} A{}\n", n + 1, n + 1)).collect();
    bomb += "int x = A0;\n";
    refused("bomb.c", bomb.as_bytes(), "bomb.c:31:9", "macros stand for more than");
    let arguments = "#define F(x) x x x x x x x x\nint y = F(F(F(F(F(F(F(F(F(F(1))))))))));\n";
    refused("arguments.c", arguments.as_bytes(), "arguments.c:", "macros stand for more than");
}

#[test]
fn files_that_include_each_other() {
    let why = "files include each other too deep";
    refused("loop.c", b"#include \"loop.c\"\n", "loop.c:1:", why);
    let files = Files::new(&[("a.c", "#include \"b.h\"\n"), ("b.h", "int x;\n#include \"a.c\"\n")]);
    let outcome = run(["check", &files.text("a.c")]);
    assert!(outcome.status == 2 && outcome.stderr.contains(why), "{outcome:?}");
    assert!(["a.c:1:", "b.h:2:"].iter().any(|place| outcome.stderr.contains(place)), "{outcome:?}");
}

#[test]
fn files_that_cannot_be_included() {
    refused("gone.c", b"\n#include \"gone.h\"\n", "gone.c:2:10", "cannot include `gone.h`: no such file");
    refused("directory.c", b"#include \".\"\n", "directory.c:1:", "this is a directory");
    // Opening or reading these files would never end.
    refused("device.c", b"#include \"/dev/zero\"\n", "device.c:1:", "this is not a regular file");
    refused("system.c", b"#include <windows.h>\n", "system.c:1:", "cannot include `windows.h`");
}

#[test]
fn texts_that_end_too_soon() {
    refused("if.c", b"int x;\n#if 1\nint y;\n", "if.c:2:", "has no `#endif`");
    refused("endif.c", b"int x;\n#endif\n", "endif.c:2:", "without an `#if`");
    refused("else.c", b"#if 0\n#else\n#else\n#endif\n", "else.c:3:", "behind `#else`");
    refused("brace.c", b"int main(void) {\n", "brace.c:1:", "");
    refused("comment.c", b"int x; /* never\n", "comment.c:1:", "");
    let branches = "#if 1\n".repeat(200_000);
    refused("branches.c", branches.as_bytes(), "branches.c:200000:", "has no `#endif`");
}

#[test]
fn bytes_that_are_no_text() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    let garbage: Vec<u8> = bytes.take(5_000).collect();
    refused("random.c", &garbage, "random.c:1:", "not UTF-8");
    let printable: Vec<u8> = garbage.iter().map(|byte| b' ' + byte % 95).collect();
    refused("printable.c", &printable, "printable.c:1:", "");
    refused("zero.c", &[0; 4096], "zero.c:1:", "");
}

#[test]
fn deep_nesting() {
    let deep = |open: &str| format!("int main(void) {{ return {}1; }}\n", open.repeat(100_000));
    for (n, open) in ["(", "-", "!", "f(", "a[", "(int)", "1 ? ", "({"].iter().enumerate() {
        refused(&format!("deep{n}.c"), deep(open).as_bytes(), ".c:1:", "");
    }
    let blocks = format!("int main(void) {}", "{".repeat(100_000));
    refused("blocks.c", blocks.as_bytes(), "blocks.c:1:", "nested");
    let pointers = format!("int {}x;\n", "*".repeat(100_000));
    refused("pointers.c", pointers.as_bytes(), "pointers.c:1:", "");
}

#[test]
fn options_for_other_languages() {
    let files = Files::new(&[("a.fw", SAFE), ("a.c", "int N = LENGTH;\n#error N\n")]);
    for option in [&["-I", "."][..], &["--heap", "3"], &["--recursion", "3"], &["--no-reuse"]] {
        let outcome = run(["check"].iter().chain(option).copied().chain([files.text("a.fw").as_str()]));
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("is for C programs"), "{outcome:?}");
    }
    let outcome = run(["check", "-D", "N=1.5", &files.text("a.fw")]);
    assert!(outcome.status == 2 && outcome.stderr.contains("is not an integer"), "{outcome:?}");
    let outcome = run(["check", "-D", "LENGTH=sizeof(int)", &files.text("a.c")]);
    assert!(outcome.status == 2 && outcome.stderr.contains("a.c:2:1"), "{outcome:?}");
}

#[test]
fn programs_that_take_long_to_translate() {
    let head = "#include <pthread.h>\nint a[1000000000], x;\nvoid *w(void *p) { x = 1; return 0; }\n";
    let calls: String =
        (1..31).map(|n| format!("int f{n}(void) {{ return f{0}() + f{0}(); }}\n", n - 1)).collect();
    let program = |rest: &str| {
        format!(
            "{head}int f0(void) {{ return x; }}\n{calls}int main(void) {{ pthread_t t; pthread_create(&t, 0, w, 0); {rest} }}\n"
        )
    };
    // Inlining `f30` would give 2^30 calls.
    refused("calls.c", program("x = f30();").as_bytes(), "calls.c:", "the program is too large");
    // An index into a huge array, of which only the first elements are laid out.
    let outcome = run(["check", &Files::new(&[("array.c", &program("a[x] = 1;"))]).text("array.c")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let branches = format!("int y;\n{}", program(&"if (x) y = 1; else\n".repeat(100_000)));
    let branches = branches.replace("else\n }", "else ; }");
    refused("branches.c", branches.as_bytes(), "branches.c:", "too deep");
    let files = Files::new(&[("calls.c", &program("x = f30();"))]);
    let outcome = run(["check", "--timeout", "1ms", &files.text("calls.c")]);
    assert!(outcome.status == 3 && outcome.stderr.contains("not even loaded"), "{outcome:?}");
}

/// Long programs whose executions are simple.
#[test]
fn a_hundred_thousand_lines() {
    const LINES: usize = 100_000;
    let lines = |line: &dyn Fn(usize) -> String| (0..LINES).map(line).collect::<String>();
    let program = |before: &str, inside: &str| {
        format!(
            "#include <pthread.h>\n#include <assert.h>\nstatic volatile int x, y;\n{before}void *w(void *p) {{\n    x = 1;\n{inside}    \
             return 0;\n}}\nint main(void) {{ pthread_t t; pthread_create(&t, 0, w, 0); y = 1; pthread_join(t, 0); assert(x == 1); }}\n"
        )
    };
    let long = |name: &str, text: String| {
        let files = Files::new(&[("long.c", &text)]);
        let path = files.text("long.c");
        let outcome = run(["check", "--json", "--property", "assertions", "--model", "tso", &path]);
        assert_eq!(outcome.json_lines()[0]["verdict"], "safe", "{name}: {outcome:?}");
    };
    long(
        "functions",
        program(&lines(&|n| format!("static inline int f{n}(int a) {{ return a + {n}; }}\n")), ""),
    );
    long("globals", program(&lines(&|n| format!("int g{n} = {n};\n")), ""));
    // Only a tenth of the lines: enough to notice quadratic time, and the test stays short.
    let tenth =
        |text: String| text.lines().take(LINES / 10).map(|line| format!("{line}\n")).collect::<String>();
    long("reads", program("", &tenth(lines(&|n| format!("    if (y == {}) x = 1;\n", n + 2)))));
    long("asserts", program("", &tenth(lines(&|n| format!("    assert(y != {});\n", n + 2)))));
}

/// An error in a function that is called from a loop or a switch is reported at its own position.
#[test]
fn refusals_in_called_functions() {
    let called = "int hash(int);\nstatic int add(int x) { return hash(x); }\nint main(void) {\n";
    let calls = [
        "for (int i = 0; i < 8; i++) add(i);",
        "int i = 0; while (i < 8) { i++; add(i); }",
        "int i = 0; do add(i); while (i++ < 8);",
        "for (int i = 0; i < 2; i++) for (int k = 0; k < 2; k++) { int z = ({ add(k); }); (void)z; }",
        "switch (1) { case 1: add(1); }",
        "for (int i = 0; i < 2; i++) switch (i) { case 1: if (add(1) && add(2)) break; default: add(3) ? add(4) : 0; }",
        "again: if (add(1)) goto again;",
    ];
    for (n, call) in calls.iter().enumerate() {
        let text = format!("{called}    {call}\n}}\n");
        refused(&format!("called{n}.c"), text.as_bytes(), &format!("called{n}.c:2:"), "hash");
    }
    let recursive = "#include <pthread.h>\nint main(void);\nvoid *w(void *p) { main(); return 0; }\n\
                     int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); }\n";
    refused("again.c", recursive.as_bytes(), "again.c:3:", "recursion");
}
