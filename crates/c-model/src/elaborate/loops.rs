//! Loops. A loop that creates threads is always unrolled; one that only joins threads, if its conditions are known and its iterations are few. Other
//! loops are kept, except while `main` is executed at translation time as the only thread.

use fencewright_c::typed::tree::{Expr, Statement};
use fencewright_code::core::{StmtKind, Value};
use fencewright_code::numbers::{Operand, truth};
use fencewright_program::Span;

use super::env::Env;
use super::frames::{Context, How, Jump};
use super::labels::{Join, merge};
use super::lifetimes::passed;
use super::statements::has_entry;
use super::{Elaborator, Phase, Result};

/// Maximum number of unrolled iterations with an unknown condition, in a loop that creates threads.
const MOST_ROUNDS: usize = 16;
/// Maximum number of unrolled iterations of a loop that creates threads, including those whose condition is known.
const MOST_KNOWN_ROUNDS: usize = 10_000;
/// Maximum number of unrolled iterations of a loop that only joins threads.
const MOST_WAITS: usize = 64;

/// The parts of a loop.
#[derive(Clone, Copy)]
struct Parts<'a> {
    /// Whether the condition is also evaluated before the first iteration: false for `do`.
    first: bool,
    condition: Option<&'a Expr>,
    step: Option<&'a Expr>,
    body: &'a Statement,
    span: Span,
}

impl Elaborator<'_> {
    pub(super) fn while_loop(&mut self, condition: &Expr, body: &Statement, span: Span) -> Result<()> {
        self.any_loop(Parts { first: true, condition: Some(condition), step: None, body, span })
    }

    pub(super) fn do_loop(&mut self, body: &Statement, condition: &Expr, span: Span) -> Result<()> {
        self.any_loop(Parts { first: false, condition: Some(condition), step: None, body, span })
    }

    pub(super) fn for_loop(
        &mut self,
        first: &[Statement],
        condition: Option<&Expr>,
        step: Option<&Expr>,
        body: &Statement,
        span: Span,
    ) -> Result<()> {
        self.scope(passed(first, std::iter::once(body)), span, |this| {
            first.iter().try_for_each(|statement| this.statement(statement))?;
            this.any_loop(Parts { first: true, condition, step, body, span })
        })
    }

    fn any_loop(&mut self, parts: Parts<'_>) -> Result<()> {
        self.nested(|this| this.loop_inside(parts))
    }

    fn loop_inside(&mut self, parts: Parts<'_>) -> Result<()> {
        let others: Vec<&Expr> = parts.condition.iter().chain(&parts.step).copied().collect();
        let function = self.frame().function;
        let (creates, waits) = self.graph.of_loop(self.unit, function, parts.body, &others);
        let entered = parts.first && !self.writer.reachable && has_entry(parts.body);
        if entered && (self.phase == Phase::Alone || creates) {
            // The execution at translation time cannot follow a jump into a loop, so the next attempt emits code from the start.
            self.refuted |= self.phase == Phase::Alone;
            return self.error(
                parts.span,
                "control jumps into a loop that creates threads",
                "enter the loop at its beginning",
            );
        }
        if self.phase == Phase::Alone || creates {
            return self.unrolled(parts, true).map(|_| ());
        }
        if waits && !entered {
            let mark = self.mark();
            let mut done = false;
            let code = self.written(|this| {
                done = this.unrolled(parts, false)?;
                Ok(())
            })?;
            if done {
                self.block().extend(code);
                return Ok(());
            }
            self.back_to(&mark);
        }
        self.must_run();
        self.kept_loop(parts)
    }

    /// Unrolls a loop. Unless `forced`, gives up and returns false if a condition is unknown or the loop has too many iterations.
    fn unrolled(&mut self, parts: Parts<'_>, forced: bool) -> Result<bool> {
        let exit = self.label();
        let mut leave = Jump::new(How::Goto(exit), self.writer.level);
        let (mut unknown, mut rounds) = (0, 0);
        loop {
            self.step(parts.span)?;
            if (parts.first || rounds > 0) && !self.goes_on(parts, &mut leave, &mut unknown)? {
                break;
            }
            rounds += 1;
            if !forced && (unknown > 0 || rounds > MOST_WAITS) {
                return Ok(false);
            }
            if !self.executing() && (unknown > MOST_ROUNDS || rounds > MOST_KNOWN_ROUNDS) {
                let text =
                    format!("more than {} rounds of a loop that creates threads", unknown.max(rounds) - 1);
                self.emit(StmtKind::Beyond(Value::Number(1), text), parts.span);
                self.writer.reachable = false;
                break;
            }
            leave = self.nested(|this| {
                let next = Jump::new(How::Goto(this.label()), this.writer.level);
                let (left, next) = this.round(parts, leave, next)?;
                this.land(next, parts.span);
                Ok(left)
            })?;
            if !self.writer.reachable {
                break;
            }
            if let Some(step) = parts.step {
                self.group(step.span, |this| this.effect(step))?;
            }
        }
        self.land(leave, parts.span);
        Ok(true)
    }

    /// Evaluates the condition of the next unrolled iteration. Returns whether control may enter the iteration.
    fn goes_on(&mut self, parts: Parts<'_>, leave: &mut Jump, unknown: &mut usize) -> Result<bool> {
        let Some(condition) = parts.condition else { return Ok(self.writer.reachable) };
        if !self.writer.reachable {
            return Ok(false);
        }
        self.group(condition.span, |this| {
            let value = truth(this.value(condition)?);
            *unknown += usize::from(value.known().is_none());
            this.leave_unless(value, leave, condition.span)
        })?;
        Ok(self.writer.reachable)
    }

    /// Emits a jump out of the loop, taken if the value is zero.
    fn leave_unless(&mut self, value: Operand, leave: &mut Jump, span: Span) -> Result<()> {
        let out = |this: &mut Self| {
            this.leave(leave, span);
            Ok(())
        };
        self.branch(value, span, |_| Ok(()), out)
    }

    /// Elaborates the body of a loop once. Returns the jumps that leave the loop, and the jumps to the next iteration.
    fn round(&mut self, parts: Parts<'_>, leave: Jump, next: Jump) -> Result<(Jump, Jump)> {
        let scopes = self.frame().scopes.len();
        let context = Context { leave, next: Some(next), cases: None, scopes };
        let context = self.in_context(context, |this| this.statement(parts.body))?;
        Ok((context.leave, context.next.expect("loops have it")))
    }

    /// Emits the label that is the target of a jump, if the jump occurs; the code after the loop or iteration continues there.
    pub(super) fn land(&mut self, jump: Jump, span: Span) {
        let How::Goto(label) = jump.how else { return };
        if jump.env.is_none() {
            return;
        }
        let mut join = Join { label, env: jump.env, supposed: None };
        self.arrive(&mut join, span);
    }

    /// Elaborates a loop as a loop of core code: elaborates the body repeatedly, until the facts at the head of the loop are a fixpoint.
    fn kept_loop(&mut self, parts: Parts<'_>) -> Result<()> {
        if !self.writer.reachable {
            if !has_entry(parts.body) {
                return Ok(());
            }
            // Control enters the loop only by a jump from elsewhere. The facts at that jump are unknown here, so none are assumed.
            self.writer.reachable = true;
            self.writer.env = Env::default();
        }
        let mut mark = self.mark();
        loop {
            self.step(parts.span)?;
            let (mut back, mut left) = (None, None);
            let code = self.in_loop(|this| {
                this.written(|this| {
                    (back, left) = this.rounds(parts)?;
                    Ok(())
                })
            })?;
            let mut head = mark.env.clone();
            if let Some(back) = &mut back {
                mark.forget_later(back);
                head.join(back, true);
            }
            if head == mark.env {
                if !code.is_empty() || left.is_none() {
                    self.writer.reachable = true;
                    self.emit(StmtKind::Loop(code), parts.span);
                }
                self.writer.reachable = left.is_some();
                self.writer.env = left.unwrap_or_default();
                return Ok(());
            }
            mark.env = head;
            self.back_to(&mark);
        }
    }

    /// Runs `work` for code that may be executed any number of times.
    fn in_loop<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.writer.loops += 1;
        let done = self.in_branch(work);
        self.writer.loops -= 1;
        done
    }

    /// Elaborates one iteration, under facts that hold in all iterations. Returns the facts at its end, and the facts where control leaves the loop.
    fn rounds(&mut self, parts: Parts<'_>) -> Result<(Option<Env>, Option<Env>)> {
        let mut leave = Jump::new(How::Break, self.writer.level);
        if parts.first {
            self.test(parts, &mut leave)?;
        }
        let inside = parts.step.is_some() || (!parts.first && parts.condition.is_some());
        let how = if inside { How::Goto(self.label()) } else { How::Continue };
        let (left, next) = self.round(parts, leave, Jump::new(how, self.writer.level))?;
        leave = left;
        let mut back = None;
        if inside {
            self.land(next, parts.span);
        } else {
            back = next.env;
        }
        if let Some(step) = parts.step {
            self.group(step.span, |this| this.effect(step))?;
        }
        if !parts.first {
            self.test(parts, &mut leave)?;
        }
        if self.writer.reachable {
            merge(&mut back, &self.writer.env);
        }
        Ok((back, leave.env))
    }

    /// Emits a jump out of the loop, taken if the condition is zero.
    fn test(&mut self, parts: Parts<'_>, leave: &mut Jump) -> Result<()> {
        let Some(condition) = parts.condition else { return Ok(()) };
        if !self.writer.reachable {
            return Ok(());
        }
        self.group(condition.span, |this| {
            let value = this.value(condition)?;
            this.leave_unless(value, leave, condition.span)
        })
    }
}
