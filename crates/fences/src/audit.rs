//! Audits the fences and memory orders that a program has: weakens each operation alone, and verifies the program with the weaker operation. Then
//! goes through the operations that can be weakened alone, in the order of the text, and weakens each that can be weakened together with those
//! before it.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

use fencewright_engines::{Limits, Progress, Reason};
use fencewright_lang::Stop;
use fencewright_lang::orders::Operation;
use fencewright_program::{Program, Property, Span, ThreadId};

use crate::goal::{Broken, Examined, Goal, Violation, named};
use crate::synthesis::Because;
use crate::weaken::{Subject, WeakForm, Weakenable};

/// Whether an operation needs an order: what happens with its weakest form. The weakest form of a fence is no fence.
#[derive(Debug)]
pub enum Need {
    /// With the weakest form, this violation is possible.
    Needed(Box<Because>),
    /// With the weakest form, no execution satisfies this property (`finally exists`).
    NeededFor(Box<Property>),
    /// The goal is met with the weakest form. All operations with `together` can be weakened together. After that, each of the others is needed, or
    /// it could not be verified that it is not.
    Superfluous {
        /// Whether it is among those that can be weakened together.
        together: bool,
    },
    /// The model has no weaker form of it: a read-modify-write.
    Fixed,
    /// Undecided, with the reason.
    Unknown(String),
}

/// The weakest form of an operation with which the goal is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enough {
    /// The order or the kind of this form; `None` if the operation, a fence, can be removed.
    pub becomes: Option<String>,
    /// Whether the operation can have this form together with all others for which this is set.
    pub together: bool,
    /// Whether the model does not distinguish this form from the one in the text, so that the program is the same.
    pub same: bool,
    /// Whether the whole proof was checked.
    pub checked: bool,
    /// The index of the form in [`Weakenable::forms`].
    form: usize,
}

/// An operation of the program: a fence, or an access with a memory order.
#[derive(Debug)]
pub struct Audited {
    /// The position of the operation in the source.
    pub span: Span,
    /// The kind of the operation.
    pub kind: Operation,
    /// Its order as the language writes it; `None` in a language without orders.
    pub order: Option<String>,
    /// The threads that execute it.
    pub threads: Vec<ThreadId>,
    /// Whether its order (or the fence) is needed, with the evidence.
    pub need: Need,
    /// The weakest form with which the goal is met; `None` if the goal could be verified for none of the weaker forms.
    pub enough: Option<Enough>,
}

/// The reason why there is no audit: the goal is violated or undecided even with all existing fences.
#[derive(Debug)]
pub struct Unmet {
    /// The reason as a sentence, for the user.
    pub reason: String,
    /// The violated property; `None` if instead a bound on buffers or the goal as a whole is violated, or if the goal is undecided.
    pub property: Option<Property>,
}

/// Audits operations of a program.
pub fn audit(
    subject: Subject<'_>,
    operations: Vec<Weakenable>,
    goal: &dyn Goal,
    limits: &Limits,
    progress: &Progress,
) -> Result<Vec<Audited>, Unmet> {
    let program = &subject.loaded.program;
    let original = subject.identity(program);
    let met = HashMap::from([(original.clone(), met(program, goal, limits, progress)?)]);
    let mut work = Work { subject, goal, limits, progress, original, met };
    let mut audited: Vec<Audited> = operations.iter().map(|operation| work.alone(operation)).collect();
    let together = work.together(&operations, &audited);
    for (n, audited) in audited.iter_mut().enumerate() {
        let is_together = together.contains(&n);
        if let Need::Superfluous { together } = &mut audited.need {
            *together = is_together;
        }
        audited.enough.iter_mut().for_each(|enough| enough.together = is_together);
    }
    Ok(audited)
}

/// Verifies the program as it is. Returns whether the whole proof was checked.
fn met(program: &Program, goal: &dyn Goal, limits: &Limits, progress: &Progress) -> Result<bool, Unmet> {
    let unmet = |broken: Broken| {
        let what = match &broken {
            Broken::Bound(_) => "a buffer overflows".into(),
            Broken::Property(name) => format!("`{name}` does not hold"),
            Broken::Goal => format!("{} does not hold", goal.name()),
        };
        let property = broken.property(program);
        Unmet { reason: format!("{what} with all the fences there are"), property }
    };
    match goal.examine(program, limits, progress) {
        Examined::Met(proof) => Ok(proof.checked),
        Examined::Violated(violation) => Err(unmet(violation.broken)),
        Examined::Lost(property) => Err(unmet(Broken::Property(property))),
        Examined::Unknown(reason) => Err(Unmet { reason, property: None }),
    }
}

struct Work<'a> {
    subject: Subject<'a>,
    goal: &'a dyn Goal,
    limits: &'a Limits,
    progress: &'a Progress,
    /// The [identity](Subject::identity) of the program as it is.
    original: String,
    /// The programs that meet the goal, by identity, and whether the whole proof was checked. Weaker forms are often the same program, because the
    /// model has fewer orders than the language.
    met: HashMap<String, bool>,
}

impl Work<'_> {
    /// Weakens an operation alone.
    fn alone(&mut self, operation: &Weakenable) -> Audited {
        let at = self.subject.loaded.sources.position(operation.span);
        self.progress.say(format!("{} at line {}", operation.operation.name(), at.line_name()));
        let (mut need, mut enough) = (None, None);
        let mut failed: Vec<String> = Vec::new();
        for (n, form) in operation.forms.iter().enumerate() {
            // There may be thousands of operations, and the program is copied for each form, so the limits are checked here too.
            if let Some(reason) = self.limits.exceeded(0) {
                need.get_or_insert(Need::Unknown(reason.to_string()));
                break;
            }
            let program = match self.weakened(&[form]) {
                Ok(Some(program)) => program,
                Ok(None) => {
                    need.get_or_insert(Need::Unknown("its weakest form cannot be written here".into()));
                    continue;
                }
                Err(reason) => {
                    need.get_or_insert(Need::Unknown(reason.to_string()));
                    break;
                }
            };
            let identity = self.subject.identity(&program);
            if failed.contains(&identity) {
                continue;
            }
            match self.verify(program) {
                Ok(checked) => {
                    let (becomes, same) = (form.becomes.clone(), identity == self.original);
                    enough = Some(Enough { becomes, together: false, same, checked, form: n });
                    need.get_or_insert(Need::Superfluous { together: false });
                    break;
                }
                Err(why) => {
                    need.get_or_insert(why);
                    failed.push(identity);
                }
            }
        }
        let Weakenable { span, operation: kind, order, threads, .. } = operation;
        let need = need.unwrap_or(Need::Fixed);
        Audited { span: *span, kind: *kind, order: order.clone(), threads: threads.clone(), need, enough }
    }

    /// Verifies that a program with a weaker operation meets the goal. Returns whether the whole proof was checked, or else why the operation is
    /// needed or why this is undecided.
    fn verify(&mut self, program: Program) -> Result<bool, Need> {
        let identity = self.subject.identity(&program);
        if let Some(checked) = self.met.get(&identity) {
            return Ok(*checked);
        }
        match self.goal.examine(&program, self.limits, self.progress) {
            Examined::Met(proof) => {
                self.met.insert(identity, proof.checked);
                Ok(proof.checked)
            }
            Examined::Unknown(reason) => Err(Need::Unknown(reason)),
            Examined::Lost(property) => Err(Need::NeededFor(Box::new(named(&program, &property)))),
            Examined::Violated(violation) => Err(shown(program, self.goal, violation)),
        }
    }

    /// The operations that can be weakened together, each to the weakest form that suffices alone, by their numbers.
    fn together(&mut self, operations: &[Weakenable], alone: &[Audited]) -> BTreeSet<usize> {
        let form = |n: usize| alone[n].enough.as_ref().map(|enough| &operations[n].forms[enough.form]);
        let weak = |these: &[usize]| these.iter().filter_map(|&n| form(n)).collect::<Vec<&WeakForm>>();
        let candidates: Vec<usize> = (0..operations.len()).filter(|&n| form(n).is_some()).collect();
        if candidates.len() < 2 || self.are_enough(&weak(&candidates)) {
            return candidates.into_iter().collect();
        }
        // Operations whose weaker form is the same under the model come first, because weakening them does not change the program.
        let same = |&n: &usize| alone[n].enough.as_ref().is_some_and(|enough| enough.same);
        let (mut kept, open): (Vec<usize>, Vec<usize>) = candidates.into_iter().partition(same);
        for n in open {
            kept.push(n);
            if kept.len() > 1 && !self.are_enough(&weak(&kept)) {
                kept.pop();
            }
        }
        kept.into_iter().collect()
    }

    fn are_enough(&mut self, forms: &[&WeakForm]) -> bool {
        if self.limits.exceeded(0).is_some() {
            return false;
        }
        let program = self.weakened(forms);
        program.is_ok_and(|program| program.is_some_and(|program| self.verify(program).is_ok()))
    }

    /// The program with these forms of operations; `None` if the changed text is no program.
    fn weakened(&self, forms: &[&WeakForm]) -> Result<Option<Program>, Reason> {
        let reason = OnceCell::new();
        let ask = || self.limits.exceeded(0).is_some_and(|why| reason.set(why).is_ok());
        let program = self.subject.weakened(forms, &Stop::when(&ask));
        reason.into_inner().map_or(Ok(program), Err)
    }
}

fn shown(program: Program, goal: &dyn Goal, Violation { trace, broken }: Violation) -> Need {
    match broken.replay(&program, goal.model(), &trace) {
        Some(replayed) => Need::Needed(Box::new(Because::new(program, replayed, &broken))),
        None => {
            Need::Unknown("internal contradiction, please report it: an execution does not replay".into())
        }
    }
}
