//! EXTRA13 Tables 1 and 2: proofs under SC extrapolated to TSO and PSO, beside the numbers of the paper. Each program is verified twice: with fences
//! that suffice for buffer bound k = 1, as in the paper, and with as few fences as possible, for the bound k that these fences require.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencewright_engines::auto::Auto;
use fencewright_engines::extrapolate::{Account, Extrapolate, Method, Options, Record};
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, check};
use fencewright_fences::fenced::Fenced;
use fencewright_fences::{Bounded, Candidate, Safety, Verdict, synthesise};
use fencewright_memory::{Bound, CellBounds};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::measurement::Measurement;
use crate::programs::{example, placed};
use crate::run::Run;
use crate::stopwatch::{Stopwatch, Took};
use crate::thesis::word;

/// The tool of the paper.
pub const CUPEX: &str = "Cupex";

/// The numbers of the paper for a run: predicates, thousands of solver calls, seconds to build the boolean program, cubes used, thousands of states,
/// megabytes, seconds to check. A string is empty if the paper has no number there. `T/O` means that the build took more than ten hours.
type Paper = [&'static str; 7];

/// The numbers for a run that the paper does not have.
const NONE: Paper = [""; 7];

/// The numbers for a run that the authors stopped after ten hours; `predicates` is the number of predicates in this run.
const fn given_up(predicates: &'static str) -> Paper {
    [predicates, "", "T/O", "", "", "", ""]
}

/// The time limit of the paper, in seconds.
const TEN_HOURS: f64 = 36_000.0;

/// An algorithm, its property, its files with as few fences as possible for TSO and PSO, and the numbers of the paper: under SC, and, each with
/// predicates and with cubes, under PSO and under TSO.
#[derive(Clone)]
struct Row {
    name: &'static str,
    property: &'static str,
    fewest: [&'static str; 2],
    sc: Paper,
    pso: [Paper; 2],
    tso: [Paper; 2],
    /// Explains the number of additional predicates at k = 1.
    why: &'static str,
}

/// The two tables of the paper. Table 2 counts only the cubes that were used. For runs with cubes, the numbers of predicates in Table 2 exclude the
/// extrapolated cubes, of which there are 99, 422 and 622.
const TABLES: [Row; 7] = [
    Row {
        name: "dekker",
        property: "mutex",
        fewest: ["dekker.fenced.fw", "dekker.fenced.fw"],
        sc: ["7", "0.7", "0.1", "0", "14", "6", "1"],
        pso: [["20", "26", "6", "0", "80", "31", "5"], NONE],
        tso: [["18", "22", "5", "0", "45", "20", "3"], NONE],
        why: "two predicates on each flag and none on turn, instead of one on each; PSO: as the paper, without `overflow = 0`",
    },
    Row {
        name: "peterson",
        property: "mutex",
        fewest: ["peterson.fenced.fw", "peterson.pso.fw"],
        sc: ["7", "0.6", "0.1", "2", "7", "3", "1"],
        pso: [["20", "15", "3", "2", "31", "13", "3"], NONE],
        tso: [["18", "13", "3", "2", "25", "11", "2"], NONE],
        why: "as the paper, without `overflow = 0`; PSO: the others are on epochs, because one of the fences is an `sfence`",
    },
    Row {
        name: "alternating-bit",
        property: "in_step",
        fewest: ["alternating-bit.fw", "alternating-bit.fw"],
        sc: ["8", "2", "0.5", "5", "0.6", "1", "0.6"],
        pso: [["15", "20", "4", "5", "2", "3", "1"], NONE],
        tso: [["17", "23", "5", "5", "2", "3", "1"], NONE],
        why: "ten inequalities on msg and ack, instead of one equality on each",
    },
    Row {
        name: "szymanski",
        property: "mutex",
        fewest: ["szymanski.fenced.fw", "szymanski.fenced.fw"],
        sc: ["20", "16", "3.3", "1", "12", "6", "2"],
        pso: [["35", "152", "33", "1", "61", "30", "4"], NONE],
        tso: [["37", "165", "35", "1", "61", "31", "5"], NONE],
        why: "five inequalities on flags, instead of ten values",
    },
    Row {
        name: "array-queue",
        property: "in_bounds",
        fewest: ["array-queue.fw", "array-queue.fw"],
        sc: ["7", "20", "5", "50", "1", "2", "1"],
        pso: [["15", "5747", "1475", "412", "1", "4", "1"], ["15", "98", "17", "99", "11", "6", "2"]],
        tso: [["16", "11133", "2778", "412", "12", "4", "1"], ["16", "163", "31", "99", "12", "7", "2"]],
        why: "ours stores to its items too; six predicates on head and tail, instead of three",
    },
    Row {
        name: "bakery",
        property: "mutex",
        fewest: ["bakery.fenced.fw", "bakery.pso.fw"],
        sc: ["15", "1552", "355", "161", "20", "", ""],
        pso: [given_up("38"), ["38", "9018", "1773", "381", "979", "375", "104"]],
        tso: [given_up("36"), ["36", "7048", "1386", "383", "730", "285", "121"]],
        why: "the SC predicates strengthened, and buffered values compared (s. 6.3); PSO: and epochs, because one of the fences is an `sfence`",
    },
    Row {
        name: "ticket-lock",
        property: "mutex",
        fewest: ["ticket-lock.fw", "ticket-lock.fw"],
        sc: ["11", "218", "51", "134", "2", "", ""],
        pso: [given_up("56"), ["56", "15644", "2163", "380", "193", "123", "40"]],
        tso: [given_up("48"), ["48", "6941", "1518", "582", "71", "67", "545"]],
        why: "ours takes tickets with `fetch_add`, so only `serving` is ever buffered",
    },
];

/// The limits of each run: one minute and 4 GiB.
fn limits(run: &Run) -> Limits {
    run.limits(Duration::from_secs(60), Some(4 << 30))
}

/// A run of engine `extrapolate`.
struct Attempt {
    checked: Checked,
    /// The cost of each abstraction; the last one belongs to the proof.
    accounts: Vec<Account>,
    /// The total time: the SC proof, the attempts with all values of k, and the check of the certificate.
    took: Took,
}

impl Attempt {
    fn new(run: &Run, program: &Program, property: &str, model: MemoryModel, method: Method) -> Self {
        let wanted = program.properties.iter().filter(|p| p.name == property).cloned().collect();
        let task = Task::new(program, model, wanted);
        let record = Arc::new(Mutex::new(Record::default()));
        let options = Options { method, record: Some(Arc::clone(&record)), ..Options::default() };
        let start = Stopwatch::start();
        let engine = Extrapolate { options };
        let mut results = check(&engine, &task, &limits(run), &Progress::default(), Confirm::default());
        let took = start.took();
        let checked = results.pop().unwrap_or_else(|| panic!("there is a property {property}"));
        let accounts = record.lock().unwrap_or_else(PoisonError::into_inner).accounts.clone();
        Attempt { checked, accounts, took }
    }

    fn verdict(&self) -> &'static str {
        if self.checked.checked() == Some(true) { "proved" } else { word(self.checked.verdict()) }
    }

    /// The number of predicates under SC, and the number of additional predicates; `None` unless there were at least two abstractions.
    fn predicates(&self) -> Option<(usize, usize)> {
        let [first, .., last] = self.accounts.as_slice() else { return None };
        let count = |account: &Account| account.effort.size.predicates;
        Some((count(first), count(last).saturating_sub(count(first))))
    }

    fn cells(&self, paper: &Paper) -> Vec<String> {
        let last = self.accounts.last();
        let (k, effort) = last.map(|account| (account.k, account.effort)).unwrap_or_default();
        let [predicates, calls, build, cubes, states, memory, check] = paper.map(str::to_string);
        let ratio = |seconds: f64| match seconds / self.took.wall {
            few if few < 10.0 => format!("{few:.1}"),
            many => format!("{many:.0}"),
        };
        let faster = match published(paper) {
            _ if self.verdict() != "proved" => String::new(),
            Some((seconds, true)) => format!("> {}", ratio(seconds)),
            Some((seconds, false)) => ratio(seconds),
            None => String::new(),
        };
        vec![
            k.map_or(String::new(), |k| k.to_string()),
            self.verdict().to_string(),
            effort.size.predicates.to_string(),
            predicates,
            effort.size.cubes.to_string(),
            cubes,
            effort.size.cube_size.to_string(),
            format!("{:.1}", effort.size.questions as f64 / 1e3),
            calls,
            format!("{:.3}", effort.build_seconds),
            build,
            grouped(effort.states),
            states,
            format!("{:.1}", effort.bytes as f64 / f64::from(1 << 20)),
            memory,
            format!("{:.3}", effort.check_seconds),
            check,
            format!("{:.2}", self.took.wall),
            faster,
        ]
    }
}

/// The seconds that the paper reports for building and checking, and whether the run was stopped after that time.
fn published(paper: &Paper) -> Option<(f64, bool)> {
    match (paper[2], paper[2].parse::<f64>()) {
        ("T/O", _) => Some((TEN_HOURS, true)),
        (_, Ok(built)) => Some((built + paper[6].parse().unwrap_or(0.0), false)),
        _ => None,
    }
}

/// The program with the cheapest fences such that it is safe and no buffer ever holds more than one store; `None` if they were not found.
fn with_fences(run: &Run, name: &str, property: &str, model: MemoryModel) -> Option<Program> {
    let placed = placed(&format!("{name}.fw"), &[]);
    let bound = match model {
        MemoryModel::Pso => CellBounds::new(&[1]).map_or(Bound::Thread(1), Bound::Cell),
        _ => Bound::Thread(1),
    };
    let properties = vec![property.to_string()];
    let safety = Safety { model, properties, engine: Auto::default(), confirm: Confirm::default() };
    let goal = Bounded { goal: Box::new(safety), bound };
    let options = fencewright_fences::Options { evidence: false, ..Default::default() };
    let found = synthesise(&placed, &goal, &options, &limits(run), &Progress::default());
    if !matches!(found.verdict, Verdict::Fixed | Verdict::AlreadySafe) {
        return None;
    }
    let chosen: Vec<&Candidate> = found.fences.iter().map(|chosen| &chosen.fence).collect();
    Some(Fenced::new(&placed, &chosen).program)
}

const METHODS: [(Method, &str); 2] = [(Method::Predicates, "predicates"), (Method::Cubes, "cubes")];

/// Records an attempt together with the numbers of the paper.
fn record(run: &mut Run, words: [&str; 4], attempt: &Attempt, paper: &Paper) {
    let setting = words[1..].iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(", ");
    let states = attempt.accounts.last().map_or(0, |account| account.effort.states);
    let measurement = Measurement::new(words[0], setting, attempt.verdict(), attempt.took).states(states);
    run.record(match published(paper) {
        Some((seconds, true)) => measurement.given_up(CUPEX, seconds),
        Some((seconds, false)) => measurement.published(CUPEX, seconds),
        None => measurement,
    });
}

/// Both tables, and the number of predicates that were lifted.
pub fn tables(run: &mut Run) {
    let (mut rows, mut lifted, mut without_fences) = (Vec::new(), Vec::new(), Vec::new());
    for row in &run.some(&TABLES, 3) {
        let mut push = |run: &mut Run, words: [&str; 4], attempt: &Attempt, paper: &Paper| {
            record(run, words, attempt, paper);
            let words = words.iter().map(|word| word.to_string());
            rows.push(words.chain(attempt.cells(paper)).collect::<Vec<_>>());
        };
        let unfenced = example(&format!("{}.fw", row.name), &[]);
        let sc = Attempt::new(run, &unfenced, row.property, MemoryModel::Sc, METHODS[0].0);
        push(run, [row.name, "sc", "", ""], &sc, &row.sc);
        let mut more = vec![row.name.to_string(), row.sc[0].to_string()];
        for (model, word, papers, fewest) in [
            (MemoryModel::Pso, "pso", row.pso, row.fewest[1]),
            (MemoryModel::Tso, "tso", row.tso, row.fewest[0]),
        ] {
            // `None` if a quick run does not have enough time to find the fences.
            let kept = with_fences(run, row.name, row.property, model);
            let fewest = example(fewest, &[]);
            for ((method, by), paper) in METHODS.into_iter().zip(&papers) {
                let attempt = kept.as_ref().map(|kept| Attempt::new(run, kept, row.property, model, method));
                match &attempt {
                    Some(attempt) => push(run, [row.name, word, by, "k = 1"], attempt, paper),
                    None => without_fences.push(format!("{}, {word}, {by}", row.name)),
                }
                if method == Method::Predicates {
                    let (before, new) = attempt.and_then(|attempt| attempt.predicates()).unwrap_or_default();
                    let paper = |n: usize| papers[0][0].parse::<usize>().map_or(0, |all| all - n);
                    let paper = row.sc[0].parse().map_or(0, paper);
                    more.extend([before.to_string(), new.to_string(), paper.to_string()]);
                }
                let attempt = Attempt::new(run, &fewest, row.property, model, method);
                push(run, [row.name, word, by, "fewest"], &attempt, paper);
            }
        }
        more.push(row.why.to_string());
        lifted.push(more);
    }
    let header = [
        "algorithm",
        "model",
        "method",
        "fences",
        "k",
        "verdict",
        "predicates",
        "paper",
        "cubes",
        "paper",
        "size",
        "calls (K)",
        "paper",
        "build s",
        "paper",
        "states",
        "paper (K)",
        "MiB",
        "paper",
        "check s",
        "paper",
        "all s",
        "times faster",
    ];
    run.table(&header, &rows);
    run.say_few("algorithms", 3, TABLES.len());
    if !without_fences.is_empty() {
        let rows = without_fences.join("; ");
        run.say(&format!("Not measured at k = 1, because the fences were not found in time: {rows}"));
    }
    run.say(NOTES);
    let header = ["algorithm", "sc: paper", "pso: sc", "more", "paper", "tso: sc", "more", "paper", ""];
    run.table(&header, &lifted);
}

const NOTES: &str = "\
Fences: `k = 1`, the cheapest with which no buffer ever holds more than one store, as in the paper; `fewest`, those of the examples.
Verdict `proved`: with a certificate that was accepted; `unknown`: not within a minute.
Predicates, cubes (of at least two literals), size and calls are those of the last boolean program, build, check and states those of the last
abstraction, which under SC includes its refinements. `all s` is the whole run: SC proof with its predicates made few, every k and attempt, and
the check of the certificate. The paper was given its SC predicates and k. `times faster` compares its build and check with `all s`.
Single predicates are enough for all SC proofs, so there are no cubes to extrapolate, and both methods start from the same predicates. The paper
extrapolates 99 (queue), 422 (bakery) and 622 (ticket) cubes, of at most 1 literal (Dekker), 2 (Peterson, alternating bit, Szymanski) or 4 (the others). Figures that its text lost
are left out.

Predicates that come in addition to those of the SC proof at k = 1. Ours come from conditions, properties and interpolants, the paper's SC
predicates were chosen by hand; and `overflow = 0` is a predicate there, a location here. docs/extrapolate.md has the figures for predicates like the paper's.";
