//! All integration tests of this crate, as one program: they are linked once.

mod extend;
mod narrow;
mod reordered;
mod separated;
