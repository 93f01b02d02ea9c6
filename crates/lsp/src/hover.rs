//! Hovers: facts about variables from proofs, reasons of fences, declarations of names.

use std::fmt::Write as _;

use fencewright::fences::audit::Need;
use fencewright::lang::source::escape;
use fencewright::memory::Cell;
use fencewright::program::{Action, LocationId, Program, RegisterId, Span, ThreadId};
use fencewright_report::words::shortened;

use crate::answers::{Answers, word};
use crate::lenses::is_instance;
use crate::names::{Declaration, Kind, declaration, word_at};

/// Maximum number of lines, for each memory model, about what holds when a thread is at the position; for a label, in all.
const MOST_POINTS: usize = 8;
/// Maximum number of array cells with facts.
const MOST_CELLS: usize = 16;
/// Maximum length of a declaration in characters; the rest is cut.
const LONGEST: usize = 400;

/// The contents of a hover.
pub struct Shown {
    /// The declaration or statement in the source.
    pub code: String,
    /// Facts about the declared entity or the statement, one per line.
    pub lines: Vec<String>,
    /// The range of the text that the hover is about.
    pub span: Span,
}

impl Shown {
    /// The hover as Markdown. Source text is put in a code block, with backticks replaced so that it cannot close the block; Markdown syntax in other
    /// lines is escaped.
    pub fn markdown(&self, language: &str) -> String {
        let mut text = format!("```{language}\n{}\n```\n", self.code.replace('`', "'"));
        for line in &self.lines {
            let _ = writeln!(text, "\n{}", escaped_markdown(line));
        }
        text
    }

    /// The hover as plain text, for clients without Markdown.
    pub fn plain(&self) -> String {
        std::iter::once(&self.code).chain(&self.lines).map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Escapes a text so that Markdown shows it literally, except code between backticks.
fn escaped_markdown(text: &str) -> String {
    let mut escaped = String::new();
    let mut code = false;
    for c in text.chars() {
        code ^= c == '`';
        // `/` and `@` are escaped so that web and mail addresses do not become links.
        if !code && "\\*_{}[]()<>#+-.!|~&/@".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    // A backtick without a partner would start code that extends to the end of the text.
    if code { escaped.replace('`', "'") } else { escaped }
}

/// Source text as Markdown code, between backticks.
fn code(text: &str) -> String {
    format!("`{}`", plain(text))
}

/// Source text without control characters and backticks.
fn plain(text: &str) -> String {
    escape(text).replace('`', "'")
}

/// The hover at an offset of the main file.
pub fn hover(answers: &Answers, offset: usize) -> Option<Shown> {
    let text = &answers.program.loaded().sources.main().text;
    if let Some(shown) = fence(answers, offset) {
        return Some(shown);
    }
    let (start, name) = word_at(text, offset)?;
    let span = Span::new(start, start + name.len());
    let declared = declaration(&answers.program.loaded().file, text, offset);
    let cells = cells(answers, declared.as_ref(), name, span);
    let code = match &declared {
        Some(declared) => introduction(answers, declared),
        None if cells.is_empty() => return None,
        None => name.to_owned(),
    };
    let mut lines = Vec::new();
    match declared.as_ref().map(|declared| declared.kind) {
        Some(Kind::Property) => lines.extend(verdicts(answers, name)),
        Some(Kind::Label) => lines.extend(at_label(answers, declared.as_ref()?)),
        Some(Kind::Thread) => lines.push(thread_in_words(answers, name)),
        _ => lines.extend(facts(answers, &cells, span)),
    }
    Some(Shown { code, lines, span })
}

/// A declaration as it is written, on one line.
fn introduction(answers: &Answers, declared: &Declaration) -> String {
    let source = answers.source();
    // The first line suffices for a declaration with a body.
    let whole = source.files.text(declared.whole);
    let line = whole.lines().next().unwrap_or(&declared.name).trim_end_matches(['{', ' ']);
    let line = if line.contains(&declared.name) { line } else { &declared.name };
    let what = match declared.kind {
        Kind::Shared => "shared ",
        Kind::Mutex => "mutex ",
        Kind::Constant => "const ",
        Kind::Register => "var ",
        Kind::Member | Kind::Thread | Kind::Procedure | Kind::Property => "",
        Kind::Label => "label ",
    };
    let inside = declared.inside.as_ref().map_or_else(String::new, |inside| format!("  // in {inside}"));
    shortened(&format!("{what}{}{inside}", escape(line)), LONGEST)
}

/// The memory cells and registers that a name stands for.
fn cells(answers: &Answers, declared: Option<&Declaration>, name: &str, span: Span) -> Vec<Cell> {
    let program = &answers.program.loaded().program;
    let memory = |name: &str| {
        let variable = program.variables.iter().find(|variable| variable.name == name);
        let cells = variable.map(|variable| variable.cells()).unwrap_or_default();
        cells.map(|cell| Cell::Memory(cell as u32)).collect::<Vec<Cell>>()
    };
    let registers = |is_meant: &dyn Fn(ThreadId, &str) -> bool| {
        let threads = program.threads();
        let all = threads.flat_map(|(id, thread)| (0..).zip(&thread.registers).map(move |(n, r)| (id, n, r)));
        let meant = all.filter(|(id, _, register)| is_meant(*id, &register.name));
        meant.map(|(id, n, _)| Cell::Register(id, RegisterId(n))).collect::<Vec<Cell>>()
    };
    match declared {
        Some(Declaration { kind: Kind::Shared | Kind::Mutex, .. }) => memory(name),
        Some(Declaration { kind: Kind::Register, inside: Some(inside), .. }) => {
            // Each thread that calls a procedure has registers of its own for the procedure's variables.
            let called = format!("{inside}.{name}");
            registers(&|id, known| is_instance(program, id, inside) && known == name || known == called)
        }
        Some(_) => Vec::new(),
        // The names in an imported language are not declared in the syntax tree, but the program may have variables with the same names.
        None => {
            let shared = memory(name);
            let here = |id: ThreadId| program.thread(id).edges.iter().any(|edge| edge.span.covers(span));
            let is_own = |known: &str| known == name || known.rsplit('.').next() == Some(name);
            if shared.is_empty() { registers(&|id, known| is_own(known) && here(id)) } else { shared }
        }
    }
}

/// Facts about cells from proofs: facts that hold at this position of the text, and facts that hold everywhere.
fn facts(answers: &Answers, cells: &[Cell], span: Span) -> Vec<String> {
    let program = &answers.program.loaded().program;
    let mut lines = Vec::new();
    for (model, known) in &answers.known {
        let always = cells.iter().filter_map(|cell| known.everywhere(*cell)).take(MOST_CELLS);
        let always: Vec<String> = always.map(code).collect();
        if !always.is_empty() {
            lines.push(format!("always under {}: {}", model.name(), always.join(", ")));
        }
        let mut points = Vec::new();
        for (thread, location) in points_at(program, span) {
            let here = known.at(thread, location);
            let Some(here) = here else {
                points.push(format!("{} never comes here", plain(&program.thread(thread).name)));
                continue;
            };
            let about = here.iter().filter(|fact| fact.cells.iter().any(|cell| cells.contains(cell)));
            let about: Vec<String> = about.take(MOST_CELLS).map(|fact| code(&fact.text)).collect();
            if !about.is_empty() {
                let name = plain(&program.thread(thread).name);
                points.push(format!("when {name} is here: {}", about.join(", ")));
            }
        }
        lines.extend(points.into_iter().take(MOST_POINTS));
    }
    lines
}

/// For each thread with a step at the source position, the location before the step.
fn points_at(program: &Program, span: Span) -> Vec<(ThreadId, LocationId)> {
    let mut points = Vec::new();
    for (id, thread) in program.threads() {
        let covering = thread.edges.iter().filter(|edge| edge.span.covers(span));
        // Takes the first step of the innermost statement.
        let length = |span: Span| span.end - span.start;
        if let Some(edge) = covering.min_by_key(|edge| length(edge.span)) {
            points.push((id, edge.from));
        }
    }
    points
}

/// Facts that hold at a label.
fn at_label(answers: &Answers, declared: &Declaration) -> Vec<String> {
    let program = &answers.program.loaded().program;
    let inside = declared.inside.as_deref().unwrap_or_default();
    let mut lines = Vec::new();
    for (model, known) in &answers.known {
        for (id, thread) in program.threads().filter(|(id, _)| is_instance(program, *id, inside)) {
            let here = thread.locations.iter().position(|l| l.labels.contains(&declared.name));
            let Some(here) = here.map(|n| LocationId(n as u32)) else { continue };
            let (name, under) = (plain(&thread.name), model.name());
            lines.push(match known.at(id, here) {
                Some(facts) => {
                    let facts: Vec<String> =
                        facts.iter().take(MOST_CELLS).map(|fact| code(&fact.text)).collect();
                    format!("when {name} is here under {under}: {}", facts.join(", "))
                }
                None => format!("{name} never comes here under {under}"),
            });
        }
    }
    lines.truncate(MOST_POINTS);
    lines
}

fn thread_in_words(answers: &Answers, name: &str) -> String {
    let program = &answers.program.loaded().program;
    let own: Vec<&fencewright::program::Thread> = program
        .threads()
        .filter(|(id, _)| is_instance(program, *id, name))
        .map(|(_, thread)| thread)
        .collect();
    let locations: usize = own.iter().map(|thread| thread.locations.len()).sum();
    let steps: usize = own.iter().map(|thread| thread.edges.len()).sum();
    match own.len() {
        1 => format!("{locations} locations, {steps} steps"),
        threads => format!("{threads} threads, {locations} locations and {steps} steps in all"),
    }
}

/// The verdicts on a property.
fn verdicts(answers: &Answers, name: &str) -> Vec<String> {
    let number = answers.properties().iter().position(|property| property.name == name);
    let verdicts = number.into_iter().flat_map(|n| answers.of(n));
    verdicts.map(|(model, checked)| format!("{} under {}", word(checked), model.name())).collect()
}

/// The reason why the fence at this offset is needed or superfluous; `None` if there is no fence or it was not audited.
fn fence(answers: &Answers, offset: usize) -> Option<Shown> {
    let here = Span::new(offset, offset);
    let edges = answers.program.loaded().program.threads.iter().flat_map(|thread| &thread.edges);
    let mut fences = edges.filter(|edge| matches!(edge.action, Action::Fence | Action::StoreFence));
    let span = fences.find(|edge| edge.span.covers(here))?.span.text();
    let mut lines = Vec::new();
    for (model, needs) in &answers.needs {
        let under = model.name();
        lines.extend(needs.iter().filter(|audited| audited.span == span).map(
            |audited| match &audited.need {
                Need::Needed(because) => {
                    let what = because.property.as_ref().map_or("the program", |property| &property.name);
                    let steps = because.replayed.events.len();
                    let what = code(what);
                    format!("needed under {under}: without it {what} is violated, in {steps} steps")
                }
                Need::NeededFor(property) => {
                    let name = code(&property.name);
                    format!("needed under {under}: without it, what {name} asks for does not happen")
                }
                Need::Superfluous { together: true } => format!("not needed under {under}"),
                Need::Superfluous { together: false } => {
                    format!("not needed under {under} as long as others stay that are not needed either")
                }
                Need::Fixed => format!("its order makes no difference under {under}"),
                Need::Unknown(why) => {
                    format!("whether it is needed under {under} is not known: {}", plain(why))
                }
            },
        ));
    }
    let code = answers.source().excerpt(span);
    (!lines.is_empty()).then_some(Shown { code: escape(&code), lines, span })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_shows_text_as_text() {
        let lines = vec![
            "a_b `c_d` <e>".into(),
            "`never closed".into(),
            format!("{} {}", code("a`[b](command:c)`"), plain("`https://d.e ![f](g)")),
        ];
        let shown = Shown { code: "x ``` y".into(), lines, span: Span::default() };
        let markdown = shown.markdown("fw");
        assert!(markdown.starts_with("```fw\nx ''' y\n```\n"), "{markdown}");
        assert!(markdown.contains("a\\_b `c_d` \\<e\\>\n"), "{markdown}");
        assert!(markdown.contains("'never closed"), "{markdown}");
        let hostile = "`a'[b](command:c)'` 'https:\\/\\/d\\.e \\!\\[f\\]\\(g\\)\n";
        assert!(markdown.ends_with(hostile), "{markdown}");
    }
}
