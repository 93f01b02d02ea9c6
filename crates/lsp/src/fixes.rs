//! Fences that make a program safe, as changes of its text.

use fencewright::engines::{Checked, Progress};
use fencewright::fences::{Chosen, Synthesis};
use fencewright::lang::source::escape;
use fencewright::program::Span;
use fencewright::{Changes, DEADLOCK, Error, MemoryModel, Program, Question, Verdict};
use fencewright_report::{Source, Style, fences};

/// The result of a search for fences under a memory model.
pub struct Fixes {
    /// The memory model under which the fences suffice.
    pub model: MemoryModel,
    /// The properties that hold with the fences. This excludes undecided properties, and violated properties that no fence can repair: properties
    /// that are existential, or violated under SC too.
    pub properties: Vec<String>,
    /// Whether `properties` are all properties of the program.
    pub all: bool,
    /// The fences, or the reason why there are none.
    pub fences: Result<Fences, String>,
}

/// A set of fences that suffices, with the changes that insert them.
pub struct Fences {
    /// The changes that insert all the fences; the resulting text was verified.
    pub changes: Changes,
    /// The fences of the set, each with the changes that insert it alone.
    pub each: Vec<Fence>,
    /// Whether no cheaper set suffices.
    pub optimal: bool,
}

/// One fence of a set that suffices.
pub struct Fence {
    /// The kind of fence and its place.
    pub words: String,
    /// The reason why the fence is needed.
    pub why: String,
    /// The statement at which the fence is inserted.
    pub place: Span,
    /// The changes that insert this fence alone; `None` if the resulting text is not a program.
    pub changes: Option<Changes>,
}

/// Searches for fences that turn the violated verdicts on a question into `safe`.
pub fn fixes(
    program: &Program,
    question: &Question,
    model: MemoryModel,
    verdicts: &[Checked],
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
            let named = |question: Question, name: &String| question.property(name);
            let wanted = properties.iter().filter(|name| !all && *name != DEADLOCK);
            found(program, &wanted.fold(question.clone(), named), progress)
        }
    };
    Fixes { model, properties, all, fences }
}

fn found(program: &Program, question: &Question, progress: &Progress) -> Result<Fences, String> {
    let limits = question.limits();
    let posed = question.repair().pose(program).map_err(|error| error.to_string())?;
    let found = posed.find(&limits, progress).map_err(|error| match error {
        Error::Text(why) => why.diagnostics.first().map_or_else(String::new, |first| first.message.clone()),
        error => error.to_string(),
    })?;
    let source = Source::from(program.loaded());
    if found.fences.is_empty() {
        return Err(in_words(source, posed.goal.model(), &found));
    }
    // Loads and verifies the new texts, to be sure of them; the editor receives only the changes.
    posed.edited(&found, &limits)?;
    let changes = posed.changes(&found)?;
    let each = found.fences.iter().map(|chosen| Fence {
        words: fences::in_words(source, &chosen.fence),
        why: why(chosen),
        place: chosen.fence.place.statement,
        changes: posed.changes_for(&chosen.fence, &limits),
    });
    Ok(Fences { changes, each: each.collect(), optimal: found.optimal })
}

/// The answer in one line, without the name of the file.
fn in_words(source: Source<'_>, model: MemoryModel, found: &Synthesis) -> String {
    let question = fences::Question { goal: "safety", model: model.name(), bound: None, seconds: 0.0 };
    let line = fences::text(source, question, found, false, Style::PLAIN);
    let name = format!("{}: ", escape(source.name()));
    let line = line.strip_prefix(&name).unwrap_or(&line).trim_end();
    line.to_owned()
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
