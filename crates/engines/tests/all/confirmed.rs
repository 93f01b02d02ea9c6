//! The proofs of all symbolic engines are confirmed: none of them is wrong, and a proof that the checker cannot decide is not reported as a
//! contradiction.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use fencewright_engines::auto::Auto;
use fencewright_engines::buffers::Buffers;
use fencewright_engines::cegar::{self, Cegar};
use fencewright_engines::contexts::ContextBound;
use fencewright_engines::domain::DomainName;
use fencewright_engines::extrapolate::Extrapolate;
use fencewright_engines::lazy::Lazy;
use fencewright_engines::{Confirm, Engine, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_executions::oracle::{self, Reachable};
use fencewright_lang::load;
use fencewright_program::{Action, BinaryOp, Expr, MemoryModel, Op, Program, RegisterId, UnaryOp, Width};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::{Random, Shape, program, programs_or, spread};

fn cegar(domain: DomainName) -> Cegar {
    Cegar { options: cegar::Options { domain, ..cegar::Options::default() } }
}

fn confirmed(
    engine: &dyn Engine,
    program: &Program,
    model: MemoryModel,
    time: u64,
) -> Vec<fencewright_engines::Checked> {
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_millis(time)), Some(1 << 28), Default::default());
    let confirm = Confirm { certificates: true, exploration: None };
    check(engine, &task, &limits, &Progress::default(), confirm)
}

/// Checks that the properties hold under SC, with a certificate of engine `cegar`.
fn holds(text: &str) {
    let program = load("test.fw", text.as_bytes(), None, &[]).expect("it is right").program;
    for checked in confirmed(&cegar(DomainName::Zones), &program, MemoryModel::Sc, 60_000) {
        assert!(
            matches!(checked.verdict(), Verdict::Safe),
            "{}: {:?}",
            checked.property.name,
            checked.verdict()
        );
        assert_eq!(checked.checked(), Some(true));
    }
}

#[test]
fn a_constant_that_wraps_around_is_that_constant() {
    holds("shared y: i64; thread p { var r, s; atomic { r = 1; y = r; } } forbid one: p.s == 1;");
}

#[test]
fn one_of_many_cubes_with_residues_follows() {
    holds(
        "const N = 3; shared x; shared f[N];
         thread p[me in 0..N] { var r; r = * in 1..3; L2: assume f[r & 1] != 0; }
         thread q { var s; if cas(f[0], x, x >= s) { } }
         finally two: never i in 0..3: p[i].r != 1 && p[i]@L2;",
    );
}

#[test]
fn a_check_that_is_not_linear_is_no_fault() {
    let text = "numbers nat; shared x; thread p { } thread q { var r: -1..=1 = 1;
        atomic { x = 2; r = * in 0..=0; x = r % 5 * (r % 5); } sfence; x = r; }";
    let program = load("test.fw", text.as_bytes(), None, &[]).expect("it is right").program;
    for checked in confirmed(&Extrapolate::default(), &program, MemoryModel::Tso, 60_000) {
        let wrong = matches!(checked.verdict(), Verdict::Unsafe | Verdict::Unknown(Reason::Contradiction(_)));
        assert!(!wrong, "{}: {:?}", checked.property.name, checked.verdict());
    }
}

/// Makes some values wrap around, and some extreme.
fn wrap(random: &mut Random, program: &mut Program) {
    let change = |value: &mut Expr<RegisterId>, random: &mut Random| {
        let old = std::mem::replace(value, Expr::Const(0));
        let width = *random.pick(&Width::ALL);
        let limit = *random.pick(&[i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1, 1 << 31, 1 << 62]);
        *value = match random.below(6) {
            0 | 1 => Expr::Unary(UnaryOp::Signed(width), Box::new(old)),
            2 => Expr::Unary(UnaryOp::Unsigned(width), Box::new(old)),
            3 => Expr::Binary(
                *random.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Max]),
                Box::new(old),
                Box::new(Expr::Const(limit)),
            ),
            4 => Expr::Binary(
                *random.pick(&[BinaryOp::BitAnd, BinaryOp::Rem]),
                Box::new(old),
                Box::new(Expr::Const(random.between(2, 7))),
            ),
            _ => Expr::Binary(BinaryOp::Shl, Box::new(old), Box::new(Expr::Const(random.between(60, 63)))),
        };
    };
    for edge in program.threads.iter_mut().flat_map(|thread| &mut thread.edges) {
        let ops: &mut [Op] = match &mut edge.action {
            Action::Op(op) => std::slice::from_mut(op),
            Action::Atomic { ops, .. } => ops,
            _ => continue,
        };
        for op in ops {
            match op {
                Op::Assign(_, value) | Op::Store(_, value) if random.one_in(3) => change(value, random),
                _ => {}
            }
        }
    }
}

fn engines() -> Vec<(&'static str, Box<dyn Engine>)> {
    let mut auto = Auto::default();
    auto.explicit.options.workers = 1;
    let mut lazy = Lazy::default();
    lazy.sc.explicit.options.workers = 1;
    lazy.options.certificates = true;
    vec![
        ("zones", Box::new(cegar(DomainName::Zones))),
        ("predicates", Box::new(cegar(DomainName::Predicates))),
        ("order", Box::new(cegar(DomainName::Order))),
        ("concrete", Box::new(cegar(DomainName::Concrete))),
        ("contexts", Box::new(ContextBound::default())),
        ("buffers", Box::new(Buffers::default())),
        ("extrapolate", Box::new(Extrapolate::default())),
        ("lazy", Box::new(lazy)),
        ("auto", Box::new(auto)),
    ]
}

fn explored(program: &Program, model: MemoryModel) -> Option<Reachable> {
    oracle::explore(program, model, 3_000, &mut || false).ok()
}

#[test]
fn no_proof_is_a_contradiction() {
    // For each engine the numbers of confirmed proofs, violations, unknown verdicts, and proofs that were not confirmed.
    let counts = Mutex::new(BTreeMap::<&str, [usize; 4]>::new());
    let contradictions = Mutex::new(Vec::new());
    let programs = programs_or(60) as u64;
    spread(31_000_000..31_000_000 + programs, |seed| {
        let mut random = Random::new(seed);
        let shape = Shape { length: 4, loops: seed % 2 == 0, corners: seed % 3 == 0, ..Shape::default() };
        let mut program = program(&mut random, shape);
        if seed % 4 > 0 {
            compute(&mut random, &mut program);
        }
        if seed % 4 > 1 {
            wrap(&mut random, &mut program);
        }
        let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso]);
        let reachable = explored(&program, model);
        for (name, engine) in engines() {
            for checked in confirmed(&*engine, &program, model, 300) {
                let property = &checked.property;
                let about = format!("seed {seed}, {model:?}, {name}, property {}", property.name);
                let holds = reachable.as_ref().and_then(|r| r.satisfies(&program, model, property));
                let kind = match checked.verdict() {
                    Verdict::Safe => {
                        assert_ne!(holds, Some(false), "{about}: a wrong proof");
                        0
                    }
                    Verdict::Unsafe => {
                        assert_ne!(holds, Some(true), "{about}: a wrong violation");
                        1
                    }
                    Verdict::Unknown(Reason::Contradiction(what)) => {
                        println!("{about}: {what}");
                        contradictions
                            .lock()
                            .expect("no other test has failed")
                            .push(format!("{about}: {what}"));
                        2
                    }
                    Verdict::Unknown(reason @ Reason::Unconfirmed(_)) => {
                        println!("{about}: {reason}");
                        3
                    }
                    Verdict::Unknown(_) => 2,
                };
                counts.lock().expect("no other test has failed").entry(name).or_default()[kind] += 1;
            }
        }
    });
    let counts = counts.into_inner().expect("no test has failed");
    let contradictions = contradictions.into_inner().expect("no test has failed");
    assert!(contradictions.is_empty(), "{contradictions:#?}");
    println!("safe, unsafe, unknown, unconfirmed: {counts:?}");
    assert!(counts.values().all(|[safe, ..]| *safe > 0), "{counts:?}");
}
