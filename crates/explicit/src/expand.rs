//! Successors of a packed state: the transition relation of the reference semantics, on packed words and without allocation.
//!
//! The rules and their names are those of `fencewright_program::reference`. With the local-events-first reduction, a state whose favourite thread can
//! move has only successors by that thread (Algorithm 4.3). The favourite is released when it has ended, when it is blocked, and when it performs a
//! non-local event.

use fencewright_memory::Bound;
use fencewright_program::reference::Limit;
use fencewright_program::{EvalError, MemoryModel, Span};

use super::abstract_buffer::{AbstractBuffer, Abstraction, Leaving};
use super::code::{ActionCode, AddressCode, Code, EdgeCode, OpCode, Target};
use super::instructions::ExprCode;
use super::layout::{Growth, Layout};

/// A step from a packed state.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The index of the thread; for a flush, of the thread whose buffer it is.
    pub thread: u32,
    /// Its action.
    pub kind: StepKind<'a>,
    /// Whether it may change the value of a property's formula.
    pub visible: bool,
    /// Whether the thread faulted.
    pub fault: bool,
}

/// The action of a step.
#[derive(Clone, Copy)]
pub enum StepKind<'a> {
    /// An edge, with the values chosen for its `*`s.
    Edge(&'a EdgeCode, &'a [i64]),
    /// A flush to this cell.
    Flush(u32),
    /// Several edges in sequence: a reduction may omit the states between them.
    Run,
}

/// A subset of the steps of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The steps along its edges.
    Edges(usize),
    /// The flushes of its buffer; if an entry kind is given, only the flushes of that kind.
    Flushes(usize, Option<u64>),
}

/// Consumer of successors.
pub trait Sink {
    /// Takes one successor.
    fn take(&mut self, step: Step<'_>, state: &[u64]);
}

/// Facts about the expansion of a state besides its successors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Whether there was any step.
    pub moved: bool,
    /// Whether a `*` was only sampled.
    pub sampled: bool,
    /// Whether a store was not explored because of the bound on buffers.
    pub bounded: bool,
    /// The first action whose result the explicit engine cannot represent.
    pub limit: Option<(Limit, Span)>,
}

impl Summary {
    /// The union of the facts about two expansions.
    pub fn with(self, other: Summary) -> Summary {
        Summary {
            moved: self.moved || other.moved,
            sampled: self.sampled || other.sampled,
            bounded: self.bounded || other.bounded,
            limit: self.limit.or(other.limit),
        }
    }

    /// Whether all successors were produced.
    pub fn is_complete(self) -> bool {
        self.limit.is_none() && !self.bounded && !self.sampled
    }
}

/// The result of an operation.
enum Flow {
    Done,
    Disabled,
    Fault,
    Limit(Limit),
}

/// Computes successors of packed states.
pub struct Expander<'c> {
    /// The program.
    pub code: &'c Code,
    /// The values tried for an unbounded `*`.
    pub samples: &'c [i64],
    /// The bound on the size of store buffers, if any.
    pub bound: Option<Bound>,
    next: Vec<u64>,
    stack: Vec<i64>,
    chosen: Vec<i64>,
    summary: Summary,
    /// Scratch space for abstract buffers.
    unpacked: AbstractBuffer,
    leaving: Vec<Leaving>,
}

impl<'c> Expander<'c> {
    /// An expander for a program.
    pub fn new(code: &'c Code, samples: &'c [i64], bound: Option<Bound>) -> Self {
        Expander {
            code,
            samples,
            bound,
            next: Vec::new(),
            stack: Vec::new(),
            chosen: Vec::new(),
            summary: Summary::default(),
            unpacked: AbstractBuffer::default(),
            leaving: Vec::new(),
        }
    }

    /// Passes all successors of `state` to the sink. On [`Growth`] some may be missing: the state must be expanded again in a wider layout.
    pub fn expand<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        self.summary = Summary::default();
        self.next.resize(layout.words, 0);
        let threads = self.code.threads.len();
        let favourite =
            if self.code.local_first { layout.slots[self.code.favourite()].raw(state) as usize } else { 0 };
        let holder = layout.slots[self.code.lock()].raw(state) as usize;
        if favourite != 0 {
            self.thread(layout, state, favourite - 1, holder, sink)?;
            if self.summary.moved {
                return Ok(self.summary);
            }
        }
        for thread in (0..threads).filter(|t| t + 1 != favourite) {
            self.thread(layout, state, thread, holder, sink)?;
        }
        Ok(self.summary)
    }

    #[inline]
    fn thread<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        t: usize,
        holder: usize,
        sink: &mut S,
    ) -> Result<(), Growth> {
        self.edges(layout, state, t, holder, sink)?;
        let access = holder == 0 || holder == t + 1;
        let empty = layout.buffers.get(t).is_none_or(|b| b.count.raw(state) == 0);
        if access && !empty {
            self.flushes(layout, state, t, |_| true, sink)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn edges<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        t: usize,
        holder: usize,
        sink: &mut S,
    ) -> Result<(), Growth> {
        let code = self.code;
        let access = holder == 0 || holder == t + 1;
        let empty = layout.buffers.get(t).is_none_or(|b| b.count.raw(state) == 0);
        let location = layout.slots[code.pc(t)].raw(state) as usize;
        for edge in &code.threads[t].edges[location] {
            let enabled = match &edge.action {
                ActionCode::Fence => empty,
                ActionCode::Lock => empty && holder == 0,
                ActionCode::Unlock => empty && holder == t + 1,
                ActionCode::Atomic { drains, .. } => access && (empty || !drains),
                ActionCode::Op(OpCode::Load(..)) => access,
                ActionCode::Op(OpCode::Store(..)) => access || code.model != MemoryModel::Sc,
                ActionCode::Op(_) | ActionCode::StoreFence => true,
            };
            if enabled {
                self.edge(layout, state, t, edge, sink)?;
            }
        }
        Ok(())
    }

    /// Passes the successors by some parts of threads to the sink, like [`Expander::expand`] does for all.
    pub fn expand_parts<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        parts: impl IntoIterator<Item = Part>,
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        self.summary = Summary::default();
        self.next.resize(layout.words, 0);
        let holder = layout.slots[self.code.lock()].raw(state) as usize;
        for part in parts {
            match part {
                Part::Edges(t) => self.edges(layout, state, t, holder, sink)?,
                Part::Flushes(t, kind) => {
                    let access = holder == 0 || holder == t + 1;
                    if access && layout.buffers.get(t).is_some_and(|b| b.count.raw(state) > 0) {
                        let wanted = |other| kind.is_none_or(|kind| kind == other);
                        self.flushes(layout, state, t, wanted, sink)?;
                    }
                }
            }
        }
        Ok(self.summary)
    }

    #[inline]
    fn edge<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        t: usize,
        edge: &EdgeCode,
        sink: &mut S,
    ) -> Result<(), Growth> {
        copy(state, &mut self.next);
        self.chosen.clear();
        match &edge.action {
            ActionCode::Op(OpCode::Havoc { .. }) | ActionCode::Atomic { .. } => {
                let (ops, direct) = match &edge.action {
                    ActionCode::Op(op) => (std::slice::from_ref(op), false),
                    ActionCode::Atomic { ops, drains } => (&**ops, *drains),
                    _ => unreachable!("matched above"),
                };
                return self.ops(layout, t, edge, ops, direct, sink);
            }
            ActionCode::Op(op) => match self.perform(layout, t, op, false)? {
                Flow::Done => {}
                Flow::Disabled => return Ok(()),
                Flow::Fault => {
                    self.finish(layout, t, edge, true, sink);
                    return Ok(());
                }
                Flow::Limit(limit) => {
                    self.summary.limit = Some((limit, edge.span));
                    return Ok(());
                }
            },
            ActionCode::Fence => {}
            ActionCode::StoreFence => self.barrier(layout, t)?,
            ActionCode::Lock => layout.slots[self.code.lock()].set_raw(&mut self.next, t as u64 + 1),
            ActionCode::Unlock => layout.slots[self.code.lock()].set_raw(&mut self.next, 0),
        }
        self.finish(layout, t, edge, false, sink);
        Ok(())
    }

    /// The operations of one step; if some choose values, all combinations are explored depth first.
    fn ops<S: Sink>(
        &mut self,
        layout: &Layout,
        t: usize,
        edge: &EdgeCode,
        ops: &[OpCode],
        direct: bool,
        sink: &mut S,
    ) -> Result<(), Growth> {
        for (n, op) in ops.iter().enumerate() {
            if let OpCode::Havoc { target, range, sampled } = op {
                let before = self.next.clone();
                let mut choose = |this: &mut Self, value: i64| {
                    this.next.copy_from_slice(&before);
                    this.chosen.push(value);
                    let flow = this.write(layout, target, value);
                    let result = match flow {
                        Ok(Flow::Done) => this.ops(layout, t, edge, &ops[n + 1..], direct, sink),
                        Ok(Flow::Fault) => {
                            this.finish(layout, t, edge, true, sink);
                            Ok(())
                        }
                        Ok(Flow::Disabled | Flow::Limit(_)) => Ok(()),
                        Err(growth) => Err(growth),
                    };
                    this.chosen.pop();
                    result
                };
                if *sampled {
                    self.summary.sampled = true;
                    // A thread at a `*` can always move, even if no sample lies in the range.
                    self.summary.moved = true;
                    for &value in self.samples.iter().filter(|&&v| range.contains(v)) {
                        choose(self, value)?;
                    }
                } else {
                    for value in range.low..=range.high {
                        choose(self, value)?;
                    }
                }
                return Ok(());
            }
            match self.perform(layout, t, op, direct)? {
                Flow::Done => {}
                Flow::Disabled => return Ok(()),
                Flow::Fault => {
                    self.finish(layout, t, edge, true, sink);
                    return Ok(());
                }
                Flow::Limit(limit) => {
                    self.summary.limit = Some((limit, edge.span));
                    return Ok(());
                }
            }
        }
        self.finish(layout, t, edge, false, sink);
        Ok(())
    }

    #[inline(always)]
    fn finish<S: Sink>(&mut self, layout: &Layout, t: usize, edge: &EdgeCode, fault: bool, sink: &mut S) {
        let code = self.code;
        let to = if fault { code.threads[t].fault } else { edge.to };
        match self.next.as_mut_slice() {
            [word] => {
                let arrivals = &layout.arrive[t];
                let (keep, set) = arrivals[if fault { arrivals.len() - 1 } else { edge.id.index() }];
                *word = (*word & keep) | set;
            }
            words => {
                layout.slots[code.pc(t)].set_raw(words, to);
                let dead =
                    if fault { &layout.dead_after_fault[t] } else { &layout.freed[t][edge.id.index()] };
                for &(word, mask) in dead {
                    words[word as usize] &= !mask;
                }
            }
        }
        if code.local_first {
            let favourite =
                if edge.local && !fault && !code.threads[t].ended[to as usize] { t as u64 + 1 } else { 0 };
            layout.slots[code.favourite()].set_raw(&mut self.next, favourite);
        }
        self.summary.moved = true;
        let kind = StepKind::Edge(edge, &self.chosen);
        sink.take(Step { thread: t as u32, kind, visible: edge.visible, fault }, &self.next);
    }

    /// One operation other than a choice, applied to `self.next`.
    #[inline(always)]
    fn perform(&mut self, layout: &Layout, t: usize, op: &OpCode, direct: bool) -> Result<Flow, Growth> {
        macro_rules! value {
            ($e:expr) => {
                match self.eval(layout, $e) {
                    Ok(value) => value,
                    Err(EvalError::DivisionByZero | EvalError::ShiftOutOfRange) => return Ok(Flow::Fault),
                    Err(EvalError::Overflow) => return Ok(Flow::Limit(Limit::Overflow)),
                }
            };
        }
        macro_rules! cell {
            ($address:expr) => {
                match $address {
                    AddressCode::Cell(cell) => *cell,
                    AddressCode::Computed { index, indices, base, open } => {
                        let index = value!(index);
                        if !indices.contains(index) {
                            return Ok(if *open { Flow::Limit(Limit::Window) } else { Flow::Fault });
                        }
                        base + (index - indices.low) as u32
                    }
                }
            };
        }
        match op {
            OpCode::Skip => {}
            OpCode::Assign(target, e) => {
                let value = value!(e);
                return self.write(layout, target, value);
            }
            OpCode::Assume(e) => {
                if value!(e) == 0 {
                    return Ok(Flow::Disabled);
                }
            }
            OpCode::Assert(e) => {
                if value!(e) == 0 {
                    return Ok(Flow::Fault);
                }
            }
            OpCode::Load(target, address) => {
                let cell = cell!(address);
                let value = self.load(layout, t, cell);
                return self.write(layout, target, value);
            }
            OpCode::Store(address, range, e) => {
                let cell = cell!(address);
                let value = value!(e);
                if !range.contains(value) {
                    return Ok(Flow::Fault);
                }
                if direct || self.code.model == MemoryModel::Sc {
                    self.set(layout, self.code.memory + cell, value)?;
                } else {
                    return self.buffer(layout, t, cell, value);
                }
            }
            OpCode::Havoc { .. } => unreachable!("choices are made in `ops`"),
        }
        Ok(Flow::Done)
    }

    #[inline]
    fn eval(&mut self, layout: &Layout, e: &ExprCode) -> Result<i64, EvalError> {
        e.eval(&layout.slots, &self.next, &mut self.stack)
    }

    #[inline]
    fn set(&mut self, layout: &Layout, slot: u32, value: i64) -> Result<(), Growth> {
        match layout.slots[slot as usize].set(&mut self.next, value) {
            true => Ok(()),
            false => Err(Growth::Value(slot, value)),
        }
    }

    #[inline]
    fn write(&mut self, layout: &Layout, target: &Target, value: i64) -> Result<Flow, Growth> {
        if !target.range.contains(value) {
            return Ok(Flow::Fault);
        }
        if let Some(slot) = target.slot {
            self.set(layout, slot, value)?;
        }
        Ok(Flow::Done)
    }

    /// (RB) and (RM): the newest own buffered value, else memory.
    #[inline]
    fn load(&self, layout: &Layout, t: usize, cell: u32) -> i64 {
        if let Some(buffer) = layout.buffers.get(t) {
            let kind = u64::from(self.code.threads[t].cell_kind[cell as usize]);
            let count = buffer.count.raw(&self.next) as usize;
            let newest = buffer.entries[..count].iter().rev().find(|(k, _)| k.raw(&self.next) == kind);
            if let Some((_, value)) = newest {
                return value.get(&self.next);
            }
        }
        layout.slots[(self.code.memory + cell) as usize].get(&self.next)
    }

    /// (LS): a store enters the buffer; under PSO the entries after the last barrier are sorted by cell.
    fn buffer(&mut self, layout: &Layout, t: usize, cell: u32, value: i64) -> Result<Flow, Growth> {
        if let Some(abstraction) = self.code.abstraction {
            return self.abstract_store(abstraction, layout, t, cell, value);
        }
        let fields = &layout.buffers[t];
        let count = fields.count.raw(&self.next) as usize;
        let barrier = self.code.threads[t].barrier();
        let has_room = |bound: Bound| {
            let kinds = fields.entries[..count].iter().map(|(kind, _)| kind.raw(&self.next));
            let stores = kinds.filter(|kind| *kind != barrier);
            let cells = &self.code.threads[t].buffered_cells;
            bound.has_room(stores.map(|kind| cells[kind as usize]), cell)
        };
        if !self.bound.is_none_or(has_room) {
            self.summary.bounded = true;
            return Ok(Flow::Disabled);
        }
        if count == fields.entries.len() {
            return Err(Growth::Buffer(t as u32));
        }
        let kind = u64::from(self.code.threads[t].cell_kind[cell as usize]);
        let mut position = count;
        if self.code.model == MemoryModel::Pso {
            while position > 0 {
                let older = fields.entries[position - 1].0.raw(&self.next);
                if older <= kind || older == barrier {
                    break;
                }
                self.copy_entry(layout, t, position - 1, position);
                position -= 1;
            }
        }
        fields.entries[position].0.set_raw(&mut self.next, kind);
        if !fields.entries[position].1.set(&mut self.next, value) {
            return Err(Growth::BufferValue(t as u32, value));
        }
        fields.count.set_raw(&mut self.next, count as u64 + 1);
        Ok(Flow::Done)
    }

    /// `sfence`: under PSO it adds a barrier, unless the buffer is empty or already ends with a barrier.
    fn barrier(&mut self, layout: &Layout, t: usize) -> Result<(), Growth> {
        if self.code.model != MemoryModel::Pso {
            return Ok(());
        }
        let fields = &layout.buffers[t];
        if let Some(abstraction) = self.code.abstraction {
            let thread = &self.code.threads[t];
            self.unpacked.read(abstraction, thread, fields, &self.next);
            self.unpacked.barrier(abstraction, thread);
            return self.unpacked.write(abstraction, (t, thread), fields, &mut self.next);
        }
        let barrier = self.code.threads[t].barrier();
        let count = fields.count.raw(&self.next) as usize;
        if count == 0 || fields.entries[count - 1].0.raw(&self.next) == barrier {
            return Ok(());
        }
        if count == fields.entries.len() {
            return Err(Growth::Buffer(t as u32));
        }
        fields.entries[count].0.set_raw(&mut self.next, barrier);
        fields.entries[count].1.set_raw(&mut self.next, 0);
        fields.count.set_raw(&mut self.next, count as u64 + 1);
        Ok(())
    }

    /// (WM): TSO flushes the oldest entry, PSO the oldest of any cell before the first barrier.
    fn flushes<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        t: usize,
        wanted: impl Fn(u64) -> bool,
        sink: &mut S,
    ) -> Result<(), Growth> {
        let code = self.code;
        if let Some(abstraction) = code.abstraction {
            return self.abstract_flushes(abstraction, layout, state, t, sink);
        }
        let thread = &code.threads[t];
        let fields = &layout.buffers[t];
        let count = fields.count.raw(state) as usize;
        let candidates = if code.model == MemoryModel::Pso { count } else { 1 };
        let mut previous = u64::MAX;
        for position in 0..candidates {
            let kind = fields.entries[position].0.raw(state);
            if kind == thread.barrier() {
                break;
            }
            // Entries of one cell are adjacent, oldest first.
            if kind == previous {
                continue;
            }
            previous = kind;
            if !wanted(kind) {
                continue;
            }
            copy(state, &mut self.next);
            let cell = thread.buffered_cells[kind as usize];
            let value = fields.entries[position].1.get(state);
            self.set(layout, code.memory + cell, value)?;
            self.remove_entry(layout, t, position, count);
            if count > 1 && fields.entries[0].0.raw(&self.next) == thread.barrier() {
                self.remove_entry(layout, t, 0, count - 1);
            }
            self.flushed(layout, t, kind, sink);
        }
        Ok(())
    }

    /// Completes a flush to a cell, and passes the successor to the sink.
    #[inline]
    fn flushed<S: Sink>(&mut self, layout: &Layout, t: usize, kind: u64, sink: &mut S) {
        let code = self.code;
        if code.local_first {
            layout.slots[code.favourite()].set_raw(&mut self.next, 0);
        }
        self.summary.moved = true;
        let thread = &code.threads[t];
        let (cell, visible) = (thread.buffered_cells[kind as usize], thread.flush_visible[kind as usize]);
        let step = Step { thread: t as u32, kind: StepKind::Flush(cell), visible, fault: false };
        sink.take(step, &self.next);
    }

    /// (LS) for an abstract buffer.
    fn abstract_store(
        &mut self,
        abstraction: Abstraction,
        layout: &Layout,
        t: usize,
        cell: u32,
        value: i64,
    ) -> Result<Flow, Growth> {
        let (thread, fields) = (&self.code.threads[t], &layout.buffers[t]);
        let pso = self.code.model == MemoryModel::Pso;
        let kind = u64::from(thread.cell_kind[cell as usize]);
        self.unpacked.read(abstraction, thread, fields, &self.next);
        if !self.unpacked.store(abstraction, thread, pso, (kind, value)) {
            self.summary.bounded = true;
            return Ok(Flow::Disabled);
        }
        self.unpacked.write(abstraction, (t, thread), fields, &mut self.next)?;
        Ok(Flow::Done)
    }

    /// (WM) for an abstract buffer.
    fn abstract_flushes<S: Sink>(
        &mut self,
        abstraction: Abstraction,
        layout: &Layout,
        state: &[u64],
        t: usize,
        sink: &mut S,
    ) -> Result<(), Growth> {
        let code = self.code;
        let (thread, fields) = (&code.threads[t], &layout.buffers[t]);
        let mut leaving = std::mem::take(&mut self.leaving);
        self.unpacked.read(abstraction, thread, fields, state);
        self.unpacked.leaving(abstraction, thread, code.model == MemoryModel::Pso, &mut leaving);
        for way in &leaving {
            copy(state, &mut self.next);
            self.set(layout, code.memory + thread.buffered_cells[way.kind as usize], way.value)?;
            self.unpacked.read(abstraction, thread, fields, state);
            self.unpacked.leave(thread, way);
            self.unpacked.write(abstraction, (t, thread), fields, &mut self.next)?;
            self.flushed(layout, t, way.kind, sink);
        }
        self.leaving = leaving;
        Ok(())
    }

    fn copy_entry(&mut self, layout: &Layout, t: usize, from: usize, to: usize) {
        let entries = &layout.buffers[t].entries;
        let kind = entries[from].0.raw(&self.next);
        let value = entries[from].1.raw(&self.next);
        entries[to].0.set_raw(&mut self.next, kind);
        entries[to].1.set_raw(&mut self.next, value);
    }

    /// Removes the entry at `position` from a buffer of `count` entries.
    fn remove_entry(&mut self, layout: &Layout, t: usize, position: usize, count: usize) {
        for n in position + 1..count {
            self.copy_entry(layout, t, n, n - 1);
        }
        let fields = &layout.buffers[t];
        fields.entries[count - 1].0.set_raw(&mut self.next, 0);
        fields.entries[count - 1].1.set_raw(&mut self.next, 0);
        fields.count.set_raw(&mut self.next, count as u64 - 1);
    }
}

/// Copies a state. Most states are one word, which is not worth a call to `memcpy`.
#[inline(always)]
fn copy(from: &[u64], to: &mut [u64]) {
    match (from, to) {
        ([from], [to]) => *to = *from,
        (from, to) => to.copy_from_slice(from),
    }
}
