//! [`CellBuffer`]: the cells of a chunk, which come in runs and in any order.
//!
//! Cells of one width are copied at once. Of others, such as texts, the buffer notes where they are, and copies them at the end.

use arrow::array::{Array, ArrayData, ArrayRef, make_array, new_null_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use arrow::util::bit_mask::set_bits;
use arrow::util::bit_util;

use crate::array::failed_to;
use crate::error::{Error, Result};

/// The cells of one variable of a chunk.
#[derive(Debug)]
pub(super) enum CellBuffer {
    /// Cells of one width.
    Copied(CopiedCells),
    /// Other cells.
    Noted(NotedCells),
}

#[derive(Debug)]
pub(super) struct CopiedCells {
    data_type: DataType,
    len: usize,
    /// The bytes of a cell; 0 for a bit.
    width: usize,
    values: MutableBuffer,
    /// A bit per cell, which is set if the cell is NULL; `None` as long as there is none.
    nulls: Option<MutableBuffer>,
}

#[derive(Debug)]
pub(super) struct NotedCells {
    /// A NULL, and the arrays that have the cells.
    sources: Vec<ArrayRef>,
    /// The source of each cell, and its number there.
    at: Vec<(u32, u32)>,
}

/// Cells to be copied into buffers, of one variable.
#[derive(Debug)]
pub(super) struct Piece {
    cells: ArrayRef,
    /// The bytes of a cell; 0 for a bit, and `None` if they differ.
    width: Option<usize>,
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
fn width_of(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(0),
        other => other.primitive_width(),
    }
}

impl Piece {
    pub(super) fn new(cells: &ArrayRef) -> Self {
        let data = cells.to_data();
        let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
        Self {
            cells: ArrayRef::clone(cells),
            width: width_of(data.data_type()),
            values: data.buffers().first().cloned().unwrap_or_default(),
            offset: data.offset(),
            nulls: nulls.map(|nulls| !nulls.inner()),
        }
    }
}

impl CellBuffer {
    /// Makes a buffer of `len` cells, all of which are zero or NULL.
    pub(super) fn new(data_type: &DataType, len: usize) -> Self {
        let Some(width) = width_of(data_type) else {
            let sources = vec![new_null_array(data_type, 1)];
            return Self::Noted(NotedCells { sources, at: vec![(0, 0); len] });
        };
        let bytes = if width == 0 { len.div_ceil(8) } else { width * len };
        let values = MutableBuffer::from_len_zeroed(bytes);
        let data_type = data_type.clone();
        Self::Copied(CopiedCells { data_type, len, width, values, nulls: None })
    }

    /// Takes cells of a piece, from the one with the number `from` on. Each cell of the buffer is set once.
    ///
    /// # Errors
    /// `Internal` if the piece has another type.
    pub(super) fn copy(&mut self, piece: &Piece, from: usize, run: Run) -> Result<()> {
        match self {
            Self::Copied(cells) if piece.width == Some(cells.width) => cells.copy(piece, from, run),
            Self::Noted(cells) if piece.width.is_none() => cells.note(&piece.cells, from, run),
            _ => return Err(Error::internal("cells of another type than their variable")),
        }
        Ok(())
    }

    /// Returns the cells, of which those that are not `given` are NULL.
    ///
    /// # Errors
    /// If Arrow cannot put the cells together, such as texts of more bytes than their type can hold.
    pub(super) fn finish(self, given: Option<&NullBuffer>) -> Result<ArrayRef> {
        match self {
            Self::Copied(cells) => cells.finish(given),
            Self::Noted(NotedCells { sources, at }) => {
                let sources: Vec<&dyn Array> = sources.iter().map(|it| it.as_ref()).collect();
                let at = at.into_iter().map(|(source, cell)| (source as usize, cell as usize));
                let cells = interleave(&sources, &at.collect::<Vec<_>>());
                cells.map_err(failed_to("put cells together"))
            }
        }
    }
}

impl CopiedCells {
    fn copy(&mut self, piece: &Piece, from: usize, run: Run) {
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

    fn finish(self, given: Option<&NullBuffer>) -> Result<ArrayRef> {
        let Self { data_type, len, values, nulls, .. } = self;
        let own = nulls.map(|nulls| NullBuffer::new(!&BooleanBuffer::new(nulls.into(), 0, len)));
        let nulls = NullBuffer::union(own.as_ref(), given);
        let data = ArrayData::builder(data_type).len(len).add_buffer(values.into()).nulls(nulls);
        data.build().map(make_array).map_err(failed_to("put cells together"))
    }
}

impl NotedCells {
    fn note(&mut self, cells: &ArrayRef, from: usize, run: Run) {
        if !self.sources.last().is_some_and(|last| std::ptr::addr_eq(last.as_ref(), cells.as_ref()))
        {
            self.sources.push(ArrayRef::clone(cells));
        }
        let source = self.sources.len() as u32 - 1;
        let to = self.at[run.at..].iter_mut().step_by(run.stride);
        for (to, from) in to.zip(from..from + run.len) {
            *to = (source, from as u32);
        }
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

/// A bit per cell of a chunk, which is set once the cell is there.
#[derive(Debug)]
pub(super) struct GivenCells {
    bits: MutableBuffer,
    len: usize,
    /// The number of bits that are set.
    count: usize,
}

impl GivenCells {
    pub(super) fn new(len: usize) -> Self {
        Self { bits: MutableBuffer::from_len_zeroed(len.div_ceil(8)), len, count: 0 }
    }

    /// Sets the bits of a run. Returns the position in the run of the first bit that was set before, if there is one.
    pub(super) fn set(&mut self, run: Run) -> Option<usize> {
        let repeated = match run.stride {
            1 => self.set_side_by_side(run.at, run.len),
            // Bits behind a repeated one do not matter: the caller fails.
            stride => (0..run.len).find(|at| !self.set_one(run.at + at * stride)),
        };
        self.count += run.len;
        repeated
    }

    fn set_side_by_side(&mut self, at: usize, len: usize) -> Option<usize> {
        let end = at + len;
        // Whole bytes lie between the first and the last bits.
        let (first, last) = (at.next_multiple_of(8), end / 8 * 8);
        let bytes = if first < last { first / 8..last / 8 } else { 0..0 };
        let ends = || match bytes.is_empty() {
            true => (at..end).chain(0..0),
            false => (at..first).chain(last..end),
        };
        let is_set = |position: &usize| bit_util::get_bit(&self.bits, *position);
        let is_free = self.bits[bytes.clone()].iter().all(|byte| *byte == 0);
        let repeated = if is_free { ends().find(is_set) } else { (at..end).find(is_set) };
        self.bits[bytes.clone()].fill(u8::MAX);
        ends().for_each(|position| bit_util::set_bit(&mut self.bits, position));
        repeated.map(|position| position - at)
    }

    /// Sets a bit. Returns whether it was not set before.
    fn set_one(&mut self, at: usize) -> bool {
        let is_new = !bit_util::get_bit(&self.bits, at);
        bit_util::set_bit(&mut self.bits, at);
        is_new
    }

    /// Returns the bits; `None` if all are set.
    pub(super) fn finish(self) -> Option<NullBuffer> {
        let Self { bits, len, count } = self;
        (count < len).then(|| NullBuffer::new(BooleanBuffer::new(bits.into(), 0, len)))
    }
}
