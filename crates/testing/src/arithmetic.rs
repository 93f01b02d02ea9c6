//! Changes random programs so that they have realistic arithmetic: remainders and quotients of counters, bit operations, shifts, and wraparound.

use fencewright_generate::Random;
use fencewright_program::{
    Action, BinaryOp, Expr, Numbers, Op, Program, PropertyKind, RegisterId, UnaryOp, Width,
};

/// Inserts operators other than addition and subtraction into many expressions of a program: into assignments, stores, assumptions, indices and
/// properties. Programs over the reals are unchanged, because these operators do not exist there.
pub fn compute(random: &mut Random, program: &mut Program) {
    if program.numbers == Numbers::Real {
        return;
    }
    for edge in program.threads.iter_mut().flat_map(|t| &mut t.edges) {
        match &mut edge.action {
            Action::Op(op) => compute_in(random, op),
            Action::Atomic { ops, .. } => ops.iter_mut().for_each(|op| compute_in(random, op)),
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => {}
        }
    }
    for property in &mut program.properties {
        if let PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) = &mut property.kind {
            compute_in_comparisons(random, formula);
        }
    }
}

fn compute_in(random: &mut Random, op: &mut Op) {
    match op {
        Op::Skip | Op::Havoc(..) => {}
        Op::Assign(register, e) => {
            // The assignment becomes a counter; an operator such as a remainder is then applied to it.
            if random.one_in(4) {
                let step = Expr::Const(random.between(1, 3));
                *e = Expr::binary(BinaryOp::Add, Expr::Leaf(*register), step);
            }
            some(random, e);
        }
        Op::Assume(e) | Op::Assert(e, _) => compute_in_comparisons(random, e),
        Op::Load(_, address) => address.index.iter_mut().for_each(|e| some(random, e)),
        Op::Store(address, e) => address.index.iter_mut().chain([e]).for_each(|e| some(random, e)),
    }
}

fn some(random: &mut Random, e: &mut Expr<RegisterId>) {
    while random.one_in(2) {
        let operand = std::mem::replace(e, Expr::Const(0));
        *e = match random.below(24) {
            0 => {
                let by = random.between(0, 3);
                Expr::binary(BinaryOp::Shl, operand, Expr::Const(if random.one_in(8) { -1 } else { by }))
            }
            1 => {
                let op = *random.pick(&[BinaryOp::Shl, BinaryOp::Shr, BinaryOp::Rem, BinaryOp::Mul]);
                Expr::binary(op, Expr::Const(random.between(-2, 5)), operand)
            }
            2 => Expr::binary(BinaryOp::Mul, operand.clone(), operand),
            3 => {
                // For most values the operand of the wrapping operator overflows 64 bits, but the wrapped result does not.
                let large = Expr::binary(BinaryOp::Mul, operand, Expr::Const(1 << 40));
                let larger = Expr::binary(BinaryOp::Shl, large, Expr::Const(23));
                let odd = Expr::binary(BinaryOp::Add, larger, Expr::Const(random.between(-2, 2)));
                Expr::unary(UnaryOp::Signed(Width::Bits16), odd)
            }
            4 => {
                let condition = Expr::binary(BinaryOp::Gt, operand.clone(), Expr::Const(1));
                let divided = Expr::binary(BinaryOp::Div, Expr::Const(6), operand.clone());
                let (then, otherwise) =
                    if random.one_in(2) { (divided, operand) } else { (operand, divided) };
                Expr::choice(condition, then, otherwise)
            }
            _ => with_constant(random, operand),
        };
    }
}

/// Applies a unary operator, or a binary operator with a constant as its right operand. The operation neither faults nor overflows 64 bits.
fn with_constant<L>(random: &mut Random, operand: Expr<L>) -> Expr<L> {
    use BinaryOp::*;
    let (ops, constants): (&[BinaryOp], &[i64]) = match random.below(8) {
        0..=2 => (&[Rem], &[2, 2, 3, 4, -2, -3, 5]),
        3 => (&[Div], &[2, 2, 3, 4, -2, 5]),
        4 => (&[BitAnd, BitAnd, BitOr, BitXor], &[1, 3, 7, 2, 4, 5, -2, -4]),
        5 => (&[Shr], &[0, 1, 1, 2, 5]),
        6 => (&[Min, Max], &[-1, 0, 1, 2]),
        _ => {
            let width = *random.pick(&[Width::Bits8, Width::Bits8, Width::Bits32]);
            let ops = [UnaryOp::BitNot, UnaryOp::Unsigned(width), UnaryOp::Signed(width)];
            return Expr::unary(*random.pick(&ops), operand);
        }
    };
    let op = *random.pick(ops);
    Expr::binary(op, operand, Expr::Const(*random.pick(constants)))
}

/// Applies operators to the left sides of some comparisons.
fn compute_in_comparisons<L>(random: &mut Random, e: &mut Expr<L>) {
    match e {
        Expr::Unary(UnaryOp::Not, operand) => compute_in_comparisons(random, operand),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, left, right) => {
            compute_in_comparisons(random, left);
            compute_in_comparisons(random, right);
        }
        Expr::Binary(op, left, _) if op.is_comparison() => {
            while random.one_in(2) {
                let operand = std::mem::replace(&mut **left, Expr::Const(0));
                **left = with_constant(random, operand);
            }
        }
        _ => {}
    }
}
