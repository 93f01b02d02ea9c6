//! Translates [`Settings`] into questions, limits and options of engines.

use std::collections::BTreeMap;

use fencewright_engines::{
    Confirm, EngineOptions, Token, buffers, cegar, contexts, explicit, extrapolate, lazy, registry, robust,
};
use fencewright_transform::extend::AttackingStore;

use super::{Count, Define, Fixed, Row, Settings, TABLE};
use crate::{Budget, COptions, Error, Options, Question, Reader, Repair};

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
        let c = COptions {
            folders: self.folders.clone(),
            system_folders: self.system_folders.clone(),
            sysroot: self.sysroot.clone(),
            also: self.as_one.clone(),
            heap: self.heap.map(Count::get),
            recursion: self.recursion.map(Count::get),
            havoc: self.havoc.clone(),
            skip: self.skip.clone(),
            stubs: self.stub.clone(),
            no_reuse: self.no_reuse,
            allowed: self.allowed.clone(),
            ..COptions::default()
        };
        let defines = self.define.iter().map(|Define(name, value)| (name.clone(), value.clone())).collect();
        let mut options = Options { defines, c, ..Options::default() };
        options.ask(&self.property);
        Reader {
            options,
            format: self.format.map(|format| format.0),
            compilations: self.compilations.clone(),
            ..Reader::default()
        }
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
            cegar: cegar::Options { order: self.search, ..cegar::Options::default() },
            confirm: self.confirm(),
            certificate: self.certificate.is_some(),
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
