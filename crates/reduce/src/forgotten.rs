//! Stores of which a buffer keeps only what the k-abstract system of FENCES12 does (s. 4, s. 8, Fig. 5): k stores in order, the oldest ones, and of
//! all later ones which memory cells they are to and the newest value of each.
//!
//! | rule | |
//! |---|---|
//! | WRITE-L | fewer than k stores are in order (PSO: to this cell) and none are forgotten: a store is appended |
//! | WRITE-G | otherwise it is forgotten, but for its cell and its value as the newest one |
//! | UPDATE-NE | the oldest store in order leaves |
//! | UPDATE-AM | none is in order any more: some value goes to a cell of which stores were forgotten, and more may follow |
//! | UPDATE-AS | the same, with the newest value, and none follows |
//!
//! Under PSO a store fence orders what is kept in order and nothing else, as in the machine `partial`.

use fencewright_kit::accesses::cells_of;
use fencewright_program::{Address, BinaryOp, Expr, Op, Program, RegisterId, VariableId, faults::both};

use crate::held::Held;
use crate::queues::{Lookup, Queues, Way, targeted};

type Value = Expr<RegisterId>;

/// The registers for the forgotten stores of a thread to one memory cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The memory cell.
    pub cell: u32,
    /// 1 if stores to it were forgotten.
    pub some: RegisterId,
    /// The newest value among them; 0 if there are none.
    pub last: RegisterId,
}

/// Those of which something may be forgotten here.
fn here<'a>(forgotten: &'a [Forgotten], held: &'a Held) -> impl Iterator<Item = &'a Forgotten> {
    forgotten.iter().filter(|f| held.forgotten.contains(&f.cell))
}

fn is(register: RegisterId, value: i64) -> Value {
    Expr::binary(BinaryOp::Eq, Expr::Leaf(register), Expr::Const(value))
}

/// That nothing is forgotten; nothing if that is known.
pub(crate) fn none(forgotten: &[Forgotten], held: &Held) -> Option<Value> {
    let none: Vec<Value> = here(forgotten, held).map(|f| is(f.some, 0)).collect();
    (!none.is_empty()).then(|| Expr::all(none))
}

/// A load takes the newest forgotten value of its cell, if there is one.
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

/// A store: in order where nothing is forgotten (PSO: of its cell), otherwise forgotten itself.
pub(crate) fn store(
    program: &Program,
    forgotten: &[Forgotten],
    held: &Held,
    (address, value): (&Address, &Value),
    (in_order, full): (Vec<Way>, Vec<Way>),
) -> Vec<Way> {
    // Under TSO a way in order is for all cells, and waits for all of them.
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

/// How forgotten stores leave, when none that is older is in order any more. `chosen` is a register for an arbitrary value.
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
        // Whatever a store may have been, its value was checked when it was issued.
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
