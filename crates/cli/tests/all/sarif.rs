//! `fencewright check --sarif`: the output is SARIF 2.1.0 according to the schema, with the executions of violations.
//!
//! The schema in `schemas/sarif-2.1.0.json` is the OASIS committee specification from the repository `oasis-tcs/sarif-spec`.

use crate::common::{Files, repository, run};
use serde_json::Value;

/// Runs `check --sarif`, checks the file against the schema, and returns the exit status and the file.
fn sarif(files: &Files, arguments: &[&str]) -> (i32, Value) {
    let path = files.text("out.sarif");
    let outcome = run(["check", "--sarif", &path].iter().chain(arguments));
    let written: Value =
        serde_json::from_str(&files.read("out.sarif")).unwrap_or_else(|e| panic!("{e}: {outcome:?}"));
    // Two patterns of the schema have a misprint: a closing bracket without an opening one.
    let schema = include_str!("../schemas/sarif-2.1.0.json").replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<String> = validator.iter_errors(&written).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    (outcome.status, written)
}

/// The results with this rule.
fn results<'a>(sarif: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = sarif["runs"][0]["results"].as_array().expect("results are a list");
    all.iter().filter(|result| result["ruleId"] == rule).collect()
}

#[test]
fn a_violation_has_its_place_and_its_execution() {
    let files = Files::new(&[]);
    let program = repository("examples/peterson.fw").to_string_lossy().into_owned();
    let (status, sarif) = sarif(&files, &["--model", "all", &program]);
    assert_eq!(status, 1);
    let found = results(&sarif, "forbidden-state");
    assert_eq!(found.len(), 2, "under tso and pso: {sarif}");
    let json = run(["check", "--json", "--model", "tso", &program]).json_lines();
    let steps = json[0]["trace"].as_array().expect("there is a trace");
    let flows = found[0]["codeFlows"][0]["threadFlows"].as_array().expect("a flow for each thread");
    let mut orders: Vec<i64> = flows
        .iter()
        .flat_map(|flow| flow["locations"].as_array().expect("steps"))
        .map(|step| step["executionOrder"].as_i64().expect("a number"))
        .collect();
    orders.sort_unstable();
    assert_eq!(orders, (1..=steps.len() as i64).collect::<Vec<_>>());
    let line = found[0]["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64();
    assert_eq!(line, json[0]["line"].as_u64());
    let notes = sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"].as_array().expect("notes");
    assert!(
        notes
            .iter()
            .any(|note| note["message"]["text"].as_str().is_some_and(|t| t.contains("under sc: safe")))
    );
}

#[test]
fn warnings_hostile_names_folders_and_errors_fit_the_schema_too() {
    let files = Files::new(&[
        (
            "a b%.c",
            "#include <pthread.h>\n#include <assert.h>\nint x;\nvoid *f(void *a) { x = 1; return a; }\nint main(void) { pthread_t t; pthread_create(&t, 0, f, 0); x = 2; pthread_join(t, 0); assert(x == 1 && \"{0} <b>\\\"\"); return 0; }\n",
        ),
        ("broken.fw", "thread \u{202e}{"),
        ("none.fw", "shared x;\nthread p { x = x + 1; }\nforbid never: x > 5;\n"),
    ]);
    let (status, sarif) = sarif(&files, &["--model", "all", &files.text("")]);
    assert_eq!(status, 2);
    let found = results(&sarif, "assertion");
    assert_eq!(found.len(), 3, "{sarif}");
    let place = &found[0]["locations"][0]["physicalLocation"];
    assert!(
        place["artifactLocation"]["uri"].as_str().is_some_and(|uri| uri.ends_with("/a%20b%25.c")),
        "{place}"
    );
    assert_eq!(place["region"]["startLine"], 5);
    assert_eq!(results(&sarif, "warning").len(), 1, "one race, told once: {sarif}");
    let notes = sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"].to_string();
    assert!(notes.contains("broken.fw: 1:8: "), "{notes}");
}

#[test]
fn an_output_that_is_also_an_input_is_refused() {
    let files = Files::new(&[("a.fw", "shared x;\nthread p { x = 1; }\nforbid f: x == 2;\n")]);
    let outcome = run(["check", "--sarif", &files.text("a.fw"), &files.text("a.fw")]);
    assert_eq!(outcome.status, 2);
    assert!(files.read("a.fw").starts_with("shared x"));
}

#[test]
fn paths_are_references_and_executions_have_an_end() {
    let properties: String =
        (0..30).map(|n| format!("forbid f{n}: x == 0 - 1 && y < {};\n", n + 5)).collect();
    let long = format!(
        "shared x, y;\nthread p {{ var i; while i < 2400 {{ x = i; i = i + 1; }} x = 0 - 1; }}\n{properties}"
    );
    let files = Files::new(&[("long \u{e9}.fw", &long)]);
    let (program, path) = (files.text("long \u{e9}.fw"), files.text("out.sarif"));
    let outcome = run(["check", "-q", "--model", "sc", "--engine", "explicit", "--sarif", &path, &program]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let sarif: Value = serde_json::from_str(&files.read("out.sarif")).expect("it is JSON");
    let found = results(&sarif, "forbidden-state");
    assert_eq!(found.len(), 30);
    let flows = found.iter().filter(|result| result["codeFlows"].as_array().is_some_and(|f| !f.is_empty()));
    let with = flows.count();
    assert!((1..30).contains(&with), "{with} executions fit into a file");
    let text = found[29]["message"]["text"].as_str().expect("a text");
    assert!(text.contains("left out"), "{text}");
    assert!(files.read("out.sarif").len() < 40 << 20);
    let uri = found[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str();
    let uri = uri.expect("a reference");
    assert!(uri.starts_with("file:///") && uri.ends_with("/long%20%C3%A9.fw"), "{uri}");
}
