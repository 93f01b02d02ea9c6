//! Answers as one self-contained HTML page: a browser loads nothing else, neither from the network nor from other files.
//!
//! A [`Page`] collects answers. All static contents are written as HTML here: the table of answers, the evidence for each verdict, invariants,
//! drawings of control states, programs with their fences. Executions are written as JSON, from which the script of the page (`page.js`) builds a
//! viewer; each execution is also written as text, for readers without scripts.
//!
//! All program text is treated as hostile. It becomes HTML only through `escape.rs`, and the script creates elements and text nodes, never markup.
//! The content security policy of the page allows only this script and this style sheet, by their hashes.

mod controls;
mod departures;
mod escape;
mod execution;
mod fences;
mod notes;
mod proof;
mod robust;
mod texts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use fencewright_engines::{Checked, Verdict};
use fencewright_program::{MemoryModel, Property, PropertyKind, Quantifier, Replayed};
use sha2::{Digest, Sha256};

use crate::mistake::mistake;
use crate::room::Room;
use crate::style::Style;
use crate::text::{self as words, seconds, why};
use crate::words::{Source, grouped};
use escape::{lines, text};
use execution::View;
use notes::{remarks, stated, tried};
use texts::Texts;

const SCRIPT: &str = include_str!("page.js");
/// Style sheet for browsers, which follows the system's choice of dark or light.
const IN_BROWSER: &str = concat!(
    include_str!("page.css"),
    "@media screen and (prefers-color-scheme: dark) { :root {\n",
    include_str!("dark.css"),
    "} }\n",
);
/// Style sheet for a panel of VS Code, which marks dark themes with a class.
const IN_EDITOR: &str = concat!(
    include_str!("page.css"),
    "body:where(.vscode-dark, .vscode-high-contrast:not(.vscode-high-contrast-light)) {\n",
    include_str!("dark.css"),
    "}\n",
    include_str!("editor.css"),
);

/// Maximum size of a page in bytes; further answers appear only in the table.
const MOST_BYTES: usize = 32 << 20;
/// Maximum number of answers in the table.
const MOST_ANSWERS: usize = 5_000;

/// A page of answers, to which answers are added as they are found.
pub struct Page {
    answers: Vec<Answer>,
    texts: Texts,
    /// The number of answers for each verdict, including answers for which the page has no room.
    counts: BTreeMap<&'static str, usize>,
    room: Room,
}

/// An execution as JSON, and the source files of its program.
struct Execution {
    files: Arc<str>,
    json: String,
}

impl Default for Page {
    fn default() -> Self {
        Page::within(Room::new(MOST_BYTES))
    }
}

/// One answer of a page.
struct Answer {
    file: String,
    /// The name of the property, or the question if it is not about a property.
    question: String,
    model: String,
    verdict: &'static str,
    /// The CSS class that colours the verdict.
    class: &'static str,
    /// The engine, the number of states, and the time.
    facts: Vec<String>,
    /// HTML in which a NUL character marks each index of an execution of this answer and each name that must be unique in the page. [`section`]
    /// replaces the marked indices and names.
    body: String,
    executions: Vec<Execution>,
}

impl Answer {
    /// The number of bytes that the answer needs, without the source files.
    fn bytes(&self) -> usize {
        self.body.len() + self.executions.iter().map(|execution| execution.json.len()).sum::<usize>()
    }
}

/// The header of an answer.
struct Heading<'a> {
    question: &'a str,
    model: &'a str,
    verdict: &'static str,
    class: &'static str,
    facts: Vec<String>,
}

impl Page {
    fn within(room: Room) -> Self {
        Page { answers: Vec::new(), texts: Texts::default(), counts: BTreeMap::new(), room }
    }

    /// An empty page that shares this page's limit on bytes, to be appended later.
    pub fn part(&self) -> Page {
        Page::within(self.room.clone())
    }

    /// Adds the answer about a property. `name` replaces the file name in the heading.
    pub fn check(&mut self, name: Option<&str>, source: Source<'_>, model: MemoryModel, checked: &Checked) {
        let (verdict, class) = match checked.verdict() {
            Verdict::Safe => ("safe", "good"),
            Verdict::Unsafe => ("unsafe", "bad"),
            Verdict::Unknown(_) => ("unknown", "unsure"),
        };
        let mut facts = vec![checked.engine.to_string(), format!("{} states", grouped(checked.work.states))];
        facts.push(seconds(checked.seconds));
        let property = &checked.property;
        let mut body = stated(source, property);
        let mut executions = Vec::new();
        if let Verdict::Unknown(reason) = checked.verdict() {
            let _ = writeln!(body, "<p class=\"reason\">{}</p>", text(&why(source, reason)));
            body.push_str(&tried(source, checked));
        }
        if let Some(replayed) = checked.trace() {
            let mut conclusion = words::conclusion(source, property, Style::PLAIN);
            if let Some(mistake) = mistake(source, replayed, property) {
                let _ = write!(conclusion, ": {}", mistake.sentence());
            }
            let view =
                View { source, replayed, property: Some(property), cycle: None, conclusion, written: None };
            if checked.happens_under_sc {
                body.push_str("<p class=\"reason\">It happens under SC too: no fence can help.</p>\n");
            }
            self.execution(&view, &mut body, &mut executions);
            body.push_str(&plain(source, replayed, Some(property)));
        } else {
            match (checked.verdict(), &property.kind) {
                (Verdict::Safe, _) => body.push_str(&proof::proof(source, checked)),
                (Verdict::Unsafe, PropertyKind::Finally(Quantifier::Exists, _)) => {
                    body.push_str(
                        "<p class=\"reason\">No final state satisfies it; all of them were seen.</p>\n",
                    );
                }
                _ => {}
            }
        }
        let model = model.name();
        let heading = Heading { question: &property.name, model, verdict, class, facts };
        self.answer(name, source, heading, body, executions);
    }

    /// Adds an error: the program could not be checked.
    pub fn fail(&mut self, file: &str, message: &str) {
        let body = format!("<p class=\"reason\">{}</p>\n", text(message));
        let file = file.to_owned();
        let (question, model) = (String::new(), String::new());
        let (facts, executions) = (Vec::new(), Vec::new());
        self.push(Answer {
            file,
            question,
            model,
            verdict: "error",
            class: "unsure",
            facts,
            body,
            executions,
        });
    }

    /// Appends the answers of another page.
    pub fn append(&mut self, other: Page) {
        for (verdict, count) in &other.counts {
            *self.counts.entry(verdict).or_default() += count;
        }
        for mut answer in other.answers {
            if self.answers.len() >= MOST_ANSWERS {
                self.room.give(answer.bytes());
                continue;
            }
            for execution in &mut answer.executions {
                let (files, is_known) = self.texts.shared(&execution.files);
                if is_known && !Arc::ptr_eq(&files, &execution.files) {
                    self.room.give(files.len());
                }
                execution.files = files;
            }
            self.answers.push(answer);
        }
    }

    /// Adds an execution: its data to `executions`, and to `body` the element in which the script shows it.
    fn execution(&mut self, view: &View<'_>, body: &mut String, executions: &mut Vec<Execution>) {
        let (files, numbers) = texts::files(view.source, view.spans());
        let json = escape::data(&view.data(&numbers));
        let _ = writeln!(
            body,
            "<div class=\"execution\" data-execution=\"\u{0}{}\"><p>The steps of this execution are drawn by a script; below they stand as text.</p></div>",
            executions.len()
        );
        executions.push(Execution { files: files.into(), json });
    }

    fn answer(
        &mut self,
        name: Option<&str>,
        source: Source<'_>,
        heading: Heading<'_>,
        mut body: String,
        executions: Vec<Execution>,
    ) {
        body.push_str(&remarks(source));
        let Heading { question, model, verdict, class, facts } = heading;
        let (file, question) = (name.unwrap_or(source.name()).to_owned(), question.to_owned());
        let model = model.to_owned();
        self.push(Answer { file, question, model, verdict, class, facts, body, executions });
    }

    fn push(&mut self, mut answer: Answer) {
        *self.counts.entry(answer.verdict).or_default() += 1;
        if self.answers.len() >= MOST_ANSWERS {
            return;
        }
        let mut bytes = answer.bytes();
        for execution in &mut answer.executions {
            let (files, is_known) = self.texts.shared(&execution.files);
            bytes += if is_known { 0 } else { files.len() };
            execution.files = files;
        }
        if !self.room.take(bytes) {
            answer.executions.clear();
            self.texts.forget_unused();
            answer.body =
                "<p class=\"left-out\">The page would become too large: what this stands on is left out. Ask about this program alone.</p>\n".into();
        }
        self.answers.push(answer);
    }

    /// Writes the whole page. `complete` says whether the run answered all of its questions.
    pub fn write(&self, complete: bool, to: &mut dyn io::Write) -> io::Result<()> {
        self.write_in(IN_BROWSER, complete, to)
    }

    /// The page for a panel of VS Code, in its fonts and colours. When a step is selected, the page posts the message `{file, line}` to the editor,
    /// with the number of the file ([`FileId`](fencewright_program::FileId)) and the line counted from 1, or `{}` if the step has no position.
    pub fn for_editor(&self) -> String {
        self.text(IN_EDITOR)
    }

    /// The whole page as a string, for a browser.
    pub fn for_browser(&self) -> String {
        self.text(IN_BROWSER)
    }

    fn text(&self, style: &str) -> String {
        let mut page = Vec::new();
        self.write_in(style, true, &mut page).expect("memory can be written to");
        String::from_utf8(page).expect("a page is a text")
    }

    fn write_in(&self, style: &str, complete: bool, to: &mut dyn io::Write) -> io::Result<()> {
        let title = match &self.answers[..] {
            [] => "nothing was answered".to_owned(),
            [first, rest @ ..] if rest.iter().all(|answer| answer.file == first.file) => first.file.clone(),
            _ => format!("{} answers", grouped(self.counts.values().sum::<usize>() as u64)),
        };
        write!(
            to,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>Fencewright: {}</title>\n<style>{style}</style>\n</head>\n<body>\n",
            hash(SCRIPT),
            hash(style),
            text(&title),
        )?;
        writeln!(to, "<header class=\"top\"><h1>Fencewright</h1><p>{}</p></header>", text(&title))?;
        writeln!(to, "<main>")?;
        if !complete {
            writeln!(to, "<p class=\"left-out\">The run was stopped before everything was asked.</p>")?;
        }
        if self.answers.len() < self.counts.values().sum() {
            let most = grouped(MOST_ANSWERS as u64);
            writeln!(to, "<p class=\"left-out\">There were more answers; the first {most} are here.</p>")?;
        }
        if self.answers.len() != 1 {
            to.write_all(self.table().as_bytes())?;
        }
        let mut executions = 0;
        for (n, answer) in self.answers.iter().enumerate() {
            to.write_all(section(n + 1, answer, executions).as_bytes())?;
            executions += answer.executions.len();
        }
        write!(
            to,
            "</main>\n<footer>Fencewright {}. This page needs no network and sends nothing anywhere.</footer>\n\
             <script type=\"application/json\" id=\"data\">",
            env!("CARGO_PKG_VERSION")
        )?;
        self.write_data(to)?;
        write!(to, "</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
    }

    /// Writes the data for the script: the source files of each program, once, and the executions.
    fn write_data(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let executions = || self.answers.iter().flat_map(|answer| &answer.executions);
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        write!(to, "{{\"programs\":[")?;
        for Execution { files, .. } in executions() {
            let number = numbers.len();
            if numbers.contains_key(&**files) {
                continue;
            }
            numbers.insert(files, number);
            write!(to, "{}{files}", if number == 0 { "" } else { "," })?;
        }
        write!(to, "],\"executions\":[")?;
        for (n, Execution { files, json }) in executions().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(to, "{comma}{{\"program\":{},\"execution\":{json}}}", numbers[&**files])?;
        }
        write!(to, "]}}")
    }

    /// The table of all answers, each linked to its section.
    fn table(&self) -> String {
        let mut html = String::from("<section class=\"answers\" aria-label=\"All answers\">\n<p>");
        for (word, class) in [
            ("safe", "good"),
            ("robust", "good"),
            ("already safe", "good"),
            ("fixed", "good"),
            ("needed", "good"),
            ("superfluous", "unsure"),
            ("unsafe", "bad"),
            ("not robust", "bad"),
            ("unfixable", "bad"),
            ("unknown", "unsure"),
            ("error", "unsure"),
        ] {
            if let Some(count) = self.counts.get(word) {
                let count = grouped(*count as u64);
                let _ = write!(html, "<span class=\"verdict {class}\">{count} {word}</span> ");
            }
        }
        html.push_str("</p>\n<div class=\"scroll\"><table><thead><tr><th>program</th><th>question</th><th>model</th><th>verdict</th><th>how</th></tr></thead><tbody>\n");
        for (n, answer) in self.answers.iter().enumerate() {
            let Answer { file, question, model, verdict, class, facts, .. } = answer;
            let _ = writeln!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td><a class=\"verdict {class}\" href=\"#answer-{}\">{verdict}</a></td><td>{}</td></tr>",
                text(file),
                text(question),
                text(model),
                n + 1,
                text(&facts.join(", ")),
            );
        }
        html.push_str("</tbody></table></div>\n</section>\n");
        html
    }
}

/// The section of an answer; `first` is the index of its first execution in the page.
fn section(number: usize, answer: &Answer, first: usize) -> String {
    let Answer { file, question, model, verdict, class, facts, body, .. } = answer;
    let mut html = format!(
        "<section class=\"answer\" id=\"answer-{number}\">\n<h2><span class=\"verdict {class}\">{verdict}</span> {}</h2>\n<p class=\"facts\">",
        text(question)
    );
    let model = if model.is_empty() { String::new() } else { format!("under {model}") };
    let all = [file.clone(), model].into_iter().chain(facts.iter().cloned()).filter(|fact| !fact.is_empty());
    for fact in all {
        let _ = write!(html, "<span>{}</span> ", text(&fact));
    }
    html.push_str("</p>\n");
    // The numbers of executions and the names of elements are unique only in the answer. Replaces them by ones that are unique in the page.
    let mut parts = body.split('\u{0}');
    html.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match part.strip_prefix('#') {
            Some(rest) => {
                let _ = write!(html, "answer-{number}-{rest}");
            }
            None => {
                let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
                let own: usize = part[..end].parse().unwrap_or_default();
                let _ = write!(html, "{}{}", first + own, &part[end..]);
            }
        }
    }
    html.push_str("</section>\n");
    html
}

/// An execution as text, for readers without scripts and for copying.
fn plain(source: Source<'_>, replayed: &Replayed, property: Option<&Property>) -> String {
    let text = match property {
        Some(property) => words::execution(source, replayed, property, Style::PLAIN),
        None => {
            let cells = words::Cells::all(source, replayed.states.first());
            words::table(source, replayed, &cells, &[], Style::PLAIN)
        }
    };
    let text = text.replace("; --full shows them", "");
    format!(
        "<details class=\"plain\"><summary>The execution as text</summary><pre>{}</pre></details>\n",
        lines(&text)
    )
}

/// The SHA-256 hash of a script or style sheet in base64, as the content security policy names it.
fn hash(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base64 = String::new();
    for bytes in Sha256::digest(text.as_bytes()).chunks(3) {
        let group =
            bytes.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        for digit in 0..4 {
            base64.push(match digit <= bytes.len() {
                true => char::from(DIGITS[(group >> (18 - 6 * digit)) as usize & 63]),
                false => '=',
            });
        }
    }
    base64
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn hashes_are_those_that_browsers_compute() {
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(hash("alert('Hello, world.');"), "qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }
}
