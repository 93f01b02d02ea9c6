//! Narrows nondeterministic choices whose value is used only modulo a number: `__VERIFIER_nondet_uint() % 4` chooses among four numbers, not among
//! four billion.

use fencewright_program::BinaryOp;
use fencewright_text::Stop;

use crate::core::{Register, Stmt, StmtKind, Value, each_statement};

/// How a register is read: a lattice of height two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    None,
    /// Every read takes the remainder of a division by this number.
    Remainder(i64),
    Other,
}

/// Replaces a choice among natural numbers by a choice among the remainders if every read takes the remainder by the same divisor.
pub(super) fn narrow(code: &mut [Stmt], registers: usize, stop: &Stop<'_>) {
    let mut chosen = false;
    each_statement(code, stop, &mut |statement| chosen |= matches!(statement.kind, StmtKind::Havoc(..)));
    if !chosen {
        return;
    }
    let mut reads = vec![Reads::None; registers];
    each_statement(code, stop, &mut |statement| {
        statement.kind.values(&mut |value| note(value, &mut reads));
    });
    choose(code, &reads, stop);
}

fn note(value: &Value, reads: &mut [Reads]) {
    // `mentions` lists every occurrence of a register in the value; `remainders` lists the occurrences as the dividend of a remainder. Every other
    // occurrence uses the whole number.
    let mut mentions: Vec<Register> = Vec::new();
    let mut remainders: Vec<(Register, i64)> = Vec::new();
    value.each(&mut |part| match part {
        Value::Register(register) => mentions.push(*register),
        Value::Binary(op, a, b) => {
            if let (Value::Register(register), Value::Number(number)) = (&**a, &**b)
                && let Some(divisor) = divisor(*op, *number)
            {
                remainders.push((*register, divisor));
            }
        }
        _ => {}
    });
    for register in mentions {
        let known = &mut reads[register.0 as usize];
        let by = remainders.iter().position(|(other, _)| *other == register);
        let by = by.map(|n| remainders.swap_remove(n).1);
        *known = match (*known, by) {
            (Reads::None, Some(divisor)) => Reads::Remainder(divisor),
            (Reads::Remainder(before), Some(divisor)) if before == divisor => *known,
            _ => Reads::Other,
        };
    }
}

/// The divisor, if the operation computes, for natural numbers, the remainder of a division. For negative numbers `%` and a mask differ, but
/// [`choose`] does not narrow choices that include negative numbers.
fn divisor(op: BinaryOp, number: i64) -> Option<i64> {
    match op {
        BinaryOp::Rem if number > 0 => Some(number),
        BinaryOp::BitAnd if number >= 0 => number.checked_add(1).filter(|divisor| divisor & number == 0),
        _ => None,
    }
}

fn choose(code: &mut [Stmt], reads: &[Reads], stop: &Stop<'_>) {
    for statement in stop.polled(code) {
        if let StmtKind::Havoc(register, least, greatest) = &mut statement.kind {
            if let Reads::Remainder(divisor) = reads[register.0 as usize]
                && *least >= 0
                // The range is large enough to contain a number with each remainder.
                && *greatest - *least >= divisor - 1
            {
                (*least, *greatest) = (0, divisor - 1);
            }
        } else {
            statement.kind.blocks_mut().for_each(|block| choose(block, reads, stop));
        }
    }
}
