//! Checks of values that may be undefined, wherever such a value has an influence: as a condition, an address or an operand, but not where it is only
//! copied. Pointers need no such check, because the undefined value is not a valid pointer.

use fencewright_program::{BinaryOp, UnaryOp};

use super::{Intervals, Range, State};
use crate::flat::{CellEvent, Step, StepKind, Term, UNDEFINED, claims};
use crate::statement::Register;

/// The condition under which a part of a term is evaluated: the innermost guard, and those around it. The conjunction is built only where a check
/// needs it, because a condition may be a disjunction of many tests, each of which has all earlier ones as guards.
struct When<'a> {
    outer: Option<&'a When<'a>>,
    guard: &'a Term,
    /// Whether the guard has to be true; otherwise it has to be false.
    holds: bool,
}

impl<'a> When<'a> {
    fn new(outer: Option<&'a When<'a>>, guard: &'a Term, holds: bool) -> Self {
        When { outer, guard, holds }
    }

    /// The conjunction of all guards.
    fn term(&self) -> Term {
        let guard = match self.holds {
            true => self.guard.clone(),
            false => Term::unary(UnaryOp::Not, self.guard.clone()),
        };
        match self.outer {
            None => guard,
            Some(outer) => outer.term().and(guard),
        }
    }
}

impl Intervals<'_> {
    /// The checks that the values on which a statement depends are defined.
    pub(super) fn undefined(&self, state: &State, step: &StepKind) -> Vec<StepKind> {
        let mut found = Vec::new();
        let mut decides = |term: &Term| self.decides(state, term, false, None, &mut found);
        match step {
            StepKind::Assign(_, value) => self.decides(state, value, true, None, &mut found),
            StepKind::Special(CellEvent::Set(_, index, value)) => {
                decides(index);
                self.decides(state, value, true, None, &mut found);
            }
            StepKind::Load(_, cell, _) => cell.index.iter().for_each(&mut decides),
            StepKind::Store(cell, value, _) => {
                cell.index.iter().for_each(&mut decides);
                self.decides(state, value, true, None, &mut found);
            }
            StepKind::Update { place: cell, old, when, new, .. } => {
                // Whether the old value is undefined is checked later, after the read, so here the old value counts as defined.
                let mut bound = state.clone();
                bound.set(*old, Range::of(0));
                cell.index
                    .iter()
                    .chain(when)
                    .for_each(|term| self.decides(&bound, term, false, None, &mut found));
                self.decides(&bound, new, true, None, &mut found);
            }
            StepKind::Await { register, place: cell, until: condition, .. } => {
                let mut bound = state.clone();
                bound.set(*register, Range::of(0));
                let terms = cell.index.iter().chain([condition]);
                terms.for_each(|term| self.decides(&bound, term, false, None, &mut found));
            }
            StepKind::Assume(term)
            | StepKind::Assert(term, _)
            | StepKind::If(term, ..)
            | StepKind::Beyond(term, _) => decides(term),
            _ => {}
        }
        found
    }

    /// Collects checks for the registers and elements of a term that may be undefined and have an influence. `copied`: the term is only copied.
    /// `when`: the condition under which the term is evaluated.
    fn decides(
        &self,
        state: &State,
        term: &Term,
        copied: bool,
        when: Option<&When>,
        found: &mut Vec<StepKind>,
    ) {
        match term {
            Term::Number(_) => {}
            Term::Register(_) | Term::Element(..) => {
                if let Term::Element(_, index) = term {
                    self.decides(state, index, false, when, found);
                }
                if !copied && self.range(state, term).undefined {
                    let is_defined = term.clone().with(BinaryOp::Ne, UNDEFINED);
                    let condition = match when {
                        None => is_defined,
                        Some(when) => Term::unary(UnaryOp::Not, when.term()).or(is_defined),
                    };
                    let check = claims::defined(condition.clone(), term.clone());
                    if !found
                        .iter()
                        .any(|other| matches!(other, StepKind::Check(other, ..) if *other == condition))
                    {
                        found.push(check);
                    }
                }
            }
            // The result of comparing a value with the undefined value is defined. Only the translation makes such comparisons.
            Term::Binary(BinaryOp::Eq | BinaryOp::Ne, a, b) if **b == Term::Number(UNDEFINED) => {
                self.decides(state, a, true, when, found);
            }
            Term::Unary(_, a) => self.decides(state, a, false, when, found),
            Term::Binary(BinaryOp::And, a, b) => {
                self.decides(state, a, false, when, found);
                self.decides(state, b, false, Some(&When::new(when, a, true)), found);
            }
            Term::Binary(BinaryOp::Or, a, b) => {
                self.decides(state, a, false, when, found);
                self.decides(state, b, false, Some(&When::new(when, a, false)), found);
            }
            Term::Binary(_, a, b) => {
                self.decides(state, a, false, when, found);
                self.decides(state, b, false, when, found);
            }
            Term::If(condition, a, b) => {
                self.decides(state, condition, false, when, found);
                self.decides(state, a, copied, Some(&When::new(when, condition, true)), found);
                self.decides(state, b, copied, Some(&When::new(when, condition, false)), found);
            }
        }
    }

    /// For an update or await that may read an undefined value and uses it: splits the update into a read and a write, so that a check fits between
    /// them, or returns a check to insert after the statement, where that suffices.
    pub(super) fn prepare(&self, statement: &mut Step, state: &State) -> Option<Step> {
        let span = statement.span;
        let step = |kind| Step { kind, span };
        let is_defined = |register: Register| Term::Register(register).with(BinaryOp::Ne, UNDEFINED);
        match &mut statement.kind {
            StepKind::Update { place: cell, old, when, new, access }
                if self.shared.memory[cell.class].undefined =>
            {
                let mut bound = state.clone();
                bound.set(*old, self.shared.memory[cell.class]);
                let mut found = Vec::new();
                when.iter().for_each(|when| self.decides(&bound, when, false, None, &mut found));
                self.decides(&bound, new, true, None, &mut found);
                if found.is_empty() {
                    return None;
                }
                // The undefined value equals no other value, so the comparison with an undefined old value fails and nothing is written. A check
                // after the update suffices.
                let compares = |when: &Term| matches!(when, Term::Binary(BinaryOp::Eq, left, right) if **left == Term::Register(*old) && !right.has(*old));
                if when.as_ref().is_some_and(compares) && !new.has(*old) {
                    let check = claims::defined(is_defined(*old), Term::Register(*old));
                    return Some(step(check));
                }
                let (old, cell, new, access) = (*old, cell.clone(), new.clone(), *access);
                let write = step(StepKind::Store(cell.clone(), new, access));
                let write = match when.clone() {
                    None => write,
                    Some(when) => step(StepKind::If(when, vec![write], Vec::new())),
                };
                statement.kind = StepKind::Atomic(vec![step(StepKind::Load(old, cell, access)), write]);
                None
            }
            StepKind::Await { register, place: cell, until: condition, .. }
                if self.shared.memory[cell.class].undefined =>
            {
                let register = *register;
                let undefined = Term::Register(register).with(BinaryOp::Eq, UNDEFINED);
                *condition = undefined.or(condition.clone());
                let check = claims::defined(is_defined(register), Term::Register(register));
                Some(step(check))
            }
            _ => None,
        }
    }
}
