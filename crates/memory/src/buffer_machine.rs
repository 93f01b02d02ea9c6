//! Buffer machines: the steps of a program under a representation of its store buffers.
//!
//! A step of a control state is an edge of a thread or a flush. Where the effect of an edge depends on data (which element of an array, whether a
//! value is in its range) there is one step for each case, and its first commands assume that case. The rules are those of
//! `fencewright_program::reference`, with registers and memory as cells.

use fencewright_program::{
    Action, Address, BinaryOp, Bounds, EdgeId, Expr, Formula, Init, Observable, Op, Program, Property,
    PropertyKind, Quantifier, RegisterId, ThreadId,
};

use crate::buffer::{Buffers, StoreBuffers, Stored};
use crate::cells::{Cell, CellId, Cells};
use crate::control::{BufferShape, Control};
use crate::machine::{Command, Contents, Evidence, Limitation, Machine, Outcome, Step, StepName};

/// A program under a representation of buffers.
#[derive(Clone, Debug)]
pub struct BufferMachine<'p, B = Buffers> {
    /// The program whose steps the machine performs.
    pub program: &'p Program,
    /// The representation of store buffers.
    pub buffers: B,
    /// The cells on which commands operate: memory, registers and buffer contents.
    pub cells: Cells,
}

/// Maximum number of cases of one edge; beyond that the edge leads to [`Outcome::Beyond`].
const MOST_CASES: usize = 1 << 12;
/// Maximum number of commands in all cases of one edge together; beyond that the edge leads to [`Outcome::Beyond`].
const MOST_COMMANDS: usize = 1 << 18;
const TOO_MANY: End = End::Beyond(Limitation::Cases);

/// One path through the operations of an edge.
#[derive(Clone)]
struct Way {
    commands: Vec<Command>,
    buffer: Option<BufferShape>,
    end: End,
    /// Whether this path is the same case as the previous path, with another representation of the buffer.
    variant: bool,
}

impl Way {
    /// Appends to `ways` this path with a fault at its end, taken if the condition holds.
    fn fault_if(&self, condition: Expr<CellId>, ways: &mut Vec<Way>) {
        if condition.constant() != Some(0) {
            let mut faulted = self.clone();
            faulted.commands.push(Command::Assume(condition));
            faulted.end = End::Fault;
            ways.push(faulted);
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
enum End {
    /// All operations so far completed.
    Open,
    /// An operation faulted.
    Fault,
    /// An operation leads to a state that the machine cannot represent.
    Beyond(Limitation),
}

impl BufferMachine<'_> {
    /// All steps that leave a control state.
    pub fn steps(&self, control: &Control) -> Vec<Step> {
        self.steps_in((), control, &|| false).expect("nobody stops it")
    }

    /// Appends the flushes of the buffer of a thread, whether or not another thread holds the lock.
    pub fn flush_steps(&self, control: &Control, thread: ThreadId, steps: &mut Vec<Step>) {
        let Some(shape) = control.buffers.get(thread.index()) else { return };
        for (case, (target, change)) in
            self.buffers.flushes(&self.cells, thread, shape).into_iter().enumerate()
        {
            let mut next = control.clone();
            next.buffers[thread.index()] = change.shape;
            let mut commands = change.commands;
            // An UPDATE-AM (a flush of a forgotten value, see `buffer.rs`) writes an arbitrary value, or an arbitrary value of a summary cell. Every
            // value was checked before it entered the buffer, so the machine may assume that the written value is in the declared range.
            let any_of_several =
                |c: &Command| matches!(c, Command::Havoc(to) | Command::Expand(to, _) if *to == target);
            if commands.iter().any(any_of_several) {
                let declared = self.program.variable_of(target).range;
                commands.extend(within(self.program.writable(declared), target));
            }
            let name = StepName { thread, edge: None, flushed: Some(target), case: case as u32 };
            steps.push(Step { name, commands, outcome: Outcome::Control(next) });
        }
    }
}

impl<'p, B: StoreBuffers> BufferMachine<'p, B> {
    /// The machine of a program.
    pub fn new(program: &'p Program, buffers: B) -> Self {
        let positions = buffers.positions(program.cells());
        BufferMachine { program, buffers, cells: Cells::new(program, positions, buffers.have_summaries()) }
    }

    /// The initial control state.
    pub fn initial(&self) -> Control {
        let threads = &self.program.threads;
        let buffers = if self.buffers.exist() { threads.len() } else { 0 };
        Control {
            locations: threads.iter().map(|t| t.entry).collect(),
            buffers: vec![BufferShape::default(); buffers],
            lock: None,
        }
    }

    /// The initial contents of cells as commands: memory first, then registers, each cell assigned once, in the order of cells.
    pub fn initial_values(&self) -> Vec<Command> {
        let mut known = Vec::new();
        let mut cell = |id: CellId, init: Init| match init {
            Init::Value(v) => known.push(Command::Assign(id, Expr::Const(v))),
            Init::Any(range) => {
                known.push(Command::Havoc(id));
                known.extend(within(self.program.chosen(range), id));
            }
        };
        for (c, init) in self.program.variables.iter().flat_map(|v| &v.init).enumerate() {
            cell(self.cells.id(Cell::Memory(c as u32)), *init);
        }
        for (t, thread) in self.program.threads() {
            for (r, register) in thread.registers.iter().enumerate() {
                cell(self.cells.id(Cell::Register(t, RegisterId(r as u32))), register.init);
            }
        }
        known
    }

    /// Appends the steps of one edge of a thread.
    pub fn edge_steps(&self, control: &Control, thread: ThreadId, id: EdgeId, steps: &mut Vec<Step>) {
        let code = self.program.thread(thread);
        let edge = code.edge(id);
        let drained = control.drained(thread);
        let access = control.may_access(thread);
        let mut next = control.clone();
        next.locations[thread.index()] = edge.to;
        let enabled = match &edge.action {
            Action::Fence => drained,
            Action::StoreFence => {
                if let Some(shape) = next.buffers.get_mut(thread.index()) {
                    *shape = self.buffers.barrier(shape);
                }
                true
            }
            Action::Lock => {
                next.lock = Some(thread);
                drained && control.lock.is_none()
            }
            Action::Unlock => {
                next.lock = None;
                drained && control.lock == Some(thread)
            }
            Action::Atomic { drains, .. } => access && (drained || !drains),
            Action::Op(Op::Load(..)) => access,
            Action::Op(Op::Store(..)) => access || self.buffers.exist(),
            Action::Op(_) => true,
        };
        if !enabled {
            return;
        }
        let direct = self.is_direct(&edge.action);
        let first = Way {
            commands: Vec::new(),
            buffer: next.buffers.get(thread.index()).cloned(),
            end: End::Open,
            variant: false,
        };
        let mut ways = vec![first];
        for op in edge.action.ops() {
            let mut longer = Vec::new();
            let mut commands = 0;
            for way in ways {
                let before = longer.len();
                match way.end {
                    End::Open => self.perform(thread, op, direct, way, &mut longer),
                    _ => longer.push(way),
                }
                commands += longer[before..].iter().map(|way| way.commands.len()).sum::<usize>();
                if longer.len() > MOST_CASES || commands > MOST_COMMANDS {
                    longer = vec![Way { commands: Vec::new(), buffer: None, end: TOO_MANY, variant: false }];
                    break;
                }
            }
            ways = longer;
        }
        let mut cases = 0;
        for way in ways {
            cases += !way.variant as u32;
            let mut next = next.clone();
            if let Some(shape) = way.buffer {
                next.buffers[thread.index()] = shape;
            }
            let outcome = match way.end {
                End::Open => Outcome::Control(next),
                End::Fault => {
                    next.locations[thread.index()] = code.fault;
                    Outcome::Control(next)
                }
                End::Beyond(what) => Outcome::Beyond(what, edge.span),
            };
            let name = StepName { thread, edge: Some(id), flushed: None, case: cases - 1 };
            steps.push(Step { name, commands: way.commands, outcome });
        }
    }

    /// Whether the stores of an action bypass the buffer.
    pub fn is_direct(&self, action: &Action) -> bool {
        !self.buffers.exist() || matches!(action, Action::Atomic { drains: true, .. })
    }

    /// An expression of a thread as an expression over cells.
    fn over_cells(&self, thread: ThreadId, e: &Expr<RegisterId>) -> Expr<CellId> {
        e.map(&mut |r| Expr::Leaf(self.cells.id(Cell::Register(thread, *r))))
    }

    /// The cell of a register, and the values that may be written to it.
    fn register(&self, thread: ThreadId, r: RegisterId) -> (CellId, Bounds) {
        let range = self.program.thread(thread).registers[r.index()].range;
        (self.cells.id(Cell::Register(thread, r)), self.program.writable(range))
    }

    /// Appends to `ways` all paths that continue `way` with one operation.
    fn perform(&self, thread: ThreadId, op: &Op, direct: bool, way: Way, ways: &mut Vec<Way>) {
        // The bounds that the loaded or chosen value must satisfy, if it may violate them.
        let checked = self.program.checks(&self.program.thread(thread).registers, op).value;
        match op {
            Op::Load(r, address) => {
                let (register, writable) = self.register(thread, *r);
                for (target, mut way) in self.addressed(thread, address, way, ways) {
                    let newest = |shape| self.buffers.newest(&self.cells, thread, shape, target);
                    let buffered = way.buffer.as_ref().and_then(newest);
                    let source = buffered.unwrap_or_else(|| self.cells.id(Cell::Memory(target)));
                    if let Some(fits) = checked.and_then(|bounds| bounds.condition(&Expr::Leaf(source))) {
                        way.fault_if(fits.not(), ways);
                    }
                    way.commands.extend(within(writable, source));
                    way.commands.push(Command::Assign(register, Expr::Leaf(source)));
                    ways.push(way);
                }
            }
            Op::Store(address, e) => {
                let writable = self.program.writable(self.program.variables[address.variable.index()].range);
                let doubtful = self.program.doubtful(writable, e);
                let e = self.over_cells(thread, e);
                for (target, mut way) in self.addressed(thread, address, way, ways) {
                    let defined = e.defined();
                    let faults = defined.clone().into_iter().chain(doubtful.condition(&e)).map(Expr::not);
                    faults.for_each(|condition| way.fault_if(condition, ways));
                    way.commands
                        .extend(defined.into_iter().chain(writable.condition(&e)).map(Command::Assume));
                    let stored = match (&way.buffer, direct) {
                        (Some(shape), false) => {
                            self.buffers.store(&self.cells, thread, shape, target, e.clone())
                        }
                        _ => Stored::Memory,
                    };
                    match stored {
                        Stored::Memory => {
                            way.commands
                                .push(Command::Assign(self.cells.id(Cell::Memory(target)), e.clone()));
                        }
                        Stored::Buffered(changes) => {
                            let copies = std::iter::repeat_n(way, changes.len());
                            for (n, (change, mut way)) in changes.into_iter().zip(copies).enumerate() {
                                way.variant = n > 0;
                                way.commands.extend(change.commands);
                                way.buffer = Some(change.shape);
                                ways.push(way);
                            }
                            continue;
                        }
                        Stored::Overflow => way.end = End::Beyond(Limitation::BufferOverflow),
                    }
                    ways.push(way);
                }
            }
            _ => self.compute(thread, op, checked, way, ways),
        }
    }

    /// Appends to `ways` all paths that continue `way` with one operation that does not access memory.
    fn compute(&self, thread: ThreadId, op: &Op, checked: Option<Bounds>, mut way: Way, ways: &mut Vec<Way>) {
        match op {
            Op::Skip | Op::Load(..) | Op::Store(..) => {}
            Op::Assign(r, e) => {
                let (register, writable) = self.register(thread, *r);
                let doubtful = self.program.doubtful(writable, e);
                let e = self.over_cells(thread, e);
                if let Some(defined) = e.defined() {
                    way.fault_if(defined.clone().not(), ways);
                    way.commands.push(Command::Assume(defined));
                }
                doubtful.condition(&e).into_iter().for_each(|fits| way.fault_if(fits.not(), ways));
                way.commands.extend(writable.condition(&e).map(Command::Assume));
                way.commands.push(Command::Assign(register, e));
            }
            Op::Havoc(r, range) => {
                let (register, writable) = self.register(thread, *r);
                // If the chosen value is out of range, the operation faults and the register keeps its old value.
                way.fault_if(Expr::Const(checked.is_some() as i64), ways);
                way.commands.push(Command::Havoc(register));
                way.commands.extend(within(self.program.chosen(*range).and(writable), register));
            }
            Op::Assume(e) | Op::Assert(e, _) => {
                let e = self.over_cells(thread, e);
                e.defined().into_iter().for_each(|defined| way.fault_if(defined.not(), ways));
                if matches!(op, Op::Assert(..)) {
                    way.fault_if(e.clone().not(), ways);
                }
                way.commands.push(Command::Assume(e));
            }
        }
        ways.push(way);
    }

    /// The memory cells that an address may denote. Each comes with a copy of `way` that assumes that the address denotes this cell. The paths on
    /// which the index faults or is outside the window of an open array are appended to `ways`. If this takes more than `MOST_COMMANDS` commands, the
    /// result is empty, and `way` is appended with the end `TOO_MANY`.
    fn addressed(
        &self,
        thread: ThreadId,
        address: &Address,
        way: Way,
        ways: &mut Vec<Way>,
    ) -> Vec<(u32, Way)> {
        let variable = &self.program.variables[address.variable.index()];
        let (Some(index), Some(range)) = (&address.index, variable.indices) else {
            return vec![(variable.base, way)];
        };
        let index = self.over_cells(thread, index);
        let cell = |i: i64| variable.base + (i - range.low) as u32;
        if let Some(i) = index.constant().filter(|&i| range.contains(i)) {
            return vec![(cell(i), way)];
        }
        if variable.init.len() * way.commands.len() > MOST_COMMANDS {
            ways.push(Way { end: TOO_MANY, ..way });
            return Vec::new();
        }
        let compare = |op, i: i64| Expr::binary(op, index.clone(), Expr::Const(i));
        let assuming = |condition, end| {
            let mut way = way.clone();
            way.commands.push(Command::Assume(condition));
            way.end = end;
            way
        };
        let end = if variable.open { End::Beyond(Limitation::Window) } else { End::Fault };
        ways.push(assuming(compare(BinaryOp::Lt, range.low), end.clone()));
        ways.push(assuming(compare(BinaryOp::Gt, range.high), end));
        ways.extend(index.defined().map(|defined| assuming(defined.not(), End::Fault)));
        (range.low..=range.high).map(|i| (cell(i), assuming(compare(BinaryOp::Eq, i), End::Open))).collect()
    }

    /// The condition on cells under which a control state violates a property; the constant 0 if no values of the cells make it a violation. `None`
    /// for properties that this machine cannot decide: the existence of a final state, and deadlocks.
    pub fn violation(&self, control: &Control, property: &Property) -> Option<Expr<CellId>> {
        let at_end = |holds: bool, formula: Expr<CellId>| if holds { formula } else { Expr::Const(0) };
        match &property.kind {
            PropertyKind::Never(formula) => Some(self.formula(control, formula)),
            PropertyKind::Assertions => Some(Expr::Const(control.has_fault(self.program) as i64)),
            PropertyKind::Finally(Quantifier::Never, formula) => {
                Some(at_end(control.is_final(self.program), self.formula(control, formula)))
            }
            PropertyKind::Finally(Quantifier::Forall, formula) => {
                Some(at_end(control.is_final(self.program), self.formula(control, formula).not()))
            }
            PropertyKind::Finally(Quantifier::Exists, _) | PropertyKind::NoDeadlock => None,
        }
    }

    /// The condition on cells under which a control state is evidence about a property: a violation, or a witness for `finally exists`. `None` for
    /// deadlocks.
    pub fn evidence_condition(&self, control: &Control, property: &Property) -> Option<Expr<CellId>> {
        match &property.kind {
            PropertyKind::Finally(Quantifier::Exists, formula) if control.is_final(self.program) => {
                Some(self.formula(control, formula))
            }
            PropertyKind::Finally(Quantifier::Exists, _) => Some(Expr::Const(0)),
            _ => self.violation(control, property),
        }
    }

    /// A formula about a state as an expression over cells.
    pub fn formula(&self, control: &Control, formula: &Formula) -> Expr<CellId> {
        let e = formula.map(&mut |observable| match observable {
            Observable::At(thread, locations) => {
                Expr::Const(locations.contains(&control.locations[thread.index()]) as i64)
            }
            Observable::Register(thread, register) => {
                Expr::Leaf(self.cells.id(Cell::Register(*thread, *register)))
            }
            Observable::Memory(cell) => Expr::Leaf(self.cells.id(Cell::Memory(*cell))),
        });
        simplified(e)
    }
}

impl Machine for BufferMachine<'_> {
    type Control = Control;
    type Name = StepName;
    type Phase = ();

    fn initial_controls(&self) -> Vec<Control> {
        vec![self.initial()]
    }

    fn initial_values(&self) -> Vec<Command> {
        self.initial_values()
    }

    /// An edge may have many cases, so `stop` is polled before each edge.
    fn steps_in(&self, (): (), control: &Control, stop: &dyn Fn() -> bool) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        for (thread, code) in self.program.threads() {
            for (edge, _) in code.edges_from(control.locations[thread.index()]) {
                if stop() {
                    return None;
                }
                self.edge_steps(control, thread, edge, &mut steps);
            }
            if control.may_access(thread) {
                self.flush_steps(control, thread, &mut steps);
            }
        }
        Some(steps)
    }

    fn evidence(&self, control: &Control, property: &Property) -> Option<Vec<Evidence>> {
        let condition = self.evidence_condition(control, property)?;
        let possible = condition.constant() != Some(0);
        let evidence = possible.then(|| Evidence { case: 0, commands: vec![Command::Assume(condition)] });
        Some(evidence.into_iter().collect())
    }

    /// Memory, all registers, and the cells that hold the values of the buffers in this control state.
    fn live(&self, control: &Control) -> Vec<CellId> {
        let mut live: Vec<CellId> = self.cells.variables().collect();
        for (t, shape) in control.buffers.iter().enumerate() {
            live.extend(self.buffers.values(&self.cells, ThreadId(t as u32), shape));
        }
        live.sort_unstable();
        live
    }

    fn contents(&self) -> Vec<Contents> {
        let contents = |id: CellId| match self.cells.cell(id) {
            Cell::Memory(_) | Cell::Register(..) => Contents::Own,
            Cell::Entry(..) => Contents::Stores,
            Cell::Last(_, c) => Contents::StoresTo(self.cells.id(Cell::Memory(c))),
            Cell::Forgotten(_, c) => Contents::Summary(self.cells.id(Cell::Memory(c))),
        };
        (0..self.cells.len() as CellId).map(contents).collect()
    }
}

/// The assumption that the value of a cell satisfies the bounds; `None` if both bounds are absent.
fn within(bounds: Bounds, cell: CellId) -> Option<Command> {
    bounds.condition(&Expr::Leaf(cell)).map(Command::Assume)
}

/// Folds constants. If the left operand of a conjunction or disjunction is constant, the result is that constant or the truth value of the right
/// operand (two constants that do not decide it stay as they are). A conjunction with 0 on the right is 0 if its left operand cannot fault.
fn simplified(e: Expr<CellId>) -> Expr<CellId> {
    match e {
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            let (left, right) = (simplified(*left), simplified(*right));
            let decisive = |v: i64| (v != 0) == (op == BinaryOp::Or);
            match (left.constant(), right.constant()) {
                (Some(v), _) if decisive(v) => Expr::Const((v != 0) as i64),
                (_, Some(v)) if decisive(v) && left.constant().is_some() => Expr::Const((v != 0) as i64),
                (_, Some(0)) if op == BinaryOp::And && left.defined().is_none() => Expr::Const(0),
                (Some(_), None) => Expr::binary(BinaryOp::Ne, right, Expr::Const(0)),
                _ => Expr::binary(op, left, right),
            }
        }
        Expr::Unary(op, operand) => {
            let e = Expr::unary(op, simplified(*operand));
            e.constant().map_or(e, Expr::Const)
        }
        Expr::Binary(op, left, right) => {
            let e = Expr::binary(op, simplified(*left), simplified(*right));
            e.constant().map_or(e, Expr::Const)
        }
        Expr::If(condition, then, otherwise) => {
            let (condition, then, otherwise) =
                (simplified(*condition), simplified(*then), simplified(*otherwise));
            match condition.constant() {
                Some(0) => otherwise,
                Some(_) => then,
                None => Expr::choice(condition, then, otherwise),
            }
        }
        other => other,
    }
}
