//! The memory error at the end of an execution: its kind, the object, and the thread that freed the object. The front end lists the checks at each
//! location and their meanings ([`Memory`](fencewright_lang::facts::Memory)); the last state determines which check failed.

use fencewright_kit::accesses::written_register;
use fencewright_lang::facts::{About, Made, Object, Part, Storage};
use fencewright_program::reference::Access;
use fencewright_program::{EventKind, Property, Replayed, Span, State, ThreadId};

use crate::step::steps;
use crate::words::{Source, shortened};

/// The name of the property about memory.
const MEMORY: &str = "memory";
/// Maximum length of an excerpt of the source, in characters.
const LONGEST_TEXT: usize = 60;

/// The kind of a memory error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An access to freed memory.
    UseAfterFree,
    /// A second `free` of the same memory.
    DoubleFree,
    /// An access to a local variable after the end of its lifetime.
    DanglingLocal,
    /// An access beyond the bounds of an array, or a pointer moved beyond them.
    OutOfBounds,
    /// A null pointer was dereferenced.
    NullPointer,
    /// A pointer that points to no object was dereferenced.
    WildPointer,
    /// A value that was never written was used.
    Uninitialised,
    /// A pointer that is not the start of an allocation was freed.
    BadFree,
    /// Any other failed memory check.
    Other,
}

impl Kind {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::UseAfterFree => "use-after-free",
            Kind::DoubleFree => "double-free",
            Kind::DanglingLocal => "dangling-local",
            Kind::OutOfBounds => "out-of-bounds",
            Kind::NullPointer => "null-pointer",
            Kind::WildPointer => "wild-pointer",
            Kind::Uninitialised => "uninitialised",
            Kind::BadFree => "bad-free",
            Kind::Other => "other",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Kind::UseAfterFree => "use after free",
            Kind::DoubleFree => "double free",
            Kind::DanglingLocal => "a local variable is used that is gone",
            Kind::OutOfBounds => "out of bounds",
            Kind::NullPointer => "a null pointer is followed",
            Kind::WildPointer => "a pointer is followed that points to no object",
            Kind::Uninitialised => "the behaviour depends on an uninitialised value",
            Kind::BadFree => "what is freed is not the start of an allocation",
            Kind::Other => "a wrong access",
        }
    }
}

/// A memory error at the end of an execution.
#[derive(Clone, Copy)]
pub struct Mistake<'a> {
    source: Source<'a>,
    /// The kind of the error.
    pub kind: Kind,
    /// The thread that makes the error.
    pub thread: &'a str,
    /// The source text with the error.
    pub at: Span,
    /// The message of the check, if the front end gave one.
    said: &'a str,
    /// For an access out of bounds, the distance in elements: beyond the end of the array or, if negative, before its start.
    pub elements: Option<i64>,
    /// The object that is accessed, if it is known.
    pub object: Option<&'a Object>,
    /// If one allocation in a loop creates several objects, the number of this object among them, from 1.
    pub time: Option<u64>,
    /// If an uninitialised value was used, the name of the register with this value, if it is a variable of C.
    register: Option<&'a str>,
    /// The thread that freed the object or whose block with the object ended, and the position.
    pub freed: Option<(&'a str, Span)>,
}

/// The memory error at the end of an execution; `None` if `property` is not about memory or no check fails in the last state.
pub fn mistake<'a>(source: Source<'a>, replayed: &Replayed, property: &Property) -> Option<Mistake<'a>> {
    if property.name != MEMORY {
        return None;
    }
    let memory = &source.facts.memory;
    let made = memory.mistake(source.program, replayed.last())?;
    let (kind, elements) = kind(source, replayed, &made);
    // A pointer that was moved out of its array may point into another object, so no object is reported for it.
    let part = made
        .part
        .or_else(|| last_before(source, &made))
        .filter(|_| !matches!(made.claim.about, About::Moved) && kind != Kind::WildPointer);
    let read = match &made.claim.about {
        About::Undefined { register: Some(register) } => read_into(source, replayed, made.thread, register),
        _ => None,
    };
    let part = read.or(part);
    let object = part.and_then(|part| memory.objects.get(part.object));
    let said = match &made.claim.about {
        About::Said(text) => text.as_str(),
        _ => "",
    };
    let register = match &made.claim.about {
        About::Undefined { register } => register.as_deref(),
        _ => None,
    };
    let freed = part
        .filter(|_| matches!(kind, Kind::UseAfterFree | Kind::DoubleFree | Kind::DanglingLocal))
        .and_then(|part| freed(source, replayed, part));
    Some(Mistake {
        source,
        kind,
        thread: &source.program.thread(made.thread).name,
        at: made.mistake.span,
        said,
        elements,
        object,
        time: part.filter(|_| object.is_some_and(|object| object.times > 1)).map(|part| part.time + 1),
        register,
        freed,
    })
}

/// The kind of the error, and for an access out of bounds the distance in elements.
fn kind(source: Source<'_>, replayed: &Replayed, made: &Made<'_>) -> (Kind, Option<i64>) {
    let storage = made.part.and_then(|part| source.facts.memory.objects.get(part.object));
    match &made.claim.about {
        About::Access if storage.is_some_and(|object| object.storage == Storage::Local) => {
            (Kind::DanglingLocal, None)
        }
        About::Access => (Kind::UseAfterFree, None),
        About::FreeAgain => (Kind::DoubleFree, None),
        About::Free => (Kind::BadFree, None),
        About::Moved => (Kind::OutOfBounds, None),
        About::Undefined { .. } => (Kind::Uninitialised, None),
        About::Said(_) => (Kind::Other, None),
        About::Pointer if made.number == Some(0) => (Kind::NullPointer, None),
        About::Pointer if made.part.is_none() && last_before(source, made).is_some() => {
            (Kind::OutOfBounds, Some(1))
        }
        About::Pointer => (Kind::WildPointer, None),
        About::Element { index, length } => {
            let index = index.as_ref();
            let index = index
                .and_then(|index| fencewright_lang::facts::value(index, source.program, replayed.last()));
            let beyond = index.map(|index| if index < 0 { index } else { index.saturating_sub(length - 1) });
            (Kind::OutOfBounds, beyond)
        }
    }
}

/// The part of memory just before the place of the error, for a place one past the end of an array.
fn last_before(source: Source<'_>, made: &Made<'_>) -> Option<Part> {
    let (kind, _) = made.claim.place.as_ref()?;
    source.facts.memory.part(*kind, made.number?.checked_sub(1)?)
}

/// The thread that last marked an object as freed, and the position.
fn freed<'a>(source: Source<'a>, replayed: &Replayed, part: Part) -> Option<(&'a str, Span)> {
    let program = source.program;
    let is_freed = |state: &State| source.facts.memory.is_marked(program, state, part);
    let freeing = steps(source, replayed)
        .filter(|step| !is_freed(&step.before) && is_freed(&step.after))
        .filter_map(|step| Some((program.thread(step.event.thread).name.as_str(), step.span()?)));
    freeing.last()
}

/// The part of an object from which a register was last loaded; `None` if it was not loaded from shared memory.
fn read_into(source: Source<'_>, replayed: &Replayed, thread: ThreadId, register: &str) -> Option<Part> {
    let code = source.program.thread(thread);
    let register = code.registers.iter().position(|known| known.name == register)?;
    let last = steps(source, replayed)
        .filter(|step| step.event.thread == thread)
        .filter(|step| match &step.event.kind {
            EventKind::Step { edge, .. } => code
                .edge(*edge)
                .action
                .ops()
                .iter()
                .filter_map(written_register)
                .any(|written| written.index() == register),
            EventKind::Flush { .. } => false,
        })
        .last()?;
    let cell = last.effect.iter().find_map(|access| match access {
        Access::Read { cell, .. } => Some(*cell),
        _ => None,
    })?;
    let variable = source.program.variable_of(cell);
    let memory = &source.facts.memory;
    let kind = *memory.variables.get(&variable.name)?;
    let first = memory.places.get(&kind)?.first;
    memory.part(kind, first + i64::from(cell - variable.base))
}

impl Mistake<'_> {
    /// The error as a sentence: thread, access, object, and where the object was allocated and freed.
    pub fn sentence(&self) -> String {
        let line = |span: Span| self.source.position(span).line_name();
        let kind = if self.said.is_empty() { self.kind.words() } else { self.said };
        let mut text = format!("{} at line {}: {kind}", self.thread, line(self.at));
        match self.elements {
            Some(n) if n < 0 => text.push_str(&format!(" by {} before the start", elements(n))),
            Some(n) => text.push_str(&format!(" by {} behind the end", elements(n))),
            None => {}
        }
        let excerpt = shortened(&self.source.excerpt(self.at), LONGEST_TEXT);
        text.push_str(&format!(": `{excerpt}`"));
        if let Some(object) = self.object {
            let does = match self.kind {
                Kind::Uninitialised => "reads",
                Kind::DoubleFree | Kind::BadFree => "frees",
                _ => "accesses",
            };
            text.push_str(&format!(" {does} {}", self.object_in_words(object)));
        } else if let Some(register) = self.register.filter(|register| !register.contains('%')) {
            text.push_str(&format!(" depends on `{register}`"));
        }
        if let Some((thread, span)) = self.freed {
            let gone = if self.kind == Kind::DanglingLocal { "gone since" } else { "freed at" };
            text.push_str(&format!(", {gone} line {} by {thread}", line(span)));
        }
        text
    }

    fn object_in_words(&self, object: &Object) -> String {
        let line = self.source.position(object.span).line_name();
        let time = self.time.map_or(String::new(), |time| format!(" {time}"));
        match &object.name {
            Some(name) => format!("`{name}` (`{}`, declared at line {line})", object.ty),
            None => format!("`{}`{time} allocated at line {line}", object.ty),
        }
    }
}

fn elements(n: i64) -> String {
    match n.unsigned_abs() {
        1 => "1 element".to_string(),
        n => format!("{n} elements"),
    }
}
