//! Detection of symmetric threads: families of threads that may be permuted, and which values are thread numbers.
//!
//! In an instance of `thread p[me in 0..N]` the number of the thread is a constant. If the code of two instances differs in a constant, that constant
//! is assumed to be a thread number. Registers, variables and array indices belong to one *class* if values flow between them or are compared for
//! equality. All values of the class of a thread number are thread numbers, unless the class takes part in arithmetic, is or receives a truth value,
//! or is compared by `<` with anything but a constant; then it holds plain values.
//!
//! This is a heuristic. Soundness rests on the check in [`fencewright_certify::automorphism`] that compares the program with its image.

use std::collections::BTreeSet;

use fencewright_certify::automorphism::{Family, Live, Reductions};
use fencewright_program::{
    Address, BinaryOp, Expr, Formula, LocationId, Observable, Op, Program, RegisterId, Thread, ThreadId,
};
use fencewright_verdict::{Limits, Task};

/// Maximum number of threads in a family; larger ones are ignored.
const MOST_THREADS: usize = 16;
/// Maximum number of comparisons made to check transpositions of threads. Checking one transposition compares the registers at all edges of all
/// threads.
const MOST_COMPARED: usize = 1 << 24;

/// The families of a task whose threads may be permuted under the given reductions, as confirmed by the checker of automorphisms.
pub fn families(task: &Task<'_>, reductions: Reductions<'_>, limits: &Limits) -> Vec<Family> {
    let size = |thread: &Thread| thread.edges.len() * (8 + thread.registers.len());
    let size: usize = task.program.threads.iter().map(size).sum();
    let groups = groups(task.program);
    if groups.is_empty() || size * groups.iter().map(Vec::len).sum::<usize>() > MOST_COMPARED {
        return Vec::new();
    }
    let mut kinds = Kinds::new(task, reductions.live);
    let mut found: Vec<Family> = Vec::new();
    for group in groups {
        let Some(family) = kinds.family(task.program, &group) else { continue };
        let exchangeable = |a: usize, b: usize| {
            limits.exceeded(0).is_none()
                && family.exchange(task.program, reductions, a, b).check(&task.properties).is_ok()
        };
        for part in parts(&family, exchangeable) {
            // Families whose numbers occur in the same variables, indices or registers cannot be permuted independently of each other.
            if !found.iter().any(|other| meet(&part, other)) {
                found.push(part);
            }
        }
    }
    found
}

/// Groups of threads that are instances of one template with equally many registers, locations and edges, or that have no template and the same code.
/// Groups of one thread, and of more than `MOST_THREADS`, are left out.
fn groups(program: &Program) -> Vec<Vec<ThreadId>> {
    let mut groups: Vec<Vec<ThreadId>> = Vec::new();
    for (id, thread) in program.threads() {
        let belongs = |group: &&mut Vec<ThreadId>| {
            let first = program.thread(group[0]);
            match (&first.family, &thread.family) {
                (Some((name, _)), Some((other, _))) => name == other && has_shape_of(first, thread),
                (None, None) => first.is_like(thread),
                _ => false,
            }
        };
        match groups.iter_mut().find(belongs) {
            Some(group) => group.push(id),
            None => groups.push(vec![id]),
        }
    }
    groups.retain(|group| (2..=MOST_THREADS).contains(&group.len()));
    groups
}

fn has_shape_of(a: &Thread, b: &Thread) -> bool {
    let shape = |t: &Thread| (t.registers.len(), t.locations.len(), t.edges.len());
    shape(a) == shape(b)
}

fn meet(a: &Family, b: &Family) -> bool {
    !(a.indices.is_disjoint(&b.indices)
        && a.values.is_disjoint(&b.values)
        && a.registers.is_disjoint(&b.registers))
}

/// The sets of at least two threads of a family, any two of which may be exchanged; exchangeability is transitive.
fn parts(family: &Family, mut exchangeable: impl FnMut(usize, usize) -> bool) -> Vec<Family> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for n in 0..family.threads.len() {
        // The newest member of a part is tried first, because threads with adjacent numbers are usually exchangeable.
        match parts.iter_mut().find(|part| part.iter().rev().any(|&m| exchangeable(m, n))) {
            Some(part) => part.push(n),
            None => parts.push(vec![n]),
        }
    }
    parts.retain(|part| part.len() > 1);
    let part = |members: Vec<usize>| Family {
        threads: members.iter().map(|&n| family.threads[n]).collect(),
        numbers: members.iter().map(|&n| family.numbers[n]).collect(),
        ..family.clone()
    };
    parts.into_iter().map(part).collect()
}

/// A union-find node: a class of registers, variables and indices between which values flow.
type Node = usize;
/// The class of values that are not thread numbers.
const PLAIN: Node = 0;

/// The union-find structure over registers, variables and indices.
struct Kinds<'a> {
    live: &'a Live,
    parent: Vec<Node>,
    variables: usize,
    /// For each thread and location, the node of the first live register; the nodes of the other live registers follow in order. Instances of a
    /// template with the same live registers share their nodes.
    registers: Vec<Vec<Node>>,
    /// For each thread, the constants of its code in order, each with its class.
    constants: Vec<Vec<(i64, Node)>>,
}

/// The classes of a thread's registers at a point inside an edge: the same as at the source of the edge, except for the registers that the edge has
/// written so far.
struct Point {
    thread: usize,
    from: LocationId,
    written: Vec<(RegisterId, Node)>,
}

impl<'a> Kinds<'a> {
    fn new(task: &Task<'_>, live: &'a Live) -> Self {
        let program = task.program;
        let variables = program.variables.len();
        let mut kinds =
            Kinds { live, parent: Vec::new(), variables, registers: Vec::new(), constants: Vec::new() };
        kinds.parent.extend(0..1 + 2 * variables);
        for (n, thread) in program.threads.iter().enumerate() {
            let alike = |&other: &usize| {
                let family = |t: &Thread| t.family.as_ref().map(|(name, _)| name.clone());
                let other_thread = &program.threads[other];
                thread.family.is_some() && family(other_thread) == family(thread) && live[other] == live[n]
            };
            let nodes = match (0..n).find(alike) {
                Some(first) => kinds.registers[first].clone(),
                None => live[n].iter().map(|registers| kinds.fresh(registers.len())).collect(),
            };
            kinds.registers.push(nodes);
        }
        for (id, thread) in program.threads() {
            let mut constants = Vec::new();
            for edge in &thread.edges {
                let mut point = Point { thread: id.index(), from: edge.from, written: Vec::new() };
                for op in edge.action.ops() {
                    kinds.arrives(&point, thread.fault);
                    kinds.op(&mut point, op, &mut constants);
                }
                kinds.arrives(&point, edge.to);
            }
            kinds.constants.push(constants);
        }
        for formula in task.properties.iter().filter_map(|p| p.formula()) {
            kinds.formula(program, formula);
        }
        kinds
    }

    /// Adds `count` new classes and returns the first one.
    fn fresh(&mut self, count: usize) -> Node {
        let first = self.parent.len();
        self.parent.extend(first..first + count);
        first
    }

    /// The class of a variable's values.
    fn value(&self, variable: u32) -> Node {
        1 + variable as usize
    }

    /// The class of a variable's indices.
    fn index(&self, variable: u32) -> Node {
        1 + self.variables + variable as usize
    }

    /// The class of a register at a location; `None` if it is dead there.
    fn at(&self, thread: usize, location: LocationId, register: RegisterId) -> Option<Node> {
        let position = self.live[thread][location.index()].binary_search(&register.0).ok()?;
        Some(self.registers[thread][location.index()] + position)
    }

    fn find(&mut self, mut node: Node) -> Node {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    /// Merges two classes. The smaller node becomes the root, so that plain values keep the root [`PLAIN`].
    fn unite(&mut self, a: Node, b: Node) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b)] = a.min(b);
    }

    /// The class of a register at a point. Dead registers are never read and count as plain.
    fn held(&self, point: &Point, register: RegisterId) -> Node {
        let written = point.written.iter().rev().find(|(r, _)| *r == register);
        let before = || self.at(point.thread, point.from, register);
        written.map(|(_, node)| *node).or_else(before).unwrap_or(PLAIN)
    }

    /// Merges the class of each register that is live at a location with its class at a point from which the location is reached.
    fn arrives(&mut self, point: &Point, location: LocationId) {
        let live = self.live;
        for (n, register) in live[point.thread][location.index()].iter().enumerate() {
            let held = self.held(point, RegisterId(*register));
            self.unite(self.registers[point.thread][location.index()] + n, held);
        }
    }

    fn op(&mut self, point: &mut Point, op: &Op, constants: &mut Vec<(i64, Node)>) {
        match op {
            Op::Skip => {}
            Op::Havoc(r, _) => {
                let class = self.fresh(1);
                point.written.push((*r, class));
            }
            Op::Assign(r, e) => {
                let class = self.fresh(1);
                self.expr(e, class, &|kinds, r| kinds.held(point, *r), constants);
                point.written.push((*r, class));
            }
            Op::Assume(e) | Op::Assert(e, _) => {
                self.expr(e, PLAIN, &|kinds, r| kinds.held(point, *r), constants);
            }
            Op::Load(r, a) => {
                self.address(point, a, constants);
                point.written.push((*r, self.value(a.variable.0)));
            }
            Op::Store(a, e) => {
                self.address(point, a, constants);
                self.expr(e, self.value(a.variable.0), &|kinds, r| kinds.held(point, *r), constants);
            }
        }
    }

    fn address(&mut self, point: &Point, a: &Address, constants: &mut Vec<(i64, Node)>) {
        if let Some(index) = &a.index {
            self.expr(index, self.index(a.variable.0), &|kinds, r| kinds.held(point, *r), constants);
        }
    }

    fn formula(&mut self, program: &Program, formula: &Formula) {
        formula.for_each_leaf(&mut |leaf| {
            // The formula may read the register at any location, so the register needs the same class at all of them.
            if let Observable::Register(t, r) = leaf {
                let locations = (0..program.thread(*t).locations.len() as u32).map(LocationId);
                let nodes: Vec<Node> = locations.filter_map(|l| self.at(t.index(), l, *r)).collect();
                nodes.windows(2).for_each(|pair| self.unite(pair[0], pair[1]));
            }
        });
        let leaf = |kinds: &Self, observable: &Observable| match observable {
            Observable::At(..) => PLAIN,
            Observable::Register(t, r) => {
                let locations = (0..program.thread(*t).locations.len() as u32).map(LocationId);
                locations.into_iter().find_map(|l| kinds.at(t.index(), l, *r)).unwrap_or(PLAIN)
            }
            Observable::Memory(cell) => {
                kinds.value(program.variables.partition_point(|v| v.base <= *cell) as u32 - 1)
            }
        };
        self.expr(formula, PLAIN, &leaf, &mut Vec::new());
    }

    /// Merges the classes of the leaves with those that the operators require, and collects the constants; the value of the expression is of class
    /// `class`.
    fn expr<L>(
        &mut self,
        e: &Expr<L>,
        class: Node,
        leaf: &impl Fn(&Self, &L) -> Node,
        constants: &mut Vec<(i64, Node)>,
    ) {
        match e {
            Expr::Const(value) => constants.push((*value, class)),
            Expr::Leaf(l) => self.unite(class, leaf(self, l)),
            Expr::If(condition, then, otherwise) => {
                self.expr(condition, PLAIN, leaf, constants);
                self.expr(then, class, leaf, constants);
                self.expr(otherwise, class, leaf, constants);
            }
            Expr::Unary(_, operand) => {
                self.unite(class, PLAIN);
                self.expr(operand, PLAIN, leaf, constants);
            }
            Expr::Binary(op, left, right) => {
                self.unite(class, PLAIN);
                let has_constant = matches!(**left, Expr::Const(_)) || matches!(**right, Expr::Const(_));
                let [of_left, of_right] = match op {
                    BinaryOp::Eq | BinaryOp::Ne => [self.fresh(1); 2],
                    // A class of thread numbers may be compared with a constant: the comparison has the same result for all threads if their numbers
                    // lie on the same side of the constant.
                    _ if op.is_comparison() && has_constant => [self.fresh(1), self.fresh(1)],
                    _ => [PLAIN; 2],
                };
                self.expr(left, of_left, leaf, constants);
                self.expr(right, of_right, leaf, constants);
            }
        }
    }

    /// The threads of a group as a family; `None` if their code differs in the number of its constants, or in a constant that is a plain value.
    fn family(&mut self, program: &Program, group: &[ThreadId]) -> Option<Family> {
        let roots: Vec<Node> = (0..self.parent.len()).map(|node| self.find(node)).collect();
        let mut numbers: BTreeSet<Node> = BTreeSet::new();
        for pair in group.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|id| &self.constants[id.index()]);
            if a.len() != b.len() {
                return None;
            }
            let differing = a.iter().zip(b).filter(|((x, _), (y, _))| x != y);
            numbers.extend(differing.map(|((_, node), _)| roots[*node]));
        }
        if numbers.contains(&PLAIN) {
            return None;
        }
        let holds_numbers = |node: Node| numbers.contains(&roots[node]);
        let variables = (0..self.variables as u32).filter(|v| holds_numbers(self.value(*v)));
        let arrays = (0..self.variables as u32).filter(|v| holds_numbers(self.index(*v)));
        let (values, indices) = (variables.collect(), arrays.collect());
        let mut registers = BTreeSet::new();
        for (t, nodes) in self.registers.iter().enumerate() {
            for (l, (first, live)) in nodes.iter().zip(&self.live[t]).enumerate() {
                let own = live.iter().enumerate().filter(|(n, _)| holds_numbers(first + n));
                registers.extend(own.map(|(_, &r)| (t as u32, l as u32, r)));
            }
        }
        let number = |id: &ThreadId| program.thread(*id).family.as_ref().map_or(i64::from(id.0), |(_, n)| *n);
        Some(Family {
            threads: group.iter().map(|id| id.0).collect(),
            numbers: group.iter().map(number).collect(),
            indices,
            values,
            registers,
        })
    }
}
