//! Gives memory that is free back to the operating system.
//!
//! The system's allocator keeps memory that a search has freed, in arenas of the threads that allocated it. These may be gigabytes that no thread
//! uses, but they still count as memory of the process and towards the user's memory limit, so little would be left for the next search in the same
//! process. Safe Rust has no interface for this, so the call is in this separate crate: in all others unsafe code is forbidden.

/// Gives free memory back, where the allocator can do that; elsewhere it has no effect.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
mod glibc {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }

    pub fn trim() {
        // Sound: `malloc_trim` takes a number, may be called by any thread at any time, and touches free memory only.
        let _ = unsafe { malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    /// Frees many small allocations below one that stays in use. Without a call of `malloc_trim` the allocator would not return them to the system.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn what_is_free_is_given_back() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").expect("the system says it");
            text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number of pages")
                * 4
        };
        let mut pieces: Vec<Vec<u8>> = (0..200_000).map(|_| vec![1; 512]).collect();
        let last = pieces.pop();
        drop(pieces);
        let before = resident();
        super::give_back();
        let after = resident();
        assert!(last.is_some() && after + 50_000 < before, "{before} KiB, then {after} KiB");
    }
}
