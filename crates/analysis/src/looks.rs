//! Partition of the locations of a thread into classes. No property distinguishes two locations of the same class.

use std::collections::HashMap;

use fencewright_program::LocationId;

/// A partition of the locations of a thread; the classes are numbered from 0.
pub struct Looks {
    classes: Vec<u32>,
    /// The number of class numbers assigned so far.
    given: u32,
}

impl Looks {
    /// The partition with a single class.
    pub fn alike(locations: usize) -> Self {
        Looks { classes: vec![0; locations], given: 1 }
    }

    /// Refines the partition by a set of locations: splits each class into the part in the set and the rest.
    pub fn tell_apart(&mut self, locations: &[LocationId]) {
        // The locations of a class that are in the set become a new class; the other locations keep the number of the class.
        let mut moved: HashMap<u32, u32> = HashMap::new();
        let mut sorted: Vec<LocationId> = locations.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        for location in sorted {
            let class = &mut self.classes[location.index()];
            *class = *moved.entry(*class).or_insert_with(|| {
                self.given += 1;
                self.given - 1
            });
        }
    }

    /// Whether two locations are in the same class.
    #[inline]
    pub fn is_alike(&self, a: LocationId, b: LocationId) -> bool {
        self.classes[a.index()] == self.classes[b.index()]
    }

    /// For each location, the first location of its class.
    pub fn representatives(&self) -> Vec<LocationId> {
        let mut first: Vec<Option<LocationId>> = vec![None; self.given as usize];
        let number = |l: usize| LocationId(l as u32);
        let same = |(l, &class): (usize, &u32)| *first[class as usize].get_or_insert(number(l));
        self.classes.iter().enumerate().map(same).collect()
    }
}
