//! `fencewright check`: which properties hold?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fencewright_engines::domain::DomainName;
use fencewright_engines::explicit::{Options, Reduction};
use fencewright_engines::extrapolate::Record;
use fencewright_engines::lazy::{self, OracleName};
use fencewright_engines::races;
use fencewright_engines::{
    Checked, Engine, EngineInfo, EngineOptions, Limits, Progress, Task, Verdict, buffers, cegar, check_each,
    contexts, discard, extrapolate, registry,
};
use fencewright_lang::source::escape;
use fencewright_lang::{Diagnostic, Loaded};
use fencewright_memory::{Bound, Kept};
use fencewright_program::{MemoryModel, Property, Span};
use fencewright_report::json::Failure;
use fencewright_report::{Source, invariants, json, remarks, text};
use fencewright_transform::extend::AttackingStore;

use crate::args::{
    BufferArg, CheckArgs, DomainArg, FixArg, KeptArg, LazyArgs, MethodArg, OracleArg, TERMINATION,
};
use crate::gathered::Gathered;
use crate::input::{describe, display_name, each_file, load_or_tell, stops_when_asked, tell_notes};
use crate::output::{Output, complain};
use crate::status::Status;
use crate::{certificate, files, folder, gathered, memory, progress, stop};

/// Checks all files. These options are `given` on the command line, with their dashes.
pub fn run(args: &CheckArgs, given: &[String], out: &mut Output) -> Status {
    out.style.full = args.common.full;
    let record: Option<Arc<Mutex<Record>>> = args.emit_boolean.as_ref().map(|_| Arc::default());
    let Some(asked) = engine(args, args.jobs, None, None) else {
        let names: Vec<&str> = registry().iter().map(|info| info.name.as_str()).collect();
        let why = format!("no such engine; there is {}", names.join(", "));
        out.refuse(args.common.json, &args.engine, &why, None);
        return Status::Bad;
    };
    if !args.common.quiet {
        tell_meaningless(&*asked, given);
    }
    let counts_variables = args.buffer.as_ref().is_some_and(BufferArg::is_for_variables);
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
    let status = run_all(args, record, &mut gathered, out);
    status.and(gathered.write(args.sarif.as_ref(), args.html.as_ref(), args.common.json, out))
}

/// Checks all files, and gathers the answers where that is wanted.
fn run_all(
    args: &CheckArgs,
    record: Option<Arc<Mutex<Record>>>,
    gathered: &mut Gathered,
    out: &mut Output,
) -> Status {
    if folder::is_asked(args) {
        return folder::run(args, gathered, out);
    }
    each_file(&args.common, out, |path, limits, out| {
        let _search = stops_when_asked(path, gathered);
        let mut loaded = match load_or_tell(path, &args.common.input, limits, args.common.json, out) {
            Ok(loaded) => loaded,
            Err(unloadable) => {
                gathered.fail(&display_name(path), &unloadable.reason());
                return unloadable.status;
            }
        };
        gathered.read(&loaded.sources);
        for path in [&args.certificate, &args.emit_boolean].into_iter().flatten() {
            if let Some(why) = files::is_also_read(path, files::included(&loaded.sources)) {
                out.refuse(args.common.json, &path.to_string_lossy(), &why, None);
                return Status::Bad;
            }
        }
        let races = races(&loaded, limits);
        loaded.warnings.extend(races);
        let bound = match args.buffer.as_ref().map(|buffer| buffer.bound(&loaded.program)).transpose() {
            Ok(bound) => bound,
            Err(why) => {
                let why = format!("--buffer: {why}");
                gathered.fail(loaded.sources.name(), &why);
                out.refuse(args.common.json, loaded.sources.name(), &why, None);
                return Status::Bad;
            }
        };
        let Some(engine) = engine(args, args.jobs, bound, record.clone()) else { return Status::Bad };
        let mut checker = Checker { args, engine: &*engine, record: record.as_deref(), gathered };
        let status = checker.check_file(&loaded, limits, out);
        // A program may be large too.
        discard(memory::used(), loaded);
        status
    })
}

/// The races between plain accesses that are found in a moment.
pub fn races(loaded: &Loaded, limits: &Limits) -> Vec<Diagnostic> {
    if loaded.plain.is_empty() {
        return Vec::new();
    }
    let is_plain = |span: Span| loaded.plain.contains(&span.text());
    let races = races::races(&loaded.program, &is_plain, limits);
    remarks::races(Source::from(loaded), &races)
}

/// The engine that was asked for, with so many threads and this bound on the buffers of the program; nothing if there is no such engine.
pub fn engine(
    args: &CheckArgs,
    jobs: u16,
    buffer_bound: Option<Bound>,
    record: Option<Arc<Mutex<Record>>>,
) -> Option<Box<dyn Engine>> {
    let searched = args.search.options(jobs);
    let explicit = Options {
        reduction: if args.no_local_first { Reduction::None } else { searched.reduction },
        symmetry: !args.no_symmetry,
        buffer_bound,
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
        buffer_bound,
        order: args.search.order(),
    };
    let options = EngineOptions {
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
    };
    let found = registry().iter().find(|info| info.name.as_str() == args.engine);
    found.map(|info| (info.build)(&options))
}

/// Says which options are for other engines than this one.
fn tell_meaningless(engine: &dyn Engine, given: &[String]) {
    let own = engine.about().options;
    for option in given.iter().map(String::as_str).filter(|option| !own.contains(option)) {
        let build = |info: &EngineInfo| (info.build)(&EngineOptions::default());
        let others = registry().iter().filter(|info| build(info).about().options.contains(&option));
        let others: Vec<&str> = others.map(|info| info.name.as_str()).collect();
        if !others.is_empty() {
            let (name, others) = (engine.name(), others.join(", "));
            complain(option, &format!("means nothing to engine {name}, only to {others}"));
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
    engine: &'a dyn Engine,
    /// Where the engine leaves its boolean program, if that is wanted.
    record: Option<&'a Mutex<Record>>,
    /// Where answers are gathered.
    gathered: &'a mut Gathered,
}

impl Checker<'_> {
    /// Checks a file under all models, the first of them with what loading it has left.
    fn check_file(&mut self, loaded: &Loaded, limits: &Limits, out: &mut Output) -> Status {
        let properties = match select(loaded, &self.args.property) {
            Ok(properties) => properties,
            Err(message) => {
                let first = message.lines().next().unwrap_or_default();
                self.gathered.fail(loaded.sources.name(), first);
                out.refuse(self.args.common.json, loaded.sources.name(), &message, None);
                return Status::Bad;
            }
        };
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
            status = status.and(self.check_model(loaded, model, &properties, &limits, out));
            limits = self.args.common.limits_from_now();
        }
        if self.args.common.is_talkative() {
            out.print(&remarks::meaning(source));
        }
        status
    }

    fn check_model(
        &mut self,
        loaded: &Loaded,
        model: MemoryModel,
        properties: &[Property],
        limits: &Limits,
        out: &mut Output,
    ) -> Status {
        let common = &self.args.common;
        let task = Task::new(&loaded.program, model, properties.to_vec());
        let _search = stop::Search::begin();
        let show = common.is_talkative() && progress::is_watched();
        let measured = Progress::default();
        let source = Source::from(loaded);
        let mut tell =
            |_: usize, checked: &Checked| progress::make_room(|| self.tell(source, model, checked, out));
        let results = progress::shown(show, &measured, || {
            check_each(self.engine, &task, limits, &measured, common.confirm(), &mut tell).verdicts
        });
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
            out.refuse(json, &name, &format!("cannot write it: {}", describe(&error)), None);
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

const NO_PROPERTY: &str = "the program states no property, so there is nothing to check
  help: say what should hold, for instance
            forbid NAME: p@critical && q@critical;          no reachable state is like this
            invariant NAME: x >= 0;                         every reachable state is
            finally NAME: never p.r == 0 && q.r == 0;       no final state is
            assert r == 1;                                  inside a thread
        or ask for freedom from deadlock: --property deadlock";

/// The properties with these names; without names, all that the program states.
pub fn select(loaded: &Loaded, names: &[String]) -> Result<Vec<Property>, String> {
    let program = &loaded.program;
    if names.is_empty() {
        return match program.properties.is_empty() {
            true => Err(NO_PROPERTY.into()),
            false => Ok(program.properties.clone()),
        };
    }
    let mut selected: Vec<Property> = Vec::new();
    if names.iter().any(|name| name == TERMINATION) && names.iter().any(|name| name == "deadlock") {
        return Err("`deadlock` and `termination` are asked for one at a time: \
                    for the one a loop that waits is a loop, for the other a step that cannot be taken"
            .into());
    }
    for name in names {
        if selected.iter().any(|p| p.name == *name) {
            continue;
        }
        match program.properties.iter().find(|p| p.name == *name) {
            Some(property) => selected.push(property.clone()),
            None if name == "deadlock" => selected.push(Property::deadlock()),
            None => {
                let mut known = stated(loaded);
                known.push("deadlock".into());
                known.extend(loaded.front_end.more_properties().iter().map(|&name| name.into()));
                let known = known.join(", ");
                return Err(format!("no property is called `{}`; there is {known}", escape(name)));
            }
        }
    }
    Ok(selected)
}

/// How many properties a message lists.
const MOST_LISTED: usize = 20;

/// The properties that a program states, with their places, for messages.
pub fn stated(loaded: &Loaded) -> Vec<String> {
    let Loaded { program, sources, .. } = loaded;
    let place = |property: &Property| match property.span == Span::default() {
        true => escape(&property.name),
        false => format!("{} ({})", escape(&property.name), sources.position(property.span)),
    };
    let mut listed: Vec<String> = program.properties.iter().take(MOST_LISTED).map(place).collect();
    let more = program.properties.len() - listed.len();
    listed.extend((more > 0).then(|| format!("{more} more")));
    listed
}
