//! Returns free memory to the operating system.
//!
//! The system's allocator keeps memory that a search has freed, in arenas of the threads that allocated it. This can be gigabytes, which no thread
//! uses but which still count as memory of the process, and so towards the user's memory limit: little would be left for the next search in the same
//! process. Safe Rust has no interface for returning it, so the call is in this separate crate; unsafe code is forbidden in all others.

/// Asks the allocator to return free memory to the system. Only glibc on Linux can do that; elsewhere the function has no effect.
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
