//! The attributes of a new array and its columns: those that columns keep, and [`ChosenAttributes`] of options.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field};
use datafusion::common::plan_err;
use datafusion::error::Result;
use gridfusion_core::array::attribute_values;
use gridfusion_core::write::Attributes;
use serde_json::Value;

use crate::array::COUNTED_TIMES;

/// Attributes that tell how values are stored, or that name variables beside.
const OF_STORAGE: [&str; 14] = [
    "_FillValue",
    "_Unsigned",
    "add_offset",
    "ancillary_variables",
    "bounds",
    "cell_measures",
    "climatology",
    "coordinates",
    "grid_mapping",
    "missing_value",
    "scale_factor",
    "valid_max",
    "valid_min",
    "valid_range",
];

/// Attributes that tell how times are stored.
const OF_TIMES: [&str; 3] = ["units", "calendar", "dtype"];

/// The attributes that options choose.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ChosenAttributes {
    /// Attributes of the whole array.
    pub(super) of_array: Attributes,
    /// Attributes of columns, which win over attributes that a column keeps.
    of_columns: BTreeMap<String, Attributes>,
}

impl ChosenAttributes {
    /// Reads `{"title": "…", "t2m": {"long_name": "…"}}`: attributes of the array, and of columns by their names.
    ///
    /// # Errors
    /// If the text is no such object.
    pub(super) fn read(&mut self, text: &str) -> Result<()> {
        let Ok(Value::Object(attributes)) = serde_json::from_str(text) else {
            return plan_err!(
                "'attributes' is '{text}', expected a JSON object such as '{{\"title\": \"Means\", \"t2m\": {{\"units\": \"K\"}}}}'"
            );
        };
        for (name, value) in attributes {
            match value {
                Value::Object(of_column) => {
                    let known = self.of_columns.entry(name).or_default();
                    for (name, value) in of_column {
                        check(&name, &value)?;
                        known.insert(name, value);
                    }
                }
                value => {
                    check(&name, &value)?;
                    self.of_array.insert(name, value);
                }
            }
        }
        Ok(())
    }

    /// Reads `t2m=K, tp=mm d-1`: the units of columns.
    ///
    /// # Errors
    /// If a name is missing.
    pub(super) fn read_units(&mut self, text: &str) -> Result<()> {
        for pair in text.split(',') {
            let Some((name, units)) = pair.split_once('=').filter(|it| !it.0.trim().is_empty())
            else {
                return plan_err!("'units' is '{text}', expected units such as 't2m=K, tp=mm d-1'");
            };
            let of_column = self.of_columns.entry(name.trim().to_owned()).or_default();
            of_column.insert("units".to_owned(), units.trim().into());
        }
        Ok(())
    }

    /// Fails if attributes are for a column that there is not.
    pub(super) fn check_names(&self, dimensions: &[&str], variables: &[&str]) -> Result<()> {
        let known = || dimensions.iter().chain(variables).copied();
        match self.of_columns.keys().find(|name| !known().any(|it| it == name.as_str())) {
            Some(name) => {
                let known = known().collect::<Vec<_>>().join(", ");
                plan_err!("attributes are given for '{name}', and the columns are {known}")
            }
            None => Ok(()),
        }
    }

    /// Returns the attributes of a column: those that hold for its values, and the chosen ones.
    ///
    /// # Errors
    /// If units are chosen for times, which are stored in units of their own.
    pub(super) fn of(&self, field: &Field) -> Result<Attributes> {
        let mut attributes = kept(field);
        let Some(chosen) = self.of_columns.get(field.name()) else { return Ok(attributes) };
        let is_time = matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32);
        if let Some(name) = OF_TIMES.iter().find(|name| is_time && chosen.contains_key(**name)) {
            return plan_err!(
                "the times \"{}\" have '{name}' that tell how they are stored; leave the attribute out, or cast the column to a number",
                field.name()
            );
        }
        attributes.extend(chosen.clone());
        Ok(attributes)
    }
}

/// Fails for an attribute that tells how values are stored, and for a value that not all formats have.
fn check(name: &str, value: &Value) -> Result<()> {
    if OF_STORAGE.contains(&name) || name.is_empty() {
        return plan_err!("the attribute '{name}' tells how values are stored; options set that");
    }
    let is_single = |it: &Value| it.is_string() || it.is_number();
    let fits = match value {
        Value::Array(values) => !values.is_empty() && values.iter().all(Value::is_number),
        value => is_single(value),
    };
    match fits {
        true => Ok(()),
        false => plan_err!(
            "the attribute '{name}' is {value}, expected a text, a number or a list of numbers"
        ),
    }
}

/// Returns the attributes of a column that hold for its values.
fn kept(field: &Field) -> Attributes {
    // Units of times hold for numbers only if these count time. A cast keeps the attributes of what it casts.
    let metadata = field.metadata();
    let is_since = metadata.get("units").is_some_and(|units| units.contains(" since "));
    let is_time = matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32)
        || is_since && !metadata.contains_key(COUNTED_TIMES)
        || metadata.get("dtype").is_some_and(|dtype| dtype.starts_with("timedelta"));
    let mut attributes = attribute_values(metadata);
    let is_left_out =
        |name: &str| OF_STORAGE.contains(&name) || is_time && OF_TIMES.contains(&name);
    attributes.retain(|name, _| !is_left_out(name));
    attributes
}
