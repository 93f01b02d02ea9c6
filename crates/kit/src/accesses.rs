//! Memory and register accesses of operations.

use std::ops::Range;

use fencewright_program::{Address, Op, Program, RegisterId};

/// The memory cells that an address may denote: all cells of an array if the index is not a constant in the range of the array.
pub fn cells_of(program: &Program, address: &Address) -> Range<u32> {
    let variable = &program.variables[address.variable.index()];
    let all = variable.cells();
    match (&address.index, variable.indices) {
        (Some(index), Some(range)) => match index.constant() {
            Some(i) if range.contains(i) => {
                let cell = variable.base + (i - range.low) as u32;
                cell..cell + 1
            }
            _ => all.start as u32..all.end as u32,
        },
        _ => variable.base..variable.base + 1,
    }
}

/// The single memory cell that an address denotes; `None` if there may be several, or if the index may lie outside an `open` array, which models
/// only a part of a larger address space.
pub fn only_cell(program: &Program, address: &Address) -> Option<u32> {
    let cells = cells_of(program, address);
    let open = program.variables[address.variable.index()].open;
    (cells.len() == 1 && (is_inside(program, address) || !open)).then_some(cells.start)
}

/// Whether the address certainly denotes a cell of its variable: a scalar, or a constant index within the array's range.
pub fn is_inside(program: &Program, address: &Address) -> bool {
    match (&address.index, program.variables[address.variable.index()].indices) {
        (Some(index), Some(range)) => index.constant().is_some_and(|i| range.contains(i)),
        _ => true,
    }
}

/// The register that an operation writes.
pub fn written_register(op: &Op) -> Option<RegisterId> {
    match op {
        Op::Assign(r, _) | Op::Havoc(r, _) | Op::Load(r, _) => Some(*r),
        Op::Skip | Op::Assume(_) | Op::Assert(..) | Op::Store(..) => None,
    }
}

/// Calls `visit` on every register that an operation reads.
pub fn for_each_read(op: &Op, visit: &mut impl FnMut(RegisterId)) {
    let address = |a: &Address, visit: &mut dyn FnMut(RegisterId)| {
        if let Some(index) = &a.index {
            index.for_each_leaf(&mut |r| visit(*r));
        }
    };
    match op {
        Op::Skip | Op::Havoc(..) => {}
        Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) => e.for_each_leaf(&mut |r| visit(*r)),
        Op::Load(_, a) => address(a, visit),
        Op::Store(a, e) => {
            address(a, visit);
            e.for_each_leaf(&mut |r| visit(*r));
        }
    }
}
