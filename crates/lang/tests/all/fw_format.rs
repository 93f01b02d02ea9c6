//! The formatter's layout.

use fencewright_lang::fw;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(fw::format(text).expect("it has no errors"), expected);
    assert_eq!(fw::format(expected).expect("it has no errors"), expected, "formatted twice");
}

/// Checks that a text is formatted already.
#[track_caller]
fn check_unchanged(text: &str) {
    check(text, text);
}

const PETERSON: &str = "// Peterson's lock for two threads.
const N = 2;
shared flag[N], turn;

thread p[me in 0..N] {
    const other = 1 - me;
    loop {
        flag[me] = 1;
        turn = other;
        await flag[other] == 0 || turn == me;
    critical:
        skip;
        flag[me] = 0;
    }
}

forbid mutex: i < j in 0..N: p[i]@critical && p[j]@critical;
";

#[test]
fn the_example_of_the_language_reference() {
    check_unchanged(PETERSON);
    let (file, _) = fw::parse(PETERSON);
    assert_eq!(format!("// Peterson's lock for two threads.\n{}", fw::print(&file)), PETERSON);
}

#[test]
fn statements() {
    check(
        "thread p{if a{x=1;}else if b{}else{{skip;}}choose{skip;}or{stop;}or{}a:b:while!c{break;}for i in-1..=N-1{
         x=*in 0..4;}atomic{assume(x);}r=cas(x,-y,!z)- -1;swap(a[i],-(1));goto a;end_:}",
        "thread p {
    if a {
        x = 1;
    } else if b {} else {
        {
            skip;
        }
    }
    choose {
        skip;
    } or {
        stop;
    } or {}
a:
b:
    while !c {
        break;
    }
    for i in -1..=N - 1 {
        x = * in 0..4;
    }
    atomic {
        assume (x);
    }
    r = cas(x, -y, !z) - -1;
    swap(a[i], -(1));
    goto a;
end_:
}
",
    );
}

#[test]
fn items() {
    check(
        "numbers nat;shared x=3,y:0..4,a[8]open,b[-2..3]=[1,2,],c=*;thread p{}forbid p@end||p[0].r==1;
         finally f:never i!=j in 0..2,k in 0..3:x;predicates{x<y,y<x;x==y;}predicates{}spare p@l;cost sfence 4;cost p[0]@l 1;",
        "numbers nat;
shared x = 3, y: 0..4, a[8] open, b[-2..3] = [1, 2,], c = *;
thread p {}
forbid p@end || p[0].r == 1;
finally f: never i != j in 0..2, k in 0..3: x;
predicates {
    x < y, y < x;
    x == y;
}
predicates {}
spare p@l;
cost sfence 4;
cost p[0]@l 1;
",
    );
}

#[test]
fn comments_stay_where_they_are() {
    check_unchanged(
        "/* first */

// second
shared x; // behind
/* own */ // line
/* before */ shared y;

thread p { // behind the brace
    // in the block
    x = 1; /* a */ // b
    // before a label

label: // behind a label
    if x { // condition
        // nothing
    } // between
    // and
    else {
        x = /* inside */ 2;
    }
    x = 1 // first
        // second
        + 2; // third
    loop {
        /* nothing */
    }
    // last
} // end
/* many
     lines */
// the end
",
    );
    check(
        "thread p { /* a */ x = 1; /* b */ y = 2; /* c */ }",
        "thread p {
    /* a */ x = 1;
    /* b */ y = 2; /* c */
}
",
    );
}

#[test]
fn blank_lines_are_kept_but_not_doubled() {
    check(
        "\n\nshared x;\n\n\n\nshared y;\nshared z;\nthread p {\n\n  skip;\n\n\n  skip;\n\n}\n\n\n",
        "shared x;

shared y;
shared z;
thread p {
    skip;

    skip;
}
",
    );
    check("", "");
    check("\n\n", "");
    check("// x", "// x\n");
}

#[test]
fn long_lines_break_at_the_weakest_operator() {
    check_unchanged(
        "shared a_rather_long_name, another_rather_long_name, a_third_rather_long_name, a_fourth_one_too,
    the_last_one;
thread p {
    while a_rather_long_name == another_rather_long_name
            && another_rather_long_name == a_third_rather_long_name {
        skip;
    }
}
forbid name: i < j in 0..N:
    p[i]@a_rather_long_label && p[j]@a_rather_long_label
    || p[i].a_rather_long_register + p[j].a_rather_long_register == 1
    || exists k in 0..N:
        p[k]@a_rather_long_label && p[k].a_rather_long_register + p[k].another_one == 1
        || a_rather_long_name == another_rather_long_name;
",
    );
}

#[test]
fn a_file_with_errors_is_not_formatted() {
    let diagnostics = fw::format("shared x").expect_err("the `;` is missing");
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].message, "expected `;` after the declaration, found the end of the file");
}
