//! Binds the operands of an `asm` statement to registers, objects and constants, and reads the inputs.

use fencewright_c::assembly::{Constraint, ConstraintKind, Direction, Machine};
use fencewright_c::typed::tree::{AssemblyInput, Expr, ExprKind, Place, PlaceKind, Type, TypeKind};
use fencewright_code::core::{Access, Base};
use fencewright_code::numbers::Operand;

use super::super::super::Result;
use super::super::super::objects::Spot;
use super::{Bound, Cell, Content, Filled, Run, shown, unqualified};

impl Run<'_, '_, '_> {
    /// Binds the operands to their storage, and reads the inputs.
    pub(super) fn bind(&mut self) -> Result<()> {
        let assembly = self.assembly;
        for (number, (constraint, place)) in assembly.outputs.iter().enumerate() {
            let bound = match &constraint.kind {
                ConstraintKind::Memory => self.output_in_memory(number, constraint, place)?,
                ConstraintKind::Condition(_) => Bound::Condition,
                ConstraintKind::Register(fixed, _) => {
                    let cell = fixed.map_or(Cell::Operand(number), Cell::Machine);
                    if self.writable.contains(&cell) {
                        return self.refuse(format!("two outputs are in the register of `%{number}`"));
                    }
                    self.writable.push(cell);
                    Bound::Cell(cell, self.scalar_type(&place.ty, number)?)
                }
                ConstraintKind::Immediate(_) | ConstraintKind::Tied(_) => {
                    return self
                        .refuse(format!("the constraint `{constraint}` of `%{number}` is for inputs"));
                }
                ConstraintKind::Unknown(reason) => return self.unknown(number, &constraint.text, reason),
            };
            let target = match bound {
                Bound::Cell(..) | Bound::Condition => Some(self.elaborator.place(place)?),
                _ => None,
            };
            self.places.push(target);
            self.bound.push(bound);
        }
        for (number, (constraint, _)) in assembly.outputs.iter().enumerate() {
            if let (Bound::Cell(cell, ty), Some(target)) =
                (self.bound[number].clone(), self.places[number].clone())
                && constraint.direction == Direction::Both
            {
                let operand = self.elaborator.read(&target, self.span)?;
                self.fill(cell, operand, ty)?;
            }
        }
        for (number, (constraint, input)) in (assembly.outputs.len()..).zip(&assembly.inputs) {
            let bound = match (&constraint.kind, input) {
                (ConstraintKind::Memory, AssemblyInput::Memory(place)) => {
                    let bound = self.memory(place)?.0;
                    let outputs = &self.bound[..assembly.outputs.len()];
                    self.unset.retain(|output| !outputs[*output].is_same_object(&bound));
                    bound
                }
                (ConstraintKind::Unknown(reason), _) => {
                    return self.unknown(number, &constraint.text, reason);
                }
                (kind, AssemblyInput::Value(value)) => self.input(number, kind, value)?,
                _ => {
                    return self
                        .refuse(format!("the constraint `{constraint}` of `%{number}` is for outputs"));
                }
            };
            self.bound.push(bound);
        }
        for clobber in &assembly.clobbers {
            let name = clobber.strip_prefix('%').unwrap_or(clobber);
            if matches!(name, "memory" | "cc" | "flags" | "fpsr" | "dirflag" | "redzone") {
                continue;
            }
            let Some((machine, _)) = Machine::named(name) else {
                return self.refuse(format!("the clobber `{clobber}` is not supported"));
            };
            let cell = Cell::Machine(machine);
            let used = |bound: &Bound| matches!(bound, Bound::Cell(other, _) if *other == cell);
            if self.bound.iter().any(used) {
                return self.refuse(format!("the clobbered register `{clobber}` is an operand as well"));
            }
            self.writable.push(cell);
        }
        Ok(())
    }

    fn unknown<T>(&self, number: usize, constraint: &str, reason: &str) -> Result<T> {
        self.refuse(format!(
            "the constraint `{}` of `%{number}` is not supported: {reason}",
            shown(constraint)
        ))
    }

    /// Binds an input, and reads its value.
    fn input(&mut self, number: usize, kind: &ConstraintKind, value: &Expr) -> Result<Bound> {
        let operand = self.elaborator.value(value)?;
        let fits = |range: &(i128, i128), known: i128| (range.0..=range.1).contains(&known);
        let cell = match kind {
            ConstraintKind::Immediate(range) => match operand.known() {
                Some(known) if fits(range, known) => return Ok(Bound::Constant(operand)),
                _ => return self.refuse(format!("`%{number}` is not a constant that its constraint allows")),
            },
            ConstraintKind::Register(_, Some(range))
                if operand.known().is_some_and(|known| fits(range, known)) =>
            {
                return Ok(Bound::Constant(operand));
            }
            ConstraintKind::Register(fixed, _) => fixed.map_or(Cell::Operand(number), Cell::Machine),
            ConstraintKind::Tied(output) => match self.bound.get(*output) {
                Some(Bound::Cell(cell, ty)) if *output < self.assembly.outputs.len() => {
                    if self.elaborator.size(ty) != self.elaborator.size(&value.ty) {
                        return self.refuse(format!(
                            "`%{number}` and `%{output}` share a register, but have different sizes"
                        ));
                    }
                    *cell
                }
                // An object that is read and written, given as an output and an input instead of as `"+m"`.
                Some(bound @ (Bound::Object(_) | Bound::Pointed(_)))
                    if *output < self.assembly.outputs.len() =>
                {
                    self.unset.retain(|number| number != output);
                    return Ok(bound.clone());
                }
                _ => {
                    return self.refuse(format!(
                        "`%{number}` shares its storage with an output that does not exist"
                    ));
                }
            },
            _ => return self.refuse(format!("the constraint of `%{number}` is for outputs")),
        };
        if self.cells.contains_key(&cell) {
            return self.refuse(format!("two inputs are in the register of `%{number}`"));
        }
        let ty = self.scalar_type(&value.ty, number)?;
        self.fill(cell, operand, ty.clone())?;
        Ok(Bound::Cell(cell, ty))
    }

    /// The type of an operand in a register; an error unless it is an integer or pointer type.
    pub(super) fn scalar_type(&self, ty: &Type, number: usize) -> Result<Type> {
        match ty.kind {
            TypeKind::Integer(_) | TypeKind::Pointer(_) => Ok(unqualified(ty)),
            _ => self.refuse(format!("`%{number}` is neither an integer nor a pointer")),
        }
    }

    /// Puts the value of an input into a register. The register keeps this value even if variables from which it was computed are written later.
    fn fill(&mut self, cell: Cell, operand: Operand, ty: Type) -> Result<()> {
        let operand = self.elaborator.kept_value(operand, &ty, self.span)?;
        self.cells.insert(cell, Filled { content: Content { operand, ty }, extended: false });
        Ok(())
    }

    /// Binds an output to an object in memory, and records whether its value may be lost.
    fn output_in_memory(&mut self, number: usize, constraint: &Constraint, place: &Place) -> Result<Bound> {
        let (bound, access) = self.memory(place)?;
        if constraint.direction == Direction::Output && access == Access::Plain && !self.clobbers_memory() {
            self.unset.push(number);
        }
        Ok(bound)
    }

    /// Binds an operand to an object in memory. Returns also the kind of access that the type of the object implies.
    fn memory(&mut self, place: &Place) -> Result<(Bound, Access)> {
        if let (PlaceKind::Pointed(pointer), TypeKind::Record(_)) = (&place.kind, &place.ty.kind) {
            let access = if place.ty.volatile { Access::Volatile } else { Access::Plain };
            return Ok((Bound::Pointed(self.elaborator.value(unconverted(pointer))?), access));
        }
        let target = self.elaborator.place(place)?;
        let target = match target.ty.kind {
            TypeKind::Record(_) => self.elaborator.scalar(target, self.span)?,
            _ => target,
        };
        let access = target.access;
        Ok((Bound::Object(target.accessed(Access::Volatile)), access))
    }
}

impl Bound {
    /// Whether two operands are certainly the same object in memory.
    fn is_same_object(&self, other: &Bound) -> bool {
        match (self, other) {
            (Bound::Pointed(one), Bound::Pointed(other)) => one.value == other.value,
            (Bound::Object(one), Bound::Object(other)) => match (&one.spot, &other.spot) {
                (Spot::Register(one), Spot::Register(other)) => one == other,
                (Spot::Memory(one), Spot::Memory(other)) => {
                    one.path == other.path
                        && match (&one.base, &other.base) {
                            (Base::Object(one), Base::Object(other)) => one == other,
                            (Base::Pointed(one, _), Base::Pointed(other, _)) => one == other,
                            _ => false,
                        }
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// Strips conversions between pointer types.
fn unconverted(pointer: &Expr) -> &Expr {
    match &pointer.kind {
        ExprKind::Convert(inner) if matches!(inner.ty.kind, TypeKind::Pointer(_)) => unconverted(inner),
        _ => pointer,
    }
}
