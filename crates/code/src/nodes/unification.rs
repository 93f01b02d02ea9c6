//! Unification of two nodes, with all of their parts.

use fencewright_c::ast::RecordId;
use fencewright_c::typed::tree::{Type, TypeKind};

use super::{Clash, Nodes, Shape, Structure};
use crate::core::NodeId;

impl Nodes {
    /// Unifies two nodes, their parts and the targets of their pointers, with a worklist.
    pub fn unify(&mut self, a: NodeId, b: NodeId) -> Result<(), Clash> {
        let mut pairs = vec![(a, b)];
        while let Some((a, b)) = pairs.pop() {
            let (a, b) = (self.find(a), self.find(b));
            if a != b {
                self.join(a, b, &mut pairs)?;
            }
        }
        Ok(())
    }

    /// Merges two distinct representatives. Their parts and the targets of their pointers, which have to be unified too, are added to `pairs`.
    pub(super) fn join(
        &mut self,
        a: NodeId,
        b: NodeId,
        pairs: &mut Vec<(NodeId, NodeId)>,
    ) -> Result<(), Clash> {
        let (low, high) = {
            let (rank_a, rank_b) = (self.nodes[a.0 as usize].rank, self.nodes[b.0 as usize].rank);
            if rank_a == rank_b {
                self.nodes[a.0 as usize].rank += 1;
            }
            if rank_a < rank_b { (a, b) } else { (b, a) }
        };
        let shape = std::mem::replace(&mut self.nodes[low.0 as usize].shape, Shape::Unknown);
        let (span, pointee, integer, views) = {
            let node = &self.nodes[low.0 as usize];
            (node.span, node.pointee, node.integer, node.views)
        };
        let alike = match (&self.nodes[high.0 as usize].shape, &shape) {
            (Shape::Record(one, _), Shape::Record(other, _)) => self.is_alike(*one, *other),
            _ => false,
        };
        let ty = self.nodes[low.0 as usize].ty.take();
        let kept = &mut self.nodes[high.0 as usize];
        kept.ty = kept.ty.take().or(ty);
        kept.integer |= integer;
        kept.views.add(views);
        match (&mut kept.shape, shape) {
            (_, Shape::Unknown) => {}
            (Shape::Unknown, shape) => {
                kept.shape = shape;
                kept.span = span;
            }
            (Shape::Scalar(one), Shape::Scalar(other)) if *one == other => {}
            (Shape::Function, Shape::Function) => {}
            (Shape::Array(one, element), Shape::Array(other, further)) if *one == other => {
                pairs.push((*element, further));
            }
            (Shape::Record(_, members), Shape::Record(_, further)) if alike => {
                for (member, further) in members.iter_mut().zip(further) {
                    match (*member, further) {
                        (Some(one), Some(other)) => pairs.push((one, other)),
                        (None, further) => *member = further,
                        (Some(_), None) => {}
                    }
                }
            }
            (one, other) => {
                let (one, at) = (one.clone(), kept.span);
                let is_scalar = |shape: &Shape| matches!(shape, Shape::Scalar(_));
                let parts = is_scalar(&one) != is_scalar(&other);
                let (one, other) = ((self.describe(&one), at), (self.describe(&other), span));
                return Err(Clash { one, other, parts });
            }
        }
        let strangers = std::mem::take(&mut self.nodes[low.0 as usize].strangers);
        self.mark_strangers(high, &strangers);
        let kept = &mut self.nodes[high.0 as usize];
        match (kept.pointee, pointee) {
            (Some(one), Some(other)) => pairs.push((one, other)),
            (None, other) => kept.pointee = other,
            (Some(_), None) => {}
        }
        self.nodes[low.0 as usize].parent = Some(high);
        Ok(())
    }

    /// Whether two records are the same, or structures of one size without bit-fields that have members at the same offsets with the same parts.
    /// Scalar types are not compared here, but when the nodes of the members are unified.
    pub(super) fn is_alike(&self, one: RecordId, other: RecordId) -> bool {
        if one == other {
            return true;
        }
        let (one, other) = (self.structure(one), self.structure(other));
        let places = |record: &Structure| -> Vec<(u64, bool)> {
            record.fields.iter().map(|field| (field.offset, field.bits.is_some())).collect()
        };
        !one.union
            && !other.union
            && one.size == other.size
            && places(one) == places(other)
            && one.fields.iter().all(|field| field.bits.is_none())
            && one.fields.iter().zip(&other.fields).all(|(a, b)| self.has_same_parts(&a.ty, &b.ty))
    }

    /// Whether the parts of two types, if any, have the same layout.
    pub(super) fn has_same_parts(&self, one: &Type, other: &Type) -> bool {
        match (&one.kind, &other.kind) {
            (TypeKind::Record(one), TypeKind::Record(other)) => self.is_alike(*one, *other),
            (TypeKind::Array(one, length), TypeKind::Array(other, as_long)) => {
                length == as_long && self.has_same_parts(one, other)
            }
            (one, other) => {
                let has_parts = |kind: &TypeKind| matches!(kind, TypeKind::Record(_) | TypeKind::Array(..));
                !has_parts(one) && !has_parts(other)
            }
        }
    }
}
