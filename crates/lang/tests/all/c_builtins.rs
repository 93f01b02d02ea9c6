//! The meaning of functions without a body: small C programs, each with a fact under SC, TSO and PSO, decided by exploring the reference semantics.

use crate::facts::{ALL, NONE, SC, SC_TSO};
use crate::verdicts::two;
use fencewright_executions::oracle::explore;
use fencewright_lang::{COptions, Loader, Options, Stop, load};
use fencewright_program::{MemoryModel, Program, Property};

const HEADERS: &str = "#include <stdatomic.h>\n#include <pthread.h>\n#include <threads.h>\n#include <assert.h>\n#include <stdlib.h>\n\
#include <string.h>\n#include <stdio.h>\n#include <semaphore.h>\n";

fn loaded(text: &str) -> Result<Program, Vec<String>> {
    let said = |d: &fencewright_lang::Diagnostic| {
        format!("{} [{}]", d.message, d.help.as_deref().unwrap_or_default())
    };
    match load("test.c", text.as_bytes(), None, &[]) {
        Ok(loaded) => Ok(loaded.program),
        Err(error) => Err(error.diagnostics.iter().map(said).collect()),
    }
}

#[track_caller]
fn program(text: &str) -> Program {
    loaded(text).unwrap_or_else(|errors| panic!("{errors:?} in {text}"))
}

#[track_caller]
fn holds(program: &Program, model: MemoryModel, property: &Property, text: &str) -> bool {
    let reachable =
        explore(program, model, 300_000, &mut || false).unwrap_or_else(|why| panic!("{why:?}: {text}"));
    reachable.satisfies(program, model, property).unwrap_or_else(|| panic!("no value: {text}"))
}

/// Checks that the assertions of a program hold exactly under these models.
#[track_caller]
pub fn check(text: &str, expected: &[MemoryModel]) {
    let text = format!("{HEADERS}{text}");
    let program = program(&text);
    for model in MemoryModel::ALL {
        let all = program.properties.iter().all(|property| holds(&program, model, property, &text));
        assert_eq!(all, expected.contains(&model), "{model:?}: {text}");
    }
}

/// Checks a program with two threads that start immediately, and an assertion `end` after both have ended.
#[track_caller]
pub fn check_two(globals: &str, one: &str, other: &str, end: &str, expected: &[MemoryModel]) {
    check(&two(globals, one, other, end), expected);
}

/// Checks store buffering with these stores, which may be followed by an instruction.
#[track_caller]
pub fn store_buffering(globals: &str, store_x: &str, store_y: &str, expected: &[MemoryModel]) {
    let globals = format!("atomic_int x, y; int a, b; {globals}");
    let load = |variable: &str| format!("atomic_load_explicit(&{variable}, memory_order_relaxed);");
    check_two(
        &globals,
        &format!("{store_x} a = {}", load("y")),
        &format!("{store_y} b = {}", load("x")),
        "assert(a || b);",
        expected,
    );
}

/// Checks store buffering with relaxed stores and the instruction `between` after each.
#[track_caller]
pub fn buffering_with(globals: &str, between: &str, expected: &[MemoryModel]) {
    let store =
        |variable: &str| format!("atomic_store_explicit(&{variable}, 1, memory_order_relaxed); {between}");
    store_buffering(globals, &store("x"), &store("y"), expected);
}

/// Checks message passing with the instruction `between` between the two stores, and the second store `publish`.
#[track_caller]
pub fn message_passing(globals: &str, between: &str, publish: &str, expected: &[MemoryModel]) {
    check_two(
        &format!("int data; atomic_int flag; {globals}"),
        &format!("data = 1; {between} {publish}"),
        "if (atomic_load_explicit(&flag, memory_order_acquire)) assert(data == 1);",
        "",
        expected,
    );
}

/// Checks a program with a single thread.
#[track_caller]
pub fn alone(globals: &str, body: &str, expected: &[MemoryModel]) {
    check(&format!("{globals} int main(void) {{ {body} return 0; }}"), expected);
}

/// Checks the message with which a program is refused.
#[track_caller]
pub fn refused(body: &str, expected: &str) {
    let text = format!("{HEADERS} int main(void) {{ {body} return 0; }}");
    let errors = loaded(&text).expect_err("it is not supported");
    assert!(errors.iter().any(|error| error.contains(expected)), "{errors:?}");
}

pub const RELAXED_FLAG: &str = "atomic_store_explicit(&flag, 1, memory_order_relaxed);";

#[test]
fn stores_are_as_strong_as_their_order() {
    let with = |order: &str| {
        let store = |variable: &str| format!("atomic_store_explicit(&{variable}, 1, memory_order_{order});");
        (store("x"), store("y"))
    };
    for (order, expected) in [("relaxed", SC), ("release", SC), ("seq_cst", ALL)] {
        let (x, y) = with(order);
        store_buffering("", &x, &y, expected);
    }
    store_buffering("", "atomic_store(&x, 1);", "y = 1;", ALL);
    store_buffering("", "__atomic_store_n(&x, 1, __ATOMIC_SEQ_CST);", "atomic_exchange(&y, 1);", ALL);
    store_buffering("", "__atomic_store_n(&x, 1, __ATOMIC_RELEASE);", "y = 1;", SC);
    store_buffering("", "__sync_lock_test_and_set(&x, 1);", "__sync_bool_compare_and_swap(&y, 0, 1);", ALL);
    store_buffering("int v = 1;", "__atomic_store(&x, &v, __ATOMIC_SEQ_CST);", "y = 1;", ALL);
    message_passing("", "", RELAXED_FLAG, SC_TSO);
    message_passing("", "", "atomic_store_explicit(&flag, 1, memory_order_release);", ALL);
    message_passing("", "", "atomic_store(&flag, 1);", ALL);
    message_passing("", "", "smp_store_release(&flag, 1);", ALL);
    message_passing("", "", "WRITE_ONCE(flag, 1);", SC_TSO);
    message_passing("int v = 1;", "", "__atomic_store(&flag, &v, __ATOMIC_RELEASE);", ALL);
}

#[test]
fn fences_are_as_strong_as_their_order() {
    for (fence, expected) in [
        ("atomic_thread_fence(memory_order_seq_cst);", ALL),
        ("atomic_thread_fence(memory_order_acq_rel);", SC),
        ("atomic_thread_fence(memory_order_acquire);", SC),
        ("atomic_signal_fence(memory_order_seq_cst);", SC),
        ("__atomic_thread_fence(__ATOMIC_SEQ_CST);", ALL),
        ("__sync_synchronize();", ALL),
        ("smp_mb();", ALL),
        ("smp_wmb();", SC),
        ("smp_rmb();", SC),
        ("barrier();", SC),
        ("_mm_mfence();", ALL),
        ("__asm__ __volatile__(\"mfence\" ::: \"memory\");", ALL),
        ("asm volatile(\"lock; addl $0,0(%%rsp)\" ::: \"memory\", \"cc\");", ALL),
        ("asm volatile(\"\" ::: \"memory\");", SC),
        ("asm volatile(\"pause\");", SC),
        ("asm volatile(\"sfence\" ::: \"memory\");", SC),
        ("__CPROVER_fence(\"WRfence\");", ALL),
    ] {
        buffering_with("", fence, expected);
    }
    for (fence, expected) in [
        ("atomic_thread_fence(memory_order_release);", ALL),
        ("atomic_thread_fence(memory_order_acquire);", SC_TSO),
        ("smp_wmb();", ALL),
        ("smp_rmb();", SC_TSO),
        ("asm volatile(\"sfence\" ::: \"memory\");", ALL),
        ("asm volatile(\"lfence\" ::: \"memory\");", SC_TSO),
        ("__CPROVER_fence(\"WWfence\", \"RRfence\");", ALL),
    ] {
        message_passing("", fence, RELAXED_FLAG, expected);
    }
}

#[test]
fn every_read_modify_write_drains() {
    for operation in [
        "atomic_fetch_add_explicit(&z, 1, memory_order_relaxed);",
        "z++;",
        "atomic_fetch_add(&z, 0);",
        "atomic_exchange_explicit(&z, 3, memory_order_relaxed);",
        "int e = 77; atomic_compare_exchange_strong(&z, &e, 5);",
        "__sync_val_compare_and_swap(&z, 77, 5);",
        "int v = 3; asm volatile(\"xchgl %0, %1\" : \"+r\"(v), \"+m\"(z));",
        "asm volatile(\"lock; incl %0\" : \"+m\"(z));",
        "xchg(&z, 3);",
        "cmpxchg(&z, 77, 3);",
        // An atomic access drains the buffer even if no other thread accesses its memory.
        "atomic_int own = 0; atomic_fetch_add(&own, 1);",
        "pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&own);",
    ] {
        buffering_with("atomic_int z;", operation, ALL);
    }
    buffering_with("atomic_int z;", "atomic_fetch_add_explicit(&z, 0, memory_order_relaxed);", SC);
    buffering_with("atomic_int z;", "atomic_fetch_add_explicit(&z, 0, memory_order_release);", ALL);
}

#[test]
fn atomic_operations_compute_the_documented_result() {
    let facts = [
        "atomic_int x = 5; assert(atomic_fetch_add(&x, 3) == 5 && x == 8);",
        "atomic_int x = 5; assert(atomic_fetch_sub(&x, 7) == 5 && x == -2);",
        "atomic_uint x = 0; assert(atomic_fetch_sub(&x, 1) == 0 && x == 4294967295u);",
        "atomic_uchar x = 255; assert(atomic_fetch_add(&x, 1) == 255 && x == 0);",
        "atomic_schar x = 127; assert(atomic_fetch_add(&x, 1) == 127 && x == -128);",
        "atomic_int x = 2147483647; atomic_fetch_add(&x, 1); assert(x < 0);",
        "atomic_ulong x = 0; atomic_fetch_sub(&x, 1); assert(x == ~0ul && x > 5);",
        "atomic_int x = 12; assert(atomic_fetch_and(&x, 10) == 12 && x == 8);",
        "atomic_int x = 12; assert(atomic_fetch_or(&x, 3) == 12 && x == 15);",
        "atomic_int x = 12; assert(atomic_fetch_xor(&x, 10) == 12 && x == 6);",
        "int x = 12; assert(__atomic_nand_fetch(&x, 10, 5) == ~8 && x == -9);",
        "unsigned char x = 12; assert(__atomic_fetch_nand(&x, 10, 5) == 12 && x == 247);",
        "int x = 1; assert(__sync_add_and_fetch(&x, 4) == 5 && __sync_fetch_and_sub(&x, 2) == 5 && x == 3);",
        "int x = 1; assert(__sync_bool_compare_and_swap(&x, 1, 7) && !__sync_bool_compare_and_swap(&x, 1, 8) && x == 7);",
        "int x = 1; assert(__sync_val_compare_and_swap(&x, 1, 7) == 1 && __sync_val_compare_and_swap(&x, 1, 8) == 7);",
        "atomic_int x = 1; int e = 1; assert(atomic_compare_exchange_strong(&x, &e, 2) && e == 1 && x == 2);",
        "atomic_int x = 1; int e = 3; assert(!atomic_compare_exchange_weak(&x, &e, 2) && e == 1 && x == 1);",
        "int x = 1, e = 3, d = 4; assert(!__atomic_compare_exchange(&x, &e, &d, 0, 5, 5) && e == 1 && x == 1);",
        "int x = 1, v = 3, r = 0; __atomic_exchange(&x, &v, &r, 5); assert(x == 3 && r == 1);",
        "int x = 6, r = 0; __atomic_load(&x, &r, 5); assert(r == 6 && __atomic_load_n(&x, 0) == 6);",
        "atomic_flag f = ATOMIC_FLAG_INIT; assert(!atomic_flag_test_and_set(&f) && atomic_flag_test_and_set(&f)); \
         atomic_flag_clear(&f); assert(!atomic_flag_test_and_set_explicit(&f, memory_order_acquire));",
        "char f = 0; assert(!__atomic_test_and_set(&f, 5) && __atomic_test_and_set(&f, 5)); __atomic_clear(&f, 5); assert(!f);",
        "_Atomic(int *) p; int a[3]; atomic_init(&p, &a[0]); int *old = atomic_exchange(&p, &a[2]); \
         assert(old == &a[0] && atomic_load(&p) == &a[2]);",
        "int x = 1; assert(__sync_lock_test_and_set(&x, 4) == 1 && x == 4); __sync_lock_release(&x); assert(x == 0);",
        "int x = 4; assert(xchg(&x, 5) == 4 && cmpxchg(&x, 5, 6) == 5 && cmpxchg(&x, 5, 7) == 6 && x == 6);",
        "int x = 4, v = 9; asm volatile(\"xchgl %0, %1\" : \"+r\"(v), \"+m\"(x)); assert(x == 9 && v == 4);",
        "int x = 4, v = 2; asm volatile(\"lock; xaddl %0, %1\" : \"+r\"(v), \"+m\"(x)); assert(x == 6 && v == 4);",
        "int x = 4, r; asm volatile(\"lock; cmpxchgl %2, %1\" : \"=a\"(r), \"+m\"(x) : \"r\"(7), \"0\"(4)); assert(x == 7 && r == 4);",
        "int x = 4, r; asm volatile(\"lock; cmpxchgl %2, %1\" : \"=a\"(r), \"+m\"(x) : \"r\"(7), \"0\"(5)); assert(x == 4 && r == 4);",
        "int x = 4; asm volatile(\"lock; orl %1, %0\" : \"+m\"(x) : \"r\"(3)); assert(x == 7);",
        "int x = 4; asm volatile(\"lock; decl %0\" : \"+m\"(x)); assert(x == 3);",
        "int x = 4; asm volatile(\"movl $0, %0\" : \"+m\"(x)); assert(x == 0);",
        "int x = 4, v = 6; asm volatile(\"movl %[from], %[to]\" : [to] \"=m\"(x) : [from] \"r\"(v)); assert(x == 6);",
        "assert(__builtin_popcount(0xf0f) == 8 && __builtin_clz(1) == 31 && __builtin_ctz(8) == 3 && __builtin_ffs(0) == 0);",
        "int r; assert(__builtin_add_overflow(2147483647, 1, &r) && r == -2147483647 - 1);",
        "int r; assert(!__builtin_mul_overflow(1000, 1000, &r) && r == 1000000);",
        "unsigned r; assert(__builtin_sub_overflow(1u, 2u, &r) && r == 4294967295u);",
        "long r; assert(__builtin_add_overflow(9223372036854775807l, 1l, &r));",
        "int a[4] = {1, 2, 3, 4}, b[4]; memcpy(b, a, sizeof a); assert(b[3] == 4 && memcmp(a, b, sizeof a) == 0); \
         memset(a, 0, sizeof a); assert(!a[0] && !a[3] && memcmp(a, b, sizeof a) != 0);",
        "int a[4] = {1, 2, 3, 4}; memmove(a + 1, a, 3 * sizeof(int)); assert(a[0] == 1 && a[1] == 1 && a[3] == 3);",
        "struct s { int a; long b; } s, t = {1, 2}; memset(&s, 0xff, sizeof s); assert(s.a == -1 && s.b == -1); \
         memcpy(&s, &t, sizeof s); assert(s.a == 1 && s.b == 2);",
        "int x = -1; assert(__sync_fetch_and_umax(&x, 42) == -1 && x == -1 && __sync_fetch_and_max(&x, 42) == -1 && x == 42);",
        "int x = 5; assert(__sync_fetch_and_umin(&x, -1) == 5 && x == 5 && __sync_fetch_and_min(&x, -1) == 5 && x == -1);",
        "unsigned x = -1; assert(__sync_fetch_and_min(&x, 3) == 4294967295u && x == 4294967295u && __sync_fetch_and_umin(&x, 3) && x == 3);",
        "int *p = 0; assert(posix_memalign((void **)&p, 24, 8) == 22 && !p && posix_memalign((void **)&p, 16, 8) == 0 && p);",
        "assert(abs(-4) == 4 && printf(\"%d\", 4) >= -1);",
    ];
    for body in facts {
        alone("", body, ALL);
        // The same body under a nondeterministic condition, so that it is not executed during translation.
        alone("", &format!("if (__VERIFIER_nondet_bool()) {{ {body} }}"), ALL);
    }
}

#[test]
fn bit_counts_of_unknown_values() {
    alone(
        "",
        "int n = __VERIFIER_nondet_uchar(); __VERIFIER_assume(n >= 1 && n <= 20); \
         int ones = 0, low = -1, high = 0; for (int i = 0; i < 5; i++) { if (n >> i & 1) { ones++; high = i; if (low < 0) low = i; } } \
         assert(__builtin_popcount(n) == ones && __builtin_ctz(n) == low && __builtin_clz(n) == 31 - high && __builtin_ffs(n) == low + 1);",
        ALL,
    );
}

#[test]
fn unknown_values_range_over_their_type() {
    alone("", "_Bool b = __VERIFIER_nondet_bool(); assert(b == 0 || b == 1);", ALL);
    alone("", "_Bool b = __VERIFIER_nondet_bool(); assert(b == 0);", NONE);
    alone(
        "",
        "unsigned char c = __VERIFIER_nondet_uchar(); __VERIFIER_assume(c > 250); assert(c != 255);",
        NONE,
    );
    alone("", "int n = __VERIFIER_nondet_char(); __VERIFIER_assume(n == 3); assert(n == 3); ", ALL);
}

#[test]
fn ways_to_end() {
    alone("", "abort(); assert(0);", ALL);
    alone("", "exit(1); assert(0);", ALL);
    alone("", "if (__VERIFIER_nondet_bool()) { __VERIFIER_error(); }", NONE);
    alone("", "__VERIFIER_assert(1); reach_error();", NONE);
    alone("", "__CPROVER_assert(1 == 2, \"text\");", NONE);
    alone("", "__VERIFIER_assume(0); assert(0);", ALL);
    alone("", "__builtin_unreachable();", NONE);
    check("#define NDEBUG\n#include <assert.h>\nint main(void) { assert(0); return 0; }", ALL);
}

#[test]
fn unknown_functions_are_rejected_by_name() {
    refused("frobnicate(1);", "`frobnicate`");
    let padded = "struct s { char c; int i; } a = {1, 2}, b = {1, 2}; assert(memcmp(&a, &b, sizeof a) == 0);";
    refused(padded, "between the members");
    refused("void *p = realloc(malloc(4), 8);", "copy what is needed");
    refused("asm(\"hlt\");", "`hlt`");
    refused("asm(\"bswap %0\" : \"=m\"(*(int *)malloc(4)));", "bswap");
    refused("mtx_t m; mtx_init(&m, mtx_plain | mtx_recursive);", "recursive mutexes");
    let detached = "pthread_attr_t a; pthread_attr_init(&a); int s = 0; pthread_attr_getdetachstate(&a, &s);";
    refused(detached, "`pthread_attr_getdetachstate`");
    let kind =
        "pthread_mutexattr_t a; pthread_mutexattr_init(&a); int s = 0; pthread_mutexattr_gettype(&a, &s);";
    refused(kind, "`pthread_mutexattr_gettype`");
    refused("int n; printf(\"100%%n %d%n\", 1, &n);", "`%n` in a format");
}

#[test]
fn functions_write_their_results() {
    let state = "int before = 7; pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);";
    alone("", &format!("{state} assert(before == 0 || before == 1);"), ALL);
    alone("", &format!("{state} assert(before == 1);"), NONE);
    alone("", "pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);", ALL);
    alone("", "void *p; assert(posix_memalign(&p, 4, 16) == 22 && posix_memalign(&p, 8, 16) == 0);", ALL);
}

#[test]
fn the_first_bytes_that_differ_are_compared() {
    let arrays = "char a[3] = \"ab\", b[3] = \"b\", c[3] = {-1, 0, 0};";
    alone(arrays, "assert(memcmp(a, b, 3) < 0 && memcmp(b, a, 3) > 0 && memcmp(c, a, 3) > 0);", ALL);
    alone(arrays, "assert(memcmp(a, a, 3) == 0 && memcmp(a, \"ab\", 3) == 0);", ALL);
    alone("int a = -1; unsigned b = -1;", "assert(memcmp(&a, &b, sizeof a) == 0);", ALL);
}

#[test]
fn mutexes_exclude_and_drain() {
    for (declare, lock, unlock) in [
        (
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;",
            "pthread_mutex_lock(&m);",
            "pthread_mutex_unlock(&m);",
        ),
        ("pthread_mutex_t m[2];", "pthread_mutex_lock(&m[1]);", "pthread_mutex_unlock(&m[1]);"),
        ("mtx_t m;", "mtx_lock(&m);", "mtx_unlock(&m);"),
        ("pthread_spinlock_t m;", "pthread_spin_lock(&m);", "pthread_spin_unlock(&m);"),
        (
            "pthread_rwlock_t m = PTHREAD_RWLOCK_INITIALIZER;",
            "pthread_rwlock_wrlock(&m);",
            "pthread_rwlock_unlock(&m);",
        ),
        (
            "struct { int n; pthread_mutex_t m; } s;",
            "pthread_mutex_lock(&s.m);",
            "pthread_mutex_unlock(&s.m);",
        ),
        ("pthread_mutex_t m;", "while (pthread_mutex_trylock(&m)) ;", "pthread_mutex_unlock(&m);"),
        ("sem_t m = { 1 };", "sem_wait(&m);", "sem_post(&m);"),
        ("", "__VERIFIER_atomic_begin();", "__VERIFIER_atomic_end();"),
    ] {
        let work = format!("{lock} n++; {unlock}");
        check_two(&format!("int n; {declare}"), &work, &work, "assert(n == 2);", ALL);
    }
    let work = "int v = n; n = v + 1;";
    check_two("int n;", work, work, "assert(n == 2);", NONE);
    let read = "pthread_rwlock_rdlock(&m); n++; pthread_rwlock_unlock(&m);";
    check_two("int n; pthread_rwlock_t m;", read, read, "assert(n == 2);", NONE);
    // A thread that does not hold the mutex cannot unlock it.
    check_two("pthread_mutex_t m;", "pthread_mutex_lock(&m);", "pthread_mutex_unlock(&m);", "", NONE);
    alone(
        "",
        "pthread_mutex_t m; pthread_mutex_init(&m, 0); assert(pthread_mutex_trylock(&m) == 0 && pthread_mutex_trylock(&m) != 0);",
        ALL,
    );
}

#[test]
fn indivisible_sections() {
    let globals = "int n; void __VERIFIER_atomic_add(void) { if (n > 5) return; n = n + 1; }";
    check_two(globals, "__VERIFIER_atomic_add();", "__VERIFIER_atomic_add();", "assert(n == 2);", ALL);
    let inside = "__VERIFIER_atomic_begin(); __VERIFIER_atomic_add(); __VERIFIER_atomic_end();";
    check_two(globals, inside, "__VERIFIER_atomic_add();", "assert(n == 2);", ALL);
    // Accesses outside of atomic sections cannot come between those of a section either.
    let swap = "__CPROVER_atomic_begin(); x = 1; y = 1; __CPROVER_atomic_end();";
    check_two("int x, y;", swap, "int a = x, b = y; assert(a == 0 || b == 1);", "", ALL);
    check_two("int x, y;", "x = 1; y = 1;", "int a = x, b = y; assert(a == 0 || b == 1);", "", NONE);
    check_two("int x, y;", swap, "int b = y, a = x; assert(b == 0 || a == 1);", "", ALL);
    refused("__VERIFIER_atomic_begin(); __VERIFIER_atomic_begin();", "already");
    refused("__VERIFIER_atomic_end();", "is not, or may not be");
    // Atomic sections with the functions of ESBMC, with a loop, a branch and an assertion inside.
    let work = "for (int i = 0; i < 2; i++) { if (n % 2 == 0) n++; else n += 3; } assert(n % 4 == 0);";
    let section = format!("__ESBMC_atomic_begin(); {work} __ESBMC_atomic_end(); __ESBMC_yield();");
    check_two("int n;", &section, &section, "assert(n == 8);", ALL);
    check_two("int n;", work, work, "", NONE);
    let take = "__ESBMC_atomic_begin(); __ESBMC_assume(n == 0); n = 1; __ESBMC_atomic_end(); m++; n = 0;";
    check_two("_Atomic int n; int m;", take, take, "__ESBMC_assert(m == 2, \"lost\");", ALL);
}

#[test]
fn a_spin_lock_is_released_by_a_plain_store() {
    // A value read after the unlock may be older than the lock state that others see.
    let one = "pthread_spin_lock(&m); x = 1; pthread_spin_unlock(&m); a = y;";
    let other = "y = 1; atomic_thread_fence(memory_order_seq_cst); b = x;";
    check_two("int x, y, a, b; pthread_spinlock_t m;", one, other, "assert(a || b);", SC);
    let one = "pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); a = y;";
    check_two("int x, y, a, b; pthread_mutex_t m;", one, other, "assert(a || b);", ALL);
}

#[test]
fn waiting_may_end_without_a_signal() {
    let globals = "pthread_mutex_t m; pthread_cond_t c; int ready, seen;";
    let wake = "pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);";
    let wait = |how: &str| {
        format!(
            "pthread_mutex_lock(&m); {how} (!ready) pthread_cond_wait(&c, &m); seen = ready; pthread_mutex_unlock(&m);"
        )
    };
    check_two(globals, wake, &wait("while"), "assert(seen);", ALL);
    check_two(globals, wake, &wait("if"), "assert(seen);", NONE);
}

/// Checks whether there is no deadlock if a wait for a condition variable ends only when it is signalled.
#[track_caller]
fn deadlock_free(globals: &str, one: &str, other: &str, expected: bool) {
    let text = format!(
        "{HEADERS}{globals}
         void *one(void *u) {{ {one} return 0; }}
         void *other(void *u) {{ {other} return 0; }}
         int main(void) {{
             pthread_t p, q;
             pthread_create(&p, 0, one, 0);
             pthread_create(&q, 0, other, 0);
             return 0;
         }}"
    );
    let c = COptions { exact_waits: true, ..COptions::default() };
    let options = Options { c, ..Options::default() };
    let open = |_: &str| Err("there is nothing to include".to_owned());
    let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
    let Ok(loaded) = loader.load("test.c", text.as_bytes()) else { panic!("{:?}", loaded(&text)) };
    for model in MemoryModel::ALL {
        assert_eq!(
            holds(&loaded.program, model, &Property::deadlock(), &text),
            expected,
            "{model:?}: {text}"
        );
    }
}

#[test]
fn threads_that_wait_for_ever() {
    let locks = "pthread_mutex_t m, n;";
    let both = |a: &str, b: &str| {
        format!(
            "pthread_mutex_lock(&{a}); pthread_mutex_lock(&{b}); pthread_mutex_unlock(&{b}); pthread_mutex_unlock(&{a});"
        )
    };
    deadlock_free(locks, &both("m", "n"), &both("m", "n"), true);
    deadlock_free(locks, &both("m", "n"), &both("n", "m"), false);
    let globals = "pthread_mutex_t m; pthread_cond_t c; int ready;";
    let wait = "pthread_mutex_lock(&m); while (!ready) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m);";
    let wake = |call: &str| format!("pthread_mutex_lock(&m); ready = 1; {call} pthread_mutex_unlock(&m);");
    deadlock_free(globals, wait, &wake("pthread_cond_signal(&c);"), true);
    deadlock_free(globals, wait, &wake("pthread_cond_broadcast(&c);"), true);
    deadlock_free(globals, wait, &wake(""), false);
    // A signal before the wait is lost, and the waiting thread does not check the predicate first.
    let careless = "pthread_mutex_lock(&m); pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m);";
    deadlock_free(globals, careless, &wake("pthread_cond_signal(&c);"), false);
    deadlock_free("sem_t s;", "sem_wait(&s);", "sem_post(&s);", true);
    deadlock_free("sem_t s;", "sem_wait(&s); sem_wait(&s);", "sem_post(&s);", false);
}

#[test]
fn barriers_and_calls_that_happen_once() {
    let barrier = "pthread_barrier_t b = { 2 }; int x, y, r, s;";
    check_two(
        barrier,
        "x = 1; pthread_barrier_wait(&b); r = y;",
        "y = 1; pthread_barrier_wait(&b); s = x;",
        "assert(r && s);",
        ALL,
    );
    check_two(
        barrier,
        "r = pthread_barrier_wait(&b);",
        "s = pthread_barrier_wait(&b);",
        "assert((r == PTHREAD_BARRIER_SERIAL_THREAD) + (s == PTHREAD_BARRIER_SERIAL_THREAD) == 1);",
        ALL,
    );
    check_two(
        barrier,
        "r = pthread_barrier_wait(&b);",
        "s = pthread_barrier_wait(&b);",
        "assert(r == 0);",
        NONE,
    );
    // Every thread may be the one that is told apart, whether or not the others look at their result, and may go on after the others.
    for holds in ["assert(r == 0);", "assert(r != 0);"] {
        check_two(barrier, "r = pthread_barrier_wait(&b);", "pthread_barrier_wait(&b);", holds, NONE);
    }
    check_two(
        barrier,
        "r = pthread_barrier_wait(&b); if (r) x = y;",
        "s = pthread_barrier_wait(&b); y = 1;",
        "assert(!x);",
        NONE,
    );
    check_two(
        "pthread_once_t once = PTHREAD_ONCE_INIT; int n, r, s; void init(void) { n++; }",
        "pthread_once(&once, init); r = n;",
        "pthread_once(&once, init); s = n;",
        "assert(r == 1 && s == 1 && n == 1);",
        ALL,
    );
}

#[test]
fn counters_of_linux() {
    let facts = [
        "atomic_t v = ATOMIC_INIT(3); assert(atomic_read(&v) == 3); atomic_set(&v, 5); assert(atomic_read(&v) == 5);",
        "atomic_t v = ATOMIC_INIT(3); atomic_inc(&v); atomic_add(4, &v); atomic_dec(&v); atomic_sub(2, &v); assert(atomic_read(&v) == 5);",
        "atomic_t v = ATOMIC_INIT(3); assert(atomic_add_return(2, &v) == 5 && atomic_fetch_add(2, &v) == 5 && atomic_read(&v) == 7);",
        "atomic_t v = ATOMIC_INIT(1); assert(atomic_dec_and_test(&v) && !atomic_inc_and_test(&v) && atomic_xchg(&v, 4) == 1);",
        "atomic_t v = ATOMIC_INIT(1); assert(atomic_cmpxchg(&v, 1, 2) == 1 && atomic_cmpxchg(&v, 1, 3) == 2 && atomic_read(&v) == 2);",
        "atomic_t v = ATOMIC_INIT(1); int o = 5; assert(!atomic_try_cmpxchg(&v, &o, 2) && o == 1 && atomic_try_cmpxchg(&v, &o, 2));",
        "atomic_t v = ATOMIC_INIT(1); assert(atomic_inc_not_zero(&v) && !atomic_add_unless(&v, 1, 2) && atomic_read(&v) == 2);",
        "atomic_t v = ATOMIC_INIT(0); assert(atomic_dec_if_positive(&v) == -1 && atomic_read(&v) == 0 && atomic_add_negative(-1, &v));",
        "atomic_t v = ATOMIC_INIT(7); atomic_andnot(2, &v); assert(atomic_read(&v) == 5); atomic_or(8, &v); assert(atomic_read(&v) == 13);",
        "atomic64_t v = ATOMIC64_INIT(1); atomic64_inc(&v); assert(atomic64_read(&v) == 2);",
    ];
    for body in facts {
        let text =
            format!("#include <linux/atomic.h>\n#include <assert.h>\nint main(void) {{ {body} return 0; }}");
        let program = program(&text);
        for model in MemoryModel::ALL {
            assert!(
                program.properties.iter().all(|property| holds(&program, model, property, &text)),
                "{text}"
            );
        }
    }
}

#[test]
fn a_variable_may_be_read_by_way_of_its_moved_address() {
    let other = "int r = y ^ y; s = *(&x + r);";
    check_two("int x, y, s;", "x = 1;", other, "assert(s == 0 || s == 1);", ALL);
    check_two("int x, y, s;", "x = 1;", other, "assert(s == 0);", NONE);
}

#[test]
fn memory_from_the_heap() {
    alone("", "int *p = malloc(sizeof *p); *p = 3; assert(*p == 3); free(p);", ALL);
    alone("", "int *p = calloc(4, sizeof *p); assert(p[3] == 0); p[2] = 5; assert(p[2] == 5);", ALL);
    alone(
        "struct n { int v; struct n *next; };",
        "struct n *a = malloc(sizeof *a), *b = malloc(sizeof *b); a->next = b; b->v = 4; assert(a->next->v == 4);",
        ALL,
    );
    alone("", "void *p; posix_memalign(&p, 64, sizeof(int)); *(int *)p = 4; assert(*(int *)p == 4);", ALL);
}

#[test]
fn texts_are_made_of_characters() {
    alone("char b[8];", "strcpy(b, \"ab\"); strcat(b, \"c\"); assert(strlen(b) == 3 && b[2] == 'c');", ALL);
    alone("char b[8];", "strcpy(b, \"ab\"); assert(!strcmp(b, \"ab\") && strcmp(b, \"b\") < 0);", ALL);
    alone("char b[2];", "strncpy(b, \"xyz\", 2); assert(b[1] == 'y' && !strncmp(b, \"xyw\", 2));", ALL);
    alone("char b[8];", "strcpy(b, \"ab\"); assert(strlen(b) == 1);", NONE);
    // The array has no room for the terminating zero.
    alone("char b[2];", "strcpy(b, \"ab\"); assert(1);", NONE);
}

#[test]
fn keys_have_a_value_for_each_thread() {
    let globals = "pthread_key_t k; int v[2]; void *r[2];";
    let globals = format!(
        "{globals} void use(int n) {{
        assert(!pthread_getspecific(k)); pthread_setspecific(k, &v[n]); r[n] = pthread_getspecific(k); }}"
    );
    let check = |end: &str, expected| {
        let text = format!(
            "{globals} void *one(void *u) {{ use(0); return 0; }}
             int main(void) {{
                 pthread_t p; pthread_key_create(&k, 0); pthread_create(&p, 0, one, 0);
                 use(1); pthread_join(p, 0); {end} }}"
        );
        check(&text, expected);
    };
    check("assert(r[0] == &v[0] && r[1] == &v[1]);", ALL);
    check("assert(r[0] == r[1]);", NONE);
}

#[test]
fn hints_for_other_tools_change_nothing() {
    let hints = |body: &str, expected| {
        let text = format!(
            "\n#include <genmc.h>\n#include <dat3m.h>\natomic_int x, busy;
             void *one(void *u) {{
                 int old;
                 do {{
                     old = __VERIFIER_speculative_read(atomic_load(&x));
                     __VERIFIER_optional(while (atomic_load(&busy)) ;);
                 }} while (!__VERIFIER_confirming_CAS(atomic_compare_exchange_strong(&x, &old, old + 1)));
                 int zero = 0; __VERIFIER_helping_CAS(atomic_compare_exchange_strong(&busy, &zero, 1););
                 assert(__VERIFIER_tid() != 0);
                 return 0;
             }}
             int main(void) {{
                 pthread_t p, q; pthread_create(&p, 0, one, 0); pthread_create(&q, 0, one, 0);
                 pthread_join(p, 0); pthread_join(q, 0); {body} }}"
        );
        check(&text, expected);
    };
    hints("assert(x == 2 && busy == 1);", ALL);
    hints("assert(x == 1);", NONE);
}

#[test]
fn arguments_of_min_are_evaluated_once() {
    let globals = "#include <linux/kernel.h>\nint n;";
    alone(
        &format!("\n{globals}"),
        "int m = min(++n, 5); assert(m == 1 && n == 1 && max_t(long, n, 7) == 7);",
        ALL,
    );
}

#[test]
fn threads_of_genmc() {
    check(
        "#include <genmc.h>
         atomic_int x;
         void *add(void *by) { x += (int)(long)by; return &x; }
         int main(void) {
             __VERIFIER_thread_t one = __VERIFIER_spawn(add, (void *)1);
             pthread_t other = __VERIFIER_spawn_symmetric(add, (void *)2, one);
             assert(__VERIFIER_join(one) == &x);
             __VERIFIER_join_symmetric(other);
             assert(x == 3);
             return 0;
         }",
        ALL,
    );
}
