//! Structures and unions: layout (System V ABI for x86-64, 3.1.2), and lookup of members.

use std::rc::Rc;

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::tree::{Field, Record, TypeKind};
use super::{Typer, Typing, types};
use crate::arithmetic::Arithmetic;
use crate::ast::{self, RecordId};
use crate::error::Error;
use crate::token::{Names, Symbol};

/// Maximum depth to which structures are nested as members; later passes process them recursively.
const DEEPEST_RECORD: u32 = 32;

/// The state of the layout of a structure or union.
pub(super) enum Layout {
    /// Not computed yet.
    Unknown,
    /// Being computed.
    Started,
    /// The layout has an error.
    Failed(Error),
    /// Computed: the path to each member by name (through anonymous structures if necessary), and the depth to which structures are nested as
    /// members.
    Done(FxHashMap<Symbol, Rc<[u32]>>, u32),
}

/// All structures and unions of a text, still without layouts and members. A structure without a tag is named after the first `typedef` for it.
pub(super) fn unknown(unit: &ast::Unit, names: &Names) -> Vec<Record> {
    let mut named: FxHashMap<RecordId, Symbol> = FxHashMap::default();
    let declarations = unit.items.iter().filter_map(|item| match item {
        ast::Item::Declaration(declaration) => Some(declaration),
        ast::Item::Function(_) => None,
    });
    for (name, ty) in declarations.flat_map(|declaration| &declaration.types) {
        if let ast::TypeKind::Record(id) = ty.kind {
            named.entry(id).or_insert(name.symbol);
        }
    }
    let record = |(number, record): (usize, &ast::Record)| {
        let name = record.tag.or_else(|| named.get(&RecordId(number as u32)).copied());
        Record {
            name: name
                .map_or_else(|| format!("anonymous{number}").into(), |name| names.spelling(name).clone()),
            union: record.union,
            fields: Vec::new(),
            complete: false,
            size: 0,
            align: 1,
            span: record.span,
        }
    };
    unit.records.iter().enumerate().map(record).collect()
}

/// The properties of a member that determine its offset.
struct Member {
    bits: Option<u32>,
    size: u64,
    align: u64,
    packed: bool,
    named: bool,
}

/// The layout of the members so far: the next free bit, the size in bytes, and the strictest alignment in bytes.
struct Place {
    bits: u64,
    size: u64,
    align: u64,
}

impl Typer<'_> {
    /// Computes the layout of a structure or union unless that has been done; an error if the type is incomplete or contains itself.
    pub(super) fn complete(&mut self, id: RecordId, at: Span) -> Typing<()> {
        match &self.layouts[id.0 as usize] {
            Layout::Done(..) => return Ok(()),
            Layout::Failed(error) => return Err(error.clone()),
            Layout::Unknown if self.unit.records[id.0 as usize].fields.is_some() => {}
            _ => {
                let name = &self.records[id.0 as usize].name;
                let error = Error::new(at, format!("the members of `{name}` are not known here"))
                    .help("define it before its size or its members are used, or use a pointer to it");
                let contains_itself = matches!(self.layouts[id.0 as usize], Layout::Started);
                return Err(if contains_itself { error.always() } else { error });
            }
        }
        self.layouts[id.0 as usize] = Layout::Started;
        let laid_out = self.nested(at, |typer| typer.lay_out(id, at));
        if let Err(error) = &laid_out {
            self.layouts[id.0 as usize] = Layout::Failed(error.clone());
        }
        laid_out
    }

    fn lay_out(&mut self, id: RecordId, at: Span) -> Typing<()> {
        let unit = self.unit;
        let parsed = &unit.records[id.0 as usize];
        let parsed_fields = parsed.fields.as_deref().unwrap_or_default();
        let mut place = Place { bits: 0, size: 0, align: 1 };
        let mut fields = Vec::new();
        let mut members: FxHashMap<Symbol, Rc<[u32]>> = FxHashMap::default();
        let mut deepest = 0;
        for (number, field) in parsed_fields.iter().enumerate() {
            let span = field.name.map_or(field.span, |name| name.span);
            let ty = self.ty(&field.ty, span)?;
            let open = matches!(field.ty.kind, ast::TypeKind::Array(_, None));
            let last = number + 1 == parsed_fields.len();
            if ty.is_void()
                || matches!(ty.kind, TypeKind::Function(_))
                || open && (!last || parsed.union || fields.is_empty())
            {
                return Err(Error::new(span, "a member cannot have this type")
                    .help("use a pointer; an array of open length stands at the end of a structure"));
            }
            let packed = parsed.attributes.packed || field.attributes.packed;
            let (size, natural) = (self.size(&ty, span)?, self.align(&ty, span)?);
            let align = self.alignment(&field.attributes, if packed { 1 } else { natural }, span)?;
            deepest = deepest.max(self.record_depth(&ty));
            let bits = match &field.bits {
                None => None,
                Some(width) => Some(self.width(width, &ty, field.name.is_some())?),
            };
            let member = Member { bits, size, align, packed, named: field.name.is_some() };
            let offset = place.put(&member, parsed.union);
            let offset = offset.filter(|_| place.size <= 1 << 40).ok_or_else(|| types::too_large(span))?;
            let step = fields.len() as u32;
            let name = match (&field.name, &ty.kind) {
                (Some(name), _) => {
                    if members.insert(name.symbol, [step].into()).is_some() {
                        let name = self.spelled(name.symbol);
                        return Err(Error::new(span, format!("there are two members `{name}`"))
                            .always()
                            .help("give one of them another name"));
                    }
                    self.spelled(name.symbol)
                }
                (None, TypeKind::Record(inner)) if bits.is_none() => {
                    let Layout::Done(lent, _) = &self.layouts[inner.0 as usize] else { continue };
                    for (&symbol, path) in lent {
                        let path: Rc<[u32]> = std::iter::once(step).chain(path.iter().copied()).collect();
                        members.entry(symbol).or_insert(path);
                    }
                    format!("anonymous{step}").into()
                }
                // Unnamed bit-fields are only padding.
                (None, _) => continue,
            };
            fields.push(Field { name, ty, offset, bits, span });
        }
        if deepest >= DEEPEST_RECORD {
            return Err(Error::new(at, format!("structures are nested more than {DEEPEST_RECORD} deep"))
                .help("use pointers instead"));
        }
        place.align = self.alignment(&parsed.attributes, place.align, at)?;
        let record = &mut self.records[id.0 as usize];
        record.align = place.align;
        record.size = place.size.div_ceil(place.align) * place.align;
        record.fields = fields;
        record.complete = true;
        self.layouts[id.0 as usize] = Layout::Done(members, deepest + 1);
        Ok(())
    }

    /// The alignment in bytes: the greatest of the natural one and those that attributes request. An attribute cannot lower it.
    fn alignment(&mut self, attributes: &ast::Attributes, natural: u64, at: Span) -> Typing<u64> {
        let mut strictest = natural;
        for wanted in &attributes.aligned {
            let (value, at) = match &**wanted {
                ast::Alignment::Value(expr) => (self.constant(expr)?, expr.span),
                ast::Alignment::Type(ty) => {
                    let ty = self.ty(ty, at)?;
                    (self.align(&ty, at)?.into(), at)
                }
                ast::Alignment::Most => (16, at),
            };
            let value = u64::try_from(value).ok().filter(|&value| value <= 1 << 28);
            match value {
                Some(0) => {}
                Some(value) if value.is_power_of_two() => strictest = strictest.max(value),
                _ => {
                    return Err(Error::new(at, "this is no alignment").help("an alignment is a power of two"));
                }
            }
        }
        Ok(strictest)
    }

    /// Warns about types with an alignment of their own, which is not modelled.
    pub(super) fn aligned_types(&mut self, declaration: &ast::Declaration) {
        for (name, attributes) in &declaration.aligned_types {
            let ty = declaration.types.iter().find(|(other, _)| other == name).map(|(_, ty)| ty);
            let natural =
                ty.and_then(|ty| self.ty(ty, name.span).and_then(|ty| self.align(&ty, name.span)).ok());
            let wanted = self.alignment(attributes, 1, name.span).ok();
            if natural != wanted || wanted.is_none() {
                let name_of_type = self.spelled(name.symbol);
                let text = format!(
                    "the alignment of the type `{name_of_type}` is ignored: sizes and offsets of structures may be others than in the compiled program"
                );
                self.warn(name.span, text);
            }
        }
    }

    /// The depth to which structures are nested in a type; 0 if the type contains none.
    fn record_depth(&self, ty: &super::tree::Type) -> u32 {
        match &ty.kind {
            TypeKind::Array(element, _) => self.record_depth(element),
            TypeKind::Record(id) => match &self.layouts[id.0 as usize] {
                Layout::Done(_, depth) => *depth,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// The width of a bit-field in bits; an error if its type is no integer type with at least this many bits.
    fn width(&mut self, width: &ast::Expr, ty: &super::tree::Type, named: bool) -> Typing<u32> {
        let value = self.constant(width)?;
        let most = match ty.arithmetic() {
            Some(Arithmetic::Bool) => 1,
            Some(Arithmetic::Integer(integer)) => integer.bits(),
            None => return Err(Error::new(width.span, "a bit-field is an integer")),
        };
        match u32::try_from(value) {
            Ok(bits) if bits <= most && (bits > 0 || !named) => Ok(bits),
            _ => Err(Error::new(width.span, format!("a bit-field of {value} bits"))
                .help(format!("its type has {most}"))),
        }
    }

    /// The member numbers that lead to a member, through anonymous structures if necessary.
    pub(super) fn member(&mut self, id: RecordId, name: &ast::Name) -> Typing<Rc<[u32]>> {
        self.complete(id, name.span)?;
        let Layout::Done(members, _) = &self.layouts[id.0 as usize] else {
            return Err(Error::new(name.span, "its members are not known here"));
        };
        if let Some(path) = members.get(&name.symbol) {
            return Ok(path.clone());
        }
        let wanted = self.spelled(name.symbol);
        let known = members.keys().map(|&member| &**self.names.spelling(member));
        let nearest = fencewright_text::nearest(&wanted, known);
        let record = &self.records[id.0 as usize];
        let error = Error::new(name.span, format!("`{}` has no member `{wanted}`", record.name));
        Err(match nearest {
            Some(other) => error.help(format!("did you mean `{other}`?")),
            None => {
                let fields: Vec<&str> = record.fields.iter().take(8).map(|field| &*field.name).collect();
                error.help(format!("its members are {}", fields.join(", ")))
            }
        })
    }
}

impl Place {
    /// Places the next member and returns its offset in bytes; `None` if the size overflows. A bit-field does not cross a multiple of its type's
    /// size, unless it is packed.
    fn put(&mut self, member: &Member, union: bool) -> Option<u64> {
        if union {
            self.bits = 0;
        }
        let start = match member.bits {
            None | Some(0) => self.bits.checked_next_multiple_of(member.align * 8)?,
            Some(width) => {
                let unit = member.size * 8;
                match !member.packed && self.bits % unit + u64::from(width) > unit {
                    true => self.bits.checked_next_multiple_of(unit)?,
                    false => self.bits,
                }
            }
        };
        self.bits = start.checked_add(member.bits.map_or(member.size.checked_mul(8)?, u64::from))?;
        self.size = self.size.max(self.bits.div_ceil(8));
        if member.named || member.bits.is_none() {
            self.align = self.align.max(member.align);
        }
        Some(start / 8)
    }
}
