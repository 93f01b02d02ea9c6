//! The only module in which answers of engines become verdicts.
//!
//! * A trace is replayed on the reference semantics; a trace that cannot be replayed is never shown.
//! * A proof by an invariant is written as a certificate and counts only if the checker of certificates accepts it. The same holds for the set of
//!   all states found by the explicit engine, with one exception: if there is no time or memory to check that set, the verdict relies on the engine
//!   alone, and `checked` is false.
//! * An answer without a trace or a certificate is confirmed by exploring the states of the reference semantics, if there are few enough. If there
//!   are too many and the engine has explored executions, then the executions of the reference semantics are enumerated, if they are few enough.
//!   Otherwise the verdict relies on the engine alone as well.
//! * If the engine and its confirmation disagree, there is no verdict.
//!
//! An answer with evidence is confirmed while the engine still works on other properties ([`check_each`]). If there is no time for the confirmation,
//! the result of a completed search counts, marked as relying on the engine alone. An invariant does not count then, and the verdict is `unknown`
//! unless there is another answer.

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

/// Runs an engine and turns its answers into verdicts.
pub fn check(
    engine: &dyn Engine,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
    confirm: Confirm,
) -> Vec<Checked> {
    check_each(engine, task, limits, progress, confirm, &mut |_, _| {}).verdicts
}

/// Stack size of the threads of engines, in bytes. Engines recurse over expressions, so these threads have as large a stack as the main thread.
pub const STACK: usize = 8 << 20;

/// Runs an engine and turns its answers into verdicts as soon as they are available. `on_verdict` is called with the index of the property and the
/// verdict, in the order in which verdicts are found, while the engine continues with the other properties.
///
/// `on_verdict` is called once for every property, and a second time only if a later answer contradicts the first. Then the verdict is withdrawn.
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

/// Like [`check_each`], except that `at_the_end` chooses, from the number of stored states, how to confirm the answers that are left at the end of
/// the run.
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
        // The sender is dropped when the thread ends, even if it panics, so the loop over `arriving` ends too.
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

/// Turns the answers of a finished engine into verdicts; `report` is its result for this task.
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

/// A listener that queues the answers of an engine for confirmation, while the engine continues.
#[derive(Debug)]
struct Anteroom<'a> {
    sender: mpsc::Sender<(usize, Early)>,
    settled: &'a [AtomicBool],
}

impl Listener for Anteroom<'_> {
    fn hear(&self, property: usize, early: Early) {
        // Sending fails only if the thread that receives the answers has panicked, and then the process is about to end.
        let _ = self.sender.send((property, early));
    }

    fn is_settled(&self, property: usize) -> bool {
        self.settled[property].load(Ordering::Relaxed)
    }

    fn judges(&self) -> bool {
        true
    }
}

/// The state of the confirmation of all answers of a run.
struct Door<'a, 'p> {
    confirmation: Confirmation<'a, 'p>,
    start: Instant,
    /// For each property, whether it has a verdict. Engines read this through [`Task::is_settled`].
    settled: &'a [AtomicBool],
    verdicts: Vec<Option<Checked>>,
    /// For each property, a definite answer that was not confirmed. It is used at the end of the run, unless there is a better answer by then.
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

    /// Turns the answers of the engine's final report into verdicts. Afterwards every property has a verdict.
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

    /// Receives an answer while the engine still runs. An answer that can be neither confirmed nor refuted, for example for lack of time, is dropped;
    /// the same or a better answer may still be confirmed later. If answers are confirmed, one that would rely on the engine
    /// alone is kept until the end of the run.
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

    /// Receives an answer at the end of the run, and records a verdict.
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

    /// Records a verdict. If the answer in `held` does not agree with it, the verdict is withdrawn.
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

    /// Compares an answer with the existing verdict. If they disagree, the verdict is withdrawn.
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

/// Additional information about an unanswered property at the end of a run.
#[derive(Clone, Copy, Default)]
struct Beside<'a> {
    /// Buffers and values that grew without bound.
    growth: &'a [(String, Option<Span>)],
    /// The attempts of all engines, if several worked together.
    tried: &'a [Tried],
}

/// The verdict `unknown` that replaces `known`, because the engine `other` claims the opposite; `holds` is the claim of `other`.
fn disagreement(known: &Checked, other: EngineName, holds: bool) -> Checked {
    let words = |holds: bool| if holds { "it holds" } else { "it is violated" };
    let what =
        format!("engine {} says that {}, engine {other} that {}", known.engine, words(!holds), words(holds));
    let (verdict, evidence) = contradiction(what);
    Checked { verdict, evidence, happens_under_sc: false, ..known.clone() }
}
