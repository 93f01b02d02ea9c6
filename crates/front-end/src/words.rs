//! Source names of the parts of a program, by the ids of the program: data for reports. No verdict depends on them.
//!
//! [`Facts`] use the names of the syntax tree; [`Words`] resolves them to ids once. The front end decides how a [`Meaning`] is written:
//! [`FrontEnd::word`](crate::FrontEnd::word).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fencewright_program::{Action, LocationId, Op, Program, RegisterId, Thread, ThreadId, VariableId};

use crate::facts::{About, Facts, Holds, Kind, Memory, Object, Role};

/// Facts about the source, as in `Facts`, but by the ids of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    /// The `open` arrays that the program reads where it leaves the modelled part of the language, each with the reason for the verdict `unknown`
    /// (see [`Facts::ends`]).
    pub ends: BTreeMap<VariableId, String>,
    /// The locations where threads stay after the end of the process.
    pub exits: BTreeSet<(ThreadId, LocationId)>,
    /// The edges, as source and target, on which a thread passes a memory check that the translation added, except the checks whether an object has
    /// been freed.
    pub checks: BTreeSet<(ThreadId, LocationId, LocationId)>,
    /// For each variable, the kind of the places that its cells represent, and the number of the first of these places.
    variables: HashMap<VariableId, (usize, i64)>,
    registers: HashMap<(ThreadId, RegisterId), Named>,
}

/// The facts about a register.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The entity that the register represents.
    pub holds: Holds,
    /// The interpretation of the register's values.
    pub kind: Kind,
}

/// The meaning of a value, or a place in memory, in terms of the source.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<'a> {
    /// A number.
    Number(i64),
    /// An uninitialised value.
    Undefined,
    /// The null pointer.
    Null,
    /// A pointer to a function.
    Function(&'a str),
    /// The value of a lock that no thread holds.
    Free,
    /// The value of a lock that this thread holds.
    Held(&'a str),
    /// A pointer to a place.
    Pointer(Spot<'a>),
    /// A pointer one past the last element of an array; the place is that element.
    Behind(Spot<'a>),
    /// A place in memory itself, not a pointer to it.
    Place(Spot<'a>),
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot<'a> {
    /// The object that the place is part of.
    pub object: &'a Object,
    /// A number, from 1, that distinguishes objects with the same noun; `None` if the noun is unique.
    pub number: Option<u64>,
    /// The path from the object to the place: `.next`, `[2]`.
    pub path: &'a str,
}

impl Words {
    /// Resolves the names in `facts`. Names that the program does not have are ignored.
    pub fn new(program: &Program, facts: &Facts) -> Self {
        let mut words = Words::default();
        let ids = (0..).map(VariableId).zip(&program.variables);
        for (id, variable) in ids {
            if let Some(reason) = facts.ends.get(&variable.name) {
                words.ends.insert(id, reason.clone());
            }
            if let Some(&kind) = facts.memory.variables.get(&variable.name)
                && let Some(places) = facts.memory.places.get(&kind)
            {
                words.variables.insert(id, (kind, places.first));
            }
        }
        for (id, thread) in program.threads() {
            for (location, at) in (0..).map(LocationId).zip(&thread.locations) {
                let is_exit =
                    facts.exits.iter().any(|(own, label)| *own == thread.name && at.labels.contains(label));
                if is_exit {
                    words.exits.insert((id, location));
                }
            }
            let checks = checks(facts, thread).into_iter().map(|(from, to)| (id, from, to));
            words.checks.extend(checks);
            for (register, info) in (0..).map(RegisterId).zip(&thread.registers) {
                if let Some(named) = named(facts, &thread.name, &info.name) {
                    words.registers.insert((id, register), named);
                }
            }
        }
        words
    }

    /// The facts about a register; `None` if the front end has none.
    pub fn register(&self, thread: ThreadId, register: RegisterId) -> Option<&Named> {
        self.registers.get(&(thread, register))
    }

    /// The place of a shared memory cell, as its kind (a key of `Memory::places`) and its number within the kind; `None` if no kind is known for the
    /// cell's variable.
    pub fn place(&self, program: &Program, cell: u32) -> Option<(usize, i64)> {
        let n = program.variables.partition_point(|variable| variable.base <= cell).checked_sub(1)?;
        let (kind, first) = *self.variables.get(&VariableId(n as u32))?;
        Some((kind, first + i64::from(cell - program.variables[n].base)))
    }
}

/// The edges, as source and target, on which a thread passes a memory check, except the checks whether an object has been freed. If a check fails, it
/// leads to the label of a mistake: directly or, if an undefined value decides a branch, through a location that chooses nondeterministically between
/// this label and other targets.
fn checks(facts: &Facts, thread: &Thread) -> Vec<(LocationId, LocationId)> {
    let touches = |about: &About| matches!(about, About::Access | About::FreeAgain);
    let mistakes = facts.memory.mistakes.iter().filter(|mistake| {
        mistake.thread == thread.name && !mistake.claims.iter().any(|claim| touches(&claim.about))
    });
    let labels: HashSet<&String> = mistakes.map(|mistake| &mistake.label).collect();
    if labels.is_empty() {
        return Vec::new();
    }
    let failed =
        |at: LocationId| thread.locations[at.index()].labels.iter().any(|label| labels.contains(label));
    let all = || (0..thread.locations.len() as u32).map(LocationId);
    let leads =
        |at: LocationId, to: &dyn Fn(LocationId) -> bool| thread.edges_from(at).any(|(_, edge)| to(edge.to));
    let is_choice = |at: LocationId| {
        leads(at, &failed)
            && thread.edges_from(at).all(|(_, edge)| !matches!(edge.action, Action::Op(Op::Assume(_))))
    };
    let choices: HashSet<LocationId> = all().filter(|at| is_choice(*at)).collect();
    let is_wrong = |to: LocationId| failed(to) || choices.contains(&to);
    let checked = all().filter(|at| leads(*at, &is_wrong) && !choices.contains(at));
    let passed = |at: LocationId| thread.edges_from(at).map(|(_, edge)| edge.to).filter(|to| !is_wrong(*to));
    checked.flat_map(|at| passed(at).map(move |to| (at, to))).collect()
}

/// The facts about the register with this name, if there are any; the register may be an element of an array.
fn named(facts: &Facts, thread: &str, name: &str) -> Option<Named> {
    let known = |name: &str| facts.registers.get(&(thread.to_string(), name.to_string()));
    if let Some(register) = known(name) {
        return Some(Named { holds: register.holds.clone(), kind: register.kind });
    }
    let (array, index) = name.strip_suffix(']')?.rsplit_once('[')?;
    let (register, index) = (known(array)?, index.parse().ok()?);
    let holds = match &register.holds {
        Holds::Place(kind, _) => Holds::Place(*kind, index),
        Holds::Mark(kind, _) => Holds::Mark(*kind, index),
        Holds::Variable(text) => Holds::Variable(format!("{text}[{index}]")),
        Holds::Temporary => Holds::Temporary,
    };
    Some(Named { holds, kind: register.kind })
}

impl Facts {
    /// The meaning of a number, interpreted as a value of this kind.
    pub fn meaning(&self, kind: Kind, number: i64) -> Meaning<'_> {
        if self.undefined == Some(number) {
            return Meaning::Undefined;
        }
        let (kind, factor) = match kind {
            Kind::Pointer(kind, factor) => (kind, factor),
            Kind::Number => return Meaning::Number(number),
            Kind::Holder => return self.holder(number),
        };
        if number == 0 {
            return Meaning::Null;
        }
        if let Some(function) = self.memory.functions.get(&number) {
            return Meaning::Function(function);
        }
        // A pointer with tag bits is shown as a number.
        if factor == 0 || number % factor != 0 {
            return Meaning::Number(number);
        }
        let number = number / factor;
        match self.memory.spot(kind, number) {
            Some(spot) => Meaning::Pointer(spot),
            None => number
                .checked_sub(1)
                .and_then(|last| self.memory.spot(kind, last))
                .map_or(Meaning::Number(number), Meaning::Behind),
        }
    }

    /// The meaning of the value of a lock.
    fn holder(&self, number: i64) -> Meaning<'_> {
        match usize::try_from(number).ok().map(|number| number.checked_sub(1)) {
            Some(None) => Meaning::Free,
            Some(Some(n)) => {
                self.threads.get(n).map_or(Meaning::Number(number), |start| Meaning::Held(&start.thread))
            }
            None => Meaning::Number(number),
        }
    }
}

impl Memory {
    /// The place with this kind and number, as a part of an object; `None` if there is no object.
    pub fn spot(&self, kind: usize, number: i64) -> Option<Spot<'_>> {
        let part = self.part(kind, number)?;
        let object = self.objects.get(part.object)?;
        let path = self.path(kind, number).unwrap_or_default();
        Some(Spot { object, number: object.number.map(|first| first + part.time), path })
    }

    /// The interpretation of the values in places of a kind.
    pub fn kind(&self, kind: usize) -> Kind {
        self.contents.get(&kind).copied().unwrap_or_default()
    }

    /// The purpose of the place with this kind and number, if the translation added it.
    pub fn role(&self, kind: usize, number: i64) -> Option<&Role> {
        self.roles.get(&(kind, number))
    }
}
