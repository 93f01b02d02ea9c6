//! `fencewright fences`: where must fences go, is each one needed, and the edit that puts them there.

use std::time::Instant;

use fencewright_engines::auto::Auto;
use fencewright_engines::robust;
use fencewright_engines::{Limits, Progress};
use fencewright_fences::fenced::{Fenced, same};
use fencewright_fences::{
    Examined, Goal, Kind, Options, Robustness, Safety, Synthesis, Verdict, audit, synthesise,
};
use fencewright_lang::edit::{Edit, What, edited};
use fencewright_lang::places::places;
use fencewright_lang::source::marked_like;
use fencewright_lang::{Format, Loaded, load};
use fencewright_memory::attack::Notion;
use fencewright_program::MemoryModel;
use fencewright_report::{Source, Style, fences};

use crate::args::{FencesArgs, GoalArg};
use crate::files::Original;
use crate::input::{describe, is_standard_input, load_original, load_quietly, tell_notes};
use crate::output::{Output, complain, write_error};
use crate::status::Status;
use crate::{progress, stop};

/// As many equally cheap sets as `--all` lists at most.
const MOST_SETS: usize = 1_000;

/// Finds fences for all files.
pub fn run(args: &FencesArgs, out: &mut Output) -> Status {
    let mut status = Status::Fine;
    for path in &args.common.files {
        if out.is_closed() || stop::is_asked() {
            return status.and(Status::Unknown);
        }
        let loaded = match args.write {
            true if is_standard_input(path) => {
                complain("-", "the standard input cannot be written to; use --diff");
                return Status::Bad;
            }
            true => {
                load_original(path, &args.common.input).map(|(loaded, original)| (loaded, Some(original)))
            }
            false => load_quietly(path, &args.common.input).map(|loaded| (loaded, None)),
        };
        status = status.and(match loaded {
            Ok((loaded, original)) => file(args, path, &loaded, original.as_ref(), out),
            Err(unloadable) => {
                write_error(&unloadable.message);
                Status::Bad
            }
        });
    }
    status
}

/// Finds fences for one file; `original` is what to write them back to.
fn file(
    args: &FencesArgs,
    path: &std::path::Path,
    loaded: &Loaded,
    original: Option<&Original>,
    out: &mut Output,
) -> Status {
    if args.common.is_talkative() {
        tell_notes(loaded);
    }
    let Some(goal) = goal(args, loaded) else { return Status::Bad };
    let limits = args.common.limits.starting_now();
    let _search = stop::Search::begin();
    let measured = Progress::default();
    let show = args.common.is_talkative() && progress::is_watched();
    let source = Source::from(loaded);
    let start = Instant::now();
    if args.audit {
        let audited = progress::shown(show, &measured, || audit(&loaded.program, &*goal, &limits, &measured));
        let audited = match audited {
            Ok(audited) => audited,
            Err(why) => {
                complain(&loaded.source.name, &format!("there is nothing to audit: {why}"));
                return Status::Unknown;
            }
        };
        let text = match args.common.json {
            true => fences::audit_json(source, &audited),
            false => fences::audit_text(source, &audited, !args.common.quiet, out.style),
        };
        out.print(&text);
        out.flush();
        let unknown = audited.iter().any(|a| matches!(a.need, fencewright_fences::audit::Need::Unknown(_)));
        return if unknown { Status::Unknown } else { Status::Fine };
    }
    let placed = match places(loaded, &args.common.input.define) {
        Ok(placed) => placed,
        Err(diagnostics) => {
            complain(&loaded.source.name, &loaded.source.render(&diagnostics, false));
            return Status::Bad;
        }
    };
    let unfenced = Fenced::new(&placed, &[]);
    if !same(&unfenced.program, &loaded.program) {
        let what = "internal contradiction, please report it: places change the program";
        complain(&loaded.source.name, what);
        return Status::Unknown;
    }
    let sets = if args.all { MOST_SETS } else { 1 };
    let mut prices = args.price.prices();
    if prices.swap.is_some() && !matches!(loaded.format, Format::Fw | Format::Rmm) {
        complain(&loaded.source.name, "note: in this format no locked instruction can replace a store");
        prices.swap = None;
    }
    let options = Options { prices, sets, evidence: !args.no_evidence };
    let found =
        progress::shown(show, &measured, || synthesise(&placed, &*goal, &options, &limits, &measured));
    let seconds = start.elapsed().as_secs_f64();
    let question = fences::Question { goal: goal.name(), model: goal.model().name(), seconds };
    let edit = match args.diff || args.write {
        true => Some(new_text(args, loaded, &found, &*goal, &limits)),
        false => None,
    };
    match (&edit, args.common.json) {
        (_, true) => out.print(&fences::json(source, question, &found)),
        (Some(_), false) if args.diff => {
            if !matches!(found.verdict, Verdict::AlreadySafe | Verdict::Fixed) {
                let verdict = fences::text(source, question, &found, false, Style::default());
                complain(&loaded.source.name, verdict.trim_end());
            }
        }
        _ => out.print(&fences::text(source, question, &found, !args.common.quiet, out.style)),
    }
    let status = match &found.verdict {
        Verdict::AlreadySafe | Verdict::Fixed => Status::Fine,
        Verdict::Unfixable => Status::Violated,
        Verdict::Unknown(_) => Status::Unknown,
    };
    let edited = match edit {
        None => Status::Fine,
        Some(Ok(text)) => apply(args, path, loaded, original, &text, out),
        Some(Err(why)) => {
            complain(&loaded.source.name, &why);
            Status::Unknown
        }
    };
    out.flush();
    status.and(edited)
}

/// The goal that was asked for.
fn goal(args: &FencesArgs, loaded: &Loaded) -> Option<Box<dyn Goal>> {
    let confirm = args.common.confirm();
    let [model] = args.model.models() else {
        complain("--model", "fences are found for one memory model at a time");
        return None;
    };
    if *model == MemoryModel::Sc {
        complain("--model", "under sc there is nothing a fence could do");
        return None;
    }
    let notion = match args.goal {
        GoalArg::Safety => None,
        GoalArg::Robustness => Some(Notion::HappensBefore),
        GoalArg::Triangular => Some(Notion::Triangular),
    };
    if let Some(notion) = notion {
        if *model != MemoryModel::Tso {
            complain("--goal", "robustness is about tso");
            return None;
        }
        let options = robust::Options { notion, confirm, ..robust::Options::default() };
        return Some(Box::new(Robustness { options }));
    }
    let goal = Safety { model: *model, properties: args.property.clone(), engine: Auto::default(), confirm };
    for name in &args.property {
        if name == "deadlock" {
            complain("--property", "a fence may make a deadlock, so none is looked for that prevents one");
            return None;
        }
        if !loaded.program.properties.iter().any(|p| p.name == *name) {
            complain(&loaded.source.name, &format!("no property is called `{}`", name.escape_debug()));
            return None;
        }
    }
    if goal.of(&loaded.program).is_empty() {
        let why = "the program states no property that fences could help with";
        complain(
            &loaded.source.name,
            &format!("{why}\n  help: see `fencewright check`, or ask for --goal robustness"),
        );
        return None;
    }
    Some(Box::new(goal))
}

/// The text with the fences, loaded and verified again.
fn new_text(
    args: &FencesArgs,
    loaded: &Loaded,
    found: &Synthesis,
    goal: &dyn Goal,
    limits: &Limits,
) -> Result<String, String> {
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
    let again = load(&loaded.source.name, text.as_bytes(), Some(loaded.format), &args.common.input.define)
        .map_err(|_| "the fences cannot be written here in this format".to_string())?;
    // A locked instruction also reads what it overwrites, which the program that was verified does not.
    let swaps = edits.iter().any(|edit| edit.what == What::Swap);
    if !swaps && found.program.as_ref().is_some_and(|program| !same(program, &again.program)) {
        return Err("the fences cannot be written here in this format".into());
    }
    match goal.examine(&again.program, limits, &Progress::default()) {
        Examined::Met(_) => Ok(text),
        Examined::Violated(_) => Err("the fences cannot be written here in this format".into()),
        Examined::Unknown(reason) => Err(format!("the edited text could not be verified: {reason}")),
    }
}

fn apply(
    args: &FencesArgs,
    path: &std::path::Path,
    loaded: &Loaded,
    original: Option<&Original>,
    text: &str,
    out: &mut Output,
) -> Status {
    if args.diff {
        let name = &loaded.source.name;
        let diff = similar::TextDiff::from_lines(loaded.source.text.as_str(), text);
        let mut unified = diff.unified_diff();
        out.print(&unified.context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string());
    }
    let Some(original) = original.filter(|_| text != loaded.source.text) else { return Status::Fine };
    match original.replace(path, marked_like(&original.bytes, text).as_bytes()) {
        Ok(()) => Status::Fine,
        Err(error) => {
            complain(&loaded.source.name, &format!("cannot write it: {}", describe(&error)));
            Status::Bad
        }
    }
}
