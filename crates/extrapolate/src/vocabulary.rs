//! Vocabularies: predicates over the cells of a machine, and the implications between them.

use std::collections::HashMap;

use fencewright_memory::arithmetic::AUXILIARY;
use fencewright_memory::linear::{Constraint, Cube, truths};
use fencewright_memory::{CellId, Linear};
use fencewright_program::{BinaryOp, Expr};
use fencewright_verdict::{Limits, Reason};

use super::entailment::{Disjunction, Frame, Judge};
use super::vector::{Literal, Vector};

/// A predicate over cells: linear constraints under conjunction, disjunction and negation.
#[derive(Clone, Debug)]
pub struct Predicate {
    formula: Expr<CellId>,
    /// The predicate and its negation in disjunctive normal form, with constraints `linear <= 0`.
    cases: [Vec<Vec<Linear>>; 2],
    cells: Vec<CellId>,
}

/// Maximum number of disjuncts of a predicate or its negation.
const MOST_CASES: usize = 16;

impl Predicate {
    /// A formula as a predicate; `None` if it is not linear, needs quotients or remainders, is constant, or has too many disjuncts.
    pub fn new(formula: &Expr<CellId>) -> Option<Self> {
        let own = |constraint: &Constraint| {
            constraint.at_most().filter(|form| form.terms.iter().all(|&(cell, _)| cell < AUXILIARY)).cloned()
        };
        let cube = |cube: &Cube| -> Option<Vec<Linear>> {
            let mut forms: Vec<Linear> = cube.iter().map(own).collect::<Option<_>>()?;
            forms.sort_unstable();
            forms.dedup();
            Some(forms).filter(|forms| !forms.is_empty())
        };
        let cases = |wanted| -> Option<Vec<Vec<Linear>>> {
            let cubes = truths(formula, wanted);
            let mut cubes: Vec<Vec<Linear>> = cubes.iter().map(cube).collect::<Option<_>>()?;
            cubes.sort_unstable();
            cubes.dedup();
            Some(cubes).filter(|cubes| (1..=MOST_CASES).contains(&cubes.len()))
        };
        let cases = [cases(true)?, cases(false)?];
        let mut cells: Vec<CellId> =
            cases.iter().flatten().flatten().flat_map(|form| form.terms.iter().map(|t| t.0)).collect();
        cells.sort_unstable();
        cells.dedup();
        Some(Predicate { formula: formula.clone(), cases, cells })
    }

    /// The predicate `linear <= 0`; `None` if it is constant, or if a number in it has no negation in 64 bits. It is written in readable form,
    /// without negative terms: `x >= 1`.
    pub fn at_most(linear: &Linear) -> Option<Self> {
        let side = |sign: i64| {
            let terms = linear.terms.iter().filter(|(_, coefficient)| coefficient.signum() == sign);
            let scaled = terms.map(|&(cell, coefficient)| match coefficient.unsigned_abs() {
                1 => Some(Expr::Leaf(cell)),
                by => {
                    Some(Expr::binary(BinaryOp::Mul, Expr::Const(i64::try_from(by).ok()?), Expr::Leaf(cell)))
                }
            });
            let scaled: Option<Vec<Expr<CellId>>> = scaled.collect();
            scaled.map(|terms| terms.into_iter().reduce(|sum, term| Expr::binary(BinaryOp::Add, sum, term)))
        };
        let plus = |sum, constant| match constant {
            0 => sum,
            constant => Expr::binary(BinaryOp::Add, sum, Expr::Const(constant)),
        };
        let constant = linear.constant;
        let formula = match (side(1)?, side(-1)?) {
            (None, None) => return None,
            (Some(left), None) => Expr::binary(BinaryOp::Le, left, Expr::Const(constant.checked_neg()?)),
            (None, Some(right)) => Expr::binary(BinaryOp::Ge, right, Expr::Const(constant)),
            (Some(left), Some(right)) if constant > 0 => {
                Expr::binary(BinaryOp::Le, plus(left, constant), right)
            }
            (Some(left), Some(right)) => {
                Expr::binary(BinaryOp::Le, left, plus(right, constant.checked_neg()?))
            }
        };
        Predicate::new(&formula)
    }

    /// The predicate as a formula over cells.
    pub fn formula(&self) -> &Expr<CellId> {
        &self.formula
    }

    /// The cells that the predicate mentions, sorted.
    pub fn cells(&self) -> &[CellId] {
        &self.cells
    }

    /// The disjuncts of the predicate, or of its negation.
    pub fn cases(&self, holds: bool) -> &[Vec<Linear>] {
        &self.cases[usize::from(!holds)]
    }
}

/// A set of predicates, with the implications between their literals.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    predicates: Vec<Predicate>,
    /// For each literal, the literals it implies, itself included.
    implied: Vec<Vector>,
    /// The predicates that are conjunctions of literals of other predicates, each with these literals.
    definitions: Vec<(usize, Vec<Literal>)>,
}

impl Vocabulary {
    /// The vocabulary of these predicates. Of predicates with the same normal form, or one whose normal form is that of the other's negation, only
    /// the first is kept.
    pub fn new(
        predicates: impl IntoIterator<Item = Predicate>,
        judge: &mut Judge,
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let mut numbers: HashMap<Vec<Vec<Linear>>, Literal> = HashMap::new();
        let mut kept: Vec<Predicate> = Vec::new();
        for predicate in predicates {
            let [holds, fails] = &predicate.cases;
            if !numbers.contains_key(holds) && !numbers.contains_key(fails) {
                numbers.insert(holds.clone(), Literal::new(kept.len(), true));
                numbers.insert(fails.clone(), Literal::new(kept.len(), false));
                kept.push(predicate);
            }
        }
        let literal_of = |e: &Expr<CellId>| numbers.get(Predicate::new(e)?.cases(true)).copied();
        let definition = |(n, predicate): (usize, &Predicate)| {
            let mut parts = Vec::new();
            conjuncts(&predicate.formula, &mut parts);
            let literals: Option<Vec<Literal>> = parts.into_iter().map(literal_of).collect();
            literals.filter(|literals| literals.len() > 1).map(|literals| (n, literals))
        };
        let definitions = kept.iter().enumerate().filter_map(definition).collect();
        let implied = implications(&kept, judge, limits)?;
        Ok(Vocabulary { predicates: kept, implied, definitions })
    }

    /// The predicates, each at the index that literals use.
    pub fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }

    /// The number of predicates.
    pub fn len(&self) -> usize {
        self.predicates.len()
    }

    /// All literals.
    pub fn literals(&self) -> impl Iterator<Item = Literal> + use<> {
        (0..2 * self.len() as u32).map(Literal)
    }

    /// The literals that a literal implies, itself included.
    pub fn implied(&self, literal: Literal) -> &Vector {
        &self.implied[literal.0 as usize]
    }

    /// Adds the literals that follow from single literals or by definitions. Returns false if the literals are found to be contradictory.
    pub fn close(&self, vector: &mut Vector) -> bool {
        let known: Vec<Literal> = vector.literals().collect();
        known.into_iter().for_each(|literal| vector.extend(self.implied(literal)));
        let mut changed = true;
        while changed && !vector.is_contradictory() {
            changed = false;
            for (n, parts) in &self.definitions {
                let [whole, not] = [true, false].map(|holds| Literal::new(*n, holds));
                let mut missing = parts.iter().filter(|part| !vector.contains(**part));
                let new = match (missing.next(), missing.next()) {
                    (None, _) => Some(whole),
                    (Some(last), None) if vector.contains(not) => Some(last.negated()),
                    _ => None,
                };
                if let Some(new) = new.filter(|&new| !vector.contains(new)) {
                    vector.extend(self.implied(new));
                    changed = true;
                }
            }
        }
        !vector.is_contradictory()
    }

    /// The literals of a closed vector, without those that a remaining literal implies.
    pub fn essential(&self, vector: &Vector) -> Vec<Literal> {
        let mut kept: Vec<Literal> = vector.literals().collect();
        let mut n = 0;
        while n < kept.len() {
            let literal = kept[n];
            let follows = |other: &Literal| *other != literal && self.implied(*other).contains(literal);
            if kept.iter().any(follows) {
                kept.remove(n);
            } else {
                n += 1;
            }
        }
        // A predicate that is a conjunction of other predicates is replaced by the conjuncts.
        for (n, parts) in &self.definitions {
            let whole = Literal::new(*n, true);
            if kept.contains(&whole) {
                kept.retain(|literal| *literal != whole);
                kept.extend(parts.iter().filter(|part| !kept.contains(part)).copied().collect::<Vec<_>>());
            }
        }
        kept
    }
}

/// The conjuncts of nested conjunctions.
fn conjuncts<'e>(e: &'e Expr<CellId>, parts: &mut Vec<&'e Expr<CellId>>) {
    match e {
        Expr::Binary(BinaryOp::And, left, right) => {
            conjuncts(left, parts);
            conjuncts(right, parts);
        }
        part => parts.push(part),
    }
}

/// For each literal, the literals it implies; only literals of predicates with a common cell are compared. An unsatisfiable literal implies its own
/// negation.
fn implications(predicates: &[Predicate], judge: &mut Judge, limits: &Limits) -> Result<Vec<Vector>, Reason> {
    let mut frame = Frame::default();
    let prepared: Vec<[Disjunction; 2]> = predicates
        .iter()
        .map(|predicate| [true, false].map(|holds| frame.disjunction(predicate.cases(holds))))
        .collect();
    let nothing = [frame.world()];
    let mut implied = Vec::with_capacity(2 * predicates.len());
    for (n, predicate) in predicates.iter().enumerate() {
        limits.exceeded(0).map_or(Ok(()), Err)?;
        for holds in [true, false] {
            let literal = Literal::new(n, holds);
            let mut follows = Vector::of(predicates.len(), [literal]);
            let worlds = judge.assume(&nothing, &prepared[n][usize::from(!holds)]);
            if worlds.is_empty() {
                follows.insert(literal.negated());
            }
            let related = |other: &Predicate| other.cells.iter().any(|cell| predicate.cells.contains(cell));
            for (m, _) in predicates.iter().enumerate().filter(|(m, other)| *m != n && related(other)) {
                if judge.excludes(&worlds, &prepared[m][1]) {
                    follows.insert(Literal::new(m, true));
                } else if judge.excludes(&worlds, &prepared[m][0]) {
                    follows.insert(Literal::new(m, false));
                }
            }
            implied.push(follows);
        }
    }
    Ok(implied)
}
