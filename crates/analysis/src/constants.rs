//! The constants that a program computes with or compares with. Values near a constant are likely to lead to different behaviours.

use std::collections::BTreeSet;

use fencewright_program::{Expr, Op, Program};

/// The constants in the properties of a program, and in the expressions that it assigns, assumes, asserts or stores; not those in indices and ranges.
pub fn constants(program: &Program) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    for op in program.threads.iter().flat_map(|t| &t.edges).flat_map(|edge| edge.action.ops()) {
        if let Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) | Op::Store(_, e) = op {
            collect(e, &mut found);
        }
    }
    for formula in program.properties.iter().filter_map(|property| property.formula()) {
        collect(formula, &mut found);
    }
    found
}

fn collect<L>(e: &Expr<L>, found: &mut BTreeSet<i64>) {
    match e {
        Expr::Const(c) => _ = found.insert(*c),
        Expr::Leaf(_) => {}
        Expr::Unary(_, operand) => collect(operand, found),
        Expr::Binary(_, left, right) => [left, right].into_iter().for_each(|part| collect(part, found)),
        Expr::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|part| collect(part, found));
        }
    }
}
