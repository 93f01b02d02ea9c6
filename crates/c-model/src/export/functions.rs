//! Procedures and threads as C functions, and `main`, which starts the threads, joins them and asserts the properties of final states.

use std::collections::{HashMap, HashSet};

use fencewright_c::write::identifier;
use fencewright_fw::ast::{self, Block, Declarator, Initial, Item, Procedure, StatementKind, Thread};
use fencewright_fw::names::Names;
use fencewright_fw::visit::{for_each_call, for_each_statement};
use fencewright_program::{Init, Program, Range};

use super::prelude::Helper;
use super::{Callee, Known, Result, Role, Writer, cannot, declaration};

/// A thread, or a family of threads, that `main` has to start.
pub(super) struct Started {
    function: String,
    /// The indices of the threads of a family; `None` for a single thread.
    instances: Option<Range>,
}

/// The text of a function before its body.
struct Head<'a> {
    /// The signature, up to the opening brace.
    text: String,
    parameters: Vec<(&'a str, Known)>,
    /// The lines at the beginning of the body.
    lines: Vec<String>,
}

impl Writer {
    /// Writes all procedures that are called, callees first.
    pub(super) fn procedures(&mut self, file: &ast::File) -> Result<()> {
        let procedures = file.items.iter().filter_map(|item| match item {
            Item::Procedure(procedure) => Some((procedure.name.text.as_str(), procedure)),
            _ => None,
        });
        let procedures: HashMap<&str, &Procedure> = procedures.collect();
        let mut called = Vec::new();
        for item in &file.items {
            if let Item::Thread(thread) = item {
                for_each_call(&thread.body, &mut |name| visit(name, &procedures, &mut called));
            }
        }
        called.into_iter().try_for_each(|procedure| self.procedure(procedure))
    }

    fn procedure(&mut self, procedure: &Procedure) -> Result<()> {
        let name = self.fresh(&procedure.name.text);
        let mut gives_result = false;
        for_each_statement(&procedure.body, &mut |kind| {
            gives_result |= matches!(kind, StatementKind::Return(Some(_)));
        });
        let result = if gives_result { self.integer() } else { "void" };
        self.procedures.insert(procedure.name.text.clone(), Callee { name: name.clone() });
        let parameters: Vec<(&str, Known)> = {
            let mut local = Names::inside(&self.names);
            let known = |p: &ast::Parameter| {
                Known::register(local.fresh(&identifier(&p.name.text), "n", "_"), p.wraps)
            };
            let known: Vec<Known> = procedure.parameters.iter().map(known).collect();
            procedure.parameters.iter().map(|p| p.name.text.as_str()).zip(known).collect()
        };
        let mut list: Vec<String> =
            parameters.iter().map(|(_, p)| format!("{} {}", self.type_of(p.wraps), p.text)).collect();
        if list.is_empty() {
            list.push("void".into());
        }
        let text = format!("static {result} {name}({}) {{", list.join(", "));
        self.ending = None;
        self.function(Head { text, parameters, lines: Vec::new() }, &procedure.body)
    }

    pub(super) fn thread(&mut self, thread: &Thread) -> Result<Started> {
        let function = self.fresh(&thread.name.text);
        let text = format!("static void *{function}(void *argument) {{");
        let mut head = Head { text, parameters: Vec::new(), lines: vec!["(void)argument;".into()] };
        let mut instances = None;
        if let Some((index, range)) = &thread.family {
            instances = Some(self.constants.range(range)?);
            let mut me = Known::constant(self.local_name(&index.text));
            let integer = self.integer();
            head.lines = vec![
                format!("const {integer} {} = ({integer})(intptr_t)argument;", me.text),
                format!("(void){};", me.text),
            ];
            me.role = Role::Constant;
            head.parameters.push((&index.text, me));
        }
        self.ending = Some(self.observed.of_thread(&thread.name.text).to_vec());
        self.function(head, &thread.body)?;
        Ok(Started { function, instances })
    }

    fn local_name(&self, like: &str) -> String {
        Names::inside(&self.names).fresh(&identifier(like), "n", "_")
    }

    fn function(&mut self, head: Head<'_>, body: &Block) -> Result<()> {
        let mut taken = Names::inside(&self.names);
        // The parameters already have names that are unique in the function. Here these names are only reserved.
        head.parameters.iter().for_each(|(_, known)| drop(taken.fresh(&known.text, "n", "_")));
        let mut fresh =
            |name: &ast::Name| (name.text.clone(), taken.fresh(&identifier(&name.text), "n", "_"));
        let (mut registers, mut indices, mut targets) = (Vec::new(), HashMap::new(), HashSet::new());
        for_each_statement(body, &mut |kind| match kind {
            StatementKind::Var(declarators) => {
                registers.extend(declarators.iter().map(|d| (d, fresh(&d.name).1)))
            }
            StatementKind::For(name, ..) if !indices.contains_key(&name.text) => {
                indices.extend([fresh(name)])
            }
            StatementKind::Goto(label) => drop(targets.insert(label.text.clone())),
            _ => {}
        });
        let constants = body.statements.iter().filter_map(|statement| match &statement.kind {
            StatementKind::Const(constant) => Some((constant, fresh(&constant.name).1)),
            _ => None,
        });
        let constants: Vec<(&ast::Const, String)> = constants.collect();
        (self.targets, self.indices) = (targets, indices);
        self.read.clear();
        let parameters = head.parameters.iter().map(|(name, known)| ((*name).to_owned(), known.clone()));
        let outer = std::mem::take(&mut self.text);
        self.depth = 1;
        let declared = self.scoped(parameters.collect(), |writer| writer.body(constants, registers, body));
        let body = std::mem::replace(&mut self.text, outer);
        let declared = declared?;
        self.line_at(0, "");
        self.line_at(0, &head.text);
        head.lines.iter().for_each(|line| self.line_at(1, line));
        for (_, known) in head.parameters.iter().filter(|(_, k)| k.role == Role::Register) {
            if !self.read.contains(&known.text) {
                self.line_at(1, &format!("(void){};", known.text));
            }
        }
        for (line, name) in declared {
            self.line_at(1, &line);
            if !self.read.contains(&name) {
                self.line_at(1, &format!("(void){name};"));
            }
        }
        self.text.push_str(&body);
        self.line_at(0, "}");
        Ok(())
    }

    /// Writes the body of a function. Returns the declarations that have to precede it, each with the name that it declares.
    fn body(
        &mut self,
        constants: Vec<(&ast::Const, String)>,
        registers: Vec<(&Declarator, String)>,
        body: &Block,
    ) -> Result<Vec<(String, String)>> {
        let mut declared = Vec::new();
        for (constant, name) in constants {
            let value = self.value(&constant.value)?;
            declared.push((format!("const {} {name} = {value};", self.integer()), name.clone()));
            self.know(&constant.name.text, Known::constant(name));
        }
        for (declarator, name) in registers {
            let known = self.described(declarator, Role::Register, name)?;
            let values = self.initial(declarator, &known)?;
            let c_type = self.type_of(known.wraps);
            // C does not initialise local variables, so each declaration gets an initial value.
            let line = match values.iter().all(|value| value == "0") && known.indices.is_some() {
                true => format!("{c_type} {}[{}] = {{ 0 }};", known.text, values.len()),
                false => match declaration(c_type, &known, &values) {
                    line if line.contains('=') => line,
                    line => format!("{} = 0;", line.trim_end_matches(';')),
                },
            };
            declared.push((line, known.text.clone()));
            self.know(&declarator.name.text, known);
        }
        self.statements(body)?;
        if self.ending.is_some() {
            self.stop()?;
        }
        Ok(declared)
    }

    fn line_at(&mut self, depth: usize, line: &str) {
        self.depth = depth;
        self.line(line);
    }

    /// The initial values of the registers of a declarator, one per element.
    fn initial(&mut self, declarator: &Declarator, known: &Known) -> Result<Vec<String>> {
        let cells = known.indices.map_or(1, Range::size) as usize;
        Ok(match &declarator.init {
            None => vec!["0".into(); cells],
            Some(Initial::Value(value)) => vec![self.value(value)?; cells],
            Some(Initial::List(values)) => values.iter().map(|v| self.value(v)).collect::<Result<_>>()?,
            Some(Initial::Any(range)) => vec![self.any(known, range.as_ref())?; cells],
        })
    }

    pub(super) fn main(&mut self, file: &ast::File, program: &Program, started: &[Started]) -> Result<()> {
        self.line_at(0, "");
        self.line("int main(void) {");
        self.depth = 1;
        self.line(&format!("pthread_t threads[{}];", program.threads.len().max(1)));
        for item in &file.items {
            if let Item::Shared(variables) = item {
                variables.iter().try_for_each(|variable| self.choose_initial(variable))?;
            }
        }
        let mut number = 0;
        for Started { function, instances } in started {
            let Some(range) = instances else {
                self.line(&format!("pthread_create(&threads[{number}], 0, {function}, 0);"));
                number += 1;
                continue;
            };
            let (size, low) = (range.size(), range.low);
            self.line(&format!("for (int i = 0; i < {size}; i++)"));
            let argument = if low == 0 { "i".into() } else { format!("(i + {low})") };
            let at = if number == 0 { "i".into() } else { format!("{number} + i") };
            self.line(&format!(
                "    pthread_create(&threads[{at}], 0, {function}, (void *)(intptr_t){argument});"
            ));
            number += size;
        }
        self.line(&format!("for (int i = 0; i < {number}; i++)"));
        self.line("    pthread_join(threads[i], 0);");
        self.finally(program)?;
        self.line("return 0;");
        self.line_at(0, "}");
        Ok(())
    }

    /// Writes, in `main`, the nondeterministic choices of the initial values of a shared variable.
    fn choose_initial(&mut self, variable: &Declarator) -> Result<()> {
        let known = self.known(&variable.name)?.clone();
        let cells = known.indices.map_or(1, Range::size) as usize;
        let values = self.constants.initial(variable, known.values(), cells)?;
        for (n, init) in values.into_iter().enumerate() {
            let Init::Any(range) = init else { continue };
            let chosen = self.chosen(range);
            let place =
                if known.indices.is_some() { format!("{}[{n}]", known.text) } else { known.text.clone() };
            self.line(&format!("store({place}, {chosen});"));
        }
        Ok(())
    }

    /// A nondeterministic choice: of any value in a range, or of any value.
    pub(super) fn chosen(&mut self, range: Option<Range>) -> String {
        match range {
            Some(Range { low, high }) => {
                self.helpers.insert(Helper::AnyOf);
                format!("any({}, {})", self.number(low), self.number(high))
            }
            None => {
                self.helpers.insert(Helper::Any);
                if self.wide { "__VERIFIER_nondet_long()".into() } else { "__VERIFIER_nondet_int()".into() }
            }
        }
    }

    /// The nondeterministic choice `*` or `* in low..high`, assigned to a variable.
    pub(super) fn any(&mut self, known: &Known, range: Option<&ast::RangeExpr>) -> Result<String> {
        let Some(range) = range else { return Ok(self.chosen(known.values())) };
        let chosen = self.constants.range(range);
        let chosen = chosen.map_err(|_| cannot("a choice whose range depends on the thread", range.span))?;
        if known.range.is_some_and(|r| !r.contains(chosen.low) || !r.contains(chosen.high)) {
            return Err(cannot("a choice outside the range of what is written", range.span));
        }
        Ok(self.chosen(Some(chosen)))
    }
}

fn visit<'a>(name: &str, procedures: &HashMap<&str, &'a Procedure>, done: &mut Vec<&'a Procedure>) {
    let Some(procedure) = procedures.get(name) else { return };
    if done.iter().any(|p| p.name.text == name) {
        return;
    }
    for_each_call(&procedure.body, &mut |inner| visit(inner, procedures, done));
    if !done.iter().any(|p| p.name.text == name) {
        done.push(procedure);
    }
}
