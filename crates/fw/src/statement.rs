//! Parsing of statements and blocks.

use fencewright_program::{BinaryOp, Span};
use fencewright_text::Diagnostic;

use super::lexer::{clip, text_value};
use super::parser::{Parse, Parser, Reported};
use super::slips;
use super::token::{Keyword, TokenKind};
use crate::ast::*;

impl Parser<'_> {
    /// `{ ... }`; the `{` is the next token.
    pub(super) fn block(&mut self) -> Parse<Block> {
        let open = self.token().span;
        if let Err(reported) = self.enter() {
            self.skip_braces();
            return Err(reported);
        }
        self.bump();
        let nesting = self.nesting;
        let mut statements = Vec::new();
        loop {
            let start = self.token();
            match start.kind {
                TokenKind::CloseBrace => {
                    self.bump();
                    break;
                }
                TokenKind::End => {
                    let help = format!("the block that begins in line {} does not end", self.line_of(open));
                    self.expected_with("`}`", Some(help));
                    break;
                }
                TokenKind::Keyword(keyword)
                    if keyword.begins_only_items() && !self.next_makes_it_a_name() =>
                {
                    let help = format!(
                        "a `}}` is missing before it (the block that begins in line {} does not end), or it belongs \
                         outside the thread",
                        self.line_of(open)
                    );
                    self.expected_with("a statement or `}`", Some(help));
                    break;
                }
                _ => match self.statement() {
                    Ok(statement) => statements.push(statement),
                    Err(Reported) => {
                        self.nesting = nesting;
                        let stuck = self.token() == start && start.kind != TokenKind::OpenBrace;
                        if !stuck || self.bump().kind != TokenKind::Semicolon {
                            self.skip_statement();
                        }
                        self.nesting = nesting;
                    }
                },
            }
        }
        self.nesting -= 1;
        Ok(Block { statements, span: self.since(open) })
    }

    /// Whether the next token, a keyword, is used as the name of a label or of an assigned variable.
    fn next_makes_it_a_name(&self) -> bool {
        matches!(self.peek_at(1), TokenKind::Colon | TokenKind::Assign)
    }

    /// Skips the rest of a statement. Blocks on the way are parsed, to report the errors in them.
    fn skip_statement(&mut self) {
        let start = self.token();
        loop {
            match self.peek() {
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::CloseBrace | TokenKind::End => return,
                TokenKind::OpenBrace => {
                    let _ = self.block();
                    if !self.at_keyword(Keyword::Else) && !self.at_keyword(Keyword::Or) {
                        return;
                    }
                    self.bump();
                }
                TokenKind::Keyword(keyword)
                    if self.first_on_line()
                        && (keyword.begins_only_items()
                            || keyword.begins_statement() && self.token() != start) =>
                {
                    return;
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    fn statement(&mut self) -> Parse<Statement> {
        let mut labels = Vec::new();
        while matches!(self.peek(), TokenKind::Name | TokenKind::Keyword(_))
            && self.peek_at(1) == TokenKind::Colon
        {
            labels.push(self.name("a label")?);
            self.bump();
        }
        if self.at(TokenKind::CloseBrace) && !labels.is_empty() {
            return Ok(Statement { labels, kind: StatementKind::Empty, span: self.previous_end() });
        }
        let start = self.token().span;
        let kind = self.statement_kind()?;
        Ok(Statement { labels, kind, span: self.since(start) })
    }

    fn statement_kind(&mut self) -> Parse<StatementKind> {
        let keyword = match self.peek() {
            TokenKind::Name => return self.assignment(),
            TokenKind::OpenBrace => return self.block().map(StatementKind::Block),
            TokenKind::Keyword(keyword) if self.next_makes_it_a_name() => {
                self.keyword_as_name(keyword);
                return self.assignment();
            }
            TokenKind::Keyword(keyword) => keyword,
            _ => return Err(self.no_statement()),
        };
        match keyword {
            Keyword::Const => self.constant().map(StatementKind::Const),
            Keyword::Var => {
                self.bump();
                let declarators = self.declarators(true)?;
                self.semicolon("the declaration")?;
                Ok(StatementKind::Var(declarators))
            }
            Keyword::Skip => self.word(StatementKind::Skip),
            Keyword::Fence => self.word(StatementKind::Fence),
            Keyword::StoreFence => self.word(StatementKind::StoreFence),
            Keyword::Lock => self.mutex_statement(StatementKind::Lock),
            Keyword::Unlock => self.mutex_statement(StatementKind::Unlock),
            Keyword::Break => self.word(StatementKind::Break),
            Keyword::Continue => self.word(StatementKind::Continue),
            Keyword::Stop => self.word(StatementKind::Stop),
            Keyword::Assume => self.condition_statement(StatementKind::Assume),
            Keyword::Assert => self.assertion(),
            Keyword::Return => self.return_statement(),
            Keyword::Await => self.condition_statement(StatementKind::Await),
            Keyword::Atomic => self.block_statement("`atomic`").map(StatementKind::Atomic),
            Keyword::Snapshot => self.block_statement("`snapshot`").map(StatementKind::Snapshot),
            Keyword::Loop => self.block_statement("`loop`").map(StatementKind::Loop),
            Keyword::If => self.if_statement(),
            Keyword::While => {
                self.bump();
                let condition = self.expression()?;
                let body = self.body("the condition of `while`")?;
                Ok(StatementKind::While(condition, body))
            }
            Keyword::For => self.for_statement(),
            Keyword::Choose => self.choose_statement(),
            Keyword::Goto => {
                self.bump();
                let label = self.name("a label")?;
                self.semicolon("the label")?;
                Ok(StatementKind::Goto(label))
            }
            _ if keyword.begins_operation() => {
                let operation = self.operation(keyword)?;
                if matches!(self.peek(), TokenKind::Operator(_)) {
                    let help =
                        "as a part of a larger expression it must be assigned: `r = cas(x, 0, 1) + 1;`";
                    return Err(self.expected_with("`;` after the operation", Some(help.into())));
                }
                self.semicolon("the operation")?;
                Ok(StatementKind::Expr(operation))
            }
            _ => Err(self.no_statement()),
        }
    }

    /// A statement that is a single word.
    fn word(&mut self, kind: StatementKind) -> Parse<StatementKind> {
        let span = self.bump().span;
        if self.at(TokenKind::OpenParenthesis) {
            let help = format!("write `{};`: it takes no arguments", self.text_of(span));
            return Err(self.expected_with(&format!("`;` after `{}`", self.text_of(span)), Some(help)));
        }
        self.semicolon(&format!("`{}`", self.text_of(span)))?;
        Ok(kind)
    }

    fn condition_statement(&mut self, kind: fn(Expr) -> StatementKind) -> Parse<StatementKind> {
        self.bump();
        let condition = self.expression()?;
        self.semicolon("the condition")?;
        Ok(kind(condition))
    }

    /// `assert e;` or `assert e, "text";`
    fn assertion(&mut self) -> Parse<StatementKind> {
        self.bump();
        let condition = self.expression()?;
        let text = if self.eat(TokenKind::Comma) {
            let help = "write `assert x == 1, \"x is set\";`";
            if !self.at(TokenKind::Text) {
                return Err(self.expected_with("a text in quotes", Some(help.into())));
            }
            let span = self.bump().span;
            Some(text_value(self.text_of(span)))
        } else {
            None
        };
        self.semicolon("the assertion")?;
        Ok(StatementKind::Assert(condition, text))
    }

    /// `lock;` or `lock m;`, and the same with `unlock`
    fn mutex_statement(&mut self, kind: fn(Option<Place>) -> StatementKind) -> Parse<StatementKind> {
        // After `lock` without a `;`, a name on the next line may be the start of the next statement instead of a mutex.
        let names = matches!(self.peek_at(2), TokenKind::Semicolon | TokenKind::OpenBracket);
        if self.peek_at(1) != TokenKind::Name || !names && !self.next_on_line() {
            return self.word(kind(None));
        }
        self.bump();
        let mutex = self.place()?;
        self.semicolon("the mutex")?;
        Ok(kind(Some(mutex)))
    }

    /// `return;` or `return e;`
    fn return_statement(&mut self) -> Parse<StatementKind> {
        self.bump();
        let ends = match self.peek() {
            TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End => true,
            // The next statement begins here, so `return` has no value and its `;` is missing.
            TokenKind::Keyword(keyword) => keyword.begins_statement() && !keyword.begins_operation(),
            TokenKind::Name => matches!(self.peek_at(1), TokenKind::Assign | TokenKind::Colon),
            _ => false,
        };
        let value = if ends { None } else { Some(self.expression()?) };
        self.semicolon(if ends { "`return`" } else { "the result" })?;
        Ok(StatementKind::Return(value))
    }

    fn block_statement(&mut self, after: &str) -> Parse<Block> {
        self.bump();
        self.body(after)
    }

    /// The block of a compound statement. If the braces are missing, a single statement is used as the block.
    fn body(&mut self, after: &str) -> Parse<Block> {
        if !self.at(TokenKind::OpenBrace)
            && let Err(reported) = self.missing_brace(after)
        {
            let begins = match self.peek() {
                TokenKind::Name => true,
                TokenKind::Keyword(keyword) => keyword.begins_statement(),
                _ => false,
            };
            if !begins {
                return Err(reported);
            }
            self.enter()?;
            let statement = self.statement()?;
            self.nesting -= 1;
            let span = statement.span;
            return Ok(Block { statements: vec![statement], span });
        }
        self.block()
    }

    fn if_statement(&mut self) -> Parse<StatementKind> {
        self.bump();
        let condition = self.expression()?;
        let then = self.body("the condition of `if`")?;
        if !self.eat_keyword(Keyword::Else) {
            return Ok(StatementKind::If(condition, then, None));
        }
        let otherwise = if self.at_keyword(Keyword::If) {
            // Each `else if` adds a level to the tree, so it counts towards the nesting limit.
            self.enter()?;
            let start = self.token().span;
            let kind = self.if_statement()?;
            self.nesting -= 1;
            let span = self.since(start);
            Block { statements: vec![Statement { labels: Vec::new(), kind, span }], span }
        } else {
            self.body("`else`")?
        };
        Ok(StatementKind::If(condition, then, Some(otherwise)))
    }

    fn for_statement(&mut self) -> Parse<StatementKind> {
        self.bump();
        let help = || Some("a `for` goes through a range: `for j in 0..N { ... }`".to_string());
        if !self.at(TokenKind::Name) && !matches!(self.peek(), TokenKind::Keyword(_)) {
            let reported = self.expected_with("the name of the index", help());
            // Skips the head of a C-style `for`, which contains `;`.
            while !self.first_on_line() && !matches!(self.peek(), TokenKind::OpenBrace | TokenKind::End) {
                self.bump();
            }
            return Err(reported);
        }
        let index = self.name("the name of the index")?;
        if !self.eat_keyword(Keyword::In) {
            return Err(self.expected_with("`in` and a range", help()));
        }
        let range = self.range()?;
        let body = self.body("the range of `for`")?;
        Ok(StatementKind::For(index, range, body))
    }

    fn choose_statement(&mut self) -> Parse<StatementKind> {
        self.bump();
        let mut blocks = vec![self.body("`choose`")?];
        while self.eat_keyword(Keyword::Or) {
            blocks.push(self.body("`or`")?);
        }
        Ok(StatementKind::Choose(blocks))
    }

    /// A statement that begins with a name: `x = e;`, `a[i] = e;`, `x = *;`, `f(x);`
    fn assignment(&mut self) -> Parse<StatementKind> {
        let start = self.token().span;
        if let Some(reported) = self.misspelt_keyword(start) {
            return Err(reported);
        }
        if self.at_call() {
            let call = self.call()?;
            if matches!(self.peek(), TokenKind::Operator(_)) {
                let help = "as a part of a larger expression it must be assigned: `r = f(x) + 1;`";
                return Err(self.expected_with("`;` after the call", Some(help.into())));
            }
            self.semicolon("the call")?;
            return Ok(StatementKind::Expr(call));
        }
        let place = self.place()?;
        let place_text = clip(self.text_of(self.since(start)));
        match self.peek() {
            TokenKind::Foreign if self.text_of(self.token().span) != ":=" => {
                return self.compound_assignment(place, &place_text);
            }
            TokenKind::Operator(BinaryOp::Sub) if self.peek_at(1) == TokenKind::Operator(BinaryOp::Sub) => {
                return self.compound_assignment(place, &place_text);
            }
            TokenKind::OpenParenthesis => return Err(self.no_call()),
            TokenKind::Dot | TokenKind::At => {
                let help = "a thread sees its own registers, by their names, and shared variables";
                return Err(self.expected_with(&format!("`=` after `{place_text}`"), Some(help.into())));
            }
            _ => self.assign_sign(&format!("`=` after `{place_text}`"))?,
        }
        if self.eat(TokenKind::Operator(BinaryOp::Mul)) {
            let range = self.optional_range()?;
            self.semicolon("the assignment")?;
            return Ok(StatementKind::Havoc(place, range));
        }
        let value = self.expression()?;
        self.semicolon("the assignment")?;
        Ok(StatementKind::Assign(place, value))
    }

    /// Reports a misspelt keyword at the start of a statement. `None` if the token after the word can follow a name, or no keyword is close.
    fn misspelt_keyword(&mut self, span: Span) -> Option<Reported> {
        let follows = self.peek_at(1);
        let can_follow = matches!(
            follows,
            TokenKind::Assign
                | TokenKind::Foreign
                | TokenKind::OpenBracket
                | TokenKind::Dot
                | TokenKind::At
                | TokenKind::Operator(_)
        );
        if can_follow || !self.at(TokenKind::Name) || self.at_call() {
            return None;
        }
        let word = self.text_of(span);
        let help = match word {
            "elif" | "elsif" | "elseif" => "write `else if`".to_string(),
            _ => {
                let fits = |keyword: Keyword| match follows {
                    TokenKind::OpenParenthesis => keyword.begins_operation() || keyword.begins_statement(),
                    _ => keyword.begins_statement() || matches!(keyword, Keyword::Else | Keyword::Or),
                };
                format!("is `{}` meant?", slips::keyword_meant(word, fits)?.text())
            }
        };
        let message = format!("expected a statement, found `{}`", clip(word));
        Some(self.report(Diagnostic::new(span, message).help(help)))
    }

    /// `x += e`, `x++`: reported. To continue, the statement is parsed as an assignment of `e`, or of 0 for `x++`.
    fn compound_assignment(&mut self, place: Place, place_text: &str) -> Parse<StatementKind> {
        let token = self.bump();
        let decrement = token.kind != TokenKind::Foreign;
        let span = if decrement { token.span.to(self.bump().span) } else { token.span };
        let operator = if decrement { "--" } else { self.text_of(span) };
        let diagnostic = Diagnostic::new(span, format!("`{operator}` is not in the language"))
            .help(slips::foreign_operator(operator, Some(place_text)));
        self.report(diagnostic);
        let zero = Expr { kind: ExprKind::Int(0), span };
        let value = if self.at(TokenKind::Semicolon) { zero } else { self.expression()? };
        self.semicolon("the assignment")?;
        Ok(StatementKind::Assign(place, value))
    }

    /// Reports a token that cannot begin a statement.
    fn no_statement(&mut self) -> Reported {
        let help = match self.peek() {
            TokenKind::Semicolon => {
                Some("no `;` stands after a `}`; a statement that does nothing is `skip;`")
            }
            TokenKind::Keyword(Keyword::Else) => Some("`else` stands directly after the block of an `if`"),
            TokenKind::Keyword(Keyword::Or) => Some("`or` stands directly after a block of a `choose`"),
            TokenKind::Keyword(Keyword::Int | Keyword::Nat | Keyword::Real) => {
                Some("registers are declared with `var`: `var r = 0;`")
            }
            TokenKind::Operator(BinaryOp::Mul) => {
                Some("there are no pointers: addresses are indices into arrays")
            }
            TokenKind::Foreign if matches!(self.text_of(self.token().span), "++") => {
                Some("write `x = x + 1;`: it is a load and a store")
            }
            _ => None,
        };
        self.expected_with("a statement", help.map(String::from))
    }
}
