//! Attributes of variables and groups.

use super::dimensions::is_internal;
use super::parse::Value;
use crate::format::hierarchy::Attributes;

/// Returns the attributes that can be read, without those of NetCDF-4's own conventions.
pub(super) fn attributes(all: &[(String, Value)]) -> Attributes {
    let plain =
        all.iter().filter(|(name, _)| !is_internal(name)).filter_map(|(name, value)| match value {
            Value::Plain(attribute) => Some((name.clone(), attribute.clone())),
            Value::Objects(_) => None,
            Value::Other(kind) => {
                log::debug!("attribute {name:?} is left out: its value is of {kind}");
                None
            }
        });
    plain.collect()
}
