//! Promotion of private variables: a scalar variable that only one thread accesses and whose address is not taken becomes a register of that thread.
//! Also finds shared variables with a single writer.

use fencewright_c::typed::tree::TypeKind;
use fencewright_text::Stop;
use rustc_hash::FxHashMap;

use crate::core::{
    About, Base, Core, Known, Location, Object, ObjectEvent, ObjectId, Origin, Register, RegisterInfo, Stmt,
    StmtKind, Value, each_place, each_statement,
};
use crate::nodes::Nodes;

/// The accesses to a variable seen so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// No access.
    Unused,
    /// Only this thread loads and stores the variable.
    Private(usize),
    /// The variable stays in memory.
    Memory,
}

/// Promotes private variables to registers. Returns whether any variable was promoted.
pub(super) fn promote(core: &mut Core, nodes: &Nodes, stop: &Stop<'_>) -> bool {
    let mut roles: Vec<Role> =
        core.objects.iter().map(|object| role(&object.origin, object.ty.as_ref())).collect();
    for (n, object) in core.objects.iter().enumerate() {
        for (_, known) in &object.initial {
            match known {
                Known::Number(_) | Known::Undefined => continue,
                Known::Address(target, _) => roles[target.0 as usize] = Role::Memory,
                Known::Function(_) => {}
            }
            // Only numbers can be initial values of registers, so this variable stays in memory.
            roles[n] = Role::Memory;
        }
    }
    for (number, thread) in core.threads.iter().enumerate() {
        each_statement(&thread.code, stop, &mut |statement| uses(&statement.kind, number, &mut roles));
    }
    let mut homes: Vec<FxHashMap<ObjectId, Register>> = vec![FxHashMap::default(); core.threads.len()];
    for (n, object) in core.objects.iter().enumerate() {
        let Role::Private(number) = roles[n] else { continue };
        let registers = &mut core.threads[number].registers;
        homes[number].insert(ObjectId(n as u32), Register(registers.len() as u32));
        let points = nodes.pointee_of(object.node);
        let pointer = object.ty.as_ref().is_some_and(|ty| matches!(ty.kind, TypeKind::Pointer(_)));
        let about = About { variable: object.purpose.is_of_program(), pointer };
        registers.push(RegisterInfo { name: object.name.clone(), initial: initial(object), points, about });
    }
    for (thread, homes) in core.threads.iter_mut().zip(&homes) {
        if !homes.is_empty() {
            rewrite(&mut thread.code, homes, stop);
        }
    }
    homes.iter().any(|homes| !homes.is_empty())
}

fn role(origin: &Origin, ty: Option<&fencewright_c::typed::tree::Type>) -> Role {
    let scalar = ty.is_some_and(|ty| matches!(ty.kind, TypeKind::Integer(_) | TypeKind::Pointer(_)));
    match origin {
        Origin::Global | Origin::Local(_) if scalar => Role::Unused,
        _ => Role::Memory,
    }
}

fn uses(kind: &StmtKind, thread: usize, roles: &mut [Role]) {
    // Every occurrence of a variable keeps the variable in memory, unless it is the place of a load or store of the whole variable.
    let direct = match kind {
        StmtKind::Load(_, place, _) | StmtKind::Store(place, ..) => place.whole(),
        _ => None,
    };
    let mut mentions = Vec::new();
    each_place(kind, &mut |place| {
        if let Base::Object(object) = place.base {
            mentions.push(object);
        }
    });
    if let Some(object) = direct {
        // `each_place` visits the accessed place first; this access does not keep the variable in memory.
        mentions.remove(0);
        let role = &mut roles[object.0 as usize];
        *role = match *role {
            Role::Unused => Role::Private(thread),
            Role::Private(other) if other == thread => Role::Private(thread),
            _ => Role::Memory,
        };
    }
    // The lifetime of this variable is checked. Lifetimes are checked only for variables in memory, so the variable must stay in memory.
    if let StmtKind::Special(ObjectEvent::Follow(object)) = kind {
        mentions.push(*object);
    }
    for object in mentions {
        roles[object.0 as usize] = Role::Memory;
    }
}

fn rewrite(code: &mut Vec<Stmt>, homes: &FxHashMap<ObjectId, Register>, stop: &Stop<'_>) {
    let home = |place: &Location| place.whole().and_then(|object| homes.get(&object).copied());
    // There are no pointers to a promoted variable, so its lifetime does not matter.
    code.retain(|statement| match &statement.kind {
        StmtKind::Special(ObjectEvent::End(object)) | StmtKind::Special(ObjectEvent::Take(object)) => {
            !homes.contains_key(object)
        }
        _ => true,
    });
    for statement in stop.polled(code) {
        match &mut statement.kind {
            StmtKind::Load(register, place, _) => {
                if let Some(home) = home(place) {
                    statement.kind = StmtKind::Assign(*register, Value::Register(home));
                }
            }
            StmtKind::Store(place, value, _) => {
                if let Some(home) = home(place) {
                    let value = std::mem::replace(value, Value::Number(0));
                    statement.kind = StmtKind::Assign(home, value);
                }
            }
            StmtKind::Special(ObjectEvent::Begin(object)) => {
                if let Some(home) = homes.get(object) {
                    statement.kind = StmtKind::Special(ObjectEvent::Undefined(*home));
                }
            }
            kind => kind.blocks_mut().for_each(|block| rewrite(block, homes, stop)),
        }
    }
}

/// The writers of a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Nobody,
    Thread(usize),
    /// Several threads, or any thread through a pointer.
    Anybody,
}

/// For each thread, the variables that no other thread writes, with their initial values where these are defined.
pub(super) fn own_variables(core: &Core, stop: &Stop<'_>) -> Vec<Vec<(ObjectId, Option<i64>)>> {
    let mut writers: Vec<Writer> = core
        .objects
        .iter()
        .map(|object| match role(&object.origin, object.ty.as_ref()) {
            Role::Memory => Writer::Anybody,
            _ => Writer::Nobody,
        })
        .collect();
    for (_, known) in core.objects.iter().flat_map(|object| &object.initial) {
        if let Known::Address(target, _) = known {
            writers[target.0 as usize] = Writer::Anybody;
        }
    }
    for (number, thread) in core.threads.iter().enumerate() {
        each_statement(&thread.code, stop, &mut |statement| writes(&statement.kind, number, &mut writers));
    }
    let variables = |thread: usize| {
        let own = |n: &usize| matches!(writers[*n], Writer::Nobody) || writers[*n] == Writer::Thread(thread);
        let all = (0..core.objects.len()).filter(own);
        all.map(|n| (ObjectId(n as u32), initial(&core.objects[n]))).collect()
    };
    (0..core.threads.len()).map(variables).collect()
}

fn writes(kind: &StmtKind, thread: usize, writers: &mut [Writer]) {
    let mut mentions = Vec::new();
    each_place(kind, &mut |place| {
        if let Base::Object(object) = place.base {
            mentions.push(object);
        }
    });
    // `each_place` visits the accessed place first; the access itself does not take the address of the variable.
    let (accessed, writing) = match kind {
        StmtKind::Load(_, place, _) | StmtKind::Await { place, .. } => (place.whole(), false),
        StmtKind::Store(place, ..) | StmtKind::Update { place, .. } => (place.whole(), true),
        _ => (None, false),
    };
    if let Some(object) = accessed {
        mentions.remove(0);
        let writer = &mut writers[object.0 as usize];
        if writing && *writer != Writer::Thread(thread) {
            *writer = if *writer == Writer::Nobody { Writer::Thread(thread) } else { Writer::Anybody };
        }
    }
    if let StmtKind::Special(ObjectEvent::Begin(object)) = kind {
        let writer = &mut writers[object.0 as usize];
        if *writer != Writer::Thread(thread) {
            *writer = if *writer == Writer::Nobody { Writer::Thread(thread) } else { Writer::Anybody };
        }
    }
    for object in mentions {
        writers[object.0 as usize] = Writer::Anybody;
    }
}

/// The initial value of a variable, if it is a number.
fn initial(object: &Object) -> Option<i64> {
    match object.initial.first() {
        Some((_, Known::Number(number))) => Some(*number),
        None if !object.undefined => Some(0),
        _ => None,
    }
}
