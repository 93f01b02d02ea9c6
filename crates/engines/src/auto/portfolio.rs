//! Engines side by side, on the same properties or on some of them each.
//!
//! Members take turns ([`turns`](crate::turns)). A member whose properties all have their verdict is stopped. Where nobody judges answers as
//! they come, the first one with evidence counts; where somebody does, the others leave the cores to the check for a while. A definite answer
//! without evidence ends the run too, but not at once if somebody else may find a proof that can be checked.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::check::STACK;
use crate::domain::DomainName;
use crate::limits::no_thread;
use crate::task::{Answer, Early, Engine, EngineName, Limits, Part, Progress, Reason, Report, Task, Token};
use crate::turns::{self, Seat, Turns};

/// How often somebody looks whether a member is still needed.
const LOOK: Duration = Duration::from_millis(10);
/// How long others look for a proof of what is known without one: at least this long, and twice as long as the run has taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// An engine that takes part.
pub struct Member {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// How it represents integers, if there is a choice.
    pub domain: Option<DomainName>,
    /// The properties it is asked about.
    pub numbers: Vec<usize>,
    /// How much time it gets.
    pub part: turns::Part,
}

impl Member {
    /// Whether it may find a proof for what another engine says without one.
    fn proves(&self) -> bool {
        !matches!(self.engine.name(), EngineName::Contexts)
    }
}

/// Leaves the seat of a member when it has ended, even by a panic.
struct Leaving(Seat);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs all members on so many cores, until every property is decided or nobody runs any more.
pub fn run(
    members: &[Member],
    task: &Task<'_>,
    cores: usize,
    limits: &Limits,
    progress: &Progress,
) -> Report {
    let turns = Turns::new(cores, limits.seat().cloned());
    let tokens: Vec<Token> = members.iter().map(|_| limits.token.child()).collect();
    let shown: Vec<Progress> = members.iter().map(|_| Progress::default()).collect();
    let seats: Vec<Seat> = members.iter().map(|member| turns.seat(member.part)).collect();
    let mut running = vec![true; members.len()];
    let mut known = Known::new(task);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for (n, (member, seat)) in members.iter().zip(seats).enumerate() {
            let (sender, progress) = (sender.clone(), &shown[n]);
            let limits = limits.seated(seat.clone(), tokens[n].clone());
            let (told, left) = (sender.clone(), seat.clone());
            let run = move || {
                let leaving = Leaving(seat);
                let report = run_member(member, task, &limits, progress);
                drop(leaving);
                // The receiver waits for all members, so sending does not fail.
                let _ = sender.send((n, report));
            };
            let started = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
            if started.is_err() {
                drop(Leaving(left));
                let answers = member.numbers.iter().map(|_| Answer::Unknown(no_thread())).collect();
                let report = Report { answers, ..Report::default() };
                let _ = told.send((n, report.by(&*member.engine, member.domain, task.model)));
            }
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok((n, report)) => {
                    running[n] = false;
                    known.take(&members[n], report);
                    // If everything has its evidence, examining it is what is left to do, and may take as long as finding it.
                    if task.is_judged() && known.report.is_decided_with_evidence(task) {
                        turns.rest(known.start.elapsed());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let proofs = members.iter().zip(&running).any(|(member, &running)| running && member.proves());
            for (member, token) in members.iter().zip(&tokens) {
                if known.report.is_violated_and_enough(task)
                    || member.numbers.iter().all(|&n| known.is_done(n, proofs))
                {
                    token.cancel();
                }
            }
            show(progress, members, &running, &shown);
        }
    });
    known.report
}

/// One member, from its first turn to its end.
fn run_member(member: &Member, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
    let part = Part::new(task, &member.numbers, 0);
    let part = part.task();
    let start = Instant::now();
    let report = match limits.exceeded(0) {
        Some(reason) => {
            Report { answers: vec![Answer::Unknown(reason); part.properties.len()], ..Report::default() }
        }
        None => member.engine.run(&part, limits, progress),
    };
    let mut report = report.by(&*member.engine, member.domain, task.model);
    let said = progress.said();
    for (tried, answer) in report.tried.iter_mut().zip(&report.answers) {
        for tried in tried.iter_mut().filter(|t| t.seconds == 0.0) {
            tried.seconds = start.elapsed().as_secs_f64();
            let stopped = matches!(answer, Answer::Unknown(Reason::Timeout(_) | Reason::Memory(_)));
            if stopped && !said.is_empty() {
                tried.reason = format!("{} ({said})", tried.reason);
            }
        }
    }
    report
}

/// What is known so far.
struct Known<'a> {
    task: &'a Task<'a>,
    report: Report,
    start: Instant,
    /// When each property got an answer without evidence, and until when a proof is looked for.
    unproved: Vec<Option<Instant>>,
}

impl<'a> Known<'a> {
    fn new(task: &'a Task<'a>) -> Self {
        let properties = task.properties.len();
        Known {
            task,
            report: Report::unanswered(properties),
            start: Instant::now(),
            unproved: vec![None; properties],
        }
    }

    /// Takes in what a member reports at its end, and tells what it has not told before.
    fn take(&mut self, member: &Member, report: Report) {
        for (answer, (&n, author)) in report.answers.iter().zip(member.numbers.iter().zip(&report.authors)) {
            if answer.is_definite() && !self.task.is_settled(n) {
                self.task.tell(n, Early { answer: answer.clone(), author: author.clone() });
            }
        }
        let by_states = report.work.executions().is_none();
        self.report.adopt(&member.numbers, report);
        let until = Instant::now() + PATIENCE.max(2 * self.start.elapsed());
        for &n in &member.numbers {
            let answer = &self.report.answers[n];
            if answer.is_definite() && !answer.has_evidence() {
                self.unproved[n].get_or_insert(match self.report.authors[n].engine {
                    // A symbolic engine rarely proves what has so many states that there is no room for a proof.
                    EngineName::Explicit if by_states => Instant::now(),
                    _ => until,
                });
            }
        }
    }

    /// Whether nobody needs to work on this property any more; `proofs`: whether somebody may still find a proof.
    fn is_done(&self, n: usize, proofs: bool) -> bool {
        let answer = &self.report.answers[n];
        if self.task.is_settled(n) {
            return true;
        }
        match self.unproved[n] {
            _ if answer.has_evidence() => !self.task.is_judged(),
            Some(until) => !proofs || Instant::now() >= until,
            None => false,
        }
    }
}

/// Shows how far all members are.
fn show(progress: &Progress, members: &[Member], running: &[bool], shown: &[Progress]) {
    let sum = |of: fn(&Progress) -> u64| shown.iter().map(of).sum::<u64>();
    progress.states.store(sum(|p| p.states.load(Ordering::Relaxed)), Ordering::Relaxed);
    progress.frontier.store(sum(|p| p.frontier.load(Ordering::Relaxed)), Ordering::Relaxed);
    progress.bytes.store(sum(|p| p.bytes.load(Ordering::Relaxed)), Ordering::Relaxed);
    let notes = members.iter().zip(shown).zip(running).filter(|(_, running)| **running);
    let notes = notes.filter(|((member, _), _)| member.engine.name() == EngineName::Cegar);
    let notes: Vec<String> = notes.map(|((_, shown), _)| shown.said()).filter(|s| !s.is_empty()).collect();
    progress.say(notes.join("; "));
}
