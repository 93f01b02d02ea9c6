//! Joins consecutive waits into one step, which is enabled when the last of the awaited events has happened.
//!
//! This preserves behaviour if the awaited flags stay set, that is, if only nonzero constants are written to them. A thread has no effect between two
//! consecutive waits, so no other thread can observe which of them it has passed, and it blocks forever in both versions or in neither.
//!
//! If several threads are identical except for the flag that each of them sets once, and another thread waits for all these flags at once, a counter
//! replaces the flags. Then the threads are symmetric, and engines need not distinguish them.

use std::collections::{HashMap, HashSet};

use fencewright_program::BinaryOp;
use fencewright_text::Stop;

use crate::core::Register;
use crate::flat::tidy::Reads;
use crate::flat::{Awaited, Cell, CellEvent, Program, RegisterInfo, Step, StepKind, Term, Thread, Waiting};
use crate::layout::classes::Layout;
use crate::statement::each_statement;

/// Joins consecutive waits for flags that stay set.
pub(crate) fn gather(program: &mut Program, layout: &Layout, stop: &Stop<'_>) {
    let mut changing = HashSet::new();
    for thread in &program.threads {
        find_changing(&thread.code, &mut changing, stop);
    }
    for thread in &mut program.threads {
        let reads = Reads::of(&thread.code, stop);
        gather_in(&mut thread.code, &changing, &reads, stop);
    }
    count(program, layout, stop);
}

/// Finds the classes to which a value other than a nonzero constant may be written.
fn find_changing(code: &[Step], changing: &mut HashSet<usize>, stop: &Stop<'_>) {
    each_statement(code, stop, &mut |step| match &step.kind {
        StepKind::Store(cell, value, _) if value.number().is_none_or(|number| number == 0) => {
            changing.insert(cell.class);
        }
        StepKind::Update { place: cell, .. } => _ = changing.insert(cell.class),
        _ => {}
    });
}

fn gather_in(code: &mut Vec<Step>, changing: &HashSet<usize>, reads: &Reads, stop: &Stop<'_>) {
    let mut gathered: Vec<Step> = Vec::new();
    for mut step in stop.polled(std::mem::take(code)) {
        step.kind.blocks_mut().for_each(|block| gather_in(block, changing, reads, stop));
        if let Some(flag) = flag(&step.kind, changing, reads) {
            if let Some(Step { kind: StepKind::Special(CellEvent::AwaitAll(flags)), span }) =
                gathered.last_mut()
            {
                flags.push(flag);
                *span = step.span;
                continue;
            }
            step.kind = StepKind::Special(CellEvent::AwaitAll(vec![flag]));
        }
        gathered.push(step);
    }
    *code = gathered;
}

/// The flag that a step waits for, if it stays set and its value is not used afterwards.
fn flag(kind: &StepKind, changing: &HashSet<usize>, reads: &Reads) -> Option<Awaited> {
    let StepKind::Await { register, place: cell, until: condition, waiting: Waiting::Step, .. } = kind else {
        return None;
    };
    let stays = !changing.contains(&cell.class) && !reads.is_read_outside_waiting(*register);
    let knows = |index: &Term| !index.has(*register);
    let waits = stays && is_set(condition, *register) && cell.index.iter().all(knows);
    waits.then(|| Awaited { cell: cell.clone(), count: None })
}

/// Whether a condition is that the register is not 0.
fn is_set(condition: &Term, register: Register) -> bool {
    *condition == Term::Register(register).with(BinaryOp::Ne, 0)
}

/// The uses of a flag.
#[derive(Default)]
struct Uses {
    /// Number of occurrences in the program.
    mentions: usize,
    /// The thread that sets the flag, in an atomic step executed at most once, and the index of that step; `None` if no such step was found.
    set: Option<(usize, usize)>,
}

/// Replaces the flags of identical threads by a counter.
fn count(program: &mut Program, layout: &Layout, stop: &Stop<'_>) {
    let mut uses: HashMap<usize, Uses> = HashMap::new();
    for (number, thread) in program.threads.iter().enumerate() {
        mention(&thread.code, &mut uses, stop);
        for (n, step) in thread.code.iter().enumerate() {
            // If neither this statement nor a later one jumps, the statement is executed at most once.
            if let Some(class) = sets(step)
                && !thread.code[n..].iter().any(jumps)
            {
                uses.entry(class).or_default().set = Some((number, n));
            }
        }
    }
    let mut awaited: Vec<Vec<usize>> = Vec::new();
    for thread in &program.threads {
        find_awaited(&thread.code, &mut awaited, stop);
    }
    // Maps each replaced flag to the flag that becomes the counter.
    let mut counted: HashMap<usize, usize> = HashMap::new();
    for classes in awaited {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for class in classes {
            // Only flags that are set once, awaited once, and initially 0 are replaced.
            let Some(Uses { mentions: 2, set: Some(at) }) = uses.get(&class) else { continue };
            if layout.classes[class].initial != [0] {
                continue;
            }
            let like = |group: &&mut Vec<usize>| {
                let other = uses.get(&group[0]).and_then(|uses| uses.set);
                other.is_some_and(|other| other.0 != at.0 && are_alike(program, other, *at))
            };
            match groups.iter_mut().find(like) {
                Some(group) => group.push(class),
                None => groups.push(vec![class]),
            }
        }
        for group in groups.into_iter().filter(|group| group.len() > 1) {
            group.iter().for_each(|class| _ = counted.insert(*class, group[0]));
        }
    }
    for thread in &mut program.threads {
        let register = Register(thread.registers.len() as u32);
        if count_in(&mut thread.code, &counted, register, stop) {
            thread.registers.push(RegisterInfo::temporary("done", 0));
        }
    }
}

/// The flag, if the only effect of a step is to set it.
fn sets(step: &Step) -> Option<usize> {
    let StepKind::Atomic(block) = &step.kind else { return None };
    match block.as_slice() {
        [Step { kind: StepKind::Store(cell, value, _), .. }] if cell.index.is_none() => {
            value.number().filter(|number| *number != 0).map(|_| cell.class)
        }
        _ => None,
    }
}

fn jumps(step: &Step) -> bool {
    matches!(step.kind, StepKind::Goto(_)) || step.kind.blocks().flatten().any(jumps)
}

fn mention(code: &[Step], uses: &mut HashMap<usize, Uses>, stop: &Stop<'_>) {
    let mut found = |class: usize| uses.entry(class).or_default().mentions += 1;
    each_statement(code, stop, &mut |step| {
        if let StepKind::Special(CellEvent::AwaitAll(flags)) = &step.kind {
            flags.iter().for_each(|flag| found(flag.cell.class));
        }
        step.kind.accessed().into_iter().for_each(|(cell, _)| found(cell.class));
    });
}

fn find_awaited(code: &[Step], awaited: &mut Vec<Vec<usize>>, stop: &Stop<'_>) {
    each_statement(code, stop, &mut |step| {
        if let StepKind::Special(CellEvent::AwaitAll(flags)) = &step.kind {
            awaited.push(flags.iter().map(|flag| flag.cell.class).collect());
        }
    });
}

/// Whether two threads are identical, except for the statements that set their flags.
fn are_alike(program: &Program, (one, at): (usize, usize), (other, and): (usize, usize)) -> bool {
    let starts = |thread: &Thread| thread.registers.iter().map(|register| register.init).collect::<Vec<_>>();
    let arrays = |thread: &Thread| {
        thread.arrays.iter().map(|array| (array.first, array.init.clone(), array.marks)).collect::<Vec<_>>()
    };
    let (one, other) = (&program.threads[one], &program.threads[other]);
    at == and
        && starts(one) == starts(other)
        && arrays(one) == arrays(other)
        && one.code[..at] == other.code[..at]
        && one.code[at + 1..] == other.code[at + 1..]
}

/// Replaces setting and awaiting of flags by counting. Returns whether the code sets a flag that was replaced, and so uses the register.
fn count_in(code: &mut [Step], counted: &HashMap<usize, usize>, register: Register, stop: &Stop<'_>) -> bool {
    let mut counts = false;
    for step in stop.polled(code) {
        let set = sets(step).and_then(|class| counted.get(&class).copied());
        match (&mut step.kind, set) {
            (StepKind::Atomic(block), Some(counter)) => {
                if let StepKind::Store(cell, _, access) = &block[0].kind {
                    let (place, access) = (Cell { class: counter, ..cell.clone() }, *access);
                    let new = Term::Register(register).plus(1);
                    step.kind = StepKind::Update { place, old: register, when: None, new, access };
                    counts = true;
                }
            }
            (StepKind::Special(CellEvent::AwaitAll(flags)), _) => {
                let mut kept: Vec<Awaited> = Vec::new();
                for mut flag in std::mem::take(flags) {
                    let Some(&counter) = counted.get(&flag.cell.class) else {
                        kept.push(flag);
                        continue;
                    };
                    match kept.iter_mut().find(|other| other.cell.class == counter) {
                        Some(other) => other.count = other.count.map(|count| count + 1),
                        None => {
                            flag.cell.class = counter;
                            kept.push(Awaited { count: Some(1), ..flag });
                        }
                    }
                }
                *flags = kept;
            }
            (kind, _) => {
                for block in kind.blocks_mut() {
                    counts |= count_in(block, counted, register, stop);
                }
            }
        }
    }
    counts
}
