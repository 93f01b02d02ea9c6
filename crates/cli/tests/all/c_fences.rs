//! Fences inserted into realistic C: in the fence notation of the file, in headers, in macros, beside statements of every kind. The result is safe,
//! compiles without a new warning, and keeps every other byte.

use std::process::Command;

use crate::common::{Files, run};
use fencewright_testing::corpora::tell_skipped;

/// The messages of gcc about a file; `None` if gcc is not installed.
fn warnings(path: &str) -> Option<String> {
    let arguments = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-fsyntax-only", path];
    let gcc = Command::new("gcc").args(arguments).output();
    Some(String::from_utf8_lossy(&gcc.ok()?.stderr).into_owned())
}

fn verdict(path: &str, model: &str) -> String {
    let outcome = run(["check", "--json", "--property", "assertions", "--model", model, path]);
    outcome.json_lines()[0]["verdict"].as_str().unwrap_or_default().to_owned()
}

/// A program for store buffering in which both threads have this body; `MINE` and `OTHER` are the thread's own and the other variable, `SEEN` is the
/// value read.
fn store_buffering(head: &str, body: &str) -> String {
    let thread = |name: &str, mine: &str, other: &str, seen: &str| {
        let body = body.replace("MINE", mine).replace("OTHER", other).replace("SEEN", seen);
        format!("static void *{name}(void *argument)\n{{\n    (void)argument;\n{body}    return 0;\n}}\n\n")
    };
    let main = "int main(void)\n{\n    pthread_t a, b;\n    pthread_create(&a, 0, first, 0);\n    \
                pthread_create(&b, 0, second, 0);\n    pthread_join(a, 0);\n    pthread_join(b, 0);\n    \
                assert(r0 == 1 || r1 == 1);\n    return 0;\n}\n";
    format!(
        "{head}#include <assert.h>\n#include <pthread.h>\n\n{VARIABLES}\n{}{}{main}",
        thread("first", "x", "y", "r0"),
        thread("second", "y", "x", "r1")
    )
}

const VARIABLES: &str = "static volatile int x, y;\nstatic int r0, r1;\n";

/// Writes fences into these files, the first of which is the main file. Checks that the program was unsafe and is safe now, that gcc gives no new
/// warnings, and that `--diff` shows what was written.
fn fixed(test: &str, files: &[(&str, &str)], options: &[&str]) -> Files {
    let written = Files::new(files);
    let path = written.text(files[0].0);
    assert_eq!(verdict(&path, "tso"), "unsafe", "{test}");
    let before = warnings(&path);
    let fences = |last: &[&str]| {
        let arguments = ["fences", "--model", "tso"].iter().chain(options).chain(last).copied();
        run(arguments.chain([path.as_str()]))
    };
    let diff = fences(&["--diff"]);
    assert_eq!(diff.status, 0, "{test}: {diff:?}");
    let outcome = fences(&["--write", "--quiet"]);
    assert_eq!(outcome.status, 0, "{test}: {outcome:?}");
    let mut expected = String::new();
    for (name, text) in files {
        let new = written.read(name);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (old_lines, new_lines) = (lines(text), lines(&new));
        expected.extend(
            new_lines.iter().filter(|line| !old_lines.contains(line)).map(|line| format!("+{line}\n")),
        );
    }
    for line in expected.lines() {
        assert!(
            diff.stdout.contains(line.trim_end_matches('\r')),
            "{test}: {line} is not in {}",
            diff.stdout
        );
    }
    assert_eq!(verdict(&path, "tso"), "safe", "{test}");
    match (before, warnings(&path)) {
        (Some(before), Some(after)) => {
            let count = |said: &str| said.matches("warning:").count() + said.matches("error:").count();
            assert_eq!(count(&after), count(&before), "{test}: {after}");
        }
        _ => tell_skipped(test, "there is no gcc"),
    }
    written
}

#[test]
fn every_world_has_its_words() {
    let atomics = store_buffering(
        "#include <stdatomic.h>\n",
        "    atomic_store_explicit(&MINE, 1, memory_order_relaxed);\n    SEEN = atomic_load_explicit(&OTHER, memory_order_relaxed);\n",
    )
    .replace("volatile int", "atomic_int");
    let gnu = store_buffering("", "    MINE = 1;\n    SEEN = OTHER;\n");
    // Definitions that the headers of Linux would provide, so that gcc compiles the text.
    let linux = store_buffering(
        "#ifdef __GNUC__\n#define smp_mb() __sync_synchronize()\n#endif\n#define WRITE_ONCE(x, v) (*(volatile int *)&(x) = (v))\n#define READ_ONCE(x) (*(volatile int *)&(x))\n",
        "    WRITE_ONCE(MINE, 1);\n    SEEN = READ_ONCE(OTHER);\n",
    );
    for (name, text, word) in [
        ("atomics.c", &atomics, "    atomic_thread_fence(memory_order_seq_cst);\n"),
        ("gnu.c", &gnu, "    __sync_synchronize();\n"),
        ("linux.c", &linux, "    smp_mb();\n"),
    ] {
        let files = fixed(name, &[(name, text)], &[]);
        let patched = files.read(name);
        assert_eq!(patched.matches(word).count(), 2, "{patched}");
        assert_eq!(&patched.replace(word, ""), text, "every other byte stays");
        let audit = run(["fences", "--audit", "--json", "--model", "tso", &files.text(name)]);
        let audited = audit.json_lines();
        assert_eq!(audited.len(), 2, "{audit:?}");
        assert!(audited.iter().all(|fence| fence["needed"] == true), "{audit:?}");
    }
    // With prices at which a locked instruction is cheaper than a fence, the existing store gets a stronger memory order.
    let files = fixed("xchg", &[("atomics.c", &atomics)], &["--price", "xchg=1,fence=5"]);
    let patched = files.read("atomics.c");
    let strong = "    atomic_store_explicit(&x, 1, memory_order_seq_cst);\n";
    assert!(patched.contains(strong) && !patched.contains("fence("), "{patched}");
}

#[test]
fn statements_of_every_kind() {
    for (name, body) in [
        ("if.c", "    if (SEEN == 0) MINE = 1;\n    SEEN = OTHER;\n"),
        ("body.c", "    if (SEEN == 0)\n        MINE = 1;\n    SEEN = OTHER;\n"),
        ("else.c", "    if (SEEN == 1) SEEN = 0; else MINE = 1;\n    SEEN = OTHER;\n"),
        (
            "for.c",
            "    for (int i = 0; i < 1; i++) MINE = 1;\n    for (int i = 0; i < 1; i++)\n        SEEN = OTHER;\n",
        ),
        ("label.c", "    MINE = 1;\n    goto look;\nlook:\n    SEEN = OTHER;\n"),
        (
            "case.c",
            "    switch (SEEN) {\n    case 0: MINE = 1; /* falls through */\n    default: SEEN = OTHER; break;\n    }\n",
        ),
        ("line.c", "    MINE = 1; SEEN = OTHER;\n"),
        ("tabs.c", "\tMINE = 1;\t// mine\n\tSEEN = OTHER;\n"),
        ("do.c", "    do MINE = 1; while (MINE == 0);\n    SEEN = OTHER;\n"),
        ("value.c", "    SEEN = ({ MINE = 1; OTHER; });\n"),
    ] {
        fixed(name, &[(name, &store_buffering("", body))], &[]);
    }
}

#[test]
fn lines_that_end_in_other_ways() {
    let text = store_buffering("", "\tMINE = 1;\n\tSEEN = OTHER;\n").replace('\n', "\r\n");
    let files = fixed("crlf.c", &[("crlf.c", &text)], &[]);
    let patched = files.read("crlf.c");
    assert_eq!(patched.matches("\n").count(), patched.matches("\r\n").count(), "{patched:?}");
    assert!(patched.contains("\t__sync_synchronize();\r\n"), "{patched:?}");
    let text = store_buffering("", "    MINE = 1;\n    SEEN = OTHER;\n");
    let files = fixed("open.c", &[("open.c", text.trim_end())], &[]);
    assert!(files.read("open.c").ends_with('}'));
}

#[test]
fn headers_of_the_program_are_patched() {
    let header = "#ifndef LOCK_H\n#define LOCK_H\nstatic inline int announce(volatile int *mine, volatile int *other)\n{\n    *mine = 1;\n    return *other;\n}\n#endif\n";
    let text = store_buffering("#include \"include/lock.h\"\n", "    SEEN = announce(&MINE, &OTHER);\n");
    let files = fixed("header", &[("main.c", &text), ("include/lock.h", header)], &[]);
    assert_eq!(files.read("main.c"), text, "the fence belongs into the header");
    let patched = files.read("include/lock.h");
    assert!(patched.contains("    *mine = 1;\n    __sync_synchronize();\n    return *other;\n"), "{patched}");
}

/// For each fence in the output of `fences --json`, the number of uses of the changed macro.
fn macro_uses(path: &str) -> Vec<Option<u64>> {
    let outcome = run(["fences", "--json", "--model", "tso", path]);
    let answer = &outcome.json_lines()[0];
    let fences = answer["fences"].as_array().unwrap_or_else(|| panic!("{outcome:?}"));
    fences.iter().map(|fence| fence["macro_uses"].as_u64()).collect()
}

#[test]
fn definitions_of_macros_are_patched_where_nothing_else_helps() {
    for (name, definition, patched) in [
        (
            "do.h",
            "#define ANNOUNCE(mine, other, seen) \\\n    do { \\\n        mine = 1; \\\n        seen = other; \\\n    } while (0)\n",
            "        mine = 1; \\\n        __sync_synchronize(); \\\n        seen = other; \\\n",
        ),
        (
            "line.h",
            "#define ANNOUNCE(mine, other, seen) do { mine = 1; if (seen == 0) seen = other; } while (0)\n",
            "mine = 1; __sync_synchronize(); if (seen == 0)",
        ),
        (
            "value.h",
            "#define ANNOUNCE(mine, other, seen) (seen = ({ mine = 1; other; }))\n",
            "({ mine = 1; __sync_synchronize(); other; })",
        ),
    ] {
        let body = "    ANNOUNCE(MINE, OTHER, SEEN);\n";
        let text = store_buffering(&format!("#include \"{name}\"\n"), body);
        let sources = [("main.c", text.as_str()), (name, definition)];
        let before = Files::new(&sources);
        assert_eq!(macro_uses(&before.text("main.c")), [Some(2)], "{name}");
        let said = run(["fences", "--model", "tso", &before.text("main.c")]);
        assert!(said.stdout.contains("definition of a macro, and all its 2 uses change"), "{said:?}");
        let files = fixed(name, &sources, &[]);
        assert_eq!(files.read("main.c"), text, "{name}");
        assert!(files.read(name).contains(patched), "{name}: {}", files.read(name));
    }
}

#[test]
fn uses_of_macros_come_before_their_definitions() {
    let head = "#define PUT(place) do { place = 1; } while (0)\n#define GET(place) (place)\n";
    let text = store_buffering(head, "    PUT(MINE);\n    SEEN = GET(OTHER);\n");
    let files = fixed("uses.c", &[("uses.c", &text)], &[]);
    let patched = files.read("uses.c");
    assert!(
        patched.contains(head) && patched.matches("    __sync_synchronize();\n").count() == 2,
        "{patched}"
    );
    // If the macro is defined on the command line or in a built-in header, its definition cannot be edited.
    let text = store_buffering("", "    ANNOUNCE(MINE, OTHER, SEEN);\n");
    let files = Files::new(&[("given.c", &text)]);
    let define = "ANNOUNCE(mine,other,seen)=do { mine = 1; seen = other; } while (0)";
    let outcome = run(["fences", "--model", "tso", "-D", define, &files.text("given.c")]);
    assert!(outcome.status == 1 && outcome.stdout.contains("unfixable"), "{outcome:?}");
}
