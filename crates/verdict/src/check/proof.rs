//! Converts an invariant of an engine to a proof in a certificate.

use std::collections::BTreeMap;

use fencewright_certify::certificate::{Buffer, Constraint, KeptEnd, MachineName, Model, StateInvariant};
use fencewright_certify::{InductiveInvariant, Proof};
use fencewright_memory::{BufferMachine, BufferShape, Buffers, Control, Entry, Kept};
use fencewright_program::{MemoryModel, Program};

use crate::task::Invariant;

/// An invariant of a program in the format of certificates.
pub fn proof(program: &Program, invariant: &Invariant) -> Proof {
    proof_unless(program, invariant, &|| false).expect("nobody stops it")
}

/// Like [`proof`], but returns `None` as soon as `stop` returns true; `stop` is called for every control state.
pub fn proof_unless(program: &Program, invariant: &Invariant, stop: &dyn Fn() -> bool) -> Option<Proof> {
    let machine = BufferMachine::new(program, invariant.buffers);
    let mut cells = BTreeMap::new();
    let mut constraint = |constraint: &fencewright_memory::Constraint| {
        for (cell, _) in &constraint.form().terms {
            cells.entry(*cell).or_insert_with(|| machine.cells.name(program, *cell));
        }
        Constraint::of(constraint)
    };
    let states = invariant.states.iter().map(|(control, cubes)| {
        let invariant = cubes.iter().map(|cube| cube.iter().map(&mut constraint).collect());
        (!stop()).then(|| state(control, invariant.collect()))
    });
    let states = states.collect::<Option<_>>()?;
    let (machine, symmetry) = (name(invariant.buffers), invariant.symmetry.clone());
    Some(Proof::Invariant(InductiveInvariant { machine, symmetry, cells, states }))
}

fn state(control: &Control, invariant: Vec<Vec<Constraint>>) -> StateInvariant {
    let buffer = |shape: &BufferShape| Buffer {
        queue: shape.queue.iter().map(Entry::cell).collect(),
        set: shape.set.clone(),
    };
    StateInvariant {
        locations: control.locations.iter().map(|l| l.0).collect(),
        buffers: control.buffers.iter().map(buffer).collect(),
        lock: control.lock.map(|t| t.0),
        invariant,
    }
}

fn name(buffers: Buffers) -> MachineName {
    let of = |model| if model == MemoryModel::Pso { Model::Pso } else { Model::Tso };
    match buffers {
        Buffers::Sc => MachineName::Sc {},
        Buffers::Queue { model, bound } => MachineName::Queue { model: of(model), bound },
        Buffers::Partial { model, k, kept, summaries } => MachineName::Partial {
            model: of(model),
            k,
            summaries,
            kept: if kept == Kept::Oldest { KeptEnd::Oldest } else { KeptEnd::Newest },
        },
    }
}
