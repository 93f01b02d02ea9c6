//! Answers a question about a program that chooses among very many values by asking about the program with few of them ([`narrowed`]). The
//! two programs differ in the ranges of choices only: an execution with few values is one of the original program, and a proof becomes a
//! certificate of the kind `narrowed`.

use fencewright_certify::{Certificate, Claim};
use fencewright_fingerprint::fingerprint;
use fencewright_program::replay::ReplayError;
use fencewright_program::{Program, Property, PropertyKind};
use fencewright_transform::narrow::narrowed;

use super::by_way_of::{Certificates, claimed, proofs_of};
use crate::task::{Answer, Early, Listener, Reason, Report, Task};

/// A task about a program of which some choices have fewer values.
#[derive(Debug)]
pub struct Narrowed<'a> {
    task: &'a Task<'a>,
    program: Program,
    certificates: Certificates,
}

impl<'a> Narrowed<'a> {
    /// The task with fewer values, if there are choices with very many of which fewer are enough.
    pub fn of(task: &'a Task<'a>) -> Option<Self> {
        // What is enough for the properties of the program need not be for others, nor for all final states.
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

    /// Answers the task. `run` answers questions about the program with fewer values.
    pub fn run(&self, run: impl FnOnce(&Task<'_>) -> Report) -> Report {
        let fewer = self.task.about(&self.program, self.task.model, self.task.properties.clone());
        let mut report = run(&fewer.heard_by(self));
        let answers = report.answers.into_iter().enumerate();
        report.answers = answers.map(|(n, answer)| self.with_all(n, answer)).collect();
        report
    }

    /// What an answer to the property with this number says about the program with all values.
    fn with_all(&self, n: usize, answer: Answer) -> Answer {
        let Task { program, model, properties, .. } = self.task;
        // A step with more choices than the reference semantics tries counts as possible there, whatever its conditions are.
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
