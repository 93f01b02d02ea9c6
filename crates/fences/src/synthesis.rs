//! The synthesis loop: inserts a cheapest set of fences that satisfies all clauses, verifies the program, and learns a clause, until the goal is met.
//!
//! A violation gives a [clause](mod@crate::clause). If a set of fences leaves no execution that satisfies a `finally exists`, the clause names a
//! minimal subset with this effect and says that one of its fences must be absent. All sufficient sets satisfy every clause. So the first set that
//! satisfies all clauses and suffices is a cheapest one, and if the clauses are unsatisfiable, no set suffices. If a set can be neither verified nor
//! refuted, a search that starts with all full fences may still find a sufficient set, which need not be a cheapest one.

use fencewright_engines::overflow::overfull;
use fencewright_engines::{Limits, Progress};
use fencewright_lang::places::Placed;
use fencewright_program::{Program, Property, Replayed, ThreadId, Trace};

use crate::candidate::{Candidate, Catalogue, Kind, Prices, candidates};
use crate::clause::{clause, shortened};
use crate::fenced::Fenced;
use crate::goal::{Broken, Examined, Goal, Proof, Violation, named};
use crate::hitting::{Cheapest, Clause, Cost, Item, NoSet, cheapest};
use crate::labels::Labels;

/// Options of the synthesis.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Prices of the candidates.
    pub prices: Prices,
    /// Maximum number of equally cheap sets to list.
    pub sets: usize,
    /// Whether to find, for every fence, a violation that it prevents.
    pub evidence: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { prices: Prices::default(), sets: 1, evidence: true }
    }
}

/// Maximum number of equally cheap sets that are compared to choose the most symmetric one, unless the options ask for more sets.
const COMPARED: usize = 64;

/// The outcome of a synthesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The program meets the goal without additional fences.
    AlreadySafe,
    /// With the fences, the program meets the goal.
    Fixed,
    /// No set of fences suffices.
    Unfixable,
    /// Undecided, with the reason.
    Unknown(String),
}

/// A fence of the answer, with the reason why it is needed.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The candidate that was chosen.
    pub fence: Candidate,
    /// A violation that occurs without this fence; `None` if no violation was found.
    pub needed_because: Option<Because>,
}

/// A violation of a program, as evidence.
#[derive(Clone, Debug)]
pub struct Because {
    /// The violating program, which may contain some of the fences.
    pub program: Program,
    /// The execution, replayed on the reference semantics.
    pub replayed: Replayed,
    /// The property that the execution violates; `None` if it violates a bound on buffers or the goal as a whole.
    pub property: Option<Property>,
    /// If the violation is a buffer that exceeds its bound in the last state, the thread with this buffer.
    pub overfull: Option<ThreadId>,
}

impl Because {
    /// The violation `broken` of a program, with the execution that shows it.
    pub(crate) fn new(program: Program, replayed: Replayed, broken: &Broken) -> Self {
        let overfull = match broken {
            Broken::Bound(bound) => overfull(replayed.last(), *bound),
            Broken::Property(_) | Broken::Goal => None,
        };
        Because { property: broken.property(&program), overfull, program, replayed }
    }
}

/// The result of a synthesis.
#[derive(Debug)]
pub struct Synthesis {
    /// Whether fences were found, or why not.
    pub verdict: Verdict,
    /// The fences, in the order in which they stand in the text.
    pub fences: Vec<Chosen>,
    /// The total price of the fences; 0 if there are none.
    pub cost: u64,
    /// The number of fences; a fence counts once for each thread that executes it.
    pub count: usize,
    /// Whether the result is known to be a cheapest sufficient set.
    pub optimal: bool,
    /// The number of sets with which the program was examined.
    pub rounds: usize,
    /// Sufficient sets of the same price, if the options ask for more than one; the first is `fences`.
    pub sets: Vec<Vec<Candidate>>,
    /// Whether `sets` contains all cheapest sufficient sets.
    pub sets_complete: bool,
    /// The evidence that the program with the fences meets the goal.
    pub proof: Proof,
    /// The program with the fences, for which the proof holds.
    pub program: Option<Program>,
    /// The reason why no set of fences suffices, if none does.
    pub unfixable: Option<Unfixable>,
    /// A sufficient set that is preferred to the answer, but with fences in files that must not be changed; empty if there is none.
    pub outside: Vec<Candidate>,
}

/// The reason why no set of fences suffices.
#[derive(Debug)]
pub struct Unfixable {
    /// A violation of the unmodified program; `None` if none was found, as when the reason is that no execution satisfies an existential property.
    pub because: Option<Because>,
    /// Whether one reason alone suffices: the violation in `because`, which no allowed candidate prevents, or, if that is `None`, an existential
    /// property that no execution satisfies even without fences.
    pub inevitable: bool,
    /// The names of the properties that cannot hold together, and `overflow` for a violated bound on buffers. The goal as a whole, such as
    /// robustness, has no name here.
    pub properties: Vec<String>,
    /// The existential properties (`finally exists`) among `properties`.
    pub existence: Vec<String>,
    /// A set that would suffice but uses places excluded by the hint `spare`; empty if these hints are not the reason.
    pub spared: Vec<Candidate>,
}

/// Finds the cheapest fences with which a program meets a goal.
pub fn synthesise(
    placed: &Placed,
    goal: &dyn Goal,
    options: &Options,
    limits: &Limits,
    progress: &Progress,
) -> Synthesis {
    let catalogue = Catalogue::new(candidates(placed, goal.model(), options.prices));
    let mut search = Search {
        placed,
        goal,
        limits,
        progress,
        // If several sets are to be listed, the cost is the price alone, so that all sets of the same price are equally cheap.
        costs: catalogue
            .all
            .iter()
            .map(|c| if options.sets > 1 { Cost::from(c.price) } else { c.cost() })
            .collect(),
        catalogue,
        learnt: Vec::new(),
        allow_spared: false,
        allow_closed: false,
        outside: Vec::new(),
        rounds: 0,
        optimal: true,
    };
    search.run(options)
}

pub(crate) struct Search<'a> {
    pub placed: &'a Placed,
    pub goal: &'a dyn Goal,
    pub limits: &'a Limits,
    pub progress: &'a Progress,
    pub catalogue: Catalogue,
    costs: Vec<Cost>,
    pub learnt: Vec<Learnt>,
    /// Whether candidates at spared places may be chosen. Set only to test whether the hint `spare` is the reason why no set suffices.
    pub allow_spared: bool,
    /// Whether candidates in files that must not be changed may be chosen. Set at first, to find out whether a fence belongs there.
    allow_closed: bool,
    outside: Vec<Candidate>,
    rounds: usize,
    optimal: bool,
}

/// A clause that every sufficient set satisfies, and the violation from which it was learnt.
pub(crate) struct Learnt {
    pub clause: Clause,
    /// The part of the goal that is violated.
    pub broken: Broken,
    /// The violation, as an execution of the marked program; `None` if instead no execution satisfies the property.
    pub violation: Option<Trace>,
}

const NO_REPLAY: &str = "internal contradiction, please report it: an execution does not replay";
const NOT_PREVENTED: &str =
    "internal contradiction, please report it: a fence did not prevent what it should";

/// The result of verifying the program with a set of fences.
pub(crate) enum Tried {
    Sufficient(Proof, Box<Program>),
    /// The set does not suffice; a clause was learnt.
    Insufficient,
    Unknown(String),
}

impl Search<'_> {
    fn run(&mut self, options: &Options) -> Synthesis {
        self.allow_closed = self.catalogue.all.iter().any(|candidate| candidate.closed);
        loop {
            let Cheapest { sets, complete, .. } = match self.cheapest(options.sets.max(COMPARED)) {
                Ok(cheapest) => cheapest,
                Err(NoSet::Stopped) => return self.unknown(self.stopped()),
                Err(NoSet::Contradiction) => return self.unfixable(),
            };
            let set = self.most_symmetric(&sets);
            self.progress.say(format!("round {}: {} fences", self.rounds + 1, set.len()));
            match self.attempt(&set) {
                Tried::Sufficient(..) if self.is_outside(&set) => {
                    self.outside = self.catalogue.chosen(&set).into_iter().cloned().collect();
                    self.allow_closed = false;
                }
                Tried::Sufficient(proof, program) => {
                    let listed = match options.sets > 1 {
                        true => self.all_sufficient(&set, &sets, complete),
                        false => Some((vec![set.clone()], true)),
                    };
                    // `None` means that verifying another of the equally cheap sets gave a new clause: continue with the cheapest set for the
                    // extended clauses.
                    if let Some(listed) = listed {
                        return self.found(set, listed, proof, *program, options);
                    }
                }
                Tried::Insufficient => {}
                Tried::Unknown(reason) => return self.many(reason, options),
            }
        }
    }

    /// Whether a set has fences in files that must not be changed.
    fn is_outside(&self, set: &[Item]) -> bool {
        set.iter().any(|&item| self.catalogue.all[item].closed)
    }

    /// The cheapest sets that satisfy all clauses.
    pub(crate) fn cheapest(&self, most: usize) -> Result<Cheapest, NoSet> {
        cheapest(&self.costs, &self.clauses(), most, &|| self.is_over())
    }

    /// The clauses learnt so far, restricted to the candidates that may be used.
    pub(crate) fn clauses(&self) -> Vec<Clause> {
        let allowed = |item: &Item| {
            let Candidate { spared, closed, .. } = self.catalogue.all[*item];
            (self.allow_spared || !spared) && (self.allow_closed || !closed)
        };
        let clause = |learnt: &Learnt| {
            let any = learnt.clause.any.iter().copied().filter(allowed).collect();
            Clause { any, unless: learnt.clause.unless.clone() }
        };
        self.learnt.iter().map(clause).collect()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.limits.exceeded(0).is_some()
    }

    fn stopped(&self) -> String {
        self.limits.exceeded(0).map_or_else(|| "no set of fences could be verified".into(), |r| r.to_string())
    }

    /// Verifies the program with a set of fences, and learns a clause if it does not meet the goal.
    pub(crate) fn attempt(&mut self, set: &[Item]) -> Tried {
        self.rounds += 1;
        let fenced = Fenced::new(self.placed, &self.catalogue.chosen(set));
        let learnt = match self.goal.examine(&fenced.program, self.limits, self.progress) {
            Examined::Met(proof) => return Tried::Sufficient(proof, Box::new(fenced.program)),
            Examined::Unknown(reason) => return Tried::Unknown(reason),
            Examined::Violated(violation) => self.learn(&fenced, set, violation),
            Examined::Lost(property) => Some(self.lost(set, property)),
        };
        let Some(learnt) = learnt else { return Tried::Unknown(NO_REPLAY.into()) };
        if learnt.clause.is_satisfied(|item| set.contains(&item)) {
            return Tried::Unknown(NOT_PREVENTED.into());
        }
        self.learnt.push(learnt);
        Tried::Insufficient
    }

    /// The clause that follows from a violation of the program with the fences `set`.
    pub(crate) fn learn(&self, fenced: &Fenced, set: &[Item], violation: Violation) -> Option<Learnt> {
        let Violation { trace, broken } = violation;
        let model = self.goal.model();
        // In a violation of a bound on buffers, the stores in the overfull buffer are never flushed, so moving other flushes earlier preserves the
        // violation.
        let trace = match matches!(broken, Broken::Bound(_)) || self.goal.ignores_unseen_delays() {
            true => shortened(&fenced.program, model, &trace, &broken, &|| self.is_over()),
            false => trace,
        };
        let marked = broken.property(&fenced.marked);
        let (clause, trace) = clause(self.labels(), fenced, set, &trace, model, marked.as_ref())?;
        Some(Learnt { clause, broken, violation: Some(trace) })
    }

    /// The clause for a set of fences with which no execution satisfies an existential property. Further fences only remove executions, so no
    /// sufficient set contains this set. A smaller set with the same effect gives a stronger clause.
    fn lost(&self, set: &[Item], property: String) -> Learnt {
        let mut fewest = set.to_vec();
        for item in set {
            if self.is_over() {
                break;
            }
            let rest: Vec<Item> = fewest.iter().copied().filter(|other| other != item).collect();
            let fenced = Fenced::new(self.placed, &self.catalogue.chosen(&rest));
            if self.goal.lacks(&fenced.program, &property, self.limits, self.progress) == Some(true) {
                fewest = rest;
            }
        }
        // Exception: whether a thread that has ended is at a label may depend on fences. Inserting fences at such places may make the property
        // satisfiable again, so the clause lists these fences as alternatives.
        let stated = named(&self.placed.program, &property);
        let labels = self.labels();
        let places = stated.formula().map(|formula| labels.at_ends(formula)).unwrap_or_default();
        let fences = places.into_iter().flat_map(|place| labels.fences(place));
        let any = fences.filter(|item| !fewest.contains(item)).collect();
        Learnt { clause: Clause::new(any, fewest), broken: Broken::Property(property), violation: None }
    }

    fn labels(&self) -> Labels<'_> {
        Labels { placed: self.placed, catalogue: &self.catalogue }
    }

    /// Verifies sets of the same cost. Returns the sufficient ones and whether these are all cheapest sets; returns `None` if a set does not suffice,
    /// after a clause has been learnt from it.
    fn all_sufficient(
        &mut self,
        set: &[Item],
        sets: &[Vec<Item>],
        mut complete: bool,
    ) -> Option<(Vec<Vec<Item>>, bool)> {
        let mut sufficient = vec![set.to_vec()];
        for other in sets.iter().filter(|other| other.as_slice() != set) {
            if self.is_over() {
                complete = false;
                break;
            }
            match self.attempt(other) {
                Tried::Sufficient(..) => sufficient.push(other.clone()),
                Tried::Insufficient => return None,
                Tried::Unknown(_) => complete = false,
            }
        }
        Some((sufficient, complete))
    }

    /// Fallback if the program with a set could not be verified, because a program with more fences may be easier to verify: inserts all allowed full
    /// fences, and removes as many of them as possible. The result may not be optimal.
    fn many(&mut self, reason: String, options: &Options) -> Synthesis {
        self.optimal = false;
        self.allow_closed = false;
        let usable = |&item: &Item| {
            let candidate = &self.catalogue.all[item];
            candidate.kind == Kind::Full && !candidate.spared && !candidate.closed
        };
        let mut set: Vec<Item> = (0..self.catalogue.all.len()).filter(usable).collect();
        if self.is_over() {
            return self.unknown(reason);
        }
        let Tried::Sufficient(mut proof, mut program) = self.attempt(&set) else {
            return self.unknown(reason);
        };
        // Tries to remove half of the fences at a time, then a quarter, and finally one by one.
        let mut size = set.len().div_ceil(2);
        while size > 0 && !self.is_over() {
            let mut end = set.len();
            while end > 0 && !self.is_over() {
                let start = end.saturating_sub(size);
                let rest: Vec<Item> = set[..start].iter().chain(&set[end..]).copied().collect();
                end = start;
                if !self.learnt.iter().all(|l| l.clause.is_satisfied(|item| rest.contains(&item))) {
                    continue;
                }
                if let Tried::Sufficient(better, smaller) = self.attempt(&rest) {
                    (set, proof, program) = (rest, better, smaller);
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        self.found(set.clone(), (vec![set], false), proof, *program, options)
    }

    fn found(
        &mut self,
        set: Vec<Item>,
        (sets, complete): (Vec<Vec<Item>>, bool),
        proof: Proof,
        program: Program,
        options: &Options,
    ) -> Synthesis {
        let all = |set: &Vec<Item>| self.catalogue.chosen(set).into_iter().cloned().collect();
        let verdict = if set.is_empty() { Verdict::AlreadySafe } else { Verdict::Fixed };
        let mut answer = self.ended(verdict);
        answer.sets = sets.iter().map(all).collect();
        answer.sets_complete = complete;
        answer.cost = set.iter().map(|&item| self.catalogue.all[item].price).sum();
        answer.count = set.iter().map(|&item| self.catalogue.all[item].threads().len()).sum();
        answer.proof = proof;
        answer.program = Some(program);
        answer.fences = set
            .iter()
            .map(|&item| Chosen {
                fence: self.catalogue.all[item].clone(),
                needed_because: if options.evidence { self.without(&set, item) } else { None },
            })
            .collect();
        answer.fences.sort_by_key(|chosen: &Chosen| (chosen.fence.place.point(), chosen.fence.kind));
        answer
    }

    /// Chooses the set with the least sum of [`Candidate::cost`] and, among such sets, the most symmetric one: threads with equally many edges, which
    /// mostly have the same text, get fences at the same places.
    fn most_symmetric(&self, sets: &[Vec<Item>]) -> Vec<Item> {
        let alike = |set: &Vec<Item>| {
            let mut places: Vec<(usize, usize, Kind)> = Vec::new();
            for candidate in self.catalogue.chosen(set) {
                for (thread, edge) in &candidate.place.edges {
                    let code = self.placed.program.thread(*thread);
                    places.push((code.edges.len(), edge.index(), candidate.kind));
                }
            }
            let twins = |p: &(usize, usize, Kind)| places.iter().filter(|q| *q == p).count();
            places.iter().map(twins).sum::<usize>()
        };
        let cost = |set: &Vec<Item>| self.catalogue.chosen(set).iter().map(|c| c.cost()).sum::<Cost>();
        let rank = |set: &Vec<Item>| (std::cmp::Reverse(cost(set)), alike(set));
        let best = sets.iter().map(rank).max();
        sets.iter().find(|set| Some(rank(set)) == best).cloned().unwrap_or_default()
    }

    fn unknown(&self, reason: String) -> Synthesis {
        Synthesis { optimal: false, ..self.ended(Verdict::Unknown(reason)) }
    }

    pub(crate) fn ended(&self, verdict: Verdict) -> Synthesis {
        Synthesis {
            optimal: self.optimal,
            verdict,
            fences: Vec::new(),
            cost: 0,
            count: 0,
            rounds: self.rounds,
            sets: Vec::new(),
            sets_complete: false,
            proof: Proof::default(),
            program: None,
            unfixable: None,
            outside: self.outside.clone(),
        }
    }
}

/// The names of the threads that execute a fence.
pub fn thread_names(program: &Program, fence: &Candidate) -> Vec<String> {
    fence.threads().into_iter().map(|t: ThreadId| program.thread(t).name.clone()).collect()
}
