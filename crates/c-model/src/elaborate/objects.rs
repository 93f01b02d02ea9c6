//! Objects in memory: variables and allocations, and their types.

mod access;

use fencewright_c::typed::tree::{GlobalId, Initial, LocalId, Step, Type, TypeKind};
use fencewright_code::core::{
    Access, Base, Known, Location, NodeId, Object, ObjectEvent, ObjectId, Origin, Projection, Purpose,
    Register, StmtKind, Times, Value, View, known, way,
};
use fencewright_code::numbers::{ADDRESSES, Operand};
use fencewright_code::reuse::Reuse;
use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::env::Contents;
use super::{Elaborator, Reach, Result};

/// Where a value is stored.
#[derive(Clone, Debug)]
pub enum Spot {
    /// A register: for a scalar variable whose address is not taken, or a temporary.
    Register(Register),
    /// A place in memory.
    Memory(Location),
}

/// A place that can be read and written.
#[derive(Clone, Debug)]
pub struct Target {
    /// The register or the memory location.
    pub spot: Spot,
    /// The type with which the place is accessed.
    pub ty: Type,
    /// The kind of access.
    pub access: Access,
}

impl Target {
    /// A place with the kind of access that its type implies: atomic, volatile or plain.
    pub fn new(spot: Spot, ty: Type) -> Self {
        let access = match (ty.atomic, ty.volatile) {
            (true, _) => Access::Atomic,
            (false, true) => Access::Volatile,
            (false, false) => Access::Plain,
        };
        Target { spot, ty, access }
    }

    /// The place with another kind of access.
    pub fn accessed(self, access: Access) -> Self {
        Target { access, ..self }
    }

    /// The object, and the path to the part of it, if both are constant.
    pub(super) fn known(&self) -> Option<(ObjectId, Vec<Step>)> {
        let Spot::Memory(location) = &self.spot else { return None };
        let Base::Object(object) = location.base else { return None };
        Some((object, way(location)?))
    }
}

impl Elaborator<'_> {
    /// Adds an object.
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

    /// The object of a variable with static storage, created at its first use. A thread-local variable has an object for each thread.
    pub(super) fn global(&mut self, global: GlobalId) -> Result<ObjectId> {
        let unit = self.unit;
        let variable = &unit.globals[global.index()];
        if let Some(error) = &variable.error {
            return Err(Box::new(crate::diagnostic(error.clone())));
        }
        let thread = variable.thread_local.then(|| self.thread());
        if let Some(&object) = self.globals.get(&(global, thread)) {
            return Ok(object);
        }
        let ty = self.graph.raw(global).unwrap_or(&variable.ty).clone();
        let node = self.nodes.object(&ty, variable.span);
        let origin = thread.map_or(Origin::Global, Origin::Local);
        let object = self.object(Object {
            name: variable.name.to_string(),
            ty: Some(ty),
            node,
            origin,
            initial: Vec::new(),
            undefined: false,
            purpose: if variable.literal { Purpose::Literal } else { Purpose::Program },
            span: variable.span,
        });
        self.globals.insert((global, thread), object);
        self.reach[object.0 as usize].global = Some(global).filter(|_| thread.is_none());
        if self.repeated() {
            // No code before this point accesses the variable, but an earlier iteration of an enclosing loop may have written it, so its contents are
            // not known to be the initial ones.
            self.writer.env.objects.remove(&object);
        }
        if let Some(initial) = &variable.initial {
            let parts = self.initial_parts(initial, &variable.ty)?;
            for (way, known) in &parts {
                if let Known::Address(target, _) = known {
                    // The address is stored in the variable from the start, so every thread that can access the variable can read the address.
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
        self.open_raw(object, global, variable.span)?;
        Ok(object)
    }

    pub(super) fn kept_address(&mut self, object: ObjectId) {
        let location =
            Location { base: Base::Object(object), path: Vec::new(), node: NodeId(0), view: View::default() };
        self.kept(&Value::Address(Box::new(location)));
    }

    /// The initial values of a variable with static storage: constants and addresses.
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
            // Later initialisers override earlier ones.
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

    /// The path after every union member has been replaced by the first member, because all members of a union are one place.
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

    /// Creates the object of a local variable of the current function.
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
            purpose: Purpose::Program,
            span: variable.span,
        })
    }

    /// Allocates `bytes` bytes of memory. Returns a pointer to them.
    pub fn allocate(&mut self, bytes: u64, zeroed: bool, span: Span) -> Result<Operand> {
        if self.phase == super::Phase::Creating && self.options.reuse == Reuse::Allocated {
            // A created thread may have freed the memory that this allocation returns, so the execution of `main` ends here.
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
            purpose: Purpose::Program,
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

    /// The size of an allocated object in bytes; `None` for a variable.
    pub(super) fn allocated_bytes(&self, object: ObjectId) -> Option<u64> {
        match self.objects[object.0 as usize].origin {
            Origin::Heap { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The place to which a path from an object leads.
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

    /// The offset in bytes and the element type of the flexible array member of a structure; `None` if it has no such member.
    pub(super) fn open_array(&self, ty: &Type) -> Option<(u64, Type)> {
        let TypeKind::Record(record) = &ty.kind else { return None };
        let last = self.unit.records[record.0 as usize].fields.last()?;
        match &last.ty.kind {
            TypeKind::Array(element, 0) => Some((last.offset, (**element).clone())),
            _ => None,
        }
    }

    /// The number of elements in the flexible array member of an object: those for which an allocation has room, or for which a variable has initial
    /// values; 0 for objects without such a member.
    pub(super) fn open_length(&self, object: ObjectId) -> u64 {
        let Object { ty, origin, initial, .. } = &self.objects[object.0 as usize];
        match (origin, ty.as_ref().and_then(|ty| self.open_array(ty))) {
            (Origin::Heap { bytes, .. }, Some((start, element))) => {
                bytes.saturating_sub(start) / self.size(&element).max(1)
            }
            (_, Some(_)) => {
                let elements = initial.iter().filter_map(|(way, _)| match way.as_slice() {
                    [Step::Field(member), Step::Element(index), ..] if self.is_last(ty.as_ref(), *member) => {
                        Some(index + 1)
                    }
                    _ => None,
                });
                elements.max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Whether a member is the last one of a structure.
    fn is_last(&self, ty: Option<&Type>, member: u32) -> bool {
        let Some(TypeKind::Record(record)) = ty.map(|ty| &ty.kind) else { return false };
        self.unit.records[record.0 as usize].fields.len() == member as usize + 1
    }

    /// The type of a part; for an element of an array also the length of the array.
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

    /// The type of the part to which a path leads; `None` if the type is unknown.
    pub(super) fn type_at(&self, object: ObjectId, way: &[Step]) -> Option<Type> {
        let Object { ty, origin, .. } = &self.objects[object.0 as usize];
        let skipped = usize::from(matches!(origin, Origin::Heap { .. }));
        let mut ty = ty.clone();
        for step in way.iter().skip(skipped) {
            ty = self.part_type(ty.as_ref(), step).0;
        }
        ty
    }

    /// The size of a type in bytes.
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
}

/// Whether a place is known to exist: all indices are constants within bounds.
pub(super) fn is_certain(location: &Location) -> bool {
    location.path.iter().all(|projection| match projection {
        Projection::Field(_) => true,
        Projection::Element(Value::Number(index), length) => {
            u64::try_from(*index).is_ok_and(|index| index < *length)
        }
        Projection::Element(..) => false,
    })
}
