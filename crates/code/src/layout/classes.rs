//! Which numbers the places of each class have.
//!
//! The places of a class are numbered, from 1 if there are pointers to them, because null is 0. A structure or array in which they are parts contributes
//! a block of numbers for each of its own places, so that the number of a part is `width * number + base`, plus the index in an array. Behind an
//! array, or behind everything where pointers are moved, one number stands for no place: that is where a pointer one past the end points to.

mod numbering;

use std::collections::{BTreeMap, HashMap, HashSet};

use fencewright_c::typed::tree::{Step, TypeKind};
use fencewright_front_end::facts::Kind;
use fencewright_program::BinaryOp;
use fencewright_text::{Diagnostic, Stop};
use numbering::signed;

use crate::core::{Core, NodeId, ObjectEvent, ObjectId, StmtKind, Strangers, ThreadNumber, each_statement};
use crate::flat::Term;
use crate::layout::addresses::{Order, Piece, WayBack};
use crate::layout::uses::{Use, Uses};
use crate::nodes::{Nodes, Shape};
use crate::pipeline::Options;
use crate::reuse::{self, Reuse};

/// More numbers than this in a class that is used are a mistake.
const MOST_NUMBERS: u64 = 1 << 12;

/// All classes of a program.
pub struct Layout {
    /// The classes.
    pub classes: Vec<Class>,
    by_node: HashMap<NodeId, usize>,
    pub(crate) objects: Vec<Placed>,
    /// Local variables that pointers may outlive.
    ended: HashSet<ObjectId>,
    /// The variables that say which objects of a class other threads may take that were given back, by class.
    returned: BTreeMap<usize, usize>,
    /// The order of objects in memory, if the program may see it.
    pub order: Option<Order>,
    /// The ways from a member back to its structure.
    pub ways_back: Vec<WayBack>,
}

/// A class of places.
#[derive(Debug)]
pub struct Class {
    /// The node that stands for it.
    pub node: NodeId,
    /// What happens to its places.
    pub used: Use,
    /// Whether its places hold a number or pointer.
    pub scalar: bool,
    /// What to call it, after C.
    pub name: String,
    /// The first number.
    pub first: i64,
    /// How many numbers there are.
    pub count: u64,
    /// By what the numbers are multiplied in pointers.
    pub scale: i64,
    /// What each number stands for, if anybody uses the class.
    pub places: Vec<Option<Placement>>,
    /// What each of its places holds at first.
    pub initial: Vec<i64>,
    /// If its only place holds any number from 0 on at first: how many there are to choose from.
    pub choice: Option<i64>,
    /// A power of two of which the addresses of its places are multiples.
    pub alignment: u64,
    /// Its numbers, in order, in pieces.
    pub pieces: Vec<Piece>,
    /// Numbers that stand where pointers to its places may stand, and are none.
    pub strangers: Strangers,
    /// The parts of its places: which class they are in, by how much their number grows from place to place, and the number of the first.
    pub(crate) parts: BTreeMap<Part, (usize, i64, i64)>,
    /// Where its places come from.
    pub(crate) sources: Vec<Source>,
}

/// What a number of a class stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Of which object it is a part.
    pub object: ObjectId,
    /// Which time, if the object is an allocation.
    pub time: u64,
}

/// Which part of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Field(u32),
    Elements,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Object(ObjectId),
    /// The parts of another class that are in this one; of an array, how many elements.
    Parts(usize, Vec<(Part, u64)>),
}

/// The numbers of an object.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Its class; of an allocation that of one element.
    pub class: usize,
    /// Its first number.
    pub first: i64,
    /// How many elements it has: more than one only if it is an allocation.
    pub elements: u64,
    /// How far apart two allocations are.
    pub stride: i64,
    /// How many allocations there can be.
    pub times: u64,
    /// Whether it is an allocation.
    pub heap: bool,
}

impl Layout {
    /// Numbers for everything.
    pub fn new(
        core: &Core,
        nodes: &Nodes,
        options: Options,
        stop: &Stop<'_>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let uses = Uses::of(core, nodes, stop);
        let mut ended = HashSet::new();
        for thread in &core.threads {
            each_statement(&thread.code, stop, &mut |statement| {
                if let StmtKind::Special(ObjectEvent::End(object)) = &statement.kind {
                    ended.insert(*object);
                }
            });
        }
        let mut layout = Layout {
            classes: Vec::new(),
            by_node: HashMap::new(),
            objects: Vec::new(),
            ended,
            returned: BTreeMap::new(),
            order: None,
            ways_back: Vec::new(),
        };
        layout.find_classes(core, nodes, &uses);
        layout.find_objects(core, nodes, options)?;
        let mut order = Vec::new();
        let mut seen = vec![false; layout.classes.len()];
        (0..layout.classes.len()).for_each(|class| layout.containers_first(class, &mut seen, &mut order));
        for &class in &order {
            layout.number(class, core, nodes)?;
        }
        for &class in &order {
            layout.classes[class].name = layout.name(class, core, nodes);
        }
        layout.initial_values(core, nodes)?;
        layout.choose_order();
        layout.find_ways_back(core, nodes, stop)?;
        if options.reuse == Reuse::Allocated {
            let mut passed_on: Vec<usize> = reuse::passed_on(core, nodes, stop)
                .iter()
                .filter_map(|node| layout.class(nodes, *node))
                .collect();
            passed_on.sort_unstable();
            passed_on.into_iter().for_each(|class| layout.pass_on(class));
        }
        Ok(layout)
    }

    /// The class of a node, if the program has one there.
    pub fn class(&self, nodes: &Nodes, node: NodeId) -> Option<usize> {
        self.by_node.get(&nodes.find(node)).copied()
    }

    /// The numbers of an object.
    pub fn placed(&self, object: ObjectId) -> Placed {
        self.objects[object.0 as usize]
    }

    /// Where a part of a place is: its class, and `width` and `base` so that its number is `width * number + base`, of an array that of the first element.
    pub fn part(&self, class: usize, nodes: &Nodes, step: Step) -> Option<(usize, i64, i64)> {
        let part = match step {
            Step::Element(_) => Part::Elements,
            Step::Field(_) if self.is_union(class, nodes) => Part::Field(0),
            Step::Field(field) => Part::Field(field),
        };
        let &(inner, width, base) = self.classes[class].parts.get(&part)?;
        Some((inner, width, base - self.classes[class].first * width))
    }

    /// Whether a class has no node: its variables say which objects of another class other threads may take.
    pub fn says_what_is_returned(&self, class: usize) -> bool {
        self.returned.values().any(|returned| *returned == class)
    }

    /// What numbers in a pointer to a node mean.
    pub fn pointers_to(&self, nodes: &Nodes, node: NodeId) -> Option<Kind> {
        let class = self.class(nodes, node)?;
        Some(Kind::Pointer(class, self.classes[class].scale))
    }

    /// What the numbers in the places of a class mean, by the type with which they are used first.
    pub fn contents(&self, class: usize, core: &Core, nodes: &Nodes) -> Kind {
        let Some(of) = self.classes.get(class).filter(|of| of.scalar) else { return Kind::Number };
        if self.says_what_is_returned(class) {
            return Kind::Number;
        }
        let only = |object: ObjectId| core.objects[object.0 as usize].ty.as_ref();
        let ty = match of.sources.as_slice() {
            [Source::Object(object)] => only(*object),
            _ => None,
        };
        let is_pointer =
            ty.or_else(|| nodes.type_of(of.node)).is_some_and(|ty| matches!(ty.kind, TypeKind::Pointer(_)));
        let pointee = nodes.pointee_of(of.node).filter(|_| is_pointer);
        pointee.and_then(|node| self.pointers_to(nodes, node)).unwrap_or_default()
    }

    /// Whether some place of a class is part of an object that somebody gives back.
    pub fn can_be_freed(&self, class: usize) -> bool {
        self.classes[class].places.iter().flatten().any(|place| self.is_freed(place.object))
    }

    /// The numbers of a class at which an allocation starts, in order.
    pub fn allocations(&self, class: usize) -> Runs {
        let heap = self.objects.iter().filter(|placed| placed.heap && placed.class == class);
        let mut starts: Vec<i64> = heap
            .flat_map(|placed| (0..placed.times as i64).map(|time| placed.first + time * placed.stride))
            .collect();
        starts.sort_unstable();
        let mut runs = Runs::new();
        starts.into_iter().for_each(|start| add_to_runs(&mut runs, start));
        runs
    }

    /// The numbers of a class that belong to each allocation which somebody gives back; the allocation by its own class and first number there.
    pub fn allocated_runs(&self, class: usize) -> BTreeMap<(usize, i64), Runs> {
        let of = &self.classes[class];
        let mut allocated: BTreeMap<(usize, i64), Runs> = BTreeMap::new();
        for (number, place) in (of.first..).zip(&of.places) {
            let Some(place) = place.filter(|place| self.is_freed(place.object)) else { continue };
            let placed = self.placed(place.object);
            let allocation = (placed.class, placed.first + place.time as i64 * placed.stride);
            add_to_runs(allocated.entry(allocation).or_default(), number);
        }
        allocated
    }

    /// All numbers and pointers that are parts of so many places of a class in a row, with their classes.
    pub fn scalars_of(&self, class: usize, number: i64, count: u64) -> Vec<(usize, i64)> {
        let mut scalars = Vec::new();
        let mut open: Vec<(usize, i64)> = (0..count as i64).map(|n| (class, number + n)).collect();
        while let Some((class, number)) = open.pop() {
            let of = &self.classes[class];
            if of.scalar {
                scalars.push((class, number));
            }
            for (&part, &(inner, width, base)) in &of.parts {
                let length = self.classes[inner].lengths(class, part);
                let start = (number - of.first) * width + base;
                open.extend((0..length as i64).map(|n| (inner, start + n)));
            }
        }
        scalars.reverse();
        scalars
    }

    /// Whether somebody gives back an object, or it is a local variable that pointers may outlive.
    pub fn is_freed(&self, object: ObjectId) -> bool {
        let placed = self.placed(object);
        match placed.heap {
            true => !self.classes[placed.class].used.freed_by.is_empty(),
            false => self.ended.contains(&object) && !self.classes[placed.class].places.is_empty(),
        }
    }

    /// The variable that says what a thread may take of what others gave back.
    pub fn passed_to(&self, class: usize, thread: ThreadNumber) -> Option<usize> {
        let others = self.classes[class].used.freed_by.iter().any(|other| *other != thread);
        self.returned.get(&class).copied().filter(|_| others)
    }

    /// The variable in which a thread says what it gives back for others to take.
    pub fn passed_from(&self, class: usize, thread: ThreadNumber) -> Option<usize> {
        let others = self.classes[class].used.allocated_by.iter().any(|other| *other != thread);
        self.returned.get(&class).copied().filter(|_| others)
    }

    /// A variable for each object of a class, which is 1 while others may take it.
    fn pass_on(&mut self, class: usize) {
        let of = &self.classes[class];
        let mut returned = Class::new(NodeId(u32::MAX));
        returned.name = format!("returned_{}", of.name);
        returned.used.accessed_by = of.used.freed_by.union(&of.used.allocated_by).copied().collect();
        (returned.scalar, returned.used.written) = (true, true);
        (returned.first, returned.count) = (of.first, of.count);
        (returned.places, returned.initial) = (of.places.clone(), vec![0; of.places.len()]);
        self.returned.insert(class, self.classes.len());
        self.classes.push(returned);
    }

    fn is_union(&self, class: usize, nodes: &Nodes) -> bool {
        let shape = nodes.shape_of(self.classes[class].node);
        matches!(shape, Shape::Record(record, _) if nodes.structure(*record).union)
    }

    /// The number, and class, of a part of an object; of an allocation the first time. The first step may be an element of an allocation.
    pub fn locate(&self, nodes: &Nodes, object: ObjectId, path: &[Step]) -> Option<(usize, i64)> {
        let placed = self.placed(object);
        let direct = self.follow(nodes, placed.class, placed.first, path);
        direct.or_else(|| match path.split_first() {
            Some((Step::Element(index), rest)) if *index <= placed.elements => {
                self.follow(nodes, placed.class, placed.first + *index as i64, rest)
            }
            _ => None,
        })
    }

    fn follow(
        &self,
        nodes: &Nodes,
        mut class: usize,
        mut number: i64,
        path: &[Step],
    ) -> Option<(usize, i64)> {
        for &step in path {
            let (inner, width, base) = self.part(class, nodes, step)?;
            let index = if let Step::Element(index) = step { index as i64 } else { 0 };
            (class, number) = (inner, number * width + base + index);
        }
        Some((class, number))
    }
}

/// What `malloc` aligns to.
pub(crate) const ALIGNMENT: u64 = 16;

impl Class {
    /// A class without places.
    pub(crate) fn new(node: NodeId) -> Self {
        Class {
            node,
            used: Use::default(),
            scalar: false,
            name: String::new(),
            first: 0,
            count: 0,
            scale: 1,
            places: Vec::new(),
            initial: Vec::new(),
            choice: None,
            alignment: 1,
            pieces: Vec::new(),
            strangers: Strangers::default(),
            parts: BTreeMap::new(),
            sources: Vec::new(),
        }
    }

    /// Whether there is only one place, so that no number is needed to know which.
    pub fn is_single(&self) -> bool {
        self.count == 1
    }

    /// What its places hold at first; the least and the greatest of these values, if there is a choice.
    pub fn values(&self) -> impl Iterator<Item = i64> {
        let held = self.places.iter().zip(&self.initial).filter(|(place, _)| place.is_some());
        held.map(|(_, &value)| value).chain(self.choice.into_iter().flat_map(|choices| [0, choices - 1]))
    }

    /// The thread that alone uses its places.
    pub fn private_to(&self) -> Option<ThreadNumber> {
        let mut threads = self.used.accessed_by.iter();
        threads.next().copied().filter(|_| threads.next().is_none())
    }

    /// How many of its places are such a part of a place of another class.
    fn lengths(&self, container: usize, part: Part) -> u64 {
        let sources = self.sources.iter().filter_map(|source| match source {
            Source::Parts(outer, parts) if *outer == container => Some(parts),
            _ => None,
        });
        sources.flatten().find(|&&(found, _)| found == part).map_or(0, |&(_, length)| length)
    }

    /// Numbers in a row that stand for places: the first and the last of each run.
    pub fn runs(&self) -> Runs {
        let mut runs = Runs::new();
        for (number, _) in (self.first..).zip(&self.places).filter(|(_, place)| place.is_some()) {
            add_to_runs(&mut runs, number);
        }
        runs
    }

    /// From the first element to behind the last one, of each array, where pointers are moved.
    pub fn arrays(&self) -> Vec<(i64, i64)> {
        self.runs().into_iter().map(|(low, high)| (low, high + 1)).collect()
    }

    /// Numbers in a row that stand for no place: behind the ends of arrays.
    pub fn gaps(&self) -> Runs {
        let mut runs = Runs::new();
        for (number, _) in (self.first..).zip(&self.places).filter(|(_, place)| place.is_none()) {
            add_to_runs(&mut runs, number);
        }
        runs
    }

    /// Whether a number is one of this class.
    pub fn has_number(&self, number: &Term) -> Term {
        number.clone().within(self.first, self.first + signed(self.count) - 1)
    }

    /// Whether a number stands for a place.
    pub fn is_place(&self, number: &Term) -> Term {
        among(&self.runs(), number)
    }
}

/// Numbers in order, as the first and the last of each run.
pub type Runs = Vec<(i64, i64)>;

fn add_to_runs(runs: &mut Runs, number: i64) {
    match runs.last_mut() {
        Some((_, last)) if *last == number - 1 => *last = number,
        _ => runs.push((number, number)),
    }
}

/// Whether a number is in one of the runs.
pub fn among(runs: &[(i64, i64)], number: &Term) -> Term {
    let (Some(&(low, high)), Some(&(_, end))) = (runs.first(), runs.last()) else { return Term::Number(0) };
    let length = high - low;
    let stride = runs.get(1).map_or(1, |next| next.0 - low);
    let regular =
        |(n, run): (usize, &(i64, i64))| *run == (low + n as i64 * stride, high + n as i64 * stride);
    if runs.len() > 2 && runs.iter().enumerate().all(regular) {
        let position = number.clone().plus(-low).with(BinaryOp::Rem, stride);
        return number.clone().within(low, end).and(position.with(BinaryOp::Le, length));
    }
    let within = |&(low, high): &(i64, i64)| number.clone().within(low, high);
    runs.iter().map(within).reduce(Term::or).unwrap_or(Term::Number(0))
}
