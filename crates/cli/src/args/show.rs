//! The command line of `show`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForShow, Given};

/// `show`
#[derive(Args)]
pub struct ShowArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForShow>,
}
