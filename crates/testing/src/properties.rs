//! The properties of random programs: over labels, registers and memory, about faults, deadlocks and final states.

use fencewright_program::{
    BinaryOp, Expr, Formula, LocationId, Observable, Program, Property, PropertyKind, Quantifier, RegisterId,
    Span, Thread, ThreadId,
};

use crate::Random;

pub fn properties(random: &mut Random, program: &Program) -> Vec<Property> {
    let named = |name: &str, kind| Property { name: name.into(), kind, span: Span::default() };
    let quantifier = *random.pick(&[Quantifier::Exists, Quantifier::Never, Quantifier::Forall]);
    vec![
        named("labels", PropertyKind::Never(labels(random, program))),
        named("mixed", PropertyKind::Never(mixed(random, program, 2))),
        named("registers", PropertyKind::Never(registers(random, program))),
        Property::assertions(),
        Property::deadlock(),
        named("final", PropertyKind::Finally(quantifier, mixed(random, program, 1))),
        // With numbers of its own, so that the programs that follow do not depend on this property.
        named("disjuncts", PropertyKind::Never(disjuncts(&mut random.clone(), program))),
    ]
}

/// The formula that each thread is at a given random label, as in mutual exclusion.
fn labels(random: &mut Random, program: &Program) -> Formula {
    let places = program.threads.iter().map(|t| t.locations.len() - 1).min().unwrap_or(1);
    let same = random.one_in(2).then(|| LocationId(random.below(places) as u32));
    let part = |(id, _)| match same {
        Some(place) => Expr::Leaf(Observable::At(id, vec![place])),
        None => at(random, program, id),
    };
    Expr::all(program.threads().map(part).collect())
}

/// The formula that a random register of each thread has a given random value.
fn registers(random: &mut Random, program: &Program) -> Formula {
    let part = |(id, thread): (ThreadId, &Thread)| {
        let register = RegisterId(random.below(thread.registers.len()) as u32);
        let leaf = Expr::Leaf(Observable::Register(id, register));
        Expr::binary(BinaryOp::Eq, leaf, Expr::Const(random.between(0, 2)))
    };
    Expr::all(program.threads().map(part).collect())
}

/// A disjunction of formulas that mostly depend on one thread only: it is at a label where a register has some value, or never has.
fn disjuncts(random: &mut Random, program: &Program) -> Formula {
    let mut one = |_| {
        if random.one_in(4) {
            return mixed(random, program, 1);
        }
        let id = ThreadId(random.below(program.threads.len()) as u32);
        let register = RegisterId(random.below(program.thread(id).registers.len()) as u32);
        let leaf = Expr::Leaf(Observable::Register(id, register));
        let holds = Expr::binary(BinaryOp::Eq, leaf, Expr::Const(random.between(0, 2)));
        match random.below(4) {
            0 => at(random, program, id),
            1 => Expr::binary(BinaryOp::And, holds, at(random, program, id)),
            _ => Expr::binary(BinaryOp::And, at(random, program, id), holds),
        }
    };
    Expr::any((0..3).map(&mut one).collect())
}

pub fn at(random: &mut Random, program: &Program, id: ThreadId) -> Formula {
    // The fault location has no label, so no formula names it.
    let places = program.thread(id).locations.len() - 1;
    Expr::Leaf(Observable::At(id, vec![LocationId(random.below(places) as u32)]))
}

pub fn mixed(random: &mut Random, program: &Program, depth: usize) -> Formula {
    if depth > 0 && random.one_in(2) {
        let op = if random.one_in(2) { BinaryOp::And } else { BinaryOp::Or };
        let left = mixed(random, program, depth - 1);
        let formula = Expr::binary(op, left, mixed(random, program, depth - 1));
        return if random.one_in(4) { formula.not() } else { formula };
    }
    let id = ThreadId(random.below(program.threads.len()) as u32);
    let leaf = match random.below(3) {
        0 => return at(random, program, id),
        1 => Observable::Memory(random.below(program.cells()) as u32),
        _ => Observable::Register(id, RegisterId(random.below(program.thread(id).registers.len()) as u32)),
    };
    let op = *random.pick(&[BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Gt]);
    Expr::binary(op, Expr::Leaf(leaf), Expr::Const(random.between(0, 2)))
}
