//! The words and signs of the `.fw` language.

use fencewright_program::{BinaryOp, Span};

/// A word or sign with the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TokenKind {
    Name,
    Number,
    /// `"..."`
    Text,
    Keyword(Keyword),
    /// A binary operator; `-` may turn out to be unary and `*` to mean any value.
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
    /// An operator of other languages, such as `:=` or `++`: the parser knows what to say about it.
    Foreign,
    /// Characters the language has no use for; the lexer has reported them.
    Unknown,
    /// The end of the file.
    End,
}

macro_rules! keywords {
    ($($variant:ident $text:literal)*) => {
        /// A word that cannot be used as a name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Keyword { $($variant),* }

        impl Keyword {
            /// Every keyword.
            pub const ALL: &[Keyword] = &[$(Keyword::$variant),*];

            /// The keyword that is written like this.
            pub fn from_text(text: &str) -> Option<Keyword> {
                match text {
                    $($text => Some(Keyword::$variant),)*
                    _ => None,
                }
            }

            /// The keyword as it is written.
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
    /// Whether an item may begin with it.
    pub fn begins_item(self) -> bool {
        self == Keyword::Const || self.begins_only_items()
    }

    /// Whether an item may begin with it and a statement may not.
    pub fn begins_only_items(self) -> bool {
        use Keyword::*;
        matches!(
            self,
            Numbers | Shared | Fn | Thread | Forbid | Invariant | Finally | Predicates | Spare | Cost
        )
    }

    /// Whether a statement may begin with it.
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

    /// Whether it is a read-modify-write operation.
    pub fn begins_operation(self) -> bool {
        matches!(self, Keyword::Cas | Keyword::Swap | Keyword::FetchAdd)
    }
}

impl TokenKind {
    /// Whether an operand of an expression can end with it, so that a `-` after it is binary.
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
