//! The search over control x data: works for any machine and any domain.

pub mod explore;
pub mod live;
pub mod reach;
pub mod reduced;
pub mod symmetry;
