//! What random programs with futexes do, by an interpreter that shares nothing with the translation.
//!
//! A state has the words, the store buffers, and for each thread where it sleeps. A wait without a wake-up ends only if it has a timeout, or if
//! waits may be spurious. A wake-up chooses any of the threads that sleep, as many as it may.

use std::collections::HashSet;

use fencewright_program::MemoryModel;

/// The number of futex words.
pub const WORDS: usize = 2;
/// The result of a statement that was skipped.
pub const SKIPPED: i64 = -99;

const AGAIN: i64 = -11;
const INTERRUPTED: i64 = -4;
const TIMED_OUT: i64 = -110;

/// An operation on a word.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Store {
        word: usize,
        value: i64,
    },
    /// A read-modify-write, which returns the old value.
    Increment {
        word: usize,
    },
    Load {
        word: usize,
    },
    Wait {
        word: usize,
        value: i64,
        timed: bool,
        bits: u32,
    },
    Wake {
        word: usize,
        most: i64,
        bits: u32,
    },
    /// Wakes threads, and lets others sleep on another word; if it compares, only if the word has this value.
    Requeue {
        word: usize,
        most: i64,
        moved: i64,
        other: usize,
        compares: Option<i64>,
    },
}

/// An operation, whether its result is kept, and whether it is executed only if the last result that was kept is 0.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub op: Op,
    pub is_kept: bool,
    pub is_guarded: bool,
}

/// The steps of each thread.
pub type Program = Vec<Vec<Step>>;

/// The results that are kept, thread by thread, followed by the final values of the words.
pub type Outcome = Vec<i64>;

/// The outcomes and deadlocks that some execution reaches.
#[derive(Debug, Default)]
pub struct Reachable {
    /// The outcomes of executions in which all threads end.
    pub outcomes: HashSet<Outcome>,
    /// Whether some state has no step although a thread has not ended.
    pub deadlock: bool,
    /// The number of states.
    pub states: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sleep {
    Awake,
    On { word: usize, bits: u32 },
    Woken,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Thread {
    at: usize,
    last: i64,
    results: Vec<i64>,
    /// The buffered stores, oldest first.
    buffer: Vec<(usize, i64)>,
    sleep: Sleep,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    words: [i64; WORDS],
    threads: Vec<Thread>,
}

/// Explores all executions.
pub fn explore(program: &Program, model: MemoryModel, spurious: bool) -> Reachable {
    let thread = |_| Thread { at: 0, last: 0, results: Vec::new(), buffer: Vec::new(), sleep: Sleep::Awake };
    let first = State { words: [0; WORDS], threads: program.iter().map(thread).collect() };
    let mut seen = HashSet::from([first.clone()]);
    let mut left = vec![first];
    let mut reachable = Reachable::default();
    while let Some(state) = left.pop() {
        let next = successors(program, &state, model, spurious);
        let ended =
            |(thread, steps): (&Thread, &Vec<Step>)| thread.at == steps.len() && thread.buffer.is_empty();
        if state.threads.iter().zip(program).all(ended) {
            let results = state.threads.iter().flat_map(|thread| thread.results.iter());
            reachable.outcomes.insert(results.chain(&state.words).copied().collect());
        } else if next.is_empty() {
            reachable.deadlock = true;
        }
        left.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
    }
    reachable.states = seen.len();
    reachable
}

fn successors(program: &Program, state: &State, model: MemoryModel, spurious: bool) -> Vec<State> {
    let mut next = Vec::new();
    for (n, steps) in program.iter().enumerate() {
        next.extend(flushes(state, n, model));
        let Some(step) = steps.get(state.threads[n].at) else { continue };
        let done = |result: i64| {
            let mut state = state.clone();
            finish(&mut state, n, step, result);
            state
        };
        match (state.threads[n].sleep, step.op) {
            (Sleep::Woken, _) => next.push(done(0)),
            (Sleep::On { .. }, Op::Wait { timed, .. }) => {
                next.extend(timed.then(|| done(TIMED_OUT)));
                next.extend([0, INTERRUPTED].into_iter().filter(|_| spurious).map(done));
            }
            (Sleep::On { .. }, _) => unreachable!("only waits sleep"),
            (Sleep::Awake, _) if step.is_guarded && state.threads[n].last != 0 => next.push(done(SKIPPED)),
            (Sleep::Awake, op) => next.extend(executed(state, n, op, model, &done)),
        }
    }
    next
}

/// Ends a step of a thread.
fn finish(state: &mut State, thread: usize, step: &Step, result: i64) {
    let thread = &mut state.threads[thread];
    (thread.at, thread.sleep) = (thread.at + 1, Sleep::Awake);
    if step.is_kept {
        thread.results.push(result);
        if result != SKIPPED {
            thread.last = result;
        }
    }
}

/// The states after a store of the thread has reached memory.
fn flushes(state: &State, thread: usize, model: MemoryModel) -> Vec<State> {
    let buffer = &state.threads[thread].buffer;
    let is_oldest = |n: &usize| match model {
        MemoryModel::Pso => buffer[..*n].iter().all(|(word, _)| *word != buffer[*n].0),
        _ => *n == 0,
    };
    let flushed = |n: usize| {
        let mut state = state.clone();
        let (word, value) = state.threads[thread].buffer.remove(n);
        state.words[word] = value;
        state
    };
    (0..buffer.len()).filter(is_oldest).map(flushed).collect()
}

/// The states after an operation of a thread that is awake. `done` is the state in which it has ended with a result and has changed nothing.
fn executed(state: &State, n: usize, op: Op, model: MemoryModel, done: &dyn Fn(i64) -> State) -> Vec<State> {
    let buffer = &state.threads[n].buffer;
    let drains = !matches!(op, Op::Store { .. } | Op::Load { .. });
    if drains && !buffer.is_empty() {
        return Vec::new();
    }
    match op {
        Op::Store { word, value } => {
            let mut next = done(0);
            match model {
                MemoryModel::Sc => next.words[word] = value,
                _ => next.threads[n].buffer.push((word, value)),
            }
            vec![next]
        }
        Op::Load { word } => {
            let own = buffer.iter().rev().find(|(of, _)| *of == word);
            vec![done(own.map_or(state.words[word], |(_, value)| *value))]
        }
        Op::Increment { word } => {
            let mut next = done(state.words[word]);
            next.words[word] += 1;
            vec![next]
        }
        Op::Wait { word, value, .. } if state.words[word] != value => vec![done(AGAIN)],
        Op::Wait { word, bits, .. } => {
            let mut next = state.clone();
            next.threads[n].sleep = Sleep::On { word, bits };
            vec![next]
        }
        Op::Wake { word, most, bits } => {
            let woken = |chosen: Vec<usize>| {
                let mut next = done(chosen.len() as i64);
                chosen.iter().for_each(|&thread| next.threads[thread].sleep = Sleep::Woken);
                next
            };
            // Linux wakes one thread if the number is not positive.
            choices(&sleepers(state, word, bits), most.max(1)).into_iter().map(woken).collect()
        }
        Op::Requeue { word, compares: Some(value), .. } if state.words[word] != value => vec![done(AGAIN)],
        Op::Requeue { word, most, moved, other, .. } => requeued(state, (word, other), (most, moved), done),
    }
}

fn requeued(
    state: &State,
    (word, other): (usize, usize),
    (most, moved): (i64, i64),
    done: &dyn Fn(i64) -> State,
) -> Vec<State> {
    let all = sleepers(state, word, u32::MAX);
    let mut next = Vec::new();
    for woken in choices(&all, most) {
        let rest: Vec<usize> = all.iter().copied().filter(|thread| !woken.contains(thread)).collect();
        for moves in choices(&rest, moved) {
            let mut state = done((woken.len() + moves.len()) as i64);
            woken.iter().for_each(|&thread| state.threads[thread].sleep = Sleep::Woken);
            for thread in moves {
                let sleep = &mut state.threads[thread].sleep;
                if let Sleep::On { bits, .. } = *sleep {
                    *sleep = Sleep::On { word: other, bits };
                }
            }
            next.push(state);
        }
    }
    next
}

/// The threads that sleep on a word and wait for one of these bits.
fn sleepers(state: &State, word: usize, bits: u32) -> Vec<usize> {
    let matches = |thread: &Thread| match thread.sleep {
        Sleep::On { word: on, bits: of } => on == word && of & bits != 0,
        _ => false,
    };
    (0..state.threads.len()).filter(|&n| matches(&state.threads[n])).collect()
}

/// The sets of as many threads as possible, but at most `most`.
fn choices(threads: &[usize], most: i64) -> Vec<Vec<usize>> {
    let size = usize::try_from(most).unwrap_or(0).min(threads.len());
    let sets = (0..1u32 << threads.len()).filter(|set| set.count_ones() as usize == size);
    let chosen = |set: u32| (0..threads.len()).filter(|n| set >> n & 1 == 1).map(|n| threads[n]).collect();
    sets.map(chosen).collect()
}
