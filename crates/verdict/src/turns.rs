//! Time sharing of several concurrent runs on a few cores, with a shared memory limit.
//!
//! Each member of a portfolio is a run in a separate thread, and there may be more members than cores. A member polls its [`Limits`] often, and the
//! poll blocks until it is the member's turn. So a paused member keeps its state and continues where it stopped. The member with the least run time
//! relative to its weight runs next (stride scheduling). Turns are short at first and longer for members that have run for a long time.
//!
//! The members share one memory limit. When it is reached, the member that uses the most memory stops, and the others wait a moment for that memory.
//!
//! [`Limits`]: crate::limits::Limits

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Minimum length of a turn, in nanoseconds.
const SHORTEST: u64 = 40_000_000;
/// Maximum length of a turn, in nanoseconds.
const LONGEST: u64 = 400_000_000;
/// Interval at which a waiting member checks whether it has to stop.
const LOOK: Duration = Duration::from_millis(10);

/// The schedule of the members of a portfolio.
#[derive(Debug)]
pub struct Turns {
    /// The number of cores shared by the members.
    cores: usize,
    began: Instant,
    members: Mutex<Vec<Member>>,
    changed: Condvar,
    /// No turn begins before this time, in nanoseconds since `began`.
    resting: AtomicU64,
    /// Whether a member waits for memory. Then the member that uses the most memory must stop.
    pressed: Arc<AtomicBool>,
    /// The seat of this portfolio, if it is a member of another one.
    outer: Option<Arc<Seat>>,
}

#[derive(Debug)]
struct Member {
    weight: f64,
    /// The number of cores that the member uses during its turn.
    width: usize,
    /// The member's run time before the current turn in seconds, minus its head start.
    used: f64,
    /// The start of the member's current turn, in nanoseconds since `Turns::began`; `None` if the member is paused.
    since: Option<u64>,
    ended: bool,
    shared: Arc<Shared>,
}

/// The state of a member that is accessed without locking.
#[derive(Debug, Default)]
struct Shared {
    /// The end of the member's current turn, in nanoseconds since `Turns::began`; 0 if the member is paused.
    until: AtomicU64,
    /// The memory use that the member has last reported, in bytes.
    bytes: AtomicU64,
}

/// The scheduling parameters of a member.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The member's share of the time, relative to the weights of the other members.
    pub weight: f64,
    /// The number of cores that the member uses during its turn.
    pub width: usize,
    /// Run time that is not counted, so that a member with a head start goes first.
    pub head_start: Duration,
}

/// The handle with which a member waits for its turn.
#[derive(Clone, Debug)]
pub struct Seat {
    turns: Arc<Turns>,
    number: usize,
    shared: Arc<Shared>,
}

impl Turns {
    /// A portfolio without members, on the given number of cores. If the portfolio is itself a member of another portfolio, `outer` is its seat
    /// there.
    pub fn new(cores: usize, outer: Option<Arc<Seat>>) -> Arc<Turns> {
        Arc::new(Turns {
            cores: cores.max(1),
            began: Instant::now(),
            members: Mutex::default(),
            changed: Condvar::new(),
            resting: AtomicU64::new(0),
            pressed: outer.as_ref().map_or_else(Arc::default, |outer| Arc::clone(&outer.turns.pressed)),
            outer,
        })
    }

    /// Adds a member, and returns the seat with which it waits for its turns.
    pub fn seat(self: &Arc<Self>, part: Part) -> Seat {
        let shared = Arc::new(Shared::default());
        let mut members = self.members();
        members.push(Member {
            weight: part.weight,
            width: part.width.clamp(1, self.cores),
            used: -part.head_start.as_secs_f64(),
            since: None,
            ended: false,
            shared: Arc::clone(&shared),
        });
        Seat { turns: Arc::clone(self), number: members.len() - 1, shared }
    }

    /// Prevents new turns for `time`, because the cores are needed elsewhere. Members that have to stop do not wait for a turn.
    pub fn rest(&self, time: Duration) {
        self.resting.store(self.now() + time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Starts the turns of the members with the least run time relative to their weight, as long as there are cores for them. Waiting members are
    /// woken only if a turn was started: each woken member calls this function, so waking them needlessly would keep all of them busy.
    fn start(&self, members: &mut [Member], now: u64) {
        loop {
            let busy: usize = members.iter().filter(|m| m.since.is_some()).map(|m| m.width).sum();
            let waiting = members.iter_mut().filter(|m| m.since.is_none() && !m.ended);
            let Some(next) = waiting.min_by(|a, b| a.had().total_cmp(&b.had())) else { return };
            if (busy > 0 && busy + next.width > self.cores) || now < self.resting.load(Ordering::Relaxed) {
                return;
            }
            let turn = ((next.used.max(0.0) / 4.0 * 1e9) as u64).clamp(SHORTEST, LONGEST);
            next.since = Some(now);
            next.shared.until.store(now + turn, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }
}

impl Member {
    /// The run time of the member relative to its weight.
    fn had(&self) -> f64 {
        self.used / self.weight
    }

    fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Ends the turn of the member, if it has one, and adds the turn to its run time.
    fn pause(&mut self, now: u64) {
        if let Some(since) = self.since.take() {
            self.used += now.saturating_sub(since) as f64 / 1e9;
        }
        self.shared.until.store(0, Ordering::Relaxed);
    }
}

impl Seat {
    /// The number of cores this member may use.
    pub fn cores(&self) -> usize {
        self.turns.members()[self.number].width
    }

    /// Waits until it is this member's turn, here and in the outer portfolio, or until `stop` returns true.
    pub fn wait(&self, stop: &dyn Fn() -> bool) {
        if let Some(outer) = &self.turns.outer {
            outer.wait(stop);
        }
        if self.turns.now() < self.shared.until.load(Ordering::Relaxed) {
            return;
        }
        let mut members = self.turns.members();
        loop {
            let now = self.turns.now();
            if members[self.number].ended || now < self.shared.until.load(Ordering::Relaxed) {
                return;
            }
            members[self.number].pause(now);
            self.turns.start(&mut members, now);
            if members[self.number].since.is_some() {
                return;
            }
            let waited = self.turns.changed.wait_timeout(members, LOOK);
            // `stop` may lock the members as well, so the lock is released before the call.
            drop(waited);
            if stop() {
                return;
            }
            members = self.turns.members();
        }
    }

    /// Removes the member from the schedule. To be called after the member has freed its memory.
    pub fn leave(&self) {
        let mut members = self.turns.members();
        let now = self.turns.now();
        members[self.number].pause(now);
        members[self.number].ended = true;
        self.shared.bytes.store(0, Ordering::Relaxed);
        self.turns.start(&mut members, now);
    }

    /// Records the number of bytes that this member uses. 0 is ignored, because polls that do not know the size of the engine's data pass 0.
    pub fn store(&self, bytes: u64) {
        if bytes > 0 {
            self.shared.bytes.store(bytes, Ordering::Relaxed);
            if let Some(outer) = &self.turns.outer {
                outer.store(self.turns.members().iter().map(Member::bytes).sum());
            }
        }
    }

    /// The number of bytes that all members use, and whether no other member uses more than this one. Members of the outer portfolio are included.
    pub fn stored(&self) -> (u64, bool) {
        let own = self.shared.bytes.load(Ordering::Relaxed);
        let members = self.turns.members();
        let sum = members.iter().map(Member::bytes).sum();
        let largest = members.iter().all(|m| m.bytes() <= own);
        drop(members);
        match &self.turns.outer {
            Some(outer) => (outer.stored().0, largest && outer.stored().1),
            None => (sum, largest),
        }
    }

    /// Asks the portfolio member that uses the most memory to stop; `press(false)` withdraws the request.
    pub fn press(&self, pressed: bool) {
        self.turns.pressed.store(pressed, Ordering::Relaxed);
    }

    /// Whether this member must stop to free memory for others.
    pub fn is_pressed(&self) -> bool {
        self.turns.pressed.load(Ordering::Relaxed)
            && self.shared.bytes.load(Ordering::Relaxed) > 0
            && self.stored().1
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn no_turn_begins_while_all_rest() {
        let turns = Turns::new(2, None);
        let seat = turns.seat(Part { weight: 1.0, width: 1, head_start: Duration::ZERO });
        let began = Instant::now();
        turns.rest(5 * LOOK);
        seat.wait(&|| false);
        assert!(began.elapsed() >= 5 * LOOK, "{:?}", began.elapsed());
        // A stopped member does not wait any longer.
        seat.leave();
        let other = turns.seat(Part { weight: 1.0, width: 1, head_start: Duration::ZERO });
        turns.rest(Duration::from_secs(3_600));
        other.wait(&|| true);
    }

    #[test]
    fn waiting_members_sleep() {
        const WAITING: usize = 4;
        let turns = Turns::new(1, None);
        let part = |weight| Part { weight, width: 1, head_start: Duration::ZERO };
        let (first, looks, over) = (turns.seat(part(1e9)), AtomicUsize::new(0), AtomicBool::new(false));
        first.wait(&|| false);
        let began = Instant::now();
        std::thread::scope(|scope| {
            for seat in (0..WAITING).map(|_| turns.seat(part(1.0))) {
                let (looks, over) = (&looks, &over);
                let stop = move || {
                    looks.fetch_add(1, Ordering::Relaxed);
                    over.load(Ordering::Relaxed)
                };
                scope.spawn(move || seat.wait(&stop));
            }
            // The first member keeps its turn the whole time.
            std::thread::sleep(20 * LOOK);
            over.store(true, Ordering::Relaxed);
        });
        let most = WAITING * (2 + (began.elapsed().as_nanos() / LOOK.as_nanos()) as usize);
        let looks = looks.into_inner();
        assert!(
            (WAITING..=most).contains(&looks),
            "the members polled {looks} times, not at most {most} times"
        );
    }
}
