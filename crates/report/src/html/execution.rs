//! An execution as data for the viewer: the initial state, the changes of each step, the happens-before relation, and the departures from SC.
//!
//! Each step has only its difference from the previous state, which keeps the page small; the viewer reconstructs the states. Steps that are left out
//! are represented by one entry with their combined difference.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_executions::happens_before::{HappensBefore, Link, Relation};
use fencewright_program::reference::{Access, Buffered};
use fencewright_program::{
    Action, Edge, Event, EventKind, MemoryModel, Observable, Program, Property, Reference, RegisterId,
    Replayed, Span, State, ThreadId,
};
use serde::Serialize;

use super::departures::{Departure, Instead, departures};
use super::escape::line_of;
use super::texts::Numbers;
use crate::step::{Step, buffered_cell, cell_of, steps};
use crate::words::{Source, grouped, shortened};

/// Of a long execution, only the first `FIRST_STEPS` and the last `LAST_STEPS` steps are shown.
const FIRST_STEPS: usize = 500;
const LAST_STEPS: usize = 1_500;
/// Maximum number of steps for which happens-before is computed.
const MOST_RELATED: usize = 2_000;
/// A program with more cells than `FEW_CELLS` shows only those that the execution or the property involves, and at most `MOST_CELLS` of them.
const FEW_CELLS: usize = 64;
const MOST_CELLS: usize = 200;
/// A program with more threads than `FEW_THREADS` shows only those that move, and at most `MOST_THREADS` of them.
const FEW_THREADS: usize = 6;
const MOST_THREADS: usize = 24;
/// Maximum length of the description of a step, in characters.
const LONGEST_WORDS: usize = 400;

/// An execution, as the script of the page reads it.
#[derive(Serialize)]
pub struct Execution {
    model: &'static str,
    threads: Vec<String>,
    cells: Vec<String>,
    registers: Vec<Vec<String>>,
    memory: Vec<String>,
    values: Vec<Vec<String>>,
    places: Vec<Place>,
    steps: Vec<StepData>,
    /// The happens-before relation, as (first step, name of the relation, second step, the cell; `None` for program order).
    relations: Vec<(usize, &'static str, usize, Option<String>)>,
    cycle: Vec<LinkData>,
    /// A sentence about the happens-before cycle, or about its absence.
    because: String,
    /// A sentence that says what the last state means for the property.
    conclusion: String,
    /// Sentences about the parts that are not shown.
    left_out: Vec<String>,
}

/// The position of a thread: a file of the page and a line, or a word such as `ended`.
#[derive(Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Place {
    Line(usize, usize),
    Word(&'static str),
}

#[derive(Default, Serialize)]
struct StepData {
    /// The number of the step, counted from 1.
    n: usize,
    /// The index of its thread among the threads of the execution; `None` for steps that are left out and for threads that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<usize>,
    /// The name of the thread, if that thread is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<String>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "String::is_empty")]
    statement: String,
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<String>,
    /// Cells with their new values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<(usize, String)>,
    /// For each store that the step issues, the cell and the value. Applying the stores at this step, and not when they are flushed, gives the memory
    /// under SC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issued: Vec<(usize, String)>,
    /// Changes of buffers: the thread, the index of the change, the number of entries removed there, and the entries inserted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    buffers: Vec<(usize, usize, usize, Vec<String>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<(usize, usize, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<(usize, Place)>,
    /// If the holder of the global lock changes, the name of the thread that holds it after the step; empty if the lock is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    /// For a flush, the number of the step that issued the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<usize>,
    /// For steps that are left out, the numbers of the earlier steps whose stores they flush.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flushed: Vec<usize>,
    /// The departures of the step from SC, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sc: Vec<String>,
}

#[derive(Serialize)]
struct LinkData {
    step: usize,
    words: String,
    relation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<String>,
}

/// An execution to show on a page.
pub struct View<'a> {
    /// The program, with its source text.
    pub source: Source<'a>,
    /// The replayed execution.
    pub replayed: &'a Replayed,
    /// The property that the execution is evidence about.
    pub property: Option<&'a Property>,
    /// A happens-before cycle, if the caller has found one.
    pub cycle: Option<&'a [Link]>,
    /// A sentence that says what the last state means for the property.
    pub conclusion: String,
    /// The original program, if the execution is of a variant with other fences.
    pub written: Option<&'a Program>,
}

impl View<'_> {
    /// The source positions of the steps.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        steps(self.source, self.replayed).filter_map(|step| step.span())
    }

    /// The execution as data; `files` maps files to their numbers in the page.
    pub fn data(&self, files: &Numbers) -> Execution {
        let mut left_out = Vec::new();
        let threads = self.threads(&mut left_out);
        let cells = self.cells(&mut left_out);
        let names = self.source.program;
        let shown = Shown { view: self, files, threads, cells };
        let first = self.replayed.states.first();
        let (steps, numbers) = shown.steps(&mut left_out);
        let position = |step: usize| numbers.binary_search(&step).ok();
        let mut relations = Vec::new();
        let (mut cycle, because) = self.relations(&mut relations);
        relations.retain(|(from, _, to, _)| position(*from).is_some() && position(*to).is_some());
        for link in &mut cycle {
            link.step += 1;
        }
        Execution {
            model: self.replayed.model.name(),
            threads: shown.threads.iter().map(|t| line_of(&names.thread(*t).name)).collect(),
            cells: shown.cells.iter().map(|cell| line_of(&self.source.cell(*cell))).collect(),
            registers: shown.threads.iter().map(|t| shown.register_names(*t)).collect(),
            memory: shown
                .cells
                .iter()
                .map(|cell| self.cell_value(*cell, first.memory[*cell as usize]))
                .collect(),
            values: shown.threads.iter().map(|t| shown.register_values(*t, first)).collect(),
            places: shown.threads.iter().map(|t| shown.place(*t, first)).collect(),
            steps,
            relations: relations.into_iter().map(|(a, name, b, cell)| (a + 1, name, b + 1, cell)).collect(),
            cycle,
            because,
            conclusion: self.conclusion.clone(),
            left_out,
        }
    }

    /// A text on one line, cut if it is long.
    fn words(&self, text: &str) -> String {
        shortened(&line_of(text), LONGEST_WORDS)
    }

    /// The value of a cell in the notation of the source, on one line.
    fn cell_value(&self, cell: u32, value: i64) -> String {
        line_of(&self.source.cell_value(cell, value))
    }

    /// The threads that are shown: all threads of a small program, otherwise the threads that move, at most `MOST_THREADS`. Adds a sentence about
    /// the others to `left_out`.
    fn threads(&self, left_out: &mut Vec<String>) -> Vec<ThreadId> {
        let all = self.source.program.threads.len();
        let few = all <= FEW_THREADS;
        let moves: BTreeSet<ThreadId> = self.replayed.events.iter().map(|event| event.thread).collect();
        let threads = self.source.program.threads().map(|(id, _)| id);
        let threads: Vec<ThreadId> =
            threads.filter(|id| few || moves.contains(id)).take(MOST_THREADS).collect();
        if let more @ 1.. = all - threads.len() {
            let still = moves.iter().all(|id| threads.contains(id));
            let which =
                if still { "threads do not move and have no lane." } else { "more threads have no lane." };
            left_out.push(format!("{} {which}", grouped(more as u64)));
        }
        threads
    }

    /// The memory cells that are shown: all cells of a small program, otherwise the cells that the property or the execution involves.
    fn cells(&self, left_out: &mut Vec<String>) -> Vec<u32> {
        let all = self.source.program.cells();
        if all <= FEW_CELLS {
            return (0..all as u32).filter(|cell| self.source.lists(*cell)).collect();
        }
        // Cells of the property come first, then the most recently accessed ones.
        let mut involved: Vec<u32> = Vec::new();
        if let Some(formula) = self.property.and_then(Property::formula) {
            formula.for_each_leaf(&mut |observable| {
                if let Observable::Memory(cell) = observable {
                    involved.push(*cell);
                }
            });
        }
        involved.extend(self.replayed.effects.iter().rev().flatten().filter_map(cell_of));
        let mut known = BTreeSet::new();
        involved.retain(|cell| self.source.lists(*cell) && known.insert(*cell));
        let mut shown: Vec<u32> = involved.iter().copied().take(MOST_CELLS).collect();
        shown.sort_unstable();
        let what = if shown.len() < involved.len() { "more" } else { "untouched" };
        left_out.push(format!("{} {what} memory cells are not shown.", grouped((all - shown.len()) as u64)));
        shown
    }

    /// Adds the happens-before relation of the execution, after flushing all buffers. Returns a cycle, if there is one, and a sentence about it.
    fn relations(
        &self,
        relations: &mut Vec<(usize, &'static str, usize, Option<String>)>,
    ) -> (Vec<LinkData>, String) {
        let program = self.source.program;
        if self.replayed.model == MemoryModel::Sc {
            return (Vec::new(), "This is an execution under SC: stores reach memory at once.".into());
        }
        if self.replayed.events.len() > MOST_RELATED {
            let most = grouped(MOST_RELATED as u64);
            let why = format!("In executions of more than {most} steps, happens-before is not looked at.");
            return (Vec::new(), why);
        }
        let (completed, complete) = completed(self.source, self.replayed);
        let relation = HappensBefore::new(program, &completed);
        let cell = |relation: Relation| relation.cell().map(|cell| line_of(&self.source.cell(cell)));
        relations.extend(relation.relations().map(|(from, how, to)| (from, name(how), to, cell(how))));
        let found = match self.cycle {
            Some(cycle) => Some(cycle.to_vec()),
            None => relation.cycle(),
        };
        let Some(found) = found else {
            let because = match complete {
                true => {
                    "Happens-before has no cycle: up to the order of independent steps, SC does the same. The store buffers are not to blame."
                }
                false => {
                    "Happens-before has no cycle among the stores that can reach memory; others wait for a lock that is never released."
                }
            };
            return (Vec::new(), because.into());
        };
        let link = |link: &Link| LinkData {
            step: link.event,
            words: self.event_in_words(&self.replayed.events[link.event]),
            relation: name(link.relation),
            cell: cell(link.relation),
        };
        let because = "SC cannot do this: each of these steps would have to come before the next, and the last before the first.";
        (found.iter().map(link).collect(), because.into())
    }

    /// A step as its thread and statement.
    fn event_in_words(&self, event: &Event) -> String {
        let what = self.statement(event).unwrap_or_else(|| "flush".into());
        format!("{}: {what}", line_of(&self.source.program.thread(event.thread).name))
    }

    /// The statement of a step; `None` for a flush. For an inserted fence, this is the fence and not the statement beside it.
    fn statement(&self, event: &Event) -> Option<String> {
        let EventKind::Step { edge, .. } = &event.kind else { return None };
        let edge = self.source.program.thread(event.thread).edge(*edge);
        let statement = self.source.statement(edge.span);
        let is_fence = |edge: &Edge| matches!(edge.action, Action::Fence | Action::StoreFence);
        let stands = |written: &Program| {
            let mut edges = written.threads.iter().flat_map(|thread| &thread.edges);
            edges.any(|other| is_fence(other) && other.span.text() == edge.span.text())
        };
        let is_put = is_fence(edge) && self.written.is_some_and(|written| !stands(written));
        Some(line_of(&if is_put { format!("(fence put beside {statement})") } else { statement }))
    }

    /// A departure from SC, as a sentence.
    fn under_sc(&self, departure: &Departure) -> String {
        let program = self.source.program;
        let cell = self.source.cell(departure.cell);
        let value = self.cell_value(departure.cell, departure.value);
        let thread = |step: usize| &program.thread(self.replayed.events[step].thread).name;
        let (store, owner) = (departure.store + 1, thread(departure.store));
        let text = match departure.instead {
            Instead::Read(read) if read == departure.value => format!(
                "Under SC the store of {owner} in step {store} would be in memory already; it has the same value, {cell} = {value}."
            ),
            Instead::Read(_) => format!(
                "Under SC it would read {cell} = {value}: the store of {owner} in step {store} would be in memory already."
            ),
            Instead::Overwritten(step) => format!(
                "Under SC {cell} would stay {value}: the store of {owner} in step {store} comes after this one, which is of step {}.",
                step + 1
            ),
        };
        line_of(&text)
    }
}

/// The name of a relation, as the page explains it.
fn name(relation: Relation) -> &'static str {
    match relation {
        Relation::ProgramOrder => "program order",
        Relation::Coherence(_) => "coherence",
        Relation::Source(_) => "reads from",
        Relation::Conflict(_) => "from-read",
    }
}

/// The execution continued by flushing all buffers as far as the lock allows; and whether all buffers are empty then.
fn completed(source: Source<'_>, replayed: &Replayed) -> (Replayed, bool) {
    let mut completed = replayed.clone();
    let reference = Reference::new(source.program, replayed.model);
    let mut state = replayed.last().clone();
    for thread in source.program.threads().map(|(id, _)| id) {
        while let Some(cell) = state.buffers[thread.index()].first().and_then(buffered_cell) {
            let event = Event { thread, kind: EventKind::Flush { cell } };
            let Ok((next, effect)) = reference.step(&state, &event) else { break };
            state = next;
            completed.events.push(event);
            completed.effects.push(effect);
        }
    }
    let complete = state.buffers.iter().all(Vec::is_empty);
    (completed, complete)
}

/// The threads and cells of a [`View`] that are shown.
struct Shown<'a> {
    view: &'a View<'a>,
    files: &'a Numbers,
    threads: Vec<ThreadId>,
    cells: Vec<u32>,
}

impl Shown<'_> {
    /// The registers of a thread that are shown, with their names.
    fn named(&self, thread: ThreadId) -> impl Iterator<Item = (RegisterId, String)> {
        let source = self.view.source;
        let registers = (0..source.program.thread(thread).registers.len() as u32).map(RegisterId);
        registers.filter_map(move |register| Some((register, source.register(thread, register)?)))
    }

    fn register_value(&self, thread: ThreadId, register: RegisterId, state: &State) -> String {
        let value = state.registers[thread.index()][register.index()];
        line_of(&self.view.source.register_value(thread, register, value))
    }

    fn register_names(&self, thread: ThreadId) -> Vec<String> {
        self.named(thread).map(|(_, name)| line_of(&name)).collect()
    }

    fn register_values(&self, thread: ThreadId, state: &State) -> Vec<String> {
        self.named(thread).map(|(register, _)| self.register_value(thread, register, state)).collect()
    }

    /// The position of a thread in a state.
    fn place(&self, thread: ThreadId, state: &State) -> Place {
        let (code, location) = (self.view.source.program.thread(thread), state.locations[thread.index()]);
        if !self.view.source.is_created(thread, state) {
            return Place::Word("not created");
        }
        if location == code.fault {
            return Place::Word("fault");
        }
        let here = code.locations[location.index()].span;
        let here = here.or_else(|| code.edges_from(location).next().map(|(_, edge)| edge.span));
        match here.and_then(|span| self.line(span)) {
            Some((file, line)) => Place::Line(file, line),
            None if code.is_end(location) => Place::Word("ended"),
            None => Place::Word(""),
        }
    }

    /// The number of a span's file in the page, and its line.
    fn line(&self, span: Span) -> Option<(usize, usize)> {
        let file = self.files.get(&span.file)?;
        Some((*file, self.view.source.position(span).line))
    }

    /// The data of the steps that are shown, and the indices of these steps in the execution.
    fn steps(&self, left_out: &mut Vec<String>) -> (Vec<StepData>, Vec<usize>) {
        let view = self.view;
        let all = view.replayed.events.len();
        let gap = match all > FIRST_STEPS + LAST_STEPS {
            true => FIRST_STEPS..all - LAST_STEPS,
            false => 0..0,
        };
        if !gap.is_empty() {
            let (gap, all) = (grouped(gap.len() as u64), grouped(all as u64));
            left_out
                .push(format!("{gap} of the {all} steps are left out; their changes are shown together."));
        }
        let departures = match view.replayed.model {
            MemoryModel::Sc => vec![Vec::new(); all],
            MemoryModel::Tso | MemoryModel::Pso => departures(view.source.program, view.replayed),
        };
        let stores = stores(view.replayed);
        let (mut data, mut numbers) = (Vec::new(), Vec::new());
        let (mut before, mut untold, mut issued, mut flushed) = (None, None, Vec::new(), Vec::new());
        for (n, step) in steps(view.source, view.replayed).enumerate() {
            if gap.contains(&n) {
                let before =
                    before.get_or_insert_with(|| untold.take().unwrap_or_else(|| State::clone(&step.before)));
                issued.extend(self.issued(&step));
                flushed.extend(stores[n].filter(|store| *store <= gap.start));
                if n + 1 == gap.end {
                    let words = format!("{} steps are left out", grouped(gap.len() as u64));
                    // If several steps that are left out store to a cell, the last store determines its value.
                    let issued: BTreeMap<usize, String> = std::mem::take(&mut issued).into_iter().collect();
                    let (issued, flushed) = (issued.into_iter().collect(), std::mem::take(&mut flushed));
                    let mut skipped =
                        StepData { n: n + 1, kind: "gap", words, issued, flushed, ..StepData::default() };
                    self.differences(before, &step.after, &mut skipped);
                    data.push(skipped);
                }
                continue;
            }
            // The changes of a hidden step are shown with the next step.
            if n + 1 < all && step.is_hidden() {
                untold.get_or_insert_with(|| State::clone(&step.before));
                continue;
            }
            numbers.push(n);
            let sc = departures[n].iter().map(|departure| view.under_sc(departure)).collect();
            let mut one = StepData { n: n + 1, sc, store: stores[n], ..self.step(&step) };
            self.differences(untold.take().as_ref().unwrap_or(&step.before), &step.after, &mut one);
            data.push(one);
        }
        (data, numbers)
    }

    /// The data of a step, without the differences between its states.
    fn step(&self, step: &Step<'_>) -> StepData {
        let source = self.view.source;
        let faults = step.effect.iter().any(|access| matches!(access, Access::Fault(_)));
        let thread = self.threads.binary_search(&step.event.thread).ok();
        StepData {
            thread,
            hidden: thread.is_none().then(|| line_of(&step.thread().name)),
            kind: match step.event.kind {
                EventKind::Flush { .. } => "flush",
                EventKind::Step { .. } if faults => "fault",
                EventKind::Step { .. } => "step",
            },
            at: step.shown_span().and_then(|span| self.line(span)),
            statement: step.shown_span().and_then(|_| self.view.statement(step.event)).unwrap_or_default(),
            words: self.view.words(&step.words()),
            issued: self.issued(step).collect(),
            calls: step.span().and_then(|span| source.calls(span)).map(|calls| line_of(&calls)),
            ..StepData::default()
        }
    }

    /// The cells and values that a step stores, to memory or to its buffer; empty for a flush.
    fn issued(&self, step: &Step<'_>) -> impl Iterator<Item = (usize, String)> {
        let is_flush = matches!(step.event.kind, EventKind::Flush { .. });
        step.effect.iter().filter(move |_| !is_flush).filter_map(|access| match *access {
            Access::Write { cell, value, .. } => {
                let shown = self.cells.binary_search(&cell).ok()?;
                Some((shown, self.view.cell_value(cell, value)))
            }
            Access::Read { .. } | Access::Fault(_) => None,
        })
    }

    /// Records the differences between two states.
    fn differences(&self, before: &State, after: &State, data: &mut StepData) {
        for (n, cell) in self.cells.iter().map(|cell| *cell as usize).enumerate() {
            if before.memory[cell] != after.memory[cell] {
                data.memory.push((n, self.view.cell_value(cell as u32, after.memory[cell])));
            }
        }
        let program = self.view.source.program;
        for (n, thread) in self.threads.iter().enumerate() {
            let t = thread.index();
            if before.buffers[t] != after.buffers[t] {
                let (at, gone, come) = splice(&before.buffers[t], &after.buffers[t]);
                let come = come.iter().map(|e| self.view.words(&self.view.source.entry(e))).collect();
                data.buffers.push((n, at, gone, come));
            }
            if before.registers[t] != after.registers[t] {
                for (r, (register, _)) in self.named(*thread).enumerate() {
                    if before.registers[t][register.index()] != after.registers[t][register.index()] {
                        data.values.push((n, r, self.register_value(*thread, register, after)));
                    }
                }
            }
            let may_move = before.locations[t] != after.locations[t] || before.memory != after.memory;
            if may_move && self.place(*thread, before) != self.place(*thread, after) {
                data.places.push((n, self.place(*thread, after)));
            }
        }
        if before.lock != after.lock {
            let name = |thread: ThreadId| line_of(&program.thread(thread).name);
            data.lock = Some(after.lock.map_or_else(String::new, name));
        }
    }
}

/// The change of a buffer: the index where it starts, the number of entries removed, and the entries inserted.
fn splice<'b>(before: &[Buffered], after: &'b [Buffered]) -> (usize, usize, &'b [Buffered]) {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    (start, before.len() - end, &after[..after.len() - end])
}

/// For each flush, the number of the step that issued the store, counted from 1.
fn stores(replayed: &Replayed) -> Vec<Option<usize>> {
    let most = replayed.events.iter().map(|event| event.thread.index() + 1).max().unwrap_or(0);
    let mut pending: Vec<Vec<(usize, u32)>> = vec![Vec::new(); most];
    let events = replayed.events.iter().zip(&replayed.effects).enumerate();
    events
        .map(|(n, (event, effect))| {
            let own = &mut pending[event.thread.index()];
            if let EventKind::Flush { cell } = &event.kind {
                let oldest = own.iter().position(|(_, c)| c == cell)?;
                return Some(own.remove(oldest).0 + 1);
            }
            for access in effect {
                if let Access::Write { cell, buffered: true, .. } = access {
                    own.push((n, *cell));
                }
            }
            None
        })
        .collect()
}
