//! The command line of `certify`.

use std::path::PathBuf;

use clap::Args;

use super::settings::{ForCertify, Given};

/// `certify`
#[derive(Args)]
pub struct CertifyArgs {
    /// The certificate, as `check --certificate` or `robust --certificate` writes it; `-` is the standard input
    pub certificate: PathBuf,
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForCertify>,
}
