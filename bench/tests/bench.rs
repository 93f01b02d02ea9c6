//! Tests of the real benchmark command: small runs with all their outputs, and tasks that the real BenchExec runs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fencewright_testing::corpora::{VARIABLE, tell_skipped};
use tempfile::{TempDir, tempdir};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn bench() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencewright-bench"));
    command.stdin(Stdio::null()).env_remove(VARIABLE);
    command
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    (status.code().unwrap_or(-1), stdout, stderr)
}

/// The CSV rows of a tool. Only the column of programs may contain commas, so `,tool,` matches the column `tool` only.
fn rows<'t>(text: &'t str, tool: &str) -> Vec<&'t str> {
    let of_tool = format!(",{tool},");
    text.lines().filter(|line| line.contains(&of_tool)).collect()
}

/// Runs a small section that repeats a table of a paper, and compares it with the paper, with an earlier run, and with peers, some of which fail.
#[test]
fn a_run_is_text_csv_and_a_page() {
    let folder = tempdir().expect("a folder");
    let (csv, html) = (folder.path().join("run.csv"), folder.path().join("run.html"));
    let (status, stdout, stderr) = output(bench().args(["--quick", "lazy", "--csv"]).arg(&csv));
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("| peterson.fw") && stdout.contains("times faster"), "{stdout}");
    assert!(stderr.contains("s]   peterson.fw tso: unsafe"), "{stderr}");
    let before = fs::read_to_string(&csv).expect("it was written");
    assert!(rows(&before, "fencewright").len() >= 8 && rows(&before, "Trencher").len() >= 7, "{before}");

    // The CSV file is changed so that the earlier run seems to have another verdict.
    let change = |line: &str| match line {
        line if line.contains("lazy,parker.fw") && line.contains(",fencewright,") => {
            line.replace(",unsafe,", ",safe,")
        }
        line => line.to_string(),
    };
    let changed: Vec<String> = before.lines().map(change).collect();
    fs::write(&csv, changed.join("\n")).expect("it can be written");
    let now = folder.path().join("now.csv");
    let mut command = bench();
    command.args(["--quick", "lazy", "--baseline"]).arg(&csv).arg("--html").arg(&html).arg("--csv").arg(&now);
    command.args(["--peer", "shell=grep -q thread {file}", "--peer-timeout", "3"]);
    // A tool in the working directory of the user, with a long error output.
    fs::write(folder.path().join("tool"), "echo '<b>no</b>' >&2; head -c 3000000 /dev/zero >&2; exit 3\n")
        .expect("it can be written");
    command.args(["--peer", "broken[1]=sh ./tool \"a 'b\" {file}"]).current_dir(folder.path());
    // Only the first question exceeds the time limit, to keep the test short.
    command.args(["--peer", "late=test -e asked || { touch asked; sleep 60 & wait; }; cat {file}"]);
    let start = Instant::now();
    let (status, stdout, stderr) = output(&mut command);
    assert!(start.elapsed() < Duration::from_secs(60), "a peer was not ended");
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("lazy: parker.fw, tso: unsafe, was safe"), "{stdout}");
    let text = fs::read_to_string(&now).expect("it was written");
    assert!(rows(&text, "shell").iter().all(|row| row.contains("status 0")), "{text}");
    assert!(rows(&text, "broken").iter().all(|row| row.contains("failed: status 3 (<b>no</b>)")), "{text}");
    assert!(rows(&text, "late").first().is_some_and(|row| row.contains(",timeout,")), "{text}");
    assert!(rows(&text, "shell").len() >= 8 && rows(&text, "baseline").len() >= 8, "{text}");
    let page = fs::read_to_string(&html).expect("it was written");
    assert!(page.matches("<figure>").count() >= 3 && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("&lt;b&gt;no") && !page.contains("<b>no"), "{page}");
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 5, "{left:?}");

    // The earlier run has only other measurements, so nothing can be compared. The standard output has only the CSV.
    fs::write(&csv, before.replace("lazy,", "lazy-families,")).expect("it can be written");
    let (status, stdout, stderr) =
        output(bench().args(["--quick", "lazy", "--csv", "-", "--baseline"]).arg(&csv));
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("nothing to compare with"), "{stderr}");
    assert!(
        stdout.starts_with("section,program,") && stdout.lines().all(|line| !line.contains('|')),
        "{stdout}"
    );
    assert_eq!(stdout.lines().count(), before.lines().count(), "{stdout}");
}

/// If a signal ends the process, the output file is complete or does not exist, no temporary file is left, and the running peer ends.
#[test]
fn a_run_that_is_ended_leaves_nothing_half_done() {
    let folder = tempdir().expect("a folder");
    let csv = folder.path().join("run.csv");
    let mut command = bench();
    command
        .args(["--quick", "lazy", "fences12", "--csv"])
        .arg(&csv)
        .arg("--html")
        .arg(folder.path().join("run.html"));
    let mark = folder.path().join("asked");
    let peer = format!("peer=echo $$ {{file}} > '{}'; sleep 600", mark.display());
    command.args(["--peer-timeout", "600", "--peer", &peer]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be run");
    let start = Instant::now();
    let (pid, program) = loop {
        match fs::read_to_string(&mark) {
            Ok(text) if text.ends_with('\n') => {
                let (pid, program) = text.trim().split_once(' ').expect("two words");
                break (pid.to_string(), PathBuf::from(program));
            }
            _ => assert!(start.elapsed() < Duration::from_secs(60), "the peer is not asked"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let killed = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(killed.expect("a shell").success());
    let status = child.wait().expect("it can be waited for");
    assert_eq!(status.signal(), Some(15));
    // The process has ended without waiting for the peer, which may end a little later.
    let gone = || {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    while !gone() {
        assert!(start.elapsed() < Duration::from_secs(60), "the peer goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["asked"]);
    assert!(!program.exists() && !program.parent().expect("a folder").exists(), "{program:?}");
}

#[test]
fn invalid_command_lines_are_refused() {
    for (arguments, why) in [
        (vec!["nonsense"], "there is no section `nonsense`"),
        (vec!["--baseline", "/nonexistent.csv"], "/nonexistent.csv"),
        (vec!["--peer", "memorax"], "expected NAME=COMMAND"),
        (vec!["--peer", "memorax=memorax reach"], "names no file"),
        (vec!["--peer", "a b=cat {file}"], "is not a name"),
        (vec!["--peer", "a[x]=cat {file}"], "is not an exit status"),
        (vec!["--peer", "<b>=cat {file}"], "is not a name"),
        (vec!["--peer", "Trencher=cat {file}"], "another meaning"),
        (vec!["--peer", "baseline=cat {file}"], "another meaning"),
        (vec!["--peer", "a=cat {file}", "--peer", "a=cat {c}"], "two peers `a`"),
        (vec!["--csv", "-", "--html", "-"], "not both"),
        (
            vec!["--csv", "/nonexistent/run.csv"],
            "/nonexistent/run.csv: No such file or directory (os error 2)\n",
        ),
        (vec!["--html", "/"], "it is a folder"),
        (vec!["--peer-timeout", "-1"], "expected"),
        (vec!["algorithms"], "FENCEWRIGHT_CORPORA is not set"),
        (vec!["real", "/nonexistent"], "/nonexistent: there is no such folder"),
        (vec!["real", "/", "nonsense"], "FENCEWRIGHT_CORPORA is not set"),
        (vec!["tasks", "/dev/null/tasks"], "/dev/null"),
    ] {
        let (status, _, stderr) = output(bench().args(&arguments));
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
    }
}

/// A list, a folder with checkouts of two repositories, and a script in place of the command: what it prints and how it ends depends on the name of
/// the program.
fn lists_and_checkouts() -> TempDir {
    let folder = tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("it can be written");
    };
    let c = "#include <assert.h>\n#include \"size.h\"\nint main(void) { assert(SIZE == N); return 0; }\n";
    ["holds", "fails", "late", "crash"].iter().for_each(|name| write(&format!("all/one/{name}.c"), c));
    write("all/two/refused.c", "int main(void) { return }\n");
    write("all/one/include/size.h", "#define SIZE 3\n");
    write("lists/README.md", "Checkouts: one (some/one 0123abc), two (some/two with 1234567 patched)\n");
    // The first row gets its macro from the list that completes it, whose folder is relative to one below the checkout.
    let rows = "# a comment\n\nDIR/one/holds.c\ttso\tsafe\t-D N=3\nDIR/one/fails.c\ttso\tsafe\t'-DN=4' -I \"DIR/one/include\"\n\
                DIR/two/refused.c\tsc\t?\t\nDIR/one/gone.c\ttso\tunsafe\n";
    write("lists/some.tsv", rows);
    write("lists/some-flags.tsv", "DIR/one/holds.c\ttso\tsafe\t-D N=3 -I../include\n");
    write("lists/bad.tsv", "DIR/one/holds.c\ttso\tperhaps\n");
    write("lists/ends.tsv", "DIR/one/late.c\ttso\tsafe\nDIR/one/crash.c\ttso\tsafe\n");
    let answer =
        |verdict: &str| format!("echo '{{\"property\":\"a\",\"verdict\":\"{verdict}\",\"checked\":true}}'");
    let script = format!(
        "case \"$*\" in *late.c) sleep 600 & wait;; *crash.c) {}; kill -SEGV $$;; esac\n",
        answer("safe")
    );
    write("command", &format!("#!/bin/sh\n{script}"));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path().join("command"), executable).expect("it is ours");
    folder
}

/// The real command checks the programs of a list, and the scoreboard counts their outcomes.
#[test]
fn lists_of_programs_are_scored() {
    let command = Path::new(env!("CARGO_BIN_EXE_fencewright-bench")).with_file_name("fencewright");
    if !command.exists() {
        return tell_skipped("lists_of_programs_are_scored", "the command fencewright has not been built");
    }
    let folder = lists_and_checkouts();
    let (checkouts, csv) = (folder.path().join("all"), folder.path().join("real.csv"));
    let run = |list: &str, more: &[&str]| {
        let mut process = bench();
        process.arg("real").arg(&checkouts).arg(folder.path().join("lists").join(list));
        output(process.arg("--csv").arg(&csv).args(more))
    };
    let (status, stdout, stderr) = run("some.tsv", &[]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let scored = stdout.lines().map(cells).find(|cells| cells.get(1).is_some_and(|name| name == "some"));
    let counts = ["some", "4", "1", "1", "2", "1", "1", "1", "0", "0", "1", "0", "0"];
    assert_eq!(scored.expect("a line")[1..14], counts, "{stdout}");
    assert!(stdout.contains("some: one 0123abc, two 1234567"), "{stdout}");
    assert!(
        stdout.contains("unsafe (assertions: ") && stdout.contains("expected safe: one/fails.c"),
        "{stdout}"
    );
    assert!(stdout.contains("1 refused: ") && stdout.contains("(two/refused.c:1)"), "{stdout}");
    let rows = fs::read_to_string(&csv).expect("it was written");
    let found: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(found.len(), 5, "{rows}");
    assert_eq!(
        found[1][..8],
        ["some", "one/holds.c", "-D N=3 -I../include", "tso", "safe", "safe", "yes", "yes"]
    );
    assert_eq!(found[1][12..], ["safe", "yes"]);
    assert_eq!(found[4][1..6], ["one/gone.c", "", "tso", "unsafe", "missing"]);
    // The CSV does not contain the path of the folder, so that runs on different machines can be compared.
    assert!(!rows.contains(&*checkouts.to_string_lossy()), "{rows}");

    // Arguments after `--` are passed to every command, and `--part` selects rows.
    let (status, stdout, stderr) = run("some.tsv", &["--part", "one/fails", "--", "--property", "memory"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    let rows = fs::read_to_string(&csv).expect("it was written");
    assert!(rows.lines().count() == 2 && rows.contains(",tso,safe,safe,yes,yes,"), "{rows}");

    let (status, _, stderr) = run("bad.tsv", &[]);
    assert!(status == 2 && stderr.contains("bad.tsv:1: `perhaps` is no verdict"), "{stderr}");
}

/// A command that does not end, or crashes after its answer, gives no verdict, and the run ends with status 1.
#[test]
fn a_command_that_ends_in_disorder_has_no_answer() {
    let folder = lists_and_checkouts();
    let start = Instant::now();
    let mut process = bench();
    process.env("FENCEWRIGHT", folder.path().join("command")).args(["real", "--timeout", "0.1"]);
    process.arg(folder.path().join("all")).arg(folder.path().join("lists/ends.tsv"));
    let (status, stdout, stderr) = output(&mut process);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("FAILED (killed") && stdout.contains("one/late.c"), "{stdout}");
    assert!(stdout.contains("FAILED (signal: 11") && stdout.contains("one/crash.c"), "{stdout}");
    assert!(start.elapsed() < Duration::from_secs(120), "it was not killed");
}

/// A folder with the tasks of the examples.
fn tasks() -> TempDir {
    let folder = tempdir().expect("a folder");
    let mut command = bench();
    command.arg("tasks").arg(folder.path()).arg("--examples").arg(repository("examples"));
    let (status, _, stderr) = output(&mut command);
    assert_eq!(status, 0, "{stderr}");
    folder
}

#[test]
fn every_example_is_a_task() {
    let (folder, again) = (tasks(), tasks());
    let expected = fs::read_to_string(repository("examples/expected.toml")).expect("the expectations");
    let list = fs::read_to_string(folder.path().join("examples.set")).expect("the list");
    assert_eq!(list.lines().count(), expected.matches("[[example]]").count());
    for task in list.lines() {
        let path = folder.path().join(task);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{task}: {error}"));
        let file = text.lines().find_map(|line| line.strip_prefix("input_files: \"")).expect("a program");
        let file = path.parent().expect("a folder").join(file.trim_end_matches('"'));
        assert!(file.is_file(), "{task}: {text}");
        assert!(
            text.starts_with("format_version: \"2.0\"\n") && text.contains("expected_verdict: "),
            "{text}"
        );
        let other = fs::read_to_string(again.path().join(task)).expect("the same task");
        assert_eq!(text.replace("../", ""), other.replace("../", ""), "{task}");
    }
}

/// A Python that has BenchExec, if there is one.
fn python() -> Option<String> {
    let python = std::env::var("FENCEWRIGHT_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let mut command = Command::new(&python);
    command.args(["-c", "import benchexec.tools.template"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(python)
}

/// The real BenchExec runs some tasks. One has a wrong expected verdict, one is not a program, and two are about fences, one of which expects a wrong
/// number.
#[test]
fn benchexec_runs_the_tasks() {
    const TEST: &str = "benchexec_runs_the_tasks";
    let command = Path::new(env!("CARGO_BIN_EXE_fencewright-bench")).with_file_name("fencewright");
    let Some(python) = python() else {
        return tell_skipped(
            TEST,
            "Python has no module benchexec; FENCEWRIGHT_PYTHON may name one that has",
        );
    };
    if !command.exists() {
        return tell_skipped(TEST, "the command fencewright has not been built");
    }
    let folder = tasks();
    let at = |path: &str| folder.path().join(path);
    let task = |name: &str, expected: bool, file: &str| {
        let text = format!(
            "format_version: \"2.0\"\ninput_files: {file:?}\nproperties:\n  - property_file: \
             \"../properties/tso.prp\"\n    expected_verdict: {expected}\n"
        );
        fs::write(at(&format!("examples/{name}.yml")), text).expect("it can be written");
    };
    let dekker = repository("examples/dekker.fw").canonicalize().expect("the example");
    task("wrong", true, &dekker.to_string_lossy());
    fs::write(at("no-program.fw"), "shared x; thread p { x = ; }").expect("it can be written");
    task("no-program", true, "../no-program.fw");
    fs::copy(&dekker, at("dé kker.fw")).expect("it can be copied");
    task("strange name", false, "../dé kker.fw");
    for (name, count) in [("two", 2), ("three", 3)] {
        let text = format!(
            "format_version: \"2.0\"\ninput_files: {:?}\nproperties:\n  - property_file: \"../properties/fences-tso.prp\"\n    \
             expected_verdict: true\noptions:\n  fences:\n    fences-tso: {count}\n",
            dekker.to_string_lossy()
        );
        fs::write(at(&format!("examples/{name}.yml")), text).expect("it can be written");
    }
    let wanted = [
        "dekker",
        "dekker.fenced",
        "store-buffering",
        "message-passing",
        "wrong",
        "no-program",
        "strange name",
        "two",
        "three",
    ];
    let list: String = wanted.iter().map(|name| format!("examples/{name}.yml\n")).collect();
    fs::write(at("some.set"), list).expect("it can be written");
    fs::write(
        at("some.xml"),
        "<?xml version=\"1.0\"?><benchmark tool=\"tools.fencewright\">\
         <rundefinition name=\"tso\"><propertyfile>properties/tso.prp</propertyfile></rundefinition>\
         <rundefinition name=\"fences\"><propertyfile>properties/fences-tso.prp</propertyfile></rundefinition>\
         <tasks><includesfile>some.set</includesfile></tasks></benchmark>",
    )
    .expect("it can be written");
    let run = |module: &str, arguments: &[&str]| {
        let mut process = Command::new(&python);
        process.args(["-m", module, "--no-container"]).args(arguments);
        process.arg("--tool-directory").arg(command.parent().expect("a folder"));
        process.env("PYTHONPATH", repository("bench/benchexec")).env("PYTHONDONTWRITEBYTECODE", "1");
        output(process.current_dir(folder.path()))
    };
    let (status, stdout, stderr) = run("benchexec.test_tool_info", &["tools.fencewright"]);
    assert!(status == 0 && stderr.contains("Name of tool: “Fencewright”"), "{stdout}{stderr}");
    assert!(!stderr.contains("Traceback"), "{stderr}");
    let (status, stdout, stderr) = run("benchexec.benchexec", &["some.xml", "-o", "results/"]);
    if stderr.contains("'_DummyCgroups' object has no attribute") {
        return tell_skipped(TEST, "BenchExec ends after the first run where there are no cgroups at all");
    }
    assert_eq!(status, 0, "{stdout}{stderr}");
    let line = |name: &str| {
        let found = stdout.lines().find(|line| line.contains(&format!(" {name}.yml ")));
        found.unwrap_or_else(|| panic!("{name}: {stdout}"))
    };
    assert!(line("dekker").contains("false(mutex)"), "{stdout}");
    assert!(line("dekker.fenced").contains(" true "), "{stdout}");
    assert!(line("no-program").contains("ERROR (expected an expression"), "{stdout}");
    assert!(line("two").contains(" true ") && line("three").contains("false(2_fences)"), "{stdout}");
    let count = |what: &str| {
        let found = stdout.lines().find_map(|line| line.trim().strip_prefix(what));
        found.and_then(|number| number.trim().parse::<u32>().ok())
    };
    let counts = ["correct:", "correct true:", "correct false:", "incorrect:", "unknown:"].map(count);
    assert_eq!(counts, [Some(6), Some(3), Some(3), Some(2), Some(1)], "{stdout}");
}
