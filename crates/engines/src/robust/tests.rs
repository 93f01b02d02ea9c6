//! Tests that attacks found before a limit is reached are not lost.

use std::time::{Duration, Instant};

use fencewright_lang::load;
use fencewright_program::Program;

use super::{Evidence, Finding, Options, analyse_with};
use crate::explicit::Explicit;
use crate::task::{About, Answer, Early, Engine, EngineName, Limits, Listener, Progress, Report, Task};

/// Store buffering: each thread can read the other thread's old value, so each thread has an attack that succeeds.
const STORE_BUFFERING: &str =
    "shared x, y; thread p { var a; x = 1; a = y; } thread q { var b; y = 1; b = x; }";

fn program(text: &str) -> Program {
    load("test.fw", text.as_bytes(), None, &[]).expect("it is right").program
}

/// Engine `explicit`, whose run is cancelled as soon as its first answer has a verdict.
#[derive(Debug)]
struct CancelledAfterFirst;

/// A listener that records the early answers of the wrapped engine.
#[derive(Debug, Default)]
struct Kept(std::sync::Mutex<Vec<(usize, Early)>>);

impl Listener for Kept {
    fn hear(&self, property: usize, early: Early) {
        self.0.lock().expect("nobody panicked").push((property, early));
    }

    fn is_settled(&self, _: usize) -> bool {
        false
    }

    fn judges(&self) -> bool {
        false
    }
}

impl Engine for CancelledAfterFirst {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let kept = Kept::default();
        let alone = Task::new(task.program, task.model, task.properties.clone());
        let report = Explicit::default().run(&alone.heard_by(&kept), limits, progress);
        let heard = kept.0.into_inner().expect("nobody panicked");
        let violated = |(_, early): &&(usize, Early)| matches!(early.answer, Answer::Violated(Some(_)));
        let (property, early) = heard.iter().find(violated).expect("an attack succeeds").clone();
        task.tell(property, early);
        // With a listener, wait until the attack has been recorded; without one, continue at once.
        let end = Instant::now() + Duration::from_secs(if task.is_heard() { 60 } else { 0 });
        while !task.is_settled(property) && Instant::now() < end {
            std::thread::yield_now();
        }
        limits.token.cancel();
        Report { answers: vec![Answer::Open; task.properties.len()], ..report }
    }
}

#[test]
fn an_attack_that_succeeded_before_the_run_was_cancelled_is_not_lost() {
    let program = program(STORE_BUFFERING);
    let options = Options { all: true, ..Options::default() };
    let limits = Limits::default();
    let found = analyse_with(&CancelledAfterFirst, &program, &options, &limits, &Progress::default());
    assert!(limits.exceeded(0).is_some(), "the run was cancelled");
    assert_eq!(found.robust(), Ok(false));
    assert!(matches!(found.evidence(), Evidence::Witness));
    assert!(found.witness().is_some());
    let succeed = found.attacks().iter().filter(|attack| attack.verdict == Finding::Feasible);
    assert!(succeed.count() >= 1);
}

/// Engine `explicit` without early answers: it reports once, after the given function has returned true, that is, after its run was cancelled or has
/// exceeded its time limit.
struct TooLate(fn(&Limits) -> bool);

impl Engine for TooLate {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let alone = Task::new(task.program, task.model, task.properties.clone());
        let report = Explicit::default().run(&alone, &Limits::default(), progress);
        while !self.0(limits) {
            std::thread::sleep(Duration::from_millis(10));
        }
        report
    }
}

#[test]
fn an_attack_in_a_report_that_comes_too_late_is_not_lost() {
    let program = program(STORE_BUFFERING);
    let options = Options { all: true, ..Options::default() };
    let cancelled = TooLate(|limits| {
        limits.token.cancel();
        true
    });
    // Well past the deadline, by more than the grace period of a run.
    let overdue = TooLate(|limits| limits.deadline.is_some_and(|d| d.elapsed() > Duration::from_millis(400)));
    for (engine, timeout) in [(cancelled, None), (overdue, Some(Duration::from_millis(100)))] {
        let limits = Limits::starting_now(timeout, None, Default::default());
        let found = analyse_with(&engine, &program, &options, &limits, &Progress::default());
        assert!(limits.exceeded(0).is_some(), "a limit was reached");
        assert_eq!(found.robust(), Ok(false));
        assert!(found.attacks().iter().all(|attack| attack.verdict == Finding::Feasible), "{found:?}");
    }
}
