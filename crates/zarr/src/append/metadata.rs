//! Parts of metadata, and the arrays that the columns of rows are.

use std::collections::BTreeMap;

use gridfusion_core::{Error, Result};
use serde_json::Value;

/// Returns the metadata of all arrays, by path; `None` if the root does not have it.
pub(super) fn consolidated(root: &[u8]) -> Result<Option<BTreeMap<String, Value>>> {
    let root = parse(root)?;
    let Some(all) = root["consolidated_metadata"]["metadata"].as_object() else { return Ok(None) };
    let arrays = all.iter().filter(|(_, metadata)| metadata["node_type"] == "array");
    Ok(Some(arrays.map(|(name, metadata)| (name.clone(), metadata.clone())).collect()))
}

pub(super) fn parse(document: &[u8]) -> Result<Value> {
    let parsed = serde_json::from_slice(document);
    parsed.map_err(|error| {
        Error::unsupported(format!("an append to a store whose zarr.json is no JSON: {error}"))
    })
}

/// Whether two documents of an array are the same: consolidated metadata may repeat that an array has none, and programs write a number as
/// `0` or as `0.0`.
pub(super) fn are_same(own: &Value, listed: &Value) -> bool {
    let members = |document: &Value| {
        let mut members = document.as_object().cloned().unwrap_or_default();
        members.remove("consolidated_metadata");
        members
    };
    are_equal(&Value::from(members(own)), &Value::from(members(listed)))
}

fn are_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            // Integers beyond those of doubles are equal only as integers.
            let is_float = a.is_f64() || b.is_f64();
            a == b || is_float && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| are_equal(a, b)))
        }
        _ => a == b,
    }
}

/// Returns the names of an array's dimensions; `None` if one has none. A single value has no dimension, and often no list of names.
pub(super) fn names_of(metadata: &Value) -> Option<Vec<String>> {
    if metadata["shape"].as_array().is_some_and(Vec::is_empty) {
        return Some(vec![]);
    }
    let names = metadata["dimension_names"].as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns the axis of a dimension in an array.
pub(super) fn axis_of(metadata: &Value, dimension: &str) -> Option<usize> {
    metadata["dimension_names"].as_array()?.iter().position(|name| name == dimension)
}

/// Whether an array is one of a group that has labels of its own for a dimension. It does not become longer with others.
pub(super) fn is_apart(metadata: &BTreeMap<String, Value>, name: &str, dimension: &str) -> bool {
    let labels = name.rsplit_once('/').map(|(group, _)| format!("{group}/{dimension}"));
    labels.is_some_and(|labels| metadata.contains_key(&labels))
}

/// The arrays that columns are.
pub(super) struct Roles {
    /// The dimensions of the variables, in their order.
    pub(super) dimensions: Vec<String>,
    pub(super) variables: Vec<String>,
    /// Arrays over a part of the dimensions, whose values rows repeat, with their dimensions. One more dimension may follow.
    pub(super) sides: Vec<(String, Vec<String>)>,
}

impl Roles {
    /// Returns the names of all arrays: of dimensions, of variables, and of those beside.
    pub(super) fn arrays(&self) -> Vec<&String> {
        let sides = self.sides.iter().map(|(name, _)| name);
        self.dimensions.iter().chain(&self.variables).chain(sides).collect()
    }
}

/// Returns the arrays that columns are.
pub(super) fn roles(metadata: &BTreeMap<String, Value>, columns: &[&str]) -> Result<Roles> {
    let arrays = || metadata.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut found = vec![];
    for column in columns {
        let Some(array) = metadata.get(*column) else {
            let arrays = arrays();
            return Err(Error::usage(format!(
                "the store has no array for the column \"{column}\"; it has {arrays}"
            )));
        };
        let Some(names) = names_of(array) else {
            return Err(Error::usage(format!("the dimensions of \"{column}\" have no names")));
        };
        if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
            return Err(Error::usage(format!("\"{column}\" has a dimension twice")));
        }
        if names != [*column] {
            found.push((*column, names));
        }
    }
    // A dimension without a column belongs to lists, such as that of the two bounds of a time.
    let has_columns =
        |names: &&Vec<String>| names.iter().all(|name| columns.contains(&name.as_str()));
    let all_names = || found.iter().map(|(_, names)| names);
    let most = all_names().filter(has_columns).map(Vec::len).max().filter(|most| *most > 0);
    let most = most.or_else(|| all_names().map(Vec::len).max().filter(|most| *most > 0));
    let is_whole = |names: &Vec<String>| {
        Some(names.len()) == most
            && (has_columns(&names) || !all_names().any(|it| has_columns(&it)))
    };
    let whole = found.iter().find(|(_, names)| is_whole(names));
    let dimensions = whole.map(|(_, names)| names.clone());
    let (mut variables, mut sides) = (vec![], vec![]);
    for (column, names) in &found {
        let Some((first, all)) = whole else { continue };
        match names == all {
            true => variables.push((*column).to_owned()),
            false if is_side(names, all) => sides.push(((*column).to_owned(), names.clone())),
            false => {
                return Err(Error::usage(format!(
                    "\"{column}\" has the dimensions {}, and \"{first}\" has {}; append variables of the same dimensions",
                    names.join(", "),
                    all.join(", ")
                )));
            }
        }
    }
    let Some(dimensions) = dimensions else {
        return Err(Error::usage(format!("no column is a variable; the store has {}", arrays())));
    };
    for dimension in &dimensions {
        let has_labels =
            metadata.get(dimension).and_then(names_of).is_some_and(|it| it == [dimension.as_str()]);
        if !has_labels || !columns.contains(&dimension.as_str()) {
            return Err(Error::usage(format!(
                "the dimension \"{dimension}\" needs {}",
                if has_labels { "a column with its labels" } else { "labels in the store" }
            )));
        }
    }
    let known = || variables.iter().chain(&dimensions).chain(sides.iter().map(|(name, _)| name));
    match columns.iter().find(|it| !known().any(|name| name == *it)) {
        None => Ok(Roles { dimensions, variables, sides }),
        Some(other) => Err(Error::usage(format!(
            "the column \"{other}\" is a coordinate of another dimension than {}",
            dimensions.join(", ")
        ))),
    }
}

/// Whether an array has a part of the dimensions of `all`, in their order, and at most one more behind them.
pub(super) fn is_side(names: &[String], all: &[String]) -> bool {
    let is_part = |names: &[String]| {
        let mut rest = all.iter();
        names.iter().all(|name| rest.any(|it| it == name))
    };
    match names {
        [most @ .., last] if !all.contains(last) => !most.is_empty() && is_part(most),
        names => is_part(names),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_dimensions_variables_and_those_beside() {
        let array =
            |shape: &[u64], names: &[&str]| json!({"shape": shape, "dimension_names": names});
        let metadata = BTreeMap::from([
            ("time".to_owned(), array(&[4], &["time"])),
            ("lat".to_owned(), array(&[3], &["lat"])),
            ("t".to_owned(), array(&[4, 3], &["time", "lat"])),
            ("month".to_owned(), array(&[4], &["time"])),
            ("time_bnds".to_owned(), array(&[4, 2], &["time", "bnds"])),
            ("height".to_owned(), json!({"shape": []})),
        ]);
        let columns = ["time_bnds", "height", "t", "lat", "month", "time"];
        let Ok(Roles { dimensions, variables, sides }) = roles(&metadata, &columns) else {
            panic!("no roles");
        };
        assert_eq!((dimensions, variables), (vec!["time".into(), "lat".into()], vec!["t".into()]));
        let names: Vec<(&str, usize)> =
            sides.iter().map(|(name, names)| (name.as_str(), names.len())).collect();
        assert_eq!(names, [("time_bnds", 2), ("height", 0), ("month", 1)]);
    }
}
