//! Rendering for terminals, and escaping.

use fencewright_lang::diagnostic::Diagnostic;
use fencewright_lang::source::{MAX_FILE_BYTES, SourceFile, decode, escape};
use fencewright_program::Span;

#[test]
fn lines_and_columns() {
    let file = SourceFile::new("x", "ab\r\ncé d\n\nend");
    let check = |offset, expected| assert_eq!(file.line_column(offset), expected, "offset {offset}");
    check(0, (1, 1));
    check(3, (1, 4));
    check(4, (2, 1));
    check(5, (2, 2));
    check(6, (2, 2)); // inside of a character
    check(7, (2, 3));
    check(10, (3, 1));
    check(14, (4, 4));
    check(1_000, (4, 4));
    assert_eq!((1..=4).map(|line| file.line_text(line)).collect::<Vec<_>>(), ["ab", "cé d", "", "end"]);
    assert_eq!((file.line_text(0), file.line_text(5)), ("", ""));
}

#[test]
fn a_diagnostic_names_the_place_and_marks_it() {
    let file = SourceFile::new("lock.fw", "shared x;\n\tx ?? y\n");
    let diagnostic = Diagnostic::new(Span::new(13, 15), "what is this").label("here").help("remove it");
    assert_eq!(
        file.render(&[diagnostic], false),
        "error: what is this
  ┌─ lock.fw:2:4
  │
2 │     x ?? y
  │       ^^ here
  │
  = help: remove it

"
    );
}

#[test]
fn spans_of_all_kinds_are_shown() {
    let file = SourceFile::new("f", "aé\nb\n");
    let last_line = |span: Span| {
        let shown = file.render(&[Diagnostic::new(span, "m")], false);
        shown.lines().filter(|l| l.contains('│')).nth(2).map(str::to_owned)
    };
    assert_eq!(last_line(Span::new(0, 5)).as_deref(), Some("  │ ^^"));
    assert_eq!(last_line(Span::new(1, 2)).as_deref(), Some("  │  ^"));
    assert_eq!(last_line(Span::new(2, 2)).as_deref(), Some("  │  ^"));
    assert_eq!(last_line(Span::new(4, 4)).as_deref(), Some("  │ ^"));
    assert_eq!(last_line(Span::new(6, 6)).as_deref(), Some("  │ ^"));
    assert_eq!(last_line(Span::new(900, 1000)).as_deref(), Some("  │ ^"));
    assert_eq!(last_line(Span::new(3, 1)).as_deref(), Some("  │   ^"));
}

#[test]
fn text_of_the_user_is_escaped_for_the_terminal() {
    let hostile = "\u{1b}[31m\u{7}\u{9b}\u{202e}\u{2066}\u{200b}\r\u{2028}";
    let file = SourceFile::new(format!("{hostile}\n.fw"), format!("x {hostile} y\nz"));
    let diagnostic = Diagnostic::new(Span::new(2, 5), format!("m {hostile}\n")).label(hostile).help(hostile);
    let shown = file.render(&[diagnostic], false);
    let raw = shown
        .chars()
        .filter(|c| (c.is_control() && *c != '\n') || "\u{202e}\u{2066}\u{200b}\u{2028}".contains(*c));
    assert_eq!(raw.collect::<String>(), "");
    assert_eq!(shown.lines().count(), 8, "{shown}");
    assert_eq!(escape("a\u{1b}\u{202e}\tb"), "a\\u{1b}\\u{202e}\\u{9}b");
}

#[test]
fn colours_only_if_asked_for() {
    let file = SourceFile::new("f", "x");
    let diagnostics = [Diagnostic::new(Span::new(0, 1), "m")];
    assert!(file.render(&diagnostics, true).contains('\u{1b}'));
    assert!(!file.render(&diagnostics, false).contains('\u{1b}'));
}

#[test]
fn twenty_diagnostics_are_shown_and_the_rest_counted() {
    let file = SourceFile::new("f", "x");
    let shown = |count: usize| {
        let shown = file.render(&vec![Diagnostic::new(Span::new(0, 1), "m"); count], false);
        (shown.matches("error: m").count(), shown.lines().last().unwrap_or_default().to_owned())
    };
    assert_eq!(shown(0), (0, String::new()));
    assert_eq!(shown(20), (20, String::new()));
    assert_eq!(shown(21), (20, "... and 1 more".into()));
    assert_eq!(shown(1_000), (20, "... and 980 more".into()));
}

#[test]
fn long_lines_and_messages_are_cut_around_the_place() {
    let text = format!("{}HERE{}", "a".repeat(1_000_000), "b".repeat(1_000_000));
    let file = SourceFile::new("f", text);
    let diagnostic = Diagnostic::new(Span::new(1_000_000, 1_000_004), "m".repeat(1_000_000));
    let shown = file.render(&[diagnostic], false);
    assert!(shown.len() < 2_000, "{} bytes", shown.len());
    let excerpt = format!("1 │ ...{}HERE{}...", "a".repeat(60), "b".repeat(96));
    let marks = format!("  │ {}^^^^", " ".repeat(63));
    assert!(shown.contains(&excerpt) && shown.contains(&marks), "{shown}");
    assert!(shown.contains("f:1:1000001"), "{shown}");
}

#[test]
fn bytes_to_text() {
    let check = |bytes: &[u8], expected: Result<&str, &str>| {
        let found = decode(bytes).map_err(|d| d.message);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    };
    check(b"shared x;", Ok("shared x;"));
    check(b"\xef\xbb\xbfshared x;", Ok("shared x;"));
    check(b"", Ok(""));
    check(b"ab\xff", Err("the file is not UTF-8 text: byte 0xff at offset 2"));
    check(b"\xef\xbb\xbfab\xc3", Err("the file is not UTF-8 text: byte 0xc3 at offset 5"));
    check(
        &vec![b' '; MAX_FILE_BYTES + 1],
        Err("the file is too large: 67108865 bytes, and at most 67108864 (64 MiB) are read"),
    );
    assert_eq!(
        decode(b"\xff\xfes\0h\0").unwrap_err().help.as_deref(),
        Some("the file looks like UTF-16: save it as UTF-8")
    );
}

#[test]
fn the_position_of_invalid_utf8_is_shown() {
    let bytes = b"\xef\xbb\xbfshared x;\nsha\xffred y;";
    let diagnostic = decode(bytes).unwrap_err();
    let shown = SourceFile::lossy("f", bytes).render(&[diagnostic], false);
    assert!(shown.contains("f:2:4") && shown.contains("2 │ sha\u{fffd}red y;\n  │    ^\n"), "{shown}");
}
