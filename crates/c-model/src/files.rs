//! The files of a C program: files of the user, model headers, and headers of the system.
//!
//! `#include "x.h"` is searched for in the folder of the including file, then in the folders given by `-iquote` and `-I`, then among the model
//! headers (those of other verifiers come before these folders). `#include <x.h>` is searched for among the model headers first, then in the folders
//! given by `-I`. Both forms search the folders of the system last: those given by `-isystem`, then those of the installed C library and compiler.
//!
//! If a model header has a name, the system's header of this name is not used, because the translation knows only the functions of model headers.
//! This also holds for `#include <x.h>` in a header of the system; only `#include "x.h"` there finds the header beside it.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use fencewright_c::headers::{HEADERS, OF_TOOLS};
use fencewright_c::preprocess::{Files, Form, Missing, Origin};
use fencewright_front_end::{Compilation, Input, Unread};
use fencewright_program::{FileId, Span};
use fencewright_text::{Diagnostic, SourceFile};

/// The folders of the C library, relative to the root of the system. Those of x86-64 are included, because the models are about that processor.
const LIBRARY: [&str; 3] = ["usr/local/include", "usr/include/x86_64-linux-gnu", "usr/include"];
/// The folders that contain the headers of gcc, one subfolder per version, relative to the root of the system.
const COMPILERS: [&str; 2] = ["usr/lib/gcc/x86_64-linux-gnu", "usr/lib/gcc/x86_64-redhat-linux"];
/// The versions of gcc that are searched for, newest first.
const VERSIONS: std::ops::Range<u32> = 7..21;

/// Finds and reads the files of a program, as the preprocessor requires ([`Files`]).
pub struct InputFiles<'i, 'a> {
    input: &'i mut Input<'a>,
    texts: HashMap<FileId, Rc<str>>,
    /// The folders that are searched for the current source file, in this order.
    folders: Vec<Folder>,
    /// For each included file, the index in `folders` of the folder that contains it; `#include_next` starts the search after that folder.
    found: HashMap<FileId, usize>,
    /// The files given by `--stub`, which define functions that the program lacks.
    stubs: Vec<FileId>,
}

/// A folder in which headers are searched for.
#[derive(Clone, Debug)]
struct Folder {
    path: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Given by `-iquote`: searched only for `#include "..."`.
    Quoted,
    /// Given by `-I`.
    Users,
    /// Given by `-isystem`, or a folder of the C library.
    System,
    /// A folder of the compiler.
    Compiler,
}

impl<'i, 'a> InputFiles<'i, 'a> {
    /// The files of an input.
    pub fn new(input: &'i mut Input<'a>) -> Self {
        let texts = HashMap::from([(FileId::MAIN, input.text().into())]);
        InputFiles { input, texts, folders: Vec::new(), found: HashMap::new(), stubs: Vec::new() }
    }

    /// Reads another source file of the program.
    pub fn source(&mut self, name: &str) -> Result<FileId, String> {
        match self.input.read(name) {
            Ok(file) => Ok(self.known(file)),
            Err(Unread::Closed(why) | Unread::Full(why)) => Err(why),
            Err(Unread::NoText(diagnostic)) => Err(diagnostic.message),
        }
    }

    /// Sets the folders for a source file; `compilation` has the options with which it is compiled, if they are known.
    fn compile(&mut self, compilation: Option<&Compilation>) {
        let options = &self.input.options.c;
        let none = Compilation::default();
        let of = compilation.unwrap_or(&none);
        let root = options.sysroot.as_ref().or(of.sysroot.as_ref()).map_or("/", String::as_str);
        let below = |folder: &str| Path::new(root).join(folder).to_string_lossy().into_owned();
        let library = LIBRARY.iter().map(|folder| below(folder));
        let compilers = COMPILERS.iter().flat_map(|folder| {
            VERSIONS.rev().map(move |version| below(&format!("{folder}/{version}/include")))
        });
        let folder = |kind| move |path: String| Folder { path, kind };
        self.folders = (of.quote_folders.iter().cloned().map(folder(Kind::Quoted)))
            .chain(options.folders.iter().chain(&of.folders).cloned().map(folder(Kind::Users)))
            .chain(options.system_folders.iter().chain(&of.system_folders).cloned().map(folder(Kind::System)))
            .chain(library.map(folder(Kind::System)))
            .chain(compilers.map(folder(Kind::Compiler)))
            .collect();
    }

    /// Reads the files given by `--stub`. Returns each with its name.
    pub fn read_stubs(&mut self) -> Result<Vec<(FileId, String)>, Diagnostic> {
        let names = self.input.options.c.stubs.clone();
        for name in &names {
            let unread = |why: String| {
                Diagnostic::new(Span::default(), format!("cannot read `{name}`, given by --stub: {why}"))
            };
            let file = match self.input.read(name) {
                Ok(file) => self.known(file),
                Err(Unread::Closed(why) | Unread::Full(why)) => return Err(unread(why)),
                Err(Unread::NoText(diagnostic)) => return Err(diagnostic),
            };
            self.stubs.push(file);
        }
        Ok(self.stubs.iter().copied().zip(names).collect())
    }

    fn known(&mut self, file: FileId) -> FileId {
        self.texts.entry(file).or_insert_with(|| self.input.sources.file(file).text.as_str().into());
        file
    }

    /// The model header with this name, if there is one.
    fn model(&mut self, name: &str) -> Option<FileId> {
        let (name, text) = HEADERS.into_iter().find(|(known, _)| *known == name)?;
        let shown = format!("<{name}>");
        let known = self.input.sources.built_in(&shown);
        let file = known.unwrap_or_else(|| self.input.sources.add_built_in(SourceFile::new(shown, text)));
        Some(self.known(file))
    }

    /// Reads a file. `Ok(None)` means that there is no such file; the reason is then added to `why`.
    fn read(&mut self, path: &str, system: bool, why: &mut Vec<String>) -> Result<Option<FileId>, Missing> {
        let read = match system {
            true => self.input.read_system(path),
            false => self.input.read(path),
        };
        match read {
            Ok(file) => Ok(Some(self.known(file))),
            Err(Unread::Closed(closed)) => {
                if !why.contains(&closed) {
                    why.push(closed);
                }
                Ok(None)
            }
            Err(Unread::Full(full)) => Err(full.into()),
            Err(Unread::NoText(diagnostic)) => Err(diagnostic.message.into()),
        }
    }

    /// Searches the folders from index `start` on that have one of these kinds.
    fn search(
        &mut self,
        name: &str,
        start: usize,
        kinds: &[Kind],
        why: &mut Vec<String>,
    ) -> Result<Option<FileId>, Missing> {
        for number in start..self.folders.len() {
            let Folder { path, kind } = &self.folders[number];
            let (path, kind) = (joined(Path::new(path), name), *kind);
            if !kinds.contains(&kind) {
                continue;
            }
            let system = matches!(kind, Kind::System | Kind::Compiler);
            if let Some(file) = self.read(&path, system, why)? {
                self.found.insert(file, number);
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// The error for a header that no folder contains.
    fn missing(&self, beside: Option<&Path>, form: Form, why: Vec<String>) -> Missing {
        let wanted = |folder: &&Folder| match folder.kind {
            Kind::Quoted => form == Form::Quoted,
            Kind::Users | Kind::System => true,
            Kind::Compiler => false,
        };
        let of_user = beside.map(|folder| match folder.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => folder.to_string_lossy().into_owned(),
        });
        let mut searched: Vec<String> = of_user.into_iter().collect();
        for Folder { path, .. } in self.folders.iter().filter(wanted) {
            if !searched.contains(path) {
                searched.push(path.clone());
            }
        }
        let why = match why.is_empty() {
            true => "no such file".to_owned(),
            false => why.join("; "),
        };
        let help = "-I DIR names a folder with headers, --sysroot DIR the root of a system with a C library, \
            -p DIR a folder with a compile_commands.json";
        Missing {
            why: format!("{why} in {}, and there is no model header of this name", searched.join(", ")),
            help: Some(help.into()),
        }
    }
}

impl Files for InputFiles<'_, '_> {
    fn begin(&mut self, source: FileId) {
        let (name, options) = (&self.input.sources.file(source).name, self.input.options);
        self.compile(options.c.compilations.get(name));
    }

    fn include(&mut self, name: &str, form: Form, from: FileId, _at: Span) -> Result<FileId, Missing> {
        const USERS: [Kind; 1] = [Kind::Users];
        const SYSTEM: [Kind; 2] = [Kind::System, Kind::Compiler];
        let mut why = Vec::new();
        let folder_of_file = Path::new(&self.input.sources.file(from).name).parent().map(Path::to_path_buf);
        let beside = folder_of_file.filter(|_| form == Form::Quoted && !self.input.sources.is_built_in(from));
        let quoted = form == Form::Quoted;
        if let Some(folder) = &beside {
            let system = self.input.sources.is_system(from);
            if let Some(file) = self.read(&joined(folder, name), system, &mut why)? {
                let number = self.found.get(&from).copied();
                number.map(|number| self.found.insert(file, number));
                return Ok(file);
            }
        }
        // `<linux/types.h>` finds the model header first, and so do the names of headers of other verifiers, with brackets or quotes.
        let first = !quoted || OF_TOOLS.contains(&name);
        let model = if first { self.model(name) } else { None };
        if let Some(model) = model {
            return Ok(model);
        }
        let start = match form {
            Form::Next => self.found.get(&from).map_or(0, |number| number + 1),
            Form::Quoted | Form::Bracketed => 0,
        };
        let users: &[Kind] = if quoted { &[Kind::Quoted, Kind::Users] } else { &USERS };
        let found = match self.search(name, start, users, &mut why)? {
            Some(file) => Some(file),
            None => match self.model(name) {
                Some(model) => Some(model),
                None => self.search(name, start, &SYSTEM, &mut why)?,
            },
        };
        found.ok_or_else(|| self.missing(beside.as_deref(), form, why))
    }

    fn further(&self) -> &[FileId] {
        &self.stubs
    }

    fn origin(&self, file: FileId) -> Origin {
        match &self.input.sources {
            sources if sources.is_built_in(file) => Origin::Model,
            sources if sources.is_system(file) => Origin::System,
            _ => Origin::User,
        }
    }

    fn text(&self, file: FileId) -> Rc<str> {
        self.texts.get(&file).cloned().unwrap_or_else(|| "".into())
    }

    fn name(&self, file: FileId) -> String {
        self.input.sources.file(file).name.clone()
    }

    fn line(&self, at: Span) -> usize {
        self.input.sources.position(at).line
    }
}

/// The path of a file in a folder, without `.` components, so that equal files have equal paths unless `..` occurs.
fn joined(folder: &Path, name: &str) -> String {
    let parts = folder.join(name);
    let parts: PathBuf = parts.components().filter(|part| *part != Component::CurDir).collect();
    parts.to_string_lossy().into_owned()
}
