//! Semantic tokens of `.fw` files.

use std::collections::HashMap;

use fencewright::lang::ast::File;
use fencewright::lang::fw::{self, MAX_TOKENS, TokenKind};
use fencewright::program::Span;
use lsp_types::{SemanticToken, SemanticTokenType, SemanticTokens, SemanticTokensLegend};

use crate::names::{Kind, Names};
use crate::text::{Encoding, Lines};

/// Maximum number of names that are resolved, because resolving each takes time. Later names are coloured by the editor's grammar.
const MOST_NAMES: usize = 20_000;

const LABEL: SemanticTokenType = SemanticTokenType::new("label");

const TYPES: [SemanticTokenType; 7] = [
    SemanticTokenType::VARIABLE,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::ENUM_MEMBER,
    SemanticTokenType::CLASS,
    SemanticTokenType::FUNCTION,
    // Not a standard token type; editors that do not know it use the colour of their grammar.
    LABEL,
    SemanticTokenType::PROPERTY,
];

/// The token types in the order of their numbers.
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend { token_types: TYPES.to_vec(), token_modifiers: Vec::new() }
}

/// The tokens of declared names, by the kind of their declaration. All other words are coloured by the editor's grammar.
pub fn tokens(file: &File, text: &str, encoding: Encoding) -> SemanticTokens {
    let lexed = fw::lex(text, MAX_TOKENS);
    let names = lexed.tokens.iter().filter(|token| token.kind == TokenKind::Name).map(|token| token.span);
    let names: Vec<Span> = names.take(MOST_NAMES).collect();
    // A name that is declared only once in the file need not be resolved at each use.
    let mut once: HashMap<String, Option<Kind>> = HashMap::new();
    let known = Names::new(file);
    for declared in known.all() {
        once.entry(declared.name.clone()).and_modify(|kind| *kind = None).or_insert(Some(declared.kind));
    }
    let lines = Lines::new(text, encoding);
    let mut data = Vec::new();
    let (mut line, mut column) = (0, 0);
    for span in names {
        let word = &text[span.range()];
        let kind = match once.get(word) {
            None => continue,
            Some(Some(kind)) => Some(*kind),
            Some(None) => known.declaration(text, span.start as usize).map(|declared| declared.kind),
        };
        let Some(kind) = kind else { continue };
        let at = lines.position(span.start as usize);
        let delta_line = at.line - line;
        let delta_start = if delta_line == 0 { at.character - column } else { at.character };
        (line, column) = (at.line, at.character);
        data.push(SemanticToken {
            delta_line,
            delta_start,
            length: encoding.length(word) as u32,
            token_type: number(kind),
            token_modifiers_bitset: 0,
        });
    }
    SemanticTokens { result_id: None, data }
}

fn number(kind: Kind) -> u32 {
    let of = match kind {
        Kind::Shared | Kind::Mutex => SemanticTokenType::VARIABLE,
        Kind::Register | Kind::Member => SemanticTokenType::PARAMETER,
        Kind::Constant => SemanticTokenType::ENUM_MEMBER,
        Kind::Thread => SemanticTokenType::CLASS,
        Kind::Procedure => SemanticTokenType::FUNCTION,
        Kind::Label => LABEL,
        Kind::Property => SemanticTokenType::PROPERTY,
    };
    TYPES.iter().position(|known| *known == of).unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_were_declared_as() {
        let text = "shared x;\nthread p { var r; r = x; }\nthread q { var x2, r; l: r = x; goto l; }";
        let (file, _) = fw::parse(text);
        let found = tokens(&file, text, Encoding::Utf16).data;
        let known = legend().token_types;
        let types: Vec<&str> = found.iter().map(|token| known[token.token_type as usize].as_str()).collect();
        assert_eq!(
            types,
            [
                "variable",
                "class",
                "parameter",
                "parameter",
                "variable",
                "class",
                "parameter",
                "parameter",
                "label",
                "parameter",
                "variable",
                "label"
            ]
        );
        assert_eq!((found[1].delta_line, found[1].delta_start, found[1].length), (1, 7, 1));
    }
}
