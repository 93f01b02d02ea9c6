//! Backward data-flow analysis of one thread: which facts about the rest of an execution hold at each point of the thread.
//!
//! Examples of facts: a register is live, a cell may still be loaded, a label may still be reached. A fact holds before a step if the step generates
//! the fact, or if the fact holds after the step and the step does not kill it; the result is the least fixpoint.
//!
//! 64 facts are computed at a time, in time linear in the size of the thread. The result is represented as runs of consecutive points with the same
//! facts. A table of all points and facts would be quadratic for a long thread with many facts, while the number of runs is the number of points at
//! which some fact begins or ceases to hold.

use fencewright_program::{EdgeId, Thread};
use fencewright_verdict::{Limits, Reason};

/// The program points of a thread: its locations, and the points between the operations of atomic steps.
pub struct Flow {
    points: usize,
    /// The arcs as (source, target) pairs of points: one for each operation, and one for each edge without operations.
    arcs: Vec<(u32, u32)>,
    /// The index of the first arc of each edge, followed by the number of arcs.
    first: Vec<u32>,
    /// The indices of the arcs, sorted by target. `first_into` has, for each point, the position of its first arc in this list.
    into: Vec<u32>,
    first_into: Vec<u32>,
}

impl Flow {
    /// The points and arcs of a thread. The point of a location has the number of the location.
    pub fn new(thread: &Thread) -> Self {
        let mut points = thread.locations.len();
        let (mut arcs, mut first) = (Vec::new(), Vec::with_capacity(thread.edges.len() + 1));
        for edge in &thread.edges {
            first.push(arcs.len() as u32);
            let mut from = edge.from.0;
            for _ in 1..edge.action.ops().len() {
                arcs.push((from, points as u32));
                from = points as u32;
                points += 1;
            }
            arcs.push((from, edge.to.0));
        }
        first.push(arcs.len() as u32);
        let mut first_into = vec![0; points + 1];
        arcs.iter().for_each(|&(_, to)| first_into[to as usize + 1] += 1);
        (0..points).for_each(|p| first_into[p + 1] += first_into[p]);
        let mut next = first_into.clone();
        let mut into = vec![0; arcs.len()];
        for (arc, &(_, to)) in arcs.iter().enumerate() {
            into[next[to as usize] as usize] = arc as u32;
            next[to as usize] += 1;
        }
        Flow { points, arcs, first, into, first_into }
    }

    /// The arc of an operation of an edge. An edge without operations has one arc, which counts as that of operation 0.
    pub fn arc(&self, edge: EdgeId, operation: usize) -> u32 {
        self.first[edge.index()] + operation as u32
    }

    /// The point after an operation of an edge.
    #[inline]
    pub fn after(&self, edge: EdgeId, operation: usize) -> u32 {
        self.arcs[self.arc(edge, operation) as usize].1
    }

    /// The source of an edge followed by the points inside the edge, and the target of the edge.
    fn through(&self, edge: usize) -> (impl Iterator<Item = u32> + '_, u32) {
        let arcs = &self.arcs[self.first[edge] as usize..self.first[edge + 1] as usize];
        (arcs.iter().map(|arc| arc.0), arcs[arcs.len() - 1].1)
    }
}

/// The effect of an arc on a fact: it generates or kills the fact. Of several effects for the same arc and fact, the last one counts.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// The index of the arc.
    pub arc: u32,
    /// The index of the fact.
    pub fact: u32,
    /// True if the arc generates the fact, so that the fact holds before the arc; false if the arc kills it.
    pub holds: bool,
}

/// The facts that hold at each point, in blocks of 64 facts.
pub struct Facts {
    /// For each block, the points at which its facts change, each with the facts that hold from that point on. Before the first such point, no fact
    /// of the block holds.
    blocks: Vec<Box<[(u32, u64)]>>,
}

impl Facts {
    /// `facts` facts, all of which hold at every point.
    pub fn everywhere(facts: usize) -> Self {
        let block = |n: usize| Box::from([(0, u64::MAX >> (64 - (facts - 64 * n).min(64)))]);
        Facts { blocks: (0..facts.div_ceil(64)).map(block).collect() }
    }

    /// The least fixpoint that contains the facts set by `seed`, which is called for each block of 64 facts and sets their bits at the points where
    /// they hold.
    pub fn find(
        flow: &Flow,
        facts: usize,
        mut effects: Vec<Effect>,
        seed: &dyn Fn(std::ops::Range<usize>, &mut [u64]),
        limits: &Limits,
    ) -> Result<Self, Reason> {
        effects.sort_by_key(|effect| effect.fact / 64);
        let mut effects = effects.as_slice();
        let mut words = vec![0u64; flow.points];
        // For each arc, the generated facts, and a mask of the facts that are not killed.
        let mut arcs = vec![(0u64, u64::MAX); flow.arcs.len()];
        let mut work: Vec<u32> = Vec::new();
        let mut waiting = vec![false; flow.points];
        let mut blocks = Vec::with_capacity(facts.div_ceil(64));
        for block in 0..facts.div_ceil(64) {
            if let Some(reason) = limits.exceeded(0) {
                return Err(reason);
            }
            let own = effects.partition_point(|effect| effect.fact as usize / 64 == block);
            let (own, others) = effects.split_at(own);
            effects = others;
            words.fill(0);
            seed(64 * block..facts.min(64 * (block + 1)), &mut words);
            for effect in own {
                let (always, kept) = &mut arcs[effect.arc as usize];
                let bit = 1 << (effect.fact % 64);
                match effect.holds {
                    true => *always |= bit,
                    false => (*always, *kept) = (*always & !bit, *kept & !bit),
                }
            }
            for effect in own {
                words[flow.arcs[effect.arc as usize].0 as usize] |= arcs[effect.arc as usize].0;
            }
            for point in (0..flow.points as u32).filter(|&point| words[point as usize] != 0) {
                waiting[point as usize] = true;
                work.push(point);
            }
            while let Some(point) = work.pop() {
                waiting[point as usize] = false;
                let range = flow.first_into[point as usize]..flow.first_into[point as usize + 1];
                for &arc in &flow.into[range.start as usize..range.end as usize] {
                    let (always, kept) = arcs[arc as usize];
                    let from = flow.arcs[arc as usize].0;
                    let before = always | (words[point as usize] & kept);
                    if before & !words[from as usize] != 0 {
                        words[from as usize] |= before;
                        if !std::mem::replace(&mut waiting[from as usize], true) {
                            work.push(from);
                        }
                    }
                }
            }
            own.iter().for_each(|effect| arcs[effect.arc as usize] = (0, u64::MAX));
            blocks.push(runs(&words));
        }
        Ok(Facts { blocks })
    }

    /// Whether a fact holds at a point.
    #[inline]
    pub fn holds(&self, fact: usize, point: u32) -> bool {
        word(&self.blocks[fact / 64], point) >> (fact % 64) & 1 == 1
    }

    /// The facts that hold at a point, in order.
    #[inline]
    pub fn at(&self, point: u32) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(move |(n, runs)| bits(word(runs, point)).map(move |bit| 64 * n + bit))
    }

    /// The ranges of points at which a fact holds. The last one ends at `u32::MAX` if the fact holds at the last point.
    pub fn ranges(&self, fact: usize) -> Vec<std::ops::Range<u32>> {
        let mut ranges: Vec<std::ops::Range<u32>> = Vec::new();
        let mut open = None;
        for &(point, word) in &self.blocks[fact / 64] {
            match (word >> (fact % 64) & 1 == 1, open) {
                (true, None) => open = Some(point),
                (false, Some(start)) => {
                    ranges.push(start..point);
                    open = None;
                }
                _ => {}
            }
        }
        ranges.extend(open.map(|start| start..u32::MAX));
        ranges
    }

    /// The facts that hold before or inside an edge and not after it, for all edges, sorted by edge.
    pub fn ends(&self, flow: &Flow, limits: &Limits) -> Result<Vec<(EdgeId, usize)>, Reason> {
        let mut ends = Vec::new();
        let mut words = vec![0; flow.points];
        for (n, runs) in self.blocks.iter().enumerate().filter(|(_, runs)| !runs.is_empty()) {
            if let Some(reason) = limits.exceeded(0) {
                return Err(reason);
            }
            for (run, &(point, word)) in runs.iter().enumerate() {
                let end = runs.get(run + 1).map_or(flow.points, |next| next.0 as usize);
                words[point as usize..end].fill(word);
            }
            words[..runs[0].0 as usize].fill(0);
            for edge in 0..flow.first.len() - 1 {
                let (points, to) = flow.through(edge);
                let before = points.fold(0, |sum, point| sum | words[point as usize]);
                let ended = bits(before & !words[to as usize]);
                ends.extend(ended.map(|bit| (EdgeId(edge as u32), 64 * n + bit)));
            }
        }
        ends.sort_unstable_by_key(|(edge, fact)| (edge.0, *fact));
        Ok(ends)
    }
}

/// The runs of equal words: the first point of each run, with its word. A first run of zeros is left out.
fn runs(words: &[u64]) -> Box<[(u32, u64)]> {
    let mut last = 0;
    let changes = words.iter().enumerate().filter(|(_, word)| std::mem::replace(&mut last, **word) != **word);
    changes.map(|(point, word)| (point as u32, *word)).collect()
}

#[inline]
fn word(runs: &[(u32, u64)], point: u32) -> u64 {
    runs.partition_point(|run| run.0 <= point).checked_sub(1).map_or(0, |n| runs[n].1)
}

/// The indices of the bits of a word.
#[inline]
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}
