//! From the typed tree to core code: an online partial evaluator.
//!
//! Elaboration starts at `main` and follows control flow. Calls are inlined, and known values (numbers, addresses, functions: see `env`) replace the
//! expressions that compute them, so that `lock(&l)` accesses `l` itself. Every created thread is elaborated in the same way (`threads`). As long as
//! all values are known and no other thread can see what `main` does, `main` is executed at translation time, and the resulting contents of memory
//! become the initial state of the program (`Phase`). If this execution fails, elaboration starts over without it. A loop is elaborated repeatedly
//! until the facts at its head are a fixpoint (`loops`); only the code of the last elaboration is kept.

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
mod raw;
mod replaced;
mod settled;
mod sizes;
mod statements;
mod switches;
mod threads;
mod writer;

use std::cell::Cell;

pub(crate) use builtins::{Form, form};
use env::Env;
use facts::Uses;
use fencewright_c::typed::tree::{FunctionId, GlobalId, Type, Unit};
use fencewright_code::core::{Core, NodeId, Object, ObjectId, Stmt, StmtKind, ThreadNumber, Value};
use fencewright_code::nodes::{Clash, Nodes};
use fencewright_code::numbers::Operand;
use fencewright_code::reuse::Reuse;
use fencewright_program::{Call, CallId, Span};
use fencewright_text::{Diagnostic, Stop};
use graph::Graph;
pub(crate) use graph::{Part, walk_block};
pub use objects::{Spot, Target};
pub use replaced::Replaced;
use rustc_hash::{FxHashMap, FxHashSet};
use writer::{RegisterState, Writer};

/// The result of elaborating one construct. The error is boxed, because it is large and rare.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Maximum number of elaborated statements in one attempt, including statements that are discarded later.
const MOST_STATEMENTS: usize = 1_000_000;
/// Maximum number of elaborated statements if the model ends where recursive calls reach the limit [`Options::recursion`].
const MOST_STATEMENTS_CUT: usize = 50_000;
/// Maximum number of steps executed at translation time.
const MOST_STEPS: usize = 100_000;
/// Maximum nesting depth of statements, expressions and inlined calls.
const DEEPEST: usize = 1_500;
/// Maximum number of attempts; each attempt starts with the premises that the previous attempt derived about the whole program.
const MOST_ATTEMPTS: usize = 40;
/// Number of attempts after which calls through pointers are assumed to go to any function of their type whose address is taken.
const MOST_ATTEMPTS_FOR_TARGETS: usize = 25;
/// Maximum number of threads.
const MOST_THREADS: usize = 64;

/// Number of facts whose copying counts as one unit of work. A step may copy all facts.
const FACTS_IN_A_PIECE: usize = 64;

/// Values for [`Options::recursion`]: the default, followed by the smaller ones that are tried in turn while the program is too large.
pub const DEPTHS: [usize; 5] = [8, 6, 4, 2, 1];

/// Options of elaboration.
#[derive(Clone, Copy, Debug)]
pub struct Options<'r> {
    /// Whether waits on condition variables and futexes may wake up spuriously: true for safety properties, false for `deadlock` and `termination`,
    /// where such wakeups would hide lost signals.
    pub spurious: bool,
    /// The model of reuse: whether an allocation may return a freed object and, if not, whether the model ends where that is observable.
    pub reuse: Reuse,
    /// Whether the result is only used to find memory accesses, not to check properties.
    pub accesses_only: bool,
    /// Maximum number of nested calls of a recursive function. Calls whose depth is decided by conditions with known values do not count.
    pub recursion: usize,
    /// The functions that the user has replaced.
    pub replaced: &'r Replaced,
}

/// Assumptions of an attempt about the whole program, verified at its end.
#[derive(Clone, Debug, Default)]
struct Premises {
    /// Whether `main` is executed at translation time as long as all values are known.
    executed: bool,
    /// Variables with static storage that only `main` accesses.
    private: Vec<GlobalId>,
    /// Variables with static storage that are never read.
    unread: Vec<GlobalId>,
    /// Whether `private` and `unread` are no longer changed, because an earlier assumption about variables did not hold.
    fixed: bool,
    /// The number of threads, if the program joins a thread whose number is not a constant.
    threads: Option<u64>,
    /// Whether the program may use a condition variable after or during its destruction. If not, condition variables need no state in the model.
    outlived: bool,
    /// The facts about locks that are not recorded, because the program computes the address of a lock that it takes.
    computed_locks: builtins::Computed,
    /// Whether threads other than `main` create threads.
    descendants: bool,
    /// Whether some key for thread-specific data has a destructor.
    destructors: bool,
    /// Maximum number of threads created at one place; `None` until an attempt has found that there may be more than the default.
    threads_per_site: Option<usize>,
    /// The uses of futexes.
    futexes: builtins::Futexes,
    /// If set, the execution of `main` at translation time ends at its next write to memory once this number of threads exists, because the written
    /// object escapes later: under PSO, other threads could see its address before they see the written value.
    written_from: Option<usize>,
    /// The functions to which calls through pointers may go.
    targets: dispatch::Targets,
    /// The sizes that allocations may have.
    sizes: sizes::Sizes,
    /// The threads that use RCU.
    rcu: builtins::Users,
    /// The cells that hold one value whenever a thread reads them.
    settled: settled::Settled,
}

/// The numbers of statements emitted so far that read and that write shared memory.
#[derive(Clone, Copy, Debug, Default)]
struct Accesses {
    reads: usize,
    /// The reads among them that are volatile or atomic.
    ordered: usize,
    writes: usize,
}

impl Accesses {
    fn since(self, start: Accesses) -> Accesses {
        Accesses {
            reads: self.reads - start.reads,
            ordered: self.ordered - start.ordered,
            writes: self.writes - start.writes,
        }
    }

    /// Whether the order of these accesses and of others matters even to a single thread: one side writes, and the other one reads or writes.
    fn conflict(self, others: Accesses) -> bool {
        self.writes > 0 && others.any() || others.writes > 0 && self.any()
    }

    fn any(self) -> bool {
        self.reads + self.writes > 0
    }
}

/// Elaborates a program to core code, with the nodes of its places. Sets `cut` if the model ends somewhere because recursive calls reach the limit.
pub fn elaborate(
    unit: &Unit,
    options: &Options<'_>,
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
        if let Some(learned) = elaborator.counted_threads() {
            premises = learned;
            continue;
        }
        if let Err(error) = result {
            if !elaborator.has_unseen_calls() {
                return Err(elaborator.all_errors(*error));
            }
            // The error may be a consequence of leaving calls out, so another attempt leaves no call out.
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
                let missing = elaborator.functions.missing();
                let read_cells = std::mem::take(&mut elaborator.read_cells);
                let Finished { core, nodes, dispatches, sizes } = elaborator
                    .finished()
                    .map_err(|error| if missing.is_empty() { vec![*error] } else { missing.clone() })?;
                if !dispatch::found_more(&mut premises.targets, &dispatches, (&core, &nodes), stop)
                    && !sizes::found_more(&mut premises.sizes, &sizes, (&core, &nodes), stop)
                    && !premises.settled.is_revised(&read_cells, (&core, &nodes), stop)
                {
                    return if missing.is_empty() { Ok((core, nodes)) } else { Err(missing) };
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

/// The result of a successful attempt.
struct Finished {
    core: Core,
    nodes: Nodes,
    dispatches: Vec<dispatch::Dispatch>,
    sizes: Vec<sizes::Sized>,
}

/// The phases of elaborating `main`, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `main` is the only thread, and is executed at translation time.
    Alone,
    /// `main` has created threads, but has since done nothing that these threads can see. It is still executed at translation time.
    Creating,
    /// The execution has ended: code is emitted for the rest of `main`.
    Running,
}

/// A thread: `main`, or one that the program creates.
#[derive(Debug)]
struct Instance {
    start: threads::Start,
    state: threads::State,
}

/// Who can access an object, and through which pointers.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// Whether other threads can reach the object, now or later.
    shared: bool,
    /// Whether pointers with unknown values may point to the object.
    pointed: bool,
    /// The variable with static storage that the object represents; `None` for other objects and for thread-local variables.
    global: Option<GlobalId>,
}

/// The state of one attempt at elaboration.
pub struct Elaborator<'u> {
    pub(super) unit: &'u Unit,
    options: &'u Options<'u>,
    graph: &'u Graph,
    /// Whether the model ends somewhere because recursive calls reach the limit.
    cut: &'u Cell<bool>,
    stop: &'u Stop<'u>,
    premises: Premises,
    /// Whether the execution at translation time has failed.
    refuted: bool,
    /// Whether control reached a function whose body has errors.
    broken: bool,
    /// An error to report unless a later attempt succeeds.
    postponed: Option<Box<Diagnostic>>,
    pub(super) nodes: Nodes,
    objects: Vec<Object>,
    reach: Vec<Reach>,
    globals: FxHashMap<(GlobalId, Option<ThreadNumber>), ObjectId>,
    uses: FxHashMap<GlobalId, Uses>,
    /// Pairs of objects whose addresses were compared and found different.
    compared: Vec<(ObjectId, ObjectId)>,
    calls: Vec<Call>,
    functions: replaced::Found,
    /// The calls reached so far through pointers whose values are not constants.
    dispatches: Vec<dispatch::Dispatch>,
    /// The allocations reached so far whose sizes are not constants.
    sizes: Vec<sizes::Sized>,
    warnings: Vec<Diagnostic>,
    instances: Vec<Instance>,
    shared: threads::Shared,
    /// For each known lock and each thread that takes it, the variable that records whether the thread holds it.
    held: FxHashMap<builtins::Holder, ObjectId>,
    rcu: builtins::Rcu,
    /// The plain reads of parts of allocated objects that are loads in this attempt.
    read_cells: FxHashSet<(ThreadNumber, settled::Cell)>,
    /// The number of threads that existed at the last destruction of a condition variable; `None` if there was no destruction.
    destroyed: Option<usize>,
    /// Whether a condition variable may be used after or during its destruction: becomes [`Premises::outlived`] of the next attempt.
    outlived: bool,
    /// The facts about locks whose addresses the program computes where it takes them.
    computed_locks: builtins::Computed,
    /// Whether threads other than `main` create threads.
    descendants: bool,
    /// Whether some key for thread-specific data has a destructor.
    destructors: bool,
    /// The greatest number of threads that `main`, executed at translation time, would create at one place, if that is more than the default; the
    /// attempt then leaves the others out. Becomes [`Premises::threads_per_site`].
    threads_counted: usize,
    /// The uses of futexes.
    futexes: builtins::Futexes,
    /// The variables that record the sleep of a thread that waits for a futex, by thread and name.
    asleep: FxHashMap<(ThreadNumber, &'static str), ObjectId>,
    done: Vec<Writer>,
    phase: Phase,
    /// The objects that `main` has written at translation time since its buffer was last drained.
    unwritten: Vec<ObjectId>,
    /// The number of threads that existed when the execution of `main` at translation time ended.
    ran_with: usize,
    accesses: Accesses,
    /// Whether the caller ignores the return value of the current call.
    pub(super) unused: bool,
    statements: usize,
    steps: usize,
    depth: usize,
    writer: Writer,
}

impl<'u> Elaborator<'u> {
    fn new(
        unit: &'u Unit,
        options: &'u Options<'u>,
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
            functions: replaced::Found::default(),
            dispatches: Vec::new(),
            sizes: Vec::new(),
            warnings: Vec::new(),
            instances: Vec::new(),
            shared: threads::Shared::default(),
            held: FxHashMap::default(),
            rcu: builtins::Rcu::default(),
            read_cells: FxHashSet::default(),
            destroyed: None,
            outlived: false,
            computed_locks: builtins::Computed::default(),
            descendants: false,
            destructors: false,
            threads_counted: 0,
            futexes: builtins::Futexes::default(),
            asleep: FxHashMap::default(),
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

    /// The error, unless it is in the body of a function: then the errors of all functions that `main` may reach. If functions without a body were
    /// called, the error may follow from this, and only these calls are errors.
    fn all_errors(&self, error: Diagnostic) -> Vec<Diagnostic> {
        let missing = self.functions.missing();
        if !missing.is_empty() {
            return missing;
        }
        let errors = self.main().filter(|_| self.broken).map(|main| self.unit.errors_from(main));
        let errors: Vec<Diagnostic> = errors.unwrap_or_default().into_iter().map(crate::diagnostic).collect();
        if errors.contains(&error) { errors } else { vec![error] }
    }

    /// The thread being elaborated.
    pub fn thread(&self) -> ThreadNumber {
        self.writer.number
    }

    /// Whether control may reach the current code more than once, because it is in a loop or a backward jump encloses it.
    pub fn repeated(&self) -> bool {
        self.writer.loops > 0
    }

    /// Whether `main` is being executed at translation time, so that all values must be known.
    pub fn executing(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Whether the execution of `main` has to end at its next write to memory.
    fn writes_from_here(&self) -> bool {
        self.phase == Phase::Creating
            && self.premises.written_from.is_some_and(|threads| self.instances.len() >= threads)
    }

    /// An error at a position, with the calls that lead there.
    pub fn error<T>(&self, span: Span, message: impl Into<String>, help: impl Into<String>) -> Result<T> {
        Err(Box::new(Diagnostic::new(self.here(span), message).help(help)))
    }

    /// Adds a warning, unless the same warning was given before.
    pub fn warn(&mut self, span: Span, message: impl Into<String>) {
        let warning = Diagnostic::new(span.text(), message);
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The span, extended by the inlined call that contains it.
    pub fn here(&self, span: Span) -> Span {
        if span.call != CallId::default() {
            return span;
        }
        span.called(self.writer.frames.last().map_or(CallId::default(), |frame| frame.call))
    }

    /// Unifies two nodes; an error at `span` if their types clash.
    pub fn unify(&mut self, a: NodeId, b: NodeId, span: Span) -> Result<()> {
        let result = self.nodes.unify(a, b);
        self.clash(result, span)
    }

    /// Records that the places of a node have this type; an error at `span` if that clashes with their type.
    pub fn shape(&mut self, node: NodeId, ty: &Type, span: Span) -> Result<()> {
        let result = self.nodes.shape(node, ty, span);
        self.clash(result, span)
    }

    fn clash(&self, result: std::result::Result<(), Clash>, span: Span) -> Result<()> {
        let Err(clash) = result else { return Ok(()) };
        self.error(span, clash.message(), clash.help())
    }

    /// Counts one step; an error if a limit is reached, execution at translation time has failed, or `stop` asks to stop.
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

    /// Runs `work` one nesting level deeper; an error if the nesting is too deep.
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
}
