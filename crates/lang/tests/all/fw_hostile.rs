//! Arbitrary bytes get an answer within the time limit, without a panic.

use std::time::Duration;

use fencewright_lang::fw;
use fencewright_lang::source::{SourceFile, decode};
use fencewright_testing::measure::computed;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const PROGRAM: &str = "const N = 2;
shared flag[N], turn: 0..4 = 1, a[2] open = [1, 2], z = * in 0..4;
thread p[me in 0..N] {
    var r = *, s: 0..=3; // a comment
    loop {
        flag[me] = 1;
        await flag[1 - me] == 0 || turn != -me && !(r % 3 < 2);
    critical:
        r = cas(turn, 0, 0x1f) + fetch_add(a[s], 2);
        if r { skip; } else if s { stop; } else { goto critical; }
        choose { atomic { assume turn; } } or { for j in 0..N { a[j] = *; } }
        /* another */
    }
}
forbid mutex: i < j in 0..N: p[i]@critical && p[j]@critical;
finally exists forall i in 0..N: p[i].r | 3 ^ flag[i] & 1 == 4;
predicates { turn < z, p[0].r == 1; }
spare p@critical; cost fence 4; cost p[0]@critical 10;
";

/// Parses, renders, prints and formats: the results must be consistent and within the time limit.
#[track_caller]
fn survive(bytes: &[u8], limit: Duration) {
    let start = computed();
    match decode(bytes) {
        Err(diagnostic) => {
            let shown = SourceFile::lossy("test.fw", bytes).render(&[diagnostic], true);
            assert!(shown.len() < 10_000, "{} bytes of output", shown.len());
        }
        Ok(text) => {
            let (file, diagnostics) = fw::parse(&text);
            let source = SourceFile::new("test.fw", text);
            let shown = source.render(&diagnostics, false);
            assert!(shown.len() < 100_000, "{} bytes of output", shown.len());
            for diagnostic in &diagnostics {
                assert!(diagnostic.span.start <= diagnostic.span.end);
                assert!(diagnostic.span.end as usize <= source.text.len());
                assert!(diagnostic.message.len() < 1_000, "{}", diagnostic.message);
            }
            // After errors, the parsed part of the text can still be printed.
            assert!(file.items.is_empty() || !fw::print(&file).is_empty());
            let formatted = fw::format(&source.text);
            assert_eq!(formatted.is_ok(), diagnostics.is_empty());
        }
    }
    let took = computed() - start;
    assert!(took < limit, "it took {took:?}");
}

fn words() -> impl Strategy<Value = &'static str> {
    let signs = "; , : . .. ..= @ ( ) [ ] { } = == != < <= > >= && || & | ^ + - * / % ! := ++ += -> ... # \" // /* */ \n";
    let names = "x p flag 0 1 0x 0x1f 99999999999999999999 and not é \u{202e}";
    let mut words: Vec<&'static str> = fw::Keyword::ALL.iter().map(|k| k.text()).collect();
    words.extend(signs.split(' '));
    words.extend(names.split(' '));
    prop::sample::select(words)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes, Duration::from_secs(5));
    }

    #[test]
    fn random_text(text in "\\PC{0,200}") {
        survive(text.as_bytes(), Duration::from_secs(5));
    }

    #[test]
    fn random_words(words in prop::collection::vec(words(), 0..200)) {
        survive(words.join(" ").as_bytes(), Duration::from_secs(5));
    }

    #[test]
    fn a_program_with_other_words_in_it(edits in prop::collection::vec((any::<usize>(), words()), 1..6)) {
        let mut text = PROGRAM.to_string();
        for (place, word) in edits {
            let place = place % text.len();
            if text.is_char_boundary(place) {
                text.insert_str(place, word);
            }
        }
        survive(text.as_bytes(), Duration::from_secs(5));
    }

    #[test]
    fn a_program_with_a_part_missing(from in 0..PROGRAM.len(), length in 0..40_usize) {
        let to = (from + length).min(PROGRAM.len());
        survive([&PROGRAM[..from], &PROGRAM[to..]].concat().as_bytes(), Duration::from_secs(5));
    }

    #[test]
    fn a_program_with_other_bytes(edits in prop::collection::vec((0..PROGRAM.len(), any::<u8>()), 1..6)) {
        let mut bytes = PROGRAM.as_bytes().to_vec();
        for (place, byte) in edits {
            bytes[place] = byte;
        }
        survive(&bytes, Duration::from_secs(5));
    }
}

#[test]
fn the_program_itself_has_no_errors() {
    assert_eq!(fw::parse(PROGRAM).1, []);
}

#[test]
fn every_beginning_of_a_program() {
    for end in 0..PROGRAM.len() {
        survive(&PROGRAM.as_bytes()[..end], Duration::from_secs(5));
    }
}

#[test]
fn large_and_deep_files() {
    let n = 100_000;
    let in_thread = |body: &str| format!("thread p {{ {body} }}");
    let cases = [
        "(".repeat(n),
        ")".repeat(n),
        "{".repeat(n),
        "}".repeat(n),
        "[".repeat(n),
        in_thread(&"{".repeat(n)),
        in_thread(&("{".repeat(n) + &"}".repeat(n))),
        in_thread(&"loop { ".repeat(n)),
        in_thread(&"if x { } else ".repeat(n)),
        in_thread(&"if x { skip; ".repeat(n)),
        in_thread(&"if ( { ".repeat(n)),
        in_thread(&"if x y ".repeat(n)),
        in_thread(&"choose ".repeat(n)),
        in_thread(&"a: ".repeat(n)),
        in_thread(&format!("x = {}", "(".repeat(n))),
        in_thread(&format!("x = {}1{};", "(".repeat(n), ")".repeat(n))),
        in_thread(&format!("x = {}", "a[".repeat(n))),
        in_thread(&"a[".repeat(n)),
        in_thread(&format!("x = {}1;", "-".repeat(n))),
        in_thread(&format!("x = {}1;", "!".repeat(n))),
        in_thread(&format!("x = {}1;", "1 + ".repeat(n))),
        in_thread(&format!("x = {}1;", "1 < ".repeat(n))),
        in_thread(&"x = 1;".repeat(n)),
        in_thread(&"x = ;".repeat(n)),
        in_thread(&"cas(".repeat(n)),
        in_thread(&"x = cas(x, ".repeat(n)),
        format!("forbid {}x;", "exists i in 0..2: ".repeat(n)),
        format!("forbid {}", "exists i in ".repeat(n)),
        format!("forbid {}x;", "i in 0..2, ".repeat(n)),
        format!("forbid {}a;", "a&&".repeat(350_000)),
        format!("forbid {}a;", "a||b&&".repeat(200_000)),
        format!("forbid {}a{};", "(a && ".repeat(n), ")".repeat(n)),
        format!("predicates {{ {}x; }}", "x, ".repeat(n)),
        format!("shared x = [{}];", "1, ".repeat(n)),
        format!("shared {}x;", "x, ".repeat(n)),
        "shared x;".repeat(n),
        "forbid ;".repeat(n),
        "thread p {".repeat(n),
        "thread ".repeat(n),
        "/*".repeat(n),
        "/**/".repeat(n),
        "// x\n".repeat(n),
        "\n".repeat(1_000_000),
        "#".repeat(n),
        "# ".repeat(n),
        "é".repeat(n),
        "x".repeat(1_000_000),
        "9".repeat(1_000_000),
        format!("shared {};", "x".repeat(1_000_000)),
        format!("shared x = {};", "9".repeat(1_000_000)),
        "\u{202e}\u{1b}[31m".repeat(n),
        "\0".repeat(n),
        format!("forbid x; // {}", "x".repeat(1_000_000)),
    ];
    for case in cases {
        let start: String = case.chars().take(30).collect();
        println!("{start:?}");
        survive(case.as_bytes(), Duration::from_secs(20));
    }
}

#[test]
fn a_long_conjunction_is_a_shallow_tree_that_reads_from_left_to_right() {
    use fencewright_lang::ast::{Expr, ExprKind, Item};
    fn depth(expr: &Expr, leaves: &mut Vec<i64>) -> usize {
        match &expr.kind {
            ExprKind::Binary(_, left, right) => 1 + depth(left, leaves).max(depth(right, leaves)),
            ExprKind::Int(value) => {
                leaves.push(*value);
                1
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    let numbers: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    let (file, diagnostics) = fw::parse(&format!("forbid {};", numbers.join(" && ")));
    assert_eq!(diagnostics, []);
    let [Item::Property(property)] = file.items.as_slice() else { panic!("one property was written") };
    let mut leaves = Vec::new();
    assert_eq!(depth(&property.formula, &mut leaves), 15);
    assert_eq!(leaves, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn too_many_words() {
    let text = ";".repeat(fw::MAX_TOKENS + 1);
    let (_, diagnostics) = fw::parse(&text);
    assert!(
        diagnostics.iter().any(|d| d.message == "the file is too long: more than 2000000 words and signs")
    );
}
