//! The command line of `fmt`.

use std::path::PathBuf;

use clap::Args;

/// `fmt`
#[derive(Args)]
pub struct FmtArgs {
    /// .fw files; `-` formats the standard input to the standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing, list the files that are not formatted and exit with 1 if there are any
    #[arg(long, conflicts_with = "stdout")]
    pub check: bool,
    /// Print the result instead of changing the files
    #[arg(long)]
    pub stdout: bool,
}
