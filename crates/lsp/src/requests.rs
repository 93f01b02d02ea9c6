//! Requests about documents. Requests about a program wait until it has been read; the main loop never blocks.

use std::collections::HashMap;
use std::sync::Arc;

use fencewright::lang::ast::File;
use fencewright::lang::{FrontEnd, fw};
use lsp_server::{ErrorCode, Request};
use lsp_types::request::{self as requests, Request as _};
use lsp_types::{
    CodeActionParams, CodeLensParams, DocumentFormattingParams, DocumentSymbolParams, DocumentSymbolResponse,
    ExecuteCommandParams, GotoDefinitionParams, GotoDefinitionResponse, Hover, HoverContents, HoverParams,
    Location, MarkupContent, MarkupKind, SemanticTokensParams, TextEdit, Uri,
};
use serde_json::{Value, json};

use crate::actions::Offer;
use crate::answers::Answers;
use crate::hover::hover;
use crate::lenses::lenses;
use crate::names::declaration;
use crate::places::Places;
use crate::server::{Refusal, Server, not_open, parsed};
use crate::speak::Shown;
use crate::symbols::symbols;
use crate::text::Lines;
use crate::tokens::tokens;
use crate::{CHECK, EXECUTION};

impl Server {
    /// Answers a request, at once or when a worker thread or a program has finished.
    pub(crate) fn ask(&mut self, request: Request) {
        let id = request.id.clone();
        if let Err(refused) = self.try_ask(request) {
            self.reply(id, Err(refused));
        }
    }

    fn try_ask(&mut self, request: Request) -> Result<(), Refusal> {
        let params = request.params.clone();
        match request.method.as_str() {
            requests::HoverRequest::METHOD => {
                let params: HoverParams = parsed(params)?;
                let at = params.text_document_position_params;
                self.with_program(request, &at.text_document.uri.clone(), move |asked| {
                    let offset = asked.lines().offset(at.position);
                    json!(hover(&asked.answers, offset).map(|shown| {
                        let range = asked.lines().range(shown.span.range());
                        let (kind, value) = match asked.server.markdown {
                            true => (MarkupKind::Markdown, shown.markdown(asked.language())),
                            false => (MarkupKind::PlainText, shown.plain()),
                        };
                        let contents = HoverContents::Markup(MarkupContent { kind, value });
                        Hover { contents, range: Some(range) }
                    }))
                })
            }
            requests::GotoDefinition::METHOD => {
                let params: GotoDefinitionParams = parsed(params)?;
                let at = params.text_document_position_params;
                self.with_text(request, &at.text_document.uri.clone(), move |asked| {
                    let lines = Lines::new(&asked.text, asked.encoding);
                    let found = declaration(&asked.file, &asked.text, lines.offset(at.position));
                    let location = |span: fencewright::program::Span| Location {
                        uri: asked.uri.clone(),
                        range: lines.range(span.range()),
                    };
                    json!(found.map(|found| GotoDefinitionResponse::Scalar(location(found.span))))
                })
            }
            requests::DocumentSymbolRequest::METHOD => {
                let params: DocumentSymbolParams = parsed(params)?;
                self.with_text(request, &params.text_document.uri, |asked| {
                    let lines = Lines::new(&asked.text, asked.encoding);
                    json!(DocumentSymbolResponse::Nested(symbols(&asked.file, &lines)))
                })
            }
            requests::SemanticTokensFullRequest::METHOD => {
                let params: SemanticTokensParams = parsed(params)?;
                self.with_text(request, &params.text_document.uri, |asked| {
                    let is_fw = asked.front_end.is_some_and(|front_end| front_end.name() == "fw");
                    json!(is_fw.then(|| tokens(&asked.file, &asked.text, asked.encoding)))
                })
            }
            requests::Formatting::METHOD => {
                let params: DocumentFormattingParams = parsed(params)?;
                self.format(request, &params.text_document.uri)
            }
            requests::CodeLensRequest::METHOD => {
                let params: CodeLensParams = parsed(params)?;
                let settings = Arc::clone(&self.settings);
                self.with_program(request, &params.text_document.uri, move |asked| {
                    json!(lenses(&asked.uri, &asked.answers, &asked.places(), &settings))
                })
            }
            requests::CodeActionRequest::METHOD => {
                let params: CodeActionParams = parsed(params)?;
                let shown = self.said(&params.text_document.uri);
                let versions = self.documents.versions();
                let uri = params.text_document.uri.clone();
                self.with_program(request, &uri, move |asked| {
                    let places = asked.places();
                    let offer = Offer {
                        answers: &asked.answers,
                        places: &places,
                        versions: &versions,
                        client: asked.server,
                    };
                    json!(offer.actions(params.range, &params.context, &shown))
                })
            }
            requests::ExecuteCommand::METHOD => {
                let params: ExecuteCommandParams = parsed(params)?;
                self.execute(request, &params)
            }
            method => Err((ErrorCode::MethodNotFound, format!("{method} is not known here"))),
        }
    }

    /// Answers a request about a program in a worker thread, after the program has been read. If the program has errors, the answer is `null`.
    fn with_program(
        &mut self,
        request: Request,
        uri: &Uri,
        answer: impl FnOnce(About) -> Value + Send + 'static,
    ) -> Result<(), Refusal> {
        self.documents.get(uri).ok_or_else(|| not_open(uri))?;
        let open = self.open();
        let (client, id) = (self.client, request.id.clone());
        let Some(program) = self.session.get_mut(uri) else {
            self.reply(id, Ok(Value::Null));
            return Ok(());
        };
        if program.is_pending() {
            program.deferred.push(request);
            self.session.hurry(uri);
            return Ok(());
        }
        let Some(answers) = program.answers.clone() else {
            self.reply(id, Ok(Value::Null));
            return Ok(());
        };
        let about = About { uri: uri.clone(), answers, open, server: client };
        self.later(id, move || Ok(answer(about)));
        Ok(())
    }

    /// Answers a request about the text of a document in a worker thread. A `.fw` text is parsed at once, even if it has errors; in other languages,
    /// the request waits until the program has been read and uses its syntax tree.
    fn with_text(
        &mut self,
        request: Request,
        uri: &Uri,
        answer: impl FnOnce(Read) -> Value + Send + 'static,
    ) -> Result<(), Refusal> {
        let document = self.documents.get(uri).ok_or_else(|| not_open(uri))?;
        let front_end = document.front_end(uri);
        let (text, uri, encoding) = (Arc::clone(&document.text), uri.clone(), self.client.encoding);
        if front_end.is_some_and(|front_end| front_end.name() == "fw") {
            self.later(request.id, move || {
                let file = fw::parse(&text).0;
                Ok(answer(Read { uri, text, file, front_end, encoding }))
            });
            return Ok(());
        }
        self.with_program(request, &uri.clone(), move |about| {
            let file = about.answers.program.loaded().file.clone();
            answer(Read { uri, text, file, front_end, encoding })
        })
    }

    fn format(&mut self, request: Request, uri: &Uri) -> Result<(), Refusal> {
        let document = self.documents.get(uri).ok_or_else(|| not_open(uri))?;
        let Some(front_end) = document.front_end(uri) else {
            self.reply(request.id, Ok(Value::Null));
            return Ok(());
        };
        let (text, encoding) = (Arc::clone(&document.text), self.client.encoding);
        self.later(request.id, move || match front_end.format(&text) {
            Some(Ok(new_text)) if new_text == *text => Ok(json!([])),
            Some(Ok(new_text)) => {
                let range = Lines::new(&text, encoding).range(0..text.len());
                Ok(json!([TextEdit { range, new_text }]))
            }
            Some(Err(errors)) => {
                let why = errors.first().map_or("", |error| &error.message);
                Err((ErrorCode::RequestFailed, format!("it cannot be formatted: {why}")))
            }
            None => {
                let why = format!("{} files have no one style; .fw files have", front_end.name());
                Err((ErrorCode::RequestFailed, why))
            }
        });
        Ok(())
    }

    fn execute(&mut self, request: Request, params: &ExecuteCommandParams) -> Result<(), Refusal> {
        let argument = |n: usize| params.arguments.get(n).cloned().unwrap_or_default();
        match params.command.as_str() {
            CHECK => {
                let uri: Uri = parsed(argument(0))?;
                self.documents.get(&uri).ok_or_else(|| not_open(&uri))?;
                let Some(program) = self.session.get_mut(&uri) else {
                    return Err((ErrorCode::RequestFailed, "this is not a program".into()));
                };
                program.waiting.push(request.id);
                // If a check of this text with these settings is already running, no second one is started: its result answers this request too.
                let is_under_way = program.run.as_ref().is_some_and(|run| {
                    Arc::ptr_eq(&run.settings, &self.settings) && !run.token.is_cancelled()
                });
                if !(is_under_way && program.answers.as_ref().is_some_and(|answers| answers.checking)) {
                    self.check(&uri);
                }
                Ok(())
            }
            EXECUTION => {
                let uri: Uri = parsed(argument(0))?;
                let (property, model): (String, String) = (parsed(argument(1))?, parsed(argument(2))?);
                let program = self.session.get(&uri).ok_or_else(|| not_open(&uri))?;
                let answers = program.answers.clone();
                let answers = answers.filter(|answers| answers.named(&property, &model).is_some());
                let Some(answers) = answers else {
                    let why = format!("there is no verdict on `{property}` under {model} yet");
                    return Err((ErrorCode::RequestFailed, why));
                };
                let about = About { uri, answers, open: self.open(), server: self.client };
                let (pages, for_editor) = (self.settings.pages, self.settings.shows_texts);
                self.shown_later(request.id, move || about.shown(&property, &model, pages, for_editor));
                Ok(())
            }
            other => Err((ErrorCode::InvalidParams, format!("there is no command {other}"))),
        }
    }
}

/// The data for a request about a program.
struct About {
    uri: Uri,
    answers: Answers,
    open: HashMap<std::path::PathBuf, Uri>,
    server: crate::client::Client,
}

impl About {
    fn places(&self) -> Places<'_> {
        Places::new(&self.answers.program.loaded().sources, &self.uri, &self.open, self.server.encoding)
    }

    fn lines(&self) -> Lines<'_> {
        Lines::new(&self.answers.program.loaded().sources.main().text, self.server.encoding)
    }

    fn language(&self) -> &'static str {
        self.answers.program.loaded().front_end.name()
    }

    /// The execution or proof behind a verdict.
    fn shown(&self, property: &str, model: &str, pages: bool, for_editor: bool) -> Option<Shown> {
        let (model, checked) = self.answers.named(property, model)?;
        let places = self.places();
        let uri = |(id, _)| places.file(id).map(|(uri, _)| uri.clone());
        Some(Shown {
            title: format!("{property} under {}", model.name()),
            text: self.answers.told(model, checked),
            page: pages.then(|| self.answers.page(model, checked, for_editor)),
            files: pages.then(|| self.answers.program.loaded().sources.iter().map(uri).collect()),
        })
    }
}

/// The data for a request about a text.
struct Read {
    uri: Uri,
    text: Arc<str>,
    file: File,
    front_end: Option<&'static dyn FrontEnd>,
    encoding: crate::text::Encoding,
}
