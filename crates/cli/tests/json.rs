//! What the commands print with `--json`: an object whatever happens, with the keys that docs/json.md lists.

mod common;

use common::*;
use serde_json::{Value, json};

/// Runs a command with `--json` on one file and gives the only line it prints.
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
