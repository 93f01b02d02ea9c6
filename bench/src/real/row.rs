//! Runs the command on one row of a list, and derives an outcome from its JSON output.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::list::Row;
use crate::process::{self, Ended};

/// Maximum number of bytes kept of the standard output, and likewise of the standard error. The output contains an execution for each violated
/// property, which may be long.
const MOST_OUTPUT: u64 = 256 << 20;
/// Grace period: the command is killed if it exceeds its own time limit by this much.
const PATIENCE: Duration = Duration::from_secs(20);

/// The limits of each run.
pub struct Limits {
    /// The time limit passed to the command.
    pub timeout: Duration,
    /// The memory limit passed to the command, in the notation of `--memory`.
    pub memory: String,
}

/// The outcome of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The file does not exist.
    Missing,
    /// The command refused the file: the error message, and the place as `file:line`, or the file alone.
    Refused(String, String),
    /// All properties hold, or some property is violated.
    Decided {
        /// A violated property, and the error or fault at the end of its execution; `None` if all properties hold. A confirmed violation is
        /// preferred.
        violated: Option<String>,
        /// Whether the violation was confirmed or, if there is none, whether all proofs were confirmed.
        checked: bool,
    },
    /// No property is violated, and some property is neither proved nor refuted, for this reason.
    Unknown(String),
    /// There is no usable answer, for this reason: the command was killed, crashed, reported a bug, or printed nothing.
    Failed(String),
}

/// A row with its outcome.
pub struct Ran {
    /// The row of the list.
    pub row: Row,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// Whether the property `assertions` holds; `None` if that is not known.
    pub asserts: Option<bool>,
    /// The wall-clock time of the command.
    pub took: Duration,
}

impl Ran {
    /// The outcome in one word.
    pub fn word(&self) -> &'static str {
        match &self.outcome {
            Outcome::Missing => "missing",
            Outcome::Refused(..) => "refused",
            Outcome::Decided { violated: None, .. } => "safe",
            Outcome::Decided { violated: Some(_), .. } => "unsafe",
            Outcome::Unknown(_) => "unknown",
            Outcome::Failed(_) => "failed",
        }
    }

    /// Whether the file was read as a program.
    pub fn is_read(&self) -> bool {
        matches!(self.outcome, Outcome::Decided { .. } | Outcome::Unknown(_))
    }

    /// Whether the verdict is the expected one; `None` without a verdict or an expectation.
    pub fn is_expected(&self) -> Option<bool> {
        let Outcome::Decided { violated, .. } = &self.outcome else { return None };
        self.row.expected.map(|safe| safe == violated.is_none())
    }

    /// Whether the property `assertions` has the expected verdict, whatever the verdicts on other properties are.
    pub fn is_right_about_asserts(&self) -> bool {
        self.asserts.is_some() && self.asserts == self.row.expected
    }

    /// The reason why the file was refused, why there is no verdict or no answer, or the violation; empty for other outcomes.
    pub fn reason(&self) -> &str {
        match &self.outcome {
            Outcome::Missing | Outcome::Decided { violated: None, .. } => "",
            Outcome::Decided { violated: Some(why), .. } => why,
            Outcome::Refused(why, _) | Outcome::Unknown(why) | Outcome::Failed(why) => why,
        }
    }
}

/// Runs the command on a row.
pub fn run(command: &Path, row: &Row, extra: &[String], limits: &Limits, repositories: &Path) -> Ran {
    if !row.file.is_file() {
        return Ran { row: row.clone(), outcome: Outcome::Missing, asserts: None, took: Duration::ZERO };
    }
    let mut process = Command::new(command);
    process.args(["check", "--json", "--model", &row.model, "--memory", &limits.memory]);
    process.args(["--timeout", &format!("{}ms", limits.timeout.as_millis())]);
    process.args(&row.arguments).args(extra).arg(&row.file);
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ((outcome, asserts), took) =
        match process::run(&mut process, limits.timeout + PATIENCE, MOST_OUTPUT, None) {
            Ok(ended) => {
                // The folder of the checkouts differs from machine to machine, and messages name files in it.
                let folder = format!("{}/", repositories.display());
                (outcome(&ended, &|text| text.replace(&folder, "")), ended.took)
            }
            Err(error) => ((Outcome::Failed(error.to_string()), None), Duration::ZERO),
        };
    Ran { row: row.clone(), outcome, asserts, took }
}

/// The outcome that the exit status and the outputs of the command imply, and whether the property `assertions` holds if the command ended in order.
/// `shown` is applied to all texts that are kept.
fn outcome(ended: &Ended, shown: &dyn Fn(&str) -> String) -> (Outcome, Option<bool>) {
    let text = String::from_utf8_lossy(&ended.output);
    let answers: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let outcome = of_answers(&answers, ended, shown);
    let asserts = match (&outcome, last(&answers).get("assertions")) {
        (Outcome::Decided { .. } | Outcome::Unknown(_), Some(answer)) => match answer["verdict"].as_str() {
            Some("safe") => Some(true),
            Some("unsafe") => Some(false),
            _ => None,
        },
        _ => None,
    };
    (outcome, asserts)
}

/// The last answer about each property. A second answer is given only if it contradicts the first one, which then no longer counts.
fn last(answers: &[Value]) -> BTreeMap<&str, &Value> {
    answers.iter().filter_map(|answer| Some((answer["property"].as_str()?, answer))).collect()
}

fn of_answers(answers: &[Value], ended: &Ended, shown: &dyn Fn(&str) -> String) -> Outcome {
    let Some(status) = ended.status else {
        return Outcome::Failed("killed: far beyond its time limit".into());
    };
    if let Some(bug) = answers.iter().find(|answer| !answer["bug"].is_null()) {
        return Outcome::Failed(shown(bug["error"].as_str().unwrap_or("a bug")));
    }
    if !status.code().is_some_and(|code| (0..=3).contains(&code)) {
        return Outcome::Failed(status.to_string());
    }
    if let Some(error) = answers.iter().find(|answer| answer["error"].is_string()) {
        let file = error["included_file"].as_str().or(error["file"].as_str()).unwrap_or_default();
        let place = match error["line"].as_u64() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        };
        return Outcome::Refused(shown(error["error"].as_str().unwrap_or_default()), shown(&place));
    }
    let last = last(answers);
    let with = |verdict: &str| {
        last.values().copied().filter(|answer| answer["verdict"] == verdict).collect::<Vec<_>>()
    };
    let (violated, unknown, safe) = (with("unsafe"), with("unknown"), with("safe"));
    let is_checked = |answer: &&Value| answer["checked"] == true;
    if let Some(answer) = violated.iter().find(|answer| is_checked(answer)).or(violated.first()) {
        return Outcome::Decided { violated: Some(shown(&violation(answer))), checked: is_checked(answer) };
    }
    match unknown.first() {
        Some(answer) => Outcome::Unknown(shown(answer["reason"].as_str().unwrap_or_default())),
        None if safe.is_empty() => {
            let errors = String::from_utf8_lossy(&ended.errors);
            let first = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("it prints no answer");
            Outcome::Failed(shown(first))
        }
        None => Outcome::Decided { violated: None, checked: safe.iter().all(is_checked) },
    }
}

/// The name of the violated property and, if known, the error or fault at the end of the execution.
fn violation(answer: &Value) -> String {
    let property = answer["property"].as_str().unwrap_or_default();
    let last = answer["trace"].as_array().and_then(|steps| steps.last()).unwrap_or(&Value::Null);
    let how = [&answer["mistake"]["message"], &last["text"], &last["fault"]];
    match how.iter().find_map(|how| how.as_str()) {
        Some(how) => format!("{property}: {how}"),
        None => property.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn said(status: Option<i32>, output: &str) -> Outcome {
        told(status, output).0
    }

    fn told(status: Option<i32>, output: &str) -> (Outcome, Option<bool>) {
        let status = status.map(ExitStatus::from_raw);
        let ended = Ended {
            status,
            took: Duration::ZERO,
            output: output.into(),
            errors: b"\nno such option\n".to_vec(),
        };
        outcome(&ended, &|text| text.replace("/r/", ""))
    }

    #[test]
    fn the_verdict_on_assertions_counts_beside_others() {
        let answer = |property: &str, verdict: &str| {
            format!("{{\"property\":\"{property}\",\"verdict\":\"{verdict}\",\"checked\":true}}\n")
        };
        let asserts = |status: i32, output: String| told(Some(status << 8), &output).1;
        assert_eq!(asserts(1, answer("assertions", "safe") + &answer("memory", "unsafe")), Some(true));
        assert_eq!(asserts(1, answer("assertions", "unsafe") + &answer("memory", "safe")), Some(false));
        assert_eq!(asserts(3, answer("assertions", "unknown") + &answer("memory", "safe")), None);
        assert_eq!(asserts(1, answer("memory", "unsafe")), None);
        // The answers of a command that crashed do not count.
        assert_eq!(told(Some(6), &answer("assertions", "safe")).1, None);
    }

    #[test]
    fn outputs_become_outcomes() {
        let safe = |property: &str, checked: bool| {
            format!("{{\"property\":\"{property}\",\"verdict\":\"safe\",\"checked\":{checked}}}\n")
        };
        let unknown = "{\"property\":\"b\",\"verdict\":\"unknown\",\"reason\":\"time\",\"checked\":null}\n";
        let violated = "{\"property\":\"c\",\"verdict\":\"unsafe\",\"checked\":true,\"trace\":[{\"fault\":null},{\"fault\":\"assertion failed\",\"text\":null}]}\n";
        let decided = |violated: Option<&str>, checked| Outcome::Decided {
            violated: violated.map(str::to_string),
            checked,
        };
        assert_eq!(said(Some(0), &(safe("a", true) + &safe("b", true))), decided(None, true));
        assert_eq!(said(Some(0), &(safe("a", true) + &safe("b", false))), decided(None, false));
        assert_eq!(said(Some(3 << 8), &(safe("a", true) + unknown)), Outcome::Unknown("time".into()));
        // A violation counts although another property has no verdict; a contradicted answer does not count.
        assert_eq!(
            said(Some(1 << 8), &(unknown.to_string() + violated)),
            decided(Some("c: assertion failed"), true)
        );
        assert_eq!(said(Some(3 << 8), &(safe("b", true) + unknown)), Outcome::Unknown("time".into()));
        let error = "{\"file\":\"/r/a.c\",\"error\":\"no `x` in /r/b.h\",\"line\":7,\"column\":1,\"included_file\":\"/r/b.h\"}";
        assert_eq!(said(Some(2 << 8), error), Outcome::Refused("no `x` in b.h".into(), "b.h:7".into()));
        // The answers of a command that crashed do not count, and a command without answers has no verdict.
        assert_eq!(said(Some(6), &safe("a", true)), Outcome::Failed("signal: 6 (SIGABRT)".into()));
        let bug = safe("a", true) + "{\"error\":\"this is a bug in fencewright: index\",\"bug\":{}}";
        assert_eq!(said(Some(2 << 8), &bug), Outcome::Failed("this is a bug in fencewright: index".into()));
        assert_eq!(said(Some(2 << 8), ""), Outcome::Failed("no such option".into()));
        assert!(matches!(said(None, &safe("a", true)), Outcome::Failed(_)));
    }
}
