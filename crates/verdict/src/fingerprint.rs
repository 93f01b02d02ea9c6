//! The fingerprint of a program: SHA-256 of a canonical form, which docs/certificates.md describes.
//!
//! The canonical form contains everything that determines the behaviour of a program and the meaning of its properties, and the names of the
//! properties, because certificates use them. Other names, source positions and hints are omitted, so that a certificate survives renaming, comments
//! and formatting. Structures are destructured field by field, so that adding a field forces a decision whether it belongs to the form.
//!
//! Soundness does not depend on the fingerprint, so it need not be trusted: a certificate is checked against the given program, whatever
//! program the certificate was made for.

use fencewright_program::{
    Action, Address, Edge, Expr, Init, Location, Numbers, Observable, Op, Program, Property, PropertyKind,
    Quantifier, Range, Register, RegisterId, Thread, Variable,
};
use sha2::{Digest, Sha256};

/// The version of the canonical form.
const VERSION: i64 = 1;

/// The fingerprint of a program, in hexadecimal digits.
pub fn fingerprint(program: &Program) -> String {
    let mut form = Form(Sha256::new());
    form.program(program);
    form.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A canonical form, hashed as it is written: a sequence of lines, each of which is a word or a number.
struct Form(Sha256);

impl Form {
    fn word(&mut self, word: &str) {
        self.0.update(word);
        self.0.update("\n");
    }

    fn number(&mut self, n: impl Into<i64>) {
        self.word(&n.into().to_string());
    }

    /// A list starts with its length, so that consecutive lists are unambiguous.
    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as i64);
        items.iter().for_each(|item| each(self, item));
    }

    /// An optional item is written as a list of length 0 or 1.
    fn option<T>(&mut self, item: &Option<T>, each: impl FnMut(&mut Self, &T)) {
        self.list(item.as_slice(), each);
    }

    /// A name may contain any characters, including line breaks, so its length is written first.
    fn name(&mut self, name: &str) {
        self.number(name.len() as i64);
        self.word(name);
    }

    fn program(&mut self, program: &Program) {
        let Program { numbers, variables, threads, properties, hints: _, calls: _, texts: _ } = program;
        self.word("fencewright-program");
        self.number(VERSION);
        self.word(match numbers {
            Numbers::Int => "int",
            Numbers::Nat => "nat",
            Numbers::Real => "real",
        });
        self.list(variables, Self::variable);
        self.list(threads, Self::thread);
        self.list(properties, Self::property);
    }

    fn variable(&mut self, variable: &Variable) {
        let Variable { name: _, base, indices, open, range, init, span: _ } = variable;
        self.number(*base);
        self.option(indices, Self::range);
        self.number(*open);
        self.option(range, Self::range);
        self.list(init, Self::init);
    }

    fn thread(&mut self, thread: &Thread) {
        let Thread { name: _, registers, locations, entry, edges, fault, family: _ } = thread;
        self.list(registers, |form, Register { name: _, init, range }| {
            form.init(init);
            form.option(range, Self::range);
        });
        self.list(locations, |form, Location { labels: _, span: _, first_edge, last_edge }| {
            form.number(*first_edge);
            form.number(*last_edge);
        });
        self.number(entry.0);
        self.number(fault.0);
        self.list(edges, |form, Edge { from, to, action, span: _ }| {
            form.number(from.0);
            form.number(to.0);
            form.action(action);
        });
    }

    fn property(&mut self, property: &Property) {
        let Property { name, kind, span: _ } = property;
        self.name(name);
        match kind {
            PropertyKind::Never(formula) => {
                self.word("never");
                self.expression(formula, &Self::observable);
            }
            PropertyKind::Assertions => self.word("assertions"),
            PropertyKind::NoDeadlock => self.word("deadlock"),
            PropertyKind::Finally(quantifier, formula) => {
                self.word(match quantifier {
                    Quantifier::Exists => "finally-exists",
                    Quantifier::Never => "finally-never",
                    Quantifier::Forall => "finally-forall",
                });
                self.expression(formula, &Self::observable);
            }
        }
    }

    fn range(&mut self, Range { low, high }: &Range) {
        self.number(*low);
        self.number(*high);
    }

    fn init(&mut self, init: &Init) {
        match init {
            Init::Value(value) => {
                self.word("value");
                self.number(*value);
            }
            Init::Any(range) => {
                self.word("any");
                self.option(range, Self::range);
            }
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Op(op) => self.operation(op),
            Action::Fence => self.word("fence"),
            Action::StoreFence => self.word("store-fence"),
            Action::Lock => self.word("lock"),
            Action::Unlock => self.word("unlock"),
            Action::Atomic { ops, drains } => {
                self.word("atomic");
                self.number(*drains);
                self.list(ops, Self::operation);
            }
        }
    }

    fn operation(&mut self, op: &Op) {
        match op {
            Op::Skip => self.word("skip"),
            Op::Assign(register, value) => {
                self.word("assign");
                self.number(register.0);
                self.expression(value, &Self::register);
            }
            Op::Havoc(register, range) => {
                self.word("havoc");
                self.number(register.0);
                self.option(range, Self::range);
            }
            Op::Assume(condition) => {
                self.word("assume");
                self.expression(condition, &Self::register);
            }
            // The reason of the fault does not matter: every fault violates `assertions`.
            Op::Assert(condition, _) => {
                self.word("assert");
                self.expression(condition, &Self::register);
            }
            Op::Load(register, address) => {
                self.word("load");
                self.number(register.0);
                self.address(address);
            }
            Op::Store(address, value) => {
                self.word("store");
                self.address(address);
                self.expression(value, &Self::register);
            }
        }
    }

    fn address(&mut self, Address { variable, index }: &Address) {
        self.number(variable.0);
        self.option(index, |form, index| form.expression(index, &Self::register));
    }

    fn register(&mut self, register: &RegisterId) {
        self.number(register.0);
    }

    fn observable(&mut self, observable: &Observable) {
        match observable {
            Observable::At(thread, locations) => {
                self.word("at");
                self.number(thread.0);
                self.list(locations, |form, location| form.number(location.0));
            }
            Observable::Register(thread, register) => {
                self.word("register");
                self.number(thread.0);
                self.number(register.0);
            }
            Observable::Memory(cell) => {
                self.word("memory");
                self.number(*cell);
            }
        }
    }

    /// Operators precede their operands, and are written as in .fw.
    fn expression<L>(&mut self, expression: &Expr<L>, leaf: &dyn Fn(&mut Self, &L)) {
        match expression {
            Expr::Const(value) => {
                self.word("constant");
                self.number(*value);
            }
            Expr::Leaf(it) => {
                self.word("leaf");
                leaf(self, it);
            }
            Expr::Unary(op, operand) => {
                self.word("unary");
                self.word(op.symbol());
                self.expression(operand, leaf);
            }
            Expr::Binary(op, left, right) => {
                self.word("binary");
                self.word(op.symbol());
                self.expression(left, leaf);
                self.expression(right, leaf);
            }
            Expr::If(condition, then, otherwise) => {
                self.word("if");
                self.expression(condition, leaf);
                self.expression(then, leaf);
                self.expression(otherwise, leaf);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn names_and_comments_do_not_matter_and_values_do() {
        let of = |text: &str| {
            fingerprint(
                &fencewright_lang::load("p.fw", text.as_bytes(), None, &[]).expect("it is right").program,
            )
        };
        assert_eq!(of("shared x; thread p { x = 1; }"), of("shared y; thread q { y = 1; /* renamed */ }"));
        assert_ne!(of("shared x; thread p { x = 1; }"), of("shared x; thread p { x = 2; }"));
    }
}
