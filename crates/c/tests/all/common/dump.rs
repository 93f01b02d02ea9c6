//! Prints typed trees for comparison with expected texts: conversions as `type(value)`, a load as the place itself, the address of a place with `&`.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::typed::tree::{
    AssemblyInput, Block, Callee, Expr, ExprKind, Function, Initial, Place, PlaceKind, Statement,
    StatementKind, Step, Type, TypeKind, Unit,
};

pub struct Dump<'a> {
    pub unit: &'a Unit,
    pub function: Option<&'a Function>,
}

impl Dump<'_> {
    pub fn ty(&self, ty: &Type) -> String {
        let mut text = String::new();
        text += if ty.atomic { "atomic " } else { "" };
        text += if ty.volatile { "volatile " } else { "" };
        text + &match &ty.kind {
            TypeKind::Void => "void".into(),
            TypeKind::Integer(Arithmetic::Bool) => "bool".into(),
            TypeKind::Integer(Arithmetic::Integer(integer)) => {
                format!("{}{}", if integer.signed { "i" } else { "u" }, integer.bits())
            }
            TypeKind::Floating(bytes) => format!("f{}", bytes * 8),
            TypeKind::Pointer(to) => format!("{}*", self.ty(to)),
            TypeKind::Array(of, length) => format!("{}[{length}]", self.ty(of)),
            TypeKind::Record(id) => self.unit.records[id.0 as usize].name.to_string(),
            TypeKind::Function(function) => {
                let parameters: Vec<_> = function.parameters.iter().flatten().map(|ty| self.ty(ty)).collect();
                format!("{}({})", self.ty(&function.result), parameters.join(", "))
            }
        }
    }

    fn initial(&self, initial: &Initial) -> String {
        let part = |(path, value): &(Vec<Step>, Expr)| {
            let steps: String = path
                .iter()
                .map(|step| match step {
                    Step::Field(n) => format!(".{n}"),
                    Step::Element(n) => format!("[{n}]"),
                })
                .collect();
            match steps.is_empty() {
                true => self.expr(value),
                false => format!("{steps} = {}", self.expr(value)),
            }
        };
        let parts: Vec<_> = initial.parts.iter().map(part).collect();
        let parts = parts.join(", ");
        if initial.whole { format!("{{{parts}}}") } else { parts }
    }

    pub fn globals(&self) -> String {
        let global = |global: &fencewright_c::typed::tree::Variable| {
            let own = if global.thread_local { "thread " } else { "" };
            let initial = global
                .initial
                .as_ref()
                .map_or(String::new(), |initial| format!(" = {}", self.initial(initial)));
            format!("{own}{}: {}{initial}", global.name, self.ty(&global.ty))
        };
        self.unit.globals.iter().map(global).collect::<Vec<_>>().join("\n")
    }

    pub fn block(&self, block: &Block) -> String {
        block.statements.iter().map(|statement| self.statement(statement)).collect::<Vec<_>>().join(" ")
    }

    fn label(&self, id: fencewright_c::typed::tree::LabelId) -> &str {
        self.function.map_or("?", |function| &function.labels[id.index()].name)
    }

    pub fn statement(&self, statement: &Statement) -> String {
        let expr = |expr: &Expr| self.expr(expr);
        let optional = |expr: &Option<Expr>| expr.as_ref().map_or(String::new(), |expr| self.expr(expr));
        match &statement.kind {
            StatementKind::Empty => ";".into(),
            StatementKind::Expression(value) => format!("{};", expr(value)),
            StatementKind::Declare(id, initial) => {
                let local = self.function.map(|function| &function.locals[id.index()]);
                let (name, ty) = local.map_or(("?", "?".into()), |local| (&*local.name, self.ty(&local.ty)));
                let taken = if local.is_some_and(|local| local.address_taken) { "&" } else { "" };
                let initial =
                    initial.as_ref().map_or(String::new(), |initial| format!(" = {}", self.initial(initial)));
                format!("var {taken}{name}: {ty}{initial};")
            }
            StatementKind::Block(block) => format!("{{ {} }}", self.block(block)),
            StatementKind::If(branches, last) => {
                let branches: Vec<_> =
                    branches.iter().map(|(c, s)| format!("if ({}) {}", expr(c), self.statement(s))).collect();
                let last =
                    last.as_ref().map_or(String::new(), |last| format!(" else {}", self.statement(last)));
                branches.join(" else ") + &last
            }
            StatementKind::While(c, s) => format!("while ({}) {}", expr(c), self.statement(s)),
            StatementKind::DoWhile(s, c) => format!("do {} while ({});", self.statement(s), expr(c)),
            StatementKind::For(first, c, step, s) => {
                let first: Vec<_> = first.iter().map(|first| self.statement(first)).collect();
                format!("for ({} {}; {}) {}", first.join(" "), optional(c), optional(step), self.statement(s))
            }
            StatementKind::Switch(value, s) => format!("switch ({}) {}", expr(value), self.statement(s)),
            StatementKind::Case(low, high, s) if low == high => format!("case {low}: {}", self.statement(s)),
            StatementKind::Case(low, high, s) => format!("case {low} ... {high}: {}", self.statement(s)),
            StatementKind::Default(s) => format!("default: {}", self.statement(s)),
            StatementKind::Label(id, s) => format!("{}: {}", self.label(*id), self.statement(s)),
            StatementKind::Goto(id) => format!("goto {};", self.label(*id)),
            StatementKind::Break => "break;".into(),
            StatementKind::Continue => "continue;".into(),
            StatementKind::Return(None) => "return;".into(),
            StatementKind::Return(Some(value)) => format!("return {};", expr(value)),
            StatementKind::Assembly(assembly) => {
                let outputs: Vec<_> =
                    assembly.outputs.iter().map(|(c, p)| format!("{c} {}", self.place(p))).collect();
                let input = |input: &AssemblyInput| match input {
                    AssemblyInput::Value(value) => expr(value),
                    AssemblyInput::Memory(place) => self.place(place),
                };
                let inputs: Vec<_> =
                    assembly.inputs.iter().map(|(c, operand)| format!("{c} {}", input(operand))).collect();
                format!("asm({:?}: {}: {});", assembly.text, outputs.join(", "), inputs.join(", "))
            }
        }
    }

    pub fn expr(&self, expr: &Expr) -> String {
        let e = |expr: &Expr| self.expr(expr);
        match &expr.kind {
            ExprKind::Constant(value) => match expr.ty.arithmetic() {
                Some(Arithmetic::INT) => value.to_string(),
                _ => format!("{}({value})", self.ty(&expr.ty)),
            },
            ExprKind::Load(place) => self.place(place),
            ExprKind::Address(place) => format!("&{}", self.place(place)),
            ExprKind::Function(id) => self.unit.functions[id.index()].name.to_string(),
            ExprKind::Unknown(name) => format!("extern {name}"),
            ExprKind::Negate(a) => format!("-{}", e(a)),
            ExprKind::Complement(a) => format!("~{}", e(a)),
            ExprKind::Not(a) => format!("!{}", e(a)),
            ExprKind::Binary(op, a, b) => format!("({} {op:?} {})", e(a), e(b)),
            ExprKind::Move(a, b) => format!("move({}, {})", e(a), e(b)),
            ExprKind::Difference(a, b) => format!("difference({}, {})", e(a), e(b)),
            ExprKind::And(a, b) => format!("({} && {})", e(a), e(b)),
            ExprKind::Or(a, b) => format!("({} || {})", e(a), e(b)),
            ExprKind::Convert(a) => format!("{}({})", self.ty(&expr.ty), e(a)),
            ExprKind::Assign(place, value) => format!("{} = {}", self.place(place), e(value)),
            ExprKind::Modify { place, op, left, value, old } => {
                let old = if *old { "old " } else { "" };
                format!("{old}{} {op:?}= {} in {}", self.place(place), e(value), self.ty(left))
            }
            ExprKind::Conditional(a, b, c) => format!("({} ? {} : {})", e(a), e(b), e(c)),
            ExprKind::Otherwise(a, b) => format!("({} ?: {})", e(a), e(b)),
            ExprKind::Comma(a, b) => format!("({}, {})", e(a), e(b)),
            ExprKind::Call(callee, arguments) => {
                let callee = match callee {
                    Callee::Function(id) => self.unit.functions[id.index()].name.to_string(),
                    Callee::Builtin(name) => format!("{name}!"),
                    Callee::Pointer(value) => format!("[{}]", e(value)),
                };
                let arguments: Vec<_> = arguments.iter().map(e).collect();
                format!("{callee}({})", arguments.join(", "))
            }
            ExprKind::Statements(block, value) => {
                let value = value.as_ref().map_or(String::new(), |value| format!(" {}", e(value)));
                format!("({{ {}{value} }})", self.block(block))
            }
            ExprKind::String(id) => self.unit.globals[id.index()].name.to_string(),
        }
    }

    pub fn place(&self, place: &Place) -> String {
        match &place.kind {
            PlaceKind::Local(id) => {
                self.function.map_or("?".into(), |f| f.locals[id.index()].name.to_string())
            }
            PlaceKind::Global(id) => self.unit.globals[id.index()].name.to_string(),
            PlaceKind::Pointed(pointer) => format!("*({})", self.expr(pointer)),
            PlaceKind::Field(inner, n) => match inner.ty.kind {
                TypeKind::Record(id) => {
                    let field = &self.unit.records[id.0 as usize].fields[*n as usize];
                    format!("{}.{}", self.place(inner), field.name)
                }
                _ => "no structure".into(),
            },
            PlaceKind::Element(inner, index) => format!("{}[{}]", self.place(inner), self.expr(index)),
            PlaceKind::Compound(_, initial) => format!("literal {}", self.initial(initial)),
            PlaceKind::Value(value) => format!("value {}", self.expr(value)),
        }
    }
}
