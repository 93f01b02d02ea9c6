//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fencewright_engines::explicit::Reduction;

use crate::peers::Peer;

/// Measures the engines: the tables of the papers beside ours, as text, as CSV, and as a page with plots.
#[derive(Parser)]
#[command(name = "fencewright-bench", version, max_term_width = 100, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// The sections to run; all if none is given
    #[arg(value_name = "SECTION")]
    pub sections: Vec<String>,
    /// List the sections and exit
    #[arg(long)]
    pub list: bool,
    /// Only measurements of a few seconds: fewer sizes, two seconds for each measurement
    #[arg(long)]
    pub quick: bool,
    /// Write all measurements to this file as CSV, after each section
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a page with tables and plots to this file, after each section
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Compare with an earlier run, whose `--csv` wrote this file: list the regressions, and exit with status 1 if there are any
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Run another tool on the same questions; COMMAND is a shell command with {file}, {rmm}, {trencher}, {litmus} or {c}, with {model} and
    /// {question}; `NAME[0,10]` lists the exit statuses that are answers, by default 0. May be repeated
    #[arg(long, value_name = "NAME=COMMAND", value_parser = Peer::parse)]
    pub peer: Vec<Peer>,
    /// Time limit for each question to a peer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub peer_timeout: Duration,
    /// The reduction of explicit searches, except in tables that compare reductions
    #[arg(long, value_name = "REDUCTION", default_value = "suited")]
    pub reduction: ReductionArg,
    #[command(subcommand)]
    pub command: Option<Apart>,
}

/// The commands other than sections.
#[derive(Subcommand)]
pub enum Apart {
    /// Run the command on hard programs and report how far it exceeds --timeout and --memory
    Limits {
        /// Only programs and modes whose names contain one of these parts
        parts: Vec<String>,
        /// Also report where a thread computes longer than this without checking its limits
        #[arg(long, value_name = "MILLISECONDS")]
        gaps: Option<u64>,
    },
    /// Run the command on the algorithms of the corpora: answers, engines, times
    Algorithms {
        /// Only programs and constants whose names contain one of these parts
        parts: Vec<String>,
    },
    /// Run the command on lists of public C programs: read, right, refused by reason, checked, seconds
    Real(Real),
    /// Write task definitions for BenchExec: for the examples, and for the corpora if FENCEWRIGHT_CORPORA is set
    Tasks {
        /// The output folder
        folder: PathBuf,
        /// The folder of the examples
        #[arg(long, value_name = "DIR", default_value = "examples")]
        examples: PathBuf,
    },
}

/// A run over lists of public C programs.
#[derive(Args)]
pub struct Real {
    /// The folder that contains the checkouts of the repositories; `DIR` in the lists
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Lists: files, or names of lists in the folder `c-real` of the corpora; all lists in that folder if none is named
    #[arg(value_name = "LIST")]
    pub lists: Vec<String>,
    /// Only rows whose file and flags contain this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub part: Vec<String>,
    /// Time limit for each row, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    /// Memory limit for each row, as `fencewright check` takes it
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    pub memory: String,
    /// Write a line for each row to this file as CSV, after each list
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Arguments for every command, such as `-I DIR/more`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub extra: Vec<String>,
}

/// Reductions, by their names on the command line.
#[derive(Clone, Copy, ValueEnum)]
#[allow(missing_docs)]
pub enum ReductionArg {
    Suited,
    None,
    Local,
    Ample,
    Persistent,
    Sleep,
    Cartesian,
}

impl ReductionArg {
    /// The option of the explicit engine.
    pub fn get(self) -> Reduction {
        match self {
            ReductionArg::Suited => Reduction::Suited,
            ReductionArg::None => Reduction::None,
            ReductionArg::Local => Reduction::Local,
            ReductionArg::Ample => Reduction::Ample,
            ReductionArg::Persistent => Reduction::Persistent,
            ReductionArg::Sleep => Reduction::Sleep,
            ReductionArg::Cartesian => Reduction::Cartesian,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds =
        text.strip_suffix('s').unwrap_or(text).parse().map_err(|_| "expected seconds".to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "expected seconds".to_string())
}

const EXAMPLES: &str = "\
Examples:
  fencewright-bench --quick                                        a look at everything
  fencewright-bench --csv today.csv --html today.html              every table of the papers, and pictures
  fencewright-bench --baseline yesterday.csv fences lazy           what became worse in two sections
  fencewright-bench --peer 'old[0,1]=old/fencewright {question} --model {model} {file}'
  fencewright-bench --peer 'cbmc[0,10]=cbmc --unwind 4 {c}' lazy
  fencewright-bench real checkouts --csv real.csv                  what becomes of public C programs
  fencewright-bench tasks bench/benchexec/tasks                    tasks for BenchExec

Exit status: 0 done, 1 something became worse than in the earlier run, 2 bad usage or a file that cannot be read or written.";
