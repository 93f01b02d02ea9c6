//! The data format of certificates: types, and their JSON form.
//!
//! A certificate states a claim and contains its proofs. Each proof is an inductive invariant or a set of states. An invariant names a machine with
//! its parameters and gives, for each reachable control state of the machine, a condition on the cells: a disjunction of conjunctions of constraints.
//! A constraint states that a linear form is at most 0, or a multiple of a number. The format is described in docs/certificates.md.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fencewright_memory::linear::{self, Cube};
use fencewright_memory::{Bound, BufferShape, Buffers, Control, Entry, Kept, Linear, Summarised};
use fencewright_program::{LocationId, MemoryModel, ThreadId};
use serde::{Deserialize, Serialize};

use crate::states::StateSet;

/// The name of the format.
pub const FORMAT: &str = "fencewright-certificate";
/// The version of the format.
pub const VERSION: u32 = 3;

/// A claim about a program, with the proof of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Must be [`FORMAT`].
    pub format: String,
    /// Must be [`VERSION`].
    pub version: u32,
    /// The fingerprint of the program (module `fingerprint` of crate `verdict`), by which users notice that two certificates were mixed up. The
    /// checker does not depend on it.
    pub program: String,
    /// The statement about the program that the proofs are meant to show.
    pub claim: Claim,
    /// The proofs of the claim, in the order in which the checker uses them.
    pub proofs: Vec<Proof>,
}

/// The reason why a text is not a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The reason in words.
    pub message: String,
    /// The line and column of the error, counted from 1; `None` if the input could not be read, so that there is no text.
    pub place: Option<(usize, usize)>,
}

/// The claim of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Claim {
    /// The program has these properties under the memory model of the proof. A single proof shows them all.
    Safe {
        /// The names of the properties.
        properties: Vec<String>,
    },
    /// These properties, all of them `finally exists`, do not hold under the memory model of the proof: no final state satisfies any of their
    /// formulas.
    Unsatisfied {
        /// The names of the properties.
        properties: Vec<String>,
    },
    /// The program is robust against TSO: in the program instrumented with attacks, no attack succeeds under SC. There is one proof for each group of
    /// attacks.
    Robust {
        /// Robustness, or freedom from triangular races.
        notion: NotionName,
    },
    /// The program has these properties under TSO, because the program in which stores are delayed along some paths has them under SC and is robust.
    Lazy {
        /// The names of the properties.
        properties: Vec<String>,
        /// The extensions, in the order in which they are applied.
        extensions: Vec<Extension>,
    },
    /// The program has these properties under PSO, because the program that issues its stores in every order,
    /// [`Extended::reordered`](fencewright_transform::extend::Extended::reordered), has them under TSO. (Both are the same program if no store can
    /// overtake another one.)
    Reordered {
        /// The claim about TSO, which the proofs show.
        tso: Box<Claim>,
    },
    /// The program has these properties because programs with fewer threads have them: [`Slice`](fencewright_transform::slice::Slice)s, which omit
    /// threads that are irrelevant to a property.
    Sliced {
        /// The names of the properties.
        properties: Vec<String>,
        /// The slices. Each [`Concern`](fencewright_transform::slice::Concern) of each property is covered by a slice for which the property is
        /// claimed.
        parts: Vec<Part>,
    },
    /// The program has these properties because the program whose choices range over fewer values has them:
    /// [`narrowed`](fencewright_transform::narrow::narrowed).
    Narrowed {
        /// The claim about that program, which the proofs show.
        fewer: Box<Claim>,
    },
}

/// A claim about slices that are equal up to names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// For each slice, the threads that are kept, in order. The proofs are about the first slice.
    pub slices: Vec<Vec<u32>>,
    /// The claim about the first slice. It holds for the other slices too, because they are equal up to names.
    pub claim: Claim,
}

impl Claim {
    /// The memory model of the claim, given its proofs; `None` if it depends on a proof or a slice that is missing.
    pub fn model(&self, proofs: &[Proof]) -> Option<MemoryModel> {
        match self {
            Claim::Sliced { parts, .. } => parts.first()?.claim.model(proofs),
            Claim::Safe { .. } | Claim::Unsatisfied { .. } => proofs.first().map(Proof::model),
            Claim::Robust { .. } | Claim::Lazy { .. } => Some(MemoryModel::Tso),
            Claim::Reordered { .. } => Some(MemoryModel::Pso),
            Claim::Narrowed { fewer } => fewer.model(proofs),
        }
    }

    /// The innermost claim, without the `Reordered` and `Narrowed` around it. If the claim is about properties, the innermost claim names them.
    pub fn about_properties(&self) -> &Claim {
        match self {
            Claim::Reordered { tso: claim } | Claim::Narrowed { fewer: claim } => claim.about_properties(),
            _ => self,
        }
    }

    /// The names of the properties that the claim is about; empty for robustness.
    pub fn properties(&self) -> &[String] {
        match self.about_properties() {
            Claim::Safe { properties }
            | Claim::Unsatisfied { properties }
            | Claim::Lazy { properties, .. }
            | Claim::Sliced { properties, .. } => properties,
            Claim::Robust { .. } | Claim::Reordered { .. } | Claim::Narrowed { .. } => &[],
        }
    }
}

/// Notions of robustness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum NotionName {
    HappensBefore,
    Triangular,
}

/// Paths of one thread along which its stores are delayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// The thread that is extended, by its index in the program.
    pub thread: u32,
    /// The paths, as numbers of edges of the program that the previous extensions produced.
    pub paths: Vec<Vec<u32>>,
}

/// A proof that a program has certain properties under a memory model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// An inductive invariant of a machine.
    Invariant(InductiveInvariant),
    /// A set of states. It may be large, so copies of a certificate share it.
    States(Arc<StateSet>),
}

impl Proof {
    /// The memory model that the proof is about.
    pub fn model(&self) -> MemoryModel {
        match self {
            Proof::Invariant(invariant) => invariant.machine.buffers().model(),
            Proof::States(set) => set.model.into(),
        }
    }

    /// The invariant; `None` if the proof is a set of states.
    pub fn invariant(&self) -> Option<&InductiveInvariant> {
        match self {
            Proof::Invariant(invariant) => Some(invariant),
            Proof::States(_) => None,
        }
    }

    /// The invariant, mutable; `None` if the proof is a set of states.
    pub fn invariant_mut(&mut self) -> Option<&mut InductiveInvariant> {
        match self {
            Proof::Invariant(invariant) => Some(invariant),
            Proof::States(_) => None,
        }
    }
}

/// An inductive invariant of a machine, up to symmetry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InductiveInvariant {
    /// The machine whose states the invariant describes, with its parameters.
    pub machine: MachineName,
    /// Classes of threads that may be exchanged: a state represents all states that result from permuting the threads within classes.
    pub symmetry: Vec<Vec<u32>>,
    /// Names of the cells that the invariants mention. For human readers only.
    pub cells: BTreeMap<u32, String>,
    /// The reachable control states with their invariants.
    pub states: Vec<StateInvariant>,
}

/// A machine by name and parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum MachineName {
    /// Sequential consistency. The variant has braces so that unknown keys are an error.
    Sc {},
    /// Exact queues with a bound; the proof has to show that no buffer overflows.
    Queue {
        /// The memory model of the queues.
        model: Model,
        /// The capacity: one number for each thread, or a list with one for each memory cell.
        #[serde(with = "bound")]
        bound: Bound,
    },
    /// [`Buffers::Partial`]: buffers that keep the order of some stores only.
    Partial {
        /// The memory model of the buffers.
        model: Model,
        /// Maximum number of stores kept in order (PSO: of each memory cell).
        k: u32,
        /// The end of the buffer whose stores are kept in order.
        kept: KeptEnd,
        /// The memory cells with a summary cell, which holds the values of the stores to the memory cell that are not kept in order; omitted if there
        /// are none.
        #[serde(default, skip_serializing_if = "Summarised::is_empty", with = "memory_cells")]
        summaries: Summarised,
    },
}

/// (De)serialises a bound as a number or as a list.
mod bound {
    use fencewright_memory::{Bound, CellBounds};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Thread(u32),
        Cell(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(bound: &Bound, to: S) -> Result<S::Ok, S::Error> {
        let written = match bound {
            Bound::Thread(bound) => Written::Thread(*bound),
            Bound::Cell(bounds) => Written::Cell(bounds.list().to_vec()),
        };
        written.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bound, D::Error> {
        let wrong = || D::Error::custom("a bound is a number, or a list of 1 to 64 numbers up to 255");
        match Written::deserialize(from).map_err(|_| wrong())? {
            Written::Thread(bound) => Ok(Bound::Thread(bound)),
            Written::Cell(list) => CellBounds::new(&list).map(Bound::Cell).ok_or_else(wrong),
        }
    }
}

/// (De)serialises a set of memory cells as a list.
mod memory_cells {
    use fencewright_memory::Summarised;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(cells: &Summarised, to: S) -> Result<S::Ok, S::Error> {
        cells.cells().collect::<Vec<u32>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Summarised, D::Error> {
        let list = Vec::<u32>::deserialize(from)?;
        let cells: Summarised = list.iter().copied().collect();
        match cells.cells().eq(list) {
            true => Ok(cells),
            false => {
                Err(D::Error::custom("memory cells with summaries are not in order, or beyond the 64th"))
            }
        }
    }
}

/// A memory model with buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Model {
    Tso,
    Pso,
}

/// Which stores of a partial buffer are kept in order: the oldest or the newest ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum KeptEnd {
    Oldest,
    Newest,
}

/// A control state and its invariant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateInvariant {
    /// The location of each thread.
    pub locations: Vec<u32>,
    /// The shape of each buffer.
    pub buffers: Vec<Buffer>,
    /// The holder of the global lock.
    pub lock: Option<u32>,
    /// The invariant: a disjunction of conjunctions of constraints.
    pub invariant: Vec<Vec<Constraint>>,
}

/// The shape of a buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// The ordered part, oldest first: memory cells, and null for barriers.
    pub queue: Vec<Option<u32>>,
    /// The memory cells of the stores that are not in the ordered part.
    pub set: Vec<u32>,
}

/// `terms + constant <= 0`; with a modulus, `terms + constant` is a multiple of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// Cells with their coefficients.
    pub terms: Vec<(u32, i64)>,
    /// The constant term of the linear form.
    pub constant: i64,
    /// The modulus; omitted for an inequality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulus: Option<i64>,
}

impl Constraint {
    /// The serialised form of a constraint.
    pub fn of(constraint: &linear::Constraint) -> Self {
        let Linear { terms, constant } = constraint.form().clone();
        let modulus = match constraint {
            linear::Constraint::AtMost(_) => None,
            linear::Constraint::Multiple(_, modulus) => Some(*modulus),
        };
        Constraint { terms, constant, modulus }
    }

    fn meaning(&self) -> linear::Constraint {
        let form = Linear { terms: self.terms.clone(), constant: self.constant };
        match self.modulus {
            None => linear::Constraint::AtMost(form),
            Some(modulus) => linear::Constraint::Multiple(form, modulus),
        }
    }
}

impl MachineName {
    /// The representation of buffers that belongs to the machine.
    pub fn buffers(self) -> Buffers {
        let of = |model| if model == Model::Pso { MemoryModel::Pso } else { MemoryModel::Tso };
        match self {
            MachineName::Sc {} => Buffers::Sc,
            MachineName::Queue { model, bound } => Buffers::Queue { model: of(model), bound },
            MachineName::Partial { model, k, kept, summaries } => Buffers::Partial {
                model: of(model),
                k,
                summaries,
                kept: if kept == KeptEnd::Oldest { Kept::Oldest } else { Kept::Newest },
            },
        }
    }
}

impl Certificate {
    /// A certificate for the program with this fingerprint.
    pub fn new(program: String, claim: Claim, proofs: Vec<Proof>) -> Self {
        Certificate { format: FORMAT.to_string(), version: VERSION, program, claim, proofs }
    }

    /// The names of the properties that the certificate is about; empty for robustness.
    pub fn properties(&self) -> &[String] {
        self.claim.properties()
    }

    /// The memory model that the certificate is about; `None` if it depends on a proof or a slice that is missing.
    pub fn model(&self) -> Option<MemoryModel> {
        self.claim.model(&self.proofs)
    }

    /// Writes the certificate as JSON.
    pub fn write(&self, to: impl io::Write) -> io::Result<()> {
        Ok(serde_json::to_writer(to, self)?)
    }

    /// Reads a certificate from JSON. The text is streamed, because it may be much larger than the result.
    pub fn read(text: impl io::Read) -> Result<Self, Unreadable> {
        serde_json::from_reader(io::BufReader::new(text)).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let message = error.to_string();
            let message =
                message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message);
            Unreadable { message: message.into(), place: (line > 0).then_some((line, column)) }
        })
    }
}

impl StateInvariant {
    /// The control state in the form that the machine uses.
    pub fn control(&self) -> Control {
        let entry = |e: &Option<u32>| e.map_or(Entry::Barrier, Entry::Store);
        let shape =
            |b: &Buffer| BufferShape { queue: b.queue.iter().map(entry).collect(), set: b.set.clone() };
        Control {
            locations: self.locations.iter().map(|&l| LocationId(l)).collect(),
            buffers: self.buffers.iter().map(shape).collect(),
            lock: self.lock.map(ThreadId),
        }
    }

    /// The invariant in the form that the checker uses: a list of cubes.
    pub fn cubes(&self) -> Vec<Cube> {
        self.invariant.iter().map(|cube| cube.iter().map(Constraint::meaning).collect()).collect()
    }
}
