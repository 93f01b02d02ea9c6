//! From syntax to meaning: names, types and constants (C11 6.2 to 6.7). The result is a [`Unit`] of [`tree`].

pub mod tree;

pub use tree::Unit;
