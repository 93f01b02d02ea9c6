//! Collects answers for the files that are written at the end: `--sarif` and `--html`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use fencewright::engines::Checked;
use fencewright::input::{in_words, is_standard_input};
use fencewright::lang::Sources;
use fencewright::program::MemoryModel;
use fencewright_report::Source;
use fencewright_report::html::Page;
use fencewright_report::sarif::Log;

use crate::output::Output;
use crate::status::Status;
use crate::{files, stop};

/// Answers in each requested format.
#[derive(Default)]
pub struct Gathered {
    log: Option<Log>,
    page: Option<Page>,
    /// Files included by the programs: they are never overwritten.
    included: BTreeSet<PathBuf>,
}

impl Gathered {
    /// An empty collection for these output files.
    pub fn new(sarif: Option<&PathBuf>, html: Option<&PathBuf>) -> Self {
        let (log, page) = (sarif.map(|_| Log::default()), html.map(|_| Page::default()));
        Gathered { log, page, included: BTreeSet::new() }
    }

    /// An empty collection for the same output files, to be appended later.
    pub fn part(&self) -> Self {
        let (log, page) = (self.log.as_ref().map(Log::part), self.page.as_ref().map(Page::part));
        Gathered { log, page, included: BTreeSet::new() }
    }

    /// Whether any output file was requested.
    pub fn is_wanted(&self) -> bool {
        self.log.is_some() || self.page.is_some()
    }

    /// Notes that a program was read from these files.
    pub fn read(&mut self, sources: &Sources) {
        if self.is_wanted() {
            self.included.extend(files::included(sources).map(Path::to_path_buf));
        }
    }

    /// The page, if one was requested.
    pub fn page(&mut self) -> Option<&mut Page> {
        self.page.as_mut()
    }

    /// Adds the answer about a property; `name` replaces the name of the program.
    pub fn add(&mut self, name: Option<&str>, source: Source<'_>, model: MemoryModel, checked: &Checked) {
        if let Some(log) = &mut self.log {
            log.add(source, model, checked);
        }
        if let Some(page) = &mut self.page {
            page.check(name, source, model, checked);
        }
    }

    /// Adds an error about a program without answers.
    pub fn fail(&mut self, file: &str, message: &str) {
        if let Some(log) = &mut self.log {
            log.fail(file, message);
        }
        if let Some(page) = &mut self.page {
            page.fail(file, message);
        }
    }

    /// Appends another collection.
    pub fn append(&mut self, other: Gathered) {
        if let (Some(log), Some(more)) = (&mut self.log, other.log) {
            log.append(more);
        }
        if let (Some(page), Some(more)) = (&mut self.page, other.page) {
            page.append(more);
        }
        self.included.extend(other.included);
    }

    /// Writes the requested files.
    pub fn write(
        self,
        sarif: Option<&PathBuf>,
        html: Option<&PathBuf>,
        json: bool,
        out: &mut Output,
    ) -> Status {
        // From here on, the first signal does not end the process, so that the answers found so far are written.
        let _search = stop::Search::begin();
        let complete = !stop::is_asked();
        let write = |path: &Path, contents: files::Contents<'_>| match files::is_also_read(
            path,
            self.included.iter().map(PathBuf::as_path),
        ) {
            Some(why) => Err(io::Error::other(why)),
            None => files::overwrite_with(path, contents),
        };
        let log = sarif
            .zip(self.log.as_ref())
            .map(|(path, log)| (path, write(path, &mut |to| log.write(complete, to))));
        let page = html
            .zip(self.page.as_ref())
            .map(|(path, page)| (path, write(path, &mut |to| page.write(complete, to))));
        let mut status = Status::Fine;
        for (path, written) in log.into_iter().chain(page) {
            if let Err(error) = written {
                let why = format!("cannot write it: {}", in_words(&error));
                out.refuse(json, &path.to_string_lossy(), &why, None);
                status = Status::Bad;
            }
        }
        status
    }
}

/// Whether the file named by an option can be written, given the input files. If not, prints why.
pub fn can_be_written(option: &str, path: &Path, inputs: &[PathBuf], json: bool, out: &mut Output) -> bool {
    let why = match is_standard_input(path) {
        true => Some("it is written to a file; one of this name is ./-".into()),
        false => files::is_also_read(path, inputs.iter().map(PathBuf::as_path)),
    };
    if let Some(why) = &why {
        out.refuse(json, option, why, None);
    }
    why.is_none()
}
