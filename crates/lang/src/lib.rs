//! Text in and out: the `.fw` language, importers for other formats, printers and diagnostics.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
pub mod fw;
pub mod import;
pub mod lower;
pub mod source;
