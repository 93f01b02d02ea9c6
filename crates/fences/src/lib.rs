//! Fence synthesis: finds a cheapest set of fences with which a program meets a goal, with evidence that the set suffices and that each fence is
//! needed.
//!
//! This is FENCES12 s.7 (case 2) and THESIS16 5.2, extended so that the result is optimal. Every violation gives a [clause](mod@clause): the fences
//! each of which makes the violating execution impossible. A cheapest set that [satisfies](hitting) all clauses so far is inserted into the program,
//! which is verified again; a new violation gives a new clause. Fences only remove executions, so clauses stay valid, every sufficient set satisfies
//! all clauses, and the first set that suffices is a cheapest one. If a property mentions labels or is existential, a fence may also cause a
//! violation; the clause then also lists the fences whose removal prevents it.
//!
//! | module | contents |
//! |---|---|
//! | [`candidate`] | the fences that can be inserted, with places and costs |
//! | [`home`] | which of several equally cheap places is preferred: those in library functions |
//! | [`fenced`] | a program with fences, without the empty steps that mark unused places; translation of executions |
//! | [`clause`](mod@clause) | from an execution to a clause |
//! | `labels` | how violations of properties about labels depend on fences |
//! | [`hitting`] | the cheapest set that satisfies all clauses |
//! | [`synthesis`] | the loop of verification and learning |
//! | `evidence` | the violation that each fence prevents, or why no set suffices |
//! | [`audit`](mod@audit) | which existing fences and memory orders are needed |
//! | [`weaken`] | the operations that an audit weakens, and what they may become |
//! | [`text`] | the places in a text, and the verified text with fences inserted |
//!
//! ```
//! use fencewright_engines::auto::Auto;
//! use fencewright_engines::{Confirm, Limits, Progress};
//! use fencewright_fences::{Options, Safety, Verdict, synthesise, text};
//! use fencewright_program::MemoryModel;
//!
//! let program = b"shared x, y;
//!     thread p { var r; x = 1; r = y; }
//!     thread q { var s; y = 1; s = x; }
//!     finally seen: never p.r == 0 && q.s == 0;";
//! let loaded = fencewright_lang::load("sb.fw", program, None, &[]).expect("it is right");
//! let placed = text::places(&loaded, &[]).expect("there are places");
//! let (model, properties, engine) = (MemoryModel::Tso, Vec::new(), Auto::default());
//! let goal = Safety { model, properties, engine, confirm: Confirm::default() };
//! let found = synthesise(&placed, &goal, &Options::default(), &Limits::default(), &Progress::default());
//! assert!(matches!(found.verdict, Verdict::Fixed));
//! assert_eq!(found.fences.len(), 2);
//! let texts = text::edited(&loaded, &found, &goal, &Limits::default()).expect("they can be written");
//! assert!(texts.main().text.contains("x = 1; fence; r = y;"), "{}", texts.main().text);
//! ```

#![forbid(unsafe_code)]

pub mod audit;
pub mod candidate;
pub mod clause;
mod evidence;
pub mod fenced;
pub mod goal;
pub mod hitting;
pub mod home;
mod labels;
pub mod synthesis;
pub mod text;
pub mod weaken;

pub use audit::{Audited, Unmet, audit};
pub use candidate::{Candidate, Kind, Prices};
pub use goal::{Bounded, Broken, Examined, Goal, Proof, Robustness, Safety, Violation};
pub use synthesis::{Chosen, Options, Synthesis, Unfixable, Verdict, synthesise};
