//! Finds the places for fences in a source text, and writes fences back into the text.

use std::cell::OnceCell;

use fencewright_engines::fingerprint::fingerprint;
use fencewright_engines::{Limits, Progress, Reason};
use fencewright_lang::edit::{Edit, What};
use fencewright_lang::load::{Failure, load_again};
use fencewright_lang::lower::Defines;
use fencewright_lang::places::{self, Placed};
use fencewright_lang::{Diagnostic, Loaded, Sources, Stop, edit};

use crate::candidate::{Candidate, Kind};
use crate::fenced::{Fenced, same};
use crate::goal::{Examined, Goal};
use crate::synthesis::Synthesis;

/// The reason why the places of a program cannot be used.
#[derive(Clone, Debug)]
pub enum NoPlaces {
    /// The program with its places is rejected, for instance because it is too large.
    Refused(Vec<Diagnostic>),
    /// The program with an empty step at every place differs from the original program: a defect of Fencewright.
    Contradiction,
}

/// The places of a program. Checks that the program with an empty step at every place is equivalent to the original one.
pub fn places(loaded: &Loaded, defines: &Defines) -> Result<Placed, NoPlaces> {
    let placed = places::places(loaded, defines).map_err(NoPlaces::Refused)?;
    match same(&Fenced::new(&placed, &[]).program, &loaded.program) {
        true => Ok(placed),
        false => Err(NoPlaces::Contradiction),
    }
}

/// The edit that inserts a fence into the text.
pub fn edit_for(fence: &Candidate) -> Edit {
    let what = match fence.kind {
        Kind::Full => What::Fence,
        Kind::StoreStore => What::StoreFence,
        Kind::Swap => What::Swap,
    };
    Edit { what, place: fence.place.clone() }
}

/// The files of a program with the fences inserted, loaded again and verified; the error says why this is impossible.
pub fn edited(
    loaded: &Loaded,
    found: &Synthesis,
    goal: &dyn Goal,
    limits: &Limits,
) -> Result<Sources, String> {
    let edits: Vec<Edit> = found.fences.iter().map(|chosen| edit_for(&chosen.fence)).collect();
    let texts = edit::edited(loaded, &edits)?;
    if edits.is_empty() {
        return Ok(texts);
    }
    let unwritable = || "the fences cannot be written here in this format".to_string();
    let unverified = |reason: String| format!("the edited text could not be verified: {reason}");
    let reason = OnceCell::new();
    let ask = || limits.exceeded(0).is_some_and(|why| reason.set(why).is_ok());
    let again = load_again(loaded, &texts, &Stop::when(&ask)).map_err(|failure| match failure {
        Failure::Wrong(_) => unwritable(),
        Failure::Stopped(_) => unverified(reason.get().cloned().unwrap_or(Reason::Cancelled).to_string()),
    })?;
    // The edited text is verified itself, because its translation may differ from the program with these fences. A locked instruction in place of a
    // store also reads the value that it overwrites. And where there is a fence, the translation of C omits tests for stores that reach memory after
    // the lifetime of their object.
    // If it is the same program, it has been verified already.
    if found.program.as_ref().is_some_and(|program| fingerprint(program) == fingerprint(&again.program)) {
        return Ok(texts);
    }
    match goal.examine(&again.program, limits, &Progress::default()) {
        Examined::Met(_) => Ok(texts),
        Examined::Violated(_) | Examined::Lost(_) => Err(unwritable()),
        Examined::Unknown(reason) => Err(unverified(reason)),
    }
}
