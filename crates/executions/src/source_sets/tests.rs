//! The enumeration against the oracle, which visits all states.

use fencewright_lang::load;
use fencewright_program::{Action, Op, PropertyKind};
use fencewright_testing::waiting::wait;
use fencewright_testing::{Random, Shape, contend, group, program, programs_or, separate, spread};

use super::footprint::{Mutant, Object};
use super::*;
use crate::oracle::{Reachable, explore};

/// Maximum number of states of the random programs; those with more are skipped.
const MOST_STATES: usize = 400;

fn random_program(seed: u64, loops: bool) -> Program {
    let mut random = Random::new(seed);
    let mut program = program(&mut random, Shape { loops, corners: seed % 4 == 3, ..Shape::default() });
    match seed % 8 {
        1 | 5 => contend(&mut random, &mut program, 3),
        2 => group(&mut random, &mut program),
        3 | 4 => wait(&mut random, &mut program),
        6 => {
            contend(&mut random, &mut program, 3);
            separate(&mut random, &mut program);
        }
        _ => {}
    }
    program
}

/// A program in which the cells that a step accesses, and the cells that it waits for, depend on values that other threads write.
fn depending_on_values(random: &mut Random) -> Program {
    let mut text = String::from("shared y, a[2];\n");
    for t in 0..3 + random.below(2) {
        let statement = |random: &mut Random| match random.below(12) {
            0 | 1 => "snapshot { s = y; s = a[s]; }".to_string(),
            2 => "atomic { s = y; if s == 0 { a[0] = 2; } else { a[1] = 2; } }".to_string(),
            3 => "atomic { s = y; a[s] = 3; }".to_string(),
            4 => format!("a[{}] = {};", random.below(2), random.below(3)),
            5 => format!("r = a[{}];", random.below(2)),
            6 => "r = cas(a[0], 0, 1) ? 1 : 2;".to_string(),
            7 => "atomic { assume y == 1; r = a[0]; }".to_string(),
            8 => format!("atomic {{ assume y == {} && a[1] == 0; a[0] = 1; }}", random.below(2)),
            9 => "atomic { s = y; assume a[s] != 1; a[s] = 1; }".to_string(),
            10 => "choose { y = 1; } or { r = a[1]; }".to_string(),
            _ => format!("y = {};", random.below(2)),
        };
        let mut statements = statement(random);
        for _ in 0..random.below(3) {
            statements += &statement(random);
        }
        text += &format!("thread t{t} {{ var r, s; {statements} }}\n");
    }
    text += "finally f: never t0.r == 0 && t1.r == 2 && a[0] == 1;
        forbid g: t0.s == 1 && a[1] == 3;
        forbid h: t1.r == 1 && y == 0;\n";
    load("values.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}")).program
}

/// The properties to compare, in groups: one group for each formula that must never hold, one for all other properties, and one for all properties.
fn groups(program: &Program) -> Vec<Vec<Property>> {
    let all = program.properties.iter().cloned().chain([Property::assertions(), Property::deadlock()]);
    let (never, others): (Vec<Property>, Vec<Property>) =
        all.partition(|p| matches!(p.kind, PropertyKind::Never(_)));
    let together = [others.clone(), never.iter().chain(&others).cloned().collect()];
    never.into_iter().map(|p| vec![p]).chain(together).collect()
}

fn registers_and_memory(program: &Program) -> Vec<Observable> {
    let registers = program.threads().flat_map(|(t, code)| {
        (0..code.registers.len()).map(move |r| (t, fencewright_program::RegisterId(r as u32)))
    });
    let registers = registers.map(|(t, r)| Observable::Register(t, r));
    registers.chain((0..program.cells()).map(|cell| Observable::Memory(cell as u32))).collect()
}

fn finals(program: &Program, model: MemoryModel, reachable: &Reachable) -> BTreeSet<Vec<i64>> {
    let reference = fencewright_program::Reference::new(program, model);
    let values = |state: &State| state.registers.iter().flatten().chain(&state.memory).copied().collect();
    reachable.states.iter().filter(|state| reference.is_final(state)).map(values).collect()
}

#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    answers: u64,
    violated: u64,
    executions: u64,
    redundant: u64,
    endless: u64,
    deadlocks: u64,
}

/// Compares all answers about a program with those of the oracle; the error describes the first difference.
fn compare(
    program: &Program,
    model: MemoryModel,
    mutant: Option<Mutant>,
    compared: &mut Compared,
) -> Result<(), String> {
    let Ok(reachable) = explore(program, model, MOST_STATES, &mut || false) else { return Ok(()) };
    let observed = registers_and_memory(program);
    for properties in groups(program) {
        let question = Question { properties: &properties, observed: &observed };
        let mut steps = Steps::new(program, model, question.properties);
        steps.mutant = mutant;
        let found = match run(steps, question, 200_000, &mut |_| false) {
            Ok(found) => found,
            Err(Incomplete::Endless) => {
                compared.endless += 1;
                continue;
            }
            Err(Incomplete::TooManyEvents) => continue,
            Err(why) => return Err(format!("{why:?}")),
        };
        if found.finals != finals(program, model, &reachable) {
            return Err(format!("other final states: {found:?}"));
        }
        for (property, satisfied) in properties.iter().zip(&found.satisfied) {
            let expected = reachable.satisfies(program, model, property);
            if *satisfied != expected {
                return Err(format!("{}: {satisfied:?} instead of {expected:?}", property.name));
            }
            compared.answers += 1;
            compared.violated += u64::from(expected == Some(false));
        }
        compared.deadlocks += u64::from(!reachable.deadlocks.is_empty());
        compared.executions += found.executions;
        compared.redundant += found.redundant;
    }
    Ok(())
}

#[test]
fn answers_are_those_of_all_states() {
    let programs = programs_or(300) as u64;
    let about = |seed: u64| {
        let program = match seed % 3 {
            0 => depending_on_values(&mut Random::new(seed)),
            _ => random_program(7_000_000 + seed, seed % 9 == 1),
        };
        let mut compared = Compared::default();
        for model in MemoryModel::ALL {
            let same = compare(&program, model, None, &mut compared);
            assert_eq!(same, Ok(()), "seed {seed}, {model:?}");
        }
        compared
    };
    let compared = spread(0..programs, about).into_iter().fold(Compared::default(), |all, more| Compared {
        answers: all.answers + more.answers,
        violated: all.violated + more.violated,
        executions: all.executions + more.executions,
        redundant: all.redundant + more.redundant,
        endless: all.endless + more.endless,
        deadlocks: all.deadlocks + more.deadlocks,
    });
    println!("{compared:?}");
    let Compared { answers, violated, executions, redundant, deadlocks, .. } = compared;
    assert!(answers > 5_000 && violated > 1_000 && deadlocks > 500, "too few answers: {compared:?}");
    assert!(redundant * 2 < executions, "too many executions are equivalent: {compared:?}");
}

/// Small programs, most of them random; each kind of dependence matters in some of them.
fn small(seed: u64) -> Program {
    match seed % 2 {
        0 if seed == 0 => {
            loaded("shared x, y; thread p { x = 1; sfence; y = 1; } thread q { var r, s; r = y; s = x; }")
        }
        0 => depending_on_values(&mut Random::new(seed)),
        _ => random_program(seed / 2, false),
    }
}

#[test]
fn a_dependence_that_is_left_out_is_noticed() {
    type Omits = fn(bool, Object, bool) -> bool;
    let mutants: [(&str, Omits); 9] = [
        ("loads", |flush, object, writes| !flush && matches!(object, Object::Cell(_)) && !writes),
        ("stores to memory", |flush, object, writes| !flush && matches!(object, Object::Cell(_)) && writes),
        ("flushes", |flush, object, _| flush && matches!(object, Object::Cell(_))),
        ("reads of the own buffer", |flush, object, writes| {
            !flush && matches!(object, Object::Store(..)) && !writes
        }),
        ("stores into the buffer", |flush, object, writes| {
            !flush && matches!(object, Object::Store(..)) && writes
        }),
        ("flushes that sfence orders", |flush, object, writes| {
            flush && matches!(object, Object::Store(..)) && !writes
        }),
        ("the lock", |_, object, _| object == Object::Lock),
        ("formulas", |_, object, _| matches!(object, Object::Formula(_))),
        ("waiting", |_, _, _| false),
    ];
    for (name, omits) in mutants {
        let mutant = Mutant { omits, waits: name == "waiting" };
        let is_noticed = |seed: u64| {
            let program = small(seed);
            MemoryModel::ALL
                .into_iter()
                .any(|model| compare(&program, model, Some(mutant), &mut Compared::default()).is_err())
        };
        assert!((0..1_000).any(is_noticed), "without {name}, nothing is noticed");
    }
}

fn loaded(text: &str) -> Program {
    load("test.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}")).program
}

fn enumerated(program: &Program, model: MemoryModel) -> Result<Enumerated, Incomplete> {
    let question = Question { properties: &program.properties, observed: &[] };
    enumerate(program, model, question, 1_000_000, &mut |_| false)
}

#[test]
fn threads_that_do_not_meet_have_few_executions() {
    let program = loaded("shared x[4]; thread p[i in 0..4] { var r; x[i] = 1; r = x[i]; assert r == 1; }");
    for model in MemoryModel::ALL {
        let question = Question { properties: &[Property::assertions()], observed: &[] };
        let found = enumerate(&program, model, question, 10_000, &mut |_| false).expect("few executions");
        // Under TSO and PSO, each load reads its own thread's buffer or memory, which gives two executions for each of the loads.
        let most = if model == MemoryModel::Sc { 1 } else { 1 << 4 };
        assert!(found.satisfied == [Some(true)] && found.executions <= most, "{model:?}: {found:?}");
    }
}

#[test]
fn what_is_not_covered_has_no_result() {
    let endless = loaded("shared x; thread p { while true { x = 1; x = 0; } } thread q { var r; r = x; }");
    let unbounded = loaded("shared x; thread p { var r; r = *; x = r; }");
    let large = loaded("shared x; thread p { var r = 9223372036854775807; r = r + 1; x = r; }");
    let cases = [
        (endless, Incomplete::Endless),
        (unbounded, Incomplete::UnboundedChoice),
        (large, Incomplete::Limit),
    ];
    for (program, why) in cases {
        for model in MemoryModel::ALL {
            assert_eq!(enumerated(&program, model), Err(why), "{model:?}");
        }
    }
    let many = loaded("shared x; thread p[i in 0..6] { x = i; x = i + 10; }");
    let question = Question { properties: &many.properties, observed: &[] };
    let found = enumerate(&many, MemoryModel::Sc, question, 5_000, &mut |_| false);
    assert_eq!(found, Err(Incomplete::TooManyEvents));
    let mut asked = 0;
    let mut stop = |_| {
        asked += 1;
        asked == 100
    };
    assert_eq!(enumerate(&many, MemoryModel::Sc, question, 5_000, &mut stop), Err(Incomplete::Stopped));
    assert_eq!(asked, 100);
}

#[test]
fn the_steps_of_random_programs_are_of_all_kinds() {
    let mut met = [false; 7];
    for seed in 0..400 {
        let program = small(seed);
        for action in program.threads.iter().flat_map(|t| t.edges.iter().map(|e| &e.action)) {
            let kind = match action {
                Action::Lock => 0,
                Action::Unlock => 1,
                Action::Fence => 2,
                Action::StoreFence => 3,
                Action::Atomic { drains: true, .. } => 4,
                Action::Atomic { drains: false, .. } => 5,
                Action::Op(Op::Havoc(..)) => 6,
                Action::Op(_) => continue,
            };
            met[kind] = true;
        }
    }
    assert_eq!(met, [true; 7]);
}
