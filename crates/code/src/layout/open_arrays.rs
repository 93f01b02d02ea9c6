//! Flexible array members: each has as many elements as its allocation has room for.

use std::collections::HashMap;

use fencewright_c::typed::tree::Step;
use fencewright_text::Diagnostic;

use crate::core::{Core, NodeId, Origin};
use crate::nodes::Nodes;

/// Sets the lengths of flexible array members; all those in one class must have the same length.
pub(crate) fn set_lengths(core: &Core, nodes: &mut Nodes) -> Result<(), Vec<Diagnostic>> {
    let mut lengths: HashMap<NodeId, u64> = HashMap::new();
    for object in &core.objects {
        let Origin::Heap { bytes, .. } = object.origin else { continue };
        let Some((field, start)) = nodes.open_array(object.node) else { continue };
        // An unused array needs no length.
        let Some(array) = nodes.part(object.node, Step::Field(field)) else { continue };
        let size = nodes.size(nodes.element(array)).unwrap_or(1).max(1);
        let length = bytes.saturating_sub(start) / size;
        if *lengths.entry(array).or_insert(length) != length {
            let message =
                "structures of one kind are allocated with arrays of different lengths at their ends";
            return Err(vec![
                Diagnostic::new(object.span, message)
                    .help("allocate all of them with the longest array that is needed"),
            ]);
        }
    }
    lengths.into_iter().for_each(|(array, length)| nodes.set_length(array, length));
    Ok(())
}
