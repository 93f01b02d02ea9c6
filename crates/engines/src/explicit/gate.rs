//! A gate at which workers wait for each other, and which can be destroyed: when a worker panics, the others must not wait for
//! it forever.

use std::sync::{Condvar, Mutex, PoisonError};

/// A meeting point for a fixed number of workers.
pub struct Gate {
    workers: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: usize,
    round: u64,
    destroyed: bool,
}

impl Gate {
    /// A gate for so many workers.
    pub fn new(workers: usize) -> Self {
        let state = State { waiting: 0, round: 0, destroyed: false };
        Gate { workers, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until all workers are here; true for exactly one of them, nothing if the gate was destroyed.
    pub fn wait(&self) -> Option<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == self.workers {
            state.waiting = 0;
            state.round += 1;
            self.changed.notify_all();
            return (!state.destroyed).then_some(true);
        }
        let round = state.round;
        while state.round == round && !state.destroyed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.destroyed).then_some(false)
    }

    /// Lets everybody go, for good.
    pub fn destroy(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).destroyed = true;
        self.changed.notify_all();
    }
}
