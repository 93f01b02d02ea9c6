//! Points-to analysis (Steensgaard): unifies the nodes that pointers may point to. It runs after dead code is removed, on the statements that are
//! left.

use std::collections::BTreeSet;

use fencewright_text::{Diagnostic, Stop};

use crate::core::{
    Base, Core, Known, LOWEST_ADDRESS, NodeId, ObjectEvent, Points, Register, StmtKind, Strangers,
    ThreadNumber, Value, each_place, each_statement,
};
use crate::layout::containers;
use crate::nodes::{Nodes, Scalar, Shape};

/// The functions that the values of some registers may point to: for each register a superset, by numbers of functions; `None` if the value may be
/// any number. The whole result is `None` if two uses of some memory clash, because unification then stops.
pub fn functions(
    core: &Core,
    nodes: &Nodes,
    pointers: &[(ThreadNumber, Register)],
    stop: &Stop<'_>,
) -> Option<Vec<Option<BTreeSet<u32>>>> {
    let mut nodes = nodes.clone();
    unify(core, &mut nodes, stop).ok()?;
    let of = |&(thread, register): &(ThreadNumber, Register)| {
        let points = core.threads[thread.0 as usize].registers[register.0 as usize].points?;
        let strangers = nodes.strangers(points);
        let number = |function: &i64| u32::try_from(function - LOWEST_ADDRESS).ok();
        (!strangers.computed).then(|| strangers.functions.iter().filter_map(number).collect())
    };
    Some(pointers.iter().map(of).collect())
}

/// Unifies the nodes of registers and of dereferenced pointers with those that their values may point to, and the nodes of structures that the same
/// `container_of` may return. Also records the numbers, other than addresses of objects, that occur where pointers are expected.
pub fn unify(core: &Core, nodes: &mut Nodes, stop: &Stop<'_>) -> Result<(), Vec<Diagnostic>> {
    assignments(core, nodes, stop).map_err(|clash| vec![*clash])?;
    containers::unify(core, nodes, stop).map_err(|clash| clash.diagnostics().to_vec())?;
    // Only now do the objects have nodes for all members that the program uses: some are used only through the result of `container_of`.
    initial_strangers(core, nodes);
    Ok(())
}

/// Unifies the nodes of registers and of dereferenced pointers with those that their values may point to.
fn assignments(core: &Core, nodes: &mut Nodes, stop: &Stop<'_>) -> Result<(), Box<Diagnostic>> {
    let has_containers = has_containers(core, stop);
    for thread in &core.threads {
        let points = |register: Register| thread.registers[register.0 as usize].points;
        let mut result = Ok(());
        each_statement(&thread.code, stop, &mut |statement| {
            if result.is_err() {
                return;
            }
            let equal = equal_nodes(&statement.kind, core, nodes, &points);
            let clash = equal.into_iter().find_map(|(one, other)| nodes.unify(one, other).err());
            if let Some(clash) = clash {
                let diagnostic = Diagnostic::new(statement.span, clash.message()).help(clash.help());
                result = Err(Box::new(diagnostic));
            }
            mark_strangers(&statement.kind, has_containers, nodes, &points);
        });
        result?;
    }
    Ok(())
}

fn has_containers(core: &Core, stop: &Stop<'_>) -> bool {
    let mut found = false;
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| {
            statement.kind.values(&mut |value| {
                value.each(&mut |part| found |= matches!(part, Value::Container { .. }));
            });
        });
    }
    found
}

/// The pairs of nodes that have to be unified because of a statement.
fn equal_nodes(kind: &StmtKind, core: &Core, nodes: &mut Nodes, points: Points<'_>) -> Vec<(NodeId, NodeId)> {
    let mut equal = Vec::new();
    if let Some(into) = kind.writes().and_then(points) {
        let assigned = match kind {
            StmtKind::Assign(_, value) => value.pointed_to(points),
            StmtKind::Load(_, place, _) | StmtKind::Update { place, .. } | StmtKind::Await { place, .. } => {
                vec![nodes.pointee(place.node)]
            }
            StmtKind::Special(ObjectEvent::Allocate(_, object)) => {
                vec![core.objects[object.0 as usize].node]
            }
            _ => Vec::new(),
        };
        equal.extend(assigned.into_iter().map(|node| (into, node)));
    }
    // The stored value may contain an address: clean-up may have substituted the address for the register to which it was assigned.
    if let StmtKind::Store(place, value, _) | StmtKind::Update { place, new: value, .. } = kind
        && let Some(pointee) = nodes.pointee_of(place.node)
    {
        equal.extend(value.pointed_to(points).into_iter().map(|node| (pointee, node)));
    }
    let mut compared = Vec::new();
    let mut through = |pointer: &Value, node: NodeId| {
        equal.extend(pointer.pointed_to(points).into_iter().map(|other| (node, other)));
    };
    each_place(kind, &mut |place| {
        if let Base::Pointed(pointer, node) = &place.base {
            through(pointer, *node);
        }
    });
    kind.values(&mut |value| {
        value.each(&mut |part| match part {
            Value::Move(pointer, _, node) => through(pointer, *node),
            Value::Difference(one, other, node) => {
                [one, other].into_iter().for_each(|part| through(part, *node))
            }
            Value::Binary(op, one, other) if op.is_comparison() => {
                if let ([one], [other]) = (&one.pointed_to(points)[..], &other.pointed_to(points)[..]) {
                    compared.push((*one, *other));
                }
            }
            Value::Container { member, node, path, .. } => {
                if let Some(at) = nodes.at_path(*node, path) {
                    through(member, at);
                }
            }
            _ => {}
        });
    });
    if let StmtKind::Special(
        ObjectEvent::Free(pointer, node, _) | ObjectEvent::Retired { pointer, target: node, .. },
    ) = kind
    {
        through(pointer, *node);
    }
    equal.extend(compared);
    equal
}

/// Records the numbers, other than addresses of objects, that a statement stores in pointers or compares with pointers. No object to which such a
/// pointer may point gets one of these numbers as its address.
fn mark_strangers(kind: &StmtKind, has_containers: bool, nodes: &mut Nodes, points: Points<'_>) {
    let mut found = Vec::new();
    let into = match kind {
        StmtKind::Assign(register, value) => points(*register).map(|into| (into, value.strangers(points))),
        StmtKind::Havoc(register, ..) => points(*register).map(|into| (into, Strangers::computed())),
        StmtKind::Store(place, value, _) | StmtKind::Update { place, new: value, .. } => {
            let strangers = value.strangers(points);
            holder(nodes, place.node, &strangers).map(|into| (into, strangers))
        }
        _ => None,
    };
    found.extend(into);
    kind.values(&mut |value| {
        value.each(&mut |part| {
            if let Value::Binary(op, a, b) = part
                && op.is_comparison()
            {
                for (one, other) in [(a, b), (b, a)] {
                    let strangers = other.strangers(points);
                    let nodes = one.pointed_to(points).into_iter();
                    found.extend(nodes.map(|node| (node, strangers.clone())));
                }
            }
        });
    });
    // If the pointer is null, the address of a member is the member's offset. This number is not the address of an object, so it is recorded.
    kind.values(&mut |value| {
        value.each(&mut |part| {
            if let Value::Address(place) = part
                && let Base::Pointed(pointer, node) = &place.base
            {
                let offset = nodes.offset(*node, place.least_path());
                if let Value::Number(number) = **pointer
                    && let address = number.wrapping_add(offset as i64)
                    && address != 0
                {
                    found.push((place.node, Strangers::number(address)));
                }
                // The pointer may be `container_of` applied to null: minus the offset of a member, where the path to the member is a prefix of this
                // path. Then the address is the offset of the whole path minus that of the prefix.
                let starts = if has_containers { place.path.len() } else { 1 };
                for start in 0..starts {
                    let before = nodes.offset(*node, place.least_path().take(start));
                    if before != offset {
                        found.push((place.node, Strangers::number((offset - before) as i64)));
                    }
                }
            }
        });
    });
    found.iter().for_each(|(node, strangers)| nodes.mark_strangers(*node, strangers));
}

/// The target node of the pointers that places of a node hold, if the places are wide enough for pointers. The target node is created if there are
/// strangers to record, because the place may later be unified with a place that is read as a pointer.
fn holder(nodes: &mut Nodes, place: NodeId, strangers: &Strangers) -> Option<NodeId> {
    let is_wide = *nodes.shape_of(place) == Shape::Scalar(Scalar::Wide);
    if is_wide && *strangers != Strangers::default() {
        return Some(nodes.pointee(place));
    }
    nodes.pointee_of(place)
}

/// Records the numbers, other than addresses of objects, in the initial values of pointers.
fn initial_strangers(core: &Core, nodes: &mut Nodes) {
    for object in &core.objects {
        for (path, known) in &object.initial {
            let strangers = match known {
                Known::Number(number) => Strangers::number(*number),
                Known::Function(function) => Strangers::function(*function),
                Known::Address(..) | Known::Undefined => continue,
            };
            // The node of an allocation is that of one element, and the first step of the path may select an element. So the path is tried with and
            // without its first step.
            for path in [Some(path.as_slice()), path.get(1..)].into_iter().flatten() {
                let place = nodes.at_path(object.node, path);
                if let Some(points) = place.and_then(|place| holder(nodes, place, &strangers)) {
                    nodes.mark_strangers(points, &strangers);
                }
            }
        }
    }
}
