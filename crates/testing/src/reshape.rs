//! Changes random programs so that other threads observe delayed stores, so that fences keep stores in order, or so that stores can leave in several
//! orders.

use fencewright_program::{Action, Address, Edge, Expr, Op, Program, Range, RegisterId, VariableId};

use crate::Random;

/// Makes delayed stores observable: most edges become stores to variables that another thread loads, or loads of variables that another thread stores
/// to. Locks and unlocks are not changed, and neither is about one other edge in `kept`. Without such changes, almost all random programs are robust.
pub fn contend(random: &mut Random, program: &mut Program, kept: usize) {
    let ranges: Vec<Option<Range>> = program.variables.iter().map(|v| v.indices).collect();
    for (t, thread) in program.threads.iter_mut().enumerate() {
        let registers = thread.registers.len();
        for edge in &mut thread.edges {
            if matches!(edge.action, Action::Lock | Action::Unlock) || random.one_in(kept) {
                continue;
            }
            let stores = random.one_in(2);
            let usual = if stores { t } else { t + 1 };
            let variable = if random.one_in(4) { random.below(ranges.len()) } else { usual % ranges.len() };
            let register = RegisterId(random.below(registers) as u32);
            let index = ranges[variable].map(|range| match random.one_in(4) {
                true => Expr::Leaf(register),
                false => Expr::Const(range.low),
            });
            let address = Address { variable: VariableId(variable as u32), index };
            let value = match random.one_in(3) {
                true => Expr::Leaf(RegisterId(random.below(registers) as u32)),
                false => Expr::Const(random.between(1, 2)),
            };
            let op = if stores { Op::Store(address, value) } else { Op::Load(register, address) };
            edge.action = Action::Op(op);
        }
    }
}

/// Replaces the edges after most stores by a store-store fence, or sometimes by a full one; locks and unlocks remain.
pub fn separate(random: &mut Random, program: &mut Program) {
    for thread in &mut program.threads {
        for store in 0..thread.edges.len() {
            let Edge { to, action, .. } = thread.edges[store].clone();
            if !matches!(action, Action::Op(Op::Store(..))) || random.one_in(4) {
                continue;
            }
            let after = thread.edges.iter_mut().filter(|e| e.from == to);
            for edge in after.filter(|e| !matches!(e.action, Action::Lock | Action::Unlock)) {
                edge.action = if random.one_in(6) { Action::Fence } else { Action::StoreFence };
            }
        }
    }
}

/// Makes groups of stores that may leave the buffer in several orders under PSO: in most sequences of a few consecutive edges, some edges become
/// stores to random cells. A fence precedes most of these sequences.
pub fn group(random: &mut Random, program: &mut Program) {
    let ranges: Vec<Option<Range>> = program.variables.iter().map(|v| v.indices).collect();
    for thread in &mut program.threads {
        let registers = thread.registers.len();
        let fence = |random: &mut Random| if random.one_in(6) { Action::Fence } else { Action::StoreFence };
        let mut left = 0;
        for edge in &mut thread.edges {
            if matches!(edge.action, Action::Lock | Action::Unlock) {
                continue;
            }
            if left == 0 {
                left = 2 + random.below(3);
                if !random.one_in(5) {
                    edge.action = fence(random);
                }
                continue;
            }
            left -= 1;
            if random.one_in(4) {
                continue;
            }
            let variable = random.below(ranges.len());
            let mut register = || Expr::Leaf(RegisterId(random.below(registers) as u32));
            let (index, value) = (register(), register());
            let index = ranges[variable].map(|range| match random.one_in(3) {
                true => index,
                false => Expr::Const(random.between(range.low, range.high)),
            });
            let value = if random.one_in(2) { value } else { Expr::Const(random.between(1, 2)) };
            edge.action =
                Action::Op(Op::Store(Address { variable: VariableId(variable as u32), index }, value));
        }
    }
}
