//! Measures how far the command exceeds its limits, on hard programs in every mode.
//!
//! Each run is a process of the real command, whose time and peak memory are measured. If a run is late, other processes may have disturbed it, so
//! it is repeated, and the best repetition counts.
//!
//! With `--gaps`, the command also reports the places where a thread computes for a long time without checking its limits, which is the usual cause
//! of delays. Gaps are measured in processor time, which other processes hardly influence.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencewright_generate::automata::{intersection, random_automata};
use fencewright_generate::bakery::bakery;
use fencewright_generate::lossy::{channel, random_lossy};
use fencewright_testing::hard;
use fencewright_testing::measure::{Measured, measure_with};

use crate::table::print;
use crate::{command, out};

/// The time by which a run may exceed its time limit.
const MOST_TIME: Duration = Duration::from_millis(300);
/// The number of bytes by which a run may exceed its memory limit.
const MOST_MEMORY: u64 = 64 << 20;

/// The limits with which each program is run: milliseconds, and MiB.
const SETTINGS: [(u64, u64); 2] = [(100, 256), (1000, 64)];

/// A run that exceeds its time limit by this much is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of repetitions of a run that exceeds its time limit by more than the tolerance.
const REPETITIONS: usize = 2;

/// Number of runs in each list of the worst ones; if more runs exceed the tolerance, all of these are listed.
const SHOWN: usize = 20;

/// The modes of the command, with their arguments.
const MODES: [(&str, &[&str]); 18] = [
    ("auto", &["check"]),
    ("explicit", &["check", "--engine", "explicit"]),
    ("explicit dfs", &["check", "--engine", "explicit", "--search", "dfs"]),
    ("cegar zones", &["check", "--engine", "cegar"]),
    ("cegar predicates", &["check", "--engine", "cegar", "--domain", "predicates"]),
    ("cegar order", &["check", "--engine", "cegar", "--domain", "order"]),
    ("lazy", &["check", "--engine", "lazy"]),
    ("contexts", &["check", "--engine", "contexts"]),
    ("extrapolate", &["check", "--engine", "extrapolate"]),
    ("pso", &["check", "--model", "pso"]),
    ("sc", &["check", "--model", "sc"]),
    ("robust", &["robust"]),
    ("robust all", &["robust", "--all"]),
    ("triangular", &["robust", "--notion", "triangular"]),
    ("fences", &["fences"]),
    ("fences robustness", &["fences", "--goal", "robustness"]),
    ("fences audit", &["fences", "--audit"]),
    ("show extended", &["show", "--extended"]),
];

/// A hard program: its name, its text, the file extension of its format, and values for its constants.
struct Hard {
    name: &'static str,
    text: String,
    format: &'static str,
    defines: &'static [&'static str],
}

fn generated(name: &'static str, text: String) -> Hard {
    Hard { name, text, format: "fw", defines: &[] }
}

fn example(name: &'static str, file: &str, defines: &'static [&'static str]) -> Hard {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Hard { name, text, format: "fw", defines }
}

/// An example converted to another format by `convert`.
fn converted(name: &'static str, file: &str, format: &'static str, command: &Path) -> Hard {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
    let output = Command::new(command).args(["convert", "--to", format]).arg(&path).output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", command.display()));
    assert!(output.status.success(), "{file} as {format}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("programs are text");
    let format = if format == "trencher" { "txt" } else { format };
    Hard { name, text, format, defines: &[] }
}

fn programs(command: &Path) -> Vec<Hard> {
    vec![
        generated("200,000 registers", hard::registers(200_000)),
        generated("5,000 live registers", hard::live_registers(5_000)),
        generated("long threads", hard::long_threads(20_000)),
        generated("long threads, shorter", hard::long_threads(600)),
        generated("long loop", hard::long_loop(2_000)),
        generated("4,096 variables", hard::cells(4_096)),
        generated("4,096 cells, computed", hard::computed_indices(4_096)),
        generated("4,000 cells in long threads", hard::long_array(4_000, 100_000)),
        generated("64 cells, computed", hard::computed_indices(64)),
        generated("250 threads", hard::threads(250)),
        generated("expressions", hard::expressions(60, 200)),
        generated("wide choices", hard::wide_choices(100_000)),
        generated("wide choices, narrower", hard::wide_choices(2_000)),
        generated("faulting blocks", hard::faulting_blocks(6, 6)),
        generated("many faulting blocks", hard::faulting_blocks(200, 3)),
        generated("counters", hard::counters(2)),
        generated("more counters", hard::counters(5)),
        generated("2,000 properties", hard::properties(2_000)),
        generated("long for", hard::long_for(3_000)),
        generated("labels and jumps", hard::jumps(2_000)),
        generated("long execution", hard::long_execution(400_000)),
        generated("products", hard::products(3)),
        generated("unknown cells", hard::unknown_cells(40)),
        generated("queue", hard::queue(3, 4)),
        generated("generated bakery", bakery(6, true)),
        generated("automata", intersection(&random_automata(1, 8, 16, 8), 8)),
        generated("lossy channel", channel(&random_lossy(3, 40, 6, 6, 120))),
        Hard { name: "litmus", text: hard::litmus(8, 24), format: "litmus", defines: &[] },
        example("treiber stack 64", "treiber-stack.fw", &["N=64"]),
        example("treiber stack 8", "treiber-stack.fw", &["N=8"]),
        example("bakery 4", "bakery.fw", &["N=4"]),
        example("ticket lock 6", "ticket-lock.fw", &["N=6"]),
        example("fenced bakery 5", "bakery.fenced.fw", &["N=5"]),
        example("philosophers 40", "philosophers.fw", &["N=40"]),
        example("dijkstra 5", "dijkstra.fw", &["N=5"]),
        converted("rmm", "szymanski.fw", "rmm", command),
        converted("trencher", "lamport-fast.fw", "trencher", command),
    ]
}

/// One run with its limits and measurements.
struct Row {
    program: &'static str,
    mode: &'static str,
    time: Duration,
    memory: u64,
    measured: Measured,
    /// Whether the command reported a panic; it then ends with the status of a refusal.
    panicked: bool,
    gaps: Vec<Gap>,
}

/// A period without a check of the limits, and the places of the checks before and after it.
struct Gap {
    milliseconds: u64,
    places: [String; 2],
}

impl Gap {
    /// Parses the gaps that a command has written to its standard error, one per line.
    fn all(errors: &str) -> Vec<Gap> {
        let gap = |line: &str| {
            let mut columns = line.strip_prefix("gap\t")?.split('\t');
            let milliseconds = columns.next()?.parse().ok()?;
            Some(Gap { milliseconds, places: [columns.next()?.into(), columns.next()?.into()] })
        };
        errors.lines().filter_map(gap).collect()
    }
}

impl Row {
    /// The delay beyond the time limit, in wall-clock or processor time, whichever is shorter.
    fn late(&self) -> Duration {
        self.measured.wall.min(self.measured.computed).saturating_sub(self.time)
    }

    fn excess(&self) -> u64 {
        self.measured.peak.saturating_sub(self.memory)
    }

    fn is_over(&self) -> bool {
        self.late() > MOST_TIME || self.excess() > MOST_MEMORY || self.is_crash()
    }

    /// Whether the command panicked, or ended with none of the statuses for verdicts, `unknown` and refusals: by a signal, for example.
    fn is_crash(&self) -> bool {
        self.panicked || !self.measured.status.code().is_some_and(|code| (0..=3).contains(&code))
    }

    fn cells(&self) -> Vec<String> {
        let mib = |bytes: u64| format!("{:.0}", bytes as f64 / 1048576.0);
        vec![
            self.program.to_string(),
            self.mode.to_string(),
            format!("{} ms, {} M", self.time.as_millis(), mib(self.memory)),
            format!("{:.2} s", self.late().as_secs_f64()),
            format!("{:.2} s", self.measured.wall.as_secs_f64()),
            format!("{:.2} s", self.measured.computed.as_secs_f64()),
            format!("{} MiB", mib(self.measured.peak)),
            if self.is_crash() {
                "crash"
            } else if self.is_over() {
                "over"
            } else {
                ""
            }
            .to_string(),
        ]
    }
}

fn run(
    command: &Path,
    file: &Path,
    hard: &Hard,
    mode: (&'static str, &[&str]),
    setting: (u64, u64),
    gaps: Option<u64>,
) -> Row {
    let (time, memory) = (Duration::from_millis(setting.0), setting.1 << 20);
    let once = || {
        let errors = file.with_extension("errors");
        let mut process = Command::new(command);
        process.args(mode.1).args(["--timeout", &format!("{}ms", setting.0)]);
        process.args(["--memory", &format!("{}M", setting.1)]);
        hard.defines.iter().for_each(|define| _ = process.args(["-D", define]));
        gaps.iter().for_each(|most| _ = process.env("FENCEWRIGHT_GAPS", most.to_string()));
        let told = std::fs::File::create(&errors).map_or_else(|_| Stdio::null(), Stdio::from);
        let measured = measure_with(process.arg(file), time + PATIENCE, told);
        let measured = measured.unwrap_or_else(|e| panic!("{}: {e}", command.display()));
        let told = std::fs::read_to_string(&errors).unwrap_or_default();
        let (panicked, gaps) = (told.contains("this is a bug in fencewright"), Gap::all(&told));
        Row { program: hard.name, mode: mode.0, time, memory, measured, panicked, gaps }
    };
    let mut best = once();
    for _ in 0..REPETITIONS {
        // Only runs with a moderate delay are repeated: other processes influence neither memory use nor whether a delay is very long.
        if best.late() <= MOST_TIME || best.late() > 20 * MOST_TIME {
            break;
        }
        let again = once();
        if again.late() < best.late() {
            best = again;
        }
    }
    best
}

/// Prints the longest gap between each pair of places, with the run in which it occurred.
fn print_gaps(rows: &[Row]) {
    let mut longest: BTreeMap<&[String; 2], (u64, usize, &Row)> = BTreeMap::new();
    for row in rows {
        for gap in &row.gaps {
            let known = longest.entry(&gap.places).or_insert((0, 0, row));
            known.1 += 1;
            if gap.milliseconds > known.0 {
                (known.0, known.2) = (gap.milliseconds, row);
            }
        }
    }
    let mut longest: Vec<_> = longest.into_iter().collect();
    longest.sort_by_key(|(_, (milliseconds, ..))| std::cmp::Reverse(*milliseconds));
    let cells = longest.into_iter().map(|([from, to], (milliseconds, times, row))| {
        let run = format!("{}/{}", row.program, row.mode);
        vec![format!("{milliseconds} ms"), times.to_string(), from.clone(), to.clone(), run]
    });
    out::line("The longest gaps between two looks at the limits, in processor time:\n");
    print(&["longest", "times", "from", "to", "run"], &cells.collect::<Vec<_>>());
    out::line("");
}

/// Runs the programs and modes whose names contain one of `parts` (all if `parts` is empty) and prints the worst runs. Returns whether none exceeds
/// the tolerance or crashes. If `gaps` is given, gaps that are longer than that many milliseconds are printed too.
pub fn table(parts: &[String], gaps: Option<u64>) -> Result<bool, String> {
    let command = command()?;
    let folder = tempfile::tempdir().expect("a folder for the programs");
    let mut rows: Vec<Row> = Vec::new();
    for (n, hard) in programs(&command).iter().enumerate() {
        let file = folder.path().join(format!("{n}.{}", hard.format));
        std::fs::write(&file, &hard.text).expect("the folder can be written to");
        for (name, arguments) in MODES {
            let label = format!("{}/{name}", hard.name);
            if !parts.is_empty() && !parts.iter().any(|part| label.contains(part.as_str())) {
                continue;
            }
            for setting in SETTINGS {
                rows.push(run(&command, &file, hard, (name, arguments), setting, gaps));
            }
        }
    }
    let over = rows.iter().filter(|row| row.is_over()).count();
    let latest = rows.iter().map(Row::late).max().unwrap_or_default();
    let largest = rows.iter().map(Row::excess).max().unwrap_or_default();
    let header = ["program", "mode", "limits", "late", "ran", "computed", "peak", ""];
    let worst = |key: &dyn Fn(&Row) -> u64, rows: &mut Vec<Row>| {
        rows.sort_by_key(|row| std::cmp::Reverse(key(row)));
        let over = rows.iter().filter(|row| row.is_over()).count();
        print(&header, &rows.iter().take(SHOWN.max(over)).map(Row::cells).collect::<Vec<_>>());
        out::line("");
    };
    out::line("\nThe runs that went furthest beyond their time:\n");
    worst(&|row| row.late().as_micros() as u64, &mut rows);
    out::line("The runs that went furthest beyond their memory:\n");
    worst(&Row::excess, &mut rows);
    if gaps.is_some() {
        print_gaps(&rows);
    }
    out::line(&format!(
        "{} runs, {over} over the bar; the worst {:.2} s late, {} MiB too large",
        rows.len(),
        latest.as_secs_f64(),
        largest >> 20
    ));
    Ok(over == 0)
}
