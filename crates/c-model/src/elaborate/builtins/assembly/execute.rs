//! Executes instructions as loads, stores and read-modify-writes of core code.

use fencewright_c::assembly::Machine;
use fencewright_c::typed::tree::TypeKind;
use fencewright_code::core::Access;
use fencewright_code::numbers::{self, Operand};

use super::super::super::Result;
use super::super::super::objects::Target;
use super::super::fences::Fence;
use super::flags::{Flags, How};
use super::mnemonics::{Binary, Kind};
use super::reader::{Argument, Instruction};
use super::{Bound, Cell, Content, Run, integer, unqualified};

/// The register `rax`, whose low bytes `cmpxchg` compares with its destination.
const ACCUMULATOR: Cell = Cell::Machine(Machine(0));

impl Run<'_, '_, '_> {
    pub(super) fn execute(&mut self, instruction: &Instruction) -> Result<()> {
        let arguments = instruction.arguments.as_slice();
        match (instruction.kind, arguments) {
            (Kind::Fence(fence), _) => {
                self.elaborator.fence(fence, self.span);
                Ok(())
            }
            (Kind::Prefetch, _) => Ok(()),
            (Kind::Binary(binary), [by, place]) if self.is_stack(place) => {
                // A locked operation on the stack that leaves memory unchanged is a full fence.
                let unchanged = matches!(binary, Binary::Add | Binary::Sub | Binary::Or | Binary::Xor)
                    && matches!(by, Argument::Immediate(0));
                if !instruction.locked || !unchanged {
                    return self.refuse("the stack is not modelled");
                }
                self.elaborator.fence(Fence::Full, self.span);
                self.flags = Flags::default();
                Ok(())
            }
            (Kind::Move, [from, to]) => self.moves(instruction, from, to),
            (Kind::Extend(signed, bytes), [from, to]) => self.extend(instruction, signed, bytes, from, to),
            (Kind::Exchange, [a, b]) => self.exchange(instruction, a, b),
            (Kind::ExchangeAdd, [from, to]) => self.exchange_add(instruction, from, to),
            (Kind::CompareExchange, [from, to]) => self.compare_and_exchange(instruction, from, to),
            (Kind::Binary(binary), [by, to]) => self.binary(instruction, binary, by, to),
            (Kind::Compare(binary), [by, to]) => self.compare(instruction, binary, by, to),
            (Kind::Unary(unary), [to]) => self.unary(instruction, unary, to),
            (Kind::Bit(bit), [number, to]) => self.bit(instruction, bit, number, to),
            (Kind::Set(condition), [to]) => {
                let bytes = self.bytes(instruction, arguments)?;
                let operand = self.condition(condition)?;
                self.set(to, Content { operand, ty: integer(1, false) }, bytes)
            }
            (Kind::ConditionalMove(condition), [from, to]) => {
                let bytes = self.bytes(instruction, arguments)?;
                if bytes == 1 {
                    return self.refuse("there is no conditional move of one byte");
                }
                let ty = integer(bytes, false);
                let new = self.source(from, bytes)?;
                let old = self.read(to, bytes)?;
                let condition = self.condition(condition)?;
                let (new, old) = (self.converted(new, &ty)?, self.converted(old, &ty)?);
                let operand = numbers::choose(condition, new, old);
                self.write_register(to, Content { operand, ty })
            }
            _ => self.refuse("this instruction has other operands"),
        }
    }

    /// Whether an argument is memory addressed by the stack pointer.
    fn is_stack(&self, argument: &Argument) -> bool {
        matches!(argument, Argument::Address(_, base) if matches!(**base, Argument::Register(Machine::STACK, _)))
    }

    /// Whether an argument is an object in memory.
    pub(super) fn is_object(&self, argument: &Argument) -> Result<bool> {
        Ok(match argument {
            Argument::Address(..) => true,
            Argument::Operand(number, _) => {
                matches!(self.operand(*number)?, Bound::Object(_) | Bound::Pointed(_))
            }
            _ => false,
        })
    }

    /// An error if both arguments are objects in memory, which no instruction allows.
    pub(super) fn one_object(&self, a: &Argument, b: &Argument) -> Result<()> {
        match self.is_object(a)? && self.is_object(b)? {
            true => self.refuse("both operands are in memory"),
            false => Ok(()),
        }
    }

    /// The value of a source operand, which may be an object, a register or a constant.
    pub(super) fn source(&mut self, argument: &Argument, bytes: u64) -> Result<Content> {
        match self.object(argument, bytes)? {
            Some(target) => {
                self.has_value(argument)?;
                self.load(&target)
            }
            None => self.read(argument, bytes),
        }
    }

    /// The object that an instruction reads and writes; `None` if its destination is a register.
    pub(super) fn modified(
        &mut self,
        argument: &Argument,
        bytes: u64,
        locked: bool,
    ) -> Result<Option<Target>> {
        self.has_value(argument)?;
        self.destination(argument, bytes, locked)
    }

    /// The object that an instruction writes; `None` if its destination is a register.
    fn destination(&mut self, argument: &Argument, bytes: u64, locked: bool) -> Result<Option<Target>> {
        if let Argument::Operand(number, _) = argument
            && *number >= self.assembly.outputs.len()
            && self.is_object(argument)?
            && !self.clobbers_memory()
        {
            return self.refuse(format!(
                "`%{number}` is written, but it is an input, and \"memory\" is not among the clobbers"
            ));
        }
        match self.object(argument, bytes)? {
            Some(target) if locked => Ok(Some(target.accessed(Access::Atomic))),
            None if locked => {
                self.refuse("processors do not allow `lock` with a register as the destination")
            }
            target => Ok(target),
        }
    }

    /// The object, accessed with a pointer type if the register operand holds a pointer: in `xchgq %0, %1`, the place `*(uint64_t *)p` may hold a
    /// pointer, which thus stays a pointer.
    fn seen_like(&self, target: Target, register: &Argument) -> Result<Target> {
        let pointer = match register {
            Argument::Operand(number, _) => match self.operand(*number)? {
                Bound::Cell(_, ty) if matches!(ty.kind, TypeKind::Pointer(_)) => Some(ty),
                _ => None,
            },
            _ => None,
        };
        Ok(match pointer {
            Some(ty)
                if matches!(target.ty.kind, TypeKind::Integer(_))
                    && self.elaborator.size(&target.ty) == 8 =>
            {
                Target { ty, ..target }
            }
            _ => target,
        })
    }

    /// Writes a value to the object or register that an argument denotes.
    fn set(&mut self, argument: &Argument, content: Content, bytes: u64) -> Result<()> {
        match self.destination(argument, bytes, false)? {
            Some(target) => {
                self.has_written(argument);
                self.store(&target, content)
            }
            None => self.write_register(argument, content),
        }
    }

    fn store(&mut self, target: &Target, content: Content) -> Result<()> {
        let operand = self.converted(content, &unqualified(&target.ty))?;
        self.elaborator.write(target, operand, self.span)
    }

    pub(super) fn write_register(&mut self, argument: &Argument, content: Content) -> Result<()> {
        match self.register(argument)? {
            Some((cell, _)) => self.write_cell(cell, content),
            None => self.refuse("a constant cannot be written"),
        }
    }

    fn moves(&mut self, instruction: &Instruction, from: &Argument, to: &Argument) -> Result<()> {
        self.one_object(from, to)?;
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        let content = match from {
            // Only a move to a register can have an eight-byte constant.
            Argument::Immediate(number) if bytes == 8 && !self.is_object(to)? => {
                let ty = integer(8, false);
                let number = if *number < 0 { number + (1 << 64) } else { *number };
                Content { operand: Operand::number(number), ty }
            }
            _ => match self.object(from, bytes)? {
                Some(target) => {
                    self.has_value(from)?;
                    let target = self.seen_like(target, to)?;
                    self.load(&target)?
                }
                None => self.read(from, bytes)?,
            },
        };
        match self.destination(to, bytes, false)? {
            Some(target) => {
                self.has_written(to);
                let target = self.seen_like(target, from)?;
                self.store(&target, content)
            }
            None => self.write_register(to, content),
        }
    }

    /// `movz` and `movs`: moves with zero extension and with sign extension.
    fn extend(
        &mut self,
        instruction: &Instruction,
        signed: bool,
        bytes: u64,
        from: &Argument,
        to: &Argument,
    ) -> Result<()> {
        if matches!(from, Argument::Immediate(_)) {
            return self.refuse("a constant cannot be extended");
        }
        let smaller = Instruction { size: Some(bytes), ..instruction.clone() };
        self.bytes(&smaller, std::slice::from_ref(from))?;
        let wide = self.bytes(instruction, std::slice::from_ref(to))?;
        let content = self.source(from, bytes)?;
        let operand = self.converted_to(&content, bytes, signed)?;
        let narrow = Content { operand, ty: integer(bytes, signed) };
        let operand = self.converted_to(&narrow, wide, false)?;
        self.write_register(to, Content { operand, ty: integer(wide, false) })
    }

    fn exchange(&mut self, instruction: &Instruction, a: &Argument, b: &Argument) -> Result<()> {
        self.one_object(a, b)?;
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        let (register, place) = if self.is_object(a)? { (b, a) } else { (a, b) };
        if matches!(register, Argument::Immediate(_)) {
            return self.refuse("a constant cannot be written");
        }
        let new = self.read(register, bytes)?;
        if !self.is_object(place)? {
            if instruction.locked {
                return self.refuse("processors do not allow `lock` with a register as the destination");
            }
            let old = self.read(place, bytes)?;
            self.write_register(place, new)?;
            return self.write_register(register, old);
        }
        let Some(target) = self.modified(place, bytes, true)? else {
            return self.refuse("no operand is in memory");
        };
        let target = self.seen_like(target, register)?;
        let ty = unqualified(&target.ty);
        let new = self.converted(new, &ty)?;
        let operand = self.elaborator.swapped(&target, new, self.span)?;
        self.write_register(register, Content { operand, ty })
    }

    fn compare_and_exchange(
        &mut self,
        instruction: &Instruction,
        from: &Argument,
        to: &Argument,
    ) -> Result<()> {
        let bytes = self.bytes(instruction, &instruction.arguments)?;
        if self.register(from)?.is_none() {
            return self.refuse("the first operand is not a register");
        }
        let desired = self.read(from, bytes)?;
        let expected = self.read_cell(ACCUMULATOR, bytes)?;
        let target = match self.modified(to, bytes, instruction.locked)? {
            Some(target) => Some(self.seen_like(target, from)?),
            None => None,
        };
        let ty = target.as_ref().map_or_else(|| integer(bytes, false), |target| unqualified(&target.ty));
        let new = self.converted(desired, &ty)?;
        let wanted = self.converted(expected.clone(), &ty)?;
        let mut replacement = None;
        let old = match (&target, instruction.locked) {
            (Some(target), true) => self.elaborator.compare_and_swap(target, wanted, new, self.span)?.0,
            _ => {
                let old = match &target {
                    Some(target) => self.load(target)?,
                    None => self.read(to, bytes)?,
                };
                let old = self.converted(old, &ty)?;
                let same = self.elaborator.same(&ty, old.clone(), wanted, self.span)?;
                let new = Content { operand: numbers::choose(same, new, old.clone()), ty: ty.clone() };
                match &target {
                    Some(target) => self.store(target, new)?,
                    None => replacement = Some(new),
                }
                old
            }
        };
        let old = Content { operand: old, ty };
        self.computed_by(How::Difference, expected, old.clone(), None, bytes);
        // On success, the accumulator already holds the old value and keeps its upper half; on failure, the upper half is cleared. So the upper half
        // is treated as undefined.
        self.write_cell(ACCUMULATOR, old)?;
        if let Some(filled) = self.cells.get_mut(&ACCUMULATOR) {
            filled.extended = false;
        }
        // The destination may be the accumulator itself.
        match replacement {
            Some(new) => self.write_register(to, new),
            None => Ok(()),
        }
    }
}
