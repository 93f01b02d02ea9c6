//! Systems of linear equations without integer solution.
//!
//! Equations are solved one by one. The solutions of the equations so far are `x = origin + sum of t_k * direction_k` for all integers `t_k`; these
//! directions, together with the directions whose parameters earlier equations have determined, are a basis of the lattice of all integer vectors. In
//! the next equation, Euclid's algorithm on the directions leaves a single parameter with a nonzero factor, the greatest common divisor g. If g
//! divides the rest of the equation, the parameter is known; otherwise there is no solution. In that case the last row of the inverse of the
//! triangular system is the certificate (Kronecker): the sum of the equations with these factors has all coefficients divisible by a number that does
//! not divide the constant.

use crate::integer::Int;
use crate::proof::Fact;
use crate::solver::{Meter, Reason};
use crate::term::{Linear, Var};
use crate::theory::Sum;

/// Variables that equations define as linear forms over other variables. An equation in which a variable has factor 1 or -1 is solved for that
/// variable.
pub(crate) struct Solved(Vec<(Var, Linear)>);

impl Solved {
    /// Solves the equations `linear = 0`.
    pub(crate) fn new(equations: impl IntoIterator<Item = Linear>) -> Self {
        let mut solved = Solved(Vec::new());
        for linear in equations {
            let linear = solved.of(&linear);
            let unit = linear.terms().iter().find(|(_, factor)| factor.abs().is_one());
            if let Some((var, factor)) = unit {
                // factor * var + rest = 0, so var = -factor * rest.
                let rest = linear.substitute(*var, &Linear::constant(0));
                solved.0.push((*var, rest.times(&-factor)));
            }
        }
        solved
    }

    /// The form with all defined variables eliminated.
    pub(crate) fn of(&self, linear: &Linear) -> Linear {
        self.0.iter().fold(linear.clone(), |form, (var, value)| form.substitute(*var, value))
    }
}

/// Maximum number of variables of a system: the size of the table of directions is quadratic in this number.
const MOST_VARIABLES: usize = 300;

/// Factors such that the sum of the equations `linear = 0` weighted by them has no integer solution. Then the system of equations has none either.
///
/// `None` does not mean that the system has a solution: large systems are not tried, and contradictions over the rationals are left to simplex.
pub(crate) fn unsolvable(equations: &[(Fact, Linear)], meter: &mut Meter<'_>) -> Result<Option<Sum>, Reason> {
    let mut variables: Vec<Var> =
        equations.iter().flat_map(|(_, linear)| linear.terms().iter().map(|(var, _)| *var)).collect();
    variables.sort_unstable();
    variables.dedup();
    let width = variables.len();
    if width > MOST_VARIABLES {
        return Ok(None);
    }
    let mut origin = vec![Int::ZERO; width];
    let mut free: Vec<Vec<Int>> = (0..width)
        .map(|index| (0..width).map(|other| if index == other { Int::ONE } else { Int::ZERO }).collect())
        .collect();
    // The directions whose parameters are known, in order; and for each of them the equation that determined its parameter, with the factors that
    // this and the earlier known parameters have in the equation.
    let mut used: Vec<Vec<Int>> = Vec::new();
    let mut triangle: Vec<(Fact, Vec<Int>)> = Vec::new();
    for (fact, linear) in equations {
        let along = |direction: &[Int]| {
            linear.terms().iter().fold(Int::ZERO, |sum, (var, factor)| match variables.binary_search(var) {
                Ok(index) => sum.plus_product(factor, &direction[index]),
                Err(_) => sum,
            })
        };
        let mut factors: Vec<Int> = free.iter().map(|direction| along(direction)).collect();
        // Euclid: subtract the direction with the smallest factor from the others until only one factor remains.
        let pivot = loop {
            meter.spend()?;
            let nonzero = (0..free.len()).filter(|index| !factors[*index].is_zero());
            let Some(smallest) = nonzero.min_by_key(|index| factors[*index].abs()) else { break None };
            let mut alone = true;
            for index in 0..free.len() {
                if index == smallest || factors[index].is_zero() {
                    continue;
                }
                alone = false;
                let times = -&factors[index].div_floor(&factors[smallest]);
                factors[index] = factors[index].plus_product(&times, &factors[smallest]);
                let (source, target) = two(&mut free, smallest, index);
                for (place, step) in target.iter_mut().zip(source.iter()) {
                    *place = place.plus_product(&times, step);
                }
            }
            if alone {
                break Some(smallest);
            }
        };
        let rest = &along(&origin) + linear.constant_part();
        let Some(pivot) = pivot else { continue };
        let divisor = factors.swap_remove(pivot);
        let direction = free.swap_remove(pivot);
        let mut row: Vec<Int> = used.iter().map(|direction| along(direction)).collect();
        row.push(divisor.clone());
        triangle.push((*fact, row));
        if !rest.is_multiple_of(&divisor) {
            return Ok(Some(certificate(&triangle)));
        }
        let parameter = -&rest.div_floor(&divisor);
        for (place, step) in origin.iter_mut().zip(&direction) {
            *place = place.plus_product(&parameter, step);
        }
        used.push(direction);
    }
    Ok(None)
}

/// The last row of the inverse of a lower triangular matrix, times a number that makes it integer.
fn certificate(triangle: &[(Fact, Vec<Int>)]) -> Sum {
    let size = triangle.len();
    let mut factors = vec![Int::ZERO; size];
    factors[size - 1] = Int::ONE;
    for column in (0..size - 1).rev() {
        // Column by column from the right: the weighted sum of this row and the later rows must be 0 in this column.
        let sum = (column + 1..size)
            .fold(Int::ZERO, |sum, row| sum.plus_product(&factors[row], &triangle[row].1[column]));
        let diagonal = &triangle[column].1[column];
        let scale = diagonal.div_floor(&diagonal.gcd(&sum)).abs();
        if !scale.is_one() {
            factors.iter_mut().for_each(|factor| *factor = &*factor * &scale);
        }
        factors[column] = -&(&sum * &scale).div_floor(diagonal);
    }
    let facts = triangle.iter().map(|(fact, _)| *fact);
    facts.zip(factors).filter(|(_, factor)| !factor.is_zero()).collect()
}

/// Two different elements of a list, the first to read, the second to change.
fn two<T>(list: &mut [T], read: usize, write: usize) -> (&T, &mut T) {
    if read < write {
        let (low, high) = list.split_at_mut(write);
        (&low[read], &mut high[0])
    } else {
        let (low, high) = list.split_at_mut(read);
        (&high[0], &mut low[write])
    }
}
