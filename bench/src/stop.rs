//! Signals: they end the process, but not while a file is being written, and a peer that is running ends with it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Held while a file is being written.
static WRITING: Mutex<()> = Mutex::new(());
/// The group of processes of the peer that is running, and the folder with its program.
static PEER: Mutex<Option<(Pid, PathBuf)>> = Mutex::new(None);

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler. Without one, signals still end the process, as everywhere.
pub fn install() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    // A thread of its own, and not a signal handler, so that it may wait.
    let watch = move || {
        for signal in signals.forever() {
            let _complete = while_writing();
            end_peer();
            if let Some((_, folder)) = &*lock(&PEER) {
                // Nobody else does that any more.
                let _ = std::fs::remove_dir_all(folder);
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(watch);
}

/// As long as this lives, no signal ends the process: what is being written becomes complete.
pub fn while_writing() -> MutexGuard<'static, ()> {
    lock(&WRITING)
}

/// A peer has started, as the leader of a group of processes, or has ended.
pub fn peer_is(group: Option<(u32, &Path)>) {
    let peer = |(group, folder): (u32, &Path)| {
        Some((Pid::from_raw(i32::try_from(group).ok()?)?, folder.to_path_buf()))
    };
    *lock(&PEER) = group.and_then(peer);
}

/// Ends the peer that is running, and whatever it has started.
pub fn end_peer() {
    if let Some((group, _)) = &*lock(&PEER) {
        // It may have ended by itself.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}
