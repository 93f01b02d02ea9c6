//! Answers as SARIF 2.1.0, the exchange format of static analysers: editors and code hosts show each result at its source line.
//!
//! A violation is a result, located at the faulting statement or else at the property. Its execution is a code flow with one thread flow per
//! thread; `executionOrder` gives the interleaving. Warnings are results too. Proved properties and unknown verdicts are not
//! problems of the program and become notifications of the run.

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

/// Maximum number of steps shown of an execution; of a longer execution, only the last steps are shown.
const MOST_STEPS: usize = 10_000;
/// Maximum size of all executions in a file, in bytes; further violations are reported without executions.
const MOST_BYTES: usize = 32 << 20;

/// A lower bound on the size of a step in the file, in bytes.
const LEAST_BYTES: usize = 200;

/// The JSON schema of the file.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The SARIF rules, each with its description.
const RULES: [(&str, &str); 7] = [
    ("assertion", "An assertion fails, or a step faults"),
    ("forbidden-state", "A state is reached that the program forbids"),
    ("final-state", "The program ends in a state in which it must not end"),
    ("deadlock", "No thread can go on, and not all have ended"),
    ("termination", "Threads wait for ever"),
    ("memory", "Memory is used that is not there, not any more, or not yet written"),
    ("warning", "Somebody should look at this, although it is no violation"),
];

/// A SARIF log, which is filled as answers are found.
#[derive(Debug)]
pub struct Log {
    /// The results as serialised JSON, because the structures of the SARIF library need ten times as much memory.
    results: Vec<String>,
    notifications: Vec<String>,
    /// The warnings as serialised JSON, by position and message, because several answers may repeat the warnings of a program.
    warnings: BTreeMap<(String, String), String>,
    /// Whether all questions could be asked.
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

    /// An empty log that shares this log's limit on bytes, to be appended later.
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
                // If the execution would exceed the limit on bytes, it is not even built.
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

    /// Appends the entries of another log.
    pub fn append(&mut self, mut other: Log) {
        self.results.append(&mut other.results);
        self.notifications.append(&mut other.notifications);
        self.warnings.append(&mut other.warnings);
        self.complete &= other.complete;
    }

    /// Adds an error: the program could not be checked.
    pub fn fail(&mut self, file: &str, message: &str) {
        self.complete = false;
        self.note(&format!("{file}: {message}"), "error");
    }

    /// Adds the warnings about a program, and what was assumed about it, as warnings; each only once.
    fn warn(&mut self, source: Source<'_>) {
        let assumed = source.facts.assumed.iter();
        let assumed =
            assumed.map(|one| fencewright_lang::Diagnostic::new(one.span, format!("assumed: {one}")));
        for warning in source.warnings.iter().cloned().chain(assumed) {
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

    /// Writes the whole file. `complete` says whether the run answered all of its questions.
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
        // Writes the entries into the empty arrays of the serialised log. The keys searched for occur only once, because quotes in texts are escaped.
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

/// Serialises a part of the file as one line.
fn json(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("all keys are strings and writing into memory cannot fail")
}

/// The SARIF rule of a property.
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

/// A violation, with its execution if there is room for it.
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

/// The source position and the message of a violation: those of the memory error, if there is one; otherwise, if the property is about assertions or
/// has no position of its own, those of the last step.
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
        if step.is_hidden() {
            continue;
        }
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
    let at = match step.shown_span() {
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
    // SARIF treats braces as placeholders.
    Message::builder().text(text.replace('{', "{{").replace('}', "}}")).build()
}

/// A path as a URI reference, percent-encoded. A relative path stays relative to the working directory, as code hosts expect.
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
