//! Decides litmus tests by their final states.

use std::time::Duration;

use fencewright_analysis::loops::loop_depths;
use fencewright_verdict::{Condition, Exploration, FinalStates, Limits};

use super::{Explicit, Options, Order};

/// Time limit of the search for all final states of a program with a loop, which may have infinitely many states. When it is reached, a second search
/// looks only for a final state that decides the condition.
const LOOPS_FOR: Duration = Duration::from_millis(500);

/// Limits within which a litmus test is confirmed on the reference semantics, where a state takes about twice the time it takes in the engine. They
/// are chosen so that confirming takes little time: 78 of the 216 x86 tests of the corpora are confirmed, which takes 6% of the total time.
const CONFIRMED: Exploration = Exploration { states: 70, events: 0, time: Duration::from_secs(2) };

/// The final states of a litmus test. If the states of a test with a loop cannot be enumerated in the time `LOOPS_FOR`, a second search stops at the
/// first final state that decides the condition.
pub fn decide(condition: &Condition<'_>, limits: &Limits) -> FinalStates {
    let loops = condition.program().threads.iter().any(|t| loop_depths(t).iter().any(|depth| *depth > 0));
    let first_limits = if loops { limits.within(LOOPS_FOR) } else { limits.clone() };
    let engine = |order| Explicit { options: Options { order, workers: 1, ..Options::default() } };
    let all = condition.search(&engine(Order::DepthFirst), &first_limits, Some(CONFIRMED));
    if all.missing().is_none() || !loops || limits.exceeded(0).is_some() {
        return all;
    }
    // The result of the first search depends on the speed of the computer, so only the result of the second search is used.
    condition.search_until_decided(&engine(Order::BreadthFirst), limits, Some(CONFIRMED))
}
