//! The command line of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use fencewright::BufferBound;
use fencewright::engines::buffers::BufferDomain;

use super::values::{ENGINE, buffer_domain};
use super::{AnalysisArgs, ENGINES, ModelArg, OUTPUT, SearchArgs};

/// `check`
#[derive(Args)]
#[command(
    mut_arg("files", |arg| arg.help("Programs, or folders of programs; `-` is the standard input").value_name("FILE|DIR")),
    mut_arg("json", |arg| arg.help("Print one JSON object for each verdict")),
    mut_arg("quiet", |arg| arg.help("Print the verdicts only: no counterexamples, no notes, no progress"))
)]
pub struct CheckArgs {
    #[command(flatten)]
    pub common: AnalysisArgs,
    /// The memory model
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    /// The engine; `fencewright engines` says more about each
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = ENGINE)]
    pub engine: String,
    /// Check only this property, may be repeated; `deadlock` is always available, `termination` for C programs
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    #[command(flatten)]
    pub search: SearchArgs,
    /// How many threads to search with; 0 means all cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
    /// At most N buffered stores in each thread; under pso also N/variable, or x=2,y=1. If an execution needs more, the verdict is `unknown`
    #[arg(long, value_name = "N", help_heading = ENGINES)]
    pub buffer: Option<BufferBound>,
    /// The same as --reduction none: explore every interleaving
    #[arg(long, conflicts_with = "reduction", help_heading = ENGINES)]
    pub no_local_first: bool,
    /// Switch off symmetry: store all states that differ only in which thread of a family does what
    #[arg(long, help_heading = ENGINES)]
    pub no_symmetry: bool,
    /// Engine cegar: how many stores of each buffer are kept in order at first; engine extrapolate: how many it holds at first
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(..=8), help_heading = ENGINES)]
    pub k: Option<u32>,
    /// Engines cegar and buffers: which end of a buffer is kept in order
    #[arg(long, value_name = "END", default_value = "newest", help_heading = ENGINES)]
    pub kept: KeptArg,
    /// Engine cegar: keep from the start which values the stores have whose order is forgotten
    #[arg(long, help_heading = ENGINES)]
    pub summaries: bool,
    /// Engines cegar and contexts: how integers are represented; by default zones, for contexts order where that is exact
    #[arg(long, value_name = "DOMAIN", help_heading = ENGINES)]
    pub domain: Option<DomainArg>,
    /// Engine cegar: the clip constant of zones at first
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u8).range(1..=64), help_heading = ENGINES)]
    pub clip: Option<u8>,
    /// Engine cegar: what is not refined; `predicates` are then those of the file
    #[arg(long, value_name = "WHAT", value_delimiter = ',', help_heading = ENGINES)]
    pub fix: Vec<FixArg>,
    #[command(flatten)]
    pub lazy: LazyArgs,
    /// Engine contexts: at most K contexts, in each of which one thread runs; 1 to 64
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = ENGINES)]
    pub contexts: Option<u32>,
    /// Engine buffers: the one abstraction of buffers to try; set, multiset, or partial:K with K stores in order
    #[arg(long, value_name = "DOMAIN", value_parser = buffer_domain, help_heading = ENGINES)]
    pub buffer_domain: Option<BufferDomain>,
    /// Engine extrapolate: what is extrapolated from the proof under SC
    #[arg(long, value_name = "METHOD", default_value = "predicates", help_heading = ENGINES)]
    pub method: MethodArg,
    /// Engine extrapolate: write the boolean program of the proof to this file; one program and one model at a time
    #[arg(long, value_name = "OUT", display_order = 903, help_heading = OUTPUT)]
    pub emit_boolean: Option<PathBuf>,
    /// Write the certificate of a proof to this file; one program and one model at a time
    #[arg(long, value_name = "OUT", display_order = 901, help_heading = OUTPUT)]
    pub certificate: Option<PathBuf>,
    /// Write the answers to this file as SARIF 2.1.0, for editors and code hosts
    #[arg(long, value_name = "OUT", display_order = 904, help_heading = OUTPUT)]
    pub sarif: Option<PathBuf>,
    /// Write the answers to this file as a page for a browser, with executions to step through
    #[arg(long, value_name = "OUT", display_order = 905, help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// Print what was proved at each program point
    #[arg(long, display_order = 902, help_heading = OUTPUT)]
    pub invariants: bool,
}

/// How stores are delayed.
#[derive(Args)]
pub struct LazyArgs {
    /// Engine lazy: what chooses the paths along which stores are delayed
    #[arg(long, value_name = "ORACLE", default_value = "robust", help_heading = ENGINES)]
    pub oracle: OracleArg,
    /// Engine lazy: keep the original store beside the delayed one; then only robust programs are ever `safe`
    #[arg(long, help_heading = ENGINES)]
    pub keep_store: bool,
    /// Engine lazy: give up after N rounds; `show --extended`: how many rounds (1 by default)
    #[arg(long, value_name = "N", help_heading = ENGINES)]
    pub rounds: Option<u32>,
}

/// What engine cegar is not to refine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FixArg {
    /// How many stores are kept in order.
    K,
    /// The clip constant of zones.
    Clip,
    /// The predicates.
    Predicates,
}

/// What is extrapolated from a proof under SC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// Its predicates; cubes of them are searched
    Predicates,
    /// Its predicates and cubes; no others are searched
    Cubes,
}

/// Which end of a buffer is kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeptArg {
    Oldest,
    Newest,
}

/// How integers are represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DomainArg {
    /// Bounds on differences
    Zones,
    /// Predicates from interpolants
    Predicates,
    /// How values compare: exact for programs that only copy, choose and compare them
    Order,
    /// One value for each cell: exact, with any arithmetic, but every `*` needs a range
    Concrete,
}

/// What chooses the paths along which stores are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OracleArg {
    /// Robustness: where delaying a store can be seen
    Robust,
    /// Every path from a store to a load, the shortest first
    Enumerate,
}
