//! Symbolic values of registers on a path, in terms of the registers at its start and of memory, which does not change.

use fencewright_program::{Address, BinaryOp, Expr, Op, RegisterId, UnaryOp, VariableId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The inputs of a symbolic value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Source {
    /// The value of a register at the start of the path.
    Register(RegisterId),
    /// The value of a variable, or of the element of an array at this index.
    Memory(VariableId, Option<Box<Value>>),
    /// The result of a nondeterministic choice, by its number on the path.
    Chosen(usize),
}

pub(super) type Value = Expr<Source>;

/// Equalities and disequalities between sources and constants on a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    equal: FxHashMap<Source, i64>,
    different: FxHashSet<(Source, i64)>,
}

impl Facts {
    /// Adds the facts that a condition implies.
    pub fn learn(&mut self, condition: &Value) {
        match condition {
            Expr::Leaf(source) => _ = self.different.insert((source.clone(), 0)),
            Expr::Unary(UnaryOp::Not, inner) => match &**inner {
                Expr::Leaf(source) => _ = self.equal.insert(source.clone(), 0),
                Expr::Binary(op, a, b) if op.is_comparison() => {
                    self.learn(&Expr::Binary(op.negated(), a.clone(), b.clone()));
                }
                _ => {}
            },
            Expr::Binary(BinaryOp::And, a, b) => [a, b].into_iter().for_each(|part| self.learn(part)),
            Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => {
                if let (Expr::Leaf(source), Expr::Const(number)) | (Expr::Const(number), Expr::Leaf(source)) =
                    (&**a, &**b)
                {
                    match op {
                        BinaryOp::Eq => _ = self.equal.insert(source.clone(), *number),
                        _ => _ = self.different.insert((source.clone(), *number)),
                    }
                }
            }
            _ => {}
        }
    }

    /// The constant that a source is known to equal, or the source.
    pub fn of(&self, source: Source) -> Value {
        self.equal.get(&source).map_or(Expr::Leaf(source), |number| Expr::Const(*number))
    }

    /// Folds a value under the facts.
    pub fn folded(&self, value: Value) -> Value {
        match value {
            Expr::Const(_) => value,
            Expr::Leaf(source) => self.of(source),
            Expr::Unary(op, a) => {
                let a = self.folded(*a);
                match a.constant().and_then(|a| op.apply(a).ok()) {
                    Some(number) => Expr::Const(number),
                    None => self.decided(Expr::unary(op, a)),
                }
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.folded(*a), self.folded(*b));
                self.binary(op, a, b)
            }
            Expr::If(condition, then, otherwise) => {
                let condition = self.folded(*condition);
                match condition.constant() {
                    Some(0) => self.folded(*otherwise),
                    Some(_) => self.folded(*then),
                    None => Expr::choice(condition, self.folded(*then), self.folded(*otherwise)),
                }
            }
        }
    }

    fn binary(&self, op: BinaryOp, a: Value, b: Value) -> Value {
        match (op, a.constant(), b.constant()) {
            (BinaryOp::And, Some(0), _) | (BinaryOp::And, _, Some(0)) => Expr::Const(0),
            (BinaryOp::Or, Some(1..), _) | (BinaryOp::Or, _, Some(1..)) => Expr::Const(1),
            (BinaryOp::Sub, None, Some(number)) if number != i64::MIN => {
                self.binary(BinaryOp::Add, a, Expr::Const(-number))
            }
            (BinaryOp::Add, Some(_), None) => self.binary(op, b, a),
            (BinaryOp::Add, None, Some(0)) => a,
            (BinaryOp::Add, None, Some(number)) => match a {
                Expr::Binary(BinaryOp::Add, inner, other)
                    if other.constant().is_some_and(|other| other.checked_add(number).is_some()) =>
                {
                    let sum = other.constant().unwrap_or(0) + number;
                    self.binary(op, *inner, Expr::Const(sum))
                }
                a => Expr::binary(op, a, b),
            },
            (_, Some(x), Some(y)) => match op.apply(x, y) {
                Ok(number) => Expr::Const(number),
                Err(_) => Expr::binary(op, a, b),
            },
            // The comparison of a value with itself has a known result.
            (BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge, ..) if a == b => Expr::Const(1),
            (BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Gt, ..) if a == b => Expr::Const(0),
            _ => self.decided(Expr::binary(op, a, b)),
        }
    }

    /// Folds a comparison of a source with a constant, if a recorded disequality decides it.
    fn decided(&self, value: Value) -> Value {
        let known = match &value {
            Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => match (&**a, &**b) {
                (Expr::Leaf(source), Expr::Const(number)) | (Expr::Const(number), Expr::Leaf(source)) => {
                    let differs = self.different.contains(&(source.clone(), *number));
                    differs.then_some(i64::from(*op == BinaryOp::Ne))
                }
                _ => None,
            },
            Expr::Unary(UnaryOp::Not, a) => match &**a {
                Expr::Leaf(source) => self.different.contains(&(source.clone(), 0)).then_some(0),
                _ => None,
            },
            _ => None,
        };
        known.map_or(value, Expr::Const)
    }
}

/// Number of nodes of a value.
pub(super) fn size(value: &Value) -> usize {
    1 + match value {
        Expr::Const(_) => 0,
        Expr::Leaf(Source::Memory(_, Some(index))) => size(index),
        Expr::Leaf(_) => 0,
        Expr::Unary(_, a) => size(a),
        Expr::Binary(_, a, b) => size(a) + size(b),
        Expr::If(a, b, c) => size(a) + size(b) + size(c),
    }
}

/// Renames the registers of an operation.
pub(super) fn renamed(op: &Op, name: &mut impl FnMut(RegisterId) -> RegisterId) -> Op {
    let mut expression = |e: &Expr<RegisterId>| e.map(&mut |r| Expr::Leaf(name(*r)));
    match op {
        Op::Skip => Op::Skip,
        Op::Assign(register, e) => {
            let e = expression(e);
            Op::Assign(name(*register), e)
        }
        Op::Havoc(register, range) => Op::Havoc(name(*register), *range),
        Op::Assume(e) => Op::Assume(expression(e)),
        Op::Assert(e, fault) => Op::Assert(expression(e), *fault),
        Op::Load(register, Address { variable, index }) => {
            let index = index.as_ref().map(expression);
            Op::Load(name(*register), Address { variable: *variable, index })
        }
        Op::Store(Address { variable, index }, e) => {
            let index = index.as_ref().map(&mut expression);
            Op::Store(Address { variable: *variable, index }, expression(e))
        }
    }
}
