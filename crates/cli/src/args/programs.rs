//! Commands whose arguments are one program, or several files, besides the options in the table.

use std::path::PathBuf;

use clap::Args;

use super::settings::{
    ForCheck, ForConvert, ForFences, ForFmt, ForLitmus, ForReduce, ForRobust, ForRun, ForShow, Given, Of,
};

/// A command about one program.
#[derive(Args)]
pub struct One<C: Of> {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Given<C>,
}

/// A command about several files.
#[derive(Args)]
pub struct Several<C: OfSeveral> {
    #[arg(required = true, value_name = C::NAME, help = C::HELP)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Given<C>,
}

impl<C: OfSeveral> Several<C> {
    /// With `--as-one`, the files are one program: the first one is its main file.
    fn join(&mut self) {
        if !self.settings.as_one.is_empty() {
            let others = self.files.drain(1..).map(|file| file.to_string_lossy().into_owned());
            self.settings.join(others.collect());
        }
    }
}

impl super::Command {
    /// With `--as-one`, all files of the command line are one program.
    pub fn join_files(&mut self) {
        match self {
            super::Command::Check(args) => args.join(),
            super::Command::Robust(args) => args.join(),
            super::Command::Fences(args) => args.join(),
            super::Command::Litmus(args) => args.join(),
            _ => {}
        }
    }
}

/// What the files of a command are.
pub trait OfSeveral: Of {
    /// The name of an argument in the help.
    const NAME: &'static str = "FILE";
    /// The help.
    const HELP: &'static str = "Programs; `-` is the standard input";
}

impl OfSeveral for ForRobust {}
impl OfSeveral for ForFences {}

impl OfSeveral for ForCheck {
    const NAME: &'static str = "FILE|DIR";
    const HELP: &'static str = "Programs, or folders of programs; `-` is the standard input";
}

impl OfSeveral for ForLitmus {
    const NAME: &'static str = "FILE|DIR";
    const HELP: &'static str =
        "Litmus tests, .fw files with a `finally` property, or directories to search for .litmus files";
}

impl OfSeveral for ForFmt {
    const HELP: &'static str = ".fw files; `-` formats the standard input to the standard output";
}

/// `check`
pub type CheckArgs = Several<ForCheck>;
/// `robust`
pub type RobustArgs = Several<ForRobust>;
/// `fences`
pub type FencesArgs = Several<ForFences>;
/// `litmus`
pub type LitmusArgs = Several<ForLitmus>;
/// `fmt`
pub type FmtArgs = Several<ForFmt>;
/// `run`
pub type RunArgs = One<ForRun>;
/// `show`
pub type ShowArgs = One<ForShow>;
/// `convert`
pub type ConvertArgs = One<ForConvert>;
/// `reduce`
pub type ReduceArgs = One<ForReduce>;
