//! Operations that an audit weakens, what they may become, and the program with some of them weakened.
//!
//! In a language with memory orders an operation is weakened in the text, and the program is read again: the verdict is then about the very text that
//! a user would write. In other languages a fence is replaced in the program.

use std::collections::BTreeMap;

use fencewright_engines::fingerprint::fingerprint;
use fencewright_lang::edit::{Change, changed};
use fencewright_lang::load::load_again;
use fencewright_lang::orders::{Operation, Ordered, Weaker};
use fencewright_lang::places::{Place, Placed, Side, routine_at};
use fencewright_lang::{Loaded, Stop};
use fencewright_program::{
    Action, EdgeId, FileId, MemoryModel, Observable, Op, Program, Property, Span, ThreadId,
};

use crate::fenced::Fenced;

/// The edges of a fence, in all threads that execute it.
type Edges = Vec<(ThreadId, EdgeId)>;

/// An operation that may be weakened.
pub struct Weakenable {
    /// Its position.
    pub span: Span,
    /// Its kind.
    pub operation: Operation,
    /// Its order as the language writes it; `None` in a language without orders.
    pub order: Option<String>,
    /// The threads that execute it.
    pub threads: Vec<ThreadId>,
    /// The weaker forms that are tried, weakest first; empty if the operation has none.
    pub forms: Vec<WeakForm>,
}

/// A weaker form of an operation.
pub struct WeakForm {
    /// The order or the kind of this form; `None` if this form removes the operation, which is then a fence.
    pub becomes: Option<String>,
    means: Means,
}

/// The change that weakens an operation.
enum Means {
    /// These edges of the program get this action.
    Edges(Edges, Action),
    /// These changes are made in the text of the file, and the program is read again.
    Text(FileId, Vec<Change>),
}

/// A program with what is needed to weaken its operations.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The program with its texts.
    pub loaded: &'a Loaded,
    /// The memory model.
    pub model: MemoryModel,
}

impl Subject<'_> {
    /// The fences of the program, without other operations.
    pub fn fences(self) -> Vec<Weakenable> {
        let program = &self.loaded.program;
        let mut fences: BTreeMap<Span, Edges> = BTreeMap::new();
        for (t, thread) in program.threads() {
            for (e, edge) in thread.edges.iter().enumerate() {
                if matches!(edge.action, Action::Fence | Action::StoreFence) {
                    fences.entry(edge.span.text()).or_default().push((t, EdgeId(e as u32)));
                }
            }
        }
        fences.into_iter().map(|(span, edges)| self.fence(span, edges)).collect()
    }

    fn fence(self, span: Span, edges: Edges) -> Weakenable {
        let stores_only =
            |&(t, e): &(ThreadId, EdgeId)| self.loaded.program.thread(t).edge(e).action == Action::StoreFence;
        let operation = match edges.iter().any(stores_only) {
            true => Operation::StoreFence,
            false => Operation::Fence,
        };
        let mut threads: Vec<ThreadId> = edges.iter().map(|(t, _)| *t).collect();
        threads.dedup();
        let gone = Means::Edges(edges.clone(), Action::Op(Op::Skip));
        let mut forms = vec![WeakForm { becomes: None, means: gone }];
        // Under TSO a store-store fence has no effect.
        if operation == Operation::Fence && self.model == MemoryModel::Pso {
            let means = Means::Edges(edges, Action::StoreFence);
            forms.push(WeakForm { becomes: Some("sfence".into()), means });
        }
        Weakenable { span, operation, order: None, threads, forms }
    }

    /// The operations with memory orders that some thread executes; the fences in a language without orders.
    pub fn operations(self, stop: &Stop<'_>) -> Vec<Weakenable> {
        let Some(all) = self.loaded.front_end.orders(self.loaded, stop) else { return self.fences() };
        let executed = Executed::new(self.loaded);
        let with_threads = |ordered: Ordered| {
            let threads = executed.threads(&ordered.uses);
            let form = |Weaker { order, file, changes }| WeakForm {
                becomes: order,
                means: Means::Text(file, changes),
            };
            let forms = ordered.weaker.into_iter().map(form).collect();
            let Ordered { operation, order, span, .. } = ordered;
            Weakenable { span, operation, order: Some(order), threads, forms }
        };
        let all = all.into_iter().map(with_threads);
        all.filter(|operation| !operation.threads.is_empty()).collect()
    }

    /// The identity of a program: two programs with the same one have the same executions under the model, up to fences without effect.
    pub fn identity(self, program: &Program) -> String {
        identity(program, self.model)
    }

    /// The program with these forms of operations; `None` if the changed text is no program, or if it is time to stop.
    pub fn weakened(self, forms: &[&WeakForm], stop: &Stop<'_>) -> Option<Program> {
        let mut program = None;
        let (mut edges, mut texts) = (Vec::new(), BTreeMap::<FileId, Vec<Change>>::new());
        for form in forms {
            match &form.means {
                Means::Edges(at, action) => edges.push((at, action)),
                Means::Text(file, changes) => texts.entry(*file).or_default().extend(changes.iter().cloned()),
            }
        }
        if !texts.is_empty() {
            let sources = self.loaded.sources.with_texts(|id, file| match texts.remove(&id) {
                Some(changes) => changed(&file.text, changes),
                None => Ok(file.text.clone()),
            });
            program = Some(load_again(self.loaded, &sources.ok()?, stop).ok()?.program);
        }
        let program = program.unwrap_or_else(|| self.loaded.program.clone());
        Some(if edges.is_empty() { program } else { replaced(program, &edges) })
    }
}

/// The fingerprint of a program as the model sees it: under TSO without store-store fences, which have no effect there. Where properties mention
/// labels these fences stay, because a thread at a fence is at no label.
fn identity(program: &Program, model: MemoryModel) -> String {
    let mut labels = false;
    for formula in program.properties.iter().filter_map(Property::formula) {
        formula.for_each_leaf(&mut |observable| labels |= matches!(observable, Observable::At(..)));
    }
    if labels || model != MemoryModel::Tso {
        return fingerprint(program);
    }
    let mut edges = Edges::new();
    for (t, thread) in program.threads() {
        let numbered = (0..).map(EdgeId).zip(&thread.edges);
        edges.extend(numbered.filter(|(_, edge)| edge.action == Action::StoreFence).map(|(e, _)| (t, e)));
    }
    fingerprint(&replaced(program.clone(), &[(&edges, &Action::Op(Op::Skip))]))
}

/// The statements that threads execute, by file and position.
struct Executed<'a> {
    loaded: &'a Loaded,
    /// The positions of all edges with their threads.
    edges: BTreeMap<Span, Vec<ThreadId>>,
}

impl<'a> Executed<'a> {
    fn new(loaded: &'a Loaded) -> Self {
        let mut edges: BTreeMap<Span, Vec<ThreadId>> = BTreeMap::new();
        for (t, thread) in loaded.program.threads() {
            for edge in &thread.edges {
                let threads = edges.entry(edge.span.text()).or_default();
                if threads.last() != Some(&t) {
                    threads.push(t);
                }
            }
        }
        Executed { loaded, edges }
    }

    /// The threads that execute some of these statements. An operation that has no effect in the model has no edge. It then counts as executed by the
    /// threads that execute its function, except in `main`, much of which is evaluated while the program is read.
    fn threads(&self, uses: &[Span]) -> Vec<ThreadId> {
        let within = |outer: Span| {
            let from = outer.text().point(outer.start);
            let is_near = move |span: &Span| span.file == outer.file && span.start <= outer.end;
            let near = self.edges.range(from..).take_while(move |(span, _)| is_near(span));
            let own = near.filter(move |(span, _)| outer.covers(**span) && **span != Span::default());
            own.flat_map(|(_, threads)| threads.iter().copied())
        };
        let mut threads: Vec<ThreadId> = uses.iter().flat_map(|used| within(*used)).collect();
        if threads.is_empty() {
            let routines = self.loaded.sites.as_ref().map_or(&[][..], |sites| &sites.routines);
            let around = uses.iter().filter_map(|used| routine_at(routines, *used));
            threads = around.filter(|r| r.name != "main").flat_map(|r| within(r.body)).collect();
        }
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

/// The program with other actions at some edges. An edge that becomes an empty step is removed, and its source and target are merged.
fn replaced(mut program: Program, replacements: &[(&Edges, &Action)]) -> Program {
    let mut places = Vec::new();
    for &(edges, action) in replacements {
        for &(t, e) in edges {
            program.threads[t.index()].edges[e.index()].action = action.clone();
        }
        if *action != Action::Op(Op::Skip) {
            continue;
        }
        let (edges, statement) = (edges.clone(), Span::default());
        places.push(Place {
            offset: 0,
            side: Side::Before,
            statement,
            label: None,
            bare: false,
            uses: 0,
            edges,
        });
    }
    Fenced::new(&Placed { program, places, ..Placed::default() }, &[]).program
}
