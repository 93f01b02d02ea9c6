//! Dead code and copies in flat code: removes registers that are only written, and joins statements that pass a value on in a register.

use std::collections::{HashMap, HashSet};

use fencewright_program::{UnaryOp, Width};
use fencewright_text::Stop;

use crate::core::Register;
use crate::flat::{CellEvent, Step, StepKind, Term, Thread, Waiting};

/// Which registers and arrays of a thread are read and written.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Number of reads of each register. If the condition or new value of an await or update reads the register into which it loads, that read is not
    /// counted.
    read: HashMap<Register, usize>,
    /// The registers into which an await loads and that the condition of this await reads.
    waited: HashSet<Register>,
    written: HashSet<Register>,
    arrays: HashSet<usize>,
    /// The arrays that are written.
    set: HashSet<usize>,
}

impl Reads {
    /// Collects the reads and writes of some code; incomplete when it is time to stop.
    pub fn of(code: &[Step], stop: &Stop<'_>) -> Self {
        let mut reads = Reads::default();
        reads.block(code, stop);
        reads
    }

    /// Whether a register is read anywhere, other than by the update that loads into it.
    pub fn is_read(&self, register: Register) -> bool {
        self.read.contains_key(&register) || self.waited.contains(&register)
    }

    /// Whether a register is read other than by the condition or new value of the await or update that loads into it.
    pub fn is_read_outside_waiting(&self, register: Register) -> bool {
        self.read.contains_key(&register)
    }

    /// Whether a register occurs in the code.
    pub fn is_mentioned(&self, register: Register) -> bool {
        self.is_read(register) || self.written.contains(&register)
    }

    /// Whether an array occurs in the code.
    pub fn is_array_mentioned(&self, array: usize) -> bool {
        self.arrays.contains(&array) || self.set.contains(&array)
    }

    fn term(&mut self, term: &Term) {
        term.registers(&mut |register| *self.read.entry(register).or_default() += 1);
        term.arrays(&mut |array| _ = self.arrays.insert(array));
    }

    fn block(&mut self, code: &[Step], stop: &Stop<'_>) {
        stop.polled(code).for_each(|step| self.step(&step.kind, stop));
    }

    fn step(&mut self, step: &StepKind, stop: &Stop<'_>) {
        if let Some(register) = step.writes() {
            self.written.insert(register);
        }
        if let StepKind::Special(CellEvent::Set(array, ..)) = step {
            self.set.insert(*array);
        }
        match step {
            StepKind::Update { place: cell, old, when, new, .. } => {
                cell.index.iter().for_each(|index| self.term(index));
                for term in when.iter().chain([new]) {
                    term.registers(&mut |register| {
                        if register != *old {
                            *self.read.entry(register).or_default() += 1;
                        }
                    });
                    term.arrays(&mut |array| _ = self.arrays.insert(array));
                }
            }
            StepKind::Await { register: waited, place: cell, until: condition, .. } => {
                cell.index.iter().for_each(|index| self.term(index));
                condition.registers(&mut |register| {
                    if register == *waited {
                        self.waited.insert(register);
                    } else {
                        *self.read.entry(register).or_default() += 1;
                    }
                });
                condition.arrays(&mut |array| _ = self.arrays.insert(array));
            }
            _ => step.values(&mut |term| self.term(term)),
        }
        for block in step.blocks() {
            self.block(block, stop);
        }
    }
}

/// Removes dead assignments and joins copies until nothing changes.
pub(crate) fn tidy(thread: &mut Thread, stop: &Stop<'_>) {
    loop {
        let reads = Reads::of(&thread.code, stop);
        // An interrupted walk may have missed reads, and a register without a recorded read would be removed.
        if stop.at_once() {
            return;
        }
        let marks: HashSet<usize> =
            (0..thread.arrays.len()).filter(|&array| thread.arrays[array].marks.is_some()).collect();
        let mut changed = join(&mut thread.code, &reads, stop);
        changed |= without_dead(&mut thread.code, stop, &|step| match step {
            StepKind::Assign(register, _) | StepKind::Havoc(register, ..) => reads.is_read(*register),
            StepKind::Special(CellEvent::Set(array, ..)) => {
                reads.arrays.contains(array) || marks.contains(array)
            }
            _ => true,
        });
        if !changed {
            break;
        }
    }
}

fn without_dead(code: &mut Vec<Step>, stop: &Stop<'_>, needed: &impl Fn(&StepKind) -> bool) -> bool {
    let before = code.len();
    code.retain(|step| needed(&step.kind));
    let mut changed = code.len() != before;
    for step in stop.polled(code.iter_mut()) {
        for block in step.kind.blocks_mut() {
            changed |= without_dead(block, stop, needed);
        }
    }
    let before = code.len();
    code.retain(|step| match &step.kind {
        StepKind::Steps(steps) | StepKind::Block(steps) => !steps.is_empty(),
        StepKind::If(_, then, otherwise) => !(then.is_empty() && otherwise.is_empty()),
        _ => true,
    });
    changed | (code.len() != before)
}

/// Joins adjacent statements: removes a register whose only read is in the statement after the one that writes it. `t = x; r = t;` becomes `r = x;`.
fn join(code: &mut Vec<Step>, reads: &Reads, stop: &Stop<'_>) -> bool {
    let mut changed = false;
    let mut done: Vec<Step> = Vec::with_capacity(code.len());
    for mut step in stop.polled(std::mem::take(code)) {
        while let Some(joined) = done.last().and_then(|last| joined(last, &step, reads)) {
            done.pop();
            step = joined;
            changed = true;
        }
        done.push(step);
    }
    *code = done;
    for step in stop.polled(code) {
        for block in step.kind.blocks_mut() {
            changed |= join(block, reads, stop);
        }
    }
    changed
}

/// Joins a load with an assumption about its value into an await. This preserves behaviour, because a thread continues after `r = x; assume r == 1;`
/// only if it reads 1, and other threads cannot observe whether it has already read another value.
pub(crate) fn wait(code: &mut Vec<Step>, stop: &Stop<'_>) {
    let mut done: Vec<Step> = Vec::with_capacity(code.len());
    for mut step in stop.polled(std::mem::take(code)) {
        if let (Some(StepKind::Load(register, cell, access)), StepKind::Assume(condition)) =
            (done.last().map(|last| &last.kind), &step.kind)
            && condition.has(*register)
        {
            step.kind = StepKind::Await {
                register: *register,
                place: cell.clone(),
                until: condition.clone(),
                access: *access,
                waiting: Waiting::Step,
            };
            done.pop();
        }
        if !matches!(step.kind, StepKind::Atomic(_)) {
            step.kind.blocks_mut().for_each(|block| wait(block, stop));
        }
        done.push(step);
    }
    *code = done;
}

fn joined(first: &Step, second: &Step, reads: &Reads) -> Option<Step> {
    let register = first.kind.writes()?;
    if reads.read.get(&register) != Some(&1) || reads.waited.contains(&register) {
        return None;
    }
    let kind = match (&first.kind, &second.kind) {
        (StepKind::Load(_, cell, access), StepKind::Assign(target, Term::Register(read)))
            if *read == register =>
        {
            StepKind::Load(*target, cell.clone(), *access)
        }
        (StepKind::Havoc(_, low, high), StepKind::Assign(target, value)) => {
            let (low, high) = converted(register, (*low, *high), value)?;
            StepKind::Havoc(*target, low, high)
        }
        (StepKind::Assign(_, value), second) => {
            // The register into which an update or await loads stands for the value found in memory, so a value that reads this register must not be
            // moved into that update or await.
            let own = second.found();
            let mut count = 0;
            second.values(&mut |term| count += term.count(register));
            // A `Touch` becomes part of the property, so only formulas are moved into a `Touch`.
            let in_property =
                matches!(second, StepKind::Special(CellEvent::Touch(..))) && !value.is_formula();
            if count != 1 || own.is_some_and(|own| value.has(own)) || in_property {
                return None;
            }
            let mut kind = second.clone();
            let by = |found| if found == register { value.clone() } else { Term::Register(found) };
            kind.values_mut(&mut |term| *term = term.replaced(&by));
            kind
        }
        _ => return None,
    };
    Some(Step { kind, span: second.span })
}

/// The range of `value` when the register may hold any number from `least` to `greatest`; `None` if the range is not known exactly. For a conversion
/// to n bits the range is known if the register may hold 2^n consecutive numbers, because the result may then be any value of the target type.
fn converted(register: Register, (least, greatest): (i64, i64), value: &Term) -> Option<(i64, i64)> {
    let is_it = |term: &Term| *term == Term::Register(register);
    let is_all_of = |width: Width| i128::from(greatest) - i128::from(least) + 1 == 1 << width.bits();
    match value {
        value if is_it(value) => Some((least, greatest)),
        Term::Unary(UnaryOp::Signed(width), operand) if is_it(operand) && is_all_of(*width) => {
            let half = 1i128 << (width.bits() - 1);
            Some(((-half) as i64, (half - 1) as i64))
        }
        Term::Unary(UnaryOp::Unsigned(width), operand)
            if is_it(operand) && is_all_of(*width) && width.bits() < 64 =>
        {
            Some((0, (1 << width.bits()) - 1))
        }
        _ => None,
    }
}
