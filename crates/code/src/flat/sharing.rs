//! Register sharing: temporaries that are live only within one statement share registers with such temporaries of other statements. Without sharing,
//! a long function would need a register for every value that it reads.
//!
//! Such a temporary occurs in one statement without labels inside, and is written before it is read: all its other occurrences follow the write, in
//! the same block or in blocks inside it.

use std::collections::{HashMap, HashSet};

use fencewright_front_end::facts::{Holds, Kind};
use fencewright_text::Stop;

use crate::core::Register;
use crate::flat::{Step, StepKind, Term, Thread};

/// Threads with at most this many registers are left as they are.
const FEW: usize = 256;

/// Whether a thread has more registers than [`FEW`].
pub(crate) fn has_many_registers(thread: &Thread) -> bool {
    thread.registers.len() > FEW
}

/// Makes statements of a thread share registers, and removes registers that do not occur in the code.
pub(crate) fn share(thread: &mut Thread, stop: &Stop<'_>) {
    let mut mentions = Mentions::default();
    mentions.block(&thread.code, None, &mut Vec::new(), stop);
    // An interrupted walk may have missed occurrences, so no register can be removed safely.
    if stop.at_once() {
        return;
    }
    let (names, mut numbers) = (shared(thread, &mentions, stop), HashMap::new());
    // Keeps the registers that still occur in the code.
    let mut kept = Vec::new();
    let mut all = std::mem::take(&mut thread.registers);
    // The facts about a shared register, for reports, are those that hold for all registers that share it.
    for (register, stands_for) in &names {
        let (one, kind) = (&all[register.0 as usize], all[stands_for.0 as usize].kind);
        let (holds, same) = (one.holds.clone(), one.kind == kind);
        let shared = &mut all[stands_for.0 as usize];
        if shared.holds != holds {
            shared.holds = Holds::Temporary;
        }
        if !same {
            shared.kind = Kind::Number;
        }
    }
    for (register, info) in stop.polled((0..).map(Register).zip(all)) {
        if mentions.registers.contains_key(&register) && names.get(&register).is_none_or(|n| *n == register) {
            numbers.insert(register, Register(kept.len() as u32));
            kept.push(info);
        }
    }
    thread.registers = kept;
    let name = |register| {
        let stands_for = names.get(&register).copied().unwrap_or(register);
        numbers.get(&stands_for).copied().unwrap_or(stands_for)
    };
    rename(&mut thread.code, &name, stop);
}

/// For each temporary, the register that represents it: one for all temporaries with the same name, initial value and index, where the index counts
/// the temporaries with that name and initial value in one statement.
fn shared(thread: &Thread, mentions: &Mentions, stop: &Stop<'_>) -> HashMap<Register, Register> {
    let mut shared: HashMap<(&str, i64, usize), Register> = HashMap::new();
    let mut counts: HashMap<(usize, &str, i64), usize> = HashMap::new();
    let mut names = HashMap::new();
    for (register, info) in stop.polled((0..).map(Register).zip(&thread.registers)) {
        let Some(Mention { statement, own: true, .. }) = mentions.registers.get(&register).copied() else {
            continue;
        };
        if mentions.labelled.contains(&statement) {
            continue;
        }
        let count = counts.entry((statement, &info.name, info.init)).or_default();
        let stands_for = shared.entry((&info.name, info.init, *count)).or_insert(register);
        names.insert(register, *stands_for);
        *count += 1;
    }
    names
}

/// The occurrences of registers in the code of a thread.
#[derive(Default)]
struct Mentions {
    registers: HashMap<Register, Mention>,
    /// The statements that contain labels, by number.
    labelled: HashSet<usize>,
    statements: usize,
    blocks: usize,
}

/// The occurrences of a register.
#[derive(Clone, Copy)]
struct Mention {
    /// The statement of the first occurrence.
    statement: usize,
    /// The block of the first occurrence.
    block: usize,
    /// Whether the first occurrence is a write, and all other occurrences are in the same statement and in the block of the write or in a block
    /// inside it.
    own: bool,
}

impl Mentions {
    /// Records the occurrences in some code. `of`: the enclosing statement, if the code is inside one; `around`: the enclosing blocks.
    fn block(&mut self, code: &[Step], of: Option<usize>, around: &mut Vec<usize>, stop: &Stop<'_>) {
        self.blocks += 1;
        around.push(self.blocks);
        for Step { kind, .. } in stop.polled(code) {
            let statement = of.unwrap_or_else(|| {
                self.statements += 1;
                self.statements
            });
            let writes_first = kind.found().is_some();
            if let (true, Some(register)) = (writes_first, kind.writes()) {
                self.mention(register, statement, around, true);
            }
            kind.values(&mut |term| {
                term.registers(&mut |register| self.mention(register, statement, around, false));
            });
            if let Some(register) = kind.writes() {
                self.mention(register, statement, around, true);
            }
            if matches!(kind, StepKind::Label(_)) {
                self.labelled.insert(statement);
            }
            let inside = of.or_else(|| matches!(kind, StepKind::Steps(_)).then_some(statement));
            kind.blocks().for_each(|block| self.block(block, inside, around, stop));
        }
        around.pop();
    }

    fn mention(&mut self, register: Register, statement: usize, around: &[usize], written: bool) {
        let block = around.last().copied().unwrap_or_default();
        let known = self.registers.entry(register).or_insert(Mention { statement, block, own: written });
        known.own &= known.statement == statement && around.contains(&known.block);
    }
}

fn rename(code: &mut [Step], name: &impl Fn(Register) -> Register, stop: &Stop<'_>) {
    for Step { kind, .. } in stop.polled(code) {
        if let Some(register) = kind.writes_mut() {
            *register = name(*register);
        }
        kind.values_mut(&mut |term| *term = term.replaced(&|register| Term::Register(name(register))));
        kind.blocks_mut().for_each(|block| rename(block, name, stop));
    }
}
