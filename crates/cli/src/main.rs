//! The `fencewright` command.

#![forbid(unsafe_code)]

mod args;
mod certificate;
mod certify;
mod check;
mod convert;
mod diff;
mod engines;
mod fences;
mod files;
mod folder;
mod format;
mod generate;
mod input;
mod litmus;
mod memory;
mod output;
mod progress;
mod reduce;
mod robust;
mod show;
mod simulate;
mod status;
mod stop;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use output::{Output, complain};
use status::Status;

fn main() -> ExitCode {
    // Usage errors end here with status 2, --help and --version with status 0.
    let matches = Cli::command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.command.settle();
    stop::install();
    let mut out = Output::new();
    let status = match &cli.command {
        Command::Check(args) => check::run(args, &args::given(&matches), &mut out),
        Command::Fences(args) => fences::run(args, &mut out),
        Command::Robust(args) => robust::run(args, &mut out),
        Command::Certify(args) => certify::run(args, &mut out),
        Command::Litmus(args) => litmus::run(args, &mut out),
        Command::Run(args) => simulate::run(args, &mut out),
        Command::Show(args) => show::run(args, &mut out),
        Command::Fmt(args) => format::run(args, &mut out),
        Command::Convert(args) => convert::run(args, &mut out),
        Command::Reduce(args) => reduce::run(args, &mut out),
        Command::Generate(args) => generate::run(args, &mut out),
        Command::Engines(args) => engines::run(args, &mut out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "fencewright", &mut script);
            out.print(&String::from_utf8_lossy(&script));
            Status::Fine
        }
    };
    let status = match out.finish() {
        Ok(()) => status,
        Err(error) => {
            complain("standard output", &error.to_string());
            status.and(Status::Bad)
        }
    };
    ExitCode::from(status as u8)
}
