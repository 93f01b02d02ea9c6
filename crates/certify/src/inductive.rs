//! Checks that an invariant is inductive and excludes all forbidden states.
//!
//! Three conditions are checked, for a machine of a program and some of its properties:
//!
//! 1. the initial control state is in the proof, and the initial values satisfy its invariant;
//! 2. every step of the machine from a control state of the proof, taken from values that satisfy its invariant, is either impossible or leads to a
//!    control state of the proof with values that satisfy the invariant there; no possible step leaves the states that the machine represents;
//! 3. no control state of the proof has values that satisfy its invariant and violate a property.
//!
//! Then, by induction on the number of steps, all reachable states are in the proof, and no forbidden state is. If the proof is up to symmetry, a
//! step may lead to a control state of the proof with threads exchanged: [`symmetry`](crate::symmetry) shows why that is enough.
//!
//! Commands are executed symbolically: every cell is a linear form over the values before the step, so each condition is an entailment between
//! constraints. Difference constraints are decided by shortest paths; for anything else the caller's refuter supplies a proof, which is verified
//! here.
//!
//! # Summary cells
//!
//! A state of a machine with summary cells gives each ordinary cell an integer and each summary cell a non-empty set of integers
//! ([`Cells`](fencewright_memory::Cells)). A *choice* of a state picks one value from each set: it is a valuation of all cells. A state satisfies a
//! cube if all its choices do, and an invariant if it satisfies one of the cubes. So conditions 1 and 2 require the following:
//!
//! > If all choices of a state satisfy the cube C, and a branch through some commands leads from it to another state, then there is *one*
//! > cube of the target that all choices of the other state satisfy.
//!
//! Let the first state have the values o in its ordinary cells and the sets S in its summary cells. Whatever a step assumes, assigns or folds is
//! computed from ordinary cells alone (a test inspects the commands of the machines), so all choices of a state take the same branch and compute the
//! same values.
//!
//! * `Fold(s, e)` adds the value of e to S(s); `Assign(s, e)` makes it the only value of S(s). So each value that s stands for after the step is
//!   given by one form of a list: by the variable s itself, for a value from before the step, unless s was assigned; or by a form that was folded or
//!   assigned. A choice of the new state takes one form of the list for each summary cell, and for each ordinary cell its new value, which is a form
//!   over o. `Branch::after` writes a constraint of the target in terms of the values before, once for each combination of forms. If a cube follows,
//!   in all combinations, from facts that all choices of the first state satisfy, then all choices of the new state satisfy the cube: let the
//!   variable s have the value that the choice took from before, or any value of S(s) if the choice took a folded or assigned one. The same cube
//!   holds for old values and new ones. The cube may relate s to cells that changed in the same step and to other summary cells, and there may be
//!   several folds.
//! * `Expand(c, s)` gives c the value of a fresh variable u, a *copy* of s. It is a value of S(s), not necessarily the one that a choice picks for s.
//!   Replacing the value of s in a choice by that of u gives another choice of the same state. So C holds with u in place of s, and with copies in
//!   place of several summary cells at once: these are the facts that `Branch::known` and `Paths::copy` add to C. Nothing relates u to s itself. If
//!   the step has changed s before, u may be a value that was not in S(s), and is a variable without facts.
//! * It is not enough that a disjunction of cubes follows, because different choices may satisfy different cubes. A cube that mentions a summary cell
//!   must follow alone. The other cubes hold for all choices of a state or for none, so it is enough that their disjunction follows.
//! * A branch with contradictory facts is impossible, because every state has a choice.

use std::collections::HashMap;
use std::ops::Range;

use fencewright_counterexample::leads_out;
use fencewright_memory::linear::{Cube, Simple, ways};
use fencewright_memory::{
    Bound, BufferMachine, Buffers, CellId, Command, Constraint, Control, Entry, Linear, Outcome, Step,
    StoreBuffers,
};
use fencewright_program::{MemoryModel, Program, Property};
use fencewright_proof::{Refuter, Stop};

use crate::branch::Branch;
use crate::certificate::{InductiveInvariant, MachineName};
use crate::check::{Accepted, Rejection, STOPPED, hard, too_large};
use crate::difference::{Difference, Edge, Index, Paths};
use crate::symmetry::{Permutation, Symmetry};
use crate::{congruence, entailment, parallel};

/// Maximum number of stores that a machine of a certificate may keep in order; a greater number would only exhaust the checker.
const MOST_KEPT: u32 = 64;

/// Maximum number of cells in the differences that are compared for one state and its steps; the table of differences takes 8 bytes per pair of
/// cells.
const MOST_MET: usize = 1 << 11;

/// Checks that an invariant shows these properties of a program.
pub fn check(
    proof: &InductiveInvariant,
    program: &Program,
    properties: &[Property],
    refuter: &dyn Refuter,
    stop: &Stop,
) -> Result<Accepted, Rejection> {
    if program.has_real_choices() {
        return Err(Rejection::Format("invariants over real numbers are not supported".into()));
    }
    let kept = match proof.machine {
        MachineName::Sc {} => 0,
        MachineName::Queue { bound, .. } => bound.most(),
        MachineName::Partial { k, .. } => k,
    };
    if kept > MOST_KEPT {
        return Err(too_large(format!("a machine that keeps {kept} stores in order")));
    }
    let machine = BufferMachine::new(program, proof.machine.buffers());
    let provable = |p: &&Property| machine.violation(&machine.initial(), p).is_some();
    if let Some(property) = properties.iter().find(|p| !provable(p)) {
        return Err(Rejection::Property(property.name.clone()));
    }
    let symmetry = Symmetry::new(program, properties, &proof.symmetry).map_err(Rejection::Symmetry)?;
    let checker = Checker::new(&machine, symmetry, proof, refuter, stop)?;
    checker.start()?;
    checker.all(properties)
}

/// Maximum number of differences of a cube that may be left to the refuter when the cube is tried alone and a congruence is known. Without known
/// congruences, none may be left.
const MOST_HIDDEN: usize = 4;

/// Maximum number of cubes that are first tried one by one. If none of them is entailed, the cubes without summary cells are tried together.
const MOST_LIKELY: usize = 8;

/// Below this number of cubes a single thread is faster than starting more.
const FEW: usize = 500;

struct Checker<'a> {
    machine: &'a BufferMachine<'a>,
    symmetry: Symmetry,
    states: Vec<Invariant>,
    numbers: HashMap<Control, usize>,
    refuter: &'a dyn Refuter,
    stop: &'a Stop,
}

struct Invariant {
    control: Control,
    cubes: Vec<Cube>,
    /// For each cube, its constraints as differences; `None` for a constraint of another form.
    differences: Vec<Vec<Option<Difference>>>,
}

impl<'a> Checker<'a> {
    fn new(
        machine: &'a BufferMachine<'a>,
        symmetry: Symmetry,
        proof: &InductiveInvariant,
        refuter: &'a dyn Refuter,
        stop: &'a Stop,
    ) -> Result<Self, Rejection> {
        let mut numbers = HashMap::new();
        let mut states = Vec::with_capacity(proof.states.len());
        for (n, state) in proof.states.iter().enumerate() {
            if stop() {
                return Err(STOPPED);
            }
            let (control, cubes) = (state.control(), state.cubes());
            let cells_exist = cubes.iter().flatten().all(|c| is_normal(c, machine.cells.len()));
            if !is_well_formed(machine, &control) || !cells_exist {
                return Err(Rejection::State(n));
            }
            if numbers.insert(control.clone(), n).is_some() {
                return Err(Rejection::State(n));
            }
            let differences = cubes.iter().map(|cube| cube.iter().map(Difference::of).collect()).collect();
            states.push(Invariant { control, cubes, differences });
        }
        Ok(Checker { machine, symmetry, states, numbers, refuter, stop })
    }

    /// Checks conditions 2 and 3 for all states. If several states are rejected, a mistake takes precedence over an undecided state, and an earlier
    /// state over a later one.
    fn all(&self, properties: &[Property]) -> Result<Accepted, Rejection> {
        let cubes = self.states.iter().map(|s| s.cubes.len()).sum();
        let check = |states: Range<usize>, scratch: &mut Paths| {
            let mut steps = 0;
            for n in states {
                let found = self.closed(n, scratch);
                let found = found.and_then(|found| self.allowed(n, properties, scratch).map(|()| found));
                steps += found.map_err(|rejection| (n, rejection))?;
            }
            Ok(steps)
        };
        let workers = parallel::workers(cubes, FEW);
        let steps = parallel::all(self.states.len(), 1, workers, || Paths::new(1), check)?;
        Ok(Accepted { controls: self.states.len(), cubes, steps, ..Accepted::default() })
    }

    /// Checks condition 1: the proof covers the initial states.
    fn start(&self) -> Result<(), Rejection> {
        let target = self.target(&self.machine.initial()).ok_or(Rejection::Start)?;
        let mut index = Index::default();
        let commands = self.machine.initial_values();
        let branches = self.prepared(&commands, Some(&target), &mut index)?;
        let nothing = index.paths(&[], self.stop);
        let mut scratch = Paths::new(1);
        for branch in &branches {
            let covered = self.covered(&nothing, &[], &commands, branch, Some(&target), &mut scratch);
            self.judged(covered, target.state, || "the start".into(), |_, _| Rejection::Start)?;
        }
        Ok(())
    }

    /// Checks condition 2 for one state: no step leads outside the proof. Returns the number of steps.
    fn closed(&self, n: usize, scratch: &mut Paths) -> Result<usize, Rejection> {
        let state = &self.states[n];
        let steps = self.machine.steps(&state.control);
        let mut index = self.met(n)?;
        let prepare = |step: &Step| {
            let target = match &step.outcome {
                Outcome::Control(next) => self.target(next),
                Outcome::Beyond(..) => None,
            };
            self.prepared(&step.commands, target.as_ref(), &mut index).map(|branches| (target, branches))
        };
        let prepared = steps.iter().map(prepare).collect::<Result<Vec<_>, Rejection>>()?;
        for (cube, differences) in state.cubes.iter().zip(&state.differences) {
            let paths = index.paths(differences, self.stop);
            for (step, (target, branches)) in steps.iter().zip(&prepared) {
                for branch in branches {
                    if (self.stop)() {
                        return Err(STOPPED);
                    }
                    let covered =
                        self.covered(&paths, cube, &step.commands, branch, target.as_ref(), scratch);
                    self.judged(covered, n, || self.describe(step), Rejection::Step)?;
                }
            }
        }
        Ok(steps.len())
    }

    /// Checks condition 3 for one state: its invariant excludes all violations.
    fn allowed(&self, n: usize, properties: &[Property], scratch: &mut Paths) -> Result<(), Rejection> {
        let state = &self.states[n];
        for property in properties {
            let violation = self.machine.violation(&state.control, property);
            let violation = violation.ok_or_else(|| Rejection::Forbidden(n, property.name.clone()))?;
            if violation.constant() == Some(0) {
                continue;
            }
            let mut index = self.met(n)?;
            let commands = [Command::Assume(violation)];
            let branches = self.prepared(&commands, None, &mut index)?;
            for (cube, differences) in state.cubes.iter().zip(&state.differences) {
                if (self.stop)() {
                    return Err(STOPPED);
                }
                let paths = index.paths(differences, self.stop);
                for branch in &branches {
                    let covered = self.covered(&paths, cube, &commands, branch, None, scratch);
                    let what = || format!("the property `{}`", property.name);
                    self.judged(covered, n, what, |n, _| Rejection::Forbidden(n, property.name.clone()))?;
                }
            }
        }
        Ok(())
    }

    /// The state of the proof for this control state, up to a permutation of threads; `None` if there is none.
    fn target(&self, control: &Control) -> Option<Target> {
        let (state, order) = match self.symmetry.canonical(control) {
            Some((canonical, order)) => (self.numbers.get(&canonical), Some(order)),
            None => (self.numbers.get(control), None),
        };
        state.map(|&state| Target { state, order })
    }

    /// Translates a cell from the names of the target's invariant to those of the control state that the step leads to. The two differ if threads are
    /// exchanged.
    fn name(&self, target: Option<&Target>, cell: CellId) -> CellId {
        let order = target.and_then(|target| target.order.as_ref());
        order.map_or(cell, |order| order.before(&self.machine.cells, cell))
    }

    /// The form with its cells translated by `name`.
    fn named(&self, target: Option<&Target>, linear: &Linear) -> Linear {
        let named = |&(cell, coefficient): &(CellId, i64)| (self.name(target, cell), coefficient);
        let mut terms: Vec<(CellId, i64)> = linear.terms.iter().map(named).collect();
        terms.sort_unstable();
        Linear { terms, constant: linear.constant }
    }

    /// `Ok` if a step or condition is covered; the rejection `wrong` if there is a counterexample; otherwise `STOPPED` or a reason why it is
    /// undecided.
    fn judged(
        &self,
        covered: Covered,
        state: usize,
        what: impl Fn() -> String,
        wrong: impl Fn(usize, String) -> Rejection,
    ) -> Result<(), Rejection> {
        Err(match covered {
            Covered::Yes => return Ok(()),
            Covered::No => wrong(state, what()),
            _ if (self.stop)() => STOPPED,
            Covered::Overflow => hard(state, format!("{} takes numbers beyond 64 bits", what())),
            Covered::Unknown => hard(state, format!("{} is too hard for the checker", what())),
        })
    }

    /// Registers the cells that occur in the differences of a state's invariant.
    fn met(&self, n: usize) -> Result<Index, Rejection> {
        let mut index = Index::default();
        for cube in &self.states[n].differences {
            index.meet(cube);
            if index.len() > MOST_MET {
                return Err(too_large(format!("state {n} compares more than {MOST_MET} cells")));
            }
            if (self.stop)() {
                return Err(STOPPED);
            }
        }
        Ok(index)
    }

    /// All branches through some commands, executed symbolically, with the invariant of the target in terms of the values before the commands.
    fn prepared(
        &self,
        commands: &[Command],
        target: Option<&Target>,
        index: &mut Index,
    ) -> Result<Vec<PreparedBranch>, Rejection> {
        let wanted = target.map(|t| &self.states[t.state]);
        let wanted = wanted.map_or(Vec::new(), |w| w.cubes.iter().zip(&w.differences).collect());
        let named = |d: &Difference| d.renamed(&|cell| self.name(target, cell));
        let mut prepare = |simple: Vec<Simple>| {
            // Unknown values become fresh variables, numbered after the cells. Branches may share these numbers, because constraints of two branches
            // are never combined.
            let mut unknown = self.machine.cells.len() as CellId;
            let branch = Branch::through(simple, &mut unknown);
            let mut wanted_before = Vec::with_capacity(wanted.len());
            for (n, (cube, differences)) in wanted.iter().enumerate() {
                if n % 64 == 63 && (self.stop)() {
                    return Err(STOPPED);
                }
                let mut before = Vec::with_capacity(cube.len());
                for (m, (constraint, difference)) in cube.iter().zip(*differences).enumerate() {
                    match (constraint, difference) {
                        (_, Some(d)) => before.extend(
                            branch
                                .before(&named(d))
                                .map(|d| (m, d.map_or(Wanted::General, |d| Wanted::Edge(index.edge(&d))))),
                        ),
                        (Constraint::Multiple(form, modulus), _) => {
                            let forms = branch.after(&self.named(target, form));
                            let wanted = |form| (m, Wanted::Multiple(form, *modulus));
                            before.extend(forms.map_or_else(
                                || vec![(m, Wanted::General)],
                                |forms| forms.into_iter().map(wanted).collect(),
                            ));
                        }
                        (Constraint::AtMost(_), None) => before.push((m, Wanted::General)),
                    }
                }
                wanted_before.push(before);
            }
            let assumed = branch.assumed.iter().filter_map(Difference::of).map(|d| index.edge(&d)).collect();
            let mut position = |cell: CellId| index.position(Some(cell));
            let copies = branch.copies.iter().map(|&(copy, s)| (position(copy), position(s))).collect();
            if index.len() > MOST_MET {
                return Err(too_large(format!("a step compares more than {MOST_MET} cells")));
            }
            Ok(PreparedBranch { branch, copies, assumed, wanted: wanted_before })
        };
        ways(commands).into_iter().map(&mut prepare).collect()
    }

    /// Whether this branch, taken from `cube`, is impossible or leads only to values that satisfy the invariant of the target; without a target it
    /// must be impossible.
    fn covered(
        &self,
        paths: &Paths,
        cube: &[Constraint],
        commands: &[Command],
        prepared: &PreparedBranch,
        target: Option<&Target>,
        scratch: &mut Paths,
    ) -> Covered {
        let paths = match prepared.assumed.is_empty() && prepared.copies.is_empty() {
            true => paths,
            false => {
                scratch.clone_from(paths);
                prepared.copies.iter().for_each(|&(copy, summary)| scratch.copy(summary, copy));
                prepared.assumed.iter().for_each(|e| scratch.add(e.x, e.y, e.c));
                scratch
            }
        };
        let branch = &prepared.branch;
        let holds = |(_, wanted): &(usize, Wanted)| match wanted {
            Wanted::Edge(e) => paths.bound(e.x, e.y).is_some_and(|bound| bound <= e.c),
            Wanted::Multiple(form, m) => {
                congruence::follows(cube, form, *m) || congruence::follows(&branch.assumed, form, *m)
            }
            Wanted::General => false,
        };
        let contradicts =
            |a: &Constraint| cube.iter().chain(&branch.assumed).any(|c| congruence::contradict(a, c));
        if paths.contradictory()
            || prepared.wanted.iter().any(|cube| cube.iter().all(holds))
            || branch.assumed.iter().any(contradicts)
        {
            return Covered::Yes;
        }
        let known: Cube =
            cube.iter().flat_map(|c| branch.known(c)).chain(branch.assumed.iter().cloned()).collect();
        let after = |cube: &Cube| {
            let values = |c: &Constraint| {
                let forms = branch.after(&self.named(target, c.form()))?;
                Some(forms.into_iter().map(|form| c.about(form)).collect::<Cube>())
            };
            Some(cube.iter().map(values).collect::<Option<Vec<Cube>>>()?.concat())
        };
        let cubes = target.map_or(&[][..], |t| &self.states[t.state].cubes);
        let entails = |cubes: &[Cube]| entailment::entails_some(&known, cubes, self.refuter, self.stop);
        // Single cubes are tried before all together, which is slower. A cube is tried alone only if shortest paths show all its differences, so that
        // only other forms are left to the refuter; with congruences, which shortest paths do not use, up to MOST_HIDDEN differences may be left too.
        let hidden = if known.iter().any(|c| c.at_most().is_none()) { MOST_HIDDEN } else { 0 };
        let left = |(wanted, cube): (&Vec<(usize, Wanted)>, &Cube)| {
            let left: Vec<&(usize, Wanted)> = wanted.iter().filter(|wanted| !holds(wanted)).collect();
            let differences = left.iter().filter(|(_, wanted)| matches!(wanted, Wanted::Edge(_))).count();
            let cube = || after(&left.iter().map(|(m, _)| cube[*m].clone()).collect());
            Some((left.len(), if differences <= hidden { cube() } else { None }?))
        };
        let mut likely: Vec<(usize, Cube)> = prepared.wanted.iter().zip(cubes).filter_map(left).collect();
        likely.sort_by_key(|(left, _)| *left);
        let entails_one = |cube: &Cube| entails(std::slice::from_ref(cube)).is_ok();
        if likely.iter().take(MOST_LIKELY).any(|(_, cube)| entails_one(cube)) {
            return Covered::Yes;
        }
        let is_summary = |&(cell, _): &(CellId, i64)| self.machine.cells.is_summary(cell);
        let (alone, together): (Vec<&Cube>, Vec<&Cube>) =
            cubes.iter().partition(|cube| cube.iter().any(|c| c.form().terms.iter().any(is_summary)));
        // A cube that does not fit 64 bits is dropped. That strengthens the proof obligation: one of fewer cubes has to follow.
        let alone: Vec<Cube> = alone.into_iter().filter_map(after).collect();
        let together: Vec<Cube> = together.into_iter().filter_map(after).collect();
        let Err(before) = entails(&together) else { return Covered::Yes };
        // If the refuter found neither a proof nor a counterexample for all cubes together, they are tried one by one: each further cube multiplies
        // the case distinctions of the refuter, so a single cube may be easier.
        let hard = if before.is_none() { &together[..] } else { &[] };
        let taken = |cell: CellId| branch.after(&Linear::cell(cell)).and_then(|mut values| values.pop());
        let renamed = |c: &Constraint| c.about(self.named(target, c.form()));
        let all = || cubes.iter().map(|cube| cube.iter().map(renamed).collect()).collect::<Vec<Cube>>();
        match before {
            _ if alone.iter().chain(hard).any(entails_one) => Covered::Yes,
            Some(before) if leads_out(&before, cube, commands, taken, &all()) => Covered::No,
            _ if alone.len() + together.len() < cubes.len() => Covered::Overflow,
            _ => Covered::Unknown,
        }
    }

    fn describe(&self, step: &Step) -> String {
        let thread = &self.machine.program.thread(step.name.thread).name;
        match (step.name.edge, step.name.flushed) {
            (Some(edge), _) => format!("edge {} of {thread}", edge.0),
            (None, Some(cell)) => format!("a flush of {} by {thread}", self.machine.program.cell_name(cell)),
            (None, None) => format!("a step of {thread}"),
        }
    }
}

/// The state of the proof that a step leads to.
struct Target {
    /// The number of the state.
    state: usize,
    /// The permutation of threads, if threads have to be exchanged.
    order: Option<Permutation>,
}

/// Whether a branch stays within the invariant of the target.
#[derive(PartialEq, Eq)]
enum Covered {
    Yes,
    /// There is a counterexample.
    No,
    /// Undecided because numbers do not fit 64 bits.
    Overflow,
    Unknown,
}

/// One branch through some commands, prepared for checks from many cubes.
struct PreparedBranch {
    branch: Branch,
    /// Pairs (copy, summary) of variables: copies of values of summary cells.
    copies: Vec<(usize, usize)>,
    /// The assumptions of the branch that are differences.
    assumed: Vec<Edge>,
    /// The target's invariant in terms of the values before the commands: for each cube, the index of each constraint and its translations.
    wanted: Vec<Vec<(usize, Wanted)>>,
}

/// A constraint, in terms of the values before the commands, that has to follow.
enum Wanted {
    /// The constraint is a difference.
    Edge(Edge),
    /// The form is a multiple of the number.
    Multiple(Linear, i64),
    /// A constraint of any other form.
    General,
}

/// Whether a constraint is in normal form: existing cells in order, with non-zero coefficients; a modulus of at least 2.
fn is_normal(constraint: &Constraint, cells: usize) -> bool {
    let terms = &constraint.form().terms;
    terms.windows(2).all(|w| w[0].0 < w[1].0)
        && terms.iter().all(|&(cell, c)| (cell as usize) < cells && c != 0)
        && !matches!(constraint, Constraint::Multiple(_, ..2))
}

/// Whether a control state has the shape of a control state of this machine.
fn is_well_formed(machine: &BufferMachine<'_>, control: &Control) -> bool {
    let initial = machine.initial();
    let threads = &machine.program.threads;
    let locations = control.locations.len() == threads.len()
        && control.locations.iter().zip(threads).all(|(l, t)| l.index() < t.locations.len());
    let positions = machine.buffers.positions(machine.program.cells()) as usize;
    let cell_exists = |cell: u32| (cell as usize) < machine.program.cells();
    let pso = machine.buffers.model() == MemoryModel::Pso;
    let sets = matches!(machine.buffers, Buffers::Partial { .. });
    // The maximum number of stores kept in order, and whether this maximum applies to each memory cell (true) or to the whole buffer (false).
    let kept = |cell: u32| match machine.buffers {
        Buffers::Sc => (0, false),
        Buffers::Queue { bound: Bound::Thread(bound), .. } => (bound, false),
        Buffers::Queue { bound: Bound::Cell(bounds), .. } => (bounds.of(cell), true),
        Buffers::Partial { k, .. } => (k, pso),
    };
    // The machine has cells for the values of at most `kept` stores.
    let is_kept = |queue: &[Entry]| {
        let mut stores: HashMap<u32, u32> = HashMap::new();
        queue.iter().filter_map(Entry::cell).all(|cell| {
            let (kept, per_cell) = kept(cell);
            let count = stores.entry(if per_cell { cell } else { 0 }).or_default();
            *count += 1;
            *count <= kept
        }) && queue.windows(2).all(|w| w != [Entry::Barrier, Entry::Barrier])
    };
    let buffers = control.buffers.len() == initial.buffers.len()
        && control.buffers.iter().all(|b| {
            b.queue.len() <= positions
                && is_kept(&b.queue)
                && (pso || !b.queue.contains(&Entry::Barrier))
                && b.queue.first() != Some(&Entry::Barrier)
                && (sets || b.set.is_empty())
                && b.set.windows(2).all(|w| w[0] < w[1])
                && b.set.iter().all(|&c| cell_exists(c))
                && b.queue.iter().all(|e| match e {
                    Entry::Store(c) => cell_exists(*c),
                    Entry::Barrier => true,
                })
        });
    locations && buffers && control.lock.is_none_or(|t| t.index() < threads.len())
}

#[cfg(test)]
mod tests;
