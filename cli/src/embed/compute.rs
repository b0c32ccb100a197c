//! Computing the columns of a box, in batches, each to its place in the result.
//!
//! ```text
//!   result   ├── part 0 ──┤├── part 1 ──┤…      a thread reads the variables of a part,
//!   batches  ├──┤├──┤├──┤├┤                     and computes its cells, batch by batch
//! ```

use std::iter::repeat_n;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, UInt64Array,
    make_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use gridfusion::grid::Selection;

use super::box_reader::BoxReader;
use super::computed::{Computed, Step};
use super::zeros::Zeros;

/// The cells of a batch: a few arrays of them fit into the cache of a core.
const BATCH: usize = 1 << 14;

/// A part of the box, and the memory of its cells per output.
struct Job<'a> {
    start: usize,
    part: Selection,
    places: Vec<&'a mut [u8]>,
}

/// Where cells are NULL: the output, the first cell, and a mark for each.
type Marks = Vec<(usize, usize, NullBuffer)>;

impl Computed {
    /// Computes the columns. Beside them, memory holds the cells of a part per thread.
    pub(super) fn compute(
        &self,
        reader: &BoxReader,
        reservation: &MemoryReservation,
    ) -> Result<Vec<(usize, ArrayRef)>> {
        if self.outputs.is_empty() {
            return Ok(vec![]);
        }
        let mut results = vec![];
        for (_, step) in &self.outputs {
            let field = &self.fields[*step];
            let bytes = reader.cells().saturating_mul(width(field));
            results.push(Zeros::try_new(bytes, field.name(), reservation)?);
        }
        let mut rests: Vec<&mut [u8]> = results.iter_mut().map(Zeros::bytes_mut).collect();
        let (mut jobs, mut start) = (vec![], 0);
        for part in reader.parts() {
            let cells = part.cells() as usize;
            let mut places = vec![];
            for (rest, (_, step)) in rests.iter_mut().zip(&self.outputs) {
                let bytes = cells * width(&self.fields[*step]);
                let (own, others) = mem::take(rest).split_at_mut(bytes);
                *rest = others;
                places.push(own);
            }
            jobs.push(Job { start, part, places });
            start += cells;
        }
        let marks = reader.on_threads(jobs, |job| self.compute_part(reader, job, reservation))?;
        let mut marks: Marks = marks.into_iter().flatten().collect();
        marks.sort_by_key(|(output, start, _)| (*output, *start));
        let mut computed = vec![];
        for (number, ((at, step), bytes)) in self.outputs.iter().zip(results).enumerate() {
            let own = marks.iter().filter(|(output, ..)| *output == number);
            let nulls = validity(reader.cells(), own);
            let data = ArrayData::builder(self.fields[*step].data_type().clone())
                .len(reader.cells())
                .add_buffer(bytes.into_buffer())
                .nulls(nulls)
                .build()?;
            computed.push((*at, make_array(data)));
        }
        Ok(computed)
    }

    /// Reads the variables of a part, and computes its cells.
    fn compute_part(
        &self,
        reader: &BoxReader,
        mut job: Job<'_>,
        reservation: &MemoryReservation,
    ) -> Result<Marks> {
        let reservation = reservation.new_empty();
        let cells = job.part.cells() as usize;
        let mut read = vec![None; self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            if let Step::Cells(value) = step {
                read[at] = Some(reader.read_part_of(*value, &job.part, &reservation)?);
            }
        }
        let mut marks = vec![];
        for from in (0..cells).step_by(BATCH) {
            if reader.stop.load(Ordering::Relaxed) {
                break;
            }
            let len = BATCH.min(cells - from);
            let made = self.compute_batch(reader, &read, job.start + from, from, len)?;
            for (output, (_, step)) in self.outputs.iter().enumerate() {
                let width = width(&self.fields[*step]);
                let place = &mut job.places[output][from * width..(from + len) * width];
                let nulls = place_cells(&made[*step], place, reader.keeps_nulls);
                marks.extend(nulls.map(|it| (output, job.start + from, it)));
            }
        }
        Ok(marks)
    }

    /// Returns the columns of all steps for the cells from `start` on, which is at `from` in the part that was `read`.
    fn compute_batch(
        &self,
        reader: &BoxReader,
        read: &[Option<ArrayRef>],
        start: usize,
        from: usize,
        len: usize,
    ) -> Result<Vec<ArrayRef>> {
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let mut made: Vec<ArrayRef> = vec![];
        for (at, step) in self.steps.iter().enumerate() {
            let missing = || internal_datafusion_err!("step {at} lacks its cells");
            made.push(match step {
                Step::Labels(axis, labels) => {
                    let later = reader.selection.axes().iter().skip(axis + 1);
                    let stride = later.map(|it| it.count()).product::<u64>() as usize;
                    take(labels, &repeated(labels.len(), stride, start, len), None)?
                }
                Step::Cells(_) => read[at].as_ref().ok_or_else(missing)?.slice(from, len),
                Step::Expr(expr) => {
                    let schema: SchemaRef = Arc::new(Schema::new(self.fields[..at].to_vec()));
                    let batch = RecordBatch::try_new_with_options(schema, made.clone(), &options)?;
                    expr.evaluate(&batch)?.into_array_of_size(len)?
                }
            });
            let (found, expected) = (made[at].data_type(), self.fields[at].data_type());
            if found != expected {
                return Err(internal_datafusion_err!("step {at} has {found}, not {expected}"));
            }
        }
        Ok(made)
    }
}

/// The bytes of a value.
fn width(field: &FieldRef) -> usize {
    field.data_type().primitive_width().unwrap_or_default()
}

/// Returns the numbers of the labels of some cells. Each label repeats for `stride` cells, and behind the last one follows the first one.
fn repeated(labels: usize, stride: usize, start: usize, cells: usize) -> UInt64Array {
    let (mut label, mut left) = (start / stride % labels, stride - start % stride);
    let mut numbers = Vec::with_capacity(cells);
    while numbers.len() < cells {
        numbers.extend(repeat_n(label as u64, left.min(cells - numbers.len())));
        label = if label + 1 == labels { 0 } else { label + 1 };
        left = stride;
    }
    numbers.into()
}

/// Copies values to their place. Where they are NULL, floats become NaN there; the marks of all others are returned.
fn place_cells(values: &ArrayRef, place: &mut [u8], keeps_nulls: bool) -> Option<NullBuffer> {
    let data = values.to_data();
    let width = place.len() / values.len().max(1);
    let start = data.offset() * width;
    place.copy_from_slice(&data.buffers()[0].as_slice()[start..start + place.len()]);
    let nulls = values.nulls().filter(|it| it.null_count() > 0)?;
    let nan = match values.data_type() {
        DataType::Float32 if !keeps_nulls => f32::NAN.to_ne_bytes().to_vec(),
        DataType::Float64 if !keeps_nulls => f64::NAN.to_ne_bytes().to_vec(),
        _ => return Some(nulls.clone()),
    };
    let cells = place.chunks_exact_mut(width).zip(nulls);
    cells.filter(|(_, valid)| !valid).for_each(|(cell, _)| cell.copy_from_slice(&nan));
    None
}

/// Returns the validity of all cells; `None` if none is NULL.
fn validity<'a>(
    cells: usize,
    marks: impl Iterator<Item = &'a (usize, usize, NullBuffer)>,
) -> Option<NullBuffer> {
    let mut valid: Option<BooleanBufferBuilder> = None;
    for (_, start, own) in marks {
        let valid = valid.get_or_insert_with(|| BooleanBufferBuilder::new(cells));
        valid.append_n(start - valid.len(), true);
        valid.append_buffer(own.inner());
    }
    valid.map(|mut valid| {
        valid.append_n(cells - valid.len(), true);
        NullBuffer::new(valid.finish())
    })
}
