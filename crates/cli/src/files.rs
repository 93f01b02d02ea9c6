//! Writing files: all of the new contents, or none of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::input::{describe, display_name};
use crate::output::{Output, complain};
use crate::status::Status;

/// How many names are tried for the temporary file.
const TRIES: u32 = 100;

/// Replaces the contents of a file: they are written to a new file beside it, which then takes its name and its permissions.
/// A symbolic link stays one. What is not a regular file, a device for instance, is written to directly.
pub fn replace(path: &Path, contents: &str) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        return OpenOptions::new().write(true).open(&target)?.write_all(contents.as_bytes());
    }
    let (temporary, mut file) = temporary_beside(&target)?;
    let written = file
        .write_all(contents.as_bytes())
        .and_then(|()| old.map_or(Ok(()), |m| file.set_permissions(m.permissions())))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Prints a text, or writes it to a file if there is one.
pub fn deliver(text: &str, path: Option<&Path>, out: &mut Output) -> Status {
    let Some(path) = path else {
        out.print(text);
        return Status::Fine;
    };
    match replace(path, text) {
        Ok(()) => Status::Fine,
        Err(error) => {
            complain(&display_name(path), &format!("cannot write it: {}", describe(&error)));
            Status::Bad
        }
    }
}

/// A new file in the same directory.
fn temporary_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    for n in 0..TRIES {
        let temporary = target.with_file_name(format!(".{name}.{}.{n}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
