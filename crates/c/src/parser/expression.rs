//! Expressions (C11 6.5).

use super::{DEEPEST, Parser, Read};
use crate::ast::{BinaryOp, Expr, ExprKind, Step, UnaryOp};
use crate::error::Error;
use crate::literal;
use crate::token::{ExpansionId, Kind};
use fencewright_program::Span;

/// Binary operators by precedence, the weakest first.
const LEVELS: [&[(&str, BinaryOp)]; 10] = [
    &[("||", BinaryOp::Or)],
    &[("&&", BinaryOp::And)],
    &[("|", BinaryOp::BitOr)],
    &[("^", BinaryOp::BitXor)],
    &[("&", BinaryOp::BitAnd)],
    &[("==", BinaryOp::Equal), ("!=", BinaryOp::NotEqual)],
    &[
        ("<", BinaryOp::Less),
        (">", BinaryOp::Greater),
        ("<=", BinaryOp::LessOrEqual),
        (">=", BinaryOp::GreaterOrEqual),
    ],
    &[("<<", BinaryOp::ShiftLeft), (">>", BinaryOp::ShiftRight)],
    &[("+", BinaryOp::Add), ("-", BinaryOp::Subtract)],
    &[("*", BinaryOp::Multiply), ("/", BinaryOp::Divide), ("%", BinaryOp::Remainder)],
];

/// Assignment operators, each with the binary operation that a compound assignment performs.
const ASSIGNMENTS: [(&str, Option<BinaryOp>); 11] = [
    ("=", None),
    ("*=", Some(BinaryOp::Multiply)),
    ("/=", Some(BinaryOp::Divide)),
    ("%=", Some(BinaryOp::Remainder)),
    ("+=", Some(BinaryOp::Add)),
    ("-=", Some(BinaryOp::Subtract)),
    ("<<=", Some(BinaryOp::ShiftLeft)),
    (">>=", Some(BinaryOp::ShiftRight)),
    ("&=", Some(BinaryOp::BitAnd)),
    ("^=", Some(BinaryOp::BitXor)),
    ("|=", Some(BinaryOp::BitOr)),
];

impl Parser<'_> {
    fn made(&self, kind: ExprKind, start: Span, expansion: ExpansionId) -> Expr {
        Expr { kind, span: self.since(start), expansion }
    }

    /// Counts operators of the same precedence in a row; an error if there are too many, because each adds a level to the tree.
    fn another(&self, count: &mut u32) -> Read<()> {
        *count += 1;
        match *count > DEEPEST {
            true => Err(Error::new(self.span(), format!("more than {DEEPEST} operators in a row"))),
            false => Ok(()),
        }
    }

    /// An expression, including the comma operator.
    pub(super) fn comma_expression(&mut self) -> Read<Expr> {
        let (start, expansion, mut count) = (self.span(), self.expansion(), 0);
        let mut left = self.assignment()?;
        while self.takes(",") {
            self.another(&mut count)?;
            let right = self.assignment()?;
            left = self.made(ExprKind::Comma(left.into(), right.into()), start, expansion);
        }
        Ok(left)
    }

    /// An assignment expression, without the comma operator.
    pub(super) fn assignment(&mut self) -> Read<Expr> {
        self.nested(|parser| {
            let (start, expansion) = (parser.span(), parser.expansion());
            let left = parser.conditional()?;
            let Some((_, op)) = ASSIGNMENTS.iter().find(|(word, _)| parser.is(word)) else { return Ok(left) };
            parser.at += 1;
            let right = parser.assignment()?;
            Ok(parser.made(ExprKind::Assign(*op, left.into(), right.into()), start, expansion))
        })
    }

    /// A conditional expression, without the comma and assignment operators.
    pub(super) fn conditional(&mut self) -> Read<Expr> {
        let (start, expansion) = (self.span(), self.expansion());
        let condition = self.binary(0)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        self.nested(|parser| {
            let then = match parser.is(":") {
                true => None,
                false => Some(Box::new(parser.comma_expression()?)),
            };
            parser.expect(":")?;
            let otherwise = parser.conditional()?;
            Ok(parser.made(ExprKind::Conditional(condition.into(), then, otherwise.into()), start, expansion))
        })
    }

    fn binary(&mut self, level: usize) -> Read<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.cast() };
        let (start, expansion, mut count) = (self.span(), self.expansion(), 0);
        let mut left = self.binary(level + 1)?;
        while let Some((_, op)) = operators.iter().find(|(word, _)| self.is(word)) {
            self.another(&mut count)?;
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = self.made(ExprKind::Binary(*op, left.into(), right.into()), start, expansion);
        }
        Ok(left)
    }

    /// A cast, or an expression that binds tighter.
    fn cast(&mut self) -> Read<Expr> {
        let (start, expansion) = (self.span(), self.expansion());
        if !(self.is("(") && self.starts_type(1)) {
            return self.unary();
        }
        self.nested(|parser| {
            parser.at += 1;
            let ty = parser.type_name()?;
            parser.expect(")")?;
            if parser.is("{") {
                let initial = parser.initializer()?;
                let compound = parser.made(ExprKind::Compound(ty, initial.into()), start, expansion);
                return parser.postfix(compound, start, expansion);
            }
            let operand = parser.cast()?;
            Ok(parser.made(ExprKind::Cast(ty, operand.into()), start, expansion))
        })
    }

    fn unary(&mut self) -> Read<Expr> {
        let (start, expansion) = (self.span(), self.expansion());
        let op = match self.word() {
            "+" => Some(UnaryOp::Plus),
            "-" => Some(UnaryOp::Minus),
            "!" => Some(UnaryOp::Not),
            "~" => Some(UnaryOp::Complement),
            "*" => Some(UnaryOp::Dereference),
            "&" => Some(UnaryOp::Address),
            _ => None,
        };
        if let Some(op) = op {
            self.at += 1;
            let operand = self.nested(Self::cast)?;
            return Ok(self.made(ExprKind::Unary(op, operand.into()), start, expansion));
        }
        match self.word() {
            word @ ("++" | "--") => {
                let step = Step { up: word == "++", prefix: true };
                self.at += 1;
                let operand = self.nested(Self::unary)?;
                Ok(self.made(ExprKind::Step(step, operand.into()), start, expansion))
            }
            "&&" => {
                self.at += 1;
                self.name("a label")?;
                let message = "addresses of labels are not supported".to_owned();
                Ok(self.made(ExprKind::Unsupported(message), start, expansion))
            }
            "sizeof" => {
                self.at += 1;
                let kind = match self.is("(") && self.starts_type(1) {
                    true => {
                        let ty = self.in_parentheses(Self::type_name)?;
                        match self.is("{") {
                            true => {
                                let initial = self.initializer()?.into();
                                let compound = self.made(ExprKind::Compound(ty, initial), start, expansion);
                                ExprKind::SizeOf(compound.into())
                            }
                            false => ExprKind::SizeOfType(ty),
                        }
                    }
                    false => ExprKind::SizeOf(self.nested(Self::unary)?.into()),
                };
                Ok(self.made(kind, start, expansion))
            }
            "_Alignof" | "__alignof__" | "__alignof" => {
                self.at += 1;
                let ty = self.in_parentheses(Self::type_name)?;
                Ok(self.made(ExprKind::AlignOf(ty), start, expansion))
            }
            "__extension__" => {
                self.at += 1;
                self.nested(Self::cast)
            }
            _ => {
                let primary = self.primary()?;
                self.postfix(primary, start, expansion)
            }
        }
    }

    fn in_parentheses<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.expect("(")?;
        let found = self.nested(read)?;
        self.expect(")")?;
        Ok(found)
    }

    /// Postfix operators: indices, members, calls, `++`.
    fn postfix(&mut self, mut operand: Expr, start: Span, expansion: ExpansionId) -> Read<Expr> {
        let mut count = 0;
        loop {
            let kind = match self.word() {
                "[" => {
                    self.at += 1;
                    let index = self.nested(Self::comma_expression)?;
                    self.expect("]")?;
                    ExprKind::Index(operand.into(), index.into())
                }
                "(" => {
                    self.at += 1;
                    let mut arguments = Vec::new();
                    while !self.takes(")") {
                        arguments.push(self.assignment()?);
                        if !self.takes(",") && !self.is(")") {
                            return Err(self.expected("`,` or `)`"));
                        }
                    }
                    ExprKind::Call(operand.into(), arguments)
                }
                word @ ("." | "->") => {
                    let direct = word == ".";
                    self.at += 1;
                    let member = self.name("the name of a member")?;
                    match direct {
                        true => ExprKind::Member(operand.into(), member),
                        false => ExprKind::Arrow(operand.into(), member),
                    }
                }
                word @ ("++" | "--") => {
                    let step = Step { up: word == "++", prefix: false };
                    self.at += 1;
                    ExprKind::Step(step, operand.into())
                }
                _ => return Ok(operand),
            };
            self.another(&mut count)?;
            operand = self.made(kind, start, expansion);
        }
    }

    fn primary(&mut self) -> Read<Expr> {
        let (start, expansion) = (self.span(), self.expansion());
        let Some(token) = self.peek().copied() else { return Err(self.expected("an expression")) };
        let spelling = self.names.spelling(token.symbol);
        let kind = match token.kind {
            Kind::Number => {
                self.at += 1;
                match literal::number(spelling) {
                    Ok(literal) => ExprKind::Integer(literal),
                    Err(why) if literal::is_floating(spelling) => ExprKind::Unsupported(why),
                    Err(why) => return Err(Error::new(token.span, why)),
                }
            }
            Kind::Character => {
                self.at += 1;
                ExprKind::Character(literal::character(spelling).map_err(|why| Error::new(token.span, why))?)
            }
            Kind::String => ExprKind::String(self.string()?),
            _ if self.is("(") && self.word_at(1) == "{" => {
                self.at += 1;
                let block = self.nested(|parser| parser.scoped(Self::block))?;
                self.expect(")")?;
                ExprKind::Statements(block)
            }
            // Parentheses change only the position of the expression.
            _ if self.is("(") => self.in_parentheses(Self::comma_expression)?.kind,
            _ if self.is("_Generic") => self.generic()?,
            _ if self.is("__builtin_offsetof") => {
                self.at += 1;
                let (ty, path) = self.in_parentheses(|parser| {
                    let ty = parser.type_name()?;
                    parser.expect(",")?;
                    Ok((ty, parser.member_path()?))
                })?;
                ExprKind::OffsetOf(ty, path)
            }
            _ if self.is("__builtin_types_compatible_p") => {
                self.at += 1;
                let (first, second) = self.in_parentheses(|parser| {
                    let first = parser.type_name()?;
                    parser.expect(",")?;
                    Ok((first, parser.type_name()?))
                })?;
                ExprKind::TypesCompatible(first, second)
            }
            _ if self.is("__builtin_va_arg") => {
                self.at += 1;
                self.in_parentheses(|parser| {
                    parser.assignment()?;
                    parser.expect(",")?;
                    parser.type_name()
                })?;
                ExprKind::Unsupported("variable arguments cannot be read".to_owned())
            }
            _ => ExprKind::Name(self.name("an expression")?.symbol),
        };
        Ok(self.made(kind, start, expansion))
    }

    fn generic(&mut self) -> Read<ExprKind> {
        self.at += 1;
        self.in_parentheses(|parser| {
            let decides = parser.assignment()?;
            let mut choices = Vec::new();
            while parser.takes(",") {
                let ty = match parser.takes("default") {
                    true => None,
                    false => Some(parser.type_name()?),
                };
                parser.expect(":")?;
                choices.push((ty, parser.assignment()?));
            }
            Ok(ExprKind::Generic(decides.into(), choices))
        })
    }
}
