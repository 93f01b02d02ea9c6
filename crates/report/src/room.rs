//! How much of a report there may be, however many parts it is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes are left, for all parts of a report together: parts may be made side by side.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Room {
    pub fn new(bytes: usize) -> Self {
        Room(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes so many bytes, if they are left.
    pub fn take(&self, bytes: usize) -> bool {
        let left = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }

    /// Whether so many bytes are left.
    pub fn has(&self, bytes: usize) -> bool {
        bytes <= self.0.load(Ordering::Relaxed)
    }

    /// Gives bytes back that turned out not to be needed.
    pub fn give(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}
