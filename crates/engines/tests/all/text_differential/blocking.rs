//! Tests all engines on programs in which threads wait: in every configuration of every engine, a thread has no step while its condition is false.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use fencewright_engines::auto::Auto;
use fencewright_engines::buffers::Buffers;
use fencewright_engines::cegar::{self, Cegar};
use fencewright_engines::contexts::ContextBound;
use fencewright_engines::domain::DomainName;
use fencewright_engines::explicit::{self, Explicit, Order, Reduction};
use fencewright_engines::extrapolate::Extrapolate;
use fencewright_engines::lazy::{self, Lazy, OracleName};
use fencewright_engines::{Confirm, Engine, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_lang::Awaits;
use fencewright_lang::ast::{Block, Expr, ExprKind, File, Item, StatementKind};
use fencewright_lang::fw;
use fencewright_program::{BinaryOp, MemoryModel, Property};
use fencewright_testing::{Random, programs_or, spread};

use super::control::inner_blocks;
use super::generate::{Generated, NOWHERE, generate};
use super::observe::{Observed, label_bits, of_program};
use super::shrink::inner_blocks_mut;
use super::{compare, read};

/// Programs with more states than this are skipped.
const MOST_STATES: usize = 1_500;

/// The expressions of a block that can become parts of conditions: conditions and read-modify-write operations.
fn collect(block: &Block, conditions: &mut Vec<Expr>) {
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Assume(e) | StatementKind::Assert(e, _) | StatementKind::Await(e) => {
                conditions.push(e.clone());
            }
            StatementKind::Expr(e) => conditions.push(e.clone()),
            StatementKind::Atomic(_) | StatementKind::Snapshot(_) => {}
            _ => inner_blocks(statement).into_iter().for_each(|inner| collect(inner, conditions)),
        }
    }
}

/// Turns most assertions and assumptions into waiting, some of them with further conditions.
fn wait(random: &mut Random, block: &mut Block, conditions: &[Expr]) {
    let condition = |random: &mut Random, e: &Expr| {
        let mut whole = e.clone();
        while random.one_in(2) {
            let (op, other) = (*random.pick(&[BinaryOp::And, BinaryOp::Or]), random.pick(conditions).clone());
            let (left, right) = if random.one_in(2) { (whole, other) } else { (other, whole) };
            whole = Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span: NOWHERE };
        }
        whole
    };
    for statement in &mut block.statements {
        match &mut statement.kind {
            StatementKind::Assume(e) | StatementKind::Await(e) => {
                statement.kind = StatementKind::Await(condition(random, e));
            }
            StatementKind::Assert(e, _) if !random.one_in(3) => {
                statement.kind = StatementKind::Await(condition(random, e));
            }
            StatementKind::Atomic(_) | StatementKind::Snapshot(_) => {}
            _ => inner_blocks_mut(statement).into_iter().for_each(|inner| wait(random, inner, conditions)),
        }
    }
}

fn waiting(seed: u64) -> Generated {
    let (mut generated, mut random) = (generate(seed), Random::new(seed));
    for item in &mut generated.file.items {
        if let Item::Thread(thread) = item {
            let mut conditions = Vec::new();
            collect(&thread.body, &mut conditions);
            wait(&mut random, &mut thread.body, &conditions);
        }
    }
    generated
}

/// One instance of each engine, with random options; of the explicit engine, one instance for each reduction.
fn engines(random: &mut Random) -> Vec<(String, Box<dyn Engine>)> {
    let mut engines: Vec<(String, Box<dyn Engine>)> = Vec::new();
    let mut options = |reduction| explicit::Options {
        order: *random.pick(&[Order::BreadthFirst, Order::DepthFirst]),
        live_variables: random.one_in(2),
        symmetry: random.one_in(2),
        workers: 1 + random.below(2),
        threads_from: if random.one_in(4) { 0 } else { 1_000 },
        certificates: random.one_in(3),
        versions: random.one_in(8),
        reduction,
        ..explicit::Options::default()
    };
    for reduction in Reduction::ALL.into_iter().chain([Reduction::Suited, Reduction::Dynamic]) {
        engines.push((format!("{reduction:?}"), Box::new(Explicit { options: options(reduction) })));
    }
    for domain in [DomainName::Zones, DomainName::Predicates, DomainName::Order, DomainName::Concrete] {
        let options = cegar::Options { domain, ..cegar::Options::default() };
        engines.push((format!("{domain:?}"), Box::new(Cegar { options })));
    }
    let explicit = Explicit { options: options(Reduction::Suited) };
    let alone = if random.one_in(2) { Duration::ZERO } else { Duration::from_millis(5) };
    let auto = Auto { explicit, alone, slices: !random.one_in(4), ..Auto::default() };
    let oracle = *random.pick(&[OracleName::Robust, OracleName::Enumerate]);
    let certificates = random.one_in(2);
    let lazy = lazy::Options { oracle, certificates, ..lazy::Options::default() };
    engines.push(("contexts".into(), Box::new(ContextBound::default())));
    engines.push(("buffers".into(), Box::new(Buffers::default())));
    engines.push(("extrapolate".into(), Box::new(Extrapolate::default())));
    engines.push(("lazy".into(), Box::new(Lazy { options: lazy, sc: auto.clone() })));
    engines.push(("auto".into(), Box::new(auto)));
    engines
}

/// For each engine, how often `deadlock` held, did not hold, and was not decided.
type Counts = BTreeMap<String, [usize; 3]>;

fn waits(file: &File) -> bool {
    fw::print(file).contains("await")
}

fn agree(seed: u64, counts: &Mutex<Counts>) {
    let generated = waiting(seed);
    if !waits(&generated.file) {
        return;
    }
    let text = fw::print(&generated.file);
    let Ok(loaded) = read(&text, &generated.defines, Awaits::Block) else { return };
    // From here on the parsed tree is used, because the printed text does not show how conditions with the same operator are grouped.
    let generated = Generated { file: loaded.file, ..generated };
    let (mut random, program) = (Random::new(seed), &loaded.program);
    let model = *random.pick(&MemoryModel::ALL);
    if let Err(difference) = compare(&generated, model, None, Awaits::Block) {
        panic!("seed {seed}, {model:?}, -D {:?}: {difference}\n\n{text}", generated.defines);
    }
    let labels = label_bits(&generated.file);
    let Observed::All { verdicts, .. } = of_program(program, model, &labels, MOST_STATES) else { return };
    if verdicts.values().any(Option::is_none) {
        return;
    }
    let deadlock = Property::deadlock();
    let properties = match random.one_in(2) {
        true => vec![deadlock.clone()],
        false => program.properties.iter().cloned().chain([deadlock.clone()]).collect(),
    };
    let task = Task::new(program, model, properties);
    for (name, engine) in engines(&mut random) {
        let limits =
            Limits::starting_now(Some(Duration::from_millis(300)), Some(1 << 28), Default::default());
        let confirm = match random.one_in(2) {
            true => Confirm::NOTHING,
            false => Confirm { certificates: true, exploration: None },
        };
        for checked in check(&*engine, &task, &limits, &Progress::default(), confirm) {
            let property = &checked.property;
            let about = || format!("seed {seed}, {model:?}, {name}, property {}:\n{text}", property.name);
            let answer = match checked.verdict() {
                Verdict::Safe => {
                    assert_eq!(verdicts[&property.name], Some(true), "a wrong proof: {}", about());
                    0
                }
                Verdict::Unsafe => {
                    assert_eq!(verdicts[&property.name], Some(false), "a wrong violation: {}", about());
                    1
                }
                Verdict::Unknown(Reason::Contradiction(what)) => panic!("{what}: {}", about()),
                Verdict::Unknown(_) => 2,
            };
            if property.name == deadlock.name {
                counts.lock().expect("no other test has failed").entry(name.clone()).or_default()[answer] +=
                    1;
            }
        }
    }
}

#[test]
fn no_step_is_lost_after_an_evaluation_that_changes_memory() {
    let text = "shared x; shared y; shared a; shared b = 1;
        thread p { await a == 1 && b == 0 || cas(x, 0, 1) && y == 7; done: skip; }
        thread q { await x == 1; a = 1; a = 0; b = 0; }
        forbid passed: p@done;";
    for awaits in [Awaits::Spin, Awaits::Block] {
        let program = read(text, &[], awaits).expect("it is right").program;
        for model in MemoryModel::ALL {
            let Observed::All { verdicts, .. } = of_program(&program, model, &["done".into()], MOST_STATES)
            else {
                panic!("it is small");
            };
            assert_eq!(verdicts["passed"], Some(false), "{awaits:?}, {model:?}");
        }
    }
}

#[test]
fn all_engines_know_who_is_blocked() {
    let counts = Mutex::new(Counts::new());
    let first =
        51_000_000 + std::env::var("FENCEWRIGHT_SEED").map_or(0, |seed| seed.parse().expect("a seed"));
    spread(first..first + programs_or(200) as u64, |seed| agree(seed, &counts));
    let counts = counts.into_inner().expect("no test has failed");
    println!("safe, unsafe, unknown: {counts:?}");
    let decides = |name: &str| counts[name][0] > 0 && counts[name][1] > 0;
    assert!(["None", "Dynamic", "auto", "lazy"].into_iter().all(decides), "{counts:?}");
}
