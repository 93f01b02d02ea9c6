//! Domain `zones`: difference bounds between cells, clipped at a constant (difference bound matrices).
//!
//! A zone has, for each pair of live cells (and the constant 0), an upper bound on their difference: it is a conjunction of constraints `x - y <= c`.
//! Bounds greater than the clip constant are dropped and bounds less than its negation are raised to it, so there are finitely many zones for given
//! cells and every search terminates; a larger clip constant is a refinement. A small clip constant suffices for many mutual exclusion algorithms,
//! because they rely on facts such as whether one ticket number is less than another. If a counterexample shows that large constants of the program
//! matter, such as the end of a long loop, a bound beyond the clip constant is raised to the next large constant ([`Marks`]).
//!
//! A summary cell ([`Cells`](fencewright_memory::Cells)) has a row like any other cell, and its bounds hold for every value that it stands for. A
//! zone may be closed and clipped as usual: if all choices of values satisfy some bounds, they also satisfy their consequences. `Fold` takes the
//! greater of two bounds, that of the old values and that of the new value, which preserves closure. `Expand` copies the bounds of the summary. The
//! difference between the copy and other values of the summary is bounded only by the sum of their bounds relative to another cell.
//!
//! A stored zone is clipped and therefore not closed (a bound may follow from others); it is closed before a step. Constraints that are not
//! differences are used only as far as the bounds of single cells decide them, unless a counterexample has shown that sums of cells matter: then such
//! sums have rows of their own (`forms.rs`).
//!
//! In addition to its bounds a cell may have a [residue](super::residues), if the program uses residues that depend on it. Residues are not clipped.
//! They tighten bounds after each step: if x is even and y is odd, `x <= y` becomes `x <= y - 1`.

mod forms;
mod marks;
mod ops;
mod refine;
mod settle;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use fencewright_memory::arithmetic::AUXILIARY;
use fencewright_memory::linear::{Constraint, Cube, Linear, Simple, ways};
use fencewright_memory::{CellId, Command, Contents};
use fencewright_verdict::Reason;

use self::forms::{FOLDED, RowOp, Rows, Shared};
pub use self::marks::Marks;
use self::ops::{ZoneOp, assignment, constraint};
use self::settle::{exact, settle};
use super::bounds::{NONE, close};
use super::residues::{Moduli, Residue, ResidueStep};
use super::{Domain, Live, SpuriousPath};

/// Maximum clip constant; larger ones have never helped.
const MOST_CLIP: i32 = 64;
/// Maximum number of cached steps with rows for sums.
const MOST_PREPARED: usize = 10_000;

/// A square matrix of bounds: entry (i, j) bounds form i minus form j. Form 0 is the constant 0; the others are the live cells, and sums of live
/// cells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    size: usize,
    bounds: Box<[i32]>,
    /// The residue of each live cell; empty if no residues matter.
    residues: Box<[Residue]>,
}

/// Domain `zones`: a state is a matrix of difference bounds.
#[derive(Clone, Debug)]
pub struct Zones {
    clip: i32,
    /// Whether the clip constant is never refined.
    fixed: bool,
    /// The large constants to which bounds may be raised.
    marks: Arc<Marks>,
    /// Whether the marks are used.
    marked: bool,
    /// The sums that get rows, if all their cells are live.
    forms: Arc<BTreeSet<Linear>>,
    /// The contents of the machine's cells, once known.
    contents: Arc<[Contents]>,
    /// The moduli of the residues that matter.
    moduli: Arc<Moduli>,
    /// Cached steps with rows for sums. Steps of different control states are often identical to a domain, and preparing one takes as long as taking
    /// it many times.
    prepared: Rc<RefCell<HashMap<Step, Arc<ZoneTransition>>>>,
    scratch: Vec<i32>,
    saved: Vec<i32>,
    /// The bounds of the zone from which the last step was taken: as stored, and closed. They are kept because usually several steps are taken from
    /// the same zone.
    closed: (Vec<i32>, Vec<i32>),
}

/// The key of a step: the live cells before, the commands, the live cells after.
type Step = (Vec<CellId>, Vec<Command>, Vec<CellId>);

/// A step on zones: the branches through its commands, on a matrix with rows for all cells they access.
#[derive(Debug)]
pub struct ZoneTransition {
    /// The dimension of the working matrix, in which all rows of the step have an index.
    size: usize,
    /// For each index of the working matrix, its index in the state before the step, if it has one.
    before: Vec<Option<usize>>,
    /// For each index of the state after the step, its index in the working matrix.
    after: Vec<usize>,
    ways: Ways,
    /// The effect on residues, if any residues matter; and the index in the matrix of each cell that the effect is about.
    residues: Option<(ResidueStep, Vec<usize>)>,
}

/// The branches through the commands of a step.
#[derive(Debug)]
enum Ways {
    /// On a matrix with rows for cells only, in which no two entries bound the same sum.
    Cells(Vec<Vec<ZoneOp>>),
    /// On a matrix that has rows for sums too.
    Forms(Shared, Vec<Vec<RowOp>>),
}

impl Zones {
    /// Zones clipped at this constant, which is never refined if it is `fixed`.
    pub fn new(clip: i32, fixed: bool) -> Self {
        Zones {
            clip,
            fixed,
            marks: Arc::default(),
            marked: false,
            forms: Arc::default(),
            contents: Arc::new([]),
            moduli: Arc::default(),
            prepared: Rc::default(),
            scratch: Vec::new(),
            saved: Vec::new(),
            closed: Default::default(),
        }
    }

    /// The same domain, with residues.
    pub fn with_residues(self, moduli: Moduli) -> Self {
        Zones { moduli: Arc::new(moduli), ..self }
    }

    /// The same domain with these marks, which are not used until [`Domain::refine`] finds that they exclude a path.
    pub fn with_marks(self, marks: Marks) -> Self {
        Zones { marks: Arc::new(marks), ..self }
    }

    /// The same domain with another clip constant.
    fn clipped(&self, clip: i32) -> Self {
        Zones { clip, ..self.clone() }
    }

    /// Adds rows for these sums, which must not contain summary cells.
    pub fn with_forms(&self, more: impl IntoIterator<Item = Linear>) -> Self {
        Zones { forms: Arc::new(forms::joined(&self.forms, more)), prepared: Rc::default(), ..self.clone() }
    }

    /// The forms of the rows of a zone over these cells, after the row of the constant 0.
    fn rows(&self, live: &Live) -> Vec<Linear> {
        let is_live = |form: &&Linear| form.terms.iter().all(|(cell, _)| live.binary_search(cell).is_ok());
        live.iter()
            .map(|&cell| Linear::cell(cell))
            .chain(self.forms.iter().filter(is_live).cloned())
            .collect()
    }

    /// Zones that are not clipped. They are the most precise ones, but there are too many of them for a search.
    pub fn unclipped() -> Self {
        Zones::new(i32::MAX - 1, true)
    }
}

impl Zone {
    /// The bound of form i minus form j, if there is one.
    fn bound(&self, i: usize, j: usize) -> Option<i32> {
        let bound = self.bounds[i * self.size + j];
        (bound != NONE).then_some(bound)
    }

    /// The zone as constraints on the forms of its rows, without constraints that follow from two others.
    fn cube(&self, rows: &[Linear]) -> Cube {
        let mut kept: Vec<Vec<Option<i32>>> =
            (0..self.size).map(|i| (0..self.size).map(|j| self.bound(i, j)).collect()).collect();
        let zero = Linear::constant(0);
        let form = |i: usize| if i == 0 { &zero } else { &rows[i - 1] };
        let between = |i: usize, j: usize| form(i).minus(form(j)).expect("a difference of two forms fits");
        let is_sum = |i: usize| i > 0 && rows[i - 1].difference().is_none();
        // Long sums are removed first, and a difference of two cells only if it follows from other differences of cells, because differences of cells
        // are the easiest constraints for the checker.
        let pairs = (0..self.size).flat_map(|i| (0..self.size).map(move |j| (i, j))).filter(|(i, j)| i != j);
        let mut pairs: Vec<(usize, usize)> = pairs.collect();
        if (0..self.size).any(is_sum) {
            let terms = |i: usize, j: usize| between(i, j).terms.len();
            pairs.sort_by_cached_key(|&(i, j)| Reverse(if is_sum(i) || is_sum(j) { terms(i, j) } else { 0 }));
        }
        for (i, j) in pairs {
            let Some(bound) = kept[i][j] else { continue };
            let sums = is_sum(i) || is_sum(j);
            let follows = (0..self.size).filter(|&k| k != i && k != j && (sums || !is_sum(k))).any(|k| {
                matches!((kept[i][k], kept[k][j]), (Some(a), Some(b)) if i64::from(a) + i64::from(b) <= i64::from(bound))
            });
            if follows {
                kept[i][j] = None;
            }
        }
        let mut cube: Vec<Linear> = Vec::new();
        for (i, row) in kept.iter().enumerate() {
            for (j, bound) in row.iter().enumerate().filter(|(j, _)| *j != i) {
                let Some(bound) = bound else { continue };
                cube.extend(between(i, j).plus(&Linear::constant(-i64::from(*bound))));
            }
        }
        let mut cube: Cube = forms::without_sums_of_two(cube).into_iter().map(Constraint::AtMost).collect();
        for (i, residue) in self.residues.iter().enumerate() {
            let (high, low) = (self.bound(i + 1, 0), self.bound(0, i + 1));
            let exact = high.zip(low).is_some_and(|(high, low)| high == -low);
            cube.extend(residue.constraint(&rows[i]).filter(|_| !exact));
        }
        cube
    }
}

impl Domain for Zones {
    type State = Zone;
    type Transition = Arc<ZoneTransition>;

    /// Another machine may number the cells of its buffers differently, so sums that contain such cells are dropped.
    fn attach(&mut self, contents: &[Contents]) {
        if *self.contents != *contents {
            let is_own = |(cell, _): &(CellId, i64)| contents.get(*cell as usize) == Some(&Contents::Own);
            let forms = self.forms.iter().filter(|form| form.terms.iter().all(is_own)).cloned();
            self.forms = Arc::new(forms.collect());
            self.prepared = Rc::default();
            self.contents = contents.into();
            if !self.moduli.is_empty() {
                Arc::make_mut(&mut self.moduli).attach(contents);
            }
        }
    }

    fn cube(&self, live: &Live, zone: &Zone) -> Cube {
        zone.cube(&self.rows(live))
    }

    fn blank(&self) -> Zone {
        Zone { size: 1, bounds: [0].into(), residues: Box::default() }
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> Arc<ZoneTransition> {
        let step = || (before.to_vec(), commands.to_vec(), after.to_vec());
        if !self.forms.is_empty()
            && let Some(known) = self.prepared.borrow().get(&step())
        {
            return Arc::clone(known);
        }
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
        let ways = ways(commands);
        for simple in ways.iter().flatten() {
            if let Simple::Assign(cell @ AUXILIARY.., _) = simple
                && !cells.contains(cell)
            {
                cells.push(*cell);
            }
        }
        let residues = ResidueStep::new(&self.moduli, before, &cells, &ways, after);
        if self.forms.is_empty() {
            return Arc::new(on_cells(cells, before, &ways, after, residues));
        }
        let transition = Arc::new(self.on_forms(cells, before, &ways, after, residues));
        let mut prepared = self.prepared.borrow_mut();
        if prepared.len() >= MOST_PREPARED {
            prepared.clear();
        }
        prepared.insert(step(), Arc::clone(&transition));
        transition
    }

    fn post(
        &mut self,
        transition: &Arc<ZoneTransition>,
        state: &Zone,
        out: &mut Vec<(u32, Zone)>,
    ) -> Result<(), Reason> {
        let size = transition.size;
        let on_cells = matches!(transition.ways, Ways::Cells(_));
        if on_cells && self.closed.0 != *state.bounds {
            self.closed.0.clear();
            self.closed.0.extend_from_slice(&state.bounds);
            self.closed.1.clone_from(&self.closed.0);
            close(&mut self.closed.1, state.size);
        }
        let bounds = if on_cells { &self.closed.1 } else { &*state.bounds };
        let mut start = std::mem::take(&mut self.saved);
        start.clear();
        start.resize(size * size, NONE);
        for (i, from) in transition.before.iter().enumerate() {
            start[i * size + i] = 0;
            let Some(from) = from else { continue };
            for (j, to) in transition.before.iter().enumerate() {
                if let Some(to) = to {
                    start[i * size + j] = bounds[from * state.size + to];
                }
            }
        }
        let mut work = std::mem::take(&mut self.scratch);
        let residues = transition.residues.as_ref();
        let known =
            residues.map(|(step, rows)| step.start(&state.residues, |cell| exact(&start, size, rows[cell])));
        // The residues after branch `n` of the step; `None` if the residues make the branch infeasible.
        let residues_after = |n: usize| match (residues, &known) {
            (Some((step, _)), Some(known)) => step.run(n, known),
            _ => Some(Vec::new()),
        };
        let mut found = |n: usize, work: &mut [i32], mut known: Vec<Residue>| {
            let mut kept = Box::default();
            if let Some((step, rows)) = residues {
                if !settle(work, size, step, rows, &mut known) {
                    return;
                }
                kept = step.kept(&known);
            }
            out.push((n as u32, project(work, size, &transition.after, kept)));
        };
        match &transition.ways {
            Ways::Cells(ways) => {
                for (n, way) in ways.iter().enumerate() {
                    let Some(known) = residues_after(n) else { continue };
                    work.clear();
                    work.extend_from_slice(&start);
                    if way.iter().all(|op| op.apply(&mut work, size)) {
                        found(n, &mut work, known);
                    }
                }
            }
            Ways::Forms(shared, ways) => {
                let possible = forms::tighten(&mut start, size, shared);
                let mut bounds = Vec::new();
                for (n, way) in ways.iter().enumerate().filter(|_| possible) {
                    let Some(known) = residues_after(n) else { continue };
                    work.clear();
                    work.extend_from_slice(&start);
                    if way.iter().all(|op| op.apply(&mut work, size, shared, &mut bounds)) {
                        found(n, &mut work, known);
                    }
                }
            }
        }
        self.saved = start;
        self.scratch = work;
        Ok(())
    }

    fn covers(&self, larger: &Zone, smaller: &Zone) -> bool {
        larger.bounds.iter().zip(&smaller.bounds).all(|(l, s)| s <= l)
            && larger.residues.iter().zip(&smaller.residues).all(|(l, s)| l.covers(*s))
    }

    /// Clips a zone: bounds above the clip constant are dropped, and bounds below its negation are raised to it. If marks are used, bounds of either
    /// kind are raised to the next mark instead; a bound below the negated clip constant is raised to that negated constant at most.
    fn stored(&self, zone: &Zone) -> Zone {
        let clip = |&bound: &i32| match bound {
            NONE => NONE,
            b if b.unsigned_abs() <= self.clip.unsigned_abs() => b,
            b if self.marked => self.marks.raised(b).min(if b < 0 { -self.clip } else { NONE }),
            b if b < 0 => -self.clip,
            _ => NONE,
        };
        let bounds = zone.bounds.iter().map(clip).collect();
        Zone { size: zone.size, bounds, residues: zone.residues.clone() }
    }

    fn size(&self, zone: &Zone) -> usize {
        size_of::<Zone>() + size_of_val(&*zone.bounds) + size_of_val(&*zone.residues)
    }

    fn describe(&self) -> Option<String> {
        let sums = match self.forms.len() {
            0 => String::new(),
            1 => ", 1 sum".into(),
            n => format!(", {n} sums"),
        };
        let marks = if self.marked { ", large constants" } else { "" };
        Some(format!("clip = {}{marks}{sums}", self.clip))
    }

    /// Starts to use the [`Marks`] (large constants of the program, as widening thresholds), if they alone exclude the path. Otherwise adds rows for
    /// sums, increases the clip constant, or both; if that does not exclude the path, tries these refinements again with the marks in use. If the
    /// clip constant is fixed, only adds rows for sums.
    fn refine(&self, path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        if self.fixed || self.marked || self.marks.are_none() {
            return self.refine_clip(path);
        }
        let marked = Zones { marked: true, ..self.clone() };
        match path.is_feasible(&mut marked.clone()) {
            false => Ok(marked),
            true => self.refine_clip(path).or_else(|_| marked.refine_clip(path)),
        }
    }

    fn doubt(&self) -> &'static str {
        "a path to a violation remains that bounds on differences do not rule out"
    }
}

impl Zones {
    /// Prepares a step on a matrix with rows for sums.
    fn on_forms(
        &self,
        mut cells: Vec<CellId>,
        before: &Live,
        ways: &[Vec<Simple>],
        after: &Live,
        residues: Option<ResidueStep>,
    ) -> ZoneTransition {
        let residues = residues.map(|step| (step, cells.clone()));
        cells.extend(ways.iter().flatten().any(|s| matches!(s, Simple::Fold(..))).then_some(FOLDED));
        cells.sort_unstable();
        let rows = Rows::new(self.rows(&cells));
        let position = |form: &Linear| rows.position(form).expect("the rows of a step have all forms");
        let before_forms = self.rows(before);
        let mut before_index = vec![None; rows.len()];
        before_index[0] = Some(0);
        before_forms.iter().enumerate().for_each(|(n, form)| before_index[position(form)] = Some(n + 1));
        let after_index = std::iter::once(0).chain(self.rows(after).iter().map(position)).collect();
        let ways = Ways::Forms(rows.shared(), ways.iter().map(|way| rows.ops(way)).collect());
        let residues = residues.map(|(step, cells)| {
            let indices = cells.iter().map(|&cell| position(&Linear::cell(cell))).collect();
            (step, indices)
        });
        ZoneTransition { size: rows.len(), before: before_index, after: after_index, ways, residues }
    }
}

/// Compiles a step to a transition between zones whose matrix has one index per cell (not per linear form).
fn on_cells(
    cells: Vec<CellId>,
    before: &Live,
    ways: &[Vec<Simple>],
    after: &Live,
    residues: Option<ResidueStep>,
) -> ZoneTransition {
    // A value to be folded is first assigned to an index of its own.
    let folded = cells.len() + 1;
    let folds = ways.iter().flatten().any(|simple| matches!(simple, Simple::Fold(..)));
    let size = folded + folds as usize;
    let index = |cell: CellId| cells.iter().position(|&c| c == cell).expect("every cell was collected") + 1;
    let ops = |simple: &Simple| match simple {
        Simple::Assume(Constraint::AtMost(linear)) => vec![constraint(linear, &index)],
        Simple::Assume(Constraint::Multiple(..)) => Vec::new(),
        Simple::Assign(cell, value) => vec![assignment(index(*cell), value, &index)],
        Simple::Fold(summary, None) => vec![ZoneOp::Forget(index(*summary))],
        Simple::Fold(summary, value) => {
            vec![assignment(folded, value, &index), ZoneOp::Fold(index(*summary), folded)]
        }
        Simple::Expand(cell, summary) => vec![ZoneOp::Expand(index(*cell), index(*summary))],
    };
    let ways = Ways::Cells(ways.iter().map(|way| way.iter().flat_map(ops).collect()).collect());
    let mut before_index = vec![Some(0)];
    before_index.extend((1..size).map(|n| (n <= before.len()).then_some(n)));
    let mut after_index = vec![0];
    after_index.extend(after.iter().map(|&c| index(c)));
    let residues = residues.map(|step| (step, (1..=cells.len()).collect()));
    ZoneTransition { size, before: before_index, after: after_index, ways, residues }
}

fn project(m: &[i32], size: usize, after: &[usize], residues: Box<[Residue]>) -> Zone {
    let bounds = after.iter().flat_map(|&i| after.iter().map(move |&j| m[i * size + j])).collect();
    Zone { size: after.len(), bounds, residues }
}
