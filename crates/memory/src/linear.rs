//! Linear forms: what expressions over cells mean to symbolic domains, and to the checker of certificates.
//!
//! An expression becomes a list of cases: under these linear constraints it has this linear value. Comparisons and logical operators
//! split into cases, so that every constraint is `linear <= 0`. An expression that is not linear has an unknown value, and a condition that
//! is not linear may be true or false: both cover more than can happen, which is sound.

use fencewright_program::{BinaryOp, Expr, UnaryOp};

use crate::cells::CellId;
use crate::machine::Command;

/// A sum of cells with coefficients, and a constant. Sorted by cell, without zero coefficients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Linear {
    /// Cells with their coefficients.
    pub terms: Vec<(CellId, i64)>,
    /// The constant.
    pub constant: i64,
}

impl Linear {
    /// A constant.
    pub fn constant(constant: i64) -> Self {
        Linear { terms: Vec::new(), constant }
    }

    /// A cell.
    pub fn cell(cell: CellId) -> Self {
        Linear { terms: vec![(cell, 1)], constant: 0 }
    }

    /// The cells x and y if this is `x - y` plus its constant; either may be missing, and stands for 0 then.
    pub fn difference(&self) -> Option<(Option<CellId>, Option<CellId>)> {
        match *self.terms.as_slice() {
            [] => Some((None, None)),
            [(x, 1)] => Some((Some(x), None)),
            [(y, -1)] => Some((None, Some(y))),
            [(x, 1), (y, -1)] | [(y, -1), (x, 1)] => Some((Some(x), Some(y))),
            _ => None,
        }
    }

    /// `self * factor`, if it fits.
    pub fn scaled(&self, factor: i64) -> Option<Self> {
        let term = |&(cell, c): &(CellId, i64)| Some((cell, c.checked_mul(factor)?));
        let terms = match factor {
            0 => Vec::new(),
            _ => self.terms.iter().map(term).collect::<Option<_>>()?,
        };
        Some(Linear { terms, constant: self.constant.checked_mul(factor)? })
    }

    /// `self + other`, if it fits.
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

    /// The form with each cell replaced by the form that `value` gives for it, if everything fits.
    pub fn substituted(&self, value: &impl Fn(CellId) -> Linear) -> Option<Self> {
        let mut total = Linear::constant(self.constant);
        for &(cell, coefficient) in &self.terms {
            total = total.plus(&value(cell).scaled(coefficient)?)?;
        }
        Some(total)
    }

    /// `self - other`, if it fits.
    pub fn minus(&self, other: &Linear) -> Option<Self> {
        self.plus(&other.scaled(-1)?)
    }
}

/// A conjunction of constraints `linear <= 0`.
pub type Cube = Vec<Linear>;

/// The value of an expression in one case; `None` if it is not linear.
pub type Value = Option<Linear>;

/// Under the constraints of the cube, the expression has this value.
pub type Case = (Cube, Value);

/// More cases than this are given up: the value is then unknown, without constraints.
const MOST_CASES: usize = 256;

/// More ways through the commands of a step than this are given up.
const MOST_WAYS: usize = 1 << 10;

/// The cases of an expression; their cubes cover everything.
pub fn cases(e: &Expr<CellId>) -> Vec<Case> {
    let all = match e {
        Expr::Const(c) => vec![(Vec::new(), Some(Linear::constant(*c)))],
        Expr::Leaf(cell) => vec![(Vec::new(), Some(Linear::cell(*cell)))],
        Expr::Unary(UnaryOp::Neg, operand) => {
            let negated = |(cube, value): Case| (cube, value.and_then(|v| v.scaled(-1)));
            cases(operand).into_iter().map(negated).collect()
        }
        Expr::Unary(UnaryOp::BitNot, operand) => {
            let flipped = |v: Linear| v.scaled(-1)?.plus(&Linear::constant(-1));
            cases(operand).into_iter().map(|(cube, value)| (cube, value.and_then(flipped))).collect()
        }
        Expr::Unary(op @ (UnaryOp::Unsigned(_) | UnaryOp::Signed(_)), operand) => {
            let wrapped = |v: Linear| {
                let known = v.terms.is_empty().then(|| op.apply(v.constant).ok())?;
                known.map(Linear::constant)
            };
            cases(operand).into_iter().map(|(cube, value)| (cube, value.and_then(wrapped))).collect()
        }
        Expr::Binary(op @ (BinaryOp::Min | BinaryOp::Max), left, right) => {
            let less = if *op == BinaryOp::Min { BinaryOp::Le } else { BinaryOp::Ge };
            let (left, right) = (left.as_ref().clone(), right.as_ref().clone());
            cases(&Expr::choice(Expr::binary(less, left.clone(), right.clone()), left, right))
        }
        Expr::If(condition, then, otherwise) => {
            let Split { holds, fails } = split(condition);
            [(holds, then), (fails, otherwise)]
                .into_iter()
                .flat_map(|(cubes, side)| {
                    let side = cases(side);
                    let guarded = |cube: &Cube| {
                        side.iter()
                            .map(|(c, v)| ([cube.as_slice(), c].concat(), v.clone()))
                            .collect::<Vec<_>>()
                    };
                    cubes.iter().flat_map(guarded).collect::<Vec<_>>()
                })
                .collect()
        }
        Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), left, right) => {
            combined(left, right, |a, b| match op {
                BinaryOp::Add => a.plus(b),
                BinaryOp::Sub => a.minus(b),
                _ if b.terms.is_empty() => a.scaled(b.constant),
                _ if a.terms.is_empty() => b.scaled(a.constant),
                _ => None,
            })
        }
        Expr::Binary(op, left, right) if is_opaque(*op) => combined(left, right, |a, b| {
            let both = a.terms.is_empty() && b.terms.is_empty();
            both.then(|| op.apply(a.constant, b.constant).ok().map(Linear::constant)).flatten()
        }),
        Expr::Unary(UnaryOp::Not, _) | Expr::Binary(..) => {
            let truth = |value: i64| move |cube: Cube| (cube, Some(Linear::constant(value)));
            let Split { holds, fails } = split(e);
            holds.into_iter().map(truth(1)).chain(fails.into_iter().map(truth(0))).collect()
        }
    };
    if all.len() > MOST_CASES { vec![(Vec::new(), None)] } else { all }
}

/// Whether an operator is not linear, whatever its operands are, unless both are constants.
pub fn is_opaque(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Div | Rem | BitAnd | BitOr | BitXor | Shl | Shr)
}

fn combined(
    left: &Expr<CellId>,
    right: &Expr<CellId>,
    value: impl Fn(&Linear, &Linear) -> Option<Linear>,
) -> Vec<Case> {
    let (left, right) = (cases(left), cases(right));
    let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
    pairs
        .map(|((c, a), (d, b))| {
            let value = match (a, b) {
                (Some(a), Some(b)) => value(a, b),
                _ => None,
            };
            ([c.as_slice(), d].concat(), value)
        })
        .collect()
}

/// Cubes that together cover where the expression is true (or false): more where it is not linear, never less.
pub fn truths(e: &Expr<CellId>, wanted: bool) -> Vec<Cube> {
    let Split { holds, fails } = split(e);
    if wanted { holds } else { fails }
}

/// Where an expression is true and where it is false. Both are computed in one pass, because each of them needs both results
/// of the operands.
struct Split {
    holds: Vec<Cube>,
    fails: Vec<Cube>,
}

fn split(e: &Expr<CellId>) -> Split {
    let Split { holds, fails } = match e {
        Expr::Unary(UnaryOp::Not, operand) => {
            let Split { holds, fails } = split(operand);
            Split { holds: fails, fails: holds }
        }
        // Both sides agree, or the left side decides alone, or it does not and the right side does.
        Expr::Binary(BinaryOp::And, left, right) => {
            let (left, right) = (split(left), split(right));
            let holds = both(&left.holds, &right.holds);
            Split { holds, fails: either(left.fails, &left.holds, &right.fails) }
        }
        Expr::Binary(BinaryOp::Or, left, right) => {
            let (left, right) = (split(left), split(right));
            let fails = both(&left.fails, &right.fails);
            Split { holds: either(left.holds, &left.fails, &right.holds), fails }
        }
        Expr::Binary(op, left, right) if op.is_comparison() => {
            compared(*op, combined(left, right, Linear::minus))
        }
        _ => compared(BinaryOp::Ne, cases(e)),
    };
    Split { holds: few(holds), fails: few(fails) }
}

/// Where the values of these cases compare with 0 like this, and where not.
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

/// The cubes in which the first operand decides, and those in which it does not (`on_the_way`) and the second one does.
fn either(at_once: Vec<Cube>, on_the_way: &[Cube], later: &[Cube]) -> Vec<Cube> {
    if at_once.iter().any(Cube::is_empty) {
        return at_once;
    }
    at_once.into_iter().chain(both(on_the_way, later)).collect()
}

/// The pairwise conjunctions of two disjunctions; too many are given up before they are made.
fn both(left: &[Cube], right: &[Cube]) -> Vec<Cube> {
    if left.len() * right.len() > MOST_CASES {
        return vec![Vec::new()];
    }
    left.iter().flat_map(|l| right.iter().map(move |r| [l.as_slice(), r].concat())).collect()
}

/// The cubes that do not contradict themselves. If there are too many of them, or one has no constraints and so covers everything, a single
/// cube without constraints stands for all.
fn few(cubes: Vec<Cube>) -> Vec<Cube> {
    let mut cubes: Vec<Cube> = cubes.into_iter().filter_map(consistent).collect();
    cubes.dedup();
    if cubes.len() > MOST_CASES || cubes.iter().any(Cube::is_empty) { vec![Vec::new()] } else { cubes }
}

/// The cube without constraints that mention no cell; nothing if one of those is false.
fn consistent(mut cube: Cube) -> Option<Cube> {
    let impossible = cube.iter().any(|l| l.terms.is_empty() && l.constant > 0);
    cube.retain(|l| !l.terms.is_empty());
    (!impossible).then_some(cube)
}

/// `difference op 0` as cubes. A constraint that does not fit is left out.
fn comparison(op: BinaryOp, difference: &Linear) -> Vec<Cube> {
    use BinaryOp::*;
    let shifted = |l: Option<Linear>, by: i64| l.and_then(|l| l.plus(&Linear::constant(by)));
    let at_most = |by| -> Cube { shifted(Some(difference.clone()), by).into_iter().collect() };
    let at_least = |by| -> Cube { shifted(difference.scaled(-1), by).into_iter().collect() };
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

/// A command in linear form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Simple {
    /// Goes on only if the form is at most 0.
    AtMost(Linear),
    /// The cell takes the value of the form, or any value.
    Assign(CellId, Value),
    /// The summary cell stands for the value of the form too, or for any one more value.
    Fold(CellId, Value),
    /// The cell takes one of the values that the summary cell stands for.
    Expand(CellId, CellId),
}

/// The ways through a list of commands, in an order that depends on nothing else: each is a list of simple commands, and together they
/// do all that the commands can do.
pub fn ways(commands: &[Command]) -> Vec<Vec<Simple>> {
    let constraints = |cube: Cube| cube.into_iter().map(Simple::AtMost).collect::<Vec<Simple>>();
    let with_value = |e: &Expr<CellId>, command: &dyn Fn(Value) -> Simple| -> Vec<Vec<Simple>> {
        let case = |(cube, value): Case| [constraints(cube), vec![command(value)]].concat();
        cases(e).into_iter().map(case).collect()
    };
    let mut ways: Vec<Vec<Simple>> = vec![Vec::new()];
    for command in commands {
        let alternatives: Vec<Vec<Simple>> = match command {
            Command::Assume(e) => truths(e, true).into_iter().map(constraints).collect(),
            Command::Havoc(cell) => vec![vec![Simple::Assign(*cell, None)]],
            Command::Expand(cell, summary) => vec![vec![Simple::Expand(*cell, *summary)]],
            Command::Assign(cell, e) => with_value(e, &|value| Simple::Assign(*cell, value)),
            Command::Fold(summary, e) => with_value(e, &|value| Simple::Fold(*summary, value)),
        };
        // Too many ways are made fewer by knowing less: what is assumed is dropped, what is assigned is unknown.
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
