//! Enumerates one execution per equivalence class, on the reference semantics. It confirms results of the engine that explores executions without
//! storing states, and shares no code with it.
//!
//! # The algorithm
//!
//! Source sets with sleep sets (P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas: *Source sets: a foundation for optimal dynamic partial order
//! reduction*, J. ACM 64(4), 2017). A depth-first search explores, from each configuration (a state with numbers for its buffered stores), the steps
//! of one agent (a thread or a store buffer), and those of further agents where a race requires them. Two notions are used throughout:
//! * Two executions are *equivalent* if one becomes the other by exchanging adjacent events of different agents whose footprints (see `footprint`) do
//!   not conflict.
//! * An agent *can begin* a sequence (is an *initial* of it) if no earlier event of the sequence happens before its first event there.
//!
//! At the end of each execution E, the search considers each pair of an event `i` and a later step of an agent `r` that may be reversible, that is,
//! may occur in the other order in some other execution:
//! * `i` and an event of `r` *race*: they conflict, and no event happens after `i` and before the event of `r`;
//! * `i` wrote an object that the step of `r` waits for (`footprint::Step::waits`), so that `r` may have been enabled before `i` and disabled after
//!   it. The step may be taken later in E, or never.
//!
//! Let C be the configuration before `i`. For each such pair, another agent may have to be explored from C. Let `rest` be the events after `i` that
//! do not happen after `i`, let `past` be those events of `rest` that happen before the step of `r`, and let F be the footprint of the step that `r`
//! takes after C and `past`.
//! * If F conflicts with no event of `rest` outside `past`, then `r` takes the same step after C and all of `rest`. If that step is enabled, then one
//!   of the agents that can begin `rest` followed by the step of `r` has to be explored from C. If it is disabled, the pair is not reversible.
//! * Otherwise `r` may take a different step before `i` than after `i`. If `past` is not empty, then one of the agents that can begin `past` has to
//!   be explored from C. If `past` is empty, then `r` has to be explored from C if it is enabled there; in addition, for each event of `rest` that
//!   conflicts with F, one of the agents that can begin the sequence of this event and its happens-before predecessors in `rest` has to be explored
//!   from C.
//!
//! The second case has no counterpart in the published algorithm, where the footprint of a step does not depend on when it is taken, and where steps
//! do not wait.
//!
//! An agent *sleeps* in a configuration if its step was explored from an earlier configuration of the current execution, and no event since then
//! conflicts with that step. Executions that continue with its step are equivalent to explored ones, so the search does not take it.
//!
//! # Why no execution is missed
//!
//! Let E be an explored execution, Z the agents that sleep after E, and D the agents whose steps have been explored from E when the search leaves E.
//! Let `w` be a sequence of events that is possible after E and that no agent of Z can begin. *Claim*: some explored execution extends E and contains
//! `w`, up to equivalence. The proof is by induction on the finite tree of the search; an agent `q` in D also stands for its step after E.
//! * If an agent of D can begin `w`, or its step conflicts with no event of `w`, then the claim follows from the claim for the first such agent.
//! * Otherwise each `q` in D conflicts with an event of `w`. Choose the `q` whose first such event `a` is latest in `w`, and let `u` be the part of
//!   `w` before `a`. Then E `q` `u` is possible, and no agent that sleeps after E `q` can begin `u`. Let a' be the step that the agent of `a` takes
//!   after E `q` `u`. If a' is enabled, then by induction some explored execution extends E `q` and contains `u` a', and `q` and a' race in it. If a'
//!   is disabled, some explored execution extends E `q` and contains `u`, and `q` wrote an object that a' waits for. In both cases the search has
//!   considered the pair of `q` and a', so D contains an agent that one of the two cases above requires. There `u` is a part of `rest` that is closed
//!   under happens-before predecessors, and `past` is a part of `u`. So in the first case the required agent can begin `u a`, or conflicts with no
//!   event of `u a`; in the second case it can begin `u` or `u a`. Both contradict the choice of `q`.
//!
//! So every possible event occurs in an explored execution, and every execution that cannot be continued is explored up to equivalence. A formula
//! that must never hold is in the footprint of each step that may change its value, so it takes the same sequence of values in equivalent executions.
//! This does not concern disjuncts that depend on the location and the registers of one thread only, because the thread has the same sequence of
//! locations and registers in equivalent executions.
//!
//! The search ends only if its tree is finite. If an execution returns to a state, or exceeds a maximum length, the search gives up with
//! [`Incomplete::Endless`].

mod footprint;
mod operations;
mod races;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use fencewright_program::reference::{decided_by, holds};
use fencewright_program::{MemoryModel, Observable, Program, Property, PropertyKind, Quantifier, State};

use crate::oracle::{self, initial_states};
use footprint::{Agent, Configuration, Footprint, Step, Steps};
use races::{Clock, Execution};

/// The properties to evaluate and the values to collect in the enumeration.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The properties. A formula that must never hold makes the events that may change its value dependent.
    pub properties: &'a [Property],
    /// The observables to collect in final states.
    pub observed: &'a [Observable],
}

/// The result of an enumeration of all executions of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enumerated {
    /// Number of executions explored to their ends.
    pub executions: u64,
    /// Number of executions abandoned because every continuation is equivalent to an explored one.
    pub redundant: u64,
    /// Number of events taken in all executions. Events of a common prefix count once.
    pub events: u64,
    /// Whether each property is satisfied; `None` if its formula cannot be computed in some state and no other state decides the property.
    pub satisfied: Vec<Option<bool>>,
    /// The values of the observables in the final states.
    pub finals: BTreeSet<Vec<i64>>,
}

/// Why an enumeration is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// The executions have more events than allowed.
    TooManyEvents,
    /// Some execution returns to one of its earlier states, or has `LONGEST` events.
    Endless,
    /// An initial value or a `*` without a range, or a step with too many combinations of values for its `*`s.
    UnboundedChoice,
    /// A value that does not fit 64 bits, or an access outside the modelled part of an open array.
    Limit,
    /// The callback `stop` returned true.
    Stopped,
    /// An event was disabled although all events that it depends on had happened. That is a defect of the footprints.
    Contradiction,
}

/// Maximum number of configurations of an execution. The search keeps all of them in memory.
const LONGEST: usize = 10_000;

/// Enumerates the executions of a program. An error if there are more than `limit` initial states, if the executions have more than `limit` events
/// together, common prefixes counted once, or if not all executions can be computed. `stop` is called with the number of bytes in use before each
/// step is computed.
pub fn enumerate(
    program: &Program,
    model: MemoryModel,
    question: Question<'_>,
    limit: u64,
    stop: &mut dyn FnMut(u64) -> bool,
) -> Result<Enumerated, Incomplete> {
    run(Steps::new(program, model, question.properties), question, limit, stop)
}

fn run(
    steps: Steps<'_>,
    question: Question<'_>,
    limit: u64,
    stop: &mut dyn FnMut(u64) -> bool,
) -> Result<Enumerated, Incomplete> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let initial = initial_states(&steps.reference, most, &mut || stop(0));
    let initial = initial.map_err(|why| match why {
        oracle::Incomplete::TooManyStates => Incomplete::TooManyEvents,
        oracle::Incomplete::UnboundedChoice => Incomplete::UnboundedChoice,
        oracle::Incomplete::Limit => Incomplete::Limit,
        oracle::Incomplete::Stopped => Incomplete::Stopped,
    })?;
    let mut search = Search {
        steps,
        question,
        limit,
        stop,
        numbers: HashMap::new(),
        agents: Vec::new(),
        nodes: Vec::new(),
        execution: Execution::default(),
        path: HashSet::new(),
        hasher: RandomState::new(),
        found: Enumerated::default(),
        decided: vec![None; question.properties.len()],
        uncomputable: vec![false; question.properties.len()],
    };
    for state in initial {
        search.explore(Configuration::new(state))?;
    }
    Ok(search.result())
}

/// A configuration of the current execution, and the agents to explore from it.
struct Node {
    configuration: Configuration,
    /// The agents that sleep in the configuration, each with the footprint of its step.
    asleep: Vec<(usize, Rc<Footprint>)>,
    /// The agents whose steps are explored from the configuration, in this order.
    agents: Vec<usize>,
    /// The index in `agents` of the agent whose step is being explored.
    present: usize,
    /// The index of the next alternative of that step.
    alternative: usize,
    /// The steps from the configuration that have been computed, each with its agent.
    steps: Vec<(usize, Rc<Step>)>,
    /// The hash of the state, to detect that an execution returns to it.
    identity: u64,
}

struct Search<'a, 'p> {
    steps: Steps<'p>,
    question: Question<'a>,
    limit: u64,
    stop: &'a mut dyn FnMut(u64) -> bool,
    numbers: HashMap<Agent, usize>,
    agents: Vec<Agent>,
    nodes: Vec<Node>,
    execution: Execution,
    /// The hashes of the states of the current execution.
    path: HashSet<u64>,
    hasher: RandomState,
    found: Enumerated,
    /// For each property, whether it is satisfied; `None` as long as no state has decided that.
    decided: Vec<Option<bool>>,
    uncomputable: Vec<bool>,
}

impl Search<'_, '_> {
    /// Explores the executions from a configuration.
    fn explore(&mut self, initial: Configuration) -> Result<(), Incomplete> {
        self.enter(initial, Vec::new())?;
        while let Some(node) = self.nodes.last() {
            let n = self.nodes.len() - 1;
            let Some(&agent) = node.agents.get(node.present) else {
                self.leave();
                continue;
            };
            let step = self.step(n, agent)?;
            let node = &mut self.nodes[n];
            let Some((_, next)) = step.alternatives.get(node.alternative) else {
                node.present += 1;
                node.alternative = 0;
                continue;
            };
            node.alternative += 1;
            // The agents explored from this configuration before sleep in the next one, unless their steps conflict with the step taken.
            let mut asleep = node.asleep.clone();
            for &earlier in &node.agents[..node.present] {
                let known = node.steps.iter().find(|(agent, _)| *agent == earlier);
                asleep.extend(known.map(|(agent, step)| (*agent, Rc::clone(&step.footprint))));
            }
            asleep.retain(|(_, footprint)| !footprint.conflicts(&step.footprint));
            self.found.events += 1;
            if self.found.events > self.limit {
                return Err(Incomplete::TooManyEvents);
            }
            self.execution.push(agent, &step);
            self.enter(next.clone(), asleep)?;
        }
        Ok(())
    }

    /// Appends a configuration to the execution and chooses the first agent to explore from it. If every agent is disabled or sleeps, the execution
    /// ends and its races are considered.
    fn enter(
        &mut self,
        configuration: Configuration,
        asleep: Vec<(usize, Rc<Footprint>)>,
    ) -> Result<(), Incomplete> {
        if self.nodes.len() >= LONGEST {
            return Err(Incomplete::Endless);
        }
        self.see(&configuration.state);
        let identity = self.hasher.hash_one(&configuration.state);
        if !self.path.insert(identity) {
            return Err(Incomplete::Endless);
        }
        let agents = self.steps.agents(&configuration.state);
        let (present, alternative, steps) = (0, 0, Vec::new());
        let n = self.nodes.len();
        self.nodes.push(Node {
            configuration,
            asleep,
            agents: Vec::new(),
            present,
            alternative,
            steps,
            identity,
        });
        let mut sleeps = false;
        for agent in agents {
            let agent = self.number(agent);
            if self.is_asleep(n, agent) {
                sleeps = true;
            } else if self.step(n, agent)?.is_enabled() {
                self.nodes[n].agents.push(agent);
                return Ok(());
            }
        }
        if sleeps {
            self.found.redundant += 1;
        } else {
            self.found.executions += 1;
            self.see_end();
        }
        self.reverse_races()
    }

    /// Removes the last configuration, and the event that led to it.
    fn leave(&mut self) {
        if let Some(node) = self.nodes.pop() {
            self.path.remove(&node.identity);
            self.execution.pop();
        }
    }

    fn number(&mut self, agent: Agent) -> usize {
        *self.numbers.entry(agent).or_insert_with(|| {
            self.agents.push(agent);
            self.agents.len() - 1
        })
    }

    fn is_asleep(&self, node: usize, agent: usize) -> bool {
        self.nodes[node].asleep.iter().any(|(asleep, _)| *asleep == agent)
    }

    /// The step of an agent at a node.
    fn step(&mut self, node: usize, agent: usize) -> Result<Rc<Step>, Incomplete> {
        if let Some((_, step)) = self.nodes[node].steps.iter().find(|(known, _)| *known == agent) {
            return Ok(Rc::clone(step));
        }
        self.poll()?;
        let step = Rc::new(self.steps.step(&self.nodes[node].configuration, self.agents[agent])?);
        self.nodes[node].steps.push((agent, Rc::clone(&step)));
        Ok(step)
    }

    fn poll(&mut self) -> Result<(), Incomplete> {
        let state = self.nodes.first().map_or(0, |node| {
            let State { registers, memory, .. } = &node.configuration.state;
            (registers.iter().map(Vec::len).sum::<usize>() + memory.len() + 20) * size_of::<i64>()
        });
        // A node contains its own state and the states after the steps that were computed from it: an estimated three states in all.
        let bytes = self.nodes.len() * (3 * state + self.agents.len() * size_of::<u32>());
        if (self.stop)(bytes as u64) { Err(Incomplete::Stopped) } else { Ok(()) }
    }

    /// Considers all pairs of an event of the current execution and a later step that may be reversible: see the module's comment.
    fn reverse_races(&mut self) -> Result<(), Incomplete> {
        for later in 0..self.execution.events.len() {
            let agent = self.execution.events[later].agent;
            for n in 0..self.execution.events[later].races.len() {
                let event = &self.execution.events[later];
                let (earlier, clock) = (event.races[n], event.clock.clone());
                // A store cannot be flushed before it is issued, so the two events cannot be reversed.
                if !self.execution.events[earlier].footprint.issues(&event.footprint) {
                    self.reverse(earlier, agent, &clock)?;
                }
            }
            if !self.execution.events[later].blockers.is_empty() {
                let blockers = self.execution.events[later].blockers.clone();
                let known = self.execution.known_before(later).clone();
                for earlier in blockers {
                    self.reverse(earlier, agent, &known)?;
                }
            }
        }
        let end = self.nodes.len() - 1;
        for agent in self.steps.agents(&self.nodes[end].configuration.state) {
            let agent = self.number(agent);
            let step = self.step(end, agent)?;
            for earlier in self.execution.blockers(agent, &step.waits) {
                let known = self.execution.known(agent).clone();
                self.reverse(earlier, agent, &known)?;
            }
        }
        Ok(())
    }

    /// Adds the agents that have to be explored from the configuration before event `i`, so that agent `r` can take its step without `i`: see the
    /// module's comment. `clock` contains the events that happen before the step of `r`.
    fn reverse(&mut self, i: usize, r: usize, clock: &Clock) -> Result<(), Incomplete> {
        self.poll()?;
        let execution = &self.execution;
        let event = &execution.events[i];
        let own = (event.agent, event.count);
        let rest = (i + 1..execution.events.len()).filter(|&k| execution.events[k].clock.of(own.0) < own.1);
        let rest: Vec<usize> = rest.collect();
        let (past, others): (Vec<usize>, Vec<usize>) =
            rest.iter().partition(|&&k| execution.is_before(k, clock));
        let first = execution.initials(&past);
        if self.has_any(i, &first) {
            return Ok(());
        }
        let step = if past.is_empty() { self.step(i, r)? } else { Rc::new(self.step_after(i, &past, r)?) };
        let execution = &self.execution;
        let conflicts = |k: &&usize| execution.events[**k].footprint.conflicts(&step.footprint);
        let conflicting: Vec<usize> = others.iter().filter(conflicts).copied().collect();
        if conflicting.is_empty() {
            if step.is_enabled() {
                let mut needed = first;
                needed.extend(past.is_empty().then_some(r));
                needed.extend(execution.initials(&rest));
                self.need(i, &needed);
            }
        } else if !past.is_empty() {
            self.need(i, &first);
        } else {
            let before = |k: usize| {
                let clock = &execution.events[k].clock;
                let down: Vec<usize> =
                    rest.iter().copied().filter(|&e| execution.is_before(e, clock)).collect();
                execution.initials(&down)
            };
            let needed: Vec<Vec<usize>> = conflicting.into_iter().map(before).collect();
            if step.is_enabled() {
                self.need(i, &[r]);
            }
            needed.iter().for_each(|needed| self.need(i, needed));
        }
        Ok(())
    }

    /// The step of an agent in the configuration that the events `past` reach from the configuration before event `i`.
    fn step_after(&mut self, i: usize, past: &[usize], agent: usize) -> Result<Step, Incomplete> {
        let mut configuration = self.nodes[i].configuration.clone();
        for &event in past {
            self.poll()?;
            let taken = self.execution.events[event].agent;
            let node = &self.nodes[event];
            let mine = node.steps.iter().find(|(agent, _)| *agent == taken);
            let (happened, _) = &mine.expect("it was taken").1.alternatives[node.alternative - 1];
            let step = self.steps.step(&configuration, self.agents[taken])?;
            let same = step.alternatives.into_iter().find(|(event, _)| event == happened);
            // No event of `past` happens after `i`, so all of them are possible without `i`.
            configuration = same.ok_or(Incomplete::Contradiction)?.1;
        }
        self.steps.step(&configuration, self.agents[agent])
    }

    /// Whether one of the agents is explored from a node, or sleeps there.
    fn has_any(&self, node: usize, agents: &[usize]) -> bool {
        agents.iter().any(|agent| self.nodes[node].agents.contains(agent) || self.is_asleep(node, *agent))
    }

    /// Adds the first of the agents to those explored from a node, unless one of them is explored from there or sleeps there.
    fn need(&mut self, node: usize, agents: &[usize]) {
        if !self.has_any(node, agents) {
            self.nodes[node].agents.extend(agents.first());
        }
    }

    /// Evaluates in one state the properties about all reachable states: formulas that never hold, and assertions.
    fn see(&mut self, state: &State) {
        for (n, property) in self.question.properties.iter().enumerate() {
            match &property.kind {
                PropertyKind::Never(formula) => match holds(state, formula) {
                    Some(true) => self.decided[n] = Some(false),
                    Some(false) => {}
                    None => self.uncomputable[n] = true,
                },
                PropertyKind::Assertions if self.steps.reference.has_fault(state) => {
                    self.decided[n] = Some(false);
                }
                PropertyKind::Assertions | PropertyKind::NoDeadlock | PropertyKind::Finally(..) => {}
            }
        }
    }

    /// Evaluates the properties about the last states of maximal executions.
    fn see_end(&mut self) {
        let Some(Node { configuration: Configuration { state, .. }, .. }) = self.nodes.last() else { return };
        let reference = &self.steps.reference;
        let is_final = reference.is_final(state);
        for (n, property) in self.question.properties.iter().enumerate() {
            match &property.kind {
                PropertyKind::NoDeadlock if reference.is_deadlock(state) => self.decided[n] = Some(false),
                PropertyKind::Finally(quantifier, formula) if is_final => match holds(state, formula) {
                    Some(value) => self.decided[n] = self.decided[n].or(decided_by(*quantifier, value)),
                    None => self.uncomputable[n] = true,
                },
                _ => {}
            }
        }
        if is_final {
            let value = |observable: &Observable| match observable {
                Observable::At(t, locations) => locations.contains(&state.locations[t.index()]).into(),
                Observable::Register(t, register) => state.registers[t.index()][register.index()],
                Observable::Memory(cell) => state.memory[*cell as usize],
            };
            self.found.finals.insert(self.question.observed.iter().map(value).collect());
        }
    }

    fn result(self) -> Enumerated {
        let satisfied = self.question.properties.iter().enumerate().map(|(n, property)| {
            let exists = matches!(property.kind, PropertyKind::Finally(Quantifier::Exists, _));
            self.decided[n].or((!self.uncomputable[n]).then_some(!exists))
        });
        Enumerated { satisfied: satisfied.collect(), ..self.found }
    }
}
