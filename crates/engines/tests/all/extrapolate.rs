//! Compares engine `extrapolate` with the reference semantics: no verdict is wrong, and the certificate checker accepts every proof.
//!
//! A normal run tests 250 random programs, with and without predicates suggested in the file; `FENCEWRIGHT_PROGRAMS=N` tests N programs, and
//! `FENCEWRIGHT_SEED=N` tests the program with seed N and prints it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencewright_engines::extrapolate::{Account, Attempt, Extrapolate, Method, Options, Record};
use fencewright_engines::{
    Checked, Confirm, Evidence, Limits, Progress, Reason, Task, Token, Verdict, check,
};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{BinaryOp, Expr, Formula, MemoryModel, Observable, Program, RegisterId, ThreadId};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::{Random, Shape, contend, program, programs_or, separate};

/// Random predicates to suggest: comparisons of memory cells and registers with constants and with each other.
fn vocabulary(random: &mut Random, program: &Program) -> Vec<Formula> {
    let mut leaves: Vec<Observable> = (0..program.cells() as u32).map(Observable::Memory).collect();
    for (t, thread) in program.threads.iter().enumerate() {
        let register = |r: usize| Observable::Register(ThreadId(t as u32), RegisterId(r as u32));
        leaves.extend((0..thread.registers.len()).map(register));
    }
    let ops = [BinaryOp::Eq, BinaryOp::Le, BinaryOp::Lt, BinaryOp::Ne];
    let atom = |random: &mut Random| {
        let left = Expr::Leaf(random.pick(&leaves).clone());
        let right = match random.one_in(2) {
            true => Expr::Leaf(random.pick(&leaves).clone()),
            false => Expr::Const(random.between(-1, 2)),
        };
        Expr::binary(*random.pick(&ops), left, right)
    };
    let count = random.below(7);
    (0..count)
        .map(|_| match random.one_in(4) {
            true => Expr::binary(BinaryOp::And, atom(random), atom(random)),
            false => atom(random),
        })
        .collect()
}

/// Checks a verdict against the expected one; returns the answer, or `None` if it is unknown.
fn judge(checked: &Checked, holds: bool, about: &str) -> Option<bool> {
    match checked.verdict() {
        Verdict::Safe => {
            assert!(holds, "{about}: a wrong proof");
            assert!(matches!(checked.evidence(), Evidence::Certified(_)), "{about}: an unchecked proof");
            Some(true)
        }
        Verdict::Unsafe => {
            assert!(!holds, "{about}: a wrong violation");
            Some(false)
        }
        Verdict::Unknown(Reason::Contradiction(what)) => panic!("{about}: {what}"),
        Verdict::Unknown(_) => None,
    }
}

#[test]
fn it_agrees_with_the_reference_semantics() {
    let wanted = programs_or(250);
    let (mut compared, mut safe, mut violated, mut unknown) = (0, 0, 0, 0);
    let asked: Option<u64> = std::env::var("FENCEWRIGHT_SEED").ok().map(|seed| seed.parse().expect("a seed"));
    for seed in asked.unwrap_or(3_000_000).. {
        if compared == wanted || asked.is_some_and(|asked| seed > asked) {
            break;
        }
        let mut random = Random::new(seed);
        let shape = Shape { length: 4, corners: seed % 4 == 3, ..Shape::default() };
        let mut program = program(&mut random, shape);
        match seed % 5 {
            0 => compute(&mut random, &mut program),
            1 | 2 => contend(&mut random, &mut program, 3),
            3 => separate(&mut random, &mut program),
            _ => {}
        }
        if random.one_in(2) {
            program.hints.predicates = vocabulary(&mut random, &program);
        }
        let model = *random.pick(&MemoryModel::ALL);
        let method = *random.pick(&[Method::Predicates, Method::Cubes]);
        let Ok(reachable) = explore(&program, model, 1_500, &mut || false) else { continue };
        compared += 1;
        let k = 1 + random.below(2) as u32;
        let engine = Extrapolate { options: Options { method, k, record: None } };
        if asked.is_some() {
            println!("{}", fencewright_lang::export::fw(&program).expect("it has a text"));
            println!("// Suggested predicates: {:?}", program.hints.predicates);
        }
        let limits = Limits::starting_now(Some(Duration::from_millis(300)), None, Token::default());
        let task = Task::new(&program, model, program.properties.clone());
        for checked in check(&engine, &task, &limits, &Progress::default(), Confirm::default()) {
            let holds = reachable.satisfies(&program, model, &checked.property).expect("small values");
            let about = format!("seed {seed}, {model:?}, {method:?}, k = {k}, {}", checked.property.name);
            match judge(&checked, holds, &about) {
                Some(true) => safe += 1,
                Some(false) => violated += 1,
                None => unknown += 1,
            }
        }
    }
    println!("{compared} programs: {safe} safe, {violated} unsafe, {unknown} unknown");
    assert!(safe > wanted / 8 && violated > wanted / 8, "{safe} safe, {violated} unsafe, {unknown} unknown");
}

/// Checks one property of an example.
fn example(file: &str, property: &str, model: MemoryModel, options: Options) -> Checked {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let loaded = load(file, &text, None, &[]).expect("an example is a program");
    let wanted = loaded.program.properties.iter().filter(|p| p.name == property);
    let task = Task::new(&loaded.program, model, wanted.cloned().collect());
    let engine = Extrapolate { options };
    let mut all = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
    all.pop().unwrap_or_else(|| panic!("{file} has a property {property}"))
}

/// A proof may rely on the declared range of a buffered value without a predicate about that value: the store checked it.
#[test]
fn buffered_values_are_in_the_range_of_their_variable() {
    let text = "numbers nat;
        shared x = * in 0..=1;
        shared y;
        thread p { var r = 0; x = r; }
        thread q { var s; s = y; }
        predicates { p.r < x; }
        forbid both: q.s == 2 && p.r == 2;";
    let loaded = load("range.fw", text.as_bytes(), None, &[]).expect("it is a program");
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let wanted = loaded.program.properties.iter().filter(|p| p.name == "both");
        let task = Task::new(&loaded.program, model, wanted.cloned().collect());
        let all = check(
            &Extrapolate::default(),
            &task,
            &Limits::default(),
            &Progress::default(),
            Confirm::default(),
        );
        assert_eq!(judge(&all[0], true, "both"), Some(true), "{model:?}: {:?}", all[0].verdict());
    }
}

/// The seven algorithms of EXTRA13 s. 6.2: the unfenced file, the property, and the files with fences for TSO and for PSO. The queue without fences
/// would take too much time under PSO.
const ALGORITHMS: [[&str; 4]; 7] = [
    ["dekker.fw", "mutex", "dekker.fenced.fw", "dekker.fenced.fw"],
    ["peterson.fw", "mutex", "peterson.fenced.fw", "peterson.pso.fw"],
    ["alternating-bit.fw", "in_step", "alternating-bit.fw", "alternating-bit.fw"],
    ["szymanski.fw", "mutex", "szymanski.fenced.fw", "szymanski.fenced.fw"],
    ["array-queue.fw", "in_bounds", "array-queue.fw", ""],
    ["bakery.fw", "mutex", "bakery.fenced.fw", "bakery.pso.fw"],
    ["ticket-lock.fw", "mutex", "ticket-lock.fw", "ticket-lock.fw"],
];

#[test]
fn the_algorithms_of_the_paper_are_proved() {
    for [sc, property, tso, pso] in ALGORITHMS {
        let files = [(sc, MemoryModel::Sc), (tso, MemoryModel::Tso), (pso, MemoryModel::Pso)];
        for (file, model) in files.into_iter().filter(|(file, _)| !file.is_empty()) {
            for method in [Method::Predicates, Method::Cubes] {
                let options = Options { method, ..Options::default() };
                let checked = example(file, property, model, options);
                let about = format!("{file} under {model:?}, {method:?}");
                assert_eq!(judge(&checked, true, &about), Some(true), "{about}: {:?}", checked.verdict());
            }
        }
    }
}

/// The cost of each abstraction for a property of a program, which must be proved.
fn accounts(text: &str, property: &str, model: MemoryModel, method: Method) -> Vec<Account> {
    let record = Arc::new(Mutex::new(Record::default()));
    let options = Options { method, record: Some(Arc::clone(&record)), ..Options::default() };
    let loaded = load("test.fw", text.as_bytes(), None, &[]).expect("it is a program");
    let wanted = loaded.program.properties.iter().filter(|p| p.name == property);
    let task = Task::new(&loaded.program, model, wanted.cloned().collect());
    let engine = Extrapolate { options };
    let mut all = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
    let checked = all.pop().expect("it has the property");
    assert_eq!(judge(&checked, true, property), Some(true), "{model:?}, {method:?}: {:?}", checked.verdict());
    record.lock().expect("the engine has ended").accounts.clone()
}

/// Two predicates together imply that a sum is zero. The proof succeeds with the cubes of the SC proof as well as with cubes found by a search.
#[test]
fn cubes_of_the_sc_proof_take_the_place_of_a_search() {
    let text = "shared x, y;
        thread p { var a, b, sum; loop { a = x; b = y; sum = a + b; } }
        thread q { x = 0; fence; y = 0; }
        invariant zero: p.sum == 0;
        predicates { x == 0, y == 0, p.a == 0, p.b == 0, p.sum == 0; }";
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for (method, cube_size) in [(Method::Predicates, 2), (Method::Cubes, 1)] {
            let accounts = accounts(text, "zero", model, method);
            let about = format!("{model:?}, {method:?}: {accounts:?}");
            let [sc, relaxed] = accounts[..] else { panic!("{about}") };
            assert!(sc.effort.size.predicates == 5 && sc.effort.size.cubes > 0, "{about}");
            assert_eq!(sc.effort.size.cube_size, 2, "{about}");
            assert_eq!(relaxed.effort.size.cube_size, cube_size, "{about}");
            assert_eq!(relaxed.attempt, Some(Attempt::Extrapolated), "{about}");
        }
    }
}

/// The array queue with fences that keep every buffer within one store, as in EXTRA13.
#[test]
fn the_array_queue_stays_in_bounds_under_pso() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/array-queue.pso.fw");
    let minimal = std::fs::read_to_string(&path).expect("the example is there");
    let fenced = minimal
        .replace("sfence;", "fence;")
        .replace("tail = produced;", "tail = produced; fence;")
        .replace("head = consumed;", "head = consumed; fence;");
    for method in [Method::Predicates, Method::Cubes] {
        let accounts = accounts(&fenced, "in_bounds", MemoryModel::Pso, method);
        assert_eq!(accounts.last().and_then(|account| account.k), Some(1), "{accounts:?}");
    }
}

/// The bound on buffers in the proof of an example, and the source of its predicates.
fn bound(file: &str, property: &str, model: MemoryModel) -> (Option<u32>, Option<Attempt>) {
    let record = Arc::new(Mutex::new(Record::default()));
    let options = Options { record: Some(Arc::clone(&record)), ..Options::default() };
    let checked = example(file, property, model, options);
    assert_eq!(judge(&checked, true, file), Some(true), "{file}: {:?}", checked.verdict());
    let record = record.lock().expect("the engine has ended");
    assert!(record.boolean.contains("choose("), "{file}: {}", record.boolean);
    let last = record.accounts.last().expect("there was a proof");
    (last.k, last.attempt)
}

#[test]
fn an_overflow_raises_k() {
    let k = |file, property| bound(file, property, MemoryModel::Tso).0;
    assert_eq!(k("alternating-bit.fw", "in_step"), Some(1));
    assert_eq!(k("ticket-lock.fw", "mutex"), Some(1));
    assert_eq!(k("bakery.fenced.fw", "mutex"), Some(2));
    assert_eq!(k("dekker.fenced.fw", "mutex"), Some(3));
    assert_eq!(k("peterson.fenced.fw", "mutex"), Some(3));
    assert_eq!(k("szymanski.fenced.fw", "mutex"), Some(4));
    // The loop fills a buffer without bound, so every bound k is exceeded.
    let checked = example("thesis-3-3.fw", "goal", MemoryModel::Tso, Options::default());
    assert!(
        matches!(checked.verdict(), Verdict::Unknown(Reason::Unsupported(what, _)) if what.contains("8 stores"))
    );
}

#[test]
fn predicates_of_the_sc_proof_are_enough_for_the_first_four() {
    for [_, property, tso, pso] in &ALGORITHMS[..4] {
        for (file, model) in [(tso, MemoryModel::Tso), (pso, MemoryModel::Pso)] {
            let (_, attempt) = bound(file, property, model);
            assert_eq!(attempt, Some(Attempt::Extrapolated), "{file} under {model:?}");
        }
    }
}

#[test]
fn violations_that_need_store_buffers_are_found() {
    for file in ["store-buffering.fw", "peterson.fw", "dekker.fw"] {
        let property = if file == "store-buffering.fw" { "both_missed" } else { "mutex" };
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let checked = example(file, property, model, Options::default());
            assert_eq!(judge(&checked, false, file), Some(false), "{file}: {:?}", checked.verdict());
        }
    }
}
