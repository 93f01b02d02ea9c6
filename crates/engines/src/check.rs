//! The door: answers of engines become verdicts only here.
//!
//! * A trace is replayed on the reference semantics; one that does not replay is never shown.
//! * A proof by an invariant is written as a certificate, and counts only if the checker of certificates accepts it.
//! * `safe` without either is confirmed by exploring the reference semantics itself, where the state space is small enough.
//!   Where it is not, the verdict stands on the engine alone and says so: `checked` is false.
//! * If the two disagree, there is no verdict.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fencewright_certify::{Certificate, Rejection};
use fencewright_memory::Machine;

use fencewright_program::oracle::{self, Reachable};
use fencewright_program::{EventKind, MemoryModel, Program, Property, Replayed, Span, Trace};

use crate::task::{Answer, Engine, Invariant, Limits, Progress, Reason, Round, Task};

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
    let start = Instant::now();
    let mut report = engine.run(task, limits, progress);
    let missing = || Answer::Unknown(Reason::Contradiction("the engine gave no answer".into()));
    report.answers.resize_with(task.properties.len(), missing);
    let seconds = start.elapsed().as_secs_f64();
    let mut confirmation = Confirmation { task, limits, confirm, reachable: None, certificates: Vec::new() };
    task.properties
        .iter()
        .zip(report.answers)
        .enumerate()
        .map(|(n, (property, answer))| {
            let start = Instant::now();
            let (verdict, evidence) = confirmation.admit(property, answer);
            let unknown = matches!(verdict, Verdict::Unknown(_));
            let happens_under_sc = match (&verdict, &evidence) {
                (Verdict::Unsafe, Evidence::Replayed(trace)) => happens_under_sc(task, trace, property),
                _ => false,
            };
            Checked {
                happens_under_sc,
                verdict,
                evidence,
                engine: report.engines.get(n).copied().unwrap_or(engine.name()),
                property: property.clone(),
                seconds,
                check_seconds: start.elapsed().as_secs_f64(),
                states: report.states,
                bytes: report.bytes,
                growth: if unknown { report.growth.clone() } else { Vec::new() },
                rounds: report.rounds.clone(),
            }
        })
        .collect()
}

/// Confirms answers; the exploration, and the check of each invariant, is done at most once.
struct Confirmation<'a, 'p> {
    task: &'a Task<'p>,
    limits: &'a Limits,
    confirm: Confirm,
    reachable: Option<Option<Reachable>>,
    certificates: Vec<(Arc<Invariant>, Evidence)>,
}

impl Confirmation<'_, '_> {
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
        match trace.replay_for(self.task.program, self.task.model, property) {
            Ok(replayed) if holds == exists => {
                let verdict = if holds { Verdict::Safe } else { Verdict::Unsafe };
                (verdict, Evidence::Replayed(replayed))
            }
            Ok(_) => contradiction("the trace shows the opposite of the answer".into()),
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
        if let Some((_, evidence)) = self.certificates.iter().find(|(known, _)| Arc::ptr_eq(known, invariant))
        {
            return (Verdict::Safe, evidence.clone());
        }
        let machine = Machine::new(self.task.program, invariant.buffers);
        let certificate =
            Arc::new(Certificate::new(&machine, invariant.properties.clone(), invariant.states.clone()));
        // A proof that was found at the last moment still deserves a look, if it is a short one.
        let limits = self.limits;
        let grace = limits.timeout.map_or(self.confirm.time, |t| self.confirm.time.min(t / 2));
        let grace = Instant::now() + grace;
        let stop = || match limits.exceeded(0) {
            None => false,
            Some(Reason::Timeout(_)) => Instant::now() > grace,
            Some(_) => true,
        };
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
        self.certificates.push((Arc::clone(invariant), evidence.clone()));
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
fn happens_under_sc(task: &Task<'_>, replayed: &Replayed, property: &Property) -> bool {
    let first = &replayed.states[0];
    let steps = replayed.events.iter().filter(|e| !matches!(e.kind, EventKind::Flush { .. }));
    let trace = Trace {
        registers: first.registers.clone(),
        memory: first.memory.clone(),
        events: steps.cloned().collect(),
    };
    task.model != MemoryModel::Sc && trace.replay_for(task.program, MemoryModel::Sc, property).is_ok()
}

fn contradiction(what: String) -> (Verdict, Evidence) {
    (Verdict::Unknown(Reason::Contradiction(what)), Evidence::None)
}

fn reachable(program: &Program, task: &Task<'_>, limits: &Limits, confirm: Confirm) -> Option<Reachable> {
    let end = Instant::now() + confirm.time;
    let mut stop = || Instant::now() >= end || limits.exceeded(0).is_some();
    oracle::explore(program, task.model, confirm.states, &mut stop).ok()
}
