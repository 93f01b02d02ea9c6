//! Initial states: all combinations of the initial values of live registers and of memory. Where there are too many values, only samples are used.

use fencewright_program::reference::MOST_CHOICES;
use fencewright_program::{Init, Program};
use fencewright_verdict::{Limits, Reason, Task};

use super::code::Code;
use super::layout::{Layout, Sizes};
use super::store::{Store, hash};

/// The possible initial values of a variable or register. If there are too many, only samples are returned, and `sampled` is set.
pub(crate) fn values(program: &Program, init: Init, samples: &[i64], sampled: &mut bool) -> Vec<i64> {
    match init {
        Init::Value(v) => vec![v],
        Init::Any(Some(range)) if program.choices(Some(range)) <= MOST_CHOICES => {
            (range.low..=range.high).collect()
        }
        Init::Any(range) => {
            *sampled = true;
            let chosen = program.chosen(range);
            let mut some: Vec<i64> = samples.iter().copied().filter(|&v| chosen.contains(v)).collect();
            if some.is_empty() {
                some.push(range.map_or(0, |r| r.low));
            }
            some
        }
    }
}

/// The initial states, packed one after the other, with sizes and layout that fit them, and whether some values were only sampled.
pub fn states(
    task: &Task<'_>,
    code: &Code,
    samples: &[i64],
    limits: &Limits,
) -> (Sizes, Layout, Result<Vec<u64>, Reason>, bool) {
    let program = task.program;
    let mut choices: Vec<(u32, Vec<i64>)> = Vec::new();
    let mut sampled = false;
    let mut values = |init: Init| values(program, init, samples, &mut sampled);
    let versions = code.versions.as_ref();
    for (v, variable) in program.variables.iter().enumerate() {
        for (cell, init) in variable.cells().zip(&variable.init) {
            let placed = versions.map(|versions| versions.start.place(versions.of.variables[v], *init));
            choices.push((code.memory + cell as u32, values(placed.unwrap_or(*init))));
        }
    }
    for (t, (thread, compiled)) in program.threads.iter().zip(&code.threads).enumerate() {
        for r in compiled.live.at(thread.entry) {
            let init = thread.registers[r.index()].init;
            let placed =
                versions.map(|versions| versions.start.place(versions.of.registers[t][r.index()], init));
            choices.push((compiled.registers[r.index()], values(placed.unwrap_or(init))));
        }
    }
    let mut sizes = code.sizes(program);
    for (slot, values) in &choices {
        let bounds = &mut sizes.values[*slot as usize];
        (bounds.low, bounds.high) = (values[0], values[0]);
        for &value in values {
            (bounds.low, bounds.high) = (bounds.low.min(value), bounds.high.max(value));
        }
        *bounds = bounds.rounded();
    }
    versions.into_iter().for_each(|versions| versions.make_room(&mut sizes));
    code.orbits.equalize(code, &mut sizes);
    let layout = Layout::new(code, &sizes);
    let states = product(task, code, &layout, &choices, limits);
    (sizes, layout, states, sampled)
}

/// Packs all combinations of the choices, enumerated like an odometer.
fn product(
    task: &Task<'_>,
    code: &Code,
    layout: &Layout,
    choices: &[(u32, Vec<i64>)],
    limits: &Limits,
) -> Result<Vec<u64>, Reason> {
    let mut state = vec![0; layout.words];
    for (t, thread) in task.program.threads.iter().enumerate() {
        layout.slots[code.pc(t)].set_raw(&mut state, u64::from(thread.entry.0));
    }
    let turning: Vec<&(u32, Vec<i64>)> = choices.iter().filter(|(_, values)| values.len() > 1).collect();
    for (slot, values) in choices {
        let fits = layout.slots[*slot as usize].set(&mut state, values[0]);
        debug_assert!(fits, "the layout was made for these values");
    }
    // Registers that share a slot are never live together, so different choices give different states, and `seen` should never reject a state.
    let mut seen = Store::new(layout.words);
    let mut positions = vec![0; turning.len()];
    let mut all = Vec::new();
    loop {
        if seen.insert(&state, hash(&state), 0).is_some() {
            all.extend_from_slice(&state);
        }
        if all.len() % 1024 == 0
            && let Some(reason) = limits.exceeded(all.len() as u64 * 40)
        {
            return Err(reason);
        }
        let Some(turn) = (0..turning.len()).find(|&n| positions[n] + 1 < turning[n].1.len()) else {
            return Ok(all);
        };
        for n in 0..=turn {
            positions[n] = if n == turn { positions[n] + 1 } else { 0 };
            let (slot, values) = turning[n];
            let fits = layout.slots[*slot as usize].set(&mut state, values[positions[n]]);
            debug_assert!(fits, "the layout was made for these values");
        }
    }
}
