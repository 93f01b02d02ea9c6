//! Compares random C programs of one thread with what gcc makes of them. Where a run has results, the translated program has exactly these:
//! assertions that state them hold, and one that states another result fails. Where the sanitizers of gcc find a mistake, there is a violation. A
//! verdict may be unknown, because a bound on nested calls, objects or sizes was reached.
//!
//! `FENCEWRIGHT_PROGRAMS=N` tests N programs; `FENCEWRIGHT_SEED=N` tests only the program with seed N and prints it.

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencewright_engines::explicit::{Explicit, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::load::Failure;
use fencewright_lang::{COptions, Loader, Options as Reading, Spins, Stop};
use fencewright_program::{MemoryModel, Property};
use fencewright_testing::corpora::tell_skipped;
use fencewright_testing::runs::{ARGUMENTS, HEADERS, RESULTS, Run, run};
use fencewright_testing::{Random, programs_or, spread};

/// Number of programs that are compiled together.
const PIECE: u64 = 10;

/// What happens for one argument: the results, or `None` if a sanitizer finds a mistake.
type Outcome = Option<Vec<i64>>;

const HARNESS: &str = "#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void attempt(void (*run)(int), int *out, int in)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(2);
        alarm(10);
        run(in);
        for (int i = 0; i < RESULTS; i++)
            printf(\"%d \", out[i]);
        printf(\"\\n\");
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0)
        printf(\"mistake\\n\");
}
";

/// Compiles programs and runs them with all arguments; `None` if there is no gcc. The second files are one file as well: names that are not static
/// are unique.
fn observed(runs: &[Run]) -> Option<Vec<Vec<Outcome>>> {
    let texts: String = runs.iter().map(|run| run.text.as_str()).collect();
    let mut text = format!("#define RESULTS {RESULTS}\n{HEADERS}{HARNESS}{texts}int main(void)\n{{\n");
    for Run { name, .. } in runs {
        for argument in 0..ARGUMENTS {
            let _ = writeln!(text, "attempt({name}_run, {name}_out, {argument});");
        }
    }
    text.push_str("return 0;\n}\n");
    let others: String = runs.iter().filter_map(|run| run.other.as_deref()).collect();
    let name = format!("fencewright-runs-{}-{}", std::process::id(), runs[0].name);
    let (binary, second) = (std::env::temp_dir().join(&name), std::env::temp_dir().join(name + ".c"));
    std::fs::write(&second, format!("{HEADERS}{others}")).expect("it can be written");
    let mut gcc = Command::new("gcc")
        .args(["-std=gnu11", "-O0", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .args(["-D_GNU_SOURCE", "-x", "c", "-"])
        .arg(&second)
        .arg("-o")
        .arg(&binary)
        .stdin(Stdio::piped())
        .spawn()
        .ok()?;
    gcc.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("gcc reads it");
    assert!(gcc.wait().expect("gcc ends").success(), "{text}\n{others}");
    std::fs::remove_file(&second).expect("it was written");
    let output = Command::new(&binary)
        .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=1")
        .output()
        .expect("it runs");
    std::fs::remove_file(&binary).expect("it was written");
    let lines = String::from_utf8(output.stdout).expect("digits");
    let numbers = |line: &str| line.split_whitespace().map(|n| n.parse().ok()).collect::<Option<Vec<i64>>>();
    let outcomes: Vec<Outcome> = lines.lines().map(numbers).collect();
    assert_eq!(outcomes.len(), runs.len() * ARGUMENTS, "{lines}");
    Some(outcomes.chunks(ARGUMENTS).map(<[Outcome]>::to_vec).collect())
}

/// A program that runs with one of these arguments, and asserts the results given for each.
fn question(random: &mut Random, run: &Run, asked: &[(usize, Vec<i64>)]) -> String {
    let Run { text, name, .. } = run;
    let mut checks = String::from("switch (in) {\n");
    for (argument, results) in asked {
        let _ = write!(checks, "case {argument}:");
        for (number, result) in results.iter().enumerate() {
            let _ = write!(checks, " assert({name}_out[{number}] == {result});");
        }
        checks.push_str(" break;\n");
    }
    checks.push('}');
    let body = |argument: &str| format!("int in = {argument};\n{name}_run(in);\n{checks}\n");
    let numbers: Vec<String> = asked.iter().map(|(argument, _)| format!("chosen == {argument}")).collect();
    let numbers = numbers.join(" || ");
    let start = match (random.below(3), asked) {
        (0, [(argument, _)]) => {
            return with_headers(
                text,
                &format!("int main(void)\n{{\n{}return 0;\n}}\n", body(&argument.to_string())),
            );
        }
        (1, [(first, _), rest @ ..]) => {
            let stores: String = rest.iter().map(|(argument, _)| format!("cell = {argument};\n")).collect();
            format!(
                "static _Atomic int cell = {first};\nvoid *other(void *u)\n{{\n{stores}return u;\n}}\nvoid *thread(void *u)\n{{\n{}return u;\n}}\n",
                body("cell")
            )
        }
        _ => format!(
            "void *other(void *u)\n{{\nreturn u;\n}}\nvoid *thread(void *u)\n{{\nunsigned char chosen = __VERIFIER_nondet_uchar();\n__VERIFIER_assume({numbers});\n{}return u;\n}}\n",
            body("chosen")
        ),
    };
    with_headers(
        text,
        &format!(
            "{start}int main(void)\n{{\npthread_t t, u;\npthread_create(&t, NULL, thread, NULL);\npthread_create(&u, NULL, other, NULL);\npthread_join(t, NULL);\nreturn 0;\n}}\n"
        ),
    )
}

fn with_headers(text: &str, rest: &str) -> String {
    let own = "#include <assert.h>\n#include <pthread.h>\nunsigned char __VERIFIER_nondet_uchar(void);\nvoid __VERIFIER_assume(int);\n";
    format!("{own}{HEADERS}{text}{rest}")
}

/// Whether there is no violation; `None` if that is unknown, and an error if the program is refused.
fn is_right(text: &str, other: Option<&str>, model: MemoryModel) -> Result<Option<bool>, String> {
    let second = other.map(|other| format!("{HEADERS}{other}"));
    let also = second.iter().map(|_| "second.c".to_string()).collect();
    // Otherwise a wait for a futex might end before its time is over. Loops stay loops, because `termination` is not asked.
    let exact_waits = text.contains("SYS_futex");
    let spins = if exact_waits { Spins::Loop } else { Spins::Step };
    let c = COptions { also, exact_waits, spins, ..COptions::default() };
    let options = Reading { c, ..Reading::default() };
    let open = |name: &str| match (name, &second) {
        ("second.c", Some(text)) => Ok(text.as_bytes().to_vec()),
        _ => Err("there is no such file".to_string()),
    };
    let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
    let loaded = loader.load("test.c", text.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error.sources.render(&error.diagnostics, false),
        Failure::Stopped(_) => unreachable!("nobody asks to stop"),
    })?;
    let asked = |property: &&Property| ["assertions", "memory"].contains(&property.name.as_str());
    let properties: Vec<Property> = loaded.program.properties.iter().filter(asked).cloned().collect();
    let task = Task::new(&loaded.program, model, properties);
    let engine = Explicit { options: Options { workers: 1, ..Options::default() } };
    let limits = Limits::starting_now(Some(Duration::from_secs(20)), Some(1 << 30), Default::default());
    let mut all = Some(true);
    for checked in check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING) {
        match checked.verdict() {
            Verdict::Safe => {}
            Verdict::Unsafe => return Ok(Some(false)),
            Verdict::Unknown(_) => all = None,
        }
    }
    Ok(all)
}

/// The counts of answers about programs.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    wrong: usize,
    unknown: usize,
    refused: Vec<String>,
    differ: Vec<(u64, String)>,
}

impl Tally {
    /// Asks whether there is no violation, which should be as `expected`.
    fn ask(&mut self, seed: u64, (text, other): (&str, Option<&str>), expected: bool, random: &mut Random) {
        let model = *random.pick(&MemoryModel::ALL);
        match is_right(text, other, model) {
            Ok(Some(found)) if found != expected => {
                let second = other.map_or(String::new(), |other| format!("/* the second file */\n{other}"));
                let model = model.name();
                let what = format!("seed {seed}, {model}: right: {expected}, found {found}\n{text}{second}");
                self.differ.push((seed, what));
            }
            Ok(Some(true)) => self.right += 1,
            Ok(Some(false)) => self.wrong += 1,
            Ok(None) => self.unknown += 1,
            Err(why) => self.refused.push(why.lines().next().unwrap_or_default().to_owned()),
        }
    }

    /// Compares a program with its outcomes.
    fn compare(&mut self, seed: u64, run: &Run, outcomes: &[Outcome]) {
        let (mut random, second) = (Random::new(seed ^ 0x5eed), run.other.as_deref());
        let known = |(argument, outcome): (usize, &Outcome)| Some((argument, outcome.clone()?));
        let good: Vec<(usize, Vec<i64>)> = outcomes.iter().enumerate().filter_map(known).collect();
        if !good.is_empty() {
            let text = question(&mut random, run, &good);
            self.ask(seed, (&text, second), true, &mut random);
            let mut other = good.clone();
            let changed = random.below(other.len());
            other[changed].1[random.below(RESULTS)] += 1;
            let text = question(&mut random, run, &other);
            self.ask(seed, (&text, second), false, &mut random);
        }
        let bad = outcomes.iter().position(Option::is_none);
        if let Some(argument) = bad {
            let text = question(&mut random, run, &[(argument, Vec::new())]);
            self.ask(seed, (&text, second), false, &mut random);
        }
    }

    fn add(&mut self, other: Tally) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.unknown += other.unknown;
        self.refused.extend(other.refused);
        self.differ.extend(other.differ);
    }
}

fn compared(seeds: std::ops::Range<u64>) -> Option<Tally> {
    let runs: Vec<Run> = seeds.clone().map(|seed| run(&mut Random::new(seed), &format!("p{seed}"))).collect();
    let all = observed(&runs)?;
    let mut tally = Tally::default();
    for ((seed, run), outcomes) in seeds.zip(&runs).zip(&all) {
        tally.compare(seed, run, outcomes);
    }
    Some(tally)
}

#[test]
fn runs_have_the_results_that_gcc_computes() {
    let asked: Option<u64> = std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = std::env::var("FENCEWRIGHT_FIRST").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let tallies = match asked {
        Some(seed) => vec![compared(seed..seed + 1)],
        None => {
            let count = programs_or(60) as u64;
            spread(0..count.div_ceil(PIECE), |piece| {
                compared(first + piece * PIECE..(first + (piece + 1) * PIECE).min(first + count))
            })
        }
    };
    let mut all = Tally::default();
    for tally in tallies {
        let Some(tally) = tally else {
            return tell_skipped("runs_have_the_results_that_gcc_computes", "there is no gcc");
        };
        all.add(tally);
    }
    let Tally { right, wrong, unknown, refused, differ } = all;
    println!("{right} right, {wrong} wrong, {unknown} unknown, {} refused", refused.len());
    let mut reasons: Vec<(usize, &String)> = Vec::new();
    for why in &refused {
        match reasons.iter_mut().find(|(_, other)| *other == why) {
            Some((count, _)) => *count += 1,
            None => reasons.push((1, why)),
        }
    }
    println!("{reasons:?}");
    let shown = differ.first().map_or("", |(_, what)| what);
    assert!(
        differ.is_empty(),
        "seeds {:?}\n{shown}",
        differ.iter().map(|(seed, _)| seed).collect::<Vec<_>>()
    );
    assert!((right + wrong) * 4 >= (unknown + refused.len()) * 5, "too few are decided");
}
