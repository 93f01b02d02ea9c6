//! Locations that look the same to all properties.

use std::collections::HashMap;

use fencewright_program::LocationId;

/// The locations of a thread in classes, numbered from 0.
pub struct Looks {
    classes: Vec<u32>,
    /// How many numbers have been given.
    given: u32,
}

impl Looks {
    /// So many locations, all alike.
    pub fn alike(locations: usize) -> Self {
        Looks { classes: vec![0; locations], given: 1 }
    }

    /// Something looks at whether the thread is at one of these locations.
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

    /// Whether nothing that looks tells two locations apart.
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
