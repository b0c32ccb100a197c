//! What the axes of a dataset are called and where their labels come from.

use super::TetFile;

/// One axis of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimSpec {
    /// The dimension's name, unique within the dataset and never empty.
    pub name: String,
    /// Elements of the axis.
    pub len: u64,
    /// Where its labels are.
    pub labels: LabelSource,
}

/// Where the labels of a dimension are; always one label per element of the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelSource {
    /// In the footer, as text.
    Text(Vec<String>),
    /// The values of another dataset (or of this one, if it is its own coordinate), by id.
    Dataset(usize),
    /// Nowhere: the 0-based index is the label.
    Index,
}

impl TetFile {
    /// The axes of `dataset`, with the best labels there are, and what was odd about them.
    ///
    /// Names come from the footer's `dim_names`, else from HDF5's `coordinates` attribute if its
    /// names fit the axes in order, else they are `dim_0`, `dim_1`, …. Labels come from the first of:
    /// the footer's `coords` under the dimension's name; under the axis number; a 1-d dataset of the
    /// dimension's name and length in the same group or a parent of it; the dataset that the
    /// `coordinates` attribute names for the axis.
    pub fn dimensions(&self, dataset: usize) -> (Vec<DimSpec>, Vec<String>) {
        let mut warnings = Vec::new();
        let listed = self.coordinates_attribute(dataset);
        let names = self.dimension_names(dataset, listed.as_deref(), &mut warnings);
        let shape = self.datasets[dataset].shape();
        let dims = names.into_iter().zip(shape).enumerate().map(|(axis, (name, &len))| {
            let labels = self
                .footer_labels(dataset, axis, &name, &mut warnings)
                .or_else(|| self.sibling(dataset, &name, len).map(LabelSource::Dataset))
                .or_else(|| listed.as_ref().map(|ids| LabelSource::Dataset(ids[axis])))
                .unwrap_or(LabelSource::Index);
            DimSpec { name, len, labels }
        });
        (dims.collect(), warnings)
    }

    /// Whether `dataset` is a coordinate: 1-d and named as its own dimension. Such a dataset labels
    /// others and is not a data variable itself.
    pub fn is_coordinate(&self, dataset: usize) -> bool {
        let own_name = base_name(self.datasets[dataset].name());
        let dim_names = self.metadata_of(dataset).dim_names.as_deref();
        let listed_by_others = || {
            (0..self.datasets.len()).any(|other| {
                other != dataset
                    && self.coordinates_attribute(other).is_some_and(|ids| ids.contains(&dataset))
            })
        };
        self.datasets[dataset].shape().len() == 1
            && (dim_names == Some(&[own_name.to_owned()]) || listed_by_others())
    }

    fn dimension_names(
        &self,
        dataset: usize,
        listed: Option<&[usize]>,
        warnings: &mut Vec<String>,
    ) -> Vec<String> {
        let rank = self.datasets[dataset].shape().len();
        let mut names: Vec<String> = match &self.metadata_of(dataset).dim_names {
            Some(names) if names.len() == rank => names.clone(),
            other => {
                if let Some(names) = other {
                    warnings
                        .push(format!("{} dimension names for {rank} axes; ignored", names.len()));
                }
                let listed_name = |axis: usize| {
                    listed.map_or(String::new(), |ids| {
                        base_name(self.datasets[ids[axis]].name()).to_owned()
                    })
                };
                (0..rank).map(listed_name).collect()
            }
        };
        for axis in 0..rank {
            if names[axis].is_empty() {
                names[axis] = format!("dim_{axis}");
            }
            if names[..axis].contains(&names[axis]) {
                let unique = format!("{}_{axis}", names[axis]);
                warnings.push(format!(
                    "dimension \"{}\" occurs twice; axis {axis} is \"{unique}\"",
                    names[axis]
                ));
                names[axis] = unique;
            }
        }
        names
    }

    fn footer_labels(
        &self,
        dataset: usize,
        axis: usize,
        name: &str,
        warnings: &mut Vec<String>,
    ) -> Option<LabelSource> {
        let metadata = self.metadata_of(dataset);
        let len = self.datasets[dataset].shape()[axis];
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
            let is_number = |label: &String| label.parse::<f64>().is_ok();
            if self.is_coordinate(dataset) && labels.iter().all(is_number) {
                return Some(LabelSource::Dataset(dataset));
            }
            return Some(LabelSource::Text(labels.to_vec()));
        }
        None
    }

    /// The 1-d dataset of `len` elements called `name` in the group of `dataset` or a parent of it.
    fn sibling(&self, dataset: usize, name: &str, len: u64) -> Option<usize> {
        let mut group = self.datasets[dataset].name();
        loop {
            group = group.rsplit_once('/').map_or("", |(parent, _)| parent);
            if let Some(id) = self.line(&join(group, name), len) {
                return Some(id);
            }
            if group.is_empty() {
                return None;
            }
        }
    }

    /// The datasets that HDF5's `coordinates` attribute names, if there is one for each axis, of
    /// the axis' length, in order.
    fn coordinates_attribute(&self, dataset: usize) -> Option<Vec<usize>> {
        let names = self.metadata_of(dataset).attrs.get("coordinates")?;
        let names: Vec<&str> = names.split_whitespace().collect();
        let shape = self.datasets[dataset].shape();
        if names.len() != shape.len() {
            return None;
        }
        let find = |(name, &len): (&&str, &u64)| {
            self.line(&join("coordinates", name), len).or_else(|| self.sibling(dataset, name, len))
        };
        names.iter().zip(shape).map(find).collect()
    }

    /// The readable 1-d dataset with this exact name and length.
    fn line(&self, name: &str, len: u64) -> Option<usize> {
        let id = self.dataset_id(name)?;
        let dataset = &self.datasets[id];
        (dataset.shape() == [len] && dataset.grid().is_ok()).then_some(id)
    }
}

fn join(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// The part of a dataset's name after its groups.
fn base_name(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, base)| base)
}
