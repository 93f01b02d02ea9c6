//! Questions about programs: their options, and the functions that answer them.

use std::time::Duration;

use fencewright_engines::robust::{self, Robustness};
use fencewright_engines::task;
use fencewright_engines::{
    About, Checked, Confirm, Engine, EngineName, EngineOptions, Limits, Progress, Reason, Report, Task,
    Token, check_each, registry,
};
use fencewright_lang::Loaded;
use fencewright_lang::source::escape;
use fencewright_program::{MemoryModel, Property, Span};

use crate::{Answer, Budget, BufferBound, Error, Program};

/// A question about programs, with the engine, its options and the limits that are used to find the answer.
///
/// By default it is about all properties that a program states, uses engine `auto`, and is limited to 60 seconds and 4 GiB.
///
/// ```
/// use std::time::Duration;
/// use fencewright::{EngineName, MemoryModel, Program, Question};
///
/// let program = Program::parse("counter.fw", "shared x;
/// thread p[i in 0..2] { loop { atomic { x = x + 1; } } }
/// invariant upwards: x >= 0;
/// invariant small: x <= 2;")?;
/// let question = Question::under(MemoryModel::Pso).timeout(Duration::from_secs(10));
/// let proved = question.clone().engine(EngineName::Cegar).property("upwards").check(&program)?;
/// assert!(proved[0].is_safe() && proved[0].is_confirmed());
/// let found = question.property("small").check(&program)?;
/// assert_eq!(found[0].execution().expect("it is violated").events.len(), 3);
/// # Ok::<(), fencewright::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Question {
    model: MemoryModel,
    properties: Vec<String>,
    engine: EngineName,
    options: EngineOptions,
    buffer: Option<BufferBound>,
    confirm: Confirm,
    budget: Budget,
}

impl Question {
    /// A question about executions under a memory model.
    pub fn under(model: MemoryModel) -> Question {
        Question {
            model,
            properties: Vec::new(),
            engine: EngineName::Auto,
            options: EngineOptions::default(),
            buffer: None,
            confirm: Confirm::default(),
            budget: Budget::default(),
        }
    }

    /// The same question under another memory model.
    pub fn model(mut self, model: MemoryModel) -> Question {
        self.model = model;
        self
    }

    /// Restricts the question to this property, and to properties named by further calls. `deadlock` is a property of every program, `termination` of
    /// every C program.
    pub fn property(mut self, name: &str) -> Question {
        self.properties.push(name.to_owned());
        self
    }

    /// Uses this engine instead of `auto`.
    pub fn engine(mut self, engine: EngineName) -> Question {
        self.engine = engine;
        self
    }

    /// Sets the options of all engines; each engine uses only its own options.
    pub fn options(mut self, options: EngineOptions) -> Question {
        self.options = options;
        self
    }

    /// Bounds the store buffers of the program. If an execution needs larger buffers, the verdict is unknown.
    pub fn buffer(mut self, bound: BufferBound) -> Question {
        self.buffer = Some(bound);
        self
    }

    /// Sets how much effort is spent on confirming verdicts.
    pub fn confirm(mut self, confirm: Confirm) -> Question {
        self.confirm = confirm;
        self
    }

    /// Sets all limits at once.
    pub fn budget(mut self, budget: Budget) -> Question {
        self.budget = budget;
        self
    }

    /// Sets the time limit, by default 60 seconds.
    pub fn timeout(mut self, time: Duration) -> Question {
        self.budget.timeout = Some(time);
        self
    }

    /// Sets the memory limit in bytes, by default 4 GiB.
    pub fn memory(mut self, bytes: u64) -> Question {
        self.budget.memory = Some(bytes);
        self
    }

    /// Removes the limits on time and memory. The search then ends only with an answer or when the token is cancelled.
    pub fn without_limits(mut self) -> Question {
        (self.budget.timeout, self.budget.memory) = (None, None);
        self
    }

    /// Sets a token; the search gives up when another thread cancels it.
    pub fn token(mut self, token: Token) -> Question {
        self.budget.token = token;
        self
    }

    /// Checks the properties. Returns an answer for each property, in the order of the program or of the names given.
    pub fn check(&self, program: &Program) -> Result<Vec<Answer>, Error> {
        let limits = self.budget.start();
        let mut posed = self.pose(&program.read_for(&self.properties, self.model, &limits)?)?;
        posed.program.warn_of_races(&limits);
        let checked = posed.check(self.model, &limits, &Progress::default(), &mut |_, _| {});
        let answer = |checked| Answer { program: posed.program.clone(), model: self.model, checked };
        Ok(checked.into_iter().map(answer).collect())
    }

    /// Determines which properties of a program are checked, and how. The result can check them under several memory models, with limits of the
    /// caller, and reports each verdict as soon as it is found. The program must have been read for these properties: see
    /// [`Options::ask`](crate::Options::ask).
    ///
    /// ```
    /// use fencewright::engines::{Limits, Progress};
    /// use fencewright::{MemoryModel, Program, Question};
    ///
    /// let program = Program::parse("one.fw", "shared x; thread p { x = 1; assert x == 1; }")?;
    /// let posed = Question::under(MemoryModel::Tso).pose(&program)?;
    /// for model in MemoryModel::ALL {
    ///     let mut tell = |_: usize, checked: &fencewright::engines::Checked| println!("{}", checked.property.name);
    ///     let checked = posed.check(model, &Limits::default(), &Progress::default(), &mut tell);
    ///     assert!(matches!(checked[0].verdict(), fencewright::Verdict::Safe));
    /// }
    /// # Ok::<(), fencewright::Error>(())
    /// ```
    pub fn pose(&self, program: &Program) -> Result<Posed, Error> {
        let properties = self.selected(program.loaded())?;
        let mut options = self.options.clone();
        if let Some(bound) = &self.buffer {
            let bound =
                bound.bound(&program.loaded().program).map_err(|why| Error::Setting("buffer", why))?;
            (options.explicit.buffer_bound, options.cegar.buffer_bound) = (Some(bound), Some(bound));
        }
        let Some(engine) = registry().iter().find(|info| info.name == self.engine) else {
            return Err(Error::Question(format!("engine {} cannot be asked for properties", self.engine)));
        };
        let engine = (engine.build)(&options);
        Ok(Posed { program: program.clone(), properties, engine, confirm: self.confirm })
    }

    /// Decides whether every execution under TSO has the happens-before relation of an execution under SC. Of the question only the limits and the
    /// options of the engines `explicit` and `cegar` are used. The witness is an execution of [`Program::for_robustness`].
    ///
    /// ```
    /// use fencewright::engines::robust::Shape;
    /// use fencewright::{MemoryModel, Program, Question};
    ///
    /// let program = Program::parse("sb.fw", "shared x, y;
    /// thread p { var r; x = 1; r = y; }
    /// thread q { var r; y = 1; r = x; }")?;
    /// let answer = Question::under(MemoryModel::Tso).robust(&program);
    /// assert_eq!(answer.robust(), Ok(false));
    /// let (_, witness) = answer.witness().expect("an execution whose relation has a cycle");
    /// assert!(matches!(witness.shape(), Shape::Cycle(steps) if steps.len() == 4));
    /// # Ok::<(), fencewright::Error>(())
    /// ```
    pub fn robust(&self, program: &Program) -> Robustness {
        let options = robust::Options {
            explicit: self.options.explicit.clone(),
            cegar: self.options.cegar,
            ..robust::Options::default()
        };
        let limits = self.budget.start();
        // The translation for other properties has other executions, so it does not do.
        match program.for_robustness(&limits) {
            Ok(read) => robust::analyse(&read.loaded().program, &options, &limits, &Progress::default()),
            Err(error) => {
                let reason = match error {
                    Error::Unfinished { reason, .. } => reason,
                    Error::Text(wrong) => {
                        let first = wrong.diagnostics.first();
                        let message = first.map_or_else(String::new, |first| first.message.clone());
                        Reason::Unsupported(message, first.map(|first| first.span))
                    }
                    error => Reason::Unsupported(error.to_string(), None),
                };
                robust::undecided(&program.loaded().program, &options, reason)
            }
        }
    }

    /// Limits whose time starts now.
    pub fn limits(&self) -> Limits {
        self.budget.start()
    }

    pub(crate) fn own_budget(&self) -> &Budget {
        &self.budget
    }

    pub(crate) fn own_model(&self) -> MemoryModel {
        self.model
    }

    pub(crate) fn own_options(&self) -> &EngineOptions {
        &self.options
    }

    pub(crate) fn own_confirm(&self) -> Confirm {
        self.confirm
    }

    pub(crate) fn own_properties(&self) -> &[String] {
        &self.properties
    }

    /// The properties that the question selects.
    fn selected(&self, loaded: &Loaded) -> Result<Vec<Property>, Error> {
        let stated = &loaded.program.properties;
        if self.properties.is_empty() && stated.is_empty() {
            return Err(Error::NoProperty);
        }
        if self.properties.is_empty() {
            return Ok(stated.clone());
        }
        let asked = |wanted: &str| self.properties.iter().any(|name| name == wanted);
        if asked(DEADLOCK) && asked(TERMINATION) {
            let why = "`deadlock` and `termination` are asked for one at a time: \
                       for the one a loop that waits is a loop, for the other a step that cannot be taken";
            return Err(Error::Question(why.into()));
        }
        let mut selected: Vec<Property> = Vec::new();
        for name in &self.properties {
            if selected.iter().any(|property| property.name == *name) {
                continue;
            }
            let Some(property) = fencewright_certify::property(&loaded.program, name) else {
                let mut known = stated_by(loaded);
                known.push(DEADLOCK.into());
                known.extend(loaded.front_end.more_properties().iter().map(|&name| name.into()));
                let why = format!("no property is called `{}`; there is {}", escape(name), known.join(", "));
                return Err(Error::Question(why));
            };
            selected.push(property);
        }
        Ok(selected)
    }
}

/// The property that some thread can always take a step unless all threads have ended. It can be checked for every program.
pub const DEADLOCK: &str = "deadlock";
/// The property of C programs that no thread waits forever in a loop.
pub const TERMINATION: &str = "termination";

/// Maximum number of properties listed in a message.
const MOST_LISTED: usize = 20;

/// The first properties that a program states, with their source positions, and the number of the others, for messages.
pub fn stated_by(loaded: &Loaded) -> Vec<String> {
    let Loaded { program, sources, .. } = loaded;
    let place = |property: &Property| match property.span == Span::default() {
        true => escape(&property.name),
        false => format!("{} ({})", escape(&property.name), sources.position(property.span)),
    };
    let mut listed: Vec<String> = program.properties.iter().take(MOST_LISTED).map(place).collect();
    let more = program.properties.len() - listed.len();
    listed.extend((more > 0).then(|| format!("{more} more")));
    listed
}

/// A question prepared for one program: see [`Question::pose`].
pub struct Posed {
    /// The program, translated for the properties of the question.
    pub program: Program,
    /// The properties, in the order of the program or of the names given.
    pub properties: Vec<Property>,
    /// The engine with its options.
    engine: Box<dyn Engine>,
    confirm: Confirm,
}

impl Posed {
    /// Checks the properties under a memory model. `tell` receives the index and the verdict of each property as soon as the verdict is confirmed,
    /// and a second time only if a later answer contradicts the first one.
    pub fn check(
        &self,
        model: MemoryModel,
        limits: &Limits,
        progress: &Progress,
        tell: &mut dyn FnMut(usize, &Checked),
    ) -> Vec<Checked> {
        let loaded = self.program.loaded();
        let task = Task::new(&loaded.program, model, self.properties.clone());
        let engine: &dyn Engine = match model {
            MemoryModel::Pso if loaded.options.c.in_order => &InOrder,
            _ => &*self.engine,
        };
        check_each(engine, &task, limits, progress, self.confirm, tell).verdicts
    }
}

/// The engine for a program that was read for models in which stores reach memory in program order, if it is asked about PSO: it decides nothing,
/// because the translation lacks the tests for late stores.
struct InOrder;

impl Engine for InOrder {
    fn name(&self) -> EngineName {
        EngineName::Auto
    }

    fn about(&self) -> About {
        About { summary: "decides nothing", models: &[MemoryModel::Pso], machines: &[], domains: &[] }
    }

    fn run(&self, asked: &Task<'_>, _limits: &Limits, _progress: &Progress) -> Report {
        let reason = Reason::Unsupported("the program was read for SC and TSO only".into(), None);
        let answers = vec![task::Answer::Unknown(reason); asked.properties.len()];
        Report { answers, ..Report::default() }.by(self, None, asked.model)
    }
}
