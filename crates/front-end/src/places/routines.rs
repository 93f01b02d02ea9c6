//! The functions of a source text, and the files that edits must not change: both decide where a fence belongs.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf, absolute};

use fencewright_program::{FileId, Span};
use fencewright_text::Sources;

/// A function of the source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Its name.
    pub name: String,
    /// The position of its body.
    pub body: Span,
    /// Whether its definition shows that it is a library function: it is `inline`, or lies in another file than the function `main` (if there is no
    /// `main`, every function counts).
    pub library: bool,
}

/// The function that contains a statement. Functions do not overlap.
pub fn routine_at(routines: &[Routine], statement: Span) -> Option<&Routine> {
    routines.iter().find(|routine| routine.body.covers(statement))
}

/// The files that no edit may change. An edit may change the main file, the other `given` files, files of the user in or below the folders of these,
/// and all files in or below an `allowed` folder; but never a file built into the front end.
pub fn closed(sources: &Sources, given: &[String], allowed: &[String]) -> BTreeSet<FileId> {
    let allowed: Vec<PathBuf> = allowed.iter().map(|folder| resolved(Path::new(folder))).collect();
    let main = std::iter::once(sources.name());
    let folder_of = |name: &str| resolved(Path::new(name).parent().unwrap_or(Path::new("")));
    let own: Vec<PathBuf> = main.chain(given.iter().map(String::as_str)).map(folder_of).collect();
    let is_given = |name: &str| given.iter().any(|given| given == name);
    let is_open = |(id, name): (FileId, &str)| {
        let path = resolved(Path::new(name));
        let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        let own = || id == FileId::MAIN || is_given(name) || !sources.is_system(id) && below(&own);
        !sources.is_built_in(id) && (own() || below(&allowed))
    };
    let files = sources.iter().map(|(id, file)| (id, file.name.as_str()));
    files.filter(|file| !is_open(*file)).map(|(id, _)| id).collect()
}

/// The absolute path with `..` resolved by name: symbolic links are not followed.
fn resolved(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut resolved = PathBuf::new();
    for component in absolute(path).as_deref().unwrap_or(path).components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use fencewright_text::SourceFile;

    use super::*;

    /// The names of the closed files among `names`; those that begin with `<` are built in, those below `/usr` belong to the system.
    fn closed_of(main: &str, names: &[&str], allowed: &[&str]) -> Vec<String> {
        let mut sources = Sources::from(SourceFile::new(main, ""));
        for name in names {
            let file = SourceFile::new(*name, "");
            match name {
                _ if name.starts_with('<') => sources.add_built_in(file),
                _ if name.starts_with("/usr") => sources.add_system(file),
                _ => sources.add(file),
            };
        }
        let allowed: Vec<String> = allowed.iter().map(|folder| (*folder).to_owned()).collect();
        closed(&sources, &[], &allowed).into_iter().map(|id| sources.file(id).name.clone()).collect()
    }

    #[test]
    fn only_files_in_the_folder_of_the_program_and_below_are_open() {
        let names = ["src/lock.h", "src/inner/a.h", "include/b.h", "src/../c.h", "<pthread.h>", "/usr/x.h"];
        assert_eq!(
            closed_of("src/main.c", &names, &[]),
            ["include/b.h", "src/../c.h", "<pthread.h>", "/usr/x.h"]
        );
        assert_eq!(closed_of("main.c", &names, &[]), ["<pthread.h>", "/usr/x.h"]);
        assert_eq!(closed_of("/usr/main.c", &["/usr/x.h"], &[]), ["/usr/x.h"]);
        assert_eq!(closed_of("src/main.c", &["source/b.h"], &[]), ["source/b.h"]);
    }

    #[test]
    fn folders_can_be_allowed() {
        let names = ["include/b.h", "src/../c.h", "<pthread.h>", "/usr/x.h"];
        assert_eq!(closed_of("src/main.c", &names, &["include"]), ["src/../c.h", "<pthread.h>", "/usr/x.h"]);
        assert_eq!(closed_of("src/main.c", &names, &["."]), ["<pthread.h>", "/usr/x.h"]);
        assert_eq!(closed_of("src/main.c", &names, &["/usr", ".."]), ["<pthread.h>"]);
    }
}
