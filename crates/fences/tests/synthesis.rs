//! Fences for the papers' programs: as many as the papers say or fewer, proved to suffice, each one needed.

use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::{Confirm, Limits, Progress};
use fencewright_fences::{Options, Safety, Synthesis, Verdict, synthesise};
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
