//! Errors in .fw files: message, position and advice.

use fencewright_lang::fw;

/// All errors of a text, each as `line:column message [advice]`.
fn errors(text: &str) -> Vec<String> {
    let file = fencewright_lang::source::SourceFile::new("test.fw", text);
    let (_, diagnostics) = fw::parse(text);
    let describe = |d: fencewright_lang::diagnostic::Diagnostic| {
        let (line, column) = file.line_column(d.span.start as usize);
        let help = d.help.map(|help| format!(" [{help}]")).unwrap_or_default();
        format!("{line}:{column} {}{help}", d.message)
    };
    diagnostics.into_iter().map(describe).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(errors(text), expected, "{text}");
}

/// Checks for one error in the statement, which is alone on the second line of the text, in the body of a thread.
#[track_caller]
fn check_statement(statement: &str, expected: &str) {
    let text = format!("thread p {{\n{statement}\nskip;\n}}\nforbid p@a;\n");
    check(&text, &[expected]);
}

#[test]
fn assignment() {
    check_statement("x := 1;", "2:3 expected `=`, found `:=` [an assignment is written with `=`]");
    check_statement("x == 1;", "2:3 expected `=`, found `==` [`==` compares, `=` assigns]");
    check_statement("x++;", "2:2 `++` is not in the language [write `x = x + 1;`: it is a load and a store]");
    check_statement("x--;", "2:2 `--` is not in the language [write `x = x - 1;`: it is a load and a store]");
    check_statement(
        "a[i] += 2 * y;",
        "2:6 `+=` is not in the language [write `a[i] = a[i] + ...;`: it is a load and a store]",
    );
    check_statement(
        "++x;",
        "2:1 expected a statement, found `++` [write `x = x + 1;`: it is a load and a store]",
    );
    check_statement(
        "q.r = 1;",
        "2:2 expected `=` after `q`, found `.` [a thread sees its own registers, by their names, and shared variables]",
    );
    check_statement("x;", "2:2 expected `=` after `x`, found `;`");
    check_statement("r = * + 1;", "2:7 expected `;` after the assignment, found `+`");
    check_statement(
        "r = 1 + *;",
        "2:9 expected an expression, found `*` [`*`, any value, stands directly after `=`: `r = *;` or `r = * in 0..4;`]",
    );
}

#[test]
fn missing_semicolon() {
    check_statement("x = 1", "2:6 expected `;` after the assignment, found the keyword `skip`");
    check_statement("fence", "2:6 expected `;` after `fence`, found the keyword `skip`");
    check_statement("x = 1 y = 2;", "2:7 expected `;` after the assignment, found `y`");
    check_statement("{ x = 1 }", "2:8 expected `;` after the assignment, found `}`");
    check(
        "shared x\nshared y\nforbid x == y",
        &[
            "1:9 expected `;` after the declaration, found the keyword `shared`",
            "2:9 expected `;` after the declaration, found the keyword `forbid`",
            "3:14 expected `;` after the formula, found the end of the file",
        ],
    );
}

#[test]
fn conditions() {
    let equals = "`=` assigns, and is no part of an expression; `==` compares";
    check_statement("if x = 1 { skip; }", &format!("2:6 expected `==`, found `=` [{equals}]"));
    check_statement("while (x = 1) { skip; }", &format!("2:10 expected `==`, found `=` [{equals}]"));
    check_statement("assume a and b;", "2:10 expected `&&`, found `and` [write `&&`]");
    check_statement(
        "assume a or b;",
        "2:10 expected `||`, found the keyword `or` [`or` stands between the blocks of a `choose`; in expressions, \
         write `||`]",
    );
    check_statement("assume not a;", "2:8 expected an expression, found `not` [negation is written `!`]");
    check_statement("assume a <> b;", "2:10 expected `!=`, found `<>` [write `!=`]");
    check_statement(
        "assume a < b <= c;",
        "2:14 comparisons do not chain [write `a < b && b <= ...`, or use parentheses]",
    );
    check_statement("assume;", "2:7 expected an expression, found `;`");
    check_statement(
        "x <<= 2;",
        "2:3 `<<=` is not in the language [write `x = x << ...;`: it is a load and a store]",
    );
}

#[test]
fn braces() {
    let help = "a body stands in braces: `{ ... }`";
    check_statement(
        "if x y = 1;",
        &format!("2:6 expected `{{` after the condition of `if`, found `y` [{help}]"),
    );
    check_statement(
        "if x { skip; } else y = 1;",
        &format!("2:21 expected `{{` after `else`, found `y` [{help}]"),
    );
    check_statement(
        "if x then { y = 1; } else { y = 2; }",
        &format!("2:6 expected `{{` after the condition of `if`, found `then` [{help}]"),
    );
    check_statement(
        "else { skip; }",
        "2:1 expected a statement, found the keyword `else` [`else` stands directly after the block of an `if`]",
    );
    check_statement(
        "{ skip; };",
        "2:10 expected a statement, found `;` [no `;` stands after a `}`; a statement that does nothing is `skip;`]",
    );
    check_statement(
        "for (i = 0; i < 3; i++) { skip; }",
        "2:5 expected the name of the index, found `(` [a `for` goes through a range: `for j in 0..N { ... }`]",
    );
    check(
        "thread p {\n  skip;\nthread q { skip; }\n",
        &[
            "3:1 expected a statement or `}`, found the keyword `thread` [a `}` is missing before it (the block that begins \
         in line 1 does not end), or it belongs outside the thread]",
        ],
    );
    check(
        "thread p {\n  loop {\n    skip;\n",
        &["4:1 expected `}`, found the end of the file [the block that begins in line 2 does not end]"],
    );
    check("thread p { skip; } }\nforbid x;", &["1:20 this `}` closes nothing"]);
}

#[test]
fn words() {
    check_statement("skp;", "2:1 expected a statement, found `skp` [is `skip` meant?]");
    check_statement("whlie x { skip; }", "2:1 expected a statement, found `whlie` [is `while` meant?]");
    check_statement("mfence;", "2:1 expected a statement, found `mfence` [is `fence` meant?]");
    check_statement("exit;", "2:1 expected a statement, found `exit` [is `stop` meant?]");
    check_statement("elif x { skip; }", "2:1 expected a statement, found `elif` [write `else if`]");
    check_statement(
        "fence();",
        "2:6 expected `;` after `fence`, found `(` [write `fence;`: it takes no arguments]",
    );
    check_statement(
        "lock = 1;",
        "2:1 `lock` is a keyword and cannot be used as a name [another name would be `lock_`]",
    );
    check_statement(
        "x = cost;",
        "2:5 `cost` is a keyword and cannot be used as a name [another name would be `cost_`]",
    );
    check_statement(
        "end: skip;",
        "2:1 `end` is a keyword and cannot be used as a name [another name would be `end_`]",
    );
    check(
        "tread p { const x = 1; skip; }",
        &[
            "1:1 expected a declaration, a procedure, a thread or a property, found `tread` [is `thread` meant?]",
        ],
    );
    check(
        "shared open, b;",
        &["1:8 `open` is a keyword and cannot be used as a name [another name would be `open_`]"],
    );
    check(
        "shared int x;",
        &[
            "1:8 a type stands behind the name [write `shared x;` or `shared x: i32;`; `numbers nat;` at the top level makes all numbers \
         natural]",
        ],
    );
}

#[test]
fn operations_and_calls() {
    check_statement(
        "cas(x, 1);",
        "2:9 expected `,` and another argument, found `)` [it is written `cas(x, old, new)`]",
    );
    check_statement("swap(x, 1, 2);", "2:10 expected `)`, found `,` [it is written `swap(x, v)`]");
    check_statement("cas(1, 2, 3);", "2:5 expected a shared variable, found `1`");
    check_statement(
        "x = gcd(1, 2);",
        "2:8 expected an operator or `;`, found `(` [no procedure is called so; the operations are `cas(x, old, new)`, \
         `swap(x, v)` and `fetch_add(x, v)`]",
    );
    check_statement(
        "x = a[0][1];",
        "2:9 expected an operator, found `[` [arrays have one dimension: write `a[i * N + j]`]",
    );
}

#[test]
fn numbers_and_characters() {
    let limits = "numbers go from -9223372036854775808 to 9223372036854775807";
    check_statement(
        "x = 9223372036854775808;",
        &format!("2:5 the number 9223372036854775808 does not fit 64 bits [{limits}]"),
    );
    check_statement(
        "x = -0x8000000000000001;",
        &format!("2:5 the number -0x8000000000000001 does not fit 64 bits [{limits}]"),
    );
    check_statement("x = 1.5;", "2:5 `1.5` is not a number [numbers are whole]");
    check_statement(
        "x = 0x;",
        "2:5 `0x` is not a number [numbers are decimal, as `42`, or hexadecimal, as `0x2a`; names do not begin with a \
         digit]",
    );
    check_statement("x = 3 #$ 4;", "2:7 unexpected characters `#$`");
    check_statement(
        "größe = 1;",
        "2:1 `größe` is not a name [names are made of the letters `a` to `z` and `A` to `Z`, digits and `_`]",
    );
    check(
        "shared x;\n/* no end",
        &["2:1 this comment does not end [a comment that begins with `/*` ends with `*/`]"],
    );
}

#[test]
fn properties_and_declarations() {
    check(
        "forbid mutex p@a && q@b;",
        &[
            "1:14 expected `:` after the name, found `p` [the name of a property is followed by a colon: `forbid NAME: \
         formula;`]",
        ],
    );
    check(
        "finally p@end;",
        &[
            "1:9 expected `exists`, `never` or `forall`, found `p` [`finally exists f;` says that some final state \
         satisfies `f`]",
        ],
    );
    check(
        "forbid i <= j in 0..3: x;",
        &[
            "1:10 expected `<`, `!=` or `in`, found `<=` [two variables are bound by `i < j in 0..N` or `i != j in 0..N`]",
        ],
    );
    check(
        "shared a[4] = 0 open;",
        &[
            "1:17 expected `,` or `;`, found the keyword `open` [`open` stands directly after the size of an array: \
         `mem[64] open`]",
        ],
    );
    check(
        "shared x: 4;",
        &[
            "1:12 expected `..` and the end of the range, found `;` [`0..4` is 0, 1, 2, 3 and `0..=3` is the same]",
        ],
    );
    check("numbers float;", &["1:9 expected `int`, `nat` or `real`, found `float`"]);
    check("spare p;", &["1:8 expected `@` and a label, found `;`"]);
    check("x = 1;", &["1:1 expected a declaration, a procedure, a thread or a property, found `x`"]);
}

#[test]
fn exactly_the_independent_errors_are_reported() {
    check(
        "shared x = ;
const N 3;
thread p {
    x = (1 + ;
    if x { y = ; } else { skp; }
    loop {
        x = 1;
        while x y { z = 2 2; }
        x = 3;
    }
}
thread q[i 0..3] { skip; }
forbid p@;
forbid x == 3;
",
        &[
            "1:12 expected an expression, found `;`",
            "2:9 expected `=` and the value of the constant, found `3`",
            "4:14 expected an expression, found `;`",
            "5:16 expected an expression, found `;`",
            "5:27 expected a statement, found `skp` [is `skip` meant?]",
            "8:17 expected `{` after the condition of `while`, found `y` [a body stands in braces: `{ ... }`]",
            "8:27 expected `;` after the assignment, found `2`",
            "12:12 expected `in` and a range, as in `[i in 0..N]`, found `0`",
            "13:10 expected a label, found `;`",
        ],
    );
}

#[test]
fn nesting_depth_is_limited() {
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("{}{middle}{}", open.repeat(n), close.repeat(n))
    };
    let check_expression = |expression: String, fine: bool| {
        let text = format!("forbid {expression};\nforbid x;");
        let found: Vec<String> =
            errors(&text).into_iter().map(|e| e.split_once(' ').unwrap().1.to_string()).collect();
        let expected = ["this is nested too deeply [give a part of it a name of its own]"];
        assert_eq!(found, &expected[..usize::from(!fine)], "{}...", &text[..40]);
    };
    check_expression(deep("(", "x", ")", 100), true);
    check_expression(deep("(", "x", ")", 101), false);
    check_expression(deep("a[", "x", "]", 100), true);
    check_expression(deep("a[", "x", "]", 101), false);
    check_expression(deep("!", "x", "", 999), true);
    check_expression(deep("!", "x", "", 1001), false);
    check_expression("1 + ".repeat(999) + "1", true);
    check_expression("1 + ".repeat(1001) + "1", false);
    // The nesting depth inside brackets counts too.
    check_expression(deep("a[", "x", &format!("]{}", " + 1".repeat(500)), 3), false);
    // Long chains of `&&` and `||` are accepted, because their trees are balanced.
    check_expression("a && b || ".repeat(50_000) + "c", true);
    let blocks = |n: usize| format!("thread p {}\nforbid x;", deep("{", "skip;", "}", n));
    check(&blocks(100), &[]);
    check(&blocks(101), &["1:110 this is nested too deeply [give a part of it a name of its own]"]);
}

#[test]
fn procedures() {
    check(
        "function f() {}",
        &[
            "1:1 expected a declaration, a procedure, a thread or a property, found `function` [is `fn` meant?]",
        ],
    );
    check("fn f { skip; }", &["1:6 expected `(` and the parameters, found `{`"]);
    check("fn f(a b) { skip; }", &["1:8 expected `,` or `)` after a parameter, found `b`"]);
    check(
        "fn f(a, if) { skip; }",
        &["1:9 `if` is a keyword and cannot be used as a name [another name would be `if_`]"],
    );
    check(
        "fn f(a) -> int { skip; }",
        &[
            "1:9 expected `{` after the parameters, found `->` [a result has no type: `return e;` gives it back]",
        ],
    );
    check(
        "fn f(a) skip;",
        &[
            "1:9 expected `{` after the parameters, found the keyword `skip` [a body stands in braces: `{ ... }`]",
        ],
    );
    let inside = |statement: &str, expected: &str| {
        check(&format!("fn f(a) {{ skip; }}\nthread p {{\n{statement}\nskip;\n}}"), &[expected]);
    };
    inside("f(1", "4:1 expected `,` or `)` after an argument, found the keyword `skip`");
    inside("f(1)", "3:5 expected `;` after the call, found the keyword `skip`");
    inside(
        "f(1) + 1;",
        "3:6 expected `;` after the call, found `+` [as a part of a larger expression it must be assigned: `r = f(x) + 1;`]",
    );
    inside("r = f(1;", "3:8 expected `,` or `)` after an argument, found `;`");
    inside("return", "3:7 expected `;` after `return`, found the keyword `skip`");
    inside("return 1", "3:9 expected `;` after the result, found the keyword `skip`");
    // An undeclared name cannot be called.
    inside(
        "g(1);",
        "3:2 expected an operator or `;`, found `(` [no procedure is called so; the operations are `cas(x, old, new)`, `swap(x, v)` and `fetch_add(x, v)`]",
    );
}

#[test]
fn mutexes_and_texts() {
    check(
        "mutex m = 1;",
        &[
            "1:7 a mutex has a name and perhaps a size [it is free at first; in properties it is 0 while it is free]",
        ],
    );
    check("mutex m, 3;", &["1:10 expected the name of a variable, found `3`"]);
    check("mutex m", &["1:8 expected `;` after the declaration, found the end of the file"]);
    // `mutex` is not a keyword.
    check("shared mutex; thread p { mutex = 1; } forbid mutex: mutex == 2;", &[]);
    check_statement("lock m", "2:7 expected `;` after the mutex, found the keyword `skip`");
    check_statement("lock\nm = 1;", "2:5 expected `;` after `lock`, found `m`");
    check_statement("lock", "2:5 expected `;` after `lock`, found the keyword `skip`");
    check_statement("lock m + 1;", "2:8 expected `;` after the mutex, found `+`");
    check_statement(
        "assert x, 1;",
        "2:11 expected a text in quotes, found `1` [write `assert x == 1, \"x is set\";`]",
    );
    check_statement("assert x, \"a\" y;", "2:15 expected `;` after the assertion, found `y`");
    check(
        "thread p {\nassert x, \"a;\n}",
        &[
            "2:11 this text does not end [a text stands between two `\"` on one line; a `\"` inside it is written `\\\"`]",
            "2:14 expected `;` after the assertion, found `}`",
        ],
    );
    check_statement("x = \"a\";", "2:5 expected an expression, found `\"a\"`");
}

#[test]
fn conditional_expressions_and_types() {
    check_statement(
        "x = a ? b;",
        "2:10 expected `:` and the other value, found `;` [it is written `c ? a : b`: `a` if `c` holds, otherwise `b`]",
    );
    check_statement("x = a ? : b;", "2:9 expected an expression, found `:`");
    check_statement(
        "x = min(a);",
        "2:10 expected `,` and another argument, found `)` [it is written `min(a, b)`]",
    );
    check_statement("x = max(a, b, c);", "2:13 expected `)` after the last argument, found `,`");
    check_statement("x = u8(a, b);", "2:9 expected `)` after the last argument, found `,`");
    check("fn min(a, b) { return a; }", &["1:4 `min` is built in and cannot be declared"]);
    check(
        "fn f(a: int) { skip; }",
        &[
            "1:9 expected a type, found the keyword `int` [the types are `u8`, `u16`, `u32`, `i8`, `i16`, `i32` and `i64`]",
        ],
    );
    check("shared x: u8..5, y: u8 = 3, z[2]: i64;", &[]);
    // These names are not keywords.
    check("shared min, max, u8; thread p { min = max + u8; }", &[]);
}
