//! Signal handling: a signal kills the processes that were started and ends this process, but not while a file is being written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The lock that a thread holds while it writes a file.
static WRITING: Mutex<()> = Mutex::new(());
/// The process groups of the running processes, each with the folder of its input if that is temporary.
static RUNNING: Mutex<Vec<(Pid, Option<PathBuf>)>> = Mutex::new(Vec::new());

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
            for (group, folder) in lock(&RUNNING).iter() {
                kill(*group);
                // This process is about to end, so the destructor that would remove the folder does not run.
                folder.iter().for_each(|folder| _ = std::fs::remove_dir_all(folder));
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

/// A process group that was started. Dropping it kills the processes of the group that are left.
pub struct Running(Option<Pid>);

/// Records that a process has started as leader of a process group. A signal also removes the folder.
pub fn began(leader: u32, folder: Option<&Path>) -> Running {
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
    group.iter().for_each(|group| lock(&RUNNING).push((*group, folder.map(Path::to_path_buf))));
    Running(group)
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(group) = self.0 else { return };
        kill(group);
        lock(&RUNNING).retain(|(other, _)| *other != group);
    }
}

/// Kills a process group. An error is ignored: the group may have ended already.
fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}
