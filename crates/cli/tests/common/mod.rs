//! Runs the real command as a user would.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The command, ready to be given arguments.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencewright"));
    command.env_remove("NO_COLOR").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The status and output of a run.
#[derive(Debug)]
pub struct Outcome {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The standard output, one JSON value in each line.
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// Waits for a process, and checks that it ends by itself and does not panic.
pub fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("the process can be waited for");
    let outcome = Outcome {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let panicked = ["panicked", "this is a bug"].iter().any(|words| outcome.stderr.contains(words));
    assert!(!panicked, "{outcome:?}");
    assert!((0..=3).contains(&outcome.status), "{outcome:?}");
    outcome
}

/// Runs the command.
pub fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Outcome {
    finish(command().args(arguments).spawn().expect("the command starts"))
}

/// Runs the command with this input on its standard input.
pub fn run_with_input<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Outcome {
    let mut child = command().args(arguments).stdin(Stdio::piped()).spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("the standard input is piped");
    // A command that needs no more input may close its end of the pipe, so errors are ignored.
    let _ = stdin.write_all(input);
    drop(stdin);
    finish(child)
}

/// A directory with some files in it.
pub struct Files {
    pub directory: TempDir,
}

impl Files {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let new = Files { directory };
        for (name, contents) in files {
            new.write(name, contents.as_bytes());
        }
        new
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    pub fn write(&self, name: &str, contents: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file has a directory"))
            .expect("the directory can be made");
        fs::write(path, contents).expect("the file can be written");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file can be read")
    }
}

/// Waits until a process has used so much processor time that it must have read its input.
pub fn wait_until_busy(child: &Child) {
    let start = Instant::now();
    // Field 14 of the file is the user time in hundredths of a second.
    let busy = || {
        let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("the process runs");
        let fields = text.rsplit(')').next().expect("the fields after the name");
        fields.split_whitespace().nth(11).and_then(|f| f.parse().ok()).unwrap_or(0_u32)
    };
    while busy() < 20 {
        assert!(start.elapsed() < Duration::from_secs(60), "the search does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file of this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Store buffering: violated under TSO and PSO, but not under SC.
pub const STORE_BUFFERING: &str = "\
shared x, y;
thread p { var r; x = 1; r = y; }
thread q { var r; y = 1; r = x; }
finally both_missed: never p.r == 0 && q.r == 0;
";

/// Holds under every memory model.
pub const SAFE: &str = "shared x; thread p { x = 1; } forbid two: x == 2;";

/// Violated under every memory model.
pub const UNSAFE: &str = "shared x; thread p { x = 1; } forbid one: x == 1;";

/// A program with a buffer that grows forever.
pub const DIVERGING: &str = "\
shared x, y;
thread p {
    loop {
        x = 1;
    }
}
forbid one: y == 1;
";

/// Not a program.
pub const WRONG: &str = "shared x; thread p { x = ; }";

/// A program without properties.
pub const SILENT: &str = "shared x; thread p { x = 1; }";
