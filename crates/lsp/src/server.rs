//! The server: messages of the protocol, one after the other.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{self as notes, Notification as _};
use lsp_types::request::{self as requests, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, ConfigurationItem,
    ConfigurationParams, ExecuteCommandOptions, HoverProviderCapability, InitializeParams, InitializeResult,
    LogMessageParams, MessageType, OneOf, ProgressParams, ProgressParamsValue, ProgressToken,
    PublishDiagnosticsParams, SaveOptions, SemanticTokensFullOptions, SemanticTokensOptions,
    ServerCapabilities, ServerInfo, ShowMessageParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, Uri, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressCancelParams,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::actions::SOURCE_FENCES;
use crate::answers::{Answers, word};
use crate::check::Found;
use crate::client::Client;
use crate::diagnostics::{ByFile, Writer};
use crate::documents::Documents;
use crate::load::{Answer, Outcome};
use crate::places::Places;
use crate::pool::{Pool, caught};
use crate::session::{Event, Program, Run, Session, What};
use crate::settings::Settings;
use crate::tokens::legend;
use crate::transport::Outgoing;
use crate::uri::path_of;
use crate::{CHECK, EXECUTION, Environment};

/// How often it is told how far a run has come.
const TICK: Duration = Duration::from_millis(500);
/// So many requests are answered at the same time.
const ANSWERERS: usize = 2;

/// Why a request fails.
pub type Refusal = (ErrorCode, String);

/// How far the client has come with the protocol.
#[derive(PartialEq)]
enum Stage {
    /// It has not said what it can do.
    New,
    /// It may ask for anything.
    Ready,
    /// It takes leave.
    Leaving,
}

/// A request of ours that the client has not answered.
enum Asked {
    /// May progress be shown under this name, for this program?
    Progress(Uri, String),
    /// What are the settings?
    Settings,
    /// Nothing depends on the answer.
    Anything,
}

/// The server.
pub struct Server {
    to_client: Sender<Outgoing>,
    stage: Stage,
    pub(crate) client: Client,
    /// What the command line and the client's first message say.
    base: Settings,
    pub(crate) settings: Arc<Settings>,
    pub(crate) documents: Documents,
    pub(crate) session: Session,
    events: Receiver<Event>,
    answerers: Pool,
    replies: (Sender<Reply>, Receiver<Reply>),
    /// Requests that somebody answers elsewhere.
    pending: HashSet<RequestId>,
    /// What each program says about each file.
    published: BTreeMap<Uri, ByFile>,
    asked: HashMap<RequestId, Asked>,
    numbers: i32,
    /// Where texts are written that the client is asked to show.
    texts: Option<TempDir>,
}

/// An answer from elsewhere.
type Reply = (RequestId, Result<Value, Refusal>);

impl Server {
    /// A server with these settings; messages go here.
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
            pending: HashSet::new(),
            published: BTreeMap::new(),
            asked: HashMap::new(),
            numbers: 0,
            texts: None,
        }
    }

    /// Serves until the client has gone. Whether it took leave as it should.
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

    /// Handles a message. A panic is a defect of this program; it is told, and the next message is handled.
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
                    // What is open counts as it is on the screen.
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
            // Those that begin with `$/` may be ignored, and so is any other that is unknown.
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

    /// Makes new revisions of the programs that a document is part of, or a new program if it is one.
    fn revise(&mut self, uri: &Uri, at_once: bool) {
        let path = path_of(uri);
        let mut programs = self.session.with_file(uri, path.as_deref());
        let document = self.documents.get(uri);
        let is_program = document.is_some_and(|document| document.front_end(uri).is_some());
        if is_program && !programs.contains(uri) {
            programs.push(uri.clone());
        }
        for program in programs {
            if program == *uri && !is_program {
                // Its text is no longer that of a program.
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

    /// Closes a document. The programs that include it are read again, from the disk.
    fn close(&mut self, uri: &Uri) -> Result<(), Refusal> {
        self.documents.close(uri).ok_or_else(|| not_open(uri))?;
        if let Some(left) = self.session.forget(uri) {
            self.leave(left);
        }
        self.publish(uri, ByFile::new());
        self.revise(uri, true);
        Ok(())
    }

    /// Tells everybody who waits for an old revision that it is gone.
    fn leave(&mut self, left: Program) {
        let changed = || (ErrorCode::ContentModified, "the text has changed".to_owned());
        left.waiting.into_iter().for_each(|id| self.reply(id, Err(changed())));
        left.deferred.into_iter().for_each(|request| self.reply(request.id, Err(changed())));
        self.end_progress(left.run);
    }

    /// Examines a program, now or as soon as it has been read.
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
        let name = self.client.progress.then(|| {
            self.numbers += 1;
            format!("fencewright/{}", self.numbers)
        });
        if self.session.examine(uri, &Arc::clone(&self.settings), name.clone()) {
            self.refresh_lenses();
        }
        if let Some(name) = name {
            let params = WorkDoneProgressCreateParams { token: ProgressToken::String(name.clone()) };
            let asked = Asked::Progress(uri.clone(), name);
            self.ask_client(requests::WorkDoneProgressCreate::METHOD, json!(params), asked);
        }
    }

    /// Something has happened to a program. If that was about an old revision, nobody wants to know.
    fn happened(&mut self, event: Event) {
        let Event { uri, revision, what } = event;
        if self.session.at(&uri, revision).is_none() {
            return;
        }
        match what {
            What::Loaded(answer) => self.loaded(&uri, answer),
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

    fn loaded(&mut self, uri: &Uri, Answer { outcome, files }: Answer) {
        self.session.loaded(uri, files);
        let (mut answers, mut said) = (None, None);
        let open = self.open();
        match outcome {
            Outcome::Program(loaded) => answers = Some(Answers::new(loaded)),
            Outcome::Wrong(error) => {
                let places = Places::new(&error.sources, uri, &open, self.client.encoding);
                let related = self.client.related;
                said = Some(
                    Writer { places: &places, sources: &error.sources, main: uri, related }.errors(&error),
                );
            }
            Outcome::TooMuch(why) => {
                said = Some(ByFile::from([(uri.clone(), vec![crate::diagnostics::warning(why)])]));
            }
            Outcome::Part => said = Some(ByFile::new()),
            // Whoever cancels makes a new revision; this one would not have come here.
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

    fn found(&mut self, uri: &Uri, found: Found) {
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

    /// Publishes what is known about a program.
    fn publish_answers(&mut self, uri: &Uri) {
        let open = self.open();
        let Some(answers) = self.session.get(uri).and_then(|program| program.answers.as_ref()) else {
            return;
        };
        let sources = &answers.loaded.sources;
        let places = Places::new(sources, uri, &open, self.client.encoding);
        let writer = Writer { places: &places, sources, main: uri, related: self.client.related };
        let said = writer.answers(answers);
        self.publish(uri, said);
    }

    /// Publishes what a program says about files, together with what other programs say about the same files.
    fn publish(&mut self, program: &Uri, said: ByFile) {
        let before = self.published.insert(program.clone(), said).unwrap_or_default();
        let now = self.published.get(program).into_iter().flat_map(ByFile::keys);
        let files: BTreeSet<Uri> = before.keys().chain(now).chain([program]).cloned().collect();
        for uri in files {
            let all = self.published.values().filter_map(|said| said.get(&uri)).flatten();
            let mut diagnostics: Vec<lsp_types::Diagnostic> = Vec::new();
            // Two programs that include a header say the same about it.
            all.for_each(|found| {
                if !diagnostics.contains(found) {
                    diagnostics.push(found.clone());
                }
            });
            let version = self.documents.get(&uri).map(|document| document.version);
            let params = PublishDiagnosticsParams { uri, diagnostics, version };
            self.notify(notes::PublishDiagnostics::METHOD, json!(params));
        }
        self.published.retain(|_, said| !said.is_empty());
    }

    /// What is said about a program in its main file.
    pub(crate) fn said(&self, uri: &Uri) -> Vec<lsp_types::Diagnostic> {
        self.published.get(uri).and_then(|said| said.get(uri)).cloned().unwrap_or_default()
    }

    fn ask_settings(&mut self) {
        if self.client.configuration {
            let item = ConfigurationItem { scope_uri: None, section: Some("fencewright".into()) };
            let params = ConfigurationParams { items: vec![item] };
            self.ask_client(requests::WorkspaceConfiguration::METHOD, json!(params), Asked::Settings);
        }
    }

    /// Takes over settings. Programs are read again, because how they are read may have changed.
    fn set(&mut self, settings: &Value) {
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

    fn complain(&mut self, complaints: Vec<String>) {
        for message in complaints {
            let params = ShowMessageParams { typ: MessageType::WARNING, message };
            self.notify(notes::ShowMessage::METHOD, json!(params));
        }
    }

    fn refresh_lenses(&mut self) {
        if self.client.refreshes_lenses {
            self.ask_client(requests::CodeLensRefresh::METHOD, Value::Null, Asked::Anything);
        }
    }

    fn begin_progress(&mut self, uri: &Uri, name: &str) {
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

    fn report_progress(&mut self) {
        let mut reports = Vec::new();
        for (_, program) in self.session.iter_mut() {
            let Some(Run { progress, shown: Some((name, true)), .. }) = &program.run else { continue };
            let states = progress.states.load(std::sync::atomic::Ordering::Relaxed);
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

    fn end_progress(&mut self, run: Option<Run>) {
        if let Some(Run { shown: Some((name, true)), .. }) = run {
            self.progress(&name, WorkDoneProgress::End(WorkDoneProgressEnd::default()));
        }
    }

    fn progress(&mut self, name: &str, progress: WorkDoneProgress) {
        let (token, value) = (ProgressToken::String(name.into()), ProgressParamsValue::WorkDone(progress));
        self.notify(notes::Progress::METHOD, json!(ProgressParams { token, value }));
    }

    /// Has a request answered elsewhere.
    pub(crate) fn later(
        &mut self,
        id: RequestId,
        answer: impl FnOnce() -> Result<Value, Refusal> + Send + 'static,
    ) {
        self.pending.insert(id.clone());
        let (replies, broken) = (self.replies.0.clone(), self.replies.0.clone());
        let also = id.clone();
        let job = move || _ = replies.send((id, answer()));
        self.answerers.run(job, move |why| {
            let _ = broken.send((also, Err((ErrorCode::InternalError, why))));
        });
    }

    /// A request was answered elsewhere. If it was cancelled meanwhile, it has its answer.
    fn replied(&mut self, id: RequestId, result: Result<Value, Refusal>) {
        if self.pending.remove(&id) {
            self.reply(id, result);
        }
    }

    fn cancel(&mut self, id: RequestId) {
        let mut found = self.pending.remove(&id);
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

    pub(crate) fn reply(&mut self, id: RequestId, result: Result<Value, Refusal>) {
        let response = match result {
            Ok(result) => Response::new_ok(id, result),
            Err((code, why)) => Response::new_err(id, code as i32, why),
        };
        self.send(response.into());
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(Notification { method: method.into(), params }.into());
    }

    fn log(&mut self, typ: MessageType, message: String) {
        self.notify(notes::LogMessage::METHOD, json!(LogMessageParams { typ, message }));
    }

    fn ask_client(&mut self, method: &str, params: Value, asked: Asked) {
        self.numbers += 1;
        let id = RequestId::from(self.numbers);
        if !matches!(asked, Asked::Anything) {
            self.asked.insert(id.clone(), asked);
        }
        self.send(Request { id, method: method.into(), params }.into());
    }

    fn send(&mut self, message: Message) {
        // If nobody writes it, the client has gone, and the loop will end.
        let _ = self.to_client.send(Outgoing::Message(Box::new(message)));
    }

    /// Shows a text: the client gets it as the result of its command, or as a document if it cannot do anything with the result.
    pub(crate) fn show(&mut self, title: &str, text: String) -> Result<Value, Refusal> {
        let result = json!({"title": title, "text": text});
        if self.settings.shows_texts {
            return Ok(result);
        }
        if !self.client.shows_documents {
            let params = ShowMessageParams { typ: MessageType::INFO, message: text };
            self.notify(notes::ShowMessage::METHOD, json!(params));
            return Ok(result);
        }
        let failed = |error: std::io::Error| (ErrorCode::RequestFailed, format!("cannot write it: {error}"));
        if self.texts.is_none() {
            self.texts = Some(tempfile::Builder::new().prefix("fencewright-").tempdir().map_err(failed)?);
        }
        let folder = self.texts.as_ref().map(TempDir::path).unwrap_or(std::path::Path::new(""));
        let plain: String = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = folder.join(format!("{plain:.100}.txt"));
        std::fs::write(&path, &text).map_err(failed)?;
        if let Some(uri) = crate::uri::uri_of(&path) {
            let params = json!({"uri": uri, "external": false, "takeFocus": true});
            self.ask_client(requests::ShowDocument::METHOD, params, Asked::Anything);
        }
        Ok(result)
    }
}

/// The verdicts of a program, for whoever asked.
fn verdicts(answers: &Answers) -> Vec<Value> {
    let verdict = |((model, _), checked): (&(fencewright_program::MemoryModel, usize), &Arc<_>)| {
        let checked: &fencewright_engines::Checked = checked;
        let (property, verdict, confirmed) = (&checked.property.name, word(checked), checked.checked());
        json!({"property": property, "model": model.name(), "verdict": verdict, "checked": confirmed})
    };
    answers.verdicts.iter().map(verdict).collect()
}

/// Parameters of a message.
pub(crate) fn parsed<P: DeserializeOwned>(params: Value) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

pub(crate) fn not_open(uri: &Uri) -> Refusal {
    (ErrorCode::InvalidParams, format!("{} is not open", uri.as_str()))
}
