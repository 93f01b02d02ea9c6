//! Domain `zones`: difference bounds between cells, clipped at a constant.
//!
//! A zone says, for each pair of live cells (and the constant 0), an upper bound of their difference: a conjunction of constraints
//! `x - y <= c`. Bounds above the clip constant are dropped and bounds below its negative are raised to it, so there are finitely
//! many zones for given cells and every search ends; a larger constant is a refinement. These are the facts that mutual
//! exclusion algorithms are made of: who is ahead of whom, by at least one or not at all.
//!
//! A summary cell ([`Cells`](fencewright_memory::Cells)) has a row like any other cell, and its bounds hold for every value that it stands
//! for. A zone may be closed and clipped as usual: if all choices of values satisfy some bounds, they also satisfy what follows from these
//! bounds. `Fold` takes the greater of two bounds, that of the old values and that of the new value; this keeps a matrix closed. `Expand`
//! copies the bounds of the summary. How far the copy is from other values of the summary is bounded only through third cells.
//!
//! A stored zone is clipped and therefore not closed (a bound may follow from others); it is closed before a step. Constraints that are not
//! differences are used only as far as the bounds of single cells decide them.

use fencewright_memory::linear::{Cube, Linear, Simple, Value, ways};
use fencewright_memory::{CellId, Command};

use super::bounds::{MOST, NONE, add, bound, close, forget, sum};
use super::{Domain, Live, SpuriousPath};
use crate::task::Reason;

/// A larger clip constant has never helped.
const MOST_CLIP: i32 = 64;

/// A square matrix of bounds: entry (i, j) bounds cell i minus cell j; index 0 is the constant 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    size: usize,
    bounds: Box<[i32]>,
}

/// The domain.
#[derive(Clone, Debug)]
pub struct Zones {
    clip: i32,
    /// Whether the clip constant stays as it is.
    fixed: bool,
    scratch: Vec<i32>,
    saved: Vec<i32>,
}

/// A step on zones: the ways through its commands, on a matrix with room for all cells they touch.
pub struct ZoneTransition {
    /// How many indices the working matrix has.
    size: usize,
    /// For each index of the working matrix, its index in the state before the step, if it has one.
    before: Vec<Option<usize>>,
    /// For each index of the state after the step, its index in the working matrix.
    after: Vec<usize>,
    ways: Vec<Vec<ZoneOp>>,
}

/// An operation on the working matrix.
#[derive(Clone, Debug)]
enum ZoneOp {
    /// Index i minus index j is at most so much.
    Bound(usize, usize, i32),
    /// Index i := index j plus so much (j may be 0, or i itself).
    Shift(usize, usize, i32),
    /// Index i := any value.
    Forget(usize),
    /// Index i := a linear form, known only by the bounds of its cells.
    Approximate(usize, Vec<(usize, i64)>, i64),
    /// A linear form is at most 0: decided by the bounds of its cells if at all.
    AtMost(Vec<(usize, i64)>, i64),
    /// Summary i stands for the value of index j too, which is then forgotten.
    Fold(usize, usize),
    /// Index i := one of the values of summary j.
    Expand(usize, usize),
}

impl Zones {
    /// Zones clipped at this constant, which is never refined if it is `fixed`.
    pub fn new(clip: i32, fixed: bool) -> Self {
        Zones { clip, fixed, scratch: Vec::new(), saved: Vec::new() }
    }

    /// Zones that are not clipped: as precise as possible, but there are infinitely many.
    pub fn unclipped() -> Self {
        Zones::new(i32::MAX - 1, true)
    }
}

impl Zone {
    /// The bound of cell i minus cell j (0: the constant 0), if there is one.
    fn bound(&self, i: usize, j: usize) -> Option<i32> {
        let bound = self.bounds[i * self.size + j];
        (bound != NONE).then_some(bound)
    }

    /// The zone as constraints on the live cells, without those that follow from two others.
    fn cube(&self, live: &Live) -> Cube {
        let mut kept: Vec<Vec<Option<i32>>> =
            (0..self.size).map(|i| (0..self.size).map(|j| self.bound(i, j)).collect()).collect();
        let mut cube = Vec::new();
        for i in 0..self.size {
            for j in (0..self.size).filter(|&j| j != i) {
                let Some(bound) = kept[i][j] else { continue };
                let follows = (0..self.size).filter(|&k| k != i && k != j).any(|k| {
                    matches!((kept[i][k], kept[k][j]), (Some(a), Some(b)) if i64::from(a) + i64::from(b) <= i64::from(bound))
                });
                if follows {
                    kept[i][j] = None;
                }
            }
        }
        let cell = |i: usize| if i == 0 { Linear::constant(0) } else { Linear::cell(live[i - 1]) };
        for (i, row) in kept.iter().enumerate() {
            for (j, bound) in row.iter().enumerate().filter(|(j, _)| *j != i) {
                let Some(bound) = bound else { continue };
                let difference = cell(i).minus(&cell(j)).expect("a difference of two cells fits");
                cube.extend(difference.plus(&Linear::constant(-i64::from(*bound))));
            }
        }
        cube
    }
}

impl Domain for Zones {
    type State = Zone;
    type Transition = ZoneTransition;

    fn cube(&self, live: &Live, zone: &Zone) -> Cube {
        zone.cube(live)
    }

    fn blank(&self) -> Zone {
        Zone { size: 1, bounds: [0].into() }
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> ZoneTransition {
        let mut cells: Vec<CellId> = before.to_vec();
        let mut touch = |cell: CellId| {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        };
        after.iter().for_each(|&c| touch(c));
        for command in commands {
            match command {
                Command::Assume(e) => e.for_each_leaf(&mut |c| touch(*c)),
                Command::Assign(cell, e) | Command::Fold(cell, e) => {
                    touch(*cell);
                    e.for_each_leaf(&mut |c| touch(*c));
                }
                Command::Havoc(cell) => touch(*cell),
                Command::Expand(cell, summary) => [*cell, *summary].into_iter().for_each(&mut touch),
            }
        }
        // A value that is to be folded first gets an index of its own.
        let folded = cells.len() + 1;
        let folds = commands.iter().any(|c| matches!(c, Command::Fold(..)));
        let size = folded + folds as usize;
        let index =
            |cell: CellId| cells.iter().position(|&c| c == cell).expect("every cell was collected") + 1;
        let ops = |simple: &Simple| match simple {
            Simple::AtMost(linear) => vec![constraint(linear, &index)],
            Simple::Assign(cell, value) => vec![assignment(index(*cell), value, &index)],
            Simple::Fold(summary, None) => vec![ZoneOp::Forget(index(*summary))],
            Simple::Fold(summary, value) => {
                vec![assignment(folded, value, &index), ZoneOp::Fold(index(*summary), folded)]
            }
            Simple::Expand(cell, summary) => vec![ZoneOp::Expand(index(*cell), index(*summary))],
        };
        let ways = ways(commands).iter().map(|way| way.iter().flat_map(ops).collect()).collect();
        let mut before_index = vec![Some(0)];
        before_index.extend((1..size).map(|n| (n <= before.len()).then_some(n)));
        let mut after_index = vec![0];
        after_index.extend(after.iter().map(|&c| index(c)));
        ZoneTransition { size, before: before_index, after: after_index, ways }
    }

    fn post(
        &mut self,
        transition: &ZoneTransition,
        state: &Zone,
        out: &mut Vec<(u32, Zone)>,
    ) -> Result<(), Reason> {
        let size = transition.size;
        let mut start = std::mem::take(&mut self.saved);
        start.clear();
        start.resize(size * size, NONE);
        for (i, from) in transition.before.iter().enumerate() {
            start[i * size + i] = 0;
            let Some(from) = from else { continue };
            for (j, to) in transition.before.iter().enumerate() {
                if let Some(to) = to {
                    start[i * size + j] = state.bounds[from * state.size + to];
                }
            }
        }
        close(&mut start, size, transition.before.iter().filter(|b| b.is_some()).count());
        let mut work = std::mem::take(&mut self.scratch);
        for (n, way) in transition.ways.iter().enumerate() {
            work.clear();
            work.extend_from_slice(&start);
            if way.iter().all(|op| op.apply(&mut work, size)) {
                out.push((n as u32, project(&work, size, &transition.after)));
            }
        }
        self.saved = start;
        self.scratch = work;
        Ok(())
    }

    fn covers(&self, larger: &Zone, smaller: &Zone) -> bool {
        larger.bounds.iter().zip(&smaller.bounds).all(|(l, s)| s <= l)
    }

    /// Bounds above the clip constant are dropped, those below its negative raised.
    fn stored(&self, zone: &Zone) -> Zone {
        let clip = |&bound: &i32| match bound {
            b if b > self.clip => NONE,
            b => b.max(-self.clip),
        };
        Zone { size: zone.size, bounds: zone.bounds.iter().map(clip).collect() }
    }

    fn size(&self, zone: &Zone) -> usize {
        size_of::<Zone>() + size_of_val(&*zone.bounds)
    }

    fn describe(&self) -> Option<String> {
        Some(format!("clip = {}", self.clip))
    }

    /// The least clip constant that rules the path out.
    fn refine(&self, path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        let enough = |&more: &i32| !path.is_feasible(&mut Zones::new(more, false));
        match (self.clip + 1..=MOST_CLIP).find(enough) {
            Some(more) if self.fixed => {
                Err(format!("it takes clip = {more}, and clip is fixed at {}", self.clip))
            }
            Some(more) => Ok(Zones::new(more, false)),
            None => Err("no clip constant rules it out".into()),
        }
    }

    fn doubt(&self) -> &'static str {
        "a path to a violation remains that bounds on differences do not rule out"
    }
}

/// `linear <= 0` as an operation: a bound if it is a difference.
fn constraint(linear: &Linear, index: &impl Fn(CellId) -> usize) -> ZoneOp {
    let Some((x, y)) = linear.difference().filter(|_| !linear.terms.is_empty()) else {
        return ZoneOp::AtMost(indexed(linear, index), linear.constant);
    };
    let (i, j) = (x.map_or(0, index), y.map_or(0, index));
    match linear.constant.checked_neg() {
        Some(c) if c <= MOST => ZoneOp::Bound(i, j, c.max(-MOST) as i32),
        _ => ZoneOp::AtMost(Vec::new(), 0),
    }
}

fn assignment(target: usize, value: &Value, index: &impl Fn(CellId) -> usize) -> ZoneOp {
    let Some(linear) = value else { return ZoneOp::Forget(target) };
    let small = linear.constant.unsigned_abs() <= MOST as u64;
    match linear.terms.as_slice() {
        [] if small => ZoneOp::Shift(target, 0, linear.constant as i32),
        [(x, 1)] if small => ZoneOp::Shift(target, index(*x), linear.constant as i32),
        _ => ZoneOp::Approximate(target, indexed(linear, index), linear.constant),
    }
}

fn indexed(linear: &Linear, index: &impl Fn(CellId) -> usize) -> Vec<(usize, i64)> {
    linear.terms.iter().map(|&(cell, c)| (index(cell), c)).collect()
}

impl ZoneOp {
    /// Applies the operation to a closed matrix, which stays closed; false if the constraints contradict each other.
    fn apply(&self, m: &mut [i32], size: usize) -> bool {
        match self {
            ZoneOp::Bound(i, j, c) => return bound(m, size, *i, *j, *c),
            ZoneOp::Forget(i) => forget(m, size, *i),
            ZoneOp::Shift(i, j, c) if i == j => {
                for k in (0..size).filter(|k| k != i) {
                    m[i * size + k] = sum(m[i * size + k], *c);
                    m[k * size + i] = sum(m[k * size + i], -*c);
                }
            }
            ZoneOp::Shift(i, j, c) => {
                for k in (0..size).filter(|k| k != i) {
                    m[i * size + k] = sum(m[j * size + k], *c);
                    m[k * size + i] = sum(m[k * size + j], -*c);
                }
                m[i * size + j] = *c;
                m[j * size + i] = -*c;
            }
            ZoneOp::Approximate(i, terms, constant) => {
                let high = upper(m, size, terms, *constant, 1);
                let low = upper(m, size, terms, *constant, -1);
                forget(m, size, *i);
                let fits = |b: Option<i64>| b.filter(|b| *b <= MOST).map(|b| b.max(-MOST) as i32);
                let high = fits(high).is_none_or(|high| bound(m, size, *i, 0, high));
                return high && fits(low).is_none_or(|low| bound(m, size, 0, *i, low));
            }
            ZoneOp::AtMost(terms, constant) => {
                // The least value of the form is minus the greatest of its negation.
                return upper(m, size, terms, *constant, -1).is_none_or(|negated| negated >= 0);
            }
            ZoneOp::Fold(i, j) => {
                for k in (0..size).filter(|k| k != i && k != j) {
                    m[i * size + k] = m[i * size + k].max(m[j * size + k]);
                    m[k * size + i] = m[k * size + i].max(m[k * size + j]);
                }
                forget(m, size, *j);
            }
            ZoneOp::Expand(i, j) => {
                // Two values of the summary lie between the same bounds relative to any cell k, so they differ by at most the sum of these
                // two bounds. The old value of i may serve as k too.
                let between = |k: usize| match (m[j * size + k], m[k * size + j]) {
                    (NONE, _) | (_, NONE) => NONE,
                    (above, below) => add(above, below),
                };
                let spread = (0..size).filter(|k| k != j).map(between).min().unwrap_or(NONE);
                for k in (0..size).filter(|k| k != i && k != j) {
                    m[i * size + k] = m[j * size + k];
                    m[k * size + i] = m[k * size + j];
                }
                m[i * size + j] = spread;
                m[j * size + i] = spread;
            }
        }
        true
    }
}

/// The greatest value of `sign * (terms + constant)` that the bounds of single cells allow, if there is one.
fn upper(m: &[i32], size: usize, terms: &[(usize, i64)], constant: i64, sign: i64) -> Option<i64> {
    let mut total = constant.checked_mul(sign)?;
    for &(i, coefficient) in terms {
        let c = coefficient.checked_mul(sign)?;
        let most = if c > 0 { m[i * size] } else { m[i] };
        if most == NONE {
            return None;
        }
        total = total.checked_add(c.checked_abs()?.checked_mul(i64::from(most))?)?;
    }
    Some(total)
}

fn project(m: &[i32], size: usize, after: &[usize]) -> Zone {
    let bounds = after.iter().flat_map(|&i| after.iter().map(move |&j| m[i * size + j])).collect();
    Zone { size: after.len(), bounds }
}
