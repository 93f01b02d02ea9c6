//! The import of memorax programs.

use fencewright_lang::import;

use crate::imports;

/// Checks that the import of `text` is the same program as `expected`.
fn check(text: &str, expected: &str) {
    imports::check(import::rmm(text), text, expected);
}

/// Checks that a process with this text becomes a thread with this body.
fn check_text(text: &str, body: &str) {
    let declarations = "data x = 0 : [0:2] y = 0 z = 0 : [0:5]";
    let registers = "registers $r = 0 : [0:2] $s = 0 : [0:1] $t = 0";
    check(
        &format!("forbidden * {declarations} process {registers} text {text}"),
        &format!("shared x; shared y; shared z; thread p0 {{ var r, s, t; {body} }} forbid forbidden: true;"),
    );
}

/// Checks that the import fails with this message, at this part of the text.
fn check_error(text: &str, message: &str, place: &str) {
    imports::check_error(import::rmm(text), message, text, place);
}

fn check_text_error(text: &str, message: &str, place: &str) {
    check_error(&format!("forbidden * data x = 0 process registers $r = 0 text {text}"), message, place);
}

#[test]
fn a_lock() {
    check(
        "forbidden CS CS data turn = * : [0:1]
         process(2) data flag = 0 : [0:1] registers $r = * : [0:1]
         text L0: write: flag[my] := 1; L1: read: $r := flag[0]; if $r = 1 then goto L1;
         CS: write: flag[my] := 0; goto L0",
        "shared turn = * in 0..=1; shared flag[2];
         thread p0 { var r = * in 0..=1; L0: flag[0] = 1; L1: r = flag[1]; if r == 1 { goto L1; } CS: flag[0] = 0; goto L0; }
         thread p1 { var r = * in 0..=1; L0: flag[1] = 1; L1: r = flag[0]; if r == 1 { goto L1; } CS: flag[1] = 0; goto L0; }
         forbid forbidden: p0@CS && p1@CS;",
    );
}

#[test]
fn other_processes_are_numbered_without_the_own_one() {
    check(
        "forbidden A A A process(3) data f = 0 registers $r = 0 text A: read: $r := f[0]; read: $r := f[1]",
        "shared f[3]; thread p0 { var r; A: r = f[1]; r = f[2]; } thread p1 { var r; A: r = f[0]; r = f[2]; }
         thread p2 { var r; A: r = f[0]; r = f[1]; } forbid forbidden: p0@A && p1@A && p2@A;",
    );
}

#[test]
fn forbidden_vectors_are_alternatives() {
    check(
        "forbidden A *; * B; A B process text A: nop process text B: nop",
        "thread p0 { A: skip; } thread p1 { B: skip; } forbid forbidden: p0@A || p1@B || p0@A && p1@B;",
    );
}

#[test]
fn local_data_that_no_array_can_hold() {
    check(
        "forbidden * * process data a = 1 b = * text write: a[my] := 2 process data a = 3 b = 0 text write: b[0] := 1",
        "shared a[2] = [1, 3]; shared b_p0 = *; shared b_p1; thread p0 { a[0] = 2; } thread p1 { b_p0 = 1; }
         forbid forbidden: true;",
    );
    check(
        "forbidden * * process data a = 1 text nop process text read: a[0] = 1",
        "shared a_p0 = 1; thread p0 { skip; } thread p1 { await a_p0 == 1; } forbid forbidden: true;",
    );
}

#[test]
fn domains_block() {
    check_text("$s := $r", "assume r <= 1; s = r;");
    check_text("$r := $s", "r = s;");
    check_text("$r := $s - 1", "assume s - 1 >= 0; r = s - 1;");
    check_text("$s := $t", "assume t >= 0 && t <= 1; s = t;");
    check_text("$t := $r", "t = r;");
    check_text("$s := 2", "assume 2 <= 1; s = 2;");
    check_text("write: x := 1", "x = 1;");
    check_text("write: x := $t", "assume t >= 0 && t <= 2; x = t;");
    check_text("write: y := $t", "y = t;");
    check_text("read: $r := x", "r = x;");
    check_text("read: $s := x", "s = x; assume s <= 1;");
    check_text("L: read: $s := y", "L: s = y; assume s >= 0 && s <= 1;");
    check_text("L: $s := $r", "L: assume r <= 1; s = r;");
}

#[test]
fn statements() {
    check_text("read: x = $r + 1", "await x == r + 1;");
    check_text("fence; ssfence; nop", "fence; sfence; skip;");
    check_text("locked write: x := $r", "atomic { x = r; }");
    check_text("locked write: x := $t", "atomic { assume t >= 0 && t <= 2; x = t; }");
    check_text("slocked write: x := 1", "x = 1; sfence;");
    check_text("cas(x, $r, 2)", "atomic { assume x == r; x = 2; }");
    check_text("cas(x, 1, $r + 1)", "atomic { assume x == 1; assume r + 1 <= 2; x = r + 1; }");
    check_text("assume: not [$r = 1 || $t > -1] && true", "assume !(r == 1 || t > -1) && true;");
    check_text("while $r != 0 do { nop; nop }", "while r != 0 { skip; skip; }");
    check_text(
        "if $r < 1 then nop else if $r >= 2 then nop else nop",
        "if r < 1 { skip; } else { if r >= 2 { skip; } else { skip; } }",
    );
    check_text("{ nop; { nop } }", "{ skip; { skip; } }");
    check_text("goto L; L: nop", "skip; goto L; L: skip;");
}

#[test]
fn a_locked_block_with_a_write_empties_the_buffer() {
    check_text("locked { read: $r := x; write: x := 1 }", "atomic { r = x; x = 1; }");
    check_text("locked { read: $r := x; read: x = 1 }", "snapshot { r = x; assume x == 1; }");
    check_text(
        "locked { read: x = 1 or write: x := 2 or { nop; assume: $r = 1 } }",
        "atomic { choose { assume x == 1; } or { x = 2; } or { skip; assume r == 1; } }",
    );
}

#[test]
fn a_waiting_read_does_not_select_a_branch() {
    check_text(
        "either { read: x = 1; nop or nop; read: x = 2 or { read: y = 3 } }",
        "choose { snapshot { assume x == 1; } skip; } or { skip; await x == 2; } or { { snapshot { assume y == 3; } } }",
    );
}

#[test]
fn some_branches_start_with_an_extra_step() {
    check_text(
        "L0: either { goto L0 or L1: nop or while true do nop or if true then nop }",
        "L0: choose { skip; goto L0; } or { skip; L1: skip; } or { skip; while true { skip; } } or { if true { skip; } }",
    );
}

#[test]
fn pointers_point_to_globals_by_number() {
    check_text("write: [0 + 1] := 5", "y = 5;");
    check_text(
        "write: [$s] := $t",
        "choose { assume s == 0; assume t >= 0 && t <= 2; x = t; } or { assume s == 1; y = t; }",
    );
    check_text(
        "read: $t := [$t + 1]",
        "choose { assume t + 1 == 0; t = x; } or { assume t + 1 == 1; t = y; } or { assume t + 1 == 2; t = z; }",
    );
    check_text(
        "read: [$s] = 0",
        "choose { assume s == 0; await x == 0; } or { assume s == 1; await y == 0; }",
    );
}

#[test]
fn names_that_are_not_allowed_are_changed() {
    check(
        "forbidden end data lock = 0 p0 = 1 process registers $lock_ = 0 $1 = 0 $in = 0
         text end: read: $lock_ := lock; $1 := $in; write: p0 := 2; goto end",
        "shared lock_; shared p0_ = 1; thread p0 { var lock__r, r1, in_r; end_: lock__r = lock_; r1 = in_r; p0_ = 2; goto end_; }
         forbid forbidden: p0@end_;",
    );
}

#[test]
fn predicates_are_left_out() {
    let imported = import::rmm("forbidden * predicates x = 1 ; y < 2 data x = 0 process text nop").unwrap();
    assert_eq!(imported.notes, ["the predicates are left out: no verdict depends on them"]);
}

#[test]
fn spans_of_macros_stay_in_one_body() {
    let text = "forbidden * data x = 0 macro m(v) write: x := v endmacro process text m(1 + 1); nop";
    let imported = import::rmm(text).unwrap();
    let Some(fencewright_lang::ast::Item::Thread(thread)) = imported.file.items.get(1) else { panic!() };
    let spans = thread.body.statements.iter().map(|s| &text[s.span.range()]);
    assert_eq!(spans.collect::<Vec<_>>(), ["write: x :=", "nop"]);
}

#[test]
fn errors() {
    check_text_error("syncwr: x := 1", "`syncwr` is not supported: VIPS only", "syncwr");
    check_text_error("nop; llfence", "`llfence` is not supported: VIPS only", "llfence");
    check_text_error("write: w := 1", "no global variable `w`", "w");
    check_text_error("write: x := $q", "no register `$q`", "$q");
    check_text_error("write: x[my] := 1", "process p0 has no data `x`", "x[my]");
    check_text_error("write: x[0] := 1", "there are not so many processes", "x[0]");
    check_text_error("goto M", "no label `M` in this process", "M");
    check_text_error("L: nop; L: nop", "label `L` is defined twice", "L");
    check_text_error("L: goto L", "a `goto` cannot have a label", "L");
    check_text_error("nop;", "expected a statement, found the end of the file", "");
    check_text_error("nop nop", "expected `;` or the end of the process, found `nop`", "nop");
    check_text_error("write: [7] := 1", "no global variable has the number 7", "[7]");
    check_text_error(
        "locked { write: [$r] := 1 }",
        "a register cannot be a pointer in a locked block",
        "[$r]",
    );
    check_text_error("$r := me", "`me` is not supported", "me");
    check_text_error("assume: x = 1", "expected a register or a number, found `x`", "x");
    check_text_error("$r := 99999999999999999999", "the number does not fit 64 bits", "99999999999999999999");
    check_error("forbidden A process text nop", "process p0 has no label `A`", "A");
    check_error(
        "forbidden A A process text A: nop",
        "the vector has 2 entries, but there are 1 processes",
        "A A",
    );
    check_error(
        "forbidden * data x = 3 : [0:2] process text nop",
        "the initial value is outside the domain",
        "x = 3 : [0:2]",
    );
    check_error("forbidden * data x = 0 : [2:1] process text nop", "the domain is empty", "x = 0 : [2:1]");
    check_error("forbidden * data x = 0 x = 1 process text nop", "`x` is declared twice", "x = 1");
    check_error("forbidden * process(0) text nop", "`process(0)` is no process", "0");
    check_error("forbidden *", "expected `process`, found the end of the file", "");
    check_error("", "expected `forbidden`, found the end of the file", "");
}
