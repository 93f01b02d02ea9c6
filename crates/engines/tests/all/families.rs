//! Tests the search up to symmetry on random families of threads, with properties that name threads, cells that belong to threads, and thread numbers
//! as values; and on families that are almost symmetric.
//!
//! A normal run tests 2,000 programs; `FENCEWRIGHT_PROGRAMS=N` tests N programs.

use std::sync::Arc;

use fencewright_certify::automorphism::Family;
use fencewright_certify::states::{PackedStates, StateSet};
use fencewright_certify::{Certificate, Claim, Proof, Rejection, Stop, check as certify};
use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::robust;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program, Property};
use fencewright_smt::Prover;
use fencewright_testing::families::family;
use fencewright_testing::{Random, programs_or, spread};
use fencewright_verdict::fingerprint::fingerprint;

/// Programs with more states than this are skipped.
const MOST_STATES: usize = 3_000;

fn program(text: &str) -> Program {
    load("family.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}")).program
}

fn verdicts(
    program: &Program,
    model: MemoryModel,
    properties: &[Property],
    options: Options,
) -> Vec<Checked> {
    let task = Task::new(program, model, properties.to_vec());
    let confirm = Confirm { certificates: true, exploration: None };
    check(&Explicit { options }, &task, &Limits::default(), &Progress::default(), confirm)
}

fn options(random: &mut Random) -> Options {
    Options {
        order: *random.pick(&[Order::BreadthFirst, Order::DepthFirst]),
        live_variables: !random.one_in(4),
        reduction: if random.one_in(2) { Reduction::Local } else { Reduction::None },
        workers: 1 + random.below(3),
        threads_from: if random.one_in(4) { 0 } else { 1_000 },
        ..Options::default()
    }
}

#[test]
fn random_families_have_the_verdicts_of_the_reference_semantics() {
    let wanted = programs_or(2_000) as u64;
    let [decided, symmetric, refused, violated] = spread(0..wanted, agrees).into_iter().fold([0; 4], add);
    let few = decided / 10;
    assert!(
        symmetric > few && refused > few && violated > few,
        "{decided} decided, {symmetric} symmetric, {refused} near ones refused, {violated} violations"
    );
}

fn add(a: [usize; 4], b: [usize; 4]) -> [usize; 4] {
    std::array::from_fn(|n| a[n] + b[n])
}

/// Compares one program with the oracle. Returns four numbers: of decided properties, of runs in which symmetry was used, of runs on deliberately
/// asymmetric families in which it was not used, and of violations.
fn agrees(seed: u64) -> [usize; 4] {
    let mut random = Random::new(seed);
    let near = random.one_in(2);
    let text = family(&mut random, near);
    let program = program(&text);
    let mut properties = program.properties.clone();
    if random.one_in(3) {
        properties.push(Property::deadlock());
    }
    let model = *random.pick(&MemoryModel::ALL);
    let Ok(reachable) = explore(&program, model, MOST_STATES, &mut || false) else { return [0; 4] };
    let drawn = options(&mut random);
    let all = verdicts(&program, model, &properties, Options { symmetry: false, ..drawn.clone() });
    let some = verdicts(&program, model, &properties, drawn.clone());
    let mut counts = [properties.len(), 0, 0, 0];
    for ((property, with), without) in properties.iter().zip(&some).zip(&all) {
        let expected = reachable.satisfies(&program, model, property).expect("small values");
        for checked in [with, without] {
            let same = match checked.verdict() {
                Verdict::Safe => expected,
                Verdict::Unsafe => !expected,
                Verdict::Unknown(_) => false,
            };
            assert!(same, "seed {seed}, {model:?}, {drawn:?}: {checked:?}, expected {expected}\n{text}");
            let confirmed = checked.checked() == Some(true) || property.kind.is_existence();
            assert!(confirmed, "seed {seed}, {model:?}: {checked:?}\n{text}");
        }
        // A search that finds a violation, or the final state of an existential property, ends early.
        let ended_early = expected == property.kind.is_existence();
        assert!(
            with.work.states <= without.work.states || ended_early,
            "seed {seed}: more states up to symmetry\n{text}"
        );
        counts[1] += usize::from(!with.work.symmetry().is_empty());
        counts[2] += usize::from(near && with.work.symmetry().is_empty());
        counts[3] += usize::from(!expected);
    }
    counts
}

#[test]
fn the_number_of_states_does_not_depend_on_the_number_of_workers() {
    for seed in 0..200 {
        let program = program(&family(&mut Random::new(seed), false));
        let states = |workers: usize| {
            let options = Options { workers, threads_from: 0, ..Options::default() };
            let limits = Limits::starting_now(None, Some(64 << 20), Default::default());
            let task = Task::new(&program, MemoryModel::Tso, vec![Property::assertions()]);
            let checked =
                check(&Explicit { options }, &task, &limits, &Progress::default(), Confirm::NOTHING);
            matches!(checked[0].verdict(), Verdict::Safe).then_some(checked[0].work.states)
        };
        // Programs with infinitely many states, because a loop fills a buffer that is never drained, are skipped.
        if explore(&program, MemoryModel::Tso, MOST_STATES, &mut || false).is_ok() {
            assert_eq!(states(1), states(3), "seed {seed}");
        }
    }
}

/// The numbers of states with and without symmetry.
fn states(text: &str, model: MemoryModel) -> (u64, u64, Vec<Vec<String>>) {
    let program = program(text);
    let states = |symmetry: bool| {
        let options = Options { symmetry, workers: 1, ..Options::default() };
        verdicts(&program, model, &program.properties, options).remove(0)
    };
    (states(true).work.states, states(false).work.states, states(true).work.symmetry().to_vec())
}

#[test]
fn queues_of_thread_numbers_are_symmetric() {
    let mcs = "shared tail, next[1..=3], go[1..=3];
        thread p[me in 1..=3] {
            var t;
            next[me] = 0;
            go[me] = 0;
            atomic { t = tail; tail = me; }
            if t != 0 { next[t] = me; await go[me] == 1; }
        critical: skip;
            if !cas(tail, me, 0) { t = next[me]; if t != 0 { go[t] = 1; } }
        }
        forbid mutex: i < j in 1..=3: p[i]@critical && p[j]@critical;";
    for model in MemoryModel::ALL {
        let (some, all, symmetry) = states(mcs, model);
        assert_eq!(symmetry, [["p[1]", "p[2]", "p[3]"]], "{model:?}");
        assert!(some * 6 >= all && some * 5 < all, "{model:?}: {some} of {all}");
    }
}

#[test]
fn dependence_on_the_order_of_threads_is_not_symmetric() {
    let with = |body: &str, property: &str| {
        let text = format!(
            "shared x, tail = 3, flag[3]; thread p[me in 0..3] {{ var r, t = 3; {body} l: skip; }} {property}"
        );
        states(&text, MemoryModel::Sc).2
    };
    let mutex = "forbid i < j in 0..3: p[i]@l && p[j]@l;";
    let exchanged = [["p[0]", "p[1]", "p[2]"]];
    assert_eq!(with("flag[me] = 1; x = 1;", mutex), exchanged);
    assert_eq!(with("t = tail; await t == me; tail = 3;", mutex), exchanged);
    // Each of the three threads may be the first, and the other two are symmetric.
    assert_eq!(with("await tail == 0;", mutex), exchanged);
    let none: [[&str; 0]; 0] = [];
    assert_eq!(with("x = me; if x < me { r = 1; }", mutex), none);
    assert_eq!(with("flag[(me + 1) % 3] = 1;", mutex), none);
    assert_eq!(
        with("for i in 0..3 { r = flag[i]; }", "forbid exists i in 0..3: flag[i] == 1 && p[i].r == 1;"),
        none
    );
    assert_eq!(with("x = me + 1;", mutex), none);
    assert_eq!(with("flag[me] = 1;", "forbid p[0]@l && flag[1] == 1;"), none);
    assert_eq!(with("flag[me] = 1;", "forbid p[0]@l && (p[1]@l || p[2]@l);"), [["p[1]", "p[2]"]]);
}

/// The set of states that proves `assertions` and the other properties that hold.
fn proof(program: &Program, model: MemoryModel, options: Options) -> Option<(StateSet, Claim)> {
    let results = verdicts(program, model, &program.properties, options);
    let certificate = results.iter().find_map(|result| result.certificate())?;
    let Proof::States(set) = &certificate.proofs[0] else { panic!("engine explicit has states") };
    Some(((**set).clone(), certificate.claim.clone()))
}

fn accepted(program: &Program, set: StateSet, claim: &Claim) -> Result<(), Rejection> {
    let certificate =
        Certificate::new(fingerprint(program), claim.clone(), vec![Proof::States(Arc::new(set))]);
    let stop: Stop = Arc::new(|| false);
    certify(&certificate, program, &Prover, &stop).map(|_| ())
}

/// The set without one of its states.
fn without(set: &StateSet, n: usize) -> StateSet {
    let PackedStates::Plain(words, states) = &set.states else {
        panic!("the engine does not compress states")
    };
    let mut states = states.clone();
    states.drain(n * words..(n + 1) * words);
    StateSet { states: PackedStates::Plain(*words, states), ..set.clone() }
}

#[test]
fn a_set_that_lacks_an_orbit_or_lies_about_symmetry_is_refused() {
    let (mut smaller, mut lying) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(70_000 + seed);
        let text = family(&mut random, seed % 2 == 0);
        let program = program(&text);
        let model = *random.pick(&MemoryModel::ALL);
        if explore(&program, model, MOST_STATES, &mut || false).is_err() {
            continue;
        }
        let options = Options { workers: 1, ..options(&mut random) };
        let Some((set, claim)) = proof(&program, model, options.clone()) else { continue };
        assert_eq!(accepted(&program, set.clone(), &claim), Ok(()), "seed {seed}");
        let PackedStates::Plain(words, states) = &set.states else { panic!("they are not compressed") };
        let lost = without(&set, random.below(states.len() / words));
        assert!(accepted(&program, lost, &claim).is_err(), "seed {seed}: a state is missing\n{text}");
        if set.symmetry.is_empty() {
            // A set that claims symmetry of asymmetric threads is rejected.
            let threads = [0, 1].map(|t| program.threads[t].family.as_ref().expect("an instance").1);
            let family = Family { threads: vec![0, 1], numbers: threads.to_vec(), ..Family::default() };
            let liar = StateSet { symmetry: vec![family], ..set };
            let refused = accepted(&program, liar, &claim);
            lying += usize::from(matches!(refused, Err(Rejection::Symmetry(_))));
        } else {
            let mut liar = set.clone();
            let family = &mut liar.symmetry[0];
            family.values = (0..4).filter(|v| !family.values.contains(v)).collect();
            let refused = accepted(&program, liar, &claim);
            lying += usize::from(matches!(refused, Err(Rejection::Symmetry(_))));
            let liar = StateSet { symmetry: Vec::new(), ..set.clone() };
            // A set without the claim of symmetry is accepted only if it has all states.
            let all = proof(&program, model, Options { symmetry: false, ..options }).expect("a proof").0;
            let PackedStates::Plain(width, full) = &all.states else { panic!("they are not compressed") };
            let complete = states.len() / words == full.len() / width;
            assert_eq!(accepted(&program, liar, &claim).is_ok(), complete, "seed {seed}\n{text}");
            smaller += usize::from(!complete);
        }
    }
    assert!(smaller > 40 && lying > 100, "{smaller} sets are smaller, {lying} lies were found out");
}

#[test]
fn large_families_without_numbers_are_sorted_not_tried_in_all_orders() {
    // All threads end at the same location with different values of their registers, so 14! permutations would have to be tried.
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        let program = program(
            "shared x;
             thread p[me in 0..14] { var r; r = fetch_add(x, 1); }
             finally never exists i in 0..14: p[i].r > 13;",
        );
        let (set, claim) = proof(&program, model, Options::default()).expect("it holds");
        assert_eq!(set.states.count(), 15);
        assert_eq!(accepted(&program, set.clone(), &claim), Ok(()));
        // A set without one of its states is rejected quickly too.
        for n in 0..15 {
            assert!(accepted(&program, without(&set, n), &claim).is_err(), "without state {n}");
        }
    }
}

#[test]
fn attacks_of_a_family_are_taken_up_to_symmetry() {
    let text = include_str!("../../../../examples/mcs-lock.fw");
    let program = load("mcs-lock.fw", text.as_bytes(), None, &[("N".into(), 3)]).expect("an example").program;
    let states = |symmetry: bool| {
        let options = robust::Options {
            search: robust::Search::Explicit,
            explicit: Options { symmetry, ..Options::default() },
            ..robust::Options::default()
        };
        let found = robust::analyse(&program, &options, &Limits::default(), &Progress::default());
        assert_eq!((found.robust(), found.checked()), (Ok(true), Some(true)));
        found.states
    };
    let (all, orbits) = (states(false), states(true));
    assert!(orbits * 5 < all, "{orbits} of {all} states up to symmetry of three threads");
}
