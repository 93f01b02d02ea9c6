//! A gate at which workers wait for each other. It can be destroyed: when a worker panics, the others must not wait for it forever.
//!
//! A worker spins for a while before it goes to sleep: levels are often shorter than the time it takes to wake a thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// How often a waiting worker yields to other threads before it goes to sleep.
const AWAKE: usize = 64;

/// A meeting point for a fixed number of workers.
pub struct Gate {
    workers: usize,
    state: Mutex<State>,
    /// How often the gate has opened; changed only with the lock on the state held.
    round: AtomicU64,
    changed: Condvar,
}

struct State {
    waiting: usize,
    destroyed: bool,
}

impl Gate {
    /// A gate for so many workers.
    pub fn new(workers: usize) -> Self {
        let state = State { waiting: 0, destroyed: false };
        Gate { workers, state: Mutex::new(state), round: AtomicU64::new(0), changed: Condvar::new() }
    }

    /// Waits until all workers are here; true for exactly one of them, `None` if the gate was destroyed.
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

    /// Releases all workers, now and for good.
    pub fn destroy(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).destroyed = true;
        self.changed.notify_all();
    }
}
