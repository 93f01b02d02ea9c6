//! The search shared by all strategies: the pairs of a control state and a domain state that have been reached, and their successors.
//!
//! A *node* is a control state of the machine together with a state of the domain. The steps of a control state are computed once and prepared for
//! the domain, with only the cells that are live before and after the step. The machine's own steps are not stored, because there are very many, and
//! the machine can recompute them when a path needs them. A new node is dropped if a stored one covers it (subsumption). Optionally, stored nodes
//! that the new one covers are dropped too.
//!
//! Strategies differ in the order of expansion, in the phases of the machine, and in the treatment of evidence. There are two:
//! [`Reach`](super::reach::Reach), and that of the engine `contexts`.

use std::hash::{BuildHasher, Hash};
use std::mem::take;
use std::ops::Range;

use fencewright_memory::{CellId, Contents, Evidence, Limitation, Machine, Outcome, Step};
use fencewright_program::{Property, Span};
use fencewright_verdict::{Limits, Reason, discard};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::live::known_at_first;
use crate::domain::{Domain, kept};

/// The state of a search: control states, nodes and prepared steps.
pub struct Search<'a, M: Machine, D: Domain> {
    machine: &'a M,
    properties: &'a [Property],
    domain: &'a mut D,
    limits: &'a Limits,
    /// The contents of the machine's cells.
    contents: Vec<Contents>,
    controls: Vec<ControlNode<M::Control, M::Phase, D::Transition>>,
    /// The indices of the control states, by the hash of the control state.
    numbers: HashTable<u32>,
    steps: Vec<Prepared<M::Name, D::Transition>>,
    nodes: Vec<Node<D::State>>,
    /// Index of the nodes, by the hash of control and state.
    table: HashTable<u32>,
    /// For each node, whether a later one covers it; `None` if covered nodes are kept.
    covered: Option<Vec<bool>>,
    successors: Vec<(u32, D::State)>,
    /// Estimated memory use, in bytes.
    bytes: u64,
    unmodelled: Option<Unmodelled>,
}

/// Why some reachable states may be missing from a search that has ended.
#[derive(Clone, Debug)]
pub enum Unmodelled {
    /// A step may lead to a state that the machine does not represent.
    Machine(Limitation, Span),
    /// The domain cannot represent the result of a step.
    Domain(Reason),
}

/// A control state that was reached, with everything computed for it.
struct ControlNode<C, P, T> {
    control: C,
    live: Vec<CellId>,
    /// The [phases](Machine::Phase) whose steps have been computed, each with these steps as a range of [`Search::steps`].
    steps: SmallVec<[(P, Range<u32>); 1]>,
    /// The possible evidence for nodes with this control state; `None` until the first such node is examined.
    evidence: Option<Vec<PreparedEvidence<T>>>,
    /// The nodes with this control state that are not covered; unused if the domain is discrete.
    members: Vec<u32>,
}

/// A step prepared for the domain.
struct Prepared<N, T> {
    name: N,
    /// The index of the control state that the step leads to; or why the machine does not represent its target.
    target: Result<u32, (Limitation, Span)>,
    transition: T,
}

struct PreparedEvidence<T> {
    property: usize,
    case: u32,
    transition: T,
}

struct Node<S> {
    state: S,
    control: u32,
    origin: Origin,
}

/// The origin of a node: predecessor, step, and branch through the commands of the step.
#[derive(Clone, Copy)]
struct Origin {
    parent: u32,
    step: u32,
    branch: u32,
}

impl Origin {
    /// The origin of an initial node, which has no parent.
    const START: Origin = Origin { parent: u32::MAX, step: u32::MAX, branch: 0 };
}

/// A state that may be evidence about a property.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    /// The index of the node that represents the state.
    pub node: u32,
    /// The index of the property that the evidence is about.
    pub property: usize,
    /// The number of this piece of evidence among all pieces of evidence for the control state; see [`Evidence::case`].
    pub case: u32,
}

/// The type of the steps of a machine.
pub type StepOf<M> = Step<<M as Machine>::Name, <M as Machine>::Control>;

/// A reachable control state.
pub struct ReachedControl<C, S> {
    /// The control state that was reached.
    pub control: C,
    /// The cells that are live in the control state.
    pub live: Vec<CellId>,
    /// The reachable states of these cells, except for states that another reachable state covers.
    pub states: Vec<S>,
}

/// A path of a machine to possible evidence about a property.
pub struct Counterexample<M: Machine> {
    /// The index of the property that the evidence is about.
    pub property: usize,
    /// The control state in which the path starts.
    pub start: M::Control,
    /// The steps, each with the branch through its commands that the search took, if the domain reports it.
    pub steps: Vec<(StepOf<M>, Option<u32>)>,
    /// The evidence that the last state of the path provides.
    pub evidence: Evidence,
}

impl<M: Machine> Counterexample<M> {
    /// The control state at the end of the path.
    pub fn end(&self) -> &M::Control {
        let last = self.steps.last().map(|(step, _)| &step.outcome);
        match last {
            Some(Outcome::Control(control)) => control,
            _ => &self.start,
        }
    }

    /// Whether the path is feasible, as far as a domain can tell. If a limit is exceeded in one of its steps, it counts as feasible; if
    /// that happens in the evidence at its end, as infeasible.
    pub fn is_feasible<D: Domain>(&self, machine: &M, domain: &mut D, limits: &Limits) -> bool {
        let contents = machine.contents();
        domain.attach(&contents);
        let live_in = |control: &M::Control, domain: &D| kept(domain, &contents, machine.live(control));
        let mut live = live_in(&self.start, domain);
        let mut states = Vec::new();
        if initial_states(machine, domain, &live, &mut states).is_err() {
            return true;
        }
        let follow = |states: Vec<(u32, D::State)>, transition: &D::Transition, domain: &mut D| {
            let mut after = Vec::new();
            for (_, state) in states {
                let stored = domain.stored(&state);
                if limits.exceeded(0).is_some() || domain.post(transition, &stored, &mut after).is_err() {
                    return Err(());
                }
            }
            Ok(after)
        };
        for (step, _) in &self.steps {
            let Outcome::Control(next) = &step.outcome else { return false };
            let after = live_in(next, domain);
            let transition = domain.transition(&live, &step.commands, &after);
            // If the domain cannot represent a state, or a limit is exceeded, the path counts as feasible.
            let Ok(reached) = follow(states, &transition, domain) else { return true };
            (states, live) = (reached, after);
            if states.is_empty() {
                return false;
            }
        }
        let evidence = domain.transition(&live, &self.evidence.commands, &[]);
        follow(states, &evidence, domain).is_ok_and(|states| !states.is_empty())
    }
}

/// Adds the initial domain states to `states`. The error says that some initial states cannot be represented.
fn initial_states<M: Machine, D: Domain>(
    machine: &M,
    domain: &mut D,
    live: &[CellId],
    states: &mut Vec<(u32, D::State)>,
) -> Result<(), Reason> {
    let known = known_at_first(machine.initial_values(), live);
    let start = domain.transition(&[], &known, live);
    let blank = domain.blank();
    domain.post(&start, &blank, states)
}

fn hash(value: impl Hash) -> u64 {
    FxBuildHasher.hash_one(value)
}

impl<'a, M: Machine, D: Domain> Search<'a, M, D> {
    /// A search of a machine for evidence about properties.
    pub fn new(machine: &'a M, properties: &'a [Property], domain: &'a mut D, limits: &'a Limits) -> Self {
        let contents = machine.contents();
        domain.attach(&contents);
        Search {
            machine,
            properties,
            domain,
            limits,
            contents,
            controls: Vec::new(),
            numbers: HashTable::new(),
            steps: Vec::new(),
            nodes: Vec::new(),
            table: HashTable::new(),
            covered: None,
            successors: Vec::new(),
            bytes: 0,
            unmodelled: None,
        }
    }

    /// Makes a new node replace the nodes that it covers.
    pub fn dropping_covered(mut self) -> Self {
        self.covered = Some(Vec::new());
        self
    }

    /// The machine that is explored.
    pub fn machine(&self) -> &'a M {
        self.machine
    }

    /// The domain that represents values.
    pub fn domain(&self) -> &D {
        self.domain
    }

    /// The number of stored nodes.
    pub fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Estimated memory use, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first reason why some reachable states may be missing, if there is one.
    pub fn unmodelled(&self) -> Option<&Unmodelled> {
        self.unmodelled.as_ref()
    }

    /// The control state of a node.
    pub fn control_of(&self, node: u32) -> &M::Control {
        &self.controls[self.nodes[node as usize].control as usize].control
    }

    /// Whether a later node covers this one.
    pub fn is_covered(&self, node: u32) -> bool {
        self.covered.as_ref().is_some_and(|covered| covered[node as usize])
    }

    /// All reached control states.
    pub fn reached(&self) -> Vec<ReachedControl<M::Control, D::State>> {
        let met = |c: &ControlNode<M::Control, M::Phase, D::Transition>| ReachedControl {
            control: c.control.clone(),
            live: c.live.clone(),
            states: Vec::new(),
        };
        let mut reached: Vec<_> = self.controls.iter().map(met).collect();
        for (_, node) in self.nodes.iter().enumerate().filter(|(n, _)| !self.is_covered(*n as u32)) {
            reached[node.control as usize].states.push(node.state.clone());
        }
        reached
    }

    /// Adds the initial states with a control state, and calls `added` for each new node.
    pub fn start<E: From<Reason>>(
        &mut self,
        control: M::Control,
        added: &mut impl FnMut(&mut Self, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let control = self.control(control)?;
        let live = &self.controls[control as usize].live;
        let mut states = Vec::new();
        let represented = initial_states(self.machine, self.domain, live, &mut states);
        self.note(represented);
        for (_, state) in states {
            if let Some(node) = self.add(control, &state, Origin::START) {
                added(self, node)?;
            }
        }
        Ok(())
    }

    /// Takes all steps of a phase from a node, and calls `added` for each new node.
    pub fn expand<E: From<Reason>>(
        &mut self,
        node: u32,
        phase: M::Phase,
        added: &mut impl FnMut(&mut Self, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        for step in self.steps(self.nodes[node as usize].control, phase)? {
            // Limits are polled before each step, because a step on a large matrix may take milliseconds.
            if !self.domain.is_discrete() {
                self.poll()?;
            }
            let mut successors = take(&mut self.successors);
            successors.clear();
            let Prepared { transition, target, .. } = &self.steps[step as usize];
            let target = *target;
            let represented = self.domain.post(transition, &self.nodes[node as usize].state, &mut successors);
            self.note(represented);
            match target {
                Ok(target) => {
                    for (branch, state) in &successors {
                        // Limits are polled here too, because comparing a state with many stored states may also take milliseconds.
                        if !self.domain.is_discrete() {
                            self.poll()?;
                        }
                        let origin = Origin { parent: node, step, branch: *branch };
                        if let Some(new) = self.add(target, state, origin) {
                            added(self, new)?;
                        }
                    }
                }
                // A step to a state that the machine does not represent is not a violation; the search continues, because there may be a violation
                // elsewhere.
                Err((what, span)) if !successors.is_empty() => {
                    self.unmodelled.get_or_insert(Unmodelled::Machine(what, span));
                }
                Err(_) => {}
            }
            self.successors = successors;
        }
        Ok(())
    }

    /// The names of the steps of a phase from a node. The flag is true if these steps are requested for the first time.
    pub fn step_names(
        &mut self,
        node: u32,
        phase: M::Phase,
    ) -> Result<(bool, impl Iterator<Item = &M::Name>), Reason> {
        let known = self.steps.len();
        let steps = self.steps(self.nodes[node as usize].control, phase)?;
        let new = steps.start as usize >= known;
        let names = self.steps[steps.start as usize..steps.end as usize].iter().map(|step| &step.name);
        Ok((new, names))
    }

    /// Adds to `findings` the possible evidence of a node.
    pub fn look(&mut self, node: u32, findings: &mut Vec<Finding>) -> Result<(), Reason> {
        let control = self.nodes[node as usize].control;
        self.prepare_evidence(control)?;
        for evidence in self.controls[control as usize].evidence.iter().flatten() {
            if !self.domain.is_discrete()
                && let Some(reason) = self.limits.exceeded(self.bytes)
            {
                return Err(reason);
            }
            let mut reached = Vec::new();
            let state = &self.nodes[node as usize].state;
            let represented = self.domain.post(&evidence.transition, state, &mut reached);
            if let Err(reason) = represented {
                self.unmodelled.get_or_insert(Unmodelled::Domain(reason));
            }
            if !reached.is_empty() {
                findings.push(Finding { node, property: evidence.property, case: evidence.case });
            }
        }
        Ok(())
    }

    /// The path to a finding. The machine recomputes all steps of each control state on the path, which may take a long time, so the limits are
    /// polled. These limits include the grace period for results found at the last moment.
    pub fn counterexample(&self, finding: &Finding) -> Result<Counterexample<M>, Reason> {
        let finishing = self.limits.finishing();
        let mut node = &self.nodes[finding.node as usize];
        let mut steps = Vec::new();
        while let Origin { parent, step, branch } = node.origin
            && parent != Origin::START.parent
        {
            node = &self.nodes[parent as usize];
            let branch = self.domain.tells_branches().then_some(branch);
            steps.push((self.step(node.control, step, &finishing)?, branch));
        }
        steps.reverse();
        let start = self.controls[node.control as usize].control.clone();
        let evidence =
            self.machine.evidence(self.control_of(finding.node), &self.properties[finding.property]);
        let is_it = |evidence: &Evidence| evidence.case == finding.case;
        let evidence = evidence.into_iter().flatten().find(is_it).expect("a machine is deterministic");
        Ok(Counterexample { property: finding.property, start, steps, evidence })
    }

    /// A step from a control state, by its index in the list of all steps.
    fn step(&self, control: u32, number: u32, limits: &Limits) -> Result<StepOf<M>, Reason> {
        let ControlNode { control, steps, .. } = &self.controls[control as usize];
        let (phase, range) = steps.iter().find(|(_, range)| range.contains(&number)).expect("it was taken");
        let stop = || limits.exceeded(self.bytes).is_some();
        let Some(again) = self.machine.steps_in(*phase, control, &stop) else {
            return Err(limits.exceeded(self.bytes).unwrap_or(Reason::Cancelled));
        };
        Ok(again.into_iter().nth((number - range.start) as usize).expect("a machine is deterministic"))
    }

    fn poll(&self) -> Result<(), Reason> {
        self.limits.exceeded(self.bytes).map_or(Ok(()), Err)
    }

    fn note(&mut self, represented: Result<(), Reason>) {
        if let Err(reason) = represented {
            self.unmodelled.get_or_insert(Unmodelled::Domain(reason));
        }
    }

    /// The index of a control state, which is added if it is new.
    fn control(&mut self, control: M::Control) -> Result<u32, Reason> {
        let hashed = hash(&control);
        let controls = &self.controls;
        if let Some(&number) = self.numbers.find(hashed, |&n| controls[n as usize].control == control) {
            return Ok(number);
        }
        let live = kept(self.domain, &self.contents, self.machine.live(&control));
        self.domain.fits(live.len()).map_err(|what| Reason::Unsupported(what, None))?;
        let number = self.controls.len() as u32;
        self.bytes += 768 + 8 * live.len() as u64;
        self.numbers.insert_unique(hashed, number, |&n| hash(&controls[n as usize].control));
        let (steps, members) = (SmallVec::new(), Vec::new());
        self.controls.push(ControlNode { control, live, steps, evidence: None, members });
        Ok(number)
    }

    /// The prepared steps of a phase of a control state.
    fn steps(&mut self, control: u32, phase: M::Phase) -> Result<Range<u32>, Reason> {
        let ControlNode { control: from, steps, .. } = &self.controls[control as usize];
        if let Some((_, range)) = steps.iter().find(|(known, _)| *known == phase) {
            return Ok(range.clone());
        }
        let stop = || self.limits.exceeded(self.bytes).is_some();
        let Some(steps) = self.machine.steps_in(phase, from, &stop) else {
            return Err(self.limits.exceeded(self.bytes).unwrap_or(Reason::Cancelled));
        };
        let first = self.steps.len() as u32;
        for Step { name, commands, outcome } in steps {
            self.poll()?;
            let target = match outcome {
                Outcome::Control(next) => Ok(self.control(next)?),
                Outcome::Beyond(what, span) => Err((what, span)),
            };
            let before = &self.controls[control as usize].live;
            let after = target.map_or(&[][..], |t| &self.controls[t as usize].live);
            let transition = self.domain.transition(before, &commands, after);
            // The estimated size of the transition with its branches.
            self.bytes += (256 + 96 * commands.len() + 16 * (before.len() + after.len())) as u64;
            self.steps.push(Prepared { name, target, transition });
        }
        let range = first..self.steps.len() as u32;
        self.controls[control as usize].steps.push((phase, range.clone()));
        Ok(range)
    }

    /// Prepares the possible evidence of states with this control state.
    fn prepare_evidence(&mut self, control: u32) -> Result<(), Reason> {
        let ControlNode { control: at, live, evidence, .. } = &self.controls[control as usize];
        if evidence.is_some() {
            return Ok(());
        }
        let mut prepared = Vec::new();
        for (property, p) in self.properties.iter().enumerate() {
            for Evidence { case, commands } in self.machine.evidence(at, p).unwrap_or_default() {
                self.poll()?;
                let transition = self.domain.transition(live, &commands, &[]);
                prepared.push(PreparedEvidence { property, case, transition });
            }
        }
        self.controls[control as usize].evidence = Some(prepared);
        Ok(())
    }

    /// Stores a state, unless it is covered. Returns the index of its node; `None` if it is covered.
    fn add(&mut self, control: u32, state: &D::State, origin: Origin) -> Option<u32> {
        let stored = self.domain.stored(state);
        let hashed = hash((control, &stored));
        let nodes = &self.nodes;
        let same = |&n: &u32| {
            let node = &nodes[n as usize];
            node.control == control && node.state == stored
        };
        // If the same node is stored but has been covered since, the covering node covers this state too.
        if self.table.find(hashed, same).is_some() {
            return None;
        }
        let number = nodes.len() as u32;
        if !self.domain.is_discrete() {
            let members = &mut self.controls[control as usize].members;
            if members.iter().any(|&n| self.domain.covers(&nodes[n as usize].state, state)) {
                return None;
            }
            if let Some(covered) = &mut self.covered {
                members.retain(|&n| {
                    covered[n as usize] = self.domain.covers(&stored, &nodes[n as usize].state);
                    !covered[n as usize]
                });
            }
            members.push(number);
        }
        self.bytes += self.domain.size(&stored) as u64 + 48;
        self.table.insert_unique(hashed, number, |&n| {
            let node = &nodes[n as usize];
            hash((node.control, &node.state))
        });
        self.nodes.push(Node { state: stored, control, origin });
        self.covered.iter_mut().for_each(|covered| covered.push(false));
        Some(number)
    }
}

impl<M: Machine, D: Domain> Drop for Search<'_, M, D> {
    fn drop(&mut self) {
        discard(self.bytes, (take(&mut self.nodes), take(&mut self.controls), take(&mut self.steps)));
    }
}
