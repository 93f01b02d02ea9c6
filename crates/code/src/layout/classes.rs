//! Which numbers the places of each class have.
//!
//! The places of a class are numbered, from 1 if there are pointers to them, because null is 0. A structure or array in which they are parts contributes
//! a block of numbers for each of its own places, so that the number of a part is `width * number + base`, plus the index in an array. Behind an
//! array, or behind everything where pointers are moved, one number stands for no place: that is where a pointer one past the end points to.

use crate::core::ObjectEvent;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use fencewright_c::typed::tree::Step;
use fencewright_program::BinaryOp;
use fencewright_text::Diagnostic;

use crate::core::{
    Core, Known, LOWEST_ADDRESS, NodeId, ObjectId, Origin, StmtKind, Strangers, ThreadNumber, Times,
    each_statement, function_number,
};
use crate::flat::{Term, UNDEFINED};
use crate::layout::addresses::{Order, Piece, WayBack};
use crate::layout::uses::{Use, Uses};
use crate::nodes::{Nodes, Shape};
use crate::pipeline::Options;
use crate::reuse::{self, Reuse};
use fencewright_text::Stop;

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

    /// A class for every node that is a part of an object, or that the code mentions.
    fn find_classes(&mut self, core: &Core, nodes: &Nodes, uses: &Uses<'_>) {
        let mut open: VecDeque<NodeId> = core.objects.iter().map(|object| nodes.find(object.node)).collect();
        open.extend(uses.nodes());
        while let Some(node) = open.pop_front() {
            if self.by_node.contains_key(&node) {
                continue;
            }
            self.by_node.insert(node, self.classes.len());
            let mut class = Class::new(node);
            class.used = uses.get(node);
            class.scalar = matches!(nodes.shape_of(node), Shape::Scalar(_));
            class.strangers = nodes.strangers(node).clone();
            self.classes.push(class);
            parts(nodes, node).into_iter().rev().for_each(|(_, inner, _)| open.push_front(inner));
        }
        for class in 0..self.classes.len() {
            let mut by_class: BTreeMap<usize, Vec<(Part, u64)>> = BTreeMap::new();
            for (part, inner, length) in parts(nodes, self.classes[class].node) {
                by_class.entry(self.by_node[&inner]).or_default().push((part, length));
            }
            for (inner, parts) in by_class {
                self.classes[inner].sources.push(Source::Parts(class, parts));
            }
        }
    }

    /// How many elements each object has, and how often it is there.
    fn find_objects(&mut self, core: &Core, nodes: &Nodes, options: Options) -> Result<(), Vec<Diagnostic>> {
        let mut errors = Vec::new();
        for (number, object) in core.objects.iter().enumerate() {
            let class = self.by_node[&nodes.find(object.node)];
            self.classes[class].sources.push(Source::Object(ObjectId(number as u32)));
            let (elements, times, heap) = match object.origin {
                Origin::Global | Origin::Local(_) => (1, 1, false),
                Origin::Heap { bytes, times, .. } => {
                    let times = if times == Times::Counted { u64::from(options.heap) } else { 1 };
                    match elements(nodes, object.node, bytes) {
                        Ok(elements) => (elements, times, true),
                        Err((message, help)) => {
                            errors.push(Diagnostic::new(object.span, message).help(help));
                            (1, times, true)
                        }
                    }
                }
            };
            let gap = u64::from(elements > 1 || self.classes[class].used.moved);
            let stride = elements.saturating_add(gap).min(i64::MAX as u64) as i64;
            self.objects.push(Placed { class, first: 0, elements, stride, times, heap });
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn containers_first(&self, class: usize, seen: &mut [bool], order: &mut Vec<usize>) {
        if std::mem::replace(&mut seen[class], true) {
            return;
        }
        for source in &self.classes[class].sources {
            if let Source::Parts(container, _) = source {
                self.containers_first(*container, seen, order);
            }
        }
        order.push(class);
    }

    /// Gives the places of a class their numbers; those of the classes that it is a part of are known.
    fn number(&mut self, class: usize, core: &Core, nodes: &Nodes) -> Result<(), Vec<Diagnostic>> {
        let used = self.classes[class].used.clone();
        let sources = self.classes[class].sources.clone();
        let count = sources.iter().map(|source| self.numbers_of(source, &used)).fold(0, u64::saturating_add);
        let scale = self.scale(class, count, nodes);
        self.classes[class].scale = scale;
        self.classes[class].alignment = self.alignment(&sources, nodes);
        let first = match sources.as_slice() {
            _ if used.addressed => first_address(&self.classes[class].strangers, used.compared, count, scale),
            [Source::Parts(container, parts)] if matches!(parts[..], [(Part::Field(_), _)]) => {
                self.classes[*container].first
            }
            _ => 0,
        };
        let mut next: u64 = 0;
        let mut places: Vec<(u64, u64, Placement)> = Vec::new();
        let mut pieces = Vec::new();
        for source in &sources {
            match source {
                Source::Object(object) => {
                    let placed = &mut self.objects[object.0 as usize];
                    placed.first = first + signed(next);
                    for time in 0..placed.times.min(MOST_NUMBERS) {
                        let start = next.saturating_add(time.saturating_mul(placed.stride as u64));
                        let placement = Placement { object: *object, time };
                        places.push((start, placed.elements, placement));
                        pieces.push(Piece::new(placement, first + signed(start), placed.stride));
                    }
                    next = next.saturating_add((placed.stride as u64).saturating_mul(placed.times));
                }
                Source::Parts(container, parts) => {
                    let taken = |part: &(Part, u64)| numbers_of_part(*part, &used);
                    let width = parts.iter().map(taken).fold(0, u64::saturating_add);
                    let outer = &mut self.classes[*container];
                    let mut base = next;
                    pieces.extend(outer.pieces.iter().map(|piece| {
                        let low = first + signed(next) + (piece.low - outer.first) * signed(width);
                        Piece::new(piece.of, low, (piece.high - piece.low + 1) * signed(width))
                    }));
                    for part in parts {
                        outer.parts.insert(part.0, (class, signed(width), first + signed(base)));
                        for (n, place) in outer.places.iter().enumerate() {
                            let start = (n as u64).saturating_mul(width).saturating_add(base);
                            places.extend(place.map(|place| (start, part.1, place)));
                        }
                        base = base.saturating_add(taken(part));
                    }
                    next = next.saturating_add(width.saturating_mul(outer.count));
                }
            }
        }
        if next > MOST_NUMBERS && (used.addressed || !used.accessed_by.is_empty()) {
            let object = places.first().map(|(_, _, place)| place.object);
            let span = object.map(|object| core.objects[object.0 as usize].span).unwrap_or_default();
            let message =
                format!("more than {MOST_NUMBERS} places in memory that pointers or indices choose from");
            return Err(vec![
                Diagnostic::new(span, message).help("make the arrays smaller: a few elements show most bugs"),
            ]);
        }
        let this = &mut self.classes[class];
        (this.first, this.count, this.pieces) = (first, next, pieces);
        if next <= MOST_NUMBERS {
            this.places = vec![None; next as usize];
            for (start, length, place) in places {
                this.places[start as usize..(start + length) as usize].fill(Some(place));
            }
        }
        Ok(())
    }

    /// How many numbers a source has in its class.
    fn numbers_of(&self, source: &Source, used: &Use) -> u64 {
        match source {
            Source::Object(object) => {
                let placed = self.placed(*object);
                (placed.stride as u64).saturating_mul(placed.times)
            }
            Source::Parts(container, parts) => {
                let width = parts.iter().map(|part| numbers_of_part(*part, used));
                width.fold(0, u64::saturating_add).saturating_mul(self.classes[*container].count)
            }
        }
    }

    /// A name after those of C: that of the only object, or of the structure, and those of the members on the way.
    fn name(&self, class: usize, core: &Core, nodes: &Nodes) -> String {
        let this = &self.classes[class];
        if let (Shape::Record(record, _), true) = (nodes.shape_of(this.node), this.sources.len() > 1) {
            return nodes.structure(*record).name.to_string();
        }
        match this.sources.first() {
            None => String::from("nothing"),
            Some(Source::Object(object)) => core.objects[object.0 as usize].name.clone(),
            Some(Source::Parts(container, parts)) => {
                let outer = &self.classes[*container];
                match (parts[0].0, nodes.shape_of(outer.node)) {
                    (Part::Field(field), Shape::Record(record, _)) => {
                        format!("{}_{}", outer.name, nodes.structure(*record).fields[field as usize].name)
                    }
                    _ => outer.name.clone(),
                }
            }
        }
    }

    /// By what numbers are multiplied: pointers that are computed with as integers are as far apart as the places would be in memory, so that
    /// low bits can be used for something else.
    fn scale(&self, class: usize, count: u64, nodes: &Nodes) -> i64 {
        let this = &self.classes[class];
        if !nodes.is_integer(this.node) || count == 0 {
            return 1;
        }
        let size = nodes.size(this.node).unwrap_or(ALIGNMENT).max(1);
        let alone = |source: &Source| match source {
            Source::Object(object) => self.placed(*object).elements == 1 && self.placed(*object).heap,
            Source::Parts(..) => false,
        };
        let size = if !this.used.moved && this.sources.iter().all(alone) {
            size.next_multiple_of(ALIGNMENT)
        } else {
            size
        };
        size.min(1 << 20) as i64
    }

    fn initial_values(&mut self, core: &Core, nodes: &Nodes) -> Result<(), Vec<Diagnostic>> {
        for class in &mut self.classes {
            let undefined = |place: &Option<Placement>| {
                place.is_some_and(|place| core.objects[place.object.0 as usize].undefined)
            };
            class.initial =
                class.places.iter().map(|place| if undefined(place) { UNDEFINED } else { 0 }).collect();
        }
        for (number, object) in core.objects.iter().enumerate() {
            for (path, known) in &object.initial {
                let Some((class, place)) = self.locate(nodes, ObjectId(number as u32), path) else {
                    continue;
                };
                let Some(value) = self.known(nodes, known) else {
                    let message = "this starts with the address of something that the program does not use as it is declared";
                    return Err(vec![Diagnostic::new(object.span, message)]);
                };
                let index = place - self.classes[class].first;
                if let Some(cell) = self.classes[class].initial.get_mut(index as usize) {
                    *cell = value;
                }
            }
        }
        Ok(())
    }

    /// A known value as a number.
    fn known(&self, nodes: &Nodes, known: &Known) -> Option<i64> {
        Some(match known {
            Known::Number(number) => *number,
            Known::Function(function) => function_number(*function),
            Known::Undefined => UNDEFINED,
            Known::Address(object, path) => {
                let (class, number) = self.locate(nodes, *object, path)?;
                number * self.classes[class].scale
            }
        })
    }
}

/// What `malloc` aligns to.
pub(crate) const ALIGNMENT: u64 = 16;

/// The first of `count` numbers such that no address, with any bits that are put into it, is one of the numbers that stand in the place of addresses; behind all numbers
/// that no address can be if addresses are compared with numbers for order.
fn first_address(strangers: &Strangers, compared: bool, count: u64, scale: i64) -> i64 {
    let above = |limit: i64| (limit + scale - 1).div_euclid(scale);
    let mut first = match (strangers.computed, compared) {
        (true, _) => above(2 * LOWEST_ADDRESS),
        (false, true) => above(LOWEST_ADDRESS),
        (false, false) => 1,
    };
    for number in strangers.known().iter().map(|number| number.div_euclid(scale)) {
        if (first..first.saturating_add(signed(count))).contains(&number) {
            first = number + 1;
        }
    }
    first
}

/// How many numbers a part of a place takes.
fn numbers_of_part((part, length): (Part, u64), used: &Use) -> u64 {
    let gap = used.moved || part == Part::Elements && used.addressed;
    length.saturating_add(u64::from(gap))
}

/// A count as a number; those that are too large are refused where they matter.
fn signed(count: u64) -> i64 {
    count.min(1 << 40) as i64
}

/// How many elements so many bytes are; in words what is wrong with them, and what to do.
fn elements(nodes: &Nodes, node: NodeId, bytes: u64) -> Result<u64, (String, &'static str)> {
    let Some(size) = nodes.size(node).filter(|&size| size > 0) else { return Ok(1) };
    if nodes.open_array(node).is_some() && bytes >= size {
        return Ok(1);
    }
    match (bytes / size, nodes.shape_of(node)) {
        (0, _) => {
            let message = format!("{bytes} bytes are allocated, but used as something of {size} bytes");
            Err((message, "allocate `sizeof` of what it is used as"))
        }
        (2.., Shape::Array(..)) => Err((
            "several arrays in one allocation".to_string(),
            "allocate each of them by itself, or make them a structure",
        )),
        (elements, _) => Ok(elements),
    }
}

/// The parts of the places of a node that anybody asked for: which, their nodes, and how many there are.
fn parts(nodes: &Nodes, node: NodeId) -> Vec<(Part, NodeId, u64)> {
    match nodes.shape_of(node) {
        Shape::Record(record, members) => {
            let count = if nodes.structure(*record).union { 1 } else { members.len() };
            let member = |(field, member): (usize, &Option<NodeId>)| {
                Some((Part::Field(field as u32), nodes.find((*member)?), 1))
            };
            members.iter().enumerate().take(count).filter_map(member).collect()
        }
        Shape::Array(length, element) => vec![(Part::Elements, nodes.find(*element), *length)],
        Shape::Unknown | Shape::Scalar(_) | Shape::Function => Vec::new(),
    }
}

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
