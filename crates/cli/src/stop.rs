//! Handles signals: Ctrl-C, `kill`, and a terminal that is closed.
//!
//! There is one handler, which `main` installs before it runs a command. While a search runs, the first signal stops the search, so that its results
//! so far are printed; the second signal ends the process. If no search runs, the first signal ends the process. In both cases the process ends as if
//! it had no handler, so that shells see the signal; but never while a file is being written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use fencewright::engines::Token;

/// The token that all searches poll. The first signal cancels it.
static ASKED: LazyLock<Token> = LazyLock::new(Token::default);
/// Number of running searches that poll the token.
static SEARCHES: AtomicUsize = AtomicUsize::new(0);
/// The lock that a thread holds while it writes a file.
static WRITING: Mutex<()> = Mutex::new(());

/// Installs the handler. If that fails, signals end the process as usual.
pub fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // A parent such as nohup, which wants the process to outlive its terminal, starts the process with SIGHUP ignored; then SIGHUP stays ignored.
    // Shells make background processes ignore SIGINT too; but a SIGINT that this process receives nevertheless was sent to it on purpose, so SIGINT
    // is always handled.
    let outlives_terminal = ignored_signals() >> (SIGHUP - 1) & 1 == 1;
    let wanted =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| signal != SIGHUP || !outlives_terminal);
    let Ok(mut signals) = Signals::new(wanted) else { return };
    // Signals are handled in a normal thread and not in a signal handler, where only few operations are allowed.
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

/// The signals that the process ignored at its start, one bit for each; 0 if the system does not provide this.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).unwrap_or(0)
}

/// The token that the first signal cancels.
pub fn token() -> Token {
    ASKED.clone()
}

/// Whether a signal has asked the command to stop. If so, no further work is started.
pub fn is_asked() -> bool {
    ASKED.is_cancelled()
}

/// While this value exists, a search runs that polls the token, so the first signal does not end the process.
pub struct Search(());

impl Search {
    /// Marks the beginning of a search.
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

/// While the returned guard exists, no signal ends the process, so that a file is written completely.
pub fn while_writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
