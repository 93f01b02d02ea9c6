//! Reads files, and the standard input if the path is `-`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use fencewright_lang::source::MAX_FILE_BYTES;

/// Maximum number of bytes read from a file: one more than a program may have, so that a longer file is recognised as too long.
pub const MOST_BYTES: u64 = MAX_FILE_BYTES as u64 + 1;

/// The name of the standard input in messages.
const STANDARD_INPUT: &str = "<stdin>";

/// Whether this path means the standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of a file in messages.
pub fn name_of(path: &Path) -> String {
    if is_standard_input(path) { STANDARD_INPUT.into() } else { path.to_string_lossy().into_owned() }
}

/// Reads a file or the standard input, at most [`MOST_BYTES`] of it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !is_standard_input(path) {
        return read_file(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that a program includes. The file must be regular: opening a pipe would block until another process writes to it.
pub fn read_included(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?;
    match kind.is_file() || kind.is_dir() {
        true => read_file(path),
        false => Err(io::Error::other("this is not a regular file")),
    }
}

/// An error of the operating system in words.
pub fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::IsADirectory => "this is a directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
