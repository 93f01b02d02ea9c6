//! Linear forms: the translation of expressions over cells for symbolic domains and for the certificate checker.
//!
//! An expression becomes a list of cases: where the constraints of a case hold, the expression has the linear value of that case. Comparisons,
//! logical operators, quotients, remainders and bit operations split into cases ([`crate::arithmetic`]), so that every constraint has the form
//! `linear <= 0`, or states that a form is a multiple of a number. An expression that is still not linear has an unknown value, and a condition on it
//! may be true or false: both over-approximate, which is sound.
//!
//! A case may mention auxiliary variables. The case applies to a state if its constraints hold for some values of these variables.

use fencewright_program::{BinaryOp, Expr, UnaryOp};

use crate::arithmetic::{Fresh, auxiliaries, binary, unary, under};
use crate::cells::CellId;
use crate::machine::Command;

/// A sum of cells with coefficients, plus a constant. Terms are sorted by cell, without zero coefficients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Linear {
    /// Cells with their coefficients.
    pub terms: Vec<(CellId, i64)>,
    /// The constant term.
    pub constant: i64,
}

impl Linear {
    /// The form without cells that has this value.
    pub fn constant(constant: i64) -> Self {
        Linear { terms: Vec::new(), constant }
    }

    /// The form whose value is the value of this cell.
    pub fn cell(cell: CellId) -> Self {
        Linear { terms: vec![(cell, 1)], constant: 0 }
    }

    /// The cells x and y if this is `x - y` plus its constant; a missing cell stands for 0. `None` for other forms.
    pub fn difference(&self) -> Option<(Option<CellId>, Option<CellId>)> {
        match *self.terms.as_slice() {
            [] => Some((None, None)),
            [(x, 1)] => Some((Some(x), None)),
            [(y, -1)] => Some((None, Some(y))),
            [(x, 1), (y, -1)] | [(y, -1), (x, 1)] => Some((Some(x), Some(y))),
            _ => None,
        }
    }

    /// `self * factor`; `None` if a number does not fit 64 bits.
    pub fn scaled(&self, factor: i64) -> Option<Self> {
        let term = |&(cell, c): &(CellId, i64)| Some((cell, c.checked_mul(factor)?));
        let terms = match factor {
            0 => Vec::new(),
            _ => self.terms.iter().map(term).collect::<Option<_>>()?,
        };
        Some(Linear { terms, constant: self.constant.checked_mul(factor)? })
    }

    /// `self + other`; `None` if a number does not fit 64 bits.
    pub fn plus(&self, other: &Linear) -> Option<Self> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (cell, coefficient) = match (a.peek(), b.peek()) {
                (Some(&&(x, c)), Some(&&(y, d))) if x == y => {
                    a.next();
                    b.next();
                    (x, c.checked_add(d)?)
                }
                (Some(&&(x, c)), other) if other.is_none_or(|&&(y, _)| x < y) => {
                    a.next();
                    (x, c)
                }
                (_, Some(&&(y, d))) => {
                    b.next();
                    (y, d)
                }
                (_, None) => break,
            };
            if coefficient != 0 {
                terms.push((cell, coefficient));
            }
        }
        Some(Linear { terms, constant: self.constant.checked_add(other.constant)? })
    }

    /// Replaces each cell by the form that `value` gives for it; `None` if a number does not fit 64 bits.
    pub fn substituted(&self, value: &impl Fn(CellId) -> Linear) -> Option<Self> {
        let mut total = Linear::constant(self.constant);
        for &(cell, coefficient) in &self.terms {
            total = total.plus(&value(cell).scaled(coefficient)?)?;
        }
        Some(total)
    }

    /// `self - other`; `None` if a number does not fit 64 bits.
    pub fn minus(&self, other: &Linear) -> Option<Self> {
        self.plus(&other.scaled(-1)?)
    }
}

/// A constraint on cells.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constraint {
    /// The form is at most 0.
    AtMost(Linear),
    /// The form is a multiple of this number, which is at least 2.
    Multiple(Linear, i64),
}

impl Constraint {
    /// The form that the constraint is about.
    pub fn form(&self) -> &Linear {
        match self {
            Constraint::AtMost(form) | Constraint::Multiple(form, _) => form,
        }
    }

    /// The same constraint on another form.
    pub fn about(&self, form: Linear) -> Self {
        match self {
            Constraint::AtMost(_) => Constraint::AtMost(form),
            Constraint::Multiple(_, modulus) => Constraint::Multiple(form, *modulus),
        }
    }

    /// The form of an `AtMost`; `None` for any other constraint.
    pub fn at_most(&self) -> Option<&Linear> {
        match self {
            Constraint::AtMost(form) => Some(form),
            Constraint::Multiple(..) => None,
        }
    }
}

/// A conjunction of constraints.
pub type Cube = Vec<Constraint>;

/// The value of an expression in one case; `None` if it is not linear.
pub type Value = Option<Linear>;

/// Where the cube holds, the expression has this value.
pub type Case = (Cube, Value);

/// Maximum number of cases of an expression, and of cubes of a condition; with more, the value is unknown and there are no constraints.
const MOST_CASES: usize = 256;

/// Maximum number of ways through the commands of a step.
const MOST_WAYS: usize = 1 << 10;

/// The cases of an expression; together their cubes cover all states.
pub fn cases(e: &Expr<CellId>) -> Vec<Case> {
    cases_with(e, &mut Fresh::default())
}

fn cases_with(e: &Expr<CellId>, fresh: &mut Fresh) -> Vec<Case> {
    let all = match e {
        Expr::Const(c) => vec![(Vec::new(), Some(Linear::constant(*c)))],
        Expr::Leaf(cell) => vec![(Vec::new(), Some(Linear::cell(*cell)))],
        Expr::Unary(op, operand) if *op != UnaryOp::Not => {
            let operand = cases_with(operand, fresh);
            operand.iter().flat_map(|case| computed(case, |v| unary(*op, v, fresh))).collect()
        }
        Expr::Binary(op, left, right)
            if !op.is_comparison() && !matches!(op, BinaryOp::And | BinaryOp::Or) =>
        {
            let pairs = combined(left, right, fresh);
            pairs
                .iter()
                .flat_map(|(cube, pair)| {
                    let Some((a, b)) = pair else { return vec![(cube.clone(), None)] };
                    under(cube, binary(*op, a, b, fresh))
                })
                .collect()
        }
        Expr::If(condition, then, otherwise) => {
            let Split { holds, fails } = split(condition, fresh);
            let [then, otherwise] = [then, otherwise].map(|side| cases_with(side, fresh));
            let chosen = |cubes: Vec<Cube>, side: Vec<Case>| -> Vec<Case> {
                cubes.iter().flat_map(|cube| under(cube, side.clone())).collect()
            };
            [chosen(holds, then), chosen(fails, otherwise)].concat()
        }
        Expr::Unary(..) | Expr::Binary(..) => {
            let truth = |value: i64| move |cube: Cube| (cube, Some(Linear::constant(value)));
            let Split { holds, fails } = split(e, fresh);
            holds.into_iter().map(truth(1)).chain(fails.into_iter().map(truth(0))).collect()
        }
    };
    let all: Vec<Case> =
        all.into_iter().filter_map(|(cube, value)| Some((consistent(cube)?, value))).collect();
    if all.len() > MOST_CASES { vec![(Vec::new(), None)] } else { all }
}

/// The cases of an operator applied to the value of a case.
fn computed((cube, value): &Case, operator: impl FnOnce(&Linear) -> Vec<Case>) -> Vec<Case> {
    value.as_ref().map_or_else(|| vec![(cube.clone(), None)], |value| under(cube, operator(value)))
}

/// The pairs of cases of two expressions; above the limit, one pair without constraints, whose values are unknown.
fn combined(
    left: &Expr<CellId>,
    right: &Expr<CellId>,
    fresh: &mut Fresh,
) -> Vec<(Cube, Option<(Linear, Linear)>)> {
    let (left, right) = (cases_with(left, fresh), cases_with(right, fresh));
    if left.len() * right.len() > MOST_CASES {
        return vec![(Vec::new(), None)];
    }
    let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
    pairs.map(|((c, a), (d, b))| ([c.as_slice(), d].concat(), a.clone().zip(b.clone()))).collect()
}

/// Cubes that together cover the states in which the expression is true (or false). Where the expression is not linear or has too
/// many cases, they cover other states too.
pub fn truths(e: &Expr<CellId>, wanted: bool) -> Vec<Cube> {
    let Split { holds, fails } = split(e, &mut Fresh::default());
    if wanted { holds } else { fails }
}

/// Cubes that cover the states in which an expression is true, and those in which it is false. One pass computes both, because each of them depends
/// on both results of the operands.
struct Split {
    holds: Vec<Cube>,
    fails: Vec<Cube>,
}

fn split(e: &Expr<CellId>, fresh: &mut Fresh) -> Split {
    let Split { holds, fails } = match e {
        Expr::Unary(UnaryOp::Not, operand) => {
            let Split { holds, fails } = split(operand, fresh);
            Split { holds: fails, fails: holds }
        }
        // A conjunction is false if the left side is false, or if the left side is true and the right one false; dually for a disjunction.
        Expr::Binary(BinaryOp::And, left, right) => {
            let (left, right) = (split(left, fresh), split(right, fresh));
            let holds = both(&left.holds, &right.holds);
            Split { holds, fails: either(left.fails, &left.holds, &right.fails) }
        }
        Expr::Binary(BinaryOp::Or, left, right) => {
            let (left, right) = (split(left, fresh), split(right, fresh));
            let fails = both(&left.fails, &right.fails);
            Split { holds: either(left.holds, &left.fails, &right.holds), fails }
        }
        Expr::Binary(op, left, right) if op.is_comparison() => {
            let difference =
                |(cube, pair): (Cube, Option<(Linear, Linear)>)| (cube, pair.and_then(|(a, b)| a.minus(&b)));
            compared(*op, combined(left, right, fresh).into_iter().map(difference).collect())
        }
        _ => compared(BinaryOp::Ne, cases_with(e, fresh)),
    };
    Split { holds: few(holds), fails: few(fails) }
}

/// The cubes in which a value of these cases satisfies `value op 0`, and those in which it does not.
fn compared(op: BinaryOp, cases: Vec<Case>) -> Split {
    let cubes = |op: BinaryOp| {
        let compare = |(cube, value): &Case| -> Vec<Cube> {
            let Some(value) = value else { return vec![cube.clone()] };
            comparison(op, value).into_iter().map(|c| [cube.as_slice(), &c].concat()).collect()
        };
        cases.iter().flat_map(compare).collect()
    };
    Split { holds: cubes(op), fails: cubes(op.negated()) }
}

/// The union of two lists of cubes: those in which the first operand decides (`at_once`); and those in which it does not (`on_the_way`) and the
/// second operand decides in the same way (`later`).
fn either(at_once: Vec<Cube>, on_the_way: &[Cube], later: &[Cube]) -> Vec<Cube> {
    if at_once.iter().any(Cube::is_empty) {
        return at_once;
    }
    // With many cases, `later` is used alone: its cubes may overlap with `at_once`, and the union is the same.
    let many = at_once.len() + on_the_way.len() * later.len() > MOST_CASES;
    let second = if many { later.to_vec() } else { both(on_the_way, later) };
    at_once.into_iter().chain(second).collect()
}

/// The pairwise conjunctions of two disjunctions; above the limit, one cube without constraints, which covers all states.
fn both(left: &[Cube], right: &[Cube]) -> Vec<Cube> {
    if left.len() * right.len() > MOST_CASES {
        return vec![Vec::new()];
    }
    left.iter().flat_map(|l| right.iter().map(move |r| [l.as_slice(), r].concat())).collect()
}

/// Removes cubes with a false constraint that mentions no cell. If too many remain, or one has no constraints and so covers all states, the result is
/// a single cube without constraints.
fn few(cubes: Vec<Cube>) -> Vec<Cube> {
    let mut cubes: Vec<Cube> = cubes.into_iter().filter_map(consistent).collect();
    cubes.dedup();
    if cubes.len() > MOST_CASES || cubes.iter().any(Cube::is_empty) { vec![Vec::new()] } else { cubes }
}

/// Removes constraints that mention no cell; `None` if one of the removed constraints is false.
fn consistent(mut cube: Cube) -> Option<Cube> {
    let holds = |constraint: &Constraint| match constraint {
        Constraint::AtMost(form) => form.constant <= 0,
        Constraint::Multiple(form, modulus) => form.constant % modulus == 0,
    };
    let possible = cube.iter().all(|c| !c.form().terms.is_empty() || holds(c));
    cube.retain(|c| !c.form().terms.is_empty());
    possible.then_some(cube)
}

/// `difference op 0` as cubes. A constraint whose numbers do not fit 64 bits is left out, which over-approximates.
fn comparison(op: BinaryOp, difference: &Linear) -> Vec<Cube> {
    use BinaryOp::*;
    let shifted = |l: Option<Linear>, by: i64| l.and_then(|l| l.plus(&Linear::constant(by)));
    let cube = |form: Option<Linear>| -> Cube { form.map(Constraint::AtMost).into_iter().collect() };
    let at_most = |by| cube(shifted(Some(difference.clone()), by));
    let at_least = |by| cube(shifted(difference.scaled(-1), by));
    match op {
        Le => vec![at_most(0)],
        Lt => vec![at_most(1)],
        Ge => vec![at_least(0)],
        Gt => vec![at_least(1)],
        Eq => vec![[at_most(0), at_least(0)].concat()],
        Ne => vec![at_most(1), at_least(1)],
        _ => vec![Vec::new()],
    }
}

/// A command in linear form, the kind of command that [`ways`] produces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Simple {
    /// Continues only if the constraint holds.
    Assume(Constraint),
    /// The cell takes the value of the form, or an arbitrary value if the form is unknown.
    Assign(CellId, Value),
    /// Adds the value of the form, or an arbitrary value if the form is unknown, to the values that the summary cell ([`Cells`](crate::Cells)) stands
    /// for.
    Fold(CellId, Value),
    /// The first cell takes one of the values that the second, a summary cell, stands for.
    Expand(CellId, CellId),
}

/// The ways through a list of commands: each is a list of simple commands, and together they cover all effects of the commands. Their order is
/// deterministic, since certificates depend on it.
pub fn ways(commands: &[Command]) -> Vec<Vec<Simple>> {
    // An auxiliary variable first takes any value; the assumptions then select the values that satisfy the constraints.
    let assumed = |case: Case| -> Vec<Simple> {
        let any = auxiliaries(&case).into_iter().map(|variable| Simple::Assign(variable, None));
        any.chain(case.0.into_iter().map(Simple::Assume)).collect()
    };
    let with_value = |e: &Expr<CellId>, command: &dyn Fn(Value) -> Simple| -> Vec<Vec<Simple>> {
        let way = |case: Case| {
            let value = case.1.clone();
            [assumed(case), vec![command(value)]].concat()
        };
        cases(e).into_iter().map(way).collect()
    };
    let mut ways: Vec<Vec<Simple>> = vec![Vec::new()];
    for command in commands {
        let alternatives: Vec<Vec<Simple>> = match command {
            Command::Assume(e) => truths(e, true).into_iter().map(|cube| assumed((cube, None))).collect(),
            Command::Havoc(cell) => vec![vec![Simple::Assign(*cell, None)]],
            Command::Expand(cell, summary) => vec![vec![Simple::Expand(*cell, *summary)]],
            Command::Assign(cell, e) => with_value(e, &|value| Simple::Assign(*cell, value)),
            Command::Fold(summary, e) => with_value(e, &|value| Simple::Fold(*summary, value)),
        };
        // Above the limit on ways the result becomes coarser: assumptions are dropped, and assigned values become unknown.
        let alternatives = match (ways.len() * alternatives.len() > MOST_WAYS, command) {
            (false, _) => alternatives,
            (true, Command::Assume(_)) => continue,
            (true, Command::Assign(cell, _) | Command::Havoc(cell)) => {
                vec![vec![Simple::Assign(*cell, None)]]
            }
            (true, Command::Fold(summary, _)) => vec![vec![Simple::Fold(*summary, None)]],
            (true, Command::Expand(..)) => alternatives,
        };
        if let [more] = alternatives.as_slice() {
            ways.iter_mut().for_each(|way| way.extend_from_slice(more));
            continue;
        }
        ways = ways
            .iter()
            .flat_map(|way| alternatives.iter().map(move |more| [way.as_slice(), more].concat()))
            .collect();
    }
    ways
}
