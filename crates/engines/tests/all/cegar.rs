//! Compares engine `cegar` with the reference semantics: no verdict is wrong, and the certificate checker accepts every proof.
//!
//! A normal run tests 1,500 random programs, each with a random choice of k, of the end of the buffer that is kept in order, of the clip constant and
//! of the memory model; `FENCEWRIGHT_PROGRAMS=N` tests N programs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fencewright_engines::cegar::{Cegar, Fixed, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::task::Order;
use fencewright_engines::{Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_executions::oracle::explore;
use fencewright_memory::Kept;
use fencewright_program::MemoryModel;
use fencewright_testing::arithmetic::compute;
use fencewright_testing::bounds::bound;
use fencewright_testing::{Random, Shape, program, programs_or};

/// The numbers of verdicts of each kind.
#[derive(Default)]
struct Count {
    safe: AtomicUsize,
    not: AtomicUsize,
    unknown: AtomicUsize,
}

/// Compares `cegar`, in a random configuration, with the reference semantics. Returns false if the program is too large for that.
fn agree(seed: u64, count: &Count) -> bool {
    let mut random = Random::new(seed);
    let mut program = program(&mut random, Shape { length: 4, corners: seed % 4 == 3, ..Shape::default() });
    if seed % 8 < 3 {
        compute(&mut random, &mut program);
    }
    let model = *random.pick(&MemoryModel::ALL);
    let Ok(reachable) = explore(&program, model, 1_500, &mut || false) else { return false };
    let kept = *random.pick(&[Kept::Oldest, Kept::Newest]);
    let domain = *random.pick(&[DomainName::Zones, DomainName::Predicates]);
    let (k, clip) = (random.below(4) as u32, 1 + random.below(3) as i32);
    let fixed = Fixed { k: random.one_in(4), clip: random.one_in(4), predicates: random.one_in(8) };
    let buffer_bound = random.one_in(4).then(|| bound(&mut random));
    let order = *random.pick(&[Order::BreadthFirst, Order::DepthFirst]);
    let summaries = random.one_in(2);
    let options = Options { k, kept, summaries, domain, clip, fixed, buffer_bound, order };
    let limits = Limits::starting_now(Some(Duration::from_millis(500)), None, Default::default());
    let task = Task::new(&program, model, program.properties.clone());
    for checked in check(&Cegar { options }, &task, &limits, &Progress::default(), Confirm::default()) {
        let holds = reachable.satisfies(&program, model, &checked.property).expect("small values");
        let about = format!("seed {seed}, {model:?}, {options:?}, property {}", checked.property.name);
        let counter = match checked.verdict() {
            Verdict::Safe => {
                assert!(holds, "{about}: a wrong proof");
                &count.safe
            }
            Verdict::Unsafe => {
                assert!(!holds, "{about}: a wrong violation");
                &count.not
            }
            Verdict::Unknown(Reason::Contradiction(what)) => panic!("{about}: {what}"),
            Verdict::Unknown(_) => &count.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    true
}

#[test]
fn cegar_agrees_with_the_reference_semantics() {
    let wanted = programs_or(1_500);
    let count = Count::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for part in 0..threads {
            let count = &count;
            scope.spawn(move || {
                let seeds = (1_000_000 + part as u64..).step_by(threads);
                let decided = seeds.filter(|&seed| agree(seed, count)).take(wanted.div_ceil(threads));
                for (n, seed) in decided.enumerate() {
                    if n % 1_000 == 999 {
                        println!("part {part}: {} programs, seed {seed}", n + 1);
                    }
                }
            });
        }
    });
    let Count { safe, not, unknown } = count;
    let (safe, not, unknown) = (safe.into_inner(), not.into_inner(), unknown.into_inner());
    println!("{wanted} programs: {safe} safe, {not} unsafe, {unknown} unknown");
    assert!(
        safe > wanted / 4 && not > wanted / 4,
        "{safe} safe, {not} unsafe, {unknown} unknown: too few decided"
    );
}
