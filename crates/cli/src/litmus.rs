//! `fencewright litmus`: the final states of litmus tests.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use fencewright_engines::explicit::{Explicit, Options, Order};
use fencewright_engines::{Answer, Engine, Progress, Task};
use fencewright_lang::Loaded;
use fencewright_lang::source::escape;
use fencewright_program::{Expr, MemoryModel, Observable, Property, PropertyKind, Span};
use fencewright_report::Source;
use fencewright_report::litmus::{self, Finals, Outcome};

use crate::args::LitmusArgs;
use crate::input::{describe, display_name, load_quietly, program_name};
use crate::output::{Output, complain, write_error};
use crate::status::Status;
use crate::stop;

/// Runs all tests, several at a time.
pub fn run(args: &LitmusArgs, out: &mut Output) -> Status {
    let mut status = Status::Fine;
    let files = files(&args.files, &mut status);
    let tester = Tester { args };
    let mut outcomes = Vec::new();
    tester.run_all(&files, |result| {
        match result {
            Ok(of_file) => {
                for outcome in of_file {
                    status = status.and(match outcome.holds() {
                        Some(true) => Status::Fine,
                        Some(false) => Status::Violated,
                        None => Status::Unknown,
                    });
                    if args.json {
                        outcomes.push(outcome);
                    } else {
                        out.print(&outcome.text(out.style));
                        out.print("\n");
                    }
                }
                if !args.json {
                    out.flush();
                }
            }
            Err(message) => {
                write_error(&message);
                status = status.and(Status::Bad);
            }
        }
        !out.is_closed()
    });
    if args.json {
        out.print(&litmus::json(&outcomes));
    }
    if out.is_closed() { status.and(Status::Unknown) } else { status }
}

/// The files that are meant: files as they are, directories searched for litmus tests in alphabetical order.
fn files(paths: &[PathBuf], status: &mut Status) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        if let Err((place, error)) = search(path, &mut found) {
            complain(&display_name(&place), &describe(&error));
            *status = status.and(Status::Bad);
        } else if found.is_empty() {
            complain(&display_name(path), "there is no .litmus file in this directory");
            *status = status.and(Status::Bad);
        }
        found.sort();
        files.append(&mut found);
    }
    files
}

/// Looks for litmus tests in a directory and the directories in it; symbolic links to directories are not followed.
fn search(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let failed = |error| (directory.clone(), error);
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if entry.file_type().map_err(failed)?.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "litmus") && path.is_file() {
                found.push(path);
            }
        }
    }
    Ok(())
}

/// What became of one file: a summary for each of its conditions, or what is wrong with it.
type FileResult = Result<Vec<Outcome>, String>;

struct Tester<'a> {
    args: &'a LitmusArgs,
}

impl Tester<'_> {
    /// Tests all files and gives the results to `take` in the order of the files, until that says that it is enough.
    fn run_all(&self, files: &[PathBuf], mut take: impl FnMut(FileResult) -> bool) {
        let next = AtomicUsize::new(0);
        let workers = if self.args.jobs == 0 { Options::default().workers } else { self.args.jobs.into() };
        let (results, arriving) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..workers.min(files.len()) {
                let (results, next) = (results.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(file) = files.get(number) else { return };
                        if results.send((number, self.test_file(file))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(results);
            let mut early = BTreeMap::new();
            let mut expected = 0;
            for (number, result) in arriving {
                early.insert(number, result);
                while let Some(result) = early.remove(&expected) {
                    expected += 1;
                    if !take(result) {
                        stop::token().store(true, Ordering::Relaxed);
                        return;
                    }
                }
            }
        });
    }

    fn test_file(&self, path: &Path) -> FileResult {
        let loaded = load_quietly(path, &self.args.input).map_err(|unloadable| unloadable.message)?;
        let properties = &loaded.program.properties;
        let conditions: Vec<&Property> =
            properties.iter().filter(|p| matches!(p.kind, PropertyKind::Finally(..))).collect();
        if conditions.is_empty() {
            return Err(format!(
                "fencewright: {}: the test states no condition about its final states\n  help: add one: `exists (0:EAX=0)` in \
                 a litmus test, `finally NAME: exists p.r == 0;` in a .fw file\n",
                escape(&loaded.source.name)
            ));
        }
        let mut outcomes = Vec::new();
        for &model in self.args.model.models() {
            for condition in &conditions {
                outcomes.push(self.test(&loaded, condition, conditions.len() > 1, model));
            }
        }
        Ok(outcomes)
    }

    /// Finds all final states of a test, as far as its condition looks at them.
    fn test(&self, loaded: &Loaded, condition: &Property, several: bool, model: MemoryModel) -> Outcome {
        let start = Instant::now();
        let mut observed = condition.formula().map(litmus::observed).unwrap_or_default();
        if observed.is_empty() {
            // The condition looks at nothing, but it matters whether there is a final state.
            observed.extend(
                loaded
                    .program
                    .threads()
                    .map(|(id, thread)| Observable::At(id, thread.labelled("end")))
                    .take(1),
            );
        }
        // It holds of everything: the answer says whether all states were seen, and if not, why.
        let probe = Property {
            name: String::new(),
            kind: PropertyKind::Never(Expr::Const(0)),
            span: Span::default(),
        };
        let mut task = Task::new(&loaded.program, model, vec![probe]);
        task.observed = observed;
        let limits = self.args.limits.starting_now();
        let _search = stop::Search::begin();
        let engine =
            Explicit { options: Options { order: Order::DepthFirst, workers: 1, ..Options::default() } };
        let report = engine.run(&task, &limits, &Progress::default());
        let reason = report.answers.iter().find_map(|answer| match answer {
            Answer::Unknown(reason) => Some(reason.clone()),
            _ => None,
        });
        let name = program_name(loaded);
        let name = if several { format!("{name}:{}", condition.name) } else { name };
        let seconds = start.elapsed().as_secs_f64();
        let found = Finals { observed: &task.observed, values: &report.finals, reason, seconds };
        Outcome::new(Source::from(loaded), name, model, condition, found)
    }
}
