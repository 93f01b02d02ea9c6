//! The `fencewright` command.

#![forbid(unsafe_code)]

mod args;
mod check;
mod input;
mod output;
mod progress;
mod status;
mod stop;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use output::{Output, complain};
use status::Status;

fn main() -> ExitCode {
    // Usage errors end here with status 2, --help and --version with status 0.
    let cli = Cli::parse();
    let mut out = Output::new();
    let status = match &cli.command {
        Command::Check(args) => check::run(args, &mut out),
        _ => Status::Bad,
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
