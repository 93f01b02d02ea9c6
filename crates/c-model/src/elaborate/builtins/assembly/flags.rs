//! The flags of the processor, as data between the instructions of one statement.
//!
//! Most instructions only record their computation. A condition is computed from this record where an instruction or an output needs it, so unused
//! flags cost nothing. The flags at the start of a statement are undefined, and so are those that the processor manuals leave undefined.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::assembly::{Condition, Test};
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::TypeKind;
use fencewright_code::numbers::{self, Operand};

use super::super::super::Result;
use super::super::bits;
use super::{Content, Run, integer};

/// How each flag follows from the instructions so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags {
    pub carry: Carry,
    /// The computation that set the zero, sign, overflow and parity flags; `None` if they are undefined.
    pub others: Option<Computed>,
}

/// The carry flag.
#[derive(Clone, Debug, Default)]
pub(super) enum Carry {
    #[default]
    Undefined,
    /// The carry is this truth value.
    Value(Operand),
    /// The carry follows from the computation in [`Flags::others`].
    Computed,
}

/// A computation that sets flags: its operands and its result, all of the size `bytes`.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    pub how: How,
    pub a: Content,
    pub b: Content,
    /// The result; `None` for `cmp` and `cmpxchg`, which do not write it.
    pub result: Option<Content>,
    pub bytes: u64,
}

/// How the result of a computation follows from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// `a + b`.
    Sum,
    /// `a - b`.
    Difference,
    /// `a + b + carry`.
    SumAndCarry,
    /// `a - b - carry`.
    DifferenceAndBorrow,
    /// A bitwise operation.
    Bits,
}

/// `(old & mask) | low`.
pub(super) fn merged(ty: Arithmetic, old: Operand, mask: Operand, low: Operand) -> Operand {
    let kept = numbers::wrapping(Operator::BitAnd, ty, old, mask);
    numbers::wrapping(Operator::BitOr, ty, kept, low)
}

impl Run<'_, '_, '_> {
    /// The truth value of a condition.
    pub(super) fn condition(&mut self, condition: Condition) -> Result<Operand> {
        let truth = self.test(condition.test)?;
        Ok(if condition.negated { numbers::not(truth) } else { truth })
    }

    fn test(&mut self, test: Test) -> Result<Operand> {
        match test {
            Test::Below => self.carry(),
            Test::Equal => {
                let computed = self.computed()?;
                self.zero(&computed)
            }
            Test::BelowOrEqual => match (&self.flags.carry, &self.flags.others) {
                (Carry::Computed, Some(computed)) if computed.how == How::Difference => {
                    let computed = computed.clone();
                    self.compared(Operator::LessOrEqual, &computed, false)
                }
                _ => {
                    let carry = self.carry()?;
                    let computed = self.computed()?;
                    let zero = self.zero(&computed)?;
                    Ok(self.either(carry, zero))
                }
            },
            Test::Sign => {
                let computed = self.computed()?;
                let result = self.result(&computed)?;
                self.negative(&result, computed.bytes)
            }
            Test::Overflow => {
                let computed = self.computed()?;
                self.overflow(&computed)
            }
            Test::Parity => {
                let computed = self.computed()?;
                let result = self.result(&computed)?;
                let low = self.converted_to(&result, 1, false)?;
                let odd = bits::counted(bits::Operation::Parity, &low.value, 8);
                Ok(numbers::not(match low.known() {
                    Some(known) => Operand::number((known.count_ones() % 2).into()),
                    None => odd,
                }))
            }
            Test::Less => {
                let computed = self.computed()?;
                self.less(&computed)
            }
            Test::LessOrEqual => {
                let computed = self.computed()?;
                if computed.how == How::Difference {
                    return self.compared(Operator::LessOrEqual, &computed, true);
                }
                let (less, zero) = (self.less(&computed)?, self.zero(&computed)?);
                Ok(self.either(less, zero))
            }
        }
    }

    /// The computation that set the flags other than the carry; an error if they are undefined.
    fn computed(&self) -> Result<Computed> {
        match &self.flags.others {
            Some(computed) => Ok(computed.clone()),
            None => self.refuse("a condition is used that no instruction before it defines"),
        }
    }

    /// The value of the carry flag; an error if it is undefined.
    pub(super) fn carry(&mut self) -> Result<Operand> {
        let computed = match (&self.flags.carry, &self.flags.others) {
            (Carry::Value(carry), _) => return Ok(carry.clone()),
            (Carry::Computed, Some(computed)) => computed.clone(),
            _ => return self.refuse("the carry is used, but no instruction before it defines the carry"),
        };
        match computed.how {
            How::Bits => Ok(Operand::number(0)),
            How::Difference => self.compared(Operator::Less, &computed, false),
            How::Sum => {
                let a = self.converted_to(&computed.a, computed.bytes, false)?;
                let result = self.result(&computed)?;
                let result = self.converted_to(&result, computed.bytes, false)?;
                Ok(numbers::compare(Operator::Less, result, a))
            }
            How::SumAndCarry | How::DifferenceAndBorrow => {
                self.refuse("the carry of this computation is not known")
            }
        }
    }

    fn result(&mut self, computed: &Computed) -> Result<Content> {
        if let Some(result) = &computed.result {
            return Ok(result.clone());
        }
        let ty = integer(computed.bytes, false);
        let TypeKind::Integer(arithmetic) = ty.kind else { unreachable!("it is an integer") };
        let a = self.converted_to(&computed.a, computed.bytes, false)?;
        let b = self.converted_to(&computed.b, computed.bytes, false)?;
        Ok(Content { operand: numbers::wrapping(Operator::Subtract, arithmetic, a, b), ty })
    }

    /// Whether the result is zero. For a difference, compares the operands instead.
    fn zero(&mut self, computed: &Computed) -> Result<Operand> {
        if computed.how != How::Difference {
            let result = self.result(computed)?;
            return Ok(numbers::not(numbers::truth(result.operand)));
        }
        let (a, b) = (computed.a.clone(), computed.b.clone());
        let pointer = |content: &Content| matches!(content.ty.kind, TypeKind::Pointer(_));
        let ty = match (pointer(&a), pointer(&b)) {
            (true, _) => a.ty.clone(),
            (false, true) => b.ty.clone(),
            _ => integer(computed.bytes, false),
        };
        let (a, b) = (self.converted(a, &ty)?, self.converted(b, &ty)?);
        self.elaborator.same(&ty, a, b, self.span)
    }

    /// Compares the operands of a difference.
    fn compared(&mut self, op: Operator, computed: &Computed, signed: bool) -> Result<Operand> {
        let a = self.converted_to(&computed.a, computed.bytes, signed)?;
        let b = self.converted_to(&computed.b, computed.bytes, signed)?;
        Ok(numbers::compare(op, a, b))
    }

    /// The condition `l`: the sign flag differs from the overflow flag, that is, the exact signed result is negative.
    fn less(&mut self, computed: &Computed) -> Result<Operand> {
        match computed.how {
            How::Difference => self.compared(Operator::Less, computed, true),
            How::Bits => {
                let result = self.result(computed)?;
                self.negative(&result, computed.bytes)
            }
            _ => {
                let result = self.result(computed)?;
                let sign = self.negative(&result, computed.bytes)?;
                let overflow = self.overflow(computed)?;
                Ok(numbers::compare(Operator::NotEqual, sign, overflow))
            }
        }
    }

    /// The overflow flag: the exact signed result does not fit into the operand size.
    fn overflow(&mut self, computed: &Computed) -> Result<Operand> {
        let differ = match computed.how {
            How::Bits => return Ok(Operand::number(0)),
            How::Sum | How::SumAndCarry => false,
            How::Difference | How::DifferenceAndBorrow => true,
        };
        let bytes = computed.bytes;
        let a = self.negative(&computed.a, bytes)?;
        let b = self.negative(&computed.b, bytes)?;
        let result = self.result(computed)?;
        let result = self.negative(&result, bytes)?;
        // A sum overflows only if the operands have the same sign, a difference only if their signs differ.
        let may = numbers::compare(if differ { Operator::NotEqual } else { Operator::Equal }, a.clone(), b);
        let changed = numbers::compare(Operator::NotEqual, a, result);
        Ok(numbers::binary(self.elaborator, Operator::And, Arithmetic::INT, may, changed))
    }

    fn negative(&mut self, content: &Content, bytes: u64) -> Result<Operand> {
        let value = self.converted_to(content, bytes, true)?;
        Ok(numbers::compare(Operator::Less, value, Operand::number(0)))
    }

    fn either(&mut self, a: Operand, b: Operand) -> Operand {
        numbers::binary(self.elaborator, Operator::Or, Arithmetic::INT, a, b)
    }

    /// A value converted to an integer type of this size and signedness.
    pub(super) fn converted_to(&mut self, content: &Content, bytes: u64, signed: bool) -> Result<Operand> {
        self.converted(content.clone(), &integer(bytes, signed))
    }
}
