//! From bytes to a program: decode, recognise the format, parse or import, lower.

use fencewright_program::{Formula, Program, Span};

use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::fw;
use crate::import::{self, Format, Imported, View};
use crate::lower::{self, Defines};
use crate::source::{self, SourceFile};
use crate::stop::Stop;

/// A program with everything needed to talk about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The text, for messages.
    pub source: SourceFile,
    /// What it was written in.
    pub format: Format,
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
    /// The text, for messages.
    pub source: SourceFile,
    /// What is wrong with it, at least one thing.
    pub diagnostics: Vec<Diagnostic>,
}

/// Loads a program. The format is recognised unless it is given; `defines` override top-level constants.
pub fn load(
    name: &str,
    bytes: &[u8],
    format: Option<Format>,
    defines: &Defines,
) -> Result<Loaded, Box<LoadError>> {
    match load_unless(&Stop::never(), name, bytes, format, defines) {
        Ok(loaded) => Ok(loaded),
        Err(Failure::Wrong(error)) => Err(error),
        Err(Failure::Stopped) => unreachable!("nobody asks to stop"),
    }
}

/// Why there is no program.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Something is wrong with the text.
    Wrong(Box<LoadError>),
    /// Somebody asked to stop.
    Stopped,
}

/// Loads a program as [`load`] does, unless `stop` says to stop.
pub fn load_unless(
    stop: &Stop<'_>,
    name: &str,
    bytes: &[u8],
    format: Option<Format>,
    defines: &Defines,
) -> Result<Loaded, Failure> {
    let wrong = |source, diagnostics| Failure::Wrong(Box::new(LoadError { source, diagnostics }));
    let text = match source::decode(bytes) {
        Ok(text) => text,
        Err(diagnostic) => return Err(wrong(SourceFile::lossy(name, bytes), vec![diagnostic])),
    };
    let format = format.unwrap_or_else(|| import::detect(name, &text));
    let source = SourceFile::new(name, text);
    let lowered = parse(&source, format, stop).and_then(|mut imported| {
        let (program, filter) = lower_with_filter(stop, &mut imported, defines)?;
        Ok((imported, program, filter))
    });
    match lowered {
        _ if stop.was_stopped() => Err(Failure::Stopped),
        Ok((Imported { file, name, notes, view }, program, filter)) => {
            Ok(Loaded { source, format, file, program, name, notes, view, filter })
        }
        Err(diagnostics) => Err(wrong(source, diagnostics)),
    }
}

/// Lowers the program and the filter of a litmus test, which for that time is the last property.
fn lower_with_filter(
    stop: &Stop<'_>,
    imported: &mut Imported,
    defines: &Defines,
) -> Result<(Program, Option<Formula>), Vec<Diagnostic>> {
    let Some(filter) = imported.view.as_ref().and_then(|view| view.filter.clone()) else {
        return Ok((lower::lower_unless(stop, &imported.file, defines)?, None));
    };
    let name = filter.name.as_ref().map_or(String::new(), |name| name.text.clone());
    imported.file.items.push(ast::Item::Property(filter));
    let program = lower::lower_unless(stop, &imported.file, defines);
    imported.file.items.pop();
    let mut program = program?;
    let position = program.properties.iter().position(|p| p.name == name);
    let filter = position.and_then(|at| program.properties.remove(at).formula().cloned());
    Ok((program, filter))
}

/// The longest text of another tool that is read: 4 MiB. Importers are not asked to stop; so much takes them a fraction of a second.
const MAX_IMPORTED_BYTES: usize = 4 << 20;

fn parse(source: &SourceFile, format: Format, stop: &Stop<'_>) -> Result<Imported, Vec<Diagnostic>> {
    if format != Format::Fw && source.text.len() > MAX_IMPORTED_BYTES {
        let message = format!(
            "the file is too large: {} bytes, and at most {MAX_IMPORTED_BYTES} (4 MiB) of a {} file are read",
            source.text.len(),
            format.name()
        );
        return Err(vec![Diagnostic::new(Span::default(), message)]);
    }
    match format {
        Format::Fw => {
            let (file, diagnostics) = fw::parse_unless(stop, &source.text);
            match diagnostics.is_empty() {
                true => Ok(Imported { file, name: None, notes: Vec::new(), view: None }),
                false => Err(diagnostics),
            }
        }
        Format::Rmm => import::rmm(&source.text),
        Format::Trencher => import::trencher(&source.text),
        Format::Litmus => import::litmus(&source.text),
    }
}
