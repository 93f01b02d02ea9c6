//! A front end in one file, for a toy language with includes. Every message about a program in two files names the right file, and fences are
//! inserted into the right file.
//!
//! A line of the language is `include FILE`, `thread NAME`, `set X VALUE`, `get REGISTER X`, `fence`, or `forbid P Q`: the registers `r` of
//! threads P and Q are not both 0 in a final state.

use std::ops::Range;

use fencewright_engines::auto::Auto;
use fencewright_engines::{Confirm, Limits, Progress};
use fencewright_fences::{Options, Safety, Synthesis, Verdict, synthesise, text};
use fencewright_lang::ast::{
    Block, Declarator, Expr, ExprKind, File, Item, Name, Place, Property, PropertyKind, Statement,
    StatementKind, Thread, ThreadRef,
};
use fencewright_lang::edit::{Change, Edit, What};
use fencewright_lang::front_end::{Input, Parsed};
use fencewright_lang::load::Failure;
use fencewright_lang::{Diagnostic, FrontEnd, LoadError, Loaded, Loader, Sources, Stop};
use fencewright_program::{BinaryOp, FileId, MemoryModel, Span};
use fencewright_report::fences::{self, Edited, Question};
use fencewright_report::{Source, Style};

struct Toy;

impl FrontEnd for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("toy")
    }

    fn detect(&self, text: &str) -> bool {
        text.starts_with("thread")
    }

    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        let mut parser = Parser::default();
        parser.file(input, FileId::MAIN).map_err(|diagnostic| vec![diagnostic])?;
        let shared = parser.variables.into_iter().map(declarator).collect();
        let mut items = vec![Item::Shared(shared)];
        items.extend(parser.items);
        Ok(Parsed { file: File { items }, ..Parsed::default() })
    }

    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
        let change = |edit: &&Edit| match edit.what {
            What::Fence => {
                let at = text[..edit.place.offset as usize].rfind('\n').map_or(0, |n| n + 1);
                Ok(Change { at, length: 0, text: "fence\n".into() })
            }
            What::StoreFence | What::Swap => Err("there are only fences".to_owned()),
        };
        edits.iter().map(change).collect()
    }

    fn statement_at(&self, line: &str, _part: Range<usize>) -> Range<usize> {
        0..line.len()
    }

    fn print(&self, _loaded: &Loaded) -> Result<String, Vec<Diagnostic>> {
        Err(vec![Diagnostic::new(Span::default(), "toys are not written")])
    }
}

#[derive(Default)]
struct Parser {
    variables: Vec<Name>,
    items: Vec<Item>,
}

impl Parser {
    /// Parses a file with its includes.
    fn file(&mut self, input: &mut Input<'_>, id: FileId) -> Result<(), Diagnostic> {
        let text = input.sources.file(id).text.clone();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let span = Span::new(start, start + line.trim_end().len()).in_file(id);
            start += line.len();
            let name = |text: &str| Name { text: text.into(), span };
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["include", file] => {
                    let included = input.include(file, span)?;
                    self.file(input, included)?;
                }
                ["thread", thread] => {
                    let register = Statement {
                        labels: Vec::new(),
                        kind: StatementKind::Var(vec![declarator(name("r"))]),
                        span,
                    };
                    let body = Block { statements: vec![register], span };
                    self.items.push(Item::Thread(Thread { name: name(thread), family: None, body, span }));
                }
                ["set", x, value] => {
                    let value = value.parse().map_err(|_| Diagnostic::new(span, "this is not a number"))?;
                    self.variable(name(x));
                    self.statement(StatementKind::Assign(place(name(x)), int(value, span)), span)?;
                }
                ["get", r, x] => {
                    self.variable(name(x));
                    let value = Expr { kind: ExprKind::Place(place(name(x))), span };
                    self.statement(StatementKind::Assign(place(name(r)), value), span)?;
                }
                ["fence"] => self.statement(StatementKind::Fence, span)?,
                ["forbid", p, q] => {
                    let both = binary(BinaryOp::And, is_zero(name(p)), is_zero(name(q)));
                    self.items.push(Item::Property(Property {
                        name: Some(name("both")),
                        kind: PropertyKind::FinallyNever,
                        binders: Vec::new(),
                        formula: both,
                        span,
                    }));
                }
                _ => return Err(Diagnostic::new(span, "a toy cannot say this")),
            }
        }
        Ok(())
    }

    fn variable(&mut self, name: Name) {
        if self.variables.iter().all(|known| known.text != name.text) {
            self.variables.push(name);
        }
    }

    fn statement(&mut self, kind: StatementKind, span: Span) -> Result<(), Diagnostic> {
        let Some(Item::Thread(thread)) = self.items.last_mut() else {
            return Err(Diagnostic::new(span, "there is no thread yet"));
        };
        thread.body.statements.push(Statement { labels: Vec::new(), kind, span });
        Ok(())
    }
}

fn declarator(name: Name) -> Declarator {
    let span = name.span;
    Declarator { name, size: None, open: false, range: None, wraps: None, init: None, span }
}

fn place(name: Name) -> Place {
    Place { name, index: None }
}

fn int(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Int(value), span }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let span = left.span;
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span }
}

/// The formula that register `r` of a thread is 0.
fn is_zero(thread: Name) -> Expr {
    let span = thread.span;
    let register = Name { text: "r".into(), span };
    let kind =
        ExprKind::Register(ThreadRef { name: thread, index: None }, Place { name: register, index: None });
    binary(BinaryOp::Eq, Expr { kind, span }, int(0, span))
}

const MAIN: &str = "include lib.toy\nthread p\nset x 1\nget r y\nforbid p q\n";
const LIBRARY: &str = "thread q\nset y 1\nget r x\n";

/// Loads a program of these two files.
fn load(main: &str, library: &[u8]) -> Result<Loaded, Box<LoadError>> {
    let open = |name: &str| match name {
        "lib.toy" => Ok(library.to_vec()),
        _ => Err("no such file".to_owned()),
    };
    let loader = Loader {
        front_end: Some(&Toy),
        options: &fencewright_lang::Options::default(),
        stop: &Stop::never(),
        open: &open,
    };
    loader.load("main.toy", main.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error,
        Failure::Stopped(_) => panic!("nobody asks to stop"),
    })
}

fn check_message(main: &str, library: &[u8], message: &str, place: &str) {
    let error = load(main, library).expect_err("something is wrong");
    let shown = error.sources.render(&error.diagnostics, false);
    assert!(shown.contains(message) && shown.contains(&format!("┌─ {place}\n")), "{shown}");
    assert_eq!(error.sources.position(error.diagnostics[0].span).to_string(), place);
}

#[test]
fn diagnostics_name_the_file_they_are_about() {
    check_message(MAIN, b"thread q\nput y 1\n", "a toy cannot say this", "lib.toy:2:1");
    check_message("include lib.toy\nput y 1\n", LIBRARY.as_bytes(), "a toy cannot say this", "main.toy:2:1");
    // An error that is found only by lowering.
    check_message(MAIN, b"thread q\nset y 1\nget s x\n", "`s`", "lib.toy:3:1");
    check_message(MAIN, b"thread q\nset y \xff\n", "not UTF-8", "lib.toy:2:7");
    let missing = "cannot include `other.toy`: no such file";
    check_message("thread p\ninclude other.toy\n", b"", missing, "main.toy:2:1");
}

fn found(loaded: &Loaded) -> (Synthesis, Sources) {
    let model = MemoryModel::Tso;
    let goal = Safety { model, properties: Vec::new(), engine: Auto::default(), confirm: Confirm::default() };
    let placed = text::places(loaded, &[]).expect("places");
    let limits = Limits::default();
    let found = synthesise(&placed, &goal, &Options::default(), &limits, &Progress::default());
    assert_eq!(found.verdict, Verdict::Fixed);
    let edited = text::edited(loaded, &found, &goal, &limits).expect("an edit that is verified");
    (found, edited)
}

#[test]
fn fences_are_put_into_the_file_they_belong_to() {
    let loaded = load(MAIN, LIBRARY.as_bytes()).expect("a program");
    let (found, edited) = found(&loaded);
    let texts: Vec<(&str, &str)> = edited.iter().map(|(_, f)| (f.name.as_str(), f.text.as_str())).collect();
    let main = "include lib.toy\nthread p\nset x 1\nfence\nget r y\nforbid p q\n";
    assert_eq!(texts, [("main.toy", main), ("lib.toy", "thread q\nset y 1\nfence\nget r x\n")]);

    let source = Source::from(&loaded);
    let question = Question { goal: "safety", model: "tso", bound: None, seconds: 0.0 };
    let shown = fences::text(source, question, &found, true, Style::default());
    for part in
        ["main.toy:4:1: a fence before this", "lib.toy:3:1: a fence before this", "lib.toy:2  set y 1"]
    {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let edited = Edited { diff: None, written: false, error: None };
    let object: serde_json::Value =
        serde_json::from_str(&fences::json(source, question, &found, edited)).expect("JSON");
    assert_eq!(object["file"], "main.toy");
    let files: Vec<_> = object["fences"].as_array().expect("a list").iter().map(|f| &f["file"]).collect();
    assert_eq!(files, ["main.toy", "lib.toy"]);
    let steps = object["fences"][0]["needed_because"].as_array().expect("steps");
    for step in steps.iter().filter(|step| step["event"] == "step") {
        let file = if step["thread"] == "q" { Some("lib.toy") } else { None };
        assert_eq!(step["included_file"].as_str(), file, "{step}");
    }
}

#[test]
fn a_file_is_read_once() {
    let loaded = load("include lib.toy\ninclude lib.toy\n", b"").expect("an empty program");
    let names: Vec<&str> = loaded.sources.iter().map(|(_, file)| file.name.as_str()).collect();
    assert_eq!(names, ["main.toy", "lib.toy"]);
    assert_eq!(loaded.sources.named("lib.toy"), Some(FileId(1)));
}
