//! Locations of a thread that no property distinguishes.

use std::collections::HashMap;

use fencewright_program::LocationId;

/// The locations of a thread in classes, numbered from 0.
pub struct Looks {
    classes: Vec<u32>,
    /// How many classes there are.
    given: u32,
}

impl Looks {
    /// One class with all locations.
    pub fn alike(locations: usize) -> Self {
        Looks { classes: vec![0; locations], given: 1 }
    }

    /// Splits classes so that these locations are told apart from all others.
    pub fn tell_apart(&mut self, locations: &[LocationId]) {
        // Locations of one class that are in the set go to one new class; the others keep their number.
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

    /// For each location the first one that looks the same.
    pub fn representatives(&self) -> Vec<LocationId> {
        let mut first: Vec<Option<LocationId>> = vec![None; self.given as usize];
        let number = |l: usize| LocationId(l as u32);
        let same = |(l, &class): (usize, &u32)| *first[class as usize].get_or_insert(number(l));
        self.classes.iter().enumerate().map(same).collect()
    }
}
