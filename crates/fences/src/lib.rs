//! Which fences a program needs: the cheapest set that suffices, with evidence that it does and that each fence in it is needed.
//!
//! FENCES12 s.7 (case 2) and THESIS16 5.2, made optimal. Every violation gives a [clause](mod@clause): the fences any one of which makes
//! this very execution impossible. The cheapest set that [satisfies](hitting) all clauses is put into the program, which is verified again; if
//! there is another violation, it gives another clause. Fences only take executions away, so a clause stays valid for ever,
//! every sufficient set satisfies all of them, and the first set that turns out to be sufficient is a cheapest one. Where a property looks at
//! labels, or asks for an execution, fences may also do harm; the clause then says which.
//!
//! | module | what it is |
//! |---|---|
//! | [`candidate`] | what could be put where, and at which price |
//! | [`fenced`] | a program with fences, without the empty steps that mark unused places; executions in terms of places |
//! | [`clause`](mod@clause) | from an execution to a clause |
//! | `labels` | how violations depend on where fences are, where properties look at labels |
//! | [`hitting`] | the cheapest set that satisfies all clauses |
//! | [`synthesis`] | the loop |
//! | `evidence` | the violation that each fence prevents, or why no set suffices |
//! | [`audit`](mod@audit) | which fences already there are needed |
//! | [`text`] | the places in a text, and the text with the fences in it, verified |
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
mod labels;
pub mod synthesis;
pub mod text;

pub use audit::{Audited, Unmet, audit};
pub use candidate::{Candidate, Kind, Prices};
pub use goal::{Bounded, Broken, Examined, Goal, Proof, Robustness, Safety, Violation};
pub use synthesis::{Chosen, Options, Synthesis, Unfixable, Verdict, synthesise};
