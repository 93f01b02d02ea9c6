//! Checks in indivisible blocks, and ends of what is modelled. A block cannot be left in the middle: after a failed check the rest of the block is skipped, and the
//! failure takes effect behind the block.

use super::super::core::Register;
use super::claims::Claims;
use super::flat::{RegisterInfo, Step, StepKind, Term, Thread, Wrong};
use fencewright_program::{BinaryOp, UnaryOp};

/// Moves the consequences of failed checks behind the blocks that they stand in.
pub(super) fn move_failures(thread: &mut Thread) {
    let register = Register(thread.registers.len() as u32);
    if in_block(&mut thread.code, register) {
        thread.registers.push(RegisterInfo { name: "failed".to_string(), init: 0 });
    }
}

fn in_block(code: &mut Vec<Step>, register: Register) -> bool {
    let mut moved = false;
    let mut n = 0;
    while n < code.len() {
        let span = code[n].span;
        if let StepKind::Atomic(block) = &mut code[n].kind {
            let mut failures = Vec::new();
            *block = skipping(std::mem::take(block), register, &mut failures);
            moved |= !failures.is_empty();
            for (number, failure) in (1..).zip(failures).collect::<Vec<_>>().into_iter().rev() {
                let failed = Term::Register(register);
                let kind = match failure {
                    Failure::Check(wrong, claims) => {
                        StepKind::Check(failed.with(BinaryOp::Ne, number), wrong, claims)
                    }
                    Failure::Beyond(text) => StepKind::Beyond(failed.with(BinaryOp::Eq, number), text),
                };
                code.insert(n + 1, Step { kind, span });
            }
        } else {
            for block in code[n].kind.blocks_mut() {
                moved |= in_block(block, register);
            }
        }
        n += 1;
    }
    moved
}

/// Why the rest of a block is skipped.
enum Failure {
    Check(Wrong, Claims),
    Beyond(String),
}

/// The block with everything behind a check done only if the check succeeds; failures are numbered from 1.
fn skipping(block: Vec<Step>, register: Register, failures: &mut Vec<Failure>) -> Vec<Step> {
    let mut done = Vec::new();
    let mut rest = block.into_iter();
    while let Some(mut step) = rest.next() {
        let failing = match &step.kind {
            StepKind::Check(condition, wrong, claims) => {
                Some((condition.clone(), Failure::Check(*wrong, claims.clone())))
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
                // No name is declared in them, so what they hold may as well stand alone.
                let flat = inner.into_iter().chain(rest).collect();
                done.extend(skipping(flat, register, failures));
                return done;
            }
            StepKind::If(condition, then, otherwise) => {
                let before = failures.len();
                let then = skipping(then, register, failures);
                let otherwise = skipping(otherwise, register, failures);
                step.kind = StepKind::If(condition, then, otherwise);
                done.push(step);
                if failures.len() > before {
                    let passed = Term::Register(register).with(BinaryOp::Eq, 0);
                    let span = done[done.len() - 1].span;
                    let behind = skipping(rest.collect(), register, failures);
                    if !behind.is_empty() {
                        done.push(Step { kind: StepKind::If(passed, behind, Vec::new()), span });
                    }
                    return done;
                }
            }
            kind => done.push(Step { kind, span: step.span }),
        }
    }
    done
}
