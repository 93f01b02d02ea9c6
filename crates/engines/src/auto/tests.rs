//! Tests of the reductions to stronger memory models and of the portfolio. They compare with the reference semantics, and use engines that give wrong
//! answers or hang.
//!
//! With `FENCEWRIGHT_LONG_TESTS=1`, 50,000 random programs are tested.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencewright_certify::certificate::Claim;
use fencewright_executions::oracle::{Reachable, explore};
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program, Property};
use fencewright_smt::Prover;
use fencewright_testing::{Random, Shape, contend, group, program as random_program, separate};
use fencewright_transform::separated::stores_are_separated;

use super::by_way_of::{Reordered, Statically, UnderTso};
use super::portfolio::{self, Member};
use super::*;
use crate::check::{Checked, Confirm, Exploration, Verdict, check, check_each};
use crate::task::{Answer, Invariant, Listener, Reason};

fn program(text: &str) -> Program {
    load("test.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e:?}")).program
}

/// Runs one engine on the task, after the reductions to stronger models if these are possible. The number counts the properties that were checked
/// under SC instead of TSO.
struct Way(Box<dyn Engine>, AtomicUsize);

impl Engine for Way {
    fn name(&self) -> EngineName {
        self.0.name()
    }

    fn about(&self) -> About {
        self.0.about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        if let Some(way) = Reordered::new(task) {
            return way.under_tso(|task| self.run(task, limits, progress));
        }
        let all: Vec<usize> = (0..task.properties.len()).collect();
        let mut answers = vec![Answer::Unknown(Reason::Cancelled); all.len()];
        if let Some(way) = Statically::robust(task, &all, limits) {
            let report = way.under_sc(|task| self.0.run(task, limits, progress));
            for (&n, answer) in way.numbers.iter().zip(report.answers) {
                self.1.fetch_add(1, Ordering::Relaxed);
                answers[n] = answer;
            }
        } else if task.model == MemoryModel::Tso {
            answers = self.0.run(task, limits, progress).answers;
        }
        Report { answers, ..Report::default() }
    }
}

fn expected(program: &Program, model: MemoryModel, reachable: &Reachable) -> Vec<bool> {
    let holds = |p| reachable.satisfies(program, model, p).expect("small values");
    program.properties.iter().map(holds).collect()
}

/// Random programs, many of which have no attack or have separated stores.
fn random(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let shape = Shape { corners: seed % 7 == 6, length: 5, ..Shape::default() };
    let mut program = random_program(&mut random, shape);
    if random.one_in(4) {
        contend(&mut random, &mut program, 2);
    }
    match random.below(4) {
        0 => {}
        1 => group(&mut random, &mut program),
        _ => separate(&mut random, &mut program),
    }
    program
}

#[test]
fn by_way_of_a_stronger_model_verdicts_are_those_of_the_reference_semantics() {
    let seeds = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 50_000 } else { 700 };
    let engines: [Way; 3] = [
        Way(Box::new(Explicit::default()), AtomicUsize::new(0)),
        Way(Box::new(Cegar::default()), AtomicUsize::new(0)),
        Way(Box::new(ContextBound::default()), AtomicUsize::new(0)),
    ];
    // Answers without evidence are not explored again, because the test compares them with the oracle.
    let confirm = Confirm { exploration: None, ..Confirm::default() };
    let (mut decided, mut lazily, mut separated, mut reordered, mut locked) = (0, 0, 0, 0, 0);
    for seed in 0..seeds {
        let program = random(seed);
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let Ok(reachable) = explore(&program, model, 600, &mut || false) else { continue };
            let expected = expected(&program, model, &reachable);
            let task = Task::new(&program, model, program.properties.clone());
            let engine = &engines[(seed % 3) as usize];
            let limits = Limits::default().within(Duration::from_secs(10));
            for (found, expected) in
                check(engine, &task, &limits, &Progress::default(), confirm).iter().zip(expected)
            {
                let name = &found.property.name;
                match found.verdict() {
                    Verdict::Safe => assert!(expected, "seed {seed}, {model:?}, {name}: safe"),
                    Verdict::Unsafe => assert!(!expected, "seed {seed}, {model:?}, {name}: unsafe"),
                    Verdict::Unknown(Reason::Contradiction(what)) => {
                        panic!("seed {seed}, {model:?}, {name}: {what}")
                    }
                    Verdict::Unknown(_) => continue,
                }
                decided += 1;
                let claim = found.certificate().map(|certificate| &certificate.claim);
                lazily += usize::from(matches!(claim, Some(Claim::Lazy { .. })));
                locked += usize::from(found.certificate().is_some_and(|c| c.proofs.len() == 2));
                if matches!(claim, Some(Claim::Reordered { .. })) {
                    match stores_are_separated(&program) {
                        true => separated += 1,
                        false => reordered += 1,
                    }
                }
            }
        }
    }
    let under_sc: usize = engines.iter().map(|engine| engine.1.load(Ordering::Relaxed)).sum();
    println!(
        "{decided} decided, {under_sc} under SC, certificates: {lazily} lazy, {separated} separated, {reordered} reordered, {locked} of two proofs"
    );
    assert!(decided > seeds as usize && under_sc > seeds as usize, "{decided} decided, {under_sc} under SC");
    assert!(
        lazily > 10 && separated > 10 && reordered > 10 && locked > 0,
        "{lazily} lazy, {separated} separated, {reordered} reordered, {locked} of two proofs"
    );
}

/// The verdicts of `auto` without its first runs.
fn portfolio_says(text: &str, model: MemoryModel) -> Vec<Checked> {
    let program = program(text);
    let engine = Auto { alone: Duration::ZERO, ..Auto::default() };
    let task = Task::new(&program, model, program.properties.clone());
    let limits = Limits::default().within(Duration::from_secs(60));
    check(&engine, &task, &limits, &Progress::default(), Confirm::default())
}

#[test]
fn robustness_does_not_decide_what_a_lock_hides() {
    // The program is robust (there is no attack) and safe under SC, but unsafe under TSO and PSO: `both` can be reached inside the locked section
    // of q, while `x = 1` is still in the buffer of p.
    let text = "shared x, y; thread p { var r; x = 1; r = y; M: skip; } thread q { var s; lock; s = x; T: unlock; } \
                forbid both: p@M && q@T && q.s == 0;";
    let program = program(text);
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    if let Some(way) = Statically::robust(&task, &[0], &Limits::default()) {
        let report =
            way.under_sc(|task| Explicit::default().run(task, &Limits::default(), &Progress::default()));
        assert!(!report.answers[0].is_definite(), "{:?}", report.answers);
    }
    assert!(matches!(portfolio_says(text, MemoryModel::Sc)[0].verdict(), Verdict::Safe));
    assert!(matches!(portfolio_says(text, MemoryModel::Tso)[0].verdict(), Verdict::Unsafe));
    assert!(matches!(portfolio_says(text, MemoryModel::Pso)[0].verdict(), Verdict::Unsafe));
}

#[test]
fn robustness_does_not_decide_what_looks_at_memory() {
    let text =
        "shared x; thread p { x = 1; H: skip; } forbid early: p@H && x == 0; finally last: forall x == 1;";
    let found = portfolio_says(text, MemoryModel::Tso);
    assert!(matches!(found[0].verdict(), Verdict::Unsafe), "{:?}", found[0].verdict());
    assert!(matches!(found[1].verdict(), Verdict::Safe), "{:?}", found[1].verdict());
}

#[test]
fn an_unbounded_writer_is_proved_by_way_of_sc_and_tso() {
    // Nothing drains the buffer, so buffers are unbounded under TSO and PSO.
    let text = "shared x; thread p { var i; loop { i = i + 1; x = i; sfence; } } thread q { var r, s; loop { r = x; s = x; \
                assert r <= s; } }";
    for (model, by) in [(MemoryModel::Tso, "lazy"), (MemoryModel::Pso, "reordered")] {
        let found = portfolio_says(text, model);
        assert!(matches!(found[0].verdict(), Verdict::Safe), "{:?}", found[0].verdict());
        let certificate = found[0].certificate().expect("a certificate");
        match (&certificate.claim, by) {
            (Claim::Lazy { extensions, .. }, "lazy") => assert!(extensions.is_empty()),
            (Claim::Reordered { tso }, "reordered") => assert!(matches!(**tso, Claim::Lazy { .. })),
            (claim, _) => panic!("{claim:?}"),
        }
    }
}

#[test]
fn a_claim_by_way_of_a_stronger_model_is_refused_for_another_program() {
    let text = |fence: &str| {
        format!(
            "shared x, y; thread p {{ loop {{ x = 1; {fence} y = 1; sfence; }} }} \
             thread q {{ var r; loop {{ r = y; }} }} forbid two: q.r == 2;"
        )
    };
    let separated = program(&text("sfence;"));
    let task = Task::new(&separated, MemoryModel::Pso, separated.properties.clone());
    let way = Way(Box::new(Cegar::default()), AtomicUsize::new(0));
    let found = check(&way, &task, &Limits::default(), &Progress::default(), Confirm::default());
    let certificate = found[0].certificate().expect("a proof").clone();
    let accepted = |certificate: &fencewright_certify::Certificate, program: &Program| {
        fencewright_certify::check(certificate, program, &Prover, &(Arc::new(|| false) as _)).is_ok()
    };
    assert!(accepted(&certificate, &separated));
    // The certificate is not accepted for the program without the fence, in which stores may overtake each other.
    assert!(!accepted(&certificate, &program(&text(""))));
    // A claim about PSO must contain a claim about TSO, not another claim about PSO.
    let Claim::Reordered { tso } = certificate.claim.clone() else { panic!("{:?}", certificate.claim) };
    let nested = Claim::Reordered { tso: Box::new(Claim::Reordered { tso }) };
    assert!(!accepted(
        &fencewright_certify::Certificate { claim: nested, ..certificate.clone() },
        &separated
    ));
    let under_sc = Claim::Reordered { tso: Box::new(Claim::Safe { properties: vec!["two".into()] }) };
    assert!(!accepted(&fencewright_certify::Certificate { claim: under_sc, ..certificate }, &separated));
}

/// Two threads choose numbers from all values of a type and compare them. `copied` is the expression by which one thread copies its number.
fn identities(copied: &str, forbidden: i64) -> String {
    format!(
        "shared a; thread p {{ var r; r = * in -2147483648..2147483648; a = r; }} \
         thread q {{ var r, s, t; r = * in -2147483648..2147483648; s = a; \
         if s == r {{ t = {copied}; assert s == t; seen: skip; }} }} \
         forbid f: q@seen && q.s == {forbidden} && q.r != {forbidden};"
    )
}

#[test]
fn choices_whose_values_are_only_compared_have_few_of_them() {
    let accepted = |certificate: &fencewright_certify::Certificate, program: &Program| {
        fencewright_certify::check(certificate, program, &Prover, &(Arc::new(|| false) as _)).is_ok()
    };
    for model in MemoryModel::ALL {
        let whole = program(&identities("r", 5));
        let task = Task::new(&whole, model, whole.properties.clone());
        let says = |task: &Task<'_>| {
            check(&Auto::default(), task, &Limits::default(), &Progress::default(), Confirm::default())
        };
        let found = says(&task);
        for result in &found {
            assert!(matches!(result.verdict(), Verdict::Safe), "{:?}", result.verdict());
            assert_eq!(result.checked(), Some(true));
        }
        let certificate = found[0].certificate().expect("a certificate").clone();
        let Claim::Narrowed { fewer } = certificate.claim.clone() else { panic!("{:?}", certificate.claim) };
        assert!(accepted(&certificate, &whole));
        // Without the narrowed claim, the certificate lacks the states with other values. In a program with arithmetic, other values may lead to
        // other behaviour, so the certificate is not accepted for such a program either.
        let plain = fencewright_certify::Certificate { claim: *fewer, ..certificate.clone() };
        assert!(!accepted(&plain, &whole));
        assert!(!accepted(&certificate, &program(&identities("r * 1", 5))));
        // A violation in the program with fewer values is a violation in the original program.
        let wrong = program(&identities("7", 5));
        let task = Task::new(&wrong, model, wrong.properties.clone());
        let verdicts = says(&task);
        assert!(verdicts.iter().any(|result| matches!(result.verdict(), Verdict::Unsafe)));
    }
}

#[test]
fn questions_that_are_not_of_the_program_are_about_all_values() {
    let formula = |text: &str| program(text).properties.remove(0);
    let text = "thread p { var r; r = * in 0..1000; assume r != 3; }";
    let asked = formula(&format!("{text} forbid f: p.r == 700;"));
    let whole = program(text);
    let task = Task::new(&whole, MemoryModel::Sc, vec![asked]);
    let limits = Limits::default();
    let found = check(&Auto::default(), &task, &limits, &Progress::default(), Confirm::NOTHING).remove(0);
    assert!(matches!(found.verdict(), Verdict::Unsafe), "{:?}", found.verdict());
}

#[test]
fn steps_that_need_a_certain_choice_may_be_impossible() {
    let says = |text: &str| {
        let program = program(text);
        let task = Task::new(&program, MemoryModel::Sc, vec![Property::deadlock()]);
        check(&Auto::default(), &task, &Limits::default(), &Progress::default(), Confirm::default()).remove(0)
    };
    // The first thread stores values that the second thread cannot choose.
    let unequal = says(
        "shared x, f; thread p { var r; r = * in 0..1000; x = r; fence; f = 1; } \
         thread q { var s; await f == 1; atomic { s = * in 0..100; assume s == x; } }",
    );
    assert!(matches!(unequal.verdict(), Verdict::Unsafe), "{:?}", unequal.verdict());
    // The reference semantics tries only a limited number of values, so it cannot confirm this deadlock.
    let never = says("thread p { var r; atomic { r = *; assume r == 1 && r == 2; } }");
    assert!(matches!(never.verdict(), Verdict::Unknown(Reason::Unsupported(..))), "{:?}", never.verdict());
}

/// A writer that stores several words of data without fences between them, and a reader that must not read words of different updates.
fn published(words: usize, after: &str) -> String {
    let names: Vec<String> = (0..words).map(|n| format!("d{n}")).collect();
    let each = |text: &dyn Fn(&String) -> String| names.iter().map(text).collect::<String>();
    let same = (1..words).map(|n| format!(" && x0 == x{n}")).collect::<String>();
    let reads = (0..words).map(|n| format!("x{n} = d{n}; ")).collect::<String>();
    let seen = (0..words).map(|n| format!(", x{n}")).collect::<String>();
    format!(
        "shared v1, v2, {}; thread writer {{ var v, d; loop {{ v = v + 1; v1 = v; sfence; d = * in 0..2; {} {after} v2 = v; sfence; }} }} \
         thread reader {{ var v{seen}; loop {{ v = v2; {reads} if v1 == v {{ assert 1 == 1{same}; }} }} }}",
        names.join(", "),
        each(&|name| format!("{name} = d; ")),
    )
}

#[test]
fn words_published_together_are_decided_by_way_of_tso() {
    for words in [2, 3] {
        let found = portfolio_says(&published(words, "sfence;"), MemoryModel::Pso);
        assert!(matches!(found[0].verdict(), Verdict::Safe), "{words} words: {:?}", found[0].verdict());
        let claim = &found[0].certificate().expect("a certificate").claim;
        assert!(matches!(claim, Claim::Reordered { .. }), "{claim:?}");
    }
    // Without the fence, a data word may leave the buffer after the second version number, which tells the reader that the data are complete.
    let found = portfolio_says(&published(2, ""), MemoryModel::Pso);
    assert!(matches!(found[0].verdict(), Verdict::Unsafe), "{:?}", found[0].verdict());
    assert!(matches!(portfolio_says(&published(2, ""), MemoryModel::Tso)[0].verdict(), Verdict::Safe));
}

#[test]
fn a_proof_about_the_order_of_the_text_is_none_about_every_order() {
    let text = |between: &str| {
        format!(
            "shared x, y; thread p {{ x = 1; {between} y = 1; }} thread q {{ var r, s; r = y; s = x; E: skip; }} \
             forbid late: q@E && q.r == 1 && q.s == 0;"
        )
    };
    let accepted = |certificate: &fencewright_certify::Certificate, program: &Program| {
        fencewright_certify::check(certificate, program, &Prover, &(Arc::new(|| false) as _)).is_ok()
    };
    let proved = |program: &Program| {
        let task = Task::new(program, MemoryModel::Tso, program.properties.clone());
        let engine = Cegar::default();
        let found = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
        found[0].certificate().expect("a proof").clone()
    };
    let lie = |certificate: &fencewright_certify::Certificate| {
        let tso = Box::new(certificate.claim.clone());
        fencewright_certify::Certificate { claim: Claim::Reordered { tso }, ..certificate.clone() }
    };
    let (open, fenced) = (program(&text("skip;")), program(&text("sfence;")));
    let tso = proved(&open);
    assert!(accepted(&tso, &open) && !accepted(&lie(&tso), &open));
    let tso = proved(&fenced);
    assert!(accepted(&lie(&tso), &fenced) && !accepted(&lie(&tso), &open));
    let found = portfolio_says(&text("skip;"), MemoryModel::Pso);
    assert!(matches!(found[0].verdict(), Verdict::Unsafe), "{:?}", found[0].verdict());
}

#[test]
fn with_one_store_out_of_order_only_executions_count() {
    // Without a fence, stores of one iteration may leave after stores of later iterations, so no finite reordering reduces PSO to TSO.
    let text = |between: &str| {
        format!(
            "shared full, mail; thread p {{ var m; loop {{ await full == 0; m = m + 1; mail = m; {between} full = 1; }} }} \
             thread q {{ var r; loop {{ await full == 1; r = mail; assert r != 0; full = 0; }} }}"
        )
    };
    for (between, is_safe) in [("", false), ("sfence;", true)] {
        let program = program(&text(between));
        let task = Task::new(&program, MemoryModel::Pso, program.properties.clone());
        assert_eq!(Reordered::new(&task).is_some(), is_safe);
        let contexts =
            ContextBound { options: contexts::Options { contexts: Some(6), ..Default::default() } };
        let engine = UnderTso { engine: contexts, once: true };
        let found = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
        match found[0].verdict() {
            Verdict::Unsafe => assert!(!is_safe),
            Verdict::Unknown(_) => assert!(is_safe),
            Verdict::Safe => panic!("one store out of order is not everything"),
        }
    }
    // A proof about a subset of the executions is not a proof for the program.
    let program = program(&text(""));
    let task = Task::new(&program, MemoryModel::Pso, program.properties.clone());
    let way = Reordered::once(&task).expect("there is a part");
    for answer in [Answer::Holds(None), Answer::Violated(None)] {
        let told = way.under_tso(|_| Report { answers: vec![answer.clone()], ..Report::default() });
        assert!(matches!(told.answers[0], Answer::Unknown(_)), "{:?}", told.answers);
    }
}

/// An engine with scripted behaviour.
struct Acting {
    answer: fn() -> Answer,
    /// Whether the engine runs until it is stopped.
    hangs: bool,
    was_stopped: Arc<AtomicBool>,
}

impl Engine for Acting {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, _: &Progress) -> Report {
        while self.hangs && limits.exceeded(0).is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.was_stopped.store(limits.token.is_cancelled(), Ordering::Relaxed);
        Report { answers: task.properties.iter().map(|_| (self.answer)()).collect(), ..Report::default() }
    }
}

fn member(engine: impl Engine + 'static, numbers: &[usize]) -> Member {
    Member {
        engine: Box::new(engine),
        domain: None,
        numbers: numbers.to_vec(),
        part: turns::Part { weight: 1.0, width: 1, head_start: Duration::ZERO },
    }
}

/// A portfolio as an engine.
struct Together(Vec<Member>);

impl Engine for Together {
    fn name(&self) -> EngineName {
        EngineName::Auto
    }

    fn about(&self) -> About {
        Auto::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        portfolio::run(&self.0, task, 2, limits, progress)
    }
}

const TWO: &str =
    "shared x; thread p { loop { x = x + 1; fence; } } forbid none: x == 0 - 1; forbid some: x == 3;";

#[test]
fn the_first_checked_answer_counts_and_the_others_stop() {
    let program = program(TWO);
    let stopped: [Arc<AtomicBool>; 2] = Default::default();
    let hanging = |n: usize| Acting {
        answer: || Answer::Unknown(Reason::Cancelled),
        hangs: true,
        was_stopped: Arc::clone(&stopped[n]),
    };
    // Four members on two cores, so that they have to take turns.
    let members = vec![
        member(hanging(0), &[0, 1]),
        member(hanging(1), &[1]),
        member(Cegar::default(), &[0]),
        member(Explicit::default(), &[1]),
    ];
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let mut order = Vec::new();
    let start = Instant::now();
    let limits = Limits::default().within(Duration::from_secs(120));
    let mut heard = |n: usize, _: &Checked| order.push(n);
    let together = Together(members);
    let found =
        check_each(&together, &task, &limits, &Progress::default(), Confirm::default(), &mut heard).verdicts;
    assert!(matches!(found[0].verdict(), Verdict::Safe) && found[0].checked() == Some(true), "{found:?}");
    assert!(matches!(found[1].verdict(), Verdict::Unsafe) && found[1].checked() == Some(true), "{found:?}");
    assert!(start.elapsed() < Duration::from_secs(60), "those that hang were not stopped");
    assert!(stopped.iter().all(|s| s.load(Ordering::Relaxed)));
    assert_eq!(order.len(), 2, "each property is told once");
}

#[test]
fn a_member_that_lies_is_caught_by_the_check() {
    let program = program(TWO);
    let invariant = || Invariant {
        buffers: fencewright_memory::Buffers::Sc,
        properties: vec!["none".into(), "some".into()],
        symmetry: Vec::new(),
        states: Vec::new(),
    };
    // The liar claims without a proof that a violated property holds. `cegar` may contradict it; if not, the verdict does not count as checked.
    let liar = Acting { answer: || Answer::Holds(None), hangs: false, was_stopped: Arc::default() };
    let task = Task::new(&program, MemoryModel::Sc, program.properties.clone());
    let limits = Limits::default().within(Duration::from_secs(60));
    let confirm = Confirm { exploration: Some(Exploration::default()), ..Confirm::default() };
    let members = vec![member(liar, &[1]), member(Cegar::default(), &[0, 1])];
    let found = check(&Together(members), &task, &limits, &Progress::default(), confirm);
    assert!(!matches!(found[1].verdict(), Verdict::Safe) || found[1].checked() == Some(false), "{found:?}");

    struct Forger(Arc<Invariant>);
    impl Engine for Forger {
        fn name(&self) -> EngineName {
            EngineName::Cegar
        }
        fn about(&self) -> About {
            Cegar::default().about()
        }
        fn run(&self, task: &Task<'_>, _: &Limits, _: &Progress) -> Report {
            let answers = task.properties.iter().map(|_| Answer::Proved(Arc::clone(&self.0))).collect();
            Report { answers, ..Report::default() }
        }
    }
    let members = vec![member(Forger(Arc::new(invariant())), &[1])];
    let found = check(&Together(members), &task, &limits, &Progress::default(), confirm);
    let caught = matches!(found[1].verdict(), Verdict::Unknown(Reason::Contradiction(_)));
    assert!(caught, "{:?}", found[1].verdict());
}

/// A listener that drops all answers.
#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn hear(&self, _: usize, _: Early) {}

    fn is_settled(&self, _: usize) -> bool {
        false
    }

    fn judges(&self) -> bool {
        true
    }
}

#[test]
fn a_search_that_cannot_end_leaves_the_memory_to_others() {
    let program = program(
        "shared x; thread p { var i; loop { i = i + 1; x = i; } } thread q { var r; r = x; } forbid f: q.r == 0 - 1;",
    );
    let stopped: Arc<AtomicBool> = Arc::default();
    let other = Acting { answer: || Answer::Open, hangs: true, was_stopped: Arc::clone(&stopped) };
    let members = vec![member(Explicit::default(), &[0]), member(other, &[0])];
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let task = task.heard_by(&Deaf);
    let limit = 8 << 20;
    let limits = Limits::starting_now(Some(Duration::from_secs(5)), Some(limit), Default::default());
    let report = portfolio::run(&members, &task, 2, &limits, &Progress::default());
    let Answer::Unknown(reason) = &report.answers[0] else { panic!("{:?}", report.answers) };
    assert_eq!(*reason, Reason::Endless);
    assert!(report.work.bytes < limit, "{} bytes", report.work.bytes);
    assert!(!report.growth.is_empty(), "it says what grows");
    assert_eq!(report.tried[0].len(), 1, "{:?}", report.tried);
}

#[test]
fn executions_are_gone_through_where_there_are_too_many_states() {
    let text = include_str!("../../../../examples/indexer.fw");
    let program = load("indexer.fw", text.as_bytes(), None, &[("N".into(), 12)]).expect("an example").program;
    assert!(Traces::are_promising(&program));
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_secs(60)), Some(1 << 30), Default::default());
    let found = check(&Auto::default(), &task, &limits, &Progress::default(), Confirm::default());
    assert!(matches!(found[0].verdict(), Verdict::Safe), "{:?}", found[0].verdict());
    // The statistics are those of the engine that answered, which counts executions, but neither states nor transitions.
    let work = &found[0].work;
    let executions = work.executions().expect("executions were explored one by one");
    assert_eq!((work.states, work.transitions()), (executions.events, None));
    // The thread never terminates, so its executions are not explored one by one.
    let endless = self::program("shared x; thread p { loop { x = 1; x = 0; } } forbid two: x == 2;");
    assert!(!Traces::are_promising(&endless));
}

#[test]
fn properties_that_look_at_registers_are_asked_about_apart() {
    let program = program(
        "shared x;\nthread p { var r; loop { r = x; x = 1; assert r < 2; } }\nthread q { var s; s = x; }\nforbid seen: p.r == 2;\nforbid at: x == 2;\n",
    );
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let named = |n: &usize| task.properties[*n].name.as_str();
    let groups = super::apart::groups(&task).expect("one of three looks at a register");
    assert_eq!(
        groups.each_ref().map(|group| group.iter().map(named).collect::<Vec<_>>()),
        [vec!["at", "assertions"], vec!["seen"]]
    );
    let report = super::apart::run(groups, &Auto::default(), &task, &Limits::default(), &Progress::default());
    assert!(report.answers.iter().all(|answer| answer.holds() == Some(true)), "{:?}", report.answers);
    let without = task.properties.iter().filter(|property| property.name != "seen").cloned().collect();
    assert!(super::apart::groups(&Task::new(&program, MemoryModel::Tso, without)).is_none());
}
