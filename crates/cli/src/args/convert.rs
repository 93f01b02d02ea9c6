//! The command line of `convert`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForConvert, Given};

/// `convert`
#[derive(Args)]
pub struct ConvertArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForConvert>,
}
