//! Sleep sets and wakeup trees (P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas, *Source sets: a foundation for optimal dynamic partial order
//! reduction*, JACM 2017), for agents (threads and buffers) whose steps may have several alternatives.
//!
//! A wakeup tree holds the sequences of steps still to be explored from a state. A sequence `v` need not be added if all executions that begin with
//! it are explored anyway. This is the case if a step that was explored, or is a leaf of the tree, is a weak initial of `v` (if a step with others
//! below it is one, the rest of `v` is added below it), that is,
//! * an initial of `v`: it occurs in `v`, and no earlier step of `v` conflicts with it; or
//! * independent of all of `v`, so that it can come first. If the step has several alternatives, all of them must have been explored or be in the
//!   tree: an execution that begins with `v` may continue with any of them.

use std::collections::VecDeque;
use std::ops::Range;

use super::footprint::{Footprint, conflict};

/// One alternative of a step of an agent.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The agent that takes the step.
    pub agent: u32,
    /// The index of the alternative.
    pub alternative: u32,
    /// The number of alternatives of the step.
    pub total: u32,
    /// The footprint of all alternatives together.
    pub footprint: Footprint,
}

impl Branch {
    /// Whether two steps commute and belong to different agents.
    pub fn is_independent(&self, other: &Branch) -> bool {
        self.agent != other.agent && !conflict(&self.footprint, &other.footprint)
    }

    fn is_alternative(&self, other: &Branch) -> bool {
        self.agent == other.agent && self.alternative == other.alternative
    }

    /// The relation between the step and a sequence from the same state.
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

/// A sequence of steps; a deque because steps are mostly removed at the front.
pub type Sequence<'b> = VecDeque<&'b Branch>;

/// How a step relates to a sequence.
enum Relation {
    /// The step occurs in the sequence at this index, and can come first.
    Initial(usize),
    /// The step does not occur in the sequence and can come first.
    Independent,
    /// The step cannot come first.
    Dependent,
}

/// A step, and the wakeup trees of the steps to be explored after it. A leaf stands for all executions that begin with the steps on the path to it.
#[derive(Debug)]
pub struct Tree {
    /// The step at the root of the tree.
    pub branch: Branch,
    /// The subtrees, in the order of exploration.
    pub children: VecDeque<Tree>,
}

impl Tree {
    /// A tree with a single step.
    pub fn leaf(branch: Branch) -> Self {
        Tree { branch, children: VecDeque::new() }
    }

    /// A tree with a single sequence; `None` if the sequence is empty.
    fn sequence(steps: &Sequence<'_>) -> Option<Self> {
        let mut below: Option<Tree> = None;
        for &branch in steps.iter().rev() {
            let children = below.map_or_else(VecDeque::new, |tree| VecDeque::from(vec![tree]));
            below = Some(Tree { branch: branch.clone(), children });
        }
        below
    }
}

/// Iterative, because a tree is as deep as an execution is long: recursion could overflow the stack.
impl Drop for Tree {
    fn drop(&mut self) {
        let mut left = Vec::from(std::mem::take(&mut self.children));
        while let Some(mut tree) = left.pop() {
            left.extend(std::mem::take(&mut tree.children));
        }
    }
}

/// A position in a tree where the rest of a sequence is to be inserted.
struct Place<'t, 'b> {
    trees: &'t mut VecDeque<Tree>,
    asleep: Vec<&'b Branch>,
    rest: Sequence<'b>,
}

/// Inserts a sequence into the trees of a state, unless its executions are explored anyway. The steps that are asleep have been explored. Returns the
/// number of steps that were added.
///
/// Whether a sleeping step covers the sequence is tested only once, at the root. As the insertion descends into a tree, it removes steps from the
/// sequence, and the sleeping steps that depend on the removed steps wake up. So the rest of a sequence that is not covered at the root is not
/// covered either.
pub fn insert(trees: &mut VecDeque<Tree>, asleep: &[Branch], sequence: Sequence<'_>) -> usize {
    let asleep: Vec<&Branch> = asleep.iter().collect();
    if is_covered(&asleep, &sequence) {
        return 0;
    }
    let mut added = 0;
    let mut places = vec![Place { trees, asleep, rest: sequence }];
    while let Some(Place { trees, mut asleep, mut rest }) = places.pop() {
        debug_assert!(!is_covered(&asleep, &rest), "the rest of an uncovered sequence is not covered");
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
        // All continuations of a leaf are explored anyway, so nothing is inserted below a leaf.
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

/// Where the insertion continues: a range of trees, the first of which has a step that can come first in the sequence, and the index of this step in
/// the sequence, if it occurs there. The range goes on after the first tree only if the step has several alternatives. `None` if the sequence becomes
/// a new tree here.
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

/// Whether all executions that begin with a sequence were explored when one of the sleeping steps was taken, or will be found by reversing the races
/// of the executions explored then.
fn is_covered(asleep: &[&Branch], sequence: &Sequence<'_>) -> bool {
    asleep.iter().any(|branch| match branch.relation(sequence) {
        Relation::Initial(_) => true,
        Relation::Dependent => false,
        Relation::Independent => {
            branch.total as usize == asleep.iter().filter(|b| b.agent == branch.agent).count()
        }
    })
}
