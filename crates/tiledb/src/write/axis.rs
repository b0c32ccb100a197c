//! [`Axes`]: the dimensions of a new array, which count, and the labels that do not.
//!
//! ```text
//!   labels                      dimension             labels of their own
//!   2001 2002 2003              year  2001 to 2003
//!   00:00 01:00 02:00           time  0 to 2 hours
//!   59.5 60.0 60.5              lat_index  0 to 2     lat: __labels/l0
//! ```
//!
//! The coordinates of a dense array are whole numbers without gaps, all of one type. Labels that are such numbers become the domain.
//! If those of some dimension are not, all dimensions count from 0, and have dimension labels: arrays of one dimension, sorted.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit as ArrowUnit, UInt64Type};
use gridfusion_core::array::{LabelOrder, Labels, failed_to, with_one_zero};
use gridfusion_core::format::{TimeUnit, bound};
use gridfusion_core::verify::CellStatistics;
use gridfusion_core::write::{NewArray, NewDimension};
use gridfusion_core::{Error, Result};

use super::cell_type::CellType;
use crate::bytes::{
    Datatype, DimensionDomain, DimensionLabel, DimensionLabelOrder, DimensionSchema, Pipeline,
    ValuesPerCell,
};
use crate::labels::{LABEL_ATTRIBUTE, MOST_LABELS, index_name};

/// The dimensions of a new array.
#[derive(Debug)]
pub(super) struct Axes {
    pub(super) dimensions: Vec<DimensionSchema>,
    /// The labels of dimensions that count from 0.
    pub(super) labels: Vec<DimensionLabel>,
}

impl Axes {
    /// Finds the dimensions of an array.
    ///
    /// # Errors
    /// `Unsupported` for labels that TileDB does not have, `Usage` if a name is taken.
    pub(super) fn try_new(array: &NewArray, can_grow: bool) -> Result<Self> {
        let lens = array.grid().shape();
        if let Some(axis) = lens.iter().position(|len| *len == 0) {
            let name = &array.dimensions()[axis].name;
            let message = format!("a dimension \"{name}\" without labels in a TileDB array");
            return Err(Error::unsupported(message));
        }
        if lens.is_empty() {
            return Err(Error::unsupported("a TileDB array without dimensions"));
        }
        // TileDB 2.30 does not come to an end where the last coordinate is the greatest of its type.
        let ends = |(datatype, low): &(Datatype, i128), len: u64| {
            low + i128::from(len) <= greatest(*datatype)
        };
        let counts = array.dimensions().iter().zip(lens).map(|(it, len)| {
            let counts = counts_of(&it.labels)?.into_iter();
            Ok(counts.filter(|it| ends(it, *len)).collect())
        });
        let counts = counts.collect::<Result<Vec<Vec<_>>>>()?;
        let is_common = |datatype: &Datatype| {
            counts.iter().all(|them| them.iter().any(|(known, _)| known == datatype))
        };
        let common = counts[0].iter().map(|(datatype, _)| *datatype).find(is_common);
        // TileDB's Python package reads no current domain of times.
        let common = common.filter(|datatype| !can_grow || !datatype.is_temporal());
        let first = |axis: usize, datatype: Datatype| {
            counts[axis].iter().find(|(known, _)| *known == datatype).map_or(0, |(_, low)| *low)
        };
        let (mut dimensions, mut labels) = (vec![], vec![]);
        for (axis, (new, extent)) in
            array.dimensions().iter().zip(array.grid().chunk_shape()).enumerate()
        {
            let (name, datatype, low) = match common {
                Some(datatype) => (new.name.clone(), datatype, first(axis, datatype)),
                None => {
                    labels.push(dimension_label(axis, labels.len(), new)?);
                    (free_name(array, &new.name)?, Datatype::UInt64, 0)
                }
            };
            let room = if can_grow && axis == 0 { ROOM } else { 0 };
            dimensions.push(dimension(name, datatype, low, lens[axis], extent, room));
        }
        Ok(Self { dimensions, labels })
    }
}

/// Coordinates for labels that may be appended.
const ROOM: u64 = 1 << 40;

/// The tiles whose coordinates may have their labels in one tile.
const TILES_OF_LABELS: u128 = 1 << 16;

/// Returns a dimension of `len` coordinates from `low` on, and `room` more if the type has them.
fn dimension(
    name: String,
    datatype: Datatype,
    low: i128,
    len: u64,
    extent: u64,
    room: u64,
) -> DimensionSchema {
    let extent = fitting_extent(datatype, low, len, extent);
    // The last tile ends before the greatest coordinate of the type.
    let tiles = (greatest(datatype) - low) / i128::from(extent);
    let most = (tiles * i128::from(extent)).max(i128::from(len));
    // Tiles of labels have many of them if the room is a multiple of many tiles.
    let whole = match room {
        0 => i128::from(len),
        _ => {
            let tiles = u128::from(extent) * TILES_OF_LABELS;
            (u128::from(len) + u128::from(room)).next_multiple_of(tiles) as i128
        }
    };
    let high = low + whole.min(most) - 1;
    let domain = DimensionDomain::Integer { low, high, extent: Some(i128::from(extent)) };
    DimensionSchema { name, datatype, domain, pipeline: Pipeline { filters: vec![] } }
}

/// Returns the greatest extent, not above `extent`, with which the last tile ends before the greatest coordinate of the type.
fn fitting_extent(datatype: Datatype, low: i128, len: u64, extent: u64) -> u64 {
    let most = greatest(datatype);
    let fits = |extent: &u64| {
        let end = low + i128::from(len.div_ceil(*extent)) * i128::from(*extent) - 1;
        end < most && i128::from(*extent) <= most
    };
    (1..=extent.clamp(1, len.max(1))).rev().find(fits).unwrap_or(1)
}

/// Returns the greatest coordinate of a type.
pub(super) fn greatest(datatype: Datatype) -> i128 {
    (1 << (8 * datatype.size() as u32 - u32::from(datatype.is_signed()))) - 1
}

/// Returns the types in which labels count up by one, and the first label in each.
pub(super) fn counts_of(labels: &ArrayRef) -> Result<Vec<(Datatype, i128)>> {
    let failed = failed_to("read labels");
    let data_type = labels.data_type();
    if data_type == &DataType::UInt64 {
        let values = labels.as_primitive::<UInt64Type>().values();
        let counts = values.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let first = values.first().filter(|_| counts);
        return Ok(first.map(|low| (Datatype::UInt64, i128::from(*low))).into_iter().collect());
    }
    let units: &[(TimeUnit, i64)] = match data_type {
        DataType::Date32 => &[(TimeUnit::Day, 1), (TimeUnit::Week, 7)],
        DataType::Timestamp(ArrowUnit::Second, _) => {
            &[(TimeUnit::Second, 1), (TimeUnit::Minute, 60), (TimeUnit::Hour, 3600)]
        }
        DataType::Timestamp(ArrowUnit::Millisecond, _) => &[(TimeUnit::Millisecond, 1)],
        DataType::Timestamp(ArrowUnit::Microsecond, _) => &[(TimeUnit::Microsecond, 1)],
        DataType::Timestamp(ArrowUnit::Nanosecond, _) => &[(TimeUnit::Nanosecond, 1)],
        it if it.is_integer() => &[],
        _ => return Ok(vec![]),
    };
    let cell = CellType::new(data_type)?;
    let numbers = cast(&cell.stored(labels)?, &DataType::Int64).map_err(failed)?;
    let numbers = numbers.as_primitive::<Int64Type>().values();
    let Some(first) = numbers.first().copied() else { return Ok(vec![]) };
    let counts = |step: i64| {
        first % step == 0
            && numbers.windows(2).all(|pair| pair[0].checked_add(step) == Some(pair[1]))
    };
    if units.is_empty() {
        let low = (cell.datatype, i128::from(first));
        return Ok(Some(low).filter(|_| counts(1)).into_iter().collect());
    }
    let of_unit = |(unit, step): &(TimeUnit, i64)| {
        counts(*step).then(|| (Datatype::DateTime(*unit), i128::from(first / step)))
    };
    // The least time stands for none.
    let counted = units.iter().filter_map(of_unit).filter(|_| first != i64::MIN);
    Ok(counted.collect())
}

/// Returns the name of a dimension that counts from 0, and has labels of this name.
fn free_name(array: &NewArray, name: &str) -> Result<String> {
    let index = index_name(name);
    let dimensions = array.dimensions().iter().map(|it| &it.name);
    let mut taken = dimensions.chain(array.variables().iter().map(|it| &it.name));
    match taken.any(|it| *it == index) {
        false => Ok(index),
        true => Err(Error::usage(format!(
            "\"{index}\" is the name of the TileDB dimension with the labels \"{name}\"; name the column otherwise: AS …"
        ))),
    }
}

fn dimension_label(axis: usize, number: usize, new: &NewDimension) -> Result<DimensionLabel> {
    let name = new.name.clone();
    if new.labels.len() as u64 > MOST_LABELS {
        return Err(Error::unsupported(format!(
            "{} labels \"{name}\" in a TileDB array, and at most {MOST_LABELS} are read; number them, or write Zarr",
            new.labels.len()
        )));
    }
    let (datatype, is_text) = label_type(new)?;
    // -0.0 is equal to 0.0.
    let labels = with_one_zero(ArrayRef::clone(&new.labels))?;
    let order = match Labels::from_array(labels)?.order() {
        LabelOrder::Ascending => DimensionLabelOrder::Increasing,
        LabelOrder::Descending => DimensionLabelOrder::Decreasing,
        LabelOrder::Unsorted => {
            return Err(Error::unsupported(format!(
                "the labels \"{name}\" neither ascend nor descend, and TileDB has no other ones; ORDER BY {name}, number them, or write Zarr"
            )));
        }
    };
    Ok(DimensionLabel {
        dimension: axis,
        name,
        uri: format!("__labels/l{number}"),
        relative: true,
        attribute: LABEL_ATTRIBUTE.to_owned(),
        order,
        datatype,
        values_per_cell: if is_text { ValuesPerCell::Variable } else { ValuesPerCell::Fixed(1) },
    })
}

/// Returns the type of labels that TileDB can have, and whether they are texts.
fn label_type(new: &NewDimension) -> Result<(Datatype, bool)> {
    let NewDimension { name, labels, .. } = new;
    let cell = CellType::new(labels.data_type());
    let cell = cell.map_err(|error| error.about(&format!("the labels \"{name}\"")))?;
    match cell.datatype {
        Datatype::Bool | Datatype::Time(_) => Err(Error::unsupported(format!(
            "labels \"{name}\" of {} in a TileDB array; cast the column to a number",
            labels.data_type()
        ))),
        _ if cell.is_text() => {
            let texts = cell.stored(labels)?;
            let odd = texts.as_string::<i32>().iter().flatten().find(|text| !text.is_ascii());
            match odd {
                None => Ok((Datatype::StringAscii, true)),
                Some(odd) => Err(Error::unsupported(format!(
                    "the label \"{odd}\" of \"{name}\" is not ASCII, as TileDB's labels are; number the labels, or write Zarr"
                ))),
            }
        }
        datatype => match has_missing(&cell, labels)? {
            false => Ok((datatype, false)),
            true => Err(Error::unsupported(format!(
                "a label of \"{name}\" is no number, or the least time, which stands for none in TileDB"
            ))),
        },
    }
}

/// Whether a label is NaN, or the time that stands for none.
pub(super) fn has_missing(cell: &CellType, labels: &ArrayRef) -> Result<bool> {
    let (Some(element), Some(fill)) = (cell.element, cell.natural_fill()) else { return Ok(false) };
    let bytes = cell.bytes(&cell.stored(labels)?, &fill)?;
    let fill = bound(&cell.bytes(&fill, &fill)?);
    Ok(CellStatistics::new(element, &bytes, Some(fill), None).nulls > 0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Date32Array, Float64Array, Int8Array, Int32Array, TimestampSecondArray, UInt64Array,
    };

    use super::*;

    #[test]
    fn labels_that_count_are_found() {
        let of = |labels: ArrayRef| counts_of(&labels).unwrap();
        let hours = TimestampSecondArray::from(vec![7200, 10800]);
        assert_eq!(of(Arc::new(hours)), [(Datatype::DateTime(TimeUnit::Hour), 2)]);
        let late = TimestampSecondArray::from(vec![7201, 10801]);
        assert_eq!(of(Arc::new(late)), []);
        let weeks = Date32Array::from(vec![-7, 0, 7]);
        assert_eq!(of(Arc::new(weeks)), [(Datatype::DateTime(TimeUnit::Week), -1)]);
        assert_eq!(of(Arc::new(Int32Array::from(vec![5]))), [(Datatype::Int32, 5)]);
        assert_eq!(of(Arc::new(Int32Array::from(vec![5, 4]))), []);
        assert_eq!(of(Arc::new(Float64Array::from(vec![5.0, 6.0]))), []);
        let great = UInt64Array::from(vec![u64::MAX - 1, u64::MAX]);
        assert_eq!(of(Arc::new(great)), [(Datatype::UInt64, i128::from(u64::MAX - 1))]);
        let none = TimestampSecondArray::from(vec![i64::MIN]);
        assert_eq!(of(Arc::new(none)), []);
        assert_eq!(of(Arc::new(Int8Array::from(vec![126, 127])))[0].1, 126);
    }

    #[test]
    fn the_last_tile_ends_before_the_end_of_the_type() {
        assert_eq!(fitting_extent(Datatype::Int8, -128, 255, 200), 85);
        assert_eq!(fitting_extent(Datatype::UInt8, 250, 5, 4), 1);
        assert_eq!(fitting_extent(Datatype::UInt64, 0, 10, 4), 4);
        assert_eq!(fitting_extent(Datatype::Int32, 0, 3, 100), 3);
        let high = i128::from(u64::MAX);
        assert_eq!(fitting_extent(Datatype::UInt64, high - 4, 4, 3), 2);
    }
}
