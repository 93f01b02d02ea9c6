//! Cells, registers and values by their source names if the front end knows them, otherwise by the names of the program.

use std::collections::HashSet;

use fencewright_lang::facts::{Holds, Kind, Role, Start, Storage, Whole};
use fencewright_lang::words::{Meaning, Spot};
use fencewright_program::reference::Buffered;
use fencewright_program::{LocationId, Op, RegisterId, Span, State, Thread, ThreadId, VariableId};

use crate::origins::Written;
use crate::step::is_temporary;
use crate::words::Source;

/// Maximum number of expressions that are searched, backwards from a span, for one that encloses it.
const MOST_STEPS_BEFORE: usize = 1_000;

impl<'a> Source<'a> {
    /// The same source, shown with all details of the translation if `full`.
    pub fn in_full(self, full: bool) -> Self {
        Source { full, ..self }
    }

    /// Whether the program is a translation that has source names.
    pub fn is_translated(&self) -> bool {
        !self.facts.threads.is_empty()
    }

    /// Whether details that the translation added are hidden.
    pub fn hides(&self) -> bool {
        self.is_translated() && !self.full
    }

    /// The innermost source expression that encloses `span` and is shown as one step. The span of the result has the calls of `span`.
    pub fn expression_around(&self, span: Span) -> Option<Whole> {
        let steps = &self.facts.steps;
        let start = |whole: &Whole| (whole.span.file, whole.span.start);
        let behind = steps.partition_point(|whole| start(whole) <= (span.file, span.start));
        let inside = |whole: &&Whole| whole.span.file == span.file && whole.span.end >= span.end;
        let around = steps[..behind].iter().rev().take(MOST_STEPS_BEFORE).find(inside)?;
        Some(Whole { span: around.span.called(span.call), ..*around })
    }

    /// The name of a cell of shared memory.
    pub fn cell(&self, cell: u32) -> String {
        let place = self.words.place(self.program, cell);
        let spot = place.and_then(|(kind, number)| self.facts.memory.spot(kind, number));
        match spot {
            Some(spot) if self.role(cell).is_none() => self.word(&Meaning::Place(spot)),
            _ => self.program.cell_name(cell),
        }
    }

    /// The purpose of a cell that the translation added.
    pub fn role(&self, cell: u32) -> Option<&'a Role> {
        let (kind, number) = self.words.place(self.program, cell)?;
        self.facts.memory.role(kind, number)
    }

    /// Whether a cell is shown: cells that the translation added are hidden unless everything is shown.
    pub fn shows(&self, cell: u32) -> bool {
        self.full || self.role(cell).is_none()
    }

    /// Whether a cell is in lists of memory: string literals, which never change, are left out unless everything is shown.
    pub fn lists(&self, cell: u32) -> bool {
        let place = self.words.place(self.program, cell);
        self.shows(cell) && !place.is_some_and(|(kind, number)| self.hides() && self.is_literal(kind, number))
    }

    fn is_literal(&self, kind: usize, number: i64) -> bool {
        self.facts.memory.spot(kind, number).is_some_and(|spot| spot.object.literal.is_some())
    }

    /// The value of a cell as text.
    pub fn cell_value(&self, cell: u32, value: i64) -> String {
        self.value(self.cell_kind(cell), value)
    }

    /// The interpretation of the values of a cell.
    pub fn cell_kind(&self, cell: u32) -> Kind {
        let place = self.words.place(self.program, cell);
        place.map_or(Kind::Number, |(kind, _)| self.facts.memory.kind(kind))
    }

    /// A value as text, under an interpretation.
    pub fn value(&self, kind: Kind, value: i64) -> String {
        match self.facts.meaning(kind, value) {
            Meaning::Number(number) => number.to_string(),
            meaning => self.word(&meaning),
        }
    }

    fn word(&self, meaning: &Meaning<'_>) -> String {
        let line = |spot: &Spot<'_>| self.position(spot.object.span).line_name();
        let line = match meaning {
            Meaning::Pointer(spot) | Meaning::Behind(spot) | Meaning::Place(spot) => line(spot),
            _ => String::new(),
        };
        self.front_end.word(meaning, &line)
    }

    /// The name of a register. `None` for a temporary, and, unless everything is shown, for a register that the translation added.
    pub fn register(&self, thread: ThreadId, register: RegisterId) -> Option<String> {
        let name = &self.program.thread(thread).registers[register.index()].name;
        if is_temporary(name) {
            return None;
        }
        match self.words.register(thread, register).map(|named| &named.holds) {
            None => Some(name.clone()),
            Some(Holds::Variable(variable)) => Some(variable.clone()),
            Some(Holds::Place(kind, number)) => match self.facts.memory.spot(*kind, *number) {
                Some(_) if self.facts.memory.role(*kind, *number).is_some() => {
                    self.full.then(|| name.clone())
                }
                Some(spot) => Some(self.word(&Meaning::Place(spot))),
                None => self.full.then(|| name.clone()),
            },
            Some(Holds::Mark(..) | Holds::Temporary) => self.full.then(|| name.clone()),
        }
    }

    /// The interpretation of the values of a register.
    pub fn register_kind(&self, thread: ThreadId, register: RegisterId) -> Kind {
        self.words.register(thread, register).map_or(Kind::Number, |named| named.kind)
    }

    /// The value of a register as text.
    pub fn register_value(&self, thread: ThreadId, register: RegisterId, value: i64) -> String {
        self.value(self.register_kind(thread, register), value)
    }

    /// The text of a pointer to the object whose lifetime a register marks as ended; `kind` and `number` are those of the register's
    /// [`Holds::Mark`](fencewright_lang::facts::Holds).
    pub fn marked(&self, kind: usize, number: i64) -> String {
        let spot = self.facts.memory.spot(kind, number);
        spot.map_or_else(|| number.to_string(), |spot| self.word(&Meaning::Pointer(spot)))
    }

    /// Like [`marked`](Source::marked), but names the object itself instead of a pointer to it.
    pub fn marked_place(&self, kind: usize, number: i64) -> String {
        let spot = self.facts.memory.spot(kind, number);
        spot.map_or_else(|| number.to_string(), |spot| self.word(&Meaning::Place(spot)))
    }

    /// The names of the threads that increment the variable of a cell when they end. Threads that are alike and joined together share such a
    /// variable.
    pub fn counts_in(&self, cell: u32) -> impl Iterator<Item = &'a String> {
        let n = self.program.variables.partition_point(|variable| variable.base <= cell);
        let variable = n.checked_sub(1).map(|n| VariableId(n as u32));
        let reads = move |op: &Op| matches!(op, Op::Load(_, from) if Some(from.variable) == variable);
        let writes = move |op: &Op| matches!(op, Op::Store(to, _) if Some(to.variable) == variable);
        let counts = move |thread: &&Thread| {
            let mut ops = thread.edges.iter().map(|edge| edge.action.ops());
            ops.any(|ops| ops.iter().any(reads) && ops.iter().any(writes))
        };
        self.program.threads.iter().filter(counts).map(|thread| &thread.name)
    }

    /// The position of a thread in a state, as text: the text of [`Source::place`], or that the thread has not been created yet.
    pub fn place_in(&self, thread: ThreadId, state: &State) -> String {
        match self.is_created(thread, state) {
            true => self.place(thread, state.locations[thread.index()]),
            false => "has not been created".into(),
        }
    }

    /// Whether a thread has been created.
    pub fn is_created(&self, thread: ThreadId, state: &State) -> bool {
        let Thread { name, entry, .. } = self.program.thread(thread);
        if state.locations[thread.index()] != *entry {
            return true;
        }
        let waits =
            |cell: &u32| matches!(self.role(*cell), Some(Role::Start(threads)) if threads.contains(name));
        let start = (0..state.memory.len() as u32).find(waits).filter(|_| self.hides());
        start.is_none_or(|cell| state.memory[cell as usize] == 1)
    }

    /// Whether the source gives a register a value at a point where `written` are the registers written so far: the register is one of them, or
    /// represents a variable with static storage, other than a string literal. Always true if details of the translation are shown.
    pub fn has_value(&self, thread: ThreadId, register: RegisterId, written: &Written) -> bool {
        let holds = self.words.register(thread, register).map(|named| &named.holds);
        let is_static = match holds {
            // The name of a string literal already shows its contents.
            Some(Holds::Place(kind, number)) if self.hides() && self.is_literal(*kind, *number) => {
                return false;
            }
            Some(Holds::Place(kind, number)) => {
                let spot = self.facts.memory.spot(*kind, *number);
                spot.is_some_and(|spot| spot.object.storage == Storage::Static)
            }
            _ => false,
        };
        !self.hides() || is_static || written.contains(thread, register)
    }

    /// The cells of those allocations in which every cell is still uninitialised in this memory; empty if details of the translation are shown.
    pub fn unwritten(&self, memory: &[i64]) -> HashSet<u32> {
        let (mut parts, mut written) = (Vec::new(), HashSet::new());
        let places = (0..).zip(memory).filter(|_| self.hides());
        for (cell, value) in places {
            let place = self.words.place(self.program, cell);
            let part = place.and_then(|(kind, number)| self.facts.memory.part(kind, number));
            let Some(own) = part.map(|part| (part.object, part.time)) else { continue };
            let object = self.facts.memory.objects.get(own.0);
            if object.is_some_and(|object| object.storage == Storage::Heap) {
                parts.push((cell, own));
                if self.facts.undefined != Some(*value) {
                    written.insert(own);
                }
            }
        }
        parts.into_iter().filter(|(_, own)| !written.contains(own)).map(|(cell, _)| cell).collect()
    }

    /// A name with its value: `x=1`; in a translated program `x = 1`, because names may have more than one word there.
    pub fn equation(&self, name: &str, value: &str) -> String {
        let sign = if self.is_translated() { " = " } else { "=" };
        format!("{name}{sign}{value}")
    }

    /// A cell with its value, both in the notation of the source.
    pub fn cell_equation(&self, cell: u32, value: i64) -> String {
        self.equation(&self.cell(cell), &self.cell_value(cell, value))
    }

    /// The separator between equations of names and values.
    pub fn separator(&self) -> &'static str {
        if self.is_translated() { ", " } else { " " }
    }

    /// A buffer entry: `x=1`, or `|` for a store fence.
    pub fn entry(&self, entry: &Buffered) -> String {
        match *entry {
            Buffered::Store { cell, value } => self.cell_equation(cell, value),
            Buffered::Barrier => "|".into(),
        }
    }

    /// Whether threads stay at this location after the end of the process.
    pub fn is_exit(&self, thread: ThreadId, location: LocationId) -> bool {
        self.words.exits.contains(&(thread, location))
    }

    /// A thread with its function and the line of its creation: `worker_1 (worker, line 47)`.
    pub fn started(&self, start: &Start) -> String {
        let line = self.position(start.span).line_name();
        format!("{} ({}, line {line})", start.thread, start.function)
    }

    /// Several threads, given by their names, each with its function and the line of its creation.
    pub fn all_started(&self, threads: &[String]) -> String {
        let start = |name: &String| match self.facts.threads.iter().find(|start| start.thread == *name) {
            Some(start) => self.started(start),
            None => name.clone(),
        };
        joined(&threads.iter().map(start).collect::<Vec<_>>())
    }

    /// The creation of the threads that run from the initial state, in sentences.
    pub fn created_first(&self) -> Vec<String> {
        let mut creators: Vec<(&String, Vec<String>)> = Vec::new();
        for start in self.facts.threads.iter().filter(|start| start.initial) {
            let Some(creator) = &start.creator else { continue };
            match creators.iter_mut().find(|(known, _)| *known == creator) {
                Some((_, created)) => created.push(self.started(start)),
                None => creators.push((creator, vec![self.started(start)])),
            }
        }
        let sentence =
            |(creator, created): (&String, Vec<String>)| format!("{creator} creates {}", joined(&created));
        creators.into_iter().map(sentence).collect()
    }
}

/// Texts as a list in words: `a`, `a and b`, `a, b and c`.
pub fn joined(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn lists_in_words() {
        let check = |texts: &[&str], expected: &str| {
            assert_eq!(joined(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>()), expected);
        };
        check(&["a"], "a");
        check(&["a", "b"], "a and b");
        check(&["a", "b", "c"], "a, b and c");
    }
}
