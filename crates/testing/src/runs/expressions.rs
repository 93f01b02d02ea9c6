//! Expressions without side effects.

use super::Writer;

impl Writer<'_> {
    /// A variable that can be read and written.
    pub(super) fn variable(&mut self) -> String {
        // Half of the accesses are to the variables declared last, which are the local ones.
        let count = self.variables.len();
        let number = match self.random.one_in(2) {
            true => count - 1 - self.random.below(count.min(4)),
            false => self.random.below(count),
        };
        self.variables[number].clone()
    }

    /// An expression of type `int` whose value is small, with operators nested up to this depth.
    pub(super) fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(4) {
            return self.leaf();
        }
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        match self.random.below(14) {
            0 | 1 => format!("(({a} + {b}) & 31)"),
            2 => format!("({a} - {b})"),
            3 => format!("(({a} & 7) * ({b} & 7))"),
            4 => format!("({a} ^ {b})"),
            5 => format!("({a} < {b})"),
            6 => format!("({a} == {b} ? {b} : {a})"),
            7 => format!("({a} && {b})"),
            8 => format!("({a} || !{b})"),
            9 => format!("({a} % {})", 2 + self.random.below(3)),
            10 => format!("({a} >> ({b} & 3))"),
            11 => format!("(int){}({a} * 37)", self.narrow()),
            12 => format!("((int)((unsigned){a} * 3u) & 15)"),
            _ => format!("(~{a} & {b})"),
        }
    }

    fn narrow(&mut self) -> &'static str {
        ["(signed char)", "(unsigned char)", "(short)", "(_Bool)"][self.random.below(4)]
    }

    fn leaf(&mut self) -> String {
        match self.random.below(8) {
            0 | 1 => self.random.below(6).to_string(),
            2 => {
                let index = self.index(2);
                format!("{}_array[{index}]", self.name)
            }
            3 => {
                let variable = self.variable();
                format!("\"fence\"[(int)({variable} & 3)]")
            }
            _ => {
                let variable = self.variable();
                format!("(int)({variable} & 63)")
            }
        }
    }

    /// An index below a power of two; rarely an index that may be too large.
    pub(super) fn index(&mut self, bits: u32) -> String {
        let variable = self.variable();
        let mask = if self.random.one_in(60) { (2 << bits) - 1 } else { (1 << bits) - 1 };
        format!("(int)({variable} & {mask})")
    }

    /// Assigns to a variable a value that keeps it small.
    pub(super) fn assign(&mut self, value: &str) {
        let variable = self.variable();
        let line = match self.random.below(7) {
            0 => format!("{variable} += {value} & 7;"),
            1 => format!("{variable} ^= {value} & 15;"),
            2 => format!("{variable} = {value} * 2;"),
            _ => format!("{variable} = ({value}) & 31;"),
        };
        self.line(&line);
    }
}
