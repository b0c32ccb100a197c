//! Labels in other units of time, for an append whose times fall between the units of the store.
//!
//! ```text
//!   time/c/0          days since 2000-01-01                   stay, for readers that know the old metadata
//!   time/c.0          all labels in hours since 2000-01-01
//!   zarr.json         lengths, units, names of objects        ◀ published: all at once
//!   time/zarr.json    the same, for readers that do not look at the root
//! ```
//!
//! If labels kept the names of their objects, readers would see them with the units of the others until both are there. Without consolidated
//! metadata, `time/zarr.json` tells of units and names first, and all lengths follow.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, TimeUnit};
use bytes::Bytes;
use gridfusion_core::array::{NumberColumn, TimeUnits, failed_to};
use gridfusion_core::{Error, Result};
use serde_json::{Value, json};

use super::change::{Object, OldCells};
use super::target::ZarrTarget;
use super::variable::{TargetVariable, plain};
use crate::document_text::with_value;

/// The units of times, the coarsest first.
const UNITS: [&str; 7] =
    ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", NANOSECONDS];

/// xarray reads these in the calendars of its own times only.
const NANOSECONDS: &str = "nanoseconds";
const CALENDARS: [&str; 3] = ["standard", "gregorian", "proleptic_gregorian"];

/// Attributes with numbers of times, or with the name of an array of such.
const OF_NUMBERS: [&str; 8] = [
    "actual_range",
    "add_offset",
    "bounds",
    "climatology",
    "scale_factor",
    "valid_max",
    "valid_min",
    "valid_range",
];

/// The attribute, and the member of an array's document, that change together.
const CHANGED: [&[&str]; 2] = [&["attributes", "units"], &["chunk_key_encoding"]];

/// The labels of a dimension in other units.
#[derive(Debug)]
pub(super) struct FinerTimes {
    pub(super) axis: usize,
    /// The column of the numbers.
    column: NumberColumn,
    /// The numbers of the labels that are there.
    there: ArrayRef,
    /// The units, and the names of objects, as the metadata has them.
    values: [Value; 2],
    keys: Keys,
}

/// The names of the objects of labels. Each change takes the next, so that old objects stay until the next change but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// `time/c/0`
    Slash,
    /// `time/c.0`
    Dot,
    /// `time/0`
    Version2,
}

impl Keys {
    /// Returns those that follow the ones of an array.
    fn after(variable: &TargetVariable) -> Self {
        let name = variable.object(&[0]);
        match name.strip_prefix(variable.name()) {
            Some("/c/0") => Self::Dot,
            Some("/c.0") => Self::Version2,
            _ => Self::Slash,
        }
    }

    fn encoding(self) -> Value {
        let (name, separator) = match self {
            Self::Slash => ("default", "/"),
            Self::Dot => ("default", "."),
            Self::Version2 => ("v2", "."),
        };
        json!({"name": name, "configuration": {"separator": separator}})
    }

    fn object(self, array: &str, number: usize) -> String {
        match self {
            Self::Slash => format!("{array}/c/{number}"),
            Self::Dot => format!("{array}/c.{number}"),
            Self::Version2 => format!("{array}/{number}"),
        }
    }
}

impl ZarrTarget {
    /// Returns the labels of a dimension in the coarsest units that tell new ones, too; `None` if its own units do, or no units.
    pub(super) fn finer(&self, axis: usize, new: &ArrayRef) -> Result<Option<FinerTimes>> {
        let variable = &self.labels[axis];
        let Some(new) = times(new)?.filter(|_| times_of(&variable.shown_type())) else {
            return Ok(None);
        };
        if variable.stored(&new, |_| String::new()).is_ok() {
            return Ok(None);
        }
        let there = &self.dimensions[axis].labels;
        let Some((units, column, there)) = finer_units(variable, there, &new)? else {
            return Ok(None);
        };
        let keys = Keys::after(variable);
        let values = [Value::from(units), keys.encoding()];
        Ok(Some(FinerTimes { axis, column, there, values, keys }))
    }

    /// Fails if other units would make attributes of labels untrue.
    pub(super) fn check_units(&self, axis: usize) -> Result<()> {
        let variable = &self.labels[axis];
        match OF_NUMBERS.iter().find(|name| variable.attribute(name).is_some()) {
            Some(attribute) => Err(Error::unsupported(format!(
                "other units for \"{}\", because its attribute {attribute} counts in the old ones",
                variable.name()
            ))),
            None => Ok(()),
        }
    }

    /// Tells how a label would be taken that the units of a dimension do not tell, if that is possible.
    pub(super) fn with_hint(&self, error: Error, axis: usize, new: &ArrayRef) -> Error {
        let is_possible = !self.refines_times
            && self.check_units(axis).is_ok()
            && matches!(self.finer(axis, new), Ok(Some(_)));
        match is_possible {
            true => error.followed_by("the option 'times' of COPY may be 'rewrite'"),
            false => error,
        }
    }

    /// Returns an array's own document with the units and the names of objects that the root has.
    pub(super) fn with_units_of_root(&self, name: &str, own: &Bytes) -> Result<Bytes> {
        let value = |path: &[&str]| {
            path.iter().fold(&self.metadata[name], |value, member| &value[member]).clone()
        };
        with_values(own, &[], &CHANGED.map(value))
    }
}

impl FinerTimes {
    /// Returns labels in the type that queries show in these units.
    pub(super) fn shown(&self, labels: &ArrayRef) -> Result<ArrayRef> {
        cast(&plain(labels)?, &self.column.data_type()).map_err(failed_to("compare times"))
    }

    /// Returns the document of the labels, which is at `path`, with these units.
    pub(super) fn document(&self, document: &Bytes, path: &[&str]) -> Result<Bytes> {
        with_values(document, path, &self.values)
    }

    /// Returns the objects of all labels, of which these are new. `cells` tells what becomes of them if the append fails.
    ///
    /// # Errors
    /// `Usage` for a label that these units do not tell.
    pub(super) fn objects(
        &self,
        variable: &TargetVariable,
        new: &ArrayRef,
        cells: OldCells,
    ) -> Result<Vec<Object>> {
        let Some(new) = exact(&self.column, new) else {
            let units = &self.values[0];
            return Err(Error::usage(format!("labels that are no {units}")));
        };
        let all = concat(&[self.there.as_ref(), new.as_ref()]);
        let all = all.map_err(failed_to("put labels together"))?;
        let edge = variable.object_shape()[0] as usize;
        let object = |(number, start): (usize, usize)| {
            let Range { start, end } = start..(start + edge).min(all.len());
            let bytes =
                variable.object_bytes(&all.slice(start, end - start), &[(end - start) as u64])?;
            let name = self.keys.object(variable.name(), number).into();
            Ok(Object { name, bytes, cells })
        };
        (0..all.len()).step_by(edge).enumerate().map(object).collect()
    }

    /// The bytes of the numbers, and of their objects.
    pub(super) fn memory(&self) -> u64 {
        4 * self.there.get_array_memory_size() as u64
    }
}

/// Returns the document of an array, which is at `path`, with other units and names of objects.
fn with_values(document: &Bytes, path: &[&str], values: &[Value; 2]) -> Result<Bytes> {
    CHANGED.iter().zip(values).try_fold(document.clone(), |document, (member, value)| {
        with_value(&document, &[path, member].concat(), value)
    })
}

fn times_of(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..))
}

/// Returns times as timestamps; `None` for other values.
fn times(values: &ArrayRef) -> Result<Option<ArrayRef>> {
    let values = plain(values)?;
    Ok(match values.data_type() {
        DataType::Timestamp(..) => Some(values),
        DataType::Date32 | DataType::Date64 => {
            let seconds = DataType::Timestamp(TimeUnit::Second, None);
            Some(cast(&values, &seconds).map_err(failed_to("compare times"))?)
        }
        _ => None,
    })
}

/// Returns the coarsest units with the reference of a variable that tell all labels, and the column in them. Also returns the numbers of
/// the labels that are there.
fn finer_units(
    variable: &TargetVariable,
    there: &ArrayRef,
    new: &ArrayRef,
) -> Result<Option<(String, NumberColumn, ArrayRef)>> {
    let mut attributes: BTreeMap<String, String> = ["units", "calendar"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), variable.attribute(name)?)))
        .collect();
    let old = attributes.get("units").cloned().unwrap_or_default();
    let calendar = attributes.get("calendar").map_or(CALENDARS[0], String::as_str).to_lowercase();
    let Some(since) = old.to_ascii_lowercase().find("since") else { return Ok(None) };
    for unit in UNITS {
        if unit == NANOSECONDS && !CALENDARS.contains(&calendar.as_str()) {
            break;
        }
        let units = format!("{unit} {}", &old[since..]);
        attributes.insert("units".to_owned(), units.clone());
        let Ok(Some(times)) = TimeUnits::from_attributes(&attributes) else { continue };
        let Some(column) = variable.in_units(times) else { return Ok(None) };
        if exact(&column, new).is_some()
            && let Some(stored) = exact(&column, there)
        {
            return Ok(Some((units, column, stored)));
        }
    }
    Ok(None)
}

/// Returns the stored numbers of times; `None` if they would be read as others, or as none.
fn exact(column: &NumberColumn, times: &ArrayRef) -> Option<ArrayRef> {
    let stored = column.stored(times).ok()?;
    let data = stored.to_data();
    let width = data.data_type().primitive_width()?;
    let elements = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
    let shown = column.decode(elements, None, true).ok()?;
    let of_column = cast(times, shown.data_type()).ok()?;
    let back = cast(&shown, times.data_type()).ok()?;
    let is_exact = shown.as_ref() == of_column.as_ref() && back.as_ref() == times.as_ref();
    is_exact.then_some(stored)
}
