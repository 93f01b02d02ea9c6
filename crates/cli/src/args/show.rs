//! The command line of `show`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForShow, Given};

/// `show`
#[derive(Args)]
pub struct ShowArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    /// Print, as .fw, the program extended so that it does under SC some of what it does under TSO, as engine lazy does
    #[arg(long)]
    pub extended: bool,
    #[command(flatten)]
    pub settings: Given<ForShow>,
}
