//! Gaps: the processor time of a thread between two polls of its limits.
//!
//! Gaps are measured only after a call of [`watch`]; otherwise a poll costs one atomic load. A gap is measured in the thread's processor time,
//! without time spent blocked or waiting for a core, so it is as long on a busy machine as on an idle one.

use std::cell::Cell;
use std::panic::Location;
use std::sync::OnceLock;
use std::time::Duration;

/// A long computation of a thread without polling the limits.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The processor time between the two polls.
    pub time: Duration,
    /// The place of the first poll; `None` if the gap begins at the start of the thread.
    pub from: Option<&'static Location<'static>>,
    /// The place of the second poll; `None` if the gap ends at the end of the thread.
    pub to: Option<&'static Location<'static>>,
}

struct Watch {
    most: Duration,
    tell: fn(&Gap),
}

static WATCH: OnceLock<Watch> = OnceLock::new();

/// From now on, `tell` is called for every gap longer than `most`, in the thread that has the gap. Only the first call of `watch` has an effect.
pub fn watch(most: Duration, tell: fn(&Gap)) {
    let _ = WATCH.set(Watch { most, tell });
}

/// Records a poll of this thread. Every poll of [`Limits`](super::Limits) calls this function. Code without limits, such as code that frees memory
/// before the process ends, may call it to split gaps.
#[track_caller]
#[inline]
pub fn look() {
    if let Some(watch) = WATCH.get() {
        let here = Location::caller();
        // `try_with` fails only while the thread is being destroyed.
        let _ = LAST.try_with(|last| last.look(watch, Some(here)));
    }
}

thread_local! {
    static LAST: Last = const { Last { look: Cell::new((Duration::ZERO, None)) } };
}

/// The last poll of a thread: the processor time of the thread at that poll, and the place in the source. The place is `None` before the first poll.
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
            // The time that `tell` took is excluded from the next gap.
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

/// Without a clock for single threads, no gap is found.
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

    /// Computes for this much processor time, independently of the load of the machine.
    fn compute(time: Duration) {
        let end = processor_time() + time;
        while processor_time() < end {}
    }

    #[test]
    fn a_thread_that_does_not_look_is_heard_of() {
        let long = Duration::from_millis(40);
        // Other tests in this binary run at the same time and also poll their limits; only gaps of this test's thread are recorded.
        watch(long, |gap| {
            if std::thread::current().name() == Some("gaps") {
                HEARD.lock().expect("no test panics").push(gap.clone());
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
        let heard = HEARD.lock().expect("no test panics");
        let lines: Vec<_> =
            heard.iter().map(|gap| (gap.from.map(|at| at.line()), gap.to.map(|at| at.line()))).collect();
        let [(Some(second), Some(third)), (Some(last), None)] = lines[..] else { panic!("{heard:?}") };
        assert_eq!((third - second, last), (2, third), "{heard:?}");
        assert!(heard.iter().all(|gap| gap.time >= 2 * long && gap.time < 20 * long), "{heard:?}");
    }
}
