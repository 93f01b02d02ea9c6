//! Sets of numbers of places.

use fencewright_program::BinaryOp;

use crate::flat::Term;

/// An ascending set of numbers, as the first and last number of each run.
pub type Runs = Vec<(i64, i64)>;

pub(super) fn add_to_runs(runs: &mut Runs, number: i64) {
    match runs.last_mut() {
        Some((_, last)) if *last == number - 1 => *last = number,
        _ => runs.push((number, number)),
    }
}

/// The condition that a number is in one of the runs. Runs at regular distances are tested with one remainder.
pub fn among(runs: &[(i64, i64)], number: &Term) -> Term {
    let (Some(&(low, high)), Some(&(_, end))) = (runs.first(), runs.last()) else { return Term::Number(0) };
    let length = high - low;
    let stride = runs.get(1).map_or(1, |next| next.0 - low);
    let regular =
        |(n, run): (usize, &(i64, i64))| *run == (low + n as i64 * stride, high + n as i64 * stride);
    if runs.len() > 2 && runs.iter().enumerate().all(regular) {
        let position = number.clone().plus(-low).with(BinaryOp::Rem, stride);
        return number.clone().within(low, end).and(position.with(BinaryOp::Le, length));
    }
    let within = |&(low, high): &(i64, i64)| number.clone().within(low, high);
    runs.iter().map(within).reduce(Term::or).unwrap_or(Term::Number(0))
}
