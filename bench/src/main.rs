//! Benchmarks of the engines: `cargo run --profile dist -p fencewright-bench [SECTION...]`.
//!
//! The subcommands `limits`, `algorithms` and `real` run the `fencewright` command from the folder of this command. `limits` runs it on hard programs
//! and fails if a limit is exceeded; `algorithms` runs it on the algorithms of the corpora and fails if a verdict is wrong; `real` runs it on public
//! C programs and keeps the score. `tasks` writes the examples and the corpora as tasks for BenchExec.
//!
//! Times depend on the machine and on other processes, so compare ratios within one run. Every section prints a description of its measurements.

#![forbid(unsafe_code)]

mod algorithms;
mod args;
mod baseline;
mod compare;
mod contexts;
mod explicit;
mod extra13;
mod fences12;
mod limits;
mod measurement;
mod out;
mod page;
mod peers;
mod process;
mod programs;
mod real;
mod reductions;
mod robustness;
mod run;
mod save;
mod spin;
mod states;
mod stop;
mod stopwatch;
mod table;
mod tasks;
mod thesis;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use args::{Apart, Cli};
use baseline::Baseline;
use peers::Peers;
use run::Run;

/// A section: its name, its description, and the function that measures it.
type Section = (&'static str, &'static str, fn(&mut Run));

/// The sections, in the order in which they run.
const SECTIONS: [Section; 13] = [
    ("throughput", "explicit engine: states per second and bytes per state", explicit::throughput),
    ("families", "explicit engine: scaling families of THESIS16 s.5.1 and s.5.2", explicit::families),
    ("states", "explicit engine: proofs by sets of states, found and checked", states::states),
    ("fences12", "engine cegar: FENCES12 Table 1, proofs with certificates", fences12::table_1),
    ("threads", "engine cegar: more threads, unbounded integers", fences12::threads),
    ("fences", "fences for FENCES12 Table 1, from the programs without any", fences12::fences),
    ("lazy", "engine lazy: THESIS16 Fig. 5.1", thesis::lazy),
    ("lazy-families", "engine lazy: THESIS16 Figs. 5.3 to 5.8, growing", thesis::families),
    ("robust", "robustness and its fences: THESIS16 Figs. 5.9 to 5.11", robustness::tables),
    ("reductions", "partial order reductions: THESIS16 Figs. 5.13 and 5.14", reductions::tables),
    ("lamport", "explicit engine: Lamport's fast mutex, memory, and Spin beside it", spin::lamport),
    ("contexts", "engine contexts: the programs of CONTEXT24", contexts::contexts),
    ("extra13", "engine extrapolate: EXTRA13 Tables 1 and 2", extra13::tables),
];

fn main() -> ExitCode {
    let cli = Cli::parse();
    stop::install();
    let done = match &cli.command {
        Some(Apart::Limits { parts, gaps }) => limits::table(parts, *gaps),
        Some(Apart::Algorithms { parts }) => algorithms::table(parts),
        Some(Apart::Real(options)) => real::table(options),
        Some(Apart::Tasks { folder, examples }) => tasks::write(folder, examples).map(|count| {
            out::line(&format!("{count} tasks in {}", folder.display()));
            true
        }),
        None if cli.list => {
            list();
            Ok(true)
        }
        None => sections(cli),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fencewright-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn list() {
    SECTIONS.iter().for_each(|(name, about, _)| out::line(&format!("{name:14} {about}")));
}

/// Runs the sections; returns whether there are no regressions.
fn sections(cli: Cli) -> Result<bool, String> {
    let is_known = |name: &&String| SECTIONS.iter().any(|(section, ..)| section == name);
    if let Some(unknown) = cli.sections.iter().find(|name| !is_known(name)) {
        return Err(format!("there is no section `{unknown}`; --list lists them"));
    }
    let is_output = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_output(&cli.csv) && is_output(&cli.html) {
        return Err("the standard output can be --csv or --html, not both".to_string());
    }
    for path in [&cli.csv, &cli.html].into_iter().filter(|path| !is_output(path)).flatten() {
        save::can_be_saved(path)?;
    }
    programs::are_there()?;
    let baseline = cli.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut run = Run::new(cli.quick, cli.reduction.get(), baseline, Peers::new(cli.peer, cli.peer_timeout)?);
    run.prints = !is_output(&cli.csv) && !is_output(&cli.html);
    for (name, about, measure) in SECTIONS {
        if !cli.sections.is_empty() && !cli.sections.iter().any(|wanted| wanted == name) {
            continue;
        }
        run.begin(name, about);
        measure(&mut run);
        compare::section(&mut run);
        // Files are written after each section, so that an interrupted run leaves results; the standard output is written only at the end.
        if let Some(path) = cli.csv.as_ref().filter(|_| !is_output(&cli.csv)) {
            save::save(path, &baseline::write(&run.sections))?;
        }
        if let Some(path) = cli.html.as_ref().filter(|_| !is_output(&cli.html)) {
            save::save(path, &page::page(&run.sections))?;
        }
        if out::is_gone() && cli.csv.is_none() && cli.html.is_none() {
            // The reader has closed the standard output and no file is written, so further measurements would be lost.
            return Ok(true);
        }
    }
    if is_output(&cli.csv) {
        out::print(&baseline::write(&run.sections));
    }
    if is_output(&cli.html) {
        out::print(&page::page(&run.sections));
    }
    compare::finish(&run)
}

/// The `fencewright` command to measure: the file in the folder of this command, unless the variable FENCEWRIGHT names another one.
fn command() -> Result<PathBuf, String> {
    let beside = || std::env::current_exe().map(|exe| exe.with_file_name("fencewright"));
    let command = std::env::var_os("FENCEWRIGHT").map_or_else(|| beside().unwrap_or_default(), PathBuf::from);
    let is_there = command.is_file();
    is_there.then_some(command.clone()).ok_or_else(|| {
        format!(
            "there is no {}: build fencewright-cli, or name the command with FENCEWRIGHT",
            command.display()
        )
    })
}
