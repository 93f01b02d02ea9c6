//! The current execution, with its happens-before relation and its races.

use std::collections::HashMap;
use std::rc::Rc;

use super::footprint::{Footprint, Object, Step};

/// A set of events that is closed under happens-before predecessors: for each agent, by its number, how many of its events are in the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u32>);

impl Clock {
    pub(super) fn of(&self, agent: usize) -> u32 {
        self.0.get(agent).copied().unwrap_or(0)
    }

    fn set(&mut self, agent: usize, count: u32) {
        if self.0.len() <= agent {
            self.0.resize(agent + 1, 0);
        }
        self.0[agent] = count;
    }

    fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*more);
        }
    }
}

const NOTHING: &Clock = &Clock(Vec::new());

/// An access: the index of its event in the execution, and its index in the footprint.
type Position = (usize, usize);

/// An event of the current execution.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) agent: usize,
    /// The number of the event among those of its agent, from 1.
    pub(super) count: u32,
    pub(super) footprint: Rc<Footprint>,
    /// The event itself and all events that happen before it.
    pub(super) clock: Clock,
    /// The earlier events that race with this one: they are of other agents and conflict with it, and no event happens after them and before this
    /// one.
    pub(super) races: Vec<usize>,
    /// Earlier events that may have disabled the step for some time: see [`Execution::blockers`].
    pub(super) blockers: Vec<usize>,
    /// For each object in the footprint, the previous access to it.
    before: Vec<Option<Position>>,
    /// The previous event of the same agent, if there is one.
    previous: Option<usize>,
}

/// The current execution: its events, and the data from which happens-before is extended.
#[derive(Debug, Default)]
pub(super) struct Execution {
    pub(super) events: Vec<Taken>,
    /// The last access to each object.
    heads: HashMap<Object, Position>,
    /// The last event of each agent.
    last: Vec<Option<usize>>,
}

impl Execution {
    /// Appends an event of an agent: any of the alternatives of `step`, because they all have the same footprint.
    pub(super) fn push(&mut self, agent: usize, step: &Step) {
        if self.last.len() <= agent {
            self.last.resize(agent + 1, None);
        }
        let number = self.events.len();
        let blockers = self.blockers(agent, &step.waits);
        let mut candidates = Vec::new();
        let mut before = Vec::new();
        for (n, (object, writes)) in step.footprint.items().enumerate() {
            let head = self.heads.insert(object, (number, n));
            before.push(head);
            // A write may race with the last write and all later accesses, a read only with the last write. Accesses before the last write happen
            // before that write, so they cannot race with this event.
            for (event, written) in self.accesses(head) {
                if writes || written {
                    candidates.push(event);
                }
                if written {
                    break;
                }
            }
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.dedup();
        let mut clock = self.known(agent).clone();
        let mut races = Vec::new();
        for earlier in candidates {
            if !self.is_before(earlier, &clock) {
                races.push(earlier);
                clock.join(&self.events[earlier].clock);
            }
        }
        let count = clock.of(agent) + 1;
        clock.set(agent, count);
        let (footprint, previous) = (Rc::clone(&step.footprint), self.last[agent].replace(number));
        self.events.push(Taken { agent, count, footprint, clock, races, blockers, before, previous });
    }

    /// Removes the last event.
    pub(super) fn pop(&mut self) {
        let Some(event) = self.events.pop() else { return };
        self.last[event.agent] = event.previous;
        for ((object, _), before) in event.footprint.items().zip(event.before) {
            match before {
                Some(position) => _ = self.heads.insert(object, position),
                None => _ = self.heads.remove(&object),
            }
        }
    }

    /// The events that happen before every possible next event of an agent: its last event, and the events that happen before its last event.
    pub(super) fn known(&self, agent: usize) -> &Clock {
        self.last.get(agent).copied().flatten().map_or(NOTHING, |event| &self.events[event].clock)
    }

    /// The value of [`Execution::known`] for the agent of an event, just before the event was taken.
    pub(super) fn known_before(&self, event: usize) -> &Clock {
        self.events[event].previous.map_or(NOTHING, |previous| &self.events[previous].clock)
    }

    /// Whether a clock contains an event.
    pub(super) fn is_before(&self, event: usize, clock: &Clock) -> bool {
        clock.of(self.events[event].agent) >= self.events[event].count
    }

    /// The events that wrote an object for which the next step of an agent waits, except the events in [`Execution::known`], which happen before any
    /// possible next event of the agent. The step may have been enabled before such an event and disabled after it.
    pub(super) fn blockers(&self, agent: usize, waits: &[Object]) -> Vec<usize> {
        let known = self.known(agent);
        let mut blockers = Vec::new();
        for object in waits {
            let writes = self.accesses(self.heads.get(object).copied()).filter(|(_, written)| *written);
            // The writes to an object are ordered by happens-before: if `known` contains one of them, it contains all earlier ones.
            blockers
                .extend(writes.map(|(event, _)| event).take_while(|event| !self.is_before(*event, known)));
        }
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// The accesses to an object from `from` backwards, each with whether it is a write.
    fn accesses(&self, from: Option<Position>) -> impl Iterator<Item = (usize, bool)> {
        let before = |&(event, access): &Position| self.events[event].before[access];
        std::iter::successors(from, before).map(|(event, access)| {
            let footprint = &self.events[event].footprint;
            (event, footprint.items().nth(access).is_some_and(|(_, writes)| writes))
        })
    }

    /// The agents that can begin a sequence: no earlier event of the sequence happens before their first event there.
    pub(super) fn initials(&self, sequence: &[usize]) -> Vec<usize> {
        let mut first: Vec<(usize, u32)> = Vec::new();
        let mut initials = Vec::new();
        for &event in sequence {
            let Taken { agent, count, clock, .. } = &self.events[event];
            if first.iter().any(|(known, _)| known == agent) {
                continue;
            }
            if first.iter().all(|&(other, its)| clock.of(other) < its) {
                initials.push(*agent);
            }
            first.push((*agent, *count));
        }
        initials
    }
}
