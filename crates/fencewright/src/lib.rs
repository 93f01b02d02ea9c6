//! Fencewright as a library: read a program, ask a question about it, and get an answer with its evidence.
//!
//! Does store buffering go wrong on x86, and which fences repair it?
//!
//! ```
//! use fencewright::{MemoryModel, Program, Question};
//!
//! let program = Program::parse("sb.fw", "shared x, y;
//! thread p { var r; x = 1; r = y; }
//! thread q { var r; y = 1; r = x; }
//! finally both_missed: never p.r == 0 && q.r == 0;")?;
//!
//! let question = Question::under(MemoryModel::Tso);
//! let answers = question.check(&program)?;
//! assert!(answers[0].is_unsafe());
//! assert_eq!(answers[0].property(), "both_missed");
//! println!("{}", answers[0]); // the verdict, and the execution step by step
//!
//! let fences = question.fences(&program)?;
//! let repaired = Program::parse("sb.fw", fences.text().expect("fences help"))?;
//! assert!(question.check(&repaired)?[0].is_safe());
//! # Ok::<(), fencewright::Error>(())
//! ```
//!
//! * [`Program`]: a program with its text, read from a file ([`Program::open`]) or from a string; [`Reader`] reads with constants, macros and limits;
//! * [`Question`]: the memory model and, if the defaults do not fit, properties, engine and limits. It is answered by [`check`](Question::check),
//!   [`fences`](Question::fences) or [`robust`](Question::robust). [`pose`](Question::pose) and [`repair`](Question::repair) prepare a question for
//!   one program, so that it can be answered several times;
//! * [`Answer`]: a verdict on one property, with its evidence. [`html`] and [`sarif`] make reports of several answers;
//! * [`Fences`]: the cheapest fences, and the text with these fences inserted;
//! * [`Program::certify`]: checks, without any engine, whether a certificate is a proof about a program;
//! * [`folder`]: checks all programs in folders, several at a time;
//! * [`settings`]: every option of the command, with its type, default and help.
//!
//! Every verdict is checked: a violation is replayed on the reference semantics, and [`Answer::is_confirmed`] says whether something other than the
//! engine confirms a proof.
//!
//! The command and the language server use only this crate and [`report`]. The crates that it depends on are re-exported as modules, for uses beyond
//! the interface of this crate: options of engines ([`engines::EngineOptions`]), engines of the caller ([`engines::Engine`]), goals and prices of
//! fences ([`fences::synthesise`]), other output formats ([`report`]).

#![forbid(unsafe_code)]

mod answer;
mod budget;
mod buffer;
mod compilations;
mod error;
pub mod folder;
pub mod input;
mod question;
mod read;
mod repair;
pub mod settings;

pub use fencewright_certify as certify;
pub use fencewright_engines as engines;
pub use fencewright_engines::fingerprint;
pub use fencewright_fences as fences;
pub use fencewright_generate as generate;
pub use fencewright_lang as lang;
pub use fencewright_memory as memory;
pub use fencewright_program as program;
pub use fencewright_reduce as reduce;
pub use fencewright_report as report;
pub use fencewright_smt as smt;
pub use fencewright_transform as transform;
pub use fencewright_trim as trim;

pub use answer::{Answer, Fences, html, sarif};
pub use budget::{Budget, Meter};
pub use buffer::BufferBound;
pub use certify::{Accepted, Certificate};
pub use engines::robust::Robustness;
pub use engines::{EngineName, EngineOptions, Token, Verdict};
pub use error::Error;
pub use lang::{COptions, Options};
pub use program::MemoryModel;
pub use question::{DEADLOCK, Posed, Question, TERMINATION, stated_by};
pub use read::{Program, Reader};
pub use repair::{Changes, NoOverflow, PosedRepair, Purpose, Repair, is_met};

/// The page of the manual about this crate, included so that its examples are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct FromRust;
