//! PSO by way of TSO: issues stores in every order in which they may leave the buffer.
//!
//! Call the stores of a thread between two steps that separate stores (an `sfence`, or a step that waits for an empty buffer) a *segment*. Under PSO
//! the stores of a segment leave in any order, except that stores to the same cell leave in program order. So the new program `R'` may *delay* a
//! store of `R` behind later ones of its segment: the store is kept in auxiliary registers (`delay`), and is *issued*, that is, put into the buffer,
//! after them. The buffer is then flushed in order, as TSO requires. In a copy of a location with some delayed stores
//!
//! 1. each delayed store may be issued, unless an older delayed store is to the same cell; this is no step of `R`;
//! 2. if each delayed store *can be overtaken*, because a store to a possibly different cell may follow before the segment ends, the thread may
//!    continue. It issues a store if no delayed store is to its cell. It delays a store, loads, or works on registers, if all stores that are delayed
//!    then can still be overtaken. It takes no step that ends the segment.
//!
//! Where no store is delayed, all edges of `R` exist, and each store that can be overtaken may be delayed.
//!
//! **`R'` under TSO has the executions of `R` under PSO.** A state of `R'` *represents* a state of `R`: copies of locations stand for the original
//! ones, memory and registers are the same, and the buffer of `R` is the buffer of `R'`, with the barriers between segments inserted, followed by the
//! delayed stores.
//!
//! *Every execution of `R'` is one of `R`.* A step of `R'` is the step of `R` that it was made from, or none (1). The delayed stores to a cell are
//! newer than the stores to it in the buffer, because neither 1 nor 2 issues a store while an older one to its cell is delayed. So a load reads the
//! same value. And the oldest store in the buffer of `R'` is, in `R`, in the first segment and the oldest to its cell, so it may leave. An `sfence`,
//! or a step that waits for an empty buffer, is taken only where no store is delayed, so segments remain separate.
//!
//! *Every execution of `R` is one of `R'`.* Order the stores of each segment as they leave in this execution; those that never leave come last, in
//! program order. When `R` performs a store, let `R'` delay it if a store that precedes it in this order has not been performed yet. Otherwise let
//! `R'` issue the store, and then, by 1 and in this order, the delayed stores that are preceded by issued ones only. So stores are issued in this
//! order, and those to one cell in program order; a store that leaves in `R` has been issued, and is the oldest in the buffer of `R'`. While a store
//! is delayed, a store to another cell will still follow in its segment. Hence the delayed store can be overtaken, `R'` continues by 2, and no store
//! is delayed when the segment ends.
//!
//! *Final states and deadlocks agree.* A state with delayed stores is neither final nor a deadlock, since one of them can be issued. So final states
//! and deadlocks of `R'` represent themselves. Faults are control in threads that are changed (`faults`): the stores of a thread that is about to
//! fault cannot be overtaken any more, so all of them have been issued. (Before a load that faults, the thread commits to the fault. With locks that
//! load may then wait forever, while `R` can still take another edge: so programs with both faults and locks are refused.)
//!
//! Where no store can be overtaken nothing changes: there PSO is TSO ([`stores_are_separated`](crate::separated::stores_are_separated)). Programs
//! with a loop in which stores can be delayed again and again are refused.

use std::collections::HashMap;

use fencewright_kit::choices::faulting_choices;
use fencewright_program::{
    Action, Address, Edge, EdgeId, Event, EventKind, Expr, LocationId, Op, Program, RegisterId, Span, Thread,
    Trace,
};

use super::delay::{Delayed, Delays, same};
use super::{Extended, Origin, Refused};
use crate::separated::{Stored, are_separated, followers};

/// Maximum number of copies of locations per thread: enough for a segment of seven consecutive stores.
const MOST_COPIES: usize = 1_000;

impl Extended {
    /// The program whose executions under TSO represent the executions of `program` under PSO: see `reorder`.
    pub fn reordered(program: &Program) -> Result<Extended, Refused> {
        Self::reordered_within(program, usize::MAX)
    }

    /// Like [`Extended::reordered`], but with at most one delayed store per thread at a time. Loops, because of which `reordered` refuses some
    /// programs, are allowed here. Its executions under TSO represent executions of the original program under PSO, but not all of them.
    pub fn reordered_once(program: &Program) -> Result<Extended, Refused> {
        Self::reordered_within(program, 1)
    }

    fn reordered_within(program: &Program, most: usize) -> Result<Extended, Refused> {
        let mut reordered = Extended::unchanged(program);
        let locks = reordered.has_locks();
        for (id, thread) in program.threads().filter(|(_, thread)| !are_separated(program, thread)) {
            if let Some(edge) = thread.edges.iter().find(|edge| locks && program.edge_may_fault(thread, edge))
            {
                let why = "a step that may fault, beside stores that may leave in any order, in a program with locks";
                return Err(Refused { why, span: Some(edge.span) });
            }
            reordered.make_faults_explicit(id)?;
            let mut builder = reordered.builder(id);
            let edges = builder.edges.clone();
            let code = reordered.program.thread(id);
            Reorder {
                delays: Delays::new(program, &mut builder, &edges),
                thread: code,
                followers: followers(program, code),
                most,
                copies: HashMap::new(),
                open: Vec::new(),
            }
            .all()?;
            reordered.replace(id, builder);
        }
        reordered.adapt_formulas();
        Ok(reordered)
    }

    /// Translates an execution of the [reordered](Extended::reordered) program under TSO to one of the original program under PSO.
    pub fn pso_trace(&self, original: &Program, trace: &Trace) -> Trace {
        let mapped = |event: &Event| {
            let kind = match &event.kind {
                EventKind::Flush { .. } => event.kind.clone(),
                EventKind::Step { edge, chosen } => {
                    let edge = self.original_edge(event.thread, *edge)?;
                    let chosen = faulting_choices(original, event.thread, edge, chosen.clone());
                    EventKind::Step { edge, chosen }
                }
            };
            Some(Event { thread: event.thread, kind })
        };
        let registers = trace.registers.iter().zip(&self.threads);
        let registers = registers.map(|(values, mapping)| values[..mapping.registers].to_vec()).collect();
        Trace {
            registers,
            memory: trace.memory.clone(),
            events: trace.events.iter().filter_map(mapped).collect(),
        }
    }
}

/// A thread under transformation.
struct Reorder<'a> {
    delays: Delays<'a>,
    thread: &'a Thread,
    /// For each location, the cells that may be stored to from there on in the same segment.
    followers: Vec<Stored>,
    /// Maximum number of stores delayed at a time.
    most: usize,
    copies: HashMap<(LocationId, Vec<Delayed>), LocationId>,
    /// The worklist of copies that still need edges: location, copy, delayed stores.
    open: Vec<(LocationId, LocationId, Vec<Delayed>)>,
}

impl Reorder<'_> {
    fn all(&mut self) -> Result<(), Refused> {
        for (edge, id) in self.thread.edges.iter().zip((0..).map(EdgeId)) {
            if let Action::Op(Op::Store(address, _)) = &edge.action
                && self.can_overtake(edge.to, address)
            {
                self.follow(edge.from, id, &[])?;
            }
        }
        while let Some((location, copy, delayed)) = self.open.pop() {
            self.leave(location, copy, &delayed)?;
        }
        Ok(())
    }

    /// Whether a store to this address can be overtaken by a store that follows this location in the same segment.
    fn can_overtake(&self, location: LocationId, address: &Address) -> bool {
        self.followers[location.index()].can_overtake(Stored::to(self.delays.program, address))
    }

    /// The copy of a location with these delayed stores, created on demand.
    fn copy(&mut self, location: LocationId, delayed: &[Delayed]) -> Result<LocationId, Refused> {
        let Some(last) = delayed.last() else { return Ok(location) };
        if let Some(copy) = self.copies.get(&(location, delayed.to_vec())) {
            return Ok(*copy);
        }
        if self.copies.len() >= MOST_COPIES {
            return Err(Refused { why: "so many stores that may leave in any order", span: Some(last.span) });
        }
        let copy = self.delays.builder.copy_of(location, Some(last.span));
        self.copies.insert((location, delayed.to_vec()), copy);
        self.open.push((location, copy, delayed.to_vec()));
        Ok(copy)
    }

    /// Adds the edges that leave a copy.
    fn leave(&mut self, location: LocationId, copy: LocationId, delayed: &[Delayed]) -> Result<(), Refused> {
        for (n, store) in delayed.iter().enumerate() {
            let to = self.copy(location, &[&delayed[..n], &delayed[n + 1..]].concat())?;
            self.issue((copy, to), (&store.address, &store.value), &delayed[..n], store.span, Origin::SILENT);
        }
        if !delayed.iter().all(|store| self.can_overtake(location, &store.address)) {
            return Ok(());
        }
        for (id, edge) in self.thread.edges_from(location) {
            if edge.action == Action::StoreFence || edge.action.drains() {
                continue;
            }
            self.follow(copy, id, delayed)?;
            if let Action::Op(Op::Store(address, value)) = &edge.action {
                let to = self.copy(edge.to, delayed)?;
                let origin = self.delays.edges[id.index()].1;
                self.issue((copy, to), (address, value), delayed, edge.span, origin);
            }
        }
        Ok(())
    }

    /// Adds the copy of an edge that delays a store, or does not store, if afterwards at most `most` stores are delayed and all of them can be
    /// overtaken.
    fn follow(&mut self, from: LocationId, id: EdgeId, delayed: &[Delayed]) -> Result<(), Refused> {
        let Edge { to, span, .. } = self.delays.edges[id.index()].0;
        let after = self.delays.after(id, delayed)?;
        if after.len() > self.most || !after.iter().all(|store| self.can_overtake(to, &store.address)) {
            return Ok(());
        }
        if after.len() > delayed.len() && delayed.iter().any(|store| store.edge == id) {
            let why = "a loop with stores that may leave in any order";
            return Err(Refused { why, span: Some(span) });
        }
        let to = self.copy(to, &after)?;
        self.delays.follow((from, to), id, delayed, &after)
    }

    /// Adds an edge that issues a store if none of the `older` delayed stores is to the same cell; computed addresses are compared at run time.
    fn issue(
        &mut self,
        (from, to): (LocationId, LocationId),
        (address, value): (&Address, &Expr<RegisterId>),
        older: &[Delayed],
        span: Span,
        origin: Origin,
    ) {
        let mut conditions = Vec::new();
        for store in older {
            match same(address, &store.address) {
                Expr::Const(0) => {}
                Expr::Const(_) => return,
                same => conditions.push(same.not()),
            }
        }
        let builder = &mut *self.delays.builder;
        let mut at = from;
        if !conditions.is_empty() {
            at = builder.copy_of(from, Some(span));
            builder.op(from, at, Op::Assume(Expr::all(conditions)), span, Origin::SILENT);
        }
        builder.op(at, to, Op::Store(address.clone(), value.clone()), span, origin);
    }
}
