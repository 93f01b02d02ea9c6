//! The prelude of every C text: the functions of verifiers, and overflow-checked arithmetic.

use super::Width;

pub(super) fn prelude(width: Width) -> String {
    let (c_type, nondet) = match width {
        Width::Bits32 => ("int", "__VERIFIER_nondet_int"),
        Width::Bits64 => ("long long", "__VERIFIER_nondet_longlong"),
    };
    let arithmetic = match width {
        Width::Bits32 => CHECKED_32,
        Width::Bits64 => CHECKED_64,
    };
    let declared =
        if width == Width::Bits64 { "extern long long __VERIFIER_nondet_longlong(void);\n" } else { "" };
    let common = COMMON.replace("TYPE", c_type).replace("NONDET", nondet);
    format!("{HEADERS}{declared}{START}{common}{arithmetic}")
}

const HEADERS: &str = "
#include <assert.h>
#include <pthread.h>

extern void abort(void);
extern int __VERIFIER_nondet_int(void);
";

const START: &str = "extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);

void reach_error(void) { assert(0); }
";

const COMMON: &str = "
static inline void assume(int condition) {
  if (!condition)
    abort();
}

static inline int choose(int ways) {
  int way = __VERIFIER_nondet_int();
  assume(0 <= way && way < ways);
  return way;
}

static inline TYPE any(void) { return NONDET(); }

static inline TYPE inside(TYPE index, TYPE low, TYPE high) {
  assume(low <= index && index <= high);
  return index - low;
}

static inline TYPE natural(TYPE a) {
  assume(a >= 0);
  return a;
}

static inline TYPE least(TYPE a, TYPE b) { return a < b ? a : b; }

static inline TYPE greatest(TYPE a, TYPE b) { return a > b ? a : b; }

static inline TYPE shift_right(TYPE a, TYPE b) {
  assume(0 <= b && b < 64);
  if (b >= (TYPE)(8 * sizeof(TYPE)))
    return a < 0 ? -1 : 0;
  return a >> b;
}
";

const CHECKED_32: &str = "
static inline int fit(long long a) {
  assume(-2147483647LL - 1 <= a && a <= 2147483647LL);
  return (int)a;
}

static inline int add(int a, int b) { return fit((long long)a + b); }

static inline int subtract(int a, int b) { return fit((long long)a - b); }

static inline int multiply(int a, int b) { return fit((long long)a * b); }

static inline int divide(int a, int b) {
  assume(b != 0);
  return fit((long long)a / b);
}

static inline int remainder_of(int a, int b) {
  assume(b != 0);
  return fit((long long)a % b);
}

static inline int shift_left(int a, int b) {
  assume(0 <= b && b < 64);
  if (a == 0)
    return 0;
  assume(b < 32);
  return fit((long long)a * (1LL << b));
}
";

const CHECKED_64: &str = "
static inline long long add(long long a, long long b) {
  long long result;
  assume(!__builtin_add_overflow(a, b, &result));
  return result;
}

static inline long long subtract(long long a, long long b) {
  long long result;
  assume(!__builtin_sub_overflow(a, b, &result));
  return result;
}

static inline long long multiply(long long a, long long b) {
  long long result;
  assume(!__builtin_mul_overflow(a, b, &result));
  return result;
}

static inline long long divide(long long a, long long b) {
  assume(b != 0);
  return b == -1 ? subtract(0, a) : a / b;
}

static inline long long remainder_of(long long a, long long b) {
  assume(b != 0);
  return b == -1 ? 0 : a % b;
}

static inline long long shift_left(long long a, long long b) {
  assume(0 <= b && b < 64);
  if (a == 0)
    return 0;
  assume(b < 63 || a == -1);
  return b < 63 ? multiply(a, 1LL << b) : -9223372036854775807LL - 1;
}
";
