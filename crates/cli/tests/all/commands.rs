//! `fencewright run`, `show`, `fmt`, `convert`, `completions`, as a user would type them.

use crate::common::*;

fn sb() -> Files {
    Files::new(&[("sb.fw", STORE_BUFFERING)])
}

#[test]
fn the_same_seed_gives_the_same_execution() {
    let files = sb();
    let first = run(["run", "--seed", "7", &files.text("sb.fw")]);
    assert!(first.stdout.starts_with("Random steps under tso, --seed 7\n"), "{first:?}");
    assert!(first.stdout.contains("a final state: all threads have ended"), "{first:?}");
    assert_eq!(first.stdout, run(["run", "--seed", "7", &files.text("sb.fw")]).stdout);
}

/// Steps that the translation of C adds are left out unless all steps are asked for.
#[test]
fn a_run_of_c_has_the_steps_of_c() {
    let program = repository("examples/c/peterson.c").to_string_lossy().into_owned();
    let rows = |more: &[&str]| {
        let outcome = run([&["run", "--seed", "4"], more, &[&program]].concat());
        let steps = outcome.stdout.lines().filter(|line| line.contains("while (lock->interested"));
        steps.map(str::to_owned).collect::<Vec<_>>()
    };
    let (shown, all) = (rows(&[]), rows(&["--full"]));
    assert!(!shown.is_empty() && shown.len() < all.len(), "{shown:#?} {all:#?}");
    let is_empty = |row: &&String| row.contains("...  in peterson_lock()");
    assert_eq!(shown.iter().find(is_empty), None);
    assert!(all.iter().any(|row| row.contains("mutex = ")), "{all:#?}");
}

#[test]
fn some_seed_shows_the_violation() {
    let files = sb();
    let outcomes = (0..200).map(|seed: u32| run(["run", "--seed", &seed.to_string(), &files.text("sb.fw")]));
    let violated = outcomes.into_iter().find(|o| o.status == 1).expect("some seed shows the violation");
    assert!(violated.stdout.contains("this final state violates both_missed"), "{violated:?}");
    assert_eq!(run(["run", "--model", "sc", "--seed", "1", &files.text("sb.fw")]).status, 0);
}

#[test]
fn a_run_says_how_it_ends() {
    let ends = |text: &str, arguments: &[&str], status: i32, expected: &str| {
        let outcome = run_with_input(["run", "--seed", "1", "-"].iter().chain(arguments), text.as_bytes());
        assert!(outcome.stdout.contains(expected), "{outcome:?}");
        assert_eq!(outcome.status, status, "{outcome:?}");
    };
    ends(DIVERGING, &[], 0, "stopped after 50 steps; --steps N takes more");
    ends(DIVERGING, &["--steps", "0"], 0, "stopped after 0 steps");
    ends("shared x; thread p { assume x == 1; }", &[], 0, "a deadlock");
    ends(
        "shared x; thread p { assert x == 1; }",
        &[],
        1,
        "nothing can move any more: every thread has ended or stopped",
    );
    ends("shared x; thread p { x = * in 3..4; }", &[], 0, "x=3");
    ends("shared x; thread p { var r; r = *; x = r; }", &[], 0, "(chosen)");
    ends(
        "shared a[4] open; thread p { a[9] = 1; }",
        &[],
        0,
        "an access outside the modelled part of an open array",
    );
    ends("shared x = *; thread p { var r = * in 5..6; x = r; }", &[], 0, "p.r=5");
}

#[test]
fn steps_can_be_chosen() {
    let files = sb();
    let arguments = ["run", "--interactive", "--seed", "1", &files.text("sb.fw")];
    let outcome = run_with_input(arguments, b"1\nnonsense\n99\nr\nq\n");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("possible steps:"), "{outcome:?}");
    assert!(outcome.stdout.contains("x=0 y=0   buffer of p: x=1"), "{outcome:?}");
    assert!(outcome.stdout.contains("\n  stopped\n"), "{outcome:?}");
    assert_eq!(run_with_input(arguments, b"").status, 0, "the end of the input ends the run");
    assert_eq!(run_with_input(["run", "-i", "-"], b"").status, 2, "the program cannot come from there too");
}

#[test]
fn graphs_have_a_cluster_for_each_thread() {
    let files = sb();
    let outcome = run(["show", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0);
    assert!(
        outcome.stdout.starts_with("digraph program {\n") && outcome.stdout.ends_with("}\n"),
        "{outcome:?}"
    );
    assert_eq!(outcome.stdout.matches("subgraph cluster_").count(), 2);
    assert!(outcome.stdout.contains("[label=\"x = 1\"]"), "{outcome:?}");
}

#[test]
fn formatting_changes_only_what_is_not_formatted() {
    let files =
        Files::new(&[("a.fw", "shared x;thread p{x=1;}//c\n"), ("wrong.fw", WRONG), ("t.litmus", "X86 T\n")]);
    let path = files.text("a.fw");
    let check = run(["fmt", "--check", &path]);
    assert_eq!((check.status, check.stdout.trim_end()), (1, path.as_str()));
    let printed = run(["fmt", "--stdout", &path]);
    assert_eq!(files.read("a.fw"), "shared x;thread p{x=1;}//c\n", "nothing is written");
    assert_eq!(run_with_input(["fmt", "-"], files.read("a.fw").as_bytes()).stdout, printed.stdout);
    assert_eq!(run(["fmt", &path]).status, 0);
    assert_eq!(files.read("a.fw"), printed.stdout);
    assert!(printed.stdout.contains("    x = 1;\n"), "{printed:?}");
    let modified = || std::fs::metadata(files.path("a.fw")).and_then(|m| m.modified()).expect("a time");
    let before = modified();
    assert_eq!(run(["fmt", &path]).status, 0);
    assert_eq!(run(["fmt", "--check", &path]).status, 0);
    assert_eq!(modified(), before, "a formatted file is not written again");
    assert_eq!(run(["fmt", &files.text("wrong.fw")]).status, 2);
    assert_eq!(files.read("wrong.fw"), WRONG);
    assert_eq!(run(["fmt", &files.text("t.litmus")]).status, 2);
    let left: Vec<_> = std::fs::read_dir(files.directory.path()).expect("a directory").collect();
    assert_eq!(left.len(), 3, "no temporary file is left: {left:?}");
}

#[cfg(unix)]
#[test]
fn formatting_keeps_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let files = Files::new(&[("real/a.fw", "shared x;")]);
    symlink(files.path("real/a.fw"), files.path("link.fw")).expect("a link");
    std::fs::set_permissions(files.path("real/a.fw"), std::fs::Permissions::from_mode(0o640))
        .expect("permissions");
    assert_eq!(run(["fmt", &files.text("link.fw")]).status, 0);
    assert!(files.path("link.fw").is_symlink());
    assert_eq!(files.read("real/a.fw"), "shared x;\n");
    let mode = std::fs::metadata(files.path("real/a.fw")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn programs_can_be_converted_and_keep_their_meaning() {
    let files = sb();
    let path = files.text("sb.fw");
    for (format, models) in [("fw", &["sc", "tso"][..]), ("litmus", &["sc", "tso"])] {
        let output = files.text(&format!("converted.{format}"));
        assert_eq!(run(["convert", &path, "--to", format, "-o", &output]).status, 0, "{format}");
        for model in models {
            let status = |file: &str| run(["check", "--model", model, file]).status;
            assert_eq!(status(&output), status(&path), "{format} {model}");
        }
    }
    let back = run(["convert", &files.text("converted.litmus"), "--to", "fw"]);
    assert!(back.stdout.contains("thread P0 {"), "{back:?}");
    assert_eq!(run_with_input(["check", "-"], back.stdout.as_bytes()).status, 1);
    let refused = run(["convert", &path, "--to", "rmm"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("sb.fw:4:"), "{refused:?}");
}

#[test]
fn constants_are_written_into_what_is_converted() {
    let text = b"const N = 1; shared a[N]; thread p { a[0] = N; }";
    let outcome = run_with_input(["convert", "-", "--to", "fw", "-D", "N=3"], text);
    assert!(outcome.stdout.starts_with("const N = 3;\n"), "{outcome:?}");
}

#[test]
fn help_version_and_completions() {
    let says = |arguments: &[&str], expected: &str| {
        let outcome = run(arguments);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stdout.contains(expected), "{outcome:?}");
    };
    says(&["--version"], concat!("fencewright ", env!("CARGO_PKG_VERSION")));
    says(&["--help"], "Exit status: 0 every property holds");
    says(&["check", "--help"], "--no-certify");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        says(&["completions", shell], "litmus");
    }
}

/// The options that the list of engines gives for an engine are options of `check`, and the help of `check` names these engines for them.
#[test]
fn engines_know_their_options() {
    let listed = run(["engines", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("one array");
    let engines = listed.as_array().expect("an array");
    let knows = |engine: &serde_json::Value, option: &str| {
        engine["options"].as_array().is_some_and(|options| options.iter().any(|o| o == option))
    };
    let help = run(["check", "--help"]).stdout;
    let mut option = "";
    let mut restricted = 0;
    for line in help.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        option = words
            .iter()
            .find(|word| word.starts_with("--"))
            .filter(|_| words[0].starts_with('-'))
            .unwrap_or(&option);
        let line = line.trim_start().trim_start_matches(option);
        let Some((_, about)) = line.split_once("Engine") else { continue };
        let Some((names, _)) = about.split_once(':') else { continue };
        for name in names.trim_start_matches('s').split_whitespace().filter(|&word| word != "and") {
            let engine = engines.iter().find(|engine| engine["engine"] == name);
            assert!(engine.is_some_and(|engine| knows(engine, option)), "{name} does not know {option}");
            restricted += 1;
        }
    }
    assert!(restricted > 8, "{restricted}: {help}");
    for engine in engines {
        for option in engine["options"].as_array().expect("a list") {
            let option = option.as_str().expect("a string");
            assert!(
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                "{option}"
            );
        }
    }
}

#[test]
fn manual_pages() {
    let page = run(["man"]);
    assert!(page.status == 0 && page.stdout.contains(".TH fencewright 1"), "{page:?}");
    assert!(page.stdout.contains("fencewright\\-check(1)"), "{page:?}");
    let check = run(["man", "check"]);
    assert!(check.status == 0 && check.stdout.contains("\\-\\-timeout"), "{check:?}");
    // The manual page of every command has examples, each on a line of its own.
    for (text, example) in [
        (&page.stdout, "fencewright fences \\-\\-diff"),
        (&check.stdout, "fencewright check \\-\\-model all"),
    ] {
        let examples = text.split(".SH EXAMPLES\n.nf\n").nth(1).and_then(|rest| rest.split(".fi\n").next());
        assert!(
            examples.is_some_and(|examples| examples.lines().any(|line| line.starts_with(example))),
            "{text}"
        );
        assert!(text.contains(".SH EXIT STATUS\n0 every property holds"), "{text}");
    }
    assert_eq!(run(["man", "chess"]).status, 2);
}
