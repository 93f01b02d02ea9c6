//! Lowers formulas of properties and hints: expands binders, and resolves names to observables of a state.

use std::collections::{HashMap, HashSet};

use fencewright_program::{
    BinaryOp, Expr, Formula, LocationId, Observable, Program, RegisterId, Span, Thread, ThreadId,
};
use fencewright_text::Diagnostic;

use super::effort::Effort;
use super::scope::Constants;
use super::{Names, collect_labels, nearest};
use crate::ast::{self, BinderRelation, ExprKind, Name, Quantified, ThreadRef};

type Result<T> = std::result::Result<T, Diagnostic>;

/// Maximum number of values in the range of one binder.
const MOST_INSTANCES: usize = 1 << 12;

/// Lowers the formulas of a program whose threads have been lowered.
pub struct FormulaLowering<'a, 's> {
    pub program: &'a Program,
    pub names: &'a Names<'a>,
    /// The labels and registers of each thread.
    pub inner: &'a [ThreadNames<'a>],
    pub constants: &'a mut Constants,
    pub effort: &'a mut Effort<'s>,
}

/// The labels and registers of a thread, by name.
pub struct ThreadNames<'a> {
    labels: HashMap<&'a str, Vec<LocationId>>,
    registers: HashMap<&'a str, RegisterId>,
}

impl<'a> ThreadNames<'a> {
    /// The names of a thread; `end` names every location where it has terminated.
    pub fn of(thread: &'a Thread) -> Self {
        let mut labels: HashMap<&str, Vec<LocationId>> = HashMap::new();
        for (l, location) in thread.locations.iter().enumerate() {
            let l = LocationId(l as u32);
            let end = thread.is_end(l).then_some("end");
            for label in location.labels.iter().map(String::as_str).chain(end) {
                let named = labels.entry(label).or_default();
                // A location may carry the same label more than once.
                if named.last() != Some(&l) {
                    named.push(l);
                }
            }
        }
        let registers = thread.registers.iter().enumerate().rev();
        let registers =
            registers.map(|(r, register)| (register.name.as_str(), RegisterId(r as u32))).collect();
        ThreadNames { labels, registers }
    }
}

impl FormulaLowering<'_, '_> {
    pub fn formula(&mut self, e: &ast::Expr) -> Result<Formula> {
        self.effort.spend(1, e.span)?;
        match &e.kind {
            ExprKind::Int(value) => Ok(Expr::Const(*value)),
            ExprKind::Place(place) => self.place(place, e.span),
            ExprKind::Unary(op, operand) => {
                let operand = self.formula(operand)?;
                self.constants.check_unary(*op, operand.constant(), e.span)?;
                Ok(folded(Expr::unary(*op, operand)))
            }
            ExprKind::Binary(op, left, right) => {
                let left = self.formula(left)?;
                let right = self.formula(right)?;
                self.constants.check_operator(*op, left.constant(), right.constant(), e.span)?;
                check_divisor(*op, &right, e.span)?;
                Ok(match op {
                    BinaryOp::And | BinaryOp::Or => joined(*op, vec![left, right]),
                    _ => folded(Expr::binary(*op, left, right)),
                })
            }
            ExprKind::If(condition, then, otherwise) => {
                let (condition, then) = (self.formula(condition)?, self.formula(then)?);
                Ok(folded(Expr::choice(condition, then, self.formula(otherwise)?)))
            }
            ExprKind::At(thread, label) => {
                let (id, locations) = self.at(thread, label)?;
                Ok(Expr::Leaf(Observable::At(id, locations)))
            }
            ExprKind::Register(thread, register) => self.register(thread, register),
            ExprKind::Call(..) => {
                Err(Diagnostic::new(e.span, "a property looks at a state and calls no procedure"))
            }
            ExprKind::Quantified(quantifier, binders, body) => self.quantified(*quantifier, binders, body),
            ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) => {
                Err(Diagnostic::new(e.span, "a property looks at a state and cannot change it"))
            }
        }
    }

    /// The value of a constant, or a cell of a shared variable.
    fn place(&mut self, place: &ast::Place, span: Span) -> Result<Formula> {
        let name = &place.name;
        if let (Some(value), None) = (self.constants.get(&name.text), &place.index) {
            return Ok(Expr::Const(value));
        }
        let Some(&id) = self.names.shared.get(&name.text) else {
            return Err(self.unknown(name));
        };
        let variable = &self.program.variables[id.index()];
        let offset = match (&place.index, variable.indices) {
            (None, None) => 0,
            (Some(index), Some(range)) => {
                let i = self.constants.eval(index)?;
                if !range.contains(i) {
                    return Err(Diagnostic::new(span, format!("index {i} is outside `{}`", name.text)));
                }
                (i - range.low) as u32
            }
            (None, Some(_)) => {
                return Err(Diagnostic::new(
                    name.span,
                    format!("`{}` is an array and needs an index", name.text),
                ));
            }
            (Some(_), None) => {
                return Err(Diagnostic::new(name.span, format!("`{}` is not an array", name.text)));
            }
        };
        Ok(Expr::Leaf(Observable::Memory(variable.base + offset)))
    }

    fn register(&mut self, thread: &ThreadRef, register: &ast::Place) -> Result<Formula> {
        let id = self.thread(thread)?;
        let code = self.program.thread(id);
        let index = register.index.as_ref().map(|index| self.constants.eval(index)).transpose()?;
        let text = match index {
            None => register.name.text.clone(),
            Some(index) => format!("{}[{index}]", register.name.text),
        };
        match self.inner[id.index()].registers.get(text.as_str()) {
            Some(r) => Ok(Expr::Leaf(Observable::Register(id, *r))),
            None => {
                let message = format!("thread `{}` has no register `{text}`", code.name);
                let known = code.registers.iter().map(|r| r.name.as_str()).filter(|n| !n.starts_with('%'));
                Err(with_nearest(Diagnostic::new(register.name.span, message), &text, known))
            }
        }
    }

    /// The formula instantiated for all values of the binders, as a conjunction or disjunction.
    pub fn quantified(
        &mut self,
        quantifier: Quantified,
        binders: &[ast::Binder],
        body: &ast::Expr,
    ) -> Result<Formula> {
        let mut instances = Vec::new();
        self.expand(binders, body, &mut instances)?;
        let op = match quantifier {
            Quantified::Exists => BinaryOp::Or,
            Quantified::Forall => BinaryOp::And,
        };
        Ok(joined(op, instances))
    }

    fn expand(
        &mut self,
        binders: &[ast::Binder],
        body: &ast::Expr,
        instances: &mut Vec<Formula>,
    ) -> Result<()> {
        let Some((binder, rest)) = binders.split_first() else {
            instances.push(self.formula(body)?);
            return Ok(());
        };
        let range = self.constants.range(&binder.range)?;
        if range.size() > MOST_INSTANCES as u64 {
            return Err(Diagnostic::new(binder.range.span, "this range is too large for a quantifier"));
        }
        for name in std::iter::once(&binder.first).chain(binder.second.iter().map(|(_, name)| name)) {
            if self.names.shared.contains_key(&name.text) {
                return Err(Diagnostic::new(
                    name.span,
                    format!("`{}` is already a shared variable", name.text),
                ));
            }
        }
        for i in range.low..=range.high {
            let values = if binder.second.is_some() { range.size() as usize } else { 1 };
            self.effort.spend(values, binder.range.span)?;
            self.constants.push(&binder.first.text, i);
            let result = match &binder.second {
                None => self.expand(rest, body, instances),
                Some((relation, second)) => (range.low..=range.high)
                    .filter(|&j| match relation {
                        BinderRelation::Less => i < j,
                        BinderRelation::NotEqual => i != j,
                    })
                    .try_for_each(|j| {
                        self.constants.push(&second.text, j);
                        let result = self.expand(rest, body, instances);
                        self.constants.pop(&second.text);
                        result
                    }),
            };
            self.constants.pop(&binder.first.text);
            result?;
        }
        Ok(())
    }

    /// The thread that a formula names, and the locations of the thread with a label.
    pub fn at(&mut self, thread: &ThreadRef, label: &Name) -> Result<(ThreadId, Vec<LocationId>)> {
        let id = self.thread(thread)?;
        let code = self.program.thread(id);
        let locations = self.inner[id.index()].labels.get(label.text.as_str()).cloned().unwrap_or_default();
        self.effort.spend(locations.len(), label.span)?;
        let known = self.names.labels.get(&thread.name.text);
        let is_known = known.is_some_and(|l| l.contains(&label.text)) || self.is_in_procedure(&label.text);
        if locations.is_empty() && label.text != "end" && !is_known {
            let message = format!("thread `{}` has no label `{}`", code.name, label.text);
            let labels = code.locations.iter().flat_map(|l| l.labels.iter().map(String::as_str));
            return Err(with_nearest(Diagnostic::new(label.span, message), &label.text, labels));
        }
        Ok((id, locations))
    }

    /// Whether a label belongs to a procedure. The thread need not call the procedure.
    fn is_in_procedure(&self, label: &str) -> bool {
        let procedure = label.split_once('.').and_then(|(name, _)| self.names.procedures.get(name));
        procedure.is_some_and(|procedure| {
            let mut labels = HashSet::new();
            collect_labels(&procedure.body, &format!("{}.", procedure.name.text), &mut labels, self.effort);
            labels.contains(label)
        })
    }

    fn thread(&mut self, thread: &ThreadRef) -> Result<ThreadId> {
        let name = &thread.name;
        let index = thread.index.as_ref().map(|i| self.constants.eval(i)).transpose()?;
        if let Some(&id) = self.names.threads.get(&(name.text.clone(), index)) {
            return Ok(id);
        }
        let family: Vec<_> = self.names.threads.keys().filter(|(n, _)| *n == name.text).collect();
        Err(match (family.first(), index) {
            (None, _) => with_nearest(
                Diagnostic::new(name.span, format!("there is no thread `{}`", name.text)),
                &name.text,
                self.names.threads.keys().map(|(n, _)| n.as_str()),
            ),
            (Some((_, None)), Some(_)) => {
                Diagnostic::new(name.span, format!("`{}` is a single thread", name.text))
            }
            (Some(_), None) => {
                Diagnostic::new(name.span, format!("`{}` is a family of {} threads", name.text, family.len()))
                    .help(format!("say which one: `{}[0]`", name.text))
            }
            (Some(_), Some(i)) => {
                Diagnostic::new(name.span, format!("there is no thread `{}[{i}]`", name.text))
            }
        })
    }

    fn unknown(&self, name: &Name) -> Diagnostic {
        let known = self.names.shared.keys().map(String::as_str).chain(self.constants.names());
        let error = Diagnostic::new(name.span, format!("unknown name `{}`", name.text));
        match nearest(&name.text, known) {
            Some(other) => error.help(format!("did you mean `{other}`?")),
            None => error.help("a register of a thread is written `thread.register`"),
        }
    }
}

fn with_nearest<'n>(error: Diagnostic, name: &str, known: impl Iterator<Item = &'n str>) -> Diagnostic {
    match nearest(name, known) {
        Some(other) => error.help(format!("did you mean `{other}`?")),
        None => error,
    }
}

/// `!formula`; a double negation of a truth value is removed.
pub fn negation(formula: Formula) -> Formula {
    match formula {
        Expr::Unary(fencewright_program::UnaryOp::Not, inner) if is_boolean(&inner) => *inner,
        other => other.not(),
    }
}

/// Rejects operators that have no value in some states: divisions and shifts by anything but suitable constants.
fn check_divisor(op: BinaryOp, right: &Formula, span: Span) -> Result<()> {
    if matches!(op, BinaryOp::Div | BinaryOp::Rem) && right.constant().is_none_or(|d| d == 0) {
        return Err(Diagnostic::new(span, "a formula may divide only by a constant other than 0"));
    }
    if matches!(op, BinaryOp::Shl | BinaryOp::Shr)
        && !right.constant().is_some_and(|by| (0..64).contains(&by))
    {
        return Err(Diagnostic::new(span, "a formula may shift only by a constant from 0 to 63"));
    }
    Ok(())
}

/// Folds constants at the root. Formulas divide and shift by constants only, so every formula has a value.
fn folded(e: Formula) -> Formula {
    e.constant().map_or(e, Expr::Const)
}

/// The conjunction or disjunction of formulas; a constant if a constant part decides it. Other constant parts are left out, so that the instances of
/// `forall j in 0..N: j == i || ...` have the same form for every `i`, and symmetry reduction applies.
fn joined(op: BinaryOp, mut parts: Vec<Formula>) -> Formula {
    let decides = |value: i64| (value != 0) == (op == BinaryOp::Or);
    if parts.iter().any(|part| part.constant().is_some_and(decides)) {
        return Expr::Const((op == BinaryOp::Or) as i64);
    }
    parts.retain(|part| part.constant().is_none());
    // A conjunction or disjunction of two or more parts is a truth value; a single part has to be converted to one.
    if let [only] = parts.as_mut_slice()
        && !is_boolean(only)
    {
        let value = std::mem::replace(only, Expr::Const(0));
        *only = Expr::binary(BinaryOp::Ne, value, Expr::Const(0));
    }
    if op == BinaryOp::Or { Expr::any(parts) } else { Expr::all(parts) }
}

fn is_boolean(formula: &Formula) -> bool {
    match formula {
        Expr::Const(v) => matches!(v, 0 | 1),
        Expr::Leaf(observable) => matches!(observable, Observable::At(..)),
        Expr::Unary(op, _) => *op == fencewright_program::UnaryOp::Not,
        Expr::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
        Expr::If(_, then, otherwise) => is_boolean(then) && is_boolean(otherwise),
    }
}
