//! Shared cells and their storage in the C program.

use std::fmt::Write;

use fencewright_generate::Random;

use super::{REGISTERS, Writer};

/// The type of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
}

impl Type {
    pub fn c(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::I8 => "int8_t",
            Type::U8 => "uint8_t",
            Type::I16 => "short",
            Type::U16 => "uint16_t",
            Type::I32 => "int",
            Type::U32 => "unsigned int",
            Type::I64 => "long",
        }
    }

    /// The suffix of instructions of x86-64 with operands of this size.
    pub fn suffix(self) -> &'static str {
        match self {
            Type::Bool | Type::I8 | Type::U8 => "b",
            Type::I16 | Type::U16 => "w",
            Type::I32 | Type::U32 => "l",
            Type::I64 => "q",
        }
    }

    /// The type as a part of a name.
    pub fn word(self) -> String {
        self.c().replace(' ', "_")
    }

    fn fw(self) -> &'static str {
        match self {
            Type::Bool => "0..2",
            Type::I8 => "i8",
            Type::U8 => "u8",
            Type::I16 => "i16",
            Type::U16 => "u16",
            Type::I32 => "i32",
            Type::U32 => "u32",
            Type::I64 => "i64",
        }
    }

    /// The range of values of cells of this type. For `int` and `long` it is smaller than the range of the C type: initial values are at most
    /// 1,000,000, and stored values are small or sums of small ones.
    pub fn values(self) -> (i64, i64) {
        match self {
            Type::Bool => (0, 1),
            Type::I8 => (-128, 127),
            Type::U8 => (0, 255),
            Type::I16 => (-32_768, 32_767),
            Type::U16 => (0, 65_535),
            Type::I32 | Type::I64 => (-1_000_000, 1_000_000),
            Type::U32 => (0, u32::MAX.into()),
        }
    }

    /// The expression in `.fw` that converts a value to this type.
    pub fn converted(self, fw: &str) -> String {
        match self {
            Type::Bool => format!("(({fw}) != 0)"),
            _ => format!("{}({fw})", self.fw()),
        }
    }
}

/// The storage of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Global,
    /// The cell is global and is accessed through a global pointer.
    Behind,
    Field,
    Inner,
    Row,
}

/// A shared variable or array.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub name: String,
    pub of: Type,
    pub atomic: bool,
    volatile: bool,
    pub length: Option<usize>,
    init: Vec<i64>,
    home: Home,
    /// Whether `main` assigns the initial values before it creates threads.
    assigned: bool,
}

/// The structure that contains some of the cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub is_local: bool,
    pub is_passed: bool,
}

pub(super) fn cells(random: &mut Random) -> (Vec<Cell>, State) {
    let is_local = random.one_in(4);
    let state = State { is_local, is_passed: is_local || random.one_in(3) };
    let count = 2 + random.below(2);
    let mut cells: Vec<Cell> = (0..count)
        .map(|n| {
            use Type::*;
            let of = *random.pick(&[I32, I32, I32, U8, U8, I8, U16, I16, U32, I64, Bool]);
            let length = random.one_in(4).then(|| 2 + random.below(2));
            let (low, high) = of.values();
            let init = (0..length.unwrap_or(1)).map(|_| match random.below(6) {
                0 => high,
                1 => low,
                2 => 1,
                _ => 0,
            });
            let init = init.collect();
            use Home::*;
            let home = *random.pick(&[Global, Global, Behind, Field, Inner, Row]);
            let atomic = random.one_in(2);
            let volatile = !atomic && random.one_in(3);
            // A local structure is initialised with 0, so the initial values of its cells are assigned.
            let assigned = random.one_in(4) || (is_local && matches!(home, Field | Inner | Row));
            Cell { name: format!("x{n}"), of, atomic, volatile, length, init, home, assigned }
        })
        .collect();
    // Four more cells for a litmus test: two that the threads communicate through, and two for the values that they read.
    for n in count..count + 4 {
        let of = *random.pick(&[Type::I32, Type::U8, Type::I16, Type::U32, Type::Bool]);
        let home = *random.pick(&[Home::Global, Home::Behind, Home::Field, Home::Inner, Home::Row]);
        let (name, atomic, assigned) = (format!("x{n}"), random.one_in(2), random.one_in(4));
        cells.push(Cell { name, of, atomic, volatile: false, length: None, init: vec![0], home, assigned });
    }
    (cells, state)
}

impl Cell {
    fn is_in_state(&self) -> bool {
        matches!(self.home, Home::Field | Home::Inner | Home::Row)
    }

    /// The type with its qualifiers.
    pub fn qualified(&self) -> String {
        match (self.atomic, self.volatile) {
            (true, _) => format!("_Atomic({})", self.of.c()),
            (_, true) => format!("volatile {}", self.of.c()),
            _ => self.of.c().into(),
        }
    }

    /// The cell as an lvalue in C. `state` is the prefix of cells in the structure, such as `s->`.
    fn lvalue(&self, state: &str) -> String {
        let name = &self.name;
        match self.home {
            Home::Global => name.clone(),
            Home::Behind if self.length.is_some() => format!("at_{name}"),
            Home::Behind => format!("(*at_{name})"),
            Home::Field => format!("{state}{name}"),
            Home::Inner => format!("{state}inner.{name}"),
            Home::Row => format!("{state}rows[1].{name}"),
        }
    }

    fn declared(&self) -> String {
        let size = self.length.map_or(String::new(), |n| format!("[{n}]"));
        format!("{} {}{size}", self.qualified(), self.name)
    }

    fn list(&self) -> String {
        let values: Vec<String> = self.init.iter().map(i64::to_string).collect();
        match self.length {
            Some(_) => format!("{{ {} }}", values.join(", ")),
            None => values.join(", "),
        }
    }

    pub fn assigned_in_main(&self) -> String {
        if !self.assigned {
            return String::new();
        }
        let lvalue = self.lvalue("state.");
        let elements = self.init.iter().enumerate().map(|(n, value)| match self.length {
            Some(_) => format!("{lvalue}[{n}] = {value};\n"),
            None => format!("{lvalue} = {value};\n"),
        });
        elements.collect()
    }
}

impl Writer<'_> {
    /// The C expression by which a thread accesses a cell or one of its elements.
    pub(super) fn lvalue(&mut self, cell: &Cell, index: Option<&str>) -> String {
        let state = match (self.state.is_passed, self.random.below(3)) {
            (true, 0) => "(*s).",
            (true, _) => "s->",
            (false, 0) => "(&state)->",
            (false, _) => "state.",
        };
        let lvalue = cell.lvalue(state);
        match index {
            None if self.random.one_in(8) => self.roundabout(&lvalue),
            None => lvalue,
            Some(index) if self.random.one_in(4) => format!("(*({lvalue} + ({index})))"),
            Some(index) => format!("{lvalue}[{index}]"),
        }
    }

    /// A C expression that accesses a scalar cell by a pointer: a pointer that was converted to an integer and back, perhaps chosen between two equal
    /// pointers, or a pointer plus an offset that is computed from a register and is always 0.
    fn roundabout(&mut self, lvalue: &str) -> String {
        let number = self.random.below(REGISTERS);
        let (one, other) = (self.register(number), self.register(number));
        if self.random.one_in(3) {
            let pointer = format!("__typeof__(&{lvalue})");
            return match self.random.one_in(2) {
                true => format!("(*({pointer})(uintptr_t)&{lvalue})"),
                false => format!("(*EITHER({one}, &{lvalue}, ({pointer})(uintptr_t)&{lvalue}))"),
            };
        }
        let nothing = match self.random.below(4) {
            0 => format!("{one} ^ {other}"),
            1 => format!("{one} - {other}"),
            2 => format!("({one} & {other}) - {one}"),
            _ => format!("{one} * 0"),
        };
        format!("(*(&{lvalue} + ({nothing})))")
    }

    /// The C expression by which `main` accesses a cell or one of its elements.
    pub(super) fn lvalue_in_main(&self, cell: &Cell, index: Option<usize>) -> String {
        let lvalue = cell.lvalue("state.");
        index.map_or(lvalue.clone(), |index| format!("{lvalue}[{index}]"))
    }

    pub(super) fn fw_declarations(&self) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            let size = cell.length.map_or(String::new(), |n| format!("[{n}]"));
            let values: Vec<String> = cell.init.iter().map(i64::to_string).collect();
            let init = match cell.length {
                Some(_) => format!("[{}]", values.join(", ")),
                None => values.join(", "),
            };
            let _ = writeln!(text, "shared {}{size}: {} = {init};", cell.name, cell.of.fw());
        }
        (0..self.mutexes).for_each(|m| text.push_str(&format!("mutex m{m};\n")));
        if self.recursive {
            text.push_str("mutex own;\n");
        }
        text
    }

    pub(super) fn c_declarations(&self) -> String {
        let mut text = String::new();
        for cell in self.cells.iter().filter(|c| !c.is_in_state()) {
            let init = if cell.assigned { String::new() } else { format!(" = {}", cell.list()) };
            let _ = writeln!(text, "{}{init};", cell.declared());
            if cell.home == Home::Behind {
                let from = if cell.length.is_some() { "" } else { "&" };
                let _ = writeln!(text, "{} *at_{} = {from}{};", cell.qualified(), cell.name, cell.name);
            }
        }
        let fields = |home: Home| {
            let fields = self.cells.iter().filter(|c| c.home == home).map(|c| format!("{}; ", c.declared()));
            fields.collect::<String>()
        };
        let (inner, rows) = (fields(Home::Inner), fields(Home::Row));
        let _ = writeln!(text, "struct inner {{ char pad; {inner}}};\nstruct row {{ int other; {rows}}};");
        let _ = writeln!(
            text,
            "struct state {{ {}struct inner inner; struct row rows[2]; }};",
            fields(Home::Field)
        );
        if !self.state.is_local {
            let named = |home: Home, path: &str| {
                let given = self.cells.iter().filter(|c| c.home == home && !c.assigned);
                given.map(|c| format!(".{path}{} = {}, ", c.name, c.list())).collect::<String>()
            };
            let given = [(Home::Field, ""), (Home::Inner, "inner."), (Home::Row, "rows[1].")];
            let given: String = given.into_iter().map(|(home, path)| named(home, path)).collect();
            let given = if given.is_empty() { "0".into() } else { given };
            let _ = writeln!(text, "struct state state = {{ {given} }};");
        }
        let declared =
            (0..self.mutexes).map(|m| format!("pthread_mutex_t m{m} = PTHREAD_MUTEX_INITIALIZER;\n"));
        text.extend(declared);
        if self.recursive {
            text.push_str("pthread_mutex_t own;\n");
        }
        text
    }
}
