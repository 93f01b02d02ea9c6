//! `fencewright litmus`, as a user would type it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::*;
use fencewright_testing::corpora::corpora;
use serde_json::Value;

fn test(name: &str, condition: &str) -> String {
    format!(
        "X86 {name}\n{{ }}\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\n{condition}\n"
    )
}

fn files() -> Files {
    Files::new(&[
        ("b/allowed.litmus", &test("SB", "exists (0:EAX=0 /\\\n    1:EAX=0)")),
        ("b/deep/forbidden.litmus", &test("SB-forbidden", "~exists (0:EAX=0 /\\ 1:EAX=0)")),
        ("a/required.litmus", &test("SB-required", "forall (x=1 /\\ y=1)")),
        ("a/notes.txt", "not a test"),
        ("sb.fw", STORE_BUFFERING),
        ("safe.fw", SAFE),
        ("diverging.litmus", "X86 D\n{ }\n P0 ;\nL: ;\n MOV [x],$1 ;\n JMP L ;\nexists (x=2)\n"),
        ("wrong.litmus", "X86 W\n{ }\n P0 ;\n WHAT [x],$1 ;\nexists (x=2)\n"),
        ("silent.litmus", "X86 W\n{ }\n P0 ;\n MOV [x],$1 ;\n"),
    ])
}

#[test]
fn directories_are_searched_in_order() {
    let files = files();
    let outcome = run(["litmus", "--json", &files.text("a"), &files.text("b")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let found: Vec<String> = array
        .as_array()
        .expect("an array")
        .iter()
        .map(|o| format!("{} {} {} {}", o["test"], o["holds"], o["observation"], o["states"]))
        .collect();
    assert_eq!(
        found,
        [
            "\"SB-required\" true \"Always\" 1",
            "\"SB\" true \"Sometimes\" 4",
            "\"SB-forbidden\" false \"Sometimes\" 4"
        ]
    );
    assert_eq!(
        array[1].to_string(),
        serde_json::json!({
            "file": files.text("b/allowed.litmus"), "test": "SB", "model": "tso",
            "condition": "exists (0:EAX=0 /\\ 1:EAX=0)", "holds": true, "checked": true,
            "observation": "Sometimes", "states": 4,
            "final_states": [
                { "values": { "0:EAX": 0, "1:EAX": 0 }, "satisfies": true },
                { "values": { "0:EAX": 0, "1:EAX": 1 }, "satisfies": false },
                { "values": { "0:EAX": 1, "1:EAX": 0 }, "satisfies": false },
                { "values": { "0:EAX": 1, "1:EAX": 1 }, "satisfies": false },
            ],
        })
        .to_string()
    );
}

#[test]
fn text_is_a_summary_for_each_test() {
    let files = files();
    let outcome = run(["litmus", &files.text("b/allowed.litmus")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let expected = "Test SB Allowed\nStates 4\n0:EAX=0; 1:EAX=0;\n0:EAX=0; 1:EAX=1;\n0:EAX=1; 1:EAX=0;\n\
                    0:EAX=1; 1:EAX=1;\nOk\nWitnesses\nPositive: 1 Negative: 3\nCondition exists (0:EAX=0 /\\ 1:EAX=0)\n\
                    Observation SB Sometimes 1 3\nTime SB ";
    assert!(outcome.stdout.starts_with(expected), "{}", outcome.stdout);
}

/// The reference semantics has too many states on this test to confirm the answer.
#[test]
fn what_is_not_confirmed_is_marked() {
    let two = "MOV [x],$1 | MOV [y],$1 ;\n MOV [z],$1 | MOV [z],$2 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n";
    let text = format!("X86 large\n{{ }}\n P0 | P1 ;\n {two} {two}~exists (0:EAX=0 /\\ 1:EAX=0)\n");
    let files = Files::new(&[("large.litmus", &text)]);
    let outcome = run(["litmus", &files.text("large.litmus")]);
    assert!(outcome.stdout.contains("\nNot confirmed: this stands on the engine alone\n"), "{outcome:?}");
    assert_eq!(answer(&text)["checked"], false);
}

#[test]
fn the_model_and_the_status() {
    let files = files();
    let status = |arguments: &[&str]| {
        let arguments = arguments.iter().map(|a| if a.contains('.') { files.text(a) } else { a.to_string() });
        run(["litmus".to_string(), "--timeout".into(), "300ms".into()].into_iter().chain(arguments)).status
    };
    assert_eq!(status(&["b/allowed.litmus"]), 0);
    assert_eq!(status(&["--model", "sc", "b/allowed.litmus"]), 1);
    assert_eq!(status(&["--model", "all", "b/allowed.litmus"]), 1);
    assert_eq!(status(&["sb.fw"]), 1);
    assert_eq!(status(&["--model", "sc", "sb.fw"]), 0);
    assert_eq!(status(&["diverging.litmus"]), 3);
    assert_eq!(status(&["diverging.litmus", "b/deep/forbidden.litmus"]), 1);
    assert_eq!(status(&["wrong.litmus", "b/allowed.litmus"]), 2);
    assert_eq!(status(&["silent.litmus"]), 2);
    assert_eq!(status(&["safe.fw"]), 2);
    assert_eq!(status(&["missing.litmus"]), 2);
}

#[test]
fn what_is_not_decided_says_why() {
    let files = files();
    let outcome = run(["litmus", "--json", "--timeout", "0.3s", &files.text("diverging.litmus")]);
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    assert!(array[0]["holds"].is_null(), "{array}");
    assert!(array[0]["observation"].is_null(), "{array}");
    assert_eq!(array[0]["reason"], "no answer within 0.300 s");
}

#[test]
fn a_directory_without_tests_is_an_error() {
    let files = Files::new(&[("notes.txt", "nothing")]);
    let outcome = run(["litmus", "--json", &files.text(".")]);
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    assert_eq!((outcome.status, array.as_array().map(Vec::len)), (2, Some(1)));
    assert_eq!(array[0]["error"], "there is no .litmus file in this directory");
    assert!(outcome.stderr.contains("there is no .litmus file"), "{outcome:?}");
}

/// A file that is not a test does not prevent the answers for other files, and has an object at its position in the array.
#[test]
fn bad_files_are_objects_in_the_array() {
    let files = files();
    let names =
        ["wrong.litmus", "b/allowed.litmus", "silent.litmus", "missing.litmus"].map(|f| files.text(f));
    let outcome = run(["litmus", "--json"].into_iter().map(str::to_owned).chain(names.clone()));
    assert_eq!(outcome.status, 2, "{outcome:?}");
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let object = |file: &str, error: &str, line: Option<u32>, column: Option<u32>| serde_json::json!({ "file": file, "error": error, "line": line, "column": column });
    assert_eq!(array[0], object(&names[0], "instruction `WHAT` is not supported", Some(4), Some(2)));
    assert_eq!(array[1]["holds"], true);
    assert_eq!(
        array[2],
        object(&names[2], "the test states no condition about its final states", None, None)
    );
    assert_eq!(array[3], object(&names[3], "no such file", None, None));
}

/// Runs a test given as text, and returns its JSON object.
fn answer(text: &str) -> Value {
    let files = Files::new(&[("t.litmus", text)]);
    let outcome = run(["litmus", "--json", "--timeout", "20s", &files.text("t.litmus")]);
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    array[0].clone()
}

/// The final states of an answer in the notation of herd.
fn states(answer: &Value) -> Vec<String> {
    let state = |state: &Value| {
        let values = state["values"].as_object().expect("an object").iter();
        values
            .map(|(name, value)| format!("{name}={};", value))
            .collect::<Vec<_>>()
            .join(" ")
            .replace('"', "")
    };
    answer["final_states"].as_array().expect("an array").iter().map(state).collect()
}

/// Tests in the styles of various authors. The answers are those of herd7 or, where they differ, of the real machine: herd has no carry flag, takes
/// the sign flag for "greater", and orders non-temporal stores like other stores.
#[test]
fn tests_as_authors_write_them() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions/litmus");
    let check = |name: &str, holds: Option<bool>, expected: &[&str]| {
        let text = std::fs::read_to_string(directory.join(format!("{name}.litmus"))).expect(name);
        let answer = answer(&text);
        assert_eq!(
            (answer["holds"].as_bool(), states(&answer)),
            (holds, expected.iter().map(|s| s.to_string()).collect()),
            "{name}"
        );
    };
    let (yes, no) = (Some(true), Some(false));
    check("addover", yes, &["[x]=-2;"]);
    check("arr", yes, &["0:rax=1;"]);
    check("cas-herd-order", no, &["0:rax=0; 1:rax=7; [x]=7;", "0:rax=8; 1:rax=0; [x]=8;"]);
    check("cmov", yes, &["0:rax=1;"]);
    check("deref", yes, &["1:EBX=0;", "1:EBX=1;"]);
    check("eqeq", yes, &["1:rax=0; [x]=1;", "1:rax=1; [x]=1;"]);
    check("filt", yes, &["0:rax=0; 1:rax=1; [x]=1;"]);
    check("filt2", yes, &["1:rax=1;"]);
    check("hexval", yes, &["0:EAX=-1;"]);
    check("jlt", yes, &["0:rbx=1;"]);
    check("js", no, &["0:rbx=0;"]);
    check("lock-semi", no, &["[x]=2;"]);
    check("p0reg", yes, &["1:rax=0;", "1:rax=1;"]);
    check("signed", yes, &["[x]=-1;"]);
    check("spincount", yes, &["0:EAX=1;"]);
    check("trunc", yes, &["[x]=1;"]);
    check("wrap", yes, &["0:EAX=-2147483648; 0:EBX=-1;"]);
    check("wrap64", yes, &["0:rax=-2147483648; 0:rbx=-1;"]);
    check("x64-int16.2+2W000", no, &["[x]=1; [y]=1;", "[x]=1; [y]=2;", "[x]=2; [y]=1;"]);
    check("x64-uint8.2+2W000", no, &["[x]=1; [y]=1;", "[x]=1; [y]=2;", "[x]=2; [y]=1;"]);
    check("xchgb", no, &["0:rax=0; 1:rax=1;", "0:rax=1; 1:rax=0;"]);
    let text = std::fs::read_to_string(directory.join("x64-nt.2+2W000.litmus")).expect("the test");
    let refused = answer(&text);
    assert_eq!((refused["line"].as_u64(), refused["column"].as_u64()), (Some(17), Some(2)), "{refused}");
    assert!(
        refused["error"].as_str().is_some_and(|e| e.starts_with("instruction `movntil` is not supported"))
    );
}

/// The declared types determine how final values are shown, and conditions compare values modulo the width.
#[test]
fn declared_types_say_how_values_read() {
    let check = |init: &str, code: &str, condition: &str, expected: &str| {
        let answer = answer(&format!("X86_64 t\n{{ {init} }}\nP0 ;\n{code} ;\nexists ({condition})"));
        assert_eq!(
            (answer["holds"].as_bool(), &states(&answer)[..]),
            (Some(true), &[expected.to_owned()][..]),
            "{code}"
        );
    };
    check("uint8_t x;", "movb $-1,(x)", "[x]=-1 /\\ [x]=255", "[x]=255;");
    check("int8_t x=0x80;", "movb (x),%al", "[x]=128 /\\ 0:al=-128", "0:al=-128; [x]=-128;");
    check(
        "uint64_t x; uint64_t 0:rax;",
        "movq $-1,%rax ; movq %rax,(x)",
        "[x]=-1",
        "[x]=18446744073709551615;",
    );
    check("uint64_t 0:rax=-1;", "movl $-1,%eax", "0:rax=4294967295", "0:rax=4294967295;");
    check("int64_t 0:rax=-1;", "movb $1,%al ; movb $2,%ah", "0:rax=-65023", "0:rax=-65023;");
    check("uint64_t 0:rcx; 0:rdx=255;", "movsbl %dl,%ecx", "0:rcx=4294967295", "0:rcx=4294967295;");
    check("", "movq $4294967297,%rax", "0:rax=1", "0:rax=1;");
    check("0:rdi=x; 0:rsi=x;", "movl $1,(%rdi)", "0:rdi=x /\\ 0:rdi=0:rsi", "0:rdi=x; 0:rsi=x;");
    check("int x[2]={1,2}; 0:rdi=x;", "movl 4(%rdi),%eax", "0:rax=[x[1]]", "0:rax=2; [x[1]]=2;");
}

/// If values exceed 64 bits, every condition is unknown.
#[test]
fn beyond_64_bits_nothing_is_claimed() {
    for condition in ["exists 0:rax=0", "~exists 0:rax=0", "forall 0:rax=0"] {
        let code = "movq $0x7fffffffffffffff,%rax ;\nincq %rax";
        let answer = answer(&format!("X86_64 t\n{{ uint64_t 0:rax; }}\nP0 ;\n{code} ;\n{condition}"));
        assert!(answer["holds"].is_null() && answer["observation"].is_null(), "{answer}");
        assert!(answer["reason"].as_str().is_some_and(|r| r.contains("64 bits")), "{answer}");
    }
    // The final states are found, but the condition cannot be computed.
    for kind in ["exists", "never", "forall"] {
        let files = Files::new(&[(
            "t.fw",
            &format!("thread p {{ var r; r = 9223372036854775807; }} finally {kind} p.r + 1 == 0;"),
        )]);
        let outcome = run(["litmus", "--json", &files.text("t.fw")]);
        let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
        assert_eq!(outcome.status, 3, "{outcome:?}");
        assert!(array[0]["holds"].is_null() && array[0]["observation"].is_null(), "{array}");
        assert_eq!(array[0]["final_states"][0]["satisfies"], Value::Null);
    }
}

/// A log has the format of herd, so that mcompare7 can read it.
#[test]
fn the_log_is_that_of_herd() {
    let text = "X86_64 t\n{ uint8_t y=200; 1:RDI=x; }\n P1 | P0 ;\n movl $1,(%rdi) | movl (x),%EAX ;\n | movb (y),%bl ;\n\
                locations [y; 1:rdi;]\n~exists (not (0:RAX=0x0) /\\ ([x]=1 \\/ x=2))";
    let files = Files::new(&[("t.litmus", text)]);
    let outcome = run(["litmus", &files.text("t.litmus")]);
    let expected = "Test t Forbidden\nStates 2\n0:rax=0; 1:rdi=x; [x]=1; [y]=200;\n0:rax=1; 1:rdi=x; [x]=1; [y]=200;\nNo\nWitnesses\n\
                    Positive: 1 Negative: 1\nCondition ~exists (not (0:rax=0) /\\ ([x]=1 \\/ [x]=2))\nObservation t Sometimes 1 1\nTime t ";
    assert!(outcome.stdout.starts_with(expected), "{}", outcome.stdout);
}

/// 216 x86 tests with known answers.
#[test]
fn the_x86_tests_have_the_known_answers() {
    let Some(corpora) = corpora("the_x86_tests_have_the_known_answers") else { return };
    let directory = corpora.join("litmus-x86");
    let expected = std::fs::read_to_string(directory.join("expected.csv")).expect("the known answers");
    let start = Instant::now();
    let outcome = run([
        "litmus".as_ref(),
        "--model".as_ref(),
        "tso".as_ref(),
        "--json".as_ref(),
        directory.as_os_str(),
    ]);
    let elapsed = start.elapsed();
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let array = array.as_array().expect("an array");
    let mut checked = 0;
    for line in expected.lines().skip(1) {
        let (test, holds) = line.rsplit_once(',').expect("test,holds");
        let is_test = |o: &&Value| o["file"].as_str().is_some_and(|f| f.ends_with(&format!("/{test}")));
        let found = array.iter().find(is_test).unwrap_or_else(|| panic!("{test} is missing"));
        assert_eq!(found["holds"], holds == "1", "{test}");
        checked += 1;
    }
    assert_eq!((checked, array.len()), (216, 216));
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}
