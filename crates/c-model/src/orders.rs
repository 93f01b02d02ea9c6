//! The operations of a C program that have memory orders, with the weaker orders that their text could have.
//!
//! Operations are found in the tokens after preprocessing, because each token knows where it is written: the text of an operation in a macro is in
//! the definition of the macro, and weakening it weakens all uses. Assignments to atomic variables, and assembly that is only a fence, are found in
//! the typed tree. A weaker form is only a proposal: the caller loads and verifies the changed text. A read-modify-write has no weaker form, because
//! the model takes all of them for atomic steps that drain the buffer, as they are on x86.

use std::collections::BTreeMap;

use fencewright_c::preprocess::Preprocessed;
use fencewright_c::typed::tree::{ExprKind, StatementKind, Unit};
use fencewright_c::{Kind, Token, parser, typed};
use fencewright_front_end::edit::Change;
use fencewright_front_end::orders::{Operation, Ordered, Weaker};
use fencewright_front_end::{Input, Loaded};
use fencewright_program::{Action, Span};
use fencewright_text::{Sources, Stop};
use rustc_hash::FxHashSet;

use crate::elaborate::{Form, Part, form, walk_block};
use crate::preprocessed;

/// The prefixes of memory orders in C11 and in gcc. The rests of the names differ only in case.
const PREFIXES: [&str; 2] = ["memory_order_", "__ATOMIC_"];

/// All operations with memory orders in files that the user wrote; `None` if the program cannot be read again as before, or if it is time to stop.
pub fn orders(loaded: &Loaded, stop: &Stop<'_>) -> Option<Vec<Ordered>> {
    let open = |name: &str| match loaded.sources.named(name) {
        Some(file) => Ok(loaded.sources.file(file).text.clone().into_bytes()),
        None => Err("it was not included before".to_owned()),
    };
    let mut input = Input::new(loaded.sources.main().clone(), stop, &loaded.options, &open);
    let (text, replaced) = preprocessed(&mut input).ok()?;
    let unit = parser::parse_unless(&text, &|| stop.now()).ok()?;
    let typed = typed::typed_unless(&text, &unit, &|name| replaced.has(name), &|| stop.now()).ok()?;
    let names = |sources: &Sources| sources.iter().map(|(_, file)| file.name.clone()).collect::<Vec<_>>();
    if names(&input.sources) != names(&loaded.sources) {
        return None;
    }
    let mut found = Found {
        sources: &input.sources,
        text: &text,
        own: typed.functions.iter().map(|function| &*function.name).collect(),
        all: BTreeMap::new(),
    };
    for at in 0..text.tokens.len() {
        if stop.now() {
            return None;
        }
        found.call(at);
    }
    found.statements(&typed, loaded);
    Some(found.all.into_values().collect())
}

struct Found<'a> {
    sources: &'a Sources,
    text: &'a Preprocessed,
    /// The names of the functions that have a body.
    own: FxHashSet<&'a str>,
    /// The operations by the position of the text that says their order.
    all: BTreeMap<Span, Ordered>,
}

/// The tokens of a call.
struct Call {
    name: Token,
    open: Token,
    /// The first and the last token of each argument.
    arguments: Vec<(usize, usize)>,
    close: Token,
    /// The position of the closing parenthesis among all tokens.
    last: usize,
}

impl Call {
    /// Replaces the name of the function.
    fn renamed(&self, name: impl Into<String>) -> Change {
        Change { at: self.name.span.start as usize, length: self.name.span.range().len(), text: name.into() }
    }

    /// Inserts further arguments behind the last one.
    fn extended(&self, arguments: &str) -> Change {
        Change { at: self.close.span.start as usize, length: 0, text: arguments.into() }
    }

    /// Replaces the whole call.
    fn replaced(&self, text: &str) -> Change {
        let at = self.name.span.start as usize;
        Change { at, length: self.close.span.end as usize - at, text: text.into() }
    }
}

impl<'a> Found<'a> {
    /// Whether the user wrote the text at a position.
    fn is_users(&self, span: Span) -> bool {
        self.sources.is_users(span.file)
    }

    fn spelling(&self, token: &Token) -> &'a str {
        self.text.names.spelling(token.symbol)
    }

    /// Adds the operation whose call starts at a token, if there is one.
    fn call(&mut self, at: usize) {
        let name = &self.text.tokens[at];
        if name.kind != Kind::Identifier || !self.is_users(name.span) {
            return;
        }
        let spelling = self.spelling(name);
        let Some(form) = form(spelling) else { return };
        // If the name and the closing parenthesis come from different macro expansions or files, no single text can be changed.
        let call = self.tokens_of(at).filter(|call| {
            call.close.expansion == call.name.expansion && call.close.span.file == call.name.span.file
        });
        let Some(call) = call.filter(|call| self.sources.text(call.name.span) == spelling) else { return };
        if self.own.contains(spelling) {
            return;
        }
        let ordered = match self.whole_use(at, call.last) {
            Some(used) if form.is_fence() => self.used_fence(form, &call, used),
            _ => self.ordered(form, spelling, &call),
        };
        if let Some(ordered) = ordered {
            self.add(ordered);
        }
    }

    /// The macro use whose expansion consists of exactly these tokens, if there is one in a file of the user.
    fn whole_use(&self, first: usize, last: usize) -> Option<Span> {
        let tokens = &self.text.tokens;
        let outermost = |n: usize| tokens.get(n).and_then(|token| self.text.outermost(token));
        let number = outermost(first)?;
        let is_beside = |n: Option<usize>| n.and_then(outermost) == Some(number);
        let is_whole =
            outermost(last) == Some(number) && !is_beside(first.checked_sub(1)) && !is_beside(Some(last + 1));
        let used = self.text.expansions[number].whole;
        (is_whole && self.is_users(used)).then_some(used)
    }

    /// A fence that is all of a macro use, such as `smp_mb()`: the use is weakened, and not the definition of the macro.
    fn used_fence(&self, form: Form, call: &Call, used: Span) -> Option<Ordered> {
        const RELEASE: &str = "__atomic_thread_fence(__ATOMIC_RELEASE)";
        let (operation, stores) = match form {
            Form::Full(_) => (Operation::Fence, true),
            Form::Stores => (Operation::StoreFence, false),
            Form::Argument(operation) => {
                let uses = vec![used];
                let own = self.with_argument(operation, call, call.name.span.to(call.close.span), uses)?;
                (own.operation, own.weaker.len() > 1)
            }
            _ => (Operation::Fence, false),
        };
        let weaker = |text: &str, order: Option<String>| {
            let change = Change { at: used.start as usize, length: used.range().len(), text: text.into() };
            Weaker { order, file: used.file, changes: vec![change] }
        };
        let release = stores.then(|| weaker(RELEASE, Some(RELEASE.into())));
        let weaker = [weaker("((void)0)", None)].into_iter().chain(release).collect();
        let order = self.sources.text(used).to_owned();
        Some(Ordered { operation, order, uses: vec![used.text()], span: used.text(), weaker })
    }

    /// The tokens of a call whose name is at this position.
    fn tokens_of(&self, at: usize) -> Option<Call> {
        let tokens = &self.text.tokens;
        let is =
            |n: usize, text: &str| tokens[n].kind == Kind::Punctuator && self.spelling(&tokens[n]) == text;
        let open = at + 1;
        if open >= tokens.len() || !is(open, "(") {
            return None;
        }
        let (mut depth, mut arguments, mut first) = (0usize, Vec::new(), open + 1);
        for n in open..tokens.len() {
            if is(n, "(") || is(n, "{") || is(n, "[") {
                depth += 1;
            } else if is(n, ")") || is(n, "}") || is(n, "]") {
                depth -= 1;
            } else if is(n, ";") && depth == 1 {
                return None;
            }
            let ends = depth == 0 || depth == 1 && is(n, ",");
            if ends && first < n {
                arguments.push((first, n - 1));
            }
            if ends {
                first = n + 1;
            }
            if depth == 0 {
                return Some(Call {
                    name: tokens[at],
                    open: tokens[open],
                    arguments,
                    close: tokens[n],
                    last: n,
                });
            }
        }
        None
    }

    /// The operation of a call.
    fn ordered(&self, form: Form, name: &str, call: &Call) -> Option<Ordered> {
        let whole = call.name.span.to(call.close.span);
        let uses = vec![self.text.written(&call.name).to(self.text.written(&call.close))];
        let file = whole.file;
        let weaker = |changes: Vec<Change>, order: &str| Weaker { order: Some(order.into()), file, changes };
        let gone = || Weaker { order: None, file, changes: vec![call.replaced("((void)0)")] };
        let (operation, order, span, weaker) = match form {
            Form::Argument(operation) => return self.with_argument(operation, call, whole, uses),
            Form::Modify => (Operation::ReadModifyWrite, "memory_order_seq_cst", whole, Vec::new()),
            Form::Implicit(operation) => {
                let explicit = |order: &str| {
                    let renamed = call.renamed(format!("{name}_explicit"));
                    weaker(vec![renamed, call.extended(&format!(", {order}"))], order)
                };
                let relaxed = std::iter::once("memory_order_relaxed");
                let release = (operation == Operation::Store).then_some("memory_order_release");
                (operation, "memory_order_seq_cst", whole, relaxed.chain(release).map(explicit).collect())
            }
            Form::LockRelease => {
                let changes = vec![call.renamed("__atomic_store_n"), call.extended(", 0, __ATOMIC_RELAXED")];
                (Operation::Store, "__ATOMIC_RELEASE", whole, vec![weaker(changes, "__ATOMIC_RELAXED")])
            }
            Form::Pointer(operation, plain) => {
                let first = call.arguments.first().map(|&(_, last)| self.text.tokens[last]);
                let end = first.filter(|last| last.span.file == file)?.span.end as usize;
                let open = Change { at: call.open.span.end as usize, length: 0, text: "*(".into() };
                let close = Change { at: end, length: 0, text: ")".into() };
                (operation, name, whole, vec![weaker(vec![call.renamed(plain), open, close], plain)])
            }
            Form::Renamed(operation, plain) => {
                (operation, name, whole, vec![weaker(vec![call.renamed(plain)], plain)])
            }
            Form::Full(stores) => {
                let stores = weaker(vec![call.replaced(stores)], stores);
                (Operation::Fence, name, whole, vec![gone(), stores])
            }
            Form::Stores => (Operation::StoreFence, name, whole, vec![gone()]),
            Form::Weak => (Operation::Fence, name, whole, vec![gone()]),
        };
        Some(Ordered { operation, order: order.into(), uses, span, weaker })
    }

    /// The operation of a call whose last argument is a memory order; `None` if that is relaxed or no constant.
    fn with_argument(
        &self,
        operation: Operation,
        call: &Call,
        whole: Span,
        uses: Vec<Span>,
    ) -> Option<Ordered> {
        let &(first, last) = call.arguments.last()?;
        let at = self.order_at(&self.text.tokens[last]).filter(|_| first == last)?;
        let order = self.sources.text(at);
        let (prefix, strength) =
            PREFIXES.iter().find_map(|prefix| Some((prefix, order.strip_prefix(prefix)?)))?;
        let strength = strength.to_ascii_lowercase();
        let wanted: &[&str] = match (operation, strength.as_str()) {
            (_, "relaxed") => return None,
            (Operation::Fence | Operation::Store, "seq_cst") => &["relaxed", "release"],
            (Operation::Fence | Operation::Store | Operation::Load, _) => &["relaxed"],
            (Operation::StoreFence | Operation::ReadModifyWrite, _) => &[],
        };
        let is_fence = operation == Operation::Fence;
        let weaker = |strength: &&str| {
            let strength =
                if *prefix == PREFIXES[1] { strength.to_uppercase() } else { strength.to_string() };
            let text = format!("{prefix}{strength}");
            // A relaxed fence has no effect.
            let order = (!is_fence || !strength.eq_ignore_ascii_case("relaxed")).then(|| text.clone());
            let change = Change { at: at.start as usize, length: at.range().len(), text };
            Weaker { order, file: at.file, changes: vec![change] }
        };
        let operation = match (operation, strength.as_str()) {
            (Operation::Fence, "release" | "acq_rel") => Operation::StoreFence,
            _ => operation,
        };
        // Operations that share the text of their order, as a macro for the order makes them do, are weakened together.
        let span = if at.file == whole.file && whole.covers(at) { whole } else { at };
        Some(Ordered {
            operation,
            order: order.into(),
            uses,
            span,
            weaker: wanted.iter().map(weaker).collect(),
        })
    }

    /// The position in a text of the user where an argument names its memory order.
    fn order_at(&self, token: &Token) -> Option<Span> {
        let names = |text: &str| PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        let by_macro = self.text.uses(token).filter_map(|id| {
            let expansion = &self.text.expansions[id.index()?];
            names(self.text.names.spelling(expansion.name)).then_some(expansion.at)
        });
        let own = Some(token.span).filter(|_| names(self.spelling(token)));
        let at = own.or_else(|| by_macro.last())?;
        (self.is_users(at) && names(self.sources.text(at))).then_some(at)
    }

    /// Adds an operation. If the same text is used again, as in the definition of a macro, all uses are weakened together.
    fn add(&mut self, ordered: Ordered) {
        match self.all.get_mut(&ordered.span.text()) {
            Some(known) => {
                known.uses.extend(ordered.uses);
                known.uses.sort_unstable();
                known.uses.dedup();
                if ordered.operation == Operation::ReadModifyWrite {
                    (known.operation, known.weaker) = (ordered.operation, Vec::new());
                }
            }
            None => {
                self.all.insert(ordered.span.text(), ordered);
            }
        }
    }

    /// Adds assignments to atomic variables, and assembly that is a fence.
    fn statements(&mut self, unit: &Unit, loaded: &Loaded) {
        let fences = only_fences(loaded);
        let standard = self.sources.built_in("<stdatomic.h>").is_some();
        for function in &unit.functions {
            walk_block(&function.body, &mut |part| match part {
                Part::Expr(expr) if expr.expansion.is_none() && self.is_users(expr.span) => {
                    match &expr.kind {
                        ExprKind::Assign(place, value) if place.ty.atomic => {
                            let between = place.span.end..value.span.start;
                            self.assigned(expr.span, between, standard);
                        }
                        ExprKind::Modify { place, .. } if place.ty.atomic => {
                            let (operation, order) =
                                (Operation::ReadModifyWrite, "memory_order_seq_cst".into());
                            let (uses, span) = (vec![expr.span.text()], expr.span);
                            self.add(Ordered { operation, order, uses, span, weaker: Vec::new() });
                        }
                        _ => {}
                    }
                }
                Part::Statement(statement) if matches!(statement.kind, StatementKind::Assembly(_)) => {
                    let span = statement.definition.as_ref().map_or(statement.span, |d| d.span);
                    let used = statement.span.text();
                    if let (Some(operation), true) = (fences.get(&used), self.is_users(span)) {
                        let change =
                            Change { at: span.start as usize, length: span.range().len(), text: ";".into() };
                        let weaker = vec![Weaker { order: None, file: span.file, changes: vec![change] }];
                        let (operation, order) = (*operation, "asm".into());
                        self.add(Ordered { operation, order, uses: vec![used], span, weaker });
                    }
                }
                _ => {}
            });
        }
    }

    /// Adds `x = 1` for an atomic variable: a sequentially consistent store. `between` lies between the place and the value.
    fn assigned(&mut self, whole: Span, between: std::ops::Range<u32>, standard: bool) {
        let text = &self.sources.file(whole.file).text;
        let gap = text.get(between.start as usize..between.end as usize).unwrap_or("");
        let Some(equals) = gap.find('=') else { return };
        let (function, prefix) = match standard {
            true => ("atomic_store_explicit", PREFIXES[0]),
            false => ("__atomic_store_n", PREFIXES[1]),
        };
        let weaker = |strength: &str| {
            let strength = if standard { strength.into() } else { strength.to_uppercase() };
            let order = format!("{prefix}{strength}");
            let change = |at: usize, length: usize, text: String| Change { at, length, text };
            let changes = vec![
                change(whole.start as usize, 0, format!("{function}(&(")),
                change(between.start as usize + equals, 1, "),".into()),
                change(whole.end as usize, 0, format!(", {order})")),
            ];
            Weaker { order: Some(order), file: whole.file, changes }
        };
        let weaker = ["relaxed", "release"].map(weaker).into();
        let (operation, order) = (Operation::Store, "memory_order_seq_cst".into());
        self.add(Ordered { operation, order, uses: vec![whole.text()], span: whole, weaker });
    }
}

/// The statements that are nothing but fences, by position.
fn only_fences(loaded: &Loaded) -> BTreeMap<Span, Operation> {
    let mut found: BTreeMap<Span, Option<Operation>> = BTreeMap::new();
    for edge in loaded.program.threads.iter().flat_map(|thread| &thread.edges) {
        let operation = match edge.action {
            Action::Fence => Some(Operation::Fence),
            Action::StoreFence => Some(Operation::StoreFence),
            _ => None,
        };
        let known = found.entry(edge.span.text()).or_insert(operation);
        *known = known.filter(|known| Some(*known) == operation);
    }
    found.into_iter().filter_map(|(span, operation)| Some((span, operation?))).collect()
}
