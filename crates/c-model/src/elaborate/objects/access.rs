//! Reads and writes of places.

use fencewright_c::typed::tree::{Step, Type, TypeKind};
use fencewright_code::core::{
    Base, Known, LITERAL_WRITTEN, Location, ObjectId, Origin, Purpose, Register, StmtKind, Value, View,
    known, way,
};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::env::{Contents, Fact};
use super::super::facts::fact;
use super::super::{Elaborator, Phase, Result};
use super::{Spot, Target, is_certain};

impl Elaborator<'_> {
    /// The value of a place after a load into a register. Its range is that of the type, and if it is a pointer, it points to the pointee node of the
    /// place.
    pub(super) fn loaded(&mut self, register: Register, target: &Target) -> Operand {
        let value = Value::Register(register);
        let node = match &target.spot {
            Spot::Memory(location) => Some(self.nodes.pointee(location.node)),
            Spot::Register(_) => None,
        };
        match &target.ty.kind {
            TypeKind::Integer(arithmetic) => {
                let node = node.filter(|_| arithmetic.greatest() > u32::MAX.into());
                // If the value is an address, the program can now see its bits as a number.
                if let Some(node) = node {
                    self.nodes.mark_integer(node);
                }
                Operand { points: node, ..Operand::of(value, *arithmetic) }
            }
            _ => Operand { points: node, range: (0, u64::MAX.into()), value },
        }
    }

    /// A new register for the value of a place; the caller emits the load.
    pub(super) fn copy_of(&mut self, target: &Target, span: Span) -> Result<Register> {
        let Spot::Memory(location) = &target.spot else { unreachable!("registers are read as they are") };
        let name = self.name_of(location);
        let register = self.temporary(&name, &target.ty);
        let points = self.writer.registers[register.0 as usize].points;
        if let Some(points) = points {
            let pointee = self.nodes.pointee(location.node);
            self.unify(points, pointee, span)?;
        }
        Ok(register)
    }

    /// The name of a register that holds the value of a place: the name of the object, or `t` if the object is unknown.
    pub(super) fn name_of(&self, location: &Location) -> String {
        let Base::Object(object) = &location.base else { return "t".into() };
        self.objects[object.0 as usize].name.clone()
    }

    /// Reads a place: from the known facts if possible, otherwise by a load.
    pub fn read(&mut self, target: &Target, span: Span) -> Result<Operand> {
        let location = match &target.spot {
            Spot::Register(register) => return Ok(self.register_value(*register)),
            Spot::Memory(location) => location.clone(),
        };
        if self.executing() && self.is_global(&location) {
            self.accesses.reads += 1;
        }
        if let Some((object, way)) = target.known().filter(|_| is_certain(&location)) {
            if let Some(operand) = self.constant(object, &way) {
                return Ok(self.seen_as(operand, &target.ty));
            }
            if let Some(operand) = self.settled(target, (object, &way), &location, span) {
                return Ok(operand);
            }
            self.used(object, true);
            if self.is_private(object) {
                let fact = self.writer.env.objects.get(&object).and_then(|contents| contents.part(&way));
                let operand = fact.and_then(|fact| Some((fact.known?, fact.range)));
                if let Some(operand) = operand.and_then(|(known, range)| self.known_operand(&known, range)) {
                    return Ok(self.seen_as(operand, &target.ty));
                }
            }
        } else if let Base::Object(object) = location.base {
            self.used(object, true);
        }
        let location = self.seen_location(location, &target.ty, span)?;
        let register = self.copy_of(target, span)?;
        self.follow(&location, span);
        self.emit(StmtKind::Load(register, location, target.access), span);
        Ok(self.loaded(register, target))
    }

    /// The location as it is accessed with type `ty`.
    pub(super) fn seen_location(
        &mut self,
        mut location: Location,
        ty: &Type,
        span: Span,
    ) -> Result<Location> {
        let result = self.nodes.see(location.node, ty, span);
        self.clash(result, span)?;
        location.view = View::of(ty);
        Ok(location)
    }

    /// Converts a known value to the type with which the place is read, which may be another type of the same size.
    pub(in super::super) fn seen_as(&mut self, operand: Operand, ty: &Type) -> Operand {
        let TypeKind::Integer(arithmetic) = ty.kind else { return operand };
        // If the value is an address, the program can now see its bits as a number.
        if let Some(points) = operand.points {
            self.nodes.mark_integer(points);
        }
        numbers::convert(arithmetic, operand)
    }

    /// The value of a part of a variable that is never written; `None` for other variables.
    pub(super) fn constant(&mut self, object: ObjectId, way: &[Step]) -> Option<Operand> {
        let global = self.global_of(object)?;
        let variable = &self.unit.globals[global.index()];
        if !self.graph.is_constant(global) || variable.ty.volatile || variable.ty.atomic {
            return None;
        }
        let initial = &self.objects[object.0 as usize].initial;
        let part = initial.iter().find(|(part, _)| part == way).map(|(_, known)| known.clone());
        let known = part.unwrap_or(Known::Number(0));
        self.known_operand(&known, Fact::of(known.clone()).range)
    }

    /// Whether a place is part of a variable of the program with static storage.
    fn is_global(&self, location: &Location) -> bool {
        let Base::Object(object) = location.base else { return false };
        let object = &self.objects[object.0 as usize];
        object.origin == Origin::Global && object.purpose == Purpose::Program
    }

    /// Writes a place. For memory, a store is emitted unless the write is dead or executed at translation time.
    pub fn write(&mut self, target: &Target, operand: Operand, span: Span) -> Result<()> {
        let location = match &target.spot {
            Spot::Register(register) => return self.write_register(*register, operand, span),
            Spot::Memory(location) => location.clone(),
        };
        if self.executing() && self.is_global(&location) {
            self.accesses.writes += 1;
        }
        let location = self.seen_location(location, &target.ty, span)?;
        self.follow(&location, span);
        if self.written_to(target, Some(&operand), span)? {
            self.emit(StmtKind::Store(location, operand.value, target.access), span);
        }
        Ok(())
    }

    /// Updates the facts after a write of a value (`None` if the value is unknown). Returns whether a store has to be emitted.
    pub(super) fn written_to(
        &mut self,
        target: &Target,
        operand: Option<&Operand>,
        span: Span,
    ) -> Result<bool> {
        let Spot::Memory(location) = &target.spot else { return Ok(true) };
        if let Base::Object(object) = location.base {
            self.used(object, false);
            if self.objects[object.0 as usize].purpose == Purpose::Literal {
                self.emit(StmtKind::Check(Value::Number(0), LITERAL_WRITTEN.into()), span);
            }
            if self.is_unread(object) && self.phase != Phase::Alone && is_certain(location) {
                return Ok(false);
            }
        }
        if let Some(points) = operand.and_then(|operand| operand.points) {
            let pointee = self.nodes.pointee(location.node);
            self.unify(pointee, points, span)?;
        }
        let number = matches!(target.ty.kind, TypeKind::Integer(ty) if ty.greatest() > u32::MAX.into());
        if number && operand.is_some_and(|operand| operand.known() != Some(0)) {
            // The number may later be read as an address, so no object may have an address equal to it.
            let pointee = self.nodes.pointee(location.node);
            self.nodes.mark_integer(pointee);
        }
        let known_way = way(location).filter(|_| is_certain(location));
        let executed = self.executes(location, operand) && known_way.is_some();
        if !executed && self.phase == Phase::Creating && self.writer.reachable {
            // The current contents of memory become the initial state of the program before the written address escapes.
            self.run();
        }
        let Base::Object(object) = location.base else {
            if self.writer.reachable {
                self.forget_pointed();
                if let Some(operand) = operand {
                    self.publish(&operand.value);
                }
            }
            return Ok(true);
        };
        if !self.is_private(object) {
            if let Some(operand) = operand {
                self.publish(&operand.value);
            }
            return Ok(true);
        }
        if executed && self.phase == Phase::Creating {
            self.unwritten.push(object);
        }
        let fact = operand.map(fact);
        // If an index may be out of bounds, the access is emitted and checked, and the contents of the object become unknown.
        match known_way {
            Some(way) => {
                let contents = self.writer.env.objects.entry(object).or_default();
                contents.parts.insert(way, fact);
            }
            None => {
                self.writer.env.objects.insert(object, Contents::default());
            }
        }
        if let Some(operand) = operand {
            self.kept(&operand.value);
        }
        Ok(!executed)
    }

    /// Whether a store is executed at translation time, because only `main` can reach the place and the value is known.
    pub(super) fn executes(&self, location: &Location, operand: Option<&Operand>) -> bool {
        let Base::Object(object) = location.base else { return false };
        let is_known = operand.is_some_and(|operand| known(&operand.value).is_some());
        self.executing() && !self.writes_from_here() && is_known && self.is_private(object)
    }

    pub(in super::super) fn write_register(
        &mut self,
        register: Register,
        operand: Operand,
        span: Span,
    ) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        let fact = fact(&operand);
        let executed = self.executing() && fact.known.is_some();
        if !executed {
            self.kept(&operand.value);
            self.emit(StmtKind::Assign(register, operand.value), span);
        }
        self.writer.env.registers.insert(register, fact);
        Ok(())
    }

    /// One atomic read-modify-write. Given the old value, `new` returns the condition of the write (`None` means always) and the new value. The
    /// result is the old value.
    pub fn update(
        &mut self,
        target: &Target,
        new: impl FnOnce(&mut Self, &Operand) -> Result<(Option<Operand>, Operand)>,
        span: Span,
    ) -> Result<Operand> {
        let known = target.known().filter(|(object, _)| self.is_private(*object));
        let place = match &target.spot {
            // Private memory is read and then written; no other thread can observe this, so no atomic step is needed.
            Spot::Register(_) => None,
            Spot::Memory(_) if known.is_some() => None,
            Spot::Memory(location) => Some(self.seen_location(location.clone(), &target.ty, span)?),
        };
        let Some(place) = place else {
            let old = self.read(target, span)?;
            let old = self.kept_value(old, &target.ty, span)?;
            let (when, new) = new(self, &old)?;
            let new = match when {
                Some(when) => numbers::choose(when, new, old.clone()),
                None => new,
            };
            self.write(target, new, span)?;
            // A read-modify-write drains the store buffer, also of its own value, even if its memory is private: other threads may get to know it later.
            self.emit(StmtKind::Fence, span);
            return Ok(old);
        };
        let register = self.copy_of(target, span)?;
        let old = self.loaded(register, target);
        let (when, new) = new(self, &old)?;
        let always = |when: &Operand| when.known().is_some_and(|known| known != 0);
        let when = when.filter(|when| !always(when)).map(|when| numbers::truth(when).value);
        if let Base::Object(object) = place.base {
            self.used(object, true);
        }
        self.written_to(target, Some(&new), span)?;
        self.follow(&place, span);
        let (new, access) = (new.value, target.access);
        self.emit(StmtKind::Update { place, old: register, when, new, access }, span);
        Ok(old)
    }

    /// An atomic write that drains the buffer. The old value of private memory, which may be undefined, is not read.
    pub(in super::super) fn exchanged(&mut self, target: &Target, value: Operand, span: Span) -> Result<()> {
        let is_private = match &target.spot {
            Spot::Register(_) => true,
            Spot::Memory(_) => target.known().is_some_and(|(object, _)| self.is_private(object)),
        };
        if is_private {
            self.write(target, value, span)?;
            self.emit(StmtKind::Fence, span);
            return Ok(());
        }
        self.update(target, |_, _| Ok((None, value)), span).map(|_| ())
    }

    /// Copies a value into a register, so that it does not change when the place from which it was read is written again.
    pub(in super::super) fn kept_value(
        &mut self,
        operand: Operand,
        ty: &Type,
        span: Span,
    ) -> Result<Operand> {
        if known(&operand.value).is_some() {
            return Ok(operand);
        }
        let register = self.temporary("old", ty);
        let (range, points) = (operand.range, operand.points);
        self.write_register(register, operand, span)?;
        Ok(Operand { points, ..Operand::new(Value::Register(register), range) })
    }
}
