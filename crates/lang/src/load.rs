//! From bytes to a program: decode, recognise the format, parse or import, lower.

use fencewright_program::Program;

use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::fw;
use crate::import::{self, Format, Imported};
use crate::lower::{self, Defines};
use crate::source::{self, SourceFile};

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
    let text = match source::decode(bytes) {
        Ok(text) => text,
        Err(diagnostic) => {
            let source = SourceFile::lossy(name, bytes);
            return Err(Box::new(LoadError { source, diagnostics: vec![diagnostic] }));
        }
    };
    let format = format.unwrap_or_else(|| import::detect(name, &text));
    let source = SourceFile::new(name, text);
    match parse(&source, format).and_then(|imported| {
        let program = lower::lower(&imported.file, defines)?;
        Ok((imported, program))
    }) {
        Ok((Imported { file, name, notes }, program)) => {
            Ok(Loaded { source, format, file, program, name, notes })
        }
        Err(diagnostics) => Err(Box::new(LoadError { source, diagnostics })),
    }
}

fn parse(source: &SourceFile, format: Format) -> Result<Imported, Vec<Diagnostic>> {
    match format {
        Format::Fw => {
            let (file, diagnostics) = fw::parse(&source.text);
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
