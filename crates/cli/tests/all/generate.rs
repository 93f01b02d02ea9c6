//! `fencewright generate`, as a user would type it.

use crate::common::*;

#[test]
fn a_bakery_looks_like_this() {
    let expected = "\
// Written by `fencewright generate bakery --threads 2 --fences`.
// Lamport's bakery with tickets that are only compared: a thread draws any number, and again until it
// is larger than every ticket it sees. The lowest ticket goes first, ties by thread number.
// Fenced for TSO: others must see that a thread is choosing before it reads their tickets, and
// must see its ticket before it asks whose turn it is.
numbers nat;

const N = 2;
shared chosen[N] = 1, ticket[N];

thread p[me in 0..N] {
    var mine, theirs;
    loop {
    choosing:
        chosen[me] = 0;
        fence;
        mine = *;
        for j in 0..N {
            if j != me {
                theirs = ticket[j];
                if mine <= theirs {
                    goto choosing;
                }
            }
        }
        ticket[me] = mine;
        chosen[me] = 1;
        fence;
        for j in 0..N {
            if j != me {
                await chosen[j] == 1;
                loop {
                    theirs = ticket[j];
                    if theirs == 0 || mine < theirs || mine == theirs && me < j {
                        break;
                    }
                }
            }
        }
    critical:
        skip;
        ticket[me] = 0;
    }
}

forbid mutex: i < j in 0..N: p[i]@critical && p[j]@critical;
";
    let outcome = run(["generate", "bakery", "--threads", "2", "--fences"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, expected));
}

#[test]
fn the_command_line_in_the_text_writes_it_again() {
    for family in [
        "bakery --threads 3",
        "automata --automata 2 --states 3 --letters 2 --seed 5",
        "lossy --states 3 --variables 2 --letters 1 --transitions 4 --seed 6",
        "random --seed 8 --threads 3 --length 6 --variables 3 --numbers real --distances --loops",
        "random",
    ] {
        let first = run(["generate"].into_iter().chain(family.split(' ')));
        assert_eq!(first.status, 0, "{first:?}");
        let line = first.stdout.lines().next().expect("there is a first line");
        let words = line.trim_start_matches("// Written by `fencewright ").trim_end_matches("`.");
        assert_eq!(run(words.split(' ')).stdout, first.stdout, "{words}");
        assert_eq!(run_with_input(["show", "-"], first.stdout.as_bytes()).status, 0, "{family}");
    }
}

#[test]
fn programs_go_to_a_file() {
    let files = Files::new(&[]);
    let path = files.text("bakery.fw");
    assert_eq!(run(["generate", "bakery", "--fences", "-o", &path]).stdout, "");
    assert_eq!(run(["generate", "-o", &path, "bakery", "--fences"]).status, 0);
    assert_eq!(run(["check", "--engine", "cegar", "-q", &path]).status, 0);
    let nowhere = run(["generate", "bakery", "-o", &files.text("missing/bakery.fw")]);
    assert_eq!(nowhere.status, 2, "{nowhere:?}");
    assert!(nowhere.stderr.contains("cannot write it: no such file"), "{nowhere:?}");
}

#[test]
fn sizes_out_of_range_are_errors() {
    let refused = |arguments: &[&str], expected: &str| {
        let outcome = run(["generate"].iter().chain(arguments));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(expected), "{outcome:?}");
    };
    refused(&["bakery", "--threads", "1"], "--threads: 1 is not possible: at least 2 and at most 64");
    refused(&["bakery", "--threads", "1000000"], "at most 64");
    refused(&["automata", "--states", "0"], "--states: 0 is not possible: at least 1 and at most 32");
    refused(&["automata", "--letters", "18446744073709551615"], "at most 16");
    refused(&["lossy", "--transitions", "5000"], "--transitions: 5000 is not possible");
    refused(&["random", "--variables", "0"], "--variables: 0 is not possible");
    refused(&["random", "--length", "-1"], "unexpected argument '-1'");
    refused(&["random", "--numbers", "complex"], "[possible values: nat, int, real]");
    refused(&["nothing"], "unrecognized subcommand");
    refused(&[], "Usage: fencewright generate");
}
