//! Flexible array members: each has as many elements as its allocation has room for.

use std::collections::{BTreeMap, HashMap};

use fencewright_c::typed::tree::Step;

use crate::core::{Core, NodeId, ObjectId, Origin};
use crate::nodes::Nodes;

/// For each flexible array member: its length in each object whose last member it is. In other objects it has no elements.
pub(crate) type Lengths = HashMap<NodeId, BTreeMap<ObjectId, u64>>;

/// Sets the lengths of flexible array members. Those in one class are laid out with the greatest length among them; the result has the real lengths.
pub(crate) fn set_lengths(core: &Core, nodes: &mut Nodes) -> Lengths {
    let mut lengths = Lengths::new();
    for (number, object) in (0..).zip(&core.objects) {
        let Some((field, start)) = nodes.open_array(object.node) else { continue };
        // An unused array needs no length.
        let Some(array) = nodes.part(object.node, Step::Field(field)) else { continue };
        let length = match object.origin {
            Origin::Heap { bytes, .. } => {
                let size = nodes.size(nodes.element(array)).unwrap_or(1).max(1);
                bytes.saturating_sub(start) / size
            }
            // If the initial value of a variable has elements for the array, the variable has room for these elements.
            Origin::Global | Origin::Local(_) => {
                let elements = object.initial.iter().filter_map(|(path, _)| match path.as_slice() {
                    [Step::Field(member), Step::Element(index), ..] if *member == field => Some(index + 1),
                    _ => None,
                });
                elements.max().unwrap_or(0)
            }
        };
        lengths.entry(array).or_default().insert(ObjectId(number), length);
    }
    for (array, lengths) in &lengths {
        nodes.set_length(*array, lengths.values().copied().max().unwrap_or(0));
    }
    lengths
}
