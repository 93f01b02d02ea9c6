//! Diagnostics of programs: errors, warnings, assumptions, violated properties and superfluous fences.

use std::collections::BTreeMap;

use fencewright::engines::{Checked, Verdict};
use fencewright::fences::audit::Need;
use fencewright::lang::{self as lang, LoadError, Sources};
use fencewright::program::{MemoryModel, Span};
use fencewright_report::sarif::{rule, shown_at};
use fencewright_report::step::steps;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location, NumberOrString,
    Range, Uri,
};

use serde_json::json;

use crate::answers::Answers;
use crate::places::Places;

/// Maximum number of steps shown of an execution; earlier steps are left out.
const MOST_STEPS: usize = 200;
/// The name of the tool in all diagnostics.
const SOURCE: &str = "fencewright";

/// Diagnostics by file. An empty list clears earlier diagnostics of the file.
pub type ByFile = BTreeMap<Uri, Vec<Diagnostic>>;

/// Makes the diagnostics of a program.
pub struct Writer<'a> {
    /// The URIs and lines of the program's files.
    pub places: &'a Places<'a>,
    /// The texts of the program's files, for messages.
    pub sources: &'a Sources,
    /// The URI of the main file.
    pub main: &'a Uri,
    /// Whether the client shows related locations of a diagnostic.
    pub related: bool,
}

/// A warning about a whole file.
pub fn warning(message: String) -> Diagnostic {
    let severity = Some(DiagnosticSeverity::WARNING);
    Diagnostic { severity, source: Some(SOURCE.into()), message, ..Diagnostic::default() }
}

impl Writer<'_> {
    /// The errors in a text.
    pub fn errors(&self, error: &LoadError) -> ByFile {
        self.sorted(error.diagnostics.iter().map(|d| self.diagnostic(d, DiagnosticSeverity::ERROR)))
    }

    /// The warnings, assumptions, violations and superfluous fences of a program.
    pub fn answers(&self, answers: &Answers) -> ByFile {
        let warnings = answers.program.loaded().warnings.iter().chain(&answers.warnings);
        let warnings = warnings.map(|warning| self.diagnostic(warning, DiagnosticSeverity::WARNING));
        let assumed = answers.program.loaded().facts.assumed.iter();
        let assumed = assumed.map(|one| lang::Diagnostic::new(one.span, format!("assumed: {one}")));
        let assumed = assumed.map(|one| self.diagnostic(&one, DiagnosticSeverity::INFORMATION));
        let violated = |checked: &&Checked| matches!(checked.verdict(), Verdict::Unsafe);
        let verdicts = answers.verdicts.iter().map(|((model, _), checked)| (*model, &**checked));
        let violations = verdicts.filter(|(_, checked)| violated(checked));
        let violations = violations.map(|(model, checked)| self.violation(answers, model, checked));
        self.sorted(warnings.chain(assumed).chain(violations).chain(self.superfluous(answers)))
    }

    fn sorted(&self, all: impl Iterator<Item = (Location, Diagnostic)>) -> ByFile {
        let mut sorted = ByFile::from_iter(self.places.uris().map(|uri| (uri.clone(), Vec::new())));
        all.for_each(|(at, diagnostic)| sorted.entry(at.uri).or_default().push(diagnostic));
        sorted
    }

    /// The location and message of a diagnostic. If the editor cannot show the file, the location is the beginning of the program, and the message
    /// names the position.
    fn shown(&self, span: Span, message: String) -> (Location, String) {
        match self.places.location(span) {
            Some(location) => (location, message),
            None => {
                let location = Location { uri: self.main.clone(), range: Range::default() };
                (location, format!("{}: {message}", self.sources.position(span)))
            }
        }
    }

    fn diagnostic(&self, found: &lang::Diagnostic, severity: DiagnosticSeverity) -> (Location, Diagnostic) {
        let help = found.help.as_ref().map_or_else(String::new, |help| format!("\nhelp: {help}"));
        let (location, message) = self.shown(found.span, format!("{}{help}", found.message));
        let label = found
            .label
            .iter()
            .filter(|_| self.related)
            .map(|label| DiagnosticRelatedInformation { location: location.clone(), message: label.clone() });
        let related: Vec<DiagnosticRelatedInformation> = label.collect();
        let message = match &found.label {
            Some(label) if !self.related => format!("{message}\n{label}"),
            _ => message,
        };
        let diagnostic = Diagnostic {
            range: location.range,
            severity: Some(severity),
            source: Some(SOURCE.into()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        };
        (location, diagnostic)
    }

    /// A violation, where [`shown_at`] says or else at the property, with the steps of the execution.
    fn violation(&self, answers: &Answers, model: MemoryModel, checked: &Checked) -> (Location, Diagnostic) {
        let property = &checked.property;
        let mut message = format!("{} is violated under {}", property.name, model.name());
        let mut at = property.span;
        let mut related = Vec::new();
        if let Some(replayed) = checked.trace() {
            let source = answers.source();
            if let Some((span, words)) = shown_at(source, replayed, property) {
                at = span;
                message.push_str(&format!(": {words}"));
            }
            let skipped = replayed.events.len().saturating_sub(MOST_STEPS);
            // A flush has no source location, so it is shown together with the next step.
            let mut flushes = String::new();
            for (n, step) in steps(source, replayed).enumerate().skip(skipped) {
                let words = step.words();
                if source.hides() && words.is_empty() {
                    continue;
                }
                let words = format!("{}: {words}", step.thread().name);
                let Some(location) = step.shown_span().and_then(|span| self.places.location(span)) else {
                    flushes.push_str(&format!("{words}; "));
                    continue;
                };
                let message = format!("{}. {flushes}{words}", n + 1);
                flushes.clear();
                related.push(DiagnosticRelatedInformation { location, message });
            }
            if let (Some(last), false) = (related.last_mut(), flushes.is_empty()) {
                last.message.push_str(&format!("; then {}", flushes.trim_end_matches("; ")));
            }
        }
        if checked.happens_under_sc {
            message.push_str("; it happens under sc too: no fence can help");
        }
        let (location, message) = self.shown(at, message);
        let diagnostic = Diagnostic {
            range: location.range,
            severity: Some(DiagnosticSeverity::ERROR),
            code: Some(NumberOrString::String(rule(property).into())),
            source: Some(SOURCE.into()),
            message,
            related_information: (self.related && !related.is_empty()).then_some(related),
            data: Some(json!({"property": property.name, "model": model.name()})),
            ..Diagnostic::default()
        };
        (location, diagnostic)
    }

    /// Fences that are needed under none of the relaxed models, and can be removed together under each of them.
    fn superfluous(&self, answers: &Answers) -> Vec<(Location, Diagnostic)> {
        let mut all: BTreeMap<Span, Vec<MemoryModel>> = BTreeMap::new();
        for (model, needs) in &answers.needs {
            let unneeded = |need: &Need| matches!(need, Need::Superfluous { together: true });
            needs
                .iter()
                .filter(|a| unneeded(&a.need))
                .for_each(|a| all.entry(a.span).or_default().push(*model));
        }
        let relaxed = answers.models.iter().filter(|model| **model != MemoryModel::Sc).count();
        let everywhere = all.into_iter().filter(|(_, models)| models.len() == relaxed);
        everywhere
            .map(|(span, models)| {
                let models: Vec<&str> = models.iter().map(|model| model.name()).collect();
                let message = format!("this fence is not needed under {}", models.join(" and "));
                let (location, message) = self.shown(span, message);
                let diagnostic = Diagnostic {
                    range: location.range,
                    severity: Some(DiagnosticSeverity::HINT),
                    source: Some(SOURCE.into()),
                    message,
                    tags: Some(vec![DiagnosticTag::UNNECESSARY]),
                    ..Diagnostic::default()
                };
                (location, diagnostic)
            })
            .collect()
    }
}
