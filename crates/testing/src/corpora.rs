//! Test inputs of other projects, with known answers.

use std::io::Write;
use std::path::PathBuf;

/// The environment variable that names the folder with the corpora.
pub const VARIABLE: &str = "FENCEWRIGHT_CORPORA";

/// The corpora, if this machine has them. If not, prints that `test` is skipped; the test must then return.
pub fn corpora(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os(VARIABLE).map(PathBuf::from);
    if found.is_none() {
        tell_skipped(test, &format!("{VARIABLE} is not set"));
    }
    found
}

/// Says that a test was left out, directly on standard error, because the test harness hides what a passing test prints.
pub fn tell_skipped(test: &str, why: &str) {
    // If that fails there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
