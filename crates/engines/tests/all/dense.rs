//! Random programs with many loads and stores, so that many are not robust.

use fencewright_program::{
    Action, Address, Edge, Expr, Fault, Init, Location, LocationId, Numbers, Op, Program, Range, Register,
    RegisterId, Span, Thread, Variable, VariableId,
};
use fencewright_testing::Random;

/// A short program with many loads and stores: straight-line code with an occasional branch, fence, locked section,
/// atomic step, snapshot or computed index.
pub fn dense_program(random: &mut Random) -> Program {
    let array = random.one_in(3);
    let cells = if array { 2 + random.below(2) } else { 1 };
    let scalars = 2 + random.below(2);
    let mut program = Program { numbers: Numbers::Int, ..Program::default() };
    for n in 0..scalars + usize::from(array) {
        let is_array = n == scalars;
        let count = if is_array { cells } else { 1 };
        program.variables.push(Variable {
            name: format!("x{n}"),
            base: program.cells() as u32,
            indices: is_array.then_some(Range { low: 0, high: cells as i64 - 1 }),
            open: false,
            range: random.one_in(8).then_some(Range { low: 0, high: 1 }),
            init: vec![Init::Value(0); count],
            span: Span::default(),
        });
    }
    let threads = 2 + usize::from(random.one_in(3)) + usize::from(random.one_in(12));
    for t in 0..threads {
        let length = if threads == 2 { 2 + random.below(4) } else { 2 + random.below(2) };
        let thread = dense_thread(random, &program, t, length);
        program.threads.push(thread);
    }
    if random.one_in(6) {
        let twin = Thread { name: "twin".into(), ..program.threads[0].clone() };
        program.threads[1] = twin;
    }
    program
}

fn dense_thread(random: &mut Random, program: &Program, number: usize, length: usize) -> Thread {
    let registers = 2;
    let mut actions = Vec::new();
    let mut lock = random.one_in(4).then(|| random.below(length));
    // Most threads begin with a store and end with a load, because otherwise most programs would be robust.
    let shaped = !random.one_in(3);
    for n in 0..length {
        let opens = lock == Some(n);
        if opens {
            actions.push(Action::Lock);
        }
        actions.push(match random.below(24) {
            _ if shaped && n == 0 => Action::Op(store(random, program)),
            _ if shaped && n + 1 == length => Action::Op(load(random, program)),
            0 => Action::Fence,
            1 => Action::StoreFence,
            2 | 3 => Action::Atomic { ops: some_ops(random, program, true), drains: true },
            4 => Action::Atomic { ops: some_ops(random, program, false), drains: false },
            5 => {
                let e = Expr::binary(
                    fencewright_program::BinaryOp::Eq,
                    Expr::Leaf(RegisterId(random.below(registers) as u32)),
                    Expr::Const(random.between(0, 1)),
                );
                Action::Op(if random.one_in(4) {
                    Op::Assert(e, Fault::Assertion(None))
                } else {
                    Op::Assume(e)
                })
            }
            6..=14 => Action::Op(store(random, program)),
            _ => Action::Op(load(random, program)),
        });
        if lock.is_some_and(|l| l <= n) && random.one_in(2) {
            actions.push(Action::Unlock);
            lock = None;
        }
    }
    if lock.is_some() && !random.one_in(6) {
        actions.push(Action::Unlock);
    }
    let mut edges: Vec<Edge> = Vec::new();
    for (n, action) in actions.into_iter().enumerate() {
        let from = LocationId(n as u32);
        let to = LocationId(n as u32 + 1);
        if random.one_in(12) && !matches!(action, Action::Lock | Action::Unlock) {
            edges.push(Edge { from, to, action: Action::Op(Op::Skip), span: Span::default() });
        }
        edges.push(Edge { from, to, action, span: Span::default() });
    }
    let places = edges.last().map_or(1, |e| e.to.index() + 1);
    let mut locations = Vec::new();
    let mut first = 0;
    for place in 0..places {
        let last = first + edges.iter().filter(|e| e.from.index() == place).count() as u32;
        locations.push(Location { first_edge: first, last_edge: last, ..Location::default() });
        first = last;
    }
    locations.push(Location { first_edge: first, last_edge: first, ..Location::default() });
    Thread {
        name: format!("t{number}"),
        registers: (0..registers)
            .map(|r| Register { name: format!("r{r}"), init: Init::Value(0), range: None })
            .collect(),
        entry: LocationId(0),
        edges,
        fault: LocationId(places as u32),
        locations,
        family: None,
    }
}

fn some_ops(random: &mut Random, program: &Program, stores: bool) -> Vec<Op> {
    (0..1 + random.below(3))
        .map(|_| if stores && random.one_in(2) { store(random, program) } else { load(random, program) })
        .collect()
}

fn address(random: &mut Random, program: &Program) -> Address {
    let variable = random.below(program.variables.len());
    let index = program.variables[variable].indices.map(|range| match random.one_in(3) {
        true => Expr::Leaf(RegisterId(random.below(2) as u32)),
        false => Expr::Const(random.between(range.low, range.high)),
    });
    Address { variable: VariableId(variable as u32), index }
}

fn load(random: &mut Random, program: &Program) -> Op {
    Op::Load(RegisterId(random.below(2) as u32), address(random, program))
}

fn store(random: &mut Random, program: &Program) -> Op {
    let value = match random.one_in(3) {
        true => Expr::Leaf(RegisterId(random.below(2) as u32)),
        false => Expr::Const(random.between(1, 2)),
    };
    Op::Store(address(random, program), value)
}
