//! Compares lazy reachability with the explicit engine on random finite programs, and with the expected results on the programs of THESIS16.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fencewright_engines::explicit::{Explicit, Options as ExplicitOptions};
use fencewright_engines::lazy::{Lazy, Options, OracleName};
use fencewright_engines::robust;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_executions::oracle::explore;
use fencewright_program::{Action, MemoryModel, Observable, Program, Property, PropertyKind};
use fencewright_testing::corpora::corpora;
use fencewright_testing::{Random, Shape, contend, program, programs_or};
use fencewright_transform::extend::AttackingStore;

/// Programs with more states than this are skipped.
const MOST_STATES: usize = 4_000;

fn looks_at_memory(property: &Property) -> bool {
    let mut memory = false;
    if let (PropertyKind::Never(_), Some(formula)) = (&property.kind, property.formula()) {
        formula.for_each_leaf(&mut |o| memory |= matches!(o, Observable::Memory(_)));
    }
    memory
}

fn has_locks(program: &Program) -> bool {
    program.threads.iter().any(|t| t.edges.iter().any(|e| e.action == Action::Lock))
}

/// For one kind of properties: the numbers of decided and of all properties, and the reasons for undecided ones with their numbers.
#[derive(Default, Debug)]
struct Tally {
    decided: usize,
    asked: usize,
    why: BTreeMap<String, usize>,
}

/// Checks `wanted` programs with these options and counts the decided properties.
fn agree(options: Options, wanted: usize, first_seed: u64, contended: bool) -> BTreeMap<&'static str, Tally> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = std::thread::scope(|scope| {
        let part = |part: usize| {
            move || {
                agree_part(options, wanted.div_ceil(threads), first_seed + part as u64, threads, contended)
            }
        };
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(part(n))).collect();
        running.into_iter().map(|r| r.join().expect("no disagreement")).collect::<Vec<_>>()
    });
    let mut all: BTreeMap<&'static str, Tally> = BTreeMap::new();
    for (kind, tally) in parts.into_iter().flatten() {
        let sum = all.entry(kind).or_default();
        sum.decided += tally.decided;
        sum.asked += tally.asked;
        for (why, n) in tally.why {
            *sum.why.entry(why).or_default() += n;
        }
    }
    all
}

fn is_robust(program: &Program) -> bool {
    let limits = Limits::starting_now(Some(Duration::from_millis(100)), Some(1 << 28), Default::default());
    let mut options = robust::Options { confirm: Confirm::NOTHING, ..robust::Options::default() };
    options.explicit.workers = 1;
    robust::analyse(program, &options, &limits, &Progress::default()).robust() != Ok(false)
}

fn agree_part(
    options: Options,
    wanted: usize,
    first_seed: u64,
    step: usize,
    contended: bool,
) -> BTreeMap<&'static str, Tally> {
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let mut compared = 0;
    for seed in (first_seed..).step_by(step) {
        if compared == wanted {
            break;
        }
        let mut random = Random::new(seed);
        let loops = seed % 2 == 0;
        let length = if contended { 7 } else { 5 };
        let mut program =
            program(&mut random, Shape { loops, length, corners: seed % 4 == 3, ..Shape::default() });
        if contended {
            contend(&mut random, &mut program, 5);
            if is_robust(&program) {
                continue;
            }
        }
        let Ok(reachable) = explore(&program, MemoryModel::Tso, MOST_STATES, &mut || false) else { continue };
        compared += 1;
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let explicit = Explicit { options: ExplicitOptions { workers: 1, ..ExplicitOptions::default() } };
        let explicit = check(&explicit, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING);
        let mut lazy = Lazy { options, ..Lazy::default() };
        lazy.sc.explicit.options.workers = 1;
        let limits =
            Limits::starting_now(Some(Duration::from_millis(400)), Some(1 << 28), Default::default());
        let answers = check(&lazy, &task, &limits, &Progress::default(), Confirm::NOTHING);
        for (n, checked) in answers.iter().enumerate() {
            let property = &program.properties[n];
            let expected = match explicit[n].verdict() {
                Verdict::Safe => true,
                Verdict::Unsafe => false,
                Verdict::Unknown(reason) => panic!("seed {seed}: {reason}"),
            };
            assert_eq!(reachable.satisfies(&program, MemoryModel::Tso, property), Some(expected));
            let kind = match (property.name.as_str(), has_locks(&program)) {
                _ if looks_at_memory(property) => "memory",
                ("final", _) => "final",
                ("deadlock", true) => "deadlock, locks",
                (_, true) => "control, locks",
                (_, false) => "control",
            };
            let tally = tallies.entry(kind).or_default();
            tally.asked += 1;
            match checked.verdict() {
                Verdict::Safe => assert!(expected, "seed {seed}, {}: safe, but it is not", property.name),
                Verdict::Unsafe => {
                    assert!(!expected, "seed {seed}, {}: unsafe, but it is not", property.name)
                }
                Verdict::Unknown(reason) => {
                    let why = reason.to_string();
                    assert!(!why.contains("contradiction"), "seed {seed}, {}: {why}", property.name);
                    *tally.why.entry(why.chars().take(60).collect()).or_default() += 1;
                    continue;
                }
            }
            tally.decided += 1;
        }
    }
    tallies
}

/// The number of programs to test: `programs`, or twenty times as many with `FENCEWRIGHT_LONG_TESTS=1`, or the value of `FENCEWRIGHT_PROGRAMS`.
fn wanted(programs: usize) -> usize {
    programs_or(if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 20 * programs } else { programs })
}

/// Checks the minimum percentage of decided properties of each kind.
fn check_tallies(tallies: &BTreeMap<&'static str, Tally>, control: usize, final_states: usize) {
    for (kind, tally) in tallies {
        println!("{kind}: {} of {} decided {:?}", tally.decided, tally.asked, tally.why);
    }
    let at_least = |kind: &str, percent: usize| {
        let tally = &tallies[kind];
        assert!(tally.decided * 100 >= tally.asked * percent, "{kind}: too little is decided, {tally:?}");
    };
    at_least("control", control);
    at_least("control, locks", control);
    at_least("final", final_states);
    // The engine finds violations of these properties, but no proofs.
    at_least("memory", 40);
    at_least("deadlock, locks", 10);
}

#[test]
fn with_the_robustness_oracle_it_agrees_with_the_explicit_engine() {
    check_tallies(&agree(Options::default(), wanted(1_000), 0, false), 90, 90);
}

#[test]
fn it_agrees_with_the_explicit_engine_on_programs_that_are_not_robust() {
    check_tallies(&agree(Options::default(), wanted(500), 700_000, true), 85, 85);
}

#[test]
fn many_of_these_need_more_than_one_round() {
    let tallies = agree(Options { rounds: Some(1), ..Options::default() }, 150, 700_000, true);
    let undecided = tallies.values().filter_map(|t| t.why.get("no answer within 1 round"));
    let undecided: usize = undecided.sum();
    println!("{undecided} properties need more than one round");
    assert!(undecided > 100, "only {undecided} properties need more than one round");
}

#[test]
fn with_the_enumerating_oracle_it_agrees_with_the_explicit_engine() {
    let options = Options { oracle: OracleName::Enumerate, ..Options::default() };
    check_tallies(&agree(options, wanted(200), 500_000, true), 85, 85);
}

#[test]
fn with_the_store_kept_it_agrees_with_the_explicit_engine() {
    let options = Options { store: AttackingStore::Kept, rounds: Some(6), ..Options::default() };
    check_tallies(&agree(options, wanted(150), 600_000, true), 30, 30);
}

/// An example with its constants set.
fn example(file: &str, defines: &[(&str, i64)]) -> Program {
    let path = format!("{}/../../examples/{file}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect("the example is there");
    let defines: Vec<(String, i64)> = defines.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    match fencewright_lang::load(file, &bytes, None, &defines) {
        Ok(loaded) => loaded.program,
        Err(_) => panic!("{file} does not load"),
    }
}

/// The verdict of the engine on a property of a program, and the time it takes.
fn verdict(program: &Program, property: &str, options: Options, time: Duration) -> (Checked, Duration) {
    let properties = program.properties.iter().filter(|p| p.name == property).cloned().collect();
    let task = Task::new(program, MemoryModel::Tso, properties);
    let limits = Limits::starting_now(Some(time), Some(1 << 30), Default::default());
    let lazy = Lazy { options, ..Lazy::default() };
    let start = Instant::now();
    let mut checked = check(&lazy, &task, &limits, &Progress::default(), Confirm::default());
    (checked.remove(0), start.elapsed())
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_programs_of_the_thesis_have_the_verdicts_of_the_thesis() {
    // THESIS16 Fig. 5.1, with its times in milliseconds.
    let check = |file, property, defines: &[(&str, i64)], reachable: bool, thesis: u32| {
        let program = example(file, defines);
        for oracle in [OracleName::Robust, OracleName::Enumerate] {
            if oracle == OracleName::Enumerate && file == "mcs-lock.fw" {
                // With this oracle, the enumeration of paths does not end on the loops of this program.
                continue;
            }
            let (checked, time) =
                verdict(&program, property, Options { oracle, ..Options::default() }, MINUTE);
            println!("{file} {property} {oracle:?}: {:?} (thesis: {thesis} ms)", time);
            let unsafe_ = matches!(checked.verdict(), Verdict::Unsafe);
            let safe = matches!(checked.verdict(), Verdict::Safe);
            assert!(if reachable { unsafe_ } else { safe }, "{file}, {oracle:?}: {:?}", checked.verdict());
            assert_eq!(checked.checked(), Some(true), "{file}, {oracle:?}");
        }
    };
    check("parker.fw", "lost_wakeup", &[], true, 5);
    check("peterson.fw", "mutex", &[], true, 13);
    check("dekker.fw", "mutex", &[], true, 70);
    check("lamport-fast.fw", "mutex", &[("N", 3)], true, 694);
    check("mcs-lock.fw", "mutex", &[], false, 61);
    check("clh-lock.fw", "mutex", &[], false, 7);
    check("treiber-stack.fw", "duplicated", &[], false, 7);
}

#[test]
fn the_branching_family_grows_slowly() {
    for n in [2, 25, 50, 100, 200] {
        let program = example("branching-dekker.fw", &[("N", n)]);
        let (checked, time) = verdict(&program, "goal", Options::default(), MINUTE);
        println!("branching, N = {n}: {time:?}, {} states", checked.work.states);
        assert!(matches!(checked.verdict(), Verdict::Unsafe), "N = {n}: {:?}", checked.verdict());
    }
}

#[test]
fn the_unwinding_family_grows_slowly() {
    for n in [2, 10, 25, 50, 100] {
        let program = example("unwinding-dekker.fw", &[("N", n)]);
        let (checked, time) = verdict(&program, "goal", Options::default(), MINUTE);
        println!("unwinding, N = {n}: {time:?}, {} states", checked.work.states);
        assert!(matches!(checked.verdict(), Verdict::Unsafe), "N = {n}: {:?}", checked.verdict());
    }
}

#[test]
fn the_goal_of_the_unwinding_family_with_one_store_is_never_reached() {
    let program = example("unwinding-dekker.fw", &[("N", 1)]);
    for oracle in [OracleName::Robust, OracleName::Enumerate] {
        for store in [AttackingStore::Removed, AttackingStore::Kept] {
            let options = Options { oracle, store, ..Options::default() };
            let (checked, _) = verdict(&program, "goal", options, Duration::from_millis(500));
            assert!(!matches!(checked.verdict(), Verdict::Unsafe), "{options:?}");
        }
    }
}

#[test]
fn a_program_on_which_no_round_is_the_last_is_unknown_and_the_engine_says_why() {
    let program = example("thesis-3-3.fw", &[]);
    let limit = Duration::from_millis(1_500);
    let (checked, time) = verdict(&program, "goal", Options::default(), limit);
    assert!(matches!(checked.verdict(), Verdict::Unknown(_)), "{:?}", checked.verdict());
    assert!(time < limit + Duration::from_millis(1_000), "stopped after {time:?}");
    assert!(
        checked.growth.iter().any(|(why, _)| why.contains("the oracle still finds more")),
        "{:?}",
        checked.growth
    );
}

#[test]
fn a_robust_program_with_a_property_about_memory_is_unknown() {
    let text = "shared x; thread p { x = 1; here: skip; } forbid late: p@here && x == 0;";
    let Ok(loaded) = fencewright_lang::load("late.fw", text.as_bytes(), None, &[]) else { panic!("loads") };
    let (checked, _) = verdict(&loaded.program, "late", Options::default(), MINUTE);
    match checked.verdict() {
        Verdict::Unknown(reason) => assert!(reason.to_string().contains("looks at memory"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_state_in_which_a_lock_is_held_is_not_taken_for_one_with_empty_buffers() {
    // Robust, and safe under SC; under TSO the store waits in the buffer while the lock is held.
    let text = "shared x, z; thread p { var r; x = 1; r = z; here: skip; }
                thread q { var r = 2; lock; r = x; there: skip; unlock; }
                forbid both: p@here && q@there && q.r == 0;";
    let Ok(loaded) = fencewright_lang::load("held.fw", text.as_bytes(), None, &[]) else { panic!("loads") };
    let (checked, _) = verdict(&loaded.program, "both", Options::default(), MINUTE);
    assert!(!matches!(checked.verdict(), Verdict::Safe), "{:?}", checked.verdict());
}

#[test]
fn unbounded_integers_are_proved_by_way_of_sc() {
    for file in ["ticket-lock.fw", "bakery.fenced.fw"] {
        let (checked, time) = verdict(&example(file, &[]), "mutex", Options::default(), MINUTE);
        println!("{file}: {time:?}");
        assert!(matches!(checked.verdict(), Verdict::Safe), "{file}: {:?}", checked.verdict());
    }
}

#[test]
fn other_memory_models_are_left_to_other_engines() {
    let program = example("store-buffering.fw", &[]);
    for (model, safe) in [(MemoryModel::Sc, Some(true)), (MemoryModel::Pso, None)] {
        let task = Task::new(&program, model, program.properties.clone());
        let checked =
            check(&Lazy::default(), &task, &Limits::default(), &Progress::default(), Confirm::default());
        let found = match checked[0].verdict() {
            Verdict::Safe => Some(true),
            Verdict::Unsafe => Some(false),
            Verdict::Unknown(_) => None,
        };
        assert_eq!(found, safe, "{model:?}");
    }
}

#[test]
fn a_cancelled_run_stops_at_once() {
    let program = example("thesis-3-3.fw", &[]);
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    for options in [Options::default(), Options { oracle: OracleName::Enumerate, ..Options::default() }] {
        let limits = Limits::default();
        let cancelled = limits.token.clone();
        let lazy = Lazy { options, ..Lazy::default() };
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            cancelled.cancel();
            Instant::now()
        });
        let verdicts = check(&lazy, &task, &limits, &Progress::default(), Confirm::NOTHING);
        let late = stopper.join().expect("it only sleeps").elapsed();
        assert!(matches!(verdicts[0].verdict(), Verdict::Unknown(_)));
        assert!(late < Duration::from_millis(1_000), "{options:?}: stopped {late:?} late");
    }
}

#[test]
fn the_corpus_of_trencher_agrees_with_the_explicit_engine() {
    let Some(corpora) = corpora("the_corpus_of_trencher_agrees_with_the_explicit_engine") else { return };
    let directory = corpora.join("trencher");
    let mut decided = 0;
    for entry in std::fs::read_dir(directory).expect("the corpus is there").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(loaded) = fencewright_lang::load(&name, &std::fs::read(&path).expect("readable"), None, &[])
        else {
            panic!("{name} does not load");
        };
        let properties = [loaded.program.properties.clone(), vec![Property::deadlock()]].concat();
        let task = Task::new(&loaded.program, MemoryModel::Tso, properties);
        let limits = || Limits::starting_now(Some(Duration::from_secs(2)), Some(1 << 30), Default::default());
        let lazy = check(&Lazy::default(), &task, &limits(), &Progress::default(), Confirm::NOTHING);
        let explicit = check(&Explicit::default(), &task, &limits(), &Progress::default(), Confirm::NOTHING);
        for (lazy, explicit) in lazy.iter().zip(&explicit) {
            let (found, expected) = (definite(lazy), definite(explicit));
            println!(
                "{name} {}: lazy {found:?} in {:.3} s, explicit {expected:?}",
                lazy.property.name, lazy.seconds
            );
            if let (Some(found), Some(expected)) = (found, expected) {
                assert_eq!(found, expected, "{name}, {}", lazy.property.name);
                decided += 1;
            }
        }
    }
    assert!(decided >= 5, "only {decided} are decided by both");
}

fn definite(checked: &Checked) -> Option<bool> {
    match checked.verdict() {
        Verdict::Safe => Some(true),
        Verdict::Unsafe => Some(false),
        Verdict::Unknown(_) => None,
    }
}

/// A choice that faults stops its thread immediately, while it may hold the lock and have delayed stores. The engine does not support that and has to
/// say so.
#[test]
fn choices_that_fault_are_never_a_proof() {
    let texts = [
        "numbers nat; shared x, z;
         thread p { var r; var s = 7; a: lock; b: s = x; c: r = * in -1..2; d: unlock; e: assume 0 == 1; }
         thread q { var r; x = 1; r = z; here: skip; }
         forbid bad: q@here && p.s == 0 && !(p@a || p@b || p@c || p@d || p@e);",
        "numbers nat; shared x, y;
         thread p { var r = 7, s = 5; x = 1; snapshot { r = y; s = * in -1..1; } }
         thread q { var t = 7, u = 7; y = 1; fence; t = x; u = x; }
         forbid lost: p.r == 0 && q.t == 0 && q.u == 1 && p.s == 5;",
        "numbers nat; shared y, a[-1..1];
         thread p { var i, r; a[i - 1] = 1; r = y; fin: skip; }
         thread q { var s; y = 1; fence; s = a[-1]; fin: skip; }
         forbid sb: p.r == 0 && q.s == 0 && p@fin && q@fin;",
    ];
    for text in texts {
        let loaded = fencewright_lang::load("test.fw", text.as_bytes(), None, &[]).expect("a program");
        for oracle in [OracleName::Robust, OracleName::Enumerate] {
            let lazy = Lazy { options: Options { oracle, ..Options::default() }, ..Lazy::default() };
            let task =
                Task::new(&loaded.program, MemoryModel::Tso, vec![loaded.program.properties[0].clone()]);
            let limits = Limits::starting_now(Some(Duration::from_secs(5)), None, Default::default());
            let answers = check(&lazy, &task, &limits, &Progress::default(), Confirm::NOTHING);
            assert!(!matches!(answers[0].verdict(), Verdict::Safe), "{oracle:?}: {text}");
        }
    }
}
