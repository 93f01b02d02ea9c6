//! The k-abstract buffers of FENCES12 (s. 4, s. 8, Fig. 5): the oldest k stores are kept in order; of all later stores only their memory cells and
//! the newest value of each cell are kept (the store is *forgotten*).
//!
//! | rule | |
//! |---|---|
//! | WRITE-L | fewer than k stores are in order (PSO: to this cell) and none are forgotten: a store is appended |
//! | WRITE-G | otherwise only its cell is recorded, with its value as the newest one |
//! | UPDATE-NE | the oldest store in order leaves |
//! | UPDATE-AM | no store is in order: an arbitrary value is written to a cell with forgotten stores, and more may follow |
//! | UPDATE-AS | no store is in order: the newest value is written to a cell with forgotten stores, and no forgotten store to it remains |
//!
//! Under PSO a store fence orders the stores that are kept in order and no others, as in the machine `partial` of engine `buffers`.

use fencewright_kit::accesses::cells_of;
use fencewright_program::{Address, BinaryOp, Expr, Op, Program, RegisterId, VariableId, faults::both};

use crate::held::Held;
use crate::queues::{Lookup, Queues, Way, targeted};

type Value = Expr<RegisterId>;

/// The registers for the forgotten stores of a thread to one memory cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The memory cell of the stores.
    pub cell: u32,
    /// 1 if there are forgotten stores to the cell, otherwise 0.
    pub some: RegisterId,
    /// The newest forgotten value; 0 if there are no forgotten stores.
    pub last: RegisterId,
}

/// The registers for those cells that may have forgotten stores, according to the bounds `held`.
fn here<'a>(forgotten: &'a [Forgotten], held: &'a Held) -> impl Iterator<Item = &'a Forgotten> {
    forgotten.iter().filter(|f| held.forgotten.contains(&f.cell))
}

fn is(register: RegisterId, value: i64) -> Value {
    Expr::binary(BinaryOp::Eq, Expr::Leaf(register), Expr::Const(value))
}

/// The condition that no store is forgotten; `None` if it is known to hold.
pub(crate) fn none(forgotten: &[Forgotten], held: &Held) -> Option<Value> {
    let none: Vec<Value> = here(forgotten, held).map(|f| is(f.some, 0)).collect();
    (!none.is_empty()).then(|| Expr::all(none))
}

/// Extends a look-up: a load takes the newest forgotten value of its cell, if there is one.
pub(crate) fn lookup(
    program: &Program,
    forgotten: &[Forgotten],
    held: &Held,
    address: &Address,
    Lookup { mut hits, mut miss }: Lookup,
) -> Lookup {
    let targets = cells_of(program, address);
    for f in here(forgotten, held).filter(|f| targets.contains(&f.cell)) {
        let found = both(targeted(program, address, f.cell), Some(is(f.some, 1))).expect("one is there");
        let not_found = Some(found.clone().not());
        for (condition, _) in &mut hits {
            *condition = both(not_found.clone(), Some(condition.clone())).expect("both are there");
        }
        miss = both(not_found, miss);
        hits.push((found, Expr::Leaf(f.last)));
    }
    Lookup { hits, miss }
}

/// Extends the ways to store: a store is kept in order if no store is forgotten (PSO: to its cell) and there is room; otherwise it is forgotten.
pub(crate) fn store(
    program: &Program,
    forgotten: &[Forgotten],
    held: &Held,
    (address, value): (&Address, &Value),
    (in_order, full): (Vec<Way>, Vec<Way>),
) -> Vec<Way> {
    // Under TSO a way to store in order depends on the forgotten stores of all cells.
    let none_of = |cell: Option<u32>| match cell {
        None => none(forgotten, held),
        Some(cell) => here(forgotten, held).find(|f| f.cell == cell).map(|f| is(f.some, 0)),
    };
    let tso = in_order.iter().chain(&full).any(|way| way.cell.is_none());
    let mut ways = Vec::new();
    for way in in_order {
        ways.push(Way { condition: both(none_of(way.cell), way.condition), ..way });
    }
    for cell in cells_of(program, address) {
        let Some(f) = forgotten.iter().find(|f| f.cell == cell) else { continue };
        let full = full.iter().filter(|way| way.cell.is_none_or(|c| c == cell)).map(|way| &way.condition);
        let mut reasons: Vec<Option<Value>> = full.cloned().collect();
        reasons.extend(none_of((!tso).then_some(cell)).map(|none| Some(none.not())));
        let reason = match reasons.into_iter().collect::<Option<Vec<Value>>>() {
            Some(reasons) if reasons.is_empty() => continue,
            reasons => reasons.map(Expr::any),
        };
        let condition = both(targeted(program, address, cell), reason);
        let effects = vec![Op::Assign(f.last, value.clone()), Op::Assign(f.some, Expr::Const(1))];
        ways.push(Way { cell: Some(cell), condition, effects });
    }
    ways
}

/// The flushes of forgotten stores, enabled when no older store is kept in order. `chosen` is a register for an arbitrary value.
pub(crate) fn flushes(
    program: &Program,
    queues: &Queues,
    forgotten: &[Forgotten],
    held: &Held,
    chosen: RegisterId,
) -> Vec<Way> {
    let mut ways = Vec::new();
    for f in here(forgotten, held) {
        let condition = both(queues.none_older(held, f.cell), Some(is(f.some, 1)));
        let variable = program.variables.partition_point(|v| v.base <= f.cell) - 1;
        let owner = &program.variables[variable];
        let index = owner.indices.map(|range| Expr::Const(range.low + i64::from(f.cell - owner.base)));
        let address = Address { variable: VariableId(variable as u32), index };
        // The value of every store was checked against the declared range when it was issued, so the arbitrary value lies in this range.
        let any = owner.range.map(|range| program.writable(Some(range)).range());
        let one_of_several = vec![
            Op::Havoc(chosen, any),
            Op::Store(address.clone(), Expr::Leaf(chosen)),
            Op::Assign(chosen, Expr::Const(0)),
        ];
        let last = vec![
            Op::Store(address, Expr::Leaf(f.last)),
            Op::Assign(f.last, Expr::Const(0)),
            Op::Assign(f.some, Expr::Const(0)),
        ];
        for effects in [one_of_several, last] {
            ways.push(Way { cell: Some(f.cell), condition: condition.clone(), effects });
        }
    }
    ways
}
