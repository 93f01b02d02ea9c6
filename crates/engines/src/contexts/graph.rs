//! Control states and their steps, each prepared once for a domain.

use std::collections::HashMap;
use std::ops::Range;

use fencewright_memory::{self as machine, CellId, Command, Machine, Outcome, Step};
use fencewright_program::{Property, Span, ThreadId};
use rustc_hash::FxBuildHasher;

use super::groups::Groups;
use super::machine::{ContextControl, ContextStep, Contexts, Move};
use super::relevance::Relevance;
use crate::domain::Domain;
use crate::task::{Limits, Reason};

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

/// How many groups a buffer can usefully have with so many contexts: one for each context of its thread after which somebody else can
/// look, and one for stores that nobody will see leave.
pub fn most_groups(bound: u32, sees_memory: bool) -> u32 {
    1 + (bound - 1).div_ceil(2) + sees_memory as u32
}

/// A control state.
pub struct ControlNode<T> {
    /// The control state.
    pub at: ContextControl,
    /// Whether it belongs to a last context.
    pub last: bool,
    /// The cells that matter.
    pub live: Vec<CellId>,
    /// The edges, in [`Graph::steps`].
    edges: Option<Range<u32>>,
    /// The ends of the context: into another one, and into the last one.
    switches: [Option<Range<u32>>; 2],
    /// What states here may be evidence for.
    pub evidence: Option<Vec<Evidence<T>>>,
    /// All nodes, if the domain must be asked whether one covers another.
    pub members: Vec<u32>,
}

/// How a state may be evidence about a property.
pub struct Evidence<T> {
    /// The number of the property.
    pub property: usize,
    /// How many groups leave at the very end.
    pub flushed: u32,
    /// The commands of that, and the condition.
    pub commands: Vec<Command>,
    /// The same, prepared.
    pub transition: T,
}

/// A step, prepared.
pub struct Prepared<T> {
    /// The step, for paths.
    pub step: PathStep,
    /// The control state it leads to; or how it leaves what the machine represents.
    pub target: Result<u32, (&'static str, Span)>,
    /// What it does to a state of the domain.
    pub transition: T,
}

/// All control states that were met, and their steps.
pub struct Graph<'a, 'p, D: Domain> {
    /// The machine.
    pub contexts: Contexts<'p>,
    /// What can still matter.
    pub relevance: &'a Relevance<'p>,
    properties: &'a [Property],
    /// How many groups a buffer may have before the last context.
    groups: u32,
    numbers: HashMap<(ContextControl, bool), u32, FxBuildHasher>,
    /// The control states.
    pub controls: Vec<ControlNode<D::Transition>>,
    /// The steps of all of them.
    pub steps: Vec<Prepared<D::Transition>>,
    /// Roughly how many bytes they take.
    pub bytes: u64,
    /// The first layer in which stores were put together for lack of groups.
    pub merged: Option<u32>,
}

impl<'a, 'p, D: Domain> Graph<'a, 'p, D> {
    /// No control state yet.
    pub fn new(
        contexts: Contexts<'p>,
        relevance: &'a Relevance<'p>,
        properties: &'a [Property],
        groups: u32,
    ) -> Self {
        Graph {
            contexts,
            relevance,
            properties,
            groups,
            numbers: HashMap::default(),
            controls: Vec::new(),
            steps: Vec::new(),
            bytes: 0,
            merged: None,
        }
    }

    /// Whether there are groups enough for so many contexts: no stores were put together that could have left in different ones.
    pub fn suffices_for(&self, bound: u32) -> bool {
        let needed = |layer: u32| most_groups(bound + 1 - layer, self.relevance.sees_memory());
        self.merged.is_none_or(|layer| needed(layer) <= self.groups)
    }

    /// The edges of a control state that is met in this layer.
    pub fn edges(
        &mut self,
        control: u32,
        layer: u32,
        domain: &D,
        limits: &Limits,
    ) -> Result<Range<u32>, Reason> {
        let ControlNode { at, last, edges, .. } = &self.controls[control as usize];
        if let Some(steps) = edges {
            return Ok(steps.clone());
        }
        let last = *last;
        let groups = if last { 1 + self.relevance.sees_memory() as u32 } else { self.groups };
        let first = self.steps.len() as u32;
        let stop = || limits.exceeded(self.bytes).is_some();
        let Some(steps) = self.contexts.with_groups(groups).edges(at, &stop) else {
            return Err(limits.exceeded(self.bytes).unwrap_or(Reason::Cancelled));
        };
        for step in steps {
            if let Some(reason) = limits.exceeded(self.bytes) {
                return Err(reason);
            }
            if !last && matches!(step.name.what, Move::Edge { merged: Some(_), .. }) {
                self.merged.get_or_insert(layer);
            }
            self.push(control, step, last, domain)?;
        }
        let steps = first..self.steps.len() as u32;
        self.controls[control as usize].edges = Some(steps.clone());
        Ok(steps)
    }

    /// The ends of the context in a control state: into another one, or into the last one.
    pub fn switches(
        &mut self,
        control: u32,
        last: bool,
        domain: &D,
        limits: &Limits,
    ) -> Result<Range<u32>, Reason> {
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
                match &step.outcome {
                    Outcome::Control(next) if last && self.relevance.hopeless(&self.contexts, next) => {}
                    _ => self.push(control, step, last, domain)?,
                }
            }
        }
        let steps = first..self.steps.len() as u32;
        self.controls[control as usize].switches[last as usize] = Some(steps.clone());
        Ok(steps)
    }

    /// Prepares a step.
    fn push(&mut self, from: u32, step: ContextStep, last: bool, domain: &D) -> Result<(), Reason> {
        let Step { name, mut commands, outcome } = step;
        let mut joined = false;
        let target = match outcome {
            Outcome::Control(next) => {
                let (more, settled) = self.settled(next.clone(), last);
                joined = self.contexts.pending(&settled) < self.contexts.pending(&next);
                commands.extend(more);
                Ok(self.control(settled, last, domain)?)
            }
            Outcome::Beyond(what, span) => Err((what, span)),
        };
        let before = &self.controls[from as usize].live;
        let after = target.map_or(&[][..], |t| &self.controls[t as usize].live);
        let transition = domain.transition(before, &commands, after);
        self.bytes += (256 + 48 * commands.len() + 8 * (before.len() + after.len())) as u64;
        let step = PathStep { thread: name.thread, what: name.what, joined, commands, way: 0 };
        self.steps.push(Prepared { step, target, transition });
        Ok(())
    }

    /// A control state without what does not matter in the last context: where exactly the others are, what they have buffered, and which of
    /// the stores of the active thread leave together.
    pub fn settled(&self, mut at: ContextControl, last: bool) -> (Vec<Command>, ContextControl) {
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
            let groups = self.contexts.groups(&at.control, at.active);
            if groups.0.len() > 1 {
                let (moves, united) = groups.united(self.contexts.cells(), at.active);
                commands = moves;
                at.control.buffers[at.active.index()] = united.shape();
            }
        }
        (commands, at)
    }

    /// The number of a control state.
    pub fn control(&mut self, at: ContextControl, last: bool, domain: &D) -> Result<u32, Reason> {
        let key = (at, last);
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        let number = self.controls.len() as u32;
        let live = self.relevance.live(&self.contexts, &key.0, last);
        if live.len() > domain.most_cells() {
            let (cells, most) = (live.len(), domain.most_cells());
            let what = format!("{cells} cells that matter at once do not fit: this domain holds {most} here");
            return Err(Reason::Unsupported(what, None));
        }
        let at = key.0.clone();
        self.bytes += (512 + 4 * live.len() + 96 * at.control.locations.len()) as u64;
        self.numbers.insert(key, number);
        let (switches, members) = ([None, None], Vec::new());
        self.controls.push(ControlNode { at, last, live, edges: None, switches, evidence: None, members });
        Ok(number)
    }

    /// What states with this control state may be evidence for.
    pub fn evidence(&mut self, control: u32, domain: &D, limits: &Limits) -> Result<(), Reason> {
        let ControlNode { at, live, evidence, .. } = &self.controls[control as usize];
        if evidence.is_some() {
            return Ok(());
        }
        let mut found = Vec::new();
        for (property, p) in self.properties.iter().enumerate() {
            for machine::Evidence { case: flushed, commands } in
                self.contexts.evidence(at, p).unwrap_or_default()
            {
                if let Some(reason) = limits.exceeded(self.bytes) {
                    return Err(reason);
                }
                let transition = domain.transition(live, &commands, &[]);
                found.push(Evidence { property, flushed, commands, transition });
            }
        }
        self.controls[control as usize].evidence = Some(found);
        Ok(())
    }
}
