//! Litmus tests decided by their final states.

use std::time::Duration;

use fencewright_analysis::loops::loop_depths;
use fencewright_verdict::{Condition, Exploration, FinalStates, Limits};

use super::{Explicit, Options, Order};

/// A program with a loop may have infinitely many states. For this long it is searched for all its final states; after that, for a final
/// state that decides the condition.
const LOOPS_FOR: Duration = Duration::from_millis(500);

/// Litmus tests with more states are not confirmed. A state costs about twice as much on the reference semantics as in the engine, and a
/// run of many tests should not become much slower: with this limit, 78 of 216 x86 tests are confirmed, in 6% of the time of all.
const CONFIRMED: Exploration = Exploration { states: 70, time: Duration::from_secs(2) };

/// The final states of a litmus test. If the search for all of them does not end, those up to the first that decides the condition.
pub fn decide(condition: &Condition<'_>, limits: &Limits) -> FinalStates {
    let loops = condition.program().threads.iter().any(|t| loop_depths(t).iter().any(|depth| *depth > 0));
    let first_limits = if loops { limits.within(LOOPS_FOR) } else { limits.clone() };
    let engine = |order| Explicit { options: Options { order, workers: 1, ..Options::default() } };
    let all = condition.search(&engine(Order::DepthFirst), &first_limits, Some(CONFIRMED));
    if all.missing().is_none() || !loops || limits.exceeded(0).is_some() {
        return all;
    }
    // What the first search has found depends on how fast the computer is, so only the second search counts.
    condition.search_until_decided(&engine(Order::BreadthFirst), limits, Some(CONFIRMED))
}
