//! Attacks: robustness against TSO as reachability under SC (THESIS16 s.3.1.2, Fig. 3.4).
//!
//! A program is not robust if and only if a single thread, the *attacker*, can produce a violation by delaying stores while all other threads run
//! under SC. The attacker delays a store, and all its later ones, until it has performed a load from memory that comes later in program order. Then
//! it does not move any more. Everything that the other threads do and that happens after the load is in the *cone* of the load. The attack succeeds
//! if an access in the cone is to the cell of the delayed store. When that store finally reaches memory, it happens after the load, although the load
//! follows it in program order: this is a happens-before cycle. A pair of such a store and such a load is an [`Attack`].
//!
//! [`instrument`] turns a program into another one whose executions under SC represent these executions. For each attack, the attacker has a location
//! that it reaches when the attack succeeds, and a property states that this location is never reached. So engines without any notion of robustness
//! decide robustness, concretely or symbolically, and a certificate for the instrumented program is a certificate of robustness. For that reason this
//! module is part of the trusted base.
//!
//! Auxiliary variables, with the same indices as the variable that they belong to:
//!
//! | variable | meaning |
//! |---|---|
//! | `attacked` | an attack has begun |
//! | `closed` | threads outside the cone do not move: from a delayed store to the next load from memory (they could have moved earlier), and after the attacking load |
//! | `touched:x`, `stored:x` | the cone has accessed `x`; the cone has stored to `x` |
//! | `delayed:x`, `newest:x` | the attacker has a delayed store to `x`; the value of the newest such store |
//!
//! The control-flow graph of a thread exists in several copies: outside the cone; in the cone; in a locked section that has to join the cone; and,
//! for each attacking store, delaying. A thread enters the cone with a store to a cell that the cone has accessed, or a load of a cell that the cone
//! has stored to. An atomic step enters as a whole, with all its accesses. A locked section, too, is a single event of the happens-before relation.
//! So a thread that takes the lock first guesses a cell through which the section will conflict with the accesses that the cone has before the
//! section, and cannot unlock until it has made such a conflicting access. The attacker cannot pass a fence, a lock or a draining step while it
//! delays. While another thread holds the lock, the attacker's loads wait, and so does its final flush.
//!
//! A triangular race (S. Owens, *Reasoning about the implementation of concurrency abstractions on x86-TSO*, ECOOP 2010) is the beginning of such an
//! attack: it is complete with the first write of another thread to a loaded cell.

mod accesses;
mod attacker;
mod auxiliary;
mod helper;
mod instrumenter;

use std::collections::BTreeMap;
use std::ops::Range;

use fencewright_program::{
    EdgeId, Expr, Formula, Numbers, Observable, Program, Property, PropertyKind, Span, ThreadId, Variable,
};

use accesses::Delay;
pub use accesses::{MOST_ATTACKS, candidates};

/// The notion of robustness that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Notion {
    /// Robustness: every execution has the happens-before relation of an execution under SC.
    #[default]
    HappensBefore,
    /// No triangular race. A triangular race is a load from memory while an earlier store of the same thread is delayed, followed by another thread's
    /// write to the loaded cell. The absence of such races is stronger than robustness and implies it.
    Triangular,
}

impl Notion {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Notion::HappensBefore => "happens-before",
            Notion::Triangular => "triangular",
        }
    }
}

/// A candidate violation of robustness: a store that is delayed past a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attack {
    /// The attacker, that is, the thread that delays the store.
    pub thread: ThreadId,
    /// The attacker's store that is delayed.
    pub store: EdgeId,
    /// The attacker's load that the store is delayed past: an edge with a load, or a snapshot with loads.
    pub load: EdgeId,
}

/// The edge of the original program that an edge of an instrumented program was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This edge, not taken while the attacker delays. If it stores, the store reaches memory immediately.
    Edge(EdgeId),
    /// This edge, taken by the attacker while it delays its stores.
    Delaying(EdgeId),
    /// No edge: an edge that only reads and writes auxiliary variables and registers.
    Nothing,
}

/// A program instrumented with attacks.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The program, to be run under SC. Its n-th property is violated if and only if the n-th attack succeeds; the last property, [`ROBUST`], if and
    /// only if any attack does. The variables, registers and threads of the original program come first.
    pub program: Program,
    /// The attacks, in the order of their properties.
    pub attacks: Vec<Attack>,
    /// For each thread, the origins of its edges.
    pub origins: Vec<Vec<Origin>>,
}

/// For each attacking store, the facts about the attacker while it delays this store.
type Delays = BTreeMap<(ThreadId, EdgeId), Delay>;

/// Facts about the attacks of a program.
#[derive(Clone, Copy)]
struct Known<'a> {
    /// The index of each attack in the list of attacks.
    numbers: &'a BTreeMap<Attack, usize>,
    /// For each attacking store, the facts about the attacker while it delays.
    delays: &'a Delays,
    /// Polled; returns whether to stop.
    stop: &'a dyn Fn() -> bool,
}

/// A construct that cannot be instrumented: its description, and its position in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String, pub Span);

/// Reports a construct that makes instrumentation impossible: negative indices over the naturals, since instrumentation keeps indices in registers.
pub fn unsupported(program: &Program) -> Option<Unsupported> {
    let negative = |v: &&Variable| v.indices.is_some_and(|range| range.low < 0);
    let found = program.variables.iter().find(negative).filter(|_| program.numbers == Numbers::Nat)?;
    Some(Unsupported("robustness with negative indices over the naturals".into(), found.span))
}

/// Approximate maximum number of edges of an instrumented program, which has a copy of the attacker for each attacking store.
pub const MOST_EDGES: usize = 5_000;

/// Groups of at most `most` attacks to examine together, as ranges: one group, unless the instrumented program would become too large.
pub fn batches(program: &Program, attacks: &[Attack], most: usize) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut edges = 0;
    for (n, attack) in attacks.iter().enumerate() {
        let is_new = n == 0 || (attacks[n - 1].thread, attacks[n - 1].store) != (attack.thread, attack.store);
        edges += if is_new { program.thread(attack.thread).edges.len() } else { 0 };
        match batches.last_mut() {
            Some(batch) if batch.len() < most && edges <= MOST_EDGES => batch.end = n + 1,
            _ => {
                batches.push(n..n + 1);
                edges = program.thread(attack.thread).edges.len();
            }
        }
    }
    batches
}

/// Instruments a program with some attacks; `None` if `stop` returned true.
pub fn instrument(
    program: &Program,
    notion: Notion,
    attacks: &[Attack],
    stop: &dyn Fn() -> bool,
) -> Result<Option<Instrumented>, Unsupported> {
    let mut loads: BTreeMap<(ThreadId, EdgeId), Vec<EdgeId>> = BTreeMap::new();
    for attack in attacks {
        loads.entry((attack.thread, attack.store)).or_default().push(attack.load);
    }
    let mut delays = Delays::new();
    for ((t, store), loads) in loads {
        if stop() {
            return Ok(None);
        }
        delays.insert((t, store), Delay::new(program, program.thread(t), store, &loads));
    }
    let numbers = attacks.iter().enumerate().map(|(n, attack)| (*attack, n)).collect();
    let mut auxiliary = auxiliary::Auxiliary::new(program, notion, delays.values());
    let mut threads = Vec::new();
    let mut origins = Vec::new();
    let mut successes = vec![None; attacks.len()];
    for (id, _) in program.threads() {
        let mut instrumenter = instrumenter::Instrumenter::new(
            program,
            notion,
            id,
            Known { numbers: &numbers, delays: &delays, stop },
            &auxiliary,
        );
        if !instrumenter.build()? {
            return Ok(None);
        }
        let (built, succeeded) = instrumenter.finish();
        for (attack, location) in succeeded {
            successes[attack] = Some(location);
        }
        threads.push(built.thread);
        origins.push(built.origins);
    }
    let mut properties: Vec<Property> = attacks
        .iter()
        .zip(successes)
        .enumerate()
        .map(|(n, (attack, success))| {
            let formula: Formula = match success {
                Some(location) => Expr::Leaf(Observable::At(attack.thread, vec![location])),
                None => Expr::Const(0),
            };
            let span = program.thread(attack.thread).edge(attack.store).span;
            Property { name: format!("attack{n}"), kind: PropertyKind::Never(formula), span }
        })
        .collect();
    properties.push(any(program, &properties));
    let mut variables = program.variables.clone();
    variables.append(&mut auxiliary.variables);
    // Without real choices all values of the program are integers. Then the instrumented program uses integers too, because the indices that it
    // guesses for locked sections have to be integers.
    let whole = program.numbers == Numbers::Real && !program.has_real_choices();
    let program = Program {
        numbers: if whole { Numbers::Int } else { program.numbers },
        variables,
        threads,
        properties,
        hints: fencewright_program::Hints::default(),
        calls: program.calls.clone(),
        texts: program.texts.clone(),
    };
    Ok(Some(Instrumented { program, attacks: attacks.to_vec(), origins }))
}

/// The name of the property that no attack succeeds.
pub const ROBUST: &str = "robust";

fn any(program: &Program, properties: &[Property]) -> Property {
    let success = |thread: ThreadId| {
        let mut all = Vec::new();
        for formula in properties.iter().filter_map(Property::formula) {
            formula.for_each_leaf(&mut |leaf| match leaf {
                Observable::At(t, locations) if *t == thread => all.extend_from_slice(locations),
                _ => {}
            });
        }
        all.sort_unstable();
        (!all.is_empty()).then_some(Expr::Leaf(Observable::At(thread, all)))
    };
    let formula = Expr::any(program.threads().filter_map(|(t, _)| success(t)).collect());
    Property { name: ROBUST.into(), kind: PropertyKind::Never(formula), span: Span::default() }
}
