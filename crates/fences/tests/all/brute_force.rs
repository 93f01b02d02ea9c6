//! Optimality of fence synthesis: on small random programs, all subsets are tried on the reference semantics.

use std::collections::{BTreeSet, HashSet};

use fencewright_engines::auto::Auto;
use fencewright_engines::{Confirm, Limits, Progress};
use fencewright_executions::oracle::explore;
use fencewright_fences::candidate::candidates;
use fencewright_fences::fenced::{Fenced, same};
use fencewright_fences::{Bounded, Candidate, Options, Prices, Safety, Verdict, synthesise};
use fencewright_lang::places::{Place, Placed, Side};
use fencewright_memory::{Bound, CellBounds};
use fencewright_program::reference::holds;
use fencewright_program::{
    Action, Address, BinaryOp, Edge, EdgeId, Expr, Formula, Init, Location, LocationId, MemoryModel,
    Observable, Op, Program, Property, PropertyKind, Quantifier, Range, Reference, RegisterId, Span, State,
    Thread, ThreadId, VariableId,
};
use fencewright_testing::bounds::exceeds;
use fencewright_testing::{Random, Shape, program, programs_or};

/// The program with a place for a fence (an empty step) before every location that has outgoing edges. Where a formula mentions a location, `before`
/// decides whether this becomes the location before its place or the one after it.
fn placed(mut program: Program, mut before: impl FnMut() -> bool) -> Placed {
    let mut places = Vec::new();
    let mut moved: Vec<Vec<LocationId>> = Vec::new();
    for (t, thread) in program.threads.iter_mut().enumerate() {
        let (marked, mut numbers) = with_places(thread, ThreadId(t as u32), &mut places);
        for (n, number) in numbers.iter_mut().enumerate() {
            let place = marked.locations[2 * n].last_edge > marked.locations[2 * n].first_edge;
            number.0 -= u32::from(place && before());
        }
        *thread = marked;
        moved.push(numbers);
    }
    for property in &mut program.properties {
        if let PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) = &mut property.kind {
            *formula = formula.map(&mut |o| {
                Expr::Leaf(match o {
                    Observable::At(t, at) => {
                        Observable::At(*t, at.iter().map(|l| moved[t.index()][l.index()]).collect())
                    }
                    other => other.clone(),
                })
            });
        }
    }
    Placed { program, places, ..Placed::default() }
}

/// A thread with an empty step before every location with outgoing edges, and the new numbers of its locations.
fn with_places(thread: &Thread, id: ThreadId, places: &mut Vec<Place>) -> (Thread, Vec<LocationId>) {
    // Location n becomes 2n (before the step) and 2n + 1.
    let leaves = |n: usize| thread.locations[n].first_edge < thread.locations[n].last_edge;
    let into = |l: LocationId| LocationId(2 * l.0 + u32::from(!leaves(l.index())));
    let (mut locations, mut edges): (Vec<Location>, Vec<Edge>) = (Vec::new(), Vec::new());
    for (n, location) in thread.locations.iter().enumerate() {
        let (before, after) = (LocationId(2 * n as u32), LocationId(2 * n as u32 + 1));
        let first_edge = edges.len() as u32;
        if leaves(n) {
            let offset = 1_000 * id.0 + n as u32;
            let span = Span::default().point(offset);
            let here = vec![(id, EdgeId(first_edge))];
            places.push(Place {
                offset,
                side: Side::Before,
                statement: span,
                label: None,
                bare: false,
                uses: 0,
                edges: here,
            });
            edges.push(Edge { from: before, to: after, action: Action::Op(Op::Skip), span });
        }
        locations.push(Location { first_edge, last_edge: edges.len() as u32, ..Location::default() });
        let first_edge = edges.len() as u32;
        for (_, edge) in thread.edges_from(LocationId(n as u32)) {
            edges.push(Edge { from: after, to: into(edge.to), ..edge.clone() });
        }
        locations.push(Location { first_edge, last_edge: edges.len() as u32, ..location.clone() });
    }
    let marked =
        Thread { locations, edges, entry: into(thread.entry), fault: into(thread.fault), ..thread.clone() };
    (marked, (0..thread.locations.len()).map(|n| LocationId(2 * n as u32 + 1)).collect())
}

/// The states of a program (or the final ones only), each as a formula; `None` if there are too many.
fn outcomes(program: &Program, model: MemoryModel, all: bool) -> Option<HashSet<Formula>> {
    let reachable = explore(program, model, 3_000, &mut || false).ok()?;
    let reference = Reference::new(program, model);
    let mut found = HashSet::new();
    for state in reachable.states.iter().filter(|state| all || reference.is_final(state)) {
        let is = |o, v| Formula::binary(BinaryOp::Eq, Expr::Leaf(o), Expr::Const(v));
        let mut parts = Vec::new();
        if all {
            let at = |(t, l): (usize, &LocationId)| Expr::Leaf(Observable::At(ThreadId(t as u32), vec![*l]));
            parts.extend(state.locations.iter().enumerate().map(at));
        }
        for (t, registers) in state.registers.iter().enumerate() {
            for (r, v) in registers.iter().enumerate() {
                parts.push(is(Observable::Register(ThreadId(t as u32), RegisterId(r as u32)), *v));
            }
        }
        parts.extend(state.memory.iter().enumerate().map(|(c, v)| is(Observable::Memory(c as u32), *v)));
        found.insert(Formula::all(parts));
    }
    Some(found)
}

/// A random program whose threads mostly store and load, because most other programs need no fences. Some stores fault. Each store has a span of its
/// own, by which the candidate that replaces it is recognised.
fn accesses(random: &mut Random) -> Program {
    let mut program = program(random, Shape { threads: 2, length: 4, loops: false, ..Shape::default() });
    for variable in &mut program.variables {
        variable.range = random.one_in(3).then_some(Range { low: 0, high: 1 });
    }
    let variables = program.variables.len();
    for (t, thread) in program.threads.iter_mut().enumerate() {
        thread.registers.iter_mut().for_each(|r| (r.range, r.init) = (None, Init::Value(0)));
        let registers = thread.registers.len();
        for (e, edge) in thread.edges.iter_mut().enumerate() {
            let at = (100_000 + 1_000 * t + e) as u32;
            edge.span = Span::default().point(at);
            let variable = VariableId(random.below(variables) as u32);
            let scalar = program.variables[variable.index()].indices.is_none();
            let address = Address { variable, index: None };
            let other = !matches!(edge.action, Action::Op(Op::Assume(_)) | Action::Lock | Action::Unlock);
            if scalar && other && !random.one_in(8) {
                edge.action = Action::Op(match random.one_in(2) {
                    true => Op::Store(address, Expr::Const(1 + random.below(2) as i64)),
                    false => Op::Load(RegisterId(random.below(registers) as u32), address),
                });
            }
        }
    }
    program
}

/// Whether a set of fences suffices, by the reference semantics; `None` if there are too many states.
fn suffices(placed: &Placed, set: &[&Candidate], model: MemoryModel) -> Option<bool> {
    let program = Fenced::new(placed, set).program;
    let reachable = explore(&program, model, 3_000, &mut || false).ok()?;
    let mut holds = true;
    for property in &program.properties {
        holds &= reachable.satisfies(&program, model, property)?;
    }
    Some(holds)
}

#[test]
fn no_cheaper_set_suffices() {
    let (mut fixed, mut unfixable, mut safe, mut seed) = (0, 0, 0, 0);
    while fixed < 300 {
        seed += 1;
        let mut random = Random::new(9_000_000 + seed);
        let mut program = accesses(&mut random);
        let has =
            |t: &Thread, wanted: fn(&Op) -> bool| t.edges.iter().flat_map(|e| e.action.ops()).any(wanted);
        let store = |op: &Op| matches!(op, Op::Store(..));
        let load = |op: &Op| matches!(op, Op::Load(..));
        if !program.threads.iter().all(|t| has(t, store) && t.edges.len() > 2)
            || !program.threads.iter().any(|t| has(t, load))
        {
            continue;
        }
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        // Forbids states, or final states, that are reachable in this model but not under SC.
        let all_states = random.one_in(2);
        let of = |model| outcomes(&program, model, all_states);
        let (Some(under_sc), Some(weak)) = (of(MemoryModel::Sc), of(model)) else { continue };
        let new: Vec<&Formula> = weak.iter().filter(|f| !under_sc.contains(f)).collect();
        if new.is_empty() {
            continue;
        }
        let forbidden = (0..1 + random.below(2)).map(|_| (*random.pick(&new)).clone()).collect();
        let forbidden = Formula::any(forbidden);
        let kind = match all_states {
            true => PropertyKind::Never(forbidden),
            false => PropertyKind::Finally(Quantifier::Never, forbidden),
        };
        program.properties = vec![Property { name: "new".into(), kind, span: Span::default() }];
        let placed = placed(program, || false);
        let swap = random.one_in(2).then(|| 1 + random.below(3) as u64);
        let prices = Prices { full: 1 + random.below(3) as u64, store_store: 1, swap, in_loop: 0 };
        let all = candidates(&placed, model, prices);
        if all.len() > 16 || suffices(&placed, &[], model) != Some(false) {
            safe += 1;
            continue;
        }
        let engine = Auto::default();
        let goal = Safety { model, properties: Vec::new(), engine, confirm: Confirm::default() };
        let options = Options { prices, sets: 1, evidence: true };
        let found = synthesise(&placed, &goal, &options, &Limits::default(), &Progress::default());
        let full: Vec<&Candidate> = all.iter().collect();
        if found.verdict == Verdict::Unfixable {
            // More fences leave fewer executions, so if all fences together do not suffice, no subset does.
            assert_eq!(suffices(&placed, &full, model), Some(false), "seed {seed}, {model:?}");
            unfixable += 1;
            continue;
        }
        assert_eq!(found.verdict, Verdict::Fixed, "seed {seed}, {model:?}");
        let chosen: Vec<&Candidate> = found.fences.iter().map(|f| &f.fence).collect();
        assert_eq!(suffices(&placed, &chosen, model), Some(true), "seed {seed}, {model:?}");
        let subsets = (0u32..1 << all.len())
            .map(|bits| (0..all.len()).filter(|n| bits >> n & 1 == 1).map(|n| &all[n]).collect::<Vec<_>>());
        for set in subsets.filter(|set| set.iter().map(|c| c.price).sum::<u64>() < found.cost) {
            assert_ne!(suffices(&placed, &set, model), Some(true), "seed {seed}, {model:?}: {set:?}");
        }
        assert!(found.optimal, "seed {seed}");
        let needed = found.fences.iter().all(|f| f.needed_because.is_some());
        assert!(needed, "seed {seed}, {model:?}: a fence without evidence");
        fixed += 1;
    }
    println!("{seed} programs: {fixed} fixed, {unfixable} unfixable, {safe} safe or too large");
}

/// The parts of a state that a formula can mention: locations, registers and memory.
fn seen(state: &State) -> Vec<Formula> {
    let is = |o, v| Formula::binary(BinaryOp::Eq, Expr::Leaf(o), Expr::Const(v));
    let mut parts = Vec::new();
    for (t, registers) in state.registers.iter().enumerate() {
        for (r, v) in registers.iter().enumerate() {
            parts.push(is(Observable::Register(ThreadId(t as u32), RegisterId(r as u32)), *v));
        }
    }
    parts.extend(state.memory.iter().enumerate().map(|(c, v)| is(Observable::Memory(c as u32), *v)));
    parts
}

/// A formula about data and labels that holds in no reachable state: the description of a reachable state, with a thread moved to other locations.
fn elsewhere(random: &mut Random, program: &Program, states: &[State]) -> Option<Formula> {
    if states.is_empty() {
        return None;
    }
    (0..40).find_map(|_| {
        let state = random.pick(states).clone();
        let mut parts = seen(&state);
        parts.retain(|_| !random.one_in(3));
        for (t, thread) in program.threads.iter().enumerate() {
            let mut at = vec![state.locations[t]];
            if random.one_in(2) {
                at.push(LocationId(random.below(thread.locations.len()) as u32));
                at.sort_unstable();
                at.dedup();
            }
            let label = Expr::Leaf(Observable::At(ThreadId(t as u32), at));
            match random.below(5) {
                0 | 1 => parts.push(label.not()),
                2 => parts.push(label),
                _ => {}
            }
        }
        let formula = match random.one_in(4) {
            // A formula may also use the truth value of a label as a number.
            true => Formula::binary(BinaryOp::Gt, Formula::all(parts), Expr::Const(0)),
            false => Formula::all(parts),
        };
        let none = states.iter().all(|s| holds(s, &formula) == Some(false));
        none.then_some(formula)
    })
}

/// Compares with all subsets where more fences may be worse: properties mention labels on either side of a place, or are existential.
#[test]
fn fences_that_do_harm_are_avoided() {
    let (mut fixed, mut unfixable, mut safe, mut harmful, mut seed) = (0, 0, 0, 0, 0);
    let (wanted, most) = match std::env::var_os("FENCEWRIGHT_LONG_TESTS") {
        Some(_) => (10_000, 11),
        None => (250, 9),
    };
    while fixed + unfixable < wanted {
        seed += 1;
        let mut random = Random::new(5_000_000 + seed);
        let mut program = accesses(&mut random);
        if random.one_in(3) {
            // Makes a loop: the last edge of a thread leads back to its entry.
            let thread = random.below(program.threads.len());
            let code = &mut program.threads[thread];
            let entry = code.entry;
            if let Some(edge) = code.edges.last_mut() {
                edge.to = entry;
            }
        }
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let Ok(weak) = explore(&program, model, 1_000, &mut || false) else { continue };
        let (Some(under_sc), Some(all)) =
            (outcomes(&program, MemoryModel::Sc, true), outcomes(&program, model, true))
        else {
            continue;
        };
        let reference = Reference::new(&program, model);
        let mut states: Vec<State> = weak.states.into_iter().collect();
        states.sort_by_cached_key(|state| format!("{state:?}"));
        let finals: Vec<State> = states.iter().filter(|s| reference.is_final(s)).cloned().collect();
        let mut new: Vec<&Formula> = all.iter().filter(|f| !under_sc.contains(f)).collect();
        new.sort_by_cached_key(|formula| format!("{formula:?}"));
        let mut kinds = Vec::new();
        if !new.is_empty() {
            kinds.push(PropertyKind::Never((*random.pick(&new)).clone()));
        }
        for _ in 0..random.below(3) {
            kinds.extend(elsewhere(&mut random, &program, &states).map(PropertyKind::Never));
        }
        if random.one_in(3) {
            let forall = |f: Formula| PropertyKind::Finally(Quantifier::Forall, f.not());
            kinds.extend(elsewhere(&mut random, &program, &finals).map(forall));
        }
        if random.one_in(2) && !finals.is_empty() {
            let state = random.pick(&finals).clone();
            let mut parts = seen(&state);
            parts.retain(|_| !random.one_in(3));
            if random.one_in(3) {
                let thread = ThreadId(random.below(program.threads.len()) as u32);
                let label = Expr::Leaf(Observable::At(thread, vec![state.locations[thread.index()]]));
                parts.push(if random.one_in(3) { label.not() } else { label });
            }
            kinds.push(PropertyKind::Finally(Quantifier::Exists, Formula::all(parts)));
        }
        let property = |(n, kind): (usize, PropertyKind)| Property {
            name: format!("p{n}"),
            kind,
            span: Span::default(),
        };
        program.properties = kinds.into_iter().enumerate().map(property).collect();
        let placed = placed(program, || random.one_in(4));
        let swap = random.one_in(2).then(|| 1 + random.below(2) as u64);
        let prices = Prices { full: 1 + random.below(3) as u64, store_store: 1, swap, in_loop: 0 };
        let candidates = candidates(&placed, model, prices);
        if placed.program.properties.is_empty() || candidates.len() > most {
            continue;
        }
        let subsets = (0u32..1 << candidates.len())
            .map(|bits| (0..candidates.len()).filter(|n| bits >> n & 1 == 1).collect::<Vec<usize>>());
        let price = |set: &Vec<usize>| set.iter().map(|&n| candidates[n].price).sum::<u64>();
        let enough = |set: &Vec<usize>| {
            let chosen: Vec<&Candidate> = set.iter().map(|&n| &candidates[n]).collect();
            suffices(&placed, &chosen, model)
        };
        if enough(&Vec::new()) != Some(false) {
            safe += 1;
            continue;
        }
        let Some(known) = subsets.map(|set| enough(&set).map(|e| (set, e))).collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        let sufficient: Vec<Vec<usize>> =
            known.iter().filter(|(_, e)| *e).map(|(set, _)| set.clone()).collect();
        let cheapest = sufficient.iter().map(price).min();
        let goal =
            Safety { model, properties: Vec::new(), engine: Auto::default(), confirm: Confirm::default() };
        let options = Options { prices, sets: 1_000, evidence: true };
        let found = synthesise(&placed, &goal, &options, &Limits::default(), &Progress::default());
        let about = format!("seed {seed}, {model:?}: {:?}", found.verdict);
        assert!(found.optimal, "{about}");
        let Some(cheapest) = cheapest else {
            assert_eq!(found.verdict, Verdict::Unfixable, "{about}");
            let why = found.unfixable.expect("a reason");
            assert!(!why.properties.is_empty(), "{about}");
            // The properties that the answer names must be unsatisfiable by themselves.
            let mut fewer = placed.clone();
            fewer.program.properties.retain(|p| why.properties.contains(&p.name));
            for (set, _) in &known {
                let chosen: Vec<&Candidate> = set.iter().map(|&n| &candidates[n]).collect();
                assert_ne!(suffices(&fewer, &chosen, model), Some(true), "{about}: {:?}", why.properties);
            }
            if let Some(because) = why.because {
                let plain = Fenced::new(&placed, &[]).program;
                assert!(same(&because.program, &plain), "{about}: not the program as it is written");
            }
            unfixable += 1;
            continue;
        };
        assert_eq!((&found.verdict, found.cost), (&Verdict::Fixed, cheapest), "{about}");
        let sets = found.sets.iter().map(|set| {
            let number = |c: &Candidate| {
                let here = |d: &Candidate| (d.kind, &d.place) == (c.kind, &c.place);
                candidates.iter().position(here).expect("a candidate")
            };
            let mut set: Vec<usize> = set.iter().map(number).collect();
            set.sort_unstable();
            set
        });
        let sets: BTreeSet<Vec<usize>> = sets.collect();
        let expected: BTreeSet<Vec<usize>> =
            sufficient.iter().filter(|s| price(s) == cheapest).cloned().collect();
        assert_eq!(sets, expected, "{about}");
        assert!(found.sets_complete, "{about}");
        // Counts the cases in which a superset of a sufficient set does not suffice.
        let within = |few: &Vec<usize>, many: &Vec<usize>| few.iter().all(|n| many.contains(n));
        harmful += usize::from(known.iter().any(|(set, e)| !e && sufficient.iter().any(|s| within(s, set))));
        fixed += 1;
    }
    println!(
        "{seed} programs: {fixed} fixed ({harmful} where fences do harm), {unfixable} unfixable, {safe} safe"
    );
    assert!(
        harmful > 20 && unfixable > 50 && fixed > 50,
        "{fixed} fixed, {unfixable} unfixable, {harmful} harmful"
    );
}

/// Whether a set suffices and keeps every buffer within the bound, by the reference semantics; `None` if there are too many states.
fn keeps(placed: &Placed, set: &[&Candidate], model: MemoryModel, bound: Bound) -> Option<bool> {
    let program = Fenced::new(placed, set).program;
    let reachable = explore(&program, model, 3_000, &mut || false).ok()?;
    let within = !reachable.states.iter().any(|state| exceeds(state, bound));
    Some(within && suffices(placed, set, model)?)
}

/// With a bound on buffers: the set keeps buffers within the bound, no cheaper set does, and without each of its fences there is an overflow or a
/// violation.
#[test]
fn buffers_are_kept_within_a_bound() {
    let (mut fixed, mut unfixable, mut safe, mut overflows, mut seed) = (0, 0, 0, 0, 0);
    while fixed < programs_or(40) {
        seed += 1;
        let mut random = Random::new(11_000_000 + seed);
        let mut program = accesses(&mut random);
        if random.one_in(3) {
            // Makes a loop: the last edge of the thread leads back to its entry.
            let entry = program.threads[0].entry;
            program.threads[0].edges.last_mut().into_iter().for_each(|edge| edge.to = entry);
        }
        // Keeps only properties that hold under SC, because fences cannot help with others.
        let Ok(under_sc) = explore(&program, MemoryModel::Sc, 1_000, &mut || false) else { continue };
        let properties = std::mem::take(&mut program.properties);
        let hold = |p: &Property| under_sc.satisfies(&program, MemoryModel::Sc, p) == Some(true);
        program.properties = properties.into_iter().filter(hold).filter(|_| random.one_in(3)).collect();
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let bound = match model == MemoryModel::Pso && random.one_in(2) {
            true => Bound::Cell(CellBounds::new(&[1]).expect("one bound")),
            false => Bound::Thread(1 + random.below(2) as u32),
        };
        let placed = placed(program, || false);
        let swap = random.one_in(2).then(|| 1 + random.below(3) as u64);
        let prices = Prices { full: 1 + random.below(3) as u64, store_store: 1, swap, in_loop: 0 };
        let all = candidates(&placed, model, prices);
        if all.len() > 9 || keeps(&placed, &[], model, bound) != Some(false) {
            safe += 1;
            continue;
        }
        let engine = Auto::default();
        let safety = Safety { model, properties: Vec::new(), engine, confirm: Confirm::default() };
        let goal = Bounded { goal: Box::new(safety), bound };
        let options = Options { prices, sets: 1, evidence: true };
        let found = synthesise(&placed, &goal, &options, &Limits::default(), &Progress::default());
        let about = format!("seed {seed}, {model:?}, {bound:?}");
        let subsets = (0u32..1 << all.len())
            .map(|bits| (0..all.len()).filter(|n| bits >> n & 1 == 1).map(|n| &all[n]).collect::<Vec<_>>());
        if found.verdict == Verdict::Unfixable {
            for set in subsets {
                assert_ne!(keeps(&placed, &set, model, bound), Some(true), "{about}: {set:?}");
            }
            unfixable += 1;
            continue;
        }
        assert_eq!(found.verdict, Verdict::Fixed, "{about}");
        assert!(found.optimal && found.proof.bound_checked, "{about}: {:?}", found.proof);
        let chosen: Vec<&Candidate> = found.fences.iter().map(|f| &f.fence).collect();
        assert_eq!(keeps(&placed, &chosen, model, bound), Some(true), "{about}");
        for set in subsets.filter(|set| set.iter().map(|c| c.price).sum::<u64>() < found.cost) {
            assert_ne!(keeps(&placed, &set, model, bound), Some(true), "{about}: {set:?}");
        }
        for fence in &found.fences {
            let because = fence.needed_because.as_ref().unwrap_or_else(|| panic!("{about}: no evidence"));
            let last = because.replayed.last();
            assert_eq!(because.overfull.is_some(), because.property.is_none(), "{about}");
            assert!(because.property.is_some() || exceeds(last, bound), "{about}: no overflow");
            overflows += usize::from(because.overfull.is_some());
        }
        fixed += 1;
    }
    println!(
        "{seed} programs: {fixed} fixed, {unfixable} unfixable, {safe} safe or too large; {overflows} overflows"
    );
    assert!(overflows > fixed / 2, "only {overflows} fences are there because of an overflow");
}
