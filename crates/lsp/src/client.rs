//! Capabilities of the client.

use lsp_types::{ClientCapabilities, MarkupKind};

use crate::text::Encoding;

/// The capabilities of the client that the server uses.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The unit of columns in positions.
    pub encoding: Encoding,
    /// Whether the client shows related locations of a diagnostic.
    pub related: bool,
    /// Whether the server can ask the client to refresh code lenses.
    pub refreshes_lenses: bool,
    /// Whether the client can show the progress of the server's jobs.
    pub progress: bool,
    /// Whether edits may say which version of a document they are for.
    pub versioned_edits: bool,
    /// Whether edits may have annotations with reasons.
    pub annotated_edits: bool,
    /// Whether the client shows disabled actions with the reason.
    pub disabled_actions: bool,
    /// Whether hovers may be Markdown.
    pub markdown: bool,
    /// Whether the server can ask the client to show a document.
    pub shows_documents: bool,
    /// Whether the server can ask the client for its settings.
    pub configuration: bool,
}

impl Client {
    /// Reads the capabilities from the parameters of the `initialize` request.
    pub fn new(capabilities: &ClientCapabilities) -> Self {
        let general = capabilities.general.as_ref();
        let offered = general.and_then(|general| general.position_encodings.as_deref());
        let text = capabilities.text_document.as_ref();
        let workspace = capabilities.workspace.as_ref();
        let window = capabilities.window.as_ref();
        let edits = workspace.and_then(|workspace| workspace.workspace_edit.as_ref());
        let actions = text.and_then(|text| text.code_action.as_ref());
        let hover = text.and_then(|text| text.hover.as_ref()).and_then(|hover| hover.content_format.as_ref());
        let lenses = workspace.and_then(|workspace| workspace.code_lens.as_ref());
        let published = text.and_then(|text| text.publish_diagnostics.as_ref());
        let shown = window.and_then(|window| window.show_document.as_ref());
        Client {
            encoding: Encoding::negotiated(offered),
            related: published.and_then(|published| published.related_information).unwrap_or(false),
            refreshes_lenses: lenses.and_then(|lenses| lenses.refresh_support).unwrap_or(false),
            progress: window.and_then(|window| window.work_done_progress).unwrap_or(false),
            versioned_edits: edits.and_then(|edits| edits.document_changes).unwrap_or(false),
            annotated_edits: edits.is_some_and(|edits| edits.change_annotation_support.is_some()),
            disabled_actions: actions.and_then(|actions| actions.disabled_support).unwrap_or(false),
            markdown: hover.is_some_and(|formats| formats.contains(&MarkupKind::Markdown)),
            shows_documents: shown.is_some_and(|shown| shown.support),
            configuration: workspace.and_then(|workspace| workspace.configuration).unwrap_or(false),
        }
    }
}
