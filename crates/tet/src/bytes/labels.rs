//! The names of a dataset's axes, and the sources of their labels.
//!
//! Files differ in how they name axes and where they keep labels, so several sources are tried in turn. For
//! the dataset `obs/temperature` with `dim_names` time, station:
//!
//! ```text
//!   time      too long for the footer: the dataset obs/time, else time ──▶ its values, with units
//!   station   the footer's coords under "station", else under "1"      ──▶ text
//! ```

use std::collections::HashSet;

use super::directory::Dataset;
use super::file::TetFile;
use gridfusion_core::format::ElementType;
use gridfusion_core::grid::axis_names;

/// The number of enclosing groups that are searched for coordinates, besides the root.
const MAX_GROUP_DEPTH: usize = 32;

/// One axis of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DimSpec {
    /// The dimension's name, unique within the dataset and never empty.
    pub name: String,
    /// The number of elements along the axis.
    pub len: u64,
    /// The source of its labels.
    pub labels: LabelSource,
}

/// The source of a dimension's labels; always one label per element of the axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabelSource {
    /// Text labels from the footer.
    Text(Vec<String>),
    /// Numbers from the footer, for which a dataset of single precision exists: they are singles.
    Singles(Vec<String>),
    /// The values of another dataset (or of this one, if it is its own coordinate), by id.
    Dataset(usize),
    /// No stored labels: the 0-based index is the label.
    Index,
}

impl TetFile {
    /// Returns the axes of `dataset`, and warnings about names and labels that do not fit. An unknown id has
    /// no axes.
    ///
    /// Names come from the footer's `dim_names`, else from HDF5's `coordinates` attribute if it names a
    /// dataset of the right length for each axis. Otherwise they are `dim_0`, `dim_1`, …. Labels come from
    /// the first of these sources that exists:
    ///
    /// 1. the footer's `coords` under the dimension's name,
    /// 2. the footer's `coords` under the axis number,
    /// 3. a 1-d dataset of the dimension's name and length in the same group or a parent group,
    /// 4. the dataset that the `coordinates` attribute names for the axis.
    pub fn dimensions(&self, dataset: usize) -> (Vec<DimSpec>, Vec<String>) {
        let mut warnings = Vec::new();
        let listed = self.coordinates_attribute(dataset);
        let names = self.dimension_names(dataset, listed.as_deref(), &mut warnings);
        let shape = self.shape_of(dataset);
        let dims = names.into_iter().zip(shape).enumerate().map(|(axis, (name, &len))| {
            let labels = self
                .footer_labels(dataset, axis, &name, &mut warnings)
                .or_else(|| self.sibling(dataset, &name, len).map(LabelSource::Dataset))
                .or_else(|| self.listed_label(listed.as_deref(), axis, &name))
                .unwrap_or(LabelSource::Index);
            DimSpec { name, len, labels }
        });
        (dims.collect(), warnings)
    }

    /// Returns the number of elements per axis of a dataset; no axes for an unknown id.
    fn shape_of(&self, dataset: usize) -> &[u64] {
        self.datasets.get(dataset).map_or(&[], Dataset::shape)
    }

    /// Returns the name of a dataset; empty for an unknown id.
    pub(super) fn name_of(&self, dataset: usize) -> &str {
        self.datasets.get(dataset).map_or("", Dataset::name)
    }

    /// Whether `dataset` is a coordinate: 1-d, and named like its own dimension or listed in another
    /// dataset's `coordinates` attribute. A coordinate labels other datasets, and is no data variable itself.
    pub fn is_coordinate(&self, dataset: usize) -> bool {
        let own_name = base_name(self.name_of(dataset));
        let dim_names = self.metadata_of(dataset).dim_names.as_deref();
        self.shape_of(dataset).len() == 1
            && (dim_names == Some(&[own_name.to_owned()])
                || self.listed_coordinates.contains(&dataset))
    }

    /// Returns the datasets that `coordinates` attributes of other datasets name. Reads each attribute once.
    pub(super) fn find_listed_coordinates(&self) -> HashSet<usize> {
        let mut listed = HashSet::new();
        for &dataset in self.by_name.values() {
            let ids = self.coordinates_attribute(dataset).unwrap_or_default();
            listed.extend(ids.into_iter().filter(|&id| id != dataset));
        }
        listed
    }

    /// Returns one name per axis; no names for an unknown id.
    fn dimension_names(
        &self,
        dataset: usize,
        listed: Option<&[usize]>,
        warnings: &mut Vec<String>,
    ) -> Vec<String> {
        let rank = self.shape_of(dataset).len();
        let names: Vec<String> = match &self.metadata_of(dataset).dim_names {
            Some(names) if names.len() == rank => names.clone(),
            other => {
                if let Some(names) = other {
                    warnings
                        .push(format!("{} dimension names for {rank} axes; ignored", names.len()));
                }
                let listed_name = |axis: usize| {
                    listed
                        .map_or(String::new(), |ids| base_name(self.name_of(ids[axis])).to_owned())
                };
                (0..rank).map(listed_name).collect()
            }
        };
        axis_names(names, warnings)
    }

    /// Returns the labels in the footer's `coords`, under the axis' name or else its number. Adds a warning
    /// for a list of the wrong length, and ignores it.
    fn footer_labels(
        &self,
        dataset: usize,
        axis: usize,
        name: &str,
        warnings: &mut Vec<String>,
    ) -> Option<LabelSource> {
        let metadata = self.metadata_of(dataset);
        let len = self.shape_of(dataset)[axis];
        for key in [name, &axis.to_string()] {
            let Some(labels) = metadata.labels(key) else { continue };
            if labels.len() as u64 != len {
                warnings.push(format!(
                    "{} labels for dimension \"{name}\", which has {len} elements; ignored",
                    labels.len()
                ));
                continue;
            }
            // The converter copies a coordinate's values into its own labels as text. The values
            // are exact and carry units, so they are the better labels.
            let are_numbers = labels.iter().all(|label| label.parse::<f64>().is_ok());
            if self.is_coordinate(dataset) && are_numbers {
                return Some(LabelSource::Dataset(dataset));
            }
            // Text does not tell the precision, but the coordinate does.
            let coordinate = self.sibling(dataset, name, len);
            if are_numbers && coordinate.is_some_and(|id| self.has_singles(id)) {
                return Some(LabelSource::Singles(labels.to_vec()));
            }
            return Some(LabelSource::Text(labels.to_vec()));
        }
        None
    }

    /// Returns the dataset that the `coordinates` attribute names for `axis`. `None` if that dataset's own
    /// dimension has another name: the attribute's order means nothing where dimensions have names.
    fn listed_label(
        &self,
        listed: Option<&[usize]>,
        axis: usize,
        name: &str,
    ) -> Option<LabelSource> {
        let id = listed?[axis];
        let own_names = self.metadata_of(id).dim_names.as_deref();
        let fits = own_names.is_none_or(|names| names == [name.to_owned()]);
        fits.then_some(LabelSource::Dataset(id))
    }

    /// Finds the 1-d dataset `name` of `len` elements in the group of `dataset` or a parent group. For `x`
    /// and the dataset `a/b/t`, the names are `a/b/x`, `a/x` and `x`.
    fn sibling<'a>(&'a self, dataset: usize, name: &str, len: u64) -> Option<usize> {
        let parent = |group: &&'a str| group.rsplit_once('/').map(|(parent, _)| parent);
        let groups = std::iter::successors(parent(&self.name_of(dataset)), parent);
        let groups = groups.take(MAX_GROUP_DEPTH).chain([""]);
        groups.into_iter().find_map(|group| self.line(&join(group, name), len))
    }

    /// Returns the datasets that HDF5's `coordinates` attribute names, in its order. `None` unless it names
    /// a dataset of the axis' length for each axis.
    fn coordinates_attribute(&self, dataset: usize) -> Option<Vec<usize>> {
        let names = self.metadata_of(dataset).attrs.get("coordinates")?;
        let names: Vec<&str> = names.split_whitespace().collect();
        let shape = self.shape_of(dataset);
        if names.len() != shape.len() {
            return None;
        }
        let find = |(name, &len): (&&str, &u64)| {
            // Coordinates may be in a group of this name, else beside the dataset.
            self.line(&join("coordinates", name), len).or_else(|| self.sibling(dataset, name, len))
        };
        names.iter().zip(shape).map(find).collect()
    }

    /// Whether the values of a dataset are of single precision.
    fn has_singles(&self, id: usize) -> bool {
        let is_single = |dataset: &Dataset| matches!(dataset.element(), Ok(ElementType::F32));
        self.datasets.get(id).is_some_and(is_single) && !self.is_packed(id)
    }

    /// Finds the readable 1-d dataset with this exact name and length.
    fn line(&self, name: &str, len: u64) -> Option<usize> {
        let id = self.dataset_id(name)?;
        let dataset = &self.datasets[id];
        (dataset.shape() == [len] && dataset.grid().is_ok()).then_some(id)
    }
}

fn join(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// Returns the part of a dataset's name after its groups.
fn base_name(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, base)| base)
}
