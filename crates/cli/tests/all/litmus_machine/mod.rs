//! Random litmus tests, compared with a second interpreter of x86 that shares no code with the tool: registers have 64 bits, flags are computed from
//! bits, and stores wait in a buffer.

mod generate;
mod machine;
mod program;

use std::collections::BTreeSet;

use crate::common::*;
use generate::{Random, generate};
use machine::final_states;
use program::{Program, text};
use serde_json::Value;

#[test]
fn random_tests_have_the_final_states_of_the_machine() {
    let long = std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some();
    let count = if long { 30_000 } else { 3_000 };
    let mut random = Random { choices: fencewright_testing::Random::new(1), small: false, back: false };
    let programs: Vec<Program> = (0..count).map(|_| generate(&mut random)).collect();
    let texts: Vec<(String, String)> = programs
        .iter()
        .enumerate()
        .map(|(n, p)| (format!("{n:06}.litmus"), text(p, &format!("t{n}"))))
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    let files = Files::new(&texts);
    let outcome = run(["litmus", "--json", "--timeout", "200ms", &files.text(".")]);
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let array = array.as_array().expect("an array");
    assert_eq!(array.len(), programs.len());
    let (mut compared, mut several) = (0, 0);
    for ((program, (_, text)), answer) in programs.iter().zip(&texts).zip(array) {
        assert!(answer["error"].is_null(), "{}\n{text}", answer["error"]);
        let Some(expected) = final_states(program) else { continue };
        if let Some(reason) = answer["reason"].as_str() {
            // The tool has no answer if values exceed 64 bits, because they do not wrap around, or if a loop does not end.
            let known = ["64 bits", "no answer within", "when the condition was decided"];
            assert!(known.iter().any(|k| reason.contains(k)), "{reason}\n{text}");
            continue;
        }
        let found: BTreeSet<(String, bool)> = answer["final_states"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|state| {
                let values = state["values"].as_object().expect("an object").iter();
                let text: String = values.map(|(name, value)| format!("{name}={value} ")).collect();
                (text, state["satisfies"].as_bool().expect("decided"))
            })
            .collect();
        assert_eq!(found, expected, "{text}");
        compared += 1;
        several += (found.len() > 1) as usize;
    }
    println!("compared {compared} of {count}, {several} with several final states");
    assert!(several * 10 >= count, "only {several} of {count} have several final states");
    assert!(compared * 10 >= count * 8, "only {compared} of {count} have an answer");
}
