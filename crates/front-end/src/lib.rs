//! Front ends: the interface that every source language implements ([`FrontEnd`]), and the data that a front end produces.
//!
//! A front end parses a text into a syntax tree ([`Parsed`]), inserts fences into the text ([`edit`]), and provides facts that the tree does not
//! contain, for reports and fence synthesis ([`facts`], [`places`]).

#![forbid(unsafe_code)]

pub mod edit;
pub mod export;
pub mod facts;
mod loaded;
pub mod options;
pub mod orders;
pub mod places;
mod view;
pub mod words;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use fencewright_fw::ast;
use fencewright_program::{Call, FileId, Program, Span};
use fencewright_text::source::{self, MAX_FILE_BYTES};
use fencewright_text::{Diagnostic, SourceFile, Sources, Stop};

use crate::edit::{Change, Edit};
use crate::facts::Facts;
use crate::orders::Ordered;
use crate::places::Sites;
use crate::words::{Meaning, Words};

pub use loaded::Loaded;
pub use options::{Awaits, COptions, Compilation, MacroOption, Options, Spins};
pub use view::{Shown, ShownPlace, View};

/// A source language: detects, parses, prints and edits texts in it.
pub trait FrontEnd: Send + Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// The extension of files in this language, in lower case, if the extension alone identifies the language.
    fn extension(&self) -> Option<&'static str>;

    /// Whether the beginning of a text shows that the text is in this language. Used for files whose extension is not that of a language.
    fn detect(&self, text: &str) -> bool;

    /// Maximum size of a text in bytes.
    fn most_bytes(&self) -> usize {
        MAX_FILE_BYTES
    }

    /// Parses the main file and its includes. All spans refer to the text that the user wrote.
    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>>;

    /// The changes to one file that insert fences at these places, or the reason why that is not possible.
    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String>;

    /// The operations of a program that have memory orders; `None` if the language has no orders, so that only its fences can be weakened.
    fn orders(&self, _loaded: &Loaded, _stop: &Stop<'_>) -> Option<Vec<Ordered>> {
        None
    }

    /// A restriction that applies to all answers about this language, if the translation models less than the language allows.
    fn meaning(&self) -> Option<&'static str> {
        None
    }

    /// Completes a lowered program: adds the properties that are always checked in this language, whether or not the text states them, and resolves
    /// the names in `facts` to ids.
    fn finish(
        &self,
        program: &mut Program,
        facts: &Facts,
        _options: &Options,
        _stop: &Stop<'_>,
    ) -> Result<Words, Vec<Diagnostic>> {
        Ok(Words::new(program, facts))
    }

    /// Whether the importer duplicates code (by inlining, for example), so that a fence in the text occurs in every copy.
    fn copies_texts(&self) -> bool {
        false
    }

    /// Whether the language has a locked instruction that can replace a store.
    fn has_locked_stores(&self) -> bool {
        false
    }

    /// Whether this store can be replaced by a locked instruction.
    fn can_lock(&self, _store: &str) -> bool {
        true
    }

    /// The constants that `-D` overrides. An option that does not apply to this language is an error.
    fn constants(&self, options: &Options) -> Result<Vec<(String, i64)>, Diagnostic> {
        if let Some(option) = options.for_c_only() {
            let message =
                format!("{option} is for C programs, and this is read as a {} program", self.name());
            return Err(Diagnostic::new(Span::default(), message).help("--format c reads it as C"));
        }
        options.constants().map_err(|why| Diagnostic::new(Span::default(), why))
    }

    /// The options that apply to this language, if one command line reads files in several languages.
    fn own_options(&self, options: &Options) -> Options {
        Options { defines: options.defines.clone(), ..Options::default() }
    }

    /// Whether a file with this extension is a complete program; a header is not.
    fn is_program(&self, _extension: Option<&str>) -> bool {
        true
    }

    /// The properties besides `deadlock` that can be checked although the program does not state them.
    fn more_properties(&self) -> &'static [&'static str] {
        &[]
    }

    /// A sentence for reports of deadlocks: which statements of this language block, and which do not.
    fn blocked(&self) -> &'static str {
        "await, assume and locks block; a loop that is written out can move"
    }

    /// A value or a place as this language writes it. `line` is the line where the object in question is declared or allocated.
    fn word(&self, meaning: &Meaning<'_>, _line: &str) -> String {
        match meaning {
            Meaning::Number(number) => number.to_string(),
            Meaning::Undefined => "undefined".into(),
            Meaning::Null => "0".into(),
            Meaning::Function(name) => (*name).to_string(),
            Meaning::Free => "free".into(),
            Meaning::Held(thread) => format!("held by {thread}"),
            Meaning::Pointer(spot) | Meaning::Behind(spot) | Meaning::Place(spot) => {
                format!("{}{}", spot.object.noun, spot.path)
            }
        }
    }

    /// The range in `line` of the statement around `part`.
    fn statement_at(&self, line: &str, part: Range<usize>) -> Range<usize>;

    /// Prints a program in this language, or reports what the language cannot express.
    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>>;

    /// The formatted text, if the language has a formatter.
    fn format(&self, _text: &str) -> Option<Result<String, Vec<Diagnostic>>> {
        None
    }
}

impl fmt::Debug for dyn FrontEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The result of parsing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The syntax tree.
    pub file: ast::File,
    /// The name that the text gives itself, if any, as a litmus test does.
    pub name: Option<String>,
    /// Notes on the translation.
    pub notes: Vec<String>,
    /// The presentation of the final states; only for a litmus test.
    pub view: Option<View>,
    /// The calls that spans of the tree refer to, for importers that inline calls.
    pub calls: Vec<Call>,
    /// The statements beside which fences can be inserted; `None` if fences can be inserted beside every statement of the tree.
    pub sites: Option<Sites>,
    /// Warnings about the program.
    pub warnings: Vec<Diagnostic>,
    /// The spans of plain (non-atomic) accesses, which a compiler may move. A data race on them is reported.
    pub plain: HashSet<Span>,
    /// Facts about the source for reports, by the names of the syntax tree.
    pub facts: Facts,
    /// The [`Input::attempt`] at which the tree is smaller, although it then leaves more executions out; `None` if there is none.
    pub smaller: Option<usize>,
}

/// Reads an included file by its name; an error is the reason why it cannot be read.
pub type Open<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// The input of a front end.
pub struct Input<'a> {
    /// The main file, and the files included so far.
    pub sources: Sources,
    /// Tells whether parsing should stop.
    pub stop: &'a Stop<'a>,
    /// The options of the command line.
    pub options: &'a Options,
    /// 0 at first. If the tree is too large to be lowered, the program is parsed again with [`Parsed::smaller`].
    pub attempt: usize,
    open: &'a Open<'a>,
    /// The number of files read so far; `bytes` is their total size.
    files: usize,
    bytes: usize,
}

/// Maximum number of files of a program.
const MOST_FILES: usize = 10_000;

impl<'a> Input<'a> {
    /// A main file, with a function that opens other files.
    pub fn new(main: SourceFile, stop: &'a Stop<'a>, options: &'a Options, open: &'a Open<'a>) -> Self {
        let bytes = main.text.len();
        Input { sources: main.into(), stop, options, attempt: 0, open, files: 1, bytes }
    }

    /// The text of the main file.
    pub fn text(&self) -> &str {
        &self.sources.main().text
    }

    /// The included file with this name, read on first use; `included_at` is the span of the include directive.
    pub fn include(&mut self, name: &str, included_at: Span) -> Result<FileId, Diagnostic> {
        self.read(name).map_err(|unread| match unread {
            Unread::Closed(why) | Unread::Full(why) => {
                Diagnostic::new(included_at, format!("cannot include `{name}`: {why}"))
            }
            Unread::NoText(diagnostic) => diagnostic,
        })
    }

    /// The file with this name, read on first use.
    pub fn read(&mut self, name: &str) -> Result<FileId, Unread> {
        self.read_as(name, false)
    }

    /// The file with this name, which belongs to the system, read on first use. It need not be UTF-8, because comments in old headers are not.
    pub fn read_system(&mut self, name: &str) -> Result<FileId, Unread> {
        self.read_as(name, true)
    }

    fn read_as(&mut self, name: &str, system: bool) -> Result<FileId, Unread> {
        if let Some(known) = self.sources.named(name) {
            return Ok(known);
        }
        let bytes = (self.open)(name).map_err(Unread::Closed)?;
        if self.files >= MOST_FILES {
            return Err(Unread::Full(format!("more than {MOST_FILES} files are included")));
        }
        if self.bytes + bytes.len() > MAX_FILE_BYTES {
            return Err(Unread::Full("all files together are larger than 64 MiB".into()));
        }
        self.files += 1;
        self.bytes += bytes.len();
        if system {
            return Ok(self.sources.add_system(SourceFile::lossy(name, &bytes)));
        }
        match source::decode(&bytes) {
            Ok(text) => Ok(self.sources.add(SourceFile::new(name, text))),
            Err(error) => {
                let file = self.sources.add(SourceFile::lossy(name, &bytes));
                Err(Unread::NoText(Diagnostic { span: error.span.in_file(file), ..error }))
            }
        }
    }
}

/// The reason why an included file cannot be read.
pub enum Unread {
    /// The file cannot be opened, with the reason.
    Closed(String),
    /// The program has too many files, or files that are too large in total; says which.
    Full(String),
    /// The contents of the file are not text.
    NoText(Diagnostic),
}

/// The range around `part` between separators: from after the last of `separators` before `part` to after the first of `ends` at or after the end of
/// `part`.
pub fn between(line: &str, part: Range<usize>, separators: &[char], ends: &[char]) -> Range<usize> {
    let Range { start, end } = part;
    let first = line[..start].rfind(separators).map_or(0, |i| i + 1);
    let last = match line[..end].ends_with(ends) && end > start {
        true => end,
        false => line[end..].find(ends).map_or(line.len(), |i| end + i + 1),
    };
    first..last
}
