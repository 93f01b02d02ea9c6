//! The search: depth first over executions, with the order of events kept by vector clocks.
//!
//! The stack is the present execution. Each node has the state before its event, the steps that [sleep](super::wakeup) there and the
//! wakeup tree of what is still to be explored. At a node without a tree any step that does not sleep is taken. When an execution has
//! ended, each of its races is reversed: for an event `e` and a later event `f` that conflicts with it, with nothing between them, the
//! sequence of all events after `e` that do not happen after it, and then the step of the agent of `f`, is added to the tree where `e`
//! was taken.
//!
//! A step that waits (for the lock, or for values in memory) may have been enabled before an event that conflicts with it although no event
//! of it follows, or one that comes much later. So for these steps, and for those that are not enabled when the execution
//! ends, one goes back through the writes of what they wait for until one is found before which they were enabled. These writes happen one
//! after the other in every execution, so that leaving out one and what happens after it gives back the values before it.

use std::collections::VecDeque;

use fencewright_program::Event as Happened;
use fencewright_verdict::Executions;
use rustc_hash::FxHashSet;

use super::footprint::{Footprint, Item};
use super::machine::{Machine, Stepped};
use super::races::{Event, Link, NOWHERE};
use super::state::{NONE, State};
use super::wakeup::{Branch, Sequence, Tree, insert};

/// A state of the present execution, and what is to be done there.
pub(super) struct Node {
    pub(super) state: State,
    pub(super) asleep: Vec<Branch>,
    pub(super) trees: VecDeque<Tree>,
    /// The event that leads to the next node.
    pub(super) event: Option<Event>,
    /// What identifies the state, in a program that could come back to it.
    identity: Option<u64>,
}

/// Looks at states, and says when to stop.
pub trait Observer {
    /// A state was reached by a step with this footprint. Whether to go on.
    fn reached(&mut self, search: &mut Search<'_>, thread: usize, footprint: &[Item]) -> bool;
    /// The present execution has ended. Whether some thread waits forever, if it is that sort of end; nothing to stop.
    fn ended(&mut self, search: &mut Search<'_>, sampled: bool) -> Option<bool>;
    /// Whether to stop, so many bytes being used.
    fn poll(&mut self, bytes: u64, count: &Executions) -> bool;
}

/// A search from one initial state.
pub struct Search<'p> {
    /// The interpreter.
    pub machine: Machine<'p>,
    /// What was explored.
    pub count: Executions,
    pub(super) nodes: Vec<Node>,
    /// For each key the last access and the last write.
    pub(super) heads: Vec<Link>,
    /// The last event of each agent.
    pub(super) last: Vec<u32>,
    /// Whether the observer wants no more.
    pub(super) stopped: bool,
    /// How many events have been done again to reverse races.
    pub(super) redone: u64,
    /// How many steps wait in trees.
    pub(super) waiting: usize,
    /// The identities of the states of the present execution.
    path: FxHashSet<u64>,
    /// Whether an execution could come back to a state.
    loops: bool,
    /// Executions with more events than this are cut.
    longest: usize,
}

impl<'p> Search<'p> {
    /// A search that has not begun; `loops` if threads may come back to a location. Executions with more than `longest` events are cut.
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

    /// The state that the present execution has reached.
    pub fn state(&self) -> &State {
        &self.nodes.last().expect("a search has a state").state
    }

    /// What has happened in the present execution, after the local work that threads begin with.
    pub fn happened(&mut self) -> Vec<Happened> {
        let mut log = Vec::new();
        for node in &self.nodes {
            let Some(event) = &node.event else { break };
            let Branch { agent, alternative, .. } = event.branch;
            self.machine.step(&node.state, agent as usize, alternative, Some(&mut log));
        }
        log
    }

    /// Explores all executions from a state. Whether it came to the end.
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

    /// Asks the observer whether to stop. A long execution has many races, and each is as long as the execution, so it is asked there too.
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

    /// A node without a tree gets one: all alternatives that do not sleep of the first agent that has some.
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

    /// The number of the event that is taken next.
    fn event_number(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    /// Takes the first step of the tree at the last node. Gives its thread, and whether the execution has been in that state before.
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
        debug_assert_eq!(branch.footprint, node.trees[0].branch.footprint, "a step of a tree is as it was");
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

    /// Goes to a state. Whether the execution has been there before.
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

    /// Reverses the races of the present execution, and goes back to a node with a step that is still to be explored. Whether there is one.
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

/// What can be done at a node without a tree.
enum Free {
    /// A step, with its outcome if that is known; its trees are at the node now.
    Step(Option<Stepped>),
    /// Nothing that does not sleep; whether anything at all, and whether a `*` was tried with samples.
    Nothing { enabled: bool, sampled: bool },
}
