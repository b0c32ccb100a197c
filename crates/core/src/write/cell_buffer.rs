//! [`CellBuffer`]: the cells of a chunk, which come in runs and in any order.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::DataType;
use arrow::util::bit_mask::set_bits;
use arrow::util::bit_util;

use crate::array::failed_to;
use crate::error::{Error, Result};

/// Cells of one type, all of which have the same width.
#[derive(Debug)]
pub(super) struct CellBuffer {
    data_type: DataType,
    len: usize,
    /// The bytes of a cell; 0 for a bit.
    width: usize,
    values: MutableBuffer,
    /// A bit per cell, which is set if the cell is NULL; `None` as long as there is none.
    nulls: Option<MutableBuffer>,
}

/// Cells to be copied into buffers, of one piece of a variable.
pub(super) struct Piece {
    width: usize,
    values: Buffer,
    /// The number of the first cell in `values`.
    offset: usize,
    /// A bit per cell, which is set if the cell is NULL.
    nulls: Option<BooleanBuffer>,
}

/// Cells of a buffer: `len` of them from `at` on, `stride` cells apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) at: usize,
    pub(super) stride: usize,
    pub(super) len: usize,
}

/// Returns the bytes of a cell, and 0 for a bit; `None` for a type whose cells differ in width.
pub(super) fn width_of(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(0),
        other => other.primitive_width(),
    }
}

impl Piece {
    /// # Errors
    /// `Internal` for a type whose cells differ in width.
    pub(super) fn try_new(cells: &ArrayRef) -> Result<Self> {
        let data = cells.to_data();
        let (Some(width), Some(values)) = (width_of(data.data_type()), data.buffers().first())
        else {
            return Err(no_width(data.data_type()));
        };
        let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
        let nulls = nulls.map(|nulls| !nulls.inner());
        Ok(Self { width, values: values.clone(), offset: data.offset(), nulls })
    }
}

impl CellBuffer {
    /// Makes a buffer of `len` cells, all of which are zero.
    ///
    /// # Errors
    /// `Internal` for a type whose cells differ in width.
    pub(super) fn try_new(data_type: &DataType, len: usize) -> Result<Self> {
        let width = width_of(data_type).ok_or_else(|| no_width(data_type))?;
        let bytes = if width == 0 { len.div_ceil(8) } else { width * len };
        let values = MutableBuffer::from_len_zeroed(bytes);
        Ok(Self { data_type: data_type.clone(), len, width, values, nulls: None })
    }

    /// Copies cells of a piece, from the one with the number `from` on. Each cell of the buffer is copied to once.
    pub(super) fn copy(&mut self, piece: &Piece, from: usize, run: Run) {
        debug_assert_eq!(self.width, piece.width, "a piece of another type");
        let start = piece.offset + from;
        match self.width {
            0 => copy_bits(&mut self.values, piece.values.as_slice(), start, run),
            1 => copy_cells::<1>(&mut self.values, &piece.values, start, run),
            2 => copy_cells::<2>(&mut self.values, &piece.values, start, run),
            4 => copy_cells::<4>(&mut self.values, &piece.values, start, run),
            8 => copy_cells::<8>(&mut self.values, &piece.values, start, run),
            16 => copy_cells::<16>(&mut self.values, &piece.values, start, run),
            _ => copy_cells::<32>(&mut self.values, &piece.values, start, run),
        }
        if let Some(nulls) = &piece.nulls {
            let len = self.len.div_ceil(8);
            let own = self.nulls.get_or_insert_with(|| MutableBuffer::from_len_zeroed(len));
            copy_bits(own, nulls.values(), nulls.offset() + from, run);
        }
    }

    /// Returns the cells, of which those that are not `given` are NULL.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn finish(self, given: Option<&NullBuffer>) -> Result<ArrayRef> {
        let Self { data_type, len, values, nulls, .. } = self;
        let own = nulls.map(|nulls| NullBuffer::new(!&BooleanBuffer::new(nulls.into(), 0, len)));
        let nulls = NullBuffer::union(own.as_ref(), given);
        let data = ArrayData::builder(data_type).len(len).add_buffer(values.into()).nulls(nulls);
        let data = data.build();
        data.map(make_array).map_err(failed_to("put cells together"))
    }
}

/// Copies cells of `WIDTH` bytes.
fn copy_cells<const WIDTH: usize>(to: &mut [u8], from: &[u8], start: usize, run: Run) {
    let from = &from[WIDTH * start..WIDTH * (start + run.len)];
    if run.stride == 1 {
        to[WIDTH * run.at..WIDTH * (run.at + run.len)].copy_from_slice(from);
        return;
    }
    let (to, _) = to[WIDTH * run.at..].as_chunks_mut::<WIDTH>();
    let (from, _) = from.as_chunks::<WIDTH>();
    for (to, from) in to.iter_mut().step_by(run.stride).zip(from) {
        *to = *from;
    }
}

/// Copies bits into those that are not set yet.
fn copy_bits(to: &mut [u8], from: &[u8], start: usize, run: Run) {
    if run.stride == 1 {
        set_bits(to, from, run.at, start, run.len);
        return;
    }
    for at in 0..run.len {
        if bit_util::get_bit(from, start + at) {
            bit_util::set_bit(to, run.at + at * run.stride);
        }
    }
}

fn no_width(data_type: &DataType) -> Error {
    Error::internal(format!("cells of {data_type} are copied as if they had one width"))
}
