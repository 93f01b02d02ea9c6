//! Events of programs: texts change, programs are read and examined, and results are published.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use fencewright::engines::Checked;
use fencewright::program::MemoryModel;
use lsp_server::ErrorCode;
use lsp_types::notification::{self as notes, Notification as _};
use lsp_types::{MessageType, PublishDiagnosticsParams, Uri};
use serde_json::{Value, json};

use crate::answers::{Answers, word};
use crate::check::Found;
use crate::diagnostics::{ByFile, Writer, warning};
use crate::load::{Answer, Outcome};
use crate::places::Places;
use crate::server::{Refusal, Server, not_open};
use crate::session::{Event, Program, What};
use crate::uri::path_of;

impl Server {
    /// Starts a new revision of each program that the document is part of, including the document itself if it is a program. If the document is no
    /// longer a program, its program is removed.
    pub(crate) fn revise(&mut self, uri: &Uri, at_once: bool) {
        let path = path_of(uri);
        let mut programs = self.session.with_file(uri, path.as_deref());
        let document = self.documents.get(uri);
        let is_program = document.is_some_and(|document| document.front_end(uri).is_some());
        if is_program && !programs.contains(uri) {
            programs.push(uri.clone());
        }
        for program in programs {
            if program == *uri && !is_program {
                // The document was a program and no longer is one.
                if let Some(left) = self.session.forget(&program) {
                    self.leave(left);
                }
                self.publish(&program, ByFile::new());
                continue;
            }
            let left = self.session.revise(&program, at_once);
            self.leave(left);
        }
    }

    /// Closes a document. The programs that include the document are read again, with the text of the file on the disk.
    pub(crate) fn close(&mut self, uri: &Uri) -> Result<(), Refusal> {
        self.documents.close(uri).ok_or_else(|| not_open(uri))?;
        if let Some(left) = self.session.forget(uri) {
            self.leave(left);
        }
        self.publish(uri, ByFile::new());
        self.revise(uri, true);
        Ok(())
    }

    /// Rejects the requests that wait for a program that was closed, or for verdicts of a revision that was replaced. (Requests that wait for reading
    /// have moved on to the next revision.)
    pub(crate) fn leave(&mut self, left: Program) {
        let changed = || (ErrorCode::ContentModified, "the text has changed".to_owned());
        left.waiting.into_iter().for_each(|id| self.reply(id, Err(changed())));
        left.deferred.into_iter().for_each(|request| self.reply(request.id, Err(changed())));
        self.end_progress(left.run);
    }

    /// Examines a program now, or as soon as it has been read if its reading is not finished.
    pub(crate) fn check(&mut self, uri: &Uri) {
        self.session.hurry(uri);
        let Some(program) = self.session.get_mut(uri) else { return };
        if program.is_pending() {
            program.wanted = true;
            return;
        }
        program.wanted = false;
        if program.answers.is_none() {
            let waiting = std::mem::take(&mut program.waiting);
            let why = (ErrorCode::RequestFailed, "there is no program to check: see its errors".to_owned());
            return waiting.into_iter().for_each(|id| self.reply(id, Err(why.clone())));
        }
        let earlier = program.run.take();
        earlier.iter().for_each(|run| _ = run.token.cancel());
        self.end_progress(earlier);
        if self.session.examine(uri, &Arc::clone(&self.settings)) {
            self.refresh_lenses();
        }
    }

    /// Handles an event of a program. Events of old revisions are dropped.
    pub(crate) fn happened(&mut self, event: Event) {
        let Event { uri, revision, what } = event;
        if self.session.at(&uri, revision).is_none() {
            return;
        }
        match what {
            What::Loaded(answer) => self.loaded(&uri, answer),
            What::Begun => {
                let run = self.session.get_mut(&uri).and_then(|program| program.run.as_mut());
                run.into_iter().for_each(|run| run.begun = Some(Instant::now()));
            }
            What::Found(found) => self.found(&uri, found),
            What::Ended(broken) => {
                let Some(program) = self.session.get_mut(&uri) else { return };
                let (run, waiting) = (program.run.take(), std::mem::take(&mut program.waiting));
                program.answers.iter_mut().for_each(|answers| answers.checking = false);
                self.end_progress(run);
                if let Some(why) = broken {
                    let failed = || (ErrorCode::InternalError, why.clone());
                    waiting.into_iter().for_each(|id| self.reply(id, Err(failed())));
                    self.log(MessageType::ERROR, why);
                }
                self.refresh_lenses();
            }
        }
    }

    pub(crate) fn loaded(&mut self, uri: &Uri, Answer { outcome, files }: Answer) {
        self.session.loaded(uri, files);
        let (mut answers, mut said) = (None, None);
        let open = self.open();
        match outcome {
            Outcome::Program(program) => answers = Some(Answers::new(program)),
            Outcome::Wrong(error) => {
                let places = Places::new(&error.sources, uri, &open, self.client.encoding);
                let related = self.client.related;
                said = Some(
                    Writer { places: &places, sources: &error.sources, main: uri, related }.errors(&error),
                );
            }
            Outcome::TooMuch(why) => {
                said = Some(ByFile::from([(uri.clone(), vec![warning(why)])]));
            }
            Outcome::Part => said = Some(ByFile::new()),
            // Never happens: loading is cancelled only when a new revision starts, and events of old revisions were dropped above.
            Outcome::Cancelled => {}
        }
        let Some(program) = self.session.get_mut(uri) else { return };
        program.answers = answers;
        let (wanted, deferred) = (program.wanted, std::mem::take(&mut program.deferred));
        match said {
            Some(said) => self.publish(uri, said),
            None => self.publish_answers(uri),
        }
        deferred.into_iter().for_each(|request| self.ask(request));
        if wanted {
            self.check(uri);
        } else {
            self.refresh_lenses();
        }
    }

    pub(crate) fn found(&mut self, uri: &Uri, found: Found) {
        let (is_decided, is_shown) = match &found {
            Found::Decided => (true, false),
            Found::Warnings(_) | Found::Verdict(..) | Found::Needs(..) => (false, true),
            Found::Fixes(_) | Found::Known(..) => (false, false),
        };
        let Some(program) = self.session.get_mut(uri) else { return };
        let Some(answers) = &mut program.answers else { return };
        answers.add(found);
        if is_decided {
            let verdicts = json!(verdicts(answers));
            let waiting = std::mem::take(&mut program.waiting);
            waiting.into_iter().for_each(|id| self.reply(id, Ok(verdicts.clone())));
        }
        if is_shown {
            self.publish_answers(uri);
        }
        self.refresh_lenses();
    }

    /// The URIs of open files.
    pub(crate) fn open(&self) -> HashMap<PathBuf, Uri> {
        self.documents.uris()
    }

    /// Publishes the diagnostics for all results about a program.
    pub(crate) fn publish_answers(&mut self, uri: &Uri) {
        let open = self.open();
        let Some(answers) = self.session.get(uri).and_then(|program| program.answers.as_ref()) else {
            return;
        };
        let sources = &answers.program.loaded().sources;
        let places = Places::new(sources, uri, &open, self.client.encoding);
        let writer = Writer { places: &places, sources, main: uri, related: self.client.related };
        let said = writer.answers(answers);
        self.publish(uri, said);
    }

    /// Publishes the diagnostics of a program for each file, together with the diagnostics of other programs for the same files.
    pub(crate) fn publish(&mut self, program: &Uri, said: ByFile) {
        let before = self.published.insert(program.clone(), said).unwrap_or_default();
        let now = self.published.get(program).into_iter().flat_map(ByFile::keys);
        let files: BTreeSet<Uri> = before.keys().chain(now).chain([program]).cloned().collect();
        for uri in files {
            let mut all = self.published.values().filter_map(|said| said.get(&uri));
            let mut diagnostics = all.next().cloned().unwrap_or_default();
            // Two programs that include the same header have the same diagnostics about it; each is published once.
            for found in all.flatten() {
                if !diagnostics.contains(found) {
                    diagnostics.push(found.clone());
                }
            }
            let version = self.documents.get(&uri).map(|document| document.version);
            let params = PublishDiagnosticsParams { uri, diagnostics, version };
            self.notify(notes::PublishDiagnostics::METHOD, json!(params));
        }
        self.published.retain(|_, said| !said.is_empty());
    }

    /// The diagnostics of a program in its main file.
    pub(crate) fn said(&self, uri: &Uri) -> Vec<lsp_types::Diagnostic> {
        self.published.get(uri).and_then(|said| said.get(uri)).cloned().unwrap_or_default()
    }

    /// Applies new settings. If they change how programs are read, all programs are read again.
    pub(crate) fn set(&mut self, settings: &Value) {
        let (settings, complaints) = self.base.with(settings);
        self.complain(complaints);
        let read_differently = settings.options != self.settings.options;
        self.settings = Arc::new(settings);
        if read_differently {
            let programs: Vec<Uri> = self.session.iter_mut().map(|(uri, _)| uri.clone()).collect();
            for uri in programs {
                let left = self.session.revise(&uri, true);
                self.leave(left);
            }
        }
        self.refresh_lenses();
    }
}

/// The verdicts of a program, as the result of a request.
fn verdicts(answers: &Answers) -> Vec<Value> {
    let verdict = |((model, _), checked): (&(MemoryModel, usize), &Arc<Checked>)| {
        let (property, verdict, confirmed) = (&checked.property.name, word(checked), checked.checked());
        json!({"property": property, "model": model.name(), "verdict": verdict, "checked": confirmed})
    };
    answers.verdicts.iter().map(verdict).collect()
}
