//! What the attacker does: it begins to delay stores, goes on to the attacking load, and waits for the attack to succeed.

use fencewright_program::{Action, Address, Edge, EdgeId, Expr, Numbers, Op, RegisterId};

use super::accesses::{can_delay, delayed_store, forwarded, must_alias, plain_loads, reachable};
use super::auxiliary::{beside, is, neutral, one, scalar};
use super::graph::{Graph, Place};
use super::{Notion, Origin, Unsupported};

/// What the attacker has delayed is forgotten after its last load, if it is in no more cells than this.
const MOST_FORGOTTEN: usize = 64;
/// A snapshot with more ways than this to find its loads delayed or not is not supported.
const MOST_CASES: usize = 64;

impl Graph<'_> {
    /// At a store outside the cone: an attack may begin here.
    pub fn begin_attack(&mut self, id: EdgeId, edge: &Edge) {
        let mine = |a: &&super::Attack| a.thread == self.id && a.store == id;
        let Some(address) = delayed_store(&edge.action).filter(|_| self.attacks.iter().any(|a| mine(&a)))
        else {
            return;
        };
        let mut ops = is(scalar(self.auxiliary.attacked), 0, self.scratch());
        ops.extend(self.delayed(id, &edge.action.ops()[0]));
        if let Some(index) = address.index.clone().filter(|_| self.is_computed(address)) {
            let register = self.attacked_index();
            ops.push(Op::Assign(register, index));
        }
        ops.push(Op::Store(scalar(self.auxiliary.attacked), one()));
        ops.push(Op::Store(scalar(self.auxiliary.closed), one()));
        let to = Place::Delaying(id, edge.to);
        self.atomic(Place::Plain(edge.from), to, ops, Origin::Delaying(id), edge.span);
    }

    /// The register with the index of the cell of the attacking store.
    fn attacked_index(&mut self) -> RegisterId {
        self.register("%attacked", None)
    }

    /// A store that is delayed.
    fn delayed(&mut self, first: EdgeId, op: &Op) -> Vec<Op> {
        let Op::Store(address, value) = op else { return vec![op.clone()] };
        if forwarded(self.program, self.code, first)[address.variable.index()]
            && let Some(newest) = beside(&self.auxiliary.newest, address)
            && let Some(delayed) = beside(&self.auxiliary.delayed, address)
        {
            return vec![Op::Store(newest, value.clone()), Op::Store(delayed, one())];
        }
        // Nobody looks at it again, but it may fault.
        let mut ops = Vec::new();
        if self.is_computed(address) {
            let ignored = self.register("%ignored", None);
            ops.push(Op::Load(ignored, address.clone()));
        }
        let range = self.program.variables[address.variable.index()].range;
        if range.is_some() || self.program.numbers == Numbers::Nat || value.may_divide_by_zero() {
            let checked = self.register(&format!("%checked{}", address.variable.0), range);
            ops.push(Op::Assign(checked, value.clone()));
        }
        ops
    }

    /// An edge of the attacker while it delays stores.
    pub fn delaying_edge(&mut self, first: EdgeId, id: EdgeId, edge: &Edge) -> Result<(), Unsupported> {
        if !can_delay(&edge.action) {
            return Ok(());
        }
        let region = reachable(self.code, edge.to, can_delay);
        let attack =
            self.attacks.iter().position(|a| a.thread == self.id && a.store == first && a.load == id);
        // Where no attacking load is ahead there is nothing to look for.
        let promising = self
            .attacks
            .iter()
            .any(|a| a.thread == self.id && a.store == first && region[self.code.edge(a.load).from.index()]);
        let from = Place::Delaying(first, edge.from);
        let to = Place::Delaying(first, edge.to);
        let origin = Origin::Delaying(id);
        if delayed_store(&edge.action).is_some() {
            if promising {
                let mut ops = self.delayed(first, &edge.action.ops()[0]);
                match ops.len() {
                    0 => self.edge(from, to, Action::Op(Op::Skip), origin, edge.span),
                    _ => {
                        ops.push(Op::Store(scalar(self.auxiliary.closed), one()));
                        self.atomic(from, to, ops, origin, edge.span);
                    }
                }
            }
            return Ok(());
        }
        if plain_loads(&edge.action).next().is_none() {
            if promising {
                self.edge(from, to, edge.action.clone(), origin, edge.span);
            }
            return Ok(());
        }
        let cases = self.cases(first, edge)?;
        for case in cases {
            let from_memory = case.iter().any(|buffered| *buffered == Some(false));
            if promising {
                let mut ops = self.loads(edge, &case, false);
                if from_memory {
                    ops.push(Op::Store(scalar(self.auxiliary.closed), Expr::Const(0)));
                }
                self.atomic(from, to, ops, origin, edge.span);
            }
            if let Some(attack) = attack.filter(|_| from_memory) {
                if edge.action.ops().len() > 1 && self.program.edge_may_fault(self.code, edge) {
                    let what = "robustness of a snapshot that may fault while stores are delayed";
                    return Err(Unsupported(what.into(), edge.span));
                }
                let mut ops = self.loads(edge, &case, true);
                ops.push(Op::Store(scalar(self.auxiliary.closed), one()));
                ops.extend(self.forgotten(first));
                self.atomic(from, Place::Waiting(attack), ops, origin, edge.span);
            }
        }
        Ok(())
    }

    /// For each way to find the loads of an edge delayed or not: for each operation whether it reads a delayed value, if it is a load.
    fn cases(&self, first: EdgeId, edge: &Edge) -> Result<Vec<Vec<Option<bool>>>, Unsupported> {
        let forwarded = forwarded(self.program, self.code, first);
        let attacking = delayed_store(&self.code.edge(first).action);
        let mut cases: Vec<Vec<Option<bool>>> = vec![Vec::new()];
        for op in edge.action.ops() {
            let ways = match op {
                Op::Load(_, address) => {
                    let may = forwarded[address.variable.index()];
                    let must = attacking.is_some_and(|a| must_alias(self.program, a, address));
                    match (may, must) {
                        (_, true) => vec![Some(true)],
                        (true, false) => vec![Some(true), Some(false)],
                        (false, false) => vec![Some(false)],
                    }
                }
                _ => vec![None],
            };
            let longer = |case: &Vec<Option<bool>>| {
                let case = case.clone();
                ways.clone().into_iter().map(move |way| [case.as_slice(), &[way]].concat())
            };
            cases = cases.iter().flat_map(longer).collect();
            if cases.len() > MOST_CASES {
                let what = "robustness of a snapshot with so many loads while stores are delayed";
                return Err(Unsupported(what.into(), edge.span));
            }
        }
        Ok(cases)
    }

    /// The operations of an edge that loads; if it is the attacking load, the cone begins with what it reads from memory. The attacker
    /// stands still after that, so what a single load reads does not matter.
    fn loads(&mut self, edge: &Edge, case: &[Option<bool>], attacking: bool) -> Vec<Op> {
        let flag = self.scratch();
        let mut ops = Vec::new();
        for (op, buffered) in edge.action.ops().iter().zip(case) {
            let (Op::Load(register, address), Some(buffered)) = (op, buffered) else {
                ops.push(op.clone());
                continue;
            };
            if let Some(delayed) = beside(&self.auxiliary.delayed, address) {
                ops.extend(is(delayed, i64::from(*buffered), flag));
            }
            if *buffered {
                let newest = beside(&self.auxiliary.newest, address);
                ops.extend(newest.map(|newest| Op::Load(*register, newest)));
                continue;
            }
            if attacking {
                ops.extend(self.auxiliary.mark(self.program, address, false));
                if case.len() == 1 {
                    continue;
                }
            }
            ops.push(op.clone());
        }
        ops
    }

    /// After the attacking load nobody looks at what was delayed: states that differ in it only are the same.
    fn forgotten(&self, first: EdgeId) -> Vec<Op> {
        let forwarded = forwarded(self.program, self.code, first);
        let mut ops = Vec::new();
        for (v, variable) in self.program.variables.iter().enumerate().filter(|(v, _)| forwarded[*v]) {
            let indices: Vec<Option<i64>> = match variable.indices {
                None => vec![None],
                Some(range) => (range.low..=range.high).map(Some).collect(),
            };
            for index in indices {
                let variable_id = fencewright_program::VariableId(v as u32);
                let address = Address { variable: variable_id, index: index.map(Expr::Const) };
                let reset = |cell: Address, value| Op::Store(cell, Expr::Const(value));
                ops.extend(beside(&self.auxiliary.delayed, &address).map(|cell| reset(cell, 0)));
                let newest = beside(&self.auxiliary.newest, &address);
                ops.extend(newest.map(|cell| reset(cell, neutral(variable.range))));
            }
        }
        if ops.len() > 2 * MOST_FORGOTTEN { Vec::new() } else { ops }
    }

    /// After the attacking load: the attack has succeeded when the cone has touched the cell of the store (for a triangular race, when
    /// there is a cone at all) and no other thread holds the lock.
    pub fn end_attack(&mut self, number: usize) {
        let attack = self.attacks[number];
        let store = self.code.edge(attack.store);
        let target = match (self.notion, delayed_store(&store.action)) {
            (Notion::HappensBefore, Some(address)) => {
                let mut address = address.clone();
                if self.is_computed(&address) {
                    address.index = Some(Expr::Leaf(self.attacked_index()));
                }
                beside(&self.auxiliary.touched, &address)
            }
            _ => self.auxiliary.raced.map(scalar),
        };
        if let Some(flag) = target {
            let ops = is(flag, 1, self.scratch());
            let (from, to) = (Place::Waiting(number), Place::Success(number));
            self.atomic(from, to, ops, Origin::Nothing, store.span);
        }
    }
}
