//! Random families of threads, as .fw text. The threads of a family differ only in their numbers, which occur as indices of cells and as values in
//! memory, registers and buffers. Some programs break this symmetry slightly.

use std::fmt::Write;

use fencewright_generate::Random;

/// A random program with a family of two or three threads. With `near`, some statement or property may distinguish the threads of the family.
pub fn family(random: &mut Random, near: bool) -> String {
    let threads = if random.one_in(3) { 3 } else { 2 };
    let low = random.between(0, 1);
    let nobody = if low == 1 { 0 } else { threads };
    let writer = Writer { low, high: low + threads - 1, nobody, near };
    let own = (low..low + threads).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let nobodies = vec![nobody.to_string(); threads as usize].join(", ");
    let links = if random.one_in(3) { own } else { nobodies };
    let (range, all) = (format!("{low}..={}", writer.high), format!("in {low}..{}", writer.high + 1));
    let mut text = format!("shared x, tail = {nobody}, flag[{range}], next[{range}] = [{links}];\n");
    let _ = writeln!(text, "thread p[me {all}] {{\n    var r, t = {nobody};");
    let looping = random.one_in(3);
    if looping {
        text.push_str("    loop {\n");
    }
    let length = if threads == 3 { 2 } else { 3 };
    for _ in 0..1 + random.below(length) {
        let _ = writeln!(text, "    {}", writer.statement(random, 1));
    }
    text.push_str("    l: skip;\n");
    for _ in 0..random.below(length) {
        let _ = writeln!(text, "    {}", writer.statement(random, 1));
    }
    text.push_str(if looping { "    }\n}\n" } else { "}\n" });
    if random.one_in(3) {
        let raise = format!("s = tail; if s != {nobody} {{ flag[s] = 1; }}");
        let bodies = [raise.as_str(), "s = tail; x = 1; tail = s;", "x = 1; await x == 0;"];
        let body = random.pick(&bodies);
        let _ = writeln!(text, "thread q {{ var s = {nobody}; {body} }}");
    }
    let properties = [
        format!("forbid together: i < j {all}: p[i]@l && p[j]@l;"),
        format!("forbid raised: exists i {all}: p[i]@l && flag[i] == 1;"),
        format!("forbid itself: exists i {all}: p[i].t == i && tail == i;"),
        format!("forbid met: i < j {all}: p[i].t == p[j].t && p[i]@l && p[j]@l;"),
        format!("invariant some: x == 0 || exists i {all}: next[i] != {nobody} || p[i].r != 0;"),
        format!("finally ends: forall tail != {nobody} || forall i {all}: flag[i] == 0;"),
        format!("finally reached: exists i {all}: p[i].t == i && x == 1;"),
    ];
    for _ in 0..1 + random.below(2) {
        let property = random.pick(&properties);
        if !text.contains(property.as_str()) {
            let _ = writeln!(text, "{property}");
        }
    }
    if near && random.one_in(4) {
        let _ = writeln!(text, "forbid first: p[{low}]@l && x == 1;");
    }
    text
}

struct Writer {
    low: i64,
    high: i64,
    /// A value that is the number of no thread.
    nobody: i64,
    near: bool,
}

impl Writer {
    fn statement(&self, random: &mut Random, depth: usize) -> String {
        let Writer { low, high, nobody, near } = *self;
        let bit = random.below(2);
        if near && random.one_in(4) {
            let threads = high - low + 1;
            return match random.below(6) {
                0 => format!("if t < me {{ x = {bit}; }}"),
                1 => "x = me;".into(),
                2 => format!("flag[(me - {low} + 1) % {threads} + {low}] = 1;"),
                3 => format!("for i in {low}..{} {{ if flag[i] == 1 {{ r = 1; }} }}", high + 1),
                4 => format!("if me == {low} {{ x = {bit}; }}"),
                _ => "r = me;".into(),
            };
        }
        match random.below(23) {
            0 => format!("x = {bit};"),
            1 => format!("flag[me] = {bit};"),
            2 | 3 => "tail = me;".into(),
            4 | 5 => "t = tail;".into(),
            6 => "next[me] = t;".into(),
            7 => "t = next[me];".into(),
            8 => format!("if t != {nobody} {{ flag[t] = {bit}; }}"),
            9 => format!("if t != {nobody} {{ next[t] = me; }}"),
            10 if depth > 0 => format!("if t == me {{ {} }}", self.statement(random, depth - 1)),
            11 if depth > 0 => format!("if r == {bit} {{ {} }}", self.statement(random, depth - 1)),
            12 => (if bit == 0 { "r = x;" } else { "r = flag[me];" }).into(),
            13 => "atomic { t = tail; tail = me; }".into(),
            14 => format!("await flag[me] == {bit};"),
            15 => (if bit == 0 { "fence;" } else { "sfence;" }).into(),
            16 => {
                let ways = (low..=high).map(|n| format!("{{ flag[{n}] = {bit}; }}"));
                format!("choose {}", ways.collect::<Vec<_>>().join(" or "))
            }
            17 => format!("t = * in {low}..{};", high + 1),
            18 => "assert t != me || r == 0;".into(),
            19 => format!("lock; tail = {nobody}; x = {bit}; unlock;"),
            20 => {
                let compare = *random.pick(&["<", "<=", ">", ">="]);
                format!("if t {compare} {} {{ x = {bit}; }}", random.between(low - 1, high + 1))
            }
            21 => {
                let reset = |n: i64| format!("flag[{n}] = {bit};");
                let all: Vec<String> = match random.one_in(2) {
                    true => (low..=high).map(reset).collect(),
                    false => (low..=high).rev().map(reset).collect(),
                };
                format!("atomic {{ r = x; {} x = {bit}; }}", all.join(" "))
            }
            _ => "t = me;".into(),
        }
    }
}
