//! Instructions that compute a value and set the flags.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::assembly::ConstraintKind;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Type, TypeKind};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::super::objects::Target;
use super::super::super::{Elaborator, Result};
use super::super::atomics::Modify;
use super::flags::{Carry, Computed, Flags, How};
use super::mnemonics::{Binary, Bit, Unary};
use super::reader::{Argument, Instruction};
use super::{Content, Run, integer, unqualified};

/// A computation of a new value from an old one; the fields are the remaining operands.
#[derive(Clone, Debug)]
enum Operation {
    /// An addition, a subtraction, or a bitwise operation.
    Modify(Modify, Operand),
    /// `old + by + carry`.
    AddWithCarry(Operand, Operand),
    /// `old - by - carry`.
    SubWithBorrow(Operand, Operand),
    Negate,
    Not,
}

impl Elaborator<'_> {
    /// The result of an operation, in the type of the old value.
    fn operated_on(&mut self, ty: &Type, operation: Operation, old: Operand, span: Span) -> Result<Operand> {
        if let Operation::Modify(modify, by) = operation {
            return self.modified(ty, modify, old, by, span);
        }
        let unsigned = integer(self.size(ty), false);
        let TypeKind::Integer(arithmetic) = unsigned.kind else { unreachable!("it is an integer") };
        let old = self.cast(old, ty, &unsigned, span)?;
        let wrapping = |op, a, b| numbers::wrapping(op, arithmetic, a, b);
        let new = match operation {
            Operation::AddWithCarry(by, carry) => {
                wrapping(Operator::Add, wrapping(Operator::Add, old, by), carry)
            }
            Operation::SubWithBorrow(by, carry) => {
                wrapping(Operator::Subtract, wrapping(Operator::Subtract, old, by), carry)
            }
            Operation::Negate => wrapping(Operator::Subtract, Operand::number(0), old),
            _ => wrapping(Operator::BitXor, old, Operand::number(arithmetic.greatest())),
        };
        self.cast(new, &unsigned, ty, span)
    }
}

impl Run<'_, '_, '_> {
    /// Records a computation as the one that sets all flags.
    pub(super) fn computed_by(
        &mut self,
        how: How,
        a: Content,
        b: Content,
        result: Option<Content>,
        bytes: u64,
    ) {
        self.flags = Flags { carry: Carry::Computed, others: Some(Computed { how, a, b, result, bytes }) };
    }

    /// Applies an operation to an object: in one atomic step if the instruction is locked, otherwise by a load and a store. For a register (`target`
    /// is `None`), computes the new value without writing it. Returns the old and the new value.
    fn replaced(
        &mut self,
        target: Option<&Target>,
        to: &Argument,
        instruction: &Instruction,
        bytes: u64,
        operation: impl Fn(&mut Self, &Type) -> Result<Operation>,
    ) -> Result<(Content, Content)> {
        let span = self.span;
        let Some(target) = target else {
            let ty = integer(bytes, false);
            let old = self.read(to, bytes)?;
            let operand = self.converted(old, &ty)?;
            let operation = operation(self, &ty)?;
            let new = self.elaborator.operated_on(&ty, operation, operand.clone(), span)?;
            return Ok((Content { operand, ty: ty.clone() }, Content { operand: new, ty }));
        };
        let mut ty = unqualified(&target.ty);
        let mut target = target.clone();
        let mut computed = operation(self, &integer(bytes, false))?;
        if matches!(ty.kind, TypeKind::Pointer(_)) {
            match self.steps(&ty, &computed) {
                Some(steps) => computed = steps,
                // For any other operation, the pointer is treated as a number.
                None => {
                    ty = integer(bytes, false);
                    target.ty = ty.clone();
                }
            }
        } else {
            computed = operation(self, &ty)?;
        }
        let (old, new) = match instruction.locked {
            true => {
                let inside = (ty.clone(), computed.clone());
                let old = self.elaborator.update(
                    &target,
                    |this, old| Ok((None, this.operated_on(&inside.0, inside.1, old.clone(), span)?)),
                    span,
                )?;
                let new = self.elaborator.operated_on(&ty, computed, old.clone(), span)?;
                (old, new)
            }
            false => {
                let old = self.load(&target)?.operand;
                let new = self.elaborator.operated_on(&ty, computed, old.clone(), span)?;
                self.elaborator.write(&target, new.clone(), span)?;
                (old, new)
            }
        };
        Ok((Content { operand: old, ty: ty.clone() }, Content { operand: new, ty }))
    }

    /// If an operation adds a constant number of bytes to a pointer or subtracts it, the same operation with the number in elements. `None` for other
    /// operations, and if the number is not a multiple of the element size.
    fn steps(&self, ty: &Type, operation: &Operation) -> Option<Operation> {
        let (TypeKind::Pointer(to), Operation::Modify(modify @ (Modify::Add | Modify::Sub), by)) =
            (&ty.kind, operation)
        else {
            return None;
        };
        let by = by.known()?;
        let by = if by > i64::MAX.into() { by - (1 << 64) } else { by };
        let size = i128::from(self.elaborator.size(to).max(1));
        (by % size == 0).then(|| Operation::Modify(*modify, Operand::number(by / size)))
    }

    pub(super) fn exchange_add(
        &mut self,
        instruction: &Instruction,
        from: &Argument,
        to: &Argument,
    ) -> Result<()> {
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        let by = self.read(from, bytes)?;
        if self.register(from)?.is_none() {
            return self.refuse("the first operand is not a register");
        }
        let target = self.modified(to, bytes, instruction.locked)?;
        let (old, new) = self.replaced(target.as_ref(), to, instruction, bytes, |run, ty| {
            Ok(Operation::Modify(Modify::Add, run.converted(by.clone(), ty)?))
        })?;
        self.computed_by(How::Sum, old.clone(), by, Some(new.clone()), bytes);
        // The sum is written last: if both operands are the same register, the register holds the sum afterwards.
        self.write_register(from, old)?;
        match target {
            Some(_) => Ok(()),
            None => self.write_register(to, new),
        }
    }

    pub(super) fn binary(
        &mut self,
        instruction: &Instruction,
        binary: Binary,
        by: &Argument,
        to: &Argument,
    ) -> Result<()> {
        self.one_object(by, to)?;
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        let target = self.modified(to, bytes, instruction.locked)?;
        let registers = (self.register(by)?, self.register(to)?);
        let same = target.is_none() && registers.0.is_some() && registers.0 == registers.1;
        let carry = match binary {
            Binary::AddWithCarry | Binary::SubWithBorrow => self.carry()?,
            _ => Operand::number(0),
        };
        if same && matches!(binary, Binary::Sub | Binary::Xor | Binary::SubWithBorrow) {
            return self.with_itself(binary, carry, to, bytes);
        }
        let value = self.source(by, bytes)?;
        let (old, new) = self.replaced(target.as_ref(), to, instruction, bytes, |run, ty| {
            let by = run.converted(value.clone(), ty)?;
            Ok(match binary {
                Binary::Add => Operation::Modify(Modify::Add, by),
                Binary::Sub => Operation::Modify(Modify::Sub, by),
                Binary::And => Operation::Modify(Modify::And, by),
                Binary::Or => Operation::Modify(Modify::Or, by),
                Binary::Xor => Operation::Modify(Modify::Xor, by),
                Binary::AddWithCarry => {
                    Operation::AddWithCarry(run.converted_to(&value, bytes, false)?, carry.clone())
                }
                Binary::SubWithBorrow => {
                    Operation::SubWithBorrow(run.converted_to(&value, bytes, false)?, carry.clone())
                }
            })
        })?;
        let how = match binary {
            Binary::Add => How::Sum,
            Binary::Sub => How::Difference,
            Binary::And | Binary::Or | Binary::Xor => How::Bits,
            Binary::AddWithCarry => How::SumAndCarry,
            Binary::SubWithBorrow => How::DifferenceAndBorrow,
        };
        self.computed_by(how, old.clone(), value.clone(), Some(new.clone()), bytes);
        if matches!(binary, Binary::AddWithCarry | Binary::SubWithBorrow) {
            let a = self.converted_to(&old, bytes, false)?;
            let other = if binary == Binary::AddWithCarry { &new } else { &value };
            let b = self.converted_to(other, bytes, false)?;
            // An addition carries if the sum is less than `a` or, with a carry in, at most `a`. A subtraction borrows if `a` is less than `b` or,
            // with a borrow in, at most `b`.
            let (low, high) = if binary == Binary::AddWithCarry { (b, a) } else { (a, b) };
            let less = numbers::compare(Operator::Less, low.clone(), high.clone());
            let equal = numbers::compare(Operator::LessOrEqual, low, high);
            self.flags.carry = Carry::Value(numbers::choose(carry, equal, less));
        }
        match target {
            Some(_) => Ok(()),
            None => self.write_register(to, new),
        }
    }

    /// `sub`, `xor` and `sbb` of a register with itself: the result does not depend on the register, which may be undefined.
    fn with_itself(&mut self, binary: Binary, carry: Operand, to: &Argument, bytes: u64) -> Result<()> {
        let ty = integer(bytes, false);
        let zero = Content { operand: Operand::number(0), ty: ty.clone() };
        let (how, operand) = match binary {
            Binary::SubWithBorrow => {
                let operation = Operation::SubWithBorrow(Operand::number(0), carry.clone());
                let operand = self.elaborator.operated_on(&ty, operation, Operand::number(0), self.span)?;
                (How::DifferenceAndBorrow, operand)
            }
            Binary::Sub => (How::Difference, Operand::number(0)),
            _ => (How::Bits, Operand::number(0)),
        };
        let result = Content { operand, ty };
        self.computed_by(how, zero.clone(), zero, Some(result.clone()), bytes);
        if binary == Binary::SubWithBorrow {
            self.flags.carry = Carry::Value(carry);
        }
        self.write_register(to, result)
    }

    /// `cmp` and `test`.
    pub(super) fn compare(
        &mut self,
        instruction: &Instruction,
        binary: Binary,
        by: &Argument,
        to: &Argument,
    ) -> Result<()> {
        self.one_object(by, to)?;
        if matches!(to, Argument::Immediate(_)) {
            return self.refuse("the second operand cannot be a constant");
        }
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        let same = by == to;
        let b = self.source(by, bytes)?;
        let a = if same { b.clone() } else { self.source(to, bytes)? };
        if binary == Binary::Sub {
            self.computed_by(How::Difference, a, b, None, bytes);
            return Ok(());
        }
        let result = match same {
            true => a.clone(),
            false => {
                let (x, y) = (self.converted_to(&a, bytes, false)?, self.converted_to(&b, bytes, false)?);
                let ty = integer(bytes, false);
                Content { operand: numbers::wrapping(Operator::BitAnd, arithmetic(&ty), x, y), ty }
            }
        };
        self.computed_by(How::Bits, a, b, Some(result), bytes);
        Ok(())
    }

    pub(super) fn unary(&mut self, instruction: &Instruction, unary: Unary, to: &Argument) -> Result<()> {
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        let target = self.modified(to, bytes, instruction.locked)?;
        let one = Operand::number(1);
        let (old, new) = self.replaced(target.as_ref(), to, instruction, bytes, |_, _| {
            Ok(match unary {
                Unary::Increment => Operation::Modify(Modify::Add, one.clone()),
                Unary::Decrement => Operation::Modify(Modify::Sub, one.clone()),
                Unary::Negate => Operation::Negate,
                Unary::Not => Operation::Not,
            })
        })?;
        let number = |number| Content { operand: Operand::number(number), ty: integer(bytes, false) };
        let result = Some(new.clone());
        match unary {
            Unary::Increment | Unary::Decrement => {
                // `inc` and `dec` do not change the carry flag.
                let carry = match self.flags.carry {
                    Carry::Undefined => Carry::Undefined,
                    _ => Carry::Value(self.carry()?),
                };
                let how = if unary == Unary::Increment { How::Sum } else { How::Difference };
                self.computed_by(how, old, number(1), result, bytes);
                self.flags.carry = carry;
            }
            Unary::Negate => self.computed_by(How::Difference, number(0), old, result, bytes),
            Unary::Not => {}
        }
        match target {
            Some(_) => Ok(()),
            None => self.write_register(to, new),
        }
    }

    /// `bt`, `bts`, `btr` and `btc`: the carry flag becomes the old value of the bit.
    pub(super) fn bit(
        &mut self,
        instruction: &Instruction,
        bit: Bit,
        number: &Argument,
        to: &Argument,
    ) -> Result<()> {
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        if bytes == 1 {
            return self.refuse("there is no operation on a bit of one byte");
        }
        if self.is_object(number)? {
            return self.refuse("the number of the bit is in memory");
        }
        let written = bit != Bit::Test;
        let target = match written {
            true => self.modified(to, bytes, instruction.locked)?,
            false => {
                self.has_value(to)?;
                self.object(to, bytes)?
            }
        };
        let (ty, bits) = (integer(bytes, false), 8 * i128::from(bytes));
        let unsigned = arithmetic(&ty);
        let chosen = match number {
            Argument::Immediate(number) => {
                Content { operand: Operand::number(number & (bits - 1)), ty: ty.clone() }
            }
            _ => self.read(number, bytes)?,
        };
        let target = match target {
            Some(target) => Some(self.word_of_bit(target, number, &chosen, bytes)?),
            None => None,
        };
        let chosen = self.converted_to(&chosen, bytes, false)?;
        let index = numbers::wrapping(Operator::BitAnd, unsigned, chosen, Operand::number(bits - 1));
        let mask = numbers::binary(self.elaborator, Operator::ShiftLeft, unsigned, Operand::number(1), index);
        let mask = self.elaborator.kept_value(mask, &ty, self.span)?;
        let old = if written {
            let (old, new) = self.replaced(target.as_ref(), to, instruction, bytes, |run, ty| {
                let mask = match bit {
                    Bit::Reset => numbers::wrapping(
                        Operator::BitXor,
                        unsigned,
                        mask.clone(),
                        Operand::number(unsigned.greatest()),
                    ),
                    _ => mask.clone(),
                };
                let mask = run.converted(Content { operand: mask, ty: integer(bytes, false) }, ty)?;
                Ok(match bit {
                    Bit::Reset => Operation::Modify(Modify::And, mask),
                    Bit::Complement => Operation::Modify(Modify::Xor, mask),
                    Bit::Set | Bit::Test => Operation::Modify(Modify::Or, mask),
                })
            })?;
            if target.is_none() {
                self.write_register(to, new)?;
            }
            old
        } else {
            match &target {
                Some(target) => self.load(target)?,
                None => self.read(to, bytes)?,
            }
        };
        let old = self.converted_to(&old, bytes, false)?;
        let carry = numbers::truth(numbers::wrapping(Operator::BitAnd, unsigned, old, mask));
        self.flags = Flags { carry: Carry::Value(carry), others: None };
        Ok(())
    }

    /// The word of memory that contains a bit. A bit number in a register counts from the start of the object, and may select a word before or after
    /// the object's own. A constant bit number is taken modulo the number of bits of the operand.
    fn word_of_bit(
        &mut self,
        target: Target,
        number: &Argument,
        chosen: &Content,
        bytes: u64,
    ) -> Result<Target> {
        let bits = 8 * i128::from(bytes);
        let offset = self.converted_to(chosen, bytes, true)?;
        if offset.range.0 >= 0 && offset.range.1 < bits {
            return Ok(target);
        }
        if let Argument::Operand(operand, _) = number
            && let Some((constraint, _)) =
                operand.checked_sub(self.assembly.outputs.len()).and_then(|n| self.assembly.inputs.get(n))
        {
            match &constraint.kind {
                ConstraintKind::Immediate(_) => return Ok(target),
                // For a constant in this range, the compiler may choose an immediate operand or a register. If the bit is not in the first word,
                // these two select different bits.
                ConstraintKind::Register(_, Some((low, high))) if *low < 0 || *high >= bits => {
                    return self.refuse(format!(
                        "the constraint `{constraint}` lets the compiler choose whether the bit is in the first word: use \"Ir\" or \"r\""
                    ));
                }
                _ => {}
            }
        }
        let long = arithmetic(&integer(8, true));
        let size = Operand::number(bits.ilog2().into());
        let word = numbers::binary(self.elaborator, Operator::ShiftRight, long, offset, size);
        let address = self.elaborator.address(&target, self.span)?;
        let ty = unqualified(&target.ty);
        let moved = self.elaborator.moved(address, word, &ty, self.span)?;
        Ok(self.elaborator.pointed(&moved, &ty, self.span)?.accessed(target.access))
    }
}

/// The arithmetic of a type that is known to be an integer type.
fn arithmetic(ty: &Type) -> Arithmetic {
    match ty.kind {
        TypeKind::Integer(arithmetic) => arithmetic,
        _ => unreachable!("the type is an integer"),
    }
}
