//! Difference bound matrices: entry (i, j) is an upper bound on variable i minus variable j; index 0 is the constant 0. A matrix is closed if entry
//! (i, j) is never greater than the sum of entries (i, k) and (k, j).

/// The absence of a bound.
pub const NONE: i32 = i32::MAX;
/// Bounds greater than this are dropped, and bounds less than `-MOST` are raised to `-MOST`, so that sums of two bounds do not overflow.
pub const MOST: i64 = 1 << 28;

/// The sum of two bounds, the second one finite.
#[inline]
pub fn sum(a: i32, b: i32) -> i32 {
    if a == NONE { NONE } else { add(a, b) }
}

/// The sum of two finite bounds, but at least `-MOST`; [`NONE`] if it exceeds [`MOST`].
#[inline]
pub fn add(a: i32, b: i32) -> i32 {
    let total = i64::from(a) + i64::from(b);
    if total > MOST { NONE } else { total.max(-MOST) as i32 }
}

/// Adds `i - j <= c` to a closed matrix and restores closure. Returns false if the constraints are contradictory.
pub fn bound(m: &mut [i32], size: usize, i: usize, j: usize, c: i32) -> bool {
    if i == j {
        return c >= 0;
    }
    if m[i * size + j] <= c {
        return true;
    }
    let back = m[j * size + i];
    if back != NONE && i64::from(back) + i64::from(c) < 0 {
        return false;
    }
    // Row j itself does not change, because no cycle through j has negative weight.
    for a in (0..size).filter(|&a| a != j) {
        let through = sum(m[a * size + i], c);
        if through != NONE {
            pass_through(m, size, a, through, j);
        }
    }
    true
}

/// Removes all constraints on one variable of a closed matrix, which stays closed.
pub fn forget(m: &mut [i32], size: usize, i: usize) {
    for k in (0..size).filter(|&k| k != i) {
        m[i * size + k] = NONE;
        m[k * size + i] = NONE;
    }
}

/// Closes a matrix (Floyd-Warshall).
pub fn close(m: &mut [i32], size: usize) {
    for k in 0..size {
        for i in (0..size).filter(|&i| i != k) {
            let first = m[i * size + k];
            if first != NONE {
                pass_through(m, size, i, first, k);
            }
        }
    }
}

/// Tightens row i with the bounds that follow from row k, if variable i minus variable k is at most `first`. Searches with zones spend most of their
/// time here, so the loop has no branches and is vectorized by the compiler.
#[inline]
fn pass_through(m: &mut [i32], size: usize, i: usize, first: i32, k: usize) {
    const { assert!(2 * MOST < NONE as i64) };
    let (before, after) = m.split_at_mut(i.max(k) * size);
    let (low, high) = (&mut before[i.min(k) * size..][..size], &mut after[..size]);
    let (row, other) = if i < k { (low, high) } else { (high, low) };
    for (bound, &second) in row.iter_mut().zip(&*other) {
        let total = first.wrapping_add(second).max(-MOST as i32);
        let none = second == NONE || total > MOST as i32;
        *bound = (*bound).min(if none { NONE } else { total });
    }
}
