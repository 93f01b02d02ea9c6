//! `fencewright check`: which properties hold?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fencewright::engines::extrapolate::Record;
use fencewright::engines::{Checked, Limits, Progress, discard, registry};
use fencewright::input::{in_words, name_of};
use fencewright::lang::source::escape;
use fencewright::{BufferBound, MemoryModel, Posed, Question, Verdict};
use fencewright_report::json::Failure;
use fencewright_report::{Source, invariants, json, remarks, text};

use crate::args::{self, CheckArgs, is_talkative, question};
use crate::gathered::Gathered;
use crate::input::{each_file, in_full, load_or_tell, stops_when_asked, tell_notes};
use crate::output::{Output, complain};
use crate::status::Status;
use crate::{certificate, files, folder, gathered, memory, progress, stop};

/// Checks all files.
pub fn run(args: &CheckArgs, out: &mut Output) -> Status {
    out.style.full = args.settings.full;
    let record: Option<Arc<Mutex<Record>>> = args.settings.emit_boolean.as_ref().map(|_| Arc::default());
    let mut options = args.settings.engine_options();
    options.extrapolate.record.clone_from(&record);
    let Some(asked) = question(&args.settings).map(|question| question.options(options)) else {
        let names: Vec<&str> = registry().iter().map(|info| info.name.as_str()).collect();
        let why = format!("no such engine; there is {}", names.join(", "));
        out.refuse(args.settings.json, &args.settings.engine.0, &why, None);
        return Status::Bad;
    };
    if !args.settings.quiet {
        args.settings.tell_idle();
    }
    let counts_variables = args.settings.buffer.as_ref().is_some_and(BufferBound::is_for_variables);
    if counts_variables && args.settings.model.models().contains(&MemoryModel::Tso) {
        let why = "bounds for each variable are for pso: under tso a thread has one buffer for all variables";
        out.refuse(args.settings.json, "--buffer", why, None);
        return Status::Bad;
    }
    if let Some(path) = &args.settings.certificate {
        if args.settings.model.models().len() > 1 {
            let why = "a certificate is about one model";
            out.refuse(args.settings.json, "--certificate", why, None);
            return Status::Bad;
        }
        if !certificate::can_be_written(path, &args.files, args.settings.json, out) {
            return Status::Bad;
        }
    }
    if let Some(path) = &args.settings.emit_boolean {
        let why = match () {
            () if args.settings.model.models().len() > 1 => {
                Some("a boolean program is about one model".to_string())
            }
            () if args.files.len() > 1 => Some("a boolean program is about one program".to_string()),
            () => files::is_also_read(path, args.files.iter().map(PathBuf::as_path)),
        };
        if let Some(why) = why {
            out.refuse(args.settings.json, "--emit-boolean", &why, None);
            return Status::Bad;
        }
    }
    let outputs = [
        ("--certificate", &args.settings.certificate),
        ("--emit-boolean", &args.settings.emit_boolean),
        ("--sarif", &args.settings.sarif),
        ("--html", &args.settings.html),
    ];
    if let Some((option, why)) = files::are_the_same(&outputs) {
        out.refuse(args.settings.json, option, &why, None);
        return Status::Bad;
    }
    for (option, path) in [("--sarif", &args.settings.sarif), ("--html", &args.settings.html)] {
        let Some(path) = path else { continue };
        if !gathered::can_be_written(option, path, &args.files, args.settings.json, out) {
            return Status::Bad;
        }
    }
    let mut gathered = Gathered::new(args.settings.sarif.as_ref(), args.settings.html.as_ref());
    let status = run_all(args, &asked, record, &mut gathered, out);
    status.and(gathered.write(
        args.settings.sarif.as_ref(),
        args.settings.html.as_ref(),
        args.settings.json,
        out,
    ))
}

/// Checks all files, and collects the answers for `--sarif` and `--html`.
fn run_all(
    args: &CheckArgs,
    question: &Question,
    record: Option<Arc<Mutex<Record>>>,
    gathered: &mut Gathered,
    out: &mut Output,
) -> Status {
    if folder::is_asked(args) {
        // Several programs are checked at the same time, so each explicit search uses one thread.
        let mut options = args.settings.engine_options();
        options.explicit.workers = 1;
        let alone = question.clone().options(options);
        return folder::run(args, alone, gathered, out);
    }
    let mut reader = args.settings.reader();
    reader.options.ask_models(args.settings.model.models());
    each_file(&args.files, &args.settings, out, |path, limits, out| {
        let _search = stops_when_asked(path, gathered);
        let mut program = match load_or_tell(path, &reader, limits, args.settings.json, out) {
            Ok(program) => program,
            Err(unloadable) => {
                gathered.fail(&name_of(path), &unloadable.reason());
                return unloadable.status;
            }
        };
        gathered.read(&program.loaded().sources);
        for path in [&args.settings.certificate, &args.settings.emit_boolean].into_iter().flatten() {
            if let Some(why) = files::is_also_read(path, files::included(&program.loaded().sources)) {
                out.refuse(args.settings.json, &path.to_string_lossy(), &why, None);
                return Status::Bad;
            }
        }
        program.warn_of_races(limits);
        let posed = match question.pose(&program) {
            Ok(posed) => posed,
            Err(error) => {
                let (name, why) = (program.loaded().sources.name(), in_full(&error));
                gathered.fail(name, why.lines().next().unwrap_or_default());
                out.refuse(args.settings.json, name, &why, None);
                return Status::Bad;
            }
        };
        drop(program);
        let mut checker = Checker { args, posed, record: record.as_deref(), gathered };
        let status = checker.check_file(limits, out);
        // A large program is freed in another thread, because freeing it takes time.
        discard(memory::used(), checker.posed.program);
        status
    })
}

struct Checker<'a> {
    args: &'a CheckArgs,
    posed: Posed,
    /// Receives the boolean program, with `--emit-boolean`.
    record: Option<&'a Mutex<Record>>,
    /// Receives the answers for `--sarif` and `--html`.
    gathered: &'a mut Gathered,
}

impl Checker<'_> {
    /// Checks a file under all models. Loading counts against the limits of the first model; every further model has new limits.
    fn check_file(&mut self, limits: &Limits, out: &mut Output) -> Status {
        let program = self.posed.program.clone();
        let loaded = program.loaded();
        if is_talkative(&self.args.settings) {
            tell_notes(loaded);
        }
        let mut limits = limits.clone();
        let mut status = Status::Fine;
        let source = Source::from(loaded);
        for &model in self.args.settings.model.models() {
            if out.is_closed() {
                return status.and(Status::Unknown);
            }
            if stop::is_asked() {
                let why = format!("stopped before {} was checked", model.name());
                out.tell_failure(self.args.settings.json, &Failure::new(loaded.sources.name(), why, None));
                status = status.and(Status::Unknown);
                continue;
            }
            status = status.and(self.check_model(source, model, &limits, out));
            limits = args::limits(&self.args.settings);
        }
        if !self.args.settings.json {
            out.print(&remarks::assumed(source));
        }
        if is_talkative(&self.args.settings) {
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
        let settings = &*self.args.settings;
        let _search = stop::Search::begin();
        let show = is_talkative(settings) && progress::is_watched();
        let measured = Progress::default();
        let mut tell =
            |_: usize, checked: &Checked| progress::make_room(|| self.tell(source, model, checked, out));
        let results =
            progress::shown(show, &measured, || self.posed.check(model, limits, &measured, &mut tell));
        results.iter().for_each(|checked| self.gathered.add(None, source, model, checked));
        let status = status(&results);
        let status = match (&self.args.settings.emit_boolean, self.record) {
            (Some(path), Some(record)) => {
                let record = record.lock().unwrap_or_else(PoisonError::into_inner);
                status.and(write_boolean(path, &record.boolean, settings.json, out))
            }
            _ => status,
        };
        let status = match &self.args.settings.certificate {
            Some(path) => status.and(write_certificate(path, &results, settings.json, out)),
            None => status,
        };
        // Proofs may be as large as the state space, so they are freed in another thread if they are large.
        discard(results.iter().map(|checked| checked.work.bytes).sum(), results);
        status
    }

    /// Prints one verdict, and flushes the output.
    fn tell(&self, source: Source<'_>, model: MemoryModel, checked: &Checked, out: &mut Output) {
        let settings = &*self.args.settings;
        if settings.json {
            out.print(&json::verdict_with(source, model, checked, &settings.of_engines()));
        } else {
            out.print(&text::verdict(source, model, checked, out.style));
            if !settings.quiet {
                out.print(&text::evidence(source, checked, out.style));
            }
            if let (true, Some(certificate)) = (self.args.settings.invariants, checked.certificate()) {
                out.print(&invariants::invariants(source, certificate));
            }
        }
        out.flush();
        if out.is_closed() {
            // The reader has closed the output, so the search is cancelled.
            stop::token().cancel();
        }
    }
}

/// The exit status for these verdicts.
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
    // A proof that a property holds is preferred to a proof that no execution satisfies an existential property.
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
