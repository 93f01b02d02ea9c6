//! The arguments of `main`. The model starts the program without command-line arguments.

use std::rc::Rc;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::typed::tree::{FunctionId, Step, Type, TypeKind};
use fencewright_code::core::{Known, Object, ObjectId, Origin, Purpose};
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

use super::super::{Elaborator, Result};
use super::Parameter;

impl Elaborator<'_> {
    /// The values of `argc` and `argv`; empty if `main` has no parameters.
    pub(super) fn command_line(&mut self, main: FunctionId, span: Span) -> Result<Vec<Parameter>> {
        let main = &self.unit.functions[main.index()];
        let kinds: Vec<&TypeKind> =
            main.parameters.iter().map(|local| &main.locals[local.index()].ty.kind).collect();
        let text = match kinds.as_slice() {
            [] => return Ok(Vec::new()),
            [TypeKind::Integer(Arithmetic::INT), TypeKind::Pointer(text)] => text,
            _ => {
                let message = "`main` has parameters, and their values are not known";
                return self.error(span, message, "write `int main(void)`, and choose the values there");
            }
        };
        let TypeKind::Pointer(character) = &text.kind else {
            let message = "the second parameter of `main` is not an array of strings";
            return self.error(span, message, "write `int main(int argc, char **argv)`");
        };
        self.warn(span, "`main` is called without arguments: `argc` is 1, and `argv[0]` an empty string");
        let name = self.given(character, Vec::new(), span);
        let two = Type { kind: TypeKind::Array(Rc::clone(text), 2), atomic: false, volatile: false };
        let first = (vec![Step::Element(0)], Known::Address(name, Vec::new()));
        let texts = self.given(&two, vec![first], span);
        let [name, texts] = [Known::Address(name, Vec::new()), Known::Address(texts, vec![Step::Element(0)])]
            .map(|known| self.known_operand(&known, (0, 0)).expect("addresses are defined"));
        if let (Some(texts), Some(name)) = (texts.points, name.points) {
            let pointee = self.nodes.pointee(texts);
            self.unify(pointee, name, span)?;
        }
        Ok(vec![Parameter::Known(Operand::number(1)), Parameter::Known(texts)])
    }

    /// A new global object with these initial values; all other parts are zero.
    fn given(&mut self, ty: &Type, initial: Vec<(Vec<Step>, Known)>, span: Span) -> ObjectId {
        let node = self.nodes.object(ty, span);
        let facts = initial.clone();
        let object = Object {
            name: "argv".into(),
            ty: Some(ty.clone()),
            node,
            origin: Origin::Global,
            initial,
            undefined: false,
            purpose: Purpose::Program,
            span,
        };
        let object = self.object(object);
        for (way, known) in facts {
            if let Known::Address(target, _) = known {
                self.kept_address(target);
            }
            if let Some(contents) = self.writer.env.objects.get_mut(&object) {
                contents.parts.insert(way, Some(super::super::env::Fact::of(known)));
            }
        }
        object
    }
}
