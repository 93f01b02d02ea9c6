//! Evidence for an answer: for each fence a violation that occurs without it, or the reason why no set of fences suffices.

use fencewright_program::reference::Access;
use fencewright_program::{Event, EventKind, MemoryModel, Replayed, Trace};

use crate::fenced::Fenced;
use crate::goal::{Broken, Examined};
use crate::hitting::{Clause, Item, contradiction};
use crate::synthesis::{Because, Learnt, Search, Synthesis, Tried, Unfixable, Verdict};

impl Search<'_> {
    /// An execution of the marked program (see [`Fenced`]), prepared for display: without the empty steps at unused places. With `sc`, it is shown as
    /// an SC execution, in which every store reaches memory immediately, if this execution has the same violation.
    fn shown(&self, set: &[Item], trace: &Trace, broken: &Broken, sc: bool) -> Option<Because> {
        let fenced = Fenced::new(self.placed, &self.catalogue.chosen(set));
        let plain = fenced.plain(trace);
        let replay = |trace: &Trace, model| broken.replay(&fenced.program, model, trace);
        let first = replay(&plain, self.goal.model())?;
        let under_sc = || {
            let late = Trace { events: stores_on_arrival(&first), ..plain.clone() };
            let flush = |e: &Event| matches!(e.kind, EventKind::Flush { .. });
            let steps = plain.events.iter().filter(|e| !flush(e)).cloned().collect();
            let early = Trace { events: steps, ..plain.clone() };
            replay(&late, MemoryModel::Sc).or_else(|| replay(&early, MemoryModel::Sc))
        };
        let replayed = sc.then(under_sc).flatten().unwrap_or(first);
        Some(Because::new(fenced.program, replayed, broken))
    }

    /// A violation of the program that has all fences of `set` except `item`, as evidence that `item` is needed.
    pub(crate) fn without(&self, set: &[Item], item: Item) -> Option<Because> {
        // There may be thousands of fences, and building the program without one of them takes time, so the limits are checked first.
        if self.is_over() {
            return None;
        }
        let rest: Vec<Item> = set.iter().copied().filter(|other| *other != item).collect();
        // First tries the violations found earlier that the remaining fences may not prevent, that is, those whose clauses they do not satisfy.
        let left = |learnt: &&Learnt| !learnt.clause.is_satisfied(|item| rest.contains(&item));
        for Learnt { broken, violation, .. } in self.learnt.iter().filter(left) {
            let shown = violation.as_ref().and_then(|v| self.shown(&rest, v, broken, false));
            // An execution that violates the goal as a whole (`Broken::Goal`) does not prove the violation by itself, so the program has to be
            // examined instead.
            if *broken != Broken::Goal && shown.is_some() {
                return shown;
            }
        }
        let fenced = Fenced::new(self.placed, &self.catalogue.chosen(&rest));
        let Examined::Violated(violation) = self.goal.examine(&fenced.program, self.limits, self.progress)
        else {
            return None;
        };
        let Learnt { violation, broken, .. } = self.learn(&fenced, &rest, violation)?;
        self.shown(&rest, violation.as_ref()?, &broken, false)
    }

    /// The answer if the clauses learnt so far are unsatisfiable.
    pub(crate) fn unfixable(&mut self) -> Synthesis {
        let clauses = self.clauses();
        let core = contradiction(self.catalogue.all.len(), &clauses, &|| self.is_over());
        let is_inevitable = |n: &usize| clauses[*n] == Clause::default();
        let inevitable = core.iter().any(is_inevitable);
        // Looks for a violation of the program without any fence: one that no candidate prevents, if that is the reason; otherwise any, preferably one
        // from the unsatisfiable core of the clauses.
        let seen = core.iter().copied().chain(0..self.learnt.len());
        let seen = seen.filter(|n| !inevitable || is_inevitable(n)).map(|n| &self.learnt[n]);
        let mut as_written = seen.filter(|learnt| learnt.clause.unless.is_empty());
        let because = as_written.find_map(|Learnt { broken, violation, .. }| {
            self.shown(&[], violation.as_ref()?, broken, inevitable)
        });
        let names = |wanted: &dyn Fn(&Learnt) -> bool| {
            let learnt = core.iter().map(|&n| &self.learnt[n]).filter(|learnt| wanted(learnt));
            let mut names: Vec<String> =
                learnt.filter_map(|learnt| learnt.broken.name().map(str::to_owned)).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let (properties, existence) = (names(&|_| true), names(&|learnt| learnt.violation.is_none()));
        let spared = self.with_spared().unwrap_or_default();
        let spared = self.catalogue.chosen(&spared).into_iter().cloned().collect();
        let why = Unfixable { because, inevitable, properties, existence, spared };
        Synthesis { unfixable: Some(why), ..self.ended(Verdict::Unfixable) }
    }

    /// A sufficient set that may also use the places that the source spares.
    fn with_spared(&mut self) -> Option<Vec<Item>> {
        if !self.catalogue.all.iter().any(|candidate| candidate.spared) {
            return None;
        }
        self.allow_spared = true;
        loop {
            let set = self.cheapest(1).ok()?.sets.pop()?;
            match self.attempt(&set) {
                Tried::Sufficient(..) => return Some(set),
                Tried::Insufficient => {}
                Tried::Unknown(_) => return None,
            }
        }
    }
}

/// The steps of an execution, with every store moved to the time of its flush if its thread takes no other step in between; flushes are left out.
fn stores_on_arrival(replayed: &Replayed) -> Vec<Event> {
    let mut events: Vec<Option<Event>> = replayed.events.iter().cloned().map(Some).collect();
    for n in 0..events.len() {
        let Event { thread, kind: EventKind::Flush { .. } } = replayed.events[n] else { continue };
        // A store moves only if it is the last step of its thread before the flush.
        let own = |m: &usize| {
            replayed.events[*m].thread == thread
                && !matches!(replayed.events[*m].kind, EventKind::Flush { .. })
        };
        let step = (0..n).rev().find(own);
        let stored = step.filter(|&m| {
            let buffered = |a: &Access| matches!(a, Access::Write { buffered: true, .. });
            replayed.effects[m].iter().any(buffered)
        });
        events[n] = stored.and_then(|m| events[m].take());
    }
    events.into_iter().flatten().collect()
}
