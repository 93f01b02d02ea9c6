//! Ctrl-C, `kill` and a terminal that is closed.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Files, SAFE, command, repository, wait_until_busy};

/// Maximum time to wait for the end of a process, on any machine.
const LONG: Duration = Duration::from_secs(30);

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(sent.expect("a shell can be run").success());
}

/// Waits for a process. If the process does not end by itself, kills it and fails the test.
fn ended(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status;
        }
        if start.elapsed() > LONG {
            child.kill().expect("it can be ended");
            panic!("the signal was ignored");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the thread that handles signals has started. (A signal that arrives while its handler is being installed may be lost.)
fn wait_for_handler(child: &Child) {
    let start = Instant::now();
    let handles = || {
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).expect("it runs");
        let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        threads.flatten().any(|thread| name(thread).trim() == "signals")
    };
    while !handles() {
        assert!(start.elapsed() < LONG, "no handler");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn while_input_is_read_the_first_signal_ends_the_process() {
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        for arguments in
            [&["check", "-"][..], &["fences", "-"], &["fmt", "-"], &["certify", "-", "missing.fw"]]
        {
            let child = command().args(arguments).stdin(Stdio::piped()).spawn().expect("it starts");
            wait_for_handler(&child);
            send(signal, &child);
            assert_eq!(ended(child).signal(), Some(number), "{signal} {arguments:?}");
        }
    }
}

/// A program whose search takes minutes.
fn slow(files: &Files) -> String {
    let text = fs::read_to_string(repository("examples/bakery.fenced.fw")).expect("the example is there");
    assert!(text.contains("const N = 2;"));
    files.write("slow.fw", text.replace("const N = 2;", "const N = 4;").as_bytes());
    files.text("slow.fw")
}

#[test]
fn the_second_file_can_be_interrupted_too_and_the_third_is_not_begun() {
    let files = Files::new(&[("safe.fw", SAFE)]);
    let (safe, slow) = (files.text("safe.fw"), slow(&files));
    for name in ["fences", "check"] {
        for signal in ["INT", "TERM"] {
            let arguments = [name, "--quiet", "--timeout", "none", &safe, &slow, &safe];
            let mut child = command().args(arguments).spawn().expect("it starts");
            let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
            let first = lines.next().expect("a verdict").expect("text");
            assert!(first.contains("safe.fw"), "{first}");
            wait_until_busy(&child);
            send(signal, &child);
            assert_eq!(ended(child).code(), Some(3), "{name} {signal}");
            let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
            assert_eq!(rest.len(), 1, "{name} {signal}: {rest:?}");
            assert!(rest[0].contains("slow.fw") && rest[0].contains("stopped"), "{name} {signal}: {rest:?}");
        }
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    let files = Files::new(&[]);
    // One test is being searched while the other one is still being read: the first signal ends the search, but not the reading.
    let text = fs::read_to_string(slow(&files)).expect("it was written");
    files.write("slow.fw", format!("{text}finally never p[0]@end;\n").as_bytes());
    let mut child = command()
        .args(["litmus", "--jobs", "2", "--timeout", "none", "-", &files.text("slow.fw")])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_until_busy(&child);
    send("TERM", &child);
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().expect("it can be waited for").is_none(), "it has something to tell");
    send("TERM", &child);
    assert_eq!(ended(child).signal(), Some(15));
}

#[test]
fn a_closed_terminal_stays_ignored_but_an_interrupt_is_heard() {
    let binary = env!("CARGO_BIN_EXE_fencewright");
    let shell = format!("trap '' HUP INT; exec {binary} check -");
    let child = Command::new("sh").args(["-c", &shell]).stdin(Stdio::piped()).spawn().expect("a shell");
    wait_for_handler(&child);
    send("HUP", &child);
    std::thread::sleep(Duration::from_millis(300));
    // Shells make background processes ignore SIGINT; the command handles it anyway.
    send("INT", &child);
    assert_eq!(ended(child).signal(), Some(2), "as with nohup, HUP does not count");
}

#[test]
fn no_temporary_file_stays_behind() {
    let texts: Vec<(String, String)> = (0..400)
        .map(|n| (format!("{n}.fw"), format!("shared x;thread p{{{}}}", "x=1;".repeat(2_000))))
        .collect();
    let files = Files::new(&[]);
    for round in 0..4 {
        for (name, text) in &texts {
            files.write(name, text.as_bytes());
        }
        let child = command().arg("fmt").args(texts.iter().map(|(name, _)| files.path(name))).spawn();
        let child = child.expect("it starts");
        // Waits until some files have been written and others have not.
        while files.read("20.fw") == texts[20].1 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round));
        send("TERM", &child);
        assert_eq!(ended(child).signal(), Some(15));
        let entries = fs::read_dir(files.directory.path()).expect("the directory can be read");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let others: Vec<_> = names.filter(|name| !name.to_string_lossy().ends_with(".fw")).collect();
        assert!(others.is_empty(), "{others:?}");
        let whole = |name: &String| files.read(name).matches('1').count() == 2_000;
        assert!(texts.iter().all(|(name, _)| whole(name)), "every file is complete, old or new");
    }
}

/// A folder with a program that is decided at once and two that are not, and an old file at the path of a report.
fn folder_with_slow_programs() -> Files {
    let files = Files::new(&[("programs/a.fw", SAFE), ("out.sarif", OLDER)]);
    let text = fs::read_to_string(slow(&files)).expect("it was written");
    for name in ["programs/b.fw", "programs/c.fw"] {
        files.write(name, text.as_bytes());
    }
    files
}

const OLDER: &str = "{\"older\":true}";

/// Checks that both reports are complete, and that no other file was left beside them.
fn reports_are_complete(files: &Files) {
    let report: serde_json::Value =
        serde_json::from_str(&files.read("out.sarif")).expect("a complete report");
    assert!(report.get("runs").is_some(), "{report}");
    let page = files.read("out.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{page}");
    let entries = fs::read_dir(files.directory.path()).expect("the directory can be read");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["out.html", "out.sarif", "programs", "slow.fw"]);
}

#[test]
fn an_interrupted_folder_is_told_as_far_as_it_was_known() {
    for signal in ["INT", "TERM"] {
        let files = folder_with_slow_programs();
        let (programs, report) = (files.text("programs"), files.text("out.sarif"));
        let page = files.text("out.html");
        let reports = ["--sarif", &report, "--html", &page];
        let arguments =
            ["check", "--timeout", "none", "--json"].into_iter().chain(reports).chain([&*programs]);
        let mut child = command().args(arguments).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a verdict").expect("text");
        assert!(first.contains("\"safe\""), "{first}");
        wait_until_busy(&child);
        send(signal, &child);
        assert_eq!(ended(child).code(), Some(3), "{signal}");
        let rest = lines.map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"));
        let rest: Vec<serde_json::Value> = rest.collect();
        assert_eq!(rest.len(), 3, "{signal}: two programs and a summary: {rest:?}");
        assert_eq!(rest[2]["summary"]["safe"], 1, "{signal}: {rest:?}");
        reports_are_complete(&files);
    }
}

#[test]
fn whatever_limit_is_met_the_report_is_complete() {
    for limit in [["--timeout", "300ms"], ["--memory", "64M"]] {
        let files = folder_with_slow_programs();
        let (programs, report) = (files.text("programs"), files.text("out.sarif"));
        let page = files.text("out.html");
        let arguments = ["check", limit[0], limit[1], "--sarif", &report, "--html", &page, &programs];
        let outcome = crate::common::run(arguments);
        assert_eq!(outcome.status, 3, "{outcome:?}");
        assert!(outcome.stdout.contains("1 safe, 0 unsafe, 2 unknown"), "{outcome:?}");
        reports_are_complete(&files);
    }
}

/// If the process is killed, the path of the report has either the old file or the complete new one.
#[test]
fn no_report_is_ever_half_written() {
    for round in 0..12 {
        let files = folder_with_slow_programs();
        let (programs, report) = (files.text("programs"), files.text("out.sarif"));
        let arguments = ["check", "--timeout", "40ms", "--sarif", &report, &programs];
        let child = command().args(arguments).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(20 * round));
        send("KILL", &child);
        let mut child = child;
        child.wait().expect("it can be waited for");
        let report = files.read("out.sarif");
        serde_json::from_str::<serde_json::Value>(&report).expect("a complete report, older or new");
    }
}
