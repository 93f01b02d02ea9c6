//! One branch through some commands, executed symbolically: the value of each changed cell, over the values before, and what was
//! assumed.
//!
//! A summary cell ([`Cells`](fencewright_memory::Cells)) may stand for several values afterwards: one that it stood for before, written
//! as the cell itself, or one that was folded into it. `inductive` says why each of them has to satisfy the invariant.

use fencewright_memory::linear::{Cube, Simple};
use fencewright_memory::{CellId, Constraint, Linear};

use crate::difference::Difference;

/// One branch through some commands.
pub struct Branch {
    /// Changed cells with their values: one for an ordinary cell.
    values: Vec<(CellId, Vec<Linear>)>,
    /// What was assumed.
    pub assumed: Cube,
    /// Variables whose value is one that a summary cell stood for before the commands, each with that cell.
    pub copies: Vec<(CellId, CellId)>,
}

/// More values than this for one form are not told apart.
const MOST_VALUES: usize = 64;

impl Branch {
    /// Executes simple commands. A value that nothing is known about is a variable of its own, the next one after `unknown`.
    pub fn through(commands: Vec<Simple>, unknown: &mut CellId) -> Self {
        let mut branch = Branch { values: Vec::new(), assumed: Vec::new(), copies: Vec::new() };
        let mut fresh = || {
            *unknown += 1;
            *unknown - 1
        };
        for command in commands {
            match command {
                // A constraint that does not fit machine integers is made weaker, or left out: the branch is then more possible.
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
                    // A copy of what the summary became during these commands is a value that nothing is known about.
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

    /// The value of a form over ordinary cells after the commands, if it fits.
    fn value(&self, form: &Linear) -> Option<Linear> {
        self.after(form).filter(|values| values.len() == 1).and_then(|mut values| values.pop())
    }

    /// The values of a form after the commands, one for each choice of the values of its cells, if they fit and are not too many.
    pub fn after(&self, form: &Linear) -> Option<Vec<Linear>> {
        choices(form, |cell| self.changed(cell).map_or_else(|| vec![Linear::cell(cell)], <[_]>::to_vec))
    }

    /// All that a constraint on the values before the commands says: the constraint itself, and the same with copies in the place of
    /// summary cells.
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

    /// A difference of values after the commands as differences of values before them, one for each choice of values; nothing
    /// for one that is none or does not fit.
    pub fn before(&self, after: &Difference) -> impl Iterator<Item = Option<Difference>> {
        let c = after.c;
        let difference = move |x: Shifted, y: Shifted| {
            let ((x, above_x), (y, above_y)) = (x?, y?);
            Some(Difference { x, y, c: c.checked_sub(above_x)?.checked_add(above_y)? })
        };
        let y = after.y;
        self.shifted(after.x).flat_map(move |x| self.shifted(y).map(move |y| difference(x, y)))
    }

    /// The values of a cell (or of 0) as a cell (or 0) and a constant, where they are that.
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

/// A cell (or 0) plus a constant; nothing for another value.
type Shifted = Option<(Option<CellId>, i64)>;

/// The forms that one gets by putting in the place of each cell one of its values, if they fit and are not too many.
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
