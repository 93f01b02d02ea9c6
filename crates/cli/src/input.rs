//! Reading programs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fencewright_lang::source::{MAX_FILE_BYTES, escape};
use fencewright_lang::{Loaded, load};
use fencewright_report::json::Failure;

use crate::args::InputArgs;
use crate::files::Original;
use crate::output::{Output, complain, error_colour, write_error};

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
    pub failure: Failure,
}

/// Loads a program; if that fails, says why on the standard error.
pub fn load_program(path: &Path, input: &InputArgs) -> Option<Loaded> {
    load_quietly(path, input)
        .map_err(|unloadable| write_error(&unloadable.message))
        .ok()
        .map(|loaded| *loaded)
}

/// Loads a program; if that fails, says why on the standard error, and if `json` is wanted on the standard output too.
pub fn load_or_tell(path: &Path, input: &InputArgs, json: bool, out: &mut Output) -> Option<Loaded> {
    match load_quietly(path, input) {
        Ok(loaded) => Some(*loaded),
        Err(unloadable) => {
            write_error(&unloadable.message);
            out.tell_failure(json, &unloadable.failure);
            None
        }
    }
}

/// Loads a program, or says why that is not possible.
pub fn load_quietly(path: &Path, input: &InputArgs) -> Result<Box<Loaded>, Box<Unloadable>> {
    let name = display_name(path);
    let bytes = read(path).map_err(|error| unreadable(&name, &error))?;
    load_bytes(&name, &bytes, input)
}

/// Loads a program whose file is to be replaced later, and gives the file as it is now.
pub fn load_original(path: &Path, input: &InputArgs) -> Result<(Box<Loaded>, Original), Box<Unloadable>> {
    let name = display_name(path);
    let original = Original::read(path, MOST_BYTES).map_err(|error| unreadable(&name, &error))?;
    Ok((load_bytes(&name, &original.bytes, input)?, original))
}

fn unreadable(name: &str, error: &io::Error) -> Unloadable {
    let why = describe(error);
    let message = format!("fencewright: {}: {why}\n", escape(name));
    Unloadable { message, failure: Failure::new(name, why, None) }
}

fn load_bytes(name: &str, bytes: &[u8], input: &InputArgs) -> Result<Box<Loaded>, Box<Unloadable>> {
    let loaded = load(name, bytes, input.format.map(|f| f.0), &input.define).map_err(|error| {
        let first = error.diagnostics.first();
        let position = first.map(|d| error.source.line_column(d.span.start as usize));
        let why = first.map_or_else(String::new, |d| d.message.clone());
        let message = error.source.render(&error.diagnostics, error_colour());
        Unloadable { message, failure: Failure::new(name, why, position) }
    })?;
    Ok(Box::new(loaded))
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
