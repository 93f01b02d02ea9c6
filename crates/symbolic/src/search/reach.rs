//! Reachability over control x data: Algorithm 1 of FENCES12, with subsumption.
//!
//! For each control state, FENCES12 keeps one growing disjunction of formulas. Here the disjunction is a list of domain states, none of which covers
//! another: a new state is dropped if a stored one covers it; otherwise the new state replaces the stored states that it covers.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use fencewright_memory::Machine;
use fencewright_program::Property;
use fencewright_verdict::{Limits, Order, Progress, Reason};

use super::explore::{Counterexample, Finding, ReachedControl, Search, Unmodelled};
use crate::domain::Domain;

/// The result of a search.
pub enum Reached<M: Machine, S> {
    /// All reachable control states with their domain states: an inductive invariant, without evidence about any property.
    Closed(Vec<ReachedControl<M::Control, S>>),
    /// A path to a state that may be evidence about a property.
    Evidence(Counterexample<M>),
    /// No evidence was found, but some reachable states may be missing.
    Unmodelled(Unmodelled),
    /// A limit was reached.
    Stopped(Reason),
}

/// A search of a machine with a single phase, which stops at the first evidence.
pub struct Reach<'a, M: Machine<Phase = ()>, D: Domain> {
    search: Search<'a, M, D>,
    order: Order,
    queue: VecDeque<u32>,
    findings: Vec<Finding>,
}

/// Why the search stops before its queue is empty.
enum Stop {
    Evidence(Finding),
    Limit(Reason),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Stop::Limit(reason)
    }
}

impl<'a, M: Machine<Phase = ()>, D: Domain> Reach<'a, M, D> {
    /// A search of a machine for evidence about properties.
    pub fn new(machine: &'a M, properties: &'a [Property], domain: &'a mut D, limits: &'a Limits) -> Self {
        let search = Search::new(machine, properties, domain, limits).dropping_covered();
        Reach { search, order: Order::BreadthFirst, queue: VecDeque::new(), findings: Vec::new() }
    }

    /// The same search in this order; the default is breadth first.
    pub fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
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

    /// Searches until the state space is exhausted, evidence is found, or a limit is reached.
    pub fn run(&mut self, limits: &Limits, progress: &Progress) -> Reached<M, D::State> {
        match self.explore(limits, progress) {
            Err(Stop::Evidence(finding)) => match self.search.counterexample(&finding) {
                Ok(path) => Reached::Evidence(path),
                Err(reason) => Reached::Stopped(reason),
            },
            Err(Stop::Limit(reason)) => Reached::Stopped(reason),
            Ok(()) => match self.search.unmodelled() {
                Some(unmodelled) => Reached::Unmodelled(unmodelled.clone()),
                None => Reached::Closed(self.search.reached()),
            },
        }
    }

    fn explore(&mut self, limits: &Limits, progress: &Progress) -> Result<(), Stop> {
        let Reach { search, order, queue, findings } = self;
        let mut added = |search: &mut Search<'a, M, D>, queue: &mut VecDeque<u32>, node: u32| {
            queue.push_back(node);
            search.look(node, findings)?;
            findings.first().map_or(Ok(()), |finding| Err(Stop::Evidence(*finding)))
        };
        for control in search.machine().initial_controls() {
            search.start(control, &mut |search, node| added(search, queue, node))?;
        }
        let mut rounds = 0u64;
        loop {
            let next = match order {
                Order::BreadthFirst => queue.pop_front(),
                Order::DepthFirst => queue.pop_back(),
            };
            let Some(node) = next else { return Ok(()) };
            rounds += 1;
            if rounds.is_multiple_of(256) {
                progress.states.store(search.states() as u64, Ordering::Relaxed);
                progress.frontier.store(queue.len() as u64, Ordering::Relaxed);
                progress.bytes.store(search.bytes(), Ordering::Relaxed);
            }
            if let Some(reason) = limits.exceeded(search.bytes()) {
                return Err(Stop::Limit(reason));
            }
            if !search.is_covered(node) {
                search.expand(node, (), &mut |search, node| added(search, queue, node))?;
            }
        }
    }
}
