//! Fences that make a program safe, as changes of its text.

use std::collections::BTreeMap;

use fencewright::engines::auto::Auto;
use fencewright::engines::{Checked, Confirm, Limits, Progress, Verdict};
use fencewright::fences::text::{self, NoPlaces};
use fencewright::fences::{Candidate, Chosen, Options, Safety, Synthesis, synthesise};
use fencewright::lang::Loaded;
use fencewright::lang::edit::{self, Change, Edit};
use fencewright::lang::load::load_again;
use fencewright::program::{FileId, MemoryModel, Span};
use fencewright_report::fences::{self, Question};
use fencewright_report::{Source, Style};

/// Changes of files.
pub type Changes = BTreeMap<FileId, Vec<Change>>;

/// Fences for a memory model.
pub struct Fixes {
    /// The memory model.
    pub model: MemoryModel,
    /// The properties that hold with them; those that are violated under SC too are left out.
    pub properties: Vec<String>,
    /// Whether these are all properties.
    pub all: bool,
    /// The fences; in words why there are none.
    pub fences: Result<Fences, String>,
}

/// Fences that suffice.
pub struct Fences {
    /// All of them together, verified.
    pub changes: Changes,
    /// Each alone.
    pub each: Vec<Fence>,
    /// Whether no cheaper set suffices.
    pub optimal: bool,
}

/// One fence.
pub struct Fence {
    /// What it is and where.
    pub words: String,
    /// Why it is needed.
    pub why: String,
    /// Where.
    pub place: Span,
    /// The changes that put this fence alone into the text; none if it cannot stand alone.
    pub changes: Option<Changes>,
}

/// Looks for fences.
pub fn fixes(
    loaded: &Loaded,
    model: MemoryModel,
    verdicts: &[Checked],
    limits: &Limits,
    progress: &Progress,
) -> Fixes {
    let hopeless = |checked: &&Checked| match checked.verdict() {
        Verdict::Unsafe => checked.happens_under_sc || checked.property.kind.is_existence(),
        Verdict::Safe => false,
        Verdict::Unknown(_) => true,
    };
    let possible = verdicts.iter().filter(|checked| !hopeless(checked));
    let properties: Vec<String> = possible.map(|checked| checked.property.name.clone()).collect();
    let all = properties.len() == verdicts.len();
    let is_unsafe = |checked: &&Checked| matches!(checked.verdict(), Verdict::Unsafe);
    let fences = match verdicts.iter().filter(is_unsafe).all(|checked| hopeless(&checked)) {
        true => Err("what happens, happens under sc too: no fence can help".into()),
        false if model == MemoryModel::Sc => Err("under sc there is nothing a fence could do".into()),
        false => {
            let (engine, confirm) = (Auto::default(), Confirm::default());
            let wanted = if all { Vec::new() } else { properties.clone() };
            found(loaded, &Safety { model, properties: wanted, engine, confirm }, limits, progress)
        }
    };
    Fixes { model, properties, all, fences }
}

fn found(loaded: &Loaded, goal: &Safety, limits: &Limits, progress: &Progress) -> Result<Fences, String> {
    let placed = text::places(loaded, &loaded.defines).map_err(|none| match none {
        NoPlaces::Refused(why) => why.first().map_or_else(String::new, |first| first.message.clone()),
        NoPlaces::Contradiction => {
            "internal contradiction, please report it: places change the program".into()
        }
    })?;
    let found = synthesise(&placed, goal, &Options::default(), limits, progress);
    let source = Source::from(loaded);
    if found.fences.is_empty() {
        return Err(in_words(source, goal, &found));
    }
    // This loads and verifies the new texts; what they are made of is what the editor gets.
    text::edited(loaded, &found, goal, limits)?;
    let edits: Vec<Edit> = found.fences.iter().map(|chosen| text::edit_for(&chosen.fence)).collect();
    let changes = edit::changes(loaded, &edits)?;
    let each = found.fences.iter().map(|chosen| Fence {
        words: fences::in_words(source, &chosen.fence),
        why: why(chosen),
        place: chosen.fence.place.statement,
        changes: alone(loaded, &chosen.fence),
    });
    Ok(Fences { changes, each: each.collect(), optimal: found.optimal })
}

/// The answer in one line, without the name of the file.
fn in_words(source: Source<'_>, goal: &Safety, found: &Synthesis) -> String {
    let question = Question { goal: "safety", model: goal.model.name(), bound: None, seconds: 0.0 };
    let line = fences::text(source, question, found, false, Style::PLAIN);
    let name = format!("{}: ", fencewright::lang::source::escape(source.name()));
    let line = line.strip_prefix(&name).unwrap_or(&line).trim_end();
    line.to_owned()
}

/// The changes that put one fence into the text, if the result is a program.
fn alone(loaded: &Loaded, fence: &Candidate) -> Option<Changes> {
    let edits = [text::edit_for(fence)];
    let texts = edit::edited(loaded, &edits).ok()?;
    load_again(loaded, &texts).ok()?;
    edit::changes(loaded, &edits).ok()
}

fn why(chosen: &Chosen) -> String {
    match &chosen.needed_because {
        Some(because) => match &because.property {
            Some(property) => {
                let steps = because.replayed.events.len();
                format!("without it `{}` is violated, in {steps} steps", property.name)
            }
            None => "without it the program is not safe".into(),
        },
        None => "whether it is needed alone is not known".into(),
    }
}
