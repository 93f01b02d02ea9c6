//! Programs that stress resource limits: long, wide, deep, or with very many states. Each program is large in one respect.

use std::fmt::Write as _;

/// Concatenates the texts that `each` gives for 0 to `count - 1`.
fn repeat(count: usize, mut each: impl FnMut(usize) -> String) -> String {
    let mut text = String::new();
    (0..count).for_each(|n| text.push_str(&each(n)));
    text
}

/// Two threads that declare very many registers and use few.
pub fn registers(count: usize) -> String {
    let declared = repeat(count, |n| format!("    var r{n};\n"));
    let used = repeat(20, |n| format!("    r{n} = x; x = r{n} + 1;\n"));
    format!(
        "shared x, y;\nthread p {{\n{declared}{used}}}\nthread q {{ y = 1; x = y; }}\nforbid f: x == 77;\n"
    )
}

/// Two threads in which very many registers are live at once.
pub fn live_registers(count: usize) -> String {
    let thread = |name: &str| {
        let declared = repeat(count, |n| format!("    var r{n};\n"));
        let loads = repeat(count, |n| format!("    r{n} = x;\n"));
        let stores = repeat(count, |n| format!("    y = r{n};\n"));
        format!("thread {name} {{\n{declared}{loads}{stores}}}\n")
    };
    format!("shared x, y;\n{}{}forbid f: x == 3;\n", thread("p"), thread("q"))
}

/// Two very long threads that alternate between stores and loads.
pub fn long_threads(statements: usize) -> String {
    let thread = |name: &str, first: &str, second: &str| {
        let body = repeat(statements / 2, |n| format!("    {first} = {};\n    r = {second};\n", n % 3));
        format!("thread {name} {{\n    var r;\n{body}}}\n")
    };
    let both = thread("p", "x", "y") + &thread("q", "y", "x");
    format!("shared x, y;\n{both}finally f: never p.r == 7 && q.r == 7;\n")
}

/// Threads that loop through very many statements and count without bound.
pub fn long_loop(statements: usize) -> String {
    let body = repeat(statements, |n| match n % 4 {
        0 => "        x = r;\n".into(),
        1 => "        r = y;\n".into(),
        2 => format!("        if r == {n} {{ s = s + 1; }}\n"),
        _ => "        s = s + 1;\n".into(),
    });
    let thread = |name| format!("thread {name} {{\n    var r, s;\n    loop {{\n{body}    }}\n}}\n");
    format!("shared x, y;\n{}{}forbid f: p.s < 0 && q.s < 0;\n", thread("p"), thread("q"))
}

/// `count` memory cells, each of which is a separate variable, and two threads that access about half of them.
pub fn cells(count: usize) -> String {
    let names = repeat(count, |n| format!("shared v{n};\n"));
    let thread = |name: &str, other: usize| {
        let body =
            repeat(count / 4, |n| format!("    v{} = 1;\n    r = v{};\n", 2 * n, (2 * n + other) % count));
        format!("thread {name} {{\n    var r;\n{body}}}\n")
    };
    format!("{names}{}{}forbid f: v0 == 3;\n", thread("p", 1), thread("q", 3))
}

/// A very long thread that stores increasing values to the cells of an array of this size in turn, and loads between the stores.
pub fn long_array(cells: usize, stores: usize) -> String {
    let body = repeat(stores, |n| format!("    x[{}] = {n};\n    r = y;\n", n % cells));
    format!(
        "shared x[{cells}], y;\nthread p {{\n    var r;\n{body}}}\nthread q {{ y = 1; }}\ninvariant i: y <= 1;\n"
    )
}

/// An array of this size with computed indices.
pub fn computed_indices(count: usize) -> String {
    format!(
        "const N = {count};\nshared a[N], n;\nthread p[me in 0..3] {{\n    var i = *  in 0..N, r;\n    loop {{\n        a[i] = r;\n        \
         r = a[(i * 7 + r) % N];\n        assert r >= 0;\n        i = (i + r + 1) % N;\n        n = r;\n    }}\n}}\nforbid f: n < 0;\n"
    )
}

/// `count` short threads that communicate through an array.
pub fn threads(count: usize) -> String {
    format!(
        "const N = {count};\nshared x, a[N];\nthread p[me in 0..N] {{\n    var r;\n    a[me] = 1;\n    r = a[(me + 1) % N];\n    \
         x = r;\n}}\nforbid f: i < j in 0..2: p[i].r == 0 && p[j].r == 7;\n"
    )
}

/// Expressions that are nested `depth` deep, and expressions with `width` terms.
pub fn expressions(depth: usize, width: usize) -> String {
    let mut deep = String::from("r");
    (0..depth).for_each(|n| deep = format!("({deep} {} s)", ["+", "-", "*"][n % 3]));
    let wide = repeat(width, |n| format!("{}s", [" + ", " - "][n % 2]));
    let tests = repeat(width, |n| format!(" || r == {n} && s != {n}"));
    format!(
        "shared x, y;\nthread p {{\n    var r, s = *;\n    loop {{\n        r = x;\n        x = {deep};\n        y = r{wide};\n        \
         if r < s{tests} {{ x = 1; }}\n    }}\n}}\nthread q {{ var r, s; loop {{ y = x; r = y; if r > s{tests} {{ y = r + 1; }} }} }}\n\
         forbid f: x == 12345 && y == 54321;\n"
    )
}

/// Choices among very many values.
pub fn wide_choices(values: usize) -> String {
    format!(
        "shared x, y;\nthread p[me in 0..2] {{\n    var r, s;\n    loop {{\n        r = * in 0..{values};\n        x = r;\n        \
         s = y;\n        r = * in 0..{values};\n        y = s + r;\n    }}\n}}\nforbid f: x == -1;\n"
    )
}

/// Atomic blocks with many paths that may fault.
pub fn faulting_blocks(blocks: usize, choices: usize) -> String {
    let choice = repeat(choices, |n| {
        format!("            if i > {n} {{ a[i] = i + {n}; }} else {{ i = a[i + {n}]; assert i != {n}; }}\n")
    });
    let body =
        repeat(blocks, |_| format!("        atomic {{\n{choice}            r = 10 / i;\n        }}\n"));
    let thread = |name| {
        format!("thread {name} {{\n    var i = * in 0..4, r: 0..100;\n    loop {{\n{body}    }}\n}}\n")
    };
    format!("shared a[16];\n{}{}forbid f: a[0] == 99;\n", thread("p"), thread("q"))
}

/// Threads with unbounded counters and unbounded buffers.
pub fn counters(threads: usize) -> String {
    format!(
        "const N = {threads};\nshared c[N], x;\nthread p[me in 0..N] {{\n    var r, s;\n    loop {{\n        r = r + 1;\n        c[me] = r;\n        \
         x = s;\n        s = s + c[(me + 1) % N];\n    }}\n}}\nforbid f: c[0] + c[1] < 0;\n"
    )
}

/// Very many properties.
pub fn properties(count: usize) -> String {
    let stated = repeat(count, |n| match n % 4 {
        0 => format!("forbid p@l{} && q@l{};\n", n % 40, n % 31),
        1 => format!("forbid x == {} && p.r > {};\n", n + 50, n),
        2 => format!("invariant x != {} || q@l{};\n", n + 50, n % 40),
        _ => format!("finally never p.r == {} && x == {};\n", n + 50, n),
    });
    let body = repeat(40, |n| format!("    l{n}: r = x;\n    x = r + y;\n    y = {};\n", n % 2));
    let thread = |name| format!("thread {name} {{\n    var r;\n{body}}}\n");
    format!("shared x, y;\n{}{}{stated}", thread("p"), thread("q"))
}

/// A `for` loop that is unrolled `count` times.
pub fn long_for(count: usize) -> String {
    format!(
        "shared x, y, a[8];\nthread p[me in 0..2] {{\n    var r;\n    for i in 0..{count} {{\n        a[i % 8] = i;\n        \
         if x == i {{ r = r + 1; }}\n        y = r;\n    }}\n}}\nforbid f: y == 7 && x == 7;\n"
    )
}

/// Very many labels and jumps in all directions.
pub fn jumps(labels: usize) -> String {
    let body = repeat(labels, |n| {
        let (near, far) = ((n * 7 + 1) % labels, (n * 31 + 11) % labels);
        format!(
            "    l{n}: x = {};\n    if y == {} {{ goto l{near}; }} else {{ if x == 5 {{ goto l{far}; }} }}\n",
            n % 5,
            n % 4
        )
    });
    let thread = |name, y| format!("thread {name} {{\n{}    y = {y};\n}}\n", body);
    format!(
        "shared x, y;\n{}{}forbid f: p@l{} && q@l{};\n",
        thread("p", 1),
        thread("q", 2),
        labels / 2,
        labels / 3
    )
}

/// A program whose violation needs at least this many steps.
pub fn long_execution(steps: usize) -> String {
    format!(
        "shared x, y, pad[64];\nthread p {{\n    var r;\n    while r < {steps} {{\n        r = r + 1;\n        x = r;\n        \
         fence;\n    }}\n    bad: skip;\n}}\nthread q {{ y = 1; }}\nforbid f: p@bad && x == {steps};\n"
    )
}

/// Products of loaded values, which are not linear.
pub fn products(threads: usize) -> String {
    format!(
        "shared x = 2, y = 3;\nthread p[me in 0..{threads}] {{\n    var r, s;\n    loop {{\n        r = x;\n        s = y;\n        \
         x = r * s % 1009;\n        y = (r + 1) * (s + me) % 997;\n        assert r * r + 1 != s;\n    }}\n}}\nforbid f: x * y == 1000003;\n"
    )
}

/// Arbitrary initial values in very many cells.
pub fn unknown_cells(count: usize) -> String {
    format!(
        "shared a[{count}] = *, b[{count}] = * in 0..3;\nthread p[me in 0..2] {{\n    var r, s;\n    loop {{\n        r = a[me];\n        \
         s = b[me + 1];\n        if r < s {{ a[me + 2] = s; }} else {{ b[me] = 1; }}\n    }}\n}}\nforbid f: a[0] == a[1] && b[0] == 5;\n"
    )
}

/// A queue in an array: many interleavings, and finitely many states under SC (under TSO and PSO the buffers of `get` are unbounded).
pub fn queue(threads: usize, length: usize) -> String {
    format!(
        "const N = {threads};\nconst L = {length};\nshared q[L], head, tail;\nthread put[me in 0..N] {{\n    var t;\n    loop {{\n        \
         t = fetch_add(tail, 1);\n        q[t % L] = t + me;\n        if t > 100 {{ tail = 0; }}\n    }}\n}}\n\
         thread get[me in 0..N] {{\n    var h, v;\n    loop {{\n        h = head;\n        v = q[h % L];\n        head = h + 1;\n        \
         if h > 100 {{ head = 0; }}\n        assert v >= 0;\n    }}\n}}\nforbid f: head < 0;\n"
    )
}

/// A litmus test with many threads and accesses.
pub fn litmus(threads: usize, accesses: usize) -> String {
    let mut text = String::from("X86 Large\n{ x=0; y=0; z=0; }\n");
    let row = |cells: Vec<String>| format!(" {} ;\n", cells.join(" | "));
    text.push_str(&row((0..threads).map(|t| format!("P{t}")).collect()));
    for n in 0..accesses {
        let cell = |t: usize| {
            let variable = ["x", "y", "z"][(n + t) % 3];
            match (n + t) % 2 {
                0 => format!("MOV [{variable}],${}", n + 1),
                _ => format!("MOV EAX,[{variable}]"),
            }
        };
        text.push_str(&row((0..threads).map(cell).collect()));
    }
    let condition: Vec<String> = (0..threads).map(|t| format!("{t}:EAX=0")).collect();
    let _ = writeln!(text, "exists ({})", condition.join(" /\\ "));
    text
}
