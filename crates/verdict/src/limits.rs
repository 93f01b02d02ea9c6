//! Limits of a run: time, memory and cancellation.
//!
//! Memory is counted in two ways. Each engine counts the bytes of its own data. If the process counts all its allocations as well (see
//! [`Limits::measured_by`]), their total is compared with the limit too; it includes the program, data derived from it, solvers and traces. Before a
//! large allocation, the engine passes the size of the allocation to [`Limits::exceeded_with`], which adds that size.
//!
//! Concurrent runs share their limits. When a run polls the limits, it waits for its turn: see [`turns`](crate::turns).
//!
//! A run stops only when it polls its limits, so it must poll them at least once in 50 ms of processor time. [`gaps`] finds the places where a run
//! polls less often.

pub mod gaps;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencewright_smt::Budget;

use crate::task::Reason;
use crate::turns::Seat;

/// Time allowed beyond the limit in the grace period: see [`Limits::finishing`].
const MOMENT: Duration = Duration::from_millis(150);
/// Maximum time that a run waits for another one to free its memory.
const FOR_ROOM: Duration = Duration::from_secs(1);
/// Number of bytes allowed beyond the limit in the grace period: see [`Limits::finishing`].
const ROOM: u64 = 16 << 20;

/// A cancellation token. Tokens form a tree: cancelling one cancels all its descendants.
#[derive(Clone, Debug, Default)]
pub struct Token(Arc<TokenNode>);

#[derive(Debug, Default)]
struct TokenNode {
    cancelled: AtomicBool,
    parent: Option<Token>,
}

impl Token {
    /// A token that can be cancelled separately, and is cancelled together with this one.
    pub fn child(&self) -> Token {
        Token(Arc::new(TokenNode { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Cancels this token and its descendants. Returns false if this token itself had been cancelled before.
    pub fn cancel(&self) -> bool {
        !self.0.cancelled.swap(true, Ordering::Relaxed)
    }

    /// Whether this token or one of its ancestors was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        let mut node = &self.0;
        loop {
            match &node.parent {
                _ if node.cancelled.load(Ordering::Relaxed) => return true,
                Some(Token(parent)) => node = parent,
                None => return false,
            }
        }
    }
}

/// The limits of a run. Every engine polls them often enough to stop within a fraction of a second.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The time at which the run must stop; `None` if its time is not limited.
    pub deadline: Option<Instant>,
    /// The time that messages name as the limit: the one set by the user or, without one, the first one set by `Limits::within`.
    pub timeout: Option<Duration>,
    /// Maximum memory use, in bytes; `None` if it is not limited.
    pub memory: Option<u64>,
    /// Cancelling this token stops the run.
    pub token: Token,
    /// The seat at which this run waits for its turn, if it is one of several concurrent runs.
    seat: Option<Arc<Seat>>,
    /// Whether only the built-in solver may be used, not an external program.
    own_solver: bool,
    /// Returns the number of bytes the process has allocated; `None` if the process does not count them.
    measured: Option<fn() -> u64>,
    /// Whether the grace period applies: see [`Limits::finishing`].
    finishing: bool,
}

impl Limits {
    /// Limits of a run that starts now: it may take `timeout` and use `memory` bytes.
    pub fn starting_now(timeout: Option<Duration>, memory: Option<u64>, token: Token) -> Self {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        Limits { deadline, timeout, memory, token, ..Limits::default() }
    }

    /// The same limits, with a function that returns the number of bytes the process has allocated. Without this function, only the bytes that
    /// engines report count.
    pub fn measured_by(self, bytes: fn() -> u64) -> Self {
        Limits { measured: Some(bytes), ..self }
    }

    /// The same limits; with `own_solver`, no external solver is run.
    pub fn with_own_solver(self, own_solver: bool) -> Self {
        Limits { own_solver, ..self }
    }

    /// The same limits, but the run ends at most `time` from now. Messages still name the time allowed by the user, if there is one.
    pub fn within(&self, time: Duration) -> Self {
        let end = Instant::now() + time;
        match self.deadline {
            Some(deadline) if deadline <= end => self.clone(),
            _ => Limits { deadline: Some(end), timeout: self.timeout.or(Some(time)), ..self.clone() },
        }
    }

    /// The same limits with a grace period, in which results found at the last moment are examined. It starts at the deadline, or now if the deadline
    /// has passed.
    pub fn finishing(&self) -> Self {
        let deadline = self.deadline.map(|deadline| deadline.max(Instant::now()));
        Limits { deadline, finishing: true, ..self.clone() }
    }

    /// The same limits without cancellation: if the run was cancelled, no time is left except for the grace period of [`finishing`](Self::finishing),
    /// in which earlier results can still be examined.
    pub fn despite_cancellation(&self) -> Self {
        match self.token.is_cancelled() {
            true => Limits { token: Token::default(), ..self.within(Duration::ZERO) },
            false => self.clone(),
        }
    }

    /// The same limits for one of several concurrent runs, with its own token.
    pub fn seated(&self, seat: Seat, token: Token) -> Self {
        Limits { seat: Some(Arc::new(seat)), token, ..self.clone() }
    }

    /// The seat of this run, if it is one of several concurrent runs.
    #[inline]
    pub fn seat(&self) -> Option<&Arc<Seat>> {
        self.seat.as_ref()
    }

    /// The number of stored bytes at which a run that is unlikely to terminate should stop, to leave memory to other concurrent runs: half of the
    /// limit. `None` if there is no memory limit or no other run.
    #[inline]
    pub fn for_endless(&self) -> Option<u64> {
        self.memory.filter(|_| self.seat.is_some()).map(|limit| limit / 2)
    }

    /// The same limits with a child token, for a part of the run. Cancelling the child token stops this part only; cancelling the run stops this part
    /// too.
    pub fn part(&self) -> Self {
        Limits { token: self.token.child(), ..self.clone() }
    }

    /// The budget of a solver for one query.
    pub fn budget(&self) -> Budget {
        let limits = self.clone();
        Budget {
            deadline: self.deadline.map(|d| if self.finishing { d + MOMENT } else { d }),
            external: !self.own_solver,
            stop: Some(Arc::new(move || limits.exceeded(0).is_some())),
            ..Budget::default()
        }
    }

    /// The reason to stop now, if there is one. `bytes` is the size of the engine's own data.
    #[track_caller]
    pub fn exceeded(&self, bytes: u64) -> Option<Reason> {
        self.exceeded_with(bytes, 0)
    }

    /// The reason to stop instead of allocating `more` bytes, if there is one. `bytes` is the size of the engine's own data.
    #[track_caller]
    pub fn exceeded_with(&self, bytes: u64, more: u64) -> Option<Reason> {
        gaps::look();
        // A run in its grace period has found a result already, so it does not wait for its turn.
        if let Some(seat) = self.seat.as_ref().filter(|_| !self.finishing) {
            seat.store(bytes);
            seat.wait(&|| self.is_over() || seat.is_pressed());
        }
        if self.token.is_cancelled() {
            return Some(Reason::Cancelled);
        }
        if self.is_over() {
            return Some(Reason::Timeout(self.timeout.unwrap_or_default()));
        }
        let limit = self.memory?;
        let asked = self.seat.as_ref().is_some_and(|seat| !self.finishing && seat.is_pressed());
        let fits = self.fits(limit, bytes, more) || self.others_make_room(limit, bytes, more);
        (asked || !fits).then_some(Reason::Memory(limit))
    }

    /// Whether the run was cancelled or its time is up, the grace period included.
    fn is_over(&self) -> bool {
        let moment = if self.finishing { MOMENT } else { Duration::ZERO };
        self.token.is_cancelled() || self.deadline.is_some_and(|d| Instant::now() >= d + moment)
    }

    /// Whether `more` bytes fit into the limit, the extra room of the grace period included.
    fn fits(&self, limit: u64, bytes: u64, more: u64) -> bool {
        let most = if self.finishing { limit.saturating_add(ROOM) } else { limit };
        let stored = match &self.seat {
            Some(seat) if self.measured.is_none() => seat.stored().0.max(bytes),
            _ => bytes.max(self.measured.map_or(0, |measure| measure())),
        };
        stored.saturating_add(more) <= most
    }

    /// Asks the concurrent run that uses the most memory to stop, and waits until `more` bytes fit or a time limit is reached. If this run itself
    /// uses the most, it does not wait. Returns whether `more` bytes fit now.
    fn others_make_room(&self, limit: u64, bytes: u64, more: u64) -> bool {
        let Some(seat) = self.seat.as_ref().filter(|_| !self.finishing) else { return false };
        let end = Instant::now() + FOR_ROOM;
        while !seat.stored().1 && !self.is_over() && Instant::now() < end {
            seat.press(true);
            std::thread::sleep(Duration::from_millis(5));
            if self.fits(limit, bytes, more) {
                break;
            }
        }
        seat.press(false);
        self.fits(limit, bytes, more)
    }
}

/// The reason to report if the system could not start a thread for an engine.
pub fn no_thread() -> Reason {
    Reason::Unsupported("the system starts no other thread: too many run, or memory is short".into(), None)
}

/// Frees data of about `bytes` bytes. Freeing millions of small allocations takes seconds, too long after a limit was reached. So large data is freed
/// in a separate thread, and the process may end before that thread does.
pub fn discard<T: Send + 'static>(bytes: u64, garbage: T) {
    if bytes > SOON_FREED {
        let counted = Discarding::begin();
        // If no thread can be started, the closure is dropped, which frees the data in this thread.
        let _ = std::thread::Builder::new().spawn(move || {
            drop(garbage);
            drop(counted);
        });
    }
}

/// The number of calls of [`discard`] whose data is still being freed.
static DISCARDED: AtomicUsize = AtomicUsize::new(0);

/// A guard that counts data as being freed.
struct Discarding(());

impl Discarding {
    fn begin() -> Self {
        DISCARDED.fetch_add(1, Ordering::Relaxed);
        Discarding(())
    }
}

impl Drop for Discarding {
    fn drop(&mut self) {
        DISCARDED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until all [discarded](discard) data is freed, but at most for `most`, because the next search needs the memory.
pub fn wait_until_freed(most: Duration) {
    let end = Instant::now() + most;
    while DISCARDED.load(Ordering::Relaxed) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Data of at most this many bytes is freed in the calling thread, because that takes only a few milliseconds, and then the memory is available to
/// the next search.
const SOON_FREED: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use fencewright_smt::{Answer, Formula, Native, Solver, Var};

    use super::*;

    #[test]
    fn every_ancestor_token_stops_a_run_and_its_solver() {
        for n in 0..3 {
            let whole = Limits::default();
            let part = whole.part();
            let limits = part.part().within(Duration::from_secs(60)).finishing();
            let sibling = part.part();
            let stop = limits.budget().stop.expect("a solver can be stopped");
            assert!(limits.exceeded(0).is_none() && !stop());
            let token = [&whole.token, &part.token, &limits.token][n];
            assert!(token.cancel());
            assert!(!token.cancel(), "it was cancelled already");
            assert_eq!(limits.exceeded(0), Some(Reason::Cancelled));
            assert!(stop());
            assert_eq!(whole.token.is_cancelled(), n == 0);
            assert_eq!(sibling.token.is_cancelled(), n < 2);
        }
    }

    /// The pigeonhole problem with `count` pigeons: case splitting takes exponential time.
    fn pigeons(count: u32) -> Vec<Formula> {
        let places = |var| [Formula::le(0, Var(var)), Formula::le(Var(var), i64::from(count) - 2)];
        let differ = |left| (0..left).map(move |right| Formula::ne(Var(left), Var(right)));
        (0..count).flat_map(|var| places(var).into_iter().chain(differ(var))).collect()
    }

    #[test]
    fn cancelling_the_whole_reaches_a_query_that_is_being_answered() {
        let whole = Limits::default();
        let part = whole.part();
        let asked = std::thread::spawn(move || {
            let budget = Budget { steps: u64::MAX, ..part.budget() };
            Native::new().check(&pigeons(14), &budget)
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!asked.is_finished(), "the query takes much longer");
        let start = Instant::now();
        whole.token.cancel();
        let answer = asked.join().expect("the solver does not panic");
        assert!(matches!(answer, Answer::Unknown(fencewright_smt::Reason::Cancelled)), "{answer:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "it went on for {:?}", start.elapsed());
    }

    #[test]
    fn messages_name_what_the_user_allows() {
        let allowed = Duration::from_secs(60);
        let limits = Limits::starting_now(Some(allowed), Some(1 << 20), Default::default());
        assert_eq!(limits.within(Duration::ZERO).exceeded(0), Some(Reason::Timeout(allowed)));
        assert_eq!(limits.exceeded(1_100_000), Some(Reason::Memory(1 << 20)));
        assert_eq!(limits.exceeded(600_000), None);
    }

    #[test]
    fn finishing_runs_get_a_grace_period() {
        let limits = Limits::starting_now(Some(Duration::ZERO), Some(100), Default::default());
        assert_eq!(limits.exceeded(0), Some(Reason::Timeout(Duration::ZERO)));
        assert_eq!(limits.finishing().exceeded(0), None);
        assert_eq!(limits.finishing().exceeded(101), None);
        assert_eq!(limits.finishing().exceeded(101 + ROOM), Some(Reason::Memory(100)));
    }

    #[test]
    fn all_memory_of_the_process_counts() {
        let limits = Limits { memory: Some(100), ..Limits::default() };
        let measured = limits.clone().measured_by(|| 80);
        assert_eq!(measured.exceeded(0), None);
        assert_eq!(measured.exceeded_with(0, 20), None);
        assert_eq!(measured.exceeded_with(0, 21), Some(Reason::Memory(100)));
        assert_eq!(measured.exceeded(101), Some(Reason::Memory(100)));
        assert_eq!(limits.exceeded_with(80, 21), Some(Reason::Memory(100)));
        assert_eq!(limits.measured_by(|| 101).exceeded(0), Some(Reason::Memory(100)));
    }
}
