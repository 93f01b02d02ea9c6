//! C: from the typed tree to `.fw`.

pub mod core;
pub mod nodes;
pub mod numbers;
