//! The tokens of the `.fw` language.

use fencewright_program::{BinaryOp, Span};

/// A token with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The lexical class; for operators and keywords, which one it is.
    pub kind: TokenKind,
    /// Where the token is in the text.
    pub span: Span,
}

/// The lexical classes of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TokenKind {
    Name,
    Number,
    /// `"..."`
    Text,
    Keyword(Keyword),
    /// A binary operator; the parser decides whether `-` is unary and whether `*` is a choice of any value.
    Operator(BinaryOp),
    Not,
    Tilde,
    Assign,
    Semicolon,
    Comma,
    Colon,
    Question,
    Dot,
    DotDot,
    DotDotEqual,
    At,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    /// An operator of another language, such as `:=` or `++`, for which the parser has advice.
    Foreign,
    /// Characters that are not part of the language; the lexer has reported them.
    Unknown,
    /// The end of the file.
    End,
}

macro_rules! keywords {
    ($($variant:ident $text:literal)*) => {
        /// A reserved word, which cannot be used as a name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Keyword { $($variant),* }

        impl Keyword {
            /// Every keyword.
            pub const ALL: &[Keyword] = &[$(Keyword::$variant),*];

            /// The keyword with this text, if there is one.
            pub fn from_text(text: &str) -> Option<Keyword> {
                match text {
                    $($text => Some(Keyword::$variant),)*
                    _ => None,
                }
            }

            /// The text of the keyword.
            pub fn text(self) -> &'static str {
                match self { $(Keyword::$variant => $text),* }
            }
        }
    };
}
keywords! {
    Assert "assert" Assume "assume" Atomic "atomic" Await "await" Break "break" Cas "cas" Choose "choose"
    Const "const" Continue "continue" Cost "cost" Else "else" End "end" Exists "exists" False "false" Fence "fence"
    FetchAdd "fetch_add" Finally "finally" Fn "fn" For "for" Forall "forall" Forbid "forbid" Goto "goto" If "if" In "in"
    Int "int" Invariant "invariant" Lock "lock" Loop "loop" Nat "nat" Never "never" Numbers "numbers" Open "open"
    Or "or" Predicates "predicates" Real "real" Return "return" StoreFence "sfence" Shared "shared" Skip "skip" Snapshot "snapshot"
    Spare "spare" Stop "stop" Swap "swap" Thread "thread" True "true" Unlock "unlock" Var "var" While "while"
}

impl Keyword {
    /// Whether an item may begin with this keyword.
    pub fn begins_item(self) -> bool {
        self == Keyword::Const || self.begins_only_items()
    }

    /// Whether an item, but no statement, may begin with this keyword.
    pub fn begins_only_items(self) -> bool {
        use Keyword::*;
        matches!(
            self,
            Numbers | Shared | Fn | Thread | Forbid | Invariant | Finally | Predicates | Spare | Cost
        )
    }

    /// Whether a statement may begin with this keyword.
    pub fn begins_statement(self) -> bool {
        use Keyword::*;
        matches!(
            self,
            Const
                | Var
                | Skip
                | Fence
                | StoreFence
                | Lock
                | Unlock
                | Atomic
                | Snapshot
                | Assume
                | Assert
                | Await
                | If
                | While
                | Loop
                | For
                | Break
                | Continue
                | Choose
                | Goto
                | Stop
                | Return
        ) || self.begins_operation()
    }

    /// Whether the keyword is a read-modify-write operation.
    pub fn begins_operation(self) -> bool {
        matches!(self, Keyword::Cas | Keyword::Swap | Keyword::FetchAdd)
    }
}

impl TokenKind {
    /// Whether an operand may end with this token, so that a following `-` is binary.
    pub fn ends_operand(self) -> bool {
        use Keyword::{End, False, True};
        match self {
            TokenKind::Name | TokenKind::Number => true,
            TokenKind::CloseParenthesis | TokenKind::CloseBracket => true,
            TokenKind::Keyword(keyword) => matches!(keyword, True | False | End),
            _ => false,
        }
    }
}
