//! Programs printed as C: the text, compilation without warnings, and programs that cannot be expressed in C.

use std::process::{Command, Stdio};

use fencewright_lang::{export, load};
use fencewright_testing::corpora::tell_skipped;

fn printed(text: &str) -> Result<String, String> {
    let loaded = load("test.fw", text.as_bytes(), None, &[]);
    let loaded = loaded.unwrap_or_else(|e| panic!("{}", e.sources.render(&e.diagnostics, false)));
    export::c(&loaded.file, &loaded.program, &loaded.title()).map_err(|errors| errors[0].message.clone())
}

/// Compiles a C text with all warnings as errors; `None` if there is no compiler.
fn compiles(text: &str) -> Option<String> {
    let gcc = Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut gcc = gcc.ok()?;
    std::io::Write::write_all(&mut gcc.stdin.take().expect("it is piped"), text.as_bytes()).ok()?;
    let output = gcc.wait_with_output().ok()?;
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn check(text: &str) -> String {
    let c = printed(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    match compiles(&c) {
        None => tell_skipped("export_c", "there is no gcc"),
        Some(said) => assert!(said.is_empty(), "{said}\n{c}"),
    }
    c
}

#[test]
fn a_lock_looks_like_c() {
    let text = check(
        "const N = 2;
         shared flag[N], turn, count;
         thread p[me in 0..N] {
             const other = 1 - me;
             var r;
             flag[me] = 1;
             turn = other;
             fence;
             await flag[other] == 0 || turn == me;
             r = count;
             count = r + 1;
             flag[me] = 0;
         }
         finally both: forall count == N && p[0].r != p[1].r;",
    );
    let program = text.split_once("enum").expect("the program follows the headers").1;
    let expected = "enum { N = 2 };
atomic_int flag[2];
atomic_int turn;
atomic_int count;
int p_r[2];

static void *p(void *argument) {
    const int me = (int)(intptr_t)argument;
    (void)me;
    const int other = 1 - me;
    int r = 0;
    store(flag[me], 1);
    store(turn, other);
    atomic_thread_fence(memory_order_seq_cst);
    while (!(load(flag[other]) == 0 || load(turn) == me)) {
    }
    r = load(count);
    store(count, r + 1);
    store(flag[me], 0);
    p_r[me] = r;
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, p, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert((load(count) == 2 && p_r[0] != p_r[1]) && \"both\");
    return 0;
}
";
    assert_eq!(format!("enum{program}"), expected);
}

#[test]
fn every_statement_compiles() {
    let text = check(
        "const N = 3;
         const BIG = 7;
         shared x, y = 3, z = *, w = * in 0..4, small: 0..4 = 1, a[3] = 7, b[2] = [1, 2], d[-2..3], int_ = 1, load;
         shared t: u8 = 200, s: i16 = -3, u[2]: u16;
         mutex m, locks[2];
         fn wait() { await x == 0; }
         fn pick(i, by) {
             var old, dead;
             dead = i;
             old = a[i];
             if old > 3 { return old; } else { a[i] = old + by; }
             return old - by;
         }
         fn quit(n) { if n == 1 { stop; } x = 1; }
         thread p {
             var r, seen[4], k: 0..4, w1: u8, any = *, arr[-1..2]: 0..4 = [1, 2, 3];
             const k1 = N - 1;
             x = y + 1;
             r = x == y;
             r = (x < y) + (y > x) * 2;
             if x { skip; } else if y && (x || z) || !(x + 1) { x = 2; } else { y = 1; }
             while !(x == 1) { x = x - 1; if y == 2 { break; } continue; }
             loop { r = r + 1; if r > 3 { break; } }
             for j in 0..k1 { const q = j + 1; a[j] = q; if r == q { continue; } if r == 5 { break; } }
             choose { x = 1; } or { await x == 1; y = 2; } or { stop; }
             again: r = r - 1;
             if r > 0 { goto again; }
             seen[r & 3] = x; seen[1] = 2; k = r; arr[r] = x; arr[-1] = 2;
             d[-2] = 1; d[r] = y; d[x] = pick(r, 2) + a[r];
             r = cas(x, 0, 1) + swap(y, r) + fetch_add(z, -1);
             cas(t, 300, r + 300); swap(t, 300); fetch_add(t, -1); r = cas(s, r, -1);
             t = 300 - 5; t = r; s = t + s; u[r] = x; w1 = r * 300; r = u8(r) + i8(r) - ~r;
             r = min(r, 2) + max(x, 1) - r / 2 % 3; r = (r << 3) + (r >> 1) + (r << k) + (r >> k) + (1 & r | 2 ^ r);
             r = x == 1 ? y : z + 1; small = r; small = 2; swap(small, 3);
             r = *; r = * in 0..=4; x = *; k = *; w1 = *;
             fence; sfence;
             lock m; unlock m; lock locks[r]; unlock locks[1];
             assume r == 1 || x; assert x != 5; assert x, \"what? \\\"really\\\"\"; await r > 2;
             wait(); quit(r); r = pick(0, 1); pick(1, BIG);
             r = load + int_;
             { const q = 2; x = q; }
             last:
         }
         thread other[me in 1..3] { var r = me, unread; r = b[me - 1]; unread = r; }
         finally never forall i in 1..3: b[0] == 1 && z > i;",
    );
    for part in ["__VERIFIER_nondet_int", "shift_left(", "cas_uint8_t(", "within(", "pthread_exit(0)"] {
        assert!(text.contains(part), "{part}");
    }
    // Sums of these values overflow `int`.
    let text = check(
        "shared t: u32 = 4000000000, s: i64, a[2]: i32 = [1, -2147483648];
         const LARGE = 5000000000;
         fn f(n: u32) { return n + 1; }
         thread p { var r, w: i8; r = t + 1 << 20; t = r; s = LARGE; a[r] = t; w = cas(t, 1, 2) - f(r); r = u32(r) * 3; r = min(w, t); }
         finally forall p.w == 1 || p.r >= -9223372036854775807 - 1;",
    );
    assert!(text.contains("(int64_t)load(t)"));
}

#[test]
fn inexpressible_constructs_are_named_for_c() {
    let cannot = |text: &str, what: &str| {
        let why = printed(text).expect_err("C cannot say this");
        assert!(why.contains(what), "{why}");
    };
    cannot("shared x; thread p { a: x = 1; } forbid p@a;", "a property of all states");
    cannot("shared x; thread p { x = 1; } finally exists x == 0;", "`finally exists`");
    cannot("shared x; thread p { lock; x = 1; unlock; }", "the global lock");
    cannot("shared x; thread p { atomic { x = 1; } }", "`atomic`");
    cannot("shared x; thread p { var r; snapshot { r = x; } }", "`snapshot`");
    cannot("numbers nat; shared x; thread p { x = 1; }", "`numbers nat`");
    cannot("shared x[2] open; thread p { x[0] = 1; }", "`open`");
    cannot("shared x: 0..3; thread p { fetch_add(x, 1); }", "checked against a range");
    cannot(
        "shared x; fn f() { var r; r = x; } thread p { f(); } finally never p.f.r == 1;",
        "a register of a procedure",
    );
}
