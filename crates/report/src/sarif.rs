//! Answers as SARIF 2.1.0, the format in which tools of static analysis tell what they found: editors and code hosts show it at the lines
//! it is about.
//!
//! A violation is a result, at the place where it shows: the statement that faults, otherwise the property. Its execution is a code flow with one
//! flow for each thread; `executionOrder` puts their steps in one order. Warnings are results too. What was proved, and what is
//! unknown and why, is no problem of the program and goes into the notifications of the run.

use std::collections::BTreeMap;
use std::io;

use fencewright_engines::{Checked, Verdict};
use fencewright_program::{MemoryModel, Property, PropertyKind, Replayed, Span};
use serde::Serialize;
use serde_sarif::sarif::{
    ArtifactLocation, CodeFlow, Invocation, Location, Message, MultiformatMessageString, Notification,
    PhysicalLocation, Region, ReportingDescriptor, Result as Finding, ResultLevel, Run, Sarif, ThreadFlow,
    ThreadFlowLocation, Tool, ToolComponent,
};

use crate::mistake::mistake;
use crate::room::Room;
use crate::step::{Step, steps};
use crate::text::{seconds, why};
use crate::words::Source;

/// A longer execution is shown without its beginning.
const MOST_STEPS: usize = 10_000;
/// All executions of a file together take at most so many bytes; further violations are there without theirs.
const MOST_BYTES: usize = 32 << 20;

/// The location of a step takes no less.
const LEAST_BYTES: usize = 200;

/// What the file is.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The rules that a program can break, and what they say.
const RULES: [(&str, &str); 7] = [
    ("assertion", "An assertion fails, or a step faults"),
    ("forbidden-state", "A state is reached that the program forbids"),
    ("final-state", "The program ends in a state in which it must not end"),
    ("deadlock", "No thread can go on, and not all have ended"),
    ("termination", "Threads wait for ever"),
    ("memory", "Memory is used that is not there, not any more, or not yet written"),
    ("warning", "Somebody should look at this, although it is no violation"),
];

/// What is said about programs, as it comes.
#[derive(Debug)]
pub struct Log {
    /// Each as JSON: a structure of the standard takes ten times as much.
    results: Vec<String>,
    notifications: Vec<String>,
    /// Warnings by place and text: several answers may be about a program that has some.
    warnings: BTreeMap<(String, String), String>,
    /// Whether everything could be asked that should be.
    complete: bool,
    room: Room,
}

impl Default for Log {
    fn default() -> Self {
        Log::within(Room::new(MOST_BYTES))
    }
}

impl Log {
    fn within(room: Room) -> Self {
        let (results, notifications, warnings) = (Vec::new(), Vec::new(), BTreeMap::new());
        Log { results, notifications, warnings, complete: true, room }
    }

    /// An empty one that will be a part of this one: together they are not larger than one may be.
    pub fn part(&self) -> Log {
        Log::within(self.room.clone())
    }

    /// Adds the answer about a property.
    pub fn add(&mut self, source: Source<'_>, model: MemoryModel, checked: &Checked) {
        self.warn(source);
        let property = &checked.property;
        let about = format!("{}: {} under {}", source.name(), property.name, model.name());
        match checked.verdict() {
            Verdict::Safe => {
                let how = format!("safe ({}, {})", checked.engine, seconds(checked.seconds));
                self.note(&format!("{about}: {how}"), "note");
            }
            Verdict::Unknown(reason) => {
                let text = format!("{about}: unknown: {}", why(source, reason));
                self.note(&text, "warning");
            }
            Verdict::Unsafe => {
                // What certainly is too large is not even made.
                let steps = checked.trace().map_or(0, |replayed| replayed.events.len().min(MOST_STEPS));
                let mut has_room = self.room.has(steps * LEAST_BYTES);
                let mut result = json(&violation(source, model, checked, has_room));
                has_room = has_room && self.room.take(result.len());
                if !has_room {
                    result = json(&violation(source, model, checked, false));
                }
                self.results.push(result);
            }
        }
    }

    /// Adds all that another one says, behind what this one says.
    pub fn append(&mut self, mut other: Log) {
        self.results.append(&mut other.results);
        self.notifications.append(&mut other.notifications);
        self.warnings.append(&mut other.warnings);
        self.complete &= other.complete;
    }

    /// Adds that a program could not be asked about.
    pub fn fail(&mut self, file: &str, message: &str) {
        self.complete = false;
        self.note(&format!("{file}: {message}"), "error");
    }

    /// Adds the warnings about a program.
    fn warn(&mut self, source: Source<'_>) {
        for warning in source.warnings {
            let key = (source.position(warning.span).to_string(), warning.message.clone());
            self.warnings.entry(key).or_insert_with(|| {
                json(
                    &Finding::builder()
                        .message(message(&warning.message))
                        .rule_id("warning")
                        .level(ResultLevel::Warning)
                        .locations(vec![location(source, warning.span, None)])
                        .build(),
                )
            });
        }
    }

    fn note(&mut self, text: &str, level: &str) {
        let note = Notification::builder().message(message(text)).level(level).build();
        self.notifications.push(json(&note));
    }

    /// Writes the whole file; whether everything was asked that should be.
    pub fn write(&self, complete: bool, to: &mut dyn io::Write) -> io::Result<()> {
        let invocation = Invocation::builder()
            .execution_successful(complete && self.complete)
            .tool_execution_notifications(Vec::new())
            .build();
        let rule = |(id, text): (&str, &str)| {
            let text = MultiformatMessageString::builder().text(text).build();
            ReportingDescriptor::builder().id(id).short_description(text).build()
        };
        let driver = ToolComponent::builder()
            .name("Fencewright")
            .version(env!("CARGO_PKG_VERSION"))
            .rules(RULES.map(rule).to_vec())
            .build();
        let run = Run::builder()
            .tool(Tool::builder().driver(driver).build())
            .invocations(vec![invocation])
            .results(Vec::new())
            .column_kind("unicodeCodePoints")
            .build();
        let sarif = Sarif::builder().schema(SCHEMA).version("2.1.0").runs(vec![run]).build();
        let mut text = serde_json::to_string_pretty(&sarif)
            .expect("all keys are strings and writing into memory cannot fail");
        text.push('\n');
        // What there may be much of is put at its place, one in a line. Quotes within texts are escaped, so there is one place for each.
        let notes = ("\"toolExecutionNotifications\": [", self.notifications.iter().collect::<Vec<_>>());
        let results = ("\"results\": [", self.results.iter().chain(self.warnings.values()).collect());
        let mut places: Vec<(usize, Vec<&String>)> = [notes, results]
            .into_iter()
            .filter_map(|(place, all)| Some((text.find(place)? + place.len(), all)))
            .collect();
        places.sort_by_key(|(at, _)| *at);
        let mut written = 0;
        for (at, all) in places {
            to.write_all(&text.as_bytes()[written..at])?;
            for (n, json) in all.into_iter().enumerate() {
                write!(to, "{}{json}", if n == 0 { "\n" } else { ",\n" })?;
            }
            written = at;
        }
        to.write_all(&text.as_bytes()[written..])
    }
}

/// A part of the file in one line.
fn json(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("all keys are strings and writing into memory cannot fail")
}

/// The name of the rule that a property is.
pub fn rule(property: &Property) -> &'static str {
    match (&property.kind, property.name.as_str()) {
        (_, "memory") => "memory",
        (_, "termination") => "termination",
        (PropertyKind::Assertions, _) => "assertion",
        (PropertyKind::NoDeadlock, _) => "deadlock",
        (PropertyKind::Never(_), _) => "forbidden-state",
        (PropertyKind::Finally(..), _) => "final-state",
    }
}

/// A violation, with its execution if there is room for that.
fn violation(source: Source<'_>, model: MemoryModel, checked: &Checked, has_room: bool) -> Finding {
    let property = &checked.property;
    let mut text = format!("{} is violated under {}", property.name, model.name());
    let mut at = property.span;
    let mut flows = Vec::new();
    if let Some(replayed) = checked.trace() {
        if let Some((span, words)) = shown_at(source, replayed, property) {
            at = span;
            text.push_str(&format!(": {words}"));
        }
        match has_room {
            true => flows.push(code_flow(source, replayed)),
            false => text.push_str("; its execution is left out, the file would become too large"),
        }
    }
    if checked.happens_under_sc {
        text.push_str("; it happens under sc too: no fence can help");
    }
    let locations = if at == Span::default() { Vec::new() } else { vec![location(source, at, None)] };
    Finding::builder()
        .message(message(&text))
        .rule_id(rule(property))
        .level(ResultLevel::Error)
        .locations(locations)
        .code_flows(flows)
        .build()
}

/// Where an execution goes wrong and how: the mistake that is known, or else the last step and what it does, if that is what a property is about.
pub fn shown_at(source: Source<'_>, replayed: &Replayed, property: &Property) -> Option<(Span, String)> {
    if let Some(mistake) = mistake(source, replayed, property) {
        return Some((mistake.at, mistake.sentence()));
    }
    let last = steps(source, replayed).filter(|step| step.span().is_some()).last()?;
    let is_own = matches!(property.kind, PropertyKind::Assertions) || property.span == Span::default();
    is_own.then(|| last.span().map(|span| (span, last.words()))).flatten()
}

fn code_flow(source: Source<'_>, replayed: &Replayed) -> CodeFlow {
    let skipped = replayed.events.len().saturating_sub(MOST_STEPS);
    let mut flows: BTreeMap<u32, Vec<ThreadFlowLocation>> = BTreeMap::new();
    for (n, step) in steps(source, replayed).enumerate().skip(skipped) {
        let flow = flows.entry(step.event.thread.0).or_default();
        flow.push(step_location(source, n + 1, &step));
    }
    let flow = |(thread, locations): (u32, Vec<ThreadFlowLocation>)| {
        let name = &source.program.threads[thread as usize].name;
        ThreadFlow::builder().id(name).locations(locations).build()
    };
    let flows: Vec<ThreadFlow> = flows.into_iter().map(flow).collect();
    let text = match skipped {
        0 => "the execution".to_string(),
        _ => format!("the execution without its first {skipped} steps"),
    };
    CodeFlow::builder().message(message(&text)).thread_flows(flows).build()
}

fn step_location(source: Source<'_>, number: usize, step: &Step<'_>) -> ThreadFlowLocation {
    let words = format!("{}: {}", step.thread().name, step.words());
    let at = match step.span() {
        Some(span) => location(source, span, Some(&words)),
        None => Location::builder().message(message(&words)).build(),
    };
    ThreadFlowLocation::builder().location(at).execution_order(number as i64).build()
}

fn location(source: Source<'_>, span: Span, words: Option<&str>) -> Location {
    let (start, end) = (source.position(span), source.position(Span { start: span.end, ..span }));
    let region = Region::builder()
        .start_line(start.line as i64)
        .start_column(start.column as i64)
        .end_line(end.line as i64)
        .end_column(end.column as i64)
        .build();
    let artifact = ArtifactLocation::builder().uri(uri(start.file)).build();
    let place = PhysicalLocation::builder().artifact_location(artifact).region(region).build();
    match words {
        Some(words) => Location::builder().physical_location(place).message(message(words)).build(),
        None => Location::builder().physical_location(place).build(),
    }
}

fn message(text: &str) -> Message {
    // Braces would be placeholders.
    Message::builder().text(text.replace('{', "{{").replace('}', "}}")).build()
}

/// A path as a reference: everything that is not a plain character of one is written as its bytes. It is relative to where the command runs,
/// as code hosts expect it, unless the path is absolute.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    let path = path.trim_start_matches("./");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(byte as char)
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
