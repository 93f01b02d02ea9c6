//! Parsing, checked by printing: parentheses appear only where they are needed.

use fencewright_lang::ast::{Item, PropertyKind};
use fencewright_lang::fw;

#[track_caller]
fn print(text: &str) -> String {
    let (file, diagnostics) = fw::parse(text);
    assert_eq!(diagnostics, [], "{text}");
    fw::print(&file)
}

/// Checks that a formula is printed as expected.
#[track_caller]
fn check(formula: &str, expected: &str) {
    assert_eq!(print(&format!("forbid {formula};")), format!("forbid {expected};\n"));
}

#[test]
fn precedence() {
    check("(a || (b && (c == (d | (e ^ (f & (g + (h * (-i)))))))))", "a || b && c == d | e ^ f & g + h * -i");
    check("(((((((a * b) + c) & d) ^ e) | f) == g) && h) || i", "a * b + c & d ^ e | f == g && h || i");
    check("(a || b) && c", "(a || b) && c");
    check("a - (b - c) - d", "a - (b - c) - d");
    check("(a < b) == (c < d)", "(a < b) == (c < d)");
    check("!(a && b) || -(a + b) < !c", "!(a && b) || -(a + b) < !c");
    check("a && (b && c) && ((d))", "a && b && c && d");
}

#[test]
fn numbers() {
    check("true + false + 0x2a + 007", "1 + 0 + 42 + 7");
    check("-1 - -2 - (-(3)) - --4", "-1 - -2 - -(3) - --4");
    check("-9223372036854775808 < 9223372036854775807", "-9223372036854775808 < 9223372036854775807");
    check("-0x8000000000000000", "-9223372036854775808");
}

#[test]
fn quantifiers_reach_as_far_as_possible() {
    check("a && exists i in 0..2: b || c", "a && exists i in 0..2: b || c");
    check("a && (exists i in 0..2: b) || c", "a && (exists i in 0..2: b) || c");
    check("!forall i < j in 0..N, k != l in 0..=3: x", "!forall i < j in 0..N, k != l in 0..=3: x");
    check("(exists i in 0..2: a) == (b)", "(exists i in 0..2: a) == b");
}

#[test]
fn names_that_resemble_keywords() {
    check("and && not || xor", "and && not || xor");
    check("p[and].not == q@end", "p[and].not == q@end");
}

#[test]
fn properties() {
    let check = |text: &str, name: Option<&str>, kind: PropertyKind, binders: usize| {
        let (file, diagnostics) = fw::parse(text);
        assert_eq!(diagnostics, [], "{text}");
        let [Item::Property(property)] = file.items.as_slice() else { panic!("{text}") };
        assert_eq!(property.name.as_ref().map(|n| n.text.as_str()), name, "{text}");
        assert_eq!((property.kind, property.binders.len()), (kind, binders), "{text}");
    };
    check("forbid x;", None, PropertyKind::Forbid, 0);
    check("forbid name: x;", Some("name"), PropertyKind::Forbid, 0);
    check("forbid i in 0..2: x;", None, PropertyKind::Forbid, 1);
    check("forbid name: i in 0..2, j < k in 0..3: x;", Some("name"), PropertyKind::Forbid, 2);
    check("forbid i < j;", None, PropertyKind::Forbid, 0);
    check("invariant exists i in 0..2: x;", None, PropertyKind::Invariant, 0);
    check("finally exists i in 0..2: x;", None, PropertyKind::FinallyExists, 1);
    check("finally name: never exists i in 0..2: x;", Some("name"), PropertyKind::FinallyNever, 0);
    check("finally forall x;", None, PropertyKind::FinallyForall, 0);
}

#[test]
fn blank_lines_stand_between_sections() {
    assert_eq!(
        print("const N = 1; shared x; thread p { } thread q { } forbid x; invariant x; spare p@end;"),
        "const N = 1;
shared x;

thread p {}

thread q {}

forbid x;
invariant x;

spare p@end;
"
    );
}

#[test]
fn spans_point_at_the_text() {
    let text = "shared x;\nforbid a: (x + 1) * 2 == 3;";
    let (file, _) = fw::parse(text);
    let [_, Item::Property(property)] = file.items.as_slice() else { panic!("two items were written") };
    let at = |span: fencewright_program::Span| &text[span.range()];
    assert_eq!(at(property.span), "forbid a: (x + 1) * 2 == 3;");
    assert_eq!(at(property.formula.span), "(x + 1) * 2 == 3");
}
