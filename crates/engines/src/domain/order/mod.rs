//! Domain `order`: values known only by how they compare (CONTEXT24 Fig. 5), exactly.
//!
//! A state is a total preorder of the live cells and of some constants, the *points*: which of them are equal, and which come before
//! which. It is stored as the rank of each cell, one byte each, counted without gaps, so equal preorders are equal bytes.
//! `x := *` gives one state for each place a value can take: equal to any other, or between two neighbours, or outside. For programs
//! of the fragment (see [`fragment`]) nothing is lost: a path of states can be taken exactly if there are values that take it
//! (CONTEXT24 Lemmas 3 to 5; docs/contexts.md proves the extensions).
//!
//! * The points are the constants that the program compares with or assigns, 0 always among them. Over the integers and naturals
//!   everything between the least and the greatest is a point too, because there are only so many values in between; over the
//!   reals there is room everywhere.
//! * A program that only asks whether values are equal does not need the order: its states are partitions (`Relations::Equality`).
//! * `x + n < y` is taken as `x < y`: values outside the points can be moved apart. Hence no distances together with other constants
//!   than 0, and no upper bounds on distances.

mod condition;
mod fragment;

use fencewright_memory::linear::{Cube, Linear};
use fencewright_memory::{CellId, Command};
use fencewright_program::Numbers;
use smallvec::SmallVec;

pub use fragment::{Unfit, fragment};

use super::{Domain, Live};
use condition::{Condition, Operand, Relation, Value};

/// The ranks of the live cells; before them that of the first point (integers and naturals) or of every point (reals).
pub type Ranks = SmallVec<[u8; 40]>;

/// What about values matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relations {
    /// Which are equal.
    Equality,
    /// Which are equal, and which are less.
    Order,
}

/// More cells and points than this at once do not fit the bytes of a state.
pub const MOST_CLASSES: usize = 120;

/// The domain.
#[derive(Clone, Debug)]
pub struct Order {
    numbers: Numbers,
    relations: Relations,
    /// Sorted, 0 among them.
    points: Vec<i64>,
}

/// A step on ranks. Index n < points is a point, then come the cells before the step, then others.
pub struct OrderTransition {
    /// How many cells the state before the step has.
    before: usize,
    ops: Vec<RankOp>,
    /// The indices of the cells after the step.
    after: Vec<u8>,
}

enum RankOp {
    Assume(Condition<u8>),
    Copy(u8, u8),
    /// Index := one point if the condition holds, else the other.
    Choose(u8, Condition<u8>, u8, u8),
    /// Index := any value, compared with all others that still matter, points included.
    Fresh(u8, Vec<u8>),
}

/// Ranks while a step is on its way, by index.
type Work = [u8; 256];

/// Which ranks occur.
#[derive(Clone, Copy, Default)]
struct Occurring([u64; 4]);

impl Occurring {
    fn of(work: &Work, indices: impl Iterator<Item = usize>) -> Self {
        let mut all = Occurring::default();
        indices.for_each(|i| all.0[work[i] as usize >> 6] |= 1 << (work[i] & 63));
        all
    }

    /// How many occur below this one.
    fn below(&self, rank: u8) -> u8 {
        let word = rank as usize >> 6;
        let full: u32 = self.0[..word].iter().map(|w| w.count_ones()).sum();
        (full + (self.0[word] & ((1 << (rank & 63)) - 1)).count_ones()) as u8
    }

    fn count(&self) -> u8 {
        self.0.iter().map(|w| w.count_ones()).sum::<u32>() as u8
    }
}

impl Order {
    /// How many bytes come before the ranks of cells.
    fn header(&self) -> usize {
        match (self.relations, self.numbers) {
            (Relations::Equality, _) => 0,
            (Relations::Order, Numbers::Real) => self.points.len(),
            (Relations::Order, _) => 1,
        }
    }

    /// Whether only equality matters.
    pub fn relations(&self) -> Relations {
        self.relations
    }

    /// The points.
    pub fn points(&self) -> &[i64] {
        &self.points
    }

    /// The index of a constant.
    fn point(&self, value: i64) -> Option<u8> {
        self.points.binary_search(&value).ok().map(|n| n as u8)
    }

    fn load(&self, state: &Ranks, before: usize) -> Work {
        let mut work = [0; 256];
        let (points, header) = (self.points.len(), self.header());
        match (self.relations, self.numbers) {
            (Relations::Equality, _) => (0..points).for_each(|p| work[p] = p as u8),
            (Relations::Order, Numbers::Real) => work[..points].copy_from_slice(&state[..points]),
            (Relations::Order, _) => (0..points).for_each(|p| work[p] = state[0] + p as u8),
        }
        work[points..points + before].copy_from_slice(&state[header..]);
        work
    }

    /// The state that remains of the cells after a step.
    fn project(&self, work: &Work, after: &[u8]) -> Ranks {
        let points = self.points.len();
        let cells = after.iter().map(|&i| work[i as usize]);
        if self.relations == Relations::Equality {
            // Classes are numbered in the order in which they occur.
            let mut names = [u8::MAX; 256];
            let mut next = points as u8;
            (0..points).for_each(|p| names[work[p] as usize] = p as u8);
            let name = |class: u8| {
                let known = &mut names[class as usize];
                if *known == u8::MAX {
                    *known = next;
                    next += 1;
                }
                *known
            };
            return cells.map(name).collect();
        }
        let occurring = Occurring::of(work, (0..points).chain(after.iter().map(|&i| i as usize)));
        let header = work[..if self.numbers == Numbers::Real { points } else { 1 }].iter().copied();
        header.chain(cells).map(|rank| occurring.below(rank)).collect()
    }

    /// Performs the operations from number n on.
    fn perform(&self, transition: &OrderTransition, n: usize, mut work: Work, out: &mut Vec<(u32, Ranks)>) {
        for (n, op) in transition.ops.iter().enumerate().skip(n) {
            match op {
                RankOp::Assume(condition) => {
                    if !condition.holds(&work) {
                        return;
                    }
                }
                RankOp::Copy(to, from) => work[*to as usize] = work[*from as usize],
                RankOp::Choose(to, condition, yes, no) => {
                    let chosen = if condition.holds(&work) { yes } else { no };
                    work[*to as usize] = work[*chosen as usize];
                }
                RankOp::Fresh(to, others) => {
                    self.fresh(*to, others, &mut work, &mut |work| {
                        self.perform(transition, n + 1, *work, out);
                    });
                    return;
                }
            }
        }
        out.push((0, self.project(&work, &transition.after)));
    }

    /// Every place that a fresh value can take among those that matter.
    fn fresh(&self, to: u8, others: &[u8], work: &mut Work, next: &mut dyn FnMut(&Work)) {
        let others = || others.iter().map(|&i| i as usize);
        let occurring = Occurring::of(work, others());
        let count = occurring.count();
        // Ranks become odd, so that there is a number for every place between two.
        let spread = |rank: u8| 2 * occurring.below(rank) + 1;
        let moved: SmallVec<[(usize, u8); 64]> = others().map(|i| (i, spread(work[i]))).collect();
        moved.into_iter().for_each(|(i, rank)| work[i] = rank);
        let (first, last) = (work[0], work[self.points.len() - 1]);
        for place in 0..=2 * count {
            let possible = match (self.relations, self.numbers) {
                _ if place % 2 == 1 => true,
                (Relations::Equality, _) => place == 2 * count,
                (Relations::Order, Numbers::Real) => true,
                (Relations::Order, Numbers::Int) => place < first || place > last,
                (Relations::Order, Numbers::Nat) => place > last,
            };
            if possible {
                work[to as usize] = place;
                next(work);
            }
        }
    }
}

impl Domain for Order {
    type State = Ranks;
    type Transition = OrderTransition;

    fn cube(&self, live: &Live, state: &Ranks) -> Cube {
        let points = self.points.len();
        let work = self.load(state, live.len());
        let form = |i: usize| match i < points {
            true => Linear::constant(self.points[i]),
            false => Linear::cell(live[i - points]),
        };
        let mut indices: Vec<usize> = (0..points + live.len()).collect();
        indices.sort_by_key(|&i| work[i]);
        let mut cube = Cube::new();
        let mut less = |x: usize, y: usize, strict: i64| {
            let difference = form(x).minus(&form(y)).and_then(|d| d.plus(&Linear::constant(strict)));
            cube.extend(difference.filter(|d| !d.terms.is_empty()));
        };
        for pair in indices.windows(2) {
            match (work[pair[0]] == work[pair[1]], self.relations) {
                (true, _) => {
                    less(pair[0], pair[1], 0);
                    less(pair[1], pair[0], 0);
                }
                (false, Relations::Order) => less(pair[0], pair[1], 1),
                // That two values differ is not a conjunction of bounds.
                (false, Relations::Equality) => {}
            }
        }
        cube
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> OrderTransition {
        let points = self.points.len();
        let mut cells: Vec<CellId> = before.to_vec();
        let mut index = |cell: CellId| {
            let position = cells.iter().position(|&c| c == cell).unwrap_or_else(|| {
                cells.push(cell);
                cells.len() - 1
            });
            (points + position) as u8
        };
        let mut ops = Vec::new();
        for command in commands {
            // What is outside the fragment is not known: any value, any truth.
            let mut named = |operand: &Operand| match operand {
                Operand::Cell(cell) => Some(index(*cell)),
                Operand::Constant(value) => self.point(*value),
            };
            match command {
                Command::Assume(e) => {
                    let condition = condition::truth(e, true, self.numbers).ok();
                    ops.extend(condition.and_then(|c| c.map(&mut named)).map(RankOp::Assume));
                }
                Command::Assign(cell, e) => {
                    let value = condition::value(e, self.numbers).ok();
                    let op = match value {
                        Some(Value::Same(operand)) => named(&operand)
                            .map(|from| RankOp::Copy(named(&Operand::Cell(*cell)).unwrap_or(0), from)),
                        Some(Value::Truth(condition)) => {
                            let (yes, no) = (named(&Operand::Constant(1)), named(&Operand::Constant(0)));
                            let condition = condition.map(&mut named);
                            let to = named(&Operand::Cell(*cell)).unwrap_or(0);
                            condition.zip(yes.zip(no)).map(|(c, (yes, no))| RankOp::Choose(to, c, yes, no))
                        }
                        None => None,
                    };
                    ops.push(op.unwrap_or_else(|| RankOp::Fresh(index(*cell), Vec::new())));
                }
                Command::Havoc(cell) => ops.push(RankOp::Fresh(index(*cell), Vec::new())),
            }
        }
        let after: Vec<u8> = after.iter().map(|&cell| index(cell)).collect();
        needed_only(&mut ops, points, &after);
        OrderTransition { before: before.len(), ops, after }
    }

    fn anything(&self, live: &Live) -> Ranks {
        // Where nothing is live, there is one preorder: that of the points.
        debug_assert!(live.is_empty(), "a total preorder of cells is never nothing");
        let ranks = match (self.relations, self.numbers) {
            (Relations::Equality, _) => 0..0,
            (Relations::Order, Numbers::Real) => 0..self.points.len() as u8,
            (Relations::Order, _) => 0..1,
        };
        ranks.collect()
    }

    fn post(&mut self, transition: &OrderTransition, state: &Ranks, out: &mut Vec<(u32, Ranks)>) {
        self.perform(transition, 0, self.load(state, transition.before), out);
    }

    fn stored(&self, state: &Ranks) -> Ranks {
        state.clone()
    }

    fn covers(&self, larger: &Ranks, smaller: &Ranks) -> bool {
        larger == smaller
    }

    fn is_discrete(&self) -> bool {
        true
    }

    fn most_cells(&self) -> usize {
        MOST_CLASSES - self.points.len()
    }

    fn size(&self, state: &Ranks) -> usize {
        size_of::<Ranks>() + if state.spilled() { state.len() } else { 0 }
    }
}

/// Drops assignments that nobody looks at, and tells each fresh value what it is compared with.
fn needed_only(ops: &mut Vec<RankOp>, points: usize, after: &[u8]) {
    let mut needed = [false; 256];
    (0..points).for_each(|p| needed[p] = true);
    after.iter().for_each(|&i| needed[i as usize] = true);
    let mut kept = Vec::with_capacity(ops.len());
    for mut op in ops.drain(..).rev() {
        match &mut op {
            RankOp::Copy(to, _) | RankOp::Choose(to, ..) | RankOp::Fresh(to, _) => {
                if !std::mem::replace(&mut needed[*to as usize], false) {
                    continue;
                }
            }
            RankOp::Assume(_) => {}
        }
        match &mut op {
            RankOp::Assume(condition) | RankOp::Choose(_, condition, ..) => {
                condition.for_each(&mut |&i| needed[i as usize] = true);
            }
            RankOp::Copy(_, from) => needed[*from as usize] = true,
            RankOp::Fresh(_, others) => others.extend((0..=255).filter(|&i| needed[i as usize])),
        }
        kept.push(op);
    }
    kept.reverse();
    *ops = kept;
}

impl Condition<u8> {
    fn holds(&self, work: &Work) -> bool {
        match self {
            Condition::Constant(value) => *value,
            Condition::Related { relation, left, right, .. } => {
                let (left, right) = (work[*left as usize], work[*right as usize]);
                match relation {
                    Relation::Equal => left == right,
                    Relation::Different => left != right,
                    Relation::Less => left < right,
                    Relation::AtMost => left <= right,
                }
            }
            Condition::All(parts) => parts.iter().all(|p| p.holds(work)),
            Condition::Any(parts) => parts.iter().any(|p| p.holds(work)),
        }
    }
}
