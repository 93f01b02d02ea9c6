//! How the author of a program calls its parts, by the ids of the program. Only reports look at this: no verdict depends on it.
//!
//! [`Facts`] say the same by the names of the syntax tree. [`Words`] resolves these names once, and answers questions about variables, registers and
//! values of the program. How an answer is written is decided by the language: [`FrontEnd::word`](crate::FrontEnd::word).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fencewright_program::{Action, LocationId, Op, Program, RegisterId, Thread, ThreadId, VariableId};

use crate::facts::{About, Facts, Holds, Kind, Memory, Object, Role};

/// What is known about the parts of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    /// Open arrays at which the model ends, with the reason.
    pub ends: BTreeMap<VariableId, String>,
    /// The locations at which the process has ended.
    pub exits: BTreeSet<(ThreadId, LocationId)>,
    /// The ways of threads past checks of memory that the translation added: from where to where.
    pub checks: BTreeSet<(ThreadId, LocationId, LocationId)>,
    /// The places that the variables are made of: their kind, and the number of the first.
    variables: HashMap<VariableId, (usize, i64)>,
    registers: HashMap<(ThreadId, RegisterId), Named>,
}

/// A register.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// What it stands for.
    pub holds: Holds,
    /// What its numbers mean.
    pub kind: Kind,
}

/// What a text of the report stands for: a number as the author of the program sees it, or a place in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<'a> {
    /// A number.
    Number(i64),
    /// A value that was never written.
    Undefined,
    /// A pointer to nothing.
    Null,
    /// A pointer to a function.
    Function(&'a str),
    /// A pointer to a place.
    Pointer(Spot<'a>),
    /// A pointer one behind a place that is the last of its array.
    Behind(Spot<'a>),
    /// A place.
    Place(Spot<'a>),
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot<'a> {
    /// The object that it is part of.
    pub object: &'a Object,
    /// Which of several such objects, from 1, if there are several.
    pub number: Option<u64>,
    /// The way from the object to the place: `.next`, `[2]`.
    pub path: &'a str,
}

impl Words {
    /// Resolves what is known about a program to its ids. What the program does not have is left out.
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

    /// What is known about a register.
    pub fn register(&self, thread: ThreadId, register: RegisterId) -> Option<&Named> {
        self.registers.get(&(thread, register))
    }

    /// The place that a cell of shared memory is: its kind and number.
    pub fn place(&self, program: &Program, cell: u32) -> Option<(usize, i64)> {
        let n = program.variables.partition_point(|variable| variable.base <= cell).checked_sub(1)?;
        let (kind, first) = *self.variables.get(&VariableId(n as u32))?;
        Some((kind, first + i64::from(cell - program.variables[n].base)))
    }
}

/// The ways of a thread past checks of memory. A check that fails leads to a label at which the thread has made a mistake; where an undefined
/// value decides something, by way of a choice what that means.
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

/// What is known about a register of this name, which may be an element of an array.
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
    /// What a number means where numbers mean this.
    pub fn meaning(&self, kind: Kind, number: i64) -> Meaning<'_> {
        if self.undefined == Some(number) {
            return Meaning::Undefined;
        }
        let Kind::Pointer(kind, factor) = kind else { return Meaning::Number(number) };
        if number == 0 {
            return Meaning::Null;
        }
        if let Some(function) = self.memory.functions.get(&number) {
            return Meaning::Function(function);
        }
        // What has low bits in it besides is no address.
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
}

impl Memory {
    /// The place that a number stands for.
    pub fn spot(&self, kind: usize, number: i64) -> Option<Spot<'_>> {
        let part = self.part(kind, number)?;
        let object = self.objects.get(part.object)?;
        let path = self.path(kind, number).unwrap_or_default();
        Some(Spot { object, number: object.number.map(|first| first + part.time), path })
    }

    /// What the numbers in the places of a kind mean.
    pub fn kind(&self, kind: usize) -> Kind {
        self.contents.get(&kind).copied().unwrap_or_default()
    }

    /// What a place says that the translation added.
    pub fn role(&self, kind: usize, number: i64) -> Option<&Role> {
        self.roles.get(&(kind, number))
    }
}
