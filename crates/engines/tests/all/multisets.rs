//! Reachability with multisets for buffers (THESIS16 Theorem 15), decided in three ways: backward from minimal violations, forward by expand, enlarge
//! and check on the machines of `fencewright_testing`, and forward by engine `buffers`. The three must agree on every program that they decide, and
//! none may miss a state that is reachable with exact buffers.
//!
//! A normal run tests some thousand programs; `FENCEWRIGHT_PROGRAMS=N` tests N programs.

use fencewright_engines::buffers::{BufferDomain, Buffers, Options};
use fencewright_engines::{Checked, Confirm, Limits, Progress, Reason, Task, Token, Verdict, check};
use fencewright_executions::oracle;
use fencewright_program::{MemoryModel, Program, Property, PropertyKind};
use fencewright_testing::abstract_buffers::{AbstractMachine, Abstraction, Counts, Reachable, explore};
use fencewright_testing::backward::{Decision, decide};
use fencewright_testing::{Random, Shape, contend, program, programs_or, separate};

/// Maximum number of states of a search on the machines of `fencewright_testing`.
const MOST_STATES: usize = 1_500;
/// Copies of a value are counted up to this number.
const MOST_COUNTED: u32 = 4;

/// Maximum number of bytes that one decision may use.
const MOST_BYTES: u64 = 4 << 20;

fn few_bytes() -> Limits {
    Limits::starting_now(None, Some(MOST_BYTES), Token::default())
}

fn random_program(random: &mut Random) -> Program {
    let corners = random.one_in(6);
    let mut program = program(random, Shape { threads: 3, length: 5, loops: true, corners });
    if !random.one_in(3) {
        contend(random, &mut program, 3);
    }
    if random.one_in(6) {
        separate(random, &mut program);
    }
    program
}

/// A program in which the multiplicity and the order of buffered values matter: one thread stores few values repeatedly, another one reads some of
/// them, in any order, and overwrites some.
fn race(random: &mut Random) -> Program {
    let mut stored = Vec::new();
    let mut store = |random: &mut Random| {
        let store = (*random.pick(&["x", "x", "y"]), *random.pick(&["1", "1", "2"]));
        stored.push(store);
        format!("{} = {};", store.0, store.1)
    };
    let mut stores = store(random);
    for _ in 0..1 + random.below(4) {
        stores += &match random.below(14) {
            0 | 1 => format!("loop {{ choose {{ {} }} or {{ break; }} }}", store(random)),
            2 => format!("choose {{ {} }} or {{ {} }}", store(random), store(random)),
            3 => "fence;".to_string(),
            4 => "sfence;".to_string(),
            5 => format!("assume z == 1; {}", store(random)),
            6 => format!("atomic {{ {} }}", store(random)),
            _ => store(random),
        };
    }
    let mut sees = String::new();
    for _ in 0..1 + random.below(4) {
        let (cell, value) = *random.pick(&stored);
        let value = if random.one_in(6) { "0" } else { value };
        sees += &match random.below(12) {
            0..=4 => format!("assume {cell} == {value};"),
            5..=7 => format!("assume {cell} == {value}; {cell} = 0; fence;"),
            8 => format!("assume {cell} == {value}; z = 1;"),
            9 => format!("lock; assume {cell} == {value}; {cell} = 0; unlock;"),
            10 => format!("{cell} = 2;"),
            _ => format!(
                "loop {{ choose {{ {cell} = 0; fence; }} or {{ assume {cell} == {value}; break; }} }}"
            ),
        };
    }
    let and = random.pick(&["", "", " && t1@end1", " && t1@end1 && x == 0"]);
    load(&format!(
        "shared x, y, z; thread t1 {{ {stores} end1: skip; }} thread t2 {{ {sees} goal: skip; }} forbid goal: t2@goal{and};"
    ))
}

/// Whether a property is about all reachable states.
fn about_states(property: &&Property) -> bool {
    matches!(property.kind, PropertyKind::Never(_) | PropertyKind::Assertions)
}

/// The states that the machine with multisets reaches with this way of counting copies; `None` if there are too many states.
fn reached(program: &Program, model: MemoryModel, counts: Counts) -> Option<Reachable<'_>> {
    let machine = AbstractMachine::new(program, model, Abstraction::multiset(counts));
    explore(machine, MOST_STATES, &mut || false).ok()
}

/// Forward search: whether each property holds for multisets, and the number up to which copies had to be counted.
fn forward(program: &Program, model: MemoryModel, properties: &[&Property]) -> Vec<Option<(bool, u32)>> {
    let mut answers = vec![None; properties.len()];
    for many in 1..=MOST_COUNTED {
        for (counts, answer) in [(Counts::OrMore(many), true), (Counts::UpTo(many), false)] {
            if answers.iter().all(Option::is_some) {
                return answers;
            }
            let Some(reached) = reached(program, model, counts) else { continue };
            for (property, known) in properties.iter().zip(&mut answers) {
                if known.is_none() && reached.satisfies(property) == Some(answer) {
                    *known = Some((answer, many));
                }
            }
        }
    }
    answers
}

/// The answer of engine `buffers` with multisets only: whether the property holds for multisets, which is stronger than for the program.
fn engine(program: &Program, model: MemoryModel, properties: &[&Property]) -> Vec<Option<bool>> {
    let options = Options { domain: Some(BufferDomain::Multiset), ..Options::default() };
    let engine = Buffers { options, ..Buffers::default() };
    let task = Task::new(program, model, properties.iter().copied().cloned().collect());
    let results = check(&engine, &task, &few_bytes(), &Progress::default(), Confirm::NOTHING);
    let answer = |checked: &Checked| match checked.verdict() {
        Verdict::Safe => Some(true),
        Verdict::Unsafe => Some(false),
        Verdict::Unknown(Reason::Unsupported(what, _)) if what.starts_with("multisets reach a violation") => {
            Some(false)
        }
        Verdict::Unknown(_) => None,
    };
    results.iter().map(answer).collect()
}

#[test]
fn backward_and_forward_agree_wherever_both_decide() {
    let wanted = programs_or(1_100);
    let mut tally = Tally::default();
    let mut seed = 0;
    while tally.programs < wanted {
        seed += 1;
        let mut random = Random::new(seed);
        let program = if seed % 2 == 0 { race(&mut random) } else { random_program(&mut random) };
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Tso, MemoryModel::Pso]);
        let properties: Vec<&Property> = program.properties.iter().filter(about_states).collect();
        let answers = forward(&program, model, &properties);
        let engine = engine(&program, model, &properties);
        let exact = oracle::explore(&program, model, MOST_STATES, &mut || false).ok();
        let mut both = false;
        for ((property, forward), engine) in properties.into_iter().zip(answers).zip(engine) {
            let backward = decide(&program, model, property, MOST_BYTES);
            if let (Some(decision), Some(safe)) = (&backward, engine) {
                let what = || format!("seed {seed}, {model:?}, {}: {decision:?}", property.name);
                assert_eq!(decision.safe, safe, "{}, against engine buffers", what());
                tally.engine += 1;
            }
            if let (Some(decision), Some((safe, many))) = (&backward, forward) {
                let what = || format!("seed {seed}, {model:?}, {}: {decision:?}", property.name);
                assert_eq!(decision.safe, safe, "{}, forward counting up to {many}", what());
                both = true;
                tally.decided(safe, many);
            }
            tally.one_sided(backward.is_some(), forward.is_some());
            // A violation that is reachable with exact buffers is reachable with multisets too.
            let exact = exact.as_ref().and_then(|exact| exact.satisfies(&program, model, property));
            if let (Some(Decision { safe, .. }), Some(exactly)) = (&backward, exact) {
                assert!(exactly || !safe, "seed {seed}, {model:?}, {}: a violation is missed", property.name);
                tally.spurious += usize::from(exactly && !safe);
            }
        }
        tally.programs += usize::from(both);
    }
    println!("{tally:?} of {seed}");
    let few = wanted / 100;
    assert!(tally.safe_beyond_sets > few && tally.unsafe_beyond_one > few / 4, "{tally:?}");
    assert!(tally.spurious > few / 2 && tally.engine > wanted, "{tally:?}");
}

/// Counts of the comparison.
#[derive(Debug, Default)]
struct Tally {
    /// Programs with a property that both the backward and the forward search decided.
    programs: usize,
    /// Properties that hold for multisets.
    safe: usize,
    /// Properties that do not hold for multisets.
    violated: usize,
    /// Properties that hold for multisets but not for sets.
    safe_beyond_sets: usize,
    /// Properties whose violation needs some store to be buffered more than once at a time.
    unsafe_beyond_one: usize,
    /// Properties that multisets violate but exact buffers do not.
    spurious: usize,
    /// Properties that engine `buffers` decides too.
    engine: usize,
    only_backward: usize,
    only_forward: usize,
}

impl Tally {
    fn decided(&mut self, safe: bool, many: u32) {
        match safe {
            true => {
                (self.safe, self.safe_beyond_sets) =
                    (self.safe + 1, self.safe_beyond_sets + usize::from(many > 1))
            }
            false => {
                (self.violated, self.unsafe_beyond_one) =
                    (self.violated + 1, self.unsafe_beyond_one + usize::from(many > 1));
            }
        }
    }

    fn one_sided(&mut self, backward: bool, forward: bool) {
        self.only_backward += usize::from(backward && !forward);
        self.only_forward += usize::from(forward && !backward);
    }
}

fn load(text: &str) -> Program {
    fencewright_lang::load("test.fw", text.as_bytes(), None, &[]).expect("it loads").program
}

fn example(name: &str, defines: &[(String, i64)]) -> Program {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect("the example is readable");
    fencewright_lang::load(name, &bytes, None, defines).expect("it loads").program
}

/// Whether the first property other than `assertions` holds for multisets.
fn is_safe(program: &Program, model: MemoryModel) -> bool {
    let goal = program.properties.iter().find(|p| matches!(p.kind, PropertyKind::Never(_))).expect("a goal");
    decide(program, model, goal, MOST_BYTES).expect("values are finitely many").safe
}

#[test]
fn examples_of_the_thesis_are_decided() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        assert!(is_safe(&example("thesis-3-3.fw", &[]), model));
        assert!(is_safe(&example("thesis-3-7.fw", &[]), model));
        let unwinding = |n| example("unwinding-dekker.fw", &[("N".to_string(), n)]);
        assert!(is_safe(&unwinding(1), model));
        assert!(!is_safe(&unwinding(2), model));
    }
}

/// A value that is stored n times can be read n times by a thread that overwrites it each time, but not n + 1 times.
#[test]
fn copies_are_counted_whatever_their_number() {
    for n in 1..=5 {
        let program = |seen: usize| {
            let stores = "x = 1; ".repeat(n);
            let sees = "await x == 1; x = 0; fence; ".repeat(seen);
            load(&format!(
                "shared x; thread t1 {{ {stores} }} thread t2 {{ {sees} goal: skip; }} forbid goal: t2@goal;"
            ))
        };
        assert!(!is_safe(&program(n), MemoryModel::Tso), "{n} stores are seen {n} times");
        assert!(is_safe(&program(n + 1), MemoryModel::Tso), "{n} stores are seen once more");
    }
}

/// The value stored last leaves the buffer last. Other values may leave in any order, and so may other copies of that value.
#[test]
fn the_value_that_was_added_last_leaves_last() {
    let program = |stores: &str| {
        load(&format!(
            "shared x, y; thread t1 {{ {stores} assume y == 1; x = 3; }}
             thread t2 {{ assume x == 2; y = 1; assume x == 1; goal: skip; }} forbid goal: t2@goal;"
        ))
    };
    let safe = |stores: &str| is_safe(&program(stores), MemoryModel::Tso);
    assert!(safe("x = 1; x = 2;"));
    assert!(!safe("x = 1; x = 2; x = 2;"));
    assert!(!safe("x = 1; x = 2; x = 3;"));
    assert!(!safe("x = 2; x = 1;"));
}

#[test]
fn infinitely_many_values_and_deadlocks_are_not_decided() {
    let endless = load("shared x; thread t { var r; loop { r = r + 1; x = r; } } forbid below: t.r < 0;");
    assert_eq!(decide(&endless, MemoryModel::Tso, &endless.properties[0], MOST_BYTES), None);

    let choice = load("shared x; thread t { var r; r = *; x = r; } forbid below: t.r < 0;");
    assert_eq!(decide(&choice, MemoryModel::Tso, &choice.properties[0], MOST_BYTES), None);
    assert_eq!(decide(&choice, MemoryModel::Tso, &Property::deadlock(), MOST_BYTES), None);
}
