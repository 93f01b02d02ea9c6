//! Questions about fences: their purpose, the cheapest fences that achieve it, and which existing fences are needed.

use std::collections::BTreeMap;
use std::time::Instant;

use fencewright_engines::auto::Auto;
use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Limits, Progress, robust};
use fencewright_fences::audit::{Audited, Unmet, audit};
use fencewright_fences::text::{NoPlaces, edit_for, edited, places};
use fencewright_fences::weaken::Subject;
use fencewright_fences::{
    Bounded, Candidate, Goal, Options, Robustness, Safety, Synthesis, Verdict, synthesise,
};
use fencewright_lang::edit::{self, Change, Edit};
use fencewright_lang::load::load_again;
use fencewright_lang::source::escape;
use fencewright_lang::{LoadError, Sources, Stop};
use fencewright_memory::{Bound, CellBounds};
use fencewright_program::{FileId, MemoryModel};
use fencewright_transform::attack::Notion;

use crate::question::stated_by;
use crate::{DEADLOCK, Error, Fences, Program, Question, TERMINATION};

/// Changes of texts, for each file.
pub type Changes = BTreeMap<FileId, Vec<Change>>;

/// The condition that fences have to establish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The properties of the program hold.
    #[default]
    Safety,
    /// Every execution has the happens-before relation of an execution under SC.
    Robustness,
    /// There is no triangular race.
    Triangular,
}

/// A bound on store buffers that fences have to enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoOverflow {
    /// Maximum number of stores in a buffer.
    pub stores: u8,
    /// Whether the stores to each variable are counted separately; if `None`, they are counted separately under PSO but not under TSO.
    pub per_variable: Option<bool>,
}

/// A question about fences: the cheapest fences that achieve a purpose, or which existing fences are needed for it.
///
/// ```
/// use fencewright::engines::{Limits, Progress};
/// use fencewright::{MemoryModel, Program, Purpose, Question, Repair};
///
/// let program = Program::parse("sb.fw", "shared x, y;
/// thread p { var r; x = 1; r = y; }
/// thread q { var r; y = 1; r = x; }")?;
/// let repair = Repair { purpose: Purpose::Robustness, ..Question::under(MemoryModel::Tso).repair() };
/// let posed = repair.pose(&program)?;
/// let found = posed.find(&Limits::default(), &Progress::default())?;
/// assert_eq!(found.fences.len(), 2);
/// # Ok::<(), fencewright::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Repair {
    /// The memory model, the properties, the options of the explicit search, the effort for confirming verdicts, and the limits.
    pub question: Question,
    /// The purpose of the fences.
    pub purpose: Purpose,
    /// A bound on store buffers that the fences have to enforce as well.
    pub no_overflow: Option<NoOverflow>,
    /// Prices, the number of sets to list, and whether evidence is wanted.
    pub options: Options,
}

impl Question {
    /// Asks which fences make the properties hold, under the memory model and within the limits of this question.
    pub fn repair(&self) -> Repair {
        let (question, options) = (self.clone(), Options::default());
        Repair { question, purpose: Purpose::Safety, no_overflow: None, options }
    }

    /// Finds the cheapest fences with which the properties hold. The engine is always `auto`.
    pub fn fences(&self, program: &Program) -> Result<Fences, Error> {
        let (limits, start) = (self.own_budget().start(), Instant::now());
        let posed = self.repair().pose(program)?;
        let found = posed.find(&limits, &Progress::default())?;
        let texts = is_met(&found).then(|| posed.edited(&found, &limits));
        let (goal, model, seconds) = (posed.goal.name(), posed.goal.model(), start.elapsed().as_secs_f64());
        Ok(Fences { program: program.clone(), goal, model, found, texts, seconds })
    }
}

/// Whether the program with the fences found achieves the purpose.
pub fn is_met(found: &Synthesis) -> bool {
    matches!(found.verdict, Verdict::AlreadySafe | Verdict::Fixed)
}

impl Repair {
    /// Determines the goal for one program; an error if the question makes no sense for this program.
    pub fn pose(&self, program: &Program) -> Result<PosedRepair, Error> {
        let (model, budget) = (self.question.own_model(), self.question.own_budget());
        // The program may have been read for models in which stores reach memory in program order.
        let program = match model {
            MemoryModel::Pso => program.read_for(self.question.own_properties(), model, &budget.start())?,
            _ => program.clone(),
        };
        let goal = self.bounded(self.goal(&program)?)?;
        Ok(PosedRepair { program, goal, options: self.options })
    }

    /// The goal combined with the bound on buffers, if the question has one.
    fn bounded(&self, goal: Box<dyn Goal>) -> Result<Box<dyn Goal>, Error> {
        let Some(NoOverflow { stores, per_variable }) = self.no_overflow else { return Ok(goal) };
        let is_pso = goal.model() == MemoryModel::Pso;
        if per_variable == Some(true) && !is_pso {
            let why = "under tso a thread has one buffer for all variables; K counts its stores";
            return Err(Error::Setting("no-overflow", why.into()));
        }
        let bound = match per_variable.unwrap_or(is_pso) {
            true => CellBounds::new(&[stores]).map(Bound::Cell),
            false => None,
        };
        let bound = bound.unwrap_or(Bound::Thread(stores.into()));
        Ok(Box::new(Bounded { goal, bound }))
    }

    /// The goal without the bound on buffers.
    fn goal(&self, program: &Program) -> Result<Box<dyn Goal>, Error> {
        let (model, explicit) = (self.question.own_model(), self.question.own_options().explicit.clone());
        let confirm = self.question.own_confirm();
        if model == MemoryModel::Sc {
            return Err(Error::Setting("model", "under sc there is nothing a fence could do".into()));
        }
        let notion = match self.purpose {
            Purpose::Safety => None,
            Purpose::Robustness => Some(Notion::HappensBefore),
            Purpose::Triangular => Some(Notion::Triangular),
        };
        if let Some(notion) = notion {
            if model != MemoryModel::Tso {
                return Err(Error::Setting("goal", "robustness is about tso".into()));
            }
            let options = robust::Options { notion, explicit, confirm, ..robust::Options::default() };
            return Ok(Box::new(Robustness { options }));
        }
        let loaded = program.loaded();
        let properties = self.question.own_properties().to_vec();
        for name in &properties {
            if name == DEADLOCK || name == TERMINATION {
                let why = "a fence may make a deadlock, so none is looked for that prevents one";
                return Err(Error::Setting("property", why.into()));
            }
            if !loaded.program.properties.iter().any(|p| p.name == *name) {
                let known = stated_by(loaded);
                let there = if known.is_empty() { "none".into() } else { known.join(", ") };
                let why = format!("no property is called `{}`; there is {there}", escape(name));
                return Err(Error::Question(why));
            }
        }
        let engine = Auto { explicit: Explicit { options: explicit }, ..Auto::default() };
        let goal = Safety { model, properties, engine, confirm };
        if self.no_overflow.is_none() && !goal.is_about_fences(&loaded.program) {
            let first = goal.of(&loaded.program).into_iter().next();
            return Err(Error::NothingForFences(first.map(|property| property.span)));
        }
        Ok(Box::new(goal))
    }
}

/// A question about fences, prepared for one program: see [`Repair::pose`].
pub struct PosedRepair {
    /// The program that fences are added to.
    pub program: Program,
    /// The goal that the program with the fences must meet.
    pub goal: Box<dyn Goal>,
    /// Prices, the number of sets to list, and whether evidence is wanted.
    pub options: Options,
}

impl PosedRepair {
    /// Finds the cheapest fences that achieve the goal.
    pub fn find(&self, limits: &Limits, progress: &Progress) -> Result<Synthesis, Error> {
        let loaded = self.program.loaded();
        let placed = places(loaded, &loaded.defines).map_err(|refused| match refused {
            NoPlaces::Refused(diagnostics) => {
                Error::Text(Box::new(LoadError { sources: loaded.sources.clone(), diagnostics }))
            }
            NoPlaces::Contradiction => Error::Contradiction("places change the program"),
        })?;
        Ok(synthesise(&placed, &*self.goal, &self.options, limits, progress))
    }

    /// Determines which of the existing fences and memory orders are needed.
    pub fn audit(&self, limits: &Limits, progress: &Progress) -> Result<Vec<Audited>, Unmet> {
        let subject = self.subject();
        let ask = || limits.exceeded(0).is_some();
        let operations = subject.operations(&Stop::when(&ask));
        audit(subject, operations, &*self.goal, limits, progress)
    }

    /// Determines which of the existing fences are needed.
    pub fn audit_fences(&self, limits: &Limits, progress: &Progress) -> Result<Vec<Audited>, Unmet> {
        audit(self.subject(), self.subject().fences(), &*self.goal, limits, progress)
    }

    fn subject(&self) -> Subject<'_> {
        Subject { loaded: self.program.loaded(), model: self.goal.model() }
    }

    /// The files with the fences inserted, read again and verified; or a message why this is not possible.
    pub fn edited(&self, found: &Synthesis, limits: &Limits) -> Result<Sources, String> {
        edited(self.program.loaded(), found, &*self.goal, limits)
    }

    /// The changes of texts that insert all fences found.
    pub fn changes(&self, found: &Synthesis) -> Result<Changes, String> {
        let edits: Vec<Edit> = found.fences.iter().map(|chosen| edit_for(&chosen.fence)).collect();
        edit::changes(self.program.loaded(), &edits)
    }

    /// The changes of texts that insert one fence; `None` if it cannot be inserted, if the resulting text is not a program, or
    /// if a limit is reached.
    pub fn changes_for(&self, fence: &Candidate, limits: &Limits) -> Option<Changes> {
        let loaded = self.program.loaded();
        let edits = [edit_for(fence)];
        let texts = edit::edited(loaded, &edits).ok()?;
        let ask = || limits.exceeded(0).is_some();
        load_again(loaded, &texts, &Stop::when(&ask)).ok()?;
        edit::changes(loaded, &edits).ok()
    }
}
