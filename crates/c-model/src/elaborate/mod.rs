//! From the typed tree to core code: an online partial evaluator.
//!
//! Elaboration starts at `main` and follows control flow. Calls are inlined, and known values (numbers, addresses, functions: `env`) replace the
//! expressions that compute them, so that `lock(&l)` accesses `l` itself. Every created thread is elaborated in the same way (`threads`). As long as
//! `main` runs alone and all values are known, `main` is executed at translation time, and the resulting contents of memory become the initial state
//! of the program (`Phase`). If this execution fails, elaboration starts over without it. A loop is elaborated again and again, until the facts at
//! its head are a fixpoint (`loops`); only the code of the last attempt is kept.

mod aggregates;
mod assign;
mod builtins;
mod calls;
mod dispatch;
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
mod sizes;
mod statements;
mod switches;
mod threads;
mod writer;

use std::cell::Cell;

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

/// A result of elaboration. The error is boxed, because it is large and rare.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Maximum number of elaborated statements, including discarded ones.
const MOST_STATEMENTS: usize = 1_000_000;
/// Maximum number of elaborated statements in a program in which calls of a function are nested up to the limit.
const MOST_STATEMENTS_CUT: usize = 50_000;
/// Maximum number of steps executed at translation time.
const MOST_STEPS: usize = 100_000;
/// Maximum nesting depth of statements, expressions and inlined calls.
const DEEPEST: usize = 1_500;
/// Maximum number of attempts; each attempt starts with more facts about the whole program.
const MOST_ATTEMPTS: usize = 40;
/// Number of attempts after which calls through pointers are no longer restricted to the functions found so far.
const MOST_ATTEMPTS_FOR_TARGETS: usize = 25;
/// Maximum number of threads.
const MOST_THREADS: usize = 64;

/// Number of facts that are copied in one unit of work. A step may copy all facts.
const FACTS_IN_A_PIECE: usize = 64;

/// Values for [`Options::recursion`]: the default, and those to be tried in turn while the program is too large.
pub const DEPTHS: [usize; 4] = [8, 4, 2, 1];

/// Options of elaboration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether condition variables have spurious wakeups. C allows such wakeups, but they hide lost signals.
    pub spurious: bool,
    /// Whether an allocation may return freed memory.
    pub reuse: Reuse,
    /// Whether the result is only used for its memory accesses, not to check properties.
    pub accesses_only: bool,
    /// Maximum number of nested calls of a function that calls itself, unless conditions with known values decide how deep the calls go.
    pub recursion: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { spurious: true, reuse: Reuse::Never, accesses_only: false, recursion: DEPTHS[0] }
    }
}

/// Assumptions about the whole program, verified at the end of an attempt.
#[derive(Clone, Debug, Default)]
struct Premises {
    /// Whether `main` is executed at translation time as far as all values are known.
    executed: bool,
    /// Variables that only `main` accesses.
    private: Vec<GlobalId>,
    /// Variables that are never read.
    unread: Vec<GlobalId>,
    /// Whether assumptions about variables are no longer changed, because an earlier assumption did not hold.
    fixed: bool,
    /// The number of threads, if the program joins a thread whose number is not a constant.
    threads: Option<u64>,
    /// Whether condition variables may be used or waited for after one was destroyed.
    outlived: bool,
    /// Whether the program computes which lock it takes.
    computed_locks: bool,
    /// Whether threads other than `main` create threads.
    descendants: bool,
    /// If set, the execution of `main` at translation time ends at its next write to memory once this many threads exist, because the written object
    /// escapes later: under PSO its address could become visible to other threads before the write does.
    written_from: Option<usize>,
    /// The functions that calls through pointers may call.
    targets: dispatch::Targets,
    /// Sizes that allocations may have.
    sizes: sizes::Sizes,
    /// The threads that use RCU.
    rcu: builtins::Users,
}

/// Numbers of accesses to shared memory.
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

/// Elaborates a program to core code, with the nodes of its places. Sets `cut` if the model ends where calls of a function are nested too deeply.
pub fn elaborate(
    unit: &Unit,
    options: &Options,
    cut: &Cell<bool>,
    stop: &Stop<'_>,
) -> std::result::Result<(Core, Nodes), Vec<Diagnostic>> {
    let graph = Graph::new(unit);
    let mut premises = Premises { executed: true, ..Premises::default() };
    for attempt in 0..MOST_ATTEMPTS {
        if attempt == MOST_ATTEMPTS_FOR_TARGETS {
            premises.targets.give_up();
        }
        let mut elaborator = Elaborator::new(unit, options, &graph, premises.clone(), cut, stop);
        let result = elaborator.program();
        if elaborator.refuted {
            premises.executed = false;
            continue;
        }
        if let Err(error) = result {
            if !elaborator.has_unseen_calls() {
                return Err(elaborator.all_errors(*error));
            }
            // The error may follow from the calls that were left out.
            premises.targets.give_up();
            continue;
        }
        if elaborator.has_unseen_calls() {
            premises.targets = elaborator.targets_so_far();
            continue;
        }
        match elaborator.learned() {
            Some(learned) => premises = learned,
            None if elaborator.postponed.is_some() => {
                return Err(elaborator.postponed.into_iter().map(|error| *error).collect());
            }
            None => {
                let Finished { core, nodes, dispatches, sizes } =
                    elaborator.finished().map_err(|error| vec![*error])?;
                if !dispatch::found_more(&mut premises.targets, &dispatches, (&core, &nodes), stop)
                    && !sizes::found_more(&mut premises.sizes, &sizes, (&core, &nodes), stop)
                {
                    return Ok((core, nodes));
                }
            }
        }
    }
    let message = "the translation of this program did not reach a fixpoint";
    Err(vec![
        Diagnostic::new(Span::default(), message)
            .help("make the harness simpler: fewer threads, fewer pointers to them"),
    ])
}

/// The result of an attempt.
struct Finished {
    core: Core,
    nodes: Nodes,
    dispatches: Vec<dispatch::Dispatch>,
    sizes: Vec<sizes::Sized>,
}

/// The phases of elaborating `main`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `main` is the only thread, and is executed at translation time.
    Alone,
    /// `main` has created threads, but since then it has done nothing else that other threads can see; it is still executed at translation time.
    Creating,
    /// `main` is no longer executed: code is emitted for the rest of it.
    Running,
}

/// A created thread.
#[derive(Debug)]
struct Instance {
    start: threads::Start,
    state: threads::State,
}

/// The ways in which an object can be accessed.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// Whether other threads can reach the object, now or later.
    shared: bool,
    /// Whether unknown pointers may point to the object.
    pointed: bool,
    /// The variable with static storage that the object represents, if all threads share that variable.
    global: Option<GlobalId>,
}

/// The state of elaboration.
pub struct Elaborator<'u> {
    pub(super) unit: &'u Unit,
    options: &'u Options,
    graph: &'u Graph,
    /// Whether the model ends somewhere because calls of a function are nested too deeply.
    cut: &'u Cell<bool>,
    stop: &'u Stop<'u>,
    premises: Premises,
    /// Whether the execution at translation time has failed.
    refuted: bool,
    /// Whether a function was reached whose body has errors.
    broken: bool,
    /// An error to report unless a later attempt succeeds.
    postponed: Option<Box<Diagnostic>>,
    pub(super) nodes: Nodes,
    objects: Vec<Object>,
    reach: Vec<Reach>,
    globals: FxHashMap<(GlobalId, Option<ThreadNumber>), ObjectId>,
    uses: FxHashMap<GlobalId, Uses>,
    /// Pairs of objects whose addresses were compared.
    compared: Vec<(ObjectId, ObjectId)>,
    calls: Vec<Call>,
    /// The calls through pointers whose targets are not constants.
    dispatches: Vec<dispatch::Dispatch>,
    /// The allocations whose size is not a constant.
    sizes: Vec<sizes::Sized>,
    warnings: Vec<Diagnostic>,
    instances: Vec<Instance>,
    shared: threads::Shared,
    /// For each known lock and each thread that takes it, the variable that records whether the thread holds it.
    held: FxHashMap<builtins::Holder, ObjectId>,
    rcu: builtins::Rcu,
    /// The number of threads when a condition variable was destroyed, if one was.
    destroyed: Option<usize>,
    /// Whether condition variables may be used after one of them was destroyed, or while it is being destroyed.
    outlived: bool,
    /// Whether the program computes which lock it takes.
    computed_locks: bool,
    /// Whether threads other than `main` create threads.
    descendants: bool,
    done: Vec<Writer>,
    phase: Phase,
    /// The objects that `main` has written at translation time since its buffer was last drained.
    unwritten: Vec<ObjectId>,
    /// The number of threads when the execution of `main` at translation time ended.
    ran_with: usize,
    accesses: Accesses,
    /// Whether the result of the current call is unused.
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
        cut: &'u Cell<bool>,
        stop: &'u Stop<'u>,
    ) -> Self {
        Elaborator {
            cut,
            stop,
            unit,
            options,
            graph,
            phase: if premises.executed { Phase::Alone } else { Phase::Running },
            premises,
            refuted: false,
            broken: false,
            postponed: None,
            nodes: Nodes::new(&unit.records),
            objects: Vec::new(),
            reach: Vec::new(),
            globals: FxHashMap::default(),
            uses: FxHashMap::default(),
            compared: Vec::new(),
            calls: Vec::new(),
            dispatches: Vec::new(),
            sizes: Vec::new(),
            warnings: Vec::new(),
            instances: Vec::new(),
            shared: threads::Shared::default(),
            held: FxHashMap::default(),
            rcu: builtins::Rcu::default(),
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
        let Some(main) = self.main() else {
            return Err(Box::new(
                Diagnostic::new(Span::default(), "there is no function `main`")
                    .help("write a `main` that creates the threads")
                    .lacking_start(),
            ));
        };
        self.initial_threads(main)
    }

    fn main(&self) -> Option<FunctionId> {
        let main = self.unit.functions.iter().position(|function| &*function.name == "main")?;
        Some(FunctionId(main as u32))
    }

    /// An error; or if it was in the body of a function, the errors of all functions that `main` may reach.
    fn all_errors(&self, error: Diagnostic) -> Vec<Diagnostic> {
        let errors = self.main().filter(|_| self.broken).map(|main| self.unit.errors_from(main));
        let errors: Vec<Diagnostic> = errors.unwrap_or_default().into_iter().map(crate::diagnostic).collect();
        if errors.contains(&error) { errors } else { vec![error] }
    }

    /// The current thread.
    pub fn thread(&self) -> ThreadNumber {
        self.writer.number
    }

    /// Whether the current code is in a loop or may be repeated by a jump.
    pub fn repeated(&self) -> bool {
        self.writer.loops > 0
    }

    /// Whether code is executed at translation time, for which its values must be known.
    pub fn executing(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Whether the execution of `main` has to end at its next write to memory.
    fn writes_from_here(&self) -> bool {
        self.phase == Phase::Creating
            && self.premises.written_from.is_some_and(|threads| self.instances.len() >= threads)
    }

    /// An error at a place.
    pub fn error<T>(&self, span: Span, message: impl Into<String>, help: impl Into<String>) -> Result<T> {
        Err(Box::new(Diagnostic::new(self.here(span), message).help(help)))
    }

    /// Adds a warning, once.
    pub fn warn(&mut self, span: Span, message: impl Into<String>) {
        let warning = Diagnostic::new(span.text(), message);
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// A span with the call that leads to the current function.
    pub fn here(&self, span: Span) -> Span {
        if span.call != CallId::default() {
            return span;
        }
        span.called(self.writer.frames.last().map_or(CallId::default(), |frame| frame.call))
    }

    /// Unifies two nodes.
    pub fn unify(&mut self, a: NodeId, b: NodeId, span: Span) -> Result<()> {
        let result = self.nodes.unify(a, b);
        self.clash(result, span)
    }

    /// Records that places of a node have this type.
    pub fn shape(&mut self, node: NodeId, ty: &Type, span: Span) -> Result<()> {
        let result = self.nodes.shape(node, ty, span);
        self.clash(result, span)
    }

    fn clash(&self, result: std::result::Result<(), Clash>, span: Span) -> Result<()> {
        let Err(clash) = result else { return Ok(()) };
        self.error(span, clash.message(), clash.help())
    }

    /// Counts a step, and fails when a limit is reached.
    fn step(&mut self, span: Span) -> Result<()> {
        self.steps += 1;
        if self.stop.after(1 + self.writer.env.registers.len() / FACTS_IN_A_PIECE) {
            return self.error(span, "stopped while this was translated", "");
        }
        if self.refuted || (self.executing() && self.steps > MOST_STEPS) {
            self.refuted = true;
            return self.error(span, "this cannot be executed beforehand", "");
        }
        if self.cut.get() && self.options.recursion > 1 && self.statements > MOST_STATEMENTS_CUT {
            let message = format!(
                "the program is too large: more than {MOST_STATEMENTS_CUT} statements once calls are inlined, those of functions that call themselves up to {} deep",
                self.options.recursion
            );
            return self.error(span, message, "allow fewer nested calls with --recursion N");
        }
        if self.statements > MOST_STATEMENTS || self.steps > 10 * MOST_STATEMENTS {
            let message = format!(
                "the program is too large: more than {MOST_STATEMENTS} statements once calls are inlined and loops that create threads unrolled"
            );
            return self.error(span, message, "make the harness smaller: fewer calls, fewer rounds");
        }
        Ok(())
    }

    /// Runs `work` one nesting level deeper, within the limit.
    fn deeper<T>(&mut self, span: Span, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return self.error(
                span,
                "calls, statements and expressions are nested too deeply",
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

    fn finished(mut self) -> Result<Finished> {
        self.finish_threads()?;
        let core = self.core();
        Ok(Finished { core, nodes: self.nodes, dispatches: self.dispatches, sizes: self.sizes })
    }

    /// The core code of the elaborated threads, which is moved out of the elaborator.
    fn core(&mut self) -> Core {
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
        Core {
            objects: std::mem::take(&mut self.objects),
            threads,
            compared: std::mem::take(&mut self.compared),
            functions: self.unit.functions.iter().map(|function| function.name.to_string()).collect(),
            calls: std::mem::take(&mut self.calls),
            warnings: std::mem::take(&mut self.warnings),
        }
    }
}
