//! The memory layout for reports: which object and which part of it each number of a class stands for.

use std::collections::BTreeMap;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::Rank;
use fencewright_c::typed::tree::{Type, TypeKind};
use fencewright_front_end::facts::{Memory, Mistake, Object, Part, Places, Storage};

use crate::core::{Core, ObjectId, Origin};
use crate::flat::Mark;
use crate::layout::classes::{Class, Layout, Placement};
use crate::nodes::Nodes;

/// Collects the memory layout of a program.
pub(crate) fn memory(
    core: &Core,
    nodes: &Nodes,
    layout: &Layout,
    variables: BTreeMap<String, usize>,
    mistakes: Vec<Mistake>,
    marks: BTreeMap<(usize, Mark), Vec<(String, String)>>,
) -> Memory {
    let objects = (0..core.objects.len()).map(|n| object(core, nodes, layout, ObjectId(n as u32))).collect();
    let places = layout.classes.iter().map(|class| places(layout, class)).enumerate().collect();
    let (mut freed, mut passed) = (BTreeMap::new(), BTreeMap::new());
    for ((class, mark), arrays) in marks {
        match mark {
            Mark::Freed => freed.insert(class, arrays),
            Mark::Passed => passed.insert(class, arrays),
        };
    }
    Memory { objects, places, variables, mistakes, freed, passed }
}

fn object(core: &Core, nodes: &Nodes, layout: &Layout, id: ObjectId) -> Object {
    let object = &core.objects[id.0 as usize];
    let (storage, name) = match object.origin {
        Origin::Global => (Storage::Static, Some(object.name.clone())),
        Origin::Local(_) => (Storage::Local, Some(object.name.clone())),
        Origin::Heap { .. } => (Storage::Heap, None),
    };
    let ty = object.ty.as_ref().or_else(|| nodes.type_of(object.node));
    let ty = ty.map_or_else(|| "memory".to_string(), |ty| type_in_words(ty, nodes));
    Object { name, ty, storage, times: layout.placed(id).times, span: object.span }
}

fn places(layout: &Layout, class: &Class) -> Places {
    let part = |place: &Option<Placement>| {
        let place = (*place)?;
        let placed = layout.placed(place.object);
        let mark = (placed.class, placed.first + place.time as i64 * placed.stride);
        Some(Part { object: place.object.0 as usize, time: place.time, mark })
    };
    Places { first: class.first, parts: class.places.iter().map(part).collect() }
}

fn record_in_words(nodes: &Nodes, record: fencewright_c::ast::RecordId) -> String {
    let structure = nodes.structure(record);
    format!("{} {}", if structure.union { "union" } else { "struct" }, structure.name)
}

/// A type in C notation, except that the lengths of arrays come after the type.
fn type_in_words(ty: &Type, nodes: &Nodes) -> String {
    match &ty.kind {
        TypeKind::Void => "void".to_string(),
        TypeKind::Integer(Arithmetic::Bool) => "_Bool".to_string(),
        TypeKind::Integer(Arithmetic::Integer(integer)) => {
            let name = match integer.rank {
                Rank::Char => "char",
                Rank::Short => "short",
                Rank::Int => "int",
                Rank::Long => "long",
                Rank::LongLong => "long long",
            };
            format!("{}{name}", if integer.signed { "" } else { "unsigned " })
        }
        TypeKind::Floating(4) => "float".to_string(),
        TypeKind::Floating(_) => "double".to_string(),
        TypeKind::Pointer(to) => {
            let to = type_in_words(to, nodes);
            format!("{to}{}*", if to.ends_with('*') { "" } else { " " })
        }
        TypeKind::Array(of, length) => format!("{}[{length}]", type_in_words(of, nodes)),
        TypeKind::Record(record) => record_in_words(nodes, *record),
        TypeKind::Function(_) => "a function".to_string(),
    }
}
