//! The C programs of the corpora are parsed, with our model headers.

mod common;

use std::fs;
use std::path::Path;

use common::Texts;
use fencewright_c::headers::{HEADERS, PREDEFINED};
use fencewright_c::parser::parse;
use fencewright_c::preprocess::{Files, preprocess};

fn parses(path: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let folder = path.parent().expect("it lies in a folder").to_owned();
    let files = vec![(path.display().to_string(), text.into())];
    let mut files = Texts { files, headers: HEADERS.into_iter().collect(), folder: Some(folder) };
    let defines: Vec<_> =
        PREDEFINED.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect();
    let said = |files: &Texts, errors: Vec<fencewright_c::Error>| {
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
