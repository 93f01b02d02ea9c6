//! The rest of the C library: heap memory, output and time.

use fencewright_c::typed::tree::{Expr, ExprKind, PlaceKind, TypeKind};
use fencewright_code::core::{
    Access, Freeing, Known, Location, ObjectEvent, Purpose, StmtKind, ThreadNumber, Value, known,
};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;
use fencewright_text::Diagnostic;

use super::super::objects::Spot;
use super::super::{Elaborator, Result};
use super::ending::LATEST;
use super::waiting::INVALID;
use super::{BuiltinCall, strings, unconverted};

/// The number of bytes of a pointer, of which the alignment of `posix_memalign` is a multiple.
const POINTER: i128 = 8;

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Allocates the number of bytes that the argument with this index gives.
    Allocate(usize),
    /// Allocates memory whose lifetime ends when the calling function returns.
    AllocateLocal,
    /// Creates a local array whose length is not a constant.
    LocalArray,
    /// Allocates an array initialised with zeros.
    AllocateZeroed,
    /// Allocates memory and stores the pointer through the first argument.
    AllocateAt,
    Free,
    /// Frees memory once no hazard pointer protects it.
    Retire,
    /// Reads a pointer through the second argument, and protects its target with the hazard pointer that the first argument points to.
    Protect,
    /// Allocates memory of another size and moves the contents there.
    Reallocate,
    /// Writes output, which no thread can observe. The result is a number of characters or a status.
    Print,
    /// Has no effect and returns 0.
    Pass,
    /// Returns the first argument.
    Same,
    /// `__builtin_object_size`: returns the value for an unknown size, as compilers always may.
    Unknown,
    /// Stores the time through the argument with this number, as seconds and parts of a second, of which there are so many.
    Time(usize, i128),
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name.strip_prefix("__builtin_").unwrap_or(name) {
        "alloca" => Operation::AllocateLocal,
        "__fencewright_array" => Operation::LocalArray,
        "malloc" | "kmalloc" | "vmalloc" => Operation::Allocate(0),
        "kzalloc" | "calloc" | "kcalloc" => Operation::AllocateZeroed,
        "aligned_alloc" | "memalign" => Operation::Allocate(1),
        "posix_memalign" => Operation::AllocateAt,
        "realloc" | "krealloc" => Operation::Reallocate,
        "free" | "kfree" | "vfree" | "cfree" => Operation::Free,
        "__fencewright_retire" => Operation::Retire,
        "__fencewright_protect" => Operation::Protect,
        "printf" | "fprintf" | "puts" | "fputs" | "putchar" | "fputc" | "putc" | "vprintf" | "vfprintf"
        | "dprintf" | "fwrite" | "write" | "printk" | "pr_info" | "pr_err" | "pr_warn"
        | "putchar_unlocked" => Operation::Print,
        "fflush" | "perror" | "setbuf" | "setvbuf" | "sleep" | "usleep" | "nanosleep" | "sched_yield"
        | "pthread_yield" | "thrd_yield" | "thrd_sleep" | "srand" | "srandom" | "msleep" | "udelay"
        | "ndelay" | "cond_resched" | "schedule" | "prefetch" | "setlocale" => Operation::Pass,
        "assume_aligned" => Operation::Same,
        "object_size" => Operation::Unknown,
        "clock_gettime" => Operation::Time(1, 1_000_000_000),
        "gettimeofday" => Operation::Time(0, 1_000_000),
        _ => return None,
    })
}

/// Whether an alignment is a power of two, or unknown.
fn is_alignment(alignment: Operand) -> bool {
    alignment.known().is_none_or(|alignment| alignment.count_ones() == 1)
}

impl Elaborator<'_> {
    pub(super) fn library(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        match operation {
            Operation::Allocate(number) => {
                if number == 1 {
                    let valid = self.argument_value(call, 0).map(is_alignment)?;
                    let text = "the alignment of an allocation is no power of two";
                    self.require(Operand::number(valid.into()), text, span);
                }
                let size = self.argument_value(call, number)?;
                self.allocation(size, 1, span, &|this, bytes| this.allocate(bytes, false, span))
            }
            Operation::AllocateLocal => {
                // The stack frame of `main` lasts as long as the program, so `alloca` in `main` is like `malloc`.
                if self.thread() != ThreadNumber(0) || self.writer.frames.len() > 1 {
                    let help = "declare an array, whose lifetime is modelled";
                    return self.error(span, "`alloca` is understood in `main` only", help);
                }
                let size = self.argument_value(call, 0)?;
                self.allocation(size, 1, span, &|this, bytes| this.allocate_local(bytes, span))
            }
            Operation::LocalArray => {
                let size = self.argument_value(call, 0)?;
                let element = super::super::expressions::pointee(call.ty);
                let name = self.declared_name(call);
                self.allocation(size, 1, span, &|this, bytes| this.local_array(&name, &element, bytes, span))
            }
            Operation::AllocateZeroed => {
                let size = self.argument_value(call, 0)?;
                let (size, unit) = match call.name {
                    "kzalloc" => (size, 1),
                    _ => self.product(size, call)?,
                };
                self.allocation(size, unit, span, &|this, bytes| this.allocate(bytes, true, span))
            }
            Operation::AllocateAt => self.allocate_at(call),
            Operation::Free => {
                let pointer = self.argument_value(call, 0)?;
                self.free(pointer, Freeing::Now, span)
            }
            Operation::Retire => {
                let pointer = self.argument_value(call, 0)?;
                self.free(pointer, Freeing::Retire, span)
            }
            Operation::Protect => self.protect(call),
            Operation::Reallocate => self.reallocate(call),
            Operation::Print => {
                self.only_prints(call)?;
                self.evaluated(call)?;
                match &call.ty.kind {
                    TypeKind::Integer(ty) if call.used => {
                        Ok(self.any("printed", call.ty, (-1, ty.greatest()), span))
                    }
                    _ => Ok(Operand::number(0)),
                }
            }
            Operation::Pass => {
                self.evaluated(call)?;
                Ok(Operand::number(0))
            }
            Operation::Same => self.argument_value(call, 0),
            Operation::Unknown => Ok(Operand::number(u64::MAX.into())),
            Operation::Time(number, parts) => {
                if number == 0 && self.argument_value(call, 1)?.known() != Some(0) {
                    return self.error(span, "the time zone is not modelled", "pass a null pointer for it");
                }
                let place = self.pointed_by(self.argument(call, number)?)?;
                for (number, most) in [(0, LATEST), (1, parts - 1)] {
                    let member = self.member(&place, number, span)?;
                    let value = self.any("time", &member.ty, (0, most), span);
                    self.write(&member, value, span)?;
                }
                Ok(Operand::number(0))
            }
        }
    }

    /// Fails if a format of `printf` has a conversion that writes to memory.
    fn only_prints(&self, call: BuiltinCall) -> Result<()> {
        const WRITING: [&str; 8] = ["%n", "%hn", "%hhn", "%ln", "%lln", "%zn", "%jn", "%tn"];
        let format = call.arguments.iter().find_map(|argument| strings::text(self.unit, argument));
        let format = format.filter(|_| call.name.ends_with("printf")).unwrap_or_default().replace("%%", "");
        match WRITING.iter().any(|writing| format.contains(writing)) {
            true => self.error(call.span, "`%n` in a format is not supported", "leave it out"),
            false => Ok(()),
        }
    }

    /// Allocates memory that cannot be freed.
    fn allocate_local(&mut self, bytes: u64, span: Span) -> Result<Operand> {
        let new = self.objects.len();
        let pointer = self.allocate(bytes, false, span)?;
        self.objects.iter_mut().skip(new).for_each(|object| object.purpose = Purpose::Stack);
        Ok(pointer)
    }

    /// The name of the local array that a call of `__fencewright_array` creates. Its argument is the variable named `size of NAME`.
    fn declared_name(&mut self, call: BuiltinCall) -> String {
        let function = self.frame().function;
        let local = match call.arguments.first().map(|size| &size.kind) {
            Some(ExprKind::Load(place)) => match place.kind {
                PlaceKind::Local(local) => Some(local),
                _ => None,
            },
            _ => None,
        };
        let name =
            local.map(|local| self.unit.functions[function.index()].locals[local.index()].name.clone());
        name.as_deref().and_then(|name| name.strip_prefix("size of ")).unwrap_or("array").to_string()
    }

    /// The size of an allocation by `calloc`, as a number of elements and a constant number of bytes per element. One of the two arguments must be a
    /// constant.
    fn product(&mut self, count: Operand, call: BuiltinCall) -> Result<(Operand, u64)> {
        let size = self.argument_value(call, 1)?;
        let unit = |operand: &Operand| operand.known().and_then(|size| u64::try_from(size).ok());
        match (unit(&count), unit(&size)) {
            (_, Some(unit)) => Ok((count, unit)),
            (Some(unit), None) => Ok((size, unit)),
            (None, None) => self.error(
                call.span,
                "neither the number of elements nor their size is known before the program runs",
                "allocate elements of a constant size, such as `sizeof (struct node)`",
            ),
        }
    }

    /// `realloc`: allocates new memory, copies as much of the old contents as fits, and frees the old memory.
    fn reallocate(&mut self, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let argument = unconverted(self.argument(call, 0)?);
        let old = self.value(argument)?;
        let size = self.argument_value(call, 1)?;
        self.allocation(size, 1, span, &|this, bytes| this.reallocated(call, argument, old.clone(), bytes))
    }

    /// `realloc` to a constant size.
    fn reallocated(
        &mut self,
        call: BuiltinCall,
        argument: &Expr,
        old: Operand,
        bytes: u64,
    ) -> Result<Operand> {
        let span = call.span;
        if Self::is_null(&old) {
            return self.allocate(bytes, false, span);
        }
        let element = super::super::expressions::pointee(&argument.ty);
        let before = match known(&old.value) {
            Some(Known::Address(object, _)) => self.allocated_bytes(object),
            _ => None,
        };
        let (Some(before), false) = (before, element.kind == TypeKind::Void) else {
            // The error is reported only if no later attempt, which knows more about the program, succeeds.
            let message = "the number of bytes that `realloc` copies is unknown here";
            let help = "allocate the new memory with `malloc`, copy what is needed, and free the old one";
            let error = Diagnostic::new(self.here(span), message).help(help);
            self.postponed.get_or_insert(Box::new(error));
            return self.allocate(bytes, false, span);
        };
        if self.open_array(&element).is_some() {
            let message = "`realloc` of a structure that ends in an array of open length is not supported";
            return self.error(span, message, "allocate it with the longest array that is needed");
        }
        let new = self.allocate(bytes, false, span)?;
        for number in 0..before.min(bytes) / self.size(&element).max(1) {
            let by = Operand::number(number.into());
            let from = self.moved(old.clone(), by.clone(), &element, span)?;
            let from = self.pointed(&from, &element, span)?;
            let to = self.moved(new.clone(), by, &element, span)?;
            let to = self.pointed(&to, &element, span)?;
            self.copy(&from, &to, span)?;
        }
        self.free(old, Freeing::Now, span)?;
        Ok(new)
    }

    /// `posix_memalign`.
    fn allocate_at(&mut self, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let place = self.argument_target(call, 0)?;
        let (alignment, size) = (self.argument_value(call, 1)?, self.argument_value(call, 2)?);
        let is_small = alignment.known().is_some_and(|alignment| alignment % POINTER != 0);
        if is_small || !is_alignment(alignment) {
            return Ok(Operand::number(INVALID));
        }
        let pointer = self.allocation(size, 1, span, &|this, bytes| this.allocate(bytes, false, span))?;
        self.write(&place, pointer, span)?;
        Ok(Operand::number(0))
    }

    /// Protects an object with a hazard pointer, in one indivisible step. Returns the pointer to the object.
    fn protect(&mut self, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let hazard = self.argument_target(call, 0)?.accessed(Access::Own);
        let source = self.argument_target(call, 1)?.accessed(Access::Atomic);
        let Spot::Memory(Location { node, .. }) = hazard.spot else {
            let help = "allocate it with `__VERIFIER_hp_alloc`";
            return self.error(span, "this hazard pointer is no object in memory", help);
        };
        // Any statement ends the execution of `main` at translation time, even an empty group. It has to end, because other threads read the hazard
        // pointer.
        self.emit(StmtKind::Steps(Vec::new()), span);
        if let Spot::Memory(place) = &hazard.spot {
            self.publish(&Value::Address(Box::new(place.clone())));
        }
        let result = self.temporary("protected", &source.ty);
        self.atomically(span, |this| {
            let found = this.read(&source, span)?;
            this.write_register(result, found.clone(), span)?;
            let Some(target) = found.points else { return this.write(&hazard, found, span) };
            let flag = this.temporary("retired", &super::int());
            let pointer = found.value.clone();
            this.emit(StmtKind::Special(ObjectEvent::Retired { flag, pointer, target, hazard: node }), span);
            let flag = this.register_value(flag);
            this.write(&hazard, numbers::choose(flag, Operand::number(0), found), span)
        })?;
        Ok(self.register_value(result))
    }

    /// `free`, at once or when no hazard pointer protects the object.
    fn free(&mut self, pointer: Operand, freeing: Freeing, span: Span) -> Result<Operand> {
        if pointer.known() == Some(0) {
            return Ok(Operand::number(0));
        }
        let node = match pointer.points {
            Some(node) => node,
            None => {
                return self.error(
                    span,
                    "what this pointer points to is not known",
                    "free a pointer that `malloc` returned",
                );
            }
        };
        match known(&pointer.value) {
            // The contents of the freed object become unknown.
            Some(Known::Address(object, _)) => {
                self.writer.env.objects.remove(&object);
            }
            _ => self.forget_pointed(),
        }
        self.emit(StmtKind::Special(ObjectEvent::Free(pointer.value, node, freeing)), span);
        Ok(Operand::number(0))
    }
}
