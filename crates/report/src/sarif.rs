//! Answers as SARIF 2.1.0, the format in which tools of static analysis tell what they found: editors and code hosts show it at the lines
//! it is about.
//!
//! A violation is a result, at the place where it shows: the statement that faults, otherwise the property. Its execution is a code flow with one
//! flow for each thread; `executionOrder` puts their steps in one order. Warnings are results too. What was proved, and what is
//! unknown and why, is no problem of the program and goes into the notifications of the run.

use std::collections::BTreeMap;

use fencewright_engines::{Checked, Verdict};
use fencewright_program::{MemoryModel, Property, PropertyKind, Replayed, Span};
use serde_sarif::sarif::{
    ArtifactLocation, CodeFlow, Invocation, Location, Message, MultiformatMessageString, Notification,
    PhysicalLocation, Region, ReportingDescriptor, Result as Finding, ResultLevel, Run, Sarif, ThreadFlow,
    ThreadFlowLocation, Tool, ToolComponent,
};

use crate::step::{Step, steps};
use crate::text::{seconds, why};
use crate::words::Source;

/// A longer execution is shown without its beginning.
const MOST_STEPS: usize = 10_000;

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
#[derive(Debug, Default)]
pub struct Log {
    results: Vec<Finding>,
    notifications: Vec<Notification>,
    /// Warnings by place and text: several answers may be about a program that has some.
    warnings: BTreeMap<(String, String), Finding>,
}

impl Log {
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
            Verdict::Unsafe => self.results.push(violation(source, model, checked)),
        }
    }

    /// Adds all that another one says, behind what this one says.
    pub fn append(&mut self, mut other: Log) {
        self.results.append(&mut other.results);
        self.notifications.append(&mut other.notifications);
        self.warnings.append(&mut other.warnings);
    }

    /// Adds that a program could not be asked about.
    pub fn fail(&mut self, file: &str, message: &str) {
        self.note(&format!("{file}: {message}"), "error");
    }

    /// Adds the warnings about a program.
    fn warn(&mut self, source: Source<'_>) {
        for warning in source.warnings {
            let key = (source.position(warning.span).to_string(), warning.message.clone());
            self.warnings.entry(key).or_insert_with(|| {
                Finding::builder()
                    .message(message(&warning.message))
                    .rule_id("warning")
                    .level(ResultLevel::Warning)
                    .locations(vec![location(source, warning.span, None)])
                    .build()
            });
        }
    }

    fn note(&mut self, text: &str, level: &str) {
        self.notifications.push(Notification::builder().message(message(text)).level(level).build());
    }

    /// The whole file; whether everything was asked that should be.
    pub fn finish(self, complete: bool) -> String {
        let invocation = Invocation::builder()
            .execution_successful(complete)
            .tool_execution_notifications(self.notifications)
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
            .results(self.results.into_iter().chain(self.warnings.into_values()).collect::<Vec<_>>())
            .column_kind("unicodeCodePoints")
            .build();
        let sarif = Sarif::builder().version("2.1.0").runs(vec![run]).build();
        let mut text = serde_json::to_string_pretty(&sarif)
            .expect("all keys are strings and writing into memory cannot fail");
        text.push('\n');
        text
    }
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

fn violation(source: Source<'_>, model: MemoryModel, checked: &Checked) -> Finding {
    let property = &checked.property;
    let mut text = format!("{} is violated under {}", property.name, model.name());
    let mut at = property.span;
    let mut flows = Vec::new();
    if let Some(replayed) = checked.trace() {
        if let Some((span, words)) = shown_at(source, replayed, property) {
            at = span;
            text.push_str(&format!(": {words}"));
        }
        flows.push(code_flow(source, replayed));
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

/// The last step of an execution and what it does, if that is what a property is about.
pub fn shown_at(source: Source<'_>, replayed: &Replayed, property: &Property) -> Option<(Span, String)> {
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

/// A path as a reference: everything that is not a plain character of one is written as its bytes.
fn uri(path: &str) -> String {
    let mut uri = String::new();
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
