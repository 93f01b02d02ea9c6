//! The cheapest set that satisfies every clause: an exact solver for minimum-cost hitting sets, extended by unwanted items.
//!
//! A clause has two lists: a set satisfies the clause if it contains an item of the first list or lacks an item of the second. If the second list is
//! empty, this is a clause of a hitting-set problem. The search is branch and bound. It starts with the empty set, and for a violated clause branches
//! over the items of its first list. The lower bound is a sum over violated clauses that share no item: each contributes the cost of its cheapest
//! item, because no item satisfies two of them. Clauses learnt from executions are few and small, so the search takes microseconds. Costs are
//! integers, so the minimum is exact.

/// An item, as an index into the list of costs.
pub type Item = usize;

/// The cost of an item, as `Candidate::cost` computes it; only its price if several sets are to be listed.
pub type Cost = u128;

/// A condition on a set: it contains some item of `any`, or lacks some item of `unless`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clause {
    /// The set satisfies the clause if it contains one of these items.
    pub any: Vec<Item>,
    /// The set satisfies the clause if it lacks one of these items.
    pub unless: Vec<Item>,
}

impl Clause {
    /// A clause with sorted items.
    pub fn new(mut any: Vec<Item>, mut unless: Vec<Item>) -> Self {
        for items in [&mut any, &mut unless] {
            items.sort_unstable();
            items.dedup();
        }
        Clause { any, unless }
    }

    /// Whether a set satisfies the clause.
    pub fn is_satisfied(&self, has: impl Fn(Item) -> bool) -> bool {
        self.any.iter().any(|&item| has(item)) || !self.unless.iter().all(|&item| has(item))
    }

    /// Whether every set that satisfies this clause also satisfies `other`.
    fn implies(&self, other: &Clause) -> bool {
        let within = |few: &[Item], many: &[Item]| few.iter().all(|item| many.binary_search(item).is_ok());
        within(&self.any, &other.any) && within(&self.unless, &other.unless)
    }
}

/// The sets of minimum cost that satisfy all clauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cheapest {
    /// The cost, equal for all sets in `sets`.
    pub cost: Cost,
    /// The sets, each sorted and without redundant items.
    pub sets: Vec<Vec<Item>>,
    /// Whether `sets` contains all cheapest sets; false if the requested maximum number was reached and there may be more.
    pub complete: bool,
}

/// The reason why there is no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSet {
    /// The clauses are unsatisfiable.
    Contradiction,
    /// The search was stopped.
    Stopped,
}

/// The cheapest sets that satisfy every clause; at most `most` of them are returned, and at least one.
pub fn cheapest(
    costs: &[Cost],
    clauses: &[Clause],
    most: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Cheapest, NoSet> {
    if clauses.contains(&Clause::default()) {
        return Err(NoSet::Contradiction);
    }
    // Sorts clauses by size and drops every clause that another, smaller clause implies.
    let mut sorted: Vec<&Clause> = clauses.iter().collect();
    sorted.sort_by_key(|clause| clause.any.len() + clause.unless.len());
    let mut needed: Vec<&Clause> = Vec::new();
    for clause in sorted {
        if stop() {
            return Err(NoSet::Stopped);
        }
        if !needed.iter().any(|known| known.implies(clause)) {
            needed.push(clause);
        }
    }
    let mut search = Search {
        costs,
        clauses: &needed,
        chosen: Vec::new(),
        state: vec![State::Free; costs.len()],
        used: vec![0; costs.len()],
        round: 0,
        best: Cost::MAX,
        sets: Vec::new(),
        most: most.max(1),
        complete: true,
        work: 0,
        stop,
        stopped: false,
    };
    search.branch(0);
    let Search { best, sets, complete, stopped, .. } = search;
    match (stopped, sets.is_empty()) {
        (true, _) => Err(NoSet::Stopped),
        (false, true) => Err(NoSet::Contradiction),
        (false, false) => Ok(Cheapest { cost: best, sets, complete }),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Chosen,
    /// The item was tried earlier on this branch: all sets that contain it have been searched.
    Excluded,
}

/// Minimum number of items and clauses visited between two calls of `stop`.
const WORK: usize = 1 << 16;

struct Search<'a> {
    costs: &'a [Cost],
    clauses: &'a [&'a Clause],
    chosen: Vec<Item>,
    state: Vec<State>,
    /// For each item, the last call of [`Search::bound`] (by `round`) that used it.
    used: Vec<u64>,
    round: u64,
    best: Cost,
    sets: Vec<Vec<Item>>,
    most: usize,
    complete: bool,
    work: usize,
    stop: &'a dyn Fn() -> bool,
    stopped: bool,
}

impl Search<'_> {
    fn branch(&mut self, cost: Cost) {
        if self.stopped {
            return;
        }
        let mut open: Vec<Vec<Item>> = Vec::new();
        for clause in self.clauses {
            self.work += clause.any.len() + clause.unless.len() + 1;
            if !clause.is_satisfied(|item| self.state[item] == State::Chosen) {
                let free = |item: &Item| self.state[*item] == State::Free;
                open.push(clause.any.iter().copied().filter(free).collect());
            }
        }
        if self.work > WORK {
            self.work = 0;
            self.stopped = (self.stop)();
        }
        if open.is_empty() {
            return self.found(cost);
        }
        open.sort_by_key(Vec::len);
        let Some(more) = self.bound(&open) else { return };
        let least = cost.saturating_add(more);
        // Once the maximum number of sets has been found, only a strictly cheaper set can still change the result.
        let full = self.sets.len() >= self.most;
        if least > self.best || (full && least >= self.best) {
            self.complete &= least != self.best;
            return;
        }
        let clause = open.swap_remove(0);
        drop(open);
        for &item in &clause {
            self.chosen.push(item);
            self.state[item] = State::Chosen;
            self.branch(cost.saturating_add(self.costs[item]));
            self.chosen.pop();
            self.state[item] = State::Excluded;
        }
        clause.iter().for_each(|&item| self.state[item] = State::Free);
    }

    /// A lower bound on the cost of satisfying the open clauses; `None` if one of them has no free item left.
    fn bound(&mut self, open: &[Vec<Item>]) -> Option<Cost> {
        self.round += 1;
        let mut total: Cost = 0;
        for clause in open {
            let least = clause.iter().map(|&item| self.costs[item]).min()?;
            if clause.iter().any(|&item| self.used[item] == self.round) {
                continue;
            }
            total = total.saturating_add(least);
            clause.iter().for_each(|&item| self.used[item] = self.round);
        }
        Some(total)
    }

    fn found(&mut self, cost: Cost) {
        if cost > self.best {
            return;
        }
        if cost < self.best {
            self.best = cost;
            self.sets.clear();
            self.complete = true;
        }
        // Cheapest sets may contain redundant items of cost 0; these are removed.
        let mut set = self.chosen.clone();
        for item in self.chosen.iter().filter(|&&item| self.costs[item] == 0) {
            let rest = |i: Item| i != *item && set.contains(&i);
            if self.clauses.iter().all(|clause| clause.is_satisfied(rest)) {
                set.retain(|i| i != item);
            }
        }
        set.sort_unstable();
        if self.sets.contains(&set) {
            return;
        }
        if self.sets.len() >= self.most {
            self.complete = false;
        } else {
            self.sets.push(set);
        }
    }
}

/// A minimal unsatisfiable core: the indices of clauses that are unsatisfiable together, but satisfiable if any one of them is dropped. If `stop`
/// ends the search early, the core may not be minimal.
pub fn contradiction(items: usize, clauses: &[Clause], stop: &dyn Fn() -> bool) -> Vec<usize> {
    if let Some(empty) = clauses.iter().position(|clause| *clause == Clause::default()) {
        return vec![empty];
    }
    let costs = vec![0; items];
    let mut core: Vec<usize> = (0..clauses.len()).collect();
    let mut n = core.len();
    while n > 0 && !stop() {
        n -= 1;
        let rest = core.iter().enumerate().filter(|(at, _)| *at != n);
        let fewer: Vec<Clause> = rest.map(|(_, &clause)| clauses[clause].clone()).collect();
        if cheapest(&costs, &fewer, 1, stop) == Err(NoSet::Contradiction) {
            core.remove(n);
        }
    }
    core
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencewright_testing::Random;

    /// A clause in the notation of the tests: wanted items are numbers from 0 up, unwanted items numbers from -1 down.
    fn clause(literals: &[i64]) -> Clause {
        let any = literals.iter().filter(|l| **l >= 0).map(|l| *l as Item).collect();
        let unless = literals.iter().filter(|l| **l < 0).map(|l| (-l - 1) as Item).collect();
        Clause::new(any, unless)
    }

    fn check(costs: &[Cost], clauses: &[&[i64]], expected: Option<(Cost, &[&[Item]])>) {
        let clauses: Vec<Clause> = clauses.iter().map(|c| clause(c)).collect();
        let mut found = cheapest(costs, &clauses, 100, &|| false);
        if let Ok(found) = &mut found {
            found.sets.sort();
        }
        let sets = |sets: &[&[Item]]| sets.iter().map(|s| s.to_vec()).collect();
        let expected = expected.map(|(cost, all)| Cheapest { cost, sets: sets(all), complete: true });
        assert_eq!(found, expected.ok_or(NoSet::Contradiction), "{costs:?} {clauses:?}");
    }

    #[test]
    fn small_instances() {
        check(&[1, 1], &[], Some((0, &[&[]])));
        check(&[1, 1], &[&[]], None);
        check(&[1, 1], &[&[0, 1]], Some((1, &[&[0], &[1]])));
        check(&[3, 1, 1], &[&[0, 1], &[0, 2]], Some((2, &[&[1, 2]])));
        check(&[1, 1, 1], &[&[0, 1], &[0, 2]], Some((1, &[&[0]])));
        check(&[2, 1, 1], &[&[0, 1], &[0, 2]], Some((2, &[&[0], &[1, 2]])));
        check(&[0, 0, 5], &[&[0, 1, 2], &[2, 0]], Some((0, &[&[0]])));
    }

    #[test]
    fn items_may_be_unwanted() {
        check(&[1, 1], &[&[-1]], Some((0, &[&[]])));
        check(&[1, 2], &[&[0, 1], &[-1]], Some((2, &[&[1]])));
        check(&[1, 2], &[&[0, 1], &[-1, 1]], Some((2, &[&[1]])));
        check(&[1, 1], &[&[0, 1], &[-1], &[-2]], None);
        check(&[1, 1, 1], &[&[0, 1], &[-1, 2], &[-2, 2]], Some((2, &[&[0, 2], &[1, 2]])));
        check(&[1, 1, 5], &[&[0], &[1, 2], &[-1, -2]], Some((6, &[&[0, 2]])));
    }

    fn random_clauses(random: &mut Random, items: usize) -> Vec<Clause> {
        let item = |random: &mut Random| random.below(items);
        let few = |random: &mut Random, most: usize| {
            (0..random.below(most)).map(|_| item(random)).collect::<Vec<_>>()
        };
        (0..random.below(8)).map(|_| Clause::new(few(random, 4), few(random, 3))).collect()
    }

    /// All subsets of the items that satisfy all clauses.
    fn satisfying(items: usize, clauses: &[Clause]) -> Vec<Vec<Item>> {
        let set = |bits: u32| (0..items).filter(|i| bits >> i & 1 == 1).collect::<Vec<Item>>();
        let all = |set: &Vec<Item>| clauses.iter().all(|c| c.is_satisfied(|i| set.contains(&i)));
        (0u32..1 << items).map(set).filter(all).collect()
    }

    /// Compares the search with the enumeration of all subsets on many small instances.
    #[test]
    fn the_search_finds_exactly_the_cheapest_sets() {
        let mut random = Random::new(7);
        let mut contradictions = 0;
        for _ in 0..4_000 {
            let costs: Vec<Cost> = (0..1 + random.below(7)).map(|_| random.below(4) as Cost).collect();
            let clauses = random_clauses(&mut random, costs.len());
            let all = satisfying(costs.len(), &clauses);
            let cost = |set: &Vec<Item>| set.iter().map(|&i| costs[i]).sum::<Cost>();
            let best = all.iter().map(cost).min();
            let Ok(mut found) = cheapest(&costs, &clauses, 1_000, &|| false) else {
                contradictions += 1;
                assert_eq!(best, None, "{costs:?} {clauses:?}");
                continue;
            };
            assert_eq!(Some(found.cost), best, "{costs:?} {clauses:?}");
            assert!(found.complete);
            found.sets.sort();
            // The cheapest subsets from which no item can be removed.
            let within = |few: &Vec<Item>, many: &Vec<Item>| few.iter().all(|i| many.contains(i));
            let minimal = |s: &&Vec<Item>| !all.iter().any(|t| t != *s && within(t, s));
            let cheap = all.iter().filter(|s| Some(cost(s)) == best);
            let mut expected: Vec<Vec<Item>> = cheap.filter(minimal).cloned().collect();
            expected.sort();
            assert_eq!(found.sets, expected, "{costs:?} {clauses:?}");
        }
        assert!(contradictions > 100, "only {contradictions}");
    }

    #[test]
    fn contradictions_are_small() {
        let mut random = Random::new(8);
        let mut seen = 0;
        while seen < 100 {
            let items = 1 + random.below(4);
            let clauses = random_clauses(&mut random, items);
            if !satisfying(items, &clauses).is_empty() {
                continue;
            }
            let core = contradiction(items, &clauses, &|| false);
            let without = |left: Option<usize>| -> Vec<Clause> {
                core.iter().filter(|n| Some(**n) != left).map(|&n| clauses[n].clone()).collect()
            };
            assert!(satisfying(items, &without(None)).is_empty(), "{clauses:?}: {core:?}");
            for &n in &core {
                assert!(!satisfying(items, &without(Some(n))).is_empty(), "{clauses:?}: {core:?}, {n}");
            }
            seen += 1;
        }
    }

    #[test]
    fn many_independent_clauses_are_no_matter() {
        let clauses: Vec<Clause> =
            (0..40).map(|n| Clause::new((5 * n..5 * n + 5).collect(), Vec::new())).collect();
        let found = cheapest(&[1; 200], &clauses, 64, &|| false).expect("they can be satisfied");
        assert_eq!((found.cost, found.sets.len(), found.complete), (40, 64, false));
    }

    #[test]
    fn it_stops_when_it_is_told() {
        let mut random = Random::new(9);
        let mut items = || (0..3).map(|_| random.below(120)).collect::<Vec<Item>>();
        let clauses: Vec<Clause> = (0..300).map(|_| Clause::new(items(), Vec::new())).collect();
        let asked = std::cell::Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) > 400;
        assert_eq!(cheapest(&[1; 120], &clauses, 1, &stop), Err(NoSet::Stopped));
    }
}
