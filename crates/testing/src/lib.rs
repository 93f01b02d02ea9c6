//! Random programs for differential tests, and other test inputs.
//!
//! The random programs are small, with every kind of action and with properties over labels, registers, memory, faults,
//! deadlocks and final states. The same seed gives the same program on every machine. These modules modify them: [`arithmetic`] adds operators,
//! [`apart`] separates the variables of threads, [`bystanders`] adds irrelevant threads, [`waiting`] makes threads wait for each other. [`hard`] has
//! programs that stress resource limits, [`measure`] measures a command on them, [`corpora`] finds external test inputs, and [`sets`] interprets
//! the commands of machines with summary cells.

#![forbid(unsafe_code)]

pub mod apart;
pub mod arithmetic;
pub mod bounds;
pub mod bystanders;
pub mod c;
pub mod corpora;
pub mod families;
pub mod hard;
pub mod measure;
pub mod sets;
pub mod waiting;

use fencewright_program::{
    Action, Address, BinaryOp, Edge, Expr, Fault, Formula, Hints, Init, Location, LocationId, Numbers,
    Observable, Op, Program, Property, PropertyKind, Quantifier, Range, Register, RegisterId, Span, Thread,
    ThreadId, UnaryOp, Variable, VariableId,
};

pub use fencewright_generate::Random;

/// Size and features of random programs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Maximum number of threads, at least two.
    pub threads: usize,
    /// Maximum number of statements per thread.
    pub length: usize,
    /// Whether control may jump backwards.
    pub loops: bool,
    /// Whether to test corner cases of the language: ranges and choices below 0, often with `numbers nat`; open arrays
    /// and arrays of a single cell; atomic steps that store after they may have faulted; `numbers real`.
    pub corners: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape { threads: 3, length: 5, loops: true, corners: false }
    }
}

/// A random program with a handful of properties.
pub fn program(random: &mut Random, shape: Shape) -> Program {
    let mut program = Program { hints: Hints::default(), ..Program::default() };
    program.numbers = match shape.corners {
        true => *random.pick(&[
            Numbers::Nat,
            Numbers::Nat,
            Numbers::Nat,
            Numbers::Int,
            Numbers::Int,
            Numbers::Real,
        ]),
        false if random.one_in(8) => Numbers::Nat,
        false => Numbers::Int,
    };
    let (few, fewer) = if shape.corners { (2, 3) } else { (4, 8) };
    for n in 0..1 + random.below(3) {
        let indices = random.one_in(few).then(|| {
            let low = random.between(-1, 0);
            Range { low, high: low + random.between(!shape.corners as i64, 2) }
        });
        let cells = indices.map_or(1, Range::size) as usize;
        let range = random.one_in(few).then(|| declared(random, shape.corners, 3));
        let open = shape.corners && indices.is_some() && random.one_in(2);
        let init = (0..cells).map(|_| initial(random)).collect();
        let base = program.cells() as u32;
        program.variables.push(Variable {
            name: format!("x{n}"),
            base,
            indices,
            open,
            range,
            init,
            span: Span::default(),
        });
    }
    let threads = 2 + random.below(shape.threads.saturating_sub(1));
    let all_alike = random.one_in(5);
    for t in 0..threads {
        if let (true, Some(first)) = (all_alike, program.threads.first()) {
            let twin = Thread { name: format!("t{t}"), ..first.clone() };
            program.threads.push(twin);
            continue;
        }
        // Three long threads have too many interleavings for the oracle.
        let length = if threads > 2 { shape.length.min(3) } else { shape.length };
        let thread = thread(random, &program, t, length, shape, fewer);
        program.threads.push(thread);
    }
    if program.numbers == Numbers::Real {
        make_exact(&mut program);
    }
    program.properties = properties(random, &program);
    program
}

/// A random range of a declaration.
fn declared(random: &mut Random, corners: bool, high: i64) -> Range {
    Range { low: if corners { random.between(-1, 0) } else { 0 }, high: random.between(1, high) }
}

/// Removes choices, and operators that the reals do not have, so that all values are integers although the program declares
/// reals.
fn make_exact(program: &mut Program) {
    let registers = program.threads.iter_mut().flat_map(|t| t.registers.iter_mut().map(|r| &mut r.init));
    for init in program.variables.iter_mut().flat_map(|v| &mut v.init).chain(registers) {
        if let Init::Any(range) = *init {
            *init = Init::Value(range.map_or(0, |r| r.low));
        }
    }
    let exact = |op: &mut Op| match op {
        Op::Skip => {}
        Op::Havoc(register, range) => *op = Op::Assign(*register, Expr::Const(range.map_or(0, |r| r.low))),
        Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) => make_linear(e),
        Op::Load(_, address) => address.index.iter_mut().for_each(make_linear),
        Op::Store(address, e) => address.index.iter_mut().chain([e]).for_each(make_linear),
    };
    for edge in program.threads.iter_mut().flat_map(|t| &mut t.edges) {
        match &mut edge.action {
            Action::Op(op) => exact(op),
            Action::Atomic { ops, .. } => ops.iter_mut().for_each(exact),
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => {}
        }
    }
}

fn make_linear(e: &mut Expr<RegisterId>) {
    match e {
        Expr::Const(_) | Expr::Leaf(_) => {}
        Expr::Unary(op, operand) => {
            if op.wraps() {
                *op = UnaryOp::Neg;
            }
            make_linear(operand);
        }
        Expr::Binary(op, left, right) => {
            use BinaryOp::*;
            if matches!(op, Div | Rem | BitAnd | BitOr | BitXor | Shl | Shr) {
                *op = Sub;
            }
            make_linear(left);
            make_linear(right);
        }
        Expr::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|part| make_linear(part));
        }
    }
}

/// Makes delayed stores observable: most edges become stores to a variable that another thread loads, or loads
/// of one that another thread stores; one edge in `kept` stays as it is. Without this, almost all random programs are robust.
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

/// Replaces the edges after most stores by a store-store fence, or sometimes by a full one.
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

/// Makes groups of stores that may leave in any order under PSO: some consecutive steps become stores to any cells, perhaps with other steps between them, and most
/// groups are separated by fences from the code before and after.
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

fn initial(random: &mut Random) -> Init {
    match random.below(16) {
        0 | 1 => Init::Any(Some(Range { low: 0, high: 1 })),
        2 => Init::Any(Some(Range { low: 0, high: 2 })),
        _ => Init::Value(random.between(0, 1)),
    }
}

fn thread(
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
    // Some threads are a locked section: `lock` first, `unlock` before the last step.
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
                // A branch: a condition and its negation.
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

/// An atomic step that stores, does something that may fault, and stores again.
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

fn properties(random: &mut Random, program: &Program) -> Vec<Property> {
    let named = |name: &str, kind| Property { name: name.into(), kind, span: Span::default() };
    let quantifier = *random.pick(&[Quantifier::Exists, Quantifier::Never, Quantifier::Forall]);
    vec![
        named("labels", PropertyKind::Never(labels(random, program))),
        named("mixed", PropertyKind::Never(mixed(random, program, 2))),
        named("registers", PropertyKind::Never(registers(random, program))),
        Property::assertions(),
        Property::deadlock(),
        named("final", PropertyKind::Finally(quantifier, mixed(random, program, 1))),
    ]
}

/// All threads are at certain labels at the same time, as in mutual exclusion.
fn labels(random: &mut Random, program: &Program) -> Formula {
    let places = program.threads.iter().map(|t| t.locations.len() - 1).min().unwrap_or(1);
    let same = random.one_in(2).then(|| LocationId(random.below(places) as u32));
    let part = |(id, _)| match same {
        Some(place) => Expr::Leaf(Observable::At(id, vec![place])),
        None => at(random, program, id),
    };
    Expr::all(program.threads().map(part).collect())
}

/// A register of every thread has a certain value at the same time.
fn registers(random: &mut Random, program: &Program) -> Formula {
    let part = |(id, thread): (ThreadId, &Thread)| {
        let register = RegisterId(random.below(thread.registers.len()) as u32);
        let leaf = Expr::Leaf(Observable::Register(id, register));
        Expr::binary(BinaryOp::Eq, leaf, Expr::Const(random.between(0, 2)))
    };
    Expr::all(program.threads().map(part).collect())
}

fn at(random: &mut Random, program: &Program, id: ThreadId) -> Formula {
    // The fault location has no label, so no formula names it.
    let places = program.thread(id).locations.len() - 1;
    Expr::Leaf(Observable::At(id, vec![LocationId(random.below(places) as u32)]))
}

fn mixed(random: &mut Random, program: &Program, depth: usize) -> Formula {
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

/// The number of random programs for a test: `FENCEWRIGHT_PROGRAMS` if it is set, otherwise this many.
pub fn programs_or(otherwise: usize) -> usize {
    let asked = std::env::var("FENCEWRIGHT_PROGRAMS").ok();
    asked.map_or(otherwise, |n| n.parse().expect("FENCEWRIGHT_PROGRAMS is a number of programs"))
}

/// Maps a range of numbers in parallel on all cores; the results are in order.
pub fn spread<T: Send>(numbers: std::ops::Range<u64>, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = std::sync::atomic::AtomicU64::new(numbers.start);
    let part = || {
        let taken = || Some(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        std::iter::from_fn(taken).take_while(|n| *n < numbers.end).map(|n| (n, work(n))).collect::<Vec<_>>()
    };
    let mut done: Vec<(u64, T)> = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(part)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("every number is fine")).collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The debug output of a syntax tree without its source spans, to compare trees that were parsed from different texts.
pub fn without_spans(tree: &impl std::fmt::Debug) -> String {
    let text = format!("{tree:?}");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find("Span {") {
        let end = start + rest[start..].find('}').expect("spans are printed with braces");
        kept.push_str(&rest[..start]);
        rest = &rest[end + 1..];
    }
    kept + rest
}
