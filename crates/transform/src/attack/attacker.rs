//! The instrumentation of the attacker: it begins to delay stores, performs the attacking load, and waits for the attack to succeed.

use fencewright_program::{Action, Address, Checks, Edge, EdgeId, Expr, Op, RegisterId};

use super::accesses::{Delay, delayed_store, must_alias, plain_loads};
use super::auxiliary::{beside, is, neutral, one, scalar};
use super::instrumenter::{CopiedLocation, Instrumenter};
use super::{Attack, Notion, Origin, Unsupported};

/// Maximum number of cells whose records of delayed stores are reset after the attacking load; if there are more, no record is reset.
const MOST_FORGOTTEN: usize = 64;
/// Maximum number of cases of a snapshot (an atomic step that does not wait for an empty buffer); a case determines for each of its loads whether it
/// reads a delayed value or memory.
const MOST_CASES: usize = 64;

/// Whether an edge that loads is a single load rather than a snapshot.
fn is_single(edge: &Edge) -> bool {
    matches!(edge.action, Action::Op(_))
}

impl Instrumenter<'_> {
    /// If this edge, which leaves a location outside the cone, is the store of an attack: adds an edge that begins the attack.
    pub fn begin_attack(&mut self, id: EdgeId, edge: &Edge) {
        let attacking = self.known.delays.contains_key(&(self.id, id));
        let Some(address) = delayed_store(&edge.action).filter(|_| attacking) else { return };
        let mut ops = is(scalar(self.auxiliary.attacked), 0, self.scratch());
        ops.extend(self.delayed(id, &edge.action.ops()[0]));
        if let Some(index) = address.index.clone().filter(|_| self.is_computed(address)) {
            let register = self.attacked_index();
            ops.push(Op::Assign(register, index));
        }
        ops.push(Op::Store(scalar(self.auxiliary.attacked), one()));
        ops.push(Op::Store(scalar(self.auxiliary.closed), one()));
        let to = CopiedLocation::Delaying(id, edge.to);
        self.atomic(CopiedLocation::Plain(edge.from), to, ops, Origin::Delaying(id), edge.span);
    }

    /// The static facts about the attacker while it delays this store.
    fn delay(&self, store: EdgeId) -> &Delay {
        &self.known.delays[&(self.id, store)]
    }

    /// The register with the index of the cell that the attacking store writes.
    fn attacked_index(&mut self) -> RegisterId {
        self.register("%attacked", None)
    }

    /// The operations that delay a store, in an attack that begins with the store at edge `first`; any other operation is unchanged.
    fn delayed(&mut self, first: EdgeId, op: &Op) -> Vec<Op> {
        let Op::Store(address, value) = op else { return vec![op.clone()] };
        if self.delay(first).forwarded[address.variable.index()]
            && let Some(newest) = beside(&self.auxiliary.newest, address)
            && let Some(delayed) = beside(&self.auxiliary.delayed, address)
        {
            return vec![Op::Store(newest, value.clone()), Op::Store(delayed, one())];
        }
        // No later load can read this store, so it is not recorded. But it may fault, so its checks are performed.
        let mut ops = Vec::new();
        if self.is_computed(address) {
            let ignored = self.register("%ignored", None);
            ops.push(Op::Load(ignored, address.clone()));
        }
        let range = self.program.variables[address.variable.index()].range;
        if self.program.fits(self.program.writable(range), value).is_some() {
            let checked = self.register(&format!("%checked{}", address.variable.0), range);
            ops.push(Op::Assign(checked, value.clone()));
        }
        ops
    }

    /// Adds the copies of an edge that the attacker may take while it delays stores, in an attack that begins with the store `first`.
    pub fn delaying_edge(&mut self, first: EdgeId, id: EdgeId, edge: &Edge) -> Result<(), Unsupported> {
        if edge.action.drains() {
            return Ok(());
        }
        let attack = Attack { thread: self.id, store: first, load: id };
        let attack = self.known.numbers.contains_key(&attack).then_some(attack);
        // If no attacking load can follow, the copy of this edge after which the attacker goes on delaying is omitted.
        let promising = self.delay(first).promising[edge.to.index()];
        let from = CopiedLocation::Delaying(first, edge.from);
        let to = CopiedLocation::Delaying(first, edge.to);
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
            let from_memory = case.contains(&Some(false));
            if promising {
                let mut ops = self.loads(edge, &case, false);
                if from_memory {
                    ops.push(Op::Store(scalar(self.auxiliary.closed), Expr::Const(0)));
                }
                self.atomic(from, to, ops, origin, edge.span);
            }
            if let Some(attack) = attack.filter(|_| from_memory) {
                let mut ways = vec![self.loads(edge, &case, true)];
                if !is_single(edge) {
                    ways.extend(self.faults(edge, &case)?);
                }
                for mut ops in ways {
                    ops.push(Op::Store(scalar(self.auxiliary.closed), one()));
                    ops.extend(self.forgotten(first));
                    self.atomic(from, CopiedLocation::Waiting(attack), ops, origin, edge.span);
                }
            }
        }
        Ok(())
    }

    /// The cases of an edge with loads. A case has one entry for each operation: whether a load reads a delayed value (true) or memory (false), and
    /// `None` for any other operation.
    fn cases(&self, first: EdgeId, edge: &Edge) -> Result<Vec<Vec<Option<bool>>>, Unsupported> {
        let forwarded = &self.delay(first).forwarded;
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

    /// The operations of an edge with loads, in one of its cases; only the first operations if `case` is shorter than the edge. If the edge is the
    /// attacking load, its reads from memory are marked as the first accesses of the cone. A single attacking load does not read a value: the
    /// attacker does not move afterwards, so the value is irrelevant.
    fn loads(&mut self, edge: &Edge, case: &[Option<bool>], attacking: bool) -> Vec<Op> {
        let mut ops = Vec::new();
        for (op, buffered) in edge.action.ops().iter().zip(case) {
            match (op, buffered) {
                (Op::Load(register, address), &Some(buffered)) => {
                    ops.extend(self.find(address, buffered));
                    if attacking && !buffered {
                        ops.extend(self.auxiliary.mark(self.program, address, false));
                    }
                    if !(attacking && is_single(edge)) {
                        ops.push(Op::Load(*register, self.source(address, buffered)));
                    }
                }
                _ => ops.push(op.clone()),
            }
        }
        ops
    }

    /// The operations that continue only if the attacker has a delayed store to the cell (`buffered`), or only if it has none. There are no
    /// operations if delayed stores to this variable are not recorded.
    fn find(&mut self, address: &Address, buffered: bool) -> Vec<Op> {
        let flag = self.scratch();
        let delayed = beside(&self.auxiliary.delayed, address);
        delayed.map_or_else(Vec::new, |delayed| is(delayed, i64::from(buffered), flag))
    }

    /// The address from which a load reads: the newest delayed value, or memory.
    fn source(&self, address: &Address, buffered: bool) -> Address {
        let newest = beside(&self.auxiliary.newest, address);
        newest.filter(|_| buffered).unwrap_or_else(|| address.clone())
    }

    /// The ways in which the attacking load, a snapshot, faults after it has loaded from memory, for one of its cases. Such a fault is part of an
    /// attack: the load from memory has happened like any other, and the attacker need not move after the snapshot.
    fn faults(&mut self, edge: &Edge, case: &[Option<bool>]) -> Result<Vec<Vec<Op>>, Unsupported> {
        let mut ways = Vec::new();
        for (n, op) in edge.action.ops().iter().enumerate() {
            let Checks { before, value } = self.program.checks(&self.code.registers, op);
            let performed = self.loads(edge, &case[..n], true);
            let loaded = case[..n].contains(&Some(false));
            let mut fault = |more: Vec<Op>, holds: Expr<RegisterId>| {
                ways.push([performed.clone(), more, vec![Op::Assume(holds.not())]].concat());
            };
            if let Some(holds) = before.filter(|_| loaded) {
                fault(Vec::new(), holds);
            }
            match (op, value) {
                (_, None) => {}
                (Op::Load(_, address), Some(bounds)) => {
                    let buffered = case[n] == Some(true);
                    if loaded || !buffered {
                        let value = self.register("%ignored", None);
                        let mut more = self.find(address, buffered);
                        if !buffered {
                            more.extend(self.auxiliary.mark(self.program, address, false));
                        }
                        more.push(Op::Load(value, self.source(address, buffered)));
                        bounds
                            .condition(&Expr::Leaf(value))
                            .into_iter()
                            .for_each(|fits| fault(more.clone(), fits));
                    }
                }
                // Some value of the choice does not fit the register, so a fault is always possible; which of these values is chosen is irrelevant.
                (_, Some(_)) if loaded => fault(Vec::new(), Expr::Const(0)),
                (_, Some(_)) => {}
            }
        }
        Ok(ways)
    }

    /// Resets the record of delayed stores, which is not read after the attacking load: states that differ only in the record become equal.
    fn forgotten(&self, first: EdgeId) -> Vec<Op> {
        let forwarded = &self.delay(first).forwarded;
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

    /// Adds the edge to the success of an attack, after its attacking load: the cone has accessed the cell of the store (for a triangular race,
    /// another thread has written a loaded cell), and no other thread holds the lock.
    pub fn end_attack(&mut self, attack: Attack) {
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
            let (from, to) = (CopiedLocation::Waiting(attack), CopiedLocation::Success(attack));
            self.atomic(from, to, ops, Origin::Nothing, store.span);
        }
    }
}
