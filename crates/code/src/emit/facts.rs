//! Facts for reports: the object that contains each place of each class (a class is a variable of the emitted program), the threads, and the C
//! variables that registers represent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::Rank;
use fencewright_c::typed::tree::{Step, Type, TypeKind};
use fencewright_front_end::facts::{Facts, Holds, Kind, Memory, Object, Part, Places, Role, Start, Storage};
use fencewright_text::Sources;

use crate::core::{Core, Known, ObjectId, Origin, Purpose, function_number};
use crate::emit::Vocabulary;
use crate::emit::property::Evidence;
use crate::flat::{Mark, Program, UNDEFINED};
use crate::layout::classes::{Class, Layout, Part as PartOf, Placement};
use crate::nodes::{Member, Nodes, Shape};

/// Maximum number of places whose path from their object is recorded.
const MOST_PATHS: usize = 1 << 16;
/// The member of the locks in model headers that holds the number of the thread that holds the lock.
const OWNER: &str = "__owner";
/// The noun for allocated memory whose type is not a structure with a name.
const MEMORY: &str = "memory";

/// A program at the stages of its translation.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub core: &'a Core,
    pub nodes: &'a Nodes,
    pub layout: &'a Layout,
    pub program: &'a Program,
    pub sources: &'a Sources,
}

/// Collects the facts about a program; `threads` are the names of its threads.
pub(crate) fn facts(
    Inputs { core, nodes, layout, program, sources }: Inputs<'_>,
    vocabulary: Vocabulary,
    threads: Vec<String>,
    evidence: Evidence,
) -> Facts {
    let Evidence { mistakes, marks, exits, mut registers, .. } = evidence;
    let (mut freed, mut passed) = (BTreeMap::new(), BTreeMap::new());
    for ((class, mark), arrays) in marks {
        match mark {
            Mark::Freed => freed.insert(class, arrays),
            Mark::Passed => passed.insert(class, arrays),
        };
    }
    let (mut paths, holders) = paths(core, nodes, layout, sources);
    for register in registers.values_mut() {
        if matches!(register.holds, Holds::Place(class, _) if holders[class]) {
            register.kind = Kind::Holder;
        }
    }
    let contents = |class| match holders[class] {
        true => Kind::Holder,
        false => layout.contents(class, core, nodes),
    };
    let contents = (0..layout.classes.len()).map(|class| (class, contents(class)));
    let functions = core.functions.iter().enumerate();
    let memory = Memory {
        objects: objects(core, nodes, layout, &threads),
        places: layout
            .classes
            .iter()
            .enumerate()
            .map(|(n, class)| (n, places(layout, class, std::mem::take(&mut paths[n]))))
            .collect(),
        variables: vocabulary.variables.into_iter().map(|(class, name)| (name, class)).collect(),
        contents: contents.filter(|(_, kind)| *kind != Kind::Number).collect(),
        roles: roles(core, nodes, layout, &threads),
        functions: functions.map(|(n, name)| (function_number(n as u32), name.clone())).collect(),
        mistakes,
        freed,
        passed,
    };
    let start = |(n, thread): (usize, &crate::core::Thread)| Start {
        thread: threads[n].clone(),
        function: thread.function.clone(),
        creator: thread.creator.map(|creator| threads[creator.0 as usize].clone()),
        initial: thread.started.is_none(),
        span: program.threads[n].span,
    };
    Facts {
        memory,
        undefined: Some(UNDEFINED),
        ends: vocabulary.beyond.into_iter().map(|(reason, name)| (name, reason)).collect(),
        exits,
        threads: core.threads.iter().enumerate().map(start).collect(),
        registers,
        own_labels: true,
        steps: Vec::new(),
        late_stores: layout.has_late_stores(),
        assumed: core.assumed.clone(),
    }
}

/// All objects with their nouns. Of the objects that the program uses, several with the same noun and the same owner are numbered, variables
/// separately from allocations, and so is an allocation with the noun of a variable. A local variable names its thread if a global variable or one of
/// another thread has the same noun.
fn objects(core: &Core, nodes: &Nodes, layout: &Layout, threads: &[String]) -> Vec<Object> {
    let ids = || (0..core.objects.len() as u32).map(ObjectId);
    let nouns: Vec<String> = ids().map(|id| noun(core, nodes, id)).collect();
    let owner = |id: ObjectId| match core.objects[id.0 as usize].origin {
        Origin::Local(thread) => threads.get(thread.0 as usize),
        _ => None,
    };
    let is_heap = |id: ObjectId| matches!(core.objects[id.0 as usize].origin, Origin::Heap { .. });
    let mut by_noun: HashMap<(&str, bool), HashMap<Option<&String>, u64>> = HashMap::new();
    let mut number = vec![0; nouns.len()];
    for id in ids().filter(|id| is_used(core, layout, *id)) {
        let noun = (nouns[id.0 as usize].as_str(), is_heap(id));
        let count = by_noun.entry(noun).or_default().entry(owner(id)).or_default();
        number[id.0 as usize] = *count + 1;
        *count += layout.placed(id).times;
    }
    ids()
        .map(|id| {
            let object = &core.objects[id.0 as usize];
            let noun = nouns[id.0 as usize].clone();
            let (storage, name) = match object.origin {
                Origin::Global => (Storage::Static, Some(object.name.clone())),
                Origin::Local(_) => (Storage::Local, Some(object.name.clone())),
                Origin::Heap { .. } => (Storage::Heap, None),
            };
            let ty = object.ty.as_ref().or_else(|| nodes.type_of(object.node));
            let ty = ty.map_or_else(|| MEMORY.to_string(), |ty| type_in_words(ty, nodes));
            let owners = by_noun.get(&(noun.as_str(), is_heap(id)));
            let several = owners.and_then(|owners| owners.get(&owner(id))).is_some_and(|count| *count > 1)
                // An allocation with the same noun as a variable gets a number even if it is the only such allocation.
                || is_heap(id) && by_noun.contains_key(&(noun.as_str(), false));
            Object {
                name,
                ty,
                literal: (object.purpose == Purpose::Literal).then(|| literal(object)),
                storage,
                times: layout.placed(id).times,
                span: object.span,
                number: Some(number[id.0 as usize]).filter(|number| several && *number > 0),
                owner: owner(id).filter(|_| owners.is_some_and(|owners| owners.len() > 1)).cloned(),
                noun,
            }
        })
        .collect()
}

/// The text of a string literal, without its zero bytes.
fn literal(object: &crate::core::Object) -> String {
    let bytes = object.initial.iter().filter_map(|(_, known)| match known {
        Known::Number(byte) => Some(*byte as u8),
        _ => None,
    });
    String::from_utf8_lossy(&bytes.filter(|byte| *byte != 0).collect::<Vec<u8>>()).into_owned()
}

/// The noun of an object: its name; for an allocation the tag of its structure, or [`MEMORY`].
fn noun(core: &Core, nodes: &Nodes, id: ObjectId) -> String {
    let object = &core.objects[id.0 as usize];
    if !matches!(object.origin, Origin::Heap { .. }) {
        return object.name.clone();
    }
    match nodes.shape_of(object.node) {
        Shape::Record(record, _) if !is_anonymous(&nodes.structure(*record).name) => {
            nodes.structure(*record).name.to_string()
        }
        _ => MEMORY.to_string(),
    }
}

/// Whether the name of a structure or member was generated.
fn is_anonymous(name: &str) -> bool {
    name.strip_prefix("anonymous").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether an object of the source program is accessed or has its address taken.
fn is_used(core: &Core, layout: &Layout, id: ObjectId) -> bool {
    let used = |class: &usize| {
        let used = &layout.classes[*class].used;
        used.addressed || !used.accessed_by.is_empty()
    };
    core.objects[id.0 as usize].purpose.is_of_program() && classes_of(layout, id).iter().any(used)
}

/// The classes of an object and all its parts.
fn classes_of(layout: &Layout, id: ObjectId) -> BTreeSet<usize> {
    let (mut classes, mut open) = (BTreeSet::new(), vec![layout.placed(id).class]);
    while let Some(class) = open.pop() {
        if classes.insert(class) {
            open.extend(layout.classes[class].parts.values().map(|(inner, ..)| *inner));
        }
    }
    classes
}

/// The purposes of places that the translation added.
fn roles(core: &Core, nodes: &Nodes, layout: &Layout, threads: &[String]) -> BTreeMap<(usize, i64), Role> {
    let mut roles = BTreeMap::new();
    for (id, object) in (0..).map(ObjectId).zip(&core.objects) {
        let end = |thread: usize| threads.get(thread).map(|name| Role::End(name.clone()));
        match object.purpose {
            Purpose::Program | Purpose::Literal | Purpose::Stack => {}
            Purpose::Ended(thread) => {
                roles.extend(layout.locate(nodes, id, &[]).zip(end(thread.0 as usize)));
            }
            Purpose::AllEnded => roles.extend(
                (0..threads.len())
                    .filter_map(|n| layout.locate(nodes, id, &[Step::Element(n as u64)]).zip(end(n))),
            ),
            Purpose::Translation => {
                for class in classes_of(layout, id) {
                    let of = &layout.classes[class];
                    let own = (of.first..)
                        .zip(&of.places)
                        .filter(|(_, place)| place.is_some_and(|place| place.object == id));
                    roles.extend(own.map(|(number, _)| ((class, number), Role::Other)));
                }
            }
        }
    }
    for (n, class) in layout.classes.iter().enumerate().filter(|(n, _)| layout.says_what_is_returned(*n)) {
        let numbers = class.first..class.first + class.places.len() as i64;
        roles.extend(numbers.map(|number| ((n, number), Role::Other)));
    }
    for (n, thread) in core.threads.iter().enumerate() {
        let Some(cell) = thread.started.and_then(|id| layout.locate(nodes, id, &[])) else { continue };
        match roles.get_mut(&cell) {
            Some(Role::Start(together)) => together.push(threads[n].clone()),
            _ => {
                roles.insert(cell, Role::Start(vec![threads[n].clone()]));
            }
        }
    }
    roles
}

/// For each class, the paths to its places from the objects that contain them, and whether its places hold the numbers of threads that hold locks.
fn paths(core: &Core, nodes: &Nodes, layout: &Layout, sources: &Sources) -> (Vec<Vec<String>>, Vec<bool>) {
    let mut owners = vec![0; layout.classes.len()];
    let mut paths: Vec<Vec<String>> =
        layout.classes.iter().map(|class| vec![String::new(); class.places.len()]).collect();
    let mut open: Vec<(usize, i64, String)> = Vec::new();
    for id in (0..core.objects.len() as u32).map(ObjectId) {
        let placed = layout.placed(id);
        let several = placed.elements > 1;
        for time in 0..placed.times.min(MOST_PATHS as u64) as i64 {
            for element in 0..placed.elements.min(layout.classes[placed.class].places.len() as u64) as i64 {
                let path = if several { format!("[{element}]") } else { String::new() };
                let number = placed.first.saturating_add(time.saturating_mul(placed.stride));
                open.push((placed.class, number.saturating_add(element), path));
            }
            if open.len() > MOST_PATHS {
                break;
            }
        }
    }
    let mut written = 0;
    while let Some((class, number, path)) = open.pop() {
        let of = &layout.classes[class];
        let Some(place) = usize::try_from(number - of.first).ok().and_then(|n| paths[class].get_mut(n))
        else {
            continue;
        };
        written += 1;
        if written > MOST_PATHS {
            break;
        }
        let shape = of.node.map(|node| nodes.shape_of(node));
        for (&part, &(inner, width, base)) in &of.parts {
            let start = (number - of.first) * width + base;
            match (part, shape) {
                (PartOf::Field(field), Some(Shape::Record(record, _))) => {
                    let fields = &nodes.structure(*record).fields;
                    let Member { name, span, .. } = &fields[field as usize];
                    let member = match name.strip_prefix("__").filter(|_| sources.is_built_in(span.file)) {
                        // In a path, the name of a lock denotes its holder, and the name of an object of a model header with a single member denotes
                        // that member.
                        Some(_) if **name == *OWNER || fields.len() == 1 => String::new(),
                        Some(own) => format!(".{own}"),
                        None if is_anonymous(name) => String::new(),
                        None => format!(".{name}"),
                    };
                    owners[inner] += usize::from(**name == *OWNER && sources.is_built_in(span.file));
                    open.push((inner, start, format!("{path}{member}")));
                }
                (PartOf::Elements, Some(Shape::Array(length, _))) => {
                    let length =
                        of.laid.unwrap_or(*length).min(layout.classes[inner].places.len() as u64) as i64;
                    open.extend((0..length).map(|n| (inner, start + n, format!("{path}[{n}]"))));
                }
                _ => {}
            }
        }
        *place = path;
    }
    let is_holder =
        |(class, owners): (&Class, usize)| owners > 0 && owners == class.places.iter().flatten().count();
    (paths, layout.classes.iter().zip(owners).map(is_holder).collect())
}

fn places(layout: &Layout, class: &Class, paths: Vec<String>) -> Places {
    let part = |place: &Option<Placement>| {
        let place = (*place)?;
        let placed = layout.placed(place.object);
        let mark = (placed.class, placed.first + place.time as i64 * placed.stride);
        Some(Part { object: place.object.0 as usize, time: place.time, mark })
    };
    Places { first: class.first, parts: class.places.iter().map(part).collect(), paths }
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
