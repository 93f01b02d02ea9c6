//! Reports panics, which are always bugs: a message asks the user to report the bug, and with `--json` an object is printed too.
//!
//! The hook reports panics of all threads. The panic then unwinds as usual, so that files that are being written become complete or keep their old
//! contents. An engine that survives the panic of one of its workers answers `unknown`. In either case, the command ends with status 2.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::OnceLock;

use fencewright_report::json::Bug;

use crate::output::{Output, write_error};
use crate::status::Status;

/// The first panic. Only this one is reported in full, because later panics are often its consequences; for each of these, one line is printed.
static FIRST: OnceLock<Bug> = OnceLock::new();

/// Installs the panic hook. Must be called before anything else.
pub fn install() {
    std::panic::set_hook(Box::new(|panic| {
        let bug = found(panic);
        if FIRST.set(bug.clone()).is_ok() {
            write_error(&report(&bug, &Backtrace::capture()));
        } else {
            write_error(&format!("fencewright: another bug at {}: {}\n", bug.place, one_line(&bug.message)));
        }
    }));
}

/// Runs a command. If any thread panics, the panic is also printed as JSON if `json` is set, and the status is `Bad`.
pub fn guarded(json: bool, out: &mut Output, work: impl FnOnce(&mut Output) -> Status) -> Status {
    // Unwinding may leave `out` in an inconsistent state, but it is only printed to and flushed from here on.
    let done = catch_unwind(AssertUnwindSafe(|| work(out)));
    let Some(bug) = FIRST.get() else { return done.unwrap_or(Status::Bad) };
    if json {
        out.print(&bug.json());
        out.flush();
    }
    Status::Bad
}

fn found(panic: &PanicHookInfo<'_>) -> Bug {
    let payload = panic.payload();
    let literal = payload.downcast_ref::<&str>().copied();
    let message = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or("a panic without a message");
    let place = panic.location().map_or_else(|| "an unknown place".into(), ToString::to_string);
    Bug {
        version: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        place,
        thread: std::thread::current().name().unwrap_or("a worker").into(),
        message: message.into(),
    }
}

/// The message that asks the user to report the bug.
fn report(bug: &Bug, backtrace: &Backtrace) -> String {
    let Bug { version, command, place, thread, message } = bug;
    let place_to_go = match env!("CARGO_PKG_REPOSITORY") {
        "" => "where you have fencewright from".to_owned(),
        repository => format!("at {repository}/issues"),
    };
    let mut text = format!(
        "fencewright: this is a bug in fencewright; please report it {place_to_go}, with the input and these lines:\n  \
         version: {version} ({} {})\n  command: {}\n  place: {place}, thread {thread}\n  message: {}\n",
        std::env::consts::OS,
        std::env::consts::ARCH,
        one_line(&command.join(" ")),
        one_line(message),
    );
    // There is a backtrace only if the environment asks for one.
    if backtrace.status() == BacktraceStatus::Captured {
        text += &format!("{backtrace}\n");
    }
    text
}

fn one_line(text: &str) -> String {
    text.lines().map(fencewright::lang::source::escape).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output as Ended, Stdio};
    use std::sync::mpsc;

    use super::*;

    fn bug() -> Bug {
        Bug {
            version: "1.2.3".into(),
            command: vec!["fencewright".into(), "check".into(), "a\u{1b}b.c".into()],
            place: "src/a.rs:1:2".into(),
            thread: "main".into(),
            message: "it was\npushed".into(),
        }
    }

    #[test]
    fn a_report_has_everything_and_no_control_characters() {
        let text = report(&bug(), &Backtrace::disabled());
        for part in [
            "this is a bug in fencewright",
            "report it",
            "1.2.3",
            "src/a.rs:1:2, thread main",
            "it was; pushed",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}') && text.lines().count() == 5, "{text}");
    }

    /// Runs one of the tests below in a separate process: a command whose work panics.
    fn ended(work: &str) -> Ended {
        let program = std::env::current_exe().expect("this is a program");
        let mut command = Command::new(program);
        command.args([&format!("bug::tests::{work}"), "--exact", "--ignored", "--nocapture"]);
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output().expect("it starts and ends")
    }

    fn command(work: impl FnOnce(&mut Output) -> Status) {
        install();
        let mut out = Output::new();
        let status = guarded(true, &mut out, work);
        out.finish().expect("it can be written");
        std::process::exit(status as i32);
    }

    #[test]
    #[ignore = "a command that panics, run by the test of what becomes of it"]
    fn panics_at_once() {
        command(|out| {
            out.print("{\"before\":1}\n");
            panic!("{} is odd", 3)
        });
    }

    #[test]
    #[ignore = "a command that panics, run by the test of what becomes of it"]
    fn panics_in_a_worker() {
        command(|_| {
            std::thread::scope(|scope| scope.spawn(|| panic!("a worker")).join().unwrap_or(Status::Unknown))
        });
    }

    #[test]
    #[ignore = "a command that panics, run by the test of what becomes of it"]
    fn panics_while_a_file_is_written() {
        command(|out| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join("out.html");
            std::fs::write(&path, "old").expect("it can be written");
            std::fs::hard_link(&path, directory.path().join("other name")).expect("it can be linked");
            let mut halfway = |to: &mut dyn std::io::Write| {
                to.write_all(b"half of a page")?;
                to.flush()?;
                panic!("halfway")
            };
            let mut texts = Vec::new();
            for path in [path, directory.path().join("new.html")] {
                crate::files::overwrite_with(&path, &mut halfway).expect_err("it is not written");
                texts.push(std::fs::read_to_string(&path).ok());
            }
            let names = std::fs::read_dir(directory.path()).expect("it is there").count();
            out.print(&format!("{texts:?} {names}\n"));
            Status::Fine
        });
    }

    #[test]
    fn a_command_that_panics_says_so_in_words_and_in_json() {
        for (work, message) in [("panics_at_once", "3 is odd"), ("panics_in_a_worker", "a worker")] {
            let Ended { status, stdout, stderr } = ended(work);
            let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            assert_eq!(status.code(), Some(2), "{stdout}{stderr}");
            assert!(stderr.contains("this is a bug in fencewright") && stderr.contains(message), "{stderr}");
            assert!(stderr.contains("crates/cli/src/bug.rs:") && !stderr.contains("panicked at"), "{stderr}");
            let last = stdout.lines().last().expect("there is an object");
            let last: serde_json::Value =
                serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {stdout}"));
            assert_eq!(last["bug"]["message"], message);
            assert_eq!(last["bug"]["version"], env!("CARGO_PKG_VERSION"));
            assert_eq!(last["error"], format!("this is a bug in fencewright: {message}"));
            assert!(stdout.contains("\"before\"") == (work == "panics_at_once"), "{stdout}");
            schema_knows(&last);
        }
    }

    fn schema_knows(object: &serde_json::Value) {
        let schema = include_str!("../../../docs/json.schema.json");
        let mut schema: serde_json::Value = serde_json::from_str(schema).expect("it is JSON");
        let keys = schema.as_object_mut().expect("it is an object");
        keys.remove("anyOf");
        keys.insert("$ref".into(), "#/$defs/bug".into());
        let validator = jsonschema::validator_for(&schema).expect("it is a schema");
        assert!(validator.is_valid(object), "{object}");
    }

    #[test]
    fn files_are_complete_or_as_they_were() {
        let Ended { status, stdout, .. } = ended("panics_while_a_file_is_written");
        assert_eq!(status.code(), Some(2));
        let stdout = String::from_utf8_lossy(&stdout);
        assert!(stdout.contains("[Some(\"old\"), None] 2"), "{stdout}");
    }

    #[test]
    fn work_without_a_panic_has_its_own_status() {
        // A worker thread that sends its result and ends is not reported as a bug.
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(Status::Violated))
            .join()
            .expect("it ends")
            .expect("it is heard");
        let status = receiver.recv().expect("it was sent");
        assert_eq!(guarded(true, &mut Output::new(), |_| status), Status::Violated);
    }
}
