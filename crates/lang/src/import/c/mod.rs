//! C programs: preprocessed and parsed by crate `c`, given types there, and translated here to the syntax tree of `.fw`.

pub mod core;
pub mod elaborate;
mod files;
pub mod memory;
pub mod nodes;
pub mod numbers;
mod plain;
mod sites;
mod spinning;
mod views;

use fencewright_c::headers::PREDEFINED;
use fencewright_c::typed::tree::Unit;
use fencewright_c::{Error, parser, preprocess, typed};

use crate::diagnostic::Diagnostic;
use crate::front_end::{Input, Parsed};
use crate::options::{COptions, Spins};
use crate::sources::Sources;

use files::InputFiles;

pub use memory::flat::UNDEFINED;

/// Reads a C program.
pub fn c(input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let (stop, options) = (input.stop, input.options);
    let predefined = PREDEFINED.into_iter().map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let macros: Vec<_> = predefined.chain(options.defines.iter().cloned()).collect();
    let mut files = InputFiles::new(input);
    let text = preprocess::preprocess(&mut files, &macros, &|| stop.now()).map_err(diagnostics)?;
    let unit = parser::parse(&text).map_err(diagnostics)?;
    let sites = Some(sites::sites(&unit, &input.sources));
    let warnings = text.warnings.iter().cloned().map(diagnostic).collect();
    let typed = typed::typed(&text, &unit).map_err(diagnostics)?;
    translated(typed, &options.c, &input.sources, Parsed { sites, warnings, ..Parsed::default() })
}

/// The program as a syntax tree, with its calls and further warnings.
fn translated(
    unit: Unit,
    options: &COptions,
    sources: &Sources,
    mut parsed: Parsed,
) -> Result<Parsed, Vec<Diagnostic>> {
    let (spurious, reuse) = (!options.exact_waits, options.reuse);
    let elaboration = elaborate::Options { spurious, reuse, ..elaborate::Options::default() };
    let (mut core, nodes) = elaborate::elaborate(&unit, &elaboration)?;
    // Structures that are found by way of their members are the same in what follows.
    let mut united = nodes.clone();
    memory::unite_containers(&core, &mut united)?;
    elaborate::forget_unfollowed(&mut core, &united);
    views::convert(&mut core, &united);
    if options.exact_waits && options.spins == Spins::Step {
        let undecided = spinning::spinning(&core);
        if !undecided.is_empty() {
            return Err(undecided);
        }
    }
    elaborate::simplify(&mut core, &nodes, options.exact_waits);
    let heap = options.heap.unwrap_or(memory::Options::default().heap);
    let waiting_is_a_step = options.spins == Spins::Step;
    let suppositions_wait = !options.exact_waits;
    let options = memory::Options { heap, reuse, waiting_is_a_step, suppositions_wait };
    parsed.file = memory::emit(&core, nodes, sources, options)?;
    parsed.plain = plain::plain(&core);
    parsed.calls = std::mem::take(&mut core.calls);
    parsed.warnings.extend(unit.warnings.into_iter().map(diagnostic));
    parsed.warnings.append(&mut core.warnings);
    Ok(parsed)
}

fn diagnostics(errors: Vec<Error>) -> Vec<Diagnostic> {
    errors.into_iter().map(diagnostic).collect()
}

/// What crate `c` says about a text.
fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic { message: error.message, span: error.span, label: None, help: error.help }
}
