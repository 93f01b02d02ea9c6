//! Futexes: `syscall(SYS_futex, ...)`.

use fencewright_lang::options::Options;
use fencewright_lang::{COptions, load};

use crate::verdicts::{assertions, verdicts};

/// Functions for the system calls, and Drepper's mutexes by number.
const FUTEX: &str = "
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
typedef struct timespec *until;
static int wait(void *word, int value) { return syscall(SYS_futex, (int *)word, FUTEX_WAIT_PRIVATE, value, (until)0, (int *)0, 0); }
static int timed(void *word, int value, until t) { return syscall(SYS_futex, (int *)word, FUTEX_WAIT, value, t); }
static int wake(void *word, int number) { return syscall(__NR_futex, (int *)word, FUTEX_WAKE_PRIVATE, number); }
";

fn two(globals: &str, one: &str, other: &str, end: &str) -> String {
    crate::verdicts::two(&format!("{FUTEX} {globals}"), one, other, end)
}

#[track_caller]
fn deadlock(text: &str, expected: &str) {
    let c = COptions { exact_waits: true, ..COptions::default() };
    assert_eq!(verdicts(text, &Options { c, ..Options::default() }, "deadlock"), expected, "{text}");
}

/// The comparison is one step with going to sleep, so a wake-up after a change of the word cannot be lost.
#[test]
fn a_wake_up_is_lost_only_if_the_word_is_not_changed() {
    let wait = "while (!atomic_load(&go)) wait(&go, 0);";
    deadlock(&two("atomic_int go;", wait, "atomic_store(&go, 1); wake(&go, 1);", ""), "sss");
    deadlock(&two("atomic_int go;", wait, "wake(&go, 1); atomic_store(&go, 1);", ""), "uuu");
    deadlock(&two("atomic_int go;", wait, "atomic_store(&go, 1);", ""), "uuu");
    deadlock(&two("atomic_int go;", "wait(&go, 0);", "wake(&go, 1);", ""), "uuu");
    deadlock(&two("atomic_int go;", "wait(&go, 1);", "", ""), "sss");
    let other = "atomic_store(&go, 1); wake(&word, 1);";
    deadlock(&two("atomic_int go, word;", wait, other, ""), "uuu");
    // Futex words that are chosen at run time.
    let chosen =
        "atomic_int *word = &go[__VERIFIER_nondet_bool()]; while (!atomic_load(word)) wait(word, 0);";
    let wakes = |index: u32| format!("atomic_store(&go[{index}], 1); wake(&go[{index}], 1);");
    deadlock(&two("atomic_int go[2];", chosen, &(wakes(0) + &wakes(1)), ""), "sss");
    deadlock(&two("atomic_int go[2];", chosen, &wakes(1), ""), "uuu");
}

/// A waker that stores and then reads whether a thread waits needs a full fence under TSO, because its store may still be buffered. A system call in
/// between is one: it drains the buffer.
#[test]
fn system_calls_drain_buffers() {
    let globals = "atomic_int go, sleepers;";
    let relaxed = "atomic_store_explicit(&go, 1, memory_order_relaxed);";
    let wait = "atomic_fetch_add(&sleepers, 1); while (!atomic_load(&go)) wait(&go, 0);";
    let wakes = "if (atomic_load(&sleepers)) wake(&go, 1);";
    deadlock(&two(globals, wait, &format!("{relaxed} {wakes}"), ""), "suu");
    let fence = "atomic_thread_fence(memory_order_seq_cst);";
    deadlock(&two(globals, wait, &format!("{relaxed} {fence} {wakes}"), ""), "sss");
    deadlock(&two(globals, wait, &format!("{relaxed} wake(&go, 1);"), ""), "sss");
    let side = |call: &str, mine: &str, its: &str, seen: &str| format!("{mine} = 1; {call} {seen} = {its};");
    let buffering = |call: &str| {
        two(
            "int w; volatile int x, y; int a, b;",
            &side(call, "x", "y", "a"),
            &side(call, "y", "x", "b"),
            "assert(a || b);",
        )
    };
    assertions(&buffering(""), "suu");
    assertions(&buffering("wake(&w, 1);"), "sss");
    assertions(&buffering("wait(&w, 1);"), "sss");
    assertions(&buffering("wait(&w, 0);"), "sss");
}

#[test]
fn results_and_errors() {
    let same = "int r = wait(&w, 0); assert(r == 0 || r == -1 && errno == EINTR);";
    assertions(&two("int w;", same, "", ""), "sss");
    assertions(&two("int w;", "assert(wait(&w, 0) == 0);", "", ""), "uuu");
    assertions(&two("int w;", "assert(wait(&w, 1) == -1 && errno == EAGAIN);", "", ""), "sss");
    assertions(&two("int w = -1;", "assert(wait(&w, -1) == 0 || errno != EAGAIN);", "", ""), "sss");
    let late = "struct timespec t = { 0, 1 }; if (timed(&w, 0, &t)) assert(errno != ETIMEDOUT);";
    assertions(&two("int w;", late, "", ""), "uuu");
    let never = "if (timed(&w, 0, 0)) assert(errno != ETIMEDOUT);";
    assertions(&two("int w;", never, "", ""), "sss");
    deadlock(&two("int w;", "struct timespec t = { 0, 1 }; timed(&w, 0, &t);", "", ""), "sss");
    deadlock(&two("int w;", never, "", ""), "uuu");
}

/// A wake-up wakes as many threads as it says, and returns their number. Which of several sleepers it wakes is a choice.
#[test]
fn numbers_of_threads_that_are_woken() {
    let counts = "int r = wake(&w, 1); assert(r == 0 || r == 1);";
    assertions(&two("int w;", "wait(&w, 0);", counts, ""), "sss");
    assertions(&two("int w;", "wait(&w, 0);", "assert(wake(&w, 1) == 0);", ""), "uuu");
    assertions(&two("int w;", "wait(&w, 0);", "assert(wake(&w, 1) == 1);", ""), "uuu");
    assertions(&two("int w, v;", "wait(&w, 0);", "assert(wake(&v, 1) == 0);", ""), "sss");
    let three = |wakes: &str| {
        format!(
            "{FUTEX} int w;
             void *t(void *u) {{ wait(&w, 0); return 0; }}
             int main(void) {{ pthread_t p, q; pthread_create(&p, 0, t, 0); pthread_create(&q, 0, t, 0);
                 w = 1; {wakes} pthread_join(p, 0); pthread_join(q, 0); return 0; }}"
        )
    };
    for (number, free) in
        [("1", "uuu"), ("2", "sss"), ("1000", "sss"), ("__VERIFIER_nondet_bool() + 2", "sss")]
    {
        deadlock(&three(&format!("wake(&w, {number});")), free);
        let fits = format!("int most = {number}; int n = wake(&w, most); assert(n <= most && n <= 2);");
        assertions(&three(&fits), "sss");
    }
    deadlock(&three("wake(&w, 1); wake(&w, 1);"), "sss");
    assertions(&three("assert(wake(&w, 2) < 2);"), "uuu");
}

#[test]
fn bitsets() {
    let wait = "syscall(SYS_futex, &w, FUTEX_WAIT_BITSET, 0, (until)0, (int *)0, 1);";
    let wake = |bits: &str| {
        format!("while (syscall(SYS_futex, &w, FUTEX_WAKE_BITSET, 1, 0, 0, {bits}) == 0) if (tries++) break;")
    };
    let wakes = |bits: &str| {
        two("int w, tries;", wait, &format!("{} if (tries < 2) assert({bits} & 1);", wake(bits)), "")
    };
    assertions(&wakes("3"), "sss");
    assertions(&wakes("2"), "sss");
    let sleeps = "struct timespec t; int r = syscall(SYS_futex, &w, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &t, 0, 1);";
    assertions(&two("int w, tries;", sleeps, &format!("{} assert(tries < 2);", wake("1")), ""), "uuu");
    for operation in ["FUTEX_WAIT_BITSET", "FUTEX_WAKE_BITSET"] {
        let call = format!("syscall(SYS_futex, &w, {operation}, 0, (until)0, (int *)0, 0)");
        let text = two("int w;", &format!("assert({call} == -1 && errno == EINVAL);"), "", "");
        assertions(&text, "sss");
        deadlock(&text, "sss");
    }
}

#[test]
fn requeue() {
    let wait = "wait(&w, 0); gone = 1;";
    let moves = |compare: &str| {
        format!(
            "while (syscall(SYS_futex, &w, FUTEX_CMP_REQUEUE, 0, 1, &v, {compare}) != 1) if (errno == EAGAIN) break;"
        )
    };
    let globals = "int w, v, gone;";
    deadlock(&two(globals, wait, &moves("0"), ""), "uuu");
    deadlock(&two(globals, wait, &format!("{} wake(&w, 1);", moves("0")), ""), "uuu");
    deadlock(&two(globals, wait, &format!("{} wake(&v, 1);", moves("0")), ""), "sss");
    deadlock(&two(globals, wait, &format!("{} wake(&v, 1);", moves("1")), ""), "uuu");
    let some = "int r = syscall(SYS_futex, &w, FUTEX_REQUEUE, 1, 1, &v); assert(0 <= r && r <= 1);";
    assertions(&two(globals, wait, some, ""), "sss");
}

#[test]
fn what_is_not_supported() {
    for (call, message) in [
        ("SYS_gettid", "the system call `gettid` is not supported"),
        ("SYS_membarrier, 0, 0", "the system call `membarrier` is not supported"),
        ("100000", "this system call is not supported"),
        ("SYS_futex, &w, FUTEX_LOCK_PI, 1, 0", "FUTEX_LOCK_PI is not supported"),
        ("SYS_futex, &w, FUTEX_WAKE_OP, 1, 1, &w, 0", "FUTEX_WAKE_OP is not supported"),
        ("SYS_futex, &w, 77, 1, 0", "this operation on a futex is not supported"),
        ("SYS_futex, &w, w, 1, 0", "the operation on this futex is not known"),
        ("SYS_futex, &l, FUTEX_WAIT, 1, 0", "a futex is a number of 32 bits"),
        ("SYS_futex, &w, FUTEX_WAIT, 1", "arguments here, which are too few"),
    ] {
        let text = format!(
            "{FUTEX} int w; long l; int main(void) {{ w = __VERIFIER_nondet_int(); syscall({call}); }}"
        );
        let error = load("test.c", text.as_bytes(), None, &[]).expect_err("it is not supported");
        assert!(error.diagnostics.iter().any(|d| d.message.contains(message)), "{:?}", error.diagnostics);
    }
}
