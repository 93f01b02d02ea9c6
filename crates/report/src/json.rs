//! Verdicts and executions as JSON. `docs/json.md` describes every key.

use std::collections::BTreeMap;

use fencewright_engines::domain::DomainName;
use fencewright_engines::{Checked, Evidence, Round, Tried, Verdict};
use fencewright_lang::Position;
use fencewright_lang::facts::Storage;
use fencewright_lang::words::Words;
use fencewright_program::reference::{Access, Buffered};
use fencewright_program::{EventKind, MemoryModel, Program, Replayed, Span};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::mistake::{Mistake, mistake};
use crate::remarks::Remarks;
use crate::step::{Step, cell_of, steps};
use crate::text::{explanations, meaning, slices, up_to_versions, why};
use crate::words::Source;

/// A program with more cells than this shows only those that the execution accesses.
const FEW_CELLS: usize = 256;

/// The verdict on one property as one line of JSON with a line break.
pub fn verdict(source: Source<'_>, model: MemoryModel, checked: &Checked) -> String {
    verdict_with(source, model, checked, &RunOptions::new())
}

/// The options of a run by name, with their values; the value of a flag is empty.
pub type RunOptions = BTreeMap<String, String>;

/// Like [`verdict`], but with the engine options that were set for the run.
pub fn verdict_with(
    source: Source<'_>,
    model: MemoryModel,
    checked: &Checked,
    options: &RunOptions,
) -> String {
    let (verdict, reason) = match checked.verdict() {
        Verdict::Safe => ("safe", None),
        Verdict::Unsafe => ("unsafe", None),
        Verdict::Unknown(reason) => ("unknown", Some(why(source, reason))),
    };
    let explanations = explanations(checked);
    let growth = explanations.iter().map(|(message, span)| Growth { message, at: At::new(source, *span) });
    let stated = checked.property.span;
    let result = Result {
        file: source.name(),
        model: model.name(),
        property: &checked.property.name,
        at: At::new(source, (stated != Span::default()).then_some(stated)),
        meaning: meaning(source, &checked.property),
        verdict,
        reason,
        engine: checked.engine.as_str(),
        options: options.iter().map(|(name, value)| (name.as_str(), OptionValue::new(value))).collect(),
        checked: checked.checked(),
        enumerated: match checked.evidence() {
            Evidence::Enumerated(executions) => Some(*executions),
            _ => None,
        },
        seconds: micros(checked.seconds),
        check_seconds: micros(checked.check_seconds),
        states: checked.work.states,
        transitions: checked.work.transitions(),
        symmetry: checked.work.symmetry(),
        versions: up_to_versions(checked),
        executions: checked.work.executions().map(|e| Executions {
            complete: e.complete,
            blocked: e.blocked,
            endless: e.cut,
            events: e.events,
        }),
        slices: slices(source, checked),
        memory_mib: (checked.work.bytes as f64 / 1024.0 / 1024.0 * 100.0).round() / 100.0,
        growth: growth.collect(),
        tried: checked.tried.iter().map(TriedObject::from).collect(),
        rounds: checked.work.rounds().iter().map(RoundObject::from).collect(),
        remarks: source.into(),
        mistake: checked
            .trace()
            .and_then(|replayed| mistake(source, replayed, &checked.property))
            .map(|mistake| MistakeObject::new(source, &mistake)),
        trace: checked.trace().map(|replayed| Trace::new(source, replayed)),
    };
    line(&result)
}

/// A panic of Fencewright itself. Every command that prints JSON prints this after the answers that it has.
#[derive(Clone, Debug, Serialize)]
pub struct Bug {
    /// The version of Fencewright that panicked.
    pub version: String,
    /// The program and the arguments of the command.
    pub command: Vec<String>,
    /// The position in the source of Fencewright where the panic occurred.
    pub place: String,
    /// The name of the thread that panicked.
    pub thread: String,
    /// The panic message.
    pub message: String,
}

impl Bug {
    /// One line of JSON with a line break.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'b> {
            error: String,
            bug: &'b Bug,
        }
        let first = self.message.lines().next().unwrap_or_default();
        line(&Object { error: format!("this is a bug in fencewright: {first}"), bug: self })
    }
}

/// A question that could not be asked: a file cannot be read, is not a program, or lacks the selected property. Every command that prints JSON prints
/// this in place of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The file, or the option that does not apply.
    pub file: String,
    /// The error message, the first one if there are several.
    pub error: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The column, counted from 1.
    pub column: Option<usize>,
}

impl Failure {
    /// An error about a file. If `position` is given, its file replaces `file`.
    pub fn new(file: impl Into<String>, error: impl Into<String>, position: Option<Position<'_>>) -> Self {
        let file = position.map_or_else(|| file.into(), |at| at.file.to_owned());
        let (line, column) = (position.map(|at| at.line), position.map(|at| at.column));
        Failure { file, error: error.into(), line, column }
    }

    /// One line of JSON with a line break.
    pub fn json(&self) -> String {
        line(self)
    }
}

/// A source position, whose keys are flattened into the object that it belongs to.
#[derive(Serialize)]
pub(crate) struct At<'a> {
    line: Option<usize>,
    column: Option<usize>,
    /// The name of the file, if it is not the main file.
    #[serde(skip_serializing_if = "Option::is_none")]
    included_file: Option<&'a str>,
    /// The calls that led to the position, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallObject<'a>>,
}

/// An inlined call that led to the position.
#[derive(Serialize)]
struct CallObject<'a> {
    call: &'a str,
    line: usize,
    column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    included_file: Option<&'a str>,
}

impl<'a> At<'a> {
    pub fn new(source: Source<'a>, span: Option<Span>) -> Self {
        let position = span.map(|span| source.position(span));
        let calls = span.into_iter().flat_map(|span| source.program.calls_to(span));
        let calls = calls.map(|call| {
            let at = source.position(call.at);
            CallObject {
                call: &call.what,
                line: at.line,
                column: at.column,
                included_file: at.included_file(),
            }
        });
        At {
            calls: calls.collect(),
            line: position.map(|p| p.line),
            column: position.map(|p| p.column),
            included_file: position.and_then(|p| p.included_file()),
        }
    }
}

/// Serialises a value as one line of JSON with a line break.
pub(crate) fn line(value: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string(value).expect("all keys are strings and writing into memory cannot fail");
    text.push('\n');
    text
}

/// Seconds rounded to microseconds.
pub(crate) fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Counts of executions that were explored one by one.
#[derive(Serialize)]
struct Executions {
    complete: u64,
    blocked: u64,
    endless: u64,
    events: u64,
}

#[derive(Serialize)]
struct Result<'a> {
    file: &'a str,
    model: &'static str,
    property: &'a str,
    #[serde(flatten)]
    at: At<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    verdict: &'static str,
    reason: Option<String>,
    engine: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    options: BTreeMap<&'a str, OptionValue<'a>>,
    checked: Option<bool>,
    /// The number of executions that the second enumeration found, if one confirmed the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    enumerated: Option<u64>,
    seconds: f64,
    check_seconds: f64,
    states: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    transitions: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    symmetry: &'a [Vec<String>],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    versions: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<Executions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slices: Vec<Vec<&'a str>>,
    memory_mib: f64,
    growth: Vec<Growth<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tried: Vec<TriedObject<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rounds: Vec<RoundObject>,
    #[serde(flatten)]
    remarks: Remarks<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mistake: Option<MistakeObject<'a>>,
    trace: Option<Trace<'a>>,
}

/// The value of an option; `true` for a flag.
#[derive(Serialize)]
#[serde(untagged)]
enum OptionValue<'a> {
    Flag(bool),
    Text(&'a str),
}

impl<'a> OptionValue<'a> {
    fn new(value: &'a str) -> Self {
        if value.is_empty() { OptionValue::Flag(true) } else { OptionValue::Text(value) }
    }
}

/// The memory error at the end of the execution.
#[derive(Serialize)]
struct MistakeObject<'a> {
    kind: &'static str,
    message: String,
    thread: &'a str,
    #[serde(flatten)]
    at: At<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    freed: Option<FreedObject<'a>>,
}

/// The object that a memory error concerns.
#[derive(Serialize)]
struct ObjectObject<'a> {
    name: Option<&'a str>,
    #[serde(rename = "type")]
    ty: &'a str,
    storage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(flatten)]
    at: At<'a>,
}

/// The thread that freed an object, or whose block with the object ended, and the position.
#[derive(Serialize)]
struct FreedObject<'a> {
    thread: &'a str,
    #[serde(flatten)]
    at: At<'a>,
}

impl<'a> MistakeObject<'a> {
    fn new(source: Source<'a>, mistake: &Mistake<'a>) -> Self {
        let object = mistake.object.map(|object| ObjectObject {
            name: object.name.as_deref(),
            ty: &object.ty,
            storage: match object.storage {
                Storage::Static => "static",
                Storage::Local => "local",
                Storage::Heap => "heap",
            },
            number: mistake.time,
            at: At::new(source, Some(object.span)),
        });
        let freed =
            mistake.freed.map(|(thread, span)| FreedObject { thread, at: At::new(source, Some(span)) });
        MistakeObject {
            kind: mistake.kind.as_str(),
            message: mistake.sentence(),
            thread: mistake.thread,
            at: At::new(source, Some(mistake.at)),
            elements: mistake.elements,
            object,
            freed,
        }
    }
}

#[derive(Serialize)]
struct Growth<'a> {
    message: &'a str,
    #[serde(flatten)]
    at: At<'a>,
}

/// An engine that was tried without success.
#[derive(Serialize)]
struct TriedObject<'a> {
    engine: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'static str>,
    model: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    threads: &'a [String],
    states: u64,
    seconds: f64,
    reason: &'a str,
}

impl<'a> From<&'a Tried> for TriedObject<'a> {
    fn from(tried: &'a Tried) -> Self {
        TriedObject {
            engine: tried.engine.as_str(),
            domain: tried.domain.map(DomainName::as_str),
            model: tried.model.name(),
            threads: &tried.threads,
            states: tried.states,
            seconds: micros(tried.seconds),
            reason: &tried.reason,
        }
    }
}

/// A round of the context-bounded search.
#[derive(Serialize)]
struct RoundObject {
    contexts: u32,
    states: u64,
    seconds: f64,
}

impl From<&Round> for RoundObject {
    fn from(round: &Round) -> Self {
        RoundObject { contexts: round.contexts, states: round.states, seconds: micros(round.seconds) }
    }
}

/// An execution. Its steps are computed while they are written, because there may be too many to keep in memory.
pub(crate) struct Trace<'a> {
    source: Source<'a>,
    replayed: &'a Replayed,
    cells: Vec<u32>,
    /// The source names of the program's parts, if the execution is of a variant of the loaded program; `None` for the loaded program itself.
    words: Option<Words>,
}

impl<'a> Trace<'a> {
    /// An execution of a variant of the loaded program.
    pub(crate) fn of(program: &'a Program, source: Source<'a>, replayed: &'a Replayed) -> Self {
        let words = Some(Words::new(program, source.facts));
        Trace { words, ..Trace::new(Source { program, ..source }, replayed) }
    }

    pub(crate) fn new(source: Source<'a>, replayed: &'a Replayed) -> Self {
        let all = source.program.cells();
        let cells = if all <= FEW_CELLS {
            (0..all as u32).collect()
        } else {
            let mut touched: Vec<u32> = replayed.effects.iter().flatten().filter_map(cell_of).collect();
            touched.sort_unstable();
            touched.dedup();
            touched
        };
        Trace { source, replayed, cells, words: None }
    }
}

impl Serialize for Trace<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let source = Source { words: self.words.as_ref().unwrap_or(self.source.words), ..self.source };
        let steps = steps(source, self.replayed);
        let mut list = serializer.serialize_seq(Some(steps.len()))?;
        for (n, step) in steps.enumerate() {
            list.serialize_element(&StepObject::new(n + 1, &step, &self.cells))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct StepObject<'a> {
    step: usize,
    thread: &'a str,
    event: &'static str,
    #[serde(flatten)]
    at: At<'a>,
    statement: Option<String>,
    reads: Vec<Read>,
    writes: Vec<Write>,
    fault: Option<&'static str>,
    /// The message of a failed assertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    memory: Memory<'a>,
    buffers: Buffers<'a>,
    /// The effect in words; only for translated programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
}

#[derive(Serialize)]
struct Read {
    cell: String,
    value: i64,
    #[serde(flatten)]
    named: Named,
    from: &'static str,
}

#[derive(Serialize)]
struct Write {
    cell: String,
    value: i64,
    #[serde(flatten)]
    named: Named,
    to: &'static str,
}

/// A cell and its value by their source names, if the program is a translation.
#[derive(Default, Serialize)]
struct Named {
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<String>,
}

impl Named {
    fn new(source: Source<'_>, cell: u32, value: i64) -> Self {
        match source.is_translated() && source.shows(cell) {
            true => Named { place: Some(source.cell(cell)), holds: Some(source.cell_value(cell, value)) },
            false => Named::default(),
        }
    }
}

impl<'a> StepObject<'a> {
    fn new(number: usize, step: &Step<'a>, cells: &'a [u32]) -> Self {
        let program = step.source.program;
        let place = |buffered: bool| if buffered { "buffer" } else { "memory" };
        let mut object = StepObject {
            step: number,
            thread: &step.thread().name,
            event: match step.event.kind {
                EventKind::Step { .. } => "step",
                EventKind::Flush { .. } => "flush",
            },
            at: At::new(step.source, step.span()),
            statement: step.span().map(|s| step.source.statement(s)),
            reads: Vec::new(),
            writes: Vec::new(),
            fault: None,
            text: None,
            memory: Memory { step: step.clone(), cells },
            buffers: Buffers { step: step.clone() },
            words: step.source.hides().then(|| step.words()).filter(|words| !words.is_empty()),
        };
        for access in step.effect {
            match *access {
                Access::Read { cell, value, buffered } => {
                    let named = Named::new(step.source, cell, value);
                    let (cell, from) = (program.cell_name(cell), place(buffered));
                    object.reads.push(Read { cell, value, named, from });
                }
                Access::Write { cell, value, buffered } => {
                    let named = Named::new(step.source, cell, value);
                    let (cell, to) = (program.cell_name(cell), place(buffered));
                    object.writes.push(Write { cell, value, named, to });
                }
                Access::Fault(fault) => {
                    object.fault = Some(fault.describe());
                    object.text = program.text_of(fault);
                }
            }
        }
        object
    }
}

/// The cells that are shown, with their values after a step.
struct Memory<'a> {
    step: Step<'a>,
    cells: &'a [u32],
}

impl Serialize for Memory<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len()))?;
        for &cell in self.cells {
            let name = self.step.source.program.cell_name(cell);
            map.serialize_entry(&name, &self.step.after.memory[cell as usize])?;
        }
        map.end()
    }
}

/// The non-empty buffers after a step.
struct Buffers<'a> {
    step: Step<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Store { cell: String, value: i64 },
    Barrier(&'static str),
}

impl Serialize for Buffers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let program = self.step.source.program;
        let buffers = program.threads.iter().zip(&self.step.after.buffers);
        let mut map = serializer.serialize_map(None)?;
        for (thread, buffer) in buffers.filter(|(_, buffer)| !buffer.is_empty()) {
            let entries = buffer.iter().map(|entry| match *entry {
                Buffered::Store { cell, value } => Entry::Store { cell: program.cell_name(cell), value },
                Buffered::Barrier => Entry::Barrier("barrier"),
            });
            map.serialize_entry(&thread.name, &entries.collect::<Vec<_>>())?;
        }
        map.end()
    }
}
