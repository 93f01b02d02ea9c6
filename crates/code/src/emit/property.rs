//! The property `memory`: no memory check fails, no memory is accessed after it has been freed, or retired while no hazard pointer protects it, and
//! none is freed or retired twice.
//!
//! A failed check ends a thread at a label of its own, which the property forbids. Which objects have been freed is recorded in registers of the
//! threads that free or allocate them ([`Mark`]). In the state before an access, the property compares the number of the place that the thread is
//! about to access with the marks of all threads.

use std::collections::{BTreeMap, HashMap};

use fencewright_front_end::facts::{Mistake, Register};
use fencewright_fw::ast::{Expr, ExprKind, Place, Property, PropertyKind, ThreadRef};
use fencewright_fw::build;
use fencewright_program::{BinaryOp, Span, UnaryOp};

use crate::flat::Mark;
use crate::layout::classes::{Layout, Runs};

/// The labels and registers from which the property is built.
#[derive(Default)]
pub(crate) struct Evidence {
    /// Labels of failed checks, with their threads.
    pub failed: Vec<(String, String)>,
    /// Labels of failed checks and of accesses to memory that can be freed, with the mistakes to report for them.
    pub mistakes: Vec<Mistake>,
    /// Accesses to memory that can be freed.
    pub touched: Vec<Touched>,
    /// The labels at which the process has ended, with their threads.
    pub exits: Vec<(String, String)>,
    /// The variables that registers represent, by thread and name of the register.
    pub registers: BTreeMap<(String, String), Register>,
    /// The arrays of registers that mark freed objects, with their threads, by class and by the meaning of a mark.
    pub marks: BTreeMap<(usize, Mark), Vec<(String, String)>>,
}

/// An access to memory that can be freed.
pub(crate) struct Touched {
    /// The name of the thread that makes the access.
    pub thread: String,
    /// The label before the access.
    pub at: String,
    /// The class of the accessed place.
    pub class: usize,
    /// The number of the place, as a formula over the thread's registers.
    pub number: Expr,
    /// Whether the access frees the object.
    pub frees: bool,
}

/// The conditions under which some thread is about to access, or to free, one object.
#[derive(Default)]
struct Touches {
    accesses: Vec<Expr>,
    frees: Vec<Expr>,
}

/// The property `memory`; `None` if nothing can violate it and the program has assertions. If nothing can violate it and there are no assertions
/// either, returns a property that always holds, so that the program has a property to check.
pub(crate) fn property(
    layout: &Layout,
    evidence: &Evidence,
    variables: &HashMap<usize, String>,
    asserts: bool,
) -> Option<Property> {
    let span = Span::default();
    let mut parts: Vec<Expr> = evidence.failed.iter().map(|(thread, label)| at(thread, label)).collect();
    let mut by_allocation: BTreeMap<(usize, i64), Touches> = BTreeMap::new();
    for touched in &evidence.touched {
        for (allocation, runs) in layout.allocated_runs(touched.class) {
            let here = at(&touched.thread, &touched.at);
            let touches = match touched.number.kind {
                ExprKind::Int(number) if runs.iter().any(|(low, high)| (*low..=*high).contains(&number)) => {
                    here
                }
                ExprKind::Int(_) => continue,
                _ => build::binary(BinaryOp::And, here, among(&runs, &touched.number, span), span),
            };
            let of = by_allocation.entry(allocation).or_default();
            match touched.frees {
                true => of.frees.push(touches),
                false => of.accesses.push(touches),
            }
        }
    }
    for ((class, number), Touches { accesses, frees }) in by_allocation {
        parts.extend(retired(layout, variables, (class, number), &accesses, &frees));
        let touches = [accesses, frees].concat();
        let marks = |mark| {
            let marks = evidence.marks.get(&(class, mark)).into_iter().flatten();
            marks.map(|(thread, marks)| register(thread, build::cell(marks, build::int(number, span), span)))
        };
        let is_set = |mark| build::binary(BinaryOp::Eq, mark, build::int(1, span), span);
        let mut free: Vec<Expr> = marks(Mark::Freed).map(is_set).collect();
        // The object is free if an odd number of threads have set their `Passed` mark; `!=` on truth values is exclusive or.
        free.extend(marks(Mark::Passed).reduce(|one, other| build::binary(BinaryOp::Ne, one, other, span)));
        if free.is_empty() {
            continue;
        }
        let freed = build::balanced(BinaryOp::Or, free, span);
        let touched = build::balanced(BinaryOp::Or, touches, span);
        parts.push(build::binary(BinaryOp::And, freed, touched, span));
    }
    if parts.is_empty() && !asserts {
        parts.push(build::int(0, span));
    }
    (!parts.is_empty()).then(|| Property {
        name: Some(build::name("memory", span)),
        kind: PropertyKind::Forbid,
        binders: Vec::new(),
        formula: build::balanced(BinaryOp::Or, parts, span),
        span,
    })
}

/// The formulas for violations at a retired object: it is accessed while no hazard pointer points into it, or freed again.
fn retired(
    layout: &Layout,
    variables: &HashMap<usize, String>,
    (class, number): (usize, i64),
    accesses: &[Expr],
    frees: &[Expr],
) -> Vec<Expr> {
    let span = Span::default();
    let value = |class: usize, number: i64| {
        let name = variables.get(&class)?;
        let place = match layout.classes[class].is_single() {
            true => build::scalar(name, span),
            false => build::cell(name, build::int(number, span), span),
        };
        Some(build::value_of(place, span))
    };
    let flag = layout.retired.flags.get(&class).and_then(|flags| value(*flags, number));
    let Some(flag) = flag else { return Vec::new() };
    let is_retired = build::binary(BinaryOp::Eq, flag, build::int(1, span), span);
    let mut unprotected = vec![is_retired.clone()];
    for guard in layout.guards((class, number)) {
        let Some(held) = value(guard.class, guard.number) else { continue };
        unprotected.push(build::unary(UnaryOp::Not, among(&guard.inside, &held, span), span));
    }
    let unprotected = build::balanced(BinaryOp::And, unprotected, span);
    let mut parts = Vec::new();
    for (when, touches) in [(unprotected, accesses), (is_retired, frees)] {
        if !touches.is_empty() {
            let touched = build::balanced(BinaryOp::Or, touches.to_vec(), span);
            parts.push(build::binary(BinaryOp::And, when, touched, span));
        }
    }
    parts
}

fn among(runs: &Runs, number: &Expr, span: Span) -> Expr {
    let within = |&(low, high): &(i64, i64)| {
        let compare = |op, bound| build::binary(op, number.clone(), build::int(bound, span), span);
        match low == high {
            true => compare(BinaryOp::Eq, low),
            false => {
                build::binary(BinaryOp::And, compare(BinaryOp::Ge, low), compare(BinaryOp::Le, high), span)
            }
        }
    };
    build::balanced(BinaryOp::Or, runs.iter().map(within).collect(), span)
}

fn thread(name: &str) -> ThreadRef {
    ThreadRef { name: build::name(name, Span::default()), index: None }
}

fn at(name: &str, label: &str) -> Expr {
    let span = Span::default();
    Expr { kind: ExprKind::At(thread(name), build::name(label, span)), span }
}

fn register(name: &str, place: Place) -> Expr {
    Expr { kind: ExprKind::Register(thread(name), place), span: Span::default() }
}

/// An expression of a thread as a formula, in which each register is qualified with the thread.
pub(crate) fn about(name: &str, expression: Expr) -> Expr {
    let again = |expression: Box<Expr>| Box::new(about(name, *expression));
    let kind = match expression.kind {
        ExprKind::Place(place) => return register(name, place),
        ExprKind::Unary(op, a) => ExprKind::Unary(op, again(a)),
        ExprKind::Binary(op, a, b) => ExprKind::Binary(op, again(a), again(b)),
        ExprKind::If(a, b, c) => ExprKind::If(again(a), again(b), again(c)),
        other => other,
    };
    Expr { kind, span: expression.span }
}
