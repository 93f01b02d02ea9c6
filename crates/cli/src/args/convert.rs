//! The command line of `convert`.

use std::path::PathBuf;

use clap::Args;

use super::FormatArg;
use super::settings::{ForConvert, Given};

/// `convert`
#[derive(Args)]
pub struct ConvertArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForConvert>,
    /// The format to translate into
    #[arg(long, value_name = "FORMAT")]
    pub to: FormatArg,
    /// Where to write the result; otherwise to the standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
