//! Large arrays of which only the first elements are laid out. The model ends at an access to another element: the answer for such an execution is
//! unknown.

use std::collections::HashMap;

use fencewright_c::typed::tree::Step;
use fencewright_text::Stop;

use crate::core::{
    Base, Core, Known, Location, NodeId, ObjectId, Origin, Projection, StmtKind, Value, each_place,
    each_statement,
};
use crate::layout::open_arrays::Lengths;
use crate::nodes::{Nodes, Shape};

/// The numbers of elements of large arrays to lay out if not all elements fit, in the order in which they are tried.
pub(crate) const FEWER: [u64; 4] = [256, 64, 16, 4];

/// For each array of which only the first elements are laid out: the number of these elements.
pub(crate) type Laid = HashMap<NodeId, u64>;

/// For each array with more than `most` elements, except flexible ones, the number of elements to lay out: `most`, or more if the program uses a
/// greater constant index. Arrays of which this includes all elements are left out.
pub(crate) fn fewer(core: &Core, nodes: &Nodes, lengths: &Lengths, most: u64, stop: &Stop<'_>) -> Laid {
    let mut constants = Constants { core, nodes, most: HashMap::new() };
    for (number, object) in (0..).zip(&core.objects) {
        for (path, known) in &object.initial {
            constants.path(ObjectId(number), path);
            if let Known::Address(target, path) = known {
                constants.path(*target, path);
            }
        }
    }
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| constants.statement(&statement.kind));
    }
    let constants = constants.most;
    let mut laid = Laid::new();
    for node in stop.polled((0..nodes.len() as u32).map(NodeId)) {
        // The lengths of flexible arrays are those of allocations, which are laid out as a whole.
        let is_open = lengths.contains_key(&node);
        if let (Shape::Array(length, _), true, false) =
            (nodes.shape_of(node), nodes.find(node) == node, is_open)
        {
            let wanted = constants.get(&node).map_or(0, |index| index.saturating_add(1)).max(most);
            if wanted < *length {
                laid.insert(node, wanted);
            }
        }
    }
    laid
}

/// The greatest constant index into each array.
struct Constants<'a> {
    core: &'a Core,
    nodes: &'a Nodes,
    most: HashMap<NodeId, u64>,
}

impl Constants<'_> {
    fn statement(&mut self, kind: &StmtKind) {
        each_place(kind, &mut |place| self.place(place));
        kind.values(&mut |value| {
            value.each(&mut |part| {
                if let Value::Container { node, path, .. } = part {
                    self.walk(*node, path);
                }
            });
        });
    }

    fn place(&mut self, place: &Location) {
        let path: Vec<Step> = place.least_path().collect();
        match place.base {
            Base::Object(object) => self.path(object, &path),
            Base::Pointed(_, node) => self.walk(node, &path),
        }
        // An index on the path may contain addresses of other places.
        for projection in &place.path {
            if let Projection::Element(index, _) = projection {
                index.each(&mut |part| {
                    if let Value::Address(inner) = part {
                        self.place(inner);
                    }
                });
            }
        }
    }

    fn path(&mut self, object: ObjectId, path: &[Step]) {
        let Some(of) = self.core.objects.get(object.0 as usize) else { return };
        self.walk(of.node, path);
        // The first step may select an element of an allocation, whose node is that of one element.
        if matches!(of.origin, Origin::Heap { .. }) && !path.is_empty() {
            self.walk(of.node, &path[1..]);
        }
    }

    fn walk(&mut self, node: NodeId, path: &[Step]) {
        let mut node = self.nodes.find(node);
        for step in path {
            if let (Step::Element(index), Shape::Array(..)) = (step, self.nodes.shape_of(node)) {
                let most = self.most.entry(node).or_default();
                *most = (*most).max(*index);
            }
            let Some(part) = self.nodes.part(node, *step) else { return };
            node = part;
        }
    }
}
