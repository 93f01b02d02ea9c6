//! Successors of a packed state: the transition relation of the reference semantics, on packed words. Only steps that choose the value of a `*`
//! allocate memory.
//!
//! The rules and their names, such as (LS), are those of `fencewright_program::reference`. With the local-events-first reduction, a state names at
//! most one favourite thread, the thread that took a local step last. If the favourite can move, only its steps are taken (THESIS16 Algorithm 4.3). A
//! state has no favourite after a non-local event or after the favourite has ended; a favourite that is blocked is ignored.

mod buffers;

use fencewright_memory::Bound;
use fencewright_program::reference::Limit;
use fencewright_program::{EvalError, MemoryModel, Span};

use super::abstract_buffer::{AbstractBuffer, Leaving};
use super::code::{ActionCode, AddressCode, Code, EdgeCode, OpCode, Target};
use super::instructions::ExprCode;
use super::layout::{Growth, Layout};

/// A step from a packed state, as a `Sink` receives it together with the successor.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The index of the thread; for a flush, of the thread whose buffer is flushed.
    pub thread: u32,
    /// What the thread or its buffer does.
    pub kind: StepKind<'a>,
    /// Whether the step may change the value of the formula of a [`PropertyKind::Never`](fencewright_program::PropertyKind::Never).
    pub visible: bool,
    /// Whether the thread faulted in this step.
    pub fault: bool,
}

/// What a thread or its buffer does in a step.
#[derive(Clone, Copy)]
pub enum StepKind<'a> {
    /// An edge, with the values chosen for its `*`s.
    Edge(&'a EdgeCode, &'a [i64]),
    /// A flush of a store to this memory cell.
    Flush(u32),
    /// Several edges in sequence: a reduction may omit the states between them.
    Run,
}

/// A subset of the steps of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The steps along the edges of the thread with this index.
    Edges(usize),
    /// The flushes of the buffer of the thread with this index; if the kind of an entry is given
    /// ([`ThreadCode::buffer_kinds`](super::code::ThreadCode::buffer_kinds)), only the flushes to its cell.
    Flushes(usize, Option<u64>),
}

/// A consumer of the successors that an `Expander` produces.
pub trait Sink {
    /// Takes one successor: the step, and the packed state after it, which is valid only during the call.
    fn take(&mut self, step: Step<'_>, state: &[u64]);
}

/// Facts about the expansion of a state besides its successors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Whether a step is enabled. A step that reaches a limit or the bound on buffers does not count. A `*` that is sampled counts, even if no sample
    /// lies in its range.
    pub moved: bool,
    /// Whether only samples were tried for some `*`.
    pub sampled: bool,
    /// Whether a store was not explored, because of the bound on buffers or because an abstract buffer cut it off.
    pub bounded: bool,
    /// A [`Limit`] that an action reached, with its source position; `None` if none did.
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

    /// Whether all successors were produced: none was left out because of a limit, the bound on buffers, sampling, or an abstract buffer that
    /// cut off a store.
    pub fn is_complete(self) -> bool {
        self.limit.is_none() && !self.bounded && !self.sampled
    }
}

/// The outcome of an operation. Any outcome but `Done` ends the step.
enum Flow {
    Done,
    Disabled,
    Fault,
    Limit(Limit),
}

/// Computes the successors of packed states. One expander is used for many states, so that its scratch space is allocated only once.
pub struct Expander<'c> {
    /// The compiled program whose steps are computed.
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
    /// An expander that tries `samples` for each unbounded `*`, and cuts off stores that exceed `bound`.
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

    /// Passes all successors of `state` to the sink; with the local-events-first reduction only those by the favourite, if it can move. If the result
    /// is a [`Growth`], some successors may be missing, and the state must be expanded again in a wider layout.
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

    /// Passes to the sink the successors by the steps in the given parts of threads; see [`Expander::expand`].
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

    /// Performs the operations of one step. If some operations choose values, all combinations of values are explored depth first.
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

    /// Applies one operation other than a choice to `self.next`.
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
}

/// Copies a state. Most states have a single word, for which a call to `memcpy` would be slower.
#[inline(always)]
fn copy(from: &[u64], to: &mut [u64]) {
    match (from, to) {
        ([from], [to]) => *to = *from,
        (from, to) => to.copy_from_slice(from),
    }
}
