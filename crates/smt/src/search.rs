//! Case splitting over a procedure for conjunctions.
//!
//! Disjunctions and disequalities are left pending until the procedure's current assignment violates one; then its cases are tried in order. If
//! several are violated, the one with the fewest cases left open by known bounds is split, so a split with a single open case acts like unit
//! propagation. Each refuted case yields a proof. A proof that does not use the facts of its case is also a refutation without the split, which is
//! then dropped (backjumping).

use crate::formula::Formula;
use crate::proof::{Branch, Fact, Proof, Step, cases, conjuncts, cut_cases};
use crate::solver::{Meter, Model, Reason};
use crate::term::{Linear, Relation, Var};
use crate::theory::{Status, Theory};
use std::cmp::Ordering;

/// The result of a search.
pub(crate) enum Outcome {
    Sat(Model),
    Unsat(Proof),
}

/// A fact that may have to be split.
struct Pending {
    fact: Fact,
    formula: Formula,
    split: bool,
}

/// The origin of the cases of a split.
enum Origin {
    /// A fact, with its position among the pending facts.
    Fact(Fact, usize),
    /// An integer term.
    Term(Linear),
}

/// A split in progress.
struct Frame {
    origin: Origin,
    cases: Vec<Formula>,
    /// The cases refuted so far, each as a branch of the proof.
    branches: Vec<Branch>,
    /// The first fact of the current case.
    first: Fact,
    /// Facts from outside the current case that the refutations of this split use.
    used: Vec<Fact>,
    theory_mark: usize,
    pending_mark: usize,
}

/// A refutation of the current case: the position of its last step and the facts it uses.
struct Refuted {
    step: usize,
    used: Vec<Fact>,
}

/// The next action when the atoms of the current case are satisfiable.
enum Choice {
    Satisfied,
    Split(usize),
    Cut(Linear),
    Conflict(Step),
}

struct Search<'a, T> {
    theory: &'a mut T,
    pending: Vec<Pending>,
    frames: Vec<Frame>,
    steps: Vec<Step>,
    next_fact: Fact,
}

/// Decides assertions over the given variables.
pub(crate) fn search<T: Theory>(
    theory: &mut T,
    assertions: &[Formula],
    variables: &[Var],
    meter: &mut Meter<'_>,
) -> Result<Outcome, Reason> {
    let mut search =
        Search { theory, pending: Vec::new(), frames: Vec::new(), steps: Vec::new(), next_fact: 0 };
    // After a contradiction the remaining assertions are not added. Facts are numbered in the order of the assertions, so the facts that the proof
    // uses have the same numbers as if all assertions had been added.
    let mut conflict = None;
    for assertion in assertions {
        conflict = conflict.or(search.assume(assertion)?);
        if conflict.is_some() {
            break;
        }
    }
    loop {
        let choice = match conflict.take() {
            Some(step) => Choice::Conflict(step),
            None => search.choose(meter)?,
        };
        let (origin, cases) = match choice {
            Choice::Satisfied => {
                let value = |var: &Var| (*var, search.theory.value(*var));
                return Ok(Outcome::Sat(Model::new(variables.iter().map(value).collect())));
            }
            Choice::Conflict(step) => {
                let refuted = search.refuted(step);
                match search.backtrack(refuted, meter)? {
                    Ok(next) => conflict = next,
                    Err(proof) => return Ok(Outcome::Unsat(proof)),
                }
                continue;
            }
            Choice::Split(position) => {
                let pending = &mut search.pending[position];
                pending.split = true;
                (Origin::Fact(pending.fact, position), cases(&pending.formula).unwrap_or_default())
            }
            Choice::Cut(term) => {
                let cases = cut_cases(&term).to_vec();
                (Origin::Term(term), cases)
            }
        };
        search.frames.push(Frame {
            origin,
            cases,
            branches: Vec::new(),
            first: 0,
            used: Vec::new(),
            theory_mark: search.theory.mark(),
            pending_mark: search.pending.len(),
        });
        conflict = search.enter_next_case(meter)?;
    }
}

impl<T: Theory> Search<'_, T> {
    /// Adds a formula to the facts. If the facts are then immediately contradictory, returns the refuting step.
    fn assume(&mut self, formula: &Formula) -> Result<Option<Step>, Reason> {
        let facts = conjuncts(formula);
        let first = self.next_fact;
        // Fact numbers are never reused; a problem that needs more than four billion of them is out of reach anyway.
        let count = u32::try_from(facts.len()).ok();
        self.next_fact = count.and_then(|count| first.checked_add(count)).ok_or(Reason::Steps)?;
        for (fact, formula) in (first..).zip(facts) {
            match formula {
                Formula::True => {}
                Formula::False => return Ok(Some(Step::Split { fact, branches: Vec::new() })),
                Formula::Atom(atom) if atom.relation() != Relation::Ne => {
                    if let Err(sum) = self.theory.assert(atom, fact) {
                        return Ok(Some(Step::Farkas(sum)));
                    }
                }
                // `Formula::And` is listed only to make the match exhaustive: `Formula::and` flattens, so no conjunct is a conjunction.
                Formula::Atom(_) | Formula::Or(_) | Formula::And(_) => {
                    self.pending.push(Pending { fact, formula: formula.clone(), split: false });
                }
            }
        }
        Ok(None)
    }

    /// Checks the asserted atoms; if there is no conflict, chooses a fact to split or a term to cut at, if one is left.
    fn choose(&mut self, meter: &mut Meter<'_>) -> Result<Choice, Reason> {
        if let Status::Conflict(step) = self.theory.check(false, meter)? {
            return Ok(Choice::Conflict(step));
        }
        let mut best: Option<(usize, usize)> = None;
        for (position, pending) in self.pending.iter().enumerate() {
            if pending.split || self.holds_now(&pending.formula) {
                continue;
            }
            let open = self.open_cases(&pending.formula);
            if best.is_none_or(|(fewest, _)| open < fewest) {
                best = Some((open, position));
                if open <= 1 {
                    break;
                }
            }
        }
        if let Some((_, position)) = best {
            return Ok(Choice::Split(position));
        }
        Ok(match self.theory.check(true, meter)? {
            Status::Consistent => Choice::Satisfied,
            Status::Conflict(step) => Choice::Conflict(step),
            Status::Cut(term) => match self.straddled() {
                Some(position) => Choice::Split(position),
                None => Choice::Cut(term),
            },
        })
    }

    /// The position of a disequality `t != 0` where t lies strictly between -1 and 1: splitting it into `t <= -1` and `t >= 1` excludes this
    /// fractional value as well.
    fn straddled(&self) -> Option<usize> {
        self.pending.iter().position(|pending| match &pending.formula {
            Formula::Atom(atom) if !pending.split => {
                self.theory.compare(&atom.linear().clone().plus(1)) == Ordering::Greater
                    && self.theory.compare(&atom.linear().clone().plus(-1)) == Ordering::Less
                    && self.theory.compare(atom.linear()) != Ordering::Equal
            }
            _ => false,
        })
    }

    fn holds_now(&self, formula: &Formula) -> bool {
        formula.decide(&mut |atom| {
            let order = self.theory.compare(atom.linear());
            match atom.relation() {
                Relation::Le => order != Ordering::Greater,
                Relation::Eq => order == Ordering::Equal,
                Relation::Ne => order != Ordering::Equal,
            }
        })
    }

    /// The number of cases that are not obviously contradictory.
    fn open_cases(&self, formula: &Formula) -> usize {
        let refuted = |part: &Formula| matches!(part, Formula::Atom(atom) if self.theory.refutes(atom));
        match formula {
            Formula::Or(parts) => parts.iter().filter(|part| !conjuncts(part).iter().any(refuted)).count(),
            other if refuted(other) => 0,
            _ => 2,
        }
    }

    /// Records a step that refutes the current case.
    fn refuted(&mut self, step: Step) -> Refuted {
        let used = match &step {
            Step::Farkas(sum) | Step::Gcd(sum) => sum.iter().map(|(fact, _)| *fact).collect(),
            Step::Split { fact, .. } => vec![*fact],
            Step::Cut { .. } => Vec::new(),
        };
        self.steps.push(step);
        Refuted { step: self.steps.len() - 1, used }
    }

    /// Backtracks to the innermost split with a case left, and enters that case. The inner `Ok` is the step that refutes this case if it is
    /// immediately contradictory; the inner `Err` is the whole proof, if no split has a case left.
    fn backtrack(
        &mut self,
        mut refuted: Refuted,
        meter: &mut Meter<'_>,
    ) -> Result<Result<Option<Step>, Proof>, Reason> {
        loop {
            let Some(mut frame) = self.frames.pop() else {
                return Ok(Err(Proof { steps: compact(std::mem::take(&mut self.steps), refuted.step) }));
            };
            self.theory.undo(frame.theory_mark);
            self.pending.truncate(frame.pending_mark);
            // Facts are numbered in the order in which they are added, so those from `frame.first` on belong to this case. A
            // refutation that uses none of them does not need the split.
            let outside = refuted.used.len();
            refuted.used.retain(|fact| *fact < frame.first);
            if refuted.used.len() == outside {
                self.reopen(&frame);
                continue;
            }
            frame.branches.push(Branch { first: frame.first, step: refuted.step });
            frame.used.append(&mut refuted.used);
            if frame.branches.len() < frame.cases.len() {
                self.frames.push(frame);
                return self.enter_next_case(meter).map(Ok);
            }
            self.reopen(&frame);
            let mut used = frame.used;
            let step = match frame.origin {
                Origin::Fact(fact, _) => {
                    used.push(fact);
                    Step::Split { fact, branches: frame.branches }
                }
                Origin::Term(term) => match <[Branch; 2]>::try_from(frame.branches) {
                    Ok(branches) => Step::Cut { term: (&term).into(), branches },
                    Err(_) => return Err(Reason::Steps),
                },
            };
            used.sort_unstable();
            used.dedup();
            self.steps.push(step);
            refuted = Refuted { step: self.steps.len() - 1, used };
        }
    }

    /// Allows the fact of a finished frame to be split again.
    fn reopen(&mut self, frame: &Frame) {
        if let Origin::Fact(_, position) = frame.origin {
            self.pending[position].split = false;
        }
    }

    fn enter_next_case(&mut self, meter: &mut Meter<'_>) -> Result<Option<Step>, Reason> {
        meter.spend()?;
        let first = self.next_fact;
        let Some(frame) = self.frames.last_mut() else { return Ok(None) };
        frame.first = first;
        let case = frame.cases[frame.branches.len()].clone();
        self.assume(&case)
    }
}

/// Keeps only the steps that the conclusion uses, in order.
fn compact(mut steps: Vec<Step>, conclusion: usize) -> Vec<Step> {
    let mut needed = vec![false; conclusion + 1];
    needed[conclusion] = true;
    for position in (0..=conclusion).rev() {
        if needed[position] {
            branches(&mut steps[position]).iter().for_each(|branch| needed[branch.step] = true);
        }
    }
    let mut places = vec![0; conclusion + 1];
    let mut kept = Vec::new();
    for (position, mut step) in steps.into_iter().enumerate().take(conclusion + 1) {
        if needed[position] {
            branches(&mut step).iter_mut().for_each(|branch| branch.step = places[branch.step]);
            places[position] = kept.len();
            kept.push(step);
        }
    }
    kept
}

fn branches(step: &mut Step) -> &mut [Branch] {
    match step {
        Step::Farkas(_) | Step::Gcd(_) => &mut [],
        Step::Split { branches, .. } => branches,
        Step::Cut { branches, .. } => branches,
    }
}
