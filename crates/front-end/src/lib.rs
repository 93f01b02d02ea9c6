//! Front ends: what every language implements that programs are written in ([`FrontEnd`]), and what it hands over.
//!
//! A front end makes a syntax tree of a text ([`Parsed`]), puts fences into it ([`edit`]), and says what reports and questions about fences
//! need to know beside the tree ([`facts`], [`places`]).

#![forbid(unsafe_code)]

pub mod edit;
pub mod export;
pub mod facts;
mod loaded;
pub mod options;
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
use crate::places::Sites;
use crate::words::{Meaning, Words};

pub use loaded::Loaded;
pub use options::{Awaits, COptions, Options, Spins};
pub use view::{Shown, ShownPlace, View};

/// A language: how to recognise it, to read it, to show a statement of it, to put fences into it and to write it.
pub trait FrontEnd: Send + Sync {
    /// What it is called on the command line.
    fn name(&self) -> &'static str;

    /// The extension of its files, in lower case, if that is enough to know them.
    fn extension(&self) -> Option<&'static str>;

    /// Whether a text without such an extension is in this language, by how it begins.
    fn detect(&self, text: &str) -> bool;

    /// The longest text of it that is read, in bytes.
    fn most_bytes(&self) -> usize {
        MAX_FILE_BYTES
    }

    /// Parses the main file and whatever it includes. All spans point at the text that the user wrote.
    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>>;

    /// What has to be changed in the text of one file to put fences there; in words why that cannot be.
    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String>;

    /// What an answer about a program in this language is about, where that is less than the language says.
    fn meaning(&self) -> Option<&'static str> {
        None
    }

    /// Finishes a lowered program: adds the properties that every program in this language is asked for, whether or not its text states them,
    /// and resolves what is known about its parts to their ids.
    fn finish(
        &self,
        program: &mut Program,
        facts: &Facts,
        _options: &Options,
        _stop: &Stop<'_>,
    ) -> Result<Words, Vec<Diagnostic>> {
        Ok(Words::new(program, facts))
    }

    /// Whether its importer makes copies of texts that are written once, so that a fence in the text is one in every copy.
    fn copies_texts(&self) -> bool {
        false
    }

    /// Whether a locked instruction can be written in place of a store.
    fn has_locked_stores(&self) -> bool {
        false
    }

    /// Whether this store is one that a locked instruction can be written in place of.
    fn can_lock(&self, _store: &str) -> bool {
        true
    }

    /// The constants that `-D` gives other values. An option that means nothing in this language is an error.
    fn constants(&self, options: &Options) -> Result<Vec<(String, i64)>, Diagnostic> {
        if let Some(option) = options.for_c_only() {
            let message =
                format!("{option} is for C programs, and this is read as a {} program", self.name());
            return Err(Diagnostic::new(Span::default(), message).help("--format c reads it as C"));
        }
        options.constants().map_err(|why| Diagnostic::new(Span::default(), why))
    }

    /// Those of some options, given once for programs in several languages, that mean something in this one.
    fn own_options(&self, options: &Options) -> Options {
        Options { defines: options.defines.clone(), ..Options::default() }
    }

    /// Whether a file with this extension is a program if an editor says that it is in this language: a header is not.
    fn is_program(&self, _extension: Option<&str>) -> bool {
        true
    }

    /// The properties that any program can be asked for although it does not state them, other than `deadlock`.
    fn more_properties(&self) -> &'static [&'static str] {
        &[]
    }

    /// Which threads count as blocked in a deadlock, in words.
    fn blocked(&self) -> &'static str {
        "await, assume and locks block; a loop that is written out can move"
    }

    /// A number or a place as the author of the program would write it; `line` is where the object is declared or allocated that it is about.
    fn word(&self, meaning: &Meaning<'_>, _line: &str) -> String {
        match meaning {
            Meaning::Number(number) => number.to_string(),
            Meaning::Undefined => "undefined".into(),
            Meaning::Null => "0".into(),
            Meaning::Function(name) => (*name).to_string(),
            Meaning::Pointer(spot) | Meaning::Behind(spot) | Meaning::Place(spot) => {
                format!("{}{}", spot.object.noun, spot.path)
            }
        }
    }

    /// The statement around some bytes of a line, as bytes of that line.
    fn statement_at(&self, line: &str, part: Range<usize>) -> Range<usize>;

    /// A program written in this language, or what the language cannot say.
    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>>;

    /// The text in the one style of this language, if there is one.
    fn format(&self, _text: &str) -> Option<Result<String, Vec<Diagnostic>>> {
        None
    }
}

impl fmt::Debug for dyn FrontEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a front end makes of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The syntax tree.
    pub file: ast::File,
    /// The name the text gives itself: that of a litmus test.
    pub name: Option<String>,
    /// What a reader should know about the translation.
    pub notes: Vec<String>,
    /// How a litmus test shows its final states.
    pub view: Option<View>,
    /// The calls that spans of the tree name: those of a language whose importer makes copies of what is called.
    pub calls: Vec<Call>,
    /// Where fences can be put; everywhere between statements of the tree if nothing is said.
    pub sites: Option<Sites>,
    /// What somebody should look at although it is no error.
    pub warnings: Vec<Diagnostic>,
    /// The accesses that a compiler may move, by their places: they must not race.
    pub plain: HashSet<Span>,
    /// What it knows beside the syntax tree.
    pub facts: Facts,
}

/// Reads a file that another one includes; in words why that is not possible.
pub type Open<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// What a front end reads.
pub struct Input<'a> {
    /// The main file, and those included so far.
    pub sources: Sources,
    /// Whether to go on.
    pub stop: &'a Stop<'a>,
    /// What was said about it outside of its text.
    pub options: &'a Options,
    open: &'a Open<'a>,
}

impl<'a> Input<'a> {
    /// The main file, with a way to read others.
    pub fn new(main: SourceFile, stop: &'a Stop<'a>, options: &'a Options, open: &'a Open<'a>) -> Self {
        Input { sources: main.into(), stop, options, open }
    }

    /// The text of the main file.
    pub fn text(&self) -> &str {
        &self.sources.main().text
    }

    /// The file with this name, read if it is not known yet; `included_at` is where another file asks for it.
    pub fn include(&mut self, name: &str, included_at: Span) -> Result<FileId, Diagnostic> {
        self.read(name).map_err(|unread| match unread {
            Unread::Closed(why) => Diagnostic::new(included_at, format!("cannot include `{name}`: {why}")),
            Unread::NoText(diagnostic) => diagnostic,
        })
    }

    /// The file with this name, read if it is not known yet.
    pub fn read(&mut self, name: &str) -> Result<FileId, Unread> {
        if let Some(known) = self.sources.named(name) {
            return Ok(known);
        }
        let bytes = (self.open)(name).map_err(Unread::Closed)?;
        let so_far: usize = self.sources.iter().map(|(_, file)| file.text.len()).sum();
        if so_far + bytes.len() > MAX_FILE_BYTES {
            return Err(Unread::Closed("all files together are larger than 64 MiB".into()));
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

/// Why an included file cannot be read.
pub enum Unread {
    /// It cannot be opened, in words why.
    Closed(String),
    /// What is in it is no text.
    NoText(Diagnostic),
}

/// What stands between separators: from behind the last of `separators` before the part to behind the first of `ends` at or
/// after its end.
pub fn between(line: &str, part: Range<usize>, separators: &[char], ends: &[char]) -> Range<usize> {
    let Range { start, end } = part;
    let first = line[..start].rfind(separators).map_or(0, |i| i + 1);
    let last = match line[..end].ends_with(ends) && end > start {
        true => end,
        false => line[end..].find(ends).map_or(line.len(), |i| end + i + 1),
    };
    first..last
}
