//! The command line of `lsp`.

use clap::Args;

use super::settings::{ForLsp, Given};

/// `lsp`
///
/// An editor starts it and talks to it over the standard input and output; docs/editor.md says how to set editors up. It ends with 0 if the client
/// took leave (shutdown, then exit), otherwise with 1.
#[derive(Args)]
pub struct LspArgs {
    #[command(flatten)]
    pub settings: Given<ForLsp>,
}

impl LspArgs {
    /// The settings that apply until a client sends others.
    pub fn settings(&self) -> fencewright_lsp::Settings {
        let given = &*self.settings;
        fencewright_lsp::Settings {
            models: given.model.models().to_vec(),
            timeout: given.patience.get(),
            memory: given.memory.get(),
            options: given.reader().options,
            own_solver: given.no_z3,
            check_on_save: !given.no_check_on_save,
            ..fencewright_lsp::Settings::default()
        }
    }
}
