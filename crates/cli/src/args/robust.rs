//! The command line of `robust`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{AnalysisArgs, OUTPUT, SearchArgs};

/// `robust`
#[derive(Args)]
#[command(mut_arg("quiet", |arg| arg.help("Print the verdicts only: no witnesses, no notes, no progress")))]
pub struct RobustArgs {
    #[command(flatten)]
    pub common: AnalysisArgs,
    /// What is asked: robustness itself, or freedom from triangular races, which implies it
    #[arg(long, default_value = "happens-before")]
    pub notion: NotionArg,
    /// Examine every attack (a store that may be delayed past a load) and list them all
    #[arg(long)]
    pub all: bool,
    /// Write the certificate that the program is robust to this file; one program at a time
    #[arg(long, value_name = "OUT", conflicts_with = "all", help_heading = OUTPUT)]
    pub certificate: Option<PathBuf>,
    /// Write the answers to this file as a page for a browser, with the witness to step through
    #[arg(long, value_name = "OUT", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// The engine that runs the attacks
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub engine: AttackEngineArg,
    #[command(flatten)]
    pub search: SearchArgs,
    /// How many threads to search with; 0 means all cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
}

/// What `robust` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NotionArg {
    /// Every execution has the happens-before relation of one under SC
    HappensBefore,
    /// No triangular race
    Triangular,
}

/// Which engine runs attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttackEngineArg {
    /// Explicit first, then both side by side
    Auto,
    /// Explicit states
    Explicit,
    /// Abstraction, for unbounded integers
    Cegar,
}
