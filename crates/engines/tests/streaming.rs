//! Verdicts come as soon as they are found, and engines do not look any further for what has its verdict.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::cegar::Cegar;
use fencewright_engines::contexts::ContextBound;
use fencewright_engines::explicit::{Explicit, Options, Order};
use fencewright_engines::lazy::Lazy;
use fencewright_engines::{
    Answer, Checked, Confirm, Early, Engine, Limits, Listener, Progress, Reason, Report, Task, Verdict,
    check_each,
};
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program, Trace};

/// `easy` and `later` are violated, `hard` holds and no engine can show it: sums of i * i - 2 * i are never 7.
const PROGRAM: &str = "
shared x, y, n;
thread p {
    var i, s;
    y = 1;
    loop { i = i + 1; s = s + i * i - 2 * i; x = s; n = i; }
}
thread q { var r, t; r = x; t = n; }
forbid easy: y == 1;
forbid hard: q.r == 7;
forbid later: q.t == 3;
";

/// Long enough for any machine; a run that comes to this has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn program(text: &str) -> Program {
    let loaded = load("test.fw", text.as_bytes(), None, &[]);
    loaded.unwrap_or_else(|e| panic!("{}", e.sources.render(&e.diagnostics, false))).program
}

fn explicit(order: Order, workers: usize) -> Explicit {
    // Threads from the beginning, so that they must come together to tell.
    Explicit { options: Options { order, workers, threads_from: 1, ..Options::default() } }
}

/// All engines, the explicit one in all the ways it searches.
fn engines() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(explicit(Order::BreadthFirst, 1)),
        Box::new(explicit(Order::BreadthFirst, 2)),
        Box::new(explicit(Order::DepthFirst, 1)),
        Box::new(explicit(Order::DepthFirst, 3)),
        Box::new(Cegar::default()),
        Box::new(ContextBound::default()),
        Box::new(Lazy::default()),
        Box::new(Auto::default()),
    ]
}

/// Limits that end a run that does not end by itself.
fn patient() -> Limits {
    Limits::starting_now(Some(PATIENCE), Some(2 << 30), Default::default())
}

/// An engine that does not end before somebody has heard the first of its verdicts.
struct Waiting<'a> {
    engine: &'a dyn Engine,
    heard: &'a AtomicBool,
}

impl Engine for Waiting<'_> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn about(&self) -> &'static str {
        "waits to be heard"
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let report = self.engine.run(task, limits, progress);
        let end = Instant::now() + PATIENCE;
        while !self.heard.load(Ordering::Relaxed) {
            assert!(Instant::now() < end, "{} tells nothing before it ends", self.name());
            std::thread::sleep(Duration::from_millis(1));
        }
        report
    }
}

#[test]
fn a_violation_is_heard_of_while_the_engine_runs() {
    let program = program(PROGRAM);
    for engine in engines() {
        let heard = AtomicBool::new(false);
        let limits = patient();
        let task = Task::new(&program, MemoryModel::Tso, program.properties[..2].to_vec());
        let waiting = Waiting { engine: &*engine, heard: &heard };
        let mut order = Vec::new();
        let mut on_verdict = |n: usize, checked: &Checked| {
            order.push((n, matches!(checked.verdict(), Verdict::Unsafe)));
            heard.store(true, Ordering::Relaxed);
            // The other one would take for ever.
            limits.cancelled.store(true, Ordering::Relaxed);
        };
        let results =
            check_each(&waiting, &task, &limits, &Progress::default(), Confirm::default(), &mut on_verdict);
        assert_eq!(order, [(0, true), (1, false)], "{}", engine.name());
        assert!(
            matches!(results[0].verdict(), Verdict::Unsafe),
            "{}: {:?}",
            engine.name(),
            results[0].verdict()
        );
        assert!(results[0].trace().is_some());
    }
}

#[test]
fn several_violations_come_one_after_the_other() {
    let program = program(PROGRAM);
    // Depth first, the other thread never gets its turn.
    let breadth_first = [1, 2, 3].map(|workers| explicit(Order::BreadthFirst, workers));
    let auto = Auto::default();
    let engines = breadth_first.iter().map(|e| e as &dyn Engine).chain([&auto as &dyn Engine]);
    for engine in engines {
        let limits = patient();
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let mut heard: BTreeMap<usize, u64> = BTreeMap::new();
        let mut on_verdict = |n: usize, checked: &Checked| {
            if let Verdict::Unsafe = checked.verdict() {
                heard.insert(n, checked.states);
            }
            if heard.len() == 2 {
                limits.cancelled.store(true, Ordering::Relaxed);
            }
        };
        let start = Instant::now();
        let results =
            check_each(engine, &task, &limits, &Progress::default(), Confirm::default(), &mut on_verdict);
        assert!(start.elapsed() < PATIENCE, "{} does not tell both", engine.name());
        assert_eq!(heard.keys().copied().collect::<Vec<_>>(), [0, 2], "{}", engine.name());
        assert!(matches!(results[1].verdict(), Verdict::Unknown(Reason::Cancelled)), "{}", engine.name());
    }
}

/// Hears everything, and has a verdict on these properties.
#[derive(Debug, Default)]
struct Knowing {
    settled: Vec<usize>,
    heard: Mutex<Vec<usize>>,
}

impl Listener for Knowing {
    fn hear(&self, property: usize, _: Early) {
        self.heard.lock().expect("nobody panicked").push(property);
    }

    fn is_settled(&self, property: usize) -> bool {
        self.settled.contains(&property)
    }
}

#[test]
fn what_has_its_verdict_is_not_looked_for() {
    let program = program(PROGRAM);
    for engine in engines() {
        let knowing = Knowing { settled: vec![0, 1, 2], ..Knowing::default() };
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let start = Instant::now();
        let report = engine.run(&task.heard_by(&knowing), &patient(), &Progress::default());
        assert!(start.elapsed() < PATIENCE, "{} does not end", engine.name());
        assert!(!report.complete, "{} claims to have seen everything", engine.name());
        let claims = |a: &Answer| matches!(a, Answer::Holds(_) | Answer::Proved(_));
        assert!(!report.answers.iter().any(claims), "{}: {:?}", engine.name(), report.answers);
    }
}

#[test]
fn a_search_that_ends_does_not_claim_what_it_stopped_looking_for() {
    // The state space is finite, and `one` is violated at its end.
    let text = "shared x, y; thread p { var i; while i < 2000 { i = i + 1; x = i; fence; } y = 1; } \
                forbid one: y == 1; forbid two: y == 2;";
    let program = program(text);
    for engine in engines() {
        let knowing = Knowing { settled: vec![0], ..Knowing::default() };
        let task = Task::new(&program, MemoryModel::Sc, program.properties.clone());
        let report = engine.run(&task.heard_by(&knowing), &patient(), &Progress::default());
        let claims = matches!(report.answers[0], Answer::Holds(_) | Answer::Proved(_));
        assert!(!claims, "{}: {:?}", engine.name(), report.answers);
    }
}

/// An engine that tells one thing and then another.
struct Fickle {
    first: Answer,
    then: Answer,
}

impl Engine for Fickle {
    fn name(&self) -> &'static str {
        "fickle"
    }

    fn about(&self) -> &'static str {
        "contradicts itself"
    }

    fn run(&self, task: &Task<'_>, _: &Limits, _: &Progress) -> Report {
        let early =
            Early { answer: self.first.clone(), engine: "first", states: 1, bytes: 1, rounds: Vec::new() };
        task.tell(0, early);
        Report { answers: vec![self.then.clone()], ..Report::default() }
    }
}

/// The verdicts that are heard of, in words, and the one that remains.
fn heard(program: &Program, engine: &dyn Engine) -> (Vec<String>, String) {
    let task = Task::new(program, MemoryModel::Tso, program.properties.clone());
    let words = |checked: &Checked| match checked.verdict() {
        Verdict::Unknown(reason) => reason.to_string(),
        verdict => format!("{verdict:?}"),
    };
    let mut heard = Vec::new();
    let results =
        check_each(engine, &task, &patient(), &Progress::default(), Confirm::default(), &mut |_, checked| {
            heard.push(words(checked))
        });
    (heard, words(&results[0]))
}

#[test]
fn answers_that_contradict_each_other_are_no_verdict() {
    let program = program("shared x; thread p { x = 1; } forbid one: x == 1;");
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let report = Explicit::default().run(&task, &patient(), &Progress::default());
    let violated = report.answers[0].clone();
    assert!(matches!(violated, Answer::Violated(Some(_))));

    let agrees = Fickle { first: violated.clone(), then: violated.clone() };
    assert_eq!(heard(&program, &agrees), (vec!["Unsafe".into()], "Unsafe".into()));

    let gives_up = Fickle { first: violated.clone(), then: Answer::Unknown(Reason::Cancelled) };
    assert_eq!(heard(&program, &gives_up), (vec!["Unsafe".into()], "Unsafe".into()));

    let fickle = Fickle { first: violated, then: Answer::Holds(None) };
    let (heard_of, remains) = heard(&program, &fickle);
    assert_eq!(heard_of.len(), 2, "{heard_of:?}");
    assert_eq!(heard_of[0], "Unsafe");
    assert_eq!(heard_of[1], remains);
    assert!(remains.contains("internal contradiction"), "{remains}");
    assert!(
        remains.contains("engine first says that it is violated, engine fickle that it holds"),
        "{remains}"
    );

    // An execution that does not show it is told at once, and nothing else counts.
    let nothing = Trace { registers: vec![vec![]], memory: vec![0], events: Vec::new() };
    let wrong = Fickle { first: Answer::Violated(Some(nothing)), then: Answer::Unknown(Reason::Cancelled) };
    let (heard_of, remains) = heard(&program, &wrong);
    assert_eq!(heard_of, std::slice::from_ref(&remains));
    assert!(remains.contains("internal contradiction"), "{remains}");
}
