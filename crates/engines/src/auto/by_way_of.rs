//! Reduces a task under a weak memory model to a task under a stronger model, if the program text shows that the answers agree.
//!
//! * PSO to TSO, for all properties: the *reordered program* issues stores in every order in which they may leave the buffer under PSO
//!   ([`Extended::reordered`]). If fences separate the stores of each thread, the reordered program is the program itself. Executions are translated
//!   back, and a proof under TSO becomes a certificate whose claim names this reduction.
//! * TSO to SC, if there is no attack, that is, if no store can be delayed past a load such that another thread notices. Then the program text shows
//!   that the program is robust, and SC decides the properties for which robustness is sufficient ([`Conclusion`], docs/lazy.md). A proof under SC
//!   becomes a `lazy` certificate without extensions. Some properties need a second proof, about the program in which locks may be released anywhere.

use std::sync::{Arc, Mutex, PoisonError};

use fencewright_certify::{Certificate, Claim, Proof};
use fencewright_program::{MemoryModel, Program, Trace};
use fencewright_transform::attack::{self, Notion};
use fencewright_transform::extend::{Conclusion, Extended};
use fencewright_transform::separated::stores_are_separated;
use fencewright_verdict::fingerprint::fingerprint;

use super::Auto;
use crate::check::proof;
use crate::lazy::locked;
use crate::task::{
    About, Answer, Early, Engine, EngineName, Limits, Listener, Progress, Reason, Report, Task,
};

/// A task under PSO, reduced to a task under TSO about the reordered program.
#[derive(Debug)]
pub struct Reordered<'a> {
    task: &'a Task<'a>,
    program: Extended,
    /// Whether the reordered program has all executions that the program has under PSO. If not, only its violations count, not its proofs.
    complete: bool,
    certificates: Certificates,
}

/// A cache of certificates, with the answers from which they were made. With it, properties that have the same proof share a certificate.
#[derive(Debug, Default)]
pub struct Certificates(Mutex<Vec<(Answer, Arc<Certificate>)>>);

impl Certificates {
    /// The certificate for these properties that was made from the answer `of`. If there is none yet, `make` makes it.
    pub fn made(&self, of: &Answer, properties: &[String], make: impl FnOnce() -> Certificate) -> Answer {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(proof, made): &&(Answer, Arc<Certificate>)| {
            is_same(proof, of) && made.properties() == properties
        };
        if let Some((_, certificate)) = all.iter().find(is_it) {
            return Answer::Certified(Arc::clone(certificate));
        }
        let certificate = Arc::new(make());
        all.push((of.clone(), Arc::clone(&certificate)));
        Answer::Certified(certificate)
    }
}

impl<'a> Reordered<'a> {
    /// The reduction to TSO; `None` if the task is not about PSO or the stores cannot be reordered.
    pub fn new(task: &'a Task<'a>) -> Option<Self> {
        Reordered::by(task, true, Extended::reordered)
    }

    /// The reduction to TSO of the executions in which each thread has at most one store out of order at a time. It finds violations but proves
    /// nothing. `None` if the task is not about PSO or the stores cannot be reordered.
    pub fn once(task: &'a Task<'a>) -> Option<Self> {
        Reordered::by(task, false, Extended::reordered_once)
    }

    fn by<E>(
        task: &'a Task<'a>,
        complete: bool,
        reorder: impl FnOnce(&Program) -> Result<Extended, E>,
    ) -> Option<Self> {
        let program = (task.model == MemoryModel::Pso).then(|| reorder(task.program).ok()).flatten()?;
        Some(Reordered { task, program, complete, certificates: Certificates::default() })
    }

    /// Whether no engine has to search under PSO: either fences separate the stores, so that the reordered program is the program itself, or SC
    /// decides all properties.
    pub fn suffices(&self, limits: &Limits) -> bool {
        let all: Vec<usize> = (0..self.task.properties.len()).collect();
        let under_sc = || Statically::robust(&self.tso(), &all, limits).is_some_and(|way| way.numbers == all);
        stores_are_separated(self.task.program) || under_sc()
    }

    fn tso(&self) -> Task<'_> {
        let properties = self.task.properties.iter().map(|p| self.program.property(p)).collect();
        self.task.about(&self.program.program, MemoryModel::Tso, properties)
    }

    /// Answers the task by calling `run` for the task under TSO.
    pub fn under_tso(&self, run: impl FnOnce(&Task<'_>) -> Report) -> Report {
        let mut report = run(&self.tso().heard_by(self));
        report.answers = report.answers.into_iter().map(|answer| self.under_pso(answer)).collect();
        report
    }

    /// Translates an answer about the reordered program under TSO into an answer about the program under PSO.
    fn under_pso(&self, answer: Answer) -> Answer {
        match &answer {
            Answer::Violated(Some(trace)) => return Answer::Violated(Some(self.execution(trace))),
            Answer::Holds(Some(trace)) => return Answer::Holds(Some(self.execution(trace))),
            answer if answer.is_definite() && !self.complete => {
                let why = "no execution with one store of each thread out of order decides it";
                return Answer::Unknown(Reason::Unsupported(why.into(), None));
            }
            _ => {}
        }
        let Some(claim) = claimed(&answer) else { return answer };
        self.certificates.made(&answer, claim.properties(), || {
            let claim = Claim::Reordered { tso: Box::new(claim.clone()) };
            Certificate::new(fingerprint(self.task.program), claim, proofs_of(&self.program.program, &answer))
        })
    }

    fn execution(&self, trace: &Trace) -> Trace {
        self.program.pso_trace(self.task.program, trace)
    }
}

/// The claim of an answer, if the answer has a proof.
pub fn claimed(answer: &Answer) -> Option<Claim> {
    match answer {
        Answer::Proved(invariant) => Some(Claim::Safe { properties: invariant.properties.clone() }),
        Answer::Certified(certificate) => Some(certificate.claim.clone()),
        _ => None,
    }
}

/// The proofs of an answer about this program.
pub fn proofs_of(program: &Program, answer: &Answer) -> Vec<Proof> {
    match answer {
        Answer::Proved(invariant) => vec![proof(program, invariant)],
        Answer::Certified(certificate) => certificate.proofs.clone(),
        _ => Vec::new(),
    }
}

/// The properties that an answer about this program proves, and the proof, if it is a single proof of safety.
fn proof_of<'a>(program: &Program, answer: &'a Answer) -> Option<(&'a [String], Proof)> {
    match answer {
        Answer::Proved(invariant) => Some((&invariant.properties, proof(program, invariant))),
        Answer::Certified(certificate) => match (&certificate.claim, &certificate.proofs[..]) {
            (Claim::Safe { properties }, [proof]) => Some((properties, proof.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Whether two answers are the same proof, by pointer equality.
fn is_same(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Answer::Proved(one), Answer::Proved(other)) => Arc::ptr_eq(one, other),
        (Answer::Certified(one), Answer::Certified(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

impl Listener for Reordered<'_> {
    fn hear(&self, property: usize, early: Early) {
        let answer = self.under_pso(early.answer);
        if answer.is_definite() {
            self.task.tell(property, Early { answer, ..early });
        }
    }

    fn is_settled(&self, property: usize) -> bool {
        self.task.is_settled(property)
    }

    fn judges(&self) -> bool {
        self.task.is_judged()
    }
}

/// An answer under SC and, if a second proof is needed, an answer about the program in which locks may be released anywhere. A certificate is made
/// from their proofs, if both have one.
type Proofs = (Answer, Option<Answer>);

/// A task under TSO, some of whose properties are decided by SC.
#[derive(Debug)]
pub struct Statically<'a> {
    task: &'a Task<'a>,
    /// The program as an [`Extended`] without extensions, in which faults are control locations. A `lazy` certificate is about this program.
    program: Extended,
    /// The program in which locks may be released anywhere; `None` if the program of the task has no locks, or if the program in which they may be
    /// released has an attack.
    released: Option<Extended>,
    /// The indices of the properties that SC decides.
    pub numbers: Vec<usize>,
    /// The certificates made so far, with their proofs.
    certificates: Mutex<Vec<(Proofs, Arc<Certificate>)>>,
}

impl<'a> Statically<'a> {
    /// The reduction to SC, for the properties among `open` that SC decides; `None` if there are no such properties or if the program has an attack.
    pub fn robust(task: &'a Task<'a>, open: &[usize], limits: &Limits) -> Option<Self> {
        if task.model != MemoryModel::Tso {
            return None;
        }
        let program = Extended::new(task.program).ok()?;
        let decides = |n: &usize| {
            matches!(program.conclusion(&task.properties[*n]), Conclusion::Certain | Conclusion::IfReleased)
        };
        if !open.iter().any(decides) || !has_no_attack(&program.program, limits) {
            return None;
        }
        let released = program.has_locks().then(|| program.released());
        let released = released.filter(|released| has_no_attack(&released.program, limits));
        let conclusion = |n: &usize| program.conclusion(&task.properties[*n]);
        let numbers: Vec<usize> = open
            .iter()
            .copied()
            .filter(|n| match conclusion(n) {
                Conclusion::Certain => true,
                Conclusion::IfReleased => released.is_some(),
                Conclusion::PendingStores | Conclusion::BlockedByLock => false,
            })
            .collect();
        (!numbers.is_empty()).then(|| Statically {
            task,
            program,
            released,
            numbers,
            certificates: Mutex::default(),
        })
    }

    /// Answers the properties [`Statically::numbers`] by calling `run` for tasks under SC.
    pub fn under_sc(&self, run: impl Fn(&Task<'_>) -> Report) -> Report {
        let mut report = self.ask(&self.program, &self.numbers, self, &run);
        // The properties that hold, and that also have to hold for the program in which locks may be released.
        let mut again = Vec::new();
        for (n, answer) in report.answers.iter().enumerate() {
            if self.needs_release(n) && answer.holds() == Some(true) {
                again.push(n);
            }
        }
        let mut second = vec![None; report.answers.len()];
        if let Some(released) = self.released.as_ref().filter(|_| !again.is_empty()) {
            let numbers: Vec<usize> = again.iter().map(|&n| self.numbers[n]).collect();
            let unheard = Unheard { task: self.task, numbers: &numbers };
            let other = self.ask(released, &numbers, &unheard, &run);
            report.work.states += other.work.states;
            report.work.bytes = report.work.bytes.max(other.work.bytes);
            again.iter().zip(other.answers).for_each(|(&n, answer)| second[n] = Some(answer));
        }
        let answers = std::mem::take(&mut report.answers).into_iter().zip(second).enumerate();
        report.answers = answers.map(|(n, (first, second))| self.concluded(n, first, second)).collect();
        report
    }

    /// Checks some properties of a program under SC.
    fn ask(
        &self,
        program: &Extended,
        numbers: &[usize],
        listener: &dyn Listener,
        run: impl Fn(&Task<'_>) -> Report,
    ) -> Report {
        let properties = numbers.iter().map(|&n| program.property(&self.task.properties[n])).collect();
        let mut task = Task::new(&program.program, MemoryModel::Sc, properties);
        task.first_violation = self.task.first_violation;
        run(&task.heard_by(listener))
    }

    fn needs_release(&self, n: usize) -> bool {
        let property = &self.task.properties[self.numbers[n]];
        self.program.conclusion(property) == Conclusion::IfReleased
    }

    /// The answer under TSO that follows from the answer under SC and, if needed, from the answer about the program in which locks may be released.
    fn concluded(&self, n: usize, first: Answer, second: Option<Answer>) -> Answer {
        let shown = |trace: Trace, answer: fn(Option<Trace>) -> Answer| match self.execution(n, &trace) {
            Some(trace) => answer(Some(trace)),
            None => Answer::Unknown(Reason::Contradiction("an execution under SC is none under TSO".into())),
        };
        match (first, second) {
            (Answer::Violated(Some(trace)), _) => shown(trace, Answer::Violated),
            (Answer::Holds(Some(trace)), _) => shown(trace, Answer::Holds),
            (first, _) if !first.is_definite() => first,
            (_, Some(Answer::Unknown(reason))) => Answer::Unknown(reason),
            (_, second) if self.needs_release(n) && second.as_ref().and_then(Answer::holds) != Some(true) => {
                Answer::Unknown(locked())
            }
            (first, _) if first.holds() == Some(false) => Answer::Violated(None),
            (first, second) => self.certified((first, second)).unwrap_or(Answer::Holds(None)),
        }
    }

    /// Translates an execution under SC to the original program under TSO, and replays it; `None` if one of these fails.
    fn execution(&self, n: usize, trace: &Trace) -> Option<Trace> {
        let (original, property) = (self.task.program, &self.task.properties[self.numbers[n]]);
        let mapped = self.program.trace(original, trace)?;
        mapped.replay_for(original, MemoryModel::Tso, property).is_ok().then_some(mapped)
    }

    /// A certificate for the properties that the proofs show; `None` if one of the answers has no single proof of safety.
    fn certified(&self, proofs: Proofs) -> Option<Answer> {
        let mut made = self.certificates.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(one, two): &Proofs| {
            let seconds = two.iter().zip(&proofs.1).all(|(one, other)| is_same(one, other));
            is_same(one, &proofs.0) && two.is_some() == proofs.1.is_some() && seconds
        };
        if let Some((_, certificate)) = made.iter().find(|(of, _)| same(of)) {
            return Some(Answer::Certified(Arc::clone(certificate)));
        }
        let (names, first) = proof_of(&self.program.program, &proofs.0)?;
        let second = proofs.1.as_ref().zip(self.released.as_ref());
        let second = second.map(|(second, released)| proof_of(&released.program, second));
        let (released, second) = match second {
            Some(second) => second.map(|(names, proof)| (Some(names), Some(proof)))?,
            None => (None, None),
        };
        // In a claim with two proofs, the second one, about the program in which locks may be released, has to prove every property of the claim. So
        // the claim has only the properties that need the second proof.
        let is_shown = |name: &&String| {
            let mut asked = (0..self.numbers.len()).filter(|&n| self.name(n) == *name);
            asked.any(|n| match released {
                None => !self.needs_release(n),
                Some(released) => self.needs_release(n) && released.contains(name),
            })
        };
        let properties = names.iter().filter(is_shown).cloned().collect();
        let claim = Claim::Lazy { properties, extensions: Vec::new() };
        let all = std::iter::once(first).chain(second).collect();
        let certificate = Arc::new(Certificate::new(fingerprint(self.task.program), claim, all));
        made.push((proofs, Arc::clone(&certificate)));
        Some(Answer::Certified(certificate))
    }

    fn name(&self, n: usize) -> &String {
        &self.task.properties[self.numbers[n]].name
    }
}

/// Whether the program text shows that no store can be delayed past a load such that another thread notices.
fn has_no_attack(program: &Program, limits: &Limits) -> bool {
    let stop = || limits.exceeded(0).is_some();
    attack::unsupported(program).is_none()
        && attack::candidates(program, Notion::HappensBefore, &stop).is_some_and(|attacks| attacks.is_empty())
}

/// Translates early answers about the program under SC into answers under TSO.
impl Listener for Statically<'_> {
    fn hear(&self, property: usize, early: Early) {
        let traced = matches!(early.answer, Answer::Violated(Some(_)) | Answer::Holds(Some(_)));
        if traced || (early.answer.has_evidence() && !self.needs_release(property)) {
            let answer = self.concluded(property, early.answer, None);
            self.task.tell(self.numbers[property], Early { answer, ..early });
        }
    }

    fn is_settled(&self, property: usize) -> bool {
        self.task.is_settled(self.numbers[property])
    }

    fn judges(&self) -> bool {
        // A property that needs a second proof cannot be settled by the first one.
        self.task.is_judged() && !(0..self.numbers.len()).any(|n| self.needs_release(n))
    }
}

/// A listener that drops early answers but says which properties of the task are settled.
#[derive(Debug)]
struct Unheard<'a> {
    task: &'a Task<'a>,
    numbers: &'a [usize],
}

impl Listener for Unheard<'_> {
    fn hear(&self, _: usize, _: Early) {}

    fn is_settled(&self, property: usize) -> bool {
        self.task.is_settled(self.numbers[property])
    }

    fn judges(&self) -> bool {
        false
    }
}

/// The reduction to SC as a member of a portfolio; other members handle the properties that SC does not decide.
pub struct UnderSc(pub Auto);

impl Engine for UnderSc {
    fn name(&self) -> EngineName {
        EngineName::Lazy
    }

    fn about(&self) -> About {
        self.0.about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let all: Vec<usize> = (0..task.properties.len()).collect();
        match Statically::robust(task, &all, limits).filter(|way| way.numbers == all) {
            Some(way) => way.under_sc(|task| self.0.run(task, limits, progress)),
            None => {
                let reason = limits.exceeded(0).unwrap_or(Reason::Cancelled);
                Report { answers: vec![Answer::Unknown(reason); all.len()], ..Report::default() }
            }
        }
    }
}

/// The reduction to TSO as a member of a portfolio; other members search under PSO.
pub struct UnderTso<E> {
    /// The engine that answers the task under TSO.
    pub engine: E,
    /// Whether the search covers only the executions in which each thread has at most one store out of order at a time. Then only violations count.
    pub once: bool,
}

impl<E: Engine> Engine for UnderTso<E> {
    fn name(&self) -> EngineName {
        self.engine.name()
    }

    fn about(&self) -> About {
        self.engine.about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        match if self.once { Reordered::once(task) } else { Reordered::new(task) } {
            Some(way) => way.under_tso(|task| self.engine.run(task, limits, progress)),
            None => {
                let why = "the orders in which stores may leave cannot be written as a program";
                let reason = Reason::Unsupported(why.into(), None);
                Report { answers: vec![Answer::Unknown(reason); task.properties.len()], ..Report::default() }
            }
        }
    }
}
