//! Reading programs.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fencewright_certify::{Accepted, Certificate, Claim, Rejection, Stop, Undecided};
use fencewright_engines::fingerprint::fingerprint;
use fencewright_engines::{Limits, Reason, races};
use fencewright_lang::front_end::Open;
use fencewright_lang::load::{Failure, load_again};
use fencewright_lang::{Diagnostic, FrontEnd, Loaded, Loader, Options, load};
use fencewright_program::{MemoryModel, Span};
use fencewright_report::{Source, remarks};
use fencewright_smt::Prover;

use crate::{Error, compilations, input};

/// How programs are read: constants and macros, language, and limits.
///
/// ```
/// use fencewright::{Options, Reader};
///
/// let options = Options { defines: vec![("N".into(), Some("2".into()))], ..Options::default() };
/// let reader = Reader { options, ..Reader::default() };
/// let program = reader.read("n.fw", b"const N = 1; shared x; thread p { x = N; assert x == 2; }")?;
/// assert_eq!(program.loaded().defines, [("N".to_owned(), 2)]);
/// # Ok::<(), fencewright::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Constants, macros, include folders, and the translation that later questions require.
    pub options: Options,
    /// The language; if `None`, it is recognised by extension and contents.
    pub format: Option<&'static dyn FrontEnd>,
    /// The limits on time and memory.
    pub limits: Limits,
    /// The `compile_commands.json` that has the options of C source files, or its folder.
    pub compilations: Option<PathBuf>,
}

impl Reader {
    /// The same reader with other limits.
    pub fn within(&self, limits: &Limits) -> Reader {
        Reader { limits: limits.clone(), ..self.clone() }
    }

    /// Reads a program from a file; `-` is the standard input.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Program, Error> {
        let path = path.as_ref();
        let bytes = input::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
        self.read(&input::name_of(path), &bytes)
    }

    /// Reads a program whose main file has this name and these contents; included files are read from the disk.
    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Program, Error> {
        let open =
            |name: &str| input::read_included(Path::new(name)).map_err(|error| input::in_words(&error));
        self.read_with(name, bytes, &open)
    }

    /// The options, with those of the build system for a C program and its other source files.
    fn options_for(&self, name: &str) -> Result<Cow<'_, Options>, Error> {
        let Some(place) = &self.compilations else { return Ok(Cow::Borrowed(&self.options)) };
        let mut options = self.options.clone();
        let is_c = |name: &&str| Path::new(name).extension().is_some_and(|extension| extension == "c");
        for name in self.options.c.also.iter().map(String::as_str).chain([name]).filter(is_c) {
            let found = compilations::compilation(place, Path::new(name));
            let found = found.map_err(|why| Error::Setting("compilations", why))?;
            options.c.compilations.insert(name.to_owned(), found);
        }
        Ok(Cow::Owned(options))
    }

    /// Reads a program whose main file has this name and these contents; `open` reads the included files.
    pub fn read_with(&self, name: &str, bytes: &[u8], open: &Open<'_>) -> Result<Program, Error> {
        let options = self.options_for(name)?;
        let loaded = loaded_within(&self.limits, |stop| {
            Loader { front_end: self.format, options: &options, stop, open }.load(name, bytes)
        });
        Ok(Program { loaded: Arc::new(loaded?) })
    }
}

/// What `load` loads, or the limit that was reached.
fn loaded_within(
    limits: &Limits,
    load: impl FnOnce(&fencewright_lang::Stop<'_>) -> Result<Loaded, Failure>,
) -> Result<Loaded, Error> {
    // Keeps the reason for stopping. When the error is reported, memory has been freed, so polling the limits again might give a different reason.
    let reason = OnceCell::new();
    let ask = || limits.exceeded(0).is_some_and(|why| reason.set(why).is_ok());
    load(&fencewright_lang::Stop::when(&ask)).map_err(|failure| match failure {
        Failure::Wrong(error) => Error::Text(error),
        Failure::Stopped(at) => {
            Error::Unfinished { reason: reason.get().cloned().unwrap_or(Reason::Cancelled), at }
        }
    })
}

/// A program with the text that it was read from. Copies are cheap.
///
/// ```
/// use fencewright::Program;
///
/// let program = Program::parse("one.fw", "shared x; thread p { x = 1; assert x == 1; }")?;
/// assert_eq!(program.properties().collect::<Vec<_>>(), ["assertions"]);
///
/// let error = Program::parse("one.fw", "shared x; thread p { y = 1; }").expect_err("there is no y");
/// assert!(error.to_string().contains("one.fw:1:22"));
/// # Ok::<(), fencewright::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    loaded: Arc<Loaded>,
}

impl Program {
    /// Reads a program from a file, in any language: `.fw`, memorax, trencher, litmus tests or C. `-` is the standard input.
    pub fn open(path: impl AsRef<Path>) -> Result<Program, Error> {
        Program::open_with(path, &Options::default())
    }

    /// Reads a program from a file with these options: values of constants, macros, or include folders for C.
    ///
    /// ```no_run
    /// use fencewright::{Options, Program};
    ///
    /// let options = Options { defines: vec![("N".into(), Some("3".into()))], ..Options::default() };
    /// let program = Program::open_with("bakery.fw", &options)?;
    /// # Ok::<(), fencewright::Error>(())
    /// ```
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Program, Error> {
        Reader { options: options.clone(), ..Reader::default() }.open(path)
    }

    /// Reads a program without included files from its text. The language is recognised by the extension of `name` and by the text, and messages use
    /// `name` as the file name.
    pub fn parse(name: &str, text: &str) -> Result<Program, Error> {
        Ok(Program { loaded: Arc::new(load(name, text.as_bytes(), None, &[])?) })
    }

    /// The names of the properties that the program states.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.loaded.program.properties.iter().map(|property| property.name.as_str())
    }

    /// The texts, syntax tree, control-flow graphs and warnings.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Mutable access to the texts, syntax tree, control-flow graphs and warnings. A program that is shared is copied first.
    pub fn loaded_mut(&mut self) -> &mut Loaded {
        Arc::make_mut(&mut self.loaded)
    }

    /// Whether a certificate is a proof about this program. No engine is involved.
    ///
    /// ```
    /// use fencewright::{Certificate, MemoryModel, Program, Question};
    ///
    /// let program = Program::parse("one.fw", "shared x; thread p { x = 1; assert x == 1; }")?;
    /// let answers = Question::under(MemoryModel::Tso).check(&program)?;
    /// let mut file = Vec::new();
    /// answers[0].certificate().expect("there is a proof").write(&mut file).expect("it can be written");
    ///
    /// let certificate = Certificate::read(&file[..]).expect("it can be read");
    /// assert_eq!(certificate.properties(), ["assertions"]);
    /// assert_eq!(certificate.model(), Some(MemoryModel::Tso));
    /// program.certify(&certificate)?;
    ///
    /// let other = Program::parse("two.fw", "shared x; thread p { x = 2; assert x == 1; }")?;
    /// assert!(other.certify(&certificate).is_err());
    /// # Ok::<(), fencewright::Error>(())
    /// ```
    pub fn certify(&self, certificate: &Certificate) -> Result<Accepted, Error> {
        self.certify_within(certificate, &Limits::default())
    }

    /// Like [`certify`](Program::certify), but stops when a limit is reached.
    pub fn certify_within(&self, certificate: &Certificate, limits: &Limits) -> Result<Accepted, Error> {
        let loaded = match certificate.claim {
            Claim::Robust { .. } => self.for_robustness(limits)?.loaded,
            _ => self.loaded_for(certificate.properties(), certificate.model(), limits)?,
        };
        if certificate.program != fingerprint(&loaded.program) {
            return Err(Error::Question("the certificate is about another program".into()));
        }
        let watched = limits.clone();
        let stop: Stop = Arc::new(move || watched.exceeded(0).is_some());
        fencewright_certify::check(certificate, &loaded.program, &Prover, &stop).map_err(|rejected| {
            match rejected {
                Rejection::Undecided(Undecided::Stopped) => {
                    // The checker has freed its memory by now. So if no limit is exceeded any more, the memory limit was the reason.
                    let memory = limits.memory.map(Reason::Memory);
                    Error::Stopped(limits.exceeded(0).or(memory).unwrap_or(Reason::Cancelled))
                }
                rejected => Error::Rejected(rejected),
            }
        })
    }

    /// Searches for data races of plain accesses for a short time. Returns a warning for each race that an execution shows; races may be missed.
    pub fn races(&self, limits: &Limits) -> Vec<Diagnostic> {
        if self.loaded.plain.is_empty() {
            return Vec::new();
        }
        let is_plain = |span: Span| self.loaded.plain.contains(&span.text());
        let races = races::races(&self.loaded.program, &is_plain, limits);
        remarks::races(Source::from(&*self.loaded), &races)
    }

    /// Adds the warnings of [`races`](Program::races) to the program.
    pub fn warn_of_races(&mut self, limits: &Limits) {
        let warnings = self.races(limits);
        if !warnings.is_empty() {
            Arc::make_mut(&mut self.loaded).warnings.extend(warnings);
        }
    }

    /// The program, read again if these properties or this model require a different translation ([`Options::ask`], [`Options::ask_models`]).
    pub(crate) fn read_for(
        &self,
        properties: &[String],
        model: MemoryModel,
        limits: &Limits,
    ) -> Result<Program, Error> {
        Ok(Program { loaded: self.loaded_for(properties, Some(model), limits)? })
    }

    fn loaded_for(
        &self,
        properties: &[String],
        model: Option<MemoryModel>,
        limits: &Limits,
    ) -> Result<Arc<Loaded>, Error> {
        let Loaded { options: present, facts, .. } = &*self.loaded;
        let mut options = present.clone();
        options.ask(properties);
        if let Some(model) = model {
            options.ask_models(&[model]);
        }
        // Without tests for late stores the translations for all models are the same.
        if !present.c.in_order && !facts.late_stores {
            options.c.in_order = false;
        }
        self.loaded_as(options, limits)
    }

    /// The program, read again if the question of robustness requires a different translation ([`Options::ask_robustness`]). Witnesses and
    /// certificates of robustness are about this program.
    pub fn for_robustness(&self, limits: &Limits) -> Result<Program, Error> {
        let mut options = self.loaded.options.clone();
        options.ask_robustness();
        Ok(Program { loaded: self.loaded_as(options, limits)? })
    }

    fn loaded_as(&self, options: Options, limits: &Limits) -> Result<Arc<Loaded>, Error> {
        if options == self.loaded.options {
            return Ok(self.loaded.clone());
        }
        let otherwise = Loaded { options, ..Loaded::clone(&self.loaded) };
        let again = |stop: &fencewright_lang::Stop<'_>| load_again(&otherwise, &self.loaded.sources, stop);
        Ok(Arc::new(loaded_within(limits, again)?))
    }
}
