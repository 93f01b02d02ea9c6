//! Inline assembly: GNU `asm` statements with instructions of x86-64, as lock-free code uses them, and the fences of other processors.
//!
//! [`reader`] parses the template, [`bind`] binds the operands of the statement, [`execute`] and [`compute`] execute the instructions, and [`flags`]
//! are what they leave behind for the instructions after them.
//!
//! ## Operands
//! - An object in memory (`m`) is accessed where an instruction accesses it, with the size of the instruction, which must be the size of the object.
//!   It may be read and written whatever its direction says, because `"=m"` for an object that is also read is common; but an input in memory is
//!   written only if the statement clobbers `memory`, because otherwise compilers assume that the object keeps its value.
//! - Any other operand is in a register ([`Cell`]). Inputs, and outputs with `+`, are read before the first instruction; outputs are written after
//!   the last one. An output that no instruction has written completely is an error, and so is an instruction that reads undefined bytes.
//! - A register may be written if it is an output, or if the statement clobbers it. An output without `&` may share its register with an input, or
//!   with the address of an object, so it is an error to use these after such an output was written.
//!
//! ## Events
//! A locked instruction, and `xchg` with memory, is one atomic read-modify-write, like those of `<stdatomic.h>`. Any other instruction that reads and
//! writes memory is a load and a store: two events. `cmpxchg` without `lock` always stores, as on hardware.
//!
//! An address in a register (`(%0)`) may be used without `memory` among the clobbers. Compilers do not know of such an access, and may move other
//! accesses across the statement, so there is a warning.

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

/// The advice for unsupported assembly.
const INSTEAD: &str = "use `atomic_thread_fence`, `__sync_synchronize` or an operation of <stdatomic.h>";

/// A value of C, as the contents of a register or object.
#[derive(Clone, Debug)]
struct Content {
    operand: Operand,
    ty: Type,
}

/// A register of the statement: one of the processor, or that of an operand for which the compiler selects a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Machine(Machine),
    /// The register of this operand, and of the inputs that share it.
    Operand(usize),
}

/// The contents of a register.
#[derive(Clone, Debug)]
struct Filled {
    /// The low bytes, as many as the type has.
    content: Content,
    /// Whether the bytes above are zero. Otherwise they are undefined.
    extended: bool,
}

/// The storage of an operand of the statement.
#[derive(Clone, Debug)]
enum Bound {
    /// An object.
    Object(Target),
    /// An object whose type is only known where it is accessed, because its type in C is a structure that stands for any object.
    Pointed(Operand),
    /// A register, and the type of the operand, which selects the name of the register.
    Cell(Cell, Type),
    /// A constant.
    Constant(Operand),
    /// An output that gets a condition.
    Condition,
}

/// The execution of one statement.
struct Run<'e, 'u, 'a> {
    elaborator: &'e mut Elaborator<'u>,
    assembly: &'a Assembly,
    span: Span,
    /// The storage of the operands, by number.
    bound: Vec<Bound>,
    /// The places of the outputs in registers, and of conditions.
    places: Vec<Option<Target>>,
    cells: BTreeMap<Cell, Filled>,
    /// The registers that the statement may write.
    writable: Vec<Cell>,
    flags: Flags,
    /// The first output without `&` that was written: inputs may have been lost since.
    written: Option<Cell>,
    /// The text of the current instruction.
    now: String,
}

impl Elaborator<'_> {
    /// An `asm` statement.
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

/// A text of the program, on one line and not too long.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(80) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

/// The integer type of a size in bytes.
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

    /// The object that an argument denotes, for an access of some bytes; `None` for a register or constant.
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

    /// Whether an object of a type is a number or pointer of a size.
    fn holds(&self, ty: &Type, bytes: u64) -> bool {
        matches!(ty.kind, TypeKind::Integer(_) | TypeKind::Pointer(_)) && self.elaborator.size(ty) == bytes
    }

    /// The number of a size at an offset from where a pointer points to.
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

    /// An operand of the statement.
    fn operand(&self, number: usize) -> Result<Bound> {
        match self.bound.get(number) {
            Some(Bound::Condition) => self.refuse(format!("`%{number}` is a condition, not an operand")),
            Some(bound) => Ok(bound.clone()),
            None => self.refuse(format!("there is no operand `%{number}`")),
        }
    }

    /// A value, converted to another type of the same size, or between integers of any size.
    fn converted(&mut self, content: Content, to: &Type) -> Result<Operand> {
        match content.ty.kind == to.kind {
            true => Ok(content.operand),
            false => self.elaborator.cast(content.operand, &content.ty, to, self.span),
        }
    }

    /// Writes the outputs in registers, and the conditions.
    fn finish(&mut self) -> Result<()> {
        let assembly = self.assembly;
        let mut values = Vec::new();
        // The inputs are no longer needed.
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

    /// The value of an object, which later writes to the object do not change.
    fn load(&mut self, target: &Target) -> Result<Content> {
        let operand = self.elaborator.read(target, self.span)?;
        let operand = match target.spot {
            Spot::Register(_) => self.elaborator.kept_value(operand, &target.ty, self.span)?,
            Spot::Memory(_) => operand,
        };
        Ok(Content { operand, ty: unqualified(&target.ty) })
    }

    /// The instruction's operand size in bytes: that of its suffix, or of its registers, which must agree.
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
