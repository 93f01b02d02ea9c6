//! The language server, driven over its standard input and output as an editor would.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::*;
use fencewright::lang::fw::{Keyword, is_built_in};
use serde_json::{Value, json};

/// Maximum time to wait for a message, on any machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A client of the server, like an editor.
struct Editor {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Received messages that no test step has waited for yet.
    seen: VecDeque<Value>,
    numbers: i64,
}

impl Editor {
    /// Starts a server and sends it the capabilities of this client.
    fn new(arguments: &[&str], options: Value) -> Self {
        let mut editor = Editor::silent(arguments);
        let capabilities = json!({
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": {
                "publishDiagnostics": {"relatedInformation": true},
                "hover": {"contentFormat": ["markdown"]},
                "codeAction": {"disabledSupport": true},
            },
            "window": {"workDoneProgress": true},
            "workspace": {
                "codeLens": {"refreshSupport": true},
                "workspaceEdit": {"documentChanges": true, "changeAnnotationSupport": {}},
            },
        });
        let params = json!({"capabilities": capabilities, "initializationOptions": options});
        let answer = editor.ask("initialize", params);
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16", "{answer}");
        editor.tell("initialized", json!({}));
        editor
    }

    /// Starts a server without sending any message.
    fn silent(arguments: &[&str]) -> Self {
        let mut child =
            command().arg("lsp").args(arguments).stdin(Stdio::piped()).spawn().expect("the server starts");
        let input = child.stdin.take().expect("its input is piped");
        let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Editor { child, input, messages, seen: VecDeque::new(), numbers: 0 }
    }

    fn send_raw(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request; returns its id.
    fn request(&mut self, method: &str, params: Value) -> i64 {
        self.numbers += 1;
        let id = self.numbers;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the response to a request.
    fn answer(&mut self, id: i64) -> Value {
        self.wait("an answer", |message| message.get("method").is_none() && message["id"] == id)
    }

    /// Sends a request and returns its result.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that fails and returns the error code.
    fn refused(&mut self, method: &str, params: Value) -> i64 {
        let id = self.request(method, params);
        let answer = self.answer(id);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// Waits for a message that satisfies `such`, and keeps other messages for later. Requests of the server are answered with `null`.
    fn wait(&mut self, what: &str, such: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        if let Some(n) = self.seen.iter().position(&such) {
            return self.seen.remove(n).expect("it is there");
        }
        loop {
            let left = LIMIT.saturating_sub(start.elapsed());
            let message = self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("{what} does not come"));
            if let (Some(id), true) = (message.get("id"), message.get("method").is_some()) {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": null}));
            }
            if such(&message) {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "plaintext", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Replaces the whole text of a document.
    fn change(&mut self, uri: &str, version: i32, text: &str) {
        let params =
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]});
        self.tell("textDocument/didChange", params);
    }

    /// Waits for the diagnostics of a version of a document.
    fn diagnostics(&mut self, uri: &str, version: i32) -> Vec<Value> {
        let is_it = |message: &Value| {
            let params = &message["params"];
            message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params["version"] == version
        };
        let message = self.wait("diagnostics", is_it);
        message["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    /// Waits for the end of a run whose beginning was reported.
    fn ended(&mut self) {
        self.wait("the end", |m| m["method"] == "$/progress" && m["params"]["value"]["kind"] == "end");
    }

    /// Calls `ask` until it returns a result: once now, and again whenever the server announces new results.
    fn until<T>(&mut self, what: &str, ask: impl Fn(&mut Editor) -> Option<T>) -> T {
        loop {
            if let Some(answer) = ask(self) {
                return answer;
            }
            self.wait(what, |message| message["method"] == "workspace/codeLens/refresh");
        }
    }

    /// The titles of the lenses of a document, with their lines.
    fn lenses(&mut self, uri: &str) -> Vec<(u64, String)> {
        let lenses = self.ask("textDocument/codeLens", json!({"textDocument": {"uri": uri}}));
        let lens = |lens: &Value| {
            let line = lens["range"]["start"]["line"].as_u64().expect("a line");
            (line, lens["command"]["title"].as_str().expect("a title").to_owned())
        };
        lenses.as_array().expect("a list").iter().map(lens).collect()
    }

    fn hover(&mut self, uri: &str, line: u32, character: u32) -> String {
        let position = json!({"line": line, "character": character});
        let hover =
            self.ask("textDocument/hover", json!({"textDocument": {"uri": uri}, "position": position}));
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    fn actions(&mut self, uri: &str, line: u32) -> Vec<Value> {
        let at = json!({"line": line, "character": 0});
        let params = json!({
            "textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": {"diagnostics": []},
        });
        self.ask("textDocument/codeAction", params).as_array().expect("a list").clone()
    }

    /// Ends the session with `shutdown` and `exit`.
    fn quit(mut self) -> Outcome {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        drop(self.input);
        finish(self.child)
    }
}

/// Reads one message.
fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

/// Applies edits to a text; the positions of all edits refer to the original text. Only for ASCII.
fn edited(text: &str, edits: &[Value]) -> String {
    let offset = |at: &Value| {
        let line = at["line"].as_u64().expect("a line") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        start + at["character"].as_u64().expect("a column") as usize
    };
    let mut edits: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            (offset(&range["start"]), offset(&range["end"]), edit["newText"].as_str().expect("a text"))
        })
        .collect();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.0));
    let mut text = text.to_owned();
    edits.iter().for_each(|(start, end, new)| text.replace_range(start..end, new));
    text
}

/// The URI of a file of a test.
fn uri(files: &Files, name: &str) -> String {
    format!("file://{}", files.text(name))
}

#[test]
fn errors_are_shown_where_they_are_and_go_when_they_are_mended() {
    let mut editor = Editor::new(&[], json!({}));
    let uri = "untitled:Untitled-1.fw";
    // The comment has a character that is two units in UTF-16.
    let text = "shared x;\nthread p {\n    /* \u{1f600} */ x = y;\n}\n";
    editor.open(uri, text);
    let found = editor.diagnostics(uri, 1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["range"], range(2, 17, 18), "{found:?}");
    assert_eq!((&found[0]["severity"], &found[0]["source"]), (&json!(1), &json!("fencewright")));
    assert!(found[0]["message"].as_str().is_some_and(|m| m.contains("`y`")), "{found:?}");
    // Replaces one character, whose position is given in UTF-16 units.
    let change = json!([{"range": range(2, 17, 18), "text": "1"}]);
    let document = json!({"uri": uri, "version": 2});
    editor.tell("textDocument/didChange", json!({"textDocument": document, "contentChanges": change}));
    assert_eq!(editor.diagnostics(uri, 2), Vec::<Value>::new());
    // Closing the document clears its diagnostics.
    editor.change(uri, 3, "thread");
    assert!(!editor.diagnostics(uri, 3).is_empty());
    editor.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    let closed = editor.wait("diagnostics", |message| {
        message["method"] == "textDocument/publishDiagnostics" && message["params"].get("version").is_none()
    });
    assert_eq!(closed["params"]["diagnostics"], json!([]));
    assert_eq!(editor.quit().status, 0);
}

#[test]
fn columns_are_bytes_where_the_client_offers_that() {
    let mut editor = Editor::silent(&[]);
    let general = json!({"positionEncodings": ["utf-8", "utf-16"]});
    let answer = editor.ask("initialize", json!({"capabilities": {"general": general}}));
    assert_eq!(answer["capabilities"]["positionEncoding"], "utf-8");
    editor.tell("initialized", json!({}));
    editor.open("untitled:a.fw", "shared x;\nthread p { /* \u{1f600} */ x = y; }\n");
    assert_eq!(editor.diagnostics("untitled:a.fw", 1)[0]["range"], range(1, 26, 27));
    assert_eq!(editor.quit().status, 0);
}

#[test]
fn saving_checks_and_a_quick_fix_makes_it_safe() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let uri = uri(&files, "sb.fw");
    let mut editor = Editor::new(&[], json!({"showsTexts": true}));
    editor.open(&uri, STORE_BUFFERING);
    let property =
        STORE_BUFFERING.lines().position(|line| line.contains("never")).expect("a property") as u32;
    let titles = |lenses: &[(u64, String)]| lenses.iter().map(|(_, title)| title.clone()).collect::<Vec<_>>();
    let before = editor.lenses(&uri);
    assert!(
        before
            .iter()
            .any(|(line, title)| *line == u64::from(property) && title.contains(": check under tso"))
    );
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    let violated = editor.wait("the violation", |message| {
        message["params"]["diagnostics"][0]["message"]
            .as_str()
            .is_some_and(|message| message.ends_with("is violated under tso"))
    });
    let violation = &violated["params"]["diagnostics"][0];
    assert_eq!(violation["range"]["start"]["line"], property);
    let steps = violation["relatedInformation"].as_array().expect("the steps of the execution");
    assert!(steps.len() >= 4 && steps.iter().all(|step| step["location"]["uri"] == uri), "{steps:?}");
    let lenses = editor.lenses(&uri);
    assert!(
        lenses.iter().any(|(line, title)| *line == u64::from(property)
            && title.ends_with(": unsafe under tso — show the execution")),
        "{lenses:?}"
    );
    assert!(titles(&lenses).iter().any(|title| title.starts_with("tso: ")), "a lens above a thread");

    // The execution, as the command prints it.
    let name = violation["data"]["property"].clone();
    let arguments = json!([uri, name, "tso"]);
    let params = json!({"command": "fencewright.execution", "arguments": arguments});
    let shown = editor.ask("workspace/executeCommand", params);
    assert!(shown["text"].as_str().is_some_and(|text| text.contains("-> buffer of")), "{shown}");

    let about_fences =
        |action: &Value| action["title"].as_str().is_some_and(|title| title.contains("safe under tso"));
    let all: Vec<Value> = editor.until("fences", |editor| {
        let actions = editor.actions(&uri, property);
        let all: Vec<Value> = actions.into_iter().filter(about_fences).collect();
        (!all.is_empty()).then_some(all)
    });
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["title"], "insert the 2 fences that make it safe under tso");
    assert_eq!((&all[0]["kind"], &all[0]["isPreferred"]), (&json!("quickfix"), &json!(true)));
    let change = &all[0]["edit"]["documentChanges"][0];
    assert_eq!(
        (&change["textDocument"]["uri"], &change["textDocument"]["version"]),
        (&json!(uri), &json!(1))
    );
    let edits = change["edits"].as_array().expect("edits");
    // Each edit is annotated with its reason.
    for edit in edits {
        let reason = &all[0]["edit"]["changeAnnotations"][edit["annotationId"].as_str().expect("an id")];
        assert!(reason["description"].as_str().is_some_and(|why| why.contains("without it")), "{reason}");
    }
    // The action that inserts one of the two fences, offered on its line.
    let line = edits[0]["range"]["start"]["line"].as_u64().expect("a line") as u32;
    let at_fence = editor.actions(&uri, line);
    let single =
        |action: &&Value| action["title"].as_str().is_some_and(|t| t.contains("one of the 2 needed"));
    assert!(at_fence.iter().any(|action| single(&action)), "{at_fence:?}");
    assert!(at_fence.iter().any(|action| action["kind"] == "source.fencewright.fences"), "{at_fence:?}");

    // The edit is the same as that of `fences --write`, and makes the program safe.
    let fenced = edited(STORE_BUFFERING, edits);
    assert_eq!(run(["fences", "--write", &files.text("sb.fw")]).status, 0);
    assert_eq!(fenced, files.read("sb.fw"));
    editor.change(&uri, 2, &fenced);
    let checked =
        editor.ask("workspace/executeCommand", json!({"command": "fencewright.check", "arguments": [uri]}));
    let verdicts = checked.as_array().expect("verdicts");
    assert!(!verdicts.is_empty() && verdicts.iter().all(|v| v["verdict"] == "safe"), "{checked}");
    let lenses = editor.lenses(&uri);
    assert!(lenses.iter().any(|(_, title)| title.ends_with(": safe under tso")), "{lenses:?}");
    // The hover shows why a fence is needed, once the audit has finished.
    let line = fenced.lines().position(|line| line.contains("fence;")).expect("a fence") as u32;
    let column = fenced.lines().nth(line as usize).and_then(|l| l.find("fence;")).expect("a fence") as u32;
    let hover = editor.until("why a fence is needed", |editor| {
        Some(editor.hover(&uri, line, column)).filter(|hover| hover.contains("under tso"))
    });
    assert!(hover.contains("needed under tso: without it"), "{hover}");
    assert_eq!(editor.quit().status, 0);
}

#[test]
fn fences_that_do_nothing_are_faded_and_where_none_helps_the_fix_says_so() {
    let mut editor = Editor::new(&["--model", "all"], json!({"model": ["tso", "pso"]}));
    let uri = "untitled:idle.fw";
    editor.open(uri, "shared x;\nthread p {\n    x = 1;\n    fence;\n}\ninvariant small: x <= 1;\n");
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    let is_faded = |message: &Value| message["params"]["diagnostics"][0]["tags"] == json!([1]);
    let faded = editor.wait("a hint", is_faded)["params"]["diagnostics"][0].clone();
    assert_eq!(faded["message"], "this fence is not needed under tso and pso");
    assert_eq!(faded["range"]["start"]["line"], 3);
    let titles: Vec<String> = editor.lenses(uri).into_iter().map(|(_, title)| title).collect();
    assert!(titles.iter().any(|title| title == "small: safe under pso"), "{titles:?}");

    let uri = "untitled:unsafe.fw";
    editor.open(uri, UNSAFE);
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    let action = editor.until("a fix that cannot be made", |editor| editor.actions(uri, 0).pop());
    assert!(action.get("edit").is_none(), "{action}");
    let why = action["disabled"]["reason"].as_str().expect("a reason");
    assert_eq!(why, "what happens, happens under sc too: no fence can help");
    assert_eq!(editor.quit().status, 0);
}

const COUNTED: &str = "\
const LIMIT = 3;
shared count;

thread p {
    var r;
    r = count;
    if r < LIMIT {
        count = r + 1;
    }
done:
}

invariant bounded: count <= 1;
";

#[test]
fn hovers_definitions_symbols_tokens_and_formatting() {
    let mut editor = Editor::new(&[], json!({}));
    let uri = "untitled:counted.fw";
    editor.open(uri, COUNTED);
    assert!(editor.hover(uri, 1, 9).contains("shared count"), "before a proof, the declaration");
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    let hover = editor.until("what is known", |editor| {
        Some(editor.hover(uri, 7, 8)).filter(|hover| hover.contains("always"))
    });
    assert!(hover.contains("always under tso: `count is 0 or 1`"), "{hover}");
    assert!(hover.contains("when p is here: `count == 0`"), "{hover}");
    let register = editor.hover(uri, 6, 7);
    assert!(register.contains("`p.r == 0`"), "{register}");
    let label = editor.hover(uri, 9, 1);
    assert!(label.contains("label done") && label.contains("count is 0 or 1"), "{label}");
    assert!(editor.hover(uri, 12, 12).contains("safe under tso"));
    assert!(editor.hover(uri, 3, 7).contains("locations"));
    assert_eq!(editor.hover(uri, 2, 0), "");

    let at = |line: u32, character: u32| json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}});
    let definition = editor.ask("textDocument/definition", at(6, 11));
    assert_eq!(definition, json!({"uri": uri, "range": range(0, 6, 11)}));
    assert_eq!(editor.ask("textDocument/definition", at(2, 0)), Value::Null);

    let document = json!({"textDocument": {"uri": uri}});
    let symbols = editor.ask("textDocument/documentSymbol", document.clone());
    let names: Vec<&str> =
        symbols.as_array().expect("a list").iter().filter_map(|symbol| symbol["name"].as_str()).collect();
    assert_eq!(names, ["LIMIT", "count", "p", "bounded"]);
    assert_eq!(symbols[2]["children"][1]["name"], "done");
    let tokens = editor.ask("textDocument/semanticTokens/full", document);
    assert_eq!(tokens["data"].as_array().map(|data| data.len() % 5), Some(0), "{tokens}");

    let formatting =
        |uri: &str| json!({"textDocument": {"uri": uri}, "options": {"tabSize": 4, "insertSpaces": true}});
    assert_eq!(editor.ask("textDocument/formatting", formatting(uri)), json!([]));
    let ugly = "shared   x;thread p{x=1;}";
    editor.change(uri, 2, ugly);
    let edits = editor.ask("textDocument/formatting", formatting(uri));
    let formatted = edited(ugly, edits.as_array().expect("edits"));
    assert_eq!(formatted, run_with_input(["fmt", "-"], ugly.as_bytes()).stdout);
    editor.change(uri, 3, "thread {");
    assert_eq!(editor.refused("textDocument/formatting", formatting(uri)), -32803);
    assert_eq!(editor.quit().status, 0);
}

const PROGRAM: &str = "#include \"shared.h\"\n#include <pthread.h>\n#include <assert.h>
static void *run(void *unused) { turn = 1; return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); assert(turn == 1); }
";

#[test]
fn every_language_is_read_and_headers_count_as_they_are_on_the_screen() {
    let files = Files::new(&[("main.c", PROGRAM), ("shared.h", "static int turm;\n")]);
    let (main, header) = (uri(&files, "main.c"), uri(&files, "shared.h"));
    let mut editor = Editor::new(&["-D", "UNUSED=1"], json!({}));
    editor.open(&main, PROGRAM);
    let found = editor.diagnostics(&main, 1);
    assert!(found.iter().any(|d| d["message"].as_str().is_some_and(|m| m.contains("turn"))), "{found:?}");
    // The header is corrected in the editor but not on the disk. It is not a program by itself.
    editor.open(&header, "static int turn;\n");
    assert_eq!(editor.diagnostics(&main, 1), Vec::<Value>::new());
    // An error in the header is reported in the header.
    editor.change(&header, 2, "static int turn;\nint @;\n");
    let found = editor.diagnostics(&header, 2);
    assert_eq!(found[0]["range"]["start"]["line"], 1, "{found:?}");
    // A C file without `main` is a part of a program and has no error.
    editor.open("untitled:part.c", "int x;\n");
    assert_eq!(editor.diagnostics("untitled:part.c", 1), Vec::<Value>::new());
    for (name, text) in [
        ("a.rmm", "forbidden\n CS CS\n"),
        ("a.litmus", "X86 SB\n{ }\n P0 | P1 ;\n MOV [x],$1 | MUV [y],$1 ;\nexists (0:EAX=0)\n"),
        ("a.txt", "thread t\ninitial q\ntransition q r wrote x 1\n"),
    ] {
        let uri = format!("untitled:{name}");
        editor.open(&uri, text);
        assert!(!editor.diagnostics(&uri, 1).is_empty(), "{name}");
    }
    assert_eq!(editor.quit().status, 0);
}

/// A program that keeps every engine busy.
const ENDLESS: &str = "\
shared x = 1, y, z;
thread p { var r; loop { r = x + y * 3; x = r % 1000003; y = y + r; } }
thread q { var r; loop { r = y + z * 7; y = r % 1000033; z = z + r; } }
thread s { var r; loop { r = z + x * 5; z = r % 1000037; x = x + r; } }
invariant never_so: x != 987654321987;
";

#[test]
fn what_runs_can_be_cancelled_and_is_when_the_text_changes() {
    let mut editor = Editor::new(&["--timeout", "10m"], json!({"memory": 2048}));
    let uri = "untitled:endless.fw";
    editor.open(uri, ENDLESS);
    let check = json!({"command": "fencewright.check", "arguments": [uri]});
    let begun = |m: &Value| m["method"] == "$/progress" && m["params"]["value"]["kind"] == "begin";
    // The client cancels the request.
    let id = editor.request("workspace/executeCommand", check.clone());
    editor.wait("the beginning", begun);
    editor.tell("$/cancelRequest", json!({"id": id}));
    assert_eq!(editor.answer(id)["error"]["code"], -32800);
    editor.ended();
    // The user cancels the run by its progress display: the request is answered, with an unknown verdict.
    let id = editor.request("workspace/executeCommand", check.clone());
    let token = editor.wait("the beginning", begun)["params"]["token"].clone();
    editor.tell("window/workDoneProgress/cancel", json!({"token": token}));
    assert_eq!(editor.answer(id)["result"][0]["verdict"], "unknown");
    editor.ended();
    assert!(editor.lenses(uri)[0].1.contains("unknown under tso: "));
    // Saving has already started a run; a request for verdicts waits for this run.
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    let token = editor.wait("the beginning", begun)["params"]["token"].clone();
    let id = editor.request("workspace/executeCommand", check.clone());
    editor.tell("window/workDoneProgress/cancel", json!({"token": token}));
    assert_eq!(editor.answer(id)["result"][0]["verdict"], "unknown");
    editor.ended();
    // The text changes while a check runs; other requests are answered meanwhile.
    let id = editor.request("workspace/executeCommand", check);
    editor.wait("the beginning", begun);
    assert!(editor.lenses(uri)[0].1.contains("checking under tso"));
    editor.change(uri, 2, "shared x;\nthread p { x = 1; }\n");
    assert_eq!(editor.answer(id)["error"]["code"], -32801);
    editor.ended();
    assert_eq!(editor.diagnostics(uri, 2), Vec::<Value>::new());
    // The client ends the session while a check runs.
    editor.change(uri, 3, ENDLESS);
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    editor.wait("the beginning", begun);
    let leaving = Instant::now();
    assert_eq!(editor.quit().status, 0);
    assert!(leaving.elapsed() < Duration::from_secs(10), "{:?}", leaving.elapsed());
}

#[test]
fn executions_and_proofs_are_pages_if_that_is_set() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let uri = uri(&files, "sb.fw");
    let (check, show) = ("fencewright.check", "fencewright.execution");
    let command = |name: &str, arguments: Value| json!({"command": name, "arguments": arguments});
    // Pages for a panel of the editor.
    let mut editor = Editor::new(&[], json!({"showsTexts": true, "executions": "page"}));
    for (text, version, shown) in
        [(STORE_BUFFERING, 1, "data-execution=\"0\""), (COUNTED, 2, "<h3>Why it holds</h3>")]
    {
        match version {
            1 => editor.open(&uri, text),
            _ => editor.change(&uri, version, text),
        }
        let verdicts = editor.ask("workspace/executeCommand", command(check, json!([uri])));
        let about = json!([uri, verdicts[0]["property"], "tso"]);
        let answer = editor.ask("workspace/executeCommand", command(show, about));
        let page = answer["page"].as_str().expect("a page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains(shown), "{page}");
        assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"), "{page}");
        assert!(page.contains("--vscode-editor-background"), "it looks like the editor");
        assert!(answer["text"].as_str().is_some_and(|text| text.contains("under tso")), "{answer}");
        assert_eq!(answer["files"], json!([uri]));
    }
    assert_eq!(editor.quit().status, 0);

    // Pages for a browser, which the server asks the client to open.
    let mut editor = Editor::silent(&[]);
    let window = json!({"showDocument": {"support": true}});
    let options = json!({"executions": "page"});
    editor.ask("initialize", json!({"capabilities": {"window": window}, "initializationOptions": options}));
    editor.tell("initialized", json!({}));
    editor.open(&uri, STORE_BUFFERING);
    let verdicts = editor.ask("workspace/executeCommand", command(check, json!([uri])));
    editor.request("workspace/executeCommand", command(show, json!([uri, verdicts[0]["property"], "tso"])));
    let asked = editor.wait("a document", |message| message["method"] == "window/showDocument");
    assert_eq!(asked["params"]["external"], true, "{asked}");
    let path = asked["params"]["uri"].as_str().and_then(|uri| uri.strip_prefix("file://")).expect("a file");
    assert!(path.ends_with(".html"), "{path}");
    let page = std::fs::read_to_string(path).expect("it is there");
    assert!(page.contains("prefers-color-scheme: dark") && !page.contains("--vscode"), "for a browser");
    assert_eq!(editor.quit().status, 0);
    assert!(!std::path::Path::new(path).exists(), "it goes with the server");
}

#[test]
fn whatever_a_client_sends_is_answered_and_ends_nothing() {
    let mut editor = Editor::silent(&["--stdio"]);
    assert_eq!(editor.refused("textDocument/hover", json!({})), -32002, "before initialize");
    assert_eq!(editor.refused("initialize", json!({"capabilities": 1})), -32602);
    let options = json!({"model": "rmo", "timeout": "soon"});
    editor.ask("initialize", json!({"capabilities": {}, "initializationOptions": options}));
    for setting in ["model", "timeout"] {
        editor.wait("a warning", |m| {
            m["method"] == "window/showMessage"
                && m["params"]["message"].as_str().is_some_and(|text| text.contains(&format!("`{setting}`")))
        });
    }
    assert_eq!(editor.refused("initialize", json!({"capabilities": {}})), -32600, "twice");
    // Malformed messages.
    for (bytes, code) in [
        ("Content-Length: 3\r\n\r\n{]}", -32700),
        ("Content-Length: 2\r\n\r\n[]", -32600),
        ("Content-Type: nonsense\r\n\r\n", -32700),
    ] {
        editor.send_raw(bytes.as_bytes());
        let answer = editor.wait("an error", |m| m.get("id") == Some(&Value::Null));
        assert_eq!(answer["error"]["code"], code, "{bytes}");
    }
    assert_eq!(editor.refused("textDocument/nonsense", json!({})), -32601);
    editor.tell("$/nonsense", json!({}));
    editor.tell("textDocument/didOpen", json!({"textDocument": 3}));
    editor.tell("textDocument/didChange", json!(null));
    editor.change("untitled:closed.fw", 1, "");
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": "untitled:closed.fw"}}));
    editor.tell("window/workDoneProgress/cancel", json!({"token": 7}));
    editor.tell("$/cancelRequest", json!({"id": "nobody"}));
    editor.tell("workspace/didChangeConfiguration", json!({"settings": {"fencewright": {"heap": -1}}}));
    // Documents that are not open, commands that do not exist.
    let gone = json!({"textDocument": {"uri": "file:///there/is/no/such/file.fw"}, "position": {"line": 0, "character": 0}});
    assert_eq!(editor.refused("textDocument/hover", gone), -32602);
    let command = |name: &str, arguments: Value| json!({"command": name, "arguments": arguments});
    assert_eq!(editor.refused("workspace/executeCommand", command("fencewright.check", json!([]))), -32602);
    assert_eq!(
        editor.refused("workspace/executeCommand", command("fencewright.check", json!(["untitled:x"]))),
        -32602
    );
    assert_eq!(editor.refused("workspace/executeCommand", command("rm", json!([]))), -32602);
    // Texts that are not programs, and invalid ranges.
    let include = "#include \"/dev/zero\"\n#include \"missing.h\"\nint main(void) { return 0; }\n";
    for (n, text) in ["\0\u{feff}\u{202e}", "{{{{{{{{", &"(".repeat(100_000), include].iter().enumerate() {
        let uri = format!("untitled:{n}.{}", if n == 3 { "c" } else { "fw" });
        editor.open(&uri, text);
        assert!(!editor.diagnostics(&uri, 1).is_empty(), "{n}");
        let huge = json!({"line": 4_000_000_000_u32, "character": 4_000_000_000_u32});
        let changes =
            json!([{"range": {"start": huge, "end": {"line": 0, "character": 7}}, "text": "\u{1f600}"}]);
        editor.tell(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes}),
        );
        assert!(!editor.diagnostics(&uri, 2).is_empty(), "{n}");
        let check = command("fencewright.check", json!([uri]));
        assert_eq!(editor.refused("workspace/executeCommand", check), -32803, "{n}");
        let at = json!({"textDocument": {"uri": uri}, "position": huge});
        for method in ["textDocument/hover", "textDocument/definition", "textDocument/documentSymbol"] {
            editor.ask(method, at.clone());
        }
    }
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    assert_eq!(editor.refused("textDocument/hover", json!({})), -32600, "after shutdown");
    editor.tell("exit", Value::Null);
    drop(editor.input);
    assert_eq!(finish(editor.child).status, 0);
}

#[test]
fn a_client_that_just_goes_is_noticed() {
    for farewell in [true, false] {
        let mut editor = Editor::new(&[], json!({}));
        if farewell {
            editor.tell("exit", Value::Null);
        }
        drop(editor.input);
        assert_eq!(finish(editor.child).status, 1);
    }
    // The server also ends if the client does not read its messages, which are more than a pipe holds.
    let mut child = command().arg("lsp").stdin(Stdio::piped()).spawn().expect("the server starts");
    let mut input = child.stdin.take().expect("its input is piped");
    let unknown = "x".repeat(1 << 20);
    for (id, method) in [(1, "initialize"), (2, &unknown)] {
        let params = json!({"capabilities": {}});
        let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
    }
    drop(input);
    let start = Instant::now();
    while child.try_wait().expect("it can be waited for").is_none() {
        assert!(start.elapsed() < LIMIT, "it waits for somebody to read");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All words that the patterns of a grammar match literally, as in `\b(a|b)\b`.
fn words(grammar: &Value, found: &mut BTreeMap<String, String>) {
    match grammar {
        Value::Array(parts) => parts.iter().for_each(|part| words(part, found)),
        Value::Object(parts) => {
            let name = parts.get("name").and_then(Value::as_str).unwrap_or_default();
            let pattern = parts.get("match").and_then(Value::as_str).unwrap_or_default();
            let list = pattern.strip_prefix("\\b(").and_then(|rest| rest.strip_suffix(")\\b"));
            for word in list.into_iter().flat_map(|list| list.split('|')) {
                found.insert(word.to_owned(), name.to_owned());
            }
            parts.values().for_each(|part| words(part, found));
        }
        _ => {}
    }
}

#[test]
fn the_grammar_knows_every_keyword_and_nothing_else() {
    let folder = |name: &str| {
        let text = std::fs::read_to_string(repository(&format!("editors/vscode/{name}"))).expect("the file");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let mut found = BTreeMap::new();
    words(&folder("syntaxes/fencewright.tmLanguage.json"), &mut found);
    let is_function = |name: &str| name.starts_with("support.");
    let (functions, keywords): (BTreeMap<_, _>, BTreeMap<_, _>) =
        found.iter().partition(|(_, name)| is_function(name));
    let expected: BTreeSet<&str> = Keyword::ALL.iter().map(|keyword| keyword.text()).collect();
    assert_eq!(keywords.keys().map(|word| word.as_str()).collect::<BTreeSet<_>>(), expected);
    assert!(functions.len() > 2 && functions.keys().all(|word| is_built_in(word)), "{functions:?}");
    // The files that package.json names exist.
    let package = folder("package.json");
    let contributes = &package["contributes"];
    let files = [
        &contributes["grammars"][0]["path"],
        &contributes["languages"][0]["configuration"],
        &package["main"],
    ];
    for file in files {
        let path = format!("editors/vscode/{}", file.as_str().expect("a path"));
        assert!(repository(&path).exists(), "{path}");
    }
    // Every setting of the server is a setting of the extension.
    let settings = contributes["configuration"]["properties"].as_object().expect("settings");
    for setting in
        ["model", "timeout", "memory", "defines", "heap", "includeFolders", "checkOnSave", "executions"]
    {
        assert!(settings.contains_key(&format!("fencewright.{setting}")), "{setting}");
    }
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
}
