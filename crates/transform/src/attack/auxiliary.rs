//! The auxiliary variables of an instrumented program.

use fencewright_kit::accesses::cells_of;
use fencewright_program::{Address, Expr, Init, Op, Program, Range, RegisterId, Span, Variable, VariableId};

use super::Notion;
use super::accesses::{Delay, contended};

/// The auxiliary variables. A variable that accompanies a variable of the program is `None` where it is not needed.
pub struct Auxiliary {
    /// The declarations of the auxiliary variables, in the order of their numbers.
    pub variables: Vec<Variable>,
    /// Flag: an attack has begun.
    pub attacked: VariableId,
    /// Flag: threads outside the cone do not access memory.
    pub closed: VariableId,
    /// Flag, for triangular races only: another thread has written a cell that the attacking load has read.
    pub raced: Option<VariableId>,
    /// For each variable of the program, the flags of its cells: the cone has accessed the cell.
    pub touched: Vec<Option<VariableId>>,
    /// For each variable of the program, the flags of its cells: the cone has stored to the cell.
    pub stored: Vec<Option<VariableId>>,
    /// For each variable of the program, the flags of its cells: the attacker has delayed a store to the cell.
    pub delayed: Vec<Option<VariableId>>,
    /// For each variable of the program, the newest delayed value for each of its cells.
    pub newest: Vec<Option<VariableId>>,
    contended: Vec<bool>,
}

const FLAG: Option<Range> = Some(Range { low: 0, high: 1 });

impl Auxiliary {
    /// The variables needed for attacks with these delays.
    pub fn new<'d>(program: &Program, notion: Notion, delayed: impl IntoIterator<Item = &'d Delay>) -> Self {
        let contended = contended(program);
        let none = vec![None; program.variables.len()];
        let mut auxiliary = Auxiliary {
            variables: Vec::new(),
            attacked: VariableId(0),
            closed: VariableId(0),
            raced: None,
            touched: none.clone(),
            stored: none.clone(),
            delayed: none.clone(),
            newest: none,
            contended,
        };
        let scalar = |name: &str| Variable {
            name: name.into(),
            base: 0,
            indices: None,
            open: false,
            range: None,
            init: vec![Init::Value(0)],
            span: Span::default(),
        };
        auxiliary.attacked = auxiliary.add(program, scalar("attacked"), FLAG);
        auxiliary.closed = auxiliary.add(program, scalar("closed"), FLAG);
        if notion == Notion::Triangular {
            auxiliary.raced = Some(auxiliary.add(program, scalar("raced"), FLAG));
        }
        let mut delays = vec![false; program.variables.len()];
        for delay in delayed {
            delays.iter_mut().zip(&delay.forwarded).for_each(|(delays, &found)| *delays |= found);
        }
        for (v, variable) in program.variables.iter().enumerate() {
            if variable.cells().any(|cell| auxiliary.contended[cell]) {
                auxiliary.touched[v] = Some(auxiliary.beside(program, variable, "touched", FLAG));
                auxiliary.stored[v] = Some(auxiliary.beside(program, variable, "stored", FLAG));
            }
            if delays[v] {
                auxiliary.delayed[v] = Some(auxiliary.beside(program, variable, "delayed", FLAG));
                auxiliary.newest[v] = Some(auxiliary.beside(program, variable, "newest", variable.range));
            }
        }
        auxiliary
    }

    /// Declares a variable with the same indices as another one, named after it.
    fn beside(
        &mut self,
        program: &Program,
        variable: &Variable,
        what: &str,
        range: Option<Range>,
    ) -> VariableId {
        let init = vec![Init::Value(neutral(range)); variable.init.len()];
        let name = format!("{what}:{}", variable.name);
        self.add(program, Variable { name, init, ..variable.clone() }, range)
    }

    fn add(&mut self, program: &Program, variable: Variable, range: Option<Range>) -> VariableId {
        let base = self.variables.last().map_or(program.cells(), |v| v.cells().end) as u32;
        self.variables.push(Variable { base, range, ..variable });
        VariableId((program.variables.len() + self.variables.len() - 1) as u32)
    }

    /// The operations that record an access by a thread in the cone.
    pub fn mark(&self, program: &Program, address: &Address, stores: bool) -> Vec<Op> {
        if !self.is_contended(program, address) {
            return Vec::new();
        }
        let kinds = if stores { vec![&self.touched, &self.stored] } else { vec![&self.touched] };
        kinds.into_iter().filter_map(|kind| beside(kind, address)).map(|a| Op::Store(a, one())).collect()
    }

    /// The operations that continue only if this access conflicts with an access in the cone; `None` if the two cannot conflict.
    pub fn meet(
        &self,
        program: &Program,
        address: &Address,
        stores: bool,
        scratch: RegisterId,
    ) -> Option<Vec<Op>> {
        let kind = if stores { &self.touched } else { &self.stored };
        let met = beside(kind, address).filter(|_| self.is_contended(program, address))?;
        Some(is(met, 1, scratch))
    }

    /// Whether, for some cell that the address may denote, at least two threads access the cell and at least one of them stores to it.
    pub fn is_contended(&self, program: &Program, address: &Address) -> bool {
        cells_of(program, address).any(|cell| self.contended[cell as usize])
    }
}

/// The value of the range that is nearest to 0; 0 without a range.
pub fn neutral(range: Option<Range>) -> i64 {
    range.map_or(0, |r| 0.clamp(r.low.min(r.high), r.high))
}

/// The cell that accompanies the cell of an address in an auxiliary variable of this kind; `None` if there is no such variable.
pub fn beside(kind: &[Option<VariableId>], address: &Address) -> Option<Address> {
    kind[address.variable.index()].map(|variable| Address { variable, index: address.index.clone() })
}

/// The operations that continue only if a flag has this value.
pub fn is(flag: Address, value: i64, scratch: RegisterId) -> Vec<Op> {
    let equal = Expr::binary(fencewright_program::BinaryOp::Eq, Expr::Leaf(scratch), Expr::Const(value));
    vec![Op::Load(scratch, flag), Op::Assume(equal)]
}

/// The address of a variable that is not an array.
pub fn scalar(variable: VariableId) -> Address {
    Address { variable, index: None }
}

/// The value of a flag that is set.
pub fn one() -> Expr<RegisterId> {
    Expr::Const(1)
}
