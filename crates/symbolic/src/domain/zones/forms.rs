//! Zones over linear forms: sums of several cells have rows in the matrix too.
//!
//! A row stands for a *form*: 0, a cell, or a sum such as `s - c - d`. Entry (i, j) bounds form i minus form j. So the invariant `s <= c + d` is a
//! single bound of a zone with a row for `s - c - d`, and all operations on zones (closure, clipping, comparison, conversion to constraints) work
//! unchanged. A form may have a constant: `x + y - 100` is small where `x + y` would exceed the clip constant.
//!
//! Unlike rows for single cells, rows for sums depend on other rows. Two entries may bound the same sum (`(c + d) - c` and `d - 0`), so a bound of
//! one entry holds for the other. And if an assignment changes a form, the new bounds of the form must be found by linear reasoning: the value after
//! the step is expressed as a sum over the values before, and this sum as a sum of one, two or three differences of rows, each of which has a bound.
//! The choice of these differences does not depend on the bounds, so it is made when a step is prepared.

use std::collections::{BTreeSet, HashMap};

use fencewright_memory::linear::{Constraint, Simple, Value};
use fencewright_memory::{CellId, Linear};
use rustc_hash::FxHashMap;

use super::super::bounds::{MOST, NONE, bound, close, forget};

/// Maximum number of decompositions considered to bound a sum.
const MOST_WAYS: usize = 12;

/// Maximum number of iterations of closure and propagation between entries with the same terms. Stopping early only loses precision.
const MOST_TURNS: usize = 4;

/// The cell id of the value to be folded into a summary cell; no machine uses this id.
pub const FOLDED: CellId = CellId::MAX;
/// The cell ids below `UNKNOWN`, down to `LEAST_UNKNOWN`, stand for unknown values; no machine uses these ids.
const UNKNOWN: CellId = CellId::MAX - 1;
const LEAST_UNKNOWN: CellId = CellId::MAX / 2;

/// The terms of a form.
type Terms = Vec<(CellId, i64)>;

/// The rows of a matrix, with look-up tables for the sums that its entries bound.
pub struct Rows {
    forms: Vec<Linear>,
    /// The differences of two rows, each with the index of its entry.
    differences: Vec<(usize, Linear)>,
    /// For each list of terms, the entries whose differences have these terms, each with its constant.
    entries: FxHashMap<Terms, Vec<(usize, i64)>>,
}

/// Groups of entries whose differences have the same terms, so that a bound of one entry of a group bounds the others. Each entry comes with the
/// constant of its difference.
pub type Shared = Vec<Vec<(usize, i64)>>;

/// An upper bound of a sum in terms of entries: a constant, and entries with their multiplicities.
#[derive(Clone, Debug)]
pub struct Total {
    constant: i64,
    entries: Vec<(usize, i64)>,
}

/// An operation on a matrix whose rows may be sums.
#[derive(Clone, Debug)]
pub enum RowOp {
    /// These entries get new bounds. The new bound of an entry is the least of its totals, all computed from the old bounds. All other entries stay.
    Change(Vec<(usize, Vec<Total>)>),
    /// For each triple (i, j, total) in turn: row i minus row j is at most the total.
    Bound(Vec<(usize, usize, Total)>),
    /// The summary cell of row i additionally stands for the value of row j. Then all bounds of row j are removed.
    Fold(usize, usize),
    /// The branch is infeasible.
    Never,
}

/// The row for a constraint on a sum, normalized. `None` for a single cell or a difference of two cells, which every zone has, and for sums that are
/// too long, or have too large numbers, to be useful.
pub fn form_of(linear: &Linear) -> Option<Linear> {
    const MOST_TERMS: usize = 6;
    // Bounds are much smaller than this number, and differences of forms with such numbers do not overflow.
    const MOST_NUMBER: u64 = 1 << 40;
    let gcd = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let divisor = i64::try_from(linear.terms.iter().fold(0, |g, &(_, c)| gcd(g, c.unsigned_abs()))).ok()?;
    let by = if linear.terms.first()?.1 < 0 { -divisor } else { divisor };
    let terms =
        linear.terms.iter().map(|&(cell, c)| Some((cell, c.checked_div(by)?))).collect::<Option<_>>()?;
    let form = Linear { terms, constant: linear.constant.checked_div(by)? };
    let mut numbers = form.terms.iter().map(|&(_, c)| c).chain([form.constant]);
    let small = numbers.all(|number| number.unsigned_abs() <= MOST_NUMBER);
    (form.difference().is_none() && form.terms.len() <= MOST_TERMS && small).then_some(form)
}

/// The union of two collections of forms. Of forms with equal terms, only the first is kept.
pub fn joined(forms: &BTreeSet<Linear>, more: impl IntoIterator<Item = Linear>) -> BTreeSet<Linear> {
    let mut all = forms.clone();
    for form in more {
        if !all.iter().any(|f| f.terms == form.terms) {
            all.insert(form);
        }
    }
    all
}

/// Removes constraints on sums that follow from two others, because the checker of certificates would need a refutation for each of them.
pub fn without_sums_of_two(cube: Vec<Linear>) -> Vec<Linear> {
    let is_sum = |linear: &Linear| linear.difference().is_none();
    // The terms of each constraint, and the constant of the strongest one.
    let mut known: FxHashMap<Terms, i64> = FxHashMap::default();
    for Linear { terms, constant } in &cube {
        known.entry(terms.clone()).and_modify(|c| *c = (*constant).max(*c)).or_insert(*constant);
    }
    let mut sums: Vec<Terms> =
        cube.iter().filter(|linear| is_sum(linear)).map(|linear| linear.terms.clone()).collect();
    sums.sort_by_key(|terms| std::cmp::Reverse(terms.len()));
    sums.dedup();
    for terms in sums {
        let Some(constant) = known.remove(&terms) else { continue };
        let whole = Linear { terms, constant };
        let follows = known.iter().any(|(terms, c)| {
            let rest = whole.minus(&Linear { terms: terms.clone(), constant: *c });
            rest.is_some_and(|rest| known.get(&rest.terms).is_some_and(|&c| c >= rest.constant))
        });
        if !follows {
            known.insert(whole.terms, whole.constant);
        }
    }
    let mut cube: Vec<Linear> =
        known.into_iter().map(|(terms, constant)| Linear { terms, constant }).collect();
    cube.sort_unstable();
    cube
}

impl Rows {
    /// A matrix with these forms, after the row of the constant 0.
    pub fn new(forms: impl IntoIterator<Item = Linear>) -> Self {
        let forms: Vec<Linear> = std::iter::once(Linear::constant(0)).chain(forms).collect();
        let mut differences = Vec::with_capacity(forms.len() * forms.len());
        let mut entries: FxHashMap<Terms, Vec<(usize, i64)>> = FxHashMap::default();
        for (i, a) in forms.iter().enumerate() {
            for (j, b) in forms.iter().enumerate().filter(|(j, _)| *j != i) {
                if let Some(difference) = a.minus(b) {
                    let entry = i * forms.len() + j;
                    entries.entry(difference.terms.clone()).or_default().push((entry, difference.constant));
                    differences.push((entry, difference));
                }
            }
        }
        Rows { forms, differences, entries }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// The index of the row of a form; `None` if the form has no row.
    pub fn position(&self, form: &Linear) -> Option<usize> {
        self.forms.iter().position(|f| f == form)
    }

    /// The groups of entries with the same terms.
    pub fn shared(&self) -> Shared {
        let mut shared: Shared = self.entries.values().filter(|entries| entries.len() > 1).cloned().collect();
        shared.sort_unstable();
        shared
    }

    fn entry(&self, i: usize, j: usize) -> usize {
        i * self.len() + j
    }

    fn row(&self, cell: CellId) -> usize {
        self.position(&Linear::cell(cell)).expect("every cell has a row")
    }

    /// The operations of one branch through the commands of a step. Consecutive assignments become one simultaneous assignment, so that the bounds of
    /// a form with several assigned cells are computed at once.
    pub fn ops(&self, way: &[Simple]) -> Vec<RowOp> {
        let mut ops = Vec::new();
        let mut values: HashMap<CellId, Linear> = HashMap::new();
        let mut unknown = UNKNOWN;
        let changed = |values: &mut HashMap<CellId, Linear>, ops: &mut Vec<RowOp>| {
            if !values.is_empty() {
                ops.push(self.changed(values, |_, _| None));
                values.clear();
            }
        };
        for simple in way {
            match simple {
                Simple::Assume(Constraint::Multiple(..)) => {}
                Simple::Assume(Constraint::AtMost(linear)) => {
                    let known = before(linear, &values)
                        .filter(|l| l.terms.iter().all(|&(cell, _)| !is_unknown(cell)));
                    let known = known.unwrap_or_else(|| {
                        // The assumption refers to an unknown value chosen in this step, so the pending assignments are performed before it.
                        changed(&mut values, &mut ops);
                        linear.clone()
                    });
                    ops.push(self.at_most(&known));
                }
                Simple::Assign(cell, value) => {
                    let value = value_of(value, &values, &mut unknown);
                    values.insert(*cell, value);
                }
                Simple::Fold(summary, value) => {
                    values.insert(FOLDED, value_of(value, &values, &mut unknown));
                    changed(&mut values, &mut ops);
                    ops.push(RowOp::Fold(self.row(*summary), self.row(FOLDED)));
                }
                Simple::Expand(cell, summary) => {
                    changed(&mut values, &mut ops);
                    ops.push(self.expand(*cell, *summary));
                }
            }
        }
        changed(&mut values, &mut ops);
        ops
    }

    /// Assumes `linear <= 0`: every difference of two rows is bounded by an upper bound of its rest, which is the difference minus `linear`.
    fn at_most(&self, linear: &Linear) -> RowOp {
        if linear.terms.is_empty() {
            return if linear.constant > 0 { RowOp::Never } else { RowOp::Bound(Vec::new()) };
        }
        let mut bounds = Vec::new();
        for (entry, difference) in &self.differences {
            // The difference is `linear` plus the rest, so an upper bound of the rest bounds it.
            let Some(rest) = difference.minus(linear) else { continue };
            let total = match rest.terms.len() {
                0 => Some(Total { constant: rest.constant, entries: Vec::new() }),
                1 | 2 => self.one(&rest).or_else(|| self.apart(&rest)),
                _ => self.one(&rest),
            };
            bounds.extend(total.map(|total| (entry / self.len(), entry % self.len(), total)));
        }
        // Totals with few entries tend to give the strongest bounds. They come first, because after them most other totals add nothing.
        bounds.sort_by_key(|(_, _, total)| total.entries.len());
        RowOp::Bound(bounds)
    }

    /// Upper bounds of a sum: the single difference of rows with its terms, if there is one; otherwise at most `MOST_WAYS` decompositions into two or
    /// three differences of rows, and the bounds of its single cells.
    fn totals(&self, sum: &Linear) -> Vec<Total> {
        if sum.terms.is_empty() {
            return vec![Total { constant: sum.constant, entries: Vec::new() }];
        }
        if let Some(one) = self.one(sum) {
            return vec![one];
        }
        if sum.terms.iter().any(|&(cell, _)| is_unknown(cell)) {
            return Vec::new();
        }
        let mut found = self.two(sum);
        if found.is_empty() {
            // Split off one cell, and decompose the rest into two differences.
            for &(cell, c) in &sum.terms {
                let alone = Linear { terms: vec![(cell, c)], constant: 0 };
                let (Some(rest), Some(alone)) = (sum.minus(&alone), self.apart(&alone)) else { continue };
                found.extend(self.two(&rest).into_iter().filter_map(|two| two.plus(&alone)));
            }
        }
        found.truncate(MOST_WAYS);
        found.extend(self.apart(sum));
        found
    }

    /// A sum as one difference of rows; `None` if no difference of rows has the same terms, or a number does not fit 64 bits.
    fn one(&self, sum: &Linear) -> Option<Total> {
        let &(entry, constant) = self.entries.get(&sum.terms)?.first()?;
        Some(Total { constant: sum.constant.checked_sub(constant)?, entries: vec![(entry, 1)] })
    }

    /// All decompositions of a sum into two differences of rows.
    fn two(&self, sum: &Linear) -> Vec<Total> {
        let two = |(first, difference): &(usize, Linear)| {
            let mut total = self.one(&sum.minus(difference)?)?;
            // Each decomposition is found twice, and kept once.
            total.entries.push((*first, 1));
            (*first <= total.entries[0].0).then_some(total)
        };
        self.differences.iter().filter_map(two).collect()
    }

    /// The total that bounds each cell of a sum separately; `None` if some cell has no row, or a factor is the smallest 64-bit integer.
    fn apart(&self, sum: &Linear) -> Option<Total> {
        let entry = |&(cell, c): &(CellId, i64)| {
            let row = self.position(&Linear::cell(cell))?;
            Some((if c > 0 { self.entry(row, 0) } else { self.entry(0, row) }, c.checked_abs()?))
        };
        Some(Total { constant: sum.constant, entries: sum.terms.iter().map(entry).collect::<Option<_>>()? })
    }

    /// `cell :=` one of the values of a summary cell. All constraints on the summary hold for each of its values; but the difference between the copy
    /// and the other values is bounded only by the sum of their bounds relative to another row.
    fn expand(&self, cell: CellId, summary: CellId) -> RowOp {
        let (own, s) = (self.row(cell), self.row(summary));
        let between =
            |k: usize| Total { constant: 0, entries: vec![(self.entry(s, k), 1), (self.entry(k, s), 1)] };
        self.changed(&HashMap::from([(cell, Linear::cell(summary))]), |i, j| {
            let other = if i == s { j } else { i };
            let thirds = (0..self.len()).filter(|&k| k != s && other == own).map(between);
            (i == s || j == s).then(|| thirds.collect())
        })
    }

    /// The entries that change if these values are assigned to cells, with the totals that bound them. `given` supplies the totals of some entries.
    fn changed(
        &self,
        values: &HashMap<CellId, Linear>,
        given: impl Fn(usize, usize) -> Option<Vec<Total>>,
    ) -> RowOp {
        let mentions = |form: &Linear| form.terms.iter().any(|(cell, _)| values.contains_key(cell));
        let forms: Vec<Option<Linear>> = self.forms.iter().map(|form| before(form, values)).collect();
        let mut changes = Vec::new();
        for (i, a) in self.forms.iter().enumerate() {
            for (j, b) in self.forms.iter().enumerate().filter(|(j, _)| *j != i) {
                if mentions(a) || mentions(b) {
                    let sum = || forms[i].as_ref()?.minus(forms[j].as_ref()?);
                    let totals = given(i, j).or_else(|| Some(self.totals(&sum()?)));
                    changes.push((self.entry(i, j), totals.unwrap_or_default()));
                }
            }
        }
        RowOp::Change(changes)
    }
}

/// A form after the assignment of `values`, in terms of the values before it; `None` on overflow.
fn before(form: &Linear, values: &HashMap<CellId, Linear>) -> Option<Linear> {
    form.substituted(&|cell| values.get(&cell).cloned().unwrap_or_else(|| Linear::cell(cell)))
}

/// A value in terms of the values before; an unknown value becomes a fresh cell.
fn value_of(value: &Value, values: &HashMap<CellId, Linear>, unknown: &mut CellId) -> Linear {
    value.as_ref().and_then(|value| before(value, values)).unwrap_or_else(|| {
        *unknown -= 1;
        Linear::cell(*unknown)
    })
}

fn is_unknown(cell: CellId) -> bool {
    (LEAST_UNKNOWN..FOLDED).contains(&cell)
}

impl Total {
    fn plus(&self, other: &Total) -> Option<Total> {
        let entries = [self.entries.as_slice(), &other.entries].concat();
        Some(Total { constant: self.constant.checked_add(other.constant)?, entries })
    }

    fn value(&self, m: &[i32]) -> i32 {
        let mut total = i128::from(self.constant);
        for &(entry, times) in &self.entries {
            if m[entry] == NONE {
                return NONE;
            }
            total += i128::from(m[entry]) * i128::from(times);
        }
        if total > i128::from(MOST) { NONE } else { total.max(i128::from(-MOST)) as i32 }
    }
}

impl RowOp {
    /// Applies the operation to a matrix, and closes it. Returns false if the bounds are contradictory. `scratch` is space for new bounds.
    pub fn apply(&self, m: &mut [i32], size: usize, shared: &Shared, scratch: &mut Vec<i32>) -> bool {
        match self {
            RowOp::Never => return false,
            RowOp::Change(changes) => {
                scratch.clear();
                let least = |totals: &Vec<Total>| totals.iter().map(|t| t.value(m)).min().unwrap_or(NONE);
                scratch.extend(changes.iter().map(|(_, totals)| least(totals)));
                changes.iter().zip(&*scratch).for_each(|((entry, _), &new)| m[*entry] = new);
            }
            RowOp::Bound(bounds) => {
                for (i, j, total) in bounds {
                    let c = total.value(m);
                    if c != NONE && !bound(m, size, *i, *j, c) {
                        return false;
                    }
                }
            }
            RowOp::Fold(i, j) => {
                for k in (0..size).filter(|k| k != i && k != j) {
                    m[i * size + k] = m[i * size + k].max(m[j * size + k]);
                    m[k * size + i] = m[k * size + i].max(m[k * size + j]);
                }
                forget(m, size, *j);
            }
        }
        tighten(m, size, shared)
    }
}

/// Closes a matrix and propagates bounds between entries with the same terms. Returns false if bounds are contradictory.
pub fn tighten(m: &mut [i32], size: usize, shared: &Shared) -> bool {
    close(m, size);
    for _ in 0..MOST_TURNS {
        let mut changed = false;
        for entries in shared {
            let bound = |&(entry, constant): &(usize, i64)| {
                (m[entry] != NONE).then(|| i64::from(m[entry]) - constant)
            };
            let Some(least) = entries.iter().filter_map(bound).min() else { continue };
            for &(entry, constant) in entries {
                let new = least + constant;
                if new <= MOST && new < i64::from(m[entry]) {
                    m[entry] = new.max(-MOST) as i32;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
        close(m, size);
    }
    (0..size).all(|i| m[i * size + i] >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_has_numbers_whose_differences_do_not_fit() {
        let form = |c: i64, constant: i64| form_of(&Linear { terms: vec![(0, 1), (1, c), (2, 1)], constant });
        assert!(form(3, -100).is_some());
        assert!(form(1 << 62, 0).is_none() && form(-(1 << 62), 0).is_none());
        assert!(form(1, i64::MAX).is_none() && form(1, i64::MIN).is_none());
    }
}
