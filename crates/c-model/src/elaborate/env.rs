//! Environments: what is known, at one program point, about registers and about memory that only the current thread can reach.
//!
//! Without a fact, a value is any value of its type. Where paths meet, facts are joined ([`Env::join`]). At the head of a loop, a range that differs
//! between the paths is widened at once to all values of the type, so that elaboration reaches a fixpoint.

use fencewright_c::typed::tree::Step;
use fencewright_code::core::{Known, ObjectId, Register};
use fencewright_code::numbers::{ADDRESSES, Range};
use rustc_hash::{FxHashMap, FxHashSet};

/// The facts about one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The value if it is a constant, or the undefined value; `None` if only the range is known.
    pub known: Option<Known>,
    /// The range of the value, as a value of its C type.
    pub range: Range,
}

/// The facts about the parts of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Facts about scalar parts, by path. `None` means that the value is unknown.
    pub parts: FxHashMap<Vec<Step>, Option<Fact>>,
    /// The value of each part that `parts` does not list; `None` if unknown.
    pub rest: Option<Known>,
}

/// The facts at one program point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// Facts about registers.
    pub registers: FxHashMap<Register, Fact>,
    /// Facts about objects that only this thread can reach.
    pub objects: FxHashMap<ObjectId, Contents>,
    /// Local variables whose lifetime may have ended.
    pub gone: FxHashSet<ObjectId>,
    /// Local variables for which [`Take`](fencewright_code::core::ObjectEvent::Take) need not be emitted again: either the address was taken since
    /// control last reached the declaration, or control has reached the declaration only once, so that no pointer to an earlier instance exists.
    pub taken: FxHashSet<ObjectId>,
    /// Whether the current thread is in an atomic section.
    pub section: Section,
}

/// Whether a thread is in an atomic section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Section {
    /// On all paths to this point, the thread is outside atomic sections.
    #[default]
    Outside,
    /// On all paths to this point, the thread is in an atomic section, or in this number of nested ones.
    Inside(u8),
    /// The paths to this point differ: the thread is in an atomic section on some of them only, or in different numbers of nested ones.
    Unclear,
}

impl Env {
    /// Joins another environment into this one. With `widen`, a range that differs becomes the range of the type.
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

    /// Drops facts about registers and objects that no longer exist: those whose numbers are not less than the given ones.
    pub fn forget_from(&mut self, registers: usize, objects: usize) {
        self.registers.retain(|register, _| (register.0 as usize) < registers);
        self.objects.retain(|object, _| (object.0 as usize) < objects);
        self.gone.retain(|object| (object.0 as usize) < objects);
        self.taken.retain(|object| (object.0 as usize) < objects);
    }
}

impl Env {
    /// Drops every fact that a value is the address of this object or of a part of it.
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
    /// Contents in which every part has this value.
    pub fn all(known: Known) -> Self {
        Contents { parts: FxHashMap::default(), rest: Some(known) }
    }

    /// The fact about a part; `None` if the value of the part is unknown.
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
    /// The fact that a value is this constant.
    pub fn of(known: Known) -> Self {
        let range = match known {
            Known::Number(number) => (number.into(), number.into()),
            Known::Address(..) | Known::Function(_) => ADDRESSES,
            Known::Undefined => (i64::MIN.into(), u64::MAX.into()),
        };
        Fact { known: Some(known), range }
    }
}

/// Joins the fact `other` into `fact`. Returns whether the result still restricts the value.
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
