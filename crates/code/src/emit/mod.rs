//! From flat code to the syntax tree of `.fw`: declarations of variables, registers and threads, and the property `memory`.

pub(crate) mod facts;
pub(crate) mod plain;
mod property;
mod statements;

use std::collections::{BTreeMap, HashMap};

use fencewright_front_end::facts::{Facts, Holds, Register as RegisterFact};
use fencewright_fw::ast::{
    self, ArraySize, Const, Declarator, Expr, File, Initial, Item, RangeExpr, StatementKind,
};
use fencewright_fw::build;
use fencewright_fw::names::Names;
use fencewright_program::Span;

use crate::core::{Core, Register};
use crate::emit::property::{Evidence, property};
use crate::emit::statements::Statements;
use crate::flat::tidy::Reads;
use crate::flat::{Program, Step, StepKind, Thread, UNDEFINED};
use crate::layout::classes::Class;
use crate::statement::each_statement;
use fencewright_text::Stop;

/// Emits the program as a file, together with facts for reports.
pub(crate) fn file(inputs: facts::Inputs<'_>, stop: &Stop<'_>) -> (File, Facts) {
    let facts::Inputs { core, layout, program, .. } = inputs;
    let mut names = Names::default();
    let mut vocabulary = Vocabulary {
        undefined: names.fresh("undefined", "c_", "_"),
        uses_undefined: false,
        variables: HashMap::new(),
        beyond: BTreeMap::new(),
    };
    let mut items = Vec::new();
    for (number, class) in layout.classes.iter().enumerate() {
        if class.scalar && class.used.accessed_by.len() > 1 && !class.places.is_empty() {
            let variable = names.fresh(&class.name, "c_", "_");
            items.push(Item::Shared(vec![vocabulary.shared(core, class, &variable)]));
            vocabulary.variables.insert(number, variable);
        }
    }
    vocabulary.find_beyond(program, &mut names, stop);
    for text in vocabulary.beyond.values() {
        items.push(Item::Shared(vec![build::array(text, length(1), true, None, Span::default())]));
    }
    let threads: Vec<String> =
        program.threads.iter().map(|thread| names.fresh(&thread.name, "thread_", "_")).collect();
    let mut evidence = Evidence::default();
    for (thread, name) in program.threads.iter().zip(&threads) {
        items.push(Item::Thread(emit_thread(&mut vocabulary, &names, thread, name, &mut evidence, stop)));
    }
    let mut asserts = false;
    for thread in &program.threads {
        each_statement(&thread.code, stop, &mut |step| asserts |= matches!(step.kind, StepKind::Assert(..)));
    }
    items.extend(property(layout, &evidence, &vocabulary.variables, asserts).map(Item::Property));
    if vocabulary.uses_undefined {
        let name = build::name(&vocabulary.undefined, Span::default());
        items.insert(0, Item::Const(Const { name, value: build::int(UNDEFINED, Span::default()) }));
    }
    (File { items }, facts::facts(inputs, vocabulary, threads, evidence))
}

fn length(length: i64) -> ArraySize {
    ArraySize::Length(build::int(length, Span::default()))
}

/// Names of global declarations.
pub(crate) struct Vocabulary {
    /// The name of the constant for the undefined value.
    undefined: String,
    uses_undefined: bool,
    /// Names of the shared variables, by class.
    pub variables: HashMap<usize, String>,
    /// For each reason why the model may end, the name of an array of unknown length. Reading this array makes an answer `unknown`.
    pub beyond: BTreeMap<String, String>,
}

impl Vocabulary {
    pub fn number(&mut self, number: i64, span: Span) -> Expr {
        if number == UNDEFINED {
            self.uses_undefined = true;
            return build::variable(&self.undefined, span);
        }
        build::int(number, span)
    }

    fn shared(&mut self, core: &Core, class: &Class, name: &str) -> Declarator {
        let object = class.places.iter().flatten().next().map(|place| &core.objects[place.object.0 as usize]);
        let span = object.map(|object| object.span).unwrap_or_default();
        if let Some(choices) = class.choice {
            let mut declared = build::declarator(name, None, span);
            declared.init = Some(Initial::Any(Some(build::range(0, choices - 1, span))));
            return declared;
        }
        match class.is_single() {
            true => build::declarator(name, self.initial(&class.initial, span), span),
            false => self.array(name, class.first, &class.initial, span),
        }
    }

    fn array(&mut self, name: &str, first: i64, initial: &[i64], span: Span) -> Declarator {
        let size = match first {
            0 => length(initial.len() as i64),
            _ => ArraySize::Indices(RangeExpr {
                low: build::int(first, span),
                high: build::int(first + initial.len() as i64, span),
                inclusive: false,
                span,
            }),
        };
        build::array(name, size, false, self.initial(initial, span), span)
    }

    /// Initial values; `None` if all are zero.
    fn initial(&mut self, values: &[i64], span: Span) -> Option<Initial> {
        match values {
            [] => None,
            [first, rest @ ..] if rest.iter().all(|value| value == first) => {
                (*first != 0).then(|| Initial::Value(self.number(*first, span)))
            }
            _ => Some(Initial::List(values.iter().map(|&value| self.number(value, span)).collect())),
        }
    }

    /// Names an array for every reason why the model may end.
    fn find_beyond(&mut self, program: &Program, names: &mut Names<'_>, stop: &Stop<'_>) {
        let mut open: Vec<&Step> = program.threads.iter().flat_map(|thread| &thread.code).collect();
        while let Some(step) = open.pop().filter(|_| !stop.now()) {
            if let StepKind::Beyond(_, text) = &step.kind {
                // The name of the array leaves out the explanation in brackets.
                let start = text.split(" (").next().unwrap_or(text);
                self.beyond.entry(text.clone()).or_insert_with(|| names.fresh(start, "c_", "_"));
            }
            step.kind.blocks().for_each(|block| open.extend(block));
        }
    }
}

fn emit_thread(
    vocabulary: &mut Vocabulary,
    names: &Names<'_>,
    thread: &Thread,
    name: &str,
    evidence: &mut Evidence,
    stop: &Stop<'_>,
) -> ast::Thread {
    let reads = Reads::of(&thread.code, stop);
    let mut own = Names::inside(names);
    let registers: Vec<String> = (0..)
        .zip(&thread.registers)
        .map(|(n, register)| match reads.is_mentioned(Register(n)) {
            true => own.fresh(&register.name, "r_", "_"),
            false => String::new(),
        })
        .collect();
    let arrays: Vec<String> = (0..)
        .zip(&thread.arrays)
        .map(|(n, array)| match reads.is_array_mentioned(n) {
            true => own.fresh(&array.name, "r_", "_"),
            false => String::new(),
        })
        .collect();
    for (array, text) in thread.arrays.iter().zip(&arrays).filter(|(_, text)| !text.is_empty()) {
        if let Some(marked) = array.marks {
            evidence.marks.entry(marked).or_default().push((name.to_string(), text.clone()));
        }
        let (holds, kind) = match array.class {
            Some(class) => (Holds::Place(class, array.first), array.kind),
            None => match array.marks {
                Some((class, _)) => (Holds::Mark(class, array.first), array.kind),
                None => (Holds::Temporary, array.kind),
            },
        };
        evidence.registers.insert((name.to_string(), text.clone()), RegisterFact { holds, kind });
    }
    for (register, text) in thread.registers.iter().zip(&registers).filter(|(_, text)| !text.is_empty()) {
        let fact = RegisterFact { holds: register.holds.clone(), kind: register.kind };
        evidence.registers.insert((name.to_string(), text.clone()), fact);
    }
    let span = thread.span;
    let mut declared = Vec::new();
    for (register, text) in thread.registers.iter().zip(&registers).filter(|(_, text)| !text.is_empty()) {
        declared.push(build::declarator(text, vocabulary.initial(&[register.init], span), span));
    }
    for (array, text) in thread.arrays.iter().zip(&arrays).filter(|(_, text)| !text.is_empty()) {
        declared.push(vocabulary.array(text, array.first, &array.init, span));
    }
    let mut body =
        Statements::new(vocabulary, evidence, name, registers, arrays, reads, stop).block(&thread.code);
    if !declared.is_empty() {
        body.insert(0, build::statement(StatementKind::Var(declared), span));
    }
    ast::Thread { name: build::name(name, span), family: None, body: build::block(body, span), span }
}
