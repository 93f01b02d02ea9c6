//! Examination of an abstract path with exact integers: is it feasible, and if not, which abstraction is too coarse (FENCES12 s. 7)?

use std::collections::BTreeSet;

use fencewright_memory::linear::{Constraint, Cube, truths, ways};
use fencewright_memory::{BufferMachine, Buffers, Command, Linear};
use fencewright_program::Formula;
use fencewright_smt::interpolate::interpolants;
use fencewright_smt::{Answer, Atom, Budget, Native, Relation, Solver, Tiered};
use fencewright_verdict::Task;

use crate::domain::predicates::Template;
use crate::encode::Encoding;

/// The result of examining a path.
pub enum Examined {
    /// The path is feasible with exact integers, if the results of nonlinear operations are arbitrary.
    Possible,
    /// The path is infeasible; with the interpolants of all steps, as constraints on cells.
    Impossible(Vec<Linear>),
    /// The solver gave no answer within its budget, or the path has no condition to examine.
    Unknown,
}

/// Examines a path: lists of commands, each with the branch that the search took, if known; and a condition at the end.
pub fn examine(path: &[(&[Command], Option<u32>)], condition: &[Command], budget: &Budget) -> Examined {
    let mut found = Vec::new();
    for way in ways(condition) {
        let mut encoding = Encoding::default();
        path.iter().for_each(|(commands, branch)| match branch {
            Some(branch) => encoding.push(commands, *branch),
            None => encoding.push_any(commands),
        });
        encoding.push_simple(&way);
        let mut solver = Tiered::new();
        match solver.check(&encoding.formulas, budget) {
            Answer::Sat(_) => return Examined::Possible,
            Answer::Unsat(refutation) => {
                let sequence =
                    interpolants(&mut Native::new(), &encoding.formulas, &refutation.proof, budget);
                for formula in sequence.into_iter().flatten() {
                    found.extend(formula.atoms().flat_map(|atom| constraints(&encoding, atom)));
                }
            }
            // Z3 found the path infeasible, but it gives no refutation that is checked here, so there are no interpolants. That is harmless, because
            // the result only decides which refinement is tried next.
            Answer::UnsatUnproved => {}
            Answer::Unknown(_) => return Examined::Unknown,
        }
    }
    found.sort();
    found.dedup();
    Examined::Impossible(found)
}

/// An atom over versions of cells as constraints on the cells: an equation becomes two inequalities, a disequation its two strict halves.
fn constraints(encoding: &Encoding, atom: &Atom) -> Vec<Linear> {
    let form = || -> Option<Linear> {
        let mut linear = Linear::constant(atom.linear().constant_part().to_i64()?);
        for (variable, coefficient) in atom.linear().terms() {
            linear = linear.plus(&Linear::cell(encoding.cell(*variable)).scaled(coefficient.to_i64()?)?)?;
        }
        Some(linear)
    };
    let Some(linear) = form() else { return Vec::new() };
    let below = |by: i64| linear.plus(&Linear::constant(by));
    let above = |by: i64| linear.scaled(-1).and_then(|l| l.plus(&Linear::constant(by)));
    let both = match atom.relation() {
        Relation::Le => [below(0), None],
        Relation::Eq => [below(0), above(0)],
        Relation::Ne => [below(1), above(1)],
    };
    both.into_iter().flatten().filter(|l| !l.terms.is_empty()).collect()
}

/// Initial predicates, as templates: those that the source suggests.
pub fn hints(task: &Task<'_>) -> BTreeSet<Template> {
    let machine = BufferMachine::new(task.program, Buffers::Sc);
    let initial = machine.initial();
    let atoms = |formula: &Formula| {
        let e = machine.formula(&initial, formula);
        [truths(&e, true), truths(&e, false)].concat().into_iter().flatten().collect::<Cube>()
    };
    let atoms: Cube = task.program.hints.predicates.iter().flat_map(atoms).collect();
    atoms.iter().filter_map(Constraint::at_most).map(Template::of).collect()
}
