//! Points-to classes: sets of places in memory, found by unification (Steensgaard, POPL 1996), with a separate node for each member of a structure.
//!
//! A *node* is a set of places of the same [`Shape`]. Every object in memory is represented by a tree of nodes: one for the object itself and, below
//! it, one for each member, created at its first use, and one for all elements of each array. The target of a pointer is a node as well. Where a
//! pointer is copied, the two target nodes are unified, and so are their members and elements; in the end each equivalence class of nodes gets a
//! layout of its own. So a node must never stand for places of two shapes: unifying two incompatible nodes gives a [`Clash`], which says which part
//! of the source gave each of the two its shape.

mod clash;
mod unification;

use std::rc::Rc;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::RecordId;
use fencewright_c::typed::tree::{Record, Step, Type, TypeKind};
use fencewright_program::Span;
use rustc_hash::FxHashSet;

pub use self::clash::Clash;
use crate::core::{NodeId, Strangers, View};

/// All nodes of a program.
#[derive(Clone, Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    records: Vec<Structure>,
    clashes: Vec<Clash>,
}

/// A structure or union type.
#[derive(Clone, Debug)]
pub struct Structure {
    /// The tag, the name of a `typedef` for the type, or a generated name.
    pub name: Rc<str>,
    /// Whether this is a union.
    pub union: bool,
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The members in the order of their declarations.
    pub fields: Vec<Member>,
    /// The declaration.
    pub span: Span,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name; a generated name for an anonymous structure or union.
    pub name: Rc<str>,
    /// The declared type.
    pub ty: Type,
    /// The offset from the start of the structure, in bytes.
    pub offset: u64,
    /// The width of a bit-field in bits; `None` for other members.
    pub bits: Option<u32>,
    /// The declaration.
    pub span: Span,
}

#[derive(Clone, Debug)]
struct Node {
    /// The node that this one was unified with; `None` for a representative.
    parent: Option<NodeId>,
    /// Upper bound on the length of the parent paths that end at this node (union by rank).
    rank: u32,
    shape: Shape,
    /// The first type that its places were used with, for messages; `None` if there was none so far.
    ty: Option<Type>,
    /// The source that determines the shape.
    span: Span,
    /// The target node of the pointers that its places hold; `None` if it has not been created yet.
    pointee: Option<NodeId>,
    /// Whether the program computes with pointers to this node as integers.
    integer: bool,
    /// The integer types with which its places are accessed.
    views: Views,
    /// Numbers, other than addresses of objects, that are stored or compared where the program expects pointers to this node.
    strangers: Strangers,
}

/// The kinds of integer types with which a place is accessed. If there are several, reads have to convert the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Views {
    truth: bool,
    signed: bool,
    unsigned: bool,
}

impl Views {
    fn of(ty: &Type) -> Self {
        let view = View::of(ty);
        Views {
            truth: view == View::Truth,
            signed: matches!(view, View::Signed(_)),
            unsigned: matches!(view, View::Unsigned(_)),
        }
    }

    fn add(&mut self, other: Views) {
        self.truth |= other.truth;
        self.signed |= other.signed;
        self.unsigned |= other.unsigned;
    }
}

/// The shape of the places of a node: unknown, scalar, aggregate or function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Unknown so far: `void`.
    Unknown,
    /// A number or a pointer.
    Scalar(Scalar),
    /// A structure or union, with the nodes of those members that the program uses. All members of a union share the node of its first member.
    Record(RecordId, Vec<Option<NodeId>>),
    /// An array: its length and the node of all its elements.
    Array(u64, NodeId),
    /// A function.
    Function,
}

/// Scalars with the same representation in memory: the same number of bits, signed or unsigned; with 64 bits also pointers. Floating-point numbers
/// are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Integers of this number of bits, fewer than 64; with 8 bits also `_Bool`.
    Narrow(u32),
    /// Integers of 64 bits, and pointers.
    Wide,
    /// Floating-point numbers of this size in bytes.
    Floating(u64),
}

impl Nodes {
    /// An empty graph for a program with these structures.
    pub fn new(records: &[Record]) -> Self {
        let member = |field: &fencewright_c::typed::tree::Field| Member {
            name: field.name.clone(),
            ty: field.ty.clone(),
            offset: field.offset,
            bits: field.bits,
            span: field.span,
        };
        let structure = |record: &Record| Structure {
            name: record.name.clone(),
            union: record.union,
            size: record.size,
            align: record.align.max(1),
            fields: record.fields.iter().map(member).collect(),
            span: record.span,
        };
        Nodes { nodes: Vec::new(), records: records.iter().map(structure).collect(), clashes: Vec::new() }
    }

    /// A new node for an object of this type.
    pub fn object(&mut self, ty: &Type, span: Span) -> NodeId {
        let node = self.unknown();
        let shape = self.shape_of_type(ty, span);
        let this = &mut self.nodes[node.0 as usize];
        (this.shape, this.span, this.views) = (shape, span, Views::of(ty));
        this.ty = Some(ty.clone());
        node
    }

    /// A new node of unknown shape.
    pub fn unknown(&mut self) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let shape = Shape::Unknown;
        self.nodes.push(Node {
            parent: None,
            rank: 0,
            shape,
            ty: None,
            span: Span::default(),
            pointee: None,
            integer: false,
            views: Views::default(),
            strangers: Strangers::default(),
        });
        id
    }

    /// Records that, according to the source at `span`, places of the node have this type; `void` adds no information.
    pub fn shape(&mut self, node: NodeId, ty: &Type, span: Span) -> Result<(), Clash> {
        if ty.kind == TypeKind::Void {
            return Ok(());
        }
        let typed = self.object(ty, span);
        self.unify(node, typed)
    }

    /// Records that a place of the node is accessed with this type.
    pub fn see(&mut self, node: NodeId, ty: &Type, span: Span) -> Result<(), Clash> {
        let found = self.find(node);
        let same = match (&self.nodes[found.0 as usize].shape, &ty.kind) {
            (Shape::Scalar(one), TypeKind::Integer(_) | TypeKind::Pointer(_)) => Some(*one) == scalar(ty),
            _ => false,
        };
        if same {
            self.nodes[found.0 as usize].views.add(Views::of(ty));
            return Ok(());
        }
        self.shape(node, ty, span)
    }

    /// One of the types with which places of the node were used, for messages; `None` if there was none. Other uses may have other types of the same
    /// size.
    pub fn type_of(&self, node: NodeId) -> Option<&Type> {
        self.nodes[self.find(node).0 as usize].ty.as_ref()
    }

    /// Whether the places of a node are accessed with several kinds of integer types, so that reads have to convert the value.
    pub fn is_mixed(&self, node: NodeId) -> bool {
        let Views { truth, signed, unsigned } = self.nodes[self.find(node).0 as usize].views;
        u32::from(truth) + u32::from(signed) + u32::from(unsigned) > 1
    }

    /// The node of a member of the structure or union that a node stands for, created if necessary. All members of a union share one node.
    ///
    /// # Panics
    /// If the node has another shape.
    pub fn field(&mut self, node: NodeId, index: u32) -> NodeId {
        let node = self.find(node);
        let Node { shape: Shape::Record(record, members), span, .. } = &self.nodes[node.0 as usize] else {
            panic!("a member of something that is no structure");
        };
        let (record, span) = (*record, *span);
        if let Some(member) = members[index as usize] {
            return self.find(member);
        }
        let ty = self.records[record.0 as usize].fields[index as usize].ty.clone();
        let member = self.object(&ty, span);
        self.set_field(node, index, member);
        if self.records[record.0 as usize].union && index != 0 {
            let first = self.field(node, 0);
            if let Err(clash) = self.unify(first, member) {
                self.clashes.push(clash);
            }
        }
        self.find(member)
    }

    fn set_field(&mut self, node: NodeId, index: u32, member: NodeId) {
        if let Shape::Record(_, members) = &mut self.nodes[node.0 as usize].shape {
            members[index as usize] = Some(member);
        }
    }

    /// The node of the elements of the array that a node stands for.
    ///
    /// # Panics
    /// If the node has another shape.
    pub fn element(&self, node: NodeId) -> NodeId {
        match self.shape_of(node) {
            Shape::Array(_, element) => self.find(*element),
            _ => panic!("an element of something that is no array"),
        }
    }

    /// The node of a member or element of the places of a node; `None` if their shape has no such part, or [`Nodes::field`] has not created its node
    /// yet. All members of a union share one node.
    pub fn part(&self, node: NodeId, step: Step) -> Option<NodeId> {
        match (self.shape_of(node), step) {
            (Shape::Record(record, members), Step::Field(field)) => {
                let field = if self.structure(*record).union { 0 } else { field };
                members.get(field as usize).copied().flatten().map(|member| self.find(member))
            }
            (Shape::Array(_, element), Step::Element(_)) => Some(self.find(*element)),
            _ => None,
        }
    }

    /// The node at the end of a path from the places of a node; `None` if [`Nodes::part`] returns `None` for some step.
    pub fn at_path(&self, node: NodeId, path: &[Step]) -> Option<NodeId> {
        path.iter().try_fold(self.find(node), |node, &step| self.part(node, step))
    }

    /// The path from places of `outer` to the places of `inner` at the same address: empty, or through first members and first elements only. `None`
    /// if there is no such path.
    pub fn path_to_start(&self, outer: NodeId, inner: NodeId) -> Option<Vec<Step>> {
        let (mut node, inner) = (self.find(outer), self.find(inner));
        let mut path = Vec::new();
        while node != inner {
            let step = match self.shape_of(node) {
                Shape::Record(..) => Step::Field(0),
                Shape::Array(..) => Step::Element(0),
                _ => return None,
            };
            node = self.part(node, step)?;
            path.push(step);
        }
        Some(path)
    }

    /// The offset, in bytes, of the part at the end of this path from the start of a place of the node.
    pub fn offset(&self, mut node: NodeId, path: impl IntoIterator<Item = Step>) -> u64 {
        let mut offset: u64 = 0;
        for step in path {
            offset = offset.saturating_add(match (step, self.shape_of(node)) {
                (Step::Field(field), Shape::Record(record, _)) => {
                    self.structure(*record).fields[field as usize].offset
                }
                (Step::Element(index), Shape::Array(_, element)) => {
                    index.saturating_mul(self.size(*element).unwrap_or(1))
                }
                _ => 0,
            });
            let Some(part) = self.part(node, step) else { break };
            node = part;
        }
        offset
    }

    /// The target node of the pointers that places of this node hold, created if necessary.
    pub fn pointee(&mut self, node: NodeId) -> NodeId {
        let node = self.find(node);
        if let Some(pointee) = self.pointee_of(node) {
            return pointee;
        }
        let pointee = self.unknown();
        self.nodes[node.0 as usize].pointee = Some(pointee);
        pointee
    }

    /// Like [`Nodes::pointee`], but `None` if the target node has not been created yet.
    pub fn pointee_of(&self, node: NodeId) -> Option<NodeId> {
        Some(self.find(self.nodes[self.find(node).0 as usize].pointee?))
    }

    /// Records that the program computes with pointers to places of this node as integers.
    pub fn mark_integer(&mut self, node: NodeId) {
        let node = self.find(node);
        self.nodes[node.0 as usize].integer = true;
    }

    /// Whether [`Nodes::mark_integer`] was called for this node.
    pub fn is_integer(&self, node: NodeId) -> bool {
        self.nodes[self.find(node).0 as usize].integer
    }

    /// Records numbers, other than addresses of objects, that occur where pointers to places of this node are expected.
    pub fn mark_strangers(&mut self, node: NodeId, strangers: &Strangers) {
        let node = self.find(node);
        self.nodes[node.0 as usize].strangers.add(strangers);
    }

    /// The numbers recorded by [`Nodes::mark_strangers`].
    pub fn strangers(&self, node: NodeId) -> &Strangers {
        &self.nodes[self.find(node).0 as usize].strangers
    }

    /// The representative of the equivalence class of a node.
    pub fn find(&self, mut node: NodeId) -> NodeId {
        while let Some(parent) = self.nodes[node.0 as usize].parent {
            node = parent;
        }
        node
    }

    /// The shape of the places of a node.
    pub fn shape_of(&self, node: NodeId) -> &Shape {
        &self.nodes[self.find(node).0 as usize].shape
    }

    /// Whether the places of a node, or parts of them, belong to one of the `wanted` classes, which are given by their representatives.
    pub fn has_part(&self, node: NodeId, wanted: &FxHashSet<NodeId>) -> bool {
        let node = self.find(node);
        wanted.contains(&node)
            || match self.shape_of(node) {
                Shape::Record(_, members) => {
                    members.iter().flatten().any(|part| self.has_part(*part, wanted))
                }
                Shape::Array(_, element) => self.has_part(*element, wanted),
                _ => false,
            }
    }

    /// The structure or union with this number.
    pub fn structure(&self, record: RecordId) -> &Structure {
        &self.records[record.0 as usize]
    }

    /// Number of nodes, including those unified with others.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The clashes between members of unions, found when a member gets its node. `field` cannot fail, so it collects them here, while other clashes
    /// are returned by the call that unifies. Elaboration reports the first at the next access to a part of an object, and the translation all of
    /// them before layout.
    pub fn clashes(&self) -> &[Clash] {
        &self.clashes
    }

    /// The size of a place of this node in bytes; `None` if unknown.
    pub fn size(&self, node: NodeId) -> Option<u64> {
        match self.shape_of(node) {
            Shape::Unknown | Shape::Function => None,
            Shape::Scalar(Scalar::Narrow(bits)) => Some(u64::from(*bits) / 8),
            Shape::Scalar(Scalar::Wide) => Some(8),
            Shape::Scalar(Scalar::Floating(bytes)) => Some(*bytes),
            Shape::Record(record, _) => Some(self.structure(*record).size),
            Shape::Array(length, element) => self.size(*element)?.checked_mul(*length),
        }
    }

    /// The alignment of a place of this node, unless the place is in a packed structure.
    pub fn alignment(&self, node: NodeId) -> u64 {
        match self.shape_of(node) {
            Shape::Array(_, element) => self.alignment(*element),
            Shape::Record(record, _) => self.structure(*record).align,
            Shape::Scalar(_) => self.size(node).unwrap_or(1).max(1),
            Shape::Unknown | Shape::Function => 1,
        }
    }

    /// The flexible array member at the end of the structure that a node stands for: its index and its offset. `None` if there is no such member.
    pub fn open_array(&self, node: NodeId) -> Option<(u32, u64)> {
        let Shape::Record(record, _) = self.shape_of(node) else { return None };
        let fields = &self.structure(*record).fields;
        let last = fields.last()?;
        matches!(last.ty.kind, TypeKind::Array(_, 0)).then(|| (fields.len() as u32 - 1, last.offset))
    }

    /// Sets the length of a flexible array member.
    pub fn set_length(&mut self, node: NodeId, elements: u64) {
        let node = self.find(node);
        if let Shape::Array(length, _) = &mut self.nodes[node.0 as usize].shape {
            *length = elements;
        }
    }

    fn shape_of_type(&mut self, ty: &Type, span: Span) -> Shape {
        match &ty.kind {
            TypeKind::Void => Shape::Unknown,
            TypeKind::Integer(_) | TypeKind::Pointer(_) | TypeKind::Floating(_) => {
                scalar(ty).map_or(Shape::Unknown, Shape::Scalar)
            }
            TypeKind::Array(element, length) => {
                let element = self.object(element, span);
                Shape::Array(*length, element)
            }
            TypeKind::Record(record) => {
                Shape::Record(*record, vec![None; self.structure(*record).fields.len()])
            }
            TypeKind::Function(_) => Shape::Function,
        }
    }

    fn describe(&self, shape: &Shape) -> String {
        match shape {
            Shape::Unknown => "void".to_string(),
            Shape::Scalar(Scalar::Narrow(bits)) => format!("an integer of {bits} bits"),
            Shape::Scalar(Scalar::Wide) => "a pointer or an integer of 64 bits".to_string(),
            Shape::Scalar(Scalar::Floating(bytes)) => format!("a floating-point number of {bytes} bytes"),
            Shape::Record(record, _) => {
                let structure = self.structure(*record);
                format!("{} {}", if structure.union { "union" } else { "struct" }, structure.name)
            }
            Shape::Array(length, element) => {
                format!("an array of {length}: {}", self.describe(self.shape_of(*element)))
            }
            Shape::Function => "a function".to_string(),
        }
    }
}

/// The representation of a scalar type in memory; `None` for any other type.
fn scalar(ty: &Type) -> Option<Scalar> {
    Some(match &ty.kind {
        TypeKind::Integer(Arithmetic::Bool) => Scalar::Narrow(8),
        TypeKind::Integer(Arithmetic::Integer(integer)) if integer.bits() < 64 => {
            Scalar::Narrow(integer.bits())
        }
        TypeKind::Integer(_) | TypeKind::Pointer(_) => Scalar::Wide,
        TypeKind::Floating(bytes) => Scalar::Floating(*bytes),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
