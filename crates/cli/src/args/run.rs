//! The command line of `run`.

use std::path::PathBuf;

use clap::Args;

use super::OneModelArg;
use super::settings::{ForRun, Given};

/// `run`
#[derive(Args)]
pub struct RunArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForRun>,
    /// The memory model
    #[arg(long, default_value = "tso")]
    pub model: OneModelArg,
    /// Makes the same choices again
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop after this many steps; 50 without --interactive
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Choose every step yourself
    #[arg(long, short)]
    pub interactive: bool,
}
