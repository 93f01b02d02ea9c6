//! Tests that skipped tests are reported.

use std::process::Command;

use fencewright_testing::corpora;

#[test]
fn needs_the_corpora() {
    let _ = corpora::corpora("needs_the_corpora");
}

/// Runs the test above as `cargo test` does.
fn shown(set: bool) -> String {
    let mut command = Command::new(std::env::current_exe().expect("a test is a program"));
    command.args(["--exact", "corpora::needs_the_corpora"]).env_remove(corpora::VARIABLE);
    if set {
        command.env(corpora::VARIABLE, "somewhere");
    }
    let output = command.output().expect("it runs");
    assert!(output.status.success());
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_test_that_is_left_out_says_so() {
    let shown_without = shown(false);
    assert!(
        shown_without.contains("SKIPPED needs_the_corpora: FENCEWRIGHT_CORPORA is not set"),
        "{shown_without}"
    );
    assert!(!shown(true).contains("SKIPPED"));
}
