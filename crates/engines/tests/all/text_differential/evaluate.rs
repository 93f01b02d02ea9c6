//! Evaluation of expressions in threads, one access at a time.
//!
//! A thread in the middle of a statement has a log of the results of its accesses, in order. The statement is evaluated again from its start with
//! these results. Then the evaluation needs a further access, needs a condition to be decided, or is complete.

use fencewright_lang::ast::{Expr, ExprKind, Place};
use fencewright_program::{BinaryOp, Numbers};

use super::control::{Code, Position};
use super::declarations::{Declared, Interval, Undefined, binary, unary};

/// The reason why a value cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A fault, which is a violation. The thread stops.
    Fault,
    /// A value that does not fit 64 bits, or an access outside the modelled part of an open array. The answer is `unknown`.
    Limit,
}

impl From<Undefined> for Trouble {
    fn from(_: Undefined) -> Self {
        Trouble::Fault
    }
}

/// A value that the next step computes, or its failure.
pub type Value = Result<i64, Trouble>;

/// The event that must happen before evaluation can continue.
#[derive(Clone, Debug)]
pub enum Need {
    Load(Result<usize, Trouble>),
    /// A read-modify-write operation on a cell of the shared variable with this number.
    Modify(Result<usize, Trouble>, usize, Modification),
    /// A step that decides a condition, or checks a computed index.
    Decide(Result<(), Trouble>),
}

#[derive(Clone, Debug)]
pub enum Modification {
    Cas(Value, Value),
    Swap(Value),
    FetchAdd(Value),
}

/// The source of results of accesses.
pub enum Answers<'a> {
    /// The results of the events of this statement so far, and the number of results that the evaluation has used.
    Log(&'a [i64], usize),
    /// Inside an atomic block, loads return their values immediately, and decisions are not separate steps.
    Now(&'a dyn Fn(usize) -> i64),
}

pub struct Evaluation<'a, 'f> {
    pub declared: &'f Declared<'f>,
    pub code: &'a Code<'f>,
    pub position: &'a Position,
    pub registers: &'a [i64],
    pub answers: Answers<'a>,
}

impl Evaluation<'_, '_> {
    /// The result of the next event if it has happened. Otherwise the event is returned as an error.
    pub fn answer(&mut self, need: Need) -> Result<i64, Need> {
        match (&mut self.answers, need) {
            (Answers::Log(log, used), need) => {
                *used += 1;
                log.get(*used - 1).copied().ok_or(need)
            }
            (Answers::Now(load), Need::Load(Ok(cell))) => Ok(load(cell)),
            (Answers::Now(_), Need::Decide(Ok(()))) => Ok(1),
            (Answers::Now(_), need) => Err(need),
        }
    }

    fn decided(&self, e: &Expr) -> Option<i64> {
        self.code.decided_value(self.position, e)
    }

    /// The value of an expression once its accesses are made.
    pub fn value(&mut self, e: &Expr) -> Result<Value, Need> {
        Ok(match &e.kind {
            ExprKind::Int(value) => Ok(*value),
            ExprKind::Place(place) => {
                let name = &place.name.text;
                if let Some(value) = self.code.constant(self.position, name) {
                    return Ok(Ok(value));
                }
                if let Some(r) = self.code.thread.register(name, None) {
                    return Ok(Ok(self.registers[r]));
                }
                if let (Some(indices), Some(index)) = (self.code.thread.array(name), &place.index) {
                    let element = self.element(indices, index)?;
                    self.check(indices, index, element)?;
                    let register = |element| self.code.thread.register(name, Some(element));
                    return Ok(element.map(|e| self.registers[register(e).expect("an element")]));
                }
                let (cell, _) = self.cell(place)?;
                Ok(self.answer(Need::Load(cell))?)
            }
            ExprKind::Unary(op, operand) => {
                let operand = self.value(operand)?;
                operand.and_then(|v| unary(*op, v).ok_or(Trouble::Limit))
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                let decides = *op == BinaryOp::Or;
                if self.code.takes_steps(self.position, right) {
                    let left = match self.decided(left) {
                        Some(value) => value != 0,
                        None => self.truth(left)?,
                    };
                    return Ok(Ok(i64::from(if left == decides { decides } else { self.truth(right)? })));
                }
                match self.value(left)? {
                    Ok(left) if (left != 0) == decides => Ok(i64::from(decides)),
                    Ok(_) => self.value(right)?.map(|right| i64::from(right != 0)),
                    trouble => trouble,
                }
            }
            ExprKind::If(condition, then, otherwise) => {
                let chosen = |holds: bool| if holds { then } else { otherwise };
                if let Some(value) = self.decided(condition) {
                    return self.value(chosen(value != 0));
                }
                if [then, otherwise].into_iter().any(|side| self.code.takes_steps(self.position, side)) {
                    let holds = self.truth(condition)?;
                    // The value of the chosen side is a separate step.
                    return match self.value(chosen(holds))? {
                        Ok(..0) if self.declared.numbers == Numbers::Nat => {
                            Err(Need::Decide(Err(Trouble::Fault)))
                        }
                        Ok(value) => Ok(Ok(value)),
                        Err(trouble) => Err(Need::Decide(Err(trouble))),
                    };
                }
                match self.value(condition)? {
                    Ok(value) => self.value(chosen(value != 0))?,
                    trouble => trouble,
                }
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                match (left, right) {
                    (Ok(a), Ok(b)) => binary(*op, a, b).ok_or(Trouble::Limit).and_then(|v| Ok(v?)),
                    (Err(trouble), _) | (_, Err(trouble)) => Err(trouble),
                }
            }
            ExprKind::Cas(place, old, new) => {
                let (cell, variable) = self.cell(place)?;
                let modification = Modification::Cas(self.value(old)?, self.value(new)?);
                Ok(self.answer(Need::Modify(cell, variable, modification))?)
            }
            ExprKind::Swap(place, value) => {
                let (cell, variable) = self.cell(place)?;
                let modification = Modification::Swap(self.value(value)?);
                Ok(self.answer(Need::Modify(cell, variable, modification))?)
            }
            ExprKind::FetchAdd(place, value) => {
                let (cell, variable) = self.cell(place)?;
                let modification = Modification::FetchAdd(self.value(value)?);
                Ok(self.answer(Need::Modify(cell, variable, modification))?)
            }
            _ => unreachable!("only in formulas"),
        })
    }

    /// The element of an array of registers that an index denotes.
    pub fn element(&mut self, (low, high): Interval, index: &Expr) -> Result<Value, Need> {
        let inside = |index| if low <= index && index <= high { Ok(index) } else { Err(Trouble::Fault) };
        Ok(self.value(index)?.and_then(inside))
    }

    /// The step that checks a computed index.
    pub fn check(&mut self, indices: Interval, index: &Expr, element: Value) -> Result<(), Need> {
        match self.code.is_certain(self.position, indices, index) {
            true => Ok(()),
            false => self.answer(Need::Decide(element.map(|_| ()))).map(|_| ()),
        }
    }

    /// Whether a condition holds. Its parts with accesses are decided one after the other.
    pub fn truth(&mut self, e: &Expr) -> Result<bool, Need> {
        let accesses = self.code.takes_steps(self.position, e);
        match &e.kind {
            ExprKind::Unary(fencewright_program::UnaryOp::Not, operand) if accesses => {
                Ok(!self.truth(operand)?)
            }
            ExprKind::Binary(BinaryOp::And, left, right) if accesses => {
                Ok(self.truth(left)? && self.truth(right)?)
            }
            ExprKind::Binary(BinaryOp::Or, left, right) if accesses => {
                Ok(self.truth(left)? || self.truth(right)?)
            }
            ExprKind::If(condition, then, otherwise) if accesses => {
                let holds = match self.decided(condition) {
                    Some(value) => value != 0,
                    None => self.truth(condition)?,
                };
                self.truth(if holds { then } else { otherwise })
            }
            // The access itself decides the condition, without another step.
            ExprKind::Cas(..) => Ok(self.value(e)? == Ok(1)),
            _ if self.decided(e).is_some() => Ok(self.decided(e) != Some(0)),
            _ => match self.value(e)? {
                Ok(value) => {
                    self.answer(Need::Decide(Ok(())))?;
                    Ok(value != 0)
                }
                Err(trouble) => Err(Need::Decide(Err(trouble))),
            },
        }
    }

    /// The memory cell of a place, and the number of its variable.
    pub fn cell(&mut self, place: &Place) -> Result<(Result<usize, Trouble>, usize), Need> {
        let number = self.declared.shared.iter().position(|s| s.name == place.name.text);
        let number = number.expect("the generator declares what it uses");
        let variable = &self.declared.shared[number];
        let (Some(index), Some((low, high))) = (&place.index, variable.indices) else {
            return Ok((Ok(variable.first), number));
        };
        let cell = match self.value(index)? {
            Ok(index) if low <= index && index <= high => Ok(variable.first + (index - low) as usize),
            Ok(_) if variable.open => Err(Trouble::Limit),
            Ok(_) => Err(Trouble::Fault),
            Err(trouble) => Err(trouble),
        };
        Ok((cell, number))
    }
}
