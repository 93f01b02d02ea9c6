//! The example programs.

use std::path::{Path, PathBuf};

use fencewright_lang::load;
use fencewright_program::Program;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// An example program with its constants set.
pub fn example(name: &str, defines: &[(&str, i64)]) -> Program {
    let bytes = std::fs::read(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let defines: Vec<(String, i64)> = defines.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    match load(name, &bytes, None, &defines) {
        Ok(loaded) => loaded.program,
        Err(error) => panic!("{}", error.source.render(&error.diagnostics, false)),
    }
}

/// How many lines of an example are neither empty nor only a comment.
pub fn lines(name: &str) -> usize {
    let text = std::fs::read_to_string(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().filter(code).count()
}
