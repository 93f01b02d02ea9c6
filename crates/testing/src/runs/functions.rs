//! Functions: those that take two numbers, those that call themselves, and those that take functions; and tables of functions.

use super::Writer;

impl Writer<'_> {
    /// A function of two numbers, which may call itself and the functions before it.
    pub(super) fn function(&mut self) {
        let name = format!("{}_f{}", self.name, self.functions.len());
        let outer = self.variables.len();
        self.line(&format!("static int {name}(int a, int b)\n{{"));
        self.line("int v = a, x = b, y = 1;");
        self.variables.extend(["a", "b", "v", "x", "y"].map(String::from));
        if self.random.one_in(4) {
            self.line("static int kept = 2;");
            self.variables.push("kept".into());
        }
        self.budget = 5;
        match self.random.below(4) {
            0 => self.recursive(&name),
            1 => self.recursive_through_pointer(&name),
            _ => {
                let count = 2 + self.random.below(3);
                self.block_of(count);
            }
        }
        let value = self.number(2);
        self.line(&format!("return {value};\n}}"));
        self.variables.truncate(outer);
        self.functions.push(name);
    }

    /// One or two calls of the function itself, each with a smaller first number.
    fn recursive(&mut self, name: &str) {
        self.line("if (a > 0 && a < 9) {");
        let outer = self.variables.len();
        self.block_of(1);
        let (second, less) = (self.number(1), 1 + self.random.below(2));
        let most = if self.random.one_in(6) { 15 } else { 3 };
        self.line(&format!("v = {name}((a & {most}) - {less}, {second});"));
        if self.random.one_in(3) {
            self.line(&format!("v = (v + {name}((a & 3) - 2, v & 3)) & 31;"));
        }
        self.line("}");
        self.variables.truncate(outer);
        self.block_of(1);
    }

    /// A call through a pointer in memory, of the function itself with a smaller first number or of another function.
    fn recursive_through_pointer(&mut self, name: &str) {
        let n = self.name.clone();
        let other = self.function_name().unwrap_or_else(|| name.to_owned());
        let second = self.number(1);
        self.line(&format!("if (a > 0 && a < 9) {{\nstatic {n}_F self;"));
        self.line(&format!("self = b & 1 ? {name} : {other};"));
        self.line(&format!("v = self((a & 3) - 1, {second});\n}}"));
    }

    /// A function written so far.
    pub(super) fn function_name(&mut self) -> Option<String> {
        (!self.functions.is_empty()).then(|| self.random.pick(&self.functions).clone())
    }

    /// A function written so far, selected by a number.
    pub(super) fn function_value(&mut self) -> String {
        let one = self.function_name().expect("there are functions");
        if self.random.one_in(3) {
            return one;
        }
        let other = self.function_name().expect("there are functions");
        let condition = self.number(1);
        format!("({condition} ? {one} : {other})")
    }

    /// Functions that take or return pointers to functions.
    pub(super) fn higher_order(&mut self) {
        let n = self.name.clone();
        let (one, other) = (self.function_value_of_k(), self.function_value_of_k());
        self.line(&format!(
            "static int {n}_apply({n}_F f, int k)\n{{\nreturn k > 3 ? f(k, 1) : (f(1, k) + k) & 31;\n}}"
        ));
        self.line(&format!(
            "static {n}_F {n}_choose(int k)\n{{\nif (k & 1)\nreturn {one};\nreturn {other};\n}}"
        ));
        self.line(&format!("static int {n}_through(struct {n}_hook *h, int k)\n{{\nstruct {n}_device *d = container_of(h, struct {n}_device, hook);\nreturn d->ops ? d->ops->second(d->value, k) : h->call(k, d->kind);\n}}"));
        self.line(&format!("static int {n}_down(struct {n}_hook *h, int k)\n{{\nstruct {n}_derived *d = (struct {n}_derived *)h;\nreturn (d->other(k, d->extra) + h->call(h->count, k)) & 63;\n}}"));
        self.line(&format!("static struct {n}_pair {n}_swap(struct {n}_pair p, {n}_F f)\n{{\np.a = f(p.b, p.a) & 31;\nreturn p;\n}}"));
        self.line(&format!("static int {n}_sum(struct {n}_node *p)\n{{\nreturn p ? (p->value + {n}_sum(p->next)) & 63 : 0;\n}}"));
    }

    fn function_value_of_k(&mut self) -> String {
        self.function_name().expect("there are functions")
    }

    /// Tables of functions with static storage.
    pub(super) fn tables(&mut self) {
        let n = self.name.clone();
        let mut names: Vec<String> = (0..8).map(|_| self.function_value_of_k()).collect();
        if self.random.one_in(12) {
            names[1] = "0".into();
        }
        let [a, b, c, d, e, f, g, h] = &names[..] else { return };
        let constant = if self.random.one_in(2) { "const " } else { "" };
        let lines = [
            format!("static {constant}{n}_F {n}_table[4] = {{ {a}, {b}, {c}, {d} }};"),
            format!("static struct {n}_ops {n}_ops[2] = {{ {{ 1, {e}, {f} }}, {{ 2, {g}, {h} }} }};"),
        ];
        lines.iter().for_each(|line| self.line(line));
    }
}
