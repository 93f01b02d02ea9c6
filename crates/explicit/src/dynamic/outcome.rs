//! State changes that are not explored steps: local steps merged into the step before them, and the replay of known events.

use fencewright_program::{Action, Edge, EdgeId, Event, Op};

use super::footprint::{Item, Key, Tables, is_local};
use super::machine::{Flow, Machine};
use super::state::State;

/// Maximum number of local steps merged into one step. A loop of local steps that does not terminate thus becomes a sequence of steps, between which
/// limits are polled.
const MOST_LOCAL: usize = 256;

/// Maximum number of discarded states kept for reuse.
const MOST_SPARE: usize = 64;

impl Machine<'_> {
    /// A copy of a state, in the allocation of a discarded state if there is one.
    pub fn copy(&mut self, state: &State) -> State {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.values.clone_from(&state.values);
        copy.buffers.clone_from(&state.buffers);
        copy.issued.clone_from(&state.issued);
        copy
    }

    /// Keeps a discarded state for reuse.
    pub fn recycle(&mut self, state: State) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(state);
        }
    }

    /// Applies the effect of a known event to a state. The event is a step of this agent with this footprint, and led to the state `after`.
    pub fn copy_outcome(
        &self,
        agent: usize,
        footprint: &[Item],
        event: u32,
        after: &State,
        state: &mut State,
    ) {
        for item in footprint.iter().filter(|item| item.writes()) {
            if item.key < self.tables.cells as Key {
                let cell = self.memory + item.key as usize;
                state.values[cell] = after.values[cell];
            } else if Some(item.key) == self.tables.lock {
                state.values[0] = after.values[0];
            } else if let Some((thread, number)) = Tables::numbered_store(item.key) {
                state.buffers.retain(|b| (b.thread, b.issued[0]) != (thread, number));
            }
        }
        if self.tables.agents.buffer(agent).is_some() {
            return;
        }
        let first = self.registers[agent];
        let registers = first..first + self.program.threads[agent].registers.len();
        state.values[1 + agent] = after.values[1 + agent];
        state.values[registers.clone()].copy_from_slice(&after.values[registers]);
        if let Some(issued) = state.issued.get_mut(agent) {
            *issued = after.issued[agent];
            let new = after
                .buffers
                .iter()
                .rev()
                .take_while(|b| b.event == event && b.thread == agent as u32)
                .count();
            state.buffers.extend_from_slice(&after.buffers[after.buffers.len() - new..]);
        }
    }

    /// Performs unobserved local steps with a single outcome.
    pub(super) fn settle(&mut self, state: &mut State, thread: usize, mut log: Option<&mut Vec<Event>>) {
        let code = &self.program.threads[thread];
        for _ in 0..MOST_LOCAL {
            let Some(location) = self.moves_from(state, thread) else { return };
            if !self.tables.places[thread][location.index()].local {
                return;
            }
            let mut only: Option<(EdgeId, &Edge, Flow, Option<State>)> = None;
            let several = code.edges_from(location).count() > 1;
            for (id, edge) in code.edges_from(location) {
                debug_assert!(is_local(&edge.action, self.model), "the location is local");
                // If there are several edges, each is tried on a copy of the state.
                let mut copy = several.then(|| state.clone());
                let flow = match &edge.action {
                    Action::Op(Op::Havoc(..)) => return,
                    Action::Op(op) => {
                        let on = copy.as_mut().unwrap_or(&mut *state);
                        self.perform(on, thread, op, false, &mut Vec::new())
                    }
                    _ => {
                        let on = copy.as_mut().unwrap_or(&mut *state);
                        if let Some(issued) = on.issued.get_mut(thread) {
                            issued[1] += 1;
                        }
                        Flow::Done
                    }
                };
                match flow {
                    Flow::Disabled => {}
                    // A step that reaches a limit is not merged, so that it is explored and reports the limit.
                    Flow::Limit(_) => return,
                    Flow::Done | Flow::Fault if only.is_some() => return,
                    Flow::Done | Flow::Fault => only = Some((id, edge, flow, copy)),
                }
            }
            let Some((id, edge, flow, copy)) = only else { return };
            if let Some(next) = copy {
                *state = next;
            }
            self.arrive(state, thread, edge, matches!(flow, Flow::Fault));
            if let Some(log) = &mut log {
                self.log(log, thread, id, &[], false);
            }
        }
    }
}
