//! The example programs.

use std::path::{Path, PathBuf};

use fencewright_lang::places::{Placed, places};
use fencewright_lang::{Loaded, load};
use fencewright_program::Program;

use crate::measurement::Input;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// The program in a file, with everything around it.
pub fn loaded(path: &Path, defines: &[(String, i64)]) -> Loaded {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{name}: {e}"));
    parsed(&name, &bytes, defines)
}

/// The program with this text, with everything around it.
pub fn parsed(name: &str, bytes: &[u8], defines: &[(String, i64)]) -> Loaded {
    match load(name, bytes, None, defines) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{}", error.sources.render(&error.diagnostics, false)),
    }
}

fn owned(defines: &[(&str, i64)]) -> Vec<(String, i64)> {
    defines.iter().map(|(n, v)| (n.to_string(), *v)).collect()
}

/// An example for peers.
pub fn input(name: &str, defines: &[(&str, i64)]) -> Input {
    Input::File(path(name), owned(defines))
}

/// A program and the values of its constants, as a name.
pub fn label(file: &str, defines: &[(&str, i64)]) -> String {
    defines.iter().fold(file.to_string(), |label, (name, value)| format!("{label} {name}={value}"))
}

/// An example program with its constants set.
pub fn example(name: &str, defines: &[(&str, i64)]) -> Program {
    program_at(&path(name), defines)
}

/// The program with this text.
pub fn program(text: &str) -> Program {
    parsed("generated.fw", text.as_bytes(), &[]).program
}

/// The program in a file.
pub fn program_at(path: &Path, defines: &[(&str, i64)]) -> Program {
    loaded(path, &owned(defines)).program
}

/// An example program with the places where fences could go.
pub fn placed(name: &str, defines: &[(&str, i64)]) -> Placed {
    placed_at(&path(name), defines)
}

/// The program in a file with the places where fences could go.
pub fn placed_at(path: &Path, defines: &[(&str, i64)]) -> Placed {
    let defines = owned(defines);
    places(&loaded(path, &defines), &defines)
        .unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()))
}

/// How many lines of an example are neither empty nor only a comment.
pub fn lines(name: &str) -> usize {
    let text = std::fs::read_to_string(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().filter(code).count()
}
