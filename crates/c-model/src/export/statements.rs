//! Statements as C text.

use fencewright_fw::ast::{Block, Expr, Name, Place, RangeExpr, Statement, StatementKind};
use fencewright_fw::visit::has_call_or_access;

use super::prelude::Helper;
use super::{Known, Result, Role, Writer, cannot};

impl Writer {
    /// Writes the statements of a block. The constants of the block are in scope until its end.
    pub(super) fn statements(&mut self, block: &Block) -> Result<()> {
        self.scoped(Default::default(), |writer| {
            block.statements.iter().try_for_each(|statement| writer.statement(statement))
        })
    }

    fn block(&mut self, head: &str, block: &Block) -> Result<()> {
        self.line(&format!("{head} {{"));
        self.indented(|writer| writer.statements(block))?;
        self.line("}");
        Ok(())
    }

    fn statement(&mut self, Statement { labels, kind, span }: &Statement) -> Result<()> {
        for label in labels {
            if self.targets.contains(&label.text) {
                let depth = std::mem::take(&mut self.depth);
                self.line(&format!("{}:;", label_name(&label.text)));
                self.depth = depth;
            }
        }
        match kind {
            // Registers, and the constants of the outermost block, are declared at the beginning of the function.
            StatementKind::Empty | StatementKind::Var(_) => {}
            StatementKind::Const(constant) => {
                // A jump may skip the declaration of a constant in an inner block, so uses of the constant are replaced by its value.
                if self.depth > 1 {
                    let value = self.write(&constant.value)?.operand();
                    self.know(&constant.name.text, Known::constant(value));
                }
            }
            StatementKind::Assign(place, value) => self.assign(place, value)?,
            StatementKind::Havoc(place, range) => {
                let known = self.known(&place.name)?.clone();
                let value = self.any(&known, range.as_ref())?;
                let at = self.place(&known, place)?;
                self.put(&known, &at, &value);
            }
            StatementKind::Expr(e) => {
                let text = self.value(e)?;
                // The value is unused, so it need not be converted.
                let text = text.trim_start_matches("(int64_t)");
                self.line(&format!("{text};"));
            }
            StatementKind::Skip => self.line(";"),
            StatementKind::Fence => self.line("atomic_thread_fence(memory_order_seq_cst);"),
            StatementKind::StoreFence => self.line("atomic_thread_fence(memory_order_release);"),
            StatementKind::Lock(Some(mutex)) => self.mutex_call("pthread_mutex_lock", mutex)?,
            StatementKind::Unlock(Some(mutex)) => self.mutex_call("pthread_mutex_unlock", mutex)?,
            StatementKind::Lock(None) | StatementKind::Unlock(None) => {
                return Err(cannot("the global lock, which blocks all accesses of other threads", *span));
            }
            StatementKind::Atomic(_) => return Err(cannot("an `atomic` block", *span)),
            StatementKind::Snapshot(_) => return Err(cannot("a `snapshot` block", *span)),
            StatementKind::Await(e) if has_call_or_access(e, &|name| self.is_shared(name)) => {
                let negation = self.negation(e)?;
                self.line(&format!("while ({negation}) {{"));
                self.line("}");
            }
            StatementKind::Assume(e) | StatementKind::Await(e) => {
                let condition = self.condition(e)?;
                self.helpers.insert(Helper::Assume);
                self.line(&format!("__VERIFIER_assume({condition});"));
            }
            StatementKind::Assert(e, text) => {
                let condition = self.condition(e)?;
                let line = match text {
                    None => format!("assert({condition});"),
                    Some(text) => format!("assert(({condition}) && \"{}\");", escaped(text)),
                };
                self.line(&line);
            }
            StatementKind::If(e, then, otherwise) => self.if_statement("", e, then, otherwise.as_ref())?,
            StatementKind::While(e, body) => {
                let condition = self.condition(e)?;
                self.block(&format!("while ({condition})"), body)?;
            }
            StatementKind::Loop(body) => self.block("for (;;)", body)?,
            StatementKind::For(index, range, body) => {
                let name = self.indices[&index.text].clone();
                let (low, high) = self.ends(range)?;
                let integer = self.integer();
                let compare = if range.inclusive { "<=" } else { "<" };
                let head = format!("for ({integer} {name} = {low}; {name} {compare} {high}; {name}++)");
                let index = [(index.text.clone(), Known::constant(name))].into();
                self.scoped(index, |writer| writer.block(&head, body))?;
            }
            StatementKind::Choose(blocks) => {
                self.helpers.insert(Helper::Any);
                let asked = self.chosen(None);
                let last = blocks.len().saturating_sub(1);
                for (n, block) in blocks.iter().enumerate() {
                    let head = match n {
                        0 if last == 0 => String::new(),
                        0 => format!("if ({asked}) {{"),
                        _ if n == last => "} else {".into(),
                        _ => format!("}} else if ({asked}) {{"),
                    };
                    self.line(if head.is_empty() { "{" } else { &head });
                    self.indented(|writer| writer.statements(block))?;
                }
                self.line("}");
            }
            StatementKind::Break => self.line("break;"),
            StatementKind::Continue => self.line("continue;"),
            StatementKind::Goto(label) => self.line(&format!("goto {};", label_name(&label.text))),
            StatementKind::Stop => self.stop()?,
            StatementKind::Return(None) => self.line("return;"),
            StatementKind::Return(Some(e)) => {
                let value = self.value(e)?;
                self.line(&format!("return {value};"));
            }
            StatementKind::Steps(steps) => self.statements(steps)?,
            StatementKind::Block(block) => {
                self.line("{");
                self.indented(|writer| writer.statements(block))?;
                self.line("}");
            }
        }
        Ok(())
    }

    fn if_statement(
        &mut self,
        before: &str,
        e: &Expr,
        then: &Block,
        otherwise: Option<&Block>,
    ) -> Result<()> {
        let condition = self.condition(e)?;
        self.line(&format!("{before}if ({condition}) {{"));
        self.indented(|writer| writer.statements(then))?;
        match otherwise.map(|block| (block, block.statements.as_slice())) {
            None => self.line("}"),
            Some((_, [Statement { labels, kind: StatementKind::If(e, then, otherwise), .. }]))
                if labels.is_empty() =>
            {
                return self.if_statement("} else ", e, then, otherwise.as_ref());
            }
            Some((block, _)) => {
                self.line("} else {");
                self.indented(|writer| writer.statements(block))?;
                self.line("}");
            }
        }
        Ok(())
    }

    /// Writes an assignment. The program checks the index at the store, after the accesses in the value. So if the index has to be checked and the
    /// value contains accesses or calls, the C text first assigns the index and then the value to variables.
    fn assign(&mut self, place: &Place, value: &Expr) -> Result<()> {
        let known = self.known(&place.name)?.clone();
        let checked = match (&place.index, known.indices) {
            (Some(index), Some(indices)) if !self.is_certain(index, indices) => Some(index),
            _ => None,
        };
        let (Some(index), true) = (checked, has_call_or_access(value, &|name| self.is_shared(name))) else {
            let at = self.place(&known, place)?;
            let value = self.written(&known, value)?;
            self.put(&known, &at, &value);
            return Ok(());
        };
        let (integer, index) = (self.integer(), self.value(index)?);
        self.line("{");
        self.indented(|writer| {
            writer.line(&format!("{integer} position = {index};"));
            let value = writer.written(&known, value)?;
            writer.line(&format!("{integer} value = {value};"));
            let indices = known.indices.expect("an array");
            writer.helpers.insert(Helper::At);
            let offset =
                if indices.low == 0 { String::new() } else { format!(" - {}", writer.number(indices.low)) };
            let at =
                format!("{}[at(position{offset}, {})]", known.text, writer.number(indices.size() as i64));
            writer.put(&known, &at, "value");
            Ok(())
        })?;
        self.line("}");
        Ok(())
    }

    /// Writes an assignment to a register, or a store to a shared variable.
    fn put(&mut self, known: &Known, at: &str, value: &str) {
        let line = match known.role {
            Role::Shared => format!("store({at}, {value});"),
            _ => format!("{at} = {value};"),
        };
        self.line(&line);
    }

    fn mutex_call(&mut self, function: &str, mutex: &Place) -> Result<()> {
        let known = self.known(&mutex.name)?.clone();
        let at = self.place(&known, mutex)?;
        self.line(&format!("{function}(&{at});"));
        Ok(())
    }

    /// Writes the end of a thread, including the stores of the registers that properties read.
    pub(super) fn stop(&mut self) -> Result<()> {
        match self.ending.clone() {
            None => self.line("pthread_exit(0);"),
            Some(results) => {
                for result in &results {
                    let register = self.known(&result.register)?.clone();
                    let at = match (result.element, register.indices) {
                        (Some(element), Some(indices)) => {
                            format!("{}[{}]", register.text, element - indices.low)
                        }
                        _ => register.text.clone(),
                    };
                    self.read.insert(register.text);
                    let to = match &result.instance {
                        None => result.global.clone(),
                        Some((me, low)) => {
                            let me = self.known(me)?.text.clone();
                            let from =
                                if *low == 0 { String::new() } else { format!(" - {}", self.number(*low)) };
                            format!("{}[{me}{from}]", result.global)
                        }
                    };
                    self.line(&format!("{to} = {at};"));
                }
                self.line("return 0;");
            }
        }
        Ok(())
    }

    /// The C texts of the lower and the upper end of a range.
    fn ends(&mut self, range: &RangeExpr) -> Result<(String, String)> {
        Ok((self.value(&range.low)?, self.write(&range.high)?.operand()))
    }

    fn is_shared(&self, name: &Name) -> bool {
        self.known(name).is_ok_and(|known| known.role == Role::Shared)
    }
}

/// The C name of a label. In C, labels may have the names of variables, but not of keywords.
fn label_name(label: &str) -> String {
    match fencewright_c::write::taken().any(|word| word == label) {
        true => format!("{label}_label"),
        false => label.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    // An unescaped `??` could begin a trigraph.
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('?', "\\?")
}
