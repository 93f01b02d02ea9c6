//! A limit on the size of a report that all parts of the report share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of bytes left for all parts of a report together. The parts may be made by several threads.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Room {
    pub fn new(bytes: usize) -> Self {
        Room(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes this many bytes. If fewer are left, takes none and returns false.
    pub fn take(&self, bytes: usize) -> bool {
        let left = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }

    /// Whether this many bytes are left.
    pub fn has(&self, bytes: usize) -> bool {
        bytes <= self.0.load(Ordering::Relaxed)
    }

    /// Returns bytes that were taken but not needed.
    pub fn give(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}
