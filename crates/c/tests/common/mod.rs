//! Files for the tests of this crate: a main file, headers in memory, and otherwise a folder.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use fencewright_c::preprocess::Files;
use fencewright_program::{FileId, Span};

/// The main file, headers by name, and a folder for what is not among them.
pub struct Texts {
    pub files: Vec<(String, Rc<str>)>,
    pub headers: BTreeMap<&'static str, &'static str>,
    pub folder: Option<PathBuf>,
}

impl Texts {
    /// A main file that finds no others.
    pub fn main(text: &str) -> Self {
        Texts { files: vec![("main.c".into(), text.into())], headers: BTreeMap::new(), folder: None }
    }
}

impl Files for Texts {
    fn include(&mut self, name: &str, _system: bool, _from: FileId, _at: Span) -> Result<FileId, String> {
        if let Some(n) = self.files.iter().position(|(known, _)| known == name) {
            return Ok(FileId(n as u32));
        }
        let text = match (self.headers.get(name), &self.folder) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(folder)) => std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string())?,
            (None, None) => return Err("there is no such file".into()),
        };
        self.files.push((name.into(), text.into()));
        Ok(FileId(self.files.len() as u32 - 1))
    }

    fn text(&self, file: FileId) -> Rc<str> {
        self.files[file.0 as usize].1.clone()
    }

    fn name(&self, file: FileId) -> String {
        self.files[file.0 as usize].0.clone()
    }

    fn line(&self, at: Span) -> usize {
        self.text(at.file)[..at.start as usize].matches('\n').count() + 1
    }
}
