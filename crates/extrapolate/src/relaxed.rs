//! Extends a proof under SC to TSO or PSO (EXTRA13 s. 2.3, Fig. 2b).
//!
//! 1. *Verify under SC*: predicate abstraction of the program. The initial predicates are those that the file suggests or, if there are none, the
//!    constraints in conditions and properties; interpolants are added. If the file suggests none, predicates that the proof does not need are removed.
//! 2. *Reduce*: the program P_M, whose buffers hold k stores, behaves under SC like the program under the relaxed model.
//! 3. *Extrapolate*: the predicates of the proof, and for cube extrapolation its cubes, are lifted to P_M.
//! 4. *Check*: predicate abstraction of P_M with these predicates. The states are translated into an invariant of the machine with bounded queues,
//!    which is checked like any other.
//!
//! A feasible overflow increases k. A feasible violation is an execution of the program. If the extrapolated predicates are too coarse, the next
//! attempt has more of them ([`ATTEMPTS`]).

use fencewright_memory::{BufferMachine, Buffers, Cell, CellId};
use fencewright_program::{BinaryOp, Expr, MemoryModel, Program, Property, RegisterId};
use fencewright_reduce::{Bounds, Reduced, reduce};
use fencewright_symbolic::cegar::path;
use fencewright_verdict::Reason;

use super::abstraction::{self, Abstraction, Ended, Precision, add};
use super::evidence;
use super::lift::Lift;
use super::program::BooleanProgram;
use super::vector::Literal;
use super::vocabulary::Predicate;
use super::{LARGEST_CUBE, Method, Run};

/// Maximum number of stores in a buffer, unless the options begin with more.
const MOST_STORES: u32 = 8;

/// Number of larger bounds that are tried after a bound with which a spurious path remained. A proof may need a larger bound although no overflow was
/// found with the present one: the array queue (`examples/array-queue.fw`) is proved with 4 stores, while spurious paths hide the overflows with 2
/// and 3.
const MORE_STORES: usize = 2;

/// The result for one bound of the buffers.
enum Bounded {
    /// All open properties were proved, or one was answered by a violation and the task needs no other answers.
    Answered,
    /// A feasible path to a violation; its property was answered.
    Violation,
    /// A feasible path on which a buffer overflows.
    Overflow,
    /// A spurious path that cannot be excluded.
    Stuck(Reason),
    /// The attempt was skipped, because the next attempt tries nearly the same predicates.
    Nothing,
}

/// The parts of a proof under SC used for extrapolation: formulas over the cells of the program.
struct ScProof {
    predicates: Vec<Expr<CellId>>,
    /// Conjunctions of predicates and their negations.
    cubes: Vec<Vec<Expr<CellId>>>,
}

/// Which predicates and cubes are tried. Attempts are made in this order, from coarse to precise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Predicates about buffered values are dropped from cubes (s. 6.3).
    Unbuffered,
    /// All extrapolated predicates and cubes.
    Extrapolated,
    /// The SC predicates are strengthened first (s. 6.3), and buffered values are compared with each other and with memory (rules 4 and 11).
    Strengthened,
    /// Interpolants of spurious paths of `P_M` become predicates, and larger cubes are tried.
    Refined,
}

const ATTEMPTS: [Attempt; 4] =
    [Attempt::Unbuffered, Attempt::Extrapolated, Attempt::Strengthened, Attempt::Refined];

/// With fewer lifted cubes than this, [`Attempt::Unbuffered`] is skipped, so that the first attempt keeps all of them.
const FEW_CUBES: usize = 200;

impl Run<'_> {
    /// Steps 1 to 4, with growing bounds and all attempts.
    pub(super) fn relaxed(&mut self) -> Result<(), Reason> {
        let open = self.open();
        if open.is_empty() {
            return Ok(());
        }
        let properties: Vec<Property> = open.iter().map(|&n| self.task.properties[n].clone()).collect();
        let sc = self.verify_under_sc(&properties)?;
        let mut least = self.options.k;
        let mut stuck = None;
        for attempt in ATTEMPTS {
            let mut k = least;
            let mut tried = 0;
            while k <= MOST_STORES.max(self.options.k) && tried <= MORE_STORES {
                if self.open().is_empty() {
                    return Ok(());
                }
                match self.with_bound(&sc, k, attempt)? {
                    Bounded::Answered => return Ok(()),
                    Bounded::Nothing => break,
                    Bounded::Overflow => least = k + 1,
                    Bounded::Violation => continue,
                    Bounded::Stuck(reason) => {
                        stuck = Some(reason);
                        tried += 1;
                    }
                }
                k += 1;
            }
        }
        let overflow = format!("a buffer holds more than {} stores", MOST_STORES.max(self.options.k));
        Err(stuck.unwrap_or(Reason::Unsupported(overflow, None)))
    }

    /// Step 1. Properties that are violated under SC, or cannot be proved, are dropped from this step. The predicates found for them are kept,
    /// because they may still be useful for `P_M`.
    fn verify_under_sc(&mut self, properties: &[Property]) -> Result<ScProof, Reason> {
        let program = self.task.program;
        let machine = BufferMachine::new(program, Buffers::Sc);
        let mut provable = properties.to_vec();
        let task = self.task.about(program, MemoryModel::Sc, provable.clone());
        let suggested = abstraction::suggested(program, properties, self.limits)?;
        let precision = Precision::under_sc(program);
        let mut sc = Abstraction::new(&machine, &task, suggested, precision, self.limits, self.progress)?;
        let mut proved = false;
        while !provable.is_empty() && !proved {
            match sc.run(&provable)? {
                Ended::Proved(..) => proved = true,
                Ended::Violated(n, _) | Ended::Stuck(Some(n), _) => _ = provable.remove(n),
                Ended::Stuck(None, _) => break,
            }
        }
        let mut cubes = Vec::new();
        if proved {
            if program.hints.predicates.is_empty() {
                sc.minimise(&provable)?;
            }
            let (boolean, _) = sc.check(&provable, sc.predicates.clone())?;
            cubes = used_cubes(&boolean);
        }
        self.account(None, &sc.effort);
        let predicates = sc.predicates.iter().map(|predicate| predicate.formula().clone()).collect();
        Ok(ScProof { predicates, cubes })
    }

    /// Steps 2 to 4 with buffers of k stores.
    fn with_bound(&mut self, sc: &ScProof, k: u32, attempt: Attempt) -> Result<Bounded, Reason> {
        let program = self.task.program;
        let bounds = Bounds::uniform(program, self.task.model, k);
        let reduced = reduce(program, self.task.model, &bounds)
            .map_err(|unsupported| Reason::Unsupported(unsupported.why, unsupported.span))?;
        let lift = Lift::new(program, &reduced);
        let machine = BufferMachine::new(&reduced.program, Buffers::Sc);
        let open = self.open();
        let Some(predicates) = self.extrapolated(sc, &lift, attempt) else { return Ok(Bounded::Nothing) };
        let mut properties: Vec<Property> =
            open.iter().map(|&n| reduced.property(&self.task.properties[n])).collect();
        properties.extend(reduced.may_overflow().then(|| reduced.overflow_property()));
        let task = self.task.about(&reduced.program, MemoryModel::Sc, properties.clone());
        let refined = attempt == Attempt::Refined;
        let most = match self.options.method {
            _ if refined => LARGEST_CUBE,
            Method::Predicates => 2,
            Method::Cubes => 1,
        };
        let precision = Precision { cube_size: 1, cubes_first: 1, most, refined };
        let mut abstraction =
            Abstraction::new(&machine, &task, predicates, precision, self.limits, self.progress)?;
        abstraction.kept = buffer_cells(&reduced, &machine);
        let ended = abstraction.run(&properties)?;
        self.account(Some((k, attempt)), &abstraction.effort);
        Ok(match ended {
            Ended::Proved(boolean, states) => {
                self.emit(&machine, &boolean);
                let states = self.cubes(&boolean, &states)?;
                let names = open.iter().map(|&n| self.task.properties[n].name.clone()).collect();
                let invariant = evidence::invariant(program, &reduced, names, &states, self.limits)?;
                self.prove(&open, invariant);
                Bounded::Answered
            }
            Ended::Violated(n, _) if n == open.len() => Bounded::Overflow,
            Ended::Violated(n, path) => {
                let trace = path::execution(&task, &path, &properties[n], self.limits);
                let trace = trace.and_then(|trace| reduced.trace(program, &trace));
                self.violate(open[n], trace);
                if self.task.first_violation { Bounded::Answered } else { Bounded::Violation }
            }
            Ended::Stuck(_, reason) => Bounded::Stuck(reason),
        })
    }

    /// Step 3; `None` if the attempt is skipped. `Attempt::Unbuffered` is skipped if no cubes are extrapolated, or only few.
    fn extrapolated(&self, sc: &ScProof, lift: &Lift<'_>, attempt: Attempt) -> Option<Vec<Predicate>> {
        let strengthened = attempt == Attempt::Strengthened;
        let mut strong = sc.predicates.clone();
        if strengthened {
            strong.extend(sc.predicates.iter().filter_map(Predicate::new).flat_map(|p| neighbours(&p)));
        }
        let mut formulas = lift.predicates(&strong, strengthened);
        if self.options.method == Method::Cubes {
            let cubes: Vec<Expr<CellId>> = sc.cubes.iter().map(|cube| Expr::all(cube.clone())).collect();
            let lifted: Vec<Expr<CellId>> = cubes.iter().flat_map(|cube| lift.lifted(cube)).collect();
            if attempt == Attempt::Unbuffered && lifted.len() < FEW_CUBES {
                return None;
            }
            let parts = |cube: Expr<CellId>| Expr::all(lift.unbuffered(conjuncts(cube)));
            match attempt {
                Attempt::Unbuffered => formulas.extend(lifted.into_iter().map(parts)),
                _ => formulas.extend(lifted),
            }
        } else if attempt == Attempt::Unbuffered {
            return None;
        }
        let mut predicates = Vec::new();
        formulas.iter().filter_map(Predicate::new).for_each(|predicate| add(&mut predicates, predicate));
        Some(predicates)
    }
}

/// The conjuncts of nested conjunctions.
fn conjuncts(e: Expr<CellId>) -> Vec<Expr<CellId>> {
    match e {
        Expr::Binary(BinaryOp::And, left, right) => [conjuncts(*left), conjuncts(*right)].concat(),
        part => vec![part],
    }
}

/// Those cubes of a boolean program that have at least two literals, as lists of formulas.
fn used_cubes(program: &BooleanProgram) -> Vec<Vec<Expr<CellId>>> {
    let formula = |literal: &Literal| {
        let formula = program.vocabulary.predicates()[literal.predicate()].formula().clone();
        if literal.holds() { formula } else { formula.not() }
    };
    let cubes = program.cubes();
    cubes.iter().filter(|cube| cube.len() > 1).map(|cube| cube.iter().map(formula).collect()).collect()
}

/// The constraints of a predicate and its negation, with their constants increased and decreased by one: `x <= y` for `x < y`.
fn neighbours(predicate: &Predicate) -> Vec<Expr<CellId>> {
    let forms = [true, false].into_iter().flat_map(|holds| predicate.cases(holds)).flatten();
    let near = forms.flat_map(|form| {
        [-1, 1].map(|by| {
            let mut form = form.clone();
            form.constant = form.constant.saturating_add(by);
            form
        })
    });
    near.filter_map(|form| Predicate::at_most(&form)).map(|predicate| predicate.formula().clone()).collect()
}

/// The cells that encode buffers. A certificate must constrain them in every state.
fn buffer_cells(reduced: &Reduced, machine: &BufferMachine<'_>) -> Vec<CellId> {
    let program: &Program = &reduced.program;
    let new = program.threads().flat_map(|(t, code)| {
        let registers = reduced.original_registers(t)..code.registers.len();
        registers.map(move |r| Cell::Register(t, RegisterId(r as u32)))
    });
    let mut cells: Vec<CellId> = new.map(|cell| machine.cells.id(cell)).collect();
    cells.sort_unstable();
    cells
}
