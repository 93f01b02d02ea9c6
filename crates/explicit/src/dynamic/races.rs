//! Events of the current execution: the happens-before relation, and the races to be reversed.

use super::explore::{Node, Observer, Search};
use super::footprint::{Item, Key};
use super::machine::Stepped;
use super::state::{NONE, State};
use super::wakeup::{Branch, Sequence, insert};

/// Number of replayed events between two polls of the observer.
const EVENTS_AT_A_STRETCH: u64 = 256;

/// The vector clock of an event: for each agent, the index of its last event that happens before the event or is the event itself, plus 1; 0 if there
/// is none.
type Clock = Box<[u32]>;

/// An event of the current execution.
pub(super) struct Event {
    pub(super) branch: Branch,
    clock: Clock,
    /// The part of the clock that does not depend on footprints; `None` unless the event waits.
    base: Option<Clock>,
    /// For each item of the footprint, the last accesses to its object before this event.
    links: Box<[Link]>,
    /// The previous event of the agent, or [`NONE`].
    previous: u32,
    /// Earlier events that race with this one directly: no event lies between them in happens-before order.
    races: Vec<u32>,
    /// Whether the event releases the lock.
    unlocks: bool,
    /// For a flush, the number of store fences issued before the store.
    fences: u32,
}

/// The last access to an object, and the last write; [`NONE`] if there was none.
#[derive(Clone, Copy)]
pub(super) struct Link {
    access: u32,
    write: u32,
}

/// The link of an object that no event has accessed.
pub(super) const NOWHERE: Link = Link { access: NONE, write: NONE };

impl Event {
    /// Whether the event with index `number`, a step of `agent`, is this event or happens before it.
    fn is_after(&self, number: u32, agent: u32) -> bool {
        self.clock[agent as usize] > number
    }

    fn item(&self, key: Key) -> usize {
        self.branch.footprint.iter().position(|i| i.key == key).expect("the event has accessed it")
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

impl Search<'_> {
    fn at(&self, number: u32) -> &Event {
        self.nodes[number as usize].event.as_ref().expect("the event has happened")
    }

    /// The clock of the next step of an agent, not counting conflicts of its footprint: program order, a store before its flush, flushes before a
    /// step that waits for an empty buffer, and flushes ordered by a store fence.
    fn base(&self, agent: usize, step: Option<&Stepped>) -> Clock {
        let agents = &self.machine.tables.agents;
        let mut clock = vec![0; self.last.len()].into_boxed_slice();
        let mut after = |number: u32| {
            if number != NONE {
                join(&mut clock, &self.at(number).clock);
            }
        };
        after(self.last[agent]);
        if let Some(flushed) = step.and_then(|s| s.flushed) {
            after(flushed.issuer);
            let fenced = flushed.fences > 0;
            let others = agents.flushers(agents.thread(agent)).filter(|other| fenced && *other != agent);
            for other in others {
                let mut number = self.last[other];
                while number != NONE && self.at(number).fences >= flushed.fences {
                    number = self.at(number).previous;
                }
                after(number);
            }
        }
        if step.is_some_and(|s| s.drains) {
            agents.flushers(agent).for_each(|flusher| after(self.last[flusher]));
        }
        clock
    }

    /// The events of other agents that conflict with a step. For each key, the accesses before its last write are left out, because they happen
    /// before that write.
    fn conflicts(&self, agent: usize, step: &Stepped) -> Vec<u32> {
        let agents = &self.machine.tables.agents;
        let mut found = Vec::new();
        for item in step.footprint.iter() {
            if item.is_store() {
                found.extend(step.flushed.map(|f| f.reader));
                continue;
            }
            let Link { mut access, write } = self.heads[item.key as usize];
            if item.flushes() {
                found.push(access);
            } else if item.writes() {
                while access != NONE {
                    found.push(access);
                    let event = self.at(access);
                    let n = event.item(item.key);
                    access = if event.branch.footprint[n].writes() { NONE } else { event.links[n].access };
                }
            } else {
                found.push(write);
                if let Some(thread) = self.machine.tables.buffer_owner(item.key) {
                    found.extend(agents.flushers(thread).map(|flusher| self.last[flusher]));
                }
            }
        }
        found.retain(|&number| number != NONE && self.at(number).branch.agent != agent as u32);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The event for a step that is taken now.
    pub(super) fn event(&self, number: u32, branch: Branch, step: &Stepped) -> Event {
        let agent = branch.agent as usize;
        let base = self.base(agent, Some(step));
        let conflicts = self.conflicts(agent, step);
        let mut clock = base.clone();
        conflicts.iter().for_each(|&c| join(&mut clock, &self.at(c).clock));
        clock[agent] = number + 1;
        let is_race = |&e: &u32| {
            let of = self.at(e).branch.agent;
            let between = |&d: &u32| d != e && self.at(d).is_after(e, of);
            base[of as usize] <= e && !conflicts.iter().any(between)
        };
        let races = conflicts.iter().copied().filter(is_race).collect();
        let waits = branch.footprint.iter().any(|item| item.waits());
        Event {
            clock,
            base: waits.then_some(base),
            links: branch.footprint.iter().map(|item| self.link(item)).collect(),
            previous: self.last[agent],
            races,
            unlocks: step.unlocks,
            fences: step.flushed.map_or(0, |f| f.fences),
            branch,
        }
    }

    fn link(&self, item: &Item) -> Link {
        if item.is_store() { NOWHERE } else { self.heads[item.key as usize] }
    }

    /// Appends an event: it becomes the last event of its agent, and the last access to each object in its footprint. Buffered stores have no entry
    /// in `heads`. A flush does not become the last access to its thread's buffer: [`conflicts`](Self::conflicts) finds it as the last event of its
    /// agent.
    pub(super) fn enter(&mut self, number: u32, event: Event) {
        for item in event.branch.footprint.iter().filter(|i| !i.is_store() && !i.flushes()) {
            let head = &mut self.heads[item.key as usize];
            head.access = number;
            if item.writes() {
                head.write = number;
            }
        }
        self.last[event.branch.agent as usize] = number;
        self.nodes[number as usize].event = Some(event);
    }

    /// Removes the last event and restores the accesses before it.
    pub(super) fn leave(&mut self, number: usize) {
        let event = self.nodes[number].event.take().expect("the event has happened");
        for (item, link) in event.branch.footprint.iter().zip(&event.links) {
            if !item.is_store() {
                self.heads[item.key as usize] = *link;
            }
        }
        self.last[event.branch.agent as usize] = event.previous;
    }

    /// Adds sequences that reverse the races of the current execution to the wakeup trees of its nodes. Races that earlier executions had too are
    /// reversed again, because their sequences may be new: a sequence contains all later events that do not happen after the first step of the race,
    /// also those after the race, and these differ between executions.
    pub(super) fn reverse_races(&mut self, observer: &mut impl Observer) {
        for number in 0..self.nodes.len() as u32 - 1 {
            let event = self.at(number);
            let agent = event.branch.agent;
            let mut tried = Vec::new();
            if let Some(base) = event.base.clone() {
                let waits = event.branch.footprint.iter().zip(&event.links).filter(|(item, _)| item.waits());
                let waits: Vec<(Key, u32)> = waits.map(|(item, link)| (item.key, link.write)).collect();
                for (key, write) in waits {
                    self.reverse_wait(key, write, agent, &base, &mut tried, observer);
                }
            }
            for race in self.at(number).races.clone() {
                if !tried.contains(&race) {
                    self.reverse(race, agent, observer);
                }
                if self.stopped {
                    return;
                }
            }
        }
        // Steps that are disabled at the end may have been enabled before some write, so they are moved before such writes too.
        for agent in 0..self.last.len() as u32 {
            let awaited = self.machine.awaited(self.state(), agent as usize);
            if awaited.is_empty() {
                continue;
            }
            let base = self.base(agent as usize, None);
            for key in awaited {
                let write = self.heads[key as usize].write;
                self.reverse_wait(key, write, agent, &base, &mut Vec::new(), observer);
            }
        }
    }

    /// Goes back through the writes to a key that an agent waits for, and moves the step of the agent before each of them, until the step is enabled
    /// there.
    fn reverse_wait(
        &mut self,
        key: Key,
        mut write: u32,
        agent: u32,
        base: &[u32],
        tried: &mut Vec<u32>,
        observer: &mut impl Observer,
    ) {
        while write != NONE && !self.stopped {
            let event = self.at(write);
            let of = event.branch.agent;
            let before = event.links[event.item(key)].write;
            let unlocks = event.unlocks;
            if base[of as usize] > write {
                return;
            }
            // Skip the release of the lock: before it, the lock was held, so the step was not enabled.
            if !unlocks && of != agent {
                tried.push(write);
                if self.reverse(write, agent, observer) {
                    return;
                }
            }
            write = before;
        }
    }

    /// Adds the sequence that moves the step of an agent before event `number`: all later events that do not happen after that event, and then the
    /// step. Returns whether the step is enabled there; false also if the search is to stop.
    fn reverse(&mut self, number: u32, agent: u32, observer: &mut impl Observer) -> bool {
        let of = self.at(number).branch.agent;
        let mut state = self.machine.copy(&self.nodes[number as usize].state);
        let mut sequence = Vec::with_capacity(self.nodes.len() - number as usize);
        for later in number + 1..self.nodes.len() as u32 - 1 {
            // There may be many races with short sequences, so the replayed events of all races are counted together.
            self.redone += 1;
            if self.redone.is_multiple_of(EVENTS_AT_A_STRETCH) && self.is_over(observer) {
                return false;
            }
            if self.at(later).is_after(number, of) {
                continue;
            }
            sequence.push(later);
            self.do_again(later, &mut state);
        }
        debug_assert!(
            self.is_replayed(number, &sequence, &state),
            "the replayed events lead to the same state"
        );
        let step = self.machine.step(&state, agent as usize, 0, None);
        self.machine.recycle(state);
        let Some(step) = step else { return false };
        let (before, rest) = self.nodes.split_at_mut(number as usize + 1);
        let event = |&later: &u32| rest[(later - number) as usize - 1].event.as_ref();
        let Node { trees, asleep, .. } = &mut before[number as usize];
        for alternative in 0..step.total {
            let last = Branch { agent, alternative, total: step.total, footprint: step.footprint.clone() };
            let mut all = Sequence::with_capacity(sequence.len() + 1);
            all.extend(sequence.iter().filter_map(event).map(|event| &event.branch).chain([&last]));
            let added = insert(trees, asleep, all);
            self.waiting += added;
            // One alternative suffices, because the others are added when this one is taken.
            if added > 0 {
                break;
            }
        }
        self.machine.recycle(step.next);
        true
    }

    /// Applies an event of the current execution to a state that was reached without some of the earlier events. None of the missing events happens
    /// before this event, so its effect is the same and the recorded outcome is copied. Computing the steps anew dominated the search time.
    fn do_again(&self, number: u32, state: &mut State) {
        let Branch { agent, footprint, .. } = &self.at(number).branch;
        self.machine.copy_outcome(
            *agent as usize,
            footprint,
            number,
            &self.nodes[number as usize + 1].state,
            state,
        );
    }

    /// Whether replaying the steps of the sequence from node `number` leads to `expected`.
    fn is_replayed(&mut self, number: u32, sequence: &[u32], expected: &State) -> bool {
        let mut state = self.nodes[number as usize].state.clone();
        for &later in sequence {
            let Branch { agent, alternative, .. } = self.at(later).branch;
            let step = self.machine.step(&state, agent as usize, alternative, None);
            state = step.expect("an event does not depend on what does not happen before it").next;
        }
        state.is_like(expected)
    }
}
