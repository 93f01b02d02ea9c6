//! Inline assembly of x86-64: what instructions compute, compared with the processor; which events they are; what is refused, and where.

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program};
use fencewright_testing::corpora::tell_skipped;
use fencewright_testing::{Random, programs_or, spread};

use crate::facts::{ALL, NONE, SC, SC_TSO};
use crate::verdicts::two;

const HEADERS: &str = "#include <pthread.h>\n#include <assert.h>\n#include <stdint.h>\n#include <stdbool.h>\n#include <stddef.h>\n";

/// Reads a program. The error is the first message, with 1 if it is about a part of the text that is not empty, else 0.
fn read(text: &str) -> Result<Program, (String, u64)> {
    load("test.c", text.as_bytes(), None, &[]).map(|loaded| loaded.program).map_err(|error| {
        let first = &error.diagnostics[0];
        (first.message.clone(), u64::from(first.span.end > first.span.start))
    })
}

/// Checks that all properties of a program hold exactly under these models.
#[track_caller]
fn check(text: &str, expected: &[MemoryModel]) {
    let text = format!("{HEADERS}{text}");
    let program = read(&text).unwrap_or_else(|(message, _)| panic!("{message}: {text}"));
    for model in MemoryModel::ALL {
        let reachable =
            explore(&program, model, 300_000, &mut || false).unwrap_or_else(|why| panic!("{why:?}: {text}"));
        let holds = |property| reachable.satisfies(&program, model, property).expect("small values");
        let all = program.properties.iter().all(holds);
        assert_eq!(all, expected.contains(&model), "{model:?}: {text}");
    }
}

/// Store buffering: `store` writes 1 to the variable `V`, and may do more.
#[track_caller]
fn buffering(store: &str, expected: &[MemoryModel]) {
    let load = |from: &str, to: &str| {
        format!("asm volatile(\"movl %1, %0\" : \"=r\"({to}) : \"m\"({from}) : \"memory\");")
    };
    let one = format!("int r; {} {} a = r;", store.replace('V', "x"), load("y", "r"));
    let other = format!("int r; {} {} b = r;", store.replace('V', "y"), load("x", "r"));
    check(&two("int x, y, z, a, b;", &one, &other, "assert(a || b);"), expected);
}

#[test]
fn locked_instructions_and_fences_drain() {
    let mov = "asm volatile(\"movl $1, %0\" : \"=m\"(V) : : \"memory\");";
    buffering(mov, SC);
    buffering("int v = 1; asm volatile(\"movl %1, %0\" : \"=m\"(V) : \"r\"(v) : \"memory\");", SC);
    buffering("asm volatile(\"incl %0\" : \"+m\"(V) : : \"memory\");", SC);
    buffering("asm volatile(\"addl $1, %0\" : \"+m\"(V));", SC);
    buffering("int v = 1; asm volatile(\"xaddl %1, %0\" : \"+m\"(V), \"+r\"(v));", SC);
    buffering("int v = 0; asm volatile(\"cmpxchgl %2, %0\" : \"+m\"(V), \"+a\"(v) : \"r\"(1));", SC);
    buffering("int v = 1; asm volatile(\"xchgl %0, %1\" : \"+r\"(v), \"+m\"(V) : : \"memory\");", ALL);
    buffering("int v = 1; asm volatile(\"xchg %0, (%1)\" : \"+r\"(v) : \"r\"(&V) : \"memory\");", ALL);
    for locked in [
        "lock; incl %0",
        "lock incl %0",
        "lock\n\tincl %0",
        "lock; addl $1, %0",
        "lock; orl $1, %0",
        "lock; xorl $1, %0",
        "lock; subl $-1, %0",
        "lock; btsl $0, %0",
        "lock; btcl $0, %0",
    ] {
        let template = locked.replace('\n', "\\n").replace('\t', "\\t");
        buffering(&format!("asm volatile(\"{template}\" : \"+m\"(V) : : \"memory\", \"cc\");"), ALL);
    }
    buffering("int v = 1; asm volatile(\"lock; xaddl %1, %0\" : \"+m\"(V), \"+r\"(v));", ALL);
    buffering("int v = 0; asm volatile(\"lock; cmpxchgl %2, %0\" : \"+m\"(V), \"+a\"(v) : \"r\"(1));", ALL);
    for (fence, expected) in [
        ("mfence", ALL),
        ("lock; addl $0,0(%%rsp)", ALL),
        ("lock; addl $0,-128(%%rsp); ", ALL),
        ("lock; orq $0, (%%rsp)", ALL),
        ("lfence", SC),
        ("sfence", SC),
        ("pause", SC),
        ("rep; nop", SC),
        ("", SC),
        ("# mfence", SC),
    ] {
        buffering(&format!("{mov} asm volatile(\"{fence}\" ::: \"memory\");"), expected);
    }
    // A locked instruction drains the buffer even if it accesses another object, one of its own, or if its comparison fails.
    for locked in [
        "asm volatile(\"lock; incl %0\" : \"+m\"(z));",
        "int own = 0; asm volatile(\"lock; incl %0\" : \"+m\"(own)); ",
        "int v = 7; asm volatile(\"lock; cmpxchgl %2, %0\" : \"+m\"(z), \"+a\"(v) : \"r\"(1));",
    ] {
        buffering(&format!("{mov} {locked}"), ALL);
    }
}

#[test]
fn unlocked_instructions_are_two_events() {
    let twice = |instruction: &str, expected| {
        let one = format!("asm volatile(\"{instruction}\" : \"+m\"(x) : : \"memory\", \"cc\");");
        check(&two("int x;", &one, &one, "assert(x == 2);"), expected);
    };
    twice("incl %0", NONE);
    twice("lock; incl %0", ALL);
    twice("addl $1, %0", NONE);
    twice("lock; addl $1, %0", ALL);
    twice("lock; decl %0; lock; addl $2, %0", ALL);
    // A `cmpxchg` without `lock` writes the old value back when it fails.
    let fails = "int v = 9; asm volatile(\"PREFIX cmpxchgl %2, %0\" : \"+m\"(x), \"+a\"(v) : \"r\"(5));";
    let stores = "asm volatile(\"movl $1, %0\" : \"=m\"(x));";
    check(&two("int x;", &fails.replace("PREFIX", ""), stores, "assert(x == 1);"), NONE);
    check(&two("int x;", &fails.replace("PREFIX", "lock;"), stores, "assert(x == 1);"), ALL);
    // Message passing with plain moves needs nothing but the order of stores.
    let publish = |between: &str| {
        two(
            "int data, flag;",
            &format!(
                "asm volatile(\"movl $1, %0\" : \"=m\"(data)); {between} asm volatile(\"movl $1, %0\" : \"=m\"(flag));"
            ),
            "int f, d; asm volatile(\"movl %1, %0\" : \"=r\"(f) : \"m\"(flag)); asm volatile(\"movl %1, %0\" : \"=r\"(d) : \"m\"(data)); assert(!f || d);",
            "",
        )
    };
    check(&publish(""), SC_TSO);
    check(&publish("asm volatile(\"sfence\" ::: \"memory\");"), ALL);
    check(&publish("asm volatile(\"\" ::: \"memory\");"), SC_TSO);
}

/// Checks that the assertions in `body` hold in a thread, and in `main` while it is the only thread.
#[track_caller]
fn fact(globals: &str, body: &str) {
    check(
        &format!(
            "{globals} void *run(void *u) {{ {body} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); return 0; }}"
        ),
        ALL,
    );
    check(&format!("{globals} int main(void) {{ {body} return 0; }}"), ALL);
}

#[test]
fn headers_of_lock_free_code_work() {
    // Inline assembly in the style of Concurrency Kit.
    let kit = "
        static bool cas(unsigned *t, unsigned c, unsigned s, unsigned *v) { bool z;
            __asm__ __volatile__(\"lock \" \"cmpxchgl\" \" %3, %0;\" : \"+m\" (*(unsigned *)t), \"=@ccz\" (z), \"+a\" (c) : \"q\" (s) : \"memory\", \"cc\");
            *(unsigned *)v = c; return z; }
        static bool cas_set(unsigned *t, unsigned c, unsigned s) { bool z;
            __asm__ __volatile__(\"lock cmpxchgl %2, %0; setz %1\" : \"+m\" (*t), \"=a\" (z) : \"q\" (s), \"a\" (c) : \"memory\", \"cc\"); return z; }
        static void *fas(void *t, void *v) { __asm__ __volatile__(\"xchgq %0, %1\" : \"+m\" (*(uint64_t *)t), \"+q\" (v) : : \"memory\"); return v; }
        static bool dec_zero(unsigned *t) { bool r; __asm__ __volatile__(\"lock decl %0; setz %1\" : \"+m\" (*t), \"=rm\" (r) : : \"memory\", \"cc\"); return r; }
        static bool bts(unsigned *t, unsigned b) { bool c; __asm__ __volatile__(\"lock btsl %2, %0; setc %1\" : \"+m\" (*t), \"=q\" (c) : \"q\" (b) : \"memory\", \"cc\"); return c; }
        static unsigned load(const unsigned *t) { unsigned r; __asm__ __volatile__(\"movl %1, %0\" : \"=q\" (r) : \"m\" (*t) : \"memory\"); return r; }
        static void prefetch(const void *m) { __asm__ __volatile__(\"prefetchw (%0)\" : : \"r\" (m) : \"memory\"); }
        unsigned x = 2, w; unsigned *p = &x;";
    fact(
        kit,
        "unsigned v; assert(!cas(&x, 7, 8, &v) && v == 2); assert(cas(&x, 2, 4, &v) && v == 2 && load(&x) == 4);",
    );
    fact(kit, "assert(!cas_set(&x, 7, 8)); assert(cas_set(&x, 2, 4) && x == 4);");
    fact(kit, "assert(fas(&p, 0) == &x && p == 0); prefetch(p);");
    fact(kit, "assert(!dec_zero(&x) && dec_zero(&x) && x == 0); assert(!dec_zero(&x) && x == 0xffffffff);");
    fact(kit, "assert(!bts(&x, 4) && bts(&x, 4) && bts(&x, 1) && x == 18);");
    // Inline assembly in the style of liburcu: an object of any type is accessed as a structure of the same size.
    let urcu = "
        typedef struct { char v[4]; } hp_4; typedef struct { char v[8]; } hp_8;
        static unsigned long add(void *a, unsigned long v) { unsigned r = v;
            __asm__ __volatile__(\"lock; xaddl %1, %0\" : \"+m\"(*((hp_4 *)(a))), \"+r\" (r) : : \"memory\"); return r + (unsigned)v; }
        static void and(void *a, unsigned long v) { __asm__ __volatile__(\"lock; andq %1, %0\" : \"=m\"(*((hp_8 *)(a))) : \"er\" (v) : \"memory\"); }
        static unsigned long swap(void *a, unsigned long v) { unsigned long r;
            __asm__ __volatile__(\"xchgq %0, %1\" : \"=r\"(r), \"+m\"(*((hp_8 *)(a))) : \"0\" (v) : \"memory\"); return r; }
        unsigned x = 4000000000u; unsigned long q = 0xff; int n; int *pointer = &n;";
    fact(
        urcu,
        "assert(add(&x, 500000000) == 205032704 && x == 205032704); and(&q, ~0x0ful); assert(q == 0xf0); assert(swap(&q, 3) == 0xf0 && q == 3);",
    );
    fact(urcu, "assert((int *)swap(&pointer, 0) == &n && pointer == 0);");
    // Inline assembly in the style of Linux.
    let linux = "
        #define LOCK \".pushsection .smp_locks,\\\"a\\\"\\n.balign 4\\n.long 671f - .\\n.popsection\\n671:\\n\\tlock; \"
        static inline bool test_and_set_bit(long nr, volatile unsigned long *addr) { bool c;
            asm volatile(LOCK \"btsq  %[val], %[var]\" : [var] \"+m\" (*(volatile long *)addr), \"=@ccc\" (c) : [val] \"Ir\" (nr) : \"memory\"); return c; }
        static inline int old_set_bit(long nr, volatile unsigned long *addr) { int old;
            asm volatile(LOCK \"btsq %2,%1\\n\\tsbb %0,%0\" : \"=r\" (old), \"+m\" (*(volatile long *)addr) : \"Ir\" (nr) : \"memory\"); return old; }
        static inline bool sub_and_test(int i, int *v) { bool e; asm volatile(LOCK \"subl %[val], %[var]\" : [var] \"+m\" (*v), \"=@cce\" (e) : [val] \"er\" (i) : \"memory\"); return e; }
        static inline bool add_negative(int i, int *v) { bool s; asm volatile(LOCK \"addl %2, %0\" : \"+m\" (*v), \"=@ccs\" (s) : \"er\" (i) : \"memory\"); return s; }
        static inline void *hide(void *p) { void *q; asm(\"\" : \"=r\" (q) : \"0\" (p)); return q; }
        unsigned long words[3]; int n = 5;";
    fact(
        linux,
        "assert(!test_and_set_bit(3, words) && test_and_set_bit(3, words) && words[0] == 8); assert(!test_and_set_bit(129, words) && words[2] == 2);",
    );
    fact(linux, "assert(old_set_bit(1, words) == 0 && old_set_bit(1, words) == -1);");
    fact(
        linux,
        "assert(!sub_and_test(3, &n) && sub_and_test(2, &n)); assert(!add_negative(1, &n) && add_negative(-2, &n) && n == -1); assert(hide(&n) == &n);",
    );
    // Inline assembly in the style of FreeBSD and of DPDK.
    let others = "
        static inline int cmpset(volatile unsigned *dst, unsigned expect, unsigned src) { unsigned char res;
            __asm __volatile(\"\tlock; cmpxchg %3,%1 ;\t# atomic_cmpset_int\t\" : \"=@cce\" (res), \"+m\" (*dst), \"+a\" (expect) : \"r\" (src) : \"memory\", \"cc\"); return res; }
        static inline void clear_char(volatile unsigned char *p, unsigned char v) { __asm __volatile(\"lock; \" \"andb %b1,%0\" : \"+m\" (*p) : \"iq\" (~v) : \"cc\"); }
        static inline unsigned fetchadd(volatile unsigned *p, unsigned v) { __asm __volatile(\"\tlock;\t\" \"\txaddl %0,%1 ;\t\" \"# atomic_fetchadd_int\" : \"+r\" (v), \"+m\" (*p) : : \"cc\"); return v; }
        static inline int testandset(volatile unsigned *p, unsigned v) { unsigned char res; __asm __volatile(\"lock; btsl %2,%1 ; \" : \"=@ccc\" (res), \"+m\" (*p) : \"Ir\" (v & 0x1f) : \"cc\"); return res; }
        static inline int cmpset16(volatile uint16_t *dst, uint16_t exp, uint16_t src) { uint8_t res;
            asm volatile(\"lock ; \" \"cmpxchgw %[src], %[dst];\" \"sete %[res];\" : [res] \"=a\" (res), [dst] \"=m\" (*dst) : [src] \"r\" (src), \"a\" (exp), \"m\" (*dst) : \"memory\"); return res; }
        static inline void inc64(volatile int64_t *v) { asm volatile(\"lock ; \" \"incq %[cnt]\" : [cnt] \"=m\" (*v) : \"m\" (*v)); }
        static inline int trylock(volatile int *l) { int lv = 1; asm volatile(\"xchg %[locked], %[lv]\" : [locked] \"=m\" (*l), [lv] \"=q\" (lv) : \"[lv]\" (lv) : \"memory\"); return lv == 0; }
        unsigned x = 1; unsigned char c = 0xff; uint16_t s = 3; int64_t q = -1; int lock;";
    fact(
        others,
        "assert(!cmpset(&x, 3, 4) && cmpset(&x, 1, 4) && x == 4); clear_char(&c, 0x0f); assert(c == 0xf0); assert(fetchadd(&x, 3) == 4 && x == 7);",
    );
    fact(
        others,
        "assert(!testandset(&x, 33) && x == 3 && testandset(&x, 0)); assert(cmpset16(&s, 3, 9) && !cmpset16(&s, 3, 1) && s == 9);",
    );
    // Compilers keep an earlier store to an output if it is also an input, volatile or atomic, or if any memory may be read.
    for (ty, statement) in [
        ("int", "asm volatile(\"incl %0\" : \"=m\"(*p) : \"m\"(*p))"),
        ("int", "asm volatile(\"incl %0\" : \"=m\"(*p) : \"0\"(*p))"),
        ("int", "asm volatile(\"incl %0\" : \"=m\"(*p) : : \"memory\")"),
        ("int", "asm volatile(\"incl %0\" : \"=m\"(*(volatile int *)p))"),
        ("_Atomic int", "asm volatile(\"incl %0\" : \"=m\"(*p))"),
        ("int", "asm volatile(\"movl $3, %0; incl %0\" : \"=m\"(*p))"),
        ("struct { int n; }", "asm volatile(\"incl %0\" : \"=m\"(p->n) : \"m\"(p->n))"),
    ] {
        let kit = format!("typedef {ty} T; T x = {{ 3 }}; static void next(T *p) {{ {statement}; }}");
        fact(&kit, "next(&x); assert(*(int *)&x == 4);");
    }
    fact(others, "inc64(&q); assert(q == 0); assert(trylock(&lock) && !trylock(&lock) && lock == 1);");
}

#[test]
fn registers_are_read_and_written_as_their_sizes_say() {
    let globals = "unsigned long q = 0x1122334455667788; unsigned x = 0x80000001; int n = -2;";
    for body in [
        "unsigned long r = q; asm(\"movl %1, %k0\" : \"+r\"(r) : \"r\"(x)); assert(r == 0x80000001);",
        "unsigned long r = q; asm(\"movw %w1, %w0\" : \"+r\"(r) : \"r\"(x)); assert(r == 0x1122334455660001);",
        "unsigned long r = q; asm(\"movb %b1, %b0\" : \"+r\"(r) : \"r\"(x)); assert(r == 0x1122334455667701);",
        "long r; asm(\"movslq %1, %0\" : \"=r\"(r) : \"r\"(x)); assert(r == -2147483647l);",
        "long r; asm(\"movslq %1, %0\" : \"=r\"(r) : \"m\"(n)); assert(r == -2);",
        "unsigned r; asm(\"movzbl %b1, %0\" : \"=r\"(r) : \"q\"(q)); assert(r == 0x88);",
        "int r; asm(\"movsbl %b1, %0\" : \"=r\"(r) : \"q\"(q)); assert(r == -120);",
        "unsigned a = x, b = 5; asm(\"xchg %0, %1\" : \"+r\"(a), \"+r\"(b)); assert(a == 5 && b == x);",
        "int r; asm(\"movl %%eax, %%ecx; addl $3, %%ecx; movl %%ecx, %0\" : \"=r\"(r) : \"a\"(n) : \"ecx\"); assert(r == 1);",
        "int r; asm(\"xorl %0, %0; addl %1, %0\" : \"=&r\"(r) : \"r\"(n)); assert(r == -2);",
        "unsigned r = 3; asm(\"addl %1, %0\" : \"+r\"(r) : \"m\"(x)); assert(r == 0x80000004);",
        "unsigned r; asm(\"movl %2, %0; cmpl $0, %1; cmovs %1, %0\" : \"=&r\"(r) : \"r\"(n), \"r\"(7)); assert(r == -2u);",
        "_Bool a, b, c; asm(\"cmpl %4, %3\" : \"=@ccl\"(a), \"=@ccb\"(b), \"=@cce\"(c) : \"r\"(n), \"r\"(1)); assert(a && !b && !c);",
        "int a[2] = { 1, 2 }; asm(\"addl $5, 4(%0)\" : : \"r\"(a) : \"memory\"); assert(a[0] == 1 && a[1] == 7);",
        "unsigned long r; asm(\"movabsq $0x123456789abcdef0, %0\" : \"=r\"(r)); assert(r == 0x123456789abcdef0);",
        "int r; asm(\"movl $-1, %0\" : \"=r\"(r)); assert(r == -1);",
        "int *p = &n, *o = 0; _Bool z; asm(\"test %1, %1\" : \"=@ccz\"(z) : \"r\"(p)); assert(!z); asm(\"cmp %1, %2\" : \"=@ccz\"(z) : \"r\"(p), \"r\"(o)); assert(!z);",
    ] {
        fact(globals, body);
    }
}

/// The message with which a statement is refused.
#[track_caller]
fn refusal(statement: &str) -> String {
    let text =
        format!("{HEADERS}int x, y; long q; char c; double d; int main(void) {{ {statement} return 0; }}");
    let (message, placed) = read(&text).err().unwrap_or_else(|| panic!("read: {statement}"));
    assert_eq!(placed, 1, "no place: {statement}: {message}");
    message
}

#[test]
fn everything_else_is_refused_by_name() {
    for (statement, expected) in [
        ("asm volatile(\"hlt\");", "the instruction `hlt`"),
        ("asm volatile(\"lock; cmpxchg16b %0\" : \"+m\"(q));", "`cmpxchg16b`"),
        (
            "asm volatile(\"incl %0; bswap %0\" : \"+r\"(x));",
            "in the assembly `bswap %0`: the instruction `bswap`",
        ),
        ("asm goto(\"jmp %l0\" : : : : out); out: ;", "`asm goto`"),
        ("asm(\"xchgb %b0, %h0\" : \"+Q\"(x));", "`%h0`"),
        ("asm(\"incl %1\" : \"+r\"(x));", "there is no operand `%1`"),
        ("asm(\"incl %[nothing]\" : \"+r\"(x));", "`%[nothing]`"),
        ("asm(\"incl %0\" : \"=r\"(x));", "`%0` is read, but has no value"),
        ("asm(\"nop\" : \"=r\"(x));", "`%0` is read, but has no value"),
        ("asm(\"incl %0\" : : \"r\"(x));", "neither an output nor"),
        ("asm(\"incl %%ecx\" : : \"c\"(x));", "neither an output nor"),
        ("asm(\"movl $1, %%ecx\");", "`%rcx` is written"),
        ("asm(\"incl %0\" : : \"m\"(x));", "\"memory\" is not among the clobbers"),
        ("asm(\"movl $1, %0; addl %1, %0\" : \"=r\"(x) : \"r\"(y));", "needs `&`"),
        ("asm(\"movl $1, %0; addl %1, %0\" : \"=r\"(x) : \"m\"(y));", "needs `&`"),
        ("asm(\"movl $1, %0\" : \"=r\"(q));", "`%0` has 8 bytes here"),
        ("asm(\"addl %1, %0\" : \"+r\"(x) : \"r\"(q));", "`%1` has 8 bytes here"),
        ("asm(\"addq %q1, %0\" : \"+r\"(q) : \"r\"(x));", "of which only 4 are defined"),
        ("asm(\"sete %b0\" : \"=r\"(x));", "no instruction before it"),
        ("asm(\"incl %0; sete %b1\" : \"+r\"(x), \"=r\"(y));", "of which only 1 are defined"),
        ("asm(\"incl %0; setc %1\" : \"+r\"(x), \"=q\"(c));", "the carry"),
        ("asm(\"btl $1, %1; setz %0\" : \"=q\"(c) : \"r\"(x));", "no instruction before it"),
        ("asm(\"adcl $1, %0\" : \"+r\"(x));", "the carry"),
        ("asm(\"nop\" : \"=@ccz\"(x));", "no instruction before it"),
        ("asm(\"incl %0\" : \"+m\"(q));", "an access of 4 bytes to `%0`, an object of 8 bytes"),
        ("asm(\"inc %0\" : \"+m\"(x));", "add a suffix"),
        ("asm(\"movl %1, %0\" : \"=m\"(x) : \"m\"(y));", "both operands are in memory"),
        ("asm(\"lock; incl %0\" : \"+r\"(x));", "`lock` with a register"),
        ("asm volatile(\"incl %0\" : \"=m\"(x));", "`%0` is read, but it is only an output"),
        ("asm volatile(\"lock; incl %0\" : \"=m\"(x) : \"m\"(y));", "`%0` is read, but it is only an output"),
        ("asm volatile(\"movl %0, %1\" : \"=m\"(x), \"=&r\"(y));", "`%0` is read, but it is only an output"),
        ("asm volatile(\"xchg %0, %1\" : \"=m\"(x), \"+r\"(y));", "`%0` is read, but it is only an output"),
        ("asm volatile(\"btl $1, %0\" : \"=m\"(x));", "`%0` is read, but it is only an output"),
        ("asm volatile(\"cmpl $1, %0\" : \"=m\"(x));", "`%0` is read, but it is only an output"),
        ("asm volatile(\"cmpxchgl %2, %0\" : \"=m\"(x), \"+a\"(y) : \"r\"(1));", "`%0` is read, but"),
        ("asm volatile(\"\" : \"=m\"(x));", "`%0` is an output that no instruction writes"),
        ("asm volatile(\"movl $1, (%1)\" : \"=m\"(x) : \"r\"(&x));", "that no instruction writes"),
        ("asm(\"lock; movl $1, %0\" : \"=m\"(x));", "`lock` before `movl`"),
        ("asm(\"addl $1, (%%rsp)\");", "the stack"),
        ("asm(\"lock; addl $1, (%%rsp)\");", "the stack"),
        ("asm(\"lock; btsl %1, %0\" : \"+m\"(x) : \"ir\"(40));", "use \"Ir\""),
        ("asm(\"movb $300, %0\" : \"=m\"(c));", "300"),
        ("int z = __VERIFIER_nondet_int(); asm(\"movl %1, %0\" : \"=r\"(x) : \"i\"(z));", "not a constant"),
        ("asm(\"nop\" : : \"x\"(d));", "the constraint `x`"),
        ("asm(\"nop\" : : \"r\"(d));", "neither an integer nor"),
        ("asm(\"nop\" : : \"r,m\"(x));", "the constraint `r,m`"),
        ("asm(\"nop\" : \"=a\"(x), \"=a\"(y));", "two outputs"),
        ("asm(\"nop\" : : \"a\"(x), \"a\"(y));", "two inputs"),
        ("asm(\"nop\" : : \"1\"(x));", "does not exist"),
        ("asm(\"nop\" : \"+r\"(x) : \"0\"(q));", "different sizes"),
        ("asm(\"nop\" : \"=a\"(x) : : \"eax\");", "is an operand as well"),
        ("asm(\"nop\" : : : \"xmm17x\");", "the clobber `xmm17x`"),
        ("asm(\"mfence; movl $1, %0\" : \"=r\"(x) : : \"memory\");", "without `volatile`"),
        ("asm(\"lock; incl (%1); movl $1, %0\" : \"=&r\"(x) : \"r\"(&y));", "without `volatile`"),
        ("asm(\"movl (%0), %1\" : : \"r\"(x), \"r\"(y) : \"memory\");", "8"),
    ] {
        let message = refusal(statement);
        assert!(message.contains(expected), "{statement}: {message}");
    }
    // Statements in functions that are never called are not refused.
    check(
        "void f(int n) { asm goto(\"jmp %l0\" : : \"r\"(n) : \"memory\" : out); out: ; } void g(void) { asm(\"hlt\"); } int main(void) { return 0; }",
        ALL,
    );
}

/// A random statement: the assembly, and what the program observes after it.
struct Statement {
    /// Declarations of the operands, the statement, and `OBSERVE(value)` for each result.
    text: String,
    observed: usize,
}

/// The flags that the instructions so far define.
#[derive(Clone, Copy)]
struct Defined {
    carry: bool,
    others: bool,
}

/// Writes random instructions of one statement.
struct Maker<'r> {
    random: &'r mut Random,
    /// The size of the operands in bytes.
    bytes: usize,
    defined: Defined,
}

const CONDITIONS: [&str; 22] = [
    "o", "no", "b", "c", "nae", "ae", "nb", "e", "z", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "nl",
    "le", "g", "nle",
];

impl Maker<'_> {
    fn condition(&mut self) -> Option<&'static str> {
        let name = *self.random.pick(&CONDITIONS);
        let carry = matches!(name, "b" | "c" | "nae" | "ae" | "nb" | "be" | "a");
        let others = !matches!(name, "b" | "c" | "nae" | "ae" | "nb");
        let allowed = (!carry || self.defined.carry) && (!others || self.defined.others);
        allowed.then_some(name)
    }

    /// A value whose bits are likely to carry, borrow or overflow.
    fn value(&mut self, bytes: usize) -> u64 {
        let bits = 8 * bytes as u32;
        let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let random = (self.random.below(1 << 30) as u64) << 34
            ^ (self.random.below(1 << 30) as u64) << 15
            ^ self.random.below(1 << 15) as u64;
        all & match self.random.below(8) {
            0 => 0,
            1 => 1,
            2 => all,
            3 => all >> 1,
            4 => (all >> 1) + 1,
            5 => random & 15,
            _ => random,
        }
    }

    /// The name of a register operand with a size.
    fn register(&mut self, bytes: usize) -> String {
        let name = *self.random.pick(&["r", "s", "a"]);
        let modifier = match (bytes, bytes == self.bytes) {
            (_, true) => "",
            (1, _) => "b",
            (2, _) => "w",
            (4, _) => "k",
            _ => "q",
        };
        format!("%{modifier}[{name}]")
    }

    fn immediate(&mut self, bytes: usize) -> String {
        let value = self.value(bytes.min(4));
        match bytes {
            8 => format!("${}", value as u32 as i32),
            1 => format!("${}", value as i8),
            _ => format!("${value:#x}"),
        }
    }

    /// One instruction.
    fn instruction(&mut self) -> Option<String> {
        let sizes: Vec<usize> = [1, 2, 4, 8].into_iter().filter(|size| *size <= self.bytes).collect();
        let size = if self.random.one_in(3) { *self.random.pick(&sizes) } else { self.bytes };
        let suffix = ["b", "w", "", "l", "", "", "", "q"][size - 1];
        let suffix_of = |bytes: usize| ["b", "w", "", "l", "", "", "", "q"][bytes - 1];
        let memory = size == self.bytes && self.random.one_in(2);
        let to = if memory { "%[m]".to_string() } else { self.register(size) };
        let lock = if memory && self.random.one_in(2) { "lock; " } else { "" };
        let from = match self.random.below(3) {
            0 => self.immediate(size),
            1 if !memory && size == self.bytes => "%[m]".to_string(),
            _ => self.register(size),
        };
        let all = Defined { carry: true, others: true };
        Some(match self.random.below(12) {
            0..=3 => {
                let mut names = vec!["add", "sub", "and", "or", "xor"];
                if self.defined.carry {
                    names.extend(["adc", "sbb", "adc", "sbb"]);
                }
                let name = *self.random.pick(&names);
                self.defined = all;
                format!("{lock}{name}{suffix} {from}, {to}")
            }
            4 => {
                let name = *self.random.pick(&["cmp", "test"]);
                self.defined = all;
                format!("{name}{suffix} {from}, {to}")
            }
            5 => {
                let name = *self.random.pick(&["inc", "dec", "neg", "not"]);
                match name {
                    "neg" => self.defined = all,
                    "not" => {}
                    _ => self.defined.others = true,
                }
                format!("{lock}{name}{suffix} {to}")
            }
            6 => {
                let register = self.register(size);
                // A `cmpxchg` of four bytes leaves the upper half of the accumulator undefined here.
                let names = if size == 4 && self.bytes == 8 {
                    &["xchg", "xadd"][..]
                } else {
                    &["xchg", "xadd", "cmpxchg"]
                };
                let name = *self.random.pick(names);
                if name != "xchg" {
                    self.defined = all;
                }
                format!("{lock}{name}{suffix} {register}, {to}")
            }
            7 if size > 1 => {
                let name = *self.random.pick(&["bt", "bts", "btr", "btc"]);
                // The number in a register could select a bit beyond the operand in memory, so the number is a constant there.
                let number = match memory || self.random.one_in(2) {
                    true => format!("${}", self.random.below(70)),
                    false => self.register(size),
                };
                let lock = if name == "bt" { "" } else { lock };
                self.defined = Defined { carry: true, others: false };
                format!("{lock}{name}{suffix} {number}, {to}")
            }
            8 => format!("mov{suffix} {from}, {to}"),
            9 if size > 1 && !memory => {
                let condition = self.condition()?;
                let from = if from.starts_with('$') { self.register(size) } else { from };
                format!("cmov{condition}{suffix} {from}, {to}")
            }
            10 => {
                let condition = self.condition()?;
                format!("set{condition} %[f]")
            }
            11 if size > 1 && !memory => {
                let signed = self.random.one_in(2);
                let smaller: Vec<usize> =
                    sizes.into_iter().filter(|from| *from < size && (signed || *from < 4)).collect();
                let narrow = *self.random.pick(&smaller);
                let from = self.register(narrow);
                format!("mov{}{}{suffix} {from}, {to}", if signed { "s" } else { "z" }, suffix_of(narrow))
            }
            _ => return None,
        })
    }
}

fn statement(random: &mut Random, number: usize) -> Statement {
    let bytes = *random.pick(&[1, 2, 4, 8]);
    let signed = random.one_in(2);
    let mut maker = Maker { random, bytes, defined: Defined { carry: false, others: false } };
    let count = 1 + maker.random.below(4);
    let mut instructions = Vec::new();
    while instructions.len() < count {
        instructions.extend(maker.instruction());
    }
    let mut flags = Vec::new();
    for _ in 0..4 {
        flags.extend(maker.condition());
    }
    let ty = format!("{}int{}_t", if signed { "" } else { "u" }, 8 * bytes);
    let values: Vec<u64> = (0..4).map(|_| maker.value(bytes)).collect();
    let separator = *maker.random.pick(&["; ", "\\n\\t", " ;"]);
    let globals = format!("{ty} m{number}, in{number}[4];");
    let mut text = format!("{globals}\n#define FILL{number} ");
    for (index, value) in values.iter().enumerate() {
        let _ = write!(text, "in{number}[{index}] = ({ty}){value}ull; ");
    }
    let _ = write!(
        text,
        "m{number} = in{number}[3];\n#define RUN{number} {{ {ty} r = in{number}[0], s = in{number}[1], a = in{number}[2]; uint8_t f = 7; "
    );
    for index in 0..flags.len() {
        let _ = write!(text, "_Bool c{index}; ");
    }
    let _ = write!(
        text,
        "__asm__ volatile(\"{}\" : [m] \"+m\"(m{number}), [r] \"+&q\"(r), [s] \"+&q\"(s), [a] \"+&a\"(a), [f] \"+&q\"(f)",
        instructions.join(separator)
    );
    for (index, flag) in flags.iter().enumerate() {
        let _ = write!(text, ", \"=@cc{flag}\"(c{index})");
    }
    text.push_str(" : : \"memory\", \"cc\"); OBSERVE(m");
    let _ = write!(text, "{number}) OBSERVE(r) OBSERVE(s) OBSERVE(a) OBSERVE(f) ");
    for index in 0..flags.len() {
        let _ = write!(text, "OBSERVE(c{index}) ");
    }
    text.push_str("}\n");
    Statement { text, observed: 5 + flags.len() }
}

/// Random statements: the processor and the model compute the same values, those in registers, in memory and in the flags. The inputs are read from
/// shared memory, so they are not known to the translation; then again with known inputs.
#[test]
fn random_instructions_compute_what_the_processor_computes() {
    const PIECE: usize = 50;
    let pieces = programs_or(2000).div_ceil(PIECE) as u64;
    if Command::new("gcc").arg("--version").stdout(Stdio::null()).status().is_err() {
        return tell_skipped("random_instructions_compute_what_the_processor_computes", "there is no gcc");
    }
    spread(0..pieces, |piece| {
        let mut random = Random::new(piece);
        let statements: Vec<Statement> = (0..PIECE).map(|number| statement(&mut random, number)).collect();
        let declared: String = statements.iter().map(|statement| statement.text.as_str()).collect();
        let all = |what: &str| (0..PIECE).map(|number| format!("{what}{number} ")).collect::<String>();
        let binary =
            std::env::temp_dir().join(format!("fencewright-assembly-{}-{piece}", std::process::id()));
        let mut gcc = Command::new("gcc")
            .args(["-O1", "-w", "-x", "c", "-", "-o"])
            .arg(&binary)
            .stdin(Stdio::piped())
            .spawn()
            .expect("it was there");
        let printing = format!(
            "#include <stdint.h>\n#include <stdio.h>\n#define OBSERVE(value) printf(\"%lld\\n\", (long long)(value));\n{declared}
             int main(void) {{ {} {} return 0; }}",
            all("FILL"),
            all("RUN")
        );
        gcc.stdin.take().expect("a pipe").write_all(printing.as_bytes()).expect("gcc reads");
        assert!(gcc.wait().expect("gcc ends").success(), "{printing}");
        let output = Command::new(&binary).output().expect("it runs");
        std::fs::remove_file(&binary).expect("it was written");
        let values = String::from_utf8(output.stdout).expect("digits");
        let mut values = values.lines();
        let mut runs = String::new();
        for (number, statement) in statements.iter().enumerate() {
            let mut expected: Vec<&str> =
                (0..statement.observed).map(|_| values.next().expect("a value")).collect();
            let text = statement.text.lines().last().expect("the last line is the statement");
            let (start, rest) = text.split_once("OBSERVE").expect("something is observed");
            let mut body = start.split_once('{').expect("a block").1.to_string();
            expected.reverse();
            for observation in rest.split("OBSERVE") {
                let (value, _) = observation.split_once(')').expect("parentheses");
                let is = expected.pop().expect("a value");
                let is = if is == "-9223372036854775808" {
                    "(-9223372036854775807ll - 1)".into()
                } else {
                    format!("{is}ll")
                };
                let _ = write!(body, "assert((long long){value}) == {is});");
            }
            let _ = writeln!(runs, "static void run{number}(void) {{ {body} }}");
        }
        assert_eq!(values.next(), None);
        let calls: String = (0..PIECE).map(|number| format!("run{number}(); ")).collect();
        let declarations: String = statements
            .iter()
            .map(|statement| statement.text.lines().take(2).collect::<Vec<_>>().join("\n") + "\n")
            .collect();
        for body in [
            format!(
                "void *run(void *u) {{ {calls} return 0; }} int main(void) {{ {} pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); return 0; }}",
                all("FILL")
            ),
            format!("int main(void) {{ {} {calls} return 0; }}", all("FILL")),
        ] {
            let text = format!("{HEADERS}{declarations}{runs}{body}");
            let program = read(&text).unwrap_or_else(|(message, _)| panic!("{message}: {text}"));
            let reachable = explore(&program, MemoryModel::Tso, 300_000, &mut || false).expect("few states");
            for property in &program.properties {
                let holds = reachable.satisfies(&program, MemoryModel::Tso, property);
                assert_eq!(holds, Some(true), "piece {piece}, {}: {text}", property.name);
            }
        }
    });
}

/// Mutated templates and constraints are read or refused with a place.
#[test]
fn mutated_assembly_is_refused_with_its_place() {
    /// A template, and the constraints of `x`, `y`, `p` and 3.
    const STATEMENTS: [(&str, [&str; 4]); 7] = [
        ("lock; cmpxchgl %[nr], %0; setz %b1", ["+m", "+a", "r", "r"]),
        ("lock btsl %[nr], %0 ; sbb %1,%1 # old", ["+m", "=r", "r", "Ir"]),
        ("movl (%2), %k1; xaddl %%eax, 4(%2)", ["+a", "=&r", "r", "i"]),
        ("lock; addl $0,-4(%%rsp); /* c */ addl $0x10, %0", ["+m", "=@ccz", "r", "i"]),
        (".pushsection a; .long 1; .popsection; 671: lock; decl %0", ["=m", "=@ccnz", "r", "i"]),
        ("testl %1, %1; cmovzl %0, %1; adcl $-1, %1", ["+r", "+r", "r", "r"]),
        ("xchg %0, (%2); mfence", ["+r", "+r", "r", "r"]),
    ];
    const PIECES: [&str; 24] = [
        "%", "$", "(", ")", ",", ";", "lock", "0", "9", "-", "b", "l", "q", "[", "]", "#", "/*", "*/",
        "%%rsp", ":", " ", "rep ", "@cc", "é",
    ];
    const CONSTRAINTS: [&str; 16] =
        ["+m", "=q", "+a", "r", "=r", "=&r", "=@ccz", "0", "i", "Ir", "m", "=m", "+r", "99", "[0]", "=rm"];
    let mut random = Random::new(1);
    let (mut read_as_they_are, mut refused) = (0, 0);
    for number in 0..programs_or(3000).max(STATEMENTS.len()) {
        let (template, constraints) = STATEMENTS[number % STATEMENTS.len()];
        let mutations = if number < STATEMENTS.len() { 0 } else { 1 + random.below(3) };
        let mut template: Vec<char> = template.chars().collect();
        let mut constraints = constraints.map(str::to_string);
        for _ in 0..mutations {
            let at = random.below(template.len() + 1);
            match random.below(6) {
                0 | 1 if at < template.len() => drop(template.remove(at)),
                0..=2 => drop(template.splice(at..at, random.pick::<&str>(&PIECES).chars())),
                3 => template.truncate(at.max(1)),
                4 => constraints[random.below(4)].push_str(random.pick::<&str>(&PIECES)),
                _ => constraints[random.below(4)] = random.pick(&CONSTRAINTS).to_string(),
            }
        }
        let template: String = template.into_iter().collect();
        let [a, b, c, d] = &constraints;
        let text = format!(
            "{HEADERS}int x, y; int *p = (int[]){{ 1, 2 }};
             int main(void) {{ asm volatile(\"{template}\" : \"{a}\"(x), \"{b}\"(y) : \"{c}\"(p), [nr] \"{d}\"(3) : \"memory\"); return 0; }}"
        );
        match read(&text) {
            Ok(_) => read_as_they_are += 1,
            Err((message, placed)) => {
                assert_eq!(placed, 1, "no place: {message}: {text}");
                assert!(mutations > 0, "{message}: {text}");
                refused += 1;
            }
        }
    }
    assert!(read_as_they_are > 100 && refused > 500, "{read_as_they_are} read, {refused} refused");
}
