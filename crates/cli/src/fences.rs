//! `fencewright fences`: where fences are needed, why each is needed, and the edit that inserts them; or whether existing fences are needed
//! (`--audit`).

use std::path::Path;
use std::time::Instant;

use fencewright::engines::{Limits, Progress};
use fencewright::fences::audit::{Need, Unmet};
use fencewright::fences::{Synthesis, Verdict};
use fencewright::input::{is_standard_input, name_of};
use fencewright::lang::source::escape;
use fencewright::lang::{Loaded, Position, Sources};
use fencewright::program::Span;
use fencewright::{Error, PosedRepair, Program, Purpose, is_met};
use fencewright_report::{Source, Style, audit, fences, remarks};

use crate::args::{FencesArgs, is_talkative, reader_for_robustness, repair};
use crate::gathered::Gathered;
use crate::input::{Originals, each_file, load_originals, load_quietly, stops_when_asked, tell_notes};
use crate::output::{Output, complain, write_error};
use crate::status::Status;
use crate::{diff, gathered, progress, stop};

/// Finds fences for all files.
pub fn run(args: &FencesArgs, out: &mut Output) -> Status {
    let json = args.settings.json;
    out.style.full = args.settings.full;
    if !args.settings.quiet {
        args.settings.tell_idle();
    }
    if let Some(path) = &args.settings.html
        && !gathered::can_be_written("--html", path, &args.files, json, out)
    {
        return Status::Bad;
    }
    let mut gathered = Gathered::new(None, args.settings.html.as_ref());
    let status = find_all(args, &mut gathered, out);
    status.and(gathered.write(None, args.settings.html.as_ref(), json, out))
}

/// Finds fences for all files, and collects the answers for `--html`.
fn find_all(args: &FencesArgs, gathered: &mut Gathered, out: &mut Output) -> Status {
    let json = args.settings.json;
    let reader = match args.settings.goal {
        Purpose::Safety => args.settings.reader(),
        Purpose::Robustness | Purpose::Triangular => reader_for_robustness(&args.settings),
    };
    each_file(&args.files, &args.settings, out, |path, limits, out| {
        let _search = stops_when_asked(path, gathered);
        let read = match args.settings.write {
            true if is_standard_input(path) => {
                out.refuse(json, "-", "the standard input cannot be written to; use --diff", None);
                return Status::Bad;
            }
            true => {
                load_originals(path, &reader, limits).map(|(program, original)| (program, Some(original)))
            }
            false => load_quietly(path, &reader, limits).map(|program| (program, None)),
        };
        match read {
            Ok((program, original)) => {
                gathered.read(&program.loaded().sources);
                let mut to = To { gathered, out };
                file(args, path, &program, original.as_ref(), limits, &mut to)
            }
            Err(unloadable) => {
                gathered.fail(&name_of(path), &unloadable.reason());
                write_error(&unloadable.message);
                out.tell_failure(json, &unloadable.failure);
                unloadable.status
            }
        }
    })
}

/// Destinations of answers.
struct To<'a> {
    gathered: &'a mut Gathered,
    out: &'a mut Output,
}

impl To<'_> {
    /// Reports why a question makes no sense or has no answer.
    fn refuse(&mut self, json: bool, about: &str, file: &str, message: &str, position: Option<Position<'_>>) {
        self.out.refuse(json, about, message, position);
        self.gathered.fail(file, message);
    }
}

/// Finds fences for one file. `limits` started when loading began; `original` has the files to write the fences to, with `--write`.
fn file(
    args: &FencesArgs,
    path: &Path,
    program: &Program,
    original: Option<&Originals>,
    limits: &Limits,
    to: &mut To<'_>,
) -> Status {
    let loaded = program.loaded();
    if is_talkative(&args.settings) {
        tell_notes(loaded);
    }
    let posed = match repair(&args.settings).and_then(|repair| repair.pose(program)) {
        Ok(posed) => posed,
        Err(error) => return refuse(&error, loaded, args.settings.json, to),
    };
    let _search = stop::Search::begin();
    let mut work = Work { args, path, loaded, original, posed, limits };
    let status = if args.settings.audit { work.audited(to) } else { work.found(to) };
    to.out.flush();
    status
}

/// Reports why a question makes no sense for a program; returns the exit status of the command.
fn refuse(error: &Error, loaded: &Loaded, json: bool, to: &mut To<'_>) -> Status {
    let name = loaded.sources.name();
    let help = "help: see `fencewright check`, or ask for --goal robustness";
    let (about, message, span) = match error {
        Error::Setting(setting, why) => (format!("--{setting}"), why.clone(), None),
        Error::NothingForFences(span) => (name.into(), format!("{error}\n  {help}"), *span),
        Error::Text(error) => {
            let first = error.diagnostics.first();
            (name.into(), escape(first.map_or("", |d| d.message.as_str())), first.map(|d| d.span))
        }
        error => (name.into(), error.to_string(), None),
    };
    let position = span.map(|span| loaded.sources.position(span));
    to.refuse(json, &about, name, &message, position);
    if matches!(error, Error::Contradiction(_)) { Status::Unknown } else { Status::Bad }
}

/// A question about one file.
struct Work<'a> {
    args: &'a FencesArgs,
    path: &'a Path,
    loaded: &'a Loaded,
    /// The files to write the fences to, with `--write`.
    original: Option<&'a Originals>,
    posed: PosedRepair,
    limits: &'a Limits,
}

impl Work<'_> {
    /// Runs a long computation and shows its progress on a terminal.
    fn watched<T>(&self, run: impl FnOnce(&Progress) -> T) -> T {
        let measured = Progress::default();
        let show = is_talkative(&self.args.settings) && progress::is_watched();
        progress::shown(show, &measured, || run(&measured))
    }

    /// Reports which of the existing fences are needed.
    fn audited(&self, to: &mut To<'_>) -> Status {
        let Work { args, loaded, limits, .. } = *self;
        let source = Source::from(loaded);
        let audited = match self.watched(|measured| self.posed.audit(limits, measured)) {
            Ok(audited) => audited,
            Err(Unmet { reason, property }) => {
                let stated = property.filter(|property| property.span != Span::default());
                let position = stated.map(|property| source.position(property.span));
                let message = format!("there is nothing to audit: {}", escape(&reason));
                let name = loaded.sources.name();
                to.refuse(args.settings.json, name, name, &message, position);
                return Status::Unknown;
            }
        };
        if let Some(page) = to.gathered.page() {
            page.audit(source, self.posed.goal.model().name(), &audited);
        }
        let style = to.out.style;
        to.out.print(&match args.settings.json {
            true => audit::json(source, &audited),
            false => {
                let model = self.posed.goal.model().name();
                audit::text(source, model, &audited, !args.settings.quiet, style)
            }
        });
        let unknown = audited.iter().any(|a| matches!(a.need, Need::Unknown(_)));
        if unknown { Status::Unknown } else { Status::Fine }
    }

    /// Reports the fences that were found, and prints or writes the edit.
    fn found(&mut self, to: &mut To<'_>) -> Status {
        let prices = &mut self.posed.options.prices;
        let cannot_swap = prices.swap.is_some() && !self.loaded.front_end.has_locked_stores();
        if cannot_swap {
            prices.swap = None;
        }
        let Work { args, loaded, limits, .. } = *self;
        if cannot_swap {
            complain(loaded.sources.name(), "note: in this format no locked instruction can replace a store");
        }
        let start = Instant::now();
        let found = match self.watched(|measured| self.posed.find(limits, measured)) {
            Ok(found) => found,
            Err(error) => return refuse(&error, loaded, args.settings.json, to),
        };
        let seconds = start.elapsed().as_secs_f64();
        let Edits { sources, diff, written } = self.edited(&found);
        let goal = &*self.posed.goal;
        let (goal, model, bound) = (goal.name(), goal.model().name(), goal.bound());
        let question = fences::Question { goal, model, bound, seconds };
        let source = Source::from(loaded);
        if let Some(page) = to.gathered.page() {
            let edited = sources.as_ref().map(Option::as_ref).map_err(|failed| failed.why.as_str());
            page.fences(source, question, &found, edited);
        }
        let out = &mut *to.out;
        let failed = written.as_ref().err().or(diff.as_ref().err());
        if args.settings.json {
            let edited = fences::Edited {
                diff: diff.as_ref().ok().and_then(|diff| diff.as_deref()),
                written: written == Ok(true),
                error: failed.map(|failed| failed.why.as_str()),
            };
            out.print(&fences::json(source, question, &found, edited));
        } else if !args.settings.diff {
            out.print(&fences::text(source, question, &found, !args.settings.quiet, out.style));
            out.print(&remarks::assumed(source));
            if !args.settings.quiet {
                out.print(&remarks::meaning(source));
            }
        } else if let (Ok(Some(diff)), Verdict::AlreadySafe | Verdict::Fixed) = (&diff, &found.verdict) {
            out.print(diff);
        } else {
            let verdict = fences::text(source, question, &found, false, Style::default());
            write_error(&format!("fencewright: {verdict}{}", remarks::assumed(source)));
        }
        if let Some(failed) = failed {
            complain(loaded.sources.name(), &escape(&failed.why));
        }
        let status = match &found.verdict {
            Verdict::AlreadySafe | Verdict::Fixed => Status::Fine,
            Verdict::Unfixable => Status::Violated,
            Verdict::Unknown(_) => Status::Unknown,
        };
        status.and(failed.map_or(Status::Fine, |failed| failed.status))
    }

    /// The files with the fences inserted, if they are to be shown or written.
    fn edited(&self, found: &Synthesis) -> Edits {
        let Work { args, path, loaded, original, limits, .. } = *self;
        let asked = args.settings.diff || args.settings.write;
        if !(asked || args.settings.html.is_some()) || !is_met(found) {
            return Edits { sources: Ok(None), diff: Ok(None), written: Ok(false) };
        }
        let edited = match self.posed.edited(found, limits) {
            Ok(edited) => edited,
            Err(why) => {
                let failed = Failed { why, status: Status::Unknown };
                // Without --diff and --write only the HTML page uses the edited texts. The page says why there are none, so the command does not
                // fail.
                let diff = if asked { Err(failed.clone()) } else { Ok(None) };
                return Edits { sources: Err(failed), diff, written: Ok(false) };
            }
        };
        let diff = args.settings.diff.then(|| diff::unified(path, &loaded.sources, &edited));
        let written = original.map_or(Ok(false), |original| original.write(&loaded.sources, &edited));
        let written = written.map_err(|why| Failed { why, status: Status::Bad });
        Edits { sources: Ok(Some(edited)), diff: Ok(diff), written }
    }
}

/// The edited files, the diff, and whether the files were written.
struct Edits {
    /// The files with the fences inserted; `None` if no option needs them or no sufficient fences were found.
    sources: Result<Option<Sources>, Failed>,
    /// The diff, if it is to be shown.
    diff: Result<Option<String>, Failed>,
    /// Whether the files were written.
    written: Result<bool, Failed>,
}

/// Why there is no edit, and the resulting status.
#[derive(Clone, PartialEq, Eq)]
struct Failed {
    why: String,
    status: Status,
}
