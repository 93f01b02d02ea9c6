//! Loads programs: decodes bytes, recognises the language, parses, lowers.

use fencewright_front_end::words::Words;
use fencewright_front_end::{FrontEnd, Input, Open, Options, Parsed};
use fencewright_fw::ast;
use fencewright_fw::lower::{self, Awaits, Defines};
use fencewright_program::{Formula, Program, Span};
use fencewright_text::{Diagnostic, SourceFile, Sources, Stop, source};

use crate::front_end;

pub use fencewright_front_end::Loaded;

/// The reason why a program could not be loaded: errors in its text.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// The source texts, for messages.
    pub sources: Sources,
    /// The errors; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

/// Loads a program without included files. If no front end is given, it is detected; `defines` override top-level constants.
pub fn load(
    name: &str,
    bytes: &[u8],
    front_end: Option<&'static dyn FrontEnd>,
    defines: &Defines,
) -> Result<Loaded, Box<LoadError>> {
    let alone = |_: &str| Err("there is nowhere to read it from".to_owned());
    let defines = defines.iter().map(|(name, value)| (name.clone(), Some(value.to_string()))).collect();
    let options = Options { defines, ..Options::default() };
    finished(Loader { front_end, options: &options, stop: &Stop::never(), open: &alone }.load(name, bytes))
}

/// Loads a program again from changed texts of its files, for example after an edit, or with other options.
pub fn load_again(loaded: &Loaded, sources: &Sources, stop: &Stop<'_>) -> Result<Loaded, Failure> {
    let open = |name: &str| match sources.named(name) {
        Some(file) => Ok(sources.file(file).text.clone().into_bytes()),
        None => Err("it was not included before".to_owned()),
    };
    let (front_end, options) = (Some(loaded.front_end), &loaded.options);
    let loader = Loader { front_end, options, stop, open: &open };
    loader.load(sources.name(), sources.main().text.as_bytes())
}

fn finished(result: Result<Loaded, Failure>) -> Result<Loaded, Box<LoadError>> {
    result.map_err(|failure| match failure {
        Failure::Wrong(error) => error,
        Failure::Stopped(_) => unreachable!("nobody asks to stop"),
    })
}

/// The reason why there is no program.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The text has errors.
    Wrong(Box<LoadError>),
    /// Loading was cancelled; the position that had been reached, if known.
    Stopped(Option<String>),
}

impl Failure {
    fn wrong(sources: Sources, diagnostics: Vec<Diagnostic>) -> Self {
        Failure::Wrong(Box::new(LoadError { sources, diagnostics }))
    }
}

/// The parameters of loading.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    /// The front end; if `None`, it is detected.
    pub front_end: Option<&'static dyn FrontEnd>,
    /// The options of the command line.
    pub options: &'a Options,
    /// Polled while loading; says whether to stop.
    pub stop: &'a Stop<'a>,
    /// Reads the files that the program includes.
    pub open: &'a Open<'a>,
}

impl Loader<'_> {
    /// Loads the program whose main file has this name and these contents.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
        let text = match source::decode(bytes) {
            Ok(text) => text,
            Err(diagnostic) => {
                return Err(Failure::wrong(SourceFile::lossy(name, bytes).into(), vec![diagnostic]));
            }
        };
        let front_end = self.front_end.unwrap_or_else(|| front_end::detect(name, &text));
        let main = SourceFile::new(name, text);
        let defines = match front_end.constants(self.options) {
            Ok(defines) => defines,
            Err(diagnostic) => return Err(Failure::wrong(main.into(), vec![diagnostic])),
        };
        let mut attempt = 0;
        loop {
            let mut input = Input::new(main.clone(), self.stop, self.options, self.open);
            input.attempt = attempt;
            let parsed = parse(front_end, &mut input);
            let smaller = parsed.as_ref().ok().and_then(|parsed| parsed.smaller);
            let lowered = parsed.and_then(|parsed| self.lowered(front_end, parsed, &defines));
            match (&lowered, smaller) {
                // The only errors of a tree that a front end makes smaller are that it is too large.
                (Err(_), Some(next)) if !self.stop.was_stopped() => attempt = next,
                _ => return self.loaded(front_end, input.sources, lowered, defines),
            }
        }
    }

    /// Lowers what a front end has parsed.
    fn lowered(
        &self,
        front_end: &dyn FrontEnd,
        mut parsed: Parsed,
        defines: &Defines,
    ) -> Result<Lowered, Vec<Diagnostic>> {
        let (mut program, filter) = lower_with_filter(self.stop, &mut parsed, defines, self.options.awaits)?;
        let words = front_end.finish(&mut program, &parsed.facts, self.options, self.stop)?;
        Ok(Lowered { parsed, program, words, filter })
    }

    fn loaded(
        &self,
        front_end: &'static dyn FrontEnd,
        sources: Sources,
        lowered: Result<Lowered, Vec<Diagnostic>>,
        defines: Vec<(String, i64)>,
    ) -> Result<Loaded, Failure> {
        match lowered {
            lowered if self.stop.was_stopped() => {
                let at = lowered.err().and_then(|diagnostics| Some(diagnostics.first()?.span));
                let at = at.filter(|span| *span != Span::default());
                Err(Failure::Stopped(at.map(|span| sources.position(span).to_string())))
            }
            Ok(Lowered { parsed, program, words, filter }) => Ok(Loaded {
                sources,
                front_end,
                file: parsed.file,
                program,
                name: parsed.name,
                notes: parsed.notes,
                view: parsed.view,
                filter,
                calls: parsed.calls,
                sites: parsed.sites,
                warnings: parsed.warnings,
                plain: parsed.plain,
                facts: parsed.facts,
                words,
                defines,
                options: self.options.clone(),
            }),
            Err(diagnostics) => Err(Failure::wrong(sources, diagnostics)),
        }
    }
}

/// A parsed program after lowering.
struct Lowered {
    parsed: Parsed,
    program: Program,
    words: Words,
    filter: Option<Formula>,
}

fn parse(front_end: &dyn FrontEnd, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let (length, most) = (input.text().len(), front_end.most_bytes());
    if length > most {
        let message = format!(
            "the file is too large: {length} bytes, and at most {most} ({} MiB) of a {} file are read",
            most >> 20,
            front_end.name()
        );
        return Err(vec![Diagnostic::new(Span::default(), message)]);
    }
    front_end.parse(input)
}

/// Lowers the program together with the filter of a litmus test, which is temporarily added as the last property.
fn lower_with_filter(
    stop: &Stop<'_>,
    parsed: &mut Parsed,
    defines: &Defines,
    awaits: Awaits,
) -> Result<(Program, Option<Formula>), Vec<Diagnostic>> {
    let Some(filter) = parsed.view.as_ref().and_then(|view| view.filter.clone()) else {
        return Ok((lower::lower_unless(stop, &parsed.file, &parsed.calls, defines, awaits)?, None));
    };
    let name = filter.name.as_ref().map_or(String::new(), |name| name.text.clone());
    parsed.file.items.push(ast::Item::Property(filter));
    let program = lower::lower_unless(stop, &parsed.file, &parsed.calls, defines, awaits);
    parsed.file.items.pop();
    let mut program = program?;
    let position = program.properties.iter().position(|p| p.name == name);
    let filter = position.and_then(|at| program.properties.remove(at).formula().cloned());
    Ok((program, filter))
}
