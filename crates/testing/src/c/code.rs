//! Statements and control flow.

use std::fmt::Write;

use super::values::Value;
use super::{Registers, Writer};

impl Writer<'_> {
    /// Writes up to `length` statements, nested at most `depth` deep.
    pub(super) fn block(&mut self, length: usize, depth: usize) {
        for _ in 0..1 + self.random.below(length) {
            self.statement(depth);
        }
    }

    /// A block as text in both languages, without adding it to the output.
    fn inner(&mut self, depth: usize) -> (String, String) {
        let outer = (std::mem::take(&mut self.fw), std::mem::take(&mut self.c));
        self.block(2, depth - 1);
        let inner = (std::mem::take(&mut self.fw), std::mem::take(&mut self.c));
        (self.fw, self.c) = outer;
        inner
    }

    pub(super) fn statement(&mut self, depth: usize) {
        match self.random.below(if depth > 0 { 24 } else { 15 }) {
            0..=3 => self.store(),
            4..=6 => self.load_or_update(),
            7 | 8 => self.read_modify_write(),
            9 => self.fence(),
            10 => self.compute(),
            11 | 12 => self.assertion(),
            13 => self.wait(),
            14 => self.choice(),
            15..=17 => self.if_statement(depth),
            18 => self.switch(depth),
            19 | 20 => self.repeat(depth),
            21 => self.forward_jump(depth),
            22 => self.function(depth),
            _ => self.locked(depth),
        }
    }

    fn compute(&mut self) {
        let value = self.value(2, false);
        let value = self.small(value);
        let number = self.random.below(3);
        let register = self.register(number);
        let c = match self.random.below(10) {
            0 => {
                let condition = self.condition(0, false);
                let line = format!("r{number} = {} ? {} : r{number};", condition.fw, value.fw);
                let c = format!("{register} = EITHER({}, {}, {register});", condition.c, value.c);
                self.both(&line, &c);
                return;
            }
            1 => format!("if (1) {register} = {};", value.c),
            2 => format!("{{ int copy = {}; {register} = copy; }}", value.c),
            // The next six forms, in this order: a local whose lifetime restarts, one whose declaration is skipped by a jump, two that are accessed
            // with several types, a copied structure, and a pointer with a tag bit.
            3 => format!(
                "for (int round = 0; round < 2; round++) {{ int copy; if (round) {{ int *at = &copy; *at = {}; {register} = copy; }} }}",
                value.c
            ),
            4 => format!("switch (0) {{ int copy; case 0: copy = {}; {register} = *&copy; }}", value.c),
            5 => format!(
                "{{ union {{ int s; unsigned u; }} copy; copy.u = {}; {register} = copy.s; }}",
                value.c
            ),
            6 => format!("{{ int copy = {}; {register} = (int)*(unsigned *)&copy; }}", value.c),
            7 => format!(
                "{{ struct {{ int a, b; }} copy = {{ .b = {} }}, other = copy; int *at = &other.b; {register} = *at; }}",
                value.c
            ),
            8 => format!(
                "{{ int copy = {}, *at = (int *)1; uintptr_t bits = (uintptr_t)&copy | 1; if (at == (int *)1) at = (int *)(bits & ~(uintptr_t)1); {register} = *at; }}",
                value.c
            ),
            _ => format!("{register} = {};", value.c),
        };
        self.both(&format!("r{number} = {};", value.fw), &c);
    }

    fn assertion(&mut self) {
        let condition = self.condition(1, true);
        // Most conditions are violated in some execution. The disjunction of two conditions is violated less often.
        let other = self.condition(0, false);
        let (fw, c) = match self.random.one_in(3) {
            true => (condition.fw, condition.c),
            false => (format!("{} || {}", condition.fw, other.fw), format!("{} || {}", condition.c, other.c)),
        };
        match self.random.below(8) {
            0 => self.both(&format!("assume {fw};"), &format!("__VERIFIER_assume({c});")),
            1 => self.both(&format!("assume {fw};"), &format!("if (!({c})) for (;;);")),
            2 => self.both(&format!("assert {fw};"), &format!("assert(({c}) && \"text\");")),
            _ => self.both(&format!("assert {fw};"), &format!("assert({c});")),
        }
    }

    /// Writes a loop that waits until a condition about one cell holds.
    fn wait(&mut self) {
        let Value { fw, c, .. } = self.load();
        let (op, value) = (*self.random.pick(&["==", "!="]), self.random.below(2));
        let c = match self.random.below(3) {
            0 => format!("while (!({c} {op} {value}));"),
            1 => format!("do {{ }} while (!({c} {op} {value}));"),
            _ => format!("for (;;) {{ if ({c} {op} {value}) break; asm volatile(\"pause\"); }}"),
        };
        self.both(&format!("await {fw} {op} {value};"), &c);
    }

    fn choice(&mut self) {
        let number = self.random.below(3);
        let register = self.register(number);
        let c = match self.random.below(3) {
            0 => format!("{register} = __VERIFIER_nondet_bool();"),
            1 => format!("{register} = __VERIFIER_nondet_bool() ? 1 : 0;"),
            _ => format!("{register} = 0; if (__VERIFIER_nondet_bool()) {register}++;"),
        };
        self.both(&format!("r{number} = * in 0..2;"), &c);
    }

    fn if_statement(&mut self, depth: usize) {
        let condition = self.condition(1, true);
        let ((fw_then, c_then), (fw_else, c_else)) = (self.inner(depth), self.inner(depth));
        let Value { fw, c, .. } = condition;
        match self.random.below(3) {
            0 => self.both(&format!("if {fw} {{\n{fw_then}}}"), &format!("if ({c}) {{\n{c_then}}}")),
            1 => self.both(
                &format!("if {fw} {{\n{fw_then}}} else {{\n{fw_else}}}"),
                &format!("if (!({c})) {{\n{c_else}}} else {{\n{c_then}}}"),
            ),
            _ => self.both(
                &format!("if {fw} {{\n{fw_then}}} else {{\n{fw_else}}}"),
                &format!("if ({c}) {{\n{c_then}}} else {{\n{c_else}}}"),
            ),
        }
    }

    fn switch(&mut self, depth: usize) {
        let Value { fw, c, .. } = self.read_register();
        let first = self.inner(depth);
        let second = self.inner(depth);
        let third = self.inner(depth);
        match self.random.one_in(2) {
            true => self.both(
                &format!("if {fw} == 0 {{\n{}}} else if {fw} == 1 || {fw} == 2 {{\n{}}} else {{\n{}}}", first.0, second.0, third.0),
                &format!(
                    "switch ({c}) {{\ncase 0: {{\n{}break; }}\ncase 1:\ncase 2: {{\n{}}} break;\ndefault: {{\n{}}}\n}}",
                    first.1, second.1, third.1
                ),
            ),
            // The first case of the `switch` falls through to the second.
            false => self.both(
                &format!("if {fw} == 1 || {fw} == 0 {{\nif {fw} == 1 {{\n{}}}\n{}}}", first.0, second.0),
                &format!("switch ({c}) {{\ncase 1: {{\n{}}}\n/* fall through */\ncase 0: {{\n{}}}\n}}", first.1, second.1),
            ),
        }
    }

    /// Writes a loop of at most one or two iterations, in one of the forms that C has, or as a recursive function.
    fn repeat(&mut self, depth: usize) {
        let (fw, c) = self.inner(depth);
        let i = self.name("i");
        let rounds = 1 + self.random.below(2);
        let leave = self.random.one_in(3).then(|| self.condition(0, true));
        let (fw_leave, c_leave) = leave.map_or((String::new(), String::new()), |leave| {
            (format!("if {} {{ break; }}\n", leave.fw), format!("if ({}) break;\n", leave.c))
        });
        let fw = format!("for {i} in 0..{rounds} {{\n{fw_leave}{fw}}}");
        let kind = self.random.below(6);
        if kind > 3
            && let Some(call) = self.recursion(rounds, &c_leave.replace("break;", "return;"), &c)
        {
            return self.both(&fw, &call);
        }
        let c = match kind {
            0 => format!("int {i} = 0;\nwhile ({i} < {rounds}) {{\n{c_leave}{c}{i}++;\n}}"),
            1 => format!("int {i} = {rounds};\ndo {{\n{c_leave}{c}}} while (--{i});"),
            2 => format!("int {i} = {rounds};\nwhile ({i}-- > 0) {{\n{c_leave}{c}}}"),
            _ => format!("for (unsigned {i} = 0; {i} != {rounds}; {i} += 1) {{\n{c_leave}{c}}}"),
        };
        self.both(&fw, &c);
    }

    fn forward_jump(&mut self, depth: usize) {
        let condition = self.condition(0, true);
        let (fw, c) = self.inner(depth);
        let over = self.name("over");
        self.both(
            &format!("if {} {{ goto {over}; }}\n{fw}{over}: skip;", condition.fw),
            &format!("if ({}) goto {over};\n{{\n{c}}}\n{over}:;", condition.c),
        );
    }

    /// The parameters of C functions for blocks: types and names. `None` if registers are local to the thread's function, so that another function
    /// could not access them.
    fn parameters(&self) -> Option<Vec<(&'static str, &'static str)>> {
        let mut parameters = match self.registers {
            Registers::ThreadLocal => Vec::new(),
            Registers::Passed => vec![("struct locals *", "p")],
            _ => return None,
        };
        if self.state.is_passed {
            parameters.push(("struct state *", "s"));
        }
        Some(parameters)
    }

    /// Writes a block as a separate C function, or an `if` as a call through a pointer to one of two functions. If registers are locals, the block
    /// remains a block.
    fn function(&mut self, depth: usize) {
        let (fw, c) = self.inner(depth);
        let Some(parameters) = self.parameters() else {
            self.both(&format!("{{\n{fw}}}"), &format!("do {{\n{c}}} while (0);"));
            return;
        };
        let declared: Vec<String> = parameters.iter().map(|(of, name)| format!("{of}{name}")).collect();
        let declared = if declared.is_empty() { "void".into() } else { declared.join(", ") };
        let unused: String = parameters.iter().map(|(_, name)| format!("(void){name};\n")).collect();
        let arguments: Vec<&str> = parameters.iter().map(|(_, name)| *name).collect();
        let arguments = arguments.join(", ");
        let name = self.name("part");
        let _ = write!(self.functions, "static void {name}({declared})\n{{\n{unused}{c}}}\n\n");
        let kind = self.random.below(7);
        if kind == 0 {
            return self.both(&format!("{{\n{fw}}}"), &format!("{name}({arguments});"));
        }
        let condition = self.condition(0, true);
        let (fw_else, c_else) = self.inner(depth);
        let (other, pointer) = (self.name("part"), self.name("run"));
        let _ = write!(self.functions, "static void {other}({declared})\n{{\n{unused}{c_else}}}\n\n");
        // The pointer is a local variable, a member of a structure, an element of a table, an argument, or a member of a structure that is reached
        // through another member. The structure has a second member, for a function of the same type that is never called.
        let never = "static void never";
        let call = match kind {
            1 => format!(
                "{{ void (*{pointer})({declared}) = {} ? {name} : &{other}; {pointer}({arguments}); }}",
                condition.c
            ),
            2 => {
                let _ = write!(
                    self.functions,
                    "{never}_{pointer}({declared})\n{{\n{unused}assert(0);\n}}\nstatic struct {{ void (*other)({declared}); void (*run)({declared}); }} {pointer} = {{ never_{pointer}, 0 }};\n"
                );
                format!("{pointer}.run = {} ? {name} : {other};\n(*{pointer}.run)({arguments});", condition.c)
            }
            3 => {
                let _ = writeln!(
                    self.functions,
                    "static void (*const {pointer}[])({declared}) = {{ {other}, {name} }};"
                );
                format!("{pointer}[({}) ? 1 : 0]({arguments});", condition.c)
            }
            5 | 6 => {
                let (before, back) = match kind {
                    5 => ("int tag;", format!("(struct {pointer} *)tag")),
                    _ => (
                        "long before; int tag;",
                        format!("(struct {pointer} *)((char *)tag - offsetof(struct {pointer}, tag))"),
                    ),
                };
                let _ = writeln!(
                    self.functions,
                    "static struct {pointer} {{ {before} void (*run)({declared}); }} {pointer}[2] = {{ {{ .run = {other} }}, {{ .run = {name} }} }};"
                );
                format!(
                    "{{ int *tag = ({}) ? &{pointer}[1].tag : &{pointer}[0].tag; ({back})->run({arguments}); }}",
                    condition.c
                )
            }
            _ => {
                let comma = if parameters.is_empty() { "" } else { ", " };
                let list = if parameters.is_empty() { "" } else { &declared };
                let _ = write!(
                    self.functions,
                    "static void {pointer}(void (*run)({declared}){comma}{list})\n{{\nrun({arguments});\n}}\n"
                );
                format!(
                    "if ({}) {pointer}({name}{comma}{arguments}); else {pointer}({other}{comma}{arguments});",
                    condition.c
                )
            }
        };
        self.both(&format!("if {} {{\n{fw}}} else {{\n{fw_else}}}", condition.fw), &call);
    }

    /// A loop as a C function that calls itself, directly or through another function. Each call has a local variable of its own, whose address the
    /// next call gets. `None` if registers are locals.
    fn recursion(&mut self, rounds: usize, leave: &str, c: &str) -> Option<String> {
        let parameters = self.parameters()?;
        let declared: String = parameters.iter().map(|(of, name)| format!(", {of}{name}")).collect();
        let unused: String = parameters.iter().map(|(_, name)| format!("(void){name};\n")).collect();
        let arguments: String = parameters.iter().map(|(_, name)| format!(", {name}")).collect();
        let (name, through) = (self.name("round"), self.name("next"));
        let next = match self.random.one_in(2) {
            true => &name,
            false => {
                let _ = write!(
                    self.functions,
                    "static void {name}(int i, int *up{declared});\nstatic void {through}(int i, int *up{declared})\n{{\n{name}(i, up{arguments});\n}}\n"
                );
                &through
            }
        };
        let _ = write!(
            self.functions,
            "static void {name}(int i, int *up{declared})\n{{\n{unused}int mine = i;\nif (up) assert(*up == i - 1);\nif (i == {rounds}) return;\n{leave}{{\n{c}}}\n{next}(i + 1, &mine{arguments});\nassert(mine == i);\n}}\n\n"
        );
        Some(format!("{name}(0, 0{arguments});"))
    }

    fn locked(&mut self, depth: usize) {
        if self.mutexes == 0 {
            return self.store();
        }
        if self.recursive && self.random.one_in(2) {
            return self.locked_twice();
        }
        // The block may lock the mutex again, which blocks the thread forever in both languages.
        let (fw, c) = self.inner(depth);
        self.both(
            &format!("lock m0;\n{fw}unlock m0;"),
            &format!("pthread_mutex_lock(&m0);\n{c}pthread_mutex_unlock(&m0);"),
        );
    }

    /// Writes a statement inside a recursive mutex that its owner locks twice. The statement itself does not lock the mutex.
    fn locked_twice(&mut self) {
        let outer = (std::mem::take(&mut self.fw), std::mem::take(&mut self.c));
        self.statement(0);
        let (fw, c) = (std::mem::take(&mut self.fw), std::mem::take(&mut self.c));
        (self.fw, self.c) = outer;
        let (take, give) = ("pthread_mutex_lock(&own);", "pthread_mutex_unlock(&own);");
        self.both(
            &format!("lock own;\n{fw}unlock own;"),
            &format!("{take}\nassert(!pthread_mutex_trylock(&own));\n{c}{give}\n{give}"),
        );
    }
}
