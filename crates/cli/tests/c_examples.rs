//! Every program of `examples/c/` has the verdicts that `examples/c/expected.toml` says it has, and `fences --write` makes the wrong ones right, in
//! a text that a compiler takes without a warning.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use common::{Files, repository, run};
use fencewright_testing::corpora::tell_skipped;
use toml::Value;

const MODELS: [&str; 3] = ["sc", "tso", "pso"];

fn entries() -> Vec<Value> {
    let text = fs::read_to_string(repository("examples/c/expected.toml")).expect("it can be read");
    let table: toml::Table = text.parse().expect("it is TOML");
    table["example"].as_array().expect("it has examples").clone()
}

fn word<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_else(|| panic!("{key} is a string"))
}

/// The definitions of an entry, as arguments.
fn defines(entry: &Value) -> Vec<String> {
    let table = entry.get("define").and_then(Value::as_table);
    let define = |(name, value): (&String, &Value)| ["-D".to_owned(), format!("{name}={value}")];
    table.into_iter().flatten().flat_map(define).collect()
}

fn is_slow(entry: &Value) -> bool {
    entry.get("slow").is_some() && std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_none()
}

/// What the command says about the asserts of a file.
fn verdict(path: &str, model: &str, defines: &[String]) -> String {
    let mut arguments = ["check", "--json", "--timeout", "60s", "--property", "assertions", "--model", model]
        .map(str::to_owned)
        .to_vec();
    arguments.extend(defines.iter().cloned());
    arguments.push(path.to_owned());
    let outcome = run(&arguments);
    let answers = outcome.json_lines();
    let [answer] = answers.as_slice() else { panic!("{outcome:?}") };
    answer["verdict"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn examples_in_c_answer_what_they_should() {
    for entry in entries().iter().filter(|entry| !is_slow(entry)) {
        let path = repository("examples/c").join(word(entry, "file"));
        for model in MODELS {
            let found = verdict(&path.to_string_lossy(), model, &defines(entry));
            assert_eq!(found, word(entry, model), "{entry:?} {model}");
        }
    }
}

#[test]
fn every_example_in_c_is_listed() {
    let listed: BTreeSet<String> = entries().iter().map(|entry| word(entry, "file").to_owned()).collect();
    let present = fs::read_dir(repository("examples/c")).expect("it can be read");
    let present = present.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert_eq!(listed, present.filter(|name| name.ends_with(".c")).collect());
}

/// What gcc says about a file; nothing if there is no gcc.
fn warnings(path: &str) -> Option<String> {
    let gcc =
        Command::new("gcc").args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-fsyntax-only", path]).output();
    Some(String::from_utf8_lossy(&gcc.ok()?.stderr).into_owned())
}

#[test]
fn fences_make_examples_in_c_right() {
    let header = fs::read_to_string(repository("examples/c/barrier.h")).expect("it can be read");
    for entry in entries() {
        let file = word(&entry, "file");
        let text = fs::read_to_string(repository("examples/c").join(file)).expect("it can be read");
        for model in entry.get("fixed").and_then(Value::as_array).into_iter().flatten() {
            let model = model.as_str().expect("a model");
            let files = Files::new(&[(file, &text), ("barrier.h", &header)]);
            let path = files.text(file);
            let outcome = run(["fences", "--write", "--json", "--timeout", "60s", "--model", model, &path]);
            assert_eq!(outcome.status, 0, "{file} {model}: {outcome:?}");
            assert_eq!(verdict(&path, model, &[]), "safe", "{file} {model}");
            let patched = fs::read_to_string(&path).expect("it is there");
            assert!(patched.lines().count() > text.lines().count(), "{file} {model}");
            match warnings(&path) {
                None => tell_skipped("fences_make_examples_in_c_right", "there is no gcc"),
                Some(said) => assert!(said.is_empty(), "{file} {model}: {said}"),
            }
        }
    }
}

#[test]
fn more_objects_than_the_heap_holds_are_not_looked_at() {
    let text = "#include <stdlib.h>\n#include <assert.h>\nint main(void) {\n    int n = 0;\n    for (int i = 0; i < 3; i++) {\n        int *p = malloc(4);\n        *p = i;\n        n += *p;\n    }\n    assert(n == 3);\n}\n";
    let files = Files::new(&[("heap.c", text)]);
    let path = files.text("heap.c");
    let few = run(["check", "--heap", "2", &path]);
    assert_eq!(few.stdout.matches("more than 2 objects from line 6").count(), 2, "{few:?}");
    assert!(!few.stdout.contains(": safe"), "{few:?}");
    let enough = run(["check", "--heap", "3", &path]);
    assert_eq!((enough.status, enough.stdout.matches(": safe").count()), (0, 2), "{enough:?}");
}
