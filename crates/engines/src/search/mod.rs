//! Searches over control x data.

pub mod live;
pub mod reach;
pub mod symmetry;
