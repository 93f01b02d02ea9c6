//! `fencewright fences`: where must fences go, is each one needed, and the edit that puts them there.

use std::path::Path;
use std::time::Instant;

use fencewright_engines::auto::Auto;
use fencewright_engines::robust;
use fencewright_engines::{Limits, Progress};
use fencewright_fences::audit::{Need, Unmet, audit};
use fencewright_fences::fenced::{Fenced, same};
use fencewright_fences::{Examined, Goal, Kind, Options, Robustness, Safety, Synthesis, Verdict, synthesise};
use fencewright_lang::edit::{Edit, What, edited};
use fencewright_lang::places::places;
use fencewright_lang::source::{escape, marked_like};
use fencewright_lang::{Format, Loaded, load};
use fencewright_program::{MemoryModel, Span};
use fencewright_report::json::Failure;
use fencewright_report::{Source, Style, fences};
use fencewright_transform::attack::Notion;

use crate::args::{FencesArgs, GoalArg};
use crate::check::stated;
use crate::files::Original;
use crate::input::{describe, display_name, is_standard_input, load_original, load_quietly, tell_notes};
use crate::output::{Output, complain, write_error};
use crate::status::Status;
use crate::{progress, stop};

/// As many equally cheap sets as `--all` lists at most.
const MOST_SETS: usize = 1_000;

/// Finds fences for all files.
pub fn run(args: &FencesArgs, out: &mut Output) -> Status {
    let json = args.common.json;
    out.style.full = args.common.full;
    let mut status = Status::Fine;
    for path in &args.common.files {
        if out.is_closed() {
            return status.and(Status::Unknown);
        }
        if stop::is_asked() {
            out.tell_failure(json, &Failure::new(display_name(path), "stopped", None));
            status = status.and(Status::Unknown);
            continue;
        }
        let limits = args.common.limits_from_now();
        let loaded = match args.write {
            true if is_standard_input(path) => {
                out.refuse(json, "-", "the standard input cannot be written to; use --diff", None);
                status = status.and(Status::Bad);
                continue;
            }
            true => load_original(path, &args.common.input, &limits)
                .map(|(loaded, original)| (loaded, Some(original))),
            false => load_quietly(path, &args.common.input, &limits).map(|loaded| (loaded, None)),
        };
        status = status.and(match loaded {
            Ok((loaded, original)) => file(args, path, &loaded, original.as_ref(), &limits, out),
            Err(unloadable) => {
                write_error(&unloadable.message);
                out.tell_failure(json, &unloadable.failure);
                unloadable.status
            }
        });
    }
    status
}

/// Finds fences for one file with what loading it has left of the limits; `original` is what to write them back to.
fn file(
    args: &FencesArgs,
    path: &Path,
    loaded: &Loaded,
    original: Option<&Original>,
    limits: &Limits,
    out: &mut Output,
) -> Status {
    if args.common.is_talkative() {
        tell_notes(loaded);
    }
    let goal = match goal(args, loaded) {
        Ok(goal) => goal,
        Err(Refusal { about, message, position }) => {
            out.refuse(args.common.json, &about, &message, position);
            return Status::Bad;
        }
    };
    let _search = stop::Search::begin();
    let work = Work { args, path, loaded, original, goal: &*goal, limits };
    let status = if args.audit { work.audited(out) } else { work.found(out) };
    out.flush();
    status
}

/// Why a question makes no sense.
struct Refusal {
    about: String,
    message: String,
    position: Option<(usize, usize)>,
}

/// The goal that was asked for.
fn goal(args: &FencesArgs, loaded: &Loaded) -> Result<Box<dyn Goal>, Refusal> {
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
        let options = robust::Options { notion, confirm, ..robust::Options::default() };
        return Ok(Box::new(Robustness { options }));
    }
    let file = &loaded.source.name;
    for name in &args.property {
        if name == "deadlock" {
            let why = "a fence may make a deadlock, so none is looked for that prevents one";
            return refuse("--property", why);
        }
        if !loaded.program.properties.iter().any(|p| p.name == *name) {
            let known = stated(loaded);
            let there = if known.is_empty() { "none".into() } else { known.join(", ") };
            return refuse(file, &format!("no property is called `{}`; there is {there}", escape(name)));
        }
    }
    let goal = Safety { model: *model, properties: args.property.clone(), engine: Auto::default(), confirm };
    if !goal.is_about_fences(&loaded.program) {
        let help = "help: see `fencewright check`, or ask for --goal robustness";
        let Some(property) = goal.of(&loaded.program).into_iter().next() else {
            return refuse(
                file,
                &format!("the program states no property that fences could help with\n  {help}"),
            );
        };
        let why = "fences cannot help with `finally exists`: they only take executions away";
        let position = loaded.source.line_column(property.span.start as usize);
        let message = format!("{why}\n  {help}");
        return Err(Refusal { about: file.clone(), message, position: Some(position) });
    }
    Ok(Box::new(goal))
}

/// A file, and what is to be found out about it.
struct Work<'a> {
    args: &'a FencesArgs,
    path: &'a Path,
    loaded: &'a Loaded,
    /// What to write the fences back to, if that is asked for.
    original: Option<&'a Original>,
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
    fn audited(&self, out: &mut Output) -> Status {
        let Work { args, loaded, goal, limits, .. } = *self;
        let source = Source::from(loaded);
        let audited = match self.watched(|measured| audit(&loaded.program, goal, limits, measured)) {
            Ok(audited) => audited,
            Err(Unmet { reason, property }) => {
                let stated = property.filter(|property| property.span != Span::default());
                let position = stated.map(|property| source.position(property.span));
                let message = format!("there is nothing to audit: {}", escape(&reason));
                out.refuse(args.common.json, &loaded.source.name, &message, position);
                return Status::Unknown;
            }
        };
        out.print(&match args.common.json {
            true => fences::audit_json(source, &audited),
            false => fences::audit_text(source, &audited, !args.common.quiet, out.style),
        });
        let unknown = audited.iter().any(|a| matches!(a.need, Need::Unknown(_)));
        if unknown { Status::Unknown } else { Status::Fine }
    }

    /// Which fences are needed, and the edit that puts them in.
    fn found(&self, out: &mut Output) -> Status {
        let Work { args, loaded, goal, limits, .. } = *self;
        let start = Instant::now();
        let placed = match places(loaded, &args.common.input.define) {
            Ok(placed) => placed,
            Err(diagnostics) => {
                let first = diagnostics.first();
                let position = first.map(|d| loaded.source.line_column(d.span.start as usize));
                let message = first.map_or("", |d| d.message.as_str());
                out.refuse(args.common.json, &loaded.source.name, &escape(message), position);
                return Status::Bad;
            }
        };
        if !same(&Fenced::new(&placed, &[]).program, &loaded.program) {
            let what = "internal contradiction, please report it: places change the program";
            out.refuse(args.common.json, &loaded.source.name, what, None);
            return Status::Unknown;
        }
        let mut prices = args.price.prices();
        if prices.swap.is_some() && !matches!(loaded.format, Format::Fw | Format::Rmm) {
            complain(&loaded.source.name, "note: in this format no locked instruction can replace a store");
            prices.swap = None;
        }
        let sets = if args.all { MOST_SETS } else { 1 };
        let options = Options { prices, sets, evidence: !args.no_evidence };
        let found = self.watched(|measured| synthesise(&placed, goal, &options, limits, measured));
        let seconds = start.elapsed().as_secs_f64();
        let (diff, written) = self.edited(&found);
        let question = fences::Question { goal: goal.name(), model: goal.model().name(), seconds };
        let source = Source::from(loaded);
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
        } else if let (Ok(Some(diff)), Verdict::AlreadySafe | Verdict::Fixed) = (&diff, &found.verdict) {
            out.print(diff);
        } else {
            let verdict = fences::text(source, question, &found, false, Style::default());
            write_error(&format!("fencewright: {verdict}"));
        }
        if let Some(failed) = failed {
            complain(&loaded.source.name, &escape(&failed.why));
        }
        let status = match &found.verdict {
            Verdict::AlreadySafe | Verdict::Fixed => Status::Fine,
            Verdict::Unfixable => Status::Violated,
            Verdict::Unknown(_) => Status::Unknown,
        };
        status.and(failed.map_or(Status::Fine, |failed| failed.status))
    }

    /// The edit that puts the fences in, if it is to be shown; and whether the file was written, if it is to be.
    fn edited(&self, found: &Synthesis) -> (Result<Option<String>, Failed>, Result<bool, Failed>) {
        let Work { args, path, loaded, original, .. } = *self;
        if !(args.diff || args.write) || !matches!(found.verdict, Verdict::AlreadySafe | Verdict::Fixed) {
            return (Ok(None), Ok(false));
        }
        let text = match self.new_text(found) {
            Ok(text) => text,
            Err(why) => return (Err(Failed { why, status: Status::Unknown }), Ok(false)),
        };
        let diff = args.diff.then(|| unified_diff(path, &loaded.source.text, &text));
        let written = match original.filter(|_| text != loaded.source.text) {
            Some(original) => {
                original.replace(path, marked_like(&original.bytes, &text).as_bytes()).map(|()| true)
            }
            None => Ok(false),
        };
        let written = written.map_err(|error| Failed {
            why: format!("cannot write it: {}", describe(&error)),
            status: Status::Bad,
        });
        (Ok(diff), written)
    }

    /// The text with the fences, loaded and verified again.
    fn new_text(&self, found: &Synthesis) -> Result<String, String> {
        let Work { args, loaded, goal, limits, .. } = *self;
        let edits: Vec<Edit> = found
            .fences
            .iter()
            .map(|chosen| Edit {
                what: match chosen.fence.kind {
                    Kind::Full => What::Fence,
                    Kind::StoreStore => What::StoreFence,
                    Kind::Swap => What::Swap,
                },
                place: chosen.fence.place.clone(),
            })
            .collect();
        let text = edited(loaded, &edits)?;
        if edits.is_empty() {
            return Ok(text);
        }
        let again =
            load(&loaded.source.name, text.as_bytes(), Some(loaded.format), &args.common.input.define)
                .map_err(|_| "the fences cannot be written here in this format".to_string())?;
        // A locked instruction also reads what it overwrites, which the program that was verified does not.
        let swaps = edits.iter().any(|edit| edit.what == What::Swap);
        if !swaps && found.program.as_ref().is_some_and(|program| !same(program, &again.program)) {
            return Err("the fences cannot be written here in this format".into());
        }
        match goal.examine(&again.program, limits, &Progress::default()) {
            Examined::Met(_) => Ok(text),
            Examined::Violated(_) | Examined::Lost(_) => {
                Err("the fences cannot be written here in this format".into())
            }
            Examined::Unknown(reason) => Err(format!("the edited text could not be verified: {reason}")),
        }
    }
}

/// Why there is no edit, and what the command then ends with.
#[derive(PartialEq, Eq)]
struct Failed {
    why: String,
    status: Status,
}

fn unified_diff(path: &Path, old: &str, new: &str) -> String {
    let name = |side: &str| diff_name(side, path);
    let diff = similar::TextDiff::from_lines(old, new);
    diff.unified_diff().context_radius(3).header(&name("a/"), &name("b/")).to_string()
}

/// The name of a file in the header of a diff, quoted as git does: unusual bytes as in C, and a tab behind a name with blanks, so that `patch` knows
/// where it ends.
fn diff_name(side: &str, path: &Path) -> String {
    let name = match is_standard_input(path) {
        true => display_name(path).into_bytes(),
        false => path.as_os_str().as_encoded_bytes().to_vec(),
    };
    // `a/` and `b/` end with the slash that an absolute name begins with.
    let name = name.strip_prefix(b"/").unwrap_or(&name);
    let plain = |byte: &u8| (b' '..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if name.iter().all(plain) {
        let end = if name.contains(&b' ') { "\t" } else { "" };
        return format!("{side}{}{end}", String::from_utf8_lossy(name));
    }
    let mut quoted = format!("\"{side}");
    for &byte in name {
        match byte {
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            _ if plain(&byte) => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "\""
}
