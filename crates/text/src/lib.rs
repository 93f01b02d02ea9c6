//! Source texts: files, errors with their places, suggestions for unknown names, and a token that cancels loading.

#![forbid(unsafe_code)]

mod advice;
pub mod diagnostic;
pub mod source;
pub mod sources;
pub mod stop;

pub use advice::nearest;
pub use diagnostic::Diagnostic;
pub use source::SourceFile;
pub use sources::{Position, Sources};
pub use stop::Stop;
