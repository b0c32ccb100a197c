//! [`FileArrays`]: the opened arrays of one file.

use std::collections::{HashMap, HashSet};

use super::options::MosaicOptions;
use crate::array::{Contents, Dimension, GridArray};
use crate::error::{Error, Result};
use crate::io::last_part;
use crate::source::array_format::PinnedOption;
use crate::source::opened_array::BesideArray;
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
    /// The arrays that are beside the others, which come first.
    pub(super) beside: Vec<Beside>,
    /// Options that name what was opened; see [`ArrayGroup::pinned_options`](crate::source::ArrayGroup::pinned_options).
    pub(super) pinned: Vec<PinnedOption>,
}

/// An array that is repeated along dimensions of the variables beside which it is a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beside {
    /// The name of the array.
    pub(super) name: String,
    /// The number of its cells, each once.
    pub(super) cells: u64,
    /// Whether a table does without it rather than fail.
    pub(super) is_optional: bool,
}

impl FileArrays {
    /// Returns the variables of the file `name`.
    #[must_use]
    pub fn new(name: String, arrays: Vec<GridArray>) -> Self {
        Self { name, arrays, unreadable: vec![], beside: vec![], pinned: vec![] }
    }

    /// Adds arrays beside the variables.
    ///
    /// # Errors
    /// `Unsupported` for an array that is not a full grid.
    pub(crate) fn with_beside(mut self, beside: Vec<BesideArray>) -> Result<Self> {
        for BesideArray { array, cells, is_optional } in beside {
            let array = array.into_grid()?.with_variable_name();
            self.beside.push(Beside { name: array.name().to_owned(), cells, is_optional });
            self.arrays.push(array);
        }
        Ok(self)
    }

    /// Returns the facts about the array of this name if it is beside the others.
    pub(super) fn beside(&self, name: &str) -> Option<&Beside> {
        self.beside.iter().find(|it| it.name == name)
    }

    /// Whether a table does without the array of this name rather than fail.
    pub(super) fn is_optional(&self, name: &str) -> bool {
        self.beside(name).is_some_and(|it| it.is_optional)
    }

    /// The arrays that a table must have.
    pub(super) fn required(&self) -> impl Iterator<Item = &GridArray> {
        self.arrays.iter().filter(|array| !self.is_optional(array.name()))
    }

    /// Leaves out the optional arrays that `keep` does not name.
    pub(super) fn keep_optional(&mut self, keep: impl Fn(&str) -> bool) {
        let beside = std::mem::take(&mut self.beside);
        let (kept, dropped) =
            beside.into_iter().partition::<Vec<_>, _>(|it| !it.is_optional || keep(&it.name));
        self.arrays.retain(|array| !dropped.iter().any(|it| it.name == array.name()));
        self.beside = kept;
    }

    /// Sets the variables that cannot be read.
    #[must_use]
    pub(crate) fn with_unreadable(self, unreadable: Vec<(String, Error)>) -> Self {
        Self { unreadable, ..self }
    }

    /// Sets options that name what was opened.
    #[must_use]
    pub(crate) fn with_pinned_options(self, pinned: Vec<PinnedOption>) -> Self {
        Self { pinned, ..self }
    }

    /// The options that name what was opened, for plans of other processes. One without a value must be left out.
    pub fn pinned_options(&self) -> &[PinnedOption] {
        &self.pinned
    }

    /// Returns the file with other variables in place of each.
    ///
    /// # Errors
    /// The first error of `map`, with the name of the file.
    pub(super) fn try_map(self, map: impl Fn(GridArray) -> Result<GridArray>) -> Result<Self> {
        let Self { name, arrays, unreadable, beside, pinned } = self;
        let arrays = arrays.into_iter().map(map).collect::<Result<_>>();
        let arrays = arrays.map_err(|error| error.in_file(&name))?;
        Ok(Self { name, arrays, unreadable, beside, pinned })
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
        let mut variables = self.arrays.iter().filter(|it| self.beside(it.name()).is_none());
        let name = match (variables.next(), variables.next()) {
            (Some(only), None) => only.name(),
            _ => last_part(&self.name),
        };
        GridArray::combine(name.to_owned(), vec![self], options)
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
