//! The registers of an `asm` statement: reads and writes of their low bytes.

use fencewright_c::assembly::{Direction, Machine};
use fencewright_c::typed::tree::TypeKind;
use fencewright_code::numbers::Operand;

use super::super::super::Result;
use super::reader::Argument;
use super::{Bound, Cell, Content, Filled, Run, flags, integer};

impl Run<'_, '_, '_> {
    /// The register that an argument denotes, and the number of its low bytes that the name denotes; `None` if the argument is no register.
    pub(super) fn register(&self, argument: &Argument) -> Result<Option<(Cell, u64)>> {
        Ok(match argument {
            Argument::Register(machine, bytes) => {
                if *machine == Machine::STACK {
                    return self.refuse("the stack is not modelled");
                }
                Some((Cell::Machine(*machine), *bytes))
            }
            Argument::Operand(number, size) => match self.operand(*number)? {
                Bound::Cell(cell, ty) => Some((cell, size.unwrap_or_else(|| self.elaborator.size(&ty)))),
                _ => None,
            },
            _ => None,
        })
    }

    /// The value of the low `bytes` bytes of an argument that is not an object in memory.
    pub(super) fn read(&mut self, argument: &Argument, bytes: u64) -> Result<Content> {
        let constant = match argument {
            Argument::Immediate(number) => {
                let bits = 8 * bytes.min(4);
                let low = -(1i128 << (bits - 1));
                // An instruction with eight-byte operands sign-extends a four-byte constant.
                let high = if bytes == 8 { -low } else { 1 << bits };
                if !(low..high).contains(number) {
                    return self.refuse(format!("the constant {number} does not fit {bytes} bytes"));
                }
                Some(Operand::number(*number))
            }
            Argument::Operand(number, _) => match self.operand(*number)? {
                Bound::Constant(operand) => Some(operand),
                _ => None,
            },
            _ => None,
        };
        if let Some(operand) = constant {
            let ty = integer(bytes, false);
            let TypeKind::Integer(arithmetic) = ty.kind else { unreachable!("it is an integer") };
            let known = operand.known().unwrap_or_default();
            return Ok(Content { operand: Operand::number(arithmetic.converted(known)), ty });
        }
        let Some((cell, _)) = self.register(argument)? else {
            return self.refuse("this operand cannot be read here");
        };
        self.read_cell(cell, bytes)
    }

    /// The value of the low `bytes` bytes of a register; an error if some of them are undefined.
    pub(super) fn read_cell(&mut self, cell: Cell, bytes: u64) -> Result<Content> {
        let name = self.name(cell);
        if let Some(output) = self.written
            && !self.writable.contains(&cell)
            && !matches!((output, cell), (Cell::Machine(_), Cell::Machine(_)))
        {
            let output = self.name(output);
            return self.refuse(format!(
                "`{name}` is read after `{output}` was written, which may be in the same register: `{output}` needs `&`"
            ));
        }
        let Some(Filled { content, extended }) = self.cells.get(&cell).cloned() else {
            return self.refuse(format!("`{name}` is read, but has no value"));
        };
        let size = self.elaborator.size(&content.ty);
        if bytes == size {
            return Ok(content);
        }
        if bytes > size && !extended {
            return self
                .refuse(format!("{bytes} bytes of `{name}` are read, of which only {size} are defined"));
        }
        let unsigned = self.converted(content, &integer(size, false))?;
        let ty = integer(bytes, false);
        let operand = self.converted(Content { operand: unsigned, ty: integer(size, false) }, &ty)?;
        Ok(Content { operand, ty })
    }

    /// Writes the low bytes of a register. As on x86-64, writing four bytes clears the upper half, and writing fewer keeps the other bytes.
    pub(super) fn write_cell(&mut self, cell: Cell, content: Content) -> Result<()> {
        let name = self.name(cell);
        if !self.writable.contains(&cell) {
            return self
                .refuse(format!("`{name}` is written, but is neither an output nor a clobbered register"));
        }
        let bytes = self.elaborator.size(&content.ty);
        let filled = match self.cells.get(&cell).cloned() {
            Some(Filled { content: old, extended }) if bytes < 4 && self.elaborator.size(&old.ty) > bytes => {
                let ty = integer(self.elaborator.size(&old.ty), false);
                let TypeKind::Integer(arithmetic) = ty.kind else { unreachable!("it is an integer") };
                let low = self.converted(content, &integer(bytes, false))?;
                let old = self.converted(old, &ty)?;
                let mask = Operand::number(arithmetic.greatest() - ((1 << (8 * bytes)) - 1));
                let operand = flags::merged(arithmetic, old, mask, low);
                Filled { content: Content { operand, ty }, extended }
            }
            _ => Filled { content, extended: bytes == 4 },
        };
        self.cells.insert(cell, filled);
        let assembly = self.assembly;
        let exclusive = |number: usize| {
            let (constraint, _) = &assembly.outputs[number];
            constraint.early || constraint.direction == Direction::Both
        };
        let outputs = (0..assembly.outputs.len())
            .find(|number| matches!(&self.bound[*number], Bound::Cell(other, _) if *other == cell));
        let inputs = &self.bound[assembly.outputs.len()..];
        let tied = inputs.iter().any(|bound| matches!(bound, Bound::Cell(other, _) if *other == cell));
        if self.written.is_none() && !tied && outputs.is_some_and(|number| !exclusive(number)) {
            self.written = Some(cell);
        }
        Ok(())
    }

    /// The name of a register in messages.
    pub(super) fn name(&self, cell: Cell) -> String {
        match cell {
            Cell::Machine(machine) => machine.to_string(),
            Cell::Operand(number) => format!("%{number}"),
        }
    }
}
