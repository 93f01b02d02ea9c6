//! The door: answers of engines become verdicts only here.
//!
//! * A trace is replayed on the reference semantics; one that does not replay is never shown.
//! * `safe` without a trace is confirmed by exploring the reference semantics itself, where the state space is small enough
//!   (certificates join here). Where it is not, the verdict stands on the engine alone and says so: `checked` is false.
//! * If the two disagree, there is no verdict.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fencewright_certify::{Certificate, Rejection};
use fencewright_memory::Machine;

use fencewright_program::oracle::{self, Reachable};
use fencewright_program::{Program, Property, PropertyKind, Quantifier, Replayed, Span, Trace};

use crate::task::{Answer, Engine, Invariant, Limits, Progress, Reason, Task};

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

/// A verdict that has gone through the door.
#[derive(Clone, Debug)]
pub struct Checked {
    verdict: Verdict,
    trace: Option<Replayed>,
    checked: Option<bool>,
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
}

impl Checked {
    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The execution that shows it, replayed.
    pub fn trace(&self) -> Option<&Replayed> {
        self.trace.as_ref()
    }

    /// True if the trace was replayed or the reference semantics explored everything, false if the verdict stands on the engine
    /// alone, nothing if there is no verdict.
    pub fn checked(&self) -> Option<bool> {
        self.checked
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
    let report = engine.run(task, limits, progress);
    let seconds = start.elapsed().as_secs_f64();
    let mut confirmation = Confirmation { task, limits, confirm, reachable: None, certificates: Vec::new() };
    task.properties
        .iter()
        .zip(report.answers)
        .map(|(property, answer)| {
            let start = Instant::now();
            let (verdict, trace, checked) = confirmation.admit(property, answer);
            let unknown = matches!(verdict, Verdict::Unknown(_));
            Checked {
                verdict,
                trace,
                checked,
                property: property.clone(),
                seconds,
                check_seconds: start.elapsed().as_secs_f64(),
                states: report.states,
                bytes: report.bytes,
                growth: if unknown { report.growth.clone() } else { Vec::new() },
            }
        })
        .collect()
}

/// Confirms answers; the exploration is done at most once.
struct Confirmation<'a, 'p> {
    task: &'a Task<'p>,
    limits: &'a Limits,
    confirm: Confirm,
    reachable: Option<Option<Reachable>>,
    certificates: Vec<Certified>,
}

/// An invariant that was accepted, and for what.
struct Certified {
    invariant: Arc<Invariant>,
    properties: Vec<String>,
}

impl Confirmation<'_, '_> {
    fn admit(&mut self, property: &Property, answer: Answer) -> (Verdict, Option<Replayed>, Option<bool>) {
        match answer {
            Answer::Unknown(reason) => (Verdict::Unknown(reason), None, None),
            Answer::Holds(Some(trace)) => self.replayed(property, trace, true),
            Answer::Violated(Some(trace)) => self.replayed(property, trace, false),
            Answer::Proved(invariant) => self.certified(property, &invariant),
            Answer::Holds(None) => self.explored(property, true),
            Answer::Violated(None) => self.explored(property, false),
        }
    }

    fn replayed(
        &self,
        property: &Property,
        trace: Trace,
        holds: bool,
    ) -> (Verdict, Option<Replayed>, Option<bool>) {
        let exists = matches!(property.kind, PropertyKind::Finally(Quantifier::Exists, _));
        match trace.replay_for(self.task.program, self.task.model, property) {
            Ok(replayed) if holds == exists => {
                let verdict = if holds { Verdict::Safe } else { Verdict::Unsafe };
                (verdict, Some(replayed), Some(true))
            }
            Ok(_) => contradiction("the trace shows the opposite of the answer".into()),
            Err(error) => contradiction(error.to_string()),
        }
    }

    /// A proof by an invariant is one if the checker of certificates accepts it.
    fn certified(
        &mut self,
        property: &Property,
        invariant: &Arc<Invariant>,
    ) -> (Verdict, Option<Replayed>, Option<bool>) {
        let machine = Machine::new(self.task.program, invariant.buffers);
        if invariant.buffers.model() != self.task.model {
            return contradiction("the invariant is about another memory model".into());
        }
        if self.confirm.states == 0 {
            return (Verdict::Safe, None, Some(false));
        }
        // One invariant usually proves several properties: it is checked once, for all of them.
        let known = self.certificates.iter().find(|c| Arc::ptr_eq(&c.invariant, invariant));
        if !known.is_some_and(|c| c.properties.contains(&property.name)) {
            let properties = vec![property.name.clone()];
            let certificate = Certificate::new(&machine, properties.clone(), invariant.states.clone());
            let limits = self.limits;
            let mut stop = || limits.exceeded(0).is_some();
            match fencewright_certify::check(&certificate, self.task.program, &mut stop) {
                Ok(_) => self.certificates.push(Certified { invariant: Arc::clone(invariant), properties }),
                Err(Rejection::Stopped) => return (Verdict::Safe, None, Some(false)),
                Err(rejection) => return contradiction(rejection.to_string()),
            }
        }
        (Verdict::Safe, None, Some(true))
    }

    fn explored(&mut self, property: &Property, holds: bool) -> (Verdict, Option<Replayed>, Option<bool>) {
        let verdict = if holds { Verdict::Safe } else { Verdict::Unsafe };
        let (task, limits, confirm) = (self.task, self.limits, self.confirm);
        let reachable = self.reachable.get_or_insert_with(|| reachable(task.program, task, limits, confirm));
        match reachable {
            None => (verdict, None, Some(false)),
            Some(r) if r.satisfies(task.program, task.model, property) == holds => {
                (verdict, None, Some(true))
            }
            Some(_) => contradiction("the reference semantics says the opposite of the engine".into()),
        }
    }
}

fn contradiction(what: String) -> (Verdict, Option<Replayed>, Option<bool>) {
    (Verdict::Unknown(Reason::Contradiction(what)), None, None)
}

fn reachable(program: &Program, task: &Task<'_>, limits: &Limits, confirm: Confirm) -> Option<Reachable> {
    let end = Instant::now() + confirm.time;
    let mut stop = || Instant::now() >= end || limits.exceeded(0).is_some();
    oracle::explore(program, task.model, confirm.states, &mut stop).ok()
}
