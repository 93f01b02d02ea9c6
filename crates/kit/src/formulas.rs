//! Renumbers the locations in formulas, for a program that was made from another one.

use fencewright_program::{Expr, Formula, LocationId, Observable, Program, PropertyKind, ThreadId};

/// The formula with other locations: wherever it says that a thread is at one of some locations, `locations` gives the ones to say
/// instead.
pub fn relocated(
    formula: &Formula,
    locations: &dyn Fn(ThreadId, &[LocationId]) -> Vec<LocationId>,
) -> Formula {
    formula.map(&mut |observable| {
        Expr::Leaf(match observable {
            Observable::At(thread, at) => {
                let mut at = locations(*thread, at);
                at.sort_unstable();
                at.dedup();
                Observable::At(*thread, at)
            }
            Observable::Register(..) | Observable::Memory(_) => observable.clone(),
        })
    })
}

/// The same for all formulas of a program: those of its properties and its predicates.
pub fn relocate(program: &mut Program, locations: &dyn Fn(ThreadId, &[LocationId]) -> Vec<LocationId>) {
    for property in &mut program.properties {
        relocate_kind(&mut property.kind, locations);
    }
    program.hints.predicates.iter_mut().for_each(|formula| *formula = relocated(formula, locations));
}

/// The same for what a property says.
pub fn relocate_kind(
    kind: &mut PropertyKind,
    locations: &dyn Fn(ThreadId, &[LocationId]) -> Vec<LocationId>,
) {
    match kind {
        PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) => {
            *formula = relocated(formula, locations);
        }
        PropertyKind::Assertions | PropertyKind::NoDeadlock => {}
    }
}
