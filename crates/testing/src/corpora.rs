//! Test inputs of other projects, with known answers.

use std::io::Write;
use std::path::PathBuf;

/// The environment variable that names the folder of the corpora.
pub const VARIABLE: &str = "FENCEWRIGHT_CORPORA";

/// The folder of the corpora, if the environment variable names it. Otherwise prints that `test` is skipped and returns `None`; the test must return
/// then.
pub fn corpora(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os(VARIABLE).map(PathBuf::from);
    if found.is_none() {
        tell_skipped(test, &format!("{VARIABLE} is not set"));
    }
    found
}

/// Reports a skipped test directly on standard error, because the test harness hides the output of passing tests.
pub fn tell_skipped(test: &str, why: &str) {
    // A write error is ignored, because it could not be reported either.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
