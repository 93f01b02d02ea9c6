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

mod command;
mod idle;
mod reference;
#[macro_use]
mod row;
#[cfg(test)]
mod tests;
mod uses;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use fencewright_engines::EngineName;
use fencewright_engines::buffers::BufferDomain;
use fencewright_engines::domain::DomainName;
use fencewright_engines::explicit::{Order, Reduction};
use fencewright_engines::extrapolate::Method;
use fencewright_engines::lazy::OracleName;
use fencewright_engines::robust::Search;
use fencewright_fences::Prices;
use fencewright_generate::random::Numbers;
use fencewright_memory::Kept;
use fencewright_reduce::c::Width;
use fencewright_transform::attack::Notion;

use crate::{BufferBound, MemoryModel, NoOverflow, Purpose};

pub use command::{Command, Group};
pub use idle::Idle;
pub use reference::reference;
pub use row::{Row, known_to, row, rows};
pub use values::{Choice, Count, Define, Fixed, Format, Limit, Models, Name, Partial, Sizes, Target, Value};

use Command::{
    Automata, Bakery, Certify, Check, Convert, Engines, Fmt, Generate, Litmus, Lossy, Lsp, Random, Reduce,
    Robust, Run, Show,
};

/// The commands that examine programs.
const ASK: &[Command] = &[Check, Robust, Command::Fences];
/// The commands that read a program.
const READ: &[Command] = &[Check, Robust, Command::Fences, Certify, Litmus, Run, Show, Convert, Reduce];
/// The commands that read a program, and the language server.
const READ_OR_SERVE: &[Command] =
    &[Check, Robust, Command::Fences, Certify, Litmus, Run, Show, Convert, Reduce, Lsp];

use EngineName::{Auto, Buffers, Cegar, Contexts, Explicit, Extrapolate, Lazy};

#[rustfmt::skip]
options! {
    Main {
        extended: flag bool, "--extended", "", "", &[Show], &[], "Print, as .fw, the program extended so that it does under SC some of what it does under TSO, as engine lazy does";
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
        audit: flag bool, "--audit", "", "", &[Command::Fences], &[], "Tell which of the fences already there, and of the memory orders of C, are needed, instead of looking for more";
        jobs: once Count<0, 256>, "--jobs", "N", "0", &[Check, Robust, Litmus], &[Auto, Explicit, Lazy, Buffers], "How many threads to search with, or how many tests to run side by side; 0 means all cores";
        no_check_on_save: flag bool, "--no-check-on-save", "", "", &[Lsp], &[], "Check only when asked to, not when a program is saved";
        no_certify: flag bool, "--no-certify", "", "", ASK, &[], "Do not confirm verdicts: neither certificates nor the reference semantics";
        no_z3: flag bool, "--no-z3", "", "", &[Check, Robust, Command::Fences, Show, Lsp], &[], "Never run Z3; otherwise FENCEWRIGHT_Z3, or z3 on the search path, is asked where our own solver gives up";
        simulated_model: once MemoryModel, "--model", "MODEL", "tso", &[Run], &[], "The memory model";
        seed: maybe u64, "--seed", "N", "", &[Run], &[], "Makes the same choices again";
        steps: maybe u64, "--steps", "N", "", &[Run], &[], "Stop after this many steps; 50 without --interactive";
        interactive: flag bool, "-i|--interactive", "", "", &[Run], &[], "Choose every step yourself";
        reduced_model: once MemoryModel, "--model", "MODEL", "tso", &[Reduce], &[], "The memory model whose store buffers become variables";
        sizes: once Sizes, "--k", "K", "1", &[Reduce], &[], "How many stores a buffer holds: in each thread under tso, for each variable under pso, where single variables may differ (2,x=3)", "Under PSO that is for each memory cell; `x=2,y=1` (all others 1), `2,x=3`";
        per_thread: flag bool, "--per-thread", "", "", &[Reduce], &[], "Count the stores of each thread under pso too";
        forgetful: maybe Partial, "--buffers", "partial:K", "", &[Reduce], &[], "Buffers of any size: K stores in order (under pso, for each variable), the order of later ones forgotten", "Of the later ones only the newest value is kept";
        target: once Target, "--to", "LANGUAGE", "fw", &[Reduce], &[], "The language of the result";
        width: maybe Width, "--width", "BITS", "", &[Reduce], &[], "How many bits the integers of the C program have", "The default is 32.";
        to: must Format, "--to", "FORMAT", "", &[Convert], &[], "The format to translate into";
        unformatted: flag bool, "--check", "", "", &[Fmt], &[], "Change nothing, list the files that are not formatted and exit with 1 if there are any";
        stdout: flag bool, "--stdout", "", "", &[Fmt], &[], "Print the result instead of changing the files";
        bakery_threads: once usize, "--threads", "N", "2", &[Bakery], &[], "How many threads, from 2 to 64";
        fences: flag bool, "--fences", "", "", &[Bakery], &[], "With the two fences for each thread that tso needs";
        automata: once usize, "--automata", "N", "3", &[Automata], &[], "How many automata, at most 16";
        states: once usize, "--states", "N", "3", &[Automata], &[], "How many states each has, at most 32";
        letters: once usize, "--letters", "N", "2", &[Automata], &[], "How many letters there are, at most 16";
        channel_states: once usize, "--states", "N", "4", &[Lossy], &[], "How many states the control has, at most 256";
        channel_variables: once usize, "--variables", "N", "2", &[Lossy], &[], "How many variables there are, at most 32";
        channel_letters: once usize, "--letters", "N", "2", &[Lossy], &[], "How many letters there are, at most 32";
        transitions: once usize, "--transitions", "N", "6", &[Lossy], &[], "How many transitions the control has, at most 1024";
        variant: once u64, "--seed", "N", "0", &[Automata, Lossy, Random], &[], "Another one for each seed";
        threads: once usize, "--threads", "N", "2", &[Random], &[], "How many threads, at most 16";
        length: once usize, "--length", "N", "5", &[Random], &[], "How many statements each thread has, about; at most 200";
        variables: once usize, "--variables", "N", "2", &[Random], &[], "How many shared variables there are, at most 16";
        numbers: once Numbers, "--numbers", "DOMAIN", "nat", &[Random], &[], "The data domain";
        distances: flag bool, "--distances", "", "", &[Random], &[], "With guards like `r + 2 < s`";
        loops: flag bool, "--loops", "", "", &[Random], &[], "With loops";
        output: maybe PathBuf, "-o|--output", "FILE", "", &[Convert, Reduce, Generate], &[], "Where to write the result; otherwise to the standard output";
    }
    C {
        folders: many String, "-I", "DIR", "", READ_OR_SERVE, &[], "C: look for included files in this folder too, may be repeated";
        system_folders: many String, "--isystem", "DIR", "", READ_OR_SERVE, &[], "C: like -I, for headers of the system: no warnings are about them, may be repeated";
        sysroot: maybe String, "--sysroot", "DIR", "", READ_OR_SERVE, &[], "C: the root of the system whose headers are read, instead of /";
        compilations: maybe PathBuf, "-p", "DIR", "", READ, &[], "C: read the options of the compiler (-I, -D, -U, -include, -isystem, -iquote, --sysroot) for each file from compile_commands.json in this folder", "No command in that file is run. A C program without an entry in it is an error.";
        as_one: many String, "--as-one", "FILE", "", READ, &[], "C: another source file of the same program, may be repeated; then all files of the command line are one program", "`check --as-one queue.c main.c` checks one program. Functions and variables with external linkage are shared, `static` ones belong to their file. Each file has its own macros and options of `-p`.";
        heap: maybe Count<1, 1000>, "--heap", "N", "", READ_OR_SERVE, &[], "C: how many objects a malloc in a loop may allocate (4 by default); if an execution needs more, the verdict is `unknown`";
        recursion: maybe Count<1, 64>, "--recursion", "N", "", READ_OR_SERVE, &[], "C: how many calls of a function that calls itself may be nested (8 by default); if an execution needs more, the verdict is `unknown`", "A depth that follows from constants is not limited by it. If the program becomes too large with 8, then 6, 4, 2 and 1 are tried.";
        havoc: many String, "--havoc", "NAME", "", READ_OR_SERVE, &[], "C: every call of this function returns any value of its type and writes nothing, may be repeated", "It may have a body, which is then ignored. A function that returns a pointer needs --stub. What was assumed is part of the answer; see [c.md](c.md#functions-without-a-body).";
        skip: many String, "--skip", "NAME", "", READ_OR_SERVE, &[], "C: every call of this function does nothing and returns zero, may be repeated", "It may have a body, which is then ignored. Zero is null for pointers, and all members are zero for structures. What was assumed is part of the answer.";
        stub: many String, "--stub", "FILE", "", READ_OR_SERVE, &[], "C: read this file as if it was included at the end of the program, for the bodies of functions that have none, may be repeated", "Which of its functions were used is part of the answer.";
        no_reuse: flag bool, "--no-reuse", "", "", READ, &[], "C: malloc never returns an object that was freed, so that comparisons with old pointers are not all tried";
    }
    Output {
        allowed: many String, "--allow", "DIR", "", &[Command::Fences], &[], "C: fences may also go into the files in this folder, may be repeated; otherwise only into the files in the folder of the program and below", "See [fences.md](fences.md#functions-of-libraries).";
        diff: flag bool, "--diff", "", "", &[Command::Fences], &[], "Print the edit that puts the fences in, as a unified diff";
        write: flag bool, "--write", "", "", &[Command::Fences], &[], "Put the fences into the file";
        certificate: maybe PathBuf, "--certificate", "OUT", "", &[Check, Robust], &[], "Write the certificate of a proof to this file; one program and one model at a time", "If there is no certificate, the command says so and removes an old certificate from that file. See [certificates.md](certificates.md).";
        invariants: flag bool, "--invariants", "", "", &[Check], &[], "Print what was proved at each program point";
        sarif: maybe PathBuf, "--sarif", "OUT", "", &[Check], &[], "Write the answers to this file as SARIF 2.1.0, for editors and code hosts", "See [continuous-integration.md](continuous-integration.md).";
        html: maybe PathBuf, "--html", "OUT", "", ASK, &[], "Write the answers to this file as a page for a browser, with executions to step through", "See [report.md](report.md).";
        no_evidence: flag bool, "--no-evidence", "", "", &[Command::Fences], &[], "Do not show for each fence what happens without it";
        json: flag bool, "--json", "", "", &[Check, Robust, Command::Fences, Certify, Litmus, Engines], &[], "Print JSON instead of text", "See [json.md](json.md).";
        quiet: flag bool, "-q|--quiet", "", "", ASK, &[], "Print the verdicts only: no executions, no notes, no progress";
        full: flag bool, "--full", "", "", &[Check, Robust, Command::Fences, Run], &[], "Show executions step by step, with all of memory: nothing is folded or left out";
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
        method: once Method, "--method", "METHOD", "predicates", &[Check], &[Extrapolate], "Engine extrapolate: what is extrapolated from the proof under SC", "See [extrapolate.md](extrapolate.md).";
        emit_boolean: maybe PathBuf, "--emit-boolean", "OUT", "", &[Check], &[Extrapolate], "Engine extrapolate: write the boolean program of the proof to this file; one program and one model at a time";
    }
    Hidden {
        reuse: flag bool, "--reuse", "", "", READ, &[], "The default: malloc may return an object that was freed";
        stdio: flag bool, "--stdio", "", "", &[Lsp], &[], "The default: talk to the client over the standard input and output";
    }
}

/// Options that exclude each other.
pub const CONFLICTS: [(&str, &str); 5] = [
    ("certificate", "all_attacks"),
    ("no_reuse", "reuse"),
    ("forgetful", "sizes"),
    ("forgetful", "per_thread"),
    ("unformatted", "stdout"),
];

/// Removed options: the name, the commands that had the option, and what to write instead.
pub const FORMER: [(&str, &[Command], &str); 1] = [("no-local-first", ASK, "--reduction none")];
