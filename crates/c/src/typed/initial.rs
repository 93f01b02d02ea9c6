//! Initial values (C11 6.7.9): designators, ranges, strings, and omitted braces.

use fencewright_program::Span;

use super::conversions::convert;
use super::tree::{Expr, ExprKind, Initial, LocalId, Place, PlaceKind, Step, Type, TypeKind, Variable};
use super::types::{CHAR, compatible};
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::ast::{self, Designator, Initializer, Rank};
use crate::error::Error;
use crate::token::ExpansionId;

/// Maximum number of values to which all designator ranges together may expand.
const MOST_REPEATED: u64 = 1 << 18;

/// An array, structure or union that is being initialised.
struct Aggregate {
    ty: Type,
    /// The path from the variable to this aggregate.
    path: Vec<Step>,
    /// Index of the next element or member.
    next: u64,
}

/// The parts of a variable that have been initialised so far.
#[derive(Default)]
struct Parts {
    found: Vec<(Vec<Step>, Expr)>,
    /// If the variable is an array of unknown length: one more than the greatest index initialised so far.
    length: u64,
    /// The number of values, without the first one of each range, to which the designator ranges so far expand.
    repeated: u64,
}

/// An initialiser in braces, and the type of the variable or part that it initialises.
#[derive(Clone, Copy)]
struct Braces<'a> {
    ty: &'a Type,
    /// Whether the initialiser determines the length, because `ty` is an array declared with `[]`.
    open: bool,
    list: &'a [(Vec<Designator>, Initializer)],
    span: Span,
}

impl Typer<'_> {
    /// The initial value of a variable of type `ty`, and the type completed with the length; `open` means that the initialiser determines this
    /// length.
    pub(super) fn initial(
        &mut self,
        ty: &Type,
        open: bool,
        initial: &Initializer,
        at: Span,
    ) -> Typing<(Type, Initial)> {
        let mut parts = Parts::default();
        let initial = self.literal_for(ty, initial, at)?;
        let whole = match initial {
            Initializer::Expression(expr) => match self.string_for(ty, expr) {
                Some(text) => {
                    self.characters(ty, open, text, Vec::new(), &mut parts, expr.span)?;
                    true
                }
                None => {
                    if matches!(ty.kind, TypeKind::Array(..)) {
                        return Err(Error::new(expr.span, "an array starts with values in braces")
                            .help("write `{ ... }`"));
                    }
                    let value = self.value(expr)?;
                    let value = self.implicit(value, ty, "a variable")?;
                    parts.found.push((Vec::new(), value));
                    false
                }
            },
            Initializer::List(list, span) => {
                self.braced(Braces { ty, open, list, span: *span }, Vec::new(), &mut parts)?
            }
        };
        let ty = if open { self.of_length(ty, parts.length, at)? } else { ty.clone() };
        Ok((ty, Initial { parts: parts.found, whole }))
    }

    /// If a variable is initialised with a compound literal `(type){ ... }` of its own type, the initialiser inside the literal, because this literal
    /// needs no variable of its own; otherwise `initial` unchanged.
    fn literal_for<'e>(&mut self, ty: &Type, initial: &'e Initializer, at: Span) -> Typing<&'e Initializer> {
        if let (Initializer::Expression(expr), TypeKind::Record(_) | TypeKind::Array(..)) =
            (initial, &ty.kind)
            && let ast::ExprKind::Compound(literal, inner) = &expr.kind
            && compatible(&self.ty(literal, at)?, ty)
        {
            return Ok(inner);
        }
        Ok(initial)
    }

    /// The text of a string literal that initialises an array of characters; `None` for any other expression or type.
    fn string_for<'e>(&self, ty: &Type, expr: &'e ast::Expr) -> Option<&'e str> {
        let TypeKind::Array(element, _) = &ty.kind else { return None };
        let character = match element.arithmetic()? {
            Arithmetic::Integer(integer) => integer.rank == Rank::Char,
            Arithmetic::Bool => false,
        };
        match &expr.kind {
            ast::ExprKind::String(text) if character => Some(text),
            _ => None,
        }
    }

    fn characters(
        &mut self,
        ty: &Type,
        open: bool,
        text: &str,
        path: Vec<Step>,
        parts: &mut Parts,
        span: Span,
    ) -> Typing<()> {
        let TypeKind::Array(element, length) = &ty.kind else { return Ok(()) };
        // The terminating zero is left out if it does not fit.
        if !open && text.len() as u64 > *length {
            return Err(Error::new(span, format!("this string does not fit into {length} characters"))
                .help("leave the length open: `[]`"));
        }
        parts.length = parts.length.max(text.len() as u64 + 1);
        for (n, byte) in text.bytes().enumerate() {
            let kind = ExprKind::Constant(i128::from(byte as i8));
            let value = Expr { kind, ty: CHAR.into(), span, expansion: ExpansionId::default() };
            let mut path = path.clone();
            path.push(Step::Element(n as u64));
            parts.found.push((path, convert(value, element)));
        }
        Ok(())
    }

    /// Processes a braced initialiser. Returns whether parts that it does not mention become zero: false only for a value of a scalar variable, which
    /// has no parts.
    fn braced(&mut self, braces: Braces<'_>, path: Vec<Step>, parts: &mut Parts) -> Typing<bool> {
        let Braces { ty, open, list, span } = braces;
        match &ty.kind {
            TypeKind::Array(..) => {
                if let [(designators, Initializer::Expression(expr))] = list
                    && let (true, Some(text)) = (designators.is_empty(), self.string_for(ty, expr))
                {
                    self.characters(ty, open, text, path, parts, expr.span)?;
                    return Ok(true);
                }
            }
            TypeKind::Record(id) => self.complete(*id, span)?,
            _ => return self.braced_scalar(braces, path, parts),
        }
        let mut stack = vec![Aggregate { ty: ty.clone(), path, next: 0 }];
        for (designators, value) in list {
            if (self.stop)() {
                return Err(Error::new(span, "stopped while types were looked at"));
            }
            let mut repeat = None;
            match designators.is_empty() {
                false => repeat = self.designated(&mut stack, designators, span, open)?,
                true => {
                    while stack.len() > 1 && self.is_full(&stack[stack.len() - 1], false) {
                        stack.pop();
                    }
                }
            }
            let (low, high) = repeat.unwrap_or_else(|| {
                let next = stack[stack.len() - 1].next;
                (next, next)
            });
            parts.repeated += high - low;
            if parts.repeated > MOST_REPEATED {
                return Err(Error::new(
                    span,
                    format!("ranges that stand for more than {MOST_REPEATED} values"),
                )
                .help("use a loop, or a smaller array"));
            }
            let depth = stack.len();
            for at in low..=high {
                stack.truncate(depth);
                stack[depth - 1].next = at;
                let before = parts.found.len();
                self.one(&mut stack, value, open, parts, span)?;
                let repeatable = |(_, value): &(Vec<Step>, Expr)| self.is_fixed(value);
                if low < high && !parts.found[before..].iter().all(repeatable) {
                    return Err(Error::new(
                        span,
                        "a range of elements starts with something that is computed",
                    )
                    .help("use a constant, or a loop"));
                }
            }
        }
        Ok(true)
    }

    /// Processes the initialiser of a scalar, which may have braces; `{}` means zero. The result is that of `braced`.
    fn braced_scalar(&mut self, braces: Braces<'_>, path: Vec<Step>, parts: &mut Parts) -> Typing<bool> {
        let Braces { ty, open, list, span } = braces;
        match list {
            [] => Ok(true),
            [(designators, value)] if designators.is_empty() => match value {
                Initializer::Expression(expr) => {
                    let value = self.value(expr)?;
                    let value = self.implicit(value, ty, "a variable")?;
                    let inside = !path.is_empty();
                    parts.found.push((path, value));
                    Ok(inside)
                }
                Initializer::List(list, span) => {
                    let inner = Braces { ty, open, list, span: *span };
                    self.nested(*span, |typer| typer.braced(inner, path, parts))
                }
            },
            _ => Err(Error::new(span, "more values than there are parts")),
        }
    }

    /// Whether no element or member is left for the next value; in a union, only the first member takes a value without a designator. An `open` array
    /// is never full.
    fn is_full(&self, aggregate: &Aggregate, open: bool) -> bool {
        match &aggregate.ty.kind {
            TypeKind::Array(_, length) => !open && aggregate.next >= *length,
            TypeKind::Record(id) => {
                let record = &self.records[id.0 as usize];
                let count = record.fields.len() as u64;
                aggregate.next >= if record.union { count.min(1) } else { count }
            }
            _ => true,
        }
    }

    /// The type of the element or member with this number and the step that leads to it; `None` if there is no such part.
    fn part(&self, aggregate: &Aggregate, number: u64) -> Option<(Type, Step)> {
        match &aggregate.ty.kind {
            TypeKind::Array(element, _) => Some(((**element).clone(), Step::Element(number))),
            TypeKind::Record(id) => {
                let field = self.records[id.0 as usize].fields.get(number as usize)?;
                Some((field.ty.clone(), Step::Field(number as u32)))
            }
            _ => None,
        }
    }

    /// Pushes the next part of the innermost aggregate on the stack; this part is the innermost aggregate then.
    fn descend(&mut self, stack: &mut Vec<Aggregate>, span: Span) -> Typing<()> {
        let top = &stack[stack.len() - 1];
        let Some((ty, step)) = self.part(top, top.next) else {
            return Err(Error::new(span, "this part does not exist"));
        };
        if let TypeKind::Record(id) = ty.kind {
            self.complete(id, span)?;
        }
        let mut path = top.path.clone();
        path.push(step);
        let last = stack.len() - 1;
        stack[last].next += 1;
        if self.is_union(&stack[last].ty) {
            stack[last].next = u64::MAX;
        }
        stack.push(Aggregate { ty, path, next: 0 });
        Ok(())
    }

    fn is_union(&self, ty: &Type) -> bool {
        matches!(ty.kind, TypeKind::Record(id) if self.records[id.0 as usize].union)
    }

    /// Makes the part that the designators name the next part. If the last designator is an index or a range, returns its first and last index.
    fn designated(
        &mut self,
        stack: &mut Vec<Aggregate>,
        designators: &[Designator],
        span: Span,
        open: bool,
    ) -> Typing<Option<(u64, u64)>> {
        stack.truncate(1);
        let mut repeat = None;
        for (n, designator) in designators.iter().enumerate() {
            if n > 0 {
                self.descend(stack, span)?;
            }
            let top = &stack[stack.len() - 1];
            let length = match (&top.ty.kind, designator) {
                (TypeKind::Array(_, length), Designator::Index(_) | Designator::Range(..)) => {
                    if open && n == 0 { 1 << 40 } else { *length }
                }
                (TypeKind::Record(id), Designator::Member(name)) => {
                    let path = self.member(*id, name)?;
                    for (k, &number) in path.iter().enumerate() {
                        if k > 0 {
                            self.descend(stack, span)?;
                        }
                        let last = stack.len() - 1;
                        stack[last].next = number.into();
                    }
                    continue;
                }
                (_, Designator::Member(name)) => {
                    return Err(Error::new(name.span, format!("`{}` has no members", self.said(&top.ty))));
                }
                (_, Designator::Index(index) | Designator::Range(index, _)) => {
                    return Err(Error::new(index.span, format!("`{}` has no elements", self.said(&top.ty))));
                }
            };
            let (low, high) = match designator {
                Designator::Index(index) => {
                    let index = self.index(index, length)?;
                    (index, index)
                }
                Designator::Range(low, high) => (self.index(low, length)?, self.index(high, length)?),
                Designator::Member(_) => continue,
            };
            if low > high || low < high && n + 1 < designators.len() {
                return Err(Error::new(span, "a range must come last and count upwards")
                    .help("write one value per element"));
            }
            let last = stack.len() - 1;
            stack[last].next = low;
            repeat = Some((low, high));
        }
        match designators.last() {
            Some(Designator::Member(_)) => Ok(None),
            _ => Ok(repeat),
        }
    }

    fn index(&mut self, index: &ast::Expr, length: u64) -> Typing<u64> {
        let value = self.constant(index)?;
        u64::try_from(value).ok().filter(|&value| value < length).ok_or_else(|| {
            Error::new(index.span, format!("there is no element {value}"))
                .help(format!("the array has {length} elements"))
        })
    }

    /// Processes one value. It initialises the next part of the innermost aggregate or, if that part is itself an aggregate, the first parts of that
    /// part.
    fn one(
        &mut self,
        stack: &mut Vec<Aggregate>,
        value: &Initializer,
        open: bool,
        parts: &mut Parts,
        span: Span,
    ) -> Typing<()> {
        let mut typed = None;
        loop {
            let outermost = stack.len() == 1;
            if self.is_full_for(stack, open && outermost) {
                return Err(Error::new(
                    value_span(value).unwrap_or(span),
                    "more values than there are parts",
                )
                .help("leave out the last ones, or make the array longer"));
            }
            if outermost {
                parts.length = parts.length.max(stack[0].next + 1);
            }
            self.descend(stack, span)?;
            let Some(Aggregate { ty, path, .. }) = stack.pop() else { return Ok(()) };
            let expr = match self.literal_for(&ty, value, span)? {
                Initializer::List(list, span) => {
                    let length = parts.length;
                    let inner = Braces { ty: &ty, open: false, list, span: *span };
                    self.nested(*span, |typer| typer.braced(inner, path, parts))?;
                    parts.length = length;
                    return Ok(());
                }
                Initializer::Expression(expr) => expr,
            };
            if let Some(text) = self.string_for(&ty, expr) {
                let length = parts.length;
                self.characters(&ty, false, text, path, parts, expr.span)?;
                parts.length = length;
                return Ok(());
            }
            let known = match typed.take() {
                Some(known) => known,
                None => self.value(expr)?,
            };
            match &ty.kind {
                TypeKind::Record(_) if known.ty == ty.unqualified() => {
                    parts.found.push((path, known));
                    return Ok(());
                }
                TypeKind::Array(..) | TypeKind::Record(_) => {
                    typed = Some(known);
                    stack.push(Aggregate { ty, path, next: 0 });
                }
                _ => {
                    let known = self.implicit(known, &ty, "a part of a variable")?;
                    parts.found.push((path, known));
                    return Ok(());
                }
            }
        }
    }

    /// Whether no part is left for another value. All members of a union count as parts here, because a designator may name any of them.
    fn is_full_for(&self, stack: &[Aggregate], open: bool) -> bool {
        let top = &stack[stack.len() - 1];
        match &top.ty.kind {
            TypeKind::Record(id) => top.next >= self.records[id.0 as usize].fields.len() as u64,
            _ => self.is_full(top, open),
        }
    }

    /// `(type){ ... }`.
    pub(super) fn compound_literal(
        &mut self,
        ty: &ast::Type,
        initial: &Initializer,
        expr: &ast::Expr,
    ) -> Typing<Place> {
        let open = matches!(ty.kind, ast::TypeKind::Array(_, None));
        let ty = self.ty(ty, expr.span)?;
        let (ty, initial) = self.initial(&ty, open, initial, expr.span)?;
        self.size(&ty, expr.span)?;
        let span = expr.span;
        let kind = match &self.body {
            Some(body) => {
                let id = LocalId(body.locals.len() as u32);
                self.local(format!("literal{}", id.0).into(), ty.clone(), span);
                PlaceKind::Compound(id, initial.into())
            }
            None => {
                let id = super::tree::GlobalId(self.globals.len() as u32);
                let name = format!("literal.{}", id.0).into();
                let initial = Some(initial);
                let (ty, error) = (ty.clone(), None);
                let (thread_local, literal) = (false, false);
                self.globals.push(Variable { name, ty, thread_local, literal, initial, error, span });
                PlaceKind::Global(id)
            }
        };
        Ok(Place { kind, ty, span })
    }
}

fn value_span(value: &Initializer) -> Option<Span> {
    match value {
        Initializer::Expression(expr) => Some(expr.span),
        Initializer::List(_, span) => Some(*span),
    }
}
