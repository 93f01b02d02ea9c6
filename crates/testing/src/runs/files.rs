//! The second file of a program. Both files have static variables and functions with the same names and other meanings, types and macros with the
//! same names, and call each other.

use super::Writer;

/// The number of functions of the second file that the first one calls.
const EXPORTED: usize = 2;

impl Writer<'_> {
    /// The text of the second file.
    pub(super) fn second_file(mut self) -> String {
        let n = self.name.clone();
        let limit = 2 + self.random.below(4);
        self.line(&format!("#define {n}_LIMIT {limit}"));
        self.line(&format!(
            "typedef unsigned char {n}_small;\ntypedef struct {{ unsigned char a; int b; }} {n}_own_t;"
        ));
        self.line(&format!("enum {{ {n}_ONE = 1 + {n}_LIMIT }};"));
        self.declarations();
        self.line(&format!("static {n}_own_t {n}_own = {{ 3, {n}_ONE }};\nint {n}_near(int, int);"));
        self.line(&format!("extern int {n}_shared[4];\nint {n}_from_second = {n}_LIMIT;"));
        self.shared_names();
        self.variables.extend([format!("{n}_own.b"), format!("{n}_from_second")]);
        for _ in 0..1 + self.random.below(3) {
            self.function();
        }
        self.line(&format!("{n}_F {n}_hook_of_second = {};", self.functions[0]));
        for number in 0..EXPORTED {
            let (inner, value) = (self.function_name().expect("there are functions"), self.number(1));
            self.line(&format!("int {n}_far{number}(int a, int b)\n{{"));
            self.line(&format!("int v = {inner}(a, (b + {n}_ONE) & 7);\n{n}_small s = v * {n}_LIMIT;"));
            self.line(&format!("if (a > 0 && a < 9)\nv += {n}_near((a & 3) - 1, b & 7);"));
            self.line(&format!("{n}_shared[s & 3] = ({value}) & 15;\nreturn (v + {n}_own.b + s) & 63;\n}}"));
        }
        self.line(&format!("struct {n}_pair {n}_turned(struct {n}_pair p)\n{{\np.a = (p.b + {n}_LIMIT) & 31;\np.b = 1;\nreturn p;\n}}"));
        self.line(&format!(
            "{n}_F {n}_pick(int k)\n{{\nreturn k & 1 ? {} : {n}_far0;\n}}",
            self.functions[0]
        ));
        self.text
    }

    /// Variables that both files have.
    fn shared_names(&mut self) {
        let n = self.name.clone();
        self.variables.extend([format!("{n}_shared[1]"), format!("{n}_shared[3]")]);
    }

    /// What the first file knows of the second one, and its own meanings of the same names.
    pub(super) fn of_second_file(&mut self) {
        let n = self.name.clone();
        self.line(&format!(
            "#define {n}_LIMIT 7\ntypedef int {n}_small;\ntypedef struct {{ short x; }} {n}_own_t;"
        ));
        self.line(&format!("enum {{ {n}_ONE = {n}_LIMIT }};\nstatic {n}_own_t {n}_own = {{ {n}_ONE }};"));
        self.line(&format!("int {n}_shared[4] = {{ 1, 2, {n}_LIMIT, 4 }};\nextern int {n}_from_second;"));
        self.line(&format!("extern {n}_F {n}_hook_of_second;\n{n}_F {n}_pick(int);"));
        self.line(&format!("struct {n}_pair {n}_turned(struct {n}_pair);"));
        self.shared_names();
        self.variables.extend([format!("{n}_own.x"), format!("{n}_from_second")]);
        for number in 0..EXPORTED {
            self.line(&format!("int {n}_far{number}(int, int);"));
            self.functions.push(format!("{n}_far{number}"));
        }
    }

    /// The functions of the first file that the second one calls, and those that pass structures and functions between the files.
    pub(super) fn for_second_file(&mut self) {
        let n = self.name.clone();
        let value = self.number(1);
        self.line(&format!("int {n}_near(int a, int b)\n{{\n{n}_small s = {n}_own.x + b;"));
        self.line(&format!(
            "if (a > 0 && a < 9)\ns += {n}_far1((a & 3) - 1, 2);\nreturn (s + ({value})) & 63;\n}}"
        ));
        self.line(&format!(
            "static int {n}_across(int a, int b)\n{{\nstruct {n}_pair p = {n}_turned({n}_pair);"
        ));
        self.line(&format!("{n}_pair = p;\nint v = {n}_hook_of_second(b & 3, 1);"));
        self.line(&format!("return (v + {n}_pick(a)(a & 1, b & 3) + p.a) & 63;\n}}"));
        self.functions.push(format!("{n}_across"));
    }
}
