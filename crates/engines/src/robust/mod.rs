//! Engine `robust`: robustness against TSO, and freedom from triangular races (THESIS16 s.2.3.3, s.3.1.2, s.5.2).
//!
//! Robustness is reachability under SC of the program that [`fencewright_transform::attack`] makes: all attacks of all threads are in
//! one program, so that what they have in common is explored once, and each has a property of its own, so that one run decides
//! them all. Other engines do the work: `explicit` where there are finitely many states, `cegar` where integers are unbounded.
//!
//! Nothing is reported unchecked: what the engines say about the instrumented program goes through the door for robustness, and only
//! [`admit`](self) makes a [`Robustness`]. An execution of the instrumented program becomes one of the original program under TSO, is
//! replayed on the reference semantics, and its happens-before relation, computed independently, must have a cycle ([`witness`]).

mod admit;
pub mod witness;

use std::ops::Range;
use std::time::{Duration, Instant};

use fencewright_program::{MemoryModel, Numbers, Program, Variable};
use fencewright_transform::attack::{self, Notion};

use crate::auto::Auto;
use crate::cegar::{self, Cegar};
use crate::check::{self, Confirm};
use crate::explicit::{self, Explicit};
use crate::task::{Engine, Limits, Progress, Reason, Task};
use admit::Admission;
pub use admit::{Attack, Evidence, Finding, Proof, Robustness};
pub use witness::{Shape, Witness};

/// How long the explicit engine goes alone before a symbolic one runs beside it. A program with attacks in it has many more states than
/// the program itself, and nearly always finitely many: the explicit engine needs more time for them than for an ordinary question.
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

/// What attacks cannot be made for: an index is kept in a register, and over the naturals a negative one does not fit.
fn unsupported(program: &Program) -> Option<Reason> {
    let negative = |v: &&Variable| v.indices.is_some_and(|range| range.low < 0);
    let found = program.variables.iter().find(negative).filter(|_| program.numbers == Numbers::Nat)?;
    let what = "robustness with negative indices over the naturals is not supported";
    Some(Reason::Unsupported(what.into(), Some(found.span)))
}

/// The engine that runs instrumented programs.
fn engine(options: &Options) -> Box<dyn Engine> {
    let explicit = Explicit { options: options.explicit.clone() };
    let cegar = Cegar { options: options.cegar };
    match options.search {
        Search::Auto => Box::new(Auto { explicit, cegar, alone: ALONE }),
        Search::Explicit => Box::new(explicit),
        Search::Cegar => Box::new(cegar),
    }
}

/// Decides whether a program is robust.
pub fn analyse(program: &Program, options: &Options, limits: &Limits, progress: &Progress) -> Robustness {
    let start = Instant::now();
    let stop = || limits.exceeded(0).is_some();
    let why_stopped = || limits.exceeded(0).unwrap_or(Reason::Cancelled);
    let found = match unsupported(program) {
        Some(reason) => Err(reason),
        None => attack::candidates(program, options.notion, &stop).ok_or_else(why_stopped),
    };
    let (attacks, refused) = match found {
        Ok(attacks) => (attacks, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let mut admission = Admission::new(program, options.notion, &attacks);
    if let Some(reason) = refused {
        admission.give_up(reason);
    }
    let engine = engine(options);
    for batch in batches(program, &attacks, options.all) {
        if let Some(reason) = limits.exceeded(0) {
            admission.give_up(reason);
            break;
        }
        if !options.all && admission.has_witness() {
            break;
        }
        let instrumented = match attack::instrument(program, options.notion, &attacks[batch.clone()], &stop) {
            Ok(Some(instrumented)) => instrumented,
            Ok(None) => {
                admission.give_up(why_stopped());
                break;
            }
            Err(attack::Unsupported(what, span)) => {
                let reason = Reason::Unsupported(format!("{what} is not supported"), Some(span));
                admission.give_up_attacks(batch, reason);
                continue;
            }
        };
        // There is a property for each attack, and then one for all of them.
        let (each, any) = instrumented.program.properties.split_at(instrumented.attacks.len());
        let properties = if options.all { each.to_vec() } else { any.to_vec() };
        let task = Task::new(&instrumented.program, MemoryModel::Sc, properties);
        let report = engine.run(&task, limits, progress);
        let (states, bytes) = (report.states, report.bytes);
        let confirm = options.confirm.unless_hopeless(states);
        for (n, checked) in check::admit(&*engine, &task, report, limits, confirm).iter().enumerate() {
            let own = batch.start + n..batch.start + n + 1;
            let concerned = if options.all { own } else { batch.clone() };
            admission.admit(&instrumented, batch.start, concerned, checked);
        }
        admission.searched(instrumented, states, bytes);
    }
    if attacks.len() > attack::MOST_ATTACKS {
        let what = format!("more than {} pairs of a store and a load to examine", attack::MOST_ATTACKS);
        admission.give_up(Reason::Unsupported(what, None));
    }
    admission.finish(options.all, start)
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
