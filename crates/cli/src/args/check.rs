//! The command line of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use fencewright_engines::buffers::BufferDomain;

use super::buffer::{BufferArg, buffer};
use super::values::buffer_domain;
use super::{AnalysisArgs, ModelArg, SearchArgs};

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
    /// The engine: auto, explicit, cegar, lazy, contexts, buffers or extrapolate; `fencewright engines` says what they are
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub engine: String,
    /// Check only this property, may be repeated; `deadlock` is always available, `termination` for C programs
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    #[command(flatten)]
    pub search: SearchArgs,
    /// How many threads to search with; 0 means all cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
    /// At most N buffered stores in each thread; under pso N/variable for each variable, or x=2,y=1; a run that needs more is `unknown`
    #[arg(long, value_name = "N", value_parser = buffer)]
    pub buffer: Option<BufferArg>,
    /// The same as --reduction none: explore every interleaving
    #[arg(long, conflicts_with = "reduction")]
    pub no_local_first: bool,
    /// Switch off symmetry: store all states that differ only in which thread of a family does what
    #[arg(long)]
    pub no_symmetry: bool,
    /// Engine cegar: how many stores of each buffer are kept in order at first; engine extrapolate: how many it holds at first
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(..=8))]
    pub k: Option<u32>,
    /// Engines cegar and buffers: which end of a buffer is kept in order
    #[arg(long, value_name = "END", default_value = "newest")]
    pub kept: KeptArg,
    /// Engine cegar: keep from the start which values the other stores of each buffer have, not only when nothing else helps
    #[arg(long)]
    pub summaries: bool,
    /// Engines cegar and contexts: how integers are represented; zones, or for contexts order where that is exact
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<DomainArg>,
    /// Engine cegar: the clip constant of zones at first
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub clip: Option<u8>,
    /// Engine cegar: what stays as it starts instead of being refined; `predicates` are then those of the file
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub fix: Vec<FixArg>,
    #[command(flatten)]
    pub lazy: LazyArgs,
    /// Engine contexts: threads take turns at most so many times
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub contexts: Option<u32>,
    /// Engine buffers: the one abstraction of buffers to try; set, multiset, or partial:K with K stores in order
    #[arg(long, value_name = "DOMAIN", value_parser = buffer_domain)]
    pub buffer_domain: Option<BufferDomain>,
    /// Engine extrapolate: what is extrapolated from the proof under SC
    #[arg(long, value_name = "METHOD", default_value = "predicates")]
    pub method: MethodArg,
    /// Engine extrapolate: write the boolean program of the proof to this file; one program and one model at a time
    #[arg(long, value_name = "OUT", display_order = 903)]
    pub emit_boolean: Option<PathBuf>,
    /// Write the certificate of a proof to this file; one program and one model at a time
    #[arg(long, value_name = "OUT", display_order = 901)]
    pub certificate: Option<PathBuf>,
    /// Write the answers to this file as SARIF 2.1.0, for editors and code hosts
    #[arg(long, value_name = "OUT", display_order = 904)]
    pub sarif: Option<PathBuf>,
    /// Write the answers to this file as a page for a browser, with executions to step through
    #[arg(long, value_name = "OUT", display_order = 905)]
    pub html: Option<PathBuf>,
    /// Print what was proved at each program point
    #[arg(long, display_order = 902)]
    pub invariants: bool,
}

/// How stores are delayed.
#[derive(Args)]
pub struct LazyArgs {
    /// Engine lazy: who says along which paths stores are delayed
    #[arg(long, value_name = "ORACLE", default_value = "robust")]
    pub oracle: OracleArg,
    /// Engine lazy: keep the store that a path starts with; then only a robust program is ever `safe`
    #[arg(long)]
    pub keep_store: bool,
    /// Engine lazy: give up after N rounds; for `show --extended`, how many (1 without it)
    #[arg(long, value_name = "N")]
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

/// Who says along which paths stores are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OracleArg {
    /// Robustness: where delaying a store can be seen
    Robust,
    /// Every path from a store to a load, the shortest first
    Enumerate,
}
