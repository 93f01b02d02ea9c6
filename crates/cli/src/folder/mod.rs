//! `fencewright check FOLDER`: checks every program in a folder, several at a time, and prints one table.
//!
//! Programs are in the order of their names, and their rows are printed as answers are found ([`printer`]).

mod printer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fencewright::Question;
use fencewright::engines::Progress;
use fencewright::folder::{self, Asked, Batch, Outcome, Scribe, expected};
use fencewright::input::name_of;
use fencewright_report::table::{Row, Summary, Table};
use fencewright_report::{Source, json};

use crate::args::{CheckArgs, is_talkative};
use crate::check;
use crate::gathered::Gathered;
use crate::input::Unloadable;
use crate::output::Output;
use crate::status::Status;
use crate::{files, progress, stop};
use printer::{Line, Printer};

/// Whether a command line names a folder.
pub fn is_asked(args: &CheckArgs) -> bool {
    args.files.iter().any(|path| path.is_dir())
}

/// Checks all programs of all folders and all other files, and collects the answers for `--sarif` and `--html`.
pub fn run(args: &CheckArgs, question: Question, gathered: &mut Gathered, out: &mut Output) -> Status {
    let start = Instant::now();
    let one_program = [
        ("--certificate", args.settings.certificate.is_some()),
        ("--emit-boolean", args.settings.emit_boolean.is_some()),
    ];
    if let Some((option, _)) = one_program.into_iter().find(|(_, given)| *given) {
        out.refuse(args.settings.json, option, "it is about one program, not about a folder", None);
        return Status::Bad;
    }
    let refuse = |gathered: &mut Gathered, out: &mut Output, about: &str, why: &str| {
        gathered.fail(about, why.lines().next().unwrap_or_default());
        out.refuse(args.settings.json, about, why, None);
        Status::Bad
    };
    let programs = match folder::programs(&args.files) {
        Ok(programs) => programs,
        Err(unreadable) => return refuse(gathered, out, &unreadable.name, &unreadable.why),
    };
    if programs.is_empty() {
        let about = args.files.first().map_or_else(String::new, |path| name_of(path));
        return refuse(gathered, out, &about, "there are no programs in this folder");
    }
    let expectations: BTreeSet<PathBuf> =
        programs.iter().filter_map(|program| Some(program.file.parent()?.join(expected::NAME))).collect();
    for (option, path) in [("--sarif", &args.settings.sarif), ("--html", &args.settings.html)] {
        let read = programs.iter().map(|program| &program.file).chain(&expectations).map(PathBuf::as_path);
        if let Some(why) = path.as_ref().and_then(|path| files::is_also_read(path, read)) {
            out.refuse(args.settings.json, option, &why, None);
            // Discards the collected answers, so that no output file is written.
            *gathered = Gathered::default();
            return Status::Bad;
        }
    }
    let files: BTreeSet<&Path> = programs.iter().map(|program| program.file.as_path()).collect();
    let summary = Summary { programs: files.len(), ..Summary::default() };
    let of_model = |program: folder::Item| {
        args.settings.model.models().iter().map(move |&model| Asked { program: program.clone(), model })
    };
    let asked: Vec<Asked> = programs.into_iter().flat_map(of_model).collect();
    let names: BTreeSet<String> = asked.iter().map(Asked::name).collect();
    let part = gathered.part();
    let batch = Batch {
        asked,
        reader: args.settings.reader(),
        question,
        jobs: args.settings.jobs.get() as usize,
        warn_of_races: args.settings.json || part.is_wanted(),
    };
    let mut printer = Printer {
        json: args.settings.json,
        table: Table::new(names.iter().map(String::as_str), out.style),
        summary,
        status: Status::Fine,
        gathered,
        out,
    };
    printer.begin();
    let measured = Progress::default();
    let show = is_talkative(&args.settings) && progress::is_watched();
    let _search = stop::Search::begin();
    progress::shown(show, &measured, || {
        let count = batch.asked.len();
        let done = |done: usize| measured.say(format!("{done} of {count}"));
        let rows = Rows { json: args.settings.json, options: args.settings.of_engines(), part };
        batch.run(&rows, &measured, |events| printer.print_all(&batch.asked, events, done));
    });
    printer.summary.seconds = start.elapsed().as_secs_f64();
    printer.end()
}

/// Renders outcomes as rows of the table or lines of JSON, and for the output files that are written at the end.
struct Rows {
    json: bool,
    /// The options of engines that were set.
    options: json::RunOptions,
    /// An empty collection for these output files.
    part: Gathered,
}

impl Scribe for Rows {
    type Line = Line;
    type Part = Gathered;

    fn line(&self, asked: &Asked, outcome: Outcome<'_>) -> Line {
        let name = asked.name();
        match outcome {
            Outcome::Answer { program, model, checked } => {
                let source = Source::from(program.loaded());
                Line {
                    row: Box::new(Row { file: name, ..Row::new(source, model, checked) }),
                    json: match self.json {
                        true => json::verdict_with(source, model, checked, &self.options),
                        false => String::new(),
                    },
                    status: check::status(std::slice::from_ref(checked)),
                }
            }
            Outcome::Failure(failure) => {
                let unloadable = unloadable(&name, failure);
                let row = Box::new(Row::error(&name, &unloadable.reason()));
                Line { row, json: unloadable.failure.json(), status: unloadable.status }
            }
        }
    }

    fn part(&self, asked: &Asked, outcome: Outcome<'_>) -> Gathered {
        let mut gathered = self.part.part();
        match outcome {
            Outcome::Answer { program, model, checked } => {
                gathered.read(&program.loaded().sources);
                gathered.add(Some(&asked.name()), Source::from(program.loaded()), model, checked);
            }
            Outcome::Failure(failure) => {
                let name = asked.name();
                gathered.fail(&name, &unloadable(&name, failure).reason());
            }
        }
        gathered
    }
}

/// The message about a program without verdicts.
fn unloadable(name: &str, failure: &folder::Failure) -> Unloadable {
    let plain = |status| Unloadable {
        message: String::new(),
        failure: json::Failure::new(name, failure.to_string(), None),
        status,
    };
    match failure {
        folder::Failure::Unusable(_) => plain(Status::Bad),
        folder::Failure::Stopped => plain(Status::Unknown),
        folder::Failure::Error(error) => Unloadable::new(name, error),
    }
}
