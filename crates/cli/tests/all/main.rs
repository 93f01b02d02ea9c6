//! All integration tests of this crate. They are modules of one program, so that it is linked only once.

mod algorithms;
mod browser;
mod c_audit;
mod c_corpora;
mod c_examples;
mod c_fences;
mod c_files;
mod c_hostile;
mod c_libraries;
mod c_mistakes;
mod certify;
mod check;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod contexts;
mod deadlocks;
mod docs;
mod examples;
mod faults;
mod fences;
#[cfg(target_os = "linux")]
mod files;
mod folders;
mod generate;
mod hostile;
mod house;
mod html;
mod json;
mod json_schema;
mod lazy;
mod litmus;
mod litmus_machine;
mod lsp;
mod procedures;
mod reduce;
mod reductions;
mod robust;
mod sarif;
#[cfg(target_os = "linux")]
mod signals;
