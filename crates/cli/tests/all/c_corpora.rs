//! C programs by other authors, with default options: every answer is right, and none is `unknown`.

use std::fs;
use std::path::Path;

use crate::common::run;
use fencewright_testing::corpora::{corpora, tell_skipped};

/// Programs that take more than a second or two.
const SLOW: [&str; 2] = ["cna.c", "dglm.c"];

/// Programs that follow pointers to freed memory. Their published verdicts are for allocators that never reuse freed memory.
const NEW_MEMORY_ONLY: [&str; 1] = ["dglm.c"];

/// The folder of a corpus and the rows of its table without the header; `None` if the corpus is missing.
fn rows(test: &str, corpus: &str) -> Option<(std::path::PathBuf, Vec<Vec<String>>)> {
    let folder = corpora(test)?.join(corpus);
    let Ok(table) = fs::read_to_string(folder.join("expected.csv")) else {
        tell_skipped(test, &format!("there is no {corpus} among the corpora"));
        return None;
    };
    let cells = |row: &str| row.split(',').map(str::to_owned).collect();
    Some((folder, table.lines().skip(1).map(cells).collect()))
}

fn is_long() -> bool {
    std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some()
}

/// Checks the verdict on the assertions of a program. An empty `expected` allows any verdict but `unknown`.
fn ask(file: &Path, defines: &str, model: &str, expected: &str) {
    let mut arguments =
        vec!["check", "--json", "--model", model, "--timeout", "60s", "--property", "assertions"];
    if file.file_name().is_some_and(|name| NEW_MEMORY_ONLY.iter().any(|only| name == *only)) {
        arguments.push("--no-reuse");
    }
    defines.split_whitespace().for_each(|define| arguments.extend(["-D", define]));
    arguments.push(file.to_str().expect("a path in UTF-8"));
    let outcome = run(&arguments);
    let answers = outcome.json_lines();
    let [answer] = answers.as_slice() else { panic!("{arguments:?}: {outcome:?}") };
    let verdict = answer["verdict"].as_str().unwrap_or_default();
    match expected {
        "" => assert!(["safe", "unsafe"].contains(&verdict), "{arguments:?}: {answer}"),
        _ => assert_eq!(verdict, expected, "{arguments:?}: {answer}"),
    }
}

#[test]
fn litmus_tests_in_c() {
    let Some((folder, rows)) = rows("litmus_tests_in_c", "c-litmus") else { return };
    let one_in = if is_long() { 1 } else { 8 };
    for row in rows.iter().step_by(one_in) {
        let [file, verdicts @ ..] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!(verdicts.len(), 3, "{row:?}");
        for (model, expected) in ["sc", "tso", "pso"].into_iter().zip(verdicts) {
            ask(&folder.join(file), "", model, expected);
        }
    }
    assert!(rows.len() >= 165, "{}", rows.len());
}

#[test]
fn programs_in_c() {
    let Some((folder, rows)) = rows("programs_in_c", "c-programs") else { return };
    for row in &rows {
        let [file, defines, tso, pso, _] = row.as_slice() else { panic!("{row:?}") };
        if is_long() || !SLOW.contains(&file.as_str()) {
            ask(&folder.join(file), defines, "tso", tso);
            ask(&folder.join(file), defines, "pso", pso);
        }
    }
    assert!(rows.len() >= 31, "{}", rows.len());
}
