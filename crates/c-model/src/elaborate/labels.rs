//! Joins of control flow: labels, ends of functions, and branches.

use std::collections::BTreeSet;

use fencewright_code::core::{Known, Label, StmtKind};
use fencewright_code::numbers::{Operand, implied, truth};
use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::env::{Env, Fact};
use super::frames::{How, Jump, Slot};
use super::{Elaborator, Result};

/// A label, with the join of the facts at the jumps to it.
#[derive(Debug)]
pub(super) struct Join {
    pub label: Label,
    /// The join of the facts at the jumps seen so far; `None` if there was no jump.
    pub env: Option<Env>,
    /// The facts assumed when the code after the label was elaborated; `None` if that has not happened yet.
    pub supposed: Option<Env>,
}

/// A snapshot of the state of the elaborator, which is restored when an attempt is discarded.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    registers: usize,
    objects: usize,
    calls: usize,
    dispatches: usize,
    sizes: usize,
    pub env: Env,
    reachable: bool,
    pending: BTreeSet<usize>,
    joined: BTreeSet<usize>,
    detached: Vec<bool>,
    level: usize,
    sites: FxHashMap<Span, usize>,
    phase: super::Phase,
}

impl Mark {
    /// Drops facts about registers and objects that were created after the snapshot.
    pub(super) fn forget_later(&self, env: &mut Env) {
        env.forget_from(self.registers, self.objects);
    }
}

/// Joins facts into an environment; `None` stands for an unreachable point.
pub(super) fn merge(into: &mut Option<Env>, env: &Env) {
    match into {
        Some(known) => known.join(env, false),
        None => *into = Some(env.clone()),
    }
}

impl Elaborator<'_> {
    pub(super) fn join(&mut self) -> Join {
        Join { label: self.label(), env: None, supposed: None }
    }

    /// Records a conditional jump to the end of the function, loop or `switch` at this nesting level. The code up to that end then runs only if the
    /// jump is not taken.
    pub(super) fn divert(&mut self, level: usize) {
        if self.writer.branches > 0 && self.writer.reachable {
            self.writer.pending.insert(level);
        }
    }

    /// Runs `work` for a function, loop or `switch`, one nesting level deeper. At its end, the conditional jumps to this end are no longer pending.
    pub(super) fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.writer.level += 1;
        let result = work(self);
        let level = self.writer.level;
        self.writer.pending.retain(|pending| *pending < level);
        self.writer.level -= 1;
        result
    }

    /// Runs `work` for code that may be skipped, such as a branch.
    pub(super) fn in_branch<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.writer.branches += 1;
        let done = work(self);
        self.writer.branches -= 1;
        done
    }

    /// Joins the current facts into the facts at a jump target.
    pub(super) fn note(&mut self, into: &mut Option<Env>) {
        if self.writer.reachable {
            merge(into, &self.writer.env);
        }
    }

    /// Continues after a label that control reaches by falling through or by jumps.
    pub(super) fn arrive(&mut self, join: &mut Join, span: Span) {
        self.note(&mut join.env);
        let Some(env) = join.env.clone() else { return };
        self.writer.reachable = true;
        self.writer.env = env.clone();
        join.supposed = Some(env);
        if !self.executing() {
            self.emit(StmtKind::Label(join.label), span);
        }
    }

    /// Emits a jump, and records the current facts at its target.
    pub(super) fn leave(&mut self, jump: &mut Jump, span: Span) {
        if !self.writer.reachable {
            return;
        }
        merge(&mut jump.env, &self.writer.env);
        self.divert(jump.level);
        if !self.executing() {
            match jump.how {
                How::Break => self.emit(StmtKind::Break, span),
                How::Continue => self.emit(StmtKind::Continue, span),
                How::Goto(label) => self.emit(StmtKind::Goto(label), span),
            }
        }
        self.writer.reachable = false;
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            registers: self.writer.registers.len(),
            objects: self.objects.len(),
            calls: self.calls.len(),
            dispatches: self.dispatches.len(),
            sizes: self.sizes.len(),
            env: self.writer.env.clone(),
            reachable: self.writer.reachable,
            pending: self.writer.pending.clone(),
            joined: self.writer.joined.clone(),
            detached: self.detached(),
            level: self.writer.level,
            sites: self.sites(),
            phase: self.phase,
        }
    }

    /// Undoes an attempt: removes the registers, objects, calls and threads created since the snapshot, and restores the facts of the snapshot.
    /// Unification, warnings and recorded uses remain. Label numbers are not reused, because functions keep the numbers of their labels from attempt
    /// to attempt.
    pub(super) fn back_to(&mut self, mark: &Mark) {
        self.uncreate(&mark.detached, &mark.sites, mark.objects);
        self.writer.registers.truncate(mark.registers);
        self.objects.truncate(mark.objects);
        self.held.retain(|(_, lock, ..), held| lock.0.max(held.0) < mark.objects as u32);
        self.asleep.retain(|_, object| object.0 < mark.objects as u32);
        self.reach.truncate(mark.objects);
        self.globals.retain(|_, object| (object.0 as usize) < mark.objects);
        self.calls.truncate(mark.calls);
        self.dispatches.truncate(mark.dispatches);
        self.sizes.truncate(mark.sizes);
        self.writer.env = mark.env.clone();
        self.writer.reachable = mark.reachable;
        self.writer.pending.clone_from(&mark.pending);
        self.writer.joined.clone_from(&mark.joined);
        self.writer.level = mark.level;
        // If the execution at translation time ended after the snapshot, it is resumed.
        self.phase = mark.phase;
        let (registers, objects) = (mark.registers, mark.objects);
        // Facts at labels must not refer to removed registers and objects.
        for env in self.frame().labels.values_mut().filter_map(|join| join.env.as_mut()) {
            env.forget_from(registers, objects);
        }
        for slot in &mut self.frame().slots {
            let gone = match slot {
                Some(Slot::Register(register)) => register.0 as usize >= registers,
                Some(Slot::Object(object)) => object.0 as usize >= objects,
                None => false,
            };
            if gone {
                *slot = None;
            }
        }
    }

    /// Elaborates a branch on a condition.
    pub fn branch(
        &mut self,
        condition: Operand,
        span: Span,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let condition = truth(condition);
        match condition.known() {
            Some(0) => return otherwise(self),
            Some(_) => return then(self),
            None => {}
        }
        // An unknown condition cannot be decided at translation time, so the execution of `main` ends here.
        self.must_run();
        let (env, reachable) = (self.writer.env.clone(), self.writer.reachable);
        self.refine(&condition, true);
        let then = self.in_branch(|this| this.written(then))?;
        let (after, comes) = (
            std::mem::replace(&mut self.writer.env, env),
            std::mem::replace(&mut self.writer.reachable, reachable),
        );
        self.refine(&condition, false);
        let otherwise = self.in_branch(|this| this.written(otherwise))?;
        let also = self.writer.reachable;
        match (comes, also) {
            (true, true) => self.writer.env.join(&after, false),
            (true, false) => self.writer.env = after,
            _ => {}
        }
        if !(then.is_empty() && otherwise.is_empty()) {
            self.writer.reachable = true;
            self.emit(StmtKind::If(condition.value, then, otherwise), span);
        }
        // Control may enter a branch by a jump to a label even if the condition excludes the branch. So whether control reaches the end of a branch
        // follows from its code, not from the condition.
        self.writer.reachable = comes || also;
        Ok(())
    }

    /// Narrows the ranges of registers to the values for which a condition has the truth value `holds`.
    pub(super) fn refine(&mut self, condition: &Operand, holds: bool) {
        let mut facts = Vec::new();
        implied(&condition.value, holds, &mut |register, range| facts.push((register, range)));
        for (register, range) in facts {
            let old = self.register_value(register);
            let within = (old.range.0.max(range.0), old.range.1.min(range.1));
            // Core code represents a 64-bit unsigned value from 2^63 on by a negative number, so a range for the number is not a range for the value.
            if within.0 > within.1 || old.range.1 > i64::MAX.into() {
                continue;
            }
            let known =
                (within.0 == within.1 && old.points.is_none()).then_some(Known::Number(within.0 as i64));
            self.writer.env.registers.insert(register, Fact { known, range: within });
        }
    }

    /// Ends the execution at translation time, because control depends on an unknown value; the execution fails if `main` has created no thread yet.
    pub(super) fn must_run(&mut self) {
        match self.phase {
            super::Phase::Alone => self.refuted = true,
            super::Phase::Creating => self.run(),
            super::Phase::Running => {}
        }
    }
}
