//! Faults as control: each edge that could fault becomes edges that cannot, and edges that lead to a place where the thread is
//! doomed, from where it faults without looking at anything.
//!
//! A thread that faults leaves its buffer behind, and the stores in it still reach memory. Auxiliary registers do not. With
//! faults as control the last look at registers and memory before a fault is an edge like any other, so stores can be
//! made to happen behind it, and no edge along which stores are delayed can fault.

use fencewright_program::{
    Action, Address, BinaryOp, Expr, LocationId, Numbers, Op, Program, Range, RegisterId, Span,
};

use super::Origin;
use super::graph::{Arc, Graph};

type Value = Expr<RegisterId>;

/// The same thread with faults as control. An unbounded `*` written to a register with a range stays as it is.
pub(super) fn made_explicit(mut graph: Graph, program: &Program) -> Graph {
    let doomed = graph.place(graph.fault, None);
    let fault = graph.fault;
    let faulting = Origin { step: None, faults: true };
    graph.op(doomed, fault, Op::Assert(Expr::Const(0)), Span::default(), faulting);
    for n in 0..doomed.0 {
        let from = LocationId(n);
        for arc in std::mem::take(&mut graph.places[from.index()].arcs) {
            if arc.origin.faults {
                Guard { graph: &mut graph, program, from, doomed, arc: &arc }.split();
            } else {
                graph.places[from.index()].arcs.push(arc);
            }
        }
    }
    graph
}

/// An edge that is being taken apart.
struct Guard<'a> {
    graph: &'a mut Graph,
    program: &'a Program,
    from: LocationId,
    doomed: LocationId,
    arc: &'a Arc,
}

impl Guard<'_> {
    fn split(mut self) {
        let (arc, origin) = (self.arc, Origin { faults: false, ..self.arc.origin });
        let silent = Origin::SILENT;
        match &arc.action {
            Action::Op(Op::Havoc(register, chosen)) => self.split_choice(*register, *chosen),
            // A load waits while another thread holds the lock, even if it is going to fault: so these are indivisible steps.
            Action::Op(op @ Op::Load(..)) => match (self.guard(op), self.register_check(op)) {
                (Some(guard), None) => {
                    let refuses = vec![Op::Assume(guard.clone().not())];
                    self.indivisible(self.doomed, refuses, false, origin);
                    let ready = self.step_aside();
                    self.graph.op(self.from, ready, Op::Assume(guard), arc.span, silent);
                    self.graph.op(ready, arc.to, op.clone(), arc.span, origin);
                }
                _ => self.split_indivisible(std::slice::from_ref(op), false, origin),
            },
            Action::Op(op) => {
                let Some(guard) = self.guard(op) else { return self.keep(origin) };
                self.graph.op(self.from, self.doomed, Op::Assume(guard.clone().not()), arc.span, origin);
                match op {
                    Op::Assert(_) => self.graph.op(self.from, arc.to, Op::Assume(guard), arc.span, origin),
                    Op::Assume(e) => {
                        let both = Expr::binary(BinaryOp::And, guard, e.clone());
                        self.graph.op(self.from, arc.to, Op::Assume(both), arc.span, origin);
                    }
                    _ => {
                        let ready = self.step_aside();
                        self.graph.op(self.from, ready, Op::Assume(guard), arc.span, silent);
                        self.graph.op(ready, arc.to, op.clone(), arc.span, origin);
                    }
                }
            }
            Action::Atomic { ops, drains } => self.split_indivisible(ops, *drains, origin),
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => self.keep(origin),
        }
    }

    fn keep(&mut self, origin: Origin) {
        self.graph.arc(self.from, self.arc.to, self.arc.action.clone(), self.arc.span, origin);
    }

    /// A place between two parts of the edge, where the original thread is still at its start.
    fn step_aside(&mut self) -> LocationId {
        self.graph.place(self.graph.original(self.from), Some(self.arc.span))
    }

    fn indivisible(&mut self, to: LocationId, ops: Vec<Op>, drains: bool, origin: Origin) {
        self.graph.arc(self.from, to, Action::Atomic { ops, drains }, self.arc.span, origin);
    }

    /// One edge for each operation that may fault, which does all before it, and one on which none does.
    fn split_indivisible(&mut self, ops: &[Op], drains: bool, origin: Origin) {
        let mut done = Vec::new();
        for op in ops {
            if let Some(guard) = self.guard(op) {
                let refuses = [&done[..], &[Op::Assume(guard.clone().not())]].concat();
                self.indivisible(self.doomed, refuses, drains, origin);
                done.push(Op::Assume(guard));
            }
            match (op, self.register_check(op)) {
                (Op::Assert(_), _) => {}
                (Op::Load(register, _) | Op::Havoc(register, _), Some(check)) => {
                    let seen = self.graph.register("seen");
                    done.push(match op {
                        Op::Load(_, address) => Op::Load(seen, address.clone()),
                        Op::Havoc(_, range) => Op::Havoc(seen, *range),
                        _ => unreachable!("only these are matched"),
                    });
                    let fits = check(Expr::Leaf(seen));
                    let refuses = [&done[..], &[Op::Assume(fits.clone().not())]].concat();
                    self.indivisible(self.doomed, refuses, drains, origin);
                    done.push(Op::Assume(fits));
                    done.push(Op::Assign(*register, Expr::Leaf(seen)));
                }
                _ => done.push(op.clone()),
            }
        }
        self.indivisible(self.arc.to, done, drains, origin);
    }

    /// `register := *` for a register with a range: the values inside, those below and those above.
    fn split_choice(&mut self, register: RegisterId, chosen: Option<Range>) {
        let (span, origin) = (self.arc.span, self.arc.origin);
        let declared = self.graph.registers[register.index()].range;
        let natural = (self.program.numbers == Numbers::Nat).then_some(Range { low: 0, high: i64::MAX });
        let Some(chosen) = chosen else { return self.keep(origin) };
        let mut inside = chosen;
        for allowed in [declared, natural].into_iter().flatten() {
            inside = Range { low: inside.low.max(allowed.low), high: inside.high.min(allowed.high) };
        }
        if inside.size() == 0 {
            return self.keep(origin);
        }
        let sound = Origin { faults: false, ..origin };
        self.graph.op(self.from, self.arc.to, Op::Havoc(register, Some(inside)), span, sound);
        let below = (chosen.low < inside.low).then(|| Range { low: chosen.low, high: inside.low - 1 });
        let above = (inside.high < chosen.high).then(|| Range { low: inside.high + 1, high: chosen.high });
        for outside in [below, above].into_iter().flatten() {
            let seen = self.graph.register("seen");
            let faults = natural.is_some() && outside.low < 0;
            let origin = Origin { faults, ..origin };
            self.graph.op(self.from, self.doomed, Op::Havoc(seen, Some(outside)), span, origin);
        }
    }

    /// What registers must say for the operation not to fault before it looks at memory; nothing if they always do.
    fn guard(&self, op: &Op) -> Option<Value> {
        match op {
            Op::Skip | Op::Havoc(..) => None,
            Op::Assign(register, value) => {
                both(defined(value), self.fits(self.graph.registers[register.index()].range, value))
            }
            Op::Assume(value) => defined(value),
            Op::Assert(value) => both(defined(value), Some(value.clone())),
            Op::Load(_, address) => self.in_bounds(address),
            Op::Store(address, value) => {
                let range = self.program.variables[address.variable.index()].range;
                both(self.in_bounds(address), both(defined(value), self.fits(range, value)))
            }
        }
    }

    /// What a loaded or chosen value must be like for its register, if not every value will do.
    fn register_check(&self, op: &Op) -> Option<impl Fn(Value) -> Value + use<>> {
        let (Op::Load(register, _) | Op::Havoc(register, _)) = op else { return None };
        let range = self.graph.registers[register.index()].range;
        let natural = self.program.numbers == Numbers::Nat;
        let chooses_negative = natural && matches!(op, Op::Havoc(_, Some(chosen)) if chosen.low < 0);
        (range.is_some() || chooses_negative)
            .then_some(move |value: Value| within(range, natural, &value).unwrap_or(Expr::Const(1)))
    }

    /// That a computed index lies in its array. Outside an open array is no fault.
    fn in_bounds(&self, address: &Address) -> Option<Value> {
        let variable = &self.program.variables[address.variable.index()];
        let (Some(index), Some(range)) = (&address.index, variable.indices) else { return None };
        let bounds = if variable.open { None } else { within(Some(range), false, index) };
        both(defined(index), bounds)
    }

    fn fits(&self, range: Option<Range>, value: &Value) -> Option<Value> {
        within(range, self.program.numbers == Numbers::Nat, value)
    }
}

/// That a value lies in a range, and is a natural number if it should be; nothing if it does for certain.
fn within(range: Option<Range>, natural: bool, value: &Value) -> Option<Value> {
    let (low, high) = range.map_or((None, None), |r| (Some(r.low), Some(r.high)));
    let low = if natural { Some(low.unwrap_or(0).max(0)) } else { low };
    if let Some(v) = value.constant()
        && low.is_none_or(|low| low <= v)
        && high.is_none_or(|high| v <= high)
    {
        return None;
    }
    let compare = |op, bound| Expr::binary(op, value.clone(), Expr::Const(bound));
    both(low.map(|l| compare(BinaryOp::Ge, l)), high.map(|h| compare(BinaryOp::Le, h)))
}

/// That evaluating an expression meets no zero divisor; nothing if it never does.
fn defined(value: &Value) -> Option<Value> {
    match value {
        Expr::Const(_) | Expr::Leaf(_) => None,
        Expr::Unary(_, operand) => defined(operand),
        Expr::Binary(op, left, right) => {
            let right_is_defined = match op {
                // The right side is evaluated only if the left one does not decide.
                BinaryOp::And => {
                    defined(right).map(|d| Expr::binary(BinaryOp::Or, (**left).clone().not(), d))
                }
                BinaryOp::Or => defined(right).map(|d| Expr::binary(BinaryOp::Or, (**left).clone(), d)),
                BinaryOp::Div | BinaryOp::Rem if right.constant().is_none_or(|d| d == 0) => {
                    let divisor = Expr::binary(BinaryOp::Ne, (**right).clone(), Expr::Const(0));
                    both(defined(right), Some(divisor))
                }
                _ => defined(right),
            };
            both(defined(left), right_is_defined)
        }
    }
}

/// Both conditions, the first one first: the second is evaluated only if the first holds.
fn both(first: Option<Value>, second: Option<Value>) -> Option<Value> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Expr::binary(BinaryOp::And, first, second)),
        (first, second) => first.or(second),
    }
}
