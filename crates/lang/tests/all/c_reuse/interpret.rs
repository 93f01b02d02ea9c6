//! An interpreter for these programs: explores all interleavings, with all choices of the allocator and all orders of addresses.
//!
//! Memory is a list of blocks. An allocation returns any free block, or a new one; a pointer is the index of a block. The interpreter shares no code
//! with the translation of C.

use std::collections::HashSet;

use super::program::{Condition, GLOBALS, LOCALS, Program, Stmt, Test};

/// A pointer; `None` is null.
type Pointer = Option<usize>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Block {
    free: bool,
    value: i64,
    next: Pointer,
}

/// A thread: the statements that it has still to execute, in reverse order, and its local variables.
#[derive(Clone)]
struct Thread<'a> {
    rest: Vec<&'a Stmt>,
    locals: [Pointer; LOCALS],
}

#[derive(Clone)]
struct State<'a> {
    memory: Vec<Block>,
    globals: [Pointer; GLOBALS],
    threads: Vec<Thread<'a>>,
    /// 0 before `main` creates the thread, 1 while both run, 2 after the join.
    phase: usize,
}

/// The parts of a state that identify it: memory, globals, statements and variables of the threads, and the phase.
type Key = (Vec<Block>, [Pointer; GLOBALS], Vec<(Vec<*const Stmt>, [Pointer; LOCALS])>, usize);

/// The kinds of violations that occur in some execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// An assertion fails.
    pub assertions: bool,
    /// Freed memory is used, or freed again.
    pub memory: bool,
}

/// The reason why an execution is not continued.
enum End {
    Assertion,
    Memory,
}

/// Explores a program; `None` if it has more than `most` states.
pub fn explore(program: &Program, most: usize) -> Option<Found> {
    let count = program.allocations();
    let orders = if program.is_ordered() { permutations(count) } else { vec![(0..count).collect()] };
    let mut found = Found::default();
    for order in orders {
        let mut seen: HashSet<Key> = HashSet::new();
        let main = Thread { rest: reversed(&program.before), locals: [None; LOCALS] };
        let start = State { memory: Vec::new(), globals: [None; GLOBALS], threads: vec![main], phase: 0 };
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if !seen.insert(key(&state)) {
                continue;
            }
            if seen.len() > most {
                return None;
            }
            for thread in 0..state.threads.len() {
                for after in steps(program, &order, &state, thread) {
                    match after {
                        Ok(after) => open.push(after),
                        Err(End::Assertion) => found.assertions = true,
                        Err(End::Memory) => found.memory = true,
                    }
                }
            }
        }
    }
    Some(found)
}

/// For each total order of blocks, the position of each block.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let longer = |start: Vec<usize>| {
        let next = (0..count).filter(|n| !start.contains(n)).collect::<Vec<_>>();
        next.into_iter().map(move |next| [start.as_slice(), &[next]].concat())
    };
    (0..count).fold(vec![Vec::new()], |all, _| all.into_iter().flat_map(longer).collect())
}

fn reversed(block: &[Stmt]) -> Vec<&Stmt> {
    block.iter().rev().collect()
}

fn key(state: &State<'_>) -> Key {
    let thread = |thread: &Thread<'_>| {
        (thread.rest.iter().map(|stmt| std::ptr::from_ref(*stmt)).collect(), thread.locals)
    };
    (state.memory.clone(), state.globals, state.threads.iter().map(thread).collect(), state.phase)
}

/// All possible next steps of a thread: the state after each, or the violation.
fn steps<'a>(
    program: &'a Program,
    order: &[usize],
    state: &State<'a>,
    number: usize,
) -> Vec<Result<State<'a>, End>> {
    let mut after = state.clone();
    let Some(stmt) = after.threads[number].rest.pop() else {
        return if number == 0 {
            next_phase(program, after).into_iter().map(Ok).collect()
        } else {
            Vec::new()
        };
    };
    if let Stmt::Allocate(local) = stmt {
        return allocated(&after, number, *local).into_iter().map(Ok).collect();
    }
    vec![step(&mut after, order, number, stmt).map(|()| after)]
}

fn next_phase<'a>(program: &'a Program, mut state: State<'a>) -> Option<State<'a>> {
    match state.phase {
        0 => {
            state.threads.push(Thread { rest: reversed(&program.thread), locals: [None; LOCALS] });
            state.threads[0].rest = reversed(&program.beside);
        }
        1 if state.threads[1].rest.is_empty() => state.threads[0].rest = reversed(&program.after),
        _ => return None,
    }
    state.phase += 1;
    Some(state)
}

/// The states after an allocation: of each free block, or of a new one.
fn allocated<'a>(state: &State<'a>, thread: usize, local: usize) -> Vec<State<'a>> {
    let free = (0..state.memory.len()).filter(|&block| state.memory[block].free);
    let give = |block: usize| {
        let mut after = state.clone();
        if block == after.memory.len() {
            after.memory.push(Block { free: false, value: 0, next: None });
        }
        after.memory[block].free = false;
        after.threads[thread].locals[local] = Some(block);
        after
    };
    free.chain([state.memory.len()]).map(give).collect()
}

fn step<'a>(state: &mut State<'a>, order: &[usize], number: usize, stmt: &'a Stmt) -> Result<(), End> {
    let State { memory, globals, threads, .. } = state;
    let Thread { rest, locals } = &mut threads[number];
    let used = |memory: &[Block], block: usize| if memory[block].free { Err(End::Memory) } else { Ok(()) };
    match stmt {
        Stmt::Allocate(_) => unreachable!("it has several ways"),
        Stmt::Free(a) => {
            if let Some(block) = locals[*a] {
                used(memory, block)?;
                memory[block].free = true;
            }
        }
        Stmt::Copy(a, b) => locals[*a] = locals[*b],
        Stmt::Clear(a) => locals[*a] = None,
        Stmt::Set(a, value) => {
            if let Some(block) = locals[*a] {
                used(memory, block)?;
                memory[block].value = *value;
            }
        }
        Stmt::Link(a, b) => {
            if let Some(block) = locals[*a] {
                used(memory, block)?;
                memory[block].next = b.and_then(|b| locals[b]);
            }
        }
        Stmt::Follow(a, b) => {
            if let Some(block) = locals[*b] {
                used(memory, block)?;
                locals[*a] = memory[block].next;
            }
        }
        Stmt::Publish(g, a) => globals[*g] = locals[*a],
        Stmt::Fetch(a, g) => locals[*a] = globals[*g],
        Stmt::Swap(a, g) => std::mem::swap(&mut locals[*a], &mut globals[*g]),
        Stmt::Exchange(g, a, b, then) => {
            if globals[*g] == locals[*a] {
                globals[*g] = b.and_then(|b| locals[b]);
                rest.extend(then.iter().rev());
            }
        }
        Stmt::If(condition, then, otherwise) => {
            let holds = holds(condition, order, memory, locals)?;
            rest.extend(if holds { then } else { otherwise }.iter().rev());
        }
        Stmt::Assert(condition) => {
            if !holds(condition, order, memory, locals)? {
                return Err(End::Assertion);
            }
        }
        Stmt::Twice(inner) => (0..2).for_each(|_| rest.extend(inner.iter().rev())),
    }
    Ok(())
}

fn holds(
    condition: &Condition,
    order: &[usize],
    memory: &[Block],
    locals: &[Pointer; LOCALS],
) -> Result<bool, End> {
    let holds = match condition.test {
        Test::IsNull(a) => locals[a].is_none(),
        Test::Same(a, b) => locals[a] == locals[b],
        Test::Before(a, b) => match (locals[a], locals[b]) {
            (Some(a), Some(b)) => order[a] < order[b],
            _ => false,
        },
        Test::Holds(a, number) => match locals[a] {
            Some(block) if memory[block].free => return Err(End::Memory),
            Some(block) => memory[block].value == number,
            None => true,
        },
    };
    Ok(holds != condition.negated)
}
