//! Outgoing messages: responses, notifications, requests to the client, and progress.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fencewright::engines::Token;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{self as notes, Notification as _};
use lsp_types::request::{self as requests, Request as _};
use lsp_types::{
    ConfigurationItem, ConfigurationParams, LogMessageParams, MessageType, ProgressParams,
    ProgressParamsValue, ProgressToken, ShowMessageParams, Uri, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport,
};
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Asked, Refusal, Server};
use crate::session::Run;
use crate::transport::Outgoing;
use crate::uri::uri_of;

/// A run shows no progress before it has taken this long.
const PATIENCE: Duration = Duration::from_millis(500);

/// An execution or a proof, for display.
#[derive(Serialize)]
pub struct Shown {
    /// The title of the panel or document.
    pub title: String,
    /// The execution or proof as text, as the command prints it.
    pub text: String,
    /// The HTML page, if the settings ask for pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// For each file number on the page, the URI of the file; `None` for a file that the editor cannot show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<Option<Uri>>>,
}

/// The result of a worker thread.
pub enum Answer {
    /// The result of a request.
    Value(Value),
    /// A text or page to show to the user.
    Shown(Box<Shown>),
}

impl Server {
    pub(crate) fn ask_settings(&mut self) {
        if self.client.configuration {
            let item = ConfigurationItem { scope_uri: None, section: Some("fencewright".into()) };
            let params = ConfigurationParams { items: vec![item] };
            self.ask_client(requests::WorkspaceConfiguration::METHOD, json!(params), Asked::Settings);
        }
    }

    pub(crate) fn complain(&mut self, complaints: Vec<String>) {
        for message in complaints {
            let params = ShowMessageParams { typ: MessageType::WARNING, message };
            self.notify(notes::ShowMessage::METHOD, json!(params));
        }
    }

    pub(crate) fn refresh_lenses(&mut self) {
        if self.client.refreshes_lenses {
            self.ask_client(requests::CodeLensRefresh::METHOD, Value::Null, Asked::Anything);
        }
    }

    pub(crate) fn begin_progress(&mut self, uri: &Uri, name: &str) {
        let run = self.session.get_mut(uri).and_then(|program| program.run.as_mut());
        let Some((shown, begun)) = run.and_then(|run| run.shown.as_mut()) else { return };
        if shown != name {
            return;
        }
        *begun = true;
        let title = uri.as_str().rsplit('/').next().unwrap_or_default();
        let begin = WorkDoneProgressBegin {
            title: format!("checking {title}"),
            cancellable: Some(true),
            ..WorkDoneProgressBegin::default()
        };
        self.progress(name, WorkDoneProgress::Begin(begin));
    }

    /// Asks the client to show the progress of runs that have taken a while.
    fn announce_progress(&mut self) {
        let takes_time = |run: &Run| run.begun.is_some_and(|begun| begun.elapsed() >= PATIENCE);
        let mut new = Vec::new();
        for (uri, program) in self.session.iter_mut() {
            let Some(run) = program.run.as_mut().filter(|run| run.shown.is_none() && takes_time(run)) else {
                continue;
            };
            self.numbers += 1;
            let name = format!("fencewright/{}", self.numbers);
            run.shown = Some((name.clone(), false));
            new.push((uri.clone(), name));
        }
        for (uri, name) in new {
            let params = WorkDoneProgressCreateParams { token: ProgressToken::String(name.clone()) };
            let asked = Asked::Progress(uri, name);
            self.ask_client(requests::WorkDoneProgressCreate::METHOD, json!(params), asked);
        }
    }

    pub(crate) fn report_progress(&mut self) {
        if self.client.progress {
            self.announce_progress();
        }
        let mut reports = Vec::new();
        for (_, program) in self.session.iter_mut() {
            let Some(Run { progress, shown: Some((name, true)), .. }) = &program.run else { continue };
            let states = progress.states.load(Ordering::Relaxed);
            let message = match progress.said() {
                note if states == 0 => note,
                note => format!("{note}, {states} states"),
            };
            let report = WorkDoneProgressReport {
                message: Some(message),
                cancellable: Some(true),
                ..WorkDoneProgressReport::default()
            };
            reports.push((name.clone(), report));
        }
        reports.into_iter().for_each(|(name, report)| self.progress(&name, WorkDoneProgress::Report(report)));
    }

    pub(crate) fn end_progress(&mut self, run: Option<Run>) {
        if let Some(Run { shown: Some((name, true)), .. }) = run {
            self.progress(&name, WorkDoneProgress::End(WorkDoneProgressEnd::default()));
        }
    }

    pub(crate) fn progress(&mut self, name: &str, progress: WorkDoneProgress) {
        let (token, value) = (ProgressToken::String(name.into()), ProgressParamsValue::WorkDone(progress));
        self.notify(notes::Progress::METHOD, json!(ProgressParams { token, value }));
    }

    /// Answers a request in a worker thread.
    pub(crate) fn later(
        &mut self,
        id: RequestId,
        answer: impl FnOnce() -> Result<Value, Refusal> + Send + 'static,
    ) {
        self.elsewhere(id, move || answer().map(Answer::Value));
    }

    /// Makes an execution or proof in a worker thread, to be shown afterwards.
    pub(crate) fn shown_later(
        &mut self,
        id: RequestId,
        show: impl FnOnce() -> Option<Shown> + Send + 'static,
    ) {
        let gone = || (ErrorCode::RequestFailed, "there is no such verdict".to_owned());
        self.elsewhere(id, move || show().map(|shown| Answer::Shown(Box::new(shown))).ok_or_else(gone));
    }

    fn elsewhere(
        &mut self,
        id: RequestId,
        answer: impl FnOnce() -> Result<Answer, Refusal> + Send + 'static,
    ) {
        let token = Token::default();
        self.pending.insert(id.clone(), token.clone());
        let (replies, broken) = (self.replies.0.clone(), self.replies.0.clone());
        let also = id.clone();
        // A request that was cancelled before a thread was free is not computed.
        let job = move || {
            if !token.is_cancelled() {
                let _ = replies.send((id, answer()));
            }
        };
        self.answerers.run(job, move |why| {
            let _ = broken.send((also, Err((ErrorCode::InternalError, why))));
        });
    }

    /// Handles the result of a worker thread. If the request was cancelled meanwhile, it has already been answered.
    pub(crate) fn replied(&mut self, id: RequestId, result: Result<Answer, Refusal>) {
        if self.pending.remove(&id).is_some() {
            let result = result.and_then(|answer| match answer {
                Answer::Value(value) => Ok(value),
                Answer::Shown(shown) => self.show(&shown),
            });
            self.reply(id, result);
        }
    }

    pub(crate) fn reply(&mut self, id: RequestId, result: Result<Value, Refusal>) {
        let response = match result {
            Ok(result) => Response::new_ok(id, result),
            Err((code, why)) => Response::new_err(id, code as i32, why),
        };
        self.send(response.into());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(Notification { method: method.into(), params }.into());
    }

    pub(crate) fn log(&mut self, typ: MessageType, message: String) {
        self.notify(notes::LogMessage::METHOD, json!(LogMessageParams { typ, message }));
    }

    pub(crate) fn ask_client(&mut self, method: &str, params: Value, asked: Asked) {
        self.numbers += 1;
        let id = RequestId::from(self.numbers);
        if !matches!(asked, Asked::Anything) {
            self.asked.insert(id.clone(), asked);
        }
        self.send(Request { id, method: method.into(), params }.into());
    }

    pub(crate) fn send(&mut self, message: Message) {
        // Sending fails only if the writer has ended because the client is gone; then the main loop will end too.
        let _ = self.to_client.send(Outgoing::Message(Box::new(message)));
    }

    /// Shows an execution or proof: as the result of the client's command; if the client cannot show such results, as a document; if it cannot show
    /// documents either, as a message.
    fn show(&mut self, shown: &Shown) -> Result<Value, Refusal> {
        let result = json!(shown);
        if self.settings.shows_texts {
            return Ok(result);
        }
        if !self.client.shows_documents {
            let params = ShowMessageParams { typ: MessageType::INFO, message: shown.text.clone() };
            self.notify(notes::ShowMessage::METHOD, json!(params));
            return Ok(result);
        }
        let failed = |error: std::io::Error| (ErrorCode::RequestFailed, format!("cannot write it: {error}"));
        if self.texts.is_none() {
            self.texts = Some(tempfile::Builder::new().prefix("fencewright-").tempdir().map_err(failed)?);
        }
        let folder = self.texts.as_ref().map(TempDir::path).unwrap_or(std::path::Path::new(""));
        let plain: String =
            shown.title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let (content, extension) = match &shown.page {
            Some(page) => (page, "html"),
            None => (&shown.text, "txt"),
        };
        let path = folder.join(format!("{plain:.100}.{extension}"));
        std::fs::write(&path, content).map_err(failed)?;
        if let Some(uri) = uri_of(&path) {
            // A page is opened in a browser.
            let params = json!({"uri": uri, "external": shown.page.is_some(), "takeFocus": true});
            self.ask_client(requests::ShowDocument::METHOD, params, Asked::Anything);
        }
        Ok(result)
    }
}
