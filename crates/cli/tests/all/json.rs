//! Output of `--json`: an object in every case, with the keys listed in docs/json.md.

use crate::common::*;
use serde_json::{Value, json};

/// Runs a command with `--json` on one file and returns the only line it prints.
fn only_line(arguments: &[&str], expected: i32) -> Value {
    let outcome = run(arguments);
    assert_eq!(outcome.status, expected, "{outcome:?}");
    let lines = outcome.json_lines();
    assert_eq!(lines.len(), 1, "{outcome:?}");
    lines[0].clone()
}

#[test]
fn files_that_are_no_programs_are_objects_with_the_first_message() {
    let files = Files::new(&[("wrong.fw", WRONG), ("unknown.fw", "shared x;\nthread p {\n  x = y;\n}\n")]);
    for command in ["check", "robust"] {
        let wrong = files.text("wrong.fw");
        let object = only_line(&[command, "--json", &wrong], 2);
        assert_eq!(object["file"], json!(wrong));
        assert_eq!((&object["line"], &object["column"]), (&json!(1), &json!(26)), "{object}");
        assert!(object["error"].as_str().is_some_and(|e| e.contains("expected")), "{object}");

        let unknown = files.text("unknown.fw");
        let object = only_line(&[command, "--json", &unknown], 2);
        assert_eq!((&object["line"], &object["column"]), (&json!(3), &json!(7)), "{object}");

        let missing = files.text("missing.fw");
        let object = only_line(&[command, "--json", &missing], 2);
        let expected = json!({"file": missing, "error": "no such file", "line": null, "column": null});
        assert_eq!(object, expected);
    }
}

#[test]
fn questions_that_cannot_be_asked_are_objects() {
    let files = Files::new(&[("safe.fw", SAFE), ("silent.fw", SILENT)]);
    let (safe, silent) = (files.text("safe.fw"), files.text("silent.fw"));
    let object = only_line(&["check", "--json", "--property", "nothing", &safe], 2);
    assert_eq!(object["file"], json!(safe));
    assert!(object["error"].as_str().is_some_and(|e| e.contains("`nothing`")), "{object}");

    let object = only_line(&["check", "--json", &silent], 2);
    assert_eq!(object["file"], json!(silent));
    let error = object["error"].as_str().expect("a message");
    assert!(error.contains("no property") && !error.contains('\n'), "{error}");

    let object = only_line(&["check", "--json", "--engine", "magic", &safe], 2);
    assert!(object["error"].as_str().is_some_and(|e| e.contains("no such engine")), "{object}");

    let object = only_line(&["check", "--json", "--certificate", "out.json", &safe, &safe], 2);
    assert_eq!(object["file"], json!("--certificate"));
}

#[test]
fn a_certificate_that_cannot_be_written_is_an_object_after_the_verdict() {
    let files = Files::new(&[("safe.fw", SAFE)]);
    let (safe, out) = (files.text("safe.fw"), files.text("missing/proof.json"));
    let outcome = run(["check", "--json", "--engine", "cegar", "--certificate", &out, &safe]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    let lines = outcome.json_lines();
    assert_eq!(lines[0]["verdict"], json!("safe"));
    assert_eq!(lines[1]["file"], json!(out));
    assert!(lines[1]["error"].as_str().is_some_and(|e| e.contains("cannot write")), "{outcome:?}");
    assert_eq!(lines.len(), 2);
}

#[test]
fn limits_and_signals_leave_an_object() {
    let files = Files::new(&[("diverging.fw", DIVERGING)]);
    let diverging = files.text("diverging.fw");
    let object = only_line(&["check", "--json", "--engine", "explicit", "--timeout", "100ms", &diverging], 3);
    assert_eq!(object["verdict"], json!("unknown"));
    let object = only_line(&["robust", "--json", "--timeout", "0", &diverging], 3);
    assert_eq!(object["robust"], Value::Null);
    assert!(object["reason"].as_str().is_some(), "{object}");
}

#[test]
fn lists_of_what_grew_are_capped_and_say_so() {
    let threads: String = (0..30).map(|n| format!("thread p{n} {{ loop {{ x = {n}; }} }}\n")).collect();
    let files = Files::new(&[("many.fw", &format!("shared x, y;\n{threads}forbid one: y == 1;\n"))]);
    let path = files.text("many.fw");
    // On a busy machine, few values are found within half a second.
    let within = |time| {
        let local =
            ["check", "--json", "--engine", "explicit", "--reduction", "local", "--timeout", time, &path];
        only_line(&local, 3)
    };
    let is_long = |object: &Value| object["growth"].as_array().is_some_and(|list| list.len() > 10);
    let objects = ["500ms", "5s", "30s"].into_iter().map(within);
    let object = objects.into_iter().find(is_long).expect("a list that is capped");
    let growth = object["growth"].as_array().expect("a list");
    assert_eq!(growth.len(), 11, "{object}");
    let last = growth[10]["message"].as_str().expect("a message");
    assert!(last.ends_with("more like these are not listed"), "{last}");
}

#[test]
fn properties_have_a_place() {
    let files = Files::new(&[
        ("sb.fw", STORE_BUFFERING),
        ("exists.fw", "shared x;\nthread p { x = 1; }\nfinally one: exists x == 1;\n"),
    ]);
    let object = only_line(&["check", "--json", &files.text("sb.fw")], 1);
    assert_eq!((&object["line"], &object["column"]), (&json!(4), &json!(1)));
    let outcome = run(["check", &files.text("sb.fw")]);
    assert!(outcome.stdout.contains("sb.fw:4:1: finally both_missed"), "{outcome:?}");
    let outcome = run(["check", "--engine", "cegar", &files.text("exists.fw")]);
    assert!(outcome.stdout.contains("cannot decide one"), "{outcome:?}");
    assert!(outcome.stdout.contains("exists.fw:3:1: this is where"), "{outcome:?}");
}

/// Whether a check runs the program named by FENCEWRIGHT_Z3, which only creates a file.
#[cfg(unix)]
fn runs_z3(arguments: &[&str]) -> bool {
    use std::os::unix::fs::PermissionsExt;
    // Nine different numbers below eight: too many cases for the built-in solver.
    let names: Vec<String> = (0..9).map(|n| format!("r{n}")).collect();
    let choices: String = names.iter().map(|r| format!("{r} = *; assume {r} >= 0 && {r} < 8; ")).collect();
    let pairs = (0..9).flat_map(|n| (0..n).map(move |m| format!("r{m} != r{n}")));
    let different = pairs.collect::<Vec<_>>().join(" && ");
    let program = format!(
        "thread p {{ var {}; {choices} assume {different}; bad: skip; }} forbid pigeons: p@bad;",
        names.join(", ")
    );
    let files = Files::new(&[("pigeons.fw", &program)]);
    let (script, mark) = (files.path("z3"), files.path("mark"));
    files.write("z3", format!("#!/bin/sh\ntouch {}\n", mark.display()).as_bytes());
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let child = command()
        .env("FENCEWRIGHT_Z3", &script)
        .args(["check", "--engine", "cegar", "--model", "sc", "--timeout", "20s"])
        .args(arguments)
        .arg(files.path("pigeons.fw"))
        .spawn()
        .expect("the command starts");
    finish(child);
    mark.exists()
}

#[cfg(unix)]
#[test]
fn z3_is_run_only_if_it_may_be() {
    assert!(runs_z3(&[]));
    assert!(!runs_z3(&["--no-z3"]));
}
