//! Fences as quick fixes.

use std::collections::HashMap;

use fencewright::Changes;
use fencewright::lang::edit::Change;
use fencewright::program::FileId;
use lsp_types::{
    AnnotatedTextEdit, ChangeAnnotation, CodeAction, CodeActionContext, CodeActionDisabled, CodeActionKind,
    CodeActionOrCommand, Diagnostic, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, Range,
    TextDocumentEdit, TextEdit, Uri, WorkspaceEdit,
};

use crate::answers::Answers;
use crate::client::Client;
use crate::fixes::{Fence, Fences, Fixes};
use crate::places::Places;

/// The kind of an action that inserts fences into the whole file.
pub const SOURCE_FENCES: CodeActionKind = CodeActionKind::new("source.fencewright.fences");

/// The data from which code actions are made.
pub struct Offer<'a> {
    /// The program with its answers.
    pub answers: &'a Answers,
    /// The files of the program, with their URIs.
    pub places: &'a Places<'a>,
    /// The versions of open documents.
    pub versions: &'a HashMap<Uri, i32>,
    /// The capabilities of the client.
    pub client: Client,
}

impl Offer<'_> {
    /// The actions for a range of the main file; `shown` are the diagnostics of the program.
    pub fn actions(
        &self,
        range: Range,
        context: &CodeActionContext,
        shown: &[Diagnostic],
    ) -> Vec<CodeActionOrCommand> {
        let wanted = |kind: &CodeActionKind| match &context.only {
            Some(only) => only.iter().any(|only| {
                kind.as_str() == only.as_str() || kind.as_str().starts_with(&format!("{}.", only.as_str()))
            }),
            None => true,
        };
        let mut actions = Vec::new();
        for fixes in &self.answers.fixes {
            let violations: Vec<Diagnostic> =
                shown.iter().filter(|d| is_about(d, fixes) && touches(d.range, range)).cloned().collect();
            // If the range has a violation, the action is a quick fix of this violation; otherwise it is an action on the whole file.
            let kind = if violations.is_empty() { SOURCE_FENCES } else { CodeActionKind::QUICKFIX };
            match &fixes.fences {
                Ok(fences) => {
                    if wanted(&kind) {
                        actions.push(self.all(fixes, fences, kind, violations));
                    }
                    let several = fences.each.len() > 1 && wanted(&CodeActionKind::QUICKFIX);
                    let here = fences.each.iter().filter(|fence| {
                        let line = self.places.range(fence.place);
                        several && line.is_some_and(|line| touches(line, range))
                    });
                    actions.extend(here.filter_map(|fence| self.single(fixes, fences, fence)));
                }
                Err(why) if wanted(&kind) && self.client.disabled_actions && !violations.is_empty() => {
                    actions.push(CodeAction {
                        title: format!("insert fences that make it safe under {}", fixes.model.name()),
                        kind: Some(kind),
                        diagnostics: Some(violations),
                        disabled: Some(CodeActionDisabled { reason: why.clone() }),
                        ..CodeAction::default()
                    });
                }
                Err(_) => {}
            }
        }
        actions.into_iter().map(CodeActionOrCommand::CodeAction).collect()
    }

    /// The action that inserts all fences at once.
    fn all(
        &self,
        fixes: &Fixes,
        fences: &Fences,
        kind: CodeActionKind,
        violations: Vec<Diagnostic>,
    ) -> CodeAction {
        let (what, how_many) = match fences.each.len() {
            1 => ("the fence".to_string(), "makes"),
            several => (format!("the {several} fences"), "make"),
        };
        let whose = if fixes.all { "it".into() } else { fixes.properties.join(", ") };
        let title = format!("insert {what} that {how_many} {whose} safe under {}", fixes.model.name());
        CodeAction {
            title,
            kind: Some(kind),
            diagnostics: (!violations.is_empty()).then_some(violations),
            edit: Some(self.edit(&fences.changes, &fences.each.iter().collect::<Vec<_>>())),
            is_preferred: Some(fences.optimal),
            ..CodeAction::default()
        }
    }

    /// The action that inserts one of several fences; `None` if this fence alone cannot be inserted.
    fn single(&self, fixes: &Fixes, fences: &Fences, fence: &Fence) -> Option<CodeAction> {
        let changes = fence.changes.as_ref()?;
        let of = format!("one of the {} needed under {}", fences.each.len(), fixes.model.name());
        Some(CodeAction {
            title: format!("insert {} ({of}): {}", fence.words, fence.why),
            kind: Some(CodeActionKind::QUICKFIX),
            edit: Some(self.edit(changes, &[fence])),
            ..CodeAction::default()
        })
    }

    /// The changes as a workspace edit that the client supports, with the reasons of the fences if the client can show them.
    fn edit(&self, changes: &Changes, fences: &[&Fence]) -> WorkspaceEdit {
        let mut plain: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        let mut documents = Vec::new();
        let mut annotations = HashMap::new();
        for (file, changes) in changes {
            let Some((uri, lines)) = self.places.file(*file) else { continue };
            let mut changes: Vec<&Change> = changes.iter().collect();
            // Several insertions at one offset keep their order.
            changes.sort_by_key(|change| change.at);
            let mut edits = Vec::new();
            for change in changes {
                let range = lines.range(change.at..change.at + change.length);
                let text_edit = TextEdit { range, new_text: change.text.clone() };
                plain.entry(uri.clone()).or_default().push(text_edit.clone());
                if !self.client.annotated_edits {
                    edits.push(OneOf::Left(text_edit));
                    continue;
                }
                let annotation_id = format!("fence {}", annotations.len() + 1);
                annotations.insert(annotation_id.clone(), annotation(*file, change, fences));
                edits.push(OneOf::Right(AnnotatedTextEdit { text_edit, annotation_id }));
            }
            let (version, uri) = (self.versions.get(uri).copied(), uri.clone());
            let text_document = OptionalVersionedTextDocumentIdentifier { version, uri };
            documents.push(TextDocumentEdit { text_document, edits });
        }
        if !self.client.versioned_edits {
            return WorkspaceEdit { changes: Some(plain), ..WorkspaceEdit::default() };
        }
        WorkspaceEdit {
            changes: None,
            document_changes: Some(DocumentChanges::Edits(documents)),
            change_annotations: self.client.annotated_edits.then_some(annotations),
        }
    }
}

/// The annotation of a change: the label and the reason of the fence that makes this change by itself; if no fence does, the labels and reasons of
/// all fences.
fn annotation(file: FileId, change: &Change, fences: &[&Fence]) -> ChangeAnnotation {
    let makes = |fence: &Fence| {
        let own = fence.changes.as_ref().and_then(|changes| changes.get(&file));
        own.is_some_and(|own| own.contains(change))
    };
    let (label, description) = match fences.iter().find(|fence| makes(fence)) {
        Some(fence) => (fence.words.clone(), fence.why.clone()),
        None => {
            let all = fences.iter().map(|fence| format!("{}: {}", fence.words, fence.why));
            ("fences".into(), all.collect::<Vec<_>>().join("; "))
        }
    };
    ChangeAnnotation { label, needs_confirmation: Some(false), description: Some(description) }
}

/// Whether a diagnostic is a violation that the fences prevent; if there are no fences, whether it is a violation under the memory model of `fixes`.
fn is_about(diagnostic: &Diagnostic, fixes: &Fixes) -> bool {
    let data = |key: &str| diagnostic.data.as_ref()?.get(key)?.as_str();
    data("model") == Some(fixes.model.name())
        && data("property")
            .is_some_and(|name| fixes.fences.is_err() || fixes.properties.iter().any(|known| known == name))
}

fn touches(one: Range, other: Range) -> bool {
    one.start.line <= other.end.line && other.start.line <= one.end.line
}
