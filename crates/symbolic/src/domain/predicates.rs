//! Domain `predicates`: conjunctions over a vocabulary of predicates and predicate templates (FENCES12 s. 5.4 and s. 8).
//!
//! A template is the shape of a linear predicate, such as `_ - _ + 1 <= 0`. In a control state it stands for all its instances over live cells
//! ("parameterized predicates"). A state is the set of those predicates that hold. The abstract post of a step keeps every predicate that is entailed
//! by the predicates before the step and the assumptions of the step. To check this entailment, the values after the step are expressed in terms of
//! those before. Difference constraints are decided by shortest paths, which are computed once for each state and step; all others by the solver,
//! with a cache.
//!
//! A predicate about a summary cell ([`Cells`](fencewright_memory::Cells)) holds for every value that the cell stands for. After a step the cell
//! stands for its old values and for the values folded into it, so the predicate must be entailed for each of them. A copy (`Expand`) is a variable
//! of its own, for which every predicate about the summary cell holds.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use fencewright_memory::linear::{Constraint, Cube, Simple, ways};
use fencewright_memory::{CellId, Command, Linear};
use fencewright_smt::{Answer, Budget, Formula, Native, Solver, Var};
use fencewright_verdict::Reason;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use super::bounds::{MOST, NONE, bound, close};
use super::{Domain, Live, SpuriousPath};

/// The shape of a predicate: the coefficients of its cells, and a constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Template {
    coefficients: Vec<i64>,
    constant: i64,
}

impl Template {
    /// The shape of a predicate `linear <= 0`.
    pub fn of(linear: &Linear) -> Self {
        let mut coefficients: Vec<i64> = linear.terms.iter().map(|(_, c)| *c).collect();
        coefficients.sort_unstable();
        Template { coefficients, constant: linear.constant }
    }

    /// The instances of the template over different live cells.
    fn instances(&self, live: &Live, out: &mut BTreeSet<Linear>) {
        // Templates with more cells have too many instances to be useful.
        const MOST_PLACES: usize = 3;
        const MOST_INSTANCES: usize = 10_000;
        let places = self.coefficients.len();
        let instances = (0..places).fold(1usize, |n, used| n.saturating_mul(live.len().saturating_sub(used)));
        if places == 0 || places > MOST_PLACES || instances > MOST_INSTANCES {
            return;
        }
        let mut partial: Vec<Vec<CellId>> = vec![Vec::new()];
        for _ in &self.coefficients {
            partial = partial
                .into_iter()
                .flat_map(|cells| {
                    let free: Vec<CellId> = live.iter().copied().filter(|c| !cells.contains(c)).collect();
                    free.into_iter().map(move |c| [cells.as_slice(), &[c]].concat())
                })
                .collect();
        }
        for cells in partial {
            let mut terms: Vec<(CellId, i64)> =
                cells.into_iter().zip(self.coefficients.iter().copied()).collect();
            terms.sort_unstable();
            out.insert(Linear { terms, constant: self.constant });
        }
    }
}

/// Domain `predicates`: a state is the set of predicates that hold.
#[derive(Debug, Default)]
pub struct Predicates {
    templates: BTreeSet<Template>,
    /// Whether templates are never added.
    fixed: bool,
    /// Cached answers of the solver to `Question`s.
    cache: RefCell<FxHashMap<Question, bool>>,
    /// Cached vocabularies, one for each set of live cells. There are few such sets, and many steps share each.
    vocabularies: RefCell<FxHashMap<Box<Live>, Arc<Vocabulary>>>,
    /// The budget of the solver per query.
    budget: Budget,
}

/// Maximum number of cached answers of the solver; the cache is cleared when it is full.
const MOST_REMEMBERED: usize = 200_000;

/// Maximum product of the number of cached vocabularies and the size of the newest one; beyond it, the cache is cleared.
const MOST_PREDICATES: usize = 1_000_000;

/// The predicates over one set of live cells, in a fixed order.
#[derive(Debug)]
struct Vocabulary {
    linear: Vec<Linear>,
    /// The same predicates in the same order, as entries of a matrix if they are differences.
    bounds: Vec<Predicate>,
    /// The variables of the matrix: index i + 1 of the matrix is variable i of this list, and index 0 is the constant 0.
    variables: Vec<CellId>,
}

/// A query: do the constraints entail the conclusion? Without a conclusion: do they contradict each other?
type Question = (Vec<Linear>, Option<Linear>);

/// The predicates that hold, by their positions in the vocabulary of the live cells.
pub type Known = FixedBitSet;

/// A step prepared for predicates.
pub struct PredicateTransition {
    /// The vocabulary before the step. Its variables are the first ones of the matrix.
    before: Arc<Vocabulary>,
    /// The dimension of the matrix: the number of cells that some branch mentions, plus 1.
    size: usize,
    ways: Vec<Prepared>,
    after: usize,
}

/// A predicate in the form that steps need.
#[derive(Clone, Debug)]
enum Predicate {
    /// Variable i minus variable j is at most the constant.
    Difference(usize, usize, i32),
    /// Any other linear constraint; the solver handles it.
    General(Linear),
    /// A constraint without cells, which is true or false.
    Constant(bool),
    /// A conjunction: the instances of a predicate for all values that its summary cells may stand for.
    All(Vec<Predicate>),
}

/// One branch through the commands of a step: its assumptions, and each predicate after it in terms of the values before.
struct Prepared {
    assumed: Vec<Predicate>,
    assumptions: Vec<Linear>,
    /// The predicates about summary cells, applied to copies of their values: the index of such a predicate before the step, and the predicate with
    /// the copy in place of the summary cell, as an entry of the matrix and as a linear form.
    copied: Vec<(usize, Predicate, Linear)>,
    wanted: Vec<Predicate>,
}

impl Predicates {
    /// The domain with these templates; `fixed` if none may be added.
    pub fn new(templates: BTreeSet<Template>, fixed: bool, budget: Budget) -> Self {
        Predicates { templates, fixed, budget, ..Predicates::default() }
    }

    /// The vocabulary over these cells, from the cache if possible.
    fn vocabulary(&self, live: &Live) -> Arc<Vocabulary> {
        let mut known = self.vocabularies.borrow_mut();
        if let Some(vocabulary) = known.get(live) {
            return vocabulary.clone();
        }
        let mut all = BTreeSet::new();
        self.templates.iter().for_each(|template| template.instances(live, &mut all));
        let linear: Vec<Linear> = all.into_iter().collect();
        let mut variables = Vec::new();
        let bounds = linear.iter().map(|p| predicate(p, &mut variables)).collect();
        if known.len() * linear.len() > MOST_PREDICATES {
            known.clear();
        }
        let vocabulary = Arc::new(Vocabulary { linear, bounds, variables });
        known.insert(live.into(), vocabulary.clone());
        vocabulary
    }

    /// Whether the solver shows, within its budget, that the constraints entail the conclusion; without a conclusion, that they contradict each
    /// other.
    fn entails(&self, known: &[Linear], conclusion: Option<&Linear>) -> bool {
        let key = (known.to_vec(), conclusion.cloned());
        if let Some(&answer) = self.cache.borrow().get(&key) {
            return answer;
        }
        let formula = |linear: &Linear| {
            let terms: Vec<(i64, Var)> = linear.terms.iter().map(|&(cell, c)| (c, Var(cell))).collect();
            let form = fencewright_smt::Linear::sum(terms, linear.constant);
            Formula::le(form, fencewright_smt::Linear::constant(0))
        };
        let mut assertions: Vec<Formula> = known.iter().map(formula).collect();
        assertions.extend(conclusion.map(|linear| !formula(linear)));
        let answer = matches!(Native::new().check(&assertions, &self.budget), Answer::Unsat(_));
        let mut cache = self.cache.borrow_mut();
        if cache.len() >= MOST_REMEMBERED {
            cache.clear();
        }
        cache.insert(key, answer);
        answer
    }
}

impl Domain for Predicates {
    type State = Known;
    type Transition = PredicateTransition;

    fn cube(&self, live: &Live, known: &Known) -> Cube {
        let vocabulary = self.vocabulary(live);
        let held = vocabulary.linear.iter().enumerate().filter(|(n, _)| known.contains(*n));
        held.map(|(_, predicate)| Constraint::AtMost(predicate.clone())).collect()
    }

    fn blank(&self) -> Known {
        Known::new()
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> PredicateTransition {
        let (before, wanted) = (self.vocabulary(before), self.vocabulary(after));
        let mut variables = before.variables.clone();
        let ways = ways(commands)
            .iter()
            .map(|way| {
                let Executed { assumed, values, copies } = execute(way);
                let mut after = |p: &Linear| {
                    if !values.change(p) {
                        return predicate(p, &mut variables);
                    }
                    match values.of(p).as_deref() {
                        Some([form]) => predicate(form, &mut variables),
                        Some(forms) => {
                            Predicate::All(forms.iter().map(|f| predicate(f, &mut variables)).collect())
                        }
                        None => Predicate::Constant(false),
                    }
                };
                let wanted = wanted.linear.iter().map(&mut after).collect();
                let bounds = assumed.iter().map(|l| predicate(l, &mut variables)).collect();
                let mut copied = Vec::new();
                for (n, p) in before.linear.iter().enumerate().filter(|_| !copies.is_empty()) {
                    // The first instance is the predicate itself.
                    let instances = instances(p, &copies).into_iter().skip(1);
                    copied.extend(instances.map(|i| (n, predicate(&i, &mut variables), i)));
                }
                Prepared { assumed: bounds, assumptions: assumed, copied, wanted }
            })
            .collect();
        PredicateTransition { before, size: variables.len() + 1, ways, after: wanted.linear.len() }
    }

    fn post(
        &mut self,
        transition: &PredicateTransition,
        state: &Known,
        out: &mut Vec<(u32, Known)>,
    ) -> Result<(), Reason> {
        let size = transition.size;
        let mut start = vec![NONE; size * size];
        (0..size).for_each(|i| start[i * size + i] = 0);
        for (_, p) in transition.before.bounds.iter().enumerate().filter(|(n, _)| state.contains(*n)) {
            if let Predicate::Difference(i, j, c) = p {
                let entry = &mut start[i * size + j];
                *entry = (*entry).min(*c);
            }
        }
        close(&mut start, size);
        for (n, way) in transition.ways.iter().enumerate() {
            let mut matrix = start.clone();
            let copied = || way.copied.iter().filter(|(n, ..)| state.contains(*n));
            let possible = copied().map(|(_, p, _)| p).chain(&way.assumed).all(|p| match p {
                Predicate::Difference(i, j, c) => bound(&mut matrix, size, *i, *j, *c),
                Predicate::Constant(holds) => *holds,
                Predicate::General(_) | Predicate::All(_) => true,
            });
            if !possible {
                continue;
            }
            // If a predicate is not a difference constraint, the solver gets all known constraints.
            let known = || -> Vec<Linear> {
                let held = transition.before.linear.iter().enumerate().filter(|(n, _)| state.contains(*n));
                let copied = copied().map(|(_, _, linear)| linear);
                held.map(|(_, p)| p).chain(copied).chain(&way.assumptions).cloned().collect()
            };
            let general = |p: &Predicate| matches!(p, Predicate::General(_));
            if transition.before.bounds.iter().chain(&way.assumed).any(general)
                && self.entails(&known(), None)
            {
                continue;
            }
            let follows = |p: &Predicate| match p {
                Predicate::Constant(holds) => *holds,
                Predicate::Difference(i, j, c) => matrix[i * size + j] <= *c,
                Predicate::General(linear) => self.entails(&known(), Some(linear)),
                Predicate::All(_) => false,
            };
            let mut known_after = Known::with_capacity(transition.after);
            for (m, p) in way.wanted.iter().enumerate() {
                let holds = match p {
                    Predicate::All(parts) => parts.iter().all(follows),
                    p => follows(p),
                };
                known_after.set(m, holds);
            }
            out.push((n as u32, known_after));
        }
        Ok(())
    }

    fn stored(&self, state: &Known) -> Known {
        state.clone()
    }

    fn covers(&self, larger: &Known, smaller: &Known) -> bool {
        larger.is_subset(smaller)
    }

    fn size(&self, known: &Known) -> usize {
        size_of::<Known>() + size_of_val(known.as_slice())
    }

    fn describe(&self) -> Option<String> {
        Some(format!("{} predicates", self.templates.len()))
    }

    /// Adds the templates of the interpolants, unless the templates are fixed.
    fn refine(&self, path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        if self.fixed {
            return Err("it takes more predicates, and those of the file are all there are".into());
        }
        let mut templates = self.templates.clone();
        templates.extend(path.interpolants().iter().flatten().map(Template::of));
        match templates.len() > self.templates.len() {
            true => Ok(Predicates::new(templates, false, self.budget.clone())),
            false => Err("interpolation finds no new predicates".into()),
        }
    }

    fn doubt(&self) -> &'static str {
        "a path to a violation remains for which interpolation finds no predicates"
    }

    fn predicates(&self) -> usize {
        self.templates.len()
    }
}

/// The result of symbolic execution of simple commands, in terms of the values before the commands. Unknown values are fresh variables.
pub struct Executed {
    /// The assumptions, each a form that is at most 0.
    pub assumed: Vec<Linear>,
    /// The values of the changed cells.
    pub values: Values,
    /// The variables that stand for one of the values that a summary cell had before the commands, each with the summary cell.
    copies: Vec<(CellId, CellId)>,
}

/// The changed cells: an ordinary cell has one value, a summary cell one or more.
#[derive(Default)]
pub struct Values(FxHashMap<CellId, Vec<Linear>>);

impl Values {
    /// Whether a cell was changed.
    #[inline]
    pub fn is_changed(&self, cell: CellId) -> bool {
        self.0.contains_key(&cell)
    }

    /// Whether the value of a linear form may have changed.
    fn change(&self, form: &Linear) -> bool {
        form.terms.iter().any(|&(cell, _)| self.is_changed(cell))
    }

    fn get(&self, cell: CellId) -> Vec<Linear> {
        self.0.get(&cell).cloned().unwrap_or_else(|| vec![Linear::cell(cell)])
    }

    /// The values of a linear form, one for each choice of values of its cells; `None` on overflow or if there are too many choices.
    pub fn of(&self, form: &Linear) -> Option<Vec<Linear>> {
        // This limit is never reached in practice, because no machine folds more than a few values in one step.
        const MOST_CHOICES: usize = 64;
        let mut totals = vec![Linear::constant(form.constant)];
        for &(cell, coefficient) in &form.terms {
            let values = self.get(cell);
            if totals.len() * values.len() > MOST_CHOICES {
                return None;
            }
            let choices = totals.iter().flat_map(|total| values.iter().map(move |v| (total, v)));
            totals = choices.map(|(t, v)| t.plus(&v.scaled(coefficient)?)).collect::<Option<_>>()?;
        }
        Some(totals)
    }
}

/// Executes simple commands symbolically.
pub fn execute(way: &[Simple]) -> Executed {
    let mut values = Values::default();
    let (mut assumed, mut copies) = (Vec::new(), Vec::new());
    let mut unknown = CellId::MAX;
    let mut fresh = || {
        unknown -= 1;
        unknown
    };
    for command in way {
        match command {
            Simple::Assume(Constraint::AtMost(linear)) => {
                assumed.extend(values.of(linear).into_iter().flatten())
            }
            Simple::Assume(Constraint::Multiple(..)) => {}
            Simple::Assign(cell, form) => {
                let new = form.as_ref().and_then(|f| values.of(f));
                values.0.insert(*cell, new.unwrap_or_else(|| vec![Linear::cell(fresh())]));
            }
            Simple::Fold(summary, form) => {
                let new = form.as_ref().and_then(|f| values.of(f));
                let mut all = values.get(*summary);
                all.extend(new.unwrap_or_else(|| vec![Linear::cell(fresh())]));
                values.0.insert(*summary, all);
            }
            Simple::Expand(cell, summary) => {
                let copy = fresh();
                // A copy of a summary cell that this step has changed is unconstrained.
                if !values.0.contains_key(summary) {
                    copies.push((copy, *summary));
                }
                values.0.insert(*cell, vec![Linear::cell(copy)]);
            }
        }
    }
    Executed { assumed, values, copies }
}

/// A predicate and its instances about copies: each cell that has copies stays or is replaced by one of them, in all combinations.
fn instances(predicate: &Linear, copies: &[(CellId, CellId)]) -> Vec<Linear> {
    let mut values = Values::default();
    for &(copy, summary) in copies {
        let mut all = values.get(summary);
        all.push(Linear::cell(copy));
        values.0.insert(summary, all);
    }
    values.of(predicate).unwrap_or_else(|| vec![predicate.clone()])
}

/// Converts the constraint `linear <= 0` to an entry of the matrix, if it is a difference; its cells become variables of the matrix.
fn predicate(linear: &Linear, variables: &mut Vec<CellId>) -> Predicate {
    let mut index = |cell: CellId| {
        let known = variables.iter().position(|&c| c == cell);
        known.unwrap_or_else(|| {
            variables.push(cell);
            variables.len() - 1
        }) + 1
    };
    let bounded = linear.constant.checked_neg().filter(|c| c.abs() <= MOST).map(|c| c as i32);
    match (linear.difference(), bounded) {
        (Some((None, None)), _) => Predicate::Constant(linear.constant <= 0),
        (Some((x, y)), Some(c)) => Predicate::Difference(x.map_or(0, &mut index), y.map_or(0, &mut index), c),
        _ => Predicate::General(linear.clone()),
    }
}
