//! Symbolic execution of one branch through some commands: the value of each changed cell in terms of the values before the commands, and the
//! assumptions of the branch.
//!
//! After the commands, a summary cell ([`Cells`](fencewright_memory::Cells)) may stand for several values: those it stood for before, written as the
//! cell itself, and those folded into it. `inductive` explains why each of these values has to satisfy the invariant.

use fencewright_memory::linear::{Cube, Simple};
use fencewright_memory::{CellId, Constraint, Linear};

use crate::difference::Difference;

/// The result of executing one branch symbolically.
pub struct Branch {
    /// The cells that the commands change, with their possible values after the branch; an ordinary cell has exactly one.
    values: Vec<(CellId, Vec<Linear>)>,
    /// The assumptions, in terms of the values before the commands.
    pub assumed: Cube,
    /// Pairs (variable, summary cell): the variable is one of the values that the summary cell stood for before the commands.
    pub copies: Vec<(CellId, CellId)>,
}

/// Maximum number of values that one form over summary cells may have.
const MOST_VALUES: usize = 64;

impl Branch {
    /// Executes simple commands. An unknown value becomes a fresh variable, numbered from `unknown` on.
    pub fn through(commands: Vec<Simple>, unknown: &mut CellId) -> Self {
        let mut branch = Branch { values: Vec::new(), assumed: Vec::new(), copies: Vec::new() };
        let mut fresh = || {
            *unknown += 1;
            *unknown - 1
        };
        for command in commands {
            match command {
                // A constraint that does not fit 64 bits is weakened or dropped, which is sound: with weaker assumptions the branch is
                // over-approximated.
                Simple::Assume(Constraint::AtMost(form)) => {
                    let weaker = || Linear { constant: form.constant.min(i64::MAX / 2), ..form.clone() };
                    let known = branch.value(&form).or_else(|| branch.value(&weaker()));
                    branch.assumed.extend(known.map(Constraint::AtMost));
                }
                Simple::Assume(constraint) => {
                    branch.assumed.extend(branch.value(constraint.form()).map(|form| constraint.about(form)));
                }
                Simple::Assign(cell, value) => {
                    let value = value.and_then(|v| branch.value(&v));
                    branch.change(cell, vec![value.unwrap_or_else(|| Linear::cell(fresh()))]);
                }
                Simple::Fold(summary, value) => {
                    let value = value.and_then(|v| branch.value(&v));
                    let mut values =
                        branch.changed(summary).map_or(vec![Linear::cell(summary)], <[_]>::to_vec);
                    values.push(value.unwrap_or_else(|| Linear::cell(fresh())));
                    branch.change(summary, values);
                }
                Simple::Expand(cell, summary) => {
                    let copy = fresh();
                    // If an earlier command of the branch has changed the summary cell, the constraints on its values before the commands need not
                    // hold for the copy, so the copy is an unconstrained variable.
                    if branch.changed(summary).is_none() {
                        branch.copies.push((copy, summary));
                    }
                    branch.change(cell, vec![Linear::cell(copy)]);
                }
            }
        }
        branch
    }

    fn change(&mut self, cell: CellId, values: Vec<Linear>) {
        self.values.retain(|(changed, _)| *changed != cell);
        self.values.push((cell, values));
    }

    fn changed(&self, cell: CellId) -> Option<&[Linear]> {
        self.values.iter().find(|(changed, _)| *changed == cell).map(|(_, values)| values.as_slice())
    }

    /// The value of a form over ordinary cells after the commands; `None` if it does not fit 64 bits.
    fn value(&self, form: &Linear) -> Option<Linear> {
        self.after(form).filter(|values| values.len() == 1).and_then(|mut values| values.pop())
    }

    /// The values of a form after the commands, one for each choice of values of its cells; `None` if they do not fit 64 bits or are too many.
    pub fn after(&self, form: &Linear) -> Option<Vec<Linear>> {
        choices(form, |cell| self.changed(cell).map_or_else(|| vec![Linear::cell(cell)], <[_]>::to_vec))
    }

    /// The constraints that follow from a constraint on the values before the commands: the constraint itself, and its instances with copies in place
    /// of summary cells.
    pub fn known(&self, constraint: &Constraint) -> Cube {
        let of = |cell| self.copies.iter().filter(move |(_, summary)| *summary == cell);
        let values =
            |cell| [cell].into_iter().chain(of(cell).map(|(copy, _)| *copy)).map(Linear::cell).collect();
        let forms = choices(constraint.form(), values);
        forms.map_or_else(
            || vec![constraint.clone()],
            |forms| forms.into_iter().map(|form| constraint.about(form)).collect(),
        )
    }

    /// A difference of values after the commands as differences of values before them, one for each choice of values; `None` for a choice that is not
    /// a difference or does not fit 64 bits.
    pub fn before(&self, after: &Difference) -> impl Iterator<Item = Option<Difference>> {
        let c = after.c;
        let difference = move |x: Shifted, y: Shifted| {
            let ((x, above_x), (y, above_y)) = (x?, y?);
            Some(Difference { x, y, c: c.checked_sub(above_x)?.checked_add(above_y)? })
        };
        let y = after.y;
        self.shifted(after.x).flat_map(move |x| self.shifted(y).map(move |y| difference(x, y)))
    }

    /// The values of a cell after the commands, each as a cell (or 0) plus a constant; `None` for a value of another form. If `cell` is `None`, the
    /// only value is 0.
    fn shifted(&self, cell: Option<CellId>) -> impl Iterator<Item = Shifted> {
        let changed = cell.and_then(|cell| self.changed(cell));
        let unchanged = changed.is_none().then_some(Some((cell, 0)));
        let shifted = |value: &Linear| match *value.terms.as_slice() {
            [] => Some((None, value.constant)),
            [(other, 1)] => Some((Some(other), value.constant)),
            _ => None,
        };
        unchanged.into_iter().chain(changed.unwrap_or_default().iter().map(shifted))
    }
}

/// A cell (or 0) plus a constant; `None` for a value of another form.
type Shifted = Option<(Option<CellId>, i64)>;

/// The forms that result from replacing each cell by one of its values; `None` if they do not fit 64 bits or are too many.
fn choices(form: &Linear, values: impl Fn(CellId) -> Vec<Linear>) -> Option<Vec<Linear>> {
    let mut chosen = vec![Linear::constant(form.constant)];
    for &(cell, coefficient) in &form.terms {
        let values = values(cell);
        if chosen.len() * values.len() > MOST_VALUES {
            return None;
        }
        let pairs = chosen.iter().flat_map(|sum| values.iter().map(move |value| (sum, value)));
        chosen = pairs.map(|(sum, value)| sum.plus(&value.scaled(coefficient)?)).collect::<Option<_>>()?;
    }
    Some(chosen)
}
