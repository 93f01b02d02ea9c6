//! Positions in the sources of a program as locations that an editor can open.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use fencewright::lang::Sources;
use fencewright::program::{FileId, Span};
use lsp_types::{Location, Range, Uri};

use crate::text::{Encoding, Lines};
use crate::uri::{plain, uri_of};

/// The files of a program with their URIs and lines. Built-in headers are left out, because no editor can show them.
pub struct Places<'a> {
    files: BTreeMap<FileId, (Uri, Lines<'a>)>,
}

impl<'a> Places<'a> {
    /// The files of a program whose main file has this URI; `open` are the URIs of open files.
    pub fn new(sources: &'a Sources, main: &Uri, open: &HashMap<PathBuf, Uri>, encoding: Encoding) -> Self {
        let uri = |id: FileId, name: &str| match id {
            FileId::MAIN => Some(main.clone()),
            _ if sources.is_built_in(id) => None,
            _ => open.get(&plain(Path::new(name))).cloned().or_else(|| uri_of(Path::new(name))),
        };
        let files = sources
            .iter()
            .filter_map(|(id, file)| Some((id, (uri(id, &file.name)?, Lines::new(&file.text, encoding)))));
        Places { files: files.collect() }
    }

    /// The location of a span; `None` if no editor can show it.
    pub fn location(&self, span: Span) -> Option<Location> {
        let (uri, lines) = self.files.get(&span.file)?;
        Some(Location { uri: uri.clone(), range: lines.range(span.range()) })
    }

    /// The range of a span, if it is in the main file.
    pub fn range(&self, span: Span) -> Option<Range> {
        let (_, lines) = self.files.get(&FileId::MAIN).filter(|_| span.file == FileId::MAIN)?;
        Some(lines.range(span.range()))
    }

    /// The URI and the lines of a file.
    pub fn file(&self, id: FileId) -> Option<(&Uri, &Lines<'a>)> {
        self.files.get(&id).map(|(uri, lines)| (uri, lines))
    }

    /// The URIs of all files.
    pub fn uris(&self) -> impl Iterator<Item = &Uri> {
        self.files.values().map(|(uri, _)| uri)
    }
}
