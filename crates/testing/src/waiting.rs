//! Changes random programs so that their threads wait for each other.

use fencewright_program::{Action, Address, BinaryOp, Expr, Op, Program, RegisterId, VariableId};

use crate::Random;

/// Makes threads wait for values: most edges become stores of small numbers, or atomic steps that load one or two cells
/// and are enabled only for some of their values. Stores enable and disable these steps repeatedly.
pub fn wait(random: &mut Random, program: &mut Program) {
    let variables: Vec<_> = program.variables.iter().map(|v| v.indices).collect();
    for thread in &mut program.threads {
        let registers = thread.registers.len();
        for edge in &mut thread.edges {
            if matches!(edge.action, Action::Lock | Action::Unlock) || random.one_in(5) {
                continue;
            }
            let mut address = || {
                let variable = random.below(variables.len());
                let index = variables[variable].map(|range| match random.one_in(4) {
                    true => Expr::Leaf(RegisterId(random.below(registers) as u32)),
                    false => Expr::Const(range.low),
                });
                Address { variable: VariableId(variable as u32), index }
            };
            let (first, second) = (address(), address());
            let register = RegisterId(random.below(registers) as u32);
            let value = Expr::Const(random.between(0, 2));
            let awaited =
                |register| Op::Assume(Expr::binary(BinaryOp::Eq, Expr::Leaf(register), value.clone()));
            let mut ops = vec![Op::Load(register, first.clone()), awaited(register)];
            if random.one_in(3) {
                ops.extend([Op::Load(register, second.clone()), awaited(register)]);
            }
            let drains = !random.one_in(3);
            if drains && random.one_in(3) {
                ops.push(Op::Store(second, Expr::Const(random.between(0, 2))));
            }
            edge.action = match random.below(5) {
                0 | 1 => Action::Atomic { ops, drains },
                _ => Action::Op(Op::Store(first, value)),
            };
        }
    }
}
