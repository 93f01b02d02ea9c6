//! Runs engines concurrently, each on some or all of the properties.
//!
//! Members take turns on the cores ([`turns`]). A member is cancelled once all of its properties are decided, or once one violation is enough. A
//! property is decided by the first answer with evidence; but if a listener checks answers as they arrive, only when the listener has settled it.
//! A definite answer without evidence decides a property too, with or without a listener, but only after a delay if another member may still find a
//! proof that can be checked. Once all answers have evidence and only their checks remain, no member gets a turn for a while.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::check::STACK;
use crate::domain::DomainName;
use crate::limits::no_thread;
use crate::task::{Answer, Early, Engine, EngineName, Limits, Part, Progress, Reason, Report, Task, Token};
use crate::turns::{self, Seat, Turns};

/// Interval at which the portfolio checks whether members are still needed.
const LOOK: Duration = Duration::from_millis(10);
/// Minimum time for which the other members search for a proof of an answer without evidence, unless the answer comes from a state search by the
/// explicit engine; then they do not search for a proof. If the run has taken more than half of this time so far, they search for twice the duration
/// of the run so far.
const PATIENCE: Duration = Duration::from_secs(5);

/// A member of a portfolio: an engine, and the properties that it works on.
pub struct Member {
    /// The engine that the member runs.
    pub engine: Box<dyn Engine>,
    /// The abstract domain of the engine, if it has one.
    pub domain: Option<DomainName>,
    /// The indices of the properties that the member checks.
    pub numbers: Vec<usize>,
    /// The member's share of the time, its number of cores, and its head start.
    pub part: turns::Part,
}

impl Member {
    /// Whether the engine may find a proof of an answer that another engine gave without evidence.
    fn proves(&self) -> bool {
        !matches!(self.engine.name(), EngineName::Contexts)
    }
}

/// A guard that gives up a member's seat when the member ends, even if it panics.
struct Leaving(Seat);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs all members on this many cores until every property is decided, a violation is found and one is enough, or all members have ended.
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
                // The receiver outlives all members, so sending cannot fail.
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
                    // Once all answers have evidence, they only remain to be checked. The check may take as long as the search, so no member gets a
                    // turn for that time.
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

/// Runs a member from its first turn to its end.
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

/// The combined answers of the members so far.
struct Known<'a> {
    task: &'a Task<'a>,
    report: Report,
    start: Instant,
    /// For each property that has an answer without evidence, the time at which the search for a proof ends; `None` for the other properties.
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

    /// Merges the final report of a member, and tells the listener its definite answers to properties that are not settled.
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
                    // The explicit engine has no proof if its set of states is too large. Symbolic engines rarely find a proof of such a program, so
                    // the search for a proof ends at once.
                    EngineName::Explicit if by_states => Instant::now(),
                    _ => until,
                });
            }
        }
    }

    /// Whether work on this property can stop. `proofs` says whether some running member may still find a proof.
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

/// Shows the summed progress of all members, and the notes of running `cegar` members.
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
