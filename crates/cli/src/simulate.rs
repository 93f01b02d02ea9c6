//! `fencewright run`: one execution on the reference semantics, chosen at random or by the user.

use std::io::{self, BufRead, IsTerminal, Read};
use std::rc::Rc;

use fencewright::engines::{Limits, chance};
use fencewright::generate::Random;
use fencewright::input::is_standard_input;
use fencewright::lang::Loaded;
use fencewright::lang::source::escape;
use fencewright::program::reference::{Access, Limit, Refusal, decided_by, holds};
use fencewright::program::{EdgeId, Event, EventKind, Property, PropertyKind, Reference, State, ThreadId};
use fencewright_report::origins::{Origins, Written};
use fencewright_report::step::Step;
use fencewright_report::text::{self, Cells, Table};
use fencewright_report::{Source, Style};

use crate::args::RunArgs;
use crate::input::{load_program, tell_assumed, tell_notes};
use crate::output::{Output, complain};
use crate::status::Status;

/// Default number of steps of a random execution.
const STEPS: u64 = 50;
/// Maximum number of combinations of values for the `*`s of an edge that are tried in one step.
const CHOICES: usize = 16;
/// Maximum length of a line of input in bytes.
const LONGEST_ANSWER: u64 = 1_000;

/// Simulates a program.
pub fn run(args: &RunArgs, out: &mut Output) -> Status {
    if args.settings.interactive && is_standard_input(&args.file) {
        complain("run", "the program cannot come from the standard input when the choices do");
        return Status::Bad;
    }
    let program = match load_program(&args.file, &args.settings.reader(), &Limits::default()) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let loaded = program.loaded();
    tell_notes(loaded);
    tell_assumed(loaded);
    let seed = args.settings.seed.unwrap_or_else(Random::fresh_seed);
    out.print(&format!(
        "{} steps under {}, --seed {seed}\n",
        choice_word(args),
        args.settings.simulated_model.name()
    ));
    let mut simulation = Simulation::new(args, loaded, seed, out.style);
    simulation.run(out);
    simulation.status
}

fn choice_word(args: &RunArgs) -> &'static str {
    if args.settings.interactive { "Chosen" } else { "Random" }
}

/// A step that can be taken.
struct Move {
    event: Event,
    effect: Vec<Access>,
    after: State,
}

/// The possible next steps.
struct Moves {
    /// The steps in groups. A group has the steps along one edge, which differ in the values of its `*`s, or a single flush.
    groups: Vec<Vec<Move>>,
    /// A limit of explicit computation that some step exceeds.
    limit: Option<Limit>,
    /// Whether only some values of a `*` were tried.
    sampled: bool,
}

struct Simulation<'a> {
    args: &'a RunArgs,
    source: Source<'a>,
    reference: Reference<'a>,
    random: Random,
    state: State,
    /// The origins of the values in registers.
    origins: Rc<Origins>,
    /// The registers that the steps so far have written.
    written: Written,
    cells: Cells,
    table: Table,
    style: Style,
    /// The properties that no state so far has decided.
    open: Vec<&'a Property>,
    status: Status,
}

impl<'a> Simulation<'a> {
    fn new(args: &'a RunArgs, loaded: &'a Loaded, seed: u64, style: Style) -> Self {
        let program = &loaded.program;
        let source = Source::from(loaded).in_full(args.settings.full);
        let reference = Reference::new(program, args.settings.simulated_model);
        let mut random = Random::new(seed);
        let state = chance::initial(&reference, &mut random);
        let places = program.threads.iter().flat_map(|t| &t.edges).map(|e| e.span);
        Simulation {
            args,
            source,
            reference,
            random,
            cells: Cells::all(source, &state),
            table: Table::new(source, 4, places),
            state,
            origins: Rc::default(),
            written: Written::default(),
            style,
            open: program.properties.iter().collect(),
            status: Status::Fine,
        }
    }

    fn run(&mut self, out: &mut Output) {
        out.print(&self.cells.initially(self.source, self.style));
        out.print(&self.table.heading(self.style));
        let steps =
            self.args.settings.steps.unwrap_or(if self.args.settings.interactive { u64::MAX } else { STEPS });
        let mut number = 0;
        let ending = loop {
            self.look_at_properties(out);
            if out.is_closed() {
                return;
            }
            let moves = self.moves();
            if moves.groups.is_empty() {
                break self.at_rest(&moves);
            }
            if number == steps {
                break format!("stopped after {steps} steps; --steps N takes more");
            }
            let chosen =
                if self.args.settings.interactive { self.ask(&moves, out) } else { Some(self.pick(&moves)) };
            let Some((group, choice)) = chosen else { break "stopped".into() };
            number += 1;
            let mut groups = moves.groups;
            let Move { event, effect, after } = groups.swap_remove(group).swap_remove(choice);
            let step = Step {
                source: self.source,
                before: Rc::new(self.state.clone()),
                event: &event,
                effect: &effect,
                after: Rc::new(after.clone()),
                origins: Rc::clone(&self.origins),
            };
            let shown = usize::try_from(number).unwrap_or(usize::MAX);
            // Steps of the translation without a meaning in the source are counted but not shown, unless the user chose them.
            if self.args.settings.interactive || !step.is_hidden() {
                out.print(&self.table.step(shown, &step, &self.cells, self.style));
            }
            Rc::make_mut(&mut self.origins).follow(self.source, &event, &effect, &self.state);
            self.written.follow(self.source, &event);
            self.state = after;
        };
        out.print(&format!("  {ending}\n"));
        out.print(&text::threads(self.source, &self.state, &self.written));
    }

    /// The steps that are possible in the current state. Along an edge with many values for its `*`s, only a random selection is tried.
    fn moves(&mut self) -> Moves {
        let mut moves = Moves { groups: Vec::new(), limit: None, sampled: false };
        let candidates = self.reference.candidates(&self.state, &[]);
        for group in candidates.chunk_by(|a, b| edge_of(a).is_some() && edge_of(a) == edge_of(b)) {
            let events = self.some_of(group, &mut moves.sampled);
            self.add_enabled(events, &mut moves);
        }
        moves
    }

    fn add_enabled(&self, events: Vec<Event>, moves: &mut Moves) {
        let mut group = Vec::new();
        for event in events {
            match self.reference.step(&self.state, &event) {
                Ok((after, effect)) => group.push(Move { event, effect, after }),
                Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(limit, _)) => moves.limit = Some(limit),
            }
        }
        if !group.is_empty() {
            moves.groups.push(group);
        }
    }

    /// The events of an edge, which differ in the values of its `*`s: all of them if there are few, otherwise a random selection, and `sampled`
    /// is set.
    fn some_of(&mut self, group: &[Event], sampled: &mut bool) -> Vec<Event> {
        let program = self.reference.program;
        let unlisted = edge_of(&group[0])
            .map(|(thread, edge)| &program.thread(thread).edge(edge).action)
            .filter(|action| program.is_sampled(action));
        if unlisted.is_none() && group.len() <= CHOICES {
            return group.to_vec();
        }
        *sampled = true;
        let mut events: Vec<Event> = (0..CHOICES)
            .map(|_| {
                let mut event = self.random.pick(group).clone();
                if let (Some(action), EventKind::Step { chosen, .. }) = (unlisted, &mut event.kind) {
                    *chosen = chance::values(action, program.numbers, &mut self.random);
                }
                event
            })
            .collect();
        events.sort_unstable_by(|a, b| chosen_by(a).cmp(chosen_by(b)));
        events.dedup();
        events
    }

    fn pick(&mut self, moves: &Moves) -> (usize, usize) {
        let group = self.random.below(moves.groups.len());
        (group, self.random.below(moves.groups[group].len()))
    }

    /// Lets the user choose a step; `None` to quit.
    fn ask(&mut self, moves: &Moves, out: &mut Output) -> Option<(usize, usize)> {
        let all: Vec<(usize, usize)> = moves
            .groups
            .iter()
            .enumerate()
            .flat_map(|(g, group)| (0..group.len()).map(move |c| (g, c)))
            .collect();
        out.print(&self.style.dim("  possible steps:\n"));
        for (n, &(g, c)) in all.iter().enumerate() {
            let Move { event, effect, after } = &moves.groups[g][c];
            let step = Step {
                source: self.source,
                before: Rc::new(self.state.clone()),
                event,
                effect,
                after: Rc::new(after.clone()),
                origins: Rc::clone(&self.origins),
            };
            out.print(&self.table.row(n + 1, &step, self.style));
        }
        loop {
            out.print(&format!("  1 to {}, r for a random one, q to quit: ", all.len()));
            out.flush();
            if out.is_closed() {
                return None;
            }
            let mut answer = String::new();
            let read = io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer);
            if !io::stdin().is_terminal() {
                // On a terminal, the user's input is visible anyway.
                out.print(&format!("{}\n", escape(answer.trim_end())));
            }
            if !read.is_ok_and(|length| length > 0) {
                return None;
            }
            match answer.trim() {
                "q" => return None,
                "r" => return Some(self.pick(moves)),
                number => {
                    let chosen = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                    if let Some(&chosen) = chosen.and_then(|n| all.get(n)) {
                        return Some(chosen);
                    }
                }
            }
        }
    }

    /// Prints the properties that the current state decides.
    fn look_at_properties(&mut self, out: &mut Output) {
        let (reference, state) = (self.reference, &self.state);
        let violation = |property: &Property| match &property.kind {
            PropertyKind::Never(formula) => holds(state, formula).filter(|holds| *holds),
            PropertyKind::Assertions => reference.has_fault(state).then_some(true),
            PropertyKind::NoDeadlock => None,
            PropertyKind::Finally(quantifier, formula) => match reference.is_final(state) {
                true => holds(state, formula)
                    .and_then(|holds| decided_by(*quantifier, holds))
                    .map(|satisfied| !satisfied),
                false => None,
            },
        };
        let mut open = std::mem::take(&mut self.open);
        open.retain(|property| {
            let decision = violation(property);
            if let Some(violated) = decision {
                out.print(&format!("  {}\n", text::conclusion(self.source, property, self.style)));
                if violated {
                    self.status = Status::Violated;
                }
            }
            decision.is_none()
        });
        self.open = open;
    }

    /// The reason why no step is possible.
    fn at_rest(&self, moves: &Moves) -> String {
        if let Some(limit) = moves.limit {
            return format!("the simulation ends here: {}", limit.describe());
        }
        if self.reference.is_final(&self.state) {
            return "a final state: all threads have ended and all buffers are empty".into();
        }
        let waiting = self.reference.program.threads().any(|(id, code)| {
            let at = self.state.locations[id.index()];
            at != code.fault && !code.is_end(at)
        });
        match (waiting, moves.sampled) {
            (true, false) => "a deadlock: nothing can move and not all threads have ended".into(),
            (true, true) => "no step was found: with the values tried for `*` nothing can move".into(),
            (false, _) => "nothing can move any more: every thread has ended or stopped with a fault".into(),
        }
    }
}

/// The edge that an event takes; none for a flush.
fn edge_of(event: &Event) -> Option<(ThreadId, EdgeId)> {
    match event.kind {
        EventKind::Step { edge, .. } => Some((event.thread, edge)),
        EventKind::Flush { .. } => None,
    }
}

/// The values that an event chooses for `*`.
fn chosen_by(event: &Event) -> &[i64] {
    match &event.kind {
        EventKind::Step { chosen, .. } => chosen,
        EventKind::Flush { .. } => &[],
    }
}
