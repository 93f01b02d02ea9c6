//! Numbering of classes: containers first, because the numbers of parts follow from those of their containers.

use std::collections::{BTreeMap, VecDeque};

use fencewright_text::Diagnostic;

use super::{ALIGNMENT, Class, Layout, MOST_NUMBERS, Part, Placed, Placement, Source};
use crate::core::{Core, Known, LOWEST_ADDRESS, NodeId, ObjectId, Origin, Strangers, Times, function_number};
use crate::flat::UNDEFINED;
use crate::layout::addresses::Piece;
use crate::layout::laid::Laid;
use crate::layout::uses::{Use, Uses};
use crate::nodes::{Nodes, Shape};
use crate::pipeline::Options;

/// The first of `count` consecutive numbers for the places of a class. No pointer to these places, even with tag bits, equals a number that is stored
/// where pointers are expected. If pointers are compared for order, every pointer to these places is at least [`LOWEST_ADDRESS`], and so greater than
/// all numbers below that address.
pub(super) fn first_address(strangers: &Strangers, compared: bool, count: u64, scale: i64) -> i64 {
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

/// How many numbers a part takes in its class.
pub(super) fn numbers_of_part((part, length): (Part, u64), used: &Use) -> u64 {
    let gap = used.moved || part == Part::Elements && used.addressed;
    length.saturating_add(u64::from(gap))
}

/// A count as a signed number; counts that are too large are rejected by [`Layout::number`].
pub(super) fn signed(count: u64) -> i64 {
    count.min(1 << 40) as i64
}

/// Number of elements in an allocation of this size; or an error message and its help.
pub(super) fn elements(nodes: &Nodes, node: NodeId, bytes: u64) -> Result<u64, (String, &'static str)> {
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

/// The parts of a node that the program uses: kind, node and number of elements.
pub(super) fn parts(nodes: &Nodes, node: NodeId) -> Vec<(Part, NodeId, u64)> {
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

impl Layout {
    /// Creates a class for every node that is part of an object or occurs in the code.
    pub(super) fn find_classes(&mut self, core: &Core, nodes: &Nodes, laid: &Laid, uses: &Uses<'_>) {
        let mut open: VecDeque<NodeId> = core.objects.iter().map(|object| nodes.find(object.node)).collect();
        open.extend(uses.nodes());
        while let Some(node) = open.pop_front() {
            if self.by_node.contains_key(&node) {
                continue;
            }
            self.by_node.insert(node, self.classes.len());
            let mut class = Class::new(Some(node));
            class.used = uses.get(node);
            class.scalar = matches!(nodes.shape_of(node), Shape::Scalar(_));
            class.strangers = nodes.strangers(node).clone();
            class.laid = laid.get(&node).copied();
            self.classes.push(class);
            parts(nodes, node).into_iter().rev().for_each(|(_, inner, _)| open.push_front(inner));
        }
        for class in 0..self.classes.len() {
            let mut by_class: BTreeMap<usize, Vec<(Part, u64)>> = BTreeMap::new();
            let Some(node) = self.classes[class].node else { continue };
            for (part, inner, length) in parts(nodes, node) {
                let length = laid.get(&node).map_or(length, |laid| length.min(*laid));
                by_class.entry(self.by_node[&inner]).or_default().push((part, length));
            }
            for (inner, parts) in by_class {
                self.classes[inner].sources.push(Source::Parts(class, parts));
            }
        }
    }

    /// Determines the number of elements of each object, and how often it can be allocated.
    pub(super) fn find_objects(
        &mut self,
        core: &Core,
        nodes: &Nodes,
        options: Options,
    ) -> Result<(), Vec<Diagnostic>> {
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

    pub(super) fn containers_first(&self, class: usize, seen: &mut [bool], order: &mut Vec<usize>) {
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

    /// Numbers the places of a class. The classes of its containers must have been numbered before.
    pub(super) fn number(&mut self, class: usize, core: &Core, nodes: &Nodes) -> Result<(), Vec<Diagnostic>> {
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
                            let real = |place: Placement| match &outer.lengths {
                                Some(lengths) => lengths.get(&place.object).copied().unwrap_or(0),
                                None => part.1,
                            };
                            places.extend(place.map(|place| (start, real(place).min(part.1), place)));
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
        let is_cut = |source: &Source| matches!(source, Source::Parts(container, _) if self.classes[*container].laid.is_some());
        let is_cut = sources.iter().any(is_cut);
        let this = &mut self.classes[class];
        this.is_cut = is_cut;
        (this.first, this.count, this.pieces) = (first, next, pieces);
        if next <= MOST_NUMBERS {
            this.places = vec![None; next as usize];
            for (start, length, place) in places {
                this.places[start as usize..(start + length) as usize].fill(Some(place));
            }
        }
        Ok(())
    }

    /// How many numbers a source takes in its class.
    pub(super) fn numbers_of(&self, source: &Source, used: &Use) -> u64 {
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

    /// A name for a class, based on C: for structures from several sources the name of the structure, otherwise the name of the first object, or that
    /// of the first container with the name of the member.
    pub(super) fn name(&self, class: usize, core: &Core, nodes: &Nodes) -> String {
        let this = &self.classes[class];
        let shape = |of: &Class| of.node.map(|node| nodes.shape_of(node));
        if let (Some(Shape::Record(record, _)), true) = (shape(this), this.sources.len() > 1) {
            return nodes.structure(*record).name.to_string();
        }
        match this.sources.first() {
            None => String::from("nothing"),
            Some(Source::Object(object)) => core.objects[object.0 as usize].name.clone(),
            Some(Source::Parts(container, parts)) => {
                let outer = &self.classes[*container];
                match (parts[0].0, shape(outer)) {
                    (Part::Field(field), Some(Shape::Record(record, _))) => {
                        format!("{}_{}", outer.name, nodes.structure(*record).fields[field as usize].name)
                    }
                    _ => outer.name.clone(),
                }
            }
        }
    }

    /// The factor between numbers and pointer values. Pointers that the program computes with as integers are as far apart as real addresses, so that
    /// their low bits can carry tags.
    pub(super) fn scale(&self, class: usize, count: u64, nodes: &Nodes) -> i64 {
        let this = &self.classes[class];
        let Some(node) = this.node.filter(|node| nodes.is_integer(*node) && count != 0) else { return 1 };
        let size = nodes.size(node).unwrap_or(ALIGNMENT).max(1);
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

    pub(super) fn initial_values(&mut self, core: &Core, nodes: &Nodes) -> Result<(), Vec<Diagnostic>> {
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

    /// The number that represents a constant in flat code; `None` for an address without a class.
    pub(super) fn known(&self, nodes: &Nodes, known: &Known) -> Option<i64> {
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
