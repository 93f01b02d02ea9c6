//! From bytes to a program: decode, recognise the language, parse, lower.

use std::path::Path;

use fencewright_program::{Formula, Program, Span};

use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::front_end::{self, FrontEnd, Input, Open, Parsed};
use crate::import::View;
use crate::lower::{self, Defines};
use crate::source::{self, SourceFile};
use crate::sources::Sources;
use crate::stop::Stop;

/// A program with everything needed to talk about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The texts, for messages.
    pub sources: Sources,
    /// What reads and writes the language of the texts.
    pub front_end: &'static dyn FrontEnd,
    /// Its syntax tree.
    pub file: ast::File,
    /// The program.
    pub program: Program,
    /// The name the text gives itself: that of a litmus test.
    pub name: Option<String>,
    /// What a reader should know about an imported program.
    pub notes: Vec<String>,
    /// How a litmus test shows its final states.
    pub view: Option<View>,
    /// Which final states of a litmus test count.
    pub filter: Option<Formula>,
}

/// Why a program could not be loaded.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// The texts, for messages.
    pub sources: Sources,
    /// What is wrong with it, at least one thing.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// What to call the program: the name it gives itself, otherwise that of its file without the extension.
    pub fn title(&self) -> String {
        let stem = || Some(Path::new(self.sources.name()).file_stem()?.to_string_lossy().into_owned());
        self.name.clone().or_else(stem).unwrap_or_else(|| self.sources.name().to_owned())
    }
}

/// Loads a program that includes no other files. The front end is recognised unless it is given; `defines` override top-level constants.
pub fn load(
    name: &str,
    bytes: &[u8],
    front_end: Option<&'static dyn FrontEnd>,
    defines: &Defines,
) -> Result<Loaded, Box<LoadError>> {
    let alone = |_: &str| Err("there is nowhere to read it from".to_owned());
    finished(Loader { front_end, defines, stop: &Stop::never(), open: &alone }.load(name, bytes))
}

/// Loads a program from texts that are there already, as those of a program that was loaded and edited.
pub fn load_again(
    sources: &Sources,
    front_end: &'static dyn FrontEnd,
    defines: &Defines,
) -> Result<Loaded, Box<LoadError>> {
    let open = |name: &str| match sources.named(name) {
        Some(file) => Ok(sources.file(file).text.clone().into_bytes()),
        None => Err("it was not included before".to_owned()),
    };
    let loader = Loader { front_end: Some(front_end), defines, stop: &Stop::never(), open: &open };
    finished(loader.load(sources.name(), sources.main().text.as_bytes()))
}

fn finished(result: Result<Loaded, Failure>) -> Result<Loaded, Box<LoadError>> {
    result.map_err(|failure| match failure {
        Failure::Wrong(error) => error,
        Failure::Stopped => unreachable!("nobody asks to stop"),
    })
}

/// Why there is no program.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Something is wrong with the text.
    Wrong(Box<LoadError>),
    /// Somebody asked to stop.
    Stopped,
}

/// How to load a program.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    /// The front end; recognised if it is not given.
    pub front_end: Option<&'static dyn FrontEnd>,
    /// What overrides top-level constants.
    pub defines: &'a Defines,
    /// Whether to go on.
    pub stop: &'a Stop<'a>,
    /// Reads the files that the program includes.
    pub open: &'a Open<'a>,
}

impl Loader<'_> {
    /// Loads the program whose main file has this name and these contents.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
        let wrong = |sources, diagnostics| Failure::Wrong(Box::new(LoadError { sources, diagnostics }));
        let text = match source::decode(bytes) {
            Ok(text) => text,
            Err(diagnostic) => return Err(wrong(SourceFile::lossy(name, bytes).into(), vec![diagnostic])),
        };
        let front_end = self.front_end.unwrap_or_else(|| front_end::detect(name, &text));
        let mut input = Input::new(SourceFile::new(name, text), self.stop, self.open);
        let lowered = parse(front_end, &mut input).and_then(|mut parsed| {
            let (program, filter) = lower_with_filter(self.stop, &mut parsed, self.defines)?;
            Ok((parsed, program, filter))
        });
        let sources = input.sources;
        match lowered {
            _ if self.stop.was_stopped() => Err(Failure::Stopped),
            Ok((Parsed { file, name, notes, view }, program, filter)) => {
                Ok(Loaded { sources, front_end, file, program, name, notes, view, filter })
            }
            Err(diagnostics) => Err(wrong(sources, diagnostics)),
        }
    }
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

/// Lowers the program and the filter of a litmus test, which for that time is the last property.
fn lower_with_filter(
    stop: &Stop<'_>,
    parsed: &mut Parsed,
    defines: &Defines,
) -> Result<(Program, Option<Formula>), Vec<Diagnostic>> {
    let Some(filter) = parsed.view.as_ref().and_then(|view| view.filter.clone()) else {
        return Ok((lower::lower_unless(stop, &parsed.file, defines)?, None));
    };
    let name = filter.name.as_ref().map_or(String::new(), |name| name.text.clone());
    parsed.file.items.push(ast::Item::Property(filter));
    let program = lower::lower_unless(stop, &parsed.file, defines);
    parsed.file.items.pop();
    let mut program = program?;
    let position = program.properties.iter().position(|p| p.name == name);
    let filter = position.and_then(|at| program.properties.remove(at).formula().cloned());
    Ok((program, filter))
}
