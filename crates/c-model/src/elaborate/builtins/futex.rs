//! Futexes of Linux: `syscall(SYS_futex, ...)`.
//!
//! `FUTEX_WAIT` compares the word and goes to sleep in one atomic step, which drains the store buffer, as every system call here does. A wait may end
//! without a wake-up and, with a timeout, at any moment. So for safety properties a thread that sleeps may continue at any time, and the model does
//! not record which threads sleep.
//!
//! For `deadlock` and `termination` such wake-ups would hide lost ones, so there they do not happen (timeouts do). Then, and where a program uses the
//! number of threads that it has woken, each thread that waits for some futex has a pointer to the word on which it sleeps. A wake-up sets some of
//! these pointers to null, as many as it may; which of them is a choice.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank};
use fencewright_c::headers::system_call;
use fencewright_c::typed::tree::{Expr, ExprKind, Type, TypeKind};
use fencewright_code::core::{Access, Object, ObjectId, Origin, Purpose, Register, StmtKind, ThreadNumber};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::expressions::pointee;
use super::super::objects::{Spot, Target};
use super::super::{Elaborator, Result};
use super::{BuiltinCall, int, unconverted};

/// The number of the system call `futex`.
const FUTEX: i128 = 202;
/// `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`, which make no difference in the model.
const FLAGS: i128 = 128 | 256;
/// The type of a futex word.
const WORD: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Int, signed: false });
/// `FUTEX_BITSET_MATCH_ANY`.
const ANY_BITS: i128 = 0xffff_ffff;
/// `EAGAIN`.
const AGAIN: i128 = 11;
/// `EINVAL`: the result of a bitset of 0.
const INVALID: i128 = 22;
/// `EINTR`.
const INTERRUPTED: i128 = 4;
/// `ETIMEDOUT`.
const TIMED_OUT: i128 = 110;

/// The uses of futexes that earlier attempts have found; they decide which state of sleepers the model has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Futexes {
    /// The threads that wait for futexes, in order.
    sleepers: Vec<ThreadNumber>,
    /// Whether the program uses the number of threads that it has woken.
    counted: bool,
    /// Whether the program distinguishes waiting threads by bitsets.
    masked: bool,
}

impl Futexes {
    /// Adds what another attempt has found. Returns whether there was something new.
    pub(in super::super) fn learn(&mut self, found: &Futexes) -> bool {
        let before = self.clone();
        self.sleepers.extend(&found.sleepers);
        self.sleepers.sort();
        self.sleepers.dedup();
        self.counted |= found.counted;
        self.masked |= found.masked;
        *self != before
    }
}

/// The address of a futex word, and the type to which it points.
#[derive(Clone)]
struct Address {
    value: Operand,
    to: Type,
}

/// The sleeping threads that a wake-up may wake: those that sleep on the word at this address and whose bitset has a bit in common with `bits`.
struct Wanted {
    address: Operand,
    bits: Operand,
}

/// A thread that may sleep, as a wake-up finds it.
struct Sleeper {
    place: Target,
    /// The word on which it sleeps.
    at: Operand,
    /// Whether the wake-up may wake it ([`Wanted`]).
    matches: Operand,
}

impl Elaborator<'_> {
    /// `syscall`: futexes, and no other system call.
    pub(super) fn system_call(&mut self, call: BuiltinCall) -> Result<Operand> {
        let number = self.argument_value(call, 0)?;
        if number.known() != Some(FUTEX) {
            let which = number.known().and_then(system_call);
            let what =
                which.map_or("this system call".to_string(), |name| format!("the system call `{name}`"));
            let help =
                "only `futex` is modelled: write a function that does what the call does for the harness";
            return self.error(call.span, format!("{what} is not supported"), help);
        }
        let Some(operation) = self.argument_value(call, 2)?.known() else {
            let help = "make the function that passes it `inline`, or pass a constant";
            return self.error(call.span, "the operation on this futex is not known", help);
        };
        let operation = operation & !FLAGS;
        if matches!(operation, 9 | 10) && self.argument_value(call, 6)?.known() == Some(0) {
            self.set_error(Operand::number(INVALID), call.span)?;
            return Ok(Operand::number(-1));
        }
        match operation {
            0 => self.futex_wait(call, Operand::number(ANY_BITS)),
            9 => {
                let bits = self.argument_value(call, 6)?;
                self.futex_wait(call, bits)
            }
            1 => self.futex_wake(call, Operand::number(ANY_BITS)),
            10 => {
                let bits = self.argument_value(call, 6)?;
                self.futex_wake(call, bits)
            }
            3 => self.futex_requeue(call, false),
            4 => self.futex_requeue(call, true),
            other => {
                let name =
                    ["FUTEX_FD", "FUTEX_WAKE_OP", "FUTEX_LOCK_PI", "FUTEX_UNLOCK_PI", "FUTEX_TRYLOCK_PI"];
                let index = usize::try_from(other).ok().and_then(|other| match other {
                    2 => Some(0),
                    5..=8 => Some(other - 4),
                    _ => None,
                });
                let name = index.map_or("this operation on a futex", |index| name[index]);
                let help =
                    "FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE and FUTEX_CMP_REQUEUE are, also with bitsets";
                self.error(call.span, format!("{name} is not supported"), help)
            }
        }
    }

    /// Whether it matters which threads sleep.
    fn tracks_sleepers(&self) -> bool {
        !self.options.accesses_only && (!self.options.spurious || self.premises.futexes.counted)
    }

    /// The futex word at an address.
    fn futex_word(&mut self, address: &Address, span: Span) -> Result<Target> {
        let word = self.pointed(&address.value, &address.to, span)?;
        let word = self.scalar(word, span)?;
        match word.ty.kind {
            TypeKind::Integer(Arithmetic::Integer(integer)) if integer.bits() == 32 => Ok(word),
            _ => self.error(span, "a futex is a number of 32 bits", "use an `int` or a `uint32_t`"),
        }
    }

    /// The address of a futex word, which need not exist.
    fn futex_address(&mut self, call: BuiltinCall, argument: usize) -> Result<Address> {
        let address = unconverted(self.argument(call, argument)?);
        let value = self.value(address)?;
        let value = self.kept_value(value, &address.ty, call.span)?;
        Ok(Address { value, to: pointee(&address.ty) })
    }

    /// The variable of a thread for futexes: the word on which it sleeps, or the bits for which it waits there.
    fn sleeping(&mut self, thread: ThreadNumber, what: &'static str, span: Span) -> Target {
        let ty = match what {
            ASLEEP => word_pointer(),
            _ => Type { kind: TypeKind::Integer(WORD), atomic: false, volatile: false },
        };
        let object = match self.asleep.get(&(thread, what)) {
            Some(&object) => object,
            None => {
                let object = self.sleeping_object(format!("{what}_{}", thread.0), &ty, span);
                self.asleep.insert((thread, what), object);
                object
            }
        };
        Target::new(Spot::Memory(self.location(object, &[])), ty).accessed(Access::Own)
    }

    fn sleeping_object(&mut self, name: String, ty: &Type, span: Span) -> ObjectId {
        let node = self.nodes.object(ty, span);
        let (origin, purpose) = (Origin::Global, Purpose::Translation);
        let (initial, undefined) = (Vec::new(), false);
        let object = Object { name, ty: Some(ty.clone()), node, origin, initial, undefined, purpose, span };
        let object = self.object(object);
        self.reach[object.0 as usize].shared = true;
        self.writer.env.objects.remove(&object);
        object
    }

    /// Waits for a wake-up if the word has the value that the call expects.
    fn futex_wait(&mut self, call: BuiltinCall, bits: Operand) -> Result<Operand> {
        let span = call.span;
        self.may_wait(span);
        let address = self.futex_address(call, 1)?;
        let word = self.futex_word(&address, span)?;
        let expected = numbers::convert(WORD, self.argument_value(call, 3)?);
        let timeout = self.argument_value(call, 4)?;
        let timed = match call.arguments.get(4).is_some_and(|timeout| is_null(unconverted(timeout))) {
            true => Operand::number(0),
            false => numbers::truth(timeout),
        };
        let masked = bits.known() != Some(ANY_BITS);
        let thread = self.thread();
        self.futexes.learn(&Futexes { sleepers: vec![thread], counted: false, masked });
        let same = self.temporary("same", &int());
        let tracks = self.tracks_sleepers();
        self.atomically(span, |this| {
            let found = this.read(&word, span)?;
            let found = numbers::convert(WORD, found);
            let equal = numbers::compare(Operator::Equal, found, expected);
            this.write_register(same, equal.clone(), span)?;
            if !tracks {
                return Ok(());
            }
            let place = this.sleeping(thread, ASLEEP, span);
            this.write(&place, numbers::choose(equal, address.value, Operand::number(0)), span)?;
            if this.premises.futexes.masked {
                let place = this.sleeping(thread, MASK, span);
                this.write(&place, numbers::convert(WORD, bits), span)?;
            }
            Ok(())
        })?;
        let result = self.temporary("waited", &int());
        let sleeps = |this: &mut Self| {
            let woken = this.wakes_up(timed.clone(), span)?;
            this.wait_result(call, result, woken, timed)
        };
        let goes_on = |this: &mut Self| {
            this.set_error(Operand::number(AGAIN), span)?;
            this.write_register(result, Operand::number(-1), span)
        };
        let same = self.register_value(same);
        self.branch(same, span, sleeps, goes_on)?;
        Ok(self.register_value(result))
    }

    /// Sleeps. Returns whether a wake-up ended the sleep; 0 if the model does not record which threads sleep.
    fn wakes_up(&mut self, timed: Operand, span: Span) -> Result<Operand> {
        if !self.tracks_sleepers() {
            return Ok(Operand::number(0));
        }
        let place = self.sleeping(self.thread(), ASLEEP, span);
        let woken = self.temporary("woken", &int());
        self.atomically(span, |this| {
            let at = this.read(&place, span)?;
            let is_woken = numbers::not(at);
            if !this.options.spurious {
                let ends = numbers::binary(this, Operator::Or, Arithmetic::INT, is_woken.clone(), timed);
                this.assume(ends, span);
            }
            this.write_register(woken, is_woken, span)?;
            this.write(&place, Operand::number(0), span)
        })?;
        Ok(self.register_value(woken))
    }

    /// The result of a wait that has slept.
    fn wait_result(
        &mut self,
        call: BuiltinCall,
        result: Register,
        woken: Operand,
        timed: Operand,
    ) -> Result<()> {
        let span = call.span;
        let was_woken = |this: &mut Self| this.write_register(result, Operand::number(0), span);
        let (spurious, observed) = (self.options.spurious, call.used || self.errno().is_some());
        let ends = |this: &mut Self| {
            if !spurious {
                this.set_error(Operand::number(TIMED_OUT), span)?;
                return this.write_register(result, Operand::number(-1), span);
            }
            if !observed {
                return this.write_register(result, Operand::number(0), span);
            }
            // A wait that no wake-up has ended returns 0, as if one had, or an error.
            let fails = this.any("fails", &int(), (0, 1), span);
            let late = this.any("late", &int(), (0, 1), span);
            let late = numbers::binary(this, Operator::And, Arithmetic::INT, late, timed);
            let value = numbers::choose(fails.clone(), Operand::number(-1), Operand::number(0));
            this.write_register(result, value, span)?;
            let number = numbers::choose(late, Operand::number(TIMED_OUT), Operand::number(INTERRUPTED));
            this.branch(fails, span, |this| this.set_error(number, span), |_| Ok(()))
        };
        self.branch(woken, span, was_woken, ends)
    }

    /// Wakes at most as many threads as the call says; at most one if that number is not positive.
    fn futex_wake(&mut self, call: BuiltinCall, bits: Operand) -> Result<Operand> {
        let span = call.span;
        let address = self.futex_address(call, 1)?;
        let most = numbers::convert(Arithmetic::INT, self.argument_value(call, 3)?);
        // Linux wakes one thread if the number is not positive.
        let positive = numbers::compare(Operator::Greater, most.clone(), Operand::number(0));
        let most = numbers::choose(positive, most, Operand::number(1));
        self.futexes.counted |= call.used;
        if !self.tracks_sleepers() {
            self.emit(StmtKind::Fence, span);
            return Ok(self.number_of_threads(call));
        }
        let chosen = self.chosen(&most, span);
        let woken = self.temporary("woken", &int());
        self.atomically(span, |this| {
            let sleepers = this.sleepers(&Wanted { address: address.value, bits }, span)?;
            let matching: Vec<Operand> = sleepers.iter().map(|sleeper| sleeper.matches.clone()).collect();
            let (wakes, count) = this.selected(&matching, &chosen, &most, span)?;
            for (sleeper, wakes) in sleepers.iter().zip(wakes) {
                let at = numbers::choose(wakes, Operand::number(0), sleeper.at.clone());
                this.write(&sleeper.place, at, span)?;
            }
            this.write_register(woken, count, span)
        })?;
        Ok(self.register_value(woken))
    }

    /// Wakes some threads, and lets others sleep on another word; with `compares`, only if the word has the value of the last argument.
    fn futex_requeue(&mut self, call: BuiltinCall, compares: bool) -> Result<Operand> {
        let span = call.span;
        let address = self.futex_address(call, 1)?;
        let word = if compares { Some(self.futex_word(&address, span)?) } else { None };
        let most = numbers::convert(Arithmetic::INT, self.argument_value(call, 3)?);
        let most_moved = numbers::convert(Arithmetic::INT, self.argument_value(call, 4)?);
        let other = self.futex_address(call, 5)?;
        let expected =
            if compares { Some(numbers::convert(WORD, self.argument_value(call, 6)?)) } else { None };
        self.futexes.counted |= call.used;
        let tracks = self.tracks_sleepers();
        let (wakes_by, moves_by) = match tracks {
            true => (self.chosen(&most, span), self.chosen(&most_moved, span)),
            false => (Vec::new(), Vec::new()),
        };
        let same = self.temporary("same", &int());
        let count = self.temporary("woken", &int());
        self.atomically(span, |this| {
            let equal = match (&word, expected) {
                (Some(word), Some(expected)) => {
                    let found = this.read(word, span)?;
                    numbers::compare(Operator::Equal, numbers::convert(WORD, found), expected)
                }
                _ => Operand::number(1),
            };
            let equal = this.kept_value(equal, &int(), span)?;
            this.write_register(same, equal.clone(), span)?;
            if !tracks {
                return Ok(());
            }
            let sleepers =
                this.sleepers(&Wanted { address: address.value, bits: Operand::number(ANY_BITS) }, span)?;
            let and = |this: &mut Self, a, b| numbers::binary(this, Operator::And, Arithmetic::INT, a, b);
            let matching: Vec<Operand> =
                sleepers.iter().map(|sleeper| and(this, sleeper.matches.clone(), equal.clone())).collect();
            let (wakes, woken) = this.selected(&matching, &wakes_by, &most, span)?;
            let rest = matching.into_iter().zip(&wakes);
            let rest: Vec<Operand> =
                rest.map(|(matches, wakes)| and(this, matches, numbers::not(wakes.clone()))).collect();
            let (moves, moved) = this.selected(&rest, &moves_by, &most_moved, span)?;
            for ((sleeper, wakes), moves) in sleepers.iter().zip(wakes).zip(moves) {
                let stays = numbers::choose(moves, other.value.clone(), sleeper.at.clone());
                this.write(&sleeper.place, numbers::choose(wakes, Operand::number(0), stays), span)?;
            }
            this.write_register(count, numbers::wrapping(Operator::Add, Arithmetic::INT, woken, moved), span)
        })?;
        let done = match tracks {
            true => self.register_value(count),
            false => self.number_of_threads(call),
        };
        let same = self.register_value(same);
        let fails = |this: &mut Self| this.set_error(Operand::number(AGAIN), span);
        self.branch(same.clone(), span, |_| Ok(()), fails)?;
        Ok(numbers::choose(same, done, Operand::number(-1)))
    }

    /// Any number, as the number of woken threads, if the program uses it; the next attempt counts these threads.
    fn number_of_threads(&mut self, call: BuiltinCall) -> Operand {
        match call.used {
            true => self.any("woken", &int(), (0, Arithmetic::INT.greatest()), call.span),
            false => Operand::number(0),
        }
    }

    /// The other threads that may sleep.
    fn other_sleepers(&self) -> Vec<ThreadNumber> {
        let own = self.thread();
        self.premises.futexes.sleepers.iter().copied().filter(|thread| *thread != own).collect()
    }

    /// For each other thread that may sleep, whether it is chosen to be woken: a nondeterministic truth value, or 1 if all of them may be woken.
    fn chosen(&mut self, most: &Operand, span: Span) -> Vec<Operand> {
        let others = self.other_sleepers();
        let all = most.range.0 >= others.len() as i128;
        let choice = |this: &mut Self| match all {
            true => Operand::number(1),
            false => this.any("chosen", &int(), (0, 1), span),
        };
        others.iter().map(|_| choice(self)).collect()
    }

    /// Reads where the other threads sleep.
    fn sleepers(&mut self, wanted: &Wanted, span: Span) -> Result<Vec<Sleeper>> {
        let mut sleepers = Vec::new();
        for thread in self.other_sleepers() {
            let place = self.sleeping(thread, ASLEEP, span);
            let at = self.read(&place, span)?;
            let at = self.kept_value(at, &place.ty, span)?;
            if let (Some(a), Some(b)) = (at.points, wanted.address.points) {
                self.unify(a, b, span)?;
            }
            let mut matches = numbers::compare(Operator::Equal, at.clone(), wanted.address.clone());
            if self.premises.futexes.masked {
                let mask = self.sleeping(thread, MASK, span);
                let mask = self.read(&mask, span)?;
                let common = numbers::binary(
                    self,
                    Operator::BitAnd,
                    WORD,
                    mask,
                    numbers::convert(WORD, wanted.bits.clone()),
                );
                matches = numbers::binary(self, Operator::And, Arithmetic::INT, matches, common);
            }
            let matches = self.kept_value(matches, &int(), span)?;
            sleepers.push(Sleeper { place, at, matches });
        }
        Ok(sleepers)
    }

    /// Which of the matching threads are selected: as many as possible, but at most `most`, and those in `chosen` before the others. Also their
    /// number.
    fn selected(
        &mut self,
        matching: &[Operand],
        chosen: &[Operand],
        most: &Operand,
        span: Span,
    ) -> Result<(Vec<Operand>, Operand)> {
        let add = |a, b| numbers::wrapping(Operator::Add, Arithmetic::INT, a, b);
        let and = |this: &mut Self, a, b| numbers::binary(this, Operator::And, Arithmetic::INT, a, b);
        let all = most.range.0 >= matching.len() as i128;
        let mut count = Operand::number(0);
        let mut selected = vec![Operand::number(0); matching.len()];
        for is_first in [true, false] {
            for (n, matches) in matching.iter().enumerate() {
                let chosen = if is_first { chosen[n].clone() } else { numbers::not(selected[n].clone()) };
                if chosen.known() == Some(0) {
                    continue;
                }
                let mut takes = and(self, matches.clone(), chosen);
                if !all {
                    let room = numbers::compare(Operator::Less, count.clone(), most.clone());
                    takes = and(self, takes, room);
                }
                let takes = self.kept_value(takes, &int(), span)?;
                count = self.kept_value(add(count, takes.clone()), &int(), span)?;
                let before = selected[n].clone();
                selected[n] = numbers::binary(self, Operator::Or, Arithmetic::INT, before, takes);
            }
            if all {
                break;
            }
        }
        Ok((selected, count))
    }
}

/// The names of the variables of a thread for futexes.
const ASLEEP: &str = "asleep";
const MASK: &str = "bits";

/// The type of a pointer to a futex word.
fn word_pointer() -> Type {
    let word = Type { kind: TypeKind::Integer(WORD), atomic: false, volatile: false };
    Type { kind: TypeKind::Pointer(std::rc::Rc::new(word)), atomic: false, volatile: false }
}

/// Whether an expression is a null pointer constant.
fn is_null(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Constant(0))
}
