//! The command line.

mod certify;
mod examples;
mod generate;
mod lsp;
mod programs;
mod settings;
mod values;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, Parser, Subcommand};

pub use certify::CertifyArgs;
pub use examples::{STATUS, of as examples_of};
pub use generate::{FamilyArg, GenerateArgs};
pub use lsp::LspArgs;
pub use programs::{
    CheckArgs, ConvertArgs, FencesArgs, FmtArgs, LitmusArgs, ReduceArgs, RobustArgs, RunArgs, ShowArgs,
};
pub use settings::{EnginesArgs, is_talkative, limits, question, reader_for_robustness, repair};

/// Verifies concurrent programs on relaxed memory (SC, TSO, PSO).
#[derive(Parser)]
#[command(name = "fencewright", version, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command line, with examples.
pub fn command_line() -> clap::Command {
    examples::with_examples(Cli::command())
}

/// The long options given on the command line, with their dashes.
pub fn given(matches: &ArgMatches) -> Vec<String> {
    let Some((name, own)) = matches.subcommand() else { return Vec::new() };
    let is_given = |arg: &&Arg| own.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let command = Cli::command();
    let arguments = command.find_subcommand(name).into_iter().flat_map(|command| command.get_arguments());
    arguments.filter(is_given).filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect()
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Check the properties of programs
    Check(CheckArgs),
    /// Decide whether programs behave under TSO as under SC
    Robust(RobustArgs),
    /// Find the cheapest fences that make programs safe; `--write` inserts them
    Fences(FencesArgs),
    /// Check a certificate of safety, without any engine
    Certify(CertifyArgs),
    /// Run litmus tests and summarise their final states
    Litmus(LitmusArgs),
    /// Simulate a program: at random, or step by step
    Run(RunArgs),
    /// Print the control-flow graphs in the language of Graphviz
    Show(ShowArgs),
    /// Lay .fw files out in the one style
    Fmt(FmtArgs),
    /// Translate a program into another format
    Convert(ConvertArgs),
    /// Write a program for SC that does what this one does under TSO or PSO
    Reduce(ReduceArgs),
    /// Write a program of a family that is hard for verifiers
    Generate(GenerateArgs),
    /// Serve an editor: errors, verdicts, fences and invariants in place
    Lsp(LspArgs),
    /// List the engines, with what each is made of and the options that mean something to it
    Engines(EnginesArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the command, or of one of its commands
    Man {
        /// The command
        #[arg(value_parser = values::COMMAND)]
        command: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command_line().debug_assert();
    }
}
