//! Reduces a program that chooses among very many values to a program that chooses among fewer ([`narrowed`]). The two programs differ only in the
//! ranges of choices. So each execution of the reduced program is an execution of the original program, and a proof becomes a certificate with the
//! claim `narrowed`.

use fencewright_certify::{Certificate, Claim};
use fencewright_program::replay::ReplayError;
use fencewright_program::{Program, Property, PropertyKind};
use fencewright_transform::narrow::narrowed;
use fencewright_verdict::fingerprint::fingerprint;

use super::by_way_of::{Certificates, claimed, proofs_of};
use crate::task::{Answer, Early, Listener, Reason, Report, Task};

/// A task about the program with fewer values for some of its choices.
#[derive(Debug)]
pub struct Narrowed<'a> {
    task: &'a Task<'a>,
    program: Program,
    certificates: Certificates,
}

impl<'a> Narrowed<'a> {
    /// The reduced task; `None` if no choice has many values of which fewer are sufficient, or if the reduction might change the answer to the task.
    pub fn of(task: &'a Task<'a>) -> Option<Self> {
        // The reduction preserves only properties that the program states or that have no formula. Other formulas and the set of final states may
        // change.
        let known = |property: &Property| {
            matches!(property.kind, PropertyKind::Assertions | PropertyKind::NoDeadlock)
                || task.program.properties.iter().any(|own| own.kind == property.kind)
        };
        if !task.observed.is_empty() || !task.properties.iter().all(known) {
            return None;
        }
        let program = narrowed(task.program)?;
        Some(Narrowed { task, program, certificates: Certificates::default() })
    }

    /// Answers the task by calling `run` for the program with fewer values.
    pub fn run(&self, run: impl FnOnce(&Task<'_>) -> Report) -> Report {
        let fewer = self.task.about(&self.program, self.task.model, self.task.properties.clone());
        let mut report = run(&fewer.heard_by(self));
        let answers = report.answers.into_iter().enumerate();
        report.answers = answers.map(|(n, answer)| self.with_all(n, answer)).collect();
        report
    }

    /// Translates the answer to property `n` to the program with all values.
    fn with_all(&self, n: usize, answer: Answer) -> Answer {
        let Task { program, model, properties, .. } = self.task;
        // If a step has more choices than the reference semantics can try, the reference semantics assumes that the step is enabled. So it cannot
        // confirm a deadlock in which such a step is disabled.
        if let (PropertyKind::NoDeadlock, Answer::Violated(Some(trace))) = (&properties[n].kind, &answer)
            && matches!(trace.replay_for(program, *model, &properties[n]), Err(ReplayError::Property))
        {
            let why =
                "in a state that may be a deadlock, a step chooses among too many values to try them all";
            return Answer::Unknown(Reason::Unsupported(why.into(), None));
        }
        let Some(claim) = claimed(&answer) else { return answer };
        self.certificates.made(&answer, claim.properties(), || {
            let claim = Claim::Narrowed { fewer: Box::new(claim.clone()) };
            Certificate::new(fingerprint(program), claim, proofs_of(&self.program, &answer))
        })
    }
}

impl Listener for Narrowed<'_> {
    fn hear(&self, property: usize, early: Early) {
        let answer = self.with_all(property, early.answer);
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
