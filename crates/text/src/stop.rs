//! Cancellation: loading polls a [`Stop`] regularly.

use std::cell::Cell;

use fencewright_program::Span;

use crate::diagnostic::Diagnostic;

/// Number of small pieces of work between two polls. A poll may be as expensive as a system call.
const STRIDE: usize = 1 << 10;

/// Tells when to stop loading, because a limit on time or memory is reached or because the caller cancelled.
pub struct Stop<'a> {
    ask: Option<&'a dyn Fn() -> bool>,
    calls: Cell<usize>,
    stopped: Cell<bool>,
}

impl<'a> Stop<'a> {
    /// Never stops.
    pub fn never() -> Self {
        Stop { ask: None, calls: Cell::new(0), stopped: Cell::new(false) }
    }

    /// Stops when `ask` returns true.
    pub fn when(ask: &'a dyn Fn() -> bool) -> Self {
        Stop { ask: Some(ask), ..Stop::never() }
    }

    /// Whether to stop now. Call this once for each small piece of work, such as a token or a statement.
    pub fn now(&self) -> bool {
        self.after(1)
    }

    /// Whether to stop now, after a piece of work as large as `pieces` small ones.
    pub fn after(&self, pieces: usize) -> bool {
        let calls = self.calls.get().saturating_add(pieces);
        self.calls.set(calls % STRIDE);
        if calls >= STRIDE && !self.stopped.get() {
            self.stopped.set(self.ask.is_some_and(|ask| ask()));
        }
        self.stopped.get()
    }

    /// Iterates over small pieces of work, and ends early when it is time to stop.
    pub fn polled<I: IntoIterator>(&self, pieces: I) -> impl Iterator<Item = I::Item> {
        pieces.into_iter().take_while(|_| !self.now())
    }

    /// Whether to stop now, polled immediately. Call this between large pieces of work.
    pub fn at_once(&self) -> bool {
        if !self.stopped.get() {
            self.stopped.set(self.ask.is_some_and(|ask| ask()));
        }
        self.stopped.get()
    }

    /// An error if it is time to stop, polled immediately. The diagnostic of the error is never shown, because the caller reports that loading was
    /// stopped.
    pub fn or_go_on(&self) -> Result<(), Vec<Diagnostic>> {
        match self.at_once() {
            true => Err(vec![Diagnostic::new(Span::default(), "stopped")]),
            false => Ok(()),
        }
    }

    /// Whether loading was told to stop, so that some work may have been left undone.
    pub fn was_stopped(&self) -> bool {
        self.stopped.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_is_polled_more_often_in_large_pieces_of_work() {
        for (pieces, most) in [(1, STRIDE), (STRIDE / 4, 4), (STRIDE, 1), (usize::MAX, 1)] {
            let asked = Cell::new(0);
            let ask = || {
                asked.set(asked.get() + 1);
                asked.get() == 2
            };
            let stop = Stop::when(&ask);
            let done = (1..).take_while(|_| !stop.after(pieces)).count();
            assert!(done < 2 * most, "{done} pieces of {pieces} are done before it stops");
            assert!(stop.was_stopped() && stop.or_go_on().is_err());
        }
    }
}
