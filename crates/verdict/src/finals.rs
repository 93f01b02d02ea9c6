//! The final states of a program, and whether they satisfy a condition: what litmus tests ask.
//!
//! An engine that looks at single states finds the final states; they leave through the door like every answer ([`check`](mod@crate::check)), which also
//! decides the condition.

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
    /// The position, among the observed, of everything that is shown or that the filter or the property looks at.
    positions: HashMap<Observable, usize>,
}

impl<'p> Condition<'p> {
    /// The condition that a property states; `None` if the property is not a `finally`. Only final states that pass the filter count. For
    /// each of them, the values of everything that is `shown`, and that the filter and the property look at, will be known.
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
            // No value is asked for, but it matters whether there is a final state; any observable shows that.
            observed.extend(program.threads().map(|(id, _)| Observable::At(id, Vec::new())).take(1));
        }
        let quantifier = *quantifier;
        Some(Condition { program, model, property, quantifier, proposition, filter, observed, positions })
    }

    /// The program.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// Which final states must satisfy it.
    pub fn quantifier(&self) -> Quantifier {
        self.quantifier
    }

    /// The observables whose values are known in each final state, without repetition: those that are shown, then others that the filter
    /// and the property look at.
    pub fn observed(&self) -> &[Observable] {
        &self.observed
    }

    /// The observables that are shown or that the filter or the property looks at. These are all of [`Condition::observed`],
    /// except that it has one observable even if nothing is looked at.
    pub fn looked_at(&self) -> &[Observable] {
        &self.observed[..self.positions.len()]
    }

    /// The position of such an observable in [`Condition::observed`].
    pub fn position(&self, observable: &Observable) -> Option<usize> {
        self.positions.get(observable).copied()
    }

    /// Whether a final state in which what is observed has these values passes the filter; `None` if that cannot be computed.
    pub(crate) fn passes(&self, values: &[i64]) -> Option<bool> {
        self.filter.as_ref().map_or(Some(true), |filter| truth(filter, values))
    }

    /// Whether such a final state satisfies the condition; `None` if that cannot be computed.
    pub(crate) fn satisfies(&self, values: &[i64]) -> Option<bool> {
        truth(&self.proposition, values)
    }

    /// The final states that an engine finds, checked as far as `exploration` allows.
    pub fn search(
        &self,
        engine: &dyn Engine,
        limits: &Limits,
        exploration: Option<Exploration>,
    ) -> FinalStates {
        self.run(engine, self.task(Vec::new()), limits, exploration)
    }

    /// The final states up to the first that decides the condition, if the engine comes to one.
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

/// Whether a formula about the values at some positions holds; `None` if that cannot be computed in 64 bits.
fn truth(formula: &Expr<usize>, values: &[i64]) -> Option<bool> {
    formula.eval(&mut |&position| values[position]).ok().map(|value| value != 0)
}

/// What is observed, each thing once.
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
