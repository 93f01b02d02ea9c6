//! The buffers of a thread encoded as registers, and the effects of stores, loads and flushes on them.

use std::collections::BTreeMap;

use fencewright_kit::accesses::{cells_of, is_inside};
use fencewright_program::{
    Address, BinaryOp, Expr, MemoryModel, Op, Program, RegisterId, Variable, VariableId, reference::Buffered,
};

use crate::bounds::Bounds;
use crate::held::{Analysis, Held};

type Value = Expr<RegisterId>;

/// The registers that encode the buffers of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Under TSO, one queue for all memory cells. Without places if the thread never buffers a store.
    Tso(Queue),
    /// Under PSO, one queue per memory cell that the thread stores to.
    Pso {
        /// The queues, by memory cell.
        cells: Vec<CellQueue>,
        /// The epoch of the next store; `None` if the thread executes no store fence while stores may be buffered.
        epoch: Option<RegisterId>,
    },
}

/// A queue of stores to any memory cell. The oldest store comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The number of stores (`cnt`); `None` if it is always 0.
    pub count: Option<RegisterId>,
    /// The memory cell of each store (`lhs`).
    pub cells: Vec<RegisterId>,
    /// For each place, the register that holds the value of its store (`rhs_1`, `rhs_2`, ...).
    pub values: Vec<RegisterId>,
}

/// A queue of stores to one memory cell. The oldest store comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellQueue {
    /// The memory cell that all stores of the queue write.
    pub cell: u32,
    /// The number of buffered stores.
    pub count: RegisterId,
    /// The value of each buffered store.
    pub values: Vec<RegisterId>,
    /// The epoch of each store; empty if the thread executes no store fence while stores may be buffered.
    pub epochs: Vec<RegisterId>,
}

/// One way to perform an operation on the buffers: a condition and effects.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The memory cell that the operation accesses in this way; `None` if it may be any cell.
    pub cell: Option<u32>,
    /// The condition under which the operation can be performed in this way; `None` if it always can.
    pub condition: Option<Value>,
    /// The changes of registers that perform the operation.
    pub effects: Vec<Op>,
}

/// Where a load may find its value.
pub(crate) struct Lookup {
    /// In the buffers: for each place, the condition under which the load takes the value of the place, and the value.
    pub hits: Vec<(Value, Value)>,
    /// In memory: the condition under which the load takes the value in memory; `None` if it always does.
    pub miss: Option<Value>,
}

impl Queues {
    /// New registers for the buffers of a thread, made by `register` with a suggested name.
    pub(crate) fn new(
        program: &Program,
        model: MemoryModel,
        analysis: &Analysis,
        register: &mut dyn FnMut(String) -> RegisterId,
    ) -> Self {
        let reached = || analysis.at.iter().flatten();
        if model == MemoryModel::Tso {
            let places = reached().map(|held| held.total).max().unwrap_or(0);
            let count = (places > 0).then(|| register("cnt".into()));
            let (cells, values) =
                (1..=places).map(|n| (register(format!("lhs_{n}")), register(format!("rhs_{n}")))).unzip();
            return Queues::Tso(Queue { count, cells, values });
        }
        let marked = reached().any(|held| held.marked);
        let mut queue = |(cell, places): (u32, u32)| {
            let name = plain_name(program, cell);
            CellQueue {
                cell,
                count: register(format!("{name}_cnt")),
                values: (1..=places).map(|n| register(format!("{name}_{n}"))).collect(),
                epochs: match marked {
                    true => (1..=places).map(|n| register(format!("{name}_epoch_{n}"))).collect(),
                    false => Vec::new(),
                },
            }
        };
        let cells = analysis.most().into_iter().map(&mut queue).collect();
        Queues::Pso { cells, epoch: marked.then(|| register("epoch".into())) }
    }

    /// The condition that no store is in the queues; `None` if the queues are known to be empty.
    pub(crate) fn empty(&self, held: &Held) -> Option<Value> {
        match self {
            _ if held.counts.is_empty() => None,
            Queues::Tso(queue) => queue.count.map(|count| equal(count, 0)),
            Queues::Pso { cells, .. } => {
                let counts = holding(cells, held).map(|(queue, _)| equal(queue.count, 0));
                Some(Expr::all(counts.collect()))
            }
        }
    }

    /// The condition under which a forgotten store to this cell may leave: no queued store precedes it. `None` if the condition is known to hold.
    pub(crate) fn none_older(&self, held: &Held, cell: u32) -> Option<Value> {
        match self {
            Queues::Tso(_) => self.empty(held),
            Queues::Pso { cells, .. } => {
                holding(cells, held).find(|(queue, _)| queue.cell == cell).map(|(q, _)| equal(q.count, 0))
            }
        }
    }

    /// Where a load finds its value. The index is known to be computable and, unless the array is open, within range.
    pub(crate) fn lookup(&self, program: &Program, held: &Held, address: &Address) -> Lookup {
        let targets = cells_of(program, address);
        let mut hits = Vec::new();
        match self {
            Queues::Tso(queue) => {
                if let Some(count) =
                    queue.count.filter(|_| targets.clone().any(|c| held.counts.contains_key(&c)))
                {
                    let window = window(program, address);
                    let matches = |n: usize| {
                        let at_least = if n + 1 == held.total as usize { BinaryOp::Eq } else { BinaryOp::Ge };
                        let there = compare(at_least, count, n as i64 + 1);
                        let same =
                            Expr::binary(BinaryOp::Eq, Expr::Leaf(queue.cells[n]), cell_of(program, address));
                        Expr::binary(BinaryOp::And, there, same)
                    };
                    let places = held.total as usize;
                    let found = Expr::any((0..places).map(matches).collect());
                    for place in 0..places {
                        let newer = (place + 1..places).map(|n| matches(n).not());
                        let condition = window.clone().into_iter().chain([matches(place)]).chain(newer);
                        hits.push((Expr::all(condition.collect()), Expr::Leaf(queue.values[place])));
                    }
                    let found = window.into_iter().chain([found]).collect();
                    return Lookup { hits, miss: Some(Expr::all(found).not()) };
                }
            }
            Queues::Pso { cells, .. } => {
                let mut misses = Vec::new();
                for (queue, most) in holding(cells, held).filter(|(q, _)| targets.contains(&q.cell)) {
                    let here = targeted(program, address, queue.cell);
                    for count in 1..=most {
                        let condition = here.clone().into_iter().chain([equal(queue.count, count.into())]);
                        let value = queue.values[count as usize - 1];
                        hits.push((Expr::all(condition.collect()), Expr::Leaf(value)));
                    }
                    let elsewhere = here.map(Expr::not).into_iter();
                    misses.push(Expr::any(elsewhere.chain([equal(queue.count, 0)]).collect()));
                }
                if !misses.is_empty() {
                    return Lookup { hits, miss: Some(Expr::all(misses)) };
                }
            }
        }
        Lookup { hits, miss: None }
    }

    /// The ways in which a store enters the buffers, under the assumption of [`lookup`](Self::lookup) about the index; and the cases in which the
    /// store does not fit.
    pub(crate) fn store(
        &self,
        program: &Program,
        bounds: &Bounds,
        held: &Held,
        address: &Address,
        value: &Value,
    ) -> (Vec<Way>, Vec<Way>) {
        let (mut ways, mut overflows) = (Vec::new(), Vec::new());
        let full = |cell, condition| Way { cell, condition, effects: Vec::new() };
        match self {
            Queues::Tso(queue) => {
                let bound = bounds.of_thread().unwrap_or(0);
                for count in 0..=held.total {
                    let condition =
                        queue.count.filter(|_| held.total > 0).map(|cnt| equal(cnt, count.into()));
                    let Some(cnt) = queue.count.filter(|_| count < bound) else {
                        overflows.push(full(None, condition));
                        continue;
                    };
                    let place = count as usize;
                    let effects = vec![
                        Op::Assign(queue.cells[place], cell_of(program, address)),
                        Op::Assign(queue.values[place], value.clone()),
                        Op::Assign(cnt, Expr::Const(i64::from(count) + 1)),
                    ];
                    ways.push(Way { cell: None, condition, effects });
                }
            }
            Queues::Pso { cells, epoch } => {
                let all_full = bounds.of_thread().filter(|&bound| held.total >= bound).map(|bound| {
                    let counts = holding(cells, held).map(|(queue, _)| Expr::Leaf(queue.count));
                    Expr::binary(BinaryOp::Ge, sum(counts.collect()), Expr::Const(bound.into()))
                });
                overflows.extend(all_full.clone().map(|condition| full(None, Some(condition))));
                for cell in cells_of(program, address) {
                    let bound = bounds.of_cell(program, cell);
                    let queue = cells.iter().find(|queue| queue.cell == cell);
                    let most = held.counts.get(&cell).copied().unwrap_or(0);
                    for count in 0..=most {
                        let counted =
                            queue.filter(|_| most > 0).map(|queue| equal(queue.count, count.into()));
                        let here = targeted(program, address, cell).into_iter().chain(counted);
                        let mut condition: Vec<Value> = here.chain(all_full.clone().map(Expr::not)).collect();
                        let condition = match condition.len() {
                            0 => None,
                            1 => condition.pop(),
                            _ => Some(Expr::all(condition)),
                        };
                        let Some(queue) = queue.filter(|_| count < bound) else {
                            overflows.extend(all_full.is_none().then(|| full(Some(cell), condition)));
                            continue;
                        };
                        let place = count as usize;
                        let mut effects = vec![Op::Assign(queue.values[place], value.clone())];
                        if let Some(epoch) = epoch.filter(|_| held.marked) {
                            effects.push(Op::Assign(queue.epochs[place], Expr::Leaf(epoch)));
                        }
                        effects.push(Op::Assign(queue.count, Expr::Const(i64::from(count) + 1)));
                        ways.push(Way { cell: Some(cell), condition, effects });
                    }
                }
            }
        }
        (ways, overflows)
    }

    /// `sfence`: increments the epoch if a store of the current epoch is buffered.
    pub(crate) fn store_fence(&self, held: &Held) -> Op {
        match self {
            Queues::Pso { cells, epoch: Some(epoch) } if !held.counts.is_empty() => {
                let now = Expr::Leaf(*epoch);
                let of_this_epoch = holding(cells, held).flat_map(|(queue, most)| {
                    (1..=most).map(|n| {
                        let same =
                            Expr::binary(BinaryOp::Eq, Expr::Leaf(queue.epochs[n as usize - 1]), now.clone());
                        Expr::binary(BinaryOp::And, compare(BinaryOp::Ge, queue.count, n.into()), same)
                    })
                });
                let open = Expr::any(of_this_epoch.collect());
                Op::Assign(*epoch, Expr::choice(open, plus(*epoch, 1), now.clone()))
            }
            _ => Op::Skip,
        }
    }

    /// All possible flushes: the oldest store (PSO: of a cell, in epoch 0) is written to memory.
    pub(crate) fn flushes(&self, program: &Program, held: &Held) -> Vec<Way> {
        match self {
            Queues::Tso(queue) => queue.flushes(program, held),
            Queues::Pso { cells, epoch } => {
                let epoch = epoch.filter(|_| held.marked);
                let flush = |(queue, most): (&CellQueue, u32)| match epoch {
                    None => vec![queue.flush(program, most, compare(BinaryOp::Gt, queue.count, 0))],
                    Some(epoch) => queue.flushes_of_epoch(program, cells, held, epoch),
                };
                holding(cells, held).flat_map(flush).collect()
            }
        }
    }

    /// Decodes the buffers from the registers of the thread, in the format of the reference semantics.
    pub fn contents(&self, registers: &[i64]) -> Vec<Buffered> {
        let value = |register: RegisterId| registers[register.index()];
        let store = |cell: i64, place: RegisterId| Buffered::Store { cell: cell as u32, value: value(place) };
        match self {
            Queues::Tso(queue) => {
                let count = queue.count.map_or(0, value) as usize;
                let places = queue.cells.iter().zip(&queue.values).take(count);
                places.map(|(&cell, &place)| store(value(cell), place)).collect()
            }
            Queues::Pso { cells, epoch } => {
                let mut contents = Vec::new();
                for now in 0..=epoch.map_or(0, value) {
                    if now > 0 {
                        contents.push(Buffered::Barrier);
                    }
                    for queue in cells {
                        let count = value(queue.count) as usize;
                        let epochs = queue.epochs.iter().map(|&e| value(e)).chain(std::iter::repeat(0));
                        let stores = queue.values.iter().zip(epochs).take(count).filter(|(_, e)| *e == now);
                        contents.extend(stores.map(|(&place, _)| store(queue.cell.into(), place)));
                    }
                }
                contents
            }
        }
    }
}

impl Queue {
    /// One flush for each variable that the oldest store may write.
    fn flushes(&self, program: &Program, held: &Held) -> Vec<Way> {
        let (Some(count), Some(&cell), Some(&value)) = (self.count, self.cells.first(), self.values.first())
        else {
            return Vec::new();
        };
        let mut by_variable: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &cell in held.counts.keys() {
            let variable = program.variables.partition_point(|v| v.base <= cell) - 1;
            by_variable.entry(variable).or_default().push(cell);
        }
        let single = by_variable.len() == 1;
        let flush = |(variable, cells): (usize, Vec<u32>)| {
            let there = compare(BinaryOp::Gt, count, 0);
            let (first, last) = (cells[0], cells[cells.len() - 1]);
            let of_variable = match first == last {
                true => equal(cell, first.into()),
                false => Expr::binary(
                    BinaryOp::And,
                    compare(BinaryOp::Ge, cell, first.into()),
                    compare(BinaryOp::Le, cell, last.into()),
                ),
            };
            let condition = if single { there } else { Expr::binary(BinaryOp::And, there, of_variable) };
            let Variable { base, indices, .. } = &program.variables[variable];
            let index = indices.map(|range| match first == last {
                true => Expr::Const(range.low + i64::from(first - base)),
                false => plus(cell, range.low - i64::from(*base)),
            });
            let address = Address { variable: VariableId(variable as u32), index };
            let mut effects = vec![Op::Store(address, Expr::Leaf(value))];
            effects.extend(shifts(&self.cells, held.total));
            effects.extend(shifts(&self.values, held.total));
            effects.push(Op::Assign(count, plus(count, -1)));
            Way { cell: None, condition: Some(condition), effects }
        };
        by_variable.into_iter().map(flush).collect()
    }
}

impl CellQueue {
    fn flush(&self, program: &Program, most: u32, condition: Value) -> Way {
        let variable = program.variables.partition_point(|v| v.base <= self.cell) - 1;
        let Variable { base, indices, .. } = &program.variables[variable];
        let index = indices.map(|range| Expr::Const(range.low + i64::from(self.cell - base)));
        let address = Address { variable: VariableId(variable as u32), index };
        let mut effects = vec![Op::Store(address, Expr::Leaf(self.values[0]))];
        effects.extend(shifts(&self.values, most));
        effects.push(Op::Assign(self.count, plus(self.count, -1)));
        Way { cell: Some(self.cell), condition: Some(condition), effects }
    }

    /// The two flushes of a store of epoch 0: one for the case that another store of epoch 0 remains; and one for the case that none remains, which
    /// also decrements all epochs.
    fn flushes_of_epoch(
        &self,
        program: &Program,
        cells: &[CellQueue],
        held: &Held,
        epoch: RegisterId,
    ) -> Vec<Way> {
        let may_leave = |queue: &CellQueue, place: usize| {
            let there = compare(BinaryOp::Gt, queue.count, place as i64);
            Expr::binary(BinaryOp::And, there, equal(queue.epochs[place], 0))
        };
        let most = held.counts[&self.cell];
        let others = holding(cells, held).filter(|(queue, _)| queue.cell != self.cell);
        let stay = others.map(|(queue, _)| may_leave(queue, 0)).chain((most > 1).then(|| may_leave(self, 1)));
        let stay = Expr::any(stay.collect());
        [true, false]
            .into_iter()
            .map(|stays| {
                let stay = if stays { stay.clone() } else { stay.clone().not() };
                let condition = Expr::binary(BinaryOp::And, may_leave(self, 0), stay);
                let mut way = self.flush(program, most, condition);
                way.effects.extend(shifts(&self.epochs, most));
                if !stays {
                    let places =
                        holding(cells, held).flat_map(|(queue, most)| &queue.epochs[..most as usize]);
                    way.effects.extend(places.chain([&epoch]).map(|&register| {
                        let down = Expr::binary(BinaryOp::Max, plus(register, -1), Expr::Const(0));
                        Op::Assign(register, down)
                    }));
                }
                way
            })
            .collect()
    }
}

/// The name of a memory cell as part of an identifier.
pub(crate) fn plain_name(program: &Program, cell: u32) -> String {
    program.cell_name(cell).replace('[', "_").replace(']', "").replace('-', "m")
}

/// The queues that may contain stores, each with the maximum number of its stores.
fn holding<'a>(cells: &'a [CellQueue], held: &'a Held) -> impl Iterator<Item = (&'a CellQueue, u32)> {
    cells.iter().filter_map(|queue| Some((queue, *held.counts.get(&queue.cell)?)))
}

/// Moves all entries one place to the front, given the maximum number of places in use.
fn shifts(places: &[RegisterId], most: u32) -> Vec<Op> {
    let places = &places[..most as usize];
    let next = places.iter().skip(1).map(|&place| Expr::Leaf(place)).chain([Expr::Const(0)]);
    places.iter().zip(next).map(|(&place, value)| Op::Assign(place, value)).collect()
}

/// The index of the memory cell that an address denotes.
fn cell_of(program: &Program, address: &Address) -> Value {
    let variable = &program.variables[address.variable.index()];
    let base = i64::from(variable.base);
    match (&address.index, variable.indices) {
        (Some(index), Some(range)) => match index.constant() {
            Some(index) => Expr::Const(index.saturating_sub(range.low).saturating_add(base)),
            None if base == range.low => index.clone(),
            None => Expr::binary(BinaryOp::Add, index.clone(), Expr::Const(base - range.low)),
        },
        _ => Expr::Const(base),
    }
}

/// The condition that an address denotes this memory cell; `None` if it always does.
pub(crate) fn targeted(program: &Program, address: &Address, cell: u32) -> Option<Value> {
    let variable = &program.variables[address.variable.index()];
    match (&address.index, variable.indices) {
        (Some(index), Some(range)) => {
            let here = range.low + i64::from(cell - variable.base);
            match index.constant() {
                Some(index) if index == here => None,
                Some(_) => Some(Expr::Const(0)),
                None => Some(Expr::binary(BinaryOp::Eq, index.clone(), Expr::Const(here))),
            }
        }
        _ => None,
    }
}

/// For an open array, the condition that the index lies inside the window, the modelled part of the array. `None` if it always does.
fn window(program: &Program, address: &Address) -> Option<Value> {
    let variable = &program.variables[address.variable.index()];
    let (Some(index), Some(range)) = (&address.index, variable.indices) else { return None };
    (variable.open && !is_inside(program, address)).then(|| {
        let bound = |op, limit| Expr::binary(op, index.clone(), Expr::Const(limit));
        Expr::binary(BinaryOp::And, bound(BinaryOp::Ge, range.low), bound(BinaryOp::Le, range.high))
    })
}

fn sum(counts: Vec<Value>) -> Value {
    let mut counts = counts.into_iter();
    let first = counts.next().unwrap_or(Expr::Const(0));
    counts.fold(first, |sum, count| Expr::binary(BinaryOp::Add, sum, count))
}

fn plus(register: RegisterId, by: i64) -> Value {
    match by {
        0 => Expr::Leaf(register),
        by if by < 0 => Expr::binary(BinaryOp::Sub, Expr::Leaf(register), Expr::Const(-by)),
        by => Expr::binary(BinaryOp::Add, Expr::Leaf(register), Expr::Const(by)),
    }
}

fn compare(op: BinaryOp, register: RegisterId, with: i64) -> Value {
    Expr::binary(op, Expr::Leaf(register), Expr::Const(with))
}

fn equal(register: RegisterId, value: i64) -> Value {
    compare(BinaryOp::Eq, register, value)
}
