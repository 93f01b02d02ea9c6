//! Messages about violations of `memory` by C programs: the error, the object, where it was allocated, and which thread freed it; and messages about
//! misused locks.

use crate::common::{Files, run};
use serde_json::{Value, json};

/// Checks the sentence about the error at the end of the execution under SC, in text, HTML, SARIF and JSON. Returns the JSON object of the error.
#[track_caller]
fn check(text: &str, expected: &str) -> Value {
    let text = format!("#include <pthread.h>\n#include <stdlib.h>\n{text}");
    let files = Files::new(&[("program.c", &text)]);
    let path = files.text("program.c");
    let ask = |more: &[&str]| {
        let first = ["check", "--model", "sc", "--property", "memory"];
        run(first.iter().chain(more).copied().chain([path.as_str()]))
    };
    let said = ask(&[]);
    assert_eq!(said.status, 1, "{said:?}");
    let line = format!("\n  {expected}\n");
    assert!(said.stdout.contains(&line), "{expected}\n{}", said.stdout);
    let json = &ask(&["--json"]).json_lines()[0];
    assert_eq!(json["mistake"]["message"], expected, "{json}");
    let (page, sarif) = (files.text("page.html"), files.text("answer.sarif"));
    ask(&["--html", &page, "--sarif", &sarif]);
    let html = expected.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(files.read("page.html").contains(&html), "{html}");
    let sarif: Value = serde_json::from_str(&files.read("answer.sarif")).expect("it is JSON");
    let result = &sarif["runs"][0]["results"][0];
    let message = result["message"]["text"].as_str().expect("a text").replace("{{", "{").replace("}}", "}");
    assert!(message.contains(expected), "{message}");
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], json["mistake"]["line"]);
    json["mistake"].clone()
}

/// A program in which a thread executes `thread` and `main` executes `main`; both start immediately.
fn two(globals: &str, thread: &str, main: &str) -> String {
    format!(
        "{globals}
void *worker(void *argument) {{
    {thread}
    return 0;
}}
int main(void) {{
    pthread_t t;
    pthread_create(&t, 0, worker, 0);
    {main}
    return 0;
}}"
    )
}

#[test]
fn use_after_free() {
    let text = "struct cfg { int a, b; };
static struct cfg *shared;
static void *reader(void *argument) {
    struct cfg *c = shared;
    int x = c->a;
    return (void *)(long)x;
}
static void *updater(void *argument) {
    struct cfg *old = shared;
    free(old);
    return 0;
}
int main(void) {
    pthread_t r, u;
    shared = malloc(sizeof *shared);
    shared->a = 1;
    pthread_create(&r, 0, reader, 0);
    pthread_create(&u, 0, updater, 0);
    return 0;
}";
    let mistake = check(
        text,
        "reader at line 7: use after free: `int x = c->a;` accesses `struct cfg` allocated at line 17, freed at line 12 by updater",
    );
    assert_eq!(mistake["kind"], "use-after-free");
    assert_eq!(mistake["thread"], "reader");
    let object = json!({"name": null, "type": "struct cfg", "storage": "heap", "line": 17, "column": 14});
    assert_eq!(mistake["object"], object);
    assert_eq!(mistake["freed"], json!({"thread": "updater", "line": 12, "column": 5}));
}

#[test]
fn double_free() {
    let text = "struct node { int key; };
int main(void) {
    for (int i = 0; i < 2; i++) {
        struct node *n = malloc(sizeof *n);
        n->key = i;
        free(n);
        if (i == 1)
            free(n);
    }
    return 0;
}";
    let mistake = check(
        text,
        "main at line 10: double free: `free(n);` frees `struct node` 1 allocated at line 6, freed at line 8 by main",
    );
    assert_eq!(mistake["kind"], "double-free");
    assert_eq!(mistake["object"]["number"], 1);
}

#[test]
fn out_of_bounds() {
    let text = two("int a[4], i;", "i = 5;", "int n = i; a[n] = 1;");
    let mistake = check(
        &text,
        "main at line 11: out of bounds by 2 elements behind the end: `a[n] = 1;` accesses `a` (`int[4]`, declared at line 3)",
    );
    assert_eq!((&mistake["kind"], &mistake["elements"]), (&json!("out-of-bounds"), &json!(2)));
    let text = two("int a[4], i;", "i = -1;", "int n = i; a[n] = 1;");
    let mistake = check(
        &text,
        "main at line 11: out of bounds by 1 element before the start: `a[n] = 1;` accesses `a` (`int[4]`, declared at line 3)",
    );
    assert_eq!(mistake["elements"], -1);
    let text = two("int a[4], i;", "i = 4;", "int *q = a + i; *q = 1;");
    check(
        &text,
        "main at line 11: out of bounds by 1 element behind the end: `*q = 1;` accesses `a` (`int[4]`, declared at line 3)",
    );
}

#[test]
fn null_pointer() {
    let globals = "struct cfg { int a; } one; struct cfg *p = &one;";
    let mistake = check(
        &two(globals, "p = 0;", "p->a = 1;"),
        "main at line 11: a null pointer is followed: `p->a = 1`",
    );
    assert_eq!(mistake["kind"], "null-pointer");
    assert_eq!(mistake.get("object"), None);
}

#[test]
fn uninitialised() {
    let text = "struct cfg { int a; } *p;
int x;
void *worker(void *argument) {
    if (p->a)
        x = 2;
    return 0;
}
int main(void) {
    pthread_t t;
    p = malloc(sizeof *p);
    pthread_create(&t, 0, worker, 0);
    p->a = 1;
    return x;
}";
    let mistake = check(
        text,
        "worker at line 6: the behaviour depends on an uninitialised value: `p->a` reads `struct cfg` allocated at line 12",
    );
    assert_eq!(mistake["kind"], "uninitialised");
    let text = two("int go;", "go = 1;", "int x; if (go) x = 1; if (x == 1) go = 3;");
    check(
        &text,
        "main at line 11: the behaviour depends on an uninitialised value: `if (x == 1) go = 3;` depends on `x`",
    );
}

#[test]
fn dangling_local() {
    let text = two(
        "int *shared; static void publish(void) { int local = 1; shared = &local; }",
        "publish();",
        "int *q = shared; if (q) *q = 2;",
    );
    let mistake = check(
        &text,
        "main at line 11: a local variable is used that is gone: `*q = 2;` accesses `local` (`int`, declared at line 3), gone since line 5 by worker",
    );
    assert_eq!(mistake["kind"], "dangling-local");
}

#[test]
fn wrong_free() {
    let text = two("int *p, i;", "i = 1;", "p = malloc(4 * sizeof *p); p[0] = 1; int *q = p + i; free(q);");
    let mistake = check(
        &text,
        "main at line 11: what is freed is not the start of an allocation: `free(q);` frees `int` allocated at line 11",
    );
    assert_eq!(mistake["kind"], "bad-free");
}

#[test]
fn misused_mutexes() {
    let text = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
    pthread_mutex_destroy(&m);
    pthread_mutex_lock(&m);
    return 0;
}";
    let files = Files::new(&[("program.c", text)]);
    let said = run(["check", "--model", "sc", "--property", "assertions", &files.text("program.c")]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.stdout.contains("assertion failed: a mutex is used after it was destroyed"),
        "{}",
        said.stdout
    );
}

/// Programs compute with the time, and a model with eight keys says so where a program has more.
#[test]
fn times_and_keys_have_limits() {
    let files = Files::new(&[]);
    let start = "#include <assert.h>\n#include <pthread.h>\n#include <time.h>\n";
    let times = "int main(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec++;
        assert(t.tv_sec * 1000000000 + t.tv_nsec > 0 && t.tv_nsec < 1000000000 && time(0) + 5 >= 5); return 0; }";
    let keys = |number: u32| {
        format!(
            "int main(void) {{ pthread_key_t k; for (int i = 0; i < {number}; i++) pthread_key_create(&k, 0); return 0; }}"
        )
    };
    for (body, expected) in [(times.to_string(), "safe"), (keys(8), "safe"), (keys(9), "unknown")] {
        files.write("a.c", format!("{start}{body}").as_bytes());
        let outcome = run(["check", &files.text("a.c"), "--property", "memory", "--property", "assertions"]);
        for property in ["assertions", "memory"] {
            assert!(outcome.stdout.contains(&format!("{property}: {expected} under tso")), "{outcome:?}");
        }
    }
}
