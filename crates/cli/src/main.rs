//! The `fencewright` command.

#![forbid(unsafe_code)]

mod args;
mod bug;
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
mod gaps;
mod gathered;
mod generate;
mod input;
mod litmus;
mod lsp;
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
    bug::install();
    // Usage errors end here with status 2, --help and --version with status 0.
    let matches = args::command_line().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.command.join_files();
    stop::install();
    gaps::watch();
    let mut out = Output::new();
    // The server flushes its own output; if the client has stopped reading, exiting must not wait for it.
    if let Command::Lsp(args) = &cli.command {
        return ExitCode::from(bug::guarded(false, &mut out, |_| lsp::run(args)) as u8);
    }
    let json = args::given(&matches).iter().any(|option| option == "--json");
    let status = bug::guarded(json, &mut out, |out| run(&cli.command, out));
    let status = match out.finish() {
        Ok(()) => status,
        Err(error) => {
            complain("standard output", &error.to_string());
            status.and(Status::Bad)
        }
    };
    ExitCode::from(status as u8)
}

/// Runs a command; returns its exit status.
fn run(command: &Command, out: &mut Output) -> Status {
    match command {
        Command::Check(args) => check::run(args, out),
        Command::Fences(args) => fences::run(args, out),
        Command::Robust(args) => robust::run(args, out),
        Command::Certify(args) => certify::run(args, out),
        Command::Litmus(args) => litmus::run(args, out),
        Command::Run(args) => simulate::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Fmt(args) => format::run(args, out),
        Command::Convert(args) => convert::run(args, out),
        Command::Reduce(args) => reduce::run(args, out),
        Command::Generate(args) => generate::run(args, out),
        Command::Lsp(args) => lsp::run(args),
        Command::Engines(args) => engines::run(args, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut args::command_line(), "fencewright", &mut script);
            out.print(&String::from_utf8_lossy(&script));
            Status::Fine
        }
        Command::Man { command } => manual(command.as_deref(), out),
    }
}

/// Prints a manual page.
fn manual(command: Option<&str>, out: &mut Output) -> Status {
    let mut all = Cli::command();
    all.build();
    let page = match command {
        None => Some(clap_mangen::Man::new(all.clone())),
        // The title is the name of the page: `man fencewright-check`.
        Some(name) => all
            .find_subcommand(name)
            .map(|found| clap_mangen::Man::new(found.clone()).title(format!("fencewright-{name}"))),
    };
    let Some(page) = page else {
        let names: Vec<&str> = all.get_subcommands().map(|command| command.get_name()).collect();
        let why = format!("no such command; there is {}", names.join(", "));
        out.refuse(false, command.unwrap_or_default(), &why, None);
        return Status::Bad;
    };
    let mut text = Vec::new();
    page.render(&mut text).expect("writing into memory cannot fail");
    out.print(&String::from_utf8_lossy(&text));
    if let Some(examples) = args::examples_of(command) {
        out.print(&examples_section(examples));
    }
    // The exit status means something different for other commands.
    if matches!(command, None | Some("check")) {
        out.print(&format!(".SH EXIT STATUS\n{}\n", args::STATUS));
    }
    Status::Fine
}

/// Examples as a section of a manual page, line by line as they are.
fn examples_section(examples: &str) -> String {
    let lines = examples.lines().map(|line| line.replace('\\', "\\e").replace('-', "\\-") + "\n");
    format!(".SH EXAMPLES\n.nf\n{}.fi\n", lines.collect::<String>())
}
