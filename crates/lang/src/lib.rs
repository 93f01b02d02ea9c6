//! The front ends of all languages, and re-exports of what other crates use of source texts, front ends and the language `.fw`.
//!
//! [`load()`] turns the text of a file in any of the languages into a program:
//!
//! ```
//! let loaded = fencewright_lang::load("counter.fw", b"shared x; thread p { x = x + 1; }", None, &[]).expect("it is right");
//! assert_eq!(loaded.program.threads[0].name, "p");
//!
//! let error = fencewright_lang::load("counter.fw", b"shared x; thread p { y = 1; }", None, &[]).expect_err("there is no y");
//! let message = error.sources.render(&error.diagnostics, false);
//! assert!(message.contains("counter.fw:1:22"), "{message}");
//! ```

#![forbid(unsafe_code)]

pub mod export;
pub mod front_end;
pub mod import;
pub mod load;

pub use fencewright_front_end::{
    Awaits, COptions, FrontEnd, Loaded, Options, Spins, edit, facts, options, orders, places, words,
};
pub use fencewright_fw::{self as fw, ast, lower};
pub use fencewright_text::{
    Diagnostic, Position, SourceFile, Sources, Stop, diagnostic, source, sources, stop,
};
pub use load::{LoadError, Loader, load};
