//! The command line of `certify`.

use std::path::PathBuf;

use clap::Args;

use super::InputArgs;

/// `certify`
#[derive(Args)]
pub struct CertifyArgs {
    /// The certificate, as `check --certificate` writes it
    pub certificate: PathBuf,
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
}
