//! `fencewright litmus`, as a user would type it.

mod common;

use std::time::{Duration, Instant};

use common::*;
use fencewright_testing::corpora::corpora;
use serde_json::Value;

fn test(name: &str, condition: &str) -> String {
    format!(
        "X86 {name}\n{{ }}\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\n{condition}\n"
    )
}

fn files() -> Files {
    Files::new(&[
        ("b/allowed.litmus", &test("SB", "exists (0:EAX=0 /\\\n    1:EAX=0)")),
        ("b/deep/forbidden.litmus", &test("SB-forbidden", "~exists (0:EAX=0 /\\ 1:EAX=0)")),
        ("a/required.litmus", &test("SB-required", "forall (x=1 /\\ y=1)")),
        ("a/notes.txt", "not a test"),
        ("sb.fw", STORE_BUFFERING),
        ("safe.fw", SAFE),
        ("diverging.litmus", "X86 D\n{ }\n P0 ;\nL: ;\n MOV [x],$1 ;\n JMP L ;\nexists (x=2)\n"),
        ("wrong.litmus", "X86 W\n{ }\n P0 ;\n WHAT [x],$1 ;\nexists (x=2)\n"),
        ("silent.litmus", "X86 W\n{ }\n P0 ;\n MOV [x],$1 ;\n"),
    ])
}

#[test]
fn directories_are_searched_in_order() {
    let files = files();
    let outcome = run(["litmus", "--json", &files.text("a"), &files.text("b")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let found: Vec<String> = array
        .as_array()
        .expect("an array")
        .iter()
        .map(|o| format!("{} {} {} {}", o["test"], o["holds"], o["observation"], o["states"]))
        .collect();
    assert_eq!(
        found,
        [
            "\"SB-required\" true \"Always\" 1",
            "\"SB\" true \"Sometimes\" 4",
            "\"SB-forbidden\" false \"Sometimes\" 4"
        ]
    );
    assert_eq!(
        array[1].to_string(),
        serde_json::json!({
            "file": files.text("b/allowed.litmus"), "test": "SB", "model": "tso",
            "condition": "exists (0:EAX=0 /\\ 1:EAX=0)", "holds": true, "observation": "Sometimes", "states": 4,
        })
        .to_string()
    );
}

#[test]
fn text_is_a_summary_for_each_test() {
    let files = files();
    let outcome = run(["litmus", &files.text("b/allowed.litmus")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let expected = "Test SB Allowed\nStates 4\n0:EAX=0; 1:EAX=0;\n0:EAX=0; 1:EAX=1;\n0:EAX=1; 1:EAX=0;\n\
                    0:EAX=1; 1:EAX=1;\nOk\nWitnesses\nPositive: 1 Negative: 3\nCondition exists (0:EAX=0 /\\ 1:EAX=0)\n\
                    Observation SB Sometimes 1 3\nTime SB ";
    assert!(outcome.stdout.starts_with(expected), "{}", outcome.stdout);
}

#[test]
fn the_model_and_the_status() {
    let files = files();
    let status = |arguments: &[&str]| {
        let arguments = arguments.iter().map(|a| if a.contains('.') { files.text(a) } else { a.to_string() });
        run(["litmus".to_string(), "--timeout".into(), "300ms".into()].into_iter().chain(arguments)).status
    };
    assert_eq!(status(&["b/allowed.litmus"]), 0);
    assert_eq!(status(&["--model", "sc", "b/allowed.litmus"]), 1);
    assert_eq!(status(&["--model", "all", "b/allowed.litmus"]), 1);
    assert_eq!(status(&["sb.fw"]), 1);
    assert_eq!(status(&["--model", "sc", "sb.fw"]), 0);
    assert_eq!(status(&["diverging.litmus"]), 3);
    assert_eq!(status(&["diverging.litmus", "b/deep/forbidden.litmus"]), 1);
    assert_eq!(status(&["wrong.litmus", "b/allowed.litmus"]), 2);
    assert_eq!(status(&["silent.litmus"]), 2);
    assert_eq!(status(&["safe.fw"]), 2);
    assert_eq!(status(&["missing.litmus"]), 2);
}

#[test]
fn what_is_not_decided_says_why() {
    let files = files();
    let outcome = run(["litmus", "--json", "--timeout", "0.3s", &files.text("diverging.litmus")]);
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    assert!(array[0]["holds"].is_null(), "{array}");
    assert_eq!(array[0]["reason"], "no answer within 0.300 s");
}

#[test]
fn a_directory_without_tests_is_an_error() {
    let files = Files::new(&[("notes.txt", "nothing")]);
    let outcome = run(["litmus", "--json", &files.text(".")]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, "[]\n"));
    assert!(outcome.stderr.contains("there is no .litmus file"), "{outcome:?}");
}

/// 216 x86 tests with known answers.
#[test]
fn the_x86_tests_have_the_known_answers() {
    let Some(corpora) = corpora("the_x86_tests_have_the_known_answers") else { return };
    let directory = corpora.join("litmus-x86");
    let expected = std::fs::read_to_string(directory.join("expected.csv")).expect("the known answers");
    let start = Instant::now();
    let outcome = run([
        "litmus".as_ref(),
        "--model".as_ref(),
        "tso".as_ref(),
        "--json".as_ref(),
        directory.as_os_str(),
    ]);
    let elapsed = start.elapsed();
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let array = array.as_array().expect("an array");
    let mut checked = 0;
    for line in expected.lines().skip(1) {
        let (test, holds) = line.rsplit_once(',').expect("test,holds");
        let is_test = |o: &&Value| o["file"].as_str().is_some_and(|f| f.ends_with(&format!("/{test}")));
        let found = array.iter().find(is_test).unwrap_or_else(|| panic!("{test} is missing"));
        assert_eq!(found["holds"], holds == "1", "{test}");
        checked += 1;
    }
    assert_eq!((checked, array.len()), (216, 216));
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}
