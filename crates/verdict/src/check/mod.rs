//! The door: answers of engines become verdicts only here.
//!
//! * A trace is replayed on the reference semantics; one that does not replay is never shown.
//! * A proof by an invariant is written as a certificate, and counts only if the checker of certificates accepts it. So is the set of all states
//!   that the explicit engine has found; if there is no time or memory to check a set, the verdict stands on the engine alone and says so:
//!   `checked` is false.
//! * `safe` without a trace or a certificate is confirmed by exploring the reference semantics itself, where the state space is small
//!   enough. Where it is not, the verdict stands on the engine alone as well.
//! * If the engine and its confirmation disagree, there is no verdict.
//!
//! An answer that carries its evidence passes the door while the engine still works on other properties ([`check_each`]). One rule for what
//! could not be confirmed in time: a search that has ended counts, and says that it stands on the engine alone; an invariant whose check
//! was cut off does not count, and the verdict is `unknown` unless there is another answer.

mod confirm;
mod finals;
mod proof;
mod verdict;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use fencewright_program::Span;

use crate::limits::no_thread;
use crate::task::{
    Answer, Author, Early, Engine, EngineName, Limits, Listener, Progress, Reason, Report, Task, Tried,
};
pub use confirm::accepted;
use confirm::{Confirmation, contradiction};
pub use finals::{Doubt, FinalState, FinalStates, Observation};
pub use proof::proof;
pub use verdict::{Checked, Checks, Confirm, Evidence, Exploration, Verdict};

/// Runs an engine and lets its answers through the door.
pub fn check(
    engine: &dyn Engine,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
    confirm: Confirm,
) -> Vec<Checked> {
    check_each(engine, task, limits, progress, confirm, &mut |_, _| {}).verdicts
}

/// Engines recurse over expressions: their threads have as much stack as the main thread.
pub const STACK: usize = 8 << 20;

/// Runs an engine and lets its answers through the door, each as soon as the engine has it. `on_verdict` is called with the number of the
/// property and the verdict, in the order in which they are found, while the engine goes on with the rest.
///
/// It is called once for every property, and a second time only if a later answer contradicts the first: then there is no verdict any more.
pub fn check_each(
    engine: &dyn Engine,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
    confirm: Confirm,
    on_verdict: &mut dyn FnMut(usize, &Checked),
) -> Checks {
    check_run(engine, task, limits, progress, confirm, &|_| confirm, on_verdict)
}

/// The same as [`check_each`], where how much to do to confirm what is left at the end depends on how many states were stored.
pub fn check_run(
    engine: &dyn Engine,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
    confirm: Confirm,
    at_the_end: &dyn Fn(u64) -> Confirm,
    on_verdict: &mut dyn FnMut(usize, &Checked),
) -> Checks {
    let settled: Vec<AtomicBool> = task.properties.iter().map(|_| AtomicBool::new(false)).collect();
    let mut door = Door::new(task, limits, confirm, &settled, on_verdict);
    let report = std::thread::scope(|scope| {
        let (sender, arriving) = mpsc::channel();
        let settled = &settled;
        // The sender is dropped when the thread ends, even by a panic.
        let run = move || {
            let anteroom = Anteroom { sender, settled };
            engine.run(&task.heard_by(&anteroom), limits, progress)
        };
        let running = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        let Ok(running) = running else {
            let answers = task.properties.iter().map(|_| Answer::Unknown(no_thread())).collect();
            return Report { answers, ..Report::default() };
        };
        for (n, early) in arriving {
            door.admit_early(n, early);
        }
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let statistics = report.work.clone();
    door.confirmation.confirm = at_the_end(report.work.states);
    Checks { verdicts: door.admit_report(engine.name(), report), statistics }
}

/// Lets the answers of an engine that has run through the door, `report` being what it gave back for this task.
pub(crate) fn admit(
    engine: &dyn Engine,
    task: &Task<'_>,
    report: Report,
    limits: &Limits,
    confirm: Confirm,
) -> Vec<Checked> {
    let settled: Vec<AtomicBool> = task.properties.iter().map(|_| AtomicBool::new(false)).collect();
    let mut on_verdict = |_: usize, _: &Checked| {};
    Door::new(task, limits, confirm, &settled, &mut on_verdict).admit_report(engine.name(), report)
}

/// The queue in which answers wait for the door while their engine goes on.
#[derive(Debug)]
struct Anteroom<'a> {
    sender: mpsc::Sender<(usize, Early)>,
    settled: &'a [AtomicBool],
}

impl Listener for Anteroom<'_> {
    fn hear(&self, property: usize, early: Early) {
        // If nobody receives it, the door has panicked, and the process is about to end.
        let _ = self.sender.send((property, early));
    }

    fn is_settled(&self, property: usize) -> bool {
        self.settled[property].load(Ordering::Relaxed)
    }

    fn judges(&self) -> bool {
        true
    }
}

/// The door itself.
struct Door<'a, 'p> {
    confirmation: Confirmation<'a, 'p>,
    start: Instant,
    /// Which properties have their verdict, for engines.
    settled: &'a [AtomicBool],
    verdicts: Vec<Option<Checked>>,
    /// Definite answers that nobody could confirm yet: they wait for a better one, until the run ends.
    held: Vec<Option<Early>>,
    on_verdict: &'a mut dyn FnMut(usize, &Checked),
}

impl<'a, 'p> Door<'a, 'p> {
    fn new(
        task: &'a Task<'p>,
        limits: &'a Limits,
        confirm: Confirm,
        settled: &'a [AtomicBool],
        on_verdict: &'a mut dyn FnMut(usize, &Checked),
    ) -> Self {
        let confirmation = Confirmation::new(task, limits, confirm);
        let verdicts = vec![None; settled.len()];
        let held = settled.iter().map(|_| None).collect();
        Door { confirmation, start: Instant::now(), settled, verdicts, held, on_verdict }
    }

    /// Admits the answers that an engine gives at its end; then every property has a verdict.
    fn admit_report(mut self, engine: EngineName, mut report: Report) -> Vec<Checked> {
        let missing = || Answer::Unknown(Reason::Contradiction("the engine gave no answer".into()));
        report.answers.resize_with(self.verdicts.len(), missing);
        let seconds = self.start.elapsed().as_secs_f64();
        for (n, answer) in std::mem::take(&mut report.answers).into_iter().enumerate() {
            let own = report.authors.get(n).filter(|author| author.engine != EngineName::Auto).cloned();
            let author = own.unwrap_or_else(|| Author { engine, work: report.work.clone() });
            let early = Early { answer, author };
            let beside =
                Beside { growth: &report.growth, tried: report.tried.get(n).map_or(&[], Vec::as_slice) };
            self.admit(n, early, seconds, beside);
        }
        self.verdicts.into_iter().map(|checked| checked.expect("every property was admitted")).collect()
    }

    /// Admits an answer while the engine still runs. If it cannot be confirmed now, it is left: it may be confirmed later, or another
    /// engine may have a better answer. One that stands on the engine alone waits for the end of the run, and counts only then.
    fn admit_early(&mut self, n: usize, early: Early) {
        let seconds = self.start.elapsed().as_secs_f64();
        let confirms = self.confirmation.confirms();
        if self.verdicts[n].is_some() {
            return self.compare(n, &early);
        }
        if confirms && matches!(early.answer, Answer::Holds(None) | Answer::Violated(None)) {
            self.held[n].get_or_insert(early);
            return;
        }
        let checked = self.confirmation.checked(n, early.clone(), seconds, Beside::default());
        match (&checked.verdict, checked.checked()) {
            (Verdict::Unknown(Reason::Contradiction(_)), _) => self.pronounce(n, checked),
            (Verdict::Unknown(_), _) => {}
            (_, Some(false)) if confirms => _ = self.held[n].get_or_insert(early),
            _ => self.pronounce_if_agreed(n, checked),
        }
    }

    /// Admits an answer for good.
    fn admit(&mut self, n: usize, early: Early, seconds: f64, beside: Beside<'_>) {
        if self.verdicts[n].is_some() {
            return self.compare(n, &early);
        }
        let mut checked = self.confirmation.checked(n, early, seconds, beside);
        let undecided = |verdict: &Verdict| match verdict {
            Verdict::Unknown(reason) => !matches!(reason, Reason::Contradiction(_)),
            Verdict::Safe | Verdict::Unsafe => false,
        };
        if undecided(&checked.verdict)
            && let Some(held) = self.held[n].take()
        {
            checked = self.confirmation.checked(n, held, seconds, beside);
        }
        self.pronounce_if_agreed(n, checked);
    }

    /// Pronounces a verdict. An answer that waits for a better one must agree with it.
    fn pronounce_if_agreed(&mut self, n: usize, checked: Checked) {
        let held = self.held[n].take();
        self.pronounce(n, checked);
        if let Some(held) = held {
            self.compare(n, &held);
        }
    }

    fn pronounce(&mut self, n: usize, checked: Checked) {
        self.settled[n].store(true, Ordering::Relaxed);
        (self.on_verdict)(n, &checked);
        self.verdicts[n] = Some(checked);
    }

    /// Compares an answer with the verdict that is already there. If they disagree, there is no verdict.
    fn compare(&mut self, n: usize, early: &Early) {
        let (Some(holds), Some(known)) = (early.answer.holds(), &self.verdicts[n]) else { return };
        let disagree = match known.verdict {
            Verdict::Safe => !holds,
            Verdict::Unsafe => holds,
            Verdict::Unknown(_) => false,
        };
        if disagree {
            let checked = disagreement(known, early.author.engine, holds);
            self.pronounce(n, checked);
        }
    }
}

/// What comes beside an answer at the end of a run.
#[derive(Clone, Copy, Default)]
struct Beside<'a> {
    /// What grew without end.
    growth: &'a [(String, Option<Span>)],
    /// What was tried, if several engines worked together.
    tried: &'a [Tried],
}

/// There is no verdict if another engine says the opposite of one that is known; it says whether the property `holds`.
fn disagreement(known: &Checked, other: EngineName, holds: bool) -> Checked {
    let words = |holds: bool| if holds { "it holds" } else { "it is violated" };
    let what =
        format!("engine {} says that {}, engine {other} that {}", known.engine, words(!holds), words(holds));
    let (verdict, evidence) = contradiction(what);
    Checked { verdict, evidence, happens_under_sc: false, ..known.clone() }
}
