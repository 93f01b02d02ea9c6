//! Settled cells: parts of allocated objects that hold one value whenever a thread reads them. A thread then knows the value when it is elaborated, for
//! example the function and the number that a launcher has put into an array of arguments.
//!
//! A cell is settled for a thread if the program writes it at most once: nothing writes it after its initial value, or `main` stores a constant
//! there on every path to the creation of the thread. Stores through unknown pointers count as writes of all cells of their points-to class.
//!
//! The cells of one attempt are a premise of the next one, which verifies them on its own code. That is sound although reads are missing in this code:
//! consider the first read of a settled cell, in some execution of the program, that does not return the assumed value. Up to there the execution is one
//! of the verified code, in which nothing else has been written to the cell.

use std::collections::BTreeSet;

use fencewright_c::typed::tree::Step;
use fencewright_code::core::{
    Access, Base, Core, Known, Label, Location, NodeId, ObjectEvent, ObjectId, Origin, Stmt, StmtKind,
    ThreadNumber, Times, each_statement, known, way,
};
use fencewright_code::nodes::Nodes;
use fencewright_code::numbers::Operand;
use fencewright_code::points_to;
use fencewright_program::Span;
use fencewright_text::Stop;
use rustc_hash::{FxHashMap, FxHashSet};

use super::env::Fact;
use super::objects::{Target, is_certain};
use super::{Elaborator, Phase};

/// Maximum number of attempts that look for more settled cells.
const MOST_ROUNDS: usize = 3;

/// A part of an object.
pub(super) type Cell = (ObjectId, Vec<Step>);

/// The settled cells that an attempt assumes.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    /// The value of each cell, and the threads for which it is settled.
    cells: FxHashMap<Cell, (Known, BTreeSet<ThreadNumber>)>,
    rounds: usize,
}

impl Settled {
    /// Whether another attempt is needed: because the code of this attempt does not show what was assumed, so that the next attempt assumes nothing, or
    /// because threads read more settled cells than was assumed.
    pub fn is_revised(
        &mut self,
        read: &FxHashSet<(ThreadNumber, Cell)>,
        (core, nodes): (&Core, &Nodes),
        stop: &Stop<'_>,
    ) -> bool {
        if self.rounds > MOST_ROUNDS || (read.is_empty() && self.cells.is_empty()) {
            return false;
        }
        let found = Writes::of(core, nodes, stop).map(|writes| writes.settled(core)).unwrap_or_default();
        let holds = |(cell, (value, threads)): (&Cell, &(Known, BTreeSet<ThreadNumber>))| {
            found.get(cell).is_some_and(|(same, all)| same == value && threads.is_subset(all))
        };
        if !self.cells.iter().all(holds) {
            *self = Settled { cells: FxHashMap::default(), rounds: MOST_ROUNDS + 1 };
            return true;
        }
        let before = self.count();
        for (thread, cell) in read.iter().filter(|_| self.rounds < MOST_ROUNDS) {
            if let Some((value, threads)) = found.get(cell)
                && threads.contains(thread)
            {
                let known =
                    self.cells.entry(cell.clone()).or_insert_with(|| (value.clone(), BTreeSet::new()));
                known.1.insert(*thread);
            }
        }
        self.rounds += 1;
        self.count() > before
    }

    fn count(&self) -> usize {
        self.cells.values().map(|(_, threads)| threads.len()).sum()
    }
}

impl Elaborator<'_> {
    /// The value of a settled cell that the current thread reads, instead of a load; the access is still checked.
    pub(super) fn settled(
        &mut self,
        target: &Target,
        (object, path): (ObjectId, &[Step]),
        location: &Location,
        span: Span,
    ) -> Option<Operand> {
        let is_heap = matches!(
            self.objects[object.0 as usize].origin,
            Origin::Heap { times: Times::First | Times::Once, .. }
        );
        if !is_heap
            || self.phase != Phase::Running
            || target.access != Access::Plain
            || self.options.accesses_only
        {
            return None;
        }
        let cell = (object, path.to_vec());
        let thread = self.thread();
        let value = match self.premises.settled.cells.get(&cell) {
            Some((value, threads)) if threads.contains(&thread) => value.clone(),
            _ => {
                self.read_cells.insert((thread, cell));
                return None;
            }
        };
        let operand = self.known_operand(&value, Fact::of(value.clone()).range)?;
        self.follow(location, span);
        self.emit(StmtKind::Special(ObjectEvent::Reach(location.clone())), span);
        Some(self.seen_as(operand, &target.ty))
    }
}

/// The writes of a program to allocated objects.
struct Writes {
    nodes: Nodes,
    /// The points-to classes that are written through unknown pointers or at unknown indices.
    unknown: FxHashSet<NodeId>,
    /// For each known cell, its class, and the values stored there: by each thread, `None` unless it is one store of a constant.
    cells: FxHashMap<Cell, Vec<(ThreadNumber, Option<Known>)>>,
}

impl Writes {
    fn of(core: &Core, nodes: &Nodes, stop: &Stop<'_>) -> Option<Self> {
        let mut nodes = nodes.clone();
        points_to::unify(core, &mut nodes, stop).ok()?;
        let mut writes = Writes { nodes, unknown: FxHashSet::default(), cells: FxHashMap::default() };
        for (number, thread) in (0..).map(ThreadNumber).zip(&core.threads) {
            each_statement(&thread.code, stop, &mut |statement| match &statement.kind {
                StmtKind::Store(place, value, _) => writes.note(number, place, known(value)),
                StmtKind::Update { place, .. } => writes.note(number, place, None),
                _ => {}
            });
        }
        (!stop.now()).then_some(writes)
    }

    fn note(&mut self, thread: ThreadNumber, place: &Location, value: Option<Known>) {
        match (&place.base, way(place).filter(|_| is_certain(place))) {
            (Base::Object(object), Some(path)) => {
                self.cells.entry((*object, path)).or_default().push((thread, value));
            }
            _ => _ = self.unknown.insert(self.nodes.find(place.node)),
        }
    }

    /// The class of a cell; `None` if it has none.
    fn class(&self, core: &Core, (object, path): &Cell) -> Option<NodeId> {
        // The node of an allocation is that of one element, which the first step of the path selects.
        self.nodes.at_path(core.objects[object.0 as usize].node, path.get(1..)?)
    }

    /// All settled cells, each with the threads for which it is settled.
    fn settled(&self, core: &Core) -> FxHashMap<Cell, (Known, BTreeSet<ThreadNumber>)> {
        let mut settled = FxHashMap::default();
        let main = Order::of(&core.threads[0].code);
        let all: BTreeSet<ThreadNumber> = (0..core.threads.len() as u32).map(ThreadNumber).collect();
        let again = self.allocated_again(core);
        for (object, about) in (0..).map(ObjectId).zip(&core.objects) {
            let is_first = matches!(about.origin, Origin::Heap { times: Times::First, .. });
            if !is_first || again(object) {
                continue;
            }
            for (path, value) in &about.initial {
                let cell = (object, path.clone());
                if *value != Known::Undefined && !self.cells.contains_key(&cell) && self.is_alone(core, &cell)
                {
                    settled.insert(cell, (value.clone(), all.clone()));
                }
            }
        }
        for (cell, stores) in &self.cells {
            let is_heap = matches!(
                core.objects[cell.0.0 as usize].origin,
                Origin::Heap { times: Times::First | Times::Once, .. }
            );
            if let [(ThreadNumber(0), Some(value))] = stores.as_slice()
                && is_heap
                && *value != Known::Undefined
                && !again(cell.0)
                && self.is_alone(core, cell)
            {
                let threads = (0..).map(ThreadNumber).zip(&core.threads);
                let later = threads.filter(|(number, thread)| match thread.started {
                    Some(flag) => main.is_before(cell, &(flag, Vec::new())),
                    None => number.0 == 0 && main.is_before_reads(cell),
                });
                settled.insert(cell.clone(), (value.clone(), later.map(|(number, _)| number).collect()));
            }
        }
        settled
    }

    /// Whether the memory of an object may be returned by an allocation of another object of its class, which may clear it.
    fn allocated_again(&self, core: &Core) -> impl Fn(ObjectId) -> bool {
        let mut by_class: FxHashMap<NodeId, Vec<ObjectId>> = FxHashMap::default();
        for (object, about) in (0..).map(ObjectId).zip(&core.objects) {
            if matches!(about.origin, Origin::Heap { times: Times::Once | Times::Counted, .. }) {
                by_class.entry(self.nodes.find(about.node)).or_default().push(object);
            }
        }
        let class = |object: ObjectId| self.nodes.find(core.objects[object.0 as usize].node);
        move |object| by_class.get(&class(object)).is_some_and(|all| all.iter().any(|other| *other != object))
    }

    /// Whether no other write can be to this cell: none through an unknown pointer, and none by a path of another shape.
    fn is_alone(&self, core: &Core, cell: &Cell) -> bool {
        let is_shaped = |other: &Cell| {
            let alike = |(a, b): (&Step, &Step)| {
                matches!((a, b), (Step::Field(_), Step::Field(_)) | (Step::Element(_), Step::Element(_)))
            };
            other.0 != cell.0 || other.1.len() == cell.1.len() && other.1.iter().zip(&cell.1).all(alike)
        };
        let class = self.class(core, cell);
        let same = |other: &&Cell| other.0 == cell.0 && self.class(core, other) == class;
        class.is_some_and(|class| !self.unknown.contains(&class))
            && self.cells.keys().filter(same).all(is_shaped)
    }
}

/// The cell that a place names; `None` if it names none.
fn cell(place: &Location) -> Option<Cell> {
    match place.base {
        Base::Object(object) => Some((object, way(place)?)),
        Base::Pointed(..) => None,
    }
}

/// The stores of `main` outside of branches and loops, in the order of their execution.
struct Order {
    /// The position of the only such store to each cell.
    stores: FxHashMap<Cell, usize>,
    /// For each cell, the position of the first statement that reads or reaches it.
    reads: FxHashMap<Cell, usize>,
    /// The jumps: positions from which and to which they lead.
    jumps: Vec<(usize, usize)>,
}

impl Order {
    fn of(code: &[Stmt]) -> Self {
        let mut row: Vec<&Stmt> = Vec::new();
        let mut open: Vec<&Stmt> = code.iter().rev().collect();
        while let Some(statement) = open.pop() {
            match &statement.kind {
                StmtKind::Steps(block) | StmtKind::Block(block) | StmtKind::Atomic(block) => {
                    open.extend(block.iter().rev());
                }
                _ => row.push(statement),
            }
        }
        let (mut stores, mut reads) = (FxHashMap::default(), FxHashMap::default());
        let (mut labels, mut jumps) = (FxHashMap::default(), Vec::new());
        for (position, statement) in row.iter().enumerate() {
            each_statement(
                std::slice::from_ref(*statement),
                &Stop::never(),
                &mut |inner| match &inner.kind {
                    StmtKind::Label(label) => _ = labels.insert(*label, position),
                    StmtKind::Goto(label) if *label != Label::EXIT => jumps.push((position, *label)),
                    StmtKind::Load(_, place, _)
                    | StmtKind::Await { place, .. }
                    | StmtKind::Update { place, .. }
                    | StmtKind::Special(ObjectEvent::Reach(place)) => {
                        reads.entry(cell(place)).or_insert(position);
                    }
                    _ => {}
                },
            );
            if let StmtKind::Store(place, ..) = &statement.kind {
                stores.entry(cell(place)).or_insert(position);
            }
        }
        let to = |(from, label): (usize, Label)| Some((from, *labels.get(&label)?));
        let known = |cells: FxHashMap<Option<Cell>, usize>| {
            cells.into_iter().filter_map(|(cell, position)| Some((cell?, position))).collect()
        };
        let jumps = jumps.into_iter().filter_map(to).collect();
        Order { stores: known(stores), reads: known(reads), jumps }
    }

    /// Whether the store to a cell is executed before all reads of it that name it.
    fn is_before_reads(&self, cell: &Cell) -> bool {
        let Some(&store) = self.stores.get(cell) else { return false };
        self.reads.get(cell).is_none_or(|&read| store < read) && !self.is_passed_by(store)
    }

    /// Whether a jump leads past this position.
    fn is_passed_by(&self, position: usize) -> bool {
        self.jumps.iter().any(|&(from, to)| from <= position && position <= to)
    }

    /// Whether the store to one cell is executed before that to the other one, whenever the latter is.
    fn is_before(&self, one: &Cell, other: &Cell) -> bool {
        let (Some(&first), Some(&second)) = (self.stores.get(one), self.stores.get(other)) else {
            return false;
        };
        first < second && !self.is_passed_by(first)
    }
}
