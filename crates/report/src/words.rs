//! Expressions, actions and positions in the notation of the source. The texts are not escaped, because escaping depends on where they are shown.

use std::fmt::Write as _;

use fencewright_engines::{Advice, Reason};
use fencewright_lang::facts::Facts;
use fencewright_lang::fw::precedence;
use fencewright_lang::words::Words;
use fencewright_lang::{Diagnostic, FrontEnd, Loaded, Position, Sources};
use fencewright_program::{
    Action, Address, Call, Expr, FileId, Formula, LocationId, Observable, Op, Program, Range, RegisterId,
    Span, Thread, ThreadId,
};

/// Maximum length of an excerpt of the source, in characters.
const LONGEST_EXCERPT: usize = 60;
/// A precedence higher than that of every binary operator that is written between its operands.
const TIGHTEST: u8 = 10;
/// Maximum length of the text of an action, in characters.
const LONGEST_ACTION: usize = 2_000;

/// A program with its source text.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The program itself.
    pub program: &'a Program,
    /// The source files that spans refer to.
    pub files: &'a Sources,
    /// The front end of the source language.
    pub front_end: &'static dyn FrontEnd,
    /// Notes on the translation, for users: assumptions and simplifications.
    pub notes: &'a [String],
    /// Warnings about the program.
    pub warnings: &'a [Diagnostic],
    /// Facts of the front end that the program itself does not contain.
    pub facts: &'a Facts,
    /// The source names of the program's parts.
    pub words: &'a Words,
    /// Whether details that the translation added are shown.
    pub full: bool,
}

impl<'a> From<&'a Loaded> for Source<'a> {
    fn from(loaded: &'a Loaded) -> Self {
        Source {
            program: &loaded.program,
            files: &loaded.sources,
            front_end: loaded.front_end,
            notes: &loaded.notes,
            warnings: &loaded.warnings,
            facts: &loaded.facts,
            words: &loaded.words,
            full: false,
        }
    }
}

impl<'a> Source<'a> {
    /// The name of the main file.
    pub fn name(&self) -> &'a str {
        self.files.name()
    }

    /// The position of the first character of a span.
    pub fn position(&self, span: Span) -> Position<'a> {
        self.files.position(span)
    }

    /// The name of a line, with the file unless it is the main one.
    pub fn line_name(&self, file: FileId, line: usize) -> String {
        let name = &self.files.file(file).name;
        Position { file: name, included: file != FileId::MAIN, line, column: 1 }.line_name()
    }

    /// The statement at a span, restricted to the line on which the span starts.
    pub fn statement(&self, span: Span) -> String {
        let Position { line, column, .. } = self.position(span);
        let text = self.files.file(span.file).line_text(line);
        let start = text.char_indices().nth(column - 1).map_or(text.len(), |(i, _)| i);
        let length = (span.end.saturating_sub(span.start) as usize).min(text.len() - start);
        let mut end = start + length;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let statement = text[self.front_end.statement_at(text, start..end)].trim();
        shortened(&statement.replace('\t', " "), LONGEST_EXCERPT)
    }

    /// The calls that led to a span: `in f(1) called at line 7`, innermost first.
    pub fn calls(&self, span: Span) -> Option<String> {
        let call =
            |call: &Call| format!("in {} called at line {}", call.what, self.position(call.at).line_name());
        let calls: Vec<String> = self.program.calls_to(span).map(call).collect();
        (!calls.is_empty()).then(|| calls.join(", "))
    }

    /// The text of a span on one line, with white space collapsed.
    pub fn excerpt(&self, span: Span) -> String {
        self.files.text(span).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The position of a thread: its label or line, or that it has ended or faulted.
    pub fn place(&self, thread: ThreadId, location: LocationId) -> String {
        let code = self.program.thread(thread);
        let at = &code.locations[location.index()];
        if location == code.fault {
            return "has stopped with a fault".into();
        }
        let here = at.span.or_else(|| code.edges_from(location).next().map(|(_, e)| e.span));
        let calls =
            here.and_then(|span| self.calls(span)).map_or(String::new(), |calls| format!(", {calls}"));
        let line = |label: &str| match here {
            Some(span) => format!("{label} (line {}){calls}", self.position(span).line_name()),
            None => label.to_string(),
        };
        if self.hides() && self.is_exit(thread, location) {
            return "has ended the process".into();
        }
        match at.labels.first().filter(|_| !(self.facts.own_labels && self.hides())) {
            Some(label) => line(&format!("is at {label}")),
            None if code.is_end(location) => "has ended".into(),
            None => match here {
                Some(span) => {
                    let at = self.position(span);
                    let (line, statement) = (at.line_name(), self.statement(span));
                    format!("is at line {line}, column {}: {statement}{calls}", at.column)
                }
                None => format!("is at location {}", location.0),
            },
        }
    }
}

/// The reason why there is no verdict, with the option that may help.
pub fn reason(reason: &Reason) -> String {
    match reason.advice() {
        None => reason.to_string(),
        Some(Advice::AcceptUnconfirmed) => format!("{reason}; allow more, or accept it with --no-certify"),
        Some(Advice::FewerThreads) => format!("{reason}; use fewer with --jobs"),
    }
}

/// The text, truncated to `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect(),
        None => text.to_string(),
    }
}

/// A number with its digits in groups of three: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// An expression over registers; `leaf` gives the text of a register.
pub fn expression_with(e: &Expr<RegisterId>, mut leaf: impl FnMut(RegisterId) -> String) -> String {
    let mut text = String::new();
    write_expression(&mut text, e, &mut |register| leaf(*register), 0);
    text
}

/// An expression whose leaves are texts themselves.
pub fn expression_of_texts<L>(e: &Expr<L>, mut leaf: impl FnMut(&L) -> String) -> String {
    let mut leaf = |l: &L| {
        let text = leaf(l);
        // A leaf whose text contains an operator is parenthesised, unless it is the whole expression, because the surrounding expression assumes that
        // leaves bind tightly.
        let is_whole = matches!(e, Expr::Leaf(_));
        let operators = [" && ", " || ", " == ", " != ", " < ", " > ", " <= ", " >= ", " + ", " - ", " * "];
        match !is_whole && operators.iter().any(|operator| text.contains(operator)) {
            true => format!("({text})"),
            false => text,
        }
    };
    let mut text = String::new();
    write_expression(&mut text, e, &mut leaf, 0);
    text
}

/// Writes an expression with as few parentheses as possible: a binary expression is parenthesised only if its operator binds less tightly than
/// `context`.
fn write_expression<L>(text: &mut String, e: &Expr<L>, leaf: &mut dyn FnMut(&L) -> String, context: u8) {
    match e {
        Expr::Const(value) => text.push_str(&value.to_string()),
        Expr::Leaf(l) => text.push_str(&leaf(l)),
        Expr::Unary(op, operand) => {
            text.push_str(op.symbol());
            text.extend(op.wraps().then_some('('));
            write_expression(text, operand, leaf, if op.wraps() { 0 } else { TIGHTEST });
            text.extend(op.wraps().then_some(')'));
        }
        Expr::Binary(op, left, right) if op.is_function() => {
            let _ = write!(text, "{}(", op.symbol());
            write_expression(text, left, leaf, 0);
            text.push_str(", ");
            write_expression(text, right, leaf, 0);
            text.push(')');
        }
        Expr::Binary(op, left, right) => {
            let own = precedence(*op);
            text.extend((own < context).then_some('('));
            write_expression(text, left, leaf, own + op.is_comparison() as u8);
            let _ = write!(text, " {} ", op.symbol());
            write_expression(text, right, leaf, own + 1);
            text.extend((own < context).then_some(')'));
        }
        Expr::If(condition, then, otherwise) => {
            text.extend((0 < context).then_some('('));
            write_expression(text, condition, leaf, 1);
            text.push_str(" ? ");
            write_expression(text, then, leaf, 1);
            text.push_str(" : ");
            write_expression(text, otherwise, leaf, 1);
            text.extend((0 < context).then_some(')'));
        }
    }
}

/// An expression with the names of the thread's registers.
pub fn expression(thread: &Thread, e: &Expr<RegisterId>) -> String {
    expression_with(e, |register| thread.registers[register.index()].name.clone())
}

/// A formula over the states of a program.
pub fn formula(program: &Program, formula: &Formula) -> String {
    let mut text = String::new();
    write_expression(&mut text, formula, &mut |observable| observable_name(program, observable), 0);
    text
}

/// An observable in the notation of the source.
pub fn observable_name(program: &Program, observable: &Observable) -> String {
    match observable {
        Observable::At(thread, locations) => {
            let t = program.thread(*thread);
            let label = locations.iter().flat_map(|l| &t.locations[l.index()].labels).next();
            match label {
                Some(label) => format!("{}@{label}", t.name),
                None if locations.iter().all(|&l| t.is_end(l)) => format!("{}@end", t.name),
                None => format!("{}@{}", t.name, locations.first().map_or(0, |l| l.0)),
            }
        }
        Observable::Register(thread, register) => {
            let t = program.thread(*thread);
            format!("{}.{}", t.name, t.registers[register.index()].name)
        }
        Observable::Memory(cell) => program.cell_name(*cell),
    }
}

/// An address: `x` or `a[i + 1]`.
pub fn address(program: &Program, thread: &Thread, address: &Address) -> String {
    let variable = &program.variables[address.variable.index()].name;
    match &address.index {
        Some(index) => format!("{variable}[{}]", expression(thread, index)),
        None => variable.clone(),
    }
}

/// A range in the notation of the source.
fn range(range: &Range) -> String {
    format!("{}..={}", range.low, range.high)
}

/// An operation: `r = x`, `x = r + 1`, `assume r == 0`, ...
pub fn op(program: &Program, thread: &Thread, op: &Op) -> String {
    let name = |register: &RegisterId| &thread.registers[register.index()].name;
    match op {
        Op::Skip => "skip".into(),
        Op::Assign(register, e) => format!("{} = {}", name(register), expression(thread, e)),
        Op::Havoc(register, None) => format!("{} = *", name(register)),
        Op::Havoc(register, Some(chosen)) => format!("{} = * in {}", name(register), range(chosen)),
        Op::Assume(e) => format!("assume {}", expression(thread, e)),
        Op::Assert(e, fault) => match program.text_of(*fault) {
            Some(text) => format!("assert {}, {text:?}", expression(thread, e)),
            None => format!("assert {}", expression(thread, e)),
        },
        Op::Load(register, a) => format!("{} = {}", name(register), address(program, thread, a)),
        Op::Store(a, e) => format!("{} = {}", address(program, thread, a), expression(thread, e)),
    }
}

/// The action of an edge, on one line.
pub fn action(program: &Program, thread: &Thread, action: &Action) -> String {
    match action {
        Action::Op(single) => shortened(&op(program, thread, single), LONGEST_ACTION),
        Action::Fence => "fence".into(),
        Action::StoreFence => "sfence".into(),
        Action::Lock => "lock".into(),
        Action::Unlock => "unlock".into(),
        Action::Atomic { ops, drains } => {
            let mut text = String::from(if *drains { "atomic {" } else { "snapshot {" });
            for part in ops {
                let _ = write!(text, " {};", op(program, thread, part));
            }
            text.push_str(" }");
            shortened(&text, LONGEST_ACTION)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_groups_of_three() {
        let check = |number, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abc...");
        assert_eq!(shortened("äöüäöüä", 6), "äöü...");
    }
    #[test]
    fn operands_of_unary_operators_are_parenthesised() {
        use fencewright_program::{BinaryOp, UnaryOp};
        let binary =
            |op, left, right| Expr::Binary(op, Box::new(Expr::Leaf(left)), Box::new(Expr::Leaf(right)));
        let negated = |operand| Expr::Unary(UnaryOp::Not, Box::new(operand));
        let text = |e: &Expr<&str>| expression_of_texts(e, |leaf| (*leaf).to_owned());
        assert_eq!(text(&negated(binary(BinaryOp::Mul, "a", "b"))), "!(a * b)");
        assert_eq!(text(&negated(binary(BinaryOp::Or, "a", "b"))), "!(a || b)");
        assert_eq!(text(&negated(Expr::Leaf("a"))), "!a");
    }
}
