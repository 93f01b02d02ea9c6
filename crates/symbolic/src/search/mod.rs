//! Searches over control x data: any machine with any domain.

pub mod explore;
pub mod live;
pub mod reach;
pub mod reduced;
pub mod symmetry;
