//! Well-formedness: invariants of every program beyond those expressed by its types.

use fencewright_program::{Action, Address, Expr, Formula, Observable, Op, Program, RegisterId, Thread};

use crate::accesses::{for_each_read, written_register};

/// Checks that a thread is well formed: edges are sorted by the location that they leave; they lead to existing locations, and none leaves the fault
/// location; operations use existing registers; an atomic step that does not drain does not store. The error describes the first violation.
pub fn validate_thread(thread: &Thread) -> Result<(), String> {
    let wrong = |what: String| Err(format!("thread {}: {what}", thread.name));
    let locations = thread.locations.len();
    if thread.entry.index() >= locations || thread.fault.index() >= locations {
        return wrong("no entry, or no fault location".into());
    }
    let mut next = 0;
    for (n, location) in thread.locations.iter().enumerate() {
        let Some(leaving) = thread.edges.get(next..location.last_edge as usize) else {
            return wrong(format!("location {n} has edges that do not exist"));
        };
        if location.first_edge as usize != next || leaving.iter().any(|edge| edge.from.index() != n) {
            return wrong(format!("the edges of location {n} are not side by side"));
        }
        next = location.last_edge as usize;
    }
    if next != thread.edges.len() {
        return wrong("an edge that leaves no location".into());
    }
    for (n, edge) in thread.edges.iter().enumerate() {
        if edge.to.index() >= locations || edge.from == thread.fault {
            return wrong(format!("edge {n} leads nowhere, or leaves the fault location"));
        }
        let stores = |op: &Op| matches!(op, Op::Store(..));
        if matches!(&edge.action, Action::Atomic { ops, drains: false } if ops.iter().any(stores)) {
            return wrong(format!("edge {n} stores at once without draining the buffer"));
        }
        let mut exist = true;
        let mut known = |r: RegisterId| exist &= r.index() < thread.registers.len();
        for op in edge.action.ops() {
            for_each_read(op, &mut known);
            written_register(op).into_iter().for_each(&mut known);
        }
        if !exist {
            return wrong(format!("edge {n} uses a register that does not exist"));
        }
    }
    Ok(())
}

/// Checks that a program is well formed: its threads are well formed; variables occupy consecutive memory cells, with one initial value for each
/// cell; addresses have an index exactly if their variable is an array; properties mention only what exists. The error describes the first violation.
pub fn validate(program: &Program) -> Result<(), String> {
    let mut next = 0;
    for variable in &program.variables {
        let size = variable.indices.map_or(1, |range| range.size());
        if variable.base as usize != next || variable.init.len() as u64 != size {
            return Err(format!("variable {} does not occupy the cells it should", variable.name));
        }
        next = variable.cells().end;
    }
    let fits = |address: &Address| {
        let variable = program.variables.get(address.variable.index());
        variable.is_some_and(|variable| variable.indices.is_some() == address.index.is_some())
    };
    for thread in &program.threads {
        validate_thread(thread)?;
        for (n, edge) in thread.edges.iter().enumerate() {
            let addressed = |op: &Op| match op {
                Op::Load(_, address) | Op::Store(address, _) => fits(address),
                _ => true,
            };
            if !edge.action.ops().iter().all(addressed) {
                return Err(format!("thread {}: edge {n} has an address that does not fit", thread.name));
            }
        }
    }
    for property in &program.properties {
        if property.formula().is_some_and(|formula| !is_about(program, formula)) {
            return Err(format!("property {} speaks of what does not exist", property.name));
        }
    }
    Ok(())
}

/// Whether everything that a formula mentions exists, and its lists of locations are sorted and without repetition.
fn is_about(program: &Program, formula: &Formula) -> bool {
    let exists = |observable: &Observable| match observable {
        Observable::At(t, locations) => program.threads.get(t.index()).is_some_and(|thread| {
            locations.is_sorted_by(|a, b| a < b)
                && locations.iter().all(|l| l.index() < thread.locations.len())
        }),
        Observable::Register(t, r) => {
            program.threads.get(t.index()).is_some_and(|thread| r.index() < thread.registers.len())
        }
        Observable::Memory(cell) => (*cell as usize) < program.cells(),
    };
    let mut all = true;
    Expr::for_each_leaf(formula, &mut |observable| all &= exists(observable));
    all
}
