//! Compares dynamic partial order reduction with the reference semantics, on random programs.
//!
//! With `FENCEWRIGHT_LONG_TESTS=1`, many more programs are tested; `FENCEWRIGHT_PROGRAMS` sets their number.

use std::time::{Duration, Instant};

use fencewright_engines::dynamic::Waiting;
use fencewright_engines::explicit::{Explicit, Options, Reduction};
use fencewright_engines::{Checks, Confirm, Limits, Progress, Reason, Task, Verdict, check_each};
use fencewright_executions::oracle::{Incomplete, explore};
use fencewright_lang::load;
use fencewright_program::{Action, LocationId, MemoryModel, Op, Program, Property};
use fencewright_testing::traces;
use fencewright_testing::waiting::wait;
use fencewright_testing::{Random, Shape, contend, group, program, separate};

/// Maximum number of states of the random programs. Programs with more states have too many traces and are skipped.
const MOST_STATES: usize = 400;

fn wanted(usual: u64, long: u64) -> u64 {
    let asked = std::env::var("FENCEWRIGHT_PROGRAMS").ok().and_then(|n| n.parse().ok());
    let usual = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { long } else { usual };
    asked.unwrap_or(usual)
}

fn run(program: &Program, model: MemoryModel, properties: &[Property], limits: &Limits) -> Checks {
    let task = Task::new(program, model, properties.to_vec());
    let engine = Explicit { options: Options { reduction: Reduction::Dynamic, ..Options::default() } };
    check_each(&engine, &task, limits, &Progress::default(), Confirm::NOTHING, &mut |_, _| {})
}

fn acyclic(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let shape = Shape { loops: false, corners: seed % 4 == 3, ..Shape::default() };
    let mut program = program(&mut random, shape);
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

#[test]
fn one_execution_of_each_trace_is_explored() {
    let (mut compared, mut met) = (0, [0u64; 2]);
    for seed in 0..wanted(600, 20_000) {
        let mut program = acyclic(seed);
        program.properties.clear();
        for model in MemoryModel::ALL {
            let Some(expected) = traces::count(&program, model, 3_000) else { continue };
            let checks = run(&program, model, &program.properties, &Limits::default());
            let found = checks.statistics.executions().expect("executions were counted");
            assert_eq!(found.redundant, 0, "seed {seed}, {model:?}: {found:?}, {expected:?}");
            assert_eq!(found.cut, 0, "seed {seed}, {model:?}");
            let counted = traces::Traces { complete: found.complete, blocked: found.blocked };
            assert_eq!(counted, expected, "seed {seed}, {model:?}: {found:?}");
            compared += 1;
            met[0] += expected.complete;
            met[1] += expected.blocked;
        }
    }
    assert!(compared > 1_000 && met[0] > 10_000 && met[1] > 5_000, "{compared} programs with {met:?} traces");
}

/// A program whose steps access different cells, depending on values that other threads write.
fn depending_on_values(random: &mut Random) -> Program {
    let mut text = String::from("shared y, a[2];\n");
    for t in 0..4 {
        let statement = |random: &mut Random| match random.below(9) {
            0 | 1 => "snapshot { s = y; s = a[s]; }".to_string(),
            2 => "atomic { s = y; if s == 0 { a[0] = 2; } else { a[1] = 2; } }".to_string(),
            3 => "atomic { s = y; a[s] = 3; }".to_string(),
            4 => format!("a[{}] = {};", random.below(2), random.below(3)),
            5 => format!("r = a[{}];", random.below(2)),
            6 => "r = cas(a[0], 0, 1) ? 1 : 2;".to_string(),
            7 => "atomic { assume y == 1; r = a[0]; }".to_string(),
            _ => format!("y = {};", random.below(2)),
        };
        let first = statement(random);
        let second = if random.one_in(3) { statement(random) } else { String::new() };
        text += &format!("thread t{t} {{ var r, s; {first} {second} }}\n");
    }
    load("values.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}")).program
}

#[test]
fn steps_may_touch_something_else_when_they_come_earlier() {
    let mut compared = 0;
    for seed in 0..wanted(700, 20_000) {
        let program = depending_on_values(&mut Random::new(seed));
        let model = MemoryModel::ALL[(seed % 3) as usize];
        let Some(expected) = traces::count(&program, model, 2_000) else { continue };
        let checks = run(&program, model, &[], &Limits::default());
        let found = checks.statistics.executions().expect("executions were counted");
        let counted = traces::Traces { complete: found.complete, blocked: found.blocked };
        assert_eq!((counted, found.redundant), (expected, 0), "seed {seed}, {model:?}: {found:?}");
        compared += 1;
    }
    assert!(compared * 2 > wanted(700, 20_000), "{compared} programs");
}

#[test]
fn a_race_is_reversed_again_when_what_follows_it_is_different() {
    let text = "shared y, a[2], z[8];
        thread p { var s; snapshot { s = y; s = a[s]; } }
        thread q { a[0] = 2; }
        thread t { var r; r = a[0]; r = a[0]; }
        thread u { y = 1; }
        thread beside[i in 0..8] { var k; z[i] = 1; k = z[i]; }
        finally f: never p.s == 2 && t.r == 0;";
    let program = load("again.fw", text.as_bytes(), None, &[]).expect("a program").program;
    let checks = run(&program, MemoryModel::Sc, &program.properties, &Limits::default());
    assert!(matches!(checks.verdicts[0].verdict(), Verdict::Unsafe), "{:?}", checks.verdicts[0]);
}

#[test]
fn verdicts_are_those_of_the_reference_semantics() {
    let mut compared = 0;
    for seed in 0..wanted(2_000, 20_000) {
        let program = acyclic(1_000_000 + seed);
        for model in MemoryModel::ALL {
            let Ok(reachable) = explore(&program, model, MOST_STATES, &mut || false) else { continue };
            let checks = run(&program, model, &program.properties, &Limits::default());
            for checked in checks.verdicts {
                let expected = reachable.satisfies(&program, model, &checked.property).expect("small values");
                let same = match checked.verdict() {
                    Verdict::Safe => expected,
                    Verdict::Unsafe => !expected,
                    Verdict::Unknown(_) => false,
                };
                let name = &checked.property.name;
                assert!(same, "seed {seed}, {model:?}, {name}: {:?}, expected {expected}", checked.verdict());
            }
            compared += 1;
        }
    }
    assert!(compared > 4_000, "{compared} programs");
}

/// A program whose threads wait in loops of all kinds.
fn waiting_in_loops(random: &mut Random) -> Program {
    let mut text = String::from("shared x, y, l, a[2];\n");
    let locks = random.one_in(6);
    for t in 0..2 + usize::from(random.one_in(3)) {
        let mut body = String::new();
        for n in 0..1 + random.below(3) {
            let cell = |random: &mut Random| ["x", "y", "l", "a[0]", "a[1]"][random.below(5)];
            let (c, d, k) = (cell(random), cell(random), random.below(3));
            let statement = match random.below(26) {
                0..=2 => format!("await {c} == {k};"),
                3 => format!("await {c} != 0 && {d} != {k};"),
                4 => format!("await {c} == 1 || {d} == {k};"),
                5 => format!("await !({c} == 0 && {d} != {k}) && a[0] < 2;"),
                6 => "await a[r] == 1;".to_string(),
                7 => format!("await a[{c}] == {d};"),
                8 => format!("while {c} != {k} {{ skip; }}"),
                9 => format!("while {c} == 0 {{ fence; }}"),
                10 => format!("while !cas({c}, 0, 1) {{ }}"),
                11 => format!("while !cas({c}, 0, 1) {{ while {c} == 1 {{ }} }}"),
                12 => format!("loop {{ r = {c}; if r == {k} {{ break; }} }}"),
                13 => format!("choose {{ await {c} == {k}; y = 1; }} or {{ await {d} == 1; }}"),
                14 => format!("while {c} == {k} {{ s = s + 1; assume s < 3; }}"),
                15 => format!("await 2 / {c} == 1;"),
                16 => format!("r = {c}; if r == {k} {{ goto w{n}; }}"),
                17 if locks => format!("lock; {c} = {k}; unlock;"),
                18 if locks => format!("lock; await {c} == {k}; unlock;"),
                19 => format!("r = {c}; assert r < 2;"),
                20 => "fence;".to_string(),
                21 => format!("atomic {{ assume {c} == {k}; {d} = 1; }}"),
                22 => format!("assume r == {k};"),
                _ => format!("{c} = {k};"),
            };
            body += &format!("w{n}: {statement} ");
        }
        text += &format!("thread t{t} {{ var r, s; {body} last: skip; }}\n");
    }
    text += &match random.below(5) {
        0 => "forbid f: t0@last && x == 1;".to_string(),
        1 => "forbid f: t0@last && t1@last;".to_string(),
        2 => format!("forbid f: t0.r == {} && !t1@last;", random.below(3)),
        3 => "finally f: never t0.r == t1.r && x == 1;".to_string(),
        _ => "finally f: exists x == 2 && y == 0;".to_string(),
    };
    if random.one_in(3) {
        text += "forbid g: t0@w0 && y == 2;";
    }
    let file = load("awaits.fw", text.as_bytes(), None, &[]);
    let mut program = file.unwrap_or_else(|e| panic!("{text}\n{e:?}")).program;
    program.properties.push(Property::deadlock());
    program
}

#[test]
fn loops_that_only_wait_are_steps_that_wait() {
    let (mut decided, mut asked, mut counted, mut blocked) = (0, 0, 0, 0);
    for seed in 0..wanted(700, 20_000) {
        let program = waiting_in_loops(&mut Random::new(4_000_000 + seed));
        let model = MemoryModel::ALL[(seed % 3) as usize];
        let limits = Limits::default();
        let unsettled = unknown(&program, model, &format!("seed {seed}"));
        let task = Task::new(&program, model, program.properties.clone());
        if Waiting::new(&task, &limits).is_none() {
            continue;
        }
        asked += program.properties.len();
        decided += program.properties.len() - unsettled;
        // The engine explores as many executions as the program with waiting steps has maximal traces.
        let task = Task::new(&program, model, Vec::new());
        let waiting = Waiting::new(&task, &limits).expect("more loops wait if nothing looks");
        let Some(expected) = traces::count(&waiting.program, model, 1_000) else { continue };
        let found =
            run(&program, model, &[], &limits).statistics.executions().expect("executions were counted");
        if found.cut > 0 {
            continue;
        }
        let traces = traces::Traces { complete: found.complete, blocked: found.blocked };
        assert_eq!((traces, found.redundant), (expected, 0), "seed {seed}, {model:?}: {found:?}");
        counted += 1;
        blocked += expected.blocked;
    }
    println!("{decided} of {asked} properties decided, {counted} programs with {blocked} blocked executions");
    assert!(decided * 10 > asked * 8 && asked > 500, "{decided} of {asked} properties");
    assert!(counted > 200 && blocked > 200, "{counted} programs with {blocked} blocked executions");
}

fn example(name: &str, defines: &[(&str, i64)]) -> Program {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let bytes = std::fs::read(path).expect("readable");
    let defines: Vec<(String, i64)> = defines.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    fencewright_lang::load::load(name, &bytes, None, &defines).expect("it loads").program
}

/// The Indexer of C. Flanagan and P. Godefroid, 2005: up to eleven threads never collide, and each further thread collides with one of the others in
/// three slots.
#[test]
fn the_indexer_has_one_trace_until_threads_collide() {
    for model in MemoryModel::ALL {
        for (threads, traces) in [(2, 1), (10, 1), (11, 1), (12, 8), (13, 64), (14, 512)] {
            let program = example("indexer.fw", &[("N", threads)]);
            let checks = run(&program, model, &program.properties, &Limits::default());
            let found = checks.statistics.executions().expect("executions were counted");
            assert_eq!((found.complete, found.blocked, found.redundant), (traces, 0, 0), "{threads} threads");
            assert!(checks.verdicts.iter().all(|c| matches!(c.verdict(), Verdict::Safe)));
        }
    }
}

/// Programs with violations that would be missed, or reported wrongly, if loops were mistaken for waiting loops. If no expected result is given, the
/// property is violated, the loop is kept, and there must be no proof.
#[test]
fn loops_that_wait_hide_nothing() {
    let programs = [
        // A property mentions a label inside the loop.
        (
            "shared x, y; thread p { while x == 0 { inside: skip; } } thread q { y = 1; x = 1; }
            forbid f: p@inside && y == 1;",
            "f",
            None,
        ),
        (
            "shared x; thread p { var r; loop { r = x; if r == 2 { break; } } } thread q { x = 1; x = 2; }
            forbid f: p.r == 1;",
            "f",
            None,
        ),
        // The loop has a second entry, in its middle.
        (
            "shared x = 1, y = 1, z, done; thread p { if y == 1 { goto mid; } top: if x == 1 { goto out; }
            mid: if z == 1 { goto out; } goto top; out: done = 1; } finally f: never done == 1;",
            "f",
            Some(false),
        ),
        (
            "shared x, y, z = 1, done; thread p { if y == 1 { goto mid; } top: if x == 1 { goto out; }
            mid: if z == 1 { goto out; } goto top; out: done = 1; } finally f: never done == 1;",
            "f",
            Some(false),
        ),
        // The back edge may fault, and so may the waiting step.
        ("shared y, a[2]; thread p { var s; loop { s = a[y]; } } thread q { y = 5; }", "assertions", None),
        ("shared a[2]; thread p { var r = 5; await a[r] == 1; }", "assertions", Some(false)),
        // A thread in an endless loop has a step unless another thread holds the lock, so there is a deadlock only in the latter case.
        (
            "shared x; thread p { var r; loop { skip; r = x; } } thread q { lock; assume x == 1; unlock; }",
            "deadlock",
            None,
        ),
        ("shared x; thread p { await x == 1; } thread q { assume x == 1; }", "deadlock", Some(true)),
        (
            "shared x; thread p { loop { skip; } } thread q { x = 1; } finally f: never x == 1;",
            "f",
            Some(true),
        ),
        // When the second of two conditions becomes true, the first one may be false again.
        (
            "shared x = 1, y; thread p { await x == 1 && y == 1; } thread q { x = 0; y = 1; }
            finally f: never x == 0;",
            "f",
            Some(false),
        ),
    ];
    for (text, name, holds) in programs {
        let file = load("hidden.fw", text.as_bytes(), None, &[]);
        let program = file.unwrap_or_else(|e| panic!("{text}\n{e:?}")).program;
        let given = [program.properties.clone(), vec![Property::assertions(), Property::deadlock()]].concat();
        let property = given.into_iter().find(|p| p.name == name).expect("a property");
        for model in MemoryModel::ALL {
            let checks = run(&program, model, std::slice::from_ref(&property), &Limits::default());
            let found = checks.verdicts[0].verdict();
            let right = match found {
                Verdict::Safe => holds == Some(true),
                Verdict::Unsafe => holds != Some(true),
                Verdict::Unknown(reason) => holds.is_none() && matches!(reason, Reason::Unsupported(..)),
            };
            assert!(right, "{text}\n{model:?}: {found:?}");
        }
    }
}

/// THESIS16 Figs. 4.2 to 4.4, with goals marked in memory as in s.4.2.1. The traces differ in the thread that marks first, and in the thread that
/// first sees both marks. In Figs. 4.5 and 4.6, each thread first increments its counter twice and loads the other thread's counter. A thread that
/// loads less than 2 is stuck. Under SC one of the threads loads 2, and the value that the other thread loads gives 4 traces. Under TSO and PSO there
/// are more traces, because an increment loads from the buffer or from memory.
#[test]
fn the_traces_of_the_thesis() {
    let mark = "atomic { goal = goal + 1; } atomic { assume goal == 2; success = success + 1; }";
    let assigning = "var r; r = 1; assume r == 1;";
    let incrementing = |own: &str, other: &str| {
        format!("var r; {own} = {own} + 1; {own} = {own} + 1; r = {other}; assume r == 2;")
    };
    let [local, first, second] = [assigning.to_string(), incrementing("x", "y"), incrementing("y", "x")];
    for (bodies, under_sc) in [([&local, &local], (4, 0)), ([&first, &second], (4, 4))] {
        let text = format!(
            "shared x, y, goal, success; thread p {{ {} {mark} }} thread q {{ {} {mark} }} finally f: never success == 2;",
            bodies[0], bodies[1]
        );
        let program = load("figure.fw", text.as_bytes(), None, &[]).expect("a program").program;
        for model in MemoryModel::ALL {
            let found = run(&program, model, &[], &Limits::default()).statistics.executions();
            let found = found.expect("executions were counted");
            let expected = traces::count(&program, model, 100_000).expect("few traces");
            assert_eq!((found.complete, found.blocked), (expected.complete, expected.blocked), "{text}");
            assert!(model != MemoryModel::Sc || (found.complete, found.blocked) == under_sc, "{found:?}");
            let checks = run(&program, model, &program.properties, &Limits::default());
            assert!(matches!(checks.verdicts[0].verdict(), Verdict::Unsafe), "{text}");
        }
    }
}

/// Whether no thread can return to a location, so that all executions end.
fn is_acyclic(program: &Program) -> bool {
    program.threads.iter().all(|thread| {
        // Computes, as a fixpoint, the locations from which every path ends: all outgoing edges of such a location lead to such locations.
        let mut left = vec![false; thread.locations.len()];
        let leads_on = |n: usize, left: &[bool]| {
            thread.edges_from(LocationId(n as u32)).all(|(_, edge)| left[edge.to.index()])
        };
        while let Some(n) = (0..left.len()).find(|&n| !left[n] && leads_on(n, &left)) {
            left[n] = true;
        }
        left[thread.entry.index()]
    })
}

/// All examples whose executions end, with loops that only wait translated to waiting steps.
#[test]
fn acyclic_examples_have_the_verdicts_of_a_full_search() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files =
        std::fs::read_dir(directory).expect("the examples").map(|file| file.expect("a file").file_name());
    let mut names: Vec<String> = files.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(".fw"));
    names.sort();
    let (mut compared, mut waiting) = (0, 0);
    for name in names {
        let program = example(&name, &[]);
        for model in MemoryModel::ALL {
            let task = Task::new(&program, model, program.properties.clone());
            let other = Waiting::new(&task, &Limits::default());
            if !is_acyclic(other.as_ref().map_or(&program, |waiting| &waiting.program)) {
                continue;
            }
            let limits =
                || Limits::starting_now(Some(Duration::from_secs(2)), Some(1 << 28), Default::default());
            let reduced = run(&program, model, &program.properties, &limits());
            let engine = Explicit { options: Options { reduction: Reduction::None, ..Options::default() } };
            let progress = Progress::default();
            let all = check_each(&engine, &task, &limits(), &progress, Confirm::NOTHING, &mut |_, _| {});
            for (reduced, all) in reduced.verdicts.iter().zip(&all.verdicts) {
                let (one, other) = (reduced.verdict(), all.verdict());
                let same = match (one, other) {
                    (Verdict::Safe, Verdict::Safe) | (Verdict::Unsafe, Verdict::Unsafe) => true,
                    (Verdict::Unknown(Reason::Timeout(_) | Reason::Memory(_)), _) => true,
                    (_, other) => matches!(other, Verdict::Unknown(_)),
                };
                assert!(same, "{name}, {model:?}, {}: {one:?}, but {other:?}", reduced.property.name);
            }
            let executions = reduced.statistics.executions().expect("executions were counted");
            println!("{name}, {model:?}: {executions:?}; {} states", all.statistics.states);
            assert_eq!((executions.cut, executions.redundant), (0, 0), "{name}, {model:?}");
            compared += 1;
            waiting += u32::from(other.is_some());
        }
    }
    println!("{compared} compared, {waiting} of them with loops that wait");
    assert!(compared > 80 && waiting > 8, "{compared} compared, {waiting} of them with loops that wait");
}

/// Checks that a run has no wrong proof and no wrong violation; returns the number of unknown verdicts.
fn unknown(program: &Program, model: MemoryModel, what: &str) -> usize {
    let reachable = explore(program, model, MOST_STATES, &mut || false);
    let limits = Limits::starting_now(Some(Duration::from_millis(100)), None, Default::default());
    let mut unknown = 0;
    for checked in run(program, model, &program.properties, &limits).verdicts {
        let expected = match &reachable {
            Ok(reachable) => reachable.satisfies(program, model, &checked.property),
            // An incomplete exploration proves nothing.
            Err(Incomplete::UnboundedChoice | Incomplete::Limit) if checked.trace().is_none() => None,
            Err(_) => continue,
        };
        let right = match checked.verdict() {
            Verdict::Safe => expected == Some(true),
            Verdict::Unsafe => expected == Some(false),
            Verdict::Unknown(Reason::Contradiction(_)) => false,
            Verdict::Unknown(_) => {
                unknown += 1;
                true
            }
        };
        assert!(
            right,
            "{what}, {model:?}, {}: {:?}, expected {expected:?}",
            checked.property.name,
            checked.verdict()
        );
    }
    unknown
}

#[test]
fn an_execution_that_does_not_end_is_never_a_proof() {
    let mut without = 0;
    for seed in 0..wanted(150, 20_000) {
        let mut random = Random::new(2_000_000 + seed);
        let program = program(&mut random, Shape { length: 3, ..Shape::default() });
        without += MemoryModel::ALL
            .map(|model| unknown(&program, model, &format!("seed {seed}")))
            .iter()
            .sum::<usize>();
    }
    assert!(without > 100, "{without} properties without a verdict");
}

#[test]
fn a_value_that_was_not_tried_is_never_a_proof() {
    let mut without = 0;
    for seed in 0..wanted(300, 20_000) {
        let mut program = acyclic(3_000_000 + seed);
        match seed % 2 {
            0 => program.variables.iter_mut().for_each(|v| v.open = true),
            _ => {
                for edge in program.threads.iter_mut().flat_map(|t| &mut t.edges) {
                    if let Action::Op(Op::Havoc(_, range)) = &mut edge.action {
                        *range = None;
                    }
                }
            }
        }
        without += unknown(&program, MemoryModel::Tso, &format!("seed {seed}"));
    }
    assert!(without > 30, "{without} properties without a verdict");
}

#[test]
fn limits_are_kept() {
    let program = example("indexer.fw", &[("N", 40)]);
    let start = Instant::now();
    let limits = Limits::starting_now(Some(Duration::from_millis(200)), None, Default::default());
    let checks = run(&program, MemoryModel::Tso, &program.properties, &limits);
    assert!(matches!(checks.verdicts[0].verdict(), Verdict::Unknown(Reason::Timeout(_))));
    assert!(start.elapsed() < Duration::from_secs(20), "it took {:?}", start.elapsed());
    let limits = Limits::starting_now(None, Some(100_000), Default::default());
    let checks = run(&program, MemoryModel::Tso, &program.properties, &limits);
    assert!(matches!(checks.verdicts[0].verdict(), Verdict::Unknown(Reason::Memory(_))));
}

#[test]
fn a_limit_holds_while_races_of_a_long_execution_are_reversed() {
    let body = |n: usize| {
        (0..n).map(|i| format!("x[{}] = {i}; r = x[{}];\n", i % 8, (i + 1) % 8)).collect::<String>()
    };
    let text = format!(
        "shared x[8]; thread p {{ var r; {0} }} thread q {{ var r; {0} }} finally f: never x[0] == 0 - 1;",
        body(400)
    );
    let program = load("long.fw", text.as_bytes(), None, &[]).expect("a program").program;
    let limits = Limits::starting_now(Some(Duration::from_millis(200)), None, Default::default());
    let start = Instant::now();
    let checks = run(&program, MemoryModel::Tso, &program.properties, &limits);
    let verdict = checks.verdicts[0].verdict();
    assert!(matches!(verdict, Verdict::Unknown(Reason::Timeout(_))), "{verdict:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// The sequence of events that reverses a race may be as long as the execution, so it must not be built by recursion.
#[test]
fn long_executions_take_no_stack() {
    let text = "shared x, c; thread p { var r; r = x; r = x; } thread q { x = 1; x = 2; }
        thread beside { for i in 0..3900 { c = i; } } finally f: never x == 0;";
    let program = load("long.fw", text.as_bytes(), None, &[]).expect("a program").program;
    let explore = move || {
        let checks = run(&program, MemoryModel::Sc, &program.properties, &Limits::default());
        (matches!(checks.verdicts[0].verdict(), Verdict::Safe), checks.statistics.executions())
    };
    let thread = std::thread::Builder::new().stack_size(192 << 10).spawn(explore).expect("a thread");
    let (safe, executions) = thread.join().expect("it has enough stack");
    assert!(
        safe && executions.is_some_and(|found| (found.complete, found.blocked) == (6, 0)),
        "{executions:?}"
    );
}

#[test]
fn a_loop_with_very_many_branches_is_no_trouble() {
    let branches = " or { continue; } or { r = x; goto known; }".repeat(120_000);
    let text = format!(
        "shared x; thread p {{ var r; loop {{ choose {{ r = x; }} {branches} known: if r == 1 {{ break; }} }} }}
         thread q {{ x = 1; }} forbid f: x == 2;"
    );
    let program = load("wide.fw", text.as_bytes(), None, &[]).expect("a program").program;
    let limits = Limits::starting_now(Some(Duration::from_secs(10)), None, Default::default());
    let task = Task::new(&program, MemoryModel::Sc, program.properties.clone());
    assert!(Waiting::new(&task, &limits).is_some(), "it waits for a value");
    assert_eq!(limits.exceeded(0), None);
}

#[test]
fn a_loop_that_looks_outside_of_an_open_array_is_kept() {
    let text = "shared mem[2] open, x;
        thread p { var r, s; s = x + 5; loop { r = mem[s]; } } thread q { x = 1; } forbid f: x == 2;";
    let program = load("open.fw", text.as_bytes(), None, &[]).expect("a program").program;
    for model in MemoryModel::ALL {
        let checks = run(&program, model, &program.properties, &Limits::default());
        let verdict = checks.verdicts[0].verdict();
        assert!(matches!(verdict, Verdict::Unknown(Reason::Limit(..))), "{model:?}: {verdict:?}");
    }
}

/// The verdicts on the properties of a program, under a model, each by the name of its property.
fn verdicts(text: &str, model: MemoryModel) -> Vec<(String, Verdict)> {
    let program = load("open.fw", text.as_bytes(), None, &[]).expect("a program").program;
    let verdicts = run(&program, model, &program.properties, &Limits::default()).verdicts;
    verdicts.iter().map(|checked| (checked.property.name.clone(), checked.verdict().clone())).collect()
}

#[test]
fn a_step_that_leaves_an_open_array_has_no_effect() {
    // Each step of `p` and `q` stores, or chooses, before it accesses a cell outside the array. Later steps of other threads can still be a
    // violation.
    let text = "shared a[2] open, y;
        thread p { var r, s = 2; r = a[0]; atomic { a[0] = 1; r = a[s]; } r = 7; }
        thread q { var r, s = 3; a[1] = 1; atomic { r = a[1]; r = * in 5..=6; a[s] = r; } r = 7; }
        thread t { var r; r = a[0]; y = r + 1; }
        forbid stored: a[0] == 1;
        forbid loaded: t.r == 1;
        forbid chosen: q.r >= 5;
        forbid behind: p.r == 7 || q.r == 7;
        forbid written: y == 1;
        finally ended: never y == 1;";
    for model in MemoryModel::ALL {
        for (name, verdict) in verdicts(text, model) {
            let expected = match &name[..] {
                "written" => matches!(verdict, Verdict::Unsafe),
                _ => matches!(verdict, Verdict::Unknown(Reason::Limit(..))),
            };
            assert!(expected, "{model:?}, {name}: {verdict:?}");
        }
    }
}

#[test]
fn a_thread_that_stops_at_a_limit_is_still_there() {
    let text = "shared a[2] open, y;
        thread p { var r, s = 2; before: r = a[s]; after: r = 0; }
        thread q { y = 1; }
        forbid left: !p@before;
        forbid still: p@before && y == 1;";
    for model in MemoryModel::ALL {
        let [(_, left), (_, still)] = &verdicts(text, model)[..] else { panic!("two properties") };
        assert!(matches!(left, Verdict::Unknown(Reason::Limit(..))), "{model:?}: {left:?}");
        assert!(matches!(still, Verdict::Unsafe), "{model:?}: {still:?}");
    }
}
