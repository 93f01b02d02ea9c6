//! Calls (C11 6.5.2.2): of functions that the program declares, of functions known by name, and through pointers.

use std::rc::Rc;

use super::builtins::{self, Signature, Word};
use super::conversions::convert;
use super::expressions::Operand;
use super::tree::{Callee, Expr, ExprKind, FunctionType, Place, Type, TypeKind};
use super::types::LONG;
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::ast;
use crate::error::Error;
use crate::token::Symbol;

impl Typer<'_> {
    /// Resolves the callee and the arguments of a call.
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        arguments: &[ast::Expr],
        expr: &ast::Expr,
    ) -> Typing<Operand> {
        if let ast::ExprKind::Name(name) = callee.kind
            && self.look_up(name).is_none()
            && !self.bodies.contains_key(&name)
        {
            return self.call_by_name(name, callee, arguments, expr);
        }
        let (callee, ty) = match &callee.kind {
            // Before C99, a call could precede the declaration of the function.
            ast::ExprKind::Name(name) if self.look_up(*name).is_none() => {
                let spelled = self.spelled(*name);
                self.warn(callee.span, format!("`{spelled}` is called before it is declared"));
                let ty = self.known_function(*name)?;
                let id = self.bodies[name].0;
                self.mention(Some(id));
                (
                    Callee::Function(id),
                    ty.map(|(ty, _)| ty).ok_or_else(|| self.undeclared(*name, callee.span))?,
                )
            }
            _ => match self.operand(callee)? {
                Operand::Function(_, Some(id), ty) => (Callee::Function(id), ty),
                Operand::Function(name, None, ty) => (Callee::Builtin(name), ty),
                operand => {
                    let pointer = self.loaded(operand, callee.span, callee.expansion)?;
                    let ty = match pointer.ty.pointee().map(|to| &to.kind) {
                        Some(TypeKind::Function(ty)) => ty.clone(),
                        _ => {
                            return Err(Error::new(
                                callee.span,
                                format!("`{}` is no function", self.said(&pointer.ty)),
                            )
                            .help("only functions and pointers to functions can be called"));
                        }
                    };
                    let callee = match pointer.kind {
                        ExprKind::Function(id) => Callee::Function(id),
                        ExprKind::Unknown(name) => Callee::Builtin(name),
                        _ => Callee::Pointer(pointer.into()),
                    };
                    (callee, ty)
                }
            },
        };
        let arguments = self.arguments(&ty, arguments, expr)?;
        let result = ty.result.clone();
        Ok(Operand::Value(self.made(ExprKind::Call(callee, arguments), result, expr)))
    }

    /// The arguments, converted to the types of the parameters; an error if their number is wrong.
    fn arguments(
        &mut self,
        ty: &Rc<FunctionType>,
        arguments: &[ast::Expr],
        expr: &ast::Expr,
    ) -> Typing<Vec<Expr>> {
        let parameters = ty.parameters.as_deref();
        if let Some(parameters) = parameters {
            count_fits(parameters.len(), ty.variadic, arguments.len(), expr)?;
        }
        let mut typed = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            let value = self.value(argument)?;
            typed.push(match parameters.and_then(|parameters| parameters.get(number)) {
                Some(parameter) => self.implicit(value, parameter, "an argument")?,
                None => self.unguided(value)?,
            });
        }
        Ok(typed)
    }

    /// A call of a function that is not declared: a builtin, a function in the table of [`builtins`], or else an unknown function, with a warning.
    fn call_by_name(
        &mut self,
        name: Symbol,
        callee: &ast::Expr,
        arguments: &[ast::Expr],
        expr: &ast::Expr,
    ) -> Typing<Operand> {
        let spelled = self.spelled(name);
        if let Some(operand) = self.of_the_compiler(&spelled, arguments, expr)? {
            return Ok(operand);
        }
        if let Some(signature) = builtins::signature(&spelled) {
            return self.known_call(spelled, &signature, arguments, expr).map(Operand::Value);
        }
        let nearest = fencewright_text::nearest(&spelled, builtins::names());
        let message = match nearest {
            Some(other) => format!("`{spelled}` is not declared; did you mean `{other}`?"),
            None => format!("`{spelled}` is not declared"),
        };
        self.warn(callee.span, message);
        let ty = Rc::new(FunctionType { result: Type::int(), parameters: None, variadic: false });
        let arguments = self.arguments(&ty, arguments, expr)?;
        Ok(Operand::Value(self.made(ExprKind::Call(Callee::Builtin(spelled), arguments), Type::int(), expr)))
    }

    /// Handles builtins and macros that are not ordinary functions, such as `__builtin_choose_expr` and `READ_ONCE`; `None` for other names.
    fn of_the_compiler(
        &mut self,
        name: &str,
        arguments: &[ast::Expr],
        expr: &ast::Expr,
    ) -> Typing<Option<Operand>> {
        let value = match (name, arguments) {
            ("__builtin_expect", [value, _]) | ("__builtin_expect_with_probability", [value, _, _]) => {
                let value = self.value(value)?;
                convert(self.promoted(value)?, &LONG.into())
            }
            ("likely" | "unlikely", [value]) => {
                let value = self.value(value)?;
                let value = self.scalar(value)?;
                convert(convert(value, &Arithmetic::Bool.into()), &LONG.into())
            }
            ("__builtin_constant_p", [value]) => {
                let value = self.value(value)?;
                let known = self.evaluated(&value).is_some() || matches!(value.kind, ExprKind::String(_));
                self.made(ExprKind::Constant(known.into()), Arithmetic::INT, expr)
            }
            ("__atomic_always_lock_free", [size, _]) => {
                let lock_free = matches!(self.constant(size)?, 1 | 2 | 4 | 8);
                self.made(ExprKind::Constant(lock_free.into()), Arithmetic::Bool, expr)
            }
            ("__builtin_choose_expr", [condition, a, b]) => {
                let chosen = if self.constant(condition)? != 0 { a } else { b };
                return self.operand(chosen).map(Some);
            }
            ("READ_ONCE" | "ACCESS_ONCE" | "rcu_dereference", [place]) => {
                let place = self.once(place)?;
                return Ok(Some(Operand::Place(place)));
            }
            ("WRITE_ONCE", [place, value]) => {
                let place = self.once(place)?;
                self.writable(&place)?;
                let value = self.value(value)?;
                let value = self.implicit(value, &place.ty, "an assignment to a variable")?;
                let ty = place.ty.unqualified();
                self.made(ExprKind::Assign(place.into(), value.into()), ty, expr)
            }
            ("rcu_assign_pointer", [place, value]) => self.assigned_pointer(place, value, expr)?,
            ("__builtin_va_start" | "va_start" | "va_copy" | "va_end", _) => {
                return Err(Error::new(expr.span, "arguments without a type are not supported")
                    .help("write a function for each number of arguments that occurs"));
            }
            (
                "setjmp" | "_setjmp" | "sigsetjmp" | "longjmp" | "__builtin_setjmp" | "__builtin_longjmp",
                _,
            ) => {
                return Err(Error::new(expr.span, "jumps out of functions are not supported")
                    .help("return a value that selects where to continue"));
            }
            _ => return Ok(None),
        };
        Ok(Some(Operand::Value(Expr { span: expr.span, expansion: expr.expansion, ..value })))
    }

    /// `rcu_assign_pointer`: a release store. Linux stores a constant null pointer with `WRITE_ONCE` instead, because no reader follows it.
    fn assigned_pointer(&mut self, place: &ast::Expr, value: &ast::Expr, expr: &ast::Expr) -> Typing<Expr> {
        let place = self.place(place, "the target of an assignment")?;
        let ty = place.ty.unqualified();
        let value = self.value(value)?;
        let value = self.implicit(value, &ty, "an assignment to a variable")?;
        if self.evaluated(&value) == Some(0) {
            self.writable(&place)?;
            let once = Type { atomic: false, volatile: true, ..place.ty };
            let place = Place { ty: once, ..place };
            return Ok(self.made(ExprKind::Assign(place.into(), value.into()), ty, expr));
        }
        let address = self.address(place, expr.span, expr.expansion)?;
        let callee = Callee::Builtin("smp_store_release".into());
        Ok(self.made(ExprKind::Call(callee, vec![address, value]), Type::void(), expr))
    }

    /// The operand of `READ_ONCE` and the like: a place with a `volatile`, non-atomic type, so that each access is performed exactly once.
    fn once(&mut self, expr: &ast::Expr) -> Typing<Place> {
        let place = self.place(expr, "what is accessed")?;
        let ty = Type { atomic: false, volatile: true, ..place.ty };
        Ok(Place { ty, ..place })
    }

    /// A call of a function in the table of [`builtins`].
    fn known_call(
        &mut self,
        name: Rc<str>,
        signature: &Signature,
        arguments: &[ast::Expr],
        expr: &ast::Expr,
    ) -> Typing<Expr> {
        count_fits(signature.parameters.len(), signature.variadic, arguments.len(), expr)?;
        let mut access: Option<Type> = None;
        let mut typed: Vec<Expr> = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            let word = signature.parameters.get(number);
            let value = match word {
                Some(Word::Place) => {
                    let place = self.place(argument, "the first argument")?;
                    access = Some(place.ty.unqualified());
                    self.address(place, argument.span, argument.expansion)?
                }
                _ => self.value(argument)?,
            };
            typed.push(match (word, &access) {
                (Some(Word::Place), _) => value,
                (Some(Word::Pointer), None) => {
                    access = Some(self.accessed(&value, &name)?);
                    value
                }
                (Some(Word::Pointer), Some(ty)) => {
                    let ty = ty.clone().pointer();
                    self.implicit(value, &ty, "an argument")?
                }
                (Some(Word::Number), Some(ty)) if ty.arithmetic().is_none() => {
                    return Err(Error::new(
                        argument.span,
                        format!("`{name}` of a value of type `{}`", self.said(ty)),
                    )
                    .help("compute with integers (`uintptr_t`), or use a compare-and-exchange"));
                }
                (Some(Word::Value | Word::Number), Some(ty)) => {
                    let ty = ty.clone();
                    self.implicit(value, &ty, "an argument")?
                }
                (Some(Word::Known(ty)), _) => self.implicit(value, ty, "an argument")?,
                (Some(Word::AnyPointer), _) if value.ty.pointee().is_none() => {
                    return Err(Error::new(argument.span, format!("`{name}` expects a pointer here"))
                        .help("write `&` before the variable"));
                }
                (Some(Word::AnyPointer), _) => value,
                _ => self.unguided(value)?,
            });
        }
        let result = match (&signature.result, access) {
            (Word::Known(ty), _) => ty.clone(),
            (Word::Any, _) => typed.first().map_or(Type::int(), |first| first.ty.clone()),
            (_, Some(ty)) => ty,
            _ => Type::int(),
        };
        Ok(self.made(ExprKind::Call(Callee::Builtin(name), typed), result, expr))
    }

    /// The type of the object that a generic function accesses through its pointer argument.
    fn accessed(&mut self, pointer: &Expr, name: &str) -> Typing<Type> {
        let Some(to) = pointer.ty.pointee().cloned() else {
            return Err(Error::new(
                pointer.span,
                format!("`{name}` expects a pointer here, and this is `{}`", self.said(&pointer.ty)),
            )
            .help("write `&` before the variable"));
        };
        match to.kind {
            TypeKind::Integer(_) | TypeKind::Pointer(_) => Ok(to.unqualified()),
            TypeKind::Record(id) => {
                self.complete(id, pointer.span)?;
                Ok(to.unqualified())
            }
            _ => Err(Error::new(pointer.span, format!("`{name}` cannot access `{}`", self.said(&to)))
                .help("use a pointer to an integer or to a pointer")),
        }
    }
}

/// Checks the number of arguments.
fn count_fits(parameters: usize, variadic: bool, arguments: usize, expr: &ast::Expr) -> Typing<()> {
    if arguments == parameters || variadic && arguments > parameters {
        return Ok(());
    }
    let least = if variadic { "at least " } else { "" };
    let plural = if parameters == 1 { "" } else { "s" };
    Err(Error::new(expr.span, format!("{least}{parameters} argument{plural} wanted, {arguments} given"))
        .help("look at the declaration of the function"))
}
