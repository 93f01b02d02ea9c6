//! The command line of `litmus`.

use std::path::PathBuf;

use clap::Args;

use super::{InputArgs, LimitArgs, ModelArg};

/// `litmus`
#[derive(Args)]
pub struct LitmusArgs {
    /// Litmus tests, .fw files with a `finally` property, or directories to search for .litmus files
    #[arg(required = true, value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The memory model
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    /// How many tests to run at the same time; 0 means as many as there are cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}
