//! THESIS16 s.5.2.2: compares partial order reductions on the Indexer (Fig. 5.13) and on the programs of Fig. 5.9 (Fig. 5.14). The thesis has only
//! plots, whose data are lost.

use std::time::Duration;

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Checked, Checks, Confirm, Progress, Task, Verdict, check_each};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::measurement::Measurement;
use crate::programs::example;
use crate::robustness::{not_measured, of_table};
use crate::run::Run;
use crate::stopwatch::{Stopwatch, Took};

/// The reductions with their names in tables. The name includes the unit if the unit is not states: dynamic reduction counts executions.
const REDUCTIONS: [(&str, Reduction); 7] = [
    ("none", Reduction::None),
    ("local", Reduction::Local),
    ("ample", Reduction::Ample),
    ("persistent", Reduction::Persistent),
    ("sleep", Reduction::Sleep),
    ("cartesian", Reduction::Cartesian),
    ("executions", Reduction::Dynamic),
];

/// Time limit of each run.
const LIMIT: Duration = Duration::from_secs(5);

/// Explores a program under a model until the exploration ends or reaches the time limit, and measures the time.
fn explored(run: &Run, program: &Program, model: MemoryModel, reduction: Reduction) -> (Checks, Took) {
    let task = Task::new(program, model, program.properties.clone());
    let limits = run.limits(LIMIT, Some(4 << 30));
    let options = Options { reduction, order: Order::DepthFirst, ..Options::default() };
    let start = Stopwatch::start();
    let (engine, progress) = (Explicit { options }, Progress::default());
    let checks = check_each(&engine, &task, &limits, &progress, Confirm::NOTHING, &mut |_, _| {});
    (checks, start.took())
}

/// The number of states or executions explored; `None` if the exploration is incomplete.
fn size(run: &Run, checks: &Checks, ms: f64) -> Option<u64> {
    let unknown = |v: &Checked| matches!(v.verdict(), Verdict::Unknown(_));
    let executions = checks.statistics.executions();
    let cut = executions.is_some_and(|executions| executions.cut > 0);
    let late = ms >= run.at_most(LIMIT).as_secs_f64() * 1e3;
    let whole = !cut && !late && !checks.verdicts.iter().any(unknown);
    whole.then(|| executions.map_or(checks.statistics.states, |e| e.complete + e.blocked))
}

/// The table cells of a run: the number of states or executions (a dash if the exploration is incomplete), and the time.
fn cells(
    run: &mut Run,
    label: &str,
    n: Option<i64>,
    program: &Program,
    reduction: (&str, Reduction),
) -> [String; 2] {
    let (name, reduction) = reduction;
    let (checks, took) = explored(run, program, MemoryModel::Sc, reduction);
    let size = size(run, &checks, took.ms());
    let outcome = if size.is_some() { "explored" } else { "unknown: not all of it" };
    let measurement = Measurement::new(label, format!("sc {name}"), outcome, took);
    let measurement = measurement.states(size.unwrap_or(checks.statistics.states));
    run.record(match n {
        Some(n) => measurement.size("indexer.fw", n),
        None => measurement,
    });
    [size.map_or("-".into(), grouped), format!("{:.0}", took.ms())]
}

/// Both tables.
pub fn tables(run: &mut Run) {
    let seconds = run.at_most(LIMIT).as_secs();
    run.say(&format!(
        "Fig. 5.13, whose data are lost: the Indexer under SC, states (dynamic reduction: executions) and milliseconds; -: not within {seconds} s"
    ));
    let mut rows = Vec::new();
    for n in run.some(&[2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16], 5) {
        let program = example("indexer.fw", &[("N", n)]);
        let mut row = vec![n.to_string()];
        for reduction in REDUCTIONS {
            // Only dynamic reduction is run with more threads than this (six, four in a quick run); the others would not finish.
            let few = if run.quick { 4 } else { 6 };
            if n > few && reduction.1 != Reduction::Dynamic {
                row.extend(["".to_string(), "".to_string()]);
                continue;
            }
            row.extend(cells(run, &format!("indexer.fw N={n}"), Some(n), &program, reduction));
        }
        rows.push(row);
    }
    run.table(&header("N"), &rows);

    run.say("Fig. 5.14, whose data are lost: the programs of Fig. 5.9 under SC, everything they can do; dynamic reduction is for executions that end");
    let files = [
        "dekker.txt",
        "peterson.txt",
        "clh-lock.txt",
        "mcs-lock.txt",
        "lamport-fast-mutex-alg1.txt",
        "cilk-the-wsq-wrongdoing.txt",
        "cilk-the-wsq.txt",
        "treiber-stack.fw",
    ];
    let mut rows = Vec::new();
    for file in run.some(&files, 2) {
        let placed = match of_table(file) {
            Ok(placed) => placed,
            Err(why) => {
                rows.push(not_measured(file, &why, header("program").len()));
                continue;
            }
        };
        let mut row = vec![file.to_string()];
        for reduction in REDUCTIONS {
            row.extend(cells(run, file, None, &placed.program, reduction));
        }
        rows.push(row);
    }
    run.table(&header("program"), &rows);
    run.say_few("programs", 2, files.len());
}

fn header(first: &'static str) -> Vec<&'static str> {
    let columns = REDUCTIONS.iter().flat_map(|(name, _)| [*name, "ms"]);
    std::iter::once(first).chain(columns).collect()
}
