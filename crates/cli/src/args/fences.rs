//! The command line of `fences`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForFences, Given};

/// `fences`
#[derive(Args)]
pub struct FencesArgs {
    /// Programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Given<ForFences>,
}
