//! Where a fence belongs: the function around a place, its callers, and which of several equally cheap places is preferred.
//!
//! A fence in a library function mends all callers of the function, also those that the program does not have yet. So of equally cheap places those
//! in library functions come first. A function is a library function if it is called, and
//! - its definition shows it: it is `inline`, or lies in another file than `main`; or
//! - the program shows it: several threads call it, or it is called at several places.
//!
//! A library has functions of its own below those that a user calls, such as wrappers of atomic operations. Those that a user calls come first.

use std::collections::BTreeSet;

use fencewright_lang::places::{Place, Placed, Routine, routine_at};
use fencewright_program::{Span, ThreadId};

/// The function around a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The name of the function.
    pub function: String,
    /// The calls of the function in the program, in the order of the text.
    pub callers: Vec<Caller>,
    /// The kind of the function.
    pub kind: Kind,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The position of the call.
    pub at: Span,
    /// The name of the function that has the call, if it is known.
    pub function: Option<String>,
}

/// The kinds of functions, preferred ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A function whose definition shows that it is a library function, and that is called by a function whose definition does not.
    Entry,
    /// Any other library function: only library functions call it, or only its calls show that it is one.
    Inner,
    /// No library function: it is never called, as the start of a thread, or only one thread calls it, at one place, and its definition does not show
    /// that it is one.
    Own,
}

impl Home {
    /// The function around a place; `None` if the place is in no function, as in the definition of a macro.
    pub fn of(placed: &Placed, place: &Place) -> Option<Home> {
        let routine = routine_at(&placed.routines, place.statement)?;
        let calls = place.edges.iter().filter_map(|&(thread, edge)| {
            placed.program.calls_to(placed.program.thread(thread).edge(edge).span).next()
        });
        let calls: BTreeSet<Span> = calls.map(|call| call.at.text()).collect();
        let around = |at: &Span| routine_at(&placed.routines, *at);
        let kind = kind(routine, place, &calls.iter().map(around).collect::<Vec<_>>());
        let caller = |at: Span| Caller { at, function: around(&at).map(|routine| routine.name.clone()) };
        let callers = calls.into_iter().map(caller).collect();
        Some(Home { function: routine.name.clone(), callers, kind })
    }

    /// Whether a fence in this function mends callers.
    pub fn is_library(&self) -> bool {
        self.kind != Kind::Own
    }
}

/// The kind of the function around a place, from the functions that call it.
fn kind(routine: &Routine, place: &Place, callers: &[Option<&Routine>]) -> Kind {
    let threads: BTreeSet<ThreadId> = place.edges.iter().map(|(thread, _)| *thread).collect();
    let from_outside = |caller: &Option<&Routine>| caller.is_none_or(|caller| !caller.library);
    match (callers.is_empty(), routine.library) {
        (true, _) => Kind::Own,
        (false, true) if callers.iter().any(from_outside) => Kind::Entry,
        (false, false) if callers.len() == 1 && threads.len() == 1 => Kind::Own,
        (false, _) => Kind::Inner,
    }
}
