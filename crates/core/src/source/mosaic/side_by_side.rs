//! [`GridArray::side_by_side`]: arrays as one, for joins on their dimensions.

use std::ops::Range;

use super::file_arrays::FileArrays;
use super::options::MosaicOptions;
use crate::array::GridArray;
use crate::error::{Error, Result};

/// One of the arrays that are put side by side.
#[derive(Debug, Clone, Copy)]
pub struct AlignedArray<'a> {
    /// The array.
    pub array: &'a GridArray,
    /// For each of its axes, the axis of the first array.
    pub axes: &'a [usize],
    /// For each of its axes, the indices whose labels the other arrays have, too.
    pub ranges: &'a [Range<u64>],
}

impl GridArray {
    /// Puts arrays side by side: the variables of each, in order, as columns over the dimensions of the first. Axes that an
    /// array lacks are broadcast.
    ///
    /// ```text
    ///   temperature (time, station)   axes 0 1   1990 … 2020   ──▶   time, station, temperature, rain, elevation
    ///   rain (time, station)          axes 0 1   2000 … 2025         2000 … 2020
    ///   elevation (station)           axes 1
    /// ```
    ///
    /// # Errors
    /// `Unsupported` if an array has files that store a value in several forms: a chunk of the result may lie in several of them.
    /// `Usage` if labels of two axes differ. `Internal` without arrays, or for axes and indices that an array does not have.
    pub fn side_by_side(sides: &[AlignedArray<'_>]) -> Result<Self> {
        let slice =
            |side: &AlignedArray<'_>| side.array.shared().with_variable_name().sliced(side.ranges);
        let Some((first, others)) = sides.split_first() else {
            return Err(Error::internal("no arrays to put side by side"));
        };
        let has_forms = |side: &AlignedArray<'_>| {
            side.array.values().iter().any(|value| !value.forms.is_empty())
        };
        if sides.iter().any(has_forms) {
            return Err(Error::unsupported("files that store a value in several forms"));
        }
        let first = slice(first)?;
        let mut parts = vec![];
        for side in others {
            parts.push(slice(side)?.over_dims_of(&first, side.axes)?.broadcast(&first)?);
        }
        parts.insert(0, first);
        let names: Vec<&str> = sides.iter().map(|side| side.array.name()).collect();
        let name = names.join(" + ");
        // The column of an index stands for that of either array.
        let options = MosaicOptions { index_columns: true, ..MosaicOptions::default() };
        Self::combine(name.clone(), vec![FileArrays::new(name, parts)], &options)
    }
}
