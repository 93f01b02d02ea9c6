//! The import of trencher's automata.

use fencewright_lang::{fw, import};

use crate::imports;

/// Checks that the import of `text` is the same program as `expected`.
fn check(text: &str, expected: &str) {
    imports::check(import::trencher(text), text, expected);
}

/// Checks the statement that a transition becomes.
fn check_step(instruction: &str, declarations: &str, registers: &str, statement: &str) {
    check(
        &format!("thread t initial a transition a b {instruction} end"),
        &format!("{declarations} thread t {{ {registers} a: {statement} goto b; b: }}"),
    );
}

/// Checks that the import fails with this message, at this part of the text.
fn check_error(text: &str, message: &str, place: &str) {
    imports::check_error(import::trencher(text), message, text, place);
}

#[test]
fn instructions() {
    check_step("read r 3", "shared m3;", "var r;", "r = m3;");
    check_step("write 1 + 2 3", "shared m5;", "", "m5 = 1;");
    check_step("write 1 -2", "shared mm2;", "", "mm2 = 1;");
    check_step("local r & s 1x", "", "var r, s;", "r = s & 1;");
    check_step("check && ! r < s + 2 * r -3", "", "var r, s;", "assume !r && s < 2 + r * -3;");
    check_step("mfence", "", "", "fence;");
    check_step("noop", "", "", "skip;");
    check_step("lock", "", "", "lock;");
    check_step("unlock", "", "", "unlock;");
}

#[test]
fn states_are_labels_and_transitions_choices() {
    check(
        "# comment: é\nthread t\ninitial q1\ntransition q0 q1 noop\ntransition q1 q0 check r\n\
         transition q1 end check ! r\nend\n# another",
        "thread t { var r; q1: choose { assume r; goto q0; } or { assume !r; goto end_; } q0: skip; goto q1; end_: }",
    );
}

#[test]
fn the_last_initial_state_counts() {
    check("thread t initial a initial b end", "thread t { goto b; b: }");
    check(
        "thread t initial a initial b transition c d noop end",
        "thread t { goto b; c: skip; goto d; b: d: }",
    );
}

#[test]
fn computed_addresses_need_an_array() {
    check(
        "thread t initial a transition a b write 7 2 transition b c read r 2 transition c d write 1 - r 9 end",
        "shared mem[-9..=2] open; thread t { var r; a: mem[2] = 7; goto b; b: r = mem[2]; goto c; c: mem[r - 9] = 1; goto d; d: }",
    );
}

#[test]
fn unknown_addresses_are_noted() {
    let text = "thread t initial a transition a a local r + r 1 transition a a write 90 r end";
    let imported = import::trencher(text).unwrap();
    assert_eq!(imported.notes.len(), 1);
    assert!(fw::print(&imported.file).contains("mem[0..=90] open"), "{}", fw::print(&imported.file));
    let far = "thread t initial a transition a b local r 2000000000 transition b c read r r end";
    let imported = import::trencher(far).unwrap();
    assert_eq!(imported.notes, ["addresses lie far apart: memory is only the window from 0 to 0"]);
}

#[test]
fn names_that_are_not_allowed_are_changed() {
    check(
        "thread m0 initial 0 transition 0 1.5 read -1 0 transition 1.5 0 local var mem end thread 1 initial x end",
        "shared m0_; thread m0 { var _1, var_r, mem; q0: _1 = m0_; goto q1_5; q1_5: var_r = mem; goto q0; } thread t1 { goto x; x: }",
    );
}

#[test]
fn errors() {
    check_error("#no blank", "expected `thread`, found `#no`", "#no");
    check_error("thread t end", "thread `t` has no `initial`", "t");
    check_error("thread t initial a end thread t initial a end", "thread `t` is defined twice", "t");
    check_error("thread t initial a # end", "expected `initial`, `transition` or `end`, found `#`", "#");
    check_error("thread t transition a b jump", "unknown instruction `jump`", "jump");
    check_error("thread t transition a b write 1", "expected an expression, found the end of the file", "");
}
