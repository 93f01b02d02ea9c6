//! Compares proofs up to the order of versions with the reference semantics. The inputs are random programs that copy, compare and create versions,
//! unchanged and with their loops unrolled; programs that break a rule for versions; and proofs that were tampered with.
//!
//! A normal run tests some hundred programs; with `FENCEWRIGHT_LONG_TESTS=1`, fifty times as many are tested.

use std::sync::Arc;

use fencewright_certify::states::versions::{Place, Types, Versions, rename};
use fencewright_certify::states::{PackedStates, StateSet};
use fencewright_certify::{Certificate, Claim, Proof, Stop, check as certify};
use fencewright_engines::explicit::{Explicit, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program, Property};
use fencewright_smt::Prover;
use fencewright_testing::Random;
use fencewright_verdict::fingerprint::fingerprint;

fn programs(few: u64) -> u64 {
    if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { few * 50 } else { few }
}

/// The memory limit of a run, in bytes. It also ends runs whose buffers grow without bound.
const MOST_BYTES: u64 = 1 << 22;

fn loaded(text: &str) -> Program {
    load("versions.fw", text.as_bytes(), None, &[]).unwrap_or_else(|_| panic!("it loads:\n{text}")).program
}

/// The properties that a search up to the order of versions proves, with its set of states.
fn proved(program: &Program, model: MemoryModel) -> (Vec<Property>, Option<Arc<StateSet>>) {
    let options = Options { versions: true, workers: 1, ..Options::default() };
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(None, Some(MOST_BYTES), Default::default());
    let results = check(&Explicit { options }, &task, &limits, &Progress::default(), Confirm::default());
    let mut set = None;
    let mut found = Vec::new();
    for result in results {
        assert!(!matches!(result.verdict(), Verdict::Unsafe), "it finds proofs only");
        if matches!(result.verdict(), Verdict::Safe) {
            let certificate = result.certificate().expect("a proof is a certificate");
            let Proof::States(states) = &certificate.proofs[0] else { panic!("engine explicit has states") };
            set = Some(Arc::clone(states));
            found.push(result.property.clone());
        }
    }
    (found, set)
}

/// A random body of a thread. `m` is the scale of the shared variables `a` and `b`. With `breaks`, some statements break the rules.
fn body(random: &mut Random, m: i64, breaks: bool) -> String {
    let mut text = String::new();
    for _ in 0..random.between(2, 4) {
        let compare = *random.pick(&["<", "<=", "==", "!=", ">"]);
        let (from, to) = (*random.pick(&["a", "b"]), *random.pick(&["a", "b"]));
        let (h, k) = (*random.pick(&["h", "k"]), *random.pick(&["h", "k"]));
        let rest = random.between(0, m - 1);
        let statement = match random.below(if breaks { 17 } else { 13 }) {
            0 | 1 => format!("{h} = {from};"),
            2 => format!("{h} = {from}; {to} = {h} + {m};"),
            3 => format!("{to} = {h} + {};", random.between(0, m)),
            4 => format!("{h} = {from}; t = {h} / {m} + 1; {to} = {m} * t + {rest};"),
            5 => format!("x = {h} % {m}; {to} = {m} * ({k} / {m} + 1) + x;"),
            6 => format!("{to} = {h};"),
            7 => format!("{h} = {from}; if cas({from}, {h}, {h} + {m}) {{ f = f + 1; }}"),
            8 => format!("if h {compare} k {{ f = 1; }} else {{ f = 2; }}"),
            9 => format!("atomic {{ {h} = {from}; {from} = {h} + {m}; }}"),
            10 => format!("{h} = {from}; assert {h} {compare} {k};"),
            11 => format!("y = x; x = y; if x == {rest} {{ {h} = {from}; }}"),
            12 => format!("{h} = {from}; {k} = {to}; g = {h} {compare} {k};"),
            13 => format!("if {h} {compare} {} {{ f = 3; }}", random.between(0, 4)),
            14 => format!("{to} = {};", random.between(0, 4)),
            15 => format!("{to} = {h} + {};", random.between(-1, 2 * m + 1)),
            _ => format!("x = {h} - {k}; if x > {rest} {{ f = 4; }}"),
        };
        text += &statement;
        text += " ";
    }
    text
}

/// A program with a thread for each of these bodies, which is repeated `times` times, or forever if `times` is 0.
fn text(random: &mut Random, bodies: &[String], start: [&str; 2], times: usize) -> String {
    let mut text = format!("shared a = {}, b = {}, y;\n", start[0], start[1]);
    for (n, body) in bodies.iter().enumerate() {
        let code = if times == 0 { format!("loop {{ {body} }}") } else { body.repeat(times) };
        text += &format!("thread p{n} {{ var h, k, t, x, f, g; h = a; k = b; {code} }}\n");
    }
    let compare = |random: &mut Random| *random.pick(&["<", "==", "!=", ">"]);
    for n in 0..3 {
        let formula = match random.below(4) {
            0 => format!("p0.h {} p1.k && p0.g == 1", compare(random)),
            1 => format!("p0.f == {} && p1.f == {}", random.between(1, 2), random.between(1, 2)),
            2 => format!("a {} b && p1.f == 1", compare(random)),
            _ => format!("p0.h {} a && p1.g == 0 && p0.f == 1", compare(random)),
        };
        text += &format!("forbid v{n}: {formula};\n");
    }
    text
}

/// Checks that all proved properties of a program hold for `part`, whose executions are a subset of those of the program.
fn true_of_parts(program: &Program, part: &Program, model: MemoryModel, about: &str) -> Option<usize> {
    let reachable = explore(part, model, 20_000, &mut || false).ok()?;
    let (proved, _) = proved(program, model);
    for property in &proved {
        let own = part.properties.iter().find(|p| p.name == property.name).expect("the same properties");
        let holds = reachable.satisfies(part, model, own).expect("small values");
        assert!(holds, "{model:?} {} is proved and false:\n{about}", property.name);
    }
    Some(proved.len())
}

#[test]
fn proofs_hold_for_a_bounded_number_of_iterations() {
    let (mut found, mut asked) = (0, 0);
    for seed in 0..programs(200) {
        let mut random = Random::new(seed);
        let m = *random.pick(&[1, 1, 2, 4]);
        let breaks = random.one_in(4);
        let bodies = [body(&mut random, m, breaks), body(&mut random, m, breaks)];
        let start = [random.between(0, 2 * m), random.between(0, 2 * m)].map(|n| n.to_string());
        let model = MemoryModel::ALL[seed as usize % 3];
        let start = [start[0].as_str(), start[1].as_str()];
        let times = random.between(1, 2) as usize;
        let part_text = text(&mut Random::new(seed), &bodies, start, times);
        let part = loaded(&part_text);
        for program in [&loaded(&text(&mut Random::new(seed), &bodies, start, 0)), &part] {
            if let Some(proofs) = true_of_parts(program, &part, model, &part_text) {
                (found, asked) = (found + proofs, asked + program.properties.len());
            }
        }
    }
    println!("{found} of {asked} proved");
    assert!(found > 80, "{found} of {asked} proved");
}

#[test]
fn any_initial_values_stand_for_all() {
    let (mut found, mut asked) = (0, 0);
    for seed in 0..programs(60) {
        let mut random = Random::new(seed + 1_000_000);
        let bodies = [body(&mut random, 1, false), body(&mut random, 1, false)];
        let model = MemoryModel::ALL[seed as usize % 3];
        let any = loaded(&text(&mut Random::new(seed), &bodies, ["*", "*"], 1));
        for (a, b) in [(-2, 1), (0, 0), (1, 1), (2, 3), (3, 2), (-1, -1), (0, 1), (5, -5)] {
            let part = text(&mut Random::new(seed), &bodies, [&a.to_string(), &b.to_string()], 1);
            let part_program = loaded(&part);
            if let Some(proofs) = true_of_parts(&any, &part_program, model, &part) {
                (found, asked) = (found + proofs, asked + any.properties.len());
            }
        }
    }
    println!("{found} of {asked} proved");
    assert!(found * 10 > asked, "{found} of {asked} proved");
}

fn accepted(set: StateSet, program: &Program, property: &Property) -> bool {
    let stop: Stop = Arc::new(|| false);
    let claim = Claim::Safe { properties: vec![property.name.clone()] };
    let certificate = Certificate::new(fingerprint(program), claim, vec![Proof::States(Arc::new(set))]);
    certify(&certificate, program, &Prover, &stop).is_ok()
}

#[test]
fn tampered_versions_prove_only_true_claims() {
    let (mut refused, mut still) = (0, 0);
    for seed in 0..programs(100) {
        let mut random = Random::new(seed + 2_000_000);
        let m = *random.pick(&[1, 2, 4]);
        let bodies = [body(&mut random, m, false), body(&mut random, m, false)];
        let text = text(&mut Random::new(seed), &bodies, ["1", "0"], 1);
        let program = loaded(&text);
        let model = MemoryModel::ALL[seed as usize % 3];
        let Ok(reachable) = explore(&program, model, 20_000, &mut || false) else { continue };
        let (_, Some(set)) = proved(&program, model) else { continue };
        let words = set.layout.words;
        for _ in 0..12 {
            let mut changed = (*set).clone();
            let PackedStates::Plain(_, states) = &mut changed.states else { panic!("it is not compressed") };
            let versions = changed.versions.as_mut().expect("it has versions");
            match random.below(4) {
                0 => {
                    let state = random.below(states.len() / words) * words;
                    states.drain(state..state + words);
                }
                1 => {
                    let v = random.below(versions.variables.len());
                    versions.variables[v] = *random.pick(&[0, 1, 2, 4]);
                }
                2 => {
                    let registers = &mut versions.registers[random.below(2)];
                    let r = random.below(registers.len());
                    registers[r] = *random.pick(&[0, 1, 2, 4]);
                }
                _ => changed.versions = None,
            }
            for property in &program.properties {
                let holds = reachable.satisfies(&program, model, property).expect("small values");
                match accepted(changed.clone(), &program, property) {
                    true => assert!(holds, "seed {seed}, {model:?}: {}\n{text}", property.name),
                    false => refused += 1,
                }
                still += holds as usize;
            }
        }
    }
    println!("{refused} refused, {still} true");
    assert!(refused > 200 && still > 200);
}

/// Whether a program obeys the rules for versions if the variable `v` contains versions of this scale.
fn keeps_the_rules(text: &str, scale: i64) -> bool {
    let program = loaded(text);
    let is_v = |v: &fencewright_program::Variable| if v.name == "v" { scale } else { 0 };
    let versions = Versions {
        variables: program.variables.iter().map(is_v).collect(),
        registers: program.threads.iter().map(|t| vec![0; t.registers.len()]).collect(),
    };
    let live: Vec<Vec<Vec<u32>>> =
        program.threads.iter().map(|t| vec![Vec::new(); t.locations.len()]).collect();
    Types::new(&program, &program.properties, &live, &versions).is_ok()
}

#[test]
fn rules() {
    let program = |code: &str| format!("shared v = 5, x; thread p {{ var r, s; r = v; s = v; {code} }}");
    let kept = [
        (1, "v = r + 1;"),
        (1, "if r < s { x = 1; }"),
        (4, "x = r % 4; x = r % 2;"),
        (4, "v = r + 4; v = r + 3; v = r;"),
        (4, "s = r / 4 + 1; v = 4 * s + 3;"),
        (4, "x = 3; s = x; v = s + 4 * (r / 4);"),
        (4, "s = r % 4; v = 4 * (r / 4 + 1) + s;"),
        (1, "atomic { r = v; v = r + 1; }"),
        (1, "if cas(v, r, s + 1) { x = 1; }"),
    ];
    for (scale, code) in kept {
        assert!(keeps_the_rules(&program(code), scale), "{scale}: {code}");
    }
    let broken = [
        (1, "v = r + 2;"),
        (1, "v = r - 1;"),
        (1, "v = 7;"),
        (1, "v = r + s;"),
        (1, "v = 2 * r;"),
        (1, "s = r * 2305843009213693952;"),
        (1, "x = r;"),
        (1, "x = r % 2;"),
        (1, "if r == 5 { x = 1; }"),
        (1, "if r + 1 == s { x = 1; }"),
        (1, "if r - s == 0 { x = 1; }"),
        (1, "if r { x = 1; }"),
        // A step that compares the version it has created.
        (1, "atomic { r = v; v = r + 1; s = v; assume s != r; }"),
        (4, "x = r % 3;"),
        (4, "x = r % 8;"),
        (4, "v = r + 5;"),
        (4, "s = r / 2; v = 4 * s;"),
        (4, "s = r / 4 + 2; v = 4 * s;"),
        (4, "x = 4; s = x; v = s + 4 * (r / 4);"),
        (4, "s = x; if s == 9 { x = 5; } v = s + 4 * (r / 4);"),
        (4, "if r / 4 < s { x = 1; }"),
        (4, "v = r / 4;"),
    ];
    for (scale, code) in broken {
        assert!(!keeps_the_rules(&program(code), scale), "{scale}: {code}");
    }
    for (scale, text) in [
        (1, "shared v: 0..9 = 5; thread p { var r; r = v; }"),
        (1, "shared v = * in 0..3; thread p { var r; r = v; }"),
        (2, "shared v = -1; thread p { var r; r = v; }"),
        (2, "shared v = *; thread p { var r; r = v; }"),
        (1, "shared v = 5; thread p { var r; r = v; } forbid f: v == 7;"),
        (1, "shared v = 5; thread p { var r; r = v; } forbid f: p.r == 7;"),
    ] {
        assert!(!keeps_the_rules(text, scale), "{scale}: {text}");
    }
}

#[test]
fn renaming_keeps_the_order() {
    let mut random = Random::new(3);
    for _ in 0..5_000 {
        let mut values: Vec<(i64, i64)> =
            (0..random.between(1, 5)).map(|_| (*random.pick(&[1, 2, 4]), 2 * random.between(0, 6))).collect();
        values.iter_mut().for_each(|(scale, value)| *value = *scale * *value + random.between(0, *scale - 1));
        let odd = random.one_in(2).then(|| {
            let version = values[0].1.div_euclid(values[0].0) + 1;
            values.push((1, version));
            version
        });
        let version = |&(scale, value): &(i64, i64)| value.div_euclid(scale);
        let greater = odd.and_then(|odd| values.iter().map(version).filter(|v| *v > odd).min());
        for place in [Place::Between, Place::Joined] {
            let mut renamed = values.clone();
            let done = rename(&mut renamed, place, &mut Vec::new());
            assert_eq!(done, place == Place::Between || greater.is_some());
            if !done {
                continue;
            }
            let was = |value| match (version(value), place) {
                (own, Place::Joined) if Some(own) == odd => greater.expect("there is one"),
                (own, _) => own,
            };
            for (before, after) in values.iter().zip(&renamed) {
                assert_eq!(before.1.rem_euclid(before.0), after.1.rem_euclid(after.0), "the rest stays");
                assert!(version(after) % 2 == 0);
                for (other, renamed) in values.iter().zip(&renamed) {
                    assert_eq!(was(before).cmp(&was(other)), version(after).cmp(&version(renamed)));
                }
            }
        }
    }
}

/// A stack with unbounded tags (Treiber), and with too few tags.
#[test]
fn tags_of_a_stack() {
    let text = |tag: &str| {
        format!(
            "shared top = 1, next[1..=2] = [2, 0];
             thread p[me in 0..2] {{
                 var h, n, t;
                 loop {{
                     loop {{
                         h = top; n = h % 4;
                         if n != 0 {{ t = {tag}; if cas(top, h, next[n] + 4 * t) {{ break; }} }}
                     }}
                     own: skip;
                     loop {{ h = top; next[n] = h % 4; t = {tag}; if cas(top, h, n + 4 * t) {{ break; }} }}
                 }}
             }}
             forbid both: p[0]@own && p[1]@own && p[0].n == p[1].n;"
        )
    };
    for model in MemoryModel::ALL {
        let names = |tag: &str| -> Vec<String> {
            proved(&loaded(&text(tag)), model).0.into_iter().map(|p| p.name).collect()
        };
        assert!(names("h / 4 + 1").contains(&"both".to_string()), "{model:?}");
        // With these expressions, the tags are not versions, so nothing is proved.
        assert!(names("0").is_empty() && names("(h / 4 + 1) % 2").is_empty(), "{model:?}");
    }
}

/// If a register contains versions in one thread and plain numbers in another, the threads must not be exchanged.
#[test]
fn threads_that_are_exchanged_have_the_same_versions() {
    let text = "shared b;
                thread p[me in 0..2] {
                    var r, s = 40;
                    atomic { assume b == 0; b = 1; }
                    r = r + 1;
                    assert r != s;
                    b = 0;
                }";
    let program = loaded(text);
    let task = Task::new(&program, MemoryModel::Sc, program.properties.clone());
    let (limits, progress) = (Limits::default(), Progress::default());
    let results = check(&Explicit::default(), &task, &limits, &progress, Confirm::NOTHING);
    let certificate = results[0].certificate().expect("it is proved");
    let Proof::States(set) = &certificate.proofs[0] else { panic!("engine explicit has states") };
    assert!(set.versions.is_none() && !set.symmetry.is_empty());
    let named = |t: &fencewright_program::Thread| -> Vec<i64> {
        t.registers.iter().map(|r| i64::from(["r", "s"].contains(&r.name.as_str()))).collect()
    };
    let all: Vec<Vec<i64>> = program.threads.iter().map(named).collect();
    let rejection = |registers: Vec<Vec<i64>>| {
        let versions = Some(Versions { variables: vec![0], registers });
        let changed = StateSet { versions, ..(**set).clone() };
        changed.validate(&program, &program.properties).map(|_| ()).map_err(|r| r.to_string())
    };
    assert_eq!(rejection(all.clone()), Ok(()));
    let one = vec![all[0].clone(), vec![0; all[1].len()]];
    assert!(
        rejection(one).is_err_and(|why| why.contains("threads that are exchanged have different versions"))
    );
}
