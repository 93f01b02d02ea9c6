//! How much memory the process uses: every allocation is counted.

use std::alloc::System;

use cap::Cap;

/// Counts and forbids nothing: a command that reaches `--memory` says so and ends in order.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// How many bytes are allocated.
pub fn used() -> u64 {
    ALLOCATOR.allocated() as u64
}
