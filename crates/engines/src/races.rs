//! Data races: accesses that a compiler may move, and that another thread may see moved.
//!
//! Two accesses of different threads race if at least one is a store, at least one is plain, and under SC a state can be reached in which both are
//! next. Whoever writes C promises that there are none (C11 5.1.2.4). What is found is true: each race is a reachable state that was replayed. What is not
//! found within the time may still be there.

use std::collections::BTreeMap;

use fencewright_program::{
    Action, Address, BinaryOp, Expr, Formula, LocationId, MemoryModel, Observable, Op, Program, Property,
    PropertyKind, Span, ThreadId, VariableId,
};

use crate::explicit::Explicit;
use crate::{Confirm, Limits, Progress, Task, Verdict, check_each};

/// So many pairs of places in the text are looked at.
const MOST_PAIRS: usize = 64;
/// So many pairs of steps are looked at for each of them.
const MOST_STEPS: usize = 64;

/// Two places in the text that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// A plain access.
    pub plain: Span,
    /// The access that it races with.
    pub other: Span,
    /// What both access.
    pub variable: VariableId,
}

/// An access of memory that is a step of its own.
struct Access<'p> {
    thread: ThreadId,
    from: LocationId,
    address: &'p Address,
    stores: bool,
    plain: bool,
    span: Span,
}

/// The races of a program that are found within these limits; `is_plain` tells which texts a compiler may move.
pub fn races(program: &Program, is_plain: &dyn Fn(Span) -> bool, limits: &Limits) -> Vec<Race> {
    let accesses: Vec<Access<'_>> = accesses(program, is_plain);
    let mut pairs: BTreeMap<(Span, Span, VariableId), Vec<Formula>> = BTreeMap::new();
    for plain in accesses.iter().filter(|access| access.plain) {
        for other in accesses.iter().filter(|other| conflict(plain, other)) {
            // Two plain accesses are one pair.
            if other.plain && (other.span, other.thread) < (plain.span, plain.thread) {
                continue;
            }
            let key = (plain.span, other.span, plain.address.variable);
            if pairs.len() < MOST_PAIRS || pairs.contains_key(&key) {
                let states = pairs.entry(key).or_default();
                if states.len() < MOST_STEPS {
                    states.push(both_next(plain, other));
                }
            }
        }
    }
    if pairs.is_empty() {
        return Vec::new();
    }
    let (races, formulas): (Vec<Race>, Vec<Formula>) = pairs
        .into_iter()
        .map(|((plain, other, variable), states)| (Race { plain, other, variable }, Expr::any(states)))
        .unzip();
    let property = |(n, formula)| Property {
        name: format!("race {n}"),
        kind: PropertyKind::Never(formula),
        span: Span::default(),
    };
    let properties = formulas.into_iter().enumerate().map(property).collect();
    let task = Task::new(program, MemoryModel::Sc, properties);
    let engine = Explicit::default();
    let progress = Progress::default();
    let checks = check_each(&engine, &task, limits, &progress, Confirm::default(), &mut |_, _| {});
    let found = races.into_iter().zip(&checks.verdicts);
    found.filter(|(_, checked)| matches!(checked.verdict(), Verdict::Unsafe)).map(|(race, _)| race).collect()
}

fn accesses<'p>(program: &'p Program, is_plain: &dyn Fn(Span) -> bool) -> Vec<Access<'p>> {
    let mut accesses = Vec::new();
    for (thread, code) in program.threads() {
        for edge in &code.edges {
            let (address, stores) = match &edge.action {
                Action::Op(Op::Load(_, address)) => (address, false),
                Action::Op(Op::Store(address, _)) => (address, true),
                _ => continue,
            };
            let span = edge.span.text();
            accesses.push(Access { thread, from: edge.from, address, stores, plain: is_plain(span), span });
        }
    }
    accesses
}

fn conflict(a: &Access<'_>, b: &Access<'_>) -> bool {
    a.thread != b.thread && a.address.variable == b.address.variable && (a.stores || b.stores)
}

/// A state in which two accesses are next, to the same memory cell.
fn both_next(a: &Access<'_>, b: &Access<'_>) -> Formula {
    let at = |access: &Access<'_>| Expr::Leaf(Observable::At(access.thread, vec![access.from]));
    let index = |access: &Access<'_>| {
        let index = access.address.index.as_ref()?;
        Some(index.map(&mut |register| Expr::Leaf(Observable::Register(access.thread, *register))))
    };
    let mut parts = vec![at(a), at(b)];
    if let (Some(left), Some(right)) = (index(a), index(b)) {
        parts.push(Expr::binary(BinaryOp::Eq, left, right));
    }
    Expr::all(parts)
}
