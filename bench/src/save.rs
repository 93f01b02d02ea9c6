//! Files that are there as a whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::stop;

/// Makes a file with these contents, in place of the one that is there.
pub fn save(path: &Path, contents: &str) -> io::Result<()> {
    let explained = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    // Where a link leads to, if it leads anywhere.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if std::fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        // A device, a pipe: there is no name to take.
        return std::fs::write(&target, contents).map_err(explained);
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let _complete = stop::while_writing();
    // Like every new file, less what the user's mask takes away.
    let mut temporary = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(explained)?;
    temporary.write_all(contents.as_bytes()).map_err(explained)?;
    temporary.persist(&target).map_err(|error| explained(error.error))?;
    Ok(())
}
