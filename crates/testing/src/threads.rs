//! The threads of random programs.

use fencewright_program::{
    Action, Address, BinaryOp, Edge, Expr, Fault, Location, LocationId, Op, Program, Range, Register,
    RegisterId, Span, Thread, UnaryOp, VariableId,
};

use crate::{Random, Shape, declared, initial};

pub fn thread(
    random: &mut Random,
    program: &Program,
    number: usize,
    length: usize,
    Shape { loops, corners, .. }: Shape,
    fewer: usize,
) -> Thread {
    let registers: Vec<Register> = (0..1 + random.below(3))
        .map(|r| Register {
            name: format!("r{r}"),
            init: initial(random),
            range: random.one_in(fewer).then(|| match corners {
                true => declared(random, corners, 2),
                false => Range { low: 0, high: 2 },
            }),
        })
        .collect();
    let places = 2 + random.below(length);
    let mut edges = Vec::new();
    // Some threads are a locked section: they begin with `lock`, and `unlock` is the step before the last one.
    let locked = places > 3 && random.one_in(6);
    for from in 0..places - 1 {
        let bracket = match from {
            0 => Some(Action::Lock),
            _ if from + 3 == places => Some(Action::Unlock),
            _ => None,
        };
        if let Some(action) = bracket.filter(|_| locked) {
            let (from, to) = (LocationId(from as u32), LocationId(from as u32 + 1));
            edges.push(Edge { from, to, action, span: Span::default() });
            continue;
        }
        let ways = 1 + usize::from(random.one_in(3));
        for way in 0..ways {
            let to = match loops && random.one_in(8) {
                true => random.below(places),
                false if way == 0 => from + 1,
                false => from + 1 + random.below(places - from - 1),
            };
            let action = match corners && random.one_in(4) {
                true => faulting_step(random, program, registers.len()),
                false => action(random, program, registers.len()),
            };
            let (from, to) = (LocationId(from as u32), LocationId(to as u32));
            if ways == 2 && way == 0 && random.one_in(2) {
                // A branch: two edges, with a condition and its negation.
                let e = condition(random, registers.len());
                let after = LocationId(random.below(places) as u32);
                let after = if after <= from { LocationId(from.0 + 1) } else { after };
                let assume =
                    |to, e| Edge { from, to, action: Action::Op(Op::Assume(e)), span: Span::default() };
                edges.push(assume(to, e.clone()));
                edges.push(assume(after, e.not()));
                break;
            }
            edges.push(Edge { from, to, action, span: Span::default() });
        }
    }
    let locations = locations(places, &edges);
    Thread {
        name: format!("t{number}"),
        registers,
        entry: LocationId(0),
        edges,
        fault: LocationId(locations.len() as u32 - 1),
        locations,
        family: None,
    }
}

/// The locations of a thread: `places` locations with labels, followed by the fault location. `edges` must be sorted by source.
fn locations(places: usize, edges: &[Edge]) -> Vec<Location> {
    let mut locations: Vec<Location> = Vec::new();
    let mut first = 0;
    for place in 0..places {
        let last = first + edges.iter().filter(|e| e.from.index() == place).count();
        locations.push(Location {
            labels: vec![format!("l{place}")],
            span: None,
            first_edge: first as u32,
            last_edge: last as u32,
        });
        first = last;
    }
    let none = edges.len() as u32;
    locations.push(Location { first_edge: none, last_edge: none, ..Location::default() });
    locations
}

fn action(random: &mut Random, program: &Program, registers: usize) -> Action {
    match random.below(25) {
        0 => Action::Fence,
        1 | 24 => Action::StoreFence,
        2 => Action::Lock,
        3 => Action::Unlock,
        4..=6 => {
            let ops = (0..1 + random.below(3)).map(|_| op(random, program, registers)).collect();
            Action::Atomic { ops, drains: true }
        }
        7 => {
            let mut ops: Vec<Op> = (0..1 + random.below(3)).map(|_| op(random, program, registers)).collect();
            ops.retain(|op| !matches!(op, Op::Store(..)));
            Action::Atomic { ops, drains: false }
        }
        8..=12 => Action::Op(Op::Store(address(random, program, registers), expr(random, registers, 1))),
        13..=17 => Action::Op(Op::Load(
            RegisterId(random.below(registers) as u32),
            address(random, program, registers),
        )),
        _ => Action::Op(op(random, program, registers)),
    }
}

/// An atomic step with an operation that may fault. The operation stands between two stores, or, in a step that does not drain the buffer, after a
/// load; there a skip takes the place of a store.
fn faulting_step(random: &mut Random, program: &Program, registers: usize) -> Action {
    let register = RegisterId(random.below(registers) as u32);
    let store =
        |random: &mut Random| Op::Store(address(random, program, registers), expr(random, registers, 0));
    let load = Op::Load(register, address(random, program, registers));
    let low = random.between(-1, 0);
    let faulting = match random.below(5) {
        0 => Op::Assert(condition(random, registers), Fault::Assertion(None)),
        1 => Op::Havoc(register, Some(Range { low, high: low + random.between(0, 2) })),
        2 => Op::Assign(register, expr(random, registers, 1)),
        3 => load.clone(),
        _ => store(random),
    };
    let drains = !random.one_in(3);
    let ops = match drains {
        true => vec![store(random), faulting, store(random)],
        false => vec![load, if matches!(faulting, Op::Store(..)) { Op::Skip } else { faulting }],
    };
    Action::Atomic { ops, drains }
}

fn op(random: &mut Random, program: &Program, registers: usize) -> Op {
    let register = RegisterId(random.below(registers) as u32);
    match random.below(12) {
        0 => Op::Skip,
        1 | 2 => Op::Assign(register, expr(random, registers, 2)),
        3 => {
            let low = random.between(-1, 1);
            Op::Havoc(register, Some(Range { low, high: low + random.between(0, 2) }))
        }
        4 | 5 => Op::Assume(condition(random, registers)),
        6 => Op::Assert(condition(random, registers), Fault::Assertion(None)),
        7..=9 => Op::Load(register, address(random, program, registers)),
        _ => Op::Store(address(random, program, registers), expr(random, registers, 1)),
    }
}

fn address(random: &mut Random, program: &Program, registers: usize) -> Address {
    let variable = VariableId(random.below(program.variables.len()) as u32);
    let index = program.variables[variable.index()].indices.map(|range| match random.one_in(2) {
        true => Expr::Const(random.between(range.low, range.high)),
        false => expr(random, registers, 1),
    });
    Address { variable, index }
}

fn expr(random: &mut Random, registers: usize, depth: usize) -> Expr<RegisterId> {
    match random.below(if depth == 0 { 2 } else { 4 }) {
        0 => Expr::Const(if random.one_in(8) { -1 } else { random.between(0, 2) }),
        1 => Expr::Leaf(RegisterId(random.below(registers) as u32)),
        _ => {
            use BinaryOp::*;
            let op = *random.pick(&[Sub, Sub, Rem, BitAnd, BitXor, Eq, Lt, And, Or, Div, Mul, Add]);
            let left = expr(random, registers, depth - 1);
            Expr::binary(op, left, expr(random, registers, depth - 1))
        }
    }
}

fn condition(random: &mut Random, registers: usize) -> Expr<RegisterId> {
    use BinaryOp::*;
    let op = *random.pick(&[Eq, Ne, Lt, Le, Gt, Ge]);
    let left = expr(random, registers, 1);
    let comparison = Expr::binary(op, left, Expr::Const(random.between(0, 2)));
    if random.one_in(4) { Expr::unary(UnaryOp::Not, comparison) } else { comparison }
}
