//! `FENCEWRIGHT_GAPS=MILLISECONDS`: a development aid. Every time a thread computes for longer than this time between two checks of its limits, a
//! line on the standard error names the places of both checks; with `RUST_BACKTRACE=1` also the stack at the second check. `fencewright-bench limits
//! --gaps` sets the variable.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::Location;
use std::time::Duration;

use fencewright::engines::gaps::{self, Gap};

use crate::output::write_error;

/// Starts the measurement if the variable is set.
pub fn watch() {
    let asked = std::env::var("FENCEWRIGHT_GAPS").ok();
    if let Some(milliseconds) = asked.and_then(|text| text.parse().ok()) {
        gaps::watch(Duration::from_millis(milliseconds), tell);
    }
}

/// Prints a gap in columns separated by tabs: the word `gap`, milliseconds, and the places of the two checks.
fn tell(gap: &Gap) {
    let place = |at: Option<&Location<'_>>, else_: &str| at.map_or_else(|| else_.into(), Location::to_string);
    let (from, to) = (place(gap.from, "the beginning of a thread"), place(gap.to, "the end of a thread"));
    write_error(&format!("gap\t{}\t{from}\t{to}\n", gap.time.as_millis()));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        write_error(&format!("{backtrace}\n"));
    }
}
