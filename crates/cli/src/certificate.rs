//! Writing certificates to files.

use std::path::{Path, PathBuf};

use fencewright_certify::Certificate;

use crate::files;
use crate::input::describe;
use crate::output::Output;
use crate::status::Status;

/// Whether a certificate of one of these inputs can be written to this file; if not, that is told.
pub fn can_be_written(path: &Path, inputs: &[PathBuf], json: bool, out: &mut Output) -> bool {
    if inputs.len() > 1 {
        out.refuse(json, "--certificate", "a certificate is about one program", None);
        return false;
    }
    let why = files::is_also_read(path, inputs.iter().map(PathBuf::as_path));
    if let Some(why) = &why {
        out.refuse(json, &path.to_string_lossy(), why, None);
    }
    why.is_none()
}

/// Writes a certificate; if that fails, it is told.
pub fn write(path: &Path, certificate: &Certificate, json: bool, out: &mut Output) -> Status {
    let mut text = Vec::new();
    match certificate.write(&mut text).and_then(|()| files::overwrite(path, &text)) {
        Ok(()) => Status::Fine,
        Err(error) => {
            let why = format!("cannot write it: {}", describe(&error));
            out.refuse(json, &path.to_string_lossy(), &why, None);
            Status::Bad
        }
    }
}
