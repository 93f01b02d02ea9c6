//! Unification of the nodes of small programs.

use super::*;
use fencewright_c::ast::{Integer, Rank};
use fencewright_c::typed::tree::Field;

fn ty(kind: TypeKind) -> Type {
    Type { kind, atomic: false, volatile: false }
}

fn integer(rank: Rank, signed: bool) -> Type {
    ty(TypeKind::Integer(Arithmetic::Integer(Integer { rank, signed })))
}

fn int() -> Type {
    integer(Rank::Int, true)
}

fn pointer(to: Type) -> Type {
    ty(TypeKind::Pointer(Rc::new(to)))
}

fn record(number: u32) -> Type {
    ty(TypeKind::Record(RecordId(number)))
}

fn declare(name: &str, union: bool, size: u64, fields: Vec<(&str, Type, u64)>) -> Record {
    let span = Span::default();
    let field =
        |(name, ty, offset): (&str, Type, u64)| Field { name: name.into(), ty, offset, bits: None, span };
    let fields = fields.into_iter().map(field).collect();
    Record { name: name.into(), union, fields, complete: true, size, align: 8, span }
}

/// `struct node { int key; struct node *next; }`, `struct pair { int a, b; }`, `union word { long whole; void *pointer; int half; }`.
fn nodes() -> Nodes {
    Nodes::new(&[
        declare("node", false, 16, vec![("key", int(), 0), ("next", pointer(record(0)), 8)]),
        declare("pair", false, 8, vec![("a", int(), 0), ("b", int(), 4)]),
        declare(
            "word",
            true,
            8,
            vec![
                ("whole", integer(Rank::Long, true), 0),
                ("pointer", pointer(ty(TypeKind::Void)), 0),
                ("half", int(), 0),
            ],
        ),
    ])
}

fn at(offset: usize) -> Span {
    Span::new(offset, offset + 1)
}

#[test]
fn list_nodes_are_one_class() {
    let mut nodes = nodes();
    let (one, two) = (nodes.object(&record(0), at(1)), nodes.object(&record(0), at(2)));
    let next = nodes.field(one, 1);
    let pointee = nodes.pointee(next);
    nodes.unify(pointee, two).unwrap();
    assert_ne!(nodes.find(one), nodes.find(two));
    // p = &one; p = p->next;
    nodes.unify(pointee, one).unwrap();
    assert_eq!(nodes.find(one), nodes.find(two));
    assert_eq!(nodes.field(one, 0), nodes.field(two, 0));
    assert_ne!(nodes.field(one, 0), nodes.field(one, 1));
    assert_eq!(nodes.find(pointee), nodes.find(one), "next points to nodes of the list");
}

#[test]
fn parts_and_pointees_follow() {
    let mut nodes = nodes();
    let (one, two) = (nodes.object(&record(0), at(1)), nodes.object(&record(0), at(2)));
    let (head, tail) = (nodes.field(one, 1), nodes.field(two, 1));
    let (head, tail) = (nodes.pointee(head), nodes.pointee(tail));
    assert_ne!(nodes.find(head), nodes.find(tail));
    nodes.unify(one, two).unwrap();
    assert_eq!(nodes.find(head), nodes.find(tail));
    nodes.mark_integer(head);
    assert!(nodes.is_integer(tail));
    assert!(!nodes.is_integer(one));
}

#[test]
fn void_pointers_unify_with_one_type() {
    let mut nodes = nodes();
    let memory = nodes.unknown();
    nodes.shape(memory, &ty(TypeKind::Void), at(1)).unwrap();
    assert_eq!(nodes.shape_of(memory), &Shape::Unknown);
    nodes.shape(memory, &record(1), at(2)).unwrap();
    assert_eq!(nodes.size(memory), Some(8));
    let clash = nodes.shape(memory, &record(0), at(3)).unwrap_err();
    let mut sides = [clash.one, clash.other];
    sides.sort_by_key(|side| side.1.start);
    assert_eq!(sides, [("struct pair".to_string(), at(2)), ("struct node".to_string(), at(3))]);
}

#[test]
fn scalars_that_memory_holds_differently_clash() {
    let mut nodes = nodes();
    let check = |nodes: &mut Nodes, one: &Type, other: &Type, fits: bool| {
        let node = nodes.object(one, at(1));
        assert_eq!(nodes.shape(node, other, at(2)).is_ok(), fits, "{one:?} {other:?}");
    };
    let (long, unsigned_long) = (integer(Rank::Long, true), integer(Rank::LongLong, false));
    check(&mut nodes, &long, &unsigned_long, true);
    check(&mut nodes, &unsigned_long, &pointer(int()), true);
    check(&mut nodes, &pointer(record(0)), &pointer(int()), true);
    check(&mut nodes, &int(), &integer(Rank::Int, false), true);
    check(&mut nodes, &integer(Rank::Char, true), &ty(TypeKind::Integer(Arithmetic::Bool)), true);
    check(&mut nodes, &int(), &long, false);
    check(&mut nodes, &int(), &ty(TypeKind::Integer(Arithmetic::Bool)), false);
    check(&mut nodes, &int(), &record(1), false);
    check(&mut nodes, &ty(TypeKind::Floating(8)), &long, false);
    let array = |length| ty(TypeKind::Array(Rc::new(int()), length));
    check(&mut nodes, &array(4), &array(4), true);
    check(&mut nodes, &array(4), &array(5), false);
    check(&mut nodes, &array(4), &int(), false);
}

#[test]
fn array_elements_are_one_node() {
    let mut nodes = nodes();
    let array = nodes.object(&ty(TypeKind::Array(Rc::new(record(1)), 3)), at(1));
    assert_eq!(nodes.size(array), Some(24));
    let element = nodes.element(array);
    let pair = nodes.object(&record(1), at(2));
    nodes.unify(element, pair).unwrap();
    assert_eq!(nodes.element(array), nodes.find(pair));
}

#[test]
fn members_of_a_union_are_one_place_or_a_clash() {
    let mut nodes = nodes();
    let word = nodes.object(&record(2), at(1));
    assert_eq!(nodes.field(word, 1), nodes.field(word, 0));
    assert!(nodes.clashes().is_empty());
    nodes.field(word, 2);
    assert_eq!(nodes.clashes().len(), 1);
}

#[test]
fn integers_accessed_with_two_types_are_mixed() {
    let mut nodes = nodes();
    let (one, two) = (nodes.object(&int(), at(1)), nodes.object(&integer(Rank::Int, false), at(2)));
    assert!(!nodes.is_mixed(one) && !nodes.is_mixed(two));
    nodes.see(one, &int(), at(3)).unwrap();
    assert!(!nodes.is_mixed(one));
    nodes.unify(one, two).unwrap();
    assert!(nodes.is_mixed(one) && nodes.is_mixed(two));
    assert!(nodes.see(one, &integer(Rank::Long, true), at(4)).is_err());
}
