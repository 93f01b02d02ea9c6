//! Integer types, conditional expressions, minima and maxima.

use crate::facts::{ALL, NONE, SC_TSO, check, errors, program, refused};

#[test]
fn writes_wrap_around() {
    check("shared x: u8 = 255; thread p { x = x + 1; } finally forall x == 0;", ALL);
    check("shared x: u8; thread p { x = x - 1; x = x + x; } finally forall x == 254;", ALL);
    check("shared x: i8 = 127; thread p { x = x + 1; } finally forall x == -128;", ALL);
    check(
        "shared x: u16, y: i16; thread p { x = 65536 + 7; y = 32768; } finally forall x == 7 && y == -32768;",
        ALL,
    );
    check(
        "shared x: u32, y: i32; thread p { x = -1; y = 2147483647 + 2; } finally forall x == 4294967295 && y == -2147483647;",
        ALL,
    );
    check(
        "shared x: i64 = 9223372036854775807; thread p { x = x + 1; } finally forall x == -9223372036854775807 - 1;",
        ALL,
    );
    check(
        "shared a[2]: u8 = [1, 255]; thread p { var i = 1; a[i] = a[i] + 2; } finally forall a[0] == 1 && a[1] == 1;",
        ALL,
    );
    // Registers, arrays of registers, and parameters.
    check(
        "thread p { var r: u8 = 250, s[2]: i8, i; r = r + 10; s[1] = 200; s[i] = -129; } finally forall p.r == 4 && p.s[1] == -56 && p.s[0] == 127;",
        ALL,
    );
    check(
        "fn f(a: u8) { a = a + 1; return a; } fn g(a: i8) { return a; } thread p { var r = 511, s, t; s = f(r); t = g(r + 129); } finally forall p.s == 0 && p.t == -128;",
        ALL,
    );
    check("shared x: u8, y = 300; thread p { x = y; } finally forall x == 44;", ALL);
    check("shared x = 300; thread p { var r: u8; r = x; } finally forall p.r == 44;", ALL);
    check(
        "shared x: u16 = 511; thread p { var r: u8, s: i32; r = x; s = x; } finally forall p.r == 255 && p.s == 511;",
        ALL,
    );
    // A write that wraps is no fault.
    assert!(program("shared x: u8; thread p { var r: i8; r = x; x = r + 1; }").properties.is_empty());
}

#[test]
fn operations_wrap_around() {
    check(
        "shared x: u8 = 255; thread p { var r; r = fetch_add(x, 2); } finally forall x == 1 && p.r == 255;",
        ALL,
    );
    check(
        "shared x: u8; thread p { var r; r = swap(x, 257); r = cas(x, 1, 258) + 10 * r; } finally forall x == 2 && p.r == 1;",
        ALL,
    );
    check(
        "shared x: u8; thread p { var r: u8 = 1; r = fetch_add(x, 300); r = fetch_add(x, 0) + 256; } finally forall p.r == 44;",
        ALL,
    );
    check("shared x: u8 = 255; thread p { atomic { x = x + 1; x = x - 1; } } finally forall x == 255;", ALL);
    // Sums do not wrap; only writes and conversions do.
    check(
        "shared x: u8 = 255; thread p { assert x + 1 == 256; assert u8(x + 1) == 0; assert i8(x) == -1; }",
        ALL,
    );
    check(
        "shared x: u8 = 3; thread p { var r: u8; r = *; assert r >= 0 && r < 256; x = * in 4..6; } finally forall x == 4 || x == 5;",
        ALL,
    );
    check("shared x: u8 = *; thread p { assert x <= 255 && x >= 0; } finally exists x == 200;", ALL);
}

#[test]
fn copies_between_equal_types_are_plain() {
    let edges = |text: &str| program(text).threads[0].edges.len();
    assert_eq!(edges("shared x: u8; thread p { var r: u8; r = x; }"), 1);
    assert_eq!(edges("shared x: u16; thread p { var r: u8; r = x; }"), 2);
    assert_eq!(edges("shared x: u8; thread p { var r: u16; r = x; }"), 1);
}

#[test]
fn errors_about_types() {
    refused("shared x: u8 = 256;", "1:16 the initial value 256 is outside 0..=255");
    refused("thread p { var r: i8 = 128; }", "1:24 the initial value 128 is outside -128..=127");
    refused(
        "shared x: u64;",
        "1:8 `u64` is not supported [numbers are computed in 64 bits with a sign; `i64` has as many values]",
    );
    refused(
        "fn f(a: u64) { skip; }",
        "1:6 `u64` is not supported [numbers are computed in 64 bits with a sign; `i64` has as many values]",
    );
    refused("numbers nat; shared x: i8;", "1:21 `i8` has numbers below 0, which are not natural");
    refused("numbers real; shared x: u8;", "1:22 `u8` is not supported over the reals");
    refused("shared x: u8; thread p { x = * in 0..300; }", "1:26 this leaves the values of `u8`");
    assert!(errors("numbers nat; shared x: u8;").is_empty());
}

#[test]
fn only_the_chosen_side_is_evaluated() {
    check(
        "shared x = 2; thread p { var r = 1; assert (r ? 5 : 6) == 5; assert (r == 0 ? 1 / 0 : 3) == 3; r = x > 1 ? x : 0; } finally forall p.r == 2;",
        ALL,
    );
    // The branch that is not selected is not evaluated.
    check("shared x, a[2]; thread p { var i = 7; x = i < 2 ? a[i] : 9; } finally forall x == 9;", ALL);
    check("shared x, a[2]; thread p { var i = 7; x = i > 2 ? a[i] : 9; }", NONE);
    check(
        "shared x; fn set() { x = 1; return 5; } thread p { var r; r = x == 1 ? set() : 3; } finally forall p.r == 3 && x == 0;",
        ALL,
    );
    check(
        "shared x = 1; thread p { var r; if (x ? x == 1 : 0) && !(x ? 0 : x) { r = 1; } } finally forall p.r == 1;",
        ALL,
    );
    check("shared x; thread p { await x ? 1 : x == 2; } thread q { x = 1; } finally exists x == 1;", ALL);
    check(
        "const N = 1 > 0 ? 3 : 1 / 0; shared a[N]; thread p { a[N - 1] = 0 ? a[0] : 4; } finally forall a[2] == 4;",
        ALL,
    );
    check(
        "thread p { var r = 3; atomic { r = r > 2 ? (r > 5 ? 0 : 1) : 2; } } finally forall p.r == 1;",
        ALL,
    );
    check(
        "shared data, flag; thread p { data = 1; flag = 1; } thread q { var r; r = flag ? data : 1; assert r == 1; }",
        SC_TSO,
    );
    // Conditional expressions in properties.
    check(
        "shared x = 1, y; thread p { y = 2; } forbid (p@end ? x : y) > 2; invariant x == 1 ? y <= 2 : false;",
        ALL,
    );
    check("shared x; thread p { x = 3; } finally forall min(x, 2) == 2 && max(x, 5) == 5;", ALL);
}

#[test]
fn minima_and_maxima() {
    check(
        "shared x = 3, y = -4; thread p { var r; r = min(x, y) + 10 * max(x, max(y, 2)); } finally forall p.r == 26;",
        ALL,
    );
    check("thread p { var r = 5, s; s = max(min(r, 3), 1); assert s == 3; assert min(1, 2) == 1; }", ALL);
    check("const N = max(2, 3); shared a[N]; thread p { a[min(2, N)] = 1; } finally forall a[2] == 1;", ALL);
}
