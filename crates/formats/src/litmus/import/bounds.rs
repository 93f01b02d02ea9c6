//! An upper bound on the values of a litmus test.
//!
//! Most tests move a few small constants around. If no arithmetic instruction is in a loop, each one runs at most once, and the constants of the test
//! bound all values. If this bound fits the width of every access, nothing wraps around, and the program can compute with plain integers.

use fencewright_program::BinaryOp;

use super::Test;
use super::mnemonic::Action;
use super::parse::{Instruction, Operand};
use super::types::{Part, RegisterPart, reduce};

/// Bounds of all values that registers and locations ever hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// An upper bound on the magnitude of all values; `None` if no bound is known, for example if values grow in a loop or are composed of parts of
    /// registers.
    magnitude: Option<u128>,
    /// Whether some value may be negative.
    negative: bool,
}

impl Bounds {
    /// Whether all values, and the sums and differences of two of them, fit in `bits` bits.
    pub(super) fn fit(self, bits: u32) -> bool {
        self.magnitude.is_some_and(|m| m.saturating_mul(2) < 1 << (bits - 1))
    }

    /// Whether all values fit in `bits` bits and none is negative, so that the signed and the unsigned interpretation agree.
    pub(super) fn fit_and_positive(self, bits: u32) -> bool {
        self.fit(bits) && !self.negative
    }

    /// Computes the bounds from all constants and instructions of a test.
    pub(super) fn of(test: &Test, code: &[Vec<Instruction<'_>>]) -> Bounds {
        let mut bounds = Collector {
            start: 0,
            added: 0,
            doubled: 0,
            narrowest: 64,
            negative: false,
            extends: false,
            unknown: false,
        };
        for location in &test.locations {
            bounds.constant(location.initial());
        }
        for register in test.threads.iter().flat_map(|t| &t.registers) {
            bounds.constant(register.initial());
        }
        for (thread, instructions) in code.iter().enumerate() {
            let whole = |part: RegisterPart| test.threads[thread].register(part.family).bits();
            for (instruction, in_loop) in instructions.iter().zip(in_loops(instructions)) {
                bounds.instruction(instruction, in_loop);
                for part in writes(instruction).filter(|part| part.bits() < whole(*part)) {
                    match part.part {
                        Part::Low(32) => bounds.extends = true,
                        _ => bounds.unknown = true,
                    }
                }
            }
        }
        bounds.finish()
    }
}

struct Collector {
    start: u128,
    /// Upper bound on the amount that all operations together add to a magnitude: the magnitude of each constant that is added or subtracted, and 1
    /// for each INC, DEC, bitwise operation, negation and inversion.
    added: u128,
    /// The number of instructions that may double the largest value.
    doubled: u32,
    /// The smallest width of an instruction with operands, or of the source of an extension.
    narrowest: u32,
    negative: bool,
    /// Whether some instruction may extend a value with zeros, which turns a negative number into a large positive one.
    extends: bool,
    unknown: bool,
}

impl Collector {
    fn constant(&mut self, value: i64) {
        self.start = self.start.max(value.unsigned_abs().into());
        self.negative |= value < 0;
    }

    fn instruction(&mut self, instruction: &Instruction<'_>, in_loop: bool) {
        let mut immediate = None;
        for operand in &instruction.operands {
            if let Operand::Immediate(value) = operand {
                let value = reduce(*value, instruction.bits);
                self.constant(value);
                immediate = Some(value);
            }
        }
        if !instruction.operands.is_empty() {
            self.narrowest = self.narrowest.min(instruction.bits);
        }
        let growing = match instruction.action {
            Action::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => {
                match immediate {
                    Some(value) => self.added = self.added.saturating_add(value.unsigned_abs().into()),
                    None => self.doubled = self.doubled.saturating_add(1),
                }
                self.negative |= op == BinaryOp::Sub;
                true
            }
            Action::Count(op) => {
                self.added += 1;
                self.negative |= op == BinaryOp::Sub;
                true
            }
            // The result of a bitwise operation has no more bits than the larger operand, so it is less than twice that operand.
            Action::Binary(_) => {
                self.added += 1;
                self.doubled = self.doubled.saturating_add(1);
                true
            }
            Action::ExchangeAdd => {
                self.doubled = self.doubled.saturating_add(1);
                true
            }
            Action::Negate | Action::Invert => {
                self.added += 1;
                self.negative = true;
                true
            }
            Action::Extend { from, .. } => {
                self.narrowest = self.narrowest.min(from);
                self.extends = true;
                false
            }
            Action::Set(_) => {
                self.start = self.start.max(1);
                false
            }
            _ => false,
        };
        self.unknown |= growing && in_loop;
    }

    /// The bounds. The largest value arises if all additions precede all doublings.
    fn finish(self) -> Bounds {
        let most = self.start.saturating_add(self.added);
        let magnitude = most.checked_shl(self.doubled).filter(|m| m >> self.doubled == most);
        let mut bounds = Bounds { magnitude, negative: self.negative };
        // A value that does not fit is truncated, and its highest remaining bit becomes the sign. So a value may become negative.
        bounds.negative |= !bounds.fit(self.narrowest);
        let unknown = self.unknown || self.extends && bounds.negative;
        Bounds { magnitude: magnitude.filter(|_| !unknown), ..bounds }
    }
}

/// The parts of registers that an instruction writes.
fn writes<'i>(instruction: &'i Instruction<'_>) -> impl Iterator<Item = RegisterPart> + 'i {
    let written = match instruction.action {
        Action::Exchange | Action::ExchangeAdd => 2,
        Action::Compare
        | Action::Test
        | Action::CompareExchange
        | Action::Fence
        | Action::StoreFence
        | Action::Nothing
        | Action::Stop
        | Action::Jump(_) => 0,
        _ => 1,
    };
    let accumulator =
        (instruction.action == Action::CompareExchange).then(|| RegisterPart::accumulator(instruction.bits));
    let operands = instruction.operands.iter().take(written).filter_map(|o| match o {
        Operand::Register(part) => Some(*part),
        _ => None,
    });
    operands.chain(accumulator)
}

/// For each instruction, whether it lies in a loop, that is, between the target of a backward jump and the jump.
fn in_loops(code: &[Instruction<'_>]) -> Vec<bool> {
    let mut labels = std::collections::HashMap::new();
    for (number, instruction) in code.iter().enumerate() {
        labels.extend(instruction.labels.iter().map(|l| (l.text, number)));
    }
    // For each instruction, the number of loops that start there minus the number that end directly before it.
    let mut change = vec![0_i64; code.len() + 1];
    for (number, instruction) in code.iter().enumerate() {
        if let Some(target) = instruction.label.and_then(|l| labels.get(l.text)).filter(|t| **t <= number) {
            change[*target] += 1;
            change[number + 1] -= 1;
        }
    }
    let mut depth = 0;
    change[..code.len()]
        .iter()
        .map(|c| {
            depth += c;
            depth > 0
        })
        .collect()
}
