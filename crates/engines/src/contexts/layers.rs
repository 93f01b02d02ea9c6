//! The search: contexts one after the other, each explored to its end before the next begins.
//!
//! A state does not know how many contexts it took to reach it. It belongs to the first one, its *layer*, in which it is found:
//! everything that a later context could make of it, an earlier one could too. So a state is expanded once, and to allow one more context
//! means to go on from the newest layer. The last context is different: nobody else moves after it, so its states are kept apart and
//! hold less (see [`super::relevance`]). For k contexts, layers 1 to k - 1 lead to all beginnings of a last context; of these only
//! those of layer k - 1 are new, the others have been last contexts before. Evidence is looked for in last contexts only: every
//! context was one, when it was its turn.

use std::hash::BuildHasher;
use std::mem::take;
use std::ops::Range;
use std::sync::atomic::Ordering;

use fencewright_memory::{Command, Machine};
use fencewright_program::{Span, ThreadId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::graph::{Evidence, Graph, PathStep, Prepared};
use crate::domain::Domain;
use crate::limits::discard;
use crate::search::live::known_at_first;
use crate::task::{Limits, Progress, Reason};

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
    graph: Graph<'a, 'p, D>,
    domain: D,
    /// How many contexts there are.
    bound: u32,
    /// How many layers have been explored.
    explored: u32,
    stage: Stage,
    /// Whether a layer had no new states.
    closed: bool,
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

/// Nobody's number.
const NONE: u32 = u32::MAX;

impl<'a, 'p, D: Domain> Layers<'a, 'p, D> {
    /// A search of so many contexts.
    pub fn new(graph: Graph<'a, 'p, D>, domain: D, bound: u32) -> Self {
        Layers {
            graph,
            domain,
            bound,
            explored: 0,
            stage: Stage::Waiting,
            closed: false,
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
            beyond: None,
        }
    }

    /// One more context, after all with fewer have been explored.
    pub fn deepen(&mut self) {
        self.bound += 1;
        self.stage = Stage::Waiting;
    }

    /// Whether there are groups enough for so many contexts.
    pub fn suffices_for(&self, bound: u32) -> bool {
        self.graph.suffices_for(bound)
    }

    /// How many states are stored.
    pub fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Roughly how many bytes everything takes.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.graph.bytes
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
                progress.bytes.store(self.bytes(), Ordering::Relaxed);
            }
            if rounds.is_multiple_of(16)
                && let Some(reason) = limits.exceeded(self.bytes())
            {
                return Err(reason);
            }
            if let Some(&node) = self.queue.get(self.taken) {
                self.taken += 1;
                let (control, layer) = (self.nodes[node as usize].control, self.explored + 1);
                let steps = self.graph.edges(control, layer, &self.domain, limits)?;
                self.expand(node, steps, limits)?;
            } else if let Some(&node) = self.turning.get(self.turned) {
                self.turned += 1;
                let (control, last) = (self.nodes[node as usize].control, self.stage == Stage::Finishing);
                let steps = self.graph.switches(control, last, &self.domain, limits)?;
                self.expand(node, steps, limits)?;
            } else {
                match self.stage {
                    Stage::Waiting => self.begin(limits)?,
                    Stage::Finishing => {
                        // With one thread there is never another context.
                        let alone = self.graph.contexts.program().threads.len() == 1;
                        let saturated = alone || (self.closed && self.graph.merged.is_none());
                        return Ok(Next::Done { saturated });
                    }
                    Stage::Deepening if self.queue.is_empty() => {
                        self.closed = true;
                        self.begin(limits)?;
                    }
                    Stage::Deepening => {
                        self.explored += 1;
                        let newest = take(&mut self.queue);
                        let mut before = std::mem::replace(&mut self.frontier, newest);
                        if !std::mem::replace(&mut self.ended, false) {
                            self.earlier.append(&mut before);
                        }
                        self.begin(limits)?;
                    }
                }
            }
        }
    }

    /// Begins the next layer, or the last contexts.
    fn begin(&mut self, limits: &Limits) -> Result<(), Reason> {
        let last = self.closed || self.explored + 1 == self.bound;
        self.stage = if last { Stage::Finishing } else { Stage::Deepening };
        (self.turned, self.taken) = (0, 0);
        self.queue.clear();
        self.turning.clear();
        if !(last && self.ended) {
            self.turning.extend(&self.frontier);
        }
        if last {
            self.ended = true;
            // An earlier search has ended the earlier layers, but where states cover others it may have had other states.
            let earlier = take(&mut self.earlier);
            if !self.domain.is_discrete() {
                self.turning.extend(earlier);
            }
        }
        if self.explored > 0 {
            return Ok(());
        }
        for first in self.graph.contexts.initial_controls() {
            if let Some(reason) = limits.exceeded(self.bytes()) {
                return Err(reason);
            }
            if last && self.graph.relevance.hopeless(&self.graph.contexts, &first) {
                continue;
            }
            let (_, first) = self.graph.settled(first, last);
            let control = self.graph.control(first, last, &self.domain)?;
            let live = &self.graph.controls[control as usize].live;
            let known = known_at_first(self.graph.contexts.initial_values(), live);
            let start = self.domain.transition(&[], &known, live);
            let nothing = self.domain.anything(&[]);
            let mut initial = Vec::new();
            self.domain.post(&start, &nothing, &mut initial);
            for (_, state) in initial {
                self.add(control, &state, Origin::START, limits)?;
            }
        }
        Ok(())
    }

    fn expand(&mut self, node: u32, steps: Range<u32>, limits: &Limits) -> Result<(), Reason> {
        for n in steps {
            // A step on a large matrix takes long.
            if !self.domain.is_discrete()
                && let Some(reason) = limits.exceeded(self.bytes())
            {
                return Err(reason);
            }
            let mut fresh = take(&mut self.fresh);
            fresh.clear();
            let Prepared { transition, target, .. } = &self.graph.steps[n as usize];
            let target = *target;
            self.domain.post(transition, &self.nodes[node as usize].state, &mut fresh);
            match target {
                Ok(target) => {
                    for (way, state) in &fresh {
                        self.add(target, state, Origin { parent: node, step: n, way: *way }, limits)?;
                    }
                }
                Err(beyond) if !fresh.is_empty() => _ = self.beyond.get_or_insert(beyond),
                Err(_) => {}
            }
            self.fresh = fresh;
        }
        Ok(())
    }

    /// Stores a state, unless it is covered.
    fn add(&mut self, control: u32, state: &D::State, origin: Origin, limits: &Limits) -> Result<(), Reason> {
        let stored = self.domain.stored(state);
        let hash = |control: u32, state: &D::State| FxBuildHasher.hash_one((control, state));
        let nodes = &self.nodes;
        let same = |&n: &u32| {
            let node = &nodes[n as usize];
            node.control == control && node.state == stored
        };
        let hashed = hash(control, &stored);
        if self.table.find(hashed, same).is_some() {
            return Ok(());
        }
        let number = nodes.len() as u32;
        if !self.domain.is_discrete() {
            let members = &mut self.graph.controls[control as usize].members;
            if members.iter().any(|&n| self.domain.covers(&nodes[n as usize].state, state)) {
                return Ok(());
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
        if self.graph.controls[control as usize].last {
            self.look(control, number, limits)?;
        }
        Ok(())
    }

    /// Notes what a new state is evidence for.
    fn look(&mut self, control: u32, number: u32, limits: &Limits) -> Result<(), Reason> {
        self.graph.evidence(control, &self.domain, limits)?;
        for (n, evidence) in self.graph.controls[control as usize].evidence.iter().flatten().enumerate() {
            if !self.domain.is_discrete()
                && let Some(reason) = limits.exceeded(self.bytes + self.graph.bytes)
            {
                return Err(reason);
            }
            let mut reached = Vec::new();
            self.domain.post(&evidence.transition, &self.nodes[number as usize].state, &mut reached);
            if !reached.is_empty() {
                self.evidence.push((number, n));
            }
        }
        Ok(())
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
            path.push(PathStep { way, ..self.graph.steps[step as usize].step.clone() });
            at = parent;
            nodes.push(at);
        }
        path.reverse();
        nodes.reverse();
        let control = &self.graph.controls[self.nodes[node as usize].control as usize];
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
        let first = &self.graph.controls[self.nodes[found.nodes[0] as usize].control as usize];
        let known = known_at_first(self.graph.contexts.initial_values(), &first.live);
        let start = domain.transition(&[], &known, &first.live);
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
            states =
                follow(states, &self.graph.steps[self.nodes[node as usize].origin.step as usize].transition);
            if states.is_empty() {
                return false;
            }
        }
        let end =
            &self.graph.controls[self.nodes[found.nodes[found.nodes.len() - 1] as usize].control as usize];
        let evidence = &end.evidence.as_ref().expect("it was looked at")[found.evidence];
        !follow(states, &evidence.transition).is_empty()
    }
}

impl<D: Domain> Drop for Layers<'_, '_, D> {
    fn drop(&mut self) {
        let graph = (take(&mut self.graph.controls), take(&mut self.graph.steps));
        discard(self.nodes.len(), (take(&mut self.nodes), graph));
    }
}
