//! Writes files so that either the new contents are complete or the old contents are kept.
//!
//! New contents are written to a new file beside the old one; then the new file gets the name, the owner and the permissions of the old one. If the
//! file has other names too, if its owner or its permissions cannot be kept, or if the directory cannot be written to, the contents are written into
//! the old file itself instead; if that fails half way, the old contents are restored. A file that was read before ([`Original`]) is replaced only if
//! it has not been changed or replaced since then.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fencewright::input::{in_words, is_standard_input, name_of};
use fencewright::lang::Sources;
use fencewright::program::FileId;

use crate::output::{Output, complain};
use crate::status::Status;
use crate::stop;

/// Maximum number of names tried for the temporary file.
const TRIES: u32 = 100;

/// A file as it was when it was read.
pub struct Original {
    /// The contents at that time.
    pub bytes: Vec<u8>,
    /// The canonical path of the file when it was read.
    place: PathBuf,
    identity: Identity,
}

impl Original {
    /// Reads at most `most` bytes of a file that will be replaced later. The file must be regular.
    pub fn read(path: &Path, most: u64) -> io::Result<Self> {
        // Opening a pipe would block until another process writes to it.
        let kind = fs::metadata(path)?;
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !kind.is_file() {
            return Err(refusal("this is not a regular file, so it cannot be written back"));
        }
        let file = File::open(path)?;
        let identity = Identity::of(&file.metadata()?);
        let place = fs::canonicalize(path)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(Original { bytes, place, identity })
    }

    /// Replaces the contents, unless they have changed since the file was read, or the path now leads to a different file.
    pub fn replace(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        replace(path, &mut |to| to.write_all(contents), Some(self))
    }

    /// Whether `file` is a file that may be replaced: the file that was read, or a new file with the same path (some editors write a new file each
    /// time).
    fn is_at(&self, place: &Path, file: &Metadata) -> bool {
        self.identity == Identity::of(file) || self.place == place
    }

    fn check_contents(&self, bytes: &[u8]) -> io::Result<()> {
        match bytes == self.bytes {
            true => Ok(()),
            false => Err(refusal("it was changed meanwhile; nothing was written")),
        }
    }
}

/// Prints a text, or writes it to a file if there is one.
pub fn deliver(text: &str, path: Option<&Path>, out: &mut Output) -> Status {
    let Some(path) = path else {
        out.print(text);
        return Status::Fine;
    };
    match overwrite(path, text.as_bytes()) {
        Ok(()) => Status::Fine,
        Err(error) => {
            complain(&name_of(path), &format!("cannot write it: {}", in_words(&error)));
            Status::Bad
        }
    }
}

/// Writes a file, which replaces an existing one. Special files, such as devices, are written to directly.
pub fn overwrite(path: &Path, contents: &[u8]) -> io::Result<()> {
    overwrite_with(path, &mut |to| to.write_all(contents))
}

/// Like [`overwrite`], but the contents are produced while they are written, because they may not fit into memory.
pub fn overwrite_with(path: &Path, contents: Contents<'_>) -> io::Result<()> {
    replace(path, contents, None)
}

/// A function that writes the contents of a file; it may be called more than once.
pub type Contents<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// Writes all contents into a file. If producing them panics, this returns an error, so that the old contents are restored.
fn fill(file: &File, contents: Contents<'_>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    let made = catch_unwind(AssertUnwindSafe(|| contents(&mut to)));
    made.unwrap_or_else(|_| Err(refusal("a bug in fencewright")))?;
    to.flush()
}

/// The message if an output file is one of the input files.
pub fn is_also_read<'p>(output: &Path, inputs: impl IntoIterator<Item = &'p Path>) -> Option<String> {
    let of = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file).map(|m| Identity::of(&m));
    let written = of(output)?;
    let standard_input = Path::new("/dev/stdin");
    let same =
        |path: &&Path| of(if is_standard_input(path) { standard_input } else { path }) == Some(written);
    let input = inputs.into_iter().find(same)?;
    Some(format!("this file is also read (as {}), so nothing is written to it", name_of(input)))
}

/// The files that a program includes, as far as loading has read them.
pub fn included(sources: &Sources) -> impl Iterator<Item = &Path> {
    let files = sources.iter().filter(|(id, _)| *id != FileId::MAIN && !sources.is_built_in(*id));
    files.map(|(_, file)| Path::new(&file.name))
}

/// If two of these output files are the same, the second option and a message.
pub fn are_the_same<'o>(outputs: &[(&'o str, &Option<PathBuf>)]) -> Option<(&'o str, String)> {
    let given: Vec<_> =
        outputs.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?))).collect();
    // An existing file that is not regular, such as a terminal, may be written to twice, so it is ignored.
    let place = |path: &Path| match fs::canonicalize(path) {
        Ok(place) => fs::metadata(&place).is_ok_and(|about| about.is_file()).then_some(place),
        Err(_) => Some(path.to_path_buf()),
    };
    given.iter().enumerate().find_map(|(n, (option, path))| {
        let own = place(path)?;
        let (other, _) = given[..n].iter().find(|(_, other)| place(other).as_ref() == Some(&own))?;
        Some((*option, format!("{other} names the same file")))
    })
}

fn replace(path: &Path, contents: Contents<'_>, original: Option<&Original>) -> io::Result<()> {
    let found = fs::canonicalize(path).and_then(|place| Ok((fs::metadata(&place)?, place)));
    let (old, target) = match found {
        Ok((old, place)) => (Some(old), place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (None, path.to_path_buf()),
        Err(error) => return Err(error),
    };
    if let Some(original) = original {
        let old = old.as_ref().ok_or_else(|| refusal("the file is gone; nothing was written"))?;
        if !old.is_file() || !original.is_at(&target, old) {
            return Err(refusal("it is now another file; nothing was written"));
        }
    }
    match old {
        Some(old) if old.is_file() => {
            let _whole = stop::while_writing();
            replace_file(&target, &old, contents, original)
        }
        Some(_) => fill(&OpenOptions::new().write(true).open(&target)?, contents),
        // The path is a symbolic link to a missing file: the missing file is created, and the link stays.
        None if fs::symlink_metadata(&target).is_ok() => fill(&File::create(&target)?, contents),
        None => {
            let _whole = stop::while_writing();
            let (temporary, file) = Temporary::beside(&target, None)?;
            temporary.fill(&file, contents)?;
            temporary.rename(&target)
        }
    }
}

fn replace_file(
    target: &Path,
    old: &Metadata,
    contents: Contents<'_>,
    original: Option<&Original>,
) -> io::Result<()> {
    if old.permissions().readonly() {
        return Err(refusal("the file is read-only"));
    }
    // A file that may not be written to is not replaced either, even if the directory would allow it: opening it fails.
    let mut file = OpenOptions::new().read(true).write(true).open(target)?;
    let mut before = Vec::new();
    if !has_other_names(old)
        && let Ok((temporary, new)) = Temporary::beside(target, Some(old))
    {
        temporary.fill(&new, contents)?;
        if keep_owner(&new, old).is_ok() && new.set_permissions(old.permissions()).is_ok() {
            new.sync_all()?;
            if let Some(original) = original {
                file.read_to_end(&mut before)?;
                original.check_contents(&before)?;
            }
            return temporary.rename(target);
        }
    }
    file.read_to_end(&mut before)?;
    if let Some(original) = original {
        original.check_contents(&before)?;
    }
    write_into(&mut file, contents).inspect_err(|_| {
        // Errors of restoring the old contents are ignored, because the first error is reported.
        let _ = write_into(&mut file, &mut |to| to.write_all(&before));
    })
}

/// Replaces the contents of an open file.
fn write_into(file: &mut File, contents: Contents<'_>) -> io::Result<()> {
    file.rewind()?;
    fill(file, contents)?;
    let length = file.stream_position()?;
    file.set_len(length)?;
    file.sync_all()
}

/// An incomplete file, which is removed unless it is renamed.
struct Temporary(PathBuf);

impl Temporary {
    /// Creates a new file in the same directory. If this file will replace another one, only the owner can read it until it is complete. The name is
    /// short, because the name of the replaced file may already have the maximum length.
    fn beside(target: &Path, replaced: Option<&Metadata>) -> io::Result<(Self, File)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if replaced.is_some() {
            options.mode(0o600);
        }
        for n in 0..TRIES {
            let path = target.with_file_name(format!(".fencewright-{}-{n}.tmp", std::process::id()));
            match options.open(&path) {
                Ok(file) => return Ok((Temporary(path), file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn fill(&self, file: &File, contents: Contents<'_>) -> io::Result<()> {
        fill(file, contents)?;
        file.sync_all()
    }

    fn rename(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.0, target)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // This fails if the file was renamed, because then there is nothing to remove; the failure is harmless.
        let _ = fs::remove_file(&self.0);
    }
}

fn refusal(why: &str) -> io::Error {
    io::Error::other(why)
}

/// Device and inode: equal for two names of the same file, and only for them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    fn of(file: &Metadata) -> Self {
        Identity(file.dev(), file.ino())
    }
}

/// Whether a file has more than one name.
fn has_other_names(file: &Metadata) -> bool {
    file.nlink() > 1
}

/// Gives a new file the owner and the group of the old one.
fn keep_owner(new: &File, old: &Metadata) -> io::Result<()> {
    let is = new.metadata()?;
    match (is.uid(), is.gid()) == (old.uid(), old.gid()) {
        true => Ok(()),
        false => fchown(new, Some(old.uid()), Some(old.gid())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_reads_what_is_half_written() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let target = directory.path().join("secret.fw");
        fs::write(&target, "old").expect("written");
        let old = fs::metadata(&target).expect("there");
        let (temporary, file) = Temporary::beside(&target, Some(&old)).expect("created");
        assert_eq!(file.metadata().expect("there").mode() & 0o777, 0o600);
        let path = temporary.0.clone();
        drop(temporary);
        assert!(!path.exists(), "what does not get its name is removed");
    }

    #[test]
    fn an_editor_may_have_written_the_same_again() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.fw");
        fs::write(&path, "old").expect("written");
        let original = Original::read(&path, 100).expect("read");
        fs::write(directory.path().join("b.fw"), "old").expect("written");
        fs::rename(directory.path().join("b.fw"), &path).expect("renamed");
        original.replace(&path, b"new").expect("the same contents under the same name");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert!(original.replace(&path, b"newer").is_err(), "it is no longer what was read");
        assert_eq!(fs::read(&path).expect("read"), b"new");
    }
}
