//! Translates the edges of a thread, one by one.
//!
//! A step of the original program `P` that only accesses registers or stores into the buffer does not wait while another thread holds the lock, but
//! an atomic step of the reduced program `P_M` does. So in programs with locks, such a step of `P` becomes a sequence of steps that are not atomic.
//! The first of them chooses the branch, no later one can block, and the last one counts as the step of `P`. In programs without locks it becomes one
//! atomic step.

use fencewright_kit::accesses::{for_each_read, is_inside};
use fencewright_program::{
    Action, Address, Bounds, Checks, Edge, Expr, LocationId, Op, Range, RegisterId, faults::both,
};

use crate::Unsupported;
use crate::forgotten;
use crate::queues::{Lookup, Way};
use crate::thread::{Origin, Reducer, Site};

type Value = Expr<RegisterId>;

/// Maximum number of branches of an atomic step. There is one for each combination of places where its loads may find their values.
const MOST_WAYS: usize = 256;

impl Reducer<'_> {
    /// Translates an edge of `P`.
    pub fn edge(&mut self, site: Site<'_>) -> Result<(), Unsupported> {
        let Edge { to, action, .. } = site.edge;
        self.weigh_expressions(site)?;
        match action {
            Action::Fence => {
                let waits = self.empty(site.held).map_or(Op::Skip, Op::Assume);
                self.step(site, *to, Action::Op(waits))
            }
            Action::StoreFence => {
                let marks = self.queues.store_fence(site.held);
                self.step(site, *to, Action::Op(marks))
            }
            // Where the buffers may be nonempty, lock operations leave from a copy of the location, which `Reducer::location` adds.
            Action::Lock | Action::Unlock if !site.held.is_empty() => Ok(()),
            Action::Lock | Action::Unlock => self.step(site, *to, action.clone()),
            Action::Atomic { ops, drains } => self.indivisible(site, ops, *drains),
            Action::Op(op @ Op::Load(..)) => self.indivisible(site, std::slice::from_ref(op), false),
            Action::Op(Op::Store(address, value)) => self.store(site, address, value),
            Action::Op(op) => self.register_work(site, op),
        }
    }

    /// Adds to the size of the thread the expressions of the edge with several leaves, because the translation copies an index or value once per
    /// place of a queue (TSO: an index once per pair of places).
    fn weigh_expressions(&mut self, site: Site<'_>) -> Result<(), Unsupported> {
        let places = site.held.total as usize;
        let places = places * places + site.held.counts.values().map(|&count| count as usize).sum::<usize>();
        for op in site.edge.action.ops() {
            let mut leaves = 0_usize;
            for_each_read(op, &mut |_| leaves += 1);
            if leaves > 1 {
                self.weigh(leaves.saturating_mul(places))?;
            }
        }
        Ok(())
    }

    fn step(&mut self, site: Site<'_>, to: LocationId, action: Action) -> Result<(), Unsupported> {
        self.add(site.from, to, action, site.edge.span, Origin::Step(site.id))
    }

    fn checks(&self, op: &Op) -> Checks {
        self.program.checks(&self.thread.registers, op)
    }

    /// The location of the thread after a fault.
    fn faulted(&self) -> LocationId {
        self.faulted.expect("what may fault is known to the analysis")
    }

    fn register_work(&mut self, site: Site<'_>, op: &Op) -> Result<(), Unsupported> {
        let Checks { before, value } = self.checks(op);
        if let Some(guard) = &before {
            self.step(site, self.faulted(), Action::Op(Op::Assume(guard.clone().not())))?;
        }
        match op {
            Op::Havoc(register, range) if value.is_some() => {
                self.step(site, self.faulted(), Action::Op(Op::Skip))?;
                match self.fitting_choice(*register, *range) {
                    Some(fits) => self.step(site, site.edge.to, Action::Op(fits)),
                    None => Ok(()),
                }
            }
            // An assertion becomes the assumption that it does not fault.
            Op::Assert(..) => self.step(site, site.edge.to, Action::Op(before.map_or(Op::Skip, Op::Assume))),
            Op::Assume(condition) => {
                let both = both(before, Some(condition.clone())).expect("one of them is there");
                self.step(site, site.edge.to, Action::Op(Op::Assume(both)))
            }
            _ => self.local(
                site,
                Way { cell: None, condition: before, effects: vec![op.clone()] },
                site.edge.to,
            ),
        }
    }

    /// Translates a store into the buffer.
    fn store(&mut self, site: Site<'_>, address: &Address, value: &Value) -> Result<(), Unsupported> {
        if self.is_open(address) {
            return self.store_into_window(site, address, value);
        }
        let guard = self.checks(&Op::Store(address.clone(), value.clone())).before;
        if let Some(guard) = &guard {
            self.step(site, self.faulted(), Action::Op(Op::Assume(guard.clone().not())))?;
        }
        let (ways, overflows) = self.buffered(site, address, value);
        for Way { condition, .. } in overflows {
            let overflow = self.overflow()?;
            let full = both(guard.clone(), condition).map_or(Op::Skip, Op::Assume);
            self.add(site.from, overflow, Action::Op(full), site.edge.span, Origin::Overflow)?;
        }
        for way in ways {
            let way = Way { condition: both(guard.clone(), way.condition), ..way };
            self.local(site, way, site.edge.to)?;
        }
        Ok(())
    }

    /// The ways in which a store enters the buffer; and the conditions for overflow.
    fn buffered(&self, site: Site<'_>, address: &Address, value: &Value) -> (Vec<Way>, Vec<Way>) {
        let ways = self.queues.store(self.program, &self.size.bounds, site.held, address, value);
        match self.size.forgets {
            true => {
                let (program, forgotten) = (self.program, &self.forgotten);
                (forgotten::store(program, forgotten, site.held, (address, value), ways), Vec::new())
            }
            false => ways,
        }
    }

    /// A store to an open array whose index may lie outside the window, the part of the array that is modelled. The window is tested by an access to
    /// the memory cell, which is impossible while another thread holds the lock. So programs with locks are refused.
    fn store_into_window(
        &mut self,
        site: Site<'_>,
        address: &Address,
        value: &Value,
    ) -> Result<(), Unsupported> {
        if self.locks {
            let why = "a store to an open array at a computed index, in a program with locks";
            return Err(Unsupported::new(why, Some(site.edge.span)));
        }
        let mut done = Vec::new();
        self.probe(site, &mut done, address)?;
        let variable = &self.program.variables[address.variable.index()];
        if let Some(fits) = self.program.fits(self.program.writable(variable.range), value) {
            self.guard(site, &mut done, fits)?;
        }
        let (ways, overflows) = self.buffered(site, address, value);
        for Way { condition, .. } in overflows {
            let overflow = self.overflow()?;
            let mut ops = done.clone();
            condition.into_iter().for_each(|c| assume(&mut ops, c));
            self.add(site.from, overflow, at_once(ops), site.edge.span, Origin::Overflow)?;
        }
        for Way { condition, effects, .. } in ways {
            let mut ops = done.clone();
            condition.into_iter().for_each(|c| assume(&mut ops, c));
            ops.extend(effects);
            self.step(site, site.edge.to, at_once(ops))?;
        }
        Ok(())
    }

    /// Adds a step on registers that does not wait for the lock. Its condition and effects become one step or several.
    fn local(&mut self, site: Site<'_>, way: Way, to: LocationId) -> Result<(), Unsupported> {
        let mut ops: Vec<Op> = way.condition.map(Op::Assume).into_iter().chain(way.effects).collect();
        let Some(last) = ops.pop() else { return self.step(site, to, Action::Op(Op::Skip)) };
        if ops.is_empty() {
            return self.step(site, to, Action::Op(last));
        }
        if !self.locks {
            ops.push(last);
            return self.step(site, to, at_once(ops));
        }
        let mut from = site.from;
        for op in ops {
            let next = self.builder.copy_of(site.from, Some(site.edge.span));
            self.add(from, next, Action::Op(op), site.edge.span, Origin::Silent)?;
            from = next;
        }
        self.step(Site { from, ..site }, to, Action::Op(last))
    }

    /// Translates an atomic step: adds one edge for each branch through it, and for each operation that may fault one edge that performs the
    /// operations before the fault.
    fn indivisible(&mut self, site: Site<'_>, ops: &[Op], drains: bool) -> Result<(), Unsupported> {
        let mut first = Vec::new();
        if drains {
            self.empty(site.held).into_iter().for_each(|empty| assume(&mut first, empty));
        }
        let mut ways = vec![first];
        for op in ops {
            let mut longer = Vec::new();
            for mut done in ways {
                let Checks { before, value } = self.checks(op);
                match op {
                    Op::Store(address, stored) if self.is_open(address) && before.is_some() => {
                        self.probe(site, &mut done, address)?;
                        let variable = &self.program.variables[address.variable.index()];
                        if let Some(fits) = self.program.fits(self.program.writable(variable.range), stored) {
                            self.guard(site, &mut done, fits)?;
                        }
                    }
                    _ => {
                        if let Some(guard) = before {
                            self.guard(site, &mut done, guard)?;
                        }
                    }
                }
                match op {
                    Op::Assert(..) | Op::Skip => longer.push(done),
                    Op::Assume(condition) => {
                        assume(&mut done, condition.clone());
                        longer.push(done);
                    }
                    Op::Havoc(register, range) if value.is_some() => {
                        self.step(site, self.faulted(), at_once(done.clone()))?;
                        if let Some(fits) = self.fitting_choice(*register, *range) {
                            done.push(fits);
                            longer.push(done);
                        }
                    }
                    Op::Load(register, address) => {
                        self.load(site, done, (*register, address), value, drains, &mut longer)?;
                    }
                    Op::Havoc(..) | Op::Assign(..) | Op::Store(..) => {
                        done.push(op.clone());
                        longer.push(done);
                    }
                }
            }
            if longer.len() > MOST_WAYS {
                let why =
                    "an indivisible step whose loads may find their values in too many places of the buffer";
                return Err(Unsupported::new(why, Some(site.edge.span)));
            }
            ways = longer;
        }
        for mut ops in ways {
            let plain = matches!(ops[..], [Op::Load(..)]) && matches!(site.edge.action, Action::Op(_));
            let action = match (plain, ops.pop()) {
                (true, Some(load)) => Action::Op(load),
                (_, last) => {
                    ops.extend(last);
                    at_once(ops)
                }
            };
            self.step(site, site.edge.to, action)?;
        }
        Ok(())
    }

    /// Adds the ways to load: from each place of the buffer that may hold the value, and from memory.
    fn load(
        &mut self,
        site: Site<'_>,
        done: Vec<Op>,
        (register, address): (RegisterId, &Address),
        bounds: Option<Bounds>,
        drains: bool,
        ways: &mut Vec<Vec<Op>>,
    ) -> Result<(), Unsupported> {
        let Lookup { hits, miss } = match drains {
            true => Lookup { hits: Vec::new(), miss: None },
            false => {
                let ordered = self.queues.lookup(self.program, site.held, address);
                forgotten::lookup(self.program, &self.forgotten, site.held, address, ordered)
            }
        };
        for (condition, value) in hits {
            let mut done = done.clone();
            assume(&mut done, condition);
            if let Some(fits) = bounds.and_then(|b| b.condition(&value)) {
                self.guard(site, &mut done, fits)?;
            }
            done.push(Op::Assign(register, value));
            ways.push(done);
        }
        let mut done = done;
        miss.into_iter().for_each(|miss| assume(&mut done, miss));
        match bounds {
            None => done.push(Op::Load(register, address.clone())),
            Some(bounds) => {
                let seen = self.seen();
                done.push(Op::Load(seen, address.clone()));
                if let Some(fits) = bounds.condition(&Expr::Leaf(seen)) {
                    self.guard(site, &mut done, fits)?;
                }
                done.push(Op::Assign(register, Expr::Leaf(seen)));
                done.push(Op::Assign(seen, Expr::Const(0)));
            }
        }
        ways.push(done);
        Ok(())
    }

    fn is_open(&self, address: &Address) -> bool {
        self.program.variables[address.variable.index()].open && !is_inside(self.program, address)
    }

    /// Tests whether an index lies in the window of an open array, by loading the element.
    fn probe(&mut self, site: Site<'_>, done: &mut Vec<Op>, address: &Address) -> Result<(), Unsupported> {
        if let Some(defined) = address.index.as_ref().and_then(Expr::defined) {
            self.guard(site, done, defined)?;
        }
        let seen = self.seen();
        done.push(Op::Load(seen, address.clone()));
        done.push(Op::Assign(seen, Expr::Const(0)));
        Ok(())
    }

    /// Appends the assumption of a condition to the operations `done`, and adds an edge on which the thread faults after these operations if the
    /// condition is false.
    fn guard(&mut self, site: Site<'_>, done: &mut Vec<Op>, condition: Value) -> Result<(), Unsupported> {
        let mut refuses = done.clone();
        assume(&mut refuses, condition.clone().not());
        // The register for temporary values must be 0 after the step.
        if let Some(seen) =
            self.seen.filter(|&seen| matches!(done.last(), Some(Op::Load(r, _)) if *r == seen))
        {
            refuses.push(Op::Assign(seen, Expr::Const(0)));
        }
        self.step(site, self.faulted(), at_once(refuses))?;
        assume(done, condition);
        Ok(())
    }

    /// `register := *` restricted to values within the register's range, if there are any.
    fn fitting_choice(&self, register: RegisterId, range: Option<Range>) -> Option<Op> {
        let writable = self.program.writable(self.thread.registers[register.index()].range);
        let fitting = self.program.chosen(range).and(writable).range();
        (fitting.size() > 0).then_some(Op::Havoc(register, Some(fitting)))
    }
}

/// An atomic step with these operations. It is marked as one that drains the buffer if it contains a store.
fn at_once(ops: Vec<Op>) -> Action {
    let drains = ops.iter().any(|op| matches!(op, Op::Store(..)));
    Action::Atomic { ops, drains }
}

/// Appends a condition to an atomic step.
fn assume(ops: &mut Vec<Op>, condition: Value) {
    let condition = match ops.pop() {
        Some(Op::Assume(before)) => both(Some(before), Some(condition)).expect("both are there"),
        last => {
            ops.extend(last);
            condition
        }
    };
    ops.push(Op::Assume(condition));
}
