//! An interpreter for the programs of `program`: explores all interleavings, with all choices of the allocator and all orders of addresses.
//!
//! Memory is a list of blocks. An allocation returns any free block, or a new one; a pointer is the index of a block, which is its real address.
//! Under PSO each thread has a buffer for each location, and what leaves a buffer changes whatever is at this address by then. The interpreter shares
//! no code with the translation of C.

use std::collections::HashSet;

use super::program::{Condition, GLOBALS, LOCALS, Order, Program, Stmt, Test};

/// A pointer; `None` is null.
type Pointer = Option<usize>;

/// A location in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    Global(usize),
    Value(usize),
    Next(usize),
}

/// What a location holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    Number(i64),
    Pointer(Pointer),
}

/// An entry of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    Store(Place, Content),
    /// Later entries do not overtake earlier ones.
    Barrier,
}

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
    /// The stores that have not reached memory, oldest first; always empty under SC.
    buffer: Vec<Entry>,
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
type Key = (Vec<Block>, [Pointer; GLOBALS], Vec<(Vec<*const Stmt>, [Pointer; LOCALS], Vec<Entry>)>, usize);

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

/// Explores a program under PSO or SC; `None` if it has more than `most` states.
pub fn explore(program: &Program, pso: bool, most: usize) -> Option<Found> {
    let count = program.allocations();
    let orders = if program.is_ordered() { permutations(count) } else { vec![(0..count).collect()] };
    let mut found = Found::default();
    for order in orders {
        let mut seen: HashSet<Key> = HashSet::new();
        let main = Thread { rest: reversed(&program.before), locals: [None; LOCALS], buffer: Vec::new() };
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
                open.extend(flushed(&state, thread));
                for after in steps(program, pso, &order, &state, thread) {
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
        let rest = thread.rest.iter().map(|stmt| std::ptr::from_ref(*stmt)).collect();
        (rest, thread.locals, thread.buffer.clone())
    };
    (state.memory.clone(), state.globals, state.threads.iter().map(thread).collect(), state.phase)
}

/// All possible next steps of a thread: the state after each, or the violation.
fn steps<'a>(
    program: &'a Program,
    pso: bool,
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
    let thread = &after.threads[number];
    let waits = match stmt {
        Stmt::Allocate(local) => return allocated(&after, number, *local).into_iter().map(Ok).collect(),
        Stmt::Swap(..) | Stmt::Exchange(..) | Stmt::Publish(.., Order::SeqCst) => !thread.buffer.is_empty(),
        // `free` waits until the thread's stores to the block have left its buffer: the allocator orders them before accesses of the next owner.
        Stmt::Free(local) => thread.locals[*local].is_some_and(|block| has_stores_to(&thread.buffer, block)),
        _ => false,
    };
    if waits {
        return Vec::new();
    }
    vec![step(&mut after, pso, order, number, stmt).map(|()| after)]
}

fn has_stores_to(buffer: &[Entry], block: usize) -> bool {
    buffer
        .iter()
        .any(|entry| matches!(entry, Entry::Store(Place::Value(to) | Place::Next(to), _) if *to == block))
}

/// The states after one store of a thread has reached memory: for each location, the oldest one that is not behind a barrier.
fn flushed<'a>(state: &State<'a>, number: usize) -> Vec<State<'a>> {
    let buffer = &state.threads[number].buffer;
    let mut seen = Vec::new();
    let mut states = Vec::new();
    for (n, entry) in buffer.iter().enumerate() {
        let Entry::Store(place, content) = *entry else { break };
        if seen.contains(&place) {
            continue;
        }
        seen.push(place);
        let mut after = state.clone();
        put(&mut after, place, content);
        let buffer = &mut after.threads[number].buffer;
        buffer.remove(n);
        while buffer.first() == Some(&Entry::Barrier) {
            buffer.remove(0);
        }
        states.push(after);
    }
    states
}

fn put(state: &mut State<'_>, place: Place, content: Content) {
    match (place, content) {
        (Place::Global(global), Content::Pointer(pointer)) => state.globals[global] = pointer,
        (Place::Value(block), Content::Number(number)) => state.memory[block].value = number,
        (Place::Next(block), Content::Pointer(pointer)) => state.memory[block].next = pointer,
        _ => unreachable!("every location holds values of one kind"),
    }
}

/// A store by a thread: to its buffer, or to memory.
fn store(state: &mut State<'_>, pso: bool, number: usize, place: Place, content: Content) {
    match pso {
        true => state.threads[number].buffer.push(Entry::Store(place, content)),
        false => put(state, place, content),
    }
}

/// The value that a thread reads: the newest in its buffer, or that in memory.
fn load(state: &State<'_>, number: usize, place: Place) -> Content {
    let own = state.threads[number].buffer.iter().rev().find_map(|entry| match entry {
        Entry::Store(to, content) if *to == place => Some(*content),
        _ => None,
    });
    own.unwrap_or_else(|| match place {
        Place::Global(global) => Content::Pointer(state.globals[global]),
        Place::Value(block) => Content::Number(state.memory[block].value),
        Place::Next(block) => Content::Pointer(state.memory[block].next),
    })
}

fn load_pointer(state: &State<'_>, number: usize, place: Place) -> Pointer {
    match load(state, number, place) {
        Content::Pointer(pointer) => pointer,
        Content::Number(_) => unreachable!("this location holds pointers"),
    }
}

fn next_phase<'a>(program: &'a Program, mut state: State<'a>) -> Option<State<'a>> {
    match state.phase {
        _ if !state.threads[0].buffer.is_empty() => return None,
        0 => {
            let (rest, locals, buffer) = (reversed(&program.thread), [None; LOCALS], Vec::new());
            state.threads.push(Thread { rest, locals, buffer });
            state.threads[0].rest = reversed(&program.beside);
        }
        1 if state.threads[1].rest.is_empty() && state.threads[1].buffer.is_empty() => {
            state.threads[0].rest = reversed(&program.after)
        }
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

fn step<'a>(
    state: &mut State<'a>,
    pso: bool,
    order: &[usize],
    number: usize,
    stmt: &'a Stmt,
) -> Result<(), End> {
    let locals = state.threads[number].locals;
    let used =
        |state: &State<'_>, block: usize| if state.memory[block].free { Err(End::Memory) } else { Ok(()) };
    match stmt {
        Stmt::Allocate(_) => unreachable!("it has several ways"),
        Stmt::Free(a) => {
            if let Some(block) = locals[*a] {
                used(state, block)?;
                state.memory[block].free = true;
            }
        }
        Stmt::Copy(a, b) => state.threads[number].locals[*a] = locals[*b],
        Stmt::Clear(a) => state.threads[number].locals[*a] = None,
        Stmt::Set(a, value) => {
            if let Some(block) = locals[*a] {
                used(state, block)?;
                store(state, pso, number, Place::Value(block), Content::Number(*value));
            }
        }
        Stmt::Link(a, b) => {
            if let Some(block) = locals[*a] {
                used(state, block)?;
                let next = b.and_then(|b| locals[b]);
                store(state, pso, number, Place::Next(block), Content::Pointer(next));
            }
        }
        Stmt::Follow(a, b) => {
            if let Some(block) = locals[*b] {
                used(state, block)?;
                state.threads[number].locals[*a] = load_pointer(state, number, Place::Next(block));
            }
        }
        Stmt::Publish(g, a, Order::SeqCst) => state.globals[*g] = locals[*a],
        Stmt::Publish(g, a, order) => {
            let buffer = &mut state.threads[number].buffer;
            if *order == Order::Release && buffer.last().is_some_and(|last| *last != Entry::Barrier) {
                buffer.push(Entry::Barrier);
            }
            store(state, pso, number, Place::Global(*g), Content::Pointer(locals[*a]));
        }
        Stmt::Fetch(a, g) => {
            state.threads[number].locals[*a] = load_pointer(state, number, Place::Global(*g))
        }
        Stmt::Swap(a, g) => {
            let thread = &mut state.threads[number];
            std::mem::swap(&mut thread.locals[*a], &mut state.globals[*g]);
        }
        Stmt::Exchange(g, a, b, then) => {
            if state.globals[*g] == locals[*a] {
                state.globals[*g] = b.and_then(|b| locals[b]);
                state.threads[number].rest.extend(then.iter().rev());
            }
        }
        Stmt::If(condition, then, otherwise) => {
            let holds = holds(condition, order, state, number)?;
            state.threads[number].rest.extend(if holds { then } else { otherwise }.iter().rev());
        }
        Stmt::Assert(condition) => {
            if !holds(condition, order, state, number)? {
                return Err(End::Assertion);
            }
        }
        Stmt::Twice(inner) => (0..2).for_each(|_| state.threads[number].rest.extend(inner.iter().rev())),
    }
    Ok(())
}

fn holds(condition: &Condition, order: &[usize], state: &State<'_>, number: usize) -> Result<bool, End> {
    let locals = &state.threads[number].locals;
    let holds = match condition.test {
        Test::IsNull(a) => locals[a].is_none(),
        Test::Same(a, b) => locals[a] == locals[b],
        Test::Before(a, b) => match (locals[a], locals[b]) {
            (Some(a), Some(b)) => order[a] < order[b],
            _ => false,
        },
        Test::Holds(a, value) => match locals[a] {
            Some(block) if state.memory[block].free => return Err(End::Memory),
            Some(block) => load(state, number, Place::Value(block)) == Content::Number(value),
            None => true,
        },
    };
    Ok(holds != condition.negated)
}
