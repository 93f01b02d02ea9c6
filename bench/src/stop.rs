//! Signal handling: a signal kills the running peer and ends this process, but not while a file is being written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Held while a file is being written.
static WRITING: Mutex<()> = Mutex::new(());
/// The process group of the running peer, and the folder with its program.
static PEER: Mutex<Option<(Pid, PathBuf)>> = Mutex::new(None);

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler. If that fails, signals have their default effect.
pub fn install() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    // A thread waits for signals, because unlike a signal handler it may block on the locks.
    let watch = move || {
        for signal in signals.forever() {
            let _complete = while_writing();
            end_peer();
            if let Some((_, folder)) = &*lock(&PEER) {
                // The process is about to end, so the destructor that would remove the peer's folder does not run.
                let _ = std::fs::remove_dir_all(folder);
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(watch);
}

/// While the guard lives, no signal ends the process, so that a write can complete.
pub fn while_writing() -> MutexGuard<'static, ()> {
    lock(&WRITING)
}

/// Records that a peer has started as leader of a process group, or that it has ended.
pub fn peer_is(group: Option<(u32, &Path)>) {
    let peer = |(group, folder): (u32, &Path)| {
        Some((Pid::from_raw(i32::try_from(group).ok()?)?, folder.to_path_buf()))
    };
    *lock(&PEER) = group.and_then(peer);
}

/// Kills the running peer with its process group.
pub fn end_peer() {
    if let Some((group, _)) = &*lock(&PEER) {
        // An error is ignored: the process group may have ended already.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}
