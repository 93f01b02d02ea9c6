//! Lossy channel systems with data, whose channel is a store buffer: CONTEXT24 section 5, Figs. 2 and 3, Appendix A.
//!
//! A system has a finite control, variables over an infinite domain, and one channel that may lose any message at any time. The program has two
//! threads. Thread `t` runs the control, with the variables in registers. For each letter a there are two shared variables, xA and yA. To send a
//! message with letter a, `t` stores its value to xA, and then the separator, a value that no message has. Thread `ch` repeatedly reads xA and stores
//! to yA the value that it has read, including separators. To receive a message, `t` reads its value from yA, and then reads the separator before it
//! continues, so that it receives no message twice. Messages in the channel are stores in the buffers, and a message is lost if it is overwritten
//! before it is read. A state is reachable in the program under TSO if and only if it is reachable in the system, which is undecidable.
//!
//! Fig. 3 lacks a step that the text of CONTEXT24 describes, and that this program has: `ch` stores the separator to yA after reading it from xA.

use crate::choice::Random;
use crate::text::Text;

/// A lossy channel system with data. It starts in state 0 with all variables 0 and an empty channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lossy {
    /// The number of control states; they are numbered from 0.
    pub states: usize,
    /// The number of variables; they are numbered from 0.
    pub variables: usize,
    /// The size of the alphabet; letters are numbered from 0.
    pub letters: usize,
    /// The transitions as (source, operation, target).
    pub transitions: Vec<(usize, LossyOp, usize)>,
    /// The state that the property claims to be unreachable.
    pub target: usize,
}

/// The operation of a transition of a lossy channel system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossyOp {
    /// Assigns the second variable to the first.
    Copy(usize, usize),
    /// Assigns a value that no variable has.
    Fresh(usize),
    /// Enabled only if the variables are equal.
    Equal(usize, usize),
    /// Enabled only if the variables are different.
    Different(usize, usize),
    /// Appends a letter and the value of a variable to the channel.
    Send(usize, usize),
    /// Takes a message with this letter from the head of the channel, and assigns its value to the variable.
    Receive(usize, usize),
}

/// A random system. Its target is the last state. If there are at least `states - 1` transitions, a path of transitions leads to the target.
pub fn random_lossy(seed: u64, states: usize, variables: usize, letters: usize, transitions: usize) -> Lossy {
    let mut random = Random::new(seed);
    let transition = |n: usize| {
        // The first `states - 1` transitions form a spanning tree of the states.
        let (from, to) = match n + 1 < states {
            true => (random.below(n + 1), n + 1),
            false => (random.below(states), random.below(states)),
        };
        (from, random_op(&mut random, variables, letters), to)
    };
    let transitions = (0..transitions).map(transition).collect();
    Lossy { states, variables, letters, transitions, target: states - 1 }
}

fn random_op(random: &mut Random, variables: usize, letters: usize) -> LossyOp {
    let (x, y, letter) = (random.below(variables), random.below(variables), random.below(letters));
    // Operations on two variables use two different variables if the system has more than one.
    let other = if x == y && variables > 1 { (x + 1) % variables } else { y };
    match random.below(12) {
        0 => LossyOp::Copy(x, other),
        1..=3 => LossyOp::Fresh(x),
        4 => LossyOp::Equal(x, other),
        5 if x != other => LossyOp::Different(x, other),
        5..=8 => LossyOp::Send(letter, x),
        _ => LossyOp::Receive(letter, x),
    }
}

/// Prog(L): the program whose thread `t` reaches the label of the target if and only if the system reaches the target.
pub fn channel(system: &Lossy) -> String {
    let mut text = Text::default();
    text.comment(
        "A lossy channel system with data, its channel simulated by store buffers: `t` is the control, with",
    );
    text.comment("the variables in registers, and `ch` the channel. Under TSO, `t` reaches the label of a state if and");
    text.comment("only if the system reaches that state.");
    text.line("numbers nat;");
    text.blank();
    text.declare("shared", &(0..system.letters).map(sent).collect::<Vec<_>>());
    text.declare("shared", &(0..system.letters).map(received).collect::<Vec<_>>());
    text.blank();
    control(&mut text, system);
    text.blank();
    copier(&mut text, system.letters);
    text.blank();
    text.line(&format!("forbid target: t@q{};", system.target));
    text.finish()
}

/// Writes thread `t`, the control.
fn control(text: &mut Text, system: &Lossy) {
    text.open("thread t");
    text.declare("var", &(0..system.variables).map(variable).collect::<Vec<_>>());
    text.declare("var", &["separator".into(), "scratch".into()]);
    for shared in all_shared(system.letters) {
        text.line(&format!("separator = {shared};"));
        text.line("assume separator != 0;");
    }
    for state in 0..system.states {
        text.label(&format!("q{state}"));
        let leaving: Vec<_> = system.transitions.iter().filter(|t| t.0 == state).collect();
        if leaving.is_empty() {
            text.line("stop;");
            continue;
        }
        text.choose(&leaving, |text, (_, op, to)| {
            gadget(text, *op, system.variables);
            text.line(&format!("goto q{to};"));
        });
    }
    text.close();
}

/// Writes the code of `t` for one operation of the system.
fn gadget(text: &mut Text, op: LossyOp, variables: usize) {
    match op {
        LossyOp::Copy(x, y) => text.line(&format!("{} = {};", variable(x), variable(y))),
        LossyOp::Equal(x, y) => text.line(&format!("assume {} == {};", variable(x), variable(y))),
        LossyOp::Different(x, y) => text.line(&format!("assume {} != {};", variable(x), variable(y))),
        LossyOp::Fresh(x) => {
            text.line("scratch = *;");
            text.line("assume scratch != separator;");
            for y in 0..variables {
                text.line(&format!("assume scratch != {};", variable(y)));
            }
            text.line(&format!("{} = scratch;", variable(x)));
        }
        LossyOp::Send(letter, x) => {
            text.line(&format!("{} = {};", sent(letter), variable(x)));
            text.line(&format!("{} = separator;", sent(letter)));
        }
        LossyOp::Receive(letter, x) => {
            text.line(&format!("{} = {};", variable(x), received(letter)));
            text.line(&format!("assume {} != separator;", variable(x)));
            text.line(&format!("scratch = {};", received(letter)));
            text.line("assume scratch == separator;");
        }
    }
}

/// Writes thread `ch`, the channel.
fn copier(text: &mut Text, letters: usize) {
    text.open("thread ch");
    text.line("var separator, scratch;");
    text.line("separator = *;");
    text.line("assume separator != 0;");
    for shared in all_shared(letters) {
        text.open("atomic");
        text.line(&format!("assume {shared} == 0;"));
        text.line(&format!("{shared} = separator;"));
        text.close();
    }
    text.open("loop");
    text.choose(&(0..letters).collect::<Vec<_>>(), |text, &letter| {
        text.line(&format!("scratch = {};", sent(letter)));
        text.line("assume scratch != separator;");
        text.line(&format!("{} = scratch;", received(letter)));
        text.line(&format!("scratch = {};", sent(letter)));
        text.line("assume scratch == separator;");
        text.line(&format!("{} = separator;", received(letter)));
    });
    text.close();
    text.close();
}

fn all_shared(letters: usize) -> impl Iterator<Item = String> {
    (0..letters).map(sent).chain((0..letters).map(received))
}

/// The name of the shared variable through which `t` sends messages with a letter.
fn sent(letter: usize) -> String {
    format!("x{letter}")
}

/// The name of the shared variable through which `t` receives messages with a letter.
fn received(letter: usize) -> String {
    format!("y{letter}")
}

/// The name of the register with the value of a variable of the system.
fn variable(number: usize) -> String {
    format!("v{number}")
}
