//! The state of a run: its options, the measurements so far, and the text of its sections.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use fencewright_engines::Limits;
use fencewright_engines::explicit::{self, Reduction};

use crate::baseline::Baseline;
use crate::measurement::Measurement;
use crate::peers::Peers;
use crate::{out, table};

/// Time limit of each measurement in a quick run.
const QUICK: Duration = Duration::from_secs(2);

/// The options of a run of the benchmarks, and the measurements so far.
pub struct Run {
    /// Whether this is a quick run: fewer sizes, and at most two seconds for each measurement.
    pub quick: bool,
    /// The reduction of explicit searches, except in tables that compare reductions.
    pub reduction: Reduction,
    /// An earlier run to compare with.
    pub baseline: Option<Baseline>,
    /// Other tools to compare with.
    pub peers: Peers,
    /// The sections measured so far; the last one may be incomplete.
    pub sections: Vec<Section>,
    /// Whether tables are printed; false if the CSV or the page is written to the standard output.
    pub prints: bool,
    start: Instant,
}

/// A section of the run.
pub struct Section {
    /// The name on the command line.
    pub name: &'static str,
    /// A description of the measurements of the section.
    pub about: &'static str,
    /// The paragraphs and tables of the section.
    pub blocks: Vec<Block>,
    /// The measurements of the section.
    pub measurements: Vec<Measurement>,
}

/// A paragraph or table of a section.
pub enum Block {
    /// One or more paragraphs, separated by empty lines.
    Text(String),
    /// A table with a header.
    Table {
        /// The names of the columns.
        header: Vec<String>,
        /// The rows, each with one cell per column.
        rows: Vec<Vec<String>>,
    },
}

impl Run {
    /// A run that starts now.
    pub fn new(quick: bool, reduction: Reduction, baseline: Option<Baseline>, peers: Peers) -> Self {
        Run { quick, reduction, baseline, peers, sections: Vec::new(), prints: true, start: Instant::now() }
    }

    /// Begins a section.
    pub fn begin(&mut self, name: &'static str, about: &'static str) {
        self.print(&format!("\n## {name}: {about}\n\n"));
        eprintln!("[{:6.1} s] {name}: {about}", self.start.elapsed().as_secs_f64());
        self.sections.push(Section { name, about, blocks: Vec::new(), measurements: Vec::new() });
    }

    fn print(&self, text: &str) {
        if self.prints {
            out::print(text);
        }
    }

    fn section(&mut self) -> &mut Section {
        self.sections.last_mut().expect("a section has begun")
    }

    /// The limits of one measurement.
    pub fn limits(&self, time: Duration, memory: Option<u64>) -> Limits {
        Limits::starting_now(Some(self.at_most(time)), memory, Default::default())
    }

    /// `time`, or in a quick run the smaller of `time` and [`QUICK`].
    pub fn at_most(&self, time: Duration) -> Duration {
        if self.quick { time.min(QUICK) } else { time }
    }

    /// All elements of `all`, or in a quick run the first `few`.
    pub fn some<T: Clone>(&self, all: &[T], few: usize) -> Vec<T> {
        all[..if self.quick { few.min(all.len()) } else { all.len() }].to_vec()
    }

    /// In a quick run, prints how many of all items it measures; `what` names the items.
    pub fn say_few(&mut self, what: &str, few: usize, all: usize) {
        if self.quick {
            self.say(&format!("A quick run has {few} of {all} {what}."));
        }
    }

    /// The options of explicit searches.
    pub fn search(&self) -> explicit::Options {
        explicit::Options { reduction: self.reduction, ..explicit::Options::default() }
    }

    /// Records a measurement with the results of peers and of the earlier run for the same question, and reports progress.
    pub fn record(&mut self, mut measurement: Measurement) {
        let section = self.section().name;
        let mut line = format!(
            "[{:6.1} s]   {} {}: {}, {}",
            self.start.elapsed().as_secs_f64(),
            measurement.program,
            measurement.setting,
            measurement.outcome,
            time(measurement.seconds)
        );
        if let Some(other) = self.baseline.as_ref().and_then(|baseline| baseline.of(section, &measurement)) {
            let _ = write!(line, ", before {}", other.seconds.map_or("nothing".to_string(), time));
            measurement.others.push(other);
        }
        for other in self.peers.ask(&measurement) {
            let took = other.seconds.map_or_else(|| other.outcome.clone(), time);
            let _ = write!(line, ", {} {took}", other.tool);
            measurement.others.push(other);
        }
        eprintln!("{line}");
        self.section().measurements.push(measurement);
    }

    /// Prints a paragraph and adds it to the section.
    pub fn say(&mut self, text: &str) {
        self.print(&format!("{text}\n\n"));
        self.section().blocks.push(Block::Text(text.to_string()));
    }

    /// Prints a table and adds it to the section.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        if self.prints {
            table::print(header, rows);
        }
        self.print("\n");
        let header = header.iter().map(|cell| cell.to_string()).collect();
        self.section().blocks.push(Block::Table { header, rows: rows.to_vec() });
    }
}

/// A time with a suitable unit.
pub fn time(seconds: f64) -> String {
    match seconds {
        short if short < 1e-3 => format!("{:.3} ms", short * 1e3),
        short if short < 1.0 => format!("{:.1} ms", short * 1e3),
        long => format!("{long:.2} s"),
    }
}
