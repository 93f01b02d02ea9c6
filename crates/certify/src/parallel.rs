//! Runs the check of many items on several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::check::Rejection;

/// The number of workers for `items` items: with fewer than `few`, a single thread is faster than starting more.
pub(crate) fn workers(items: usize, few: usize) -> usize {
    if items < few { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) }
}

/// Checks the items 0 to `items` - 1 in chunks. Each worker has its own state, made by `start`. `check` returns the number of steps it checked, or a
/// rejection and the item that it is about. The result is the sum of the steps, or one of the rejections that were found: the first mistake, or if
/// there is none, the first undecided item.
pub(crate) fn all<W>(
    items: usize,
    chunk: usize,
    workers: usize,
    start: impl Fn() -> W + Sync,
    check: impl Fn(Range<usize>, &mut W) -> Result<usize, (usize, Rejection)> + Sync,
) -> Result<usize, Rejection> {
    let next = AtomicUsize::new(0);
    let steps = AtomicUsize::new(0);
    let rejected: Mutex<Option<(usize, Rejection)>> = Mutex::new(None);
    let reject = |(n, rejection): (usize, Rejection)| {
        let mut first = rejected.lock().unwrap_or_else(PoisonError::into_inner);
        // A mistake found by another worker takes precedence over an undecided item.
        let rank = |n: usize, r: &Rejection| (matches!(r, Rejection::Undecided(_)), n);
        if first.as_ref().is_none_or(|(known, r)| rank(n, &rejection) < rank(*known, r)) {
            *first = Some((n, rejection));
        }
        // From now on no worker takes another chunk.
        next.store(items, Ordering::Relaxed);
    };
    let work = || {
        let mut own = start();
        loop {
            let first = next.fetch_add(chunk, Ordering::Relaxed);
            if first >= items {
                return;
            }
            match check(first..items.min(first + chunk), &mut own) {
                Ok(found) => _ = steps.fetch_add(found, Ordering::Relaxed),
                Err(rejection) => return reject(rejection),
            }
        }
    };
    match workers {
        1 => work(),
        // If a worker panics, the scope panics, so nothing is accepted.
        _ => std::thread::scope(|scope| (0..workers).for_each(|_| _ = scope.spawn(work))),
    }
    match rejected.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, rejection)) => Err(rejection),
        None => Ok(steps.into_inner()),
    }
}
