//! Conditions on the final states of a program, as in litmus tests.
//!
//! An engine that enumerates states or executions finds the final states. The module [`check`](mod@crate::check) confirms them like every other
//! answer and evaluates the condition in them.

use std::collections::HashMap;

use fencewright_program::{
    Expr, Formula, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier,
};

use crate::check::{Confirm, Exploration, FinalStates};
use crate::task::{Engine, Limits, Progress, Task};

/// A condition about the final states of a program.
#[derive(Clone, Debug)]
pub struct Condition<'p> {
    program: &'p Program,
    model: MemoryModel,
    property: &'p Property,
    quantifier: Quantifier,
    proposition: Expr<usize>,
    filter: Option<Expr<usize>>,
    observed: Vec<Observable>,
    /// The index in `observed` of each observable that is shown or that the filter or the property depends on.
    positions: HashMap<Observable, usize>,
}

impl<'p> Condition<'p> {
    /// The condition that a property states; `None` if the property is not a `finally`. Only final states that satisfy `filter` count. For each of
    /// them, the values of all `shown` observables and of all observables in the filter and the property are recorded.
    pub fn new(
        program: &'p Program,
        model: MemoryModel,
        property: &'p Property,
        filter: Option<&Formula>,
        shown: impl IntoIterator<Item = Observable>,
    ) -> Option<Self> {
        let PropertyKind::Finally(quantifier, proposition) = &property.kind else { return None };
        let mut columns = Columns::default();
        shown.into_iter().for_each(|observable| _ = columns.position(&observable));
        let filter = filter.map(|formula| columns.formula(formula));
        let proposition = columns.formula(proposition);
        let Columns { mut observed, positions } = columns;
        if observed.is_empty() {
            // No value is needed, but a final state is recorded as its values, so at least one value is required.
            observed.extend(program.threads().map(|(id, _)| Observable::At(id, Vec::new())).take(1));
        }
        let quantifier = *quantifier;
        Some(Condition { program, model, property, quantifier, proposition, filter, observed, positions })
    }

    /// The program whose final states the condition is about.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// The quantifier over final states: all of them, some, or none.
    pub fn quantifier(&self) -> Quantifier {
        self.quantifier
    }

    /// The observables whose values are recorded in each final state, without duplicates: the shown ones first, then those that the filter and the
    /// property depend on.
    pub fn observed(&self) -> &[Observable] {
        &self.observed
    }

    /// The observables that are shown or that the filter or the property depends on: the list [`Condition::observed`], or an empty list if there are
    /// no such observables.
    pub fn looked_at(&self) -> &[Observable] {
        &self.observed[..self.positions.len()]
    }

    /// The index of an observable in [`Condition::observed`]; `None` unless it is shown, or the filter or the property depends on it.
    pub fn position(&self, observable: &Observable) -> Option<usize> {
        self.positions.get(observable).copied()
    }

    /// Whether a final state with these values of the observables passes the filter; `None` if that cannot be computed.
    pub(crate) fn passes(&self, values: &[i64]) -> Option<bool> {
        self.filter.as_ref().map_or(Some(true), |filter| truth(filter, values))
    }

    /// Whether a final state with these values of the observables satisfies the condition; `None` if that cannot be computed.
    pub(crate) fn satisfies(&self, values: &[i64]) -> Option<bool> {
        truth(&self.proposition, values)
    }

    /// The final states that an engine finds. With `exploration`, they are checked by an exploration of the reference semantics within these limits.
    pub fn search(
        &self,
        engine: &dyn Engine,
        limits: &Limits,
        exploration: Option<Exploration>,
    ) -> FinalStates {
        self.run(engine, self.task(Vec::new()), limits, exploration)
    }

    /// The final states that an engine finds until one of them decides the condition.
    pub fn search_until_decided(
        &self,
        engine: &dyn Engine,
        limits: &Limits,
        exploration: Option<Exploration>,
    ) -> FinalStates {
        let mut task = self.task(vec![self.property.clone()]);
        task.first_violation = true;
        self.run(engine, task, limits, exploration)
    }

    fn task(&self, properties: Vec<Property>) -> Task<'p> {
        let mut task = Task::new(self.program, self.model, properties);
        task.observed.clone_from(&self.observed);
        task
    }

    fn run(
        &self,
        engine: &dyn Engine,
        task: Task<'_>,
        limits: &Limits,
        exploration: Option<Exploration>,
    ) -> FinalStates {
        let report = engine.run(&task, limits, &Progress::default());
        FinalStates::admit(self, engine, &task, report, limits, Confirm { certificates: true, exploration })
    }
}

/// Whether a formula holds whose leaves are indices into `values`; `None` if it overflows, divides by zero or shifts out of range.
fn truth(formula: &Expr<usize>, values: &[i64]) -> Option<bool> {
    formula.eval(&mut |&position| values[position]).ok().map(|value| value != 0)
}

/// The observables, without duplicates.
#[derive(Default)]
struct Columns {
    observed: Vec<Observable>,
    positions: HashMap<Observable, usize>,
}

impl Columns {
    fn position(&mut self, observable: &Observable) -> usize {
        *self.positions.entry(observable.clone()).or_insert_with(|| {
            self.observed.push(observable.clone());
            self.observed.len() - 1
        })
    }

    fn formula(&mut self, formula: &Formula) -> Expr<usize> {
        formula.map(&mut |observable| Expr::Leaf(self.position(observable)))
    }
}
