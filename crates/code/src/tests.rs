//! Translations of small programs in symbolic code.

use std::rc::Rc;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{Integer, Rank, RecordId};
use fencewright_c::typed::tree::{Field, Record, Type, TypeKind};
use fencewright_executions::oracle::explore;
use fencewright_fw::ast::File;
use fencewright_fw::lower::lower;
use fencewright_fw::print;
use fencewright_program::{BinaryOp, MemoryModel, Program, Span};
use fencewright_text::{SourceFile, Stop};

use crate::core::*;
use crate::late_stores::LateStores;
use crate::nodes::Nodes;
use crate::pipeline::{Options, to_fw};

fn ty(kind: TypeKind) -> Type {
    Type { kind, atomic: false, volatile: false }
}

fn int() -> Type {
    ty(TypeKind::Integer(Arithmetic::Integer(Integer { rank: Rank::Int, signed: true })))
}

fn pointer(to: Type) -> Type {
    ty(TypeKind::Pointer(Rc::new(to)))
}

fn array(of: Type, length: u64) -> Type {
    ty(TypeKind::Array(Rc::new(of), length))
}

fn record(number: u32) -> Type {
    ty(TypeKind::Record(RecordId(number)))
}

/// A builder of programs.
struct Maker {
    core: Core,
    nodes: Nodes,
}

fn at(number: usize) -> Span {
    Span::new(number, number + 1)
}

impl Maker {
    /// An empty program with the types `struct node { int key; struct node *next; }` and `struct pair { int a, b; }`.
    fn new() -> Self {
        let span = Span::default();
        let field =
            |name: &str, ty: Type, offset: u64| Field { name: name.into(), ty, offset, bits: None, span };
        let declare = |name: &str, size: u64, fields: Vec<Field>| Record {
            name: name.into(),
            union: false,
            fields,
            complete: true,
            size,
            align: 8,
            span,
        };
        let records = [
            declare("node", 16, vec![field("key", int(), 0), field("next", pointer(record(0)), 8)]),
            declare("pair", 8, vec![field("a", int(), 0), field("b", int(), 4)]),
        ];
        Maker { core: Core::default(), nodes: Nodes::new(&records) }
    }

    fn object(&mut self, name: &str, ty: &Type, origin: Origin, undefined: bool) -> ObjectId {
        let node = self.nodes.object(ty, at(self.core.objects.len()));
        let (name, initial) = (name.to_string(), Vec::new());
        let span = at(self.core.objects.len());
        self.core.objects.push(Object {
            name,
            ty: Some(ty.clone()),
            node,
            origin,
            initial,
            undefined,
            purpose: Purpose::Program,
            span,
        });
        ObjectId(self.core.objects.len() as u32 - 1)
    }

    fn global(&mut self, name: &str, ty: &Type) -> ObjectId {
        self.object(name, ty, Origin::Global, false)
    }

    fn thread(&mut self, name: &str, registers: &[&str], code: Vec<StmtKind>) {
        let registers = registers.iter().map(|name| RegisterInfo {
            name: name.to_string(),
            initial: Some(0),
            points: None,
            about: About::default(),
        });
        self.core.threads.push(Thread {
            name: name.to_string(),
            registers: registers.collect(),
            code: code.into_iter().map(stmt).collect(),
            span: Span::default(),
            late: false,
            function: name.to_string(),
            creator: None,
            started: None,
        });
    }

    fn node(&self, object: ObjectId) -> NodeId {
        self.core.objects[object.0 as usize].node
    }

    /// The place of a whole object.
    fn whole(&self, object: ObjectId) -> Location {
        Location {
            base: Base::Object(object),
            path: Vec::new(),
            node: self.node(object),
            view: View::default(),
        }
    }

    /// A member of a place.
    fn field(&mut self, mut place: Location, field: u32) -> Location {
        place.node = self.nodes.field(place.node, field);
        place.path.push(Projection::Field(field));
        place
    }

    /// Appends the selection of an array element to a place.
    fn element(&mut self, mut place: Location, index: Value, length: u64) -> Location {
        place.node = self.nodes.element(place.node);
        place.path.push(Projection::Element(index, length));
        place
    }

    fn file(&self, options: Options) -> File {
        let sources = SourceFile::new("test.c", "").into();
        let late = LateStores::default();
        let emitted = to_fw(&self.core, self.nodes.clone(), late, &sources, options, &Stop::never());
        emitted.unwrap_or_else(|errors| panic!("{errors:?}")).0
    }

    fn text(&self) -> String {
        print(&self.file(Options::default()))
    }

    fn program(&self, options: Options) -> Program {
        let file = self.file(options);
        let program = lower(&file, &[]);
        program.unwrap_or_else(|errors| panic!("{errors:?}\n{}", print(&file)))
    }

    /// Whether a property can be violated.
    fn violated(&self, property: &str, model: MemoryModel, options: Options) -> bool {
        let program = self.program(options);
        let Some(property) = program.properties.iter().find(|found| found.name == property) else {
            return false;
        };
        let reachable = explore(&program, model, 1_000_000, &mut || false).unwrap();
        !reachable.satisfies(&program, model, property).unwrap()
    }
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: Span::default() }
}

fn number(number: i64) -> Value {
    Value::Number(number)
}

fn reg(register: u32) -> Value {
    Value::Register(Register(register))
}

fn load(register: u32, place: Location) -> StmtKind {
    StmtKind::Load(Register(register), place, Access::Plain)
}

fn store(place: Location, value: Value) -> StmtKind {
    StmtKind::Store(place, value, Access::Plain)
}

#[test]
fn scalars_are_variables() {
    let mut maker = Maker::new();
    let (x, y) = (maker.global("x", &int()), maker.global("lock", &int()));
    maker.core.objects[0].initial.push((vec![], Known::Number(3)));
    let (at_x, at_y) = (maker.whole(x), maker.whole(y));
    maker.thread("main", &["r"], vec![store(at_x.clone(), number(1)), load(0, at_y.clone())]);
    maker.thread(
        "thread",
        &["s", "r"],
        vec![
            store(at_y, number(1)),
            load(0, at_x),
            StmtKind::Assign(Register(1), reg(0)),
            StmtKind::Assert(Value::binary(BinaryOp::Ne, reg(1), number(1)), "x".into()),
        ],
    );
    let expected = "shared x = 3;
shared lock_;

thread main {
    var r;
    x = 1;
    r = lock_;
}

thread thread_ {
    var r;
    lock_ = 1;
    r = x;
    assert r != 1, \"x\";
}
";
    assert_eq!(maker.text(), expected);
}

#[test]
fn arrays_and_structures() {
    let mut maker = Maker::new();
    let (a, pairs) = (maker.global("a", &array(int(), 4)), maker.global("pairs", &array(record(1), 3)));
    let (at_a, at_pairs) = (maker.whole(a), maker.whole(pairs));
    let a_i = maker.element(at_a, reg(0), 4);
    let pair = maker.element(at_pairs, reg(0), 3);
    let b = maker.field(pair, 1);
    for name in ["main", "other"] {
        let code = vec![load(0, b.clone()), store(a_i.clone(), reg(0)), load(0, a_i.clone())];
        maker.thread(name, &["i"], code);
    }
    assert!(maker.text().starts_with("shared a[4];\nshared pairs_b[3];\n"), "{}", maker.text());
    assert!(maker.text().contains("i = pairs_b[i];"));
    assert!(!maker.violated("memory", MemoryModel::Tso, Options::default()), "all indices are 0");
}

#[test]
fn an_index_is_checked() {
    let mut maker = Maker::new();
    let a = maker.global("a", &array(int(), 4));
    let whole = maker.whole(a);
    let element = maker.element(whole, reg(0), 4);
    for name in ["main", "other"] {
        maker.thread(
            name,
            &["i"],
            vec![StmtKind::Havoc(Register(0), 0, 4), store(element.clone(), number(1))],
        );
    }
    assert!(maker.violated("memory", MemoryModel::Sc, Options::default()));
    assert!(!maker.violated("assertions", MemoryModel::Sc, Options::default()));
}
