//! Sleep sets and wakeup trees (P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas, *Source sets: a foundation for optimal dynamic partial
//! order reduction*, JACM 2017), for agents whose steps may have several alternatives.
//!
//! A wakeup tree holds sequences of steps that are still to be explored from a state. A sequence `v` need not be added if every
//! execution that begins with it is explored anyway. That is so if a step that was explored, or that will be, is
//! * an initial of `v`: it occurs in `v`, and nothing before it conflicts with it; or
//! * independent of all of `v`, so that it can come first. With several alternatives this takes all of them: an execution
//!   that begins with `v` goes on with any of them.

use std::collections::VecDeque;
use std::ops::Range;

use super::footprint::{Footprint, conflict};

/// A step: whose, and which of its alternatives.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The agent.
    pub agent: u32,
    /// Which alternative.
    pub alternative: u32,
    /// How many alternatives there are.
    pub total: u32,
    /// What they read and write.
    pub footprint: Footprint,
}

impl Branch {
    /// Whether two steps of different agents may be exchanged.
    pub fn is_independent(&self, other: &Branch) -> bool {
        self.agent != other.agent && !conflict(&self.footprint, &other.footprint)
    }

    fn is_alternative(&self, other: &Branch) -> bool {
        self.agent == other.agent && self.alternative == other.alternative
    }

    /// How the step relates to a sequence from the same state.
    fn relation(&self, sequence: &Sequence<'_>) -> Relation {
        for (n, step) in sequence.iter().enumerate() {
            if self.is_alternative(step) {
                return Relation::Initial(n);
            }
            if !self.is_independent(step) {
                return Relation::Dependent;
            }
        }
        Relation::Independent
    }
}

/// A sequence of steps. One takes them out mostly at the front.
pub type Sequence<'b> = VecDeque<&'b Branch>;

/// How a step relates to a sequence.
enum Relation {
    /// It is this one of the sequence, and can come first.
    Initial(usize),
    /// It does not occur and can come first.
    Independent,
    /// It cannot come first.
    Dependent,
}

/// A wakeup tree below a step; a leaf stands for all executions that begin like this.
#[derive(Debug)]
pub struct Tree {
    /// The step.
    pub branch: Branch,
    /// What comes after it, in the order in which it is explored.
    pub children: VecDeque<Tree>,
}

impl Tree {
    /// A tree with no more than a step.
    pub fn leaf(branch: Branch) -> Self {
        Tree { branch, children: VecDeque::new() }
    }

    /// A tree with one sequence.
    fn sequence(steps: &Sequence<'_>) -> Option<Self> {
        let mut below: Option<Tree> = None;
        for &branch in steps.iter().rev() {
            let children = below.map_or_else(VecDeque::new, |tree| VecDeque::from(vec![tree]));
            below = Some(Tree { branch: branch.clone(), children });
        }
        below
    }
}

/// A tree is as deep as an execution is long: too deep for one call in another.
impl Drop for Tree {
    fn drop(&mut self) {
        let mut left = Vec::from(std::mem::take(&mut self.children));
        while let Some(mut tree) = left.pop() {
            left.extend(std::mem::take(&mut tree.children));
        }
    }
}

/// A place in a tree where the rest of a sequence is to be added.
struct Place<'t, 'b> {
    trees: &'t mut VecDeque<Tree>,
    asleep: Vec<&'b Branch>,
    rest: Sequence<'b>,
}

/// Adds a sequence to the trees that leave a state, unless its executions are explored anyway. The steps that sleep were explored. Gives
/// the number of steps that were added.
///
/// Whether a step that sleeps covers the sequence is asked once. On the way down steps are taken out of the sequence; the
/// first one that a sleeping step depends on wakes it up when it is taken out, so that nothing that did not cover the sequence covers
/// a rest of it.
pub fn insert(trees: &mut VecDeque<Tree>, asleep: &[Branch], sequence: Sequence<'_>) -> usize {
    let asleep: Vec<&Branch> = asleep.iter().collect();
    if is_covered(&asleep, &sequence) {
        return 0;
    }
    let mut added = 0;
    let mut places = vec![Place { trees, asleep, rest: sequence }];
    while let Some(Place { trees, mut asleep, mut rest }) = places.pop() {
        debug_assert!(!is_covered(&asleep, &rest), "it was not covered before");
        let is_initial = |tree: &Tree| matches!(tree.branch.relation(&rest), Relation::Initial(_));
        if trees.iter().any(|tree| tree.children.is_empty() && is_initial(tree)) {
            continue;
        }
        let Some((below, taken)) = way_down(trees, &asleep, &rest) else {
            trees.extend(Tree::sequence(&rest));
            added += rest.len();
            continue;
        };
        if let Some(position) = taken {
            rest.remove(position);
        }
        let agent = trees[below.start].branch.agent;
        // Below a leaf, whatever follows is explored.
        let goes_on = |tree: &&mut Tree| tree.branch.agent == agent && !tree.children.is_empty();
        let mut below = trees.range_mut(below).filter(goes_on).peekable();
        while let Some(tree) = below.next().filter(|_| !rest.is_empty()) {
            let (mut asleep, rest) = match below.peek() {
                Some(_) => (asleep.clone(), rest.clone()),
                None => (std::mem::take(&mut asleep), std::mem::take(&mut rest)),
            };
            asleep.retain(|b| b.is_independent(&tree.branch));
            places.push(Place { trees: &mut tree.children, asleep, rest });
        }
    }
    added
}

/// Among which trees a sequence goes on, those of the agent of the first of them, and which of its steps these have taken; nothing if it is new here.
fn way_down(
    trees: &VecDeque<Tree>,
    asleep: &[&Branch],
    rest: &Sequence<'_>,
) -> Option<(Range<usize>, Option<usize>)> {
    for (n, Tree { branch, .. }) in trees.iter().enumerate() {
        match branch.relation(rest) {
            Relation::Dependent => {}
            Relation::Initial(position) => return Some((n..n + 1, Some(position))),
            Relation::Independent if branch.total == 1 => return Some((n..n + 1, None)),
            Relation::Independent => {
                let of_agent = |b: &Branch| b.agent == branch.agent;
                let known = asleep.iter().filter(|b| of_agent(b)).count()
                    + trees.iter().filter(|t| of_agent(&t.branch)).count();
                if known >= branch.total as usize {
                    return Some((n..trees.len(), None));
                }
            }
        }
    }
    None
}

/// Whether all executions that begin with a sequence have been explored from steps that sleep, or will be found by their races.
fn is_covered(asleep: &[&Branch], sequence: &Sequence<'_>) -> bool {
    asleep.iter().any(|branch| match branch.relation(sequence) {
        Relation::Initial(_) => true,
        Relation::Dependent => false,
        Relation::Independent => {
            branch.total as usize == asleep.iter().filter(|b| b.agent == branch.agent).count()
        }
    })
}
