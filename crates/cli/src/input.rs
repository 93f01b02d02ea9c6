//! Reading programs.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fencewright_engines::Limits;
use fencewright_lang::source::{MAX_FILE_BYTES, escape};
use fencewright_lang::{Loaded, Stop, load, load_unless};
use fencewright_report::json;

use crate::args::InputArgs;
use crate::files::Original;
use crate::output::{Output, complain, error_colour, write_error};
use crate::status::Status;

/// Of a longer file, enough is read to see that it is too long.
pub const MOST_BYTES: u64 = MAX_FILE_BYTES as u64 + 1;

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
    let mut bytes = Vec::new();
    if is_standard_input(path) {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
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
) -> Result<Loaded, Status> {
    load_quietly(path, input, limits).map(|loaded| *loaded).map_err(|unloadable| {
        write_error(&unloadable.message);
        out.tell_failure(json, &unloadable.failure);
        unloadable.status
    })
}

/// Loads a program, or says why that is not possible.
pub fn load_quietly(path: &Path, input: &InputArgs, limits: &Limits) -> Result<Box<Loaded>, Box<Unloadable>> {
    let name = display_name(path);
    let bytes = read(path).map_err(|error| unusable(&name, describe(&error), Status::Bad))?;
    load_bytes(&name, &bytes, input, limits)
}

/// Loads a program whose file is to be replaced later, and gives the file as it is now.
pub fn load_original(
    path: &Path,
    input: &InputArgs,
    limits: &Limits,
) -> Result<(Box<Loaded>, Original), Box<Unloadable>> {
    let name = display_name(path);
    let original =
        Original::read(path, MOST_BYTES).map_err(|error| unusable(&name, describe(&error), Status::Bad))?;
    Ok((load_bytes(&name, &original.bytes, input, limits)?, original))
}

/// Something about the whole file.
fn unusable(name: &str, why: String, status: Status) -> Unloadable {
    let message = format!("fencewright: {}: {why}\n", escape(name));
    Unloadable { message, failure: json::Failure::new(name, why, None), status }
}

fn load_bytes(
    name: &str,
    bytes: &[u8],
    input: &InputArgs,
    limits: &Limits,
) -> Result<Box<Loaded>, Box<Unloadable>> {
    // What was allocated is free again by the time of the message.
    let reason = OnceCell::new();
    let ask = || limits.exceeded(0).is_some_and(|why| reason.set(why).is_ok());
    match load_unless(&Stop::when(&ask), name, bytes, input.format.map(|f| f.0), &input.define) {
        Ok(loaded) => Ok(Box::new(loaded)),
        Err(load::Failure::Wrong(error)) => {
            let first = error.diagnostics.first();
            let position = first.map(|d| error.source.line_column(d.span.start as usize));
            let why = first.map_or_else(String::new, |d| d.message.clone());
            let message = error.source.render(&error.diagnostics, error_colour());
            let failure = json::Failure::new(name, why, position);
            Err(Box::new(Unloadable { message, failure, status: Status::Bad }))
        }
        Err(load::Failure::Stopped) => {
            let why = reason.into_inner().map_or_else(String::new, |reason| reason.to_string());
            Err(Box::new(unusable(name, format!("not even loaded: {why}"), Status::Unknown)))
        }
    }
}

/// Tells what a reader should know about an imported program.
pub fn tell_notes(loaded: &Loaded) {
    for note in &loaded.notes {
        complain(&loaded.source.name, &format!("note: {}", escape(note)));
    }
}

/// The name of a program: the one it gives itself, otherwise that of its file.
pub fn program_name(loaded: &Loaded) -> String {
    let stem = || Path::new(&loaded.source.name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    loaded.name.clone().or_else(stem).unwrap_or_else(|| loaded.source.name.clone())
}
