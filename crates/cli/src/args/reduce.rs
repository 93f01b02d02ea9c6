//! The command line of `reduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fencewright::reduce::c::Width;

use super::OneModelArg;
use super::settings::{ForReduce, Given};
use super::values::{Sizes, buffer_sizes};

/// `reduce`
#[derive(Args)]
pub struct ReduceArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<ForReduce>,
    /// The memory model whose store buffers become variables
    #[arg(long, value_enum, default_value = "tso", value_name = "MODEL")]
    pub model: OneModelArg,
    /// How many stores a buffer holds: in each thread under tso, for each variable under pso, where
    /// single variables may differ (2,x=3)
    #[arg(long, value_name = "K", default_value = "1", value_parser = buffer_sizes)]
    pub k: Sizes,
    /// Count the stores of each thread under pso too
    #[arg(long)]
    pub per_thread: bool,
    /// Buffers of any size: K stores in order (under pso, for each variable), the order of later ones forgotten
    #[arg(long, value_name = "partial:K", value_parser = partial, conflicts_with_all = ["k", "per_thread"])]
    pub buffers: Option<u32>,
    /// The language of the result
    #[arg(long, value_enum, default_value = "fw", value_name = "LANGUAGE")]
    pub to: TargetArg,
    /// How many bits the integers of the C program have: 32 or 64
    #[arg(long, value_name = "BITS", value_parser = width)]
    pub width: Option<Width>,
    /// Where to write the result; otherwise to the standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The languages that reduced programs are written in.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum TargetArg {
    Fw,
    C,
}

/// `partial:K`
fn partial(text: &str) -> Result<u32, String> {
    let k = text.strip_prefix("partial:").filter(|k| k.chars().all(|c| c.is_ascii_digit()));
    k.and_then(|k| k.parse().ok()).ok_or("expected partial:K".into())
}

/// `32`, `64`
fn width(text: &str) -> Result<Width, String> {
    match text {
        "32" => Ok(Width::Bits32),
        "64" => Ok(Width::Bits64),
        _ => Err("expected 32 or 64".into()),
    }
}
