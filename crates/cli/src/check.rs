//! `fencewright check`: which properties hold?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fencewright::engines::domain::DomainName;
use fencewright::engines::explicit::{Options, Reduction};
use fencewright::engines::extrapolate::Record;
use fencewright::engines::lazy::{self, OracleName};
use fencewright::engines::{
    Checked, EngineInfo, Limits, Progress, buffers, cegar, contexts, discard, extrapolate, registry,
};
use fencewright::input::{in_words, name_of};
use fencewright::lang::source::escape;
use fencewright::memory::Kept;
use fencewright::transform::extend::AttackingStore;
use fencewright::{BufferBound, EngineOptions, MemoryModel, Posed, Question, Verdict};
use fencewright_report::json::Failure;
use fencewright_report::{Source, invariants, json, remarks, text};

use crate::args::{CheckArgs, DomainArg, FixArg, KeptArg, LazyArgs, MethodArg, OracleArg};
use crate::gathered::Gathered;
use crate::input::{each_file, in_full, load_or_tell, stops_when_asked, tell_notes};
use crate::output::{Output, complain};
use crate::status::Status;
use crate::{certificate, files, folder, gathered, memory, progress, stop};

/// Checks all files. These options are `given` on the command line, with their dashes.
pub fn run(args: &CheckArgs, given: &[String], out: &mut Output) -> Status {
    out.style.full = args.common.full;
    let record: Option<Arc<Mutex<Record>>> = args.emit_boolean.as_ref().map(|_| Arc::default());
    let Some(asked) = question(args, args.jobs, record.clone()) else {
        let names: Vec<&str> = registry().iter().map(|info| info.name.as_str()).collect();
        let why = format!("no such engine; there is {}", names.join(", "));
        out.refuse(args.common.json, &args.engine, &why, None);
        return Status::Bad;
    };
    if !args.common.quiet {
        tell_meaningless(&args.engine, given);
    }
    let counts_variables = args.buffer.as_ref().is_some_and(BufferBound::is_for_variables);
    if counts_variables && args.model.models().contains(&MemoryModel::Tso) {
        let why = "bounds for each variable are for pso: under tso a thread has one buffer for all variables";
        out.refuse(args.common.json, "--buffer", why, None);
        return Status::Bad;
    }
    if let Some(path) = &args.certificate {
        if args.model.models().len() > 1 {
            let why = "a certificate is about one model";
            out.refuse(args.common.json, "--certificate", why, None);
            return Status::Bad;
        }
        if !certificate::can_be_written(path, &args.common.files, args.common.json, out) {
            return Status::Bad;
        }
    }
    if let Some(path) = &args.emit_boolean {
        let why = match () {
            () if args.model.models().len() > 1 => Some("a boolean program is about one model".to_string()),
            () if args.common.files.len() > 1 => Some("a boolean program is about one program".to_string()),
            () => files::is_also_read(path, args.common.files.iter().map(PathBuf::as_path)),
        };
        if let Some(why) = why {
            out.refuse(args.common.json, "--emit-boolean", &why, None);
            return Status::Bad;
        }
    }
    let outputs = [
        ("--certificate", &args.certificate),
        ("--emit-boolean", &args.emit_boolean),
        ("--sarif", &args.sarif),
        ("--html", &args.html),
    ];
    if let Some((option, why)) = files::are_the_same(&outputs) {
        out.refuse(args.common.json, option, &why, None);
        return Status::Bad;
    }
    for (option, path) in [("--sarif", &args.sarif), ("--html", &args.html)] {
        let Some(path) = path else { continue };
        if !gathered::can_be_written(option, path, &args.common.files, args.common.json, out) {
            return Status::Bad;
        }
    }
    let mut gathered = Gathered::new(args.sarif.as_ref(), args.html.as_ref());
    let status = run_all(args, &asked, record, &mut gathered, out);
    status.and(gathered.write(args.sarif.as_ref(), args.html.as_ref(), args.common.json, out))
}

/// Checks all files, and gathers the answers where that is wanted.
fn run_all(
    args: &CheckArgs,
    question: &Question,
    record: Option<Arc<Mutex<Record>>>,
    gathered: &mut Gathered,
    out: &mut Output,
) -> Status {
    if folder::is_asked(args) {
        // The programs are side by side, each on one thread.
        let alone = question.clone().options(options(args, 1, None));
        return folder::run(args, alone, gathered, out);
    }
    each_file(&args.common, out, |path, limits, out| {
        let _search = stops_when_asked(path, gathered);
        let mut program = match load_or_tell(path, &args.common.input, limits, args.common.json, out) {
            Ok(program) => program,
            Err(unloadable) => {
                gathered.fail(&name_of(path), &unloadable.reason());
                return unloadable.status;
            }
        };
        gathered.read(&program.loaded().sources);
        for path in [&args.certificate, &args.emit_boolean].into_iter().flatten() {
            if let Some(why) = files::is_also_read(path, files::included(&program.loaded().sources)) {
                out.refuse(args.common.json, &path.to_string_lossy(), &why, None);
                return Status::Bad;
            }
        }
        program.warn_of_races(limits);
        let posed = match question.pose(&program) {
            Ok(posed) => posed,
            Err(error) => {
                let (name, why) = (program.loaded().sources.name(), in_full(&error));
                gathered.fail(name, why.lines().next().unwrap_or_default());
                out.refuse(args.common.json, name, &why, None);
                return Status::Bad;
            }
        };
        drop(program);
        let mut checker = Checker { args, posed, record: record.as_deref(), gathered };
        let status = checker.check_file(limits, out);
        // Freeing a large program takes time.
        discard(memory::used(), checker.posed.program);
        status
    })
}

/// The question that was asked, with this many threads and this place for boolean programs; `None` if there is no such engine.
fn question(args: &CheckArgs, jobs: u16, record: Option<Arc<Mutex<Record>>>) -> Option<Question> {
    let engine = registry().iter().find(|info| info.name.as_str() == args.engine)?.name;
    let model = args.model.models()[0];
    let question = Question::under(model)
        .engine(engine)
        .options(options(args, jobs, record))
        .confirm(args.common.confirm())
        .budget(args.common.budget());
    let question = args.property.iter().fold(question, |question, name| question.property(name));
    Some(match &args.buffer {
        Some(bound) => question.buffer(bound.clone()),
        None => question,
    })
}

/// The options of engines, for a search with this many threads.
fn options(args: &CheckArgs, jobs: u16, record: Option<Arc<Mutex<Record>>>) -> EngineOptions {
    let searched = args.search.options(jobs);
    let explicit = Options {
        reduction: if args.no_local_first { Reduction::None } else { searched.reduction },
        symmetry: !args.no_symmetry,
        certificates: args.certificate.is_some(),
        ..searched
    };
    let domain = args.domain.map(|domain| match domain {
        DomainArg::Zones => DomainName::Zones,
        DomainArg::Predicates => DomainName::Predicates,
        DomainArg::Concrete => DomainName::Concrete,
        DomainArg::Order => DomainName::Order,
    });
    let defaults = cegar::Options::default();
    let cegar = cegar::Options {
        k: args.k.unwrap_or(defaults.k),
        kept: if args.kept == KeptArg::Oldest { Kept::Oldest } else { Kept::Newest },
        summaries: args.summaries,
        domain: domain.unwrap_or(defaults.domain),
        clip: args.clip.map_or(defaults.clip, i32::from),
        fixed: cegar::Fixed {
            k: args.fix.contains(&FixArg::K),
            clip: args.fix.contains(&FixArg::Clip),
            predicates: args.fix.contains(&FixArg::Predicates),
        },
        order: args.search.order(),
        ..defaults
    };
    EngineOptions {
        explicit,
        cegar,
        buffers: buffers::Options { domain: args.buffer_domain, kept: cegar.kept },
        lazy: lazy::Options { certificates: args.certificate.is_some(), ..lazy_options(&args.lazy) },
        contexts: contexts::Options {
            contexts: args.contexts,
            domain,
            certificates: !args.common.no_certify,
        },
        extrapolate: extrapolate::Options {
            method: match args.method {
                MethodArg::Predicates => extrapolate::Method::Predicates,
                MethodArg::Cubes => extrapolate::Method::Cubes,
            },
            k: args.k.unwrap_or(1),
            record,
        },
    }
}

/// Says which options are for other engines than this one.
fn tell_meaningless(engine: &str, given: &[String]) {
    let about = |info: &EngineInfo| (info.build)(&EngineOptions::default()).about();
    let knows = |info: &EngineInfo, option: &str| about(info).options.contains(&option);
    let Some(own) = registry().iter().find(|info| info.name.as_str() == engine) else { return };
    for option in given.iter().filter(|option| !knows(own, option)) {
        let others = registry().iter().filter(|info| knows(info, option));
        let others: Vec<&str> = others.map(|info| info.name.as_str()).collect();
        if !others.is_empty() {
            complain(option, &format!("means nothing to engine {engine}, only to {}", others.join(", ")));
        }
    }
}

/// How engine lazy delays stores.
pub fn lazy_options(args: &LazyArgs) -> lazy::Options {
    lazy::Options {
        oracle: match args.oracle {
            OracleArg::Robust => OracleName::Robust,
            OracleArg::Enumerate => OracleName::Enumerate,
        },
        store: if args.keep_store { AttackingStore::Kept } else { AttackingStore::Removed },
        rounds: args.rounds,
        certificates: false,
    }
}

struct Checker<'a> {
    args: &'a CheckArgs,
    posed: Posed,
    /// Where the engine leaves its boolean program, if that is wanted.
    record: Option<&'a Mutex<Record>>,
    /// Where answers are gathered.
    gathered: &'a mut Gathered,
}

impl Checker<'_> {
    /// Checks a file under all models, the first of them with what loading it has left.
    fn check_file(&mut self, limits: &Limits, out: &mut Output) -> Status {
        let program = self.posed.program.clone();
        let loaded = program.loaded();
        if self.args.common.is_talkative() {
            tell_notes(loaded);
        }
        let mut limits = limits.clone();
        let mut status = Status::Fine;
        let source = Source::from(loaded);
        for &model in self.args.model.models() {
            if out.is_closed() {
                return status.and(Status::Unknown);
            }
            if stop::is_asked() {
                let why = format!("stopped before {} was checked", model.name());
                out.tell_failure(self.args.common.json, &Failure::new(loaded.sources.name(), why, None));
                status = status.and(Status::Unknown);
                continue;
            }
            status = status.and(self.check_model(source, model, &limits, out));
            limits = self.args.common.limits_from_now();
        }
        if self.args.common.is_talkative() {
            out.print(&remarks::meaning(source));
        }
        status
    }

    fn check_model(
        &mut self,
        source: Source<'_>,
        model: MemoryModel,
        limits: &Limits,
        out: &mut Output,
    ) -> Status {
        let common = &self.args.common;
        let _search = stop::Search::begin();
        let show = common.is_talkative() && progress::is_watched();
        let measured = Progress::default();
        let mut tell =
            |_: usize, checked: &Checked| progress::make_room(|| self.tell(source, model, checked, out));
        let results =
            progress::shown(show, &measured, || self.posed.check(model, limits, &measured, &mut tell));
        results.iter().for_each(|checked| self.gathered.add(None, source, model, checked));
        let status = status(&results);
        let status = match (&self.args.emit_boolean, self.record) {
            (Some(path), Some(record)) => {
                let record = record.lock().unwrap_or_else(PoisonError::into_inner);
                status.and(write_boolean(path, &record.boolean, common.json, out))
            }
            _ => status,
        };
        let status = match &self.args.certificate {
            Some(path) => status.and(write_certificate(path, &results, common.json, out)),
            None => status,
        };
        // Proofs may be as large as what was searched.
        discard(results.iter().map(|checked| checked.work.bytes).sum(), results);
        status
    }

    /// Prints one verdict, at once.
    fn tell(&self, source: Source<'_>, model: MemoryModel, checked: &Checked, out: &mut Output) {
        let common = &self.args.common;
        if common.json {
            out.print(&json::verdict(source, model, checked));
        } else {
            out.print(&text::verdict(source, model, checked, out.style));
            if !common.quiet {
                out.print(&text::evidence(source, checked, out.style));
            }
            if let (true, Some(certificate)) = (self.args.invariants, checked.certificate()) {
                out.print(&invariants::invariants(source, certificate));
            }
        }
        out.flush();
        if out.is_closed() {
            // Nobody reads the output any more.
            stop::token().cancel();
        }
    }
}

/// What verdicts come to.
pub fn status(results: &[Checked]) -> Status {
    results.iter().fold(Status::Fine, |status, checked| {
        status.and(match checked.verdict() {
            Verdict::Safe => Status::Fine,
            Verdict::Unsafe => Status::Violated,
            Verdict::Unknown(_) => Status::Unknown,
        })
    })
}

/// Writes the boolean program of the proof, if there is one.
fn write_boolean(path: &Path, text: &str, json: bool, out: &mut Output) -> Status {
    let name = path.to_string_lossy();
    if text.is_empty() {
        complain(&name, "no boolean program: nothing was proved with one");
        return Status::Fine;
    }
    match files::overwrite(path, text.as_bytes()) {
        Ok(()) => Status::Fine,
        Err(error) => {
            out.refuse(json, &name, &format!("cannot write it: {}", in_words(&error)), None);
            Status::Bad
        }
    }
}

/// Writes the certificate of the proof, if there is one.
fn write_certificate(path: &Path, results: &[Checked], json: bool, out: &mut Output) -> Status {
    // What holds comes before what no final state satisfies.
    let (hold, others): (Vec<&Checked>, Vec<&Checked>) =
        results.iter().partition(|r| matches!(r.verdict(), Verdict::Safe));
    let Some(certificate) = hold.iter().chain(&others).find_map(|r| r.certificate()) else {
        let safe = results.iter().any(|r| matches!(r.verdict(), Verdict::Safe));
        let why = match safe {
            true => "the proof has neither an invariant nor a set of states that could be written",
            false => "nothing was proved",
        };
        return certificate::tell_none(path, why, json, out);
    };
    let left_out: Vec<String> = results
        .iter()
        .filter(|r| {
            matches!(r.verdict(), Verdict::Safe) && !certificate.properties().contains(&r.property.name)
        })
        .map(|r| escape(&r.property.name))
        .collect();
    if !left_out.is_empty() {
        let left_out = left_out.join(", ");
        let why = format!("the certificate says nothing about {left_out}: that was shown in another way");
        complain(&path.to_string_lossy(), &why);
    }
    certificate::write(path, certificate, json, out)
}
