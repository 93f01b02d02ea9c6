//! Domain `order`: an exact representation of values by their relative order (CONTEXT24 Fig. 5).
//!
//! A state is a total preorder of the live cells and of some constants, the *points*. It is stored as one byte per cell, its rank, such that equal
//! preorders are equal byte strings. `x := *` gives one state for each position of the new value: equal to another value, between two neighbours, or
//! outside. For programs of the fragment (see module `fragment`) this is exact: a path of states is feasible if and only if there are values for it
//! (CONTEXT24 Lemmas 3 to 5; docs/contexts.md proves the extensions).
//!
//! * The points are the constants that the program compares with or assigns, and always 0. Over the integers and naturals every number between the
//!   least and the greatest constant is a point too, because there are finitely many values in between; over the reals there is always another value
//!   in between.
//! * A program that only tests values for equality does not need the order: its states are partitions ([`Relations::Equality`]).
//! * Cells whose values never meet, neither in an assignment nor in a comparison, are not compared ([`Components`]): each component has a preorder of
//!   its own.
//! * `x + n < y` is treated as `x < y`, because values that are not points can be moved apart. Therefore a program with distances may have no
//!   constant other than 0, and no upper bounds on distances.

mod components;
mod condition;
mod fragment;
mod ranks;

use fencewright_memory::linear::{Constraint, Cube, Linear};
use fencewright_memory::{CellId, Command, Contents};
use fencewright_program::Numbers;
use fencewright_verdict::Reason;
use smallvec::SmallVec;

pub use components::Components;
pub use fragment::{Unfit, fragment};

use super::{Domain, Live, SpuriousPath};
use condition::{Condition, Operand, Relation, Value};
use ranks::{Scale, Work};

/// The ranks of the live cells.
pub type Ranks = SmallVec<[u8; 40]>;

/// The relations between values that the domain tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relations {
    /// Equality only.
    Equality,
    /// Equality and order: a total preorder.
    Order,
}

/// Domain `order`, which tracks how values compare.
#[derive(Clone, Debug)]
pub struct Order {
    relations: Relations,
    /// The constants to which cells are compared, sorted; always contains 0.
    points: Vec<i64>,
    scale: Scale,
    components: Components,
}

/// A step on ranks. Indices number the points first, then the cells that are live before the step, then all other cells of the step.
pub struct OrderTransition {
    ops: Vec<RankOp<u8>>,
    /// The indices of the cells after the step, each with its component. The components that occur are renumbered from 0.
    after: Vec<(u8, u8)>,
}

/// An operation on cells and points. Values of type `I` denote cells and points.
enum RankOp<I> {
    Assume(Condition<I>),
    /// Assigns the second operand to the first.
    Copy(I, I),
    /// Assigns to the first operand: the second one if the condition holds, otherwise the third one.
    Choose(I, Condition<I>, I, I),
    /// The operand takes an arbitrary value. The list has the points and the cells with which this value is compared; it is empty until
    /// [`Order::needed_only`] fills it.
    Fresh(I, Vec<I>),
}

/// Maximum number of operations in a step. An index is one byte, and each operation may access a cell that is live neither before nor after the step:
/// `Scale::new` reserves this many indices for such cells.
const MOST_OPERATIONS: usize = 40;

impl Order {
    fn new(numbers: Numbers, relations: Relations, points: Vec<i64>, components: Components) -> Self {
        Order { scale: Scale::new(numbers, relations, points.len()), relations, points, components }
    }

    /// The index of the point with this value; `None` if the value is not a point.
    fn point(&self, value: i64) -> Option<u8> {
        self.points.binary_search(&value).ok().map(|n| n as u8)
    }

    fn load(&self, state: &Ranks) -> Work {
        let mut work = [0; 256];
        let points = self.points.len();
        (0..points).for_each(|p| work[p] = self.scale.point(p));
        work[points..points + state.len()].copy_from_slice(state);
        work
    }

    /// Performs the operations from index n on, and adds the resulting states to `out`.
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
                    self.scale.places(&work, *to, others, &mut |work| {
                        self.perform(transition, n + 1, *work, out);
                    });
                    return;
                }
            }
        }
        out.push((0, self.scale.canonical(&work, &transition.after)));
    }
}

impl Domain for Order {
    type State = Ranks;
    type Transition = OrderTransition;

    fn cube(&self, live: &Live, state: &Ranks) -> Cube {
        let points = self.points.len();
        let work = self.load(state);
        let form = |i: usize| match i < points {
            true => Linear::constant(self.points[i]),
            false => Linear::cell(live[i - points]),
        };
        let mut cube = Cube::new();
        let mut less = |x: usize, y: usize, strict: i64| {
            let difference = form(x).minus(&form(y)).and_then(|d| d.plus(&Linear::constant(strict)));
            cube.extend(difference.filter(|d| !d.terms.is_empty()).map(Constraint::AtMost));
        };
        let mut components: Vec<u32> = live.iter().map(|&cell| self.components.of(cell)).collect();
        components.sort_unstable();
        components.dedup();
        for component in components {
            let cells = (0..live.len()).filter(|&n| self.components.of(live[n]) == component);
            let mut indices: Vec<usize> = (0..points).chain(cells.map(|n| points + n)).collect();
            indices.sort_by_key(|&i| work[i]);
            for pair in indices.windows(2) {
                match (work[pair[0]] == work[pair[1]], self.relations) {
                    (true, _) => {
                        less(pair[0], pair[1], 0);
                        less(pair[1], pair[0], 0);
                    }
                    (false, Relations::Order) => less(pair[0], pair[1], 1),
                    // A conjunction of bounds cannot express that two values differ.
                    (false, Relations::Equality) => {}
                }
            }
        }
        cube
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> OrderTransition {
        let mut ops: Vec<RankOp<Operand>> = commands.iter().filter_map(|c| self.operation(c)).collect();
        self.needed_only(&mut ops, after);
        let points = self.points.len();
        let mut cells: Vec<CellId> = before.to_vec();
        let mut index = |operand: &Operand| match operand {
            Operand::Constant(value) => self.point(*value),
            Operand::Cell(cell) => {
                let position = cells.iter().position(|c| c == cell).unwrap_or_else(|| {
                    cells.push(*cell);
                    cells.len() - 1
                });
                u8::try_from(points + position).ok()
            }
        };
        let indexed = |op: RankOp<Operand>| op.map(&mut index).expect("constants are points, and cells fit");
        let ops = ops.into_iter().map(indexed).collect();
        let mut occurring: Vec<u32> = Vec::new();
        let numbered = |cell: &CellId| {
            let of = self.components.of(*cell);
            let known = occurring.iter().position(|&c| c == of).unwrap_or_else(|| {
                occurring.push(of);
                occurring.len() - 1
            });
            (index(&Operand::Cell(*cell)).expect("cells fit"), known as u8)
        };
        OrderTransition { ops, after: after.iter().map(numbered).collect() }
    }

    fn attach(&mut self, contents: &[Contents]) {
        self.components.extend(contents);
    }

    /// Without live cells there is one preorder: that of the points.
    fn blank(&self) -> Ranks {
        Ranks::new()
    }

    fn post(
        &mut self,
        transition: &OrderTransition,
        state: &Ranks,
        out: &mut Vec<(u32, Ranks)>,
    ) -> Result<(), Reason> {
        self.perform(transition, 0, self.load(state), out);
        Ok(())
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

    fn tells_branches(&self) -> bool {
        false
    }

    fn keeps_summaries(&self) -> bool {
        false
    }

    fn fits(&self, cells: usize) -> Result<(), String> {
        let most = self.scale.most_cells();
        match cells <= most {
            true => Ok(()),
            false => {
                Err(format!("{cells} cells that matter at once do not fit: this domain holds {most} here"))
            }
        }
    }

    fn size(&self, state: &Ranks) -> usize {
        size_of::<Ranks>() + if state.spilled() { state.len() } else { 0 }
    }

    /// The domain is exact for its fragment, so there is nothing to refine.
    fn refine(&self, _path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        Err("how values compare does not rule it out".into())
    }

    /// The domain is exact, so every path is feasible for some values. If none were found, the path may need values that are not 64-bit integers.
    fn doubt(&self) -> &'static str {
        "a path to a violation remains for which no values were found that are 64-bit integers"
    }
}

impl Order {
    /// A command as an operation. Outside of the fragment, an assigned value is arbitrary, and an assumption is dropped (`None`).
    fn operation(&self, command: &Command) -> Option<RankOp<Operand>> {
        let numbers = self.scale.numbers();
        let known = |o: &Operand| match o {
            Operand::Constant(value) if self.point(*value).is_none() => None,
            other => Some(*other),
        };
        match command {
            Command::Assume(e) => {
                let condition = condition::truth(e, true, numbers).ok()?;
                condition.map(&mut |o| known(o)).map(RankOp::Assume)
            }
            // A total preorder gives each cell one position, so it cannot represent a summary cell. A value read from a summary cell is arbitrary.
            Command::Fold(..) => None,
            Command::Havoc(cell) | Command::Expand(cell, _) => {
                Some(RankOp::Fresh(Operand::Cell(*cell), Vec::new()))
            }
            Command::Assign(cell, e) => {
                let to = Operand::Cell(*cell);
                let value = condition::value(e, numbers).ok().and_then(|value| match value {
                    Value::Same(operand) => known(&operand).map(|from| RankOp::Copy(to, from)),
                    Value::Truth(condition) => {
                        let ends = known(&Operand::Constant(1)).zip(known(&Operand::Constant(0)));
                        let condition = condition.map(&mut |o| known(o));
                        condition.zip(ends).map(|(c, (yes, no))| RankOp::Choose(to, c, yes, no))
                    }
                });
                Some(value.unwrap_or_else(|| RankOp::Fresh(to, Vec::new())))
            }
        }
    }

    /// Removes dead assignments, and determines the points and cells that each fresh value is compared with.
    fn needed_only(&self, ops: &mut Vec<RankOp<Operand>>, after: &Live) {
        let mut needed: Vec<CellId> = after.to_vec();
        let add = |needed: &mut Vec<CellId>, operand: &Operand| {
            if let Operand::Cell(cell) = operand
                && !needed.contains(cell)
            {
                needed.push(*cell);
            }
        };
        let mut kept = Vec::with_capacity(ops.len());
        for mut op in ops.drain(..).rev() {
            if let RankOp::Copy(Operand::Cell(to), _)
            | RankOp::Choose(Operand::Cell(to), ..)
            | RankOp::Fresh(Operand::Cell(to), _) = &op
            {
                let Some(position) = needed.iter().position(|c| c == to) else { continue };
                needed.swap_remove(position);
            }
            match &mut op {
                RankOp::Assume(condition) | RankOp::Choose(_, condition, ..) => {
                    condition.for_each(&mut |o| add(&mut needed, o));
                }
                RankOp::Copy(_, from) => add(&mut needed, from),
                RankOp::Fresh(to, others) => {
                    let same = |c: &&CellId| match to {
                        Operand::Cell(to) => self.components.of(**c) == self.components.of(*to),
                        Operand::Constant(_) => false,
                    };
                    others.extend(self.points.iter().map(|&p| Operand::Constant(p)));
                    others.extend(needed.iter().filter(same).map(|&c| Operand::Cell(c)));
                }
            }
            kept.push(op);
        }
        kept.reverse();
        *ops = kept;
    }
}

impl<I> RankOp<I> {
    /// Renames the operands; `None` if some operand has no new name.
    fn map<J>(&self, name: &mut impl FnMut(&I) -> Option<J>) -> Option<RankOp<J>> {
        Some(match self {
            RankOp::Assume(condition) => RankOp::Assume(condition.map(name)?),
            RankOp::Copy(to, from) => RankOp::Copy(name(to)?, name(from)?),
            RankOp::Choose(to, condition, yes, no) => {
                RankOp::Choose(name(to)?, condition.map(name)?, name(yes)?, name(no)?)
            }
            RankOp::Fresh(to, others) => {
                RankOp::Fresh(name(to)?, others.iter().map(name).collect::<Option<_>>()?)
            }
        })
    }
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
