//! Writing certificates to files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use fencewright::certify::Certificate;
use fencewright::certify::certificate::FORMAT;
use fencewright::input::in_words;

use crate::files;
use crate::output::{Output, complain};
use crate::status::Status;

/// Whether a certificate for these inputs can be written to this file. If not, prints why.
pub fn can_be_written(path: &Path, inputs: &[PathBuf], json: bool, out: &mut Output) -> bool {
    if inputs.len() > 1 {
        out.refuse(json, "--certificate", "a certificate is about one program", None);
        return false;
    }
    let why = match path == Path::new("-") {
        true => Some("a certificate is written to a file; one of this name is ./-".into()),
        false => files::is_also_read(path, inputs.iter().map(PathBuf::as_path)),
    };
    if let Some(why) = &why {
        out.refuse(json, &path.to_string_lossy(), why, None);
    }
    why.is_none()
}

/// Writes a certificate. Failures are reported.
pub fn write(path: &Path, certificate: &Certificate, json: bool, out: &mut Output) -> Status {
    match files::overwrite_with(path, &mut |to| certificate.write(to)) {
        Ok(()) => Status::Fine,
        Err(error) => {
            let why = format!("cannot write it: {}", in_words(&error));
            out.refuse(json, &path.to_string_lossy(), &why, None);
            Status::Bad
        }
    }
}

/// Reports why there is no certificate. If the file has an old certificate, it is removed, so that it is not mistaken for a new one; any other file
/// is kept.
pub fn tell_none(path: &Path, why: &str, json: bool, out: &mut Output) -> Status {
    let name = path.to_string_lossy();
    if !is_certificate(path) {
        complain(&name, &format!("no certificate: {why}"));
        return Status::Fine;
    }
    match fs::remove_file(path) {
        Ok(()) => {
            complain(&name, &format!("no certificate: {why}; the one that was there is removed"));
            Status::Fine
        }
        Err(error) => {
            let why =
                format!("no certificate: {why}; the one that is there is an old one: {}", in_words(&error));
            out.refuse(json, &name, &why, None);
            Status::Bad
        }
    }
}

/// Whether a regular file begins like a certificate.
fn is_certificate(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let is_file = fs::metadata(path).is_ok_and(|file| file.is_file());
    let read = is_file && File::open(path).and_then(|file| file.take(64).read_to_end(&mut beginning)).is_ok();
    read && String::from_utf8_lossy(&beginning).contains(FORMAT)
}
