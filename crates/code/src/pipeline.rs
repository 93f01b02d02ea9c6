//! The way from core code to `.fw`: numbers for addresses, checks of accesses, statements.

use std::collections::HashSet;

use fencewright_front_end::facts::Memory;
use fencewright_fw::ast::File;
use fencewright_program::Span;
use fencewright_text::{Diagnostic, Sources, Stop};

use crate::core::Core;
use crate::emit;
use crate::flat::{checks, failures, intervals, joins, sharing, tidy, undefining};
use crate::layout::classes::Layout;
use crate::layout::{containers, open_arrays, resolve};
use crate::nodes::Nodes;
use crate::reuse::Reuse;

/// How memory is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many objects each allocation in a loop may give.
    pub heap: u32,
    /// Whether an allocation may give an object that was given back.
    pub reuse: Reuse,
    /// Whether a loop that only waits is one step, which can be taken when there is nothing left to wait for.
    pub waiting_is_a_step: bool,
    /// Whether what is supposed about a value that was just read may wait until it holds. Then a thread that supposes something wrong waits, and
    /// for `deadlock` that would count.
    pub suppositions_wait: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { heap: 4, reuse: Reuse::Never, waiting_is_a_step: true, suppositions_wait: true }
    }
}

/// Unifies the nodes of structures that can be the same one, found by way of a member.
pub fn unite_containers(core: &Core, nodes: &mut Nodes, stop: &Stop<'_>) -> Result<(), Vec<Diagnostic>> {
    containers::unify(core, nodes, stop).map_err(|clash| clash.diagnostics().to_vec())
}

/// The program as a file of `.fw`.
#[derive(Debug)]
pub struct Emitted {
    /// The file.
    pub file: File,
    /// The accesses in it that a compiler may move.
    pub plain: HashSet<Span>,
    /// What is known about its memory.
    pub memory: Memory,
}

/// Lays memory out, and writes the program as a file of `.fw`.
pub fn to_fw(
    core: &Core,
    mut nodes: Nodes,
    sources: &Sources,
    options: Options,
    stop: &Stop<'_>,
) -> Result<Emitted, Vec<Diagnostic>> {
    unite_containers(core, &mut nodes, stop)?;
    stop.or_go_on()?;
    let clashes: Vec<Diagnostic> = nodes.clashes().iter().flat_map(|clash| clash.diagnostics()).collect();
    if !clashes.is_empty() {
        return Err(clashes);
    }
    open_arrays::set_lengths(core, &mut nodes)?;
    let layout = Layout::new(core, &nodes, options, stop)?;
    stop.or_go_on()?;
    let mut program = resolve::resolve(core, &nodes, &layout, sources, options, stop)?;
    stop.or_go_on()?;
    program.threads.iter_mut().for_each(|thread| undefining::forget(thread, stop));
    for thread in program.threads.iter_mut().filter(|thread| sharing::has_many_registers(thread)) {
        tidy::tidy(thread, stop);
        stop.or_go_on()?;
        sharing::share(thread, stop);
    }
    stop.or_go_on()?;
    intervals::check(&mut program, &layout, stop);
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
    joins::gather(&mut program, &layout, stop);
    stop.or_go_on()?;
    let (file, memory) = emit::file(core, &nodes, &layout, &program, stop);
    let plain = emit::plain::plain(&program, stop);
    stop.or_go_on()?;
    Ok(Emitted { file, plain, memory })
}
