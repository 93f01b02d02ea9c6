//! The context machine restricted to the relevant cells, switches and states; see [`super::relevance`].

use fencewright_memory::{CellId, Command, Contents, Evidence, Machine, Outcome, Step};
use fencewright_program::{Property, ThreadId};

use super::groups::Groups;
use super::machine::{ContextControl, ContextPhase, ContextStep, Contexts, Move};
use super::relevance::Relevance;

/// The context machine of a program, restricted to the parts that are relevant to some properties.
pub struct Relevant<'a, 'p> {
    contexts: Contexts<'p>,
    /// The machine `contexts`, but with only as many groups per buffer as suffice in the last context.
    in_last: Contexts<'p>,
    relevance: &'a Relevance<'p>,
}

/// A control state of the context machine, and whether the current context is the last one. In the last context fewer parts of the state are
/// relevant, because no other thread moves any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RelevantControl {
    /// The control state of the machine `contexts`.
    pub at: ContextControl,
    /// Whether the context is the last one.
    pub last: bool,
}

/// A subset of the steps of a control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The steps inside the context: edges of the active thread.
    Inside,
    /// The switches to another thread, which end the context.
    Switch {
        /// Whether the new context is the last one.
        last: bool,
    },
}

/// The name of a step, unique among the steps of a control state.
#[derive(Clone, Copy, Debug)]
pub struct RelevantStepName {
    /// The thread that is active before the step.
    pub thread: ThreadId,
    /// The action of the step.
    pub what: Move,
    /// Whether the groups of buffered stores of the thread that is active after the step were merged into one, because the last context begins.
    pub joined: bool,
}

impl<'a, 'p> Relevant<'a, 'p> {
    /// Restricts a context machine by the results of the analysis.
    pub fn new(contexts: Contexts<'p>, relevance: &'a Relevance<'p>) -> Self {
        let in_last = contexts.with_groups(1 + relevance.sees_memory() as u32);
        Relevant { contexts, in_last, relevance }
    }

    /// The context machine without the restriction.
    pub fn contexts(&self) -> &Contexts<'p> {
        &self.contexts
    }

    /// Whether a property depends on memory.
    pub fn sees_memory(&self) -> bool {
        self.relevance.sees_memory()
    }

    /// The initial control states; `last` says whether the first context is also the last one.
    pub fn beginnings(&self, last: bool) -> Vec<RelevantControl> {
        let hopeful = |at: &ContextControl| !(last && self.relevance.hopeless(&self.contexts, at));
        let first = self.contexts.initial_controls().into_iter().filter(hopeful);
        first.map(|at| RelevantControl { at: self.settled(at, last).1, last }).collect()
    }

    /// The relevant steps that end the context and make another thread active; `None` if `stop` interrupts the computation.
    fn switches(&self, at: &ContextControl, last: bool, stop: &dyn Fn() -> bool) -> Option<Vec<ContextStep>> {
        let ending = self.relevance.ending(at.active, at.control.locations[at.active.index()]);
        let pending = self.contexts.pending(at);
        let flushes = match (ending.any, ending.drained && pending > 0) {
            (true, _) => 0..pending + 1,
            (false, true) => pending..pending + 1,
            (false, false) => 0..0,
        };
        let mut steps = Vec::new();
        for (to, code) in self.contexts.program().threads().filter(|(t, _)| *t != at.active) {
            if stop() {
                return None;
            }
            let stuck = code.edges_from(at.control.locations[to.index()]).next().is_none();
            if stuck && self.contexts.groups(&at.control, to).0.is_empty() {
                continue;
            }
            let hopeless = |step: &ContextStep| match &step.outcome {
                Outcome::Control(next) => last && self.relevance.hopeless(&self.contexts, next),
                Outcome::Beyond(..) => false,
            };
            let switches = flushes.clone().filter_map(|count| self.contexts.switch(at, count, to));
            steps.extend(switches.filter(|step| !hopeless(step)));
        }
        Some(steps)
    }

    /// In the last context, drops from a control state the parts that are irrelevant there: the exact locations of the other threads; their buffers,
    /// unless a property is about final states; and, unless a property depends on memory, which stores of the active thread leave together.
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
            let groups = self.contexts.groups(&at.control, at.active);
            if groups.0.len() > 1 {
                let (moves, united) = groups.united(self.contexts.cells(), at.active);
                commands = moves;
                at.control.buffers[at.active.index()] = united.shape();
            }
        }
        (commands, at)
    }
}

impl Machine for Relevant<'_, '_> {
    type Control = RelevantControl;
    type Name = RelevantStepName;
    type Phase = Phase;

    fn initial_controls(&self) -> Vec<RelevantControl> {
        self.beginnings(false)
    }

    fn initial_values(&self) -> Vec<Command> {
        self.contexts.initial_values()
    }

    fn steps_in(
        &self,
        phase: Phase,
        control: &RelevantControl,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Step<RelevantStepName, RelevantControl>>> {
        let contexts = if control.last { &self.in_last } else { &self.contexts };
        let (last, steps) = match phase {
            Phase::Inside => (control.last, contexts.steps_in(ContextPhase::Inside, &control.at, stop)?),
            Phase::Switch { last } => (last, self.switches(&control.at, last, stop)?),
        };
        let relevant = |ContextStep { name, mut commands, outcome }: ContextStep| {
            let mut joined = false;
            let outcome = match outcome {
                Outcome::Control(next) => {
                    let pending = self.contexts.pending(&next);
                    let (moves, at) = self.settled(next, last);
                    joined = self.contexts.pending(&at) < pending;
                    commands.extend(moves);
                    Outcome::Control(RelevantControl { at, last })
                }
                Outcome::Beyond(what, span) => Outcome::Beyond(what, span),
            };
            let name = RelevantStepName { thread: name.thread, what: name.what, joined };
            Step { name, commands, outcome }
        };
        Some(steps.into_iter().map(relevant).collect())
    }

    /// Evidence is searched for in last contexts only, because each context is the last one for some bound.
    fn evidence(&self, control: &RelevantControl, property: &Property) -> Option<Vec<Evidence>> {
        if control.last { self.contexts.evidence(&control.at, property) } else { Some(Vec::new()) }
    }

    fn live(&self, control: &RelevantControl) -> Vec<CellId> {
        self.relevance.live(&self.contexts, &control.at, control.last)
    }

    fn contents(&self) -> Vec<Contents> {
        self.contexts.contents()
    }
}
