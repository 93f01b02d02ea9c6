//! Which fences a program needs: the cheapest set that suffices, with evidence that it does and that each fence in it is needed.
//!
//! FENCES12 s.7 (case 2) and THESIS16 5.2, made optimal. Every violation gives a [clause](mod@clause): the fences any one of which makes
//! this very execution impossible. The cheapest set that [hits](hitting) all clauses is put into the program, which is verified again; if
//! there is another violation, it gives another clause. Fences only take executions away, so a clause stays valid for ever,
//! every sufficient set hits all of them, and the first set that turns out to be sufficient is a cheapest one.
//!
//! | module | what it is |
//! |---|---|
//! | [`candidate`] | what could be put where, and at which price |
//! | [`fenced`] | a program with some of it put in, without the empty steps that mark places; executions in terms of places |
//! | [`clause`](mod@clause) | from an execution to a clause |
//! | [`hitting`] | minimum-cost hitting sets |
//! | [`synthesis`] | the loop, and the evidence |
//! | [`audit`](mod@audit) | which fences already there are needed |

#![forbid(unsafe_code)]

pub mod audit;
pub mod candidate;
pub mod clause;
pub mod fenced;
pub mod goal;
pub mod hitting;
pub mod synthesis;

pub use audit::{Audited, audit};
pub use candidate::{Candidate, Kind, Prices};
pub use goal::{Examined, Goal, Proof, Robustness, Safety, Violation};
pub use synthesis::{Chosen, Options, Synthesis, Verdict, synthesise};
