//! The generated programs have their intended meaning: verdicts of engines are compared with independently computed answers.
//!
//! In programs that only compare values, a few values are sufficient. So the tests replace `*` by `* in 0..K`, and engine `explicit` decides the
//! resulting programs.

use std::collections::BTreeSet;
use std::time::Duration;

use fencewright_engines::auto::Auto;
use fencewright_engines::cegar::Cegar;
use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Confirm, Engine, Limits, Progress, Task, Verdict, check};
use fencewright_generate::automata::{Automaton, intersection, random_automata};
use fencewright_generate::bakery::bakery;
use fencewright_generate::lossy::{Lossy, LossyOp, channel, random_lossy};
use fencewright_generate::random::{Numbers, Shape, random};
use fencewright_lang::load;
use fencewright_program::MemoryModel::{self, Sc, Tso};

/// Whether each stated property holds.
fn verdicts(engine: &dyn Engine, text: &str, model: MemoryModel) -> Vec<bool> {
    let program = load("generated.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    let stated = program.properties.iter().filter(|p| p.name != "assertions").cloned().collect();
    let task = Task::new(&program, model, stated);
    let limits = Limits::starting_now(Some(Duration::from_secs(100)), None, Default::default());
    check(engine, &task, &limits, &Progress::default(), Confirm::NOTHING)
        .iter()
        .map(|checked| match checked.verdict() {
            Verdict::Safe => true,
            Verdict::Unsafe => false,
            Verdict::Unknown(reason) => panic!("{reason}\n{text}"),
        })
        .collect()
}

/// Whether each stated property holds if every `*` chooses among this many values.
fn with_values(text: &str, values: usize, model: MemoryModel) -> Vec<bool> {
    let finite = text.replace("= *;", &format!("= * in 0..{values};"));
    verdicts(&Explicit::default(), &finite, model)
}

#[test]
fn the_bakery_needs_its_fences_under_tso() {
    assert_eq!(verdicts(&Cegar::default(), &bakery(2, false), Sc), [true]);
    assert_eq!(verdicts(&Cegar::default(), &bakery(2, true), Tso), [true]);
    assert_eq!(verdicts(&Auto::default(), &bakery(2, false), Tso), [false]);
    let (before, after) = fenced_halves();
    assert_eq!(verdicts(&Auto::default(), &before, Tso), [false], "the first fence alone");
    assert_eq!(verdicts(&Auto::default(), &after, Tso), [false], "the second fence alone");
}

/// Two bakeries, each without one of the two fences.
fn fenced_halves() -> (String, String) {
    let text = bakery(2, true);
    let (first, last) = (text.find("        fence;\n"), text.rfind("        fence;\n"));
    let without = |at: Option<usize>| {
        let at = at.expect("there is a fence");
        format!("{}{}", &text[..at], &text[at + "        fence;\n".len()..])
    };
    (without(last), without(first))
}

/// Whether all automata accept some common word, by search in their product.
fn have_a_word_in_common(automata: &[Automaton], letters: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![automata.iter().map(|a| a.initial).collect::<Vec<_>>()];
    while let Some(at) = waiting.pop() {
        if !seen.insert(at.clone()) {
            continue;
        }
        if automata.iter().zip(&at).all(|(a, q)| a.accepting.contains(q)) {
            return true;
        }
        for letter in 0..letters {
            let mut reached = vec![Vec::new()];
            for (automaton, &q) in automata.iter().zip(&at) {
                let to = automaton.transitions.iter().filter(|t| (t.0, t.1) == (q, letter)).map(|t| t.2);
                let to: Vec<usize> = to.collect();
                let longer = |prefix: &Vec<usize>| {
                    to.iter().map(|&q| [prefix.as_slice(), &[q]].concat()).collect::<Vec<_>>()
                };
                reached = reached.iter().flat_map(longer).collect();
            }
            waiting.extend(reached);
        }
    }
    false
}

#[test]
fn accepted_means_that_there_is_a_word() {
    let mut answers = [0, 0];
    for seed in 0..90 {
        let (number, states, letters) = [(2, 3, 2), (3, 3, 1), (3, 2, 3)][seed as usize % 3];
        let automata = random_automata(seed, number, states, letters);
        let expected = have_a_word_in_common(&automata, letters);
        answers[usize::from(expected)] += 1;
        let text = intersection(&automata, letters);
        assert_eq!(with_values(&text, states, Tso), [!expected], "seed {seed}\n{text}");
    }
    assert!(answers.iter().all(|&times| times >= 20), "both answers occur: {answers:?}");
}

#[test]
fn automata_without_accepting_states_or_transitions() {
    let stuck = |accepting| Automaton { states: 2, transitions: vec![], initial: 0, accepting };
    assert_eq!(with_values(&intersection(&[stuck(vec![])], 1), 2, Sc), [true]);
    assert_eq!(with_values(&intersection(&[stuck(vec![1])], 1), 2, Sc), [true]);
    assert_eq!(with_values(&intersection(&[stuck(vec![0])], 1), 2, Sc), [false], "the empty word");
}

/// Number of values besides the separator.
const DATA: usize = 3;

/// Whether a system whose transitions all lead to states with larger numbers reaches its target (CONTEXT24 Fig. 2). Messages are lost only when a
/// later message is received.
fn reaches_target(system: &Lossy) -> bool {
    type Configuration = (usize, Vec<usize>, Vec<(usize, usize)>);
    let mut waiting: Vec<Configuration> = vec![(0, vec![0; system.variables], Vec::new())];
    let mut seen = BTreeSet::new();
    while let Some(configuration) = waiting.pop() {
        if !seen.insert(configuration.clone()) {
            continue;
        }
        let (state, values, messages) = configuration;
        if state == system.target {
            return true;
        }
        for &(_, op, to) in system.transitions.iter().filter(|t| t.0 == state) {
            let mut set = |x: usize, value: usize, messages: &[(usize, usize)]| {
                let mut values = values.clone();
                values[x] = value;
                waiting.push((to, values, messages.to_vec()));
            };
            match op {
                LossyOp::Copy(x, y) => set(x, values[y], &messages),
                LossyOp::Fresh(x) => {
                    (0..DATA).filter(|v| !values.contains(v)).for_each(|v| set(x, v, &messages));
                }
                LossyOp::Equal(x, y) if values[x] == values[y] => set(x, values[x], &messages),
                LossyOp::Different(x, y) if values[x] != values[y] => set(x, values[x], &messages),
                LossyOp::Equal(..) | LossyOp::Different(..) => {}
                LossyOp::Send(letter, x) => {
                    set(x, values[x], &[messages.as_slice(), &[(letter, values[x])]].concat());
                }
                LossyOp::Receive(letter, x) => {
                    for (n, &(_, value)) in messages.iter().enumerate().filter(|(_, m)| m.0 == letter) {
                        set(x, value, &messages[n + 1..]);
                    }
                }
            }
        }
    }
    false
}

fn target_is_reached(system: &Lossy) -> bool {
    with_values(&channel(system), DATA + 1, Tso) == [false]
}

#[test]
fn messages_are_received_at_most_once_and_in_order() {
    use LossyOp::*;
    let check = |ops: &[LossyOp], expected: bool| {
        let transitions = ops.iter().enumerate().map(|(n, &op)| (n, op, n + 1)).collect();
        let system =
            Lossy { states: ops.len() + 1, variables: 2, letters: 2, transitions, target: ops.len() };
        assert_eq!(reaches_target(&system), expected, "the system: {ops:?}");
        assert_eq!(target_is_reached(&system), expected, "the program: {ops:?}");
    };
    check(&[Send(0, 0), Receive(0, 1)], true);
    check(&[Receive(0, 1)], false);
    check(&[Send(0, 0), Receive(1, 1)], false);
    check(&[Send(0, 0), Receive(0, 0), Receive(0, 1)], false);
    check(&[Send(0, 0), Send(1, 0), Receive(0, 1), Receive(1, 1)], true);
    check(&[Send(0, 0), Send(1, 0), Receive(1, 1), Receive(0, 1)], false);
    check(&[Send(0, 0), Send(0, 0), Send(1, 0), Receive(0, 0), Receive(1, 0)], true);
    check(&[Fresh(0), Send(0, 0), Receive(0, 1), Equal(0, 1)], true);
    check(&[Fresh(0), Send(0, 0), Receive(0, 1), Different(0, 1)], false);
    check(&[Send(0, 0), Fresh(0), Send(0, 0), Receive(0, 1), Equal(0, 1)], true);
    check(&[Fresh(0), Equal(0, 1)], false);
    check(&[Fresh(0), Copy(1, 0), Equal(0, 1)], true);
}

#[test]
fn programs_of_lossy_channel_systems_do_what_the_systems_do() {
    let mut answers = [0, 0];
    for seed in 0..150 {
        let mut system = random_lossy(seed, 6, 2, 2, 12);
        // Without cyclic transitions, the state spaces of the system and of the program are finite.
        system.transitions.retain(|&(from, _, to)| from < to);
        let expected = reaches_target(&system);
        answers[usize::from(expected)] += 1;
        assert_eq!(target_is_reached(&system), expected, "seed {seed}: {system:?}");
    }
    assert!(answers.iter().all(|&times| times >= 20), "both answers occur: {answers:?}");
}

#[test]
fn properties_of_random_programs_hold_fail_and_fail_under_tso_only() {
    let shape =
        Shape { threads: 2, length: 5, variables: 2, numbers: Numbers::Nat, distances: false, loops: false };
    let (mut hold, mut fail, mut only_tso) = (0, 0, 0);
    for seed in 0..200 {
        let text = random(seed, shape);
        // Five values are sufficient: 0, and one for each of at most four guesses.
        let (sc, tso) = (with_values(&text, 5, Sc), with_values(&text, 5, Tso));
        for answers in sc.into_iter().zip(tso) {
            match answers {
                (true, true) => hold += 1,
                (true, false) => only_tso += 1,
                // These are properties that fail under SC, among them a `finally exists` that holds under TSO only.
                (false, _) => fail += 1,
            }
        }
    }
    assert!(
        hold > 100 && fail > 100 && only_tso > 20,
        "hold {hold}, fail {fail}, fail under tso only {only_tso}"
    );
}
