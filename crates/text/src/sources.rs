//! The source files of a program: the main file, and the files that it includes.

use std::collections::BTreeSet;
use std::fmt;

use fencewright_program::{FileId, Span};

use crate::diagnostic::Diagnostic;
use crate::source::{self, SourceFile, escape};

/// The source files of a program, the main one first. A [`Span`] names one of them.
#[derive(Clone, Debug)]
pub struct Sources {
    main: SourceFile,
    included: Vec<SourceFile>,
    /// The files that are built into the front end, such as headers.
    built_in: BTreeSet<FileId>,
    /// The files that belong to the system, such as the headers of its C library.
    system: BTreeSet<FileId>,
}

impl From<SourceFile> for Sources {
    fn from(main: SourceFile) -> Self {
        Sources { main, included: Vec::new(), built_in: BTreeSet::new(), system: BTreeSet::new() }
    }
}

impl Sources {
    /// Adds a file that another one includes.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        self.included.push(file);
        FileId(u32::try_from(self.included.len()).expect("there are fewer files than bytes in a text"))
    }

    /// Adds a file that is built into the front end: it can be shown, but never changed.
    pub fn add_built_in(&mut self, file: SourceFile) -> FileId {
        let id = self.add(file);
        self.built_in.insert(id);
        id
    }

    /// Adds a file that belongs to the system: it is changed only if its folder is allowed by name (`--allow`).
    pub fn add_system(&mut self, file: SourceFile) -> FileId {
        let id = self.add(file);
        self.system.insert(id);
        id
    }

    /// Whether a file belongs to the system.
    pub fn is_system(&self, id: FileId) -> bool {
        self.system.contains(&id)
    }

    /// Whether the user wrote a file, so that it may be changed.
    pub fn is_users(&self, id: FileId) -> bool {
        !self.is_built_in(id) && !self.is_system(id)
    }

    /// Whether a file is built into the front end.
    pub fn is_built_in(&self, id: FileId) -> bool {
        self.built_in.contains(&id)
    }

    /// The built-in file with this name, if there is one.
    pub fn built_in(&self, name: &str) -> Option<FileId> {
        self.built_in.iter().copied().find(|id| self.file(*id).name == name)
    }

    /// The name of the main file, which serves as the name of the program.
    pub fn name(&self) -> &str {
        &self.main.name
    }

    /// The file that the user named.
    pub fn main(&self) -> &SourceFile {
        &self.main
    }

    /// A file; the main one if there is no such file.
    pub fn file(&self, id: FileId) -> &SourceFile {
        let included = (id.0 as usize).checked_sub(1).and_then(|n| self.included.get(n));
        included.unwrap_or(&self.main)
    }

    /// The file with this name that is not built in, if there is one.
    pub fn named(&self, name: &str) -> Option<FileId> {
        let is_meant = |(id, file): &(FileId, &SourceFile)| file.name == name && !self.is_built_in(*id);
        self.iter().find(is_meant).map(|(id, _)| id)
    }

    /// All files, the main one first.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        let files = std::iter::once(&self.main).chain(&self.included);
        (0..).map(FileId).zip(files)
    }

    /// The same files, each with the text that `text` returns for it; the first error ends the replacement.
    pub fn with_texts<E>(
        &self,
        mut text: impl FnMut(FileId, &SourceFile) -> Result<String, E>,
    ) -> Result<Self, E> {
        let mut changed = |id, file: &SourceFile| Ok(SourceFile::new(&file.name, text(id, file)?));
        let main = changed(FileId::MAIN, &self.main)?;
        let included = self.iter().skip(1).map(|(id, file)| changed(id, file)).collect::<Result<_, _>>()?;
        Ok(Sources { main, included, built_in: self.built_in.clone(), system: self.system.clone() })
    }

    /// The text of a span; empty if the span does not fit into its file.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or("")
    }

    /// The start of a span as file, line and column.
    pub fn position(&self, span: Span) -> Position<'_> {
        let file = self.file(span.file);
        let (line, column) = file.line_column(span.start as usize);
        Position { file: &file.name, included: span.file != FileId::MAIN, line, column }
    }

    /// The diagnostics as a terminal shows them, each with an excerpt of its own file: see [`SourceFile::render`].
    pub fn render(&self, diagnostics: &[Diagnostic], colour: bool) -> String {
        source::render(diagnostics, colour, |diagnostic| self.file(diagnostic.span.file))
    }
}

/// A place in one of the files of a program. It is displayed as `file:line:column`, with the file's name escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    /// The name of the file that contains the place, whether or not it is the main file.
    pub file: &'a str,
    /// Whether the file is not the main file.
    pub included: bool,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
}

impl<'a> Position<'a> {
    /// The name of the file; `None` for the main file.
    pub fn included_file(&self) -> Option<&'a str> {
        self.included.then_some(self.file)
    }

    /// The line as a text about the main file shows it: `12`, or `lock.h:12` for another file.
    pub fn line_name(&self) -> String {
        match self.included_file() {
            Some(file) => format!("{}:{}", escape(file), self.line),
            None => self.line.to_string(),
        }
    }
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", escape(self.file), self.line, self.column)
    }
}
