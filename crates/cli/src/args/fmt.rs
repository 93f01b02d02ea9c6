//! The command line of `fmt`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForFmt, Given};

/// `fmt`
#[derive(Args)]
pub struct FmtArgs {
    /// .fw files; `-` formats the standard input to the standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Given<ForFmt>,
}
