//! Random programs whose threads wait for futexes and wake each other, compared with an interpreter of their own: which results are possible, and
//! whether there is a deadlock.
//!
//! `FENCEWRIGHT_PROGRAMS=N` tests N programs, from seed `FENCEWRIGHT_FIRST` on.

mod interpreter;

use fencewright_lang::{COptions, Options};
use fencewright_program::MemoryModel;
use fencewright_testing::{Random, programs_or, spread};

use crate::verdicts::verdicts_of_small;
use interpreter::{Op, Outcome, Program, SKIPPED, Step, WORDS, explore};

const FUTEX: &str = "
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct timespec soon = { 0, 1000 };
static atomic_int w[2];
static int code(long result) { return result < 0 ? -errno : result; }
#define OF(n) ((int *)&w[n])
";

/// Maximum number of states of a program that is compared; its translation has many more.
const MOST_STATES: usize = 1_500;

fn random_step(random: &mut Random) -> Step {
    let (word, other) = (random.below(WORDS), random.below(WORDS));
    let value = random.between(0, 2);
    let bits = *random.pick(&[u32::MAX, u32::MAX, 1, 2, 3]);
    let op = match random.below(12) {
        0 | 1 => Op::Store { word, value },
        2 => Op::Load { word },
        3 => Op::Increment { word },
        4..=7 => Op::Wait { word, value: value / 2, timed: random.one_in(4), bits },
        8..=10 => Op::Wake { word, most: random.between(0, 2), bits },
        _ => {
            let compares = random.one_in(2).then_some(value / 2);
            Op::Requeue { word, most: random.between(0, 1), moved: random.between(0, 2), other, compares }
        }
    };
    let is_store = matches!(op, Op::Store { .. });
    Step { op, is_kept: !is_store && !random.one_in(3), is_guarded: random.one_in(5) }
}

fn random_program(random: &mut Random) -> Program {
    let threads = 2 + random.below(2);
    let most = if threads == 2 { 4 } else { 2 };
    (0..threads).map(|_| (0..1 + random.below(most)).map(|_| random_step(random)).collect()).collect()
}

fn expression(op: Op) -> String {
    let bitset =
        |bits: u32| if bits == u32::MAX { "FUTEX_BITSET_MATCH_ANY".into() } else { bits.to_string() };
    match op {
        Op::Store { word, value } => {
            format!("atomic_store_explicit(&w[{word}], {value}, memory_order_relaxed)")
        }
        Op::Load { word } => format!("atomic_load_explicit(&w[{word}], memory_order_relaxed)"),
        Op::Increment { word } => format!("atomic_fetch_add(&w[{word}], 1)"),
        Op::Wait { word, value, timed, bits } => {
            let until = if timed { "&soon" } else { "(struct timespec *)0" };
            match bits {
                u32::MAX => format!("code(syscall(SYS_futex, OF({word}), FUTEX_WAIT, {value}, {until}))"),
                _ => format!(
                    "code(syscall(SYS_futex, OF({word}), FUTEX_WAIT_BITSET, {value}, {until}, (int *)0, {bits}))"
                ),
            }
        }
        Op::Wake { word, most, bits } => format!(
            "code(syscall(SYS_futex, OF({word}), FUTEX_WAKE_BITSET_PRIVATE, {most}, 0, 0, {}))",
            bitset(bits)
        ),
        Op::Requeue { word, most, moved, other, compares } => {
            let (name, value) = match compares {
                Some(value) => ("FUTEX_CMP_REQUEUE", value),
                None => ("FUTEX_REQUEUE", 0),
            };
            format!("code(syscall(SYS_futex, OF({word}), {name}, {most}, {moved}, OF({other}), {value}))")
        }
    }
}

/// The program in C, in which `main` asserts that the outcome is another one.
fn c(program: &Program, outcome: &Outcome) -> String {
    let kept = program.iter().flatten().filter(|step| step.is_kept).count();
    let skipped = vec![SKIPPED.to_string(); kept + 1].join(", ");
    let mut text = format!("{FUTEX}static int r[] = {{ {skipped} }};\n");
    let mut result = 0;
    for (n, steps) in program.iter().enumerate() {
        text += &format!("static void *t{n}(void *u)\n{{\nint last = 0;\n");
        for Step { op, is_kept, is_guarded } in steps {
            let guard = if *is_guarded { "if (!last)\n" } else { "" };
            let kept = if *is_kept { format!("last = r[{result}] = ") } else { String::new() };
            text += &format!("{guard}{kept}{};\n", expression(*op));
            result += usize::from(*is_kept);
        }
        text += "return u;\n}\n";
    }
    let each = |line: &dyn Fn(usize) -> String| (0..program.len()).map(line).collect::<String>();
    let create = each(&|n| format!("pthread_create(&t[{n}], 0, t{n}, 0);\n"));
    let join = each(&|n| format!("pthread_join(t[{n}], 0);\n"));
    let place = |n: usize| if n < kept { format!("r[{n}]") } else { format!("w[{}]", n - kept) };
    let same: Vec<String> =
        outcome.iter().enumerate().map(|(n, value)| format!("{} == {value}", place(n))).collect();
    let holds = same.join(" && ");
    text + &format!("int main(void)\n{{\npthread_t t[3];\n{create}{join}assert(!({holds}));\nreturn 0;\n}}\n")
}

/// An outcome that is possible, or nearly so.
fn interesting(random: &mut Random, possible: &[Outcome], length: usize) -> Outcome {
    let Some(outcome) = (!possible.is_empty()).then(|| random.pick(possible).clone()) else {
        return vec![0; length];
    };
    let mut outcome = outcome;
    if random.one_in(2) {
        let at = random.below(outcome.len());
        outcome[at] = *random.pick(&[0, 1, 2, -11, -4, -110]);
    }
    outcome
}

fn compare(seed: u64) {
    let random = &mut Random::new(seed);
    let program = random_program(random);
    let spurious = random.one_in(2);
    let models = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];
    let expected = models.map(|model| explore(&program, model, spurious));
    if expected[2].states > MOST_STATES {
        return;
    }
    let mut possible: Vec<Outcome> = expected[2].outcomes.iter().cloned().collect();
    possible.sort();
    let length = program.iter().flatten().filter(|step| step.is_kept).count() + WORDS;
    let options = |exact_waits| {
        let c = COptions { exact_waits, ..COptions::default() };
        Options { c, ..Options::default() }
    };
    for _ in 0..2 {
        let outcome = interesting(random, &possible, length);
        let letter = |is_bad: bool| if is_bad { 'u' } else { 's' };
        let right: String = expected.iter().map(|found| letter(found.outcomes.contains(&outcome))).collect();
        let text = c(&program, &outcome);
        let same = |property: &str, right: String| {
            let found = verdicts_of_small(&text, &options(!spurious), property);
            assert!(
                found.as_ref().is_none_or(|found| *found == right),
                "seed {seed}: {property} is {right}, and not {found:?}\n{text}"
            );
        };
        same("assertions", right);
        if !spurious {
            let right: String = expected.iter().map(|found| letter(found.deadlock)).collect();
            same("deadlock", right);
        }
    }
}

#[test]
fn futexes_do_what_an_interpreter_says() {
    let first: u64 = std::env::var("FENCEWRIGHT_FIRST").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    spread(first..first + programs_or(60) as u64, compare);
}
