//! Answers about fences on a page: the source with the fences inserted, and, for each fence, the execution that it prevents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fencewright_fences::audit::Need;
use fencewright_fences::synthesis::{Because, thread_names};
use fencewright_fences::{Audited, Candidate, Synthesis, Unfixable, Verdict};
use fencewright_lang::Sources;
use fencewright_lang::words::Words;
use fencewright_program::{FileId, MemoryModel};
use similar::{ChangeTag, TextDiff};

use super::escape::{line_of, text};
use super::execution::View;
use super::{Execution, Heading, Page, plain};
use crate::fences::{self, Question, short, what};
use crate::style::Style;
use crate::text::{conclusion, seconds};
use crate::words::{Source, shortened};
use fencewright_lang::source::escape;

/// A file with more than `MOST_LINES` lines is shown only within `AROUND` lines of its changes.
const MOST_LINES: usize = 2_000;
const AROUND: usize = 8;
/// Maximum length of a line, in characters.
const LONGEST_LINE: usize = 300;

impl Page {
    /// Adds the result of fence synthesis; `edited` has the source texts with the fences inserted, or the reason why there are none.
    pub fn fences(
        &mut self,
        source: Source<'_>,
        question: Question<'_>,
        found: &Synthesis,
        edited: Result<Option<&Sources>, &str>,
    ) {
        let (verdict, class) = match &found.verdict {
            Verdict::AlreadySafe => ("already safe", "good"),
            Verdict::Fixed => ("fixed", "good"),
            Verdict::Unfixable => ("unfixable", "bad"),
            Verdict::Unknown(_) => ("unknown", "unsure"),
        };
        let line = fences::text(source, question, found, false, Style::PLAIN);
        let name = format!("{}: ", escape(source.name()));
        let sentence = line.trim_end().strip_prefix(&name).unwrap_or_default();
        let mut body = format!("<p class=\"reason\">{}</p>\n", text(sentence));
        let mut executions = Vec::new();
        match edited {
            Ok(Some(files)) if !found.fences.is_empty() => body.push_str(&source_with(source, files, found)),
            Err(why) => {
                let _ = writeln!(
                    body,
                    "<p class=\"left-out\">The text with the fences is not shown: {}</p>",
                    text(why)
                );
            }
            Ok(_) => {}
        }
        if !found.fences.is_empty() {
            body.push_str("<h3>Why each of them</h3>\n");
        }
        for (n, chosen) in found.fences.iter().enumerate() {
            let _ = writeln!(
                body,
                "<details class=\"fence\" id=\"\u{0}#fence-{n}\"><summary>{}</summary>",
                place(source, n, &chosen.fence),
                n = n + 1
            );
            match &chosen.needed_because {
                Some(because) => {
                    let _ = writeln!(body, "<p>{}</p>", text(&without(because)));
                    self.because(source, because, &mut body, &mut executions);
                }
                None => body.push_str("<p>Whether it is needed is not known.</p>\n"),
            }
            body.push_str("</details>\n");
        }
        body.push_str(&outside(source, found));
        if let Some(Unfixable { because: Some(because), inevitable, .. }) = &found.unfixable {
            body.push_str(match (because.replayed.model, inevitable) {
                (MemoryModel::Sc, _) => "<h3>This happens under SC too</h3>\n",
                (_, true) => "<h3>No fence at an allowed place prevents this</h3>\n",
                (_, false) => "<h3>Without fences this happens</h3>\n",
            });
            self.because(source, because, &mut body, &mut executions);
        }
        body.push_str(&proofs(found));
        if found.sets.len() > 1 {
            let all = if found.sets_complete { "" } else { ", and there may be more" };
            let _ = writeln!(body, "<h3>{} sets cost as little{all}</h3>\n<ul>", found.sets.len());
            for set in &found.sets {
                let places: Vec<String> = set.iter().map(|fence| short(source, fence)).collect();
                let _ = writeln!(body, "<li>{}</li>", text(&places.join(", ")));
            }
            body.push_str("</ul>\n");
        }
        let rounds = format!("{} round{}", found.rounds, if found.rounds == 1 { "" } else { "s" });
        let facts = vec![rounds, seconds(question.seconds)];
        let asked = format!("fences for {}", question.goal);
        let heading = Heading { question: &asked, model: question.model, verdict, class, facts };
        self.answer(None, source, heading, body, executions);
    }

    /// Adds the result of an audit: whether each existing fence is needed.
    pub fn audit(&mut self, source: Source<'_>, model: &str, audited: &[Audited]) {
        for fence in audited {
            let (verdict, class) = match &fence.need {
                Need::Needed(_) | Need::NeededFor(_) => ("needed", "good"),
                Need::Superfluous { .. } => ("superfluous", "unsure"),
                Need::Fixed => continue,
                Need::Unknown(_) => ("unknown", "unsure"),
            };
            let names: Vec<&str> =
                fence.threads.iter().map(|thread| source.program.thread(*thread).name.as_str()).collect();
            let mut body = format!(
                "<p class=\"stated\"><code>{}</code> <span>in {}</span></p>\n",
                text(&source.statement(fence.span)),
                text(&names.join(", "))
            );
            let mut executions = Vec::new();
            let reason = match &fence.need {
                Need::Needed(because) => without(because),
                Need::NeededFor(property) => {
                    format!("Without it, what `{}` asks for does not happen.", property.name)
                }
                Need::Superfluous { together: true } => "Nothing goes wrong without it.".into(),
                Need::Superfluous { together: false } => {
                    "Nothing goes wrong without it alone, but it is needed once the other superfluous fences are gone.".into()
                }
                Need::Fixed => String::new(),
                Need::Unknown(reason) => reason.clone(),
            };
            let _ = writeln!(body, "<p class=\"reason\">{}</p>", text(&reason));
            if let Some(becomes) = fence.enough.as_ref().and_then(|enough| enough.becomes.as_ref()) {
                let _ = writeln!(body, "<p class=\"reason\">It is enough: {}</p>", text(becomes));
            }
            if let Need::Needed(because) = &fence.need {
                self.because(source, because, &mut body, &mut executions);
            }
            let question =
                format!("{} at line {}", fence.kind.name(), source.position(fence.span).line_name());
            let heading = Heading { question: &question, model, verdict, class, facts: Vec::new() };
            self.answer(None, source, heading, body, executions);
        }
    }

    /// Adds an execution of a variant of the program with another set of fences.
    fn because(
        &mut self,
        source: Source<'_>,
        because: &Because,
        body: &mut String,
        executions: &mut Vec<Execution>,
    ) {
        let written = Some(source.program);
        let words = Words::new(&because.program, source.facts);
        let source = Source { program: &because.program, words: &words, ..source };
        let property = because.property.as_ref();
        let conclusion = match (property, because.overfull) {
            (Some(property), _) => conclusion(source, property, Style::PLAIN),
            (None, Some(thread)) => {
                format!("{} has too many stores in its buffer", line_of(&because.program.thread(thread).name))
            }
            (None, None) => String::new(),
        };
        let replayed = &because.replayed;
        self.execution(
            &View { source, replayed, property, cycle: None, conclusion, written },
            body,
            executions,
        );
        body.push_str(&plain(source, replayed, property));
    }
}

/// A sentence about the violation that occurs without a fence.
fn without(because: &Because) -> String {
    match (&because.property, because.overfull) {
        (_, Some(thread)) => {
            format!("Without it {} has too many stores in its buffer:", because.program.thread(thread).name)
        }
        (Some(property), None) => {
            format!("Without it, and with all others, this violates {}:", property.name)
        }
        (None, None) => "Without it, and with all others, this happens:".into(),
    }
}

/// The place of a fence, in words.
fn place(source: Source<'_>, number: usize, fence: &Candidate) -> String {
    let at = source.position(fence.place.statement).line_name();
    let threads = thread_names(source.program, fence).join(", ");
    let statement = source.statement(fence.place.statement);
    format!(
        "Fence {}: {} <code>{}</code> <span class=\"place\">line {} of the original, in {}</span>",
        number + 1,
        what(fence),
        text(&statement),
        text(&at),
        text(&threads)
    )
}

/// The preferred set of fences, if some of them are in files that must not be changed.
fn outside(source: Source<'_>, found: &Synthesis) -> String {
    let Some(about) = fences::about_outside(found) else { return String::new() };
    let mut list = format!("<h3>Fences in other files</h3>\n<p>{}:</p>\n<ul>\n", text(&about));
    for (n, fence) in found.outside.iter().enumerate() {
        let allow = fences::to_allow(source, fence)
            .map_or(String::new(), |folder| format!(": <code>--allow {}</code>", text(folder)));
        let _ = writeln!(list, "<li>{}{allow}</li>", place(source, n, fence));
    }
    list + "</ul>\n"
}

/// The list of properties that hold with the fences, and how each was confirmed.
fn proofs(found: &Synthesis) -> String {
    if found.proof.verdicts.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h3>With these fences</h3>\n<ul>\n");
    for checked in &found.proof.verdicts {
        let how = match checked.checked() {
            Some(true) => "confirmed",
            _ => "not confirmed: this stands on the engine alone",
        };
        let name = text(&checked.property.name);
        let _ = writeln!(html, "<li><b>{name}</b> holds ({}; {how})</li>", checked.engine);
    }
    html.push_str("</ul>\n");
    html
}

/// The files that change, with the inserted and removed lines marked.
fn source_with(source: Source<'_>, edited: &Sources, found: &Synthesis) -> String {
    let mut html = String::from("<h3>The program with its fences</h3>\n");
    for ((id, old), (_, new)) in
        source.files.iter().zip(edited.iter()).filter(|((_, a), (_, b))| a.text != b.text)
    {
        let _ = writeln!(html, "<div class=\"file\"><p class=\"name\">{}</p>", text(&old.name));
        html.push_str("<div class=\"scroll\"><table class=\"edited\"><tbody>\n");
        html.push_str(&changed(source, id, &old.text, &new.text, found));
        html.push_str("</tbody></table></div></div>\n");
    }
    html
}

/// A line of a diff.
struct Line<'a> {
    tag: ChangeTag,
    number: Option<usize>,
    text: &'a str,
}

fn changed(source: Source<'_>, file: FileId, old: &str, new: &str, found: &Synthesis) -> String {
    let diff = TextDiff::from_lines(old, new);
    let lines: Vec<Line<'_>> = diff
        .iter_all_changes()
        .map(|change| Line {
            tag: change.tag(),
            number: change.new_index().map(|n| n + 1),
            text: change.value().trim_end_matches(['\n', '\r']),
        })
        .collect();
    // Matches each fence to the nearest inserted line that is not matched to another fence.
    let mut old_line = 0;
    let mut added: Vec<(usize, usize)> = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        match line.tag {
            ChangeTag::Insert => added.push((n, old_line)),
            ChangeTag::Equal | ChangeTag::Delete => old_line += 1,
        }
    }
    let mut fences: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let own = found.fences.iter().enumerate().filter(|(_, chosen)| chosen.fence.place.statement.file == file);
    for (number, chosen) in own {
        let at = source.position(chosen.fence.place.point()).line;
        let free = |(n, _): &&(usize, usize)| !fences.contains_key(n);
        let distance = |(_, before): &&(usize, usize)| (2 * at).abs_diff(2 * before + 1);
        let nearest = added.iter().filter(free).min_by_key(distance);
        if let Some((n, _)) = nearest.or_else(|| added.iter().min_by_key(distance)) {
            fences.entry(*n).or_default().push(number + 1);
        }
    }
    let near = |n: usize| lines.len() <= MOST_LINES || added.iter().any(|(m, _)| n.abs_diff(*m) <= AROUND);
    let mut html = String::new();
    let mut skipped = false;
    for (n, line) in lines.iter().enumerate() {
        if !near(n) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            html.push_str("<tr class=\"skipped\"><td></td><td>…</td><td></td></tr>\n");
        }
        let class = match line.tag {
            ChangeTag::Equal => "",
            ChangeTag::Insert => " class=\"added\"",
            ChangeTag::Delete => " class=\"removed\"",
        };
        let mut why = String::new();
        for number in fences.get(&n).into_iter().flatten() {
            let _ = write!(why, "<a href=\"#\u{0}#fence-{number}\">why fence {number}?</a> ");
        }
        let _ = writeln!(
            html,
            "<tr{class}><td class=\"number\">{}</td><td><code>{}</code></td><td class=\"why\">{}</td></tr>",
            line.number.map_or(String::new(), |n| n.to_string()),
            // A blank instead of an empty text keeps the height of the line.
            match line.text {
                "" => " ".to_owned(),
                line => text(&line_of(&shortened(line, LONGEST_LINE))),
            },
            why.trim_end(),
        );
    }
    if skipped {
        html.push_str("<tr class=\"skipped\"><td></td><td>…</td><td></td></tr>\n");
    }
    html
}
