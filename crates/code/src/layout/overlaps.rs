//! Objects that may reuse the address of an earlier object, but have numbers of their own here: an allocation of another size, a local variable of
//! another block, the stack of another thread.
//!
//! In reality a dangling pointer to the earlier object may equal a pointer to the new one; here the two pointers differ. So the model ends where two
//! such pointers are compared. The comparison is exact only where an allocation may return the number of a freed object of the same size
//! ([`crate::layout::heap`]).

use std::collections::BTreeMap;

use fencewright_program::BinaryOp;

use crate::core::{HIGHEST_ADDRESS, ObjectId, Origin, ThreadNumber};
use crate::flat::{Mark, Term};
use crate::layout::addresses::{Piece, Unknown};
use crate::layout::classes::{Placement, Runs, among};
use crate::layout::resolve::Resolver;
use crate::reuse::{Reuse, is_later};

/// When an object may reuse the address of another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    /// Possibly at any time, because this thread has no mark that says whether the other object still exists.
    Always,
    /// Only while the lifetime of the other object is over, which a mark of this thread records.
    Gone,
}

impl Resolver<'_> {
    /// Ends the model where two pointers are compared if one of them may be dangling and the other may point to an object at the same address.
    pub(crate) fn end_at_overlaps(&mut self, class: usize, x: &Term, y: &Term) {
        let of = &self.layout.classes[class];
        let mut runs: BTreeMap<(ObjectId, u64), Runs> = BTreeMap::new();
        for Piece { of: Placement { object, time }, low, high } in &of.pieces {
            let pointers = (low * of.scale, (high + 1) * of.scale - 1);
            runs.entry((*object, *time)).or_default().push(pointers);
        }
        let address = |pointer: &Term| match of.used.tagged {
            true => pointer.clone().with(BinaryOp::BitAnd, HIGHEST_ADDRESS),
            false => pointer.clone(),
        };
        let (x, y) = (address(x), address(y));
        for (&old, there) in &runs {
            let mut later: BTreeMap<When, Runs> = BTreeMap::new();
            for (&new, runs) in &runs {
                if let Some(when) = self.may_replace(old, new) {
                    later.entry(when).or_default().extend(runs);
                }
            }
            for (when, mut later) in later {
                later.sort_unstable();
                let one = among(there, &x).and(among(&later, &y));
                let both = one.or(among(there, &y).and(among(&later, &x)));
                if both.number() != Some(0) {
                    let gone = self.is_gone(old.0, when);
                    self.beyond_if(both.and(gone), Unknown::Overlap);
                }
            }
        }
    }

    fn is_gone(&mut self, old: ObjectId, when: When) -> Term {
        match when {
            When::Always => Term::Number(1),
            When::Gone => {
                let placed = self.layout.placed(old);
                let marks = self.marks(placed.class, Mark::Freed);
                Term::Element(marks, Box::new(Term::Number(placed.first))).with(BinaryOp::Eq, 1)
            }
        }
    }

    /// When the object `new` may reuse the address of `old` although their numbers differ; `None` if never.
    fn may_replace(&self, old: (ObjectId, u64), new: (ObjectId, u64)) -> Option<When> {
        if old == new || !self.layout.is_freed(old.0) {
            return None;
        }
        let (old, new) = (old.0, new.0);
        let origin = |object: ObjectId| self.core.objects[object.0 as usize].origin;
        let is_late = |thread: ThreadNumber| self.core.threads[thread.0 as usize].late;
        // The stack of `main` exists until the program ends, and the stack of this thread exists while it runs. So only from the stack of another
        // thread may memory have passed to a different thread or to the heap.
        let may_have_ended = |thread: ThreadNumber| thread.0 != 0 && thread != self.thread;
        let replaces = match (origin(old), origin(new)) {
            (Origin::Local(one), Origin::Local(other)) if one == other => {
                return Some(if one == self.thread { When::Gone } else { When::Always });
            }
            (Origin::Local(one), Origin::Local(other)) => may_have_ended(one) && is_late(other),
            (Origin::Local(one), other) => may_have_ended(one) && is_later(other),
            (Origin::Heap { .. }, Origin::Local(other)) => is_late(other),
            (Origin::Heap { .. }, other) => {
                let leaves = match self.options.reuse {
                    Reuse::Never => false,
                    Reuse::Allocated => self.size(old) != self.size(new),
                    Reuse::Compared => true,
                };
                leaves && is_later(other)
            }
            (Origin::Global, _) => false,
        };
        replaces.then_some(When::Always)
    }
}
