//! Arrays of registers, mutexes and assertion messages.

use crate::facts::{ALL, NONE, check, check_deadlock, program, refused};
use fencewright_program::{Action, Fault, Op};

#[test]
fn elements_are_registers() {
    check(
        "shared x[3] = [5, 6, 7];
         thread p { var seen[3], i; for j in 0..3 { seen[j] = x[j]; } i = 2; i = seen[i] - seen[0]; }
         finally forall p.seen[0] == 5 && p.seen[1] == 6 && p.seen[2] == 7 && p.i == 2;",
        ALL,
    );
    check(
        "thread p { var a[-1..2] = [4, 5, 6], i = -1; while i < 2 { a[i] = a[i] + i; i = i + 1; } } finally forall p.a[-1] == 3 && p.a[0] == 5 && p.a[1] == 7;",
        ALL,
    );
    check(
        "thread p { var a[4] = 1; assert a[a[a[0]]] == 1; a[a[2] + 1] = 3; a[a[2]] = a[2]; } finally forall p.a[2] == 3 && p.a[3] == 3;",
        ALL,
    );
    check(
        "thread p { var a[2] = * in 0..2, i: 0..2 = 1; a[i] = * in 3..5; } finally forall p.a[1] == 3 || p.a[1] == 4;",
        ALL,
    );
    check("thread p { var a[2]: 0..3, i = 1; a[i] = 3; }", NONE);
    check("thread p { var a[2]: 0..3, i = 1; a[i] = 2; a[1] = a[i]; }", ALL);
    check("thread p { var a[3] = [1, 0, 0]; } forbid exists i in 0..3: p.a[i] == 2;", ALL);
    check(
        "shared x; thread p { var a[2], i; a[i] = x; cas(x, a[i], a[i] + 1); atomic { i = x; a[i] = 4; x = a[i]; } } finally forall x == 4 && p.a[1] == 4;",
        ALL,
    );
}

#[test]
fn an_index_outside_is_a_fault() {
    let faults = |text: &str, safe: bool| check(text, if safe { ALL } else { NONE });
    faults("thread p { var a[2], i = 2; i = a[i]; }", false);
    faults("thread p { var a[2], i = 2; a[i] = 1; }", false);
    faults("thread p { var a[2], i = -1; a[i] = *; }", false);
    faults("thread p { var a[2], i = 1; a[i] = a[1 - i]; }", true);
    // If the left operand decides the condition, the index in the right operand is not evaluated.
    faults("thread p { var a[2], i = 5; assume i < 2 && a[i] == 0; }", true);
    faults("thread p { var a[2], i = 5; assume i >= 2 || a[i] == 0; }", true);
    faults("thread p { var a[2], i = 5; assume a[i] == 0 && i < 2; }", false);
    // The faulting statement writes nothing.
    check("shared x; thread p { var a[2], i = 2; x = a[i]; } forbid x != 0; forbid p@end;", NONE);
    check("shared x; thread p { var a[2], i = 2; a[i] = x; } forbid exists i in 0..2: p.a[i] != 0;", NONE);
    let program = program("thread p { var a[2], i: 0..2; a[i] = a[i] + 1; }");
    assert!(program.properties.is_empty(), "a declared range makes the index certain");
}

#[test]
fn elements_are_steps() {
    // An access with a computed index takes two steps: the first one determines the element, the second one writes it.
    let edges = |text: &str| program(text).threads[0].edges.len();
    assert_eq!(edges("thread p { var a[3]; a[1] = 5; }"), 1);
    assert_eq!(edges("thread p { var a[3], i; a[i] = 5; }"), 7);
    assert_eq!(edges("thread p { var a[3], i, r; r = a[i]; }"), 2);
    assert_eq!(edges("shared x; thread p { var a[3]; a[2] = x; }"), 1);
    check_deadlock("thread p { var a[2], i; await a[i] == 1; }", false);
}

#[test]
fn errors_about_arrays() {
    refused("thread p { var a[2]; a = 1; }", "1:22 `a` is an array and needs an index [write `a[0]`]");
    refused("thread p { var a[2]; a[2] = 1; }", "1:22 index 2 is outside `a`, whose indices are 0 to 1");
    refused("thread p { var a; a[0] = 1; }", "1:19 `a` is not an array");
    refused("thread p { var a[0]; }", "1:16 the array `a` has no elements");
    refused("thread p { var a[5000]; }", "1:16 an array of more than 4096 registers");
    refused("thread p { var a[9223372036854775807]; }", "1:16 an array of more than 4096 registers");
    refused("thread p { var a[2] open; }", "1:16 only an array of shared memory can be `open`");
    refused("thread p { var a[2] = [1]; }", "1:16 1 initial values for 2 cells");
    refused("thread p { var a[2]; swap(a[0], 1); }", "1:27 `a` is not a shared variable");
    refused(
        "thread p { var a[2]; } forbid p.a[2] == 0;",
        "1:33 thread `p` has no register `a[2]` [did you mean `a[0]`?]",
    );
    let nested = |depth: usize| {
        format!("thread p {{ var a[64], i; i = {}i{}; }}", "a[".repeat(depth), "]".repeat(depth))
    };
    assert!(crate::facts::errors(&nested(2)).is_empty());
    assert!(crate::facts::errors(&nested(8))[0].contains("too large when it is expanded"));
}

#[test]
fn mutexes_exclude() {
    let counter = |declared: &str, take: &str, give: &str| {
        format!(
            "shared x; {declared} thread p[i in 0..2] {{ {take} x = x + 1; {give} }} finally forall x == 2;"
        )
    };
    check(&counter("mutex m;", "lock m;", "unlock m;"), ALL);
    check(&counter("mutex m[2];", "lock m[1];", "unlock m[1];"), ALL);
    check(&counter("mutex m[-1..1];", "var r = -1; lock m[r];", "unlock m[r];"), ALL);
    check(
        &counter(
            "mutex m, n;",
            "if i == 0 { lock m; } else { lock n; }",
            "if i == 0 { unlock m; } else { unlock n; }",
        ),
        NONE,
    );
    // While a mutex is held, other threads can access memory, unlike with the global lock.
    check(
        "shared x; mutex m; thread p { lock m; await x == 1; unlock m; } thread q { x = 1; } finally exists x == 1;",
        ALL,
    );
    // Locking and unlocking both drain the buffer.
    for fence in ["lock m;", "lock m; unlock m;"] {
        check(
            &format!(
                "shared x, y; mutex m, n;
                 thread p {{ var r; x = 1; {fence} r = y; }}
                 thread q {{ var r; y = 1; {} r = x; }}
                 finally never p.r == 0 && q.r == 0;",
                fence.replace('m', "n").replace("unlocn", "unlock")
            ),
            ALL,
        );
    }
}

#[test]
fn a_mutex_records_its_holder() {
    let text = "mutex m, n[2]; thread p { lock m; a: unlock m; } thread q { lock n[1]; b: unlock n[1]; }";
    check(&format!("{text} forbid p@a && m != 1; forbid q@b && n[1] != 2; forbid n[0] != 0;"), ALL);
    check(&format!("{text} finally forall m == 0 && n[1] == 0;"), ALL);
    check("mutex m; thread p { unlock m; }", NONE);
    check("mutex m; thread p { lock m; } thread q { unlock m; }", NONE);
    check("mutex m[2]; thread p { var i = 2; lock m[i]; }", NONE);
    check_deadlock("mutex m; thread p { lock m; lock m; }", false);
    check_deadlock("mutex a, b; thread p { lock a; lock b; } thread q { lock b; lock a; }", false);
    check_deadlock(
        "mutex a, b; thread p { lock a; lock b; unlock b; unlock a; } thread q { lock a; lock b; unlock b; unlock a; }",
        true,
    );
    let program = program("mutex m; thread p { lock m; unlock m; }");
    let faults: Vec<Fault> = program.threads[0]
        .edges
        .iter()
        .flat_map(|edge| edge.action.ops())
        .filter_map(|op| if let Op::Assert(_, fault) = op { Some(*fault) } else { None })
        .collect();
    assert_eq!(faults, [Fault::Mutex]);
    assert!(program.threads[0].edges.iter().all(|e| matches!(e.action, Action::Atomic { drains: true, .. })));
}

#[test]
fn errors_about_mutexes() {
    refused(
        "mutex m; thread p { m = 1; }",
        "1:21 `m` is a mutex, not a variable [it is locked by `lock` and unlocked by `unlock`]",
    );
    refused(
        "mutex m; thread p { cas(m, 0, 1); }",
        "1:25 `m` is a mutex, not a variable [it is locked by `lock` and unlocked by `unlock`]",
    );
    refused(
        "mutex m; thread p { assume m == 0; }",
        "1:28 `m` is a mutex, not a variable [it is locked by `lock` and unlocked by `unlock`]",
    );
    refused(
        "shared x; thread p { lock x; }",
        "1:27 `x` is not a mutex [declare it at the top level: `mutex x;`]",
    );
    refused(
        "thread p { var r; unlock r; }",
        "1:26 `r` is not a mutex [declare it at the top level: `mutex r;`]",
    );
    refused("mutex m[2]; thread p { lock m; }", "1:29 `m` is an array and needs an index [write `m[0]`]");
    refused("mutex m; thread p { lock m[0]; }", "1:26 `m` is not an array");
    refused("mutex m[2]; thread p { lock m[2]; }", "1:29 index 2 is outside `m`, whose indices are 0 to 1");
    refused(
        "mutex m; thread p { atomic { lock m; } }",
        "1:30 a mutex cannot stand inside an indivisible block",
    );
    refused("mutex m; shared m;", "1:17 `m` is already the name of a shared variable");
}

#[test]
fn assertions_have_texts() {
    let loaded = program(
        "shared x; thread p[i in 0..2] { assert x == 0, \"a \\\"b\\\" \\\\ c\"; assert x == 1, \"d\"; assert 1; }",
    );
    assert_eq!(loaded.texts, ["d", "a \"b\" \\ c"]);
    assert_eq!(loaded.text_of(Fault::Assertion(Some(0))), Some("d"));
    assert_eq!(loaded.text_of(Fault::Assertion(None)), None);
    assert!(loaded.threads[0].is_like(&loaded.threads[1]));
    check("shared x; thread p { assert x == 0, \"never\"; }", ALL);
    check("shared x; thread p { atomic { x = 1; assert x == 0, \"always\"; } }", NONE);
}
