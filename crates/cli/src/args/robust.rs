//! The command line of `robust`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForRobust, Given};

/// `robust`
#[derive(Args)]
pub struct RobustArgs {
    /// Programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Given<ForRobust>,
}
