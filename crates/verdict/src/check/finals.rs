//! Checked final states. This is the only module that constructs [`FinalStates`].
//!
//! If the engine found all final states and the state space is small, the reference semantics is explored and must reach exactly these final states.
//! If the engine decided the condition before it had found all final states, the execution that decides the condition is replayed. All other answers
//! rely on the engine alone, and their `checked` is false.

use std::collections::BTreeSet;

use fencewright_executions::oracle::Reachable;
use fencewright_program::reference::State;
use fencewright_program::{Observable, Quantifier, Reference};

use super::confirm::Confirmation;
use super::verdict::{Confirm, Verdict};
use crate::finals::Condition;
use crate::task::{Engine, Limits, Reason, Report, Seen, Task, Work};

/// A final state, restricted to the observed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalState {
    /// The values of the observables, in the order of [`Condition::observed`].
    pub values: Vec<i64>,
    /// Whether the final state satisfies the condition; `None` if that cannot be computed in 64 bits.
    pub satisfies: Option<bool>,
}

/// How many of the final states satisfy a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// All final states satisfy the condition.
    Always,
    /// Some final states satisfy the condition and some do not.
    Sometimes,
    /// No final state satisfies the condition.
    Never,
}

/// Why the information about final states is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The search stopped as soon as the condition was decided, so there may be more final states.
    EndedWhenDecided,
    /// There may be more final states, for this reason.
    Unseen(Reason),
    /// In some final state the filter or the condition cannot be computed in 64 bits.
    NotComputable,
}

/// The final states of a program, and the truth of a condition.
#[derive(Clone, Debug)]
pub struct FinalStates {
    states: Vec<FinalState>,
    missing: Option<Doubt>,
    contradicted: bool,
    checked: bool,
    /// Statistics of the search for final states.
    pub statistics: Work,
    quantifier: Quantifier,
}

impl FinalStates {
    /// The final states that pass the filter, sorted by their values.
    pub fn states(&self) -> &[FinalState] {
        &self.states
    }

    /// The reason why there may be more final states; `None` if all are known.
    pub fn missing(&self) -> Option<&Doubt> {
        self.missing.as_ref()
    }

    /// Why the information is incomplete, if it is: there may be more final states, or the condition cannot be computed in some of
    /// [`FinalStates::states`].
    pub fn doubt(&self) -> Option<Doubt> {
        let not_computable = || self.has(None).then_some(Doubt::NotComputable);
        self.missing.clone().or_else(not_computable)
    }

    /// Whether the condition holds, if that is known.
    pub fn holds(&self) -> Option<bool> {
        if self.contradicted {
            return None;
        }
        let shown = match self.quantifier {
            Quantifier::Exists => self.has(Some(true)).then_some(true),
            Quantifier::Never => self.has(Some(true)).then_some(false),
            Quantifier::Forall => self.has(Some(false)).then_some(false),
        };
        shown.or_else(|| self.doubt().is_none().then_some(self.quantifier != Quantifier::Exists))
    }

    /// How many of the final states satisfy the condition, if that is known.
    pub fn observation(&self) -> Option<Observation> {
        match (self.has(Some(true)), self.has(Some(false))) {
            _ if self.contradicted => None,
            (true, true) => Some(Observation::Sometimes),
            _ if self.doubt().is_some() => None,
            (false, _) => Some(Observation::Never),
            (true, false) => Some(Observation::Always),
        }
    }

    /// True if the reference semantics reaches exactly these final states, or if there may be more final states and the execution that decides the
    /// condition was replayed; false if the answer relies on the engine alone; `None` if there is no answer.
    pub fn checked(&self) -> Option<bool> {
        self.holds().map(|_| self.checked)
    }

    fn has(&self, satisfies: Option<bool>) -> bool {
        self.states.iter().any(|state| state.satisfies == satisfies)
    }

    /// Checks the report of an engine about the final states for a condition. If the task includes the condition as a property, the search may have
    /// stopped as soon as the condition was decided.
    pub(crate) fn admit(
        condition: &Condition<'_>,
        engine: &dyn Engine,
        task: &Task<'_>,
        mut report: Report,
        limits: &Limits,
        confirm: Confirm,
    ) -> Self {
        let missing = match &report.seen {
            Seen::All => None,
            Seen::UntilDecided => Some(Doubt::EndedWhenDecided),
            Seen::Until(reason) => Some(Doubt::Unseen(reason.clone())),
            Seen::Nothing => {
                Some(Doubt::Unseen(Reason::Contradiction("the engine looked at nothing".into())))
            }
        };
        let values = std::mem::take(&mut report.finals);
        let statistics = report.work.clone();
        let confirm = confirm.unless_hopeless(report.work.states);
        let found = FinalStates {
            states: values.iter().filter_map(|values| state(condition, values)).collect(),
            contradicted: false,
            checked: false,
            statistics,
            quantifier: condition.quantifier(),
            missing,
        };
        match found.missing {
            None => found.explored(task, &values, limits, confirm),
            Some(_) => found.replayed(engine, task, report, limits, confirm),
        }
    }

    /// For an engine that has found all final states: if the reference semantics can be explored, it must reach the same final states.
    fn explored(self, task: &Task<'_>, values: &[Vec<i64>], limits: &Limits, confirm: Confirm) -> Self {
        match Confirmation::new(task, limits, confirm).reachable() {
            None => self,
            Some(reachable) if finals(task, reachable) == values.iter().cloned().collect() => {
                FinalStates { checked: true, ..self }
            }
            Some(_) => self.contradicted("the reference semantics reaches other final states"),
        }
    }

    /// For an engine that may not have found all final states: replays the execution with which it decided the condition, if it did.
    fn replayed(
        self,
        engine: &dyn Engine,
        task: &Task<'_>,
        report: Report,
        limits: &Limits,
        confirm: Confirm,
    ) -> Self {
        let verdicts = super::admit(engine, task, report, limits, confirm);
        let Some(verdict) = verdicts.first() else { return self };
        match (verdict.verdict(), self.holds()) {
            (Verdict::Safe, Some(true)) | (Verdict::Unsafe, Some(false)) => {
                FinalStates { checked: verdict.checked() == Some(true), ..self }
            }
            (Verdict::Safe, Some(false)) | (Verdict::Unsafe, Some(true)) => {
                self.contradicted("the execution decides the condition otherwise than the final states")
            }
            (Verdict::Unknown(Reason::Contradiction(what)), _) => self.contradicted(what),
            (Verdict::Unknown(_), _) | (_, None) => self,
        }
    }

    /// Withdraws the answer, because two computations disagree as described by `what`.
    fn contradicted(self, what: &str) -> Self {
        let missing = Some(Doubt::Unseen(Reason::Contradiction(what.into())));
        FinalStates { contradicted: true, missing, ..self }
    }
}

/// The final state with these values of the observables; `None` if it does not satisfy the filter.
fn state(condition: &Condition<'_>, values: &[i64]) -> Option<FinalState> {
    let passes = condition.passes(values);
    let satisfies = passes.and_then(|_| condition.satisfies(values));
    (passes != Some(false)).then(|| FinalState { values: values.to_vec(), satisfies })
}

/// The values of the task's observables in the final states that the reference semantics reaches.
fn finals(task: &Task<'_>, reachable: &Reachable) -> BTreeSet<Vec<i64>> {
    let reference = Reference::new(task.program, task.model);
    let finals = reachable.states.iter().filter(|state| reference.is_final(state));
    finals.map(|state| task.observed.iter().map(|o| value(state, o)).collect()).collect()
}

/// The value of an observable in a state of the reference semantics.
fn value(state: &State, observable: &Observable) -> i64 {
    match observable {
        Observable::At(thread, locations) => locations.contains(&state.locations[thread.index()]).into(),
        Observable::Register(thread, register) => state.registers[thread.index()][register.index()],
        Observable::Memory(cell) => state.memory[*cell as usize],
    }
}
