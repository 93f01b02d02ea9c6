//! Tier 2: exact general simplex with explanations, after Dutertre and de Moura, "A Fast Linear-Arithmetic Solver for
//! DPLL(T)" (CAV 2006).
//!
//! Every variable, and every sum of variables that is compared with a constant, is a *column* with a lower and an upper bound. A *row* expresses one
//! column (the basic one) by others. Columns without a row have values within their bounds. Pivoting repairs rows whose basic column is out of
//! bounds, or finds a row that cannot be repaired: the bounds of its columns then add up to a contradiction.
//!
//! Differences from the paper: rows hold integers over one denominator instead of rationals, and since all bounds are integers (atoms are normalised)
//! all values are integers except those of basic columns, which are fractions over the denominator of their row. So there is no rational arithmetic
//! at all. Backtracking restores bounds, but neither values nor rows. Bland's rule (smallest column first, both for leaving and entering) makes
//! pivoting terminate; the first pivots of each check follow a faster rule.

use crate::congruence::{self, Solved};
use crate::integer::Int;
use crate::proof::{Fact, Step};
use crate::solver::{Meter, Reason};
use crate::term::{Atom, Linear, Relation, Var};
use crate::theory::{Status, Sum, Theory};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Maximum number of pivots per check that follow a rule without guaranteed termination.
const FREE_PIVOTS: u32 = 100;

/// A bound of a column and the fact it comes from.
#[derive(Clone)]
struct Bound {
    value: Int,
    fact: Fact,
    /// Whether the fact is an equality. An equality that serves as a lower bound is multiplied by a negative factor in an explanation.
    equality: bool,
}

/// The lower or the upper bound of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

#[derive(Default)]
struct Column {
    lower: Option<Bound>,
    upper: Option<Bound>,
    row: Option<u32>,
    /// The value of the column while it is not basic.
    value: Int,
}

/// `denominator * basic = sum of factors times columns`; `total` is the current value of that sum.
#[derive(Default)]
struct Row {
    basic: u32,
    denominator: Int,
    terms: Vec<(u32, Int)>,
    total: Int,
}

/// A change that backtracking has to undo.
enum Undo {
    Bound(u32, Side, Option<Bound>),
    Equality,
}

/// The simplex procedure for atoms over the given variables.
#[derive(Default)]
pub(crate) struct Simplex {
    /// The variables, sorted; the first columns are theirs.
    variables: Vec<Var>,
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// The column of each sum; the first coefficient of a sum is positive.
    sums: HashMap<Vec<(Var, Int)>, u32>,
    /// These sums, in the order of their columns.
    terms: Vec<Linear>,
    trail: Vec<Undo>,
    equalities: Vec<(Fact, Linear)>,
    /// The number of equalities that are known to have an integer solution together.
    solvable: usize,
    /// Whether values have changed since the totals of the rows were computed.
    stale: bool,
    scratch: Vec<(u32, Int)>,
}

impl Simplex {
    /// Removes all constraints, and sets the variables (sorted).
    pub(crate) fn reset(&mut self, variables: &[Var]) {
        self.variables.clear();
        self.variables.extend_from_slice(variables);
        self.columns.clear();
        self.columns.resize_with(variables.len(), Column::default);
        self.rows.clear();
        self.sums.clear();
        self.terms.clear();
        self.trail.clear();
        self.equalities.clear();
        self.solvable = 0;
        self.stale = false;
    }

    fn variable_column(&self, var: Var) -> u32 {
        // All variables of a problem are given to `reset` before atoms are asserted, so the variable is found.
        self.variables.binary_search(&var).map_or(u32::MAX, |position| position as u32)
    }

    /// The column of a sum of at least two variables whose first coefficient is positive.
    fn sum_column(&mut self, terms: &[(Var, Int)]) -> u32 {
        if let Some(column) = self.sums.get(terms) {
            return *column;
        }
        let column = self.columns.len() as u32;
        let mut row = Row { basic: column, denominator: Int::ONE, terms: Vec::new(), total: Int::ZERO };
        for (var, factor) in terms {
            let part = self.variable_column(*var);
            match self.columns[part as usize].row {
                None => add_to_row(&mut row, factor, &[(part, Int::ONE)], &Int::ONE, &mut self.scratch),
                Some(other) => {
                    let other = &self.rows[other as usize];
                    add_to_row(&mut row, factor, &other.terms, &other.denominator, &mut self.scratch);
                }
            }
        }
        self.sums.insert(terms.to_vec(), column);
        self.terms.push(Linear::sum(terms.iter().map(|(var, factor)| (factor.clone(), *var)), 0));
        self.columns.push(Column { row: Some(self.rows.len() as u32), ..Column::default() });
        row.total = self.total(&row);
        self.rows.push(row);
        column
    }

    fn total(&self, row: &Row) -> Int {
        row.terms.iter().fold(Int::ZERO, |sum, (column, factor)| {
            sum.plus_product(factor, &self.columns[*column as usize].value)
        })
    }

    /// Strengthens a bound of a column, unless the present bound is already as strong. The error is a contradiction with the opposite bound.
    fn strengthen(&mut self, column: u32, side: Side, bound: Bound) -> Result<(), Sum> {
        let state = &mut self.columns[column as usize];
        let (own, opposite) = match side {
            Side::Lower => (&mut state.lower, &state.upper),
            Side::Upper => (&mut state.upper, &state.lower),
        };
        let stronger = own.as_ref().is_none_or(|old| match side {
            Side::Lower => bound.value > old.value,
            Side::Upper => bound.value < old.value,
        });
        if !stronger {
            return Ok(());
        }
        let crossed = opposite.as_ref().is_some_and(|other| match side {
            Side::Lower => bound.value > other.value,
            Side::Upper => bound.value < other.value,
        });
        if crossed {
            let (lower, upper) = match (side, opposite) {
                (Side::Lower, Some(upper)) => (&bound, upper),
                (Side::Upper, Some(lower)) => (lower, &bound),
                (_, None) => return Ok(()),
            };
            return Err(vec![used(lower, Side::Lower, &Int::ONE), used(upper, Side::Upper, &Int::ONE)]);
        }
        let value = bound.value.clone();
        let old = own.replace(bound);
        self.trail.push(Undo::Bound(column, side, old));
        let outside = match side {
            Side::Lower => state.value < value,
            Side::Upper => state.value > value,
        };
        if state.row.is_none() && outside {
            state.value = value;
            self.stale = true;
        }
        Ok(())
    }

    /// The row with the smallest basic column that is out of bounds, and the bound that this column violates.
    fn violated(&self) -> Option<(usize, Side)> {
        let mut found: Option<(usize, Side)> = None;
        for (position, row) in self.rows.iter().enumerate() {
            if found.is_some_and(|(other, _)| self.rows[other].basic < row.basic) {
                continue;
            }
            let column = &self.columns[row.basic as usize];
            let scaled = |bound: &Bound| {
                if row.denominator.is_one() { bound.value.clone() } else { &bound.value * &row.denominator }
            };
            if column.lower.as_ref().is_some_and(|bound| row.total < scaled(bound)) {
                found = Some((position, Side::Lower));
            } else if column.upper.as_ref().is_some_and(|bound| row.total > scaled(bound)) {
                found = Some((position, Side::Upper));
            }
        }
        found
    }

    /// A column of a row that can move the basic column back towards the bound it violates: the smallest if `bland`, else
    /// the one with the smallest factor, which keeps denominators small and values integer.
    fn entering(&self, row: &Row, side: Side, bland: bool) -> Option<u32> {
        let helps = |(column, factor): &&(u32, Int)| {
            let column = &self.columns[*column as usize];
            if factor.is_positive() == (side == Side::Lower) {
                column.upper.as_ref().is_none_or(|bound| column.value < bound.value)
            } else {
                column.lower.as_ref().is_none_or(|bound| column.value > bound.value)
            }
        };
        let mut candidates = row.terms.iter().filter(helps);
        let found = if bland { candidates.next() } else { candidates.min_by_key(|(_, factor)| factor.abs()) };
        found.map(|(column, _)| *column)
    }

    /// The bounds of a row that cannot be repaired: they contradict the violated bound of its basic column.
    fn explain(&self, row: &Row, side: Side) -> Sum {
        let mut sum = Vec::with_capacity(row.terms.len() + 1);
        let mut push = |column: u32, side: Side, factor: &Int| {
            let column = &self.columns[column as usize];
            let bound = match side {
                Side::Lower => &column.lower,
                Side::Upper => &column.upper,
            };
            sum.extend(bound.as_ref().map(|bound| used(bound, side, &factor.abs())));
        };
        push(row.basic, side, &row.denominator);
        for (column, factor) in &row.terms {
            let blocking =
                if factor.is_positive() == (side == Side::Lower) { Side::Upper } else { Side::Lower };
            push(*column, blocking, factor);
        }
        sum
    }

    /// Pivots: exchanges the basic column of a row, which moves to the bound it violates, with another column of the row.
    fn pivot(&mut self, position: usize, side: Side, entering: u32) {
        let mut row = std::mem::take(&mut self.rows[position]);
        let leaving = row.basic;
        // For the leaving column b and the entering column x, d*b = n*x + R becomes n*x = d*b - R, with the sign such that the new denominator is
        // positive.
        let Ok(place) = row.terms.binary_search_by_key(&entering, |(column, _)| *column) else { return };
        let (_, factor) = row.terms.remove(place);
        if factor.is_positive() {
            row.terms.iter_mut().for_each(|(_, other)| *other = -&*other);
        }
        let place = row.terms.partition_point(|(column, _)| *column < leaving);
        let own = if factor.is_positive() { row.denominator.clone() } else { -&row.denominator };
        row.terms.insert(place, (leaving, own));
        row.denominator = factor.abs();
        row.basic = entering;
        reduce(&mut row);
        let column = &mut self.columns[leaving as usize];
        column.row = None;
        let bound = match side {
            Side::Lower => &column.lower,
            Side::Upper => &column.upper,
        };
        if let Some(bound) = bound {
            column.value = bound.value.clone();
        }
        self.columns[entering as usize].row = Some(position as u32);
        row.total = self.total(&row);
        for index in 0..self.rows.len() {
            if index == position {
                continue;
            }
            let mut other = std::mem::take(&mut self.rows[index]);
            if let Ok(place) = other.terms.binary_search_by_key(&entering, |(column, _)| *column) {
                let (_, factor) = other.terms.remove(place);
                // The terms without the entering column, plus `factor` times the row that now defines that column. The factor is already over the
                // denominator of `other`.
                combine(&mut self.scratch, &other.terms, &row.denominator, &row.terms, &factor);
                std::mem::swap(&mut other.terms, &mut self.scratch);
                other.denominator = &other.denominator * &row.denominator;
                reduce(&mut other);
                other.total = self.total(&other);
            }
            self.rows[index] = other;
        }
        self.rows[position] = row;
    }

    /// A term to cut at, such that one case contradicts a bound and the other case excludes the current assignment.
    ///
    /// After substituting the variables that equations define, a bounded form may be `g * t + c` for a common divisor g of its factors. Then g * t +
    /// c <= u means t <= (u - c) / g, rounded down. For example `x <= y` becomes `x <= y - 1` where x = 2p and y = 2q + 1; cuts at x, y, p or q alone
    /// would never derive this stronger bound.
    fn rounded(&self, meter: &mut Meter<'_>) -> Result<Option<Linear>, Reason> {
        if self.equalities.is_empty() {
            return Ok(None);
        }
        // A column whose bounds leave a single value counts as an equation.
        let columns = || self.columns.iter().enumerate();
        let fixed = columns().filter_map(|(position, column)| {
            let (lower, upper) = (column.lower.as_ref()?, column.upper.as_ref()?);
            (lower.value == upper.value).then(|| self.term(position as u32).plus(-&lower.value))
        });
        let solved = Solved::new(fixed.chain(self.equalities.iter().map(|(_, linear)| linear.clone())));
        for (position, column) in columns() {
            if column.lower.is_none() && column.upper.is_none() {
                continue;
            }
            meter.spend()?;
            let form = solved.of(&self.term(position as u32));
            let divisor = form.terms().iter().fold(Int::ZERO, |divisor, (_, factor)| divisor.gcd(factor));
            if divisor.is_zero() || divisor.is_one() {
                continue;
            }
            let parts = form.terms().iter().map(|(var, factor)| (factor.div_floor(&divisor), *var));
            let term = Linear::sum(parts, 0);
            let rest = |bound: &Bound| bound.value.plus_product(&Int::ONE, &-form.constant_part());
            if let Some(upper) = &column.upper {
                let cut = term.clone().plus(-&rest(upper).div_floor(&divisor));
                if self.compare(&cut) == Ordering::Greater {
                    return Ok(Some(cut));
                }
            }
            if let Some(lower) = &column.lower {
                let cut = term.plus(-&rest(lower).div_ceil(&divisor));
                if self.compare(&cut) == Ordering::Less {
                    return Ok(Some(cut.plus(1)));
                }
            }
        }
        Ok(None)
    }

    /// A basic column whose value is not an integer, and that value rounded down: the column to split on.
    ///
    /// Columns with both bounds come first, because finitely many integers are left for them; splits on unbounded variables alone may follow a strip
    /// such as `2 < x - 2*y < 3` forever. A split on a sum is sound, because a sum of integer variables is an integer.
    fn fractional_column(&self) -> Option<(u32, Int)> {
        let fractional = |row: &&Row| !row.total.is_multiple_of(&row.denominator);
        let preference = |row: &&Row| {
            let column = &self.columns[row.basic as usize];
            let bounded = column.lower.is_some() && column.upper.is_some();
            (!bounded, row.basic)
        };
        let row = self.rows.iter().filter(fractional).min_by_key(preference)?;
        Some((row.basic, row.total.div_floor(&row.denominator)))
    }

    /// The term that a column represents.
    fn term(&self, column: u32) -> Linear {
        match self.variables.get(column as usize) {
            Some(var) => Linear::from(*var),
            None => self.terms[column as usize - self.variables.len()].clone(),
        }
    }

    /// The value of a column as a fraction.
    fn fraction(&self, column: u32) -> (&Int, &Int) {
        match self.columns.get(column as usize) {
            None => (&Int::ZERO, &Int::ONE),
            Some(Column { row: Some(row), .. }) => {
                let row = &self.rows[*row as usize];
                (&row.total, &row.denominator)
            }
            Some(column) => (&column.value, &Int::ONE),
        }
    }

    /// The column of an atom's sum, and whether the atom's coefficients are its negatives; `None` if the sum has no column.
    fn known_column(&self, atom: &Atom) -> Option<(u32, bool)> {
        let terms = atom.linear().terms();
        let negative = terms[0].1.is_negative();
        let column = match terms {
            [(var, _)] => Some(self.variable_column(*var)),
            _ if negative => self.sums.get(negated(terms).as_slice()).copied(),
            _ => self.sums.get(terms).copied(),
        };
        column.map(|column| (column, negative))
    }
}

/// A bound as a summand of a sum of facts.
fn used(bound: &Bound, side: Side, factor: &Int) -> (Fact, Int) {
    let reversed = bound.equality && side == Side::Lower;
    (bound.fact, if reversed { -factor } else { factor.clone() })
}

fn negated(terms: &[(Var, Int)]) -> Vec<(Var, Int)> {
    terms.iter().map(|(var, factor)| (*var, -factor)).collect()
}

/// `out = left * left_factor + right * right_factor`, all sorted by column, without zeros.
fn combine(
    out: &mut Vec<(u32, Int)>,
    left: &[(u32, Int)],
    left_factor: &Int,
    right: &[(u32, Int)],
    right_factor: &Int,
) {
    out.clear();
    let plain = left_factor.is_one();
    let scaled = |factor: &Int| if plain { factor.clone() } else { factor * left_factor };
    let (mut a, mut b) = (0, 0);
    while a < left.len() && b < right.len() {
        match left[a].0.cmp(&right[b].0) {
            Ordering::Less => {
                out.push((left[a].0, scaled(&left[a].1)));
                a += 1;
            }
            Ordering::Greater => {
                out.push((right[b].0, &right[b].1 * right_factor));
                b += 1;
            }
            Ordering::Equal => {
                let sum = scaled(&left[a].1).plus_product(&right[b].1, right_factor);
                if !sum.is_zero() {
                    out.push((left[a].0, sum));
                }
                a += 1;
                b += 1;
            }
        }
    }
    out.extend(left[a..].iter().map(|(column, factor)| (*column, scaled(factor))));
    out.extend(right[b..].iter().map(|(column, factor)| (*column, factor * right_factor)));
}

/// Adds `factor` times `terms / denominator` to the right hand side of a row.
fn add_to_row(
    row: &mut Row,
    factor: &Int,
    terms: &[(u32, Int)],
    denominator: &Int,
    scratch: &mut Vec<(u32, Int)>,
) {
    // With d*basic = R for the row and T/e for `terms / denominator`, the sum is d*e*basic = e*R + factor*d*T.
    combine(scratch, &row.terms, denominator, terms, &(factor * &row.denominator));
    std::mem::swap(&mut row.terms, scratch);
    row.denominator = &row.denominator * denominator;
    reduce(row);
}

/// Divides a row by the greatest common divisor of its numbers.
fn reduce(row: &mut Row) {
    let mut divisor = row.denominator.clone();
    for (_, factor) in &row.terms {
        if divisor.is_one() {
            return;
        }
        divisor = divisor.gcd(factor);
    }
    if !divisor.is_one() {
        row.denominator = row.denominator.div_floor(&divisor);
        row.terms.iter_mut().for_each(|(_, factor)| *factor = factor.div_floor(&divisor));
    }
}

impl Theory for Simplex {
    fn assert(&mut self, atom: &Atom, fact: Fact) -> Result<(), Sum> {
        let terms = atom.linear().terms();
        let negative = terms[0].1.is_negative();
        let column = match terms {
            [(var, _)] => self.variable_column(*var),
            _ if negative => self.sum_column(&negated(terms)),
            _ => self.sum_column(terms),
        };
        let constant = atom.linear().constant_part();
        let bound = |value, equality| Bound { value, fact, equality };
        if atom.relation() == Relation::Eq {
            self.trail.push(Undo::Equality);
            self.equalities.push((fact, atom.linear().clone()));
            self.strengthen(column, Side::Upper, bound(-constant, true))?;
            self.strengthen(column, Side::Lower, bound(-constant, true))
        } else if negative {
            self.strengthen(column, Side::Lower, bound(constant.clone(), false))
        } else {
            self.strengthen(column, Side::Upper, bound(-constant, false))
        }
    }

    fn check(&mut self, integers: bool, meter: &mut Meter<'_>) -> Result<Status, Reason> {
        if std::mem::take(&mut self.stale) {
            for position in 0..self.rows.len() {
                self.rows[position].total = self.total(&self.rows[position]);
            }
        }
        let mut pivots = 0;
        while let Some((position, side)) = self.violated() {
            meter.spend()?;
            pivots += 1;
            let row = &self.rows[position];
            match self.entering(row, side, pivots > FREE_PIVOTS) {
                Some(column) => self.pivot(position, side, column),
                None => return Ok(Status::Conflict(Step::Farkas(self.explain(row, side)))),
            }
        }
        if !integers {
            return Ok(Status::Consistent);
        }
        let Some((column, floor)) = self.fractional_column() else { return Ok(Status::Consistent) };
        if self.equalities.len() > self.solvable {
            if let Some(sum) = congruence::unsolvable(&self.equalities, meter)? {
                return Ok(Status::Conflict(Step::Gcd(sum)));
            }
            self.solvable = self.equalities.len();
        }
        if let Some(term) = self.rounded(meter)? {
            return Ok(Status::Cut(term));
        }
        // The search tries the case `term <= 0` first. The sign of the term is chosen so that this case moves the value towards zero.
        let term = self.term(column).plus(-&floor);
        Ok(Status::Cut(if floor.is_negative() { (-term).plus(1) } else { term }))
    }

    fn compare(&self, linear: &Linear) -> Ordering {
        let (mut sum, mut over) = (linear.constant_part().clone(), Int::ONE);
        for (var, factor) in linear.terms() {
            let (total, denominator) = self.fraction(self.variable_column(*var));
            if *denominator == over {
                sum = sum.plus_product(factor, total);
            } else {
                sum = &(&sum * denominator) + &(&(factor * total) * &over);
                over = &over * denominator;
            }
        }
        sum.cmp(&Int::ZERO)
    }

    fn value(&self, var: Var) -> Int {
        let (total, denominator) = self.fraction(self.variable_column(var));
        total.div_floor(denominator)
    }

    fn refutes(&self, atom: &Atom) -> bool {
        let Some((column, negative)) = self.known_column(atom) else { return false };
        let column = &self.columns[column as usize];
        // The atom compares the sum (or its negative) with -constant.
        let constant = atom.linear().constant_part();
        let value = if negative { constant.clone() } else { -constant };
        let above = column.lower.as_ref().is_some_and(|bound| bound.value > value);
        let below = column.upper.as_ref().is_some_and(|bound| bound.value < value);
        let fixed = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| bound.value == value);
        match atom.relation() {
            Relation::Le => {
                if negative {
                    below
                } else {
                    above
                }
            }
            Relation::Eq => above || below,
            Relation::Ne => fixed(&column.lower) && fixed(&column.upper),
        }
    }

    fn mark(&self) -> usize {
        self.trail.len()
    }

    fn undo(&mut self, mark: usize) {
        // Non-basic columns satisfy the older bounds too, because these are weaker.
        for undo in self.trail.drain(mark..).rev() {
            match undo {
                Undo::Bound(column, Side::Lower, old) => self.columns[column as usize].lower = old,
                Undo::Bound(column, Side::Upper, old) => self.columns[column as usize].upper = old,
                Undo::Equality => {
                    self.equalities.pop();
                }
            }
        }
        self.solvable = self.solvable.min(self.equalities.len());
    }
}
