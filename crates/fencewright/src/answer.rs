//! Answers to questions, and reports of these answers.

use std::fmt;

use fencewright_certify::Certificate;
use fencewright_engines::{Checked, Verdict};
use fencewright_fences::{Synthesis, Verdict as Found};
use fencewright_lang::Sources;
use fencewright_program::{MemoryModel, Replayed};
use fencewright_report::html::Page;
use fencewright_report::sarif::Log;
use fencewright_report::{Source, Style, fences, json, text};

use crate::Program;

/// The verdict on one property, with its evidence.
///
/// Its `Display` text is what the command prints: the verdict in one line and, below it, the execution if there is one, or the explanations of an
/// unknown verdict.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) program: Program,
    pub(crate) model: MemoryModel,
    pub(crate) checked: Checked,
}

impl Answer {
    /// The verdict; if it is unknown, with the reason.
    pub fn verdict(&self) -> &Verdict {
        self.checked.verdict()
    }

    /// Whether the property holds.
    pub fn is_safe(&self) -> bool {
        matches!(self.verdict(), Verdict::Safe)
    }

    /// Whether the property is violated.
    pub fn is_unsafe(&self) -> bool {
        matches!(self.verdict(), Verdict::Unsafe)
    }

    /// Whether something other than the engine confirms the verdict: a replayed execution, an accepted certificate, or a second exploration of the
    /// states or executions of the reference semantics.
    pub fn is_confirmed(&self) -> bool {
        self.checked.checked() == Some(true)
    }

    /// The name of the property.
    pub fn property(&self) -> &str {
        &self.checked.property.name
    }

    /// The memory model under which the program was checked.
    pub fn model(&self) -> MemoryModel {
        self.model
    }

    /// The replayed execution that is evidence for the verdict: its events and the states between them. For a `finally exists` property, the
    /// execution shows that the property holds; for all other properties, that the property is violated.
    pub fn execution(&self) -> Option<&Replayed> {
        self.checked.trace()
    }

    /// The certificate of a proof, if there is one.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.checked.certificate()
    }

    /// The program that the question was about.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// All details of the verdict: engine, time, number of states, and the engines that were tried.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// One line of JSON, as `docs/json.md` describes it.
    pub fn json(&self) -> String {
        json::verdict(self.source(), self.model, &self.checked)
    }

    fn source(&self) -> Source<'_> {
        Source::from(self.program.loaded())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::verdict(self.source(), self.model, &self.checked, Style::PLAIN))?;
        f.write_str(&text::evidence(self.source(), &self.checked, Style::PLAIN))
    }
}

/// Answers as one HTML page, with executions that can be stepped through, and with proofs.
///
/// ```
/// use fencewright::{MemoryModel, Program, Question, html, sarif};
///
/// let program = Program::parse("one.fw", "shared x; thread p { x = 1; assert x == 2; }")?;
/// let answers = Question::under(MemoryModel::Tso).check(&program)?;
/// assert!(html(&answers).starts_with("<!DOCTYPE html>"));
/// assert!(sarif(&answers).contains("\"version\": \"2.1.0\""));
/// # Ok::<(), fencewright::Error>(())
/// ```
pub fn html(answers: &[Answer]) -> String {
    let mut page = Page::default();
    answers.iter().for_each(|answer| page.check(None, answer.source(), answer.model, &answer.checked));
    page.for_browser()
}

/// Answers as a SARIF log, for editors and code hosts.
pub fn sarif(answers: &[Answer]) -> String {
    let mut log = Log::default();
    answers.iter().for_each(|answer| log.add(answer.source(), answer.model, &answer.checked));
    let mut written = Vec::new();
    log.write(true, &mut written).expect("memory can be written to");
    String::from_utf8(written).expect("a log is a text")
}

/// Fences with which the properties of a program hold: the cheapest ones, unless [`Synthesis::optimal`] is false.
///
/// Its `Display` text is what the command prints: the verdict, and each fence with the violation that occurs without it.
#[derive(Debug)]
pub struct Fences {
    pub(crate) program: Program,
    pub(crate) goal: &'static str,
    pub(crate) model: MemoryModel,
    pub(crate) found: Synthesis,
    pub(crate) texts: Option<Result<Sources, String>>,
    pub(crate) seconds: f64,
}

impl Fences {
    /// The outcome: no fences are needed, these fences suffice, no set of fences suffices, or the reason why the search gave up.
    pub fn verdict(&self) -> &Found {
        &self.found.verdict
    }

    /// The fences with their places and reasons, their total price, and whether they are known to be the cheapest.
    pub fn found(&self) -> &Synthesis {
        &self.found
    }

    /// The main text of the program with the fences inserted, which was read again and verified. `None` if no sufficient fences were found, or they
    /// cannot be inserted into the text.
    pub fn text(&self) -> Option<&str> {
        self.files().map(|files| files.main().text.as_str())
    }

    /// The texts of all files of the program with the fences inserted: in a C program, fences may be inserted into a header. `None` as for
    /// [`text`](Fences::text).
    pub fn files(&self) -> Option<&Sources> {
        self.texts.as_ref()?.as_ref().ok()
    }
}

impl fmt::Display for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (model, bound, seconds) = (self.model.name(), None, self.seconds);
        let question = fences::Question { goal: self.goal, model, bound, seconds };
        f.write_str(&fences::text(
            Source::from(self.program.loaded()),
            question,
            &self.found,
            true,
            Style::PLAIN,
        ))?;
        match &self.texts {
            Some(Err(why)) => writeln!(f, "{why}"),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}
