//! Confirms answers: replays traces, checks certificates, explores the states of the reference semantics, or enumerates its executions.

use std::sync::Arc;
use std::time::Instant;

use crate::fingerprint::fingerprint;
use fencewright_certify::{Certificate, Claim, Proof, Rejection, Stop, Undecided};
use fencewright_executions::oracle::{self, Reachable};
use fencewright_executions::source_sets::{Enumerated, Incomplete, Question, enumerate};
use fencewright_program::replay::ReplayError;
use fencewright_program::{EventKind, MemoryModel, Program, Property, PropertyKind, Replayed, Trace};
use fencewright_smt::Prover;

use super::Beside;
use super::proof::proof_unless;
use super::verdict::{Checked, Confirm, Evidence, Exploration, Verdict};
use crate::task::{Answer, Author, Counts, Early, EngineName, Invariant, Limits, Reason, Task, Tried};

/// Confirms answers to one task. The exploration, each enumeration, and the check of each certificate are done at most once.
pub(super) struct Confirmation<'a, 'p> {
    task: &'a Task<'p>,
    limits: &'a Limits,
    pub(super) confirm: Confirm,
    /// The result of the exploration: `None` before the exploration, `Some(None)` if it was not possible within its limits.
    reachable: Option<Option<Reachable>>,
    /// The properties and the result of each enumeration of executions.
    enumerations: Vec<(Vec<Property>, Result<Enumerated, Incomplete>)>,
    /// The certificates made from invariants.
    invariants: Vec<(Arc<Invariant>, Arc<Certificate>)>,
    /// The certificates that have been checked, with the results.
    certificates: Vec<(Arc<Certificate>, (Verdict, Evidence))>,
}

impl<'a, 'p> Confirmation<'a, 'p> {
    pub(super) fn new(task: &'a Task<'p>, limits: &'a Limits, confirm: Confirm) -> Self {
        Confirmation {
            task,
            limits,
            confirm,
            reachable: None,
            enumerations: Vec::new(),
            invariants: Vec::new(),
            certificates: Vec::new(),
        }
    }

    /// The verdict for an answer to the property with this index, which was given `seconds` after the start.
    pub(super) fn checked(
        &mut self,
        n: usize,
        early: Early,
        seconds: f64,
        Beside { growth, tried }: Beside<'_>,
    ) -> Checked {
        let start = Instant::now();
        let property = &self.task.properties[n];
        let Author { engine, mut work } = early.author;
        let (verdict, evidence) = self.admit(property, early.answer, work.executions().is_some());
        if engine != EngineName::Explicit
            && let Counts::States { symmetry, .. } = &mut work.counts
        {
            symmetry.clear();
        }
        let tried = match &verdict {
            Verdict::Unknown(_) if !tried.is_empty() => tried.to_vec(),
            Verdict::Unknown(reason) => vec![Tried {
                engine,
                domain: None,
                model: self.task.model,
                threads: Vec::new(),
                states: work.states,
                seconds,
                reason: reason.to_string(),
            }],
            Verdict::Safe | Verdict::Unsafe => Vec::new(),
        };
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
            engine,
            property: property.clone(),
            seconds,
            check_seconds: start.elapsed().as_secs_f64(),
            work,
            growth: if unknown { growth.to_vec() } else { Vec::new() },
            tried,
        }
    }

    /// Whether there are means to confirm answers without a trace.
    pub(super) fn confirms(&self) -> bool {
        self.confirm.certificates || self.confirm.exploration.is_some()
    }

    /// The verdict for an answer, and its evidence; `by_executions` if the engine has explored executions.
    fn admit(&mut self, property: &Property, answer: Answer, by_executions: bool) -> (Verdict, Evidence) {
        match answer {
            Answer::Unknown(reason) => (Verdict::Unknown(reason), Evidence::None),
            Answer::Open => {
                let reason = self.limits.exceeded(0).unwrap_or(Reason::Cancelled);
                (Verdict::Unknown(reason), Evidence::None)
            }
            Answer::Holds(Some(trace)) => self.replayed(property, trace, true),
            Answer::Violated(Some(trace)) => self.replayed(property, trace, false),
            Answer::Proved(invariant) => self.proved(property, &invariant),
            Answer::Certified(certificate) => self.certified(property, &certificate),
            Answer::Holds(None) => self.explored(property, true, by_executions),
            Answer::Violated(None) if property.kind.is_existence() => {
                self.explored(property, false, by_executions)
            }
            Answer::Violated(None) => contradiction("a violation without an execution that shows it".into()),
        }
    }

    fn replayed(&self, property: &Property, trace: Trace, holds: bool) -> (Verdict, Evidence) {
        let exists = property.kind.is_existence();
        // A trace found before the run was cancelled is still confirmed, in the grace period.
        let finishing = self.limits.despite_cancellation().finishing();
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
            // The trace has a value or an access that the reference semantics cannot represent. That is a limit of the replay, not a contradiction.
            Err(ReplayError::Limit(_, limit)) => {
                let what = format!("an execution was found that cannot be replayed: {}", limit.describe());
                (Verdict::Unknown(Reason::Unsupported(what, None)), Evidence::None)
            }
            Err(error) => contradiction(error.to_string()),
        }
    }

    /// Wraps an invariant in a certificate, which the checker then has to accept.
    fn proved(&mut self, property: &Property, invariant: &Arc<Invariant>) -> (Verdict, Evidence) {
        let known = self.invariants.iter().find(|(known, _)| Arc::ptr_eq(known, invariant));
        let certificate = match known {
            Some((_, certificate)) => Arc::clone(certificate),
            None => {
                let program = self.task.program;
                let claim = Claim::Safe { properties: invariant.properties.clone() };
                let finishing = self.limits.finishing();
                let stop = || finishing.exceeded(0).is_some();
                let Some(proof) = proof_unless(program, invariant, &stop) else {
                    return (Verdict::Unknown(Reason::NotConfirmed), Evidence::None);
                };
                let certificate = Arc::new(Certificate::new(fingerprint(program), claim, vec![proof]));
                self.invariants.push((Arc::clone(invariant), Arc::clone(&certificate)));
                certificate
            }
        };
        self.certified(property, &certificate)
    }

    /// Confirms a certificate for one of its properties. The checker must accept the whole certificate, including its other properties.
    fn certified(&mut self, property: &Property, certificate: &Arc<Certificate>) -> (Verdict, Evidence) {
        if certificate.model() != Some(self.task.model) {
            return contradiction("the proof is about another memory model".into());
        }
        if !certificate.properties().contains(&property.name) {
            return contradiction("the proof is about other properties".into());
        }
        // The checker identifies properties by their names, so the program must have the same property under this name.
        let named = fencewright_certify::property(self.task.program, &property.name);
        if named.is_none_or(|named| named.kind != property.kind) {
            return contradiction("the proof is about another property of the same name".into());
        }
        if let Some((_, known)) = self.certificates.iter().find(|(known, _)| Arc::ptr_eq(known, certificate))
        {
            return known.clone();
        }
        let verdict = match certificate.claim.about_properties() {
            Claim::Unsatisfied { .. } => Verdict::Unsafe,
            Claim::Safe { .. }
            | Claim::Robust { .. }
            | Claim::Lazy { .. }
            | Claim::Reordered { .. }
            | Claim::Narrowed { .. }
            | Claim::Sliced { .. } => Verdict::Safe,
        };
        let proofs = &certificate.proofs;
        let by_states = !proofs.is_empty() && proofs.iter().all(|proof| matches!(proof, Proof::States(_)));
        let found = match accepted(certificate, self.task.program, self.limits, self.confirm) {
            Ok(evidence) => (verdict, evidence),
            // The engine itself has explored all states, so its answer counts without the check.
            Err(Reason::NotConfirmed) if by_states => (verdict, Evidence::Unchecked(Arc::clone(certificate))),
            Err(reason) => (Verdict::Unknown(reason), Evidence::None),
        };
        self.certificates.push((Arc::clone(certificate), found.clone()));
        found
    }

    /// All states that the reference semantics reaches; `None` if the exploration is not requested, or not possible within its limits.
    pub(super) fn reachable(&mut self) -> Option<&Reachable> {
        let (task, limits, confirm) = (self.task, self.limits, self.confirm);
        self.reachable.get_or_insert_with(|| reachable(task, limits, confirm.exploration?)).as_ref()
    }

    /// The number of executions of the reference semantics up to the order of independent events, and whether they satisfy the property (the inner
    /// `None` if that cannot be computed); the error is why the enumeration is incomplete. `None` if confirmation does not include an enumeration.
    fn enumerated(&mut self, property: &Property) -> Option<Result<(u64, Option<bool>), Incomplete>> {
        let exploration = self.confirm.exploration?;
        let same = |p: &Property| p.name == property.name && p.kind == property.kind;
        if !self.enumerations.iter().any(|(properties, _)| properties.iter().any(same)) {
            // A formula that must never hold makes events dependent and so increases the number of executions. Each such property is enumerated
            // separately.
            let is_invariant = |p: &Property| matches!(p.kind, PropertyKind::Never(_));
            let properties: Vec<Property> = match is_invariant(property) {
                true => vec![property.clone()],
                false => self.task.properties.iter().filter(|p| !is_invariant(p)).cloned().collect(),
            };
            let found = executions(self.task, &properties, self.limits, exploration);
            self.enumerations.push((properties, found));
        }
        self.enumerations.iter().find_map(|(properties, found)| {
            let n = properties.iter().position(same)?;
            Some(found.as_ref().map(|found| (found.executions, found.satisfied[n])).map_err(|why| *why))
        })
    }

    fn explored(&mut self, property: &Property, holds: bool, by_executions: bool) -> (Verdict, Evidence) {
        let verdict = if holds { Verdict::Safe } else { Verdict::Unsafe };
        let task = self.task;
        let found = match self.reachable() {
            Some(reachable) => {
                Some((Evidence::Explored, reachable.satisfies(task.program, task.model, property)))
            }
            // The engine has explored all executions, so there are probably few enough for an enumeration.
            None if by_executions => match self.enumerated(property) {
                Some(Ok((count, satisfied))) => Some((Evidence::Enumerated(count), satisfied)),
                Some(Err(why)) => return not_enumerated(why, verdict),
                None => None,
            },
            None => None,
        };
        match found {
            None => (verdict, Evidence::Engine),
            Some((evidence, Some(found))) if found == holds => (verdict, evidence),
            Some((_, Some(_))) => {
                contradiction("the reference semantics says the opposite of the engine".into())
            }
            Some((_, None)) => {
                contradiction("the reference semantics cannot compute what the engine claims".into())
            }
        }
    }
}

/// Checks a certificate about a program: the evidence if the checker accepts it, or the reason why it does not. If `confirm` omits the check, the
/// certificate is returned as unchecked evidence.
pub fn accepted(
    certificate: &Arc<Certificate>,
    program: &Program,
    limits: &Limits,
    confirm: Confirm,
) -> Result<Evidence, Reason> {
    if !confirm.certificates {
        return Ok(Evidence::Unchecked(Arc::clone(certificate)));
    }
    let finishing = limits.finishing();
    let stop: Stop = Arc::new(move || finishing.exceeded(0).is_some());
    match fencewright_certify::check(certificate, program, &Prover, &stop) {
        Ok(_) => Ok(Evidence::Certified(Arc::clone(certificate))),
        Err(Rejection::Undecided(Undecided::Stopped)) => Err(Reason::NotConfirmed),
        Err(Rejection::Undecided(why)) => Err(Reason::Unconfirmed(why)),
        Err(rejection) => Err(Reason::Contradiction(rejection.to_string())),
    }
}

/// Whether an execution under a weaker model also violates the property under SC if its flushes are removed and every store is written to memory
/// immediately. False too if the replay runs out of time.
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

/// The verdict for an answer whose confirmation by an enumeration of executions ended early: a contradiction if the enumeration found a defect of
/// itself, otherwise the verdict of the engine.
fn not_enumerated(why: Incomplete, verdict: Verdict) -> (Verdict, Evidence) {
    match why {
        Incomplete::Contradiction => contradiction(
            "an event of an enumerated execution was disabled although its causes had happened".into(),
        ),
        Incomplete::TooManyEvents
        | Incomplete::Endless
        | Incomplete::UnboundedChoice
        | Incomplete::Limit
        | Incomplete::Stopped => (verdict, Evidence::Engine),
    }
}

pub(super) fn contradiction(what: String) -> (Verdict, Evidence) {
    (Verdict::Unknown(Reason::Contradiction(what)), Evidence::None)
}

/// Number of values in the states that are computed between two polls of the limits.
const UNWATCHED_VALUES: usize = 1_000;

/// Number of steps between two polls of the limits. A poll takes as long as a step to a small state, so there are many steps between polls if states
/// are small. Large states take a lot of memory, so there are few steps between polls if states are large.
fn steps_between_polls(task: &Task<'_>) -> usize {
    let registers: usize = task.program.threads.iter().map(|t| t.registers.len()).sum();
    (UNWATCHED_VALUES / (1 + registers + task.program.cells())).max(1)
}

/// Explores all states that the reference semantics reaches; `None` if that is not possible within the limits of the exploration.
fn reachable(task: &Task<'_>, limits: &Limits, exploration: Exploration) -> Option<Reachable> {
    if exploration.states == 0 {
        return None;
    }
    let limits = limits.within(exploration.time);
    let every = steps_between_polls(task);
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked % every == 0 && limits.exceeded(0).is_some()
    };
    oracle::explore(task.program, task.model, exploration.states, &mut stop).ok()
}

/// Enumerates the executions of the reference semantics and evaluates the properties.
fn executions(
    task: &Task<'_>,
    properties: &[Property],
    limits: &Limits,
    exploration: Exploration,
) -> Result<Enumerated, Incomplete> {
    let limits = limits.within(exploration.time);
    let every = steps_between_polls(task);
    let mut asked = 0;
    let mut stop = |bytes| {
        asked += 1;
        asked % every == 0 && limits.exceeded(bytes).is_some()
    };
    let question = Question { properties, observed: &[] };
    enumerate(task.program, task.model, question, exploration.events, &mut stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_of_the_enumeration_is_a_contradiction() {
        let (verdict, _) = not_enumerated(Incomplete::Contradiction, Verdict::Safe);
        assert!(matches!(verdict, Verdict::Unknown(Reason::Contradiction(_))), "{verdict:?}");
        for limit in [Incomplete::TooManyEvents, Incomplete::Endless, Incomplete::Limit, Incomplete::Stopped]
        {
            let (verdict, evidence) = not_enumerated(limit, Verdict::Safe);
            assert!(matches!((verdict, evidence), (Verdict::Safe, Evidence::Engine)), "{limit:?}");
        }
    }
}
