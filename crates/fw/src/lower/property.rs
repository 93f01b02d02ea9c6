//! Lowers properties and hints, after all threads.

use std::collections::{HashMap, HashSet};

use fencewright_program::{Hints, LocationId, Price, Program, Property, PropertyKind, Quantifier, ThreadId};
use fencewright_text::Diagnostic;
use fencewright_text::diagnostic::MAX_DIAGNOSTICS;

use super::Names;
use super::effort::Effort;
use super::formula::{FormulaLowering, ThreadNames, negation};
use super::scope::Constants;
use crate::ast::{self, Item, Quantified};

/// The properties that a program can have without a declaration. No declared property may have such a name.
const RESERVED: [&str; 2] = ["assertions", "deadlock"];

/// The properties and hints of a file.
#[derive(Default)]
pub struct Stated {
    pub properties: Vec<Property>,
    pub hints: Hints,
    pub diagnostics: Vec<Diagnostic>,
    /// The names of properties that are in use.
    taken: HashSet<String>,
    /// For each keyword, the number to try for the next unnamed property.
    next: HashMap<&'static str, usize>,
}

/// Lowers the properties and hints of a file.
pub fn lower(
    file: &ast::File,
    program: &Program,
    names: &Names<'_>,
    constants: &mut Constants,
    effort: &mut Effort<'_>,
) -> Stated {
    let mut stated = Stated::default();
    let inner: Vec<ThreadNames<'_>> = program.threads.iter().map(ThreadNames::of).collect();
    let mut formulas = FormulaLowering { program, names, inner: &inner, constants, effort };
    for item in &file.items {
        if let Err(error) = stated.item(item, &mut formulas) {
            stated.diagnostics.push(error);
        }
        if stated.diagnostics.len() >= MAX_DIAGNOSTICS || formulas.effort.is_over() {
            break;
        }
    }
    stated
}

impl Stated {
    fn item(&mut self, item: &Item, formulas: &mut FormulaLowering<'_, '_>) -> Result<(), Diagnostic> {
        match item {
            Item::Property(p) => {
                let reserved = p.name.as_ref().filter(|name| RESERVED.contains(&name.text.as_str()));
                if let Some(name) = reserved {
                    let message = format!("`{}` is the name of a property that every program has", name.text);
                    return Err(Diagnostic::new(name.span, message));
                }
                let kind = property(p, formulas)?;
                let name = self.name(p);
                if !self.taken.insert(name.clone()) {
                    let message = format!("there are two properties called `{name}`");
                    return Err(Diagnostic::new(p.span, message));
                }
                self.properties.push(Property { name, kind, span: p.span });
            }
            Item::Predicates(predicates, _) => {
                for predicate in predicates {
                    self.hints.predicates.push(formulas.formula(predicate)?);
                }
            }
            Item::Spare(place, _) => self.hints.spared.extend(places(place, formulas)?),
            Item::Cost(target, price, _) => self.hints.costs.extend(cost(target, price, formulas)?),
            Item::Const(_)
            | Item::Numbers(..)
            | Item::Shared(_)
            | Item::Mutex(_)
            | Item::Procedure(_)
            | Item::Thread(_) => {}
        }
        Ok(())
    }

    /// The name given in the source, or else the keyword, with a number if that is necessary to make it unique.
    fn name(&mut self, p: &ast::Property) -> String {
        use ast::PropertyKind as Kind;
        if let Some(name) = &p.name {
            return name.text.clone();
        }
        let keyword = match p.kind {
            Kind::Forbid => "forbid",
            Kind::Invariant => "invariant",
            Kind::FinallyExists | Kind::FinallyNever | Kind::FinallyForall => "finally",
        };
        let next = self.next.entry(keyword).or_insert(1);
        loop {
            let name = if *next == 1 { keyword.to_string() } else { format!("{keyword}-{next}") };
            *next += 1;
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}

fn property(p: &ast::Property, formulas: &mut FormulaLowering<'_, '_>) -> Result<PropertyKind, Diagnostic> {
    use ast::PropertyKind as Kind;
    let quantifier = match p.kind {
        Kind::Forbid | Kind::FinallyExists | Kind::FinallyNever => Quantified::Exists,
        Kind::Invariant | Kind::FinallyForall => Quantified::Forall,
    };
    let formula = match p.binders.is_empty() {
        true => formulas.formula(&p.formula)?,
        false => formulas.quantified(quantifier, &p.binders, &p.formula)?,
    };
    Ok(match p.kind {
        Kind::Forbid => PropertyKind::Never(formula),
        Kind::Invariant => PropertyKind::Never(negation(formula)),
        Kind::FinallyExists => PropertyKind::Finally(Quantifier::Exists, formula),
        Kind::FinallyNever => PropertyKind::Finally(Quantifier::Never, formula),
        Kind::FinallyForall => PropertyKind::Finally(Quantifier::Forall, formula),
    })
}

/// The locations that an `At` expression names: in all instances of a family if the expression has no index.
fn places(
    e: &ast::Expr,
    formulas: &mut FormulaLowering<'_, '_>,
) -> Result<Vec<(ThreadId, LocationId)>, Diagnostic> {
    let ast::ExprKind::At(thread, label) = &e.kind else {
        return Err(Diagnostic::new(e.span, "expected a place: `thread@label`"));
    };
    let instances: Vec<Option<i64>> = match &thread.index {
        Some(index) => vec![Some(formulas.constants.eval(index)?)],
        None => {
            formulas.names.threads.keys().filter(|(n, _)| *n == thread.name.text).map(|(_, i)| *i).collect()
        }
    };
    if instances.is_empty() {
        return formulas.at(thread, label).map(|(id, found)| found.into_iter().map(|l| (id, l)).collect());
    }
    let mut found = Vec::new();
    for instance in instances {
        let index = instance.map(|i| Box::new(ast::Expr { kind: ast::ExprKind::Int(i), span: e.span }));
        let (id, locations) = formulas.at(&ast::ThreadRef { name: thread.name.clone(), index }, label)?;
        found.extend(locations.into_iter().map(|l| (id, l)));
    }
    Ok(found)
}

fn cost(
    target: &ast::CostTarget,
    price: &ast::Expr,
    formulas: &mut FormulaLowering<'_, '_>,
) -> Result<Vec<(Price, u32)>, Diagnostic> {
    let value = formulas.constants.eval(price)?;
    let value = u32::try_from(value)
        .map_err(|_| Diagnostic::new(price.span, "a price is a number from 0 to 2^32 - 1"))?;
    Ok(match target {
        ast::CostTarget::Fence => vec![(Price::Fence, value)],
        ast::CostTarget::StoreFence => vec![(Price::StoreFence, value)],
        ast::CostTarget::Swap => vec![(Price::Swap, value)],
        ast::CostTarget::Place(place) => {
            places(place, formulas)?.into_iter().map(|(t, l)| (Price::Place(t, l), value)).collect()
        }
    })
}
