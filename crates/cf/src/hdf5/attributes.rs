//! Attributes of variables and groups.

use super::dimensions::is_internal;
use super::parse::Value;
use crate::hierarchy::Attributes;
use gridfusion_core::{Error, Result};

/// The attributes without which values would be others.
const MEANING: [&str; 10] = [
    "_FillValue",
    "_Unsigned",
    "add_offset",
    "calendar",
    "missing_value",
    "scale_factor",
    "units",
    "valid_max",
    "valid_min",
    "valid_range",
];

/// Fails if an attribute cannot be read without which values would be others.
pub(super) fn check_readable(all: &[(String, Value)]) -> Result<()> {
    let failed = all.iter().find_map(|(name, value)| match value {
        Value::Unreadable(error) if MEANING.contains(&name.as_str()) => Some((name, error)),
        _ => None,
    });
    failed.map_or(Ok(()), |(name, error): (&String, &Error)| {
        Err(error.clone().about(&format!("attribute {name:?}")))
    })
}

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
            Value::Unreadable(error) => {
                log::warn!("attribute {name:?} is left out: {error}");
                None
            }
        });
    plain.collect()
}
