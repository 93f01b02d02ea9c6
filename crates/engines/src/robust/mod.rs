//! Engine `robust`: robustness against TSO, and freedom from triangular races (THESIS16 s.2.3.3, s.3.1.2, s.5.2).
//!
//! The program is instrumented with its attacks ([`fencewright_transform::attack`]). It is robust if no attack succeeds in the instrumented program
//! under SC. One instrumented program contains many attacks, so that their common behaviour is explored only once, and each attack has its own
//! property, so that one run decides all of them. Other engines search the instrumented program: `explicit` if it has finitely many states, `cegar`
//! if integers are unbounded.
//!
//! Only the module `admit` makes a [`Robustness`], after a check. An execution of the instrumented program is translated into an execution of the
//! original program under TSO and replayed on the reference semantics. Its happens-before relation, which is computed independently, must have a
//! cycle ([`witness`]).

mod admit;
#[cfg(test)]
mod tests;
pub mod witness;

use std::time::{Duration, Instant};

use fencewright_program::{MemoryModel, Program};
use fencewright_transform::attack::{self, Notion};

use crate::auto::Auto;
use crate::cegar::{self, Cegar};
use crate::check::{self, Checked, Confirm};
use crate::explicit::{self, Explicit};
use crate::task::{Engine, Limits, Progress, Reason, Task, Work};
use crate::transformed::Prover;
use admit::Admission;
pub use admit::{Attack, Evidence, Finding, Proof, Robustness};
pub use witness::{Shape, Witness};

/// Duration of the first run of the explicit engine, before a symbolic engine runs as well. It is longer than usual, because an instrumented program
/// has many more states than the original program, but nearly always finitely many.
const ALONE: Duration = Duration::from_millis(500);

/// The engine that explores the instrumented program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The default: first the explicit engine alone, then explicit and symbolic engines concurrently.
    #[default]
    Auto,
    /// Only the explicit engine.
    Explicit,
    /// Only engine `cegar`.
    Cegar,
}

/// Options of the robustness analysis.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Robustness or freedom from triangular races.
    pub notion: Notion,
    /// Whether to examine every attack. Otherwise the first feasible attack ends the search.
    pub all: bool,
    /// The engine that searches instrumented programs.
    pub search: Search,
    /// Options of the explicit engine, if it searches.
    pub explicit: explicit::Options,
    /// Options of `cegar`, if it searches.
    pub cegar: cegar::Options,
    /// The effort for confirming a proof.
    pub confirm: Confirm,
    /// Whether to write the proof as a certificate.
    pub certificate: bool,
}

/// The reason to report for a program that cannot be instrumented.
pub(crate) fn unsupported(attack::Unsupported(what, span): attack::Unsupported) -> Reason {
    Reason::Unsupported(format!("{what} is not supported"), Some(span))
}

/// The engine that explores instrumented programs.
fn engine(options: &Options) -> Box<dyn Engine> {
    let explicit = Explicit { options: options.explicit.clone() };
    let cegar = Cegar { options: options.cegar };
    match options.search {
        Search::Auto => Box::new(Auto { explicit, cegar, alone: ALONE, slices: false, ..Auto::default() }),
        Search::Explicit => Box::new(explicit),
        Search::Cegar => Box::new(cegar),
    }
}

/// The answer for a program that cannot be analysed, for this reason.
pub fn undecided(program: &Program, options: &Options, reason: Reason) -> Robustness {
    let mut admission = Admission::new(program, options.notion, &[]);
    admission.give_up(reason);
    admission.finish(options.all, Instant::now())
}

/// Decides whether a program is robust.
pub fn analyse(program: &Program, options: &Options, limits: &Limits, progress: &Progress) -> Robustness {
    analyse_with(&*engine(options), program, options, limits, progress)
}

/// Like [`analyse`], with this engine for the instrumented programs.
fn analyse_with(
    engine: &dyn Engine,
    program: &Program,
    options: &Options,
    limits: &Limits,
    progress: &Progress,
) -> Robustness {
    let start = Instant::now();
    let stop = || limits.exceeded(0).is_some();
    let why_stopped = || limits.exceeded(0).unwrap_or(Reason::Cancelled);
    let found = match attack::unsupported(program) {
        Some(why) => Err(unsupported(why)),
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
    let most = if options.all { MOST_TOGETHER } else { attack::MOST_EDGES };
    for batch in attack::batches(program, &attacks, most) {
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
            Err(why) => {
                admission.give_up_attacks(batch, unsupported(why));
                continue;
            }
        };
        // The instrumented program has one property per attack, followed by one for all attacks together.
        let (each, any) = instrumented.program.properties.split_at(instrumented.attacks.len());
        let properties = if options.all { each.to_vec() } else { any.to_vec() };
        let task = Task::new(&instrumented.program, MemoryModel::Sc, properties);
        // The witness of an attack is recorded at once, so that it is not lost if the search for other attacks fails.
        let mut admit = |n: usize, checked: &Checked| {
            let own = batch.start + n..batch.start + n + 1;
            let concerned = if options.all { own } else { batch.clone() };
            admission.admit(&instrumented, batch.start, concerned, checked);
        };
        let confirm = options.confirm;
        let at_the_end = |states| confirm.unless_hopeless(states);
        let checks = check::check_run(engine, &task, limits, progress, confirm, &at_the_end, &mut admit);
        let Work { states, bytes, .. } = checks.statistics;
        admission.searched(instrumented, states, bytes);
    }
    if attacks.len() > attack::MOST_ATTACKS {
        let what = format!("more than {} pairs of a store and a load to examine", attack::MOST_ATTACKS);
        admission.give_up(Reason::Unsupported(what, None));
    }
    if options.certificate && admission.is_robust() {
        let found =
            Prover::new(&Cegar { options: options.cegar }, limits, progress).robust(program, options.notion);
        admission.admit_certificate(found, limits, options.confirm);
    }
    admission.finish(options.all, start)
}

/// Maximum number of attacks in one instrumented program if all attacks are examined, because each of them has its own property.
const MOST_TOGETHER: usize = 64;
