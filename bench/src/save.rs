//! Files that are there as a whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::stop;

/// Makes a file with these contents, in place of the one that is there.
pub fn save(path: &Path, contents: &str) -> Result<(), String> {
    let explained = |error: io::Error| explained(path, &error);
    // Where a link leads to, if it leads anywhere.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if is_special(&target) {
        // A device, a pipe: there is no name to take.
        return std::fs::write(&target, contents).map_err(explained);
    }
    let _complete = stop::while_writing();
    let mut temporary = beside(&target).map_err(explained)?;
    temporary.write_all(contents.as_bytes()).map_err(explained)?;
    temporary.persist(&target).map_err(|error| explained(error.error))?;
    Ok(())
}

/// Whether a file can be made, found out before there is anything to put into it.
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

/// A temporary file in the folder of another one. Like every new file, less what the user's mask takes away.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// What went wrong with a file. The name of the temporary one means nothing to anybody.
fn explained(path: &Path, error: &io::Error) -> String {
    let error = error.to_string();
    format!("{}: {}", path.display(), error.split(" at path ").next().unwrap_or_default())
}
