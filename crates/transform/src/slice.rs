//! Slices: programs with some threads left out, for properties to which these threads do not matter.
//!
//! A thread matters to another one only through memory: it stores to a cell that the other one loads. So a set of threads is *closed* if no
//! thread outside it may store to a cell that a thread inside may load, and a [`Slice`] is the program that has the threads of a closed
//! set and no others. What an address may denote is taken generously: a computed index may be any of its array.
//!
//! **A slice has the executions of the program, as far as its threads go.** Take an execution of the program under any of the memory
//! models, and leave out all events (steps and flushes) of the threads that are not kept. What is left is an execution of the slice: by
//! induction, after each event of a kept thread the two executions agree on where the kept threads are, on their registers and
//! buffers, and on all cells to which no thread left out may store. A step of a kept thread depends on no more than these and the
//! global lock: what it loads comes from its own buffer or from such a cell, because the set is closed. The lock is held by the same
//! thread in both if that one is kept, and otherwise it is free in the slice: whoever may go on in the program may go on there. (Named mutexes
//! are memory cells that are loaded and stored: their users are kept together by closedness.) Conversely an execution of the slice
//! is one of the program, in which the threads left out do not move: their buffers are empty and they hold no lock, and memory starts alike.
//!
//! Where the program leaves what is modelled of an open array there is no verdict. So a thread that may do that is never left out, and a slice goes
//! there if the program does.
//!
//! **So a property holds if and only if its concerns do, each in a slice that covers it.** `forbid` and `invariant` say that no state satisfies a
//! formula; a disjunction is satisfied if one of its parts is, and each part is one [`Concern`]. It looks at threads and at cells, and a
//! slice covers it if the threads are kept and no thread left out may store to the cells: then corresponding states agree on it. `assertions`
//! says that no thread faults, and each thread that may is one concern: a thread that faults stops where it is, in the slice as in
//! the program. Deadlocks and final states depend on every thread, so these properties have no concerns.

use std::collections::HashSet;
use std::ops::Range;

use fencewright_kit::accesses::{cells_of, is_inside};
use fencewright_program::{
    BinaryOp, Expr, Formula, Hints, Init, Observable, Op, Program, Property, PropertyKind, Thread, ThreadId,
    Trace, UnaryOp,
};

/// Something that a property depends on: it holds if all its concerns do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// The threads that it looks at.
    pub threads: Vec<ThreadId>,
    /// The memory cells that it looks at.
    pub cells: Vec<u32>,
    /// What must not be; if there is no formula, that the thread faults.
    formula: Option<Formula>,
}

/// The concerns of a property; nothing if it depends on the whole program.
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

/// The parts of a formula (or of its negation) of which one holds if and only if it does.
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

/// What a thread may access.
#[derive(Clone, Debug)]
pub struct Accesses {
    /// For each memory cell whether it may load from it.
    pub loaded: Vec<bool>,
    /// For each memory cell whether it may store to it.
    pub stored: Vec<bool>,
    /// Whether it may access an open array outside of what is modelled.
    pub beyond: bool,
}

impl Accesses {
    /// What a thread may access.
    pub fn of(program: &Program, thread: &Thread) -> Self {
        // An array with computed indices is gone through once, however often it is accessed.
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
    /// The program, with the properties of which a slice covers a concern: they are about what it covers, and no more.
    pub program: Program,
    /// The threads that were kept, in order.
    pub threads: Vec<ThreadId>,
    /// For each memory cell whether a thread that was left out may store to it.
    foreign: Vec<bool>,
}

impl Slice {
    /// The slice with these threads, or why there is none.
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

    /// The concerns of a property of the program that the slice covers, as a property of the slice; nothing if there are none.
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

    /// A formula about kept threads, with their numbers in the slice.
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

    /// Whether another slice differs from this one in names only, as far as these properties go: what is proved of one holds of the other.
    pub fn is_like(&self, other: &Slice, properties: &[String]) -> bool {
        let (one, two) = (&self.program, &other.program);
        let kind = |program: &Program, name: &String| {
            program.properties.iter().find(|p| p.name == *name).map(|p| p.kind.clone())
        };
        one.threads.len() == two.threads.len()
            && one.threads.iter().zip(&two.threads).all(|(one, two)| one.is_like(two))
            && properties.iter().all(|name| kind(one, name) == kind(two, name))
    }

    /// An execution of the slice as one of the program, in which the threads left out stay at their start.
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
