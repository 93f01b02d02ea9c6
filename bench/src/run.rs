//! One run: what is wanted, what was measured so far, and what has been said about it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use fencewright_engines::Limits;
use fencewright_engines::explicit::{self, Reduction};

use crate::baseline::Baseline;
use crate::measurement::Measurement;
use crate::peers::Peers;
use crate::{out, table};

/// The longest that one measurement may take in a quick run.
const QUICK: Duration = Duration::from_secs(2);

/// A run.
pub struct Run {
    /// Only what is soon there.
    pub quick: bool,
    /// Which interleavings explicit searches leave out, unless a table is about just that.
    pub reduction: Reduction,
    /// An earlier run to compare with.
    pub baseline: Option<Baseline>,
    /// Other tools to compare with.
    pub peers: Peers,
    /// What has been done.
    pub sections: Vec<Section>,
    /// Whether tables are printed: not where the standard output is wanted for a file.
    pub prints: bool,
    start: Instant,
}

/// A part of the run.
pub struct Section {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// What it has said.
    pub blocks: Vec<Block>,
    /// What it has measured.
    pub measurements: Vec<Measurement>,
}

/// Something that a section says.
pub enum Block {
    /// Words.
    Text(String),
    /// A table.
    Table {
        /// The names of the columns.
        header: Vec<String>,
        /// As many cells in each.
        rows: Vec<Vec<String>>,
    },
}

impl Run {
    /// A run that starts now.
    pub fn new(quick: bool, reduction: Reduction, baseline: Option<Baseline>, peers: Peers) -> Self {
        Run { quick, reduction, baseline, peers, sections: Vec::new(), prints: true, start: Instant::now() }
    }

    /// A new section begins.
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

    /// What one measurement may use.
    pub fn limits(&self, time: Duration, memory: Option<u64>) -> Limits {
        Limits::starting_now(Some(self.at_most(time)), memory, Default::default())
    }

    /// This time, or less in a quick run.
    pub fn at_most(&self, time: Duration) -> Duration {
        if self.quick { time.min(QUICK) } else { time }
    }

    /// All of these, or in a quick run the first `few`.
    pub fn some<T: Clone>(&self, all: &[T], few: usize) -> Vec<T> {
        all[..if self.quick { few.min(all.len()) } else { all.len() }].to_vec()
    }

    /// Says what a quick run has left out.
    pub fn say_few(&mut self, what: &str, few: usize, all: usize) {
        if self.quick {
            self.say(&format!("A quick run has {few} of {all} {what}."));
        }
    }

    /// How explicit searches search.
    pub fn search(&self) -> explicit::Options {
        explicit::Options { reduction: self.reduction, ..explicit::Options::default() }
    }

    /// Keeps a measurement, compares it, and tells whoever waits.
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

    /// Prints words, which belong to the section.
    pub fn say(&mut self, text: &str) {
        self.print(&format!("{text}\n\n"));
        self.section().blocks.push(Block::Text(text.to_string()));
    }

    /// Prints a table, which belongs to the section.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        if self.prints {
            table::print(header, rows);
        }
        self.print("\n");
        let header = header.iter().map(|cell| cell.to_string()).collect();
        self.section().blocks.push(Block::Table { header, rows: rows.to_vec() });
    }
}

/// A time for people.
pub fn time(seconds: f64) -> String {
    match seconds {
        short if short < 1e-3 => format!("{:.3} ms", short * 1e3),
        short if short < 1.0 => format!("{:.1} ms", short * 1e3),
        long => format!("{long:.2} s"),
    }
}
