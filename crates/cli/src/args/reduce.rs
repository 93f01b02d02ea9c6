//! The command line of `reduce`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForReduce, Given};

/// `reduce`
#[derive(Args)]
pub struct ReduceArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForReduce>,
}
