//! Other tools, asked the same questions in the same run: `--peer NAME=COMMAND`.
//!
//! A command is a line for the shell with placeholders for files in one of several languages ([`FILES`]), for the memory model and for the
//! question. What a tool cannot be asked it is not asked: a command without `{model}` is asked about TSO only, one without `{question}` is
//! asked for verdicts only, and what cannot be written in its language is said to be so.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use fencewright_lang::{Loaded, front_end};
use fencewright_program::MemoryModel;
use fencewright_reduce::c::{Width, c};
use fencewright_reduce::{Bounds, reduce};
use tempfile::TempDir;

use crate::baseline::{EARLIER, OURS};
use crate::extra13::CUPEX;
use crate::fences12::FENCES12;
use crate::measurement::{Input, Measurement, Other, Question, Source};
use crate::programs::{loaded, parsed};
use crate::spin::SPIN;
use crate::stop;
use crate::thesis::{CBMC, MEMORAX, TRENCHER, TRENCHER_WITH_SPIN};

/// The placeholders for files, with the extensions these get.
const FILES: [(&str, &str); 5] =
    [("{file}", "fw"), ("{rmm}", "rmm"), ("{trencher}", "txt"), ("{litmus}", "litmus"), ("{c}", "c")];
/// The memory model: sc, tso or pso.
const MODEL: &str = "{model}";
/// The command of `fencewright` that asks the question: check, fences or robust.
const QUESTION: &str = "{question}";

/// What the column `tool` of a run says otherwise: this tool, an earlier run, the tools of the papers, and the one that section `lamport` runs.
const NAMES: [&str; 9] = [OURS, EARLIER, FENCES12, TRENCHER, TRENCHER_WITH_SPIN, CUPEX, MEMORAX, CBMC, SPIN];

/// How many stores a buffer holds in programs written as C, where buffers are variables.
const BUFFERED: u32 = 2;

/// How often a process is looked at.
const PAUSE: Duration = Duration::from_millis(1);

/// How much of what a process complains about is kept, in bytes.
const MOST_COMPLAINTS: u64 = 1000;

/// How long its complaints are waited for when it has ended.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    name: String,
    /// The status with which it ends if it has an answer.
    answers: Vec<i32>,
    command: String,
}

impl Peer {
    /// `NAME=COMMAND`, or `NAME[0,10]=COMMAND` with the statuses that are answers; without them that is 0 alone.
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
        // The store buffers of a program in C are in its text.
        let knows_model = self.command.contains(MODEL) || self.command.contains("{c}");
        (knows_model || question.model == MemoryModel::Tso)
            && (self.command.contains(QUESTION) || question.command == "check")
    }

    /// The line for the shell, with the files that it needs written to a folder; in words why there is none.
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

/// A path for the shell.
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

/// The program with its store buffers as variables, for verifiers that know SC only.
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

/// All tools, and what they have answered.
pub struct Peers {
    peers: Vec<Peer>,
    limit: Duration,
    /// What each was asked already: several tables ask the same.
    known: HashMap<(usize, String), Other>,
}

impl Peers {
    /// These tools, each with so much time for a question.
    pub fn new(peers: Vec<Peer>, limit: Duration) -> Result<Self, String> {
        let mut names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("there are two peers `{}`: each has a name of its own", pair[0])),
            None => Ok(Peers { peers, limit, known: HashMap::new() }),
        }
    }

    /// Asks all that can be asked.
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

/// How a tool ended and what that took; in words why it has no answer.
fn run(peer: &Peer, question: &Question, limit: Duration) -> Result<(String, f64), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let line = peer.line(question, folder.path())?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let (status, took, complaint) =
        timed(&mut command, limit, folder.path()).map_err(|error| error.to_string())?;
    let Some(status) = status else { return Err("timeout".to_string()) };
    match status.code() {
        Some(code) if peer.answers.contains(&code) => Ok((format!("status {code}"), took.as_secs_f64())),
        Some(code) => Err(format!("failed: status {code}{complaint}")),
        None => Err(format!("failed: {status}{complaint}")),
    }
}

/// Runs a command, the leader of its group, for so long at most; how it ended, unless it was ended, when, and what it complained about.
fn timed(
    command: &mut Command,
    limit: Duration,
    folder: &Path,
) -> std::io::Result<(Option<ExitStatus>, Duration, String)> {
    let start = Instant::now();
    let mut child = command.spawn()?;
    stop::peer_is(Some((child.id(), folder)));
    let complaints = child.stderr.take().map(first_bytes);
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            break None;
        }
        std::thread::sleep(PAUSE);
    };
    let took = start.elapsed();
    // What it has started ends with it.
    stop::end_peer();
    stop::peer_is(None);
    child.wait()?;
    // Unless something escaped that still holds the pipe, its end has been read.
    let first = complaints.and_then(|first| first.recv_timeout(AFTERWARDS).ok());
    Ok((ended, took, first_line(&first.unwrap_or_default())))
}

/// Reads everything, so that whoever writes can go on, and keeps the beginning.
fn first_bytes(mut pipe: ChildStderr) -> Receiver<Vec<u8>> {
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut first = Vec::new();
        // A pipe that breaks has no more to say.
        let _ = pipe.by_ref().take(MOST_COMPLAINTS).read_to_end(&mut first);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        let _ = to.send(first);
    });
    from
}

/// What it complained about first, shortened.
fn first_line(complaints: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaints);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).take(60).collect();
    if line.is_empty() { String::new() } else { format!(" ({line})") }
}
