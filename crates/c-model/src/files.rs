//! The files of a C program: the user's, and the model headers.
//!
//! `#include "x.h"` means the file in the same folder as the including file, otherwise a file in the folders given by `-I`, otherwise a model header.
//! `#include <x.h>` means the model header if there is one, otherwise a file in the folders given by `-I`. The folders of the installed C library are
//! not searched, because its headers are specific to a compiler.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use fencewright_c::headers::HEADERS;
use fencewright_c::preprocess::Files;
use fencewright_front_end::{Input, Unread};
use fencewright_program::{FileId, Span};
use fencewright_text::SourceFile;

/// The files of a program, as an implementation of the preprocessor's [`Files`].
pub struct InputFiles<'i, 'a> {
    input: &'i mut Input<'a>,
    texts: HashMap<FileId, Rc<str>>,
}

impl<'i, 'a> InputFiles<'i, 'a> {
    /// The files of an input.
    pub fn new(input: &'i mut Input<'a>) -> Self {
        let texts = HashMap::from([(FileId::MAIN, input.text().into())]);
        InputFiles { input, texts }
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

    /// The first candidate that is a readable file; otherwise an error that says why one of them is not.
    fn first(&mut self, candidates: &[String]) -> Result<FileId, String> {
        let mut why = None;
        for candidate in candidates {
            match self.input.read(candidate) {
                Ok(file) => return Ok(self.known(file)),
                Err(Unread::Closed(closed)) => why = why.or(Some(closed)),
                Err(Unread::NoText(diagnostic)) => return Err(diagnostic.message),
            }
        }
        Err(why.unwrap_or_else(|| "there is no such header here".into()))
    }
}

impl Files for InputFiles<'_, '_> {
    fn include(&mut self, name: &str, system: bool, from: FileId, _at: Span) -> Result<FileId, String> {
        if let Some(model) = self.model(name).filter(|_| system) {
            return Ok(model);
        }
        let beside = || {
            let folder = Path::new(&self.input.sources.file(from).name).parent()?;
            Some(joined(folder, name))
        };
        let beside = if system { None } else { beside() };
        let folders = self.input.options.c.folders.iter().map(|folder| joined(Path::new(folder), name));
        let candidates: Vec<String> = beside.into_iter().chain(folders).collect();
        self.first(&candidates).or_else(|why| self.model(name).ok_or(why))
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

/// The name of a file in a folder, normalised so that a file has one name unless the path contains `..`.
fn joined(folder: &Path, name: &str) -> String {
    let parts = folder.join(name);
    let parts: PathBuf = parts.components().filter(|part| *part != Component::CurDir).collect();
    parts.to_string_lossy().into_owned()
}
