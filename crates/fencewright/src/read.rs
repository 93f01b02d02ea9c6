//! Programs, as they are read.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fencewright_certify::{Accepted, Certificate, Claim, Stop};
use fencewright_fingerprint::fingerprint;
use fencewright_lang::load::{Failure, load_again};
use fencewright_lang::{Loaded, Loader, Options, load};
use fencewright_smt::Prover;

use crate::Error;

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
    /// Reads a program from a file, in whichever language it is written: `.fw`, memorax, trencher, litmus tests or C.
    pub fn open(path: impl AsRef<Path>) -> Result<Program, Error> {
        Program::open_with(path, &Options::default())
    }

    /// Reads a program from a file, with other values for its constants, with macros, or with folders for what a C program includes.
    ///
    /// ```no_run
    /// use fencewright::{Options, Program};
    ///
    /// let options = Options { defines: vec![("N".into(), Some("3".into()))], ..Options::default() };
    /// let program = Program::open_with("bakery.fw", &options)?;
    /// # Ok::<(), fencewright::Error>(())
    /// ```
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Program, Error> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
        let open = |name: &str| match fs::metadata(name) {
            Ok(file) if !file.is_file() => Err("this is not a regular file".to_owned()),
            Ok(_) => fs::read(name).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let loader = Loader { front_end: None, options, stop: &fencewright_lang::Stop::never(), open: &open };
        match loader.load(&path.to_string_lossy(), &bytes) {
            Ok(loaded) => Ok(Program { loaded: Arc::new(loaded) }),
            Err(Failure::Wrong(error)) => Err(Error::Text(error)),
            Err(Failure::Stopped(_)) => unreachable!("nobody asks to stop"),
        }
    }

    /// Reads a program that includes no other files from its text. The name is that of a file: its extension says which language this is, and
    /// messages call the program so.
    pub fn parse(name: &str, text: &str) -> Result<Program, Error> {
        Ok(Program { loaded: Arc::new(load(name, text.as_bytes(), None, &[])?) })
    }

    /// The names of the properties that it states.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.loaded.program.properties.iter().map(|property| property.name.as_str())
    }

    /// Everything that is known about it: texts, syntax tree, control-flow graphs, warnings.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
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
        let loaded = match certificate.claim {
            Claim::Robust { .. } => self.for_robustness()?.loaded,
            _ => self.loaded_for(certificate.properties())?,
        };
        if certificate.program != fingerprint(&loaded.program) {
            return Err(Error::Question("the certificate is about another program".into()));
        }
        let stop: Stop = Arc::new(|| false);
        fencewright_certify::check(certificate, &loaded.program, &Prover, &stop).map_err(Error::Rejected)
    }

    /// The same program with something added to what is known about it.
    pub(crate) fn with(loaded: Loaded) -> Program {
        Program { loaded: Arc::new(loaded) }
    }

    /// The program as it has to be read for questions about these properties ([`Options::ask`]).
    pub(crate) fn loaded_for(&self, properties: &[String]) -> Result<Arc<Loaded>, Error> {
        let mut otherwise = Loaded::clone(&self.loaded);
        otherwise.options.ask(properties);
        self.loaded_as(otherwise)
    }

    /// The program as it has to be read for the question whether it is robust ([`Options::ask_robustness`]): what witnesses and certificates of robustness are about.
    pub fn for_robustness(&self) -> Result<Program, Error> {
        let mut otherwise = Loaded::clone(&self.loaded);
        otherwise.options.ask_robustness();
        Ok(Program { loaded: self.loaded_as(otherwise)? })
    }

    fn loaded_as(&self, otherwise: Loaded) -> Result<Arc<Loaded>, Error> {
        if otherwise.options == self.loaded.options {
            return Ok(self.loaded.clone());
        }
        Ok(Arc::new(load_again(&otherwise, &self.loaded.sources)?))
    }
}
