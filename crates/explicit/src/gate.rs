//! A barrier at which workers wait for each other. Unlike `std::sync::Barrier` it can be destroyed, so that workers do not wait forever for a worker
//! that has panicked.
//!
//! A waiting worker yields a few times before it sleeps: rounds are often shorter than the time it takes to wake a thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Number of times a waiting worker yields before it sleeps.
const AWAKE: usize = 64;

/// A barrier for a fixed number of workers.
pub struct Gate {
    workers: usize,
    state: Mutex<State>,
    /// Number of completed rounds; changed only while the mutex is held.
    round: AtomicU64,
    changed: Condvar,
}

struct State {
    waiting: usize,
    destroyed: bool,
}

impl Gate {
    /// A gate for the given number of workers.
    pub fn new(workers: usize) -> Self {
        let state = State { waiting: 0, destroyed: false };
        Gate { workers, state: Mutex::new(state), round: AtomicU64::new(0), changed: Condvar::new() }
    }

    /// Waits until all workers have arrived. Returns true for exactly one of them, `None` if the gate was destroyed.
    pub fn wait(&self) -> Option<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == self.workers {
            state.waiting = 0;
            self.round.fetch_add(1, Ordering::Release);
            self.changed.notify_all();
            return (!state.destroyed).then_some(true);
        }
        let round = self.round.load(Ordering::Relaxed);
        drop(state);
        for _ in 0..AWAKE {
            if self.round.load(Ordering::Acquire) != round {
                break;
            }
            std::thread::yield_now();
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while self.round.load(Ordering::Relaxed) == round && !state.destroyed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.destroyed).then_some(false)
    }

    /// Releases all workers, and lets none wait from now on.
    pub fn destroy(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).destroyed = true;
        self.changed.notify_all();
    }
}
