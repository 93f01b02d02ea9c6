//! Options: [`TABLE`] has one line for each option. The help of the command, the reference in `docs/cli.md` and the options in JSON are made from it.
//!
//! A line gives, in this order, the field of [`Settings`], how often the option may be given, its type, its names on the command line (`-q|--quiet`),
//! the name of its value, and its default. Then follow the commands that have the option, the engines that use it (empty if it is not about engines),
//! and its help. Further explanations for the manual are optional. To add an option, add a line to the table and use the field of `Settings`.
//!
//! ```
//! use fencewright::settings::{Command, Settings, row};
//! use fencewright::{Program, Verdict};
//!
//! let mut settings = Settings::default();
//! settings.set("engine", "cegar")?;
//! settings.set("k", "2")?;
//! assert!(settings.set("k", "9").is_err());
//! assert!(row("k").commands.contains(&Command::Check));
//!
//! let program = Program::parse("one.fw", "shared x; thread p { x = 1; assert x == 1; }").expect("it is right");
//! let answers = settings.question().expect("there is such an engine").check(&program).expect("it has properties");
//! assert!(matches!(answers[0].verdict(), Verdict::Safe));
//! # Ok::<(), String>(())
//! ```

mod reference;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use fencewright_engines::buffers::BufferDomain;
use fencewright_engines::domain::DomainName;
use fencewright_engines::explicit::{self, Order, Reduction};
use fencewright_engines::lazy::{self, OracleName};
use fencewright_engines::robust::{self, Search};
use fencewright_engines::{
    Confirm, EngineName, EngineOptions, Token, buffers, cegar, contexts, extrapolate, registry,
};
use fencewright_fences::Prices;
use fencewright_memory::Kept;
use fencewright_transform::attack::Notion;
use fencewright_transform::extend::AttackingStore;

use crate::{
    Budget, BufferBound, COptions, Error, MemoryModel, NoOverflow, Options, Purpose, Question, Reader, Repair,
};

pub use reference::reference;
pub use values::{Choice, Count, Define, Fixed, Format, Limit, Models, Name, Value};

/// A command that has options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Command {
    Check,
    Robust,
    Fences,
    Certify,
    Litmus,
    Run,
    Show,
    Convert,
    Reduce,
    Lsp,
}

use Command::{Certify, Check, Convert, Litmus, Lsp, Reduce, Robust, Run, Show};

impl Command {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Check => "check",
            Robust => "robust",
            Command::Fences => "fences",
            Certify => "certify",
            Litmus => "litmus",
            Run => "run",
            Show => "show",
            Convert => "convert",
            Reduce => "reduce",
            Lsp => "lsp",
        }
    }
}

/// The commands that examine programs.
const ASK: &[Command] = &[Check, Robust, Command::Fences];
/// The commands that read a program.
const READ: &[Command] = &[Check, Robust, Command::Fences, Certify, Litmus, Run, Show, Convert, Reduce];
/// The commands that read a program, and the language server.
const READ_OR_SERVE: &[Command] =
    &[Check, Robust, Command::Fences, Certify, Litmus, Run, Show, Convert, Reduce, Lsp];

/// A group of options, with a heading of its own in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Options for most users.
    Main,
    /// C programs.
    C,
    /// Options for output formats and files.
    Output,
    /// Options that only some engines use.
    Engines,
    /// For experiments with engines.
    Research,
    /// Accepted but not shown in the help.
    Hidden,
}

impl Group {
    /// The heading; `None` for the options that come first without one.
    pub fn heading(self) -> Option<&'static str> {
        match self {
            Group::Main | Group::Hidden => None,
            Group::C => Some("C programs"),
            Group::Output => Some("Output"),
            Group::Engines => Some("Options of engines"),
            Group::Research => Some("Options for research"),
        }
    }
}

/// One option.
pub struct Row {
    /// The field of [`Settings`].
    pub field: &'static str,
    /// The short name, the long name or both, with their dashes, separated by a bar.
    names: &'static str,
    /// The name of the value in the help; empty if the option has none.
    pub value: &'static str,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// Whether it may be given more than once.
    pub is_repeated: bool,
    /// Whether its values are a list, separated by commas.
    pub is_list: bool,
    /// The group under whose heading the help lists the option.
    pub group: Group,
    /// The commands that have it.
    pub commands: &'static [Command],
    /// The engines that use it; empty if it is not about engines.
    pub engines: &'static [EngineName],
    /// The explanation in `--help` and in the manual.
    pub help: &'static str,
    /// Further explanations, for the manual only.
    pub more: &'static str,
    /// The values to choose from; empty if they cannot be listed.
    pub choices: fn() -> Vec<Choice>,
    /// Checks a value; returns the error message if the value is wrong.
    pub check: fn(&str) -> Result<(), String>,
}

impl Row {
    /// The short name, without a dash.
    pub fn short(&self) -> Option<char> {
        self.names.split('|').find(|name| !name.starts_with("--"))?.chars().nth(1)
    }

    /// The long name, without dashes.
    pub fn long(&self) -> Option<&'static str> {
        self.names.split('|').find_map(|name| name.strip_prefix("--"))
    }

    /// The name with its dashes: the long name or, if there is none, the short one.
    pub fn name(&self) -> String {
        self.long().map_or_else(|| self.names.to_owned(), |long| format!("--{long}"))
    }
}

/// The row of a field of [`Settings`]; panics if there is no such field.
pub fn row(field: &str) -> &'static Row {
    TABLE.iter().find(|row| row.field == field).unwrap_or_else(|| panic!("no option is called {field}"))
}

/// The rows of a command, in the order of the help.
pub fn rows(command: Command) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |row| row.commands.contains(&command))
}

/// The options of `check` that this engine uses but not every engine does, with their dashes.
pub fn known_to(engine: EngineName) -> Vec<String> {
    rows(Check).filter(|row| row.engines.contains(&engine)).map(Row::name).collect()
}

/// The type of a field of [`Settings`].
macro_rules! field {
    (flag $type:ty) => { bool };
    (once $type:ty) => { $type };
    (maybe $type:ty) => { Option<$type> };
    (many $type:ty) => { Vec<$type> };
    (list $type:ty) => { Vec<$type> };
}

/// Assigns a value to a field of [`Settings`].
macro_rules! store {
    (flag $type:ty, $field:expr, $text:expr) => {
        $field = true
    };
    (once $type:ty, $field:expr, $text:expr) => {
        $field = <$type as Value>::read_os($text)?
    };
    (maybe $type:ty, $field:expr, $text:expr) => {
        $field = Some(<$type as Value>::read_os($text)?)
    };
    (many $type:ty, $field:expr, $text:expr) => {
        $field.push(<$type as Value>::read_os($text)?)
    };
    (list $type:ty, $field:expr, $text:expr) => {
        for part in $text.to_string_lossy().split(',') {
            $field.push(<$type as Value>::read(part)?);
        }
    };
}

/// The value of a field of [`Settings`] before anything is set.
macro_rules! initial {
    (flag $type:ty, $default:literal) => {
        false
    };
    (once $type:ty, $default:literal) => {
        <$type as Value>::read($default).expect("the default can be read")
    };
    (maybe $type:ty, $default:literal) => {
        None
    };
    (many $type:ty, $default:literal) => {
        Vec::new()
    };
    (list $type:ty, $default:literal) => {
        Vec::new()
    };
}

macro_rules! is_kind {
    (many, many) => {
        true
    };
    (list, list) => {
        true
    };
    ($kind:ident, $other:ident) => {
        false
    };
}

macro_rules! options {
    ($($group:ident { $($field:ident: $kind:ident $type:ty, $names:literal, $value:literal, $default:literal, $commands:expr, $engines:expr, $help:literal $(, $more:literal)?;)* })*) => {
        /// The value of each option.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $help] pub $field: field!($kind $type),)*)*
            /// The fields that were set, with their texts.
            given: BTreeMap<&'static str, String>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $($($field: initial!($kind $type, $default),)*)* given: BTreeMap::new() }
            }
        }

        impl Settings {
            /// Sets the field with this name from a text; an error is the message about the text. For flags, the text is ignored.
            pub fn set(&mut self, field: &str, text: impl AsRef<OsStr>) -> Result<(), String> {
                let text = text.as_ref();
                match field {
                    $($(stringify!($field) => store!($kind $type, self.$field, text),)*)*
                    _ => return Err(format!("no option is called {field}")),
                }
                let row = row(field);
                let given = self.given.entry(row.field).or_default();
                if !given.is_empty() && (row.is_repeated || row.is_list) {
                    given.push(',');
                } else {
                    given.clear();
                }
                given.push_str(&text.to_string_lossy());
                Ok(())
            }
        }

        /// All options, in the order of the help.
        pub static TABLE: &[Row] = &[
            $($(Row {
                field: stringify!($field), names: $names, value: $value, default: $default, is_repeated: is_kind!($kind, many), is_list: is_kind!($kind, list), group: Group::$group, commands: $commands, engines: $engines, help: $help,
                more: concat!($($more)?), choices: <$type as Value>::choices, check: |text| <$type as Value>::read(text).map(drop),
            },)*)*
        ];
    };
}

use EngineName::{Auto, Buffers, Cegar, Contexts, Explicit, Extrapolate, Lazy};

#[rustfmt::skip]
options! {
    Main {
        define: many Define, "-D", "NAME=VALUE", "", READ_OR_SERVE, &[], "Set a top-level constant of the program, or define a macro of a C program, may be repeated";
        format: maybe Format, "--format", "FORMAT", "", READ, &[], "The format of the input; otherwise recognised by extension or content";
        timeout: once Limit<Duration>, "--timeout", "TIME", "60s", &[Check, Robust, Command::Fences, Certify, Litmus, Show], &[], "Give up after this time (10s, 500ms, 2m, 1h, none), for each file and model";
        patience: once Limit<Duration>, "--timeout", "TIME", "10s", &[Lsp], &[], "Give up after this time (10s, 500ms, 2m, 1h, none), for each question and model";
        memory: once Limit<u64>, "--memory", "SIZE", "4G", &[Check, Robust, Command::Fences, Certify, Litmus, Show, Lsp], &[], "Give up beyond this much memory (512M, 2G, none)", "Units are K, M, G and T; `MiB` and the like are the same. It is the memory of the whole process.";
        goal: once Purpose, "--goal", "GOAL", "safety", &[Command::Fences], &[], "What the fences are for";
        notion: once Notion, "--notion", "NOTION", "happens-before", &[Robust], &[], "What is asked: robustness itself, or freedom from triangular races, which implies it";
        model: once Models, "--model", "MODEL", "tso", &[Check, Command::Fences, Litmus, Lsp], &[], "The memory model", "`all` gives a verdict for each; `fences` finds fences for tso or pso.";
        certified_model: maybe MemoryModel, "--model", "MODEL", "", &[Certify], &[], "Accept only a certificate for this memory model";
        engine: once Name, "--engine", "NAME", "auto", &[Check], &[], "The engine; `fencewright engines` says more about each";
        attack_engine: once Search, "--engine", "NAME", "auto", &[Robust], &[], "The engine that runs the attacks";
        property: many String, "--property", "NAME", "", &[Check, Command::Fences], &[], "Ask only about this property, may be repeated; `check` knows `deadlock` for all programs, `termination` for C programs";
        certified_property: many String, "--property", "NAME", "", &[Certify], &[], "Accept only a certificate for this property, may be repeated";
        no_overflow: maybe NoOverflow, "--no-overflow", "K", "", &[Command::Fences], &[], "Also keep every buffer within K stores: of each thread, under pso of each thread to each variable (K/thread: of each thread)";
        price: maybe Prices, "--price", "WHAT=PRICE,...", "", &[Command::Fences], &[], "Prices: fence=2,sfence=1,xchg=2 (only then a locked instruction may replace a store), loop=1 (more inside loops)";
        all_attacks: flag bool, "--all", "", "", &[Robust], &[], "Examine every attack (a store that may be delayed past a load) and list them all";
        all_sets: flag bool, "--all", "", "", &[Command::Fences], &[], "List every set that is as cheap";
        audit: flag bool, "--audit", "", "", &[Command::Fences], &[], "Tell which of the fences already there are needed, instead of looking for more";
        jobs: once Count<0, 256>, "--jobs", "N", "0", &[Check, Robust, Litmus], &[Auto, Explicit, Lazy, Buffers], "How many threads to search with, or how many tests to run side by side; 0 means all cores";
        no_check_on_save: flag bool, "--no-check-on-save", "", "", &[Lsp], &[], "Check only when asked to, not when a program is saved";
        no_certify: flag bool, "--no-certify", "", "", ASK, &[], "Do not confirm verdicts: neither certificates nor the reference semantics";
        no_z3: flag bool, "--no-z3", "", "", &[Check, Robust, Command::Fences, Show, Lsp], &[], "Never run Z3; otherwise FENCEWRIGHT_Z3, or z3 on the search path, is asked where our own solver gives up";
    }
    C {
        folders: many String, "-I", "DIR", "", READ_OR_SERVE, &[], "C: look for included files in this folder too, may be repeated";
        heap: maybe Count<1, 1000>, "--heap", "N", "", READ_OR_SERVE, &[], "C: how many objects a malloc in a loop may allocate (4 by default); if an execution needs more, the verdict is `unknown`";
        no_reuse: flag bool, "--no-reuse", "", "", READ, &[], "C: malloc never returns an object that was freed, so that comparisons with old pointers are not all tried";
    }
    Output {
        diff: flag bool, "--diff", "", "", &[Command::Fences], &[], "Print the edit that puts the fences in, as a unified diff";
        write: flag bool, "--write", "", "", &[Command::Fences], &[], "Put the fences into the file";
        certificate: maybe PathBuf, "--certificate", "OUT", "", &[Check, Robust], &[], "Write the certificate of a proof to this file; one program and one model at a time", "If there is no certificate, the command says so and removes an old certificate from that file. See [certificates.md](certificates.md).";
        invariants: flag bool, "--invariants", "", "", &[Check], &[], "Print what was proved at each program point";
        sarif: maybe PathBuf, "--sarif", "OUT", "", &[Check], &[], "Write the answers to this file as SARIF 2.1.0, for editors and code hosts", "See [continuous-integration.md](continuous-integration.md).";
        html: maybe PathBuf, "--html", "OUT", "", ASK, &[], "Write the answers to this file as a page for a browser, with executions to step through", "See [report.md](report.md).";
        no_evidence: flag bool, "--no-evidence", "", "", &[Command::Fences], &[], "Do not show for each fence what happens without it";
        json: flag bool, "--json", "", "", &[Check, Robust, Command::Fences, Certify, Litmus], &[], "Print JSON instead of text", "See [json.md](json.md).";
        quiet: flag bool, "-q|--quiet", "", "", ASK, &[], "Print the verdicts only: no executions, no notes, no progress";
        full: flag bool, "--full", "", "", ASK, &[], "Show executions step by step, with all of memory: nothing is folded or left out";
    }
    Engines {
        search: once Order, "--search", "ORDER", "bfs", ASK, &[Auto, Explicit, Cegar, Lazy, Buffers], "The order of the search: bfs gives the shortest counterexamples, dfs needs less memory";
        buffer: maybe BufferBound, "--buffer", "N", "", &[Check], &[Auto, Explicit, Cegar], "At most N buffered stores in each thread; under pso also N/variable, or x=2,y=1. If an execution needs more, the verdict is `unknown`", "`N/variable` bounds the stores of a thread to each variable (to each element of an array), `x=2,1/variable` has another bound for x. Engine cegar then has exact buffers instead of abstract ones.";
        contexts: maybe Count<1, 64>, "--contexts", "K", "", &[Check], &[Contexts], "Engine contexts: at most K contexts, in each of which one thread runs; 1 to 64", "A violation is found with the fewest contexts that show it; `no violation within K contexts` is `unknown`, and `safe` only if more contexts would show nothing more. SC and TSO, not deadlocks. See [contexts.md](contexts.md).";
    }
    Research {
        no_live: flag bool, "--no-live", "", "", ASK, &[Auto, Explicit, Lazy, Buffers], "Switch off live variables: keep the values of registers that no longer matter";
        reduction: once Reduction, "--reduction", "REDUCTION", "suited", ASK, &[Auto, Explicit, Lazy, Buffers], "Which interleavings the explicit engine leaves out", "See [below](#interleavings-that-are-left-out).";
        no_symmetry: flag bool, "--no-symmetry", "", "", &[Check], &[Auto, Explicit, Lazy], "Switch off symmetry: store all states that differ only in which thread of a family does what", "See [below](#threads-that-may-be-exchanged).";
        k: maybe Count<0, 8>, "--k", "K", "", &[Check], &[Auto, Cegar, Extrapolate], "Engine cegar: how many stores of each buffer are kept in order at first; engine extrapolate: how many it holds at first", "The default is 1.";
        kept: once Kept, "--kept", "END", "newest", &[Check], &[Auto, Cegar, Buffers], "Engines cegar and buffers: which end of a buffer is kept in order";
        summaries: flag bool, "--summaries", "", "", &[Check], &[Auto, Cegar], "Engine cegar: keep from the start which values the stores have whose order is forgotten", "Without it, they are kept only where a counterexample shows that they matter; see [below](#what-a-buffer-forgets).";
        domain: maybe DomainName, "--domain", "DOMAIN", "", &[Check], &[Auto, Cegar, Contexts, Lazy], "Engines cegar and contexts: how integers are represented; by default zones, for contexts order where that is exact", "`concrete` also needs a range, with abstract buffers, for every variable whose stores are forgotten, and ends only if there are finitely many values.";
        clip: maybe Count<1, 64>, "--clip", "C", "", &[Check], &[Auto, Cegar, Lazy], "Engine cegar: the clip constant of zones at first", "The default is 1.";
        fix: list Fixed, "--fix", "WHAT", "", &[Check], &[Auto, Cegar, Lazy], "Engine cegar: what is not refined; `predicates` are then those of the file", "Several are separated by commas. If a proof needs another value, the verdict is `unknown` and says which.";
        buffer_domain: maybe BufferDomain, "--buffer-domain", "DOMAIN", "", &[Check], &[Auto, Buffers], "Engine buffers: the one abstraction of buffers to try; set, multiset, or partial:K with K stores in order", "By default they are tried one after the other, until one decides. See [buffers.md](buffers.md).";
        oracle: once OracleName, "--oracle", "ORACLE", "robust", &[Check, Show], &[Lazy], "Engine lazy: what chooses the paths along which stores are delayed", "See [lazy.md](lazy.md).";
        keep_store: flag bool, "--keep-store", "", "", &[Check, Show], &[Lazy], "Engine lazy: keep the original store beside the delayed one; then only robust programs are ever `safe`";
        rounds: maybe Count<0, { u32::MAX }>, "--rounds", "N", "", &[Check, Show], &[Lazy], "Engine lazy: give up after N rounds; `show --extended`: how many rounds (1 by default)";
        method: once extrapolate::Method, "--method", "METHOD", "predicates", &[Check], &[Extrapolate], "Engine extrapolate: what is extrapolated from the proof under SC", "See [extrapolate.md](extrapolate.md).";
        emit_boolean: maybe PathBuf, "--emit-boolean", "OUT", "", &[Check], &[Extrapolate], "Engine extrapolate: write the boolean program of the proof to this file; one program and one model at a time";
    }
    Hidden {
        reuse: flag bool, "--reuse", "", "", READ, &[], "The default: malloc may return an object that was freed";
        stdio: flag bool, "--stdio", "", "", &[Lsp], &[], "The default: talk to the client over the standard input and output";
    }
}

/// Options that exclude each other.
pub const CONFLICTS: [(&str, &str); 2] = [("certificate", "all_attacks"), ("no_reuse", "reuse")];

impl Settings {
    /// The options that were set, in the order of the table.
    pub fn given(&self) -> impl Iterator<Item = &'static Row> {
        TABLE.iter().filter(|row| self.given.contains_key(row.field))
    }

    /// The options of engines that were set: their long names with their values, which are empty for flags.
    pub fn of_engines(&self) -> BTreeMap<String, String> {
        let rows = self.given().filter(|row| !row.engines.is_empty());
        rows.filter_map(|row| Some((row.long()?.to_owned(), self.given.get(row.field)?.clone()))).collect()
    }

    /// How programs are read for questions about the selected properties.
    pub fn reader(&self) -> Reader {
        let folders = self.folders.clone();
        let c = COptions {
            folders,
            heap: self.heap.map(Count::get),
            no_reuse: self.no_reuse,
            ..COptions::default()
        };
        let defines = self.define.iter().map(|Define(name, value)| (name.clone(), value.clone())).collect();
        let mut options = Options { defines, c, ..Options::default() };
        options.ask(&self.property);
        Reader { options, format: self.format.map(|format| format.0), ..Reader::default() }
    }

    /// The limits on time and memory, without a token and without the memory meter of the process.
    pub fn budget(&self) -> Budget {
        Budget {
            timeout: self.timeout.get(),
            memory: self.memory.get(),
            token: Token::default(),
            own_solver: self.no_z3,
            meter: None,
        }
    }

    /// The effort for confirming verdicts.
    pub fn confirm(&self) -> Confirm {
        if self.no_certify { Confirm::NOTHING } else { Confirm::default() }
    }

    /// The question under the first memory model; `None` if there is no engine with the given name.
    pub fn question(&self) -> Option<Question> {
        let engine = registry().iter().find(|info| info.name.as_str() == self.engine.0)?.name;
        let question = Question::under(self.model.models()[0])
            .engine(engine)
            .options(self.engine_options())
            .confirm(self.confirm())
            .budget(self.budget());
        let question = self.property.iter().fold(question, |question, name| question.property(name));
        Some(match &self.buffer {
            Some(bound) => question.buffer(bound.clone()),
            None => question,
        })
    }

    /// The question about fences; an error if several memory models are given.
    pub fn repair(&self) -> Result<Repair, Error> {
        let [model] = self.model.models() else {
            return Err(Error::Setting("model", "fences are found for one memory model at a time".into()));
        };
        let engines = EngineOptions { explicit: self.searched(), ..EngineOptions::default() };
        let question = Question::under(*model).options(engines).confirm(self.confirm()).budget(self.budget());
        let question = self.property.iter().fold(question, |question, name| question.property(name));
        let options = fencewright_fences::Options {
            prices: self.price.unwrap_or_default(),
            sets: if self.all_sets { MOST_SETS } else { 1 },
            evidence: !self.no_evidence,
        };
        Ok(Repair { question, purpose: self.goal, no_overflow: self.no_overflow, options })
    }

    /// The options of the question about robustness.
    pub fn robustness(&self) -> robust::Options {
        robust::Options {
            notion: self.notion,
            all: self.all_attacks,
            search: self.attack_engine,
            explicit: self.searched(),
            confirm: self.confirm(),
            certificate: self.certificate.is_some(),
            ..robust::Options::default()
        }
    }

    /// The options of all engines.
    pub fn engine_options(&self) -> EngineOptions {
        let cegar = self.cegar();
        EngineOptions {
            explicit: explicit::Options {
                symmetry: !self.no_symmetry,
                certificates: self.certificate.is_some(),
                ..self.searched()
            },
            cegar,
            buffers: buffers::Options { domain: self.buffer_domain, kept: cegar.kept },
            lazy: lazy::Options { certificates: self.certificate.is_some(), ..self.delays() },
            contexts: contexts::Options {
                contexts: self.contexts.map(Count::get),
                domain: self.domain,
                certificates: !self.no_certify,
            },
            extrapolate: extrapolate::Options {
                method: self.method,
                k: self.k.map_or(1, Count::get),
                record: None,
            },
        }
    }

    fn cegar(&self) -> cegar::Options {
        let defaults = cegar::Options::default();
        cegar::Options {
            k: self.k.map_or(defaults.k, Count::get),
            kept: self.kept,
            summaries: self.summaries,
            domain: self.domain.unwrap_or(defaults.domain),
            clip: self.clip.map_or(defaults.clip, |clip| clip.get() as i32),
            fixed: cegar::Fixed {
                k: self.fix.contains(&Fixed::K),
                clip: self.fix.contains(&Fixed::Clip),
                predicates: self.fix.contains(&Fixed::Predicates),
            },
            order: self.search,
            ..defaults
        }
    }

    /// The options of the explicit engine, also when another engine runs it.
    fn searched(&self) -> explicit::Options {
        let defaults = explicit::Options::default();
        let workers = match self.jobs.get() {
            0 => defaults.workers,
            jobs => jobs as usize,
        };
        explicit::Options {
            order: self.search,
            live_variables: !self.no_live,
            reduction: self.reduction,
            workers,
            ..defaults
        }
    }

    /// The options of engine `lazy` for delaying stores.
    pub fn delays(&self) -> lazy::Options {
        lazy::Options {
            oracle: self.oracle,
            store: if self.keep_store { AttackingStore::Kept } else { AttackingStore::Removed },
            rounds: self.rounds.map(Count::get),
            certificates: false,
        }
    }
}

/// Maximum number of equally cheap sets of fences that are listed.
const MOST_SETS: usize = 1_000;
