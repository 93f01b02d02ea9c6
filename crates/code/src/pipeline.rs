//! The translation from symbolic code to `.fw`, stage by stage: [`translate`].

use std::collections::HashSet;

use fencewright_front_end::facts::Facts;
use fencewright_fw::ast::File;
use fencewright_program::{Call, Span};
use fencewright_text::{Diagnostic, Sources, Stop};

use crate::core::Core;
use crate::ends::Ends;
use crate::flat::{Program, checks, failures, intervals, joins, sharing, tidy, undefining};
use crate::late_stores::LateStores;
use crate::layout::classes::Layout;
use crate::layout::{open_arrays, resolve};
use crate::nodes::Nodes;
use crate::reuse::{self, Reuse};
use crate::simplify::simplify;
use crate::{clean, emit, hazards, lifetimes, points_to, views};

/// How memory and waiting are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of objects that each allocation in a loop returns.
    pub heap: u32,
    /// The model of reuse: whether an allocation may return a freed object and, if not, whether the model ends where that is observable.
    pub reuse: Reuse,
    /// Whether a loop that only waits becomes one step, which is disabled until the condition holds.
    pub waiting_is_a_step: bool,
    /// Whether an assumption about a value that was just read is joined with the read into one step, which waits until the assumption holds. Must be
    /// false for the property `deadlock`, because a thread at such a step counts as blocked, whereas an execution with a failed assumption is
    /// discarded.
    pub suppositions_wait: bool,
    /// Whether the model ends where the lifetime of an object ends while a store of another thread to the object is in its buffer, because such a
    /// store may overwrite other memory. If false, all objects have addresses of their own.
    pub late_stores: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            heap: 4,
            reuse: Reuse::Never,
            waiting_is_a_step: true,
            suppositions_wait: true,
            late_stores: true,
        }
    }
}

/// A translated program.
#[derive(Debug)]
pub struct Translated {
    /// The syntax tree of `.fw`.
    pub file: File,
    /// The spans of plain accesses, which a compiler may reorder.
    pub plain: HashSet<Span>,
    /// The facts that reports need about objects, threads and registers.
    pub facts: Facts,
    /// The inlined calls to which spans refer.
    pub calls: Vec<Call>,
    /// Warnings of the translation.
    pub warnings: Vec<Diagnostic>,
}

/// The translation of a program that a front end elaborates to symbolic code:
///
/// ```text
/// typed tree of the language
///   elaborate            calls inlined, accesses as statements                   c-model/elaborate
/// symbolic code ([`Core`])
///   clean                dead stores, copies, jumps, waiting loops               clean
///   points_to            classes of places ([`Nodes`])                           points_to, layout/containers
///   ends                 threads that have ended where memory is freed ([`Ends`])  ends
///   lifetimes, views     ends of local variables, conversions                    lifetimes, views
///   simplify             constants, variables of one thread                      simplify
///   hazards              ends of the model at unfenced hazard pointers           hazards
///   late stores          stores that outlive their objects ([`LateStores`])      late_stores
///   layout               numbers for places ([`Layout`])                         layout/classes
///   resolve              pointers become numbers, accesses are checked           layout/resolve
/// flat code ([`Program`])
///   registers            dead undefined values, shared temporaries               flat/undefining, flat/tidy, flat/sharing
///   intervals            checks that cannot fail                                 flat/intervals
///   checks               joined, moved out of indivisible blocks                 flat/checks, flat/failures
///   waits                reads joined with assumptions, consecutive waits        flat/tidy, flat/joins
///   emit                 declarations, statements, the property `memory`         emit
/// syntax tree of .fw
/// ```
///
/// `elaborate` returns symbolic code and its nodes for a model of memory reuse.
pub fn translate(
    elaborate: &dyn Fn(Reuse) -> Result<(Core, Nodes), Vec<Diagnostic>>,
    options: Options,
    sources: &Sources,
    stop: &Stop<'_>,
) -> Result<Translated, Vec<Diagnostic>> {
    let (mut core, nodes, reuse) = symbolic(elaborate, options.reuse, stop)?;
    lifetimes::forget_unfollowed(&mut core, &nodes, stop);
    views::convert(&mut core, &nodes, stop);
    stop.or_go_on()?;
    simplify(&mut core, &nodes, !options.suppositions_wait, stop);
    stop.or_go_on()?;
    hazards::end_unfenced(&mut core, &nodes, stop);
    let late = if options.late_stores {
        LateStores::of(&mut core, &nodes, reuse, stop)
    } else {
        LateStores::default()
    };
    stop.or_go_on()?;
    let (file, plain, facts) = to_fw(&core, nodes, late, sources, Options { reuse, ..options }, stop)?;
    Ok(Translated { file, plain, facts, calls: core.calls, warnings: core.warnings })
}

/// Symbolic code with its nodes, and the model of reuse for which it was elaborated: `Never` if the options demand it or no allocation can return
/// freed memory, otherwise the most precise model for which elaboration succeeds.
fn symbolic(
    elaborate: &dyn Fn(Reuse) -> Result<(Core, Nodes), Vec<Diagnostic>>,
    wanted: Reuse,
    stop: &Stop<'_>,
) -> Result<(Core, Nodes, Reuse), Vec<Diagnostic>> {
    let cleaned = |reuse: Reuse| {
        let (mut core, mut nodes) = elaborate(reuse)?;
        lifetimes::forget_lasting(&mut core, stop);
        clean::clean_all(&mut core, stop);
        points_to::unify(&core, &mut nodes, stop)?;
        core.ends = Ends::of(&mut core, stop);
        stop.or_go_on()?;
        Ok::<_, Vec<Diagnostic>>((core, nodes, reuse))
    };
    // The model without reuse comes first, because elaboration can determine more addresses under it, and the resulting code shows whether an
    // allocation can return freed memory.
    let first = cleaned(Reuse::Never)?;
    if wanted == Reuse::Never || !reuse::comes_back(&first.0, &first.1, stop) {
        return Ok(first);
    }
    // `Compared` is not tried for programs that retire objects, because its tests for dangling pointers do not know when a retired object is freed.
    match reuse::retires(&first.0, stop) {
        true => cleaned(Reuse::Allocated),
        false => cleaned(Reuse::Allocated).or_else(|_| cleaned(Reuse::Compared)),
    }
}

/// Lays out memory, and emits the program as a file of `.fw`.
pub(crate) fn to_fw(
    core: &Core,
    mut nodes: Nodes,
    late: LateStores,
    sources: &Sources,
    options: Options,
    stop: &Stop<'_>,
) -> Result<(File, HashSet<Span>, Facts), Vec<Diagnostic>> {
    let clashes: Vec<Diagnostic> = nodes.clashes().iter().flat_map(|clash| clash.diagnostics()).collect();
    if !clashes.is_empty() {
        return Err(clashes);
    }
    let lengths = open_arrays::set_lengths(core, &mut nodes);
    let layout = Layout::fitting(core, &nodes, &lengths, &late, options, stop)?;
    stop.or_go_on()?;
    let mut program = resolve::resolve(core, &nodes, &layout, sources, options, stop)?;
    stop.or_go_on()?;
    smaller(&mut program, &layout, options, stop)?;
    let inputs = emit::facts::Inputs { core, nodes: &nodes, layout: &layout, program: &program, sources };
    let (file, facts) = emit::file(inputs, stop);
    let plain = emit::plain::plain(&program, stop);
    stop.or_go_on()?;
    Ok((file, plain, facts))
}

/// The passes over flat code.
fn smaller(
    program: &mut Program,
    layout: &Layout,
    options: Options,
    stop: &Stop<'_>,
) -> Result<(), Vec<Diagnostic>> {
    for thread in &mut program.threads {
        undefining::forget(thread, stop);
        if sharing::has_many_registers(thread) {
            tidy::tidy(thread, stop);
            stop.or_go_on()?;
            sharing::share(thread, stop);
        }
        stop.or_go_on()?;
    }
    intervals::check(program, layout, stop);
    for thread in &mut program.threads {
        stop.or_go_on()?;
        checks::join(&mut thread.code, stop);
        checks::cut(&mut thread.code, stop);
        failures::move_failures(thread, stop);
        tidy::tidy(thread, stop);
        if options.suppositions_wait {
            tidy::wait(&mut thread.code, stop);
        }
    }
    joins::gather(program, layout, stop);
    stop.or_go_on()
}
