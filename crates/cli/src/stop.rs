//! Signals: Ctrl-C, `kill`, and a terminal that is closed.
//!
//! There is one handler, which `main` installs before anything else. While a search runs, the first signal asks it to stop, so that what it
//! has found out is told; the second one ends the process. At any other time there is nothing to tell, and the first one ends it. A process
//! that is ended by a signal ends as if it had no handler, so that shells see which one it was, but not while a file is being written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use fencewright::engines::Token;

/// Cancelled by the first signal.
static ASKED: LazyLock<Token> = LazyLock::new(Token::default);
/// Number of running searches that poll the token.
static SEARCHES: AtomicUsize = AtomicUsize::new(0);
/// Held while a file is being written.
static WRITING: Mutex<()> = Mutex::new(());

/// Installs the handler. Without one, signals still end the process, as everywhere.
pub fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // A parent that wants the process to outlive its terminal, such as nohup, sets SIGHUP to ignored. Shells set SIGINT to ignored for background
    // processes, but a SIGINT sent to this process is meant for it.
    let outlives_terminal = ignored_signals() >> (SIGHUP - 1) & 1 == 1;
    let wanted =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| signal != SIGHUP || !outlives_terminal);
    let Ok(mut signals) = Signals::new(wanted) else { return };
    // A thread of its own, and not a signal handler, so that it may do anything.
    let watch = move || {
        for signal in signals.forever() {
            if SEARCHES.load(Ordering::Relaxed) == 0 || !ASKED.cancel() {
                let _complete = while_writing();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(watch);
}

/// The signals that are ignored already, one bit for each; none where the system does not say.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).unwrap_or(0)
}

/// The token that the first signal cancels.
pub fn token() -> Token {
    ASKED.clone()
}

/// Whether a signal asked to stop: then nothing new is begun.
pub fn is_asked() -> bool {
    ASKED.is_cancelled()
}

/// As long as this lives, a search runs that stops when asked.
pub struct Search(());

impl Search {
    /// A search begins.
    pub fn begin() -> Self {
        SEARCHES.fetch_add(1, Ordering::Relaxed);
        Search(())
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        SEARCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// As long as this lives, no signal ends the process: what is being written becomes complete.
pub fn while_writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
