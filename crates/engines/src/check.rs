//! The door: answers of engines become verdicts only here.
//!
//! * A trace is replayed on the reference semantics; one that does not replay is never shown.
//! * A proof by an invariant is written as a certificate, and counts only if the checker of certificates accepts it.
//! * `safe` without either is confirmed by exploring the reference semantics itself, where the state space is small enough.
//!   Where it is not, the verdict stands on the engine alone and says so: `checked` is false.
//! * If the two disagree, there is no verdict.
//!
//! An answer that carries its evidence comes through while the engine still works on the others ([`check_each`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fencewright_certify::{Certificate, Rejection, Stop};
use fencewright_memory::BufferMachine;

use fencewright_program::oracle::{self, Reachable};
use fencewright_program::replay::ReplayError;
use fencewright_program::{EventKind, MemoryModel, Program, Property, Replayed, Span, Trace};

use crate::task::{Answer, Early, Engine, Invariant, Limits, Listener, Progress, Reason, Round, Task};

/// What the tool says about a property.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It holds.
    Safe,
    /// It does not.
    Unsafe,
    /// Nobody knows.
    Unknown(Reason),
}

/// What a verdict stands on.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// This execution, replayed on the reference semantics.
    Replayed(Replayed),
    /// A second exploration, on the reference semantics.
    Explored,
    /// This certificate, accepted by the checker.
    Certified(Arc<Certificate>),
    /// This certificate, which nobody has checked.
    Unchecked(Arc<Certificate>),
    /// The engine alone.
    Engine,
    /// There is no verdict.
    None,
}

/// A verdict that has gone through the door.
#[derive(Clone, Debug)]
pub struct Checked {
    verdict: Verdict,
    evidence: Evidence,
    /// The engine that gave the answer.
    pub engine: &'static str,
    /// Whether the violating execution, with every store reaching memory at once, is one under SC too: then no fence can help
    /// (FENCES12 s.7, case 1). If not, another violation may still be one.
    pub happens_under_sc: bool,
    /// The property.
    pub property: Property,
    /// How long the engine took.
    pub seconds: f64,
    /// How long confirming the answer took.
    pub check_seconds: f64,
    /// States stored.
    pub states: u64,
    /// Bytes used at most.
    pub bytes: u64,
    /// What grew without end, if there is no verdict.
    pub growth: Vec<(String, Option<Span>)>,
    /// What each number of contexts took, if the engine counts them.
    pub rounds: Vec<Round>,
}

impl Checked {
    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The execution that shows it, replayed.
    pub fn trace(&self) -> Option<&Replayed> {
        match &self.evidence {
            Evidence::Replayed(trace) => Some(trace),
            _ => None,
        }
    }

    /// What the verdict stands on.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The certificate that shows it.
    pub fn certificate(&self) -> Option<&Certificate> {
        match &self.evidence {
            Evidence::Certified(certificate) | Evidence::Unchecked(certificate) => Some(certificate),
            _ => None,
        }
    }

    /// True if the trace was replayed, the certificate accepted, or the reference semantics explored everything; false if the
    /// verdict stands on the engine alone; nothing if there is no verdict.
    pub fn checked(&self) -> Option<bool> {
        match &self.evidence {
            Evidence::Replayed(_) | Evidence::Explored | Evidence::Certified(_) => Some(true),
            Evidence::Unchecked(_) | Evidence::Engine => Some(false),
            Evidence::None => None,
        }
    }
}

/// How much to do to confirm an answer that comes without a trace.
#[derive(Clone, Copy, Debug)]
pub struct Confirm {
    /// States to explore on the reference semantics at most.
    pub states: usize,
    /// Time for it at most.
    pub time: Duration,
}

impl Default for Confirm {
    fn default() -> Self {
        Confirm { states: 20_000, time: Duration::from_secs(2) }
    }
}

impl Confirm {
    /// Nothing at all.
    pub const NOTHING: Confirm = Confirm { states: 0, time: Duration::ZERO };
}

/// Runs an engine and lets its answers through the door.
pub fn check(
    engine: &dyn Engine,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
    confirm: Confirm,
) -> Vec<Checked> {
    check_each(engine, task, limits, progress, confirm, &mut |_, _| {})
}

/// Engines recurse over expressions: as deep as the main thread could.
const STACK: usize = 8 << 20;

/// Runs an engine and lets its answers through the door, each as soon as the engine has it: `on_verdict` hears the number of the
/// property and the verdict, in the order in which they are found, while the engine goes on with the rest.
///
/// Every property is heard of once; a second time only if a later answer contradicts the first, which then is no verdict any more.
pub fn check_each(
    engine: &dyn Engine,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
    confirm: Confirm,
    on_verdict: &mut dyn FnMut(usize, &Checked),
) -> Vec<Checked> {
    let confirmation = Confirmation { task, limits, confirm, reachable: None, certificates: Vec::new() };
    let settled: Vec<AtomicBool> = task.properties.iter().map(|_| AtomicBool::new(false)).collect();
    let mut door = Door {
        confirmation,
        start: Instant::now(),
        settled: &settled,
        verdicts: vec![None; settled.len()],
        on_verdict,
    };
    let mut report = std::thread::scope(|scope| {
        let (sender, arriving) = mpsc::channel();
        let settled = &settled;
        // The sender ends with the thread, however that ends.
        let run = move || {
            let anteroom = Anteroom { sender, settled };
            engine.run(&task.heard_by(&anteroom), limits, progress)
        };
        let running = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        let running = running.expect("the system starts another thread");
        for (n, early) in arriving {
            door.admit_early(n, early);
        }
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let missing = || Answer::Unknown(Reason::Contradiction("the engine gave no answer".into()));
    report.answers.resize_with(task.properties.len(), missing);
    let seconds = door.start.elapsed().as_secs_f64();
    for (n, answer) in std::mem::take(&mut report.answers).into_iter().enumerate() {
        let early = Early {
            answer,
            engine: report.engines.get(n).copied().unwrap_or(engine.name()),
            states: report.states,
            bytes: report.bytes,
            rounds: report.rounds.clone(),
        };
        door.admit(n, early, seconds, &report.growth);
    }
    door.verdicts.into_iter().map(|checked| checked.expect("every property was admitted")).collect()
}

/// Where answers wait for the door while their engine goes on.
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
}

/// The door itself.
struct Door<'a, 'p> {
    confirmation: Confirmation<'a, 'p>,
    start: Instant,
    /// Which properties have their verdict, for engines.
    settled: &'a [AtomicBool],
    verdicts: Vec<Option<Checked>>,
    on_verdict: &'a mut dyn FnMut(usize, &Checked),
}

impl Door<'_, '_> {
    /// Admits an answer while the engine still runs. One that cannot be confirmed now may be later, or another engine has a better one.
    fn admit_early(&mut self, n: usize, early: Early) {
        let seconds = self.start.elapsed().as_secs_f64();
        let checked = match &self.verdicts[n] {
            None => self.confirmation.checked(n, early, seconds, &[]),
            Some(_) => return self.compare(n, &early),
        };
        if !matches!(checked.verdict, Verdict::Unknown(ref reason) if !matches!(reason, Reason::Contradiction(_)))
        {
            self.pronounce(n, checked);
        }
    }

    /// Admits an answer for good.
    fn admit(&mut self, n: usize, early: Early, seconds: f64, growth: &[(String, Option<Span>)]) {
        match &self.verdicts[n] {
            None => {
                let checked = self.confirmation.checked(n, early, seconds, growth);
                self.pronounce(n, checked);
            }
            Some(_) => self.compare(n, &early),
        }
    }

    fn pronounce(&mut self, n: usize, checked: Checked) {
        self.settled[n].store(true, Ordering::Relaxed);
        (self.on_verdict)(n, &checked);
        self.verdicts[n] = Some(checked);
    }

    /// Compares an answer with the verdict that is already there: if they disagree, there is none.
    fn compare(&mut self, n: usize, early: &Early) {
        let holds = match early.answer {
            Answer::Holds(_) | Answer::Proved(_) => true,
            Answer::Violated(_) => false,
            Answer::Unknown(_) => return,
        };
        let Some(known) = &self.verdicts[n] else { return };
        let disagree = match known.verdict {
            Verdict::Safe => !holds,
            Verdict::Unsafe => holds,
            Verdict::Unknown(_) => false,
        };
        if disagree {
            let words = |holds: bool| if holds { "it holds" } else { "it is violated" };
            let what = format!(
                "engine {} says that {}, engine {} that {}",
                known.engine,
                words(!holds),
                early.engine,
                words(holds)
            );
            let (verdict, evidence) = contradiction(what);
            let checked = Checked { verdict, evidence, happens_under_sc: false, ..known.clone() };
            self.pronounce(n, checked);
        }
    }
}

/// Confirms answers; the exploration, and the check of each invariant, is done at most once.
struct Confirmation<'a, 'p> {
    task: &'a Task<'p>,
    limits: &'a Limits,
    confirm: Confirm,
    reachable: Option<Option<Reachable>>,
    certificates: Vec<(Arc<Invariant>, (Verdict, Evidence))>,
}

impl Confirmation<'_, '_> {
    /// The verdict that comes of an answer to the property with this number, `seconds` after the start.
    fn checked(
        &mut self,
        n: usize,
        early: Early,
        seconds: f64,
        growth: &[(String, Option<Span>)],
    ) -> Checked {
        let start = Instant::now();
        let property = &self.task.properties[n];
        let (verdict, evidence) = self.admit(property, early.answer);
        let unknown = matches!(verdict, Verdict::Unknown(_));
        let happens_under_sc = match (&verdict, &evidence) {
            (Verdict::Unsafe, Evidence::Replayed(trace)) => {
                happens_under_sc(self.task, trace, property, self.limits)
            }
            _ => false,
        };
        Checked {
            happens_under_sc,
            verdict,
            evidence,
            engine: early.engine,
            property: property.clone(),
            seconds,
            check_seconds: start.elapsed().as_secs_f64(),
            states: early.states,
            bytes: early.bytes,
            growth: if unknown { growth.to_vec() } else { Vec::new() },
            rounds: early.rounds,
        }
    }

    fn admit(&mut self, property: &Property, answer: Answer) -> (Verdict, Evidence) {
        match answer {
            Answer::Unknown(reason) => (Verdict::Unknown(reason), Evidence::None),
            Answer::Holds(Some(trace)) => self.replayed(property, trace, true),
            Answer::Violated(Some(trace)) => self.replayed(property, trace, false),
            Answer::Proved(invariant) => self.certified(property, &invariant),
            Answer::Holds(None) => self.explored(property, true),
            Answer::Violated(None) if property.kind.is_existence() => self.explored(property, false),
            Answer::Violated(None) => contradiction("a violation without an execution that shows it".into()),
        }
    }

    fn replayed(&self, property: &Property, trace: Trace, holds: bool) -> (Verdict, Evidence) {
        let exists = property.kind.is_existence();
        let finishing = self.limits.finishing();
        let stop = || finishing.exceeded(0).is_some();
        match trace.replay_for_until(self.task.program, self.task.model, property, &stop) {
            Ok(replayed) if holds == exists => {
                let verdict = if holds { Verdict::Safe } else { Verdict::Unsafe };
                (verdict, Evidence::Replayed(replayed))
            }
            Ok(_) => contradiction("the trace shows the opposite of the answer".into()),
            Err(ReplayError::Stopped) => {
                let reason = self.limits.exceeded(0).unwrap_or(Reason::NotConfirmed);
                (Verdict::Unknown(reason), Evidence::None)
            }
            Err(error) => contradiction(error.to_string()),
        }
    }

    /// A proof by an invariant is one if the checker of certificates accepts it, for all properties it is about.
    fn certified(&mut self, property: &Property, invariant: &Arc<Invariant>) -> (Verdict, Evidence) {
        if invariant.buffers.model() != self.task.model {
            return contradiction("the invariant is about another memory model".into());
        }
        if !invariant.properties.contains(&property.name) {
            return contradiction("the invariant is about other properties".into());
        }
        if let Some((_, known)) = self.certificates.iter().find(|(known, _)| Arc::ptr_eq(known, invariant)) {
            return known.clone();
        }
        let found = self.accepted(invariant);
        self.certificates.push((Arc::clone(invariant), found.clone()));
        found
    }

    /// What the checker of certificates says about an invariant.
    fn accepted(&self, invariant: &Invariant) -> (Verdict, Evidence) {
        let machine = BufferMachine::new(self.task.program, invariant.buffers);
        let certificate =
            Arc::new(Certificate::new(&machine, invariant.properties.clone(), invariant.states.clone()));
        let finishing = self.limits.finishing();
        let stop: Stop = Arc::new(move || finishing.exceeded(0).is_some());
        let evidence = match self.confirm.states {
            0 => Evidence::Unchecked(certificate),
            _ => match fencewright_certify::check(&certificate, self.task.program, &stop) {
                Ok(_) => Evidence::Certified(certificate),
                Err(Rejection::Stopped) => {
                    return (Verdict::Unknown(Reason::NotConfirmed), Evidence::None);
                }
                Err(rejection @ Rejection::Numbers(..)) => {
                    let reason =
                        Reason::Unsupported(format!("the proof cannot be checked: {rejection}"), None);
                    return (Verdict::Unknown(reason), Evidence::None);
                }
                Err(rejection) => return contradiction(rejection.to_string()),
            },
        };
        (Verdict::Safe, evidence)
    }

    fn explored(&mut self, property: &Property, holds: bool) -> (Verdict, Evidence) {
        let verdict = if holds { Verdict::Safe } else { Verdict::Unsafe };
        let (task, limits, confirm) = (self.task, self.limits, self.confirm);
        let reachable = self.reachable.get_or_insert_with(|| reachable(task.program, task, limits, confirm));
        match reachable {
            None => (verdict, Evidence::Engine),
            Some(r) => match r.satisfies(task.program, task.model, property) {
                Some(found) if found == holds => (verdict, Evidence::Explored),
                Some(_) => contradiction("the reference semantics says the opposite of the engine".into()),
                None => contradiction("the reference semantics cannot compute what the engine claims".into()),
            },
        }
    }
}

/// Whether an execution without its flushes, every store going straight to memory, violates the property under SC.
fn happens_under_sc(task: &Task<'_>, replayed: &Replayed, property: &Property, limits: &Limits) -> bool {
    let finishing = limits.finishing();
    let stop = || finishing.exceeded(0).is_some();
    let first = replayed.states.first();
    let steps = replayed.events.iter().filter(|e| !matches!(e.kind, EventKind::Flush { .. }));
    let trace = Trace {
        registers: first.registers.clone(),
        memory: first.memory.clone(),
        events: steps.cloned().collect(),
    };
    task.model != MemoryModel::Sc
        && trace.replay_for_until(task.program, MemoryModel::Sc, property, &stop).is_ok()
}

fn contradiction(what: String) -> (Verdict, Evidence) {
    (Verdict::Unknown(Reason::Contradiction(what)), Evidence::None)
}

fn reachable(program: &Program, task: &Task<'_>, limits: &Limits, confirm: Confirm) -> Option<Reachable> {
    let end = Instant::now() + confirm.time;
    let mut stop = || Instant::now() >= end || limits.exceeded(0).is_some();
    oracle::explore(program, task.model, confirm.states, &mut stop).ok()
}
