//! Exporters: programs as texts in other languages.

mod c;

pub use c::c;
pub use fencewright_formats::litmus::export::litmus;
pub use fencewright_formats::rmm::export::rmm;
pub use fencewright_formats::trencher::export::trencher;
pub(crate) use fencewright_front_end::export::{cannot, initial_value, only_integers};
pub use fencewright_fw::graph::fw;
