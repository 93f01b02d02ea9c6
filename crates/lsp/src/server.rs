//! The server: handles the messages of the protocol one after the other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use fencewright::engines::Token;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{self as notes, Notification as _};
use lsp_types::request::{self as requests, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, ExecuteCommandOptions,
    HoverProviderCapability, InitializeParams, InitializeResult, MessageType, OneOf, ProgressToken,
    SaveOptions, SemanticTokensFullOptions, SemanticTokensOptions, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, Uri,
    WorkDoneProgressCancelParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::actions::SOURCE_FENCES;
use crate::client::Client;
use crate::diagnostics::ByFile;
use crate::documents::Documents;
use crate::pool::{Pool, caught};
use crate::session::{Event, Run, Session};
use crate::settings::Settings;
use crate::speak::Answer;
use crate::tokens::legend;
use crate::transport::Outgoing;
use crate::uri::path_of;
use crate::{CHECK, EXECUTION, Environment};

/// Interval between progress reports.
const TICK: Duration = Duration::from_millis(500);
/// Number of threads that answer requests.
const ANSWERERS: usize = 2;

/// The reason why a request fails: an error code and a message.
pub type Refusal = (ErrorCode, String);

/// The stage of the protocol that the client has reached.
#[derive(PartialEq)]
enum Stage {
    /// The client has not sent `initialize`.
    New,
    /// The client may send any request.
    Ready,
    /// The client has sent `shutdown`.
    Leaving,
}

/// A request of the server that the client has not answered.
pub(crate) enum Asked {
    /// Creates a progress token with this name for this program.
    Progress(Uri, String),
    /// Queries the settings of the editor.
    Settings,
    /// A request whose answer is ignored.
    Anything,
}

/// The state of the server: documents, programs, and open requests of both sides.
pub struct Server {
    pub(crate) to_client: Sender<Outgoing>,
    stage: Stage,
    pub(crate) client: Client,
    /// The settings of the command line and the initialization options.
    pub(crate) base: Settings,
    pub(crate) settings: Arc<Settings>,
    pub(crate) documents: Documents,
    pub(crate) session: Session,
    events: Receiver<Event>,
    pub(crate) answerers: Pool,
    pub(crate) replies: (Sender<Reply>, Receiver<Reply>),
    /// Requests that a worker thread answers, with the tokens that cancel them.
    pub(crate) pending: HashMap<RequestId, Token>,
    /// The diagnostics of each program, by file.
    pub(crate) published: BTreeMap<Uri, ByFile>,
    pub(crate) asked: HashMap<RequestId, Asked>,
    pub(crate) numbers: i32,
    /// The folder of the texts and pages that the client is asked to show; `None` before the first such request.
    pub(crate) texts: Option<TempDir>,
}

/// The result of a request that a worker thread has answered.
pub(crate) type Reply = (RequestId, Result<Answer, Refusal>);

impl Server {
    /// A server with these settings that sends its messages to `to_client`.
    pub fn new(settings: Settings, environment: Environment, to_client: Sender<Outgoing>) -> Self {
        let (events_in, events) = unbounded();
        Server {
            to_client,
            stage: Stage::New,
            client: Client::new(&Default::default()),
            base: settings.clone(),
            settings: Arc::new(settings),
            documents: Documents::default(),
            session: Session::new(environment, events_in),
            events,
            answerers: Pool::new("answering", ANSWERERS),
            replies: unbounded(),
            pending: HashMap::new(),
            published: BTreeMap::new(),
            asked: HashMap::new(),
            numbers: 0,
            texts: None,
        }
    }

    /// Serves until the client exits or disconnects. Returns whether the client sent `shutdown` before.
    pub fn run(mut self, incoming: &Receiver<Message>) -> bool {
        let mut ticked = Instant::now();
        loop {
            let running = self.session.iter_mut().any(|(_, program)| program.run.is_some());
            let due = self.session.next().into_iter().chain(running.then_some(ticked + TICK)).min();
            let timer = due.map_or_else(never, |due| after(due.saturating_duration_since(Instant::now())));
            let (events, replies) = (self.events.clone(), self.replies.1.clone());
            select! {
                recv(incoming) -> message => match message {
                    Ok(Message::Notification(note)) if note.method == notes::Exit::METHOD => break,
                    Ok(message) => self.guarded(message),
                    Err(_) => break,
                },
                recv(events) -> event => if let Ok(event) = event { self.happened(event); },
                recv(replies) -> reply => if let Ok((id, result)) = reply { self.replied(id, result); },
                recv(timer) -> _ => {}
            }
            self.session.read_due(&self.documents, &self.settings);
            if ticked.elapsed() >= TICK {
                self.report_progress();
                ticked = Instant::now();
            }
        }
        self.session.iter_mut().for_each(|(_, program)| {
            program.run.iter().for_each(|run| _ = run.token.cancel());
        });
        self.stage == Stage::Leaving
    }

    /// Handles a message. A panic is a bug: it is reported, and the next message is handled.
    fn guarded(&mut self, message: Message) {
        let id = match &message {
            Message::Request(request) => Some(request.id.clone()),
            Message::Response(_) | Message::Notification(_) => None,
        };
        if let Err(why) = caught(|| self.handle(message)) {
            match id {
                Some(id) => self.reply(id, Err((ErrorCode::InternalError, why))),
                None => self.log(MessageType::ERROR, why),
            }
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.request(request),
            Message::Notification(note) => self.notification(note),
            Message::Response(response) => self.response(response),
        }
    }

    fn request(&mut self, request: Request) {
        let id = request.id.clone();
        let refused = match (&self.stage, request.method.as_str()) {
            (Stage::New, requests::Initialize::METHOD) => {
                let result = parsed(request.params).and_then(|params| self.initialize(params));
                return self.reply(id, result);
            }
            (Stage::New, _) => (ErrorCode::ServerNotInitialized, "`initialize` comes first".to_owned()),
            (_, requests::Initialize::METHOD) => {
                (ErrorCode::InvalidRequest, "`initialize` comes only once".to_owned())
            }
            (Stage::Leaving, _) => (ErrorCode::InvalidRequest, "after `shutdown` comes `exit`".to_owned()),
            (Stage::Ready, requests::Shutdown::METHOD) => {
                self.stage = Stage::Leaving;
                self.session.iter_mut().for_each(|(_, program)| {
                    program.run.iter().for_each(|run| _ = run.token.cancel());
                });
                return self.reply(id, Ok(Value::Null));
            }
            (Stage::Ready, _) => return self.ask(request),
        };
        self.reply(id, Err(refused));
    }

    fn initialize(&mut self, params: InitializeParams) -> Result<Value, Refusal> {
        self.client = Client::new(&params.capabilities);
        let (settings, complaints) = self.base.with(&params.initialization_options.unwrap_or_default());
        self.base = settings;
        self.settings = Arc::new(self.base.clone());
        self.complain(complaints);
        self.stage = Stage::Ready;
        let result = InitializeResult {
            capabilities: self.capabilities(),
            server_info: Some(ServerInfo {
                name: "fencewright".into(),
                version: Some(env!("CARGO_PKG_VERSION").into()),
            }),
        };
        Ok(json!(result))
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            position_encoding: Some(self.client.encoding.kind()),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(SaveOptions { include_text: Some(false) }.into()),
                ..TextDocumentSyncOptions::default()
            })),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            definition_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            document_formatting_provider: Some(OneOf::Left(true)),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, SOURCE_FENCES]),
                ..CodeActionOptions::default()
            })),
            semantic_tokens_provider: Some(
                SemanticTokensOptions {
                    legend: legend(),
                    full: Some(SemanticTokensFullOptions::Bool(true)),
                    ..SemanticTokensOptions::default()
                }
                .into(),
            ),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: vec![CHECK.into(), EXECUTION.into()],
                ..ExecuteCommandOptions::default()
            }),
            ..ServerCapabilities::default()
        }
    }

    fn notification(&mut self, note: Notification) {
        if self.stage != Stage::Ready {
            return;
        }
        let method = note.method.clone();
        if let Err((_, why)) = self.notified(note) {
            self.log(MessageType::ERROR, format!("{method}: {why}"));
        }
    }

    fn notified(&mut self, note: Notification) -> Result<(), Refusal> {
        match note.method.as_str() {
            notes::Initialized::METHOD => self.ask_settings(),
            notes::DidOpenTextDocument::METHOD => {
                let params: lsp_types::DidOpenTextDocumentParams = parsed(note.params)?;
                let uri = params.text_document.uri.clone();
                self.documents.open(params.text_document);
                self.revise(&uri, true);
            }
            notes::DidChangeTextDocument::METHOD => {
                let params: lsp_types::DidChangeTextDocumentParams = parsed(note.params)?;
                let (uri, version) = (params.text_document.uri, params.text_document.version);
                if !self.documents.change(&uri, version, params.content_changes, self.client.encoding) {
                    return Err(not_open(&uri));
                }
                self.revise(&uri, false);
            }
            notes::DidCloseTextDocument::METHOD => {
                let params: lsp_types::DidCloseTextDocumentParams = parsed(note.params)?;
                self.close(&params.text_document.uri)?;
            }
            notes::DidSaveTextDocument::METHOD => {
                let params: lsp_types::DidSaveTextDocumentParams = parsed(note.params)?;
                let uri = params.text_document.uri;
                let path = path_of(&uri);
                if self.settings.check_on_save {
                    let programs = self.session.with_file(&uri, path.as_deref());
                    programs.iter().for_each(|program| self.check(program));
                }
            }
            notes::DidChangeWatchedFiles::METHOD => {
                let params: lsp_types::DidChangeWatchedFilesParams = parsed(note.params)?;
                for change in params.changes {
                    // For an open document, only its text in the editor matters, so changes of the file are ignored.
                    if self.documents.get(&change.uri).is_none() {
                        self.revise(&change.uri, false);
                    }
                }
            }
            notes::DidChangeConfiguration::METHOD => {
                let params: lsp_types::DidChangeConfigurationParams = parsed(note.params)?;
                match self.client.configuration {
                    true => self.ask_settings(),
                    false => self.set(params.settings.get("fencewright").unwrap_or(&params.settings)),
                }
            }
            notes::WorkDoneProgressCancel::METHOD => {
                let params: WorkDoneProgressCancelParams = parsed(note.params)?;
                let is_meant = |run: &Run| match (&params.token, &run.shown) {
                    (ProgressToken::String(token), Some((name, _))) => token == name,
                    _ => false,
                };
                let runs = self.session.iter_mut().filter_map(|(_, program)| program.run.as_ref());
                runs.filter(|run| is_meant(run)).for_each(|run| _ = run.token.cancel());
            }
            notes::Cancel::METHOD => {
                let params: lsp_types::CancelParams = parsed(note.params)?;
                let id = match params.id {
                    lsp_types::NumberOrString::Number(number) => RequestId::from(number),
                    lsp_types::NumberOrString::String(text) => RequestId::from(text),
                };
                self.cancel(id);
            }
            // Notifications whose names begin with `$/` may be ignored; so are all unknown ones.
            _ => {}
        }
        Ok(())
    }

    fn response(&mut self, response: Response) {
        match (self.asked.remove(&response.id), response.response_result) {
            (Some(Asked::Settings), Ok(settings)) => {
                self.set(&settings.get(0).cloned().unwrap_or_default());
            }
            (Some(Asked::Progress(uri, name)), Ok(_)) => self.begin_progress(&uri, &name),
            _ => {}
        }
    }

    fn cancel(&mut self, id: RequestId) {
        let pending = self.pending.remove(&id);
        let mut found = pending.is_some_and(|token| token.cancel());
        for (_, program) in self.session.iter_mut() {
            let waits = program.waiting.len() + program.deferred.len();
            program.deferred.retain(|request| request.id != id);
            if program.waiting.contains(&id) {
                program.waiting.retain(|waiting| *waiting != id);
                program.wanted = false;
                program.run.iter().for_each(|run| _ = run.token.cancel());
            }
            found |= program.waiting.len() + program.deferred.len() < waits;
        }
        if found {
            self.reply(id, Err((ErrorCode::RequestCanceled, "cancelled".into())));
        }
    }
}

/// Parses the parameters of a message.
pub(crate) fn parsed<P: DeserializeOwned>(params: Value) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

pub(crate) fn not_open(uri: &Uri) -> Refusal {
    (ErrorCode::InvalidParams, format!("{} is not open", uri.as_str()))
}
