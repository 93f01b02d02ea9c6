//! The command line of `certify`.

use std::path::PathBuf;

use clap::Args;

use super::{InputArgs, LimitArgs, OneModelArg};

/// `certify`
#[derive(Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after this time (10s, 500ms, 2m, 1h, none)")))]
pub struct CertifyArgs {
    /// The certificate, as `check --certificate` or `robust --certificate` writes it; `-` is the standard input
    pub certificate: PathBuf,
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Accept only a certificate for this memory model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<OneModelArg>,
    /// Accept only a certificate for this property, may be repeated
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
