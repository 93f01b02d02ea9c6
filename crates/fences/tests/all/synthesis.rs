//! Fences for example programs, among them those of FENCES12 Table 1: at most as many as in the paper, proved to suffice, each one necessary.

use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::{Confirm, Limits, Progress};
use fencewright_fences::candidate::candidates;
use fencewright_fences::fenced::{Fenced, same};
use fencewright_fences::{Chosen, Options, Prices, Safety, Synthesis, Verdict, synthesise};
use fencewright_lang::edit::{Edit, What, edited};
use fencewright_lang::places::places;
use fencewright_lang::{Loaded, load};
use fencewright_program::{Action, MemoryModel};

fn example(name: &str) -> Loaded {
    let path = format!("{}/../../examples/{name}.fw", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    loaded(name, &bytes)
}

fn loaded(name: &str, bytes: &[u8]) -> Loaded {
    match load(&format!("{name}.fw"), bytes, None, &[]) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{}", error.sources.render(&error.diagnostics, false)),
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
fn violations_under_sc_cannot_be_fixed() {
    let text = b"shared x; thread p { x = 1; } thread q { var r; r = x; assert r == 0; }";
    let found = fences(&loaded("sc", text), MemoryModel::Tso, &Options::default());
    assert_eq!(found.verdict, Verdict::Unfixable);
    let because = found.unfixable.and_then(|why| why.because).expect("the execution that shows it");
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
    // A thread is at the label of a loop in every iteration.
    let text = "shared x; thread p { L: while x < 3 { x = x + 1; fence; } } forbid again: p@L && x == 2;";
    check(text, usual, Verdict::Unfixable, 0);
    // A blocked thread stays at its label.
    let text =
        "shared y; thread p { var r; L: assume r == 1; } thread q { y = 1; } forbid left: !(p@L) && y == 1;";
    check(text, usual, Verdict::AlreadySafe, 0);
    check(&text.replace("L: assume", "{ L: } assume"), usual, Verdict::AlreadySafe, 0);
    // A store that never reaches memory.
    let text = "shared x; thread p { x = 1; done: skip; } forbid early: p@done && x == 0;";
    check(text, usual, Verdict::Fixed, 2);
    check(text, swap, Verdict::Fixed, 1);
    // There is a place at the end of a thread too.
    let text = "shared x; thread p { x = 1; } forbid early: p@end && x == 0;";
    check(text, usual, Verdict::Fixed, 2);
    check(text, swap, Verdict::Fixed, 1);
    // A faulted thread stays at its location.
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
    // The violation requires that the store reaches memory after the other thread has read.
    let text = "shared x; thread p { x = 1; L: skip; } thread q { var r; r = x; Q: skip; }
                forbid a: p@L && q@Q && q.r == 0 && x == 1;";
    let found = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &Options::default());
    assert_eq!(found.verdict, Verdict::Unfixable);
    let because = found.unfixable.and_then(|why| why.because).expect("an execution");
    assert_eq!(because.replayed.model, MemoryModel::Sc);
}

#[test]
fn all_cheapest_sets_are_listed_and_verified() {
    let text = "shared x, y; thread p { var r, i; x = 1; while i < 2 { i = i + 1; } r = y; P: skip; }
                thread q { var r; y = 1; fence; r = x; Q: skip; }
                forbid sb: p@P && q@Q && p.r == 0 && q.r == 0;";
    let options = Options { sets: 100, ..Options::default() };
    let found = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &options);
    // The four places: before the loop, at either end of its body (which runs at least once), and after the loop.
    assert_eq!((found.sets.len(), found.sets_complete), (4, true));
    let one = fences(&loaded("test", text.as_bytes()), MemoryModel::Tso, &Options::default());
    assert_eq!(one.cost, found.cost);
}

/// A locked instruction waits for older stores even if it faults.
#[test]
fn a_locked_instruction_in_place_of_a_store_that_faults() {
    let text = "shared x, z, y: 0..3;
                thread p { var r = 5; l0: choose { x = 1; } or { z = 1; } l1: y = r; }
                forbid a: x == 0 && z == 0 && !p@l0 && !p@l1 && !p@end;";
    let placed = places(&loaded("test", text.as_bytes()), &[]).expect("it was lowered before");
    let prices = Prices { full: 9, swap: Some(1), ..Prices::default() };
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let goal = Safety {
            model,
            properties: vec!["a".into()],
            engine: Auto::default(),
            confirm: Confirm::default(),
        };
        let options = Options { prices, ..Options::default() };
        let found = synthesise(&placed, &goal, &options, &Limits::default(), &Progress::default());
        assert_eq!((found.verdict, found.optimal), (Verdict::Fixed, true));
        let places: Vec<&str> =
            found.fences.iter().map(|chosen| &text[chosen.fence.place.offset as usize..]).collect();
        assert!(found.cost == 1 && places[0].starts_with("y = r"), "{places:?}");
    }
}

/// Thread bodies with labels before statements that take no step of their own, and with jumps and loops around empty positions.
const STEPLESS: [&str; 20] = [
    "x = 1; choose { const c = 1; } choose { const d = 1; } or { x = 2; }",
    "while 0 { l: } x = 1; while x == 1 && 0 { k: x = 2; }",
    "l: var r; for j in 0..2 { l: x = j; } m:",
    "x = 1; m: for j in 0..1 { goto n; } k: l: skip; n: { x = 2; goto l; }",
    "l: { stop; }",
    "x = 1; k: { { m: { stop; } } } loop { { break; } }",
    "k: for j in 0..2 { if j != i { x = j; } x = 4; }",
    "loop { l: for j in 0..3 { for h in 0..2 { if h == 0 { continue; } x = h; } } }",
    "l: if 1 { x = 1; }",
    "l: if 0 { x = 1; } else { x = 2; }",
    "x = 1; goto l; k: x = 3; l: stop;",
    "x = 1; l: goto k; x = 2; k: goto m; m: x = 3;",
    "loop { x = 1; break; } x = 2; loop { l: break; } loop { if 1 { break; } }",
    "loop { l: { k: continue; } }",
    "l: await 1; k: assume 1; while 0 { x = 1; } m: while 1 { x = 1; n: }",
    "for j in 0..2 { l: if j { continue; } x = j; k: break; } m:",
    "choose { l: stop; } or { x = 1; goto k; } or { loop { break; } } k: l2: x = 2; {} { m: }",
    "loop { l: } ",
    "l: for j in 0..0 { x = 1; } x = 2; k: for j in 0..1 { goto l; }",
    "goto l; k: x = 1; l: if x == 1 && 1 { m: stop; } else if x == 2 { n: goto k; } ",
];

/// For every place: the verified program with a fence there equals the program of the edited text.
#[test]
fn the_verified_program_is_the_edited_text() {
    let stepless = STEPLESS.iter().map(|body| {
        let text = format!("shared x; thread p[i in 0..2] {{ {body} }} forbid p[0]@l && p[1]@end && x == 7;");
        // If the body has no label, the property is about memory instead.
        loaded(
            "stepless",
            if body.contains("l:") { text } else { text.replace("p[0]@l", "x == 5") }.as_bytes(),
        )
    });
    let examples = ["bakery", "dekker", "lamport-fast", "treiber-stack", "peterson"].map(example);
    let mut seen = 0;
    for source in stepless.chain(examples) {
        let placed = places(&source, &[]).expect("it was lowered before");
        assert!(same(&Fenced::new(&placed, &[]).program, &source.program), "{}", source.sources.main().text);
        for candidate in candidates(&placed, MemoryModel::Tso, Prices::default()) {
            let edit = Edit { what: What::Fence, place: candidate.place.clone() };
            let edited = edited(&source, &[edit]).expect("there is a place");
            let text = &edited.main().text;
            let written = loaded("edited", text.as_bytes()).program;
            assert!(same(&Fenced::new(&placed, &[&candidate]).program, &written), "{text}");
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} places");
}

#[test]
fn a_fence_may_make_a_violation_by_where_it_stands() {
    let text = "shared x, y; thread p { var r = 9, s; x = 1; c: s = 5; a: r = y; }
                thread q { var t = 9; y = 1; fence; t = x; }
                finally sb: never p.r == 0 && q.t == 0; forbid p1: x == 1 && p.s == 0 && !p@c;";
    let found = fences(&loaded("labels", text.as_bytes()), MemoryModel::Tso, &Options::default());
    assert_eq!((&found.verdict, found.cost, found.optimal), (&Verdict::Fixed, 2, true));
    // The fence is inserted after the label `c`, directly before `a: r`.
    let offset = text.find("a: r").expect("a label") as u32;
    assert_eq!(found.fences[0].fence.place.offset, offset);
    assert!(found.fences[0].needed_because.is_some());
}

#[test]
fn existential_properties_must_stay_satisfied() {
    let text = "shared x, y; thread p { var r; x = 1; r = y; } thread q { var s; y = 1; s = x; }
                finally weak: exists p.r == 0 && q.s == 0; finally strong: never p.r == 0 && q.s == 0;";
    let check =
        |text: &str| fences(&loaded("exists", text.as_bytes()), MemoryModel::Tso, &Options::default());
    let why = check(text).unfixable.expect("a reason");
    assert_eq!(
        (why.properties, why.existence),
        (vec!["strong".into(), "weak".into()], vec!["weak".to_string()])
    );
    let because = why.because.expect("a violation of the program as it is");
    assert_eq!(because.property.expect("a property").name, "strong");
    assert!(because.program.threads.iter().flat_map(|t| &t.edges).all(|e| e.action != Action::Fence));
    // An existential property may be about executions that fences preserve.
    let fixed = check(&text.replace("exists p.r == 0", "exists p.r == 1"));
    assert_eq!((fixed.verdict, fixed.cost), (Verdict::Fixed, 4));
    // No execution satisfies the property even without fences.
    let found = check(&text.replace("exists p.r == 0", "exists p.r == 7"));
    assert_eq!(found.verdict, Verdict::Unfixable);
    let why = found.unfixable.expect("a reason");
    assert_eq!((why.inevitable, why.existence), (true, vec!["weak".to_string()]));
    assert!(why.because.is_none(), "fences prevent the violation of `strong`, which is not the reason");
}

#[test]
fn spared_places_are_named_as_the_reason() {
    let text = "shared x, y; thread p { var r; x = 1; a: r = y; } thread q { var s; y = 1; fence; s = x; }
                finally sb: never p.r == 0 && q.s == 0; forbid p@a && x == 7;";
    let check = |hint: &str, text: &str| {
        let text = format!("{text} {hint}");
        fences(&loaded("spared", text.as_bytes()), MemoryModel::Tso, &Options::default())
    };
    assert_eq!(check("", text).verdict, Verdict::Fixed);
    let found = check("spare p@a;", text);
    assert_eq!(found.verdict, Verdict::Unfixable);
    let spared = found.unfixable.expect("a reason").spared;
    assert!(spared.len() == 1 && spared[0].spared, "{spared:?}");
    // If the violation occurs under SC, spared places are not the reason.
    let found = check("spare p@a;", &text.replace("x == 7", "x == 1"));
    assert!(found.unfixable.expect("a reason").spared.is_empty());
}

/// An unrolled `for` is a loop: a fence before it costs the same and runs once.
#[test]
fn fences_go_before_unrolled_loops() {
    let source = example("bakery");
    let found = fences(&source, MemoryModel::Tso, &Options::default());
    for Chosen { fence, .. } in &found.fences {
        assert_eq!(fence.place.edges.len(), fence.threads().len(), "a fence inside `for`: {fence:?}");
    }
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
