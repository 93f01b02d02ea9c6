//! Cancellation: loading asks now and then whether to go on.

use std::cell::Cell;

/// How much is done between two questions: asking may cost as much as a system call.
const STRIDE: u32 = 1 << 10;

/// Tells when to stop loading: because time or memory is used up, or because somebody does not want to wait any more.
pub struct Stop<'a> {
    ask: Option<&'a dyn Fn() -> bool>,
    calls: Cell<u32>,
    stopped: Cell<bool>,
}

impl<'a> Stop<'a> {
    /// Goes on to the end.
    pub fn never() -> Self {
        Stop { ask: None, calls: Cell::new(0), stopped: Cell::new(false) }
    }

    /// Stops when `ask` says so.
    pub fn when(ask: &'a dyn Fn() -> bool) -> Self {
        Stop { ask: Some(ask), ..Stop::never() }
    }

    /// Whether to stop now. To be called once for each small piece of work: a token, a statement.
    pub fn now(&self) -> bool {
        let calls = self.calls.get() + 1;
        self.calls.set(calls % STRIDE);
        if calls == STRIDE && !self.stopped.get() {
            self.stopped.set(self.ask.is_some_and(|ask| ask()));
        }
        self.stopped.get()
    }

    /// Whether to stop now. To be called between large pieces of work.
    pub fn at_once(&self) -> bool {
        if !self.stopped.get() {
            self.stopped.set(self.ask.is_some_and(|ask| ask()));
        }
        self.stopped.get()
    }

    /// Whether something was left undone.
    pub fn was_stopped(&self) -> bool {
        self.stopped.get()
    }
}
