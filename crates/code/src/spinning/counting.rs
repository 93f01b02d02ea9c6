//! Loops that count towards a bound, and therefore terminate.

use fencewright_program::{BinaryOp, Expr, LocationId, RegisterId, UnaryOp};
use rustc_hash::FxHashSet;

use super::is_quiet;
use super::value::{Source, Value};
use super::ways::{Next, Part, Way, step};

/// Maximum number of path prefixes that are explored.
const MOST_PIECES: usize = 512;

/// Whether no thread returns to the head of a loop forever without a departure. This holds if some register grows in every iteration, or shrinks in
/// every iteration, and every iteration compares this register with a bound that does not change.
pub(super) fn ends(part: Part<'_>, head: LocationId) -> bool {
    let Some(rounds) = rounds(part, head) else { return false };
    let changes = |register: RegisterId| {
        rounds.iter().any(|round| round.value_of(register) != Expr::Leaf(Source::Register(register)))
    };
    part.relevance.at(head).iter().any(|register| {
        let by = |round: &Way| difference(&round.value_of(*register), *register);
        let grows = rounds.iter().all(|round| by(round).is_some_and(|by| by > 0));
        let shrinks = rounds.iter().all(|round| by(round).is_some_and(|by| by < 0));
        (grows || shrinks)
            && rounds.iter().all(|round| {
                round.conditions.iter().any(|condition| bounds(condition, *register, grows, &changes))
            })
    })
}

/// All paths from the head back to the head; `None` if there are too many, if a step on such a path is undecided, or if such a path has a cycle that
/// avoids the head.
fn rounds(part: Part<'_>, head: LocationId) -> Option<Vec<Way>> {
    let mut rounds = Vec::new();
    let mut open = vec![(Way::new(head), FxHashSet::default())];
    let mut pieces = 0;
    while let Some((way, been)) = open.pop() {
        pieces += 1;
        if pieces > MOST_PIECES {
            return None;
        }
        for (_, edge) in part.thread.edges_from(way.at) {
            if !is_quiet(edge) || !part.inside[edge.to.index()] {
                continue;
            }
            match step(part, way.clone(), &edge.action, &mut Vec::new()) {
                Next::Blocked => {}
                Next::Undecided => return None,
                Next::Goes(mut next) => {
                    next.at = edge.to;
                    let mut been = been.clone();
                    if edge.to == head {
                        rounds.push(*next);
                    } else if been.insert(edge.to) {
                        open.push((*next, been));
                    } else {
                        return None;
                    }
                }
            }
        }
    }
    Some(rounds)
}

/// `n` if a value is that of the register at the start of the path plus `n`.
fn difference(value: &Value, register: RegisterId) -> Option<i64> {
    match value {
        Expr::Leaf(Source::Register(other)) if *other == register => Some(0),
        Expr::Binary(BinaryOp::Add, a, b) => match **a {
            Expr::Leaf(Source::Register(other)) if other == register => b.constant(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a condition bounds a growing register from above, or a shrinking one from below, by a value that does not change.
fn bounds(
    condition: &Value,
    register: RegisterId,
    grows: bool,
    changes: &dyn Fn(RegisterId) -> bool,
) -> bool {
    let (op, a, b) = match condition {
        Expr::Binary(BinaryOp::And, a, b) => {
            return [a, b].into_iter().any(|part| bounds(part, register, grows, changes));
        }
        Expr::Unary(UnaryOp::Not, inner) => match &**inner {
            Expr::Binary(op, a, b) if op.is_comparison() => (op.negated(), a, b),
            _ => return false,
        },
        Expr::Binary(op, a, b) => (*op, a, b),
        _ => return false,
    };
    let is_fixed = |bound: &Value| {
        let mut fixed = true;
        bound.for_each_leaf(&mut |source| {
            fixed &= match source {
                Source::Register(other) => !changes(*other),
                Source::Memory(_, index) => index.is_none(),
                Source::Chosen(_) => false,
            };
        });
        fixed
    };
    let below = matches!(op, BinaryOp::Lt | BinaryOp::Le);
    let above = matches!(op, BinaryOp::Gt | BinaryOp::Ge);
    let left = difference(a, register).is_some() && is_fixed(b) && if grows { below } else { above };
    let right = difference(b, register).is_some() && is_fixed(a) && if grows { above } else { below };
    left || right
}
