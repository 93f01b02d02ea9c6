//! System calls on futexes. No other thread runs, so none of them waits for long: a wait with the value of the word has a timeout.

use super::Writer;

impl Writer<'_> {
    /// A wait, a wake-up or a requeue, whose result and error go to a local variable.
    pub(super) fn futex(&mut self) {
        let n = self.name.clone();
        let (result, number) = (self.name("t"), self.number(1));
        let word = format!("&{n}_{}word", self.random.pick(&["", "other_"]));
        let flag = self.random.pick(&["", " | FUTEX_PRIVATE_FLAG"]).to_owned();
        let bits = *self.random.pick(&["FUTEX_BITSET_MATCH_ANY", "1", "6"]);
        let call = match self.random.below(6) {
            0 => format!("{word}, FUTEX_WAIT{flag}, ({number}) & 3, &soon"),
            1 => format!("{word}, FUTEX_WAIT_BITSET{flag}, ({number}) & 3, &past, (int *)0, {bits}"),
            2 => format!("{word}, FUTEX_WAKE{flag}, ({number}) & 3"),
            3 => format!("{word}, FUTEX_WAKE_BITSET{flag}, 1, 0, 0, {bits}"),
            4 => format!("{word}, FUTEX_REQUEUE{flag}, ({number}) & 1, ({number}) & 3, &{n}_word"),
            _ => format!("{word}, FUTEX_CMP_REQUEUE{flag}, 1, 1, &{n}_other_word, ({number}) & 1"),
        };
        self.line(&format!("int {result};\n{{ struct timespec soon = {{ 0, 1000 }}, past = {{ 0, 1 }};"));
        self.line(&format!("{result} = (int)syscall(SYS_futex, {call});\n(void)soon, (void)past;"));
        self.line(&format!("if ({result} < 0)\n{result} = errno;"));
        self.line(&format!("{n}_word = ({n}_word + ({number} & 1)) & 3; }}"));
        self.variables.push(result);
    }
}
