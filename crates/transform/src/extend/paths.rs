//! Delaying stores along paths: the extension of a program `R` to a program `R'` in THESIS16 s.3.1.
//!
//! A path starts with a store and ends with a load, without an action in between that waits for an empty buffer. Several paths of a thread are
//! processed together: those that start with the same store form a tree. Each node of the tree is a copy of a location in which the stores since the
//! root are *delayed*, that is, in auxiliary registers (`delay`).
//!
//! At a copy of an inner node there are two kinds of steps. In the original program, with the delayed stores at the newest end of the buffer,
//!
//! * the thread takes an edge that does not wait for the buffer. So each such edge is copied, along the tree or, where the tree ends, to a *leaf*: at
//!   a leaf all delayed stores are performed, one by one, and the thread continues in `R`;
//! * the oldest delayed store reaches memory. So there is an *early exit*: an atomic step that writes that store and, like
//!   every draining atomic step, needs an empty buffer; the other stores are performed, and the thread continues in `R` at the same location.
//!
//! An edge that waits for the buffer is possible only after steps of the second kind. So removing the first store of the path from `R` loses no
//! execution. Afterwards `R'` contains no path that was processed: the store is performed only at a leaf, when the path has been passed, or by an
//! early exit, which waits for an empty buffer.
//!
//! Differences from the thesis: there the stores are performed before an edge that leaves the path; here that edge is copied too, so that a thread
//! never commits to an edge that then turns out to be disabled. And the thesis has early exits only before loads. That misses states in which the
//! store is in memory and the thread is between a load and the work on registers that follows.
//!
//! The variant of s.5.1 keeps the store and adds the path with its final leaf only.

use std::collections::BTreeMap;
use std::fmt;

use fencewright_program::{Action, Edge, EdgeId, LocationId, Op, Span, Thread, ThreadId};

use super::delay::{Delayed, Delays};
use super::{Extended, Origin};

/// The treatment of the store at the start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AttackingStore {
    /// The store is removed: TSO executions are preserved, and the path no longer exists.
    #[default]
    Removed,
    /// The store is kept: the new paths are an alternative to the old ones.
    Kept,
}

/// The reason why a program cannot be extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason in words.
    pub why: &'static str,
    /// The position in the source; `None` if no single position is to blame.
    pub span: Option<Span>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

/// Maximum number of locations of an extended thread.
const MOST_LOCATIONS: usize = 1 << 20;

impl Extended {
    /// The program in which the stores at the starts of these paths of one thread may be delayed along the paths: the construction is described at
    /// the head of this file. `store` says whether the original stores remain.
    pub fn extend(
        &self,
        thread: ThreadId,
        paths: &[Vec<EdgeId>],
        store: AttackingStore,
    ) -> Result<Extended, Refused> {
        let code = self.program.thread(thread);
        let tree = Tree::new(paths, code)?;
        let mut builder = self.builder(thread);
        let edges: Vec<(Edge, Origin)> = builder.edges.clone();
        if store == AttackingStore::Removed {
            let numbered = edges.iter().zip((0..).map(EdgeId));
            let kept = numbered.filter(|(_, id)| !tree.roots.contains_key(id));
            builder.edges = kept.map(|(edge, _)| edge.clone()).collect();
        }
        let delays = Delays::new(&self.program, &mut builder, &edges);
        Delay { delays, thread: code, tree: &tree, store }.all()?;
        let mut extended = self.clone();
        extended.replace(thread, builder);
        extended.adapt_formulas();
        Ok(extended)
    }
}

/// The paths as trees. A node stands for a prefix of a path; it is reached by an edge from its parent.
struct Tree {
    /// For each first store of a path the node that its edge leads to.
    roots: BTreeMap<EdgeId, usize>,
    /// For each node, its location and its children, by edge. A node without children is a leaf.
    nodes: Vec<(LocationId, BTreeMap<EdgeId, usize>)>,
}

impl Tree {
    fn new(paths: &[Vec<EdgeId>], thread: &Thread) -> Result<Self, Refused> {
        let refused = |why| Refused { why, span: None };
        let mut tree = Tree { roots: BTreeMap::new(), nodes: Vec::new() };
        for path in paths {
            let mut above: Option<usize> = None;
            let mut at = None;
            for edge in path {
                let step = thread.edges.get(edge.index()).ok_or(refused("a path that is not one"))?;
                if at.is_some_and(|at| at != step.from) {
                    return Err(refused("a path that is not one"));
                }
                let is_store = matches!(step.action, Action::Op(Op::Store(..)));
                if step.action.drains() || (above.is_none() && !is_store) {
                    return Err(Refused {
                        why: "a path on which no store can be delayed",
                        span: Some(step.span),
                    });
                }
                let next = tree.nodes.len();
                let children = match above {
                    None => &mut tree.roots,
                    Some(node) => &mut tree.nodes[node].1,
                };
                let node = *children.entry(*edge).or_insert(next);
                if node == next {
                    tree.nodes.push((step.to, BTreeMap::new()));
                }
                (above, at) = (Some(node), Some(step.to));
            }
        }
        Ok(tree)
    }
}

struct Delay<'a> {
    /// The trees share their auxiliary registers, because a thread is in at most one tree at a time.
    delays: Delays<'a>,
    thread: &'a Thread,
    tree: &'a Tree,
    store: AttackingStore,
}

impl Delay<'_> {
    fn all(&mut self) -> Result<(), Refused> {
        for (&root, &node) in &self.tree.roots {
            let from = self.delays.edges[root.index()].0.from;
            let (to, delayed) = self.follow(from, root, &[])?;
            // The worklist of copies that still need edges: node of the tree, copy of its location, stores delayed there.
            let mut open = vec![(node, to, delayed)];
            while let Some((node, copy, delayed)) = open.pop() {
                if self.delays.builder.len() > MOST_LOCATIONS {
                    return Err(Refused { why: "a thread of more than a million locations", span: None });
                }
                self.inner(node, copy, &delayed, &mut open)?;
            }
        }
        Ok(())
    }

    /// Adds the edges of the copy of an inner node.
    fn inner(
        &mut self,
        node: usize,
        copy: LocationId,
        delayed: &[Delayed],
        open: &mut Vec<(usize, LocationId, Vec<Delayed>)>,
    ) -> Result<(), Refused> {
        let (location, children) = &self.tree.nodes[node];
        if self.store == AttackingStore::Removed {
            self.exit_early(copy, *location, delayed);
        }
        for (number, _) in self.thread.edges_from(*location) {
            let edge = &self.delays.edges[number.index()].0;
            if edge.action.drains() {
                continue;
            }
            let child = children.get(&number).copied();
            if child.is_none() && self.store == AttackingStore::Kept {
                continue;
            }
            let (to, delayed) = self.follow(copy, number, delayed)?;
            match child.filter(|&child| !self.tree.nodes[child].1.is_empty()) {
                Some(child) => open.push((child, to, delayed)),
                None => self.perform(to, edge.to, &delayed),
            }
        }
        Ok(())
    }

    /// Adds an edge that leaves a copy; returns the copy it leads to and the stores delayed there.
    fn follow(
        &mut self,
        from: LocationId,
        edge: EdgeId,
        delayed: &[Delayed],
    ) -> Result<(LocationId, Vec<Delayed>), Refused> {
        let after = self.delays.after(edge, delayed)?;
        let Edge { to, span, .. } = self.delays.edges[edge.index()].0;
        let to = self.delays.builder.copy_of(to, Some(span));
        self.delays.follow((from, to), edge, delayed, &after)?;
        Ok((to, after))
    }

    /// Adds edges from a copy to a location of `R` that perform all delayed stores, one by one.
    fn perform(&mut self, from: LocationId, to: LocationId, delayed: &[Delayed]) {
        let mut at = from;
        for (n, store) in delayed.iter().enumerate() {
            let next = match n + 1 == delayed.len() {
                true => to,
                false => self.delays.builder.copy_of(to, Some(store.span)),
            };
            let op = Op::Store(store.address.clone(), store.value.clone());
            self.delays.builder.op(at, next, op, store.span, Origin::SILENT);
            at = next;
        }
    }

    /// Adds an early exit: the oldest delayed store reaches memory, the others are performed, and the thread is in `R` at the same location.
    fn exit_early(&mut self, copy: LocationId, location: LocationId, delayed: &[Delayed]) {
        let [oldest, others @ ..] = delayed else { return };
        let next = match others {
            [] => location,
            _ => self.delays.builder.copy_of(location, Some(oldest.span)),
        };
        let ops = vec![Op::Store(oldest.address.clone(), oldest.value.clone())];
        let action = Action::Atomic { ops, drains: true };
        self.delays.builder.edge(copy, next, action, oldest.span, Origin::SILENT);
        self.perform(next, location, others);
    }
}
