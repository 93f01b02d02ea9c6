//! Ranks: how a preorder is written in bytes.
//!
//! The points have fixed ranks. Between two points, below the first and above the last there is *room* for values that are no points: their
//! ranks are counted upwards from the start of the room, without gaps, separately for each component. Over the integers and naturals
//! there is no room between points, over the naturals none below the first. Where only equality matters there is one room, and
//! values in it are numbered in the order in which they occur.

use fencewright_program::Numbers;
use smallvec::SmallVec;

use super::{MOST_OPERATIONS, Ranks, Relations};

/// Ranks while a step is on its way, by index.
pub type Work = [u8; 256];

/// Where points are, and where there is room.
#[derive(Clone, Debug)]
pub struct Scale {
    numbers: Numbers,
    relations: Relations,
    /// The ranks of the points.
    points: Vec<u8>,
    /// For each rank where its room starts; a point is its own.
    start: Box<[u8; 256]>,
    most_cells: usize,
}

/// Which ranks occur.
#[derive(Clone, Copy, Default)]
struct Occurring([u64; 4]);

impl Occurring {
    fn insert(&mut self, rank: u8) {
        self.0[rank as usize >> 6] |= 1 << (rank & 63);
    }

    fn contains(&self, rank: u8) -> bool {
        self.0[rank as usize >> 6] >> (rank & 63) & 1 == 1
    }

    /// How many occur below this one.
    fn below(&self, rank: u8) -> u8 {
        let word = rank as usize >> 6;
        let full: u32 = self.0[..word].iter().map(|w| w.count_ones()).sum();
        (full + (self.0[word] & ((1 << (rank & 63)) - 1)).count_ones()) as u8
    }
}

impl Scale {
    /// The scale for so many points.
    pub fn new(numbers: Numbers, relations: Relations, points: usize) -> Self {
        let ranks: Vec<u8> = match (relations, numbers) {
            (Relations::Equality, _) | (Relations::Order, Numbers::Nat) => (0..points as u8).collect(),
            // As much room below as above.
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
        // One more than fits is needed while a value is put between others.
        let most_cells = match (relations, numbers) {
            (Relations::Equality, _) | (Relations::Order, Numbers::Nat) => 250 - 2 * points,
            (Relations::Order, Numbers::Int) => (255 - points) / 2 - 2,
            (Relations::Order, Numbers::Real) => 255 / (points + 1) - 3,
        };
        // A step names the cells before it, those after it, and what its operations need in between.
        let named = (255 - points - MOST_OPERATIONS) / 2;
        Scale { numbers, relations, points: ranks, start, most_cells: most_cells.min(named) }
    }

    /// The numbers.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// How many cells fit at once.
    pub fn most_cells(&self) -> usize {
        self.most_cells
    }

    /// The rank of a point.
    pub fn point(&self, n: usize) -> u8 {
        self.points[n]
    }

    /// Calls `next` with every place that a fresh value can take among the others, which are points and cells of its component.
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
        // Right above each of the others, and below all of them.
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
                // Whatever is there or above it in the same room makes room.
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

    /// The ranks of these cells (index, component), counted without gaps.
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
