//! Properties: conditions on reachable states that a program should or should not satisfy.

use crate::expr::{BinaryOp, Expr};
use crate::model::{LocationId, RegisterId, ThreadId};
use crate::span::Span;

/// An atomic observation of a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Observable {
    /// 1 if the thread is at one of these locations (sorted), 0 otherwise.
    At(ThreadId, Vec<LocationId>),
    /// The value of a register of a thread.
    Register(ThreadId, RegisterId),
    /// A memory cell. The value is that in memory; pending stores in buffers do not count.
    Memory(u32),
}

/// A condition on one state.
pub type Formula = Expr<Observable>;

impl Observable {
    /// The thread to which the observed location or register belongs; `None` for memory.
    pub fn thread(&self) -> Option<ThreadId> {
        match self {
            Observable::At(thread, _) | Observable::Register(thread, _) => Some(*thread),
            Observable::Memory(_) => None,
        }
    }
}

/// A disjunct of a formula.
#[derive(Clone, Debug)]
pub struct Disjunct<'f> {
    /// The disjunct.
    pub formula: &'f Formula,
    /// The thread on whose location and registers alone it depends; `None` if it depends on several threads, on memory or on nothing.
    pub own: Option<ThreadId>,
}

impl<'f> Disjunct<'f> {
    /// The locations outside of which the disjunct is 0, if it depends on one thread only and is, or is a conjunction with, the condition that the
    /// thread is at one of them.
    pub fn own_locations(&self) -> Option<(ThreadId, &'f [LocationId])> {
        let own = self.own?;
        let mut open = vec![self.formula];
        while let Some(part) = open.pop() {
            match part {
                Expr::Leaf(Observable::At(thread, at)) if *thread == own => return Some((own, at)),
                Expr::Binary(BinaryOp::And, left, right) => open.extend([&**right, &**left]),
                _ => {}
            }
        }
        None
    }
}

impl Formula {
    /// The disjuncts of a formula. A formula that may divide by zero or shift out of range has only one, because a disjunct without a value hides the
    /// others.
    pub fn disjuncts(&self) -> Vec<Disjunct<'_>> {
        let (mut open, mut found) = (vec![self], Vec::new());
        let splits = self.defined().is_none();
        while let Some(formula) = open.pop() {
            match formula {
                Expr::Binary(BinaryOp::Or, left, right) if splits => open.extend([&**right, &**left]),
                _ => found.push(Disjunct { formula, own: formula.own_thread() }),
            }
        }
        found
    }

    /// Calls `visit` for every mention of a register. The value of the formula depends on this mention only while the thread is at one of the given
    /// locations; `None` if it may depend on it everywhere.
    pub fn for_each_register<'f>(
        &'f self,
        visit: &mut dyn FnMut(ThreadId, RegisterId, Option<&'f [LocationId]>),
    ) {
        let certain = self.defined().is_none();
        self.visit_registers(&mut Vec::new(), &mut |thread, register, at| {
            visit(thread, register, at.filter(|_| certain));
        });
    }

    /// `around` are the locations of threads that conjunctions around this part require: elsewhere the value of this part does not matter.
    fn visit_registers<'f>(
        &'f self,
        around: &mut Vec<(ThreadId, &'f [LocationId])>,
        visit: &mut dyn FnMut(ThreadId, RegisterId, Option<&'f [LocationId]>),
    ) {
        match self {
            Expr::Leaf(Observable::Register(thread, register)) => {
                let required = around.iter().rev().find(|(of, _)| of == thread);
                visit(*thread, *register, required.map(|(_, at)| *at));
            }
            Expr::Const(_) | Expr::Leaf(_) => {}
            Expr::Binary(BinaryOp::And, ..) => {
                let (outside, mut open, mut conjuncts) = (around.len(), vec![self], Vec::new());
                while let Some(part) = open.pop() {
                    match part {
                        Expr::Binary(BinaryOp::And, left, right) => open.extend([&**right, &**left]),
                        Expr::Leaf(Observable::At(thread, at)) => around.push((*thread, at.as_slice())),
                        _ => conjuncts.push(part),
                    }
                }
                conjuncts.into_iter().for_each(|part| part.visit_registers(around, visit));
                around.truncate(outside);
            }
            Expr::Unary(_, operand) => operand.visit_registers(around, visit),
            Expr::Binary(_, left, right) => {
                left.visit_registers(around, visit);
                right.visit_registers(around, visit);
            }
            Expr::If(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| part.visit_registers(around, visit));
            }
        }
    }

    fn own_thread(&self) -> Option<ThreadId> {
        let (mut own, mut is_own) = (None, true);
        self.for_each_leaf(&mut |leaf| {
            is_own &= leaf.thread().is_some_and(|thread| *own.get_or_insert(thread) == thread);
        });
        own.filter(|_| is_own)
    }
}

/// A named property.
#[derive(Clone, Debug)]
pub struct Property {
    /// The name, unique in the program.
    pub name: String,
    /// The condition to be checked.
    pub kind: PropertyKind,
    /// The place in the source where the property is stated.
    pub span: Span,
}

/// The condition that a property states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// No reachable state satisfies the formula.
    Never(Formula),
    /// No action faults.
    Assertions,
    /// No reachable state is a deadlock: a state in which no step is enabled although some thread has neither terminated nor faulted.
    NoDeadlock,
    /// A condition on the final states, those in which all threads have terminated and all buffers are empty.
    Finally(Quantifier, Formula),
}

impl PropertyKind {
    /// Whether the property states that an execution exists. No single execution shows a violation of such a property.
    pub fn is_existence(&self) -> bool {
        matches!(self, PropertyKind::Finally(Quantifier::Exists, _))
    }
}

/// Which of the final states must satisfy the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// At least one final state.
    Exists,
    /// No final state.
    Never,
    /// Every final state.
    Forall,
}

impl Property {
    /// The implicit property that no action faults.
    pub fn assertions() -> Self {
        Property { name: "assertions".into(), kind: PropertyKind::Assertions, span: Span::default() }
    }

    /// Freedom from deadlock, which can be checked for every program, even if the source does not state it.
    pub fn deadlock() -> Self {
        Property { name: "deadlock".into(), kind: PropertyKind::NoDeadlock, span: Span::default() }
    }

    /// The formula, for the kinds that have one.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.kind {
            PropertyKind::Never(f) | PropertyKind::Finally(_, f) => Some(f),
            PropertyKind::Assertions | PropertyKind::NoDeadlock => None,
        }
    }
}
