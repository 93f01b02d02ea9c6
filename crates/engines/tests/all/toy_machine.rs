//! A new machine in one file: a store buffer with room for one store. The search is not changed and uses the machine with the existing domains.
//!
//! Each of two threads executes `x[me] := 1; r[me] := x[other]`. With a buffer for one store, both threads can load 0 (store buffering); without a
//! buffer, that is, under SC, they cannot; with a fence between the two statements, they cannot either. The machine does not use the programs of this
//! project.

use fencewright_engines::domain::Domain;
use fencewright_engines::domain::concrete::Concrete;
use fencewright_engines::domain::zones::Zones;
use fencewright_engines::search::reach::{Reach, Reached};
use fencewright_engines::{Limits, Progress};
use fencewright_memory::{CellId, Command, Contents, Evidence, Machine, Outcome, Step};
use fencewright_program::{BinaryOp, Expr, Property, PropertyKind, Span};

/// Two threads that store and then load.
struct StoreBuffering {
    /// Whether stores go through a buffer of size one.
    buffered: bool,
    /// Whether a thread waits for its buffer to drain before it loads.
    fenced: bool,
}

/// The position of each thread, and whether its buffer holds a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Control {
    at: [u8; 2],
    buffered: [bool; 2],
}

/// The event of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Store(usize),
    Flush(usize),
    Load(usize),
}

/// The cells: memory, loaded values, and buffered values.
fn memory(thread: usize) -> CellId {
    thread as CellId
}

fn loaded(thread: usize) -> CellId {
    2 + thread as CellId
}

fn pending(thread: usize) -> CellId {
    4 + thread as CellId
}

impl Machine for StoreBuffering {
    type Control = Control;
    type Name = Event;
    type Phase = ();

    fn initial_controls(&self) -> Vec<Control> {
        vec![Control { at: [0; 2], buffered: [false; 2] }]
    }

    fn initial_values(&self) -> Vec<Command> {
        (0..4).map(|cell| Command::Assign(cell, Expr::Const(0))).collect()
    }

    fn steps_in(
        &self,
        (): (),
        control: &Control,
        _stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Step<Event, Control>>> {
        let mut steps = Vec::new();
        for me in 0..2 {
            let mut next = *control;
            let mut push = |name, command, next| {
                steps.push(Step { name, commands: vec![command], outcome: Outcome::Control(next) });
            };
            if control.buffered[me] {
                next.buffered[me] = false;
                push(Event::Flush(me), Command::Assign(memory(me), Expr::Leaf(pending(me))), next);
            }
            let mut next = *control;
            next.at[me] += 1;
            match control.at[me] {
                0 => {
                    next.buffered[me] = self.buffered;
                    let to = if self.buffered { pending(me) } else { memory(me) };
                    push(Event::Store(me), Command::Assign(to, Expr::Const(1)), next);
                }
                1 if !(self.fenced && control.buffered[me]) => {
                    let value = Expr::Leaf(memory(1 - me));
                    push(Event::Load(me), Command::Assign(loaded(me), value), next);
                }
                _ => {}
            }
        }
        Some(steps)
    }

    /// The property is fixed: both threads have loaded 0.
    fn evidence(&self, control: &Control, _property: &Property) -> Option<Vec<Evidence>> {
        let is_zero = |thread| Expr::binary(BinaryOp::Eq, Expr::Leaf(loaded(thread)), Expr::Const(0));
        let both = Expr::binary(BinaryOp::And, is_zero(0), is_zero(1));
        let ended = control.at == [2, 2];
        Some(ended.then(|| Evidence { case: 0, commands: vec![Command::Assume(both)] }).into_iter().collect())
    }

    fn live(&self, control: &Control) -> Vec<CellId> {
        (0..4).chain((0..2).filter(|&t| control.buffered[t]).map(pending)).collect()
    }

    fn contents(&self) -> Vec<Contents> {
        let buffers = (0..2).map(|thread| Contents::StoresTo(memory(thread)));
        (0..4).map(|_| Contents::Own).chain(buffers).collect()
    }
}

/// The events that lead to both threads having loaded 0, or the number of states if that is unreachable.
fn search(machine: &StoreBuffering, mut domain: impl Domain) -> Result<Vec<Event>, usize> {
    let limits = Limits::default();
    let property =
        Property { name: "both loaded 0".into(), kind: PropertyKind::Assertions, span: Span::default() };
    let properties = [property];
    let mut reach = Reach::new(machine, &properties, &mut domain, &limits);
    match reach.run(&limits, &Progress::default()) {
        Reached::Evidence(path) => Ok(path.steps.iter().map(|(step, _)| step.name).collect()),
        Reached::Closed(_) => Err(reach.states()),
        Reached::Unmodelled(_) | Reached::Stopped(_) => panic!("it is small and simple"),
    }
}

#[test]
fn the_search_finds_store_buffering() {
    let weak = StoreBuffering { buffered: true, fenced: false };
    for path in [search(&weak, Concrete::new()), search(&weak, Zones::new(1, false))] {
        let path = path.expect("both can load 0");
        assert_eq!(path.iter().filter(|e| matches!(e, Event::Store(_))).count(), 2, "{path:?}");
        // On the shortest path, no store reaches memory before both threads have loaded.
        assert!(!path.iter().any(|e| matches!(e, Event::Flush(_))), "{path:?}");
    }
}

#[test]
fn the_search_proves_what_does_not_happen() {
    for (buffered, fenced) in [(false, false), (true, true)] {
        let machine = StoreBuffering { buffered, fenced };
        let states = search(&machine, Concrete::new()).expect_err("nobody can load 0 after both have stored");
        assert!(states >= 9, "{states} states are fewer than there are pairs of locations");
        assert!(search(&machine, Zones::new(1, false)).is_err());
    }
}
