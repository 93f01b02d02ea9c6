//! A search for an execution that overflows a bounded store buffer.

use fencewright_memory::Bound;
use fencewright_program::{Expr, MemoryModel, Program, Property, PropertyKind, Trace};
use fencewright_verdict::{Limits, Progress, Reason, Task};

use super::code::Code;
use super::search::{self, Decided};
use super::{FEW_SAMPLES, Options, Reduction, samples, trace, why_incomplete};

/// A shortest execution to a state from which a store does not fit; `None` if every store fits.
pub fn search(
    program: &Program,
    model: MemoryModel,
    bound: Bound,
    limits: &Limits,
    progress: &Progress,
) -> Result<Option<Trace>, Reason> {
    // A reduction might omit the overflowing store.
    let options = Options { reduction: Reduction::None, buffer_bound: Some(bound), ..Options::default() };
    let task = Task::new(program, model, vec![unnoticed()]);
    let mut code = Code::new(&task, &options, None, limits)?;
    code.overflow_decides = true;
    let samples = samples(program, FEW_SAMPLES);
    let mut found = Ok(None);
    let mut on_decided = |decided: &Decided<'_>| {
        let lost = Reason::Contradiction("a stored state cannot be reached again".into());
        let path = trace::path(&task, &code, decided, &samples, Some(bound), &limits.finishing());
        found = path.and_then(|path| path.ok_or(lost)).map(|path| Some(path.trace));
    };
    let seen = search::search(&task, &code, &options, &samples, &[false], limits, progress, &mut on_decided)?;
    match found {
        // No store overflowed in the states found, because `overflow_decides` would have made the search report it.
        Ok(None) => why_incomplete(&seen, &options, FEW_SAMPLES).map_or(Ok(None), Err),
        found => found,
    }
}

/// A property that no state violates; tasks about overflow have no other property.
pub fn unnoticed() -> Property {
    Property { name: "overflow".into(), kind: PropertyKind::Never(Expr::Const(0)), ..Property::assertions() }
}
