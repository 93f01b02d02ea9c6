//! What the case search needs from a decision procedure for conjunctions.

use crate::integer::Int;
use crate::proof::{Fact, Step};
use crate::solver::{Meter, Reason};
use crate::term::{Atom, Linear, Var};
use std::cmp::Ordering;

/// Facts with the factors that make their sum contradictory.
pub(crate) type Sum = Vec<(Fact, Int)>;

/// What a procedure says about the atoms asserted so far.
pub(crate) enum Status {
    /// They hold together, for integers, in the procedure's current assignment.
    Consistent,
    /// They cannot hold together.
    Conflict(Step),
    /// They hold together for rationals; deciding whether this term is `<= 0` or `>= 1` comes nearer to integers.
    Cut(Linear),
}

/// A decision procedure for conjunctions of `<=` and `=` that can backtrack.
pub(crate) trait Theory {
    /// Adds an atom, not a disequality. An error is a sum of facts for a Farkas step.
    fn assert(&mut self, atom: &Atom, fact: Fact) -> Result<(), Sum>;

    /// Looks for an assignment in which all asserted atoms hold. The assignment may be fractional; only if `integers` is true may
    /// the answer then be a cut.
    fn check(&mut self, integers: bool, meter: &mut Meter<'_>) -> Result<Status, Reason>;

    /// How a term compares with zero in the current assignment.
    fn compare(&self, linear: &Linear) -> Ordering;

    /// The value of a variable in the current assignment, which must be an integer one.
    fn value(&self, var: Var) -> Int;

    /// A cheap test whether the atom contradicts those asserted so far: `true` is certain, `false` says nothing.
    fn refutes(&self, atom: &Atom) -> bool;

    /// Where [`Theory::undo`] can go back to.
    fn mark(&self) -> usize;

    /// Forgets all atoms asserted since the mark was taken.
    fn undo(&mut self, mark: usize);
}
