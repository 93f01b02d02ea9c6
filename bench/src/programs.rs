//! Loads example programs and programs of the corpora.

use std::path::{Path, PathBuf};

use fencewright_lang::places::{Placed, places};
use fencewright_lang::{Loaded, load};
use fencewright_program::Program;
use fencewright_testing::corpora::VARIABLE;

use crate::measurement::Input;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// Checks that the examples exist in the checkout in which this command was built.
pub fn are_there() -> Result<(), String> {
    let folder = path("");
    folder.is_dir().then_some(()).ok_or_else(|| {
        format!("there is no {}: build this command in the checkout that has the examples", folder.display())
    })
}

/// Loads a program from a file.
pub fn loaded(path: &Path, defines: &[(String, i64)]) -> Result<Loaded, String> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    parsed(&name, &bytes, defines)
}

/// Loads a program from its text.
pub fn parsed(name: &str, bytes: &[u8], defines: &[(String, i64)]) -> Result<Loaded, String> {
    load(name, bytes, None, defines).map_err(|error| error.sources.render(&error.diagnostics, false))
}

/// Unwraps the result of loading a program that is part of this repository or generated.
fn known<T>(found: Result<T, String>) -> T {
    found.unwrap_or_else(|error| panic!("{error}"))
}

fn owned(defines: &[(&str, i64)]) -> Vec<(String, i64)> {
    defines.iter().map(|(n, v)| (n.to_string(), *v)).collect()
}

/// An example, as input for other tools (`--peer`).
pub fn input(name: &str, defines: &[(&str, i64)]) -> Input {
    Input::File(path(name), owned(defines))
}

/// The name of a program with the values of its constants.
pub fn label(file: &str, defines: &[(&str, i64)]) -> String {
    defines.iter().fold(file.to_string(), |label, (name, value)| format!("{label} {name}={value}"))
}

/// An example program with its constants set.
pub fn example(name: &str, defines: &[(&str, i64)]) -> Program {
    known(loaded(&path(name), &owned(defines))).program
}

/// The program with this text.
pub fn program(text: &str) -> Program {
    known(parsed("generated.fw", text.as_bytes(), &[])).program
}

/// An example program with the places where fences can be inserted.
pub fn placed(name: &str, defines: &[(&str, i64)]) -> Placed {
    known(placed_at(&path(name), defines))
}

/// The program in a file with the places where fences can be inserted.
fn placed_at(path: &Path, defines: &[(&str, i64)]) -> Result<Placed, String> {
    let defines = owned(defines);
    places(&loaded(path, &defines)?, &defines).map_err(|errors| format!("{}: {errors:?}", path.display()))
}

/// A file of the corpora, which are optional, or the reason why it is missing.
pub fn of_corpora(corpus: &str, file: &str) -> Result<PathBuf, String> {
    let corpora = std::env::var_os(VARIABLE).ok_or_else(|| format!("{VARIABLE} is not set"))?;
    let path = Path::new(&corpora).join(corpus).join(file);
    if path.is_file() { Ok(path) } else { Err(format!("{VARIABLE} has no {corpus}/{file}")) }
}

/// A program of the corpora with these values of constants, or the reason why it is missing or cannot be loaded.
pub fn corpora_program(corpus: &str, file: &str, defines: &[(&str, i64)]) -> Result<Program, String> {
    Ok(loaded(&of_corpora(corpus, file)?, &owned(defines))?.program)
}

/// A program of the corpora with the places where fences can be inserted.
pub fn corpora_placed(corpus: &str, file: &str) -> Result<Placed, String> {
    placed_at(&of_corpora(corpus, file)?, &[])
}

/// The number of lines of an example that are neither empty nor only a comment.
pub fn lines(name: &str) -> usize {
    let text = std::fs::read_to_string(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().filter(code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_reported() {
        let why = of_corpora("trencher", "no such program.txt").err().unwrap_or_default();
        assert!(why.starts_with(VARIABLE), "{why}");
        let why = loaded(Path::new("/nonexistent.fw"), &[]).err().unwrap_or_default();
        assert!(why.starts_with("/nonexistent.fw: "), "{why}");
        assert!(are_there().is_ok());
    }
}
