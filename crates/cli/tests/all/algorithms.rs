//! Published algorithms, as their authors wrote them, with default options: every answer is right and has evidence.

use std::fs;
use std::path::Path;

use crate::common::run;
use fencewright_testing::corpora::{corpora, tell_skipped};

/// Rows of `expected.csv` that take more than a second or two under some model. They are checked only with `FENCEWRIGHT_LONG_TESTS`;
/// `fencewright-bench algorithms` measures them.
const SLOW: [&str; 19] = [
    "eisenberg-mcguire.fw,F=0",
    "eisenberg-mcguire.fw,F=1 N=3",
    "filter.fw,F=2 N=4",
    "lycklama.fw,F=2 N=3",
    "qspinlock.fw,N=4",
    "seqlock-writers.fw,W=2 R=2 SF=1",
    "chase-lev-loop.fw,F=0",
    "chase-lev-loop.fw,F=1",
    "chase-lev-loop.fw,F=1 SF=1",
    "treiber-tags.fw,N=3 TAGS=0",
    "treiber-tags.fw,N=3 TAGS=1",
    "treiber-tags.fw,N=3 TAGS=3",
    "left-right.fw,F=2 R=3",
    "double-collect.fw,SF=1 R=2",
    "four-slot.fw,F=0",
    "lamport-craw.fw,SF=1",
    "lamport-craw.fw,SF=1 R=2",
    "tl2.fw,ROUNDS=0 SF=1",
    "chang-roberts.fw,",
];

#[test]
fn algorithms_are_decided_with_evidence() {
    let Some(corpora) = corpora("algorithms_are_decided_with_evidence") else { return };
    let folder = corpora.join("algorithms");
    let Ok(table) = fs::read_to_string(folder.join("expected.csv")) else {
        return tell_skipped(
            "algorithms_are_decided_with_evidence",
            "there are no algorithms among the corpora",
        );
    };
    let all = std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some();
    let mut asked = 0;
    for row in table.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [file, defines, verdicts @ ..] = cells.as_slice() else { panic!("{row}") };
        assert_eq!(verdicts.len(), 3, "{row}");
        let slow = SLOW.contains(&format!("{file},{defines}").as_str());
        for (model, expected) in ["sc", "tso", "pso"].into_iter().zip(verdicts).filter(|_| all || !slow) {
            ask(&folder.join(file), defines, model, expected, slow);
            asked += 1;
        }
    }
    assert!(asked >= 120, "{asked} questions");
}

/// Checks one configuration under one model. With `slow`, the verdict may be unknown, but not wrong.
fn ask(file: &Path, defines: &str, model: &str, expected: &str, slow: bool) {
    let mut arguments = vec!["check", "--json", "--model", model, "--timeout", "60s"];
    defines.split_whitespace().for_each(|define| arguments.extend(["-D", define]));
    let file = file.to_str().expect("a path in UTF-8");
    arguments.push(file);
    let answers = run(&arguments).json_lines();
    let verdicts: Vec<&str> = answers.iter().filter_map(|answer| answer["verdict"].as_str()).collect();
    assert_eq!(verdicts.len(), answers.len(), "{file} {defines} {model}: {answers:?}");
    if slow && !verdicts.contains(&"unsafe") && verdicts.contains(&"unknown") {
        return;
    }
    let found = if verdicts.contains(&"unsafe") { "unsafe" } else { "safe" };
    assert_eq!(found, expected, "{file} {defines} {model}: {answers:?}");
    if slow {
        return;
    }
    if expected == "safe" {
        assert!(!verdicts.contains(&"unknown"), "{file} {defines} {model}: {answers:?}");
    }
    for answer in answers.iter().filter(|answer| answer["verdict"] != "unknown") {
        assert_eq!(answer["checked"], true, "{file} {defines} {model}: {answer}");
    }
}
