//! `memset`, `memcpy`, `memmove` and `memcmp`, and string literals that are only printed.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank};
use fencewright_c::typed::tree::{Expr, ExprKind, Type, TypeKind, Unit};
use fencewright_code::core::{Base, Projection, StmtKind, Value};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::{BinaryOp, Span};

use super::super::expressions::pointee;
use super::super::objects::Target;
use super::super::sizes::Sizing;
use super::super::{Elaborator, Result};
use super::{BuiltinCall, int, unconverted};

/// The arithmetic of `size_t`.
const SIZE: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Long, signed: false });

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

/// The start of an array.
#[derive(PartialEq)]
enum Start {
    /// The target of a pointer.
    Pointer(Value),
    /// The place at the end of a path.
    Place(Base, Vec<Projection>),
}

/// The condition that two ranges of `count` elements overlap, of which pointers to the first elements are given; `None` if they do not overlap, or if
/// they are reached in different ways, so that only a comparison of addresses would tell. Such comparisons can distinguish executions in which memory
/// is reused, so the model does not add any.
fn overlap(one: &Value, other: &Value, count: u64) -> Option<Value> {
    let ((start, from), (other, to)) = (start_and_index(one), start_and_index(other));
    let count = i64::try_from(count).ok().filter(|count| *count > 0 && start == other)?;
    if let (Value::Number(from), Value::Number(to)) = (&from, &to) {
        return (from.abs_diff(*to) < count as u64).then_some(Value::Number(1));
    }
    let distance = Value::binary(BinaryOp::Sub, from, to);
    let below = Value::binary(BinaryOp::Lt, distance.clone(), Value::Number(count));
    let above = Value::binary(BinaryOp::Gt, distance, Value::Number(-count));
    Some(Value::binary(BinaryOp::And, below, above))
}

/// A pointer as the start of an array and an index.
fn start_and_index(pointer: &Value) -> (Start, Value) {
    let sum = |a: Value, b: &Value| match (&a, b) {
        (Value::Number(0), b) => b.clone(),
        (_, Value::Number(0)) => a,
        (Value::Number(a), Value::Number(b)) => Value::Number(a.saturating_add(*b)),
        _ => Value::binary(BinaryOp::Add, a, b.clone()),
    };
    match pointer {
        Value::Move(from, by, _) => {
            let (start, index) = start_and_index(from);
            (start, sum(index, by))
        }
        Value::Address(place) => {
            let (path, index) = match place.path.split_last() {
                Some((Projection::Element(index, _), path)) => (path, index),
                _ => (&place.path[..], &Value::Number(0)),
            };
            match &place.base {
                // `p` and `&p[0]` are one pointer.
                Base::Pointed(pointer, _) if path.is_empty() => {
                    let (start, before) = start_and_index(pointer);
                    (start, sum(before, index))
                }
                base => (Start::Place(base.clone(), path.to_vec()), index.clone()),
            }
        }
        _ => (Start::Pointer(pointer.clone()), Value::Number(0)),
    }
}

impl Elaborator<'_> {
    pub(super) fn strings(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let to = to_object(self.argument(call, 0)?);
        let pointer = self.value(to)?;
        let is_checked = call.name.ends_with("_s");
        let room = if is_checked { Some(self.argument_value(call, 1)?) } else { None };
        let second = if is_checked { 2 } else { 1 };
        let bytes = self.argument_value(call, second + 1)?;
        if let Some(room) = room {
            let fits = numbers::binary(self, Operator::LessOrEqual, SIZE, bytes.clone(), room);
            self.require(fits, &format!("`{}` writes more bytes than the destination has", call.name), span);
        }
        let result = (operation == Operation::Compare).then(|| self.temporary("sign", &int()));
        let work = |this: &mut Self, bytes: u64| {
            let sign = this.region_operation(operation, call, (to, &pointer), second, bytes)?;
            match (result, sign) {
                (Some(result), Some(sign)) => this.write_register(result, sign, span),
                _ => Ok(()),
            }
        };
        match bytes.known().and_then(|bytes| u64::try_from(bytes).ok()) {
            Some(bytes) => work(self, bytes)?,
            None => {
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
                // No bytes are the one size that an allocation does not have.
                let nothing = numbers::binary(self, Operator::Equal, SIZE, bytes.clone(), Operand::number(0));
                let some = |this: &mut Self| this.sized(bytes, sizing, &whole);
                self.branch(nothing, span, |this| work(this, 0), some)?;
            }
        }
        Ok(match result {
            Some(result) => self.register_value(result),
            None if is_checked => Operand::number(0),
            None => pointer,
        })
    }

    /// Sets, copies or compares a constant number of bytes. `second` is the index of the argument with the value or the source. Returns the result of
    /// a comparison.
    fn region_operation(
        &mut self,
        operation: Operation,
        call: BuiltinCall,
        (to, pointer): (&Expr, &Operand),
        second: usize,
        bytes: u64,
    ) -> Result<Option<Operand>> {
        let span = call.span;
        let targets = self.region(pointer, to, bytes, span)?;
        if operation == Operation::Set {
            let byte = self.argument_value(call, second)?;
            for target in targets {
                let value = self.filled(&target.ty, &byte, span)?;
                self.write(&target, value, span)?;
            }
            return Ok(None);
        }
        let from = to_object(self.argument(call, second)?);
        let source = self.value(from)?;
        let sources = self.region(&source, from, bytes, span)?;
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
        if operation == Operation::Copy && call.name.contains("memcpy") {
            let count = bytes / self.size(&pointee(&to.ty)).max(1);
            if let Some(overlap) = overlap(&pointer.value, &source.value, count) {
                let apart = numbers::not(Operand::new(overlap, (0, 1)));
                self.require(apart, &format!("`{}` copies between ranges that overlap", call.name), span);
            }
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

    /// `memcmp`: 0 if all values are equal, otherwise a nondeterministic positive or negative number.
    fn compared(&mut self, targets: &[Target], values: Vec<Operand>, span: Span) -> Result<Operand> {
        let mut same = Operand::number(1);
        for (target, value) in targets.iter().zip(values) {
            let other = self.read(target, span)?;
            let equal = self.same(&target.ty, other, value, span)?;
            same = numbers::binary(self, Operator::And, Arithmetic::INT, same, equal);
        }
        if same.known() == Some(1) {
            return Ok(Operand::number(0));
        }
        let sign = self.any("sign", &int(), (0, 1), span);
        let different = numbers::choose(sign, Operand::number(1), Operand::number(-1));
        Ok(numbers::choose(same, Operand::number(0), different))
    }
}
