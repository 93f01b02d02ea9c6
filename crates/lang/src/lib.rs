//! Text in and out: the `.fw` language, importers for other formats, printers and diagnostics.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
pub mod edit;
pub mod export;
pub mod front_end;
pub mod fw;
pub mod import;
pub mod load;
pub mod lower;
pub mod options;
pub mod places;
pub mod source;
pub mod sources;
pub mod stop;
mod visit;

pub use diagnostic::Diagnostic;
pub use front_end::FrontEnd;
pub use load::{LoadError, Loaded, Loader, load};
pub use options::{COptions, Options, Spins};
pub use source::SourceFile;
pub use sources::{Position, Sources};
pub use stop::Stop;
