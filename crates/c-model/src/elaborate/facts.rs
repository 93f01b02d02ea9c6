//! Facts as operands, escape analysis of objects, and the premises that one attempt derives for the next.

use std::collections::BTreeSet;

use fencewright_c::typed::tree::GlobalId;
use fencewright_code::core::{Base, Known, ObjectId, Origin, ThreadNumber, Value, known};
use fencewright_code::numbers::{ADDRESSES, Operand, Range};

use super::env::{Contents, Fact};
use super::threads::MOST_PER_SITE;
use super::{Elaborator, MOST_THREADS, Phase, Premises};

/// How the program uses a variable with static storage.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    /// The threads that access the variable.
    threads: BTreeSet<ThreadNumber>,
    /// Whether the variable is read.
    read: bool,
    /// Whether the address of the variable is stored somewhere.
    kept: bool,
}

/// The facts about a value.
pub(super) fn fact(operand: &Operand) -> Fact {
    Fact { known: known(&operand.value), range: operand.range }
}

/// Calls `object` for every object whose address occurs in a value, and `register` once for every register in the value.
pub(super) fn parts(value: &Value, object: &mut dyn FnMut(ObjectId), register: &mut dyn FnMut()) {
    match value {
        Value::Number(_) | Value::Function(_) => {}
        Value::Register(_) => register(),
        Value::Unary(_, inner) | Value::Container { member: inner, .. } => parts(inner, object, register),
        Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
            parts(a, object, register);
            parts(b, object, register);
        }
        Value::If(condition, a, b) => {
            [condition, a, b].into_iter().for_each(|part| parts(part, object, register));
        }
        Value::Address(location) => match &location.base {
            Base::Object(base) => object(*base),
            Base::Pointed(pointer, _) => parts(pointer, object, register),
        },
    }
}

impl Elaborator<'_> {
    /// A constant as an operand; `None` for the undefined value, which must not be used.
    pub(super) fn known_operand(&mut self, known: &Known, range: Range) -> Option<Operand> {
        Some(match known {
            Known::Number(_) if range.0 == range.1 => Operand::number(range.0),
            Known::Number(number) => Operand::number((*number).into()),
            Known::Function(function) => {
                Operand { value: Value::Function(*function), range: ADDRESSES, points: None }
            }
            Known::Address(object, way) => {
                let location = self.location(*object, way);
                let points = Some(location.node);
                Operand { value: Value::Address(Box::new(location)), range: ADDRESSES, points }
            }
            Known::Undefined => return None,
        })
    }

    /// Whether only the current thread can reach an object.
    pub(super) fn is_private(&self, object: ObjectId) -> bool {
        if self.phase == Phase::Alone {
            return true;
        }
        if self.reach[object.0 as usize].shared {
            return false;
        }
        match self.objects[object.0 as usize].origin {
            Origin::Global => self.thread() == ThreadNumber(0) && self.is_in(&self.premises.private, object),
            Origin::Local(thread) | Origin::Heap { thread, .. } => thread == self.thread(),
        }
    }

    /// Whether this attempt only counts the threads created at a place, of which the next one is number `created`: `main` is executed at translation
    /// time, so a later attempt may create all of them.
    pub(super) fn only_counts(&mut self, created: usize) -> bool {
        let counts = self.executing() && self.premises.threads_per_site.is_none() && created > MOST_PER_SITE;
        if counts {
            self.threads_counted = self.threads_counted.max(created);
        }
        counts && created <= MOST_THREADS
    }

    /// The premises of the next attempt if this one has only counted some threads.
    pub(super) fn counted_threads(&self) -> Option<Premises> {
        let most = match self.threads_counted {
            0 => return None,
            count if count <= MOST_THREADS => count,
            _ => MOST_PER_SITE,
        };
        Some(Premises { threads_per_site: Some(most), ..self.premises.clone() })
    }

    /// Whether the premises say that an object is never read, so that writes to it are dead.
    pub(super) fn is_unread(&self, object: ObjectId) -> bool {
        self.is_in(&self.premises.unread, object)
    }

    fn is_in(&self, globals: &[GlobalId], object: ObjectId) -> bool {
        self.global_of(object).is_some_and(|global| globals.contains(&global))
    }

    /// The variable with static storage that an object represents; `None` for other objects and for thread-local variables.
    pub(super) fn global_of(&self, object: ObjectId) -> Option<GlobalId> {
        self.reach[object.0 as usize].global
    }

    /// Records an access to an object.
    pub(super) fn used(&mut self, object: ObjectId, read: bool) {
        if self.phase == Phase::Alone {
            return;
        }
        let Some(global) = self.global_of(object) else { return };
        let thread = self.thread();
        let uses = self.uses.entry(global).or_default();
        uses.threads.insert(thread);
        uses.read |= read;
    }

    /// Records that the addresses in a value are stored, so that unknown pointers may point to these objects.
    pub(super) fn kept(&mut self, value: &Value) {
        let mut found = Vec::new();
        parts(value, &mut |object| found.push(object), &mut || {});
        for object in found {
            self.reach[object.0 as usize].pointed = true;
            if let Some(global) = self.global_of(object) {
                self.uses.entry(global).or_default().kept = true;
            }
        }
    }

    /// Records that a value escapes to other threads: marks all objects reachable from the value as shared.
    pub(super) fn publish(&mut self, value: &Value) {
        self.kept(value);
        let (mut found, mut unknown) = (Vec::new(), false);
        parts(value, &mut |object| found.push(object), &mut || unknown = true);
        if unknown {
            found.extend(self.pointed_objects());
        }
        while let Some(object) = found.pop() {
            let reach = &mut self.reach[object.0 as usize];
            let before = std::mem::replace(&mut reach.shared, true);
            // Other threads may now write to the object, so its contents become unknown. All objects to which it points escape as well.
            let contents = self.writer.env.objects.remove(&object);
            if self.phase == Phase::Creating
                && let Some(contents) = &contents
            {
                self.keep_contents(object, contents);
            }
            // If the object was already shared, the values in it escaped when they were written. (The contents of a shared object are known only in
            // an attempt that will be discarded.)
            if before && contents.is_none() {
                continue;
            }
            match contents {
                Some(Contents { parts, rest: Some(_) }) if parts.values().all(Option::is_some) => {
                    for fact in parts.into_values().flatten() {
                        match fact.known {
                            Some(Known::Address(inner, _)) => found.push(inner),
                            Some(_) => {}
                            None => found.extend(self.pointed_objects()),
                        }
                    }
                }
                _ => found.extend(self.pointed_objects()),
            }
        }
    }

    fn pointed_objects(&self) -> Vec<ObjectId> {
        let objects = self.reach.iter().enumerate();
        objects.filter(|(_, reach)| reach.pointed && !reach.shared).map(|(n, _)| ObjectId(n as u32)).collect()
    }

    /// After a write through an unknown pointer, drops the facts about all objects to which the pointer may point.
    pub(super) fn forget_pointed(&mut self) {
        for object in self.pointed_objects() {
            self.writer.env.objects.remove(&object);
        }
    }

    /// The premises for another attempt; `None` if the current premises hold and this attempt gives no reason to change them.
    pub(super) fn learned(&self) -> Option<Premises> {
        let threads = self.shared.dynamic.then_some(self.instances.len() as u64);
        if threads != self.premises.threads {
            return Some(Premises { threads, ..self.premises.clone() });
        }
        let mut rcu = self.premises.rcu.clone();
        if rcu.add(&self.rcu.found) {
            return Some(Premises { rcu, ..self.premises.clone() });
        }
        let later = self.destroyed.is_some_and(|threads| self.instances.len() > threads);
        if (self.outlived || later) && !self.premises.outlived {
            return Some(Premises { outlived: true, ..self.premises.clone() });
        }
        let computed_locks = self.premises.computed_locks.and(self.computed_locks);
        if computed_locks != self.premises.computed_locks {
            return Some(Premises { computed_locks, ..self.premises.clone() });
        }
        if self.descendants && !self.premises.descendants {
            return Some(Premises { descendants: true, ..self.premises.clone() });
        }
        let mut futexes = self.premises.futexes.clone();
        if futexes.learn(&self.futexes) {
            return Some(Premises { futexes, ..self.premises.clone() });
        }
        if self.destructors && !self.premises.destructors {
            return Some(Premises { destructors: true, ..self.premises.clone() });
        }
        // Some objects that `main` wrote at translation time escaped later. The writes may still have been in the buffer of `main` when its execution
        // ended, so the next attempt ends the execution earlier.
        if self.unwritten.iter().any(|object| self.reach[object.0 as usize].shared) {
            let written_from = Some(self.premises.written_from.unwrap_or(usize::MAX).min(self.ran_with));
            return Some(Premises { written_from, ..self.premises.clone() });
        }
        // Checks the assumptions of this attempt about variables.
        let fits = |global: &GlobalId, check: &dyn Fn(&Uses) -> bool| self.uses.get(global).is_none_or(check);
        let only_main =
            |uses: &Uses| !uses.kept && uses.threads.iter().all(|thread| *thread == ThreadNumber(0));
        let unread = |uses: &Uses| !uses.kept && !uses.read;
        let holds = self.premises.private.iter().all(|global| fits(global, &only_main))
            && self.premises.unread.iter().all(|global| fits(global, &unread));
        if !holds {
            let (private, unread) = Default::default();
            return Some(Premises { private, unread, fixed: true, ..self.premises.clone() });
        }
        let settled =
            self.premises.fixed || !self.premises.private.is_empty() || !self.premises.unread.is_empty();
        if settled || self.instances.len() < 2 {
            return None;
        }
        let with = |check: &dyn Fn(&Uses) -> bool| {
            let mut found: Vec<GlobalId> =
                self.uses.iter().filter(|(_, uses)| check(uses)).map(|(global, _)| *global).collect();
            found.sort();
            found
        };
        let (private, unread) = (with(&only_main), with(&unread));
        match private.is_empty() && unread.is_empty() {
            true => None,
            false => Some(Premises { private, unread, fixed: false, ..self.premises.clone() }),
        }
    }
}
