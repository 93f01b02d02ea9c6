//! All tiers together: the native solver first, then Z3, if installed, when the native solver's budget is exhausted.
//!
//! Z3 is searched for only when it is needed, once per solver. Its answers are treated as in [`crate::z3`]: a model is evaluated, an `unsat` is only
//! an opinion ([`Answer::UnsatUnproved`]).

use crate::formula::Formula;
use crate::native::Native;
use crate::solver::{Answer, Budget, Reason, Solver};
use crate::z3::Z3;

/// The native solver with Z3 as fallback.
#[derive(Default)]
pub struct Tiered {
    native: Native,
    external: External,
}

#[derive(Default)]
enum External {
    #[default]
    NotLookedFor,
    Missing,
    Found(Box<Z3>),
}

impl Tiered {
    /// A solver that searches for Z3 on demand.
    pub fn new() -> Tiered {
        Tiered::default()
    }

    /// A solver with this Z3, or none, as fallback.
    pub fn with(z3: Option<Z3>) -> Tiered {
        let external = z3.map_or(External::Missing, |z3| External::Found(Box::new(z3)));
        Tiered { native: Native::new(), external }
    }
}

impl Solver for Tiered {
    fn check(&mut self, assertions: &[Formula], budget: &Budget) -> Answer {
        let answer = self.native.check(assertions, budget);
        if !budget.external || !matches!(answer, Answer::Unknown(Reason::Steps)) {
            return answer;
        }
        if matches!(self.external, External::NotLookedFor) {
            self.external = Z3::find().map_or(External::Missing, |z3| External::Found(Box::new(z3)));
        }
        match &mut self.external {
            External::Found(z3) => z3.check(assertions, budget),
            External::NotLookedFor | External::Missing => answer,
        }
    }
}
