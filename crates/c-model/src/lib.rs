//! C programs: crate `c` preprocesses, parses and type-checks them, this crate elaborates the typed tree to core code, and crate `code` translates
//! core code to the syntax tree of `.fw`. Also the reverse direction: printing `.fw` programs as C ([`export`]), and inserting fences into C text.

#![forbid(unsafe_code)]

mod edit;
pub mod elaborate;
pub mod export;
mod files;
mod front_end;
mod orders;
mod parts;
mod sites;
mod steps;

use std::cell::Cell;

use elaborate::Replaced;
use fencewright_c::headers::PREDEFINED;
use fencewright_c::preprocess::{MacroOption, Preprocessed, Source};
use fencewright_c::typed::tree::Unit;
use fencewright_c::{Error, parser, preprocess, typed};
use fencewright_code::pipeline::{self, Translated};
use fencewright_code::reuse::Reuse;
use fencewright_front_end::facts::Facts;
use fencewright_front_end::{COptions, Compilation, Input, Options, Parsed, Spins};
use fencewright_program::{FileId, Span};
use fencewright_text::{Diagnostic, Sources, Stop};
use files::InputFiles;

pub use front_end::C;

/// Reads a C program and translates it to the syntax tree of `.fw`.
pub fn c(input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let (stop, options) = (input.stop, input.options);
    let (text, replaced) = preprocessed(input)?;
    let unit = parser::parse_unless(&text, &|| stop.now()).map_err(diagnostics)?;
    let sites = Some(sites::sites(&unit, &text.names, &input.sources, stop));
    let of_build = overflows(options);
    let warnings = of_build.into_iter().chain(text.warnings.iter().cloned().map(diagnostic)).collect();
    let is_replaced = |name: &str| replaced.has(name);
    let typed = typed::typed_unless(&text, &unit, &is_replaced, &|| stop.now()).map_err(diagnostics)?;
    let facts = Facts { steps: steps::steps(&unit, stop), ..Facts::default() };
    let parsed = Parsed { sites, warnings, facts, ..Parsed::default() };
    translated(typed, (&options.c, input.attempt), replaced, &input.sources, parsed, stop)
}

/// Preprocesses the source files, and the stubs after the main file.
fn preprocessed(input: &mut Input<'_>) -> Result<(Preprocessed, Replaced), Vec<Diagnostic>> {
    let (stop, options) = (input.stop, input.options);
    let main = input.sources.name().to_owned();
    let mut files = InputFiles::new(input);
    let mut sources = vec![source(FileId::MAIN, &main, options)];
    for name in &options.c.also {
        let unreadable = |why| vec![Diagnostic::new(Span::default(), format!("cannot read `{name}`: {why}"))];
        let file = files.source(name).map_err(unreadable)?;
        if sources.iter().any(|source| source.file == file) {
            let twice = Diagnostic::new(Span::default(), format!("the source file `{name}` is given twice"));
            return Err(vec![twice.help("name each source file of the program once")]);
        }
        sources.push(source(file, name, options));
    }
    let replaced = Replaced::new(&options.c, files.read_stubs().map_err(|error| vec![error])?)?;
    let text = preprocess::preprocess_all(&mut files, &sources, &|| stop.now()).map_err(diagnostics)?;
    Ok((text, replaced))
}

/// Warnings about compiler options that give signed overflow a meaning, which it does not have in the model.
fn overflows(options: &Options) -> Vec<Diagnostic> {
    let mut given: Vec<(&String, &String)> = (options.c.compilations.iter())
        .filter_map(|(file, compilation)| Some((file, compilation.overflow.as_ref()?)))
        .collect();
    given.sort();
    let warning = |(file, option): (&String, &String)| {
        let text =
            format!("`{file}` is compiled with `{option}`, but signed overflow is a violation all the same");
        Diagnostic::new(Span::default(), text)
    };
    given.into_iter().map(warning).collect()
}

/// A source file with its macros: those of the compiler, of the build system, and of the command line.
fn source(file: FileId, name: &str, options: &Options) -> Source {
    let define = |name: String, value: Option<String>| MacroOption::Define(name, value);
    let predefined = PREDEFINED.into_iter().map(|(name, value)| define(name.into(), Some(value.into())));
    let none = Compilation::default();
    let built = options.c.compilations.get(name).unwrap_or(&none);
    let of_build = built.macros.iter().map(|option| match option {
        fencewright_front_end::MacroOption::Define(name, value) => define(name.clone(), value.clone()),
        fencewright_front_end::MacroOption::Undefine(name) => MacroOption::Undefine(name.clone()),
    });
    let given = options.defines.iter().map(|(name, value)| define(name.clone(), value.clone()));
    Source {
        file,
        macros: predefined.chain(of_build).chain(given).collect(),
        includes: built.includes.clone(),
    }
}

/// Translates a typed program, in an attempt after which others may follow. Adds the resulting syntax tree, its inlined calls, the facts and the
/// warnings to `parsed`.
fn translated(
    unit: Unit,
    (options, attempt): (&COptions, usize),
    replaced: Replaced,
    sources: &Sources,
    mut parsed: Parsed,
    stop: &Stop<'_>,
) -> Result<Parsed, Vec<Diagnostic>> {
    let (spurious, accesses_only) = (!options.exact_waits, options.accesses_only);
    let depths = match options.recursion {
        Some(depth) => vec![depth as usize],
        None => elaborate::DEPTHS.to_vec(),
    };
    let modelled = pipeline::Options {
        heap: options.heap.unwrap_or(pipeline::Options::default().heap),
        reuse: if options.no_reuse { Reuse::Never } else { Reuse::Allocated },
        waiting_is_a_step: options.spins == Spins::Step,
        suppositions_wait: !options.exact_waits,
        late_stores: !options.no_reuse && !accesses_only && !options.in_order,
    };
    let translated = |recursion: usize| {
        let cut = Cell::new(false);
        let elaborated = |reuse: Reuse| {
            let options =
                elaborate::Options { spurious, reuse, accesses_only, recursion, replaced: &replaced };
            elaborate::elaborate(&unit, &options, &cut, stop)
        };
        (pipeline::translate(&elaborated, modelled, sources, stop), cut.get())
    };
    let (mut at, last) = (attempt.min(depths.len() - 1), depths.len() - 1);
    let (mut result, mut cut) = translated(depths[at]);
    // If the program becomes too large when recursive calls are inlined, a smaller recursion depth may still find violations.
    while result.is_err() && cut && at < last && !stop.now() {
        at += 1;
        // An error in the smaller program tells the user more than the message that the larger one is too large.
        (result, cut) = translated(depths[at]);
    }
    let Translated { file, plain, facts, calls, warnings } = result?;
    parsed.smaller = (cut && at < last).then_some(at + 1);
    (parsed.file, parsed.plain, parsed.calls) = (file, plain, calls);
    parsed.facts = Facts { steps: std::mem::take(&mut parsed.facts.steps), ..facts };
    parsed.warnings.extend(unit.warnings.into_iter().map(diagnostic));
    parsed.warnings.extend(warnings);
    parsed.warnings.extend(replaced.unused(&parsed.facts.assumed));
    Ok(parsed)
}

fn diagnostics(errors: Vec<Error>) -> Vec<Diagnostic> {
    errors.into_iter().map(diagnostic).collect()
}

/// An error or warning of crate `c` as a diagnostic.
fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic { help: error.help, ..Diagnostic::new(error.span, error.message) }
}
