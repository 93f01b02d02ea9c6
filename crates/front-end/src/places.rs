//! The places of a program where a fence can be inserted.
//!
//! A place is a point of the source: before a statement and its labels, between its labels and the statement, or after the last statement of a block.
//! To determine the effect of a fence at each place exactly, an empty step is inserted into the syntax tree at every place, and the tree is lowered
//! again. A fence at a place then replaces the actions of the edges of this empty step, in every thread that shares the text.
//!
//! Before a statement that takes no step of its own (`l: stop;`, the `break` of `loop { break; }`), the program without places already has an empty
//! step. A fence there replaces this step; so the step counts as a place, but is kept if the place is unused. In `l: { stop; }` there are two places
//! whose fence could replace the one empty step.
//!
//! If the tree was translated from another language, its statements are finer than those of the source text, and some correspond to no text at all.
//! Then [`StatementKind::Steps`] groups the steps of one source statement, and [`Sites`] has the source statements beside which a fence can be
//! inserted.
//!
//! There are no places inside an atomic block, because it is a single step. There is also no place before the first statement of an alternative of
//! `choose`, because a step there would commit the thread to the alternative even if the alternative is not enabled.

mod marks;
mod routines;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fencewright_fw::ast::{File, Item, Procedure, StatementKind};
use fencewright_fw::lower::{self, Defines};
use fencewright_fw::visit::{for_each_call, for_each_statement};
use fencewright_program::{
    Action, Edge, EdgeId, FileId, LocationId, Observable, Op, Program, Property, Span, Thread, ThreadId,
};
use fencewright_text::{Diagnostic, Stop};

use self::marks::{Marks, Start, mentioned};
use crate::loaded::Loaded;

pub use self::routines::{Routine, closed, routine_at};

/// The file id of the spans that mark empty steps; the start of such a span is the index of the place. No program has this many files.
const EMPTY_STEPS: FileId = FileId(u32::MAX);

/// The index of the place that a span marks; `None` for other spans.
fn place_of(span: Span) -> Option<usize> {
    (span.file == EMPTY_STEPS).then_some(span.start as usize)
}

/// A place for a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The offset of the place in the file of `statement`.
    pub offset: u32,
    /// The side of `statement` that the place is on.
    pub side: Side,
    /// The statement beside the place, without its labels.
    pub statement: Span,
    /// The first label of the statement, if it has labels.
    pub label: Option<Span>,
    /// Whether `statement` is, without braces, the body of another statement.
    pub bare: bool,
    /// If the place is inside the definition of a macro, the number of uses of the macro; otherwise 0.
    pub uses: u32,
    /// The edges of the place's empty step, in all threads that share the text.
    pub edges: Vec<(ThreadId, EdgeId)>,
}

impl Place {
    /// The position in the text, as an empty span.
    pub fn point(&self) -> Span {
        self.statement.point(self.offset)
    }
}

/// The side of a statement that a place is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before the statement and its labels.
    Before,
    /// Between the labels and the statement.
    Labelled,
    /// After the last statement of a block.
    After,
}

/// The source statements beside which a fence can be inserted. Only for imported languages: the statements of their generated syntax tree are finer
/// than those of the source text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sites {
    statements: HashMap<Span, Site>,
    /// The functions of the text.
    pub routines: Vec<Routine>,
}

/// The sides of a statement on which a fence can be inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Whether a fence can be inserted before the statement.
    pub before: bool,
    /// Whether a fence can be inserted after the statement.
    pub after: bool,
    /// Whether the statement is, without braces, the body of another statement.
    pub bare: bool,
    /// If the statement is inside the definition of a macro, the number of uses of the macro; otherwise 0.
    pub uses: u32,
}

impl Sites {
    /// No sites yet, in a text with these functions.
    pub fn of(routines: Vec<Routine>) -> Sites {
        Sites { routines, ..Sites::default() }
    }

    /// Adds a statement that is not in the definition of a macro. If a statement with the same span (apart from the call) was added before, no fence
    /// can be inserted beside either of them.
    pub fn insert(&mut self, statement: Span, site: Site) {
        let known = self.statements.entry(statement.text());
        known.and_modify(|known| *known = Site::default()).or_insert(site);
    }

    /// Adds a statement from the definition of a macro; called for each use of the macro. A fence can be inserted only where all uses allow it.
    pub fn insert_in_macro(&mut self, statement: Span, site: Site) {
        let known = self.statements.entry(statement.text());
        let both = |known: &mut Site| {
            let uses = known.uses + site.uses;
            let (before, after) = (known.before && site.before, known.after && site.after);
            *known = Site { before, after, bare: known.bare || site.bare, uses };
        };
        known.and_modify(both).or_insert(site);
    }

    /// The sides of a statement on which a fence can be inserted.
    pub fn beside(&self, statement: Span) -> Site {
        self.statements.get(&statement.text()).copied().unwrap_or_default()
    }
}

/// A program with an empty step at every place.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// The program including the empty steps.
    pub program: Program,
    /// The places that some thread can reach, in the order of the text.
    pub places: Vec<Place>,
    /// The inserted empty steps that stand for an empty step of the source itself. Such a step is kept unless a fence is inserted at its place or at
    /// one of the preceding places whose empty steps are listed, because a fence at any of these places replaces the step of the source.
    pub steps: BTreeMap<(ThreadId, EdgeId), Vec<EdgeId>>,
    /// The texts of procedures that are called inside atomic blocks, where no fence can be inserted.
    pub indivisible: Vec<Span>,
    /// The stores for which no locked instruction can be substituted.
    pub fixed: HashSet<Span>,
    /// The stores in definitions of macros, with the number of uses of each macro.
    pub in_macros: HashMap<Span, u32>,
    /// The functions of the text; none if the language has none that are inlined.
    pub routines: Vec<Routine>,
    /// The files that no edit may change.
    pub closed: BTreeSet<FileId>,
}

/// Lowers a loaded file again, with an empty step at every place.
pub fn places(loaded: &Loaded, defines: &Defines) -> Result<Placed, Vec<Diagnostic>> {
    let (mut program, mut marks) = marked(loaded, defines, HashSet::new())?;
    // If two labels name the same location, an empty step between the labels would give them different locations. This is the only effect of the
    // empty step of an unreachable place. So if a property mentions labels, the program is lowered again without the unreachable places.
    let reached: HashSet<usize> = program
        .threads
        .iter()
        .flat_map(|thread| &thread.edges)
        .filter_map(|edge| place_of(edge.span))
        .collect();
    if looks_at_labels(&loaded.program) && reached.len() < marks.places.len() {
        let left_out = (0..marks.places.len()).filter(|n| !reached.contains(n)).collect();
        (program, marks) = marked(loaded, defines, left_out)?;
    }
    let Marks { mut places, opens, .. } = marks;
    let mut steps = BTreeMap::new();
    for ((t, source), marked) in loaded.program.threads().zip(&program.threads) {
        let place = |edge: &Edge| {
            let n = place_of(edge.span)?;
            places.get(n).zip(opens.get(n).copied())
        };
        let own = own_steps(source, marked, &place);
        steps.extend(own.into_iter().map(|(edge, before)| ((t, edge), before)));
    }
    for (t, thread) in program.threads.iter_mut().enumerate() {
        for (e, edge) in thread.edges.iter_mut().enumerate() {
            if let Some(place) = place_of(edge.span).and_then(|n| places.get_mut(n)) {
                edge.span = place.point().called(edge.span.call);
                place.edges.push((ThreadId(t as u32), EdgeId(e as u32)));
            }
        }
        for location in &mut thread.locations {
            location.span = location.span.filter(|span| place_of(*span).is_none());
        }
    }
    places.retain(|place| !place.edges.is_empty());
    let mut places = one_for_each_text(places, loaded.front_end.copies_texts());
    places.sort_by_key(Place::point);
    let indivisible = procedures_in_blocks(&loaded.file).iter().map(|procedure| procedure.span).collect();
    let stores = program.threads.iter().flat_map(|thread| &thread.edges);
    let stores = stores.filter(|edge| matches!(edge.action, Action::Op(Op::Store(..))));
    let fixed = stores.map(|edge| edge.span.text()).filter(|span| {
        let (sources, front_end) = (&loaded.sources, loaded.front_end);
        sources.is_built_in(span.file) || !front_end.can_lock(sources.text(*span))
    });
    let fixed = fixed.collect();
    let uses = |span: Span| loaded.sites.as_ref().map_or(0, |sites| sites.beside(span).uses);
    let stores = program.threads.iter().flat_map(|thread| &thread.edges);
    let stores = stores.filter(|edge| matches!(edge.action, Action::Op(Op::Store(..))));
    let in_macros = stores.map(|edge| (edge.span.text(), uses(edge.span))).filter(|(_, uses)| *uses > 0);
    let in_macros = in_macros.collect();
    let routines = loaded.sites.as_ref().map(|sites| sites.routines.clone()).unwrap_or_default();
    let closed = closed(&loaded.sources, &loaded.options.c.also, &loaded.options.c.allowed);
    Ok(Placed { program, places, steps, indivisible, fixed, in_macros, routines, closed })
}

/// Lowers the program with an empty step at every place except those in `left_out`.
fn marked<'l>(
    loaded: &'l Loaded,
    defines: &Defines,
    left_out: HashSet<usize>,
) -> Result<(Program, Marks<'l>), Vec<Diagnostic>> {
    let mut file = loaded.file.clone();
    let mentioned = mentioned(&loaded.program);
    let indivisible = procedures_in_blocks(&loaded.file);
    let prefix = String::new();
    let mut marks = Marks {
        places: Vec::new(),
        opens: Vec::new(),
        left_out,
        mentioned,
        prefix,
        sites: loaded.sites.as_ref(),
        around: Vec::new(),
    };
    for item in &mut file.items {
        match item {
            Item::Thread(thread) => marks.block(&mut thread.body, Start::Free, true),
            Item::Procedure(procedure) if !indivisible.iter().any(|p| p.span == procedure.span) => {
                marks.prefix = format!("{}.", procedure.name.text);
                marks.block(&mut procedure.body, Start::Free, true);
                marks.prefix.clear();
            }
            _ => {}
        }
    }
    let mut program =
        lower::lower_unless(&Stop::never(), &file, &loaded.calls, defines, loaded.options.awaits)?;
    loaded.front_end.finish(&mut program, &loaded.facts, &loaded.options, &Stop::never())?;
    Ok((program, marks))
}

/// The procedures that an atomic block calls, directly or through other procedures: no fence can be inserted in them.
fn procedures_in_blocks(file: &File) -> Vec<&Procedure> {
    let procedures: HashMap<&str, &Procedure> = file
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Procedure(procedure) => Some((procedure.name.text.as_str(), procedure)),
            _ => None,
        })
        .collect();
    let threads = file.items.iter().filter_map(|item| match item {
        Item::Thread(thread) => Some(&thread.body),
        _ => None,
    });
    let mut open = Vec::new();
    for body in threads.chain(procedures.values().map(|procedure| &procedure.body)) {
        for_each_statement(body, &mut |kind| {
            if let StatementKind::Atomic(inner) | StatementKind::Snapshot(inner) = kind {
                for_each_call(inner, &mut |name| open.push(name));
            }
        });
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let (Some(procedure), true) = (procedures.get(name), found.insert(name)) {
            for_each_call(&procedure.body, &mut |inner| open.push(inner));
        }
    }
    found.into_iter().filter_map(|name| procedures.get(name).copied()).collect()
}

/// Whether some property mentions a label.
fn looks_at_labels(program: &Program) -> bool {
    let mut found = false;
    for formula in program.properties.iter().filter_map(Property::formula) {
        formula.for_each_leaf(&mut |observable| found |= matches!(observable, Observable::At(..)));
    }
    found
}

/// A place on the current path: the edge of its empty step, the target of that edge, and whether a block or a `for` follows the place.
#[derive(Clone, Copy)]
struct Passed<'p> {
    edge: EdgeId,
    to: LocationId,
    place: &'p Place,
    opens: bool,
}

/// The empty steps inserted into a thread that stand for an empty step of the source itself, each with the empty steps of the preceding places at
/// which a fence would replace the same source step. Walks the thread without places and the thread with places in parallel. Where the former has an
/// empty step and the latter has only places, the step is identified with the last place before the same statement.
fn own_steps<'p>(
    source: &Thread,
    marked: &Thread,
    place: &dyn Fn(&Edge) -> Option<(&'p Place, bool)>,
) -> Vec<(EdgeId, Vec<EdgeId>)> {
    let mut steps = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![(marked.entry, source.entry)];
    while let Some((start, there)) = open.pop() {
        if !seen.insert((start, there)) {
            continue;
        }
        let mut here = start;
        let mut passed: Vec<Passed<'_>> = Vec::new();
        let mut on_the_way = HashSet::new();
        while let Some((edge, code)) = only_edge(marked, here)
            && let Some((place, opens)) = place(code)
            && on_the_way.insert(here)
        {
            passed.push(Passed { edge, to: code.to, place, opens });
            here = code.to;
        }
        // A cycle that consists of places only is an empty infinite loop whichever of its steps belongs to the original program, so only the places
        // before the cycle are candidates.
        if on_the_way.contains(&here) {
            let before = passed.iter().take_while(|p| marked.edge(p.edge).from != here).count();
            passed.truncate(before);
        }
        let ours: Vec<&Edge> = marked.edges_from(here).map(|(_, edge)| edge).collect();
        let theirs: Vec<&Edge> = source.edges_from(there).map(|(_, edge)| edge).collect();
        let same = |(a, b): (&&Edge, &&Edge)| a.action == b.action && a.span == b.span;
        if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(same) {
            open.extend(ours.iter().zip(&theirs).map(|(a, b)| (a.to, b.to)));
        } else if let [step] = theirs[..]
            && step.action == Action::Op(Op::Skip)
            && step.to != there
        {
            let is_within = |inner: Span, outer: Span| outer.covers(inner);
            // Of all places before statements that contain the step, the place before the innermost statement is chosen. If the thread has several
            // copies of this place, the first copy is chosen, together with the place after the labels if that place follows directly.
            let before =
                |p: &Passed<'_>| p.place.side != Side::After && is_within(step.span, p.place.statement);
            let length = |p: &Passed<'_>| p.place.statement.end - p.place.statement.start;
            let around = passed.iter().enumerate().filter(|(_, p)| before(p));
            if let Some((nearest, found)) = around.min_by_key(|(n, p)| (length(p), *n)) {
                let labelled = |p: &&Passed<'_>| {
                    p.place.side == Side::Labelled && p.place.statement == found.place.statement
                };
                let last = nearest + usize::from(passed.get(nearest + 1).filter(labelled).is_some());
                // A place before a block is also a place before the first statement in the block, unless that statement has labels.
                let mut first = last;
                while first > 0
                    && passed[first].place.label.is_none()
                    && passed[first - 1].opens
                    && is_within(passed[first].place.statement, passed[first - 1].place.statement)
                {
                    first -= 1;
                }
                steps.push((passed[last].edge, passed[first..last].iter().map(|p| p.edge).collect()));
                open.push((passed[last].to, step.to));
            }
        }
    }
    steps
}

/// The edge that leaves a location, if it is the only one.
fn only_edge(thread: &Thread, location: LocationId) -> Option<(EdgeId, &Edge)> {
    let mut leaving = thread.edges_from(location);
    leaving.next().filter(|_| leaving.next().is_none())
}

/// Merges places of different threads at the same point of the text, because an importer may make several threads from one text. Places of the same
/// thread at one point stay separate: the first one is merged with the first ones of other threads, the second with the second ones, and so on. Only
/// with `copies`, where code is duplicated within a thread, places of the same thread are merged too.
fn one_for_each_text(places: Vec<Place>, copies: bool) -> Vec<Place> {
    let mut joined: Vec<Place> = Vec::new();
    let mut known: HashMap<(Span, Span, Side), Vec<usize>> = HashMap::new();
    for place in places {
        let same = known.entry((place.point().text(), place.statement.text(), place.side)).or_default();
        let shares = |other: &Place| other.edges.iter().any(|(t, _)| place.edges.iter().any(|(u, _)| t == u));
        match same.iter().copied().find(|&n| copies || !shares(&joined[n])) {
            Some(n) => joined[n].edges.extend(place.edges),
            None => {
                same.push(joined.len());
                joined.push(place);
            }
        }
    }
    joined
}
