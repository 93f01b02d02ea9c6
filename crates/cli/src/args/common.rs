//! Types of option values for commands whose options are not in the table of `fencewright::settings` (`run`, `reduce`, `convert`): a memory model,
//! a format.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use fencewright::MemoryModel;
use fencewright::lang::{FrontEnd, front_end};

/// One memory model.
#[derive(Clone, Copy)]
pub struct OneModelArg(pub MemoryModel);

impl ValueEnum for OneModelArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[OneModelArg(MemoryModel::Sc), OneModelArg(MemoryModel::Tso), OneModelArg(MemoryModel::Pso)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// A language that programs are written in.
#[derive(Clone, Copy)]
pub struct FormatArg(pub &'static dyn FrontEnd);

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<FormatArg>> =
            LazyLock::new(|| front_end::ALL.into_iter().map(FormatArg).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}
