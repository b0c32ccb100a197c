//! [`Stack`]: files that lack a dimension follow one another along a new one.
//!
//! ```text
//!   sst_20240101.nc   sst (y, x)                             sst (time, y, x)
//!   sst_20240102.nc   sst (y, x)    ── labels of time ──▶    2024-01-01   cells of the first file
//!                                                            2024-01-02   cells of the second
//! ```
//!
//! The new dimension is the first. Each file has one label there, so that the other steps of a mosaic concatenate the files.

use super::file_arrays::FileArrays;
use super::file_label::FileLabel;
use crate::array::{Dimension, GridArray, Labels};
use crate::error::{Error, Result};
use crate::grid::{AxisChunks, ChunkGrid};

/// A new dimension, and where the label of each file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    dimension: String,
    labels: StackLabels,
}

/// Where the label of each file along a new dimension comes from.
///
/// A further source would be a breaking change: each is found in its own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StackLabels {
    /// The only value of the variable that has the name of the dimension.
    Coordinate,
    /// The attribute of the file with this name.
    Attribute(String),
    /// These texts, in the order of the files.
    Given(Vec<String>),
    /// A part of the path of the file.
    Path(FileLabel),
}

impl Stack {
    /// Parses the option `stack`:
    ///
    /// | text | label of a file |
    /// |---|---|
    /// | `time` | the only value of its variable `time` |
    /// | `time=@start` | its attribute `start` |
    /// | `run=a,b,c` | the first of these for the first file |
    /// | `sst_{time:%Y%m%d}.nc` | the part of its path |
    ///
    /// ```
    /// use gridfusion_core::source::Stack;
    ///
    /// assert_eq!(Stack::parse("sst_{time:%Y%m%d}.nc")?.dimension(), "time");
    /// assert!(Stack::parse("{time}_{run}.nc").is_err());
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` for a text of another form.
    pub fn parse(text: &str) -> Result<Self> {
        if text.contains('{') {
            let (dimension, label) = FileLabel::parse("stack", text)?;
            return Ok(Self { dimension, labels: StackLabels::Path(label) });
        }
        let (dimension, labels) = match text.split_once('=') {
            None => (text, StackLabels::Coordinate),
            Some((dimension, labels)) => (
                dimension,
                match labels.trim().strip_prefix('@') {
                    Some(attribute) => StackLabels::Attribute(attribute.to_owned()),
                    None => {
                        let labels = labels.split(',').map(|label| label.trim().to_owned());
                        StackLabels::Given(labels.collect())
                    }
                },
            ),
        };
        let dimension = dimension.trim().to_owned();
        if dimension.is_empty() {
            return Err(Error::usage(format!(
                "option 'stack' is '{text}', expected a dimension, such as 'time', 'time=@attribute', 'run=a,b' or \
                 'sst_{{time:%Y%m%d}}.nc'"
            )));
        }
        Ok(Self { dimension, labels })
    }

    /// The name of the new dimension.
    #[must_use]
    pub fn dimension(&self) -> &str {
        &self.dimension
    }

    /// Where labels come from.
    #[must_use]
    pub fn labels(&self) -> &StackLabels {
        &self.labels
    }

    /// Returns the option for some of the files, by their numbers; `None` if it is the same one.
    #[must_use]
    pub fn of_files(&self, numbers: &[usize]) -> Option<String> {
        let StackLabels::Given(labels) = &self.labels else { return None };
        let of_files: Vec<&str> =
            numbers.iter().filter_map(|at| labels.get(*at)).map(String::as_str).collect();
        let is_same = of_files.len() == labels.len();
        (!is_same).then(|| format!("{}={}", self.dimension, of_files.join(",")))
    }

    /// Returns the new dimension with these labels, one per file.
    #[must_use]
    pub fn along(&self, labels: Labels) -> Dimension {
        Dimension::labelled(&self.dimension, labels)
    }

    /// Adds the new dimension, with the label of the file of this number, to all variables of the file.
    ///
    /// # Errors
    /// `Usage` for a file that has such a dimension; `Internal` for a number beyond the labels.
    pub fn stacked(mut file: FileArrays, along: &Dimension, number: usize) -> Result<FileArrays> {
        let label = along.labels().part(number as u64..number as u64 + 1)?;
        let dim = along.with_labels(label);
        // A coordinate that gives the labels is the new dimension.
        file.keep_optional(|name| name != dim.name());
        file.try_map(|array| with_dimension(array, &dim))
    }
}

/// Adds a first dimension of one label.
fn with_dimension(array: GridArray, dim: &Dimension) -> Result<GridArray> {
    if array.dims().iter().any(|own| own.name() == dim.name()) {
        let (name, dim) = (array.name(), dim.name());
        return Err(Error::usage(format!(
            "\"{name}\" has the dimension \"{dim}\", so option 'stack' cannot add it; leave the option out to concatenate \
             the files along their dimension"
        )));
    }
    let dims: Vec<Dimension> = std::iter::once(dim).chain(array.dims()).cloned().collect();
    let lens: Vec<u64> = dims.iter().map(Dimension::len).collect();
    let one = AxisChunks::whole(1);
    let chunks = std::iter::once(one).chain(array.grid().axis_chunks().iter().cloned()).collect();
    let chunks = ChunkGrid::with_axis_chunks(&lens, chunks)?;
    let name = array.name().to_owned();
    array.over(&dims, &chunks, &name)
}
