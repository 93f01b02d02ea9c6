//! Renumbers the locations in formulas, for a program that was made from another one.

use fencewright_program::{Expr, Formula, LocationId, Observable, Program, PropertyKind, ThreadId};

/// The formula with renumbered locations: `locations` maps each list of locations of a thread to the new list.
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

/// Renumbers the locations in all properties and predicates of a program.
pub fn relocate(program: &mut Program, locations: &dyn Fn(ThreadId, &[LocationId]) -> Vec<LocationId>) {
    for property in &mut program.properties {
        relocate_kind(&mut property.kind, locations);
    }
    program.hints.predicates.iter_mut().for_each(|formula| *formula = relocated(formula, locations));
}

/// Renumbers the locations in a property.
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
