//! Tests that every generated text loads, is formatted as by `fencewright fmt`, and has only operations of its fragment.

use fencewright_generate::Family;
use fencewright_generate::random::{Numbers, Shape};
use fencewright_lang::{Loaded, fw, load};
use fencewright_program::{Action, Op, PropertyKind};

fn loaded(family: Family) -> (String, Loaded) {
    let text = family.text().expect("the sizes are possible");
    assert_eq!(Some(&text), family.text().as_ref().ok(), "the same parameters give the same text");
    let loaded = load("generated.fw", text.as_bytes(), None, &[]).unwrap_or_else(|error| {
        panic!("{family:?}\n{}\n{text}", error.sources.render(&error.diagnostics, false))
    });
    assert_eq!(fw::format(&text).as_deref(), Ok(text.as_str()), "{family:?} is not formatted");
    assert!(text.starts_with("// Written by `fencewright generate "), "{text}");
    (text, loaded)
}

#[test]
fn bakery() {
    for threads in [2, 3, 5, 64] {
        for fences in [false, true] {
            let (text, loaded) = loaded(Family::Bakery { threads, fences });
            assert_eq!(loaded.program.threads.len(), threads);
            assert!(!text.contains(" + "), "no arithmetic");
        }
    }
}

#[test]
fn automata() {
    for seed in 0..150 {
        let sizes = [(2, 2, 2), (1, 1, 1), (3, 4, 2), (2, 10, 3)][seed as usize % 4];
        let (automata, states, letters) = sizes;
        let (text, _) = loaded(Family::Automata { automata, states, letters, seed });
        assert!(!text.contains('<') && !text.contains(" + "), "only = and !=: {text}");
    }
    loaded(Family::Automata { automata: 16, states: 32, letters: 16, seed: 1 });
}

#[test]
fn lossy() {
    for seed in 0..150 {
        let (states, variables) = (1 + seed as usize % 5, 1 + seed as usize % 3);
        let (letters, transitions) = (1 + seed as usize % 2, seed as usize % 11);
        let (text, loaded) = loaded(Family::Lossy { states, variables, letters, transitions, seed });
        assert!(!text.contains('<') && !text.contains(" + "), "only = and !=: {text}");
        assert_eq!(loaded.program.threads.len(), 2);
    }
    loaded(Family::Lossy { states: 256, variables: 32, letters: 32, transitions: 1024, seed: 1 });
}

fn shape(seed: u64) -> Shape {
    let n = seed as usize;
    Shape {
        threads: 2 + n % 2,
        length: 1 + n % 9,
        variables: 1 + n % 4,
        numbers: [Numbers::Nat, Numbers::Int, Numbers::Real][n % 3],
        distances: n.is_multiple_of(2),
        loops: n.is_multiple_of(5),
    }
}

#[test]
fn random_programs() {
    for seed in 0..600 {
        let shape = shape(seed);
        let (text, loaded) = loaded(Family::Random { shape, seed });
        let program = &loaded.program;
        assert_eq!(program.threads.len(), shape.threads);
        let stated =
            program.properties.iter().filter(|p| !matches!(p.kind, PropertyKind::Assertions)).count();
        assert!((2..=3).contains(&stated), "{text}");
        assert!(text.matches("= *;").count() <= 4, "{text}");
        assert_eq!(text.matches(" lock;").count(), text.matches(" unlock;").count(), "{text}");
        let distances = text.lines().filter(|line| line.contains(" + "));
        let positive = |line: &str| line.trim_start().starts_with("assume ") && !line.contains('!');
        assert!(distances.clone().all(positive), "{text}");
        assert!(shape.distances || distances.count() == 0, "{text}");
        assert!(shape.loops || !text.contains("loop {"), "{text}");
    }
    let largest = Shape {
        threads: 16,
        length: 200,
        variables: 16,
        numbers: Numbers::Real,
        distances: true,
        loops: true,
    };
    loaded(Family::Random { shape: largest, seed: 3 });
}

#[test]
fn random_programs_use_the_whole_fragment() {
    let mut texts = String::new();
    let mut stores = 0;
    for seed in 0..100 {
        let (text, loaded) = loaded(Family::Random { shape: shape(seed), seed });
        let edges = loaded.program.threads.iter().flat_map(|thread| &thread.edges);
        stores += edges.filter(|edge| matches!(edge.action, Action::Op(Op::Store(..)))).count();
        texts.push_str(&text);
    }
    assert!(stores > 100);
    let parts =
        ["= *;", "fence;", "atomic {", " lock;", "if ", "} else {", "choose {", "loop {", "finally last: "];
    let guards = [" == ", " != ", " < ", " <= ", " + 1 <", " + 3 <= "];
    for part in parts.into_iter().chain(guards) {
        assert!(texts.contains(part), "never `{part}`");
    }
}

#[test]
fn sizes_that_are_not_possible() {
    let check = |family: Family, expected: &str| {
        let error = family.text().expect_err("not possible");
        assert_eq!(format!("{} {error}", error.option), expected);
    };
    check(
        Family::Bakery { threads: 1, fences: true },
        "--threads 1 is not possible: at least 2 and at most 64",
    );
    check(
        Family::Automata { automata: 2, states: usize::MAX, letters: 1, seed: 0 },
        &format!("--states {} is not possible: at least 1 and at most 32", usize::MAX),
    );
    check(
        Family::Lossy { states: 2, variables: 0, letters: 1, transitions: 1, seed: 0 },
        "--variables 0 is not possible: at least 1 and at most 32",
    );
    let shape = Shape { length: 1_000_000, ..shape(0) };
    check(Family::Random { shape, seed: 0 }, "--length 1000000 is not possible: at least 1 and at most 200");
}
