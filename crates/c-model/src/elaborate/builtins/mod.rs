//! Builtins: functions without a body that are recognised by name. They belong to the C library, compilers, Linux, or verification tools.
//!
//! Each family has a module of its own, with a table from names to operations ([`Named`]) and the translation of these operations to reads, writes,
//! read-modify-writes and fences. `docs/c.md` says which event each operation is under TSO and PSO. In short: every load is a load without a fence,
//! and so is a relaxed store; a release store has a store-store fence before it, and a sequentially consistent store is a swap; every
//! read-modify-write drains the store buffer.

mod assembly;
mod atomics;
mod bits;
mod cancellation;
mod cleanup;
mod ending;
mod fences;
mod forms;
mod futex;
mod library;
mod linux;
mod locks;
mod mutex_types;
mod overlaps;
mod rcu;
mod scanning;
mod sections;
mod shared_locks;
mod strings;
#[cfg(test)]
mod tests;
mod waiting;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Expr, ExprKind, GlobalId, Type, TypeKind};
use fencewright_code::core::{Base, Location, StmtKind, Value};
use fencewright_code::numbers::{self, Operand, Range};
use fencewright_program::Span;

pub(crate) use forms::{Form, form};
pub(super) use futex::Futexes;
pub(super) use locks::Holder;
pub(super) use rcu::{Rcu, Users};
pub(super) use shared_locks::Computed;

use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// A call of a function without a body.
#[derive(Clone, Copy)]
pub(super) struct BuiltinCall<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// The arguments, converted to the parameter types.
    pub arguments: &'a [Expr],
    /// The type of the result.
    pub ty: &'a Type,
    /// Whether the caller uses the return value.
    pub used: bool,
    /// The position of the call expression.
    pub span: Span,
}

/// The family to which a name belongs, and the operation that it denotes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Atomic(atomics::Operation, atomics::Convention),
    Linux(linux::Operation),
    Fence(fences::Fence),
    Lock(locks::Operation),
    Rcu(rcu::Operation),
    Waiting(waiting::Operation),
    Ending(ending::Operation),
    Cleanup(cleanup::Operation),
    Cancellation(cancellation::Operation),
    Library(library::Operation),
    /// `scanf` and its relatives, with the index of the format.
    Scan(usize),
    Strings(strings::Operation),
    Bits(bits::Operation),
}

/// The operation that a name denotes. Some names exist both in Linux and in C11, with different arguments; then the type of the first argument
/// decides.
fn named(name: &str, arguments: &[Expr]) -> Option<Named> {
    let by_value = arguments.first().is_some_and(|first| !matches!(first.ty.kind, TypeKind::Pointer(_)));
    let atomic = || atomics::named(name).map(|(operation, convention)| Named::Atomic(operation, convention));
    let linux = || linux::named(name).map(Named::Linux);
    let atomic = if by_value { linux().or_else(atomic) } else { atomic().or_else(linux) };
    atomic
        .or_else(|| fences::named(name).map(Named::Fence))
        .or_else(|| locks::named(name).map(Named::Lock))
        .or_else(|| rcu::named(name).map(Named::Rcu))
        .or_else(|| waiting::named(name).map(Named::Waiting))
        .or_else(|| ending::named(name).map(Named::Ending))
        .or_else(|| cleanup::named(name).map(Named::Cleanup))
        .or_else(|| cancellation::named(name).map(Named::Cancellation))
        .or_else(|| library::named(name).map(Named::Library))
        .or_else(|| scanning::named(name).map(Named::Scan))
        .or_else(|| strings::named(name).map(Named::Strings))
        .or_else(|| bits::named(name).map(Named::Bits))
}

/// Advice for users of a function that is deliberately not supported; `None` for other functions.
fn advice(name: &str) -> Option<&'static str> {
    Some(match name {
        "reallocarray" => "call `realloc` with the product",
        "call_rcu" | "kfree_rcu" | "rcu_barrier" => "include <linux/rcupdate.h>, which models it",
        "srcu_read_lock" | "srcu_read_unlock" | "synchronize_srcu" | "call_srcu" => {
            "sleepable RCU is not modelled: if no two domains matter, use `rcu_read_lock` and `synchronize_rcu`"
        }
        "strcmp" | "strncmp" | "strcpy" | "strncpy" | "strlen" | "strcat" | "strerror" => {
            "include <string.h>, which models it"
        }
        "strncat" | "strdup" | "sprintf" | "snprintf" | "fgets" | "gets" | "getchar" | "read" | "fopen"
        | "atoi" | "atol" | "strtol" | "getenv" => {
            "strings and input are not modelled: use numbers, and `__VERIFIER_nondet_int()` for input"
        }
        "atexit" | "at_quick_exit" => {
            "functions for the end of the process are not called: call them before `exit`, or at the end of `main`"
        }
        "pthread_setcancelstate" | "pthread_setcanceltype" => "include <pthread.h>, which models it",
        "pthread_kill" | "signal" | "sigaction" | "raise" | "fork" | "pthread_atfork" => {
            "signals and processes are not modelled: set a flag that the thread polls"
        }
        _ => return None,
    })
}

impl Elaborator<'_> {
    /// Translates a call of a function without a body.
    pub(super) fn builtin(&mut self, name: &str, arguments: &[Expr], call: &Expr) -> Result<Operand> {
        let used = !std::mem::take(&mut self.unused);
        let call = BuiltinCall { name, arguments, ty: &call.ty, used, span: call.span };
        let result = match named(call.name, call.arguments) {
            Some(Named::Atomic(operation, convention)) => self.atomic(operation, convention, call),
            Some(Named::Linux(operation)) => self.linux(operation, call),
            Some(Named::Fence(fence)) => self.called_fence(fence, call),
            Some(Named::Lock(operation)) => self.lock_operation(operation, call),
            Some(Named::Rcu(operation)) => self.rcu(operation, call),
            Some(Named::Waiting(operation)) => self.waiting(operation, call),
            Some(Named::Ending(operation)) => self.ending(operation, call),
            Some(Named::Cleanup(operation)) => self.cleanup(operation, call),
            Some(Named::Cancellation(operation)) => self.cancellation(operation, call),
            Some(Named::Library(operation)) => self.library(operation, call),
            Some(Named::Scan(format)) => self.scan(format, call),
            Some(Named::Strings(operation)) => self.strings(operation, call),
            Some(Named::Bits(operation)) => self.bits(operation, call),
            None if call.name == "syscall" => self.system_call(call),
            None => self.unknown_function(call),
        }?;
        if let Some(certain) = cancellation::acts_at(call.name) {
            self.act_on_cancellation(certain, call.span)?;
        }
        Ok(result)
    }

    /// Calls a function of which neither a body nor a model is known: an error, reported at the end. The result is any integer, or 0 for other types.
    fn unknown_function(&mut self, call: BuiltinCall) -> Result<Operand> {
        self.evaluated(call)?;
        self.missing_function(call.name, advice(call.name), call.span);
        match call.ty.kind {
            TypeKind::Integer(ty) => Ok(self.any(call.name, call.ty, (ty.least(), ty.greatest()), call.span)),
            _ => Ok(Operand::number(0)),
        }
    }

    /// The argument with this number, counted from 0; an error if the call has too few arguments.
    fn argument<'a>(&self, call: BuiltinCall<'a>, number: usize) -> Result<&'a Expr> {
        match call.arguments.get(number) {
            Some(argument) => Ok(argument),
            None => {
                let message =
                    format!("`{}` has {} arguments here, which are too few", call.name, call.arguments.len());
                self.error(call.span, message, "look up its arguments")
            }
        }
    }

    /// Evaluates the argument with this number.
    fn argument_value(&mut self, call: BuiltinCall, number: usize) -> Result<Operand> {
        let argument = self.argument(call, number)?;
        self.value(argument)
    }

    /// The variable `errno`, if the program includes the header that declares it.
    fn errno(&self) -> Option<GlobalId> {
        let errno = self.unit.globals.iter().position(|global| &*global.name == "errno")?;
        Some(GlobalId(errno as u32))
    }

    /// Stores an error number in `errno`.
    fn set_error(&mut self, number: Operand, span: Span) -> Result<()> {
        let Some(errno) = self.errno() else { return Ok(()) };
        let object = self.global(errno)?;
        let place = Target::new(Spot::Memory(self.location(object, &[])), int());
        self.write(&place, number, span)
    }

    /// Whether a place is part of an object that does not start undefined, such as a global variable.
    fn starts_defined(&self, target: &Target) -> bool {
        let Spot::Memory(Location { base: Base::Object(object), .. }) = &target.spot else { return false };
        !self.objects[object.0 as usize].undefined
    }

    /// The scalar to which an argument points; for an `atomic_flag`, `atomic_t` or lock, the first member.
    fn argument_target(&mut self, call: BuiltinCall, number: usize) -> Result<Target> {
        let pointer = self.argument(call, number)?;
        let target = self.pointed_by(unconverted(pointer))?;
        self.scalar(target, pointer.span)
    }

    /// The first scalar inside a place.
    pub(super) fn scalar(&mut self, mut target: Target, span: Span) -> Result<Target> {
        loop {
            target = match &target.ty.kind {
                TypeKind::Record(_) => self.member(&target, 0, span)?,
                TypeKind::Array(..) | TypeKind::Void | TypeKind::Function(_) | TypeKind::Floating(_) => {
                    let help = "use an integer, a pointer, or a structure that starts with one";
                    return self.error(span, "this object does not hold a single number", help);
                }
                TypeKind::Integer(_) | TypeKind::Pointer(_) => return Ok(target),
            };
        }
    }

    /// The place of the member with this number.
    fn member(&mut self, of: &Target, number: u32, span: Span) -> Result<Target> {
        let unit = self.unit;
        let field = match &of.ty.kind {
            TypeKind::Record(record) => unit.records[record.0 as usize].fields.get(number as usize),
            _ => None,
        };
        let Some(field) = field else {
            return self.error(
                span,
                "this structure has too few members",
                "include the header that declares it",
            );
        };
        let whole = matches!(unit.records.get(record_of(&of.ty)), Some(record) if record.fields.len() > 1);
        let target = self.field(of, number, &field.ty, span)?;
        // An access to an `_Atomic` structure accesses the whole structure, not only this member. This is not supported.
        if of.ty.atomic && whole {
            let help =
                "use an atomic integer or pointer, with several values packed into its bits if necessary";
            return self.error(span, "atomic structures are not supported", help);
        }
        Ok(target)
    }

    /// A new register with a nondeterministic value in a range.
    pub(super) fn any(&mut self, name: &str, ty: &Type, range: Range, span: Span) -> Operand {
        let register = self.temporary(name, ty);
        let numbers = match range.1 > i64::MAX.into() {
            // Every 64-bit number in core code represents some value of this type.
            true => (i64::MIN, i64::MAX),
            false => (range.0 as i64, range.1 as i64),
        };
        self.emit(StmtKind::Havoc(register, numbers.0, numbers.1), span);
        Operand::new(Value::Register(register), range)
    }

    /// Discards all executions in which a condition does not hold here.
    fn assume(&mut self, condition: Operand, span: Span) {
        let condition = numbers::truth(condition);
        match condition.known() {
            Some(0) => self.end_execution(span),
            Some(_) => {}
            None => {
                self.emit(StmtKind::Assume(condition.value.clone()), span);
                self.refine(&condition, true);
            }
        }
    }

    /// Asserts a condition with the message `text`. If the condition fails, the property `assertions` is violated.
    pub(super) fn require(&mut self, condition: Operand, text: &str, span: Span) {
        let condition = numbers::truth(condition);
        match condition.known() {
            Some(0) => {
                self.emit(StmtKind::Assert(Value::Number(0), text.to_string()), span);
                self.writer.reachable = false;
            }
            Some(_) => {}
            None => self.emit(StmtKind::Assert(condition.value, text.to_string()), span),
        }
    }

    /// Emits the loads and stores by which an object is destroyed. They do not drain the store buffer. Once all other threads have ended, the
    /// accesses form one atomic step instead.
    fn destroying(&mut self, span: Span, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        match self.is_alone() {
            true => self.atomically(span, work),
            false => work(self),
        }
    }

    /// Emits the statements that `work` emits (reads, writes, assumptions and assertions) as one atomic step, which drains the store buffer. If there
    /// are no such statements, emits a fence.
    fn atomically(&mut self, span: Span, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let before = self.writer.reachable;
        let block = self.written(work)?;
        // The block itself is reachable, even if control never leaves it.
        let after = std::mem::replace(&mut self.writer.reachable, before);
        match block.is_empty() {
            true => self.emit(StmtKind::Fence, span),
            false => self.emit(StmtKind::Atomic(block), span),
        }
        self.writer.reachable = after;
        Ok(())
    }

    /// A conditional read-modify-write: a load and, if the loaded value satisfies the condition, an atomic step, which drains the store buffer and
    /// tests the condition again. Given an old value, `new` returns the condition of the write and the new value. The result is the old value.
    ///
    /// With `Options::accesses_only`, the whole call is a single event, chosen nondeterministically: the atomic step, or a load of a value for which
    /// the condition does not hold.
    fn looking_update(
        &mut self,
        place: &Target,
        new: impl Fn(&mut Self, &Operand) -> (Operand, Operand),
        span: Span,
    ) -> Result<Operand> {
        let old = self.temporary("old", &place.ty);
        let update = |this: &mut Self| {
            let found = this.update(
                place,
                |this, found| {
                    let (does, value) = new(this, found);
                    Ok((Some(does), value))
                },
                span,
            )?;
            this.write_register(old, found, span)
        };
        if let Some(guess) = self.guess(span) {
            let looks = |this: &mut Self| {
                let nothing_to_do = |this: &mut Self, seen: &Operand| numbers::not(new(this, seen).0);
                let seen = this.see(place, nothing_to_do, span)?;
                this.write_register(old, seen, span)
            };
            self.branch(guess, span, update, looks)?;
            return Ok(self.register_value(old));
        }
        let seen = self.read(place, span)?;
        self.write_register(old, seen.clone(), span)?;
        let (does, _) = new(self, &seen);
        self.branch(does, span, update, |_| Ok(()))?;
        Ok(self.register_value(old))
    }

    /// Reads a place and assumes a condition on the value, in one step. Executions in which the condition does not hold are discarded, including the
    /// read.
    fn see(
        &mut self,
        place: &Target,
        holds: impl FnOnce(&mut Self, &Operand) -> Operand,
        span: Span,
    ) -> Result<Operand> {
        let seen = self.read(place, span)?;
        if !self.writer.reachable {
            return Ok(seen);
        }
        let condition = numbers::truth(holds(self, &seen));
        let load = self.block().pop_if(|last| matches!(last.kind, StmtKind::Load(..)));
        match load.map(|load| load.kind) {
            Some(StmtKind::Load(register, from, access)) if condition.known().is_none() => {
                self.emit_await(register, from, condition.value.clone(), access, span);
                self.refine(&condition, true);
            }
            load => {
                if let Some(load) = load {
                    self.emit(load, span);
                }
                self.assume(condition, span);
            }
        }
        Ok(seen)
    }

    /// With `Options::accesses_only`, a nondeterministic value that selects the single event of a conditional call: its atomic step, or a load of a
    /// value for which the atomic step is not needed. Otherwise `None`: the caller then emits a load and, if the loaded value requires it, the atomic
    /// step.
    fn guess(&mut self, span: Span) -> Option<Operand> {
        let guesses = self.options.accesses_only && !self.executing();
        guesses.then(|| self.any("does", &int(), (0, 1), span))
    }

    /// Compares two integers or pointers for equality.
    fn same(&mut self, ty: &Type, a: Operand, b: Operand, span: Span) -> Result<Operand> {
        if let Some(result) = self.known_comparison(Operator::Equal, &a, &b) {
            return Ok(Operand::number(result.into()));
        }
        if let TypeKind::Integer(arithmetic) = ty.kind {
            return Ok(numbers::binary(self, Operator::Equal, arithmetic, a, b));
        }
        if let (Some(one), Some(other)) = (a.points, b.points) {
            self.unify(one, other, span)?;
        }
        Ok(numbers::compare(Operator::Equal, a, b))
    }
}

fn int() -> Type {
    Type { kind: TypeKind::Integer(Arithmetic::INT), atomic: false, volatile: false }
}

fn record_of(ty: &Type) -> usize {
    match &ty.kind {
        TypeKind::Record(record) => record.0 as usize,
        _ => usize::MAX,
    }
}

/// Strips from a pointer argument the conversion to `void *`, or from a pointer to a number to a pointer to a structure that contains the number.
fn unconverted(pointer: &Expr) -> &Expr {
    let ExprKind::Convert(inner) = &pointer.kind else { return pointer };
    let (TypeKind::Pointer(from), TypeKind::Pointer(to)) = (&inner.ty.kind, &pointer.ty.kind) else {
        return pointer;
    };
    match (&from.kind, &to.kind) {
        (_, TypeKind::Void) | (TypeKind::Integer(_), TypeKind::Record(_)) => unconverted(inner),
        _ => pointer,
    }
}
