//! Answers about fences, as text and as JSON: the place of each fence, the violation that occurs without it, and the edit that inserts it.

use std::fmt::Write as _;

use fencewright_fences::home::{Caller, Home};
use fencewright_fences::synthesis::{Because, thread_names};
use fencewright_fences::{Candidate, Kind, Synthesis, Unfixable, Verdict};
use fencewright_lang::Position;
use fencewright_lang::places::Side;
use fencewright_lang::source::escape;
use fencewright_lang::words::Words;
use fencewright_memory::Bound;
use fencewright_program::{MemoryModel, Replayed};
use serde::Serialize;

use crate::json::{Trace, line, micros};
use crate::remarks::Remarks;
use crate::style::Style;
use crate::text::{Cells, execution, seconds, table};
use crate::words::Source;

/// The question that was asked, and the time the answer took.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The name of the goal of the fences: `safety`, `robustness` or `triangular`.
    pub goal: &'a str,
    /// The name of the memory model.
    pub model: &'a str,
    /// The bound on the store buffers that the fences must enforce, if one was given.
    pub bound: Option<Bound>,
    /// The duration of the synthesis, in seconds.
    pub seconds: f64,
}

/// The answer for a terminal: only the verdict line unless `details` is set.
pub fn text(
    source: Source<'_>,
    question: Question<'_>,
    found: &Synthesis,
    details: bool,
    style: Style,
) -> String {
    let mut text = verdict_line(source, question, found, style);
    if details {
        text.push_str(&chosen_fences(source, found, style));
        text.push_str(&outside(source, found, style));
        text.push_str(&equally_cheap(source, found));
        text.push_str(&why_unfixable(source, found, style));
        text.push_str(&proofs(question, found));
    }
    text
}

fn verdict_line(source: Source<'_>, question: Question<'_>, found: &Synthesis, style: Style) -> String {
    let Question { goal, model, .. } = question;
    let goal = match question.bound.map(within) {
        Some(Within { stores, per }) => {
            let s = if stores == 1 { "" } else { "s" };
            format!("{goal} with at most {stores} buffered store{s} per {per}")
        }
        None => goal.to_owned(),
    };
    let name = escape(source.name());
    let time = seconds(question.seconds);
    let rounds = format!("{} round{}, {time}", found.rounds, if found.rounds == 1 { "" } else { "s" });
    match &found.verdict {
        Verdict::AlreadySafe => format!(
            "{name}: {}: no fence is needed for {goal} under {model} ({rounds})\n",
            style.good("already safe")
        ),
        Verdict::Fixed => {
            let how = match (found.optimal, found.outside.is_empty()) {
                (true, true) => "no cheaper set suffices",
                (true, false) => "no cheaper set in the files that may be changed suffices",
                (false, _) => "a cheaper set may suffice",
            };
            format!(
                "{name}: {}: {} fence{} for {goal} under {model}, cost {} ({how}; {rounds})\n",
                style.good("fixed"),
                found.count,
                if found.count == 1 { "" } else { "s" },
                found.cost,
            )
        }
        Verdict::Unfixable => {
            let why = found
                .unfixable
                .as_ref()
                .map_or(String::new(), |why| format!(": {}", reason(source, found, why)));
            format!(
                "{name}: {}: no fences give {goal} under {model}{} ({rounds})\n",
                style.bad("unfixable"),
                escape(&why)
            )
        }
        Verdict::Unknown(reason) => {
            format!("{name}: {} ({rounds}): {}\n", style.unsure("unknown"), escape(reason))
        }
    }
}

/// Each fence of the chosen set with the execution that it prevents.
fn chosen_fences(source: Source<'_>, found: &Synthesis, style: Style) -> String {
    let mut text = String::new();
    for chosen in &found.fences {
        text.push_str(&place(source, &chosen.fence, style));
        match &chosen.needed_because {
            Some(because) => {
                let _ = match because.overfull {
                    Some(thread) => {
                        let name = escape(&because.program.thread(thread).name);
                        writeln!(text, "    needed: without it {name} has too many stores in its buffer")
                    }
                    None => writeln!(text, "    needed: without it this happens"),
                };
                text.push_str(&shown(source, because, style));
            }
            None => text.push_str("    whether it is needed is not known\n"),
        }
    }
    text
}

/// The preferred set of fences, if some of them are in files that must not be changed.
fn outside(source: Source<'_>, found: &Synthesis, style: Style) -> String {
    let Some(about) = about_outside(found) else { return String::new() };
    let mut text = format!("  {about}:\n");
    for fence in &found.outside {
        text.push_str(&place(source, fence, style));
        if let Some(folder) = to_allow(source, fence) {
            let _ = writeln!(text, "    this file may be changed with: --allow {}", escape(folder));
        }
    }
    text
}

/// The words before the preferred set of fences, if some of them are in files that must not be changed.
pub(crate) fn about_outside(found: &Synthesis) -> Option<String> {
    let (these, their) = match found.outside.len() {
        0 => return None,
        1 => ("this fence", "its file is not changed without --allow"),
        _ => ("these fences", "some of their files are not changed without --allow"),
    };
    Some(match found.verdict {
        Verdict::Unfixable => format!("{these} would do, but {their}"),
        _ => format!("better: {these}, but {their}"),
    })
}

/// The folder that has to be allowed so that a fence can be inserted; `None` if its file may be changed.
pub(crate) fn to_allow<'a>(source: Source<'a>, fence: &Candidate) -> Option<&'a str> {
    let name = &source.files.file(fence.place.statement.file).name;
    let folder =
        name.rsplit_once('/').map_or(".", |(folder, _)| if folder.is_empty() { "/" } else { folder });
    fence.closed.then_some(folder)
}

/// Maximum number of callers that are listed.
const MOST_CALLERS: usize = 6;

/// For a fence in a library function: the function and the callers that it mends.
fn callers(source: Source<'_>, fence: &Candidate) -> Option<String> {
    let home = fence.home.as_ref().filter(|home| home.is_library())?;
    let caller = |caller: &Caller| {
        let line = source.position(caller.at).line_name();
        match &caller.function {
            Some(function) => format!("{}() at line {line}", escape(function)),
            None => format!("line {line}"),
        }
    };
    let mut listed: Vec<String> = home.callers.iter().take(MOST_CALLERS).map(caller).collect();
    let more = home.callers.len() - listed.len();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    Some(format!("in {}(), so it serves every caller: {}", escape(&home.function), listed.join(", ")))
}

/// The other sets with the same price as the chosen one, if there are any.
fn equally_cheap(source: Source<'_>, found: &Synthesis) -> String {
    let mut text = String::new();
    if found.sets.len() > 1 {
        let all = if found.sets_complete { "" } else { ", and there may be more" };
        let _ = writeln!(text, "  {} sets cost as little{all}:", found.sets.len());
        for set in &found.sets {
            let places: Vec<String> = set.iter().map(|fence| short(source, fence)).collect();
            let _ = writeln!(text, "    {}", places.join(", "));
        }
    }
    text
}

/// A heading and an execution that explains why no set of fences suffices: an execution under SC, an execution that no candidate prevents
/// (`inevitable`), or, if neither is known, an execution of the program without fences. Empty if there is no such execution.
fn why_unfixable(source: Source<'_>, found: &Synthesis, style: Style) -> String {
    let Some(Unfixable { because: Some(because), inevitable, .. }) = &found.unfixable else {
        return String::new();
    };
    let head = match (because.replayed.model, inevitable) {
        (MemoryModel::Sc, _) => "this happens under sc too",
        (_, true) => "no fence at an allowed place prevents this",
        (_, false) => "without fences this happens",
    };
    format!("  {head}:\n{}", shown(source, because, style))
}

/// One line for the bound on buffers and one for each property: that it holds with the chosen fences, and whether its proof was confirmed.
fn proofs(question: Question<'_>, found: &Synthesis) -> String {
    let confirmed = |is_confirmed| match is_confirmed {
        true => "confirmed",
        false => "not confirmed: this stands on the engine alone",
    };
    let (mut text, set) = (String::new(), fences_word(found));
    if let (Some(Within { stores, per }), Verdict::AlreadySafe | Verdict::Fixed) =
        (question.bound.map(within), &found.verdict)
    {
        let s = if stores == 1 { "" } else { "s" };
        let how = confirmed(found.proof.bound_checked);
        let _ = writeln!(text, "  with {set}, buffers hold at most {stores} store{s} per {per} ({how})");
    }
    for checked in &found.proof.verdicts {
        let how = confirmed(checked.checked() == Some(true));
        let name = escape(&checked.property.name);
        let _ = writeln!(text, "  with {set}, {name} holds ({}; {how})", checked.engine);
    }
    text
}

/// The reason why no set of fences suffices, as a sentence.
fn reason(source: Source<'_>, found: &Synthesis, why: &Unfixable) -> String {
    let Unfixable { because, inevitable, properties, existence, spared } = why;
    let names = |names: &[String]| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        quoted.join(" and ")
    };
    let others: Vec<String> = properties.iter().filter(|p| !existence.contains(p)).cloned().collect();
    let under_sc = because.as_ref().is_some_and(|b| b.replayed.model == MemoryModel::Sc);
    let what = match (existence.is_empty(), others.is_empty()) {
        (true, true) => "a violation".into(),
        (true, false) => format!("a violation of {}", names(&others)),
        (false, _) => format!("what {} asks for", names(existence)),
    };
    let mut text = match (existence.is_empty(), inevitable) {
        (false, true) => {
            format!("{what} does not happen even without fences, which only take executions away")
        }
        (false, false) if others.is_empty() => format!("with every set of fences, {what} does not happen"),
        (false, false) => {
            format!("fences that prevent the violations of {} take away {what}", names(&others))
        }
        (true, true) if under_sc => format!("{what} happens under sc too"),
        (true, true) => format!("no fence at an allowed place prevents {what}"),
        (true, false) if others.len() > 1 => format!("{} cannot be had together", names(&others)),
        (true, false) => format!("every set of fences leaves {what}, or makes one by where it stands"),
    };
    if !found.outside.is_empty() {
        text.push_str("; files that must not be changed are why: see --allow");
    }
    if !spared.is_empty() {
        let places: Vec<String> = spared.iter().map(|fence| short(source, fence)).collect();
        let _ = write!(text, "; spared places are why: without `spare`, {} would do", places.join(", "));
    }
    text
}

fn fences_word(found: &Synthesis) -> &'static str {
    match found.count {
        0 => "the program as it is",
        1 => "this fence",
        _ => "these fences",
    }
}

pub(crate) fn shown(source: Source<'_>, because: &Because, style: Style) -> String {
    let words = Words::new(&because.program, source.facts);
    let source = Source { program: &because.program, words: &words, ..source };
    match &because.property {
        Some(property) => execution(source, &because.replayed, property, style),
        None => executed(source, &because.replayed, style),
    }
}

/// The table of an execution that violates no property but is a violation for another reason: for example, a buffer exceeds its bound.
fn executed(source: Source<'_>, replayed: &Replayed, style: Style) -> String {
    let cells = Cells::all(source, replayed.states.first());
    table(source, replayed, &cells, &[], style)
}

/// The kind of fence and the side of the statement, as the beginning of a phrase that ends with the statement.
pub(crate) fn what(fence: &Candidate) -> &'static str {
    match (fence.kind, fence.place.side) {
        (Kind::Swap, _) => "a locked instruction instead of",
        (Kind::Full, Side::Before) => "a fence before",
        (Kind::Full, Side::Labelled) => "a fence behind the label of",
        (Kind::Full, Side::After) => "a fence after",
        (Kind::StoreStore, Side::Before) => "a store-store fence before",
        (Kind::StoreStore, Side::Labelled) => "a store-store fence behind the label of",
        (Kind::StoreStore, Side::After) => "a store-store fence after",
    }
}

/// A fence in one line: its kind, the statement beside it, and the threads that execute it.
pub fn in_words(source: Source<'_>, fence: &Candidate) -> String {
    let threads = thread_names(source.program, fence).join(", ");
    format!("{} `{}` in {threads}", what(fence), source.statement(fence.place.statement))
}

/// A fence with its position and the source line it belongs to.
fn place(source: Source<'_>, fence: &Candidate, style: Style) -> String {
    let at = source.position(fence.place.point());
    let word = what(fence);
    let threads = escape(&thread_names(source.program, fence).join(", "));
    let mut text = format!("  {at}: {word} this, in {threads}{}\n", in_macro(fence));
    let (file, statement) = (fence.place.statement.file, source.position(fence.place.statement).line);
    let first = statement.saturating_sub(1).max(1);
    for number in first..=statement + 1 {
        let content = source.files.file(file).line_text(number);
        if number == statement || !content.trim().is_empty() {
            let mark = if number == statement { ">" } else { " " };
            let content = escape(&content.trim_end().replace('\t', "    "));
            let _ = writeln!(text, "    {mark} {number:>4} | {}", style.dim(&content));
        }
    }
    if let Some(callers) = callers(source, fence) {
        let _ = writeln!(text, "    {callers}");
    }
    text
}

pub(crate) fn short(source: Source<'_>, fence: &Candidate) -> String {
    let at = source.position(fence.place.point());
    format!("{} at {}:{}{}", fence.kind.name(), at.line_name(), at.column, in_macro(fence))
}

/// For a fence inside the definition of a macro, a phrase with the number of uses of the macro that change; otherwise empty.
fn in_macro(fence: &Candidate) -> String {
    match fence.place.uses {
        0 => String::new(),
        1 => "; this is the definition of a macro, and its only use changes".into(),
        uses => format!("; this is the definition of a macro, and all its {uses} uses change"),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a str,
    verdict: &'static str,
    reason: Option<String>,
    goal: &'a str,
    model: &'a str,
    no_overflow: Option<Within>,
    cost: u64,
    count: usize,
    optimal: bool,
    rounds: usize,
    seconds: f64,
    checked: Option<bool>,
    fences: Vec<Fence<'a>>,
    alternatives: Vec<Vec<Fence<'a>>>,
    alternatives_complete: bool,
    trace: Option<Trace<'a>>,
    conflict: Vec<&'a str>,
    spared: Vec<Fence<'a>>,
    outside: Vec<Fence<'a>>,
    diff: Option<&'a str>,
    written: bool,
    error: Option<&'a str>,
    #[serde(flatten)]
    remarks: Remarks<'a>,
}

/// A bound on buffers: at most `stores` buffered stores per thread, or per thread and variable.
#[derive(Serialize)]
struct Within {
    stores: u32,
    per: &'static str,
}

fn within(bound: Bound) -> Within {
    let per = if matches!(bound, Bound::Thread(_)) { "thread" } else { "variable" };
    Within { stores: bound.most(), per }
}

/// The edit that inserts the fences, and whether it was applied.
#[derive(Clone, Copy, Default)]
pub struct Edited<'a> {
    /// The edit as a diff, if one was requested.
    pub diff: Option<&'a str>,
    /// Whether the file was written.
    pub written: bool,
    /// The reason why there is no edit, or why the file was not written.
    pub error: Option<&'a str>,
}

#[derive(Serialize)]
struct Fence<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    kind: &'static str,
    side: &'static str,
    threads: Vec<String>,
    /// For a fence inside the definition of a macro, the number of uses of the macro.
    macro_uses: Option<u32>,
    /// The function that contains the fence.
    function: Option<String>,
    /// The calls of this function, if it is a library function: the fence serves all of them.
    callers: Vec<Call<'a>>,
    /// The folder to name with `--allow`, if the file must not be changed otherwise.
    allow: Option<&'a str>,
    needed_because: Option<Trace<'a>>,
}

/// A call of the function that contains a fence.
#[derive(Serialize)]
struct Call<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    function: Option<String>,
}

fn calls<'a>(source: Source<'a>, home: &Home) -> Vec<Call<'a>> {
    let call = |caller: &Caller| {
        let Position { file, line, column, .. } = source.position(caller.at);
        Call { file, line, column, function: caller.function.clone() }
    };
    home.callers.iter().map(call).collect()
}

fn fence<'a>(source: Source<'a>, fence: &Candidate, because: Option<&'a Because>) -> Fence<'a> {
    let at = source.position(fence.place.point());
    Fence {
        file: at.file,
        line: at.line,
        column: at.column,
        kind: fence.kind.name(),
        side: match fence.place.side {
            Side::Before => "before",
            Side::Labelled => "labelled",
            Side::After => "after",
        },
        threads: thread_names(source.program, fence),
        macro_uses: (fence.place.uses > 0).then_some(fence.place.uses),
        function: fence.home.as_ref().map(|home| home.function.clone()),
        callers: fence.home.iter().filter(|home| home.is_library()).flat_map(|h| calls(source, h)).collect(),
        allow: to_allow(source, fence),
        needed_because: because.map(|because| because_trace(source, because)),
    }
}

pub(crate) fn because_trace<'a>(source: Source<'a>, because: &'a Because) -> Trace<'a> {
    Trace::of(&because.program, source, &because.replayed)
}

/// The answer as one line of JSON.
pub fn json(source: Source<'_>, question: Question<'_>, found: &Synthesis, edited: Edited<'_>) -> String {
    let why = found.unfixable.as_ref();
    let (verdict, reason) = match &found.verdict {
        Verdict::AlreadySafe => ("already-safe", None),
        Verdict::Fixed => ("fixed", None),
        Verdict::Unfixable => ("unfixable", why.map(|why| reason(source, found, why))),
        Verdict::Unknown(reason) => ("unknown", Some(reason.clone())),
    };
    let proved = matches!(found.verdict, Verdict::AlreadySafe | Verdict::Fixed);
    line(&Answer {
        file: source.name(),
        verdict,
        reason,
        goal: question.goal,
        model: question.model,
        no_overflow: question.bound.map(within),
        cost: found.cost,
        count: found.count,
        optimal: found.optimal,
        rounds: found.rounds,
        seconds: micros(question.seconds),
        checked: proved.then_some(found.proof.checked),
        fences: found.fences.iter().map(|c| fence(source, &c.fence, c.needed_because.as_ref())).collect(),
        alternatives: found
            .sets
            .iter()
            .skip(1)
            .map(|s| s.iter().map(|c| fence(source, c, None)).collect())
            .collect(),
        alternatives_complete: found.sets_complete,
        trace: why.and_then(|why| why.because.as_ref()).map(|because| because_trace(source, because)),
        conflict: why.map(|why| why.properties.iter().map(String::as_str).collect()).unwrap_or_default(),
        spared: why
            .map(|why| why.spared.iter().map(|c| fence(source, c, None)).collect())
            .unwrap_or_default(),
        outside: found.outside.iter().map(|c| fence(source, c, None)).collect(),
        diff: edited.diff,
        written: edited.written,
        error: edited.error,
        remarks: source.into(),
    })
}
