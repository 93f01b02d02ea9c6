//! The outline of a program.

use fencewright::lang::ast::File;
use lsp_types::{DocumentSymbol, SymbolKind};

use crate::names::{Declaration, Kind, declarations};
use crate::text::Lines;

/// The outline of a file. The declarations inside a thread or procedure are its children.
pub fn symbols(file: &File, lines: &Lines<'_>) -> Vec<DocumentSymbol> {
    let mut symbols: Vec<DocumentSymbol> = Vec::new();
    for declared in declarations(file) {
        let symbol = symbol(&declared, lines);
        match symbols.last_mut().filter(|_| declared.inside.is_some()) {
            Some(outer) => outer.children.get_or_insert_default().push(symbol),
            None => symbols.push(symbol),
        }
    }
    symbols
}

#[allow(deprecated)] // The field has to be given a value.
fn symbol(declared: &Declaration, lines: &Lines<'_>) -> DocumentSymbol {
    let (kind, detail) = match declared.kind {
        Kind::Shared => (SymbolKind::VARIABLE, "shared"),
        Kind::Mutex => (SymbolKind::VARIABLE, "mutex"),
        Kind::Constant => (SymbolKind::CONSTANT, "const"),
        Kind::Register => (SymbolKind::FIELD, "var"),
        Kind::Member => (SymbolKind::TYPE_PARAMETER, "number of the thread"),
        Kind::Label => (SymbolKind::KEY, "label"),
        Kind::Thread => (SymbolKind::CLASS, "thread"),
        Kind::Procedure => (SymbolKind::FUNCTION, "fn"),
        Kind::Property => (SymbolKind::EVENT, "property"),
    };
    // If an importer generated the declaration around a name, only the name has a position in the text.
    let whole = if declared.whole.covers(declared.span) { declared.whole } else { declared.span };
    DocumentSymbol {
        name: declared.name.clone(),
        detail: Some(detail.into()),
        kind,
        tags: None,
        deprecated: None,
        range: lines.range(whole.range()),
        selection_range: lines.range(declared.span.range()),
        children: None,
    }
}
