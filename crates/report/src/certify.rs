//! The result of checking a certificate, as text and as JSON.

use fencewright_certify::certificate::NotionName;
use fencewright_certify::{Accepted, Certificate, Claim};
use fencewright_lang::facts::Assumption;
use fencewright_lang::source::escape;
use fencewright_program::MemoryModel;
use serde::Serialize;

use crate::json::{line, micros};
use crate::remarks::{AssumedOf, assumed_lines};
use crate::words::grouped;

/// The outcome of checking a certificate.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Every proof obligation holds; with statistics of the check.
    Accepted(Accepted),
    /// The certificate does not prove its claim, or is too hard for the checker; with the reason.
    Rejected(String),
    /// A limit was reached before the check was finished; with the reason.
    Unknown(String),
}

/// A certificate, the program it is checked against, and the result.
pub struct Certified<'a> {
    /// The file name of the certificate.
    pub name: &'a str,
    /// The file name of the program.
    pub program: &'a str,
    /// The certificate; `None` if it could not be parsed.
    pub certificate: Option<&'a Certificate>,
    /// The assumptions with which the program was read.
    pub assumed: &'a [Assumption],
    /// The result of the check.
    pub answer: Answer,
    /// The duration of the check, in seconds.
    pub seconds: f64,
}

#[derive(Serialize)]
struct Object<'a> {
    certificate: &'a str,
    file: &'a str,
    claim: Option<&'static str>,
    model: Option<&'static str>,
    properties: Option<&'a [String]>,
    verdict: &'static str,
    reason: Option<&'a str>,
    states: Option<usize>,
    control_states: Option<usize>,
    formulas: Option<usize>,
    steps: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<AssumedOf<'a>>,
    seconds: f64,
}

impl Certified<'_> {
    /// The result as one line of text with a line break. For an accepted certificate, a line for each assumption follows.
    pub fn text(&self) -> String {
        let name = escape(self.name);
        match &self.answer {
            Answer::Accepted(accepted) => {
                let counts = [
                    (accepted.states, "states"),
                    (accepted.controls, "control states"),
                    (accepted.cubes, "formulas"),
                    (accepted.steps, "steps"),
                ];
                // Zero counts are left out, because they do not apply to this kind of proof: a set of states has no control states, an invariant has
                // no states.
                let counts = counts.iter().filter(|(n, what)| *n > 0 || *what == "steps");
                let counts: Vec<String> =
                    counts.map(|&(n, what)| format!("{} {what}", grouped(n as u64))).collect();
                let proved = escape(&self.proved());
                let counts = counts.join(", ");
                let assumed = assumed_lines(self.assumed);
                format!("{name}: accepted: {proved} ({counts}, {:.3} s)\n{assumed}", self.seconds)
            }
            Answer::Rejected(why) => format!("{name}: rejected: {}\n", escape(why)),
            Answer::Unknown(why) => format!("{name}: unknown: {}\n", escape(why)),
        }
    }

    /// The result as one line of JSON with a line break.
    pub fn json(&self) -> String {
        let (verdict, reason, accepted) = match &self.answer {
            Answer::Accepted(accepted) => ("accepted", None, Some(accepted)),
            Answer::Rejected(why) => ("rejected", Some(why.as_str()), None),
            Answer::Unknown(why) => ("unknown", Some(why.as_str()), None),
        };
        line(&Object {
            certificate: self.name,
            file: self.program,
            claim: self.certificate.map(|certificate| match certificate.claim.about_properties() {
                Claim::Robust { notion: NotionName::HappensBefore } => "robust",
                Claim::Robust { notion: NotionName::Triangular } => "free of triangular races",
                Claim::Safe { .. }
                | Claim::Lazy { .. }
                | Claim::Reordered { .. }
                | Claim::Narrowed { .. }
                | Claim::Sliced { .. } => "safe",
                Claim::Unsatisfied { .. } => "unsatisfied",
            }),
            model: self.model(),
            properties: self.certificate.map(|c| c.properties()),
            verdict,
            reason,
            states: accepted.map(|a| a.states),
            control_states: accepted.map(|a| a.controls),
            formulas: accepted.map(|a| a.cubes),
            steps: accepted.map(|a| a.steps),
            assumed: self.assumed.iter().map(AssumedOf::from).collect(),
            seconds: micros(self.seconds),
        })
    }

    /// The claim that was proved, in words.
    fn proved(&self) -> String {
        match self.certificate.map(|c| c.claim.about_properties()) {
            Some(Claim::Robust { notion: NotionName::HappensBefore }) => "robust against tso".into(),
            Some(Claim::Robust { notion: NotionName::Triangular }) => "free of triangular races".into(),
            Some(
                Claim::Safe { properties }
                | Claim::Lazy { properties, .. }
                | Claim::Sliced { properties, .. },
            ) => {
                format!("{} under {}", properties.join(", "), self.model().unwrap_or_default())
            }
            Some(Claim::Unsatisfied { properties }) => {
                format!(
                    "no final state satisfies {} under {}",
                    properties.join(", "),
                    self.model().unwrap_or_default()
                )
            }
            Some(Claim::Reordered { .. } | Claim::Narrowed { .. }) | None => String::new(),
        }
    }

    fn model(&self) -> Option<&'static str> {
        self.certificate.and_then(Certificate::model).map(MemoryModel::name)
    }
}
