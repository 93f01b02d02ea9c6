//! `container_of`: the ways from a pointer to a member back to the structure around the member.

use fencewright_c::typed::tree::Step as PathStep;
use fencewright_text::{Diagnostic, Stop};

use crate::core::Core;
use crate::flat::Term;
use crate::layout::classes::Layout;
use crate::layout::containers::ways_back;
use crate::nodes::Nodes;

/// Number of pointer values reserved for the results that one `container_of` gives for members outside of any structure.
pub(super) const OUTSIDE: i64 = 1 << 40;

/// Maximum number of ways back. With 128 of them, the reserved values would exceed `HIGHEST_ADDRESS`.
pub(super) const MOST_WAYS_BACK: usize = 100;

/// A way from a member back to its structure, as in `container_of`. If the member is not in such a structure, the result points to no place: it is
/// the address of the member plus an offset that no other way uses, so that the same path, followed forward, leads to the member again.
#[derive(Debug)]
pub struct WayBack {
    /// The class of the structure.
    pub outer: usize,
    /// The path from the structure to the member.
    pub path: Vec<PathStep>,
    /// The class of the member.
    pub inner: usize,
    /// The number of a member is `width` times that of the structure plus `base`.
    pub width: i64,
    /// The constant in the number of a member, as described at `width`.
    pub base: i64,
    /// The offset added to the address of a member that is in no structure.
    pub outside: i64,
    /// The offset of the member in bytes.
    pub offset: u64,
}

impl WayBack {
    /// The condition that a pointer is a result of this way for a member outside of any structure.
    pub fn is_outside(&self, pointer: &Term) -> Term {
        pointer.clone().within(self.outside - OUTSIDE / 2, self.outside + OUTSIDE / 2 - 1)
    }

    /// The pointer to the member for which this way gave a pointer outside of any structure.
    pub(crate) fn member(&self, pointer: &Term) -> Term {
        pointer.clone().plus(-self.outside)
    }
}

impl Layout {
    /// Whether `container_of` may give pointers to this class that point to no structure.
    pub(crate) fn is_way_back_to(&self, class: usize) -> bool {
        self.ways_back.iter().any(|way| way.outer == class)
    }

    /// Finds the ways back that may be applied to members outside of the structures to which the ways lead.
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
            // Whether every place in the class of the member is in such a structure and has the number of that structure. Then the way back does not
            // change the number of a pointer.
            let only =
                (width, base) == (1, 0) && (member.scale, member.count) == (structure.scale, structure.count);
            let offset = nodes.offset(node, path.iter().copied());
            if only && offset == 0 || self.ways_back.iter().any(|way| way.outer == outer && way.path == path)
            {
                continue;
            }
            let count = self.ways_back.len() as i64;
            if self.ways_back.len() == MOST_WAYS_BACK {
                let message = "there are too many ways from members back to their structures";
                return Err(vec![Diagnostic::new(span, message).help("split the harness")]);
            }
            let (path, outside) = (path.to_vec(), (count + 1) * OUTSIDE);
            self.ways_back.push(WayBack { outer, path, inner, width, base, outside, offset });
        }
        Ok(())
    }

    /// The class at the end of a path, with `width` and `base`: from the place `number`, the path leads to the place `width * number + base`.
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
