//! Engine `auto`: all the others, side by side; the first answer that is confirmed counts.
//!
//! The explicit engine goes first, for a moment: most programs of the literature have few states, and for these it is the fastest and exact.
//! Where buffers may grow without end, `buffers` is next, because sets of the values in them are finite. Then `contexts` runs for a moment: most violations take few contexts, whatever the values and however long the buffers. Properties that
//! are still open go to a *portfolio* (`portfolio`): engines in threads of their own that take turns on the cores. The explicit engine finds
//! violations and finishes large finite state spaces, and a second time, up to the order of versions, infinite ones; where executions end, it goes
//! through these, too, one for each trace; `cegar` proves programs
//! whose state space is infinite, with zones and beside them with predicates; `lazy` goes by way of SC; `contexts` goes on. An answer with
//! its evidence passes the door at once, and then nobody works on that property any more.
//!
//! Threads that cannot matter for a property are left out (`slices`) as soon as the explicit engine's first moment was not enough: then the question
//! goes to the program without them, with everything there is.
//!
//! Properties that look at registers and properties that do not are asked about apart (`apart`), because together they have more states.
//!
//! Where a program chooses among very many values that are only compared, most of them do the same, and it is a question about the program with
//! fewer values (`fewer_values`).
//!
//! Before that, it is looked up in the text of the program whether a weaker memory model is a stronger one in disguise (`by_way_of`): where
//! no store can overtake another one PSO is TSO, and where no store can be delayed past a load and be noticed TSO is SC. Then the question
//! goes to the stronger model, with everything there is, and a proof comes back as a certificate that says why it is one. Where only a few stores can overtake
//! others, PSO is TSO for a larger program: then one member of the portfolio asks about that, or all do if SC decides it. Where many can, `contexts`, which
//! knows no PSO, looks for violations with one store of each thread out of order at a time.

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

/// How long the explicit engine goes alone, for most questions.
const ALONE: Duration = Duration::from_millis(50);

/// So many times longer it goes alone where every thread can come to its end.
const ENDING: u32 = 4;

/// How long the explicit engine and `cegar` with zones run before the others of a portfolio get their turns: most questions that take more
/// than a moment are still quick for one of them.
const HEAD_START: Duration = Duration::from_millis(400);

/// The engine.
#[derive(Clone, Debug)]
pub struct Auto {
    /// The engine for finite state spaces.
    pub explicit: Explicit,
    /// The engine for unbounded programs. Its domain counts only if [`Auto::domain`] says so.
    pub cegar: Cegar,
    /// The engine for few contexts. It asks for certificates only in its first moment: in a portfolio others look for them.
    pub contexts: contexts::Options,
    /// How stores are delayed on the way to SC.
    pub lazy: lazy::Options,
    /// How buffers are abstracted where they may grow.
    pub buffers: buffers::Options,
    /// How integers are represented where they are abstracted; if nobody says so, in several ways.
    pub domain: Option<DomainName>,
    /// How long the explicit engine runs alone, and then how long `contexts` does; if that is no time at all, the portfolio comes first.
    pub alone: Duration,
    /// Whether threads that cannot matter for a property are left out, after the explicit engine's first moment.
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
            options: &[
                "--search",
                "--jobs",
                "--buffer",
                "--no-live",
                "--reduction",
                "--no-local-first",
                "--no-symmetry",
                "--k",
                "--kept",
                "--summaries",
                "--domain",
                "--clip",
                "--fix",
                "--buffer-domain",
            ],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        // What comes of it has fewer values each time, and hardly ever choices that could be narrowed once more.
        if let Some(narrowed) = Narrowed::of(task) {
            return narrowed.run(|task| self.run(task, limits, progress));
        }
        if self.alone.is_zero() {
            return self.rest(task, limits, progress);
        }
        let engine = self.explicit(self.cores(limits));
        // Where every thread can come to its end, the engine mostly does too, and whoever is interrupted has to begin again.
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
    /// How many cores there are for a run with these limits.
    fn cores(&self, limits: &Limits) -> usize {
        // One more than one: whoever asks for a single thread gets one explicit worker, and the others beside it.
        let all = self.explicit.options.workers.max(2);
        limits.seat().map_or(all, |seat| seat.cores().min(all))
    }

    /// The explicit engine with at most so many workers.
    fn explicit(&self, most: usize) -> Explicit {
        let workers = self.explicit.options.workers.min(most).max(1);
        Explicit { options: Options { workers, ..self.explicit.options.clone() } }
    }

    /// What comes after the explicit engine's first moment.
    fn rest(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        if self.slices {
            // What comes of it has no slices of its own, or was made by a transformation whose proofs are about all of its threads.
            let auto = Auto { slices: false, ..self.clone() };
            return match Sliced::of(task) {
                Some(sliced) => sliced.run(&auto, self.cores(limits), limits, progress),
                None => auto.rest(task, limits, progress),
            };
        }
        // One certificate for all properties is easier to keep.
        if let Some(groups) = apart::groups(task).filter(|_| !self.explicit.options.certificates) {
            return apart::run(groups, self, task, limits, progress);
        }
        if let Some(way) = Reordered::new(task).filter(|way| way.suffices(limits)) {
            return way.under_tso(|task| self.rest(task, limits, progress));
        }
        // Some properties may be the same question under SC.
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

    /// Engine `buffers` for a moment, where buffers may grow, and engine `contexts` for a moment.
    fn abstract_buffers(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let few_contexts = |task: &Task<'_>| {
            let contexts = ContextBound { options: self.contexts };
            contexts.run(task, &limits.within(self.alone), progress).by(&contexts, None, task.model)
        };
        if task.model == MemoryModel::Sc || !buffers_may_grow(task.program) {
            return few_contexts(task);
        }
        let buffers = self.buffers(self.cores(limits));
        // Where sets decide, they do so at once.
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

    /// Engine `buffers` with at most so many workers.
    fn buffers(&self, most: usize) -> Buffers {
        Buffers { explicit: self.explicit(most).options, options: self.buffers }
    }

    /// Tells a definite answer without evidence, which counts if nothing better follows.
    fn offer(&self, task: &Task<'_>, n: usize, known: &Report) {
        if known.answers[n].is_definite() {
            let (answer, author) = (known.answers[n].clone(), known.authors[n].clone());
            task.tell(n, Early { answer, author });
        }
    }

    /// Who takes part in the portfolio for a task. The properties `under_sc` are decided by way of SC alone.
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
