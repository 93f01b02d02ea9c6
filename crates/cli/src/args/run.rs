//! The command line of `run`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForRun, Given};

/// `run`
#[derive(Args)]
pub struct RunArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForRun>,
}
