//! From the typed tree to core code: an online partial evaluator.
//!
//! Elaboration starts at `main` and walks the program as it would run. Calls are inlined, and what is known on the way (numbers, addresses, functions: `env`) is
//! put in place of what computes it, so that `lock(&l)` accesses `l` itself. Every thread that is created is walked in the same way (`threads`). While `main` runs alone and
//! everything is known, it is executed here and now, and what it leaves in memory is where the program starts (`Phase`); if that fails, all is done again without.
//! Loops are walked until what is known at their head holds in every round (`loops`); the code of earlier attempts is thrown away.

mod aggregates;
mod assign;
mod builtins;
mod calls;
mod env;
mod expressions;
mod facts;
mod frames;
mod graph;
mod labels;
mod lifetimes;
mod loops;
mod objects;
mod places;
mod statements;
mod switches;
mod threads;
mod writer;

use env::Env;
use facts::Uses;
use fencewright_c::typed::tree::{FunctionId, GlobalId, Type, Unit};
use fencewright_code::core::{
    Core, NodeId, Object, ObjectId, RegisterInfo, Stmt, StmtKind, Thread, ThreadNumber, Value,
};
use fencewright_code::nodes::{Clash, Nodes};
use fencewright_code::numbers::Operand;
use fencewright_code::reuse::Reuse;
use fencewright_program::{Call, CallId, Span};
use fencewright_text::{Diagnostic, Stop};
use graph::Graph;
pub use objects::{Spot, Target};
use rustc_hash::FxHashMap;
use writer::{RegisterState, Writer};

/// A result of elaboration: errors are rare and large.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// So many statements may be elaborated, those that are thrown away included.
const MOST_STATEMENTS: usize = 1_000_000;
/// So many steps may be executed before the program starts.
const MOST_STEPS: usize = 100_000;
/// So deep may statements, expressions and calls be in each other.
const DEEPEST: usize = 1_500;
/// So often a program is looked at, with more known about all of it each time.
const MOST_ATTEMPTS: usize = 10;
/// So many threads may be created.
const MOST_THREADS: usize = 64;

/// A step is as much work as a small piece for each so many facts: what is known may be copied.
const FACTS_IN_A_PIECE: usize = 64;

/// How programs are elaborated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Waiting for a condition variable may end without a signal. That is what C allows, but hides that nobody signals.
    pub spurious: bool,
    /// Whether an allocation may give what was given back.
    pub reuse: Reuse,
    /// Only the accesses matter, and no property.
    pub accesses_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { spurious: true, reuse: Reuse::Never, accesses_only: false }
    }
}

/// What is supposed about the whole program, and made sure of at the end.
#[derive(Clone, Debug, Default)]
struct Premises {
    /// `main` is executed as far as everything is known.
    executed: bool,
    /// Variables that only `main` accesses.
    private: Vec<GlobalId>,
    /// Variables that nobody reads.
    unread: Vec<GlobalId>,
    /// Whether nothing more is learned, because what was learned before did not hold.
    fixed: bool,
    /// How many threads there are, if somebody waits for one whose number is not known.
    threads: Option<u64>,
    /// Whether a condition variable may be used after one was destroyed, or waited for when it is.
    outlived: bool,
    /// Whether it is computed which lock some thread takes.
    computed_locks: bool,
    /// Whether threads other than `main` create threads.
    descendants: bool,
    /// Once there are so many threads, `main` is executed no more when it writes to memory: others get to know what it writes then, and under PSO perhaps
    /// before it is written.
    written_from: Option<usize>,
}

/// How often memory that others can see was accessed.
#[derive(Clone, Copy, Debug, Default)]
struct Accesses {
    reads: usize,
    writes: usize,
}

impl Accesses {
    fn since(self, start: Accesses) -> Accesses {
        Accesses { reads: self.reads - start.reads, writes: self.writes - start.writes }
    }

    fn any(self) -> bool {
        self.reads + self.writes > 0
    }
}

/// Core code for a program, and the nodes that its places belong to.
pub fn elaborate(
    unit: &Unit,
    options: &Options,
    stop: &Stop<'_>,
) -> std::result::Result<(Core, Nodes), Vec<Diagnostic>> {
    let graph = Graph::new(unit);
    let mut premises = Premises { executed: true, ..Premises::default() };
    for _ in 0..MOST_ATTEMPTS {
        let mut elaborator = Elaborator::new(unit, options, &graph, premises.clone(), stop);
        let result = elaborator.program();
        if elaborator.refuted {
            premises.executed = false;
            continue;
        }
        result.map_err(|error| vec![*error])?;
        match elaborator.learned() {
            Some(learned) => premises = learned,
            None if elaborator.postponed.is_some() => {
                return Err(elaborator.postponed.into_iter().map(|error| *error).collect());
            }
            None => return elaborator.finished().map_err(|error| vec![*error]),
        }
    }
    let message = "what this program does could not be found out";
    Err(vec![
        Diagnostic::new(Span::default(), message)
            .help("make the harness simpler: fewer threads, fewer pointers to them"),
    ])
}

/// How far the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `main` is alone, and is executed.
    Alone,
    /// `main` has created threads and has done nothing else since that anybody can see; it is still executed.
    Creating,
    /// Code is written.
    Running,
}

/// A thread that was created.
#[derive(Debug)]
struct Instance {
    start: threads::Start,
    state: threads::State,
}

/// Who can reach an object.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// Other threads, now or later.
    shared: bool,
    /// Pointers whose value is not known.
    pointed: bool,
    /// The variable that it is, if all threads share it.
    global: Option<GlobalId>,
}

/// The work on one program.
pub struct Elaborator<'u> {
    pub(super) unit: &'u Unit,
    options: &'u Options,
    graph: &'u Graph,
    stop: &'u Stop<'u>,
    premises: Premises,
    /// Whether something that was supposed does not hold.
    refuted: bool,
    /// What is wrong with the program unless another attempt knows more.
    postponed: Option<Box<Diagnostic>>,
    pub(super) nodes: Nodes,
    objects: Vec<Object>,
    reach: Vec<Reach>,
    globals: FxHashMap<(GlobalId, Option<ThreadNumber>), ObjectId>,
    uses: FxHashMap<GlobalId, Uses>,
    /// Pairs of objects whose addresses were compared.
    compared: Vec<(ObjectId, ObjectId)>,
    calls: Vec<Call>,
    warnings: Vec<Diagnostic>,
    instances: Vec<Instance>,
    shared: threads::Shared,
    /// For each lock, and each thread that takes it, how often that thread has it: known only where the lock is.
    held: FxHashMap<builtins::Holder, ObjectId>,
    /// How many threads there were when a condition variable was destroyed, if one was.
    destroyed: Option<usize>,
    /// Whether condition variables may be used after that, or by others at the same time.
    outlived: bool,
    /// Whether it is computed which lock some thread takes.
    computed_locks: bool,
    /// Whether threads other than `main` create threads.
    descendants: bool,
    done: Vec<Writer>,
    phase: Phase,
    /// The objects that `main` has written, while it was executed, since its buffers were drained last.
    unwritten: Vec<ObjectId>,
    /// How many threads there were when `main` was executed no more.
    ran_with: usize,
    accesses: Accesses,
    /// Whether nobody wants the value of the call in hand.
    pub(super) unused: bool,
    statements: usize,
    steps: usize,
    depth: usize,
    writer: Writer,
}

impl<'u> Elaborator<'u> {
    fn new(
        unit: &'u Unit,
        options: &'u Options,
        graph: &'u Graph,
        premises: Premises,
        stop: &'u Stop<'u>,
    ) -> Self {
        Elaborator {
            stop,
            unit,
            options,
            graph,
            phase: if premises.executed { Phase::Alone } else { Phase::Running },
            premises,
            refuted: false,
            postponed: None,
            nodes: Nodes::new(&unit.records),
            objects: Vec::new(),
            reach: Vec::new(),
            globals: FxHashMap::default(),
            uses: FxHashMap::default(),
            compared: Vec::new(),
            calls: Vec::new(),
            warnings: Vec::new(),
            instances: Vec::new(),
            shared: threads::Shared::default(),
            held: FxHashMap::default(),
            destroyed: None,
            outlived: false,
            computed_locks: false,
            descendants: false,
            done: Vec::new(),
            unwritten: Vec::new(),
            ran_with: 0,
            accesses: Accesses::default(),
            unused: false,
            statements: 0,
            steps: 0,
            depth: 0,
            writer: Writer::new(ThreadNumber(0), Span::default()),
        }
    }

    fn program(&mut self) -> Result<()> {
        let Some(main) = self.unit.functions.iter().position(|function| &*function.name == "main") else {
            return Err(Box::new(
                Diagnostic::new(Span::default(), "there is no function `main`")
                    .help("write a `main` that creates the threads")
                    .lacking_start(),
            ));
        };
        self.initial_threads(FunctionId(main as u32))
    }

    /// The thread in hand.
    pub fn thread(&self) -> ThreadNumber {
        self.writer.number
    }

    /// Whether what stands here may be executed several times.
    pub fn repeated(&self) -> bool {
        self.writer.loops > 0
    }

    /// Whether everything is executed here and now, so that values must be known.
    pub fn executing(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Whether `main` has created all threads that it creates while it is executed, and what it writes from here on is to be written down.
    fn writes_from_here(&self) -> bool {
        self.phase == Phase::Creating
            && self.premises.written_from.is_some_and(|threads| self.instances.len() >= threads)
    }

    /// An error at a place.
    pub fn error<T>(&self, span: Span, message: impl Into<String>, help: impl Into<String>) -> Result<T> {
        Err(Box::new(Diagnostic::new(self.here(span), message).help(help)))
    }

    /// Something odd.
    pub fn warn(&mut self, span: Span, message: impl Into<String>) {
        let warning = Diagnostic::new(span.text(), message);
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The place with the call that led here.
    pub fn here(&self, span: Span) -> Span {
        if span.call != CallId::default() {
            return span;
        }
        span.called(self.writer.frames.last().map_or(CallId::default(), |frame| frame.call))
    }

    /// Two nodes become one.
    pub fn unify(&mut self, a: NodeId, b: NodeId, span: Span) -> Result<()> {
        let result = self.nodes.unify(a, b);
        self.clash(result, span)
    }

    /// The node stands for places of this type.
    pub fn shape(&mut self, node: NodeId, ty: &Type, span: Span) -> Result<()> {
        let result = self.nodes.shape(node, ty, span);
        self.clash(result, span)
    }

    fn clash(&self, result: std::result::Result<(), Clash>, span: Span) -> Result<()> {
        let Err(clash) = result else { return Ok(()) };
        self.error(span, clash.message(), clash.help())
    }

    /// One step of work, within the limits.
    fn step(&mut self, span: Span) -> Result<()> {
        self.steps += 1;
        if self.stop.after(1 + self.writer.env.registers.len() / FACTS_IN_A_PIECE) {
            return self.error(span, "stopped while this was translated", "");
        }
        if self.refuted || (self.executing() && self.steps > MOST_STEPS) {
            self.refuted = true;
            return self.error(span, "this cannot be executed beforehand", "");
        }
        if self.statements > MOST_STATEMENTS || self.steps > 10 * MOST_STATEMENTS {
            let message = format!(
                "the program is too large: more than {MOST_STATEMENTS} statements once calls are inlined and loops that create threads unrolled"
            );
            return self.error(span, message, "make the harness smaller: fewer calls, fewer rounds");
        }
        Ok(())
    }

    /// Goes one level deeper.
    fn deeper<T>(&mut self, span: Span, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return self.error(
                span,
                "calls, statements and expressions are too deep in each other",
                "split the function, or take the recursion out",
            );
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn is_null(operand: &Operand) -> bool {
        matches!(operand.value, Value::Number(0))
    }

    fn finished(mut self) -> Result<(Core, Nodes)> {
        self.finish_threads()?;
        let mut threads = Vec::new();
        for mut writer in std::mem::take(&mut self.done) {
            let registers = writer.registers.iter().map(|state| RegisterInfo {
                name: state.name.to_string(),
                initial: None,
                points: state.points,
                about: state.about,
            });
            threads.push(Thread {
                name: self.thread_name(writer.number),
                registers: registers.collect(),
                code: writer.blocks.pop().unwrap_or_default(),
                span: writer.span,
                late: self.is_late(writer.number),
                function: self.function_of(writer.number),
                creator: self.instances[writer.number.0 as usize].state.creator(),
                started: self.instances[writer.number.0 as usize].state.started(),
            });
        }
        let core = Core {
            objects: self.objects,
            threads,
            compared: self.compared,
            functions: self.unit.functions.iter().map(|function| function.name.to_string()).collect(),
            calls: self.calls,
            warnings: self.warnings,
        };
        Ok((core, self.nodes))
    }
}
