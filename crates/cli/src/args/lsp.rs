//! The command line of `lsp`.

use clap::Args;
use fencewright::lang::{COptions, Options};
use fencewright_lsp::Settings;

use super::values::define;
use super::{C_PROGRAMS, LimitArgs, ModelArg, SolverArgs};

/// `lsp`
///
/// An editor starts it and talks to it over the standard input and output; docs/editor.md says how to set editors up. It ends with 0 if the client took leave
/// (shutdown, then exit), otherwise with 1.
#[derive(Args)]
#[command(
    mut_arg("timeout", |arg| arg.default_value("10s").help("Give up after this time (10s, 500ms, 2m, 1h, none), for each question and model")),
    mut_arg("memory", |arg| arg.help("Give up what takes more memory than this (512M, 2G, none), the whole server included"))
)]
pub struct LspArgs {
    /// The memory model of verdicts
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Set a top-level constant of every program, or define a macro of C programs, may be repeated
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = define)]
    pub define: Vec<(String, Option<String>)>,
    /// C: look for included files in this folder too, may be repeated
    #[arg(short = 'I', value_name = "DIR", value_hint = clap::ValueHint::DirPath, help_heading = C_PROGRAMS)]
    pub folders: Vec<String>,
    /// C: how many objects a malloc in a loop may allocate (4 by default); if an execution needs more, the verdict is `unknown`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = C_PROGRAMS)]
    pub heap: Option<u32>,
    /// Check only when asked to, not when a program is saved
    #[arg(long)]
    pub no_check_on_save: bool,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Some clients say so: there is no other way to talk to it.
    #[arg(long, hide = true)]
    pub stdio: bool,
}

impl LspArgs {
    /// What clients start with; they can set it otherwise.
    pub fn settings(&self) -> Settings {
        let c = COptions { folders: self.folders.clone(), heap: self.heap, ..COptions::default() };
        Settings {
            models: self.model.models().to_vec(),
            timeout: self.limits.timeout.get(),
            memory: self.limits.memory.get(),
            options: Options { defines: self.define.clone(), c, ..Options::default() },
            own_solver: self.solver.no_z3,
            check_on_save: !self.no_check_on_save,
            ..Settings::default()
        }
    }
}
