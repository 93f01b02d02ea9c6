//! Engines that use other engines, and all engines under one roof: [`registry`] lists them.
//!
//! Engines of other crates are here under their names: those that look at single states ([`explicit`], [`buffers`], [`dynamic`]), symbolic
//! ones ([`cegar`], [`contexts`]) and [`extrapolate`]. Here are [`auto`], which runs them side by side, and [`lazy`] and [`robust`], which ask
//! them about other programs.
//!
//! An [`Engine`] answers a [`Task`]. Its answer proves nothing: [`check`](fn@check) replays every trace on the reference semantics, confirms
//! what it can, and only then makes a [`Verdict`]. Final states ([`FinalStates`]) and robustness ([`robust::Robustness`]) leave in the same
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
    About, Checked, Checks, Condition, Confirm, Counts, Doubt, Engine, EngineName, Evidence, Exploration,
    FinalState, FinalStates, Limits, Observation, Progress, Reason, Report, Round, Task, Token, Tried,
    Verdict, Work, check, check_each, discard, gaps, task, wait_until_freed,
};
use fencewright_verdict::{limits, turns};

/// The options of all engines; each engine uses those that apply to it.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// How to search explicitly.
    pub explicit: explicit::Options,
    /// How precise the abstraction of `cegar` is at the start.
    pub cegar: cegar::Options,
    /// How stores are delayed.
    pub lazy: lazy::Options,
    /// How often threads take turns.
    pub contexts: contexts::Options,
    /// How buffers forget.
    pub buffers: buffers::Options,
    /// How proofs are extrapolated.
    pub extrapolate: extrapolate::Options,
}

/// An engine that can be asked for by name.
pub struct EngineInfo {
    /// Its name.
    pub name: EngineName,
    /// Makes the engine.
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
