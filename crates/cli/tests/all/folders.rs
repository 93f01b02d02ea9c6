//! `fencewright check FOLDER`, as a user would type it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;

use crate::common::{Files, SAFE, command, repository, run, run_with_input};

const SB: &str = "shared x, y;\nthread p { var r; x = 1; r = y; }\nthread q { var s; y = 1; s = x; }\nfinally both_missed: never p.r == 0 && q.s == 0;\n";

fn fenced() -> String {
    SB.replace("x = 1;", "x = 1; fence;").replace("y = 1;", "y = 1; fence;")
}

/// A folder with programs and this `expected.toml`.
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

/// The first words of all rows except the header and the summary, without the name of the folder.
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

/// A program with a property that is decided at once and one that is not; `before` says whether the former comes first.
fn partly_slow(before: bool) -> String {
    let text = fs::read_to_string(repository("examples/bakery.fenced.fw")).expect("the example is there");
    assert!(text.contains("const N = 2;"));
    let text = text.replace("const N = 2;", "const N = 4;");
    let quick = "forbid first: p[0]@critical;\n";
    if before { format!("{quick}{text}") } else { format!("{text}{quick}") }
}

#[test]
fn an_answer_does_not_wait_for_the_other_properties_of_its_program() {
    let cases = [
        ("", true, false),
        ("", false, false),
        ("tso = \"unsafe\"", false, false),
        ("tso = \"safe\"", true, true),
        ("tso = \"safe\"", false, true),
    ];
    for (expected, before, mark) in cases {
        let files = Files::new(&[("a.fw", SAFE), ("b.fw", &partly_slow(before))]);
        files.write("expected.toml", format!("[[example]]\nfile = \"b.fw\"\n{expected}\n").as_bytes());
        let arguments = ["check", "--timeout", "none", "--memory", "1G", &files.text("")];
        let mut child = command().args(arguments).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().skip(2);
        let row = lines.next().expect("there is a row").expect("it is text");
        // The other property takes minutes, so the command is still running.
        assert!(child.try_wait().expect("it can be asked").is_none());
        child.kill().expect("it can be ended");
        child.wait().expect("it has ended");
        assert!(row.contains("b.fw") && row.contains("first") && row.contains("unsafe"), "{row}");
        assert_eq!(row.contains("expected safe"), mark, "{row}");
    }
}

/// If a program has several properties, its worst verdict is compared with the expected one.
#[test]
fn the_worst_verdict_of_a_program_is_compared() {
    let text =
        "shared x;\nthread p { x = 1; }\nforbid two: x == 2;\nforbid one: x == 1;\nforbid three: x == 3;\n";
    let files = Files::new(&[("a.fw", text), ("b.fw", &text.replace("x = 1", "x = 0"))]);
    for (a, b, marked, status) in [
        ("unsafe", "safe", &[][..], 0),
        ("safe", "safe", &["one"][..], 1),
        ("unknown", "unsafe", &["one", "three"][..], 1),
    ] {
        let expected = format!(
            "[[example]]\nfile = \"a.fw\"\ntso = \"{a}\"\n[[example]]\nfile = \"b.fw\"\ntso = \"{b}\"\n"
        );
        files.write("expected.toml", expected.as_bytes());
        let outcome = run(["check", &files.text("")]);
        assert_eq!(outcome.status, status, "{outcome:?}");
        let rows = outcome.stdout.lines().filter(|line| line.contains(" expected ") && line.contains(".fw"));
        let found: Vec<_> = rows.filter_map(|row| row.split_whitespace().nth(2)).collect();
        assert_eq!(found, marked, "{outcome:?}");
    }
}

#[test]
fn what_is_read_is_never_written_over() {
    let files = Files::new(&[
        ("a.fw", SAFE),
        ("c.c", "#include \"c.h\"\nint main(void) { return f(); }\n"),
        ("c.h", "static int f(void) { return 0; }\n"),
        ("expected.toml", "[[example]]\nfile = \"a.fw\"\ntso = \"safe\"\n"),
    ]);
    let before: Vec<String> = ["a.fw", "c.h", "expected.toml"].map(|name| files.read(name)).to_vec();
    let folder = files.text("");
    for name in ["a.fw", "c.h", "expected.toml"] {
        for option in ["--sarif", "--html"] {
            let outcome = run(["check", option, &files.text(name), &folder]);
            assert_eq!(outcome.status, 2, "{name}: {outcome:?}");
            assert!(outcome.stderr.contains("also read"), "{name}: {outcome:?}");
        }
    }
    let (c, header, both) = (files.text("c.c"), files.text("c.h"), files.text("both"));
    for arguments in [
        &["check", "--certificate", &header, &c][..],
        &["check", "--sarif", &header, &c],
        &["robust", "--html", &header, &c],
        &["convert", "--to", "fw", "-o", &header, &c],
        &["check", "--sarif", &both, "--html", &both, &c],
    ] {
        assert_eq!(run(arguments).status, 2, "{arguments:?}");
    }
    assert!(!files.path("both").exists());
    assert_eq!(["a.fw", "c.h", "expected.toml"].map(|name| files.read(name)).to_vec(), before);
}

/// Other kinds of files in a folder do not prevent its programs from being checked.
#[cfg(unix)]
#[test]
fn pipes_links_and_folders_within_folders() {
    let deep = "d/".repeat(40);
    let files = Files::new(&[("a.fw", SAFE), ("x.fw/in.fw", SAFE), (&format!("{deep}too-deep.fw"), SAFE)]);
    let made = Command::new("mkfifo").arg(files.path("pipe.fw")).status();
    assert!(made.expect("mkfifo can be run").success());
    for (to, name) in [(".", "loop"), (".", "loop.fw"), ("nowhere", "broken.fw")] {
        std::os::unix::fs::symlink(to, files.path(name)).expect("a link can be made");
    }
    let outcome = run(["check", &files.text(""), &files.text("x.fw"), &files.text("a.fw")]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    let rows: Vec<&str> = outcome.stdout.lines().collect();
    let told = |name: &str, what: &str| rows.iter().filter(|r| r.contains(name) && r.contains(what)).count();
    assert_eq!(told("pipe.fw", "error    this is not a regular file"), 1, "{outcome:?}");
    assert_eq!(told("broken.fw", "error    no such file"), 1, "{outcome:?}");
    assert_eq!(told("/d ", "error    this folder lies too deep"), 1, "{outcome:?}");
    assert_eq!((told("/a.fw", "safe"), told("/in.fw", "safe")), (1, 1), "each is asked once: {outcome:?}");
    assert_eq!(rows.len(), 7, "{outcome:?}");
}

#[test]
fn the_standard_input_beside_a_folder_is_read_once() {
    let files = Files::new(&[("a.fw", SAFE)]);
    let outcome = run_with_input(["check", "--model", "all", &files.text(""), "-"], SB.as_bytes());
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert_eq!(outcome.stdout.lines().filter(|line| line.contains("both_missed")).count(), 3, "{outcome:?}");
}

#[test]
fn other_commands_say_that_they_take_files() {
    let files = Files::new(&[("one/a.fw", "shared x; thread p { x = 1; assert x == 1; }")]);
    let folder = files.text("one");
    for command in ["robust", "fences"] {
        let outcome = run([command, &folder]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        for said in ["this is a directory", &files.text("one/a.fw"), &format!("fencewright check {folder}")] {
            assert!(outcome.stderr.contains(said), "{said}: {outcome:?}");
        }
        let outcome = run([command, "--json", &folder]);
        assert_eq!(outcome.json_lines()[0]["error"], "this is a directory", "{outcome:?}");
    }
}
