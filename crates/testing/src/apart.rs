//! Changes random programs so that partial order reductions apply to them: threads mostly access variables that belong to them, or have locked
//! sections.

use fencewright_program::{Action, Address, Op, Program, VariableId};

use crate::Random;
use crate::bystanders::own_variable;

/// Adds a variable for each thread. About half of the accesses of a thread are redirected to its own new variable, and a few to that of a random
/// thread; the others stay.
pub fn keep_apart(random: &mut Random, program: &mut Program) {
    let first = program.variables.len();
    let threads = program.threads.len();
    for t in 0..threads {
        own_variable(program, t);
    }
    for (t, thread) in program.threads.iter_mut().enumerate() {
        for edge in &mut thread.edges {
            let ops = match &mut edge.action {
                Action::Op(op) => std::slice::from_mut(op),
                Action::Atomic { ops, .. } => ops.as_mut_slice(),
                Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => continue,
            };
            for op in ops {
                let (Op::Load(_, address) | Op::Store(address, _)) = op else { continue };
                let whose = match random.below(8) {
                    0 => random.below(threads),
                    1..=4 => t,
                    _ => continue,
                };
                *address = Address { variable: VariableId((first + whose) as u32), index: None };
            }
        }
    }
}

/// Makes the first part of most threads a locked section: they begin with `lock`, and release the lock at some later location.
pub fn lock_sections(random: &mut Random, program: &mut Program) {
    for thread in &mut program.threads {
        let places = thread.locations.len() - 1;
        if places < 3 || random.one_in(3) {
            continue;
        }
        let last = 1 + random.below(places - 2);
        for edge in &mut thread.edges {
            match edge.from.index() {
                0 => edge.action = Action::Lock,
                from if from == last => edge.action = Action::Unlock,
                _ => {}
            }
        }
    }
}
