//! What a run may use: time and memory, until it is cancelled.
//!
//! Memory is counted twice. An engine counts what it stores itself and compares that with its share. If the process counts everything it
//! has allocated (see [`Limits::measured_by`]), that is compared with the whole limit, so that it includes the program, what is derived
//! from it, solvers and traces. Before a large allocation, its size is added ([`Limits::exceeded_with`]).
//!
//! Runs side by side share what they may use: see [`turns`](crate::turns). Looking at the limits is where they wait for each other.
//!
//! A run stops where it looks, so it must look often: at least once in 50 ms of processor time. [`gaps`] finds the places where it does not.

pub mod gaps;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencewright_smt::Budget;

use crate::task::Reason;
use crate::turns::Seat;

/// How much more time and memory a run has for finishing: see [`Limits::finishing`].
const MOMENT: Duration = Duration::from_millis(150);
/// How long a run waits until another one has freed its memory.
const FOR_ROOM: Duration = Duration::from_secs(1);
const ROOM: u64 = 16 << 20;

/// Stops whatever looks at it. Tokens form a tree: cancelling one cancels its children, and theirs.
#[derive(Clone, Debug, Default)]
pub struct Token(Arc<TokenNode>);

#[derive(Debug, Default)]
struct TokenNode {
    cancelled: AtomicBool,
    parent: Option<Token>,
}

impl Token {
    /// A token that is cancelled together with this one, or alone.
    pub fn child(&self) -> Token {
        Token(Arc::new(TokenNode { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Cancels this token and all below it. Says whether that is new for this one.
    pub fn cancel(&self) -> bool {
        !self.0.cancelled.swap(true, Ordering::Relaxed)
    }

    /// Whether this token, or one above it, was cancelled.
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

/// What a run may use. Every engine looks at it often enough to stop within a fraction of a second.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// When to stop.
    pub deadline: Option<Instant>,
    /// How long the user allows; messages name it.
    pub timeout: Option<Duration>,
    /// How many bytes to use at most.
    pub memory: Option<u64>,
    /// Stops the run when it is cancelled.
    pub token: Token,
    /// Where this run waits for its turn, if it is one of several side by side.
    seat: Option<Arc<Seat>>,
    /// Whether only the built-in solver may be used, and no external program.
    own_solver: bool,
    /// Says how many bytes the process has allocated.
    measured: Option<fn() -> u64>,
    /// Whether the run may use a little more: see [`Limits::finishing`].
    finishing: bool,
}

impl Limits {
    /// Limits that start now.
    pub fn starting_now(timeout: Option<Duration>, memory: Option<u64>, token: Token) -> Self {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        Limits { deadline, timeout, memory, token, ..Limits::default() }
    }

    /// The same limits, in a process that knows how many bytes it has allocated. Without this, only what engines store counts.
    pub fn measured_by(self, bytes: fn() -> u64) -> Self {
        Limits { measured: Some(bytes), ..self }
    }

    /// The same limits; if `own_solver`, no external solver is run.
    pub fn with_own_solver(self, own_solver: bool) -> Self {
        Limits { own_solver, ..self }
    }

    /// The same limits, but at most this long from now. Messages name the time that the user allows, if there is one.
    pub fn within(&self, time: Duration) -> Self {
        let end = Instant::now() + time;
        match self.deadline {
            Some(deadline) if deadline <= end => self.clone(),
            _ => Limits { deadline: Some(end), timeout: self.timeout.or(Some(time)), ..self.clone() },
        }
    }

    /// The same limits and a little more, for examining what was found at the last moment: a moment from now, if the time is up already.
    pub fn finishing(&self) -> Self {
        let deadline = self.deadline.map(|deadline| deadline.max(Instant::now()));
        Limits { deadline, finishing: true, ..self.clone() }
    }

    /// The same limits; if the run was cancelled, without any time left, but not cancelled any more. What was found before can still be
    /// examined with what is left for [finishing](Self::finishing).
    pub fn despite_cancellation(&self) -> Self {
        match self.token.is_cancelled() {
            true => Limits { token: Token::default(), ..self.within(Duration::ZERO) },
            false => self.clone(),
        }
    }

    /// The same limits for one of several runs side by side, which this token stops.
    pub fn seated(&self, seat: Seat, token: Token) -> Self {
        Limits { seat: Some(Arc::new(seat)), token, ..self.clone() }
    }

    /// The seat of this run, if it is one of several.
    #[inline]
    pub fn seat(&self) -> Option<&Arc<Seat>> {
        self.seat.as_ref()
    }

    /// From how many stored bytes on a run that cannot end should leave the rest to others: half of the memory, if there are others.
    #[inline]
    pub fn for_endless(&self) -> Option<u64> {
        self.memory.filter(|_| self.seat.is_some()).map(|limit| limit / 2)
    }

    /// The same limits with a child token, for a part of the run: cancelling the child stops this part only, and cancelling the run stops
    /// the part too.
    pub fn part(&self) -> Self {
        Limits { token: self.token.child(), ..self.clone() }
    }

    /// What a solver may use for one question.
    pub fn budget(&self) -> Budget {
        let limits = self.clone();
        Budget {
            deadline: self.deadline.map(|d| if self.finishing { d + MOMENT } else { d }),
            external: !self.own_solver,
            stop: Some(Arc::new(move || limits.exceeded(0).is_some())),
            ..Budget::default()
        }
    }

    /// Why to stop now, if there is a reason; `bytes` is what the engine itself has stored.
    #[track_caller]
    pub fn exceeded(&self, bytes: u64) -> Option<Reason> {
        self.exceeded_with(bytes, 0)
    }

    /// Why to stop now instead of allocating `more` bytes, if there is a reason; `bytes` is what the engine itself has stored.
    #[track_caller]
    pub fn exceeded_with(&self, bytes: u64, more: u64) -> Option<Reason> {
        gaps::look();
        // Whoever finishes has found something, and does not wait.
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

    /// Whether the run was cancelled or the time is up.
    fn is_over(&self) -> bool {
        let moment = if self.finishing { MOMENT } else { Duration::ZERO };
        self.token.is_cancelled() || self.deadline.is_some_and(|d| Instant::now() >= d + moment)
    }

    /// Whether there is memory for `more` bytes.
    fn fits(&self, limit: u64, bytes: u64, more: u64) -> bool {
        let most = if self.finishing { limit.saturating_add(ROOM) } else { limit };
        let stored = match &self.seat {
            Some(seat) if self.measured.is_none() => seat.stored().0.max(bytes),
            _ => bytes.max(self.measured.map_or(0, |measure| measure())),
        };
        stored.saturating_add(more) <= most
    }

    /// Waits for the memory of others, unless this run stores most: then it is the one that stops.
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

/// The system starts no thread for an engine.
pub fn no_thread() -> Reason {
    Reason::Unsupported("the system starts no other thread: too many run, or memory is short".into(), None)
}

/// Frees what takes about so many bytes. Freeing millions of small pieces takes seconds, which a command that has reached its
/// limit does not have. So a thread of its own frees them, and the process may end before it is done.
pub fn discard<T: Send + 'static>(bytes: u64, garbage: T) {
    if bytes > SOON_FREED {
        let counted = Discarding::begin();
        // Without a thread they are freed here.
        let _ = std::thread::Builder::new().spawn(move || {
            drop(garbage);
            drop(counted);
        });
    }
}

/// How many threads free something.
static DISCARDED: AtomicUsize = AtomicUsize::new(0);

/// As long as this lives, something is being freed.
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

/// Waits for at most this long until what was [discarded](discard) is freed, because the next search needs the memory.
pub fn wait_until_freed(most: Duration) {
    let end = Instant::now() + most;
    while DISCARDED.load(Ordering::Relaxed) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Up to this many bytes are freed at once: that takes some milliseconds, and the memory is available when the next search begins.
const SOON_FREED: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use fencewright_smt::{Answer, Formula, Native, Solver, Var};

    use super::*;

    #[test]
    fn every_token_above_stops_a_run_and_its_solver() {
        for n in 0..3 {
            let whole = Limits::default();
            let part = whole.part();
            let limits = part.part().within(Duration::from_secs(60)).finishing();
            let sibling = part.part();
            let stop = limits.budget().stop.expect("a solver can be stopped");
            assert!(limits.exceeded(0).is_none() && !stop());
            let token = [&whole.token, &part.token, &limits.token][n];
            assert!(token.cancel());
            assert!(!token.cancel(), "it is not new any more");
            assert_eq!(limits.exceeded(0), Some(Reason::Cancelled));
            assert!(stop());
            assert_eq!(whole.token.is_cancelled(), n == 0);
            assert_eq!(sibling.token.is_cancelled(), n < 2);
        }
    }

    /// Too many different values for too few places: case splitting takes exponential time.
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
        assert!(!asked.is_finished(), "the question takes much longer");
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
    fn whoever_finishes_has_a_little_more() {
        let limits = Limits::starting_now(Some(Duration::ZERO), Some(100), Default::default());
        assert_eq!(limits.exceeded(0), Some(Reason::Timeout(Duration::ZERO)));
        assert_eq!(limits.finishing().exceeded(0), None);
        assert_eq!(limits.finishing().exceeded(101), None);
        assert_eq!(limits.finishing().exceeded(101 + ROOM), Some(Reason::Memory(100)));
    }

    #[test]
    fn what_the_process_has_allocated_counts_in_full() {
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
