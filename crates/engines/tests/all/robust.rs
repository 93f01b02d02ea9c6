//! Compares the analysis of robustness with brute force: for small programs, all executions under TSO are enumerated with their happens-before
//! relations.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use fencewright_engines::robust::{Finding, Options, Robustness, Search, Shape, analyse};
use fencewright_engines::{Confirm, Exploration, Limits, Progress, Reason};
use fencewright_executions::happens_before::HappensBefore;
use fencewright_executions::oracle::{self, explore};
use fencewright_program::reference::Access;
use fencewright_program::{Action, EventKind, MemoryModel, Program, Reference, State};
use fencewright_testing::corpora::corpora;
use fencewright_testing::{Random, Shape as ProgramShape};
use fencewright_transform::attack::Notion;

use crate::dense::dense_program;

// --- brute force ------------------------------------------------------------------------------------------------------------

/// The happens-before relation of an execution so far. Nodes are bits of a word; each thread has 16 of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Relation {
    reach: Vec<u64>,
    nodes: Vec<usize>,
    section: Vec<Option<usize>>,
    /// For each cell, the last write in memory and the loads that read it.
    memory: Vec<(Option<usize>, u64)>,
    /// For each thread, its buffered stores: the node and the early reads.
    pending: Vec<Vec<(usize, u64)>>,
    cyclic: bool,
}

impl Relation {
    fn new(program: &Program) -> Self {
        let threads = program.threads.len();
        assert!(threads <= 4, "64 nodes are enough for four threads");
        Relation {
            reach: vec![0; 64],
            nodes: vec![0; threads],
            section: vec![None; threads],
            memory: vec![(None, 0); program.cells()],
            pending: vec![Vec::new(); threads],
            cyclic: false,
        }
    }

    fn node(&mut self, thread: usize) -> usize {
        if let Some(node) = self.section[thread] {
            return node;
        }
        let node = thread * 16 + self.nodes[thread];
        assert!(self.nodes[thread] < 16, "an acyclic thread is short");
        self.nodes[thread] += 1;
        if self.nodes[thread] > 1 {
            self.order(node - 1, node);
        }
        node
    }

    fn order(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        self.cyclic |= self.reach[b] >> a & 1 == 1;
        let after = self.reach[b] | 1 << b;
        for n in 0..64 {
            if n == a || self.reach[n] >> a & 1 == 1 {
                self.reach[n] |= after;
            }
        }
    }

    fn order_all(&mut self, many: u64, b: usize) {
        (0..64).filter(|n| many >> n & 1 == 1).for_each(|a| self.order(a, b));
    }

    fn write(&mut self, cell: usize, node: usize, early: u64) {
        let (last, readers) = std::mem::replace(&mut self.memory[cell], (Some(node), early));
        last.into_iter().for_each(|a| self.order(a, node));
        self.order_all(readers, node);
    }

    fn step(&mut self, thread: usize, action: &Action, before: &State, effects: &[Access]) {
        if *action == Action::Lock {
            let node = self.node(thread);
            self.section[thread] = Some(node);
        }
        if *action == Action::Unlock {
            self.section[thread] = None;
        }
        let accesses = effects.iter().any(|a| !matches!(a, Access::Fault(_)));
        if !accesses {
            return;
        }
        let node = self.node(thread);
        for effect in effects {
            match *effect {
                Access::Read { cell, buffered: false, .. } => {
                    let write = self.memory[cell as usize].0;
                    self.memory[cell as usize].1 |= 1 << node;
                    write.into_iter().for_each(|a| self.order(a, node));
                }
                Access::Read { cell, buffered: true, .. } => {
                    let newest = before.buffers[thread].iter().rposition(|entry| {
                        matches!(entry, fencewright_program::reference::Buffered::Store { cell: c, .. } if *c == cell)
                    });
                    let newest = newest.expect("an early read has a store");
                    self.pending[thread][newest].1 |= 1 << node;
                }
                Access::Write { cell, buffered: false, .. } => self.write(cell as usize, node, 0),
                Access::Write { buffered: true, .. } => self.pending[thread].push((node, 0)),
                Access::Fault(_) => {}
            }
        }
    }
}

impl Relation {
    /// Performs an event that is enabled.
    fn advance(
        &mut self,
        program: &Program,
        reference: &Reference<'_>,
        state: &mut State,
        event: &fencewright_program::Event,
    ) {
        let (next, effects) = reference.step(state, event).expect("it can happen");
        let thread = event.thread.index();
        match &event.kind {
            EventKind::Flush { cell } => {
                let (node, early) = self.pending[thread].remove(0);
                self.write(*cell as usize, node, early);
            }
            EventKind::Step { edge, .. } => {
                let action = &program.thread(event.thread).edge(*edge).action;
                self.step(thread, action, state, &effects);
            }
        }
        *state = next;
    }
}

/// Whether every execution under TSO that ends with empty buffers has an acyclic happens-before relation; `None` if there are more than `limit` pairs
/// of a state and a relation.
fn brute_force(program: &Program, limit: usize) -> Option<bool> {
    let reference = Reference::new(program, MemoryModel::Tso);
    let first = oracle::initial_states(&reference, 100, &mut || false).ok()?;
    let mut work: Vec<(State, Relation)> = first.into_iter().map(|s| (s, Relation::new(program))).collect();
    let mut seen: HashSet<(State, Relation)> = work.iter().cloned().collect();
    while let Some((state, relation)) = work.pop() {
        if relation.cyclic && state.buffers.iter().all(Vec::is_empty) {
            return Some(false);
        }
        for event in reference.candidates(&state, &[]) {
            if reference.step(&state, &event).is_err() {
                continue;
            }
            let (mut next, mut longer) = (state.clone(), relation.clone());
            longer.advance(program, &reference, &mut next, &event);
            if longer.cyclic {
                longer.reach.iter_mut().for_each(|r| *r = 0);
                longer.memory.iter_mut().for_each(|m| *m = (None, 0));
            }
            let pair = (next, longer);
            if seen.insert(pair.clone()) {
                work.push(pair);
            }
        }
        if seen.len() > limit {
            return None;
        }
    }
    Some(true)
}

// --- what must hold ---------------------------------------------------------------------------------------------------------

fn ask(program: &Program, notion: Notion, search: Search, all: bool) -> Robustness {
    let limits = Limits::default().within(Duration::from_secs(20));
    let exploration = Some(Exploration { states: 2_000, ..Exploration::default() });
    let mut options = Options {
        notion,
        search,
        all,
        confirm: Confirm { exploration, ..Confirm::default() },
        ..Options::default()
    };
    options.explicit.workers = 1;
    analyse(program, &options, &limits, &Progress::default())
}

/// The numbers of programs of each kind.
#[derive(Debug, Default)]
struct Seen {
    robust: usize,
    not_robust: usize,
    racy: usize,
    symbolic: usize,
    certified: usize,
    unsupported: usize,
    outside: usize,
    too_large: usize,
}

/// Compares all results about one program.
fn compare(seed: u64, program: &Program, symbolically: bool, seen: &mut Seen) {
    let answer = ask(program, Notion::HappensBefore, Search::Explicit, false);
    if explore(program, MemoryModel::Tso, 100_000, &mut || false).err() == Some(oracle::Incomplete::Limit) {
        // Some access is outside the modelled part of an open array, so behaviour after it is unknown. A witness without such an access is valid, and
        // a program without attacks is robust anyway.
        let inside = brute_force(program, 60_000);
        match answer.robust() {
            Ok(robust) => {
                assert!(!robust || answer.attacks().is_empty(), "program {seed}: robust?\n{program:#?}");
                assert!(
                    inside.is_none_or(|expected| expected == robust),
                    "program {seed}: robust?\n{program:#?}"
                );
            }
            Err(Reason::Contradiction(what)) => panic!("program {seed}: {what}"),
            Err(_) => {}
        }
        seen.outside += 1;
        return;
    }
    let robust = match answer.robust() {
        Ok(robust) => robust,
        Err(Reason::Unsupported(..)) => {
            seen.unsupported += 1;
            return;
        }
        Err(reason) => panic!("program {seed}: {reason}"),
    };
    let Some(expected) = brute_force(program, 60_000) else {
        seen.too_large += 1;
        return;
    };
    assert_eq!(robust, expected, "program {seed}: robust?\n{program:#?}");
    if robust {
        seen.robust += 1;
    } else {
        seen.not_robust += 1;
        let (_, witness) = answer.witness().expect("a program that is not robust has a witness");
        assert!(matches!(witness.shape(), Shape::Cycle(cycle) if cycle.len() >= 2), "program {seed}");
        witness.trace().replay(program, MemoryModel::Tso).expect("a witness replays");
    }
    let every = ask(program, Notion::HappensBefore, Search::Explicit, true);
    assert_eq!(every.robust(), Ok(robust), "program {seed}: all attacks");
    let feasible = every.attacks().iter().filter(|a| a.verdict == Finding::Feasible);
    assert_eq!(feasible.clone().count() > 0, !robust, "program {seed}");
    for attack in feasible {
        assert_eq!(attack.path.first(), Some(&attack.store), "program {seed}");
        assert_eq!(attack.path.last(), Some(&attack.load), "program {seed}");
    }
    if robust {
        // Theorem 5, for states with empty buffers.
        let sc = explore(program, MemoryModel::Sc, 100_000, &mut || false).expect("small");
        let tso = explore(program, MemoryModel::Tso, 100_000, &mut || false).expect("small");
        let drained: HashSet<State> =
            tso.states.into_iter().filter(|s| s.buffers.iter().all(Vec::is_empty)).collect();
        assert_eq!(sc.states, drained, "program {seed}: states under SC and TSO");
    }
    let race = ask(program, Notion::Triangular, Search::Explicit, false);
    let race_free = match race.robust() {
        Ok(free) => free,
        Err(Reason::Unsupported(..)) => return,
        Err(reason) => panic!("program {seed}: triangular: {reason}"),
    };
    assert!(robust || !race_free, "program {seed}: free of triangular races, but not robust\n{program:#?}");
    seen.racy += usize::from(!race_free);
    if symbolically {
        let symbolic = ask(program, Notion::HappensBefore, Search::Cegar, false);
        match symbolic.robust() {
            Ok(found) => {
                seen.symbolic += 1;
                assert_eq!(found, robust, "program {seed}: symbolically");
                // There may not be enough time to check a long certificate.
                seen.certified += usize::from(symbolic.checked() == Some(true));
            }
            Err(Reason::Contradiction(what)) => panic!("program {seed}: {what}"),
            Err(_) => {}
        }
    }
}

/// Factor on the number of programs: 20 with `FENCEWRIGHT_LONG_TESTS`, otherwise 1.
fn times() -> u64 {
    if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 20 } else { 1 }
}

#[test]
fn dense_programs_agree_with_brute_force() {
    let mut seen = Seen::default();
    for seed in 0..1_500 * times() {
        let program = dense_program(&mut Random::new(seed));
        compare(seed, &program, seed % 5 == 0, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.robust > 300 && seen.not_robust > 200 && seen.certified > 200, "{seen:?}");
}

#[test]
fn random_programs_agree_with_brute_force() {
    let mut seen = Seen::default();
    for seed in 0..1_500 * times() {
        let shape = ProgramShape { loops: false, corners: seed % 3 == 2, ..ProgramShape::default() };
        let program = fencewright_testing::program(&mut Random::new(seed), shape);
        compare(seed, &program, seed % 10 == 0, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.robust > 1_000 && seen.not_robust > 0, "{seen:?}");
}

#[test]
fn programs_with_corners_agree_with_brute_force() {
    let mut seen = Seen::default();
    for seed in 0..1_000 * times() {
        let shape = ProgramShape { loops: false, corners: true, ..ProgramShape::default() };
        let mut random = Random::new(20_000_000 + seed);
        let mut program = fencewright_testing::program(&mut random, shape);
        fencewright_testing::contend(&mut random, &mut program, 2);
        compare(seed, &program, seed % 10 == 0, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.robust > 400 && seen.not_robust > 10 && seen.outside > 100, "{seen:?}");
}

/// The relation that brute force builds step by step equals the one computed from a finished execution.
#[test]
fn both_computations_of_happens_before_agree() {
    let mut cyclic = 0;
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let program = dense_program(&mut random);
        let reference = Reference::new(&program, MemoryModel::Tso);
        let first = oracle::initial_states(&reference, 1, &mut || false).expect("one").remove(0);
        let mut trace = fencewright_program::Trace {
            registers: first.registers.clone(),
            memory: first.memory.clone(),
            events: Vec::new(),
        };
        let (mut state, mut relation) = (first, Relation::new(&program));
        loop {
            // Mostly selects a step instead of a flush, if there is one, so that stores are delayed.
            let mut events = reference.candidates(&state, &[]);
            events.retain(|event| reference.step(&state, event).is_ok());
            let steps = events.iter().filter(|e| matches!(e.kind, EventKind::Step { .. })).count();
            if steps > 0 && !random.one_in(4) {
                events.retain(|e| matches!(e.kind, EventKind::Step { .. }));
            }
            if events.is_empty() {
                break;
            }
            let event = random.pick(&events).clone();
            relation.advance(&program, &reference, &mut state, &event);
            trace.events.push(event);
        }
        let replayed = trace.replay(&program, MemoryModel::Tso).expect("it was just performed");
        let found = HappensBefore::new(&program, &replayed).cycle();
        assert_eq!(found.is_some(), relation.cyclic, "program {seed}");
        cyclic += usize::from(relation.cyclic);
    }
    assert!(cyclic > 30, "{cyclic}");
}

// --- known programs ---------------------------------------------------------------------------------------------------------

#[test]
fn the_trencher_corpus_agrees_with_its_expected_answers() {
    let Some(corpora) = corpora("the_trencher_corpus_agrees_with_its_expected_answers") else { return };
    let folder = corpora.join("trencher");
    let expected = std::fs::read_to_string(folder.join("expected.csv")).expect("expected.csv");
    let mut programs = 0;
    for line in expected.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let path = folder.join(columns[0]);
        let bytes = std::fs::read(&path).expect("a program of the corpus");
        let loaded = fencewright_lang::load(columns[0], &bytes, None, &[]).expect("it loads").program;
        for (notion, answer) in [(Notion::HappensBefore, columns[1]), (Notion::Triangular, columns[3])] {
            for all in [false, true] {
                let found = ask(&loaded, notion, Search::Auto, all);
                assert_eq!(found.robust(), Ok(answer == "yes"), "{}: {}", columns[0], notion.name());
            }
        }
        programs += 1;
    }
    assert_eq!(programs, 18);
}

fn parse(text: &str) -> Program {
    fencewright_lang::load("test.fw", text.as_bytes(), None, &[]).expect("it loads").program
}

#[track_caller]
fn check(text: &str, robust: bool, race_free: bool) {
    let program = parse(text);
    for search in [Search::Explicit, Search::Cegar] {
        for (notion, expected) in [(Notion::HappensBefore, robust), (Notion::Triangular, race_free)] {
            let answer = ask(&program, notion, search, false);
            assert_eq!(answer.robust(), Ok(expected), "{} with {search:?}", notion.name());
            assert_eq!(answer.checked(), Some(true), "{} with {search:?}", notion.name());
        }
    }
}

#[test]
fn the_shapes_of_the_literature() {
    // Store buffering, with and without fences, and with a draining atomic step.
    check("shared x, y; thread p { var r; x = 1; r = y; } thread q { var r; y = 1; r = x; }", false, false);
    check(
        "shared x, y; thread p { var r; x = 1; fence; r = y; } thread q { var r; y = 1; fence; r = x; }",
        true,
        true,
    );
    check(
        "shared x, y; thread p { var r; swap(x, 1); r = y; } thread q { var r; swap(y, 1); r = x; }",
        true,
        true,
    );
    check(
        "shared x, y; thread p { var r; x = 1; r = y; } thread q { var r; swap(y, 1); r = x; }",
        false,
        false,
    );
    // A store fence does not help under TSO.
    check(
        "shared x, y; thread p { var r; x = 1; sfence; r = y; } thread q { var r; y = 1; sfence; r = x; }",
        false,
        false,
    );
    // Message passing, and a race without a cycle.
    check("shared x, y; thread p { x = 1; y = 1; } thread q { var r; r = y; r = x; }", true, true);
    check("shared x, y; thread p { var r; x = 1; r = y; } thread q { y = 1; }", true, false);
    // The cycle goes through three threads.
    check(
        "shared x, y, z; thread p { var r; x = 1; r = y; } thread q { y = 1; z = 1; } thread s { var r; r = z; fence; r = x; }",
        false,
        false,
    );
    // A thread reads its own delayed store early.
    check(
        "shared x, y; thread p { var r, s; x = 1; r = x; s = y; } thread q { var r, s; y = 1; r = y; s = x; }",
        false,
        false,
    );
}

#[test]
fn locks_are_respected() {
    // A section under the lock counts as one event. Otherwise there would be no cycle, although r = s = 0 is impossible under SC.
    check(
        "shared x, z; thread p { var r; lock; r = z; x = 1; unlock; } thread q { var s; z = 1; s = x; }",
        false,
        false,
    );
    // Other threads cannot observe the inside of a locked section.
    check(
        "shared x, y; thread p { var r; lock; x = 1; r = y; unlock; } thread q { var r; lock; y = 1; r = x; unlock; }",
        true,
        true,
    );
    // The attacker reads only while no other thread holds the lock, so it cannot see the first store and miss the second.
    check(
        "shared w, x, y, z; thread p { var r, s; z = 1; r = x; s = y; assume r == 1 && s == 0; r = w; } \
         thread q { lock; x = 1; y = 1; unlock; } thread s { var r; w = 1; fence; r = z; }",
        true,
        false,
    );
    // Sections whose last steps before `unlock` are register operations are handled like other sections.
    check(
        "shared x, y; thread p { var r; lock; r = 1; unlock; x = 1; r = y; } \
         thread q { var r; lock; r = x; assume r == 0; r = r + 1; unlock; y = 1; r = x; }",
        false,
        false,
    );
}

#[test]
fn computed_addresses_and_indivisible_steps() {
    check(
        "shared a[2]; thread p { var i, r; i = 0; a[i] = 1; r = a[1 - i]; } \
         thread q { var i, r; i = 1; a[i] = 1; r = a[1 - i]; }",
        false,
        false,
    );
    check(
        "shared a[2]; thread p { var i, r; a[i] = 1; r = a[i]; } thread q { var r; a[0] = 2; r = a[0]; }",
        true,
        true,
    );
    // All accesses of an atomic step happen after the load of the attacker if one of them does, including accesses that the step performs earlier.
    check(
        "shared x, y; thread p { var r; x = 1; r = y; } thread q { var r; atomic { r = x; y = 1; } }",
        false,
        false,
    );
    check("shared x, y; thread p { var r; x = 1; r = y; } thread q { var r; r = x; y = 1; }", true, false);
    // A snapshot loads several cells at once.
    check(
        "shared x, y, z; thread p { var r, s; x = 1; snapshot { r = x; s = y; } } thread q { var r; y = 1; fence; r = x; }",
        false,
        false,
    );
}

#[test]
fn a_fault_is_an_event() {
    // The snapshot faults, but it has loaded y.
    check(
        "shared x, y; thread p { var r; x = 1; snapshot { r = y; assert r == 1; } } thread q { var r; y = 1; fence; r = x; }",
        false,
        false,
    );
    // The load is out of range but has happened; a store that is out of range has not.
    check(
        "shared x, y = 2; thread p { var r: 0..2; x = 1; r = y; } thread q { var r; y = 1; fence; r = x; }",
        false,
        false,
    );
    check(
        "shared x, y: 0..2; thread p { var r; x = 1; r = y; } thread q { var r; y = 7; fence; r = x; }",
        true,
        true,
    );
}

#[test]
fn unbounded_integers() {
    let example = |name: &str| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        parse(&std::fs::read_to_string(path).expect("an example"))
    };
    for (name, robust) in [
        ("ticket-lock.fw", true),
        ("bakery.fw", false),
        ("bakery.fenced.fw", true),
        ("alternating-bit.fw", true),
    ] {
        let answer = ask(&example(name), Notion::HappensBefore, Search::Auto, false);
        assert_eq!(answer.robust(), Ok(robust), "{name}");
        assert_eq!(answer.checked(), Some(true), "{name}");
    }
    // Tickets grow without bound, and a store can be delayed past a load of another cell: only a symbolic proof terminates.
    let guarded = "\
shared next, serving, data, seen;
thread p[me in 0..2] {
    var ticket, r;
    loop {
        ticket = fetch_add(next, 1);
        await serving == ticket;
        data = ticket;
        r = data;
        seen = r;
        r = seen;
        serving = ticket + 1;
    }
}
";
    let answer = ask(&parse(guarded), Notion::HappensBefore, Search::Auto, false);
    assert_eq!(answer.robust(), Ok(true));
    assert!(!answer.attacks().is_empty());
    assert!(!answer.certificates().is_empty());
    assert_eq!(answer.checked(), Some(true));
}

#[test]
fn threads_that_are_alike_have_the_same_attacks() {
    let text = "shared x, y; thread p[me in 0..2] { var r; x = 1; r = y; } thread q { var r; y = 1; r = x; }";
    let every = ask(&parse(text), Notion::HappensBefore, Search::Explicit, true);
    assert_eq!(every.attacks().len(), 3);
    for attack in every.attacks() {
        assert_eq!(attack.verdict, Finding::Feasible);
        assert!(attack.witness.is_some());
    }
}

#[test]
fn negative_indices_over_the_naturals_are_not_robust() {
    for text in [
        "numbers nat; shared y, a[-1..1]; thread p { var i, r; a[i - 1] = 1; r = y; }
         thread q { var s; y = 1; fence; s = a[-1]; }",
        "numbers nat; shared x, a[-1..1]; thread p { var r; x = 1; r = a[-1]; }
         thread q { var s; lock; s = x; a[-1] = 1; unlock; }",
    ] {
        for search in [Search::Explicit, Search::Cegar] {
            let answer = ask(&parse(text), Notion::HappensBefore, search, false);
            assert!(
                matches!(answer.robust(), Err(Reason::Unsupported(_, Some(_)))),
                "{:?}: {text}",
                answer.robust()
            );
        }
        let integers = text.replace("numbers nat;", "");
        assert_eq!(
            ask(&parse(&integers), Notion::HappensBefore, Search::Explicit, false).robust(),
            Ok(false)
        );
    }
}

#[test]
fn a_large_program_ends_in_time() {
    let thread = |name: &str, stored: &str, loaded: &str| {
        let step = |n: usize| format!("{stored}[{}] = 1; r = {loaded}[{}]; ", n % 50, n % 49);
        let steps: String = (0..4_000).map(step).collect();
        format!("thread {name} {{ var r; {steps} }}\n")
    };
    let text = format!("shared a[50], b[50];\n{}{}", thread("p", "a", "b"), thread("q", "b", "a"));
    let start = std::time::Instant::now();
    let options = Options::default();
    let limits = Limits::default().within(Duration::from_millis(300));
    analyse(&parse(&text), &options, &limits, &Progress::default());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
