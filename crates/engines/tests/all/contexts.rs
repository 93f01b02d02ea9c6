//! Compares engine `contexts` with a search on the reference semantics in which the active thread is part of the state: the engine finds each
//! violation with the minimal number of contexts, for every property and domain.
//!
//! A normal run tests a few hundred random programs of each kind, a run with `FENCEWRIGHT_LONG_TESTS=1` tens of thousands; `FENCEWRIGHT_PROGRAMS`
//! sets the number.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use fencewright_engines::cegar::{self, Cegar};
use fencewright_engines::contexts::{ContextBound, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_generate::automata::{Automaton, intersection, random_automata};
use fencewright_generate::bakery::bakery;
use fencewright_generate::random as generate;
use fencewright_program::{
    Address, BinaryOp, Expr, Init, MemoryModel, Numbers, Op, Program, Range, RegisterId,
};
use fencewright_testing::{Random, Shape, program, programs_or, spread};

use crate::bounded::{Count, MOST, agree, bounded, least, load, ops_mut, run};

fn seeds(normal: u64, long: u64) -> std::ops::Range<u64> {
    let usual = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { long } else { normal };
    0..programs_or(usual as usize) as u64
}

#[test]
fn random_programs_of_any_kind() {
    let compared = |seed| {
        let mut random = Random::new(seed);
        let program = program(&mut random, Shape { length: 4, corners: seed % 4 == 3, ..Shape::default() });
        let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso]);
        let domains = [None, Some(DomainName::Zones), Some(DomainName::Zones), Some(DomainName::Predicates)];
        let domain = *random.pick(&domains);
        let options = Options { contexts: Some(MOST), domain, ..Default::default() };
        agree(&format!("seed {seed}"), [&program, &program], model, options, seed % 2 == 0)
    };
    let count: Count = spread(seeds(400, 40_000), compared).into_iter().sum();
    println!("{count:?}");
    assert!(count.found > 100 && count.none + count.safe > 100, "{count:?}");
}

#[test]
fn programs_that_only_compare_are_decided_exactly() {
    let compared = |seed| {
        let mut random = Random::new(seed);
        let distances = random.one_in(3);
        let shape = generate::Shape {
            threads: 2 + random.one_in(4) as usize,
            length: 3 + random.below(3),
            variables: 1 + random.below(3),
            numbers: *random.pick(&[generate::Numbers::Nat, generate::Numbers::Int, generate::Numbers::Real]),
            distances,
            loops: false,
        };
        let text = generate::random(seed, shape);
        let program = load(&text);
        let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso, MemoryModel::Tso]);
        let options = Options { contexts: Some(MOST), domain: Some(DomainName::Order), ..Default::default() };
        let bounded = bounded(&program, if distances { 3 } else { 0 });
        agree(&format!("seed {seed}\n{text}"), [&program, &bounded], model, options, seed % 2 == 0)
    };
    let count: Count = spread(seeds(1_000, 60_000), compared).into_iter().sum();
    println!("{count:?}");
    assert!(count.programs >= 500 && count.unsure == 0, "{count:?}");
    assert!(count.found > 100 && count.none + count.safe > 100, "{count:?}");
}

#[test]
fn order_under_partial_buffers() {
    let proofs = |seed| {
        let mut random = Random::new(seed);
        let shape = generate::Shape {
            threads: 2,
            length: 3,
            variables: 2,
            numbers: *random.pick(&[generate::Numbers::Nat, generate::Numbers::Int]),
            distances: false,
            loops: random.one_in(2),
        };
        let text = generate::random(seed, shape);
        let program = load(&text);
        let Some(least) = least(&bounded(&program, 0), MemoryModel::Tso, 5_000) else { return 0 };
        let options = cegar::Options { domain: DomainName::Order, ..cegar::Options::default() };
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let limits = Limits::starting_now(Some(Duration::from_secs(5)), None, Default::default());
        let engine = Cegar { options };
        let results = check(&engine, &task, &limits, &Progress::default(), Confirm::default());
        for (checked, least) in results.iter().zip(least) {
            let about = format!("seed {seed}, property {}\n{text}", checked.property.name);
            match checked.verdict() {
                Verdict::Safe => assert_eq!(least, None, "{about}"),
                Verdict::Unsafe => assert!(least.is_some(), "{about}"),
                Verdict::Unknown(Reason::Contradiction(what)) => panic!("{about}: {what}"),
                Verdict::Unknown(_) => {}
            }
        }
        results.iter().filter(|checked| checked.certificate().is_some()).count()
    };
    let proved: usize = spread(seeds(150, 10_000), proofs).into_iter().sum();
    assert!(proved > 50, "only {proved} certificates");
}

/// Whether all automata accept some common word, by search in their product.
fn intersects(automata: &[Automaton], letters: usize) -> bool {
    let first: Vec<usize> = automata.iter().map(|a| a.initial).collect();
    let mut seen = HashSet::from([first.clone()]);
    let mut work = vec![first];
    while let Some(states) = work.pop() {
        if automata.iter().zip(&states).all(|(a, q)| a.accepting.contains(q)) {
            return true;
        }
        for letter in 0..letters {
            let mut next: Vec<Vec<usize>> = vec![Vec::new()];
            for (a, q) in automata.iter().zip(&states) {
                let moves = a.transitions.iter().filter(|(from, l, _)| (from, *l) == (q, letter));
                let targets: Vec<usize> = moves.map(|t| t.2).collect();
                let longer = |p: &Vec<usize>| {
                    let p = p.clone();
                    targets.iter().map(move |t| [p.as_slice(), &[*t]].concat()).collect::<Vec<_>>()
                };
                next = next.iter().flat_map(longer).collect();
            }
            work.extend(next.into_iter().filter(|states| seen.insert(states.clone())));
        }
    }
    false
}

#[test]
fn intersections_of_automata() {
    let (mut empty, mut inhabited) = (0, 0);
    for seed in seeds(150, 3_000) {
        let mut random = Random::new(seed);
        let (count, states, letters) = (1 + random.below(3), 2 + random.below(3), 1 + random.below(2));
        let automata = random_automata(seed, count, states, letters);
        let program = load(&intersection(&automata, letters));
        let property = program.properties.iter().find(|p| p.name == "accepted").expect("it is stated");
        let checked = run(&program, MemoryModel::Tso, property, Options::default());
        let reached = match checked.verdict() {
            Verdict::Safe => false,
            Verdict::Unsafe => true,
            Verdict::Unknown(reason) => panic!("seed {seed}: {reason}"),
        };
        assert_eq!(reached, intersects(&automata, letters), "seed {seed}: {automata:?}");
        if reached { inhabited += 1 } else { empty += 1 }
    }
    assert!(empty > 20 && inhabited > 20, "{empty} empty, {inhabited} not");
}

#[test]
fn the_bakery_fails_without_fences_and_holds_with_them() {
    for n in [2, 3] {
        let program = load(&bakery(n, false));
        let mutex = program.properties.iter().find(|p| p.name == "mutex").expect("it is stated");
        let checked = run(&program, MemoryModel::Tso, mutex, Options::default());
        assert!(matches!(checked.verdict(), Verdict::Unsafe), "{n}: {:?}", checked.verdict());
        // Two contexts are enough: one thread enters the critical section while its stores are still buffered, and then another thread enters too.
        assert_eq!(checked.work.rounds().len() + 1, 2, "{n} threads");
        assert_eq!(checked.trace().expect("replayed").contexts(), 2);
    }
    let program = load(&bakery(2, true));
    let mutex = program.properties.iter().find(|p| p.name == "mutex").expect("it is stated");
    let options = Options { contexts: Some(8), domain: Some(DomainName::Order), ..Default::default() };
    let checked = run(&program, MemoryModel::Tso, mutex, options);
    assert!(matches!(checked.verdict(), Verdict::Safe), "{:?}", checked.verdict());
    let options = Options { contexts: Some(5), ..options };
    let checked = run(&program, MemoryModel::Tso, mutex, options);
    let within = Reason::Contexts(5, None);
    assert!(matches!(checked.verdict(), Verdict::Unknown(r) if *r == within), "{:?}", checked.verdict());
    assert_eq!(within.to_string(), "no violation within 5 contexts");
}

/// A comparison of registers and constants, or a combination of several.
fn condition(random: &mut Random, registers: usize, constants: &[i64], depth: usize) -> Expr<RegisterId> {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    if depth > 0 && random.one_in(3) {
        let left = condition(random, registers, constants, depth - 1);
        let right = condition(random, registers, constants, depth - 1);
        return match random.below(3) {
            0 => left.not(),
            n => Expr::binary([And, Or][n - 1], left, right),
        };
    }
    let leaf = |random: &mut Random| Expr::Leaf(RegisterId(random.below(registers) as u32));
    let left = leaf(random);
    let right = if random.one_in(3) { leaf(random) } else { Expr::Const(*random.pick(constants)) };
    Expr::binary(*random.pick(&[Eq, Ne, Lt, Le, Gt, Ge]), left, right)
}

/// Restricts a random program to copies, choices and comparisons of values, with these constants.
fn only_compares(random: &mut Random, program: &mut Program, constants: &[i64]) {
    let chosen = |random: &mut Random| {
        let low = random.between(0, 1);
        random.one_in(2).then(|| Range { low, high: low + random.between(0, 2) })
    };
    let started = |random: &mut Random, range: Option<Range>| match range {
        Some(range) => Init::Any(Some(range)),
        None if random.one_in(4) => Init::Any(chosen(random)),
        None => Init::Value(*random.pick(constants)),
    };
    for variable in &mut program.variables {
        let range = variable.range;
        variable.init.iter_mut().for_each(|init| *init = started(random, range));
    }
    for thread in &mut program.threads {
        let registers = thread.registers.len();
        thread.registers.iter_mut().for_each(|r| r.init = started(random, r.range));
        let leaf = |random: &mut Random| Expr::Leaf(RegisterId(random.below(registers) as u32));
        let value = |random: &mut Random| match random.below(4) {
            0 => Expr::Const(*random.pick(constants)),
            1 => condition(random, registers, constants, 1),
            _ => leaf(random),
        };
        for op in thread.edges.iter_mut().flat_map(|e| ops_mut(&mut e.action)) {
            if let Op::Load(_, Address { index: Some(index), .. })
            | Op::Store(Address { index: Some(index), .. }, _) = op
                && index.constant().is_none()
            {
                *index = leaf(random);
            }
            match op {
                Op::Assign(_, e) | Op::Store(_, e) => *e = value(random),
                Op::Assume(e) | Op::Assert(e, _) => *e = condition(random, registers, constants, 2),
                Op::Havoc(_, range) => *range = chosen(random),
                Op::Load(..) | Op::Skip => {}
            }
        }
    }
}

#[test]
fn programs_with_constants() {
    let compared = |seed| {
        let mut random = Random::new(seed ^ 0x5eed);
        let mut program = program(&mut random, Shape { length: 4, ..Shape::default() });
        program.numbers = *random.pick(&[Numbers::Int, Numbers::Nat]);
        let sets: [&[i64]; 4] = match program.numbers {
            Numbers::Nat => [&[0, 1], &[0, 2], &[1, 3], &[2]],
            _ => [&[0, 1], &[-1, 1], &[-2, 0, 2], &[1, 2, 3]],
        };
        let constants = sets[random.below(sets.len())];
        only_compares(&mut random, &mut program, constants);
        let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso]);
        let options = Options { contexts: Some(MOST), domain: Some(DomainName::Order), ..Default::default() };
        // All constants are between -2 and 3. One more value outside this range is sufficient for each choice.
        let bounded = bounded(&program, 4);
        agree(&format!("seed {seed}"), [&program, &bounded], model, options, seed % 2 == 0)
    };
    let count: Count = spread(seeds(700, 60_000), compared).into_iter().sum();
    println!("{count:?}");
    assert!(count.programs > 200 && count.found > 100 && count.none + count.safe > 100, "{count:?}");
}

/// The verdict on the only property of a program.
fn verdict(text: &str, options: Options) -> Checked {
    let program = load(text);
    let started = Instant::now();
    let checked = run(&program, MemoryModel::Tso, program.properties.last().expect("there is one"), options);
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?} after {:?}",
        checked.verdict(),
        started.elapsed()
    );
    checked
}

#[test]
fn more_cells_than_fit_a_byte() {
    let registers: Vec<String> = (0..300).map(|n| format!("r{n}")).collect();
    for n in [250, 255, 256, 299] {
        let text = format!(
            "shared x; thread t {{ var {}; assert r{n} == 1; }} thread u {{ var q; q = *; x = q; }}",
            registers.join(", ")
        );
        let checked = verdict(&text, Options::default());
        assert!(matches!(checked.verdict(), Verdict::Unsafe), "{n}: {:?}", checked.verdict());
    }
}

#[test]
fn programs_beyond_the_machine_are_unknown() {
    let open = "shared a[4] open; thread t { var i = 7, r; r = a[i]; assert r != 0; } thread u { skip; }";
    let cases = "shared a[16]; thread t { var i = * in 0..16, j = * in 0..16, k = * in 0..16, r, s, q;
        atomic { r = a[i]; s = a[j]; q = a[k]; } assert r != 0; } thread u { var z; z = *; skip; }";
    for text in [open, cases, "shared x = *; forbid p: x == 0;"] {
        let checked = verdict(text, Options::default());
        let unknown = matches!(checked.verdict(), Verdict::Unknown(Reason::Unsupported(..)));
        assert!(unknown, "{text}: {:?}", checked.verdict());
    }
}

#[test]
fn labels_inside_comparisons_are_not_for_order() {
    let text = "numbers real; thread p { var r; start: r = *; go: skip; } thread q { skip; }
        forbid bad: (p@start) < (p.r < 0);";
    let order = Options { domain: Some(DomainName::Order), ..Options::default() };
    for options in [Options::default(), order] {
        let checked = verdict(text, options);
        let unknown = matches!(checked.verdict(), Verdict::Unknown(Reason::Unsupported(..)));
        assert!(unknown, "{:?}", checked.verdict());
    }
    let sums = "thread p { a: skip; } thread q { a: skip; } forbid bad: (p@a) + (q@a) < 1;";
    assert!(matches!(verdict(sums, order).verdict(), Verdict::Unsafe));
}

#[test]
fn many_real_constants_leave_little_room() {
    let constants: Vec<String> = (0..41).map(|n| format!("t != {n}")).collect();
    let text = format!(
        "numbers real; thread p {{ var a, b, c, e, f, g, s, t; a = *; b = *; c = *; t = *;
            assume 0 < a && a < b && b < c && c < 1 && {};
            atomic {{ e = *; f = *; g = *; assume a < g && g < f && f < e && e < b && b < c && c < 1; s = 1; }}
            assert s == 0; }} thread u {{ skip; }}",
        constants.join(" && ")
    );
    let checked = verdict(&text, Options::default());
    assert!(matches!(checked.verdict(), Verdict::Unknown(_)), "{:?}", checked.verdict());
}

#[test]
fn many_buffered_cells_become_one_group() {
    let cells: Vec<String> = (0..68).map(|n| format!("x{n}")).collect();
    let constants: String = (1..59).map(|n| format!("r = {n}; ")).collect();
    let stores: String = cells.iter().map(|x| format!("{x} = 1; ")).collect();
    let loads = |part: &[String]| -> String { part.iter().map(|x| format!("r = {x}; ")).collect() };
    let text = format!(
        "shared z, w, u, {}; thread p {{ var r; {constants} {stores} r = w;
            snapshot {{ {} }} snapshot {{ {} }} assert r == 1; }} thread q {{ z = 1; w = 1; u = 1; }}",
        cells.join(", "),
        loads(&cells[..38]),
        loads(&cells[38..])
    );
    let program = load(&text);
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_secs(3)), None, Default::default());
    let engine = ContextBound {
        options: Options { contexts: Some(4), domain: Some(DomainName::Order), ..Default::default() },
    };
    let results = check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
    // Whether or not there is time for four contexts, the search with three contexts ends within the limit and finds no violation.
    assert!(!results.iter().any(|c| matches!(c.verdict(), Verdict::Unsafe)));
}

#[test]
fn a_choice_after_a_fault_is_not_made() {
    let text =
        "shared x; thread t { var r = 1, b; atomic { assert r == 0; b = *; x = b; } } thread u { skip; }";
    assert!(matches!(verdict(text, Options::default()).verdict(), Verdict::Unsafe));
}

#[test]
fn long_buffers_and_many_choices_end() {
    let stores: String = (0..1_000).map(|n| format!("x = {n}; ")).collect();
    let long =
        format!("shared x, y; thread t {{ {stores} y = 1; }} thread u {{ var r; r = y; assert r == 0; }}");
    assert!(matches!(verdict(&long, Options::default()).verdict(), Verdict::Unsafe));
    let choices = "shared a = *, b = *, c = *, d = *, e = *, f = *, g = *, h = *;
        thread t { assert a < b && b < c && c < d && d < e && e < f && f < g && g < h; } thread u { a = b; }";
    assert!(matches!(verdict(choices, Options::default()).verdict(), Verdict::Unsafe));
}
