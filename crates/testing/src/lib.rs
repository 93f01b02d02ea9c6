//! Random programs for differential tests, and other test inputs.
//!
//! The random programs are small. They have every kind of action, and properties over labels, registers, memory, faults, deadlocks and final states.
//! The same seed gives the same program on every machine. Four modules change random programs: [`arithmetic`] adds operators, [`apart`] separates the
//! variables of threads, [`bystanders`] makes some threads irrelevant to some properties, and [`waiting`] makes threads wait for each other. The
//! functions [`contend`], [`group`] and [`separate`] change programs too: the stores whose order threads observe. Other modules are for other tests:
//! [`c`] makes random C programs with threads, [`runs`] random C programs of one thread, [`families`] random thread families, [`bounds`] random
//! bounds on buffers, [`hard`] has programs that stress resource limits, [`measure`] measures the time and memory of a command, [`corpora`] finds
//! external test inputs, and [`sets`] interprets the commands of machines with summary cells.
//!
//! Three oracles are written for clarity, not for speed: [`abstract_buffers`] has the machines with abstract store buffers, [`backward`] decides
//! reachability with multisets, and [`traces`] counts executions up to the order of independent events.

#![forbid(unsafe_code)]

pub mod abstract_buffers;
pub mod apart;
pub mod arithmetic;
pub mod backward;
pub mod bounds;
pub mod bystanders;
pub mod c;
pub mod corpora;
pub mod families;
pub mod hard;
pub mod measure;
mod properties;
mod reshape;
pub mod runs;
pub mod sets;
mod threads;
pub mod traces;
pub mod waiting;

use fencewright_program::{
    Action, BinaryOp, Expr, Hints, Init, Numbers, Op, Program, Range, RegisterId, Span, Thread, UnaryOp,
    Variable,
};

pub use fencewright_generate::Random;
pub use reshape::{contend, group, separate};

use properties::properties;
use threads::thread;

/// Size and features of random programs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Maximum number of threads, at least two.
    pub threads: usize,
    /// Maximum number of statements per thread.
    pub length: usize,
    /// Whether control may jump backwards.
    pub loops: bool,
    /// Whether to test corner cases of the language: negative lower bounds of declared ranges and of choices, often with `numbers nat`; open arrays
    /// and arrays of a single cell; atomic steps in which an operation that may fault stands between two stores; `numbers real`.
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
        // If there are more than two threads, they are short, because long ones have too many interleavings for the oracle.
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

/// A random declared range, whose upper bound is at most `high`. With `corners`, the lower bound may be -1.
fn declared(random: &mut Random, corners: bool, high: i64) -> Range {
    Range { low: if corners { random.between(-1, 0) } else { 0 }, high: random.between(1, high) }
}

/// Removes choices, and operators that do not exist for reals. Then all values are integers, which the oracle can represent, although the program
/// declares reals.
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

fn initial(random: &mut Random) -> Init {
    match random.below(16) {
        0 | 1 => Init::Any(Some(Range { low: 0, high: 1 })),
        2 => Init::Any(Some(Range { low: 0, high: 2 })),
        _ => Init::Value(random.between(0, 1)),
    }
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
