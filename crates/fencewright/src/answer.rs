//! Answers, and reports of them.

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

/// The verdict about one property, with what it stands on.
///
/// It is displayed as the command prints it: the verdict in one line, and below it the execution of a violation.
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

    /// Whether the property holds in all executions.
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

    /// The memory model.
    pub fn model(&self) -> MemoryModel {
        self.model
    }

    /// The execution that shows the verdict, replayed: its events and the states between them. For `finally exists` it shows that the property
    /// holds, for all others that it is violated.
    pub fn execution(&self) -> Option<&Replayed> {
        self.checked.trace()
    }

    /// The certificate of a proof, if there is one.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.checked.certificate()
    }

    /// The program that was asked about.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Everything that is known about the verdict: engine, time, states, what was tried.
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

/// Answers as one page for a browser, with executions to step through and proofs to look at.
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

/// The cheapest fences with which the properties of a program hold.
///
/// It is displayed as the command prints it: each fence with the execution that comes back without it.
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
    /// The outcome: no fences are needed, these suffice, none help, or why the search gave up.
    pub fn verdict(&self) -> &Found {
        &self.found.verdict
    }

    /// The fences with their places and reasons, what they cost, whether they are known to be the cheapest.
    pub fn found(&self) -> &Synthesis {
        &self.found
    }

    /// The text of the program with the fences in it, which was read again and verified. `None` if there are no fences that suffice, or they
    /// cannot be written in the language of the text.
    pub fn text(&self) -> Option<&str> {
        self.files().map(|files| files.main().text.as_str())
    }

    /// The same for all files of the program: fences may belong into a header of a C program.
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
