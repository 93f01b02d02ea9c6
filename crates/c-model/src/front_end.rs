//! The front end of C: its name, options, properties and messages.

use std::ops::Range;

use fencewright_code::spinning::add_waiting_places;
use fencewright_front_end::edit::{Change, Edit};
use fencewright_front_end::facts::Facts;
use fencewright_front_end::orders::Ordered;
use fencewright_front_end::words::{Meaning, Spot, Words};
use fencewright_front_end::{COptions, FrontEnd, Input, Loaded, Options, Parsed, Spins, between};
use fencewright_program::{Formula, Program, Property, PropertyKind, Span};
use fencewright_text::{Diagnostic, Stop};

use crate::{c, edit, export, orders};

/// Tells the user to what exactly verdicts about a C program apply.
const MEANING: &str = "this is about the program as written, each access one instruction in program order, on x86 (or PSO) hardware; \
    it is no verdict about the C11 memory model or ARM; plain accesses that race are listed as warnings, because a compiler may move them";

/// Maximum size of a source in bytes. Generated sources may be long.
const MOST_BYTES: usize = 16 << 20;

/// The front end of C.
pub struct C;

impl FrontEnd for C {
    fn name(&self) -> &'static str {
        "c"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("c")
    }

    /// Always false, because the text of many other languages looks like C.
    fn detect(&self, _text: &str) -> bool {
        false
    }

    fn most_bytes(&self) -> usize {
        MOST_BYTES
    }

    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        c(input)
    }

    fn meaning(&self) -> Option<&'static str> {
        Some(MEANING)
    }

    fn finish(
        &self,
        program: &mut Program,
        facts: &Facts,
        options: &Options,
        stop: &Stop<'_>,
    ) -> Result<Words, Vec<Diagnostic>> {
        let words = Words::new(program, facts);
        properties(program, &words, &options.c, stop)?;
        Ok(words)
    }

    fn copies_texts(&self) -> bool {
        true
    }

    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
        edit::changes(text, edits)
    }

    fn orders(&self, loaded: &Loaded, stop: &Stop<'_>) -> Option<Vec<Ordered>> {
        orders::orders(loaded, stop)
    }

    fn has_locked_stores(&self) -> bool {
        true
    }

    fn can_lock(&self, store: &str) -> bool {
        edit::stronger(store).is_some()
    }

    /// Always empty, because the preprocessor handles the macros given by `-D`.
    fn constants(&self, _options: &Options) -> Result<Vec<(String, i64)>, Diagnostic> {
        Ok(Vec::new())
    }

    fn own_options(&self, options: &Options) -> Options {
        options.clone()
    }

    /// A header (`.h`) is C, but not a program.
    fn is_program(&self, extension: Option<&str>) -> bool {
        extension.is_none()
    }

    fn more_properties(&self) -> &'static [&'static str] {
        &["termination"]
    }

    fn blocked(&self) -> &'static str {
        "mutexes, joins, condition variables and semaphores block; threads that spin can move: --property termination"
    }

    fn word(&self, meaning: &Meaning<'_>, line: &str) -> String {
        match meaning {
            Meaning::Number(number) => number.to_string(),
            Meaning::Undefined => "undefined".into(),
            Meaning::Null => "null".into(),
            Meaning::Function(name) => (*name).to_string(),
            Meaning::Free => "free".into(),
            Meaning::Held(thread) => format!("held by {thread}"),
            Meaning::Pointer(spot) if spot.object.literal.is_some() => {
                let element = spot.path.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                match element.filter(|element| *element != "0") {
                    Some(element) => format!("{} + {element}", object(spot)),
                    None => object(spot),
                }
            }
            Meaning::Pointer(spot) if spot.object.name.is_none() && spot.path.is_empty() => {
                format!("{} from line {line}", object(spot))
            }
            Meaning::Pointer(spot) => format!("&{}", place(spot)),
            Meaning::Behind(spot) => format!("&{} + 1", place(spot)),
            Meaning::Place(spot) => place(spot),
        }
    }

    fn statement_at(&self, line: &str, part: Range<usize>) -> Range<usize> {
        between(line, part, &[';', '{', '}'], &[';', '{', '}'])
    }

    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>> {
        export::c(&loaded.file, &loaded.program, &loaded.title())
    }
}

/// Names an object in messages: `mutex`, `node 2`, `"text"`.
fn object(spot: &Spot<'_>) -> String {
    if let Some(text) = &spot.object.literal {
        return format!("{text:?}");
    }
    match spot.number {
        Some(number) => format!("{} {number}", spot.object.noun),
        None => spot.object.noun.clone(),
    }
}

/// Names a place in an object in messages: `mutex.interested[0]`, `node 2->next`, `i of worker_1`.
fn place(spot: &Spot<'_>) -> String {
    let path = match spot.path.strip_prefix('.') {
        Some(member) if spot.object.name.is_none() => format!("->{member}"),
        _ => spot.path.to_string(),
    };
    let owner = spot.object.owner.as_ref().map_or(String::new(), |thread| format!(" of {thread}"));
    format!("{}{path}{owner}", object(spot))
}

/// Adds the properties that every C program has and that the translation does not state: `assertions` and `memory`, even if the translation has
/// already shown that they hold; and `termination`, if a waiting loop is one step and waits for condition variables are exact.
fn properties(
    program: &mut Program,
    words: &Words,
    options: &COptions,
    stop: &Stop<'_>,
) -> Result<(), Vec<Diagnostic>> {
    let stated = |program: &Program, name: &str| program.properties.iter().any(|p| p.name == name);
    if !stated(program, "assertions") {
        program.properties.push(Property::assertions());
    }
    if !stated(program, "memory") {
        let never = PropertyKind::Never(Formula::Const(0));
        program.properties.push(Property { name: "memory".into(), kind: never, span: Span::default() });
    }
    if options.spins == Spins::Step && options.exact_waits {
        add_waiting_places(program, &words.exits, stop)?;
        program.properties.push(Property { name: "termination".into(), ..Property::deadlock() });
    }
    Ok(())
}
