//! Procedures: the meaning of calls, naming, and errors.

use crate::facts::{ALL, NONE, SC, check, check_deadlock, errors, program, refused};

/// The number of edges of the only thread of a program.
fn edges(text: &str) -> usize {
    program(text).threads[0].edges.len()
}

#[test]
fn a_call_is_a_copy_of_the_text() {
    // Constants and registers are passed without an extra step.
    let called =
        "shared x[2]; fn set(i, v) { x[i] = v; fence; } thread p { var r = 1; set(0, r); set(r, 5); }";
    let written = "shared x[2]; thread p { var r = 1; x[0] = r; fence; x[r] = 5; fence; }";
    assert_eq!(edges(called), edges(written));
    check(&format!("{called} finally forall x[0] == 1 && x[1] == 5;"), ALL);
    // The loads, buffered stores and fences of a procedure belong to the calling thread.
    let sb = |fence: &str| {
        format!(
            "shared x, y;
             fn set_first() {{ x = 1; {fence} return y; }}
             fn set_second() {{ y = 1; {fence} return x; }}
             thread p {{ var r; r = set_first(); }}
             thread q {{ var r; r = set_second(); }}
             finally never p.r == 0 && q.r == 0;"
        )
    };
    check(&sb(""), SC);
    check(&sb("fence;"), ALL);
}

#[test]
fn results_are_values() {
    check(
        "shared x = 3, y;
         fn twice(a) { return 2 * a; }
         fn larger(a, b) { if a >= b { return a; } return b; }
         thread p {
             var r, s[2];
             r = twice(x) + 1;
             s[larger(0, 1)] = larger(twice(r), x);
             y = twice(twice(1)) - larger(r, s[1]);
             if larger(x, y) == 3 && !(twice(0) > 0) { r = 10; }
         }
         finally forall p.r == 10 && p.s[1] == 14 && y == -10;",
        ALL,
    );
    // Order of evaluation: operands to the left of the call are read before it, operands to its right after it.
    check(
        "shared x;
         fn set() { x = 1; return 5; }
         thread p { var r; r = 100 * x + 10 * set() + x; }
         finally forall p.r == 51;",
        ALL,
    );
    // The right side of `&&` is evaluated only if the left side holds; `await` evaluates its condition, including calls, repeatedly.
    check(
        "shared x; fn set() { x = 1; return 1; } thread p { assert !(0 && set()); assume x == 0 || set(); } finally forall x == 0;",
        ALL,
    );
    check(
        "shared x; fn is_set() { return x; } thread p { await is_set(); } thread q { x = 1; } finally exists x == 1;",
        ALL,
    );
    check_deadlock(
        "shared x; fn is_set() { return x; } thread p { assume is_set(); } thread q { x = 1; }",
        false,
    );
    // A call is evaluated even if its result is not used.
    check("shared x = 1; fn f() { return 1 / x; } thread p { x = 0; f(); }", NONE);
}

#[test]
fn registers_of_a_procedure_are_fresh_in_each_call() {
    check(
        "shared x;
         fn count(n) { var i, sum = 7; while i < n { i = i + 1; sum = sum + i; } return sum; }
         thread p { var a, b; a = count(2); b = count(3); }
         finally forall p.a == 10 && p.b == 13;",
        ALL,
    );
    // A register that is written before it is read needs no initial value, and costs no step.
    let with =
        |var: &str| format!("shared x, y; fn f() {{ {var} var r; r = x; y = r; }} thread p {{ f(); f(); }}");
    assert_eq!(edges(&with("")), 4);
    assert_eq!(edges("shared x, y; fn f() { var r; y = r; r = x; } thread p { f(); f(); }"), 6);
    // Assigning to a parameter does not change the argument.
    check(
        "fn f(a) { a = a + 1; return a; } thread p { var r = 3, s; s = f(r); assert r == 3 && s == 4; }",
        ALL,
    );
    check(
        "fn f(a) { var t[2] = [5, 6]; t[a] = 0; return t[0] + t[1]; } thread p { var r = 1; assert f(r) == 5; assert f(0) == 6; }",
        ALL,
    );
    check(
        "fn f() { var t = * in 1..3; return t; } thread p { var r; r = f(); assert r == 1 || r == 2; } finally exists p.r == 2;",
        ALL,
    );
}

#[test]
fn control_stays_inside() {
    check(
        "shared x;
         fn find(n) { var i; loop { i = i + 1; if i == n { return i; } if i > 5 { break; } } return 0; }
         thread p { var r, s; loop { r = find(3); s = find(9); break; } }
         finally forall p.r == 3 && p.s == 0;",
        ALL,
    );
    refused("fn f() { break; } thread p { loop { f(); } }", "1:10 this stands outside every loop");
    refused("fn f() { goto l; } thread p { l: f(); }", "1:15 unknown label `l`");
    check(
        "shared x; fn f() { if x == 0 { stop; } x = 2; } thread p { f(); x = 1; } finally forall x == 0;",
        ALL,
    );
    // A procedure may return immediately or never.
    check("shared x; fn nothing() { } thread p { l: nothing(); x = 1; } forbid p@l && x == 1;", ALL);
    check("fn forever() { loop { } } thread p { forever(); } forbid p@end;", ALL);
    check_deadlock("fn nothing() { return; } thread p { choose { nothing(); } or { assume 0; } }", true);
    check(
        "shared x; fn f(a) { for j in 0..a { x = x + 1; } } thread p { f(3); f(2); } finally forall x == 5;",
        ALL,
    );
}

#[test]
fn calls_inside_indivisible_blocks() {
    check(
        "shared x;
         fn add(d) { var old; old = x; x = old + d; return old; }
         thread p[me in 0..2] { var r; atomic { r = add(1); if r == 5 { add(2); } } }
         finally forall x == 2;",
        ALL,
    );
    refused(
        "fn wait() { loop { skip; } } thread p { atomic { wait(); } }",
        "1:13 a loop cannot stand inside an indivisible block [`wait` is called inside one]",
    );
    refused(
        "shared x; fn f() { cas(x, 0, 1); } thread p { atomic { f(); } }",
        "1:20 a read-modify-write operation cannot stand inside an atomic block [inside the block, read and write the variable: everything there is one step already]",
    );
}

#[test]
fn labels_and_registers_have_the_name_of_the_procedure() {
    let text = |property: &str| {
        format!(
            "shared x;
             fn wait(v) {{ var seen; again: seen = x; if seen != v {{ goto again; }} done: skip; }}
             thread p {{ wait(1); wait(2); wait: skip; }}
             thread q {{ x = 1; x = 2; }}
             {property}"
        )
    };
    check(&text("forbid p@wait.done && x == 0;"), ALL);
    check(&text("forbid p@wait.done && p.wait.seen == 0;"), ALL);
    check(&text("forbid p@wait.done && x == 2;"), NONE);
    check(&text("forbid p@wait && p.wait.seen != 2;"), ALL);
    // A thread that does not call the procedure is never at a label in it.
    check(&text("forbid q@wait.done;"), ALL);
    refused(
        "fn f() { l: skip; } thread p { f(); } forbid p@f.m;",
        "1:48 thread `p` has no label `f.m` [did you mean `f.l`?]",
    );
    refused(
        "fn f(a) { skip; } thread p { f(0); } forbid p.f.a == 0;",
        "1:47 thread `p` has no register `f.a`",
    );
}

#[test]
fn errors_about_procedures() {
    refused(
        "fn f() { f(); } thread p { f(); }",
        "1:10 a procedure cannot call itself: `f` calls `f` [calls are copies of the text; use a loop]",
    );
    refused(
        "fn f(a) { return g(a) + 1; } fn g(a) { var r; r = h(a); return r; } fn h(a) { return f(a); } thread p { var r; r = f(0); }",
        "1:86 a procedure cannot call itself: `f` calls `g` calls `h` calls `f` [calls are copies of the text; use a loop]",
    );
    refused("fn f(a) { skip; } thread p { f(); }", "1:30 `f` takes 1 argument, and 0 are given");
    refused("fn f() { skip; } thread p { f(1, 2); }", "1:29 `f` takes 0 arguments, and 2 are given");
    refused(
        "fn f() { skip; } thread p { var r; r = f(); }",
        "1:40 `f` gives no result [it has no `return` with a value]",
    );
    refused(
        "shared x; fn f() { if x { return 1; } } thread p { f(); }",
        "1:14 `f` can come to its end without a result [put `return ...;` before the closing brace]",
    );
    refused(
        "shared x; fn f() { if x { return; } return 1; } thread p { f(); }",
        "1:27 `f` gives a result elsewhere: this needs one, too",
    );
    refused("thread p { return; }", "1:12 `return` stands in a procedure [`stop;` ends the thread]");
    refused("fn f() { skip; } fn f() { skip; }", "1:21 `f` is already the name of a procedure");
    refused("shared f; fn f() { skip; }", "1:14 `f` is already the name of a shared variable");
    refused(
        "shared x; fn f(x) { skip; } thread p { f(1); }",
        "1:16 `x` is already the name of a shared variable",
    );
    refused("fn f(a, a) { skip; } thread p { f(1, 2); }", "1:9 `a` is already the name of a constant");
    refused(
        "fn f(a) { var a; skip; } thread p { var r; f(r); }",
        "1:15 `a` is already the name of a register",
    );
    // The caller's names are not visible.
    refused(
        "fn f() { r = 1; } thread p { var r; f(); }",
        "1:10 unknown name `r` [declare it: `var r;` in the thread or `shared r;` before it]",
    );
    refused(
        "fn f() { x = me; } shared x; thread p[me in 0..2] { f(); }",
        "1:14 unknown name `me` [declare it: `var me;` in the thread or `shared me;` before it]",
    );
    refused("fn f(a) { for j in 0..a { skip; } } thread p { var r; f(r); }", "1:23 `a` is not a constant");
    refused("fn f() { skip; } forbid f() == 1;", "1:25 a property looks at a state and calls no procedure");
    refused("fn f() { skip; } const N = f();", "1:28 expected a constant expression, found a call");
}

/// A chain of procedures, each of which calls the next one twice.
fn bomb(levels: usize, last: &str) -> String {
    let mut text: String = (0..levels).map(|n| format!("fn f{n}() {{ f{0}(); f{0}(); }}\n", n + 1)).collect();
    text += &format!("shared x; fn f{levels}() {{ {last} }} thread p {{ f0(); }}");
    text
}

#[test]
fn bombs_and_towers_are_refused_in_time() {
    let too_large = "this thread is too large when its `for` loops are unrolled and its calls are inlined";
    for last in ["x = 1;", ""] {
        let found = errors(&bomb(40, last));
        assert!(found.len() == 1 && found[0].contains(too_large), "{found:?}");
    }
    assert_eq!(errors(&bomb(5, "x = 1;")), Vec::<String>::new());
    let tower = |levels: usize| {
        let mut text: String = (0..levels).map(|n| format!("fn f{n}() {{ f{}(); }}\n", n + 1)).collect();
        text += &format!("fn f{levels}() {{ skip; }} thread p {{ f0(); }}");
        text
    };
    assert_eq!(errors(&tower(100)), Vec::<String>::new());
    let found = errors(&tower(1_000));
    assert!(found.len() == 1 && found[0].contains("nested too deeply"), "{found:?}");
}

#[test]
fn call_paths_are_kept() {
    let program = program(
        "shared x;
         fn inner(a) { x = a; }
         fn outer(a) { inner(a + 1); inner(7); }
         thread p { var r; outer(r); }",
    );
    let paths: Vec<Vec<&str>> = program.threads[0]
        .edges
        .iter()
        .map(|edge| program.calls_to(edge.span).map(|call| call.what.as_str()).collect())
        .collect();
    let first = vec!["inner(a + 1)", "outer(r)"];
    assert_eq!(paths, [first.clone(), first, vec!["inner(7)", "outer(r)"]]);
}
