//! The permutations that a certificate up to symmetry stands for.

use fencewright_certify::symmetry::Permutation;

/// All permutations within classes of threads.
pub fn orders(threads: usize, classes: &[Vec<u32>]) -> Vec<Permutation> {
    let mut orders = vec![Permutation::identity(threads)];
    let mut examined = 0;
    while let Some(order) = orders.get(examined).cloned() {
        for pair in classes.iter().flat_map(|class| class.windows(2)) {
            let next = Permutation::exchange(threads, pair[0] as usize, pair[1] as usize).after(&order);
            if !orders.contains(&next) {
                orders.push(next);
            }
        }
        examined += 1;
    }
    orders
}
