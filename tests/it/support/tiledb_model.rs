//! A naive model of a table over a TileDB array: its rows, computed cell by cell from the cells that
//! were written. The model shares only the parsing of options with the library.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    FixedSizeListArray, Int64Array, ListArray, PrimitiveArray, RecordBatch, StringViewArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema,
    TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use chrono::NaiveDate;
use gridfusion::ArrayOptions;

use crate::support::open::{open_options, view};

use crate::support::positions;
use crate::support::tiledb_statistics::{float, whole};
use crate::support::tiledb_writer::{
    ASCII, BOOL, Cell, DATE_TIMES, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, TIMES, TestArray,
    TestAttribute, TestFragment, TestSchema, UINT8, UINT16, UINT32, UINT64, UTF8, UTF16,
    is_temporal, width,
};

/// An array as a table with some options shows it.
pub(crate) struct Seen<'a> {
    options: &'a ArrayOptions,
    pub(crate) schema: &'a TestSchema,
    /// The visible fragments, the oldest first. Methods number them in this order.
    fragments: Vec<&'a TestFragment>,
    schemas: &'a [TestSchema],
    /// The range of coordinates per axis, both ends included; `None` if the table has no rows.
    pub(crate) window: Option<Vec<(i128, i128)>>,
}

/// The place of the cell at some coordinates among the cells of a fragment, in row-major order; `None`
/// outside of the fragment.
fn place_in(ranges: &[(i128, i128)], at: &[i128]) -> Option<usize> {
    ranges.iter().zip(at).try_fold(0, |place, ((low, high), at)| {
        let len = (high - low + 1) as usize;
        (low <= at && at <= high).then(|| place * len + (at - low) as usize)
    })
}

/// The fragments that are visible under these options, the oldest first.
fn visible<'a>(array: &'a TestArray, options: &ArrayOptions) -> Vec<&'a TestFragment> {
    let open = open_options(options);
    let inside = |(t1, t2): (u64, u64)| open.start <= t1 && open.end.is_none_or(|end| t2 <= end);
    let vacuums = array.vacuums.iter().filter(|vacuum| inside(vacuum.times));
    let gone: Vec<usize> = vacuums.flat_map(|vacuum| vacuum.fragments.clone()).collect();
    let mut numbers: Vec<usize> = (0..array.fragments.len())
        .filter(|at| inside(array.fragments[*at].times) && !gone.contains(at))
        .collect();
    numbers.sort_by_key(|at| (array.fragments[*at].times.0, array.fragment_name(*at)));
    numbers.into_iter().map(|at| &array.fragments[at]).collect()
}

impl<'a> Seen<'a> {
    pub(crate) fn new(array: &'a TestArray, options: &'a ArrayOptions) -> Self {
        let end = open_options(options).end;
        let in_time = |at: &&TestSchema| end.is_none_or(|end| at.time <= end);
        let schema = array.schemas.iter().rfind(in_time).unwrap_or(&array.schemas[0]);
        let fragments = visible(array, options);
        let domain: Vec<_> = schema.dimensions.iter().map(|axis| axis.domain).collect();
        let union = fragments
            .iter()
            .map(|fragment| fragment.ranges.clone())
            .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))).collect());
        // Fragments may reach beyond the domain.
        let clip = |ranges: Vec<(i128, i128)>| {
            ranges.iter().zip(&domain).map(|(it, to)| (it.0.max(to.0), it.1.min(to.1))).collect()
        };
        let window = match &schema.current_domain {
            Some(ranges) => Some(ranges.clone()),
            None if view(options).full_domain => Some(domain.clone()),
            None => union.map(clip),
        };
        Self { options, schema, fragments, schemas: &array.schemas, window }
    }

    /// Cells per axis.
    pub(crate) fn shape(&self) -> Vec<u64> {
        match &self.window {
            Some(window) => window.iter().map(|(low, high)| (high - low + 1) as u64).collect(),
            None => vec![0; self.schema.dimensions.len()],
        }
    }

    /// The coordinates of all rows.
    pub(crate) fn coordinates(&self) -> Vec<Vec<i128>> {
        let Some(window) = &self.window else { return vec![] };
        let at = |index: Vec<u64>| {
            index.iter().zip(window).map(|(index, range)| range.0 + i128::from(*index)).collect()
        };
        positions(&self.shape()).into_iter().map(at).collect()
    }

    /// Finds the newest visible cell of an attribute. Returns the number of the fragment, the attribute
    /// as the fragment stores it, and the cell; `None` if no visible fragment wrote the cell.
    fn newest(
        &self,
        attribute: &TestAttribute,
        at: &[i128],
    ) -> Option<(usize, &TestAttribute, &Cell)> {
        (0..self.fragments.len()).rev().find_map(|number| {
            let fragment = self.fragments[number];
            let place = place_in(&fragment.ranges, at)?;
            let attributes = &self.schemas[fragment.schema].attributes;
            let field = attributes.iter().position(|field| {
                field.name == attribute.name && field.values.is_none() == attribute.values.is_none()
            })?;
            let seen = !self.is_left_out(number, at);
            seen.then(|| (number, &attributes[field], &fragment.cells[field][place]))
        })
    }

    /// Whether a newer fragment covers all that a fragment has in the tile around `at`. The newer one
    /// hides it even without the attribute.
    fn is_left_out(&self, number: usize, at: &[i128]) -> bool {
        let in_tile = |fragment: &TestFragment| -> Vec<(i128, i128)> {
            let axes = self.schema.dimensions.iter().zip(at).zip(&fragment.ranges);
            axes.map(|((axis, at), range)| {
                let first = axis.domain.0 + (at - axis.domain.0) / axis.extent * axis.extent;
                (range.0.max(first), range.1.min(first + axis.extent - 1))
            })
            .collect()
        };
        let part = in_tile(self.fragments[number]);
        self.fragments[number + 1..].iter().any(|newer| {
            in_tile(newer).iter().zip(&part).all(|(newer, it)| newer.0 <= it.0 && it.1 <= newer.1)
        })
    }

    /// How many tiles show cells of several fragments.
    pub(crate) fn layered_tiles(&self) -> usize {
        let mut owners = std::collections::BTreeMap::<_, std::collections::BTreeSet<_>>::new();
        for at in self.coordinates() {
            let axes = at.iter().zip(&self.schema.dimensions);
            let tile: Vec<i128> =
                axes.map(|(at, axis)| (at - axis.domain.0) / axis.extent).collect();
            let newest = self.newest(&self.schema.attributes[0], &at);
            owners.entry(tile).or_default().extend(newest.map(|(number, ..)| number));
        }
        owners.values().filter(|of_tile| of_tile.len() > 1).count()
    }

    /// The number of written values that newer fragments without the attribute hide.
    pub(crate) fn hidden_cells(&self) -> usize {
        let all = self.coordinates();
        let wrote = |fragment: &TestFragment, attribute: &TestAttribute, at: &[i128]| {
            let mut fields = self.schemas[fragment.schema].attributes.iter();
            let has = fields.any(|field| field.name == attribute.name);
            has && place_in(&fragment.ranges, at).is_some()
        };
        let is_hidden = |attribute: &TestAttribute, at: &[i128]| {
            let written = self.fragments.iter().any(|fragment| wrote(fragment, attribute, at));
            written && self.newest(attribute, at).is_none()
        };
        let attributes = self.schema.attributes.iter();
        attributes.map(|it| all.iter().filter(|at| is_hidden(it, at)).count()).sum()
    }

    /// The rows of the table, in row-major order.
    ///
    /// # Errors
    ///
    /// If a column cannot hold a value, or a fragment stores its attribute with another type. The
    /// library's message must contain one of the returned texts.
    pub(crate) fn rows(&self) -> Result<RecordBatch, Vec<String>> {
        let all = self.coordinates();
        let (mut fields, mut columns, mut errors) = (vec![], vec![], vec![]);
        let mut add = |name: &str, column: ArrayRef| {
            fields.push(Field::new(name, column.data_type().clone(), true));
            columns.push(column);
        };
        for (axis, dimension) in self.schema.dimensions.iter().enumerate() {
            let bytes =
                all.iter().map(|at| Some(at[axis].to_le_bytes()[..width(dimension.code)].to_vec()));
            let bytes: Vec<Cell> = bytes.collect();
            match dimension_column(dimension.code, &bytes, self.options) {
                Ok(column) => add(&dimension.name, column),
                Err(error) => errors.push(error),
            }
        }
        for attribute in &self.schema.attributes {
            let name = if attribute.name.is_empty() { "value" } else { &attribute.name };
            match self.column(attribute, &all) {
                Ok(column) => add(name, column),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if view(self.options).read.index_columns {
            for (axis, dimension) in self.schema.dimensions.iter().enumerate() {
                let low = self.window.as_ref().map_or(0, |window| window[axis].0);
                let indices =
                    Int64Array::from_iter_values(all.iter().map(|at| (at[axis] - low) as i64));
                add(&format!("{}_idx", dimension.name), Arc::new(indices));
            }
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap())
    }

    /// The column of an attribute.
    fn column(&self, attribute: &TestAttribute, all: &[Vec<i128>]) -> Result<ArrayRef, String> {
        let never = (!attribute.nullable || attribute.fill_valid).then(|| attribute.fill.clone());
        let cell = |at: &Vec<i128>| match self.newest(attribute, at) {
            None => Ok(never.clone()),
            Some((_, field, cell)) if is_read_as(field, attribute) => Ok(cell.clone()),
            Some(_) => Err("but not in the array's schema".to_owned()),
        };
        let cells: Vec<Cell> = all.iter().map(cell).collect::<Result<_, _>>()?;
        attribute_column(attribute, cells, self.options)
    }
}

/// The type code that decides the column's type; with `time_as_integer`, times become integers.
fn shown(code: u8, options: &ArrayOptions) -> u8 {
    const DATETIME_AS: u8 = 30;
    if view(options).time_as_integer && is_temporal(code) { DATETIME_AS } else { code }
}

/// The column of a dimension with these coordinates.
///
/// # Errors
///
/// If the column cannot hold a coordinate. The library's message must contain the returned text.
pub(crate) fn dimension_column(
    code: u8,
    coordinates: &[Cell],
    options: &ArrayOptions,
) -> Result<ArrayRef, String> {
    match code {
        ASCII => {
            let texts = coordinates.iter().flatten().map(|bytes| text(ASCII, bytes));
            let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
            Ok(Arc::new(StringViewArray::from_iter_values(texts)))
        }
        _ => scalars(shown(code, options), coordinates),
    }
}

/// The column of an attribute with these cells.
///
/// # Errors
///
/// If the column cannot hold a value. The library's message must contain the returned text.
pub(crate) fn attribute_column(
    attribute: &TestAttribute,
    cells: Vec<Cell>,
    options: &ArrayOptions,
) -> Result<ArrayRef, String> {
    let read = view(options).read;
    // The content of some cells makes them NULL.
    let is_null = |bytes: &[u8]| {
        let missing = attribute.values == Some(1) && is_missing(attribute.code, bytes);
        (read.fill_as_null && bytes == attribute.fill) || (read.nan_as_null && missing)
    };
    let cells = cells.into_iter().map(|cell| cell.filter(|bytes| !is_null(bytes)));
    let cells: Vec<Cell> = cells.collect();
    let is_missing = |bytes: &[u8]| read.nan_as_null && is_missing(attribute.code, bytes);
    let shown = TestAttribute { code: shown(attribute.code, options), ..attribute.clone() };
    column(&shown, &cells, view(options).text_as_binary, is_missing)
}

/// Whether a value that was written as `stored` can be read as `attribute`.
fn is_read_as(stored: &TestAttribute, attribute: &TestAttribute) -> bool {
    let same = (stored.code, stored.values) == (attribute.code, attribute.values);
    same && (attribute.nullable || !stored.nullable)
}

/// Whether a single value is NaN or NaT.
fn is_missing(code: u8, bytes: &[u8]) -> bool {
    match code {
        FLOAT32 | FLOAT64 => float(code, bytes).is_nan(),
        _ => is_temporal(code) && whole(code, bytes) == i128::from(i64::MIN),
    }
}

/// The column of an attribute with these cells. Items of lists that are missing become NULL.
fn column(
    attribute: &TestAttribute,
    cells: &[Cell],
    as_binary: bool,
    is_missing: impl Fn(&[u8]) -> bool,
) -> Result<ArrayRef, String> {
    let code = attribute.code;
    let split = |cells: &mut dyn Iterator<Item = &[u8]>| -> Vec<Cell> {
        let items = cells.flat_map(|cell| cell.chunks(width(code)));
        items.map(|item| Some(item.to_vec()).filter(|item| !is_missing(item))).collect()
    };
    let is_scalar = !matches!(scalar_type(code), DataType::Null);
    match attribute.values {
        Some(1) if is_scalar => scalars(code, cells),
        Some(values) if is_scalar => {
            let zeros = vec![0; values as usize * width(code)];
            let mut items = cells.iter().map(|cell| cell.as_deref().unwrap_or(&zeros));
            let items = scalars(code, &split(&mut items))?;
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            let nulls = NullBuffer::from_iter(cells.iter().map(Option::is_some));
            let list = FixedSizeListArray::new(field, values as i32, items, Some(nulls));
            Ok(Arc::new(list))
        }
        Some(values) => {
            let cells = cells.iter().map(Option::as_deref);
            let size = values as i32 * width(code) as i32;
            Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells, size).unwrap()))
        }
        None if is_scalar => {
            let lists = || cells.iter().map(|cell| cell.as_deref().unwrap_or_default());
            let items = scalars(code, &split(&mut lists()))?;
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths(lists().map(|list| list.len() / width(code)));
            let nulls = NullBuffer::from_iter(cells.iter().map(Option::is_some));
            Ok(Arc::new(ListArray::new(field, offsets, items, Some(nulls))))
        }
        None if matches!(code, ASCII | UTF8 | UTF16) && !as_binary => {
            let texts = cells.iter().map(|cell| cell.as_ref().map(|it| text(code, it)).transpose());
            let texts: Vec<Option<String>> = texts.collect::<Result<_, _>>()?;
            Ok(Arc::new(texts.into_iter().collect::<StringViewArray>()))
        }
        None => Ok(Arc::new(cells.iter().map(Option::as_deref).collect::<BinaryViewArray>())),
    }
}

fn text(code: u8, bytes: &[u8]) -> Result<String, String> {
    let text = match code {
        UTF16 => {
            let units = bytes.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).ok()
        }
        _ => String::from_utf8(bytes.to_vec()).ok(),
    };
    text.ok_or_else(|| "text_as_binary".to_owned())
}

/// The Arrow type of a single value; `Null` for types that only occur in text and bytes.
fn scalar_type(code: u8) -> DataType {
    let unit = |place: u8| match place {
        4..=6 => TimeUnit::Second,
        7 => TimeUnit::Millisecond,
        8 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    };
    match code {
        INT8 => DataType::Int8,
        INT16 => DataType::Int16,
        INT32 => DataType::Int32,
        INT64 => DataType::Int64,
        UINT8 => DataType::UInt8,
        UINT16 => DataType::UInt16,
        UINT32 => DataType::UInt32,
        UINT64 => DataType::UInt64,
        FLOAT32 => DataType::Float32,
        FLOAT64 => DataType::Float64,
        BOOL => DataType::Boolean,
        18..=21 => DataType::Date32,
        28..=30 | 37..=39 => DataType::Int64,
        _ if DATE_TIMES.contains(&code) => DataType::Timestamp(unit(code - 18), None),
        _ if TIMES.contains(&code) => DataType::Duration(unit(code - 31 + 4)),
        _ => DataType::Null,
    }
}

/// A column of single values.
fn scalars(code: u8, cells: &[Cell]) -> Result<ArrayRef, String> {
    fn of<T: ArrowPrimitiveType>(cells: &[Cell], read: impl Fn(&[u8]) -> T::Native) -> ArrayRef {
        let values = cells.iter().map(|cell| cell.as_deref().map(&read));
        Arc::new(values.collect::<PrimitiveArray<T>>())
    }
    macro_rules! integers {
        ($t:ty) => {
            of::<$t>(cells, |bytes| whole(code, bytes) as _)
        };
    }
    Ok(match scalar_type(code) {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::Float32 => {
            of::<Float32Type>(cells, |bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        }
        DataType::Float64 => {
            of::<Float64Type>(cells, |bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        }
        DataType::Boolean => {
            let values = cells.iter().map(|cell| cell.as_ref().map(|bytes| bytes[0] != 0));
            Arc::new(values.collect::<BooleanArray>())
        }
        kind => {
            let counts = cells.iter().map(|cell| {
                let count = cell.as_ref().map(|bytes| whole(code, bytes) as i64);
                count.map(|count| in_arrow(code, count).ok_or("does not fit")).transpose()
            });
            let counts = Int64Array::from(counts.collect::<Result<Vec<_>, _>>()?);
            let counts: ArrayRef = match kind {
                DataType::Date32 => cast(&counts, &DataType::Int32).unwrap(),
                _ => Arc::new(counts),
            };
            cast(&counts, &kind).unwrap()
        }
    })
}

/// Converts a count of dates or times to the unit of its Arrow type; `None` if it overflows.
fn in_arrow(code: u8, count: i64) -> Option<i64> {
    let first_day = |month: i64| {
        let year = i32::try_from(1970 + month.div_euclid(12)).ok()?;
        let day = NaiveDate::from_ymd_opt(year, month.rem_euclid(12) as u32 + 1, 1)?;
        Some((day - NaiveDate::from_ymd_opt(1970, 1, 1)?).num_days())
    };
    let days = |days: i64| i32::try_from(days).ok().map(i64::from);
    match code {
        18 => first_day(count.checked_mul(12)?),
        19 => first_day(count),
        20 => days(count.checked_mul(7)?),
        21 => days(count),
        22 | 31 => count.checked_mul(3600),
        23 | 32 => count.checked_mul(60),
        _ => Some(count),
    }
}
