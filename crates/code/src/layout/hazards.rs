//! Hazard pointers and retired objects.
//!
//! An implementation frees a retired object at some time after the last hazard pointer that protects it has been cleared. It finds out with a scan:
//! after a full fence, which makes the stores before the retirement visible, it reads all hazard pointers. The scan finds a hazard pointer that was
//! set before it, and may miss one that was set later. Freeing as early as possible has the most violations, so the model is:
//!
//! - Retiring sets a flag of the object by a buffered store, behind the earlier stores of the thread.
//! - Protecting reads the pointer and the flag of its target, and stores the pointer in the hazard pointer, or null if the flag is set: all in one
//!   indivisible step. This is the moment at which a real `protect` has published the pointer and found it unchanged.
//! - A protection ends with a buffered store of null, behind the earlier stores of the thread.
//! - An access to an object violates `memory` if the flag is set in memory and no hazard pointer in memory points into the object.
//! - In the same states an allocation may return the object, in one indivisible step that clears the flag. If nothing protects the object when it is
//!   retired, it may also be freed at once, and then the retiring thread may allocate it again without draining its buffer.
//!
//! The indivisible step of `protect` drains the buffer, but implementations with asymmetric fences do not: see [`crate::hazards`].

use std::collections::{BTreeMap, BTreeSet};

use fencewright_program::BinaryOp;
use fencewright_text::{Diagnostic, Stop};

use crate::core::{Access, Core, NodeId, Origin, Register, ThreadNumber, Value};
use crate::flat::{Cell, Step, StepKind, Term};
use crate::layout::classes::{Layout, Runs, among};
use crate::layout::resolve::Resolver;
use crate::nodes::Nodes;
use crate::reuse::{self, Reuse};

/// The classes that have to do with hazard pointers.
#[derive(Debug, Default)]
pub(crate) struct Retired {
    /// For each class whose objects are retired: the class of their flags.
    pub flags: BTreeMap<usize, usize>,
    /// The classes of places that hold protected pointers, each with the class of the targets.
    hazards: Vec<(usize, usize)>,
    /// The classes whose retired objects may be allocated again. That is observable only where pointers to them are compared, or where a late store
    /// may reach an object after it was freed.
    reused: BTreeSet<usize>,
}

/// A place that may hold a pointer into an object, and thereby protect it.
pub(crate) struct Guard {
    /// Its class, and its number there.
    pub class: usize,
    pub number: i64,
    /// The values of pointers into the object.
    pub inside: Runs,
}

impl Layout {
    /// Finds the classes that have to do with hazard pointers, and adds the flags of retired objects.
    pub(super) fn find_retired(
        &mut self,
        core: &Core,
        nodes: &Nodes,
        reuse: Reuse,
        stop: &Stop<'_>,
    ) -> Result<(), Vec<Diagnostic>> {
        let retired: Vec<usize> =
            (0..self.classes.len()).filter(|class| self.classes[*class].used.retired).collect();
        if retired.is_empty() {
            return Ok(());
        }
        let everyone: BTreeSet<ThreadNumber> = (0..core.threads.len() as u32).map(ThreadNumber).collect();
        let compared = reuse::compared(core, nodes, stop);
        for class in retired {
            let is_compared = self.classes[class].node.is_some_and(|node| nodes.has_part(node, &compared));
            if (is_compared || self.has_late(class)) && reuse == Reuse::Allocated {
                self.retired.reused.insert(class);
            }
            let mut threads = everyone.clone();
            // The property reads the flags, so they are shared variables also in a program with one thread.
            threads.insert(ThreadNumber(core.threads.len() as u32));
            let flags = self.add_flags("retired", class, threads);
            self.retired.flags.insert(class, flags);
        }
        for hazard in 0..self.classes.len() {
            let of = &self.classes[hazard];
            let target = of.node.and_then(|node| nodes.pointee_of(node));
            let target = target.and_then(|node| self.class(nodes, node));
            if let (true, Some(target)) = (of.used.hazard, target) {
                let used = &mut self.classes[hazard].used;
                used.accessed_by.extend(&everyone);
                used.accessed_by.insert(ThreadNumber(core.threads.len() as u32));
                self.retired.hazards.push((hazard, target));
            }
        }
        self.local_hazard(core)
    }

    /// The error of a hazard pointer that is a local variable: it would protect an object after its own lifetime.
    fn local_hazard(&self, core: &Core) -> Result<(), Vec<Diagnostic>> {
        let places = self.retired.hazards.iter().flat_map(|(hazard, _)| &self.classes[*hazard].places);
        for place in places.flatten() {
            let object = &core.objects[place.object.0 as usize];
            if matches!(object.origin, Origin::Local(_)) {
                let error = Diagnostic::new(object.span, "this hazard pointer is a local variable");
                return Err(vec![error.help("allocate it with `__VERIFIER_hp_alloc`")]);
            }
        }
        Ok(())
    }

    /// The objects whose memory may be used again after they were retired, by class and number.
    pub(super) fn reused(&self) -> Vec<(usize, i64)> {
        let mut objects = Vec::new();
        for &class in &self.retired.reused {
            for (low, high) in self.allocations(class) {
                objects.extend((low..=high).map(|number| (class, number)));
            }
        }
        objects
    }

    /// The places that may protect an allocated object, which is given by its class and number.
    pub(crate) fn guards(&self, allocation: (usize, i64)) -> Vec<Guard> {
        let mut guards = Vec::new();
        for &(hazard, target) in &self.retired.hazards {
            let (of, scale) = (&self.classes[hazard], self.classes[target].scale);
            let Some(runs) = self.allocated_runs(target).remove(&allocation) else { continue };
            let inside: Runs = runs.iter().map(|(low, high)| (low * scale, high * scale)).collect();
            let numbers = (of.first..).zip(&of.places).filter(|(_, place)| place.is_some());
            guards.extend(numbers.map(|(number, _)| Guard { class: hazard, number, inside: inside.clone() }));
        }
        guards
    }
}

impl Resolver<'_> {
    fn flag_of(&self, flags: usize, number: Term) -> Cell {
        let index = (!self.layout.classes[flags].is_single()).then_some(number);
        Cell { class: flags, index }
    }

    /// Steps of an indivisible block, which is blocked while a hazard pointer protects the object.
    fn unprotected(&mut self, allocation: (usize, i64)) -> Vec<Step> {
        let mut steps = Vec::new();
        for guard in self.layout.guards(allocation) {
            let held = self.register("protected", 0);
            let cell = self.flag_of(guard.class, Term::Number(guard.number));
            steps.push(self.step(StepKind::Load(held, cell, Access::Own)));
            let inside = among(&guard.inside, &Term::Register(held));
            steps.push(self.step(StepKind::Assume(inside.with(BinaryOp::Eq, 0))));
        }
        steps
    }

    /// Retires an object: sets its flag or, if its memory may be allocated again and no hazard pointer protects it, may also free it at once by the
    /// steps `freed`.
    pub(super) fn retire(&mut self, class: usize, number: Term, freed: Vec<Step>) {
        let Some(&flags) = self.layout.retired.flags.get(&class) else { return self.out.extend(freed) };
        let flag = self.flag_of(flags, number.clone());
        let later = vec![
            self.step(StepKind::StoreFence),
            self.step(StepKind::Store(flag, Term::Number(1), Access::Own)),
        ];
        let mut ways = vec![later];
        if self.layout.retired.reused.contains(&class) {
            for (low, high) in self.layout.allocations(class) {
                for start in low..=high {
                    let is_it = number.clone().with(BinaryOp::Eq, start);
                    if is_it.number() == Some(0) {
                        continue;
                    }
                    let mut scan = vec![self.step(StepKind::Assume(is_it))];
                    scan.extend(self.unprotected((class, start)));
                    let mut now = vec![self.step(StepKind::Atomic(scan))];
                    now.extend(freed.iter().cloned());
                    ways.push(now);
                }
            }
        }
        match <[_; 1]>::try_from(ways) {
            Ok([later]) => self.out.extend(later),
            Err(ways) => self.push(StepKind::Choose(ways)),
        }
    }

    /// Takes a retired object that nothing protects for an allocation, with an atomic step that drains the store buffer. `None` if retired objects of
    /// the class are not allocated again.
    pub(super) fn take_retired(&mut self, class: usize, number: i64) -> Option<Step> {
        if !self.layout.retired.reused.contains(&class) {
            return None;
        }
        let &flags = self.layout.retired.flags.get(&class)?;
        let retired = self.register("retired", 0);
        let flag = self.flag_of(flags, Term::Number(number));
        let mut steps = vec![
            self.step(StepKind::Load(retired, flag.clone(), Access::Own)),
            self.step(StepKind::Assume(Term::Register(retired).with(BinaryOp::Eq, 1))),
        ];
        steps.extend(self.unprotected((class, number)));
        steps.push(self.step(StepKind::Store(flag, Term::Number(0), Access::Own)));
        Some(self.step(StepKind::Atomic(steps)))
    }

    /// Loads the flag of the object that a pointer points into; 0 if it points into no object that may be retired.
    pub(super) fn is_retired(&mut self, flag: Register, pointer: &Value, target: NodeId) {
        let pointer = self.value(pointer);
        self.push(StepKind::Assign(flag, Term::Number(0)));
        let Some(class) = self.layout.class(self.nodes, target) else { return };
        let scale = self.layout.classes[class].scale;
        for ((of, number), runs) in self.layout.allocated_runs(class) {
            let Some(&flags) = self.layout.retired.flags.get(&of) else { continue };
            let inside: Runs = runs.iter().map(|(low, high)| (low * scale, high * scale)).collect();
            let load = StepKind::Load(flag, self.flag_of(flags, Term::Number(number)), Access::Own);
            let load = vec![self.step(load)];
            self.push(StepKind::If(among(&inside, &pointer), load, Vec::new()));
        }
    }
}
