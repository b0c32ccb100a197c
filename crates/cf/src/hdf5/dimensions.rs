//! Names and lengths of dimensions.
//!
//! In NetCDF-4, a dimension is a dataset that is a *dimension scale*. Variables refer to it in one of three ways,
//! all of which are attributes (NetCDF-4 format, "File Format Specifications", and HDF5 Dimension Scale
//! Specification):
//!
//! ```text
//!   t2m                                                lat
//!     DIMENSION_LIST        address of scale per axis ──▶ CLASS               DIMENSION_SCALE
//!     _Netcdf4Coordinates   number of dimension per axis ▶ _Netcdf4Dimid      3
//! ```
//!
//! A scale of several axes is a coordinate variable: its first axis is its own dimension.

use std::collections::{HashMap, HashSet};

use super::parse::{Dataset, Layout, Object, Value};
use super::parsed_objects::ParsedObjects;
use super::tree::Tree;
use crate::hierarchy::{Attribute, Axis, CellType};

/// How the name of a scale begins that is no variable.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";
/// The prefix of the name of a variable that has the name of a dimension, but not its shape.
const NOT_COORDINATE: &str = "_nc4_non_coord_";

/// The dimensions of a file.
#[derive(Debug, Default)]
pub(super) struct Dimensions {
    scales: HashMap<u64, Scale>,
    by_number: HashMap<i128, u64>,
}

/// Whether the cells of a dataset are single characters.
fn is_character(dataset: &Dataset) -> bool {
    dataset.cell.as_ref().is_ok_and(|cell| cell.cell == CellType::FixedUtf8(1))
}

#[derive(Debug)]
struct Scale {
    name: String,
    /// The path of the variable that the scale is, if it is one and has one axis.
    labels: Option<String>,
    /// The greatest length of any variable along the dimension.
    len: u64,
    /// Whether the dimension only counts the characters of texts: it is no variable, and is the last dimension of
    /// characters wherever it is used. xarray has the same rule.
    is_of_text: bool,
}

impl Dimensions {
    /// Collects the dimensions of a file.
    pub(super) fn new(tree: &Tree, parsed: &ParsedObjects) -> Self {
        let mut this = Self::default();
        // Each dataset once, by its first path.
        let mut met = HashSet::new();
        let datasets = tree.datasets.iter().filter(|(_, address)| met.insert(*address));
        let datasets: Vec<_> = datasets.collect();
        for (path, address) in &datasets {
            let Some(Ok(Object::Dataset(dataset))) = parsed.get(address) else { continue };
            if text(dataset, "CLASS") != Some("DIMENSION_SCALE") {
                continue;
            }
            let path = variable_path(path);
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let has_labels = is_variable(dataset) && dataset.shape.len() == 1;
            let len = dataset.shape.first().copied().unwrap_or_default();
            let labels = has_labels.then_some(path);
            let scale = Scale { name, labels, len, is_of_text: !is_variable(dataset) };
            this.scales.entry(*address).or_insert(scale);
            if let Some([number]) = integers(dataset, "_Netcdf4Dimid") {
                this.by_number.entry(*number).or_insert(*address);
            }
        }
        for (_, address) in &datasets {
            let Some(Ok(Object::Dataset(dataset))) = parsed.get(address) else { continue };
            if !is_variable(dataset) {
                continue;
            }
            let scales = this.scales_of(*address, dataset);
            for (axis, (scale, len)) in scales.into_iter().zip(&dataset.shape).enumerate() {
                if let Some(scale) = scale.and_then(|scale| this.scales.get_mut(&scale)) {
                    scale.len = scale.len.max(*len);
                    scale.is_of_text &= is_character(dataset) && axis + 1 == dataset.shape.len();
                }
            }
        }
        this
    }

    /// Whether the file has dimensions.
    pub(super) fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Whether the last axis of a dataset of characters only counts them, so that each cell is a text.
    pub(super) fn counts_characters(&self, address: u64, dataset: &Dataset) -> bool {
        let last = self.scales_of(address, dataset).last().copied().flatten();
        let scale = last.and_then(|scale| self.scales.get(&scale));
        is_character(dataset) && scale.is_none_or(|scale| scale.is_of_text)
    }

    /// Returns the axes of a dataset.
    pub(super) fn axes(&self, address: u64, dataset: &Dataset) -> Vec<Axis> {
        let names: &[String] = match attribute(dataset, "DIMENSION_LABELS") {
            Some(Attribute::Texts(names)) => names,
            _ => &[],
        };
        let scales = self.scales_of(address, dataset);
        let lens = dataset.shape.iter().zip(&dataset.max_shape);
        let axes = lens.enumerate().map(|(number, (&len, &most))| {
            let scale = scales.get(number).copied().flatten();
            let Some(scale) = scale.and_then(|scale| self.scales.get(&scale)) else {
                let name = names.get(number).filter(|name| !name.is_empty()).cloned();
                return Axis::new(name, len);
            };
            // The variables of an unlimited dimension may differ in length.
            let grows = most == u64::MAX && matches!(dataset.layout, Layout::Chunked { .. });
            let len = if grows { scale.len.max(len) } else { len };
            let labels = scale.labels.clone().filter(|_| len == scale.len);
            Axis { name: Some(scale.name.clone()), len, labels }
        });
        axes.collect()
    }

    /// Returns the address of the scale of each axis.
    fn scales_of(&self, address: u64, dataset: &Dataset) -> Vec<Option<u64>> {
        let rank = dataset.shape.len();
        let is_scale = self.scales.contains_key(&address);
        if let Some(numbers) = integers(dataset, "_Netcdf4Coordinates")
            && numbers.len() == rank
        {
            return numbers.iter().map(|number| self.by_number.get(number).copied()).collect();
        }
        if let Some(Value::Objects(lists)) = value(dataset, "DIMENSION_LIST") {
            return lists.iter().map(|scales| scales.first().copied()).collect();
        }
        match rank {
            0 => vec![],
            _ if is_scale => [Some(address)].into_iter().chain(vec![None; rank - 1]).collect(),
            _ => vec![],
        }
    }
}

/// Whether a dataset is a variable, and not only a dimension.
pub(super) fn is_variable(dataset: &Dataset) -> bool {
    text(dataset, "CLASS") != Some("DIMENSION_SCALE")
        || !text(dataset, "NAME").is_some_and(|name| name.starts_with(NO_VARIABLE))
}

/// Returns the path of a variable from the path of its dataset.
pub(super) fn variable_path(path: &str) -> String {
    let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name.strip_prefix(NOT_COORDINATE) {
        Some(name) if !group.is_empty() => format!("{group}/{name}"),
        Some(name) => name.to_owned(),
        None => path.to_owned(),
    }
}

/// Returns the value of an attribute.
fn value<'a>(dataset: &'a Dataset, name: &str) -> Option<&'a Value> {
    dataset.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value)
}

fn attribute<'a>(dataset: &'a Dataset, name: &str) -> Option<&'a Attribute> {
    match value(dataset, name)? {
        Value::Plain(attribute) => Some(attribute),
        Value::Objects(_) | Value::Other(_) | Value::Unreadable(_) => None,
    }
}

fn text<'a>(dataset: &'a Dataset, name: &str) -> Option<&'a str> {
    attribute(dataset, name)?.text()
}

fn integers<'a>(dataset: &'a Dataset, name: &str) -> Option<&'a [i128]> {
    match attribute(dataset, name)? {
        Attribute::Integers(all) => Some(all),
        _ => None,
    }
}

/// Whether an attribute belongs to the conventions of NetCDF-4 and dimension scales, and means nothing to users.
pub(super) fn is_internal(name: &str) -> bool {
    matches!(
        name,
        "DIMENSION_LIST"
            | "REFERENCE_LIST"
            | "DIMENSION_LABELS"
            | "CLASS"
            | "NAME"
            | "_NCProperties"
            | "_nc3_strict"
    ) || name.starts_with("_Netcdf4")
}
