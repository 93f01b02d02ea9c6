//! From bytes to a program: decode, recognise the format, parse or import, lower.

use fencewright_program::Program;

use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::fw;
use crate::import::{self, Format, Imported};
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
    let lowered = parse(&source, format, stop).and_then(|imported| {
        let program = lower::lower_unless(stop, &imported.file, defines)?;
        Ok((imported, program))
    });
    match lowered {
        _ if stop.was_stopped() => Err(Failure::Stopped),
        Ok((Imported { file, name, notes }, program)) => {
            Ok(Loaded { source, format, file, program, name, notes })
        }
        Err(diagnostics) => Err(wrong(source, diagnostics)),
    }
}

fn parse(source: &SourceFile, format: Format, stop: &Stop<'_>) -> Result<Imported, Vec<Diagnostic>> {
    match format {
        Format::Fw => {
            let (file, diagnostics) = fw::parse_unless(stop, &source.text);
            match diagnostics.is_empty() {
                true => Ok(Imported { file, name: None, notes: Vec::new() }),
                false => Err(diagnostics),
            }
        }
        Format::Rmm => import::rmm(&source.text),
        Format::Trencher => import::trencher(&source.text),
        Format::Litmus => import::litmus(&source.text),
    }
}
