//! Test inputs of other projects, with known answers.

use std::io::Write;
use std::path::PathBuf;

/// Names the folder with the corpora.
pub const VARIABLE: &str = "FENCEWRIGHT_CORPORA";

/// The corpora, if this machine has them. If not, the test that asks must be left out, and that is said.
pub fn corpora(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os(VARIABLE).map(PathBuf::from);
    if found.is_none() {
        tell_skipped(test, &format!("{VARIABLE} is not set"));
    }
    found
}

/// Says that a test was left out, on the standard error itself: what a test that succeeds prints is not shown.
pub fn tell_skipped(test: &str, why: &str) {
    // If that fails there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
