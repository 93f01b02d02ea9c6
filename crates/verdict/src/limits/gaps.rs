//! Gaps: how long a thread computes between two looks at its limits.
//!
//! Off by default, at the cost of one atomic load per look; [`watch`] turns it on. A gap is measured in the thread's CPU time: time spent blocked or waiting for a core
//! does not count, so that a gap is as long on a busy machine as on an idle one.

use std::cell::Cell;
use std::panic::Location;
use std::sync::OnceLock;
use std::time::Duration;

/// A thread has computed for long without a look at its limits.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The processor time between the two looks.
    pub time: Duration,
    /// The place of the first look, or none if the thread began after it.
    pub from: Option<&'static Location<'static>>,
    /// The place of the second look, or none if the thread ended before it.
    pub to: Option<&'static Location<'static>>,
}

struct Watch {
    most: Duration,
    tell: fn(&Gap),
}

static WATCH: OnceLock<Watch> = OnceLock::new();

/// From now on `tell` hears of every gap that is longer than `most`, in the thread whose gap it is and before it goes on. The first caller
/// decides.
pub fn watch(most: Duration, tell: fn(&Gap)) {
    let _ = WATCH.set(Watch { most, tell });
}

/// Looks at the clock of this thread. Every look at a [`Limits`](super::Limits) is one; work that is not under limits, such as freeing
/// memory when a process is about to end, can be told apart by more of them.
#[track_caller]
#[inline]
pub fn look() {
    if let Some(watch) = WATCH.get() {
        let here = Location::caller();
        // A thread that is ending has told what there is.
        let _ = LAST.try_with(|last| last.look(watch, Some(here)));
    }
}

thread_local! {
    static LAST: Last = const { Last { look: Cell::new((Duration::ZERO, None)) } };
}

/// The last look of a thread: its processor time then, and where it was.
struct Last {
    look: Cell<(Duration, Option<&'static Location<'static>>)>,
}

impl Last {
    fn look(&self, watch: &Watch, to: Option<&'static Location<'static>>) {
        let now = processor_time();
        let (then, from) = self.look.replace((now, to));
        let time = now.saturating_sub(then);
        if time > watch.most {
            (watch.tell)(&Gap { time, from, to });
            // Telling takes time too.
            self.look.set((processor_time(), to));
        }
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(watch) = WATCH.get() {
            self.look(watch, None);
        }
    }
}

/// The processor time of this thread since it began.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Where there is no such clock there are no gaps.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::limits::Limits;

    static HEARD: Mutex<Vec<Gap>> = Mutex::new(Vec::new());

    /// Computes for so long, whatever else the machine does.
    fn compute(time: Duration) {
        let end = processor_time() + time;
        while processor_time() < end {}
    }

    #[test]
    fn a_thread_that_does_not_look_is_heard_of() {
        let long = Duration::from_millis(40);
        // Other tests of this program look too.
        watch(long, |gap| {
            if std::thread::current().name() == Some("gaps") {
                HEARD.lock().expect("nobody panics").push(gap.clone());
            }
        });
        let limits = Limits::default();
        let thread = std::thread::Builder::new().name("gaps".into()).spawn(move || {
            limits.exceeded(0);
            std::thread::sleep(2 * long);
            limits.exceeded(0);
            compute(2 * long);
            limits.exceeded(0);
            compute(2 * long);
        });
        thread.expect("a thread starts").join().expect("it does not panic");
        let heard = HEARD.lock().expect("nobody panics");
        let lines: Vec<_> =
            heard.iter().map(|gap| (gap.from.map(|at| at.line()), gap.to.map(|at| at.line()))).collect();
        let [(Some(second), Some(third)), (Some(last), None)] = lines[..] else { panic!("{heard:?}") };
        assert_eq!((third - second, last), (2, third), "{heard:?}");
        assert!(heard.iter().all(|gap| gap.time >= 2 * long && gap.time < 20 * long), "{heard:?}");
    }
}
