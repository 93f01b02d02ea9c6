//! Commands that write do not destroy the user's files, links, owners or permissions.

#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::common::{
    Files, SAFE, STORE_BUFFERING, command, finish, repository, run, run_with_input, wait_until_busy,
};

/// A program that is not in the formatter's layout.
const UNTIDY: &str = "shared x;thread p{x=1;}forbid two:x==2;";

fn mode(files: &Files, name: &str) -> u32 {
    fs::metadata(files.path(name)).expect("the file is there").mode() & 0o7777
}

fn set_mode(files: &Files, name: &str, mode: u32) {
    fs::set_permissions(files.path(name), Permissions::from_mode(mode)).expect("the owner may");
}

/// The names in the directory, hidden ones included.
fn names(files: &Files) -> Vec<String> {
    let entries = fs::read_dir(files.directory.path()).expect("the directory can be read");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Starts `fences --write` on a program that takes some seconds, calls `meanwhile`, and returns the outcome of the command.
fn while_fences_runs(files: &Files, meanwhile: impl FnOnce()) -> crate::common::Outcome {
    fs::copy(repository("examples/dijkstra.fw"), files.path("slow.fw")).expect("the example is there");
    let arguments = ["fences", "--write", "--quiet", "--no-evidence", "-D", "N=3"];
    let child = command().args(arguments).arg(files.path("slow.fw")).spawn().expect("the command starts");
    wait_until_busy(&child);
    meanwhile();
    finish(child)
}

#[test]
fn what_was_edited_meanwhile_stays() {
    let files = Files::new(&[]);
    let outcome = while_fences_runs(&files, || files.write("slow.fw", b"// mine\n"));
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("was changed meanwhile"), "{outcome:?}");
    assert_eq!(files.read("slow.fw"), "// mine\n");
    assert_eq!(names(&files), ["slow.fw"]);
}

#[test]
fn a_deleted_file_stays_deleted() {
    let files = Files::new(&[]);
    let outcome = while_fences_runs(&files, || fs::remove_file(files.path("slow.fw")).expect("removed"));
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("is gone"), "{outcome:?}");
    assert!(names(&files).is_empty());
}

#[test]
fn a_link_that_was_put_in_place_of_the_file_is_not_followed() {
    let files = Files::new(&[]);
    let outcome = while_fences_runs(&files, || {
        fs::copy(files.path("slow.fw"), files.path("other.fw")).expect("copied");
        fs::remove_file(files.path("slow.fw")).expect("removed");
        symlink(files.path("other.fw"), files.path("slow.fw")).expect("linked");
    });
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("another file"), "{outcome:?}");
    let example = fs::read_to_string(repository("examples/dijkstra.fw")).expect("the example is there");
    assert_eq!(files.read("other.fw"), example);
}

#[test]
fn pipes_are_not_written_back() {
    let files = Files::new(&[("untidy.fw", UNTIDY)]);
    let made = std::process::Command::new("mkfifo").arg(files.path("pipe.fw")).status();
    assert!(made.expect("mkfifo can be run").success());
    for arguments in [&["fences", "--write"][..], &["fmt"]] {
        // No process writes into the pipe, so the command must refuse it without reading.
        let outcome =
            finish(command().args(arguments).arg(files.path("pipe.fw")).spawn().expect("the command starts"));
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("not a regular file"), "{outcome:?}");
    }
    assert!(!fs::metadata(files.path("pipe.fw")).expect("still there").is_file());
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let files = Files::new(&[("s.fw", SAFE), ("t.fw", SAFE)]);
    symlink(files.path("s.fw"), files.path("soft.fw")).expect("linked");
    fs::hard_link(files.path("s.fw"), files.path("hard.fw")).expect("linked");
    let source = files.text("s.fw");
    for output in ["s.fw", "soft.fw", "hard.fw", "../s.fw"] {
        let output = match output.strip_prefix("../") {
            Some(name) => {
                let directory = files.directory.path();
                let own = directory.file_name().expect("it has a name").to_string_lossy();
                format!("{}/../{own}/{name}", directory.display())
            }
            None => files.text(output),
        };
        let certificate = run(["check", "--engine", "cegar", "--certificate", &output, &source]);
        let converted = run(["convert", "--to", "litmus", "-o", &output, &source]);
        for outcome in [certificate, converted] {
            assert_eq!(outcome.status, 2, "{output}: {outcome:?}");
            assert!(outcome.stderr.contains("is also read"), "{output}: {outcome:?}");
            assert!(outcome.stdout.is_empty(), "{output}: {outcome:?}");
        }
        assert_eq!(files.read("s.fw"), SAFE, "{output}");
    }
    // The standard input may be the same file as the output.
    let child = command()
        .args(["convert", "--to", "rmm", "-o", &source, "-"])
        .stdin(fs::File::open(&source).expect("it is there"))
        .spawn();
    let outcome = finish(child.expect("the command starts"));
    assert_eq!((outcome.status, files.read("s.fw").as_str()), (2, SAFE), "{outcome:?}");
    // A different file with the same contents may be overwritten.
    let outcome = run(["convert", "--to", "fw", "-o", &files.text("t.fw"), &source]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_ne!(files.read("t.fw"), SAFE);
}

#[test]
fn a_device_may_be_both() {
    let outcome =
        run_with_input(["convert", "--to", "fw", "-o", "/dev/stdout", "/dev/stdin"], SAFE.as_bytes());
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("forbid two"), "{outcome:?}");
}

#[test]
fn permissions_stay() {
    for kept in [0o600, 0o640, 0o755] {
        let files = Files::new(&[("a.fw", UNTIDY)]);
        set_mode(&files, "a.fw", kept);
        assert_eq!(run(["fmt", &files.text("a.fw")]).status, 0);
        assert_ne!(files.read("a.fw"), UNTIDY);
        assert_eq!(mode(&files, "a.fw"), kept);
        assert_eq!(names(&files), ["a.fw"]);
    }
}

#[test]
fn a_new_file_is_as_readable_as_any() {
    let files = Files::new(&[("a.fw", UNTIDY)]);
    fs::File::create(files.path("plain")).expect("created");
    assert_eq!(run(["convert", "--to", "fw", "-o", &files.text("new.fw"), &files.text("a.fw")]).status, 0);
    assert_eq!(mode(&files, "new.fw"), mode(&files, "plain"));
}

#[test]
fn hard_links_stay() {
    let files = Files::new(&[("a.fw", UNTIDY), ("sb.fw", STORE_BUFFERING)]);
    for (name, arguments) in [("a.fw", &["fmt"][..]), ("sb.fw", &["fences", "--write", "--quiet"])] {
        fs::hard_link(files.path(name), files.path("other")).expect("linked");
        let before = files.read(name);
        let outcome = finish(command().args(arguments).arg(files.path(name)).spawn().expect("it starts"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert_ne!(files.read(name), before);
        assert_eq!(files.read("other"), files.read(name), "both names are still one file");
        fs::remove_file(files.path("other")).expect("removed");
    }
}

#[test]
fn symbolic_links_stay() {
    let files = Files::new(&[("directory/a.fw", UNTIDY)]);
    symlink("directory/a.fw", files.path("link.fw")).expect("linked");
    assert_eq!(run(["fmt", &files.text("link.fw")]).status, 0);
    assert!(fs::symlink_metadata(files.path("link.fw")).expect("there").is_symlink());
    assert_ne!(files.read("directory/a.fw"), UNTIDY);
    // Writing to a symbolic link to a missing file creates that file.
    symlink("directory/new.fw", files.path("dangling.fw")).expect("linked");
    let (output, input) = (files.text("dangling.fw"), files.text("link.fw"));
    assert_eq!(run(["convert", "--to", "fw", "-o", &output, &input]).status, 0);
    assert!(fs::symlink_metadata(files.path("dangling.fw")).expect("there").is_symlink());
    assert!(files.path("directory/new.fw").is_file());
}

#[test]
fn the_owner_stays() {
    let files = Files::new(&[("a.fw", UNTIDY)]);
    // Only root can change the owner of a file; for other users there is nothing to test.
    if std::os::unix::fs::chown(files.path("a.fw"), Some(4711), Some(4712)).is_err() {
        return;
    }
    set_mode(&files, "a.fw", 0o640);
    assert_eq!(run(["fmt", &files.text("a.fw")]).status, 0);
    let metadata = fs::metadata(files.path("a.fw")).expect("there");
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (4711, 4712, 0o640));
    assert_ne!(files.read("a.fw"), UNTIDY);
}

#[test]
fn long_names_can_be_written() {
    let name = format!("{}.fw", "n".repeat(252));
    let files = Files::new(&[(&name, UNTIDY)]);
    let outcome = run(["fmt", &files.text(&name)]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_ne!(files.read(&name), UNTIDY);
    assert_eq!(names(&files), [name]);
}

#[test]
fn read_only_files_are_refused() {
    let files = Files::new(&[("a.fw", UNTIDY), ("sb.fw", STORE_BUFFERING)]);
    set_mode(&files, "a.fw", 0o444);
    set_mode(&files, "sb.fw", 0o400);
    let (a, sb) = (files.text("a.fw"), files.text("sb.fw"));
    let converted = ["convert", "--to", "fw", "-o", &a, &sb];
    for outcome in [run(["fmt", &a]), run(["fences", "--write", "--quiet", &sb]), run(converted)] {
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("read-only"), "{outcome:?}");
    }
    assert_eq!((files.read("a.fw").as_str(), files.read("sb.fw").as_str()), (UNTIDY, STORE_BUFFERING));
    assert_eq!(names(&files), ["a.fw", "sb.fw"]);
}

#[test]
fn formatting_keeps_marks_and_line_ends() {
    let tidy = "// a\n/* b\n   c */\nshared x;\n\nthread p {\n    x = 1;\n}\n";
    let untidy = "// a\n/* b\n   c */\nshared x;\n\nthread p {\n x = 1; }\n";
    for mark in ["", "\u{feff}"] {
        for end in ["\n", "\r\n"] {
            let kept = |text: &str| format!("{mark}{}", text.replace('\n', end));
            let files = Files::new(&[("a.fw", &kept(untidy)), ("b.fw", &kept(tidy))]);
            assert_eq!(run(["fmt", "--check", &files.text("b.fw")]).status, 0, "{mark:?} {end:?}");
            assert_eq!(run(["fmt", &files.text("a.fw")]).status, 0, "{mark:?} {end:?}");
            assert_eq!(files.read("a.fw"), kept(tidy), "{mark:?} {end:?}");
            let printed = run(["fmt", "--stdout", &files.text("b.fw")]);
            assert_eq!(printed.stdout, kept(tidy), "{mark:?} {end:?}");
        }
    }
}
