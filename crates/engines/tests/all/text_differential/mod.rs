//! Differential test of the language: random syntax trees are printed, parsed and lowered. Their observable behaviour on the reference semantics and
//! with the explicit engine is compared with a second interpreter, which executes the syntax tree itself. Moving statements into procedures must not
//! change the behaviour.
//!
//! A normal run tests 2,000 programs under all memory models; with `FENCEWRIGHT_LONG_TESTS=1`, 200,000 are tested. A difference is shown with the
//! seed and a minimised program; `FENCEWRIGHT_SEED=N` tests only the program with seed N.

mod blocking;
mod control;
mod coverage;
mod declarations;
mod evaluate;
mod generate;
mod indivisible;
mod machine;
mod observe;
mod outline;
mod shrink;

use std::collections::BTreeSet;

use fencewright_engines::explicit::{self, Explicit, Order, Reduction};
use fencewright_engines::{Condition, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::ast::File;
use fencewright_lang::load::Failure;
use fencewright_lang::{Awaits, LoadError, Loaded, Loader, Options, Stop, fw, load};
use fencewright_program::{
    Expr, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier, RegisterId,
};
use fencewright_testing::{Random, without_spans};

use control::Code;
use coverage::Coverage;
use declarations::Declared;
use generate::{Generated, generate};
use observe::{Observed, describe, label_bits};

/// Programs with more states than this are skipped.
const MOST_STATES: usize = 3_000;

/// The outcomes that a run must cover besides the features of the language.
const OUTCOMES: &[&str] = &["a fault", "a deadlock", "a limit", "a final state", "-D"];

/// The outcome of a program under one model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Compared { fault: bool, deadlock: bool, ends: bool },
    Limit,
    TooLarge,
}

/// Compares the interpreters on one program; an error describes the difference.
fn compare(
    generated: &Generated,
    model: MemoryModel,
    engine: Option<&Explicit>,
    awaits: Awaits,
) -> Result<Outcome, String> {
    let text = fw::print(&generated.file);
    let loaded = match read(&text, &generated.defines, awaits) {
        Ok(loaded) => loaded,
        // Several conditions in copies of a `for` can exceed a limit of lowering.
        Err(e) if e.diagnostics[0].message.contains("ways lead through this block") => {
            return Ok(Outcome::TooLarge);
        }
        Err(e) => return Err(format!("not accepted:\n{}", e.sources.render(&e.diagnostics, false))),
    };
    if without_spans(&loaded.file) != without_spans(&generated.file) {
        return Err("what is read is not what was printed".into());
    }
    let labels = label_bits(&generated.file);
    let lowered = observe::of_program(&loaded.program, model, &labels, MOST_STATES);
    if lowered == Observed::TooLarge {
        return Ok(Outcome::TooLarge);
    }
    let declared = Declared::new(&generated.file, &generated.defines);
    let codes: Vec<Code<'_>> = declared.threads.iter().map(|t| Code::new(&declared, t)).collect();
    let asserted = loaded.program.properties.iter().any(|p| p.name == "assertions");
    // The interpreters represent a thread in the middle of a statement differently, so they have different numbers of states.
    let direct = observe::of_text(&declared, &codes, model, &labels, 8 * MOST_STATES, asserted, awaits);
    let (views, finals, verdicts) = match (&lowered, &direct) {
        (_, Observed::TooLarge) => return Ok(Outcome::TooLarge),
        (Observed::Limit, Observed::Limit) => return Ok(Outcome::Limit),
        (Observed::Limit, _) => return Err("a limit is met in the lowered program only".into()),
        // A wrapping operation needs only the low bits of its operand. So it may have a value in the lowered program although the operand does not
        // fit 64 bits.
        (_, Observed::Limit) if text_has_types(&generated.file) => return Ok(Outcome::TooLarge),
        (_, Observed::Limit) => return Err("a limit is met in the text only".into()),
        (_, Observed::All { views, finals, verdicts }) => (views, finals, verdicts),
    };
    if let Observed::All { views: lowered_views, finals: lowered_finals, verdicts: lowered_verdicts } =
        &lowered
    {
        for (what, one, other) in [("state", lowered_views, views), ("final state", lowered_finals, finals)] {
            if let Some(view) = one.difference(other).next() {
                return Err(format!("{what} of the lowered program only: {}", describe(view, &labels)));
            }
            if let Some(view) = other.difference(one).next() {
                return Err(format!("{what} of the text only: {}", describe(view, &labels)));
            }
        }
        if lowered_verdicts != verdicts {
            return Err(format!(
                "verdicts {lowered_verdicts:?} of the lowered program, {verdicts:?} of the text"
            ));
        }
    }
    // The engine is run only if all formulas can be computed, because otherwise it gives up on the other properties too.
    let computable = verdicts.values().all(Option::is_some);
    if let Some(engine) = engine.filter(|_| computable) {
        let answers = decide(engine, &loaded.program, model);
        let expected: Vec<(String, Option<bool>)> =
            verdicts.iter().map(|(name, holds)| (name.clone(), *holds)).collect();
        if answers != expected {
            return Err(format!("verdicts {answers:?} of the explicit engine, {expected:?} of the text"));
        }
        let seen = |view: &observe::View| {
            view.threads.iter().flat_map(|(_, registers)| registers).chain(&view.memory).copied().collect()
        };
        let expected: BTreeSet<Vec<i64>> = finals.iter().map(seen).collect();
        let found = explicit_finals(engine, &loaded.program, model);
        if found != expected {
            return Err(format!("final states {found:?} of the explicit engine, {expected:?} of the text"));
        }
    }
    Ok(Outcome::Compared {
        fault: verdicts.get("assertions") == Some(&Some(false)),
        deadlock: verdicts.get("deadlock") == Some(&Some(false)),
        ends: !finals.is_empty(),
    })
}

fn read(text: &str, defines: &[(String, i64)], awaits: Awaits) -> Result<Loaded, Box<LoadError>> {
    let defines = defines.iter().map(|(name, value)| (name.clone(), Some(value.to_string()))).collect();
    let options = Options { defines, awaits, ..Options::default() };
    let open = |_: &str| Err(String::new());
    let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
    loader.load("test.fw", text.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error,
        Failure::Stopped(_) => unreachable!("nobody asks to stop"),
    })
}

/// Whether something in the text wraps around.
fn text_has_types(file: &File) -> bool {
    let text = format!("{file:?}");
    text.contains("wraps: Some") || text.contains("Unary(Unsigned") || text.contains("Unary(Signed")
}

/// The answers of the explicit engine for each property, and for deadlocks, in the order of names.
fn decide(engine: &Explicit, program: &Program, model: MemoryModel) -> Vec<(String, Option<bool>)> {
    let properties = program.properties.iter().cloned().chain([Property::deadlock()]).collect();
    let task = Task::new(program, model, properties);
    let answers = check(engine, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING);
    let holds = |verdict: &Verdict| match verdict {
        Verdict::Safe => Some(true),
        Verdict::Unsafe => Some(false),
        Verdict::Unknown(_) => None,
    };
    let mut answers: Vec<_> =
        answers.into_iter().map(|c| (c.property.name.clone(), holds(c.verdict()))).collect();
    answers.sort();
    answers
}

/// The declared registers and the memory of each final state that the explicit engine finds.
fn explicit_finals(engine: &Explicit, program: &Program, model: MemoryModel) -> BTreeSet<Vec<i64>> {
    let mut observed = Vec::new();
    for (id, thread) in program.threads() {
        let registers = thread.registers.iter().enumerate().filter(|(_, r)| !r.name.starts_with('%'));
        observed.extend(registers.map(|(n, _)| Observable::Register(id, RegisterId(n as u32))));
    }
    observed.extend((0..program.cells() as u32).map(Observable::Memory));
    let kind = PropertyKind::Finally(Quantifier::Forall, Expr::Const(1));
    let ended = Property { kind, ..Property::assertions() };
    let condition = Condition::new(program, model, &ended, None, observed).expect("a `finally`");
    let found = condition.search(engine, &Limits::default(), None);
    found.states().iter().map(|state| state.values.clone()).collect()
}

/// The explicit engine in a configuration that depends on the seed.
fn engine(seed: u64) -> Explicit {
    let order = if seed & 1 == 0 { Order::BreadthFirst } else { Order::DepthFirst };
    let live_variables = seed & 2 == 0;
    let reduction = if seed & 4 == 0 { Reduction::Local } else { Reduction::None };
    let options = explicit::Options { order, live_variables, reduction, workers: 1, ..Default::default() };
    Explicit { options }
}

/// Compares one program under all models: true if it was small enough. Panics if there is a difference.
fn examine(seed: u64, coverage: &mut Coverage) -> bool {
    let generated = generate(seed);
    let mut decided = true;
    let mut noted: BTreeSet<&str> = BTreeSet::new();
    for (n, model) in MemoryModel::ALL.into_iter().enumerate() {
        let engine = (seed % 3 == n as u64).then(|| engine(seed / 3));
        let both = |generated: &Generated| {
            compare(generated, model, engine.as_ref(), Awaits::Block)?;
            compare(generated, model, engine.as_ref(), Awaits::Spin)
        };
        match both(&generated) {
            Ok(Outcome::TooLarge) => decided = false,
            Ok(Outcome::Limit) => drop(noted.insert("a limit")),
            Ok(Outcome::Compared { fault, deadlock, ends }) => {
                let seen = [(fault, "a fault"), (deadlock, "a deadlock"), (ends, "a final state")];
                noted.extend(seen.into_iter().filter(|(seen, _)| *seen).map(|(_, name)| name));
            }
            Err(difference) => {
                let kind = |difference: &str| difference.split(' ').next().map(str::to_owned);
                let fails = |smaller: &Generated| both(smaller).is_err_and(|e| kind(&e) == kind(&difference));
                // A rejected text is an error of the generator. It is not minimised, because that could lead to other errors of this kind.
                let smallest = match difference.starts_with("not accepted") {
                    true => generated.clone(),
                    false => shrink::shrink(&generated, &fails),
                };
                let difference = both(&smallest).err().unwrap_or_default();
                let text = fw::print(&smallest.file);
                let model = model.name();
                panic!("seed {seed}, {model}, -D {:?}: {difference}\n\n{text}", smallest.defines);
            }
        }
    }
    if decided {
        coverage.add(&generated.file);
        noted.extend((!generated.defines.is_empty()).then_some("-D"));
        noted.into_iter().for_each(|outcome| coverage.note(outcome.into()));
    }
    decided
}

#[test]
fn the_text_means_what_the_lowered_program_does() {
    if let Some(seed) = std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()) {
        assert!(examine(seed, &mut Coverage::default()), "seed {seed} is too large to compare");
        return;
    }
    let wanted: usize = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 200_000 } else { 2_000 };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<Coverage> = std::thread::scope(|scope| {
        let work = |part: usize| {
            let (mut coverage, mut decided, mut seed) = (Coverage::default(), 0, part as u64);
            while decided < wanted.div_ceil(workers) {
                decided += usize::from(examine(seed, &mut coverage));
                seed += workers as u64;
            }
            coverage
        };
        let running: Vec<_> = (0..workers).map(|part| scope.spawn(move || work(part))).collect();
        running.into_iter().map(|worker| worker.join().expect("no difference")).collect()
    });
    let mut coverage = Coverage::default();
    parts.into_iter().for_each(|part| coverage.merge(part));
    coverage.assert_all(wanted / 200, OUTCOMES);
}

/// The observable behaviour of a text with at most this many states.
fn observed(
    file: &File,
    defines: &[(String, i64)],
    model: MemoryModel,
    labels: &[String],
    most_states: usize,
) -> Observed {
    let text = fw::print(file);
    match load("test.fw", text.as_bytes(), None, defines) {
        Ok(loaded) => observe::of_program(&loaded.program, model, labels, most_states),
        Err(e) if e.diagnostics[0].message.contains("ways lead through this block") => Observed::TooLarge,
        Err(e) => panic!("not accepted:\n{}\n{text}", e.sources.render(&e.diagnostics, false)),
    }
}

#[test]
fn a_call_does_what_the_text_of_the_procedure_does() {
    let wanted = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 50_000 } else { 1_500 };
    let (mut compared, mut calls) = (0, 0);
    let first = std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in first.unwrap_or(0).. {
        let generated = generate(seed);
        let (file, procedures) = outline::outlined(&generated.file, &mut Random::new(seed));
        let model = MemoryModel::ALL[seed as usize % 3];
        let labels = label_bits(&generated.file);
        let direct = observed(&generated.file, &generated.defines, model, &labels, MOST_STATES);
        if procedures == 0 || !matches!(direct, Observed::All { .. }) {
            continue;
        }
        // A call keeps its result in a register, so several states may have the same view. Therefore more states are allowed.
        let called = observed(&file, &generated.defines, model, &labels, 8 * MOST_STATES);
        let text = || format!("seed {seed}, {}:\n{}", model.name(), fw::print(&file));
        assert!(called == direct, "{}", text());
        compared += 1;
        calls += procedures;
        if compared == wanted {
            break;
        }
    }
    assert!(calls > 2 * wanted, "{calls} procedures in {wanted} programs");
}
