//! Exporters: write programs as texts in other languages.

pub use fencewright_c_model::export::c;
pub use fencewright_formats::litmus::export::litmus;
pub use fencewright_formats::rmm::export::rmm;
pub use fencewright_formats::trencher::export::trencher;
pub use fencewright_fw::graph::fw;
