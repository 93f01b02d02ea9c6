//! Expressions, evaluated from left to right, with every access to shared memory as a statement of its own.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Expr, ExprKind, Step, Type, TypeKind};
use fencewright_code::core::{Known, ObjectId, Purpose, StmtKind, Value, known};
use fencewright_code::numbers::{self, ADDRESSES, Operand, truth};
use fencewright_program::Span;

use super::calls::Outcome;
use super::{Elaborator, Result};

/// Stands for the value of an expression of type `void`.
const NOTHING: i128 = 0;

impl Elaborator<'_> {
    /// Evaluates an expression. The result for type `void` is 0.
    pub fn value(&mut self, expr: &Expr) -> Result<Operand> {
        self.deeper(expr.span, |this| this.value_inside(expr))
    }

    fn value_inside(&mut self, expr: &Expr) -> Result<Operand> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Constant(number) => Ok(Operand::number(*number)),
            ExprKind::Load(place) => {
                let target = self.place(place)?;
                self.read(&target, span)
            }
            ExprKind::Address(place) => {
                let target = self.place(place)?;
                self.address(&target, span)
            }
            ExprKind::Function(function) => {
                Ok(Operand { value: Value::Function(function.0), range: ADDRESSES, points: None })
            }
            ExprKind::Unknown(name) => {
                self.missing_function(name, None, span);
                Ok(Operand::number(0))
            }
            ExprKind::String(global) => {
                let object = self.global(*global)?;
                Ok(self
                    .known_operand(&Known::Address(object, vec![Step::Element(0)]), (0, 0))
                    .expect("an address is defined"))
            }
            ExprKind::Negate(inner) => {
                let (operand, ty) = (self.value(inner)?, self.arithmetic(&expr.ty, span)?);
                Ok(numbers::negate(self, ty, operand))
            }
            ExprKind::Complement(inner) => {
                let (operand, ty) = (self.value(inner)?, self.arithmetic(&expr.ty, span)?);
                Ok(numbers::complement(ty, operand))
            }
            ExprKind::Not(inner) => {
                let operand = self.value(inner)?;
                Ok(numbers::not(self.decided(operand)))
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, span),
            ExprKind::Move(pointer, by) => {
                let (pointer_value, by) = self.both_values(pointer, by)?;
                self.moved(pointer_value, by, &pointee(&expr.ty), span)
            }
            ExprKind::Difference(a, b) => self.difference(a, b, span),
            ExprKind::And(a, b) => self.lazy(Operator::And, a, b, span),
            ExprKind::Or(a, b) => self.lazy(Operator::Or, a, b, span),
            ExprKind::Convert(inner) => self.converted(inner, &expr.ty, span),
            ExprKind::Assign(place, value) => self.assign(place, value, span),
            ExprKind::Modify { place, op, left, value, old } => {
                self.modify(place, *op, left, value, *old, span)
            }
            ExprKind::Conditional(condition, a, b) => {
                let condition = self.value(condition)?;
                self.conditional(condition, a, b, &expr.ty, span)
            }
            ExprKind::Otherwise(a, b) => self.otherwise(a, b, &expr.ty, span),
            ExprKind::Comma(a, b) => {
                self.dropped(a)?;
                self.value(b)
            }
            ExprKind::Call(callee, arguments) => match self.call(callee, arguments, expr, false)? {
                Outcome::Scalar(operand) => Ok(operand),
                Outcome::Nothing | Outcome::Aggregate(_) => Ok(Operand::number(NOTHING)),
            },
            ExprKind::Statements(block, value) => {
                let mut result = None;
                let code = self.written(|this| {
                    this.scope(Vec::new(), span, |this| {
                        this.statements(block)?;
                        if let Some(value) = value {
                            result = Some(this.value(value)?);
                        }
                        Ok(())
                    })
                })?;
                self.in_place(code, span);
                Ok(result.unwrap_or(Operand::number(NOTHING)))
            }
        }
    }

    /// Emits statements as a block.
    fn in_place(&mut self, code: Vec<super::Stmt>, span: Span) {
        if !code.is_empty() {
            let span = self.here(span);
            self.block().push(super::Stmt { kind: StmtKind::Block(code), span });
        }
    }

    /// Evaluates an expression for its side effects only.
    pub(super) fn dropped(&mut self, expr: &Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Convert(inner) => self.dropped(inner),
            ExprKind::Comma(a, b) => {
                self.dropped(a)?;
                self.dropped(b)
            }
            ExprKind::Modify { place, op, left, value, .. } => {
                self.modify(place, *op, left, value, false, expr.span).map(|_| ())
            }
            ExprKind::Call(callee, arguments) => self.call(callee, arguments, expr, true).map(|_| ()),
            ExprKind::Conditional(condition, a, b) => {
                let condition = self.value(condition)?;
                self.branch(condition, expr.span, |this| this.dropped(a), |this| this.dropped(b))
            }
            ExprKind::And(a, b) => {
                let condition = self.value(a)?;
                self.branch(condition, expr.span, |this| this.dropped(b), |_| Ok(()))
            }
            ExprKind::Or(a, b) => {
                let condition = self.value(a)?;
                self.branch(condition, expr.span, |_| Ok(()), |this| this.dropped(b))
            }
            ExprKind::Statements(block, value) => {
                let code = self.written(|this| {
                    this.scope(Vec::new(), expr.span, |this| {
                        this.statements(block)?;
                        value.as_ref().map_or(Ok(()), |value| this.dropped(value))
                    })
                })?;
                self.in_place(code, expr.span);
                Ok(())
            }
            _ if matches!(expr.ty.kind, TypeKind::Record(_)) => self.aggregate(expr).map(|_| ()),
            _ => self.value(expr).map(|_| ()),
        }
    }

    /// The integer type `ty`; an error for any other type.
    pub fn arithmetic(&self, ty: &Type, span: Span) -> Result<Arithmetic> {
        match ty.kind {
            TypeKind::Integer(arithmetic) => Ok(arithmetic),
            TypeKind::Floating(_) => self.error(
                span,
                "floating-point numbers are not supported",
                "use integers: whole numbers of the smallest unit",
            ),
            _ => self.error(span, "an integer is expected here", ""),
        }
    }

    /// Evaluates two operands from left to right. Gives a warning if one operand writes shared memory and the other accesses shared memory, because C
    /// leaves their order unspecified.
    pub(super) fn both_values(&mut self, a: &Expr, b: &Expr) -> Result<(Operand, Operand)> {
        let start = self.accesses;
        let first = self.value(a)?;
        let middle = self.accesses;
        let second = self.value(b)?;
        let end = self.accesses;
        let (left, right) = (middle.since(start), end.since(middle));
        if left.conflict(right) {
            self.warn(b.span, "C does not define the order of these accesses to memory: they are evaluated from left to right");
        }
        Ok((first, second))
    }

    fn binary(&mut self, op: Operator, a: &Expr, b: &Expr, span: Span) -> Result<Operand> {
        let (x, y) = self.both_values(a, b)?;
        match (&a.ty.kind, &b.ty.kind) {
            (TypeKind::Integer(ty), TypeKind::Integer(_)) => {
                self.same_pointers(&x, &y, span)?;
                if let Some(masked) = self.masked(op, &x, &y) {
                    return Ok(masked);
                }
                match self.known_comparison(op, &x, &y) {
                    Some(result) => Ok(Operand::number(result.into())),
                    None => Ok(numbers::binary(self, op, *ty, x, y)),
                }
            }
            (TypeKind::Floating(_), _) | (_, TypeKind::Floating(_)) => {
                self.arithmetic(&Type { kind: TypeKind::Floating(8), atomic: false, volatile: false }, span)?;
                unreachable!("floating-point numbers are rejected")
            }
            _ => {
                if let Some(result) = self.known_comparison(op, &x, &y) {
                    return Ok(Operand::number(result.into()));
                }
                self.same_pointers(&x, &y, span)?;
                Ok(numbers::compare(op, x, y))
            }
        }
    }

    /// Unifies the nodes to which two compared or combined pointers point.
    fn same_pointers(&mut self, a: &Operand, b: &Operand, span: Span) -> Result<()> {
        match (a.points, b.points) {
            (Some(a), Some(b)) => self.unify(a, b, span),
            _ => Ok(()),
        }
    }

    /// The result of a comparison of two constants, at least one of which is an address; `None` if the result cannot be decided.
    pub(super) fn known_comparison(&mut self, op: Operator, a: &Operand, b: &Operand) -> Option<bool> {
        let (a, b) = (known(&a.value)?, known(&b.value)?);
        let order = match (&a, &b) {
            (Known::Number(_), Known::Number(_)) => return None,
            (Known::Address(..) | Known::Function(_), Known::Number(0)) => std::cmp::Ordering::Greater,
            (Known::Number(0), Known::Address(..) | Known::Function(_)) => std::cmp::Ordering::Less,
            (Known::Address(one, way), Known::Address(other, further)) if one == other => {
                self.offset(*one, way)?.cmp(&self.offset(*other, further)?)
            }
            // The address one past the end of an array may equal the address of another object, so the comparison is not decided.
            (Known::Address(one, way), Known::Address(other, further))
                if self.is_end(*one, way) || self.is_end(*other, further) =>
            {
                return None;
            }
            (Known::Address(one, _), Known::Address(other, _))
                if self.may_replace(*one, *other) || self.may_replace(*other, *one) =>
            {
                return None;
            }
            // C leaves open whether equal string literals are one object.
            (Known::Address(one, _), Known::Address(other, _))
                if [one, other]
                    .iter()
                    .all(|object| self.objects[object.0 as usize].purpose == Purpose::Literal) =>
            {
                return None;
            }
            // Different objects have different addresses, but the order of these addresses is unknown.
            (Known::Address(..), Known::Address(..)) | (Known::Function(_), Known::Function(_)) => {
                if let (Known::Address(one, _), Known::Address(other, _)) = (&a, &b) {
                    self.compared.push((*one, *other));
                }
                return match op {
                    Operator::Equal => Some(a == b),
                    Operator::NotEqual => Some(a != b),
                    _ => None,
                };
            }
            _ => return None,
        };
        Some(match op {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            _ => return None,
        })
    }

    /// Whether a path leads to the nonexistent element one past the end of an array, or into that element.
    fn is_end(&self, object: ObjectId, way: &[Step]) -> bool {
        (1..=way.len()).any(|length| self.ends_array(object, &way[..length]))
    }

    fn ends_array(&self, object: ObjectId, way: &[Step]) -> bool {
        let Some((Step::Element(index), array)) = way.split_last() else { return false };
        match (self.type_at(object, array).map(|ty| ty.kind), self.allocated_bytes(object)) {
            (_, Some(bytes)) if array.is_empty() => {
                let size = self.type_at(object, &[]).map_or(1, |ty| self.size(&ty).max(1));
                *index > 0 && index.saturating_mul(size) >= bytes
            }
            (Some(TypeKind::Array(_, length)), _) => *index >= length,
            _ => false,
        }
    }

    /// The offset in bytes of a part in its object; `None` if the type of the part is unknown.
    pub(super) fn offset(&self, object: ObjectId, way: &[Step]) -> Option<u64> {
        let mut offset = 0u64;
        for (n, step) in way.iter().enumerate() {
            let ty = self.type_at(object, &way[..=n])?;
            offset += match step {
                Step::Element(index) => index.checked_mul(self.size(&ty))?,
                Step::Field(field) => {
                    let TypeKind::Record(record) = self.type_at(object, &way[..n])?.kind else { return None };
                    self.unit.records[record.0 as usize].fields[*field as usize].offset
                }
            };
        }
        Some(offset)
    }

    fn difference(&mut self, a: &Expr, b: &Expr, span: Span) -> Result<Operand> {
        let ty = pointee(&a.ty);
        let (x, y) = self.both_values(a, b)?;
        if let (Some(Known::Address(one, way)), Some(Known::Address(other, further))) =
            (known(&x.value), known(&y.value))
            && one == other
            && let (Some(above), Some(below)) = (self.offset(one, &way), self.offset(other, &further))
        {
            let bytes = i128::from(above) - i128::from(below);
            return Ok(Operand::number(bytes / i128::from(self.size(&ty).max(1))));
        }
        self.same_pointers(&x, &y, span)?;
        let node = match x.points.or(y.points) {
            Some(node) => node,
            None => self.nodes.unknown(),
        };
        self.shape(node, &ty, span)?;
        let value = Value::Difference(Box::new(x.value), Box::new(y.value), node);
        Ok(Operand::new(value, (i64::MIN.into(), i64::MAX.into())))
    }

    /// An operand of which only the truth value is used: the address of an object or a function becomes 1.
    fn decided(&self, operand: Operand) -> Operand {
        match known(&operand.value) {
            Some(Known::Address(..) | Known::Function(_)) => Operand::number(1),
            _ => operand,
        }
    }

    /// `&&` and `||`: the right operand is evaluated only if the left one does not decide the result.
    fn lazy(&mut self, op: Operator, a: &Expr, b: &Expr, span: Span) -> Result<Operand> {
        let left = self.value(a)?;
        let left = truth(self.decided(left));
        let decides = i128::from(op == Operator::Or);
        if let Some(known) = left.known() {
            if known == decides {
                return Ok(Operand::number(decides));
            }
            let right = self.value(b)?;
            return Ok(truth(self.decided(right)));
        }
        let otherwise = Operand::number(decides);
        let right = |this: &mut Self| {
            let right = this.value(b)?;
            Ok(truth(this.decided(right)))
        };
        let decided = |_: &mut Self| Ok(otherwise);
        let both = |this: &mut Self, left: Operand, right: Operand, also: Operand| {
            let other = if op == Operator::And { right } else { also };
            numbers::binary(this, op, Arithmetic::INT, left, other)
        };
        let ty = Type { kind: TypeKind::Integer(Arithmetic::INT), atomic: false, volatile: false };
        match op {
            Operator::And => self.either(left, &ty, span, right, decided, both),
            _ => self.either(left, &ty, span, decided, right, both),
        }
    }

    fn conditional(
        &mut self,
        condition: Operand,
        a: &Expr,
        b: &Expr,
        ty: &Type,
        span: Span,
    ) -> Result<Operand> {
        let condition = truth(self.decided(condition));
        match condition.known() {
            Some(0) => return self.value(b),
            Some(_) => return self.value(a),
            None => {}
        }
        if ty.kind == TypeKind::Void {
            self.branch(condition, span, |this| this.dropped(a), |this| this.dropped(b))?;
            return Ok(Operand::number(NOTHING));
        }
        let choose = |_: &mut Self, condition, a, b| numbers::choose(condition, a, b);
        self.either(condition, ty, span, |this| this.value(a), |this| this.value(b), choose)
    }

    fn otherwise(&mut self, a: &Expr, b: &Expr, ty: &Type, span: Span) -> Result<Operand> {
        let first = self.value(a)?;
        let first = self.kept_value(first, &a.ty, span)?;
        let condition = truth(self.decided(first.clone()));
        match condition.known() {
            Some(0) => return self.value(b),
            Some(_) => return Ok(first),
            None => {}
        }
        let choose = |_: &mut Self, condition, a, b| numbers::choose(condition, a, b);
        self.either(condition, ty, span, |_| Ok(first), |this| this.value(b), choose)
    }

    /// A value chosen by a condition: the expression that `pure` makes of the condition and the alternatives if neither of these emits statements
    /// or ends the execution, otherwise a branch that assigns to a register.
    fn either(
        &mut self,
        condition: Operand,
        ty: &Type,
        span: Span,
        then: impl FnOnce(&mut Self) -> Result<Operand>,
        otherwise: impl FnOnce(&mut Self) -> Result<Operand>,
        pure: impl FnOnce(&mut Self, Operand, Operand, Operand) -> Operand,
    ) -> Result<Operand> {
        self.must_run();
        let env = self.writer.env.clone();
        self.refine(&condition, true);
        let (mut first, mut second) = (None, None);
        let mut then = self.in_branch(|this| {
            this.written(|this| {
                first = Some(then(this)?);
                Ok(())
            })
        })?;
        let (after, comes) = (
            std::mem::replace(&mut self.writer.env, env.clone()),
            std::mem::replace(&mut self.writer.reachable, true),
        );
        self.refine(&condition, false);
        let mut other = self.in_branch(|this| {
            this.written(|this| {
                second = Some(otherwise(this)?);
                Ok(())
            })
        })?;
        let also = self.writer.reachable;
        let (a, b) = (first.expect("it was computed"), second.expect("it was computed"));
        self.same_pointers(&a, &b, span)?;
        if then.is_empty() && other.is_empty() && comes && also {
            self.writer.env = env;
            return Ok(pure(self, condition, a, b));
        }
        let register = self.temporary("t", ty);
        let here = self.here(span);
        let assign = |operand: &Operand| super::Stmt {
            kind: StmtKind::Assign(register, operand.value.clone()),
            span: here,
        };
        if comes {
            then.push(assign(&a));
            self.kept(&a.value);
        }
        if also {
            other.push(assign(&b));
            self.kept(&b.value);
        }
        match (comes, also) {
            (true, true) => self.writer.env.join(&after, false),
            (true, false) => self.writer.env = after,
            _ => {}
        }
        self.writer.reachable = true;
        self.emit(StmtKind::If(condition.value, then, other), span);
        self.writer.reachable = comes || also;
        let range = match (comes, also) {
            (true, false) => a.range,
            (false, _) => b.range,
            _ => (a.range.0.min(b.range.0), a.range.1.max(b.range.1)),
        };
        self.writer.env.registers.insert(register, super::env::Fact { known: None, range });
        Ok(self.register_value(register))
    }
}

/// The type to which a pointer type points; `void` if `ty` is no pointer type.
pub(super) fn pointee(ty: &Type) -> Type {
    match &ty.kind {
        TypeKind::Pointer(to) => (**to).clone(),
        _ => Type { kind: TypeKind::Void, atomic: false, volatile: false },
    }
}
