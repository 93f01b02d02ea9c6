//! Ways back: from a pointer to a member to the structure around it.

use fencewright_c::typed::tree::Step as PathStep;
use fencewright_text::{Diagnostic, Stop};

use crate::core::{Core, NodeId};
use crate::flat::Term;
use crate::layout::classes::Layout;
use crate::layout::containers::ways_back;
use crate::nodes::{Nodes, Shape};

/// How many numbers are set aside for the structures that one way back finds outside of any.
pub(super) const OUTSIDE: i64 = 1 << 40;

/// Maximum number of ways back that need such numbers: all of them are below [`HIGHEST_ADDRESS`].
pub(super) const MOST_WAYS_BACK: usize = 100;

/// A way from a member back to its structure, as `container_of` goes it. Where the member is not one of such a structure, the result is a pointer to nowhere, which is
/// the address of that member and a number of its own for each way: going forward again on the same way gives the member.
#[derive(Debug)]
pub struct WayBack {
    /// The class of the structure.
    pub outer: usize,
    /// The way to the member.
    pub path: Vec<PathStep>,
    /// The class of the member.
    pub inner: usize,
    /// The number of a member is `width` times that of the structure and `base`.
    pub width: i64,
    /// See `width`.
    pub base: i64,
    /// What is added to the address of a member that is in no structure.
    pub outside: i64,
    /// Whether the member has the address of the structure.
    pub at_start: bool,
}

impl WayBack {
    /// Whether a pointer to a structure was found by this way, and points to none.
    pub fn is_outside(&self, pointer: &Term) -> Term {
        pointer.clone().within(self.outside - OUTSIDE / 2, self.outside + OUTSIDE / 2 - 1)
    }
}

/// How many bytes a part is away from the start.
pub(super) fn offset(nodes: &Nodes, mut node: NodeId, path: &[PathStep]) -> u64 {
    let mut offset: u64 = 0;
    for &step in path {
        offset = offset.saturating_add(match (step, nodes.shape_of(node)) {
            (PathStep::Field(field), Shape::Record(record, _)) => {
                nodes.structure(*record).fields[field as usize].offset
            }
            (PathStep::Element(index), Shape::Array(_, element)) => {
                index.saturating_mul(nodes.size(*element).unwrap_or(1))
            }
            _ => 0,
        });
        let Some(part) = nodes.part(node, step) else { break };
        node = part;
    }
    offset
}

impl Layout {
    /// The ways back on which a member of something else can be met.
    pub(crate) fn find_ways_back(
        &mut self,
        core: &Core,
        nodes: &Nodes,
        stop: &Stop<'_>,
    ) -> Result<(), Vec<Diagnostic>> {
        for (node, path, span) in ways_back(core, stop) {
            let Some(outer) = self.class(nodes, node) else { continue };
            let Some((inner, width, base)) = self.way(nodes, outer, path) else { continue };
            let (member, structure) = (&self.classes[inner], &self.classes[outer]);
            // Every member is one of such a structure, and has its number.
            let only =
                (width, base) == (1, 0) && (member.scale, member.count) == (structure.scale, structure.count);
            let at_start = offset(nodes, node, path) == 0;
            if only && at_start || self.ways_back.iter().any(|way| way.outer == outer && way.path == path) {
                continue;
            }
            let count = self.ways_back.len() as i64;
            if self.ways_back.len() == MOST_WAYS_BACK {
                let message = "there are too many ways from members back to their structures";
                return Err(vec![Diagnostic::new(span, message).help("split the harness")]);
            }
            let (path, outside) = (path.to_vec(), (count + 1) * OUTSIDE);
            self.ways_back.push(WayBack { outer, path, inner, width, base, outside, at_start });
        }
        Ok(())
    }

    /// Where a way to a part leads: its class, and `width` and `base` so that its number is `width * number + base`.
    pub(crate) fn way(
        &self,
        nodes: &Nodes,
        mut class: usize,
        path: &[PathStep],
    ) -> Option<(usize, i64, i64)> {
        let (mut width, mut base) = (1, 0);
        for &step in path {
            let (inner, further, offset) = self.part(class, nodes, step)?;
            let index = if let PathStep::Element(index) = step { index as i64 } else { 0 };
            (class, width, base) = (inner, width * further, base * further + offset + index);
        }
        Some((class, width, base))
    }
}
