//! Reading programs.

use std::cell::{OnceCell, RefCell};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fencewright_engines::{Limits, Reason};
use fencewright_lang::front_end::Open;
use fencewright_lang::source::{MAX_FILE_BYTES, escape, marked_like};
use fencewright_lang::{Loaded, Loader, Sources, Stop, load};
use fencewright_program::FileId;
use fencewright_report::json;

use crate::args::{AnalysisArgs, InputArgs};
use crate::files::Original;
use crate::gathered::Gathered;
use crate::output::{Output, complain, error_colour, write_error};
use crate::status::Status;
use crate::stop;

/// Of a longer file, enough is read to see that it is too long.
pub const MOST_BYTES: u64 = MAX_FILE_BYTES as u64 + 1;

/// How many warnings about a program are shown.
const MOST_WARNINGS: usize = 20;

/// What the standard input is called.
const STANDARD_INPUT: &str = "<stdin>";

/// Whether this path means the standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What to call a file.
pub fn display_name(path: &Path) -> String {
    if is_standard_input(path) { STANDARD_INPUT.into() } else { path.to_string_lossy().into_owned() }
}

/// The bytes of a file or of the standard input. Of an endless one, enough to see that it is too large.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MOST_BYTES)
}

/// The first bytes of a file or of the standard input, at most so many.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !is_standard_input(path) {
        return read_file(path, most);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a file that another one includes. To open a pipe would be to wait for somebody to write into it.
pub fn read_included(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?;
    match kind.is_file() || kind.is_dir() {
        true => read_file(path, MOST_BYTES),
        false => Err(io::Error::other("this is not a regular file")),
    }
}

/// What an error of the operating system means, in words.
pub fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::IsADirectory => "this is a directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// Why a program could not be loaded.
pub struct Unloadable {
    /// All messages, for the standard error.
    pub message: String,
    /// The first one, for programs.
    pub failure: json::Failure,
    /// Bad input, or input for which time or memory was not enough.
    pub status: Status,
    /// Whether it was memory: there may be enough when nothing else has some.
    pub is_pressed: bool,
}

impl Unloadable {
    /// Where and why, in one line.
    pub fn reason(&self) -> String {
        let json::Failure { error, line, column, .. } = &self.failure;
        let at = line.zip(*column).map(|(line, column)| format!("{line}:{column}: "));
        format!("{}{error}", at.unwrap_or_default())
    }
}

/// Whoever asks to stop while a program is loaded wants to have what was gathered about those before it. Reading what is no regular file may
/// take for ever, and does not stop when it is asked to.
pub fn stops_when_asked(path: &Path, gathered: &Gathered) -> Option<stop::Search> {
    let is_file = !is_standard_input(path) && fs::metadata(path).is_ok_and(|about| about.is_file());
    (is_file && gathered.is_wanted()).then(stop::Search::begin)
}

/// Examines all files, each with its own limits, which begin before it is loaded. If nobody reads the output any more, the remaining files
/// are not examined; after Ctrl-C they are only named.
pub fn each_file(
    args: &AnalysisArgs,
    out: &mut Output,
    mut examine: impl FnMut(&Path, &Limits, &mut Output) -> Status,
) -> Status {
    let mut status = Status::Fine;
    for path in &args.files {
        if out.is_closed() {
            return status.and(Status::Unknown);
        }
        status = status.and(if stop::is_asked() {
            out.tell_failure(args.json, &json::Failure::new(display_name(path), "stopped", None));
            Status::Unknown
        } else {
            examine(path, &args.limits_from_now(), out)
        });
    }
    status
}

/// Loads a program; if that fails, says why on the standard error.
pub fn load_program(path: &Path, input: &InputArgs, limits: &Limits) -> Result<Loaded, Status> {
    load_quietly(path, input, limits).map(|loaded| *loaded).map_err(|unloadable| {
        write_error(&unloadable.message);
        unloadable.status
    })
}

/// Loads a program; if that fails, says why on the standard error, and if `json` is wanted on the standard output too.
pub fn load_or_tell(
    path: &Path,
    input: &InputArgs,
    limits: &Limits,
    json: bool,
    out: &mut Output,
) -> Result<Loaded, Box<Unloadable>> {
    load_quietly(path, input, limits).map(|loaded| *loaded).inspect_err(|unloadable| {
        write_error(&unloadable.message);
        out.tell_failure(json, &unloadable.failure);
    })
}

/// Loads a program, or says why that is not possible.
pub fn load_quietly(path: &Path, input: &InputArgs, limits: &Limits) -> Result<Box<Loaded>, Box<Unloadable>> {
    let name = display_name(path);
    let bytes = read(path).map_err(|error| unusable(&name, describe(&error), Status::Bad))?;
    load_text(path, &bytes, input, limits)
}

/// Loads a program whose file has been read already.
pub fn load_text(
    path: &Path,
    bytes: &[u8],
    input: &InputArgs,
    limits: &Limits,
) -> Result<Box<Loaded>, Box<Unloadable>> {
    let open = |name: &str| read_included(Path::new(name)).map_err(|error| describe(&error));
    load_bytes(&display_name(path), bytes, &open, input, limits)
}

/// The files of a program as they were when it was loaded.
pub struct Originals {
    main: (PathBuf, Original),
    included: Vec<(PathBuf, Original)>,
}

impl Originals {
    /// Writes those files whose text has changed; whether there was one, or in words why it could not be written.
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
                .map_err(|error| format!("cannot write {which}: {}", describe(&error)))?;
            written = true;
        }
        Ok(written)
    }
}

/// Loads a program whose files are to be replaced later, and gives the files as they are now.
pub fn load_originals(
    path: &Path,
    input: &InputArgs,
    limits: &Limits,
) -> Result<(Box<Loaded>, Originals), Box<Unloadable>> {
    let name = display_name(path);
    let main =
        Original::read(path, MOST_BYTES).map_err(|error| unusable(&name, describe(&error), Status::Bad))?;
    let included = RefCell::new(Vec::new());
    let open = |name: &str| {
        let path = PathBuf::from(name);
        let original = Original::read(&path, MOST_BYTES).map_err(|error| describe(&error))?;
        let bytes = original.bytes.clone();
        included.borrow_mut().push((path, original));
        Ok(bytes)
    };
    let loaded = load_bytes(&name, &main.bytes, &open, input, limits)?;
    Ok((loaded, Originals { main: (path.to_owned(), main), included: included.into_inner() }))
}

/// Something about the whole file.
fn unusable(name: &str, why: String, status: Status) -> Unloadable {
    let message = format!("fencewright: {}: {why}\n", escape(name));
    Unloadable { message, failure: json::Failure::new(name, why, None), status, is_pressed: false }
}

fn load_bytes(
    name: &str,
    bytes: &[u8],
    open: &Open<'_>,
    input: &InputArgs,
    limits: &Limits,
) -> Result<Box<Loaded>, Box<Unloadable>> {
    // The reason is kept: by the time of the message the memory is free again, and asking once more would give another answer.
    let reason = OnceCell::new();
    let ask = || limits.exceeded(0).is_some_and(|why| reason.set(why).is_ok());
    let front_end = input.format.map(|format| format.0);
    let options = input.options();
    let loader = Loader { front_end, options: &options, stop: &Stop::when(&ask), open };
    match loader.load(name, bytes) {
        Ok(loaded) => Ok(Box::new(loaded)),
        Err(load::Failure::Wrong(error)) => {
            let first = error.diagnostics.first();
            let position = first.map(|d| error.sources.position(d.span));
            let why = first.map_or_else(String::new, |d| d.message.clone());
            let message = error.sources.render(&error.diagnostics, error_colour());
            let failure = json::Failure::new(name, why, position);
            Err(Box::new(Unloadable { message, failure, status: Status::Bad, is_pressed: false }))
        }
        Err(load::Failure::Stopped(at)) => {
            let reason = reason.into_inner();
            let is_pressed = matches!(reason, Some(Reason::Memory(_)));
            let why = reason.map_or_else(String::new, |reason| reason.to_string());
            let at = at.map_or_else(String::new, |at| format!(" (this far: {at})"));
            let unusable = unusable(name, format!("not even loaded{at}: {why}"), Status::Unknown);
            Err(Box::new(Unloadable { is_pressed, ..unusable }))
        }
    }
}

/// Tells what a reader should know about an imported program, and what somebody should look at.
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
