//! `fencewright litmus`: the final states of litmus tests.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use fencewright::engines::explicit::{Options, finals};
use fencewright::input::{in_words, name_of};
use fencewright::lang::Loaded;
use fencewright::lang::source::escape;
use fencewright::program::{MemoryModel, Property, PropertyKind};
use fencewright_report::json::Failure;
use fencewright_report::litmus::{self, Entry, Outcome, Test};

use crate::args::{LitmusArgs, limits};
use crate::input::{Unloadable, load_quietly};
use crate::output::{Output, complain, write_error};
use crate::status::Status;
use crate::stop;

/// Runs all tests, several at a time.
pub fn run(args: &LitmusArgs, out: &mut Output) -> Status {
    let tester = Tester { args };
    let mut status = Status::Fine;
    let mut entries = Vec::new();
    let (files, failures) = files(&args.files);
    for failure in failures {
        complain(&failure.file, &failure.error);
        status = status.and(Status::Bad);
        entries.push(Entry::Failure(failure));
    }
    tester.run_all(&files, |result| {
        match result {
            Ok(of_file) => {
                for outcome in of_file {
                    status = status.and(match outcome.found.holds() {
                        Some(true) => Status::Fine,
                        Some(false) => Status::Violated,
                        None => Status::Unknown,
                    });
                    if args.settings.json {
                        entries.push(Entry::Outcome(Box::new(outcome)));
                    } else {
                        out.print(&outcome.text(out.style));
                        out.print("\n");
                    }
                }
                if !args.settings.json {
                    out.flush();
                }
            }
            Err(unloadable) => {
                write_error(&unloadable.message);
                status = status.and(unloadable.status);
                entries.push(Entry::Failure(unloadable.failure));
            }
        }
        !out.is_closed()
    });
    if args.settings.json {
        out.print(&litmus::json(&entries));
    }
    if out.is_closed() { status.and(Status::Unknown) } else { status }
}

/// Lists the tests: each file itself, and, for each directory, the `.litmus` files in it and below it, sorted by path. Also returns a failure for
/// each directory that cannot be read or has no such file.
fn files(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<Failure>) {
    let (mut files, mut failures) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        if let Err((place, error)) = search(path, &mut found) {
            failures.push(Failure::new(name_of(&place), in_words(&error), None));
        } else if found.is_empty() {
            let why = "there is no .litmus file in this directory";
            failures.push(Failure::new(name_of(path), why, None));
        }
        found.sort();
        files.append(&mut found);
    }
    (files, failures)
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

/// The result for one file: a summary for each of its conditions, or the reason why there is none.
type FileResult = Result<Vec<Outcome>, Box<Unloadable>>;

struct Tester<'a> {
    args: &'a LitmusArgs,
}

impl Tester<'_> {
    /// Tests all files and passes the results to `take` in the order of the files, until it returns false.
    fn run_all(&self, files: &[PathBuf], mut take: impl FnMut(FileResult) -> bool) {
        let next = AtomicUsize::new(0);
        let workers = if self.args.settings.jobs.get() == 0 {
            Options::default().workers
        } else {
            self.args.settings.jobs.get() as usize
        };
        let (results, arriving) = mpsc::channel();
        thread::scope(|scope| {
            let test = |results: mpsc::Sender<(usize, FileResult)>| {
                while let Some((number, file)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    files.get(number).map(|file| (number, file))
                } {
                    if results.send((number, self.test_file(file))).is_err() {
                        return;
                    }
                }
            };
            let start = |_: usize| {
                let results = results.clone();
                thread::Builder::new().spawn_scoped(scope, move || test(results)).is_ok()
            };
            // If fewer threads can be started than wanted, the tests just take longer.
            let started = (0..workers.min(files.len())).take_while(|&n| start(n)).count();
            if started == 0 {
                test(results.clone());
            }
            drop(results);
            let mut early = BTreeMap::new();
            let mut expected = 0;
            for (number, result) in arriving {
                early.insert(number, result);
                while let Some(result) = early.remove(&expected) {
                    expected += 1;
                    if !take(result) {
                        stop::token().cancel();
                        return;
                    }
                }
            }
        });
    }

    fn test_file(&self, path: &Path) -> FileResult {
        let program = load_quietly(path, &self.args.settings.reader(), &limits(&self.args.settings))?;
        let loaded = program.loaded();
        let properties = &loaded.program.properties;
        let conditions: Vec<&Property> =
            properties.iter().filter(|p| matches!(p.kind, PropertyKind::Finally(..))).collect();
        if conditions.is_empty() {
            let why = "the test states no condition about its final states";
            let message = format!(
                "fencewright: {}: {why}\n  help: add one: `exists (0:EAX=0)` in a litmus test, `finally NAME: exists p.r == 0;` in \
                 a .fw file\n",
                escape(loaded.sources.name())
            );
            let failure = Failure::new(loaded.sources.name(), why, None);
            return Err(Box::new(Unloadable { message, failure, status: Status::Bad }));
        }
        let several = conditions.len() > 1;
        let of_model = |&model: &MemoryModel| {
            let outcomes =
                conditions.iter().filter_map(|condition| self.test(loaded, condition, several, model));
            outcomes.collect::<Vec<_>>()
        };
        Ok(self.args.settings.model.models().iter().flat_map(of_model).collect())
    }

    /// Finds all final states of a test, restricted to the values that are shown; the condition is a `finally`.
    fn test(
        &self,
        loaded: &Loaded,
        condition: &Property,
        several: bool,
        model: MemoryModel,
    ) -> Option<Outcome> {
        let start = Instant::now();
        let test = Test::new(loaded, condition, model)?;
        let limits = limits(&self.args.settings);
        let _search = stop::Search::begin();
        let found = finals::decide(&test.condition, &limits);
        let name = loaded.title();
        let name = if several { format!("{name}:{}", condition.name) } else { name };
        Some(test.outcome(name, found, start.elapsed().as_secs_f64()))
    }
}
