//! Inline assembly: GNU `asm` statements with instructions of x86-64, as lock-free code uses them, and the fences of other processors.
//!
//! [`reader`] parses the template, [`bind`] binds the operands of the statement, [`execute`] and [`compute`] execute the instructions, and [`flags`]
//! records what later instructions can learn from the flags.
//!
//! ## Operands
//! - An object in memory (`m`) is accessed where an instruction accesses it. The size of the access must be the size of the object. If the statement
//!   clobbers `memory`, any object may be read and written. Otherwise an input must not be written, because compilers assume that it keeps its value,
//!   and an object that is only an output (`"=m"`) must not be read before it is written, because compilers may remove earlier stores to it, unless
//!   the object is volatile or atomic.
//! - Any other operand is a constant, a condition code (an output), or in a register ([`Cell`]). Inputs, and outputs with `+`, are read before the
//!   first instruction; outputs are written after the last one. It is an error if an output has not been written completely, and if an instruction
//!   reads undefined bytes.
//! - A register may be written if it is an output, or if the statement clobbers it. An output without `&` may share its register with an input, or
//!   with the address of an object, so it is an error to use inputs and objects after such an output has been written.
//!
//! ## Events
//! A locked instruction, and `xchg` with memory, is one atomic read-modify-write, like those of `<stdatomic.h>`. Any other instruction that reads and
//! writes memory is two events, a load and a store. `cmpxchg` without `lock` always stores, as hardware does.
//!
//! A statement may access memory through an address in a register (`(%0)`) without clobbering `memory`. Compilers do not know of such an access and
//! may move other accesses across the statement, so a warning is given.

mod bind;
mod cells;
mod compute;
mod execute;
mod flags;
mod mnemonics;
mod reader;

use std::collections::BTreeMap;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::assembly::{ConstraintKind, Machine};
use fencewright_c::ast::{Integer, Rank};
use fencewright_c::typed::tree::{Assembly, Type, TypeKind};
use fencewright_code::core::Access;
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

use super::super::objects::{Spot, Target};
use super::super::{Elaborator, Result};
use super::fences::Fence;
use flags::Flags;
use mnemonics::Kind;
use reader::{Argument, Instruction};

/// The advice in errors about unsupported assembly.
const INSTEAD: &str = "use `atomic_thread_fence`, `__sync_synchronize` or an operation of <stdatomic.h>";

/// A value in a register or object, with its C type.
#[derive(Clone, Debug)]
struct Content {
    operand: Operand,
    ty: Type,
}

/// A register: a certain one of the processor, or the one that the compiler selects for an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Machine(Machine),
    /// The register that the compiler selects for the operand with this number, and for the inputs tied to it.
    Operand(usize),
}

/// The contents of a register.
#[derive(Clone, Debug)]
struct Filled {
    /// The value of the low bytes; the size of its type is their number.
    content: Content,
    /// Whether the remaining upper bytes are zero; otherwise they are undefined.
    extended: bool,
}

/// The storage of an operand of the statement.
#[derive(Clone, Debug)]
enum Bound {
    /// An object in memory.
    Object(Target),
    /// An object in memory, by its address. Its type is known only where it is accessed, because the operand has a structure type that stands for any
    /// object.
    Pointed(Operand),
    /// A register, with the type of the operand; the size of this type selects the name of the register (`eax` or `rax`).
    Cell(Cell, Type),
    /// A constant.
    Constant(Operand),
    /// An output that gets the value of a condition code.
    Condition,
}

/// The state of executing one `asm` statement.
struct Run<'e, 'u, 'a> {
    elaborator: &'e mut Elaborator<'u>,
    assembly: &'a Assembly,
    span: Span,
    /// The storage of each operand, by its number: outputs first, then inputs.
    bound: Vec<Bound>,
    /// The outputs in memory with a value that compilers may have removed: they are neither inputs nor volatile, and the statement has not written them.
    unset: Vec<usize>,
    /// For each output in a register and each condition, the place of the C program that is written at the end.
    places: Vec<Option<Target>>,
    cells: BTreeMap<Cell, Filled>,
    /// The registers that the statement may write.
    writable: Vec<Cell>,
    flags: Flags,
    /// The first output with neither `&` nor `+` nor a tied input that has been written. Other inputs may share its register, so they may have been
    /// overwritten since.
    written: Option<Cell>,
    /// The text of the current instruction, for messages.
    now: String,
}

impl Elaborator<'_> {
    /// Executes an `asm` statement.
    pub(in super::super) fn assembly(&mut self, assembly: &Assembly, span: Span) -> Result<()> {
        if assembly.jumps {
            let help = "write the branch in C, with a condition such as `\"=@ccz\"` as an output";
            return self.error(span, "`asm goto` is not supported", help);
        }
        let instructions = match reader::instructions(&assembly.text) {
            Ok(instructions) => instructions,
            Err(bad) => {
                return self.error(
                    span,
                    format!("in the assembly `{}`: {}", shown(&bad.text), bad.reason),
                    INSTEAD,
                );
            }
        };
        let mut run = Run {
            elaborator: self,
            assembly,
            span,
            bound: Vec::new(),
            unset: Vec::new(),
            places: Vec::new(),
            cells: BTreeMap::new(),
            writable: Vec::new(),
            flags: Flags::default(),
            written: None,
            now: assembly.text.clone(),
        };
        run.bind()?;
        for instruction in &instructions {
            run.now.clone_from(&instruction.text);
            run.execute(instruction)?;
        }
        run.now.clone_from(&assembly.text);
        run.is_kept(&instructions)?;
        run.finish()
    }
}

/// A text of the program for messages: on one line, and shortened if it is long.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(80) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

/// The integer type with a size in bytes.
fn integer(bytes: u64, signed: bool) -> Type {
    let rank = match bytes {
        1 => Rank::Char,
        2 => Rank::Short,
        4 => Rank::Int,
        _ => Rank::Long,
    };
    let kind = TypeKind::Integer(Arithmetic::Integer(Integer { rank, signed }));
    Type { kind, atomic: false, volatile: false }
}

/// The type without qualifiers.
fn unqualified(ty: &Type) -> Type {
    Type { kind: ty.kind.clone(), atomic: false, volatile: false }
}

impl Run<'_, '_, '_> {
    /// An error in the current instruction.
    fn refuse<T>(&self, reason: impl AsRef<str>) -> Result<T> {
        let message = format!("in the assembly `{}`: {}", shown(&self.now), reason.as_ref());
        self.elaborator.error(self.span, message, INSTEAD)
    }

    /// Refuses a statement whose effect on memory may be lost: without `volatile`, compilers remove a statement whose outputs are not used. An output
    /// in memory is taken to be used.
    fn is_kept(&self, instructions: &[Instruction]) -> Result<()> {
        let has_effect = (self.clobbers_memory() && !instructions.is_empty())
            || instructions.iter().any(|instruction| {
                instruction.locked || matches!(instruction.kind, Kind::Fence(Fence::Full | Fence::Stores))
            });
        let is_kept = self.assembly.volatile
            || self.assembly.outputs.iter().any(|(constraint, _)| constraint.is_memory());
        if has_effect && !is_kept {
            return self.refuse(
                "without `volatile`, compilers may remove it, because its outputs are not in memory",
            );
        }
        Ok(())
    }

    /// How objects in memory are accessed. Without `volatile`, compilers may merge the statement with another one that has the same inputs.
    fn access(&self) -> Access {
        if self.assembly.volatile { Access::Volatile } else { Access::Plain }
    }

    fn clobbers_memory(&self) -> bool {
        self.assembly.clobbers.iter().any(|clobber| clobber == "memory")
    }

    /// The object in memory that an argument denotes, for an access of `bytes` bytes; `None` for a register or constant.
    fn object(&mut self, argument: &Argument, bytes: u64) -> Result<Option<Target>> {
        let (target, lost) = match argument {
            Argument::Operand(number, _) => match self.operand(*number)? {
                Bound::Object(target) => (target, *number),
                Bound::Pointed(pointer) => (self.pointed(&pointer, 0, bytes)?, *number),
                _ => return Ok(None),
            },
            Argument::Address(offset, base) => {
                let Content { operand, ty } = self.read(base, 8)?;
                if !self.clobbers_memory() {
                    let text = "this assembly accesses memory through an address, but \"memory\" is not among its clobbers: a compiler may move other accesses across it";
                    self.elaborator.warn(self.span, text);
                }
                let target = match &ty.kind {
                    TypeKind::Pointer(to) if *offset == 0 && self.holds(to, bytes) => {
                        let to = unqualified(to);
                        self.elaborator.pointed(&operand, &to, self.span)?
                    }
                    TypeKind::Pointer(_) => self.pointed(&operand, *offset, bytes)?,
                    _ => return self.refuse("an address is in an operand that is not a pointer"),
                };
                return Ok(Some(target.accessed(self.access())));
            }
            _ => return Ok(None),
        };
        if self.written.is_some() {
            return self.refuse(format!(
                "`%{lost}` is accessed after an output was written that may share a register with its address: that output needs `&`"
            ));
        }
        if !self.holds(&target.ty, bytes) {
            let size = self.elaborator.size(&target.ty);
            return self
                .refuse(format!("an access of {bytes} bytes to `%{lost}`, an object of {size} bytes"));
        }
        Ok(Some(target.accessed(self.access())))
    }

    /// An error if an instruction reads an object whose value may be lost, because it is only an output.
    fn has_value(&self, argument: &Argument) -> Result<()> {
        match argument {
            Argument::Operand(number, _) if self.unset.contains(number) => {
                self.lost(*number, "is read, but it is only an output")
            }
            _ => Ok(()),
        }
    }

    /// An error about an output in memory whose earlier value compilers do not keep.
    fn lost<T>(&self, number: usize, reason: &str) -> Result<T> {
        let now = shown(&self.now);
        let message = format!(
            "in the assembly `{now}`: `%{number}` {reason}, so compilers may remove an earlier store to it"
        );
        let help = "write `\"+m\"` instead of `\"=m\"`, or add \"memory\" to the clobbers";
        self.elaborator.error(self.span, message, help)
    }

    /// Records that an instruction has written the object that an argument denotes.
    fn has_written(&mut self, argument: &Argument) {
        if let Argument::Operand(written, _) = argument {
            self.unset.retain(|number| number != written);
        }
    }

    /// Whether a type is an integer or pointer type of this size in bytes.
    fn holds(&self, ty: &Type, bytes: u64) -> bool {
        matches!(ty.kind, TypeKind::Integer(_) | TypeKind::Pointer(_)) && self.elaborator.size(ty) == bytes
    }

    /// The place of an integer of `bytes` bytes at an offset in bytes from a pointer.
    fn pointed(&mut self, pointer: &Operand, offset: i64, bytes: u64) -> Result<Target> {
        let ty = integer(bytes, false);
        let size = bytes as i64;
        if offset % size != 0 {
            return self.refuse(format!(
                "an access at an offset of {offset} bytes, which is no multiple of its size"
            ));
        }
        let by = Operand::number((offset / size).into());
        let moved = self.elaborator.moved(pointer.clone(), by, &ty, self.span)?;
        self.elaborator.pointed(&moved, &ty, self.span)
    }

    /// The storage of the operand with this number; an error for a condition, or if there is no such operand.
    fn operand(&self, number: usize) -> Result<Bound> {
        match self.bound.get(number) {
            Some(Bound::Condition) => self.refuse(format!("`%{number}` is a condition, not an operand")),
            Some(bound) => Ok(bound.clone()),
            None => self.refuse(format!("there is no operand `%{number}`")),
        }
    }

    /// A value converted to another type of the same size; the sizes may differ if both types are integer types.
    fn converted(&mut self, content: Content, to: &Type) -> Result<Operand> {
        match content.ty.kind == to.kind {
            true => Ok(content.operand),
            false => self.elaborator.cast(content.operand, &content.ty, to, self.span),
        }
    }

    /// Writes the values of outputs in registers and of conditions to their places.
    fn finish(&mut self) -> Result<()> {
        let assembly = self.assembly;
        if let Some(number) = self.unset.first() {
            return self.lost(*number, "is an output that no instruction writes");
        }
        let mut values = Vec::new();
        // No instruction follows, so inputs may be overwritten.
        self.written = None;
        for (number, (constraint, place)) in assembly.outputs.iter().enumerate() {
            let content = match (&self.bound[number], &constraint.kind) {
                (Bound::Cell(cell, ty), _) => {
                    let (cell, bytes) = (*cell, self.elaborator.size(ty));
                    self.read_cell(cell, bytes)?
                }
                (Bound::Condition, ConstraintKind::Condition(condition)) => {
                    let operand = self.condition(*condition)?;
                    Content { operand, ty: integer(1, false) }
                }
                _ => continue,
            };
            let ty = self.scalar_type(&place.ty, number)?;
            values.push((self.places[number].clone(), self.converted(content, &ty)?));
        }
        for (target, value) in values {
            if let Some(target) = target {
                self.elaborator.write(&target, value, self.span)?;
            }
        }
        Ok(())
    }

    /// The current value of an object. Later writes to the object do not change the returned value.
    fn load(&mut self, target: &Target) -> Result<Content> {
        let operand = self.elaborator.read(target, self.span)?;
        let operand = match target.spot {
            Spot::Register(_) => self.elaborator.kept_value(operand, &target.ty, self.span)?,
            Spot::Memory(_) => operand,
        };
        Ok(Content { operand, ty: unqualified(&target.ty) })
    }

    /// The operand size of an instruction in bytes, given by its suffix or by its registers, which must agree.
    fn bytes(&self, instruction: &Instruction, arguments: &[Argument]) -> Result<u64> {
        let mut size = instruction.size;
        for argument in arguments {
            let Some((cell, bytes)) = self.register(argument)? else { continue };
            if size.is_some_and(|size| size != bytes) {
                let name = self.name(cell);
                let size = size.unwrap_or_default();
                return self.refuse(format!(
                    "`{name}` has {bytes} bytes here, but the instruction has operands of {size} bytes"
                ));
            }
            size = Some(bytes);
        }
        match size {
            Some(size) => Ok(size),
            None => self.refuse("the size of the operands is not known: add a suffix (`b`, `w`, `l` or `q`)"),
        }
    }
}
