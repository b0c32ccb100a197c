//! [`TargetVariable`]: a variable that rows are appended to. New cells are stored as the old ones are.
//!
//! ```text
//!   values of the query ──▶ stored numbers ──▶ bytes of an object
//!            ▲                    │
//!            └──── the same? ◀────┘ decoded as queries do
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, StringArray, make_array};
use arrow::buffer::Buffer;
use arrow::compute::{cast, nullif};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use arrow::util::display::array_value_to_string;
use bytes::Bytes;
use gridfusion_cf::hierarchy::{CellType, Variable};
use gridfusion_core::array::{
    Dimension, GridArray, NumberColumn, ReadOptions, TimeUnits, ValueColumn, Workspace, failed_to,
};
use gridfusion_core::grid::{AxisSelection, ChunkGrid, ChunkTask, unravel};
use gridfusion_core::tile::{Request, Tile, leave_out_absent};
use gridfusion_core::write::{ExistingCells, cells_of_chunks};
use gridfusion_core::{Error, Result};
use serde_json::Value;

use crate::bytes::ZarrArray;
use crate::write::{ObjectEncoder, ZarrEncoding, ZarrType};

/// A variable of a store, with all that new cells need.
#[derive(Debug)]
pub(super) struct TargetVariable {
    zarr: Arc<ZarrArray>,
    /// The variable as queries read it; its first value is the variable itself.
    array: GridArray,
    cell: ZarrType,
    encoding: ZarrEncoding,
    /// The elements of an object.
    object_shape: Vec<u64>,
    inner_shape: Option<Vec<u64>>,
    /// The stored value of cells of chunks that are not stored.
    fill: ArrayRef,
    /// The document in the array's own folder.
    pub(super) document: Bytes,
}

/// The kinds of values, between which there is no conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Truth,
    Time,
    Length,
    Other,
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Boolean => Kind::Truth,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Kind::Time,
        DataType::Duration(_) => Kind::Length,
        DataType::Dictionary(_, values) => kind(values),
        it if it.is_integer() || it.is_floating() => Kind::Number,
        _ => Kind::Other,
    }
}

impl TargetVariable {
    /// Makes a variable of its array in the store, as queries read it, and its metadata.
    ///
    /// # Errors
    /// `Unsupported` for types and codecs that cannot be written.
    pub(super) fn try_new(
        zarr: Arc<ZarrArray>,
        array: GridArray,
        metadata: &Value,
        document: Bytes,
    ) -> Result<Self> {
        let variable = zarr.variable();
        let data_type = match &variable.cell {
            CellType::Number(element) => {
                NumberColumn::plain(*element, None, false, &ReadOptions::default()).data_type()
            }
            CellType::Boolean => DataType::Boolean,
            CellType::Text => DataType::Utf8,
            other => {
                return Err(Error::unsupported(format!(
                    "an append to \"{}\", which has cells of type {other}",
                    variable.path
                )));
            }
        };
        let cell = ZarrType::new(&data_type)?;
        let fill = match cell.stored.is_text() {
            true => Arc::new(StringArray::from(vec![text_of(&variable.fill)?])) as ArrayRef,
            false => numbers(cell.stored.bits(), Buffer::from(variable.fill.clone()), 1)?,
        };
        let (encoding, inner_shape) =
            ZarrEncoding::from_codecs(&metadata["codecs"], cell.stored.is_text(), cell.word())
                .map_err(|error| error.about(&format!("\"{}\"", variable.path)))?;
        let object_shape = zarr.shard_shape().unwrap_or(&variable.chunk_shape).to_vec();
        Ok(Self { array, cell, encoding, object_shape, inner_shape, fill, document, zarr })
    }

    pub(super) fn variable(&self) -> &Variable {
        self.zarr.variable()
    }

    pub(super) fn name(&self) -> &str {
        &self.zarr.variable().path
    }

    /// The dimensions as queries read them.
    pub(super) fn dims(&self) -> &[Dimension] {
        self.array.dims()
    }

    /// The elements of an object along each axis.
    pub(super) fn object_shape(&self) -> &[u64] {
        &self.object_shape
    }

    /// The length of each axis in the array as it is.
    pub(super) fn shape(&self) -> Vec<u64> {
        self.variable().axes.iter().map(|axis| axis.len).collect()
    }

    /// Fails for stored cells that differ from those that are there. `cell` names one of them in errors.
    ///
    /// # Errors
    /// `Usage` for cells that differ.
    pub(super) fn check_same(
        &self,
        there: &ArrayRef,
        new: &ArrayRef,
        cell: impl Fn(usize) -> String,
    ) -> Result<()> {
        let (there, new) = (self.shown(there)?, self.shown(new)?);
        let (there, new) = (comparable(&there), comparable(&new));
        if there.as_ref() == new.as_ref() {
            return Ok(());
        }
        let differs = |at: &usize| there.slice(*at, 1) != new.slice(*at, 1);
        let Some(at) = (0..new.len()).find(differs) else { return Ok(()) };
        let (cell, there, new) = (cell(at), text_at(&there, at), text_at(&new, at));
        Err(Error::usage(format!(
            "{cell} of \"{}\" is {there} in the array, and {new} in the rows; 'existing' may be 'overwrite'",
            self.name()
        )))
    }

    /// The bytes that putting an object together takes: its cells as they are read, together and encoded.
    pub(super) fn object_memory(&self, existing: ExistingCells) -> u64 {
        /// The bytes of a text, as far as they are known.
        const TEXT: usize = 16;
        // The bytes that tell where a cell comes from.
        let source = if existing == ExistingCells::Refuse { 9 } else { 33 };
        let width = self.cell.stored.bits().primitive_width().unwrap_or(TEXT) as u64;
        self.object_shape.iter().product::<u64>().saturating_mul(4 * width + source)
    }

    /// Returns the names of objects that begin behind the end of an axis, and before an index; `None` if they are more than `most`.
    pub(super) fn objects_behind(
        &self,
        axis: usize,
        end: u64,
        most: usize,
    ) -> Option<Vec<Arc<str>>> {
        let edges = &self.object_shape;
        let counts = self.variable().axes.iter().zip(edges);
        let mut counts: Vec<u64> = counts.map(|(axis, edge)| axis.len.div_ceil(*edge)).collect();
        let first = counts[axis];
        counts[axis] = end.div_ceil(edges[axis]).saturating_sub(first);
        let all = counts.iter().try_fold(1_u64, |all, count| all.checked_mul(*count))?;
        let all = usize::try_from(all).ok().filter(|all| *all <= most)? as u64;
        let name = |number| {
            let mut at = unravel(number, &counts);
            at[axis] += first;
            self.object(&at)
        };
        Some((0..all).map(name).collect())
    }

    /// Returns the name of an object.
    pub(super) fn object(&self, coordinates: &[u64]) -> Arc<str> {
        self.zarr.object(coordinates)
    }

    fn column(&self) -> &ValueColumn {
        self.array.value(0)
    }

    /// Returns the type of the cells as queries show them.
    pub(super) fn shown_type(&self) -> DataType {
        self.column().data_type()
    }

    /// Returns the column of the cells with times in other units; `None` if they are no times.
    pub(super) fn in_units(&self, units: TimeUnits) -> Option<NumberColumn> {
        self.column().as_number()?.in_other_units(units)
    }

    /// Returns an attribute as text.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        self.variable().attributes.get(name).map(ToString::to_string)
    }

    /// Fails for a column whose values are of another kind, or that has other units.
    pub(super) fn check_column(&self, data_type: &DataType, units: Option<&Value>) -> Result<()> {
        let (name, own) = (self.name(), self.column().data_type());
        if kind(data_type) != kind(&own) || kind(data_type) == Kind::Other {
            return Err(Error::usage(format!(
                "the column \"{name}\" is of type {data_type}, and the array's of type {own}"
            )));
        }
        let (Some(units), Some(own)) = (units.and_then(Value::as_str), self.attribute("units"))
        else {
            return Ok(());
        };
        if units != own && matches!(kind(data_type), Kind::Number) {
            return Err(Error::usage(format!(
                "the column \"{name}\" has the units \"{units}\", and the array's has \"{own}\"; convert it"
            )));
        }
        Ok(())
    }

    /// Returns values as they are stored. `cell` names a cell in errors.
    ///
    /// # Errors
    /// `Usage` for a value that would be another one when it is read.
    pub(super) fn stored(
        &self,
        values: &ArrayRef,
        cell: impl Fn(usize) -> String,
    ) -> Result<ArrayRef> {
        let values = plain(values)?;
        let bad = |at: usize, why: String| {
            let cell = cell(at);
            Error::usage(format!("{cell} of \"{}\" cannot be appended: {why}", self.name()))
        };
        if let Some(at) =
            (0..values.len()).find(|at| values.null_count() > 0 && values.is_null(*at))
            && !self.column().is_nullable()
        {
            let why = "it is NULL, or there is no row for it, and the array has no value that stands for NULL";
            return Err(bad(at, why.to_owned()));
        }
        let stored = self.encoded(&values)?;
        let shown = self.shown(&stored)?;
        let in_type = |of: &ArrayRef, like: &ArrayRef| {
            cast(of, like.data_type()).map_err(failed_to("compare cells")).map(|it| comparable(&it))
        };
        let (asked, found) = (comparable(&values), in_type(&shown, &values)?);
        // A wider float may be rounded to the one that was asked for; any other value is the same in both types.
        let both_float = values.data_type().is_floating() && shown.data_type().is_floating();
        let in_both = match both_float || values.data_type() == shown.data_type() {
            true => None,
            false => Some((in_type(&values, &shown)?, comparable(&shown))),
        };
        let pairs = || std::iter::once((&asked, &found)).chain(in_both.iter().map(|(a, b)| (a, b)));
        if pairs().all(|(a, b)| a.as_ref() == b.as_ref()) {
            return Ok(stored);
        }
        let differs = |at: &usize| pairs().any(|(a, b)| a.slice(*at, 1) != b.slice(*at, 1));
        let Some(at) = (0..values.len()).find(differs) else { return Ok(stored) };
        let (asked, shown, how) = (text_at(&asked, at), text_at(&shown, at), self.storage());
        Err(bad(at, format!("{asked} would read as {shown}, because the array stores {how}")))
    }

    /// Returns values in the stored type, as near as it has them.
    fn encoded(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let failed = failed_to("store cells");
        let (bits, column) = (self.cell.stored.bits(), self.column());
        match column {
            ValueColumn::Number(numbers) => numbers.stored(values),
            ValueColumn::Cells(_) if bits == &DataType::Utf8 => {
                let texts = cast(values, bits).map_err(&failed)?;
                let fill = self.fill.as_string::<i32>().value(0);
                let texts = texts.as_string::<i32>().iter().map(|text| text.unwrap_or(fill));
                Ok(Arc::new(StringArray::from_iter_values(texts)))
            }
            _ => {
                let truths = cast(values, &DataType::Boolean).map_err(&failed)?;
                let fill = self.fill.to_data().buffers()[0][0];
                let bytes = truths.as_boolean().iter().map(|it| it.map_or(fill, u8::from));
                numbers(bits, Buffer::from(bytes.collect::<Vec<u8>>()), values.len())
            }
        }
    }

    /// Returns stored cells as queries show them.
    fn shown(&self, stored: &ArrayRef) -> Result<ArrayRef> {
        let data = stored.to_data();
        let tile = match stored.as_string_opt::<i32>() {
            Some(texts) => {
                let spans = texts.value_offsets().windows(2);
                let spans = spans.map(|pair| pair[0] as u64..pair[1] as u64).collect();
                Tile::variable(spans, Bytes::copy_from_slice(texts.value_data()))?
            }
            None => {
                let width = self.cell.stored.bits().primitive_width().unwrap_or(1);
                let range = data.offset() * width..(data.offset() + data.len()) * width;
                Tile::fixed(Bytes::copy_from_slice(&data.buffers()[0][range]), width)
            }
        };
        let all = [AxisSelection::all(stored.len() as u64)];
        self.array.column_of(0, &tile, &all, true)
    }

    /// Tells how cells are stored: `int16 with scale_factor 0.01`.
    fn storage(&self) -> String {
        let mut how = self.variable().cell.to_string();
        for name in ["units", "scale_factor", "add_offset", "_FillValue", "missing_value"] {
            if let Some(value) = self.attribute(name) {
                how.push_str(&format!(", {name} {value}"));
            }
        }
        how
    }

    /// Returns the bytes of an object with stored cells of this shape; `None` if all cells have the fill value.
    pub(super) fn object_bytes(&self, stored: &ArrayRef, shape: &[u64]) -> Result<Option<Vec<u8>>> {
        let encoder = ObjectEncoder {
            encoding: &self.encoding,
            cell: &self.cell,
            padding: &self.fill,
            object_shape: &self.object_shape,
            inner_shape: self.inner_shape.as_deref(),
            leaves_out_nulls: true,
        };
        encoder.object(&self.without_fill(stored)?, shape)
    }

    /// Puts NULL in the places of the fill value: chunks of it are not stored.
    fn without_fill(&self, stored: &ArrayRef) -> Result<ArrayRef> {
        let is_fill: BooleanArray = match stored.as_string_opt::<i32>() {
            Some(texts) => {
                let fill = self.fill.as_string::<i32>().value(0);
                texts.iter().map(|text| Some(text == Some(fill))).collect()
            }
            None => {
                let (data, of_fill) = (stored.to_data(), self.fill.to_data());
                let width = self.cell.stored.bits().primitive_width().unwrap_or(1);
                let range = data.offset() * width..(data.offset() + data.len()) * width;
                let fill = &of_fill.buffers()[0][..width];
                let cells = data.buffers()[0][range].chunks_exact(width);
                cells.map(|cell| Some(cell == fill)).collect()
            }
        };
        match is_fill.true_count() {
            0 => Ok(ArrayRef::clone(stored)),
            _ => nullif(stored, &is_fill).map_err(failed_to("find fill values")),
        }
    }

    /// Reads the stored cells that an object has in the array as it is, with their shape.
    pub(super) async fn old_cells(&self, object: &[u64]) -> Result<(ArrayRef, Vec<u64>)> {
        let grid = self.array.grid();
        let range = |(axis, len): (usize, &u64)| {
            let start = (object[axis] * self.object_shape[axis]).min(*len);
            start..(start + self.object_shape[axis]).min(*len)
        };
        let ranges: Vec<Range<u64>> = grid.shape().iter().enumerate().map(range).collect();
        let shape: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let inner: Vec<u64> = grid.chunk_shape().collect();
        let within = ChunkGrid::new(&shape, &inner)?;
        let first: Vec<u64> =
            ranges.iter().enumerate().map(|(axis, it)| it.start / inner[axis]).collect();
        let mut chunks = vec![];
        let mut workspace = Workspace::default();
        for number in 0..within.chunks() {
            let own = unravel(number, within.chunks_per_axis());
            let at: Vec<u64> = own.iter().zip(&first).map(|(own, first)| own + first).collect();
            let number = grid.chunk_number(&at);
            let number = number.ok_or_else(|| Error::internal("a chunk outside of its array"))?;
            let task = ChunkTask::whole(grid, number);
            let tasks = std::slice::from_ref(&task);
            let mut stored: Vec<_> =
                self.array.locate(tasks, &[0]).await?.into_iter().flatten().collect();
            let payloads = self.array.objects().fetch(&Request::for_chunks(&stored)).await?;
            let payloads = leave_out_absent(&mut stored, payloads);
            let tiles = self.array.decode(&task, &[0], &stored, payloads, &mut workspace)?;
            let tile = tiles.first().ok_or_else(|| Error::internal("a chunk without a tile"))?;
            chunks.push((own, self.stored_cells(tile)?));
        }
        Ok((cells_of_chunks(&within, &chunks, &self.fill)?, shape))
    }

    /// Returns the stored cells of a tile.
    fn stored_cells(&self, tile: &Tile) -> Result<ArrayRef> {
        let all = [AxisSelection::all(tile.cells() as u64)];
        if !self.cell.stored.is_text() {
            return numbers(self.cell.stored.bits(), tile.gather(&all)?, tile.cells());
        }
        let (spans, content) = tile.spans(&all)?;
        let texts =
            spans.iter().map(|span| text_of(&content[span.start as usize..span.end as usize]));
        Ok(Arc::new(StringArray::from_iter_values(texts.collect::<Result<Vec<_>>>()?)))
    }

    /// Whether cells are truth values or texts, or numbers; other cells are read, and not written.
    pub(super) fn check_cells(&self) -> Result<()> {
        let shown = [DataType::Boolean, DataType::Utf8View];
        let is_written = match self.column().as_number() {
            // Signed numbers that are declared to be unsigned ones are only read.
            Some(number) => self.variable().cell == CellType::Number(number.element()),
            None => shown.contains(&self.column().data_type()),
        };
        match is_written {
            true => Ok(()),
            false => Err(Error::unsupported(format!("an append to \"{}\"", self.name()))),
        }
    }
}

fn text_at(values: &ArrayRef, at: usize) -> String {
    match values.is_null(at) {
        true => "NULL".to_owned(),
        false => array_value_to_string(values, at).unwrap_or_default(),
    }
}

/// Returns values without dictionary, and times of all zones as those of UTC: the calendars of stores have no zones.
pub(super) fn plain(values: &ArrayRef) -> Result<ArrayRef> {
    let failed = failed_to("store cells");
    match values.data_type() {
        DataType::Dictionary(_, of) => cast(values, of).map_err(failed),
        DataType::Timestamp(unit, Some(_)) => {
            let counts = cast(values, &DataType::Int64).map_err(&failed)?;
            cast(&counts, &DataType::Timestamp(*unit, None)).map_err(failed)
        }
        _ => Ok(ArrayRef::clone(values)),
    }
}

/// Returns values in which each NaN is NULL, as queries show them, and zeros are equal.
fn comparable(values: &ArrayRef) -> ArrayRef {
    macro_rules! of {
        ($float:ty, $zero:expr) => {
            Arc::new(values.as_primitive::<$float>().unary_opt::<_, $float>(|value| {
                (!value.is_nan()).then_some(if value == $zero { $zero } else { value })
            }))
        };
    }
    match values.data_type() {
        DataType::Float16 => of!(Float16Type, half::f16::ZERO),
        DataType::Float32 => of!(Float32Type, 0.0),
        DataType::Float64 => of!(Float64Type, 0.0),
        _ => ArrayRef::clone(values),
    }
}

/// Returns the cells of a fixed width in a buffer.
fn numbers(data_type: &DataType, bytes: Buffer, cells: usize) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(cells).add_buffer(bytes);
    let data = data.align_buffers(true).build().map_err(failed_to("read stored cells"))?;
    Ok(make_array(data))
}

fn text_of(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes);
    text.map_err(|_| Error::unsupported("an append beside texts that are not UTF-8"))
}
