//! What is known about registers and about memory that only one thread can reach, at one place of its code.
//!
//! A fact that is missing means: any value of the type. Where paths of control meet, only what holds on both is kept ([`Env::join`]), and where
//! a loop comes back to its head, a range that has grown is forgotten at once, so that rounds of elaboration come to an end.

use fencewright_c::typed::tree::Step;
use fencewright_code::core::{Known, ObjectId, Register};
use fencewright_code::numbers::{ADDRESSES, Range};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known about one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The value itself.
    pub known: Option<Known>,
    /// Which numbers it can be, as C sees them.
    pub range: Range,
}

/// What is known about the parts of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Scalar parts by the way to them; `None` if nothing is known about one.
    pub parts: FxHashMap<Vec<Step>, Option<Fact>>,
    /// What all other parts hold, if that is known.
    pub rest: Option<Known>,
}

/// What is known at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// About registers.
    pub registers: FxHashMap<Register, Fact>,
    /// About objects that only this thread can reach.
    pub objects: FxHashMap<ObjectId, Contents>,
    /// Local variables that may be gone.
    pub gone: FxHashSet<ObjectId>,
    /// Local variables to which all pointers are pointers to the one that is there now, or whose address was taken since it came into being.
    pub taken: FxHashSet<ObjectId>,
    /// Whether this thread is in an indivisible section.
    pub section: Section,
}

/// Whether a thread is in an indivisible section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Section {
    /// It is not.
    #[default]
    Outside,
    /// It is.
    Inside,
    /// That depends on how it came here.
    Unclear,
}

impl Env {
    /// What holds here and there. With `widen`, a range that differs is forgotten.
    pub fn join(&mut self, other: &Env, widen: bool) {
        if self.section != other.section {
            self.section = Section::Unclear;
        }
        self.registers.retain(|register, fact| match other.registers.get(register) {
            Some(there) => joined(fact, there, widen),
            None => false,
        });
        self.objects.retain(|object, contents| match other.objects.get(object) {
            Some(there) => {
                contents.join(there, widen);
                true
            }
            None => false,
        });
        self.gone.extend(&other.gone);
        self.taken.retain(|object| other.taken.contains(object));
    }

    /// Only what is about registers and objects with smaller numbers: the others are not there any more.
    pub fn forget_from(&mut self, registers: usize, objects: usize) {
        self.registers.retain(|register, _| (register.0 as usize) < registers);
        self.objects.retain(|object, _| (object.0 as usize) < objects);
        self.gone.retain(|object| (object.0 as usize) < objects);
        self.taken.retain(|object| (object.0 as usize) < objects);
    }
}

impl Env {
    /// Forgets who holds the address of an object, or of a part of it.
    pub fn forget_pointers(&mut self, object: ObjectId) {
        let points = |fact: &Fact| matches!(&fact.known, Some(Known::Address(other, _)) if *other == object);
        self.registers.retain(|_, fact| !points(fact));
        for part in self.objects.values_mut().flat_map(|contents| contents.parts.values_mut()) {
            if part.as_ref().is_some_and(points) {
                *part = None;
            }
        }
    }
}

impl Contents {
    /// Every part holds this.
    pub fn all(known: Known) -> Self {
        Contents { parts: FxHashMap::default(), rest: Some(known) }
    }

    /// What a part holds: the fact about it, or what all others hold.
    pub fn part(&self, way: &[Step]) -> Option<Fact> {
        match self.parts.get(way) {
            Some(fact) => fact.clone(),
            None => self.rest.clone().map(Fact::of),
        }
    }

    fn join(&mut self, other: &Contents, widen: bool) {
        if self == other {
            return;
        }
        let ways: Vec<Vec<Step>> =
            other.parts.keys().filter(|way| !self.parts.contains_key(*way)).cloned().collect();
        for way in ways {
            let here = self.part(&way);
            self.parts.insert(way, here);
        }
        for (way, fact) in &mut self.parts {
            if let (Some(here), there) = (&mut *fact, other.part(way))
                && !there.is_some_and(|there| joined(here, &there, widen))
            {
                *fact = None;
            }
        }
        if self.rest != other.rest {
            self.rest = None;
        }
    }
}

impl Fact {
    /// The fact that a value is this.
    pub fn of(known: Known) -> Self {
        let range = match known {
            Known::Number(number) => (number.into(), number.into()),
            Known::Address(..) | Known::Function(_) => ADDRESSES,
            Known::Undefined => (i64::MIN.into(), u64::MAX.into()),
        };
        Fact { known: Some(known), range }
    }
}

/// Whether anything is left of a fact that has to hold together with another.
fn joined(fact: &mut Fact, other: &Fact, widen: bool) -> bool {
    if fact == other {
        return true;
    }
    let number =
        |fact: &Fact| !matches!(fact.known, Some(Known::Address(..) | Known::Function(_) | Known::Undefined));
    if fact.known != other.known {
        fact.known = None;
    }
    if fact.range != other.range {
        if widen || !number(fact) || !number(other) {
            return false;
        }
        fact.range = (fact.range.0.min(other.range.0), fact.range.1.max(other.range.1));
    }
    fact.known.is_some() || number(other)
}
