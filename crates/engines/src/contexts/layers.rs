//! The search: contexts one after the other, each explored to its end before the next begins.
//!
//! A state does not know how many contexts it took to reach it. It belongs to the first one, its *layer*, in which it is found:
//! everything that a later context could make of it, an earlier one could too. So a state is expanded once, and to allow one more context
//! means to go on from the newest layer. The last context is different: nobody else moves after it, so its states are kept apart and
//! hold less (see [`super::relevance`]). For k contexts, layers 1 to k - 1 lead to all beginnings of a last context; of these only
//! those of layer k - 1 are new, the others have been last contexts before. Evidence is looked for in last contexts only: every
//! context was one, when it was its turn.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::Ordering;

use fencewright_memory::{CellId, Command, ContextControl, Contexts, Groups, Move};
use fencewright_program::{Property, Span, ThreadId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::relevance::Relevance;
use crate::domain::Domain;
use crate::task::{Limits, Progress, Reason};

/// A step of a path.
#[derive(Clone, Debug)]
pub struct PathStep {
    /// The active thread.
    pub thread: ThreadId,
    /// What happens.
    pub what: Move,
    /// Whether the groups of the next active thread became one.
    pub joined: bool,
    /// What happens to cells.
    pub commands: Vec<Command>,
    /// Which way through the commands the search took.
    pub way: u32,
}

/// A path to what may be evidence about a property.
pub struct Found {
    /// The number of the property.
    pub property: usize,
    /// The steps.
    pub path: Vec<PathStep>,
    /// Who is active at the end.
    pub active: ThreadId,
    /// How many groups leave at the very end.
    pub flushed: u32,
    /// The commands of that, and the condition.
    pub condition: Vec<Command>,
    /// The nodes on the path, for [`Layers::feasible`].
    nodes: Vec<u32>,
    evidence: usize,
}

/// How a search goes on.
pub enum Next {
    /// A path was found. Searching on finds others.
    Found(Found),
    /// There is nothing more within the bound; and if `saturated`, neither beyond it.
    Done {
        /// Whether more contexts would not lead to more states.
        saturated: bool,
    },
    /// A limit.
    Stopped(Reason),
}

/// A search in progress.
pub struct Layers<'a, 'p, D: Domain> {
    contexts: Contexts<'p>,
    relevance: &'a Relevance<'p>,
    domain: D,
    properties: &'a [Property],
    /// How many groups a buffer may have before the last context.
    groups: u32,
    /// How many contexts there are.
    bound: u32,
    /// How many layers have been explored.
    explored: u32,
    stage: Stage,
    numbers: HashMap<(ContextControl, bool), u32, FxBuildHasher>,
    controls: Vec<ControlNode<D>>,
    steps: Vec<Prepared<D::Transition>>,
    nodes: Vec<Node<D::State>>,
    table: HashTable<u32>,
    /// The states of the newest layer, and whether their contexts have ended in last ones.
    frontier: Vec<u32>,
    ended: bool,
    /// Those of the layers before it whose contexts have not.
    earlier: Vec<u32>,
    /// The states whose contexts are to end; those before `turned` have.
    turning: Vec<u32>,
    turned: usize,
    /// The states of the layer that is being explored; the edges of those before `taken` have been taken.
    queue: Vec<u32>,
    taken: usize,
    /// Evidence that nobody has looked at yet: node, and number in the list of its control state.
    evidence: Vec<(u32, usize)>,
    fresh: Vec<(u32, D::State)>,
    bytes: u64,
    /// The first layer in which stores were put together for lack of groups.
    merged: Option<u32>,
    beyond: Option<(&'static str, Span)>,
}

/// What the search is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not begun.
    Waiting,
    /// Exploring a layer that is not the last context.
    Deepening,
    /// Exploring last contexts.
    Finishing,
}

struct ControlNode<D: Domain> {
    at: ContextControl,
    last: bool,
    live: Vec<CellId>,
    /// The edges, in [`Layers::steps`].
    edges: Option<Range<u32>>,
    /// The ends of the context: into another one, and into the last one.
    switches: [Option<Range<u32>>; 2],
    evidence: Option<Vec<Evidence<D::Transition>>>,
    /// All nodes, if the domain must be asked whether one covers another.
    members: Vec<u32>,
}

struct Evidence<T> {
    property: usize,
    flushed: u32,
    commands: Vec<Command>,
    transition: T,
}

struct Prepared<T> {
    step: PathStep,
    /// The control state it leads to; or how it leaves what the machine represents.
    target: Result<u32, (&'static str, Span)>,
    transition: T,
}

struct Node<S> {
    state: S,
    control: u32,
    origin: Origin,
}

/// How a state was reached: from which one, by which step, on which way through its commands.
#[derive(Clone, Copy)]
struct Origin {
    parent: u32,
    step: u32,
    way: u32,
}

impl Origin {
    const START: Origin = Origin { parent: NONE, step: NONE, way: 0 };
}

/// How many groups a buffer can usefully have with so many contexts: one for each context of its thread after which somebody else can
/// look, and one for stores that nobody will see leave.
pub fn most_groups(bound: u32, sees_memory: bool) -> u32 {
    1 + (bound - 1).div_ceil(2) + sees_memory as u32
}

/// Nobody's number.
const NONE: u32 = u32::MAX;

impl<'a, 'p, D: Domain> Layers<'a, 'p, D> {
    /// A search with so many contexts and so many groups in each buffer at most.
    pub fn new(
        contexts: Contexts<'p>,
        relevance: &'a Relevance<'p>,
        properties: &'a [Property],
        domain: D,
        (bound, groups): (u32, u32),
    ) -> Self {
        Layers {
            groups,
            contexts,
            relevance,
            domain,
            properties,
            bound,
            explored: 0,
            stage: Stage::Waiting,
            numbers: HashMap::default(),
            controls: Vec::new(),
            steps: Vec::new(),
            nodes: Vec::new(),
            table: HashTable::new(),
            frontier: Vec::new(),
            ended: false,
            earlier: Vec::new(),
            turning: Vec::new(),
            turned: 0,
            queue: Vec::new(),
            taken: 0,
            evidence: Vec::new(),
            fresh: Vec::new(),
            bytes: 0,
            merged: None,
            beyond: None,
        }
    }

    /// One more context, after all with fewer have been explored.
    pub fn deepen(&mut self) {
        self.bound += 1;
        self.stage = Stage::Waiting;
    }

    /// Whether there are groups enough for so many contexts: no stores were put together that could have left in different ones.
    pub fn suffices_for(&self, bound: u32) -> bool {
        let needed = |layer: u32| most_groups(bound + 1 - layer, self.relevance.sees_memory());
        self.merged.is_none_or(|layer| needed(layer) <= self.groups)
    }

    /// How many states are stored.
    pub fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Roughly how many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first step that leads out of what the machine represents, if there was one.
    pub fn beyond(&self) -> Option<(&'static str, Span)> {
        self.beyond
    }

    /// Searches on, to the next piece of evidence, the end or a limit.
    pub fn next(&mut self, limits: &Limits, progress: &Progress) -> Next {
        match self.go_on(limits, progress) {
            Ok(next) => next,
            Err(reason) => Next::Stopped(reason),
        }
    }

    fn go_on(&mut self, limits: &Limits, progress: &Progress) -> Result<Next, Reason> {
        let mut rounds = 0u32;
        loop {
            if let Some((node, n)) = self.evidence.pop() {
                return Ok(Next::Found(self.found(node, n)));
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(1024) {
                progress.states.store(self.nodes.len() as u64, Ordering::Relaxed);
                progress.frontier.store((self.queue.len() - self.taken) as u64, Ordering::Relaxed);
                progress.bytes.store(self.bytes, Ordering::Relaxed);
            }
            if rounds.is_multiple_of(16)
                && let Some(reason) = limits.exceeded(self.bytes)
            {
                return Err(reason);
            }
            if let Some(&node) = self.queue.get(self.taken) {
                self.taken += 1;
                let steps = self.edges(self.nodes[node as usize].control, limits)?;
                self.expand(node, steps, limits)?;
            } else if let Some(&node) = self.turning.get(self.turned) {
                self.turned += 1;
                let steps = self.switches(self.nodes[node as usize].control, limits)?;
                self.expand(node, steps, limits)?;
            } else {
                match self.stage {
                    Stage::Waiting => self.begin()?,
                    Stage::Finishing => {
                        // With one thread there is never another context.
                        return Ok(Next::Done { saturated: self.contexts.program().threads.len() == 1 });
                    }
                    Stage::Deepening if self.queue.is_empty() => {
                        return Ok(Next::Done { saturated: self.merged.is_none() });
                    }
                    Stage::Deepening => {
                        self.explored += 1;
                        let newest = std::mem::take(&mut self.queue);
                        let mut before = std::mem::replace(&mut self.frontier, newest);
                        if !std::mem::replace(&mut self.ended, false) {
                            self.earlier.append(&mut before);
                        }
                        self.begin()?;
                    }
                }
            }
        }
    }

    /// Begins the next layer, or the last contexts.
    fn begin(&mut self) -> Result<(), Reason> {
        let last = self.explored + 1 == self.bound;
        self.stage = if last { Stage::Finishing } else { Stage::Deepening };
        (self.turned, self.taken) = (0, 0);
        self.queue.clear();
        self.turning = self.frontier.clone();
        if last {
            self.ended = true;
            // An earlier search has ended the earlier layers, but where states cover others it may have had other states.
            let earlier = std::mem::take(&mut self.earlier);
            if !self.domain.is_discrete() {
                self.turning.extend(earlier);
            }
        }
        if self.explored > 0 {
            return Ok(());
        }
        for first in self.contexts.initial() {
            if last && self.relevance.hopeless(&self.contexts, &first) {
                continue;
            }
            let (_, first) = self.settled(first, last);
            let control = self.control(first, last)?;
            let live = self.controls[control as usize].live.clone();
            let start = self.domain.transition(&[], &self.contexts.initial_values(), &live);
            let nothing = self.domain.anything(&[]);
            let mut initial = Vec::new();
            self.domain.post(&start, &nothing, &mut initial);
            for (_, state) in initial {
                self.add(control, &state, Origin::START);
            }
        }
        Ok(())
    }

    fn expand(&mut self, node: u32, steps: Range<u32>, limits: &Limits) -> Result<(), Reason> {
        for n in steps {
            // A step on a large matrix takes long.
            if !self.domain.is_discrete()
                && let Some(reason) = limits.exceeded(self.bytes)
            {
                return Err(reason);
            }
            let mut fresh = std::mem::take(&mut self.fresh);
            fresh.clear();
            let Prepared { transition, target, .. } = &self.steps[n as usize];
            let target = *target;
            self.domain.post(transition, &self.nodes[node as usize].state, &mut fresh);
            match target {
                Ok(target) => {
                    for (way, state) in &fresh {
                        self.add(target, state, Origin { parent: node, step: n, way: *way });
                    }
                }
                Err(beyond) if !fresh.is_empty() => _ = self.beyond.get_or_insert(beyond),
                Err(_) => {}
            }
            self.fresh = fresh;
        }
        Ok(())
    }

    /// The edges of a control state.
    fn edges(&mut self, control: u32, limits: &Limits) -> Result<Range<u32>, Reason> {
        let ControlNode { at, last, edges, .. } = &self.controls[control as usize];
        if let Some(steps) = edges {
            return Ok(steps.clone());
        }
        let last = *last;
        let groups = if last { 1 + self.relevance.sees_memory() as u32 } else { self.groups };
        let first = self.steps.len() as u32;
        for step in self.contexts.with_groups(groups).edges(at) {
            if let Some(reason) = limits.exceeded(self.bytes) {
                return Err(reason);
            }
            if !last && matches!(step.what, Move::Edge { merged: Some(_), .. }) {
                self.merged.get_or_insert(self.explored + 1);
            }
            match step.next {
                Ok(next) => self.push(control, step.thread, step.what, step.commands, next, last)?,
                Err(beyond) => {
                    let before = &self.controls[control as usize].live;
                    let transition = self.domain.transition(before, &step.commands, &[]);
                    let what = PathStep {
                        thread: step.thread,
                        what: step.what,
                        joined: false,
                        commands: step.commands,
                        way: 0,
                    };
                    self.steps.push(Prepared { step: what, target: Err(beyond), transition });
                }
            }
        }
        let steps = first..self.steps.len() as u32;
        self.controls[control as usize].edges = Some(steps.clone());
        Ok(steps)
    }

    /// The ends of the context in a control state.
    fn switches(&mut self, control: u32, limits: &Limits) -> Result<Range<u32>, Reason> {
        let last = self.stage == Stage::Finishing;
        let ControlNode { at, switches, .. } = &self.controls[control as usize];
        if let Some(steps) = &switches[last as usize] {
            return Ok(steps.clone());
        }
        let at = at.clone();
        let ending = self.relevance.ending(at.active, at.control.locations[at.active.index()]);
        let pending = self.contexts.pending(&at);
        let flushes = match (ending.any, ending.drained && pending > 0) {
            (true, _) => 0..pending + 1,
            (false, true) => pending..pending + 1,
            (false, false) => 0..0,
        };
        let first = self.steps.len() as u32;
        for (to, code) in self.contexts.program().threads().filter(|(t, _)| *t != at.active) {
            if let Some(reason) = limits.exceeded(self.bytes) {
                return Err(reason);
            }
            let stuck = code.edges_from(at.control.locations[to.index()]).next().is_none();
            if stuck && self.contexts.groups(&at.control, to).0.is_empty() {
                continue;
            }
            for count in flushes.clone() {
                let Some(step) = self.contexts.switch(&at, count, to) else { continue };
                let Ok(next) = step.next else { continue };
                if !last || !self.relevance.hopeless(&self.contexts, &next) {
                    self.push(control, step.thread, step.what, step.commands, next, last)?;
                }
            }
        }
        let steps = first..self.steps.len() as u32;
        self.controls[control as usize].switches[last as usize] = Some(steps.clone());
        Ok(steps)
    }

    fn push(
        &mut self,
        from: u32,
        thread: ThreadId,
        what: Move,
        mut commands: Vec<Command>,
        next: ContextControl,
        last: bool,
    ) -> Result<(), Reason> {
        let (more, settled) = self.settled(next.clone(), last);
        let joined = self.contexts.pending(&settled) < self.contexts.pending(&next);
        commands.extend(more);
        let target = self.control(settled, last)?;
        let (before, after) = (&self.controls[from as usize].live, &self.controls[target as usize].live);
        let transition = self.domain.transition(before, &commands, after);
        self.bytes += (256 + 48 * commands.len() + 8 * (before.len() + after.len())) as u64;
        let step = PathStep { thread, what, joined, commands, way: 0 };
        self.steps.push(Prepared { step, target: Ok(target), transition });
        Ok(())
    }

    /// A control state without what does not matter in the last context: where exactly the others are, what they have buffered, and which of
    /// the stores of the active thread leave together.
    fn settled(&self, mut at: ContextControl, last: bool) -> (Vec<Command>, ContextControl) {
        let mut commands = Vec::new();
        if !last {
            return (commands, at);
        }
        for t in (0..at.control.locations.len() as u32).map(ThreadId).filter(|&t| t != at.active) {
            let location = &mut at.control.locations[t.index()];
            *location = self.relevance.representative(t, *location);
            if !self.relevance.finals()
                && let Some(shape) = at.control.buffers.get_mut(t.index())
            {
                *shape = Groups::default().shape();
            }
        }
        if !self.relevance.sees_memory() {
            let mut groups = self.contexts.groups(&at.control, at.active);
            while groups.0.len() > 1 {
                let (moves, merged) = groups.merged(self.contexts.cells(), at.active, 0);
                commands.extend(moves);
                groups = merged;
                at.control.buffers[at.active.index()] = groups.shape();
            }
        }
        (commands, at)
    }

    fn control(&mut self, at: ContextControl, last: bool) -> Result<u32, Reason> {
        let key = (at, last);
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        let number = self.controls.len() as u32;
        let live = self.relevance.live(&self.contexts, &key.0, last);
        if live.len() > self.domain.most_cells() {
            let what = format!("{} cells matter at once, too many for this domain", live.len());
            return Err(Reason::Unsupported(what, None));
        }
        let at = key.0.clone();
        self.bytes += (512 + 4 * live.len() + 96 * at.control.locations.len()) as u64;
        self.numbers.insert(key, number);
        let (switches, members) = ([None, None], Vec::new());
        self.controls.push(ControlNode { at, last, live, edges: None, switches, evidence: None, members });
        Ok(number)
    }

    /// Stores a state, unless it is covered.
    fn add(&mut self, control: u32, state: &D::State, origin: Origin) {
        let stored = self.domain.stored(state);
        let hash = |control: u32, state: &D::State| FxBuildHasher.hash_one((control, state));
        let nodes = &self.nodes;
        let same = |&n: &u32| {
            let node = &nodes[n as usize];
            node.control == control && node.state == stored
        };
        let hashed = hash(control, &stored);
        if self.table.find(hashed, same).is_some() {
            return;
        }
        let number = nodes.len() as u32;
        if !self.domain.is_discrete() {
            let members = &mut self.controls[control as usize].members;
            if members.iter().any(|&n| self.domain.covers(&nodes[n as usize].state, state)) {
                return;
            }
            members.push(number);
        }
        self.bytes += self.domain.size(&stored) as u64 + 32;
        self.table.insert_unique(hashed, number, |&n| {
            let node = &nodes[n as usize];
            hash(node.control, &node.state)
        });
        self.nodes.push(Node { state: stored, control, origin });
        self.queue.push(number);
        if self.controls[control as usize].last {
            self.look(control, number);
        }
    }

    /// Notes what a new state is evidence for.
    fn look(&mut self, control: u32, number: u32) {
        if self.controls[control as usize].evidence.is_none() {
            let found = self.evidence_at(control);
            self.controls[control as usize].evidence = Some(found);
        }
        for (n, evidence) in self.controls[control as usize].evidence.iter().flatten().enumerate() {
            let mut reached = Vec::new();
            self.domain.post(&evidence.transition, &self.nodes[number as usize].state, &mut reached);
            if !reached.is_empty() {
                self.evidence.push((number, n));
            }
        }
    }

    fn evidence_at(&self, control: u32) -> Vec<Evidence<D::Transition>> {
        let ControlNode { at, live, .. } = &self.controls[control as usize];
        let mut found = Vec::new();
        for (property, p) in self.properties.iter().enumerate() {
            for (flushed, commands) in self.contexts.evidence(at, p).unwrap_or_default() {
                let transition = self.domain.transition(live, &commands, &[]);
                found.push(Evidence { property, flushed, commands, transition });
            }
        }
        found
    }

    fn found(&self, node: u32, evidence: usize) -> Found {
        let mut nodes = vec![node];
        let mut path = Vec::new();
        let mut at = node;
        loop {
            let Origin { parent, step, way } = self.nodes[at as usize].origin;
            if parent == NONE {
                break;
            }
            path.push(PathStep { way, ..self.steps[step as usize].step.clone() });
            at = parent;
            nodes.push(at);
        }
        path.reverse();
        nodes.reverse();
        let control = &self.controls[self.nodes[node as usize].control as usize];
        let Evidence { property, flushed, commands, .. } =
            &control.evidence.as_ref().expect("it was looked at")[evidence];
        Found {
            property: *property,
            path,
            active: control.at.active,
            flushed: *flushed,
            condition: commands.clone(),
            nodes,
            evidence,
        }
    }

    /// Whether the path can be taken in another domain of the same kind: one that knows more.
    pub fn feasible(&self, found: &Found, domain: &mut D) -> bool {
        let first = &self.controls[self.nodes[found.nodes[0] as usize].control as usize];
        let start = domain.transition(&[], &self.contexts.initial_values(), &first.live);
        let mut states = Vec::new();
        let nothing = domain.anything(&[]);
        domain.post(&start, &nothing, &mut states);
        let mut follow = |states: Vec<(u32, D::State)>, transition: &D::Transition| {
            let mut after = Vec::new();
            for (_, state) in states {
                let stored = domain.stored(&state);
                domain.post(transition, &stored, &mut after);
            }
            after
        };
        for &node in &found.nodes[1..] {
            states = follow(states, &self.steps[self.nodes[node as usize].origin.step as usize].transition);
            if states.is_empty() {
                return false;
            }
        }
        let end = &self.controls[self.nodes[found.nodes[found.nodes.len() - 1] as usize].control as usize];
        let evidence = &end.evidence.as_ref().expect("it was looked at")[found.evidence];
        !follow(states, &evidence.transition).is_empty()
    }
}
