//! Random properties and hints.

use fencewright_lang::ast::*;
use fencewright_lang::fw;
use fencewright_program::{BinaryOp, Numbers};

use super::super::declarations::Interval;
use super::statements::at;
use super::{Generator, NOWHERE, expr, int, name};

impl Generator {
    pub fn properties(&mut self) -> Vec<Item> {
        use PropertyKind::*;
        let number = 2 + self.random.below(4);
        (0..number)
            .map(|n| {
                let kind = *self.random.pick(&[
                    Forbid,
                    Forbid,
                    Invariant,
                    FinallyExists,
                    FinallyNever,
                    FinallyForall,
                ]);
                let constants = self.constants.clone();
                let binders = if self.one_in(3) { self.binders() } else { Vec::new() };
                let formula = self.formula(2);
                self.constants = constants;
                let name = Some(name(format!("q{n}")));
                Item::Property(Property { name, kind, binders, formula, span: NOWHERE })
            })
            .collect()
    }

    /// Hints, which affect no verdict.
    pub fn hints(&mut self) -> Vec<Item> {
        let mut hints = Vec::new();
        if self.one_in(6) {
            hints.push(Item::Predicates(vec![self.formula(1), self.formula(1)], NOWHERE));
        }
        if let (true, Some(place)) = (self.one_in(6), self.place()) {
            hints.push(Item::Spare(place, NOWHERE));
        }
        if let (true, Some(place)) = (self.one_in(6), self.place()) {
            hints.push(Item::Cost(CostTarget::Place(place), int(2), NOWHERE));
        }
        hints
    }

    /// `p@label` for some thread that has a label, or `p@end`.
    fn place(&mut self) -> Option<Expr> {
        let number = self.random.below(self.threads.len());
        let thread = self.thread_ref(number)?;
        let labels = self.threads[number].labels.clone();
        let label = match labels.is_empty() || self.one_in(5) {
            true => "end".to_string(),
            false => self.random.pick(&labels).clone(),
        };
        Some(at(thread, &label))
    }

    fn register_of(&mut self) -> Option<Expr> {
        let number = self.random.below(self.threads.len());
        let thread = self.thread_ref(number)?;
        let registers = self.threads[number].registers.clone();
        let shape = self.random.pick(&registers);
        let index = shape.indices.map(|interval| self.constant_inside(interval));
        let index = index.flatten().map(Box::new);
        Some(expr(ExprKind::Register(thread, Place { name: name(shape.name.clone()), index })))
    }

    /// A thread, or an existing member of a family.
    fn thread_ref(&mut self, number: usize) -> Option<ThreadRef> {
        let (text, family) = (self.threads[number].name.clone(), self.threads[number].family);
        let index = match family {
            None => None,
            Some(interval) => Some(Box::new(self.constant_inside(interval)?)),
        };
        Some(ThreadRef { name: name(text), index })
    }

    /// A constant expression whose values all lie in the interval.
    fn constant_inside(&mut self, (low, high): Interval) -> Option<Expr> {
        let inside: Vec<String> = self
            .constants
            .iter()
            .filter(|(_, (least, greatest))| low <= *least && *greatest <= high)
            .map(|(name, _)| name.clone())
            .collect();
        if !inside.is_empty() && !self.one_in(4) {
            return Some(self.one_of(&inside));
        }
        (low <= high).then(|| int(self.random.between(low, high)))
    }

    fn binders(&mut self) -> Vec<Binder> {
        (0..1 + usize::from(self.one_in(4))).map(|_| self.binder()).collect()
    }

    fn binder(&mut self) -> Binder {
        let families = self.threads.iter().filter_map(|t| t.family);
        let mut intervals: Vec<Interval> =
            families.chain(self.shared.iter().filter_map(|s| s.indices)).collect();
        intervals.extend([(0, 0), (0, 1), (1, 0), (-1, 1)]);
        let interval = *self.random.pick(&intervals);
        let range = self.range(interval);
        let depth = self.constants.len();
        // A binder may shadow a top-level constant.
        let first = match self.constants.iter().any(|(name, _)| name == "N") && self.one_in(8) {
            true => "N".to_string(),
            false => format!("u{depth}"),
        };
        self.constants.retain(|(name, _)| *name != first);
        self.constants.push((first.clone(), interval));
        let relation = *self.random.pick(&[None, Some(BinderRelation::Less), Some(BinderRelation::NotEqual)]);
        let second = relation.map(|relation| {
            let second = format!("v{depth}");
            self.constants.push((second.clone(), interval));
            (relation, name(second))
        });
        Binder { first: name(first), second, range }
    }

    fn quantified(&mut self, depth: usize) -> Expr {
        let quantifier = *self.random.pick(&[Quantified::Exists, Quantified::Forall]);
        let constants = self.constants.clone();
        let binders = self.binders();
        let body = self.formula(depth);
        self.constants = constants;
        expr(ExprKind::Quantified(quantifier, binders, Box::new(body)))
    }

    /// A formula; its values may be used as numbers, not only as truth values.
    fn formula(&mut self, depth: usize) -> Expr {
        match self.random.below(if depth == 0 { 8 } else { 18 }) {
            0 | 1 => self.place().unwrap_or_else(|| int(1)),
            2 | 3 => self.register_of().unwrap_or_else(|| int(2)),
            4 | 5 => self.memory(),
            6 if !self.constants.is_empty() => {
                let constants: Vec<String> = self.constants.iter().map(|(name, _)| name.clone()).collect();
                self.one_of(&constants)
            }
            6 | 7 => self.number(),
            8 => {
                let op = self.unary_operator();
                expr(ExprKind::Unary(op, Box::new(self.formula(depth - 1))))
            }
            9 | 10 => self.quantified(depth - 1),
            11..=13 => {
                let op = *self.random.pick(&[BinaryOp::And, BinaryOp::And, BinaryOp::Or]);
                let parts = (0..2 + self.random.below(2)).map(|_| self.formula(depth - 1)).collect();
                fw::chain(op, parts)
            }
            _ => {
                let op = self.operator();
                let left = if self.one_in(4) { self.quantified(depth - 1) } else { self.formula(depth - 1) };
                let right = match op {
                    BinaryOp::Div | BinaryOp::Rem => {
                        let divisor = *self.random.pick(&[-2, -1, 1, 2, 3]);
                        self.constant(divisor)
                    }
                    BinaryOp::Shl | BinaryOp::Shr => {
                        let by = *self.random.pick(&[0, 1, 2, 5]);
                        self.constant(by)
                    }
                    _ if self.numbers == Numbers::Real || self.one_in(2) => self.number(),
                    _ => self.formula(depth - 1),
                };
                expr(ExprKind::Binary(op, Box::new(left), Box::new(right)))
            }
        }
    }

    fn memory(&mut self) -> Expr {
        let all: Vec<(String, Option<Interval>)> =
            self.shared.iter().chain(&self.mutexes).map(|s| (s.name.clone(), s.indices)).collect();
        let (text, indices) = self.random.pick(&all).clone();
        let index = match indices {
            None => None,
            Some(interval) => self.constant_inside(interval).map(Box::new),
        };
        expr(ExprKind::Place(Place { name: name(text), index }))
    }
}
