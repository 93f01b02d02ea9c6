//! The output of `--json` conforms to `docs/json.schema.json`, key for key.

use crate::common::{Files, Outcome, repository, run};
use serde_json::{Value, json};

/// The schema for objects of one kind, which forbids keys that it does not name.
fn strict(kind: &str) -> Value {
    let mut schema: Value =
        serde_json::from_str(include_str!("../../../../docs/json.schema.json")).expect("it is JSON");
    let schema = schema.as_object_mut().expect("it is an object");
    schema.remove("anyOf");
    schema.insert("$ref".into(), json!(format!("#/$defs/{kind}")));
    let mut schema = Value::Object(schema.clone());
    close(&mut schema["$defs"]);
    schema
}

/// Forbids unnamed keys in all objects of a schema that names keys.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            keys.values_mut().for_each(close);
            if keys.contains_key("properties") && keys.get("type") == Some(&json!("object")) {
                keys.insert("additionalProperties".into(), Value::Bool(false));
            }
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}

/// Checks that each line of an output is an object of this kind; returns the number of lines.
fn lines_are(kind: &str, outcome: &Outcome) -> usize {
    let validator = jsonschema::validator_for(&strict(kind)).expect("it is a schema");
    let lines = outcome.json_lines();
    for line in &lines {
        let errors: Vec<String> =
            validator.iter_errors(line).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{kind}: {errors:?}\n{line}");
    }
    assert!(!lines.is_empty(), "{kind}: {outcome:?}");
    lines.len()
}

fn example(name: &str) -> String {
    repository("examples").join(name).to_string_lossy().into_owned()
}

#[test]
fn verdicts() {
    for name in [
        "peterson.fw",
        "counter.fw",
        "mcs-lock.pso.fw",
        "ticket-lock.fw",
        "c/mcs.c",
        "c/peterson.c",
        "philosophers.fw",
    ] {
        lines_are("verdict", &run(["check", "--json", "--model", "all", "--timeout", "20s", &example(name)]));
    }
    let engines = ["explicit", "cegar", "lazy", "contexts", "buffers"];
    for engine in engines {
        let name = example("dekker.fenced.fw");
        lines_are("verdict", &run(["check", "--json", "--engine", engine, "--timeout", "2s", &name]));
    }
    let unknown =
        run(["check", "--json", "--timeout", "200ms", "--engine", "explicit", &example("bakery.fenced.fw")]);
    lines_are("verdict", &unknown);
    lines_are("verdict", &run(["check", "--json", "--reduction", "dynamic", &example("store-buffering.fw")]));
}

#[test]
fn folders_and_errors() {
    let files =
        Files::new(&[("a.fw", "shared x;\nthread p { x = 1; }\nforbid f: x == 2;\n"), ("b.fw", "thread {")]);
    let outcome = run(["check", "--json", &files.text("")]);
    let mut lines = outcome.json_lines();
    let kinds = ["verdict", "error", "summary"];
    assert_eq!(lines.len(), kinds.len(), "{outcome:?}");
    for (kind, line) in kinds.into_iter().zip(lines.drain(..)) {
        let validator = jsonschema::validator_for(&strict(kind)).expect("it is a schema");
        assert!(validator.is_valid(&line), "{kind}: {line}");
    }
    lines_are("error", &run(["check", "--json", &files.text("missing.fw"), &files.text("b.fw")]));
}

#[test]
fn other_commands() {
    let (sb, fenced) = (example("store-buffering.fw"), example("store-buffering.fenced.fw"));
    for arguments in [&["robust", "--json", "--all"][..], &["robust", "--json", "--notion", "triangular"]] {
        lines_are("robust", &run(arguments.iter().copied().chain([sb.as_str(), &fenced])));
    }
    lines_are("fences", &run(["fences", "--json", "--all", "--diff", &sb, &fenced, &example("counter.fw")]));
    lines_are("fences", &run(["fences", "--json", "--no-overflow", "1", &sb]));
    lines_are("audit", &run(["fences", "--json", "--audit", &fenced]));
    let files = Files::new(&[]);
    let proof = files.text("proof.json");
    run(["check", "--certificate", &proof, &fenced]);
    lines_are("certify", &run(["certify", "--json", &proof, &fenced]));
    lines_are("certify", &run(["certify", "--json", &proof, &sb]));
    lines_are("litmus", &run(["litmus", "--json", &sb, &files.text("missing.litmus")]));
    lines_are("engines", &run(["engines", "--json"]));
}

#[test]
fn what_is_not_as_the_schema_says_is_noticed() {
    let outcome = run(["check", "--json", &example("store-buffering.fw")]);
    let validator = jsonschema::validator_for(&strict("verdict")).expect("it is a schema");
    let line = outcome.json_lines().remove(0);
    assert!(validator.is_valid(&line));
    let mut other = line.clone();
    other["verdict"] = json!("fine");
    assert!(!validator.is_valid(&other));
    let mut more = line.clone();
    more["trace"][0]["extra"] = json!(1);
    assert!(!validator.is_valid(&more));
    let mut less = line;
    less.as_object_mut().expect("an object").remove("engine");
    assert!(!validator.is_valid(&less));
}
