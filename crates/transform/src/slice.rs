//! Slices: programs without some threads that are irrelevant to a property.
//!
//! A thread affects another one only through memory: it stores to a cell that the other thread loads. So a set of threads is *closed* if no thread
//! outside it may store to a cell that a thread inside may load. A [`Slice`] is the program restricted to the threads of a closed set. Addresses are
//! over-approximated: a computed index may denote any cell of its array.
//!
//! **A slice has the executions of the program, projected to its threads.** Take an execution of the program under any of the memory models, and
//! remove all events (steps and flushes) of the threads that are not kept. The result is an execution of the slice: by induction, after each event of
//! a kept thread the two executions agree on the locations, registers and buffers of the kept threads, and on all cells to which no omitted thread
//! may store. A step of a kept thread depends only on these and on the global lock: a load reads its own buffer or such a cell, because the set is
//! closed. If a kept thread holds the lock in the program, it holds the lock in the slice too; otherwise the lock is free in the slice. So a step
//! that the lock permits in the program is permitted in the slice. (Named mutexes are memory cells that are loaded and stored: because the set is
//! closed, their users are kept or omitted together.) Conversely, an execution of the slice is an execution of the program in which the omitted
//! threads do not move: their buffers are empty, they hold no lock, and memory is initially the same.
//!
//! An execution that leaves the modelled part of an open array decides nothing. So a thread that may leave the modelled part is never omitted, and
//! the slice leaves this part whenever the program does.
//!
//! **So a property holds if and only if its concerns do, each in a slice that covers it.** `forbid` and `invariant` say that no state satisfies a
//! formula. A disjunction is satisfied if and only if one of its disjuncts is, and each disjunct is one [`Concern`]. A concern observes threads and
//! cells, and a slice covers it if these threads are kept and no omitted thread may store to these cells: then corresponding states agree on the
//! disjunct. `assertions` says that no thread faults, and each thread that may fault is one concern: a faulted thread stops, in the slice as in the
//! program. Deadlocks and final states depend on every thread, so properties about them have no concerns.

use std::collections::HashSet;
use std::ops::Range;

use fencewright_kit::accesses::{cells_of, is_inside};
use fencewright_program::{
    BinaryOp, Expr, Formula, Hints, Init, Observable, Op, Program, Property, PropertyKind, Thread, ThreadId,
    Trace, UnaryOp,
};

/// A part of a property: the property holds if and only if all its concerns do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// The threads that the concern observes.
    pub threads: Vec<ThreadId>,
    /// The memory cells that the concern observes.
    pub cells: Vec<u32>,
    /// The forbidden formula; `None` if the thread must not fault.
    formula: Option<Formula>,
}

/// The concerns of a property; `None` if it depends on the whole program.
pub fn concerns(program: &Program, property: &Property) -> Option<Vec<Concern>> {
    match &property.kind {
        PropertyKind::Assertions => {
            let may_fault = |thread: &Thread| thread.edges.iter().any(|e| program.edge_may_fault(thread, e));
            let threads = program.threads().filter(|(_, thread)| may_fault(thread));
            Some(
                threads
                    .map(|(t, _)| Concern { threads: vec![t], cells: Vec::new(), formula: None })
                    .collect(),
            )
        }
        PropertyKind::Never(formula) => {
            let mut parts = Vec::new();
            disjuncts(formula, true, &mut parts);
            Some(parts.into_iter().map(Concern::about).collect())
        }
        PropertyKind::NoDeadlock | PropertyKind::Finally(..) => None,
    }
}

impl Concern {
    fn about(formula: Formula) -> Self {
        let (mut threads, mut cells) = (Vec::new(), Vec::new());
        formula.for_each_leaf(&mut |observable| match observable {
            Observable::At(thread, _) | Observable::Register(thread, _) => threads.push(*thread),
            Observable::Memory(cell) => cells.push(*cell),
        });
        Concern { threads, cells, formula: Some(formula) }
    }
}

/// Collects the disjuncts of a formula, or of its negation if not `positive`, in `parts`.
fn disjuncts(formula: &Formula, positive: bool, parts: &mut Vec<Formula>) {
    match (formula, positive) {
        (Expr::Unary(UnaryOp::Not, operand), _) => disjuncts(operand, !positive, parts),
        (Expr::Binary(BinaryOp::Or, left, right), true)
        | (Expr::Binary(BinaryOp::And, left, right), false) => {
            disjuncts(left, positive, parts);
            disjuncts(right, positive, parts);
        }
        _ => parts.push(if positive { formula.clone() } else { formula.clone().not() }),
    }
}

/// The accesses of a thread, over-approximated.
#[derive(Clone, Debug)]
pub struct Accesses {
    /// For each memory cell, whether the thread may load it.
    pub loaded: Vec<bool>,
    /// For each memory cell, whether the thread may store to it.
    pub stored: Vec<bool>,
    /// Whether the thread may access an open array outside its modelled part.
    pub beyond: bool,
}

impl Accesses {
    /// The accesses of this thread.
    pub fn of(program: &Program, thread: &Thread) -> Self {
        // The ranges of cells are collected in a set first. So the cells of an array are marked once, however many computed indices it has.
        let (mut loads, mut stores, mut beyond) = (HashSet::new(), HashSet::new(), false);
        for op in thread.edges.iter().flat_map(|edge| edge.action.ops()) {
            let (cells, address) = match op {
                Op::Load(_, address) => (&mut loads, address),
                Op::Store(address, _) => (&mut stores, address),
                Op::Skip | Op::Assign(..) | Op::Havoc(..) | Op::Assume(_) | Op::Assert(..) => continue,
            };
            cells.insert(cells_of(program, address));
            beyond |= program.variables[address.variable.index()].open && !is_inside(program, address);
        }
        let marked = |ranges: HashSet<Range<u32>>| {
            let mut cells = vec![false; program.cells()];
            ranges.into_iter().flatten().for_each(|cell| cells[cell as usize] = true);
            cells
        };
        Accesses { loaded: marked(loads), stored: marked(stores), beyond }
    }
}

/// The threads of a closed set as a program.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The program, restricted to the threads of the set. A property is kept if the slice covers at least one of its concerns, and is then restricted
    /// to the covered ones.
    pub program: Program,
    /// The kept threads, in order.
    pub threads: Vec<ThreadId>,
    /// For each memory cell, whether an omitted thread may store to it.
    foreign: Vec<bool>,
}

impl Slice {
    /// The slice with these threads. An error if the set is empty or not closed, if it names threads that do not exist or are out of order, or if an
    /// omitted thread may access an open array outside its modelled part.
    pub fn new(program: &Program, threads: &[ThreadId]) -> Result<Self, String> {
        let ordered = threads.windows(2).all(|pair| pair[0] < pair[1]);
        if !ordered || threads.last().is_none_or(|last| last.index() >= program.threads.len()) {
            return Err("these are not threads of the program, in order".into());
        }
        let mut foreign = vec![false; program.cells()];
        let mut loaded = foreign.clone();
        for (id, thread) in program.threads() {
            let accesses = Accesses::of(program, thread);
            let (all, new) = match threads.binary_search(&id) {
                Ok(_) => (&mut loaded, accesses.loaded),
                Err(_) if accesses.beyond => {
                    return Err("a thread that is left out may leave what is modelled".into());
                }
                Err(_) => (&mut foreign, accesses.stored),
            };
            all.iter_mut().zip(new).for_each(|(all, new)| *all |= new);
        }
        if let Some(cell) = (0..foreign.len()).find(|&cell| foreign[cell] && loaded[cell]) {
            let name = program.cell_name(cell as u32);
            return Err(format!("a thread that is left out may store to {name}, which others load"));
        }
        let mut slice = Slice { program: Program::default(), threads: threads.to_vec(), foreign };
        let kept = |formula: &Formula| slice.covers(&Concern::about(formula.clone()));
        let predicates = program.hints.predicates.iter().filter(|predicate| kept(predicate));
        slice.program = Program {
            threads: threads.iter().map(|&id| program.thread(id).clone()).collect(),
            properties: program.properties.iter().filter_map(|p| slice.property(program, p)).collect(),
            hints: Hints { predicates: predicates.map(|p| slice.formula(p)).collect(), ..Hints::default() },
            ..program.clone()
        };
        Ok(slice)
    }

    /// Whether the slice decides this concern.
    pub fn covers(&self, concern: &Concern) -> bool {
        concern.threads.iter().all(|thread| self.threads.binary_search(thread).is_ok())
            && !concern.cells.iter().any(|&cell| self.foreign[cell as usize])
    }

    /// The concerns of a property that the slice covers, as a property of the slice; `None` if it covers none.
    pub fn property(&self, program: &Program, property: &Property) -> Option<Property> {
        let covered = concerns(program, property)?.into_iter().filter(|concern| self.covers(concern));
        let covered: Vec<Concern> = covered.collect();
        let kind = match covered.first()?.formula {
            None => PropertyKind::Assertions,
            Some(_) => {
                let parts = covered.iter().filter_map(|concern| concern.formula.as_ref());
                PropertyKind::Never(Expr::any(parts.map(|part| self.formula(part)).collect()))
            }
        };
        Some(Property { kind, ..property.clone() })
    }

    /// A formula about kept threads, with the numbers that these have in the slice.
    fn formula(&self, formula: &Formula) -> Formula {
        let number = |thread: &ThreadId| {
            let position = self.threads.binary_search(thread).expect("the formula is about kept threads");
            ThreadId(position as u32)
        };
        formula.map(&mut |observable| {
            Expr::Leaf(match observable {
                Observable::At(thread, at) => Observable::At(number(thread), at.clone()),
                Observable::Register(thread, register) => Observable::Register(number(thread), *register),
                Observable::Memory(cell) => Observable::Memory(*cell),
            })
        })
    }

    /// Whether another slice is equal up to names as far as these properties are concerned: then a proof for one slice holds for the other.
    pub fn is_like(&self, other: &Slice, properties: &[String]) -> bool {
        let (one, two) = (&self.program, &other.program);
        let kind = |program: &Program, name: &String| {
            program.properties.iter().find(|p| p.name == *name).map(|p| p.kind.clone())
        };
        one.threads.len() == two.threads.len()
            && one.threads.iter().zip(&two.threads).all(|(one, two)| one.is_like(two))
            && properties.iter().all(|name| kind(one, name) == kind(two, name))
    }

    /// Translates an execution of the slice to one of the program, in which the omitted threads do not move.
    pub fn trace(&self, program: &Program, trace: &Trace) -> Trace {
        let start = |init: &Init| match init {
            Init::Value(value) => *value,
            Init::Any(range) => range.map_or(0, |range| range.low),
        };
        let registers = program.threads().map(|(id, thread)| match self.threads.binary_search(&id) {
            Ok(position) => trace.registers[position].clone(),
            Err(_) => thread.registers.iter().map(|register| start(&register.init)).collect(),
        });
        let mut events = trace.events.clone();
        events.iter_mut().for_each(|event| event.thread = self.threads[event.thread.index()]);
        Trace { registers: registers.collect(), memory: trace.memory.clone(), events }
    }
}
