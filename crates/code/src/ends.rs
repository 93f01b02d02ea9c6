//! Threads that have ended where memory is freed.
//!
//! A forward must-analysis of each thread. Facts: the threads whose end the thread has awaited, as `pthread_join` does. Join: intersection. A thread
//! that has ended stays so, hence facts hold in all iterations of a loop that starts with them.
//!
//! The result says, for each statement that frees an object or ends the lifetime of a local variable, which threads have always ended when it is
//! executed. Such a thread neither accesses the object later nor allocates its memory again.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_program::BinaryOp;
use fencewright_text::Stop;

use crate::core::{
    Base, Core, Location, NodeId, Object, ObjectEvent, ObjectId, Projection, Purpose, Register, StmtKind,
    Symbolic, ThreadNumber, Value,
};
use crate::dataflow::forward::{Cycles, Forward, walk};

/// A set of threads that have ended.
type Ended = BTreeSet<ThreadNumber>;

/// For the statements that free objects and end lifetimes: the threads that have always ended by then.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// By the freeing thread and the node of the place to which the freed pointer points.
    frees: BTreeMap<(ThreadNumber, NodeId), Ended>,
    /// By the thread that ends the lifetime of a local variable.
    locals: BTreeMap<(ThreadNumber, ObjectId), Ended>,
}

impl Ends {
    /// Analyses a program. The code is the same afterwards, unless it is time to stop.
    pub(crate) fn of(core: &mut Core, stop: &Stop<'_>) -> Self {
        let mut ends = Ends::default();
        let Core { threads, objects, .. } = core;
        for (number, thread) in (0..).map(ThreadNumber).zip(threads) {
            let mut analysis = Analysis { objects, thread: number, ends: &mut ends };
            walk(&mut thread.code, Ended::new(), &mut analysis, &mut Cycles::default(), stop);
        }
        ends
    }

    /// The threads that have ended when `by` frees memory to which pointers to this node point; none if that is unknown.
    pub(crate) fn before_free(&self, by: ThreadNumber, node: NodeId) -> Ended {
        self.frees.get(&(by, node)).cloned().unwrap_or_default()
    }

    /// Whether `thread` has ended when `by` ends the lifetime of a local variable.
    pub(crate) fn is_before_end(&self, thread: ThreadNumber, by: ThreadNumber, local: ObjectId) -> bool {
        self.locals.get(&(by, local)).is_some_and(|ended| ended.contains(&thread))
    }
}

struct Analysis<'a> {
    objects: &'a [Object],
    thread: ThreadNumber,
    ends: &'a mut Ends,
}

impl Analysis<'_> {
    /// The thread whose end a statement awaits.
    fn awaited(&self, place: &Location, register: Register, until: &Value) -> Option<ThreadNumber> {
        let (Base::Object(flag), Value::Binary(BinaryOp::Ne, read, zero)) = (&place.base, until) else {
            return None;
        };
        if **read != Value::Register(register) || **zero != Value::Number(0) {
            return None;
        }
        match (self.objects[flag.0 as usize].purpose, place.path.as_slice()) {
            (Purpose::Ended(thread), []) => Some(thread),
            (Purpose::AllEnded, [Projection::Element(Value::Number(index), _)]) => {
                u32::try_from(*index).ok().map(ThreadNumber)
            }
            _ => None,
        }
    }
}

/// Keeps the threads that have ended in both sets.
fn meet(kept: Option<&mut Ended>, ended: &Ended) -> bool {
    kept.map(|kept| kept.retain(|thread| ended.contains(thread))).is_some()
}

impl Forward<Symbolic> for Analysis<'_> {
    type Facts = Ended;

    const ITERATES: bool = false;

    fn join(&self, mut one: Ended, other: Ended) -> Ended {
        meet(Some(&mut one), &other);
        one
    }

    fn branch(&self, _: &Value, _: bool, facts: Ended) -> Option<Ended> {
        Some(facts)
    }

    fn nothing(&self) -> Option<Ended> {
        Some(Ended::new())
    }

    fn transfer(&mut self, kind: &StmtKind, mut facts: Ended) -> Option<Ended> {
        match kind {
            StmtKind::Await { register, place, until, .. } => {
                facts.extend(self.awaited(place, *register, until));
            }
            StmtKind::Special(ObjectEvent::Free(_, node, _)) => {
                let at = (self.thread, *node);
                if !meet(self.ends.frees.get_mut(&at), &facts) {
                    self.ends.frees.insert(at, facts.clone());
                }
            }
            StmtKind::Special(ObjectEvent::End(local)) => {
                let at = (self.thread, *local);
                if !meet(self.ends.locals.get_mut(&at), &facts) {
                    self.ends.locals.insert(at, facts.clone());
                }
            }
            _ => {}
        }
        Some(facts)
    }
}
