//! `fencewright check FOLDER`, as a user would type it.

mod common;

use common::{Files, run};

const SB: &str = "shared x, y;\nthread p { var r; x = 1; r = y; }\nthread q { var s; y = 1; s = x; }\nfinally both_missed: never p.r == 0 && q.s == 0;\n";

fn fenced() -> String {
    SB.replace("x = 1;", "x = 1; fence;").replace("y = 1;", "y = 1; fence;")
}

/// A folder with programs and what is expected of them.
fn folder(expected: &str) -> Files {
    let files = Files::new(&[]);
    files.write("b.fw", SB.as_bytes());
    files.write("a.fw", fenced().as_bytes());
    files.write("notes.txt", b"no program");
    files.write(
        "deeper/c.c",
        b"#include <assert.h>\nint x;\nint main(void) { x = N; assert(x == 2); return 0; }\n",
    );
    files.write("deeper/expected.toml", b"[[example]]\nfile = \"c.c\"\ndefine = { N = 2 }\ntso = \"safe\"\n[[example]]\nfile = \"c.c\"\ndefine = { N = 1 }\nproperty = \"assertions\"\ntso = \"unsafe\"\n");
    files.write("expected.toml", expected.as_bytes());
    files
}

/// The first words of all rows but the heading and the last line, without the name of the folder.
fn rows(stdout: &str, folder: &str) -> Vec<String> {
    let lines: Vec<&str> = stdout.lines().collect();
    let rows = lines[1..lines.len() - 1].iter();
    rows.map(|row| {
        let row = row.replace(folder, "");
        let words: Vec<&str> = row.trim_start_matches('/').split_whitespace().collect();
        let end = words.iter().position(|word| ["safe", "unsafe", "unknown", "error"].contains(word));
        words[..=end.expect("a row has a verdict")].join(" ")
    })
    .collect()
}

#[test]
fn a_folder_is_one_table_in_a_stable_order() {
    let files = folder("[[example]]\nfile = \"b.fw\"\ntso = \"unsafe\"\n");
    let outcome = run(["check", &files.text("")]);
    assert_eq!(
        rows(&outcome.stdout, &files.text("")),
        [
            "a.fw tso both_missed safe",
            "b.fw tso both_missed unsafe",
            "deeper/c.c -D N=2 tso memory safe",
            "deeper/c.c -D N=2 tso assertions safe",
            "deeper/c.c -D N=1 tso assertions unsafe",
        ],
        "{outcome:?}"
    );
    let last = outcome.stdout.lines().last().expect("there is a last line");
    assert!(last.starts_with("3 programs, 5 answers in "), "{last}");
    assert!(last.ends_with(": 3 safe, 2 unsafe, 0 unknown; all 3 as expected"), "{last}");
    assert_eq!(outcome.status, 0, "what is unsafe was expected to be");
}

#[test]
fn what_is_not_as_expected_is_named() {
    let files = folder("[[example]]\nfile = \"b.fw\"\ntso = \"safe\"\nsc = \"safe\"\n");
    let outcome = run(["check", &files.text("")]);
    assert_eq!(outcome.status, 1);
    let row = outcome.stdout.lines().find(|line| line.contains("b.fw")).expect("b.fw has a row");
    assert!(row.ends_with("expected safe"), "{row}");
    assert!(outcome.stdout.ends_with("1 of 3 not as expected\n"), "{outcome:?}");
    let json = run(["check", "--json", "--model", "all", &files.text("")]);
    assert_eq!(json.status, 1);
    let lines = json.json_lines();
    assert_eq!(lines.len(), 3 + 3 + 3 * 3 + 1, "{json:?}");
    let (answers, summary) = (&lines[..lines.len() - 1], &lines[lines.len() - 1]["summary"]);
    assert!(answers.iter().all(|line| line["verdict"].is_string()));
    assert_eq!(summary["unexpected"], 1);
    assert_eq!(summary["expected"], 3);
    assert!(json.stderr.contains("b.fw: unsafe under tso, expected safe"), "{json:?}");
}

#[test]
fn what_is_wrong_in_a_folder_is_a_row_or_an_error() {
    let files = folder("[[example]]\nfile = \"missing.fw\"\ntso = \"safe\"\n");
    files.write("broken.fw", b"thread {");
    let outcome = run(["check", &files.text("")]);
    assert_eq!(outcome.status, 2);
    let row = |name: &str| outcome.stdout.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(row("broken.fw").contains("error    1:8: "), "{outcome:?}");
    assert!(row("missing.fw").contains("no such file"), "{outcome:?}");
    assert!(outcome.stdout.ends_with("2 errors; 1 of 3 not as expected\n"), "{outcome:?}");
    assert!(row("b.fw").contains("unsafe"), "the others are answered");
    for expected in [
        "[[example",
        "example = 3",
        "[[example]]\ntso = \"safe\"",
        "[[example]]\nfile = \"b.fw\"\ntso = \"fine\"",
    ] {
        files.write("expected.toml", expected.as_bytes());
        let outcome = run(["check", &files.text("")]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{expected}");
        assert!(outcome.stderr.contains("expected.toml: "), "{outcome:?}");
    }
    let empty = Files::new(&[]);
    let outcome = run(["check", &empty.text("")]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("no programs"), "{outcome:?}");
}
