//! Engines that run other engines, and the [`registry`] of all engines.
//!
//! Engines of other crates are re-exported: explicit-state engines ([`explicit`], [`buffers`], [`dynamic`]), symbolic engines ([`cegar`],
//! [`contexts`]) and [`extrapolate`]. This crate adds [`auto`], which runs several engines concurrently, and [`lazy`] and [`robust`], which run
//! engines on transformed programs.
//!
//! An [`Engine`] answers a [`Task`]. Its answer alone proves nothing: [`check`](fn@check) replays every trace on the reference semantics, checks
//! certificates, and only then makes a [`Verdict`]. Final states ([`FinalStates`]) and robustness ([`robust::Robustness`]) are checked in the same
//! way.
//!
//! ```
//! use fencewright_engines::auto::Auto;
//! use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
//! use fencewright_lang::load;
//! use fencewright_program::MemoryModel;
//!
//! let text = "shared x, y;
//!     thread p { var r; x = 1; r = y; }
//!     thread q { var r; y = 1; r = x; }
//!     finally both_missed: never p.r == 0 && q.r == 0;";
//! let loaded = load("sb.fw", text.as_bytes(), None, &[]).expect("it is a program");
//! let verdict = |model| {
//!     let task = Task::new(&loaded.program, model, loaded.program.properties.clone());
//!     check(&Auto::default(), &task, &Limits::default(), &Progress::default(), Confirm::default()).remove(0)
//! };
//! let under_sc = verdict(MemoryModel::Sc);
//! assert!(matches!(under_sc.verdict(), Verdict::Safe) && under_sc.certificate().is_some());
//! let under_tso = verdict(MemoryModel::Tso);
//! assert!(matches!(under_tso.verdict(), Verdict::Unsafe));
//! let execution = under_tso.trace().expect("it was replayed");
//! assert_eq!(execution.events.len(), 6);
//! ```

#![forbid(unsafe_code)]

pub mod auto;
#[cfg(test)]
mod door;
pub mod lazy;
pub mod overflow;
pub mod robust;
mod transformed;

pub use fencewright_analysis::{chance, loops, races};
pub use fencewright_explicit::{self as explicit, buffers, dynamic};
pub use fencewright_extrapolate as extrapolate;
pub use fencewright_symbolic::{cegar, contexts, domain, search};
pub use fencewright_verdict::{
    About, Advice, Checked, Checks, Condition, Confirm, Counts, Doubt, Engine, EngineName, Evidence,
    Exploration, FinalState, FinalStates, Limits, Observation, Progress, Reason, Report, Round, Task, Token,
    Tried, Verdict, Work, check, check_each, discard, fingerprint, gaps, task, wait_until_freed,
};
use fencewright_verdict::{limits, turns};

/// The options of all engines. Each engine uses the options that apply to it.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Options of the explicit search, for all engines that use it.
    pub explicit: explicit::Options,
    /// Options of engine `cegar`: its initial precision, and the parameters that are never refined.
    pub cegar: cegar::Options,
    /// Options of engine `lazy`, such as its oracle.
    pub lazy: lazy::Options,
    /// Options of engine `contexts`, such as the number of contexts.
    pub contexts: contexts::Options,
    /// Options of engine `buffers`, such as its buffer abstraction.
    pub buffers: buffers::Options,
    /// Options of engine `extrapolate`, such as the initial size of buffers.
    pub extrapolate: extrapolate::Options,
}

/// An engine in the registry, to be built with options.
pub struct EngineInfo {
    /// The name on the command line.
    pub name: EngineName,
    /// Makes the engine with the options that apply to it.
    pub build: fn(&EngineOptions) -> Box<dyn Engine>,
}

/// All engines, the default first.
pub fn registry() -> &'static [EngineInfo] {
    fn explicit(options: &EngineOptions) -> explicit::Explicit {
        explicit::Explicit { options: options.explicit.clone() }
    }
    fn cegar(options: &EngineOptions) -> cegar::Cegar {
        cegar::Cegar { options: options.cegar }
    }
    fn buffers(options: &EngineOptions) -> buffers::Buffers {
        buffers::Buffers { explicit: options.explicit.clone(), options: options.buffers }
    }
    fn auto(options: &EngineOptions) -> auto::Auto {
        let auto = auto::Auto {
            explicit: explicit(options),
            cegar: cegar(options),
            buffers: options.buffers,
            ..auto::Auto::default()
        };
        let domain = options.contexts.domain;
        auto::Auto { contexts: contexts::Options { domain, ..auto.contexts }, domain, ..auto }
    }
    &[
        EngineInfo { name: EngineName::Auto, build: |o| Box::new(auto(o)) },
        EngineInfo { name: EngineName::Explicit, build: |o| Box::new(explicit(o)) },
        EngineInfo { name: EngineName::Cegar, build: |o| Box::new(cegar(o)) },
        EngineInfo {
            name: EngineName::Lazy,
            build: |o| {
                let sc = auto::Auto { slices: false, ..auto(o) };
                Box::new(lazy::Lazy { options: o.lazy, sc })
            },
        },
        EngineInfo {
            name: EngineName::Contexts,
            build: |o| Box::new(contexts::ContextBound { options: o.contexts }),
        },
        EngineInfo { name: EngineName::Buffers, build: |o| Box::new(buffers(o)) },
        EngineInfo {
            name: EngineName::Extrapolate,
            build: |o| Box::new(extrapolate::Extrapolate { options: o.extrapolate.clone() }),
        },
    ]
}
