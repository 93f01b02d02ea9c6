//! The C programs of the corpora are parsed and typed with our model headers; gcc produces the same tokens.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Texts;
use fencewright_c::headers::{HEADERS, PREDEFINED};
use fencewright_c::parser::parse;
use fencewright_c::preprocess::{Files, preprocess};
use fencewright_c::typed::typed;
use fencewright_c::{Error, Kind, Names, lex};
use fencewright_program::FileId;

/// A file with our model headers and the other files in its folder.
fn texts(path: &Path) -> Result<Texts, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let folder = path.parent().expect("it lies in a folder").to_owned();
    let files = vec![(path.display().to_string(), text.into())];
    Ok(Texts { files, headers: HEADERS.into_iter().collect(), folder: Some(folder) })
}

fn defines() -> Vec<(String, Option<String>)> {
    PREDEFINED.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect()
}

fn functions(path: &Path) -> Result<usize, String> {
    let mut files = texts(path)?;
    let said = |files: &Texts, errors: Vec<Error>| {
        let said = errors
            .iter()
            .map(|e| format!("{}:{}: {}", files.name(e.span.file), files.line(e.span), e.message));
        said.collect::<Vec<_>>().join("\n")
    };
    let found = preprocess(&mut files, &defines(), &|| false).map_err(|errors| said(&files, errors))?;
    let unit = parse(&found).map_err(|errors| said(&files, errors))?;
    let unit = typed(&found, &unit).map_err(|errors| said(&files, errors))?;
    // Of gcc's warnings, only these occur: undeclared functions, and numbers as arguments of threads.
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

/// The tokens that gcc makes of a file with the headers in `folder`; `None` without gcc.
fn tokens_of_gcc(path: &Path, folder: &Path) -> Option<Vec<String>> {
    let mut gcc = Command::new("gcc");
    gcc.args(["-E", "-P", "-undef", "-nostdinc", "-std=gnu11", "-I"]).arg(folder);
    // gcc has its own definitions of these.
    let given = PREDEFINED.iter().filter(|(name, _)| !name.starts_with("__STDC"));
    gcc.args(given.map(|(name, value)| format!("-D{name}={value}"))).arg(path);
    let output = gcc.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("#pragma")).collect();
    let mut names = Names::default();
    let tokens = lex(&text.join("\n"), FileId::MAIN, &mut names).expect("gcc closes comments");
    let tokens = tokens.iter().filter(|token| token.kind != Kind::Newline);
    Some(tokens.map(|token| names.spelling(token.symbol).to_string()).collect())
}

#[test]
fn the_preprocessor_does_what_gcc_does() {
    let Some(corpora) = std::env::var_os("FENCEWRIGHT_CORPORA") else {
        println!("skipped: FENCEWRIGHT_CORPORA is not set");
        return;
    };
    let folder = std::env::temp_dir().join(format!("fencewright-c-headers-{}", std::process::id()));
    for (name, text) in HEADERS {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a temporary folder");
        fs::write(path, text).expect("it can be written");
    }
    // All programs, but only one in eight of the litmus tests, which are similar to each other.
    let all = std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some();
    let mut compared = 0;
    for (corpus, one_in) in [("c-litmus", if all { 1 } else { 8 }), ("c-programs", 1)] {
        let entries = fs::read_dir(Path::new(&corpora).join(corpus)).expect("the corpora are there");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("they can be listed").path()).collect();
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        for path in paths.iter().step_by(one_in) {
            let Some(expected) = tokens_of_gcc(path, &folder) else {
                println!("skipped: gcc is not installed");
                let _ = fs::remove_dir_all(&folder);
                return;
            };
            let found = texts(path).map(|mut files| preprocess(&mut files, &defines(), &|| false));
            let found = found.expect("it can be read").expect("it is right");
            let found: Vec<&str> = found.tokens.iter().map(|t| &**found.names.spelling(t.symbol)).collect();
            let differs = found.iter().zip(&expected).position(|(one, other)| *one != other.as_str());
            let around = differs.map(|n| (&found[n.saturating_sub(5)..n + 1], &expected[n]));
            assert!(around.is_none() && found.len() == expected.len(), "{}: {around:?}", path.display());
            compared += 1;
        }
    }
    let _ = fs::remove_dir_all(&folder);
    assert!(compared >= 35, "{compared}");
}
