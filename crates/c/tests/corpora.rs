//! The C programs of the corpora are parsed and typed, with our model headers.

mod common;

use std::fs;
use std::path::Path;

use common::Texts;
use fencewright_c::Error;
use fencewright_c::headers::{HEADERS, PREDEFINED};
use fencewright_c::parser::parse;
use fencewright_c::preprocess::{Files, preprocess};
use fencewright_c::typed::typed;

fn functions(path: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let folder = path.parent().expect("it lies in a folder").to_owned();
    let files = vec![(path.display().to_string(), text.into())];
    let mut files = Texts { files, headers: HEADERS.into_iter().collect(), folder: Some(folder) };
    let defines: Vec<_> =
        PREDEFINED.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect();
    let said = |files: &Texts, errors: Vec<Error>| {
        let said = errors
            .iter()
            .map(|e| format!("{}:{}: {}", files.name(e.span.file), files.line(e.span), e.message));
        said.collect::<Vec<_>>().join("\n")
    };
    let found = preprocess(&mut files, &defines, &|| false).map_err(|errors| said(&files, errors))?;
    let unit = parse(&found).map_err(|errors| said(&files, errors))?;
    let unit = typed(&found, &unit).map_err(|errors| said(&files, errors))?;
    // Of what gcc warns about, only these occur: functions that are not declared, and numbers as arguments of threads.
    let known = |odd: &Error| ["not declared", "without a cast"].iter().any(|why| odd.message.contains(why));
    let odd: Vec<_> = unit.warnings.into_iter().filter(|odd| !known(odd)).collect();
    match odd.is_empty() {
        true => Ok(unit.functions.len()),
        false => Err(said(&files, odd)),
    }
}

#[test]
fn c_programs_are_typed() {
    let Some(corpora) = std::env::var_os("FENCEWRIGHT_CORPORA") else {
        println!("skipped: FENCEWRIGHT_CORPORA is not set");
        return;
    };
    let (mut count, mut wrong) = (0, Vec::new());
    for folder in ["c-litmus", "c-programs"] {
        for entry in fs::read_dir(Path::new(&corpora).join(folder)).expect("the corpora are there") {
            let path = entry.expect("they can be listed").path();
            if path.extension().is_some_and(|extension| extension == "c") {
                match functions(&path) {
                    Ok(functions) => count += usize::from(functions > 0),
                    Err(message) => wrong.push(message),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 180, "{count}");
}
