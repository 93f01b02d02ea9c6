//! Measures how much memory the process uses.
//!
//! Every allocation is counted, which is exact and cheap. But the system's allocator may hold far more than is allocated: each thread that allocates
//! gets regions of its own, and memory that it frees there cannot be used by other threads. So limits also count the resident memory that the
//! operating system reports for the process, less an allowance for the program itself and for the usual waste.

use std::alloc::System;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cap::Cap;
use fencewright::Meter;
use fencewright::engines::wait_until_freed;

/// Counts allocations and never refuses one: a command that reaches `--memory` reports this and ends normally.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The resident memory counts only as far as it exceeds this allowance, in bytes.
const ALLOWANCE: u64 = 40 << 20;

/// Minimum interval between two queries of the operating system: a query takes some microseconds, and limits are checked far more often.
const INTERVAL_MS: u64 = 3;

/// Maximum time a run waits until the memory of earlier runs is freed.
const FOR_FREEING: Duration = Duration::from_secs(10);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Earliest time of the next query, in milliseconds since the start.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The result of the last query, in bytes.
static RESIDENT: AtomicU64 = AtomicU64::new(0);

/// Bytes that the allocator kept after the last run instead of returning them to the system. The next run uses them first, so they do not count
/// against its limit.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Measures this process.
pub const METER: Meter = Meter { used, make_room };

/// Number of bytes in use: the allocated bytes or, if that is more, the resident memory of the process beyond the allowance (or beyond what the
/// allocator kept after the last run, if it kept more than the allowance).
pub fn used() -> u64 {
    let allocated = ALLOCATOR.allocated() as u64;
    allocated.max(resident().saturating_sub(ALLOWANCE.max(HELD.load(Ordering::Relaxed))))
}

/// If at least an eighth of the limit is in use, waits until the memory of earlier runs is freed, and returns it to the operating system. Otherwise
/// it would count against the limit of the next run. Does nothing without a limit.
pub fn make_room(limit: Option<u64>) {
    if limit.is_none_or(|limit| used() < limit / 8) {
        return;
    }
    wait_until_freed(FOR_FREEING);
    fencewright::trim::give_back();
    NEXT.store(0, Ordering::Relaxed);
    HELD.store(resident().saturating_sub(ALLOCATOR.allocated() as u64), Ordering::Relaxed);
}

/// Resident memory of the process in bytes, at most a few milliseconds old; 0 if the operating system does not provide it.
fn resident() -> u64 {
    let now = START.elapsed().as_millis() as u64;
    let due = NEXT.load(Ordering::Relaxed);
    // If several threads find that a query is due, only one of them queries the operating system.
    if now >= due
        && NEXT.compare_exchange(due, now + INTERVAL_MS, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        && let Some(stats) = memory_stats::memory_stats()
    {
        RESIDENT.store(stats.physical_mem as u64, Ordering::Relaxed);
    }
    RESIDENT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_used() {
        let before = used();
        let block = vec![1u8; 64 << 20];
        assert!(used() >= before.max(64 << 20), "{} bytes of {}", used(), block.len());
    }
}
