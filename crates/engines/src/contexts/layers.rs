//! The search: contexts one after the other, each explored to its end before the next begins.
//!
//! A state does not know how many contexts it took to reach it. It belongs to the *layer* of the first one in which it is found, and
//! everything that a later context could make of it, an earlier one could too; so a state is expanded once. Only the last layer is
//! different: nobody else moves after it, so its states are kept apart and hold less (see [`super::relevance`]).

use std::collections::HashMap;
use std::hash::BuildHasher;
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
    /// How many contexts there are.
    bound: u32,
    /// The context that is being explored.
    layer: u32,
    numbers: HashMap<(ContextControl, bool), u32, FxBuildHasher>,
    controls: Vec<ControlNode<D>>,
    steps: Vec<Prepared<D::Transition>>,
    nodes: Vec<Node<D::State>>,
    table: HashTable<u32>,
    /// States of this layer and of the next that wait.
    queue: Vec<u32>,
    position: usize,
    later: Vec<u32>,
    /// Evidence that nobody has looked at yet: node, and number in the list of its control state.
    evidence: Vec<(u32, usize)>,
    fresh: Vec<(u32, D::State)>,
    bytes: u64,
    /// Whether stores were put together that more contexts could have separated.
    bounded: bool,
    beyond: Option<(&'static str, Span)>,
}

struct ControlNode<D: Domain> {
    at: ContextControl,
    last: bool,
    live: Vec<CellId>,
    /// The steps, in [`Layers::steps`], and for which number of contexts to come they were prepared.
    steps: Option<(u32, std::ops::Range<u32>)>,
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
    target: u32,
    transition: T,
    switches: bool,
}

struct Node<S> {
    state: S,
    control: u32,
    layer: u32,
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

/// How many groups a buffer of a thread that is active now can usefully have: one for each of its contexts after which somebody else
/// can look, and one for stores that nobody will see leave.
pub fn most_groups(bound: u32, layer: u32, sees_memory: bool) -> u32 {
    1 + (bound - layer).div_ceil(2) + sees_memory as u32
}

/// Nobody's number.
const NONE: u32 = u32::MAX;

impl<'a, 'p, D: Domain> Layers<'a, 'p, D> {
    /// A search with this many contexts at most.
    pub fn new(
        contexts: Contexts<'p>,
        relevance: &'a Relevance<'p>,
        properties: &'a [Property],
        domain: D,
        bound: u32,
    ) -> Self {
        Layers {
            contexts,
            relevance,
            domain,
            properties,
            bound,
            layer: 0,
            numbers: HashMap::default(),
            controls: Vec::new(),
            steps: Vec::new(),
            nodes: Vec::new(),
            table: HashTable::new(),
            queue: Vec::new(),
            position: 0,
            later: Vec::new(),
            evidence: Vec::new(),
            fresh: Vec::new(),
            bytes: 0,
            bounded: false,
            beyond: None,
        }
    }

    /// How many states are stored.
    pub fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Roughly how many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first step that may lead out of what the machine represents, if there was one.
    pub fn beyond(&self) -> Option<(&'static str, Span)> {
        self.beyond
    }

    /// Searches on, to the next piece of evidence, the end or a limit.
    pub fn next(&mut self, limits: &Limits, progress: &Progress) -> Next {
        if self.layer == 0 {
            self.layer = 1;
            self.start();
        }
        loop {
            if let Some((node, n)) = self.evidence.pop() {
                return Next::Found(self.found(node, n));
            }
            let Some(&node) = self.queue.get(self.position) else {
                self.queue = std::mem::take(&mut self.later);
                self.position = 0;
                if self.queue.is_empty() {
                    return Next::Done { saturated: self.layer + 1 < self.bound && !self.bounded };
                }
                self.layer += 1;
                continue;
            };
            self.position += 1;
            if self.position.is_multiple_of(256) {
                progress.states.store(self.nodes.len() as u64, Ordering::Relaxed);
                let waiting = self.queue.len() - self.position + self.later.len();
                progress.frontier.store(waiting as u64, Ordering::Relaxed);
                progress.bytes.store(self.bytes, Ordering::Relaxed);
            }
            if self.position.is_multiple_of(16)
                && let Some(reason) = limits.exceeded(self.bytes)
            {
                return Next::Stopped(reason);
            }
            // A state that was found again in an earlier layer has been expanded there.
            if self.nodes[node as usize].layer == self.layer
                && let Err(reason) = self.expand(node, limits)
            {
                return Next::Stopped(reason);
            }
        }
    }

    fn start(&mut self) {
        for first in self.contexts.initial() {
            let last = self.bound == 1;
            if last && self.relevance.hopeless(&self.contexts, &first) {
                continue;
            }
            let (_, first) = self.settled(first, last);
            let control = self.control(first, last);
            let live = self.controls[control as usize].live.clone();
            let start = self.domain.transition(&[], &self.contexts.initial_values(), &live);
            let nothing = self.domain.anything(&[]);
            let mut initial = Vec::new();
            self.domain.post(&start, &nothing, &mut initial);
            for (_, state) in initial {
                self.add(control, &state, Origin::START, false);
            }
        }
    }

    fn expand(&mut self, node: u32, limits: &Limits) -> Result<(), Reason> {
        let control = self.nodes[node as usize].control;
        let steps = self.prepared(control)?;
        for n in steps {
            let mut fresh = std::mem::take(&mut self.fresh);
            fresh.clear();
            let Prepared { transition, target, switches, .. } = &self.steps[n as usize];
            let (target, switches) = (*target, *switches);
            self.domain.post(transition, &self.nodes[node as usize].state, &mut fresh);
            for (way, state) in &fresh {
                self.add(target, state, Origin { parent: node, step: n, way: *way }, switches);
            }
            self.fresh = fresh;
            if let Some(reason) = limits.exceeded(self.bytes).filter(|_| n.is_multiple_of(64)) {
                return Err(reason);
            }
        }
        Ok(())
    }

    /// The steps of a control state in this layer.
    fn prepared(&mut self, control: u32) -> Result<std::ops::Range<u32>, Reason> {
        let left = self.bound - self.layer;
        let node = &self.controls[control as usize];
        if let Some((known, steps)) = &node.steps
            && *known == left
        {
            return Ok(steps.clone());
        }
        if node.live.len() > self.domain.most_cells() {
            let what = format!("{} cells matter at once, too many for this domain", node.live.len());
            return Err(Reason::Unsupported(what, None));
        }
        let first = self.steps.len() as u32;
        let at = node.at.clone();
        let sees_memory = self.relevance.sees_memory();
        let contexts = self.contexts.with_groups(most_groups(self.bound, self.layer, sees_memory));
        let last = node.last;
        for step in contexts.edges(&at) {
            self.bounded |= matches!(step.what, Move::Edge { merged: Some(_), .. });
            match step.next {
                Ok(next) => self.push(control, step.thread, step.what, step.commands, next, last),
                Err(beyond) => _ = self.beyond.get_or_insert(beyond),
            }
        }
        if left > 0 {
            let ending = self.relevance.ending(at.active, at.control.locations[at.active.index()]);
            let pending = contexts.pending(&at);
            let flushes = match (ending.any, ending.drained && pending > 0) {
                (true, _) => 0..=pending,
                (false, true) => pending..=pending,
                (false, false) => 1..=0,
            };
            let others = self.contexts.program().threads().map(|(t, _)| t).filter(|&t| t != at.active);
            for to in others.collect::<Vec<_>>() {
                let code = contexts.program().thread(to);
                let stuck = code.edges_from(at.control.locations[to.index()]).next().is_none();
                if stuck && contexts.groups(&at.control, to).0.is_empty() {
                    continue;
                }
                for step in flushes.clone().filter_map(|count| contexts.switch(&at, count, to)) {
                    let Ok(next) = step.next else { continue };
                    if left > 1 || !self.relevance.hopeless(&contexts, &next) {
                        self.push(control, step.thread, step.what, step.commands, next, left == 1);
                    }
                }
            }
        }
        let steps = first..self.steps.len() as u32;
        self.controls[control as usize].steps = Some((left, steps.clone()));
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
    ) {
        let (more, settled) = self.settled(next.clone(), last);
        let joined = self.contexts.pending(&settled) < self.contexts.pending(&next);
        commands.extend(more);
        let target = self.control(settled, last);
        let (before, after) = (&self.controls[from as usize].live, &self.controls[target as usize].live);
        let transition = self.domain.transition(before, &commands, after);
        self.bytes += (256 + 48 * commands.len() + 8 * (before.len() + after.len())) as u64;
        let step = PathStep { thread, what, joined, commands, way: 0 };
        self.steps.push(Prepared { step, target, transition, switches: matches!(what, Move::Switch { .. }) });
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

    fn control(&mut self, at: ContextControl, last: bool) -> u32 {
        if let Some(&number) = self.numbers.get(&(at.clone(), last)) {
            return number;
        }
        let number = self.controls.len() as u32;
        let live = self.relevance.live(&self.contexts, &at, last);
        self.bytes += (512 + 4 * live.len()) as u64;
        self.numbers.insert((at.clone(), last), number);
        self.controls.push(ControlNode { at, last, live, steps: None, evidence: None, members: Vec::new() });
        number
    }

    /// Stores a state, unless it is covered by one that was found in no later context.
    fn add(&mut self, control: u32, state: &D::State, origin: Origin, switches: bool) {
        let layer = self.layer + switches as u32;
        let hash = FxBuildHasher.hash_one((control, state));
        let same = |&n: &u32| {
            let node = &self.nodes[n as usize];
            node.control == control && node.state == *state
        };
        if let Some(&known) = self.table.find(hash, same) {
            let node = &mut self.nodes[known as usize];
            if node.layer > layer {
                (node.layer, node.origin) = (layer, origin);
                self.queue.push(known);
            }
            return;
        }
        if !self.domain.is_discrete() {
            let members = &self.controls[control as usize].members;
            let covers = |n: &u32| {
                let node = &self.nodes[*n as usize];
                node.layer <= layer && self.domain.covers(&node.state, state)
            };
            if members.iter().any(covers) {
                return;
            }
        }
        let stored = self.domain.stored(state);
        let number = self.nodes.len() as u32;
        self.bytes += self.domain.size(&stored) as u64 + 40;
        if !self.domain.is_discrete() {
            self.controls[control as usize].members.push(number);
        }
        self.nodes.push(Node { state: stored, control, layer, origin });
        // The key is what was given; what is stored may be larger, and is found through the members.
        let nodes = &self.nodes;
        let rehash = |&n: &u32| {
            let node = &nodes[n as usize];
            FxBuildHasher.hash_one((node.control, &node.state))
        };
        let hash = rehash(&number);
        self.table.insert_unique(hash, number, rehash);
        if switches {
            self.later.push(number)
        } else {
            self.queue.push(number)
        }
        self.look(control, number);
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
