//! `fencewright fences`: where must fences go, is each one needed, and the edit that puts them there.

use std::path::Path;
use std::time::Instant;

use fencewright::engines::auto::Auto;
use fencewright::engines::explicit::Explicit;
use fencewright::engines::robust;
use fencewright::engines::{Limits, Progress};
use fencewright::fences::audit::{Need, Unmet, audit};
use fencewright::fences::text::{self, NoPlaces};
use fencewright::fences::{Bounded, Goal, Options, Robustness, Safety, Synthesis, Verdict, synthesise};
use fencewright::input::{is_standard_input, name_of};
use fencewright::lang::source::escape;
use fencewright::lang::{Loaded, Position, Sources};
use fencewright::memory::{Bound, CellBounds};
use fencewright::program::{MemoryModel, Span};
use fencewright::transform::attack::Notion;
use fencewright::{TERMINATION, stated_by};
use fencewright_report::{Source, Style, fences, remarks};

use crate::args::{FencesArgs, GoalArg, OverflowArg};
use crate::gathered::Gathered;
use crate::input::{Originals, each_file, load_originals, load_quietly, stops_when_asked, tell_notes};
use crate::output::{Output, complain, write_error};
use crate::status::Status;
use crate::{diff, gathered, progress, stop};

/// How many equally cheap sets `--all` lists at most.
const MOST_SETS: usize = 1_000;

/// Finds fences for all files.
pub fn run(args: &FencesArgs, out: &mut Output) -> Status {
    let json = args.common.json;
    out.style.full = args.common.full;
    if let Some(path) = &args.html
        && !gathered::can_be_written("--html", path, &args.common.files, json, out)
    {
        return Status::Bad;
    }
    let mut gathered = Gathered::new(None, args.html.as_ref());
    let status = find_all(args, &mut gathered, out);
    status.and(gathered.write(None, args.html.as_ref(), json, out))
}

/// Finds fences for all files, and gathers the answers where that is wanted.
fn find_all(args: &FencesArgs, gathered: &mut Gathered, out: &mut Output) -> Status {
    let json = args.common.json;
    each_file(&args.common, out, |path, limits, out| {
        let _search = stops_when_asked(path, gathered);
        let read = match args.write {
            true if is_standard_input(path) => {
                out.refuse(json, "-", "the standard input cannot be written to; use --diff", None);
                return Status::Bad;
            }
            true => load_originals(path, &args.common.input, limits)
                .map(|(program, original)| (program, Some(original))),
            false => load_quietly(path, &args.common.input, limits).map(|program| (program, None)),
        };
        match read {
            Ok((program, original)) => {
                let loaded = program.loaded();
                gathered.read(&loaded.sources);
                let mut to = To { gathered, out };
                file(args, path, loaded, original.as_ref(), limits, &mut to)
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

/// Where answers go.
struct To<'a> {
    gathered: &'a mut Gathered,
    out: &'a mut Output,
}

impl To<'_> {
    /// Says why a question makes no sense, or has no answer.
    fn refuse(&mut self, json: bool, about: &str, file: &str, message: &str, position: Option<Position<'_>>) {
        self.out.refuse(json, about, message, position);
        self.gathered.fail(file, message);
    }
}

/// Finds fences for one file. The limits are those that loading it started with; `original` is what the fences are written to, if they are.
fn file(
    args: &FencesArgs,
    path: &Path,
    loaded: &Loaded,
    original: Option<&Originals>,
    limits: &Limits,
    to: &mut To<'_>,
) -> Status {
    if args.common.is_talkative() {
        tell_notes(loaded);
    }
    let goal = match goal(args, loaded) {
        Ok(goal) => goal,
        Err(Refusal { about, message, position }) => {
            to.refuse(args.common.json, &about, loaded.sources.name(), &message, position);
            return Status::Bad;
        }
    };
    let _search = stop::Search::begin();
    let work = Work { args, path, loaded, original, goal: &*goal, limits };
    let status = if args.audit { work.audited(to) } else { work.found(to) };
    to.out.flush();
    status
}

/// Why a question makes no sense.
struct Refusal<'a> {
    about: String,
    message: String,
    position: Option<Position<'a>>,
}

/// The goal that was asked for, with the bound on buffers if there is one.
fn goal<'a>(args: &FencesArgs, loaded: &'a Loaded) -> Result<Box<dyn Goal>, Refusal<'a>> {
    let goal = unbounded_goal(args, loaded)?;
    let Some(OverflowArg { stores, per_variable }) = args.no_overflow else { return Ok(goal) };
    let is_pso = goal.model() == MemoryModel::Pso;
    if per_variable == Some(true) && !is_pso {
        let message = "under tso a thread has one buffer for all variables; K counts its stores".into();
        return Err(Refusal { about: "--no-overflow".into(), message, position: None });
    }
    let bound = match per_variable.unwrap_or(is_pso) {
        true => CellBounds::new(&[stores]).map(Bound::Cell),
        false => None,
    };
    let bound = bound.unwrap_or(Bound::Thread(stores.into()));
    Ok(Box::new(Bounded { goal, bound }))
}

/// The goal apart from the bound on buffers.
fn unbounded_goal<'a>(args: &FencesArgs, loaded: &'a Loaded) -> Result<Box<dyn Goal>, Refusal<'a>> {
    let refuse = |about: &str, message: &str| {
        Err(Refusal { about: about.into(), message: message.into(), position: None })
    };
    let confirm = args.common.confirm();
    let [model] = args.model.models() else {
        return refuse("--model", "fences are found for one memory model at a time");
    };
    if *model == MemoryModel::Sc {
        return refuse("--model", "under sc there is nothing a fence could do");
    }
    let notion = match args.goal {
        GoalArg::Safety => None,
        GoalArg::Robustness => Some(Notion::HappensBefore),
        GoalArg::Triangular => Some(Notion::Triangular),
    };
    if let Some(notion) = notion {
        if *model != MemoryModel::Tso {
            return refuse("--goal", "robustness is about tso");
        }
        let explicit = args.search.options(0);
        let options = robust::Options { notion, explicit, confirm, ..robust::Options::default() };
        return Ok(Box::new(Robustness { options }));
    }
    let file = loaded.sources.name();
    for name in &args.property {
        if name == "deadlock" || name == TERMINATION {
            let why = "a fence may make a deadlock, so none is looked for that prevents one";
            return refuse("--property", why);
        }
        if !loaded.program.properties.iter().any(|p| p.name == *name) {
            let known = stated_by(loaded);
            let there = if known.is_empty() { "none".into() } else { known.join(", ") };
            return refuse(file, &format!("no property is called `{}`; there is {there}", escape(name)));
        }
    }
    let explicit = Explicit { options: args.search.options(0) };
    let engine = Auto { explicit, ..Auto::default() };
    let goal = Safety { model: *model, properties: args.property.clone(), engine, confirm };
    if args.no_overflow.is_none() && !goal.is_about_fences(&loaded.program) {
        let help = "help: see `fencewright check`, or ask for --goal robustness";
        let Some(property) = goal.of(&loaded.program).into_iter().next() else {
            return refuse(
                file,
                &format!("the program states no property that fences could help with\n  {help}"),
            );
        };
        let why = "fences cannot help with `finally exists`: they only take executions away";
        let message = format!("{why}\n  {help}");
        let position = Some(loaded.sources.position(property.span));
        return Err(Refusal { about: file.to_owned(), message, position });
    }
    Ok(Box::new(goal))
}

/// A file, and what is to be found out about it.
struct Work<'a> {
    args: &'a FencesArgs,
    path: &'a Path,
    loaded: &'a Loaded,
    /// What to write the fences back to, if that is asked for.
    original: Option<&'a Originals>,
    goal: &'a dyn Goal,
    limits: &'a Limits,
}

impl Work<'_> {
    /// Runs something long, with its progress shown to whoever watches.
    fn watched<T>(&self, run: impl FnOnce(&Progress) -> T) -> T {
        let measured = Progress::default();
        let show = self.args.common.is_talkative() && progress::is_watched();
        progress::shown(show, &measured, || run(&measured))
    }

    /// Which of the fences there are is needed.
    fn audited(&self, to: &mut To<'_>) -> Status {
        let Work { args, loaded, goal, limits, .. } = *self;
        let source = Source::from(loaded);
        let audited = match self.watched(|measured| audit(&loaded.program, goal, limits, measured)) {
            Ok(audited) => audited,
            Err(Unmet { reason, property }) => {
                let stated = property.filter(|property| property.span != Span::default());
                let position = stated.map(|property| source.position(property.span));
                let message = format!("there is nothing to audit: {}", escape(&reason));
                let name = loaded.sources.name();
                to.refuse(args.common.json, name, name, &message, position);
                return Status::Unknown;
            }
        };
        if let Some(page) = to.gathered.page() {
            page.audit(source, goal.model().name(), &audited);
        }
        let style = to.out.style;
        to.out.print(&match args.common.json {
            true => fences::audit_json(source, &audited),
            false => fences::audit_text(source, &audited, !args.common.quiet, style),
        });
        let unknown = audited.iter().any(|a| matches!(a.need, Need::Unknown(_)));
        if unknown { Status::Unknown } else { Status::Fine }
    }

    /// Which fences are needed, and the edit that puts them in.
    fn found(&self, to: &mut To<'_>) -> Status {
        let Work { args, loaded, goal, limits, .. } = *self;
        let name = loaded.sources.name();
        let start = Instant::now();
        let placed = match text::places(loaded, &loaded.defines) {
            Ok(placed) => placed,
            Err(NoPlaces::Refused(diagnostics)) => {
                let first = diagnostics.first();
                let position = first.map(|d| loaded.sources.position(d.span));
                let message = first.map_or("", |d| d.message.as_str());
                to.refuse(args.common.json, name, name, &escape(message), position);
                return Status::Bad;
            }
            Err(NoPlaces::Contradiction) => {
                let what = "internal contradiction, please report it: places change the program";
                to.refuse(args.common.json, name, name, what, None);
                return Status::Unknown;
            }
        };
        let mut prices = args.price.prices();
        if prices.swap.is_some() && !loaded.front_end.has_locked_stores() {
            complain(loaded.sources.name(), "note: in this format no locked instruction can replace a store");
            prices.swap = None;
        }
        let sets = if args.all { MOST_SETS } else { 1 };
        let options = Options { prices, sets, evidence: !args.no_evidence };
        let found = self.watched(|measured| synthesise(&placed, goal, &options, limits, measured));
        let seconds = start.elapsed().as_secs_f64();
        let Edits { sources, diff, written } = self.edited(&found);
        let (goal, model, bound) = (goal.name(), goal.model().name(), goal.bound());
        let question = fences::Question { goal, model, bound, seconds };
        let source = Source::from(loaded);
        if let Some(page) = to.gathered.page() {
            let edited = sources.as_ref().map(Option::as_ref).map_err(|failed| failed.why.as_str());
            page.fences(source, question, &found, edited);
        }
        let out = &mut *to.out;
        let failed = written.as_ref().err().or(diff.as_ref().err());
        if args.common.json {
            let edited = fences::Edited {
                diff: diff.as_ref().ok().and_then(|diff| diff.as_deref()),
                written: written == Ok(true),
                error: failed.map(|failed| failed.why.as_str()),
            };
            out.print(&fences::json(source, question, &found, edited));
        } else if !args.diff {
            out.print(&fences::text(source, question, &found, !args.common.quiet, out.style));
            if !args.common.quiet {
                out.print(&remarks::meaning(source));
            }
        } else if let (Ok(Some(diff)), Verdict::AlreadySafe | Verdict::Fixed) = (&diff, &found.verdict) {
            out.print(diff);
        } else {
            let verdict = fences::text(source, question, &found, false, Style::default());
            write_error(&format!("fencewright: {verdict}"));
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

    /// The files with the fences in them, if anybody wants to see them or to have them written.
    fn edited(&self, found: &Synthesis) -> Edits {
        let Work { args, path, loaded, original, goal, limits } = *self;
        let asked = args.diff || args.write;
        let is_met = matches!(found.verdict, Verdict::AlreadySafe | Verdict::Fixed);
        if !(asked || args.html.is_some()) || !is_met {
            return Edits { sources: Ok(None), diff: Ok(None), written: Ok(false) };
        }
        let edited = match text::edited(loaded, found, goal, limits) {
            Ok(edited) => edited,
            Err(why) => {
                let failed = Failed { why, status: Status::Unknown };
                // A page says why it shows no text; that is no failure of the command.
                let diff = if asked { Err(failed.clone()) } else { Ok(None) };
                return Edits { sources: Err(failed), diff, written: Ok(false) };
            }
        };
        let diff = args.diff.then(|| diff::unified(path, &loaded.sources, &edited));
        let written = original.map_or(Ok(false), |original| original.write(&loaded.sources, &edited));
        let written = written.map_err(|why| Failed { why, status: Status::Bad });
        Edits { sources: Ok(Some(edited)), diff: Ok(diff), written }
    }
}

/// What became of the fences that were found.
struct Edits {
    /// The files with the fences in them.
    sources: Result<Option<Sources>, Failed>,
    /// The edit that puts them in, if it is to be shown.
    diff: Result<Option<String>, Failed>,
    /// Whether the file was written, if it is to be.
    written: Result<bool, Failed>,
}

/// Why there is no edit, and what the command then ends with.
#[derive(Clone, PartialEq, Eq)]
struct Failed {
    why: String,
    status: Status,
}
