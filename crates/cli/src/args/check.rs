//! The command line of `check`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForCheck, Given};

/// `check`
#[derive(Args)]
pub struct CheckArgs {
    /// Programs, or folders of programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Given<ForCheck>,
}
