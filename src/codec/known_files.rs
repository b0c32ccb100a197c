//! The files of a table of many as messages, so that a process opens only those that it reads.
//!
//! Times are mostly regular. So labels of 64 bits or less travel as the differences of their differences, which are
//! mostly zero. Compression then makes them small:
//!
//! ```text
//!   labels         2001-01-01  2001-01-02  2001-01-03  2001-01-05
//!   differences         11323           1           1           2
//!   of these            11323      -11322           0           1
//! ```

use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayData, ArrayRef, Int64Array, ListArray, make_array};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;

use super::envelope::{seal, unseal};
use super::messages::{AxisOf, FileOf, Files, GridOf, LabelsOf};
use super::versions::{version_message, versions_of};
use crate::array::Contents;
use crate::error::{Error, Result};
use crate::grid::{AxisChunks, ChunkGrid};
use crate::source::{KnownFile, KnownFiles, OriginPlace};

/// The most bytes of labels in a plan. A process that would need more opens all files instead.
const MOST_LABEL_BYTES: usize = 1 << 16;

/// The most labels of a plan, before compression.
const MOST_LABELS: usize = 1 << 24;

/// Returns the files of a table as a message; `None` if their labels take too many bytes.
///
/// # Errors
/// `Io` if a chunk was written since it was read.
pub(super) fn files_message(known: &KnownFiles, places: &[OriginPlace]) -> Result<Option<Files>> {
    let bytes =
        |labels: &ArrayRef| known.label_bytes.get_or_init(|| label_bytes(labels)).clone().map(Some);
    let Some(labels) = known.labels.as_ref().map_or(Some(None), bytes) else { return Ok(None) };
    let mut before: Option<&KnownFile> = None;
    let mut files = Vec::with_capacity(known.files.len());
    for file in &known.files {
        let is_same = before.is_some_and(|before| are_same(before, file, known.axis));
        let grids = if is_same { vec![] } else { file.grids.iter().map(grid_message).collect() };
        let Some(OriginPlace { location, .. }) = places.get(file.place) else { return Ok(None) };
        let contents = file.contents.versions()?;
        files.push(FileOf {
            place: file.place as u64,
            name: (file.name != *location).then(|| file.name.clone()),
            len: file.len,
            grids,
            shares_objects: file.shares_objects,
            is_resident: file.is_resident,
            is_remote: file.is_remote,
            versions: file.versions.iter().chain(&contents).map(version_message).collect(),
        });
        before = Some(file);
    }
    let (axis, variables) = (known.axis as u64, known.variables.clone());
    Ok(Some(Files { axis, labels, variables, files }))
}

/// Whether the chunks of two files have the same borders, except where the files end.
fn are_same(a: &KnownFile, b: &KnownFile, axis: usize) -> bool {
    let same = |(a, b): (&ChunkGrid, &ChunkGrid)| {
        let listed = |chunks: &AxisChunks| matches!(chunks, AxisChunks::At(_));
        a.axis_chunks() == b.axis_chunks() && !a.axis_chunks().get(axis).is_some_and(listed)
    };
    a.grids.len() == b.grids.len() && a.grids.iter().zip(&b.grids).all(same)
}

fn grid_message(grid: &ChunkGrid) -> GridOf {
    let axis = |chunks: &AxisChunks| match chunks {
        AxisChunks::Every { edge, before } => {
            AxisOf { edge: edge.get(), before: *before, lens: vec![] }
        }
        AxisChunks::At(borders) => {
            let lens = borders.windows(2).map(|pair| pair[1] - pair[0]).collect();
            AxisOf { edge: 0, before: 0, lens }
        }
    };
    GridOf { shape: grid.shape().to_vec(), axes: grid.axis_chunks().iter().map(axis).collect() }
}

/// Returns the files of a message.
///
/// # Errors
/// `Corrupt` for a message that describes no files.
pub(super) fn files_of(message: &Files, places: &[OriginPlace]) -> Result<KnownFiles> {
    let damaged = || Error::corrupt_region("plan", "its list of files is damaged");
    let axis = message.axis as usize;
    let mut files: Vec<KnownFile> = Vec::with_capacity(message.files.len());
    for file in &message.files {
        let grids = match files.last() {
            Some(before) if file.grids.is_empty() => before
                .grids
                .iter()
                .map(|grid| {
                    let mut shape = grid.shape().to_vec();
                    *shape.get_mut(axis).ok_or_else(damaged)? = file.len;
                    ChunkGrid::with_axis_chunks(&shape, grid.axis_chunks().to_vec())
                })
                .collect::<Result<_>>()?,
            _ => file.grids.iter().map(grid_of).collect::<Result<Vec<_>>>()?,
        };
        let fits = |grid: &ChunkGrid| grid.shape().get(axis) == Some(&file.len);
        if !grids.iter().all(fits) || grids.len() != message.variables.len() {
            return Err(damaged());
        }
        let place = places.get(file.place as usize).ok_or_else(damaged)?;
        files.push(KnownFile {
            place: file.place as usize,
            name: file.name.clone().unwrap_or_else(|| place.location.clone()),
            len: file.len,
            grids,
            shares_objects: file.shares_objects,
            is_resident: file.is_resident,
            is_remote: file.is_remote,
            versions: versions_of(&file.versions),
            contents: Contents::default(),
        });
    }
    let labels = message.labels.as_ref().map(|bytes| labels_of(bytes)).transpose()?;
    let variables = message.variables.clone();
    Ok(KnownFiles { axis, labels, variables, files, label_bytes: OnceLock::new() })
}

fn grid_of(message: &GridOf) -> Result<ChunkGrid> {
    let damaged = || Error::corrupt_region("plan", "its chunk grids are damaged");
    let axis =
        |(AxisOf { edge, before, lens }, len): (&AxisOf, &u64)| match NonZeroU64::try_from(*edge) {
            Ok(edge) => {
                Some(AxisChunks::Every { edge, before: *before }).filter(|_| *before < edge.get())
            }
            Err(_) => {
                let mut borders = vec![0_u64];
                for chunk in lens {
                    borders.push(borders.last()?.checked_add(*chunk).filter(|_| *chunk > 0)?);
                }
                (borders.last() == Some(len)).then(|| AxisChunks::At(borders.into()))
            }
        };
    if message.axes.len() != message.shape.len() {
        return Err(damaged());
    }
    let axes = message.axes.iter().zip(&message.shape).map(axis).collect::<Option<_>>();
    ChunkGrid::with_axis_chunks(&message.shape, axes.ok_or_else(damaged)?)
}

/// Returns labels as bytes; `None` if they are too many.
pub(super) fn label_bytes(labels: &ArrayRef) -> Option<Vec<u8>> {
    if labels.len() > MOST_LABELS {
        return None;
    }
    let differences = differences(labels);
    let of_differences = match &differences {
        Some(_) => Some(labels.data_type().try_into().ok()?),
        None => None,
    };
    let values = differences.map_or_else(|| Arc::clone(labels), |it| Arc::new(it) as ArrayRef);
    let field = Field::new_list_field(values.data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let list = ListArray::try_new(Arc::new(field), offsets, values, None).ok()?;
    let list = (&ScalarValue::List(Arc::new(list))).try_into().ok()?;
    let mut bytes = vec![];
    seal(&LabelsOf { list, of_differences }, &mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() <= MOST_LABEL_BYTES)
}

/// Returns the labels of some bytes.
///
/// # Errors
/// `Corrupt` for bytes that hold no labels.
pub(super) fn labels_of(bytes: &[u8]) -> Result<ArrayRef> {
    let damaged = |what: String| Error::corrupt_region("plan", format!("its labels: {what}"));
    let LabelsOf { list, of_differences } =
        unseal(bytes).map_err(|error| damaged(error.to_string()))?;
    let list = ScalarValue::try_from(&list).map_err(|error| damaged(error.to_string()))?;
    let ScalarValue::List(list) = list else { return Err(damaged("no list".to_owned())) };
    let values = Arc::clone(list.values());
    let Some(data_type) = of_differences else { return Ok(values) };
    let data_type = DataType::try_from(&data_type).map_err(|error| damaged(error.to_string()))?;
    let differences = values.as_any().downcast_ref::<Int64Array>();
    let differences = differences.ok_or_else(|| damaged("no differences".to_owned()))?;
    summed(differences, data_type).ok_or_else(|| damaged("no numbers".to_owned()))
}

/// Returns the differences of the differences of labels, as their bits; `None` for NULLs and for types of other widths.
fn differences(labels: &ArrayRef) -> Option<Int64Array> {
    let data = labels.to_data();
    let width = words_of(data.data_type())?;
    if data.null_count() > 0 {
        return None;
    }
    let bytes = data.buffers().first()?.as_slice();
    let bytes = bytes.get(data.offset() * width..(data.offset() + data.len()) * width)?;
    let (mut label, mut step) = (0_i64, 0_i64);
    let of_word = |word: &[u8]| {
        let mut bits = [0; 8];
        bits[..width].copy_from_slice(word);
        let next = i64::from_le_bytes(bits);
        let next_step = next.wrapping_sub(label);
        let difference = next_step.wrapping_sub(step);
        (label, step) = (next, next_step);
        difference
    };
    Some(bytes.chunks_exact(width).map(of_word).collect())
}

/// Returns the labels of which these are the differences of the differences.
fn summed(differences: &Int64Array, data_type: DataType) -> Option<ArrayRef> {
    let width = words_of(&data_type)?;
    let (mut label, mut step) = (0_i64, 0_i64);
    let mut bytes = Vec::with_capacity(differences.len() * width);
    for difference in differences.values() {
        step = step.wrapping_add(*difference);
        label = label.wrapping_add(step);
        bytes.extend_from_slice(&label.to_le_bytes()[..width]);
    }
    let data =
        ArrayData::builder(data_type).len(differences.len()).add_buffer(Buffer::from_vec(bytes));
    // Arrow needs aligned words.
    Some(make_array(data.align_buffers(true).build().ok()?))
}

/// Returns the bytes per label of a type whose labels are words of 64 bits or less.
fn words_of(data_type: &DataType) -> Option<usize> {
    data_type.primitive_width().filter(|width| *width <= 8)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringViewArray, TimestampMicrosecondArray, UInt8Array};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn labels_travel() {
        let mut random = StdRng::seed_from_u64(20);
        let hours = (0..100_000).map(|hour| hour * 3_600_000_000);
        let hours: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(hours));
        assert!(label_bytes(&hours).unwrap().len() < 500);
        let labels: [ArrayRef; 6] = [
            Arc::clone(&hours),
            hours.slice(17, 100),
            Arc::new(UInt8Array::from_iter_values((0..200).map(|_| random.random()))),
            Arc::new(Float64Array::from(vec![f64::NAN, -0.0, 0.25, f64::MIN, f64::MAX])),
            Arc::new(Float64Array::from(vec![Some(0.5), None])),
            Arc::new(StringViewArray::from(vec!["north of the river", "south", ""])),
        ];
        for labels in &labels {
            let bytes = label_bytes(labels).unwrap();
            assert_eq!(&labels_of(&bytes).unwrap(), labels);
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << random.random_range(0..8);
                let read = labels_of(&flipped);
                assert!(read.is_err() || &read.unwrap() == labels, "byte {at}");
            }
        }
        let many = (0..100_000).map(|_| random.random());
        assert_eq!(
            label_bytes(&(Arc::new(Float64Array::from_iter_values(many)) as ArrayRef)),
            None
        );
    }
}
