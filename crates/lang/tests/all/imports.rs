//! Checks that tests of several formats share.

use fencewright_lang::front_end::Parsed;
use fencewright_lang::{Diagnostic, fw};

/// Checks that the import of `text` is the same program as `expected`.
#[track_caller]
pub fn check(imported: Result<Parsed, Vec<Diagnostic>>, text: &str, expected: &str) {
    let imported = imported.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    let (expected, errors) = fw::parse(expected);
    assert_eq!(errors, []);
    assert_eq!(fw::print(&imported.file), fw::print(&expected), "{text}");
}

/// Checks that a text is refused with this message, at this part of it.
#[track_caller]
pub fn check_error<T: std::fmt::Debug>(
    result: Result<T, Vec<Diagnostic>>,
    message: &str,
    text: &str,
    place: &str,
) {
    let error = result.expect_err(text).remove(0);
    let at = &text[error.span.range()];
    assert_eq!((error.message.as_str(), at), (message, place), "{text}");
}
