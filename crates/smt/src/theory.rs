//! The interface between the case search and a decision procedure for conjunctions.

use crate::integer::Int;
use crate::proof::{Fact, Step};
use crate::solver::{Meter, Reason};
use crate::term::{Atom, Linear, Var};
use std::cmp::Ordering;

/// Facts with the factors that make their sum contradictory.
pub(crate) type Sum = Vec<(Fact, Int)>;

/// The state of the asserted atoms.
pub(crate) enum Status {
    /// The atoms are satisfied by the procedure's current assignment. It is integral if the check was asked for integers.
    Consistent,
    /// The atoms are unsatisfiable.
    Conflict(Step),
    /// The atoms are satisfiable over the rationals; a split on whether this term is `<= 0` or `>= 1` excludes fractional values.
    Cut(Linear),
}

/// A decision procedure for conjunctions of `<=` and `=` that can backtrack.
pub(crate) trait Theory {
    /// Adds an atom, not a disequality. The error is the sum of facts of a Farkas step.
    fn assert(&mut self, atom: &Atom, fact: Fact) -> Result<(), Sum>;

    /// Searches for an assignment that satisfies all asserted atoms. The assignment may be fractional; only if `integers` is true may the answer be a
    /// cut.
    fn check(&mut self, integers: bool, meter: &mut Meter<'_>) -> Result<Status, Reason>;

    /// Compares a term with zero in the current assignment.
    fn compare(&self, linear: &Linear) -> Ordering;

    /// The value of a variable in the current assignment, which must be integral.
    fn value(&self, var: Var) -> Int;

    /// A cheap, incomplete test whether the atom contradicts the atoms asserted so far: `false` means unknown.
    fn refutes(&self, atom: &Atom) -> bool;

    /// The current position in the trail of changes, for [`Theory::undo`].
    fn mark(&self) -> usize;

    /// Removes all atoms asserted since `mark` returned this position.
    fn undo(&mut self, mark: usize);
}
