//! Oracles, which suggest where stores should be delayed (THESIS16 s.3.1).

use std::collections::BTreeSet;
use std::mem::discriminant;

use fencewright_program::{EdgeId, Program, Thread, ThreadId};

use super::enumerate::Enumerate;
use crate::auto::Auto;
use crate::check::Confirm;
use crate::robust;
use crate::task::{Limits, Progress, Reason};

/// An oracle's answer about a program.
#[derive(Clone, Debug)]
pub enum Advice {
    /// Every TSO execution that ends with empty buffers ends in a state that is reachable under SC.
    Robust,
    /// Stores may be delayed along these paths: each starts with a store, ends with a load, and nothing on it waits for an
    /// empty buffer. There is at least one.
    Paths(Vec<(ThreadId, Vec<EdgeId>)>),
    /// The oracle cannot decide.
    Unknown(Reason),
}

/// Suggests paths along which stores should be delayed.
pub trait Oracle: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// Examines the program of a round; rounds count from 1.
    fn consult(&self, program: &Program, round: u32, limits: &Limits, progress: &Progress) -> Advice;
}

/// The robustness of the program (s.3.1.2): the suggested paths are those of feasible attacks.
///
/// The search stops at the first attack, and threads with the same code are extended by the same path: examining all attacks takes many times as
/// long (Lamport's mutex, 3 threads: 3.5 s instead of 0.1 s). Each thread without an attack is extended by its shortest path from a store
/// to a load, which costs little and saves rounds (the unwinding family, N = 100: half the time). In every other round the attackers are
/// extended by their shortest paths too, so that no path waits for ever while attacks follow the same loop further and further.
#[derive(Clone, Debug, Default)]
pub struct Robust {
    /// The engine that searches for attacks.
    pub search: Auto,
}

impl Oracle for Robust {
    fn name(&self) -> &'static str {
        "robust"
    }

    fn consult(&self, program: &Program, round: u32, limits: &Limits, progress: &Progress) -> Advice {
        let options = robust::Options {
            explicit: self.search.explicit.options.clone(),
            cegar: self.search.cegar.options,
            // Attacks are replayed in any case. If there is none, the verdict that follows is confirmed as a whole.
            confirm: Confirm::NOTHING,
            ..robust::Options::default()
        };
        let robustness = robust::analyse(program, &options, limits, progress);
        match robustness.robust() {
            Ok(true) => Advice::Robust,
            Err(reason) => Advice::Unknown(reason.clone()),
            Ok(false) => {
                let feasible = robustness.attacks().iter().filter(|a| !a.path.is_empty());
                let paths = feasible.flat_map(|attack| alike(program, attack.thread, &attack.path));
                let mut paths: Vec<_> = paths.collect();
                let attackers: BTreeSet<ThreadId> = paths.iter().map(|(thread, _)| *thread).collect();
                if let Advice::Paths(mut others) = Enumerate.consult(program, round, limits, progress) {
                    others.retain(|(thread, _)| round.is_multiple_of(2) || !attackers.contains(thread));
                    paths.extend(others);
                }
                Advice::Paths(paths)
            }
        }
    }
}

/// The same path in every thread of the same shape.
fn alike(program: &Program, thread: ThreadId, path: &[EdgeId]) -> Vec<(ThreadId, Vec<EdgeId>)> {
    let shape = |thread: &Thread| -> Vec<_> {
        let edges = thread.edges.iter();
        edges
            .map(|e| (e.from, e.to, discriminant(&e.action), e.action.ops().first().map(discriminant)))
            .collect()
    };
    let own = shape(program.thread(thread));
    let alike = program.threads().filter(|(_, other)| shape(other) == own);
    alike.map(|(other, _)| (other, path.to_vec())).collect()
}
