//! Expressions compiled to short instruction lists over the slots of a packed state.

use fencewright_program::{BinaryOp, EvalError, Expr, UnaryOp};

use super::code::Slot;
use super::layout::Field;

/// A compiled expression. The most frequent forms have variants of their own, which are faster than the stack machine.
pub enum ExprCode {
    /// A constant.
    Const(i64),
    /// The present value of a slot.
    Slot(Slot),
    /// An operator on a slot and a constant.
    SlotConst(BinaryOp, Slot, i64),
    /// Anything else: a program for a stack machine.
    Stack(Box<[Instruction]>),
}

/// An instruction of the stack machine.
pub enum Instruction {
    /// Pushes a constant.
    Const(i64),
    /// Pushes the value of a slot.
    Slot(Slot),
    /// Pushes whether the slot (a program counter) is one of these locations, which are sorted.
    At(Slot, Box<[u64]>),
    /// Applies an operator to the top of the stack.
    Unary(UnaryOp),
    /// Pops two operands and pushes the result.
    Binary(BinaryOp),
    /// Applies an operator to the top, and keeps the low 64 bits of the result.
    LowUnary(UnaryOp),
    /// Pops two operands and pushes the low 64 bits of the result.
    LowBinary(BinaryOp),
    /// If the top is 0, keeps 0 and skips this many instructions; otherwise pops it.
    AndThen(u32),
    /// If the top is not 0, replaces it by 1 and skips this many instructions; otherwise pops it.
    OrElse(u32),
    /// Replaces the top by 0 or 1, its truth value.
    Truth,
    /// Pops the top; if it was 0, skips this many instructions.
    Unless(u32),
    /// Skips this many instructions unconditionally.
    Skip(u32),
}

impl ExprCode {
    /// The value in a packed state; `stack` is scratch space.
    #[inline(always)]
    pub fn eval(&self, slots: &[Field], state: &[u64], stack: &mut Vec<i64>) -> Result<i64, EvalError> {
        match self {
            ExprCode::Const(value) => Ok(*value),
            ExprCode::Slot(slot) => Ok(slots[*slot as usize].get(state)),
            ExprCode::SlotConst(op, slot, constant) => op.apply(slots[*slot as usize].get(state), *constant),
            ExprCode::Stack(instructions) => run(instructions, slots, state, stack),
        }
    }
}

fn run(
    instructions: &[Instruction],
    slots: &[Field],
    state: &[u64],
    stack: &mut Vec<i64>,
) -> Result<i64, EvalError> {
    stack.clear();
    let mut next = 0;
    while let Some(instruction) = instructions.get(next) {
        next += 1;
        match instruction {
            Instruction::Const(value) => stack.push(*value),
            Instruction::Slot(slot) => stack.push(slots[*slot as usize].get(state)),
            Instruction::At(slot, locations) => {
                let location = slots[*slot as usize].raw(state);
                stack.push(locations.binary_search(&location).is_ok() as i64);
            }
            Instruction::Unary(op) => {
                let value = stack.pop().unwrap_or(0);
                stack.push(op.apply(value)?);
            }
            Instruction::Binary(op) => {
                let right = stack.pop().unwrap_or(0);
                let left = stack.pop().unwrap_or(0);
                stack.push(op.apply(left, right)?);
            }
            Instruction::LowUnary(op) => {
                let low = stack.pop().unwrap_or(0);
                stack.push(op.apply_low(low)?);
            }
            Instruction::LowBinary(op) => {
                let right = stack.pop().unwrap_or(0);
                let left = stack.pop().unwrap_or(0);
                stack.push(op.apply_low(left, right)?);
            }
            Instruction::Unless(skip) => {
                if stack.pop() == Some(0) {
                    next += *skip as usize;
                }
            }
            Instruction::Skip(skip) => next += *skip as usize,
            Instruction::AndThen(skip) => match stack.last() {
                Some(0) => next += *skip as usize,
                _ => drop(stack.pop()),
            },
            Instruction::OrElse(skip) => match stack.last_mut() {
                Some(top) if *top != 0 => {
                    *top = 1;
                    next += *skip as usize;
                }
                _ => drop(stack.pop()),
            },
            Instruction::Truth => {
                let value = stack.pop().unwrap_or(0);
                stack.push((value != 0) as i64);
            }
        }
    }
    Ok(stack.pop().unwrap_or(0))
}

/// Compiles an expression; `leaf` compiles its leaves.
pub fn compile<L>(e: &Expr<L>, leaf: &impl Fn(&L) -> Instruction) -> ExprCode {
    if let Some(value) = e.constant() {
        return ExprCode::Const(value);
    }
    match e {
        Expr::Leaf(l) => {
            if let Instruction::Slot(slot) = leaf(l) {
                return ExprCode::Slot(slot);
            }
        }
        Expr::Binary(op, left, right) if !matches!(op, BinaryOp::And | BinaryOp::Or) => {
            if let (Expr::Leaf(l), Some(constant)) = (&**left, right.constant())
                && let Instruction::Slot(slot) = leaf(l)
            {
                return ExprCode::SlotConst(*op, slot, constant);
            }
        }
        _ => {}
    }
    let mut instructions = Vec::new();
    emit(e, false, leaf, &mut instructions);
    ExprCode::Stack(instructions.into())
}

/// Emits instructions that push the value of an expression. With `low`, only its low 64 bits are needed, because the operator that consumes the value
/// wraps around.
fn emit<L>(e: &Expr<L>, low: bool, leaf: &impl Fn(&L) -> Instruction, out: &mut Vec<Instruction>) {
    match e {
        Expr::Const(value) => out.push(Instruction::Const(*value)),
        Expr::Leaf(l) => out.push(leaf(l)),
        Expr::Unary(op, operand) => {
            let low_result = low && *op != UnaryOp::Not;
            emit(operand, low_result || op.wraps(), leaf, out);
            out.push(if low_result { Instruction::LowUnary(*op) } else { Instruction::Unary(*op) });
        }
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            emit(left, false, leaf, out);
            let jump = reserve(out);
            emit(right, false, leaf, out);
            out.push(Instruction::Truth);
            let skip = skipped(jump, out);
            out[jump] = match op {
                BinaryOp::And => Instruction::AndThen(skip),
                _ => Instruction::OrElse(skip),
            };
        }
        Expr::Binary(op, left, right) => {
            let low = low && op.keeps_low_bits();
            emit(left, low, leaf, out);
            emit(right, low && *op != BinaryOp::Shl, leaf, out);
            out.push(if low { Instruction::LowBinary(*op) } else { Instruction::Binary(*op) });
        }
        Expr::If(condition, then, otherwise) => {
            emit(condition, false, leaf, out);
            let to_otherwise = reserve(out);
            emit(then, low, leaf, out);
            let to_end = reserve(out);
            out[to_otherwise] = Instruction::Unless(skipped(to_otherwise, out));
            emit(otherwise, low, leaf, out);
            out[to_end] = Instruction::Skip(skipped(to_end, out));
        }
    }
}

/// Appends a placeholder for a jump whose distance is not known yet, and returns its index.
fn reserve(out: &mut Vec<Instruction>) -> usize {
    out.push(Instruction::Skip(0));
    out.len() - 1
}

/// The number of instructions that a jump at this index must skip to reach the end of the list.
fn skipped(jump: usize, out: &[Instruction]) -> u32 {
    (out.len() - jump - 1) as u32
}
