//! Engine `robust`: robustness against TSO, and freedom from triangular races (THESIS16 s.2.3.3, s.3.1.2, s.5.2).
//!
//! Robustness is reachability under SC of the program that [`fencewright_transform::attack`] makes: all attacks of all threads are in
//! one program, so that what they have in common is explored once, and each has a property of its own, so that one run decides
//! them all. Other engines do the work: `explicit` where there are finitely many states, `cegar` where integers are unbounded.
//!
//! Nothing is reported unchecked. A proof goes through the same door as every other ([`crate::check`]): a certificate of the
//! instrumented program is checked, an exploration is repeated on the reference semantics where it is small. And [`witness`]
//! is the only place that makes a witness: the execution of the instrumented program becomes one of the original program under TSO, is
//! replayed on the reference semantics, and its happens-before relation, computed independently, must have a cycle.

pub mod witness;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencewright_certify::Certificate;
use fencewright_program::{EdgeId, MemoryModel, Numbers, Program, ThreadId, Variable};
use fencewright_transform::attack::{self, Instrumented, Notion};

use crate::auto::Auto;
use crate::cegar::{self, Cegar};
use crate::check::{Checked, Confirm, Evidence, Verdict, check};
use crate::explicit::{self, Explicit};
use crate::task::{Answer, Engine, Limits, Progress, Reason, Report, Task};
pub use witness::{Shape, Witness};

/// Attacks on finite programs are many states, but soon seen; those on unbounded ones are rare.
const ALONE: Duration = Duration::from_millis(500);

/// Which engine runs the instrumented program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The default of the tool: explicit first, then explicit and symbolic side by side.
    #[default]
    Auto,
    /// Explicit states only.
    Explicit,
    /// Symbolically only.
    Cegar,
}

/// What is asked, and how to find it out.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Robustness or freedom from triangular races.
    pub notion: Notion,
    /// Whether to examine every attack; otherwise the first that is feasible is enough.
    pub all: bool,
    /// Which engine to use.
    pub search: Search,
    /// How to search explicitly.
    pub explicit: explicit::Options,
    /// Where abstraction starts.
    pub cegar: cegar::Options,
    /// How much to do to confirm a proof.
    pub confirm: Confirm,
}

/// What is known about an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It succeeds: there is a witness.
    Feasible,
    /// It never does.
    Infeasible,
    /// Nobody knows.
    Unknown(Reason),
    /// Nobody looked: another one is feasible, or a limit was reached.
    Unexamined,
}

/// A store that may be delayed past a load, and whether that can be seen.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The thread.
    pub thread: ThreadId,
    /// The store.
    pub store: EdgeId,
    /// The load.
    pub load: EdgeId,
    /// What is known about it.
    pub verdict: Finding,
    /// An execution that shows it.
    pub witness: Option<Witness>,
    /// The thread's edges from the store to the load, in program order, in that execution.
    pub path: Vec<EdgeId>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Robustness {
    /// What was asked.
    pub notion: Notion,
    /// Whether the program is robust (free of triangular races), or why nobody knows.
    pub robust: Result<bool, Reason>,
    /// All attacks that are not impossible at first sight; those of threads that are alike are listed for one of them, unless all
    /// were to be examined.
    pub attacks: Vec<Attack>,
    /// True if the witness was replayed and has a cycle, the certificate was accepted, or the reference semantics explored everything;
    /// false if the verdict stands on the engine alone; nothing if there is none.
    pub checked: Option<bool>,
    /// The certificate of the instrumented program that shows robustness, if there is one; not if all attacks were to be examined, for
    /// then there may be several.
    pub certificate: Option<Arc<Certificate>>,
    /// The program that was searched, the last one if there were several; nothing if there was no attack to look for.
    pub instrumented: Option<Instrumented>,
    /// The engine that gave the answer.
    pub engine: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// How much of that was spent on confirming the answer.
    pub check_seconds: f64,
    /// States stored.
    pub states: u64,
    /// Bytes used at most.
    pub bytes: u64,
}

impl Robustness {
    /// The first attack with a witness.
    pub fn witness(&self) -> Option<(&Attack, &Witness)> {
        self.attacks.iter().find_map(|a| a.witness.as_ref().map(|w| (a, w)))
    }
}

/// What attacks cannot be made for: an index is kept in a register, and over the naturals a negative one does not fit.
fn unsupported(program: &Program) -> Option<Reason> {
    let negative = |v: &&Variable| v.indices.is_some_and(|range| range.low < 0);
    let found = program.variables.iter().find(negative).filter(|_| program.numbers == Numbers::Nat)?;
    let what = "robustness with negative indices over the naturals is not supported";
    Some(Reason::Unsupported(what.into(), Some(found.span)))
}

/// Decides whether a program is robust.
pub fn analyse(program: &Program, options: &Options, limits: &Limits, progress: &Progress) -> Robustness {
    let start = Instant::now();
    let stop = || limits.exceeded(0).is_some();
    let found = match unsupported(program) {
        Some(reason) => Err(reason),
        None => attack::candidates(program, options.notion, &stop)
            .ok_or_else(|| limits.exceeded(0).unwrap_or(Reason::Cancelled)),
    };
    let (candidates, refused) = match found {
        Ok(candidates) => (candidates, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let mut answer = Robustness {
        notion: options.notion,
        robust: Ok(true),
        attacks: candidates.iter().map(unexamined).collect(),
        checked: Some(true),
        certificate: None,
        instrumented: None,
        engine: "robust",
        seconds: 0.0,
        check_seconds: 0.0,
        states: 0,
        bytes: 0,
    };
    let mut outcome = Outcome { unknown: refused, ..Outcome::default() };
    let batches = batches(program, &candidates, options.all);
    for batch in &batches {
        if let Some(reason) = limits.exceeded(0) {
            outcome.unknown.get_or_insert(reason);
            break;
        }
        if !options.all && answer.witness().is_some() {
            break;
        }
        match attack::instrument(program, options.notion, &candidates[batch.clone()], &stop) {
            Ok(None) => {
                outcome.unknown.get_or_insert(limits.exceeded(0).unwrap_or(Reason::Cancelled));
                break;
            }
            Ok(Some(instrumented)) => {
                answer.examine(program, &instrumented, batch, options, limits, progress, &mut outcome);
                answer.instrumented = Some(instrumented);
            }
            Err(attack::Unsupported(what, span)) => {
                let reason = Reason::Unsupported(format!("{what} is not supported"), Some(span));
                let concerned = answer.attacks[batch.clone()].iter_mut();
                concerned.for_each(|a| a.verdict = Finding::Unknown(reason.clone()));
                outcome.unknown.get_or_insert(reason);
            }
        }
    }
    if candidates.len() > attack::MOST_ATTACKS {
        let what = format!("more than {} pairs of a store and a load to examine", attack::MOST_ATTACKS);
        outcome.unknown.get_or_insert(Reason::Unsupported(what, None));
    }
    outcome.certificate = outcome.certificate.filter(|_| batches.len() == 1);
    let feasible = answer.attacks.iter().any(|a| a.witness.is_some());
    answer.robust = match outcome.unknown {
        _ if feasible => Ok(false),
        Some(reason) => Err(reason),
        None => Ok(true),
    };
    answer.checked = answer.robust.is_ok().then_some(feasible || !outcome.unchecked);
    answer.certificate = outcome.certificate.filter(|_| answer.robust == Ok(true));
    if options.all {
        answer.repeat_for_alike(program);
    }
    answer.seconds = start.elapsed().as_secs_f64();
    answer
}

/// If all are to be examined, at most so many attacks are in one program: each has a property of its own.
const MOST_TOGETHER: usize = 64;
/// An instrumented program has a copy of the thread for each attacking store; together they have no more edges than about this.
const MOST_EDGES: usize = 5_000;

/// Groups of attacks to examine together: all of them, unless the instrumented program would become large.
fn batches(program: &Program, attacks: &[attack::Attack], all: bool) -> Vec<Range<usize>> {
    let most = if all { MOST_TOGETHER } else { MOST_EDGES };
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut edges = 0;
    for (n, attack) in attacks.iter().enumerate() {
        let is_new = n == 0 || (attacks[n - 1].thread, attacks[n - 1].store) != (attack.thread, attack.store);
        edges += if is_new { program.thread(attack.thread).edges.len() } else { 0 };
        match batches.last_mut() {
            Some(batch) if batch.len() < most && edges <= MOST_EDGES => batch.end = n + 1,
            _ => {
                batches.push(n..n + 1);
                edges = program.thread(attack.thread).edges.len();
            }
        }
    }
    batches
}

/// What the examinations have found besides witnesses.
#[derive(Default)]
struct Outcome {
    unknown: Option<Reason>,
    unchecked: bool,
    certificate: Option<Arc<Certificate>>,
}

fn unexamined(attack: &attack::Attack) -> Attack {
    Attack {
        thread: attack.thread,
        store: attack.store,
        load: attack.load,
        verdict: Finding::Unexamined,
        witness: None,
        path: Vec::new(),
    }
}

impl Robustness {
    /// Runs the instrumented program and takes in what was found about this batch of attacks.
    #[allow(clippy::too_many_arguments)]
    fn examine(
        &mut self,
        program: &Program,
        instrumented: &Instrumented,
        batch: &Range<usize>,
        options: &Options,
        limits: &Limits,
        progress: &Progress,
        outcome: &mut Outcome,
    ) {
        let (each, any) = instrumented.program.properties.split_at(instrumented.attacks.len());
        let properties = if options.all { each.to_vec() } else { any.to_vec() };
        let explicit = Explicit { options: options.explicit.clone() };
        let cegar = Cegar { options: options.cegar };
        let auto = Auto { explicit: explicit.clone(), cegar: cegar.clone(), alone: ALONE };
        let engine: &dyn Engine = match options.search {
            Search::Auto => &auto,
            Search::Explicit => &explicit,
            Search::Cegar => &cegar,
        };
        let task = Task::new(&instrumented.program, MemoryModel::Sc, properties);
        let finished = Finished { name: engine.name(), report: engine.run(&task, limits, progress) };
        let results = check(&finished, &task, limits, progress, finished.confirm(options.confirm));
        self.states += finished.report.states;
        self.bytes = self.bytes.max(finished.report.bytes);
        for (n, checked) in results.iter().enumerate() {
            self.engine = checked.engine;
            self.check_seconds += checked.check_seconds;
            let own = batch.start + n..batch.start + n + 1;
            let concerned = if options.all { own } else { batch.clone() };
            let finding = match self.admit(program, instrumented, batch.start, checked) {
                Ok(true) => {
                    outcome.unchecked |= checked.checked() != Some(true);
                    Finding::Infeasible
                }
                Ok(false) => continue,
                Err(reason) => {
                    outcome.unknown.get_or_insert(reason.clone());
                    Finding::Unknown(reason)
                }
            };
            self.attacks[concerned].iter_mut().for_each(|attack| attack.verdict = finding.clone());
        }
        // With all attacks examined there is a proof for each.
        if let (false, [checked]) = (options.all, &results[..]) {
            outcome.certificate = match checked.evidence() {
                Evidence::Certified(c) | Evidence::Unchecked(c) => Some(Arc::clone(c)),
                _ => None,
            };
        }
    }

    /// One verdict about the instrumented program: whether the attacks it is about are infeasible. A witness goes to its attack.
    fn admit(
        &mut self,
        program: &Program,
        instrumented: &Instrumented,
        first: usize,
        checked: &Checked,
    ) -> Result<bool, Reason> {
        match (checked.verdict(), checked.trace()) {
            (Verdict::Safe, _) => Ok(true),
            (Verdict::Unknown(reason), _) => Err(reason.clone()),
            (Verdict::Unsafe, None) => {
                Err(Reason::Contradiction("an attack without an execution that shows it".into()))
            }
            (Verdict::Unsafe, Some(trace)) => {
                let found = witness::from_instrumented(program, self.notion, instrumented, trace)?;
                let attack = &mut self.attacks[first + found.attack];
                attack.verdict = Finding::Feasible;
                attack.path = found.path;
                attack.witness = Some(found.witness);
                Ok(false)
            }
        }
    }

    /// Threads that are alike can do the same: their attacks are those of the first, with the threads exchanged.
    fn repeat_for_alike(&mut self, program: &Program) {
        let first: Vec<Attack> = self.attacks.clone();
        for (t, thread) in program.threads() {
            let like = program.threads().take(t.index()).find(|(_, earlier)| earlier.is_like(thread));
            let Some((original, _)) = like else { continue };
            for attack in first.iter().filter(|a| a.thread == original) {
                let swapped = attack
                    .witness
                    .as_ref()
                    .map(|w| witness::checked(program, self.notion, w.trace_with_exchanged(original, t)));
                let mut repeated = Attack { thread: t, ..attack.clone() };
                match swapped.transpose() {
                    Ok(witness) => repeated.witness = witness,
                    Err(reason) => repeated.verdict = Finding::Unknown(reason),
                }
                self.attacks.push(repeated);
            }
        }
    }
}

/// An engine that has run: what it found can be looked at before it goes through the door.
struct Finished {
    name: &'static str,
    report: Report,
}

impl Finished {
    /// How much to do to confirm the answer. The reference semantics does not reduce anything: if the engine has seen more states
    /// than may be explored to confirm it, there is no point in beginning.
    fn confirm(&self, wanted: Confirm) -> Confirm {
        let proved = self.report.answers.iter().any(|a| matches!(a, Answer::Proved(_)));
        let hopeless = self.report.states > wanted.states as u64;
        if hopeless && !proved { Confirm::NOTHING } else { wanted }
    }
}

impl Engine for Finished {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        "what an engine has found"
    }

    fn run(&self, _: &Task<'_>, _: &Limits, _: &Progress) -> Report {
        self.report.clone()
    }
}
