//! Drawings of the control states of a proof. Locations with the same source line are merged into one point.
//!
//! There are two kinds of drawings. For each pair of threads, a table has one square per pair of points. A square is filled if in some control state
//! of the proof the two threads are at these points; mutual exclusion is visible as a hole. A graph has one node per control state, in layers by
//! distance from the start.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use fencewright_lang::source::escape;
use fencewright_program::{LocationId, ThreadId};

use super::escape::text;
use crate::words::{Source, grouped, shortened};

/// Maximum number of points of a thread in a table.
const MOST_POINTS: usize = 64;
/// Maximum number of pairs of threads that are drawn as tables.
const MOST_TABLES: usize = 6;
/// Maximum number of nodes of the graph; those nearest to the start are kept.
const MOST_NODES: usize = 40;
/// Maximum number of holes (squares that are not filled) in a table with tooltips. In a table with more holes, none has a tooltip.
const MOST_HOLES: usize = 400;
/// Maximum length of a point's name, in characters.
const LONGEST_NAME: usize = 16;

/// Side of a square of a table, in pixels.
const SQUARE: usize = 16;
const LAYER: usize = 64;
/// Width of a character of a label, in pixels.
const CHARACTER: usize = 7;

/// A point: the locations of a thread that share a source line, in source order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    /// 0: the thread can continue; 1: it has ended; 2: it has faulted.
    kind: u8,
    file: u32,
    line: usize,
    /// Distinguishes points that have no position in the source.
    number: u32,
}

/// The control states of a proof. A control state is a vector with one point for each thread.
pub struct Controls<'a> {
    source: Source<'a>,
    /// For each thread, the names of its points.
    points: Vec<Vec<String>>,
    /// Classes of threads that the proof's symmetry may permute.
    classes: Vec<Vec<usize>>,
    /// The control states. Of control states that differ by a permutation of the threads within `classes`, only the sorted one.
    states: BTreeSet<Vec<usize>>,
    start: Vec<usize>,
    /// For each thread, the pairs of points that are connected by one of its edges.
    moves: Vec<BTreeSet<(usize, usize)>>,
}

impl<'a> Controls<'a> {
    /// Takes the control states of a proof, each as the locations of all threads. Permuting the threads of a class in `classes` yields further
    /// control states of the proof.
    pub fn new(
        source: Source<'a>,
        classes: Vec<Vec<usize>>,
        locations: impl Iterator<Item = Vec<LocationId>>,
    ) -> Self {
        let threads = source.program.threads.len();
        let classes: Vec<Vec<usize>> = classes
            .into_iter()
            .filter(|class| class.len() > 1 && class.iter().all(|thread| *thread < threads))
            .collect();
        let all: BTreeSet<Vec<LocationId>> = locations.map(|at| in_order(at, &classes)).collect();
        let mut reached: Vec<BTreeSet<LocationId>> = vec![BTreeSet::new(); threads];
        for state in &all {
            for (reached, at) in reached.iter_mut().zip(state) {
                reached.insert(*at);
            }
        }
        for class in &classes {
            let together: BTreeSet<LocationId> =
                class.iter().flat_map(|thread| reached[*thread].iter().copied()).collect();
            class.iter().for_each(|thread| reached[*thread].clone_from(&together));
        }
        let (points, point_of): (Vec<_>, Vec<_>) =
            source.program.threads().map(|(id, _)| points_of(source, id, &reached[id.index()])).unzip();
        let state = |locations: &Vec<LocationId>| -> Vec<usize> {
            locations.iter().zip(&point_of).map(|(at, of): (_, &Vec<usize>)| of[at.index()]).collect()
        };
        let start = state(&source.program.threads.iter().map(|thread| thread.entry).collect());
        let states = all.iter().map(|at| in_order(state(at), &classes)).collect();
        let mut moves: Vec<BTreeSet<(usize, usize)>> = Vec::new();
        for (thread, of) in source.program.threads.iter().zip(&point_of) {
            let edges = thread.edges.iter().map(|edge| (of[edge.from.index()], of[edge.to.index()]));
            moves.push(
                edges.filter(|(from, to)| from != to && *from != usize::MAX && *to != usize::MAX).collect(),
            );
        }
        Controls { source, points, classes, states, start, moves }
    }

    /// The tables and the graph as HTML.
    pub fn html(&self) -> String {
        let mut html = String::new();
        let threads = self.points.len();
        let pairs: Vec<(usize, usize)> =
            (0..threads).flat_map(|a| (a + 1..threads).map(move |b| (a, b))).collect();
        if !pairs.is_empty() {
            html.push_str("<h4>Where two threads can be at the same time</h4>\n<p>A square stands for a line or label of one thread and one of another. Where it is empty, the proof shows that they are never there together.</p>\n<div class=\"drawings\">\n");
            for &(a, b) in pairs.iter().take(MOST_TABLES) {
                html.push_str(&self.table(a, b));
            }
            html.push_str("</div>\n");
            if let Some(more @ 1..) = pairs.len().checked_sub(MOST_TABLES) {
                let _ =
                    writeln!(html, "<p class=\"left-out\">{more} more pairs of threads are not drawn.</p>");
            }
        }
        html.push_str(&self.graph());
        html
    }

    fn thread_name(&self, thread: usize) -> String {
        escape(&self.source.program.threads[thread].name)
    }

    /// The table of a pair of threads.
    fn table(&self, a: usize, b: usize) -> String {
        let together = self.together(a, b);
        let (rows, columns) = (self.points[a].len().min(MOST_POINTS), self.points[b].len().min(MOST_POINTS));
        let longest = |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let left = longest(&self.points[a][..rows]) * CHARACTER + 10;
        let top = longest(&self.points[b][..columns]) * CHARACTER + 10;
        let (width, height) = (left + columns * SQUARE + 2, top + rows * SQUARE + 2);
        let (first, second) = (self.thread_name(a), self.thread_name(b));
        let mut svg = format!(
            "<figure><figcaption><b>{}</b> downwards, <b>{}</b> across</figcaption><div class=\"scroll\"><svg class=\"together\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n",
            text(&first),
            text(&second),
            text(&format!(
                "{} of {} pairs of points are not excluded",
                together.len(),
                self.points[a].len() * self.points[b].len()
            )),
        );
        for (n, name) in self.points[a][..rows].iter().enumerate() {
            let y = top + n * SQUARE + SQUARE - 4;
            let _ =
                writeln!(svg, "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>", left - 5, text(name));
        }
        for (n, name) in self.points[b][..columns].iter().enumerate() {
            let (x, y) = (left + n * SQUARE + SQUARE - 4, top - 5);
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" transform=\"rotate(-90 {x} {y})\">{}</text>",
                text(name)
            );
        }
        let squares = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let (on, off): (Vec<_>, Vec<_>) = squares.partition(|pair| together.contains(pair));
        let corner = |&(row, column): &(usize, usize)| (left + column * SQUARE, top + row * SQUARE);
        let side = SQUARE - 1;
        let path = |squares: &[(usize, usize)]| -> String {
            let square = |(x, y)| format!("M{x} {y}h{side}v{side}h-{side}z");
            squares.iter().map(corner).map(square).collect()
        };
        let _ = writeln!(svg, "<path class=\"on\" d=\"{}\"/>", path(&on));
        if off.len() > MOST_HOLES {
            let _ = writeln!(svg, "<path class=\"off\" d=\"{}\"/>", path(&off));
        } else {
            for pair in &off {
                let (x, y) = corner(pair);
                let names = (&self.points[a][pair.0], &self.points[b][pair.1]);
                let title = format!("{first} at {}, {second} at {}: never", names.0, names.1);
                let _ = writeln!(
                    svg,
                    "<rect class=\"off\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\"><title>{}</title></rect>",
                    text(&title)
                );
            }
        }
        svg.push_str("</svg></div>");
        if rows < self.points[a].len() || columns < self.points[b].len() {
            let _ = write!(
                svg,
                "<p class=\"left-out\">Only the first {MOST_POINTS} points of each thread are drawn.</p>"
            );
        }
        svg.push_str("</figure>\n");
        svg
    }

    /// The pairs of points that two threads occupy in some control state, with all permutations of threads applied.
    fn together(&self, a: usize, b: usize) -> BTreeSet<(usize, usize)> {
        let class = |thread: usize| {
            let own = self.classes.iter().find(|class| class.contains(&thread));
            own.map_or_else(|| vec![thread], Clone::clone)
        };
        let (first, second) = (class(a), class(b));
        let mut together = BTreeSet::new();
        for state in &self.states {
            for &i in &first {
                together.extend(second.iter().filter(|&&j| i != j).map(|&j| (state[i], state[j])));
            }
        }
        together
    }

    /// The successors of a control state among `states`, each with the thread that moves.
    fn successors(&self, state: &[usize]) -> BTreeMap<Vec<usize>, usize> {
        let mut targets = BTreeMap::new();
        for (thread, moves) in self.moves.iter().enumerate() {
            let here = state[thread];
            for &(_, to) in moves.range((here, 0)..(here + 1, 0)) {
                let mut next = state.to_vec();
                next[thread] = to;
                if self.states.contains(&in_order(next.clone(), &self.classes)) {
                    targets.entry(next).or_insert(thread);
                }
            }
        }
        targets
    }

    /// The graph of control states, by breadth-first search from the start.
    fn graph(&self) -> String {
        if !self.states.contains(&in_order(self.start.clone(), &self.classes)) {
            return String::new();
        }
        let start = &self.start;
        // Collects the nodes nearest to the start, each with its layer.
        let mut layer_of: BTreeMap<Vec<usize>, usize> = BTreeMap::from([(start.clone(), 0)]);
        let mut successors: BTreeMap<Vec<usize>, BTreeMap<Vec<usize>, usize>> = BTreeMap::new();
        let mut queue = VecDeque::from([start.clone()]);
        let mut is_complete = true;
        while let Some(state) = queue.pop_front() {
            let next_ones = self.successors(&state);
            for next in
                next_ones.keys().filter(|next| !layer_of.contains_key(*next)).cloned().collect::<Vec<_>>()
            {
                if layer_of.len() == MOST_NODES {
                    is_complete = false;
                    break;
                }
                layer_of.insert(next.clone(), layer_of[&state] + 1);
                queue.push_back(next);
            }
            successors.insert(state, next_ones);
        }
        let layers = ordered(&layer_of, &successors);
        let label = |state: &Vec<usize>| -> String {
            let names = state.iter().zip(&self.points).map(|(point, names)| names[*point].as_str());
            names.collect::<Vec<_>>().join(" · ")
        };
        let widest = layer_of.keys().map(|state| label(state).chars().count()).max().unwrap_or(0);
        let node = widest * CHARACTER + 16;
        let most = layers.iter().map(Vec::len).max().unwrap_or(1);
        let (width, height) = (most * (node + 22) + 60, layers.len() * LAYER);
        let mut place: BTreeMap<&Vec<usize>, (usize, usize)> = BTreeMap::new();
        for (n, layer) in layers.iter().enumerate() {
            let left = (width - layer.len() * (node + 22)) / 2;
            for (m, state) in layer.iter().enumerate() {
                place.insert(state, (left + m * (node + 22) + node / 2 + 11, n * LAYER + 18));
            }
        }
        let names: Vec<String> = (0..self.points.len()).map(|t| text(&self.thread_name(t))).collect();
        let mut html = format!(
            "<h4>Control states and the steps between them</h4>\n<p>A box is a control state: the lines or labels at which {} are. The further down, the more steps from the start. A line is a step of control flow; whether data allow it in every state is not drawn.</p>\n",
            names.join(" · ")
        );
        html.push_str("<p class=\"legend\">");
        for (thread, name) in names.iter().enumerate() {
            let _ = write!(html, "<span class=\"mover t{}\">{name} moves</span> ", thread % 6);
        }
        html.push_str("</p>\n");
        if !is_complete {
            let exchanged = if self.classes.is_empty() { "" } else { ", up to exchanging threads" };
            let _ = writeln!(
                html,
                "<p class=\"left-out\">The proof has {} control states{exchanged}; the {} nearest to the start are drawn, the others are left out.</p>",
                grouped(self.states.len() as u64),
                grouped(layer_of.len() as u64)
            );
        }
        let _ = writeln!(
            html,
            "<div class=\"scroll\"><svg class=\"graph\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{} control states\">",
            layer_of.len()
        );
        for (state, &(x, y)) in &place {
            for (next, thread) in successors.get(*state).into_iter().flatten() {
                let Some(&(to_x, to_y)) = place.get(next) else { continue };
                let (class, path) = (format!("t{}", thread % 6), edge_path((x, y), (to_x, to_y), node / 2));
                let _ = writeln!(html, "<path class=\"{class}\" d=\"{path}\"/>");
            }
        }
        for (state, (x, y)) in &place {
            let class = if *state == start { " class=\"start\"" } else { "" };
            let _ = writeln!(
                html,
                "<g{class}><rect x=\"{}\" y=\"{}\" width=\"{node}\" height=\"26\" rx=\"5\"/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>",
                x - node / 2,
                y - 13,
                y + 4,
                text(&label(state))
            );
        }
        html.push_str("</svg></div>\n");
        html
    }
}

/// The SVG path of an edge between two nodes, given by their centres; `half` is half of the width of a node.
fn edge_path((x, y): (usize, usize), (to_x, to_y): (usize, usize), half: usize) -> String {
    match to_y.cmp(&y) {
        Ordering::Greater => {
            let (from, to) = (y + 13, to_y - 13);
            let middle = (from + to) / 2;
            format!("M{x} {from}C{x} {middle} {to_x} {middle} {to_x} {to}")
        }
        // An edge within a layer bends below it.
        Ordering::Equal => {
            let (from, below) = (y + 13, y + 36);
            format!("M{x} {from}C{x} {below} {to_x} {below} {to_x} {from}")
        }
        // An edge to an earlier layer passes on the right side.
        Ordering::Less => {
            let (from, to, bend) = (x + half, to_x + half, x.max(to_x) + half + 30);
            format!("M{from} {y}C{bend} {y} {bend} {to_y} {to} {to_y}")
        }
    }
}

/// The nodes of each layer, sorted by the average position of their predecessors in the layer before, which reduces crossings.
fn ordered<'s>(
    layer_of: &'s BTreeMap<Vec<usize>, usize>,
    successors: &BTreeMap<Vec<usize>, BTreeMap<Vec<usize>, usize>>,
) -> Vec<Vec<&'s Vec<usize>>> {
    let mut layers: Vec<Vec<&Vec<usize>>> = Vec::new();
    for (state, &layer) in layer_of {
        layers.resize_with(layers.len().max(layer + 1), Vec::new);
        layers[layer].push(state);
    }
    for n in 1..layers.len() {
        let (before, rest) = layers.split_at_mut(n);
        let before = &before[n - 1];
        let middle = |state: &&Vec<usize>| {
            let leads = |from: &&Vec<usize>| successors.get(*from).is_some_and(|to| to.contains_key(*state));
            let from: Vec<usize> =
                before.iter().enumerate().filter(|(_, from)| leads(from)).map(|(place, _)| place).collect();
            from.iter().sum::<usize>() * 1_000 / from.len().max(1)
        };
        rest[0].sort_by_cached_key(middle);
    }
    layers
}

/// The canonical representative of a control state: within each class of threads, the points are sorted.
fn in_order<T: Ord + Clone>(mut state: Vec<T>, classes: &[Vec<usize>]) -> Vec<T> {
    for class in classes {
        let mut own: Vec<T> = class.iter().map(|thread| state[*thread].clone()).collect();
        own.sort();
        class.iter().zip(own).for_each(|(thread, at)| state[*thread] = at);
    }
    state
}

/// The names of the points of a thread, and, for each location, the index of its point; `usize::MAX` for unreached locations.
fn points_of(source: Source<'_>, id: ThreadId, reached: &BTreeSet<LocationId>) -> (Vec<String>, Vec<usize>) {
    let thread = source.program.thread(id);
    let mut points: BTreeMap<Point, (String, Vec<LocationId>)> = BTreeMap::new();
    for &location in reached {
        let at = &thread.locations[location.index()];
        let here = at.span.or_else(|| thread.edges_from(location).next().map(|(_, edge)| edge.span));
        let position = here.map(|span| (span.file.0, source.position(span)));
        let (kind, name) = match (at.labels.first(), position) {
            _ if location == thread.fault => (2, "fault".to_string()),
            (Some(label), _) => (0, label.clone()),
            _ if thread.is_end(location) => (1, "end".to_string()),
            (None, Some((_, position))) => (0, position.line_name()),
            (None, None) => (0, format!("#{}", location.0)),
        };
        let (file, line) = position.map_or((u32::MAX, 0), |(file, position)| (file, position.line));
        let number = if position.is_some() || kind > 0 { 0 } else { location.0 };
        let point = match kind {
            0 => Point { kind, file, line, number },
            _ => Point { kind, file: 0, line: 0, number: 0 },
        };
        let (known, locations) = points.entry(point).or_insert_with(|| (name.clone(), Vec::new()));
        // A label is preferred as the name of a point, because it is more informative than a line number.
        if !at.labels.is_empty() && kind == 0 {
            known.clone_from(&name);
        }
        locations.push(location);
    }
    let mut of = vec![usize::MAX; thread.locations.len()];
    let mut names = Vec::new();
    for (n, (name, locations)) in points.into_values().enumerate() {
        locations.iter().for_each(|location| of[location.index()] = n);
        names.push(shortened(&escape(&name), LONGEST_NAME));
    }
    (names, of)
}
