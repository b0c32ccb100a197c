//! Describes how two files differ: each property once, with both values.
//!
//! ```text
//!   a.nc   t2m  scale_factor 0.01      ┐      "t2m"   packing   scale_factor 0.01 …   scale_factor 0.02 …
//!   b.nc   t2m  scale_factor 0.02, K   ┘      "t2m"   units     none                  K
//! ```
//!
//! Errors and `gridfusion info` show these differences, and which of them stop a table.

use std::collections::HashMap;

use super::common_type::common_type;
use super::own_fill::differs_in_fill_only;
use super::units::{conversion, is_same_unit};
use crate::array::{Dimension, GridArray, Property, Value};
use crate::tile::CellFormat;

/// The attributes that tell what values are. Others, such as a title, may differ in every file.
const ATTRIBUTES: [&str; 5] =
    ["units", "standard_name", "long_name", "cell_methods", "grid_mapping"];

/// The text of a property that a file does not have.
const NONE: &str = "none";

/// A property in which two files differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The dimension or the variable that has the property; `None` for the file.
    pub(crate) of: Option<String>,
    pub(crate) property: Property,
    /// The value in the first file.
    pub(crate) first: String,
    /// The value in the other file.
    pub(crate) other: String,
    /// Whether the two files cannot be one table.
    pub(crate) stops_table: bool,
}

impl Difference {
    /// Returns a difference that stops a table.
    fn new(of: Option<&str>, property: Property, first: String, other: String) -> Self {
        Self { of: of.map(str::to_owned), property, first, other, stops_table: true }
    }

    /// Returns the difference as a sentence about the other file.
    pub(super) fn sentence(&self) -> String {
        let Self { property, first, other, .. } = self;
        let of = self.of.as_deref().unwrap_or_default();
        match property {
            Property::Variables | Property::Dimensions => {
                format!("its {} are {other}, not {first}", property.name())
            }
            Property::HasLabels => {
                let has = if first == NONE { "labels" } else { "no labels" };
                format!("its \"{of}\" has {has}, unlike the other \"{of}\"")
            }
            Property::Length => format!("\"{of}\" has {other} elements, not {first}"),
            Property::Labels => format!("\"{of}\" has other labels: {other}, not {first}"),
            Property::Attribute("units") => {
                let converted = conversion(of, other, first);
                let how = converted.map_or_else(String::new, |it| format!(": {it} is in {first}"));
                format!("the units of \"{of}\" are {other}, not {first}{how}")
            }
            _ => format!("the {} of \"{of}\" is {other}, not {first}", property.name()),
        }
    }
}

/// The differences of many files from the first one, each property once.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) all: Vec<CountedDifference>,
    places: HashMap<(Option<String>, Property, bool), usize>,
}

/// A difference, with the first file that has it.
#[derive(Debug)]
pub(crate) struct CountedDifference {
    pub(crate) difference: Difference,
    /// The first file that differs.
    pub(crate) file: String,
    /// The number of files that differ in the property, whatever their values.
    pub(crate) files: usize,
}

impl Differences {
    /// Adds a difference of `file` from the first file.
    pub(super) fn add(&mut self, difference: Difference, file: &str) {
        let key = (difference.of.clone(), difference.property, difference.stops_table);
        match self.places.get(&key).and_then(|at| self.all.get_mut(*at)) {
            Some(counted) => counted.files += 1,
            None => {
                self.places.insert(key, self.all.len());
                self.all.push(CountedDifference { difference, file: file.to_owned(), files: 1 });
            }
        }
    }

    /// Returns a line for each of the first few differences.
    pub(super) fn lines(&self) -> String {
        /// The most lines.
        const MOST: usize = 10;
        let mut text: String = self.all.iter().take(MOST).map(CountedDifference::line).collect();
        let more = self.all.len().saturating_sub(MOST);
        if more > 0 {
            text += &format!("\n  and {more} more differences");
        }
        text
    }
}

impl CountedDifference {
    fn line(&self) -> String {
        let count = match self.files {
            1 => String::new(),
            files => format!(" ({files} files differ in it)"),
        };
        format!("\n  {}: {}{count}", self.file, self.difference.sentence())
    }
}

/// Returns how file `b` differs from file `a`, apart from labels. Compares variables that both have. `is_one` tells that
/// both have a single array, which may have the name of its file.
pub(super) fn differences(a: &[&GridArray], b: &[&GridArray], is_one: bool) -> Vec<Difference> {
    let mut found = Found::default();
    let names = |all: &[&GridArray]| -> Vec<String> {
        all.iter().map(|array| array.name().to_owned()).collect()
    };
    let by_name: HashMap<&str, &GridArray> = b.iter().map(|array| (array.name(), *array)).collect();
    let partner = |array: &GridArray| match is_one {
        true => b.first().copied(),
        false => by_name.get(array.name()).copied(),
    };
    let pairs: Vec<(&GridArray, &GridArray)> =
        a.iter().filter_map(|array| Some((*array, partner(array)?))).collect();
    if !is_one && (a.len() != b.len() || pairs.len() != a.len()) {
        let [first, other] = without_common(names(a), names(b));
        found.add(None, Property::Variables, first, other);
    }
    // Arrays of one file share their dimensions, so each is compared once.
    let mut compared: Vec<&str> = vec![];
    for (a, b) in pairs {
        found.add_names(a.dims(), b.dims());
        for a in a.dims() {
            let other = b.dims().iter().find(|b| b.name() == a.name());
            if let Some(b) = other.filter(|_| !compared.contains(&a.name())) {
                compared.push(a.name());
                found.add_dimension(a, b);
            }
        }
        found.add_values(a.values(), b.values());
    }
    found.all
}

/// Returns how variables differ in names, types, fill values or packing.
pub(super) fn values_differ(a: &[Value], b: &[Value]) -> Vec<Difference> {
    let mut found = Found::default();
    found.add_values(a, b);
    found.all
}

/// Returns how dimensions differ in names, kinds or units of labels.
pub(super) fn dims_differ(a: &[Dimension], b: &[Dimension]) -> Vec<Difference> {
    let mut found = Found::default();
    found.add_names(a, b);
    if found.all.is_empty() {
        a.iter().zip(b).for_each(|(a, b)| found.add_dimension(a, b));
    }
    found.all
}

/// Returns how the labels of two dimensions of one name differ; `None` if they are equal.
pub(super) fn labels_differ(a: &Dimension, b: &Dimension) -> Option<Difference> {
    let name = Some(a.name());
    if a.len() != b.len() {
        let (first, other) = (a.len().to_string(), b.len().to_string());
        return Some(Difference::new(name, Property::Length, first, other));
    }
    let (a, b) = (a.labels(), b.labels());
    (!a.same(b)).then(|| Difference::new(name, Property::Labels, a.ends(), b.ends()))
}

/// Differences that were found, each once.
#[derive(Default)]
struct Found {
    all: Vec<Difference>,
}

impl Found {
    /// Adds a difference that stops a table, unless both values are the same.
    fn add(&mut self, of: Option<&str>, property: Property, first: String, other: String) {
        self.add_judged(true, of, property, first, other);
    }

    fn add_judged(
        &mut self,
        stops_table: bool,
        of: Option<&str>,
        property: Property,
        first: String,
        other: String,
    ) {
        let is_known = |it: &Difference| it.property == property && it.of.as_deref() == of;
        if first != other && !self.all.iter().any(is_known) {
            self.all
                .push(Difference { stops_table, ..Difference::new(of, property, first, other) });
        }
    }

    /// Adds a difference in units. A file that has none does not contradict another one.
    fn add_units(&mut self, of: Option<&str>, first: Option<&String>, other: Option<&String>) {
        let stops =
            matches!((first, other), (Some(first), Some(other)) if !is_same_unit(first, other));
        let property = Property::Attribute("units");
        self.add_judged(stops, of, property, attribute(first), attribute(other));
    }

    fn add_names(&mut self, a: &[Dimension], b: &[Dimension]) {
        let names = |dims: &[Dimension]| -> Vec<String> {
            dims.iter().map(|dim| dim.name().to_owned()).collect()
        };
        if a.iter().map(Dimension::name).ne(b.iter().map(Dimension::name)) {
            self.add(None, Property::Dimensions, joined(&names(a)), joined(&names(b)));
        }
    }

    fn add_dimension(&mut self, a: &Dimension, b: &Dimension) {
        let name = Some(a.name());
        // Indices of one file and labels of another would mix two meanings in one column.
        if a.is_labelled() != b.is_labelled() {
            let has = |dim: &Dimension| if dim.is_labelled() { "labels" } else { NONE }.to_owned();
            return self.add(name, Property::HasLabels, has(a), has(b));
        }
        let kind = |dim: &Dimension| dim.labels().data_type().to_string();
        self.add(name, Property::Type, kind(a), kind(b));
        // 5 in "days since 2000" and 5 in "days since 2001" are different times, although both are the number 5.
        // Nor is 5 of a file without units a time.
        let one_counts = a.times().is_some() != b.times().is_some();
        let unit = |dim: &Dimension| {
            let text = dim.unit().or_else(|| {
                dim.attributes().get("units").filter(|_| one_counts).map(String::as_str)
            });
            let of_times = if one_counts && dim.times().is_some() { "times in " } else { "" };
            format!("{of_times}{}", text.unwrap_or("no unit"))
        };
        if a.labels().data_type() == b.labels().data_type() {
            self.add(name, Property::TimeUnits, unit(a), unit(b));
        }
        let calendar = |dim: &Dimension| dim.calendar().unwrap_or_else(|| "standard".to_owned());
        self.add(name, Property::Calendar, calendar(a), calendar(b));
        // Times of different units are comparable, once they are times.
        let are_times =
            |dim: &Dimension| dim.labels().data_type().is_temporal() || dim.times().is_some();
        if a.unit().is_none() && b.unit().is_none() && !are_times(a) && !are_times(b) {
            self.add_units(name, a.attributes().get("units"), b.attributes().get("units"));
        }
    }

    fn add_values(&mut self, a: &[Value], b: &[Value]) {
        let names = |values: &[Value]| -> Vec<String> {
            values.iter().map(|value| value.name.clone()).collect()
        };
        if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.name != b.name) {
            let [first, other] = without_common(names(a), names(b));
            self.add(None, Property::Variables, first, other);
        }
        for a in a {
            if let Some(b) = b.iter().find(|b| b.name == a.name) {
                self.add_value(a, b);
            }
        }
    }

    fn add_value(&mut self, a: &Value, b: &Value) {
        let name = Some(a.name.as_str());
        // The column has the fill value that is NULL and the packing. The format of cells has the fill value of missing
        // cells, which each file keeps.
        let same = a.column == b.column
            && (a.cells == b.cells || differs_in_fill_only(&a.cells, &b.cells));
        if !same {
            let before = self.all.len();
            let has_common = common_type(&a.column.data_type(), &b.column.data_type()).is_some();
            let (of_a, of_b) = (a.column.properties(), b.column.properties());
            for (property, first) in of_a {
                let other = of_b.iter().find(|(it, _)| *it == property);
                let other = other.map_or_else(|| NONE.to_owned(), |(_, text)| text.clone());
                // Files may differ in how they store a value.
                let stops = property == Property::Type && !has_common;
                self.add_judged(stops, name, property, first, other);
            }
            if self.all.len() == before {
                let (first, mut other) = (storage(&a.cells), storage(&b.cells));
                if first == other {
                    // Fill values may be of any length, so they are not shown.
                    "another fill value of cells that were not written".clone_into(&mut other);
                }
                self.add_judged(false, name, Property::Storage, first, other);
            }
        }
        for key in ATTRIBUTES {
            let (first, other) = (a.attributes.get(key), b.attributes.get(key));
            let property = Property::Attribute(key);
            match key {
                // Times of different units are comparable, once they are times.
                "units" if a.column.data_type().is_temporal() => {}
                "units" => self.add_units(name, first, other),
                _ => self.add_judged(false, name, property, attribute(first), attribute(other)),
            }
        }
    }
}

/// Returns what sets the cells of one form apart from others.
fn storage(cells: &CellFormat) -> String {
    let width = match cells.width {
        Some(width) => format!("cells of {width} bytes"),
        None => "cells of any length".to_owned(),
    };
    let marks = if cells.nullable { ", with marks for NULL" } else { "" };
    format!("{width}{marks}")
}

fn attribute(value: Option<&String>) -> String {
    value.map_or_else(|| NONE.to_owned(), |text| text.trim().to_owned())
}

fn joined(names: &[String]) -> String {
    match names.is_empty() {
        true => NONE.to_owned(),
        false => names.join(", "),
    }
}

/// Lists names. Long lists have only those that the other one lacks.
fn without_common(mut first: Vec<String>, mut other: Vec<String>) -> [String; 2] {
    /// The most names of a whole list.
    const MOST: usize = 10;
    if first.len().max(other.len()) > MOST {
        let lacks = |these: &[String], those: &[String]| -> Vec<String> {
            let those: std::collections::HashSet<&String> = those.iter().collect();
            these.iter().filter(|it| !those.contains(it)).cloned().collect()
        };
        (first, other) = (lacks(&first, &other), lacks(&other, &first));
        for names in [&mut first, &mut other] {
            let more = names.len().saturating_sub(MOST);
            names.truncate(MOST);
            if more > 0 {
                names.push(format!("{more} more"));
            }
        }
        return [format!("also {}", joined(&first)), format!("also {}", joined(&other))];
    }
    [joined(&first), joined(&other)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Float64Array;

    use super::*;
    use crate::array::Labels;

    fn dim(units: Option<&str>) -> Dimension {
        let labels = Labels::from_array(Arc::new(Float64Array::from(vec![1.5, 2.5]))).unwrap();
        let attributes = units.map(|it| ("units".to_owned(), it.to_owned()));
        Dimension::labelled("t", labels).with_attributes(attributes.into_iter().collect())
    }

    #[test]
    fn times_and_other_numbers_are_no_table() {
        let days = dim(Some("days since 1500-01-01"));
        assert!(days.times().is_some());
        let differ = |a: &Dimension, b: &Dimension| {
            dims_differ(std::slice::from_ref(a), std::slice::from_ref(b))
        };
        for other in [dim(None), dim(Some("hPa"))] {
            for (a, b) in [(&days, &other), (&other, &days)] {
                let found = differ(a, b);
                let stops = |it: &Difference| it.stops_table && it.property == Property::TimeUnits;
                assert!(found.iter().any(stops), "{found:?}");
            }
            assert!(differ(&other, &other).is_empty());
        }
        assert!(differ(&days, &days).is_empty());
    }
}
