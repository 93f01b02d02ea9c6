//! Fences for the papers' programs: as many as the papers say or fewer, proved to suffice, each one needed.

use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::{Confirm, Limits, Progress};
use fencewright_fences::fenced::{Fenced, same};
use fencewright_fences::{Options, Prices, Safety, Synthesis, Verdict, synthesise};
use fencewright_lang::places::places;
use fencewright_lang::{Loaded, load};
use fencewright_program::MemoryModel;

fn example(name: &str) -> Loaded {
    let path = format!("{}/../../examples/{name}.fw", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    loaded(name, &bytes)
}

fn loaded(name: &str, bytes: &[u8]) -> Loaded {
    match load(&format!("{name}.fw"), bytes, None, &[]) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{}", error.source.render(&error.diagnostics, false)),
    }
}

fn fences(loaded: &Loaded, model: MemoryModel, options: &Options) -> Synthesis {
    let placed = places(loaded, &[]).expect("it was lowered before");
    let goal = Safety { model, properties: Vec::new(), engine: Auto::default(), confirm: Confirm::default() };
    let limits = Limits::starting_now(Some(Duration::from_secs(60)), None, Default::default());
    synthesise(&placed, &goal, options, &limits, &Progress::default())
}

/// FENCES12 Table 1: fences per process.
const TABLE: [(&str, usize); 8] = [
    ("burns", 1),
    ("simple-dekker", 1),
    ("dekker", 1),
    ("dijkstra", 1),
    ("bakery", 2),
    ("lamport-fast", 2),
    ("peterson", 1),
    ("ticket-lock", 0),
];

#[test]
fn as_few_fences_as_the_paper() {
    for (name, per_process) in TABLE {
        let start = Instant::now();
        let loaded = example(name);
        let found = fences(&loaded, MemoryModel::Tso, &Options::default());
        println!(
            "{name}: {:?}, {} fences, cost {}, {} rounds, optimal {}, {:.3} s",
            found.verdict,
            found.count,
            found.cost,
            found.rounds,
            found.optimal,
            start.elapsed().as_secs_f64()
        );
        let wanted = if per_process == 0 { Verdict::AlreadySafe } else { Verdict::Fixed };
        assert_eq!(found.verdict, wanted, "{name}");
        assert!(found.optimal, "{name}");
        let threads = loaded.program.threads.len();
        assert!(found.count <= per_process * threads, "{name}: {} fences", found.count);
        for chosen in &found.fences {
            assert!(chosen.needed_because.is_some(), "{name}: no violation without {:?}", chosen.fence);
        }
        assert!(found.proof.checked, "{name}");
    }
}

#[test]
fn under_pso_both_kinds_of_fence_are_used() {
    for (name, _) in TABLE {
        let start = Instant::now();
        let loaded = example(name);
        let tso = fences(&loaded, MemoryModel::Tso, &Options::default());
        let found = fences(&loaded, MemoryModel::Pso, &Options::default());
        let kinds: Vec<&str> = found.fences.iter().map(|chosen| chosen.fence.kind.name()).collect();
        println!(
            "{name}: {:?}, {} fences {kinds:?}, cost {}, {} rounds, optimal {}, {:.3} s",
            found.verdict,
            found.count,
            found.cost,
            found.rounds,
            found.optimal,
            start.elapsed().as_secs_f64()
        );
        assert!(
            matches!(found.verdict, Verdict::Fixed | Verdict::AlreadySafe),
            "{name}: {:?}",
            found.verdict
        );
        assert!(found.optimal, "{name}");
        assert!(found.cost >= tso.cost, "{name}: what suffices under PSO suffices under TSO");
        for chosen in &found.fences {
            assert!(chosen.needed_because.is_some(), "{name}: no violation without {:?}", chosen.fence);
        }
    }
}

#[test]
fn what_happens_under_sc_cannot_be_fixed() {
    let text = b"shared x; thread p { x = 1; } thread q { var r; r = x; assert r == 0; }";
    let found = fences(&loaded("sc", text), MemoryModel::Tso, &Options::default());
    assert_eq!(found.verdict, Verdict::Unfixable);
    let because = found.unfixable.expect("the execution that shows it");
    assert_eq!(because.replayed.model, MemoryModel::Sc);
}

/// Small programs with the answer for TSO: verdict, cost.
#[test]
fn labels_ends_and_pending_stores_count_as_they_should() {
    let swap = Prices { swap: Some(1), ..Prices::default() };
    let usual = Prices::default();
    let check = |text: &str, prices: Prices, verdict: Verdict, cost: u64| {
        let options = Options { prices, ..Options::default() };
        let found = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &options);
        assert_eq!((&found.verdict, found.cost), (&verdict, cost), "{text}");
        assert!(found.optimal, "{text}");
    };
    // A label on a loop is passed again and again.
    let text = "shared x; thread p { L: while x < 3 { x = x + 1; fence; } } forbid again: p@L && x == 2;";
    check(text, usual, Verdict::Unfixable, 0);
    // A thread that cannot go on has not left its label.
    let text =
        "shared y; thread p { var r; L: assume r == 1; } thread q { y = 1; } forbid left: !(p@L) && y == 1;";
    check(text, usual, Verdict::AlreadySafe, 0);
    check(&text.replace("L: assume", "{ L: } assume"), usual, Verdict::AlreadySafe, 0);
    // A store that never arrives.
    let text = "shared x; thread p { x = 1; done: skip; } forbid early: p@done && x == 0;";
    check(text, usual, Verdict::Fixed, 2);
    check(text, swap, Verdict::Fixed, 1);
    // At the end of a thread there is a place too.
    let text = "shared x; thread p { x = 1; } forbid early: p@end && x == 0;";
    check(text, usual, Verdict::Fixed, 2);
    check(text, swap, Verdict::Fixed, 1);
    // A thread that has faulted stays where it is.
    let text =
        "shared x; thread p { x = 1; L: skip; } thread r { var v; atomic { v = 1; assert v == 0; } skip; }
                forbid b: p@L && r.v == 1 && x == 0;";
    let program = loaded("test", text.as_bytes());
    let placed = places(&program, &[]).expect("it was lowered before");
    let (model, properties) = (MemoryModel::Tso, vec!["b".to_string()]);
    let goal = Safety { model, properties, engine: Auto::default(), confirm: Confirm::default() };
    let found = synthesise(&placed, &goal, &Options::default(), &Limits::default(), &Progress::default());
    assert_eq!((found.verdict, found.cost, found.optimal), (Verdict::Fixed, 2, true));
}

#[test]
fn an_sc_execution_is_shown_as_one() {
    // The store must be seen to arrive after the other thread has read.
    let text = "shared x; thread p { x = 1; L: skip; } thread q { var r; r = x; Q: skip; }
                forbid a: p@L && q@Q && q.r == 0 && x == 1;";
    let found = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &Options::default());
    assert_eq!(found.verdict, Verdict::Unfixable);
    assert_eq!(found.unfixable.expect("an execution").replayed.model, MemoryModel::Sc);
}

#[test]
fn all_cheapest_sets_are_listed_and_verified() {
    let text = "shared x, y; thread p { var r, i; x = 1; while i < 2 { i = i + 1; } r = y; P: skip; }
                thread q { var r; y = 1; fence; r = x; Q: skip; }
                forbid sb: p@P && q@Q && p.r == 0 && q.r == 0;";
    let options = Options { sets: 100, ..Options::default() };
    let found = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &options);
    // Before the loop, at either end of its body (it runs at least once), and after it.
    assert_eq!((found.sets.len(), found.sets_complete), (4, true));
    let one = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &Options::default());
    assert_eq!(one.cost, found.cost);
}

#[test]
fn without_fences_the_program_is_the_source() {
    let examples = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).expect("the examples") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|e| e != "fw") {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let loaded = loaded(&name, &std::fs::read(&path).expect("readable"));
        let placed = places(&loaded, &[]).expect("it was lowered before");
        assert!(same(&Fenced::new(&placed, &[]).program, &loaded.program), "{name}");
        seen += 1;
    }
    assert!(seen > 70, "only {seen} examples");
}
