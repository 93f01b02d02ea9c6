//! `fencewright check`, as a user would type it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::*;

fn files() -> Files {
    Files::new(&[
        ("sb.fw", STORE_BUFFERING),
        ("safe.fw", SAFE),
        ("unsafe.fw", UNSAFE),
        ("diverging.fw", DIVERGING),
        ("wrong.fw", WRONG),
        ("silent.fw", SILENT),
    ])
}

/// The exit status of `check` with these arguments, where `NAME.fw` is one of the files above.
fn check(expected: i32, arguments: &[&str]) {
    let files = files();
    let arguments = arguments.iter().map(|a| if a.ends_with(".fw") { files.text(a) } else { a.to_string() });
    let fixed = ["check", "--engine", "explicit", "--timeout", "300ms"].map(String::from);
    let outcome = run(fixed.into_iter().chain(arguments));
    assert_eq!(outcome.status, expected, "{outcome:?}");
}

#[test]
fn the_status_says_what_came_out() {
    check(0, &["safe.fw"]);
    check(1, &["unsafe.fw"]);
    check(2, &["wrong.fw"]);
    check(2, &["silent.fw"]);
    check(2, &["missing.fw"]);
    check(3, &["diverging.fw"]);
}

#[test]
fn over_several_files_the_worst_status_wins() {
    check(0, &["safe.fw", "safe.fw"]);
    check(3, &["safe.fw", "diverging.fw"]);
    check(1, &["diverging.fw", "unsafe.fw", "safe.fw"]);
    check(2, &["unsafe.fw", "wrong.fw", "diverging.fw"]);
    check(2, &["missing.fw", "unsafe.fw"]);
}

#[test]
fn the_model_matters_and_tso_is_the_default() {
    check(0, &["--model", "sc", "sb.fw"]);
    check(1, &["--model", "tso", "sb.fw"]);
    check(1, &["--model", "pso", "sb.fw"]);
    check(1, &["--model", "all", "sb.fw"]);
    check(1, &["sb.fw"]);
}

#[test]
fn bad_usage_is_status_2() {
    check(2, &[]);
    check(2, &["--nonsense", "safe.fw"]);
    check(2, &["--model", "arm", "safe.fw"]);
    check(2, &["--engine", "magic", "safe.fw"]);
    check(2, &["--property", "nothing", "safe.fw"]);
    check(2, &["--timeout", "soon", "safe.fw"]);
    check(2, &["--memory", "much", "safe.fw"]);
    check(2, &["-D", "N", "safe.fw"]);
    check(2, &["-D", "N=4", "safe.fw"]);
    check(2, &["--jobs", "1000", "safe.fw"]);
    assert_eq!(run(["nonsense"]).status, 2);
    assert_eq!(run::<&str>([]).status, 2);
}

#[test]
fn options_of_the_search_do_not_change_the_verdict() {
    for option in [
        &["--search", "dfs"][..],
        &["--jobs", "1"],
        &["--jobs", "3"],
        &["--no-live"],
        &["--no-symmetry"],
        &["--reduction", "none"],
        &["--reduction", "ample"],
        &["--reduction", "persistent", "--search", "dfs"],
        &["--reduction", "cartesian"],
    ] {
        check(0, &[option, &["--model", "sc", "sb.fw"]].concat());
        check(1, &[option, &["sb.fw"]].concat());
    }
    check(1, &["--buffer", "1", "sb.fw"]);
    check(3, &["--buffer", "3", "diverging.fw"]);
    let files = files();
    let outcome = run([
        "check",
        "--engine",
        "explicit",
        "--memory",
        "10M",
        "--timeout",
        "none",
        &files.text("diverging.fw"),
    ]);
    assert_eq!(outcome.status, 3);
    assert!(outcome.stdout.contains("no answer within 10 MiB of memory"), "{outcome:?}");
}

#[test]
fn a_reduced_search_stands_on_the_engine_until_a_certificate_is_asked_for() {
    let files = files();
    let (program, proof) = (files.text("sb.fw"), files.text("proof.json"));
    let asked = ["check", "--engine", "explicit", "--model", "sc", "--json", "--reduction"];
    for reduction in ["ample", "persistent", "cartesian"] {
        let outcome = run([&asked[..], &[reduction, "--no-certify", &program]].concat());
        let verdict = &outcome.json_lines()[0];
        assert_eq!(
            (&verdict["verdict"], &verdict["checked"]),
            (&"safe".into(), &false.into()),
            "{outcome:?}"
        );
        let outcome = run([&asked[..], &[reduction, "--certificate", &proof, &program]].concat());
        assert_eq!(outcome.json_lines()[0]["checked"], true, "{outcome:?}");
        assert_eq!(run(["certify", &proof, &program]).status, 0);
    }
}

/// `easy` is violated immediately. No engine can show that `hard` holds: sums of i * i - 2 * i are never 7.
const EASY_AND_HARD: &str = "\
shared x, y;
thread p { var i, s; y = 1; loop { i = i + 1; s = s + i * i - 2 * i; x = s; } }
thread q { var r; r = x; }
forbid hard: q.r == 7;
forbid easy: y == 1;
";

/// The smallest instance of Indexer whose threads interact; it has too many states for the reference semantics.
#[test]
fn few_executions_of_very_many_states_are_confirmed_by_a_second_enumeration() {
    let indexer = repository("examples/indexer.fw").display().to_string();
    for (threads, executions) in [("11", 1), ("12", 8)] {
        let define = format!("N={threads}");
        let asked = ["check", "--engine", "explicit", "--reduction", "dynamic", "-D", &define];
        let outcome = run([&asked[..], &["--json", &indexer]].concat());
        let verdict = &outcome.json_lines()[0];
        assert_eq!((&verdict["verdict"], &verdict["checked"]), (&"safe".into(), &true.into()), "{outcome:?}");
        assert_eq!(verdict["enumerated"], executions, "{outcome:?}");
        assert_eq!(verdict["executions"]["complete"], executions, "{outcome:?}");
        assert!(verdict["transitions"].is_null() && verdict["states"] == verdict["executions"]["events"]);
        let words = run([&asked[..], &[&indexer]].concat()).stdout;
        let s = if executions == 1 { "" } else { "s" };
        let expected = format!(
            "confirmed by a second enumeration, of {executions} execution{s} of the reference semantics"
        );
        assert!(words.contains(&expected), "{words}");
    }
}

#[test]
fn a_violation_is_printed_while_other_properties_go_on() {
    let files = Files::new(&[("both.fw", EASY_AND_HARD)]);
    for option in ["--search=bfs", "--engine=explicit", "--engine=lazy", "--json"] {
        let mut child = command()
            .args(["check", "--timeout", "3s", option, &files.text("both.fw")])
            .spawn()
            .expect("the command starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let found = Instant::now();
        assert!(first.contains("easy") && first.contains("unsafe"), "{option}: {first}");
        assert!(child.try_wait().expect("it can be asked").is_none(), "{option}: it has ended already");
        let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
        assert!(found.elapsed() > Duration::from_secs(1), "{option}: {:?}", found.elapsed());
        let last = rest.iter().find(|line| line.contains("hard") && line.contains("unknown"));
        assert!(last.is_some(), "{option}: {rest:?}");
        assert_eq!(finish(child).status, 1, "{option}");
    }
}

#[test]
fn what_grew_is_told_once() {
    let files = Files::new(&[("both.fw", EASY_AND_HARD)]);
    let outcome = run(["check", "--json", "--property", "hard", "--timeout", "1s", &files.text("both.fw")]);
    let lines = outcome.json_lines();
    let growth = lines[0]["growth"].as_array().expect("a list");
    assert!(!growth.is_empty(), "{outcome:?}");
    // Several searches may report the same variable; the last report is the most precise one.
    let subject = |entry: &serde_json::Value| {
        let message = entry["message"].as_str().unwrap_or("");
        (entry["line"].as_u64(), entry["column"].as_u64(), message.split(" grew").next().map(str::to_string))
    };
    let subjects: BTreeSet<_> = growth.iter().map(subject).collect();
    assert_eq!(subjects.len(), growth.len(), "{growth:?}");
}

#[test]
fn a_reader_who_has_seen_enough_ends_the_search() {
    let files = Files::new(&[("both.fw", &format!("{EASY_AND_HARD}forbid second: q.r == 2;"))]);
    let mut child = command()
        .args(["check", "--timeout", "60s", "--engine", "explicit", &files.text("both.fw")])
        .spawn()
        .expect("the command starts");
    let start = Instant::now();
    // Closes the pipe before anything is printed.
    drop(child.stdout.take());
    finish(child);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn counterexamples_are_folded_unless_all_is_asked_for() {
    for command in ["check", "robust", "fences"] {
        let path = repository("examples/peterson.fw").to_string_lossy().into_owned();
        let (folded, full) = (run([command, &path]), run([command, "--full", &path]));
        assert!(folded.stdout.lines().count() < full.stdout.lines().count(), "{command}: {folded:?}");
        assert!(full.stdout.contains("   memory: flag[0]=0 flag[1]=0 turn=0   buffer of"), "{full:?}");
        assert!(!folded.stdout.contains("   memory: flag[0]=0 flag[1]=0 turn=0"), "{folded:?}");
    }
}

#[test]
fn errors_say_what_to_do() {
    let files = files();
    let says = |arguments: &[&str], expected: &[&str]| {
        let outcome = run(["check"].iter().chain(arguments));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{outcome:?}");
        for part in expected {
            assert!(outcome.stderr.contains(part), "{part} is not in {}", outcome.stderr);
        }
    };
    let path = |name: &str| files.text(name);
    says(
        &[&path("silent.fw")],
        &["silent.fw: the program states no property", "forbid NAME:", "--property deadlock"],
    );
    says(&[&path("missing.fw")], &["fencewright: ", "missing.fw: no such file"]);
    says(&[&path("wrong.fw")], &["wrong.fw:1:26", "error: "]);
    says(
        &["--property", "x", &path("sb.fw")],
        &["no property is called `x`; there is both_missed (", "sb.fw:4:1), deadlock"],
    );
    says(&["--engine", "x", &path("sb.fw")], &["no such engine; there is auto, explicit, cegar"]);
    says(&["-D", "N=1", &path("sb.fw")], &["-D N: the program has no constant `N`"]);
}

#[test]
fn an_error_in_one_file_does_not_stop_the_others() {
    let files = files();
    let outcome = run(["check", &files.text("wrong.fw"), &files.text("silent.fw"), &files.text("safe.fw")]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stdout.contains("safe.fw: two: safe under tso"), "{outcome:?}");
}

#[test]
fn the_standard_input_is_a_file() {
    let outcome = run_with_input(["check", "-"], UNSAFE.as_bytes());
    assert_eq!(outcome.status, 1);
    assert!(outcome.stdout.starts_with("<stdin>: one: unsafe under tso (explicit, "), "{outcome:?}");
    let litmus = "X86 T\n{ }\n P0 ;\n MOV [x],$1 ;\nexists (x=1)\n";
    assert_eq!(run_with_input(["check", "-"], litmus.as_bytes()).status, 0);
    assert_eq!(run_with_input(["check", "--format", "litmus", "-"], UNSAFE.as_bytes()).status, 2);
}

#[test]
fn text_shows_the_counterexample_and_quiet_does_not() {
    let files = files();
    let outcome = run(["check", &files.text("sb.fw")]);
    for part in [
        "x = 1 -> buffer of p",
        "reads y = 0 from memory",
        "flush: x = 1 reaches memory",
        "violates both_missed",
    ] {
        assert!(outcome.stdout.contains(part), "{part} is not in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains('\x1b'), "no colours when piped: {}", outcome.stdout);
    assert_eq!(outcome.stderr, "", "no progress when piped");
    let outcome = run(["check", "--quiet", &files.text("sb.fw")]);
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
}

#[test]
fn it_says_who_confirmed_a_proof() {
    let files = files();
    let says = |arguments: &[&str], expected: &str| {
        let outcome = run(["check", &files.text("safe.fw")].iter().chain(arguments));
        assert!(outcome.stdout.contains(expected), "{outcome:?}");
    };
    says(&[], "; certificate accepted in ");
    says(&["--no-certify"], "the verdict stands on the engine alone");
}

#[test]
fn properties_can_be_selected() {
    let text =
        "shared x; thread p { assert x == 0; x = 1; assume x == 2; } forbid a: x == 1; forbid b: x == 3;";
    let verdicts = |arguments: &[&str]| {
        let outcome = run_with_input(["check", "--json", "-"].iter().chain(arguments), text.as_bytes());
        let word = |v: &serde_json::Value, key: &str| v[key].as_str().unwrap_or("").to_string();
        let lines = outcome.json_lines();
        let verdict = |v| format!("{} {}", word(v, "property"), word(v, "verdict"));
        // The answers are printed in the order in which they are found.
        lines.iter().map(verdict).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&[]), ["a unsafe", "assertions safe", "b safe"]);
    assert_eq!(verdicts(&["--property", "b"]), ["b safe"]);
    assert_eq!(
        verdicts(&["--property", "deadlock", "--property", "a", "--property", "a"]),
        ["a unsafe", "deadlock unsafe"]
    );
}

#[test]
fn constants_can_be_set() {
    let text = "const N = 1; shared x; thread p { x = N; } forbid big: x > 3;";
    let status =
        |arguments: &[&str]| run_with_input(["check", "-"].iter().chain(arguments), text.as_bytes()).status;
    assert_eq!(status(&[]), 0);
    assert_eq!(status(&["-D", "N=4"]), 1);
    assert_eq!(status(&["-DN=-4"]), 0);
    assert_eq!(status(&["-D", "N=4", "-D", "N=2"]), 0);
}

#[test]
fn json_has_the_documented_shape() {
    let files = files();
    let names = ["safe.fw", "unsafe.fw", "diverging.fw"].map(|n| files.text(n));
    let outcome = run(["check", "--engine", "explicit", "--json", "--timeout", "0.3"]
        .iter()
        .copied()
        .chain(names.iter().map(String::as_str)));
    let lines = outcome.json_lines();
    assert_eq!(lines.len(), 3);
    let keys = [
        "file",
        "model",
        "property",
        "line",
        "column",
        "verdict",
        "reason",
        "engine",
        "checked",
        "seconds",
        "check_seconds",
        "states",
        "transitions",
        "memory_mib",
        "growth",
        "trace",
    ];
    for (line, text) in lines.iter().zip(outcome.stdout.lines()) {
        let object = line.as_object().expect("an object");
        let unknown = line["verdict"] == "unknown";
        assert_eq!(object.len(), keys.len() + usize::from(unknown));
        assert_eq!(line["tried"].as_array().map(Vec::len), unknown.then_some(1), "{text}");
        let places: Vec<usize> = keys
            .iter()
            .map(|k| text.find(&format!("\"{k}\":")).unwrap_or_else(|| panic!("no {k}")))
            .collect();
        assert!(places.is_sorted(), "the order of the keys is stable: {text}");
        assert_eq!((line["model"].as_str(), line["engine"].as_str()), (Some("tso"), Some("explicit")));
        assert!(line["seconds"].is_f64() && line["check_seconds"].is_f64() && line["memory_mib"].is_f64());
        assert!(line["states"].as_u64() > Some(0) && line["transitions"].as_u64() > Some(0));
    }
    let [safe, violated, unknown] = &lines[..] else { panic!("three lines") };
    assert_eq!(safe["verdict"], "safe");
    assert_eq!(safe["checked"], true);
    assert!(safe["reason"].is_null() && safe["trace"].is_null());
    assert_eq!(violated["verdict"], "unsafe");
    assert_eq!(violated["file"], names[1].as_str());
    assert_eq!(violated["checked"], true);
    let trace = violated["trace"].as_array().expect("a trace");
    assert_eq!(
        trace[0].to_string(),
        serde_json::json!({
            "step": 1, "thread": "p", "event": "step", "line": 1, "column": 22, "statement": "x = 1;", "reads": [],
            "writes": [{"cell": "x", "value": 1, "to": "buffer"}], "fault": null, "memory": {"x": 0},
            "buffers": {"p": [{"cell": "x", "value": 1}]},
        })
        .to_string()
    );
    assert_eq!(trace[1]["event"], "flush");
    assert!(trace[1]["line"].is_null() && trace[1]["statement"].is_null());
    assert_eq!(unknown["verdict"], "unknown");
    assert!(unknown["checked"].is_null() && unknown["trace"].is_null());
    assert_eq!(unknown["reason"], "no answer within 0.300 s");
    assert_eq!(unknown["growth"][0]["line"], 4);
}

#[test]
fn a_time_limit_is_obeyed_promptly_and_explained() {
    let files = files();
    let start = Instant::now();
    let outcome = run(["check", "--engine", "explicit", "--timeout", "1s", &files.text("diverging.fw")]);
    let elapsed = start.elapsed();
    assert!(elapsed > Duration::from_millis(900) && elapsed < Duration::from_millis(2_500), "{elapsed:?}");
    assert_eq!(outcome.status, 3);
    for part in
        ["one: unknown under tso", "no answer within 1 s", "diverging.fw:4:9: the store buffer of p grew to"]
    {
        assert!(outcome.stdout.contains(part), "{part} is not in {}", outcome.stdout);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_search_with_a_verdict() {
    let files = files();
    let child = command()
        .args(["check", "--engine", "explicit", "--timeout", "none", &files.text("diverging.fw")])
        .spawn();
    let child = child.expect("the command starts");
    std::thread::sleep(Duration::from_millis(500));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill can be run").success());
    let outcome = finish(child);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains(": stopped\n"), "{outcome:?}");
}

#[test]
fn nobody_has_to_read_the_output_to_its_end() {
    let files = files();
    let many = std::iter::repeat_n(files.text("sb.fw"), 500);
    let mut child =
        command().arg("check").args(many).stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut stdout = child.stdout.take().expect("the standard output is piped");
    let mut first = [0; 16];
    stdout.read_exact(&mut first).expect("there is some output");
    drop(stdout);
    let outcome = finish(child);
    assert_eq!(outcome.stderr, "", "{outcome:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("there is /dev/full");
    let child =
        command().args(["show", "-"]).stdout(full).stdin(Stdio::null()).spawn().expect("the command starts");
    let outcome = finish(child);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("standard output"), "{outcome:?}");
}

/// If the chosen engine ignores an option, a warning says so.
#[test]
fn options_for_other_engines_are_told() {
    let files = Files::new(&[("a.fw", "shared x; thread p { x = 1; } finally done: forall x == 1;")]);
    let program = files.text("a.fw");
    for (engine, option, others) in [
        ("explicit", ["--k", "2"], "auto, cegar, extrapolate"),
        ("cegar", ["--jobs", "1"], "auto, explicit, lazy, buffers"),
        ("cegar", ["--buffer-domain", "set"], "auto, buffers"),
        ("auto", ["--contexts", "3"], "contexts"),
        ("contexts", ["--rounds", "2"], "lazy"),
    ] {
        let arguments = ["check", "--engine", engine, option[0], option[1]];
        let outcome = run(arguments.into_iter().chain([program.as_str()]));
        let told =
            format!("fencewright: {}: means nothing to engine {engine}, only to {others}\n", option[0]);
        assert_eq!((outcome.status, &outcome.stderr), (0, &told), "{outcome:?}");
        let outcome = run(arguments.into_iter().chain(["--quiet", program.as_str()]));
        assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
    }
    let outcome = run(["check", "--engine", "explicit", "--jobs", "1", "--search", "dfs", &program]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
}

/// An option that another option leaves without effect is named, by every command that has such options.
#[test]
fn options_without_effect_are_told() {
    let files = Files::new(&[("a.fw", "shared x; thread p { x = 1; } finally done: forall x == 1;")]);
    let program = files.text("a.fw");
    for (arguments, told) in [
        (&["check", "--invariants", "--json"][..], "--invariants: means nothing with --json"),
        (
            &["robust", "--engine", "cegar", "--jobs", "1"],
            "--jobs: means nothing to engine cegar, only to auto, explicit",
        ),
        (
            &["fences", "--goal", "robustness", "--property", "done"],
            "--property: means nothing with --goal robustness",
        ),
        (&["show", "--rounds", "2"], "--rounds: means nothing without --extended"),
    ] {
        let outcome = run(arguments.iter().copied().chain([program.as_str()]));
        assert_eq!(
            (outcome.status, outcome.stderr.trim_end()),
            (0, &*format!("fencewright: {told}")),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_former_option_says_what_to_write_instead() {
    for command in ["check", "robust", "fences"] {
        let outcome = run([command, "--no-local-first", "a.fw"]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("tip: write `--reduction none` instead"), "{outcome:?}");
        assert!(!run([command, "--help"]).stdout.contains("local-first"));
    }
}

#[test]
fn executions_are_counted_where_they_are_explored_one_by_one() {
    let files = Files::new(&[
        (
            "two.fw",
            "shared x; thread p[i in 0..2] { x = i; } thread q { atomic { assume x == 1; } } finally f: forall x <= 1;",
        ),
        ("spin.fw", "shared x; thread p { while x == 0 { skip; } } forbid two: x == 2;"),
        ("store.fw", "shared x, y; thread p { while x == 0 { y = 1; } } forbid two: x == 2;"),
    ]);
    let dynamic = ["check", "--engine", "explicit", "--reduction", "dynamic", "--model", "sc", "--quiet"];
    let check = |file: &str| run([&dynamic[..], &[&files.text(file)]].concat());
    let outcome = check("two.fw");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(
        outcome.stdout.contains(" executions (") && outcome.stdout.contains(" blocked), "),
        "{outcome:?}"
    );
    // A loop that only waits is a single step that blocks.
    let outcome = check("spin.fw");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("1 execution (1 blocked)"), "{outcome:?}");
    // Executions without an end cannot be enumerated.
    let outcome = check("store.fw");
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("1 execution (1 without an end)"), "{outcome:?}");
    let outcome = run([&dynamic[..], &["--json", &files.text("two.fw")]].concat());
    let object = &outcome.json_lines()[0];
    assert!(object["executions"]["blocked"].as_u64() > Some(0), "{object}");
    assert_eq!(object["executions"]["endless"], 0, "{object}");
}

/// `--buffer` bounds the stores of each thread or, under PSO, the stores of each thread to each variable.
#[test]
fn bounds_on_buffers() {
    let stores =
        "shared x, y[2]; thread p { x = 1; y[0] = 1; y[1] = 1; x = 2; fence; } invariant small: x <= 2;";
    let files = Files::new(&[("stores.fw", stores)]);
    let path = files.text("stores.fw");
    for (engine, bound, status) in [
        ("explicit", "3", 3),
        ("explicit", "4", 0),
        ("explicit", "1/variable", 3),
        ("explicit", "2/variable", 0),
        ("explicit", "x=2,y=1", 0),
        ("explicit", "x=1,2/variable", 3),
        ("cegar", "3", 3),
        ("cegar", "1/variable", 3),
        ("cegar", "x=2,1/variable", 0),
    ] {
        let outcome = run(["check", "--model", "pso", "--engine", engine, "--buffer", bound, &path]);
        assert_eq!(outcome.status, status, "{engine} {bound}: {outcome:?}");
    }
    for (model, bound, why) in [
        ("tso", "1/variable", "under tso a thread has one buffer"),
        ("pso", "z=1,1/variable", "no shared variable is called `z`"),
        ("pso", "x=1", "there is no bound for `y`"),
        ("pso", "x", "expected N"),
    ] {
        let outcome = run(["check", "--model", model, "--engine", "explicit", "--buffer", bound, &path]);
        assert!(outcome.status == 2 && outcome.stderr.contains(why), "{bound}: {outcome:?}");
    }
}
