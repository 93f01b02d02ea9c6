//! Conditions of `#if` and `#elif` (C11 6.10.1): integer expressions in 64 bits, signed or unsigned.

use std::rc::Rc;

use crate::error::Error;
use crate::literal::{self, Literal};
use crate::token::{Kind, Names, Token};

/// Maximum nesting depth of parentheses and operators.
const DEEPEST: usize = 200;

/// The value of a condition or a part of it. The bits of an unsigned value are stored in an `i64`.
#[derive(Clone, Copy)]
struct Value {
    bits: i64,
    unsigned: bool,
}

impl Value {
    fn of(truth: bool) -> Self {
        Value { bits: truth.into(), unsigned: false }
    }
}

/// Whether a condition is nonzero. The caller has already expanded macros and replaced `defined` by 0 or 1.
pub fn holds(condition: &[Token], directive: Token, names: &Names) -> Result<bool, Error> {
    let mut reader = Reader { tokens: condition, at: 0, directive, names, depth: 0 };
    let value = reader.conditional(true)?;
    match reader.peek() {
        Some(token) => Err(Error::new(token.span, "expected an operator or the end of the condition")),
        None => Ok(value.bits != 0),
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    directive: Token,
    names: &'a Names,
    depth: usize,
}

/// Binary operators by precedence, the weakest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn spelling(&self) -> Option<&Rc<str>> {
        self.peek()
            .filter(|token| token.kind == Kind::Punctuator)
            .map(|token| self.names.spelling(token.symbol))
    }

    fn takes(&mut self, punctuator: &str) -> bool {
        let found = self.spelling().is_some_and(|next| &**next == punctuator);
        self.at += usize::from(found);
        found
    }

    fn error(&self, message: &str) -> Error {
        let last = self.tokens.last().unwrap_or(&self.directive);
        Error::new(self.peek().as_ref().unwrap_or(last).span, message)
    }

    /// Parses a conditional expression. If it is not `evaluated`, such as the right side of `0 &&`, a division by zero in it is no error.
    fn conditional(&mut self, evaluated: bool) -> Result<Value, Error> {
        if self.depth >= DEEPEST {
            return Err(self.error("this condition is nested too deeply"));
        }
        self.depth += 1;
        let value = self.choice(evaluated);
        self.depth -= 1;
        value
    }

    fn choice(&mut self, evaluated: bool) -> Result<Value, Error> {
        let condition = self.binary(0, evaluated)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let then = self.conditional(evaluated && condition.bits != 0)?;
        if !self.takes(":") {
            return Err(self.error("expected `:`"));
        }
        let otherwise = self.conditional(evaluated && condition.bits == 0)?;
        let chosen = if condition.bits != 0 { then } else { otherwise };
        Ok(Value { unsigned: then.unsigned || otherwise.unsigned, ..chosen })
    }

    fn binary(&mut self, level: usize, evaluated: bool) -> Result<Value, Error> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(evaluated) };
        let mut left = self.binary(level + 1, evaluated)?;
        while let Some(operator) =
            operators.iter().find(|operator| self.spelling().is_some_and(|s| &**s == **operator))
        {
            let at = self.peek().expect("there is an operator").span;
            self.at += 1;
            let needed = match *operator {
                "&&" => left.bits != 0,
                "||" => left.bits == 0,
                _ => true,
            };
            let right = self.binary(level + 1, evaluated && needed)?;
            left = match apply(operator, left, right) {
                Some(value) => value,
                None if !evaluated => Value::of(false),
                None => return Err(Error::new(at, "division by zero in a condition")),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, evaluated: bool) -> Result<Value, Error> {
        let mut operators = Vec::new();
        while let Some(operator) = ["!", "~", "-", "+"].into_iter().find(|operator| self.takes(operator)) {
            operators.push(operator);
        }
        let mut value = self.primary(evaluated)?;
        while let Some(operator) = operators.pop() {
            value = match operator {
                "!" => Value::of(value.bits == 0),
                "~" => Value { bits: !value.bits, ..value },
                "-" => Value { bits: value.bits.wrapping_neg(), ..value },
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self, evaluated: bool) -> Result<Value, Error> {
        if self.takes("(") {
            let value = self.conditional(evaluated)?;
            return match self.takes(")") {
                true => Ok(value),
                false => Err(self.error("expected `)`")),
            };
        }
        let Some(token) = self.peek() else { return Err(self.error("this condition is not complete")) };
        let spelling = self.names.spelling(token.symbol);
        let value = match token.kind {
            // A name that is not a macro is 0, even a keyword.
            Kind::Identifier => Value::of(false),
            Kind::Number => match literal::number(spelling) {
                Ok(Literal { value, unsigned, .. }) => {
                    Value { bits: value as i64, unsigned: unsigned || i64::try_from(value).is_err() }
                }
                Err(why) => return Err(Error::new(token.span, why)),
            },
            Kind::Character => match literal::character(spelling) {
                Ok(value) => Value { bits: value, unsigned: false },
                Err(why) => return Err(Error::new(token.span, why)),
            },
            _ => return Err(self.error("expected an integer, a name or `(`")),
        };
        self.at += 1;
        Ok(value)
    }
}

/// Applies a binary operation, unsigned if one of its operands is (a shift: if the left one is); `None` for a division by zero.
fn apply(operator: &str, a: Value, b: Value) -> Option<Value> {
    let unsigned = a.unsigned || b.unsigned;
    let (x, y) = (a.bits, b.bits);
    let less = if unsigned { (x as u64) < y as u64 } else { x < y };
    let bits = match operator {
        "||" => return Some(Value::of(x != 0 || y != 0)),
        "&&" => return Some(Value::of(x != 0 && y != 0)),
        "==" => return Some(Value::of(x == y)),
        "!=" => return Some(Value::of(x != y)),
        "<" => return Some(Value::of(less)),
        ">=" => return Some(Value::of(!less)),
        ">" => return Some(Value::of(!less && x != y)),
        "<=" => return Some(Value::of(less || x == y)),
        "<<" | ">>" => {
            let by = y.clamp(-64, 64);
            let left = (operator == "<<") == (by >= 0);
            let by = by.unsigned_abs() as u32;
            let shifted = match (left, a.unsigned) {
                (true, _) => x.checked_shl(by).unwrap_or(0),
                (false, true) => (x as u64).checked_shr(by).unwrap_or(0) as i64,
                (false, false) => x >> by.min(63),
            };
            return Some(Value { bits: shifted, unsigned: a.unsigned });
        }
        "|" => x | y,
        "^" => x ^ y,
        "&" => x & y,
        "+" => x.wrapping_add(y),
        "-" => x.wrapping_sub(y),
        "*" => x.wrapping_mul(y),
        "/" if unsigned => (x as u64).checked_div(y as u64)? as i64,
        "%" if unsigned => (x as u64).checked_rem(y as u64)? as i64,
        "/" if y != 0 => x.wrapping_div(y),
        "%" if y != 0 => x.wrapping_rem(y),
        _ => return None,
    };
    Some(Value { bits, unsigned })
}
