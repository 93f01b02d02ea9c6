//! Runs other tools on the same questions in the same run: `--peer NAME=COMMAND`.
//!
//! A command is a shell command with placeholders for files in one of several languages ([`FILES`]), for the memory model and for the question.
//! Unsupported questions are skipped: a command with neither `{model}` nor `{c}` is run for TSO only, and a command without `{question}` for verdicts
//! only. If the language of the placeholder cannot express a program, the result says so.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencewright_lang::{Loaded, front_end};
use fencewright_program::MemoryModel;
use fencewright_reduce::c::{Width, c};
use fencewright_reduce::{Bounds, reduce};
use tempfile::TempDir;

use crate::baseline::{EARLIER, OURS};
use crate::extra13::CUPEX;
use crate::fences12::FENCES12;
use crate::measurement::{Input, Measurement, Other, Question, Source};
use crate::process::{self, Ended};
use crate::programs::{loaded, parsed};
use crate::spin::SPIN;
use crate::thesis::{CBMC, MEMORAX, TRENCHER, TRENCHER_WITH_SPIN};

/// The placeholders for files, with their file extensions.
const FILES: [(&str, &str); 5] =
    [("{file}", "fw"), ("{rmm}", "rmm"), ("{trencher}", "txt"), ("{litmus}", "litmus"), ("{c}", "c")];
/// The placeholder for the memory model: sc, tso or pso.
const MODEL: &str = "{model}";
/// The placeholder for the subcommand of `fencewright` that answers the question: check, fences or robust.
const QUESTION: &str = "{question}";

/// Names that peers cannot have, because the column `tool` uses them: for this tool, for an earlier run, for the tools of the papers, and for Spin in
/// section `lamport`.
const NAMES: [&str; 9] = [OURS, EARLIER, FENCES12, TRENCHER, TRENCHER_WITH_SPIN, CUPEX, MEMORAX, CBMC, SPIN];

/// Capacity of the store buffers in a program exported as C. Such a program represents its buffers by variables.
const BUFFERED: u32 = 2;

/// Number of bytes of a process's standard error that are kept.
const MOST_COMPLAINTS: u64 = 1000;

/// Another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    name: String,
    /// The exit statuses that are answers.
    answers: Vec<i32>,
    command: String,
}

impl Peer {
    /// Parses `NAME=COMMAND`, or `NAME[0,10]=COMMAND` with the exit statuses that are answers; the default is 0.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND")?;
        let (name, answers) = match name.split_once('[') {
            None => (name, vec![0]),
            Some((name, statuses)) => {
                let statuses = statuses.strip_suffix(']').ok_or("expected NAME[STATUS,...]=COMMAND")?;
                let status =
                    |text: &str| text.trim().parse().map_err(|_| format!("`{text}` is not an exit status"));
                (name, statuses.split(',').map(status).collect::<Result<_, String>>()?)
            }
        };
        if name.is_empty() || name.chars().any(|c| !c.is_ascii_alphanumeric() && !"-_.+".contains(c)) {
            return Err(format!("`{name}` is not a name: letters, digits and -_.+"));
        }
        if NAMES.contains(&name) {
            return Err(format!("`{name}` already has another meaning in the tables: take `{name}-2`, say"));
        }
        if !FILES.iter().any(|(placeholder, _)| command.contains(placeholder)) {
            let all: Vec<&str> = FILES.iter().map(|(placeholder, _)| *placeholder).collect();
            return Err(format!("the command names no file: it takes one of {}", all.join(", ")));
        }
        Ok(Peer { name: name.to_string(), answers, command: command.to_string() })
    }

    fn can_be_asked(&self, question: &Question) -> bool {
        // A program exported as C contains its store buffers, so its tool need not know the memory model.
        let knows_model = self.command.contains(MODEL) || self.command.contains("{c}");
        (knows_model || question.model == MemoryModel::Tso)
            && (self.command.contains(QUESTION) || question.command == "check")
    }

    /// The shell command, with its input files written to a folder, or the reason why there is none.
    fn line(&self, question: &Question, folder: &Path) -> Result<String, String> {
        let mut line = self.command.replace(MODEL, question.model.name()).replace(QUESTION, question.command);
        for (placeholder, extension) in FILES {
            if line.contains(placeholder) {
                let text = text(question, placeholder)?;
                let path = folder.join(format!("program.{extension}"));
                std::fs::write(&path, text).map_err(|error| format!("cannot be written: {error}"))?;
                line = line.replace(placeholder, &quoted(&path));
            }
        }
        Ok(line)
    }
}

/// A path quoted for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The program of a question in the language of a placeholder.
fn text(question: &Question, placeholder: &str) -> Result<String, String> {
    let mut program = match &question.program {
        Input::File(path, defines) => loaded(path, defines)?,
        Input::Text(text) => parsed("generated.fw", text.as_bytes(), &[])?,
    };
    program.settle_constants();
    let language = placeholder.trim_matches(['{', '}']);
    match language {
        "c" => in_c(&program, question.model),
        _ => {
            let language = if language == "file" { "fw" } else { language };
            let to = front_end::named(language).ok_or("there is no such language")?;
            to.print(&program).map_err(|_| format!("cannot be written as {language}"))
        }
    }
}

/// The program as C with its store buffers as variables, for verifiers that only support SC.
fn in_c(loaded: &Loaded, model: MemoryModel) -> Result<String, String> {
    let refused = |why: String| format!("cannot be written as C: {why}");
    let program = &loaded.program;
    let (program, head) = if model == MemoryModel::Sc {
        (program.clone(), Vec::new())
    } else {
        let bounds = Bounds::uniform(program, model, BUFFERED);
        let reduced = reduce(program, model, &bounds).map_err(|unsupported| refused(unsupported.why))?;
        let head = reduced.explanation(program, loaded.sources.name());
        (reduced.program, head)
    };
    c(&program, &head, Width::Bits32).map_err(|unsupported| refused(unsupported.why))
}

/// All peers, and their answers so far.
pub struct Peers {
    peers: Vec<Peer>,
    limit: Duration,
    /// A cache of answers by peer and question, because several tables have the same questions.
    known: HashMap<(usize, String), Other>,
}

impl Peers {
    /// The peers without answers yet, with a time limit for each question; an error if two of them have the same name.
    pub fn new(peers: Vec<Peer>, limit: Duration) -> Result<Self, String> {
        let mut names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("there are two peers `{}`: each has a name of its own", pair[0])),
            None => Ok(Peers { peers, limit, known: HashMap::new() }),
        }
    }

    /// Runs all peers that support the question of a measurement, and returns their results.
    pub fn ask(&mut self, measurement: &Measurement) -> Vec<Other> {
        let Some(question) = &measurement.question else { return Vec::new() };
        let mut answers = Vec::new();
        for (n, peer) in self.peers.iter().enumerate().filter(|(_, peer)| peer.can_be_asked(question)) {
            let key = (n, format!("{question:?}"));
            let limit = self.limit;
            answers.push(self.known.entry(key).or_insert_with(|| asked(peer, question, limit)).clone());
        }
        answers
    }
}

fn asked(peer: &Peer, question: &Question, limit: Duration) -> Other {
    let (outcome, seconds) = match run(peer, question, limit) {
        Ok((outcome, seconds)) => (outcome, Some(seconds)),
        Err(why) => (why, None),
    };
    Other {
        tool: peer.name.clone(),
        source: Source::Peer,
        outcome,
        seconds,
        processor: None,
        at_least: false,
    }
}

/// The exit status of a tool and its time, or the reason why it has no answer.
fn run(peer: &Peer, question: &Question, limit: Duration) -> Result<(String, f64), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let line = peer.line(question, folder.path())?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = process::run(&mut command, limit, MOST_COMPLAINTS, Some(folder.path()));
    let Ended { status, took, errors, .. } = ended.map_err(|error| error.to_string())?;
    let complaint = first_line(&errors);
    let Some(status) = status else { return Err("timeout".to_string()) };
    match status.code() {
        Some(code) if peer.answers.contains(&code) => Ok((format!("status {code}"), took.as_secs_f64())),
        Some(code) => Err(format!("failed: status {code}{complaint}")),
        None => Err(format!("failed: {status}{complaint}")),
    }
}

/// The first line of an error output, shortened.
fn first_line(complaints: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaints);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).take(60).collect();
    if line.is_empty() { String::new() } else { format!(" ({line})") }
}
