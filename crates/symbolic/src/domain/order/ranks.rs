//! Ranks: the encoding of a preorder in bytes.
//!
//! The points have fixed ranks. Between two points, below the first and above the last there is *room*: ranks for values that are not points. The
//! ranks in a room are assigned upwards from its start, without gaps, separately for each component. Over the integers and naturals there is no room
//! between points, and over the naturals no room below the first point. If only equality is tracked there is one room, and the values in it are
//! numbered in order of occurrence.

use fencewright_program::Numbers;
use smallvec::SmallVec;

use super::fragment::MOST_CHOICES;
use super::{MOST_OPERATIONS, Ranks, Relations};

/// The rank of each index, while a step is performed.
pub type Work = [u8; 256];

/// The positions of the points and the rooms.
#[derive(Clone, Debug)]
pub struct Scale {
    numbers: Numbers,
    relations: Relations,
    /// The ranks of the points.
    points: Vec<u8>,
    /// For each rank, the first rank of its room; for the rank of a point, this rank itself.
    start: Box<[u8; 256]>,
    most_cells: usize,
}

/// The set of ranks that occur.
#[derive(Clone, Copy, Default)]
struct Occurring([u64; 4]);

impl Occurring {
    fn insert(&mut self, rank: u8) {
        self.0[rank as usize >> 6] |= 1 << (rank & 63);
    }

    fn contains(&self, rank: u8) -> bool {
        self.0[rank as usize >> 6] >> (rank & 63) & 1 == 1
    }

    /// The number of occurring ranks below this one.
    fn below(&self, rank: u8) -> u8 {
        let word = rank as usize >> 6;
        let full: u32 = self.0[..word].iter().map(|w| w.count_ones()).sum();
        (full + (self.0[word] & ((1 << (rank & 63)) - 1)).count_ones()) as u8
    }
}

impl Scale {
    /// The scale for the given number of points.
    pub fn new(numbers: Numbers, relations: Relations, points: usize) -> Self {
        let ranks: Vec<u8> = match (relations, numbers) {
            (Relations::Equality, _) | (Relations::Order, Numbers::Nat) => (0..points as u8).collect(),
            // The points have as much room below them as above them.
            (Relations::Order, Numbers::Int) => {
                let below = (255 - points) / 2;
                (below as u8..(below + points) as u8).collect()
            }
            (Relations::Order, Numbers::Real) => {
                let room = 255 / (points + 1);
                (1..=points).map(|n| (n * room) as u8).collect()
            }
        };
        let mut start = Box::new([0; 256]);
        let mut room = 0;
        for rank in 0..=255u8 {
            let is_point = ranks.contains(&rank);
            start[rank as usize] = if is_point { rank } else { room };
            if is_point {
                room = rank.saturating_add(1);
            }
        }
        // The values of all cells may lie in one room, which then needs a rank for each cell and one more for each fresh value of a step.
        let most_cells = match (relations, numbers) {
            (Relations::Equality, _) | (Relations::Order, Numbers::Nat) => 250 - 2 * points,
            (Relations::Order, Numbers::Int) => (255 - points) / 2 - 2,
            (Relations::Order, Numbers::Real) => (255 / (points + 1)).saturating_sub(3 + MOST_CHOICES),
        };
        // A step needs an index for each cell that is live before it or after it, and for each cell that only its operations access.
        let named = (255 - points - MOST_OPERATIONS) / 2;
        Scale { numbers, relations, points: ranks, start, most_cells: most_cells.min(named) }
    }

    /// The set of numbers that the values range over.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Maximum number of cells that can be represented.
    pub fn most_cells(&self) -> usize {
        self.most_cells
    }

    /// The rank of a point.
    pub fn point(&self, n: usize) -> u8 {
        self.points[n]
    }

    /// Calls `next` for every position of a fresh value relative to `others`, which are points and cells of its component.
    pub fn places(&self, work: &Work, to: u8, others: &[u8], next: &mut dyn FnMut(&Work)) {
        let mut occurring = Occurring::default();
        others.iter().for_each(|&i| occurring.insert(work[i as usize]));
        let mut placed = *work;
        let mut ranks: SmallVec<[u8; 64]> = SmallVec::new();
        ranks.extend((0..=255).filter(|&rank| occurring.contains(rank)));
        for &rank in &ranks {
            placed[to as usize] = rank;
            next(&placed);
        }
        if self.relations == Relations::Equality {
            let greatest = ranks.last().copied().unwrap_or(0);
            placed[to as usize] = greatest + 1;
            return next(&placed);
        }
        // A fresh value different from all others is directly above one of them, or below all of them.
        let above_last = self.points.last().map_or(0, |last| last + 1);
        let above_points = self.points.iter().map(|p| p + 1);
        let rooms: SmallVec<[u8; 64]> = match self.numbers {
            Numbers::Nat => SmallVec::from_slice(&[above_last]),
            Numbers::Int => SmallVec::from_slice(&[0, above_last]),
            Numbers::Real => std::iter::once(0).chain(above_points).collect(),
        };
        let is_point = |rank: u8| self.points.binary_search(&rank).is_ok();
        let above = ranks.iter().filter(|&&rank| !is_point(rank)).map(|rank| rank + 1);
        for place in rooms.iter().copied().chain(above) {
            placed = *work;
            for &i in others {
                let rank = &mut placed[i as usize];
                // Values in the room of `place` whose rank is at least `place` move up by one.
                if *rank >= place
                    && !is_point(*rank)
                    && self.start[*rank as usize] == self.start[place as usize]
                {
                    *rank += 1;
                }
            }
            placed[to as usize] = place;
            next(&placed);
        }
    }

    /// The ranks of these cells (index, component), renumbered without gaps: the canonical form.
    pub fn canonical(&self, work: &Work, cells: &[(u8, u8)]) -> Ranks {
        if self.relations == Relations::Equality {
            return self.in_order_of_occurrence(work, cells);
        }
        let mut occurring: SmallVec<[Occurring; 8]> = SmallVec::new();
        for &(i, component) in cells {
            if occurring.len() <= component as usize {
                occurring.resize(component as usize + 1, Occurring::default());
            }
            occurring[component as usize].insert(work[i as usize]);
        }
        let rank = |&(i, component): &(u8, u8)| {
            let (rank, occurring) = (work[i as usize], &occurring[component as usize]);
            let start = self.start[rank as usize];
            start + if start == rank { 0 } else { occurring.below(rank) - occurring.below(start) }
        };
        cells.iter().map(rank).collect()
    }

    fn in_order_of_occurrence(&self, work: &Work, cells: &[(u8, u8)]) -> Ranks {
        let points = self.points.len() as u8;
        let mut names: SmallVec<[(u8, u8, u8); 32]> = SmallVec::new();
        let mut counts: SmallVec<[u8; 8]> = SmallVec::new();
        let name = |&(i, component): &(u8, u8)| {
            let class = work[i as usize];
            if class < points {
                return class;
            }
            if let Some((_, _, name)) = names.iter().find(|(c, k, _)| (*c, *k) == (component, class)) {
                return *name;
            }
            if counts.len() <= component as usize {
                counts.resize(component as usize + 1, 0);
            }
            let name = points + counts[component as usize];
            counts[component as usize] += 1;
            names.push((component, class, name));
            name
        };
        cells.iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The expected ranks of values: a point has its own rank, and the ranks of other values are counted from the start of the room in which they
    /// lie.
    fn ranked(scale: &Scale, points: &[i64], values: &[i64]) -> Vec<u8> {
        let is_point = |v: &i64| points.contains(v);
        let mut others: Vec<i64> = values.iter().copied().filter(|v| !is_point(v)).collect();
        others.sort_unstable();
        others.dedup();
        let rank = |v: &i64| match points.iter().position(|p| p == v) {
            Some(p) => scale.point(p),
            None => {
                let below = points.iter().filter(|p| *p < v).count();
                let start = if below == 0 { 0 } else { scale.point(below - 1) + 1 };
                let same_room = |o: &&i64| points.iter().filter(|p| *p < *o).count() == below;
                start + others.iter().filter(same_room).filter(|o| *o < v).count() as u8
            }
        };
        values.iter().map(rank).collect()
    }

    #[test]
    fn a_fresh_value_takes_every_place() {
        for (numbers, points) in [
            (Numbers::Nat, vec![0, 1]),
            (Numbers::Nat, vec![0]),
            (Numbers::Int, vec![0]),
            (Numbers::Int, vec![-1, 0, 1, 2]),
            // Spaced widely, so that there is room between the points.
            (Numbers::Real, vec![0, 100, 200]),
        ] {
            let scale = Scale::new(numbers, Relations::Order, points.len());
            let count = points.len() as u8;
            // Spaced widely, so that there is a value in between.
            let far = [-40, -20, 20, 40, 60];
            let choices: Vec<i64> = points.iter().copied().chain(far).collect();
            let allowed = |v: &i64| numbers != Numbers::Nat || *v >= 0;
            for (&a, &b) in choices.iter().flat_map(|a| choices.iter().map(move |b| (a, b))) {
                if !allowed(&a) || !allowed(&b) {
                    continue;
                }
                let mut work: Work = [0; 256];
                (0..points.len()).for_each(|p| work[p] = scale.point(p));
                let before = ranked(&scale, &points, &[a, b]);
                work[count as usize..count as usize + 2].copy_from_slice(&before);
                let others: Vec<u8> = (0..count + 2).collect();
                let cells: Vec<(u8, u8)> = (count..count + 3).map(|i| (i, 0)).collect();
                let mut found = BTreeSet::new();
                scale.places(&work, count + 2, &others, &mut |placed| {
                    let ranks = scale.canonical(placed, &cells).to_vec();
                    assert!(found.insert(ranks.clone()), "{numbers:?} {points:?} {a} {b}: {ranks:?} twice");
                });
                let fresh = (-60..=230).filter(allowed);
                let expected: BTreeSet<Vec<u8>> =
                    fresh.map(|c| ranked(&scale, &points, &[a, b, c])).collect();
                assert_eq!(found, expected, "{numbers:?} {points:?} {a} {b}");
            }
        }
    }

    #[test]
    fn components_and_partitions_are_counted_apart() {
        let scale = Scale::new(Numbers::Int, Relations::Order, 1);
        let zero = scale.point(0);
        let mut work: Work = [0; 256];
        work[1..5].copy_from_slice(&[zero + 7, zero + 3, zero + 9, zero - 2]);
        // In each component separately, the least value above 0 gets the first rank above 0.
        let ranks = scale.canonical(&work, &[(1, 0), (2, 1), (3, 0), (4, 1)]);
        assert_eq!(ranks.as_slice(), [zero + 1, zero + 1, zero + 2, 0]);
        let scale = Scale::new(Numbers::Int, Relations::Equality, 2);
        work[1..5].copy_from_slice(&[9, 5, 9, 1]);
        let ranks = scale.canonical(&work, &[(1, 0), (2, 0), (3, 0), (4, 0)]);
        assert_eq!(ranks.as_slice(), [2, 3, 2, 1]);
    }
}
