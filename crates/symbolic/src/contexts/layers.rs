//! The search strategy of `contexts`: explores context by context.
//!
//! A state does not record how many contexts its executions have. It belongs to the first context in which it is found, its *layer*. A state that is
//! found again in a later context is not expanded again: everything that it reaches from the later context, it also reaches from its layer, where
//! more contexts remain. So allowing one more context means continuing from the newest layer.
//!
//! The last context is special: no other thread moves after it, so its states are kept separately and are smaller (see [`super::relevance`]). For k
//! contexts, a last context can begin after any of the layers from 1 to k - 1. Only those that begin after layer k - 1 are new; the others were
//! explored with a smaller k. Evidence, that is, a state that decides a property, is searched for in last contexts only, because each context is the
//! last one for some k.

use std::mem::{replace, take};
use std::sync::atomic::Ordering;

use fencewright_program::Property;
use fencewright_verdict::{Limits, Progress, Reason};

use super::machine::Move;
use super::relevant::{Phase, Relevant};
use crate::domain::Domain;
use crate::search::explore::{Counterexample, Finding, Search, Unmodelled};

/// The result of [`Layers::next`].
pub enum Next<'a, 'p> {
    /// A path to a state that may be evidence. Calling [`Layers::next`] again finds others.
    Evidence(Counterexample<Relevant<'a, 'p>>),
    /// Everything within the bound has been explored, and all evidence has been returned.
    Done {
        /// Whether more contexts would reach no additional states.
        saturated: bool,
    },
    /// A limit was reached.
    Stopped(Reason),
}

/// The number of groups that suffice for the buffer of a thread in executions with `bound` contexts: one for each context of the thread that is
/// followed by another thread's context, one for stores that never leave, and, if a property depends on memory, one for stores that leave in the last
/// context.
pub fn most_groups(bound: u32, sees_memory: bool) -> u32 {
    1 + (bound - 1).div_ceil(2) + sees_memory as u32
}

/// A search that explores layer by layer, and can be continued with a larger bound.
pub struct Layers<'s, 'a, 'p, D: Domain> {
    search: Search<'s, Relevant<'a, 'p>, D>,
    /// Whether a property depends on memory.
    sees_memory: bool,
    /// Maximum number of groups in a buffer before the last context.
    groups: u32,
    /// The first layer in which groups were merged because there were too many; `None` if none were merged.
    merged: Option<u32>,
    /// The current bound on the number of contexts.
    bound: u32,
    /// The number of layers that have been explored.
    explored: u32,
    stage: Stage,
    /// Whether some layer had no new states, so that there are no further layers.
    closed: bool,
    /// The states of the newest layer.
    frontier: Vec<u32>,
    /// Whether last contexts have been begun from the states of the newest layer.
    ended: bool,
    /// The states of earlier layers from which this search has not begun last contexts.
    earlier: Vec<u32>,
    /// The states from which the next context begins.
    turning: Vec<u32>,
    /// The number of states in `turning` from which the next context has been begun.
    turned: usize,
    /// The states of the layer that is being explored.
    queue: Vec<u32>,
    /// The number of states in `queue` that have been expanded.
    expanded: usize,
    /// Evidence that has not been returned yet.
    findings: Vec<Finding>,
}

/// What the search explores at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not started, or waiting for a larger bound.
    Waiting,
    /// Exploring a layer that is not the last context.
    Deepening,
    /// Exploring last contexts.
    Finishing,
}

impl<'s, 'a, 'p, D: Domain> Layers<'s, 'a, 'p, D> {
    /// A search with this bound on the contexts and on the number of groups in a buffer.
    pub fn new(
        machine: &'s Relevant<'a, 'p>,
        properties: &'s [Property],
        domain: &'s mut D,
        (bound, groups): (u32, u32),
        limits: &'s Limits,
    ) -> Self {
        Layers {
            search: Search::new(machine, properties, domain, limits),
            sees_memory: machine.sees_memory(),
            groups,
            merged: None,
            bound,
            explored: 0,
            stage: Stage::Waiting,
            closed: false,
            frontier: Vec::new(),
            ended: false,
            earlier: Vec::new(),
            turning: Vec::new(),
            turned: 0,
            queue: Vec::new(),
            expanded: 0,
            findings: Vec::new(),
        }
    }

    /// Allows one more context, after everything within the current bound has been explored.
    pub fn deepen(&mut self) {
        self.bound += 1;
        self.stage = Stage::Waiting;
    }

    /// Whether the number of groups suffices for `bound` contexts: no two stores were merged that could have left in different contexts.
    pub fn suffices_for(&self, bound: u32) -> bool {
        let needed = |layer: u32| most_groups(bound + 1 - layer, self.sees_memory);
        self.merged.is_none_or(|layer| needed(layer) <= self.groups)
    }

    /// The number of stored states.
    pub fn states(&self) -> usize {
        self.search.states()
    }

    /// Estimated memory use, in bytes.
    pub fn bytes(&self) -> u64 {
        self.search.bytes()
    }

    /// The domain that represents values.
    pub fn domain(&self) -> &D {
        self.search.domain()
    }

    /// The first reason why some reachable states may be missing, if there is one.
    pub fn unmodelled(&self) -> Option<&Unmodelled> {
        self.search.unmodelled()
    }

    /// Continues the search until it finds evidence, ends, or reaches a limit.
    pub fn next(&mut self, limits: &Limits, progress: &Progress) -> Next<'a, 'p> {
        self.search_on(limits, progress).unwrap_or_else(Next::Stopped)
    }

    fn search_on(&mut self, limits: &Limits, progress: &Progress) -> Result<Next<'a, 'p>, Reason> {
        let mut rounds = 0u32;
        loop {
            if let Some(finding) = self.findings.last() {
                // The finding stays in the list until its path has been computed.
                let path = self.search.counterexample(finding)?;
                self.findings.pop();
                return Ok(Next::Evidence(path));
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(1024) {
                progress.states.store(self.states() as u64, Ordering::Relaxed);
                progress.frontier.store((self.queue.len() - self.expanded) as u64, Ordering::Relaxed);
                progress.bytes.store(self.bytes(), Ordering::Relaxed);
            }
            if rounds.is_multiple_of(16)
                && let Some(reason) = limits.exceeded(self.bytes())
            {
                return Err(reason);
            }
            if let Some(&node) = self.queue.get(self.expanded) {
                self.expanded += 1;
                self.notice_merged(node)?;
                self.expand(node, Phase::Inside)?;
            } else if let Some(&node) = self.turning.get(self.turned) {
                self.turned += 1;
                self.expand(node, Phase::Switch { last: self.stage == Stage::Finishing })?;
            } else {
                match self.stage {
                    Stage::Waiting => self.begin(limits)?,
                    Stage::Finishing => {
                        // A single thread has only one context.
                        let alone = self.search.machine().contexts().program().threads.len() == 1;
                        let saturated = alone || (self.closed && self.merged.is_none());
                        return Ok(Next::Done { saturated });
                    }
                    Stage::Deepening if self.queue.is_empty() => {
                        self.closed = true;
                        self.begin(limits)?;
                    }
                    Stage::Deepening => {
                        self.explored += 1;
                        let newest = take(&mut self.queue);
                        let mut before = replace(&mut self.frontier, newest);
                        if !replace(&mut self.ended, false) {
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
        (self.turned, self.expanded) = (0, 0);
        self.queue.clear();
        self.turning.clear();
        if !(last && self.ended) {
            self.turning.extend(&self.frontier);
        }
        if last {
            self.ended = true;
            // The previous search, with a smaller bound, has begun last contexts from the earlier layers. If the domain is discrete, that search had
            // the same states in these layers. Otherwise the previous search may have dropped a state that this search has kept, because another
            // state covered the dropped one.
            let earlier = take(&mut self.earlier);
            if !self.domain().is_discrete() {
                self.turning.extend(earlier);
            }
        }
        if self.explored > 0 {
            return Ok(());
        }
        for first in self.search.machine().beginnings(last) {
            if let Some(reason) = limits.exceeded(self.bytes()) {
                return Err(reason);
            }
            let Layers { search, queue, findings, .. } = self;
            search.start(first, &mut |search, node| {
                queue.push(node);
                search.look(node, findings)
            })?;
        }
        Ok(())
    }

    fn expand(&mut self, node: u32, phase: Phase) -> Result<(), Reason> {
        let Layers { search, queue, findings, .. } = self;
        search.expand(node, phase, &mut |search, node| {
            queue.push(node);
            search.look(node, findings)
        })
    }

    /// If a step from this node merges groups because there are too many, records the current layer as one with merged groups. Nodes of last contexts
    /// are ignored, and only the first such layer is recorded.
    fn notice_merged(&mut self, node: u32) -> Result<(), Reason> {
        if self.search.control_of(node).last {
            return Ok(());
        }
        let (new, mut names) = self.search.step_names(node, Phase::Inside)?;
        if new && names.any(|name| matches!(name.what, Move::Edge { merged: Some(_), .. })) {
            self.merged.get_or_insert(self.explored + 1);
        }
        Ok(())
    }
}
