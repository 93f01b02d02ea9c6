//! Points-to classes and the numbers of their places.
//!
//! The places of a class are numbered, from 1 or more if there are pointers to them, because null is 0. Each place of a structure or array
//! contributes one block of numbers to the class of each of its parts: if the structure has the number `number`, its member has the number
//! `width * number + base` in the class of that member, for constants `width` and `base`; for an element of an array, the index is added. After an
//! array whose elements are pointed to, or after every object if pointers are moved, one number stands for no place: a pointer one past the end.

mod numbering;
mod runs;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fencewright_c::typed::tree::{Step, TypeKind};
use fencewright_front_end::facts::Kind;
use fencewright_program::Span;
use fencewright_text::{Diagnostic, Stop};
use numbering::signed;
use runs::add_to_runs;
pub use runs::{Runs, among};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::{Core, NodeId, ObjectEvent, ObjectId, StmtKind, Strangers, ThreadNumber, each_statement};
use crate::ends::Ends;
use crate::flat::Term;
use crate::late_stores::{Held, Late, LateStores};
use crate::layout::addresses::{Order, Piece, WayBack};
use crate::layout::hazards::Retired;
use crate::layout::laid::{self, FEWER, Laid};
use crate::layout::open_arrays::Lengths;
use crate::layout::uses::{Use, Uses};
use crate::nodes::{Nodes, Shape};
use crate::pipeline::Options;
use crate::reuse::{self, Reuse};

/// Maximum count of numbers in a used class. If threads share more cells than this in total, only the first elements of large arrays are laid out.
const MOST_NUMBERS: u64 = 1 << 12;

/// The memory layout of a program.
pub struct Layout {
    /// All classes of places; a class is identified by its index in this list.
    pub classes: Vec<Class>,
    by_node: HashMap<NodeId, usize>,
    pub(crate) objects: Vec<Placed>,
    /// Local variables whose lifetime ends while pointers to them may exist, with the threads that end it.
    pub(super) ended: HashMap<ObjectId, BTreeSet<ThreadNumber>>,
    /// For each class whose objects may pass from one thread to another: the class of the flags that say which freed objects other threads may
    /// allocate.
    pub(super) returned: BTreeMap<usize, usize>,
    /// The threads that have ended where memory is freed.
    pub(super) ends: Ends,
    /// Retired objects.
    pub(crate) retired: Retired,
    /// The chosen order of objects in memory; `None` if addresses of different objects are not compared for order, or of too many.
    pub order: Option<Order>,
    /// The uses of `container_of` that may be applied outside of a structure.
    pub ways_back: Vec<WayBack>,
    /// The late stores to the places of each class.
    pub(crate) late: HashMap<usize, Vec<Late>>,
    /// [`LateStores::given_out`] of the program.
    pub(crate) given_out: FxHashSet<ThreadNumber>,
    /// [`LateStores::held`] of the program.
    pub(crate) held: FxHashMap<(ThreadNumber, Span), Held>,
}

/// A points-to class of places.
#[derive(Debug)]
pub struct Class {
    /// The representative node of its places; `None` for variables that layout adds, such as flags of freed objects and choices.
    pub node: Option<NodeId>,
    /// How the program uses its places.
    pub used: Use,
    /// Whether its places are scalars.
    pub scalar: bool,
    /// A name based on C.
    pub name: String,
    /// The number of its first place.
    pub first: i64,
    /// How many numbers the class has, including those that stand for no place.
    pub count: u64,
    /// A pointer to the place with number n has the value `n * scale`.
    pub scale: i64,
    /// The place that each number stands for; empty if the class is too large, which is allowed only if it is unused.
    pub places: Vec<Option<Placement>>,
    /// The initial value of each place.
    pub initial: Vec<i64>,
    /// The number of possible initial values `0..n`, if its only place starts with a nondeterministic choice.
    pub choice: Option<i64>,
    /// A power of two that divides the addresses of its places.
    pub alignment: u64,
    /// Intervals of its numbers. Each interval belongs to one object, and its numbers are in the order of addresses.
    pub pieces: Vec<Piece>,
    /// Numbers, other than addresses of objects, that are stored or compared where pointers to its places are expected.
    pub strangers: Strangers,
    /// For the class of a flexible array member: its real length in each object that ends with it; in other objects it has no elements. Every object
    /// gets as many numbers as the greatest of these lengths needs.
    pub(crate) lengths: Option<BTreeMap<ObjectId, u64>>,
    /// For arrays of which only the first elements are laid out: the number of these elements.
    pub(crate) laid: Option<u64>,
    /// Whether its places are elements of arrays of which only the first elements are laid out.
    pub(crate) is_cut: bool,
    /// For each part of its places: the class of the part, the distance between the numbers of this part in consecutive places, and the number of
    /// this part in the first place.
    pub(crate) parts: BTreeMap<Part, (usize, i64, i64)>,
    /// The sources of its places: objects, and parts of other classes.
    pub(crate) sources: Vec<Source>,
}

/// The object to which a place belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The object that contains the place.
    pub object: ObjectId,
    /// The index of the allocation, for objects of an allocation site in a loop.
    pub time: u64,
}

/// A kind of part of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Field(u32),
    Elements,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Object(ObjectId),
    /// The places are parts of places of the class given first; each part has the given number of elements.
    Parts(usize, Vec<(Part, u64)>),
}

/// The place numbers that are assigned to an object.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The class of the object; for an allocation the class of one element.
    pub class: usize,
    /// The first number of the object.
    pub first: i64,
    /// Number of elements; 1 unless the object is an allocation.
    pub elements: u64,
    /// The distance between the numbers of consecutive allocations.
    pub stride: i64,
    /// Maximum number of allocations at this site.
    pub times: u64,
    /// Whether the object is an allocation.
    pub heap: bool,
}

impl Layout {
    /// Computes the layout of a program: if that fails or gives too many shared cells, with only the first elements of large arrays, if that helps.
    pub(crate) fn fitting(
        core: &Core,
        nodes: &Nodes,
        lengths: &Lengths,
        late: &LateStores,
        options: Options,
        stop: &Stop<'_>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let fits = |layout: &Result<Self, Vec<Diagnostic>>| {
            layout.as_ref().is_ok_and(|layout| layout.cells() <= MOST_NUMBERS)
        };
        let whole = Layout::new(core, nodes, (lengths, &Laid::new()), late.clone(), options, stop);
        if fits(&whole) {
            return whole;
        }
        let fewer = FEWER.into_iter().map(|most| {
            let laid = laid::fewer(core, nodes, lengths, most, stop);
            Layout::new(core, nodes, (lengths, &laid), late.clone(), options, stop)
        });
        fewer.take_while(|_| !stop.now()).find(fits).unwrap_or(whole)
    }

    /// The number of cells that several threads access. Cells that only one thread accesses become registers.
    fn cells(&self) -> u64 {
        let shared = |class: &&Class| class.scalar && class.used.accessed_by.len() > 1;
        self.classes.iter().filter(shared).map(|class| class.count).fold(0, u64::saturating_add)
    }

    /// Computes the layout of a program, given the lengths of its flexible arrays and the number of elements to lay out of each other array.
    fn new(
        core: &Core,
        nodes: &Nodes,
        (lengths, laid): (&Lengths, &Laid),
        late: LateStores,
        options: Options,
        stop: &Stop<'_>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let uses = Uses::of(core, nodes, stop);
        let mut ended: HashMap<ObjectId, BTreeSet<ThreadNumber>> = HashMap::new();
        for (number, thread) in (0..).map(ThreadNumber).zip(&core.threads) {
            each_statement(&thread.code, stop, &mut |statement| {
                if let StmtKind::Special(ObjectEvent::End(object)) = &statement.kind {
                    ended.entry(*object).or_default().insert(number);
                }
            });
        }
        let mut layout = Layout {
            classes: Vec::new(),
            by_node: HashMap::new(),
            objects: Vec::new(),
            ended,
            returned: BTreeMap::new(),
            ends: core.ends.clone(),
            retired: Retired::default(),
            order: None,
            ways_back: Vec::new(),
            late: HashMap::new(),
            given_out: late.given_out,
            held: late.held,
        };
        layout.find_classes(core, nodes, laid, &uses);
        for (array, lengths) in lengths {
            if let Some(class) = layout.class(nodes, *array) {
                layout.classes[class].lengths = Some(lengths.clone());
            }
        }
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
        for (node, stores) in late.stores {
            if let Some(class) = layout.class(nodes, node) {
                layout.late.entry(class).or_default().extend(stores);
            }
        }
        layout.share_late(core, options.reuse);
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
        layout.find_retired(core, nodes, options.reuse, stop)?;
        Ok(layout)
    }

    /// The class of a node, if it has one.
    pub fn class(&self, nodes: &Nodes, node: NodeId) -> Option<usize> {
        self.by_node.get(&nodes.find(node)).copied()
    }

    /// The numbers of an object.
    pub fn placed(&self, object: ObjectId) -> Placed {
        self.objects[object.0 as usize]
    }

    /// The class of a part of the places of a class, with `width` and `base`: the part of the place `number` has the number `width * number + base`.
    /// For an array, that is the number of its first element.
    pub fn part(&self, class: usize, nodes: &Nodes, step: Step) -> Option<(usize, i64, i64)> {
        let part = match step {
            Step::Element(_) => Part::Elements,
            Step::Field(_) if self.is_union(class, nodes) => Part::Field(0),
            Step::Field(field) => Part::Field(field),
        };
        let &(inner, width, base) = self.classes[class].parts.get(&part)?;
        Some((inner, width, base - self.classes[class].first * width))
    }

    /// Whether a class holds the flags of the freed objects of another class that other threads may allocate, or of its retired objects.
    pub fn says_what_is_returned(&self, class: usize) -> bool {
        self.returned.values().chain(self.retired.flags.values()).any(|flags| *flags == class)
    }

    /// The interpretation of pointers to a node; `None` if the node has no class.
    pub fn pointers_to(&self, nodes: &Nodes, node: NodeId) -> Option<Kind> {
        let class = self.class(nodes, node)?;
        Some(Kind::Pointer(class, self.classes[class].scale))
    }

    /// The interpretation of the values in places of a class, for reports: pointers to a class, or numbers.
    pub fn contents(&self, class: usize, core: &Core, nodes: &Nodes) -> Kind {
        let Some(of) = self.classes.get(class).filter(|of| of.scalar) else { return Kind::Number };
        let Some(node) = of.node else { return Kind::Number };
        let only = |object: ObjectId| core.objects[object.0 as usize].ty.as_ref();
        let ty = match of.sources.as_slice() {
            [Source::Object(object)] => only(*object),
            _ => None,
        };
        let is_pointer =
            ty.or_else(|| nodes.type_of(node)).is_some_and(|ty| matches!(ty.kind, TypeKind::Pointer(_)));
        let pointee = nodes.pointee_of(node).filter(|_| is_pointer);
        pointee.and_then(|node| self.pointers_to(nodes, node)).unwrap_or_default()
    }

    /// The numbers of a class that are the start of an allocation, in ascending order.
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

    /// The numbers of a class in each object that [may be freed](Self::is_freed). The key is the class of the object and its first number there.
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

    /// All scalars, as class and number, inside `count` consecutive places of a class.
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

    /// Adds a class with one flag for each object of `class`. A flag is 1 from when a thread frees the object for others until one of them allocates
    /// it.
    fn pass_on(&mut self, class: usize) {
        let of = &self.classes[class];
        let threads = of.used.freed_by.union(&of.used.allocated_by).copied().collect();
        let flags = self.add_flags("returned", class, threads);
        self.returned.insert(class, flags);
    }

    /// Adds a class with one flag, initially 0, for each object of `class`. Returns the number of the new class.
    pub(super) fn add_flags(&mut self, name: &str, class: usize, threads: BTreeSet<ThreadNumber>) -> usize {
        let of = &self.classes[class];
        let mut flags = Class::new(None);
        flags.name = format!("{name}_{}", of.name);
        flags.used.accessed_by = threads;
        (flags.scalar, flags.used.written) = (true, true);
        (flags.first, flags.count) = (of.first, of.count);
        (flags.places, flags.initial) = (of.places.clone(), vec![0; of.places.len()]);
        self.classes.push(flags);
        self.classes.len() - 1
    }

    fn is_union(&self, class: usize, nodes: &Nodes) -> bool {
        let shape = self.classes[class].node.map(|node| nodes.shape_of(node));
        matches!(shape, Some(Shape::Record(record, _)) if nodes.structure(*record).union)
    }

    /// The class and number of a part of an object; for an allocation, of the object that it returns first. For an allocation, the first step of the
    /// path may select one of its elements. `None` if the path leads to no class.
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

/// The alignment of `malloc` in bytes.
pub(crate) const ALIGNMENT: u64 = 16;

impl Class {
    /// A class without places.
    pub(crate) fn new(node: Option<NodeId>) -> Self {
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
            lengths: None,
            laid: None,
            is_cut: false,
            parts: BTreeMap::new(),
            sources: Vec::new(),
        }
    }

    /// For flexible array members: for each length, the numbers of the arrays with this length.
    pub(crate) fn by_length(&self) -> BTreeMap<u64, Runs> {
        let mut found: BTreeMap<u64, Runs> = BTreeMap::new();
        let Some(lengths) = &self.lengths else { return found };
        for (number, place) in (self.first..).zip(&self.places) {
            let Some(place) = place else { continue };
            let length = lengths.get(&place.object).copied().unwrap_or(0);
            add_to_runs(found.entry(length).or_default(), number);
        }
        found
    }

    /// Whether there is only one place, so that accesses need no index.
    pub fn is_single(&self) -> bool {
        self.count == 1
    }

    /// The initial values of its places; for a choice the least and the greatest.
    pub fn values(&self) -> impl Iterator<Item = i64> {
        let held = self.places.iter().zip(&self.initial).filter(|(place, _)| place.is_some());
        held.map(|(_, &value)| value).chain(self.choice.into_iter().flat_map(|choices| [0, choices - 1]))
    }

    /// The only thread that accesses places of the class; `None` if no thread or several threads do.
    pub fn private_to(&self) -> Option<ThreadNumber> {
        let mut threads = self.used.accessed_by.iter();
        threads.next().copied().filter(|_| threads.next().is_none())
    }

    /// The number of places of this class in the given part of one place of the class `container`; 0 if there are none.
    fn lengths(&self, container: usize, part: Part) -> u64 {
        let sources = self.sources.iter().filter_map(|source| match source {
            Source::Parts(outer, parts) if *outer == container => Some(parts),
            _ => None,
        });
        sources.flatten().find(|&&(found, _)| found == part).map_or(0, |&(_, length)| length)
    }

    /// The maximal runs of numbers that stand for places.
    pub fn runs(&self) -> Runs {
        let mut runs = Runs::new();
        for (number, _) in (self.first..).zip(&self.places).filter(|(_, place)| place.is_some()) {
            add_to_runs(&mut runs, number);
        }
        runs
    }

    /// For each array, in a class with pointer arithmetic: the number of its first element and the number one past its end.
    pub fn arrays(&self) -> Vec<(i64, i64)> {
        self.runs().into_iter().map(|(low, high)| (low, high + 1)).collect()
    }

    /// The maximal runs of numbers that stand for no place, such as those one past the ends of arrays.
    pub fn gaps(&self) -> Runs {
        let mut runs = Runs::new();
        for (number, _) in (self.first..).zip(&self.places).filter(|(_, place)| place.is_none()) {
            add_to_runs(&mut runs, number);
        }
        runs
    }

    /// The condition that a number belongs to this class.
    pub fn has_number(&self, number: &Term) -> Term {
        number.clone().within(self.first, self.first + signed(self.count) - 1)
    }

    /// The condition that a number stands for a place.
    pub fn is_place(&self, number: &Term) -> Term {
        among(&self.runs(), number)
    }
}
