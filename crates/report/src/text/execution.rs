//! Executions as tables for a terminal: the steps, memory and buffers, and what the final state means.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;

use fencewright_lang::source::escape;
use fencewright_program::reference::Access;
use fencewright_program::{
    CallId, Init, Observable, Property, PropertyKind, Quantifier, RegisterId, Replayed, Span, State, Thread,
    ThreadId,
};

use crate::mistake::mistake;
use crate::origins::Written;
use crate::rows::{self, Passes, Row};
use crate::step::{Step, cell_of, steps};
use crate::style::Style;
use crate::words::{Source, grouped, shortened};

/// Maximum number of rows of a table; of a longer table, the middle is left out.
const MOST_ROWS: usize = 400;
/// Minimum width of the column of statements, in characters; `MOST_COLUMNS` is the maximum.
const FEWEST_COLUMNS: usize = 9;
const MOST_COLUMNS: usize = 44;
/// Of more involved cells than this, only those that differ from their initial values are shown.
const FEW_CELLS: usize = 10;
/// Maximum number of cells, buffer entries or registers in one line, and of threads.
const MOST_SHOWN: usize = 40;

/// The memory cells to show: the involved cells if there are few, otherwise those of them that differ from their initial values. The involved cells
/// are all cells, or those that the execution accesses or the property mentions.
pub struct Cells {
    involved: Vec<u32>,
    initial: Vec<i64>,
    /// The initial values of registers whose initial value is nondeterministic.
    registers: Vec<String>,
}

impl Cells {
    /// All cells, starting in this state.
    pub fn all(source: Source<'_>, initial: &State) -> Self {
        Cells::new(source, initial, (0..initial.memory.len() as u32).collect())
    }

    fn new(source: Source<'_>, initial: &State, involved: Vec<u32>) -> Self {
        let chosen = |id: ThreadId, thread: &Thread, values: &[i64]| -> Vec<String> {
            let registers = (0..).map(RegisterId).zip(&thread.registers).zip(values);
            let chosen = registers.filter(|((_, register), _)| matches!(register.init, Init::Any(_)));
            chosen
                .filter_map(|((register, _), value)| {
                    let name = format!("{}.{}", thread.name, source.register(id, register)?);
                    Some(source.equation(&name, &source.register_value(id, register, *value)))
                })
                .collect()
        };
        let threads = source.program.threads().zip(&initial.registers);
        let registers = threads.flat_map(|((id, thread), values)| chosen(id, thread, values)).collect();
        Cells { involved, initial: initial.memory.clone(), registers }
    }

    /// The cells that an execution accesses or the property mentions.
    fn of_execution(source: Source<'_>, replayed: &Replayed, property: &Property) -> Self {
        let mut involved: BTreeSet<u32> = replayed.effects.iter().flatten().filter_map(cell_of).collect();
        if let Some(formula) = property.formula() {
            formula.for_each_leaf(&mut |observable| {
                if let Observable::Memory(cell) = observable {
                    involved.insert(*cell);
                }
            });
        }
        Cells::new(source, replayed.states.first(), involved.into_iter().collect())
    }

    /// The cells involved that are not hidden, and whether there are few of them.
    fn all_shown(&self, source: Source<'_>) -> (Vec<u32>, bool) {
        let shown: Vec<u32> = self.involved.iter().copied().filter(|&cell| source.lists(cell)).collect();
        let few = shown.len() <= FEW_CELLS;
        (shown, few)
    }

    fn shown(&self, source: Source<'_>, state: &State) -> Vec<u32> {
        let (mut shown, few) = self.all_shown(source);
        shown.retain(|&cell| few || state.memory[cell as usize] != self.initial[cell as usize]);
        shown
    }

    /// The initial state as a line (empty if there is nothing to show), and the threads that are created before the first step.
    pub fn initially(&self, source: Source<'_>, style: Style) -> String {
        let source = source.in_full(style.full);
        let (involved, few) = self.all_shown(source);
        let unwritten = source.unwritten(&self.initial);
        let shown: Vec<String> = involved
            .into_iter()
            .map(|cell| (cell, self.initial[cell as usize]))
            .filter(|&(cell, value)| (few || value != 0) && !unwritten.contains(&cell))
            .map(|(cell, value)| source.cell_equation(cell, value))
            .chain(self.registers.iter().cloned())
            .collect();
        let mut text = String::new();
        if !shown.is_empty() {
            let shown = escape(&listed(&shown, source.separator()));
            let _ = writeln!(text, "  {} {shown}", style.dim("initially"));
        }
        for sentence in source.created_first() {
            let _ = writeln!(text, "  {} {}", style.dim("initially"), escape(&sentence));
        }
        text
    }
}

/// An execution as a table, followed by its final state. The execution is evidence about `property`.
pub fn execution(source: Source<'_>, replayed: &Replayed, property: &Property, style: Style) -> String {
    let source = source.in_full(style.full);
    let cells = Cells::of_execution(source, replayed, property);
    let mut text = cells.initially(source, style);
    text.push_str(&table(source, replayed, &cells, &[], style));
    text.push_str(&final_state(source, replayed, property, style));
    text
}

/// The steps of an execution as a table: one row per step if [`Style::full`] is set, otherwise grouped by
/// [`rows`](mod@rows). The steps in `kept` are not folded.
pub fn table(source: Source<'_>, replayed: &Replayed, cells: &Cells, kept: &[usize], style: Style) -> String {
    let source = source.in_full(style.full);
    let spans = steps(source, replayed).filter_map(|step| step.shown_span());
    if style.full {
        let table = Table::new(source, replayed.events.len().to_string().len(), spans);
        let rows = steps(source, replayed).enumerate();
        let rows: Vec<String> = rows.map(|(n, step)| table.step(n + 1, &step, cells, style)).collect();
        return table.heading(style) + &rows.concat();
    }
    let mut rows = rows::rows(source, replayed, kept);
    let mut drafts = drafts(source, replayed, &rows, style);
    if source.hides() {
        let mut tells = drafts.iter().map(|draft| !draft.words.is_empty() || draft.below.is_some());
        let tells: Vec<bool> = rows.iter().map(|_| tells.next().unwrap_or(true)).collect();
        let mut those = tells.iter().copied();
        rows.retain(|_| those.next().unwrap_or(true));
        let mut those = tells.iter().copied();
        drafts.retain(|_| those.next().unwrap_or(true));
    }
    tell_calls(source, &mut drafts);
    let left_out = if rows.len() > MOST_ROWS { MOST_ROWS / 2..rows.len() - MOST_ROWS / 2 } else { 0..0 };
    let numbers: Vec<String> = rows.iter().map(|row| rows::numbered(&row.steps)).collect();
    let width = numbers.iter().map(String::len).max().unwrap_or(0);
    let mut table = Table::new(source, width, spans);
    let widest = drafts.iter().map(|draft| draft.statement.chars().count()).max().unwrap_or(0);
    table.statement = widest.clamp(FEWEST_COLUMNS, MOST_COLUMNS);
    let mut text = table.heading(style);
    for (n, draft) in drafts.iter().enumerate() {
        if n == left_out.start && !left_out.is_empty() {
            let steps: usize = rows[left_out.clone()].iter().map(|row| row.steps.len()).sum();
            let steps = grouped(steps as u64);
            let _ = writeln!(text, "  ... {steps} steps are left out here; --full shows them");
        }
        if !left_out.contains(&n) {
            text.push_str(&table.draft(&numbers[n], draft, style));
        }
    }
    text
}

/// The texts of a row of the table.
#[derive(Default)]
struct Draft {
    thread: String,
    line: String,
    statement: String,
    words: String,
    /// The thread, and the source span of the statement in the row's first step; `None` if that step has no statement to show.
    place: Option<(ThreadId, Span)>,
    /// The calls that led to the statement; `None` if the thread's previous row has the same calls.
    calls: Option<String>,
    /// Memory and buffers after the row, if the row changes them and its description (`words`) does not imply the new contents.
    below: Option<String>,
}

/// All rows, made in one pass over the steps.
fn drafts(source: Source<'_>, replayed: &Replayed, rows: &[Row], style: Style) -> Vec<Draft> {
    let mut row_of = vec![0; replayed.events.len()];
    for (r, row) in rows.iter().enumerate() {
        row.steps.iter().for_each(|&n| row_of[n] = r);
    }
    let mut drafts: Vec<Draft> = rows.iter().map(|_| Draft::default()).collect();
    let mut before: HashMap<usize, Rc<State>> = HashMap::new();
    for (n, step) in steps(source, replayed).enumerate() {
        let (row, draft) = (&rows[row_of[n]], &mut drafts[row_of[n]]);
        let (first, last) = (row.steps.first() == Some(&n), row.steps.last() == Some(&n));
        if first {
            draft.thread = escape(&step.thread().name);
        }
        if let (true, Some(span)) = (first, step.shown_span()) {
            draft.line = source.position(span).line_name();
            draft.statement = escape(&source.statement(span));
            draft.place = Some((step.event.thread, span));
        }
        match &row.passes {
            None => {
                let words = step_words(&step, style);
                let separator = if draft.words.is_empty() || words.is_empty() { "" } else { "; " };
                let _ = write!(draft.words, "{separator}{words}");
                draft.below = changes(&step).or(draft.below.take());
            }
            Some(passes) => {
                if first {
                    let (from, to) = (*passes.lines.start(), *passes.lines.end());
                    draft.line = source.line_name(passes.file, from);
                    draft.statement = match from == to {
                        true => format!("(loop, line {from})"),
                        false => format!("(loop, lines {from} to {to})"),
                    };
                    before.insert(row_of[n], Rc::clone(&step.before));
                }
                if last {
                    let before = before.remove(&row_of[n]).expect("the row has a first step");
                    draft.words = escape(&passes_in_words(&step, &before, passes, row.steps.len()));
                }
            }
        }
    }
    drafts
}

/// Adds the calls that led to a statement to each row whose calls differ from those of the thread's previous row.
fn tell_calls(source: Source<'_>, drafts: &mut [Draft]) {
    let mut called: HashMap<ThreadId, CallId> = HashMap::new();
    for draft in drafts {
        let Some((thread, span)) = draft.place else { continue };
        if called.insert(thread, span.call).unwrap_or_default() != span.call {
            draft.calls = source.calls(span);
        }
    }
}

/// The changes that iterations of a loop make; `last` is the last step of the last iteration.
fn passes_in_words(last: &Step<'_>, before: &State, passes: &Passes, steps: usize) -> String {
    let (thread, after) = (last.event.thread.index(), &last.after);
    let cells = (0..after.memory.len()).filter(|&cell| after.memory[cell] != before.memory[cell]);
    let (source, id) = (last.source, last.event.thread);
    let cells = cells.filter(|&cell| passes.touches_memory && source.shows(cell as u32)).map(|cell| {
        let value = source.cell_value(cell as u32, after.memory[cell]);
        format!("{} = {value} in memory", source.cell(cell as u32))
    });
    let registers = (0..last.thread().registers.len())
        .filter(|&r| after.registers[thread][r] != before.registers[thread][r]);
    let registers = registers.filter_map(|r| {
        let register = RegisterId(r as u32);
        let value = source.register_value(id, register, after.registers[thread][r]);
        Some(format!("{} = {value}", source.register(id, register)?))
    });
    let changed: Vec<String> = cells.chain(registers).collect();
    let changed = if changed.is_empty() { "nothing has changed".into() } else { listed(&changed, "; ") };
    let times = match passes.times {
        1 => "once".into(),
        times => format!("{} times", grouped(times as u64)),
    };
    let alone = if passes.touches_memory { " while nobody else moves" } else { "" };
    format!("{times} around in {} steps{alone}: {changed}", grouped(steps as u64))
}

/// For a step that changes the buffer: the memory cells that it changes, and the buffer afterwards. `None` if the description of the step implies
/// both: the step is a flush that empties the buffer, or another step after which the buffer has at most one entry.
fn changes(step: &Step<'_>) -> Option<String> {
    let (source, thread) = (step.source, step.event.thread.index());
    let (before, after) = (&step.before, &step.after);
    let buffer = &after.buffers[thread];
    let is_told = match step.span() {
        None => buffer.is_empty(),
        Some(_) => buffer.len() <= 1,
    };
    if before.buffers[thread] == *buffer || is_told {
        return None;
    }
    let cells = (0..after.memory.len()).filter(|&cell| after.memory[cell] != before.memory[cell]);
    let memory: Vec<String> = cells
        .filter(|&cell| source.shows(cell as u32))
        .map(|cell| source.cell_equation(cell as u32, after.memory[cell]))
        .collect();
    let memory = match memory.is_empty() {
        true => String::new(),
        false => format!("memory: {}   ", listed(&memory, source.separator())),
    };
    let entries: Vec<String> = buffer.iter().map(|e| source.entry(e)).collect();
    Some(escape(&format!("{memory}buffer of {}: {}", step.thread().name, listed(&entries, ", "))))
}

/// The effect of a step, coloured.
fn step_words(step: &Step<'_>, style: Style) -> String {
    let words = escape(&step.words());
    match (step.span(), step.effect.iter().any(|a| matches!(a, Access::Fault(_)))) {
        (_, true) => style.bad(&words),
        (None, _) => style.memory(&words),
        _ => words,
    }
}

/// The widths of the columns of a table of steps.
pub struct Table {
    number: usize,
    thread: usize,
    line: usize,
    statement: usize,
}

impl Table {
    /// Columns for step numbers of up to `number` characters and for steps at these source positions.
    pub fn new(source: Source<'_>, number: usize, places: impl Iterator<Item = Span>) -> Self {
        let names = source.program.threads.iter().map(|t| t.name.chars().count());
        let (mut line, mut statement) = (4, 0);
        let places: HashSet<Span> = places.collect();
        for place in places {
            line = line.max(source.position(place).line_name().chars().count());
            statement = statement.max(escape(&source.statement(place)).chars().count());
        }
        Table {
            number: number.max(2),
            thread: names.max().unwrap_or(0).clamp(6, 24),
            line,
            statement: statement.clamp(FEWEST_COLUMNS, MOST_COLUMNS),
        }
    }

    /// The column in which statements start.
    fn indent(&self) -> usize {
        self.number + self.thread + self.line + 8
    }

    /// The line with the names of the columns.
    pub fn heading(&self, style: Style) -> String {
        let heading = format!(
            "  {:>number$}  {:thread$}  {:>line$}  {:statement$}  what happens",
            "",
            "thread",
            "line",
            "statement",
            number = self.number,
            thread = self.thread,
            line = self.line,
            statement = self.statement,
        );
        format!("{}\n", style.dim(&heading))
    }

    /// A step, followed by a line with memory and buffers if the step changes them.
    pub fn step(&self, number: usize, step: &Step<'_>, cells: &Cells, style: Style) -> String {
        let mut text = self.row(number, step, style);
        if step.changes_memory_or_buffers() {
            let line = memory_and_buffers(step.source, &step.after, &cells.shown(step.source, &step.after));
            let _ = writeln!(text, "{}{}", " ".repeat(self.indent()), style.dim(&line));
        }
        text
    }

    /// A step in one line.
    pub fn row(&self, number: usize, step: &Step<'_>, style: Style) -> String {
        let (line, statement) = match step.shown_span() {
            Some(span) => (step.source.position(span).line_name(), escape(&step.source.statement(span))),
            None => (String::new(), String::new()),
        };
        let thread = escape(&step.thread().name);
        let words = step_words(step, style);
        let calls = step.span().and_then(|span| step.source.calls(span));
        self.draft(
            &number.to_string(),
            &Draft { thread, line, statement, words, calls, ..Draft::default() },
            style,
        )
    }

    /// A row, and the line below it if there is one.
    fn draft(&self, number: &str, draft: &Draft, style: Style) -> String {
        let row = format!(
            "  {number:>number_width$}  {:thread$}  {:>line_width$}  {:statement$}  {}",
            shortened(&draft.thread, self.thread),
            draft.line,
            shortened(&draft.statement, self.statement),
            draft.words,
            number_width = self.number,
            thread = self.thread,
            line_width = self.line,
            statement = self.statement,
        );
        let calls =
            draft.calls.as_ref().map_or(String::new(), |calls| format!("  {}", style.dim(&escape(calls))));
        let mut text = format!("{}{calls}\n", row.trim_end());
        if let Some(below) = &draft.below {
            let _ = writeln!(text, "{}{}", " ".repeat(self.indent()), style.dim(below));
        }
        text
    }
}

/// Memory, the non-empty buffers, and the holder of the lock, in one line.
fn memory_and_buffers(source: Source<'_>, state: &State, cells: &[u32]) -> String {
    let program = source.program;
    let memory: Vec<String> =
        cells.iter().map(|&cell| source.cell_equation(cell, state.memory[cell as usize])).collect();
    let mut line = match memory.is_empty() {
        true => "memory: as before".to_string(),
        false => format!("memory: {}", listed(&memory, source.separator())),
    };
    for (thread, buffer) in program.threads.iter().zip(&state.buffers).filter(|(_, b)| !b.is_empty()) {
        let entries: Vec<String> = buffer.iter().map(|e| source.entry(e)).collect();
        let _ = write!(line, "   buffer of {}: {}", thread.name, listed(&entries, ", "));
    }
    if let Some(holder) = state.lock {
        let _ = write!(line, "   lock: {}", program.thread(holder).name);
    }
    escape(&line)
}

fn listed(items: &[String], separator: &str) -> String {
    match items.len().checked_sub(MOST_SHOWN + 1) {
        Some(more) => format!("{}{separator}... ({} more)", items[..MOST_SHOWN].join(separator), more + 1),
        None => items.join(separator),
    }
}

/// The final state, and a sentence that says what it means for the property.
fn final_state(source: Source<'_>, replayed: &Replayed, property: &Property, style: Style) -> String {
    let state = replayed.last();
    let mut text = format!("  {}\n", style.dim("at the end"));
    text.push_str(&threads(source, state, &Written::after(source, &replayed.events)));
    let _ = writeln!(text, "  {}", conclusion(source, property, style));
    if let Some(mistake) = mistake(source, replayed, property) {
        let _ = writeln!(text, "  {}", style.bad(&escape(&mistake.sentence())));
    }
    text
}

/// The position of each thread and the values of its registers in a state. Only registers with a value ([`Source::has_value`]) are shown; `written`
/// has the registers that the execution has written so far.
pub fn threads(source: Source<'_>, state: &State, written: &Written) -> String {
    let program = source.program;
    let width = program.threads.iter().map(|t| t.name.chars().count()).max().unwrap_or(0).min(24);
    let mut text = String::new();
    for (id, thread) in program.threads().take(MOST_SHOWN) {
        let values = &state.registers[id.index()];
        let registers: Vec<String> = (0..)
            .map(RegisterId)
            .zip(values)
            .filter_map(|(register, value)| {
                let name =
                    source.register(id, register).filter(|_| source.has_value(id, register, written))?;
                Some(source.equation(&name, &source.register_value(id, register, *value)))
            })
            .collect();
        let registers = match registers.is_empty() {
            true => String::new(),
            false => format!("   {}", listed(&registers, source.separator())),
        };
        let place = source.place_in(id, state);
        let _ =
            writeln!(text, "    {:width$}  {}", escape(&thread.name), escape(&format!("{place}{registers}")));
    }
    if let Some(more) = program.threads.len().checked_sub(MOST_SHOWN + 1) {
        let _ = writeln!(text, "    ... and {} more threads", more + 1);
    }
    text
}

/// A sentence that says what the last state of an execution means for the property.
pub fn conclusion(source: Source<'_>, property: &Property, style: Style) -> String {
    let name = escape(&property.name);
    let stated = match property.span == Span::default() {
        true => String::new(),
        false => {
            let stated = shortened(&escape(&source.excerpt(property.span)), 100);
            format!(" ({}: {stated})", source.position(property.span))
        }
    };
    match &property.kind {
        PropertyKind::Never(_) => format!("{}{stated}", style.bad(&format!("this state violates {name}"))),
        PropertyKind::Assertions => {
            style.bad(&format!("a thread has stopped with a fault: this violates {name}"))
        }
        PropertyKind::NoDeadlock => {
            style.bad(&format!("nothing can move and not all threads have ended: this violates {name}"))
        }
        PropertyKind::Finally(Quantifier::Exists, _) => {
            format!("{}{stated}", style.good(&format!("this final state satisfies {name}")))
        }
        PropertyKind::Finally(Quantifier::Never | Quantifier::Forall, _) => {
            format!("{}{stated}", style.bad(&format!("this final state violates {name}")))
        }
    }
}
