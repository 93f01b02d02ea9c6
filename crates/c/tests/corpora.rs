//! The C programs of the corpora are parsed, with our model headers.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fencewright_c::headers::{HEADERS, PREDEFINED};
use fencewright_c::parser::parse;
use fencewright_c::preprocess::{Files, preprocess};
use fencewright_program::{FileId, Span};

/// A folder, and the model headers.
struct Folder {
    folder: PathBuf,
    files: Vec<(String, Rc<str>)>,
}

impl Files for Folder {
    fn include(&mut self, name: &str, _system: bool, _from: FileId, _at: Span) -> Result<FileId, String> {
        if let Some(n) = self.files.iter().position(|(known, _)| known == name) {
            return Ok(FileId(n as u32));
        }
        let model = HEADERS.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        let text = match model {
            Some(text) => text,
            None => fs::read_to_string(self.folder.join(name)).map_err(|e| e.to_string())?,
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

fn parses(path: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let folder = path.parent().expect("it lies in a folder").to_owned();
    let mut files = Folder { folder, files: vec![(path.display().to_string(), text.into())] };
    let defines: Vec<_> =
        PREDEFINED.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect();
    let said = |files: &Folder, errors: Vec<fencewright_c::Error>| {
        let said = errors
            .iter()
            .map(|e| format!("{}:{}: {}", files.name(e.span.file), files.line(e.span), e.message));
        said.collect::<Vec<_>>().join("\n")
    };
    let found = preprocess(&mut files, &defines, &|| false).map_err(|errors| said(&files, errors))?;
    let unit = parse(&found).map_err(|errors| said(&files, errors))?;
    Ok(unit.items.len())
}

#[test]
fn c_programs_are_parsed() {
    let Some(corpora) = std::env::var_os("FENCEWRIGHT_CORPORA") else {
        println!("skipped: FENCEWRIGHT_CORPORA is not set");
        return;
    };
    let (mut count, mut wrong) = (0, Vec::new());
    for folder in ["c-litmus", "c-programs"] {
        for entry in fs::read_dir(Path::new(&corpora).join(folder)).expect("the corpora are there") {
            let path = entry.expect("they can be listed").path();
            if path.extension().is_some_and(|extension| extension == "c") {
                match parses(&path) {
                    Ok(items) => count += usize::from(items > 0),
                    Err(message) => wrong.push(message),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 180, "{count}");
}
