//! Compares every machine with every domain, on random programs, with the reference semantics.
//!
//! This tests the search itself, not an engine: its results are neither replayed nor refined. If a search finds no evidence, the property must hold,
//! however coarse machine and domain are; if a search finds evidence and both are exact, a state with evidence must be reachable. The machine
//! `contexts` covers the executions within a number of contexts, and is compared with these executions only. A domain may decline a program with a
//! reason, but each pair must decide a minimum number of programs.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_engines::contexts::Options;
use fencewright_engines::domain::concrete::Concrete;
use fencewright_engines::domain::order::{Relations, fragment};
use fencewright_engines::domain::predicates::{Predicates, Template};
use fencewright_engines::domain::residues::Moduli;
use fencewright_engines::domain::zones::Zones;
use fencewright_engines::domain::{Domain, DomainName};
use fencewright_engines::search::explore::Unmodelled;
use fencewright_engines::search::live::LiveCells;
use fencewright_engines::search::reach::{Reach, Reached};
use fencewright_engines::search::reduced::Reduced;
use fencewright_engines::search::symmetry::Symmetry;
use fencewright_engines::{Limits, Progress, Reason, Task};
use fencewright_executions::oracle::explore;
use fencewright_generate::random as generate;
use fencewright_memory::{Bound, BufferMachine, Buffers, Kept, Linear, Machine, Summarised};
use fencewright_program::{MemoryModel, Program, Property, PropertyKind, Quantifier};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::{Random, Shape, program, programs_or, spread};

use crate::bounded::{Count, MOST, agree, bounded, load};

const DOMAINS: [DomainName; 4] =
    [DomainName::Concrete, DomainName::Zones, DomainName::Predicates, DomainName::Order];

/// The result of a search for evidence about a property.
#[derive(Debug)]
enum Found {
    /// All states were searched, and none of them is evidence.
    Nothing,
    /// Some state that was reached may be evidence.
    Violation,
    /// The search gave up, or the domain declined the program, for this reason.
    Declined(Reason),
}

/// Searches a machine with a domain.
fn search<M: Machine<Phase = ()>>(machine: &M, mut domain: impl Domain, property: &Property) -> Found {
    // Memory is limited and time is not, so that the result does not depend on the speed of the machine.
    let limits = Limits::starting_now(None, Some(8 << 20), Default::default());
    let properties = std::slice::from_ref(property);
    let mut reach = Reach::new(machine, properties, &mut domain, &limits);
    match reach.run(&limits, &Progress::default()) {
        Reached::Closed(_) => Found::Nothing,
        Reached::Evidence(_) => Found::Violation,
        Reached::Unmodelled(Unmodelled::Domain(reason)) | Reached::Stopped(reason) => Found::Declined(reason),
        Reached::Unmodelled(Unmodelled::Machine(what, span)) => {
            Found::Declined(Reason::Unsupported(what.to_string(), Some(span)))
        }
    }
}

/// Searches with the domain of this name.
fn search_with<M: Machine<Phase = ()>>(
    name: DomainName,
    machine: &M,
    program: &Program,
    property: &Property,
    random: &mut Random,
) -> Found {
    let limits = Limits::default();
    match name {
        DomainName::Concrete => search(machine, Concrete::new(), property),
        DomainName::Zones => {
            let zones = Zones::new(random.between(0, 3) as i32, false);
            let zones = match random.one_in(4) {
                true => zones,
                false => zones.with_residues(
                    Moduli::new(program, std::slice::from_ref(property), &Limits::default())
                        .expect("there are no limits"),
                ),
            };
            // The domain of zones sometimes has rows for sums of memory cells and registers.
            let variables = BufferMachine::new(program, Buffers::Sc).cells.len() as u32;
            let sums = (0..random.below(4)).filter_map(|_| {
                let cells: BTreeSet<u32> = (0..3).map(|_| random.below(variables as usize) as u32).collect();
                let terms: Vec<(u32, i64)> =
                    cells.into_iter().map(|c| (c, *random.pick(&[-2, -1, 1, 1]))).collect();
                let sum = Linear { terms, constant: random.between(-1, 1) };
                sum.difference().is_none().then_some(sum)
            });
            let sums: Vec<Linear> = sums.collect();
            search(machine, zones.with_forms(sums), property)
        }
        DomainName::Predicates => {
            // Bounds of single cells and of differences: `x <= c`, `x >= c`, `x - y <= c`.
            let constants = -1..=random.between(0, 2);
            let shape =
                |terms: &[(u32, i64)], c| Template::of(&Linear { terms: terms.to_vec(), constant: c });
            let shapes = |c| [shape(&[(0, 1)], c), shape(&[(0, -1)], c), shape(&[(0, 1), (1, -1)], c)];
            let templates = constants.flat_map(shapes).collect();
            search(machine, Predicates::new(templates, false, limits.budget()), property)
        }
        DomainName::Order => {
            match fragment(program, std::slice::from_ref(property), Relations::Order, &limits) {
                Ok(order) => search(machine, order, property),
                Err(reason) => Found::Declined(reason),
            }
        }
    }
}

/// The buffer machines, each with its name and whether it is exact, that is, has only the behaviour of the reference semantics.
fn machines(model: MemoryModel, cells: usize) -> Vec<(String, bool, Buffers)> {
    if model == MemoryModel::Sc {
        return vec![("sc".into(), true, Buffers::Sc)];
    }
    let mut machines: Vec<(String, bool, Buffers)> =
        vec![(format!("queue {model:?}"), true, Buffers::Queue { model, bound: Bound::Thread(5) })];
    for kept in [Kept::Oldest, Kept::Newest] {
        for k in 0..3 {
            for (with, summaries) in [("", Summarised::default()), (" summaries", Summarised::all(cells))] {
                let name = format!("partial {kept:?} {k}{with} {model:?}");
                machines.push((name, false, Buffers::Partial { model, k, kept, summaries }));
            }
        }
    }
    machines
}

/// For each pair of machine and domain: the numbers of properties checked, found safe, and found to be violated.
type Counts = BTreeMap<(String, String), [usize; 3]>;

/// Checks all properties of a program under a memory model with all pairs. `finite` is the program with each choice restricted to sufficiently many
/// values.
fn compare(
    about: &str,
    [program, finite]: [&Program; 2],
    model: MemoryModel,
    random: &mut Random,
    counts: &mut Counts,
) {
    let Ok(reachable) = explore(finite, model, 3_000, &mut || false) else { return };
    let limits = Limits::default();
    for property in &program.properties {
        let shows =
            !matches!(property.kind, PropertyKind::Finally(Quantifier::Exists, _) | PropertyKind::NoDeadlock);
        let Some(holds) = reachable.satisfies(finite, model, property).filter(|_| shows) else { continue };
        let machine = random.pick(&machines(model, program.cells())).clone();
        for domain in DOMAINS {
            let (name, exact, buffers) = machine.clone();
            // Domain `concrete` supports only choices from finitely many values.
            let program = if domain == DomainName::Concrete { finite } else { program };
            let machine = BufferMachine::new(program, buffers);
            let found = match random.one_in(2) {
                true => search_with(domain, &machine, program, property, random),
                false => {
                    let task = Task::new(program, model, vec![property.clone()]);
                    let live = LiveCells::new(&task, &limits).expect("a small program");
                    let symmetry = Symmetry::new(&task);
                    let reduced = Reduced::new(&machine, &live, symmetry.as_ref());
                    search_with(domain, &reduced, program, property, random)
                }
            };
            let count = counts.entry((name.clone(), format!("{domain:?}"))).or_default();
            count[0] += 1;
            let about = format!("{about}, {name} with {domain:?}, property {}", property.name);
            let domain_is_exact = matches!(domain, DomainName::Concrete | DomainName::Order);
            match found {
                Found::Nothing => {
                    assert!(holds, "{about}: nothing was found, but it is violated");
                    count[1] += 1;
                }
                Found::Violation if exact && domain_is_exact => {
                    assert!(!holds, "{about}: a violation was found, but there is none");
                    count[2] += 1;
                }
                Found::Violation => count[2] += 1,
                Found::Declined(Reason::Unsupported(..) | Reason::Memory(_)) => {}
                Found::Declined(reason) => panic!("{about}: {reason}"),
            }
        }
    }
}

fn seeds(normal: u64, long: u64) -> std::ops::Range<u64> {
    let usual = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { long } else { normal };
    0..programs_or(usual as usize) as u64
}

/// A program that only copies, chooses and compares values, so that domain `order` does not decline it.
fn comparing(seed: u64, random: &mut Random) -> (String, Program) {
    let shape = generate::Shape {
        threads: 2,
        length: 3 + random.below(2),
        variables: 1 + random.below(2),
        numbers: *random.pick(&[generate::Numbers::Nat, generate::Numbers::Int]),
        distances: false,
        loops: random.one_in(4),
    };
    let text = generate::random(seed, shape);
    let program = load(&text);
    (text, program)
}

/// Compares the buffer machines on one program.
fn compare_buffer_machines(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso, MemoryModel::Pso]);
    if random.one_in(2) {
        let (text, program) = comparing(seed, &mut random);
        let finite = bounded(&program, 0);
        let about = format!("seed {seed}, {model:?}\n{text}");
        compare(&about, [&program, &finite], model, &mut random, counts);
    } else {
        let shape = Shape { length: 4, corners: seed % 4 == 3, ..Shape::default() };
        let mut program = program(&mut random, shape);
        if random.one_in(6) {
            compute(&mut random, &mut program);
        }
        compare(&format!("seed {seed}, {model:?}"), [&program; 2], model, &mut random, counts);
    }
}

#[test]
fn buffer_machines() {
    let compared = |seed| {
        let mut counts = Counts::new();
        compare_buffer_machines(seed, &mut counts);
        counts
    };
    let mut counts = Counts::new();
    for (pair, count) in spread(seeds(600, 60_000), compared).into_iter().flatten() {
        let all = counts.entry(pair).or_default();
        all.iter_mut().zip(count).for_each(|(all, more)| *all += more);
    }
    for (pair, [asked, safe, violated]) in &counts {
        println!("{pair:?}: asked {asked}, nothing found {safe}, violation found {violated}");
    }
    // There are 27 machines: one for SC, and for TSO and PSO each one with a queue and twelve partial ones.
    assert_eq!(counts.len(), (1 + 2 * 13) * DOMAINS.len());
    for (pair, [asked, safe, violated]) in &counts {
        assert!(*safe >= 4 && *violated >= 4 && *asked >= 20, "{pair:?}: {asked}, {safe}, {violated}");
    }
}

#[test]
fn contexts() {
    for domain in DOMAINS {
        let compared = |seed| {
            let mut random = Random::new(seed);
            let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso]);
            let options = Options { contexts: Some(MOST), domain: Some(domain), ..Options::default() };
            if random.one_in(2) {
                let (text, program) = comparing(seed, &mut random);
                let finite = bounded(&program, 0);
                let asked = if domain == DomainName::Concrete { &finite } else { &program };
                let about = format!("seed {seed}\n{text}");
                agree(&about, [asked, &finite], model, options, seed % 2 == 0)
            } else {
                let program = program(&mut random, Shape { length: 4, ..Shape::default() });
                agree(&format!("seed {seed}"), [&program; 2], model, options, seed % 2 == 0)
            }
        };
        let count: Count = spread(seeds(80, 10_000), compared).into_iter().sum();
        println!("{domain:?}: {count:?}");
        assert!(count.found >= 30 && count.none + count.safe >= 30, "{domain:?}: {count:?}");
    }
}
