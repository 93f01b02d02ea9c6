//! Versions: unbounded numbers that matter only through their order.
//!
//! Tags against ABA, version counters and identities are numbers that a program copies, compares with each other, and increments by 1, and does not
//! use in any other way. They may be packed together with a small number: a value of *scale* m is `m * version + rest` with a rest from 0 to m - 1,
//! and the rest is an ordinary number. The certificate gives the scale of each shared variable and of each register at the start, 0 for those that
//! hold no versions. From these scales [`Types::new`] computes which registers hold versions at which location, and checks that the program obeys
//! these rules:
//!
//! * values of the same scale are copied and compared; the rest is extracted by `%`, the version by `/`;
//! * `version + 1`, `m * version + rest`, and a value of scale m plus a number from 0 to m are versions again. A version that is *new* in this
//!   sense is made by the last operation of a step only, so that the step cannot use it;
//! * the program does nothing else with a value that contains a version. Properties obey the same rules.
//!
//! **Only the order of versions matters.** Let f be strictly increasing on the versions of a state s, in memory, live registers and buffers, and f(s)
//! the state in which each version v is replaced by f(v). Comparisons of values of one scale have the same result in s and in f(s), and every value
//! that is not a version is the same in both. Hence s and f(s) have the same steps, with the same faults, and their successors again differ by f,
//! except for one version that is new: v + 1 in one successor, f(v) + 1 in the other (or v and f(v), if the added number does not reach the next
//! version). In the successor of s, v + 1 may be greater than all other versions, lie between v and the least version greater than v, or be equal to
//! that least greater version. No number lies between v and v + 1.
//!
//! In the states of a set with versions all versions are even. A step from such a state leads to one in which at most one version is odd, the new
//! one. That state is looked up twice ([`Place`]): as it is, and with the odd version made equal to the least greater one; each time versions are
//! renamed to 0, 2, 4, ... in their order, which is an increasing f. So every reachable state is in the set up to an increasing f. The proof is by
//! induction on the number of steps: it uses the previous paragraph, and that increasing functions are closed under composition. Exchanged threads
//! have the same code and the same scales, so an increasing f commutes with an exchange; numbers of threads must not be versions.
//!
//! Arbitrary initial values are represented by their positions among the other initial values: [`Versions::start`].

use std::collections::BTreeSet;

use fencewright_program::{
    BinaryOp, Expr, Init, LocationId, Numbers, Observable, Op, Program, Property, Range, RegisterId, Thread,
};
use serde::{Deserialize, Serialize};

use super::{Field, StateSet};
use crate::automorphism::Family;

/// The variables and registers that hold versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// The scale of the values of each shared variable; 0 if it holds no versions.
    pub variables: Vec<i64>,
    /// The scale of each register of each thread at the start; 0 if it holds no version.
    pub registers: Vec<Vec<i64>>,
}

/// The reason why a program does not obey the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The variable with this number would have to hold versions of this scale.
    Variable(usize, i64),
    /// Thread, register, scale: the register would have to hold versions of this scale at the start.
    Register(usize, usize, i64),
    /// Any other reason, in words.
    Other(&'static str),
}

/// An interval that bounds a number that is not a version; `None` if no bounds are known. In the empty interval the greatest value is below the
/// least.
type Bounds = Option<(i64, i64)>;

const NO_NUMBER: Bounds = Some((i64::MAX, i64::MIN));

fn joined(a: Bounds, b: Bounds) -> Bounds {
    a.zip(b).map(|((low, high), (least, most))| (low.min(least), high.max(most)))
}

/// The kind of the value of an expression.
#[derive(Clone, Copy)]
enum Kind {
    /// A number that does not change when versions are renamed.
    Plain(Bounds),
    /// A value that contains a version: its scale, whether the version is new, whether the rest is 0.
    Version { scale: i64, new: bool, whole: bool },
}

impl Kind {
    fn of(scale: i64, bounds: Bounds) -> Self {
        if scale == 0 { Kind::Plain(bounds) } else { Kind::Version { scale, new: false, whole: false } }
    }
}

/// The kind of an expression; `None` if it violates the rules. `signed` is whether versions may be negative.
fn kind<L>(e: &Expr<L>, signed: bool, of: &impl Fn(&L) -> Option<Kind>) -> Option<Kind> {
    use BinaryOp::*;
    use Kind::{Plain, Version};
    let plain = |e: &Expr<L>| matches!(kind(e, signed, of), Some(Plain(_))).then_some(());
    let (op, left, right) = match e {
        Expr::Const(c) => return Some(Plain(Some((*c, *c)))),
        Expr::Leaf(leaf) => return of(leaf),
        Expr::Unary(_, operand) => return plain(operand).map(|()| Plain(None)),
        Expr::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().try_for_each(|part| plain(part))?;
            return Some(Plain(None));
        }
        Expr::Binary(op, left, right) => (*op, kind(left, signed, of)?, kind(right, signed, of)?),
    };
    // Sums and products are commutative, so the version may be on either side.
    let (left, right) = match (op, left, right) {
        (Add | Mul, Plain(_), Version { .. }) => (right, left),
        _ => (left, right),
    };
    Some(match (op, left, right) {
        (Rem, Plain(Some((0.., _))), Plain(Some((m @ 1.., most)))) if m == most => Plain(Some((0, m - 1))),
        (_, Plain(_), Plain(_)) => Plain(None),
        (op, Version { scale: a, new: false, .. }, Version { scale: b, new: false, .. })
            if op.is_comparison() && a == b =>
        {
            Plain(Some((0, 1)))
        }
        (op, Version { scale, new, whole }, Plain(Some((low, high)))) => match op {
            Rem if low == high && low > 0 && scale % low == 0 && !new && !signed => Plain(Some((0, low - 1))),
            Div if low == high && low == scale && !new && !signed => {
                Version { scale: 1, new: false, whole: true }
            }
            Mul if low == high && (1..=MOST_SCALE).contains(&low) && scale == 1 => {
                Version { scale: low, new, whole: true }
            }
            Add if whole && low >= 0 && high < scale => Version { scale, new, whole: false },
            Add if low == high && (0..=scale).contains(&low) && !new => {
                Version { scale, new: low > 0, whole: false }
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Maximum number of rounds of the fixpoint iteration that bounds numbers.
const MOST_ROUNDS: usize = 64;
/// Maximum scale of a value.
const MOST_SCALE: i64 = 1 << 20;
/// Maximum number of versions with an arbitrary initial value.
const MOST_ANY: u64 = 8;
/// Maximum number of combinations of positions that the arbitrary initial versions can have in the order of the initial values.
const MOST_STARTS: u64 = 1 << 20;

/// The registers that hold versions at each location.
#[derive(Clone, Debug)]
pub struct Types {
    /// For each thread and location, the scale of each register; `None` for an unreachable location.
    at: Vec<Vec<Option<Vec<i64>>>>,
}

/// The state of the computation of types.
struct Typing<'a> {
    program: &'a Program,
    versions: &'a Versions,
    live: &'a [Vec<Vec<u32>>],
    signed: bool,
    at: Vec<Vec<Option<Vec<i64>>>>,
    /// Bounds of the numbers that registers and variables hold, as far as these numbers are not versions.
    registers: Vec<Vec<Bounds>>,
    variables: Vec<Bounds>,
}

impl Versions {
    /// The initial values of all variables and registers that hold versions at the start, each with its scale.
    fn starts<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = (i64, Init)> + 'a {
        let variables = program.variables.iter().zip(&self.variables);
        let cells = variables.flat_map(|(v, &scale)| v.init.iter().map(move |init| (scale, *init)));
        let registers =
            program.threads.iter().flat_map(|t| &t.registers).zip(self.registers.iter().flatten());
        cells.chain(registers.map(|(r, &scale)| (scale, r.init))).filter(|(scale, _)| *scale > 0)
    }

    /// Checks that exchanging the threads of these families confuses neither numbers of threads with versions nor registers of different scales.
    pub fn check_exchanges(&self, types: &Types, families: &[Family]) -> Result<(), &'static str> {
        for family in families {
            if family.values.iter().any(|&v| self.variables[v as usize] > 0)
                || family
                    .registers
                    .iter()
                    .any(|&(t, l, r)| types.scale(t as usize, l as usize, r as usize) > 0)
            {
                return Err("numbers of threads are versions");
            }
            let scales = |t: u32| &self.registers[t as usize];
            if family.threads.windows(2).any(|two| scales(two[0]) != scales(two[1])) {
                return Err("threads that are exchanged have different versions");
            }
        }
        Ok(())
    }

    /// Checks the scales and initial values of versions; returns whether versions may be negative.
    fn check_start(&self, program: &Program) -> Result<bool, Misfit> {
        let complete = self.variables.len() == program.variables.len()
            && self.registers.len() == program.threads.len()
            && self.registers.iter().zip(&program.threads).all(|(own, t)| own.len() == t.registers.len());
        let mut scales = self.variables.iter().chain(self.registers.iter().flatten());
        if !complete || !scales.all(|scale| (0..=MOST_SCALE).contains(scale)) {
            return Err(Misfit::Other("its versions are not those of this program"));
        }
        let variables = program.variables.iter().map(|v| v.range).zip(&self.variables);
        let registers = program.threads.iter().flat_map(|t| t.registers.iter().map(|r| r.range));
        let mut ranges = variables.chain(registers.zip(self.registers.iter().flatten()));
        let starts = || self.starts(program);
        if program.numbers == Numbers::Real
            || ranges.any(|(range, &scale)| scale > 0 && range.is_some())
            || starts().any(|(_, init)| matches!(init, Init::Any(Some(_))))
        {
            return Err(Misfit::Other("a version has a declared range, or is real"));
        }
        let signed = starts().any(|(_, init)| !matches!(init, Init::Value(0..)));
        if signed && starts().any(|(scale, _)| scale > 1) {
            return Err(Misfit::Other("a version with a rest may be negative"));
        }
        let Start { fixed, any } = self.start(program);
        let positions = (any + 1).saturating_mul(fixed.len() as u64 + 1);
        match positions.saturating_pow(any as u32) <= MOST_STARTS && any <= MOST_ANY {
            true => Ok(signed),
            false => Err(Misfit::Other("too many versions are any number at the start")),
        }
    }

    /// The initial versions as positions in their order.
    pub fn start(&self, program: &Program) -> Start {
        let mut fixed: Vec<i64> = Vec::new();
        let mut any = 0;
        for (_, init) in self.starts(program) {
            match init {
                Init::Value(value) => fixed.push(value),
                Init::Any(_) => any += 1,
            }
        }
        fixed.sort_unstable();
        fixed.dedup();
        Start { fixed, any }
    }
}

/// Initial versions as positions. Below, between and above the fixed initial values there are enough positions for all arbitrary initial values. So
/// every order of initial values is an order of positions.
#[derive(Clone, Debug)]
pub struct Start {
    /// The fixed initial values, sorted.
    fixed: Vec<i64>,
    /// The number of arbitrary initial values.
    any: u64,
}

impl Start {
    /// Maps the initial value of a register or variable to positions. A value of scale 0 is not a version and stays unchanged; without arbitrary
    /// initial values, all values stay unchanged.
    pub fn place(&self, scale: i64, init: Init) -> Init {
        let room = self.any as i64 + 1;
        match init {
            _ if scale == 0 || self.any == 0 => init,
            Init::Value(value) => {
                let below = self.fixed.partition_point(|&other| other < value) as i64;
                Init::Value(room * (below + 1) - 1)
            }
            Init::Any(_) => Init::Any(Some(Range { low: 0, high: room * (self.fixed.len() as i64 + 1) - 2 })),
        }
    }
}

/// The two ways to rank an odd version among the others. Each gives a representative of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The odd version stays distinct, between its even neighbours.
    Between,
    /// The odd version is made equal to the least greater version.
    Joined,
}

/// Renames the versions of values, given as pairs of scale and value, to even numbers in their order. Returns false for `Joined` if no odd version
/// has a greater version that it could be made equal to.
pub fn rename(values: &mut [(i64, i64)], place: Place, order: &mut Vec<i64>) -> bool {
    let version = |&(scale, value): &(i64, i64)| value.div_euclid(scale);
    order.clear();
    order.extend(values.iter().map(version));
    order.sort_unstable();
    order.dedup();
    let odd = order.iter().position(|version| version % 2 != 0).filter(|&n| n + 1 < order.len());
    if place == Place::Joined && odd.is_none() {
        return false;
    }
    let odd = odd.filter(|_| place == Place::Joined);
    for (scale, value) in values {
        let rank = order.partition_point(|&other| other < value.div_euclid(*scale));
        // All versions above the odd one move down by one rank, so that the least of them coincides with the odd one.
        let rank = rank - odd.is_some_and(|odd| rank > odd) as usize;
        *value = *scale * (2 * rank as i64) + value.rem_euclid(*scale);
    }
    true
}

impl Types {
    /// Checks that a program and its properties obey the rules. `live`: the live registers of each location of each thread.
    pub fn new(
        program: &Program,
        properties: &[Property],
        live: &[Vec<Vec<u32>>],
        versions: &Versions,
    ) -> Result<Self, Misfit> {
        let signed = versions.check_start(program)?;
        let bounds = |init: &Init| match init {
            Init::Value(value) => Some((*value, *value)),
            Init::Any(range) => range.map(|range| (range.low, range.high)),
        };
        let mut typing = Typing {
            program,
            versions,
            live,
            signed,
            at: Vec::new(),
            registers: program
                .threads
                .iter()
                .map(|t| t.registers.iter().map(|r| bounds(&r.init)).collect())
                .collect(),
            variables: program
                .variables
                .iter()
                .map(|v| v.init.iter().map(bounds).fold(NO_NUMBER, joined))
                .collect(),
        };
        for _ in 0..MOST_ROUNDS {
            let before = (typing.registers.clone(), typing.variables.clone());
            typing.at = program.threads.iter().map(|t| vec![None; t.locations.len()]).collect();
            for (t, thread) in program.threads.iter().enumerate() {
                typing.thread(t, thread)?;
            }
            if before == (typing.registers.clone(), typing.variables.clone()) {
                properties.iter().try_for_each(|property| typing.property(property))?;
                return Ok(Types { at: typing.at });
            }
        }
        Err(Misfit::Other("it takes too long to bound its numbers"))
    }
}

impl Typing<'_> {
    fn kind(&self, t: usize, now: &[i64], e: &Expr<RegisterId>) -> Result<Kind, Misfit> {
        let of = |r: &RegisterId| Some(Kind::of(now[r.index()], self.registers[t][r.index()]));
        kind(e, self.signed, &of).ok_or(Misfit::Other("it computes with versions"))
    }

    fn plain(&self, t: usize, now: &[i64], e: &Expr<RegisterId>) -> Result<Bounds, Misfit> {
        match self.kind(t, now, e)? {
            Kind::Plain(bounds) => Ok(bounds),
            Kind::Version { .. } => Err(Misfit::Other("it computes with versions")),
        }
    }

    /// Propagates scales through a thread: a forward analysis with a worklist.
    fn thread(&mut self, t: usize, thread: &Thread) -> Result<(), Misfit> {
        let mut work = Vec::new();
        let versions = self.versions;
        self.arrive(t, thread.entry, &versions.registers[t], &mut work)?;
        while let Some(location) = work.pop() {
            let before = self.at[t][location.index()].clone().expect("it was reached");
            for (_, edge) in thread.edges_from(location) {
                let mut now = before.clone();
                let ops = edge.action.ops();
                for (n, op) in ops.iter().enumerate() {
                    self.arrive(t, thread.fault, &now, &mut work)?;
                    if self.operation(t, op, &mut now)? && n + 1 < ops.len() {
                        return Err(Misfit::Other("a step goes on after making a version"));
                    }
                }
                self.arrive(t, edge.to, &now, &mut work)?;
            }
        }
        Ok(())
    }

    /// The transfer function of an operation; returns whether the operation makes a new version.
    fn operation(&mut self, t: usize, op: &Op, now: &mut [i64]) -> Result<bool, Misfit> {
        if let Op::Load(_, address) | Op::Store(address, _) = op
            && let Some(index) = &address.index
        {
            self.plain(t, now, index)?;
        }
        let (register, kind) = match op {
            Op::Skip => return Ok(false),
            Op::Assume(e) | Op::Assert(e, _) => return self.plain(t, now, e).map(|_| false),
            Op::Store(address, e) => {
                let variable = address.variable.index();
                let kind = self.kind(t, now, e)?;
                return match (self.versions.variables[variable], kind) {
                    (0, Kind::Plain(bounds)) => {
                        self.variables[variable] = joined(self.variables[variable], bounds);
                        Ok(false)
                    }
                    (0, Kind::Version { scale, .. }) => Err(Misfit::Variable(variable, scale)),
                    (own, Kind::Version { scale, new, .. }) if own == scale => Ok(new),
                    _ => Err(Misfit::Other("a variable holds versions and other numbers")),
                };
            }
            Op::Havoc(register, range) => (register, Kind::Plain(range.map(|r| (r.low, r.high)))),
            Op::Assign(register, e) => (register, self.kind(t, now, e)?),
            Op::Load(register, address) => {
                let variable = address.variable.index();
                (register, Kind::of(self.versions.variables[variable], self.variables[variable]))
            }
        };
        let r = register.index();
        match kind {
            Kind::Plain(bounds) => {
                now[r] = 0;
                self.registers[t][r] = joined(self.registers[t][r], bounds);
                Ok(false)
            }
            Kind::Version { .. } if self.program.threads[t].registers[r].range.is_some() => {
                Err(Misfit::Other("a version has a declared range"))
            }
            Kind::Version { scale, new, .. } => {
                now[r] = scale;
                Ok(new)
            }
        }
    }

    /// Joins the scales of registers into a location. The scale of a register that is live there must be the same on all paths.
    fn arrive(
        &mut self,
        t: usize,
        to: LocationId,
        now: &[i64],
        work: &mut Vec<LocationId>,
    ) -> Result<(), Misfit> {
        let Some(known) = &self.at[t][to.index()] else {
            self.at[t][to.index()] = Some(now.to_vec());
            work.push(to);
            return Ok(());
        };
        match self.live[t][to.index()].iter().map(|&r| r as usize).find(|&r| known[r] != now[r]) {
            Some(r) => Err(Misfit::Register(t, r, known[r].max(now[r]))),
            None => Ok(()),
        }
    }

    fn property(&self, property: &Property) -> Result<(), Misfit> {
        let Some(formula) = property.formula() else { return Ok(()) };
        // An observed register must have the same scale at all reachable locations.
        let mut mixed = None;
        formula.for_each_leaf(&mut |observable| {
            if let Observable::Register(t, r) = observable {
                let reached = self.at[t.index()].iter().flatten();
                let scales: BTreeSet<i64> = reached.map(|at| at[r.index()]).collect();
                if let Some(&greatest) = scales.last().filter(|_| scales.len() > 1) {
                    mixed = Some(Misfit::Register(t.index(), r.index(), greatest));
                }
            }
        });
        mixed.map_or(Ok(()), Err)?;
        let of = |observable: &Observable| match observable {
            Observable::At(..) => Some(Kind::Plain(None)),
            Observable::Register(t, r) => Some(Kind::of(self.versions.registers[t.index()][r.index()], None)),
            Observable::Memory(cell) => {
                let variable =
                    self.program.variables.iter().position(|v| v.cells().contains(&(*cell as usize)));
                Some(Kind::of(self.versions.variables[variable?], None))
            }
        };
        match kind(formula, self.signed, &of) {
            Some(Kind::Plain(_)) => Ok(()),
            _ => Err(Misfit::Other("a property computes with versions")),
        }
    }
}

impl Types {
    /// The scale of a register at a location; 0 if it holds no version.
    pub fn scale(&self, thread: usize, location: usize, register: usize) -> i64 {
        self.at[thread][location].as_ref().map_or(0, |at| at[register])
    }
}

/// Renames the versions in packed states.
pub(super) struct Renaming<'a> {
    set: &'a StateSet,
    types: &'a Types,
    /// The scale of each memory cell.
    cells: Vec<i64>,
    fields: Vec<Field>,
    values: Vec<(i64, i64)>,
    order: Vec<i64>,
    image: Vec<u64>,
}

impl<'a> Renaming<'a> {
    pub fn new(program: &Program, set: &'a StateSet, versions: &Versions, types: &'a Types) -> Self {
        let variables = program.variables.iter().zip(&versions.variables);
        let cells = variables.flat_map(|(v, &scale)| v.init.iter().map(move |_| scale)).collect();
        let (fields, values, order, image) = Default::default();
        Renaming { set, types, cells, fields, values, order, image }
    }

    /// Collects all values of a state that contain versions.
    fn collect(&mut self, state: &[u64]) {
        let Renaming { set, types, cells, fields, values, .. } = self;
        let layout = &set.layout;
        fields.clear();
        values.clear();
        let mut add = |scale: i64, field: Field| {
            if scale > 0 {
                fields.push(field);
                values.push((scale, field.get(state)));
            }
        };
        layout.memory.iter().zip(&*cells).for_each(|(&field, &scale)| add(scale, field));
        for (t, live) in set.live.iter().enumerate() {
            let location = layout.locations[t].get(state) as usize;
            for &r in &live[location] {
                add(types.scale(t, location, r as usize), layout.registers[t][r as usize]);
            }
        }
        for buffer in &layout.buffers {
            for (kind, value) in &buffer.entries[..buffer.count.get(state) as usize] {
                let cell = buffer.cells.get(kind.get(state) as usize);
                add(cell.map_or(0, |&cell| cells[cell as usize]), *value);
            }
        }
    }

    /// Whether all versions of a state are even.
    pub fn is_even(&mut self, state: &[u64]) -> bool {
        self.collect(state);
        self.values.iter().all(|(scale, value)| value.div_euclid(*scale) % 2 == 0)
    }

    /// Calls `visit` with the representatives of a successor or initial state; `None` if one of them does not fit the layout.
    pub fn images(&mut self, state: &[u64], initial: bool, visit: &mut impl FnMut(&[u64])) -> Option<()> {
        let places = [Place::Between, Place::Joined];
        for place in places.into_iter().take(if initial { 1 } else { 2 }) {
            self.collect(state);
            if !rename(&mut self.values, place, &mut self.order) {
                continue;
            }
            self.image.clear();
            self.image.extend_from_slice(state);
            for (field, (_, value)) in self.fields.iter().zip(&self.values) {
                field.put(&mut self.image, *value)?;
            }
            visit(&self.image);
        }
        Some(())
    }
}

/// Checks that the versions of a set obey the rules; returns their types.
pub(super) fn check(
    set: &StateSet,
    program: &Program,
    properties: &[Property],
) -> Result<Option<Types>, String> {
    let Some(versions) = &set.versions else { return Ok(None) };
    let types = Types::new(program, properties, &set.live, versions).map_err(|misfit| match misfit {
        Misfit::Variable(v, _) => format!("{} holds versions too", program.variables[v].name),
        Misfit::Register(t, r, _) => {
            let thread = &program.threads[t];
            format!("register {} of {} holds versions too", thread.registers[r].name, thread.name)
        }
        Misfit::Other(why) => why.into(),
    })?;
    versions.check_exchanges(&types, &set.symmetry)?;
    Ok(Some(types))
}
