//! Reduction of a buffer machine by live cells and symmetry: dead values are dropped, and states are identified up to permutations of threads with
//! the same code.

use fencewright_memory::{
    BufferMachine, CellId, Command, Contents, Control, Evidence, Machine, Outcome, Step, StepName,
};
use fencewright_program::{Property, ThreadId};

use super::live::LiveCells;
use super::symmetry::{Permutation, Symmetry};

/// A buffer machine whose states contain live cells only, and are canonical with respect to the symmetry, if there is one.
pub struct Reduced<'a, 'p> {
    machine: &'a BufferMachine<'p>,
    live: &'a LiveCells,
    symmetry: Option<&'a Symmetry>,
}

/// The name of a step, unique among the steps of a control state.
#[derive(Clone, Debug)]
pub struct ReducedStepName {
    /// The step of the buffer machine.
    pub step: StepName,
    /// The permutation of threads applied after the step, if its target was made canonical.
    pub order: Option<Permutation>,
}

/// A path of a buffer machine: steps, each with the branch through its commands, if known.
pub type Path = Vec<(Step, Option<u32>)>;

impl<'a, 'p> Reduced<'a, 'p> {
    /// The reduced machine. States that are equal up to the symmetry are identified.
    pub fn new(machine: &'a BufferMachine<'p>, live: &'a LiveCells, symmetry: Option<&'a Symmetry>) -> Self {
        Reduced { machine, live, symmetry }
    }

    /// A path in terms of the original threads: undoes the permutations by following the path on the buffer machine.
    pub fn unfolded(&self, path: &[(Step<ReducedStepName, Control>, Option<u32>)]) -> Path {
        let mut who = Permutation::identity(self.machine.program.threads.len());
        let mut control = self.machine.initial();
        let mut unfolded = Vec::with_capacity(path.len());
        for (Step { name: ReducedStepName { step, order }, .. }, branch) in path {
            let thread = ThreadId(who.at(step.thread.index()) as u32);
            let wanted = StepName { thread, ..*step };
            let mut steps = self.machine.steps(&control).into_iter();
            let step = steps.find(|step| step.name == wanted).expect("identical threads do the same");
            if let Outcome::Control(next) = &step.outcome {
                control = next.clone();
            }
            unfolded.push((step, *branch));
            if let Some(order) = order {
                who = order.after(&who);
            }
        }
        unfolded
    }
}

impl Machine for Reduced<'_, '_> {
    type Control = Control;
    type Name = ReducedStepName;
    type Phase = ();

    fn initial_controls(&self) -> Vec<Control> {
        self.machine.initial_controls()
    }

    fn initial_values(&self) -> Vec<Command> {
        self.machine.initial_values()
    }

    fn steps_in(
        &self,
        (): (),
        control: &Control,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Step<ReducedStepName, Control>>> {
        let steps = self.machine.steps_in((), control, stop)?;
        let reduced = |Step { name: step, mut commands, outcome }: Step| {
            let canonical = match (&outcome, self.symmetry) {
                (Outcome::Control(next), Some(symmetry)) => symmetry.canonical(next).zip(Some(symmetry)),
                _ => None,
            };
            let Some(((next, order), symmetry)) = canonical else {
                return Step { name: ReducedStepName { step, order: None }, commands, outcome };
            };
            commands.extend(symmetry.renaming(self.machine, &self.live(&next), &order));
            let name = ReducedStepName { step, order: Some(order) };
            Step { name, commands, outcome: Outcome::Control(next) }
        };
        Some(steps.into_iter().map(reduced).collect())
    }

    fn evidence(&self, control: &Control, property: &Property) -> Option<Vec<Evidence>> {
        self.machine.evidence(control, property)
    }

    fn live(&self, control: &Control) -> Vec<CellId> {
        self.live.of(self.machine, control)
    }

    fn contents(&self) -> Vec<Contents> {
        self.machine.contents()
    }
}
