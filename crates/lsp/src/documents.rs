//! The open documents, with their current texts in the editor. For an open document, the file on the disk is not read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use fencewright::lang::{FrontEnd, front_end};
use lsp_types::{TextDocumentContentChangeEvent, TextDocumentItem, Uri};

use crate::text::{Encoding, Lines};
use crate::uri::path_of;

/// An open document.
pub struct Document {
    /// The path of the document, if it is a file.
    pub path: Option<PathBuf>,
    /// The version number that the client gave its text.
    pub version: i32,
    /// The present text in the editor.
    pub text: Arc<str>,
    language: String,
}

impl Document {
    /// The path of the document, or its URI if it has no path. Files that it includes are searched for in the folder part of this name.
    pub fn name(&self, uri: &Uri) -> String {
        match &self.path {
            Some(path) => path.to_string_lossy().into_owned(),
            None => uri.as_str().to_owned(),
        }
    }

    /// The front end for the document; `None` if the document is not a program, for instance a header.
    pub fn front_end(&self, uri: &Uri) -> Option<&'static dyn FrontEnd> {
        let name = self.name(uri).to_ascii_lowercase();
        let extension = name.rsplit(['/', '\\']).next().and_then(|base| Some(base.rsplit_once('.')?.1));
        let by_name = front_end::ALL.into_iter().find(|f| extension.is_some() && f.extension() == extension);
        let language = match self.language.as_str() {
            "fencewright" => "fw",
            other => other.strip_prefix("fencewright-").unwrap_or(other),
        };
        let by_language = || front_end::named(language).filter(|f| f.is_program(extension));
        let by_text = || front_end::ALL.into_iter().find(|f| extension != Some("h") && f.detect(&self.text));
        by_name.or_else(by_language).or_else(by_text)
    }
}

/// All open documents.
#[derive(Default)]
pub struct Documents {
    open: HashMap<Uri, Document>,
}

/// A snapshot of the texts of open files.
pub type Texts = HashMap<PathBuf, Arc<str>>;

impl Documents {
    /// Adds a document that the client has opened.
    pub fn open(&mut self, item: TextDocumentItem) {
        let TextDocumentItem { uri, language_id: language, version, text } = item;
        let path = path_of(&uri);
        self.open.insert(uri, Document { path, version, text: text.into(), language });
    }

    /// Applies the client's changes to a document; returns whether it is open.
    pub fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> bool {
        let Some(document) = self.open.get_mut(uri) else { return false };
        let mut text = document.text.to_string();
        for change in changes {
            match change.range {
                Some(range) => {
                    let bytes = Lines::new(&text, encoding).bytes(range);
                    text.replace_range(bytes, &change.text);
                }
                None => text = change.text,
            }
        }
        (document.text, document.version) = (text.into(), version);
        true
    }

    /// Closes a document and returns it; `None` if it was not open.
    pub fn close(&mut self, uri: &Uri) -> Option<Document> {
        self.open.remove(uri)
    }

    /// The document that the client has opened under this URI; `None` if it is not open.
    pub fn get(&self, uri: &Uri) -> Option<&Document> {
        self.open.get(uri)
    }

    /// For the path of each open file, the URI that the client uses for it.
    pub fn uris(&self) -> HashMap<PathBuf, Uri> {
        self.open.iter().filter_map(|(uri, document)| Some((document.path.clone()?, uri.clone()))).collect()
    }

    /// The versions of all open documents.
    pub fn versions(&self) -> HashMap<Uri, i32> {
        self.open.iter().map(|(uri, document)| (uri.clone(), document.version)).collect()
    }

    /// The texts of all open documents that are files.
    pub fn texts(&self) -> Texts {
        let text = |document: &Document| Some((document.path.clone()?, Arc::clone(&document.text)));
        self.open.values().filter_map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsp_types::{Position, Range};
    use std::str::FromStr;

    fn document(uri: &str, language: &str, text: &str) -> (Uri, Documents) {
        let uri = Uri::from_str(uri).expect("a URI");
        let mut documents = Documents::default();
        let (language_id, text) = (language.into(), text.into());
        documents.open(TextDocumentItem { uri: uri.clone(), language_id, version: 1, text });
        (uri, documents)
    }

    #[test]
    fn which_documents_are_programs() {
        let name = |uri: &str, language: &str, text: &str| {
            let (uri, documents) = document(uri, language, text);
            documents.get(&uri).and_then(|document| document.front_end(&uri)).map(|f| f.name())
        };
        assert_eq!(name("file:///a.fw", "plaintext", ""), Some("fw"));
        assert_eq!(name("untitled:Untitled-1", "fencewright", ""), Some("fw"));
        assert_eq!(name("untitled:Untitled-2", "fencewright-litmus", ""), Some("litmus"));
        assert_eq!(name("file:///a.C", "cpp", ""), Some("c"));
        assert_eq!(name("file:///a.h", "c", "int x;"), None);
        assert_eq!(name("file:///a.txt", "plaintext", "thread t\ninitial q"), Some("trencher"));
        assert_eq!(name("file:///notes.txt", "plaintext", "thread { of thought }"), None);
        assert_eq!(name("file:///a.litmus", "plaintext", ""), Some("litmus"));
    }

    #[test]
    fn changes_come_one_after_the_other() {
        let (uri, mut documents) = document("file:///a.fw", "fencewright", "äb\n");
        let at = |line, character| Position { line, character };
        let change = |range, text: &str| TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: text.into(),
        };
        let changes = vec![
            change(Some(Range::new(at(0, 1), at(0, 2))), "𝛼"),
            change(Some(Range::new(at(0, 3), at(0, 3))), "!"),
            // The end before the start, and both beyond the end of the text.
            change(Some(Range::new(at(9, 9), at(0, 0))), "end"),
        ];
        assert!(documents.change(&uri, 2, changes, Encoding::Utf16));
        assert_eq!(documents.get(&uri).map(|d| (&*d.text, d.version)), Some(("ä𝛼!\nend", 2)));
        assert!(documents.close(&uri).is_some() && !documents.change(&uri, 3, vec![], Encoding::Utf16));
    }
}
