//! The current execution: what happens before what, and which races there are.

use std::collections::HashMap;
use std::rc::Rc;

use super::footprint::{Footprint, Step, Thing};

/// For each agent, by its number, how many of its events are known.
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
    /// The events that happen before, and this one.
    pub(super) clock: Clock,
    /// Earlier events of other agents that conflict with this one, with no event in between that happens after the one and before the other.
    pub(super) races: Vec<usize>,
    /// Earlier events that may have disabled the step for a while: see [`Execution::blockers`].
    pub(super) blockers: Vec<usize>,
    /// For each thing touched, the access before.
    before: Vec<Option<Position>>,
    /// The event of the same agent before.
    previous: Option<usize>,
}

/// The current execution.
#[derive(Debug, Default)]
pub(super) struct Execution {
    pub(super) events: Vec<Taken>,
    /// The last access to each thing.
    heads: HashMap<Thing, Position>,
    /// The last event of each agent.
    last: Vec<Option<usize>>,
}

impl Execution {
    /// Appends an event: an alternative of a step.
    pub(super) fn push(&mut self, agent: usize, step: &Step) {
        if self.last.len() <= agent {
            self.last.resize(agent + 1, None);
        }
        let number = self.events.len();
        let blockers = self.blockers(agent, &step.waits);
        let mut candidates = Vec::new();
        let mut before = Vec::new();
        for (n, (thing, writes)) in step.footprint.items().enumerate() {
            let head = self.heads.insert(thing, (number, n));
            before.push(head);
            // All accesses from the last write on are candidates for a write, and the last write alone for a read. What conflicts with earlier accesses
            // happens after them because of that write.
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
        for ((thing, _), before) in event.footprint.items().zip(event.before) {
            match before {
                Some(position) => _ = self.heads.insert(thing, position),
                None => _ = self.heads.remove(&thing),
            }
        }
    }

    /// What happens before the next event of an agent, whatever that is: its last event, and what happens before that.
    pub(super) fn known(&self, agent: usize) -> &Clock {
        self.last.get(agent).copied().flatten().map_or(NOTHING, |event| &self.events[event].clock)
    }

    /// The same at the time when an event was taken, for its agent.
    pub(super) fn known_before(&self, event: usize) -> &Clock {
        self.events[event].previous.map_or(NOTHING, |previous| &self.events[previous].clock)
    }

    /// Whether an event is among those that a clock knows.
    pub(super) fn is_before(&self, event: usize, clock: &Clock) -> bool {
        clock.of(self.events[event].agent) >= self.events[event].count
    }

    /// The events that wrote something that the next step of an agent waits for, and are not known to the agent: it may have been enabled before any of
    /// them, and disabled after.
    pub(super) fn blockers(&self, agent: usize, waits: &[Thing]) -> Vec<usize> {
        let known = self.known(agent);
        let mut blockers = Vec::new();
        for thing in waits {
            let writes = self.accesses(self.heads.get(thing).copied()).filter(|(_, written)| *written);
            // The writes are ordered, so the agent knows those before one that it knows.
            blockers
                .extend(writes.map(|(event, _)| event).take_while(|event| !self.is_before(*event, known)));
        }
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// The accesses to a thing from this one backwards, each with whether it is a write.
    fn accesses(&self, from: Option<Position>) -> impl Iterator<Item = (usize, bool)> {
        let before = |&(event, access): &Position| self.events[event].before[access];
        std::iter::successors(from, before).map(|(event, access)| {
            let footprint = &self.events[event].footprint;
            (event, footprint.items().nth(access).is_some_and(|(_, writes)| writes))
        })
    }

    /// The agents of those events, of a sequence, that no earlier event of the sequence happens before.
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
