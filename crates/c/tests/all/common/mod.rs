//! Source files for tests: a main file, headers in memory, and optionally a folder.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;

use fencewright_c::preprocess::{Files, Form, Missing};
use fencewright_program::{FileId, Span};

/// The main file, headers by name, and a folder for all other includes.
pub struct Texts {
    pub files: Vec<(String, Rc<str>)>,
    pub headers: BTreeMap<&'static str, &'static str>,
    pub folder: Option<PathBuf>,
}

impl Texts {
    /// A main file without other files.
    pub fn main(text: &str) -> Self {
        Texts { files: vec![("main.c".into(), text.into())], headers: BTreeMap::new(), folder: None }
    }
}

impl Files for Texts {
    fn include(&mut self, name: &str, _form: Form, _from: FileId, _at: Span) -> Result<FileId, Missing> {
        if let Some(n) = self.files.iter().position(|(known, _)| known == name) {
            return Ok(FileId(n as u32));
        }
        let text = match (self.headers.get(name), &self.folder) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(folder)) => std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string())?,
            (None, None) => return Err("there is no such file".to_owned().into()),
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

/// The output of a program compiled by gcc; `None`, with a message, if gcc is not installed.
pub fn run_with_gcc(name: &str, program: &str) -> Option<String> {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped: gcc is not installed");
        return None;
    }
    let folder = std::env::temp_dir().join(format!("fencewright-c-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (source, binary) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, program).expect("it can be written");
    let compiled =
        Command::new("gcc").args(["-std=gnu11", "-w", "-O0", "-o"]).arg(&binary).arg(&source).output();
    let compiled = compiled.expect("gcc runs");
    let found = Command::new(&binary).output();
    let _ = std::fs::remove_dir_all(&folder);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(String::from_utf8_lossy(&found.expect("the program runs").stdout).into_owned())
}
