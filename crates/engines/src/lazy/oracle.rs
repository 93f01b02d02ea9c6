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
    /// Stores should be delayed along these paths. Each path starts with a store, ends with a load, and has no step that waits for an empty buffer.
    /// The list is not empty.
    Paths(Vec<(ThreadId, Vec<EdgeId>)>),
    /// The oracle cannot decide.
    Unknown(Reason),
}

/// An oracle, which suggests paths along which stores should be delayed.
pub trait Oracle: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// Examines the program of a round. The first round has number 1.
    fn consult(&self, program: &Program, round: u32, limits: &Limits, progress: &Progress) -> Advice;
}

/// The oracle that decides the robustness of the program (THESIS16 s.3.1.2). It suggests the paths of feasible attacks.
///
/// The search stops at the first attack, and threads with the same code are extended by the same path, because examining all attacks takes many times
/// longer (Lamport's mutex with 3 threads: 3.5 s instead of 0.1 s). Each thread without an attack is extended by its shortest path from a store to a
/// load, which costs little and saves rounds (the unwinding family with N = 100: half the time). In every second round the attackers are extended by
/// their shortest paths as well. Otherwise other paths could wait forever while the attacks follow more and more iterations of one loop.
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
            // A witness is always replayed. If the program is robust, this result is not confirmed here, because the verdict that relies on it is
            // confirmed later.
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

/// The same path in every thread whose code has the same shape.
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
