//! Matrices of difference bounds: entry (i, j) is an upper bound of variable i minus variable j; index 0 is the constant 0. A matrix is
//! closed if entry (i, j) is never greater than the sum of entries (i, k) and (k, j).

/// No bound.
pub const NONE: i32 = i32::MAX;
/// Larger bounds are dropped, and bounds below its negative are raised to that, so that the sum of two bounds fits.
pub const MOST: i64 = 1 << 28;

/// The sum of two bounds, the second one finite.
#[inline]
pub fn sum(a: i32, b: i32) -> i32 {
    if a == NONE { NONE } else { add(a, b) }
}

/// A finite sum, kept in range: too large is no bound, too small is raised.
#[inline]
pub fn add(a: i32, b: i32) -> i32 {
    let total = i64::from(a) + i64::from(b);
    if total > MOST { NONE } else { total.max(-MOST) as i32 }
}

/// Adds `i - j <= c` to a closed matrix and closes it again; false if the constraints contradict each other.
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
    for a in 0..size {
        let to_i = m[a * size + i];
        if to_i == NONE {
            continue;
        }
        let through = add(to_i, c);
        if through == NONE {
            continue;
        }
        for b in 0..size {
            let from_j = m[j * size + b];
            if from_j != NONE {
                let new = add(through, from_j);
                if new < m[a * size + b] {
                    m[a * size + b] = new;
                }
            }
        }
    }
    true
}

/// Forgets everything about one variable of a closed matrix, which stays closed.
pub fn forget(m: &mut [i32], size: usize, i: usize) {
    for k in (0..size).filter(|&k| k != i) {
        m[i * size + k] = NONE;
        m[k * size + i] = NONE;
    }
}

/// Closes the first `used` indices of a matrix (the others are unconstrained).
pub fn close(m: &mut [i32], size: usize, used: usize) {
    for k in 0..used {
        for i in 0..used {
            let first = m[i * size + k];
            if first == NONE || i == k {
                continue;
            }
            for j in 0..used {
                let second = m[k * size + j];
                if second != NONE {
                    let new = add(first, second);
                    if new < m[i * size + j] {
                        m[i * size + j] = new;
                    }
                }
            }
        }
    }
}
