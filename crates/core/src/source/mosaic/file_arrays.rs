//! [`FileArrays`]: the opened arrays of one file.

use std::collections::{HashMap, HashSet};

use super::options::MosaicOptions;
use crate::array::{Contents, Dimension, GridArray};
use crate::error::{Error, Result};
use crate::io::last_part;
use crate::tile::ObjectVersion;

/// The variables of one file that become columns.
#[derive(Debug)]
pub struct FileArrays {
    /// The path of the file, or its URL without secrets, for the column `_file` and for errors.
    pub name: String,
    /// The variables; at least one.
    pub arrays: Vec<GridArray>,
    /// The names of variables that the file has and that cannot be read, with the reasons. Known where files may lack
    /// variables: this file does not lack them.
    pub(crate) unreadable: Vec<(String, Error)>,
}

impl FileArrays {
    /// Returns the variables of the file `name`.
    #[must_use]
    pub fn new(name: String, arrays: Vec<GridArray>) -> Self {
        Self { name, arrays, unreadable: vec![] }
    }

    /// Sets the variables that cannot be read.
    #[must_use]
    pub(crate) fn with_unreadable(self, unreadable: Vec<(String, Error)>) -> Self {
        Self { unreadable, ..self }
    }

    /// Returns the file with other variables in place of each.
    ///
    /// # Errors
    /// The first error of `map`, with the name of the file.
    pub(super) fn try_map(self, map: impl Fn(GridArray) -> Result<GridArray>) -> Result<Self> {
        let Self { name, arrays, unreadable } = self;
        let arrays = arrays.into_iter().map(map).collect::<Result<_>>();
        Ok(Self { arrays: arrays.map_err(|error| error.in_file(&name))?, name, unreadable })
    }

    /// Whether the place is a single array, whose name is that of its file or folder. It may differ from file to file.
    pub(super) fn is_one_array(&self) -> bool {
        matches!(self.arrays.as_slice(), [array] if array.name() == last_part(&self.name))
    }

    /// Makes one array of the variables. A single one needs no mosaic: its own chunks are those of the array.
    ///
    /// # Errors
    /// As [`GridArray::combine`].
    pub fn into_array(mut self, options: &MosaicOptions) -> Result<GridArray> {
        if self.arrays.len() == 1
            && !options.file_column
            && let Some(array) = self.arrays.pop()
        {
            return Ok(array);
        }
        let name = last_part(&self.name).to_owned();
        GridArray::combine(name, vec![self], options)
    }

    /// Sorts the variables in the order of `names`. Variables without a name there come last.
    pub(super) fn order_variables(&mut self, names: &[&str]) {
        let places: HashMap<&str, usize> = names.iter().copied().zip(0..).collect();
        let place = |array: &GridArray| places.get(array.name()).copied().unwrap_or(usize::MAX);
        self.arrays.sort_by_key(place);
    }

    /// The versions of the objects that opening the file has read. Variables share most of them.
    pub(super) fn versions(&self) -> Vec<ObjectVersion> {
        let mut seen = HashSet::new();
        let all = self.arrays.iter().flat_map(GridArray::versions);
        all.filter(|version| seen.insert(version.clone())).collect()
    }

    /// The chunks of all variables.
    pub(super) fn contents(&self) -> Contents {
        Contents(self.arrays.iter().flat_map(|array| array.contents().0).collect())
    }

    /// The dimensions of the first variable, which all variables share.
    pub(super) fn dims(&self) -> &[Dimension] {
        self.arrays[0].dims()
    }
}
