//! Byte arrays that are memory for a structure: `static char memory[64]; struct list *list = (struct list *)memory;`.
//!
//! Memory is modelled by types. If every use of a static byte array without an initial value converts its address to a pointer to one structure type,
//! nothing accesses the bytes, and the array is laid out as that structure: with as many elements of a flexible array member, or as many structures,
//! as it has room for. On x86-64 an array of 16 bytes or more is aligned to 16 bytes, so it is aligned for the structure.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::RecordId;
use fencewright_c::typed::tree::{
    AssemblyInput, Expr, ExprKind, GlobalId, Place, PlaceKind, StatementKind, Step, Type, TypeKind, Unit,
};
use fencewright_code::core::{Known, ObjectId};
use fencewright_code::numbers::Operand;
use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::graph::{Part, root, walk_block, walk_initial};
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// Arrays of at least this many bytes are aligned to this many bytes.
const ALIGNED: u64 = 16;

/// The uses of a variable.
#[derive(Debug, Default)]
struct Uses {
    all: usize,
    /// Conversions of its address to pointers to this structure.
    converted: usize,
    record: Option<RecordId>,
}

/// For each byte array that serves as memory for a structure, the type with which it is laid out.
pub(super) fn types(unit: &Unit) -> FxHashMap<GlobalId, Type> {
    let mut uses: FxHashMap<GlobalId, Uses> = FxHashMap::default();
    let mut visit = |part: Part<'_>| match part {
        Part::Statement(statement) => {
            if let StatementKind::Assembly(assembly) = &statement.kind {
                let outputs = assembly.outputs.iter().map(|(_, place)| place);
                let inputs = assembly.inputs.iter().filter_map(|(_, input)| match input {
                    AssemblyInput::Memory(place) => Some(place),
                    AssemblyInput::Value(_) => None,
                });
                outputs
                    .chain(inputs)
                    .filter_map(root)
                    .for_each(|global| uses.entry(global).or_default().all += 1);
            }
        }
        Part::Expr(expr) => note(expr, &mut uses),
    };
    unit.functions.iter().for_each(|function| walk_block(&function.body, &mut visit));
    let initials = unit.globals.iter().filter_map(|global| global.initial.as_ref());
    initials.for_each(|initial| walk_initial(initial, &mut visit));
    let found = uses.into_iter().filter(|(_, uses)| uses.all == uses.converted);
    found.filter_map(|(global, uses)| Some((global, laid_out(unit, global, uses.record?)?))).collect()
}

/// Adds the uses of variables in an expression, without its parts.
fn note(expr: &Expr, uses: &mut FxHashMap<GlobalId, Uses>) {
    match &expr.kind {
        ExprKind::Load(place) | ExprKind::Address(place) | ExprKind::Assign(place, _) => {
            root(place).into_iter().for_each(|global| uses.entry(global).or_default().all += 1);
        }
        ExprKind::Modify { place, .. } => {
            root(place).into_iter().for_each(|global| uses.entry(global).or_default().all += 1);
        }
        ExprKind::Convert(inner) => {
            if let (Some(global), Some(record)) = (start_of_array(inner), structure(&expr.ty)) {
                let uses = uses.entry(global).or_default();
                if *uses.record.get_or_insert(record) == record {
                    uses.converted += 1;
                }
            }
        }
        _ => {}
    }
}

/// The structure that a pointer type points to.
fn structure(ty: &Type) -> Option<RecordId> {
    match &ty.pointee()?.kind {
        TypeKind::Record(record) => Some(*record),
        _ => None,
    }
}

/// The array with static storage of which an expression is the address of the first element.
fn start_of_array(expr: &Expr) -> Option<GlobalId> {
    let ExprKind::Address(place) = &expr.kind else { return None };
    let PlaceKind::Element(of, index) = &place.kind else { return None };
    let Place { kind: PlaceKind::Global(global), .. } = &**of else { return None };
    matches!(index.kind, ExprKind::Constant(0)).then_some(*global)
}

/// The type with which a byte array is laid out as memory for structures of this type; `None` if that is not possible.
fn laid_out(unit: &Unit, global: GlobalId, record: RecordId) -> Option<Type> {
    let variable = &unit.globals[global.index()];
    let TypeKind::Array(element, bytes) = &variable.ty.kind else { return None };
    let is_byte =
        matches!(element.kind, TypeKind::Integer(ty) if ty.greatest() <= 255 && ty != Arithmetic::Bool);
    let is_plain =
        !variable.thread_local && variable.initial.is_none() && !element.atomic && !element.volatile;
    let structure = &unit.records[record.0 as usize];
    let is_aligned = *bytes >= ALIGNED && structure.align <= ALIGNED;
    let fits = structure.size > 0 && structure.size <= *bytes && is_aligned;
    if !is_byte || !is_plain || variable.error.is_some() || !fits {
        return None;
    }
    let ty = Type { kind: TypeKind::Record(record), atomic: false, volatile: false };
    let is_open = structure.fields.last().is_some_and(|last| matches!(last.ty.kind, TypeKind::Array(_, 0)));
    match bytes / structure.size {
        several @ 2.. if !is_open => {
            Some(Type { kind: TypeKind::Array(ty.into(), several), atomic: false, volatile: false })
        }
        _ => Some(ty),
    }
}

impl Elaborator<'_> {
    /// The address of a byte array that is laid out as a structure; `None` for other expressions.
    pub(super) fn raw_memory(&mut self, address: &Expr, span: Span) -> Result<Option<Operand>> {
        let Some(global) = start_of_array(address) else { return Ok(None) };
        let graph = self.graph;
        let (way, ty) = match graph.raw(global) {
            Some(Type { kind: TypeKind::Array(element, _), .. }) => {
                (vec![Step::Element(0)], (**element).clone())
            }
            Some(ty) => (Vec::new(), ty.clone()),
            None => return Ok(None),
        };
        let object = self.global(global)?;
        let location = self.location(object, &way);
        self.address(&Target::new(Spot::Memory(location), ty), span).map(Some)
    }

    /// Gives a byte array that is laid out as a structure its flexible array member: an initial value for the last element there is room for.
    pub(super) fn open_raw(&mut self, object: ObjectId, global: GlobalId, span: Span) -> Result<()> {
        let Some(ty) = self.graph.raw(global).cloned() else { return Ok(()) };
        let (Some((start, element)), TypeKind::Record(record)) = (self.open_array(&ty), &ty.kind) else {
            return Ok(());
        };
        let bytes = self.size(&self.unit.globals[global.index()].ty);
        let Some(last) = (bytes.saturating_sub(start) / self.size(&element).max(1)).checked_sub(1) else {
            return Ok(());
        };
        let member = self.unit.records[record.0 as usize].fields.len() - 1;
        let first = self.scalars(&element, span)?.into_iter().next().unwrap_or_default();
        let way = [Step::Field(member as u32), Step::Element(last)].into_iter().chain(first).collect();
        self.objects[object.0 as usize].initial.push((way, Known::Number(0)));
        Ok(())
    }
}
