//! Engine `buffers`: abstractions of store buffers, refined step by step (THESIS16 Algorithm 3.2).
//!
//! An abstraction that forgets the order of stores and does not count them has finitely many buffers, if there are finitely many values. The engine
//! abstracts buffers to sets of values first, then to multisets, then to sets with some stores in order ([`BufferDomain`]). Each of these
//! abstractions over-approximates exact buffers, so a search that terminates without a violation is a proof. A violation is real if its path can be
//! turned into an execution; otherwise it counts as spurious, and a finer abstraction is tried.
//!
//! Multisets are unbounded, yet reachability with them is decidable (Theorem 15), by *expand, enlarge and check*. Given a bound on the number of
//! copies of a value, multisets are *enlarged* if a value with that many copies may occur any number of times, which over-approximates them; they are
//! *expanded* if a store beyond the bound is not explored, which under-approximates them. The bound grows until one of the two searches gives an
//! answer, but, unless the user selects multisets, not beyond `MOST_COUNTED`. If the multiset machine itself has a spurious path to a violation, no
//! bound helps, and the order of stores has to be kept.
//!
//! The number of stores kept in order grows in each round, and is determined by the spurious path: it is at least the number with which no flush on
//! this path can overtake an older store. Algorithm 3.2 as printed does not start with sets; here sets are treated as multisets with bound 1.

mod path;
#[cfg(test)]
mod tests;

use fencewright_memory::Kept;
use fencewright_program::{MemoryModel, PropertyKind};
use fencewright_verdict::{
    About, Answer, Author, Counts, Early, Engine, EngineName, Limits, Part, Progress, Reason, Report, Task,
};

use crate::abstracted::{self, Outcome};
use crate::{self as explicit, Abstraction};
use path::{Examined, Spurious, examine};

/// A kind of buffer abstraction that users can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferDomain {
    /// For each cell, the set of buffered values, and the newest one.
    Set,
    /// For each cell, the multiset of buffered values, and the newest one.
    Multiset,
    /// The given number of stores in order (PSO: per memory cell), and `Set` for all other stores.
    Partial(u32),
}

/// The largest bound on the number of copies of a value for which multisets are tried, unless the user selects multisets; after that, stores are kept
/// in order.
const MOST_COUNTED: u32 = 8;
/// Maximum number of stores kept in order, unless the user selects `Partial`: searches with more do not terminate in practice.
const MOST_KEPT: u32 = 16;

/// Which abstractions the engine tries.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The only abstraction to try; all of them if `None`.
    pub domain: Option<BufferDomain>,
    /// Whether the oldest or the newest stores are kept in order.
    pub kept: Kept,
}

impl Default for Options {
    fn default() -> Self {
        Options { domain: None, kept: Kept::Newest }
    }
}

/// Engine `buffers`, which tries abstractions of store buffers from coarse to fine.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    /// Options of each search: order, reductions, cores.
    pub explicit: explicit::Options,
    /// Which abstractions to try.
    pub options: Options,
}

impl Engine for Buffers {
    fn name(&self) -> EngineName {
        EngineName::Buffers
    }

    fn about(&self) -> About {
        About {
            summary: "buffers as sets, multisets, or partly in order: proofs where buffers grow and values do not",
            models: &MemoryModel::ALL,
            machines: &["set", "multiset", "partial"],
            domains: &["concrete"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let unanswered = |kind: &PropertyKind| match kind {
            PropertyKind::NoDeadlock => {
                let what = "engine buffers cannot decide deadlock: abstract buffers can move where exact ones cannot";
                Some(Answer::Unknown(Reason::Unsupported(what.into(), None)))
            }
            PropertyKind::Never(_) | PropertyKind::Assertions | PropertyKind::Finally(..) => None,
        };
        let answers = task.properties.iter().map(|property| unanswered(&property.kind)).collect();
        let spurious = vec![Spurious::default(); task.properties.len()];
        let report = Report::default();
        let mut run = Run {
            explicit: &self.explicit,
            options: self.options,
            task,
            limits,
            progress,
            answers,
            spurious,
            report,
        };
        run.rounds();
        let answers = run.answers.into_iter().map(|answer| answer.unwrap_or(Answer::Open));
        run.report.answers = answers.collect();
        run.report
    }
}

/// The state of a run of the engine: the answers, and the spurious paths found so far.
struct Run<'a, 'p> {
    explicit: &'a explicit::Options,
    options: Options,
    task: &'a Task<'p>,
    limits: &'a Limits,
    progress: &'a Progress,
    answers: Vec<Option<Answer>>,
    /// For each property, which abstractions exclude the spurious paths found so far.
    spurious: Vec<Spurious>,
    report: Report,
}

impl Run<'_, '_> {
    fn rounds(&mut self) {
        match self.options.domain {
            None => {
                self.multisets(MOST_COUNTED);
                self.partial();
            }
            Some(BufferDomain::Set) => {
                self.round(Abstraction::SET, &self.open());
                self.give_up("sets of values reach a violation, along a path that is no execution");
            }
            Some(BufferDomain::Multiset) => {
                self.multisets(u32::MAX);
                self.give_up("multisets reach a violation, along a path that is no execution");
            }
            Some(BufferDomain::Partial(k)) => {
                self.round(Abstraction::partial(k, self.options.kept), &self.open());
                let what = format!("partial:{k} reaches a violation, along a path that is no execution");
                self.give_up(&what);
            }
        }
    }

    /// Tries sets, and then multisets with bounds up to `most`, until every open property has a spurious path that the multiset machine has too.
    fn multisets(&mut self, most: u32) {
        for many in 1..=most {
            let open: Vec<usize> =
                self.open().into_iter().filter(|&n| !self.spurious[n].is_of_multisets).collect();
            if open.is_empty() {
                break;
            }
            self.round(Abstraction::multiset(many), &open);
            let still = |n: &usize| self.is_open(*n) && !self.spurious[*n].is_of_multisets;
            let open: Vec<usize> = open.into_iter().filter(still).collect();
            // With at most one copy of each value, expanded multisets reach too few states to be worth a search.
            if many > 1 && !open.is_empty() {
                self.round(Abstraction { cut: true, ..Abstraction::multiset(many) }, &open);
            }
        }
    }

    /// Tries partial buffers, with a k that grows by at least 1 in each round and is at least as large as the spurious paths require.
    fn partial(&mut self) {
        let mut k = 0;
        loop {
            let open = self.open();
            if open.is_empty() {
                break;
            }
            k = open.iter().map(|&n| self.spurious[n].k).fold(k + 1, u32::max);
            if k > MOST_KEPT {
                let what = format!(
                    "it takes more than {MOST_KEPT} stores in order to rule out a path that is no execution"
                );
                return self.give_up(&what);
            }
            self.round(Abstraction::partial(k, self.options.kept), &open);
        }
    }

    /// Runs one search for the `open` properties, and records their answers and spurious paths.
    fn round(&mut self, abstraction: Abstraction, open: &[usize]) {
        if open.is_empty() {
            return;
        }
        self.progress.say(describe(abstraction));
        let part = Part::new(self.task, open, self.report.work.states);
        let mut sub = part.task();
        sub.observed.clear();
        // The first path to a violation may be spurious, so the search must go on after it.
        sub.first_violation = false;
        let found = abstracted::run(&sub, self.explicit, abstraction, self.limits, self.progress);
        let found = match found {
            Ok(found) => found,
            Err(reason) => return self.leave(open, &Answer::Unknown(reason)),
        };
        let work = &mut self.report.work;
        work.states += found.states;
        work.bytes = work.bytes.max(found.bytes);
        let state_bytes = work.state_bytes().max(found.state_bytes);
        work.counts = Counts::States { state_bytes, transitions: None, symmetry: Vec::new() };
        if !found.growth.is_empty() {
            self.report.growth = found.growth;
            let hint =
                "these buffers are finitely many only if values are; engine cegar abstracts values too";
            self.report.growth.push((hint.into(), None));
        }
        for (&n, outcome) in open.iter().zip(found.outcomes) {
            match outcome {
                Outcome::Path(path) => {
                    let property = &self.task.properties[n];
                    match examine(self.task, &path, property, self.options.kept, self.limits) {
                        Examined::Execution(trace) if property.kind.is_existence() => {
                            self.tell(n, Answer::Holds(Some(trace)));
                        }
                        Examined::Execution(trace) => {
                            self.tell(n, Answer::Violated(Some(trace)));
                            if self.task.first_violation {
                                let open = self.open();
                                return self.leave(&open, &Answer::Open);
                            }
                        }
                        Examined::Spurious(spurious) => {
                            let known = &mut self.spurious[n];
                            known.k = known.k.max(spurious.k);
                            known.is_of_multisets |= spurious.is_of_multisets || abstraction.cut;
                        }
                    }
                }
                // An expanded search leaves stores out, so it proves nothing if it finds no violation.
                Outcome::Answer(Answer::Unknown(Reason::BufferBound(_))) if abstraction.cut => {}
                Outcome::Answer(answer) if answer.holds().is_some() => self.tell(n, answer),
                Outcome::Answer(answer) => self.answers[n] = Some(answer),
            }
        }
    }

    fn is_open(&self, n: usize) -> bool {
        self.answers[n].is_none() && !self.task.is_settled(n)
    }

    /// The indices of the properties that neither this engine nor another one has answered.
    fn open(&self) -> Vec<usize> {
        (0..self.answers.len()).filter(|&n| self.is_open(n)).collect()
    }

    /// Answers a property, and publishes the answer at once.
    fn tell(&mut self, n: usize, answer: Answer) {
        let author = Author { engine: EngineName::Buffers, work: self.report.work.clone() };
        self.task.tell(n, Early { answer: answer.clone(), author });
        self.answers[n] = Some(answer);
    }

    /// Gives this answer, which decides nothing, to those of the given properties that have no answer yet.
    fn leave(&mut self, open: &[usize], answer: &Answer) {
        open.iter().for_each(|&n| _ = self.answers[n].get_or_insert_with(|| answer.clone()));
    }

    /// Answers the open properties with `unknown`, because no finer abstraction is left to try.
    fn give_up(&mut self, why: &str) {
        let open = self.open();
        self.leave(&open, &Answer::Unknown(Reason::Unsupported(why.into(), None)));
    }
}

/// Description of a round for the progress line.
fn describe(abstraction: Abstraction) -> String {
    match abstraction {
        Abstraction { k: 0, many: 1, .. } => "sets of values".into(),
        Abstraction { k: 0, many, cut: false, .. } => {
            format!("multisets, {many} copies stand for any number")
        }
        Abstraction { k: 0, many, cut: true, .. } => format!("multisets with at most {many} copies"),
        Abstraction { k, .. } => format!("{k} stores in order, sets of values for the others"),
    }
}
