//! Verdicts and executions as text, JSON, SARIF, HTML and graphs.
//!
//! * [`mistake`]: the memory error at the end of an execution;
//! * [`words`]: expressions, actions and places as the source writes them;
//! * [`origins`]: where the values of temporary registers come from;
//! * [`step`](mod@step): one event of an execution, with the states around it;
//! * [`rows`](mod@rows): steps that share a row of a table;
//! * [`text`]: verdicts and executions for a terminal;
//! * [`json`]: verdicts and executions as JSON, as `docs/json.md` describes it;
//! * [`sarif`]: verdicts and executions for editors and code hosts;
//! * [`html`]: verdicts and executions as a page for browsers;
//! * [`invariants`](mod@invariants): the facts that an invariant proves at each program point;
//! * [`known`](mod@known): the facts that a proof gives about each variable;
//! * [`litmus`]: the final states of litmus tests;
//! * [`fences`]: places of fences, and the executions that the fences prevent;
//! * [`audit`]: whether each fence and memory order of a program is needed;
//! * [`certify`]: results of checking certificates;
//! * [`robust`]: robustness, with its witnesses;
//! * [`remarks`]: notes on the translation, and warnings;
//! * [`table`]: many answers as one table;
//! * [`engines`]: the list of engines;
//! * [`dot`]: control-flow graphs;
//! * [`style`]: colours, and whether executions are shown in full.
//!
//! This crate decides nothing and opens no files: every function returns a string or a value to serialise, or writes to the writer that it is
//! given. All text from a source file is escaped as its destination requires.
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

pub mod audit;
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
mod named;
pub mod origins;
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
