//! Verdicts and executions for people and for programs: text, JSON and graphs.
//!
//! * [`mistake`]: what is wrong with memory at the end of an execution;
//! * [`words`]: expressions, actions and places as the source writes them;
//! * [`step`](mod@step): one event of an execution, with everything a reader wants to know about it;
//! * [`rows`](mod@rows): which events are shown together;
//! * [`text`]: verdicts and executions for a terminal;
//! * [`json`]: the same for other programs, as `docs/json.md` describes it;
//! * [`sarif`]: the same for editors and code hosts;
//! * [`html`]: the same for people who look at them in a browser;
//! * [`known`](mod@known): what a proof says about each variable;
//! * [`litmus`]: the final states of litmus tests;
//! * [`fences`]: where fences go and why;
//! * [`robust`]: robustness, with its witnesses;
//! * [`remarks`]: what an answer is about, and warnings;
//! * [`table`]: many answers as one table;
//! * [`engines`]: which engines there are;
//! * [`dot`]: control-flow graphs.
//!
//! Nothing here decides anything, and nothing here does input or output: every function gives a string or something to
//! serialise, or writes into what it is given, and all text from a source file is escaped as its destination needs it.
//!
//! ```
//! use fencewright_engines::auto::Auto;
//! use fencewright_engines::{Confirm, Limits, Progress, Task, check};
//! use fencewright_program::MemoryModel;
//! use fencewright_report::{Source, Style, text};
//!
//! let loaded = fencewright_lang::load("one.fw", b"shared x; thread p { x = 1; assert x == 2; }", None, &[]).expect("it is right");
//! let task = Task::new(&loaded.program, MemoryModel::Tso, loaded.program.properties.clone());
//! let checked = check(&Auto::default(), &task, &Limits::default(), &Progress::default(), Confirm::default()).remove(0);
//! let source = Source::from(&loaded);
//! assert!(text::verdict(source, MemoryModel::Tso, &checked, Style::PLAIN).contains("assertions: unsafe under tso"));
//! assert!(text::evidence(source, &checked, Style::PLAIN).contains("reads x = 1"));
//! ```

#![forbid(unsafe_code)]

pub mod certify;
pub mod dot;
pub mod engines;
pub mod fences;
pub mod html;
pub mod invariants;
pub mod json;
pub mod known;
pub mod litmus;
pub mod mistake;
pub mod remarks;
pub mod robust;
mod room;
pub mod rows;
pub mod sarif;
pub mod step;
pub mod style;
pub mod table;
pub mod text;
pub mod words;

pub use style::Style;
pub use words::Source;
