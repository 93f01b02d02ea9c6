//! THESIS16 s.5.2.2: partial order reductions against each other, on the Indexer (Fig. 5.13) and on the programs of Fig. 5.9 (Fig. 5.14). The data of these
//! plots are lost.

use std::time::{Duration, Instant};

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Checked, Checks, Confirm, Limits, Progress, Task, Verdict, check_each};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::programs::example;
use crate::robustness::of_table;
use crate::table::print;

/// The reductions, with what they count: states, or for dynamic reduction executions.
const REDUCTIONS: [(&str, Reduction); 7] = [
    ("none", Reduction::None),
    ("local", Reduction::Local),
    ("ample", Reduction::Ample),
    ("persistent", Reduction::Persistent),
    ("sleep", Reduction::Sleep),
    ("cartesian", Reduction::Cartesian),
    ("executions", Reduction::Dynamic),
];

/// So long for each run.
const LIMIT: Duration = Duration::from_secs(10);

/// Everything that a program can do under a model, as far as that is possible within the limit, and how many milliseconds it takes.
fn explored(program: &Program, model: MemoryModel, reduction: Reduction) -> (Checks, f64) {
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(LIMIT), Some(4 << 30), Default::default());
    let options = Options { reduction, order: Order::DepthFirst, ..Options::default() };
    let start = Instant::now();
    let (engine, progress) = (Explicit { options }, Progress::default());
    let checks = check_each(&engine, &task, &limits, &progress, Confirm::NOTHING, &mut |_, _| {});
    (checks, start.elapsed().as_secs_f64() * 1e3)
}

/// What a run explored: states or executions; a dash if that was not everything.
fn size(checks: &Checks, ms: f64) -> String {
    let unknown = |v: &Checked| matches!(v.verdict(), Verdict::Unknown(_));
    let executions = checks.statistics.executions;
    let cut = executions.is_some_and(|executions| executions.cut > 0);
    if cut || ms >= LIMIT.as_secs_f64() * 1e3 || checks.verdicts.iter().any(unknown) {
        return "-".into();
    }
    grouped(executions.map_or(checks.statistics.states, |e| e.complete + e.blocked))
}

/// Both tables.
pub fn tables() {
    println!(
        "Fig. 5.13: the Indexer under SC, states (dynamic reduction: executions) and milliseconds; -: not within {} s\n",
        LIMIT.as_secs()
    );
    let mut rows = Vec::new();
    for n in [2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16] {
        let program = example("indexer.fw", &[("N", n)]);
        let mut row = vec![n.to_string()];
        for (_, reduction) in REDUCTIONS {
            // More threads only take longer, and what does not end with six does not end with eight.
            if n > 6 && reduction != Reduction::Dynamic {
                row.extend(["".to_string(), "".to_string()]);
                continue;
            }
            let (checks, ms) = explored(&program, MemoryModel::Sc, reduction);
            row.extend([size(&checks, ms), format!("{ms:.0}")]);
        }
        rows.push(row);
    }
    print(&header("N"), &rows);

    println!(
        "\nFig. 5.14: the programs of Fig. 5.9 under SC, everything they can do; dynamic reduction is for executions that end\n"
    );
    let files = ["dekker.txt", "peterson.txt", "lamport-fast-mutex-alg1.txt", "clh-lock.txt", "mcs-lock.txt"];
    let more = ["cilk-the-wsq-wrongdoing.txt", "cilk-the-wsq.txt", "treiber-stack.fw"];
    let mut rows = Vec::new();
    for file in files.into_iter().chain(more) {
        let Some(placed) = of_table(file) else { continue };
        let mut row = vec![file.to_string()];
        for (_, reduction) in REDUCTIONS {
            let (checks, ms) = explored(&placed.program, MemoryModel::Sc, reduction);
            row.extend([size(&checks, ms), format!("{ms:.0}")]);
        }
        rows.push(row);
    }
    print(&header("program"), &rows);
}

fn header(first: &'static str) -> Vec<&'static str> {
    let columns = REDUCTIONS.iter().flat_map(|(name, _)| [*name, "ms"]);
    std::iter::once(first).chain(columns).collect()
}
