//! The checker: accepts a certificate only if it proves what it claims.
//!
//! Three things are checked, for the machine that the certificate names and the program that is given:
//!
//! 1. the initial control state is in the certificate, and the initial values satisfy its invariant;
//! 2. every step of the machine from every control state in the certificate, taken from values that satisfy its invariant, is
//!    impossible or leads to a control state in the certificate with values that satisfy that one's invariant; no possible step leaves what the
//!    machine represents;
//! 3. no control state in the certificate has values that satisfy its invariant and violate a property.
//!
//! Then everything reachable is in the certificate (induction on the number of steps), and nothing forbidden is. Commands are
//! executed symbolically: every cell is a linear form over the values before the step, so each condition is a set of
//! constraints that must entail another constraint. Difference constraints are decided by shortest paths; anything else by a
//! refutation from the solver, which is verified here.

use std::collections::HashMap;
use std::fmt;

use fencewright_memory::linear::{Cube, Simple, ways};
use fencewright_memory::{CellId, Command, Control, Linear, Machine, Outcome, Step};
use fencewright_program::{Program, Property};

use crate::certificate::{Certificate, FORMAT, MachineName, VERSION, fingerprint};
use crate::difference::Paths;
use crate::linear_solver;

/// A machine that keeps more stores than this in order is an attack, not a proof.
const MOST_KEPT: u32 = 64;

/// Why a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is not a certificate this checker knows.
    Format(String),
    /// It is about another program.
    Program,
    /// It is about a property that the program does not have, or that no certificate of this kind can show.
    Property(String),
    /// It has a control state that no machine of this program has, or has it twice, or a cell that does not exist.
    State(usize),
    /// It does not cover the start.
    Start,
    /// A step leads out of it.
    Step(usize, String),
    /// A forbidden state is in it.
    Forbidden(usize, String),
    /// The checker was asked to stop.
    Stopped,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Format(what) => write!(f, "not a certificate: {what}"),
            Rejection::Program => write!(f, "the certificate is about another program"),
            Rejection::Property(name) => write!(f, "the certificate cannot be about the property `{name}`"),
            Rejection::State(n) => write!(f, "state {n} of the certificate is not a state of the machine"),
            Rejection::Start => write!(f, "the initial state is not covered"),
            Rejection::Step(n, step) => write!(f, "state {n} of the certificate is left by {step}"),
            Rejection::Forbidden(n, name) => write!(f, "state {n} of the certificate violates `{name}`"),
            Rejection::Stopped => write!(f, "stopped"),
        }
    }
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Control states.
    pub controls: usize,
    /// Cubes of all invariants.
    pub cubes: usize,
    /// Steps of the machine.
    pub steps: usize,
}

/// Checks a certificate against a program; `stop` is asked now and then whether to give up.
pub fn check(
    certificate: &Certificate,
    program: &Program,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Accepted, Rejection> {
    if certificate.format != FORMAT || certificate.version != VERSION {
        let what = format!("format `{}` version {}", certificate.format, certificate.version);
        return Err(Rejection::Format(what));
    }
    if certificate.program != fingerprint(program) {
        return Err(Rejection::Program);
    }
    if program.has_real_choices() {
        return Err(Rejection::Format("invariants over real numbers are not supported".into()));
    }
    let kept = match certificate.machine {
        MachineName::Sc => 0,
        MachineName::Queue { bound, .. } => bound,
        MachineName::Partial { k, .. } => k,
    };
    if kept > MOST_KEPT {
        return Err(Rejection::Format(format!("no machine keeps {kept} stores in order")));
    }
    let machine = Machine::new(program, certificate.machine.buffers());
    let properties = certificate
        .properties
        .iter()
        .map(|name| {
            let found = program.properties.iter().find(|p| p.name == *name);
            let provable = found.filter(|p| machine.violation(&machine.initial(), p).is_some());
            provable.cloned().ok_or_else(|| Rejection::Property(name.clone()))
        })
        .collect::<Result<Vec<Property>, Rejection>>()?;
    let checker = Checker::new(&machine, certificate)?;
    checker.start()?;
    let mut accepted = Accepted { controls: checker.states.len(), ..Accepted::default() };
    for n in 0..checker.states.len() {
        if stop() {
            return Err(Rejection::Stopped);
        }
        accepted.cubes += checker.states[n].cubes.len();
        accepted.steps += checker.closed(n)?;
        checker.allowed(n, &properties)?;
    }
    Ok(accepted)
}

struct Checker<'a> {
    machine: &'a Machine<'a>,
    states: Vec<Invariant>,
    numbers: HashMap<Control, usize>,
}

struct Invariant {
    control: Control,
    cubes: Vec<Cube>,
}

/// One way through some commands: the value of each changed cell, over the values before, and what was assumed.
#[derive(Clone, Default)]
struct Way {
    values: HashMap<CellId, Linear>,
    assumed: Cube,
}

impl<'a> Checker<'a> {
    fn new(machine: &'a Machine<'a>, certificate: &Certificate) -> Result<Self, Rejection> {
        let mut numbers = HashMap::new();
        let mut states = Vec::with_capacity(certificate.states.len());
        for (n, state) in certificate.states.iter().enumerate() {
            let invariant = Invariant { control: state.control(), cubes: state.cubes() };
            let cells_exist =
                invariant.cubes.iter().flatten().all(|linear| is_normal(linear, machine.cells.len()));
            if !is_well_formed(machine, &invariant.control) || !cells_exist {
                return Err(Rejection::State(n));
            }
            if numbers.insert(invariant.control.clone(), n).is_some() {
                return Err(Rejection::State(n));
            }
            states.push(invariant);
        }
        Ok(Checker { machine, states, numbers })
    }

    /// Condition 1.
    fn start(&self) -> Result<(), Rejection> {
        let target = self.numbers.get(&self.machine.initial()).ok_or(Rejection::Start)?;
        let mut index = Index::default();
        let ways = self.prepared(&self.machine.initial_values(), Some(*target), &mut index);
        let nothing = index.paths(&[]);
        let covered = ways.iter().all(|way| self.covered(&nothing, &[], way, Some(*target)));
        covered.then_some(()).ok_or(Rejection::Start)
    }

    /// Condition 2 for one state: how many steps were checked.
    fn closed(&self, n: usize) -> Result<usize, Rejection> {
        let steps = self.machine.steps(&self.states[n].control);
        let mut index = Index::default();
        let prepare = |step: &Step| {
            let target = match &step.outcome {
                Outcome::Control(next) => self.numbers.get(next).copied(),
                Outcome::Beyond(..) => None,
            };
            (target, self.prepared(&step.commands, target, &mut index))
        };
        let prepared: Vec<(Option<usize>, Vec<PreparedWay>)> = steps.iter().map(prepare).collect();
        for cube in &self.states[n].cubes {
            let paths = index.paths(cube);
            for (step, (target, ways)) in steps.iter().zip(&prepared) {
                if !ways.iter().all(|way| self.covered(&paths, cube, way, *target)) {
                    return Err(Rejection::Step(n, self.describe(step)));
                }
            }
        }
        Ok(steps.len())
    }

    /// Condition 3 for one state.
    fn allowed(&self, n: usize, properties: &[Property]) -> Result<(), Rejection> {
        for property in properties {
            let violation = self.machine.violation(&self.states[n].control, property);
            let forbidden = || Rejection::Forbidden(n, property.name.clone());
            let violation = violation.ok_or_else(forbidden)?;
            if violation.constant() == Some(0) {
                continue;
            }
            let mut index = Index::default();
            let ways = self.prepared(&[Command::Assume(violation)], None, &mut index);
            for cube in &self.states[n].cubes {
                let paths = index.paths(cube);
                if !ways.iter().all(|way| self.covered(&paths, cube, way, None)) {
                    return Err(forbidden());
                }
            }
        }
        Ok(())
    }

    /// All ways through some commands, executed symbolically, with the invariant of the target written in terms of the values
    /// before the commands.
    fn prepared(&self, commands: &[Command], target: Option<usize>, index: &mut Index) -> Vec<PreparedWay> {
        // Values that nothing is known about are variables of their own, numbered after the cells.
        let mut unknown = self.machine.cells.len() as CellId;
        let mut execute = |simple: Vec<Simple>| {
            let mut way = Way::default();
            for command in simple {
                match command {
                    // A constraint that does not fit machine integers is left out: the way is then more possible.
                    Simple::AtMost(linear) => way.assumed.extend(linear.substituted(&|c| way.value(c))),
                    Simple::Assign(cell, value) => {
                        let value = value.and_then(|v| v.substituted(&|c| way.value(c)));
                        let value = value.unwrap_or_else(|| {
                            unknown += 1;
                            Linear::cell(unknown - 1)
                        });
                        way.values.insert(cell, value);
                    }
                }
            }
            let after = |linear: &Linear| linear.substituted(&|c| way.value(c));
            let cubes = target.map_or(&[][..], |t| &self.states[t].cubes);
            let cubes: Vec<Cube> = cubes.iter().filter_map(|cube| cube.iter().map(after).collect()).collect();
            PreparedWay {
                assumed: way.assumed.iter().map(|l| index.difference(l)).collect(),
                wanted: cubes.iter().map(|cube| cube.iter().map(|l| index.difference(l)).collect()).collect(),
                assumptions: way.assumed,
                cubes,
            }
        };
        ways(commands).into_iter().map(&mut execute).collect()
    }

    /// Whether, starting from `cube`, this way is impossible or leads only to values that satisfy the invariant of the target;
    /// without a target it must be impossible.
    fn covered(&self, paths: &Paths, cube: &[Linear], way: &PreparedWay, target: Option<usize>) -> bool {
        let extended = (!way.assumed.is_empty()).then(|| {
            let mut paths = paths.clone();
            way.assumed.iter().flatten().for_each(|d| paths.add(d.x, d.y, d.c));
            paths
        });
        let paths = extended.as_ref().unwrap_or(paths);
        let holds = |d: &Option<Difference>| {
            d.as_ref().is_some_and(|d| paths.bound(d.x, d.y).is_some_and(|bound| bound <= d.c))
        };
        if paths.contradictory() || way.wanted.iter().any(|cube| cube.iter().all(holds)) {
            return true;
        }
        let known: Cube = cube.iter().chain(&way.assumptions).cloned().collect();
        linear_solver::entails_some(&known, if target.is_some() { &way.cubes } else { &[] })
    }

    fn describe(&self, step: &Step) -> String {
        let thread = &self.machine.program.thread(step.thread).name;
        match (step.edge, step.flushed) {
            (Some(edge), _) => format!("edge {} of {thread}", edge.0),
            (None, Some(cell)) => format!("a flush of {} by {thread}", self.machine.program.cell_name(cell)),
            (None, None) => format!("a step of {thread}"),
        }
    }
}

impl Way {
    fn value(&self, cell: CellId) -> Linear {
        self.values.get(&cell).cloned().unwrap_or_else(|| Linear::cell(cell))
    }
}

/// `x - y <= c`, for variables of [`Paths`].
#[derive(Clone, Copy)]
struct Difference {
    x: usize,
    y: usize,
    c: i64,
}

/// One way through some commands, prepared to be checked from many cubes. A constraint that is not a difference is nothing here.
struct PreparedWay {
    assumptions: Cube,
    assumed: Vec<Option<Difference>>,
    /// The invariant of the target in terms of the values before: as it is, and as differences.
    cubes: Vec<Cube>,
    wanted: Vec<Vec<Option<Difference>>>,
}

/// The variables of [`Paths`]: cells in the order in which they are met.
#[derive(Default)]
struct Index {
    positions: HashMap<CellId, usize>,
}

impl Index {
    fn position(&mut self, cell: CellId) -> usize {
        let next = self.positions.len() + 1;
        *self.positions.entry(cell).or_insert(next)
    }

    /// A constraint as a difference, if it is one.
    fn difference(&mut self, linear: &Linear) -> Option<Difference> {
        let c = linear.constant.checked_neg()?;
        let (x, y) = match *linear.terms.as_slice() {
            [] => (0, 0),
            [(x, 1)] => (self.position(x), 0),
            [(x, -1)] => (0, self.position(x)),
            [(x, 1), (y, -1)] | [(y, -1), (x, 1)] => (self.position(x), self.position(y)),
            _ => return None,
        };
        Some(Difference { x, y, c })
    }

    /// What follows from the differences in a cube. Cells that nothing else mentions get positions of their own.
    fn paths(&self, cube: &[Linear]) -> Paths {
        let mut own = Index { positions: self.positions.clone() };
        let found: Vec<Difference> = cube.iter().filter_map(|linear| own.difference(linear)).collect();
        let mut paths = Paths::new(own.positions.len() + 1);
        found.iter().for_each(|d| paths.add(d.x, d.y, d.c));
        paths
    }
}

/// Whether a linear form is written as forms are: existing cells, in order, with coefficients other than 0.
fn is_normal(linear: &Linear, cells: usize) -> bool {
    linear.terms.windows(2).all(|w| w[0].0 < w[1].0)
        && linear.terms.iter().all(|&(cell, c)| (cell as usize) < cells && c != 0)
}

/// Whether a control state has the form of one of this machine.
fn is_well_formed(machine: &Machine<'_>, control: &Control) -> bool {
    let initial = machine.initial();
    let threads = &machine.program.threads;
    let locations = control.locations.len() == threads.len()
        && control.locations.iter().zip(threads).all(|(l, t)| l.index() < t.locations.len());
    let positions = machine.buffers.positions(machine.program.cells()) as usize;
    let cell_exists = |cell: u32| (cell as usize) < machine.program.cells();
    let buffers = control.buffers.len() == initial.buffers.len()
        && control.buffers.iter().all(|b| {
            b.queue.len() <= positions
                && b.set.windows(2).all(|w| w[0] < w[1])
                && b.set.iter().all(|&c| cell_exists(c))
                && b.queue.iter().all(|e| match e {
                    fencewright_memory::Entry::Store(c) => cell_exists(*c),
                    fencewright_memory::Entry::Barrier => true,
                })
        });
    locations && buffers && control.lock.is_none_or(|t| t.index() < threads.len())
}
