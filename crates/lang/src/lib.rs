//! Text in and out: the `.fw` language, importers for other formats, printers and diagnostics.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
pub mod edit;
pub mod export;
pub mod fw;
pub mod import;
pub mod load;
pub mod lower;
pub mod places;
pub mod source;
pub mod stop;

pub use diagnostic::Diagnostic;
pub use import::Format;
pub use load::{LoadError, Loaded, load, load_unless};
pub use source::SourceFile;
pub use stop::Stop;
