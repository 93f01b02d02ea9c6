//! Reading programs, and writing their texts back after an edit.

use std::cell::RefCell;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fencewright::engines::Limits;
use fencewright::input::{MOST_BYTES, in_words, is_standard_input, name_of};
use fencewright::lang::source::{escape, marked_like};
use fencewright::lang::{Loaded, Sources};
use fencewright::program::FileId;
use fencewright::settings::Settings;
use fencewright::{Error, Program, Reader, folder};
use fencewright_report::json;

use crate::args::limits;
use crate::files::Original;
use crate::gathered::Gathered;
use crate::output::{Output, complain, error_colour, write_error};
use crate::status::Status;
use crate::stop;

/// Maximum number of warnings shown about a program.
const MOST_WARNINGS: usize = 20;

/// The reason why a program could not be loaded.
pub struct Unloadable {
    /// All messages, for the standard error.
    pub message: String,
    /// The first message, for JSON.
    pub failure: json::Failure,
    /// The exit status: `Bad` for bad input, `Unknown` if time or memory ran out.
    pub status: Status,
}

impl Unloadable {
    /// The message for an error about the program with this name.
    pub fn new(name: &str, error: &Error) -> Unloadable {
        let (why, status) = match error {
            Error::Text(error) => {
                let first = error.diagnostics.first();
                let position = first.map(|d| error.sources.position(d.span));
                let why = first.map_or_else(String::new, |d| d.message.clone());
                let message = error.sources.render(&error.diagnostics, error_colour());
                let failure = json::Failure::new(name, why, position);
                return Unloadable { message, failure, status: Status::Bad };
            }
            Error::File(path, error) if error.kind() == ErrorKind::IsADirectory => {
                (format!("{}{}", in_words(error), of_folder(path)), Status::Bad)
            }
            Error::File(_, error) => (in_words(error), Status::Bad),
            Error::Unfinished { .. } => (error.to_string(), Status::Unknown),
            _ => (in_full(error), Status::Bad),
        };
        let message = format!("fencewright: {}: {why}\n", escape(name));
        let first = why.lines().next().unwrap_or_default();
        Unloadable { message, failure: json::Failure::new(name, first, None), status }
    }

    /// Position and message in one line.
    pub fn reason(&self) -> String {
        let json::Failure { error, line, column, .. } = &self.failure;
        let at = line.zip(*column).map(|(line, column)| format!("{line}:{column}: "));
        format!("{}{error}", at.unwrap_or_default())
    }
}

/// Help for programs without properties.
const NO_PROPERTY: &str = "
  help: say what should hold, for instance
            forbid NAME: p@critical && q@critical;          no reachable state is like this
            invariant NAME: x >= 0;                         every reachable state is
            finally NAME: never p.r == 0 && q.r == 0;       no final state is
            assert r == 1;                                  inside a thread
        or ask for freedom from deadlock: --property deadlock";

/// Help where a folder is given instead of a program; only `check` reads folders.
fn of_folder(path: &Path) -> String {
    let folder = escape(&name_of(path));
    let programs = folder::programs(&[path.to_path_buf()]).unwrap_or_default();
    let first = programs.first().map(|program| escape(&name_of(&program.file)));
    let first = first.unwrap_or_else(|| format!("{folder}/FILE"));
    format!(
        "\n  help: this command takes programs, such as {first}; `fencewright check {folder}` checks all of a folder"
    )
}

/// The message of an error, followed by the options that help.
pub fn in_full(error: &Error) -> String {
    match error {
        Error::NoProperty => format!("{error}{NO_PROPERTY}"),
        Error::Setting("compilations", why) => format!("-p: {why}"),
        Error::Setting(name, why) => format!("--{name}: {why}"),
        _ => error.to_string(),
    }
}

/// If answers are collected for an output file, makes a signal stop the loading of a program instead of the process, so that the answers about
/// earlier programs are still written. Only for regular files, because reading a pipe may block forever and cannot be stopped.
pub fn stops_when_asked(path: &Path, gathered: &Gathered) -> Option<stop::Search> {
    let is_file = !is_standard_input(path) && fs::metadata(path).is_ok_and(|about| about.is_file());
    (is_file && gathered.is_wanted()).then(stop::Search::begin)
}

/// Calls a function for each file, with new limits that start before the file is loaded. The remaining files are skipped if the output is closed, and
/// after Ctrl-C; then each of them counts as unknown, and is reported as stopped if the output is JSON.
pub fn each_file(
    files: &[PathBuf],
    settings: &Settings,
    out: &mut Output,
    mut examine: impl FnMut(&Path, &Limits, &mut Output) -> Status,
) -> Status {
    let mut status = Status::Fine;
    for path in files {
        if out.is_closed() {
            return status.and(Status::Unknown);
        }
        status = status.and(if stop::is_asked() {
            out.tell_failure(settings.json, &json::Failure::new(name_of(path), "stopped", None));
            Status::Unknown
        } else {
            examine(path, &limits(settings), out)
        });
    }
    status
}

/// Loads a program; if that fails, reports the reason on the standard error.
pub fn load_program(path: &Path, reader: &Reader, limits: &Limits) -> Result<Program, Status> {
    load_quietly(path, reader, limits).map_err(|unloadable| {
        write_error(&unloadable.message);
        unloadable.status
    })
}

/// Loads a program; if that fails, reports the reason on the standard error, and with `json` on the standard output too.
pub fn load_or_tell(
    path: &Path,
    reader: &Reader,
    limits: &Limits,
    json: bool,
    out: &mut Output,
) -> Result<Program, Box<Unloadable>> {
    load_quietly(path, reader, limits).inspect_err(|unloadable| {
        write_error(&unloadable.message);
        out.tell_failure(json, &unloadable.failure);
    })
}

/// Loads a program, or returns the reason why that is not possible.
pub fn load_quietly(path: &Path, reader: &Reader, limits: &Limits) -> Result<Program, Box<Unloadable>> {
    let read = reader.within(limits).open(path);
    read.map_err(|error| Box::new(Unloadable::new(&name_of(path), &error)))
}

/// The files of a program with the contents they had when it was loaded.
pub struct Originals {
    main: (PathBuf, Original),
    included: Vec<(PathBuf, Original)>,
}

impl Originals {
    /// Writes the files whose text has changed. Returns whether there were any; an error is the reason why a file could not be written.
    pub fn write(&self, old: &Sources, new: &Sources) -> Result<bool, String> {
        let mut written = false;
        for ((old_id, old), (_, new)) in
            old.iter().zip(new.iter()).filter(|((_, a), (_, b))| a.text != b.text)
        {
            let included = || self.included.iter().find(|(path, _)| path.as_os_str() == old.name.as_str());
            let found = if old_id == FileId::MAIN { Some(&self.main) } else { included() };
            let (path, original) =
                found.ok_or_else(|| format!("cannot write {}: it was not read", old.name))?;
            let which = if old_id == FileId::MAIN { "it" } else { &old.name };
            original
                .replace(path, marked_like(&original.bytes, &new.text).as_bytes())
                .map_err(|error| format!("cannot write {which}: {}", in_words(&error)))?;
            written = true;
        }
        Ok(written)
    }
}

/// Loads a program whose files will be replaced later, and records the present contents of these files.
pub fn load_originals(
    path: &Path,
    reader: &Reader,
    limits: &Limits,
) -> Result<(Program, Originals), Box<Unloadable>> {
    let failed = |error: Error| Box::new(Unloadable::new(&name_of(path), &error));
    let main =
        Original::read(path, MOST_BYTES).map_err(|error| failed(Error::File(path.to_owned(), error)))?;
    let included = RefCell::new(Vec::new());
    let open = |name: &str| {
        let path = PathBuf::from(name);
        let original = Original::read(&path, MOST_BYTES).map_err(|error| in_words(&error))?;
        let bytes = original.bytes.clone();
        included.borrow_mut().push((path, original));
        Ok(bytes)
    };
    let program = reader.within(limits).read_with(&name_of(path), &main.bytes, &open).map_err(failed)?;
    Ok((program, Originals { main: (path.to_owned(), main), included: included.into_inner() }))
}

/// Prints the assumptions about functions that are part of a translated program.
pub fn tell_assumed(loaded: &Loaded) {
    for assumed in &loaded.facts.assumed {
        complain(loaded.sources.name(), &format!("assumed: {}", escape(&assumed.to_string())));
    }
}

/// Prints the notes about a program, its first warnings, and the number of the other warnings.
pub fn tell_notes(loaded: &Loaded) {
    for note in &loaded.notes {
        complain(loaded.sources.name(), &format!("note: {}", escape(note)));
    }
    for warning in loaded.warnings.iter().take(MOST_WARNINGS) {
        let at = loaded.sources.position(warning.span);
        write_error(&format!("fencewright: {at}: warning: {}\n", escape(&warning.message)));
    }
    if let Some(more) = loaded.warnings.len().checked_sub(MOST_WARNINGS + 1) {
        complain(loaded.sources.name(), &format!("... and {} more warnings", more + 1));
    }
}
