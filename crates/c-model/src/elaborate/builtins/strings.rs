//! `memset`, `memcpy`, `memmove` and `memcmp`, and the texts of string literals given as arguments.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank};
use fencewright_c::typed::tree::{Expr, ExprKind, Type, TypeKind, Unit};
use fencewright_code::core::{Known, StmtKind, Value, known};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::expressions::pointee;
use super::super::objects::Target;
use super::super::sizes::Sizing;
use super::super::{Elaborator, Result};
use super::{BuiltinCall, int, overlaps, unconverted};

/// The arithmetic of `size_t`.
const SIZE: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Long, signed: false });

/// The arithmetic of the bytes that `memcmp` compares.
const BYTE: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Char, signed: false });
/// The greatest error number of Linux.
const GREATEST_ERROR: i128 = 133;

/// Strips from a pointer its conversion to a pointer to a one-byte integer type, such as `char *`.
fn to_object(pointer: &Expr) -> &Expr {
    let pointer = unconverted(pointer);
    match (&pointer.kind, &pointer.ty.kind) {
        (ExprKind::Convert(inner), TypeKind::Pointer(to)) if is_byte(to) => match &inner.ty.kind {
            TypeKind::Pointer(from) if from.kind != TypeKind::Void => to_object(inner),
            _ => pointer,
        },
        _ => pointer,
    }
}

fn is_byte(ty: &Type) -> bool {
    matches!(ty.kind, TypeKind::Integer(ty) if ty.greatest() <= 255)
}

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Set,
    Copy,
    Compare,
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name.strip_prefix("__builtin_").unwrap_or(name) {
        "memset" | "memset_s" => Operation::Set,
        "memcpy" | "memmove" | "memcpy_s" | "memmove_s" => Operation::Copy,
        "memcmp" => Operation::Compare,
        _ => return None,
    })
}

/// The text of an argument that is a string literal; `None` for other arguments.
pub(super) fn text(unit: &Unit, argument: &Expr) -> Option<String> {
    match &argument.kind {
        ExprKind::Convert(inner) => text(unit, inner),
        ExprKind::String(global) => {
            let parts = &unit.globals[global.index()].initial.as_ref()?.parts;
            let character = |value: &Expr| match value.kind {
                ExprKind::Constant(number) => {
                    u8::try_from(number).ok().filter(|&byte| byte != 0).map(char::from)
                }
                _ => None,
            };
            Some(parts.iter().filter_map(|(_, value)| character(value)).collect())
        }
        _ => None,
    }
}

/// The operands of a call.
#[derive(Clone)]
struct Region<'e> {
    /// The first argument, without conversion to a pointer to bytes, and its value.
    to: &'e Expr,
    pointer: Operand,
    /// The source; `None` if bytes are set.
    from: Option<&'e Expr>,
    /// The value of the source, or of the byte.
    second: Operand,
    /// The pointers as they are computed, not kept in registers; `None` if bytes are set.
    computed: Option<(Value, Value)>,
}

impl Elaborator<'_> {
    pub(super) fn strings(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        if call.name.ends_with("_s") {
            return self.checked_strings(operation, call);
        }
        let span = call.span;
        let region = self.region_of(operation, call, 1)?;
        let bytes = self.argument_value(call, 2)?;
        let result = (operation == Operation::Compare).then(|| self.temporary("sign", &int()));
        let work = |this: &mut Self, bytes: u64| {
            if call.name.contains("memcpy") {
                this.require_apart(&region, bytes, span);
            }
            let sign = this.region_operation(operation, &region, bytes, span)?;
            match (result, sign) {
                (Some(result), Some(sign)) => this.write_register(result, sign, span),
                _ => Ok(()),
            }
        };
        self.of_size(operation, region.to, bytes, span, &work)?;
        Ok(match result {
            Some(result) => self.register_value(result),
            None => region.pointer,
        })
    }

    /// `memcpy_s`, `memmove_s` and `memset_s` (C11, annex K): if a constraint does not hold, the destination is cleared, or filled, and the result is some
    /// error number. What the handler of such errors does besides, such as ending the process, is left out.
    fn checked_strings(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let region = self.region_of(operation, call, 2)?;
        let room = self.argument_value(call, 1)?;
        let bytes = self.argument_value(call, 3)?;
        let and = |this: &mut Self, a, b| numbers::binary(this, Operator::And, Arithmetic::INT, a, b);
        let fits = numbers::binary(self, Operator::LessOrEqual, SIZE, bytes.clone(), room.clone());
        let mut holds = and(self, fits, numbers::truth(region.pointer.clone()));
        if operation == Operation::Copy {
            holds = and(self, holds, numbers::truth(region.second.clone()));
        }
        let holds = self.kept_value(holds, &int(), span)?;
        let error = self.temporary("error", &int());
        let fails = |this: &mut Self| {
            let number = this.any("error", &int(), (1, GREATEST_ERROR), span);
            this.write_register(error, number, span)?;
            let byte = if operation == Operation::Set { region.second.clone() } else { Operand::number(0) };
            let filled = Region { second: byte, from: None, ..region.clone() };
            let fill = |this: &mut Self, bytes: u64| {
                this.region_operation(Operation::Set, &filled, bytes, span).map(|_| ())
            };
            let all = |this: &mut Self| this.of_size(Operation::Set, region.to, room.clone(), span, &fill);
            this.branch(numbers::truth(region.pointer.clone()), span, all, |_| Ok(()))
        };
        let work = |this: &mut Self, bytes: u64| {
            let overlaps = match call.name.contains("memcpy") {
                true => this.overlap(&region, bytes, span)?,
                false => Operand::number(0),
            };
            let does = |this: &mut Self| {
                this.write_register(error, Operand::number(0), span)?;
                this.region_operation(operation, &region, bytes, span).map(|_| ())
            };
            this.branch(overlaps, span, fails, does)
        };
        let does = |this: &mut Self| this.of_size(operation, region.to, bytes, span, &work);
        self.branch(holds, span, does, fails)?;
        Ok(self.register_value(error))
    }

    /// Evaluates the first argument, and the value or the source.
    fn region_of<'e>(
        &mut self,
        operation: Operation,
        call: BuiltinCall<'e>,
        second: usize,
    ) -> Result<Region<'e>> {
        let to = to_object(self.argument(call, 0)?);
        let pointer = self.value(to)?;
        let computed = pointer.value.clone();
        let pointer = self.kept_value(pointer, &to.ty, call.span)?;
        if operation == Operation::Set {
            let second = self.argument_value(call, second)?;
            return Ok(Region { to, pointer, from: None, second, computed: None });
        }
        let from = to_object(self.argument(call, second)?);
        let source = self.value(from)?;
        let computed = Some((computed, source.value.clone()));
        let source = self.kept_value(source, &from.ty, call.span)?;
        Ok(Region { to, pointer, from: Some(from), second: source, computed })
    }

    /// Works on a number of bytes, which may depend on the execution. `work` has a case for each number.
    fn of_size(
        &mut self,
        operation: Operation,
        to: &Expr,
        bytes: Operand,
        span: Span,
        work: &dyn Fn(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        if let Some(bytes) = bytes.known().and_then(|bytes| u64::try_from(bytes).ok()) {
            return work(self, bytes);
        }
        let what = if operation == Operation::Set { "a fill" } else { "a copy or comparison" };
        let verb = if operation == Operation::Set { "fill" } else { "copy or compare" };
        let sizing = Sizing { what, verb, unit: 1, suggested: false, span };
        let unit = self.size(&pointee(&to.ty)).max(1);
        let whole = |this: &mut Self, bytes: u64| match bytes.is_multiple_of(unit) {
            true => work(this, bytes),
            false => {
                let text = format!("{what} of {bytes} bytes, which are no whole number of objects");
                this.emit(StmtKind::Beyond(Value::Number(1), text), span);
                this.writer.reachable = false;
                Ok(())
            }
        };
        // The size 0 is a case of its own, because no allocation has it, and `sized` tries only the sizes that allocations may have.
        let nothing = numbers::binary(self, Operator::Equal, SIZE, bytes.clone(), Operand::number(0));
        let some = |this: &mut Self| this.sized(bytes, sizing, &whole);
        self.branch(nothing, span, |this| work(this, 0), some)
    }

    /// Asserts that the source and the destination of `memcpy` do not overlap, where that is known without comparing addresses.
    fn require_apart(&mut self, region: &Region<'_>, bytes: u64, span: Span) {
        let count = bytes / self.size(&pointee(&region.to.ty)).max(1);
        let overlap = region.computed.as_ref().and_then(|(to, from)| overlaps::overlap(to, from, count));
        if let Some(overlap) = overlap {
            let apart = numbers::not(Operand::new(overlap, (0, 1)));
            self.require(apart, "memcpy copies between ranges that overlap", span);
        }
    }

    /// Whether the source and the destination of a copy overlap: whether an object of one of them is the first of the other.
    fn overlap(&mut self, region: &Region<'_>, bytes: u64, span: Span) -> Result<Operand> {
        let Region { to, pointer, second, .. } = region;
        let object = |operand: &Operand| match known(&operand.value) {
            Some(Known::Address(object, _)) => Some(object),
            _ => None,
        };
        if bytes == 0 || matches!((object(pointer), object(second)), (Some(a), Some(b)) if a != b) {
            return Ok(Operand::number(0));
        }
        let ty = pointee(&to.ty);
        let mut overlaps = Operand::number(0);
        for number in 0..bytes / self.size(&ty).max(1) {
            for (a, b) in [(pointer, second), (second, pointer)] {
                let a = self.moved(a.clone(), Operand::number(number.into()), &ty, span)?;
                let same = self.same(&to.ty, a, b.clone(), span)?;
                overlaps = numbers::binary(self, Operator::Or, Arithmetic::INT, overlaps, same);
            }
        }
        self.kept_value(overlaps, &int(), span)
    }

    /// Sets, copies or compares a constant number of bytes. Returns the result of a comparison.
    fn region_operation(
        &mut self,
        operation: Operation,
        region: &Region<'_>,
        bytes: u64,
        span: Span,
    ) -> Result<Option<Operand>> {
        let Region { to, pointer, from, second, .. } = region;
        let targets = self.region(pointer, to, bytes, span)?;
        let Some(from) = from else {
            for target in targets {
                let value = self.filled(&target.ty, second, span)?;
                self.write(&target, value, span)?;
            }
            return Ok(None);
        };
        let sources = self.region(second, from, bytes, span)?;
        let alike = targets.len() == sources.len()
            && targets.iter().zip(&sources).all(|(a, b)| self.size(&a.ty) == self.size(&b.ty));
        if !alike {
            let help = "copy from and to objects of the same type";
            return self.error(span, "source and destination have different types", help);
        }
        let compared: u64 = targets.iter().map(|target| self.size(&target.ty)).sum();
        if operation == Operation::Compare && compared != bytes {
            let help = "compare the members one by one";
            return self.error(
                span,
                "the bytes between the members of these structures are not modelled",
                help,
            );
        }
        let mut values = Vec::new();
        for source in &sources {
            let value = self.read(source, span)?;
            values.push(self.kept_value(value, &source.ty, span)?);
        }
        if operation == Operation::Compare {
            return self.compared(&targets, values, span).map(Some);
        }
        // All values are read before the first write, because the objects may overlap.
        for ((target, source), value) in targets.iter().zip(&sources).zip(values) {
            let value = self.cast(value, &source.ty, &target.ty, span)?;
            self.write(target, value, span)?;
        }
        Ok(None)
    }

    /// The places of all scalars in the first `bytes` bytes from a pointer on.
    fn region(&mut self, pointer: &Operand, expr: &Expr, bytes: u64, span: Span) -> Result<Vec<Target>> {
        let to = match &expr.ty.kind {
            TypeKind::Pointer(to) if to.kind != TypeKind::Void => (**to).clone(),
            _ => {
                return self.error(
                    expr.span,
                    "the type of this memory is unknown",
                    "pass a pointer to an object, not a `void *`",
                );
            }
        };
        let size = self.size(&to).max(1);
        if !bytes.is_multiple_of(size) {
            let message =
                format!("{bytes} bytes are no whole number of objects, which have {size} bytes each");
            return self.error(span, message, "access whole objects, or their members one by one");
        }
        let mut targets = Vec::new();
        for number in 0..bytes / size {
            let by = Operand::number(number.into());
            let element = self.moved(pointer.clone(), by, &to, span)?;
            let target = self.pointed(&element, &to, span)?;
            for way in self.scalars(&to, span)? {
                let mut part = target.clone();
                for step in way {
                    part = self.part_at(&part, step, span)?;
                }
                targets.push(part);
            }
            if targets.len() > super::super::aggregates::MOST_PARTS {
                return self.error(span, "these are too many values at once", "make the array smaller");
            }
        }
        Ok(targets)
    }

    /// The value of a type in whose representation every byte equals `byte`.
    fn filled(&mut self, ty: &Type, byte: &Operand, span: Span) -> Result<Operand> {
        let byte = byte.known().map(|byte| byte & 0xff);
        match (byte, &ty.kind) {
            (Some(0), _) => Ok(Operand::number(0)),
            (Some(byte), TypeKind::Integer(arithmetic)) => {
                let repeated = (0..self.size(ty)).fold(0, |value: i128, _| value << 8 | byte);
                Ok(Operand::number(arithmetic.converted(repeated)))
            }
            _ => {
                let help = "fill with 0, or with another constant where there are integers only";
                self.error(span, "the value that these bytes represent is unknown", help)
            }
        }
    }

    /// `memcmp`: 0 if all values are equal. Otherwise the first bytes that differ decide; of greater numbers, a nondeterministic choice does.
    fn compared(&mut self, targets: &[Target], values: Vec<Operand>, span: Span) -> Result<Operand> {
        let mut pairs = Vec::new();
        for (target, value) in targets.iter().zip(values) {
            let other = self.read(target, span)?;
            pairs.push((other, value, &target.ty));
        }
        let mut result = Operand::number(0);
        if pairs.iter().all(|(.., ty)| is_byte(ty)) {
            for (one, other, _) in pairs.into_iter().rev() {
                let (one, other) = (numbers::convert(BYTE, one), numbers::convert(BYTE, other));
                let equal = numbers::binary(self, Operator::Equal, BYTE, one.clone(), other.clone());
                let less = numbers::binary(self, Operator::Less, BYTE, one, other);
                let sign = numbers::choose(less, Operand::number(-1), Operand::number(1));
                result = numbers::choose(equal, result, sign);
            }
            return Ok(result);
        }
        let mut same = Operand::number(1);
        for (one, other, ty) in pairs {
            let equal = self.same(ty, one, other, span)?;
            same = numbers::binary(self, Operator::And, Arithmetic::INT, same, equal);
        }
        if same.known() == Some(1) {
            return Ok(result);
        }
        let sign = self.any("sign", &int(), (0, 1), span);
        let different = numbers::choose(sign, Operand::number(1), Operand::number(-1));
        result = numbers::choose(same, result, different);
        Ok(result)
    }
}
