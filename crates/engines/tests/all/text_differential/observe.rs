//! The observable behaviour of a program: the views of its states, and whether its properties hold.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_executions::oracle::{self, explore};
use fencewright_lang::Awaits;
use fencewright_lang::ast::*;
use fencewright_program::{BinaryOp, MemoryModel, Program, Reference};

use super::control::Code;
use super::declarations::{Declared, binary, constant, interval, unary};
use super::machine::{Incomplete, Machine, State};

/// The visible part of a state: for each thread its labels and registers, and memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct View {
    pub threads: Vec<(u64, Vec<i64>)>,
    pub memory: Vec<i64>,
}

/// The bit of a view that is set if the thread has ended.
const END: u64 = 1 << 63;
/// The bit of a view that is set if the thread has faulted.
const FAULT: u64 = 1 << 62;

/// The observable behaviour of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    All {
        views: BTreeSet<View>,
        finals: BTreeSet<View>,
        /// Whether each property holds, by name; `None` if that cannot be computed.
        verdicts: BTreeMap<String, Option<bool>>,
    },
    /// A value did not fit 64 bits, or an access was outside the modelled part of an open array.
    Limit,
    TooLarge,
}

/// The labels of all threads. The index of a label in this list is its bit in views.
pub fn label_bits(file: &File) -> Vec<String> {
    fn collect(block: &Block, labels: &mut BTreeSet<String>) {
        for statement in &block.statements {
            labels.extend(statement.labels.iter().map(|l| l.text.clone()));
            super::control::inner_blocks(statement).into_iter().for_each(|b| collect(b, labels));
        }
    }
    let mut labels = BTreeSet::new();
    for item in &file.items {
        if let Item::Thread(thread) = item {
            collect(&thread.body, &mut labels);
        }
    }
    labels.into_iter().collect()
}

fn bits<'l>(all: &[String], at: impl Iterator<Item = &'l str>) -> u64 {
    at.filter_map(|label| all.iter().position(|l| l == label)).fold(0, |bits, n| bits | 1 << n)
}

/// A view as text, for messages.
pub fn describe(view: &View, labels: &[String]) -> String {
    let thread = |(bits, registers): &(u64, Vec<i64>)| {
        let named = labels.iter().enumerate().filter(|(n, _)| bits & 1 << n != 0).map(|(_, l)| l.as_str());
        let special = [(END, "end"), (FAULT, "fault")].into_iter().filter(|(b, _)| bits & b != 0);
        let at: Vec<&str> = named.chain(special.map(|(_, name)| name)).collect();
        format!("at {at:?} registers {registers:?}")
    };
    let threads: Vec<String> = view.threads.iter().map(thread).collect();
    format!("{}; memory {:?}", threads.join("; "), view.memory)
}

/// The observable behaviour of the lowered program on the reference semantics.
pub fn of_program(program: &Program, model: MemoryModel, labels: &[String], most_states: usize) -> Observed {
    let reachable = match explore(program, model, most_states, &mut || false) {
        Ok(reachable) => reachable,
        Err(oracle::Incomplete::Limit) => return Observed::Limit,
        Err(oracle::Incomplete::TooManyStates) => return Observed::TooLarge,
        Err(other) => panic!("{other:?}: every choice is bounded"),
    };
    let reference = Reference::new(program, model);
    let view = |state: &fencewright_program::State| View {
        threads: program
            .threads()
            .map(|(id, thread)| {
                let at = state.locations[id.index()];
                let location = &thread.locations[at.index()];
                let mut seen = bits(labels, location.labels.iter().map(String::as_str));
                seen |= if thread.is_end(at) { END } else { 0 };
                seen |= if at == thread.fault { FAULT } else { 0 };
                let declared = thread.registers.iter().zip(&state.registers[id.index()]);
                (seen, declared.filter(|(r, _)| !r.name.starts_with('%')).map(|(_, v)| *v).collect())
            })
            .collect(),
        memory: state.memory.clone(),
    };
    let deadlock = fencewright_program::Property::deadlock();
    let properties = program.properties.iter().chain([&deadlock]);
    Observed::All {
        views: reachable.states.iter().map(view).collect(),
        finals: reachable.states.iter().filter(|s| reference.is_final(s)).map(view).collect(),
        verdicts: properties.map(|p| (p.name.clone(), reachable.satisfies(program, model, p))).collect(),
    }
}

/// The observable behaviour of the text on the second interpreter. `assertions` is among the verdicts if it is violated, or if `asserted`.
pub fn of_text(
    declared: &Declared<'_>,
    codes: &[Code<'_>],
    model: MemoryModel,
    labels: &[String],
    most_states: usize,
    asserted: bool,
    awaits: Awaits,
) -> Observed {
    let machine = Machine { declared, codes, model };
    let reachable = match machine.explore(most_states) {
        Ok(reachable) => reachable,
        Err(Incomplete::Limit) => return Observed::Limit,
        Err(Incomplete::TooManyStates) => return Observed::TooLarge,
    };
    let view = |state: &State| View {
        threads: codes
            .iter()
            .zip(&state.threads)
            .map(|(code, thread)| {
                let at = code.labels.iter().filter(|(_, place)| *place == thread.position);
                let started = !thread.log.is_empty() || thread.faulted;
                let mut seen = if started { 0 } else { bits(labels, at.map(|(label, _)| *label)) };
                seen |= if thread.faulted { FAULT } else { 0 };
                seen |= if !thread.faulted && thread.position.is_empty() { END } else { 0 };
                (seen, thread.registers.clone())
            })
            .collect(),
        memory: state.memory.clone(),
    };
    let views: BTreeSet<View> = reachable.states.iter().map(view).collect();
    let finals: BTreeSet<View> = reachable.states.iter().filter(|s| machine.is_final(s)).map(view).collect();
    let mut verdicts = BTreeMap::new();
    for property in &declared.properties {
        let formula = Formula { declared, labels, property };
        verdicts.insert(formula.name(), formula.verdict(&views, &finals));
    }
    let faults = views.iter().any(|view| view.threads.iter().any(|(bits, _)| bits & FAULT != 0));
    if asserted || faults {
        verdicts.insert("assertions".into(), Some(!faults));
    }
    verdicts.insert(
        "deadlock".into(),
        Some(!match awaits {
            Awaits::Spin => reachable.deadlock,
            Awaits::Block => reachable.blocked,
        }),
    );
    Observed::All { views, finals, verdicts }
}

/// A property of the text, evaluated on views.
struct Formula<'a> {
    declared: &'a Declared<'a>,
    labels: &'a [String],
    property: &'a Property,
}

type Bound<'b> = Vec<(&'b str, i64)>;

impl Formula<'_> {
    fn name(&self) -> String {
        self.property.name.as_ref().expect("the generator names properties").text.clone()
    }

    fn verdict(&self, views: &BTreeSet<View>, finals: &BTreeSet<View>) -> Option<bool> {
        let some = |views: &BTreeSet<View>, wanted: bool| {
            let holds: Vec<Option<bool>> = views.iter().map(|v| self.holds(v)).collect();
            match holds.contains(&Some(wanted)) {
                true => Some(true),
                false => (!holds.contains(&None)).then_some(false),
            }
        };
        let not = |answer: Option<bool>| answer.map(|a| !a);
        match self.property.kind {
            PropertyKind::Forbid => not(some(views, true)),
            PropertyKind::Invariant => not(some(views, false)),
            PropertyKind::FinallyExists => some(finals, true),
            PropertyKind::FinallyNever => not(some(finals, true)),
            PropertyKind::FinallyForall => not(some(finals, false)),
        }
    }

    /// Whether the formula holds in a view; `None` if it has no value.
    fn holds(&self, view: &View) -> Option<bool> {
        let Property { binders, formula, .. } = self.property;
        if binders.is_empty() {
            return self.value(view, &Vec::new(), formula).map(|v| v != 0);
        }
        let for_all = matches!(self.property.kind, PropertyKind::Invariant | PropertyKind::FinallyForall);
        let quantifier = if for_all { Quantified::Forall } else { Quantified::Exists };
        self.quantified(view, &Vec::new(), quantifier, binders, formula).map(|v| v != 0)
    }

    fn constant(&self, bound: &Bound<'_>, name: &str) -> Option<i64> {
        let innermost = bound.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| *v);
        innermost.or_else(|| self.declared.constant(name))
    }

    fn value(&self, view: &View, bound: &Bound<'_>, e: &Expr) -> Option<i64> {
        let index_of = |e: &Expr| constant(e, &|name| self.constant(bound, name)).expect("a constant index");
        let thread = |reference: &ThreadRef| {
            let index = reference.index.as_deref().map(index_of);
            let found = self
                .declared
                .threads
                .iter()
                .position(|t| t.name == reference.name.text && t.index.map(|(_, value)| value) == index);
            found.expect("formulas name threads that are there")
        };
        match &e.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Place(place) => {
                let Some(shared) = self.declared.shared(&place.name.text) else {
                    return self.constant(bound, &place.name.text);
                };
                let offset = match (&place.index, shared.indices) {
                    (Some(index), Some((low, _))) => index_of(index) - low,
                    _ => 0,
                };
                Some(view.memory[shared.first + offset as usize])
            }
            ExprKind::Unary(op, operand) => unary(*op, self.value(view, bound, operand)?),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                let decides = *op == BinaryOp::Or;
                match (self.value(view, bound, left)? != 0) == decides {
                    true => Some(i64::from(decides)),
                    false => Some(i64::from(self.value(view, bound, right)? != 0)),
                }
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(view, bound, left)?, self.value(view, bound, right)?);
                Some(binary(*op, left, right)?.expect("divisors are constants other than 0"))
            }
            ExprKind::If(condition, then, otherwise) => {
                let holds = self.value(view, bound, condition)? != 0;
                self.value(view, bound, if holds { then } else { otherwise })
            }
            ExprKind::At(reference, label) => {
                let bit = match label.text.as_str() {
                    "end" => END,
                    label => 1 << self.labels.iter().position(|l| l == label).expect("a label of the text"),
                };
                Some(i64::from(view.threads[thread(reference)].0 & bit != 0))
            }
            ExprKind::Register(reference, register) => {
                let number = thread(reference);
                let element = register.index.as_deref().map(index_of);
                let register = self.declared.threads[number].register(&register.name.text, element);
                Some(view.threads[number].1[register.expect("a register of the thread")])
            }
            ExprKind::Quantified(quantifier, binders, body) => {
                self.quantified(view, bound, *quantifier, binders, body)
            }
            ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) | ExprKind::Call(..) => {
                unreachable!("formulas change nothing")
            }
        }
    }

    /// The truth value of a quantified formula, 0 or 1.
    fn quantified(
        &self,
        view: &View,
        bound: &Bound<'_>,
        quantifier: Quantified,
        binders: &[Binder],
        body: &Expr,
    ) -> Option<i64> {
        let Some((binder, rest)) = binders.split_first() else {
            return self.value(view, bound, body).map(|v| i64::from(v != 0));
        };
        let decides = i64::from(quantifier == Quantified::Exists);
        let (low, high) = interval(&binder.range, &|name| self.constant(bound, name));
        for i in low..=high {
            let seconds = match &binder.second {
                None => vec![None],
                Some((relation, second)) => (low..=high)
                    .filter(|&j| match relation {
                        BinderRelation::Less => i < j,
                        BinderRelation::NotEqual => i != j,
                    })
                    .map(|j| Some((second.text.as_str(), j)))
                    .collect(),
            };
            for second in seconds {
                let mut bound = bound.clone();
                bound.push((&binder.first.text, i));
                bound.extend(second);
                if self.quantified(view, &bound, quantifier, rest, body)? == decides {
                    return Some(decides);
                }
            }
        }
        Some(1 - decides)
    }
}
