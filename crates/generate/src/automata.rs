//! The intersection problem for finite automata: is there a word that all of them accept? CONTEXT24 section 6.1 and Appendix B.
//!
//! The program is a single thread. In the programs of CONTEXT24, values can only be copied and compared, so each state of each automaton is
//! identified by a distinct value, which is kept in a register for that state. Each automaton has another register, with the value of its current
//! state. The thread repeatedly guesses a letter and takes one transition of every automaton with this letter, until all current states are
//! accepting. The label `accepted` is reachable if and only if all automata accept some common word. The problem is PSPACE-hard in the number of
//! automata.

use crate::choice::Random;
use crate::text::Text;

/// A nondeterministic finite automaton. States and letters are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automaton {
    /// The number of states.
    pub states: usize,
    /// The transitions as (source, letter, target).
    pub transitions: Vec<(usize, usize, usize)>,
    /// The initial state.
    pub initial: usize,
    /// The accepting states.
    pub accepting: Vec<usize>,
}

/// Random automata with `states` states each. Each has about one transition for each state and letter, and one or two accepting states.
pub fn random_automata(seed: u64, automata: usize, states: usize, letters: usize) -> Vec<Automaton> {
    let mut random = Random::new(seed);
    (0..automata).map(|_| random_automaton(&mut random, states, letters)).collect()
}

fn random_automaton(random: &mut Random, states: usize, letters: usize) -> Automaton {
    let mut transitions = Vec::new();
    for from in 0..states {
        for letter in 0..letters {
            let ways = *random.pick(&[0, 1, 1, 2]);
            transitions.extend((0..ways).map(|_| (from, letter, random.below(states))));
        }
    }
    transitions.sort_unstable();
    transitions.dedup();
    // The initial state 0 is accepting only if it is the only state. Otherwise all automata would often accept the empty word, and the problem would
    // be easy.
    let mut accepting = vec![states - 1];
    if states > 2 && random.one_in(4) {
        accepting.insert(0, 1 + random.below(states - 2));
    }
    Automaton { states, transitions, initial: 0, accepting }
}

/// The program whose label `accepted` is reachable if and only if all automata accept some common word over letters
/// below `letters`.
pub fn intersection(automata: &[Automaton], letters: usize) -> String {
    let mut text = Text::default();
    text.comment(
        "Finite automata run side by side on a guessed word: `accepted` can be reached if and only if all",
    );
    text.comment(
        "of them accept some word. aI_qS is the name of state S of automaton I, atI its current state.",
    );
    text.line("numbers nat;");
    text.blank();
    text.open("thread t");
    for (i, automaton) in automata.iter().enumerate() {
        text.declare("var", &(0..automaton.states).map(|q| state(i, q)).collect::<Vec<_>>());
    }
    text.declare("var", &(0..automata.len()).map(current).collect::<Vec<_>>());
    for (i, automaton) in automata.iter().enumerate() {
        for q in 0..automaton.states {
            text.line(&format!("{} = *;", state(i, q)));
            for other in 0..q {
                text.line(&format!("assume {} != {};", state(i, other), state(i, q)));
            }
        }
        text.line(&format!("{} = {};", current(i), state(i, automaton.initial)));
    }
    word(&mut text, automata, letters);
    for (i, automaton) in automata.iter().enumerate() {
        if automaton.accepting.is_empty() {
            text.line(&format!("assume {0} != {0};", current(i)));
            continue;
        }
        text.choose(&automaton.accepting, |text, &q| {
            text.line(&format!("assume {} == {};", current(i), state(i, q)));
        });
    }
    text.label("accepted");
    text.line("skip;");
    text.close();
    text.blank();
    text.line("forbid accepted: t@accepted;");
    text.finish()
}

/// Writes a loop that guesses and reads letters until the program chooses to stop; nothing if no letter can be read by all automata.
fn word(text: &mut Text, automata: &[Automaton], letters: usize) {
    let moves = |i: usize, letter: usize| -> Vec<(usize, usize)> {
        let with = automata[i].transitions.iter().filter(|t| t.1 == letter);
        with.map(|&(from, _, to)| (from, to)).collect()
    };
    // A letter that some automaton can read in none of its states is in no common word, so the program does not guess it.
    let readable = |letter: &usize| (0..automata.len()).all(|i| !moves(i, *letter).is_empty());
    let mut guesses: Vec<Option<usize>> = (0..letters).filter(readable).map(Some).collect();
    if guesses.is_empty() {
        return;
    }
    guesses.push(None);
    text.open("loop");
    text.choose(&guesses, |text, guess| match guess {
        None => text.line("break;"),
        Some(letter) => {
            text.comment(&format!("letter {letter}"));
            for i in 0..automata.len() {
                text.choose(&moves(i, *letter), |text, &(from, to)| {
                    text.line(&format!("assume {} == {};", current(i), state(i, from)));
                    text.line(&format!("{} = {};", current(i), state(i, to)));
                });
            }
        }
    });
    text.close();
}

/// The name of the register with the value that identifies a state.
fn state(automaton: usize, state: usize) -> String {
    format!("a{automaton}_q{state}")
}

/// The name of the register with the value of an automaton's current state.
fn current(automaton: usize) -> String {
    format!("at{automaton}")
}
