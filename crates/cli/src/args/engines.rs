//! The command line of `engines`.

use clap::Args;

/// `engines`
#[derive(Args)]
pub struct EnginesArgs {
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}
