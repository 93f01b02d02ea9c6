//! The preprocessor: examples of the standard, hostile texts, and random macros against `gcc -E` where gcc is installed.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::Texts;
use fencewright_c::preprocess::{Preprocessed, preprocess};
use fencewright_c::{Error, Kind, Names, lex};
use fencewright_program::FileId;

fn run_with(text: &str, headers: &[(&'static str, &'static str)]) -> Result<Preprocessed, Vec<Error>> {
    let mut files = Texts { headers: headers.iter().copied().collect(), ..Texts::main(text) };
    preprocess(&mut files, &[], &|| false)
}

fn spellings(found: &Preprocessed) -> Vec<String> {
    found.tokens.iter().map(|token| found.names.spelling(token.symbol).to_string()).collect()
}

/// The tokens of a text, joined by blanks.
fn tokens(text: &str) -> String {
    match run_with(text, &[]) {
        Ok(found) => spellings(&found).join(" "),
        Err(errors) => panic!("{errors:?}"),
    }
}

fn error(text: &str) -> Error {
    run_with(text, &[]).expect_err("it is wrong").remove(0)
}

#[test]
fn macros_of_the_standard() {
    // C11 6.10.3.5, examples 3, 4, 5 and 7.
    let third = "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n#define h g(~\n\
                 #define m(a) a(w)\n#define w 0,1\n#define t(a) a\n#define p() int\n#define q(x) x\n#define r(x,y) x ## y\n\
                 #define str(x) # x\n\
                 f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);\ng(x+(3,4)-w) | h 5) & m\n(f)^m(m);\n\
                 p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };\nchar c[2][6] = { str(hello), str() };\n";
    let expected = "f(2 * (y+1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);\n\
                    f(2 * (2+(3,4)-0,1)) | f(2 * (~ 5)) & f(2 * (0,1))^m(0,1);\n\
                    int i[] = { 1, 23, 4, 5, };\nchar c[2][6] = { \"hello\", \"\" };";
    assert_eq!(tokens(third), tokens(expected));
    let fourth = "#define str(s) # s\n#define xstr(s) str(s)\n#define debug(s, t) printf(\"x\" # s \"= %d, x\" # t \"= %s\", \\\n\
                  x ## s, x ## t)\n#define glue(a, b) a ## b\n#define xglue(a, b) glue(a, b)\n#define HIGHLOW \"hello\"\n\
                  #define LOW LOW \", world\"\ndebug(1, 2);\nfputs(str(strncmp(\"abc\\0d\", \"abc\", '\\4') // this goes away\n\
                  == 0) str(: @\\n), s);\nglue(HIGH, LOW);\nxglue(HIGH, LOW)\n";
    let expected = "printf(\"x\" \"1\" \"= %d, x\" \"2\" \"= %s\", x1, x2);\n\
                    fputs(\"strncmp(\\\"abc\\\\0d\\\", \\\"abc\\\", '\\\\4') == 0\" \": @\\n\", s);\n\"hello\";\n\"hello\" \", world\"";
    assert_eq!(tokens(fourth), tokens(expected));
    let fifth = "#define t(x,y,z) x ## y ## z\nint j[] = { t(1,2,3), t(,4,5), t(6,,7), t(8,9,), t(10,,), t(,11,), t(,,12), t(,,) };";
    assert_eq!(tokens(fifth), tokens("int j[] = { 123, 45, 67, 89, 10, 11, 12, };"));
    let seventh = "#define debug(...) fprintf(stderr, __VA_ARGS__)\n#define showlist(...) puts(#__VA_ARGS__)\n\
                   #define report(test, ...) ((test)?puts(#test): printf(__VA_ARGS__))\ndebug(\"Flag\"); debug(\"X = %d\\n\", x);\n\
                   showlist(The first, second, and third items.); report(x>y, \"x is %d but y is %d\", x, y);";
    let expected = "fprintf(stderr, \"Flag\"); fprintf(stderr, \"X = %d\\n\", x); puts(\"The first, second, and third items.\");\n\
                    ((x>y)?puts(\"x>y\"): printf(\"x is %d but y is %d\", x, y));";
    assert_eq!(tokens(seventh), tokens(expected));
}

#[test]
fn extensions_of_gnu() {
    let text = "#define say(format, args...) printf(format, ## args)\n#define all(...) f(0 __VA_OPT__(,) __VA_ARGS__)\n\
                say(\"a\"); say(\"a\", 1, 2); all() all(1) __COUNTER__ __COUNTER__ _Pragma(\"once\") __LINE__";
    assert_eq!(tokens(text), tokens("printf(\"a\"); printf(\"a\", 1, 2); f(0) f(0, 1) 0 1 3"));
}

#[test]
fn conditions() {
    let yes = [
        "1",
        "2 > 1 ? 1 : 0",
        "defined X",
        "!defined(Y) && X == 3",
        "-1 > 0u",
        "'a' == 97",
        "(1 || 1 / 0)",
        "0x10 == 16L",
        "~0 == -1",
        "UNKNOWN == 0",
        "1 << 3 == 8",
        "X % 2 == 1",
        "'\\377' < 0",
    ];
    for condition in yes {
        assert_eq!(
            tokens(&format!("#define X 3\n#if {condition}\nyes\n#else\nno\n#endif")),
            "yes",
            "{condition}"
        );
    }
    assert_eq!(
        tokens("#if 0\n#if 1\na\n#else\nb\n#endif\n#elif 1\nc\n#elif nonsense (\nd\n#else\ne\n#endif"),
        "c"
    );
    assert_eq!(tokens("#ifdef A\n'\n#bogus\n#else\nfine\n#endif"), "fine");
    for (text, wrong) in [
        ("#if 1 / 0\n#endif", "division by zero"),
        ("#if\n#endif", "not complete"),
        ("#if 1 +\n#endif", "not complete"),
        ("#if 1 1\n#endif", "an operator"),
        ("#if (1\n#endif", "`)`"),
        ("#if 1", "no `#endif`"),
        ("#else", "without an `#if`"),
        ("#if 1\n#else\n#else\n#endif", "behind `#else`"),
        ("#bogus", "no directive"),
        ("#error too bad", "#error too bad"),
        ("#define f(x", "never closed"),
        ("#define f(x) #y", "must be followed by a parameter"),
        ("#define f ## a", "`##`"),
        ("#define f(a, b) a\nf(1)", "takes 2 arguments"),
        ("#define f(a) a\nf(1", "never closed"),
        ("#define f(a, b) a ## b\nf(+, /)", "not one token"),
        ("#include <none.h>", "cannot include `none.h`"),
        ("/* open", "never closed"),
    ] {
        let found = error(text).message;
        assert!(found.contains(wrong), "{text}: {found}");
    }
}

#[test]
fn tokens_have_source_positions() {
    let header = "#pragma once\n#define TWICE(a) (a + a)\n#define INNER TWICE(y)\n";
    let found = run_with("#include \"h.h\"\n#include \"h.h\"\nx = INNER + z;", &[("h.h", header)])
        .expect("it is right");
    let token = |spelling: &str| {
        *found
            .tokens
            .iter()
            .find(|token| &**found.names.spelling(token.symbol) == spelling)
            .expect("it occurs")
    };
    assert_eq!(spellings(&found).join(" "), "x = ( y + y ) + z ;");
    assert!(token("x").expansion.is_none() && token("z").span.file == FileId::MAIN);
    let y = token("y");
    assert_eq!(y.span.file, FileId(1));
    let twice = found.expansions[y.expansion.index().expect("a macro brought it")];
    let outer = found.expansions[twice.inside.index().expect("another one brought that")];
    assert_eq!(
        (&**found.names.spelling(twice.name), &**found.names.spelling(outer.name)),
        ("TWICE", "INNER")
    );
    assert!(outer.inside.is_none() && outer.at.file == FileId::MAIN);
}

#[test]
fn hostile_texts_end_in_an_error() {
    let doubled: String = (0..40).map(|n| format!("#define A{n} A{} A{}\n", n + 1, n + 1)).collect();
    assert!(error(&(doubled + "A0")).message.contains("more than"));
    let nested: String = (0..60).map(|n| format!("#define F{n}(x) F{}(x x)\n", n + 1)).collect();
    assert!(error(&(nested + "F0(a)")).message.contains("more than"));
    assert!(error("#include \"main.c\"").message.contains("too deep"));
    let deep = "f(".repeat(5_000) + &")".repeat(5_000);
    assert!(error(&format!("#define f(x) x\n{deep}")).message.contains("too deep"));
    let parentheses = "(".repeat(100_000);
    assert!(error(&format!("#if {parentheses}\n#endif")).message.contains("too deep"));
    let minus = "- ".repeat(100_001);
    assert_eq!(tokens(&format!("#if {minus}1 == -1\nok\n#endif")), "ok");
    assert_eq!(tokens("a \\\n b\\\nc"), "a bc");
    assert_eq!(tokens("\u{feff}"), "\u{feff}");
    let long = "#define x y\n".to_owned() + &"x;\n".repeat(100_000);
    assert_eq!(run_with(&long, &[]).expect("it is right").tokens.len(), 200_000);
}

/// The tokens that gcc makes of a text; `None` if it is not installed.
fn gcc(text: &str) -> Option<String> {
    let mut child = Command::new("gcc")
        .args(["-E", "-P", "-undef", "-nostdinc", "-std=gnu11", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The next number below `below` of a small generator (xorshift).
fn next(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// A text with random macros that use each other, and uses of them.
fn random_text(state: &mut u64) -> String {
    let mut text = String::new();
    let word = |state: &mut u64| ["a", "b", "M1", "M2", "M5", "7", "F2", ""][next(state, 8) as usize];
    let call = |state: &mut u64| match next(state, 4) {
        0 => format!("F0({})", word(state)),
        1 => format!("F1({}, {})", word(state), word(state)),
        2 => "F2()".into(),
        _ => format!("F3({}, {} v, {})", word(state), word(state), word(state)),
    };
    let piece = |state: &mut u64, parameters: &[&str]| -> String {
        match next(state, 12) {
            0..=1 => format!("M{}", next(state, 6)),
            2 => format!("F{}", next(state, 4)),
            3..=5 => call(state),
            6..=8 if !parameters.is_empty() => {
                parameters[next(state, parameters.len() as u64) as usize].into()
            }
            6 => "F0(F2)()".into(),
            7 => format!("w{}", next(state, 3)),
            8 => "+".into(),
            9 => format!("{}", next(state, 30)),
            _ => "v".into(),
        }
    };
    for n in 0..6 {
        let body: Vec<String> = (0..next(state, 5)).map(|_| piece(state, &[])).collect();
        text += &format!("#define M{n} {}\n", body.join(" "));
    }
    for n in 0..4 {
        let parameters: &[&str] = [&["p"][..], &["p", "q"], &[], &["p", "..."]][n];
        let usable: Vec<&str> =
            parameters.iter().map(|&p| if p == "..." { "__VA_ARGS__" } else { p }).collect();
        let mut body = Vec::new();
        for _ in 0..next(state, 6) {
            match (next(state, 8), usable.is_empty()) {
                (0, false) => body.push(format!("#{}", usable[next(state, usable.len() as u64) as usize])),
                (1, false) => body.push(format!("x ## {}", usable[0])),
                (2, false) => body.push(format!("{} ## {}", usable[0], next(state, 10))),
                _ => body.push(piece(state, &usable)),
            }
        }
        text += &format!("#define F{n}({}) {}\n", parameters.join(","), body.join(" "));
    }
    for _ in 0..8 {
        let uses: Vec<String> = (0..4).map(|_| piece(state, &[])).collect();
        text += &format!("{} ;\n", uses.join(" "));
    }
    text
}

#[test]
fn random_macros_against_gcc() {
    if gcc("").is_none() {
        println!("skipped: gcc is not installed");
        return;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let (mut same, mut refused) = (0, 0);
    for round in 0..400 {
        let text = random_text(&mut state);
        let (expected, found) = (gcc(&text), run_with(&text, &[]));
        let (Some(expected), Ok(found)) = (&expected, &found) else {
            // gcc and our preprocessor refuse the same texts.
            assert!(expected.is_none() && found.is_err(), "round {round}:\n{text}\n{expected:?}\n{found:?}");
            refused += 1;
            continue;
        };
        let mut names = Names::default();
        let lexed = lex(expected, FileId::MAIN, &mut names).expect("gcc closes comments");
        let lexed: Vec<String> = lexed
            .iter()
            .filter(|token| token.kind != Kind::Newline)
            .map(|token| names.spelling(token.symbol).to_string())
            .collect();
        assert_eq!(spellings(found), lexed, "round {round}:\n{text}\n{expected}");
        same += 1;
    }
    println!("{same} alike, {refused} refused by both");
    assert!(same > 50);
}
