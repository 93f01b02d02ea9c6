//! Several C files as one program, and the options of a build system.

use crate::common::{Files, run};

const HEADER: &[u8] = b"#pragma once\n#include <stdatomic.h>\nextern int data;\nextern atomic_int ready;\nvoid put(int value);\n";
const QUEUE: &[u8] = b"#include \"queue.h\"\nstatic int count;\nint data;\natomic_int ready;\nvoid put(int value)\n{\n    count++;\n    data = value;\n    atomic_store_explicit(&ready, 1, memory_order_relaxed);\n}\n";
const MAIN: &[u8] = b"#include <assert.h>\n#include <pthread.h>\n#include \"queue.h\"\nstatic int count;\nvoid *worker(void *unused)\n{\n    put(1);\n    return unused;\n}\nint main(void)\n{\n    pthread_t thread;\n    pthread_create(&thread, 0, worker, 0);\n    if (atomic_load(&ready))\n        assert(data == 1);\n    pthread_join(thread, 0);\n    assert(count == 0);\n    return 0;\n}\n";

fn files() -> Files {
    let files = Files::new(&[]);
    files.write("queue.h", HEADER);
    files.write("queue.c", QUEUE);
    files.write("main.c", MAIN);
    files
}

#[test]
fn several_files_are_one_program() {
    let files = files();
    let (queue, main) = (files.text("queue.c"), files.text("main.c"));
    for arguments in [["check", "--as-one", &queue, &main], ["check", &main, "--as-one", &queue]] {
        let outcome = run([&arguments[..], &["--model", "tso", "--property", "assertions"]].concat());
        assert!(outcome.stdout.contains("assertions: safe under tso"), "{outcome:?}");
    }
    let outcome = run(["check", &queue, "--as-one", &main, "--model", "pso", "--property", "assertions"]);
    assert!(outcome.stdout.contains("assertions: unsafe under pso"), "{outcome:?}");
    assert!(outcome.stdout.contains("main.c:15"), "{outcome:?}");
    for command in ["run", "robust"] {
        let outcome = run([command, &main, "--as-one", &queue]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
    }
    let outcome = run(["convert", &main, "--as-one", &queue, "--to", "fw"]);
    assert!(outcome.stdout.contains("thread worker"), "{outcome:?}");
    let outcome = run(["check", &main]);
    assert!(outcome.stderr.contains("`ready` is declared `extern`, and defined nowhere"), "{outcome:?}");
}

#[test]
fn fences_go_into_the_file_that_needs_them() {
    let files = files();
    let (queue, main) = (files.text("queue.c"), files.text("main.c"));
    let outcome = run(["fences", &main, "--as-one", &queue, "--model", "pso", "--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(files.read("queue.c").contains("atomic_thread_fence"), "{}", files.read("queue.c"));
    assert_eq!(files.read("main.c").as_bytes(), MAIN);
    let outcome = run(["check", &main, "--as-one", &queue, "--model", "pso", "--property", "assertions"]);
    assert!(outcome.stdout.contains("assertions: safe under pso"), "{outcome:?}");
}

#[test]
fn an_audit_has_the_orders_of_all_files() {
    let files = files();
    files.write("queue.c", String::from_utf8_lossy(QUEUE).replace("relaxed", "seq_cst").as_bytes());
    let (queue, main) = (files.text("queue.c"), files.text("main.c"));
    let outcome = run(["fences", "--audit", "--json", "--model", "pso", &main, "--as-one", &queue]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let found: Vec<String> = outcome
        .json_lines()
        .iter()
        .map(|line| {
            let file = line["file"].as_str().unwrap_or_default();
            format!("{} {} {}", file.rsplit('/').next().unwrap_or(file), line["line"], line["weaker"])
        })
        .collect();
    // Without the release store, the message may arrive after the flag.
    let expected = ["main.c 14 \"memory_order_relaxed\"", "queue.c 9 \"memory_order_release\""];
    assert_eq!(found, expected, "{outcome:?}");
}

#[test]
fn the_build_system_says_how_files_are_compiled() {
    let files = Files::new(&[]);
    files.write("include/x.h", b"#define X 3\n");
    files.write("include/first.h", b"#define FIRST 4\n");
    let program = b"#include <assert.h>\n#include \"x.h\"\n#ifdef GONE\n#error GONE is undefined\n#endif\nint main(void) { assert(N == 2 && X == 3 && FIRST == 4); return 0; }\n";
    files.write("a b.c", program);
    let entry = r#"{"directory": "FOLDER/build", "file": "../a b.c", "command": "cc -I../include '-DN=2' -DGONE -UGONE -include first.h -c '../a b.c' `touch ran`"}"#;
    files.write(
        "build/compile_commands.json",
        format!("[{}]", entry.replace("FOLDER", &files.text(""))).as_bytes(),
    );
    let (program, build) = (files.text("a b.c"), files.text("build"));
    let outcome = run(["check", &program, "-p", &build]);
    assert!(outcome.stdout.contains("assertions: safe under tso"), "{outcome:?}");
    assert!(!files.path("ran").exists() && !files.path("build/ran").exists());
    for option in
        ["-funsigned-char", "--target=aarch64-linux-gnu", "-target i386-linux-gnu", "--define-macro=GONE"]
    {
        let other = entry.replace("FOLDER", &files.text("")).replace("-DGONE", option);
        files.write("build/compile_commands.json", format!("[{other}]").as_bytes());
        let outcome = run(["check", &program, "-p", &build]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        let refused = option.rsplit(' ').next().unwrap_or_default();
        assert!(outcome.stderr.contains(&format!("`{refused}`")), "{outcome:?}");
    }
    let passed = entry
        .replace("FOLDER", &files.text(""))
        .replace("'-DN=2' -DGONE", "-Wp,-DN=2,-DGONE -target x86_64-linux-gnu");
    files.write("build/compile_commands.json", format!("[{passed}]").as_bytes());
    let outcome = run(["check", &program, "-p", &build]);
    assert!(outcome.stdout.contains("assertions: safe under tso"), "{outcome:?}");
    let other = entry.replace("FOLDER", &files.text("")).replace("-DGONE", "-fwrapv");
    files.write("build/compile_commands.json", format!("[{other}]").as_bytes());
    let outcome = run(["check", &program, "-p", &build]);
    assert!(outcome.stderr.contains("is compiled with `-fwrapv`"), "{outcome:?}");
    let outcome = run(["check", &program, "-p", &program]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(
        outcome.stderr.contains("this is not JSON") && outcome.stderr.contains("-p names a folder"),
        "{outcome:?}"
    );
    let outcome = run(["check", &program, "--as-one", &program]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("is given twice"), "{outcome:?}");
    for wrong in ["", "{", "[]", "{}", "[1, {\"file\": 3}, {\"file\": \"a.c\"}]", &"[".repeat(100_000)] {
        files.write("build/compile_commands.json", wrong.as_bytes());
        let outcome = run(["check", &program, "-p", &build]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(
            outcome.stderr.contains("-p: ") && outcome.stderr.contains("compile_commands.json"),
            "{outcome:?}"
        );
    }
}
