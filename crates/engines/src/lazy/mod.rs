//! Engine `lazy`: lazy TSO reachability (THESIS16 Algorithm 3.1).
//!
//! First the program is checked under SC. If there is no violation, an [`Oracle`] suggests paths along which stores should be delayed. The program is
//! extended so that along these paths its executions under SC have the behaviour that TSO allows ([`fencewright_transform::extend`]), and the
//! extended program is checked under SC in the next round. When the oracle finds that SC and TSO agree for an extended program, that program has
//! under SC all behaviour of the original program under TSO.
//!
//! * A violation of an extended program under SC is a violation of the original program under TSO, and is replayed there.
//! * A robust program is decided in the first round. If the first store of each path is removed from the program, an acyclic program is always
//!   decided (Theorem 8). For a cyclic program, rounds on the program itself are followed by rounds on unrolled programs, which is a semi-decision
//!   procedure (Theorem 9).
//! * Robustness is about states with empty buffers. This is sufficient for final states and for deadlocks. It is sufficient for control states and
//!   registers too, because buffers can be emptied without a step of any thread. It is not sufficient for a property that mentions memory, for which
//!   the answer is a violation or `unknown`. In a program with locks, buffers cannot always be emptied: see
//!   [`Extended::released`](fencewright_transform::extend::Extended::released).

mod conclude;
mod enumerate;
mod oracle;
mod rounds;

use fencewright_program::{MemoryModel, Program};
use fencewright_transform::extend::{AttackingStore, Extended};

use crate::auto::Auto;
use crate::task::{About, Answer, Engine, EngineName, Limits, Progress, Reason, Report, Task};

pub(crate) use conclude::locked;
pub use enumerate::Enumerate;
pub use oracle::{Advice, Oracle, Robust};
use rounds::{Phase, Rounds};

/// The oracle of engine `lazy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OracleName {
    /// Feasible attacks on the robustness of the program.
    #[default]
    Robust,
    /// All paths from a store to a load, shortest first.
    Enumerate,
}

/// Options of engine `lazy`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The oracle that suggests where stores are delayed.
    pub oracle: OracleName,
    /// Whether the first store of a path remains in the program (THESIS16 s.5.1). If it does, only a robust program can be `safe`.
    pub store: AttackingStore,
    /// Maximum number of rounds; `None` if it is not limited.
    pub rounds: Option<u32>,
    /// Whether to search for certificates of the properties that hold, once the oracle has found that SC and TSO agree.
    pub certificates: bool,
}

/// Engine `lazy`, with its options and those of the engine that it runs.
#[derive(Clone, Debug, Default)]
pub struct Lazy {
    /// The oracle, whether first stores are kept, the number of rounds, and whether certificates are made.
    pub options: Options,
    /// The engine that checks programs under SC.
    pub sc: Auto,
}

impl Lazy {
    /// The program after the rounds of extension that the options allow (one if they set no limit), or after fewer if the oracle finds it robust.
    pub fn extended(
        &self,
        program: &Program,
        limits: &Limits,
        progress: &Progress,
    ) -> Result<Extended, Reason> {
        let mut extended = Extended::new(program).map_err(rounds::refused)?;
        for round in 1..=self.options.rounds.unwrap_or(1) {
            match self.oracle().consult(&extended.program, round, limits, progress) {
                Advice::Robust => break,
                Advice::Unknown(reason) => return Err(reason),
                Advice::Paths(paths) => {
                    extended = rounds::extended(&extended, &rounds::shortest(paths), self.options.store)?;
                }
            }
        }
        Ok(extended)
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        match self.options.oracle {
            OracleName::Robust => Box::new(Robust { search: self.sc.clone() }),
            OracleName::Enumerate => Box::new(Enumerate),
        }
    }
}

/// Number of rounds on a cyclic program before it is unrolled.
const ROUNDS_BEFORE_UNROLLING: u32 = 8;

impl Engine for Lazy {
    fn name(&self) -> EngineName {
        EngineName::Lazy
    }

    fn about(&self) -> About {
        About {
            summary: "TSO by way of SC: stores are delayed along the paths on which it matters, one by one",
            models: &[MemoryModel::Sc, MemoryModel::Tso],
            machines: &["sc"],
            domains: &["concrete", "zones", "predicates", "order"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        match task.model {
            MemoryModel::Sc => return self.sc.run(task, limits, progress),
            MemoryModel::Tso => {}
            MemoryModel::Pso => {
                let why = "engine lazy is about TSO; for PSO there are others".to_string();
                let answers = vec![Answer::Unknown(Reason::Unsupported(why, None)); task.properties.len()];
                return Report { answers, ..Report::default() };
            }
        }
        let program = match Extended::new(task.program).map_err(rounds::refused) {
            Ok(program) => program,
            Err(reason) => {
                let answers = vec![Answer::Unknown(reason); task.properties.len()];
                return Report { answers, ..Report::default() };
            }
        };
        let oracle = self.oracle();
        let mut rounds = Rounds::new(self, &*oracle, task, limits, progress);
        // Cyclic programs are unrolled only with oracle `robust`, and only if the first store of each path is removed. Oracle `enumerate` suggests
        // every path eventually, so it does not need unrolled programs. If first stores were kept, the rounds on an unrolled program might not end.
        let unrolls = program.is_cyclic()
            && self.options.oracle == OracleName::Robust
            && self.options.store == AttackingStore::Removed;
        let phase = Phase { rounds: unrolls.then_some(ROUNDS_BEFORE_UNROLLING), conclusive: true };
        rounds.run(program.clone(), phase);
        let mut depth = 1;
        if unrolls {
            rounds.prepare_unrolling();
        }
        while unrolls && rounds.goes_on() {
            rounds.run(program.unrolled(depth), Phase { rounds: None, conclusive: false });
            depth += 1;
        }
        rounds.report()
    }
}
