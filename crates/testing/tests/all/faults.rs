//! Compares the analysis of operations that may fault with the reference semantics, which defines faults independently, on random edges of random
//! programs in random states.

use fencewright_program::{
    Action, Address, Edge, EdgeId, EventKind, Expr, Init, LocationId, MemoryModel, Numbers, Op, Program,
    Range, Reference, Register, RegisterId, Span, State, Thread, ThreadId, Variable, VariableId,
};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::{Random, Shape, program};

/// Values on both sides of every range and array of a random program.
const SAMPLES: [i64; 9] = [-5, -2, -1, 0, 1, 2, 3, 4, 9];

fn value(random: &mut Random, program: &Program) -> i64 {
    let value = *random.pick(&SAMPLES);
    if program.numbers == Numbers::Nat { value.abs() } else { value }
}

/// A state, reachable or not, with a thread at this location.
fn state(random: &mut Random, program: &Program, thread: ThreadId, at: LocationId) -> State {
    let mut locations: Vec<LocationId> = program.threads.iter().map(|t| t.entry).collect();
    locations[thread.index()] = at;
    let sizes: Vec<usize> = program.threads.iter().map(|t| t.registers.len()).collect();
    let mut values = |n: usize| (0..n).map(|_| value(random, program)).collect::<Vec<i64>>();
    State {
        locations,
        registers: sizes.into_iter().map(&mut values).collect(),
        memory: values(program.cells()),
        buffers: vec![Vec::new(); program.threads.len()],
        lock: None,
    }
}

/// Whether an edge faults in a state for some values of its choices.
fn faults(program: &Program, state: &State, thread: ThreadId, edge: EdgeId) -> bool {
    let reference = Reference::new(program, MemoryModel::Tso);
    let events = reference.candidates(state, &SAMPLES);
    let mut events = events.into_iter().filter(
        |e| matches!(&e.kind, EventKind::Step { edge: taken, .. } if e.thread == thread && *taken == edge),
    );
    events.any(|e| reference.step(state, &e).is_ok_and(|(next, _)| reference.has_fault(&next)))
}

/// A random program with ranges, open arrays and naturals, and some choices without a range.
fn sample(seed: u64) -> (Random, Program) {
    let mut random = Random::new(9_000_000 + seed);
    let mut program =
        program(&mut random, Shape { length: 8, corners: !seed.is_multiple_of(4), ..Shape::default() });
    for edge in program.threads.iter_mut().flat_map(|t| &mut t.edges) {
        if let Action::Op(Op::Havoc(_, range)) = &mut edge.action
            && random.one_in(3)
        {
            *range = None;
        }
    }
    if seed.is_multiple_of(3) {
        compute(&mut random, &mut program);
    }
    (random, program)
}

fn edges(program: &Program) -> impl Iterator<Item = (ThreadId, &Thread, EdgeId, &Edge)> {
    program.threads().flat_map(|(id, thread)| {
        thread.edges.iter().enumerate().map(move |(n, edge)| (id, thread, EdgeId(n as u32), edge))
    })
}

#[test]
fn every_fault_is_declared_possible() {
    let (mut tried, mut faulted) = (0, 0);
    for seed in 0..2_000 {
        let (mut random, program) = sample(seed);
        for (id, thread, n, edge) in edges(&program) {
            let may = program.edge_may_fault(thread, edge);
            for _ in 0..20 {
                let state = state(&mut random, &program, id, edge.from);
                let faults = faults(&program, &state, id, n);
                assert!(may || !faults, "seed {seed}: {edge:?} faults in {state:?}\n{program:?}");
                tried += 1;
                faulted += usize::from(faults);
            }
        }
    }
    assert!(tried > 200_000 && faulted > 30_000, "{tried} states, {faulted} faults");
}

/// Whether constants and declarations alone determine whether an action may fault: its operations have no operators, and no access may be outside the
/// modelled part of an open array.
fn is_plain(program: &Program, action: &Action) -> bool {
    let plain = |e: &Expr<_>| matches!(e, Expr::Const(_) | Expr::Leaf(_));
    let indexed = |address: &Address| {
        let Variable { open, indices, .. } = &program.variables[address.variable.index()];
        let constant = address.index.as_ref().and_then(Expr::constant);
        let inside = constant.zip(*indices).is_some_and(|(i, range)| range.contains(i));
        address.index.iter().all(plain) && (!open || inside)
    };
    let Action::Op(op) = action else { return false };
    match op {
        Op::Skip | Op::Havoc(..) => true,
        Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) => plain(e),
        Op::Load(_, address) => indexed(address),
        Op::Store(address, e) => indexed(address) && plain(e),
    }
}

#[test]
fn without_computation_possible_faults_occur_for_some_values() {
    let (mut safe, mut faulting) = (0, 0);
    for seed in 0..4_000 {
        let (mut random, program) = sample(seed);
        for (id, thread, n, edge) in edges(&program).filter(|(.., edge)| is_plain(&program, &edge.action)) {
            if !program.edge_may_fault(thread, edge) {
                safe += 1;
                continue;
            }
            faulting += 1;
            let some = (0..400).any(|_| {
                let state = state(&mut random, &program, id, edge.from);
                faults(&program, &state, id, n)
            });
            assert!(some, "seed {seed}: {edge:?} does not fault\n{program:?}");
        }
    }
    assert!(safe > 3_000 && faulting > 2_000, "{safe} edges that do not fault, {faulting} that may");
}

#[test]
fn every_kind_of_write_over_the_naturals() {
    let range = |low, high| Some(Range { low, high });
    let (free, ranged) = (RegisterId(0), RegisterId(1));
    let mut program = Program { numbers: Numbers::Nat, ..Program::default() };
    for (n, declared) in [None, range(-1, 2)].into_iter().enumerate() {
        program.variables.push(Variable {
            name: format!("x{n}"),
            base: n as u32,
            indices: None,
            open: false,
            range: declared,
            init: vec![Init::Value(0)],
            span: Span::default(),
        });
    }
    let register =
        |name: &str, declared| Register { name: name.into(), init: Init::Value(0), range: declared };
    let registers = [register("free", None), register("ranged", range(-1, 2))];
    let cell = |n| Address { variable: VariableId(n), index: None };
    for (op, expected) in [
        (Op::Havoc(free, None), false),
        (Op::Havoc(free, range(-1, 1)), true),
        (Op::Havoc(free, range(0, 9)), false),
        // The declared range allows -1, but `numbers nat` does not.
        (Op::Havoc(ranged, range(-1, 1)), true),
        (Op::Havoc(ranged, range(-1, -1)), true),
        (Op::Havoc(ranged, range(0, 2)), false),
        (Op::Havoc(ranged, range(0, 3)), true),
        (Op::Havoc(ranged, None), true),
        (Op::Havoc(ranged, range(1, 0)), false),
        (Op::Assign(ranged, Expr::Const(-1)), true),
        (Op::Assign(ranged, Expr::Const(2)), false),
        (Op::Assign(free, Expr::Leaf(ranged)), false),
        // No value of `free` is below 0, but some are above 2.
        (Op::Assign(ranged, Expr::Leaf(free)), true),
        (Op::Load(free, cell(1)), false),
        (Op::Load(ranged, cell(0)), true),
        (Op::Store(cell(0), Expr::Leaf(ranged)), false),
        (Op::Store(cell(1), Expr::Leaf(free)), true),
        (Op::Store(cell(1), Expr::Const(-1)), true),
        (Op::Store(cell(1), Expr::Const(1)), false),
    ] {
        assert_eq!(program.op_may_fault(&registers, &op), expected, "{op:?}");
    }
}
