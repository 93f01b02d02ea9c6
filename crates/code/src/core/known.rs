//! Values and places that are the same in every execution.

use fencewright_c::typed::tree::Step;

use super::{Base, Known, Location, Projection, Value};

/// The value, if it is a constant: a number, a function, or the address of a fixed part of an object.
pub fn known(value: &Value) -> Option<Known> {
    match value {
        Value::Number(number) => Some(Known::Number(*number)),
        Value::Function(function) => Some(Known::Function(*function)),
        Value::Address(location) => {
            let Base::Object(object) = location.base else { return None };
            Some(Known::Address(object, way(location)?))
        }
        _ => None,
    }
}

/// The steps from a base to a place, if all array indices among them are constants.
pub fn way(location: &Location) -> Option<Vec<Step>> {
    let step = |projection: &Projection| match projection {
        Projection::Field(field) => Some(Step::Field(*field)),
        Projection::Element(Value::Number(number), _) => u64::try_from(*number).ok().map(Step::Element),
        Projection::Element(..) => None,
    };
    location.path.iter().map(step).collect()
}
