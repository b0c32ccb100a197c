//! [`KnownFiles`]: the files of a table of many, without opening them.
//!
//! ```text
//!   process that plans                                   process that reads
//!   open all ──▶ Arrangement ──▶ KnownFiles ── bytes ──▶ open the first ──▶ Arrangement
//!                                                        open others when their chunks are located (`later`)
//! ```

use std::sync::{Arc, OnceLock};

use arrow::array::ArrayRef;

use super::combine::Arrangement;
use super::file_arrays::FileArrays;
use super::own_fill::differs_in_fill_only;
use crate::array::{Contents, GridArray, Value};
use crate::error::Error;
use crate::grid::ChunkGrid;
use crate::tile::{ObjectVersion, Objects};

/// The files of a table of many, with all facts that it takes to combine them again.
#[derive(Debug)]
pub struct KnownFiles {
    /// The axis along which files are concatenated.
    pub axis: usize,
    /// The labels of all files on that axis; `None` if they count on from those of the first.
    pub labels: Option<ArrayRef>,
    /// The names of the variables, in the order of the table's columns.
    pub variables: Vec<String>,
    /// The files, in the order of the axis; at least two.
    pub files: Vec<KnownFile>,
    /// The labels as bytes of a plan, once they were needed; `None` if they are too many.
    pub label_bytes: OnceLock<Option<Vec<u8>>>,
}

/// A file of a table of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// Its number among the places of the table.
    pub place: usize,
    /// Its name in the column `_file`.
    pub name: String,
    /// The number of its labels on the axis.
    pub len: u64,
    /// The chunk grid of each variable.
    pub grids: Vec<ChunkGrid>,
    /// Whether all variables are in the same objects.
    pub shares_objects: bool,
    /// Whether its chunks are read without waiting.
    pub is_resident: bool,
    /// Whether its chunks are read over a network.
    pub is_remote: bool,
    /// The versions of the objects that opening it reads. In another process, those of the objects with chunks follow.
    pub versions: Vec<ObjectVersion>,
    /// The objects with chunks.
    pub contents: Contents,
}

impl PartialEq for KnownFiles {
    /// Compares the files. Their labels are equal if their versions are.
    fn eq(&self, other: &Self) -> bool {
        (self.axis, &self.variables, &self.files) == (other.axis, &other.variables, &other.files)
    }
}

impl Eq for KnownFiles {}

impl KnownFiles {
    /// Returns what is known of arranged files. `None` if there is only one, or if files store a value in several forms. Also
    /// `None` if arrays are not those of the files.
    pub fn try_new(arranged: &Arrangement) -> Option<Self> {
        let Arrangement { files, places, axis, labels, is_adapted } = arranged;
        if *is_adapted {
            return None;
        }
        let labels = match labels.as_ref()? {
            counted if counted.is_counted() => None,
            labels => Some(Arc::clone(labels.in_memory()?)),
        };
        let first = files.first()?;
        if files.iter().any(|file| has_other_forms(file, first)) {
            return None;
        }
        let variables = first.arrays.iter().map(|array| array.name().to_owned()).collect();
        let known =
            files.iter().zip(places).map(|(file, &place)| KnownFile::try_new(file, place, *axis));
        let files = known.collect::<Option<_>>()?;
        Some(Self { axis: *axis, labels, variables, files, label_bytes: OnceLock::new() })
    }
}

impl KnownFile {
    fn try_new(file: &FileArrays, place: usize, axis: usize) -> Option<Self> {
        let objects: Vec<&Arc<Objects>> =
            file.arrays.iter().map(GridArray::shared_objects).collect();
        if objects.iter().any(|it| it.members().is_some()) {
            return None;
        }
        Some(Self {
            place,
            name: file.name.clone(),
            len: file.dims().get(axis)?.len(),
            grids: file.arrays.iter().map(|array| array.grid().clone()).collect(),
            shares_objects: objects.windows(2).all(|pair| Arc::ptr_eq(pair[0], pair[1])),
            is_resident: objects.iter().all(|it| it.is_resident()),
            is_remote: objects.iter().any(|it| it.is_remote()),
            versions: file.versions(),
            contents: file.contents(),
        })
    }

    /// Returns the error for a file that is not as it was when the query was planned, although its version may be the same.
    pub(super) fn changed(&self, reason: &str) -> Error {
        let reason = format!("{reason}, unlike when the query was planned");
        ObjectVersion::changed(&self.name, &reason)
    }
}

/// Whether a file stores a value in another form than the first file.
fn has_other_forms(file: &FileArrays, first: &FileArrays) -> bool {
    fn values(file: &FileArrays) -> impl Iterator<Item = &Value> {
        file.arrays.iter().flat_map(GridArray::values)
    }
    let is_other = |(a, b): (&Value, &Value)| {
        let is_stored_alike = a.cells == b.cells || differs_in_fill_only(&a.cells, &b.cells);
        a.column != b.column || !a.forms.is_empty() || !is_stored_alike
    };
    values(file).zip(values(first)).any(is_other)
}
