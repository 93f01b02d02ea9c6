//! Facts about operations that follow from their text and the values of the registers.

use fencewright_program::{Action, Address, Expr, Op, Program, RegisterId, UnaryOp};

/// All combinations of values for the `*`s with a range among these operations.
pub(super) fn choices(ops: &[Op]) -> Vec<Vec<i64>> {
    let mut choices = vec![Vec::new()];
    for op in ops {
        let Op::Havoc(_, Some(range)) = op else { continue };
        // A `*` with an empty range disables the event, unless an earlier operation faults. So the event is tried with values for the earlier `*`
        // only.
        if range.low > range.high {
            break;
        }
        let longer = |prefix: &Vec<i64>| {
            (range.low..=range.high).map(|v| [prefix.as_slice(), &[v]].concat()).collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    choices
}

/// Whether an operation can disable its step: an `assume`, or a `*` with an empty range. A `*` without a range counts as well.
pub(super) fn may_refuse(op: &Op) -> bool {
    match op {
        Op::Assume(_) => true,
        Op::Havoc(_, range) => range.is_none_or(|range| range.low > range.high),
        Op::Skip | Op::Assign(..) | Op::Assert(..) | Op::Load(..) | Op::Store(..) => false,
    }
}

/// The register that an operation writes, if any.
pub(super) fn written(op: &Op) -> Option<RegisterId> {
    match op {
        Op::Assign(r, _) | Op::Havoc(r, _) | Op::Load(r, _) => Some(*r),
        Op::Skip | Op::Assume(_) | Op::Assert(..) | Op::Store(..) => None,
    }
}

/// The cells that an address can denote if the `changed` registers may have any value and the others have the values `registers`.
pub(super) fn possible_cells(
    program: &Program,
    address: &Address,
    registers: &[i64],
    changed: &[RegisterId],
) -> std::ops::Range<u32> {
    let variable = &program.variables[address.variable.index()];
    let (Some(index), Some(range)) = (&address.index, variable.indices) else {
        return variable.base..variable.base + 1;
    };
    let mut is_fixed = true;
    index.for_each_leaf(&mut |r| is_fixed &= !changed.contains(r));
    let all = variable.cells();
    match index.eval(&mut |r| registers[r.index()]) {
        _ if !is_fixed => all.start as u32..all.end as u32,
        Ok(index) if range.contains(index) => {
            let cell = variable.base + (index - range.low) as u32;
            cell..cell + 1
        }
        // The access is out of bounds or its index cannot be computed, so it reaches no cell.
        Ok(_) | Err(_) => 0..0,
    }
}

/// Whether two atomic steps have the form of the two outcomes of one test, such as success and failure of `cas`, so that exactly one is enabled in
/// every memory, or both if the operations up to the test fault.
pub(super) fn are_outcomes(one: &Action, other: &Action) -> bool {
    let (Action::Atomic { ops: one, drains: true }, Action::Atomic { ops: other, drains: true }) =
        (one, other)
    else {
        return false;
    };
    let refusals = |ops: &[Op]| ops.iter().filter(|op| may_refuse(op)).count();
    let differ = one.iter().zip(other).position(|(a, b)| a != b);
    let Some((Op::Assume(a), Op::Assume(b))) = differ.map(|n| (&one[n], &other[n])) else { return false };
    refusals(one) == 1 && refusals(other) == 1 && are_complementary(a, b)
}

/// Whether the form of two conditions shows that exactly one of them holds, unless they cannot be computed.
fn are_complementary(a: &Expr<RegisterId>, b: &Expr<RegisterId>) -> bool {
    let negates = |a: &Expr<RegisterId>, b: &Expr<RegisterId>| matches!(a, Expr::Unary(UnaryOp::Not, operand) if **operand == *b);
    let compares = match (a, b) {
        (Expr::Binary(one, left, right), Expr::Binary(other, l, r)) => {
            one.is_comparison() && one.negated() == *other && (left, right) == (l, r)
        }
        _ => false,
    };
    compares || negates(a, b) || negates(b, a)
}
