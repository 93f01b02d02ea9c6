//! Objects, and what is read from and written to them.

use fencewright_c::typed::tree::{GlobalId, Initial, LocalId, Step, Type, TypeKind};
use fencewright_code::core::ObjectEvent;
use fencewright_code::core::{
    Access, Base, Known, Location, NodeId, Object, ObjectId, Origin, Projection, Register, StmtKind, Times,
    Value, View, known, way,
};
use fencewright_code::numbers::{self, ADDRESSES, Operand};
use fencewright_code::reuse::Reuse;
use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::env::Contents;
use super::facts::fact;
use super::{Elaborator, Reach, Result};

/// Where a value is kept.
#[derive(Clone, Debug)]
pub enum Spot {
    /// In a register: a variable whose address nobody takes.
    Register(Register),
    /// In memory.
    Memory(Location),
}

/// A place that can be read and written.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub spot: Spot,
    /// The type of what is there.
    pub ty: Type,
    /// How the program accesses it.
    pub access: Access,
}

impl Target {
    /// A place, accessed as its type says.
    pub fn new(spot: Spot, ty: Type) -> Self {
        let access = match (ty.atomic, ty.volatile) {
            (true, _) => Access::Atomic,
            (false, true) => Access::Volatile,
            (false, false) => Access::Plain,
        };
        Target { spot, ty, access }
    }

    /// The same place, accessed differently.
    pub fn accessed(self, access: Access) -> Self {
        Target { access, ..self }
    }

    /// The object and the way to the part of it, if both are the same in every execution.
    pub(super) fn known(&self) -> Option<(ObjectId, Vec<Step>)> {
        let Spot::Memory(location) = &self.spot else { return None };
        let Base::Object(object) = location.base else { return None };
        Some((object, way(location)?))
    }
}

impl Elaborator<'_> {
    /// A new object.
    pub(super) fn object(&mut self, object: Object) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        let known = if object.undefined { Known::Undefined } else { Known::Number(0) };
        let private = object.origin != Origin::Global || self.executing();
        self.objects.push(object);
        self.reach.push(Reach::default());
        if private {
            self.writer.env.objects.insert(id, Contents::all(known));
        }
        id
    }

    /// The object of a variable with static storage.
    pub(super) fn global(&mut self, global: GlobalId) -> Result<ObjectId> {
        let unit = self.unit;
        let variable = &unit.globals[global.index()];
        let thread = variable.thread_local.then(|| self.thread());
        if let Some(&object) = self.globals.get(&(global, thread)) {
            return Ok(object);
        }
        let node = self.nodes.object(&variable.ty, variable.span);
        let origin = thread.map_or(Origin::Global, Origin::Local);
        let object = self.object(Object {
            name: variable.name.to_string(),
            ty: Some(variable.ty.clone()),
            node,
            origin,
            initial: Vec::new(),
            undefined: false,
            span: variable.span,
        });
        self.globals.insert((global, thread), object);
        self.reach[object.0 as usize].global = Some(global).filter(|_| thread.is_none());
        if self.repeated() {
            // This is the first access in the text, but an earlier round may have written it.
            self.writer.env.objects.remove(&object);
        }
        if let Some(initial) = &variable.initial {
            let parts = self.initial_parts(initial, &variable.ty)?;
            for (way, known) in &parts {
                if let Known::Address(target, _) = known {
                    // It is there from the start, for everybody who can see the variable.
                    self.reach[target.0 as usize].shared |= !self.executing();
                    self.kept_address(*target);
                    let node = self.location(object, way).node;
                    let (pointee, points) = (self.nodes.pointee(node), self.known_operand(known, (0, 0)));
                    if let Some(points) = points.and_then(|operand| operand.points) {
                        self.unify(pointee, points, variable.span)?;
                    }
                }
                if let Some(contents) = self.writer.env.objects.get_mut(&object) {
                    contents.parts.insert(way.clone(), Some(super::env::Fact::of(known.clone())));
                }
            }
            self.objects[object.0 as usize].initial = parts;
        }
        Ok(object)
    }

    pub(super) fn kept_address(&mut self, object: ObjectId) {
        let location =
            Location { base: Base::Object(object), path: Vec::new(), node: NodeId(0), view: View::default() };
        self.kept(&Value::Address(Box::new(location)));
    }

    /// The values that a variable with static storage starts with: constants and addresses.
    fn initial_parts(&mut self, initial: &Initial, ty: &Type) -> Result<Vec<(Vec<Step>, Known)>> {
        let mut parts: Vec<(Vec<Step>, Known)> = Vec::new();
        let mut numbers: FxHashMap<Vec<Step>, usize> = FxHashMap::default();
        for (way, value) in &initial.parts {
            let operand = self.value(value)?;
            let Some(known) = known(&operand.value) else {
                return self.error(
                    value.span,
                    "the initial value of this variable is not a constant",
                    "give it its value in `main`",
                );
            };
            // What is written later counts.
            let way = self.canonical(ty, way);
            match numbers.get(&way) {
                Some(&number) => parts[number].1 = known,
                None => {
                    numbers.insert(way.clone(), parts.len());
                    parts.push((way, known));
                }
            }
        }
        parts.retain(|(_, known)| *known != Known::Number(0));
        Ok(parts)
    }

    /// A way on which every member of a union is the first: all of them are the same place.
    fn canonical(&self, ty: &Type, way: &[Step]) -> Vec<Step> {
        let mut ty = Some(ty.clone());
        let mut canonical = Vec::new();
        for step in way {
            let union = match ty.as_ref().map(|ty| &ty.kind) {
                Some(TypeKind::Record(record)) => self.unit.records[record.0 as usize].union,
                _ => false,
            };
            canonical.push(if union { Step::Field(0) } else { *step });
            ty = self.part_type(ty.as_ref(), step).0;
        }
        canonical
    }

    /// The object of a local variable that needs one.
    pub(super) fn local_object(&mut self, local: LocalId) -> ObjectId {
        let unit = self.unit;
        let frame = self.writer.frames.last().expect("locals are in functions");
        let variable = &unit.functions[frame.function.index()].locals[local.index()];
        let node = self.nodes.object(&variable.ty, variable.span);
        let origin = Origin::Local(self.thread());
        self.object(Object {
            name: variable.name.to_string(),
            ty: Some(variable.ty.clone()),
            node,
            origin,
            initial: Vec::new(),
            undefined: true,
            span: variable.span,
        })
    }

    /// A new piece of memory of so many bytes; the pointer to it.
    pub fn allocate(&mut self, bytes: u64, zeroed: bool, span: Span) -> Result<Operand> {
        if self.phase == super::Phase::Creating && self.options.reuse == Reuse::Allocated {
            // A thread that was created may have freed what this gives.
            self.run();
        }
        let node = self.nodes.unknown();
        let times = match (self.phase == super::Phase::Alone, self.repeated()) {
            (true, _) => Times::First,
            (false, true) => Times::Counted,
            (false, false) => Times::Once,
        };
        let object = self.object(Object {
            name: "heap".to_string(),
            ty: None,
            node,
            origin: Origin::Heap { thread: self.thread(), bytes, times },
            initial: Vec::new(),
            undefined: !zeroed,
            span: self.here(span),
        });
        if self.executing() {
            return Ok(self
                .known_operand(&Known::Address(object, vec![Step::Element(0)]), (0, 0))
                .expect("an address is defined"));
        }
        let void = Type { kind: TypeKind::Void, atomic: false, volatile: false };
        let pointer = Type { kind: TypeKind::Pointer(void.into()), atomic: false, volatile: false };
        let register = self.temporary("new", &pointer);
        let points = self.writer.registers[register.0 as usize].points.expect("it is a pointer");
        self.unify(points, node, span)?;
        self.emit(StmtKind::Special(ObjectEvent::Allocate(register, object)), span);
        if times == Times::Once && self.options.reuse != Reuse::Allocated {
            return Ok(self
                .known_operand(&Known::Address(object, vec![Step::Element(0)]), (0, 0))
                .expect("an address is defined"));
        }
        self.reach[object.0 as usize] = Reach { shared: true, pointed: true, global: None };
        self.writer.env.objects.remove(&object);
        Ok(Operand { range: ADDRESSES, ..Operand::pointer(Value::Register(register), node) })
    }

    /// How many bytes an allocation has.
    pub(super) fn allocated_bytes(&self, object: ObjectId) -> Option<u64> {
        match self.objects[object.0 as usize].origin {
            Origin::Heap { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The place at the end of a way from an object.
    pub(super) fn location(&mut self, object: ObjectId, way: &[Step]) -> Location {
        let Object { node, ty, origin, .. } = &self.objects[object.0 as usize];
        let (mut node, mut ty, origin) = (*node, ty.clone(), *origin);
        let mut path = Vec::new();
        for (n, step) in way.iter().enumerate() {
            match (step, origin) {
                (Step::Element(index), Origin::Heap { bytes, .. }) if n == 0 => {
                    let size = ty.as_ref().map_or(1, |ty| self.size(ty).max(1));
                    let open = ty.as_ref().is_some_and(|ty| self.open_array(ty).is_some());
                    let elements = if open { 1 } else { bytes / size };
                    path.push(Projection::Element(Value::Number(*index as i64), elements));
                }
                _ => {
                    let (inner, mut length) = self.part_type(ty.as_ref(), step);
                    if length == 0 {
                        length = self.open_length(object);
                    }
                    path.push(match step {
                        Step::Field(field) => Projection::Field(*field),
                        Step::Element(index) => Projection::Element(Value::Number(*index as i64), length),
                    });
                    node = match step {
                        Step::Field(field) => self.nodes.field(node, *field),
                        Step::Element(_) => self.nodes.element(node),
                    };
                    ty = inner;
                }
            }
        }
        Location { base: Base::Object(object), path, node, view: View::default() }
    }

    /// The array of open length at the end of a structure: where it starts, and its elements.
    pub(super) fn open_array(&self, ty: &Type) -> Option<(u64, Type)> {
        let TypeKind::Record(record) = &ty.kind else { return None };
        let last = self.unit.records[record.0 as usize].fields.last()?;
        match &last.ty.kind {
            TypeKind::Array(element, 0) => Some((last.offset, (**element).clone())),
            _ => None,
        }
    }

    /// How many elements the array of open length has at the end of an object: as many as the allocation has room for. 0 if it is none.
    pub(super) fn open_length(&self, object: ObjectId) -> u64 {
        let Object { ty, origin, .. } = &self.objects[object.0 as usize];
        match (origin, ty.as_ref().and_then(|ty| self.open_array(ty))) {
            (Origin::Heap { bytes, .. }, Some((start, element))) => {
                bytes.saturating_sub(start) / self.size(&element).max(1)
            }
            _ => 0,
        }
    }

    /// The type of a part, and how many there are of its kind.
    fn part_type(&self, ty: Option<&Type>, step: &Step) -> (Option<Type>, u64) {
        match (ty.map(|ty| &ty.kind), step) {
            (Some(TypeKind::Array(element, length)), Step::Element(_)) => {
                (Some((**element).clone()), *length)
            }
            (Some(TypeKind::Record(record)), Step::Field(field)) => {
                let field = self.unit.records[record.0 as usize].fields.get(*field as usize);
                (field.map(|field| field.ty.clone()), 1)
            }
            _ => (None, 1),
        }
    }

    /// The type at the end of a way from an object.
    pub(super) fn type_at(&self, object: ObjectId, way: &[Step]) -> Option<Type> {
        let Object { ty, origin, .. } = &self.objects[object.0 as usize];
        let skipped = usize::from(matches!(origin, Origin::Heap { .. }));
        let mut ty = ty.clone();
        for step in way.iter().skip(skipped) {
            ty = self.part_type(ty.as_ref(), step).0;
        }
        ty
    }

    /// How many bytes a value of a type takes.
    pub fn size(&self, ty: &Type) -> u64 {
        match &ty.kind {
            TypeKind::Void | TypeKind::Function(_) => 1,
            TypeKind::Integer(arithmetic) => match arithmetic.greatest() {
                most if most <= 0xff => 1,
                most if most <= 0xffff => 2,
                most if most <= 0xffff_ffff => 4,
                _ => 8,
            },
            TypeKind::Floating(bytes) => *bytes,
            TypeKind::Pointer(_) => 8,
            TypeKind::Array(element, length) => self.size(element).saturating_mul(*length),
            TypeKind::Record(record) => self.unit.records[record.0 as usize].size,
        }
    }

    /// A value that is in a register, with the range and the pointee that its type gives.
    fn loaded(&mut self, register: Register, target: &Target) -> Operand {
        let value = Value::Register(register);
        let node = match &target.spot {
            Spot::Memory(location) => Some(self.nodes.pointee(location.node)),
            Spot::Register(_) => None,
        };
        match &target.ty.kind {
            TypeKind::Integer(arithmetic) => {
                let node = node.filter(|_| arithmetic.greatest() > u32::MAX.into());
                // It may be an address that was written as one, and then it has all the bits of one.
                if let Some(node) = node {
                    self.nodes.mark_integer(node);
                }
                Operand { points: node, ..Operand::of(value, *arithmetic) }
            }
            _ => Operand { points: node, range: (0, u64::MAX.into()), value },
        }
    }

    /// A new register for what a place holds.
    fn copy_of(&mut self, target: &Target, span: Span) -> Result<Register> {
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

    /// What to call a register with what a place holds: the variable or member that the text names.
    fn name_of(&self, location: &Location) -> String {
        let field = location.path.iter().rev().find_map(|projection| match projection {
            Projection::Field(field) => Some(*field),
            Projection::Element(..) => None,
        });
        let Base::Object(object) = &location.base else { return field.map_or("t".into(), |_| "t".into()) };
        self.objects[object.0 as usize].name.clone()
    }

    /// What a place holds.
    pub fn read(&mut self, target: &Target, span: Span) -> Result<Operand> {
        let location = match &target.spot {
            Spot::Register(register) => return Ok(self.register_value(*register)),
            Spot::Memory(location) => location.clone(),
        };
        if let Some((object, way)) = target.known().filter(|_| is_certain(&location)) {
            if let Some(operand) = self.constant(object, &way) {
                return Ok(self.seen_as(operand, &target.ty));
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

    /// The place, seen as the type that it is accessed with.
    fn seen_location(&mut self, mut location: Location, ty: &Type, span: Span) -> Result<Location> {
        let result = self.nodes.see(location.node, ty, span);
        self.clash(result, span)?;
        location.view = View::of(ty);
        Ok(location)
    }

    /// A value that is known, as one of the type that it is read as. What was written as one type may be read as another of the same size.
    fn seen_as(&mut self, operand: Operand, ty: &Type) -> Operand {
        let TypeKind::Integer(arithmetic) = ty.kind else { return operand };
        // An address that is read as a number has all the bits of one.
        if let Some(points) = operand.points {
            self.nodes.mark_integer(points);
        }
        numbers::convert(arithmetic, operand)
    }

    /// What a part of a variable holds that nobody ever writes.
    fn constant(&mut self, object: ObjectId, way: &[Step]) -> Option<Operand> {
        let global = self.global_of(object)?;
        let variable = &self.unit.globals[global.index()];
        if !self.graph.is_constant(global) || variable.ty.volatile || variable.ty.atomic {
            return None;
        }
        let initial = &self.objects[object.0 as usize].initial;
        let part = initial.iter().find(|(part, _)| part == way).map(|(_, known)| known.clone());
        let known = part.unwrap_or(Known::Number(0));
        self.known_operand(&known, super::env::Fact::of(known.clone()).range)
    }

    /// A place gets a value, by way of the store buffer if it is shared.
    pub fn write(&mut self, target: &Target, operand: Operand, span: Span) -> Result<()> {
        let location = match &target.spot {
            Spot::Register(register) => return self.write_register(*register, operand, span),
            Spot::Memory(location) => location.clone(),
        };
        let location = self.seen_location(location, &target.ty, span)?;
        self.follow(&location, span);
        if self.written_to(target, Some(&operand), span)? {
            self.emit(StmtKind::Store(location, operand.value, target.access), span);
        }
        Ok(())
    }

    /// Notes that a place in memory gets a value (`None`: not known). Whether that has to be written down.
    fn written_to(&mut self, target: &Target, operand: Option<&Operand>, span: Span) -> Result<bool> {
        let Spot::Memory(location) = &target.spot else { return Ok(true) };
        if let Base::Object(object) = location.base {
            self.used(object, false);
            if self.is_unread(object) && self.phase != super::Phase::Alone && is_certain(location) {
                return Ok(false);
            }
        }
        if let Some(points) = operand.and_then(|operand| operand.points) {
            let pointee = self.nodes.pointee(location.node);
            self.unify(pointee, points, span)?;
        }
        let number = matches!(target.ty.kind, TypeKind::Integer(ty) if ty.greatest() > u32::MAX.into());
        if number && operand.is_some_and(|operand| operand.known() != Some(0)) {
            // It may be read as an address, and then it is none of those that it could be taken for.
            let pointee = self.nodes.pointee(location.node);
            self.nodes.mark_integer(pointee);
        }
        let known_way = way(location).filter(|_| is_certain(location));
        let executed = self.executes(location, operand) && known_way.is_some();
        if !executed && self.phase == super::Phase::Creating && self.writer.reachable {
            // What was executed so far is taken down before others get to know of it.
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
        if executed && self.phase == super::Phase::Creating {
            self.unwritten.push(object);
        }
        let fact = operand.map(fact);
        // A place that is not there is no part of the object: the access is written down, and checked.
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

    /// Whether a store is executed here and now: nobody else can see the place, and the value is known.
    fn executes(&self, location: &Location, operand: Option<&Operand>) -> bool {
        let Base::Object(object) = location.base else { return false };
        let is_known = operand.is_some_and(|operand| known(&operand.value).is_some());
        self.executing() && !self.writes_from_here() && is_known && self.is_private(object)
    }

    pub(super) fn write_register(&mut self, register: Register, operand: Operand, span: Span) -> Result<()> {
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

    /// One indivisible read-modify-write: `new` says, of what was there, when something is written (always if it says nothing) and what. Gives what was there.
    pub fn update(
        &mut self,
        target: &Target,
        new: impl FnOnce(&mut Self, &Operand) -> Result<(Option<Operand>, Operand)>,
        span: Span,
    ) -> Result<Operand> {
        let known = target.known().filter(|(object, _)| self.is_private(*object));
        let place = match &target.spot {
            // Nobody else can see it: read, then write.
            Spot::Register(_) => None,
            Spot::Memory(_) if known.is_some() => None,
            Spot::Memory(location) => Some(self.seen_location(location.clone(), &target.ty, span)?),
        };
        let Some(place) = place else {
            // It drains all the same.
            self.emit(StmtKind::Fence, span);
            let old = self.read(target, span)?;
            let old = self.kept_value(old, &target.ty, span)?;
            let (when, new) = new(self, &old)?;
            let new = match when {
                Some(when) => numbers::choose(when, new, old.clone()),
                None => new,
            };
            self.write(target, new, span)?;
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

    /// The same value, which stays what it is when the place it was read from changes.
    pub(super) fn kept_value(&mut self, operand: Operand, ty: &Type, span: Span) -> Result<Operand> {
        if known(&operand.value).is_some() {
            return Ok(operand);
        }
        let register = self.temporary("old", ty);
        let (range, points) = (operand.range, operand.points);
        self.write_register(register, operand, span)?;
        Ok(Operand { points, ..Operand::new(Value::Register(register), range) })
    }
}

/// Whether a place is there for certain: no index can be wrong.
pub(super) fn is_certain(location: &Location) -> bool {
    location.path.iter().all(|projection| match projection {
        Projection::Field(_) => true,
        Projection::Element(Value::Number(index), length) => {
            u64::try_from(*index).is_ok_and(|index| index < *length)
        }
        Projection::Element(..) => false,
    })
}
