//! Questions, with the means to answer them.

use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::robust::{self, Robustness};
use fencewright_engines::{
    Confirm, EngineName, EngineOptions, Limits, Progress, Task, Token, check, races, registry,
};
use fencewright_fences::text::{NoPlaces, edited, places};
use fencewright_fences::{Goal, Safety, synthesise};
use fencewright_lang::Loaded;
use fencewright_program::{MemoryModel, Property, Span};
use fencewright_report::{Source, remarks};

use crate::{Answer, Error, Fences, Program};

/// What is asked about programs, and what may be used to find the answer.
///
/// Without further words it is about all properties that a program states, and goes to engine `auto`, which may use 60 seconds and 4 GiB.
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
    timeout: Option<Duration>,
    memory: Option<u64>,
    token: Token,
}

impl Question {
    /// A question about executions under a memory model.
    pub fn under(model: MemoryModel) -> Question {
        Question {
            model,
            properties: Vec::new(),
            engine: EngineName::Auto,
            options: EngineOptions::default(),
            timeout: Some(Duration::from_secs(60)),
            memory: Some(4 << 30),
            token: Token::default(),
        }
    }

    /// Asks about this property, and about no others but those that are named like this too. `deadlock` is a property of every program,
    /// `termination` of every C program.
    pub fn property(mut self, name: &str) -> Question {
        self.properties.push(name.to_owned());
        self
    }

    /// Asks another engine than `auto`.
    pub fn engine(mut self, engine: EngineName) -> Question {
        self.engine = engine;
        self
    }

    /// Sets the options of engines; each uses those that it knows.
    pub fn options(mut self, options: EngineOptions) -> Question {
        self.options = options;
        self
    }

    /// Gives up after this time, and not after 60 seconds.
    pub fn timeout(mut self, time: Duration) -> Question {
        self.timeout = Some(time);
        self
    }

    /// Gives up when engines store more than so many bytes, and not at 4 GiB.
    pub fn memory(mut self, bytes: u64) -> Question {
        self.memory = Some(bytes);
        self
    }

    /// Gives up only when the answer is there, or the token is cancelled.
    pub fn without_limits(mut self) -> Question {
        (self.timeout, self.memory) = (None, None);
        self
    }

    /// Gives up when another thread cancels this token.
    pub fn token(mut self, token: Token) -> Question {
        self.token = token;
        self
    }

    /// Checks the properties: an answer for each of them, in the order of the program or of the names.
    pub fn check(&self, program: &Program) -> Result<Vec<Answer>, Error> {
        let limits = self.limits();
        let mut loaded = Loaded::clone(&*program.loaded_for(&self.properties)?);
        let properties = self.selected(&loaded)?;
        let Some(engine) = registry().iter().find(|info| info.name == self.engine) else {
            return Err(Error::Question(format!("engine {} cannot be asked for properties", self.engine)));
        };
        if !loaded.plain.is_empty() {
            let is_plain = |span: Span| loaded.plain.contains(&span.text());
            let races = races::races(&loaded.program, &is_plain, &limits);
            let warnings = remarks::races(Source::from(&loaded), &races);
            loaded.warnings.extend(warnings);
        }
        let task = Task::new(&loaded.program, self.model, properties);
        let engine = (engine.build)(&self.options);
        let checked = check(&*engine, &task, &limits, &Progress::default(), Confirm::default());
        let program = Program::with(loaded);
        let answer = |checked| Answer { program: program.clone(), model: self.model, checked };
        Ok(checked.into_iter().map(answer).collect())
    }

    /// Finds the cheapest fences with which the properties hold. The engine is always `auto`.
    pub fn fences(&self, program: &Program) -> Result<Fences, Error> {
        let (limits, start) = (self.limits(), Instant::now());
        let loaded = program.loaded();
        if self.model == MemoryModel::Sc {
            return Err(Error::Question("under sc there is nothing a fence could do".into()));
        }
        if self.properties.iter().any(|name| name == "deadlock" || name == "termination") {
            let why = "a fence may make a deadlock, so none is looked for that prevents one";
            return Err(Error::Question(why.into()));
        }
        self.selected(loaded)?;
        let (model, properties) = (self.model, self.properties.clone());
        let goal = Safety { model, properties, engine: Auto::default(), confirm: Confirm::default() };
        if !goal.is_about_fences(&loaded.program) {
            let why = "fences cannot help with `finally exists`: they only take executions away";
            return Err(Error::Question(why.into()));
        }
        let placed = places(loaded, &loaded.defines).map_err(|refused| match refused {
            NoPlaces::Refused(diagnostics) => {
                Error::Question(loaded.sources.render(&diagnostics, false).trim_end().to_owned())
            }
            NoPlaces::Contradiction => {
                Error::Question("internal contradiction, please report it: places change the program".into())
            }
        })?;
        let found = synthesise(&placed, &goal, &Default::default(), &limits, &Progress::default());
        let texts = Fences::is_met(&found).then(|| edited(loaded, &found, &goal, &limits));
        let seconds = start.elapsed().as_secs_f64();
        Ok(Fences { program: program.clone(), goal: goal.name(), model, found, texts, seconds })
    }

    /// Decides whether every execution under TSO has the happens-before relation of one under SC. Neither the memory model nor the properties
    /// of the question matter. The witness is an execution of [`Program::for_robustness`].
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
        let read = program.for_robustness();
        let program = read.as_ref().unwrap_or(program);
        robust::analyse(&program.loaded().program, &options, &self.limits(), &Progress::default())
    }

    fn limits(&self) -> Limits {
        Limits::starting_now(self.timeout, self.memory, self.token.clone())
    }

    /// The properties that are asked about.
    fn selected(&self, loaded: &Loaded) -> Result<Vec<Property>, Error> {
        let stated = &loaded.program.properties;
        if self.properties.is_empty() && stated.is_empty() {
            return Err(Error::Question("the program states no property".into()));
        }
        if self.properties.is_empty() {
            return Ok(stated.clone());
        }
        let asked = |wanted: &str| self.properties.iter().any(|name| name == wanted);
        if asked("deadlock") && asked("termination") {
            return Err(Error::Question("`deadlock` and `termination` are asked for one at a time".into()));
        }
        let mut selected: Vec<Property> = Vec::new();
        for name in &self.properties {
            if selected.iter().any(|property| property.name == *name) {
                continue;
            }
            let Some(property) = fencewright_certify::property(&loaded.program, name) else {
                let known: Vec<&str> = stated.iter().map(|property| property.name.as_str()).collect();
                let why = format!("no property is called `{name}`; there is {}", known.join(", "));
                return Err(Error::Question(why));
            };
            selected.push(property);
        }
        Ok(selected)
    }
}
