//! Tests of checked verdicts: they are reported as soon as they are found, engines stop working on settled properties, and false claims are
//! rejected.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program, Trace};

use super::{Checked, Condition, Confirm, Doubt, Verdict, check, check_each};
use crate::auto::Auto;
use crate::cegar::Cegar;
use crate::contexts::ContextBound;
use crate::explicit::{Explicit, Options, Order, finals};
use crate::lazy::Lazy;
use crate::task::{
    About, Answer, Author, Early, Engine, EngineName, Invariant, Limits, Listener, Progress, Reason, Report,
    Seen, Task, Work,
};

/// `easy` and `later` are violated. `hard` holds, but no engine can prove it: sums of i * i - 2 * i are never 7.
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

/// Time limit of each run. A run that reaches it has failed, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn program(text: &str) -> Program {
    let loaded = load("test.fw", text.as_bytes(), None, &[]);
    loaded.unwrap_or_else(|e| panic!("{}", e.sources.render(&e.diagnostics, false))).program
}

fn explicit(order: Order, workers: usize) -> Explicit {
    // Worker threads start with the first state, so that workers must tell each other about the violations that they find.
    Explicit { options: Options { order, workers, threads_from: 1, ..Options::default() } }
}

/// Several engines; the explicit engine in both search orders, with one and with several workers.
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

/// Limits that end a run which does not terminate.
fn patient() -> Limits {
    Limits::starting_now(Some(PATIENCE), Some(2 << 30), Default::default())
}

/// An engine that does not end before the listener has received its first verdict.
struct Waiting<'a> {
    engine: &'a dyn Engine,
    heard: &'a AtomicBool,
}

impl Engine for Waiting<'_> {
    fn name(&self) -> EngineName {
        self.engine.name()
    }

    fn about(&self) -> About {
        Explicit::default().about()
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
            // The run is cancelled because the other property would never be decided.
            limits.token.cancel();
        };
        let results =
            check_each(&waiting, &task, &limits, &Progress::default(), Confirm::default(), &mut on_verdict)
                .verdicts;
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
    // Only breadth-first search is used, because in depth-first search the other thread would never take a step.
    let breadth_first = [1, 2, 3].map(|workers| explicit(Order::BreadthFirst, workers));
    let auto = Auto::default();
    let engines = breadth_first.iter().map(|e| e as &dyn Engine).chain([&auto as &dyn Engine]);
    for engine in engines {
        let limits = patient();
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let mut heard: BTreeMap<usize, u64> = BTreeMap::new();
        let mut on_verdict = |n: usize, checked: &Checked| {
            if let Verdict::Unsafe = checked.verdict() {
                heard.insert(n, checked.work.states);
            }
            if heard.len() == 2 {
                limits.token.cancel();
            }
        };
        let start = Instant::now();
        let results =
            check_each(engine, &task, &limits, &Progress::default(), Confirm::default(), &mut on_verdict)
                .verdicts;
        assert!(start.elapsed() < PATIENCE, "{} does not tell both", engine.name());
        assert_eq!(heard.keys().copied().collect::<Vec<_>>(), [0, 2], "{}", engine.name());
        assert!(matches!(results[1].verdict(), Verdict::Unknown(Reason::Cancelled)), "{}", engine.name());
    }
}

/// A listener that records the properties with answers and treats some properties as settled.
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

    fn judges(&self) -> bool {
        false
    }
}

#[test]
fn settled_properties_are_not_searched() {
    let program = program(PROGRAM);
    for engine in engines() {
        let knowing = Knowing { settled: vec![0, 1, 2], ..Knowing::default() };
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let start = Instant::now();
        let report = engine.run(&task.heard_by(&knowing), &patient(), &Progress::default());
        assert!(start.elapsed() < PATIENCE, "{} does not end", engine.name());
        assert_ne!(report.seen, Seen::All, "{} claims to have seen everything", engine.name());
        let claims = |a: &Answer| matches!(a, Answer::Holds(_) | Answer::Proved(_));
        assert!(!report.answers.iter().any(claims), "{}: {:?}", engine.name(), report.answers);
    }
}

#[test]
fn a_search_that_ends_does_not_claim_what_it_stopped_looking_for() {
    // The state space is finite, and `one` is violated only in its last states.
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

/// An engine that first reports one answer and then another.
struct Fickle {
    first: Answer,
    then: Answer,
}

impl Engine for Fickle {
    fn name(&self) -> EngineName {
        EngineName::Cegar
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, _: &Limits, _: &Progress) -> Report {
        let author = Author { engine: EngineName::Explicit, work: Work::default() };
        let early = Early { answer: self.first.clone(), author };
        task.tell(0, early);
        Report { answers: vec![self.then.clone()], ..Report::default() }
    }
}

/// The verdicts that `on_verdict` receives, as text, and the final verdict.
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
        })
        .verdicts;
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

    let gives_up = Fickle { first: violated.clone(), then: Answer::Open };
    assert_eq!(heard(&program, &gives_up), (vec!["Unsafe".into()], "Unsafe".into()));

    let fickle = Fickle { first: violated, then: Answer::Holds(None) };
    let (heard_of, remains) = heard(&program, &fickle);
    assert_eq!(heard_of.len(), 2, "{heard_of:?}");
    assert_eq!(heard_of[0], "Unsafe");
    assert_eq!(heard_of[1], remains);
    assert!(remains.contains("internal contradiction"), "{remains}");
    assert!(
        remains.contains("engine explicit says that it is violated, engine cegar that it holds"),
        "{remains}"
    );

    // The trace does not violate the property. That is reported immediately as a contradiction, and later answers do not count.
    let nothing = Trace { registers: vec![vec![]], memory: vec![0], events: Vec::new() };
    let wrong = Fickle { first: Answer::Violated(Some(nothing)), then: Answer::Open };
    let (heard_of, remains) = heard(&program, &wrong);
    assert_eq!(heard_of, std::slice::from_ref(&remains));
    assert!(remains.contains("internal contradiction"), "{remains}");
}

/// An engine that returns a modified proof of another engine.
struct Claims(fn(&mut Invariant));

impl Engine for Claims {
    fn name(&self) -> EngineName {
        EngineName::Cegar
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, _: &Limits, progress: &Progress) -> Report {
        // The listener must not receive the unmodified proof.
        let unheard = Task::new(task.program, task.model, task.properties.clone());
        let mut report = Cegar::default().run(&unheard, &Limits::default(), progress);
        for answer in &mut report.answers {
            let Answer::Proved(invariant) = answer else { panic!("{answer:?}") };
            let mut changed = (**invariant).clone();
            self.0(&mut changed);
            *invariant = Arc::new(changed);
        }
        report
    }
}

#[test]
fn a_proof_counts_only_if_it_was_checked_and_is_about_the_property() {
    let program = program("shared x; thread p { loop { x = x + 1; fence; } } forbid bad: x == 0 - 1;");
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let verdict = |engine: &Claims, limits: &Limits| {
        check(engine, &task, limits, &Progress::default(), Confirm::default())[0].verdict().clone()
    };
    let honest = Claims(|_| {});
    assert!(matches!(verdict(&honest, &Limits::default()), Verdict::Safe));
    let stopped = Limits::default();
    stopped.token.cancel();
    assert!(matches!(verdict(&honest, &stopped), Verdict::Unknown(Reason::NotConfirmed)));
    let other = Claims(|invariant| invariant.properties = vec!["another".into()]);
    assert!(matches!(verdict(&other, &Limits::default()), Verdict::Unknown(Reason::Contradiction(_))));
    let nothing = Claims(|invariant| invariant.properties.clear());
    assert!(matches!(verdict(&nothing, &Limits::default()), Verdict::Unknown(Reason::Contradiction(_))));
}

/// The explicit engine with a modified report.
struct Altered<F>(F);

impl<F: Fn(&mut Report) + Sync> Engine for Altered<F> {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut report = Explicit::default().run(task, limits, progress);
        (self.0)(&mut report);
        report
    }
}

/// The result for the final states of a program after an engine's report was modified: whether the condition holds, whether that was checked,
/// and the doubt that remains.
fn admitted(text: &str, change: impl Fn(&mut Report) + Sync) -> (Option<bool>, Option<bool>, Option<Doubt>) {
    let program = program(text);
    let condition = Condition::new(&program, MemoryModel::Tso, &program.properties[0], None, []);
    let condition = condition.expect("a `finally`");
    let found = condition.search(&Altered(change), &patient(), Confirm::default().exploration);
    (found.holds(), found.checked(), found.doubt())
}

#[test]
fn final_states_that_the_reference_semantics_does_not_reach_are_no_answer() {
    let text = "shared x; thread p { x = 1; } finally one: never x == 2;";
    assert_eq!(admitted(text, |_| {}), (Some(true), Some(true), None));
    for wrong in [vec![], vec![vec![2]], vec![vec![1], vec![2]]] {
        let (holds, checked, doubt) = admitted(text, |report| report.finals = wrong.clone());
        assert_eq!((holds, checked), (None, None));
        assert!(matches!(doubt, Some(Doubt::Unseen(Reason::Contradiction(_)))), "{doubt:?}");
    }
}

#[test]
fn final_states_of_a_search_that_did_not_end_stand_on_the_engine() {
    let text = "shared x; thread p { x = * in 0..2; } finally one: never x == 1;";
    let stopped = Seen::Until(Reason::Cancelled);
    // A final state that the engine found decides the condition, but this answer relies on the engine alone.
    let seen = admitted(text, |report| report.seen = stopped.clone());
    assert_eq!(seen, (Some(false), Some(false), Some(Doubt::Unseen(Reason::Cancelled))));
    // Without that final state, the condition is undecided.
    let unseen = admitted(text, |report| (report.seen, report.finals) = (stopped.clone(), vec![vec![0]]));
    assert_eq!(unseen, (None, None, Some(Doubt::Unseen(Reason::Cancelled))));
}

#[test]
fn a_condition_that_cannot_be_computed_is_not_unsatisfied() {
    let program = "thread p { var r; r = * in 0..2; if r == 1 { r = 4611686018427387904; } }";
    for (condition, holds) in [
        ("never p.r * p.r == 4", None),
        ("exists p.r * p.r == 4", None),
        ("forall p.r * p.r == 0", None),
        // These conditions are decided by a final state in which they can be computed.
        ("never p.r * p.r == 0", Some(false)),
        ("exists p.r * p.r == 0", Some(true)),
        ("forall p.r * p.r == 4", Some(false)),
    ] {
        let (found, checked, doubt) = admitted(&format!("{program} finally c: {condition};"), |_| {});
        assert_eq!((found, checked), (holds, holds.map(|_| true)), "{condition}");
        assert_eq!(doubt, Some(Doubt::NotComputable), "{condition}");
    }
}

#[test]
fn a_condition_of_a_program_without_end_is_decided_by_an_execution() {
    let endless = "shared x; thread p { var i; loop { i = i + 1; x = i; } } thread q { var r; r = x; }";
    let program = program(&format!("{endless} finally c: never q.r == 3;"));
    let condition = Condition::new(&program, MemoryModel::Tso, &program.properties[0], None, []);
    let limits = Limits::starting_now(Some(Duration::from_secs(1)), None, Default::default());
    // No execution terminates, so there are no final states.
    let found = finals::decide(&condition.expect("a `finally`"), &limits);
    assert_eq!((found.holds(), found.checked()), (None, None));
    let ending = endless.replace("loop {", "while x != -1 {");
    let program = self::program(&format!("{ending} thread s {{ x = -1; }} finally c: never q.r == 3;"));
    let condition = Condition::new(&program, MemoryModel::Tso, &program.properties[0], None, []);
    let found = finals::decide(&condition.expect("a `finally`"), &patient());
    assert_eq!((found.holds(), found.checked()), (Some(false), Some(true)), "{:?}", found.doubt());
    assert_eq!(found.doubt(), Some(Doubt::EndedWhenDecided));
}
