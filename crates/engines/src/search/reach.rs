//! Reachability over control x data: Algorithm 1 of FENCES12, with subsumption.
//!
//! Where the paper keeps, for each control state, one growing disjunction of formulas, this keeps a list of domain states none of which
//! covers another: a new one that is covered is dropped, and those that it covers are. The steps of a control state are computed
//! once and prepared for the domain, with only the cells that matter on both sides.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem::take;
use std::sync::atomic::Ordering;

use fencewright_memory::{BufferMachine, CellId, Command, Control, Machine, Outcome, Step, StepName};
use fencewright_program::{Property, Span, ThreadId};

use super::live::{LiveCells, known_at_first};
use super::symmetry::{Permutation, Symmetry};
use crate::domain::Domain;
use crate::limits::discard;
use crate::task::{Limits, Order, Progress, Reason, Task};

/// How a search ended.
pub enum Reached<S> {
    /// All reachable control states with their domain states: an inductive invariant in which nothing is forbidden.
    Closed(Vec<(Control, Vec<CellId>, Vec<S>)>),
    /// A path to a state that may violate the property with this number.
    Violation(usize, Path),
    /// Nothing forbidden was found, but this step may lead out of what the machine represents.
    Beyond(&'static str, Span),
    /// A limit.
    Stopped(Reason),
}

/// A path: steps, and for each the number of the way through its commands.
pub type Path = Vec<(Step, u32)>;

/// A search in progress.
pub struct Reach<'a, 'p, D: Domain> {
    machine: &'a BufferMachine<'p>,
    domain: D,
    properties: &'a [Property],
    live: &'a LiveCells,
    symmetry: Option<&'a Symmetry>,
    order: Order,
    numbers: HashMap<Control, usize>,
    controls: Vec<ControlNode<D>>,
    nodes: Vec<Node<D::State>>,
    queue: VecDeque<usize>,
    /// Roughly how many bytes the stored states take.
    bytes: u64,
    fresh: Vec<(u32, D::State)>,
    /// The first step that may lead out of what the machine represents.
    beyond: Option<(&'static str, Span)>,
}

struct ControlNode<D: Domain> {
    control: Control,
    live: Vec<CellId>,
    steps: Option<Vec<Prepared<D::Transition>>>,
    /// For each property, the assumption that it is violated; prepared when the first state comes.
    violations: Option<Vec<Option<D::Transition>>>,
    nodes: Vec<usize>,
    /// The states, where none covers another.
    seen: HashSet<D::State>,
}

/// A step, prepared. The step itself is not kept: there are very many, and the machine makes it again when a path needs it.
struct Prepared<T> {
    name: StepName,
    target: usize,
    transition: T,
    /// How it leaves what the machine represents, if it does.
    beyond: Option<(&'static str, Span)>,
    /// Who stands where after the step, if the target was made canonical.
    order: Option<Permutation>,
}

struct Node<S> {
    control: usize,
    state: S,
    parent: Option<Parent>,
    covered: bool,
}

/// How a state was reached: from which one, by which step, on which way through its commands.
#[derive(Clone, Copy)]
struct Parent {
    node: usize,
    step: usize,
    way: u32,
}

/// What ends a search at once.
enum Stop {
    /// A state that may violate this property.
    Violation { property: usize, node: usize },
    /// There is no point, or no time, to go on.
    Limit(Reason),
}

impl<'a, 'p, D: Domain> Reach<'a, 'p, D> {
    /// A search of a machine for violations of the task's properties.
    pub fn new(task: &'a Task<'p>, machine: &'a BufferMachine<'p>, live: &'a LiveCells, domain: D) -> Self {
        Reach {
            machine,
            domain,
            properties: &task.properties,
            live,
            symmetry: None,
            order: Order::BreadthFirst,
            numbers: HashMap::new(),
            controls: Vec::new(),
            nodes: Vec::new(),
            queue: VecDeque::new(),
            bytes: 0,
            fresh: Vec::new(),
            beyond: None,
        }
    }

    /// The same search, with states that differ only by the symmetry taken as one.
    pub fn with_symmetry(mut self, symmetry: Option<&'a Symmetry>) -> Self {
        self.symmetry = symmetry;
        self
    }

    /// The same search, in this order.
    pub fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// How many states are stored.
    pub fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Roughly how many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The domain.
    pub fn domain(&self) -> &D {
        &self.domain
    }

    /// Searches to the end, a violation or a limit.
    pub fn run(&mut self, limits: &Limits, progress: &Progress) -> Reached<D::State> {
        let first = self.control(self.machine.initial());
        if let Err(stop) = self.bearable(first) {
            return self.ended(stop);
        }
        let live = self.controls[first].live.clone();
        let known = known_at_first(self.machine.initial_values(), &live);
        let start = self.domain.transition(&[], &known, &live);
        let nothing = self.domain.anything(&[]);
        let mut initial = Vec::new();
        self.domain.post(&start, &nothing, &mut initial);
        for (_, state) in initial {
            if let Err(stop) = self.add(first, &state, None) {
                return self.ended(stop);
            }
        }
        let mut rounds = 0u64;
        while let Some(node) = self.next() {
            rounds += 1;
            if rounds.is_multiple_of(256) {
                progress.states.store(self.nodes.len() as u64, Ordering::Relaxed);
                progress.frontier.store(self.queue.len() as u64, Ordering::Relaxed);
                progress.bytes.store(self.bytes, Ordering::Relaxed);
            }
            if let Some(reason) = limits.exceeded(self.bytes) {
                return Reached::Stopped(reason);
            }
            if !self.nodes[node].covered
                && let Err(stop) = self.expand(node, limits)
            {
                return self.ended(stop);
            }
        }
        if let Some((what, span)) = self.beyond {
            return Reached::Beyond(what, span);
        }
        let alive = |c: &ControlNode<D>| c.nodes.iter().map(|&n| self.nodes[n].state.clone()).collect();
        Reached::Closed(self.controls.iter().map(|c| (c.control.clone(), c.live.clone(), alive(c))).collect())
    }

    fn next(&mut self) -> Option<usize> {
        match self.order {
            Order::BreadthFirst => self.queue.pop_front(),
            Order::DepthFirst => self.queue.pop_back(),
        }
    }

    fn ended(&self, stop: Stop) -> Reached<D::State> {
        match stop {
            Stop::Violation { property, node } => Reached::Violation(property, self.path(node)),
            Stop::Limit(reason) => Reached::Stopped(reason),
        }
    }

    /// The path to a state, in terms of the real threads: where symmetry has renamed them, it is followed again on the machine.
    fn path(&self, mut node: usize) -> Path {
        let mut taken = Vec::new();
        while let Some(parent) = self.nodes[node].parent {
            let steps =
                self.controls[self.nodes[parent.node].control].steps.as_ref().expect("it was expanded");
            taken.push((&steps[parent.step], parent.way));
            node = parent.node;
        }
        taken.reverse();
        let mut who = Permutation::identity(self.machine.program.threads.len());
        let mut control = self.machine.initial();
        let mut path = Vec::with_capacity(taken.len());
        for (prepared, way) in taken {
            let thread = ThreadId(who.at(prepared.name.thread.index()) as u32);
            let wanted = StepName { thread, ..prepared.name };
            let same = |step: &Step| step.name == wanted;
            let step =
                self.machine.steps(&control).into_iter().find(same).expect("identical threads do the same");
            if let Outcome::Control(next) = &step.outcome {
                control = next.clone();
            }
            path.push((step, way));
            if let Some(order) = &prepared.order {
                who = order.after(&who);
            }
        }
        path
    }

    fn expand(&mut self, node: usize, limits: &Limits) -> Result<(), Stop> {
        let control = self.nodes[node].control;
        if self.controls[control].steps.is_none() {
            let prepared = self.prepare(control, limits)?;
            self.controls[control].steps = Some(prepared);
        }
        let steps = self.controls[control].steps.take().expect("just prepared");
        let mut result = Ok(());
        'steps: for (n, prepared) in steps.iter().enumerate() {
            if let Some(reason) = limits.exceeded(self.bytes) {
                result = Err(Stop::Limit(reason));
                break;
            }
            let mut fresh = take(&mut self.fresh);
            fresh.clear();
            self.domain.post(&prepared.transition, &self.nodes[node].state, &mut fresh);
            // Leaving the machine is not a violation: there may still be one elsewhere.
            if let (Some(beyond), false) = (prepared.beyond, fresh.is_empty()) {
                self.beyond.get_or_insert(beyond);
                fresh.clear();
            }
            for (way, state) in &fresh {
                if result.is_ok() {
                    result = self.add(prepared.target, state, Some(Parent { node, step: n, way: *way }));
                }
            }
            self.fresh = fresh;
            if result.is_err() {
                break 'steps;
            }
        }
        self.controls[control].steps = Some(steps);
        result
    }

    /// Whether there are few enough cells in a control state for the domain.
    fn bearable(&self, control: usize) -> Result<(), Stop> {
        let cells = self.controls[control].live.len();
        if cells <= self.domain.most_cells() {
            return Ok(());
        }
        let what = format!("{cells} cells matter at once, too many to know their differences");
        Err(Stop::Limit(Reason::Unsupported(what, None)))
    }

    /// The steps of a control state, prepared.
    fn prepare(&mut self, control: usize, limits: &Limits) -> Result<Vec<Prepared<D::Transition>>, Stop> {
        let stop = || limits.exceeded(self.bytes).is_some();
        let Some(steps) = self.machine.steps_in((), &self.controls[control].control, &stop) else {
            return Err(Stop::Limit(limits.exceeded(self.bytes).unwrap_or(Reason::Cancelled)));
        };
        steps
            .into_iter()
            .map(|step| {
                if let Some(reason) = limits.exceeded(self.bytes) {
                    return Err(Stop::Limit(reason));
                }
                // Leaving the machine is noticed in `expand`; no state is stored for it.
                let name = step.name;
                let (target, order, beyond) = match step.outcome {
                    Outcome::Control(next) => match self.symmetry.and_then(|s| s.canonical(&next)) {
                        Some((canonical, order)) => (self.control(canonical), Some(order), None),
                        None => (self.control(next), None, None),
                    },
                    Outcome::Beyond(what, span) => (control, None, Some((what, span))),
                };
                self.bearable(target)?;
                let (before, after) = (&self.controls[control].live, &self.controls[target].live);
                let mut commands = step.commands;
                if let (Some(symmetry), Some(order)) = (self.symmetry, &order) {
                    commands.extend(symmetry.renaming(self.machine, after, order));
                }
                let transition = self.domain.transition(before, &commands, after);
                // Roughly: the transition with its ways.
                let size = 256 + 32 * (before.len() + after.len() + 4 * commands.len());
                self.bytes += size as u64;
                Ok(Prepared { name, target, transition, beyond, order })
            })
            .collect()
    }

    /// Stores a state unless it is covered.
    fn add(&mut self, control: usize, state: &D::State, parent: Option<Parent>) -> Result<(), Stop> {
        let stored = self.domain.stored(state);
        if self.domain.is_discrete() {
            if !self.controls[control].seen.insert(stored.clone()) {
                return Ok(());
            }
        } else {
            let known = &self.controls[control].nodes;
            if known.iter().any(|&n| self.domain.covers(&self.nodes[n].state, state)) {
                return Ok(());
            }
            let (covered, kept): (Vec<usize>, Vec<usize>) =
                known.iter().partition(|&&n| self.domain.covers(&stored, &self.nodes[n].state));
            for n in covered {
                self.nodes[n].covered = true;
            }
            self.controls[control].nodes = kept;
        }
        let node = self.nodes.len();
        self.bytes += self.domain.size(&stored) as u64 + 128;
        self.controls[control].nodes.push(node);
        self.nodes.push(Node { control, state: stored, parent, covered: false });
        self.queue.push_back(node);
        if self.controls[control].violations.is_none() {
            self.controls[control].violations = Some(self.violations(control));
        }
        for (n, violation) in self.controls[control].violations.iter().flatten().enumerate() {
            let Some(violation) = violation else { continue };
            let mut bad = Vec::new();
            self.domain.post(violation, &self.nodes[node].state, &mut bad);
            if !bad.is_empty() {
                return Err(Stop::Violation { property: n, node });
            }
        }
        Ok(())
    }

    /// For each property, the assumption that a control state violates it.
    fn violations(&self, control: usize) -> Vec<Option<D::Transition>> {
        let ControlNode { control, live, .. } = &self.controls[control];
        let violation = |property| {
            let condition = self.machine.violation(control, property)?;
            (condition.constant() != Some(0))
                .then(|| self.domain.transition(live, &[Command::Assume(condition)], live))
        };
        self.properties.iter().map(violation).collect()
    }

    /// The number of a control state.
    fn control(&mut self, control: Control) -> usize {
        if let Some(&number) = self.numbers.get(&control) {
            return number;
        }
        let mut live = self.live.of(self.machine, &control);
        if !self.domain.keeps_summaries() {
            live.retain(|&cell| !self.machine.cells.is_summary(cell));
        }
        let number = self.controls.len();
        self.bytes += 512 + 2 * (control.locations.len() * 40 + 4 * live.len()) as u64;
        self.numbers.insert(control.clone(), number);
        let (nodes, seen) = (Vec::new(), HashSet::new());
        self.controls.push(ControlNode { control, live, steps: None, violations: None, nodes, seen });
        number
    }
}

impl<D: Domain> Drop for Reach<'_, '_, D> {
    fn drop(&mut self) {
        let states = self.nodes.len();
        discard(states, (take(&mut self.nodes), take(&mut self.controls), take(&mut self.numbers)));
    }
}
