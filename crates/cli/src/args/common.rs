//! What several commands have in common.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use fencewright::engines::{Confirm, Limits};
use fencewright::lang::{COptions, FrontEnd, Options, front_end};
use fencewright::program::MemoryModel;
use fencewright::{Budget, Reader};

use crate::{memory, stop};

use super::values::{self, Limit, define, timeout};
use super::{C_PROGRAMS, OUTPUT};

/// How to read a program.
#[derive(Args, Clone)]
pub struct InputArgs {
    /// Set a top-level constant of the program, or define a macro of a C program, may be repeated
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = define)]
    pub define: Vec<(String, Option<String>)>,
    /// The format of the input; otherwise recognised by extension or content
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FormatArg>,
    /// C: look for included files in this folder too, may be repeated
    #[arg(short = 'I', value_name = "DIR", value_hint = clap::ValueHint::DirPath, help_heading = C_PROGRAMS)]
    pub folders: Vec<String>,
    /// C: how many objects a malloc in a loop may allocate (4 by default); if an execution needs more, the verdict is `unknown`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = C_PROGRAMS)]
    pub heap: Option<u32>,
    /// C: malloc never returns an object that was freed, so that comparisons with old pointers are not all tried
    #[arg(long, help_heading = C_PROGRAMS)]
    pub no_reuse: bool,
    /// What `--no-reuse` turns off is the default now.
    #[arg(long, hide = true, conflicts_with = "no_reuse")]
    pub reuse: bool,
    /// The properties that are asked for, which decide how waiting is read.
    #[arg(skip)]
    pub asked: Vec<String>,
    /// Whether the question is whether programs are robust.
    #[arg(skip)]
    pub robustness: bool,
}

impl InputArgs {
    /// Says which properties are asked for.
    pub fn settle(&mut self, properties: &[String]) {
        self.asked = properties.to_vec();
    }

    /// How programs are read, for the properties that are asked for.
    pub fn reader(&self) -> Reader {
        let c = COptions {
            folders: self.folders.clone(),
            heap: self.heap,
            no_reuse: self.no_reuse,
            ..COptions::default()
        };
        let mut options = Options { defines: self.define.clone(), c, ..Options::default() };
        options.ask(&self.asked);
        if self.robustness {
            options.ask_robustness();
        }
        Reader { options, format: self.format.map(|format| format.0), ..Reader::default() }
    }
}

/// What a search may use.
#[derive(Args)]
pub struct LimitArgs {
    /// Give up after this time (10s, 500ms, 2m, 1h, none), for each file and model
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = timeout)]
    pub timeout: Limit<Duration>,
    /// Give up beyond this much memory (512M, 2G, none)
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = values::memory)]
    pub memory: Limit<u64>,
}

impl LimitArgs {
    /// The time and memory of a search.
    pub fn budget(&self, own_solver: bool) -> Budget {
        Budget {
            timeout: self.timeout.get(),
            memory: self.memory.get(),
            token: stop::token(),
            own_solver,
            meter: Some(memory::METER),
        }
    }

    /// The limits of a search that starts now.
    pub fn starting_now(&self) -> Limits {
        self.budget(false).start()
    }
}

/// What every command has that examines programs: which ones, with what means, and how it tells the result.
///
/// The commands word `--json` and `--quiet` themselves, after what they print.
#[derive(Args)]
pub struct AnalysisArgs {
    /// Programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Do not confirm verdicts: neither certificates nor the reference semantics
    #[arg(long, display_order = 900)]
    pub no_certify: bool,
    /// Print one JSON object for each file
    #[arg(long, display_order = 910, help_heading = OUTPUT)]
    pub json: bool,
    /// Print the verdicts only: no explanations, no progress
    #[arg(long, short, display_order = 911, help_heading = OUTPUT)]
    pub quiet: bool,
    /// Show executions step by step, with all of memory: nothing is folded or left out
    #[arg(long, display_order = 912, help_heading = OUTPUT)]
    pub full: bool,
}

/// What a search may run besides itself.
#[derive(Args)]
pub struct SolverArgs {
    /// Never run Z3; otherwise FENCEWRIGHT_Z3, or z3 on the search path, is asked where our own solver gives up
    #[arg(long, display_order = 903)]
    pub no_z3: bool,
}

impl AnalysisArgs {
    /// The limits of a search that starts now.
    pub fn limits_from_now(&self) -> Limits {
        self.budget().start()
    }

    /// The time and memory of each search.
    pub fn budget(&self) -> Budget {
        self.limits.budget(self.solver.no_z3)
    }

    /// How far verdicts are confirmed.
    pub fn confirm(&self) -> Confirm {
        if self.no_certify { Confirm::NOTHING } else { Confirm::default() }
    }

    /// Whether a person reads the output and wants to know more than the verdict.
    pub fn is_talkative(&self) -> bool {
        !self.json && !self.quiet
    }
}

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

/// One memory model, or all of them.
#[derive(Clone, Copy, ValueEnum)]
#[allow(missing_docs)]
pub enum ModelArg {
    Sc,
    Tso,
    Pso,
    All,
}

impl ModelArg {
    /// The memory models meant.
    pub fn models(self) -> &'static [MemoryModel] {
        match self {
            ModelArg::Sc => &[MemoryModel::Sc],
            ModelArg::Tso => &[MemoryModel::Tso],
            ModelArg::Pso => &[MemoryModel::Pso],
            ModelArg::All => &MemoryModel::ALL,
        }
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
