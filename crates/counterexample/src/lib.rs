//! Counterexamples to induction: values that satisfy an invariant, and a step from them to values that do not.
//!
//! The checker of certificates accepts a step only if it has a proof. Where it has none, this crate distinguishes a wrong certificate from one that
//! is too hard: a step is wrong if its commands, executed with exact numbers, lead out of the invariant. The values come from a solver, which works
//! on the linear cases of the step. Where an expression is not linear, or a number does not fit 64 bits, these cases over-approximate the step, so
//! values alone prove nothing.
//!
//! No proof depends on this crate: the absence of a counterexample never makes the checker accept.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use fencewright_memory::linear::Cube;
use fencewright_memory::{CellId, Command, Constraint, Linear};
use fencewright_program::Expr;

/// Values of cells; other cells are 0.
pub type Values = HashMap<CellId, i64>;

/// Whether these values satisfy the first cube, and the commands lead from them to values that satisfy none of `cubes`. `taken` gives the value of a
/// cell after the commands as a form over the values before; a `Havoc` chooses that value.
pub fn leads_out(
    before: &Values,
    cube: &[Constraint],
    commands: &[Command],
    taken: impl Fn(CellId) -> Option<Linear>,
    cubes: &[Cube],
) -> bool {
    let mut values = before.clone();
    let perform =
        |command| perform(command, &mut values, |cell| exact(&taken(cell)?, before)?.try_into().ok());
    satisfied(cube, before) == Some(true)
        && commands.iter().try_for_each(perform).is_some()
        && cubes.iter().all(|cube| satisfied(cube, &values) == Some(false))
}

/// Executes a command; `None` if that is impossible, if a number does not fit 64 bits, or if a cell stands for several values.
fn perform(command: &Command, values: &mut Values, taken: impl Fn(CellId) -> Option<i64>) -> Option<()> {
    let eval = |e: &Expr<CellId>| e.eval(&mut |cell| values.get(cell).copied().unwrap_or(0)).ok();
    let (cell, value) = match command {
        Command::Assume(e) => return eval(e).filter(|&holds| holds != 0).map(|_| ()),
        Command::Assign(cell, e) => (*cell, eval(e)?),
        Command::Havoc(cell) => (*cell, taken(*cell)?),
        Command::Fold(..) | Command::Expand(..) => return None,
    };
    values.insert(cell, value);
    Some(())
}

/// Whether values satisfy a cube; `None` if numbers overflow.
fn satisfied(cube: &[Constraint], values: &Values) -> Option<bool> {
    let holds = |constraint: &Constraint| {
        let value = exact(constraint.form(), values)?;
        Some(match constraint {
            Constraint::AtMost(_) => value <= 0,
            Constraint::Multiple(_, modulus) => value.checked_rem(i128::from(*modulus))? == 0,
        })
    };
    cube.iter().map(holds).try_fold(true, |all, holds| Some(all && holds?))
}

/// The value of a form; `None` if it does not fit 128 bits.
fn exact(form: &Linear, values: &Values) -> Option<i128> {
    let value = |cell: &CellId| i128::from(values.get(cell).copied().unwrap_or(0));
    let mut terms = form.terms.iter().map(|(cell, c)| i128::from(*c) * value(cell));
    terms.try_fold(i128::from(form.constant), i128::checked_add)
}

#[cfg(test)]
mod tests {
    use fencewright_program::{BinaryOp, UnaryOp, Width};

    use super::*;

    fn equals(cell: CellId, value: i64) -> Cube {
        let above = Linear { terms: vec![(cell, -1)], constant: value };
        let below = Linear { terms: vec![(cell, 1)], constant: -value };
        vec![Constraint::AtMost(above), Constraint::AtMost(below)]
    }

    fn binary(op: BinaryOp, cell: CellId, value: i64) -> Expr<CellId> {
        Expr::Binary(op, Box::new(Expr::Leaf(cell)), Box::new(Expr::Const(value)))
    }

    #[test]
    fn a_step_that_leaves_the_set_is_wrong() {
        let grows =
            [Command::Assume(binary(BinaryOp::Lt, 0, 3)), Command::Assign(0, binary(BinaryOp::Add, 0, 1))];
        let wrong = |value: i64, cube: &Cube, cubes: &[Cube]| {
            leads_out(&Values::from([(0, value)]), cube, &grows, |_| None, cubes)
        };
        assert!(wrong(1, &equals(0, 1), &[equals(0, 1), equals(0, 3)]));
        assert!(!wrong(1, &equals(0, 1), &[equals(0, 1), equals(0, 2)]), "it leads into one of them");
        assert!(!wrong(2, &equals(0, 1), &[]), "it does not start in the invariant");
        assert!(!wrong(3, &equals(0, 3), &[]), "it is impossible");
        let odd = |constant| vec![Constraint::Multiple(Linear { terms: vec![(0, 1)], constant }, 2)];
        assert!(wrong(1, &odd(1), &[odd(1)]) && !wrong(1, &odd(1), &[odd(0)]));
    }

    #[test]
    fn a_cell_takes_the_value_of_the_model() {
        let any = [Command::Havoc(1)];
        let found = |cell| Some(Linear::cell(cell + 6));
        let wrong = |cubes: &[Cube]| leads_out(&Values::from([(7, 5)]), &Cube::new(), &any, found, cubes);
        assert!(wrong(&[equals(1, 4)]) && !wrong(&[equals(1, 5)]));
    }

    #[test]
    fn values_that_cannot_be_computed_are_no_counterexample() {
        let large = Values::from([(0, i64::MAX)]);
        let wrong = |e: Expr<CellId>, cubes: &[Cube]| {
            leads_out(&large, &Cube::new(), &[Command::Assign(0, e)], |_| None, cubes)
        };
        assert!(!wrong(binary(BinaryOp::Add, 0, 1), &[]));
        assert!(!wrong(
            Expr::Unary(UnaryOp::Signed(Width::Bits64), Box::new(Expr::Leaf(0))),
            &[equals(0, i64::MAX)]
        ));
        let terms = (0..8).map(|_| (0, i64::MAX)).collect();
        assert!(!wrong(Expr::Leaf(0), &[vec![Constraint::AtMost(Linear { terms, constant: 0 })]]));
        assert!(!leads_out(&large, &Cube::new(), &[Command::Expand(0, 1)], |_| None, &[]));
    }
}
