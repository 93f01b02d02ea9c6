//! Every partial order reduction has the same verdicts as search without reduction, if the latter finishes: on all examples, and on the corpora of
//! other tools if they are installed.
//!
//! A normal run uses the programs on which search without reduction finishes within four mebibytes. With `FENCEWRIGHT_LONG_TESTS=1`, the limit is a
//! gibibyte, and a table shows the number of states that each reduction explored.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::repository;
use fencewright::engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright::engines::{Checks, Confirm, Limits, Progress, Task, Verdict, check_each};
use fencewright::lang::load;
use fencewright::program::{MemoryModel, Program, Property};
use fencewright_testing::corpora::corpora;
use toml::Value;

/// The limits of a run.
struct Effort {
    /// Memory limit in bytes for the search without reduction. A reduced search may use more: sleep sets need memory, and with reduction `local` the
    /// preferred thread is a part of states.
    bytes: u64,
    /// Time limit for exploring executions one by one, of which there may be too many.
    dynamic: Duration,
    /// Whether a table is printed.
    table: bool,
}

impl Effort {
    fn new() -> Self {
        match std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() {
            true => Effort { bytes: 1 << 30, dynamic: Duration::from_secs(5), table: true },
            false => Effort { bytes: 4 << 20, dynamic: Duration::from_millis(20), table: false },
        }
    }
}

/// A program with the properties to check, and a name for both.
struct Question {
    name: String,
    program: Program,
    properties: Vec<Property>,
}

fn search(task: &Task<'_>, options: Options, time: Option<Duration>, bytes: u64) -> Checks {
    let limits = Limits::starting_now(time, Some(bytes), Default::default());
    let (engine, progress) = (Explicit { options }, Progress::default());
    check_each(&engine, task, &limits, &progress, Confirm::NOTHING, &mut |_, _| {})
}

/// The verdicts, one letter each.
fn letters(checks: &Checks) -> String {
    let letter = |verdict: &Verdict| match verdict {
        Verdict::Safe => 's',
        Verdict::Unsafe => 'u',
        Verdict::Unknown(_) => '?',
    };
    checks.verdicts.iter().map(|checked| letter(checked.verdict())).collect()
}

/// A line of the table.
fn line(name: &str, model: MemoryModel, reduction: &str, checks: &Checks) -> String {
    let statistics = &checks.statistics;
    let (explored, steps) = match statistics.executions() {
        Some(executions) => (executions.complete + executions.blocked + executions.cut, executions.events),
        None => (statistics.states, statistics.transitions().unwrap_or(0)),
    };
    let model = model.name();
    format!("{name:<60} {model:<4} {reduction:<11} {explored:>11} {steps:>12} {}", letters(checks))
}

/// Compares all reductions with search without reduction; returns false if the latter does not finish.
fn compare(question: &Question, model: MemoryModel, order: Order, effort: &Effort) -> bool {
    let Question { name, program, properties } = question;
    let task = Task::new(program, model, properties.clone());
    let options = |reduction| Options { order, reduction, workers: 1, ..Options::default() };
    let none = search(&task, options(Reduction::None), None, effort.bytes);
    let expected = letters(&none);
    let tell = |reduction: Reduction, checks: &Checks| {
        if effort.table {
            println!("{}", line(name, model, &format!("{reduction:?}").to_lowercase(), checks));
        }
    };
    tell(Reduction::None, &none);
    if expected.contains('?') {
        return false;
    }
    // If violations end a search of an infinite state space, a reduced depth-first search may miss them and not terminate.
    let finite = expected.contains('s') || order == Order::BreadthFirst;
    for reduction in Reduction::ALL.into_iter().filter(|r| *r != Reduction::None) {
        let found = search(&task, options(reduction), None, 8 * effort.bytes);
        tell(reduction, &found);
        let context = || format!("{name}, {model:?}, {order:?}, {reduction:?}");
        for ((plain, reduced), property) in expected.chars().zip(letters(&found).chars()).zip(properties) {
            let same = plain == reduced || (reduced == '?' && !finite);
            assert!(same, "{}, {}: {reduced} instead of {plain}", context(), property.name);
        }
        // With reduction `local`, the preferred thread is a part of states, so there may be more states.
        if !expected.contains('u') && reduction != Reduction::Local {
            let (all, seen) = (none.statistics.states, found.statistics.states);
            assert!(seen <= all, "{}: {seen} of {all} states", context());
        }
    }
    let dynamic = search(&task, options(Reduction::Dynamic), Some(effort.dynamic), 8 * effort.bytes);
    tell(Reduction::Dynamic, &dynamic);
    for ((plain, found), property) in expected.chars().zip(letters(&dynamic).chars()).zip(properties) {
        let context = || format!("{name}, {model:?}, dynamic, {}", property.name);
        assert!(plain == found || found == '?', "{}: {found} instead of {plain}", context());
    }
    true
}

/// Compares the reductions on all questions; returns how many comparisons were complete, and the number of all comparisons.
fn compare_all(questions: &[Question]) -> (usize, usize) {
    let effort = Effort::new();
    let (next, complete) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let models = MemoryModel::ALL.len();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(question) = questions.get(n / models) else { return };
                    let order = [Order::BreadthFirst, Order::DepthFirst][(n / models + n) % 2];
                    let finished = compare(question, MemoryModel::ALL[n % models], order, &effort);
                    complete.fetch_add(usize::from(finished), Ordering::Relaxed);
                }
            });
        }
    });
    (complete.into_inner(), questions.len() * models)
}

/// The questions of `examples/expected.toml`.
fn examples() -> Vec<Question> {
    let directory = repository("examples");
    let text = std::fs::read_to_string(directory.join("expected.toml")).expect("it can be read");
    let table: toml::Table = text.parse().expect("it is TOML");
    let question = |entry: &Value| {
        let file = entry["file"].as_str().expect("a name");
        let constants = entry.get("define").and_then(Value::as_table);
        let constants: Vec<(String, i64)> = constants
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_integer().expect("an integer")))
            .collect();
        let bytes = std::fs::read(directory.join(file)).expect("it can be read");
        let program = load(file, &bytes, None, &constants).expect("it loads").program;
        let mut properties = program.properties.clone();
        properties.push(Property::deadlock());
        let wanted = entry.get("property").and_then(Value::as_str);
        properties.retain(|p| wanted.is_none_or(|wanted| p.name == wanted));
        let constants: String = constants.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        Question { name: format!("{file}{constants} {}", wanted.unwrap_or("")), program, properties }
    };
    table["example"].as_array().expect("examples").iter().map(question).collect()
}

#[test]
fn every_reduction_has_the_verdicts_of_none_on_every_example() {
    let (complete, all) = compare_all(&examples());
    println!("{complete} of {all} questions were decided without reduction");
    assert!(complete * 2 > all, "{complete} of {all}");
}

/// All files below a folder that have one of these extensions.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("it can be read").path();
        match path.is_dir() {
            true => found.extend(files(&path, endings)),
            false if endings.iter().any(|e| path.extension().is_some_and(|x| x == *e)) => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

#[test]
fn every_reduction_has_the_verdicts_of_none_on_the_inputs_of_other_tools() {
    let test = "every_reduction_has_the_verdicts_of_none_on_the_inputs_of_other_tools";
    let Some(folder) = corpora(test) else { return };
    let mut paths = files(&folder, &["rmm", "txt", "fw"]);
    // Takes a selection of the thousands of litmus tests, because most are similar.
    let few = if Effort::new().table { 10 } else { 40 };
    paths.extend(files(&folder, &["litmus"]).into_iter().step_by(few));
    let left_out = Mutex::new(Vec::new());
    let question = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let bytes = std::fs::read(path).expect("it can be read");
        match load(&name, &bytes, None, &[]) {
            Ok(loaded) => {
                let program = loaded.program;
                let mut properties = program.properties.clone();
                properties.push(Property::deadlock());
                Some(Question { name, program, properties })
            }
            // Some texts are not programs, and some use features that the importers do not support.
            Err(_) => {
                left_out.lock().expect("nobody panicked").push(name);
                None
            }
        }
    };
    let questions: Vec<Question> = paths.iter().filter_map(question).collect();
    let (complete, all) = compare_all(&questions);
    println!("{complete} of {all} questions were decided without reduction; left out: {left_out:?}");
    assert!(complete * 3 > all, "{complete} of {all}");
}
