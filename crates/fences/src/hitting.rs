//! Minimum-cost hitting sets, exactly: the cheapest items that contain at least one of every clause.
//!
//! Branch and bound over the smallest clause that is not hit yet. The bound is the cost of clauses that share no item: each of them needs
//! an item of its own. Clauses from executions are few and small, so this takes microseconds; costs are integers, so the minimum is exact.

/// An item: its position in the list of costs.
pub type Item = usize;

/// The sets that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cheapest {
    /// What each of them costs.
    pub cost: u64,
    /// The sets, each sorted, without items that could be left out.
    pub sets: Vec<Vec<Item>>,
    /// Whether these are all: not if there are more than were asked for.
    pub complete: bool,
}

/// The cheapest sets that hit every clause, at most `most` of them; none if some clause is empty or `stop` said so.
pub fn cheapest(
    costs: &[u64],
    clauses: &[Vec<Item>],
    most: usize,
    stop: &dyn Fn() -> bool,
) -> Option<Cheapest> {
    if clauses.iter().any(Vec::is_empty) {
        return None;
    }
    // Smallest clauses first, and none that another one implies: fewer branches.
    let mut sorted: Vec<Vec<Item>> = clauses.to_vec();
    sorted.iter_mut().for_each(|clause| {
        clause.sort_unstable();
        clause.dedup();
    });
    sorted.sort_by_key(Vec::len);
    let mut needed: Vec<Vec<Item>> = Vec::new();
    for clause in sorted {
        if !needed.iter().any(|known| known.iter().all(|item| clause.binary_search(item).is_ok())) {
            needed.push(clause);
        }
    }
    let mut search = Search {
        costs,
        clauses: &needed,
        chosen: Vec::new(),
        excluded: vec![false; costs.len()],
        best: u64::MAX,
        sets: Vec::new(),
        most: most.max(1),
        complete: true,
        steps: 0,
        stop,
        stopped: false,
    };
    search.branch(0);
    let Search { best, sets, complete, stopped, .. } = search;
    (!stopped).then_some(Cheapest { cost: best, sets, complete })
}

struct Search<'a> {
    costs: &'a [u64],
    clauses: &'a [Vec<Item>],
    chosen: Vec<Item>,
    /// Items that were tried before on this branch: sets with them have been seen.
    excluded: Vec<bool>,
    best: u64,
    sets: Vec<Vec<Item>>,
    most: usize,
    complete: bool,
    steps: u64,
    stop: &'a dyn Fn() -> bool,
    stopped: bool,
}

impl Search<'_> {
    fn branch(&mut self, cost: u64) {
        self.steps += 1;
        self.stopped |= self.steps.is_multiple_of(1024) && (self.stop)();
        if self.stopped {
            return;
        }
        let open = |clause: &&Vec<Item>| !clause.iter().any(|item| self.chosen.contains(item));
        let left: Vec<&Vec<Item>> = self.clauses.iter().filter(open).collect();
        let free = |clause: &Vec<Item>| clause.iter().copied().filter(|&i| !self.excluded[i]).collect();
        let mut left: Vec<Vec<Item>> = left.into_iter().map(free).collect();
        if left.is_empty() {
            return self.found(cost);
        }
        left.sort_by_key(Vec::len);
        let least = cost.saturating_add(self.bound(&left));
        // With as many sets as were asked for, only cheaper ones are of interest.
        let full = self.sets.len() >= self.most;
        if least > self.best || (full && least >= self.best) {
            self.complete &= least != self.best;
            return;
        }
        let clause = left.swap_remove(0);
        for &item in &clause {
            self.chosen.push(item);
            self.branch(cost.saturating_add(self.costs[item]));
            self.chosen.pop();
            self.excluded[item] = true;
        }
        clause.iter().for_each(|&item| self.excluded[item] = false);
    }

    /// What the open clauses cost at least; a clause without items cannot be hit.
    fn bound(&self, open: &[Vec<Item>]) -> u64 {
        let mut used: Vec<Item> = Vec::new();
        let mut total = 0u64;
        for clause in open {
            if clause.iter().any(|item| used.contains(item)) {
                continue;
            }
            let Some(least) = clause.iter().map(|&item| self.costs[item]).min() else { return u64::MAX };
            total = total.saturating_add(least);
            used.extend(clause);
        }
        total
    }

    fn found(&mut self, cost: u64) {
        if cost > self.best {
            return;
        }
        if cost < self.best {
            self.best = cost;
            self.sets.clear();
            self.complete = true;
        }
        // An item that costs nothing may not be needed.
        let mut set = self.chosen.clone();
        for item in &self.chosen {
            let others = |clause: &Vec<Item>| clause.iter().any(|i| i != item && set.contains(i));
            if self.clauses.iter().all(others) {
                set.retain(|i| i != item);
            }
        }
        set.sort_unstable();
        if self.sets.len() >= self.most {
            self.complete = false;
        } else if !self.sets.contains(&set) {
            self.sets.push(set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(costs: &[u64], clauses: &[&[Item]], expected: Option<(u64, &[&[Item]])>) {
        let clauses: Vec<Vec<Item>> = clauses.iter().map(|c| c.to_vec()).collect();
        let mut found = cheapest(costs, &clauses, 100, &|| false);
        if let Some(found) = &mut found {
            found.sets.sort();
        }
        let sets = |sets: &[&[Item]]| sets.iter().map(|s| s.to_vec()).collect();
        let expected = expected.map(|(cost, all)| Cheapest { cost, sets: sets(all), complete: true });
        assert_eq!(found, expected, "{costs:?} {clauses:?}");
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

    /// All subsets, against the search, on many small instances.
    #[test]
    fn nothing_is_cheaper() {
        let mut random = fencewright_testing::Random::new(7);
        for _ in 0..2_000 {
            let costs: Vec<u64> = (0..1 + random.below(7)).map(|_| random.below(4) as u64).collect();
            let clauses: Vec<Vec<Item>> = (0..random.below(7))
                .map(|_| (0..1 + random.below(3)).map(|_| random.below(costs.len())).collect())
                .collect();
            let mut best = u64::MAX;
            for set in 0u32..1 << costs.len() {
                let has = |item: &Item| set >> item & 1 == 1;
                if clauses.iter().all(|clause| clause.iter().any(has)) {
                    best = best.min((0..costs.len()).filter(has).map(|i| costs[i]).sum());
                }
            }
            let found = cheapest(&costs, &clauses, 1, &|| false).expect("no clause is empty");
            let Cheapest { cost, sets, .. } = found;
            assert_eq!(cost, best, "{costs:?} {clauses:?}");
            assert_eq!(sets[0].iter().map(|&i| costs[i]).sum::<u64>(), best);
        }
    }

    #[test]
    fn many_independent_clauses_are_no_matter() {
        let clauses: Vec<Vec<Item>> = (0..40).map(|n| (5 * n..5 * n + 5).collect()).collect();
        let found = cheapest(&[1; 200], &clauses, 64, &|| false).expect("no clause is empty");
        assert_eq!((found.cost, found.sets.len(), found.complete), (40, 64, false));
    }
}
