//! Atomic file writes: a file is replaced as a whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::stop;

/// Writes a file, replacing the existing one.
pub fn save(path: &Path, contents: &str) -> Result<(), String> {
    let explained = |error: io::Error| explained(path, &error);
    // If the path is a symbolic link, its target is replaced, not the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if is_special(&target) {
        // A device or a pipe cannot be replaced, so it is written directly.
        return std::fs::write(&target, contents).map_err(explained);
    }
    let _complete = stop::while_writing();
    let mut temporary = beside(&target).map_err(explained)?;
    temporary.write_all(contents.as_bytes()).map_err(explained)?;
    temporary.persist(&target).map_err(|error| explained(error.error))?;
    Ok(())
}

/// Checks whether a file can be written, before the measurements for it begin.
pub fn can_be_saved(path: &Path) -> Result<(), String> {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if target.is_dir() {
        return Err(format!("{}: it is a folder", path.display()));
    }
    let _complete = stop::while_writing();
    if is_special(&target) {
        Ok(())
    } else {
        beside(&target).map(drop).map_err(|error| explained(path, &error))
    }
}

fn is_special(target: &Path) -> bool {
    std::fs::metadata(target).is_ok_and(|found| !found.is_file())
}

/// A temporary file in the folder of the target, with the default permissions of new files, restricted by the umask.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// An error message about a file, without the name of the temporary file.
fn explained(path: &Path, error: &io::Error) -> String {
    let error = error.to_string();
    format!("{}: {}", path.display(), error.split(" at path ").next().unwrap_or_default())
}
