//! The rounds of THESIS16 Algorithm 3.1. A round checks the program under SC, asks the oracle for paths, and extends the program by them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fencewright_certify::certificate::Extension;
use fencewright_program::{EdgeId, MemoryModel, Property, PropertyKind, Quantifier, Span, ThreadId, Trace};
use fencewright_transform::extend::{AttackingStore, Conclusion, Extended, Refused};

use super::Lazy;
use super::conclude;
use super::oracle::{Advice, Oracle};
use crate::task::{Answer, Author, Early, Engine, Limits, Listener, Progress, Reason, Report, Task, Work};
use crate::transformed::Prover;

/// Maximum number of paths by which a thread is extended in one round, because the program grows with their number and length. Shorter paths are
/// preferred.
const PATHS_AT_ONCE: usize = 4;

/// Approximate size of an edge of an extended program, in bytes.
const BYTES_PER_EDGE: u64 = 512;

/// A sequence of rounds that starts with one program and extends it.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    /// Maximum number of rounds; `None` if it is not limited.
    pub rounds: Option<u32>,
    /// Whether the program is complete, and not an unrolled part of it. Only a complete program decides a property by having no violation.
    pub conclusive: bool,
}

/// The state of the algorithm between rounds.
pub(super) struct Rounds<'a> {
    lazy: &'a Lazy,
    oracle: &'a dyn Oracle,
    task: &'a Task<'a>,
    pub limits: &'a Limits,
    pub progress: &'a Progress,
    /// For each property, a definite answer or the reason why there will be none; `None` while the property is open.
    answers: Vec<Option<Answer>>,
    /// The reason why the rounds were stopped early, if they were.
    stopped: Option<Reason>,
    /// The number of rounds so far, in all phases.
    rounds: u32,
    /// The paths by which the program was extended so far.
    extensions: Vec<Extension>,
    /// The number of paths in `extensions`, and the length of the longest of them.
    paths: (usize, usize),
    states: u64,
    bytes: u64,
    /// The variables and buffers that grew without bound in the last check under SC, each as a sentence with its place in the source.
    growth: Vec<(String, Option<Span>)>,
}

impl<'a> Rounds<'a> {
    pub fn new(
        lazy: &'a Lazy,
        oracle: &'a dyn Oracle,
        task: &'a Task<'a>,
        limits: &'a Limits,
        progress: &'a Progress,
    ) -> Self {
        let answers = vec![None; task.properties.len()];
        Rounds {
            lazy,
            oracle,
            task,
            limits,
            progress,
            answers,
            stopped: None,
            rounds: 0,
            extensions: Vec::new(),
            paths: (0, 0),
            states: 0,
            bytes: 0,
            growth: Vec::new(),
        }
    }

    /// Whether some property is open and nothing has stopped the rounds.
    pub fn goes_on(&self) -> bool {
        self.stopped.is_none() && !self.open().is_empty()
    }

    /// The indices of the properties that have neither an answer here nor a verdict already.
    fn open(&self) -> Vec<usize> {
        let is_open = |&n: &usize| self.answers[n].is_none() && !self.task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Answers `unknown` for properties that rounds on unrolled programs cannot decide.
    pub fn prepare_unrolling(&mut self) {
        for (n, property) in self.task.properties.iter().enumerate() {
            if self.answers[n].is_none() && property.kind == PropertyKind::NoDeadlock {
                self.answers[n] = Some(Answer::Unknown(conclude::unrolled()));
            }
        }
    }

    /// Extends a program, round by round, until all properties are decided, the phase ends, or a limit is reached. If the oracle calls an incomplete
    /// program robust, the phase ends as well.
    pub fn run(&mut self, mut program: Extended, phase: Phase) {
        let last = phase.rounds.map(|n| self.rounds + n);
        while self.goes_on() {
            if last.is_some_and(|last| self.rounds >= last) {
                return;
            }
            if self.lazy.options.rounds.is_some_and(|most| self.rounds >= most) {
                let plural = if self.rounds == 1 { "" } else { "s" };
                let why = format!("no answer within {} round{plural}", self.rounds);
                self.stopped = Some(Reason::Unsupported(why, None));
                return;
            }
            self.rounds += 1;
            self.progress.say(format!("round {}, {} edges, SC", self.rounds, program.size()));
            let bytes = program.size() as u64 * BYTES_PER_EDGE;
            self.bytes = self.bytes.max(bytes);
            if let Some(reason) = self.limits.exceeded(bytes) {
                self.stopped = Some(reason);
                return;
            }
            self.look_for_violations(&program, phase);
            if !self.goes_on() {
                return;
            }
            self.progress.say(format!("round {}, {} edges, oracle", self.rounds, program.size()));
            match self.oracle.consult(&program.program, self.rounds, self.limits, self.progress) {
                Advice::Unknown(reason) => self.stopped = Some(reason),
                Advice::Robust if phase.conclusive => self.conclude(&program),
                Advice::Robust => return,
                Advice::Paths(paths) if paths.is_empty() => {
                    let what = "the oracle knows of a delayed store and of no path".to_string();
                    self.stopped = Some(Reason::Contradiction(what));
                }
                Advice::Paths(paths) => program = self.extended(program, paths),
            }
        }
    }

    /// Checks the open properties of a program under SC, and answers those with an execution that can be replayed on the original program.
    fn look_for_violations(&mut self, program: &Extended, phase: Phase) {
        // In an unrolled program, threads stop where loops are cut off. That is not a deadlock of the original program, so deadlocks are not searched
        // for.
        let asked = |n: &usize| phase.conclusive || self.task.properties[*n].kind != PropertyKind::NoDeadlock;
        let open: Vec<usize> = self.open().into_iter().filter(asked).collect();
        let properties: Vec<&Property> = open.iter().map(|&n| &self.task.properties[n]).collect();
        let original =
            Original { task: self.task, program, numbers: &open, lazy: self.lazy, states: self.states };
        for (n, answer) in
            open.iter().copied().zip(self.check_under_sc(program, &properties, Some(&original)))
        {
            match answer {
                Answer::Violated(Some(trace)) | Answer::Holds(Some(trace)) => {
                    self.answers[n] = Some(original.shown(n, &trace));
                }
                // Another engine has settled the property, so the check may have ended early.
                _ if self.task.is_settled(n) => self.answers[n] = Some(Answer::Open),
                Answer::Holds(None) | Answer::Proved(_) | Answer::Certified(_) | Answer::Violated(None) => {}
                Answer::Open => self.stopped = Some(Reason::Cancelled),
                Answer::Unknown(reason @ (Reason::Timeout(_) | Reason::Memory(_) | Reason::Cancelled)) => {
                    self.stopped = Some(reason);
                }
                Answer::Unknown(reason) => self.answers[n] = Some(Answer::Unknown(reason)),
            }
        }
    }

    /// Checks properties of a program under SC.
    fn check_under_sc(
        &mut self,
        program: &Extended,
        properties: &[&Property],
        listener: Option<&dyn Listener>,
    ) -> Vec<Answer> {
        let properties = properties.iter().map(|p| program.property(p)).collect();
        let mut task = Task::new(&program.program, MemoryModel::Sc, properties);
        if let Some(listener) = listener {
            task = task.heard_by(listener);
        }
        let report = self.lazy.sc.run(&task, self.limits, self.progress);
        self.states += report.work.states;
        self.bytes = self.bytes.max(report.work.bytes);
        self.growth = report.growth;
        report.answers
    }

    /// Answers the open properties of a complete program after the oracle has found that SC and TSO agree. No execution under SC decides them. So if
    /// robustness is sufficient, `finally exists` is violated, and any other property holds; locks may require a second check
    /// ([`Rounds::conclude_under_lock`]). All others become `unknown`.
    fn conclude(&mut self, program: &Extended) {
        let mut under_lock = Vec::new();
        for (n, property) in self.task.properties.iter().enumerate() {
            if self.answers[n].is_none() {
                self.answers[n] = match program.conclusion(property) {
                    _ if self.task.is_settled(n) => Some(Answer::Open),
                    Conclusion::Certain if is_existence(property) => Some(Answer::Violated(None)),
                    Conclusion::Certain => Some(Answer::Holds(None)),
                    Conclusion::PendingStores => Some(Answer::Unknown(conclude::pending(property))),
                    Conclusion::BlockedByLock => Some(Answer::Unknown(conclude::blind())),
                    Conclusion::IfReleased => {
                        under_lock.push(n);
                        None
                    }
                };
            }
        }
        self.conclude_under_lock(program, under_lock);
        if self.lazy.options.certificates {
            self.certify(program);
        }
    }

    /// Decides the properties `under_lock`, which have no violation under SC. They hold under TSO if the program in which the lock may be released
    /// anywhere satisfies them under SC and is robust; otherwise they become `unknown`.
    fn conclude_under_lock(&mut self, program: &Extended, under_lock: Vec<usize>) {
        if under_lock.is_empty() {
            return;
        }
        let released = program.released();
        let properties: Vec<&Property> = under_lock.iter().map(|&n| &self.task.properties[n]).collect();
        let answers = self.check_under_sc(&released, &properties, None);
        let robust = matches!(
            self.oracle.consult(&released.program, self.rounds, self.limits, self.progress),
            Advice::Robust
        );
        for (n, answer) in under_lock.into_iter().zip(answers) {
            self.answers[n] = Some(match answer.holds() == Some(true) && robust {
                true => Answer::Holds(None),
                false => Answer::Unknown(self.limits.exceeded(0).unwrap_or_else(conclude::locked)),
            });
        }
    }

    /// Finds certificates for the properties that hold: one for all of them, or else one for each; none if extensions have kept first stores. The
    /// listener receives the answers without certificates first, so that they are not lost if the time limit is reached. Properties without a
    /// certificate keep these answers.
    fn certify(&mut self, program: &Extended) {
        let is_shown = |n: &usize| matches!(self.answers[*n], Some(Answer::Holds(None)));
        let shown: Vec<usize> = (0..self.answers.len()).filter(is_shown).collect();
        let is_kept = self.lazy.options.store == AttackingStore::Kept && !self.extensions.is_empty();
        if shown.is_empty() || is_kept {
            return;
        }
        for &n in &shown {
            let work = Work { states: self.states, bytes: self.bytes, ..Work::default() };
            let author = Author { engine: self.lazy.name(), work };
            self.task.tell(n, Early { answer: Answer::Holds(None), author });
        }
        self.progress.say("certificate".into());
        if !self.certify_together(program, &shown) && shown.len() > 1 {
            shown.iter().for_each(|&n| _ = self.certify_together(program, &[n]));
        }
    }

    /// Finds one certificate for these properties; returns whether there is one.
    fn certify_together(&mut self, program: &Extended, shown: &[usize]) -> bool {
        let properties: Vec<&Property> = shown.iter().map(|&n| &self.task.properties[n]).collect();
        let prover = Prover::new(&self.lazy.sc.cegar, self.limits, self.progress);
        let found = prover.lazy(self.task.program, program, &self.extensions, &properties);
        if let Ok(certificate) = &found {
            shown.iter().for_each(|&n| self.answers[n] = Some(Answer::Certified(Arc::clone(certificate))));
        }
        found.is_ok()
    }

    /// The program extended by the shortest of these paths.
    fn extended(&mut self, program: Extended, paths: Vec<(ThreadId, Vec<EdgeId>)>) -> Extended {
        let paths = shortest(paths);
        self.paths.0 += paths.values().map(Vec::len).sum::<usize>();
        self.paths.1 = paths.values().flatten().map(Vec::len).fold(self.paths.1, usize::max);
        self.extensions.extend(paths.iter().map(|(thread, paths)| Extension {
            thread: thread.0,
            paths: paths.iter().map(|path| path.iter().map(|edge| edge.0).collect()).collect(),
        }));
        extended(&program, &paths, self.lazy.options.store).unwrap_or_else(|reason| {
            self.stopped = Some(reason);
            program
        })
    }

    /// The report of all rounds. Open properties become `unknown`.
    pub fn report(self) -> Report {
        let stopped = self.stopped.clone();
        let stopped = stopped.or_else(|| self.limits.exceeded(0)).unwrap_or(Reason::Cancelled);
        let unanswered = self.answers.iter().any(Option::is_none);
        let answers = self.answers.into_iter().map(|a| a.unwrap_or(Answer::Unknown(stopped.clone())));
        let mut report = Report { answers: answers.collect(), ..Report::default() };
        (report.work.states, report.work.bytes) = (self.states, self.bytes);
        if unanswered && self.paths.0 == 0 {
            report.growth = self.growth;
        } else if unanswered {
            let (paths, longest) = self.paths;
            let rounds = self.rounds;
            report.growth.push((
                format!(
                    "after {rounds} rounds, {paths} paths along which stores are delayed (the longest has {longest} \
                     steps), the oracle still finds more: on a program with loops this need not end"
                ),
                None,
            ));
        }
        report
    }
}

/// A listener that translates executions of an extended program under SC into executions of the original program under TSO.
#[derive(Debug)]
struct Original<'a> {
    lazy: &'a Lazy,
    task: &'a Task<'a>,
    program: &'a Extended,
    /// The indices in the task of the properties that are checked.
    numbers: &'a [usize],
    /// The number of states stored in earlier rounds.
    states: u64,
}

impl Original<'_> {
    /// The answer to property `n` that follows from an execution of the extended program under SC.
    fn shown(&self, n: usize, trace: &Trace) -> Answer {
        let (original, property) = (self.task.program, &self.task.properties[n]);
        let mapped = self.program.trace(original, trace);
        let mapped = mapped.filter(|t| t.replay_for(original, self.task.model, property).is_ok());
        match mapped {
            Some(trace) if is_existence(property) => Answer::Holds(Some(trace)),
            Some(trace) => Answer::Violated(Some(trace)),
            None => {
                let doubt = conclude::false_deadlock(self.program, property, self.lazy.options.store);
                let what = "an execution of the extended program is none of the original one";
                Answer::Unknown(doubt.unwrap_or(Reason::Contradiction(what.into())))
            }
        }
    }
}

impl Listener for Original<'_> {
    fn hear(&self, property: usize, early: Early) {
        // Only executions are passed on, because the absence of a violation under SC does not decide the property yet.
        let (Answer::Violated(Some(trace)) | Answer::Holds(Some(trace))) = early.answer else { return };
        let n = self.numbers[property];
        let answer = self.shown(n, &trace);
        if !matches!(answer, Answer::Unknown(_)) {
            let (states, bytes) = (self.states + early.author.work.states, early.author.work.bytes);
            let work = Work { states, bytes, ..Work::default() };
            self.task.tell(n, Early { answer, author: Author { engine: self.lazy.name(), work } });
        }
    }

    fn is_settled(&self, property: usize) -> bool {
        self.task.is_settled(self.numbers[property])
    }

    fn judges(&self) -> bool {
        false
    }
}

/// The shortest paths of each thread, at most [`PATHS_AT_ONCE`].
pub(super) fn shortest(paths: Vec<(ThreadId, Vec<EdgeId>)>) -> BTreeMap<ThreadId, Vec<Vec<EdgeId>>> {
    let mut by_thread: BTreeMap<ThreadId, Vec<Vec<EdgeId>>> = BTreeMap::new();
    for (thread, path) in paths {
        by_thread.entry(thread).or_default().push(path);
    }
    for paths in by_thread.values_mut() {
        paths.sort_by_key(Vec::len);
        paths.dedup();
        paths.truncate(PATHS_AT_ONCE);
    }
    by_thread
}

/// A program extended by paths of its threads.
pub(super) fn extended(
    program: &Extended,
    paths: &BTreeMap<ThreadId, Vec<Vec<EdgeId>>>,
    store: AttackingStore,
) -> Result<Extended, Reason> {
    paths.iter().try_fold(program.clone(), |program, (thread, paths)| {
        program.extend(*thread, paths, store).map_err(refused)
    })
}

/// The reason why a program was not extended.
pub(super) fn refused(refused: Refused) -> Reason {
    let why = format!("engine lazy does not support {}; engine auto has no such restriction", refused.why);
    Reason::Unsupported(why, refused.span)
}

/// Whether the property asks for the existence of an execution.
fn is_existence(property: &Property) -> bool {
    matches!(property.kind, PropertyKind::Finally(Quantifier::Exists, _))
}
