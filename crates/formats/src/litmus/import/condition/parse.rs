//! Parses the part of a litmus test about its final states.

use fencewright_fw::ast::PropertyKind;
use fencewright_fw::build::NESTING_LIMIT;
use fencewright_text::Diagnostic;

use super::super::Test;
use super::super::scan::{Kind, Scanner, Token};
use super::super::types::{Part, RegisterPart};
use super::{Item, Place, Proposition, Question, Side, address, register_type};

impl Question {
    /// Parses the part after the program. A test may have no condition.
    pub(in super::super) fn parse(
        scanner: &mut Scanner<'_>,
        test: &mut Test,
    ) -> Result<Question, Diagnostic> {
        let mut question = Question { locations: Vec::new(), filter: None, condition: None };
        loop {
            if scanner.accept("locations") {
                locations(scanner, test, &mut question.locations)?;
            } else if scanner.is("filter") {
                let span = scanner.next().span;
                if question.filter.is_some() {
                    return Err(Diagnostic::new(span, "there is a filter already"));
                }
                question.filter = Some(implication(scanner, test, 0)?);
                scanner.accept(";");
            } else {
                break;
            }
        }
        let start = scanner.peek().span;
        let negated = scanner.accept("~") || scanner.accept("not");
        let kind = match scanner.peek().text {
            "exists" if negated => PropertyKind::FinallyNever,
            "exists" | "final" if !negated => PropertyKind::FinallyExists,
            "forall" if !negated => PropertyKind::FinallyForall,
            _ if negated => return Err(scanner.expected("`exists`")),
            _ => {
                end(scanner)?;
                return Ok(question);
            }
        };
        scanner.next();
        let item = implication(scanner, test, 0)?;
        let span = start.to(item.span);
        scanner.accept(";");
        end(scanner)?;
        question.condition = Some((kind, item, span));
        Ok(question)
    }
}

/// Checks that the condition ends here: at the end of the text, or before `with` or `<<` of old tests, which are ignored with all that follows.
fn end(scanner: &Scanner<'_>) -> Result<(), Diagnostic> {
    let done = scanner.peek().kind == Kind::End || scanner.is("with") || scanner.is("<<");
    if done { Ok(()) } else { Err(scanner.expected("the end of the condition")) }
}

/// `[x; 0:EAX;]`: places whose final values are shown in addition to those in the condition.
fn locations(scanner: &mut Scanner<'_>, test: &mut Test, shown: &mut Vec<Place>) -> Result<(), Diagnostic> {
    scanner.expect("[")?;
    loop {
        while scanner.accept(";") || scanner.accept(",") {}
        if scanner.accept("]") {
            return Ok(());
        }
        if scanner.peek().kind == Kind::End {
            return Err(scanner.expected("`]`"));
        }
        shown.push(place(scanner, test)?);
        if ![";", ",", "]"].iter().any(|s| scanner.is(s)) {
            return Err(scanner.expected("`;`"));
        }
    }
}

fn too_deep(scanner: &Scanner<'_>) -> Diagnostic {
    Diagnostic::new(scanner.peek().span, "nested too deeply")
}

/// A proposition. The operators from weakest to strongest: `=>`, `\/`, `/\`, `~`.
fn implication(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Item, Diagnostic> {
    if depth > NESTING_LIMIT {
        return Err(too_deep(scanner));
    }
    let left = disjunction(scanner, test, depth)?;
    if !scanner.accept("=>") {
        return Ok(left);
    }
    let right = implication(scanner, test, depth + 1)?;
    let span = left.span.to(right.span);
    Ok(Item { proposition: Proposition::Implies(Box::new([left, right])), span })
}

fn disjunction(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Item, Diagnostic> {
    let mut parts = vec![conjunction(scanner, test, depth)?];
    while scanner.accept("\\/") {
        parts.push(conjunction(scanner, test, depth)?);
    }
    Ok(join(parts, Proposition::Or))
}

fn conjunction(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Item, Diagnostic> {
    let mut parts = vec![literal(scanner, test, depth)?];
    while scanner.accept("/\\") {
        parts.push(literal(scanner, test, depth)?);
    }
    Ok(join(parts, Proposition::And))
}

fn join(mut parts: Vec<Item>, make: fn(Vec<Item>) -> Proposition) -> Item {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let span = parts[0].span.to(parts[parts.len() - 1].span);
    Item { proposition: make(parts), span }
}

fn literal(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Item, Diagnostic> {
    let token = scanner.peek();
    if depth > NESTING_LIMIT {
        return Err(too_deep(scanner));
    }
    match token.text {
        "~" | "not" => {
            scanner.next();
            let operand = literal(scanner, test, depth + 1)?;
            let span = token.span.to(operand.span);
            Ok(Item { proposition: Proposition::Not(Box::new(operand)), span })
        }
        "(" => {
            scanner.next();
            let mut inside = implication(scanner, test, depth + 1)?;
            let close = scanner.expect(")")?;
            inside.span = token.span.to(close.span);
            Ok(inside)
        }
        "true" | "false" => {
            scanner.next();
            Ok(Item { proposition: Proposition::Constant(token.text == "true"), span: token.span })
        }
        _ => comparison(scanner, test),
    }
}

/// `x = 1`, `[x] = 1`, `0:EAX = 1`, `0:EAX = [x]`, `0:EAX = 1:EBX` or `0:RDI = x`
fn comparison(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<Item, Diagnostic> {
    let start = scanner.peek().span;
    let left = place(scanner, test)?;
    let negated = match scanner.peek().text {
        "=" | "==" => false,
        "<>" | "!=" => true,
        _ => return Err(scanner.expected("`=`")),
    };
    scanner.next();
    let right = side(scanner, test, left)?;
    let span = start.up_to(scanner.at);
    let item = Item { proposition: Proposition::Equal(left, right), span };
    Ok(match negated {
        false => item,
        true => Item { proposition: Proposition::Not(Box::new(item)), span },
    })
}

fn side(scanner: &mut Scanner<'_>, test: &mut Test, left: Place) -> Result<Side, Diagnostic> {
    let token = scanner.peek();
    let mut ahead = *scanner;
    ahead.next();
    if scanner.is("[") || (matches!(token.kind, Kind::Word | Kind::Number) && ahead.is(":")) {
        let right = place(scanner, test)?;
        let unknown = |place| address(place, test).is_some();
        if unknown(left) != unknown(right) {
            let span = token.span.up_to(scanner.at);
            return Err(Diagnostic::new(span, "an address cannot be compared with a number"));
        }
        return Ok(Side::Place(right));
    }
    let of_left = address(left, test);
    if of_left.is_some() && token.kind == Kind::Word {
        scanner.next();
        return Ok(Side::Address(test.location_number(token)?));
    }
    let number = scanner.value()?;
    match of_left {
        None => Ok(Side::Number(number)),
        Some(_) => {
            let span = token.span.up_to(scanner.at);
            Err(Diagnostic::new(span, "an address cannot be compared with a number"))
        }
    }
}

fn place(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<Place, Diagnostic> {
    if scanner.accept("[") {
        let location = location(scanner, test)?;
        scanner.expect("]")?;
        return Ok(Place::Location(location));
    }
    let first = scanner.peek();
    let mut ahead = *scanner;
    ahead.next();
    if !ahead.is(":") {
        return location(scanner, test).map(Place::Location);
    }
    *scanner = ahead;
    let thread = test.thread(first)?;
    scanner.next();
    scanner.accept("%");
    let token = scanner.peek();
    let Some(part) = RegisterPart::parse(token.text) else { return Err(scanner.expected("a register")) };
    scanner.next();
    if part.part == Part::High {
        return Err(Diagnostic::new(token.span, "the final value of a second byte cannot be asked for"));
    }
    test.mention(thread, part, token.span);
    let bits = register_type(thread, part, test).bits;
    test.observe(thread, part, bits, token.span);
    Ok(Place::Register(thread, part))
}

/// `x` or `x[1]`
fn location(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<usize, Diagnostic> {
    let word = scanner.peek();
    if word.kind != Kind::Word {
        return Err(scanner.expected("a register or location"));
    }
    scanner.next();
    let location = test.location_number(word)?;
    if scanner.accept("[") {
        let index = scanner.value()?;
        let close = scanner.expect("]")?;
        return test.element(location, index, word.span.to(close.span));
    }
    check_scalar(location, word, test)?;
    Ok(location)
}

fn check_scalar(location: usize, word: Token<'_>, test: &Test) -> Result<(), Diagnostic> {
    match test.locations[location].written.ends_with(']') {
        true => Err(Diagnostic::new(word.span, format!("`{}` is an array: name an element", word.text))),
        false => Ok(()),
    }
}
