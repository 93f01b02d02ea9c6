//! Steps of `atomic` and `snapshot`: each path through such a block is one step.

use fencewright_lang::ast::*;

use super::control::{Position, Target};
use super::declarations::{Values, interval};
use super::evaluate::{Answers, Evaluation, Need, Trouble, Value};
use super::machine::{Machine, State, faulted};

impl<'f> Machine<'f> {
    /// All paths through an atomic block.
    pub fn indivisible(
        &self,
        state: &State,
        t: usize,
        position: &Position,
        block: &'f Block,
        out: &mut Vec<State>,
    ) -> Result<(), Trouble> {
        for (end, went_wrong) in self.all_of(state.clone(), t, self.codes[t].enter(position, block, None))? {
            out.push(match went_wrong {
                true => faulted(&end, t),
                false => self.moved(&end, t, self.codes[t].after(position.clone())),
            });
        }
        Ok(())
    }

    /// The states after the rest of a block inside an atomic block, from `position` on, each with whether the path ended with a fault.
    fn all_of(&self, state: State, t: usize, mut position: Position) -> Result<Vec<(State, bool)>, Trouble> {
        let mut ways = vec![(state, false)];
        while let Some(statement) = self.codes[t].statement(&position) {
            let mut next = Vec::new();
            for (state, went_wrong) in ways {
                if went_wrong {
                    next.push((state, true));
                    continue;
                }
                match self.inside(&state, t, &position, &statement.kind) {
                    Ok(mut ends) => next.append(&mut ends),
                    Err(Trouble::Fault) => next.push((state, true)),
                    Err(Trouble::Limit) => return Err(Trouble::Limit),
                }
            }
            ways = next;
            position = self.codes[t].after(position);
        }
        Ok(ways)
    }

    /// One statement inside an atomic block.
    fn inside(
        &self,
        state: &State,
        t: usize,
        position: &Position,
        kind: &'f StatementKind,
    ) -> Result<Vec<(State, bool)>, Trouble> {
        let code = &self.codes[t];
        let load = |cell: usize| self.load(state, t, cell);
        let mut evaluation =
            Evaluation { answers: Answers::Now(&load), ..self.evaluation(state, t, position, &[]) };
        // Inside an atomic block, an evaluation stops only at an access or a decision that fails.
        let wrong = |need: Need| match need {
            Need::Load(Err(trouble)) | Need::Decide(Err(trouble)) => trouble,
            need => unreachable!("{need:?} inside an indivisible block"),
        };
        // The target register, if there is one. Its index is checked after all loads.
        let register =
            |evaluation: &mut Evaluation<'_, '_>, place: &Place| match code.written(position, place) {
                Target::Register(register) => Ok(Some(Ok(register))),
                Target::Shared => Ok(None),
                Target::Element(name, indices, index) => {
                    let element = evaluation.element(indices, index).map_err(wrong)?;
                    let register = |element| code.thread.register(name, Some(element)).expect("an element");
                    Ok::<_, Trouble>(Some(element.map(register)))
                }
            };
        let write = |cell: Result<usize, Trouble>, variable: usize, value: Value| -> Result<State, Trouble> {
            let (mut next, cell) = (state.clone(), cell?);
            next.memory[cell] = self.checked(self.declared.shared[variable].values, value?)?;
            Ok(next)
        };
        let done = |state: State| Ok(vec![(state, false)]);
        match kind {
            StatementKind::Skip | StatementKind::Const(_) => done(state.clone()),
            StatementKind::Assign(place, e) => match register(&mut evaluation, place)? {
                Some(register) => {
                    let value = evaluation.value(e).map_err(wrong)?;
                    done(self.assigned(state, t, register?, value)?)
                }
                None => {
                    let (cell, variable) = evaluation.cell(place).map_err(wrong)?;
                    done(write(cell, variable, evaluation.value(e).map_err(wrong)?)?)
                }
            },
            StatementKind::Havoc(place, range) => {
                let chosen = range.as_ref().map(|r| interval(r, &|name| code.constant(position, name)));
                let register = register(&mut evaluation, place)?.transpose()?;
                let declared = match register {
                    Some(register) => code.thread.registers[register].values.range,
                    None => self.declared.shared(&place.name.text).and_then(|s| s.values.range),
                };
                let (low, high) = chosen.or(declared).expect("bounded");
                let place = match register {
                    None => Some(evaluation.cell(place).map_err(wrong)?),
                    Some(_) => None,
                };
                let mut ends = Vec::new();
                for value in low..=high {
                    let end = match (register, place) {
                        (Some(register), _) => self.assigned(state, t, register, Ok(value)),
                        (None, Some((cell, variable))) => self
                            .checked(Values::default(), value)
                            .and_then(|value| write(cell, variable, Ok(value))),
                        (None, None) => unreachable!("a register or a shared variable"),
                    };
                    match end {
                        Ok(end) => ends.push((end, false)),
                        Err(Trouble::Fault) => ends.push((state.clone(), true)),
                        Err(Trouble::Limit) => return Err(Trouble::Limit),
                    }
                }
                Ok(ends)
            }
            StatementKind::Assume(e) => match evaluation.truth(e).map_err(wrong)? {
                true => done(state.clone()),
                false => Ok(Vec::new()),
            },
            StatementKind::Assert(e, _) => match evaluation.value(e).map_err(wrong)?? {
                0 => Err(Trouble::Fault),
                _ => done(state.clone()),
            },
            StatementKind::If(e, then, otherwise) => {
                let holds = evaluation.truth(e).map_err(wrong)?;
                match (holds, otherwise) {
                    (true, _) => self.all_of(state.clone(), t, code.enter(position, then, None)),
                    (false, Some(block)) => self.all_of(state.clone(), t, code.enter(position, block, None)),
                    (false, None) => done(state.clone()),
                }
            }
            StatementKind::Choose(blocks) => {
                let mut ends = Vec::new();
                for block in blocks {
                    ends.append(&mut self.all_of(state.clone(), t, code.enter(position, block, None))?);
                }
                Ok(ends)
            }
            StatementKind::Block(block) => self.all_of(state.clone(), t, code.enter(position, block, None)),
            StatementKind::For(_, range, body) => {
                let (low, high) = interval(range, &|name| code.constant(position, name));
                let mut ways = vec![(state.clone(), false)];
                for copy in low..=high {
                    let mut next = Vec::new();
                    for (state, went_wrong) in ways {
                        match went_wrong {
                            true => next.push((state, true)),
                            false => next.append(&mut self.all_of(
                                state,
                                t,
                                code.enter(position, body, Some(copy)),
                            )?),
                        }
                    }
                    ways = next;
                }
                Ok(ways)
            }
            _ => unreachable!("cannot stand inside an indivisible block"),
        }
    }
}
