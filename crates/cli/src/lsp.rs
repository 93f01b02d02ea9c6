//! `fencewright lsp`: a language server for editors.

use fencewright_lsp::{Environment, serve};

use crate::args::LspArgs;
use crate::memory;
use crate::status::Status;

/// Serves one client.
pub fn run(args: &LspArgs) -> Status {
    match serve(args.settings(), Environment { memory: memory::used }) {
        true => Status::Fine,
        false => Status::Violated,
    }
}
