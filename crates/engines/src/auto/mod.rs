//! Engine `auto`, the default. It runs the other engines, and the first answer that is confirmed counts. These are its stages:
//!
//! 1. Choices among very many values are reduced to choices among fewer values (`fewer_values`), if the values are only compared.
//! 2. Engine `explicit` runs alone for a moment, because most programs of the literature have few states, and it is the fastest engine for them.
//! 3. Threads that cannot affect a property are removed from the program for that property (`slices`).
//! 4. Unless certificates are requested, properties that mention registers are checked separately from the others (`apart`), because a search for
//!    both would have more states.
//! 5. PSO is reduced to TSO if no store can overtake another one, and TSO is reduced to SC if no store can be delayed past a load such that another
//!    thread notices; the program text must show that (`by_way_of`). If only a few stores can overtake others, PSO is reduced to TSO for a larger
//!    program. One member of the portfolio searches that program, or, if SC decides all properties of it, only that program is searched. If many
//!    stores can overtake others, `contexts`, which does not support PSO, searches for violations with at most one store of each thread out of order.
//! 6. If buffers may grow without bound, `buffers` runs for a moment, because the sets of buffered values may be finite. Then `contexts` runs for a
//!    moment, because most violations need few contexts, independently of values and buffer lengths.
//! 7. Open properties are checked by a *portfolio* (`portfolio`) of engines, which run in separate threads and take turns on the cores. `explicit`
//!    finds violations and exhausts finite state spaces; a second instance identifies states up to the order of versions, which makes some infinite
//!    state spaces finite; if executions terminate, another member explores one execution for each trace. `cegar`, with zones and with predicates,
//!    proves programs with infinitely many states. `lazy` reduces TSO to SC, and `contexts` increases the number of contexts further.
//!
//! An answer with evidence is checked at once, and then every engine stops working on its property.

mod apart;
mod by_way_of;
mod fewer_values;
mod portfolio;
mod slices;
#[cfg(test)]
mod tests;

use std::time::Duration;

use fencewright_program::MemoryModel;

use crate::buffers::{self, Buffers};
use crate::cegar::{self, Cegar};
use crate::contexts::{self, ContextBound};
use crate::domain::DomainName;
use crate::explicit::{Explicit, Options, Reduction, Traces, buffers_may_grow, has_versions};
use crate::lazy::{self, Lazy};
use crate::task::{About, Early, Engine, EngineName, Limits, Part, Progress, Report, Task};
use crate::turns;
use by_way_of::{Reordered, Statically, UnderSc, UnderTso};
use fewer_values::Narrowed;
use portfolio::Member;
use slices::Sliced;

/// Default of [`Auto::alone`].
const ALONE: Duration = Duration::from_millis(50);

/// Factor on [`Auto::alone`] for the first run of the explicit engine on programs in which every thread has a path to its end.
const ENDING: u32 = 4;

/// Head start of the members that decide most questions which the first run leaves open: the reduction to SC, the explicit engine, the explicit
/// engine up to the order of versions, and `cegar` with its first domain. Until these have run for this time, the other members run only on cores
/// that would be idle.
const HEAD_START: Duration = Duration::from_millis(400);

/// Engine `auto`, with the options of the engines that it runs.
#[derive(Clone, Debug)]
pub struct Auto {
    /// The engine for finite state spaces. Its number of workers is an upper bound; each member gets a share of it.
    pub explicit: Explicit,
    /// The engine for unbounded programs. Its domain is used only if [`Auto::domain`] is set.
    pub cegar: Cegar,
    /// Options of engine `contexts`. Certificates are requested only in its first run, because other members of the portfolio search for proofs.
    pub contexts: contexts::Options,
    /// Options of engine `lazy`.
    pub lazy: lazy::Options,
    /// Options of engine `buffers`, which abstracts buffers that may grow.
    pub buffers: buffers::Options,
    /// The abstract domain for integers. If it is `None`, several domains are tried.
    pub domain: Option<DomainName>,
    /// Duration of the first runs of the explicit engine (`ENDING` times as long if every thread has a path to its end) and of `contexts`; the
    /// first run of `buffers` has half of it. If it is zero, there are no first runs.
    pub alone: Duration,
    /// Whether threads that cannot affect a property are sliced away after the explicit engine's first run.
    pub slices: bool,
}

impl Default for Auto {
    fn default() -> Self {
        Auto {
            explicit: Explicit { options: Options { reduction: Reduction::Suited, ..Options::default() } },
            cegar: Cegar::default(),
            contexts: contexts::Options::default(),
            lazy: lazy::Options { certificates: true, ..lazy::Options::default() },
            buffers: buffers::Options::default(),
            domain: None,
            alone: ALONE,
            slices: true,
        }
    }
}

impl Engine for Auto {
    fn name(&self) -> EngineName {
        EngineName::Auto
    }

    fn about(&self) -> About {
        About {
            summary: "explicit and contexts for a moment each, then all engines side by side: the first confirmed answer counts",
            models: &MemoryModel::ALL,
            machines: &["exact", "partial", "contexts", "sc", "set", "multiset"],
            domains: &["concrete", "zones", "predicates", "order"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        // The narrowed program may have choices that can be narrowed again, but each time it has fewer values, so the recursion ends.
        if let Some(narrowed) = Narrowed::of(task) {
            return narrowed.run(|task| self.run(task, limits, progress));
        }
        if self.alone.is_zero() {
            return self.rest(task, limits, progress);
        }
        let engine = self.explicit(self.cores(limits));
        // If every thread can terminate, the search usually terminates soon as well, and a search that is interrupted has to be repeated.
        let alone = if Traces::are_promising(task.program) { ENDING * self.alone } else { self.alone };
        let mut known = engine.run(task, &limits.within(alone), progress).by(&engine, None, task.model);
        if known.is_decided(task) {
            return known;
        }
        let open = known.open(task);
        let part = Part::new(task, &open, 0);
        let rest = self.rest(&part.task(), limits, progress);
        known.reopen();
        known.adopt(&open, rest);
        known
    }
}

impl Auto {
    /// The number of cores for a run with these limits.
    fn cores(&self, limits: &Limits) -> usize {
        // At least two cores are used: if the user requests a single worker, the explicit engine has one worker and the other members run
        // concurrently.
        let all = self.explicit.options.workers.max(2);
        limits.seat().map_or(all, |seat| seat.cores().min(all))
    }

    /// The explicit engine with at most this many workers.
    fn explicit(&self, most: usize) -> Explicit {
        let workers = self.explicit.options.workers.min(most).max(1);
        Explicit { options: Options { workers, ..self.explicit.options.clone() } }
    }

    /// The part of `auto` after the explicit engine's first run.
    fn rest(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        if self.slices {
            // Slices are not sliced again. Neither are the programs that the reductions below make, because a proof about such a program must be
            // about all of its threads.
            let auto = Auto { slices: false, ..self.clone() };
            return match Sliced::of(task) {
                Some(sliced) => sliced.run(&auto, self.cores(limits), limits, progress),
                None => auto.rest(task, limits, progress),
            };
        }
        // If certificates are requested, the properties remain together, because one certificate for all properties is preferable.
        if let Some(groups) = apart::groups(task).filter(|_| !self.explicit.options.certificates) {
            return apart::run(groups, self, task, limits, progress);
        }
        if let Some(way) = Reordered::new(task).filter(|way| way.suffices(limits)) {
            return way.under_tso(|task| self.rest(task, limits, progress));
        }
        // SC may decide all properties, or some of them, or none.
        let all: Vec<usize> = (0..task.properties.len()).collect();
        let way = Statically::robust(task, &all, limits);
        let under_sc = way.as_ref().map_or_else(Vec::new, |way| way.numbers.clone());
        let mut known = match way.filter(|way| way.numbers == all) {
            Some(way) => way.under_sc(|task| self.run(task, limits, progress)),
            None if self.alone.is_zero() => Report::unanswered(all.len()),
            None => self.abstract_buffers(task, limits, progress),
        };
        if known.is_decided_with_evidence(task) {
            return known;
        }
        let open = known.without_evidence(task);
        for &n in &open {
            self.offer(task, n, &known);
        }
        if under_sc == all && known.is_decided(task) {
            return known;
        }
        let part = Part::new(task, &open, 0);
        let position = |n: &usize| open.binary_search(n).ok();
        let under_sc =
            if under_sc == all { Vec::new() } else { under_sc.iter().filter_map(position).collect() };
        let members = self.members(&part.task(), under_sc, limits);
        let found = portfolio::run(&members, &part.task(), self.cores(limits), limits, progress);
        known.reopen();
        known.adopt(&open, found);
        known
    }

    /// Runs engine `buffers` for a moment if buffers may grow, and then engine `contexts` for a moment on the properties that are still open.
    fn abstract_buffers(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let few_contexts = |task: &Task<'_>| {
            let contexts = ContextBound { options: self.contexts };
            contexts.run(task, &limits.within(self.alone), progress).by(&contexts, None, task.model)
        };
        if task.model == MemoryModel::Sc || !buffers_may_grow(task.program) {
            return few_contexts(task);
        }
        let buffers = self.buffers(self.cores(limits));
        // If the sets of buffered values are finite and small, `buffers` finishes within this time.
        let known = buffers.run(task, &limits.within(self.alone / 2), progress);
        let mut known = known.by(&buffers, None, task.model);
        if known.is_decided(task) {
            return known;
        }
        let open = known.open(task);
        let later = few_contexts(&Part::new(task, &open, 0).task());
        known.reopen();
        known.adopt(&open, later);
        known
    }

    /// Engine `buffers` with at most this many workers.
    fn buffers(&self, most: usize) -> Buffers {
        Buffers { explicit: self.explicit(most).options, options: self.buffers }
    }

    /// Tells the listener a definite answer to property `n`. This answer counts unless an answer with evidence follows.
    fn offer(&self, task: &Task<'_>, n: usize, known: &Report) {
        if known.answers[n].is_definite() {
            let (answer, author) = (known.answers[n].clone(), known.authors[n].clone());
            task.tell(n, Early { answer, author });
        }
    }

    /// The members of the portfolio for a task. The properties `under_sc` are left to the reduction to SC.
    fn members(&self, task: &Task<'_>, under_sc: Vec<usize>, limits: &Limits) -> Vec<Member> {
        let cores = self.cores(limits);
        let half = (cores / 2).max(1);
        let part = |weight, width, head_start| turns::Part { weight, width, head_start };
        let explicit = self.explicit(half);
        let all: Vec<usize> = (0..task.properties.len()).filter(|n| !under_sc.contains(n)).collect();
        let mut members = Vec::new();
        let mut add = |part, engine: Box<dyn Engine>, domain, numbers: &[usize]| {
            members.push(Member { part, engine, domain, numbers: numbers.to_vec() });
        };
        if !under_sc.is_empty() {
            add(part(4.0, half, HEAD_START), Box::new(UnderSc(self.clone())), None, &under_sc);
        }
        if all.is_empty() {
            return members;
        }
        add(part(4.0, explicit.options.workers, HEAD_START), Box::new(explicit), None, &all);
        if has_versions(task, &self.explicit.options, limits) {
            let mut by_order = self.explicit(1);
            by_order.options.versions = true;
            add(part(2.0, 1, HEAD_START), Box::new(by_order), None, &all);
        }
        let beside = part(1.0, 1, Duration::ZERO);
        if Traces::are_promising(task.program) {
            add(beside, Box::new(Traces), None, &all);
        }
        let domains = match self.domain {
            Some(domain) => vec![domain],
            None => vec![DomainName::Zones, DomainName::Predicates],
        };
        let abstracts = !task.program.has_real_choices();
        for (n, domain) in domains.into_iter().enumerate().filter(|_| abstracts) {
            let options = cegar::Options { domain, ..self.cegar.options };
            let part = if n == 0 { part(2.0, 1, HEAD_START) } else { beside };
            add(part, Box::new(Cegar { options }), Some(domain), &all);
        }
        if task.model != MemoryModel::Sc && buffers_may_grow(task.program) {
            add(beside, Box::new(self.buffers(1)), None, &all);
        }
        let contexts = ContextBound { options: contexts::Options { certificates: false, ..self.contexts } };
        let (engine, domain): (Box<dyn Engine>, _) = match task.model {
            MemoryModel::Sc | MemoryModel::Tso => (Box::new(contexts), self.contexts.domain),
            MemoryModel::Pso if Reordered::new(task).is_some() => {
                (Box::new(UnderTso { engine: self.clone(), once: false }), None)
            }
            MemoryModel::Pso => (Box::new(UnderTso { engine: contexts, once: true }), self.contexts.domain),
        };
        add(beside, engine, domain, &all);
        if task.model == MemoryModel::Tso && abstracts {
            add(beside, Box::new(Lazy { options: self.lazy, sc: self.clone() }), None, &all);
        }
        members
    }
}
