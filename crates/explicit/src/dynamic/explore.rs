//! Depth-first search over executions; vector clocks keep the happens-before order of the events.
//!
//! The stack is the current execution. Each node has the state before its event, the [sleep set](super::wakeup) and the wakeup tree of the sequences
//! still to be explored. At a node without a tree any step that is not asleep is taken. When an execution has ended, each of its races is reversed.
//! Let an event `e` race directly with a later event `f`. The search forms a sequence: all events after `e` that do not happen after `e`, followed by
//! the step of the agent of `f`. This sequence is added to the wakeup tree of the node where `e` was taken.
//!
//! A step that waits (for the lock, or for values in memory) may have been enabled before a conflicting event, and be taken only much later or never.
//! So for these steps, and for steps that are disabled at the end of the execution, the search goes back through the writes to the awaited objects,
//! until it finds a write before which the step was enabled. These writes are totally ordered in every execution, so leaving out one write and the
//! events after it restores the earlier values.

use std::collections::VecDeque;

use fencewright_program::Event as Happened;
use fencewright_verdict::Executions;
use rustc_hash::FxHashSet;

use super::footprint::{Footprint, Item};
use super::machine::{Machine, Stepped};
use super::races::{Event, Link, NOWHERE};
use super::state::{NONE, State};
use super::wakeup::{Branch, Sequence, Tree, insert};

/// A state of the current execution, and what remains to be explored from it.
pub(super) struct Node {
    pub(super) state: State,
    pub(super) asleep: Vec<Branch>,
    pub(super) trees: VecDeque<Tree>,
    /// The event that leads to the next node; `None` in the last node.
    pub(super) event: Option<Event>,
    /// The hash of the state; `None` if the program has no loops, or if the state occurred before in the execution.
    identity: Option<u64>,
}

/// Inspects the states of the search, and decides when it stops.
pub trait Observer {
    /// Called after a step with this footprint. Returns whether the search goes on.
    fn reached(&mut self, search: &mut Search<'_>, thread: usize, footprint: &[Item]) -> bool;
    /// Called at the end of an execution; `sampled` says whether a `*` was tried with samples only in its last state. Returns whether some thread
    /// waits forever; `None` to stop.
    fn ended(&mut self, search: &mut Search<'_>, sampled: bool) -> Option<bool>;
    /// Polled with the bytes in use. Returns whether to stop.
    fn poll(&mut self, bytes: u64, count: &Executions) -> bool;
}

/// A search from one initial state.
pub struct Search<'p> {
    /// The interpreter, which computes the steps.
    pub machine: Machine<'p>,
    /// The numbers of executions and events explored so far.
    pub count: Executions,
    pub(super) nodes: Vec<Node>,
    /// For each object other than a buffered store, by its [`Key`](super::footprint::Key), the last access and the last write.
    pub(super) heads: Vec<Link>,
    /// The index of the last event of each agent, or `NONE`.
    pub(super) last: Vec<u32>,
    /// Whether the observer asked to stop.
    pub(super) stopped: bool,
    /// Number of events replayed in order to reverse races.
    pub(super) redone: u64,
    /// Number of steps in all wakeup trees.
    pub(super) waiting: usize,
    /// The hashes of the states of the current execution.
    path: FxHashSet<u64>,
    /// Whether an execution may return to an earlier state.
    loops: bool,
    /// Number of events at which an execution is cut.
    longest: usize,
}

impl<'p> Search<'p> {
    /// A new search; `loops` if threads may return to a location. An execution is cut when it has `longest` events.
    pub fn new(machine: Machine<'p>, loops: bool, longest: usize) -> Self {
        let heads = vec![NOWHERE; machine.tables.keys];
        let last = vec![NONE; machine.tables.agents.count()];
        Search {
            machine,
            count: Executions::default(),
            nodes: Vec::new(),
            heads,
            last,
            stopped: false,
            redone: 0,
            waiting: 0,
            path: FxHashSet::default(),
            loops,
            longest,
        }
    }

    /// The last state of the current execution.
    pub fn state(&self) -> &State {
        &self.nodes.last().expect("a search has a state").state
    }

    /// The events of the current execution, after the initial local steps of the threads.
    pub fn happened(&mut self) -> Vec<Happened> {
        let mut log = Vec::new();
        for node in &self.nodes {
            let Some(event) = &node.event else { break };
            let Branch { agent, alternative, .. } = event.branch;
            self.machine.step(&node.state, agent as usize, alternative, Some(&mut log));
        }
        log
    }

    /// Explores one execution of each [trace](super) from a state. Returns whether the search was completed.
    pub fn run(&mut self, initial: State, observer: &mut impl Observer) -> bool {
        self.nodes.clear();
        self.heads.fill(NOWHERE);
        self.last.fill(NONE);
        self.path.clear();
        self.push(initial, Vec::new(), VecDeque::new());
        loop {
            if self.count.events.is_multiple_of(64) && self.is_over(observer) {
                return false;
            }
            let node = self.nodes.last().expect("a search has a state");
            let first = if node.trees.is_empty() {
                match self.any_step() {
                    Free::Step(step) => step,
                    Free::Nothing { enabled, sampled } => {
                        let blocked = if enabled { Some(false) } else { observer.ended(self, sampled) };
                        let Some(blocked) = blocked else { return false };
                        match (enabled, blocked) {
                            (true, _) => self.count.redundant += 1,
                            (false, true) => self.count.blocked += 1,
                            (false, false) => self.count.complete += 1,
                        }
                        if !self.next_execution(observer) {
                            return !self.stopped;
                        }
                        continue;
                    }
                }
            } else {
                None
            };
            let (thread, again) = self.take_first(first);
            self.count.events += 1;
            let footprint = self.present_footprint();
            if !observer.reached(self, thread, &footprint) {
                return false;
            }
            if again || self.nodes.len() > self.longest {
                self.count.cut += 1;
                if !self.next_execution(observer) {
                    return !self.stopped;
                }
            }
        }
    }

    /// Polls the observer, and returns whether to stop. Also called while races are reversed, because a long execution has many races, and reversing
    /// a race takes time linear in the length of the execution.
    pub(super) fn is_over(&mut self, observer: &mut impl Observer) -> bool {
        self.stopped = observer.poll(self.bytes(), &self.count);
        self.stopped
    }

    fn bytes(&self) -> u64 {
        let node = self.nodes.last().map_or(0, |n| n.state.bytes());
        let event = self.last.len() * 8 + 400;
        (self.nodes.len() * (node + event) + self.waiting * std::mem::size_of::<Tree>() * 2) as u64
    }

    fn present_footprint(&self) -> Footprint {
        let before = &self.nodes[self.nodes.len() - 2];
        before.event.as_ref().expect("it was taken").branch.footprint.clone()
    }

    /// Chooses the first agent with an alternative that is not asleep, and adds one tree for each such alternative to the last node, which has no
    /// trees.
    fn any_step(&mut self) -> Free {
        let sampled_before = std::mem::take(&mut self.machine.sampled);
        let mut enabled = false;
        let mut found = None;
        self.machine.now = self.event_number();
        for agent in 0..self.last.len() {
            let node = self.nodes.last().expect("a search has a state");
            let Some(step) = self.machine.step(&node.state, agent, 0, None) else { continue };
            enabled = true;
            let sleeps = |k: u32| node.asleep.iter().any(|b| (b.agent, b.alternative) == (agent as u32, k));
            let branch = |alternative: u32| Branch {
                agent: agent as u32,
                alternative,
                total: step.total,
                footprint: step.footprint.clone(),
            };
            let trees: VecDeque<Tree> =
                (0..step.total).filter(|k| !sleeps(*k)).map(|k| Tree::leaf(branch(k))).collect();
            if let Some(first) = trees.front() {
                let first = (first.branch.alternative == 0).then_some(step);
                found = Some((trees, first));
                break;
            }
        }
        let sampled = self.machine.sampled;
        self.machine.sampled |= sampled_before;
        let Some((trees, first)) = found else { return Free::Nothing { enabled, sampled } };
        self.waiting += trees.len();
        self.nodes.last_mut().expect("a search has a state").trees = trees;
        Free::Step(first)
    }

    /// The index of the next event.
    fn event_number(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    /// Takes the first step of the tree at the last node. Returns its thread, and whether the new state occurred before in this execution.
    fn take_first(&mut self, known: Option<Stepped>) -> (usize, bool) {
        let number = self.event_number();
        self.machine.now = number;
        let node = self.nodes.last_mut().expect("a search has a state");
        let free = known.is_some();
        let Branch { agent, alternative, .. } = node.trees[0].branch;
        let step = known.unwrap_or_else(|| {
            self.machine
                .step(&node.state, agent as usize, alternative, None)
                .expect("a step of a wakeup tree is enabled")
        });
        let branch = Branch { agent, alternative, total: step.total, footprint: step.footprint.clone() };
        debug_assert_eq!(
            branch.footprint, node.trees[0].branch.footprint,
            "the step of a tree has the footprint it was added with"
        );
        if step.total > 1 && !free {
            for alternative in (0..step.total).filter(|k| *k != alternative) {
                let other = Branch { alternative, ..branch.clone() };
                self.waiting += insert(&mut node.trees, &node.asleep, Sequence::from([&other]));
            }
        }
        self.waiting = self.waiting.saturating_sub(1);
        let below = std::mem::take(&mut node.trees[0].children);
        let asleep = node.asleep.iter().filter(|b| b.is_independent(&branch)).cloned().collect();
        let event = self.event(number, branch, &step);
        self.enter(number, event);
        let again = self.push(step.next, asleep, below);
        (self.machine.tables.agents.thread(agent as usize), again)
    }

    /// Pushes a state. Returns whether it occurred before in this execution.
    fn push(&mut self, state: State, asleep: Vec<Branch>, trees: VecDeque<Tree>) -> bool {
        let identity = self.loops.then(|| state.identity());
        let again = identity.is_some_and(|i| !self.path.insert(i));
        let identity = identity.filter(|_| !again);
        self.nodes.push(Node { state, asleep, trees, event: None, identity });
        again
    }

    fn pop(&mut self) {
        let node = self.nodes.pop().expect("a search has a state");
        if let Some(identity) = node.identity {
            self.path.remove(&identity);
        }
        self.machine.recycle(node.state);
    }

    /// Reverses the races of the current execution, and backtracks to a node with an unexplored step. Returns false if there is none, or if the
    /// search is to stop.
    fn next_execution(&mut self, observer: &mut impl Observer) -> bool {
        self.reverse_races(observer);
        if self.stopped {
            return false;
        }
        self.pop();
        while let Some(number) = self.nodes.len().checked_sub(1) {
            self.leave(number);
            let node = &mut self.nodes[number];
            let done = node.trees.pop_front().expect("the step that was taken");
            node.asleep.push(done.branch.clone());
            if !node.trees.is_empty() {
                return true;
            }
            self.pop();
        }
        false
    }
}

/// The free choice at a node without a tree.
enum Free {
    /// A step was added to the trees of the node. Contains the outcome of the step, if it has been computed.
    Step(Option<Stepped>),
    /// Every enabled step is asleep; `enabled` says whether any step is enabled, `sampled` whether a `*` was tried there with samples only.
    Nothing { enabled: bool, sampled: bool },
}
