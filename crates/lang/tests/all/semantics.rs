//! The meaning of .fw programs: small programs, each with a fact under SC, TSO and PSO, decided by exploring the reference semantics.

use crate::facts::{ALL, NONE, SC, SC_TSO, blocking, check, check_deadlock, holds};
use fencewright_lang::load;
use fencewright_program::MemoryModel;

#[test]
fn stores_are_buffered() {
    let sb = |fence: &str| {
        format!(
            "shared x, y;
             thread p {{ var r; x = 1; {fence} r = y; }}
             thread q {{ var r; y = 1; {fence} r = x; }}
             finally never p.r == 0 && q.r == 0;"
        )
    };
    check(&sb(""), SC);
    check(&sb("fence;"), ALL);
    check(&sb("sfence;"), SC);
    check(&sb("lock; unlock;"), ALL);
    check(&sb("atomic { skip; }"), ALL);
    check(&sb("snapshot { skip; }"), SC);
    check(&sb("cas(x, 5, 6);"), ALL);
}

#[test]
fn stores_of_different_cells_overtake_each_other_only_under_pso() {
    let mp = |fence: &str| {
        format!(
            "shared data, flag;
             thread p {{ data = 1; {fence} flag = 1; }}
             thread q {{ await flag == 1; assert data == 1; }}"
        )
    };
    check(&mp(""), SC_TSO);
    check(&mp("sfence;"), ALL);
    check(&mp("fence;"), ALL);
    check(
        "shared a[2]; thread p { a[0] = 1; a[1] = 1; } thread q { await a[1] == 1; assert a[0] == 1; }",
        SC_TSO,
    );
    // Stores to the same cell never overtake each other.
    check("shared x; thread p { x = 1; x = 2; } finally forall x == 2;", ALL);
}

#[test]
fn a_store_fence_orders_only_across_itself() {
    check(
        "shared x, y, z;
         thread p { x = 1; y = 1; sfence; z = 1; }
         thread q { await z == 1; assert x == 1 && y == 1; }",
        ALL,
    );
    check(
        "shared x, y, z;
         thread p { sfence; x = 1; y = 1; sfence; z = 1; }
         thread q { await y == 1; assert x == 1; }",
        SC_TSO,
    );
}

#[test]
fn a_thread_reads_its_own_newest_store() {
    check("shared x; thread p { var r; x = 1; x = 2; r = x; assert r == 2; }", ALL);
    check("shared x; thread p { x = 1; snapshot { assert x == 1; } }", ALL);
}

#[test]
fn properties_read_memory_rather_than_buffers() {
    check("shared x; thread p { x = 1; after: skip; } forbid p@after && x == 0;", SC);
}

#[test]
fn conditions_stop_when_they_are_decided() {
    // The right side would be out of range, but is not evaluated.
    check("shared a[2], i = 7; thread p { var r = 7; if r < 2 && a[r] == 0 { skip; } }", ALL);
    check("shared a[2], i = 7; thread p { var r = 7; if r >= 2 || a[r] == 0 { skip; } }", ALL);
    check("shared a[2], i = 7; thread p { var r = 7; if i < 2 && a[r] == 0 { skip; } }", ALL);
    check("shared a[2]; thread p { var r = 7; if r >= 2 && a[r] == 0 { skip; } }", NONE);
    check("shared x = 1, y; thread p { var r; r = (x || y) + (y && x); assert r == 1; }", ALL);
    check("shared x = 5; thread p { var r; r = !(x == 5 && !(x == 4)); assert r == 0; }", ALL);
}

#[test]
fn every_load_is_its_own_event() {
    check("shared x; thread p { x = 1; } thread q { var r; r = x - x; assert r == 0; }", NONE);
    check("shared x; thread p { x = x + 1; } thread q { x = x + 1; } finally forall x == 2;", NONE);
    check(
        "shared x; thread p { atomic { x = x + 1; } } thread q { atomic { x = x + 1; } } finally forall x == 2;",
        ALL,
    );
    check(
        "shared x; thread p { fetch_add(x, 1); } thread q { fetch_add(x, 1); } finally forall x == 2;",
        ALL,
    );
}

#[test]
fn read_modify_write_operations() {
    check("shared x = 3; thread p { var r; r = swap(x, 7); assert r == 3 && x == 7; }", ALL);
    check("shared x = 3; thread p { var r = 1; r = swap(x, r); assert r == 3; assert x == 1; }", ALL);
    check("shared x = 3; thread p { var r; r = fetch_add(x, 2); assert r == 3; assert x == 5; }", ALL);
    check("shared x = 3; thread p { var r; r = cas(x, 3, 4); assert r == 1; assert x == 4; }", ALL);
    check("shared x = 3; thread p { var r; r = cas(x, 2, 4); assert r == 0; assert x == 3; }", ALL);
    check(
        "shared x = 3; thread p { if cas(x, 2, 4) { assert 0; } else { x = 9; } } finally forall x == 9;",
        ALL,
    );
    check("shared x; thread p { while !cas(x, 0, 1) { } assert x == 1; }", ALL);
    check(
        "shared l; thread p[i in 0..2] { while swap(l, 1) { } cs: skip; l = 0; } forbid p[0]@cs && p[1]@cs;",
        ALL,
    );
    check(
        "shared x = 1, a[2] = [4, 5]; thread p { var r; r = cas(a[x], x + 4, a[0]); assert r == 1 && a[1] == 4; }",
        ALL,
    );
}

#[test]
fn indivisible_blocks_wait_as_a_whole() {
    check(
        "shared x, y;
         thread p { atomic { y = 1; assume x == 1; y = 2; } }
         thread q { assert y != 1; x = 1; }",
        ALL,
    );
    check("shared x; thread p { atomic { if x == 0 { x = 1; } else { x = 2; } assert x == 1; } }", ALL);
    check(
        "shared x; thread p { atomic { choose { x = 1; } or { x = 2; } } } finally forall x == 1 || x == 2;",
        ALL,
    );
    check("shared x; thread p { atomic { choose { x = 1; } or { x = 2; } } } finally exists x == 2;", ALL);
    check("shared x; thread p { atomic { x = 1; assert x == 0; } }", NONE);
    check(
        "shared x; thread p { var r; atomic { r = *  in 0..3; assume r != 1; x = r; } } finally never x == 1;",
        ALL,
    );
}

#[test]
fn while_the_lock_is_held_others_neither_load_nor_flush() {
    check(
        "shared x, y;
         thread p { lock; x = 1; y = 1; unlock; }
         thread q { var r, s; r = x; s = y; assert !(r == 1 && s == 0); }",
        ALL,
    );
    check("shared x; thread p { lock; x = 1; x = 0; unlock; } thread q { assert x == 0; }", ALL);
    // While one thread holds the lock, a store of another thread may wait in its buffer; under SC, the other thread has to wait before the store.
    check(
        "shared x; thread p { lock; inside: skip; unlock; } thread q { x = 1; stored: skip; }
         forbid p@inside && q@stored && x == 0;",
        SC,
    );
    check_deadlock("shared x; thread p { lock; lock; }", false);
    check_deadlock("shared x; thread p { unlock; }", false);
    check_deadlock("shared x; thread p { lock; unlock; } thread q { lock; unlock; }", true);
    check_deadlock("shared x; thread p { lock; }", true);
    check_deadlock("shared x; thread p { lock; } thread q { lock; }", false);
}

#[test]
fn a_thread_that_waits_for_ever_is_stuck() {
    check_deadlock("shared x; thread p { await x == 1; }", false);
    check_deadlock("shared x; thread p { await x == 1; } thread q { x = 1; }", true);
    // An explicit loop can spin forever.
    check_deadlock("shared x; thread p { while x != 1 { } }", true);
    check_deadlock("shared x; thread p { assume x == 1; }", false);
    check_deadlock("shared x; thread p { loop { } }", true);
    check_deadlock("shared x; thread p { stop; }", true);
    check_deadlock("shared x; thread p { var r; await r == 1; }", false);
}

#[test]
fn an_await_blocks_exactly_while_its_condition_fails() {
    let mutual =
        "shared x, y; thread p { await x == 1; y = 1; } thread q { await y == 1; x = 1; } forbid f: p@end;";
    check_deadlock(mutual, false);
    check(mutual, ALL);
    let against = |condition: &str, other: &str| {
        format!("shared x, y; thread p {{ await {condition}; }} thread q {{ {other} }}")
    };
    for (condition, other, free) in [
        // Conditions with several accesses.
        ("x == 1 && y == 1", "x = 1;", false),
        ("x == 1 && y == 1", "y = 1; x = 1;", true),
        ("x == 1 || y == 1", "y = 1;", true),
        ("x == 1 || y == 1", "await x == 2;", false),
        ("x == y + 1", "y = 1; y = 0; x = 1;", true),
        ("x == y + 1", "y = 1; x = 1;", false),
        // A thread does not keep the left part of a condition and wait for the rest: `x` was 1, and is 0 forever.
        ("x == 1 && y == 1", "x = 1; x = 0; y = 1;", false),
        // A condition whose evaluation changes memory is evaluated repeatedly, so its thread is never blocked; other conditions block.
        ("swap(x, 1) == 0", "skip;", true),
        ("swap(x, 1) == 2", "skip;", false),
        ("swap(x, 1 - y) == 2", "y = 1;", false),
        ("swap(x, 1 - swap(y, 1 - y)) == 2", "skip;", true),
        ("fetch_add(x, 1) == 2", "skip;", true),
        ("fetch_add(x, 0) == 2", "skip;", false),
        ("y == 1 && swap(x, 1) == 0", "skip;", false),
        ("cas(x, 1, 2)", "skip;", false),
        ("cas(x, 1, 2)", "x = 1;", true),
        ("!cas(x, 0, 1)", "skip;", true),
        ("!cas(x, 0, 0)", "skip;", false),
        // A thread that faults has ended, so it is not blocked.
        ("1 / x == 2", "skip;", true),
        ("y == 0 && 1 / (x + 1) == 2", "skip;", false),
    ] {
        check_deadlock(&against(condition, other), free);
    }
    // An evaluation of the condition changes memory, which lets other threads continue; the next evaluation succeeds, although the condition never
    // holds in a single state.
    let skips = "shared x, y, a, b = 1, z;
         thread p { choose { await a == 1 && b == 0 || cas(x, 0, 1) && y == 7; assume 0; } or { await z == 1; } }
         thread q { await x == 1; a = 1; a = 0; b = 0; z = 1; }";
    check_deadlock(skips, false);
    // A store may still be in the buffer of its thread when this thread waits; it reaches memory, and then other threads continue.
    check_deadlock("shared x, y; thread p { x = 1; await y == 1; } thread q { await x == 1; y = 1; }", true);
    check_deadlock(
        "mutex m; shared x; thread p { lock m; await x == 1; unlock m; } thread q { lock m; x = 1; unlock m; }",
        false,
    );
    // Conditions that call procedures.
    check_deadlock(
        "shared x, y; fn both() { return x && y; } thread p { await both(); } thread q { x = 1; }",
        false,
    );
    check_deadlock(
        "shared x, y; fn both() { return x && y; } thread p { await both(); } thread q { x = 1; y = 1; }",
        true,
    );
    let looping = "shared x; fn f() { while x == 2 { } return x; } thread p { await f(); }";
    let errors = blocking(looping).expect_err("its condition has no bound");
    assert!(errors.contains("cannot be evaluated in one step"), "{errors}");
}

#[test]
fn a_waiting_thread_is_at_the_location_of_its_await() {
    let both = |property: &str| {
        format!(
            "shared x, y; thread p {{ l: await x == 1 && y == 1; }} thread q {{ x = 1; y = 2; }} {property}"
        )
    };
    for property in ["invariant !p@end;", "forbid p@l && x == 3;"] {
        let program = blocking(&both(property)).expect("it is accepted");
        assert!(holds(&program, MemoryModel::Sc, &program.properties[0]), "{property}");
    }
    // Both locations at which the thread can wait have the label `l`.
    let stays = "shared x, y; thread p { l: await x == 1 && y == 1; } thread q { x = 1; await x == 2; } forbid q@end || p@l;";
    let program = blocking(stays).expect("it is accepted");
    let waiting = program.threads[0].locations.iter().filter(|l| l.labels.contains(&"l".to_string())).count();
    assert_eq!(waiting, 2);
}

#[test]
fn blocks_of_a_choice_wait_together() {
    let choice = |other: &str| {
        format!(
            "shared x, y; thread p {{ choose {{ await x == 1 && y == 1; }} or {{ await x == 2 && y == 2; }} or {{ snapshot {{ assume x == 3; }} }} }}
             thread q {{ {other} }}"
        )
    };
    check_deadlock(&choice("x = 1;"), false);
    check_deadlock(&choice("x = 1; y = 1;"), true);
    check_deadlock(&choice("y = 1; y = 2; x = 2;"), true);
    check_deadlock(&choice("x = 3;"), true);
    check_deadlock(&choice("x = 1; x = 2; x = 4;"), false);
}

#[test]
fn faults_are_violations() {
    check("shared a[2]; thread p { var r = 2; a[r] = 1; }", NONE);
    check("shared a[-1..2]; thread p { var r = -1; a[r] = 1; assert a[-1] == 1; }", ALL);
    check("shared x: 0..4; thread p { var r = 4; x = r; }", NONE);
    check("shared x: 0..=4; thread p { var r = 4; x = r; }", ALL);
    check("shared x; thread p { var r: 0..2; r = r + 2; }", NONE);
    check("shared x; thread p { var r; r = 1 / r; }", NONE);
    check("shared x; thread p { var r; if r != 0 && 1 / r > 0 { skip; } }", ALL);
    check("numbers nat; shared x; thread p { var r; r = r - 1; }", NONE);
    check("numbers nat; shared x; thread p { x = 0; var r = 1; r = r - 1; }", ALL);
}

#[test]
fn control_flow() {
    check(
        "shared x; thread p { var r; while r < 3 { r = r + 1; if r == 2 { break; } } assert r == 2; }",
        ALL,
    );
    check(
        "shared x; thread p { var r, n; while r < 3 { r = r + 1; if r == 2 { continue; } n = n + 1; } assert n == 2; }",
        ALL,
    );
    check("shared x; thread p { var r; for j in 0..4 { r = r + j; } assert r == 6; }", ALL);
    check("shared x; thread p { var r; for j in 0..0 { assert 0; } r = 1; assert r == 1; }", ALL);
    check(
        "shared x; thread p { var r; for j in 0..3 { again: r = r + 1; if r == j + 1 { goto again; } } assert r == 4; }",
        ALL,
    );
    check("shared x; thread p { var r; goto out; r = 1; out: assert r == 0; }", ALL);
    check("shared x; thread p { choose { x = 1; } or { x = 2; } or { } } finally exists x == 0;", ALL);
    check(
        "shared x; thread p { choose { loop { x = 1; break; } } or { while 1 { x = 2; break; } } } finally forall x == 1 || x == 2;",
        ALL,
    );
    check("shared x; thread p { choose { assume 0; } or { x = 2; } } finally forall x == 2;", ALL);
    check("shared x; thread p { { x = 1; } stop; x = 2; } finally forall x == 1;", ALL);
    check("shared x; thread p { loop { x = 1; fence; done: } } forbid p@done && x == 0;", NONE);
    check("shared x; thread p { x = 1; fence; done: } finally forall p@done && p@end;", ALL);
    check(
        "shared x; thread p { const c = 2; for j in 0..2 { const d = j + c; x = d; } } finally forall x == 3;",
        ALL,
    );
}

#[test]
fn choices() {
    check("shared x = * in 0..3; thread p { skip; } finally exists x == 2;", ALL);
    check("shared x = * in 0..3; thread p { skip; } finally exists x == 3;", NONE);
    check("shared x; thread p { x = * in 1..3; } finally forall x == 1 || x == 2;", ALL);
    check("shared x; thread p { var r: 0..2 = *; x = r; } finally never x == 2;", ALL);
}

#[test]
fn families_and_binders() {
    check("shared x; thread p[i in 0..3] { a: skip; } forbid p[0]@a && p[1]@a && p[2]@a;", NONE);
    check(
        "shared x; thread p[i in 0..2] { const other = 1 - i; var r = 0; r = other; } finally forall i != j in 0..2: p[i].r == j;",
        ALL,
    );
    check("shared a[3]; thread p { skip; } invariant i < j in 0..3: a[i] == a[j];", ALL);
    check("shared a[3] = [0, 0, 1]; thread p { skip; } invariant i < j in 0..3: a[i] == a[j];", NONE);
    check("shared a[3] = [0, 0, 1]; thread p { skip; } invariant exists i in 0..3: a[i] == 1;", ALL);
    check(
        "const N = 2; shared a[N]; thread p[i in 0..N] { a[i] = i; } finally forall forall i in 0..N: a[i] == i;",
        ALL,
    );
}

#[test]
fn for_loops_can_be_left_and_continued() {
    check(
        "shared x; thread p { var r; for j in 0..5 { if j == 3 { break; } r = r + 1; } assert r == 3; }",
        ALL,
    );
    check(
        "shared x; thread p { var r; for j in 0..5 { if j == 3 { continue; } r = r + 1; } assert r == 4; }",
        ALL,
    );
}

#[test]
fn a_negated_condition_can_wait_inside_an_indivisible_block() {
    check("shared x; thread p { atomic { assume !(x == 1); x = 1; } } finally forall x == 1;", ALL);
    check("shared x = 1; thread p { atomic { assume !(x == 1); x = 2; } } finally never x == 2;", ALL);
    check_deadlock("shared x = 1; thread p { atomic { assume !(x == 1); x = 2; } }", false);
}

#[test]
fn constants_can_be_overridden_and_unknown_ones_are_errors() {
    let text = "const N = 2; shared x; thread p { x = N; } finally forall x == 5;";
    let loaded = load("test.fw", text.as_bytes(), None, &[("N".into(), 5)]).expect("loads");
    assert!(holds(&loaded.program, MemoryModel::Tso, &loaded.program.properties[0]));
    let error = load("test.fw", text.as_bytes(), None, &[("M".into(), 5)]).expect_err("M is not there");
    assert!(error.diagnostics[0].message.contains("no constant `M`"), "{error:?}");
}

#[test]
fn a_quantifier_is_a_truth_value_for_any_number_of_instances() {
    for (n, holds) in [(0, 0), (1, 1), (2, 1)] {
        let declarations = format!("const N = {n}; shared x = 3; thread p {{ skip; }}");
        for formula in [
            format!("(exists i in 0..N: x) == {holds}"),
            "(forall i in 0..N: x) == 1".to_string(),
            "(forall i < j in 0..N: x) + (forall i != j in 0..N + 1: x) == 2".to_string(),
            format!("(exists i in 0..N: exists j in 0..N: x) * 2 == {}", 2 * holds),
            "(exists i in 0..N: x) - (exists j in 0..N: x) == 0".to_string(),
        ] {
            check(&format!("{declarations} invariant {formula};"), ALL);
            check(&format!("{declarations} finally forall {formula};"), ALL);
            check(&format!("{declarations} forbid {formula};"), NONE);
        }
    }
}

#[test]
fn quantified_conditions_count_nonzero_as_true() {
    check("shared x = 3; thread p { skip; } forbid i in 0..1: x;", NONE);
    check("shared x = 3; thread p { skip; } invariant i in 0..1: x;", ALL);
    check("shared x = 3; thread p { skip; } invariant i in 0..1: !x;", NONE);
    check("shared x = 3; thread p { skip; } finally exists i in 0..1: x;", ALL);
    check("shared x = 3; thread p { skip; } finally never i in 0..0: x;", ALL);
}

#[test]
fn logical_operators_give_truth_values() {
    for e in ["x && true", "true && x", "x || false", "0 || x", "!!x", "!(!x)", "x && x", "!(x && 0)"] {
        check(&format!("shared x = 3; thread p {{ skip; }} invariant ({e}) == 1;"), ALL);
        check(&format!("shared x = 3; thread p {{ var r; r = {e}; }} finally forall p.r == 1;"), ALL);
        let in_register = e.replace('x', "s");
        check(&format!("shared y; thread p {{ var s = 3; y = {in_register}; }} finally forall y == 1;"), ALL);
    }
}

#[test]
fn whole_number_operators_over_the_reals_are_refused_wherever_they_stand() {
    let refused = |items: &str, position: &str| {
        let message = error(&format!("numbers real; const N = 3; shared x, a[4];\n{items}"));
        assert!(message.starts_with(position), "{message} in {items}");
        message
    };
    for op in ["/", "%", "&", "|", "^"] {
        let said = format!("`{op}` is not supported over the reals");
        let message = refused(&format!("thread p {{ skip; }} forbid x == 0 && x {op} 2 == 0;"), "2:37: ");
        assert!(message.ends_with(&said), "{message}");
        refused(&format!("thread p {{ skip; }} finally exists i in 0..2: x {op} 2 == 0;"), "2:46: ");
        refused(&format!("thread p {{ skip; }} predicates {{ x == 1, x {op} 2 == 0; }}"), "2:41: ");
        refused(&format!("thread p {{ var r; a[r {op} 2] = 1; }}"), "2:21: ");
        refused(&format!("thread p {{ atomic {{ assume x {op} 2 == 0; }} }}"), "2:28: ");
    }
    let inexact = "is not a whole number";
    assert!(refused("const H = N / 2; thread p { skip; }", "2:11: ").ends_with(inexact));
    assert!(refused("thread p { x = N / 2; }", "2:16: ").ends_with(inexact));
    assert!(refused("thread p { skip; } forbid x == 1 / 2;", "2:32: ").ends_with(inexact));
    assert!(refused("shared b[N / 2]; thread p { skip; }", "2:10: ").ends_with(inexact));
    check(
        "const N = 6; shared a[N / 2]; thread p[i in 0..N / 3] { a[i % 2] = N / 2 | 4; }
         finally forall a[0] == 7 && a[1] == 6 / 6 * 7; numbers real;",
        ALL,
    );
}

#[test]
fn a_label_before_a_brace_names_what_follows() {
    // A thread is at both labels no matter on which path it came.
    check("shared x; thread p { if x { x = 1; done: } y: skip; } forbid p@done != p@y;", ALL);
    check("shared x; thread p { if x { x = 1; done: } x = 2; } forbid p@done && x == 0;", NONE);
    check("shared x; thread p { while x < 2 { x = x + 1; again: } } forbid p@again && x == 0;", NONE);
    check("shared x; thread p { for j in 0..2 { x = j; next: } fence; } finally never p@next;", ALL);
    check("shared x; thread p { x = 1; fence; last: var r; } finally forall p@last && p@end;", ALL);
    // The label is in every copy of the body of a `for`.
    check("shared x; thread p { var r; for j in 0..3 { a: r = j; } } forbid p@a && p.r == 1;", NONE);
}

#[test]
fn a_block_is_chosen_by_its_first_step() {
    // Waiting does not select an alternative: the thread stays at the choice while it waits.
    let waiting = |first: &str| {
        format!(
            "shared x, y; thread p {{ a: choose {{ {first} x == 1; }} or {{ y = 1; }} b: skip; }}
             thread q {{ x = 1; }} finally exists y == 1;"
        )
    };
    check(&waiting("await"), ALL);
    check_deadlock(&waiting("await"), true);
    // An assumption that reads memory does select an alternative, because the read is a step before it.
    check(&waiting("assume"), ALL);
    check_deadlock(&waiting("assume"), false);
    check(
        "shared x; thread p { var r; choose { await x == 1; r = 1; } or { await x == 2; r = 2; } }          thread q { x = 2; } finally forall p.r == 2;",
        ALL,
    );
    check_deadlock("shared x; thread p { var r; choose { assume r; } or { skip; } }", true);
    check_deadlock("shared x; thread p { choose { atomic { assume x; } } or { skip; } }", true);
    check_deadlock("shared x; thread p { choose { { await x; } } or { assume 0; } }", false);
    // A label or a loop at the start of an alternative has a location of its own, which is entered by a step.
    check_deadlock("shared x; thread p { var r; choose { l: assume r; } or { skip; } }", false);
    check_deadlock(
        "shared x; thread p { var r; choose { for j in 0..1 { assume r; } } or { skip; } }",
        false,
    );
    check(
        "shared x; thread p { a: choose { l: skip; goto l; } or { skip; } b: skip; } forbid p@a && p@l;",
        ALL,
    );
}

#[test]
fn a_compare_and_swap_that_is_a_condition_decides_in_its_own_step() {
    check_deadlock("shared x = 1; thread p { assume cas(x, 0, 2); } thread q { x = 0; }", true);
    check_deadlock("shared x; thread p { assume !cas(x, 0, 2); } thread q { x = 1; }", true);
    check_deadlock("shared x; thread p { assume !cas(x, 0, 2) && x; } thread q { x = 1; }", true);
    check_deadlock("shared x; thread p { assume cas(x, 0, 2) == 0; } thread q { x = 1; }", false);
    check("shared x; thread p { a: if cas(x, 0, 2) { b: skip; } } forbid !p@a && !p@b && !p@end;", ALL);
    check("shared x; thread p { a: if cas(x, 0, 2) == 1 { b: skip; } } forbid !p@a && !p@b && !p@end;", NONE);
}

#[test]
fn constants_decide_without_a_step() {
    for condition in [
        "0 && x",
        "1 && 0 && x",
        "1 || x || r",
        "(2 || x || r) - 1",
        "0 && r",
        "1 || x",
        "!(1 || x)",
        "(0 && x) == 0",
        "1",
        "0 > 1",
    ] {
        let in_between = "forbid !p@a && !p@b && !p@end;";
        check(&format!("shared x; thread p {{ var r; a: if {condition} {{ }} b: skip; }} {in_between}"), ALL);
        check(&format!("shared x; thread p {{ var r; a: r = {condition}; b: skip; }} {in_between}"), ALL);
        check(
            &format!(
                "shared x; thread p {{ var r; skip; if {condition} {{ }} a: b: skip; }} forbid p@a != p@b;"
            ),
            ALL,
        );
    }
    check("shared x; thread p { a: if x { } b: skip; } forbid !p@a && !p@b && !p@end;", NONE);
    // A jump is a step only if it has a label, because the label needs a location.
    check("shared x; thread p { a: goto b; x = 1; b: skip; } forbid p@a && p@b;", ALL);
    check("shared x; thread p { a: skip; goto b; x = 1; b: skip; } forbid !p@a && !p@b && !p@end;", ALL);
}

/// The first error message for a program.
fn error(text: &str) -> String {
    let error = load("test.fw", text.as_bytes(), None, &[]).expect_err("this is wrong");
    let first = &error.diagnostics[0];
    let (line, column) = error.sources.main().line_column(first.span.start as usize);
    format!("{line}:{column}: {}", first.message)
}

#[test]
fn mistakes_are_explained() {
    assert_eq!(error("shared x;\nthread p { y = 1; }"), "2:12: unknown name `y`");
    assert_eq!(error("shared x;\nthread p { x[0] = 1; }"), "2:12: `x` is not an array");
    // Names are resolved even in operands that constants exclude from evaluation.
    assert_eq!(error("shared x; thread p { x = 1 || y; }"), "1:31: unknown name `y`");
    assert_eq!(error("shared x; thread p { if 0 && y { } }"), "1:30: unknown name `y`");
    assert_eq!(error("shared x; thread p { if 0 && x && y { } }"), "1:35: unknown name `y`");
    assert_eq!(error("shared a[2]; thread p { a = 1; }"), "1:25: `a` is an array and needs an index");
    assert_eq!(
        error("shared a[2]; thread p { a[2] = 1; }"),
        "1:25: index 2 is outside `a`, whose indices are 0 to 1"
    );
    assert_eq!(error("shared x; thread p { goto l; }"), "1:27: unknown label `l`");
    assert_eq!(error("shared x; thread p { break; }"), "1:22: this stands outside every loop");
    assert_eq!(
        error("shared x, x; thread p { skip; }"),
        "1:11: `x` is already the name of a shared variable"
    );
    assert_eq!(
        error("shared x; thread p { l: skip; l: skip; }"),
        "1:31: the label `l` stands twice in this thread"
    );
    assert_eq!(
        error("shared x; thread p { atomic { fence; } }"),
        "1:31: a fence cannot stand inside an indivisible block"
    );
    assert_eq!(error("shared x; thread p { snapshot { x = 1; } }"), "1:33: a `snapshot` block cannot store");
    assert_eq!(error("shared x; thread p { skip; } forbid p@l;"), "1:39: thread `p` has no label `l`");
    assert_eq!(error("shared x; thread p { skip; } forbid p[0]@l;"), "1:37: `p` is a single thread");
    assert_eq!(
        error("shared x; thread p[i in 0..2] { l: skip; } forbid p@l;"),
        "1:51: `p` is a family of 2 threads"
    );
    assert_eq!(
        error("shared x; thread p { x = p@l; }"),
        "1:26: this can only be said in a property, not in a thread"
    );
    assert_eq!(error("shared x: 1..3; thread p { skip; }"), "1:8: `x` starts at 0, which is outside 1..=2");
    assert_eq!(error("shared a[100000]; thread p { skip; }"), "1:8: more than 4096 memory cells");
    assert_eq!(
        error("numbers nat; shared x = -1; thread p { skip; }"),
        "1:21: `x` starts below 0, which is not a natural number"
    );
    assert_eq!(
        error("shared x; thread p { var r; if x { var r = 5; } }"),
        "1:36: registers are declared at the top level of a thread or procedure"
    );
    assert_eq!(
        error("shared x; thread p { skip; } forbid deadlock: x == 1;"),
        "1:37: `deadlock` is the name of a property that every program has"
    );
    assert_eq!(
        error("shared x; thread p { skip; } forbid 1 / x == 1;"),
        "1:37: a formula may divide only by a constant other than 0"
    );
    assert_eq!(
        error("numbers real; shared x; thread p { x = x / 2; }"),
        "1:40: `/` is not supported over the reals"
    );
    assert_eq!(error("shared x; thread p[i in 0..1000] { skip; }"), "1:25: more than 250 threads");
    assert_eq!(
        error("shared x; thread p { for a in 0..1000 { for b in 0..1000 { skip; skip; } } }"),
        "1:50: this thread is too large when its `for` loops are unrolled and its calls are inlined"
    );
}
