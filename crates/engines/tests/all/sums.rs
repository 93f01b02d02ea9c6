//! Invariants that relate more than two variables: engine `cegar` finds the sums that programs compute with, and its proofs are checked. For a
//! slightly wrong variant of each program, it finds a violation.

use std::time::Duration;

use fencewright_engines::cegar::Cegar;
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::load;
use fencewright_program::MemoryModel;

/// Checks a program under all memory models, unchanged (safe) and with `BUG = 1` (unsafe).
#[track_caller]
fn decided(text: &str) {
    decided_under(text, &MemoryModel::ALL);
}

#[track_caller]
fn decided_under(text: &str, models: &[MemoryModel]) {
    for wrong in [false, true] {
        let text = text.replace("BUG = 0", if wrong { "BUG = 1" } else { "BUG = 0" });
        let program = load("sums.fw", text.as_bytes(), None, &[]).expect("it loads").program;
        for &model in models {
            let task = Task::new(&program, model, program.properties.clone());
            let limits = Limits::starting_now(Some(Duration::from_secs(120)), None, Default::default());
            let checked = check(&Cegar::default(), &task, &limits, &Progress::default(), Confirm::default());
            for checked in checked {
                let about = format!("{model:?} {}\n{text}", checked.property.name);
                match (checked.verdict(), wrong) {
                    (Verdict::Safe, false) | (Verdict::Unsafe, true) => {}
                    (verdict, _) => panic!("{about}: {verdict:?}"),
                }
            }
        }
    }
}

#[test]
fn money_moves_under_a_lock() {
    decided(
        "const BUG = 0;
         shared x = 100, y;
         thread mover { var r, a; loop { a = *; lock; r = x; x = r - a; r = y; y = r + a + BUG; unlock; } }
         thread back { var r, a; loop { a = *; lock; r = y; y = r - a; r = x; x = r + a; unlock; } }
         thread auditor { var p, q; loop { lock; p = x; q = y; assert p + q == 100; unlock; } }",
    );
}

#[test]
fn two_counters_and_their_sum() {
    decided(
        "const BUG = 0;
         shared a, b, c;
         thread left { var r, s; loop { atomic { r = a; a = r + 1; s = c; c = s + 1; } } }
         thread right { var r, s; loop { atomic { r = b; b = r + 1; s = c; c = s + 1 + BUG; } } }
         thread look { var p, q, r; loop { atomic { p = a; q = b; r = c; } assert p + q == r; } }",
    );
}

#[test]
fn two_counters_with_weights() {
    decided(
        "const BUG = 0;
         shared twos, threes, units;
         thread a { var r; loop { atomic { r = twos; twos = r + 1; r = units; units = r + 2; } } }
         thread b { var r; loop { atomic { r = threes; threes = r + 1; r = units; units = r + 3 + BUG; } } }
         thread look { var x, y, z; loop { atomic { x = twos; y = threes; z = units; } assert z == 2 * x + 3 * y; } }",
    );
}

#[test]
fn credits_that_are_taken_and_given_back() {
    decided(
        "const BUG = 0;
         shared left = 10, given;
         thread client[me in 0..2] {
             var r, g, have;
             loop {
                 choose {
                     atomic { r = left; assume r > 0; left = r - 1; g = given; given = g + 1; }
                     have = have + 1;
                 } or {
                     assume have > 0;
                     atomic { r = left; left = r + 1 + BUG; g = given; given = g - 1; }
                     have = have - 1;
                 }
             }
         }
         thread look { var x, y; loop { atomic { x = left; y = given; } assert x + y == 10; } }",
    );
}

/// Two sums of counters that only grow, read one after the other.
#[test]
fn sums_of_growing_counters() {
    decided_under(
        "const BUG = 0;
         shared c[2];
         thread p[me in 0..2] { var k; loop { k = k + 1 - 2 * BUG; c[me] = k; } }
         thread reader {
             var s, t;
             loop {
                 s = 0; t = 0;
                 for i in 0..2 { s = s + c[i]; }
                 for i in 0..2 { t = t + c[i]; }
                 assert s <= t;
             }
         }",
        &[MemoryModel::Sc],
    );
}

/// Each event is counted in `c` before its thread counts it.
#[test]
fn parts_are_never_ahead_of_the_whole() {
    decided(
        "const BUG = 0;
         shared a[2], c;
         thread w[me in 0..2] {
             var k, r;
             loop { atomic { r = c; c = r + 1; } k = k + 1 + BUG; a[me] = k; }
         }
         thread look { var s, t; loop { s = 0; for i in 0..2 { s = s + a[i]; } t = c; assert s <= t; } }",
    );
}

#[test]
fn work_done_and_work_handed_out() {
    decided_under(
        "const BUG = 0;
         shared handed, done[2];
         thread boss { var h; loop { h = h + 1; handed = h; } }
         thread w[me in 0..2] {
             var d, h, e;
             loop { atomic { e = done[1 - me]; h = handed; assume d + e < h + BUG; d = d + 1; done[me] = d; } }
         }
         forbid over: done[0] + done[1] > handed;",
        &[MemoryModel::Sc],
    );
}

/// The sequence number is twice a counter: sums, differences and residues of the same cells, in one certificate.
#[test]
fn a_sequence_lock_that_counts() {
    decided_under(
        "const BUG = 0;
         shared seq, a, b;
         thread w { var i; loop { i = i + 1; seq = 2 * i - 1; a = i; b = i; seq = 2 * i; } }
         thread r {
             var s, t, x, y;
             loop { s = seq; if s % 2 == BUG { x = a; y = b; t = seq; if s == t { assert x == y; } } }
         }",
        &[MemoryModel::Sc],
    );
}
