//! Failures inside atomic blocks: checks and ends of the model. An atomic block cannot be left in the middle, so after a failed check the rest of the
//! block is skipped, and the failure takes effect after the block.

#[cfg(test)]
mod tests;

use fencewright_program::{BinaryOp, UnaryOp};
use fencewright_text::Stop;

use crate::core::Register;
use crate::flat::{RegisterInfo, Step, StepKind, Term, Thread, Violation};

/// Moves failures after the atomic blocks that they occur in.
pub(crate) fn move_failures(thread: &mut Thread, stop: &Stop<'_>) {
    let register = Register(thread.registers.len() as u32);
    if in_block(&mut thread.code, register, stop) {
        thread.registers.push(RegisterInfo::temporary("failed", 0));
    }
}

fn in_block(code: &mut Vec<Step>, register: Register, stop: &Stop<'_>) -> bool {
    let mut moved = false;
    let mut done = Vec::with_capacity(code.len());
    for mut step in stop.polled(std::mem::take(code)) {
        let span = step.span;
        let mut failures = Vec::new();
        if let StepKind::Atomic(block) = &mut step.kind {
            *block = skipping(std::mem::take(block), register, &mut failures);
            moved |= !failures.is_empty();
        } else {
            for block in step.kind.blocks_mut() {
                moved |= in_block(block, register, stop);
            }
        }
        done.push(step);
        done.extend((1..).zip(failures).map(|(number, failure)| {
            let failed = Term::Register(register);
            let kind = match failure {
                Failure::Check(violation) => StepKind::Check(failed.with(BinaryOp::Ne, number), violation),
                Failure::Beyond(text) => StepKind::Beyond(failed.with(BinaryOp::Eq, number), text),
            };
            Step { kind, span }
        }));
    }
    *code = done;
    moved
}

/// The reason why the rest of a block is skipped.
enum Failure {
    Check(Violation),
    Beyond(String),
}

/// Makes the rest of the block after each check conditional on the check; failures are numbered from 1. The block contains no loops and no jumps.
fn skipping(block: Vec<Step>, register: Register, failures: &mut Vec<Failure>) -> Vec<Step> {
    let mut done = Vec::new();
    let mut rest = block.into_iter();
    while let Some(step) = rest.next() {
        let failing = match &step.kind {
            StepKind::Check(condition, violation) => {
                Some((condition.clone(), Failure::Check(violation.clone())))
            }
            StepKind::Beyond(condition, text) => {
                Some((Term::unary(UnaryOp::Not, condition.clone()), Failure::Beyond(text.clone())))
            }
            _ => None,
        };
        if let Some((holds, failure)) = failing {
            failures.push(failure);
            let failed = StepKind::Assign(register, Term::Number(failures.len() as i64));
            let failed = vec![Step { kind: failed, span: step.span }];
            let behind = skipping(rest.collect(), register, failures);
            done.push(Step { kind: StepKind::If(holds, behind, failed), span: step.span });
            return done;
        }
        match step.kind {
            StepKind::Steps(inner) | StepKind::Block(inner) => {
                // Groups declare no names, so their contents can be merged into the enclosing block.
                let flat = inner.into_iter().chain(rest).collect();
                done.extend(skipping(flat, register, failures));
                return done;
            }
            mut kind => {
                let (before, span) = (failures.len(), step.span);
                for block in kind.blocks_mut() {
                    *block = skipping(std::mem::take(block), register, failures);
                }
                done.push(Step { kind, span });
                if failures.len() > before {
                    let passed = Term::Register(register).with(BinaryOp::Eq, 0);
                    let behind = skipping(rest.collect(), register, failures);
                    if !behind.is_empty() {
                        done.push(Step { kind: StepKind::If(passed, behind, Vec::new()), span });
                    }
                    return done;
                }
            }
        }
    }
    done
}
