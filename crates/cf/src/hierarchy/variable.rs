//! Variables and their dimensions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attribute::Attributes;
use super::cell_type::CellType;
use gridfusion_core::Error;

/// The groups and variables of a file or a store.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Hierarchy {
    /// The variables, in the order of the file; a format locates chunks of them by their place here.
    pub variables: Vec<Variable>,
    /// The arrays that cannot be variables, such as those of an unknown type.
    pub unreadable: Vec<Unreadable>,
    /// The attributes of groups, by path. The path of the root group is empty. The paths of one group share them.
    pub groups: BTreeMap<String, Arc<Attributes>>,
}

/// An array that cannot be read, with the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unreadable {
    /// The path of the array, as [`Variable::path`].
    pub path: String,
    /// The reason, which names the object but not the folder.
    pub error: Error,
}

/// An array with named dimensions.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variable {
    /// The names of its groups and its own, with `/` between them: `forecast/t2m`.
    pub path: String,
    /// The axes in row-major order: the last one varies fastest. A scalar has none.
    pub axes: Vec<Axis>,
    /// Elements per axis of a chunk, each at least 1. Chunks at the end of an axis may be cut off.
    pub chunk_shape: Vec<u64>,
    /// The type of a cell.
    pub cell: CellType,
    /// The bytes of a cell that was never written: as many as a cell has, little-endian.
    pub fill: Vec<u8>,
    /// Whether a cell with the bytes of `fill` is missing data, whatever the attributes are.
    pub fill_is_missing: bool,
    /// The attributes, such as `units`. Variables that are one array under several paths share them.
    pub attributes: Arc<Attributes>,
}

/// An axis of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Axis {
    /// The name of its dimension; `None` if the file has no name for it.
    pub name: Option<String>,
    /// The number of elements along the axis.
    pub len: u64,
    /// The path of the variable that labels the axis, if the file names it. `None` stands for the variable of one
    /// dimension that has the dimension's name, in the same group or a parent.
    pub labels: Option<String>,
}

impl Unreadable {
    /// Returns the array at a path, with the reason.
    pub const fn new(path: String, error: Error) -> Self {
        Self { path, error }
    }
}

impl Axis {
    /// Returns an axis of this name, if it has one, and length. The file does not name its labels.
    pub const fn new(name: Option<String>, len: u64) -> Self {
        Self { name, len, labels: None }
    }
}

impl Variable {
    /// Returns an array of one chunk, without attributes. `fill` has the bytes of a cell that was never written, which is not
    /// missing data.
    pub fn new(path: String, axes: Vec<Axis>, cell: CellType, fill: Vec<u8>) -> Self {
        Self {
            path,
            chunk_shape: axes.iter().map(|axis| axis.len.max(1)).collect(),
            axes,
            cell,
            fill,
            fill_is_missing: false,
            attributes: Arc::default(),
        }
    }

    /// Returns the number of elements along each axis.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Returns the last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// Returns the path of the group that holds the variable; empty for the root.
    pub fn group(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(group, _)| group)
    }
}
