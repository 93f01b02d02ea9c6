//! Registers that hold something within one statement only: those of different statements are one register. A long function would otherwise have a register for
//! every value that it ever reads.
//!
//! Such a register is mentioned by one statement alone, without labels that somebody could jump to, and first of all written: all else that is said
//! about it stands in the same block, behind that.

use std::collections::{HashMap, HashSet};

use fencewright_front_end::facts::{Holds, Kind};
use fencewright_text::Stop;

use crate::core::Register;
use crate::flat::{Step, StepKind, Term, Thread};

/// A thread with fewer registers has one for each value.
const FEW: usize = 256;

/// Whether a thread has so many registers that some of them should be one.
pub(crate) fn has_many_registers(thread: &Thread) -> bool {
    thread.registers.len() > FEW
}

/// Lets statements of a thread share registers.
pub(crate) fn share(thread: &mut Thread, stop: &Stop<'_>) {
    let mut mentions = Mentions::default();
    mentions.block(&thread.code, None, &mut Vec::new(), stop);
    // Nobody would know the registers that were not looked for.
    if stop.at_once() {
        return;
    }
    let (names, mut numbers) = (shared(thread, &mentions, stop), HashMap::new());
    // Nobody mentions the others any more.
    let mut kept = Vec::new();
    let mut all = std::mem::take(&mut thread.registers);
    // Reports say of a shared register what holds for all that share it.
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

/// The register that stands for each one that can be shared: for all that are the n-th of their name in their statements, and start alike.
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

/// Who mentions what.
#[derive(Default)]
struct Mentions {
    registers: HashMap<Register, Mention>,
    /// The statements with labels.
    labelled: HashSet<usize>,
    statements: usize,
    blocks: usize,
}

/// Who mentions a register.
#[derive(Clone, Copy)]
struct Mention {
    /// The first statement.
    statement: usize,
    /// The block in which it is mentioned first.
    block: usize,
    /// Whether it is written there, and nobody else mentions it but what stands in that block.
    own: bool,
}

impl Mentions {
    /// Looks at some code, of this statement or of none, and inside these blocks.
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
