//! Values of structure type, and the initialisation of variables.

use fencewright_c::typed::tree::{Expr, ExprKind, Initial, Step, Type, TypeKind};
use fencewright_code::core::{Known, Object, ObjectId, Origin, Purpose};
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

use super::calls::Outcome;
use super::env::Fact;
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// Maximum number of scalars that one statement may copy or initialise.
pub(super) const MOST_PARTS: usize = 4_096;

impl Elaborator<'_> {
    /// Evaluates an expression of structure type. Returns the place that holds the result.
    pub(super) fn aggregate(&mut self, expr: &Expr) -> Result<Target> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Load(place) => self.place(place),
            ExprKind::Assign(place, value) => {
                let target = self.place(place)?;
                let from = self.aggregate(value)?;
                self.copy(&from, &target, span)?;
                Ok(target)
            }
            ExprKind::Comma(a, b) => {
                self.dropped(a)?;
                self.aggregate(b)
            }
            ExprKind::Convert(inner) => self.aggregate(inner),
            ExprKind::Call(callee, arguments) => match self.call(callee, arguments, expr, false)? {
                Outcome::Aggregate(target) => Ok(target),
                _ => self.error(span, "this function returns no structure", ""),
            },
            ExprKind::Conditional(condition, a, b) => {
                let object = self.scratch("t", &expr.ty, span);
                let target = Target::new(Spot::Memory(self.location(object, &[])), expr.ty.clone());
                let condition = self.value(condition)?;
                let into = |this: &mut Self, from: &Expr| {
                    let from = this.aggregate(from)?;
                    this.copy(&from, &target, span)
                };
                self.branch(condition, span, |this| into(this, a), |this| into(this, b))?;
                Ok(target)
            }
            ExprKind::Statements(block, Some(value)) => {
                self.statements(block)?;
                self.aggregate(value)
            }
            _ => self.error(span, "this structure cannot be taken as a value", "use a variable"),
        }
    }

    /// A new temporary object in memory.
    pub(super) fn scratch(&mut self, name: &str, ty: &Type, span: Span) -> ObjectId {
        let node = self.nodes.object(ty, span);
        let origin = Origin::Local(self.thread());
        let ty = Some(ty.clone());
        self.object(Object {
            name: name.to_string(),
            ty,
            node,
            origin,
            initial: Vec::new(),
            undefined: true,
            purpose: Purpose::Translation,
            span,
        })
    }

    /// Copies a structure, member by member.
    pub(super) fn copy(&mut self, from: &Target, to: &Target, span: Span) -> Result<()> {
        for way in self.scalars(&to.ty, span)? {
            let (mut source, mut target) = (from.clone(), to.clone());
            for step in way {
                source = self.part_at(&source, step, span)?;
                target = self.part_at(&target, step, span)?;
            }
            if self.executing() && self.copied_undefined(&source, &target) {
                continue;
            }
            let operand = self.read(&source, span)?;
            self.write(&target, operand, span)?;
        }
        Ok(())
    }

    /// If a place is known to hold the undefined value, copies this value without reporting an error, because only the use of an undefined value is
    /// an error. Returns whether the value was copied.
    fn copied_undefined(&mut self, from: &Target, to: &Target) -> bool {
        let (Some((source, way)), Some((target, further))) = (from.known(), to.known()) else { return false };
        if !self.is_private(source) || !self.is_private(target) {
            return false;
        }
        let fact = self.writer.env.objects.get(&source).and_then(|contents| contents.part(&way));
        let undefined = fact.is_some_and(|fact| fact.known == Some(Known::Undefined));
        if undefined {
            let contents = self.writer.env.objects.entry(target).or_default();
            contents.parts.insert(further, Some(Fact::of(Known::Undefined)));
        }
        undefined
    }

    /// The paths to all scalars that a value of this type contains; of a union, to those in its first member.
    pub(super) fn scalars(&self, ty: &Type, span: Span) -> Result<Vec<Vec<Step>>> {
        let mut ways = Vec::new();
        self.collect(ty, &mut Vec::new(), &mut ways);
        match ways.len() > MOST_PARTS {
            true => {
                self.error(span, format!("more than {MOST_PARTS} values at once"), "make the array smaller")
            }
            false => Ok(ways),
        }
    }

    fn collect(&self, ty: &Type, way: &mut Vec<Step>, ways: &mut Vec<Vec<Step>>) {
        if ways.len() > MOST_PARTS {
            return;
        }
        match &ty.kind {
            TypeKind::Record(record) => {
                let record = &self.unit.records[record.0 as usize];
                let all = if record.union { 1 } else { record.fields.len() };
                for (n, field) in record.fields.iter().take(all).enumerate() {
                    way.push(Step::Field(n as u32));
                    self.collect(&field.ty, way, ways);
                    way.pop();
                }
            }
            TypeKind::Array(element, length) => {
                for n in 0..(*length).min(MOST_PARTS as u64 + 1) {
                    way.push(Step::Element(n));
                    self.collect(element, way, ways);
                    way.pop();
                }
            }
            _ => ways.push(way.clone()),
        }
    }

    /// Writes the initial value of a variable, including the parts that become zero.
    pub(super) fn initialize(&mut self, target: &Target, initial: &Initial, span: Span) -> Result<()> {
        if initial.whole {
            for way in self.scalars(&target.ty, span)? {
                if initial.parts.iter().any(|(part, _)| way.starts_with(part)) {
                    continue;
                }
                let mut part = target.clone();
                for step in way {
                    part = self.part_at(&part, step, span)?;
                }
                self.write(&part, Operand::number(0), span)?;
            }
        }
        for (way, value) in &initial.parts {
            let mut part = target.clone();
            for step in way {
                part = self.part_at(&part, *step, span)?;
            }
            match part.ty.kind {
                TypeKind::Record(_) => {
                    let from = self.aggregate(value)?;
                    self.copy(&from, &part, span)?;
                }
                _ => {
                    let operand = self.value(value)?;
                    self.write(&part, operand, span)?;
                }
            }
        }
        Ok(())
    }
}
