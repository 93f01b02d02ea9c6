//! The loop: cheapest set, verify, learn a clause, until the program meets the goal.

use fencewright_engines::{Limits, Progress};
use fencewright_lang::places::Placed;
use fencewright_program::reference::Access;
use fencewright_program::{Event, EventKind, MemoryModel, Program, Property, Replayed, ThreadId, Trace};

use crate::candidate::{Candidate, Kind, Prices, candidates};
use crate::clause::{clause, shortened};
use crate::fenced::Fenced;
use crate::goal::{Examined, Goal, Proof, Violation};
use crate::hitting::{Cheapest, Item, cheapest};

/// How to look for fences.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Prices.
    pub prices: Prices,
    /// At most so many cheapest sets; one is enough for most.
    pub sets: usize,
    /// Show for every fence what happens without it.
    pub evidence: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { prices: Prices::default(), sets: 1, evidence: true }
    }
}

/// Equally cheap sets are compared up to this number, to find the most symmetric one.
const COMPARED: usize = 64;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No fence is needed.
    AlreadySafe,
    /// These fences suffice.
    Fixed,
    /// No fence helps: the execution happens under SC too, or has no place for a fence.
    Unfixable,
    /// Nobody knows, and why.
    Unknown(String),
}

/// A fence of the answer.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The fence.
    pub fence: Candidate,
    /// The violation that comes back without it; nothing if none was found.
    pub needed_because: Option<Because>,
}

/// A violation of a program that lacks one fence.
#[derive(Clone, Debug)]
pub struct Because {
    /// The program.
    pub program: Program,
    /// The execution, replayed on the reference semantics.
    pub replayed: Replayed,
    /// The property it violates, if the goal is about properties.
    pub property: Option<Property>,
}

/// The answer.
#[derive(Debug)]
pub struct Synthesis {
    /// What was found.
    pub verdict: Verdict,
    /// The fences, in the order of the text.
    pub fences: Vec<Chosen>,
    /// What they cost.
    pub cost: u64,
    /// How many they are, over all threads that have them.
    pub count: usize,
    /// Whether no cheaper set suffices.
    pub optimal: bool,
    /// How many sets were verified.
    pub rounds: usize,
    /// Sets that are as cheap and suffice, if more than one was asked for; the first is the answer.
    pub sets: Vec<Vec<Candidate>>,
    /// Whether these are all of them.
    pub sets_complete: bool,
    /// What shows that the program with the fences meets the goal.
    pub proof: Proof,
    /// The program with the fences, which the proof is about.
    pub program: Option<Program>,
    /// If no fence helps, the execution that shows it.
    pub unfixable: Option<Because>,
}

/// Finds the cheapest fences with which a program meets a goal.
pub fn synthesise(
    placed: &Placed,
    goal: &dyn Goal,
    options: &Options,
    limits: &Limits,
    progress: &Progress,
) -> Synthesis {
    let candidates = candidates(placed, goal.model(), options.prices);
    let mut search = Search {
        placed,
        goal,
        limits,
        progress,
        // To list all sets of the same price, nothing finer than the price may decide.
        costs: candidates.iter().map(|c| if options.sets > 1 { c.price } else { c.weight }).collect(),
        candidates,
        clauses: Vec::new(),
        violations: Vec::new(),
        rounds: 0,
        optimal: true,
    };
    search.run(options)
}

struct Search<'a> {
    placed: &'a Placed,
    goal: &'a dyn Goal,
    limits: &'a Limits,
    progress: &'a Progress,
    candidates: Vec<Candidate>,
    costs: Vec<u64>,
    clauses: Vec<Vec<Item>>,
    /// The violations seen, as executions of the program with an empty step at every place, with the clause of each.
    violations: Vec<Seen>,
    rounds: usize,
    optimal: bool,
}

/// A violation, the name of the property, and its clause.
type Seen = (Trace, Option<String>, Vec<Item>);

const NO_REPLAY: &str = "internal contradiction, please report it: an execution does not replay";

/// How a set turned out.
enum Tried {
    Sufficient(Proof, Box<Program>),
    Clause,
    Unfixable(Box<Because>),
    Unknown(String),
}

impl Search<'_> {
    fn run(&mut self, options: &Options) -> Synthesis {
        loop {
            let stop = || self.limits.exceeded(0).is_some();
            let most = options.sets.max(COMPARED);
            let Some(Cheapest { sets, complete, .. }) = cheapest(&self.costs, &self.clauses, most, &stop)
            else {
                let reason = match self.limits.exceeded(0) {
                    Some(reason) => reason.to_string(),
                    None => "no set of fences could be verified".into(),
                };
                return self.ended(Verdict::Unknown(reason), None);
            };
            let set = self.most_symmetric(&sets);
            self.progress.say(format!("round {}: {} fences", self.rounds + 1, set.len()));
            match self.attempt(&set) {
                Tried::Sufficient(proof, program) => {
                    let listed = match options.sets > 1 {
                        true => self.all_sufficient(&set, &sets, complete),
                        false => Some((vec![set.clone()], true)),
                    };
                    // Otherwise another set turned out not to suffice, and there is one more clause.
                    if let Some(listed) = listed {
                        return self.found(set, listed, proof, *program, options);
                    }
                }
                Tried::Clause => {}
                Tried::Unfixable(because) => return self.ended(Verdict::Unfixable, Some(*because)),
                Tried::Unknown(reason) => {
                    // Perhaps more fences make the program easier to verify; the answer is then no longer known to be cheapest.
                    self.optimal = false;
                    let others: Vec<Item> = (0..self.candidates.len())
                        .filter(|item| self.candidates[*item].kind == Kind::Full && !set.contains(item))
                        .collect();
                    if others.is_empty() || self.limits.exceeded(0).is_some() {
                        return self.ended(Verdict::Unknown(reason), None);
                    }
                    self.clauses.push(others);
                }
            }
        }
    }

    /// Verifies the program with a set of fences; a violation gives a clause.
    fn attempt(&mut self, set: &[Item]) -> Tried {
        self.rounds += 1;
        let chosen: Vec<&Candidate> = set.iter().map(|&item| &self.candidates[item]).collect();
        let fenced = Fenced::new(self.placed, &chosen);
        let violation = match self.goal.examine(&fenced.program, self.limits, self.progress) {
            Examined::Met(proof) => return Tried::Sufficient(proof, Box::new(fenced.program)),
            Examined::Unknown(reason) => return Tried::Unknown(reason),
            Examined::Violated(violation) => violation,
        };
        let model = self.goal.model();
        let Violation { trace, property: name } = violation;
        let property = name.as_ref().map(|name| named(&fenced.marked, name));
        let Some(lifted) = fenced.lifted(&trace, model, property.as_ref()) else {
            return Tried::Unknown(
                "internal contradiction, please report it: an execution cannot be traced back".into(),
            );
        };
        let short = self.shortened(&fenced, lifted, property.as_ref());
        let Ok(replayed) = short.replay(&fenced.marked, model) else {
            return Tried::Unknown(NO_REPLAY.into());
        };
        let clause = clause(&replayed, &self.candidates);
        if clause.is_empty() {
            return match self.shown(fenced, &short, name.as_ref(), true) {
                Some(because) => Tried::Unfixable(Box::new(because)),
                None => Tried::Unknown(NO_REPLAY.into()),
            };
        }
        if clause.iter().any(|item| set.contains(item)) {
            let reason = "internal contradiction, please report it: a fence did not prevent what it should";
            return Tried::Unknown(reason.into());
        }
        self.violations.push((short, name, clause.clone()));
        self.clauses.push(clause);
        Tried::Clause
    }

    /// The same violation with less delay, if the goal allows that.
    fn shortened(&self, fenced: &Fenced, trace: Trace, property: Option<&Property>) -> Trace {
        match self.goal.ignores_unseen_delays() {
            true => {
                let stop = || self.limits.exceeded(0).is_some();
                shortened(&fenced.marked, self.goal.model(), &trace, property, &stop)
            }
            false => trace,
        }
    }

    /// An execution as it is shown to people: without empty steps, and under SC if it is one there and that is asked for.
    fn shown(&self, fenced: Fenced, trace: &Trace, name: Option<&String>, sc: bool) -> Option<Because> {
        let plain = fenced.plain(trace);
        let property = name.map(|name| named(&fenced.program, name));
        let replay = |trace: &Trace, model| match &property {
            Some(property) => trace.replay_for(&fenced.program, model, property).ok(),
            None => trace.replay(&fenced.program, model).ok(),
        };
        let first = replay(&plain, self.goal.model())?;
        let under_sc = || {
            let late = Trace { events: stores_on_arrival(&first), ..plain.clone() };
            let flush = |e: &Event| matches!(e.kind, EventKind::Flush { .. });
            let steps = plain.events.iter().filter(|e| !flush(e)).cloned().collect();
            let early = Trace { events: steps, ..plain.clone() };
            replay(&late, MemoryModel::Sc).or_else(|| replay(&early, MemoryModel::Sc))
        };
        let replayed = sc.then(under_sc).flatten().unwrap_or(first);
        Some(Because { program: fenced.program, replayed, property })
    }

    /// Of these sets, the first known to suffice, all that do, and whether that is all there are; nothing if a clause was
    /// learnt from one that does not.
    fn all_sufficient(
        &mut self,
        set: &[Item],
        sets: &[Vec<Item>],
        mut complete: bool,
    ) -> Option<(Vec<Vec<Item>>, bool)> {
        let mut sufficient = vec![set.to_vec()];
        for other in sets.iter().filter(|other| other.as_slice() != set) {
            match self.attempt(other) {
                Tried::Sufficient(..) => sufficient.push(other.clone()),
                Tried::Clause => return None,
                Tried::Unfixable(_) | Tried::Unknown(_) => complete = false,
            }
        }
        Some((sufficient, complete))
    }

    fn found(
        &mut self,
        set: Vec<Item>,
        (sets, complete): (Vec<Vec<Item>>, bool),
        proof: Proof,
        program: Program,
        options: &Options,
    ) -> Synthesis {
        let verdict = if set.is_empty() { Verdict::AlreadySafe } else { Verdict::Fixed };
        let fences = set
            .iter()
            .map(|&item| Chosen {
                fence: self.candidates[item].clone(),
                needed_because: if options.evidence { self.without(&set, item) } else { None },
            })
            .collect();
        let all = |set: &Vec<Item>| set.iter().map(|&item| self.candidates[item].clone()).collect();
        let mut answer = self.ended(verdict, None);
        answer.sets = sets.iter().map(all).collect();
        answer.sets_complete = complete;
        answer.fences = fences;
        answer.fences.sort_by_key(|chosen: &Chosen| (chosen.fence.place.offset, chosen.fence.kind));
        answer.cost = set.iter().map(|&item| self.candidates[item].price).sum();
        answer.count = set.iter().map(|&item| self.candidates[item].threads().len()).sum();
        answer.proof = proof;
        answer.program = Some(program);
        answer
    }

    /// A violation of the program that has all of a set but one fence.
    fn without(&mut self, set: &[Item], item: Item) -> Option<Because> {
        let rest: Vec<Item> = set.iter().copied().filter(|other| *other != item).collect();
        let chosen: Vec<&Candidate> = rest.iter().map(|&item| &self.candidates[item]).collect();
        let fenced = Fenced::new(self.placed, &chosen);
        let model = self.goal.model();
        // One that was seen before, if no other fence of the set prevents it.
        let free = |(_, _, clause): &&Seen| !clause.iter().any(|i| rest.contains(i));
        for (trace, name, _) in self.violations.iter().filter(free) {
            let property = name.as_ref().map(|name| named(&fenced.marked, name));
            let possible = property.is_some_and(|p| trace.replay_for(&fenced.marked, model, &p).is_ok());
            if possible {
                return self.shown(fenced, trace, name.as_ref(), false);
            }
        }
        let Examined::Violated(violation) = self.goal.examine(&fenced.program, self.limits, self.progress)
        else {
            return None;
        };
        let Violation { trace, property: name } = violation;
        let property = name.as_ref().map(|name| named(&fenced.marked, name));
        let lifted = fenced.lifted(&trace, model, property.as_ref())?;
        let short = self.shortened(&fenced, lifted, property.as_ref());
        self.shown(fenced, &short, name.as_ref(), false)
    }

    /// Of several sets the one that treats threads most alike: fences at the same place of threads with the same text.
    fn most_symmetric(&self, sets: &[Vec<Item>]) -> Vec<Item> {
        let alike = |set: &Vec<Item>| {
            let mut places: Vec<(usize, usize, Kind)> = Vec::new();
            for candidate in set.iter().map(|&item| &self.candidates[item]) {
                for (thread, edge) in &candidate.place.edges {
                    let code = self.placed.program.thread(*thread);
                    places.push((code.edges.len(), edge.index(), candidate.kind));
                }
            }
            let twins = |p: &(usize, usize, Kind)| places.iter().filter(|q| *q == p).count();
            places.iter().map(twins).sum::<usize>()
        };
        let weight = |set: &Vec<Item>| set.iter().map(|&item| self.candidates[item].weight).sum::<u64>();
        let rank = |set: &Vec<Item>| (std::cmp::Reverse(weight(set)), alike(set));
        let best = sets.iter().map(rank).max();
        sets.iter().find(|set| Some(rank(set)) == best).cloned().unwrap_or_default()
    }

    fn ended(&self, verdict: Verdict, unfixable: Option<Because>) -> Synthesis {
        Synthesis {
            optimal: self.optimal && !matches!(verdict, Verdict::Unknown(_)),
            verdict,
            fences: Vec::new(),
            cost: 0,
            count: 0,
            rounds: self.rounds,
            sets: Vec::new(),
            sets_complete: false,
            proof: Proof::default(),
            program: None,
            unfixable,
        }
    }
}

/// The steps of an execution with each store where it reaches memory, as far as its thread does nothing else in between.
fn stores_on_arrival(replayed: &Replayed) -> Vec<Event> {
    let mut events: Vec<Option<Event>> = replayed.events.iter().cloned().map(Some).collect();
    for n in 0..events.len() {
        let Event { thread, kind: EventKind::Flush { .. } } = replayed.events[n] else { continue };
        // The store is the last step of its thread before the flush, or it stays where it is.
        let own = |m: &usize| {
            replayed.events[*m].thread == thread
                && !matches!(replayed.events[*m].kind, EventKind::Flush { .. })
        };
        let step = (0..n).rev().find(own);
        let stored = step.filter(|&m| {
            let buffered = |a: &Access| matches!(a, Access::Write { buffered: true, .. });
            replayed.effects[m].iter().any(buffered)
        });
        events[n] = stored.and_then(|m| events[m].take());
    }
    events.into_iter().flatten().collect()
}

/// The property of a program with this name; `assertions` need not be stated.
pub(crate) fn named(program: &Program, name: &str) -> Property {
    let stated = program.properties.iter().find(|p| p.name == name).cloned();
    stated.unwrap_or_else(Property::assertions)
}

/// The names of the threads that have a fence.
pub fn thread_names(program: &Program, fence: &Candidate) -> Vec<String> {
    fence.threads().into_iter().map(|t: ThreadId| program.thread(t).name.clone()).collect()
}
