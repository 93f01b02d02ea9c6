//! Sleep sets and wakeup trees (P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas, *Source sets: a foundation for optimal dynamic partial
//! order reduction*, JACM 2017), for agents whose steps may have several alternatives.
//!
//! A wakeup tree holds sequences of steps that are still to be explored from a state. A sequence `v` need not be added if every
//! execution that begins with it is explored anyway. That is so if a step that was explored, or that will be, is
//! * an initial of `v`: it occurs in `v`, and nothing before it conflicts with it; or
//! * independent of all of `v`, so that it can come first. With several alternatives this takes all of them: an execution
//!   that begins with `v` goes on with any of them.

use std::collections::VecDeque;

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
    fn relation<'b>(&self, sequence: impl IntoIterator<Item = &'b Branch>) -> Relation {
        for (n, step) in sequence.into_iter().enumerate() {
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
    fn sequence(steps: &[&Branch]) -> Option<Self> {
        let mut below: Option<Tree> = None;
        for &branch in steps.iter().rev() {
            let children = below.into_iter().collect();
            below = Some(Tree { branch: branch.clone(), children });
        }
        below
    }
}

/// Adds a sequence to the trees that leave a state, unless its executions are explored anyway. The steps that sleep were explored. Gives
/// the number of steps that were added.
pub fn insert(trees: &mut VecDeque<Tree>, asleep: &[&Branch], sequence: &[&Branch]) -> usize {
    if is_covered(asleep, sequence) || begins_known(trees, &[], sequence.iter().copied()) {
        return 0;
    }
    for n in 0..trees.len() {
        let branch = &trees[n].branch;
        let mut without = None;
        let below = match branch.relation(sequence.iter().copied()) {
            Relation::Dependent => continue,
            Relation::Initial(position) => {
                without = Some([&sequence[..position], &sequence[position + 1..]].concat());
                n..n + 1
            }
            Relation::Independent if branch.total == 1 => n..n + 1,
            Relation::Independent => {
                let of_agent = |b: &Branch| b.agent == branch.agent;
                let known = asleep.iter().filter(|b| of_agent(b)).count()
                    + trees.iter().filter(|t| of_agent(&t.branch)).count();
                if known < branch.total as usize {
                    continue;
                }
                n..trees.len()
            }
        };
        let agent = branch.agent;
        let rest = without.as_deref().unwrap_or(sequence);
        let mut added = 0;
        for tree in trees.range_mut(below).filter(|tree| tree.branch.agent == agent) {
            // A leaf: whatever follows is explored.
            if tree.children.is_empty() || rest.is_empty() {
                continue;
            }
            let still: Vec<&Branch> =
                asleep.iter().copied().filter(|b| b.is_independent(&tree.branch)).collect();
            added += insert(&mut tree.children, &still, rest);
        }
        return added;
    }
    trees.extend(Tree::sequence(sequence));
    sequence.len()
}

/// Whether a sequence need not be added however it goes on: one of its initials was explored, or will be with all that may follow.
pub fn begins_known<'b>(
    trees: &VecDeque<Tree>,
    asleep: &[Branch],
    sequence: impl IntoIterator<Item = &'b Branch> + Clone,
) -> bool {
    let is_initial = |branch: &Branch| matches!(branch.relation(sequence.clone()), Relation::Initial(_));
    asleep.iter().any(is_initial) || trees.iter().any(|t| t.children.is_empty() && is_initial(&t.branch))
}

/// Whether all executions that begin with a sequence have been explored from steps that sleep, or will be found by their races.
fn is_covered(asleep: &[&Branch], sequence: &[&Branch]) -> bool {
    asleep.iter().any(|branch| match branch.relation(sequence.iter().copied()) {
        Relation::Initial(_) => true,
        Relation::Dependent => false,
        Relation::Independent => {
            branch.total as usize == asleep.iter().filter(|b| b.agent == branch.agent).count()
        }
    })
}
