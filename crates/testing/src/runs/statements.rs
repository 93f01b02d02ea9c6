//! Statements.

use super::Writer;

impl Writer<'_> {
    /// Up to `count` statements, as many as the budget allows, with the variables that they declare.
    pub(super) fn block_of(&mut self, count: usize) {
        for _ in 0..count {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement();
        }
    }

    /// A block with variables of its own.
    fn block(&mut self) {
        let outer = self.variables.len();
        self.depth += 1;
        self.line("{");
        let count = 1 + self.random.below(2);
        self.block_of(count);
        self.line("}");
        self.depth -= 1;
        self.variables.truncate(outer);
    }

    fn statement(&mut self) {
        let is_simple = self.depth >= 2;
        match self.random.below(if is_simple { 17 } else { 27 }) {
            0..=3 => {
                let value = self.number(2);
                self.assign(&value);
            }
            4 => self.local(),
            5 => self.element(),
            6..=9 => self.call(),
            10 => self.install(),
            11 | 12 => self.allocation(),
            13 => self.list(),
            14 => self.assembly(),
            15 => self.pointers(),
            16 => self.futex(),
            17..=19 => self.branch(),
            20 | 21 => self.repetition(),
            22 => self.cases(),
            23 => self.jump(),
            24 => self.row(),
            25 => self.open_length(),
            _ => self.block(),
        }
    }

    fn local(&mut self) {
        let (name, value) = (self.name("l"), self.number(2));
        let ty = *self.random.pick(&["int", "unsigned", "long", "unsigned char", "short"]);
        self.line(&format!("{ty} {name} = ({value}) & 31;"));
        self.variables.push(name);
    }

    fn element(&mut self) {
        let (index, value) = (self.index(2), self.number(1));
        let line = format!("{}_array[{index}] = ({value}) & 15;", self.name);
        self.line(&line);
    }

    /// A call whose result goes to a local variable, so that its effects and other accesses have an order.
    fn call(&mut self) {
        if self.functions.is_empty() {
            return self.local();
        }
        let n = self.name.clone();
        let (a, b) = (self.number(1), self.number(1));
        let name = self.function_name().expect("there are functions");
        let value = self.function_value();
        let call = match self.random.below(if self.has_tables { 9 } else { 3 }) {
            0 => format!("{name}({a}, {b})"),
            1 => format!("{value}({a}, {b})"),
            2 => {
                let pointer = self.name("p");
                self.line(&format!("{n}_F {pointer} = {value};"));
                format!("{pointer}({a}, {b})")
            }
            3 => format!("{n}_table[{}]({a}, {b})", self.index(2)),
            4 => format!("{n}_apply({value}, {a})"),
            5 => format!("{n}_choose({a})({b}, 1)"),
            6 => format!("{n}_ops[{}].first({a}, {b})", self.index(1)),
            7 => {
                let index = self.index(1);
                self.line(&format!("if ({n}_devices[{index}].hook.call)"));
                let line = format!("y = {n}_through(&{n}_devices[{index}].hook, {a});");
                return self.line(&line);
            }
            _ => {
                self.line(&format!("if ({n}_derived.other)"));
                let line = format!("y = {n}_down(&{n}_derived.base, {a});");
                return self.line(&line);
            }
        };
        let result = self.name("r");
        self.line(&format!("int {result} = {call};"));
        self.variables.push(result);
    }

    /// Stores pointers to functions in tables and structures. Before these are declared: an assignment.
    fn install(&mut self) {
        let n = self.name.clone();
        if !self.has_tables {
            let value = self.number(1);
            return self.assign(&value);
        }
        let (index, value, other) = (self.index(1), self.function_value(), self.function_value());
        let ops = if self.random.one_in(2) { "0".into() } else { format!("&{n}_ops[{}]", self.index(1)) };
        match self.random.below(5) {
            0 | 1 => {
                let device = self.name("d");
                self.line(&format!("{{ struct {n}_device {device} = {{ 2, {{ {value}, 1 }}, {ops}, 3 }};"));
                self.line(&format!("{n}_devices[{index}] = {device}; }}"));
            }
            2 => {
                self.line(&format!("{n}_devices[{index}].hook.call = {value};"));
            }
            3 => {
                self.line(&format!("{n}_derived.base.call = {value};\n{n}_derived.other = {other};"));
                self.line(&format!("{n}_derived.extra = {n}_g0 & 3;"));
            }
            _ => {
                let slot = self.name("s");
                self.line(&format!("{{ {n}_F *{slot} = x & 1 ? &{n}_ops[0].first : &{n}_ops[1].second;"));
                self.line(&format!("*{slot} = {value}; }}"));
            }
        }
    }

    /// An allocation whose size depends on the argument, filled, read and freed; sometimes read beyond its end, freed twice, read after that, or
    /// never freed.
    fn allocation(&mut self) {
        let (p, i, size) = (self.name("m"), self.name("i"), self.name("n"));
        let (length, index, value) = (self.index(1), self.index(1), self.number(1));
        self.line(&format!("{{ int {size} = {length} + 1;"));
        let (cells, most) = match self.random.below(3) {
            0 => (format!("malloc({size} * sizeof(int))"), usize::from(self.random.one_in(8))),
            // The last element is never read, because it has no value.
            1 => (format!("malloc(sizeof(int) * (size_t)({size} + 1))"), 0),
            _ => (format!("calloc({size}, sizeof(int))"), usize::from(self.random.one_in(8))),
        };
        self.line(&format!("int *{p} = {cells};"));
        self.line(&format!("for (int {i} = 0; {i} < {size}; {i}++)\n{p}[{i}] = ({value} + {i}) & 15;"));
        self.line(&format!("y = {p}[{index} % {size} + {most}];"));
        match self.random.below(12) {
            0 => self.line(&format!("free({p});\nfree({p});")),
            1 => self.line(&format!("free({p});\ny = *{p};")),
            2 => {}
            _ => self.line(&format!("free({p});")),
        }
        self.line("}");
    }

    /// A list of a length that depends on the argument, summed by a function that calls itself.
    fn list(&mut self) {
        let n = self.name.clone();
        if !self.has_tables {
            return self.local();
        }
        let (head, i, next) = (self.name("h"), self.name("i"), self.name("e"));
        let (length, value) = (self.index(1), self.number(1));
        self.line(&format!("{{ struct {n}_node *{head} = NULL;"));
        self.line(&format!("for (int {i} = 0; {i} <= {length} && {i} < 3; {i}++) {{"));
        self.line(&format!("struct {n}_node *{next} = malloc(sizeof *{next});"));
        self.line(&format!(
            "{next}->next = {head};\n{next}->value = ({value} + {i}) & 15;\n{head} = {next};\n}}"
        ));
        self.line(&format!("y = {n}_sum({head});"));
        self.line(&format!("while ({head}) {{\nstruct {n}_node *{next} = {head}->next;\nfree({head});\n{head} = {next};\n}}\n}}"));
    }

    fn assembly(&mut self) {
        let (register, value) = (self.name("q"), self.number(1));
        let n = self.name.clone();
        let memory = self.random.pick(&["_g0", "_pair.a", "_array[1]"]).to_owned();
        let place = format!("{n}{memory}");
        let line = match self.random.below(5) {
            0 => format!(
                "__asm__ volatile(\"lock; xaddl %0, %1\" : \"+r\"({register}), \"+m\"({place}) : : \"memory\", \"cc\");"
            ),
            1 => format!(
                "__asm__ volatile(\"xchgl %0, %1\" : \"+r\"({register}), \"+m\"({place}) : : \"memory\");"
            ),
            2 => format!(
                "__asm__(\"addl %1, %0\\n\\tsubl $2, %0\" : \"+r\"({register}) : \"r\"(x & 7) : \"cc\");"
            ),
            3 => format!(
                "{{ unsigned char z;\n__asm__ volatile(\"lock; cmpxchgl %3, %1\\n\\tsete %0\" : \"=q\"(z), \"+m\"({place}), \"+a\"({register}) : \"r\"(3) : \"memory\", \"cc\");\n{register} = {register} * 2 + z; }}"
            ),
            _ => format!(
                "__asm__ volatile(\"movl %1, %0\\n\\tincl %1\" : \"=&r\"({register}), \"+m\"({place}) : : \"cc\");"
            ),
        };
        self.line(&format!("int {register} = ({value}) & 15;"));
        self.line(&line);
        self.variables.push(register);
    }

    /// A pointer to a local variable or an array element, and an access through it. Sometimes the pointer may be null by then, or may point to a
    /// variable of an inner block that has ended.
    fn pointers(&mut self) {
        let n = self.name.clone();
        let (p, l, value) = (self.name("p"), self.name("l"), self.number(1));
        self.line(&format!("int {l} = ({value}) & 7;"));
        let (index, other) = (self.index(2), self.number(1));
        self.line(&format!("int *{p} = {other} & 1 ? &{l} : &{n}_array[{index}];"));
        if self.random.one_in(10) {
            let inner = self.name("l");
            self.line(&format!(
                "{{ int {inner} = 2;\nif ({other} == 3)\n{p} = &{inner};\n*{p} += {inner}; }}"
            ));
        }
        if self.random.one_in(14) {
            self.line(&format!("if ({other} == 2)\n{p} = NULL;"));
        }
        self.line(&format!("*{p} = (*{p} + 1) & 31;"));
        self.variables.push(l);
    }
}

impl Writer<'_> {
    fn branch(&mut self) {
        let condition = self.number(2);
        self.line(&format!("if ({condition})"));
        self.block();
        if self.random.one_in(2) {
            self.line("else");
            self.block();
        }
    }

    fn repetition(&mut self) {
        let (i, count) = (self.name("i"), 1 + self.random.below(3));
        let condition = self.number(1);
        match self.random.below(3) {
            0 => self.line(&format!("for (int {i} = 0; {i} < {count}; {i}++)")),
            1 => self.line(&format!("for (int {i} = {condition} & 3; {i} > 0; {i}--)")),
            _ => {
                self.line(&format!("int {i} = 0;"));
                self.line(&format!("while ({i}++ < {count} && {condition})"));
            }
        }
        let outer = self.variables.len();
        self.depth += 1;
        self.line("{");
        self.block_of(1);
        if self.random.one_in(3) {
            let (word, when) = (*self.random.pick(&["break", "continue"]), self.number(1));
            self.line(&format!("if ({when})\n{word};"));
        }
        self.block_of(1);
        self.line("}");
        self.depth -= 1;
        self.variables.truncate(outer);
    }

    fn cases(&mut self) {
        let value = self.number(1);
        let outer = self.variables.len();
        self.depth += 2;
        self.line(&format!("switch ({value}) {{"));
        for (case, label) in ["case 0:", "case 1: case 2:", "case 3 ... 5:", "default:"].iter().enumerate() {
            self.line(&format!("{label} {{"));
            self.block_of(1);
            self.variables.truncate(outer);
            let falls = case == 3 || self.random.one_in(3);
            self.line(if falls { "}" } else { "break; }" });
        }
        self.line("}");
        self.depth -= 2;
    }

    /// A jump forward, or a bounded number of jumps back, past declarations.
    fn jump(&mut self) {
        let (label, counter, condition) = (self.name("out"), self.name("c"), self.number(1));
        let outer = self.variables.len();
        self.depth += 2;
        match self.random.one_in(2) {
            true => {
                self.line(&format!("if ({condition})\ngoto {label};\n{{"));
                self.block_of(1);
                self.line(&format!("}}\n{label}:;"));
            }
            false => {
                self.line(&format!("int {counter} = 0;\n{label}:;\n{{"));
                self.block_of(1);
                self.line(&format!("if ({counter}++ < 2 && {condition})\ngoto {label};\n}}"));
            }
        }
        self.depth -= 2;
        self.variables.truncate(outer);
    }

    /// A structure that ends in an array of open length.
    fn row(&mut self) {
        let n = self.name.clone();
        let (p, length, value) = (self.name("w"), self.index(1), self.number(1));
        let (index, i) = (self.index(1), self.name("i"));
        let extra = usize::from(self.random.one_in(12));
        self.line(&format!("{{ struct {n}_row *{p} = malloc(sizeof *{p} + ({length} + 1) * sizeof(int));"));
        self.line(&format!("{p}->length = {length} + 1;"));
        self.line(&format!("for (int {i} = 0; {i} < {p}->length; {i}++)\n{p}->cells[{i}] = {i};"));
        self.line(&format!("{p}->cells[{index} % {p}->length + {extra}] = ({value}) & 15;"));
        self.line(&format!("y = {p}->cells[0];\nfree({p}); }}"));
    }

    /// An array of variable length.
    fn open_length(&mut self) {
        let (a, size, i) = (self.name("v"), self.name("n"), self.name("i"));
        let (length, value, index) = (self.index(1), self.number(1), self.index(1));
        let most = usize::from(self.random.one_in(12));
        self.line(&format!("{{ int {size} = {length} + 1;\nint {a}[{size}];"));
        self.line(&format!("for (int {i} = 0; {i} < {size}; {i}++)\n{a}[{i}] = ({value} * {i}) & 15;"));
        self.line(&format!("y = ({a}[{index} % {size} + {most}] + (int)sizeof {a}) & 31; }}"));
    }
}
