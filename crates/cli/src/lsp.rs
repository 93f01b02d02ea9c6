//! `fencewright lsp`: a language server for editors.

use std::path::Path;

use fencewright::input::{in_words, read_included};
use fencewright_lsp::{Environment, serve};

use crate::args::LspArgs;
use crate::memory;
use crate::status::Status;

/// Serves one client.
pub fn run(args: &LspArgs) -> Status {
    let read = |path: &Path| read_included(path).map_err(|error| in_words(&error));
    match serve(args.settings(), Environment { read, memory: memory::used }) {
        true => Status::Fine,
        false => Status::Violated,
    }
}
