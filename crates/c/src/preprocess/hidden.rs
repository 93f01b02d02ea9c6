//! Hide sets (D. Prosser's algorithm, on which the wording of C89 is based): for each token, the set of macros that must not be expanded there. They
//! ensure that a macro is never expanded inside its own expansion, so expansion terminates. Equal sets have the same number.

use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::token::Symbol;

/// All hide sets that occurred so far, by number; number 0 is the empty set.
#[derive(Debug)]
pub struct HiddenSets {
    sets: Vec<Rc<BTreeSet<Symbol>>>,
    numbers: FxHashMap<Rc<BTreeSet<Symbol>>, u32>,
    with: FxHashMap<(u32, Symbol), u32>,
    joined: FxHashMap<(u32, u32), u32>,
}

impl Default for HiddenSets {
    fn default() -> Self {
        let empty: Rc<BTreeSet<Symbol>> = Rc::default();
        HiddenSets {
            sets: vec![empty.clone()],
            numbers: [(empty, 0)].into_iter().collect(),
            with: FxHashMap::default(),
            joined: FxHashMap::default(),
        }
    }
}

impl HiddenSets {
    /// Whether a set contains this macro.
    pub fn contains(&self, set: u32, name: Symbol) -> bool {
        self.sets[set as usize].contains(&name)
    }

    /// The number of the set with this macro added.
    pub fn with(&mut self, set: u32, name: Symbol) -> u32 {
        if let Some(&known) = self.with.get(&(set, name)) {
            return known;
        }
        let mut more = (*self.sets[set as usize]).clone();
        more.insert(name);
        let number = self.number(more);
        self.with.insert((set, name), number);
        number
    }

    /// The number of the union of two sets.
    pub fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == 0 {
            return a;
        }
        if let Some(&known) = self.joined.get(&(a, b)) {
            return known;
        }
        let all = &*self.sets[a as usize] | &*self.sets[b as usize];
        let number = self.number(all);
        self.joined.insert((a, b), number);
        number
    }

    /// The number of the intersection of two sets.
    pub fn intersection(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let common = &*self.sets[a as usize] & &*self.sets[b as usize];
        self.number(common)
    }

    fn number(&mut self, set: BTreeSet<Symbol>) -> u32 {
        if let Some(&known) = self.numbers.get(&set) {
            return known;
        }
        let number = self.sets.len() as u32;
        let set = Rc::new(set);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }
}
