//! Random atomic blocks with checks behave the same before and after their failures are moved: the first failed check counts, and nothing after it
//! has an effect.

use fencewright_program::{BinaryOp, Span, UnaryOp};
use fencewright_testing::{Random, programs_or};
use fencewright_text::Stop;

use super::move_failures;
use crate::core::{Access, Register};
use crate::flat::claims::{About, Claims};
use crate::flat::{Cell, RegisterInfo, Step, StepKind, Term, Thread, Violation, Wrong};

const REGISTERS: usize = 4;
const CELLS: usize = 3;

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Passed,
    /// An assumption does not hold: the block has no effect.
    Blocked,
    /// An assertion fails.
    Faulted,
    /// A check fails, with this message.
    Failed(String),
}

/// A thread in the middle of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    registers: Vec<i64>,
    memory: Vec<i64>,
}

impl State {
    fn value(&self, term: &Term) -> i64 {
        match term {
            Term::Number(number) => *number,
            Term::Register(register) => self.registers[register.0 as usize],
            Term::Unary(op, a) => op.apply(self.value(a)).expect("small numbers"),
            Term::Binary(op, a, b) => op.apply(self.value(a), self.value(b)).expect("small numbers"),
            Term::If(condition, a, b) => self.value(if self.value(condition) != 0 { a } else { b }),
            Term::Element(..) => unreachable!("there are no arrays"),
        }
    }

    fn holds(&self, term: &Term) -> bool {
        self.value(term) != 0
    }

    /// Executes steps; `ways` resolves the choices.
    fn run(&mut self, code: &[Step], ways: &mut impl Iterator<Item = usize>) -> End {
        for step in code {
            let end = self.step(&step.kind, ways);
            if end != End::Passed {
                return end;
            }
        }
        End::Passed
    }

    fn step(&mut self, step: &StepKind, ways: &mut impl Iterator<Item = usize>) -> End {
        match step {
            StepKind::Assign(register, value) => self.registers[register.0 as usize] = self.value(value),
            StepKind::Load(register, cell, _) => {
                self.registers[register.0 as usize] = self.memory[cell.class]
            }
            StepKind::Store(cell, value, _) => self.memory[cell.class] = self.value(value),
            StepKind::Assume(condition) if !self.holds(condition) => return End::Blocked,
            StepKind::Assert(condition, _) if !self.holds(condition) => return End::Faulted,
            StepKind::Check(condition, Violation { claims, .. }) if !self.holds(condition) => {
                let About::Said(text) = &claims.0[0].about else { unreachable!("all checks say something") };
                return End::Failed(text.clone());
            }
            StepKind::Beyond(condition, text) if self.holds(condition) => return End::Failed(text.clone()),
            StepKind::Assume(_) | StepKind::Assert(..) | StepKind::Check(..) | StepKind::Beyond(..) => {}
            StepKind::If(condition, then, otherwise) => {
                return self.run(if self.holds(condition) { then } else { otherwise }, ways);
            }
            StepKind::Choose(all) => {
                let way = ways.next().expect("there are enough");
                return self.run(&all[way % all.len()], ways);
            }
            StepKind::Steps(block) | StepKind::Block(block) => return self.run(block, ways),
            StepKind::Atomic(block) => {
                let before = self.clone();
                let end = self.run(block, ways);
                if end == End::Blocked {
                    *self = before;
                }
                return end;
            }
            other => unreachable!("{other:?}"),
        }
        End::Passed
    }
}

fn step(kind: StepKind) -> Step {
    Step { kind, span: Span::default() }
}

fn register(random: &mut Random) -> Register {
    Register(random.below(REGISTERS) as u32)
}

fn term(random: &mut Random) -> Term {
    match random.below(3) {
        0 => Term::Number(random.below(3) as i64),
        1 => Term::Register(register(random)),
        _ => Term::unary(UnaryOp::Not, Term::Register(register(random))),
    }
}

/// A condition that mostly holds.
fn condition(random: &mut Random) -> Term {
    match random.below(6) {
        0 => Term::Number(random.below(2) as i64),
        1 => Term::Register(register(random)).with(BinaryOp::Eq, random.below(3) as i64),
        2 => condition(random).and(condition(random)),
        3 => condition(random).or(condition(random)),
        _ => Term::Register(register(random)).with(BinaryOp::Ne, random.below(3) as i64),
    }
}

fn block(random: &mut Random, depth: usize, checks: &mut usize) -> Vec<Step> {
    (0..random.below(6)).map(|_| step(kind(random, depth, checks))).collect()
}

fn kind(random: &mut Random, depth: usize, checks: &mut usize) -> StepKind {
    let cell = |random: &mut Random| Cell { class: random.below(CELLS), index: None };
    match random.below(if depth == 0 { 11 } else { 15 }) {
        0 => StepKind::Assign(register(random), term(random)),
        1 | 2 => StepKind::Load(register(random), cell(random), Access::Own),
        3 | 4 => StepKind::Store(cell(random), term(random), Access::Own),
        5 => StepKind::Assume(condition(random)),
        6 => StepKind::Assert(condition(random), String::new()),
        7..=9 => {
            *checks += 1;
            let holds = condition(random);
            let claims = Claims::one(&holds, About::Said(format!("check {checks}")), None);
            let wrong = *random.pick(&[Wrong::Pointer, Wrong::Bounds, Wrong::Undefined, Wrong::Other]);
            StepKind::Check(holds, Violation { wrong, claims })
        }
        10 => {
            *checks += 1;
            StepKind::Beyond(Term::unary(UnaryOp::Not, condition(random)), format!("end {checks}"))
        }
        11 | 12 => {
            let then = block(random, depth - 1, checks);
            StepKind::If(condition(random), then, block(random, depth - 1, checks))
        }
        13 => StepKind::Choose((0..2).map(|_| block(random, depth - 1, checks)).collect()),
        _ => StepKind::Steps(block(random, depth - 1, checks)),
    }
}

/// Whether no check and no end of the model is inside an atomic block.
fn is_moved(code: &[Step], inside: bool) -> bool {
    code.iter().all(|step| match &step.kind {
        StepKind::Check(..) | StepKind::Beyond(..) => !inside,
        kind => {
            let inside = inside || matches!(kind, StepKind::Atomic(_));
            kind.blocks().all(|block| is_moved(block, inside))
        }
    })
}

#[test]
fn only_the_first_failing_check_counts() {
    let mut seen = [0; 4];
    let programs = programs_or(3000);
    for seed in 0..programs as u64 {
        let random = &mut Random::new(seed);
        let mut checks = 0;
        // A failed check of the first block skips the second block and the store after it.
        let blocks = [0, 1].map(|_| step(StepKind::Atomic(block(random, 3, &mut checks))));
        let last = step(StepKind::Store(Cell { class: 0, index: None }, Term::Number(7), Access::Own));
        let [first, second] = blocks;
        let around = step(StepKind::If(condition(random), vec![first, second, last], Vec::new()));
        let before = vec![around];
        let registers = (0..REGISTERS).map(|n| RegisterInfo::temporary(format!("r{n}"), 0)).collect();
        let (name, arrays, span) = (String::new(), Vec::new(), Span::default());
        let mut thread = Thread { name, registers, arrays, code: before.clone(), span };
        move_failures(&mut thread, &Stop::never());
        assert!(is_moved(&thread.code, false), "seed {seed}: {:?}", thread.code);
        for _ in 0..20 {
            let mut number = |_| random.below(3) as i64;
            let registers: Vec<i64> = (0..REGISTERS).map(&mut number).collect();
            let mut expected = State { registers, memory: (0..CELLS).map(&mut number).collect() };
            let mut found = expected.clone();
            found.registers.resize(thread.registers.len(), 0);
            let ways: Vec<usize> = (0..64).map(|_| random.below(2)).collect();
            let end = expected.run(&before, &mut ways.iter().copied());
            let after = found.run(&thread.code, &mut ways.iter().copied());
            found.registers.truncate(REGISTERS);
            let shown = || format!("seed {seed}:\n{before:?}\n{:?}", thread.code);
            assert_eq!((&after, &found), (&end, &expected), "{}", shown());
            seen[match end {
                End::Passed => 0,
                End::Blocked => 1,
                End::Faulted => 2,
                End::Failed(_) => 3,
            }] += 1;
        }
    }
    assert!(seen.iter().all(|&seen| seen > programs / 3), "{seen:?}");
}
