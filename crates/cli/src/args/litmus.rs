//! The command line of `litmus`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForLitmus, Given};

/// `litmus`
#[derive(Args)]
pub struct LitmusArgs {
    /// Litmus tests, .fw files with a `finally` property, or directories to search for .litmus files
    #[arg(required = true, value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Given<ForLitmus>,
}
