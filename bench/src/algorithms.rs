//! Runs the command on algorithms from outside this project, and reports answers, engines and times.
//!
//! The folder `algorithms` of the corpora has programs and, in `expected.csv`, a row for each choice of constants, with the expected verdict under
//! each memory model. This module runs the real command with its default options on every row, and fails if a verdict is wrong.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fencewright_testing::corpora::VARIABLE;
use serde_json::Value;

use crate::table::print;
use crate::{command, out};

const MODELS: [&str; 3] = ["sc", "tso", "pso"];

/// One run of the command: a program under a memory model, with the expected verdict and the result.
struct Row {
    program: String,
    model: &'static str,
    expected: String,
    verdict: &'static str,
    /// Whether every proof behind a `safe` was checked; always true for `unsafe`.
    checked: bool,
    engines: String,
    wall: Duration,
}

impl Row {
    fn is_wrong(&self) -> bool {
        self.verdict != "unknown" && self.verdict != self.expected
    }

    fn remark(&self) -> &'static str {
        match (self.is_wrong(), self.verdict, self.checked) {
            (true, ..) => "WRONG",
            (_, "unknown", _) => "",
            (_, _, true) => "checked",
            (_, _, false) => "not checked",
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.program.clone(),
            self.model.to_string(),
            self.verdict.to_string(),
            self.remark().to_string(),
            self.engines.clone(),
            format!("{:.2} s", self.wall.as_secs_f64()),
        ]
    }
}

fn ask(
    command: &Path,
    file: &Path,
    defines: &str,
    model: &'static str,
    expected: &str,
) -> Result<Row, String> {
    let mut process = Command::new(command);
    process.args(["check", "--json", "--model", model]);
    defines.split_whitespace().for_each(|define| _ = process.args(["-D", define]));
    let start = Instant::now();
    let output = process.arg(file).output().map_err(|error| format!("{}: {error}", command.display()))?;
    let wall = start.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let has = |verdict: &str| answers.iter().any(|answer| answer["verdict"] == verdict);
    // If one property is violated, the program is unsafe even if other properties have no verdict.
    let verdict = match () {
        () if has("unsafe") => "unsafe",
        () if answers.is_empty() || has("unknown") => "unknown",
        () => "safe",
    };
    let mut engines: Vec<&str> = answers.iter().filter_map(|answer| answer["engine"].as_str()).collect();
    engines.sort_unstable();
    engines.dedup();
    let mut decisive = answers.iter().filter(|answer| answer["verdict"] == verdict);
    let checked = decisive.all(|answer| answer["checked"] == true || verdict == "unsafe");
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Row {
        program: format!("{name} {defines}").trim_end().to_string(),
        model,
        expected: expected.to_string(),
        verdict,
        checked,
        engines: engines.join(", "),
        wall,
    })
}

/// Runs the rows whose program or constants contain one of `parts` (all rows if `parts` is empty) and prints the verdicts. Returns whether none is
/// wrong.
pub fn table(parts: &[String]) -> Result<bool, String> {
    let folder = std::env::var_os(VARIABLE).ok_or_else(|| format!("{VARIABLE} is not set"))?;
    let folder = Path::new(&folder).join("algorithms");
    let path = folder.join("expected.csv");
    let expected = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let command = command()?;
    let mut rows = Vec::new();
    for line in expected.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [file, defines, verdicts @ ..] = &cells[..] else {
            return Err(format!("{}: not a row: {line}", path.display()));
        };
        let label = format!("{file} {defines}");
        if parts.is_empty() || parts.iter().any(|part| label.contains(part.as_str())) {
            for (model, expected) in MODELS.into_iter().zip(verdicts) {
                rows.push(ask(&command, &folder.join(file), defines, model, expected)?);
            }
        }
    }
    print(
        &["program", "model", "verdict", "", "engine", "time"],
        &rows.iter().map(Row::cells).collect::<Vec<_>>(),
    );
    let count = |remark: &str| rows.iter().filter(|row| row.remark() == remark).count();
    out::line(&format!(
        "\n{} questions: {} checked, {} not checked, {} unknown, {} wrong",
        rows.len(),
        count("checked"),
        count("not checked"),
        count(""),
        count("WRONG")
    ));
    Ok(count("WRONG") == 0)
}
