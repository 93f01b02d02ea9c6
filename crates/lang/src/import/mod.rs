//! Importers: translate texts in other languages to syntax trees.

pub use fencewright_c_model::c;
pub use fencewright_formats::litmus::import::litmus;
pub use fencewright_formats::rmm::import::rmm;
pub use fencewright_formats::trencher::import::trencher;
pub use fencewright_front_end::{Shown, ShownPlace, View};
