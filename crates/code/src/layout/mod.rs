//! Memory layout: numbers for the places of objects, and the translation of symbolic code to flat code with these numbers in place of pointers.

pub(crate) mod addresses;
pub(crate) mod classes;
pub(crate) mod containers;
pub(crate) mod frees;
pub(crate) mod hazards;
pub(crate) mod heap;
pub(crate) mod laid;
pub(crate) mod late;
pub(crate) mod open_arrays;
mod overlaps;
pub(crate) mod resolve;
pub(crate) mod uses;
