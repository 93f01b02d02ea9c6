//! Removes stores to local variables that no statement reads and whose addresses no statement takes. The value of such a store may be one that the
//! model does not have, such as the low half of an address.

use fencewright_text::Stop;

use crate::core::{
    Base, Core, Known, Location, ObjectEvent, ObjectId, Origin, Projection, Purpose, Stmt, StmtKind, Value,
    each_place, each_statement,
};

/// Removes the stores. Returns whether there were any.
pub(super) fn remove(core: &mut Core, stop: &Stop<'_>) -> bool {
    let is_local = |origin, purpose| matches!((origin, purpose), (Origin::Local(_), Purpose::Program));
    let mut used: Vec<bool> =
        core.objects.iter().map(|object| !is_local(object.origin, object.purpose)).collect();
    for (_, known) in core.objects.iter().flat_map(|object| &object.initial) {
        if let Known::Address(target, _) = known {
            used[target.0 as usize] = true;
        }
    }
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| mark(&statement.kind, &mut used));
    }
    let mut removed = false;
    for thread in &mut core.threads {
        removed |= remove_from(&mut thread.code, &used, stop);
    }
    removed
}

/// Marks the objects that a statement uses other than by storing to them.
fn mark(kind: &StmtKind, used: &mut [bool]) {
    // `each_place` visits the place of a store first.
    let mut is_stored = stored(kind).is_some();
    each_place(kind, &mut |place| {
        if let Base::Object(object) = place.base
            && !std::mem::take(&mut is_stored)
        {
            used[object.0 as usize] = true;
        }
    });
    if let StmtKind::Special(ObjectEvent::Take(object) | ObjectEvent::Follow(object)) = kind {
        used[object.0 as usize] = true;
    }
}

/// The object to which a statement stores, if that needs no check: the place is certainly within the object, and so are the places whose addresses
/// occur in the value; and the value is computed from no register, whose value may be undefined, but may be a copy of one.
fn stored(kind: &StmtKind) -> Option<ObjectId> {
    let StmtKind::Store(place, value, _) = kind else { return None };
    let mut needs_check = false;
    value.each(&mut |part| {
        needs_check |= match part {
            Value::Address(place) => certain(place).is_none(),
            Value::Register(_) => !matches!(value, Value::Register(_)),
            Value::Move(..) | Value::Difference(..) | Value::Container { .. } => true,
            _ => false,
        };
    });
    certain(place).filter(|_| !needs_check)
}

/// The object of a place that is certainly within it.
fn certain(place: &Location) -> Option<ObjectId> {
    let Base::Object(object) = place.base else { return None };
    let is_within = |part: &Projection| match part {
        Projection::Field(_) => true,
        Projection::Element(Value::Number(index), length) => {
            u64::try_from(*index).is_ok_and(|index| index < *length)
        }
        Projection::Element(..) => false,
    };
    place.path.iter().all(is_within).then_some(object)
}

fn remove_from(code: &mut Vec<Stmt>, used: &[bool], stop: &Stop<'_>) -> bool {
    let before = code.len();
    code.retain(|statement| stored(&statement.kind).is_none_or(|object| used[object.0 as usize]));
    let mut removed = code.len() < before;
    for statement in stop.polled(code) {
        for block in statement.kind.blocks_mut() {
            removed |= remove_from(block, used, stop);
        }
    }
    removed
}
