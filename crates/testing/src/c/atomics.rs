//! Accesses to shared cells in the notations of C11, gcc and Linux, in assembly, and as plain accesses.

use super::Writer;
use super::cells::{Cell, Type};
use super::values::Value;

impl Writer<'_> {
    fn cell(&mut self) -> Cell {
        let number = self.random.below(self.cells.len());
        self.cells[number].clone()
    }

    /// A cell, or an element of an array, in `.fw` and in C. The index of the element is a constant or computed.
    fn place(&mut self, cell: &Cell) -> (String, String) {
        let Some(length) = cell.length else { return (cell.name.clone(), self.lvalue(cell, None)) };
        let (fw, c) = match self.random.one_in(2) {
            true => {
                let index = self.random.below(length).to_string();
                (index.clone(), index)
            }
            false => {
                let register = self.read_register();
                (format!("({}) & 1", register.fw), format!("({}) & 1", register.c))
            }
        };
        (format!("{}[{fw}]", cell.name), self.lvalue(cell, Some(&c)))
    }

    pub(super) fn load(&mut self) -> Value {
        let cell = self.cell();
        self.load_of(&cell)
    }

    pub(super) fn load_of(&mut self, cell: &Cell) -> Value {
        let (fw, lvalue) = self.place(cell);
        let order = *self.random.pick(&["relaxed", "acquire", "seq_cst"]);
        let gnu = *self.random.pick(&["__ATOMIC_RELAXED", "__ATOMIC_ACQUIRE", "__ATOMIC_SEQ_CST"]);
        let c = match (cell.atomic, self.random.below(7)) {
            (false, 6) if cell.of != Type::Bool => self.assembled(cell, "get", &lvalue, ""),
            (true, 0 | 1) => format!("atomic_load_explicit(&{lvalue}, memory_order_{order})"),
            (true, 2) => format!("atomic_load(&{lvalue})"),
            (false, 0 | 1) => format!("READ_ONCE({lvalue})"),
            (false, 2) => format!("__atomic_load_n(&{lvalue}, {gnu})"),
            (_, 3) => {
                let (qualified, of) = (cell.qualified(), cell.of);
                let name = format!(
                    "get_{}_{}",
                    of.word(),
                    if qualified.starts_with('v') {
                        "v"
                    } else if cell.atomic {
                        "a"
                    } else {
                        "p"
                    }
                );
                self.helper(format!(
                    "static inline {} {name}({qualified} *place)\n{{\nreturn *place;\n}}",
                    of.c()
                ));
                format!("{name}(&{lvalue})")
            }
            (_, 4) => format!("(*&{lvalue})"),
            _ => lvalue,
        };
        Value::of(cell.of, fw, c)
    }

    pub(super) fn store(&mut self) {
        let cell = self.cell();
        let value = self.value(2, true);
        let value = self.stored(cell.of, value);
        let kind = self.random.below(5);
        self.store_to(&cell, value, kind);
    }

    /// Writes a store: `kind` 0 is a store after a store-store fence, 1 is a store that drains the buffer, and any other kind is a store without a
    /// fence.
    pub(super) fn store_to(&mut self, cell: &Cell, value: Value, kind: usize) {
        let (fw, lvalue) = self.place(cell);
        let converted = if cell.of == Type::Bool { cell.of.converted(&value.fw) } else { value.fw.clone() };
        let c = &value.c;
        let of = cell.of.c();
        match kind {
            0 => {
                let word = match cell.atomic {
                    true => format!("atomic_store_explicit(&{lvalue}, {c}, memory_order_release);"),
                    false => format!("__atomic_store_n(&{lvalue}, {c}, __ATOMIC_RELEASE);"),
                };
                self.both(&format!("sfence; {fw} = {converted};"), &word);
            }
            1 => {
                let word = match (cell.atomic, self.random.below(2)) {
                    (true, 0) => format!("atomic_store(&{lvalue}, {c});"),
                    (true, _) => format!("{lvalue} = {c};"),
                    (false, _) => format!("__atomic_store_n(&{lvalue}, {c}, __ATOMIC_SEQ_CST);"),
                };
                self.both(&format!("swap({fw}, {converted});"), &word);
            }
            _ => {
                let word = match (cell.atomic, self.random.below(6)) {
                    (true, _) => format!("atomic_store_explicit(&{lvalue}, {c}, memory_order_relaxed);"),
                    (false, 5) if cell.of != Type::Bool => {
                        format!("{};", self.assembled(cell, "put", &lvalue, &format!(", {c}")))
                    }
                    (false, 0) => format!("WRITE_ONCE({lvalue}, {c});"),
                    (false, 1) => format!("__atomic_store_n(&{lvalue}, {c}, __ATOMIC_RELAXED);"),
                    (false, 2) => {
                        let qualified = cell.qualified();
                        let name = format!(
                            "put_{}_{}",
                            cell.of.word(),
                            if qualified.starts_with('v') { "v" } else { "p" }
                        );
                        self.helper(format!(
                            "static void {name}({qualified} *place, {of} value)\n{{\n*place = value;\n}}"
                        ));
                        format!("{name}(&{lvalue}, {c});")
                    }
                    (false, 3) => format!("(void)0, {lvalue} = {c};"),
                    (false, _) => format!("{lvalue} = {c};"),
                };
                self.both(&format!("{fw} = {converted};"), &word);
            }
        }
    }

    /// A load into a register, or `x op= e`, or `x++`.
    pub(super) fn load_or_update(&mut self) {
        let cell = self.cell();
        if cell.atomic || cell.of == Type::Bool || self.random.one_in(2) {
            let value = self.load();
            let value = self.small(value);
            let number = self.random.below(3);
            let register = self.register(number);
            let line = match self.random.below(4) {
                0 => {
                    self.helper("static void take(int *out, int value)\n{\n*out = value;\n}".into());
                    format!("take(&{register}, {});", value.c)
                }
                _ => format!("{register} = {};", value.c),
            };
            self.both(&format!("r{number} = {};", value.fw), &line);
            return;
        }
        let (fw, lvalue) = self.place(&cell);
        let (op, by) = (*self.random.pick(&["+", "-"]), 1 + self.random.below(2));
        let c = match self.random.below(3) {
            0 if by == 1 => format!("{lvalue}{op}{op};"),
            1 if by == 1 => format!("{op}{op}{lvalue};"),
            _ => format!("{lvalue} {op}= {by};"),
        };
        self.both(&format!("{fw} = {fw} {op} {by};"), &c);
    }

    /// A read-modify-write operation whose result goes to a register.
    pub(super) fn read_modify_write(&mut self) {
        let cell = self.cell();
        let (fw, lvalue) = self.place(&cell);
        let number = self.random.below(3);
        let (of, is_bool) = (cell.of, cell.of == Type::Bool);
        let order = *self.random.pick(&["relaxed", "acquire", "release", "acq_rel", "seq_cst"]);
        let gnu = *self.random.pick(&["__ATOMIC_RELAXED", "__ATOMIC_ACQ_REL", "__ATOMIC_SEQ_CST"]);
        let result = match self.random.below(if is_bool { 2 } else { 3 }) {
            0 => {
                let value = self.value(1, false);
                let value = self.stored(of, value);
                let converted = if is_bool { of.converted(&value.fw) } else { value.fw.clone() };
                let c = match (cell.atomic, self.random.below(3)) {
                    (false, 2) if !is_bool => {
                        self.assembled(&cell, "exchange", &lvalue, &format!(", {}", value.c))
                    }
                    (true, 0) => format!("atomic_exchange(&{lvalue}, {})", value.c),
                    (true, _) => {
                        format!("atomic_exchange_explicit(&{lvalue}, {}, memory_order_{order})", value.c)
                    }
                    (false, 0) if !is_bool => format!("__sync_lock_test_and_set(&{lvalue}, {})", value.c),
                    (false, _) => format!("__atomic_exchange_n(&{lvalue}, {}, {gnu})", value.c),
                };
                Value::of(of, format!("swap({fw}, {converted})"), c)
            }
            1 => {
                let (old, new) = (self.random.below(2), self.random.below(2));
                let c = match (cell.atomic, self.random.below(4)) {
                    (false, 3) if !is_bool => {
                        self.assembled(&cell, "replace", &lvalue, &format!(", {old}, {new}"))
                    }
                    (true, _) => {
                        let expected = self.name("expected");
                        let line = format!("{} {expected} = {old};", of.c());
                        self.c_line(&line);
                        format!("atomic_compare_exchange_strong(&{lvalue}, &{expected}, {new})")
                    }
                    (false, 0) if !is_bool => {
                        format!("__sync_bool_compare_and_swap(&{lvalue}, {old}, {new})")
                    }
                    (false, 1) if !is_bool => {
                        format!("(__sync_val_compare_and_swap(&{lvalue}, {old}, {new}) == {old})")
                    }
                    (false, _) => {
                        let expected = self.name("expected");
                        let line = format!("{} {expected} = {old};", of.c());
                        self.c_line(&line);
                        format!(
                            "__atomic_compare_exchange_n(&{lvalue}, &{expected}, {new}, 0, {gnu}, __ATOMIC_RELAXED)"
                        )
                    }
                };
                Value::of(Type::Bool, format!("cas({fw}, {old}, {new})"), c)
            }
            _ => {
                let by = 1 + self.random.below(2);
                let old = format!("fetch_add({fw}, {by})");
                let new = of.converted(&format!("{old} + {by}"));
                let (fw, c) = match (cell.atomic, self.random.below(5)) {
                    (false, 4) => (old, self.assembled(&cell, "add", &lvalue, &format!(", {by}"))),
                    (true, 0) => {
                        (old, format!("atomic_fetch_add_explicit(&{lvalue}, {by}, memory_order_{order})"))
                    }
                    (true, 1) if by == 1 => (old, format!("{lvalue}++")),
                    (true, 2) => (new, format!("({lvalue} += {by})")),
                    (true, _) => (old, format!("atomic_fetch_add(&{lvalue}, {by})")),
                    (false, 0) => (old, format!("__sync_fetch_and_add(&{lvalue}, {by})")),
                    (false, 1) => (new, format!("__sync_add_and_fetch(&{lvalue}, {by})")),
                    (false, 2) => (new, format!("__atomic_add_fetch(&{lvalue}, {by}, {gnu})")),
                    (false, _) => (old, format!("__atomic_fetch_add(&{lvalue}, {by}, {gnu})")),
                };
                Value::of(of, fw, c)
            }
        };
        let result = self.small(result);
        let register = self.register(number);
        self.both(&format!("r{number} = {};", result.fw), &format!("{register} = {};", result.c));
    }

    /// A call of a function in which assembly accesses a cell that is not atomic.
    fn assembled(&mut self, cell: &Cell, what: &str, lvalue: &str, arguments: &str) -> String {
        let (of, suffix) = (cell.of.c(), cell.of.suffix());
        let (result, parameters, body) = match what {
            "get" => (
                of,
                String::new(),
                format!(
                    "{of} value; asm volatile(\"mov{suffix} %1, %0\" : \"=q\"(value) : \"m\"(*place) : \"memory\"); return value;"
                ),
            ),
            "put" => (
                "void",
                format!(", {of} value"),
                format!("asm volatile(\"mov{suffix} %1, %0\" : \"=m\"(*place) : \"q\"(value) : \"memory\");"),
            ),
            "replace" => (
                "bool",
                format!(", {of} old, {of} new"),
                format!(
                    "bool same; asm volatile(\"lock; cmpxchg{suffix} %3, %1\\n\\tsete %0\" : \"=q\"(same), \"+m\"(*place), \"+a\"(old) : \"q\"(new) : \"memory\", \"cc\"); return same;"
                ),
            ),
            _ => {
                let instruction = if what == "add" { "lock; xadd" } else { "xchg" };
                (
                    of,
                    format!(", {of} value"),
                    format!(
                        "asm volatile(\"{instruction}{suffix} %0, %1\" : \"+q\"(value), \"+m\"(*place) : : \"memory\", \"cc\"); return value;"
                    ),
                )
            }
        };
        let qualified = cell.qualified();
        let name = format!(
            "{what}_{}_{}",
            cell.of.word(),
            if cell.qualified().starts_with('v') { "v" } else { "p" }
        );
        let name = format!("asm_{name}");
        self.helper(format!("static inline {result} {name}({qualified} *place{parameters})\n{{\n{body}\n}}"));
        format!("{name}(&{lvalue}{arguments})")
    }

    pub(super) fn fence(&mut self) {
        let (fw, c) = *self.random.pick(&[
            ("fence;", "atomic_thread_fence(memory_order_seq_cst);"),
            ("fence;", "__sync_synchronize();"),
            ("fence;", "__atomic_thread_fence(__ATOMIC_SEQ_CST);"),
            ("fence;", "__asm__ volatile(\"mfence\" ::: \"memory\");"),
            ("fence;", "asm volatile(\"lock; addl $0,0(%%rsp)\" ::: \"memory\", \"cc\");"),
            ("sfence;", "atomic_thread_fence(memory_order_release);"),
            ("sfence;", "atomic_thread_fence(memory_order_acq_rel);"),
            ("sfence;", "asm volatile(\"sfence\" ::: \"memory\");"),
            ("skip;", "atomic_thread_fence(memory_order_acquire);"),
            ("skip;", "__asm__ __volatile__(\"\" ::: \"memory\");"),
            ("skip;", "asm volatile(\"pause\");"),
        ]);
        self.both(fw, c);
    }

    /// The condition on the cells that is asserted at the end.
    pub(super) fn final_condition(&mut self) -> Value {
        if let Some(litmus) = self.litmus {
            let [first, second] = litmus.results.map(|r| self.cells[r].clone());
            let [one, other] = litmus.shape.forbidden();
            let (c_first, c_second) = (self.lvalue_in_main(&first, None), self.lvalue_in_main(&second, None));
            let fw = format!("!({} == {one} && {} == {other})", first.name, second.name);
            return Value::of(Type::Bool, fw, format!("!({c_first} == {one} && {c_second} == {other})"));
        }
        let parts: Vec<Value> = (0..1 + self.random.below(2))
            .map(|_| {
                let cell = self.cell();
                let index = cell.length.map(|length| self.random.below(length));
                let fw = index.map_or(cell.name.clone(), |index| format!("{}[{index}]", cell.name));
                let c = self.lvalue_in_main(&cell, index);
                let (op, value) = (*self.random.pick(&["==", "!=", "!="]), self.random.below(3));
                Value::of(Type::Bool, format!("({fw} {op} {value})"), format!("({c} {op} {value})"))
            })
            .collect();
        let joined = |texts: Vec<&str>| texts.join(" || ");
        let fw = joined(parts.iter().map(|p| p.fw.as_str()).collect());
        Value::of(Type::Bool, fw, joined(parts.iter().map(|p| p.c.as_str()).collect()))
    }
}
